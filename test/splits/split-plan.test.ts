/** Plans of quotes in the ledger, by the arrangement of each acceptance's own month. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { planQuote, type QuotePlanRequest } from '../../src/splits/accepted.ts';
import { refusalOf } from '../close/refusal.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

let world: World;

const connected = (overrides: Record<string, unknown>) =>
  partner({ arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time', ...overrides });

const plan = (request: QuotePlanRequest) => world.database.reading((tx) => planQuote(tx, request));

beforeAll(async () => {
  world = await openWorld();
  await world.partners([
    connected({ partner_id: 'p-real', connected_account_id: 'acct_real' }),
    connected({
      partner_id: 'p-seq',
      connected_account_id: 'acct_seq',
      split: 'sequential',
      merchant_of_record: 'third_party',
    }),
    partner({ partner_id: 'p-inv' }),
    partner({ partner_id: 'p-turned' }),
  ]);
  const sold = quote({ partner_id: 'p-real', quote_id: 'q-real' });
  const held = quote({ partner_id: 'p-seq', quote_id: 'q-seq' });
  const raised = quote({ partner_id: 'p-real', quote_id: 'q-small' });
  const before = quote({ partner_id: 'p-turned', quote_id: 'q-turned', accepted_at: '2026-06-15T12:00:00Z' });
  await world.rows([
    sold,
    requote(sold, { requote_id: 'rq-1' }),
    reversal(sold, { spotPrice: '-1.00', partnerCut: '-0.30', invoiceAmount: '-0.70' }),
    raised,
    requote(raised, { requote_id: 'rq-small', spotPrice: '0.43', partnerCut: '0.13', invoiceAmount: '0.30' }),
    held,
    requote(held, { requote_id: 'rq-2' }),
    quote({ partner_id: 'p-inv', quote_id: 'q-inv' }),
    quote({ partner_id: 'p-inv', quote_id: 'q-both' }),
    quote({ partner_id: 'p-real', quote_id: 'q-both' }),
    before,
  ]);
  await world.partners([
    connected({ partner_id: 'p-turned', connected_account_id: 'acct_turned', arrangement_from: '2026-07' }),
  ]);
  await world.rows([requote(before, { requote_id: 'rq-turned', accepted_at: '2026-07-20T12:00:00Z' })]);
});
afterAll(() => world.end());

test('a quote and its requote are two payments, and a reversal changes neither', async () => {
  const { plans, ...facts } = await plan({ quoteId: 'q-real' });
  expect(facts).toMatchObject({ partner_id: 'p-real', split: 'real_time', connected_account_id: 'acct_real' });
  expect(plans.map(({ requote_id, share, requests }) => [requote_id, share, requests.length])).toEqual([
    [null, '7.00', 1],
    ['rq-1', '3.50', 1],
  ]);
  expect(plans[1]?.requests[0]?.params).toMatchObject({ amount: 500, transfer_data: { amount: 350 } });
});

test("in sequence the platform's fee is charged with the quote and not with its requotes", async () => {
  const { plans } = await plan({ quoteId: 'q-seq', operator_account: 'acct_host', platform_fee: '1.25' });
  expect(plans.map(({ requests }) => requests.map(({ does, params }) => [does, params]))).toMatchObject([
    [
      ['payment', { amount: 1000, application_fee_amount: 825 }],
      ['transfer', { amount: 700, destination: 'acct_seq' }],
    ],
    [
      ['payment', { amount: 500, application_fee_amount: 350 }],
      ['transfer', { amount: 350, destination: 'acct_seq' }],
    ],
  ]);
});

test('for a quote before the change of arrangement, only the later requote is split', async () => {
  const { plans, connected_account_id } = await plan({ quoteId: 'q-turned' });
  expect(connected_account_id).toBe('acct_turned');
  expect(plans.map(({ requote_id }) => requote_id)).toEqual(['rq-turned']);
});

test('an amount that the processor does not charge is reported beside the plans of the others', async () => {
  const { plans } = await plan({ quoteId: 'q-small' });
  expect(
    plans.map(({ requote_id, share, requests, problem }) => [requote_id, share, requests.length, problem]),
  ).toEqual([
    [null, '7.00', 1, null],
    [
      'rq-small',
      '0.30',
      0,
      { code: 'amount_too_small', reason: expect.stringMatching(/0\.43 USD is below Stripe's minimum/) },
    ],
  ]);
});

describe('is refused', () => {
  test.each<[string, QuotePlanRequest, string, object]>([
    ['for a quote that nobody accepted', { quoteId: 'q-none' }, 'split_quote_unknown', { quote_id: 'q-none' }],
    [
      'where two partners have that id',
      { quoteId: 'q-both' },
      'split_partner_needed',
      { partners: ['p-inv', 'p-real'] },
    ],
    ['for a quote that is invoiced', { quoteId: 'q-inv' }, 'split_not_connected', { partner_id: 'p-inv' }],
    [
      'in sequence without an operator',
      { quoteId: 'q-seq' },
      'split_impossible',
      { because: 'operator_missing', requote_id: null },
    ],
    [
      'in real time with one',
      { quoteId: 'q-real', operator_account: 'acct_host' },
      'split_impossible',
      { because: 'operator_unused' },
    ],
    [
      'with a fee that the price does not hold',
      { quoteId: 'q-seq', operator_account: 'acct_host', platform_fee: '3.01' },
      'split_impossible',
      { because: 'fee_too_large' },
    ],
  ])('%s', async (_, request, code, facts) => {
    expect(await refusalOf(plan(request))).toMatchObject({ code, facts });
  });

  test('unless the partner is named', async () => {
    expect(await plan({ quoteId: 'q-both', partnerId: 'p-real' })).toMatchObject({ partner_id: 'p-real' });
  });
});
