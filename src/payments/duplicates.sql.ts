/** SQL over the payments that a report is compared with. */
import { query, type Transaction } from '../database/transaction.ts';
import type { Candidate } from './duplicates.ts';
import { TAKEN_BACK } from './payouts.sql.ts';

/** Payments of one of these amounts that are not wholly reversed, and those with one of these references. */
export function readCandidates(
  tx: Transaction,
  wanted: { money: readonly { currency: string; amount: string }[]; references: readonly string[] },
): Promise<Candidate[]> {
  return query(
    tx,
    `SELECT p.payment_id, p.method, p.currency, p.amount, b.reversed, b.partner_id, p.received_on,
            ${TAKEN_BACK} AS taken_back,
            s."references",
            ARRAY(SELECT DISTINCT d.number FROM payment_applications a JOIN documents d USING (document_id)
                  WHERE a.payment_id = p.payment_id ORDER BY d.number) AS documents,
            s.reported_by_bank, s.reported_by_processor, s.reported_by_hand,
            EXISTS (SELECT FROM payout_payments o WHERE o.payment_id = p.payment_id) AS paid_out
     FROM payments p JOIN payment_balances b USING (payment_id)
     CROSS JOIN LATERAL (
       SELECT array_agg(s.reference) || p.reference
                || array_remove(array_agg(l.bank_reference), NULL)
                || coalesce(array_agg(f.text) FILTER (WHERE f.text IS NOT NULL), '{}') AS "references",
              coalesce(bool_or(s.source = 'bank'), false) OR EXISTS (
                SELECT FROM payment_reversals r JOIN payments o ON o.payment_id = r.payment_id
                WHERE r.duplicate_of = p.payment_id AND o.source = 'bank') AS reported_by_bank,
              coalesce(bool_or(s.source = 'processor'), false) AS reported_by_processor,
              coalesce(bool_or(s.source = 'hand'), false) AS reported_by_hand
       FROM payment_sources s LEFT JOIN bank_lines l USING (bank_line_id)
       LEFT JOIN LATERAL jsonb_to_recordset(l."references") AS f (field text, text text) ON true
       WHERE s.payment_id = p.payment_id) AS s
     WHERE (b.status <> 'reversed' AND (p.currency, p.amount) IN (
              SELECT currency, amount FROM json_to_recordset(:money::json) AS m (currency text, amount numeric)))
        OR p.payment_id IN (SELECT payment_id FROM payment_sources WHERE reference = ANY (:references::text[]))
     ORDER BY p.payment_id`,
    { money: JSON.stringify(wanted.money), references: wanted.references },
  );
}
