import { queryingFirst } from '#database/transaction';

type UnmatchedLine = Readonly<{
  line: number;
  /**
   * `awaited`: the quote is known, but the money has not arrived. `unknown_quote`: the partner has no quote with this
   * id.
   */
  status: 'awaited' | 'unknown_quote';
  quote_id: string;
  requote_id: string | null;
  transfer: string | null;
  payment: string | null;
  kind: 'share' | 'reversal' | 'dispute';
  currency: string;
  amount: string;
}>;

/** `lines` is the sum of the four counts that follow. */
export type SettlementFileState = Readonly<{
  sha256: string;
  received_at: string;
  lines: number;
  /** Lines that repeat an earlier line of this or a different file. */
  duplicates: number;
  matched: number;
  awaited: number;
  unknown_quotes: number;
  /** The first unmatched lines, in file order. */
  unmatched: readonly UnmatchedLine[];
}>;

const UNMATCHED_LISTED = 100;

/**
 * A line is matched if the amount of its payment or transfer is allocated to its quote, by any evidence. If one line
 * has both ids and another line has only one of these ids, the two lines count as one, as in the recording of balance
 * transactions.
 */
export const findSettlementFile = queryingFirst<SettlementFileState, { partnerId: string; sha256: string }>(`
  WITH file AS (
    SELECT * FROM settlement_files WHERE partner_id = :partnerId AND sha256 = :sha256
  ), lines AS MATERIALIZED (
    SELECT l.* FROM settlement_lines l JOIN file USING (settlement_file_id)
  ), allocated AS MATERIALIZED (
    SELECT s.quote_id, s.currency, sign(sum(s.amount)) AS sign, b.payment, b.transfer
    FROM share_allocations s JOIN balance_transactions b USING (balance_transaction_id)
    WHERE s.partner_id = :partnerId AND s.quote_id IN (SELECT quote_id FROM lines)
    GROUP BY b.balance_transaction_id, s.quote_id, s.currency HAVING sum(s.amount) <> 0
  ), states AS MATERIALIZED (
    SELECT l.*, CASE
             WHEN repeated_settlement_line(l.settlement_line_id) IS NOT NULL THEN 'duplicate'
             WHEN (quote_id, currency, sign(amount), payment) IN (
                 SELECT quote_id, currency, sign, payment FROM allocated WHERE payment IS NOT NULL)
               OR (quote_id, currency, sign(amount), transfer) IN (
                 SELECT quote_id, currency, sign, transfer FROM allocated WHERE transfer IS NOT NULL) THEN 'matched'
             WHEN (quote_id, currency) IN (
                 SELECT own_id, currency FROM routed_quotes
                 WHERE partner_id = :partnerId AND own_id IN (SELECT quote_id FROM lines)) THEN 'awaited'
             ELSE 'unknown_quote' END AS status
    FROM lines l
  ), unmatched AS (
    SELECT line, status, quote_id, requote_id, transfer, payment, kind, currency, amount::text
    FROM states WHERE status IN ('awaited', 'unknown_quote') ORDER BY line LIMIT ${UNMATCHED_LISTED}
  )
  SELECT f.sha256, f.recorded_at AS received_at, f.lines,
         f.lines - (SELECT count(*) FROM states WHERE status <> 'duplicate') AS duplicates,
         (SELECT count(*) FROM states WHERE status = 'matched') AS matched,
         (SELECT count(*) FROM states WHERE status = 'awaited') AS awaited,
         (SELECT count(*) FROM states WHERE status = 'unknown_quote') AS unknown_quotes,
         coalesce((SELECT json_agg(u ORDER BY u.line) FROM unmatched u), '[]') AS unmatched
  FROM file f`);
