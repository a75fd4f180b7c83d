/** Running a close: every planned month in a transaction of its own, oldest first; a preview in one that is undone. */
import type { Database } from '../database/database.ts';
import { type DocumentRow, readDocuments } from '../documents/queries.ts';
import { failpoint } from '../failpoint.ts';
import type { Month } from '../month.ts';
import { type CloseRequest, closeMonth, type Issuing, planClose } from './close.ts';
import { type MonthFacts, readMonthFacts } from './queries.ts';

export interface PreviewedClose {
  readonly months: readonly MonthFacts[];
  readonly documents: readonly DocumentRow[];
}

/** Closes what is asked and due, and names the months that this run closed. `onClosed` hears of each as it is done. */
export async function closeMonths(
  database: Database,
  issuing: Issuing,
  request: Omit<CloseRequest, 'preview'>,
  onClosed?: (month: Month) => void,
): Promise<Month[]> {
  const asked = { ...request, preview: false };
  const planned = await database.reading((tx) => planClose(tx, issuing, asked));
  failpoint('close.planned');
  const closed: Month[] = [];
  for (const each of planned) {
    if (!(await database.transaction((tx) => closeMonth(tx, issuing, asked, each)))) continue;
    failpoint('close.committed');
    closed.push(each.month);
    onClosed?.(each.month);
  }
  return closed;
}

/** What closing would issue now: the same code in one transaction, undone. */
export function previewClose(
  database: Database,
  issuing: Issuing,
  request: Omit<CloseRequest, 'preview'>,
): Promise<PreviewedClose> {
  const asked = { ...request, preview: true };
  return database.preview(async (tx) => {
    const months: Month[] = [];
    for (const each of await planClose(tx, issuing, asked)) {
      if (await closeMonth(tx, issuing, asked, each)) months.push(each.month);
    }
    return { months: await readMonthFacts(tx, months), documents: await readDocuments(tx, { months }) };
  });
}
