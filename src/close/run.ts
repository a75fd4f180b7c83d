/**
 * Runs a close. Each month closes in its own transaction, oldest first. A preview runs in one transaction that is
 * rolled back. `src/month-end/month-end.ts` runs the later steps, such as delivery and reports.
 */
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { IssueContext } from '#documents/issue/context';
import { Refusal } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { takeCheckpoint } from '#log/checkpoint';
import { countUncovered } from '#log/checkpoints.sql';
import { Month } from '#month';
import { CloseRequest, closeNext, planClose, readFeeds } from './close.ts';
import { Feeds, judgeDeliveries } from './feeds.ts';
import { MonthFacts, OtherCurrency, readMonthFacts, readOtherCurrencies } from './months.sql.ts';

type PreviewedClose = Readonly<{
  months: readonly MonthFacts[];
  documents: readonly DocumentRow[];
  feeds: readonly Feeds[];
}>;

/** A callback for each closed month, before anything is e-mailed. */
export type OnClosed = (month: Month, others: readonly OtherCurrency[]) => void;

/** Closes the months that are due and returns the months that this run closed. Calls `onClosed` after each month. */
export async function closeMonths(
  database: Database,
  context: IssueContext,
  request: Omit<CloseRequest, 'preview'>,
  onClosed?: OnClosed,
) {
  const asked = { ...request, preview: false };
  const closed: Month[] = [];
  // The first plan is made without the ledger's lock, so that a run with nothing to do blocks no writer.
  while (true) {
    const judged = await database.reading(async (tx) => {
      const [next] = await planClose(tx, context, asked);
      return next && judgeDeliveries(tx, next);
    });
    if (judged === undefined) break;
    failpoint('close.planned');
    await hashBeforeLock(database, context);
    const month = await database.transaction((tx) => closeNext(tx, context, { ...asked, judged }));
    if (month === undefined) continue; // a different run closed the month first
    failpoint('close.committed');
    closed.push(month);
    if (onClosed) onClosed(month, await database.reading((tx) => readOtherCurrencies(tx, { months: [month] })));
  }
  return closed;
}

/** The number of facts that a close hashes and totals in some hundredths of a second. */
const FEW = 5_000;
const PATIENCE_MILLISECONDS = 2_000;

/**
 * Takes a checkpoint if many facts, for example an import of today, are not covered yet. The close then hashes only a
 * few facts while it blocks writers.
 */
async function hashBeforeLock(database: Database, context: IssueContext) {
  if ((await database.reading(countUncovered)) <= FEW) return;
  try {
    await takeCheckpoint(database, context, PATIENCE_MILLISECONDS);
  } catch (error) {
    // If another transaction is recording facts, no checkpoint can be taken, and the close hashes the facts itself.
    if (!(error instanceof Refusal)) throw error;
  }
}

/**
 * Previews a close, including months that a close would still refuse. The preview runs the code of a close in one
 * transaction and rolls it back. `look` can read more before the rollback.
 */
export function previewClose<Seen = undefined>(
  database: Database,
  context: IssueContext,
  request: Omit<CloseRequest, 'preview'>,
  look?: (tx: Transaction, found: PreviewedClose) => Promise<Seen>,
): Promise<PreviewedClose & { readonly seen?: Seen }> {
  return database.preview(async (tx) => {
    const { months, feeds } = await closeTogether(tx, context, { ...request, forecast: true, preview: true });
    const found = {
      months: await readMonthFacts(tx, { months }),
      documents: await readDocuments(tx, { months }),
      feeds,
    };
    return { ...found, ...(look && { seen: await look(tx, found) }) };
  });
}

type ClosedTogether = Readonly<{
  months: readonly Month[];
  /** What was in doubt about each month before it closed. Only a preview reads this. */
  feeds: readonly Feeds[];
}>;

/** Closes all months of the plan in one transaction. A caller that previews the close rolls the transaction back. */
export async function closeTogether(
  tx: Transaction,
  context: IssueContext,
  request: CloseRequest,
): Promise<ClosedTogether> {
  const months: Month[] = [];
  const feeds: Feeds[] = [];
  for (const planned of await planClose(tx, context, request)) {
    // A closed month's rows count twice: in its documents and in the lines that a preview does not drop.
    if (request.preview) feeds.push(await readFeeds(tx, context, planned));
    const month = await closeNext(tx, context, request);
    if (month !== undefined) months.push(month);
  }
  return { months, feeds: feeds.filter(({ month }) => months.includes(month)) };
}
