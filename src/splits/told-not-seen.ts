/**
 * What `assets:processor` consists of and how old it is: money that a processor or a partner's settlement file told us of,
 * and that no payout has brought to the bank. A file is a partner's word: only the bank proves it.
 */
import { query, type Transaction } from '../database/transaction.ts';
import { Amount } from '../money.ts';

export interface ToldNotSeen {
  /** The connected account; empty for the payments of our own links. */
  readonly account: string;
  readonly currency: string;
  readonly amount: string;
  /**
   * The day of the oldest money that is not in the bank, payouts and refunds taken as taking the oldest first. Months are
   * compared by their sums: money of an earlier month that a later month took back and brought again keeps its own day.
   */
  readonly since: string;
}

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
       -- The latest month that brought, with those after it, all that is not seen.
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

/** `acct_1: 29.40 USD told and not seen at the bank, the oldest of 2026-08-03`. */
export function describeToldNotSeen({ account, currency, amount, since }: ToldNotSeen): string {
  const whose = account === '' ? 'payments by link' : account;
  return `${whose}: ${Amount.of(amount, currency).forPeople()} told and not seen at the bank, the oldest of ${since}`;
}
