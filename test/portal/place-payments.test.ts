/** A partner's contact pays several invoices at once: the forms, the page to come back to, and whose payments these are. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { BLUE_RIDGE, type Books, booksOf, HARBOUR, inv, openBooks } from '../payments/books.ts';
import { stripePayment } from '../payments/stripe-events.ts';
import { Browser, serveConsole } from '../support/console.ts';
import { contactOf } from '../support/contact.ts';
import type { Served } from '../support/service.ts';
import { requestProblem } from '../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { type KeptWorld, openWorld } from '../support/world.ts';

const [JULY, AUGUST, SEPTEMBER] = [inv(1), inv(5), inv(9)];
const LINKS: Pick<Settings, 'payment_link'> = {
  payment_link: { provider: 'stripe', printed_url: 'page', methods: ['us_bank_account', 'card'] },
} as const;

let stripe: StripeStandIn;
let kept: KeptWorld;
let books: Books;
let served: Served;

beforeAll(async () => {
  requestProblem('checkout_session_create', {});
  kept = await (await openBooks()).keep();
  stripe = await startStripe({ now: () => books.environment.now().toJSDate() });
});
afterAll(async () => {
  await served.end();
  await books.verified();
  await books.end();
  await kept.discard();
  await stripe.close();
});
beforeEach(async () => {
  await served?.end();
  await books?.end();
  stripe.startOver();
  const world = await openWorld({ from: kept, stripe: stripe.url });
  books = booksOf(world);
  books.at('2026-10-15T15:00:00Z');
  served = await serveConsole(world, { ...LINKS, mail_from: 'billing@issuer.example' });
});

const signedInAs = (partnerId: string): Promise<Browser> => contactOf(books, served, partnerId);

async function begun(browser: Browser, ...numbers: string[]): Promise<string> {
  const answer = await browser.post(
    '/place/payments',
    Object.fromEntries(numbers.map((each) => [`invoice:${each}`, 'on'])),
  );
  expect([answer.status, answer.location]).toEqual([303, expect.stringMatching(/^\/place\/payments\/[\w-]{32}$/)]);
  return answer.location ?? '';
}

const events = () => {
  const [session] = [...stripe.state.sessions.values()];
  return stripePayment({
    ...{ amount: Number(session?.['amount_total']), session: session?.id ?? '', link: null, on: '2026-10-15' },
    metadata: session?.['metadata'] as Record<string, string>,
  });
};

describe('paying', () => {
  test('shows what is about to be paid, leads to Stripe, and says afterwards what became of it', async () => {
    const browser = await signedInAs(HARBOUR);
    const open = await browser.get('/place');
    expect(open.text).toContain(`name="invoice:${JULY}"`);
    expect(open.text).toContain('Pay all 3 · 2,308.27 USD');
    const path = await begun(browser, JULY, AUGUST);
    const [session] = [...stripe.state.sessions.values()];
    expect(session).toMatchObject({ success_url: `${served.url}${path}`, amount_total: 223050 });
    const before = await browser.get(path);
    expect(before.text).toContain(`href="${session?.['url']}"`);
    expect(before.text).toContain('not paid yet');
    expect((await browser.get('/place')).text).toContain('payment started');

    stripe.complete(session?.id ?? '');
    const confirmed = await browser.get(path);
    expect(confirmed.text).toContain('Stripe has received your payment');
    expect(confirmed.text).not.toContain(String(session?.['url']));
    await books.events([events().completed()]);
    const asked = stripe.requests.length;
    const after = await browser.get(path);
    expect(after.text).toContain('All invoices are paid.');
    expect(after.text).toContain('2026-10-15');
    expect(stripe.requests.length).toBe(asked);
    expect((await browser.get('/place')).text).not.toContain(`invoice:${JULY}`);
  });

  test('all that is open is one button', async () => {
    const browser = await signedInAs(HARBOUR);
    expect((await browser.post('/place/payments', { all: 'USD' })).status).toBe(303);
    expect([...stripe.state.sessions.values()]).toMatchObject([{ amount_total: 230827 }]);
  });

  test('says that a debit is under way, and offers none of its invoices again', async () => {
    const browser = await signedInAs(HARBOUR);
    const path = await begun(browser, JULY, AUGUST);
    const [session] = [...stripe.state.sessions.values()];
    stripe.complete(session?.id ?? '', 'unpaid');
    await books.events([events().ordered()]);
    expect((await browser.get(path)).text).toContain('Do not pay them again');
    const open = await browser.get('/place');
    expect(open.text).toContain('debit of 2026-10-15');
    expect(open.text).not.toContain(`name="invoice:${JULY}"`);
    const again = await browser.post('/place/payments', { [`invoice:${JULY}`]: 'on' });
    expect([again.status, again.text.includes('in progress since 2026-10-15')]).toEqual([422, true]);
  });

  test('what cannot be applied is said to the payer, and kept', async () => {
    const browser = await signedInAs(HARBOUR);
    const path = await begun(browser, JULY, AUGUST);
    await books.record({ number: JULY, amount: '1250.00', reference: 'WIRE-5' });
    expect((await browser.get(path)).text).toContain('The balance of an invoice has changed');
    await books.events([events().completed()]);
    expect((await browser.get(path)).text).toContain('1,250.00 USD could not be applied');
  });

  test('is canceled, and its session is ended at Stripe', async () => {
    const browser = await signedInAs(HARBOUR);
    const path = await begun(browser, JULY, AUGUST);
    await browser.get(path);
    expect((await browser.post(`${path}/cancel`)).location).toBe(path);
    expect([...stripe.state.sessions.values()]).toMatchObject([{ status: 'expired' }]);
    expect((await browser.get(path)).text).toContain('canceled');
    expect((await browser.post(`${path}/cancel`)).status).toBe(303);
    expect((await browser.get('/place')).text).not.toContain('payment started');
  });

  test('a processor that cannot be reached is said, above the form with the same choice', async () => {
    const browser = await signedInAs(HARBOUR);
    stripe.fail('*', { how: 'drop_before' }, 20);
    const answer = await browser.post('/place/payments', { [`invoice:${AUGUST}`]: 'on' });
    expect([answer.status, answer.text.includes('cannot be reached now')]).toEqual([422, true]);
    expect(answer.text).toMatch(new RegExp(`<input[^>]*name="invoice:${AUGUST}"[^>]*checked`));
    stripe.heal();
  });
});

describe('nobody else', () => {
  test('pays, sees or cancels it, and no other site begins it', async () => {
    const browser = await signedInAs(HARBOUR);
    const token = browser.formToken;
    const other = await signedInAs(BLUE_RIDGE);
    const mine = { [`invoice:${JULY}`]: 'on' };
    expect((await other.post('/place/payments', mine)).status).toBe(404);
    expect((await other.post('/place/payments', { ...mine, [`invoice:${inv(3)}`]: 'on' })).status).toBe(404);
    const refused = await Promise.all([
      browser.post('/place/payments', { ...mine, form_token: '' }),
      browser.post('/place/payments', { ...mine, form_token: other.formToken }),
      browser.post('/place/payments', { ...mine, form_token: token }, { 'sec-fetch-site': 'cross-site' }),
      new Browser(served.url).post('/place/payments', { ...mine, form_token: token }),
    ]);
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 401]);
    expect(await books.sql('SELECT FROM checkouts')).toEqual([]);
    expect(stripe.requests).toEqual([]);

    const path = await begun(browser, JULY, SEPTEMBER);
    const guessed = await other.get(path);
    const none = await other.get(`/place/payments/${'A'.repeat(32)}`);
    expect([guessed.status, none.status, guessed.text]).toEqual([404, 404, none.text]);
    expect((await other.post(`${path}/cancel`)).status).toBe(404);
    expect((await new Browser(served.url).get(path)).status).toBe(401);
    expect([...stripe.state.sessions.values()]).toMatchObject([{ status: 'open' }]);
  });

  test('is offered a payment online where there is none, but one wire', async () => {
    const without = await serveConsole(books, { mail_from: 'billing@issuer.example' });
    const browser = await contactOf(books, without, HARBOUR);
    const { text } = await browser.get('/place');
    expect([text.includes('Pay selected'), text.includes('Wire selected')]).toEqual([false, true]);
    expect((await browser.post('/place/payments', { all: 'USD' })).status).toBe(422);
    await without.end();
  });
});
