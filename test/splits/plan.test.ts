/** The request that a partner must make for each acceptance: exactly the share, to the right account, with its metadata. */
import type Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import {
  type Accepted,
  planRefund,
  planSplit,
  type Routing,
  SplitImpossible,
} from '../../src/processors/stripe/split-plan.ts';

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
          headers: { 'Idempotency-Key': 'quote:q-1:payment' },
          add: ['payment_method'],
          params: {
            amount: 5500,
            currency: 'usd',
            confirm: true,
            transfer_data: {
              destination: 'acct_service',
              amount: 5000,
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
    expect(request?.headers).toEqual({ 'Idempotency-Key': 'requote:rq-1:payment' });
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
        headers: { 'Idempotency-Key': 'quote:q-1:payment', 'Stripe-Account': 'acct_host' },
        params: {
          amount: 5500,
          currency: 'usd',
          confirm: true,
          application_fee_amount: 5250,
          metadata: { quote_id: 'q-1', enrollment_id: 'e-1' },
        },
      },
      {
        path: '/v1/transfers',
        headers: { 'Idempotency-Key': 'quote:q-1:transfer' },
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
    expect(share('USD', '5.00', '0.00')).not.toHaveProperty('transfer_data');
    expect(planSplit({ ...quote, spotPrice: '0', partnerCut: '0', invoiceAmount: '0' }, realTime).requests).toEqual([]);
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
        headers: { 'Idempotency-Key': 'reversal:rv-1:refund' },
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
      ['refund', 'acct_host', 2750],
      ['transfer_reversal', undefined, 2500],
    ]);
  });

  test('of zero makes no request, and one without our share reverses nothing', () => {
    expect(planRefund({ ...refunded, spotPrice: '0', invoiceAmount: '0' }, realTime)).toEqual([]);
    const [request] = planRefund({ ...refunded, invoiceAmount: '0' }, realTime);
    expect(request?.params).not.toHaveProperty('reverse_transfer');
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
  ]) {
    if (request.does === 'payment') request.params satisfies Stripe.PaymentIntentCreateParams;
    else if (request.does === 'transfer') request.params satisfies Stripe.TransferCreateParams;
    else if (request.does === 'refund') request.params satisfies Stripe.RefundCreateParams;
    else request.params satisfies Stripe.TransferCreateReversalParams;
    expect(request.params.amount).toBeGreaterThan(0);
  }
});
