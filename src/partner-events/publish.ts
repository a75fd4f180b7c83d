/**
 * Publishes events: indexes the ledger rows and facts that were committed since the last run, in one order per partner.
 *
 * Rows and facts get their ids before they are committed, so a low id may appear after a higher one. The publisher
 * therefore reads the last assigned ids, and waits until every transaction that was recording at that moment has ended.
 * A recording transaction holds a shared advisory lock from before its first id (ledger_rows_in_order, make_fact), and
 * pg_locks shows the holders. After the wait, every id up to those read is committed or never will be.
 *
 * The publisher does not take the lock exclusively, because every acceptance would then wait behind a long import.
 */
import type { Database } from '../database/database.ts';
import { LOCK_TIMEOUT, sqlstate, type Transaction } from '../database/transaction.ts';
import { failpoint } from '../failpoint.ts';
import { type Cut, indexEvents, lockPublished, type Marks, readCut, readRecorders } from './events.sql.ts';

/** How long a request waits for recording transactions. Events of slower transactions are published by a later run. */
export const REQUEST_PATIENCE_MILLISECONDS = 250;
const LOOK_AGAIN_MILLISECONDS = 5;

const ROWS_AT_ONCE = 50_000;

export class Publisher {
  private readonly database: Pick<Database, 'transaction'>;
  /**
   * A cut whose recording transactions have not all ended. The cut is kept, so that the next attempt does not wait for
   * later transactions.
   */
  private waiting: Cut | undefined;
  private published: Marks = { entries: 0, facts: 0 };
  private last: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;

  constructor(database: Pick<Database, 'transaction'>) {
    this.database = database;
  }

  /**
   * Publishes everything that is committed now. Gives up after `patience` milliseconds while a transaction, such as a
   * long import, is recording. Concurrent calls share a run that begins after them.
   */
  publish(patience: number): Promise<void> {
    this.next ??= this.last
      .catch(() => {})
      .then(() => {
        this.next = undefined;
        return this.run(Date.now() + patience);
      });
    this.last = this.next;
    return this.next;
  }

  private async run(deadline: number): Promise<void> {
    if (this.waiting !== undefined && !(await this.publishTo(this.waiting, deadline))) return;
    const cut = await this.database.transaction(readCut);
    if (isUpTo(this.published, cut)) return;
    await this.publishTo(cut, deadline);
  }

  /** Returns false if events remain, because a transaction of the cut is still recording or the time is up. */
  private async publishTo(cut: Cut, deadline: number): Promise<boolean> {
    const { database } = this;
    this.waiting = cut;
    let recorders = cut.recorders;
    while (recorders.length > 0) {
      if (Date.now() >= deadline) return false;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MILLISECONDS));
      const still = new Set(await database.transaction(readRecorders));
      recorders = recorders.filter((each) => still.has(each));
    }
    for (let done: Marks | undefined; done === undefined || !isUpTo(done, cut); ) {
      if (done !== undefined && Date.now() >= deadline) return false;
      done = await database.transaction((tx) => publishNext(tx, cut)).catch(whereAnotherPublishes);
      if (done === undefined) return false;
      failpoint('events.published');
    }
    this.published = cut;
    this.waiting = undefined;
    return true;
  }
}

function whereAnotherPublishes(error: unknown): undefined {
  if (sqlstate(error) !== LOCK_TIMEOUT) throw error;
}

const isUpTo = (done: Marks, cut: Marks): boolean => done.entries >= cut.entries && done.facts >= cut.facts;

/**
 * Publishes the next rows up to the cut. The facts of the cut are published with the last rows. Only one publisher at a
 * time can hold the lock on the marks.
 */
async function publishNext(tx: Transaction, cut: Marks): Promise<Marks> {
  const from = await lockPublished(tx);
  if (isUpTo(from, cut)) return from;
  const entries = Math.min(Math.max(from.entries, cut.entries), from.entries + ROWS_AT_ONCE);
  // An invoice is published after the rows that it bills.
  const facts = entries < cut.entries ? from.facts : Math.max(from.facts, cut.facts);
  await indexEvents(tx, from, { entries, facts });
  failpoint('events.indexed');
  return { entries, facts };
}
