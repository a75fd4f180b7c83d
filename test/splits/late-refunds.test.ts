/**
 * A platform and an operator refund sales of May in August, at the processor, and tell us before or after it. The Merchant
 * of Record decides refunds (service.md 7.5), so what the processor has taken back is recorded without a person.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readReversedByProcessor } from '../../src/findings/rows.ts';
import { planRefund, type Routing } from '../../src/processors/stripe/splits/plan.ts';
import { planQuote } from '../../src/splits/accepted.ts';
import { accessTo, readAccount } from '../../src/splits/poll.ts';
import { type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { HOST, openPlatform, type Platform, REAL, SEQUENTIAL } from './platform.ts';

let platform: Platform;
let world: World;
let served: Served;
const SOLD = ['p-real', 'p-host'].flatMap((partnerId) =>
  ['told-after', 'told-before', 'never-sent-back'].map((when) => ({ partnerId, quoteId: `${partnerId}-${when}` })),
);
const routingOf = (partnerId: string): Routing => (partnerId === 'p-real' ? REAL : SEQUENTIAL);
const optionsOf = (partnerId: string) => (partnerId === 'p-host' ? HOST : {});
const paid = new Map<string, { payment_intent: string; transfer?: string | undefined }>();

beforeAll(async () => {
  platform = await openPlatform();
  world = await openWorld({ stripe: platform.standIn.url });
  world.environment = { ...world.environment, connectedKeys: new Map([['acct_us', 'sk_test_us']]) };
  world.at('2026-05-15T12:00:00Z');
  platform.now = new Date('2026-05-15T12:00:10Z');
  await world.partners(
    ['p-real', 'p-host'].map((partner_id) =>
      partner({ partner_id, arrangement: 'connected_account', ...routingOf(partner_id) }),
    ),
  );
  const accepted_at = '2026-05-15T12:00:00Z';
  await world.rows(
    SOLD.map(({ partnerId, quoteId }) => quote({ partner_id: partnerId, quote_id: quoteId, accepted_at })),
  );
  for (const sale of SOLD) {
    const { plans } = await world.database.reading((tx) => planQuote(tx, { ...sale, ...optionsOf(sale.partnerId) }));
    const [payment, transfer] = await platform.run(plans.flatMap((plan) => plan.requests));
    paid.set(sale.quoteId, { payment_intent: payment?.id as string, transfer: transfer?.id });
  }
  world.at('2026-08-20T12:00:00Z');
  platform.now = new Date('2026-08-20T11:00:00Z');
  served = await serveWorld(world);
});
afterAll(async () => {
  expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
  await served.end();
  await world.end();
  await platform.standIn.close();
});

const refund = async (partnerId: string, quote_id: string) => {
  const refunded = {
    quote_id,
    reversal_id: `rv-${quote_id}`,
    currency: 'USD',
    spotPrice: '10.00',
    invoiceAmount: '7.00',
  };
  await platform.run(planRefund(refunded, routingOf(partnerId), optionsOf(partnerId)), paid.get(quote_id));
};
const readOurAccount = () => readAccount(world.database, world, accessTo(world.environment, 'acct_us'));
const tell = async (partnerId: string, quoteId: string) => {
  const caller = await served.caller(partnerId);
  return caller.post(`/api/v1/quote/${quoteId}/reverse`, { reversal_id: `rv-${quoteId}` });
};
const reversalsOf = (quoteId: string) =>
  world.sql(
    `SELECT reversal_id, trim_scale(invoice_amount)::text AS share, ground
     FROM ledger_rows JOIN reversal_grounds g USING (partner_id, reversal_id) WHERE ledger_rows.quote_id = $1`,
    [quoteId],
  );

for (const partnerId of ['p-real', 'p-host']) {
  const who = partnerId === 'p-real' ? 'a platform' : 'an operator, whose platform reverses the transfer by hand,';

  test(`${who} refunds first and tells us then: it is recorded at once`, async () => {
    const quoteId = `${partnerId}-told-after`;
    await refund(partnerId, quoteId);
    await readOurAccount();
    expect(await tell(partnerId, quoteId)).toMatchObject({
      ...{ status: 201, body: { status: 'recorded', allowed_by: 'processor' } },
    });
    expect(await reversalsOf(quoteId)).toEqual([{ reversal_id: `rv-${quoteId}`, share: '-7', ground: 'processor' }]);
  });

  test(`${who} tells us first: it waits, and is recorded once when we see the transfer go back`, async () => {
    const quoteId = `${partnerId}-told-before`;
    expect(await tell(partnerId, quoteId)).toMatchObject({ status: 202, body: { status: 'requested' } });
    expect(await reversalsOf(quoteId)).toEqual([]);
    platform.later(60);
    await refund(partnerId, quoteId);
    world.at('2026-08-20T14:00:00Z');
    await readOurAccount();
    expect(await reversalsOf(quoteId)).toEqual([{ reversal_id: `rv-${quoteId}`, share: '-7', ground: 'processor' }]);
    expect(await tell(partnerId, quoteId)).toMatchObject({ status: 201, body: { allowed_by: 'processor' } });
  });

  test(`${who} tells us and sends nothing back: our share stays until a person decides`, async () => {
    const quoteId = `${partnerId}-never-sent-back`;
    expect(await tell(partnerId, quoteId)).toMatchObject({ status: 202 });
    await readOurAccount();
    expect(await reversalsOf(quoteId)).toEqual([]);
  });
}

test('what the processor took back outside the terms is a finding with its amount', async () => {
  const now = Date.parse('2026-08-20T14:00:00Z');
  const question = { settings: world.settings, scope: null, today: '2026-08-20', now, limit: null };
  const reversed = await world.database.reading((tx) => readReversedByProcessor(tx, question));
  expect(reversed.map(({ item, money }) => [item, money])).toEqual([
    ['reversed:p-host', { amount: '14.00', currency: 'USD' }],
    ['reversed:p-real', { amount: '14.00', currency: 'USD' }],
  ]);
});
