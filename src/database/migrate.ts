/**
 * Runs migrations: the SQL files in the folder `migrations`, in the order of their names. Refusals:
 * database_not_migrated, database_newer, database_unreleased, database_foreign, database_not_owner, database_busy.
 */
import { hash } from 'node:crypto';

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Knex } from 'knex';
import pg from 'pg';
import { refuse } from '#errors/refusals';
import { packageRoot } from '#package';
import { grantToApp, ownsTables, refuseUnlessOwner } from './grants.ts';
import { LOCKS } from './locks.ts';
import { Recording, readMigrated, recordSchema } from './schema.ts';
import { SchemaObject } from './schema-objects.ts';
import { connectClient, Queryable } from './session.ts';
import { execute, inTransaction, LOCK_TIMEOUT, queryingValue, sqlstate, Transaction } from './transaction.ts';

const FOLDER = join(packageRoot, 'migrations');

export const MIGRATION_NAMES: readonly string[] = readdirSync(FOLDER)
  .filter((file) => /^\d{3}_\w+\.sql$/.test(file))
  .map((file) => file.replace(/\.sql$/, ''))
  .sort();

const readMigration = (name: string) => readFileSync(join(FOLDER, `${name}.sql`), 'utf8');

/** The id of a migration as a database stores it: the name, and a hash of the text without comments. */
const idOf = (name: string) => {
  const statements = readMigration(name).replaceAll(/^ *(--.*)?\n/gm, '');
  return `${name}.${hash('sha256', statements).slice(0, 12)}`;
};

/**
 * The name in an id: `001_foundation` in `001_foundation.5fe2…`. Builds before the first release recorded only names.
 */
export const migrationName = (id: string) => id.replace(/\.[0-9a-f]{12}$/, '');

export const MIGRATIONS: readonly string[] = MIGRATION_NAMES.map(idOf);

const TABLE = 'migrations';

const sourceOf = ({ client }: Transaction, ids: readonly string[]): Knex.MigrationSource<string> => ({
  getMigrations: async () => MIGRATIONS.filter((id) => ids.includes(id)),
  getMigrationName: (id) => id,
  getMigration: async (id) => ({
    // The migration does not run through knex, because knex would interpret `?` and `:name` as bindings.
    up: () => client.query(readMigration(migrationName(id))),
    down: async () => {
      throw new Error('migrations go forward only');
    },
  }),
});

/** The longest waits, in seconds. */
interface MigrationPatience {
  /** The wait for the end of another migration, a backup or a restore. */
  readonly lock: number;
  /** The wait for a table. All later users of the table have to wait until this migration ends. */
  readonly table: number;
}

const PATIENCE: MigrationPatience = { lock: 300, table: 10 };

/**
 * Runs `work` while no migration runs. With `alone`, `work` may migrate; with `shared`, other work that only needs an
 * unchanged schema may run at the same time. The lock has its own connection, because the lock must be held before a
 * snapshot is taken.
 */
export async function whileNobodyMigrates<Result>(
  connection: pg.ClientConfig,
  mode: 'alone' | 'shared',
  work: () => Promise<Result>,
  patience: MigrationPatience = PATIENCE,
) {
  const keeper = await connectClient(connection);
  try {
    await keeper.query(`SET lock_timeout TO '${patience.lock}s'`);
    const lock = `SELECT pg_advisory_lock${mode === 'alone' ? '' : '_shared'}(${LOCKS.migration})`;
    await keeper.query(lock).catch(async (error: unknown) => {
      if (sqlstate(error) !== LOCK_TIMEOUT) throw error;
      throw refuse('database_busy', { holders: await holders(keeper, LOCK_HOLDERS), seconds: patience.lock }, error);
    });
    return await work();
  } finally {
    await keeper.end();
  }
}

const SESSIONS = `
  SELECT format('process %s of %s (%s%s)', a.pid, a.usename, a.application_name, ' from ' || host(a.client_addr)) AS who
  FROM pg_stat_activity a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()`;
const LOCK_HOLDERS = `${SESSIONS} AND a.pid IN (
  SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND (classid, objid) IN ((${LOCKS.migration})))`;
const IN_TRANSACTION = `${SESSIONS} AND a.xact_start < now() - interval '1 second' ORDER BY a.xact_start LIMIT 5`;

async function holders(asking: Queryable, sql: string) {
  return ((await asking.query(sql)).rows as { who: string }[]).map(({ who }) => who);
}

export interface MigrationResult {
  readonly migrations: readonly string[];
  readonly schema: Recording;
}

/**
 * Runs the pending migrations as the database's owner, renews the grants of the app's role, and records the resulting
 * schema. These steps and `settle` run in one transaction. Safe to repeat and to run concurrently. Refusals:
 * database_not_owner, database_busy, and those of pendingMigrations.
 */
export async function migrate(
  owner: pg.Pool,
  connection: pg.ClientConfig,
  settle: (tx: Transaction, done: MigrationResult) => Promise<void>,
  patience = PATIENCE,
): Promise<readonly string[]> {
  const work = async () => {
    const isOwner = await ownsTables(owner);
    const pending = await pendingMigrations(owner);
    if (!isOwner && pending.length === 0) return [];
    await refuseUnlessOwner(owner, 'migrate');
    return withPatience(owner, patience, async (tx) => {
      const migrated = await migrateWhole(tx);
      await settle(tx, { migrations: migrated.names, schema: await recordSchema(tx, migrated.objects) });
      return migrated.names;
    });
  };
  return whileNobodyMigrates(connection, 'alone', work, patience);
}

/**
 * Runs the pending migrations and grants. Returns the names of those that ran, and the objects that all migrations
 * create on this server.
 */
export async function migrateWhole(tx: Transaction): Promise<{ names: string[]; objects: SchemaObject[] }> {
  const done = await migrateTo(tx, MIGRATIONS);
  const names = done.map(migrationName);
  if (done.length === MIGRATIONS.length) {
    await grantToApp(tx.client);
    return { names, objects: await readMigrated(tx) };
  }
  const objects = await makeAgain(tx);
  await grantToApp(tx.client, objects);
  return { names, objects };
}

/** Reads the objects that all migrations create in a separate, unmodified schema, which is then rolled back. */
async function makeAgain(tx: Transaction) {
  await execute(tx, 'SAVEPOINT made_again');
  await execute(tx, 'CREATE SCHEMA reckoner_migrated');
  await execute(tx, 'SET LOCAL search_path TO reckoner_migrated');
  await migrateTo(tx, MIGRATIONS);
  await grantToApp(tx.client);
  const made = await readMigrated(tx);
  await execute(tx, 'ROLLBACK TO SAVEPOINT made_again');
  return made;
}

/**
 * Limits the wait for a table. Without a limit, a migration that waits for a table would make all other users of the
 * table wait too.
 */
async function withPatience<Result>(
  owner: pg.Pool,
  { table }: MigrationPatience,
  work: (tx: Transaction) => Promise<Result>,
) {
  try {
    return await inTransaction(owner, async (tx) => {
      await execute(tx, `SET LOCAL lock_timeout TO '${table}s'`);
      return work(tx);
    });
  } catch (error) {
    if (sqlstate(error) !== LOCK_TIMEOUT) throw error;
    throw refuse('database_busy', { holders: await holders(owner, IN_TRANSACTION), seconds: table }, error);
  }
}

/** Runs the named migrations that the current schema does not have. */
export async function migrateTo(tx: Transaction, names: readonly string[]) {
  const { migrate: migrator } = tx.knex;
  const migrationSource = sourceOf(tx, names);
  // knex leaves its own lock behind if a migration is killed. Our lock ends with its connection.
  if (await hasMigrations(tx)) await migrator.forceFreeMigrationsLock({ tableName: TABLE });
  const [, done] = (await migrator.latest({ migrationSource, tableName: TABLE })) as [number, string[]];
  await execute(tx, `CALL grant_to_app('SELECT', '${TABLE}')`);
  await execute(tx, 'CALL grant_views_to_app()');
  await execute(tx, 'CALL enable_triggers_always()');
  await execute(tx, 'CALL close_functions()');
  return done;
}

/**
 * Returns the migrations that the database does not have. Refusals: database_newer, database_unreleased,
 * database_foreign.
 */
export async function pendingMigrations(owner: Queryable) {
  const done = await doneMigrations(owner);
  refuseOthers(done);
  return missingMigrations(done);
}

export async function refuseUnmigrated(owner: Queryable) {
  const pending = await pendingMigrations(owner);
  if (pending.length > 0) throw refuse('database_not_migrated', { pending: pending.map(migrationName) });
}

export const missingMigrations = (done: readonly string[]) => MIGRATIONS.filter((id) => !done.includes(id));

/** Refuses a database with migrations that this version does not have. */
export function refuseOthers(done: readonly string[]) {
  const { changed, unknown } = otherMigrations(done);
  if (changed.length > 0) throw refuse('database_unreleased', { changed });
  if (unknown.length === 0) return;
  if (unknown.length === done.length) throw refuse('database_foreign', { tables: [TABLE] });
  throw refuse('database_newer', { unknown });
}

/**
 * The migrations that are not ours. `changed`: these migrations had a different text when they ran. `unknown`: this
 * version does not have these migrations.
 */
export function otherMigrations(ids: readonly string[]) {
  const names = ids.filter((id) => !MIGRATIONS.includes(id)).map(migrationName);
  return {
    changed: names.filter((name) => MIGRATION_NAMES.includes(name)),
    unknown: names.filter((name) => !MIGRATION_NAMES.includes(name)),
  };
}

/** Returns the migrations of the database in the order in which they ran. */
export async function doneMigrations(owner: Queryable) {
  const [there] = (await owner.query(TABLES_THERE)).rows as [{ tables: string[]; is_list: boolean }];
  const { tables, is_list } = there;
  const list = is_list ? (await owner.query(`SELECT name FROM ${TABLE} ORDER BY id`)).rows : [];
  const done = (list as { name: string }[]).map(({ name }) => name);
  const others = tables.filter((name) => !is_list || !name.startsWith(TABLE));
  if (done.length === 0 && others.length > 0) throw refuse('database_foreign', { tables: others });
  return done;
}

/** Selects the tables that belong to no extension, and whether one of them is knex's list of migrations. */
const TABLES_THERE = `
  SELECT ARRAY(SELECT c.relname::text FROM pg_class c
               WHERE c.relkind IN ('r', 'p')
                 AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
                 AND NOT EXISTS (SELECT FROM pg_depend d
                                 WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
               ORDER BY c.relname COLLATE "C") AS tables,
         (SELECT count(*) = 3 FROM pg_attribute
          WHERE attrelid = to_regclass('${TABLE}') AND attname IN ('id', 'name', 'batch')) AS is_list`;

const hasMigrations = queryingValue<boolean>(`SELECT to_regclass('${TABLE}') IS NOT NULL AS there`);
