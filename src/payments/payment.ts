/** A payment as JSON: amounts with the digits of their currency, `null` for what is missing. */
import { Amount } from '../money.ts';
import type { PaymentRow } from './queries.ts';

export type PaymentJson = ReturnType<typeof paymentJson>;

export function paymentJson(row: PaymentRow) {
  const text = (amount: string) => Amount.of(amount, row.currency).toString();
  return {
    payment_id: row.payment_id,
    status: row.status,
    partner_id: row.partner_id,
    currency: row.currency,
    amount: text(row.amount),
    applied: text(row.applied),
    unapplied: text(row.unapplied),
    reversed: text(row.reversed),
    method: row.method,
    received_on: row.received_on,
    entry_on: row.entry_on,
    reference: row.reference,
    account: row.account === '' ? null : row.account,
    payer: { name: row.payer_name, account: row.payer_account },
    source: row.source,
    recorded_at: row.recorded_at,
    recorded_by: row.recorded_by,
    applications: row.applications.map((each) => ({
      number: each.number,
      amount: text(each.amount),
      small_difference: each.small_difference === null ? null : text(each.small_difference),
      applied_on: each.applied_on,
      unapplied_on: each.unapplied_on,
      confidence: each.confidence,
      confirmed_by: each.confirmed_by,
      evidence: each.evidence,
    })),
    reversals: row.reversals.map((each) => ({ ...each, amount: text(each.amount) })),
    disputes: row.disputes.map((each) => ({ ...each, amount: text(each.amount) })),
    sources: row.sources,
    suggestions: row.suggestions.map(({ evidence, ...each }) => ({
      ...each,
      amount: text(each.amount),
      why: evidence.why,
      evidence,
    })),
  };
}
