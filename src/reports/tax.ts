/**
 * The tax report: the tax of documents between two days, by country, category, rate and currency, and by tax point or day
 * of issue. The report states whether its tax equals the journal's tax accounts. Refusal: argument_invalid.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { columnsOf, Sheet } from '#sheet';
import { table } from '#text-table';
import { Amount, dateName, groupThousands } from '#values';
import { BooksOfDay, readBooksOfDay } from './preliminary.ts';
import { countTaxDifferences, readTaxLines, TaxLine, TaxPeriod } from './tax.sql.ts';

type TaxReport = BooksOfDay &
  TaxPeriod &
  Readonly<{
    lines: readonly TaxLine[];
    /** Whether exactly this tax was posted to the tax accounts of the journal. */
    ties: boolean;
  }>;

/** The first and last day of the report, as `YYYY-MM-DD`. Both days are included. */
export async function readTaxReport(tx: Transaction, period: TaxPeriod): Promise<TaxReport> {
  const { from, to } = period;
  if (from > to) throw refuse('argument_invalid', { argument: '--from', value: from, reason: `is after ${to}` });
  const lines = await readTaxLines(tx, period);
  const { differences } = await countTaxDifferences(tx, { ...period, lines: JSON.stringify(lines) });
  return {
    ...period,
    lines: lines.map((line) => {
      const text = (amount: string) => Amount.of(amount, line.currency).toString();
      const { taxable, late, tax } = line;
      return { ...line, taxable: text(taxable), late: text(late), tax: text(tax) };
    }),
    ties: differences === 0,
    ...(await readBooksOfDay(tx, to)),
  };
}

export const taxSheet = ({ lines }: TaxReport): Sheet => ({
  name: 'Tax',
  columns: columnsOf('country category rate currency issued:count voided:count taxable:amount late:amount tax:amount'),
  rows: lines,
});

export function describeTax({ from, to, by, lines, ties }: TaxReport) {
  const basis = by === 'issued' ? 'documents issued' : 'sales';
  const title = `Tax of ${basis} from ${dateName(from)} to ${dateName(to)}`;
  if (lines.length === 0) return `${title}\n\nNo documents in this period carry tax.`;
  const rows = lines.map((line) => [
    ...[line.country, line.category.replace('_', ' '), `${line.rate}%`, line.currency, line.issued, line.voided],
    ...[line.taxable, line.late, line.tax].map(groupThousands),
  ]);
  const headings = ['country', 'category', '>rate', 'in', '>issued', '>voided', '>taxable', '>late', '>tax'];
  return [
    title,
    '',
    table(headings, rows),
    '',
    ties ? 'Ties to the journal.' : 'DOES NOT TIE TO THE JOURNAL: verify the ledger.',
  ].join('\n');
}
