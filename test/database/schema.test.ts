/**
 * The schema that fresh migrations make, compared with the committed migrations/schema.sql, so that a change of the
 * schema is reviewed as one. After a wanted change: npm run db:schema.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compareSchema, hashOfDefinition, OBJECTS_FILE, readSchemaObjects } from '../../src/database/schema.ts';
import { currenciesByMinorDigits, minorDigits } from '../../src/money.ts';
import { packageRoot } from '../../src/package.ts';
import { dumpSchema } from '../support/schema-dump.ts';
import { openWorld, type World } from '../support/world.ts';

const COMMITTED = join(packageRoot, 'migrations', 'schema.sql');

let world: World;
let owner: pg.Client;
beforeAll(async () => {
  world = await openWorld();
  owner = new pg.Client(world.databaseUrl);
  await owner.connect();
});
afterAll(async () => {
  await owner.end();
  await world.end();
});

const dump = () => dumpSchema(async (sql) => (await owner.query(sql)).rows);

test('a fresh database has exactly the committed schema', async () => {
  const schema = await dump();
  if (process.env['UPDATE_SCHEMA']) writeFileSync(COMMITTED, schema);
  expect(schema).toBe(readFileSync(COMMITTED, 'utf8'));
});

test('a fresh database has exactly the objects of migrations/objects.json', async () => {
  const objects = await world.database.reading(readSchemaObjects);
  if (process.env['UPDATE_SCHEMA']) {
    const hashes = Object.fromEntries(objects.map(({ object, definition }) => [object, hashOfDefinition(definition)]));
    writeFileSync(OBJECTS_FILE, `${JSON.stringify(hashes, null, 2)}\n`);
  }
  const { differences } = await world.database.reading(compareSchema);
  expect(differences).toEqual([]);
  expect(objects.length).toBeGreaterThan(1000);
});

test('the database has the same minor digits as the program', async () => {
  const { rows } = await owner.query<{ code: string; digits: number }>(
    'SELECT code, minor_digits(code) AS digits FROM unnest($1::text[]) AS code',
    [[...currenciesByMinorDigits().values()].flat()],
  );
  expect(rows.length).toBeGreaterThan(150);
  expect(rows.filter(({ code, digits }) => minorDigits(code) !== digits)).toEqual([]);
});

test('every object of the schema is created by a migration', async () => {
  expect(await dump()).not.toContain('made by no migration');
});

/** Replaces a piece of a view's or function's definition. */
async function edited(definition: string, from: string, to: string): Promise<string> {
  const [row] = (await owner.query<{ sql: string }>(`SELECT ${definition} AS sql`)).rows;
  expect(row?.sql).toContain(from);
  return (row?.sql ?? '').replace(from, to);
}

test.each<[what: string, change: () => Promise<string> | string]>([
  [
    'a view that forgets reversed payments',
    async () =>
      `CREATE OR REPLACE VIEW payment_balances AS
       ${await edited(`pg_get_viewdef('payment_balances')`, '((amount - applied) - reversed)', '(amount - applied)')}`,
  ],
  [
    'a trigger function that lets payments be overdrawn',
    () => edited(`pg_get_functiondef('refuse_overdrawn_payment'::regproc)`, 'unapplied < 0', 'unapplied < -1000000'),
  ],
  ['a missing trigger', () => 'DROP TRIGGER append_only_rows ON ledger_rows'],
  ['a disabled trigger', () => 'ALTER TABLE ledger_rows DISABLE TRIGGER append_only_rows'],
  ['a trigger on fewer events', () => 'DROP TRIGGER append_only_table ON voids'],
  ['a missing constraint', () => 'ALTER TABLE ledger_rows DROP CONSTRAINT ledger_rows_balance'],
  [
    'a constraint that is not deferrable',
    () => 'ALTER TABLE holds ALTER CONSTRAINT hold_follows_a_release NOT DEFERRABLE',
  ],
  ['a missing index', () => 'DROP INDEX ledger_rows_known_once'],
  ['another type', () => 'ALTER TABLE job_attention ALTER COLUMN count TYPE integer'],
  ['another default', () => `ALTER TABLE documents ALTER COLUMN reason SET DEFAULT 'none'`],
  ['a nullable column', () => 'ALTER TABLE job_runs ALTER COLUMN job DROP NOT NULL'],
  ['another storage', () => 'ALTER TABLE logos ALTER COLUMN content SET STORAGE EXTENDED'],
  ['a grant', () => 'GRANT DELETE ON ledger_rows TO reckoner_app'],
  ['a grant of a column', () => 'GRANT UPDATE (amount) ON payments TO reckoner_app'],
  ['a revoked function', () => 'REVOKE EXECUTE ON FUNCTION enqueue_deliveries FROM PUBLIC'],
  ['another domain', () => 'ALTER DOMAIN billing_month DROP CONSTRAINT billing_month_form'],
])('the comparison sees %s', async (_, change) => {
  const before = await dump();
  await owner.query('BEGIN');
  try {
    await owner.query(await change());
    expect(await dump()).not.toBe(before);
  } finally {
    await owner.query('ROLLBACK');
  }
  expect(await dump()).toBe(before);
});

test('the role of the app may insert into the ledger, closed months and documents, but not update or delete', async () => {
  const schema = await dump();
  for (const table of ['ledger_rows', 'closed_months', 'documents', 'document_lines', 'credit_applications']) {
    expect(schema).toContain(`\nGRANT INSERT, SELECT ON ${table} TO reckoner_app;\n`);
  }
  expect(schema).toContain('\nGRANT INSERT, SELECT ON document_pdfs TO reckoner_app;\n');
});
