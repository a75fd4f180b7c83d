/**
 * Migrations: the SQL files of the folder `migrations` in the order of their names, after those of the queue.
 * Refusals: database_not_migrated, database_newer, database_unreleased, database_not_owner, database_busy.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Knex } from 'knex';
import type pg from 'pg';
import { refuse } from '../errors/refusals.ts';
import { packageRoot } from '../package.ts';
import { grantToApp, ownsTables, refuseUnlessOwner } from './grants.ts';
import { LOCKS } from './locks.ts';
import { readMigratedColumns } from './schema.ts';
import { connectClient, openClientPool } from './session.ts';
import { LOCK_TIMEOUT, sqlstate } from './transaction.ts';

const FOLDER = join(packageRoot, 'migrations');

/** Our migrations in their order, without `.sql`. */
export const MIGRATION_NAMES: readonly string[] = readdirSync(FOLDER)
  .filter((file) => /^\d{3}_\w+\.sql$/.test(file))
  .map((file) => file.replace(/\.sql$/, ''))
  .sort();

const TABLE = 'migrations';

const sourceOf = (names: readonly string[]): Knex.MigrationSource<string> => ({
  getMigrations: async () => MIGRATION_NAMES.filter((name) => names.includes(name)),
  getMigrationName: (name) => name,
  getMigration: async (name) => ({
    up: async (knex) => {
      // Without bindings knex leaves `:name` alone, but a question mark must be escaped.
      await knex.raw(readFileSync(join(FOLDER, `${name}.sql`), 'utf8').replaceAll('?', '\\?'));
    },
    down: async () => {
      throw new Error('migrations go forward only');
    },
  }),
});

/** How long to wait for others, in seconds. */
export interface MigrationPatience {
  /** For another migration, a backup or a restore to end. */
  readonly lock: number;
  /** For a table: whoever uses it next waits behind us meanwhile. */
  readonly table: number;
}

const PATIENCE: MigrationPatience = { lock: 300, table: 10 };

/**
 * Does the work while no migration runs. `alone`: exclusively, to migrate. `shared`: beside others who only need the
 * schema to stay as it is. The lock is held on its own connection, because it must be held before a snapshot is taken.
 * Refusal: database_busy.
 */
export async function whileNobodyMigrates<Result>(
  connection: pg.ClientConfig,
  mode: 'alone' | 'shared',
  work: () => Promise<Result>,
  patience: MigrationPatience = PATIENCE,
): Promise<Result> {
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

async function holders(asking: { query: (sql: string) => Promise<{ rows: { who: string }[] }> }, sql: string) {
  return (await asking.query(sql)).rows.map(({ who }) => who);
}

/**
 * Runs the pending migrations as the database's owner and returns their names, and grants again what the app's role
 * needs. Safe to repeat and to run concurrently. Refusals: database_not_owner, database_busy.
 */
export async function migrate(owner: Knex, connection: pg.ClientConfig, patience = PATIENCE): Promise<string[]> {
  const work = async () => {
    const isOwner = await ownsTables(owner);
    const pending = await pendingMigrations(owner);
    if (pending.length === 0) await refuseUnreleased(owner);
    if (!isOwner && pending.length === 0) return [];
    await refuseUnlessOwner(owner, 'migrate');
    await prepareQueue(connection);
    const done = await migrateTo(owner, MIGRATION_NAMES);
    await grantToApp(owner);
    return done;
  };
  return whileNobodyMigrates(connection, 'alone', () => withPatience(owner, patience, work), patience);
}

/** Builds before the first release had migrations of these names with less in them. Nothing upgrades their databases. */
async function refuseUnreleased(owner: Knex): Promise<void> {
  const { rows } = (await owner.raw(
    `SELECT c.relname || '.' || a.attname AS name
     FROM pg_class home JOIN pg_class c ON c.relnamespace = home.relnamespace
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE home.oid = to_regclass(?)`,
    [TABLE],
  )) as { rows: { name: string }[] };
  const there = new Set(rows.map(({ name }) => name));
  const missing = readMigratedColumns().filter((name) => !there.has(name));
  if (missing.length > 0) throw refuse('database_unreleased', { missing });
}

/** Without limit, a migration that waits for a table makes everybody else wait for it, too. */
async function withPatience<Result>(
  owner: Knex,
  { table }: MigrationPatience,
  work: () => Promise<Result>,
): Promise<Result> {
  await owner.raw(`SET lock_timeout TO '${table}s'`); // of the only connection of its pool
  try {
    return await work();
  } catch (error) {
    if (sqlstate(error) !== LOCK_TIMEOUT) throw error;
    const found = await holders({ query: (sql) => owner.raw(sql) as never }, IN_TRANSACTION);
    throw refuse('database_busy', { holders: found, seconds: table }, error);
  } finally {
    await owner.raw('SET lock_timeout TO 0').catch(() => {});
  }
}

/** The queue's own migrations. Ours need its schema. */
export async function prepareQueue(connection: pg.ClientConfig): Promise<void> {
  // Imported here, because most commands migrate nothing, and loading the queue is a tenth of a command's start.
  const { migrateQueue } = await import('./queue.ts');
  const pool = openClientPool(connection, 2);
  try {
    await migrateQueue(pool);
  } finally {
    await pool.end();
  }
}

/** Runs those of the named migrations that the current schema is missing. In a transaction, it is part of it. */
export async function migrateTo(owner: Knex, names: readonly string[]): Promise<string[]> {
  const migrationSource = sourceOf(names);
  // Its own mark stays behind where a migration was killed. Ours is a lock that ends with its connection.
  if (await hasMigrations(owner)) await owner.migrate.forceFreeMigrationsLock({ tableName: TABLE });
  const [, done] = (await owner.migrate.latest({ migrationSource, tableName: TABLE })) as [number, string[]];
  await owner.raw(`CALL grant_to_app('SELECT', ?)`, [TABLE]);
  await owner.raw('CALL enable_triggers_always()');
  return done;
}

/** Names of the migrations that the database is missing. Refusal: database_newer. */
export async function pendingMigrations(owner: Knex): Promise<string[]> {
  const done = await doneMigrations(owner);
  refuseNewer(done);
  return MIGRATION_NAMES.filter((name) => !done.includes(name));
}

/** Refuses a database whose migrations this version does not know. */
export function refuseNewer(done: readonly string[]): void {
  const unknown = done.filter((name) => !MIGRATION_NAMES.includes(name));
  if (unknown.length > 0) throw refuse('database_newer', { unknown });
}

/** Names of the migrations that the database has, in the order in which they ran. */
export async function doneMigrations(owner: Knex): Promise<string[]> {
  return (await hasMigrations(owner)) ? owner(TABLE).orderBy('id').pluck('name') : [];
}

async function hasMigrations(owner: Knex): Promise<boolean> {
  const { rows } = (await owner.raw(`SELECT to_regclass(?) IS NOT NULL AS there`, [TABLE])) as {
    rows: { there: boolean }[];
  };
  return rows[0]?.there === true;
}
