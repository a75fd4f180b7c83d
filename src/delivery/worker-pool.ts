/** The workers that deliver documents in this process, and the resources that they share. */

import { availableParallelism } from 'node:os';
import { Claims, workOn } from '#database/claims';
import { Database } from '#database/database';
import { databaseFailure } from '#database/transaction';
import { reasonOf } from '#errors/refusals';
import { ELSEWHERE } from '#mail/attempt';
import { templatesOf } from '#mail/templates';
import { transportOf } from '#mail/transport';
import { ActorContext } from '#people/audit-events';
import { adoptFirstInstructions } from '#people/settings-in-force';
import { Delivery, DeliveryContext, deliverDocument } from './document.ts';
import { noteFailure } from './documents.sql.ts';
import { DUE_DOCUMENTS, theseDocuments } from './due.sql.ts';
import { linkProvider } from './payment-link.ts';
import { PdfRendererPool } from './pdf-renderer-pool.ts';
import { DeliverySteps } from './steps.ts';

/** Deliveries in progress at once. While some render, others wait for the database or the mail server. */
const WORKERS = 24;

/**
 * Half the number of cores. Rendering takes no longer than the other steps, which keep this thread and PostgreSQL busy.
 * Each thread takes 3 s of CPU to compile the renderer.
 */
const RENDERING_THREADS = Math.ceil(availableParallelism() / 2);

/** How long e-mails in progress may still take when the program must stop. Kubernetes kills the program after 30 s. */
const STOP_MILLISECONDS = 15_000;

export type WorkerPoolOptions = ActorContext &
  Readonly<{
    database: Database;
    onDelivery?: ((delivery: Delivery) => void) | undefined;
  }>;

class WorkerPool {
  private readonly options: WorkerPoolOptions;
  private readonly context: DeliveryContext;
  private readonly claims: Claims;

  constructor(options: WorkerPoolOptions, context: DeliveryContext, claims: Claims) {
    this.options = options;
    this.context = context;
    this.claims = claims;
  }

  /** Works until no document is due. A deferred document is not retried in this run. */
  async runOnce() {
    const work = async (id: string) => isFinished(await this.deliver(Number(id)), ['deferred', 'elsewhere']);
    await workOn(this.claims, DUE_DOCUMENTS, { atOnce: WORKERS, ahead: WORKERS / 2, work });
  }

  /** A deferred e-mail becomes due again. */
  async runUntil(stop: AbortSignal) {
    const end = () => this.context.transport.close(STOP_MILLISECONDS);
    stop.addEventListener('abort', end, { once: true });
    const work = async (id: string) => isFinished(await this.deliver(Number(id)), ['elsewhere']);
    await workOn(this.claims, DUE_DOCUMENTS, { atOnce: WORKERS, ahead: WORKERS / 2, work, stop, stays: true });
  }

  /** Even if others are due. Skips those that another worker has claimed. */
  async deliverAll(documentIds: readonly number[]) {
    const missed = new Set(documentIds);
    const work = async (key: string) => {
      missed.delete(Number(key));
      await this.deliver(Number(key));
      return false;
    };
    await workOn(this.claims, theseDocuments(documentIds), { atOnce: WORKERS, work });
    for (const id of missed) {
      const { document } = await this.context.steps.find(id);
      if (document !== undefined) this.options.onDelivery?.({ number: document.number, ...ELSEWHERE });
    }
  }

  /** Returns the status of the delivery; undefined if it failed. Throws only if the claims are lost. */
  private async deliver(documentId: number): Promise<Delivery['status'] | undefined> {
    const { database, onDelivery } = this.options;
    const { context } = this;
    try {
      const delivery = await context.steps.underWayWith(() => deliverDocument(context, documentId));
      onDelivery?.(delivery);
      return delivery.status;
    } catch (error) {
      // If the database is gone, the check reports that once. Any other error is a bug: it is reported, and the
      // document is retried.
      await this.claims.check();
      const reason = reasonOf(databaseFailure(error) ?? error);
      onDelivery?.({ number: `document ${documentId}`, status: 'deferred', detail: reason });
      await database.transaction((tx) => noteFailure(tx, { documentId, reason })).catch(() => {});
      return undefined;
    }
  }
}

const isFinished = (status: Delivery['status'] | undefined, unfinished: readonly Delivery['status'][]) =>
  status !== undefined && !unfinished.includes(status);

/** Runs `work` with a pool of workers for at most this many documents, then closes the pool. */
export async function withWorkerPool(
  options: WorkerPoolOptions,
  documents: number,
  work: (pool: WorkerPool) => Promise<void>,
) {
  const { environment, settings, database } = options;
  await adoptFirstInstructions(database, options);
  const transport = transportOf(environment);
  const renderer = new PdfRendererPool(documents, RENDERING_THREADS);
  let claims: Claims | undefined;
  try {
    claims = await Claims.open(database.connection);
    const context = {
      ...{ environment, settings, database, renderer, transport, holder: claims.holder },
      steps: new DeliverySteps(database),
      links: linkProvider(settings, environment),
      templates: templatesOf(environment),
    };
    await work(new WorkerPool(options, context, claims));
  } finally {
    await claims?.end();
    transport.close();
    await renderer.close();
  }
}
