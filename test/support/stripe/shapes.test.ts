/** That the compiler holds the stand-in to Stripe's types: an error that no longer comes is itself one. */
import type { Stripe } from 'stripe';
import { expect, test } from 'vitest';
import { transferReversal } from './shapes.ts';

const REVERSAL = {
  ...{ id: 'trr_1', object: 'transfer_reversal', amount: 700, currency: 'usd', created: 1_767_225_600 },
  ...{ transfer: 'tr_1', destination_payment_refund: 'pyr_1', metadata: {} },
} satisfies Partial<Stripe.TransferReversal>;

test('an object has the fields of Stripe’s own types', () => {
  const { created: _, ...undated } = REVERSAL;
  const made = [
    transferReversal(REVERSAL),
    // @ts-expect-error Stripe has no such field.
    transferReversal({ ...REVERSAL, payment: 'py_1' }),
    // @ts-expect-error Always there at Stripe.
    transferReversal(undated),
    // @ts-expect-error Never null at Stripe.
    transferReversal({ ...REVERSAL, currency: null }),
    // @ts-expect-error No object of another kind.
    transferReversal({ ...REVERSAL, object: 'refund' }),
  ];
  expect(made.map(({ id }) => id)).toEqual(made.map(() => 'trr_1'));
});
