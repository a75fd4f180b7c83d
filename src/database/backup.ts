/**
 * Writes a backup: everything in the database at one instant, in one file that every supported PostgreSQL can restore.
 * Refusals: backup_exists, file_unwritable, database_not_migrated, database_newer, database_environment.
 *
 * The file is gzip over lines of UTF-8:
 *
 *   {"format":"reckoner-backup","version":1,"program","environment","created_at","migrations":[…]}
 *   {"table","columns":[…]}       for each table, after the tables that it refers to; then its rows in COPY's
 *   …                             text format, and a line \.
 *   {"rows":{table:n},"sequences":{name:next},"sha256"}      the hash of every byte before this line; if there is a key
 *                                                            that signs checkpoints, "signature" over it as well
 *
 * If there are recipients, the whole file is encrypted (backup-encryption.ts).
 *
 * A backup omits generated columns, which are computed again, and the table of migrations, which the header lists. A
 * backup contains nothing from outside the database.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Environment } from '#config/environment';
import { Refusal, reasonOf, refuse } from '#errors/refusals';
import { codeOf, draftOf } from '#files';
import { packageVersion } from '#package';
import { Encrypt } from './backup-encryption.ts';
import { signatureOf } from './backup-signature.ts';
import { copyOut, countLines } from './copy.ts';
import { checkEnvironment, Database } from './database.ts';
import { doneMigrations, migrationName, pendingMigrations, whileNobodyMigrates } from './migrate.ts';
import { execute, query, Transaction } from './transaction.ts';

export const FORMAT = 'reckoner-backup';
/** Increased when programs for the previous version cannot read the new format. */
export const FORMAT_VERSION = 1;
/** The line that ends the rows of a table. No row equals this line, because COPY doubles every backslash in a row. */
export const END_OF_ROWS = '\\.\n';

export type Backup = Readonly<{
  /** The size of the file. The hash `sha256` is what `sha256sum` prints for the file. */
  bytes: number;
  sha256: string;
  created_at: string;
  rows: Readonly<Record<string, number>>;
}>;

type BackupOptions = Readonly<{
  encrypt?: Encrypt | undefined;
  /**
   * Receives the approximate number of bytes to read. The backup calls this after taking the snapshot, and waits for
   * the result.
   */
  onStart?: (bytes: number) => unknown;
  onProgress?: (bytes: number) => void;
}>;

/**
 * Writes the file completely or not at all. The file does not contain what other transactions commit during the backup.
 */
export async function writeBackup(
  database: Database,
  environment: Environment,
  file: string,
  options: BackupOptions = {},
): Promise<Backup> {
  if (existsSync(file)) throw refuse('backup_exists', { file });
  // The lock must come before the snapshot. In a snapshot older than a migration, tables that the migration rewrote
  // would look empty.
  return whileNobodyMigrates(database.connection, 'shared', async () => {
    const written = await database.asOwner(
      async (tx) => {
        await refuseStrangeDatabase(tx, environment);
        const draft = await openDraft(file, options.encrypt);
        try {
          return { draft, ...(await writeContent(tx, environment, draft, options)), ...(await draft.complete()) };
        } catch (error) {
          await draft.discard();
          throw error;
        }
      },
      { readOnly: true },
    );
    const { draft, ...backup } = written;
    await draft.publish();
    return backup;
  });
}

/**
 * Refuses a database without migrations or of a different environment. An older schema is accepted, because a backup
 * matters most before an upgrade.
 */
async function refuseStrangeDatabase(tx: Transaction, environment: Environment) {
  const pending = await pendingMigrations(tx.client);
  if ((await doneMigrations(tx.client)).length === 0)
    throw refuse('database_not_migrated', { pending: pending.map(migrationName) });
  await checkEnvironment(tx.client, environment);
}

// --- What to save ---

export type Table = Readonly<{
  name: string;
  columns: readonly string[];
  /** Tables that must be filled first. */
  after: readonly string[];
  bytes: number;
}>;

/**
 * The objects of the current schema with the same owner as our tables, except objects of extensions and the schema
 * record.
 */
const OURS = `
  FROM pg_class c
  WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
    AND c.relowner = (SELECT relowner FROM pg_class WHERE oid = to_regclass('migrations'))
    AND NOT EXISTS (
      SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    AND c.relname NOT IN ('migrations', 'migrations_id_seq', 'migrations_lock', 'migrations_lock_index_seq',
                          'schema_records')`;

/**
 * Triggers require these orders in addition to foreign keys: a row's policy and event and a reversal's ground must exist,
 * and no row can be posted to a closed month.
 */
const AFTER_BY_TRIGGER: Readonly<Record<string, readonly string[]>> = {
  ledger_rows: ['policies', 'audit_events', 'reversal_grounds'],
  closed_months: ['ledger_rows'],
  log_checkpoints: ['ledger_rows'],
};

/** Triggers fill these tables when the tables they depend on are restored (`011_splits.sql`). */
const FILLED_BY_TRIGGERS = ['unallocated_balance_transactions', 'account_months'];

/**
 * All our tables, in an order in which they can be filled. The tables are read from the catalog, so that none is
 * forgotten.
 */
export async function readTables(tx: Transaction) {
  const found = await query<Table>(
    tx,
    `SELECT c.relname AS name, pg_table_size(c.oid) AS bytes,
            ARRAY(SELECT a.attname::text FROM pg_attribute a
                  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
                  ORDER BY a.attnum) AS columns,
            ARRAY(SELECT f.relname::text FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
                  WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confrelid <> c.oid
                    AND NOT k.condeferrable
                  UNION ALL
                  -- No fact can be dated in closed books, so the facts are restored before the closes.
                  SELECT g.tgrelid::regclass::text FROM pg_trigger g
                  WHERE g.tgname = 'entry_books_open' AND c.relname = 'book_closes'
                  UNION ALL
                  -- Nothing can be recorded during a pause, so pauses are restored last.
                  SELECT g.tgrelid::regclass::text FROM pg_trigger g
                  WHERE position('not_while_paused' IN g.tgargs) > 0 AND c.relname = 'pauses'
                  UNION ALL
                  -- No fact can have a number that a checkpoint covers.
                  SELECT g.tgrelid::regclass::text FROM pg_trigger g
                  WHERE position('in_order' IN g.tgargs) > 0 AND c.relname = 'log_checkpoints') AS after
     ${OURS} AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> ALL (:filled)
     ORDER BY c.relname COLLATE "C"`,
    { filled: FILLED_BY_TRIGGERS },
  );
  const waiting = new Map(
    found.map((table) => [table.name, { ...table, after: [...table.after, ...(AFTER_BY_TRIGGER[table.name] ?? [])] }]),
  );
  const ordered: Table[] = [];
  while (waiting.size > 0) {
    const next = [...waiting.values()].find(({ after }) => !after.some((name) => waiting.has(name)));
    if (next === undefined) throw new Error(`these tables wait for each other: ${[...waiting.keys()].join(', ')}`);
    waiting.delete(next.name);
    ordered.push(next);
  }
  return ordered;
}

/**
 * The next values of our sequences. Sequences ignore snapshots, so a value may be ahead of the rows but never behind
 * them.
 */
export async function readSequences(tx: Transaction) {
  const names = await query<{ name: string }>(
    tx,
    `SELECT c.relname AS name ${OURS} AND c.relkind = 'S' ORDER BY c.relname COLLATE "C"`,
  );
  const sequences: Record<string, number> = {};
  for (const { name } of names) {
    const [sequence] = await query<{ next: number }>(
      tx,
      `SELECT s.last_value + CASE WHEN s.is_called THEN p.seqincrement ELSE 0 END AS next
       FROM ${quoted(name)} s, pg_sequence p WHERE p.seqrelid = s.tableoid`,
    );
    if (sequence !== undefined) sequences[name] = sequence.next;
  }
  return sequences;
}

export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

export const columnList = (columns: readonly string[]) => columns.map(quoted).join(', ');

/**
 * Prepares a long transaction: the server's time limits are off, rows are in their physical order, and values are
 * written in a format that can be read back exactly.
 */
export async function prepareForCopy(tx: Transaction) {
  await execute(
    tx,
    `SELECT set_config(name, '0', true) FROM pg_settings
     WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
  );
  await execute(tx, `SET LOCAL synchronize_seqscans TO off`);
  await execute(tx, `SET LOCAL extra_float_digits TO 3`);
  await execute(tx, `SET LOCAL intervalstyle TO postgres`);
  await execute(tx, `SET LOCAL bytea_output TO hex`);
  // A row-security policy that hides rows then raises an error, instead of making the backup incomplete.
  await execute(tx, `SET LOCAL row_security TO off`);
}

// --- The content ---

async function writeContent(
  tx: Transaction,
  environment: Environment,
  draft: BackupDraft,
  { onStart, onProgress }: BackupOptions,
) {
  await prepareForCopy(tx);
  const tables = await readTables(tx);
  const hash = createHash('sha256');
  const write = (content: Buffer) => {
    hash.update(content);
    return draft.write(content);
  };
  const created_at = environment.now().toISO();
  const migrations = await doneMigrations(tx.client);
  const header = { format: FORMAT, version: FORMAT_VERSION, program: packageVersion };
  await write(line({ ...header, environment: environment.name, created_at, migrations }));

  await onStart?.(tables.reduce((sum, { bytes }) => sum + bytes, 0));
  const rows: Record<string, number> = {};
  for (const table of tables) {
    await write(line({ table: table.name, columns: table.columns }));
    let left = table.bytes;
    rows[table.name] = await copyRows(tx, table, async (content) => {
      await write(content);
      const read = Math.min(content.length, left);
      left -= read;
      onProgress?.(read);
    });
    await write(Buffer.from(END_OF_ROWS));
    onProgress?.(left);
  }
  const sequences = await readSequences(tx);
  const sha256 = hash.digest('hex');
  const { logKey } = environment;
  const signature = logKey && signatureOf(sha256, logKey);
  await draft.write(line({ rows, sequences, sha256, ...(signature && { signature }) }));
  return { created_at, rows };
}

const line = (content: object) => Buffer.from(`${JSON.stringify(content)}\n`);

async function copyRows(tx: Transaction, { name, columns }: Table, write: (content: Buffer) => Promise<void>) {
  let rows = 0;
  await copyOut(tx, `COPY (SELECT ${columnList(columns)} FROM ${quoted(name)}) TO STDOUT`, (chunk) => {
    rows += countLines(chunk);
    return write(chunk);
  });
  return rows;
}

// --- The file ---

type BackupDraft = Readonly<{
  write: (content: Buffer) => Promise<void>;
  /** Flushes the file to disk. Returns the size and the hash of the file. */
  complete: () => Promise<{ bytes: number; sha256: string }>;
  /** Moves the file to its final name. Refusal: backup_exists. */
  publish: () => Promise<void>;
  discard: () => Promise<void>;
}>;

async function openDraft(file: string, encrypt: Encrypt = (chunks) => chunks): Promise<BackupDraft> {
  const unwritable = (error: unknown) => {
    if (error instanceof Refusal) return error;
    if (codeOf(error) === 'EEXIST') return refuse('backup_exists', { file });
    return refuse('file_unwritable', { file, reason: reasonOf(error) }, error);
  };
  const draft = draftOf(file);
  // Only the user who made a backup may read it.
  const handle = await open(draft.path, 'wx', 0o600).catch(async (error: unknown) => {
    await draft.discard();
    throw unwritable(error);
  });

  const gzip = createGzip();
  const hash = createHash('sha256');
  let bytes = 0;
  let failure: unknown;
  const ended = pipeline(gzip, encrypt, async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const chunk of chunks) {
      hash.update(chunk);
      bytes += chunk.length;
      await handle.writeFile(chunk);
    }
  });
  ended.catch((error: unknown) => {
    failure = error; // The next write, or `complete`, throws this error.
  });
  const orUnwritable = async (work: () => Promise<unknown>) => {
    try {
      if (failure !== undefined) throw failure;
      await work();
    } catch (error) {
      throw unwritable(error);
    }
  };
  return {
    write: (content) =>
      orUnwritable(async () => {
        if (!gzip.write(content)) await Promise.race([once(gzip, 'drain'), ended]);
      }),
    async complete() {
      await orUnwritable(async () => {
        gzip.end();
        await ended;
        await handle.sync();
        await handle.close();
      });
      return { bytes, sha256: hash.digest('hex') };
    },
    publish: () => orUnwritable(draft.publish),
    async discard() {
      gzip.destroy();
      await ended.catch(() => {});
      await handle.close().catch(() => {});
      await draft.discard().catch(() => {});
    },
  };
}
