/**
 * Bills missing shares, with one invoice for each partner and currency. Missing shares are the amounts that a month's
 * reconciliation finds open, if they are old enough. Reversed transfers are not billed, because the ledger reverses
 * their sales. Refusals: month_not_closed, clock_behind.
 */

import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { beginIssue, IssueContext } from '#documents/issue/context';
import { issueDocuments } from '#documents/issue/issue';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { readClosedMonth } from '#ledger/closed-months.sql';
import { Month } from '#month';
import { recordEvent } from '#people/audit-events';
import { lockProcessor } from './accounts.sql.ts';
import { draftMissingShares, insertMissingShares } from './bill.sql.ts';
import { reconcileMonth } from './reconcile-month.ts';

/** Returns the invoices' numbers. Billed amounts are no longer open. */
export async function billMissingShares(tx: Transaction, context: IssueContext, month: Month) {
  await lockProcessor(tx);
  await lockLedgerWhole(tx);
  if ((await readClosedMonth(tx, month)) === undefined) throw refuse('month_not_closed', { month });
  const { environment, settings, actor } = context;
  const { billable } = await reconcileMonth(tx, { settings, now: environment.now() }, month);
  if (billable.length === 0) return [];
  const purpose = 'missing_shares';
  const batch = await beginIssue(tx, context, { month, purpose, askedFor: purpose }, (now) =>
    recordEvent(tx, actor, { action: 'shares.bill', subject: month, details: { quotes: billable.length }, now }),
  );
  await draftMissingShares(tx, billable);
  const issued = await issueDocuments(tx, batch);
  await insertMissingShares(tx, { month });
  failpoint('shares.billed');
  return issued.map(({ number }) => number);
}
