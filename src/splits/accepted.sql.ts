import { prepared, query, Transaction } from '#database/transaction';
import { Month } from '#month';

export type AcceptedRow = Readonly<{
  partner_id: string;
  quote_id: string;
  requote_id: string | null;
  enrollment_id: string | null;
  currency: string;
  accepted_at: string;
  month: Month;
  spot_price: string;
  partner_cut: string;
  invoice_amount: string;
  arrangement: 'invoicing' | 'connected_account';
  /** The split comes from the arrangement in the row's own month. Null under invoicing. */
  split: 'real_time' | 'sequential' | null;
  merchant_of_record: 'platform' | 'third_party' | null;
  connected_account_id: string | null;
  settlement_currencies: readonly string[] | null;
}>;

const ACCEPTED = `e.partner_id, e.quote_id, e.requote_id, e.enrollment_id, e.currency, e.accepted_at, e.month,
            e.spot_price::text, e.partner_cut::text, e.invoice_amount::text, e.arrangement,
            a.split, a.merchant_of_record, a.connected_account_id, a.settlement_currencies`;

const ARRANGED = `LEFT JOIN LATERAL (
       SELECT * FROM partner_arrangements a
       WHERE a.partner_id = e.partner_id AND a.from_month <= e.month COLLATE "C"
       ORDER BY a.from_month DESC LIMIT 1) AS a ON e.arrangement = 'connected_account'`;

/**
 * The acceptance of the quote comes first, then the acceptances of its requotes. Without a partner, all partners are
 * searched.
 */
export function readAcceptances(
  tx: Transaction,
  { quoteId, partnerId }: { quoteId: string; partnerId?: string | undefined },
): Promise<AcceptedRow[]> {
  return query(
    tx,
    `WITH rows AS (
       SELECT * FROM ledger_rows
       WHERE kind = 'quote_accepted' AND own_id(ledger_rows) = :quoteId
       UNION ALL
       SELECT * FROM ledger_rows WHERE kind = 'requote_accepted' AND quote_id = :quoteId
     )
     SELECT ${ACCEPTED}
     FROM rows e ${ARRANGED}
     WHERE :partnerId::text IS NULL OR e.partner_id = :partnerId
     ORDER BY e.partner_id, e.kind = 'requote_accepted', e.entry_id`,
    { quoteId, partnerId: partnerId ?? null },
  );
}

const READ_CONNECTED_ACCEPTANCES = prepared(
  'read_connected_acceptances',
  // Most partners have no connected account, so the rows of these partners are not searched.
  `
    SELECT w.nth, r.*
    FROM ROWS FROM (
      json_to_recordset(:asked::json) AS ("partnerId" text, kind text, id text)
    ) WITH ORDINALITY AS w ("partnerId", kind, id, nth)
    CROSS JOIN LATERAL (
      SELECT ${ACCEPTED}
      FROM ledger_rows e ${ARRANGED}
      WHERE EXISTS (SELECT FROM partner_arrangements p
                    WHERE p.partner_id = w."partnerId" COLLATE "C" AND p.arrangement = 'connected_account')
        AND e.partner_id = w."partnerId" COLLATE "C" AND e.kind = w.kind
        AND own_id(e) = w.id COLLATE "C"
        AND e.arrangement = 'connected_account'
      LIMIT 1) AS r`,
);

/** The keys of the map are indexes of `accepted`. */
export async function readConnectedAcceptances(
  tx: Transaction,
  accepted: readonly { partnerId: string; quoteId: string; requoteId: string | null }[],
): Promise<ReadonlyMap<number, AcceptedRow>> {
  const asked = accepted.map(({ partnerId, quoteId, requoteId }) =>
    requoteId === null
      ? { partnerId, kind: 'quote_accepted', id: quoteId }
      : { partnerId, kind: 'requote_accepted', id: requoteId },
  );
  const rows = await query<AcceptedRow & { nth: number }>(tx, READ_CONNECTED_ACCEPTANCES, {
    asked,
  });
  return new Map(rows.map(({ nth, ...row }) => [nth - 1, row]));
}
