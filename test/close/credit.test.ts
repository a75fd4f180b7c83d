/** A net-negative month is a credit note, applied to the partner's next invoices in its currency. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  await world.partners([partner()]);
});

type Overrides = Record<string, unknown>;

/** A day of a month of 2026, at noon. */
const day = (month: string) => `${month}-10T12:00:00Z`;

/** A quote over `amount`, all of it ours. */
const sale = (month: string, amount: string, more: Overrides = {}) =>
  quote({ accepted_at: day(month), spotPrice: amount, partnerCut: '0', invoiceAmount: amount, ...more });

/** Takes all of a sale back in a later month. */
const refund = (sold: Record<string, unknown>, month: string) => {
  const amount = `-${String(sold['invoiceAmount'])}`;
  return reversal(sold, { accepted_at: day(month), spotPrice: amount, partnerCut: '0', invoiceAmount: amount });
};

/** The tenth of the month after, when the month is closed. */
async function closeMonth(month: string): Promise<void> {
  const [year, number] = month.split('-').map(Number) as [number, number];
  world.at(new Date(Date.UTC(year, number, 10)).toISOString());
  await world.close(month);
}

const money = async () =>
  Object.fromEntries(
    (await world.documents()).map((document) => [
      document.number,
      [document.month, document.invoiceAmount, document.credit_applied, document.balance, document.status].join(' '),
    ]),
  );

const applications = () =>
  world.sql(
    `SELECT n.number AS note, i.number AS invoice, a.amount::text, a.applied_on::text
     FROM credit_applications a JOIN documents n ON n.document_id = a.credit_note_id
     JOIN documents i ON i.document_id = a.invoice_id ORDER BY a.credit_application_id`,
  );

test('a net-negative month is a credit note: header and lines are the negated sums', async () => {
  const [big, small] = [sale('2026-06', '100'), sale('2026-07', '30')];
  await world.rows([big]);
  await closeMonth('2026-06');
  world.at('2026-08-01T10:00:00Z');
  await world.rows([small, refund(big, '2026-07')]);
  await closeMonth('2026-07');
  expect((await world.documents()).find(({ document }) => document === 'credit_note')).toMatchObject({
    number: 'CN-2026-000001',
    series: 'CN-2026',
    purpose: 'month',
    status: 'open',
    due_on: null,
    enrollments: 1,
    spotPrice: '70.00',
    partnerCut: '0.00',
    invoiceAmount: '70.00',
    credit_applied: '0.00',
    amount_due: '70.00',
    credited: '0.00',
    balance: '70.00',
    credits: null,
    lines: [
      { kind: 'quote_accepted', count: 1, invoiceAmount: '-30.00' },
      { kind: 'reversal', count: 1, invoiceAmount: '100.00' },
    ],
  });
  // The month's report adds up rows, so that what is owed to the partner counts against it.
  expect(await world.months('2026-07')).toMatchObject([
    { invoices: 0, credit_notes: 1, totals: [{ currency: 'USD', spot_price: '-70', invoice_amount: '-70' }] },
  ]);
});

test('a month that totals zero is an invoice of zero, paid at once', async () => {
  const sold = quote();
  await world.rows([sold, reversal(sold)]);
  await world.close();
  expect(await world.documents()).toMatchObject([
    {
      number: 'INV-2026-000001',
      status: 'paid',
      enrollments: 1,
      invoiceAmount: '0.00',
      amount_due: '0.00',
      balance: '0.00',
      due_on: '2026-08-31',
      lines: [{ invoiceAmount: '7.00' }, { invoiceAmount: '-7.00' }],
    },
  ]);
});

test('what decides is the amount owed to us: a month with negative sales and nothing owed is an invoice of zero', async () => {
  const sold = quote({ accepted_at: day('2026-06'), spotPrice: '3', partnerCut: '3', invoiceAmount: '0' });
  await world.rows([sold]);
  await closeMonth('2026-06');
  world.at('2026-08-01T10:00:00Z');
  await world.rows([reversal(sold, { spotPrice: '-3', partnerCut: '-3', invoiceAmount: '0' })]);
  await closeMonth('2026-07');
  expect((await world.documents()).at(-1)).toMatchObject({
    document: 'invoice',
    spotPrice: '-3.00',
    partnerCut: '-3.00',
    invoiceAmount: '0.00',
    status: 'paid',
  });
});

test('credit covers a part of the next invoice and is used up', async () => {
  const big = sale('2026-05', '100');
  await world.rows([big]);
  await closeMonth('2026-05');
  world.at('2026-08-01T10:00:00Z');
  await world.rows([refund(big, '2026-06'), sale('2026-07', '130')]);
  await closeMonth('2026-06');
  expect(await money()).toMatchObject({ 'CN-2026-000001': '2026-06 100.00 0.00 100.00 open' });
  await closeMonth('2026-07');
  expect(await money()).toEqual({
    'CN-2026-000001': '2026-06 100.00 0.00 0.00 paid',
    'INV-2026-000001': '2026-05 100.00 0.00 100.00 open',
    'INV-2026-000002': '2026-07 130.00 100.00 30.00 open',
  });
  expect(await applications()).toEqual([
    { note: 'CN-2026-000001', invoice: 'INV-2026-000002', amount: '100', applied_on: '2026-08-09' },
  ]);
});

test('credit that is larger than the next invoice pays it whole and goes on to the ones after it', async () => {
  const big = sale('2026-03', '100');
  await world.rows([big]);
  await closeMonth('2026-03');
  world.at('2026-08-01T10:00:00Z');
  await world.rows([refund(big, '2026-04'), sale('2026-05', '40'), sale('2026-06', '40'), sale('2026-07', '40')]);
  for (const month of ['2026-04', '2026-05', '2026-06', '2026-07']) await closeMonth(month);
  expect(await money()).toEqual({
    'CN-2026-000001': '2026-04 100.00 0.00 0.00 paid',
    'INV-2026-000001': '2026-03 100.00 0.00 100.00 open',
    'INV-2026-000002': '2026-05 40.00 40.00 0.00 paid',
    'INV-2026-000003': '2026-06 40.00 40.00 0.00 paid',
    'INV-2026-000004': '2026-07 40.00 20.00 20.00 open',
  });
  expect((await applications()).map(({ amount }) => amount)).toEqual(['40', '40', '20']);
});

test('a credit note that is partly used stays open with the rest', async () => {
  const big = sale('2026-05', '100');
  await world.rows([big]);
  await closeMonth('2026-05');
  world.at('2026-08-01T10:00:00Z');
  await world.rows([refund(big, '2026-06'), sale('2026-07', '40')]);
  await closeMonth('2026-06');
  await closeMonth('2026-07');
  expect((await world.documents()).find(({ document }) => document === 'credit_note')).toMatchObject({
    status: 'open',
    amount_due: '100.00',
    credited: '40.00',
    balance: '60.00',
  });
});

test('several credit notes are used oldest first, across one invoice', async () => {
  const sold = ['10', '20', '30'].map((amount) => sale('2026-03', amount));
  await world.rows(sold);
  await closeMonth('2026-03');
  world.at('2026-08-01T10:00:00Z');
  await world.rows([
    ...sold.map((each, index) => refund(each, ['2026-04', '2026-05', '2026-06'][index] ?? '')),
    sale('2026-07', '45'),
  ]);
  for (const month of ['2026-04', '2026-05', '2026-06', '2026-07']) await closeMonth(month);
  expect((await applications()).map(({ note, amount }) => [note, amount])).toEqual([
    ['CN-2026-000001', '10'],
    ['CN-2026-000002', '20'],
    ['CN-2026-000003', '15'],
  ]);
  expect(await money()).toMatchObject({
    'CN-2026-000001': '2026-04 10.00 0.00 0.00 paid',
    'CN-2026-000002': '2026-05 20.00 0.00 0.00 paid',
    'CN-2026-000003': '2026-06 30.00 0.00 15.00 open',
    'INV-2026-000002': '2026-07 45.00 45.00 0.00 paid',
  });
});

test('credit stays in its currency and with its partner', async () => {
  await world.partners([partner({ partner_id: 'p-2' })]);
  const dollars = sale('2026-05', '100');
  await world.rows([dollars]);
  await closeMonth('2026-05');
  world.at('2026-08-01T10:00:00Z');
  await world.rows([
    refund(dollars, '2026-06'),
    sale('2026-07', '50', { currency: 'EUR' }),
    sale('2026-07', '50', { partner_id: 'p-2' }),
  ]);
  await closeMonth('2026-06');
  await closeMonth('2026-07');
  expect(await money()).toMatchObject({
    'CN-2026-000001': '2026-06 100.00 0.00 100.00 open',
    'INV-2026-000002': '2026-07 50.00 0.00 50.00 open',
    'INV-2026-000003': '2026-07 50.00 0.00 50.00 open',
  });
});

test('credit is never applied to a statement, and waits for an invoice', async () => {
  const sold = sale('2026-05', '100');
  await world.rows([sold]);
  await closeMonth('2026-05');
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'third_party', split: 'sequential' };
  await world.partners([partner({ arrangement: 'connected_account', arrangement_from: '2026-06', ...connected })]);
  world.at('2026-08-01T10:00:00Z');
  await world.rows([refund(sold, '2026-06'), sale('2026-07', '50')]);
  await closeMonth('2026-06');
  await closeMonth('2026-07');
  expect(await money()).toMatchObject({
    'CN-2026-000001': '2026-06 100.00 0.00 100.00 open',
    'ST-2026-000001': '2026-07 50.00 0.00 0.00 paid',
  });
  // A late row of the invoiced era gives an invoice, and that uses it.
  await world.rows([sale('2026-05', '30')]);
  await closeMonth('2026-08');
  expect(await money()).toMatchObject({
    'CN-2026-000001': '2026-06 100.00 0.00 70.00 open',
    'INV-2026-000002': '2026-08 30.00 30.00 0.00 paid',
  });
});

test('an invoice of zero takes no credit', async () => {
  const sold = sale('2026-05', '100');
  const undone = sale('2026-07', '20');
  await world.rows([sold]);
  await closeMonth('2026-05');
  world.at('2026-08-01T10:00:00Z');
  await world.rows([refund(sold, '2026-06'), undone, refund(undone, '2026-07')]);
  await closeMonth('2026-06');
  await closeMonth('2026-07');
  expect(await applications()).toEqual([]);
  expect(await money()).toMatchObject({ 'INV-2026-000002': '2026-07 0.00 0.00 0.00 paid' });
});
