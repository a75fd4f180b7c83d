/**
 * A late share that paid an invoice, and what finance then does by hand: its payment is taken back by the processor alone, or
 * refunded; and a match of which a payment remains is not undone.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { readPayments } from '../../src/payments/payments.sql.ts';
import { reversePayment } from '../../src/payments/reverse.ts';
import { billMissingShares } from '../../src/splits/bill.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { unmatchBalanceTransaction } from '../../src/splits/match.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { ndjson, reversedTransfers, share, type Told } from './balance-transactions.ts';

const LATE = '2026-08-12T12:00:00Z';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([partner({ ...connected, connected_account_id: 'acct_1' })]);
  await world.rows(['refunded', 'reversed'].map((quote_id) => quote({ quote_id })));
  await world.close();
  world.at('2026-08-10T10:00:00Z');
  await world.database.transaction((tx) => billMissingShares(tx, world, '2026-07' as Month));
  world.at('2026-08-20T12:00:00Z');
});
afterAll(async () => {
  const { checks } = await world.verify();
  expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
  await world.end();
});

const take = (...balance_transactions: readonly Told[]) =>
  world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved', text: ndjson(balance_transactions) }, 'acct_1'),
  );
const paymentOf = async ({ id }: Told) =>
  (await world.database.reading((tx) => readPayments(tx, { partnerId: 'p-1' }))).find(
    ({ reference }) => reference === id,
  );
const undo = ({ id }: Told, quoteId: string) =>
  world.database.transaction((tx) =>
    unmatchBalanceTransaction(tx, world, { balance_transaction: id as string, quoteId, reason: 'of another' }),
  );

test('finance reverses the payment only as a refund, and then the match stands', async () => {
  const came = share(700, LATE, { quote_id: 'refunded' });
  await take(came);
  const paymentId = (await paymentOf(came))?.payment_id ?? 0;
  const reverse = (kind: 'returned' | 'mistake' | 'refunded') =>
    world.database.transaction((tx) =>
      reversePayment(tx, world, { paymentId, kind, amount: '7.00', reason: 'sent back, OUT-1' }),
    );
  for (const kind of ['returned', 'mistake'] as const) {
    await expect(reverse(kind)).rejects.toMatchObject({ code: 'payment_is_share', facts: { payment_id: paymentId } });
  }
  await reverse('refunded');
  await expect(undo(came, 'refunded')).rejects.toMatchObject({
    code: 'share_paid_back',
    facts: { payments: [paymentId] },
  });
});

test('a match whose transfer was reversed is undone after the match of the reversal', async () => {
  const came = share(700, LATE, { quote_id: 'reversed' });
  const back = reversedTransfers(came, 300, '2026-08-14T12:00:00Z');
  await take(came, back);
  await expect(undo(came, 'reversed')).rejects.toMatchObject({ code: 'share_paid_back' });
  await undo(back, 'reversed');
  await undo(came, 'reversed');
  expect(await paymentOf(came)).toMatchObject({ status: 'reversed' });
});
