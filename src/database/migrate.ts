/**
 * Migrations: the SQL files of the folder `migrations` in the order of their names, after those of the queue.
 * Refusals: database_not_migrated, database_newer.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Knex } from 'knex';
import pg from 'pg';
import { refuse } from '../errors/refusals.ts';
import { packageRoot } from '../package.ts';

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

// Of CREATE DATABASE … TEMPLATE and of two commands at once: one migrates, the other waits.
const MIGRATION_LOCK = '7310::integer, 1::integer';

/**
 * Does the work while nobody migrates: `alone` as the one who does, `shared` beside others who only want the schema to
 * stay as it is. The lock lies on a connection of its own, because whoever takes one snapshot must hold it before that.
 */
export async function whileNobodyMigrates<Result>(
  connection: pg.ClientConfig,
  mode: 'alone' | 'shared',
  work: () => Promise<Result>,
): Promise<Result> {
  const keeper = new pg.Client(connection);
  keeper.on('error', () => {}); // A server that goes away is reported by the work's own queries.
  await keeper.connect();
  try {
    await keeper.query(`SELECT pg_advisory_lock${mode === 'alone' ? '' : '_shared'}(${MIGRATION_LOCK})`);
    return await work();
  } finally {
    await keeper.end();
  }
}

/** Brings the database up to date as its owner and names what was done. Safe to repeat and to run at once. */
export async function migrate(owner: Knex, connection: pg.ClientConfig): Promise<string[]> {
  return whileNobodyMigrates(connection, 'alone', async () => {
    await prepareQueue(connection);
    return migrateTo(owner, MIGRATION_NAMES);
  });
}

/** The queue's own migrations. Ours need its schema. */
export async function prepareQueue(connection: pg.ClientConfig): Promise<void> {
  // Most commands migrate nothing, and the queue takes a tenth of a command's start to load.
  const { migrateQueue, openQueuePool, quietQueueLogger } = await import('./queue.ts');
  const pool = openQueuePool(connection, 2);
  try {
    await migrateQueue({ pgPool: pool, logger: quietQueueLogger });
  } finally {
    await pool.end();
  }
}

/** Runs those of the named migrations that the current schema lacks; in a transaction, as part of it. */
export async function migrateTo(owner: Knex, names: readonly string[]): Promise<string[]> {
  const migrationSource = sourceOf(names);
  const [, done] = (await owner.migrate.latest({ migrationSource, tableName: TABLE })) as [number, string[]];
  await owner.raw(`CALL grant_to_app('SELECT', ?)`, [TABLE]);
  return done;
}

/** Names of the migrations that the database lacks. */
export async function pendingMigrations(owner: Knex): Promise<string[]> {
  const done = await doneMigrations(owner);
  const unknown = done.filter((name) => !MIGRATION_NAMES.includes(name));
  if (unknown.length > 0) throw refuse('database_newer', { unknown });
  return MIGRATION_NAMES.filter((name) => !done.includes(name));
}

/** Names of the migrations that the database has, in the order in which they were run. */
export async function doneMigrations(owner: Knex): Promise<string[]> {
  const { rows } = (await owner.raw(`SELECT to_regclass(?) IS NOT NULL AS there`, [TABLE])) as {
    rows: { there: boolean }[];
  };
  if (!rows[0]?.there) return [];
  return owner(TABLE).orderBy('id').pluck('name');
}
