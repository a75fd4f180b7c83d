/**
 * Restores a backup into an empty database in one transaction, which commits only if everything was restored and
 * verified. The file is read twice: first to compare its content with its hash and counts, and then to load it.
 * Refusals: file_unreadable, backup_*, database_not_empty, database_environment, and those of pendingMigrations.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { z } from 'zod';
import { Environment, EnvironmentName } from '#config/environment';
import { Refusal, reasonOf, refuse } from '#errors/refusals';
import { codeOf } from '#files';
import {
  columnList,
  END_OF_ROWS,
  FORMAT,
  FORMAT_VERSION,
  prepareForCopy,
  quoted,
  readSequences,
  readTables,
  Table,
} from './backup.ts';
import { Decrypt, decryptionOf } from './backup-encryption.ts';
import { refuseUnlessSigned } from './backup-signature.ts';
import { copyIn, countLines } from './copy.ts';
import { checkEnvironment, Database } from './database.ts';
import { refuseUnlessOwner } from './grants.ts';
import {
  MIGRATIONS,
  migrateTo,
  migrateWhole,
  otherMigrations,
  pendingMigrations,
  whileNobodyMigrates,
} from './migrate.ts';
import { alterGuards } from './restore-guards.ts';
import { fillTable } from './restore-indexes.ts';
import { Recording, recordSchema } from './schema.ts';
import { execute, query, queryOne, sqlstate, Transaction } from './transaction.ts';

/** A backup whose content matches its hash and counts. */
type CheckedBackup = Readonly<{
  file: string;
  decrypt: Decrypt | undefined;
  environment: EnvironmentName;
  program: string;
  created_at: string;
  migrations: readonly string[];
  rows: Readonly<Record<string, number>>;
  /** The next number of each sequence. */
  sequences: Readonly<Record<string, number>>;
  /** The hash of the content, not of the file. */
  sha256: string;
  /** True if the file is signed with our key. False if there is no key to check the signature with. */
  isAuthentic: boolean;
}>;

type RestoreResult<Proof> = Readonly<{
  rows: Readonly<Record<string, number>>;
  /** Tables of the backup that were not restored, because this version's migrations do not create them. */
  leftOut: readonly string[];
  proof: Proof;
}>;

type OnProgress = (bytesOfTheFile: number) => void;

// --- The file ---

const invalid = (file: string, reason: string, cause?: unknown) => refuse('backup_invalid', { file, reason }, cause);

const FOREIGN = 'it is not a backup of this program';
const CUT_OFF = 'it ends too early, a part of it is missing';

const anyHeaderSchema = z.object({ format: z.literal(FORMAT), version: z.int(), program: z.string() });
const headerSchema = anyHeaderSchema.extend({
  environment: z.enum(['sandbox', 'production']),
  created_at: z.string(),
  migrations: z.array(z.string()).min(1),
});
const tableLineSchema = z.object({ table: z.string(), columns: z.array(z.string()).min(1) });
const trailerSchema = z.object({
  rows: z.record(z.string(), z.int()),
  sequences: z.record(z.string(), z.int()),
  sha256: z.string(),
  signature: z.string().optional(),
});
type Header = z.output<typeof headerSchema>;
type TableLine = z.output<typeof tableLineSchema>;
type Trailer = z.output<typeof trailerSchema>;

/** Reads and checks a whole backup without a database. */
export async function checkBackup(
  file: string,
  { name: environment, logKey }: Pick<Environment, 'name' | 'logKey'>,
  onProgress: OnProgress = () => {},
  identities: readonly string[] = [],
): Promise<CheckedBackup> {
  const decrypt = await decryptionOf(file, identities);
  // The whole file is checked before its header is used: a flipped bit in a migration's name must not look like a newer
  // program.
  const { header, trailer } = await readBackup({ file, decrypt }, onProgress, (_, rows) => passOver(rows));
  const { changed, unknown } = otherMigrations(header.migrations);
  if (changed.length > 0) throw refuse('backup_unreleased', { file, program: header.program, changed });
  if (unknown.length > 0) throw refuse('backup_newer', { file, program: header.program, unknown });
  if (header.environment !== environment) {
    throw refuse('backup_environment', { file, backup: header.environment, program: environment });
  }
  // Later migrations rely on changes that earlier migrations made to the rows.
  if (header.migrations.some((id, index) => id !== MIGRATIONS[index])) {
    throw invalid(file, `its migrations are not the first of this program's: ${header.migrations.join(', ')}`);
  }
  if (logKey !== undefined) refuseUnlessSigned(file, trailer, logKey);
  const { rows, sequences, sha256 } = trailer;
  return { file, decrypt, ...header, rows, sequences, sha256, isAuthentic: logKey !== undefined };
}

async function passOver(rows: AsyncIterable<Buffer>) {
  for await (const _ of rows);
}

/** This function is called for each table. The function must consume all rows of the table. */
type ReadTable = (table: TableLine, rows: AsyncIterable<Buffer>) => Promise<void>;

type Source = Pick<CheckedBackup, 'file' | 'decrypt'>;

/**
 * Reads the file once. A damaged file is noticed only at its end, so if this throws, the caller must undo what
 * `readTable` did.
 */
async function readBackup(
  { file, decrypt }: Source,
  onProgress: OnProgress,
  readTable: ReadTable,
): Promise<{ header: Header; trailer: Trailer }> {
  const content = new Content({ file, decrypt }, onProgress);
  try {
    const header = await readHeader(file, content);
    const rows: Record<string, number> = {};
    for (;;) {
      const line = parsed(await content.line());
      const table = tableLineSchema.safeParse(line);
      if (table.success) {
        const name = table.data.table;
        if (rows[name] !== undefined) throw invalid(file, `it holds the rows of ${name} twice`);
        let count = 0;
        const counted = async function* () {
          for await (const chunk of content.rows()) {
            count += countLines(chunk);
            yield chunk;
          }
        };
        await readTable(table.data, counted());
        rows[name] = count;
        continue;
      }
      const end = trailerSchema.safeParse(line);
      if (!end.success) throw invalid(file, 'it is damaged: there is other data between two tables');
      const sha256 = content.hashBeforeLine();
      await content.end();
      if (sha256 !== end.data.sha256) throw invalid(file, 'it is damaged: its content does not match its SHA-256');
      const names = new Set([...Object.keys(rows), ...Object.keys(end.data.rows)]);
      const differing = [...names].filter((name) => rows[name] !== end.data.rows[name]);
      if (differing.length > 0) throw invalid(file, `it does not hold all rows of ${differing.join(', ')}`);
      return { header, trailer: end.data };
    }
  } finally {
    await content.close();
  }
}

async function readHeader(file: string, content: Content) {
  const found = parsed(await content.line());
  const any = anyHeaderSchema.safeParse(found);
  if (!any.success) throw invalid(file, FOREIGN);
  const { version, program } = any.data;
  if (version > FORMAT_VERSION) {
    // The trailer of a newer format may differ, but gzip's checksum still shows whether the file is damaged.
    await content.discard();
    throw refuse('backup_newer', { file, program, unknown: [`version ${version} of the format`] });
  }
  const known = headerSchema.safeParse(found);
  if (!known.success) throw invalid(file, 'it is damaged: its first line is not complete');
  return known.data;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** This limit is far longer than any header or trailer. A file of a different kind may have no line end at all. */
const LONGEST_LINE = 1_000_000;
const LINE_END = Buffer.from('\n');
const LAST_LINE = Buffer.from(`\n${END_OF_ROWS}`);

/** The unzipped file: lines, with any number of rows between them. Everything that is read is hashed. */
class Content {
  readonly #file: string;
  readonly #chunks: AsyncGenerator<Buffer>;
  readonly #hash = createHash('sha256');
  /** Bytes that were read but are not consumed yet. */
  #held: Buffer = Buffer.alloc(0);
  /** A line is hashed only when more is read, because the last line states the hash of everything before it. */
  #lastLine: Buffer = Buffer.alloc(0);

  constructor(source: Source, onProgress: OnProgress) {
    this.#file = source.file;
    this.#chunks = unzipped(source, onProgress);
  }

  async line() {
    this.#hash.update(this.#lastLine);
    for (;;) {
      const end = this.#held.indexOf(LINE_END);
      if (end >= 0) {
        this.#lastLine = this.#held.subarray(0, end + 1);
        this.#held = this.#held.subarray(end + 1);
        return this.#lastLine.toString('utf8');
      }
      if (this.#held.length > LONGEST_LINE) throw invalid(this.#file, FOREIGN);
      await this.#more();
    }
  }

  async *rows(): AsyncGenerator<Buffer> {
    this.#hash.update(this.#lastLine);
    // The line end before the rows is kept, so that the line that ends the rows is found even if there are no rows.
    this.#held = Buffer.concat([LINE_END, this.#held]);
    for (;;) {
      const end = this.#held.indexOf(LAST_LINE);
      // The end line may begin after this byte.
      const safe = end >= 0 ? end + 1 : this.#held.length - LAST_LINE.length + 1;
      if (safe > 1) {
        const rows = this.#held.subarray(1, safe);
        this.#hash.update(rows);
        this.#held = this.#held.subarray(safe - 1);
        yield rows;
      }
      if (end >= 0) {
        this.#lastLine = this.#held.subarray(1, LAST_LINE.length);
        this.#held = this.#held.subarray(LAST_LINE.length);
        return;
      }
      await this.#more();
    }
  }

  hashBeforeLine() {
    return this.#hash.digest('hex');
  }

  /** Refuses data after the trailer. gzip compares its checksum only at the end of the file. */
  async end() {
    const { done } = this.#held.length > 0 ? { done: false } : await this.#chunks.next();
    if (!done) throw invalid(this.#file, 'it is damaged: there is data after its end');
  }

  /** Reads to the end of the file only for gzip's checksum. */
  async discard() {
    this.#held = Buffer.alloc(0);
    await passOver(this.#chunks);
  }

  async close() {
    await this.#chunks.return(undefined);
  }

  async #more() {
    const { value, done } = await this.#chunks.next();
    if (done) throw invalid(this.#file, CUT_OFF);
    this.#held = Buffer.concat([this.#held, value]);
  }
}

async function* unzipped(
  { file, decrypt = (chunks) => chunks }: Source,
  onProgress: OnProgress,
): AsyncGenerator<Buffer> {
  const source = createReadStream(file, { highWaterMark: 256 * 1024 });
  const gunzip = createGunzip({ chunkSize: 256 * 1024 });
  const ended = pipeline(source, decrypt, gunzip);
  ended.catch(() => {});
  let reported = 0;
  try {
    for await (const chunk of gunzip) {
      onProgress(source.bytesRead - reported);
      reported = source.bytesRead;
      yield chunk as Buffer;
    }
  } catch (error) {
    throw problemOf(file, error);
  } finally {
    source.destroy();
    gunzip.destroy();
  }
}

function problemOf(file: string, error: unknown): unknown {
  if (error instanceof Refusal) return error;
  const code = codeOf(error) ?? '';
  const reason = reasonOf(error);
  if (code === 'Z_BUF_ERROR') return invalid(file, CUT_OFF, error);
  if (reason === 'incorrect header check') return invalid(file, FOREIGN, error);
  if (code.startsWith('Z_')) return invalid(file, `it is damaged: ${reason}`, error);
  return refuse('file_unreadable', { file, reason }, error);
}

// --- The database ---

/**
 * Loads a checked backup into an empty database, as its owner. All guards stay active except those of
 * restore-guards.ts. `prove` runs in the same transaction. If `prove` throws, nothing is restored.
 */
export function restoreBackup<Proof>(
  database: Database,
  backup: CheckedBackup,
  prove: (tx: Transaction, schema: Recording) => Promise<Proof>,
  onProgress: OnProgress = () => {},
): Promise<RestoreResult<Proof>> {
  return whileNobodyMigrates(database.connection, 'alone', async () => {
    await database.asOwner(async (tx) => {
      await refuseUnlessOwner(tx.client, 'restore');
      await refuseUnlessEmpty(tx, backup.environment);
    });
    return database.asOwner(async (tx) => {
      await prepareForCopy(tx);
      const { objects } = await migrateWhole(tx);
      const tables = await readTables(tx);
      // The lock keeps other users from writing to the restored tables before they are verified.
      await query(tx, `LOCK TABLE ${tables.map(({ name }) => quoted(name)).join(', ')} IN ACCESS EXCLUSIVE MODE`);
      await refuseUnlessEmpty(tx, backup.environment);
      await clearFreshHome(tx);
      const isCurrent = backup.migrations.length === MIGRATIONS.length;
      const leftOut = isCurrent ? await load(tx, backup, onProgress) : await loadOlder(tx, backup, onProgress);
      await checkEnvironment(tx.client, { name: backup.environment });
      // Without statistics, the checks of `prove` would be planned for empty tables.
      for (const { name } of tables) await query(tx, `ANALYZE ${quoted(name)}`);
      return { rows: backup.rows, leftOut, proof: await prove(tx, await recordSchema(tx, objects)) };
    });
  });
}

/** Tables that `init` and scheduled jobs fill. Rows in any other table are user data. */
const OF_A_FRESH_HOME: readonly string[] = ['installation', 'job_runs', 'personal_texts', 'servers'];

/** Excludes the events that `init` and the first command record. */
const OF_USERS = `WHERE action NOT IN ('database.migrate', 'settings.change', 'backup.take')`;

async function refuseUnlessEmpty(tx: Transaction, environment: EnvironmentName) {
  if ((await pendingMigrations(tx.client)).length === MIGRATIONS.length) return;
  const filled: string[] = [];
  for (const { name } of await readTables(tx)) {
    const rows = await query(tx, `SELECT FROM ${quoted(name)} ${name === 'audit_events' ? OF_USERS : ''} LIMIT 1`);
    if (rows.length === 0) continue;
    if (name === 'installation') await checkEnvironment(tx.client, { name: environment });
    if (!OF_A_FRESH_HOME.includes(name)) filled.push(name);
  }
  if (filled.length > 0) throw refuse('database_not_empty', { tables: filled });
}

/**
 * The backup's installation replaces the installation that `init` made: its id is part of the ids of sent messages. The
 * backup's audit events replace those of the fresh home, which no row refers to.
 */
async function clearFreshHome(tx: Transaction) {
  for (const [table, guard] of Object.entries({
    ...{ installation: 'append_only', servers: 'append_only', audit_events: 'append_only' },
    ...{ job_runs: 'kept_rows', personal_texts: 'kept_rows' },
  })) {
    await execute(tx, `ALTER TABLE ${table} DISABLE TRIGGER ${guard}`);
    await execute(tx, `DELETE FROM ${table}`);
    await execute(tx, `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${guard}`);
  }
}

async function load(tx: Transaction, backup: CheckedBackup, onProgress: OnProgress) {
  const { file } = backup;
  const tables = new Map((await readTables(tx)).map((table) => [table.name, table]));
  const leftOut: string[] = [];
  const loaded: Record<string, number> = {};
  // Before the rows: after its checkpoints, no fact is recorded while the next number is one that they cover.
  await setSequences(tx, backup.sequences);
  const { trailer } = await whileLoading(tx, file, () =>
    readBackup(backup, onProgress, async ({ table: name, columns }, rows) => {
      const table = tables.get(name);
      if (table !== undefined) {
        return filled(tx, file, name, async () => {
          loaded[name] = await loadTable(tx, file, table, columns, rows);
        });
      }
      leftOut.push(name);
      return passOver(rows);
    }),
  );
  if (trailer.sha256 !== backup.sha256) throw invalid(file, 'it has been replaced since it was checked');
  const lacking = Object.keys(loaded).filter((name) => loaded[name] !== trailer.rows[name]);
  if (lacking.length > 0) throw new Error(`not all rows of ${lacking.join(', ')} were loaded`);
  return leftOut;
}

/** Disables guards (restore-guards.ts). Foreign keys are checked at the end, because tables refer to each other. */
async function whileLoading<Result>(tx: Transaction, file: string, work: () => Promise<Result>) {
  await execute(tx, 'SET CONSTRAINTS ALL DEFERRED');
  await execute(tx, alterGuards('DISABLE'));
  const result = await work();
  await execute(tx, 'SET CONSTRAINTS ALL IMMEDIATE').catch((error: unknown) => {
    throw isOfTheRows(error) ? invalid(file, `its rows contradict each other: ${reasonOf(error)}`, error) : error;
  });
  await execute(tx, alterGuards('ENABLE ALWAYS'));
  return result;
}

async function loadTable(
  tx: Transaction,
  file: string,
  { name, columns: present }: Table,
  columns: readonly string[],
  rows: AsyncIterable<Buffer>,
) {
  if ([...present].sort().join() !== [...columns].sort().join()) {
    throw invalid(file, `its columns of ${name} differ from those that its migrations make`);
  }
  return copyIn(tx, `COPY ${quoted(name)} (${columnList(columns)}) FROM STDIN`, rows);
}

const filled = (tx: Transaction, file: string, name: string, fill: () => Promise<unknown>) =>
  fillTable(tx, name, fill).catch((error: unknown) => {
    throw isOfTheRows(error)
      ? invalid(file, `the database refuses its rows of ${name}: ${reasonOf(error)}`, error)
      : error;
  });

/** True for data exceptions and violated constraints: the file caused them, not the server. */
const isOfTheRows = (error: unknown) => /^2[23]/.test(sqlstate(error) ?? '');

/** Uses RESTART, because setval is not rolled back with the transaction. */
async function setSequences(tx: Transaction, sequences: Readonly<Record<string, number>>) {
  const present = Object.keys(await readSequences(tx));
  for (const [name, next] of Object.entries(sequences)) {
    if (present.includes(name)) await query(tx, `ALTER SEQUENCE ${quoted(name)} RESTART WITH ${next}`);
  }
}

/**
 * Loads a backup of an older schema into a temporary schema with only the backup's migrations. Runs the later
 * migrations in the temporary schema, and copies the rows to the database's own schema.
 */
async function loadOlder(tx: Transaction, backup: CheckedBackup, onProgress: OnProgress) {
  const older = `reckoner_restore_${randomBytes(4).toString('hex')}`;
  const { path } = await queryOne<{ path: string }>(tx, `SELECT current_setting('search_path') AS path`);
  const enter = (search: string) => query(tx, `SELECT set_config('search_path', :search, true)`, { search });
  await execute(tx, `CREATE SCHEMA ${older}`);
  await enter(older);
  await migrateTo(tx, backup.migrations);
  const leftOut = await load(tx, backup, onProgress);
  await migrateTo(tx, MIGRATIONS);
  const sequences = await readSequences(tx);
  await enter(path);
  await setSequences(tx, sequences);
  await whileLoading(tx, backup.file, async () => {
    for (const { name, columns } of await readTables(tx)) {
      const list = columnList(columns);
      const statement = `INSERT INTO ${quoted(name)} (${list}) OVERRIDING SYSTEM VALUE
        SELECT ${list} FROM ${older}.${quoted(name)}`;
      await filled(tx, backup.file, name, () => execute(tx, statement));
    }
  });
  await execute(tx, `DROP SCHEMA ${older} CASCADE`);
  return leftOut;
}
