/**
 * A share that our account settled in another currency than it was sent in: matched by what was sent, and in the journal in
 * both currencies. After each step every check passes.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Amount } from '../../src/money.ts';
import type { Month } from '../../src/month.ts';
import { readBalances } from '../../src/reports/balances.sql.ts';
import { billMissingShares } from '../../src/splits/bill.ts';
import { importBalanceTransactions, importSettlement } from '../../src/splits/import.ts';
import { matchBalanceTransaction, unmatchBalanceTransaction } from '../../src/splits/match.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { recordReversals } from '../../src/splits/reverse.ts';
import { refusalOf } from '../close/refusal.ts';
import { booksOf } from '../payments/books.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { converted, ndjson, payout, reversedTransfers, share, type Told } from './balance-transactions.ts';
import { payOut } from './processor-world.ts';

const july = '2026-07' as Month;
const AT = '2026-07-15T12:00:05Z';
const IDS = ['whole', 'back', 'half-1', 'half-2', 'hand', 'stated', 'late'];

let world: World;

const take = (...balance_transactions: readonly Told[]) =>
  world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved', text: ndjson(balance_transactions) }, 'acct_1'),
  );
const reconcile = () =>
  world.database.reading((tx) => reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, july));
const standing = async (quoteId: string): Promise<string> => {
  const found = (await reconcile()).exceptions.find((each) => each.quote_id === quoteId);
  return found === undefined ? 'as expected' : `${found.status} ${found.currency} ${found.open}`;
};
const unknown = async () =>
  (await reconcile()).exceptions.filter(
    (each) => each.partner_id !== null && each.status === 'unknown' && each.quote_id === null,
  );
const balance = async (control: string): Promise<string> =>
  (await world.database.reading((tx) => readBalances(tx, '2027-01-01')))
    .filter((each) => each.control === control)
    .map(({ amount, currency }) => `${currency} ${Amount.of(amount, currency)}`)
    .join(', ');
const inEuros = (quote_id: string) => share(700, AT, { quote_id }, 'eur');

beforeAll(async () => {
  world = await openWorld();
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([partner({ ...connected, currency: 'EUR', connected_account_id: 'acct_1' })]);
  await world.rows(IDS.map((quote_id) => quote({ quote_id, currency: 'EUR' })));
  world.at('2026-08-03T10:00:00Z');
});
afterAll(() => world.end());
afterEach(async () => {
  const { checks } = await world.verify();
  expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
});

test('a converted share is matched by what was sent, and the journal has both currencies', async () => {
  expect(await take(converted(inEuros('whole'), 763, '1.09'))).toMatchObject({ matched: 1 });
  expect(await standing('whole')).toBe('as expected');
  expect(await balance('assets:receivable:processor')).toBe('EUR 42.00');
  expect(await balance('assets:processor')).toBe('USD 7.63');
  expect(await balance('equity:conversion')).toBe('EUR 7.00, USD -7.63');
});

test('its refund at another rate clears the euros, and leaves the difference of the rates in dollars', async () => {
  const came = converted(inEuros('back'), 763, '1.09');
  await take(came);
  await take(converted(reversedTransfers({ ...came, currency: 'eur' }, 700, '2026-07-20T12:00:00Z'), 777, '1.11'));
  expect(await standing('back')).toBe('reversed EUR 7.00');
  await world.database.transaction((tx) => recordReversals(tx, world, july));
  expect(await standing('back')).toBe('reversed EUR 0.00');
  expect(await balance('assets:processor')).toBe('USD 7.49');
  expect(await balance('equity:conversion')).toBe('EUR 7.00, USD -7.49');
});

test('lines of a settlement file share a converted balance transaction among their quotes', async () => {
  const came = converted(share(1400, AT, {}, 'eur'), 1527, '1.0905');
  await take(came);
  const line = (id: string) => `${id},,${came.source.id},7.00\n`;
  const text = `quote_id,transfer,payment,amount\n${line('half-1')}${line('half-2')}`;
  await world.database.transaction((tx) => importSettlement(tx, world, { name: 'settled.csv', text }, 'p-1'));
  expect([await standing('half-1'), await standing('half-2')]).toEqual(['as expected', 'as expected']);
  expect(await balance('assets:processor')).toBe('USD 22.76');
});

test('finance matches a nameless one at what was sent, and undoes that', async () => {
  const came = converted(share(700, AT, {}, 'eur'), 770, '1.1');
  await take(came);
  const [open] = await unknown();
  expect(open).toMatchObject({ currency: 'USD', routed: '7.70', sent: { currency: 'EUR', amount: '7.00' } });
  expect(open?.candidates.map((each) => each.quote_id).sort()).toEqual(['hand', 'late', 'stated']);
  const say = { balance_transaction: came.id, quoteId: 'hand', reason: 'the partner wrote so' };
  const matched = {
    currency: 'EUR',
    amount: '7.00',
    settled_currency: 'USD',
    settled_amount: '7.70',
    unexplained: '0.00',
  };
  const match = (amount?: string) =>
    world.database.transaction((tx) => matchBalanceTransaction(tx, world, { ...say, amount }));
  // What a part of the dollars was in euros, only finance can say.
  expect(await refusalOf(match('3.00'))).toMatchObject({ code: 'argument_invalid' });
  expect(await match()).toMatchObject(matched);
  await world.database.transaction((tx) => unmatchBalanceTransaction(tx, world, say));
  expect(await standing('hand')).toBe('missing EUR 7.00');
  expect(await balance('assets:processor')).toBe('USD 22.76');
  expect(await match()).toMatchObject(matched);
  expect(await standing('hand')).toBe('as expected');
});

test('dollars that were sent for a quote in euros count as what finance states, and their refund in proportion', async () => {
  const came = share(760, AT, { quote_id: 'stated' });
  await take(came);
  const say = { balance_transaction: came.id, quoteId: 'stated', reason: 'the platform sent dollars' };
  const match = (countsAs?: string) =>
    world.database.transaction((tx) => matchBalanceTransaction(tx, world, { ...say, countsAs }));
  expect(await refusalOf(match())).toMatchObject({ code: 'argument_invalid' });
  expect(await refusalOf(match('-7.00'))).toMatchObject({ code: 'argument_invalid' });
  expect(await match('7.00')).toMatchObject({ currency: 'EUR', amount: '7.00', settled_amount: '7.60' });
  expect(await standing('stated')).toBe('as expected');
  await take(reversedTransfers(came, 380, '2026-07-20T12:00:00Z'));
  expect(await standing('stated')).toBe('reversed EUR 3.50');
});

test('a converted share that arrives after it was billed pays the invoice in euros', async () => {
  await world.close();
  world.at('2026-08-10T10:00:00Z');
  expect(await world.database.transaction((tx) => billMissingShares(tx, world, july))).toHaveLength(1);
  expect(await balance('assets:receivable:billed')).toBe('EUR 7.00');
  world.at('2026-08-13T10:00:00Z');
  await take(converted(share(700, '2026-08-12T12:00:00Z', { quote_id: 'late' }, 'eur'), 756, '1.08'));
  expect(await balance('assets:receivable:billed')).toBe('');
  expect(await standing('late')).toBe('late EUR 0.00');
});

test('a payout in dollars brings converted shares to the bank', async () => {
  const before = await balance('assets:processor');
  const came = await world.sql<{ id: string; net: string }>(
    `SELECT id, net::text FROM balance_transactions WHERE source_currency = 'EUR' AND net = 7.63 ORDER BY 1 LIMIT 1`,
  );
  await payOut(world, 'acct_1', payout(763, '2026-08-12T12:00:00Z'), [came[0]?.id as string]);
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
  await booksOf(world).bankText('paid-out.csv', `${head}\n2026-08-13,7.63,USD,0001,B-1,STRIPE TRANSFER,STRIPE,\n`);
  const cents = (text: string) => Math.round(Number(text.replace('USD ', '')) * 100);
  expect(cents(before) - cents(await balance('assets:processor'))).toBe(763);
  expect((await reconcile()).partners).toMatchObject([{ currency: 'EUR', in_bank: '7.00' }]);
});
