/** kill -9 of a server while a contact pays several invoices at once: whoever asks again pays by one session, and once. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { stripePayment } from '../payments/stripe-events.ts';
import { Browser } from '../support/console.ts';
import { linkOf } from '../support/contact.ts';
import { FAILPOINTS } from '../support/failpoints.ts';
import { requestProblem } from '../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { someOf, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { type KeptWorld, openWorld, partner, quote } from '../support/world.ts';
import { prepareServing, type Serving } from './serving.ts';

const NOW = '2026-10-15T15:00:00Z';

let kept: KeptWorld;
let stripe: StripeStandIn;
let books: Books;
let serving: Serving;
let survived = 0;
beforeAll(async () => {
  // The stand-in reads Stripe's types once, which takes longer than a request may.
  requestProblem('checkout_session_create', {});
  stripe = await startStripe({ now: () => new Date(NOW) });
  const world = await openWorld();
  await world.partners([partner()]);
  for (const month of ['07', '08', '09']) {
    world.at(`2026-${month}-28T10:00:00Z`);
    await world.rows([quote({ accepted_at: `2026-${month}-15T12:00:00Z` })]);
  }
  world.at('2026-10-02T10:00:00Z');
  await world.close();
  const settings = { ...firstSettings('sandbox'), payment_link: { provider: 'stripe', printed_url: 'page' } };
  const mail_from = 'billing@issuer.example';
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify({ ...settings, mail_from }));
  kept = await world.keep();
});
afterEach(async () => {
  serving.end();
  await books.verified();
  await books.end();
});
afterAll(async () => {
  tally('kills survived', 'of payments of several invoices', survived);
  await stripe.close();
  await kept.discard();
});

const INVOICES = [1, 2, 3].map((sequence) => `INV-2026-00000${sequence}`);

/** The contact signs in to a server, and chooses invoices to pay. */
async function pay(numbers: readonly string[], failpoint?: string) {
  const { child, url } = await serving.serve(failpoint);
  const browser = new Browser(url);
  expect((await browser.post(await linkOf(books, 'p-1'))).status).toBe(303);
  await browser.get('/place');
  const dies = once(child, 'exit');
  const chosen = Object.fromEntries(numbers.map((number) => [`invoice:${number}`, 'on']));
  const answer = await browser.post('/place/payments', chosen).catch(() => undefined);
  if (failpoint !== undefined) {
    const [, signal] = (await dies) as [number | null, string | null];
    expect([failpoint, answer, signal]).toEqual([failpoint, undefined, 'SIGKILL']);
    survived += 1;
  } else {
    child.kill('SIGKILL');
    expect(answer).toMatchObject({ status: 303, location: expect.stringMatching(/^\/place\/payments\/[\w-]{32}$/) });
  }
}

/** The sessions at the processor by which somebody can pay. */
const open = () => [...stripe.state.sessions.values()].filter(({ status }) => status === 'open');

const KILLS = FAILPOINTS.filter((each) => each.startsWith('checkout.'));
test.each(someOf(KILLS, times({ few: 2, short: 3, long: KILLS.length })))(
  'a payment of two invoices whose request dies at %s is begun again by one session, and paid once',
  async (failpoint) => {
    stripe.startOver();
    books = booksOf(await openWorld({ from: kept, stripe: stripe.url }));
    books.at(NOW);
    const env = { RECKONER_NOW: NOW, STRIPE_SECRET_KEY: 'sk_test_world', STRIPE_API_BASE: stripe.url };
    serving = await prepareServing(books, env);
    const both = INVOICES.slice(0, 2);
    // A session ends when others are chosen: one over all three is there before.
    if (failpoint === 'checkout.expired') await pay(INVOICES);
    await pay(both, failpoint);
    await pay(both);
    // The same choice is the same session, which is the only one to pay by, and known.
    await pay(both);
    const [session, ...others] = open();
    expect([others, session?.['amount_total']]).toEqual([[], 1400]);
    const known = await books.sql<{ id: string }>('SELECT provider_id AS id FROM checkout_sessions ORDER BY 1');
    expect(known.map(({ id }) => id)).toEqual([...stripe.state.sessions.keys()].sort());
    const live = await books.sql<{ invoices: number }>(
      `SELECT (SELECT count(*)::int FROM checkout_invoices i WHERE i.checkout_id = c.checkout_id) AS invoices
       FROM checkouts c WHERE checkout_id NOT IN (SELECT checkout_id FROM checkout_endings)`,
    );
    expect(live).toEqual([{ invoices: 2 }]);
    stripe.complete(session?.id ?? '');
    const payment = stripePayment({
      ...{ amount: 1400, session: session?.id ?? '', link: null, on: '2026-10-15' },
      metadata: session?.['metadata'] as Record<string, string>,
    });
    await books.events([payment.completed(), payment.paidLater()]);
    expect(await books.payments('p-1')).toMatchObject([{ amount: '14.00', applied: '14.00' }]);
    for (const number of both) expect(await books.balance(number)).toMatchObject({ status: 'paid' });
    expect(await books.balance(INVOICES[2] as string)).toMatchObject({ status: 'open', balance: '7.00' });
  },
  300_000,
);
