/**
 * The amounts that approval thresholds apply to: the amount of an action, plus what the same user did with the same
 * action for the same partner in recent days without a second person, so splitting an amount does not help. The
 * action's events record it as `compared`, and verify recomputes it from that.
 */
import { APPROVAL_LOCKS } from '../database/locks.ts';
import { execute, query, type Transaction } from '../database/transaction.ts';

export const COMPARED_DAYS = 30;

export interface ComparedAmount {
  readonly currency: string;
  /** What the action moves, in either direction. */
  readonly amount: string;
  /** What was done before. */
  readonly before: string;
  readonly above: string;
}

export interface Comparison {
  /** The events of one action share it, so the amounts count once. */
  readonly comparison: string;
  readonly action: string;
  readonly days: number;
  /** Null: of the whole ledger. */
  readonly partners: readonly string[] | null;
  readonly amounts: readonly ComparedAmount[];
}

/** Serializes the comparisons of a user's actions of one kind, until the end of the transaction. */
export async function readAmountsBefore(
  tx: Transaction,
  given: { action: string; userId: number | null; partners: readonly string[] | null; now: string },
): Promise<{ currency: string; amount: string }[]> {
  const who = `${given.userId ?? ''} ${given.action}`;
  await execute(tx, `SELECT pg_advisory_xact_lock(${APPROVAL_LOCKS}, hashtext(:who))`, { who });
  return query(
    tx,
    `SELECT a.currency, sum(a.amount) AS amount
     FROM (
       SELECT DISTINCT ON (details->'compared'->>'comparison') details->'compared'->'amounts' AS amounts
       FROM audit_events
       WHERE jsonb_exists(details, 'compared') AND user_id IS NOT DISTINCT FROM :userId::bigint
         AND details->'compared'->>'action' = :action
         AND occurred_at > :now::timestamptz - make_interval(days => :days::integer)
         AND (:partners::text[] IS NULL OR details->'compared'->'partners' = 'null'
              OR jsonb_exists_any(details->'compared'->'partners', :partners::text[]))) AS done
     CROSS JOIN LATERAL jsonb_to_recordset(done.amounts) AS a (currency text, amount numeric)
     GROUP BY a.currency`,
    { ...given, days: COMPARED_DAYS },
  );
}

/** From here on this transaction's events record what was compared. */
export async function actAsCompared(tx: Transaction, compared: Comparison): Promise<void> {
  await execute(tx, `SELECT set_config('reckoner.approval', :details, true)`, {
    details: JSON.stringify({ compared }),
  });
}
