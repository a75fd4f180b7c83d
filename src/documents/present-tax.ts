/** The tax statement of a document: a row for each rate, the total with tax, and the reasons. Empty without tax. */
import { Amount } from '#money';
import { documentTax, lineTax, TaxTotal } from './document-tax.ts';
import { DocumentRow, LineRow } from './documents.sql.ts';
import { Locale, localeOf } from './locale.ts';
import { fill, Labels, readTemplate } from './pdf/template.ts';
import { DocumentSnapshot, SnapshotLine } from './snapshot.ts';

export type PresentedTax = Readonly<{
  label: string;
  steps: readonly Readonly<{ label: string; amount: Amount }>[];
  /** The total with tax; without tax, the total of the lines. */
  gross: Readonly<{ label: string; amount: Amount }>;
  /** The reasons for no tax and the meanings of marks, a sentence each. */
  notes: readonly string[];
  /** Replaces the issuer's usual tax number; empty if there is none. */
  registration: string;
  /** The rate, if the document has several, and the mark of a reduced rate. */
  ofLine: (line: SnapshotLine) => string;
}>;

export function taxOf(
  snapshot: Pick<DocumentSnapshot, 'currency' | 'invoiceAmount' | 'taxTotals' | 'gross' | 'registration'>,
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
) {
  const label = labels[reduced ? 'reduced' : category];
  return fill(label, {
    name: clean(name),
    rate: locale.number(rate),
    mark: labels.mark,
    taxable: locale.number(Amount.of(taxable, currency).toString()),
  });
}

/** The total before tax, a row for each rate, and the total with tax, in the words of the PDF; none without tax. */
export function taxSteps(row: DocumentRow) {
  const tax = documentTax(row);
  if (tax === undefined) return [];
  const { currency, invoice_amount: invoiceAmount, address_country: country } = row;
  const labels = readTemplate().labels;
  const { label, steps } = taxOf({ currency, invoiceAmount, ...tax }, labels, localeOf(country), (text) => text);
  return [{ label, amount: Amount.of(invoiceAmount, currency) }, ...steps];
}

/** The tax of a line: `19%`, or its category if no tax is charged; empty on a document without tax. */
export function lineTaxText({ tax }: LineRow, { taxes }: DocumentRow) {
  const found = lineTax(tax, taxes);
  if (found === undefined) return '';
  return found.category === 'standard' ? `${found.rate}%` : found.category.replace('_', ' ');
}
