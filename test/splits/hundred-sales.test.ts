/**
 * A hundred sales at a checkout where cards decline, answers get lost, customers take their time for 3-D Secure or give it
 * up, and search comes late: one payment and one transfer each, and the ledger reconciles to zero.
 */
import { expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { SplitUnfinished } from '../../src/processors/stripe/splits/execute.ts';
import { planQuote } from '../../src/splits/accepted.ts';
import { accessTo, readAccount } from '../../src/splits/poll.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { seeded } from '../support/random.ts';
import { releaseFees } from '../support/stripe/accounts.ts';
import { authenticate } from '../support/stripe/payment-intents.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { CONTROLLED, HOST, openPlatform, type Platform, REAL, SEQUENTIAL } from './platform.ts';

const SALES = 100;
const METHODS = ['pm_card_visa', 'pm_card_visa_chargeDeclined', 'pm_card_threeDSecure2Required'];
const CALLS = [
  'POST /v1/payment_intents',
  'POST /v1/payment_intents/*',
  'GET /v1/payment_intents/*',
  'POST /v1/transfers',
  'POST /v1/charges/*',
];
const FAULTS = ['drop_before', 'drop_after', 'fail_before', 'fail_after', 'busy', 'rate_limited'] as const;

test('a hundred sales are a hundred payments and a hundred transfers, and reconcile to zero', async () => {
  const { seed, random } = seeded();
  const platform = await openPlatform();
  const world = await openWorld({ stripe: platform.standIn.url });
  try {
    const { sold, tries, faults } = await sell(platform, world, random);
    const made = {
      paid: platform.objects('payment_intent').filter(({ status }) => status === 'succeeded').length,
      charges: platform.objects('charge').filter(({ source_transfer }) => source_transfer === null).length,
      transfers: platform.objects('transfer').length,
    };
    expect({ seed, sold, ...made }).toEqual({ seed, sold: SALES, paid: SALES, charges: SALES, transfers: SALES });
    expect(
      new Set(platform.objects('transfer').map(({ metadata }) => (metadata as { quote_id: string }).quote_id)).size,
    ).toBe(SALES);
    // A third of the price is the partner's; the operator's sales leave a fee of 1.00 on the platform.
    expect(platform.balances()[2]).toBe(SALES * 700);

    world.at('2026-08-20T12:00:00Z');
    platform.now = new Date('2026-08-20T12:00:00Z');
    await readAccount(world.database, world, accessTo(world.environment, 'acct_us'));
    const found = await world.database.reading((tx) =>
      reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, '2026-07' as Month),
    );
    expect(found.exceptions).toEqual([]);
    const open = await world.sql<{ open: string }>(
      `SELECT coalesce(sum(amount), 0)::text AS open FROM journal WHERE account LIKE 'assets:receivable:processor:%'`,
    );
    expect(Number(open[0]?.open)).toBe(0);
    const { checks } = await world.verify();
    expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
    process.stdout.write(`seed ${seed}: ${sold} sales in ${tries} tries with ${faults} faults\n`);
  } finally {
    await world.end();
    await platform.standIn.close();
  }
});

/** Sells through three partners who split in three ways, until every sale is through. */
async function sell(
  platform: Platform,
  world: World,
  random: () => number,
): Promise<{ sold: number; tries: number; faults: number }> {
  const { state } = platform.standIn;
  const pick = <Each>(from: readonly Each[]): Each => from[Math.floor(random() * from.length)] as Each;
  world.environment = { ...world.environment, connectedKeys: new Map([['acct_us', 'sk_test_us']]) };
  const routings = { 'p-real': REAL, 'p-host': SEQUENTIAL, 'p-slow': CONTROLLED };
  await world.partners(
    Object.entries(routings).map(([partner_id, routing]) =>
      partner({ partner_id, arrangement: 'connected_account', ...routing }),
    ),
  );
  const sales = Array.from({ length: SALES }, (_, nth) => ({
    partnerId: pick(Object.keys(routings)) as keyof typeof routings,
    quoteId: `q-${nth}`,
  }));
  const accepted_at = '2026-07-15T12:00:00Z';
  await world.rows(
    sales.map(({ partnerId, quoteId }) => quote({ partner_id: partnerId, quote_id: quoteId, accepted_at })),
  );
  let [tries, faults] = [0, 0];
  let waiting = sales;
  while (waiting.length > 0) {
    const left: typeof sales = [];
    for (const sale of waiting) {
      tries += 1;
      if (random() < 0.4) {
        platform.standIn.fail(pick(CALLS), { how: pick(FAULTS) });
        faults += 1;
      }
      const options = sale.partnerId === 'p-host' ? HOST : {};
      const { plans } = await world.database.reading((tx) => planQuote(tx, { ...sale, ...options }));
      const requests = plans.flatMap((plan) => plan.requests);
      state.connect.holdFees = random() < 0.3;
      try {
        await platform.run(requests, { payment_method: pick(METHODS) });
      } catch (error) {
        left.push(sale);
        // The customer goes on, fails, gives it up, or does nothing yet.
        const open = error instanceof SplitUnfinished ? error.payment : undefined;
        const does = pick(['passes', 'fails', 'cancels', 'waits']);
        if (open === undefined || open.status !== 'requires_action') continue;
        if (does === 'cancels') {
          const options = open.account === undefined ? undefined : { stripeAccount: open.account };
          await platform.stripe.paymentIntents.cancel(open.id, {}, options).catch(() => undefined);
        } else if (does !== 'waits') authenticate(state, open.id, does === 'passes');
      }
      platform.later(pick([0, 0, 1, 30, 90]));
    }
    platform.standIn.heal();
    releaseFees(state);
    // Some come back on the same day, some after their keys are forgotten.
    platform.later(pick([1, 600, 25 * 3600]));
    waiting = left;
  }
  return { sold: sales.length, tries, faults };
}
