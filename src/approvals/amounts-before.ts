/**
 * The amounts that are compared with the approval thresholds. An action's amount is added to those of the user's
 * earlier actions of the same kind for the same partner, in recent days and without a second person, so splitting an
 * amount avoids no approval. Adjustments are added up for each partner over all users and actions. The events record
 * the figures as `compared`, and `verify` recomputes them.
 */
import { setLocally, Transaction } from '#database/transaction';
import { Amount } from '#money';

export const COMPARED_DAYS = 30;

/** The rule of `approvals` that all actions with adjustments share. */
export const ADJUSTMENTS = 'adjustments';

/** What an action takes from our share of a partner's sales, or no longer claims from the partner. */
export interface Adjustment {
  readonly partner: string;
  readonly amount: Amount;
}

export type ComparedAmount = Readonly<{
  currency: string;
  /** Always positive. */
  amount: string;
  /** The sum of the earlier amounts. */
  before: string;
  above: string;
}>;

export interface ComparedAdjustment extends ComparedAmount {
  readonly partner: string;
}

export type Comparison = Readonly<{
  /** All events of one action share this id, so that its amounts count once. */
  comparison: string;
  action: string;
  days: number;
  /** Null stands for the whole ledger. */
  partners: readonly string[] | null;
  /** Compared with the action's own rule. */
  amounts: readonly ComparedAmount[];
  /** Compared with the rule for adjustments. */
  adjustments?: readonly ComparedAdjustment[];
}>;

/** All later events of this transaction record the comparison. */
export async function actAsCompared(tx: Transaction, compared: Comparison) {
  await setLocally(tx, 'reckoner.approval', JSON.stringify({ compared }));
}
