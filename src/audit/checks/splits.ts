/** Checks of shares: against the processor's conversion, the arrangements of partners and tables kept by triggers. */
import { inMonth } from './query.ts';

/**
 * If the processor converted a balance transaction, its allocations do not exceed it in the currency sent, unless
 * finance has stated the amount that counts. The value in that currency is computed by the database.
 */
export const SHARES_WITHIN_AMOUNTS_SENT = `inspected AS (
  SELECT m.balance_transaction_id, m.account, m.id, m.net, m.share_currency, m.share_amount,
         sum(r.settled_amount) AS matched, sum(r.amount) FILTER (WHERE r.currency = m.share_currency) AS sent,
         bool_or(r.matched_by = 'finance' OR r.currency <> m.share_currency) AS stated
  FROM balance_transactions m JOIN share_allocations r USING (balance_transaction_id)
  WHERE ${inMonth("to_char(m.occurred_at, 'YYYY-MM')")}
  GROUP BY m.balance_transaction_id
), differences AS (
  SELECT format('balance transaction %s of %s', id, account) AS subject,
         format('sent as %s %s, allocated %s', share_amount, share_currency, sent) AS detail
  FROM inspected WHERE NOT stated AND matched = net AND sent <> share_amount
)`;

/**
 * An allocated balance transaction comes from the source of its account in its month. No other account has an allocated
 * balance transaction with the same id and payment. Therefore no money is counted twice. Always checked over
 * everything.
 */
export const BALANCE_TRANSACTIONS_COUNTED_ONCE = `inspected AS MATERIALIZED (
  SELECT t.*, CASE WHEN t.account IN (
           SELECT connected_account_id FROM partner_arrangements WHERE balance_transactions_from = 'settlement_file')
         THEN account_source(t.account, to_char(t.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM'))
         ELSE 'processor' END AS source,
         count(*) OVER (PARTITION BY t.id, t.payment) > 1 AS repeated
  FROM balance_transactions t
  WHERE (SELECT sum(amount) FROM share_allocations s WHERE s.balance_transaction_id = t.balance_transaction_id) <> 0
), differences AS (
  SELECT format('balance transaction %s of %s', id, account) AS subject,
         CASE WHEN reported_by <> source
           THEN format('reported by %s, but the source of its month is %s', reported_by, source)
              ELSE format('payment %s is allocated for another account too', payment) END AS detail
  FROM inspected WHERE reported_by <> source OR (repeated AND payment IS NOT NULL)
)`;

/** An allocation comes from an account of its partner, unless finance has attributed it to another partner's quote. */
export const SHARES_ON_OWN_ACCOUNTS = `inspected AS (
  SELECT r.share_allocation_id, r.partner_id, r.quote_id, m.account,
         r.other_account OR EXISTS (
           SELECT FROM partner_arrangements a
           WHERE a.connected_account_id = m.account AND a.partner_id = r.partner_id) AS own_account
  FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
  WHERE ${inMonth('r.posted_month')}
), differences AS (
  SELECT format('allocation %s to quote %s of %s', share_allocation_id, quote_id, partner_id) AS subject,
         format('comes from account %s, which was never this partner''s', account) AS detail
  FROM inspected WHERE NOT own_account
)`;

/**
 * The tables derived from balance transactions (the open ones, and the sums of each account and month) agree with them,
 * their allocations and closings. Always checked over everything.
 */
export const SHARES_KEPT = `unallocated AS (
  SELECT t.balance_transaction_id, EXISTS (
           SELECT FROM balance_transaction_closings c
           WHERE c.balance_transaction_id = t.balance_transaction_id
             AND c.amount = t.net - coalesce(s.settled, 0)) AS closed
  FROM balance_transactions t
  LEFT JOIN (SELECT balance_transaction_id, sum(settled_amount) AS settled FROM share_allocations
             GROUP BY balance_transaction_id) AS s USING (balance_transaction_id)
  WHERE CASE WHEN s.settled IS NULL THEN t.kind <> 'other' AND t.net <> 0 ELSE t.net <> s.settled END
), months AS (
  SELECT account, currency, to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month, sum(net) AS amount
  FROM balance_transactions WHERE type NOT LIKE 'payout%' GROUP BY account, currency, month
), inspected AS MATERIALIZED (
  SELECT format('balance transaction %s of %s', t.id, t.account) AS subject,
         CASE k.closed WHEN true THEN 'closed' WHEN false THEN 'not allocated' ELSE 'allocated' END AS kept,
         CASE u.closed WHEN true THEN 'closed' WHEN false THEN 'not allocated' ELSE 'allocated' END AS found
  FROM unallocated u FULL JOIN unallocated_balance_transactions k USING (balance_transaction_id)
  JOIN balance_transactions t USING (balance_transaction_id)
  UNION ALL
  SELECT format('account %s in %s', account, month), coalesce(trim_scale(k.amount)::text, 'nothing') || ' ' || currency,
         coalesce(trim_scale(m.amount)::text, 'nothing') || ' ' || currency
  FROM months m FULL JOIN account_months k USING (account, currency, month)
), differences AS (
  SELECT subject, format('is kept as %s; by the balance transactions it is %s', kept, found) AS detail
  FROM inspected WHERE kept <> found
)`;
