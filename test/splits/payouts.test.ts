/** Payouts of connected accounts: their contents, their bank lines, and what is missing. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import { readPayouts } from '../../src/payments/payouts.sql.ts';
import { settlePayout } from '../../src/payments/settle-payouts.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { accessTo, readAccount } from '../../src/splits/poll.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { startOver } from '../close/start-over.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { readStatus } from '../support/status.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { accountFee, ndjson, payout, payoutFailed, share, type Told } from './balance-transactions.ts';

const SOLD = '2026-07-15T12:00:00Z';
const PAID_OUT = '2026-07-20T01:00:00Z';

let world: World;
let books: Books;
let stripe: StripeStandIn;
beforeAll(async () => {
  stripe = await startStripe();
  world = await openWorld({ stripe: stripe.url });
  world.environment = {
    ...world.environment,
    connectedKeys: new Map([
      ['acct_1', 'sk_test_acct1'],
      ['acct_2', 'sk_test_acct2'],
    ]),
  };
});
afterAll(async () => {
  await world.end();
  await stripe.close();
});

const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
beforeEach(async () => {
  await startOver(world);
  stripe.state.balanceTransactions.clear();
  stripe.state.paidOut.clear();
  stripe.state.connect.owners.clear();
  for (const of of [1, 2]) stripe.state.connect.keys.set(`sk_test_acct${of}`, `acct_${of}`);
  world.at('2026-07-21T10:00:00Z');
  books = booksOf(world);
  await world.partners([
    partner({ ...connected, connected_account_id: 'acct_1' }),
    partner({ partner_id: 'p-2', ...connected, connected_account_id: 'acct_2' }),
  ]);
  await world.rows([
    quote({ quote_id: 'q-1' }),
    quote({ quote_id: 'q-2' }),
    quote({ partner_id: 'p-2', quote_id: 'q-3' }),
  ]);
});

test('what a processor or a partner told is named until a payout brings it to the bank', async () => {
  const told = () => world.database.reading(async (tx) => (await readStatus(tx, world)).told_not_seen);
  const text = ndjson([share(700, SOLD, { quote_id: 'q-1' }), share(300, PAID_OUT, { quote_id: 'q-2' })]);
  await world.database.transaction((tx) => importBalanceTransactions(tx, world, { name: 'moved', text }, 'acct_1'));
  expect(await told()).toEqual([{ account: 'acct_1', currency: 'USD', amount: '10.00', since: '2026-07-15' }]);
  world.at('2026-10-01T10:00:00Z');
  const { attention } = await world.database.reading((tx) => readStatus(tx, world));
  expect(attention.join('\n')).toContain(
    'acct_1: 10.00 USD reported but not received at the bank, the oldest from 2026-07-15.',
  );
  const line = '2026-07-21,7.00,USD,0001,PO-9,STRIPE TRANSFER,STRIPE,';
  await books.bankText('bank.csv', `date,amount,currency,account,bank_reference,text,payer,payer_account\n${line}\n`);
  const [arrived] = await world.database.reading((tx) => readPayouts(tx));
  await world.database.transaction((tx) =>
    settlePayout(tx, books.acting, {
      ...{ payoutId: (arrived as { payout_id: number }).payout_id, account: 'acct_1', paymentIds: [] },
    }),
  );
  expect(await told()).toEqual([{ account: 'acct_1', currency: 'USD', amount: '3.00', since: '2026-07-20' }]);
});

/** Balance transactions of an account, one of which may be the payout of the others. */
function moves(account: string, balance_transactions: readonly Told[], by?: Told): void {
  for (const each of balance_transactions) {
    stripe.state.balanceTransactions.set(each.id, { ...each });
    stripe.state.connect.owners.set(each.id, account);
    if (by !== undefined) stripe.state.paidOut.set(each.id, by.source.id);
  }
}
const read = (account = 'acct_1') => readAccount(world.database, world, accessTo(world.environment, account));
let lines = 0;
async function bank(day: string, amount: string, text = 'STRIPE TRANSFER') {
  lines += 1;
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
  const line = `${day},${amount},USD,0001,B-${lines},${text},STRIPE,`;
  const { new_lines } = await books.bankText(`bank-${lines}.csv`, `${head}\n${line}\n`);
  return new_lines[0];
}
const reconciled = () =>
  world.database.reading((tx) =>
    reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, '2026-07' as Month),
  );
const payouts = async () =>
  (await world.database.reading((tx) => readPayouts(tx))).map((each) => [
    Number(each.gross ?? '0'),
    Number(each.fees ?? '0'),
    each.of_account,
    each.of_payout,
  ]);
const open = async () => (await world.database.reading((tx) => readExceptions(tx))).map(({ kind }) => kind);
const atProcessor = async () =>
  (
    await world.sql(
      `SELECT coalesce(sum(amount), 0)::float AS amount FROM journal_months WHERE control = 'assets:processor'`,
    )
  )[0];
const opened = async (account: string, told: { of?: string } = {}) => {
  const [waiting] = (await world.database.reading((tx) => readPayouts(tx))).filter(({ gross }) => gross === null);
  const request = { payoutId: waiting?.payout_id as number, paymentIds: [], account, payout: told.of };
  await world.database.transaction((tx) => settlePayout(tx, world, request));
};

/** Two shares of 7.00 and a fee of 0.30, paid out as 13.70. */
function paidOut(): Told {
  const out = payout(1370, PAID_OUT);
  const shares = ['q-1', 'q-2'].map((quote_id) => share(700, SOLD, { quote_id }));
  moves('acct_1', [...shares, accountFee(30, SOLD), out], out);
  return out;
}

describe('a payout of an account', () => {
  test('is followed from each share to the bank, and its fees are the fees among its contents', async () => {
    const out = paidOut();
    expect(await read()).toMatchObject({ read: 4, recorded: 4, matched: 2 });
    expect((await reconciled()).payouts).toMatchObject([
      {
        account: 'acct_1',
        payout: out.source.id,
        amount: '13.70',
        balance_transactions: 3,
        arrived_on: null,
        status: 'on_its_way',
      },
    ]);
    expect(await bank('2026-07-21', '13.70')).toMatchObject({ outcome: 'payout', needs_review: false });
    expect(await payouts()).toEqual([[14, 0.3, 'acct_1', out.source.id]]);
    const found = await reconciled();
    expect(found.payouts).toMatchObject([{ status: 'arrived', arrived_on: '2026-07-21' }]);
    expect(found.partners.map((each) => [each.partner_id, each.routed, each.in_bank])).toEqual([
      ['p-1', '14.00', '14.00'],
      ['p-2', '0.00', '0.00'],
    ]);
    // The balance with the processor is zero, to the cent.
    expect([await atProcessor(), await open()]).toEqual([{ amount: 0 }, []]);
    await books.verified();
  });

  test('is found if the bank reports it first', async () => {
    const out = paidOut();
    expect(await bank('2026-07-21', '13.70')).toMatchObject({ outcome: 'payout', needs_review: true });
    expect(await open()).toEqual(['payout']);
    await read();
    expect([await payouts(), await open()]).toEqual([[[14, 0.3, 'acct_1', out.source.id]], []]);
    await books.verified();
  });

  test('is not settled with payments by link of about the same amount', async () => {
    const linked = { method: 'link', amount: '14.00', receivedOn: '2026-07-18', partnerId: 'p-1' } as const;
    await books.record({ ...linked, reference: 'pi_1' });
    const out = paidOut();
    await read();
    await bank('2026-07-21', '13.70');
    expect(await payouts()).toEqual([[14, 0.3, 'acct_1', out.source.id]]);
    await books.verified();
  });

  test('adds the balance transactions that the readings missed', async () => {
    await world.rows([quote({ quote_id: 'q-late' })]);
    await read();
    world.at('2026-07-30T10:00:00Z');
    const out = payout(700, '2026-07-29T01:00:00Z');
    // Created long before the overlap, and listed only now.
    moves('acct_1', [share(700, SOLD, { quote_id: 'q-late' }), out], out);
    world.at('2026-07-30T10:00:01Z');
    await world.sql(
      `INSERT INTO processor_readings (account, read_from, read_to, balance_transactions, new_balance_transactions, recorded_at, event_id)
       SELECT 'acct_1', NULL, '2026-07-29T10:00:00Z', 0, 0, now(), max(event_id) FROM audit_events`,
    );
    expect(await read()).toMatchObject({ recorded: 2, matched: 1 });
    expect((await reconciled()).payouts).toMatchObject([{ balance_transactions: 1 }]);
  });

  test('is requested again while its contents do not add up to it, and reported if they never do', async () => {
    const out = payout(1400, PAID_OUT);
    moves('acct_1', [share(700, SOLD, { quote_id: 'q-1' }), out], out);
    await read();
    expect((await reconciled()).payouts).toMatchObject([{ balance_transactions: null, status: 'on_its_way' }]);
    world.at('2026-07-28T10:00:00Z');
    await read();
    expect(await reconciled()).toMatchObject({ payouts: [{ balance_transactions: null, status: 'contents_unknown' }] });
    moves('acct_1', [share(700, SOLD, { quote_id: 'q-2' })], out);
    await read();
    expect((await reconciled()).payouts).toMatchObject([{ balance_transactions: 2, status: 'on_its_way' }]);
  });
});

describe('a missing payout', () => {
  test('is reported once the bank file covers later days', async () => {
    paidOut();
    await read();
    world.at('2026-07-28T20:00:00Z');
    await bank('2026-07-27', '1.00', 'INTEREST');
    expect((await reconciled()).payouts).toMatchObject([{ status: 'on_its_way' }]);
    await bank('2026-07-28', '1.00', 'INTEREST');
    const found = await reconciled();
    expect(found).toMatchObject({ payouts: [{ status: 'not_arrived' }] });
    // The share of the quote of p-2 is missing, too.
    expect([found.open, found.exceptions.map(({ quote_id }) => quote_id)]).toEqual([2, ['q-3']]);
    const { connected: standing, attention } = await world.database.reading((tx) => readStatus(tx, world));
    expect(standing.payouts).toBe(1);
    expect(attention.join('\n')).toContain('1 payout of connected accounts to review');
  });

  test('that failed is paid with the next one', async () => {
    const first = paidOut();
    const again = payout(1370, '2026-07-24T01:00:00Z');
    moves('acct_1', [payoutFailed(first, '2026-07-22T12:00:00Z'), again], again);
    world.at('2026-07-26T10:00:00Z');
    await read();
    expect(await bank('2026-07-25', '13.70')).toMatchObject({ needs_review: false });
    const found = await reconciled();
    expect(found.payouts.map(({ status, balance_transactions }) => [status, balance_transactions])).toEqual([
      ['failed', 3],
      ['arrived', 1],
    ]);
    expect(found.not_paid_out).toEqual([]);
    await books.verified();
  });

  test('leaves transactions that later payouts skip', async () => {
    world.at('2026-08-20T10:00:00Z');
    paidOut();
    const passedOver = share(700, '2026-07-16T12:00:00Z', { quote_id: 'q-1' });
    const later = payout(700, '2026-08-10T01:00:00Z');
    moves('acct_1', [passedOver]);
    moves('acct_1', [share(700, '2026-08-08T12:00:00Z', { quote_id: 'q-2' }), later], later);
    await read();
    expect((await reconciled()).not_paid_out).toEqual([
      {
        ...{ account: 'acct_1', currency: 'USD', count: 1, net: '7.00', since: expect.stringContaining('2026-07-16') },
        balance_transactions: [passedOver.id],
      },
    ]);
  });
});

describe('finance says', () => {
  test('which of two accounts paid out the same amount', async () => {
    const out = paidOut();
    const twin = payout(1370, PAID_OUT);
    moves('acct_2', [share(1370, SOLD, { quote_id: 'q-3' }), twin], twin);
    await read('acct_1');
    await read('acct_2');
    const line = await bank('2026-07-21', '13.70');
    expect(line).toMatchObject({ needs_review: true });
    expect(line?.why).toMatch(/it may be po_\d+ of acct_1 or po_\d+ of acct_2: .*, by its account/);
    await expect(opened('acct_2', { of: out.source.id })).rejects.toMatchObject({ code: 'payout_not_settled' });
    await opened('acct_2');
    expect(await payouts()).toEqual([[13.7, 0, 'acct_2', twin.source.id]]);
    world.at('2026-07-22T10:00:00Z');
    // Only the other one is left for the next bank line.
    expect(await bank('2026-07-22', '13.70')).toMatchObject({ needs_review: false });
    expect(await open()).toEqual([]);
    await books.verified();
  });

  test('which account a payout is from, if its payouts are not reported', async () => {
    await bank('2026-07-21', '13.70');
    await expect(opened('acct_none')).rejects.toMatchObject({
      code: 'payout_not_settled',
      facts: { reason: 'no partner has ever had the account acct_none' },
    });
    await opened('acct_1');
    expect(await payouts()).toEqual([[13.7, 0, 'acct_1', null]]);
    await books.verified();
  });
});

test('a manual payout, whose contents the processor never lists, is found in the bank', async () => {
  const out = payout(700, PAID_OUT, { automatic: false });
  const text = ndjson([share(700, SOLD, { quote_id: 'q-1' }), out]);
  world.at('2026-07-22T10:00:00Z');
  await world.database.transaction((tx) => importBalanceTransactions(tx, world, { name: 'moved', text }, 'acct_1'));
  expect(await bank('2026-07-22', '7.00')).toMatchObject({ needs_review: false });
  expect((await reconciled()).payouts).toMatchObject([{ balance_transactions: null, status: 'arrived' }]);
  await books.verified();
});
