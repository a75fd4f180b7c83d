/** SQL that allocates balance transactions to quotes, by what they name or by a decision of finance. */

import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Recording } from './accounts.sql.ts';
import { alsoTold } from './import.sql.ts';

// Balance transactions of shares that nobody has said anything about. What a settlement file told before the processor itself could
// be read is not taken twice (the other way round, its line is no balance transaction), nor what was taken in as of another account.
export const WAITING = `waiting AS MATERIALIZED (
       SELECT m.* FROM balance_transactions m
       WHERE m.kind <> 'other' AND m.net <> 0
         AND NOT EXISTS (SELECT FROM share_allocations r WHERE r.balance_transaction_id = m.balance_transaction_id)
         AND NOT (m.reported_by = 'processor' AND (${alsoTold('m', ['account'], `told.reported_by = 'settlement_file'`)}))
         AND NOT EXISTS (
           SELECT FROM balance_transactions other
           WHERE other.id = m.id AND other.payment = m.payment AND other.account <> m.account
             AND (SELECT sum(amount) FROM share_allocations r WHERE r.balance_transaction_id = other.balance_transaction_id) <> 0)
     )`;

const STILL_WAITING = `waiting AS (
       SELECT w.* FROM pg_temp.waiting_movements w
       WHERE NOT EXISTS (SELECT FROM share_allocations r WHERE r.balance_transaction_id = w.balance_transaction_id)
     )`;

export const OWNERS = `owners AS (
       SELECT DISTINCT connected_account_id AS account, partner_id FROM partner_arrangements
       WHERE connected_account_id IS NOT NULL
     )`;

// A quote of which something was accepted under a connected account, by the row of its own acceptance.
const ofAcceptedQuote = (quoteId: string, partnerId: string, currency: string) => `
       JOIN ledger_rows q ON q.partner_id = ${partnerId} AND q.kind = 'quote_accepted'
         AND own_id(q) = ${quoteId} AND q.currency = ${currency}
         AND (q.arrangement = 'connected_account' OR EXISTS (
           SELECT FROM ledger_rows r WHERE r.partner_id = q.partner_id AND r.quote_id = q.quote_id
             AND r.kind = 'requote_accepted' AND r.arrangement = 'connected_account'))`;

// A way of finding quotes: of those that a join (as q) gives a waiting balance transaction (as w), all where there are as many as
// there must be, each with its part.
const insertFound = (
  by: 'metadata' | 'payment' | 'settlement_file',
  quotes: string,
  {
    requoteId = 'w.requote_id',
    amount = 'w.net',
    line = 'NULL::bigint',
    wanted = '1',
    before = '',
  }: { requoteId?: string; amount?: string; line?: string; wanted?: string; before?: string } = {},
) => `
     WITH ${STILL_WAITING}, ${OWNERS}, ${before} found AS (
       SELECT w.balance_transaction_id, w.moved_at, q.partner_id, q.posted_month, q.entry_id, q.quote_id, ${requoteId} AS requote_id,
              w.currency, ${amount} AS amount, ${line} AS settlement_line_id,
              count(*) OVER (PARTITION BY w.balance_transaction_id) AS quotes, ${wanted} AS wanted
       FROM waiting w ${quotes}
     )
     INSERT INTO share_allocations (
       balance_transaction_id, partner_id, posted_month, entry_id, quote_id, requote_id, currency, amount, matched_by,
       settlement_line_id, moved_on, entry_on, recorded_at, event_id)
     SELECT f.balance_transaction_id, f.partner_id, f.posted_month, f.entry_id, f.quote_id, f.requote_id, f.currency,
            trim_scale(f.amount), '${by}', f.settlement_line_id, day.moved_on,
            greatest(day.moved_on, (SELECT (month_after(max(month)) || '-01')::date FROM closed_months)),
            :now::timestamptz, :eventId::bigint
     FROM found f
     CROSS JOIN LATERAL (SELECT (f.moved_at AT TIME ZONE :timeZone)::date AS moved_on) AS day
     WHERE f.quotes = f.wanted`;

// In this order: each way looks at what those before it left.
const WAYS_OF_FINDING = [
  // What the partner's file told, where there is no other source.
  insertFound(
    'settlement_file',
    `JOIN settlement_lines l ON w.reported_by = 'settlement_file' AND w.id = 'line:' || l.settlement_line_id
       ${ofAcceptedQuote('l.quote_id', 'l.partner_id', 'l.currency')}`,
    { requoteId: 'l.requote_id', line: 'l.settlement_line_id' },
  ),
  insertFound(
    'metadata',
    `JOIN owners o ON w.reported_by = 'processor' AND o.account = w.account
       ${ofAcceptedQuote('w.quote_id', 'o.partner_id', 'w.currency')}`,
  ),
  insertFound(
    'metadata',
    `JOIN owners o ON o.account = w.account
       JOIN ledger_rows q ON q.partner_id = o.partner_id AND q.kind = 'quote_accepted' AND q.enrollment_id = w.enrollment_id
         AND q.currency = w.currency AND q.arrangement = 'connected_account' AND w.quote_id IS NULL`,
  ),
  // The lines that name a payment, where they add up to it and the quote of each is known.
  insertFound(
    'settlement_file',
    `JOIN named l USING (balance_transaction_id)
       ${ofAcceptedQuote('l.quote_id', 'l.partner_id', 'w.currency')} AND l.told = w.net`,
    {
      ...{ requoteId: 'l.requote_id', amount: 'l.amount', line: 'l.settlement_line_id', wanted: 'l.lines' },
      before: `named AS (
       SELECT w.balance_transaction_id, l.settlement_line_id, l.quote_id, l.requote_id, l.partner_id, l.amount,
              sum(l.amount) OVER (PARTITION BY w.balance_transaction_id) AS told, count(*) OVER (PARTITION BY w.balance_transaction_id) AS lines
       FROM waiting w JOIN owners o ON o.account = w.account
       JOIN LATERAL (
         SELECT settlement_line_id, partner_id, quote_id, requote_id, currency, amount
         FROM settlement_lines WHERE payment = w.payment
         UNION
         SELECT settlement_line_id, partner_id, quote_id, requote_id, currency, amount
         FROM settlement_lines WHERE transfer = w.transfer
       ) AS l ON l.partner_id = o.partner_id AND l.currency = w.currency AND sign(l.amount) = sign(w.net)
       WHERE w.reported_by = 'processor'
     ),`,
    },
  ),
  // What was taken from a payment is of the quote of that.
  insertFound(
    'payment',
    `JOIN balance_transactions paid ON paid.account = w.account AND paid.payment = w.of_payment
         AND paid.kind IN ('share', 'misrouted') AND paid.currency = w.currency
       JOIN LATERAL (
         SELECT partner_id, posted_month, entry_id, quote_id, requote_id FROM share_allocations s
         WHERE s.balance_transaction_id = paid.balance_transaction_id
         GROUP BY partner_id, posted_month, entry_id, quote_id, requote_id HAVING sum(amount) <> 0) AS q ON true`,
    { requoteId: 'q.requote_id' },
  ),
];

/**
 * Matches every balance transaction that names its quote, or whose quote the settlement file names, or that takes from a payment
 * which is matched. Never by its amount. Gives how many shares were found. Needs the ledger's lock.
 */
export async function insertFoundAllocations(tx: Transaction, recording: Recording): Promise<number> {
  // Looked for once among all that ever moved; each way of finding then looks at what those before it left.
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.waiting_movements`);
  await execute(tx, `CREATE TEMPORARY TABLE waiting_movements ON COMMIT DROP AS WITH ${WAITING} SELECT * FROM waiting`);
  await execute(tx, `ANALYZE pg_temp.waiting_movements`);
  let found = 0;
  for (const way of WAYS_OF_FINDING) found += await execute(tx, way, { ...recording });
  return found;
}

/** Balance transactions of which nobody knows the quote, of the whole or of a part. */
export async function countUnmatchedBalanceTransactions(tx: Transaction): Promise<number> {
  const { unknown } = await queryOne<{ unknown: number }>(
    tx,
    `WITH ${WAITING}
     SELECT (SELECT count(*) FROM waiting)
            + (SELECT count(*) FROM (
                 SELECT FROM balance_transactions m JOIN share_allocations r USING (balance_transaction_id)
                 GROUP BY m.balance_transaction_id HAVING m.net <> sum(r.amount)) AS partly) AS unknown`,
  );
  return unknown;
}

export interface BalanceTransactionState {
  readonly balance_transaction_id: number;
  readonly account: string;
  readonly id: string;
  readonly kind: string;
  readonly currency: string;
  readonly net: string;
  /** Of it, what no quote explains yet. */
  readonly unexplained: string;
  readonly moved_at: string;
}

/** Balance transactions of an id; more than one only where two accounts have the same. */
export function readBalanceTransactions(
  tx: Transaction,
  { id, account }: { id: string; account?: string | undefined },
): Promise<BalanceTransactionState[]> {
  return query(
    tx,
    `SELECT m.balance_transaction_id, m.account, m.id, m.kind, m.currency, m.net::text, m.moved_at,
            (m.net - coalesce((SELECT sum(amount) FROM share_allocations r WHERE r.balance_transaction_id = m.balance_transaction_id), 0))::text AS unexplained
     FROM balance_transactions m
     WHERE m.id = :id AND (:account::text IS NULL OR m.account = :account)
     ORDER BY m.account`,
    { id, account: account ?? null },
  );
}

/** What of a balance transaction a quote has now, by person or otherwise. */
export async function readShareOf(
  tx: Transaction,
  share: { balanceTransactionId: number; partnerId: string; quoteId: string },
): Promise<string> {
  const { amount } = await queryOne<{ amount: string }>(
    tx,
    `SELECT coalesce(sum(amount), 0)::text AS amount FROM share_allocations
     WHERE balance_transaction_id = :balanceTransactionId AND partner_id = :partnerId AND quote_id = :quoteId`,
    share,
  );
  return amount;
}

/** A person says of which quote a balance transaction is, or takes that back by the opposite amount. */
export function insertManualAllocation(
  tx: Transaction,
  share: { balanceTransactionId: number; partnerId: string; quoteId: string; amount: string; reason: string },
  recording: Recording,
): Promise<number> {
  return execute(
    tx,
    `INSERT INTO share_allocations (
       balance_transaction_id, partner_id, posted_month, entry_id, quote_id, currency, amount, matched_by, reason, moved_on, entry_on,
       recorded_at, event_id)
     SELECT m.balance_transaction_id, q.partner_id, q.posted_month, q.entry_id, q.quote_id, m.currency,
            trim_scale(:amount::numeric), 'person', :reason, day.moved_on,
            greatest(day.moved_on, (SELECT (month_after(max(month)) || '-01')::date FROM closed_months)),
            :now::timestamptz, :eventId::bigint
     FROM balance_transactions m
     ${ofAcceptedQuote(':quoteId', ':partnerId', 'm.currency')}
     CROSS JOIN LATERAL (SELECT (m.moved_at AT TIME ZONE :timeZone)::date AS moved_on) AS day
     WHERE m.balance_transaction_id = :balanceTransactionId
       AND EXISTS (SELECT FROM partner_arrangements a WHERE a.partner_id = q.partner_id AND a.connected_account_id = m.account)`,
    { ...share, ...recording },
  );
}
