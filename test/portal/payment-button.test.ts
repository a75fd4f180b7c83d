/** The button of the payment page: it leads to the processor's link over what is open now, or it is not there. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { creditInvoice } from '../../src/documents/credit.ts';
import { booksOf } from '../payments/books.ts';
import { ask, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
let path = '';
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  const sums = { spotPrice: '900', partnerCut: '225', invoiceAmount: '675' };
  await world.rows([quote(sums)]);
  await world.close();
  await world.deliver();
  const [link] = await world.sql<{ url: string }>('SELECT url FROM payment_links');
  path = new URL(link?.url ?? '').pathname;
  served = await serveWorld(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const NUMBER = 'INV-2026-000001';
const page = async () => (await ask(`${served.url}${path}`)).text;
/** A link as delivery records it once Stripe has made it. */
async function linkOver(amount: string, version: number): Promise<string> {
  const url = `https://buy.stripe.com/test_${version}`;
  await world.sql(
    `WITH d AS (SELECT document_id FROM documents WHERE number = $4), made AS (
       INSERT INTO payment_link_intents (document_id, version, provider, amount, currency, request, intended_at)
       SELECT document_id, $1, 'stripe', $2, 'USD', '{}', now() FROM d RETURNING document_id)
     INSERT INTO payment_link_objects (document_id, version, provider_id, url, found, created_at)
     SELECT document_id, $1, 'plink_' || $1, $3, false, now() FROM made`,
    [version, amount, url, NUMBER],
  );
  return url;
}

test('without a link there is no button, and the bank details are there', async () => {
  const text = await page();
  expect(text).not.toContain('buy.stripe.com');
  expect(text).toContain(NUMBER);
});

test('with a link for the open balance the button leads to it', async () => {
  const url = await linkOver('675', 1);
  expect(await page()).toContain(`href="${url}"`);
});

test('after a partial payment or credit the old link has no button, until a link for the balance is made', async () => {
  const books = booksOf(world);
  await books.record({ number: NUMBER, amount: '600', currency: 'USD', receivedOn: '2026-08-01' });
  await world.database.transaction((tx) =>
    creditInvoice(tx, world, { number: NUMBER, amount: '5', reason: 'goodwill' }),
  );
  expect(await page()).not.toContain('buy.stripe.com');
  await world.sql(
    `INSERT INTO payment_link_closings (document_id, version, why, closed_at)
     SELECT document_id, 1, 'amount_changed', now() FROM documents WHERE number = $1`,
    [NUMBER],
  );
  const url = await linkOver('70', 2);
  const text = await page();
  expect(text).toContain(`href="${url}"`);
  expect(text).toContain('USD 70.00');
});
