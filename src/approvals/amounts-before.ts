/**
 * The amounts that approval thresholds apply to: the amount of an action, plus what the same user did with the same
 * action for the same partner in recent days without a second person, so splitting an amount does not help. The
 * action's events record it as `compared`, and verify recomputes it from that.
 */
import { setLocally, type Transaction } from '../database/transaction.ts';

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
  /** The events of one action share it, so that its amounts count only once. */
  readonly comparison: string;
  readonly action: string;
  readonly days: number;
  /** Null: the whole ledger. */
  readonly partners: readonly string[] | null;
  readonly amounts: readonly ComparedAmount[];
}

/** From here on this transaction's events record what was compared. */
export async function actAsCompared(tx: Transaction, compared: Comparison): Promise<void> {
  await setLocally(tx, 'reckoner.approval', JSON.stringify({ compared }));
}
