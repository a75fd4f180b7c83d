/**
 * The workers that deliver documents in this process: their lease, what they work with, and a runner for the jobs of the
 * queue. When the database goes away the work ends with the reason.
 */

import { EventEmitter } from 'node:events';
import { availableParallelism } from 'node:os';
import type { Pool } from 'pg';
import type { Database } from '../database/database.ts';
import {
  QUEUE_OPTIONS,
  quietConsole,
  quietQueueLogger,
  type RunnerOptions,
  run,
  runOnce,
  type WorkerEvents,
} from '../database/queue.ts';
import { openPool } from '../database/session.ts';
import { databaseFailure } from '../database/transaction.ts';
import { adoptUnlessRuled } from '../documents/instructions.ts';
import { reasonOf } from '../errors/refusals.ts';
import { TryAgainLater } from '../mail/retry.ts';
import { templatesOf } from '../mail/templates.ts';
import { transportOf } from '../mail/transport.ts';
import { leaseWorkers, type WorkerLease, workerId } from '../mail/workers.ts';
import type { ActorContext } from '../people/audit-events.ts';
import { type Delivery, type DeliveryContext, deliverDocument } from './document.ts';
import { linkProvider } from './link.ts';
import { PdfRendererPool } from './pdf-renderer-pool.ts';
import { noteFailure } from './queries.ts';
import { DeliverySteps } from './steps.ts';

/**
 * Deliveries under way at once. While some are rendered, others wait for the database or the mail server. A program that
 * is killed leaves at most this many e-mails of which it is unknown whether they arrived.
 */
const WORKERS = 24;

/**
 * Half of the cores. Drawing a document takes no longer than the rest of its delivery, which keeps this thread and
 * PostgreSQL busy. Each rendering thread compiles the renderer for itself: it takes 3 s of CPU until it is fast.
 */
const RENDERING_THREADS = Math.ceil(availableParallelism() / 2);

/** How long e-mails under way may still take when the program is to end: Kubernetes kills it after 30 s. */
const STOP_MILLISECONDS = 15_000;

/** Ended jobs are reported to the queue together, after at most this long. A job that is done twice finds nothing to do. */
const JOBS_REPORTED_AFTER_MILLISECONDS = 20;

export interface WorkerPoolOptions extends ActorContext {
  readonly database: Database;
  /** Called for each document whose delivery came to an end or a halt. */
  readonly onDelivery?: ((delivery: Delivery) => void) | undefined;
}

export class WorkerPool {
  private readonly options: WorkerPoolOptions;
  private readonly context: DeliveryContext;
  private readonly idle: number[];
  private readonly queue: RunnerOptions;

  constructor(options: WorkerPoolOptions, context: DeliveryContext, lease: WorkerLease, queuePool: Pool) {
    this.options = options;
    this.idle = [...lease.numbers];
    this.context = { ...context, isIdle: (worker) => this.idle.includes(worker) };
    const events: WorkerEvents = new EventEmitter();
    // The queue locks jobs under a name that it makes up; by this one they are found and freed when this process is dead.
    events.on('pool:create', ({ workerPool }) => {
      Object.assign(workerPool, { id: workerId(lease.numbers[0] as number) });
    });
    this.queue = {
      ...QUEUE_OPTIONS,
      pgPool: queuePool,
      events,
      taskList: { deliver: (payload) => this.doJob(payload as { document_id: number }) },
      concurrency: WORKERS,
      // As many jobs as there are workers wait here, so that all others stay free for other machines.
      preset: {
        worker: {
          localQueue: { size: WORKERS },
          completeJobBatchDelay: JOBS_REPORTED_AFTER_MILLISECONDS,
          failJobBatchDelay: JOBS_REPORTED_AFTER_MILLISECONDS,
        },
      },
      logger: quietQueueLogger,
    };
  }

  /** Works until the queue has no job that can be done now. */
  runOnce(): Promise<void> {
    return runOnce(this.queue);
  }

  /** Works until `stopped`. */
  async runUntil(stopped: Promise<void>): Promise<void> {
    const runner = await run({ ...this.queue, pollInterval: 2000 });
    try {
      await Promise.race([stopped, runner.promise]);
    } finally {
      this.context.transport.close(STOP_MILLISECONDS);
      await runner.stop().catch(() => {}); // it may have ended by itself
    }
  }

  /** Delivers these documents, whatever else is queued. What fails is reported and stays in the queue. */
  async deliverAll(documentIds: readonly number[]): Promise<void> {
    const waiting = documentIds.values();
    const work = async () => {
      for (const id of waiting) await this.deliver(id).catch(() => {});
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
  }

  private async doJob({ document_id: documentId }: { document_id: number }): Promise<void> {
    const { status, detail } = await this.deliver(documentId);
    // The other worker may fail, and a locked job that was re-queued is not retried; so ask for a retry.
    if (status === 'deferred' || status === 'elsewhere') throw new TryAgainLater(detail);
  }

  private async deliver(documentId: number): Promise<Delivery> {
    const worker = this.idle.pop();
    if (worker === undefined) throw new Error('more deliveries are under way than there are workers');
    const { database, onDelivery } = this.options;
    try {
      const { context } = this;
      const delivery = await context.steps.underWayWith(() => deliverDocument(context, documentId, worker));
      onDelivery?.(delivery);
      return delivery;
    } catch (error) {
      // A bug or a lost database: reported, and tried again by the queue.
      const reason = reasonOf(databaseFailure(error) ?? error);
      onDelivery?.({ number: `document ${documentId}`, status: 'deferred', detail: reason });
      await database.transaction((tx) => noteFailure(tx, documentId, reason)).catch(() => {});
      throw error;
    } finally {
      this.idle.push(worker);
    }
  }
}

/** Does work with a pool of workers, for so many documents at most, and ends the pool after it. */
export async function withWorkerPool(
  options: WorkerPoolOptions,
  documents: number,
  work: (pool: WorkerPool) => Promise<void>,
): Promise<void> {
  const { environment, settings, database } = options;
  await adoptUnlessRuled(database, options);
  const outside = watchOutside();
  const renderer = new PdfRendererPool(documents, RENDERING_THREADS);
  const transport = transportOf(environment);
  const queuePool = openPool(database.connection, 4, { role: 'app' });
  let lease: WorkerLease | undefined;
  try {
    lease = await leaseWorkers(database.connection, WORKERS, outside.fail);
    const steps = new DeliverySteps(database);
    const links = linkProvider(settings, environment);
    const context = {
      ...{ environment, settings, database, steps, renderer, transport, links },
      templates: templatesOf(environment),
    };
    await Promise.race([work(new WorkerPool(options, context, lease, queuePool)), outside.failed]);
  } catch (error) {
    outside.linger();
    throw error;
  } finally {
    // With the database gone these fail too; the first error is the one to report.
    await Promise.allSettled([queuePool.end(), lease?.end()]);
    transport.close();
    await renderer.close();
    outside.end();
  }
}

/** After a failure the queue goes on for a while to reject promises and to write to the console. */
const LINGER_MILLISECONDS = 5000;

/**
 * What goes wrong outside of the work itself: the workers' locks are lost, or the queue rejects a promise that nobody
 * holds, which it does when the database goes away. Such a rejection ends the work with its reason, and not the process;
 * what the queue writes to the console is dropped.
 */
function watchOutside() {
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {}); // raced with the work; it must not end the process
  const onRejection = (error: unknown) => fail(error instanceof Error ? error : new Error(String(error)));
  const giveBackConsole = quietConsole();
  process.on('unhandledRejection', onRejection);
  let lingerMilliseconds = 0;
  const stop = () => {
    process.off('unhandledRejection', onRejection);
    giveBackConsole();
  };
  return {
    failed,
    fail,
    linger() {
      lingerMilliseconds = LINGER_MILLISECONDS;
    },
    end() {
      if (lingerMilliseconds === 0) stop();
      else setTimeout(stop, lingerMilliseconds).unref();
    },
  };
}
