/** What a document says of its tax: a row for each rate, the total with tax, and the reasons. Empty without tax. */
import { Amount } from '../money.ts';
import type { Locale } from './locale.ts';
import { fill, type Labels } from './pdf/template.ts';
import type { DocumentSnapshot, SnapshotLine } from './snapshot.ts';
import type { TaxTotal } from './tax.ts';

export interface PresentedTax {
  /** Of the total of the lines. */
  readonly label: string;
  /** A row for each rate, and the total with tax. */
  readonly steps: readonly { readonly label: string; readonly amount: Amount }[];
  /** The total with tax, or that of the lines where there is none. */
  readonly gross: { readonly label: string; readonly amount: Amount };
  /** Reasons and the meaning of marks, a sentence each. */
  readonly notes: readonly string[];
  /** The issuer's tax number that stands in place of its own; empty if there is none. */
  readonly registration: string;
  /** What follows a line's kind: its rate where the document has several, and the mark of a reduced one. */
  readonly ofLine: (line: SnapshotLine) => string;
}

export function taxOf(
  snapshot: DocumentSnapshot,
  { tax: labels, totals }: Labels,
  locale: Locale,
  clean: (text: string) => string,
): PresentedTax {
  const { currency, invoiceAmount, taxTotals = [], gross, registration = '' } = snapshot;
  if (gross === undefined) {
    const whole = { label: totals.total, amount: Amount.of(invoiceAmount, currency) };
    return { label: totals.total, steps: [], gross: whole, notes: [], registration: '', ofLine: () => '' };
  }
  const whole = { label: totals.gross, amount: Amount.of(gross, currency) };
  const [first] = taxTotals;
  const number = clean(registration);
  return {
    label: totals.net,
    steps: [
      ...taxTotals.map((total) => ({
        label: labelOf(total, currency, labels, locale, clean),
        amount: Amount.of(total.tax, currency),
      })),
      whole,
    ],
    gross: whole,
    notes: [
      ...new Set(taxTotals.map(({ reason }) => clean(reason)).filter(Boolean)),
      ...(taxTotals.some(({ reduced }) => reduced) ? [fill(labels.marked, { mark: labels.mark })] : []),
    ],
    registration: number === '' || first === undefined ? '' : fill(labels.number, { name: clean(first.name), number }),
    ofLine: ({ tax }) =>
      tax === undefined
        ? ''
        : `${taxTotals.length > 1 ? `, ${locale.number(tax.rate)}%` : ''}${tax.reduced ? labels.mark : ''}`,
  };
}

function labelOf(
  { category, rate, reduced, name, taxable }: TaxTotal,
  currency: string,
  labels: Labels['tax'],
  locale: Locale,
  clean: (text: string) => string,
): string {
  const label = labels[reduced ? 'reduced' : category];
  return fill(label, {
    name: clean(name),
    rate: locale.number(rate),
    mark: labels.mark,
    taxable: locale.number(Amount.of(taxable, currency).toString()),
  });
}
