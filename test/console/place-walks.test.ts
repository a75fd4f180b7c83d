/**
 * The partner's place in a real browser: every screen on a phone, a laptop and a large display, light and dark, with and
 * without JavaScript, for axe too; and a payment of several invoices with the keyboard. Without Chromium these are skipped.
 */
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openDispute } from '../../src/documents/disputes.ts';
import { type Books, booksOf, HARBOUR, inv, openBooks } from '../payments/books.ts';
import { serveConsole } from '../support/console.ts';
import { contactOf, linkOf } from '../support/contact.ts';
import { AXE, TOO_WIDE } from '../support/pages.ts';
import type { Served } from '../support/service.ts';
import { requestProblem } from '../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { CHROMIUM, has, needs } from '../support/tools.ts';
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
  const [page] = await books.sql<{ token: string }>(`SELECT token FROM current_links ORDER BY document_id LIMIT 1`);
  screens.push(
    ...['/place', '/place/documents', '/place/statement', `/place/documents/${inv(1)}`, `/place/documents/${inv(5)}`],
    ...[`/place/documents/${inv(1)}/dispute`, String(location), `/place/ask/${page?.token}`],
  );
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await served?.end();
  await books?.end();
  await stripe?.close();
});
beforeEach((context) => needs('chromium', context));

/** A page of a contact who is signed in. */
async function open(options: BrowserContextOptions): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`));
  await page.goto(served.url + (await linkOf(books, HARBOUR)));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(/\/place$/);
  return { page, complaints };
}

describe("every screen of the partner's place", () => {
  const sizes: readonly [name: string, options: BrowserContextOptions][] = [
    ['a phone, in the dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
    ['a laptop', { viewport: { width: 1280, height: 800 }, colorScheme: 'light' }],
    ['a large display without JavaScript', { viewport: { width: 1920, height: 1080 }, javaScriptEnabled: false }],
  ];
  test.each(sizes)('fits on %s, and the browser has nothing to complain about', async (_name, options) => {
    const { page, complaints } = await open(options);
    const tooWide: unknown[] = [];
    for (const address of screens) {
      const answer = await page.goto(served.url + address);
      expect([address, answer?.status()]).toEqual([address, 200]);
      const found = (await page.evaluate(TOO_WIDE)) as string[];
      if (found.length > 0) tooWide.push([address, found.slice(0, 3)]);
    }
    expect(tooWide).toEqual([]);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test('is without a fault to axe, light on a laptop and dark on a phone', async () => {
    // axe is a script, which the policy would not let run.
    const { page } = await open({ viewport: { width: 1280, height: 800 }, bypassCSP: true });
    const faults: unknown[] = [];
    for (const address of screens) {
      await page.goto(served.url + address);
      await page.evaluate(AXE);
      for (const [colorScheme, width] of [['light', 1280] as const, ['dark', 390] as const]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 844 });
        const { violations, passes } = (await page.evaluate('axe.run()')) as {
          violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
          passes: unknown[];
        };
        expect(passes.length).toBeGreaterThan(10);
        for (const { id, nodes } of violations) {
          faults.push([address, colorScheme, id, nodes.slice(0, 2).map((each) => [each.html, each.failureSummary])]);
        }
      }
    }
    expect(faults).toEqual([]);
    await page.context().close();
  }, 120_000);
});

test('a contact chooses two invoices, sees their sum, and is led to the page of the processor, without JavaScript', async () => {
  const { page } = await open({ viewport: { width: 390, height: 844 }, javaScriptEnabled: false });
  for (const number of [inv(1), inv(5)]) await page.getByLabel(`Choose ${number}`).check();
  await page.getByRole('button', { name: 'Pay chosen' }).click();
  await page.waitForURL(/\/place\/payments\//);
  await page.getByRole('link', { name: 'Pay 2,230.50 USD' }).click();
  await page.waitForURL(new RegExp(`^${stripe.url}/c/pay/cs_test_`));
  await page.goBack();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('canceled').waitFor();
  await page.context().close();
});
