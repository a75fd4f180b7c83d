/** Migrations: our own in order, after those of the queue. Refusals: database_not_migrated, database_newer. */
import { runMigrations as migrateQueue } from 'graphile-worker';
import type { Knex } from 'knex';
import pg from 'pg';
import * as rolesAndGuards from '../../migrations/001_roles_and_guards.ts';
import * as partners from '../../migrations/002_partners.ts';
import * as ledger from '../../migrations/003_ledger.ts';
import * as documents from '../../migrations/004_documents.ts';
import * as delivery from '../../migrations/005_delivery.ts';
import { refuse } from '../errors.ts';
import { openQueuePool, quietQueueLogger } from './queue.ts';

interface Migration {
  readonly name: string;
  readonly up: (knex: Knex) => Promise<void>;
}

const MIGRATIONS: readonly Migration[] = [
  { name: '001_roles_and_guards', ...rolesAndGuards },
  { name: '002_partners', ...partners },
  { name: '003_ledger', ...ledger },
  { name: '004_documents', ...documents },
  { name: '005_delivery', ...delivery },
];

const TABLE = 'migrations';

const migrationSource: Knex.MigrationSource<Migration> = {
  getMigrations: async () => [...MIGRATIONS],
  getMigrationName: (migration) => migration.name,
  getMigration: async (migration) => ({
    up: migration.up,
    down: async () => {
      throw new Error('migrations go forward only');
    },
  }),
};

// Constraint of CREATE DATABASE … TEMPLATE and of two commands at once: one migrates, the other waits.
const MIGRATION_LOCK = 'SELECT pg_advisory_lock(7310, 1)';

/** Brings the database up to date as its owner and names what was done. Safe to repeat and to run at once. */
export async function migrate(owner: Knex, connection: pg.ClientConfig): Promise<string[]> {
  const keeper = new pg.Client(connection);
  await keeper.connect();
  try {
    await keeper.query(MIGRATION_LOCK);
    const pool = openQueuePool(connection, 2);
    try {
      await migrateQueue({ pgPool: pool, logger: quietQueueLogger });
    } finally {
      await pool.end();
    }
    const [, done] = (await owner.migrate.latest({ migrationSource, tableName: TABLE })) as [number, string[]];
    await owner.raw(`CALL grant_to_app('SELECT', ?)`, [TABLE]);
    return done;
  } finally {
    await keeper.end();
  }
}

/** Names of the migrations that the database lacks. */
export async function pendingMigrations(owner: Knex): Promise<string[]> {
  const done = await doneMigrations(owner);
  const known = new Set(MIGRATIONS.map((migration) => migration.name));
  const unknown = done.filter((name) => !known.has(name));
  if (unknown.length > 0) throw refuse('database_newer', { unknown });
  return [...known].filter((name) => !done.includes(name));
}

async function doneMigrations(owner: Knex): Promise<string[]> {
  const { rows } = (await owner.raw(`SELECT to_regclass(?) IS NOT NULL AS there`, [TABLE])) as {
    rows: { there: boolean }[];
  };
  if (!rows[0]?.there) return [];
  return owner(TABLE).orderBy('id').pluck('name');
}
