/**
 * The tax report: the tax of documents between two days, by country, category, rate and currency, and by tax point or day
 * of issue. The report states whether its tax equals the journal's tax accounts. Refusal: argument_invalid.
 */
import { Block } from '#blocks';
import { Transaction } from '#database/transaction';
import { refuseField } from '#errors/refusals';
import { columnsOf, Sheet } from '#sheet';
import { Amount, groupThousands } from '#values';
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
  if (from > to) throw refuseField('from', from, `is after ${to}`);
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

export const taxBlocks = ({ lines }: TaxReport): Block[] =>
  lines.length === 0
    ? []
    : [
        {
          title: 'Tax by country, category and rate',
          table: {
            headings: ['country', 'category', '>rate', 'in', '>issued', '>voided', '>taxable', '>late', '>tax'],
            rows: lines.map((line) => [
              ...[line.country, line.category.replace('_', ' '), `${line.rate}%`, line.currency],
              ...[line.issued, line.voided, ...[line.taxable, line.late, line.tax].map(groupThousands)],
            ]),
          },
        },
      ];
