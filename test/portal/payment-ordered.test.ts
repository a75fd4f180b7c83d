/** While a bank debit over an invoice is on its way, nothing asks to pay the invoice a second time, until the debit fails. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { syncPaymentLink } from '../../src/delivery/links/sync.ts';
import { linkProvider } from '../../src/delivery/payment-link.ts';
import { readHistory } from '../../src/documents/history.ts';
import { Amount } from '../../src/money.ts';
import { planReminders } from '../../src/payments/remind.ts';
import { type Books, booksOf, HARBOUR, inv, openBooks } from '../payments/books.ts';
import { stripePayment } from '../payments/stripe-events.ts';
import { serveConsole } from '../support/console.ts';
import { contactOf } from '../support/contact.ts';
import { readLinkVersions } from '../support/link-versions.ts';
import { ask, type Served } from '../support/service.ts';
import { requestProblem } from '../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { type KeptWorld, openWorld } from '../support/world.ts';

const [JULY, AUGUST] = [inv(1), inv(5)];
const LINKS: Pick<Settings, 'payment_link'> = {
  payment_link: { provider: 'stripe', printed_url: 'page', methods: ['us_bank_account', 'card'] },
};
const ORDERED = 'was ordered on October 15, 2026 and is in progress';

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
  await kept.discard();
  await stripe.close();
});
beforeEach(async () => {
  stripe.startOver();
  const world = await openWorld({ from: kept, stripe: stripe.url });
  books = booksOf(world);
  books.at('2026-10-15T15:00:00Z');
  await world.sql(
    `INSERT INTO payment_links (document_id, provider, token, url, created_at)
     SELECT document_id, 'page', rpad(number, 32, 'x'), 'https://bills.example/pay/' || rpad(number, 32, 'x'), now()
     FROM documents`,
  );
  served = await serveConsole(world, { ...LINKS, mail_from: 'billing@issuer.example' });
});
afterEach(async () => {
  await served.end();
  await books.verified();
  await books.end();
});

const settings = () => ({ ...books.settings, ...LINKS });

async function idOf(number: string): Promise<number> {
  const [row] = await books.sql<{ id: string }>('SELECT document_id AS id FROM documents WHERE number = $1', [number]);
  return Number(row?.id);
}

/** What delivery does about the links of these invoices. */
async function synced(...numbers: string[]): Promise<void> {
  const links = linkProvider(settings(), books.environment);
  for (const number of numbers) {
    await syncPaymentLink({ environment: books.environment, database: books.database, links }, await idOf(number));
  }
}

const page = async (number: string): Promise<string> =>
  (await ask(`${served.url}/pay/${number.padEnd(32, 'x')}`)).text.replaceAll(/<style>.*<\/style>/gs, '');

const versionsOf = async (number: string) => {
  const id = await idOf(number);
  return (await books.database.reading((tx) => readLinkVersions(tx, id))).map(({ version, closed }) => [
    version,
    closed,
  ]);
};

const skipped = async () =>
  (await books.database.reading((tx) => planReminders(tx, { ...books, settings: settings() }))).plan.skipped.filter(
    ({ reason }) => reason === 'payment_ordered',
  );

/** A debit over these invoices, ordered by the partner's contact in one session, on October 15. */
async function orderedTogether(...numbers: string[]) {
  const browser = await contactOf(books, served, HARBOUR);
  await browser.post('/place/payments', Object.fromEntries(numbers.map((each) => [`invoice:${each}`, 'on'])));
  const [session] = [...stripe.state.sessions.values()];
  stripe.complete(session?.id ?? '', 'unpaid');
  const metadata = session?.['metadata'] as Record<string, string>;
  const amount = Number(session?.['amount_total']);
  const payment = stripePayment({ amount, session: session?.id ?? '', link: null, on: '2026-10-15', metadata });
  await books.events([payment.ordered()]);
  return { browser, payment };
}

test('invoices that a contact pays at once by a debit are not asked for again, and their links are closed', async () => {
  await synced(JULY, AUGUST);
  expect(await page(JULY)).toContain('class="pay"');
  const { browser, payment } = await orderedTogether(JULY, AUGUST);
  await synced(JULY, AUGUST);
  for (const number of [JULY, AUGUST]) {
    const text = await page(number);
    expect(text).toContain(ORDERED);
    expect(text).not.toContain('class="pay"');
    expect(text).not.toContain('Pay by wire transfer');
    expect(text).not.toContain('Overdue');
    expect(await versionsOf(number)).toEqual([[1, 'ordered']]);
    expect((await browser.get(`/place/documents/${number}`)).text).not.toContain('/pay/');
    expect((await browser.get(`/place/documents/${number}`)).text).toContain('debit of 2026-10-15');
  }
  expect(stripe.activeLinks()).toEqual([]);
  expect(await page(inv(9))).toContain('Pay by wire transfer');

  books.at('2026-10-19T15:00:00Z');
  await books.events([payment.failedLater()]);
  await synced(JULY, AUGUST);
  const text = await page(JULY);
  expect(text).not.toContain('was ordered');
  expect(text).toContain('class="pay"');
  expect(await versionsOf(JULY)).toEqual([
    [1, 'ordered'],
    [2, null],
  ]);
});

/** A debit over an invoice, ordered by its own link. */
async function orderedByLink(number: string) {
  await synced(number);
  const [link] = await books.sql<{ provider_id: string; amount: string }>(
    `SELECT provider_id, amount FROM payment_link_objects JOIN payment_link_intents USING (document_id, version)
     JOIN documents USING (document_id) WHERE number = $1 ORDER BY version DESC LIMIT 1`,
    [number],
  );
  const amount = Number(
    Amount.of(link?.amount ?? '', 'USD')
      .toString()
      .replace('.', ''),
  );
  return stripePayment({ invoice: number, amount, link: link?.provider_id ?? null, on: '2026-10-15' });
}

test('an invoice whose own link ordered a debit is asked for again only once the debit has failed', async () => {
  const payment = await orderedByLink(JULY);
  await books.events([payment.ordered()]);
  expect(await page(JULY)).toContain(ORDERED);
  expect(await skipped()).toMatchObject([{ number: JULY }]);
  await synced(JULY);
  expect(await page(JULY)).not.toContain('class="pay"');
  expect(await versionsOf(JULY)).toEqual([[1, 'used_up']]);

  const browser = await contactOf(books, served, HARBOUR);
  const open = await browser.get('/place');
  expect(open.text).toContain('debit of 2026-10-15');
  expect(open.text).not.toContain(`name="invoice:${JULY}"`);
  const both = await browser.post('/place/payments', { [`invoice:${JULY}`]: 'on', [`invoice:${AUGUST}`]: 'on' });
  expect([both.status, both.text.includes('in progress since 2026-10-15')]).toEqual([422, true]);

  await books.events([payment.failedLater()]);
  await synced(JULY);
  expect(await page(JULY)).toContain('class="pay"');
  expect(await skipped()).toEqual([]);
  expect(await versionsOf(JULY)).toEqual([
    [1, 'used_up'],
    [2, null],
  ]);
  const id = await idOf(JULY);
  const said = (await books.database.reading((tx) => readHistory(tx, id))).map(({ says }) => says);
  expect(said).toEqual(
    expect.arrayContaining(['bank debit of 1,250.00 USD ordered', 'bank debit of 1,250.00 USD failed']),
  );
});

test('a debit that is paid days later pays the invoice, whichever event comes first', async () => {
  const payment = await orderedByLink(JULY);
  await books.events([payment.paidLater()]);
  await books.events([payment.ordered()]);
  expect(await books.balance(JULY)).toMatchObject({ status: 'paid' });
  expect(await page(JULY)).toContain('This invoice is paid');
  // Its return reopens the invoice, which is then asked for like any other.
  await books.events([payment.refunded(125_000)]);
  await synced(JULY);
  const text = await page(JULY);
  expect(text).toContain('class="pay"');
  expect(text).not.toContain('was ordered');
});

test('a credit while the debit is on its way does not make a second link', async () => {
  const payment = await orderedByLink(JULY);
  await books.events([payment.ordered()]);
  await books.record({ number: JULY, amount: '50.00', reference: 'WIRE-7' });
  await synced(JULY);
  expect(await page(JULY)).toContain(ORDERED);
  expect(stripe.activeLinks()).toEqual([]);
  expect(await versionsOf(JULY)).toHaveLength(1);
});
