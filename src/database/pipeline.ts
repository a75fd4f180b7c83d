/**
 * Transactions in one round trip: their statements do not wait for each other's answers but are sent together, from BEGIN
 * to COMMIT. For work that is done thousands of times a minute, where the way there and back is most of its time: a server
 * that accepted at full load, with eight round trips to each batch, spent 72 % of its time waiting for answers.
 */
import type { Writable } from 'node:stream';
import pg from 'pg';
import { retried, type Send, type Statement } from './transaction.ts';

export interface Pipeline {
  /**
   * Does work in one transaction and one round trip, again where the server undid it. All statements are sent before the
   * first is awaited: where one fails, those after it fail too, and nothing is recorded.
   */
  readonly run: <Result>(work: (send: Send) => Promise<Result>, options?: { readOnly?: boolean }) => Promise<Result>;
  readonly close: () => Promise<void>;
}

/** Connects when it is used. `setup` is what each connection begins with. */
export function openPipeline(options: { connection: pg.ClientConfig; max: number; setup: string }): Pipeline {
  let pool: pg.Pool | undefined;

  function opened(): pg.Pool {
    if (pool !== undefined) return pool;
    pool = new pg.Pool({
      ...options.connection,
      max: options.max,
      pipeline: true,
      idleTimeoutMillis: 30_000,
      onConnect: (client) => client.query(options.setup) as unknown as undefined,
    });
    // A lost connection is reported by the statements that need it; unheard, the event would end the process.
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  }

  return {
    run: (work, { readOnly = false } = {}) =>
      retried(async () => {
        const client = await opened().connect();
        const ended = await inOneTrip(client, readOnly ? READING : WRITING, work);
        // Of use again only where the server has answered everything.
        client.release(ended.commit.status === 'rejected');
        if (ended.result.status === 'rejected') throw ended.result.reason;
        if (ended.commit.status === 'rejected') throw ended.commit.reason;
        if (ended.commit.value.command !== 'COMMIT') throw new Error('a transaction failed and nobody was told');
        return ended.result.value;
      }),
    close: async () => pool?.end(),
  };
}

const READING = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';
const WRITING = 'BEGIN ISOLATION LEVEL READ COMMITTED';

async function inOneTrip<Result>(
  client: pg.PoolClient,
  begin: string,
  work: (send: Send) => Promise<Result>,
): Promise<{ result: PromiseSettledResult<Result>; commit: PromiseSettledResult<pg.QueryResult> }> {
  let complete = false;
  // One write for all: by itself each statement would wake the server, and be answered, before the next is there.
  const { stream } = (client as unknown as { connection: { stream: Writable } }).connection;
  stream.cork();
  const begun = client.query(begin);
  const working = work(async <Row>(statement: Statement, values: readonly unknown[]) => {
    if (complete) throw new Error(`${statement.name} was not sent before the first answer was awaited`);
    const { rows } = await client.query({ ...statement, values: [...values] });
    return rows as Row[];
  });
  complete = true;
  const committed = client.query('COMMIT');
  stream.uncork();
  const [began, result, commit] = await Promise.allSettled([begun, working, committed]);
  // Without its BEGIN nothing of it was one transaction.
  return { result: began.status === 'rejected' ? began : result, commit };
}
