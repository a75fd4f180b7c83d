/** SQL over the ledger and the partners for splits: what was accepted, and how its share is routed. */
import { query, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

export interface AcceptedRow {
  readonly partner_id: string;
  readonly quote_id: string;
  readonly requote_id: string | null;
  readonly enrollment_id: string | null;
  readonly currency: string;
  readonly accepted_at: string;
  readonly month: Month;
  readonly spot_price: string;
  readonly partner_cut: string;
  readonly invoice_amount: string;
  readonly arrangement: 'invoicing' | 'connected_account';
  /** Those of the row's own month; null under invoicing. */
  readonly split: 'real_time' | 'sequential' | null;
  readonly merchant_of_record: 'platform' | 'third_party' | null;
  readonly connected_account_id: string | null;
}

/** The acceptances of a quote, its own before those of its requotes; of one partner or of every partner that has such an id. */
export function readAcceptances(
  tx: Transaction,
  { quoteId, partnerId }: { quoteId: string; partnerId?: string | undefined },
): Promise<AcceptedRow[]> {
  return query(
    tx,
    `WITH rows AS (
       SELECT * FROM entries
       WHERE kind = 'quote_accepted' AND coalesce(reversal_id, requote_id, quote_id) = :quoteId
       UNION ALL
       SELECT * FROM entries WHERE kind = 'requote_accepted' AND quote_id = :quoteId
     )
     SELECT e.partner_id, e.quote_id, e.requote_id, e.enrollment_id, e.currency, e.accepted_at, e.month,
            e.spot_price::text, e.partner_cut::text, e.invoice_amount::text, e.arrangement,
            a.split, a.merchant_of_record, a.connected_account_id
     FROM rows e
     LEFT JOIN LATERAL (
       SELECT * FROM partner_arrangements a
       WHERE a.partner_id = e.partner_id AND a.from_month <= e.month COLLATE "C"
       ORDER BY a.from_month DESC LIMIT 1) AS a ON e.arrangement = 'connected_account'
     WHERE CAST(:partnerId AS text) IS NULL OR e.partner_id = :partnerId
     ORDER BY e.partner_id, e.kind = 'requote_accepted', e.entry_id`,
    { quoteId, partnerId: partnerId ?? null },
  );
}
