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
  /** The day of the oldest money that is not in the bank, payouts taken as paying the oldest first. */
  readonly since: string;
}

export async function readToldNotSeen(tx: Transaction): Promise<ToldNotSeen[]> {
  const rows = await query<ToldNotSeen>(
    tx,
    `WITH told AS (
       SELECT account, currency, (occurred_at AT TIME ZONE 'UTC')::date AS on_day, net AS amount
       FROM balance_transactions WHERE type NOT LIKE 'payout%'
       UNION ALL
       SELECT '', p.currency, p.received_on, p.amount - b.reversed
       FROM payments p JOIN payment_balances b USING (payment_id)
       WHERE p.method = 'link' AND NOT EXISTS (SELECT FROM payout_payments s WHERE s.payment_id = p.payment_id)
     ), seen AS (
       SELECT a.account, a.currency, sum(coalesce(-m.net, p.amount)) AS amount
       FROM account_payouts a JOIN payouts p USING (payout_id)
       LEFT JOIN balance_transactions m ON m.balance_transaction_id = a.balance_transaction_id
       GROUP BY a.account, a.currency
     ), running AS (
       SELECT account, currency, on_day, sum(amount) OVER (PARTITION BY account, currency) AS total,
              sum(amount) OVER (PARTITION BY account, currency ORDER BY on_day) AS so_far
       FROM told
     )
     SELECT r.account, r.currency, min(r.total - coalesce(s.amount, 0)) AS amount, min(r.on_day)::text AS since
     FROM running r LEFT JOIN seen s USING (account, currency)
     WHERE r.so_far > coalesce(s.amount, 0) AND r.total > coalesce(s.amount, 0)
     GROUP BY r.account, r.currency ORDER BY r.account, r.currency`,
  );
  return rows.map((row) => ({ ...row, amount: Amount.of(row.amount, row.currency).toString() }));
}

/** `acct_1: 29.40 USD told and not seen at the bank, the oldest of 2026-08-03`. */
export function describeToldNotSeen({ account, currency, amount, since }: ToldNotSeen): string {
  const whose = account === '' ? 'payments by link' : account;
  return `${whose}: ${Amount.of(amount, currency).forPeople()} told and not seen at the bank, the oldest of ${since}`;
}
