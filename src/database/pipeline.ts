/**
 * Transactions in one round trip: all statements from BEGIN to COMMIT are sent before the first answer arrives. This is
 * for work that runs thousands of times a minute. With eight round trips for each batch of acceptances, the program
 * spent 72 % of its time at full load waiting for answers.
 */
import type pg from 'pg';
import { retried, type Transaction } from './transaction.ts';

/**
 * Does work in one transaction and one round trip, and retries it like `inTransaction`. `work` must send all statements
 * before it awaits the first. If a statement or the work itself fails, the whole transaction is rolled back. The pool's
 * connections need `pipeline: true`.
 */
export function inOneTrip<Result>(
  pool: pg.Pool,
  work: (tx: Transaction) => Promise<Result>,
  { readOnly = false }: { readOnly?: boolean } = {},
): Promise<Result> {
  return retried(async () => {
    const client = await pool.connect();
    // A connection on which the server did not answer everything cannot be used again.
    let answered = false;
    try {
      const { result, commit } = await sendAll(client, readOnly ? READING : WRITING, work);
      answered = commit.status === 'fulfilled';
      if (result.status === 'rejected') throw result.reason;
      if (commit.status === 'rejected') throw commit.reason;
      if (commit.value.command !== 'COMMIT') throw new Error('a transaction failed without an error');
      return result.value;
    } finally {
      client.release(!answered);
    }
  });
}

const READING = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';
const WRITING = 'BEGIN ISOLATION LEVEL READ COMMITTED';

async function sendAll<Result>(
  client: pg.Client,
  begin: string,
  work: (tx: Transaction) => Promise<Result>,
): Promise<{ result: PromiseSettledResult<Result>; commit: PromiseSettledResult<pg.QueryResult> }> {
  let complete = false;
  let refused: { readonly reason: unknown } | undefined;
  let failed = false;
  const tx: Transaction = {
    ask(statement) {
      if (complete) throw new Error(`${statement.text} was not sent before the first answer was awaited`);
      const answer = client.query(statement);
      answer.catch((reason: unknown) => {
        refused ??= { reason };
      });
      return answer;
    },
    get client(): never {
      throw new Error('a transaction in one round trip does not lend its connection');
    },
    get knex(): never {
      throw new Error('a transaction in one round trip has no knex transaction');
    },
  };
  // One write for all statements: otherwise the server would wake up and answer after each of them.
  const { stream } = client.connection;
  stream.cork();
  const begun = client.query(begin);
  const working = new Promise<Result>((resolve) => resolve(work(tx)));
  complete = true;
  working.catch(() => {
    failed = true;
  });
  // Work can also fail before any answer, for example because of a missing binding. COMMIT would then record the
  // statements before the failure, so let the work fail first.
  await new Promise(setImmediate);
  const ended = client.query(failed ? 'ROLLBACK' : 'COMMIT');
  stream.uncork();
  const [began, result, commit] = await Promise.allSettled([begun, working, ended]);
  // If BEGIN failed, the statements did not run in a transaction.
  if (began.status === 'rejected') return { result: began, commit };
  // After the first error the server refuses every statement with 25P02. Report the first error, not one of those.
  return { result: result.status === 'rejected' && refused !== undefined ? { ...result, ...refused } : result, commit };
}
