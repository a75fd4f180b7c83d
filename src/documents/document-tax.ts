/**
 * The tax of an issued document, and the tax that a credit note against an invoice reverses. All functions are pure.
 * issue/tax.sql.ts computes the totals by country, category and rate, each rounded once (EN 16931, BR-CO-17).
 */
import { TaxCategory } from '#config/tax';
import { Amount } from '#money';

/** A tax as stated on documents. Rates are percentages, such as `19` or `7.5`. */
export type TaxRate = Readonly<{
  category: TaxCategory;
  rate: string;
  /** Whether the rate is marked as reduced, as a Japanese qualified invoice requires. */
  reduced: boolean;
  /** Why no tax is charged; empty for the categories standard and zero. */
  reason: string;
  /** The reason's VATEX code; empty if none was configured. */
  reason_code: string;
}>;

/** A total by country, category and rate. Reduced rates have their own totals. */
export type TaxTotal = TaxRate &
  Readonly<{
    /** The partner's country, which selected the rule; may be empty. A reversal has that of the reversed sale. */
    country: string;
    /** The printed name, such as `VAT`. */
    name: string;
    taxable: string;
    tax: string;
  }>;

export type DocumentTax = Readonly<{
  /** The issuer's tax number in the partner's country; empty if its usual number applies. */
  registration: string;
  taxTotals: readonly TaxTotal[];
  /** The sum of the lines. */
  net: string;
  tax: string;
  gross: string;
}>;

export type LineTax = TaxRate;

export type TaxRow = TaxTotal &
  Readonly<{
    position: number;
    registration: string;
  }>;

export type CreditedTax = Readonly<{
  position: number;
  taxable: string;
  tax: string;
}>;

/** The part of a credit note that belongs to one tax total of the invoice. */
export type CreditShare = Readonly<{
  position: number;
  taxable: Amount;
  tax: Amount;
}>;

/**
 * Divides a credit before tax among an invoice's tax totals, in proportion to what earlier credits have left of each.
 * The tax of a share is chosen so that the tax of all credits equals the tax on their sum, and credits for the whole
 * invoice credit its exact tax. If nothing is left, there are no shares.
 */
export function shareCredit(
  amount: Amount,
  totals: readonly Pick<TaxRow, 'position' | 'rate' | 'taxable'>[],
  credited: readonly CreditedTax[],
): CreditShare[] {
  const { currency } = amount;
  const zero = Amount.zero(currency);
  const of = (text: string) => Amount.of(text, currency);
  const rows = totals.map(({ position, rate, taxable }) => {
    const before = credited.find((each) => each.position === position);
    const taken = of(before?.taxable ?? '0');
    return { position, rate, taken, tax: of(before?.tax ?? '0'), left: of(taxable).minus(taken) };
  });
  const whole = rows.reduce((sum, { left }) => sum.plus(left), zero);
  if (whole.isZero()) return [];
  let reached = zero;
  let given = zero;
  return rows.flatMap(({ position, rate, taken, tax, left }) => {
    reached = reached.plus(left);
    // Each share is the difference of rounded running totals, so the shares add up to the amount.
    const upTo = amount.prorated(reached, whole);
    const taxable = upTo.minus(given);
    given = upTo;
    const share = { position, taxable, tax: taken.plus(taxable).atPercent(rate).minus(tax) };
    return share.taxable.isZero() && share.tax.isZero() ? [] : [share];
  });
}

/** The fields of a document with tax, with the currency's digits; undefined without tax. */
export function documentTax({
  currency,
  invoice_amount,
  taxes,
}: {
  currency: string;
  invoice_amount: string;
  taxes: readonly TaxRow[];
}): DocumentTax | undefined {
  const [first] = taxes;
  if (first === undefined) return undefined;
  const net = Amount.of(invoice_amount, currency);
  const tax = Amount.sum(currency, taxes, (each) => Amount.of(each.tax, currency));
  return {
    registration: first.registration,
    taxTotals: taxes.map(({ position: _, registration: __, ...total }) => ({
      ...total,
      taxable: Amount.of(total.taxable, currency).toString(),
      tax: Amount.of(total.tax, currency).toString(),
    })),
    net: net.toString(),
    tax: tax.toString(),
    gross: net.plus(tax).toString(),
  };
}

/** The tax of a line by the position that the line names; undefined without tax. */
export function lineTax(position: number | null, taxes: readonly TaxRow[]): LineTax | undefined {
  const row = taxes.find((each) => each.position === position);
  if (row === undefined) return undefined;
  const { category, rate, reduced, reason, reason_code } = row;
  return { category, rate, reduced, reason, reason_code };
}
