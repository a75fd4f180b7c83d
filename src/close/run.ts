/** Running a close: every month in a transaction of its own, oldest first; a preview in one that is undone. */
import type { Database } from '../database/database.ts';
import type { IssueContext } from '../documents/issue/context.ts';
import { type DocumentRow, readDocuments } from '../documents/queries.ts';
import { failpoint } from '../failpoint.ts';
import type { Month } from '../month.ts';
import { type CloseRequest, closeNext, planClose } from './close.ts';
import { type MonthFacts, readMonthFacts } from './queries.ts';

export interface PreviewedClose {
  readonly months: readonly MonthFacts[];
  readonly documents: readonly DocumentRow[];
}

/** Closes what is asked and due, and names the months that this run closed. `onClosed` hears of each as it is done. */
export async function closeMonths(
  database: Database,
  context: IssueContext,
  request: Omit<CloseRequest, 'preview'>,
  onClosed?: (month: Month) => void,
): Promise<Month[]> {
  const asked = { ...request, preview: false };
  const closed: Month[] = [];
  // Looked at without the ledger's lock first: a run with nothing to do makes no writer wait.
  while ((await database.reading((tx) => planClose(tx, context, asked))).length > 0) {
    failpoint('close.planned');
    const month = await database.transaction((tx) => closeNext(tx, context, asked));
    if (month === undefined) continue; // another run was faster
    failpoint('close.committed');
    closed.push(month);
    onClosed?.(month);
  }
  return closed;
}

/** What closing would issue now: the same code in one transaction, undone. */
export function previewClose(
  database: Database,
  context: IssueContext,
  request: Omit<CloseRequest, 'preview'>,
): Promise<PreviewedClose> {
  const asked = { ...request, preview: true };
  return database.preview(async (tx) => {
    const next = () => closeNext(tx, context, asked);
    const months: Month[] = [];
    for (let month = await next(); month !== undefined; month = await next()) months.push(month);
    return { months: await readMonthFacts(tx, months), documents: await readDocuments(tx, { months }) };
  });
}
