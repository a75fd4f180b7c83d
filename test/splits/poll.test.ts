/** Reading a connected account at the processor: whole, again from before its end, and interrupted anywhere. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AccountReading, accessTo, OVERLAP_HOURS, readAccount } from '../../src/splits/poll.ts';
import { refusalOf } from '../close/refusal.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { payout, share, type Told } from './balance-transactions.ts';

let world: World;
let stripe: StripeStandIn;

beforeAll(async () => {
  stripe = await startStripe();
  world = await openWorld({ stripe: stripe.url });
  world.environment = { ...world.environment, connectedKeys: new Map([['acct_1', 'sk_test_acct1']]) };
  await world.partners([
    partner({
      ...{ arrangement: 'connected_account', connected_account_id: 'acct_1' },
      ...{ merchant_of_record: 'platform', split: 'real_time' },
    }),
  ]);
  await world.rows([quote({ quote_id: 'q-first' }), quote({ quote_id: 'q-lost' })]);
});
afterAll(async () => {
  await world.end();
  await stripe.close();
});

const moves = (...balance_transactions: Told[]) => {
  for (const each of balance_transactions) stripe.state.balanceTransactions.set(each.id, { ...each });
};
const read = (): Promise<AccountReading> => readAccount(world.database, world, accessTo(world.environment, 'acct_1'));
const asked = () => stripe.requests.at(-1)?.params as { created?: { gte: string } };

test('the first reading gets everything, over several pages', async () => {
  moves(share(700, '2026-07-15T12:00:00Z', { quote_id: 'q-first' }));
  for (let made = 0; made < 250; made += 1) moves(payout(100, '2026-07-16T12:00:00Z', { automatic: false }));
  expect(await read()).toEqual({ account: 'acct_1', read: 251, recorded: 251, duplicates: 0, matched: 1 });
  expect(asked().created).toBeUndefined();
});

test('the next reading overlaps the last, and finds what became visible later', async () => {
  world.at('2026-08-02T10:00:00Z');
  moves(share(700, '2026-07-31T12:00:00Z', { quote_id: 'q-lost' }));
  expect(await read()).toMatchObject({ read: 1, recorded: 1, matched: 1 });
  const cursor = Date.parse('2026-08-01T10:00:00Z') / 1000;
  expect(Number(asked().created?.gte)).toBe(cursor - OVERLAP_HOURS * 3600);
  expect(await read()).toMatchObject({ read: 1, recorded: 0, duplicates: 1 });
});

test('an interrupted reading moves no cursor', async () => {
  const cursor = () => world.sql(`SELECT max(read_to) FROM processor_readings`);
  const before = await cursor();
  world.at('2026-08-03T10:00:00Z');
  stripe.fail('GET /v1/balance_transactions', { how: 'drop_before' }, Number.POSITIVE_INFINITY);
  expect(await refusalOf(read())).toMatchObject({ code: 'processor_unreachable', facts: { account: 'acct_1' } });
  stripe.heal();
  expect(await cursor()).toEqual(before);
  expect(await read()).toMatchObject({ duplicates: 1 });
});

test('a clock days behind the last reading is refused', async () => {
  world.at('2026-07-20T10:00:00Z');
  expect(await refusalOf(read())).toMatchObject({ code: 'clock_behind', facts: { number: 'acct_1', action: 'read' } });
  world.at('2026-08-03T10:00:00Z');
});

test('without a key the refusal names the variable', () => {
  const { environment } = world;
  expect(() => accessTo(environment, 'acct_other')).toThrow(/STRIPE_SECRET_KEY_acct_other/);
});
