import { query, querying, Transaction } from '#database/transaction';
import { Month } from '#month';
import { Recording } from './accounts.sql.ts';

export type ReversedTransfer = Readonly<{
  share_allocation_id: number;
  account: string;
  balance_transaction: string;
  shares: number;
  partner_id: string;
  quote_id: string;
  /**
   * The named requote, if the ledger has such a requote. If no requote is named and the quote was invoiced: its only
   * routed requote.
   */
  requote_id: string | null;
  /**
   * The number of routed requotes that may be reversed, if the quote was invoiced and no requote is named; otherwise 0.
   */
  of_requotes: number;
  enrollment_id: string | null;
  policy_id: string;
  currency: string;
  /** The reversed amount, above zero. */
  amount: string;
  occurred_at: string;
  /** The refunded price in the partner's settlement file. */
  refunded: string | null;
  /** The partner's id in its settlement file, unless a person has refused a reversal with that id. */
  reversal_id: string | null;
  /** The undecided held row with that id. */
  held_row_id: number | null;
  /** The amount by which the quote's reversed transfers exceed its reversals in the ledger, above zero. */
  beyond_ledger: string;
  /** The same beyond those reversals that were recorded because the processor had reversed. */
  beyond_processor: string;
  spot_price_left: string;
  partner_cut_left: string;
  invoice_amount_left: string;
}>;

type ReversedQuestion = Readonly<{
  month?: Month | undefined;
  balance_transaction?: Readonly<{ account: string; id: string }> | undefined;
}>;

/** Reads reversed transfers of quotes whose reversed amount exceeds the ledger's reversals, in order of time. */
export function readReversedTransfers(
  tx: Transaction,
  { month, balance_transaction }: ReversedQuestion,
): Promise<ReversedTransfer[]> {
  return query(
    tx,
    `WITH pulled AS MATERIALIZED (
       SELECT r.partner_id, r.quote_id,
              -sum(r.amount) FILTER (WHERE m.kind IN ('reversal', 'dispute')) AS transfers_reversed
       FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
       WHERE :month::text IS NULL OR EXISTS (
         SELECT FROM ledger_rows e WHERE e.partner_id = r.partner_id AND e.posted_month = :month
           AND e.quote_id = r.quote_id)
       GROUP BY r.partner_id, r.quote_id
       HAVING sum(r.amount) FILTER (WHERE m.kind IN ('reversal', 'dispute')) < 0
     ), left_of AS (
       SELECT p.partner_id, p.quote_id, p.transfers_reversed, sum(e.spot_price) AS spot_price,
              sum(e.partner_cut) AS partner_cut, sum(e.invoice_amount) AS invoice_amount,
              coalesce(-sum(e.invoice_amount) FILTER (WHERE e.kind = 'reversal'), 0) AS reversed,
              coalesce(-sum(e.invoice_amount) FILTER (WHERE g.ground = 'processor'), 0) AS by_processor
       FROM pulled p
       JOIN ledger_rows e ON e.partner_id = p.partner_id AND e.quote_id = p.quote_id
         AND e.arrangement = 'connected_account'
       LEFT JOIN reversal_grounds g ON e.kind = 'reversal' AND g.partner_id = e.partner_id
         AND g.reversal_id = e.reversal_id
       GROUP BY p.partner_id, p.quote_id, p.transfers_reversed
     )
     SELECT r.share_allocation_id, m.account, m.id AS balance_transaction,
            (SELECT count(DISTINCT o.quote_id) FROM share_allocations o
              WHERE o.balance_transaction_id = m.balance_transaction_id) AS shares,
            r.partner_id, r.quote_id, coalesce(rq.requote_id, o.requote_id) AS requote_id, o.of_requotes,
              q.enrollment_id, q.policy_id, r.currency, (-r.amount)::text AS amount,
            m.occurred_at, s.refunded::text,
            CASE WHEN h.held_row_id IS NULL OR d.decision = 'recorded' OR d.decision IS NULL AND h.is_same
                 THEN s.reversal_id END AS reversal_id,
            CASE WHEN d.decision IS NULL AND h.is_same THEN h.held_row_id END AS held_row_id,
            (l.transfers_reversed - l.reversed)::text AS beyond_ledger,
            (l.transfers_reversed - l.by_processor)::text AS beyond_processor,
            l.spot_price::text AS spot_price_left, l.partner_cut::text AS partner_cut_left,
            l.invoice_amount::text AS invoice_amount_left
     FROM left_of l
     JOIN share_allocations r ON r.partner_id = l.partner_id AND r.quote_id = l.quote_id AND r.amount < 0
     JOIN balance_transactions m ON m.balance_transaction_id = r.balance_transaction_id
       AND m.kind IN ('reversal', 'dispute')
     JOIN ledger_rows q ON q.partner_id = r.partner_id AND q.posted_month = r.posted_month AND q.entry_id = r.entry_id
     LEFT JOIN ledger_rows rq ON rq.partner_id = r.partner_id AND rq.kind = 'requote_accepted'
       AND rq.quote_id = r.quote_id AND own_id(rq) = r.requote_id
     CROSS JOIN LATERAL (
       SELECT min(x.requote_id) AS requote_id, count(*) AS of_requotes FROM ledger_rows x
       WHERE q.arrangement <> 'connected_account' AND rq.requote_id IS NULL AND x.partner_id = r.partner_id
         AND x.quote_id = r.quote_id AND x.kind = 'requote_accepted' AND x.arrangement = 'connected_account') AS o
     LEFT JOIN LATERAL (
       SELECT refunded, reversal_id FROM settlement_lines s
       WHERE s.settlement_line_id = r.settlement_line_id
          OR (s.partner_id = r.partner_id AND s.quote_id = r.quote_id AND s.payment = m.payment)
          OR (s.partner_id = r.partner_id AND s.quote_id = r.quote_id AND s.transfer = m.transfer
            AND s.amount = r.amount)
       ORDER BY coalesce(repeated_settlement_line(s.settlement_line_id), s.settlement_line_id) = r.settlement_line_id
                  DESC NULLS LAST,
                s.payment = m.payment DESC NULLS LAST, s.refunded IS NULL, s.settlement_line_id LIMIT 1) AS s ON true
     LEFT JOIN LATERAL (
       SELECT x.held_row_id, x.quote_id = r.quote_id
                AND x.requote_id IS NOT DISTINCT FROM coalesce(rq.requote_id, o.requote_id) AS is_same
       FROM held_rows x
       WHERE x.partner_id = r.partner_id AND x.kind = 'reversal' AND own_id(x) = s.reversal_id) AS h ON true
     LEFT JOIN held_row_decisions d ON d.held_row_id = h.held_row_id
     WHERE l.transfers_reversed > l.reversed
       AND NOT EXISTS (SELECT FROM reversal_evidence v WHERE v.share_allocation_id = r.share_allocation_id)
       -- A match is always undone as a whole, so earlier matches do not count.
       AND NOT EXISTS (
         SELECT FROM share_allocations back WHERE back.balance_transaction_id = r.balance_transaction_id
           AND back.partner_id = r.partner_id AND back.quote_id = r.quote_id AND back.amount > 0
           AND back.share_allocation_id > r.share_allocation_id)
       AND (:account::text IS NULL OR (m.account = :account AND m.id = :id))
     ORDER BY r.partner_id, r.quote_id, m.occurred_at, r.share_allocation_id`,
    { month: month ?? null, account: balance_transaction?.account ?? null, id: balance_transaction?.id ?? null },
  );
}

type NewEvidence = Readonly<{
  share_allocation_id: number;
  partner_id: string;
  reversal_id: string;
  price_from: string;
}>;

/** The ledger rows with the id and exactly the amount of a share that is not linked yet. */
const STANDING = `SELECT n.share_allocation_id, e.partner_id, e.posted_month, e.entry_id, n.price_from
     FROM json_to_recordset(:rows::json) AS n (
       share_allocation_id bigint, partner_id text, reversal_id text, price_from text)
     JOIN share_allocations r ON r.share_allocation_id = n.share_allocation_id
     JOIN ledger_rows e ON e.partner_id = n.partner_id COLLATE "C" AND e.kind = 'reversal'
       AND own_id(e) = n.reversal_id COLLATE "C"
       AND e.quote_id = r.quote_id AND e.invoice_amount = r.amount
       AND NOT EXISTS (
         SELECT FROM reversal_evidence v
         WHERE (v.partner_id, v.posted_month, v.entry_id) = (e.partner_id, e.posted_month, e.entry_id))`;

/** Returns the shares that `insertReversalEvidence` would link. */
export const readStanding = querying<{ share_allocation_id: number }, { rows: readonly NewEvidence[] }>(
  `SELECT share_allocation_id FROM (${STANDING}) AS standing`,
);

/** Links shares to ledger rows that have exactly the same amount. Returns the linked shares. */
export const insertReversalEvidence = querying<
  { share_allocation_id: number },
  { rows: readonly NewEvidence[] } & Omit<Recording, 'timeZone'>
>(`
  INSERT INTO reversal_evidence (share_allocation_id, partner_id, posted_month, entry_id, price_from,
   recorded_at, event_id)
  SELECT standing.*, :now, :eventId FROM (${STANDING}) AS standing
  ON CONFLICT DO NOTHING
  RETURNING share_allocation_id`);
