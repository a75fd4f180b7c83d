/** A payment that moves from one partner to another after it was sealed leaves an honest pack. */
import { expect, test } from 'vitest';
import { BLUE_RIDGE, HARBOUR, inv, openBooks } from '../payments/books.ts';
import { expectPacksToHold, month } from './books.ts';

test('a payment of one partner that is assigned to another one leaves packs that both verifiers accept', async () => {
  const books = await openBooks();
  books.at('2026-10-15T10:00:00Z');
  const paid = { amount: '50', number: inv(1), currency: 'USD', receivedOn: '2026-10-15', reference: 'FT-1' };
  const { paymentId } = await books.record(paid);
  await books.unapply(paymentId);
  books.at('2026-11-01T10:00:00Z');
  await books.close();
  await books.assign(paymentId, BLUE_RIDGE);
  const now = await books.sql(
    'SELECT p.partner_id AS sealed, b.partner_id FROM payments p JOIN payment_balances b USING (payment_id)',
  );
  expect(now).toEqual([{ sealed: HARBOUR, partner_id: BLUE_RIDGE }]);
  expect(await expectPacksToHold(books, month('2026-07'), month('2026-10'))).toBeGreaterThan(0);
  await books.end();
}, 120_000);
