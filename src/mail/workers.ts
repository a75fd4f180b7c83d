/**
 * The leases of workers: each worker has a number and holds an advisory lock with it while it lives. By itself the queue
 * would free a dead worker's jobs only after four hours; whoever leases workers frees those whose lock is gone, at once.
 */
import type pg from 'pg';
import { WORKER_LOCKS } from '../database/locks.ts';
import { connectClient } from '../database/session.ts';

/** The numbers of the workers that live: a lock ends with its connection. */
export const LIVING_WORKERS = `
  SELECT l.objid::bigint AS number FROM pg_locks l JOIN pg_database b ON b.oid = l.database
  WHERE b.datname = current_database() AND l.locktype = 'advisory' AND l.classid = ${WORKER_LOCKS} AND l.objsubid = 2`;

export interface WorkerLease {
  readonly numbers: readonly number[];
  readonly end: () => Promise<void>;
}

/** How often a worker looks for others that have died. */
const LOOK_MILLISECONDS = 60_000;

const WORKER_ID = /^reckoner-(\d+)$/;

/** The name under which a worker locks jobs in the queue. */
export const workerId = (number: number): string => `reckoner-${number}`;

/**
 * Leases numbers for workers on a connection of their own and frees the jobs of dead workers. `onLost` is called when the
 * connection, and with it the locks, is lost.
 */
export async function leaseWorkers(
  connection: pg.ClientConfig,
  size: number,
  onLost: (error: Error) => void,
): Promise<WorkerLease> {
  const client = await connectClient(connection, 'app');
  let ended = false;
  client.on('error', () => {
    if (!ended) onLost(new Error('the connection that holds the locks of these workers was lost'));
  });
  const { rows } = await client.query<{ number: string }>(
    `SELECT n.number, pg_advisory_lock(${WORKER_LOCKS}, n.number::integer)
     FROM (SELECT nextval('worker_numbers') AS number FROM generate_series(1, $1)) AS n`,
    [size],
  );
  await freeJobsOfDeadWorkers(client);
  // A standing worker takes over from one that died since. If the connection is lost, onLost says so.
  const looking = setInterval(() => void freeJobsOfDeadWorkers(client).catch(() => {}), LOOK_MILLISECONDS);
  looking.unref();
  return {
    numbers: rows.map((row) => Number(row.number)),
    async end() {
      ended = true;
      clearInterval(looking);
      await client.end();
    },
  };
}

async function freeJobsOfDeadWorkers(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ locked_by: string }>(
    `SELECT DISTINCT locked_by FROM graphile_worker.jobs WHERE locked_by LIKE 'reckoner-%'
     UNION
     SELECT DISTINCT 'reckoner-' || worker FROM emails WHERE worker IS NOT NULL`,
  );
  const { rows: locks } = await client.query<{ number: string }>(LIVING_WORKERS);
  const living = new Set(locks.map((lock) => Number(lock.number)));
  const dead = rows
    .map((row) => row.locked_by)
    .filter((name) => {
      const number = WORKER_ID.exec(name)?.[1];
      return number !== undefined && !living.has(Number(number));
    });
  if (dead.length > 0) await client.query('SELECT graphile_worker.force_unlock_workers($1::text[])', [dead]);
}
