/**
 * Publishes events: indexes, in one order per partner, the ledger rows and facts that were committed since the last time.
 *
 * Rows and facts get their ids before they are committed, so a low id may appear after a higher one. The publisher
 * reads the last ids assigned, then waits until every transaction that was recording at that moment has ended: each
 * holds a shared advisory lock from before its first id (ledger_rows_in_order, make_fact), and pg_locks shows its
 * holders. From then on every id up to those is committed or never will be. Taking the lock exclusively would show the
 * same, but while that waits for a long import, every acceptance would wait behind it. This way no one waits.
 */
import type { Database } from '../database/database.ts';
import { LOCKS } from '../database/locks.ts';
import {
  execute,
  LOCK_TIMEOUT,
  prepared,
  query,
  queryOne,
  sqlstate,
  type Transaction,
} from '../database/transaction.ts';
import { failpoint } from '../failpoint.ts';

/** The last ids of rows and facts to publish. */
interface Marks {
  readonly entries: number;
  readonly facts: number;
}

/** The last ids assigned, and the transactions that may still commit one of them. */
interface Cut extends Marks {
  readonly recorders: readonly string[];
}

/** How long a request waits for recording transactions; the rest is published the next time. */
export const REQUEST_PATIENCE_MILLISECONDS = 250;
const LOOK_AGAIN_MILLISECONDS = 5;

/** The most ledger rows that one transaction publishes. */
const ROWS_AT_ONCE = 50_000;

export class Publisher {
  private readonly database: Pick<Database, 'transaction'>;
  /** A cut whose recorders have not all ended yet. Kept, so that the next attempt waits for no later ones. */
  private waiting: Cut | undefined;
  private published: Marks = { entries: 0, facts: 0 };
  private last: Promise<void> = Promise.resolve();
  /** The next run, not started yet. */
  private next: Promise<void> | undefined;

  constructor(database: Pick<Database, 'transaction'>) {
    this.database = database;
  }

  /**
   * Publishes what is committed now. Gives up after `patience` milliseconds while a transaction is recording, such as a
   * long import. Calls at the same time share a run that begins after them.
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

  /** False if more is left: a transaction from the time of the cut is still recording, or there was a lot. */
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

/** Three statements, in this order: a row is billed by a later fact, so the rows are read after the facts. */
async function readCut(tx: Transaction): Promise<Cut> {
  const { facts } = await queryOne<{ facts: number }>(tx, LAST_FACT);
  const { entries } = await queryOne<{ entries: number }>(tx, LAST_ENTRY);
  return { facts, entries, recorders: await readRecorders(tx) };
}

const LAST_FACT = prepared(
  'events.last_fact',
  `SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END AS facts FROM fact_numbers`,
);
const LAST_ENTRY = prepared(
  'events.last_entry',
  `SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END AS entries FROM ledger_rows_entry_id_seq`,
);

const keyOf = (lock: string) => lock.replaceAll('::integer', '');
const RECORDERS = prepared(
  'events.recorders',
  `SELECT virtualtransaction FROM pg_locks
   WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND pid IS DISTINCT FROM pg_backend_pid()
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND (classid::bigint, objid::bigint) = (${keyOf(LOCKS.ledger)})`,
);

async function readRecorders(tx: Transaction): Promise<string[]> {
  const rows = await query<{ virtualtransaction: string }>(tx, RECORDERS);
  return rows.map(({ virtualtransaction: each }) => each);
}

/** Publishes the next rows up to the cut, and its facts with the last of them. One publisher at a time does. */
async function publishNext(tx: Transaction, cut: Marks): Promise<Marks> {
  await execute(
    tx,
    `INSERT INTO published_marks (entries_to, facts_to) VALUES (0, 0) ON CONFLICT (only_one) DO NOTHING`,
  );
  const from = await queryOne<Marks>(
    tx,
    `SELECT entries_to AS entries, facts_to AS facts FROM published_marks FOR UPDATE`,
  );
  if (isUpTo(from, cut)) return from;
  const entries = Math.min(Math.max(from.entries, cut.entries), from.entries + ROWS_AT_ONCE);
  // An invoice is published after the rows that it bills.
  const facts = entries < cut.entries ? from.facts : Math.max(from.facts, cut.facts);
  await execute(tx, INDEX_EVENTS, {
    entriesFrom: from.entries,
    entriesTo: entries,
    factsFrom: from.facts,
    factsTo: facts,
  });
  await execute(tx, `UPDATE published_marks SET entries_to = :entries::bigint, facts_to = :facts::bigint`, {
    entries,
    facts,
  });
  failpoint('events.indexed');
  return { entries, facts };
}

const INDEX_EVENTS = `
  WITH found AS MATERIALIZED (
    SELECT partner_id, row_event_type(kind) AS type, posted_month, entry_id, NULL::bigint AS fact_id
    FROM ledger_rows WHERE entry_id > :entriesFrom::bigint AND entry_id <= :entriesTo::bigint
    UNION ALL
    SELECT partner_id, type, NULL, NULL, fact_id
    FROM partner_event_facts WHERE fact_id > :factsFrom::bigint AND fact_id <= :factsTo::bigint
  ), partners_found AS (
    SELECT p.partner_id,
           coalesce((SELECT max(position) FROM partner_events e WHERE e.partner_id = p.partner_id), 0) AS last
    FROM (SELECT DISTINCT partner_id FROM found) AS p
  )
  INSERT INTO partner_events (partner_id, position, type, posted_month, entry_id, fact_id)
  SELECT f.partner_id, p.last + row_number() OVER (PARTITION BY f.partner_id ORDER BY f.entry_id, f.fact_id),
         f.type, f.posted_month, f.entry_id, f.fact_id
  FROM found f JOIN partners_found p USING (partner_id)
  ORDER BY f.entry_id, f.fact_id`;
