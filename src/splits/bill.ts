/**
 * Billing what never came: one invoice for each partner and currency, quote by quote, for what the month's reconciliation
 * finds open and old enough. What was pulled back is no part of it: the ledger reverses that.
 * Refusals: month_not_closed, clock_behind.
 */

import { applyOpenCredit, queueSendings, readClosedMonth } from '../close/queries.ts';
import type { Transaction } from '../database/transaction.ts';
import { beginIssue, type IssueContext } from '../documents/issue/issue.ts';
import { refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { lockLedgerWhole } from '../ledger/lock.ts';
import type { Month } from '../month.ts';
import { recordEvent } from '../people/audit-events.ts';
import { lockProcessor } from './accounts.sql.ts';
import { insertMissingShares } from './bill.sql.ts';
import { reconcileMonth } from './reconcile-month.ts';

/** Bills what is open of a closed month, and gives the invoices' numbers. Billed once, it is not open any more. */
export async function billMissingShares(tx: Transaction, context: IssueContext, month: Month): Promise<string[]> {
  await lockProcessor(tx);
  await lockLedgerWhole(tx);
  if ((await readClosedMonth(tx, month)) === undefined) throw refuse('month_not_closed', { month });
  const { environment, settings, actor } = context;
  const { billable } = await reconcileMonth(tx, { settings, now: environment.now() }, month);
  if (billable.length === 0) return [];
  const issue = await beginIssue(tx, context, month, 'missing_shares', (now) =>
    recordEvent(tx, actor, { action: 'shares.bill', subject: month, details: { quotes: billable.length }, now }),
  );
  const numbers = await insertMissingShares(tx, issue, billable);
  await applyOpenCredit(tx, issue);
  await queueSendings(tx, issue);
  failpoint('shares.billed');
  return numbers;
}
