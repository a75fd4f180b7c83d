/** What a document prints under each provider, and whether it would print the same again. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Environment, readEnvironment } from '../../../src/config/environment.ts';
import { linkProvider } from '../../../src/delivery/payment-link.ts';
import type { PaymentProcessor, ProcessorAccess } from '../../../src/processors/processor.ts';
import { PROCESSORS } from '../../../src/processors/processors.ts';
import { stripe } from '../../../src/processors/stripe/stripe.ts';
import { startOver } from '../../close/start-over.ts';
import { openWorld, partner, quote, type World } from '../../support/world.ts';

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

test('with no provider the document prints no link, and says how to pay by bank', async () => {
  expect(await printedUnder({ provider: 'none' })).toBeNull();
});

test('no public_url is needed where the page is not printed', async () => {
  world.settings = { ...world.settings, public_url: '' };
  expect(await printedUnder({ provider: 'none' })).toBeNull();
});

test('a link matches while it would be printed alike', () => {
  const { settings } = world;
  const kept = { provider: 'page', token: 'abc', url: 'http://127.0.0.1:8080/pay/abc' };
  const matches = (own: Partial<typeof settings>, link: typeof kept | null) =>
    linkProvider({ ...settings, ...own }, environment).matches(link);
  expect(matches({}, kept)).toBe(true);
  expect(matches({ public_url: 'https://other.example' }, kept)).toBe(false);
  expect(matches({ payment_link: { provider: 'none' } }, kept)).toBe(false);
  expect(matches({ payment_link: { provider: 'none' } }, null)).toBe(true);
  expect(matches({}, null)).toBe(false);

  const stripe = { ...kept, provider: 'stripe', url: 'https://buy.stripe.com/test_1' };
  const printsStripe: Links = { provider: 'stripe', printed_url: 'provider', methods: ['card'] };
  const withKey = linkProvider({ ...settings, payment_link: printsStripe }, { ...environment, stripeKey: 'sk_test_1' });
  expect([withKey.matches(stripe), withKey.matches(kept)]).toEqual([true, false]);
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
    ['a short secret', { WEBHOOK_SIGNING_KEY: 'short' }, /at least 32 characters/],
  ])('%s is refused', (_, variables, says) => {
    expect(() => readEnvironment(variables)).toThrow(says);
  });

  test('the refusal does not repeat the key', () => {
    expect(() => readEnvironment({ STRIPE_SECRET_KEY: 'sk_live_secretpart' })).not.toThrow(/secretpart/);
  });

  test('what fits is taken', () => {
    const read = readEnvironment({ STRIPE_SECRET_KEY: 'rk_test_abc' });
    expect(read).toMatchObject({ stripeKey: 'rk_test_abc', stripeBase: undefined });
    expect(readEnvironment({ ...production, STRIPE_SECRET_KEY: 'sk_live_abc' }).stripeKey).toBe('sk_live_abc');
  });
});
