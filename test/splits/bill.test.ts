/** Billing unremitted amounts: once, quote by quote, and never a reversed transfer or a share that may still arrive. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readDocumentRows } from '../../src/delivery/documents.sql.ts';
import { voidDocument } from '../../src/documents/void.ts';
import type { Month } from '../../src/month.ts';
import { billMissingShares } from '../../src/splits/bill.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { refusalOf } from '../close/refusal.ts';
import { openWorld, partner, quote, requote, type World } from '../support/world.ts';
import { misrouted, ndjson, reversedTransfers, share } from './balance-transactions.ts';

let world: World;
const july = '2026-07' as Month;
const ACCOUNT = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };

const bill = () => world.database.transaction((tx) => billMissingShares(tx, world, july));
const open = async () => {
  const { exceptions } = await world.database.reading((tx) =>
    reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, july),
  );
  return Object.fromEntries(exceptions.map((each) => [each.quote_id, `${each.status} ${each.billed} ${each.open}`]));
};

beforeAll(async () => {
  world = await openWorld();
  await world.partners([
    partner({ partner_id: 'p-1', ...ACCOUNT, connected_account_id: 'acct_1' }),
    partner({ partner_id: 'p-2', ...ACCOUNT, connected_account_id: 'acct_2' }),
  ]);
  const q = (id: string, more = {}) => quote({ quote_id: id, ...more });
  const raised = q('raised', { accepted_at: '2026-07-02T12:00:00Z' });
  await world.rows([
    q('whole'),
    q('missing'),
    q('parking', { policy_id: 'parking' }),
    q('short'),
    q('misrouted'),
    q('pulled'),
    raised,
    requote(raised, { requote_id: 'raise' }),
    q('fresh', { accepted_at: '2026-07-31T12:00:00Z' }),
    q('other', { partner_id: 'p-2' }),
  ]);
  const at = '2026-07-15T12:00:05Z';
  const pulled = share(700, at, { quote_id: 'pulled' });
  const text = ndjson([
    share(700, at, { quote_id: 'whole' }),
    share(650, at, { quote_id: 'short' }),
    misrouted(1000, 700, at, { quote_id: 'misrouted' }),
    pulled,
    reversedTransfers(pulled, 700, at),
    share(700, '2026-07-02T12:00:05Z', { quote_id: 'raised' }),
  ]);
  await world.database.transaction((tx) => importBalanceTransactions(tx, world, { name: 'moved', text }, 'acct_1'));
});
afterAll(() => world.end());

test('an open month bills nothing yet', async () => {
  expect(await refusalOf(bill())).toMatchObject({ code: 'month_not_closed' });
});

test('each partner gets one invoice for its unremitted amounts, by policy', async () => {
  await world.close();
  expect(await bill()).toEqual(['INV-2026-000001', 'INV-2026-000002']);
  const documents = (await world.documents()).filter((each) => each.document === 'invoice');
  expect(documents).toMatchObject([
    {
      ...{ number: 'INV-2026-000001', purpose: 'missing_shares', partner_id: 'p-1', month: '2026-07', status: 'open' },
      // missing 7.00, parking 7.00, short 0.50, misrouted 4.00, raised 3.50
      ...{ enrollments: 5, partnerCut: '0.00', invoiceAmount: '22.00', balance: '22.00', due_on: '2026-08-31' },
      lines: [
        { policy_id: 'parking', count: 1, invoiceAmount: '7.00' },
        { policy_id: 'ticket-protection', count: 4, invoiceAmount: '15.00' },
      ],
    },
    { number: 'INV-2026-000002', partner_id: 'p-2', invoiceAmount: '7.00' },
  ]);
  expect(await open()).toEqual({
    missing: 'missing 7.00 0.00',
    parking: 'missing 7.00 0.00',
    short: 'short 0.50 0.00',
    misrouted: 'misrouted 4.00 0.00',
    raised: 'short 3.50 0.00',
    pulled: 'reversed 0.00 7.00',
    other: 'missing 7.00 0.00',
  });
});

test('a billed quote is not billed again', async () => {
  expect(await bill()).toEqual([]);
});

test('after a void the quotes are open again and are billed again', async () => {
  await world.database.transaction((tx) =>
    voidDocument(tx, world, { number: 'INV-2026-000002', reason: 'the partner shows a transfer' }),
  );
  expect(await open()).toMatchObject({ other: 'missing 0.00 7.00' });
  expect(await bill()).toEqual(['INV-2026-000003']);
});

test('a share accepted a few days ago is billed when a week has passed', async () => {
  world.at('2026-08-09T10:00:00Z');
  expect(await bill()).toEqual(['INV-2026-000004']);
  expect(await open()).toMatchObject({ fresh: 'missing 7.00 0.00' });
});

test('the invoices are rendered and sent with the rows of their quotes, and every check passes', async () => {
  const deliveries = await world.deliver();
  expect(new Set(deliveries.map((each) => each.status))).toEqual(new Set(['sent']));
  expect(
    await world.sql(`SELECT number FROM documents JOIN emails USING (document_id) WHERE status = 'withdrawn'`),
  ).toEqual([{ number: 'INV-2026-000002' }]);
  const outbox = join(world.home, 'outbox');
  const letter = readdirSync(outbox)
    .map((name) => readFileSync(join(outbox, name), 'utf8'))
    .find((text) => /^Subject:.*INV-2026-000001/m.test(text));
  expect(letter).toMatch(/INV-2026-000001.*\.csv/);
  // What the file adds up to is what the invoice bills: the sales and the partner's share are not in it.
  const [invoice] = await world.sql<{ id: string; amount: string }>(
    `SELECT document_id AS id, invoice_amount AS amount FROM documents WHERE number = 'INV-2026-000001'`,
  );
  const { csv: text } = await world.database.reading(async (tx) => {
    let csv = '';
    for await (const part of readDocumentRows(tx, Number(invoice?.id))) csv += part;
    return { csv };
  });
  const csv = parse(text, { columns: true, bom: true }) as Record<string, string>[];
  expect(Object.keys(csv[0] ?? {})).not.toContain('spotPrice');
  expect(Object.keys(csv[0] ?? {})).not.toContain('partnerCut');
  expect(csv.map((row) => Number(row['invoiceAmount'])).reduce((sum, each) => sum + each, 0)).toBeCloseTo(
    Number(invoice?.amount),
    6,
  );
  const { checks } = await world.verify();
  expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
});
