/** Checks of balance transactions, share allocations and missing shares. */
import { inMonth } from './query.ts';

/**
 * Balance transactions add up, and those from a settlement file match their line. Allocations never exceed their
 * balance transaction in the account's currency. If the processor converted the amount, they also never exceed it in
 * the currency sent, unless finance has stated the amount that counts. The closings of a balance transaction never
 * exceed its amount.
 */
export const BALANCE_TRANSACTIONS_ADD_UP = `inspected AS (
  SELECT m.balance_transaction_id, m.account, m.id, m.amount, m.fee, m.net, m.currency, m.payload, m.source_currency,
         m.share_currency, m.share_amount,
         l.amount AS line_amount, l.currency AS line_currency, coalesce(r.amount, 0) AS matched, r.currencies,
         coalesce(r.sent, 0) AS sent, coalesce(r.stated, false) AS stated, c.closed
  FROM balance_transactions m
  LEFT JOIN settlement_lines l ON m.reported_by = 'settlement_file' AND m.id = 'line:' || l.settlement_line_id
  LEFT JOIN LATERAL (
    SELECT sum(settled_amount) AS amount, count(*) FILTER (WHERE settled_currency <> m.currency) AS currencies,
           sum(r.amount) FILTER (WHERE r.currency = m.share_currency) AS sent,
           bool_or(r.matched_by = 'finance' OR r.currency <> m.share_currency) AS stated
    FROM share_allocations r WHERE r.balance_transaction_id = m.balance_transaction_id) AS r ON true
  LEFT JOIN LATERAL (
    SELECT bool_or(sign(amount) <> sign(m.net) OR abs(amount) > abs(m.net)) AS closed
    FROM balance_transaction_closings c WHERE c.balance_transaction_id = m.balance_transaction_id) AS c ON true
  WHERE ${inMonth("to_char(m.occurred_at, 'YYYY-MM')")}
), differences AS (
  SELECT format('balance transaction %s of %s', id, account) AS subject,
         format('%s less %s is %s %s; settlement line %s, allocated %s', amount, fee, net, currency,
                coalesce(line_amount::text, 'none'), matched)
         || CASE WHEN source_currency IS NULL THEN ''
                 ELSE format('; sent as %s %s, allocated %s', share_amount, share_currency, sent) END
         || CASE WHEN closed THEN '; more was closed than it has' ELSE '' END AS detail
  FROM inspected
  WHERE net <> amount - fee OR (line_amount, line_currency) <> (net, currency) OR currencies > 0 OR closed
     OR (matched <> 0 AND sign(matched) <> sign(net)) OR abs(matched) > abs(net)
     OR (NOT stated AND matched = net AND sent <> share_amount)
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

/**
 * An allocation belongs to an accepted quote of the partner whose account received it, unless finance has attributed it
 * to another partner's quote. The quote has a row under the connected-account arrangement. A ledger reversal for a
 * reversed transfer has the transfer's quote and amount.
 */
export const SHARE_ALLOCATIONS_MATCH_QUOTES = `inspected AS (
  SELECT r.share_allocation_id, r.partner_id, r.quote_id, r.currency, r.amount,
         e.kind, e.quote_id AS entry_quote, e.currency AS entry_currency,
         coalesce(e.arrangement = 'connected_account', false) OR EXISTS (
           SELECT FROM ledger_rows o WHERE o.partner_id = r.partner_id AND o.quote_id = r.quote_id
             AND o.kind <> 'quote_accepted' AND o.arrangement = 'connected_account') AS to_be_routed,
         EXISTS (SELECT FROM partner_arrangements a JOIN balance_transactions m ON m.account = a.connected_account_id
                 WHERE m.balance_transaction_id = r.balance_transaction_id
                   AND a.partner_id = r.partner_id) OR r.other_account AS own_account,
         v.share_allocation_id IS NOT NULL AS reversed, x.kind AS reversal_kind, x.quote_id AS reversal_quote,
         x.invoice_amount AS reversal_amount, x.arrangement AS reversal_arrangement
  FROM share_allocations r
  LEFT JOIN ledger_rows e ON e.partner_id = r.partner_id AND e.posted_month = r.posted_month AND e.entry_id = r.entry_id
  LEFT JOIN reversal_evidence v USING (share_allocation_id)
  LEFT JOIN ledger_rows x ON x.partner_id = v.partner_id AND x.posted_month = v.posted_month AND x.entry_id = v.entry_id
  WHERE ${inMonth('r.posted_month')}
), differences AS (
  SELECT format('allocation %s to quote %s of %s', share_allocation_id, quote_id, partner_id) AS subject,
         format('%s %s, for a %s of quote %s%s%s', amount, currency, coalesce(kind, 'missing row'),
                coalesce(entry_quote, 'none'), CASE WHEN NOT to_be_routed THEN ', which is invoiced' END,
                CASE WHEN reversed THEN format(', reversed by %s of quote %s',
                  coalesce(reversal_amount::text, 'no row'),
                                               coalesce(reversal_quote, 'none')) END) AS detail
  FROM inspected
  WHERE kind IS DISTINCT FROM 'quote_accepted'
     OR (entry_quote, entry_currency) IS DISTINCT FROM (quote_id, currency) OR NOT own_account OR NOT to_be_routed
     OR (reversed AND (reversal_kind, reversal_quote, reversal_amount, reversal_arrangement)
          IS DISTINCT FROM ('reversal', quote_id, amount, 'connected_account'))
)`;

/**
 * An invoice for missing shares is the sum of its quotes' missing shares, and bills no quote beyond its accepted
 * amount.
 */
export const MISSING_SHARES_MATCH_INVOICES = `billed AS (
  SELECT document_id, min(month) AS month, sum(amount) AS amount FROM missing_shares GROUP BY document_id
), documents_of AS (
  SELECT coalesce(d.number, format('missing document %s', document_id)) AS subject,
         d.invoice_amount AS stated, coalesce(b.amount, 0) AS summed, l.amount AS lines
  FROM documents d
  FULL JOIN billed b USING (document_id)
  CROSS JOIN LATERAL (SELECT coalesce(sum(invoice_amount), 0) AS amount FROM document_lines l
    WHERE l.document_id = d.document_id) AS l
  WHERE (d.purpose = 'missing_shares' OR b.document_id IS NOT NULL) AND ${inMonth('coalesce(d.month, b.month)')}
), quotes AS (
  SELECT format('quote %s of %s', b.quote_id, b.partner_id) AS subject, sum(b.amount) AS billed,
         (SELECT coalesce(sum(e.invoice_amount), 0) FROM ledger_rows e
          WHERE e.partner_id = b.partner_id AND e.quote_id = b.quote_id AND e.currency = b.currency
            AND e.kind <> 'reversal' AND e.arrangement = 'connected_account') AS accepted
  FROM live_missing_shares b
  WHERE ${inMonth('b.month')}
  GROUP BY b.partner_id, b.quote_id, b.currency
), inspected AS (
  SELECT subject FROM documents_of UNION ALL SELECT subject FROM quotes
), differences AS (
  SELECT subject, format('states %s; its missing shares are %s, its lines %s', coalesce(stated::text, 'no amount'),
    summed, lines) AS detail
  FROM documents_of WHERE stated IS DISTINCT FROM summed OR stated IS DISTINCT FROM lines
  UNION ALL
  SELECT subject, format('%s is billed as missing, %s was accepted', billed, accepted) FROM quotes
    WHERE billed > accepted
)`;

/**
 * The part of an allocation that pays an invoice is a payment of that amount by that partner. Undoing such a payment is
 * recorded as a reversal.
 */
export const SHARE_PAYMENTS_MATCH_ALLOCATIONS = `inspected AS (
  SELECT s.share_allocation_id, r.partner_id, r.quote_id, r.currency, r.amount AS share, s.amount, p.payment_id,
    p.identity,
         t.identity AS taken_as,
         p.partner_id AS payer, p.amount AS paid, p.account AS paid_to, m.account, t.amount AS taken,
         t.payment_id AS taken_of, i.payment_reversal_id IS NOT NULL AS given_back,
         sum(s.amount) OVER (PARTITION BY s.share_allocation_id) AS of_share,
         EXISTS (SELECT FROM missing_shares b WHERE b.partner_id = r.partner_id AND b.quote_id = r.quote_id) AS billed
  FROM share_payments s LEFT JOIN share_allocations r USING (share_allocation_id)
    LEFT JOIN balance_transactions m USING (balance_transaction_id)
  JOIN payments p ON p.payment_id = s.payment_id
  LEFT JOIN payment_reversals t ON t.payment_reversal_id = s.payment_reversal_id
  LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = s.payment_reversal_id
  WHERE r.share_allocation_id IS NULL OR ${inMonth(`to_char(r.entry_on, 'YYYY-MM')`)}
), differences AS (
  SELECT format('payment %s', p.payment_id) AS subject,
    format('was recorded as %s, but no allocation names it', p.identity) AS detail
  FROM payments p
  WHERE p.identity ~ '^processor[|].+[|]share [0-9]+$'
    AND NOT EXISTS (SELECT FROM share_payments s WHERE s.payment_id = p.payment_id AND s.payment_reversal_id IS NULL)
  UNION ALL
  SELECT format('reversal %s', t.payment_reversal_id),
    format('was recorded as %s, but no allocation names it', t.identity)
  FROM payment_reversals t
  WHERE t.identity ~ '^processor[|].+[|]share [0-9]+[|][0-9]+$'
    AND NOT EXISTS (SELECT FROM share_payments s WHERE s.payment_reversal_id = t.payment_reversal_id AND s.amount < 0)
  UNION ALL
  SELECT format('allocation %s to quote %s of %s', share_allocation_id, quote_id, partner_id) AS subject,
         format('%s of %s %s is payment %s over %s by %s, %s reversed', amount, share, currency, payment_id, paid,
                coalesce(payer, 'an unidentified payer'), coalesce(taken, 0)) AS detail
  FROM inspected
  WHERE NOT billed OR payer IS DISTINCT FROM partner_id OR paid_to IS DISTINCT FROM account
     OR sign(amount) <> sign(share) OR abs(of_share) > abs(share)
     OR CASE WHEN taken IS NULL THEN paid <> amount OR identity NOT LIKE '%|share ' || share_allocation_id
             WHEN amount < 0 THEN (taken, taken_of) <> (-amount, payment_id)
                                  OR taken_as NOT LIKE '%|share ' || share_allocation_id || '|' || payment_id
             ELSE (taken, taken_of) <> (amount, payment_id) OR NOT given_back END
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
