import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { LOCKS } from './locks.ts';
import { valueTypes } from './transaction.ts';

export interface Queryable {
  readonly query: (sql: string, values?: unknown[]) => Promise<pg.QueryResult>;
}

/**
 * The time limits for a lock, a statement and a connection. Servers have such limits, because their callers prefer a
 * "busy" answer to waiting.
 */
export interface Patience {
  readonly lockSeconds: number;
  readonly statementSeconds: number;
}

export const SESSION: pg.ClientConfig = {
  types: valueTypes,
  application_name: 'reckoner',
  connectionTimeoutMillis: 15_000,
  // If the server's host is gone, an idle connection notices it within half a minute.
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000,
};

/**
 * Times are written in UTC, dates in ISO form. If this machine is gone, the server notices that within a minute instead
 * of the default two hours, whether the server is waiting, sending or working. The server then releases the session's
 * locks. Limits that a database or role sets for other programs are reset.
 */
const SETUP = `
  SET TIME ZONE 'UTC'; SET datestyle TO ISO; SET client_min_messages TO warning;
  SET tcp_keepalives_idle TO 30; SET tcp_keepalives_interval TO 10; SET tcp_keepalives_count TO 3;
  SET tcp_user_timeout TO '60s'; SET idle_in_transaction_session_timeout TO '10min'; SET idle_session_timeout TO 0;
  SELECT set_config('client_connection_check_interval', '10s', false) WHERE version() !~* 'visual c|mingw';
  SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('server_version_num')::integer >= 170000`;

/** reckoner_app is the role that cannot rewrite history. */
const TAKE_APP_ROLE = `
  SELECT set_config('role', 'reckoner_app', false)
  FROM pg_roles WHERE rolname = 'reckoner_app' AND pg_has_role(current_user, oid, 'MEMBER')`;

/** With RECKONER_NOW, a sandbox may close months that are in the database's future. */
const CLOCK_IS_SET = `SET reckoner.clock_is_set TO on`;

type SessionOptions = Readonly<{
  /** `owner` means the login itself: the owner of the tables, or a login that owns nothing. */
  role: 'app' | 'owner';
  patience?: Patience | undefined;
  clockIsSet?: boolean | undefined;
  /** Runs on each new connection before the connection is used. An error refuses the connection. */
  look?: Look | undefined;
  /** A statement that runs after the settings. */
  opening?: string | undefined;
}>;

/** Compares a connection's database with what this host has seen (documents/last-seen.ts). */
export type Look = (client: pg.Client) => Promise<void>;

function setupOf({ role, patience, clockIsSet = false, opening }: SessionOptions) {
  const { lockSeconds = 0, statementSeconds = 0 } = patience ?? {};
  return [
    SETUP,
    `SET lock_timeout TO '${lockSeconds}s'; SET statement_timeout TO '${statementSeconds}s'`,
    // A server handles many requests at once. Parallel workers for one request cost more to start than they save, and
    // other requests then lack them. The default random_page_cost is meant for spinning disks. With this default,
    // PostgreSQL read whole tables instead of using an index.
    ...(patience === undefined ? [] : ['SET max_parallel_workers_per_gather TO 0; SET random_page_cost TO 1.1']),
    ...(clockIsSet ? [CLOCK_IS_SET] : []),
    ...(role === 'app' ? [TAKE_APP_ROLE] : []),
    ...(opening === undefined ? [] : [opening]),
  ].join('; ');
}

/**
 * Opens a connection outside the pools. The caller ends the connection. If the connection is lost, the next query
 * reports this.
 */
export async function connectClient(connection: pg.ClientConfig, role: SessionOptions['role'] = 'owner') {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(setupOf({ role }));
    return client;
  } catch (error) {
    // An open connection would keep the process alive.
    await client.end().catch(() => {});
    throw error;
  }
}

/**
 * Runs `work` on one process at a time, across all hosts. Other processes wait. The lock has its own connection and
 * ends with that connection.
 */
export async function oneAtATime<Result>(
  connection: pg.ClientConfig,
  lock: (typeof LOCKS)[keyof typeof LOCKS],
  work: () => Promise<Result>,
) {
  const client = await connectClient(connection, 'app');
  try {
    await client.query(`SELECT pg_advisory_lock(${lock})`);
    return await work();
  } finally {
    await client.end();
  }
}

/** The longest wait of a command for a connection while all are in use. */
const WAIT_MILLISECONDS = 60_000;
const IDLE_MILLISECONDS = 30_000;

export function openPool(connection: pg.ClientConfig, max: number, options: SessionOptions) {
  const { patience, look } = options;
  const setup = setupOf(options);
  const limit = patience ? patience.statementSeconds * 1000 : WAIT_MILLISECONDS;
  const late = async () => {
    await sleep(limit, undefined, { ref: false });
    throw new Error('timeout expired');
  };
  // A plain pg.Client would get the pool's limit as its own, but that limit also includes the wait for a free
  // connection.
  class Client extends pg.Client {
    constructor() {
      super(connection);
    }
  }
  const pool = new pg.Pool({
    Client,
    max,
    idleTimeoutMillis: IDLE_MILLISECONDS,
    connectionTimeoutMillis: limit,
    // A pooler accepts a connection before it has a server connection, and then the first query waits.
    onConnect: async (client) => {
      await Promise.race([client.query(setup), late()]);
      await look?.(client as pg.Client);
    },
  });
  // The pool drops a connection that is lost while idle. If a connection is lost while in use, its query reports the
  // error. Without these handlers the event 'error' would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

export interface ServerAt {
  /** The name of the database in messages, without a password. */
  readonly name: string;
  readonly connection: pg.ClientConfig;
}
