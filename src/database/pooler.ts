/**
 * Refuses connection poolers that change a client's server connection between transactions (PgBouncer's transaction and
 * statement modes). Such poolers mix up session settings: roles, time limits, prepared statements and advisory locks. A
 * pooler in session mode works if it has enough connections.
 */
import pg from 'pg';
import { reasonOf, refuse } from '#errors/refusals';
import { connectClient } from './session.ts';

const BACKEND = 'SELECT pg_backend_pid() AS pid';
/**
 * If a pooler uses its server connections in turn, it returns to the first connection only after all others, so one
 * question is not enough. Two clients that ask by turns may always meet the same two connections, so one asks twice.
 */
const QUESTIONS = 5;
/** In session mode, a client waits for a server connection until another client leaves. */
const WAIT_MILLISECONDS = 15_000;

async function backendOf(client: pg.Client) {
  const { rows } = await client.query<{ pid: number }>(BACKEND);
  return rows[0]?.pid ?? 0;
}

/** Refuses a server behind a pooler that changes server connections between transactions. */
export async function refusePooled(connection: pg.ClientConfig, pool: pg.Pool, name: string) {
  const pooled: pg.PoolClient & { processID?: number } = await pool.connect();
  try {
    // A pooler gives its clients process numbers of its own. If the process number is the server's, there is no pooler.
    if (pooled.processID === (await backendOf(pooled))) return;
  } finally {
    pooled.release();
  }
  const clients: pg.Client[] = [];
  try {
    for (let made = 0; made < 2; made += 1) clients.push(await connectBehindPooler(connection, name));
    const [first, second] = clients as [pg.Client, pg.Client];
    if (await changesBackends(first, second)) throw refuse('database_pooled', { database: name });
  } finally {
    await Promise.allSettled(clients.map((client) => client.end()));
  }
}

async function connectBehindPooler(connection: pg.ClientConfig, name: string) {
  try {
    return await connectClient({ ...connection, query_timeout: WAIT_MILLISECONDS });
  } catch (error) {
    if (!NO_CONNECTION.test(reasonOf(error))) throw error;
    throw refuse('database_pool_small', { database: name, seconds: WAIT_MILLISECONDS / 1000 });
  }
}

/** The messages of pg after each of its two time limits, and the message of PgBouncer after its own limit. */
const NO_CONNECTION = /query read timeout|timeout expired|query_wait_timeout/i;

/**
 * True if a transaction of the second client gets the first client's server connection, or if a client's server
 * connection changes.
 */
async function changesBackends(first: pg.Client, second: pg.Client) {
  const backend = await backendOf(first);
  await second.query('BEGIN');
  if ((await backendOf(second)) === backend) return true;
  await second.query('ROLLBACK');
  for (let asked = 0; asked < QUESTIONS; asked += 1) {
    if ((await backendOf(first)) !== backend || (await backendOf(first)) !== backend) return true;
    if ((await backendOf(second)) === backend) return true;
  }
  return false;
}
