/**
 * The tax report: tax stated by documents issued and voided between two days, by country, category, rate and currency,
 * and whether the journal's tax accounts match. Refusal: argument_invalid.
 */
import type { TaxCategory } from '../config/tax.ts';
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount, groupThousands } from '../money.ts';
import { dateName } from '../month.ts';
import type { Sheet } from '../sheet.ts';
import { table } from '../text-table.ts';
import { type BooksOfDay, readBooksOfDay } from './preliminary.ts';

interface TaxLine {
  /** Of the partners' addresses; empty where they have none. */
  readonly country: string;
  readonly category: TaxCategory;
  /** In percent. */
  readonly rate: string;
  readonly currency: string;
  /** Documents issued, and documents voided. */
  readonly issued: number;
  readonly voided: number;
  /** Credit notes and voids lower both. */
  readonly taxable: string;
  readonly tax: string;
}

interface TaxReport extends BooksOfDay {
  readonly from: string;
  readonly to: string;
  readonly lines: readonly TaxLine[];
  /** Whether the journal posted exactly this to the tax accounts. */
  readonly ties: boolean;
}

/** Both days are included, as `YYYY-MM-DD`; documents count on the day of their journal entry. */
export async function readTaxReport(tx: Transaction, days: { from: string; to: string }): Promise<TaxReport> {
  if (days.from > days.to) {
    throw refuse('argument_invalid', { argument: '--from', value: days.from, reason: `is after ${days.to}` });
  }
  const lines = await query<TaxLine>(
    tx,
    `WITH dated AS (
       SELECT document_id, entry_on, 1 AS issued, 0 AS voided, 1 AS sign FROM documents
       UNION ALL SELECT document_id, entry_on, 0, 1, -1 FROM voids
     )
     SELECT t.country, t.category, trim_scale(t.rate)::text AS rate, t.currency, sum(d.issued)::bigint AS issued,
            sum(d.voided)::bigint AS voided, sum(d.sign * s.sign * t.taxable) AS taxable,
            sum(d.sign * s.sign * t.tax) AS tax
     FROM dated d JOIN document_taxes t USING (document_id) JOIN documents n USING (document_id)
     CROSS JOIN LATERAL (SELECT document_sign(n.document) AS sign) AS s
     WHERE d.entry_on BETWEEN :from::date AND :to::date
     GROUP BY t.country, t.category, t.rate, t.currency ORDER BY t.country, t.currency, t.category, t.rate DESC`,
    days,
  );
  const { differences } = await queryOne<{ differences: number }>(
    tx,
    `SELECT count(*) AS differences FROM (
       SELECT account, currency FROM (
         SELECT concat_ws(':', 'liabilities:tax', nullif(country, ''), category, rate) AS account, currency, tax
         FROM json_to_recordset(:lines::json) AS l (country text, category text, rate text, currency text, tax numeric)
         UNION ALL
         SELECT account, currency, amount FROM journal_of_facts
         WHERE control = 'liabilities:tax' AND fact IN ('document_issued', 'document_voided')
           AND entry_on BETWEEN :from::date AND :to::date) AS both_ways
       GROUP BY account, currency HAVING sum(tax) <> 0) AS off`,
    { ...days, lines: JSON.stringify(lines) },
  );
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
  columns: {
    country: 'text',
    category: 'text',
    rate: 'text',
    currency: 'text',
    issued: 'count',
    voided: 'count',
    taxable: 'amount',
    tax: 'amount',
  },
  rows: lines,
});

export function describeTax({ from, to, lines, ties }: TaxReport): string {
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
