import { executing, query, querying, Transaction } from '#database/transaction';
import { Amount, Month } from '#values';
import { Recording, WATCHED_DAYS } from './accounts.sql.ts';

/** Reads the payouts that an account made since a time, if their contents are unknown and can be requested. */
export const readPayoutsWithoutContents = querying<
  { balance_transaction_id: number; payout: string },
  { account: string; since: string }
>(`
  SELECT m.balance_transaction_id, m.payment AS payout FROM balance_transactions m
  WHERE m.account = :account AND m.type = 'payout' AND m.payment IS NOT NULL AND m.occurred_at >= :since
    AND m.payload->'source'->>'automatic' IS DISTINCT FROM 'false'
    AND NOT EXISTS (SELECT FROM payout_contents c WHERE c.payout_transaction_id = m.balance_transaction_id)
  ORDER BY m.occurred_at, m.balance_transaction_id`);

/**
 * Records the contents of a payout and returns their number. The contents must be recorded balance transactions, belong
 * to no other payout, and add up to the payout. An incomplete list is not recorded and is requested again. The payout
 * itself and its failure are not part of the contents.
 */
export const insertPayoutContents = executing<
  { account: string; payoutTransactionId: number; ids: readonly string[] } & Recording
>(`
  WITH payout AS (
    SELECT * FROM balance_transactions WHERE balance_transaction_id = :payoutTransactionId
  ), contents AS MATERIALIZED (
    SELECT m.balance_transaction_id, m.net FROM balance_transactions m JOIN payout USING (account, currency)
    WHERE m.account = :account AND m.id = ANY (:ids) AND m.payment IS DISTINCT FROM payout.payment
      AND NOT EXISTS (SELECT FROM payout_contents c WHERE c.balance_transaction_id = m.balance_transaction_id)
  )
  INSERT INTO payout_contents (balance_transaction_id, payout_transaction_id, account, currency, recorded_at,
    event_id)
  SELECT c.balance_transaction_id, p.balance_transaction_id, p.account, p.currency, :now,
    :eventId
  FROM payout p CROSS JOIN contents c
  WHERE (SELECT sum(net) FROM contents) = -p.net
  ORDER BY c.balance_transaction_id`);

export type PayoutState = Readonly<{
  account: string;
  currency: string;
  /** The processor's id of the payout, such as `po_…`. */
  payout: string;
  occurred_at: string;
  /** The amount is above zero. */
  amount: string;
  balance_transactions: number | null;
  /** Whether the processor can list the contents, and whether the account is read at the processor. */
  contents_expected: boolean;
  arrived_on: string | null;
  failed: boolean;
  /** The number of days after the payout that are covered by bank files in its currency. */
  bank_days_after: number | null;
}>;

// The payouts in a period, whose end may be open.
const PAYOUT_STATES = `
     SELECT m.account, m.currency, coalesce(m.payment, m.id) AS payout, m.occurred_at, (-m.net)::text AS amount,
            (SELECT nullif(count(*), 0) FROM payout_contents c
              WHERE c.payout_transaction_id = m.balance_transaction_id) AS balance_transactions,
            m.payload->'source'->>'automatic' IS DISTINCT FROM 'false'
              AND coalesce((SELECT max(r.read_to) FROM processor_readings r
                             WHERE r.account = m.account AND r.file IS NULL)
                BETWEEN m.occurred_at AND m.occurred_at + ${WATCHED_DAYS} * interval '1 day',
                false) AS contents_expected,
            (SELECT o.received_on FROM account_payouts a JOIN payouts o USING (payout_id)
             WHERE a.balance_transaction_id = m.balance_transaction_id) AS arrived_on,
            EXISTS (SELECT FROM balance_transactions f
                    WHERE f.account = m.account AND f.payment = m.payment
                      AND f.type IN ('payout_failure', 'payout_cancel')) AS failed,
            (SELECT max(l.bank_booked_on) FROM bank_lines l WHERE l.currency = m.currency)
              - (m.occurred_at AT TIME ZONE 'UTC')::date AS bank_days_after
     FROM balance_transactions m
     WHERE m.type = 'payout' AND m.net < 0
       AND m.occurred_at >= :startsAt
       AND (:endsAt::timestamptz IS NULL OR m.occurred_at < :endsAt)
     ORDER BY m.account, m.occurred_at, m.balance_transaction_id`;

/** Reads the payouts of a period. A period without an end includes all later payouts. */
export const readPayoutStates = querying<PayoutState, { startsAt: string; endsAt: string | null }>(PAYOUT_STATES);

export type NotPaidOut = Readonly<{
  account: string;
  currency: string;
  count: number;
  net: string;
  since: string;
  /** The processor's ids of the first balance transactions. */
  balance_transactions: readonly string[];
}>;

/**
 * Reads balance transactions of a month, or of all later times too, that are in no payout. A balance transaction is
 * included only if a payout at least `afterDays` later has known contents. Considers only accounts whose payouts have
 * known contents, starting from the first balance transaction in these contents.
 */
export const readNotPaidOut = querying<NotPaidOut, { startsAt: string; endsAt: string | null; afterDays: number }>(`
  WITH known AS (
    SELECT c.account, c.currency, min(m.occurred_at) AS first_at, max(p.occurred_at) AS last_at
    FROM payout_contents c JOIN balance_transactions m USING (balance_transaction_id)
    JOIN balance_transactions p ON p.balance_transaction_id = c.payout_transaction_id
    GROUP BY c.account, c.currency
  )
  SELECT m.account, m.currency, count(*) AS count, sum(m.net)::text AS net, min(m.occurred_at) AS since,
         (array_agg(m.id ORDER BY m.occurred_at, m.id))[1:20] AS balance_transactions
  FROM known t JOIN balance_transactions m USING (account, currency)
  WHERE m.reported_by = 'processor' AND m.net <> 0 AND m.type <> 'payout'
    AND m.occurred_at >= t.first_at AND m.occurred_at < t.last_at - :afterDays * interval '1 day'
    AND m.occurred_at >= :startsAt
    AND (:endsAt::timestamptz IS NULL OR m.occurred_at < :endsAt)
    AND NOT EXISTS (SELECT FROM payout_contents c WHERE c.balance_transaction_id = m.balance_transaction_id)
  GROUP BY m.account, m.currency ORDER BY m.account, m.currency`);

export function readInBank(
  tx: Transaction,
  month: Month,
): Promise<{ partner_id: string; currency: string; amount: string }[]> {
  return query(
    tx,
    `SELECT r.partner_id, r.currency, sum(r.amount)::text AS amount
     FROM account_payouts a JOIN payout_contents c ON c.payout_transaction_id = a.balance_transaction_id
     JOIN share_allocations r ON r.balance_transaction_id = c.balance_transaction_id
     WHERE EXISTS (SELECT FROM ledger_rows e WHERE e.partner_id = r.partner_id AND e.quote_id = r.quote_id
                     AND e.posted_month = :month AND e.arrangement = 'connected_account')
     GROUP BY r.partner_id, r.currency`,
    { month },
  );
}

export type ToldNotSeen = Readonly<{
  /** The connected account; empty for payments by our own links. */
  account: string;
  currency: string;
  amount: string;
  /**
   * The day of the oldest money that is not in the bank, on the assumption that payouts and refunds use up the oldest
   * money first. Months are compared by their sums. If money of an earlier month was reversed and received again in a
   * later month, it keeps its original day.
   */
  since: string;
}>;

export async function readToldNotSeen(tx: Transaction): Promise<ToldNotSeen[]> {
  const rows = await query<ToldNotSeen>(
    tx,
    `WITH links AS (
       SELECT '' AS account, p.currency, p.received_on AS on_day, p.amount - b.reversed AS amount
       FROM payments p JOIN payment_balances b USING (payment_id)
       WHERE p.method = 'link' AND NOT EXISTS (SELECT FROM payout_payments s WHERE s.payment_id = p.payment_id)
     ), months AS (
       SELECT account, currency, month, sum(amount) AS told FROM (
         SELECT account, currency, month, amount FROM account_months
         UNION ALL
         SELECT account, currency, to_char(on_day, 'YYYY-MM') COLLATE "C", amount FROM links) AS told
       GROUP BY account, currency, month
     ), seen AS (
       SELECT a.account, a.currency, sum(coalesce(-m.net, p.amount)) AS amount
       FROM account_payouts a JOIN payouts p USING (payout_id)
       LEFT JOIN balance_transactions m ON m.balance_transaction_id = a.balance_transaction_id
       GROUP BY a.account, a.currency
     ), unseen AS (
       SELECT account, currency, sum(told) - coalesce(s.amount, 0) AS amount
       FROM months LEFT JOIN seen s USING (account, currency)
       GROUP BY account, currency, s.amount HAVING sum(told) > coalesce(s.amount, 0)
     ), latest AS (
       -- The latest month such that this month and later months together brought all the money that is not in the bank.
       SELECT DISTINCT ON (account, currency) account, currency, u.amount, month, later
       FROM unseen u JOIN (
         SELECT *, sum(told) OVER later - told AS later FROM months
         WINDOW later AS (PARTITION BY account, currency ORDER BY month DESC)) AS m USING (account, currency)
       WHERE later + told >= u.amount
       ORDER BY account, currency, month DESC
     )
     SELECT account, currency, amount, since.day::text AS since
     FROM latest l
     CROSS JOIN LATERAL (
       SELECT max(on_day) AS day FROM (
         SELECT on_day, l.later + sum(sum(amount)) OVER (ORDER BY on_day DESC) AS told FROM (
           SELECT (occurred_at AT TIME ZONE 'UTC')::date AS on_day, net AS amount FROM balance_transactions t
           WHERE t.account = l.account AND t.currency = l.currency AND t.type NOT LIKE 'payout%'
             AND t.occurred_at >= (l.month || '-01Z')::timestamptz
             AND t.occurred_at < (month_after(l.month) || '-01Z')::timestamptz
           UNION ALL
           SELECT on_day, amount FROM links
           WHERE links.account = l.account AND links.currency = l.currency AND to_char(on_day, 'YYYY-MM') = l.month
         ) AS told GROUP BY on_day) AS days
       WHERE told >= l.amount) AS since
     ORDER BY account, currency`,
  );
  return rows.map((row) => ({ ...row, amount: Amount.of(row.amount, row.currency).toString() }));
}
