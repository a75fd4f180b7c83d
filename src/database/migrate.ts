/**
 * Migrations: the SQL files of the folder `migrations` in the order of their names, after those of the queue.
 * Refusals: database_not_migrated, database_newer.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Knex } from 'knex';
import type pg from 'pg';
import { refuse } from '../errors/refusals.ts';
import { packageRoot } from '../package.ts';
import { LOCKS } from './locks.ts';
import { connectClient, openClientPool } from './session.ts';

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

/**
 * Does the work while no migration runs. `alone`: exclusively, to migrate. `shared`: beside others who only need the
 * schema to stay as it is. The lock is held on its own connection, because it must be held before a snapshot is taken.
 */
export async function whileNobodyMigrates<Result>(
  connection: pg.ClientConfig,
  mode: 'alone' | 'shared',
  work: () => Promise<Result>,
): Promise<Result> {
  const keeper = await connectClient(connection);
  try {
    await keeper.query(`SELECT pg_advisory_lock${mode === 'alone' ? '' : '_shared'}(${LOCKS.migration})`);
    return await work();
  } finally {
    await keeper.end();
  }
}

/** Runs the pending migrations as the database's owner and returns their names. Safe to repeat and to run concurrently. */
export async function migrate(owner: Knex, connection: pg.ClientConfig): Promise<string[]> {
  return whileNobodyMigrates(connection, 'alone', async () => {
    await prepareQueue(connection);
    return migrateTo(owner, MIGRATION_NAMES);
  });
}

/** The queue's own migrations. Ours need its schema. */
export async function prepareQueue(connection: pg.ClientConfig): Promise<void> {
  // Imported here, because most commands migrate nothing, and loading the queue is a tenth of a command's start.
  const { migrateQueue, quietQueueLogger } = await import('./queue.ts');
  const pool = openClientPool(connection, 2);
  try {
    await migrateQueue({ pgPool: pool, logger: quietQueueLogger });
  } finally {
    await pool.end();
  }
}

/** Runs those of the named migrations that the current schema is missing. In a transaction, it is part of it. */
export async function migrateTo(owner: Knex, names: readonly string[]): Promise<string[]> {
  const migrationSource = sourceOf(names);
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
  const { rows } = (await owner.raw(`SELECT to_regclass(?) IS NOT NULL AS there`, [TABLE])) as {
    rows: { there: boolean }[];
  };
  if (!rows[0]?.there) return [];
  return owner(TABLE).orderBy('id').pluck('name');
}
