/**
 * The digests of the schema that fresh migrations make, compared with the committed migrations/schema.sql. After a
 * wanted change: npm run db:schema.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findChangedSchema } from '../../src/audit/checks/schema.ts';
import { compareSchema, describeRelease, readMigrated, recordSchema, SCHEMA_FILE } from '../../src/database/schema.ts';
import { type Transaction, valueTypes } from '../../src/database/transaction.ts';
import { MINOR_DIGITS, minorDigits } from '../../src/money.ts';
import { startOver } from '../close/start-over.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let owner: pg.Client;
beforeAll(async () => {
  world = await openWorld();
  owner = new pg.Client({ connectionString: world.databaseUrl, types: valueTypes });
  await owner.connect();
});
afterAll(async () => {
  await owner.end();
  await world.end();
});

/** The transaction that the test's own connection is in. */
const asOwner = { ask: (statement: pg.QueryConfig) => owner.query(statement) } as unknown as Transaction;

/** The finding of `verify`. */
const changed = () => findChangedSchema(asOwner, { schema: () => compareSchema(asOwner) });

test('a fresh database has exactly the digests that are committed', async () => {
  const objects = await world.database.asOwner(readMigrated);
  const schema = `${describeRelease(objects)}\n`;
  if (process.env['UPDATE_SCHEMA']) writeFileSync(SCHEMA_FILE, schema);
  expect(schema).toBe(readFileSync(SCHEMA_FILE, 'utf8'));
  expect(objects.length).toBeGreaterThan(1000);
});

test('a fresh database is as the release says', async () => {
  const { differences, notCompared } = await world.database.reading(compareSchema);
  expect({ differences, notCompared }).toEqual({ differences: [], notCompared: 0 });
});

test('a world that starts over has all its guards', async () => {
  await world.partners([partner()]);
  await startOver(world);
  expect(await world.sql('SELECT FROM partners')).toEqual([]);
  const { differences } = await world.database.reading(compareSchema);
  expect(differences).toEqual([]);
});

test('the database has the same minor digits as the program', async () => {
  const { rows } = await owner.query<{ code: string; digits: number }>(
    'SELECT code, minor_digits(code) AS digits FROM unnest($1::text[]) AS code',
    [[...MINOR_DIGITS.keys()]],
  );
  expect(rows.length).toBeGreaterThan(150);
  expect(rows.filter(({ code, digits }) => minorDigits(code) !== digits)).toEqual([]);
});

/** Replaces a piece of a view's or function's definition. */
async function edited(definition: string, from: string, to: string): Promise<string> {
  const [row] = (await owner.query<{ sql: string }>(`SELECT ${definition} AS sql`)).rows;
  expect(row?.sql).toContain(from);
  return (row?.sql ?? '').replace(from, to);
}

test.each<[what: string, change: () => Promise<string> | string]>([
  ['a view that forgets reversed payments', () => OVERSTATED()],
  [
    'a trigger function that lets payments be overdrawn',
    () => edited(`pg_get_functiondef('refuse_overdrawn_payment'::regproc)`, 'unapplied < 0', 'unapplied < -1000000'),
  ],
  ['a missing trigger', () => 'DROP TRIGGER append_only ON ledger_rows'],
  ['a disabled trigger', () => 'ALTER TABLE ledger_rows DISABLE TRIGGER append_only'],
  [
    'a trigger on fewer events',
    () => `CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE ON voids
             FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
           ALTER TABLE voids ENABLE ALWAYS TRIGGER append_only`,
  ],
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
  ['a function open to everybody', () => 'GRANT EXECUTE ON FUNCTION request_link_checks TO PUBLIC'],
  [
    'a guard that calls a function of the same name in another schema',
    () => `CREATE SCHEMA aside;
           CREATE FUNCTION aside.refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
           DROP TRIGGER append_only ON documents;
           CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON documents
             FOR EACH STATEMENT EXECUTE FUNCTION aside.refuse_change();
           ALTER TABLE documents ENABLE ALWAYS TRIGGER append_only`,
  ],
  ['another domain', () => 'ALTER DOMAIN billing_month DROP CONSTRAINT billing_month_form'],
])('the comparison sees %s', async (_, change) => {
  await owner.query('BEGIN');
  try {
    await owner.query(await change());
    expect((await compareSchema(asOwner)).differences).not.toEqual([]);
  } finally {
    await owner.query('ROLLBACK');
  }
});

/** Does in a transaction what is undone. */
async function undone(work: () => Promise<void>): Promise<void> {
  await owner.query('BEGIN');
  await work().finally(() => owner.query('ROLLBACK'));
}

const OVERSTATED = async () =>
  `CREATE OR REPLACE VIEW payment_balances AS
   ${await edited(`pg_get_viewdef('payment_balances')`, '((amount - applied) - reversed)', '(amount - applied)')}`;

test('the comparison names a function of ours that stands in another schema too', () =>
  undone(async () => {
    await owner.query(
      `CREATE SCHEMA aside;
       CREATE FUNCTION aside.refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`,
    );
    const { differences } = await compareSchema(asOwner);
    expect(differences.map(({ object }) => object)).toEqual(['shadow aside.refuse_change()']);
  }));

test('the comparison does not depend on how the server writes a definition', () =>
  undone(async () => {
    await owner.query('SET LOCAL quote_all_identifiers TO on');
    expect(await compareSchema(asOwner)).toMatchObject({ differences: [], notCompared: 0 });
  }));

describe('in a database that was moved to another server', () => {
  const MOVED = `
    INSERT INTO schema_records (schema_record_id, program, server_version, objects)
    SELECT schema_record_id + 1, program, server_version - 10000, objects FROM schema_records`;

  test('expressions are not compared, and facts are', () =>
    undone(async () => {
      await owner.query(MOVED);
      const { differences, notCompared } = await compareSchema(asOwner);
      expect(differences).toEqual([]);
      expect(notCompared).toBeGreaterThan(300);
      await owner.query('DROP TRIGGER append_only ON ledger_rows');
      await owner.query('ALTER FUNCTION refuse_change() SECURITY DEFINER');
      expect((await compareSchema(asOwner)).differences.map(({ object }) => object)).toEqual([
        'trigger ledger_rows.append_only',
        'function refuse_change()',
      ]);
    }));

  test('a new record does not make right what was changed by hand', () =>
    undone(async () => {
      const migrated = await readMigrated(asOwner);
      await owner.query(MOVED);
      await owner.query(await OVERSTATED());
      await recordSchema(asOwner, migrated);
      const { differences, notCompared } = await compareSchema(asOwner);
      expect(differences.map(({ object }) => object)).toEqual(['view payment_balances']);
      expect(notCompared).toBe(0);
    }));
});

describe('the record of the schema', () => {
  test('is kept by a guard, from the owner too', () =>
    undone(async () => {
      await expect(owner.query(`UPDATE schema_records SET objects = '{}'`)).rejects.toThrow('append-only');
    }));

  test('is compared with the release where a trigger and its record were both removed', () =>
    undone(async () => {
      await owner.query(`
        INSERT INTO schema_records (schema_record_id, program, server_version, objects)
        SELECT schema_record_id + 1, program, server_version, objects - 'trigger ledger_rows.append_only'
        FROM schema_records;
        DROP TRIGGER append_only ON ledger_rows`);
      expect((await compareSchema(asOwner)).differences).toEqual([
        { object: 'record of the schema', detail: "does not match this version's migrations: migrate the database" },
      ]);
    }));

  test('is named by an event where a view and its record were both changed', () =>
    undone(async () => {
      const migrated = await readMigrated(asOwner);
      const { sha256 } = await recordSchema(asOwner, migrated);
      await owner.query(
        `INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
         VALUES (now(), 'database.migrate', '0.1.0', json_build_object('schema_record', $1::text), 'ops', 'h', 'command')`,
        [sha256],
      );
      expect((await changed()).differences).toEqual([]);
      await owner.query(await OVERSTATED());
      // As if the changed view were what the migrations make.
      await recordSchema(asOwner, await readMigrated(asOwner));
      expect((await compareSchema(asOwner)).differences).toEqual([]);
      expect((await changed()).differences).toEqual([
        {
          subject: 'record of the schema',
          detail: 'no event of migrate or restore names it: changed by hand',
        },
      ]);
    }));
});

describe('a close and a verify', () => {
  const recorded = async (books: World, month: string) =>
    (
      await books.sql<{ schema: string }>(
        `SELECT details->>'schema' AS schema FROM audit_events WHERE action = 'month.close' AND subject = $1`,
        [month],
      )
    )[0]?.schema;
  const named = async (books: World) =>
    (await books.verify()).checks.flatMap(({ differences }) => differences.map(({ subject }) => subject));

  test('compare the schema again, unless their caller hands a comparison over', async () => {
    const books = await openWorld();
    try {
      const ofTemplate = books.schema;
      books.schema = undefined;
      await books.partners([partner()]);
      await books.rows([quote()]);
      await books.close('2026-07');
      const release = /^-- Facts: SHA-256 (\w+)/.exec(readFileSync(SCHEMA_FILE, 'utf8'))?.[1];
      expect(await recorded(books, '2026-07')).toBe(release);
      expect(ofTemplate?.sha256).toBe(release);

      await books.sql('DROP INDEX job_runs_latest');
      books.at('2026-09-01T10:00:00Z');
      await books.close('2026-08');
      expect(await recorded(books, '2026-08')).toMatch(/^[0-9a-f]{64}$/);
      expect(await recorded(books, '2026-08')).not.toBe(release);
      expect(await named(books)).toEqual(['index job_runs_latest']);

      books.schema = ofTemplate;
      books.at('2026-10-01T10:00:00Z');
      await books.close('2026-09');
      expect(await recorded(books, '2026-09')).toBe(release);
      expect(await named(books)).toEqual([]);
    } finally {
      await books.end();
    }
  });
});

test('the role of the app may insert into the ledger, closed months and documents, but not update or delete', async () => {
  const { rows } = await owner.query<{ privileges: string[] }>(`
    SELECT ARRAY(SELECT privilege FROM unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE}'::text[]) AS privilege
                 WHERE has_table_privilege('reckoner_app', name, privilege)) AS privileges
    FROM unnest('{ledger_rows,closed_months,documents,document_lines,credit_applications,document_pdfs}'::text[]) AS name`);
  expect(rows).toEqual(Array(6).fill({ privileges: ['SELECT', 'INSERT'] }));
});
