/**
 * The tax report: the tax of documents issued and voided between two days, by country, category, rate and currency. The
 * report states whether its tax equals the journal's tax accounts. Refusal: argument_invalid.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { columnsOf, Sheet } from '#sheet';
import { table } from '#text-table';
import { Amount, dateName, groupThousands } from '#values';
import { BooksOfDay, readBooksOfDay } from './preliminary.ts';
import { countTaxDifferences, readTaxLines, TaxLine } from './tax.sql.ts';

type TaxReport = BooksOfDay &
  Readonly<{
    from: string;
    to: string;
    lines: readonly TaxLine[];
    /** Whether exactly this tax was posted to the tax accounts of the journal. */
    ties: boolean;
  }>;

/**
 * The first and last day of the report, as `YYYY-MM-DD`. Both days are included. A document belongs to the day of its
 * journal entry.
 */
export async function readTaxReport(tx: Transaction, days: { from: string; to: string }): Promise<TaxReport> {
  if (days.from > days.to) {
    throw refuse('argument_invalid', { argument: '--from', value: days.from, reason: `is after ${days.to}` });
  }
  const lines = await readTaxLines(tx, days);
  const { differences } = await countTaxDifferences(tx, { ...days, lines: JSON.stringify(lines) });
  const text = (amount: string, currency: string) => Amount.of(amount, currency).toString();
  return {
    ...days,
    lines: lines.map((line) => ({
      ...line,
      taxable: text(line.taxable, line.currency),
      tax: text(line.tax, line.currency),
    })),
    ties: differences === 0,
    ...(await readBooksOfDay(tx, days.to)),
  };
}

export const taxSheet = ({ lines }: TaxReport): Sheet => ({
  name: 'Tax',
  columns: columnsOf('country category rate currency issued:count voided:count taxable:amount tax:amount'),
  rows: lines,
});

export function describeTax({ from, to, lines, ties }: TaxReport) {
  const title = `Tax of documents from ${dateName(from)} to ${dateName(to)}`;
  if (lines.length === 0) return `${title}\n\nNo documents in this period carry tax.`;
  const rows = lines.map((line) => [
    ...[line.country, line.category.replace('_', ' '), `${line.rate}%`, line.currency, line.issued, line.voided],
    ...[line.taxable, line.tax].map(groupThousands),
  ]);
  return [
    title,
    '',
    table(['country', 'category', '>rate', 'in', '>issued', '>voided', '>taxable', '>tax'], rows),
    '',
    ties ? 'Ties to the journal.' : 'DOES NOT TIE TO THE JOURNAL: verify the ledger.',
  ].join('\n');
}
