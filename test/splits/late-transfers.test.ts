/**
 * A share received after an invoice has billed it is a payment of that invoice, reversed with the transfer. After each step
 * the journal ties to what the reconciliation finds open, and every other check passes.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { voidDocument } from '../../src/documents/void.ts';
import { Amount } from '../../src/money.ts';
import type { Month } from '../../src/month.ts';
import { unapplyPayment } from '../../src/payments/apply.ts';
import { readPayments } from '../../src/payments/payments.sql.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { readBalances } from '../../src/reports/balances.sql.ts';
import { billMissingShares } from '../../src/splits/bill.ts';
import { importBalanceTransactions, importSettlement } from '../../src/splits/import.ts';
import { matchBalanceTransaction, unmatchBalanceTransaction } from '../../src/splits/match.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { recordReversals } from '../../src/splits/reverse.ts';
import { openWorld, partner, quote, requote, type World } from '../support/world.ts';
import { ndjson, reversedTransfers, share, type Told } from './balance-transactions.ts';

const july = '2026-07' as Month;
const LATE = '2026-08-12T12:00:00Z';
const IDS = ['late', 'in-parts', 'raised', 'wired', 'pulled', 'short', 'nameless', 'void', 'lone', 'told', 'grown'];

let world: World;
let raised: Record<string, unknown>;
let grown: Record<string, unknown>;
let invoice: string;

const take = (...balance_transactions: readonly Told[]) =>
  world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved', text: ndjson(balance_transactions) }, 'acct_1'),
  );
/** Of a quote: its status, what is billed, what a share has paid of that, and what is open. */
const standing = async (quoteId: string): Promise<string> => {
  const { exceptions } = await world.database.reading((tx) =>
    reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, july),
  );
  const found = exceptions.find((each) => each.quote_id === quoteId);
  return found === undefined ? 'as expected' : [found.status, found.billed, found.paid, found.open].join(' ');
};
const payments = async () =>
  (await world.database.reading((tx) => readPayments(tx, { partnerId: 'p-1' }))).map(
    ({ amount, status, reference, applications, reversals }) => ({
      ...{ amount, status, reference },
      paid: applications.filter((each) => each.unapplied_on === null).map((each) => `${each.number} ${each.amount}`),
      back: reversals.filter((each) => each.reinstated_on === null).map((each) => `${each.kind} ${each.amount}`),
    }),
  );
const paymentOf = async (balance_transaction: Told) =>
  (await payments()).find(({ reference }) => reference === balance_transaction.id);
const balance = async (control: string): Promise<string> =>
  (await world.database.reading((tx) => readBalances(tx, '2027-01-01')))
    .filter((each) => each.control === control)
    .map(({ amount, currency }) => Amount.of(amount, currency).toString())
    .join() || '0';

beforeAll(async () => {
  world = await openWorld();
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([partner({ ...connected, connected_account_id: 'acct_1' })]);
  const rows = IDS.map((quote_id) => quote({ quote_id }));
  raised = rows[2] as Record<string, unknown>;
  grown = rows.at(-1) as Record<string, unknown>;
  await world.rows([...rows, quote({ quote_id: 'whole' })]);
  await take(
    share(700, '2026-07-15T12:00:05Z', { quote_id: 'whole' }),
    share(500, '2026-07-15T12:00:05Z', { quote_id: 'short' }),
  );
  await world.close();
});
afterAll(() => world.end());
afterEach(async () => {
  const { checks } = await world.verify();
  expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
});

test('a row is receivable from the processor, a share settles it, and an invoice moves the rest to the partner', async () => {
  expect(await balance('assets:receivable:processor')).toBe('72.00');
  expect(await balance('assets:processor')).toBe('12.00');
  world.at('2026-08-10T10:00:00Z');
  [invoice = ''] = await world.database.transaction((tx) => billMissingShares(tx, world, july));
  expect(await balance('assets:receivable:processor')).toBe('0');
  expect(await balance('assets:receivable:billed')).toBe('72.00');
  world.at('2026-08-13T10:00:00Z');
});

test('a share received after its invoice pays the invoice, and the quote has nothing open', async () => {
  const late = share(700, LATE, { quote_id: 'late' });
  await take(late);
  expect(await paymentOf(late)).toEqual({
    ...{ amount: '7.00', status: 'applied', reference: late.id, paid: [`${invoice} 7.00`], back: [] },
  });
  expect(await standing('late')).toBe('late 7.00 7.00 0.00');
  expect(await balance('assets:receivable:billed')).toBe('65.00');
  expect(await balance('assets:processor')).toBe('19.00');
  // Imported again, it is no second payment.
  await take(late);
  expect(await payments()).toHaveLength(1);
});

test('a share in two parts pays in two parts, and anything beyond is over', async () => {
  const [first, second] = [share(300, LATE, { quote_id: 'in-parts' }), share(500, LATE, { quote_id: 'in-parts' })];
  await take(first, second);
  expect(await paymentOf(first)).toMatchObject({ amount: '3.00', status: 'applied' });
  expect(await paymentOf(second)).toMatchObject({ amount: '4.00', status: 'applied' });
  expect(await standing('in-parts')).toBe('over 7.00 7.00 -1.00');
});

test('the share of a requote accepted after the invoice is no payment', async () => {
  await world.rows([requote(raised, { requote_id: 'raise', accepted_at: '2026-08-11T12:00:00Z' })]);
  const [added, whole] = [share(350, LATE, { quote_id: 'raised' }), share(700, LATE, { quote_id: 'raised' })];
  await take(added);
  expect(await paymentOf(added)).toBeUndefined();
  await take(whole);
  expect(await paymentOf(whole)).toMatchObject({ amount: '7.00', paid: [`${invoice} 7.00`] });
  expect(await standing('raised')).toBe('as expected');
});

test('a share of all that was billed pays that, also where less of a requote is still to come', async () => {
  await world.rows([requote(grown, { requote_id: 'growth', accepted_at: '2026-08-11T13:00:00Z' })]);
  const whole = share(700, LATE, { quote_id: 'grown' });
  await take(whole);
  expect(await paymentOf(whole)).toMatchObject({ amount: '7.00', paid: [`${invoice} 7.00`] });
});

test('if part of a quote was billed, a late share pays that part', async () => {
  const rest = share(200, LATE, { quote_id: 'short' });
  await take(rest);
  expect(await paymentOf(rest)).toMatchObject({ amount: '2.00', status: 'applied' });
  expect(await standing('short')).toBe('late 2.00 2.00 0.00');
});

test('a reversed transfer reverses the payment, and the invoice is open again', async () => {
  const came = share(700, LATE, { quote_id: 'pulled' });
  await take(came, reversedTransfers(came, 300, '2026-08-12T13:00:00Z'));
  expect(await paymentOf(came)).toMatchObject({
    ...{ amount: '7.00', status: 'applied', paid: [`${invoice} 4.00`], back: ['refunded 3.00'] },
  });
  expect(await standing('pulled')).toBe('reversed 7.00 4.00 0.00');
});

test('a manual match pays, undoing it reverses the payment, and matching again pays again', async () => {
  const nameless = share(700, LATE);
  await take(nameless);
  const request = { balance_transaction: nameless.id, quoteId: 'nameless', reason: 'the partner says so' };
  const [match, unmatch] = [
    () => world.database.transaction((tx) => matchBalanceTransaction(tx, world, request)),
    () => world.database.transaction((tx) => unmatchBalanceTransaction(tx, world, request)),
  ];
  await match();
  expect(await standing('nameless')).toBe('late 7.00 7.00 0.00');
  await unmatch();
  expect(await paymentOf(nameless)).toMatchObject({ status: 'reversed', paid: [], back: ['mistake 7.00'] });
  expect(await standing('nameless')).toBe('missing 7.00 0.00 0.00');
  await match();
  expect(await standing('nameless')).toBe('late 7.00 7.00 0.00');
  expect((await payments()).filter(({ reference }) => reference === nameless.id)).toHaveLength(2);
});

test('undoing a mistaken match of a reversed transfer reinstates the payment', async () => {
  const came = share(700, LATE, { quote_id: 'lone' });
  const back = reversedTransfers(came, 700, '2026-08-12T13:00:00Z');
  await take(came, back);
  expect(await paymentOf(came)).toMatchObject({ status: 'reversed', back: ['refunded 7.00'] });
  await world.database.transaction((tx) =>
    unmatchBalanceTransaction(tx, world, {
      balance_transaction: back.id,
      quoteId: 'lone',
      reason: 'it was of another quote',
    }),
  );
  expect(await paymentOf(came)).toMatchObject({ status: 'applied', paid: [`${invoice} 7.00`], back: [] });
  await world.database.transaction((tx) =>
    matchBalanceTransaction(tx, world, {
      balance_transaction: back.id,
      quoteId: 'lone',
      reason: 'it was of this one after all',
    }),
  );
  expect(await paymentOf(came)).toMatchObject({ status: 'reversed', back: ['refunded 7.00'] });
});

test('a settlement file has the same effect as the processor', async () => {
  const came = share(700, LATE);
  await take(came);
  const text = `quote_id,transfer,payment,amount\ntold,,${came.source.id},7.00\n`;
  await world.database.transaction((tx) => importSettlement(tx, world, { name: 'settled.csv', text }, 'p-1'));
  expect(await paymentOf(came)).toMatchObject({ status: 'applied', paid: [`${invoice} 7.00`] });
});

test('if the partner has paid the invoice by wire, the share is unapplied cash', async () => {
  await world.database.transaction((tx) =>
    recordPayment(tx, world, {
      ...{ amount: '24.00', currency: 'USD', method: 'wire', receivedOn: '2026-08-12', reference: 'WIRE 24' },
      number: invoice,
    }),
  );
  const came = share(700, LATE, { quote_id: 'wired' });
  await take(came);
  expect(await paymentOf(came)).toMatchObject({ amount: '7.00', status: 'unapplied', paid: [] });
  expect(await standing('wired')).toBe('late 7.00 7.00 0.00');
  expect(await balance('liabilities:unapplied')).toBe('-7.00');
});

test('after a void, what a share has paid is unapplied cash, and the quote is open again', async () => {
  for (const { payment_id } of await world.database.reading((tx) => readPayments(tx, { partnerId: 'p-1' }))) {
    await world.database
      .transaction((tx) => unapplyPayment(tx, world, { paymentId: payment_id }))
      .catch((refused: { code?: string }) => expect(refused.code).toBe('payment_nothing_applied'));
  }
  await world.database.transaction((tx) => voidDocument(tx, world, { number: invoice, reason: 'as agreed' }));
  expect(await standing('late')).toBe('late 0.00 7.00 7.00');
  expect(await standing('void')).toBe('missing 0.00 0.00 7.00');
  const again = await world.database.transaction((tx) => billMissingShares(tx, world, july));
  expect(again).toHaveLength(1);
  expect(await standing('late')).toBe('late 7.00 7.00 0.00');
});

test('a reversed transfer that had paid an invoice becomes a reversal in the ledger like any other', async () => {
  world.at('2026-09-01T10:00:00Z');
  const { recorded, manual_review } = await world.database.transaction((tx) => recordReversals(tx, world, july));
  expect(recorded.map(({ quote_id, invoiceAmount }) => [quote_id, invoiceAmount])).toEqual([['lone', '-7.00']]);
  expect(manual_review.map(({ quote_id }) => quote_id)).toEqual(['pulled']);
  expect(await standing('lone')).toBe('reversed 0.00 0.00 0.00');
});
