import { querying } from '../database/transaction.ts';
import type { RowKind } from './snapshot.ts';

export type RowToCorrect = Readonly<{
  entry_id: number;
  partner_id: string;
  kind: RowKind;
  quote_id: string;
  requote_id: string | null;
  enrollment_id: string | null;
  policy_id: string;
  currency: string;
  accepted_on: string;
  /** What reversals have left of the row. Null for the billed share of an invoice for missing shares, as `partner_cut`. */
  spot_price: string | null;
  partner_cut: string | null;
  invoice_amount: string;
  order_reference: string | null;
  /** The credit note that credits it. */
  credited_by: string | null;
  /** The reversal that takes back all that was left of it, or asks to. */
  reversed_by: string | null;
}>;

/** The id of the reversal of a row that a person reverses. No row has two. */
export const reversalId = (entryId: number): string => `${REVERSAL}${entryId}`;
const REVERSAL = 'row-';
/** SQL: the id of the reversal of the row `e` that a person reverses. */
export const REVERSAL_ID = `'${REVERSAL}' || e.entry_id`;

/** SQL: the credit notes `n` against invoices, with the events `a` that issued them and may name rows. */
export const CREDITS = `live_documents n JOIN documents i ON i.document_id = n.credits AND n.document = 'credit_note'
          JOIN audit_events a
            ON a.subject = i.number AND a.action = 'invoice.credit' AND a.occurred_at = n.issued_at
              AND a.details->>'reason' = n.reason`;

/** SQL: whether the row `e` is a reversal that a person recorded. A feed sent all other rows. The index finds its ids. */
export const isByPerson = (e: string): string =>
  `(${e}.kind = 'reversal' AND own_id(${e}) >= 'row-' AND own_id(${e}) < 'row.' AND own_id(${e}) ~ '^row-[0-9]+$')`;

/**
 * SQL: what is left of the sale `e`, and the last reversal that took a part. A reversal takes from the row that a person
 * named, from the requote that it names, or from what is left of its whole quote.
 */
export const LEFT = `LATERAL (
         SELECT greatest(least(e.partner_cut - own_cut, quote_cut), 0) AS partner_cut,
                greatest(least(e.invoice_amount - own_share, quote_share), 0) AS invoice_amount, taken_by
         FROM (SELECT coalesce(-sum(partner_cut) FILTER (WHERE is_own), 0) AS own_cut,
                      coalesce(-sum(invoice_amount) FILTER (WHERE is_own), 0) AS own_share,
                      sum(partner_cut) AS quote_cut, sum(invoice_amount) AS quote_share,
                      (array_agg(reversal_id ORDER BY entry_id DESC) FILTER (WHERE is_own OR of_quote))[1] AS taken_by
               FROM (SELECT v.*, v.kind = 'reversal' AND v.requote_id IS NULL AND NOT ${isByPerson('v')} AS of_quote,
                            v.kind = 'reversal'
                              AND CASE WHEN ${isByPerson('v')} THEN own_id(v) = ${REVERSAL_ID}
                                       ELSE v.requote_id = e.requote_id END AS is_own
                     FROM ledger_rows v WHERE v.partner_id = e.partner_id AND v.quote_id = e.quote_id) AS v) AS v)`;

const readingFrom = (source: string) => `
  SELECT e.entry_id, e.partner_id, e.kind, e.quote_id, e.requote_id, e.enrollment_id, e.policy_id, e.currency,
         (SELECT e.accepted_at AT TIME ZONE p.time_zone FROM partners p
          WHERE p.partner_id = e.partner_id)::date::text AS accepted_on,
         CASE WHEN e.spot_price IS NOT NULL THEN l.partner_cut + l.invoice_amount END::text AS spot_price,
         CASE WHEN e.partner_cut IS NOT NULL THEN l.partner_cut END::text AS partner_cut,
         l.invoice_amount::text, e.order_reference,
         (SELECT n.number FROM ${CREDITS}
          WHERE n.partner_id = e.partner_id AND n.currency = e.currency
            AND a.details->'rows' @> to_jsonb(e.entry_id) LIMIT 1) AS credited_by,
         coalesce(
           CASE WHEN l.partner_cut + l.invoice_amount = 0 THEN l.taken_by END,
           (SELECT h.reversal_id FROM held_rows h
            WHERE h.partner_id = e.partner_id AND h.kind = 'reversal'
              AND own_id(h) = ${REVERSAL_ID})) AS reversed_by
  FROM ${source} AND e.entry_id = ANY (:ids::bigint[]) ORDER BY e.entry_id`;

/** The rows with these numbers, without those of archived months. */
export const readRowsNumbered = querying<RowToCorrect, { ids: readonly number[] }>(
  readingFrom(`ledger_rows e CROSS JOIN ${LEFT} AS l WHERE true`),
);

export const readRowsBilled = querying<RowToCorrect, { ids: readonly number[]; documentId: number }>(
  readingFrom(`billed_rows e CROSS JOIN ${LEFT} AS l WHERE e.document_id = :documentId`),
);
