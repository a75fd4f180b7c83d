/**
 * The owner of the database can switch its guards off and rewrite it. Each way of doing so, done here as the owner and
 * undone again, is named by a check.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import type { Transaction } from '../../src/database/transaction.ts';
import { deriveLog } from '../../src/log/derive.ts';
import { COMPUTED, LOG_FORMS, NOT_WRITTEN, numberOf } from '../../src/log/forms.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { linesTo } from '../support/log-lines.ts';
import type { World } from '../support/world.ts';
import { openBooks } from './books.ts';
import { failing } from './failing.ts';
import { type Owner, openOwner } from './owner.ts';

/** The tables that hold no facts, each with the reason. */
const OTHER_TABLES: Readonly<Record<string, string>> = {
  personal_texts: 'the texts of which the log has commitments; `verify` compares them, and an erasure removes them',
  presentation: 'the event that settled it states it',
  schema_records: 'what `migrate` made; the audit event of each record names its hash',
  installation: 'the origin of each checkpoint names it',
  servers: 'where the ledger has been; the log is the same on every server',
  archived_sales: 'the months of rows; `verify` compares them',
  archived_groups: 'counts and sums of rows; the rules compare them with facts, and `verify` with the files',
  rows_elsewhere: 'it never has a row',
  archived_months: 'where rows are: the facts of the close say which, and a read compares them',
  archived_files: 'files of rows, compared with the facts of the close before and with their hashes after',
  ledger_gate: 'has no rows: it is only locked',
  partners: 'updated in place; documents and the audit event of each change are in the log',
  partner_arrangements: 'updated in place; each row is in the log with its arrangement',
  policies: 'updated in place; each document line is in the log with its policy name, each change with its audit event',
  payment_links: 'secret tokens that open a payment page, never exported',
  payment_link_changes: 'secret tokens, never exported; each change has an audit event',
  book_open_documents: 'derived from in the log facts; `verify` derives it again',
  book_unapplied_cash: 'derived from in the log facts; `verify` derives it again',
  unallocated_balance_transactions: 'derived from in the log facts; `verify` derives it again',
  account_months: 'derived from in the log facts; `verify` derives it again',
  logos: 'issuer versions have their hashes',
  emails: 'a changing state; each attempt to send one is in the log',
  processor_events:
    'raw data of the processor, which includes personal data; outcomes are in the log with its hash, erasures as facts',
  payment_link_intents: 'requests to a processor',
  payment_link_attempts: 'requests to a processor',
  payment_link_objects: 'state at a processor',
  link_checks: 'work that waits; each delivery finds it again',
  payment_link_closings: 'state at a processor',
  payment_link_orders: 'state at a processor',
  payment_link_outcomes: 'state at a processor',
  payment_link_waits: 'a changing state',
  checkouts: 'requests to a processor; each has an audit event with its invoices and amounts',
  checkout_invoices: 'requests to a processor',
  checkout_sessions: 'state at a processor',
  checkout_orders: 'state at a processor',
  checkout_endings: 'state at a processor',
  signing_keys: 'short-lived keys for tokens',
  client_uses: 'a changing state',
  request_counts: 'counters of a minute or a quarter of an hour',
  quotes: 'offers; an accepted one is a ledger row',
  requotes: 'offers; an accepted one is a ledger row',
  idempotency_keys: 'responses kept for retries',
  late_requests: 'calls that wait; their outcome is in the log, as that of any call',
  partner_events: 'an index of rows and facts, which are in the log; verify derives it again',
  published_marks: 'a changing state',
  webhooks: 'a changing state; each change has an audit event',
  security_events: 'refused callers with their addresses, which may have to be erased',
  passkey_uses: 'counters of passkeys',
  sign_in_links: 'hashes of secrets that end; each link has an audit event',
  sign_in_challenges: 'random values of sign-ins in progress',
  sessions: 'hashes of secrets that end; each sign-in has an audit event',
  partner_sign_in_links: 'hashes of secrets that end after minutes',
  partner_sessions: 'hashes of secrets that end; each sign-in has an audit event',
  job_runs: 'a log of runs; what they did is in the audit events',
  job_attention: 'a changing state',
  audit_tasks: 'a changing state; the start of each has an audit event',
  log_checkpoints: 'they speak about the log',
  log_signatures: 'they are made after the checkpoint that they sign',
  log_stamps: 'they are made after the checkpoint that they stamp',
  partner_edges: 'working data; verify derives it again',
  running_lines: 'working data; verify derives it again',
  doubled_rows: 'working data; a close empties it',
};

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

/** Does the work over a database damaged by these statements, with every trigger off, and undoes the damage. */
const damaged = <Result>(statements: readonly string[], work: (tx: Transaction) => Promise<Result>): Promise<Result> =>
  owner.undone(async (tx) => {
    await tx.knex.raw(GUARDS_OFF);
    for (const statement of statements) {
      const { rowCount } = (await tx.knex.raw(statement)) as { rowCount: number | null };
      if (/^(UPDATE|DELETE|INSERT)/.test(statement)) expect([statement, rowCount]).not.toEqual([statement, 0]);
    }
    return work(tx);
  });

const differences = async (tx: Transaction) => (await deriveLog(tx, 'all')).differences;

async function named(tx: Transaction): Promise<string[]> {
  await tx.knex.raw(GUARDS_ON);
  return failing(await verify(tx, undefined, { schema: world.schema }));
}

test('undamaged, the log is that of the tables', async () => {
  expect(await damaged([], differences)).toEqual([]);
  expect(await damaged([], named)).toEqual([]);
}, 120_000);

/** Another value of a column's type. Constraints are dropped first: their owner could, too. */
const OTHER_VALUE: Readonly<Record<string, (column: string) => string>> = {
  text: (column) => `coalesce(${column}, '') || 'x'`,
  billing_month: () => `'2020-01'`,
  bigint: (column) => `coalesce(${column}, 0) + 1000000`,
  integer: (column) => `coalesce(${column}, 0) + 1000`,
  numeric: (column) => `coalesce(${column}, 0) + 0.01`,
  boolean: (column) => `NOT coalesce(${column}, false)`,
  date: (column) => `coalesce(${column}, '2020-01-01') + 1`,
  'timestamp with time zone': (column) => `coalesce(${column}, now()) + interval '1 microsecond'`,
  jsonb: () => `'{"other": true}'`,
  'text[]': (column) => `${column} || '{other}'::text[]`,
  bytea: (column) => `${column} || '\\x00'::bytea`,
};

async function columnsOf(table: string): Promise<{ name: string; type: string; generated: boolean }[]> {
  return world.sql(
    `SELECT attname AS name, format_type(atttypid, NULL) AS type, attgenerated <> '' AS generated FROM pg_attribute
     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    [table],
  );
}

/** Drops what would refuse the change: constraints, keys, identities. */
const withoutConstraints = (table: string) => `
  DO $$
  DECLARE
    name text;
  BEGIN
    FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = '${table}'::regclass
                AND contype NOT IN ('n', 't') LOOP
      EXECUTE format('ALTER TABLE ${table} DROP CONSTRAINT IF EXISTS %I CASCADE', name);
    END LOOP;
    FOR name IN SELECT format('ALTER COLUMN %I DROP NOT NULL', attname) FROM pg_attribute
                WHERE attrelid = '${table}'::regclass AND attnum > 0 AND attnotnull AND NOT attisdropped AND attidentity = '' LOOP
      EXECUTE 'ALTER TABLE ${table} ' || name;
    END LOOP;
    FOR name IN SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '${table}'::regclass LOOP
      EXECUTE format('DROP INDEX %s', name);
    END LOOP;
    UPDATE pg_attribute SET attidentity = '' WHERE attrelid = '${table}'::regclass AND attidentity <> '';
  END
  $$`;

/** Does the work over one change more, and undoes that change alone. */
async function changed<Result>(
  tx: Transaction,
  change: string,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  await tx.knex.raw('SAVEPOINT before');
  const { rowCount } = (await tx.knex.raw(change)) as { rowCount: number | null };
  expect([change, rowCount]).toEqual([change, 1]);
  const result = await work(tx);
  await tx.knex.raw('ROLLBACK TO SAVEPOINT before');
  return result;
}

/** Tables that these books do not fill get one row of their own. */
const SOME_VALUE: Readonly<Record<string, string>> = {
  text: `'a'`,
  billing_month: `'2026-01'`,
  bigint: '1',
  integer: '1',
  numeric: '1',
  boolean: 'true',
  date: `'2026-01-01'`,
  'timestamp with time zone': `'2026-01-01T00:00:00Z'`,
  jsonb: `'{}'`,
  'text[]': `'{a}'`,
  bytea: `'a'`,
};

/** The lines of one kind. */
async function linesOf(tx: Transaction, kind: string): Promise<string> {
  const lines = await linesTo(tx, 150_000);
  return lines.filter((line) => line.startsWith(`${kind}\t`)).join('\n');
}

describe('any field of any kind of fact', () => {
  test.each(LOG_FORMS.map((form) => [form.kind, form] as const))(
    '%s',
    async (kind, form) => {
      const number = numberOf(kind);
      const all = await columnsOf(kind);
      const names = new Set([number, ...form.columns.map(({ name }) => name)]);
      const columns = all.filter(({ name, generated }) => names.has(name) && !generated);
      const [{ filled } = { filled: 0 }] = await world.sql<{ filled: number }>(
        `SELECT count(*)::int AS filled FROM ${kind} WHERE ${number} <= (SELECT max(last_no) FROM log_checkpoints)`,
      );
      const written = columns.filter(({ name }) => name !== number);
      const row = `INSERT INTO ${kind} (${written.map(({ name }) => `"${name}"`).join(', ')})
                 VALUES (${written.map(({ type }) => SOME_VALUE[type]).join(', ')})`;
      const first = `(SELECT min(${number}) FROM ${kind})`;
      await damaged([withoutConstraints(kind), ...(filled > 0 ? [] : [row])], async (tx) => {
        const honest = await linesOf(tx, kind);
        expect(honest).not.toBe('');
        for (const { name, type } of columns) {
          const value = OTHER_VALUE[type]?.(`"${name}"`);
          expect([name, value]).not.toEqual([name, undefined]);
          const change = `UPDATE ${kind} SET "${name}" = ${value} WHERE ${number} = ${first}`;
          expect([name, await changed(tx, change, (each) => linesOf(each, kind))]).not.toEqual([name, honest]);
          if (filled > 0) expect([name, await changed(tx, change, differences)]).not.toEqual([name, []]);
        }
        if (filled > 0) {
          expect(await changed(tx, `DELETE FROM ${kind} WHERE ${number} = ${first}`, differences)).not.toEqual([]);
        }
      });
      expect(columns.length).toBeGreaterThan(2);
    },
    120_000,
  );
});

test('NULL and a text that looks like it are not the same', async () => {
  const lines = await damaged([withoutConstraints('ledger_rows')], async (tx) => {
    const found: string[] = [];
    for (const value of ['NULL', `'\\N'`, `''`]) {
      await tx.knex.raw(`UPDATE ledger_rows SET enrollment_id = ${value} WHERE entry_id = ${ROW}`);
      found.push(await linesOf(tx, 'ledger_rows'));
    }
    return found;
  });
  expect(new Set(lines).size).toBe(3);
});

test('every table holds facts, with all of its columns written, or is listed with the reason', async () => {
  const tables = await world.sql<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
       AND relname NOT LIKE 'migrations%' ORDER BY relname`,
  );
  const forms = new Map(LOG_FORMS.map((form) => [form.kind, form]));
  for (const { name } of tables) {
    expect([name, forms.has(name) !== (OTHER_TABLES[name] !== undefined)]).toEqual([name, true]);
    const form = forms.get(name);
    if (form === undefined) continue;
    const written = new Set([numberOf(name), ...form.columns.map((column) => column.name)]);
    const forgotten = (await columnsOf(name)).filter(
      (column) => !written.has(column.name) && NOT_WRITTEN[`${name}.${column.name}`] === undefined,
    );
    expect([name, forgotten]).toEqual([name, []]);
    const [{ trigger } = { trigger: false }] = await world.sql<{ trigger: boolean }>(
      `SELECT count(*) = 1 AS trigger FROM pg_trigger
       WHERE tgrelid = $1::regclass AND tgname IN ('facts_in_order', 'ledger_rows_in_order')`,
      [name],
    );
    expect([name, trigger]).toEqual([name, true]);
  }
  const columns = new Map<string, unknown>();
  for (const { kind } of LOG_FORMS) for (const { name } of await columnsOf(kind)) columns.set(`${kind}.${name}`, name);
  for (const { kind, columns: all } of LOG_FORMS) {
    for (const { name } of all) {
      const place = `${kind}.${name}`;
      expect([place, columns.has(place) !== (COMPUTED[place] !== undefined)]).toEqual([place, true]);
    }
  }
  expect(Object.keys(NOT_WRITTEN).filter((place) => !columns.has(place))).toEqual([]);
  expect(Object.keys(OTHER_TABLES).filter((name) => !tables.some((each) => each.name === name))).toEqual([]);
});

const ROW = `(SELECT min(entry_id) FROM ledger_rows)`;
const NEW_ROW = `INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price,
    partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
  SELECT partner_id, posted_month, kind, 'q-new', policy_id, currency, accepted_at, 0, 0, 0, time_zone, month,
    arrangement, recorded_at, event_id FROM ledger_rows WHERE entry_id = ${ROW}`;

const LOG = 'log_derived_again';

/** One line for each way to rewrite the past, with all checks and rules that must name it. */
const TAMPERINGS: readonly [what: string, checks: readonly string[], ...statements: string[]][] = [
  ['a row of nothing added', ['import_totals', 'documents_of_rows'], NEW_ROW],
  [
    'a row of nothing added with a number of the past',
    [LOG],
    NEW_ROW.replace('(partner_id', '(entry_id, partner_id').replace(
      'SELECT partner_id',
      'OVERRIDING SYSTEM VALUE SELECT 1, partner_id',
    ),
  ],
  [
    'a balance of closed books',
    [LOG, 'books_of_journal'],
    `UPDATE book_balances SET amount = amount + 1 WHERE month = '2026-07'`,
  ],
  [
    'a correction moved into closed books',
    [LOG, 'books_of_journal'],
    `UPDATE write_offs SET written_off_on = '2026-07-31', reopened_on = NULL`,
  ],
  [
    'an exported journal moved to another account',
    [LOG, 'gl_export_files_as_written'],
    `UPDATE gl_export_lines SET to_account = 'Elsewhere' WHERE line = 1`,
  ],
  ['a row removed', [LOG, 'documents_of_rows'], `DELETE FROM ledger_rows WHERE entry_id = ${ROW}`],
  [
    'two rows swapped',
    [LOG],
    withoutConstraints('ledger_rows'),
    `UPDATE ledger_rows SET entry_id = CASE entry_id WHEN ${ROW} THEN ${ROW} + 1 ELSE ${ROW} END
     WHERE entry_id IN (${ROW}, ${ROW} + 1)`,
  ],
  ['a number given twice', [LOG], `UPDATE audit_events SET log_no = ${ROW} WHERE action = 'invoice.hold'`],
  ['a number that was never drawn', [LOG], `UPDATE audit_events SET log_no = 900000 WHERE action = 'invoice.hold'`],
  [
    'the clock of a row',
    [LOG],
    `UPDATE ledger_rows SET recorded_at = recorded_at - interval '1 day' WHERE entry_id = ${ROW}`,
  ],
  [
    'the effective time of a row, within its month',
    [LOG],
    `UPDATE ledger_rows SET accepted_at = accepted_at + interval '1 hour' WHERE entry_id = ${ROW}`,
  ],
  [
    "a document's total, with its lines",
    [LOG, 'documents_of_rows'],
    `UPDATE documents SET spot_price = spot_price + 1, partner_cut = partner_cut + 1 WHERE number = 'INV-2026-000002'`,
    `UPDATE document_lines SET spot_price = spot_price + 1, partner_cut = partner_cut + 1
     WHERE document_id = (SELECT document_id FROM documents WHERE number = 'INV-2026-000002') AND position = 1`,
  ],
  [
    "a document's number",
    [LOG, 'numbers_without_gaps'],
    `UPDATE documents SET sequence = 77 WHERE number = 'INV-2026-000002'`,
  ],
  [
    "a partner's name on a document",
    [LOG, 'document_pdfs_as_issued'],
    `UPDATE documents SET partner_name = 'Another' WHERE number = 'INV-2026-000002'`,
  ],
  ['a reason of a void', [LOG], `UPDATE voids SET reason = 'their wish'`],
  ['who did it', [LOG], `UPDATE audit_events SET claimed_by = keep_text('Grace') WHERE action = 'invoice.void'`],
  ['an event that never was', [LOG], `DELETE FROM audit_events WHERE action = 'invoice.hold'`],
  ['counts of a close', [LOG], `UPDATE closed_months SET partners_without_activity = 7 WHERE month = '2026-08'`],
  [
    'the day of a close',
    [LOG],
    `UPDATE closed_months SET closed_at = closed_at - interval '1 day' WHERE month = '2026-08'`,
  ],
  [
    'what a close states of a partner',
    [LOG],
    `UPDATE month_partners SET entries = entries + 1 WHERE partner_id = 'p-2'`,
  ],
  [
    "the root of a partner's rows",
    [LOG],
    `UPDATE month_partners SET root = encode(sha256('x'), 'base64') WHERE partner_id = 'p-2' AND month = '2026-08'`,
  ],
  [
    'the first instant of a month',
    [LOG, 'months_in_time_zones'],
    `UPDATE month_zones SET begins_at = begins_at + interval '1 hour'`,
  ],
  ['the root of a checkpoint', [LOG], `UPDATE log_checkpoints SET root = sha256('x') WHERE closes = 'month 2026-08'`],
  [
    'the size of a checkpoint',
    [LOG],
    withoutConstraints('log_checkpoints'),
    `UPDATE log_checkpoints SET size = size + 1 WHERE closes = 'month 2026-08'`,
  ],
  [
    'the root of the facts of a checkpoint',
    [LOG],
    `UPDATE log_checkpoints SET facts_root = sha256('x') WHERE closes = 'month 2026-08'`,
  ],
  ['a checkpoint taken away', [LOG], `DELETE FROM log_checkpoints WHERE closes = 'month 2026-08'`],
  [
    'the tree of a partner that the next close continues',
    [LOG],
    `INSERT INTO partner_edges VALUES ('2026-10', 'p-1', 'USD', 'invoicing', 1, sha256('x'))`,
  ],
  [
    'a line that the next close continues',
    ['running_lines'],
    `INSERT INTO running_lines VALUES ('2026-10', 'p-1', 'USD', 'invoicing', 'parking', 'quote_accepted', '2026-10', '',
       '', '', true, 1, 10, 3, 7, '2026-10-02T12:00:00Z')`,
  ],
];

describe('verify names', () => {
  test.each(TAMPERINGS)(
    '%s',
    async (_, checks, ...statements) => {
      const found = await damaged(statements, named);
      expect(found).toEqual(expect.arrayContaining([...checks]));
    },
    120_000,
  );
});
