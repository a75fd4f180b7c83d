/** What the database itself refuses, whatever the program: each rule by the name of its constraint. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' }), quote()]);
  await world.close('2026-06');
});
afterAll(() => world.end());

/** The constraint that a statement of the tables' owner violates. */
async function violated(statement: string): Promise<string | undefined> {
  try {
    await world.sql(statement);
  } catch (error) {
    if (error instanceof pg.DatabaseError) return error.constraint;
    throw error;
  }
  throw new Error('the database allowed it');
}

/** Issues a copy of the June invoice with other values in some columns. */
function copy(changes: Record<string, string>): string {
  const values = { sequence: '2', month: `'2026-07'`, ...changes };
  const columns = [
    'series sequence document purpose partner_id month currency arrangement issued_on due_on terms_days enrollments entries',
    'spot_price partner_cut invoice_amount credit_applied partner_name contact_name address_line1 address_line2 address_city',
    'address_region address_postal_code address_country tax_id purchase_order legal_note issuer_version_id sandbox issued_at',
  ].flatMap((names) => names.split(' '));
  const selected = columns.map((column) => (values as Record<string, string>)[column] ?? column);
  return `INSERT INTO documents (${columns.join(', ')}) SELECT ${selected.join(', ')} FROM documents WHERE sequence = 1`;
}

const refusedDocuments: [rule: string, changes: Record<string, string>, constraint: string][] = [
  [
    'a second live document of a partner, month, currency and arrangement',
    { month: `'2026-06'` },
    'document_one_live_per_month',
  ],
  ['a number that is taken', { sequence: '1' }, 'document_number_once'],
  ['a series of another year than the date', { series: `'INV-2027'` }, 'document_series_of_kind_and_year'],
  ['a series of another kind of document', { series: `'CN-2026'` }, 'document_series_of_kind_and_year'],
  ['a total that is not the share and the rest', { partner_cut: '1' }, 'document_balance'],
  [
    'a negative invoice',
    { spot_price: '-10', partner_cut: '-3', invoice_amount: '-7' },
    'document_amount_not_negative',
  ],
  ['more credit than the invoice asks for', { credit_applied: '7.01' }, 'document_credit_within_amount'],
  ['an invoice without a due date', { due_on: 'NULL', terms_days: 'NULL' }, 'document_due_on_invoices'],
  ['a due date beside the terms', { due_on: 'due_on + 1' }, 'document_due_after_terms'],
  [
    'an invoice for a connected account’s month',
    { arrangement: `'connected_account'` },
    'document_arrangement_gives_kind',
  ],
];

for (const [rule, changes, constraint] of refusedDocuments) {
  test(`${rule} is refused: ${constraint}`, async () => {
    expect(await violated(copy(changes))).toBe(constraint);
  });
}

for (const table of [
  'documents',
  'document_lines',
  'credit_applications',
  'closed_months',
  'ledger_rows',
  'issuer_versions',
]) {
  test(`rows of ${table} are never updated, deleted or truncated`, async () => {
    const column = {
      closed_months: 'month',
      issuer_versions: 'content',
      credit_applications: 'amount',
    }[table];
    // Credit is applied to nothing here: a table without rows is guarded, too.
    expect(await violated(`UPDATE ${table} SET ${column ?? 'invoice_amount'} = ${column ?? 'invoice_amount'}`)).toBe(
      `${table}_append_only`,
    );
    expect(await violated(`DELETE FROM ${table}`)).toBe(`${table}_append_only`);
    expect(await violated(`TRUNCATE ${table} CASCADE`)).toMatch(/_append_only$/);
  });
}

const closedMonth = (month: string, previous: string, more = '0, 0') => `
  INSERT INTO closed_months (month, previous, issued_on, closed_at, partners_with_documents, partners_without_activity,
                             entries, late_entries)
  VALUES ('${month}', ${previous}, '2026-09-01', now(), 0, 0, ${more})`;

const refusedMonths: [rule: string, statement: string, constraint: string][] = [
  ['a gap between closed months', closedMonth('2026-08', `'2026-06'`), 'closed_months_follow'],
  ['a second beginning', closedMonth('2026-05', 'NULL'), 'closed_months_chain'],
  ['closing a month twice', closedMonth('2026-06', `'2026-05'`), 'closed_months_pkey'],
  ['a month after one that is not closed', closedMonth('2026-09', `'2026-08'`), 'closed_months_previous_fkey'],
  ['a thirteenth month', closedMonth('2026-13', `'2026-12'`), 'billing_month_form'],
  ['more late rows than rows', closedMonth('2026-07', `'2026-06'`, '1, 2'), 'closed_months_late_are_entries'],
];

for (const [rule, statement, constraint] of refusedMonths) {
  test(`${rule} is refused: ${constraint}`, async () => {
    expect(await violated(statement)).toBe(constraint);
  });
}

/** A row as a program without the ledger's lock would write it. */
const row = (month: string, posted: string) => `
  INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price, partner_cut,
                       invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
  VALUES ('p-1', '${posted}', 'quote_accepted', 'forgotten', 'parking', 'USD', '2026-06-10', 1, 0, 1, 'UTC', '${month}',
          'invoicing', now(), (SELECT max(event_id) FROM audit_events))`;

test('a row for a closed month is refused, even without the ledger’s lock: ledger_rows_month_open', async () => {
  expect(await violated(row('2026-06', '2026-06'))).toBe('ledger_rows_month_open');
  expect(await violated(row('2026-05', '2026-05'))).toBe('ledger_rows_month_open');
});

test('a row that posts before its own month is refused: ledger_rows_posted_in_own_month_or_later', async () => {
  expect(await violated(row('2026-08', '2026-07'))).toBe('ledger_rows_posted_in_own_month_or_later');
});

test('the same line twice, or one without rows, is refused: line_once, line_has_rows', async () => {
  const line = (position: number, count: number) => `
    INSERT INTO document_lines SELECT document_id, ${position}, policy_id, policy_name, kind, month, ${count}, spot_price,
           partner_cut, invoice_amount FROM document_lines LIMIT 1`;
  expect(await violated(line(9, 1))).toBe('line_once');
  expect(await violated(line(1, 0))).toBe('line_has_rows');
});

test('after all these attempts, July closes as usual', async () => {
  expect(await world.close()).toEqual(['2026-07']);
  expect((await world.documents()).map(({ number }) => number)).toEqual(['INV-2026-000001', 'INV-2026-000002']);
});
