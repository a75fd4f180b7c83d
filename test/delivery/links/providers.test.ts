/** What a document prints under each provider, and whether it would print the same again. */
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Environment, readEnvironment } from '../../../src/config/environment.ts';
import { linkProvider, urlBehindPage } from '../../../src/delivery/payment-link.ts';
import { Amount } from '../../../src/money.ts';
import { signedUrl } from '../../../src/processors/links/template.ts';
import type { PaymentProcessor, ProcessorAccess } from '../../../src/processors/processor.ts';
import { PROCESSORS } from '../../../src/processors/processors.ts';
import { stripe } from '../../../src/processors/stripe/stripe.ts';
import { startOver } from '../../close/start-over.ts';
import { openWorld, partner, quote, type World } from '../../support/world.ts';

const SECRET = '0123456789abcdef0123456789abcdef';
const TEMPLATE =
  'https://pay.example/i/{number}?amount={amount}&currency={currency}&to={partner_id}&due={due_on}&t={token}';
const VALUES = {
  number: 'INV-1',
  partner_id: 'p-1',
  amount: '7.00',
  currency: 'USD',
  due_on: '',
  expires: '1',
  token: 't',
};

let world: World;
let environment: Environment;
beforeAll(async () => {
  world = await openWorld();
  environment = world.environment;
});
afterAll(() => world.end());
beforeEach(async () => {
  world.environment = environment;
  await startOver(world);
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
});

type Links = World['settings']['payment_link'];

async function printedUnder(payment_link: Links, own: Partial<Environment> = {}): Promise<string | null | undefined> {
  world.settings = { ...world.settings, payment_link };
  world.environment = { ...environment, ...own };
  expect(await world.deliver()).toMatchObject([{ status: 'sent' }]);
  return (await world.documents())[0]?.payment_link;
}

const template = (printed_url: 'page' | 'provider'): Links => ({
  provider: 'template',
  template: TEMPLATE,
  signature_parameter: 'signature',
  printed_url,
});

const signed = (text: string, values = VALUES, secret = SECRET): string =>
  signedUrl({ template: text, signatureParameter: 's', secret }, values);

describe('a template', () => {
  test('is filled in and signed over everything before the signature', async () => {
    const url = await printedUnder(template('provider'), { linkSecret: SECRET });
    const [, filled, signature] = /^(.*)&signature=([0-9a-f]{64})$/.exec(url ?? '') ?? [];
    expect(filled).toMatch(
      /^https:\/\/pay\.example\/i\/INV-2026-000001\?amount=7\.00&currency=USD&to=p-1&due=2026-08-31&t=[\w-]{32}$/,
    );
    expect(signature).toBe(
      createHmac('sha256', SECRET)
        .update(filled as string)
        .digest('hex'),
    );
  });

  test('gives the same URL for the same values, and another for another amount or secret', () => {
    expect(signed(TEMPLATE)).toBe(signed(TEMPLATE));
    const other = signed(TEMPLATE, { ...VALUES, amount: '8.00' });
    expect(new Set([signed(TEMPLATE), other, signed(TEMPLATE, VALUES, `${SECRET}2`)]).size).toBe(3);
  });

  test('keeps what a value says in its place', () => {
    const partner_id = 'a&b=c/../d';
    const url = new URL(signed('https://pay.example/{partner_id}?p={partner_id}', { ...VALUES, partner_id }));
    expect({ path: url.pathname, p: url.searchParams.get('p') }).toEqual({
      path: '/a%26b%3Dc%2F..%2Fd',
      p: partner_id,
    });
  });

  test('begins its query where it has none', () => {
    expect(signed('https://pay.example/{number}')).toMatch(/^https:\/\/pay\.example\/INV-1\?s=[0-9a-f]{64}$/);
  });

  test('that names {expires} ends some days after the due date, on the same second whatever was paid since', async () => {
    const payment_link = { ...template('provider'), template: 'https://pay.example/{number}?expires={expires}' };
    const facts = { number: 'INV-1', partnerId: 'p-1', amount: Amount.of('7', 'USD'), dueOn: '2026-08-31' };
    const urls = [{}, { expires_days: 0 }, { expires_days: 30 }].map((own) =>
      urlBehindPage({ payment_link: { ...payment_link, ...own } }, { ...environment, linkSecret: SECRET }, 'token', {
        ...facts,
        expiresAfter: '2026-08-31',
      }),
    );
    const at = (day: string) => String(Date.parse(`${day}T00:00:00Z`) / 1000);
    expect(urls.map((url) => new URL(url as string).searchParams.get('expires'))).toEqual([
      at('2026-11-29'),
      at('2026-08-31'),
      at('2026-09-30'),
    ]);
    expect(await printedUnder(payment_link, { linkSecret: SECRET })).toContain(
      `expires=${at('2026-11-29')}&signature=`,
    );
  });

  test('behind our own page, the document prints the page', async () => {
    expect(await printedUnder(template('page'), { linkSecret: SECRET })).toMatch(/127\.0\.0\.1:8080\/pay\//);
  });

  test('that is to be printed and cannot be signed holds the document', async () => {
    world.settings = { ...world.settings, payment_link: template('provider') };
    const held = { status: 'held', detail: expect.stringContaining('PAYMENT_LINK_SECRET') };
    expect(await world.deliver()).toMatchObject([held]);
  });
});

describe('the check of a link in docs/settings.md', () => {
  const NAMED = 'https://pay.example/{number}?amount={amount}&expires={expires}';
  const AT = Date.UTC(2026, 10, 23);
  const linkUntil = (millis: number) =>
    signedUrl(
      { template: NAMED, signatureParameter: 'signature', secret: SECRET },
      { ...VALUES, expires: String(millis / 1000) },
    );
  let openLink: (url: string, secret: string, now: number) => Record<string, string> | null;
  beforeAll(async () => {
    const page = readFileSync(new URL('../../../docs/settings.md', import.meta.url), 'utf8');
    const code = /```js\n([^`]*openLink[^`]*)```/.exec(page)?.[1] as string;
    ({ openLink } = await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(code)}`));
  });

  test('opens a link that we signed, until it expires', () => {
    const url = linkUntil(AT);
    expect(openLink(url, SECRET, AT - 1)).toEqual({ amount: '7.00', expires: String(AT / 1000) });
    expect(openLink(url, SECRET, AT)).toBeNull();
  });

  test.each<[string, (url: string) => string]>([
    ['a later expiry', (url) => url.replace(/expires=\d+/, 'expires=9999999999')],
    ['another amount', (url) => url.replace('7.00', '0.01')],
    ['a parameter behind the signature', (url) => `${url}&amount=0.01`],
    ['a second signature behind it', (url) => `${url}&amount=0.01&signature=${'0'.repeat(64)}`],
    ['a fragment of the signature', (url) => url.slice(0, -1)],
    ['no signature', (url) => url.replace(/&signature=.*/, '')],
    ['another page', (url) => url.replace('INV-1', 'INV-2')],
  ])('refuses %s', (_, changed) => {
    expect(openLink(changed(linkUntil(AT)), SECRET, AT - 1)).toBeNull();
  });

  test('refuses another secret, and a link that names no expiry', () => {
    expect(openLink(linkUntil(AT), `${SECRET}2`, AT - 1)).toBeNull();
    const forever = { template: 'https://pay.example/{number}', signatureParameter: 'signature', secret: SECRET };
    expect(openLink(signedUrl(forever, VALUES), SECRET, AT)).toBeNull();
  });
});

test('with no provider the document prints no link, and says how to pay by bank', async () => {
  expect(await printedUnder({ provider: 'none' })).toBeNull();
});

test('no public_url is needed where the page is not printed', async () => {
  world.settings = { ...world.settings, public_url: '' };
  expect(await printedUnder({ provider: 'none' })).toBeNull();
});

test('a link matches while it would be printed alike', () => {
  const facts = {
    number: 'INV-1',
    partnerId: 'p-1',
    amount: Amount.of('7', 'USD'),
    dueOn: '2026-08-31',
    expiresAfter: '2026-08-31',
  };
  const { settings } = world;
  const kept = { provider: 'page', token: 'abc', url: 'http://127.0.0.1:8080/pay/abc' };
  const matches = (own: Partial<typeof settings>, link: typeof kept | null, secret?: string) =>
    linkProvider({ ...settings, ...own }, { ...environment, linkSecret: secret }).matches(link, facts);
  expect(matches({}, kept)).toBe(true);
  expect(matches({ public_url: 'https://other.example' }, kept)).toBe(false);
  expect(matches({ payment_link: { provider: 'none' } }, kept)).toBe(false);
  expect(matches({ payment_link: { provider: 'none' } }, null)).toBe(true);
  expect(matches({}, null)).toBe(false);

  const stripe = { ...kept, provider: 'stripe', url: 'https://buy.stripe.com/test_1' };
  const printsStripe: Links = { provider: 'stripe', printed_url: 'provider', methods: ['card'] };
  const withKey = linkProvider({ ...settings, payment_link: printsStripe }, { ...environment, stripeKey: 'sk_test_1' });
  expect([withKey.matches(stripe, facts), withKey.matches(kept, facts)]).toEqual([true, false]);

  const byTemplate = { payment_link: template('provider') };
  const url = urlBehindPage(byTemplate, { ...environment, linkSecret: SECRET }, 'abc', facts) as string;
  expect(matches(byTemplate, { provider: 'template', token: 'abc', url }, SECRET)).toBe(true);
  // A printed link keeps matching while the page accepts the previous secret.
  const printedBefore = (linkSecretBefore?: string) =>
    linkProvider(
      { ...settings, ...byTemplate },
      { ...environment, linkSecret: `${SECRET}-new`, linkSecretBefore },
    ).matches({ provider: 'template', token: 'abc', url }, facts);
  expect([printedBefore(), printedBefore(SECRET)]).toEqual([false, true]);
  expect(matches(byTemplate, { ...kept, url: `${url}0` }, SECRET)).toBe(false);
});

test('each processor is opened with its own key, and one without a key is not opened', () => {
  const opened: ProcessorAccess[] = [];
  const other = (name: string, access: PaymentProcessor['access']): PaymentProcessor => ({
    ...stripe,
    name,
    access,
    paymentLinks: {
      ...stripe.paymentLinks,
      open(given) {
        opened.push(given);
        return stripe.paymentLinks.open(given);
      },
    },
  });
  const list = PROCESSORS as PaymentProcessor[];
  list.push(
    other('second', () => ({ key: 'key_of_second' })),
    other('third', () => undefined),
  );
  try {
    const { processors } = linkProvider(world.settings, { ...environment, stripeKey: 'sk_test_1' });
    expect([...processors.keys()]).toEqual(['stripe', 'second']);
    expect(opened).toEqual([{ key: 'key_of_second' }]);
  } finally {
    list.splice(-2);
  }
});

describe('secrets come from the environment, and of the right kind', () => {
  const production = { RECKONER_ENVIRONMENT: 'production' };
  test.each([
    ['a live key in sandbox', { STRIPE_SECRET_KEY: 'sk_live_abc' }, /is a live key, and this is sandbox/],
    ['a restricted live key in sandbox', { STRIPE_SECRET_KEY: 'rk_live_abc' }, /is a live key/],
    [
      'a test key in production',
      { ...production, STRIPE_SECRET_KEY: 'sk_test_abc' },
      /is a test key, and this is prod/,
    ],
    ['a publishable key', { STRIPE_SECRET_KEY: 'pk_test_abc' }, /must be a secret or restricted key/],
    ['a stand-in in production', { ...production, STRIPE_API_BASE: 'http://127.0.0.1:1' }, /in sandbox only/],
    ['a stand-in that is no URL', { STRIPE_API_BASE: 'localhost' }, /STRIPE_API_BASE must be a URL/],
    ['a short secret', { PAYMENT_LINK_SECRET: 'short' }, /at least 32 characters/],
  ])('%s is refused', (_, variables, says) => {
    expect(() => readEnvironment(variables)).toThrow(says);
  });

  test('the refusal does not repeat the key', () => {
    expect(() => readEnvironment({ STRIPE_SECRET_KEY: 'sk_live_secretpart' })).not.toThrow(/secretpart/);
  });

  test('what fits is taken', () => {
    const read = readEnvironment({ STRIPE_SECRET_KEY: 'rk_test_abc', PAYMENT_LINK_SECRET: SECRET });
    expect(read).toMatchObject({ stripeKey: 'rk_test_abc', linkSecret: SECRET, stripeBase: undefined });
    expect(readEnvironment({ ...production, STRIPE_SECRET_KEY: 'sk_live_abc' }).stripeKey).toBe('sk_live_abc');
  });
});
