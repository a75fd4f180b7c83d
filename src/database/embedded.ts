/**
 * The embedded PostgreSQL server: a real server in the home. The first command that needs the server starts it. All
 * commands that run at the same time share the server, and the last command shuts it down. Refusal: embedded_server.
 *
 * Each command holds an advisory lock in shared mode on a connection of its own, called its lease. To leave, a command
 * releases that lock and requests it in exclusive mode. Only the last command gets the exclusive lock. The last command
 * keeps this lock until the server is gone, so that no other command joins in between. The kernel closes the lease of a
 * killed command, so the count is always right.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf } from '#errors/refusals';
import { codeOf, isSystemError } from '#files';
import {
  Cluster,
  createCluster,
  isCreated,
  isStopping,
  OWN_DATABASE,
  PATIENCE_MS,
  PORT,
  prepareCluster,
  remedyFor,
  startServer,
  stopServer,
  unusable,
} from './cluster.ts';

export interface EmbeddedServer {
  /** The options for pg.Client and pg.Pool. `host` is the folder of the socket. */
  readonly connection: ReturnType<typeof connectionTo>;
  /**
   * To be called after closing your own connections. The last caller shuts the server down and waits until it is gone.
   * If a process does not call `release`, it keeps running.
   */
  release(): Promise<void>;
}

/** Creates, starts or joins the server of this folder (RECKONER_HOME/postgres). */
export async function acquireEmbeddedServer(directory: string): Promise<EmbeddedServer> {
  try {
    const cluster = await prepareCluster(directory);
    const lease = await enterOrStart(cluster);
    let released: Promise<void> | undefined;
    return {
      connection: connectionTo(cluster),
      release: () => {
        released ??= leave(cluster, lease);
        return released;
      },
    };
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const reason = error.message.replace(/^[A-Z]+: /, '');
    throw unusable(reason, remedyFor(reason, directory), error);
  }
}

const connectionTo = ({ data }: Cluster) =>
  // SSL must be off explicitly: PGSSLMODE=require in the environment would break a connection through a socket.
  ({ host: data, port: PORT, user: 'reckoner', database: 'reckoner', ssl: false }) as const;

const IN_USE = 7_261_003_101; // The advisory lock. This number must be the same in every release.

async function leave(cluster: Cluster, lease: pg.Client) {
  try {
    await lease.query('SELECT pg_advisory_unlock_shared($1)', [IN_USE]);
    const { rows } = await lease.query<{ last: boolean }>('SELECT pg_try_advisory_lock($1) AS last', [IN_USE]);
    if (rows[0]?.last) await stopServer(cluster, lease);
  } catch (error) {
    if (answerOf(error) === undefined) throw error; // If any other error occurs, the server is already gone.
  } finally {
    lease.end().catch(() => {});
  }
}

async function enterOrStart(cluster: Cluster) {
  if (!isCreated(cluster)) await createCluster(cluster);
  const since = performance.now();
  for (;;) {
    const answer = await tryToEnter(cluster);
    if (answer instanceof pg.Client) return answer;
    const waited = performance.now() - since;
    if (waited > PATIENCE_MS) {
      throw unusable(
        `no connection within ${PATIENCE_MS / 1000} seconds (${answer.reason})`,
        `Try again in a minute, and see ${join(cluster.folder, 'server.log')}. Or ${OWN_DATABASE}.`,
      );
    }
    if (answer.absent) await startServer(cluster);
    // Waits 5 ms at first and 100 ms after two seconds, because each attempt adds a line to the server's log.
    else await sleep(Math.min(5 + waited / 20, 100));
  }
}

interface Answer {
  readonly reason: string;
  /** True if no server is listening. False if a server is starting, stopping or full. */
  readonly absent: boolean;
}

async function tryToEnter(cluster: Cluster): Promise<pg.Client | Answer> {
  const lease = new pg.Client({
    ...connectionTo(cluster),
    application_name: 'reckoner lease',
    connectionTimeoutMillis: 5_000,
    lock_timeout: 5_000,
  });
  lease.on('error', () => {}); // Without a handler, the event 'error' would end the process.
  try {
    await lease.connect();
    await lease.query('SELECT pg_advisory_lock_shared($1)', [IN_USE]);
    // The lock may have been granted because a shutdown closed its holder's connection. The shutdown closes our
    // connection next.
    if (!(await isStopping(cluster))) return lease;
    lease.end().catch(() => {});
    return { reason: 'the server is being shut down', absent: false };
  } catch (error) {
    lease.end().catch(() => {});
    const answer = answerOf(error);
    if (answer) return answer;
    if (!(error instanceof pg.DatabaseError)) throw error;
    throw unusable(`it answers "${error.message}"`, remedyFor(error.message, cluster.folder), error);
  }
}

/**
 * The server is starting or shutting down (57P01 to 57P03), has too many connections (53300), or takes longer than
 * lock_timeout to shut down (55P03). EAGAIN means that the queue of the server's socket is full.
 */
const PASSING = /^(57P0[123]|53300|55P03|EAGAIN|ECONNRESET|EPIPE)$/;
const LOST_CONNECTION = /^Connection terminated|^timeout expired|connection error/; // pg has no codes for these errors.

/** The server's state, derived from a failed connection, or undefined if waiting cannot help. */
function answerOf(error: unknown): Answer | undefined {
  const [code, reason] = [codeOf(error), reasonOf(error)];
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return { reason, absent: true };
  return (code === undefined ? LOST_CONNECTION.test(reason) : PASSING.test(code))
    ? { reason, absent: false }
    : undefined;
}
