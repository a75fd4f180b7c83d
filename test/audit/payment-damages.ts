/** Payments of every kind, and one entry for each way to damage their records. */

import type { Books } from '../payments/books.ts';
import { inv } from '../payments/books.ts';
import { makeCheckout, stripePayment } from '../payments/stripe-events.ts';

const CSV = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';

/** Pays and reverses what the documents of the test world owe: p-1 owes 31.50 USD, p-2 700 JPY and 7.00 USD. */
export async function payInEveryWay(books: Books): Promise<void> {
  await makeCheckout(books.sql, [inv(1)], 'cs_test_expired');
  const linked = stripePayment({ invoice: inv(1), amount: 1000, on: '2026-09-25' });
  await books.events([linked.completed(), linked.disputed('needs_response', 400), linked.closed('won', 400)]);
  const paid = await books.record({ amount: '5.00', number: inv(1), reference: 'FT-77', receivedOn: '2026-09-20' });
  await books.unapply(paid.paymentId);
  const twice = { amount: '2.00', partnerId: 'p-1', receivedOn: '2026-09-20' };
  const { paymentId: kept } = await books.record({ ...twice, reference: 'FT-78' });
  const { paymentId } = await books.record({ ...twice, reference: 'FT-79' });
  await books.reverse({ paymentId, kind: 'duplicate', duplicateOf: kept });
  await books.reverse({
    paymentId: kept,
    amount: '1.50',
    kind: 'refunded',
    reason: 'sent back, OUT-78',
    on: '2026-09-30',
  });
  const lines = [
    `2026-09-28,5.00,USD,0001,FT-77,wire,Harbour Lights Ticketing,ACC-1`,
    `2026-09-28,8.00,USD,0001,B-2,${inv(1)} Harbour Lights Ticketing,Harbour Lights Ticketing,ACC-1`,
    `2026-09-29,-8.00,USD,0001,B-3,RETURNED R01 ${inv(1)},,`,
    `2026-09-30,9.70,USD,0001,B-4,STRIPE TRANSFER,Stripe,`,
    `2026-09-30,-1.00,USD,0001,B-5,fee,,`,
    `2026-09-30,-1.50,USD,0001,OUT-78,sent back,,`,
  ];
  await books.bankText('september.csv', `${CSV}${lines.join('\n')}\n`);
}

/** Reversals of new payments by hand, `first` and `last` of one amount and `other` of another. */
function duplicates(...pairs: readonly (readonly [payment: string, of: string])[]): string[] {
  const payments = ['first', 'last', 'other'].map(
    (name) => `
      INSERT INTO payments (identity, source, partner_id, currency, amount, method, account, received_on, entry_on, reference, recorded_at, event_id)
      SELECT '${name}', 'hand', partner_id, currency, ${name === 'other' ? 4 : 3}, 'wire', '', received_on, entry_on, keep_text('${name}'), recorded_at, event_id
      FROM payments WHERE personal(reference) = 'FT-77' LIMIT 1`,
  );
  const sources = `
    INSERT INTO payment_sources (identity, payment_id, source, reference, recorded_at, event_id)
    SELECT identity, payment_id, source, reference, recorded_at, event_id FROM payments
    WHERE identity IN ('first', 'last', 'other')`;
  const reversals = pairs.map(
    ([payment, of]) => `
      INSERT INTO payment_reversals (identity, payment_id, partner_id, currency, amount, kind, reason, duplicate_of, reversed_on, entry_on, recorded_at, event_id)
      SELECT p.identity, p.payment_id, p.partner_id, p.currency, p.amount, 'duplicate', 'x', o.payment_id, p.received_on, p.entry_on, p.recorded_at, p.event_id
      FROM payments p, payments o WHERE p.identity = '${payment}' AND o.identity = '${of}'`,
  );
  return [...payments, sources, ...reversals];
}

export const PAYMENT_DAMAGES: readonly [what: string, check: string, ...statements: string[]][] = [
  [
    'a payment made smaller than what it pays',
    'payment_not_overdrawn',
    `UPDATE payments SET amount = 0.01 WHERE method = 'link'`,
  ],
  [
    "a payment applied to another partner's invoice",
    'payment_applied',
    `UPDATE payment_applications SET document_id = (SELECT document_id FROM documents WHERE partner_id = 'p-2' AND currency = 'USD' LIMIT 1)`,
  ],
  [
    'an application to a void invoice',
    'void_unsettled',
    `INSERT INTO voids (document_id, partner_id, month, currency, arrangement, reason, voided_on, recorded_at, event_id)
     SELECT document_id, partner_id, month, currency, arrangement, 'x', '2026-10-01', now(), (SELECT min(event_id) FROM audit_events)
     FROM documents WHERE number = 'INV-2026-000001'`,
  ],
  ['more paid than is due', 'never_overpaid', `UPDATE payment_applications SET amount = 1000`],
  [
    'a payment whose first source record is missing',
    'payment_identity',
    `DELETE FROM payment_sources WHERE source = 'hand'`,
  ],
  [
    'the same processor payment twice',
    'link_payments_recorded_once',
    `INSERT INTO payments (identity, source, currency, amount, method, account, received_on, entry_on, reference, recorded_at, event_id)
     SELECT identity || '2', source, currency, amount, method, account, received_on, entry_on, reference, recorded_at, event_id
     FROM payments WHERE method = 'link'`,
    `INSERT INTO payment_sources (identity, payment_id, source, reference, recorded_at, event_id)
     SELECT identity, payment_id, 'processor', reference, recorded_at, event_id FROM payments WHERE identity LIKE '%2' AND method = 'link'`,
  ],
  ['a bank line without an outcome', 'bank_line_outcome', `DELETE FROM bank_line_outcomes WHERE outcome = 'ignored'`],
  [
    'a bank line of another amount than its payment',
    'of_bank_line',
    `UPDATE bank_lines SET amount = 6 WHERE bank_reference = 'FT-77'`,
  ],
  [
    'one debit in two files that pays two refunds',
    'equal_debits_pay_once',
    `INSERT INTO bank_lines (account, identity, currency, direction, amount, bank_booked_on, bank_reference, "references", text, type, is_reversal, raw)
     SELECT account, identity || '2', currency, direction, amount, bank_booked_on, NULL, "references", text, type, is_reversal, raw
     FROM bank_lines WHERE bank_reference = 'OUT-78'`,
    `INSERT INTO refund_matches (bank_line_id, account, currency, amount, direction, payment_reversal_id, paid_on, entry_on, evidence, recorded_at, event_id)
     SELECT (SELECT max(bank_line_id) FROM bank_lines), account, currency, amount, direction, payment_reversal_id + 100, paid_on, entry_on, evidence, recorded_at, event_id
     FROM refund_matches`,
  ],
  [
    'a debit that pays two refunds',
    'refund_match',
    `INSERT INTO refund_matches (bank_line_id, account, currency, amount, direction, payment_reversal_id, paid_on, entry_on, evidence, recorded_at, event_id)
     SELECT bank_line_id, account, currency, amount, direction, payment_reversal_id + 100, paid_on, entry_on, evidence, recorded_at, event_id
     FROM refund_matches`,
  ],
  [
    'a line removed from its bank statement',
    'bank_statement_adds_up',
    `DELETE FROM bank_statement_lines WHERE position = 5`,
  ],
  ['a total of a statement changed', 'bank_statement_adds_up', `UPDATE bank_statements SET credits = credits + 1`],
  ['a payment removed from its payout', 'payout_adds_up', `DELETE FROM payout_payments`],
  [
    'a payout with less of a payment than was not reversed',
    'payout_covers_remaining',
    `UPDATE payout_payments SET amount = amount - 0.10`,
    `UPDATE payout_settlements SET gross = gross - 0.10, fees = fees - 0.10 WHERE fees > 0`,
  ],
  ['a fee changed', 'payout_adds_up', `UPDATE payout_settlements SET fees = fees + 1`],
  [
    'an entry moved into a closed month',
    'entry_in_open_books',
    `UPDATE payments SET received_on = '2026-08-03', entry_on = '2026-08-03' WHERE method = 'link'`,
  ],
  [
    'an entry dated before its day',
    'entry_in_open_books',
    `ALTER TABLE payments DROP CONSTRAINT payment_entry_not_before_receipt`,
    `UPDATE payments SET received_on = entry_on + 1 WHERE source = 'bank'`,
  ],
  [
    'a payment applied before it was received',
    'payment_not_overdrawn',
    `UPDATE payments SET entry_on = entry_on + 40 WHERE payment_id IN (SELECT payment_id FROM payment_applications)`,
  ],
  [
    'a link that paid the invoice of another link',
    'link_payments_proved',
    `UPDATE payment_link_objects SET provider_id = provider_id || 'x'`,
  ],
  [
    'a checkout that is not the sum of its invoices',
    'checkouts_consistent',
    `UPDATE checkouts SET amount = amount + 1`,
  ],
  [
    'a checkout over more than an invoice',
    'checkouts_consistent',
    `UPDATE checkout_invoices SET amount = amount + 1000`,
    `UPDATE checkouts SET amount = amount + 1000`,
  ],
  ['a checkout without its invoices', 'checkouts_consistent', `DELETE FROM checkout_invoices`],
  [
    'a checkout that was paid without a session',
    'checkouts_consistent',
    `DELETE FROM checkout_sessions`,
    `UPDATE checkout_endings SET why = 'paid'`,
  ],
  ['an event of live mode in a sandbox', 'processor_events_recorded', `UPDATE processor_events SET livemode = true`],
  [
    'an event about a payment without a processor source',
    'processor_event',
    `DELETE FROM payment_sources WHERE source = 'processor'`,
  ],
  ['a won dispute without a reinstatement', 'dispute_outcome', `DELETE FROM payment_reinstatements`],
  [
    'two payments that are duplicates of each other',
    'duplicate_payment',
    ...duplicates(['last', 'first'], ['first', 'last']),
  ],
  ['a duplicate of a payment of another amount', 'duplicate_payment', ...duplicates(['last', 'other'])],
];
