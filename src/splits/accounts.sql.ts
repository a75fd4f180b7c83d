import { LOCKS, takeLock } from '#database/locks';
import {
  executing,
  query,
  querying,
  queryingColumn,
  queryingFirst,
  queryingValue,
  Transaction,
} from '#database/transaction';
import { Month } from '#month';
import { Scope } from '#people/scope';

/**
 * Locks the recording and allocation of balance transactions. The locks are always taken in this order: this lock, the
 * lock of importers, the lock of the ledger in shared mode (so that no month closes while entries are dated), the lock
 * of payments.
 */
export async function lockProcessor(tx: Transaction) {
  await takeLock(tx, LOCKS.processor);
}

export type Recording = Readonly<{
  now: string;
  eventId: number;
  /** The issuer's time zone, which determines dates. */
  timeZone: string;
}>;

/** Reads the partners of an account. A standard account may have several partners. */
export const readAccountOwners = querying<{ partner_id: string }, { account: string }>(
  `SELECT DISTINCT partner_id FROM partner_arrangements WHERE connected_account_id = :account ORDER BY partner_id`,
);

export type ConnectedPartner = Readonly<{
  partner_id: string;
  currency: string;
  account: string;
}>;

/** Returns the account in the latest connected arrangement up to the month, or else in a planned arrangement. */
export const readConnectedPartner = queryingFirst<ConnectedPartner, { partnerId: string; month: string }>(`
  SELECT p.partner_id, p.currency, a.connected_account_id AS account
  FROM partners p JOIN partner_arrangements a USING (partner_id)
  WHERE a.connected_account_id IS NOT NULL AND p.partner_id = :partnerId
  ORDER BY a.from_month <= :month COLLATE "C" DESC, a.from_month DESC LIMIT 1`);

/** Reads the accounts of current and past arrangements. An account of a past arrangement may still receive money. */
export const readConnectedAccounts = querying<{ account: string }>(`
  SELECT DISTINCT connected_account_id AS account FROM partner_arrangements
  WHERE connected_account_id IS NOT NULL ORDER BY account`);

export const insertReading = executing<
  {
    account: string;
    from: string | null;
    to: string;
    /** The name of the imported file; null for a reading at the processor. */
    file: string | null;
    balance_transactions: number;
    fresh: number;
  } & Recording
>(`
  INSERT INTO processor_readings (
    account, read_from, read_to, file, balance_transactions, new_balance_transactions, recorded_at, event_id)
  VALUES (:account, :from, :to, :file, :balance_transactions, :fresh, :now, :eventId)`);

/** Returns null before the first reading at the processor. */
export const readCursor = queryingValue<string | null, { account: string }>(
  `SELECT max(read_to) AS read_to FROM processor_readings WHERE account = :account AND file IS NULL`,
);

export type AccountCursor = Readonly<{
  account: string;
  partners: readonly string[];
  balance_transactions_from: 'processor' | 'settlement_file';
  /** The time up to which the account was read completely, or the time of its latest file. Null if there is neither. */
  read_to: string | null;
  /** Whether an acceptance belongs to the account. */
  sold: boolean;
  /** Whether a different account has replaced this account, although money may still move on this account. */
  followed: boolean;
}>;

/** How long a replaced account is read after its last sale and its last balance transaction. */
export const WATCHED_DAYS = 180;

/**
 * Reads the connected accounts on which money may still move, with the time up to which each account was read: the
 * partners' current accounts, and replaced accounts for WATCHED_DAYS.
 */
export function readAccountCursors(tx: Transaction, now: string): Promise<AccountCursor[]> {
  return query(
    tx,
    `WITH eras AS (
       SELECT a.partner_id, a.connected_account_id AS account,
              EXISTS (SELECT FROM partner_arrangements f
                      WHERE f.partner_id = a.partner_id AND f.connected_account_id <> a.connected_account_id
                        AND f.from_month > a.from_month
                        AND f.from_month <= to_char(:now::timestamptz, 'YYYY-MM') COLLATE "C") AS followed,
              CASE WHEN n.from_month IS NULL
                -- In the current arrangement, the latest row of the partner is found by the index on time.
                THEN (SELECT CASE WHEN e.month >= a.from_month COLLATE "C" THEN e.accepted_at END
                      FROM ledger_rows e WHERE e.partner_id = a.partner_id AND e.arrangement = 'connected_account'
                      ORDER BY e.accepted_at DESC LIMIT 1)
                ELSE (SELECT max(e.accepted_at) FROM ledger_rows e
                      WHERE e.partner_id = a.partner_id AND e.arrangement = 'connected_account'
                        AND e.month >= a.from_month COLLATE "C" AND e.month < n.from_month COLLATE "C")
                END AS sold_at
       FROM partner_arrangements a
       CROSS JOIN LATERAL (
         SELECT min(n.from_month) AS from_month FROM partner_arrangements n
         WHERE n.partner_id = a.partner_id AND n.from_month > a.from_month) AS n
       WHERE a.connected_account_id IS NOT NULL
     ), accounts AS (
       SELECT account, json_agg(DISTINCT partner_id) AS partners, array_agg(partner_id) AS partner_ids,
              account_source(account, to_char(:now::timestamptz, 'YYYY-MM')) AS balance_transactions_from,
              max(sold_at) AS sold_at, bool_and(followed) AS followed
       FROM eras GROUP BY account
     )
     SELECT account, partners, balance_transactions_from, sold_at IS NOT NULL AS sold, followed,
            CASE balance_transactions_from
              WHEN 'processor' THEN (SELECT max(r.read_to) FROM processor_readings r WHERE r.account = a.account)
              ELSE (SELECT max(f.recorded_at) FROM settlement_files f WHERE f.partner_id = ANY (a.partner_ids))
            END AS read_to
     FROM accounts a
     WHERE NOT followed OR :now::timestamptz - :watchedDays * interval '1 day'
       < greatest(sold_at, (SELECT max(m.occurred_at) FROM balance_transactions m WHERE m.account = a.account))
     ORDER BY account`,
    { now, watchedDays: WATCHED_DAYS },
  );
}

/** Reads only accounts whose partners are all in the scope. */
export async function readAccountsInScope(tx: Transaction, scope: Scope) {
  const rows = await query<{ account: string }>(
    tx,
    `SELECT connected_account_id AS account FROM partner_arrangements WHERE connected_account_id IS NOT NULL
     GROUP BY connected_account_id
     HAVING :scope::text[] IS NULL OR bool_and(partner_id = ANY (:scope))`,
    { scope },
  );
  return new Set(rows.map(({ account }) => account));
}

export const readStatementMonths = queryingColumn<Month>(
  `SELECT DISTINCT month FROM documents WHERE document = 'statement' ORDER BY month DESC`,
);
