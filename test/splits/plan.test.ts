/** The request that a partner must make for each acceptance: exactly the share, to the right account, with its metadata. */
import type Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import { reversalAnswer } from '../../src/http/schemas.ts';
import {
  type Accepted,
  planDispute,
  planRefund,
  planSplit,
  type Routing,
  SplitImpossible,
  STRIPE_VERSION,
} from '../../src/processors/stripe/splits/plan.ts';

const quote: Accepted = {
  quote_id: 'q-1',
  enrollment_id: 'e-1',
  currency: 'USD',
  spotPrice: '55.00',
  partnerCut: '5.00',
  invoiceAmount: '50.00',
};
const requote: Accepted = {
  ...quote,
  requote_id: 'rq-1',
  spotPrice: '11.00',
  partnerCut: '1.00',
  invoiceAmount: '10.00',
};
const realTime: Routing = { split: 'real_time', merchant_of_record: 'platform', connected_account_id: 'acct_service' };
const sequential: Routing = { ...realTime, split: 'sequential', merchant_of_record: 'third_party' };

describe('in real time', () => {
  test('a quote is one payment on the platform that sends exactly our share to our account', () => {
    expect(planSplit(quote, realTime)).toEqual({
      quote_id: 'q-1',
      requote_id: null,
      split: 'real_time',
      currency: 'USD',
      share: '50.00',
      requests: [
        {
          does: 'payment',
          method: 'POST',
          path: '/v1/payment_intents',
          headers: { 'Idempotency-Key': 'quote:q-1:payment', 'Stripe-Version': STRIPE_VERSION },
          add: ['payment_method'],
          params: {
            amount: 5500,
            currency: 'usd',
            confirm: true,
            automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
            transfer_data: {
              destination: 'acct_service',
              amount: 5000,
              metadata: { quote_id: 'q-1', enrollment_id: 'e-1' },
              payment_data: { metadata: { quote_id: 'q-1', enrollment_id: 'e-1' } },
            },
            metadata: { quote_id: 'q-1', enrollment_id: 'e-1' },
          },
        },
      ],
    });
  });

  test('a requote is a second payment, for the incremental amounts only', () => {
    const [request] = planSplit(requote, realTime).requests;
    expect(request?.headers).toEqual({ 'Idempotency-Key': 'requote:rq-1:payment', 'Stripe-Version': STRIPE_VERSION });
    expect(request?.params).toMatchObject({
      amount: 1100,
      transfer_data: { amount: 1000, destination: 'acct_service' },
    });
    expect(request?.params.metadata).toEqual({ quote_id: 'q-1', requote_id: 'rq-1', enrollment_id: 'e-1' });
  });

  test('the documented form of a requote is optional: on our account, with our share as the fee to the platform', () => {
    const [request] = planSplit(requote, realTime, { requote_form: 'as_documented' }).requests;
    expect(request?.headers['Stripe-Account']).toBe('acct_service');
    expect(request?.params).toMatchObject({ amount: 1100, application_fee_amount: 1000 });
    expect(request?.params).not.toHaveProperty('transfer_data');
  });

  test('a quote has no documented form of its own', () => {
    expect(planSplit(quote, realTime, { requote_form: 'as_documented' })).toEqual(planSplit(quote, realTime));
  });

  test('is refused where a third party is Merchant of Record', () => {
    expect(() => planSplit(quote, { ...realTime, merchant_of_record: 'third_party' })).toThrow(/7\.3\.1/);
  });
});

describe('in sequence', () => {
  const options = { operator_account: 'acct_host', platform_fee: '2.50' };

  test('the operator charges, the platform takes share and fee, and transfers the share to us', () => {
    const { requests } = planSplit(quote, sequential, options);
    expect(requests.map(({ path, headers, params }) => ({ path, headers, params }))).toEqual([
      {
        path: '/v1/payment_intents',
        headers: {
          'Idempotency-Key': 'quote:q-1:payment',
          'Stripe-Version': STRIPE_VERSION,
          'Stripe-Account': 'acct_host',
        },
        params: {
          amount: 5500,
          currency: 'usd',
          confirm: true,
          automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
          application_fee_amount: 5250,
          metadata: { quote_id: 'q-1', enrollment_id: 'e-1' },
        },
      },
      {
        path: '/v1/transfers',
        headers: { 'Idempotency-Key': 'quote:q-1:transfer', 'Stripe-Version': STRIPE_VERSION },
        params: {
          amount: 5000,
          currency: 'usd',
          destination: 'acct_service',
          transfer_group: 'q-1',
          metadata: { quote_id: 'q-1', enrollment_id: 'e-1' },
        },
      },
    ]);
  });

  test('needs the operator, and a fee of at most the charge', () => {
    expect(() => planSplit(quote, sequential)).toThrow(SplitImpossible);
    expect(() => planSplit(quote, sequential, { ...options, platform_fee: '5.01' })).toThrow(/more than the charge/);
    expect(planSplit(quote, sequential, { ...options, platform_fee: '5.00' }).requests[0]?.params).toMatchObject({
      application_fee_amount: 5500,
    });
  });
});

describe('amounts', () => {
  const share = (currency: string, spotPrice: string, invoiceAmount: string) =>
    planSplit({ ...quote, currency, spotPrice, partnerCut: '0', invoiceAmount }, realTime).requests[0]?.params;

  test.each([
    ['JPY', '5500', 5500],
    ['USD', '0.50', 50],
    ['USD', '999999.99', 99_999_999],
    ['KWD', '1.250', 1250],
    ['ISK', '100', 10_000],
    ['UGX', '100.00', 10_000],
    ['MGA', '100', 100],
  ])('%s %s is %i of its smallest units', (currency, text, units) => {
    expect(share(currency, text, text)).toMatchObject({ amount: units, transfer_data: { amount: units } });
  });

  test.each([
    ['KWD', '1.255'],
    ['UGX', '100.50'],
    ['MGA', '100.40'],
    ['USD', '1000000.00'],
    ['CLF', '1.0000'],
    ['USD', '-1.00'],
  ])('%s %s cannot be written exactly and is refused, never rounded', (currency, text) => {
    expect(() => share(currency, text, text)).toThrow(SplitImpossible);
  });

  test('a share of zero sends nothing, and a price of zero charges nothing', () => {
    const free = { ...quote, spotPrice: '5.00', partnerCut: '5.00', invoiceAmount: '0.00' };
    expect(planSplit(free, realTime).requests[0]?.params).not.toHaveProperty('transfer_data');
    expect(planSplit({ ...quote, spotPrice: '0', partnerCut: '0', invoiceAmount: '0' }, realTime).requests).toEqual([]);
  });
});

describe('inputs', () => {
  const problem = (more: object, routing = realTime, options = {}) => {
    try {
      planSplit({ ...quote, ...more }, routing, options);
    } catch (error) {
      return (error as SplitImpossible).code;
    }
    return undefined;
  };

  test.each(['usd', 'Usd', 'USD'])('a currency may be written in any case: %s', (currency) => {
    expect(planSplit({ ...quote, currency }, realTime)).toEqual(planSplit(quote, realTime));
  });

  test('500 yen written as jpy are 500 yen', () => {
    const yen = { ...quote, currency: 'jpy', spotPrice: '500', partnerCut: '100', invoiceAmount: '400' };
    expect(planSplit(yen, realTime).requests[0]?.params).toMatchObject({ amount: 500, transfer_data: { amount: 400 } });
  });

  test.each([
    ['a quote without an id', { quote_id: '' }, 'identifier_invalid'],
    ['a requote without its id', { incrementalSpotPrice: 5, requote_id: null }, 'identifier_invalid'],
    ['an id that would end a search', { requote_id: "rq' OR" }, 'identifier_invalid'],
    ['an unknown currency', { currency: 'XXX' }, 'currency_unknown'],
    ['no currency', { currency: '' }, 'currency_unknown'],
    ['one that Stripe takes no payments in', { currency: 'CLF' }, 'currency_unknown'],
    ['a share above the price', { invoiceAmount: '55.01', partnerCut: '0' }, 'share_too_large'],
    ['parts that do not add up', { partnerCut: '5.01' }, 'parts_differ'],
    ['a share below zero', { invoiceAmount: '-5.00', partnerCut: '60.00' }, 'amount_inexpressible'],
    ['half a cent', { spotPrice: 55.005 }, 'amount_inexpressible'],
    ['a number that is none', { spotPrice: Number.NaN }, 'amount_inexpressible'],
    ['a price below the minimum', { spotPrice: '0.43', partnerCut: '0.13', invoiceAmount: '0.30' }, 'amount_too_small'],
    [
      'a price in yen below the minimum',
      { currency: 'jpy', spotPrice: '49', partnerCut: '9', invoiceAmount: '40' },
      'amount_too_small',
    ],
  ])('%s is refused', (_, more, code) => {
    expect(problem(more)).toBe(code);
  });

  test('the least that Stripe charges is charged', () => {
    expect(problem({ spotPrice: '0.50', partnerCut: '0.10', invoiceAmount: '0.40' })).toBeUndefined();
    expect(problem({ currency: 'XCD', spotPrice: '0.05', partnerCut: '0', invoiceAmount: '0.05' })).toBeUndefined();
  });

  test("the API's answers are planned as they are, with numbers and with the names of a requote", () => {
    const answer = { ...quote, spotPrice: 55, partnerCut: 5, invoiceAmount: 50 };
    expect(planSplit(answer, realTime).requests).toEqual(planSplit(quote, realTime).requests);
    const { spotPrice: _s, partnerCut: _p, invoiceAmount: _i, requote_id: _r, ...ids } = requote;
    const increments = { incrementalSpotPrice: 11, incrementalPartnerCut: 1, incrementalInvoiceAmount: 10 };
    expect(planSplit({ ...ids, requote_id: 'rq-1', ...increments }, realTime).requests).toEqual(
      planSplit(requote, realTime).requests,
    );
  });

  test('a payment method that redirects the customer comes back to the return_url', () => {
    const [request] = planSplit(quote, realTime, { return_url: 'https://shop.example/thanks' }).requests;
    expect(request?.params).toMatchObject({
      ...{ automatic_payment_methods: { enabled: true }, return_url: 'https://shop.example/thanks' },
    });
    expect(request?.params).not.toHaveProperty('automatic_payment_methods.allow_redirects');
  });
});

describe('in sequence with the platform as Merchant of Record', () => {
  const controlled: Routing = { ...realTime, split: 'sequential' };

  test('the platform charges on its own account, and transfers the share when it likes (7.4.1)', () => {
    const { requests } = planSplit(quote, controlled);
    expect(requests.map(({ does, headers, params }) => [does, headers['Stripe-Account'], params])).toMatchObject([
      ['payment', undefined, { amount: 5500, transfer_group: 'q-1' }],
      ['transfer', undefined, { amount: 5000, destination: 'acct_service', transfer_group: 'q-1' }],
    ]);
    expect(requests[0]?.params).not.toHaveProperty('transfer_data');
    expect(requests[0]?.params).not.toHaveProperty('application_fee_amount');
  });

  test('has no operator', () => {
    expect(() => planSplit(quote, controlled, { operator_account: 'acct_host' })).toThrow(/neither an operator/);
  });

  test('refunds on its own account, and reverses the transfer by hand', () => {
    const requests = planRefund({ ...quote, reversal_id: 'rv-1' }, controlled);
    expect(requests.map(({ does, headers }) => [does, headers['Stripe-Account']])).toEqual([
      ['transfer_reversal', undefined],
      ['refund', undefined],
    ]);
    expect(requests[1]?.params).not.toHaveProperty('refund_application_fee');
  });
});

describe('a lost dispute', () => {
  const lost = { ...quote, dispute_id: 'dp_1' };

  test("pulls the share back to the platform, from whose balance the processor took the payment's amount", () => {
    const requests = planDispute(lost, realTime);
    expect(requests).toMatchObject([
      {
        does: 'transfer_reversal',
        headers: { 'Idempotency-Key': 'dispute:dp_1:transfer_reversal' },
        params: { amount: 5000, metadata: { quote_id: 'q-1', dispute_id: 'dp_1' } },
      },
    ]);
    expect(planDispute({ ...lost, invoiceAmount: '0' }, realTime)).toEqual([]);
  });

  test('pays the share back to the operator who lost it', () => {
    const requests = planDispute(lost, sequential, { operator_account: 'acct_host' });
    expect(requests.map(({ does, params }) => [does, params.amount])).toEqual([
      ['transfer_reversal', 5000],
      ['fee_refund', 5000],
    ]);
  });
});

describe('a share of zero asks for no fee, which the processor would refuse', () => {
  const nothing = { ...requote, invoiceAmount: '0.00', partnerCut: '11.00' };

  test('in the documented form of a requote', () => {
    const [request] = planSplit(nothing, realTime, { requote_form: 'as_documented' }).requests;
    expect(request?.params).not.toHaveProperty('application_fee_amount');
  });

  test('in sequence, unless the platform has a fee of its own', () => {
    const params = (platform_fee?: string) =>
      planSplit(nothing, sequential, { operator_account: 'acct_host', platform_fee }).requests.map(
        (request) => request.params,
      );
    expect(params()).toHaveLength(1);
    expect(params()[0]).not.toHaveProperty('application_fee_amount');
    expect(params('1.00')[0]).toMatchObject({ application_fee_amount: 100 });
  });
});

describe('a refund', () => {
  const refunded = { ...quote, reversal_id: 'rv-1', spotPrice: '27.50', invoiceAmount: '25.00' };

  test('in real time reverses the share with it', () => {
    expect(planRefund(refunded, realTime)).toEqual([
      {
        does: 'refund',
        method: 'POST',
        path: '/v1/refunds',
        headers: { 'Idempotency-Key': 'reversal:rv-1:refund', 'Stripe-Version': STRIPE_VERSION },
        add: ['payment_intent'],
        params: {
          amount: 2750,
          reverse_transfer: true,
          metadata: { quote_id: 'q-1', enrollment_id: 'e-1', reversal_id: 'rv-1' },
        },
      },
    ]);
  });

  test('in sequence is made by the operator, and the platform reverses its transfer by hand', () => {
    const requests = planRefund(refunded, sequential, { operator_account: 'acct_host' });
    expect(requests.map(({ does, headers, params }) => [does, headers['Stripe-Account'], params.amount])).toEqual([
      ['transfer_reversal', undefined, 2500],
      ['refund', 'acct_host', 2750],
    ]);
    expect(requests[1]?.params).toMatchObject({ refund_application_fee: true });
  });

  test('of zero makes no request, and one without our share reverses nothing', () => {
    expect(planRefund({ ...refunded, spotPrice: '0', invoiceAmount: '0' }, realTime)).toEqual([]);
    const [request] = planRefund({ ...refunded, invoiceAmount: '0' }, realTime);
    expect(request?.params).not.toHaveProperty('reverse_transfer');
  });

  test('gives back no more of the share than of the price', () => {
    expect(() => planRefund({ ...refunded, spotPrice: '24.99' }, realTime)).toThrow(/more than the refund/);
  });

  test("of the API's answer to a reversal is planned as it is, with amounts below zero and no requote", () => {
    const answer = { ...refunded, requote_id: null, enrollment_id: null, spotPrice: -27.5, partnerCut: -2.5 };
    expect(planRefund({ ...answer, invoiceAmount: -25 }, realTime)).toEqual(
      planRefund({ ...refunded, enrollment_id: undefined }, realTime),
    );
    expect(planRefund({ ...answer, spotPrice: -0, invoiceAmount: '-0.00' }, realTime)).toEqual([]);
  });

  test('gives the price and the share back in the same direction', () => {
    expect(() => planRefund({ ...refunded, invoiceAmount: '-25.00' }, realTime)).toThrow(/both be below zero/);
  });

  test("takes the reversal's answer by the API's own description", () => {
    const { spotPrice: _s, partnerCut: _p, invoiceAmount: _i, ...ids } = quote;
    const amounts = { spotPrice: -27.5, partnerCut: -2.5, invoiceAmount: -25 };
    const given = { ...ids, ...amounts, reversal_id: 'rv-1', requote_id: null, accepted_at: '2026-07-15T12:00:00Z' };
    const order = { order_reference: null, cover_from: null, cover_to: null };
    const recorded = { status: 'recorded', request_id: null, allowed_by: 'window', reason: null };
    expect(planRefund(reversalAnswer.parse({ ...given, ...order, ...recorded }), realTime)).toEqual(
      planRefund(refunded, realTime),
    );
  });

  test.each([null, undefined, 7])('of a reversal with the id %s is refused', (reversal_id) => {
    expect(() => planRefund({ ...refunded, reversal_id: reversal_id as never }, realTime)).toThrow(
      `reversal_id '${reversal_id}' is not an identifier: 1 to 128 of A-Z a-z 0-9 . _ : -, with a letter or digit first`,
    );
  });

  test('in sequence needs the operator', () => {
    expect(() => planRefund(refunded, sequential)).toThrow(/7\.4\.3/);
  });
});

test("the longest identifiers fit the processor's keys", () => {
  const id = 'q'.repeat(128);
  const [request] = planSplit({ ...requote, quote_id: id, requote_id: id }, realTime).requests;
  expect(request?.headers['Idempotency-Key'].length).toBeLessThanOrEqual(255);
});

test("the plans match the processor's own types", () => {
  for (const request of [
    ...planSplit(quote, realTime).requests,
    ...planSplit(requote, realTime, { requote_form: 'as_documented' }).requests,
    ...planSplit(quote, sequential, { operator_account: 'acct_host' }).requests,
    ...planRefund({ ...quote, reversal_id: 'rv-1' }, realTime),
    ...planRefund({ ...quote, reversal_id: 'rv-1' }, sequential, { operator_account: 'acct_host' }),
    ...planDispute({ ...quote, dispute_id: 'dp_1' }, sequential, { operator_account: 'acct_host' }),
  ]) {
    if (request.does === 'payment') request.params satisfies Stripe.PaymentIntentCreateParams;
    else if (request.does === 'transfer') request.params satisfies Stripe.TransferCreateParams;
    else if (request.does === 'refund') request.params satisfies Stripe.RefundCreateParams;
    else if (request.does === 'fee_refund') request.params satisfies Stripe.ApplicationFeeCreateRefundParams;
    else request.params satisfies Stripe.TransferCreateReversalParams;
    expect(request.params.amount).toBeGreaterThan(0);
  }
});
