/** Reports documents in a currency other than their partner's to finance, before and after the documents are sent. */
import { Amount } from '#money';
import { OtherCurrency } from './months.sql.ts';

export const otherCurrencyJson = ({ invoice_amount, currency, ...row }: OtherCurrency) => ({
  ...row,
  currency,
  invoice_amount: Amount.of(invoice_amount, currency).toString(),
});

/** Returns a sentence such as `INV-2026-000001 bills p-1 (Albion) in EUR, 0.00; its own currency is GBP.` */
export function describeOtherCurrency(row: OtherCurrency) {
  const sum = Amount.of(row.invoice_amount, row.currency);
  const nothing = sum.isZero() ? ': its rows add up to zero' : '';
  return (
    `${row.number} bills ${row.partner_id} (${row.name}) ${sum.forPeople()}${nothing}. ` +
    `The partner's own currency is ${row.partner_currency}.`
  );
}
