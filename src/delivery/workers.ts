/**
 * Workers: each has a number and holds an advisory lock by it while it lives. The queue itself would free a dead
 * worker's jobs only after four hours; whoever starts here frees those whose lock is gone, at once.
 */
import pg from 'pg';
import { WORKER_LOCKS } from './queries.ts';

export interface Crew {
  readonly numbers: readonly number[];
  readonly dismiss: () => Promise<void>;
}

const WORKER_ID = /^reckoner-(\d+)$/;

/** The name under which a worker locks jobs in the queue. */
export const workerId = (number: number): string => `reckoner-${number}`;

/** Hires workers on a connection of their own and frees the jobs of dead ones. `onLost` tells that the lock is gone. */
export async function hireCrew(connection: pg.ClientConfig, size: number, onLost: () => void): Promise<Crew> {
  const keeper = new pg.Client(connection);
  let dismissed = false;
  keeper.on('error', () => {
    if (!dismissed) onLost();
  });
  await keeper.connect();
  const { rows } = await keeper.query<{ number: string }>(
    `SELECT n.number, pg_advisory_lock(${WORKER_LOCKS}, n.number::integer)
     FROM (SELECT nextval('worker_numbers') AS number FROM generate_series(1, $1)) AS n`,
    [size],
  );
  await freeJobsOfTheDead(keeper);
  return {
    numbers: rows.map((row) => Number(row.number)),
    async dismiss() {
      dismissed = true;
      await keeper.end();
    },
  };
}

async function freeJobsOfTheDead(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ locked_by: string }>(
    `SELECT DISTINCT locked_by FROM graphile_worker.jobs WHERE locked_by LIKE 'reckoner-%'
     UNION
     SELECT DISTINCT 'reckoner-' || worker FROM sendings WHERE worker IS NOT NULL`,
  );
  const { rows: locks } = await client.query<{ number: number }>(
    `SELECT l.objid::bigint AS number FROM pg_locks l JOIN pg_database b ON b.oid = l.database
     WHERE b.datname = current_database() AND l.locktype = 'advisory' AND l.classid = ${WORKER_LOCKS} AND l.objsubid = 2`,
  );
  const living = new Set(locks.map((lock) => Number(lock.number)));
  const dead = rows
    .map((row) => row.locked_by)
    .filter((name) => {
      const number = WORKER_ID.exec(name)?.[1];
      return number !== undefined && !living.has(Number(number));
    });
  if (dead.length > 0) await client.query('SELECT graphile_worker.force_unlock_workers($1::text[])', [dead]);
}
