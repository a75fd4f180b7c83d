/**
 * The delivery of all that is issued and not yet delivered: jobs come from the queue in PostgreSQL, so any number of
 * machines may work on it at once.
 */
import { join } from 'node:path';
import { type Runner, run, runOnce, type TaskList } from 'graphile-worker';
import type pg from 'pg';
import type { Environment, Settings } from '../config.ts';
import type { Database } from '../database/database.ts';
import { hushQueue, openQueuePool, quietQueueLogger } from '../database/queue.ts';
import { databaseFailure } from '../database/transaction.ts';
import { reasonOf } from '../errors.ts';
import { packageRoot } from '../package.ts';
import { type Deliverer, type Delivery, deliverDocument } from './document.ts';
import { openStudio } from './drawing.ts';
import { loadTemplates } from './letter.ts';
import { linkProvider } from './link.ts';
import type { LinkWork } from './links/queries.ts';
import { enqueueUnfinished, noteFailure, readIdsOf } from './queries.ts';
import { transportOf } from './transport.ts';
import { hireCrew, workerId } from './workers.ts';

/** Deliveries under way at once in one process: drawing takes a core each, sending waits for the mail server. */
const CREW = 4;

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
}

/** What can be done about links here and now. */
function linkWork({ settings, environment }: DeliveryOptions): LinkWork {
  if (environment.stripeKey === undefined) return 'nothing';
  return settings.payment_link.provider === 'stripe' ? 'make' : 'end';
}

/** Delivers what can be delivered now and returns. */
export async function deliverPending(options: DeliveryOptions): Promise<void> {
  const documents = await options.database.transaction((tx) => enqueueUnfinished(tx, linkWork(options)));
  if (documents === 0) return;
  options.onStart?.(documents);
  await withCrew(options, async ({ pool, numbers, tasksOf, lost }) => {
    const rounds = numbers.map((number) => {
      const worker = { pgPool: pool, workerId: workerId(number), concurrency: 1, noHandleSignals: true };
      return runOnce({ ...worker, taskList: tasksOf(number), logger: quietQueueLogger });
    });
    for (const round of rounds) round.catch(() => {}); // raced below; the others must not end the process
    await Promise.race([Promise.all(rounds), lost]);
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
  await withCrew(options, async ({ numbers: workers, look, lost }) => {
    const waiting = documents.values();
    const rounds = workers.map(async (worker) => {
      for (const document of waiting) await look(document, worker).catch(() => {}); // told by then, and in the queue
    });
    await Promise.race([Promise.all(rounds), lost]);
  });
}

/** Stays and delivers whatever is issued, until the signal. */
export async function deliverForever(options: DeliveryOptions, stop: AbortSignal): Promise<void> {
  await withCrew(options, async ({ pool, numbers, tasksOf, lost }) => {
    const look = () => options.database.transaction((tx) => enqueueUnfinished(tx, linkWork(options), ['held']));
    await options.database.transaction((tx) => enqueueUnfinished(tx, linkWork(options)));
    const runners: Runner[] = [];
    const looking = setInterval(() => void look().catch(() => {}), LOOK_AGAIN_MILLISECONDS);
    try {
      for (const number of numbers) {
        const worker = { pgPool: pool, workerId: workerId(number), concurrency: 1, noHandleSignals: true };
        runners.push(await run({ ...worker, taskList: tasksOf(number), logger: quietQueueLogger, pollInterval: 2000 }));
      }
      const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }));
      await Promise.race([stop.aborted ? undefined : stopped, lost, ...runners.map((runner) => runner.promise)]);
    } finally {
      clearInterval(looking);
      await Promise.allSettled(runners.map((runner) => runner.stop()));
    }
  });
}

interface CrewAtWork {
  readonly pool: pg.Pool;
  readonly numbers: readonly number[];
  readonly tasksOf: (worker: number) => TaskList;
  /** One look at a document, told to `onDelivery`. */
  readonly look: (documentId: number, worker: number) => Promise<Delivery>;
  /** Rejects when the workers' locks are lost: others may take them for dead from then on. */
  readonly lost: Promise<never>;
}

async function withCrew(options: DeliveryOptions, work: (crew: CrewAtWork) => Promise<void>): Promise<void> {
  const { environment, settings, database } = options;
  const studio = openStudio();
  const transport = transportOf(environment);
  const templates = loadTemplates([
    join(environment.home, 'templates', 'email'),
    join(packageRoot, 'templates', 'email'),
  ]);
  const deliverer: Deliverer = {
    environment,
    settings,
    database,
    studio,
    transport,
    templates,
    links: linkProvider(settings, environment),
  };
  const look = async (documentId: number, worker: number): Promise<Delivery> => {
    const delivery = await deliverDocument(deliverer, documentId, worker).catch(async (error: unknown) => {
      // A bug or a lost database: told, and tried again by the queue like anything else that went wrong.
      const reason = reasonOf(databaseFailure(error) ?? error);
      options.onDelivery?.({ number: `document ${documentId}`, status: 'deferred', detail: reason });
      await database.transaction((tx) => noteFailure(tx, documentId, reason)).catch(() => {});
      throw error;
    });
    options.onDelivery?.(delivery);
    return delivery;
  };
  const tasksOf = (worker: number): TaskList => ({
    deliver: async (payload): Promise<void> => {
      const { document_id } = payload as { document_id: number };
      const { status, detail } = await look(document_id, worker);
      // Whoever has it elsewhere may fail, and a job in hand is not tried again once it was queued anew beside it.
      if (status === 'deferred' || status === 'elsewhere') throw new TryAgainLater(detail);
    },
  });
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
  const pool = openQueuePool(database.connection, CREW + 2);
  try {
    await work({ pool, numbers: crew.numbers, tasksOf, look, lost });
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
