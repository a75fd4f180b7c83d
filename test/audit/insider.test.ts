/**
 * What an insider with a superuser's connection would try and no checkpoint alone could name: numbers of facts that lie under
 * none, guards that are switched off or replaced, events that vanish, e-mails that were never sent. Each is done here and
 * undone again; the check named beside it must find it.
 */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Verification, verify } from '../../src/audit/verify.ts';
import { type Transaction, valueTypes } from '../../src/database/transaction.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { World } from '../support/world.ts';
import { openBooks } from './books.ts';
import { failing, foundBy } from './failing.ts';
import { type Owner, openOwner } from './owner.ts';

let world: World;
let owner: Owner;
beforeAll(async () => {
  world = await openBooks();
  owner = openOwner(world);
});
afterAll(async () => {
  await owner.close();
  await world.end();
});

/** Runs the statements in one transaction, gives the differences of `verify` by check and rule, and undoes everything. */
const tampered = (...statements: readonly string[]): Promise<Record<string, string[]>> =>
  owner.undone(async (tx) => {
    for (const statement of statements) await tx.knex.raw(statement.replaceAll('?', '\\?'));
    return differencesOf(await verify(tx, undefined));
  });

const differencesOf = (found: Verification): Record<string, string[]> =>
  Object.fromEntries(
    failing(found).map((name) => [name, foundBy(found, name).map(({ subject, detail }) => `${subject} ${detail}`)]),
  );

/** Statements between guards that are switched off and on again, so that only what they leave can be found. */
const unguarded = (...statements: string[]): string[] => [GUARDS_OFF, ...statements, GUARDS_ON];

test('untouched, verify finds nothing', async () => {
  expect(await tampered()).toEqual({});
});

describe('the number of a fact', () => {
  test('is the next one, whatever number a statement gives it', async () => {
    const numbers = await owner.undone(async (tx: Transaction) => {
      await tx.knex.raw('SET LOCAL ROLE reckoner_app');
      const { rows } = (await tx.knex.raw(
        `INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via, log_no)
         SELECT now(), 'invoice.void', 'x', '{}', 'x', 'x', 'command', number FROM unnest(ARRAY[-6, 0, 9e12::bigint]) AS number
         RETURNING log_no`,
      )) as { rows: { log_no: number }[] };
      return rows.map(({ log_no }) => log_no);
    });
    const last = Math.max(...numbers);
    expect(numbers).toEqual([last - 2, last - 1, last]);
    expect(last).toBeGreaterThan(3);
    expect(last).toBeLessThan(10_000);
  });

  test('is not taken from a temporary sequence of the same name', async () => {
    const [number] = await owner.undone(async (tx: Transaction) => {
      await tx.knex.raw('SET LOCAL ROLE reckoner_app; CREATE TEMPORARY SEQUENCE log_numbers INCREMENT -1');
      const { rows } = (await tx.knex.raw(
        `INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
         VALUES (now(), 'invoice.void', 'x', '{}', 'x', 'x', 'command') RETURNING log_no`,
      )) as { rows: { log_no: number }[] };
      return rows.map(({ log_no }) => log_no);
    });
    expect(number).toBeGreaterThan(1);
  });

  test('cannot be set back by the app', async () => {
    const client = new pg.Client({ connectionString: world.databaseUrl, types: valueTypes });
    await client.connect();
    await client.query('SET ROLE reckoner_app');
    await expect(client.query(`SELECT setval('log_numbers', 100)`)).rejects.toThrow(/permission denied/);
    await client.end();
  });

  const WRITE_OFF = 'SELECT max(log_no) FROM write_offs';
  const numbered = (number: string) => [
    'ALTER TABLE write_offs DROP CONSTRAINT write_offs_fact_positive',
    ...unguarded(`UPDATE write_offs SET log_no = ${number} WHERE log_no = (${WRITE_OFF})`),
  ];
  test.each<[what: string, number: string]>([
    ['below zero', '-5'],
    ['zero', '0'],
    ['far above the last one given', '9000000000000'],
    ['that of another fact', '(SELECT max(log_no) FROM voids)'],
  ])('%s is named', async (_, number) => {
    expect(await tampered(...numbered(number))).toHaveProperty('log_derived_again');
  });

  test('a sequence that was set back is named', async () => {
    expect(await tampered('ALTER SEQUENCE log_numbers RESTART WITH 5')).toHaveProperty('log_derived_again');
  });
});

describe('a ledger row', () => {
  const ROW = `WHERE entry_id = (SELECT max(entry_id) FROM ledger_rows)`;
  const numbered = (entryId: number) => `
    INSERT INTO ledger_rows (entry_id, partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price,
      partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
    OVERRIDING SYSTEM VALUE
    SELECT ${entryId}, partner_id, posted_month, kind, 'q-new', policy_id, currency, accepted_at, spot_price, partner_cut,
      invoice_amount, time_zone, month, arrangement, recorded_at, event_id
    FROM ledger_rows ${ROW}`;
  test.each<[what: string, check: string, statement: string]>([
    ['with a number below one', 'log_derived_again', numbered(-1)],
    ['with a number that was never given', 'log_derived_again', numbered(9000)],
    [
      'pushed to a month that nobody will close',
      'row_posted',
      `UPDATE ledger_rows SET posted_month = '2099-12' ${ROW}`,
    ],
    [
      'of a far future',
      'row_not_early',
      `UPDATE ledger_rows SET posted_month = '2099-12', month = '2099-12', accepted_at = '2099-12-15' ${ROW}`,
    ],
  ])('%s is named', async (_, check, statement) => {
    const dropped = 'ALTER TABLE ledger_rows DROP CONSTRAINT ledger_rows_id_positive';
    expect(await tampered(dropped, ...unguarded(statement))).toHaveProperty(check);
  });
});

describe('an e-mail', () => {
  const SENT = `(SELECT min(email_id) FROM emails WHERE status = 'sent')`;
  const NEW_TRY = `INSERT INTO email_attempts (email_id, attempt, started_at, ended_at, outcome, reply, kind, message_id, recipients,
      message_sha256, pdf_sha256)
    SELECT email_id, 2, started_at, ended_at, 'sent', reply, kind, message_id, recipients, message_sha256, pdf_sha256
    FROM email_attempts WHERE email_id = ${SENT}`;
  test.each<[what: string, check: string, statement: string]>([
    [
      'to others',
      'emails_consistent',
      `UPDATE emails SET recipients = '{friend@evil.example}' WHERE email_id = ${SENT}`,
    ],
    [
      'to others, in the log too',
      'log_derived_again',
      `UPDATE email_attempts SET recipients = ARRAY[keep_text('friend@evil.example')]`,
    ],
    [
      'at another time',
      'emails_consistent',
      `UPDATE emails SET sent_at = sent_at - interval '1 day' WHERE email_id = ${SENT}`,
    ],
    [
      'of another message',
      'emails_consistent',
      `UPDATE emails SET message_sha256 = repeat('0', 64) WHERE email_id = ${SENT}`,
    ],
    ['with another PDF', 'log_derived_again', `UPDATE email_attempts SET pdf_sha256 = repeat('0', 64)`],
    ['sent once more than it was', 'emails_consistent', NEW_TRY],
    [
      'with a checkpoint that is said to be sent',
      'emails_consistent',
      `INSERT INTO emails (kind, checkpoint_size, message_id, status, queued_at, sent_at, attempts)
       SELECT 'checkpoint', min(size), '<x>', 'sent', now(), now(), 1 FROM log_checkpoints`,
    ],
  ])('%s is named', async (_, check, statement) => {
    expect(await tampered(...unguarded(statement))).toHaveProperty(check);
  });
});

describe('the schema:', () => {
  const EMPTY = (name: string) =>
    `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`;
  test.each<[what: string, object: string, ...statements: string[]]>([
    ['a guard that lets changes pass', 'function refuse_change()', EMPTY('refuse_change')],
    [
      'a guard that never fires',
      'trigger voids.append_only',
      'DROP TRIGGER append_only ON voids',
      `CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON voids FOR EACH STATEMENT WHEN (false)
       EXECUTE FUNCTION refuse_change()`,
      'ALTER TABLE voids ENABLE ALWAYS TRIGGER append_only',
    ],
    [
      'a trigger that a setting can switch off',
      'trigger voids.append_only',
      'ALTER TABLE voids ENABLE TRIGGER append_only',
    ],
    [
      'facts that do not wait for a close',
      'trigger payments.facts_in_order',
      'DROP TRIGGER facts_in_order ON payments',
    ],
    ['facts that are not numbered', 'trigger payments.fact_number', 'DROP TRIGGER fact_number ON payments'],
    [
      'numbers from a sequence in the dark',
      'column payments.log_no',
      'CREATE SEQUENCE dark INCREMENT -1',
      `ALTER TABLE payments ALTER log_no SET DEFAULT nextval('dark')`,
    ],
    ['a sequence of its own', 'sequence dark', 'CREATE SEQUENCE dark INCREMENT -1'],
    ['a sequence that counts in tens', 'sequence log_numbers', 'ALTER SEQUENCE log_numbers INCREMENT 10'],
    ['a missing index', 'index ledger_rows_known_once', 'DROP INDEX ledger_rows_known_once'],
    [
      'a missing rule',
      'constraint ledger_rows.ledger_rows_balance',
      'ALTER TABLE ledger_rows DROP CONSTRAINT ledger_rows_balance',
    ],
    [
      'a foreign key that is not enforced',
      'constraint write_offs.write_offs_event_id_fkey',
      'ALTER TABLE write_offs DISABLE TRIGGER ALL',
    ],
    [
      'a trigger of its own',
      'trigger ledger_rows.more',
      `CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN NEW.spot_price := NEW.spot_price + 1; RETURN NEW; END $$`,
      'CREATE TRIGGER more BEFORE INSERT ON ledger_rows FOR EACH ROW EXECUTE FUNCTION more()',
    ],
    [
      'a rule that rewrites statements',
      'rule write_offs.hidden',
      'CREATE RULE hidden AS ON INSERT TO write_offs DO INSTEAD NOTHING',
    ],
    [
      'rows that are hidden',
      'policy ledger_rows.some_rows',
      'CREATE POLICY some_rows ON ledger_rows USING (entry_id > 1)',
      'ALTER TABLE ledger_rows ENABLE ROW LEVEL SECURITY',
    ],
    ['row level security', 'table ledger_rows', 'ALTER TABLE ledger_rows ENABLE ROW LEVEL SECURITY'],
    [
      'a privilege on a column',
      'privileges on ledger_rows.invoice_amount',
      'GRANT UPDATE (invoice_amount) ON ledger_rows TO reckoner_app',
    ],
    ['a privilege to create', 'privileges on schema', 'GRANT CREATE ON SCHEMA public TO reckoner_app'],
    [
      'a view that says something else',
      'view journal_entries',
      `DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW journal_entries AS ' ||
         replace(pg_get_viewdef('journal_entries'), 'expenses:bad-debts', 'expenses:partner-cut'); END $$`,
    ],
    [
      'a table in front of ours',
      'shadow before_ours.ledger_rows',
      'CREATE SCHEMA before_ours',
      'CREATE VIEW before_ours.ledger_rows AS SELECT * FROM public.ledger_rows',
    ],
    [
      'a setting of the database',
      'setting session_replication_role',
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET session_replication_role = replica', current_database()); END $$`,
    ],
    [
      'a search path of the role',
      'setting search_path',
      'CREATE SCHEMA before_ours',
      `DO $$ BEGIN EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = before_ours, public', current_user,
         current_database()); END $$`,
    ],
    ['an owner of its own', 'table voids', 'ALTER TABLE voids OWNER TO reckoner_app'],
    ['a table that inherits', 'inheritance holds_too', 'CREATE TABLE holds_too () INHERITS (holds)'],
  ])('%s is named by its object', async (_, object, ...statements) => {
    const found = (await tampered(...statements))['schema_as_migrated'] ?? [];
    expect(found.map((line) => line.slice(0, object.length))).toContain(object);
  });

  test('a role for reports that may only read is no difference', async () => {
    const reports = ['CREATE ROLE reckoner_test_reports', 'GRANT SELECT ON ledger_rows TO reckoner_test_reports'];
    expect(await tampered(...reports)).toEqual({});
  });
});

describe('of a database that lacks', () => {
  test.each<[what: string, named: RegExp, statement: string]>([
    ['a table', /relation "voids" does not exist/, 'DROP TABLE voids CASCADE'],
    ['a column', /column .*"?recorded_at"? does not exist/, 'ALTER TABLE write_offs DROP COLUMN recorded_at CASCADE'],
    ['a view', /relation "document_balances" does not exist/, 'DROP VIEW document_balances CASCADE'],
    ['the table of rows', /relation "ledger_rows" does not exist/, 'DROP TABLE ledger_rows CASCADE'],
  ])('%s, verify names it and goes on', async (_, named, statement) => {
    const found = await tampered(statement);
    expect(Object.values(found).flat().join('\n')).toMatch(named);
  });

  test('an invoice in a view, verify names the document', async () => {
    const view = (await world.sql<{ sql: string }>(`SELECT pg_get_viewdef('document_balances') AS sql`))[0]?.sql ?? '';
    const hidden = `CREATE OR REPLACE VIEW document_balances AS SELECT * FROM (${view.replace(/;\s*$/, '')}) AS all_balances
      WHERE document_id <> (SELECT max(document_id) FROM document_pdfs)`;
    expect((await tampered(hidden))['document_pdfs_as_issued']?.join()).toMatch(/has a PDF, but cannot be read/);
  });
});
