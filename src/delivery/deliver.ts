/**
 * Delivers all issued documents that are not delivered yet. Workers claim due ones in PostgreSQL, so any number of
 * machines may deliver at once.
 */
import { readIdsOf } from '#documents/documents.sql';
import { Installation } from '#people/audit-events';
import { wakeDocuments } from './due.sql.ts';
import { linkProvider } from './payment-link.ts';
import { WorkerPoolOptions, withWorkerPool } from './worker-pool.ts';

/**
 * How often a long-running worker rechecks documents that are held, such as by an address that was corrected, or wait
 * for their link.
 */
const LOOK_AGAIN_MILLISECONDS = 60_000;

export type DeliveryOptions = WorkerPoolOptions &
  Readonly<{
    onStart?: ((documents: number) => void) | undefined;
  }>;

function linkWork({ settings, environment }: Installation) {
  const { wanted, processors } = linkProvider(settings, environment);
  if (processors.size === 0) return 'nothing';
  return wanted === undefined ? 'end' : 'make';
}

export async function deliverPending(options: DeliveryOptions) {
  const documents = await options.database.transaction((tx) => wakeDocuments(tx, linkWork(options)));
  if (documents === 0) return;
  options.onStart?.(documents);
  await withWorkerPool(options, documents, (pool) => pool.runOnce());
}

/** Delivers only these documents, because other due ones may be waiting for a review. */
export async function deliverThese(options: DeliveryOptions, numbers: readonly string[]) {
  const documents = await options.database.reading((tx) => readIdsOf(tx, { numbers }));
  if (documents.length === 0) return;
  options.onStart?.(documents.length);
  await withWorkerPool(options, documents.length, (pool) => pool.deliverAll(documents));
}

type StandingOptions = DeliveryOptions &
  Readonly<{
    /** Sends e-mails without a document, at the start and every minute. */
    sendOthers?: () => Promise<void>;
  }>;

/** Delivers documents as they are issued. */
export async function deliverForever(options: StandingOptions, stop: AbortSignal) {
  await withWorkerPool(options, Number.POSITIVE_INFINITY, async (pool) => {
    await options.database.transaction((tx) => wakeDocuments(tx, linkWork(options)));
    let others = Promise.resolve();
    const sendOthers = () => {
      others = others.then(() => options.sendOthers?.()).catch(() => {}); // retried in a minute
    };
    sendOthers();
    const looking = setInterval(() => {
      options.database.transaction((tx) => wakeDocuments(tx, linkWork(options), ['held'])).catch(() => {});
      sendOthers();
    }, LOOK_AGAIN_MILLISECONDS);
    try {
      await pool.runUntil(stop);
    } finally {
      clearInterval(looking);
      await others;
    }
  });
}
