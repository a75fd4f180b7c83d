/** Payment links at Stripe: one active link for what is owed and none for anything else, whatever Stripe does. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Delivery } from '../../../src/delivery/document.ts';
import { syncPaymentLink } from '../../../src/delivery/links/sync.ts';
import { linkProvider } from '../../../src/delivery/payment-link.ts';
import { readHistory } from '../../../src/documents/history.ts';
import { startOver } from '../../close/start-over.ts';
import { readLinkVersions } from '../../support/link-versions.ts';
import { readStatus } from '../../support/status.ts';
import { requestProblem } from '../../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../../support/stripe/stand-in.ts';
import { openWorld, partner, quote, type World } from '../../support/world.ts';

let stripe: StripeStandIn;
let world: World;
let first: World['settings'];

beforeAll(async () => {
  // The stand-in compiles its schemas at the first request: done here, no client waits for it.
  requestProblem('payment_link_create', {});
  stripe = await startStripe({ now: () => world.environment.now().toJSDate() });
  world = await openWorld({ stripe: stripe.url });
  first = world.settings;
});
afterAll(async () => {
  await world.end();
  await stripe.close();
});
beforeEach(async () => {
  await startOver(world);
  world.at('2026-08-01T10:00:00Z');
  stripe.startOver();
  withLinks({ provider: 'stripe', printed_url: 'page', methods: ['us_bank_account', 'card'] });
});

function withLinks(payment_link: World['settings']['payment_link']): void {
  world.settings = { ...first, payment_link };
}

/** Closes July for one partner who owes that much. */
async function owing(invoiceAmount = '7.00', currency = 'USD'): Promise<void> {
  await world.partners([partner({ currency })]);
  await world.rows([quote({ currency, spotPrice: invoiceAmount, partnerCut: '0', invoiceAmount })]);
  await world.close();
}

async function delivered(): Promise<Delivery> {
  const [delivery] = await world.deliver();
  return delivery as Delivery;
}

const versions = async () => {
  const [row] = await world.sql<{ id: string }>('SELECT max(document_id) AS id FROM documents');
  return world.database.reading((tx) => readLinkVersions(tx, Number(row?.id)));
};

/** What corrections and payments do to an invoice, as facts. */
async function event(): Promise<string> {
  const [row] = await world.sql<{ event_id: string }>(
    `INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
     VALUES (now(), 'test.action', 'INV', '{}', 'test', 'test', 'command') RETURNING event_id`,
  );
  return row?.event_id as string;
}
async function writeOff(amount: string): Promise<void> {
  await world.sql(
    `INSERT INTO write_offs (document_id, amount, reason, written_off_on, recorded_at, event_id)
     SELECT max(document_id), $1, 'agreed', '2026-08-02', now(), $2 FROM documents`,
    [amount, await event()],
  );
}
async function voidIt(): Promise<void> {
  await world.sql(
    `INSERT INTO voids (document_id, partner_id, month, currency, arrangement, reason, voided_on, recorded_at, event_id)
     SELECT document_id, partner_id, month, currency, arrangement, 'wrong', '2026-08-02', now(), $1 FROM documents`,
    [await event()],
  );
}

const LINKS = 'POST /v1/payment_links';
/** stripe-node itself asks again once, under the same key, when a connection is closed on it. */
const CLOSED_ON = 2;

const attention = async () => (await world.database.reading((tx) => readStatus(tx, world))).attention;

const made = () => [...stripe.state.paymentLinks.values()];
const creations = () => stripe.requests.filter(({ method, path }) => method === 'POST' && path === '/v1/payment_links');

describe('making a link', () => {
  test('an invoice gets one link over what is owed, paid at most once, known by its metadata', async () => {
    await owing('1234.50');
    expect(await delivered()).toMatchObject({ status: 'sent' });
    const marks = { invoice: 'INV-2026-000001', partner_id: 'p-1', month: '2026-07', version: '1' };
    expect(stripe.activeLinks()).toMatchObject([
      {
        metadata: marks,
        payment_intent_data: { description: 'Invoice INV-2026-000001', metadata: marks },
        payment_method_types: ['us_bank_account', 'card'],
        restrictions: { completed_sessions: { limit: 1 } },
        line_items: [{ quantity: 1, price_data: { currency: 'usd', unit_amount: 123450 } }],
      },
    ]);
    expect(await versions()).toMatchObject([{ version: 1, amount: '1234.50', closed: null, url: made()[0]?.['url'] }]);
  });

  test('the document prints our own page, which never goes stale', async () => {
    await owing();
    await delivered();
    const [document] = await world.documents();
    expect(document?.payment_link).toMatch(/^http:\/\/127\.0\.0\.1:8080\/pay\/[\w-]{32}$/);
  });

  test('looking again makes nothing new and asks Stripe nothing', async () => {
    await owing();
    await delivered();
    const asked = stripe.requests.length;
    expect(await world.deliver()).toEqual([]);
    expect(stripe.requests.length).toBe(asked);
  });

  test('a month that owes nothing has no link, and no call is made', async () => {
    await owing('0.00');
    expect(await delivered()).toMatchObject({ status: 'sent' });
    expect(stripe.requests).toEqual([]);
  });

  test.each([
    ['above eight digits', '1000000.00', 'USD', /more than Stripe accepts/],
    ['below the least', '0.49', 'USD', /minimum of 0\.50/],
    ['in a currency of three decimals that does not end in 0', '10.005', 'KWD', /steps of 0\.010/],
    ['in a currency that Stripe does not know', '10.0000', 'CLF', /no payments in CLF/],
  ])(
    'an amount %s gets no link, goes out with instructions, and the reason is kept',
    async (_, amount, currency, why) => {
      withLinks({ provider: 'stripe', printed_url: 'page', methods: ['card'] });
      await owing(amount, currency);
      expect(await delivered()).toMatchObject({ status: 'sent', link: expect.stringMatching(why) });
      expect(stripe.requests).toEqual([]);
      const [wait] = await world.sql<{ kind: string; reason: string }>('SELECT kind, reason FROM payment_link_waits');
      expect(wait).toMatchObject({ kind: 'limit', reason: expect.stringMatching(why) });
      // Known for today: nothing is left to do.
      expect(await world.deliver()).toEqual([]);
    },
  );

  test('outside of US dollars there is no ACH debit: the link takes cards only', async () => {
    await owing('70.00', 'EUR');
    await delivered();
    expect(made()[0]).toMatchObject({ payment_method_types: ['card'], currency: 'eur' });
  });

  test('with ACH debit alone, an invoice in euros has no link', async () => {
    withLinks({ provider: 'stripe', printed_url: 'page', methods: ['us_bank_account'] });
    await owing('70.00', 'EUR');
    expect(await delivered()).toMatchObject({
      status: 'sent',
      link: 'has no payment link: none of us_bank_account can pay in EUR',
    });
  });

  test('without a key the document goes out, and its link is made once there is one', async () => {
    await owing();
    const { environment } = world;
    world.environment = { ...environment, stripeKey: undefined };
    expect(await delivered()).toMatchObject({
      status: 'sent',
      link: 'its payment link waits: STRIPE_SECRET_KEY is not set',
    });
    world.environment = environment;
    expect(await delivered()).toMatchObject({ status: 'sent' });
    expect(stripe.activeLinks()).toHaveLength(1);
  });
});

describe('when Stripe fails', () => {
  test('an answer lost after the link was made: the same key gives that link again', async () => {
    stripe.fail(LINKS, { how: 'drop_after' }, CLOSED_ON);
    await owing();
    expect(await delivered()).toMatchObject({ status: 'sent', link: expect.stringContaining('cannot be reached') });
    expect(await delivered()).toEqual({
      number: 'INV-2026-000001',
      status: 'sent',
      detail: expect.any(String),
      before: true,
    });
    expect(made()).toHaveLength(1);
    expect(new Set(creations().map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    expect(creations().map(({ replayed }) => replayed)).toEqual([false, true, true]);
  });

  test('a connection lost before anything was done: the next look makes the link', async () => {
    stripe.fail(LINKS, { how: 'drop_before' }, CLOSED_ON);
    await owing();
    await delivered();
    await delivered();
    expect(stripe.activeLinks()).toHaveLength(1);
  });

  test('a 500 although the link was made, which its key would repeat: it is found by its metadata', async () => {
    stripe.fail(LINKS, { how: 'fail_after' });
    await owing();
    expect(await delivered()).not.toHaveProperty('link');
    expect(made()).toHaveLength(1);
    expect(await world.sql('SELECT found FROM payment_link_objects')).toEqual([{ found: true }]);
  });

  test('a 500 before anything was done: nothing is found, and a new key makes the link later', async () => {
    stripe.fail(LINKS, { how: 'fail_before' });
    await owing();
    expect(await delivered()).toMatchObject({ status: 'sent', link: expect.stringContaining('unknown error') });
    expect(await delivered()).not.toHaveProperty('link');
    expect(made()).toHaveLength(1);
    expect(await world.sql('SELECT attempt FROM payment_link_attempts ORDER BY 1')).toEqual([
      { attempt: 1 },
      { attempt: 2 },
    ]);
  });

  test('an answer lost for more than a day, when the key is forgotten: it is found by its metadata', async () => {
    stripe.fail(LINKS, { how: 'drop_after' }, CLOSED_ON);
    await owing();
    await delivered();
    world.at('2026-08-03T10:00:00Z');
    expect(await delivered()).not.toHaveProperty('link');
    expect(made()).toHaveLength(1);
    expect(creations()).toHaveLength(CLOSED_ON);
  });

  test('among more links than a page holds it is found all the same', async () => {
    stripe.fail(LINKS, { how: 'drop_after' }, CLOSED_ON);
    await owing();
    await delivered();
    const [lost] = made();
    for (let other = 0; other < 250; other += 1) {
      const id = stripe.state.newId('plink');
      stripe.state.paymentLinks.set(id, {
        ...lost,
        id,
        object: 'payment_link',
        metadata: { invoice: `other-${other}` },
      });
    }
    world.at('2026-08-03T10:00:00Z');
    await delivered();
    expect(await world.sql('SELECT provider_id, found FROM payment_link_objects')).toEqual([
      { provider_id: lost?.id, found: true },
    ]);
  });

  test('two links of one version, from two attempts: one stays', async () => {
    stripe.fail(LINKS, { how: 'drop_after' }, CLOSED_ON);
    await owing();
    await delivered();
    const [lost] = made();
    const id = stripe.state.newId('plink');
    stripe.state.paymentLinks.set(id, { ...lost, id, object: 'payment_link', url: `${lost?.['url']}2` });
    world.at('2026-08-03T10:00:00Z');
    await delivered();
    expect(stripe.activeLinks().map((link) => link.id)).toEqual([lost?.id]);
  });

  test('asked to slow down, it does, and the link is made in the same look', async () => {
    stripe.fail(LINKS, { how: 'rate_limited', retryAfterSeconds: 1 }, 2);
    await owing();
    expect(await delivered()).not.toHaveProperty('link');
    const times = creations().map(({ at }) => at);
    expect(times).toHaveLength(3);
    expect((times[2] as number) - (times[0] as number)).toBeGreaterThan(1900);
  });

  test('Stripe down for all: every document is sent, one finds out, and the rest do not wait for it', async () => {
    stripe.fail('*', { how: 'drop_before' }, Number.POSITIVE_INFINITY);
    const ids = Array.from({ length: 20 }, (_, index) => `p-${index + 10}`);
    await world.partners(ids.map((partner_id) => partner({ partner_id })));
    await world.rows(ids.map((partner_id) => quote({ partner_id })));
    await world.close();
    const deliveries = await world.deliver();
    expect(deliveries.filter(({ status }) => status === 'sent')).toHaveLength(20);
    // Four work at once, and may all have been on their way.
    expect(stripe.requests.length).toBeLessThanOrEqual(4 * CLOSED_ON);
    expect(await attention()).toEqual([]);
    await world.sql(`UPDATE payment_link_waits SET since = now() - interval '2 hours'`);
    expect(await attention()).toEqual(
      Array.from({ length: 20 }, () => expect.stringMatching(/^INV-2026-\d+: no payment link for more than an hour/)),
    );
    stripe.heal();
    await world.deliver();
    expect(stripe.activeLinks()).toHaveLength(20);
    expect(await attention()).toEqual([]);
  });

  test('a key that Stripe refuses is told, and never repeated in the reason', async () => {
    const { environment } = world;
    world.environment = { ...environment, stripeKey: 'sk_test_revoked' };
    await owing();
    const { link } = await delivered();
    expect(link).toMatch(/refuses STRIPE_SECRET_KEY/);
    expect(link).not.toContain('sk_test_revoked');
    world.environment = environment;
    await delivered();
    expect(stripe.activeLinks()).toHaveLength(1);
  });

  test('a request that Stripe refuses is left for a day, unless other methods are set', async () => {
    // The stand-in asks for 0.10 at least where no table tells: Stripe's own answer decides there.
    await owing('0.05', 'ZAR');
    expect(await delivered()).toMatchObject({ status: 'sent', link: expect.stringContaining('at least') });
    expect(await world.deliver()).toEqual([]);
    expect(await versions()).toMatchObject([{ version: 1, closed: 'refused', provider_id: null }]);
    expect(await attention()).toContainEqual(expect.stringContaining('the processor refused the payment link'));
    await world.sql(`UPDATE payment_link_waits SET noted_at = now() - interval '2 days'`);
    await delivered();
    expect(await versions()).toMatchObject([{ closed: 'refused' }, { version: 2, closed: 'refused' }]);
  });
});

describe('when what is owed changes', () => {
  async function linked(): Promise<string> {
    await owing();
    await delivered();
    return made()[0]?.id as string;
  }

  test('a void invoice has no active link, and its open sessions are expired', async () => {
    const id = await linked();
    const session = stripe.visit(id);
    await voidIt();
    expect(await delivered()).not.toHaveProperty('link');
    expect(stripe.activeLinks()).toEqual([]);
    expect(stripe.state.sessions.get(session?.id as string)).toMatchObject({ status: 'expired' });
    expect(await versions()).toMatchObject([{ closed: 'void' }]);
    expect(await world.sql('SELECT sessions_expired FROM payment_link_closings')).toEqual([{ sessions_expired: 1 }]);
  });

  test('a paid invoice has no active link', async () => {
    await linked();
    await writeOff('7.00');
    await delivered();
    expect(stripe.activeLinks()).toEqual([]);
    expect(await versions()).toMatchObject([{ closed: 'paid' }]);
  });

  test('another balance is another link, and the one before is switched off first', async () => {
    await linked();
    await writeOff('2.00');
    await delivered();
    expect(stripe.activeLinks()).toMatchObject([
      { metadata: { version: '2' }, line_items: [{ price_data: { unit_amount: 500 } }] },
    ]);
    expect(await versions()).toMatchObject([
      { closed: 'amount_changed' },
      { version: 2, amount: '5.00', closed: null },
    ]);
    const changes = stripe.requests.filter(({ method }) => method === 'POST').map(({ path }) => path);
    expect(changes).toEqual([
      '/v1/payment_links',
      expect.stringContaining('/v1/payment_links/plink_'),
      '/v1/payment_links',
    ]);
  });

  test('the story of the invoice tells of its links, and has none', async () => {
    const id = await linked();
    stripe.visit(id);
    await writeOff('2.00');
    await delivered();
    const [row] = await world.sql<{ id: string }>('SELECT document_id AS id FROM documents');
    const story = await world.database.reading((tx) => readHistory(tx, Number(row?.id)));
    expect(story.map(({ says }) => says).filter((says) => says.includes('link '))).toEqual([
      'payment link made',
      'link 1 created at Stripe for 7.00 USD',
      'link 1 for 7.00 USD deactivated because the balance changed, with 1 open session',
      'link 2 created at Stripe for 5.00 USD',
    ]);
    expect(JSON.stringify(story)).not.toMatch(/https?:|\/pay\/|\/outbox/);
  });

  test('a rest too small for Stripe switches the link off and has none', async () => {
    await linked();
    await writeOff('6.80');
    expect(await delivered()).toMatchObject({ link: expect.stringContaining('minimum of') });
    expect(stripe.activeLinks()).toEqual([]);
  });

  test('a session paid while the link is switched off is left as it is', async () => {
    const id = await linked();
    const session = stripe.visit(id);
    stripe.complete(session?.id as string);
    await voidIt();
    await delivered();
    expect(stripe.state.sessions.get(session?.id as string)).toMatchObject({ status: 'complete' });
    expect(await versions()).toMatchObject([{ closed: 'void' }]);
  });

  test('switching off is tried until Stripe has confirmed it, and status says so', async () => {
    await linked();
    await voidIt();
    stripe.fail('POST /v1/payment_links/*', { how: 'fail_before' });
    expect(await delivered()).toMatchObject({ link: expect.stringContaining('unknown error') });
    expect(await versions()).toMatchObject([{ closed: null }]);
    expect(await attention()).toContainEqual(
      expect.stringMatching(/^INV-2026-000001: an active payment link asks for more than the balance \(Stripe: An unk/),
    );
    await delivered();
    expect(stripe.activeLinks()).toEqual([]);
    expect((await attention()).filter((sentence) => sentence.includes('link'))).toEqual([]);
    expect(await world.sql('SELECT * FROM payment_link_waits')).toEqual([]);
  });

  test('an invoice void before its lost answer was found leaves no link behind', async () => {
    stripe.fail(LINKS, { how: 'drop_after' }, CLOSED_ON);
    await owing();
    await delivered();
    await voidIt();
    await delivered();
    expect(stripe.activeLinks()).toEqual([]);
    expect(await versions()).toMatchObject([{ closed: 'void', provider_id: made()[0]?.id }]);
  });

  test('a link is switched off under other settings too', async () => {
    await linked();
    withLinks({ provider: 'page' });
    expect(await world.deliver()).toEqual([]);
    expect(stripe.activeLinks()).toHaveLength(1);
    await voidIt();
    await delivered();
    expect(stripe.activeLinks()).toEqual([]);
  });

  test('what a void invoice had not sent yet is withdrawn', async () => {
    await owing();
    await voidIt();
    expect(await delivered()).toMatchObject({ status: 'withdrawn' });
    expect(await world.sql('SELECT status FROM document_emails')).toEqual([{ status: 'withdrawn' }]);
    expect(stripe.requests).toEqual([]);
  });

  test('two links of one document cannot both be open: the second version waits for the end of the first', async () => {
    await linked();
    const second = `INSERT INTO payment_link_intents (document_id, version, provider, amount, currency, request, intended_at)
      SELECT document_id, 2, 'stripe', 5, 'USD', '{}', now() FROM payment_link_intents`;
    await expect(world.sql(second)).rejects.toThrow(/payment_link_follows_a_closed_one/);
  });
});

test('many workers at one invoice make one link, and switch it off once', async () => {
  await owing();
  const [row] = await world.sql<{ id: string }>('SELECT document_id AS id FROM documents');
  const worker = () => {
    const links = linkProvider(world.settings, world.environment);
    return syncPaymentLink({ ...world, links }, Number(row?.id));
  };
  const together = () => Promise.all([1, 2, 3, 4].map(worker));
  const urls = (await together()).map((state) => (state.status === 'in_sync' ? state.url : state.reason));
  expect(new Set(urls)).toEqual(new Set([made()[0]?.['url']]));
  await writeOff('2.00');
  await together();
  expect(stripe.activeLinks()).toMatchObject([{ metadata: { version: '2' } }]);
  expect(made()).toHaveLength(2);
  await voidIt();
  await together();
  expect(stripe.activeLinks()).toEqual([]);
});

describe("printing the provider's URL", () => {
  beforeEach(() => withLinks({ provider: 'stripe', printed_url: 'provider', methods: ['card'] }));

  test('the document prints the link itself', async () => {
    await owing();
    expect(await delivered()).toMatchObject({ status: 'sent' });
    const [document] = await world.documents();
    expect(document?.payment_link).toBe(made()[0]?.['url']);
  });

  test('it waits a little while Stripe is down, then goes out with bank instructions', async () => {
    stripe.fail('*', { how: 'drop_before' }, Number.POSITIVE_INFINITY);
    await owing();
    expect(await delivered()).toMatchObject({ status: 'deferred', detail: expect.stringContaining('payment link') });
    await world.sql(`UPDATE payment_link_waits SET since = now() - interval '16 minutes'`);
    expect(await delivered()).toMatchObject({ status: 'sent' });
    const [document] = await world.documents();
    expect(document?.payment_link).toBeNull();
    stripe.heal();
    await delivered();
    expect(stripe.activeLinks()).toHaveLength(1);
    // What was sent stays as it was sent.
    expect((await world.documents())[0]?.payment_link).toBeNull();
  });

  test('an amount that Stripe does not take goes out at once', async () => {
    await owing('2000000.00');
    expect(await delivered()).toMatchObject({ status: 'sent' });
  });

  test('without a key the document is held: the settings ask for what cannot be', async () => {
    await owing();
    const { environment } = world;
    world.environment = { ...environment, stripeKey: undefined };
    expect(await delivered()).toMatchObject({ status: 'held', detail: expect.stringContaining('STRIPE_SECRET_KEY') });
    world.environment = environment;
    expect(await delivered()).toMatchObject({ status: 'sent' });
  });
});
