/** Stripe's events as it sends them, for one payment of one link. */

export interface PaidLink {
  readonly invoice?: string;
  /** In the smallest unit. */
  readonly amount: number;
  readonly currency?: string;
  readonly key?: string;
  /** All events of one payment are of one day. */
  readonly on?: string;
}

let counter = 0;

export function event(type: string, object: object, overrides: object = {}): object {
  counter += 1;
  const created = Date.parse('2026-10-14T12:00:00Z') / 1000;
  return { id: `evt_${counter}`, object: 'event', type, created, livemode: false, data: { object }, ...overrides };
}

export function stripePayment({ invoice, amount, currency = 'usd', key = 'A1', on = '2026-10-14' }: PaidLink) {
  const created = Date.parse(`${on}T12:00:00Z`) / 1000;
  const tell = (type: string, object: object) => event(type, object, { created });
  const ids = { intent: `pi_3Q0000${key}`, charge: `py_3Q0000${key}`, session: `cs_test_b1${key}` };
  const metadata = invoice === undefined ? {} : { invoice, partner_id: 'somebody' };
  const session = (payment_status: string) => ({
    id: ids.session,
    object: 'checkout.session',
    amount_total: amount,
    currency,
    metadata,
    payment_intent: ids.intent,
    payment_status,
    customer_details: { name: 'Accounts Payable' },
  });
  const charge = (refunded: number) => ({
    id: ids.charge,
    object: 'charge',
    amount,
    amount_captured: amount,
    amount_refunded: refunded,
    currency,
    metadata,
    paid: true,
    payment_intent: ids.intent,
    status: 'succeeded',
  });
  const dispute = (status: string, disputed: number) => ({
    id: `du_1${key}`,
    object: 'dispute',
    amount: disputed,
    charge: ids.charge,
    currency,
    payment_intent: ids.intent,
    reason: 'bank_cannot_process',
    status,
  });
  return {
    ids,
    ordered: () => tell('checkout.session.completed', session('unpaid')),
    completed: () => tell('checkout.session.completed', session('paid')),
    paidLater: () => tell('checkout.session.async_payment_succeeded', session('paid')),
    failedLater: () => tell('checkout.session.async_payment_failed', session('unpaid')),
    intentSucceeded: () =>
      tell('payment_intent.succeeded', {
        id: ids.intent,
        object: 'payment_intent',
        status: 'succeeded',
        amount_received: amount,
        currency,
        latest_charge: ids.charge,
        metadata,
      }),
    refunded: (total: number) => tell('charge.refunded', charge(total)),
    disputed: (status = 'needs_response', part = amount) => tell('charge.dispute.created', dispute(status, part)),
    withdrawn: (part = amount) => tell('charge.dispute.funds_withdrawn', dispute('needs_response', part)),
    closed: (status: 'won' | 'lost' | 'warning_closed', part = amount) =>
      tell('charge.dispute.closed', dispute(status, part)),
  };
}
