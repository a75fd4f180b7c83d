/**
 * Checks whether a database's schema is what the migrations create. A release states the digest of all facts (the first
 * line of migrations/schema.sql). For expressions, `migrate`, `init` and `restore` compare the server's text of the
 * schema with its text of a schema that the migrations have just created. These commands then record the hash of each
 * tree in the catalog, and `verify` compares the trees with the recorded hashes.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot, packageVersion } from '#package';
import { readSchemaObjects, SchemaObject } from './schema-objects.ts';
import { execute, queryingFirst, queryOne, Transaction } from './transaction.ts';

const hashOf = (text: string) => hash('sha256', text).slice(0, 32);

// --- The record ---

/**
 * The hash of the facts. The hash of the trees in this database, or `changed` if the text differed. The oid of a table.
 */
type ObjectRecord = readonly [facts: string, tree: string | null, oid: number | null];

interface SchemaRecord {
  readonly server_version: number;
  readonly objects: Readonly<Record<string, ObjectRecord>>;
}

/** True for objects that come from the server's setup, not from migrations. A server should have no such objects. */
const isAround = (object: string) => /^(shadow|setting|event trigger|default privileges) /.test(object);

/**
 * The objects that the migrations create on this server. The objects are read right after the migrations ran, or from a
 * schema created for this purpose.
 */
export const readMigrated = async (tx: Transaction) =>
  (await readSchemaObjects(tx, 'printed'))
    .filter(({ object }) => !isAround(object))
    .map((each) => (each.object === 'role reckoner_app' ? { ...each, facts: '' } : each));

const readRecord = queryingFirst<SchemaRecord>(
  'SELECT server_version, objects FROM schema_records ORDER BY schema_record_id DESC LIMIT 1',
);

const digestOfRecord = ({ server_version, objects }: SchemaRecord) =>
  digestOf([
    `${server_version}\n`,
    ...Object.keys(objects)
      .sort()
      .map((object) => `${object} ${objects[object]?.join(' ')}\n`),
  ]);

export interface Recording {
  readonly sha256: string;
  readonly isNew: boolean;
}

/**
 * Records what the migrations created, so that `verify` can compare without running them again, under any version of
 * PostgreSQL. An object whose text differs from the migrated text is recorded as changed, so a record never approves a
 * manual change. Returns the SHA-256 of the record for the command's event.
 */
export async function recordSchema(tx: Transaction, migrated: readonly SchemaObject[]): Promise<Recording> {
  const there = new Map((await readSchemaObjects(tx, 'printed')).map((each) => [each.object, each]));
  const objects = Object.fromEntries(
    migrated.map(({ object, facts, tree, printed }): [string, ObjectRecord] => {
      const found = there.get(object);
      const recorded = tree === null ? null : found?.printed === printed ? (found?.tree ?? null) : 'changed';
      return [object, [hashOf(facts), recorded, found?.oid ?? null]];
    }),
  );
  const { server_version } = await queryOne<{ server_version: number }>(tx, SERVER_VERSION);
  const record = { server_version, objects };
  const sha256 = digestOfRecord(record);
  const last = await readRecord(tx);
  if (last !== undefined && digestOfRecord(last) === sha256) return { sha256, isNew: false };
  await execute(
    tx,
    `INSERT INTO schema_records (schema_record_id, program, server_version, objects)
     SELECT coalesce(max(schema_record_id), 0) + 1, :program, :server_version, :objects::jsonb
     FROM schema_records`,
    { program: packageVersion, server_version, objects: JSON.stringify(objects) },
  );
  return { sha256, isNew: true };
}

const SERVER_VERSION = `SELECT current_setting('server_version_num')::integer AS server_version`;

export async function readRecordDigest(tx: Transaction) {
  const record = await readRecord(tx);
  return record && digestOfRecord(record);
}

// --- The release ---

/**
 * True for objects that do not exist if the app's role does not exist. If the role could not be created, only triggers
 * guard the tables.
 */
const isOfTheRole = (object: string) => object.startsWith('privileges on ') || object === 'role reckoner_app';

/** The SHA-256 of all lines, which is the same on every server. */
const digestOf = (lines: readonly string[]) => hash('sha256', lines.join(''));

const lineOf = (object: string, facts: string) => `${object} ${facts}\n`;

/**
 * The text of migrations/schema.sql: the digests of what the migrations create, with and without the app's role.
 */
export function describeRelease(migrated: readonly SchemaObject[]) {
  const all = migrated.map(({ object, facts }) => ({ object, line: lineOf(object, hashOf(facts)) }));
  const own = all.filter(({ object }) => !isOfTheRole(object));
  const [whole, roleless] = [all, own].map((each) => digestOf(each.map(({ line }) => line)));
  return `-- Facts: SHA-256 ${whole}, without the role reckoner_app ${roleless}`;
}

function readRelease(): readonly [whole: string, roleless: string] {
  const head = readFileSync(SCHEMA_FILE, 'utf8');
  const [, whole = '', roleless = ''] = /^-- Facts: SHA-256 (\w+), .+ (\w+)$/m.exec(head) ?? [];
  return [whole, roleless];
}

export const SCHEMA_FILE = join(packageRoot, 'migrations', 'schema.sql');

// --- The comparison ---

export type SchemaComparison = Readonly<{
  inspected: number;
  differences: readonly Readonly<{ object: string; detail: string }>[];
  /**
   * The number of objects with expressions that could not be compared, because the database was moved here after its
   * schema was recorded.
   */
  notCompared: number;
  /** The SHA-256 over a line for each object and the hash of its facts. */
  sha256: string;
}>;

const RECORD = 'record of the schema';
const LONGEST = 300;

/** Compares the schema with what the migrations create. */
export async function compareSchema(tx: Transaction): Promise<SchemaComparison> {
  const { has_role, server_version } = await queryOne<{ has_role: boolean; server_version: number }>(
    tx,
    `${SERVER_VERSION}, to_regrole('reckoner_app') IS NOT NULL AS has_role`,
  );
  const found = new Map((await readSchemaObjects(tx)).map((each) => [each.object, each]));
  const record = (await readRecord(tx)) ?? { server_version, objects: {} };
  const comparable = isOfThisDatabase(record, server_version, found);
  const expected = Object.entries(record.objects).filter(([object]) => has_role || !isOfTheRole(object));
  const changed: string[] = [];
  let notCompared = 0;
  const lines = [...found.values()].map(({ object, facts, tree }) => {
    const [recorded, trees] = record.objects[object] ?? [];
    const hash = hashOf(facts);
    const isSame = hash === recorded && (trees === null) === (tree === null);
    const isSkipped = isSame && tree !== null && !comparable && trees !== 'changed';
    if (isSkipped) notCompared += 1;
    const isChanged = !isSame || (!isSkipped && tree !== trees);
    if (isChanged) changed.push(object);
    return lineOf(object, hash + (isSkipped ? ' not compared' : isChanged ? ' changed' : ''));
  });
  const differences = [
    ...recordDifferences(record),
    ...expected.filter(([object]) => !found.has(object)).map(([object]) => ({ object, detail: 'is missing' })),
    ...(await describeChanged(tx, changed, record)),
  ];
  return { inspected: expected.length, differences, notCompared, sha256: digestOf(lines) };
}

/**
 * True if the record's trees can be compared. Trees contain the oids of other objects, which change with a dump, and
 * each major version stores trees differently.
 */
function isOfThisDatabase(
  { objects, server_version }: SchemaRecord,
  version: number,
  found: ReadonlyMap<string, SchemaObject>,
) {
  const tables = Object.entries(objects).filter(([, [, , oid]]) => oid !== null);
  const same = tables.filter(([object, [, , oid]]) => found.get(object)?.oid === oid);
  return Math.floor(server_version / 10_000) === Math.floor(version / 10_000) && same.length * 2 > tables.length;
}

/** Compares the record's facts with the release, because the record in the database could have been changed. */
function recordDifferences({ objects }: SchemaRecord): SchemaComparison['differences'] {
  if (Object.keys(objects).length === 0) return [{ object: RECORD, detail: 'is missing: migrate the database' }];
  const names = Object.keys(objects).sort();
  const [whole, roleless] = readRelease();
  const digest = digestOf(names.map((object) => lineOf(object, objects[object]?.[0] ?? '')));
  if (digest === ('role reckoner_app' in objects ? whole : roleless)) return [];
  return [{ object: RECORD, detail: "does not match this version's migrations: migrate the database" }];
}

async function describeChanged(tx: Transaction, changed: readonly string[], { objects }: SchemaRecord) {
  if (changed.length === 0) return [];
  const printed = new Map((await readSchemaObjects(tx, 'printed')).map((each) => [each.object, each]));
  return changed.map((object) => {
    const what = objects[object] === undefined ? 'was not made by a migration' : 'is not as migrated';
    const { facts = '', printed: definition = null } = printed.get(object) ?? {};
    return { object, detail: `${what}: ${(definition || facts).replaceAll(/\s+/g, ' ').slice(0, LONGEST)}` };
  });
}
