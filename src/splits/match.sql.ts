import {
  execute,
  executing,
  query,
  querying,
  queryingColumn,
  queryingOne,
  queryingValue,
  Transaction,
} from '#database/transaction';
import { Recording } from './accounts.sql.ts';
import { NamedQuote, namedQuote } from './reconcile.sql.ts';

/**
 * Allocates balance transactions to quotes. It allocates a balance transaction if it names its quote, if a settlement
 * file names its quote, or if it reduces an allocated payment. An equal amount alone is never enough evidence. Returns
 * the number of new allocations. The caller holds the lock on the ledger.
 */
export async function insertFoundAllocations(tx: Transaction, recording: Recording) {
  // All recorded balance transactions are searched once. The statements below handle the balance transactions without
  // an allocation, one kind of evidence after another.
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.unattributed`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE unattributed ON COMMIT DROP AS
     SELECT u.*, day.occurred_on, greatest(day.occurred_on, earliest_postable_date()) AS entry_on
     FROM unattributed_balance_transactions u
     CROSS JOIN LATERAL (SELECT (u.occurred_at AT TIME ZONE :timeZone)::date AS occurred_on) AS day`,
    { timeZone: recording.timeZone },
  );
  await execute(tx, `ANALYZE pg_temp.unattributed`);
  let found = 0;
  for (const allocate of [BY_OWN_LINE, BY_METADATA, BY_SETTLEMENT_LINES, BY_PAYMENT]) {
    found += await execute(tx, allocate, { ...recording });
  }
  return found;
}

const SHARE = `
  balance_transaction_id, partner_id, posted_month, entry_id, quote_id, requote_id, currency, amount,
  settled_currency, settled_amount`;

const BY_OWN_LINE = `
  INSERT INTO share_allocations (${SHARE}, matched_by, settlement_line_id, occurred_on, entry_on, recorded_at, event_id)
  SELECT u.balance_transaction_id, q.partner_id, q.posted_month, q.entry_id, q.quote_id, l.requote_id, u.currency,
         trim_scale(u.net), u.currency, trim_scale(u.net), 'settlement_file', l.settlement_line_id, u.occurred_on,
         u.entry_on, :now, :eventId
  FROM pg_temp.unattributed u
  JOIN settlement_lines l ON u.id = 'line:' || l.settlement_line_id
  JOIN routed_quotes q ON q.partner_id = l.partner_id AND q.own_id = l.quote_id AND q.currency = l.currency
  WHERE u.reported_by = 'settlement_file'`;

/**
 * The evidence is the payment's metadata: its quote_id, or its enrollment_id if the quote_id is missing. Exactly one
 * quote of the account's partners must match.
 */
const BY_METADATA = `
  WITH found AS (
    SELECT u.*, q.partner_id, q.posted_month, q.entry_id, q.quote_id AS found_id,
           count(*) OVER (PARTITION BY u.balance_transaction_id) AS quotes
    FROM pg_temp.unattributed u
    JOIN account_partners p ON p.account = u.account
    CROSS JOIN LATERAL (
      SELECT r.partner_id, r.posted_month, r.entry_id, r.quote_id FROM routed_quotes r
      WHERE u.reported_by = 'processor' AND r.partner_id = p.partner_id AND r.own_id = u.quote_id
        AND r.currency = u.share_currency
      UNION ALL
      SELECT r.partner_id, r.posted_month, r.entry_id, r.quote_id FROM ledger_rows r
      WHERE u.quote_id IS NULL AND r.partner_id = p.partner_id AND r.kind = 'quote_accepted'
        AND r.enrollment_id = u.enrollment_id AND r.currency = u.share_currency
        AND r.arrangement = 'connected_account') AS q
  )
  INSERT INTO share_allocations (${SHARE}, matched_by, occurred_on, entry_on, recorded_at, event_id)
  SELECT balance_transaction_id, partner_id, posted_month, entry_id, found_id, requote_id, share_currency,
         share_amount, currency, trim_scale(net), 'metadata', occurred_on, entry_on, :now, :eventId
  FROM found WHERE quotes = 1`;

/**
 * The evidence is the settlement lines that name the payment or transfer of a balance transaction. The lines must add
 * up to its amount, and all of their quotes must be known.
 */
const BY_SETTLEMENT_LINES = `
  WITH named AS (
    SELECT u.*, l.settlement_line_id, l.partner_id, l.quote_id AS line_quote_id, l.requote_id AS line_requote_id,
           l.amount AS line_amount, sum(l.amount) OVER own AS total, count(*) OVER own AS lines,
           sum(l.amount) OVER (own ORDER BY l.settlement_line_id) AS total_so_far
    FROM pg_temp.unattributed u
    JOIN account_partners p ON p.account = u.account
    JOIN LATERAL (
      -- Lines with the same quote and amount are one line if they name the same balance transaction, by its transfer or
      -- payment.
      SELECT DISTINCT ON (partner_id, quote_id, requote_id, currency, amount)
             settlement_line_id, partner_id, quote_id, requote_id, currency, amount
      FROM settlement_lines WHERE payment = u.payment OR transfer = u.transfer
      ORDER BY partner_id, quote_id, requote_id, currency, amount, settlement_line_id
    ) AS l ON l.partner_id = p.partner_id AND l.currency = u.share_currency AND sign(l.amount) = sign(u.net)
    WHERE u.reported_by = 'processor'
      AND NOT EXISTS (SELECT FROM share_allocations s WHERE s.balance_transaction_id = u.balance_transaction_id)
    WINDOW own AS (PARTITION BY u.balance_transaction_id)
  ), found AS (
    SELECT n.*, q.posted_month, q.entry_id, count(*) OVER (PARTITION BY n.balance_transaction_id) AS quotes
    FROM named n
    JOIN routed_quotes q ON q.partner_id = n.partner_id AND q.own_id = n.line_quote_id AND q.currency = n.share_currency
    WHERE n.total = n.share_amount
  )
  INSERT INTO share_allocations (${SHARE}, matched_by, settlement_line_id, occurred_on, entry_on, recorded_at, event_id)
  SELECT balance_transaction_id, partner_id, posted_month, entry_id, line_quote_id, line_requote_id, share_currency,
         trim_scale(line_amount), currency,
         -- A converted amount is divided among the lines. The rounded parts add up to the whole.
         trim_scale(round(net * total_so_far / total, minor_digits(currency))
                    - round(net * (total_so_far - line_amount) / total, minor_digits(currency))), 'settlement_file',
         settlement_line_id, occurred_on, entry_on, :now, :eventId
  FROM found WHERE quotes = lines`;

/**
 * An amount that is taken from a payment belongs to the payment's quote. The amount sent is used, in its own currency.
 * If finance stated the payment's value, a proportional part of that value is used.
 */
const BY_PAYMENT = `
  WITH found AS (
    SELECT u.*, s.partner_id, s.posted_month, s.entry_id, s.quote_id AS found_id, s.requote_id AS found_requote_id,
           s.currency AS found_currency, s.other_account,
           CASE s.currency
             WHEN u.currency THEN u.net
             WHEN u.share_currency THEN u.share_amount
             ELSE round(s.amount * u.net / s.settled, minor_digits(s.currency)) END AS counts_as,
           count(*) OVER (PARTITION BY u.balance_transaction_id) AS quotes
    FROM pg_temp.unattributed u
    JOIN balance_transactions paid ON paid.account = u.account AND paid.payment = u.of_payment
      AND paid.kind IN ('share', 'misrouted')
    JOIN LATERAL (
      SELECT partner_id, posted_month, entry_id, quote_id, requote_id, currency,
             bool_or(other_account) AS other_account,
             sum(amount) AS amount, sum(settled_amount) AS settled
      FROM share_allocations
      WHERE balance_transaction_id = paid.balance_transaction_id
      GROUP BY partner_id, posted_month, entry_id, quote_id, requote_id, currency
      HAVING sum(amount) <> 0) AS s
      ON s.currency IN (u.currency, u.share_currency) OR (paid.currency = u.currency AND s.settled <> 0)
    WHERE NOT EXISTS (SELECT FROM share_allocations a WHERE a.balance_transaction_id = u.balance_transaction_id)
  )
  INSERT INTO share_allocations (${SHARE}, other_account, matched_by, occurred_on, entry_on, recorded_at, event_id)
  SELECT balance_transaction_id, partner_id, posted_month, entry_id, found_id, found_requote_id, found_currency,
         trim_scale(counts_as), currency, trim_scale(net), other_account, 'payment', occurred_on, entry_on,
         :now, :eventId
  FROM found WHERE quotes = 1 AND counts_as <> 0`;

// `ended IS NULL` already excludes closed balance transactions. The condition on `closed` excludes such balance
// transactions before any lookup.
export const countUnmatchedBalanceTransactions = queryingValue<number>(
  `SELECT count(*) AS unknown FROM unexplained_balance_transactions WHERE NOT closed AND ended IS NULL`,
);

export type BalanceTransactionState = Readonly<{
  balance_transaction_id: number;
  account: string;
  id: string;
  kind: string;
  currency: string;
  net: string;
  /** The part of the balance transaction that no quote explains yet. */
  unexplained: string;
  /** The currency of the amount sent. After a conversion, `currency` is a different one. */
  share_currency: string;
  /** The part of the amount sent that no quote explains yet. */
  share_unexplained: string;
  occurred_at: string;
}>;

/** Reads balance transactions by id. Two accounts may have the same id. */
export function readBalanceTransactions(
  tx: Transaction,
  { id, account }: { id: string; account?: string | undefined },
): Promise<BalanceTransactionState[]> {
  return query(
    tx,
    `SELECT m.balance_transaction_id, m.account, m.id, m.kind, m.currency, m.net::text, m.occurred_at,
            (m.net - coalesce(s.settled, 0))::text AS unexplained, m.share_currency,
            (m.share_amount - coalesce(s.sent, 0))::text AS share_unexplained
     FROM balance_transactions m
     CROSS JOIN LATERAL (
       SELECT sum(settled_amount) AS settled, sum(amount) FILTER (WHERE s.currency = m.share_currency) AS sent
       FROM share_allocations s WHERE s.balance_transaction_id = m.balance_transaction_id) AS s
     WHERE m.id = :id AND (:account::text IS NULL OR m.account = :account)
     ORDER BY m.account`,
    { id, account: account ?? null },
  );
}

export type MatchableQuote = NamedQuote & Readonly<{ quote_id: string }>;

export const readMatchableQuotes = querying<
  MatchableQuote,
  { quoteId: string; partnerId: string | null; account: string }
>(`
  SELECT e.partner_id, e.quote_id, e.currency, ${namedQuote('e', ':account')}
  FROM (SELECT *, own_id(r) AS own_id FROM ledger_rows r) AS e
  WHERE e.kind = 'quote_accepted' AND e.own_id = :quoteId
    AND (:partnerId::text IS NULL OR e.partner_id = :partnerId)
  ORDER BY e.partner_id`);

/** `amount` is the value for the quote, `settled` the value on the account. */
export const readShareOf = queryingOne<
  { amount: string; settled: string },
  { balanceTransactionId: number; partnerId: string; quoteId: string }
>(`
  SELECT coalesce(sum(amount), 0)::text AS amount, coalesce(sum(settled_amount), 0)::text AS settled
  FROM share_allocations
  WHERE balance_transaction_id = :balanceTransactionId AND partner_id = :partnerId AND quote_id = :quoteId`);

/** Reads the payments that were made from a share if its matches and undone matches do not add up to zero. */
export const readPaymentsLeft = queryingColumn<
  number,
  { balanceTransactionId: number; partnerId: string; quoteId: string }
>(`
  SELECT p.payment_id FROM share_allocations r JOIN share_payments p USING (share_allocation_id)
  WHERE r.balance_transaction_id = :balanceTransactionId AND r.partner_id = :partnerId AND r.quote_id = :quoteId
  GROUP BY p.payment_id HAVING sum(p.amount) <> 0 ORDER BY p.payment_id`);

/** Records an allocation by finance. An allocation of the opposite amount undoes an allocation. */
export const insertManualAllocation = executing<
  {
    balanceTransactionId: number;
    partnerId: string;
    quoteId: string;
    /** The value in the quote's currency. */
    amount: string;
    /** The value in the balance transaction's currency. */
    settled: string;
    otherAccount: boolean;
    reason: string;
  } & Recording
>(`
  INSERT INTO share_allocations (
    balance_transaction_id, partner_id, posted_month, entry_id, quote_id, currency, amount, settled_currency,
    settled_amount, other_account, matched_by, reason, occurred_on, entry_on, recorded_at, event_id)
  SELECT t.balance_transaction_id, q.partner_id, q.posted_month, q.entry_id, q.quote_id, q.currency,
         trim_scale(:amount), t.currency, trim_scale(:settled), :otherAccount, 'finance',
         :reason, day.occurred_on, greatest(day.occurred_on, earliest_postable_date()), :now, :eventId
  FROM balance_transactions t
  JOIN routed_quotes q ON q.partner_id = :partnerId AND q.own_id = :quoteId
  CROSS JOIN LATERAL (SELECT (t.occurred_at AT TIME ZONE :timeZone)::date AS occurred_on) AS day
  WHERE t.balance_transaction_id = :balanceTransactionId`);

/** Reads only balance transactions that are open and that no quote explains. */
export const readUnexplained = querying<
  { balance_transaction_id: number; currency: string; unexplained: string },
  { ids: readonly number[] }
>(`
  SELECT balance_transaction_id, currency, unexplained::text FROM unexplained_balance_transactions
  WHERE balance_transaction_id = ANY (:ids) AND ended IS NULL ORDER BY account, balance_transaction_id`);

export const insertBalanceTransactionClosings = executing<
  {
    closings: readonly { balance_transaction_id: number; currency: string; amount: string; reason: string }[];
  } & Recording
>(`
  INSERT INTO balance_transaction_closings (
    balance_transaction_id, currency, amount, reason, recorded_at, event_id)
  SELECT balance_transaction_id, currency, trim_scale(amount), reason, :now, :eventId
  FROM json_populate_recordset(NULL::balance_transaction_closings, :closings::json)`);
