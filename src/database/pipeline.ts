/**
 * Transactions in one round trip: their statements do not wait for each other's answers but are sent together, from BEGIN
 * to COMMIT. For work that is done thousands of times a minute, where the way there and back is most of its time: a server
 * that accepted at full load, with eight round trips to each batch, spent 72 % of its time waiting for answers.
 */
import type { Writable } from 'node:stream';
import type { Knex } from 'knex';
import type pg from 'pg';
import { retried, type Transaction } from './transaction.ts';

/**
 * Does work in one transaction and one round trip, again where the server undid it. All statements are sent before the
 * first is awaited: where one fails, those after it fail too, and nothing is recorded; nor if the work itself fails. The connections of this pool are
 * made with `pipeline: true`.
 */
export function inOneTrip<Result>(
  pool: Knex,
  work: (tx: Transaction) => Promise<Result>,
  { readOnly = false }: { readOnly?: boolean } = {},
): Promise<Result> {
  return retried(async () => {
    const client = (await pool.client.acquireConnection()) as pg.Client & { __knex__disposed?: unknown };
    try {
      const { result, commit } = await sendAll(client, readOnly ? READING : WRITING, work);
      // The connection is of use again only where the server has answered everything.
      if (commit.status === 'rejected') client.__knex__disposed = commit.reason;
      if (result.status === 'rejected') throw result.reason;
      if (commit.status === 'rejected') throw commit.reason;
      if (commit.value.command !== 'COMMIT') throw new Error('a transaction failed without an error');
      return result.value;
    } finally {
      await pool.client.releaseConnection(client);
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
    get knex(): never {
      throw new Error('a transaction in one round trip has no transaction of knex');
    },
  };
  // One write for all: by itself each statement would wake the server, and be answered, before the next is there.
  const { stream } = (client as unknown as { connection: { stream: Writable } }).connection;
  stream.cork();
  const begun = client.query(begin);
  const working = new Promise<Result>((resolve) => resolve(work(tx)));
  complete = true;
  working.catch(() => {
    failed = true;
  });
  // Work can also fail by itself, for example for a missing binding. It has done so when all that it can do without an
  // answer is done; COMMIT would record the statements before that.
  await new Promise(setImmediate);
  const ended = client.query(failed ? 'ROLLBACK' : 'COMMIT');
  stream.uncork();
  const [began, result, commit] = await Promise.allSettled([begun, working, ended]);
  // Without its BEGIN nothing of it was one transaction.
  if (began.status === 'rejected') return { result: began, commit };
  // After the first error the server refuses every statement with 25P02, and such an answer may reach the caller first.
  return { result: result.status === 'rejected' && refused !== undefined ? { ...result, ...refused } : result, commit };
}
