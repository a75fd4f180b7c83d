import { querying } from '#database/transaction';
import { RowKind } from './snapshot.ts';

export type RowToCorrect = Readonly<{
  entry_id: number;
  partner_id: string;
  kind: RowKind;
  quote_id: string;
  requote_id: string | null;
  enrollment_id: string | null;
  policy_id: string;
  currency: string;
  /** Null for the billed share of an invoice for missing shares, as `partner_cut`. */
  spot_price: string | null;
  partner_cut: string | null;
  invoice_amount: string;
  order_reference: string | null;
  /** The credit note that credits it. */
  credited_by: string | null;
  /** The reversal that takes it back, or asks to. */
  reversed_by: string | null;
}>;

/** The id of the reversal of a row that a person reverses. No row has two. */
export const reversalId = (entryId: number) => `${REVERSAL}${entryId}`;
const REVERSAL = 'row-';

const readingFrom = (source: string) => `
  SELECT e.entry_id, e.partner_id, e.kind, e.quote_id, e.requote_id, e.enrollment_id, e.policy_id, e.currency,
         e.spot_price::text, e.partner_cut::text, e.invoice_amount::text, e.order_reference,
         (SELECT n.number FROM live_documents n JOIN documents i ON i.document_id = n.credits
          JOIN audit_events a
            ON a.subject = i.number AND a.action = 'invoice.credit' AND a.occurred_at = n.issued_at
          WHERE n.document = 'credit_note' AND n.partner_id = e.partner_id AND n.currency = e.currency
            AND a.details->>'reason' = n.reason AND a.details->'rows' @> to_jsonb(e.entry_id) LIMIT 1) AS credited_by,
         coalesce(
           (SELECT v.reversal_id FROM ledger_rows v
            WHERE v.partner_id = e.partner_id AND v.quote_id = e.quote_id AND v.kind = 'reversal'
              AND (v.requote_id IS NULL OR v.requote_id = e.requote_id) LIMIT 1),
           (SELECT h.reversal_id FROM held_rows h
            WHERE h.partner_id = e.partner_id AND h.kind = 'reversal'
              AND own_id(h) = '${REVERSAL}' || e.entry_id)) AS reversed_by
  FROM ${source} AND e.entry_id = ANY (:ids::bigint[]) ORDER BY e.entry_id`;

/** The rows with these numbers, without those of archived months. */
export const readRowsNumbered = querying<RowToCorrect, { ids: readonly number[] }>(
  readingFrom('ledger_rows e WHERE true'),
);

export const readRowsBilled = querying<RowToCorrect, { ids: readonly number[]; documentId: number }>(
  readingFrom('billed_rows e WHERE e.document_id = :documentId'),
);
