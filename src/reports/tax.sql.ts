import { TaxCategory } from '#config/tax';
import { querying, queryingOne } from '#database/transaction';

export type TaxLine = Readonly<{
  /** The country of the partners' addresses; empty if unknown. */
  country: string;
  category: TaxCategory;
  rate: string;
  currency: string;
  issued: number;
  voided: number;
  /** The taxable amount. Credit notes and voids reduce both the taxable amount and the tax. */
  taxable: string;
  tax: string;
}>;

/** The number of accounts whose tax in the journal differs from the tax of the lines. The lines are passed as JSON. */
export const countTaxDifferences = queryingOne<{ differences: number }, { from: string; to: string; lines: string }>(`
  SELECT count(*) AS differences FROM (
    SELECT account, currency FROM (
      SELECT concat_ws(':', 'liabilities:tax', nullif(country, ''), category, rate) AS account, currency, tax
      FROM json_to_recordset(:lines::json) AS l (country text, category text, rate text, currency text, tax numeric)
      UNION ALL
      SELECT account, currency, amount FROM journal_of_facts
      WHERE control = 'liabilities:tax' AND fact IN ('document_issued', 'document_voided')
        AND entry_on BETWEEN :from::date AND :to::date) AS both_ways
    GROUP BY account, currency HAVING sum(tax) <> 0) AS off`);

export const readTaxLines = querying<TaxLine, { from: string; to: string }>(`
  WITH dated AS (
    SELECT document_id, entry_on, 1 AS issued, 0 AS voided, 1 AS sign FROM documents
    UNION ALL SELECT document_id, entry_on, 0, 1, -1 FROM voids
  )
  SELECT t.country, t.category, trim_scale(t.rate)::text AS rate, t.currency, sum(d.issued)::bigint AS issued,
         sum(d.voided)::bigint AS voided, sum(d.sign * s.sign * t.taxable) AS taxable,
         sum(d.sign * s.sign * t.tax) AS tax
  FROM dated d JOIN document_taxes t USING (document_id) JOIN documents n USING (document_id)
  CROSS JOIN LATERAL (SELECT document_sign(n.document) AS sign) AS s
  WHERE d.entry_on BETWEEN :from::date AND :to::date
  GROUP BY t.country, t.category, t.rate, t.currency ORDER BY t.country, t.currency, t.category, t.rate DESC`);
