/**
 * Publishes events. Publishing indexes the facts that were committed since the last time, in the order of the log. It
 * stops at a number below which no fact can still appear (../log/fence.ts).
 */
import { Database } from '#database/database';
import { LOCK_TIMEOUT, sqlstate, Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { awaitCut, Cut, readCut } from '#log/fence';
import { indexEvents, lockPublished } from './events.sql.ts';

/**
 * How long a request waits for transactions that are recording facts. Events of slower transactions are published by a
 * later run.
 */
export const REQUEST_PATIENCE_MILLISECONDS = 250;

/** The largest number of facts that one transaction publishes. */
const AT_ONCE = 50_000;

export class Publisher {
  private readonly database: Pick<Database, 'transaction'>;
  /**
   * A cut for which some transactions are still recording. The cut is kept, so that the next attempt does not wait for
   * later transactions.
   */
  private waiting: Cut | undefined;
  private published = 0;
  private last: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;

  constructor(database: Pick<Database, 'transaction'>) {
    this.database = database;
  }

  /**
   * Publishes everything that is committed now. Gives up after `patience` milliseconds if a transaction, such as a long
   * import, is still recording. Concurrent calls share a run that begins after these calls.
   */
  publish(patience: number) {
    this.next ??= this.last
      .catch(() => {})
      .then(() => {
        this.next = undefined;
        return this.run(Date.now() + patience);
      });
    this.last = this.next;
    return this.next;
  }

  private async run(deadline: number) {
    if (this.waiting !== undefined && !(await this.publishTo(this.waiting, deadline))) return;
    const cut = await this.database.transaction(readCut);
    if (this.published >= cut.to) return;
    await this.publishTo(cut, deadline);
  }

  /** Returns false if events remain, because a transaction of the cut is still recording or the time is up. */
  private async publishTo(cut: Cut, deadline: number) {
    const { database } = this;
    this.waiting = cut;
    if (!(await awaitCut(database, cut, deadline))) return false;
    for (let done: number | undefined; done === undefined || done < cut.to; ) {
      if (done !== undefined && Date.now() >= deadline) return false;
      done = await database.transaction((tx) => publishNext(tx, cut)).catch(whereAnotherPublishes);
      if (done === undefined) return false;
      failpoint('events.published');
    }
    this.published = cut.to;
    this.waiting = undefined;
    return true;
  }
}

function whereAnotherPublishes(error: unknown): undefined {
  if (sqlstate(error) !== LOCK_TIMEOUT) throw error;
}

/**
 * Publishes the next facts up to the cut, and returns the last number that was published. Only one publisher at a time
 * does this.
 */
async function publishNext(tx: Transaction, { to: last }: Cut) {
  const after = await lockPublished(tx);
  if (after >= last) return after;
  const to = Math.min(last, after + AT_ONCE);
  await indexEvents(tx, { after, to });
  failpoint('events.indexed');
  return to;
}
