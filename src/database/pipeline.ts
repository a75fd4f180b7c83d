/**
 * Transactions in one round trip: all statements from BEGIN to COMMIT are sent before the first answer arrives. Such
 * transactions are for work that runs thousands of times a minute. With eight round trips for each batch of
 * acceptances, the program at full load spent 72% of its time waiting for answers.
 */
import pg from 'pg';
import { retried, Transaction } from './transaction.ts';

/**
 * Runs `work` in one transaction and one round trip, and retries it like `inTransaction`. `work` must send all
 * statements before it awaits the first answer. If a statement or `work` fails, the transaction is rolled back. The
 * pool's connections need `pipeline: true`.
 */
export function inOneTrip<Result>(
  pool: pg.Pool,
  work: (tx: Transaction) => Promise<Result>,
  { readOnly = false }: { readOnly?: boolean } = {},
) {
  return retried(async () => {
    const client = await pool.connect();
    // A connection with missing answers cannot be used again.
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
  // All statements are sent in one write. If a transaction writes several times, the server would wake up and answer
  // after each statement.
  const { stream } = client.connection;
  stream.cork();
  const begun = client.query(begin);
  const working = new Promise<Result>((resolve) => resolve(work(tx)));
  complete = true;
  working.catch(() => {
    failed = true;
  });
  // `work` can also fail before any answer, for example because of a missing binding. COMMIT would then record the
  // earlier statements, so this turn lets `work` fail first.
  await new Promise(setImmediate);
  const ended = client.query(failed ? 'ROLLBACK' : 'COMMIT');
  stream.uncork();
  const [began, result, commit] = await Promise.allSettled([begun, working, ended]);
  // If BEGIN failed, the statements did not run in a transaction.
  if (began.status === 'rejected') return { result: began, commit };
  // After the first error the server refuses every statement with 25P02. The first error is the error to report.
  return { result: result.status === 'rejected' && refused !== undefined ? { ...result, ...refused } : result, commit };
}
