/**
 * SQL: the number of the document that bills the ledger row `e`, the last in a chain of replacements. Null while the
 * month is open.
 */
export const BILLED_BY = `(
  SELECT n.number FROM documents n JOIN closed_months m ON m.month = n.month
  WHERE n.partner_id = e.partner_id AND n.currency = e.currency AND n.arrangement = e.arrangement
    AND n.purpose = 'month' AND e.posted_month > coalesce(m.previous, '') AND e.posted_month <= m.month
    AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = n.document_id))`;
