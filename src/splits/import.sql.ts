import { executing, query, querying, Transaction } from '#database/transaction';
import { BalanceTransaction } from '#processors/processor';
import { Recording } from './accounts.sql.ts';

const GIVEN = `json_populate_recordset(NULL::balance_transactions, :balance_transactions::json) AS n`;

/**
 * Returns the balance transactions that are already recorded with a different currency or amount. A balance transaction
 * never changes.
 */
export const findChangedBalanceTransactions = querying<
  { id: string; net: string; currency: string },
  { account: string; balance_transactions: readonly BalanceTransaction[] }
>(`
  SELECT m.id, m.net::text, m.currency
  FROM ${GIVEN}
  JOIN balance_transactions m ON m.account = :account AND m.id = n.id
  WHERE (m.currency, m.amount, m.net) <> (n.currency, n.amount, n.net)
  ORDER BY m.id`);

/** Returns the number of new balance transactions. */
export const insertBalanceTransactions = executing<
  { account: string; balance_transactions: readonly BalanceTransaction[] } & Recording
>(`
  INSERT INTO balance_transactions (
    account, id, reported_by, type, kind, currency, amount, fee, net, source_currency, source_amount, exchange_rate,
    occurred_at, payment, of_payment, transfer, quote_id, requote_id, enrollment_id, payload, recorded_at, event_id)
  SELECT :account, n.id, 'processor', n.type, n.kind, n.currency, n.amount, n.fee, n.net, n.source_currency,
         trim_scale(n.source_amount), trim_scale(n.exchange_rate), n.occurred_at, n.payment, n.of_payment,
         n.transfer, n.quote_id, n.requote_id, n.enrollment_id, (n.payload #>> '{}')::jsonb, :now, :eventId
  FROM ${GIVEN}
  ORDER BY n.occurred_at, n.id
  ON CONFLICT ON CONSTRAINT balance_transaction_once DO NOTHING`);

/** Returns undefined if the same file is already recorded. */
export async function insertSettlementFile(
  tx: Transaction,
  file: { partnerId: string; sha256: string; name: string; lines: number },
  recording: Recording,
) {
  const rows = await query<{ settlement_file_id: number }>(
    tx,
    `INSERT INTO settlement_files (partner_id, sha256, name, lines, recorded_at, event_id)
     VALUES (:partnerId, :sha256, :name, :lines, :now, :eventId)
     ON CONFLICT ON CONSTRAINT settlement_file_once DO NOTHING RETURNING settlement_file_id`,
    { ...file, ...recording },
  );
  return rows[0]?.settlement_file_id;
}

const LINES = `json_populate_recordset(NULL::settlement_lines, :lines::json) AS n`;

/** The ends of what other lines say of a line's transfer or payment: of one that names both, those that name one. */
const saidBeside = (name: 'transfer' | 'payment') => {
  const ends = (which: string) =>
    `ARRAY[min(says) FILTER (WHERE ${which}) OVER of_${name}, max(says) FILTER (WHERE ${which}) OVER of_${name}]`;
  return `CASE WHEN ${name} IS NULL THEN '{}' WHEN names_both THEN ${ends('NOT names_both')}
                ELSE ${ends('names_both')} END AS by_${name}`;
};

/**
 * Returns the lines whose transfer, payment and quote occur with a different amount, kind or currency, on a recorded
 * line or on an earlier line of the file. Two lines for a share match even if one line names only the transfer or only
 * the payment, because each transfer makes one payment.
 * A window function needs only one sort. A join would compare all lines of a quote with each other.
 */
export const findConflictingLines = querying<{ line: number; known: string }, { partnerId: string; lines: string }>(`
  WITH given AS MATERIALIZED (SELECT * FROM ${LINES}), every AS (
    SELECT 0 AS line, quote_id, requote_id, transfer, payment, kind, currency, amount FROM settlement_lines
    WHERE partner_id = :partnerId AND quote_id IN (SELECT quote_id FROM given)
    UNION ALL
    SELECT line, quote_id, requote_id, transfer, payment, kind, currency, amount FROM given
  ), said AS (
    SELECT *, format('%s %s', trim_scale(amount), currency) AS says,
           num_nonnulls(transfer, payment) = 2 AS names_both
    FROM every
  ), beside AS (
    SELECT said.*, first_value(kind) OVER same AS first_kind, first_value(says) OVER same AS first_says,
           ${saidBeside('transfer')}, ${saidBeside('payment')}
    FROM said
    WINDOW same AS (PARTITION BY quote_id, requote_id, payment, transfer ORDER BY line),
           of_transfer AS (PARTITION BY quote_id, requote_id, kind, transfer ORDER BY line),
           of_payment AS (PARTITION BY quote_id, requote_id, kind, payment ORDER BY line)
  ), judged AS (
    SELECT line, CASE
             WHEN (first_kind, first_says) <> (kind, says) THEN first_says
             WHEN kind = 'share' THEN (SELECT min(n) FROM unnest(by_transfer || by_payment) AS n WHERE n <> says)
           END AS known
    FROM beside WHERE line > 0
  )
  SELECT line, known FROM judged WHERE known IS NOT NULL ORDER BY line`);

/** Returns the number of new lines. */
export const insertSettlementLines = executing<{ lines: string; fileId: number; partnerId: string }>(`
  INSERT INTO settlement_lines (
    settlement_file_id, line, partner_id, quote_id, requote_id, reversal_id, transfer, payment, kind, currency,
    amount, refunded, occurred_at)
  SELECT :fileId, n.line, :partnerId, n.quote_id, n.requote_id, n.reversal_id, n.transfer, n.payment, n.kind,
         n.currency, trim_scale(n.amount), n.refunded, n.occurred_at
  FROM ${LINES}
  ORDER BY n.line
  ON CONFLICT ON CONSTRAINT settlement_line_once DO NOTHING`);

/**
 * Records the partner's lines as balance transactions, if settlement files are the source of their account in the month
 * of the line. A line without a time is dated now, and a repeated line is not recorded again.
 *
 * The account is that of the acceptance that the line pays, even if the partner has a different account now. A line
 * that names a requote pays the requote; any other line pays the last acceptance before its time. If the quote is
 * unknown, the account is that of the line's month.
 */
export const insertSettlementTransactions = executing<{ partnerId: string; account: string } & Recording>(`
  WITH lines AS MATERIALIZED (
    SELECT l.*, occurred.at, coalesce(a.connected_account_id, :account) AS account
    FROM settlement_lines l
    CROSS JOIN LATERAL (SELECT coalesce(l.occurred_at, :now) AS at) AS occurred
    LEFT JOIN LATERAL (
      SELECT e.month FROM rows_of_sale(l.partner_id, l.quote_id) AS e
      WHERE e.arrangement = 'connected_account' AND e.kind <> 'reversal'
      ORDER BY e.requote_id = l.requote_id DESC NULLS LAST, e.accepted_at <= occurred.at DESC,
               CASE WHEN e.accepted_at <= occurred.at THEN e.accepted_at END DESC, e.accepted_at
      LIMIT 1) AS accepted ON true
    LEFT JOIN LATERAL (
      SELECT p.connected_account_id FROM partner_arrangements p
      WHERE p.partner_id = l.partner_id AND p.connected_account_id IS NOT NULL
        AND p.from_month <= coalesce(accepted.month, to_char(occurred.at, 'YYYY-MM')) COLLATE "C"
      ORDER BY p.from_month DESC LIMIT 1) AS a ON true
    WHERE l.partner_id = :partnerId
      -- Includes lines of earlier files, because the account's source may have been the processor at their import.
      AND NOT EXISTS (
        SELECT FROM balance_transactions b
        WHERE b.reported_by = 'settlement_file' AND b.id = 'line:' || l.settlement_line_id)
  )
  INSERT INTO balance_transactions (
    account, id, reported_by, type, kind, currency, amount, fee, net, occurred_at, payment, transfer, quote_id,
    requote_id, payload, recorded_at, event_id)
  SELECT l.account, 'line:' || l.settlement_line_id, 'settlement_file', 'settlement_line', l.kind, l.currency,
         l.amount, 0, l.amount, l.at, l.payment, l.transfer, l.quote_id, l.requote_id,
         (SELECT to_jsonb(s) FROM settlement_lines s WHERE s.settlement_line_id = l.settlement_line_id),
         :now, :eventId
  FROM lines l
  WHERE account_source(l.account, to_char(l.at AT TIME ZONE 'UTC', 'YYYY-MM')) = 'settlement_file'
    AND repeated_settlement_line(l.settlement_line_id) IS NULL
  ORDER BY l.settlement_line_id`);
