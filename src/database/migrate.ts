/** Migrations: our own in order, after those of the queue. Refusals: database_not_migrated, database_newer. */
import type { Knex } from 'knex';
import pg from 'pg';
import * as rolesAndGuards from '../../migrations/001_roles_and_guards.ts';
import * as partners from '../../migrations/002_partners.ts';
import * as ledger from '../../migrations/003_ledger.ts';
import * as documents from '../../migrations/004_documents.ts';
import * as delivery from '../../migrations/005_delivery.ts';
import * as corrections from '../../migrations/006_corrections.ts';
import * as paymentLinkObjects from '../../migrations/007_payment_link_objects.ts';
import * as payments from '../../migrations/008_payments.ts';
import * as logos from '../../migrations/009_logos.ts';
import * as journal from '../../migrations/010_journal.ts';
import * as quotes from '../../migrations/011_quotes.ts';
import * as seals from '../../migrations/012_seals.ts';
import * as processor from '../../migrations/013_processor.ts';
import * as policiesOfRows from '../../migrations/014_policies_of_rows.ts';
import * as paymentExceptions from '../../migrations/015_payment_exceptions.ts';
import * as payoutsOfAccounts from '../../migrations/016_payouts_of_accounts.ts';
import * as keptMessages from '../../migrations/017_kept_messages.ts';
import * as sharesByEnrollment from '../../migrations/018_shares_by_enrollment.ts';
import { refuse } from '../errors/refusals.ts';

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
  { name: '006_corrections', ...corrections },
  { name: '007_payment_link_objects', ...paymentLinkObjects },
  { name: '008_payments', ...payments },
  { name: '009_logos', ...logos },
  { name: '010_journal', ...journal },
  { name: '011_quotes', ...quotes },
  { name: '012_seals', ...seals },
  { name: '013_processor', ...processor },
  { name: '014_policies_of_rows', ...policiesOfRows },
  { name: '015_payment_exceptions', ...paymentExceptions },
  { name: '016_payouts_of_accounts', ...payoutsOfAccounts },
  { name: '017_kept_messages', ...keptMessages },
  { name: '018_shares_by_enrollment', ...sharesByEnrollment },
];

/** Our migrations in their order. */
export const MIGRATION_NAMES: readonly string[] = MIGRATIONS.map(({ name }) => name);

const TABLE = 'migrations';

const sourceOf = (names: readonly string[]): Knex.MigrationSource<Migration> => ({
  getMigrations: async () => MIGRATIONS.filter(({ name }) => names.includes(name)),
  getMigrationName: (migration) => migration.name,
  getMigration: async (migration) => ({
    up: migration.up,
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
