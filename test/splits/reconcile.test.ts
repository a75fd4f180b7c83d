/** Reconciles what was received with what was expected: one quote for each thing that can happen to a share. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { type ImportReport, importBalanceTransactions, importSettlement } from '../../src/splits/import.ts';
import { matchBalanceTransaction, unmatchBalanceTransaction } from '../../src/splits/match.ts';
import { type Reconciliation, reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { recordReversals, reverseManually } from '../../src/splits/reverse.ts';
import { ageOf } from '../../src/splits/verdicts.ts';
import { refusalOf } from '../close/refusal.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { disputed, misrouted, ndjson, payout, reversedTransfers, share, type Told } from './balance-transactions.ts';

let world: World;

const PLATFORM = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
const AT = '2026-07-15T12:00:01Z';

beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-03T10:00:00Z');
  await world.partners([
    partner({ partner_id: 'p-1', ...PLATFORM, connected_account_id: 'acct_1', connected_account_type: 'standard' }),
    partner({
      partner_id: 'p-csv',
      ...{ ...PLATFORM, split: 'sequential', merchant_of_record: 'third_party' },
      ...{
        connected_account_id: 'acct_csv',
        connected_account_type: 'custom',
        balance_transactions_from: 'settlement_file',
      },
    }),
    partner({ partner_id: 'p-inv' }),
  ]);
});
afterAll(() => world.end());

const take = (balance_transactions: readonly Told[], account = 'acct_1'): Promise<ImportReport> =>
  world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'balance_transactions', text: ndjson(balance_transactions) }, account),
  );
const settle = (text: string, partnerId: string): Promise<ImportReport> =>
  world.database.transaction((tx) => importSettlement(tx, world, { name: 'settlement.csv', text }, partnerId));
const reconcile = (month = '2026-07'): Promise<Reconciliation> =>
  world.database.reading((tx) =>
    reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, month as Month),
  );
/** Sells one quote of 10.00 = 3.00 + 7.00 and gives its id. */
async function sold(overrides: Record<string, unknown> = {}): Promise<Record<string, unknown> & { quote_id: string }> {
  const row = quote(overrides);
  expect((await world.rows([row])).accepted).toBe(1);
  return row as Record<string, unknown> & { quote_id: string };
}
const named = ({ quote_id }: { quote_id: string }) => ({ quote_id });
async function exceptionOf({ quote_id }: { quote_id: string }) {
  const { exceptions } = await reconcile();
  const found = exceptions.filter((each) => each.quote_id === quote_id);
  expect(found.length).toBeLessThanOrEqual(1);
  const [one] = found;
  return one && { status: one.status, open: one.open };
}

describe('a share', () => {
  test('received whole is matched', async () => {
    const q = await sold();
    expect(await take([share(700, AT, named(q))])).toEqual({ read: 1, recorded: 1, duplicates: 0, matched: 1 });
    expect(await exceptionOf(q)).toBeUndefined();
  });

  test('that was imported twice counts once', async () => {
    const q = await sold();
    const balance_transaction = share(700, AT, named(q));
    await take([balance_transaction]);
    expect(await take([balance_transaction])).toEqual({ read: 1, recorded: 0, duplicates: 1, matched: 0 });
    expect(await exceptionOf(q)).toBeUndefined();
  });

  test('received before its quote was imported is matched once the quote is there', async () => {
    await take([share(700, AT, { quote_id: 'q-early' })]);
    const q = await sold({ quote_id: 'q-early' });
    expect(await take([])).toMatchObject({ matched: 1 });
    expect(await exceptionOf(q)).toBeUndefined();
  });

  test('that names only its enrollment is matched by it', async () => {
    const q = await sold({ enrollment_id: 'e-alone' });
    expect(await take([share(700, AT, { enrollment_id: 'e-alone' })])).toMatchObject({ matched: 1 });
    expect(await exceptionOf(q)).toBeUndefined();
  });

  test('less than expected is short, more is over, none is missing', async () => {
    const [less, more, none] = [await sold(), await sold(), await sold()];
    await take([share(699, AT, named(less)), share(700, AT, named(more)), share(700, AT, named(more))]);
    expect(await exceptionOf(less)).toEqual({ status: 'short', open: '0.01' });
    expect(await exceptionOf(more)).toEqual({ status: 'over', open: '-7.00' });
    expect(await exceptionOf(none)).toEqual({ status: 'missing', open: '7.00' });
  });

  test('of a quote with a requote is expected for both', async () => {
    const q = await sold();
    await world.rows([requote(q, { requote_id: `rq-${q.quote_id}` })]);
    await take([share(700, AT, named(q))]);
    expect(await exceptionOf(q)).toEqual({ status: 'short', open: '3.50' });
    await take([share(350, AT, { ...named(q), requote_id: `rq-${q.quote_id}` })]);
    expect(await exceptionOf(q)).toBeUndefined();
  });

  test('received after more than seven days is late, and nothing is open', async () => {
    const q = await sold();
    await take([share(700, '2026-07-22T12:00:01Z', named(q))]);
    expect(await exceptionOf(q)).toEqual({ status: 'late', open: '0.00' });
  });

  test('that may still be on its way is awaited', async () => {
    const q = await sold({ accepted_at: '2026-07-30T12:00:00Z' });
    expect(await exceptionOf(q)).toBeUndefined();
    const { partners } = await reconcile();
    expect(partners.find((each) => each.partner_id === 'p-1')?.awaited).toBe(1);
    await take([share(700, '2026-07-31T12:00:00Z', named(q))]);
  });

  test('charged as 7.3.3 documents is booked at the amount received, and the rest is open', async () => {
    const q = await sold();
    await take([misrouted(1000, 700, AT, named(q))]);
    expect(await exceptionOf(q)).toEqual({ status: 'misrouted', open: '4.00' });
  });
});

describe('a reversed transfer', () => {
  test('of the whole share becomes a reversal of the whole quote, with the balance transaction as its evidence', async () => {
    const q = await sold();
    const came = share(700, AT, named(q));
    await take([came, reversedTransfers(came, 700, '2026-07-20T12:00:00Z')]);
    expect(await exceptionOf(q)).toEqual({ status: 'reversed', open: '7.00' });
    const { recorded } = await world.database.transaction((tx) => recordReversals(tx, world, '2026-07' as Month));
    expect(recorded).toMatchObject([
      { quote_id: q.quote_id, spotPrice: '-10.00', partnerCut: '-3.00', invoiceAmount: '-7.00' },
    ]);
    expect(await exceptionOf(q)).toEqual({ status: 'reversed', open: '0.00' });
  });

  test('of a part needs the price from finance', async () => {
    const q = await sold();
    const came = share(700, AT, named(q));
    const back = reversedTransfers(came, 233, '2026-07-20T12:00:00Z');
    await take([came, back]);
    const { recorded, manual_review } = await world.database.transaction((tx) =>
      recordReversals(tx, world, '2026-07' as Month),
    );
    expect([recorded, manual_review]).toMatchObject([[], [{ balance_transaction: back.id, amount: '2.33' }]]);
    const reverse = (spotPrice: string) =>
      world.database.transaction((tx) => reverseManually(tx, world, { balance_transaction: back.id, spotPrice }));
    expect(await refusalOf(reverse('2.32'))).toMatchObject({ code: 'argument_invalid' });
    expect(await refusalOf(reverse('5.34'))).toMatchObject({ code: 'argument_invalid' });
    expect((await reverse('3.33')).recorded).toMatchObject([{ partnerCut: '-1.00', invoiceAmount: '-2.33' }]);
    expect(await exceptionOf(q)).toEqual({ status: 'reversed', open: '0.00' });
    expect(await refusalOf(reverse('3.33'))).toMatchObject({ code: 'balance_transaction_not_reversible' });
  });

  test('of a part, with its price in the settlement file, needs no manual review', async () => {
    const q = await sold();
    const came = share(700, AT, named(q));
    const back = reversedTransfers(came, 350, '2026-07-20T12:00:00Z');
    await take([came, back]);
    await settle(
      `quote_id,transfer,payment,amount,refunded,reversal_id\n${q.quote_id},,${back.source.id},-3.50,5.00,rv-${q.quote_id}\n`,
      'p-1',
    );
    const { recorded } = await world.database.transaction((tx) => recordReversals(tx, world, '2026-07' as Month));
    expect(recorded).toMatchObject([{ reversal_id: `rv-${q.quote_id}`, spotPrice: '-5.00', partnerCut: '-1.50' }]);
  });

  test("is not reversed again after the partner's own reversal row", async () => {
    const q = await sold();
    const came = share(700, AT, named(q));
    await take([came, reversedTransfers(came, 700, '2026-07-20T12:00:00Z')]);
    await world.rows([reversal(q)]);
    const { recorded, manual_review } = await world.database.transaction((tx) =>
      recordReversals(tx, world, '2026-07' as Month),
    );
    expect([recorded, manual_review]).toEqual([[], []]);
    expect(await exceptionOf(q)).toEqual({ status: 'reversed', open: '0.00' });
  });

  test("is disputed if the partner's settlement file says so", async () => {
    const q = await sold();
    const came = share(700, AT, named(q));
    const back = reversedTransfers(came, 700, '2026-07-20T12:00:00Z');
    await take([came, back]);
    await settle(`quote_id,transfer,payment,amount,kind\n${q.quote_id},,${back.source.id},-7.00,dispute\n`, 'p-1');
    expect(await exceptionOf(q)).toEqual({ status: 'disputed', open: '7.00' });
  });

  test('by a lost dispute of a charge on our own account stays misrouted', async () => {
    const q = await sold();
    const came = misrouted(1000, 700, AT, named(q));
    await take([came, disputed(came, 1000, '2026-07-20T12:00:00Z')]);
    expect(await exceptionOf(q)).toEqual({ status: 'misrouted', open: '14.00' });
  });

  test('that is missing, although the ledger has the reversal, leaves its share held for the partner', async () => {
    const q = await sold();
    const came = share(700, AT, named(q));
    await take([came]);
    await world.rows([reversal(q)]);
    expect(await exceptionOf(q)).toEqual({ status: 'held', open: '-7.00' });
    await take([reversedTransfers(came, 700, '2026-07-20T12:00:00Z')]);
    expect(await exceptionOf(q)).toEqual({ status: 'reversed', open: '0.00' });
  });

  test('that is missing is held only as far as the ledger has the reversal', async () => {
    const q = await sold();
    await take([share(700, AT, named(q)), share(100, AT, named(q))]);
    await world.rows([reversal(q)]);
    expect(await exceptionOf(q)).toEqual({ status: 'over', open: '-8.00' });
  });
});

describe('a balance transaction without a quote', () => {
  test('is unknown, with candidates for manual review, and never matched by its amount', async () => {
    const q = await sold({ spotPrice: '91.23', partnerCut: '1.23', invoiceAmount: '90.00' });
    const balance_transaction = share(9000, AT);
    expect(await take([balance_transaction])).toMatchObject({ matched: 0 });
    const unknown = (await reconcile()).exceptions.find((each) =>
      each.balance_transactions.includes(balance_transaction.id),
    );
    expect(unknown).toMatchObject({ status: 'unknown', routed: '90.00', account: 'acct_1', partner_id: 'p-1' });
    expect(unknown?.candidates).toEqual([{ partner_id: 'p-1', quote_id: q.quote_id }]);

    const say = { balance_transaction: balance_transaction.id, quoteId: q.quote_id, reason: 'the partner wrote so' };
    expect(await world.database.transaction((tx) => matchBalanceTransaction(tx, world, say))).toMatchObject({
      unexplained: '0.00',
    });
    expect(await exceptionOf(q)).toBeUndefined();
    expect(await refusalOf(world.database.transaction((tx) => matchBalanceTransaction(tx, world, say)))).toMatchObject({
      code: 'balance_transaction_matched',
    });
    await world.database.transaction((tx) =>
      unmatchBalanceTransaction(tx, world, { ...say, reason: 'it was another' }),
    );
    expect(await exceptionOf(q)).toEqual({ status: 'missing', open: '90.00' });
    await world.database.transaction((tx) => matchBalanceTransaction(tx, world, say));
  });

  test('is matched by the settlement file, also to several quotes, if the lines add up to it', async () => {
    const [one, other] = [await sold(), await sold()];
    const balance_transaction = share(1400, AT);
    await take([balance_transaction]);
    const header = 'quote_id,transfer,payment,amount\n';
    const line = (id: string, amount: string) => `${id},,${balance_transaction.source.id},${amount}\n`;
    expect(await settle(header + line(one.quote_id, '7.00'), 'p-1')).toMatchObject({ matched: 0 });
    expect(await settle(header + line(one.quote_id, '7.00') + line(other.quote_id, '7.00'), 'p-1')).toEqual({
      read: 2,
      recorded: 1,
      duplicates: 1,
      matched: 2,
    });
    expect([await exceptionOf(one), await exceptionOf(other)]).toEqual([undefined, undefined]);
  });

  test('that is no share is listed apart and needs no manual review', async () => {
    await take([payout(5000, AT)]);
    expect((await reconcile()).other_balance_transactions).toMatchObject([{ type: 'payout', count: 1, net: '-50.00' }]);
  });

  test('whose content changed is refused', async () => {
    const balance_transaction = share(700, AT);
    await take([balance_transaction]);
    expect(await refusalOf(take([{ ...balance_transaction, amount: 701, net: 701 }]))).toMatchObject({
      code: 'balance_transactions_invalid',
    });
  });
});

test('if the account cannot be read, the lines of the settlement file are its balance transactions', async () => {
  const [whole, part] = [await sold({ partner_id: 'p-csv' }), await sold({ partner_id: 'p-csv' })];
  const text =
    'quote_id,transfer,payment,amount,occurred_at\n' +
    `${whole.quote_id},tr_a,py_a,7.00,2026-07-16T00:00:00Z\n${part.quote_id},tr_b,py_b,6.00,2026-07-16T00:00:00Z\n`;
  expect(await settle(text, 'p-csv')).toEqual({ read: 2, recorded: 2, duplicates: 0, matched: 2 });
  expect(await settle(text, 'p-csv')).toEqual({ read: 2, recorded: 0, duplicates: 2, matched: 0 });
  expect([await exceptionOf(whole), await exceptionOf(part)]).toEqual([undefined, { status: 'short', open: '1.00' }]);
});

test('for each partner, expected = routed + billed + open', async () => {
  const { partners, exceptions } = await reconcile();
  expect(partners.map((each) => each.partner_id)).toEqual(['p-1', 'p-csv']);
  for (const { partner_id, expected, routed, billed, open } of partners) {
    const cents = (text: string) => Math.round(Number(text) * 100);
    expect(cents(expected)).toBe(cents(routed) + cents(billed) + cents(open));
    const listed = exceptions.filter((each) => each.partner_id === partner_id && each.status !== 'unknown');
    expect(cents(open)).toBe(listed.reduce((sum, each) => sum + cents(each.open), 0));
  }
});

test.each([
  [0, '0-30'],
  [30, '0-30'],
  [31, '31-60'],
  [60, '31-60'],
  [61, '61-90'],
  [90, '61-90'],
  [91, 'over 90'],
])('what is open for %s days is listed under %s', (days, age) => expect(ageOf(days)).toBe(age));
