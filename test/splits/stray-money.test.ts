/**
 * Money on our accounts that no quote explains: given back, closed or attributed by finance, and never billed again. After
 * each step every check passes.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { isZero } from '../../src/money.ts';
import type { Month } from '../../src/month.ts';
import { countOpenQuotes, readAccountHealth } from '../../src/splits/account-health.ts';
import { billMissingShares } from '../../src/splits/bill.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import {
  closeBalanceTransactions,
  type MatchRequest,
  matchBalanceTransaction,
  unmatchBalanceTransaction,
} from '../../src/splits/match.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { refusalOf } from '../close/refusal.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { converted, ndjson, reversedTransfers, share, type Told } from './balance-transactions.ts';

const july = '2026-07' as Month;
const AT = '2026-07-15T12:00:05Z';
const PLATFORM = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
const reason = 'the partner wrote so';

let world: World;

const take = (account: string, ...balance_transactions: readonly Told[]) =>
  world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved', text: ndjson(balance_transactions) }, account),
  );
const reconcile = (month = july) =>
  world.database.reading((tx) => reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, month));
const exceptionOf = async ({ id }: Told, month = july) =>
  (await reconcile(month)).exceptions.find((each) => each.account !== null && each.balance_transactions.includes(id));
const standing = async (quoteId: string): Promise<string> => {
  const found = (await reconcile()).exceptions.find((each) => each.quote_id === quoteId && each.account === null);
  return found === undefined ? 'as expected' : [found.status, found.open, ...found.other_accounts].join(' ');
};
const health = () => world.database.reading((tx) => readAccountHealth(tx, world.environment.now()));
const match = (of: Told, quoteId: string, also: Partial<MatchRequest> = {}) =>
  world.database.transaction((tx) =>
    matchBalanceTransaction(tx, world, { balance_transaction: of.id, quoteId, reason, ...also }),
  );
const close = (...of: readonly Told[]) =>
  world.database.transaction((tx) =>
    closeBalanceTransactions(tx, world, { balance_transactions: of.map(({ id }) => id), reason }),
  );

beforeAll(async () => {
  world = await openWorld();
  await world.partners([
    partner({ partner_id: 'p-1', ...PLATFORM, connected_account_id: 'acct_old' }),
    partner({ partner_id: 'p-2', ...PLATFORM, connected_account_id: 'acct_two' }),
    partner({ partner_id: 'p-inv' }),
  ]);
  await world.rows([quote({ partner_id: 'p-1', quote_id: 'q-june', accepted_at: '2026-06-15T12:00:00Z' })]);
  await world.partners([
    partner({ partner_id: 'p-1', ...PLATFORM, connected_account_id: 'acct_new', arrangement_from: '2026-07' }),
  ]);
  const ids = ['q-two', 'q-old', 'q-euro', 'q-a', 'q-b', 'q-closed'];
  await world.rows([
    ...ids.map((quote_id) => quote({ partner_id: 'p-1', quote_id })),
    quote({ partner_id: 'p-inv', quote_id: 'q-inv' }),
  ]);
  world.at('2026-08-03T10:00:00Z');
});
afterAll(() => world.end());
afterEach(async () => {
  // What status counts is what the reconciliation of each month lists.
  for (const month of ['2026-06' as Month, july]) {
    const listed = (await reconcile(month)).exceptions.filter((each) => each.account === null && !isZero(each.open));
    const counted = await world.database.reading((tx) => countOpenQuotes(tx, world.environment.now(), [month]));
    expect(counted[month] ?? 0).toBe(listed.length);
  }
  const { checks } = await world.verify();
  expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
});

test('an account whose balance transactions were imported from a file was read that day', async () => {
  const never = await health();
  expect(never.stale).toEqual(['acct_new', 'acct_old']);
  await take('acct_new');
  await take('acct_old');
  expect((await health()).stale).toEqual([]);
  world.at('2026-08-06T10:00:00Z');
  expect((await health()).stale).toEqual(['acct_new', 'acct_old']);
  await take('acct_new');
  await take('acct_old');
});

test('unknown money that was given back whole is returned, and nothing of it is open in either month', async () => {
  const came = share(700, AT);
  await take('acct_new', came);
  expect((await health()).unknown).toBe(1);
  const first = reversedTransfers(came, 300, '2026-07-20T12:00:00Z');
  await take('acct_new', first);
  expect((await health()).unknown).toBe(2);
  const second = reversedTransfers(came, 400, '2026-08-05T12:00:00Z');
  await take('acct_new', second);
  expect((await health()).unknown).toBe(0);
  expect(await exceptionOf(came)).toMatchObject({ status: 'returned', routed: '7.00', open: '0.00' });
  expect(await exceptionOf(second, '2026-08' as Month)).toMatchObject({ status: 'returned', open: '0.00' });
  expect((await reconcile('2026-08' as Month)).open).toBe(0);
});

test('money that was given back at another rate of exchange is returned in the currency that was sent', async () => {
  const came = share(700, AT, {}, 'eur');
  const back = reversedTransfers(came, 700, '2026-07-20T12:00:00Z');
  await take('acct_new', converted(came, 763, '1.09'), converted(back, 777, '1.11'));
  expect(await exceptionOf(back)).toMatchObject({ status: 'returned', open: '0.00' });
});

test('money whose return names no payment is closed by finance, once and with its reason', async () => {
  const came = share(650, AT);
  const back = reversedTransfers(came, 650, '2026-07-20T12:00:00Z');
  const { charge: _, ...source } = back.source as Record<string, unknown> & { id: string; charge: unknown };
  await take('acct_new', came, { ...back, source });
  expect((await health()).unknown).toBe(2);
  expect(await close(came, back)).toEqual({
    balance_transactions: [came.id, back.id],
    left: [{ currency: 'USD', amount: '0.00' }],
  });
  expect((await health()).unknown).toBe(0);
  expect(await exceptionOf(came)).toMatchObject({ status: 'closed', open: '0.00', reason });
  expect(await refusalOf(close(came))).toMatchObject({ code: 'balance_transaction_not_open' });
});

test('a part that finance closed is open again once another part is unexplained', async () => {
  const came = share(900, AT);
  await take('acct_new', came);
  for (const amount of ['0.00', '9.01', '-7.00']) {
    expect(await refusalOf(match(came, 'q-closed', { amount }))).toMatchObject({ code: 'argument_invalid' });
  }
  await match(came, 'q-closed', { amount: '7.00' });
  expect(await close(came)).toMatchObject({ left: [{ currency: 'USD', amount: '2.00' }] });
  expect(await exceptionOf(came)).toMatchObject({ status: 'closed', routed: '2.00' });
  await world.database.transaction((tx) =>
    unmatchBalanceTransaction(tx, world, { balance_transaction: came.id, quoteId: 'q-closed', reason }),
  );
  expect(await exceptionOf(came)).toMatchObject({ status: 'unknown', routed: '9.00' });
  await match(came, 'q-closed', { amount: '7.00' });
  expect(await exceptionOf(came)).toMatchObject({ status: 'closed' });
});

test("money on another partner's account is attributed by finance, which has to say so, and its return follows it", async () => {
  const came = share(700, AT, { quote_id: 'q-two' });
  await take('acct_two', came);
  expect(await exceptionOf(came)).toMatchObject({
    named: [{ partner_id: 'p-1', currency: 'USD', is_routed: true, own_account: false, invoice: null }],
  });
  expect(await refusalOf(match(came, 'q-two'))).toMatchObject({ code: 'quote_not_matchable' });
  expect(await standing('q-two')).toBe('missing 7.00');
  await match(came, 'q-two', { otherAccount: true });
  expect(await standing('q-two')).toBe('other_account 0.00 acct_two');
  await take('acct_two', reversedTransfers(came, 700, '2026-07-20T12:00:00Z'));
  expect(await standing('q-two')).toBe('reversed 7.00 acct_two');
});

test("a share on the partner's former account is matched, and said to be there", async () => {
  await take('acct_old', share(700, AT, { quote_id: 'q-old' }), share(700, AT, { quote_id: 'q-june' }));
  expect(await standing('q-old')).toBe('other_account 0.00 acct_old');
  const june = await reconcile('2026-06' as Month);
  expect(june.exceptions.map((each) => [each.quote_id, each.status])).toEqual([['q-june', 'late']]);
});

test('money that names an invoiced quote is not matched to it, and says so', async () => {
  await world.close();
  world.at('2026-08-06T10:00:00Z');
  const came = share(700, AT, { quote_id: 'q-inv' });
  await take('acct_new', came);
  expect(await exceptionOf(came)).toMatchObject({
    named: [{ partner_id: 'p-inv', is_routed: false, invoice: expect.stringMatching(/^INV-/) }],
  });
  expect(await refusalOf(match(came, 'q-inv'))).toMatchObject({
    code: 'quote_not_matchable',
    facts: { reason: expect.stringMatching(/is on invoice INV-.*its sender to reverse the transfer/) },
  });
  await close(came);
});

test('a quote is not billed while open money of any month names it, and is billed once finance has closed that', async () => {
  const elsewhere = share(700, '2026-08-05T12:00:05Z', { quote_id: 'q-a' });
  const euros = share(650, AT, { quote_id: 'q-euro' }, 'eur');
  await take('acct_two', elsewhere);
  await take('acct_new', euros);
  const found = await reconcile();
  expect(found.not_billable).toEqual([
    {
      ...{ partner_id: 'p-1', currency: 'USD', quote_id: 'q-a', amount: '7.00' },
      balance_transactions: [{ account: 'acct_two', id: elsewhere.id, currency: 'USD', own_account: false }],
    },
    {
      ...{ partner_id: 'p-1', currency: 'USD', quote_id: 'q-euro', amount: '7.00' },
      balance_transactions: [{ account: 'acct_new', id: euros.id, currency: 'EUR', own_account: true }],
    },
  ]);
  const billed = async () =>
    (await world.sql<{ quote_id: string }>('SELECT quote_id FROM missing_shares ORDER BY 1')).map(
      (each) => each.quote_id,
    );
  expect(await world.database.transaction((tx) => billMissingShares(tx, world, july))).toHaveLength(1);
  expect(await billed()).toEqual(['q-b']);
  await match(euros, 'q-euro', { countsAs: '7.00' });
  expect(await standing('q-euro')).toBe('as expected');
  await close(elsewhere);
  expect(await world.database.transaction((tx) => billMissingShares(tx, world, july))).toHaveLength(1);
  expect(await billed()).toEqual(['q-a', 'q-b']);
  expect((await reconcile()).not_billable).toEqual([]);
});
