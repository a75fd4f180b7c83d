/**
 * The partner's place in a real browser: every screen on a phone, a laptop and a large display, light and dark, with and
 * without JavaScript, for axe too; and a payment of several invoices with the keyboard. Without Chromium these are skipped.
 */
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { openDispute } from '../../src/documents/disputes.ts';
import { type Books, booksOf, HARBOUR, inv, openBooks } from '../payments/books.ts';
import { serveConsole } from '../support/console.ts';
import { contactOf, linkOf } from '../support/contact.ts';
import { expectNoFaults, launch, type Opened, openPage, signIn } from '../support/pages.ts';
import type { Served } from '../support/service.ts';
import { requestProblem } from '../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { has, needs } from '../support/tools.ts';
import { openWorld } from '../support/world.ts';

let books: Books;
let stripe: StripeStandIn;
let served: Served;
let browser: Browser;
const screens: string[] = [];

beforeAll(async () => {
  if (!has('chromium')) return;
  requestProblem('checkout_session_create', {});
  const kept = await (await openBooks()).keep();
  stripe = await startStripe({ now: () => books.environment.now().toJSDate() });
  const world = await openWorld({ from: kept, stripe: stripe.url });
  await kept.discard();
  books = booksOf(world);
  books.at('2026-10-15T15:00:00Z');
  await books.deliver();
  await books.record({ number: inv(9), amount: '20.00', reference: 'PART' });
  const { transaction } = books.database;
  await transaction((tx) => openDispute(tx, books.acting, { number: inv(5), reason: 'Tickets of the festival' }));
  served = await serveConsole(world, {
    payment_link: { provider: 'stripe', printed_url: 'page', methods: ['us_bank_account', 'card'] },
    mail_from: 'billing@issuer.example',
    http: { ...world.settings.http, requests_per_minute: 1_000_000 },
  });
  const contact = await contactOf(world, served, HARBOUR);
  const { location } = await contact.post('/place/payments', { [`invoice:${inv(9)}`]: 'on' });
  const wire = await contact.post('/place/wires', { [`invoice:${inv(1)}`]: 'on', [`invoice:${inv(5)}`]: 'on' });
  const [page] = await books.sql<{ token: string }>(`SELECT token FROM current_links ORDER BY document_id LIMIT 1`);
  const paths = [
    ...['/place', '/place/documents', '/place/statement', `/place/documents/${inv(1)}`, `/place/documents/${inv(5)}`],
    ...['/place/terms', String(wire.location), `/place/documents/${inv(1)}/dispute`],
    ...[String(location), `/place/ask/${page?.token}`],
  ];
  screens.push(...paths.map((path) => served.url + path));
  browser = await launch();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await served?.end();
  await books?.end();
  await stripe?.close();
});
beforeEach((context) => needs('chromium', context));

/** A page of a contact who is signed in. */
async function open(options?: BrowserContextOptions): Promise<Opened> {
  const opened = await openPage(browser, options);
  await signIn(opened.page, served.url + (await linkOf(books, HARBOUR)), /\/place$/);
  return opened;
}

describe("every screen of the partner's place, on a phone, a laptop and a large display, light and dark", () => {
  test('fits, and neither axe nor the browser finds a fault', async () => {
    await expectNoFaults(await open(), screens);
  }, 600_000);

  test('fits without JavaScript', async () => {
    await expectNoFaults(await open({ javaScriptEnabled: false }), screens, { withAxe: false });
  });
});

test('a contact chooses two invoices, sees their sum, and is led to the page of the processor, without JavaScript', async () => {
  const { page } = await open({ viewport: { width: 390, height: 844 }, javaScriptEnabled: false });
  for (const number of [inv(1), inv(5)]) await page.getByLabel(`Choose ${number}`).check();
  await page.getByRole('button', { name: 'Pay selected' }).click();
  await page.waitForURL(/\/place\/payments\//);
  await page.getByRole('link', { name: 'Pay 2,230.50 USD' }).click();
  await page.waitForURL(new RegExp(`^${stripe.url}/c/pay/cs_test_`));
  await page.goBack();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('canceled').waitFor();
  await page.context().close();
});
