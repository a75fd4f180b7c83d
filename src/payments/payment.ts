/** Amounts have the digits of their currency. Missing values are `null`. */
import { Amount } from '#money';
import { PaymentRow } from './payments.sql.ts';

export type PaymentJson = ReturnType<typeof paymentJson>;

export function paymentJson({ payer_name, payer_account, ...row }: PaymentRow) {
  const text = (amount: string) => Amount.of(amount, row.currency).toString();
  const inCurrency = <Part extends { readonly amount: string }>(part: Part) => ({ ...part, amount: text(part.amount) });
  return {
    ...inCurrency(row),
    applied: text(row.applied),
    unapplied: text(row.unapplied),
    reversed: text(row.reversed),
    account: row.account === '' ? null : row.account,
    payer: { name: payer_name, account: payer_account },
    applications: row.applications.map(({ small_difference, ...each }) => ({
      ...inCurrency(each),
      small_difference: small_difference === null ? null : text(small_difference),
    })),
    reversals: row.reversals.map(inCurrency),
    disputes: row.disputes.map(inCurrency),
    suggestions: row.suggestions.map((each) => ({ ...inCurrency(each), why: each.evidence.why })),
  };
}
