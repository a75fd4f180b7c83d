/** Several invoices paid at once: what is made at Stripe, what its payment pays, and what happens when anything changes meanwhile. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readCheckout } from '../../../src/delivery/checkouts/checkouts.sql.ts';
import { endCheckout } from '../../../src/delivery/checkouts/end.ts';
import { type CheckoutContext, type OpenedCheckout, openCheckout } from '../../../src/delivery/checkouts/open.ts';
import { syncPaymentLink } from '../../../src/delivery/links/sync.ts';
import { linkProvider } from '../../../src/delivery/payment-link.ts';
import { readHistory } from '../../../src/documents/history.ts';
import { voidDocument } from '../../../src/documents/void.ts';
import { contactAsActor } from '../../../src/partners/sign-in.ts';
import { readExceptions } from '../../../src/payments/exceptions.sql.ts';
import { planReminders } from '../../../src/payments/remind.ts';
import { BLUE_RIDGE, type Books, booksOf, HARBOUR, inv, openBooks } from '../../payments/books.ts';
import { settingsWith } from '../../payments/settings.ts';
import { stripePayment } from '../../payments/stripe-events.ts';
import { GUARDS_OFF, GUARDS_ON } from '../../support/guards.ts';
import { requestProblem } from '../../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../../support/stripe/stand-in.ts';
import { type KeptWorld, openWorld } from '../../support/world.ts';

const [JULY, AUGUST, SEPTEMBER] = [inv(1), inv(5), inv(9)];
const SESSIONS = 'POST /v1/checkout/sessions';

let stripe: StripeStandIn;
let books: Books;
let context: CheckoutContext;

let kept: KeptWorld;
beforeAll(async () => {
  requestProblem('checkout_session_create', {});
  stripe = await startStripe({ now: () => books.environment.now().toJSDate() });
  kept = await (await openBooks()).keep();
});
afterAll(async () => {
  await stripe.close();
  await kept.discard();
});
beforeEach(async () => {
  stripe.startOver();
  books = booksOf(await openWorld({ from: kept }));
  books.at('2026-10-15T15:00:00Z');
  const settings = settingsWith({ payment_link: { provider: 'stripe' } });
  const environment = { ...books.environment, stripeKey: 'sk_test_world', stripeBase: stripe.url };
  const contact = { contact_name: 'Accounts Payable', contact_email: 'ap@harbour.example' };
  context = {
    ...{ environment, settings, database: books.database, links: linkProvider(settings, environment) },
    actor: contactAsActor({ ...contact, partner_id: HARBOUR, partner_name: 'Harbour Lights Ticketing' }),
  };
});
afterEach(async () => {
  await books.verified();
  await books.end();
});

/** Begins to pay these invoices of the first partner, as its contact. */
const pay = (...numbers: string[]): Promise<OpenedCheckout> =>
  openCheckout(context, {
    partnerId: HARBOUR,
    numbers,
    backTo: (reference) => `https://bills.example/place/${reference}`,
  });

async function opened(...numbers: string[]): Promise<string> {
  const result = await pay(...numbers);
  if (result.status !== 'opened') throw new Error(`not opened: ${JSON.stringify(result)}`);
  return result.reference;
}

async function checkoutOf(reference: string) {
  const found = await books.database.reading((tx) => readCheckout(tx, { partnerId: HARBOUR, reference }));
  if (found === undefined) throw new Error(`there is no checkout ${reference}`);
  return found;
}

const sessions = () => [...stripe.state.sessions.values()];
const made = () => stripe.requests.filter(({ method, path }) => `${method} ${path}` === SESSIONS);

/** The events of the payment of a session. */
async function paid(reference: string, { amount, key = 'S1' }: { amount?: number; key?: string } = {}) {
  const { provider_id } = await checkoutOf(reference);
  const session = stripe.state.sessions.get(provider_id ?? '');
  return stripePayment({
    amount: amount ?? Number(session?.['amount_total']),
    ...{ session: provider_id ?? '', link: null, key, on: '2026-10-15' },
    metadata: session?.['metadata'] as Record<string, string>,
  });
}

describe('paying several invoices at once', () => {
  test('makes one session, with a line for each invoice, recorded before it with its event', async () => {
    const reference = await opened(AUGUST, JULY);
    expect(sessions()).toMatchObject([
      { amount_total: 223050, currency: 'usd', metadata: { checkout: reference, partner_id: HARBOUR } },
    ]);
    expect(made().map(({ params }) => params)).toMatchObject([
      {
        payment_intent_data: { description: `Invoices ${JULY}, ${AUGUST}`, metadata: { checkout: reference } },
        success_url: `https://bills.example/place/${reference}`,
        allowed_payment_method_types: ['us_bank_account', 'card'],
        line_items: [
          { quantity: '1', price_data: { unit_amount: '125000', product_data: { name: `Invoice ${JULY}` } } },
          { quantity: '1', price_data: { unit_amount: '98050', product_data: { name: `Invoice ${AUGUST}` } } },
        ],
      },
    ]);
    expect(made()[0]?.idempotencyKey).toContain(reference);
    const [event] = await books.sql(
      `SELECT subject, personal(claimed_by) AS claimed_by, via, details FROM audit_events WHERE action = 'checkout.open'`,
    );
    expect(event).toMatchObject({
      ...{ subject: HARBOUR, claimed_by: 'ap@harbour.example', via: 'http' },
      details: {
        amount: '2230.50',
        currency: 'USD',
        invoices: [
          { number: JULY, amount: '1250.00' },
          { number: AUGUST, amount: '980.50' },
        ],
      },
    });
    expect(JSON.stringify(event)).not.toContain(reference);
  });

  test('becomes one receipt, applied to each invoice in its amount, and undone with the payment', async () => {
    const reference = await opened(JULY, AUGUST, SEPTEMBER);
    const payment = await paid(reference);
    expect(await books.events([payment.completed()])).toMatchObject({ effects: 1 });
    const receipts = await books.payments(HARBOUR);
    expect(receipts).toMatchObject([
      {
        ...{ amount: '2308.27', applied: '2308.27', unapplied: '0.00', method: 'link', source: 'processor' },
        applications: [
          { number: JULY, amount: '1250.00', evidence: { reference: { field: 'checkout_session' } } },
          { number: AUGUST, amount: '980.50' },
          { number: SEPTEMBER, amount: '77.77' },
        ],
      },
    ]);
    for (const number of [JULY, AUGUST, SEPTEMBER])
      expect(await books.balance(number)).toMatchObject({ status: 'paid' });
    expect(await checkoutOf(reference)).toMatchObject({ ending: 'paid' });
    // The same news again, and that of its intent, changes nothing.
    expect(await books.events([payment.paidLater(), payment.intentSucceeded()])).toMatchObject({ effects: 0 });
    await books.events([payment.refunded(10000)]);
    expect(await books.balance(SEPTEMBER)).toMatchObject({ balance: '77.77' });
    expect(await books.balance(AUGUST)).toMatchObject({ balance: '22.23' });
    await books.events([payment.disputed('needs_response'), payment.closed('won')]);
    expect(await books.payments(HARBOUR)).toMatchObject([{ reversed: '100.00', disputes: [{ outcome: 'won' }] }]);
  });

  test('is proved by the session that we made, and verify says so if it was another', async () => {
    await books.events([(await paid(await opened(JULY, AUGUST))).completed()]);
    const damage = async (statement: string) => {
      for (const each of [GUARDS_OFF, statement, GUARDS_ON]) await books.sql(each);
      const { checks } = await books.verify();
      return checks.flatMap(({ check, differences }) => differences.map(({ detail }) => `${check}: ${detail}`));
    };
    expect(await damage(`UPDATE checkout_sessions SET provider_id = provider_id || 'x'`)).toEqual([
      expect.stringMatching(
        /^link_payments_proved: paid INV-2026-000001 by the link .*, which was made for no document$/,
      ),
      expect.stringMatching(/^link_payments_proved: paid INV-2026-000005 /),
    ]);
    await damage(`UPDATE checkout_sessions SET provider_id = rtrim(provider_id, 'x')`);
  });

  test('whatever comes first, the payment waits for the session that proves what it is for', async () => {
    const payment = await paid(await opened(JULY, AUGUST));
    expect(await books.events([payment.intentSucceeded()])).toMatchObject({ effects: 0, waiting: [{}] });
    expect(await books.events([payment.completed()])).toMatchObject({ waiting: [] });
    expect(await books.payments(HARBOUR)).toMatchObject([{ applied: '2230.50' }]);
  });

  test('a debit is not paid when it is ordered; it is under way, and nobody pays again meanwhile', async () => {
    const reference = await opened(JULY, AUGUST);
    const payment = await paid(reference);
    const { provider_id = '' } = await checkoutOf(reference);
    stripe.complete(provider_id ?? '', 'unpaid');
    await books.events([payment.ordered()]);
    expect(await checkoutOf(reference)).toMatchObject({ ordered_on: '2026-10-15', ending: null });
    expect(await pay(AUGUST, SEPTEMBER)).toMatchObject({
      status: 'refused',
      reason: expect.stringContaining('in progress'),
    });
    expect(await books.balance(JULY)).toMatchObject({ status: 'open' });
    const { plan } = await books.database.reading((tx) => planReminders(tx, { ...books, settings: context.settings }));
    expect(plan.skipped).toContainEqual({ number: JULY, partner_id: HARBOUR, reason: 'payment_ordered' });
    // Days later it fails, and can be paid anew.
    stripe.settle(provider_id ?? '', 'failed');
    books.at('2026-10-19T15:00:00Z');
    await books.events([payment.failedLater()]);
    expect(await checkoutOf(reference)).toMatchObject({ ending: 'failed' });
    expect(await opened(JULY, AUGUST)).not.toBe(reference);
  });

  test('a debit whose failure nobody told us of is found out when the contact pays again', async () => {
    const reference = await opened(JULY, AUGUST);
    const { provider_id } = await checkoutOf(reference);
    stripe.complete(provider_id ?? '', 'unpaid');
    stripe.settle(provider_id ?? '', 'failed');
    await opened(JULY);
    expect(await checkoutOf(reference)).toMatchObject({ ending: 'failed' });
  });
});

describe('what changed meanwhile', () => {
  test('an invoice that was paid by bank gets nothing, and its part is unapplied cash that finance sees', async () => {
    const reference = await opened(JULY, AUGUST);
    await books.record({ number: JULY, amount: '1250.00', reference: 'WIRE-9' });
    await books.events([(await paid(reference)).completed()]);
    const receipt = (await books.payments(HARBOUR)).find(({ method }) => method === 'link');
    expect(receipt).toMatchObject({ amount: '2230.50', applied: '980.50', unapplied: '1250.00' });
    const exceptions = await books.database.reading(readExceptions);
    expect(exceptions.map(({ exception }) => exception)).toContain(`payment-${receipt?.payment_id}`);
  });

  test('an invoice that was voided gets nothing, one that was paid in part no more than is open', async () => {
    const reference = await opened(JULY, AUGUST, SEPTEMBER);
    await books.record({ number: AUGUST, amount: '900.00', reference: 'PART-1' });
    await books.database.transaction((tx) => voidDocument(tx, books.acting, { number: JULY, reason: 'wrong' }));
    await books.events([(await paid(reference)).completed()]);
    const receipt = (await books.payments(HARBOUR)).find(({ method }) => method === 'link');
    expect(receipt).toMatchObject({ applied: '158.27', unapplied: '2150.00' });
    expect(await books.balance(AUGUST)).toMatchObject({ status: 'paid' });
  });

  test('a payment undone meanwhile leaves the invoice open by it: only what was recorded is paid', async () => {
    const { paymentId } = await books.record({ number: AUGUST, amount: '900.00', reference: 'PART-2' });
    const reference = await opened(JULY, AUGUST);
    await books.unapply(paymentId);
    await books.events([(await paid(reference)).completed()]);
    expect(await books.balance(AUGUST)).toMatchObject({ status: 'open', balance: '900.00' });
    expect(await books.balance(JULY)).toMatchObject({ status: 'paid' });
  });

  test('another amount than the session asks for pays nothing by itself', async () => {
    const reference = await opened(JULY, AUGUST);
    await books.events([(await paid(reference, { amount: 100 })).completed()]);
    const [receipt] = await books.payments();
    expect(receipt).toMatchObject({
      amount: '1.00',
      applied: '0.00',
      suggestions: [{ number: JULY }, { number: AUGUST }],
    });
  });

  test('a session that we did not make pays nothing, whatever its metadata says', async () => {
    const reference = await opened(JULY, AUGUST);
    const forged = stripePayment({ amount: 223050, link: null, key: 'F1', metadata: { checkout: reference } });
    expect(await books.events([forged.completed()])).toMatchObject({ waiting: [{}] });
    books.at('2026-10-17T15:00:00Z');
    await books.events([]);
    expect(await books.payments()).toMatchObject([
      { applied: '0.00', unapplied: '2230.50', suggestions: [{ number: JULY }, { number: AUGUST }] },
    ]);
    expect(await checkoutOf(reference)).toMatchObject({ ending: null });
  });

  test('the link of one of the invoices paid as well is unapplied cash', async () => {
    await syncPaymentLink(context, await idOf(JULY));
    const reference = await opened(JULY, AUGUST);
    await books.events([(await paid(reference)).completed()]);
    const [link] = stripe.activeLinks();
    const twice = stripePayment({ invoice: JULY, amount: 125000, key: 'TWICE', link: link?.id ?? '' });
    await books.events([twice.completed()]);
    const receipts = await books.payments(HARBOUR);
    expect(receipts.map(({ applied }) => applied).sort()).toEqual(['0.00', '2230.50']);
    // What is paid has no link any more.
    await syncPaymentLink(context, await idOf(JULY));
    expect(stripe.activeLinks()).toEqual([]);
  });

  test('delivery ends an open session once something else is owed, and the history says so', async () => {
    const reference = await opened(JULY, AUGUST);
    await books.record({ number: JULY, amount: '50.00', reference: 'PART-3' });
    const id = await idOf(JULY);
    await syncPaymentLink(context, id);
    expect(await checkoutOf(reference)).toMatchObject({ ending: 'changed' });
    expect(sessions().map(({ status }) => status)).toEqual(['expired']);
    const actions = (await books.database.reading((tx) => readHistory(tx, id))).map(({ action, says }) => [
      action,
      says,
    ]);
    expect(actions).toContainEqual([
      'checkout_made',
      "1,250.00 USD in a session at Stripe over 2,230.50 USD, begun by the partner's contact",
    ]);
    expect(actions).toContainEqual([
      'checkout_ended',
      'session over 1,250.00 USD ended because the balance of an invoice changed',
    ]);
  });

  const idOf = async (number: string): Promise<number> => {
    const [row] = await books.sql<{ id: string }>(`SELECT document_id AS id FROM documents WHERE number = $1`, [
      number,
    ]);
    return Number(row?.id);
  };
});

describe('asking twice', () => {
  test('the same choice gives the same session, and asks Stripe nothing', async () => {
    const reference = await opened(JULY, AUGUST);
    const asked = stripe.requests.length;
    expect(await opened(AUGUST, JULY)).toBe(reference);
    expect(stripe.requests.length).toBe(asked);
  });

  test('two clicks at the same moment make one session', async () => {
    const both = await Promise.all([opened(JULY, AUGUST), opened(JULY, AUGUST)]);
    expect(new Set(both).size).toBe(1);
    expect(sessions()).toHaveLength(1);
  });

  test('another choice with one of the invoices ends the session before', async () => {
    const first = await opened(JULY, AUGUST);
    const second = await opened(AUGUST, SEPTEMBER);
    expect(await checkoutOf(first)).toMatchObject({ ending: 'replaced' });
    expect(sessions().map(({ status }) => status)).toEqual(['expired', 'open']);
    expect(await opened(JULY)).not.toBe(second);
    expect(sessions().map(({ status }) => status)).toEqual(['expired', 'open', 'open']);
  });

  test('a session that has just been paid is not paid again', async () => {
    const first = await checkoutOf(await opened(JULY, AUGUST));
    stripe.complete(first.provider_id ?? '');
    expect(await pay(JULY)).toMatchObject({ status: 'refused', reason: expect.stringContaining('just been made') });
    expect(await endCheckout(context, first, 'canceled')).toBe('paid');
  });

  test('a session that has expired is made anew, and the event of it is no news then', async () => {
    const reference = await opened(JULY, AUGUST);
    const events = await paid(reference);
    books.at('2026-10-15T16:30:00Z');
    expect(await opened(JULY, AUGUST)).not.toBe(reference);
    expect(await checkoutOf(reference)).toMatchObject({ ending: 'expired' });
    await books.events([events.expired()]);
    expect(await checkoutOf(reference)).toMatchObject({ ending: 'expired' });
  });
});

describe('what cannot be paid at once', () => {
  const says = (reason: RegExp) => ({ status: 'refused', reason: expect.stringMatching(reason) });

  test('is said, and nothing is recorded', async () => {
    await books.record({ number: SEPTEMBER, amount: '77.77', reference: 'WIRE-1' });
    expect(await pay()).toEqual(says(/at least one/));
    expect(await pay(JULY, SEPTEMBER)).toEqual(says(/Nothing is due on INV-2026-000009/));
    expect(await pay(JULY, inv(3))).toEqual({ status: 'unknown' });
    expect(await pay(JULY, 'INV-2026-999999')).toEqual({ status: 'unknown' });
    const none = linkProvider(settingsWith({}), context.environment);
    expect(
      await openCheckout({ ...context, links: none }, { partnerId: HARBOUR, numbers: [JULY], backTo: String }),
    ).toEqual(says(/cannot be paid online/));
    expect(await books.sql('SELECT FROM checkouts')).toEqual([]);
    expect(stripe.requests).toEqual([]);
  });

  test('a processor that is down keeps nothing: the same choice goes on with the same checkout', async () => {
    stripe.fail(SESSIONS, { how: 'drop_before' }, 2);
    expect(await pay(JULY, AUGUST)).toEqual(says(/cannot be reached/));
    stripe.heal();
    const links = linkProvider(context.settings, context.environment);
    const again = await openCheckout(
      { ...context, links },
      { partnerId: HARBOUR, numbers: [JULY, AUGUST], backTo: String },
    );
    expect(again.status).toBe('opened');
    expect(await books.sql('SELECT FROM checkouts')).toHaveLength(1);
    expect(new Set(made().map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  });

  test('a request that failed at Stripe is given up, and the next one is another', async () => {
    stripe.fail(SESSIONS, { how: 'fail_after' });
    expect(await pay(JULY, AUGUST)).toEqual(says(/did not accept/));
    const reference = await opened(JULY, AUGUST);
    expect(await checkoutOf(reference)).toMatchObject({ ending: null });
    expect(await books.sql(`SELECT why FROM checkout_endings`)).toEqual([{ why: 'not_made' }]);
  });

  test('the database keeps an invoice in one checkout, and the sum whole', async () => {
    await opened(JULY, AUGUST);
    const other = `INSERT INTO checkouts (reference, partner_id, provider, currency, amount, request, idempotency_key,
                                          expires_at, recorded_at, event_id)
      SELECT repeat('x', 32), partner_id, provider, currency, $1, '{}', 'other', expires_at, recorded_at, event_id
      FROM checkouts RETURNING checkout_id`;
    await expect(books.sql(other, ['1'])).rejects.toThrow(/do not add up/);
    const both = `WITH made AS (${other})
      INSERT INTO checkout_invoices SELECT made.checkout_id, 1, i.document_id, i.partner_id, i.currency, i.amount
      FROM made CROSS JOIN checkout_invoices i WHERE i.position = 1`;
    await expect(books.sql(both, ['1250'])).rejects.toThrow(/in another one that has not ended/);
    const foreign = `INSERT INTO checkout_invoices SELECT c.checkout_id, 3, d.document_id, d.partner_id, d.currency, 1
      FROM checkouts c JOIN documents d ON d.partner_id = $1 LIMIT 1`;
    await expect(books.sql(foreign, [BLUE_RIDGE])).rejects.toThrow(/checkout_invoice_of_its_checkout/);
  });
});
