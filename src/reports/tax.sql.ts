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
  /** The part of the taxable amount that was recorded late: rows of earlier months. */
  late: string;
  tax: string;
}>;

/**
 * The day by which a document belongs to a period: the entry of its tax (`tax_days`), or its issue.
 */
export const TAX_BASES = ['tax-point', 'issued'] as const;
export type TaxPeriod = Readonly<{ from: string; to: string; basis: (typeof TAX_BASES)[number] }>;

/** The number of accounts whose tax in the journal differs from the tax of the lines. The lines are passed as JSON. */
export const countTaxDifferences = queryingOne<{ differences: number }, TaxPeriod & { lines: string }>(`
  SELECT count(*) AS differences FROM (
    SELECT account, currency FROM (
      SELECT concat_ws(':', 'liabilities:tax', nullif(country, ''), category, rate) AS account, currency, tax
      FROM json_to_recordset(:lines::json) AS l (country text, category text, rate text, currency text, tax numeric)
      UNION ALL
      SELECT j.account, j.currency, j.amount
      FROM journal_of_facts j JOIN documents d ON d.document_id = j.log_no LEFT JOIN voids v USING (document_id)
      WHERE j.control = 'liabilities:tax'
        AND CASE WHEN :basis = 'tax-point' THEN j.entry_on
                 WHEN j.fact IN ('document_issued', 'document_taxed') THEN d.entry_on ELSE v.entry_on END
            BETWEEN :from::date AND :to::date) AS both_ways
    GROUP BY account, currency HAVING sum(tax) <> 0) AS off`);

export const readTaxLines = querying<TaxLine, TaxPeriod>(`
  WITH dated AS (
    SELECT document_id, entry_on, taxed_on, 1 AS issued, 0 AS voided, 1 AS sign
    FROM documents JOIN tax_days USING (document_id)
    UNION ALL SELECT document_id, entry_on, untaxed_on, 0, 1, -1 FROM voids JOIN tax_days USING (document_id)
  )
  SELECT t.country, t.category, trim_scale(t.rate)::text AS rate, t.currency, sum(d.issued)::bigint AS issued,
         sum(d.voided)::bigint AS voided, sum(s.sign * t.taxable) AS taxable,
         coalesce(sum(s.sign * e.amount), 0) AS late, sum(s.sign * t.tax) AS tax
  FROM dated d JOIN document_taxes t USING (document_id) JOIN documents n USING (document_id)
  CROSS JOIN LATERAL (SELECT d.sign * document_sign(n.document) AS sign) AS s
  CROSS JOIN LATERAL (
    SELECT sum(l.invoice_amount) AS amount FROM document_lines l
    WHERE l.document_id = t.document_id AND l.tax = t.position AND l.month < n.month) AS e
  WHERE CASE :basis WHEN 'issued' THEN d.entry_on ELSE d.taxed_on END BETWEEN :from::date AND :to::date
  GROUP BY t.country, t.category, t.rate, t.currency ORDER BY t.country, t.currency, t.category, t.rate DESC`);
