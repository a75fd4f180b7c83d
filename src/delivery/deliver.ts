/**
 * The delivery of all that is issued and not yet delivered: jobs come from the queue in PostgreSQL, so any number of
 * machines may work on it at once.
 */
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import { type RunnerOptions, run, runOnce, type WorkerEvents } from 'graphile-worker';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { hushQueue, openQueuePool, quietQueueLogger } from '../database/queue.ts';
import { databaseFailure } from '../database/transaction.ts';
import { reasonOf } from '../errors/refusals.ts';
import { loadTemplates } from '../mail/document-email.ts';
import { transportOf } from '../mail/transport.ts';
import { packageRoot } from '../package.ts';
import { type Deliverer, type Delivery, deliverDocument } from './document.ts';
import { openStudio } from './drawing.ts';
import { linkProvider } from './link.ts';
import type { LinkWork } from './links/queries.ts';
import { enqueueUnfinished, noteFailure, readIdsOf } from './queries.ts';
import { GROUP, stepsTogether } from './together.ts';
import { hireCrew, workerId } from './workers.ts';

/**
 * Deliveries of one process go in groups, whose members ask the database together (together.ts): while one group is
 * drawn, another waits for the database and a third for the mail server.
 */
const CREW = 3 * GROUP;

/**
 * Ended jobs are told to the queue together, after at most this, and all of them before a run is over: one told alone the
 * queue does not wait for. A job that is done twice finds nothing left to do.
 */
const JOBS_TOLD_AFTER_MILLISECONDS = 20;

/** How often a standing worker looks again at what is held, or waits for its link: a repaired address releases it. */
const LOOK_AGAIN_MILLISECONDS = 60_000;

/** A job that ends with this is tried again by the queue, later each time. */
class TryAgainLater extends Error {}

export interface DeliveryOptions {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly database: Database;
  /** Told of each document as its delivery comes to an end or a halt. */
  readonly onDelivery?: (delivery: Delivery) => void;
  /** Told how many documents there are to look at. */
  readonly onStart?: (documents: number) => void;
  /** Sends what is no document's: a standing worker does it when it begins and every minute. */
  readonly besides?: () => Promise<void>;
}

/** What can be done about links here and now. */
function linkWork({ settings, environment }: DeliveryOptions): LinkWork {
  const { wanted, processors } = linkProvider(settings, environment);
  if (processors.size === 0) return 'nothing';
  return wanted === undefined ? 'end' : 'make';
}

/** Delivers what can be delivered now and returns. */
export async function deliverPending(options: DeliveryOptions): Promise<void> {
  const documents = await options.database.transaction((tx) => enqueueUnfinished(tx, linkWork(options)));
  if (documents === 0) return;
  options.onStart?.(documents);
  await withCrew(options, documents, async ({ queue, lost }) => {
    const round = runOnce(queue);
    round.catch(() => {}); // raced below; it must not end the process
    await Promise.race([round, lost]);
  });
}

/**
 * Delivers these documents now and no other: what else waits in the queue may be waiting for somebody's review. Their
 * own jobs stay in the queue for what could not be finished here.
 */
export async function deliverThese(options: DeliveryOptions, numbers: readonly string[]): Promise<void> {
  const documents = await options.database.reading((tx) => readIdsOf(tx, numbers));
  if (documents.length === 0) return;
  options.onStart?.(documents.length);
  await withCrew(options, documents.length, async ({ size, look, lost }) => {
    const waiting = documents.values();
    const rounds = Array.from({ length: size }, async () => {
      for (const document of waiting) await look(document).catch(() => {}); // told by then, and in the queue
    });
    await Promise.race([Promise.all(rounds), lost]);
  });
}

/** Stays and delivers whatever is issued, until the signal. */
export async function deliverForever(options: DeliveryOptions, stop: AbortSignal): Promise<void> {
  await withCrew(options, Number.POSITIVE_INFINITY, async ({ queue, lost }) => {
    const look = () => options.database.transaction((tx) => enqueueUnfinished(tx, linkWork(options), ['held']));
    await options.database.transaction((tx) => enqueueUnfinished(tx, linkWork(options)));
    const runner = await run({ ...queue, pollInterval: 2000 });
    let besides = Promise.resolve();
    const sendBesides = () => {
      besides = besides.then(() => options.besides?.()).catch(() => {}); // told by then, and tried again in a minute
    };
    sendBesides();
    const looking = setInterval(() => {
      void look().catch(() => {});
      sendBesides();
    }, LOOK_AGAIN_MILLISECONDS);
    try {
      const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }));
      await Promise.race([stop.aborted ? undefined : stopped, lost, runner.promise]);
    } finally {
      clearInterval(looking);
      await Promise.allSettled([runner.stop(), besides]);
    }
  });
}

interface CrewAtWork {
  /** How many deliveries may be under way at once. */
  readonly size: number;
  /** For a runner of the queue's jobs. */
  readonly queue: RunnerOptions;
  /** One look at a document, told to `onDelivery`. */
  readonly look: (documentId: number) => Promise<Delivery>;
  /** Rejects when the workers' locks are lost: others may take them for dead from then on. */
  readonly lost: Promise<never>;
}

/** A crew for so many documents at the most. */
async function withCrew(
  options: DeliveryOptions,
  documents: number,
  work: (crew: CrewAtWork) => Promise<void>,
): Promise<void> {
  const { environment, settings, database } = options;
  const studio = openStudio(documents);
  const transport = transportOf(environment);
  const templates = loadTemplates([
    join(environment.home, 'templates', 'email'),
    join(packageRoot, 'templates', 'email'),
  ]);
  const idle: number[] = [];
  const deliverer: Deliverer = {
    environment,
    settings,
    database,
    steps: stepsTogether(database),
    studio,
    transport,
    templates,
    links: linkProvider(settings, environment),
    isIdle: (worker) => idle.includes(worker),
  };
  const look = async (documentId: number): Promise<Delivery> => {
    const worker = idle.pop();
    if (worker === undefined) throw new Error('more deliveries are under way than there are workers');
    const delivery = await deliverDocument(deliverer, documentId, worker)
      .finally(() => idle.push(worker))
      .catch(async (error: unknown) => {
        // A bug or a lost database: told, and tried again by the queue like anything else that went wrong.
        const reason = reasonOf(databaseFailure(error) ?? error);
        options.onDelivery?.({ number: `document ${documentId}`, status: 'deferred', detail: reason });
        await database.transaction((tx) => noteFailure(tx, documentId, reason)).catch(() => {});
        throw error;
      });
    options.onDelivery?.(delivery);
    return delivery;
  };
  let loseCrew: (error: Error) => void = () => {};
  const lost = new Promise<never>((_, reject) => {
    loseCrew = reject;
  });
  lost.catch(() => {});
  // When the database goes away, the queue rejects promises of its own that nobody holds: they end this work, with the
  // reason told, and not the process.
  const onUnheld = (error: unknown) => loseCrew(error instanceof Error ? error : new Error(String(error)));
  process.on('unhandledRejection', onUnheld);
  const giveBackConsole = hushQueue();
  const crew = await hireCrew(database.connection, CREW, () =>
    loseCrew(new Error('the connection that shows that these workers live was lost')),
  );
  idle.push(...crew.numbers);
  const pool = openQueuePool(database.connection, 4);
  // The queue locks jobs under a name that it makes up; by this one they are found and freed when this process is dead.
  const events: WorkerEvents = new EventEmitter();
  events.on('pool:create', ({ workerPool }) => Object.assign(workerPool, { id: workerId(crew.numbers[0] as number) }));
  const queue: RunnerOptions = {
    pgPool: pool,
    events,
    taskList: {
      deliver: async (payload): Promise<void> => {
        const { status, detail } = await look((payload as { document_id: number }).document_id);
        // Whoever has it elsewhere may fail, and a job in hand is not tried again once it was queued anew beside it.
        if (status === 'deferred' || status === 'elsewhere') throw new TryAgainLater(detail);
      },
    },
    concurrency: CREW,
    // As many jobs as there are workers lie ready here, so that all others stay free for other machines.
    preset: {
      worker: {
        localQueue: { size: CREW },
        completeJobBatchDelay: JOBS_TOLD_AFTER_MILLISECONDS,
        failJobBatchDelay: JOBS_TOLD_AFTER_MILLISECONDS,
      },
    },
    noHandleSignals: true,
    logger: quietQueueLogger,
  };
  try {
    await work({ size: CREW, queue, look, lost });
    // Kept after a failure: the queue goes on rejecting for a while, and the first reason is the one to tell.
    process.off('unhandledRejection', onUnheld);
    giveBackConsole();
  } finally {
    // With the database gone these fail too; what went wrong first is what is told.
    await Promise.allSettled([pool.end(), crew.dismiss()]);
    transport.close();
    await studio.close();
  }
}
