/**
 * Acceptances as a server takes them: those that arrive while others are under way are judged together and recorded
 * together, so that a commit, the ledger's lock and the round trips are paid once for all of them. Each has its own
 * answer, and none fails or waits because of another: what is wrong with one is found by doing each by itself.
 *
 * Judging and recording go on beside each other: a repeated acceptance and a refused one are answered while a close
 * holds the ledger and new ones wait for it.
 *
 * An acceptance by itself took 7 round trips, each statement planned anew, and a commit of its own: on 16 connections 134
 * a second where bare inserts reached 1,298. Now any number of them take 2, one to be judged and one to be recorded.
 */
import type { Database } from '../database/database.ts';
import { type Gathering, gather } from '../database/gather.ts';
import { lockLedgerFor } from '../database/ledger-lock.ts';
import { isFaultOfOne, LOCK_TIMEOUT, sqlstate, type Transaction } from '../database/transaction.ts';
import { failpoint } from '../failpoint.ts';
import { type Accepted, type Due, judge, LOOKS, record, unsettled, type Wanted } from './accept.ts';
import { isOvertaken } from './queries.ts';

/** Turns what is accepted into answers; what they need beside it is read once for all of them. */
export type Answering<Answer> = (
  accepted: readonly Accepted[],
  reading: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>,
) => Promise<readonly Answer[]>;

interface Request<Answer> {
  readonly wanted: Wanted;
  /** On this process' own clock, in milliseconds. */
  readonly arrivedAt: number;
  looks: number;
  readonly answer: (answer: Answer) => void;
  readonly refuse: (error: unknown) => void;
}

interface DueRequest<Answer> {
  readonly request: Request<Answer>;
  readonly due: Due;
}

/**
 * Together with others, one waits so long for a row that somebody else is about to record, an import of the same quote
 * say. By itself it waits for as long as it would have.
 */
const ROW_PATIENCE = 100;

/** Gives the function that accepts: its promise has the answer, or rejects with the refusal or what failed. */
export function openAcceptances<Answer>(
  database: Database,
  answering: Answering<Answer>,
): (wanted: Wanted) => Promise<Answer> {
  const judging = gather<Request<Answer>>(judgeTogether);
  const recording: Gathering<DueRequest<Answer>> = gather(recordTogether);

  async function judgeTogether(requests: readonly Request<Answer>[]): Promise<void> {
    try {
      const wanted = requests.map((request) => request.wanted);
      const verdicts = await database.inOneTrip((tx) => judge(tx, wanted), { readOnly: true });
      const answers = await answersTo(verdicts.flatMap((verdict) => ('accepted' in verdict ? [verdict.accepted] : [])));
      const known = answers.values();
      for (const [index, request] of requests.entries()) {
        const verdict = verdicts[index];
        if (verdict === undefined) request.refuse(unsettled(request.wanted));
        else if ('refusal' in verdict) request.refuse(verdict.refusal);
        else if ('due' in verdict) recording.add({ request, due: verdict.due });
        else request.answer(known.next().value as Answer);
      }
    } catch (error) {
      blame(error, requests, judgeTogether, (request) => request);
    }
  }

  async function recordTogether(all: readonly DueRequest<Answer>[]): Promise<void> {
    const { firsts, others } = oncePerQuote(all);
    let locked = false;
    try {
      failpoint('accept.judged');
      const recorded = await database.inOneTrip(async (tx) => {
        locked = false;
        const locking = lockLedgerFor(tx, patienceOf(firsts)).then(() => {
          locked = true;
        });
        const dues = firsts.map(({ due }) => due);
        const [recorded] = await Promise.all([record(tx, dues), locking, failpoint('accept.sent')]);
        return recorded;
      });
      failpoint('accept.committed');
      const answers = await answersTo(recorded.filter((each) => each !== undefined));
      const given = answers.values();
      for (const [index, { request }] of firsts.entries()) {
        if (recorded[index] === undefined) lookAgain(request);
        else request.answer(given.next().value as Answer);
      }
    } catch (error) {
      notRecorded(error, firsts, locked);
    }
    // The same quote again, or another requote of it: what became of the first decides, and it is in the ledger now.
    for (const { request } of others) judging.add(request);
  }

  function notRecorded(error: unknown, dues: readonly DueRequest<Answer>[], locked: boolean): void {
    const [only] = dues;
    if (dues.length === 1 && only !== undefined && isOvertaken(error)) {
      lookAgain(only.request);
    } else if (sqlstate(error) === LOCK_TIMEOUT && !locked) {
      // A close holds the ledger. Whose time is up is told so; the others go on waiting for what is left of theirs.
      const oldest = Math.min(...dues.map(({ request }) => request.arrivedAt));
      const upTo = Math.max(oldest, performance.now() - database.lockPatience);
      for (const { request } of dues) if (request.arrivedAt <= upTo) request.refuse(error);
      recording.putBack(dues.filter(({ request }) => request.arrivedAt > upTo));
    } else {
      blame(error, dues, recordTogether, ({ request }) => request);
    }
  }

  const answersTo = async (accepted: readonly Accepted[]): Promise<readonly Answer[]> =>
    accepted.length === 0 ? [] : answering(accepted, (work) => database.inOneTrip(work, { readOnly: true }));

  function lookAgain(request: Request<Answer>): void {
    request.looks += 1;
    if (request.looks < LOOKS) judging.add(request);
    else request.refuse(unsettled(request.wanted));
  }

  /** What is left of the time for which the one that came first waits for the ledger. */
  function patienceOf(dues: readonly DueRequest<Answer>[]): { ledger: number; rows: number } {
    const { lockPatience } = database;
    if (lockPatience === 0) return { ledger: 0, rows: dues.length > 1 ? ROW_PATIENCE : 0 };
    const oldest = Math.min(...dues.map(({ request }) => request.arrivedAt));
    const left = Math.max(1, Math.ceil(oldest + lockPatience - performance.now()));
    return { ledger: left, rows: dues.length > 1 ? Math.min(left, ROW_PATIENCE) : left };
  }

  return (wanted) =>
    new Promise((resolve, reject) => {
      judging.add({ wanted, arrivedAt: performance.now(), looks: 0, answer: resolve, refuse: reject });
    });
}

/**
 * If a batch fails because of one item, retry the items one by one, concurrently. Report server failures to every caller.
 */
function blame<Item, Answer>(
  error: unknown,
  items: readonly Item[],
  work: (items: readonly Item[]) => Promise<void>,
  requestOf: (item: Item) => Request<Answer>,
): void {
  const together = items.length > 1 && isFaultOfOne(error);
  for (const item of items) {
    if (together) void work([item]);
    else requestOf(item).refuse(error);
  }
}

/** Rows of one quote decide about each other: the first of each is recorded, and the others are judged after it. */
function oncePerQuote<Answer>(all: readonly DueRequest<Answer>[]): {
  firsts: DueRequest<Answer>[];
  others: DueRequest<Answer>[];
} {
  const firsts = new Map<string, DueRequest<Answer>>();
  const others: DueRequest<Answer>[] = [];
  for (const each of all) {
    const { quoteId } = each.due.accepted;
    if (firsts.has(quoteId)) others.push(each);
    else firsts.set(quoteId, each);
  }
  return { firsts: [...firsts.values()], others };
}
