import { PaymentProcessor } from '#processors/processor';
import { methodsFor, stripeAmount } from './amounts.ts';
import { listBalanceTransactions, readBalanceTransaction } from './balance-transactions.ts';
import { checkoutRequest, checkoutUnits, MOST_INVOICES, OPEN_MINUTES } from './checkouts.ts';
import { paymentIds, readEvent } from './events.ts';
import { idempotencyKey, linkRequest, openStripeLinks } from './payment-links.ts';
import { leastCharge, stepOf } from './splits/smallest-unit.ts';
import { webhooks } from './webhook-signature.ts';

export const stripe: PaymentProcessor = {
  name: 'stripe',
  bankName: 'STRIPE',
  keyVariable: 'STRIPE_SECRET_KEY',
  leastCharge,
  stepOf,
  access: ({ stripeKey: key, stripeBase: base }) => (key === undefined ? undefined : { key, base }),
  paymentLinks: {
    units: stripeAmount,
    methodsFor,
    request: linkRequest,
    idempotencyKey,
    // Stripe stores a key for a day.
    keyValidHours: 20,
    checkout: {
      mostInvoices: MOST_INVOICES,
      openMinutes: OPEN_MINUTES,
      units: checkoutUnits,
      request: checkoutRequest,
    },
    open: openStripeLinks,
  },
  events: { read: readEvent, paymentIds },
  balanceTransactions: { read: readBalanceTransaction, list: listBalanceTransactions },
  webhooks,
};
