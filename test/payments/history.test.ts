/** The payments of a document in its history (`invoice show`). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { story } from '../documents/correcting.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { booksOf } from './books.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
});
afterAll(() => world.end());

test('the history of a document has its payments, why they were applied, and that they were unapplied', async () => {
  const books = booksOf(world);
  const number = 'INV-2026-000001';
  const paid = await books.record({ amount: '5.00', number, reference: 'FT-1', receivedOn: '2026-08-01' });
  await books.unapply(paid.paymentId);
  const payments = (await story(world, number)).filter(([action]) => action === 'paid' || action === 'unpaid');
  expect(payments).toEqual([
    ['paid', expect.stringMatching(/^5\.00 USD paid, reference FT-1: ./)],
    ['unpaid', 'payment of 5.00 USD, reference FT-1, unapplied'],
  ]);
});

test('the history of a document says why the bank took a payment back, with its code', async () => {
  const books = booksOf(world);
  const number = 'INV-2026-000001';
  const paid = await books.record({ amount: '5.00', number, reference: 'FT-2', receivedOn: '2026-08-01' });
  await books.reverse({ paymentId: paid.paymentId, code: 'R01', reason: 'insufficient funds' });
  expect((await story(world, number)).at(-1)).toEqual([
    'unpaid',
    'payment of 5.00 USD, reference FT-2, returned by the bank: R01 insufficient funds',
  ]);
});
