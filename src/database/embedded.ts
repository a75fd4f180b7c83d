/**
 * The embedded PostgreSQL server: a real server under the home. The first command that needs it starts it, all commands
 * that run at the same time share it, and the last one shuts it down. Refusal: embedded_server.
 *
 * Each command holds an advisory lock in shared mode on a connection of its own, called its lease. To leave, it drops
 * that lock and requests it in exclusive mode. Only the last command gets it, and keeps it until the server is gone, so
 * that no one enters in between. The kernel closes the lease of a command that was killed, so the count is never wrong.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf } from '../errors/refusals.ts';
import { codeOf, isSystemError } from '../files.ts';
import {
  type Cluster,
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
  /** For pg.Client and pg.Pool. `host` is the folder of the socket. */
  readonly connection: ReturnType<typeof connectionTo>;
  /**
   * Call it after closing your own connections. The last caller shuts the server down and waits until it is gone. A
   * process that does not call it keeps running.
   */
  release(): Promise<void>;
}

/** Creates, starts or joins the server of this folder (RECKONER_HOME/postgres), whichever is needed. */
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
  // Explicitly without SSL, because PGSSLMODE=require in the environment would break a connection through a socket.
  ({ host: data, port: PORT, user: 'reckoner', database: 'reckoner', ssl: false }) as const;

const IN_USE = 7_261_003_101; // The advisory lock. The number is arbitrary, but the same in every release.

async function leave(cluster: Cluster, lease: pg.Client): Promise<void> {
  try {
    await lease.query('SELECT pg_advisory_unlock_shared($1)', [IN_USE]);
    const { rows } = await lease.query<{ last: boolean }>('SELECT pg_try_advisory_lock($1) AS last', [IN_USE]);
    if (rows[0]?.last) await stopServer(cluster, lease);
  } catch (error) {
    if (answerOf(error) === undefined) throw error; // Any other error means that the server is gone already.
  } finally {
    lease.end().catch(() => {});
  }
}

/** Enters. If no server answers, starts one first. */
async function enterOrStart(cluster: Cluster): Promise<pg.Client> {
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
    // 5 ms at first, 100 ms after two seconds: each attempt leaves a line in the server's log.
    else await sleep(Math.min(5 + waited / 20, 100));
  }
}

interface Answer {
  readonly reason: string;
  /** True if no server is listening; false if one is starting, stopping or full. */
  readonly absent: boolean;
}

async function tryToEnter(cluster: Cluster): Promise<pg.Client | Answer> {
  const lease = new pg.Client({
    ...connectionTo(cluster),
    application_name: 'reckoner lease',
    connectionTimeoutMillis: 5_000,
    lock_timeout: 5_000,
  });
  lease.on('error', () => {}); // A lost lease is of no use, but an unhandled 'error' would end the process.
  try {
    await lease.connect();
    await lease.query('SELECT pg_advisory_lock_shared($1)', [IN_USE]);
    // We waited for a lock of another connection. A shutdown may close that connection a moment before it closes ours.
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
 * Starting or shutting down (57P01 to 57P03), too many connections (53300), a shutdown that takes longer than
 * lock_timeout (55P03), more connections at this moment than the socket's queue holds (EAGAIN).
 */
const PASSING = /^(57P0[123]|53300|55P03|EAGAIN|ECONNRESET|EPIPE)$/;
const LOST_CONNECTION = /^Connection terminated|^timeout expired|connection error/; // pg has no code for these.

/** The server's state, derived from a failed connection; undefined if waiting cannot fix the failure. */
function answerOf(error: unknown): Answer | undefined {
  const [code, reason] = [codeOf(error), reasonOf(error)];
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return { reason, absent: true };
  return (code === undefined ? LOST_CONNECTION.test(reason) : PASSING.test(code))
    ? { reason, absent: false }
    : undefined;
}
