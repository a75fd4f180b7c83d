/** Checks of tax. Each constant is the body of a WITH, with the CTEs that `query.ts` describes. */
import { inMonth } from './query.ts';

/**
 * The tax of a document is the sum of its tax totals. The totals cover the document's net amount and its lines. Tax is
 * computed once on a month's total. When a credit note against an invoice is issued, the tax of all live credit notes
 * against it adds up to the tax on the amount that they credit together.
 */
export const TAXES_TIE = `RECURSIVE chains AS (
  SELECT document_id AS invoice_id, document_id, replaces FROM documents
  WHERE document_id IN (SELECT credits FROM documents)
  UNION ALL
  SELECT c.invoice_id, d.document_id, d.replaces FROM chains c JOIN documents d ON d.document_id = c.replaces
), notes AS (
  SELECT n.document_id, n.credits, n.log_no, v.log_no AS voided_as, t.country, t.category, t.rate, t.reduced,
         t.taxable, t.tax
  FROM documents n JOIN document_taxes t USING (document_id) LEFT JOIN voids v USING (document_id)
  WHERE n.purpose = 'adjustment'
), inspected AS (
  SELECT d.number, d.invoice_amount, d.tax, d.gross, s.totals, s.taxable, s.tax AS total_tax, s.wrong, l.untaxed,
         l.lines, d.arrangement, s.strange
  FROM documents d
  CROSS JOIN LATERAL (
    SELECT count(*) AS totals, sum(t.taxable) AS taxable, coalesce(sum(t.tax), 0) AS tax,
           count(*) FILTER (WHERE d.purpose = 'adjustment' AND NOT EXISTS (
             SELECT FROM document_taxes i
             WHERE i.document_id = d.credits AND (i.country, i.category, i.rate, i.reduced, i.currency)
               = (t.country, t.category, t.rate, t.reduced, t.currency))) AS strange,
           string_agg(format('%s %s: %s on %s', t.category, trim_scale(t.rate), t.tax, t.taxable), ', '
                      ORDER BY t.position) FILTER (WHERE t.currency <> d.currency OR CASE d.purpose
             WHEN 'adjustment' THEN t.tax <> tax_of(b.taxable + t.taxable, t.rate, t.currency) - b.tax
             ELSE t.tax <> tax_of(t.taxable, t.rate, t.currency) OR t.taxable IS DISTINCT FROM (
               SELECT sum(l.invoice_amount) FROM document_lines l
               WHERE l.document_id = t.document_id AND l.tax = t.position) END) AS wrong
    FROM document_taxes t
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(n.taxable), 0) AS taxable, coalesce(sum(n.tax), 0) AS tax
      FROM chains c JOIN notes n ON n.credits = c.document_id
      WHERE c.invoice_id = d.credits AND n.log_no < d.log_no AND coalesce(n.voided_as > d.log_no, true)
        AND (n.country, n.category, n.rate, n.reduced) = (t.country, t.category, t.rate, t.reduced)) AS b
    WHERE t.document_id = d.document_id) AS s
  CROSS JOIN LATERAL (
    SELECT count(*) AS lines, count(*) FILTER (WHERE l.tax IS NULL) AS untaxed
    FROM document_lines l WHERE l.document_id = d.document_id) AS l
  WHERE ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject,
         format('net %s, tax %s, gross %s; %s totals with %s on %s, wrong: %s; %s of %s lines without tax',
                invoice_amount, tax, gross, totals, total_tax, coalesce(taxable, 0), coalesce(wrong, 'none'), untaxed,
                lines) AS detail
  FROM inspected
  WHERE tax <> total_tax OR gross <> invoice_amount + tax OR wrong IS NOT NULL OR strange > 0
     OR taxable <> invoice_amount OR (totals > 0 AND (untaxed > 0 OR arrangement <> 'invoicing'))
     OR (totals = 0 AND untaxed < lines)
)`;

/**
 * The journal's tax accounts equal the tax totals of documents issued less those voided. Always checked over
 * everything.
 */
export const TAX_PAYABLE_TIES = `stated AS (
  SELECT d.document_id, t.currency, -document_sign(d.document) * t.tax AS amount,
         concat_ws(':', 'liabilities:tax', nullif(t.country, ''), t.category, trim_scale(t.rate)::text) AS account
  FROM document_taxes t JOIN documents d USING (document_id)
), inspected AS (
  SELECT account, currency, sum(by_documents) AS by_documents, sum(by_journal) AS by_journal
  FROM (SELECT account, currency, amount AS by_documents, 0 AS by_journal FROM stated
        UNION ALL
        SELECT s.account, s.currency, -s.amount, 0 FROM stated s JOIN voids v ON v.document_id = s.document_id
        UNION ALL
        SELECT account, currency, 0, amount FROM journal_of_facts
        WHERE control = 'liabilities:tax' AND fact IN ('document_issued', 'document_voided')) AS both_ways
  GROUP BY account, currency
), differences AS (
  SELECT account AS subject,
         format('documents state %s %s; the journal has %s', by_documents, currency, by_journal) AS detail
  FROM inspected WHERE by_documents <> by_journal
)`;
