/**
 * The embedded PostgreSQL server: a real server under the home. The first command that needs it starts it, all commands
 * that run at the same time share it, and the last one shuts it down. Refusal: embedded_server.
 *
 * Each command holds an advisory lock in shared mode on a connection of its own, its lease. To leave, it drops that lock
 * and asks for it in exclusive mode: only the last one gets it, and keeps it until the server is gone, so that nobody
 * enters in between. The kernel closes the lease of a command that was killed, so the count is never wrong.
 */
import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf } from '../errors/refusals.ts';
import { codeOf, isSystemError, unless } from '../files.ts';
import {
  type Cluster,
  createCluster,
  isCreated,
  isStopping,
  PATIENCE_MS,
  PORT,
  prepareCluster,
  type ServerEnd,
  startServer,
  stopServer,
} from './cluster.ts';
import { complaintIn, OWN_DATABASE, remedyFor, unusable } from './programs.ts';

export interface EmbeddedServer {
  /** For pg.Client and pg.Pool. `host` is the folder of the socket. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly user: 'reckoner';
    readonly database: 'reckoner';
    /** Explicit, because PGSSLMODE=require in the environment would break a connection through a socket. */
    readonly ssl: false;
  };
  /**
   * Call it after closing your own connections. The last caller shuts the server down and waits until it is gone. A
   * process that does not call it does not end.
   */
  release(): Promise<void>;
}

/** Creates, starts or joins the server of this folder (RECKONER_HOME/postgres), whichever is needed. */
export async function acquireEmbeddedServer(directory: string): Promise<EmbeddedServer> {
  try {
    const cluster = await prepareCluster(directory);
    return new Lease(cluster, await enterOrStart(cluster));
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const reason = error.message.replace(/^[A-Z]+: /, '');
    throw unusable(reason, remedyFor(reason, directory), error);
  }
}

const IN_USE = 7_261_003_101; // The advisory lock. Any number, the same in every release.

/** One command's use of the server. */
class Lease implements EmbeddedServer {
  readonly connection;
  readonly #cluster: Cluster;
  #held: Promise<pg.Client | undefined>;
  #released = false;

  constructor(cluster: Cluster, held: pg.Client) {
    this.connection = connectionTo(cluster);
    this.#cluster = cluster;
    this.#held = Promise.resolve(this.#watch(held));
  }

  /**
   * A lease is lost when PostgreSQL crashes or is killed. Without a new one, the next short command would find itself
   * alone and shut the server down under a worker that runs for weeks.
   */
  #watch(held: pg.Client): pg.Client {
    held.once('end', () => {
      if (!this.#released) this.#held = this.#enterAgain();
    });
    return held;
  }

  async #enterAgain(): Promise<pg.Client | undefined> {
    await sleep(250);
    if (this.#released) return undefined;
    try {
      return this.#watch(await enterOrStart(this.#cluster));
    } catch {
      return undefined; // The command's own queries fail and say why.
    }
  }

  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    const held = await this.#held;
    if (held === undefined) return;
    try {
      await held.query('SELECT pg_advisory_unlock_shared($1)', [IN_USE]);
      const { rows } = await held.query<{ last: boolean }>('SELECT pg_try_advisory_lock($1) AS last', [IN_USE]);
      if (rows[0]?.last) await stopServer(this.#cluster);
    } catch (error) {
      if (answerOf(error) === undefined) throw error; // Otherwise it is gone already, and there is nothing to stop.
    } finally {
      held.end().catch(() => {});
    }
  }
}

/** Enters; starts the server first if nobody answers and nobody else is starting it; otherwise waits and tries again. */
async function enterOrStart(cluster: Cluster): Promise<pg.Client> {
  let since = performance.now();
  for (;;) {
    let answer = await tryToEnter(cluster);
    if (!(answer instanceof pg.Client) && answer.absent) {
      const creating = !isCreated(cluster);
      const unlock = await takeStartLock(join(cluster.folder, 'start.lock'));
      if (unlock) answer = await createAndStart(cluster).finally(unlock);
      if (creating) since = performance.now(); // Creating is not hurried: on a slow disk it takes a minute.
    }
    if (answer instanceof pg.Client) return answer;
    if (performance.now() - since > PATIENCE_MS) {
      throw unusable(
        `no connection within ${PATIENCE_MS / 1000} seconds (${answer.reason})`,
        `Try again in a minute, and see ${join(cluster.folder, 'server.log')}. Or ${OWN_DATABASE}.`,
      );
    }
    await pause(since);
  }
}

/** 5 ms at first, 100 ms after two seconds: each attempt leaves a line in the server's log. */
const pause = (since: number) => sleep(Math.min(5 + (performance.now() - since) / 20, 100));

/** Called with the start lock held. Answers with a lease, or with the reason for another try. */
async function createAndStart(cluster: Cluster): Promise<pg.Client | Answer> {
  const present = await tryToEnter(cluster);
  if (present instanceof pg.Client || !present.absent) return present; // Started while we waited for the lock.
  if (!isCreated(cluster)) await createCluster(cluster);
  const hasEnded = await startServer(cluster);
  const since = performance.now();
  for (;;) {
    // Asked before the attempt: one that has ended may have been a second server that found the first.
    const end = await hasEnded();
    const answer = await tryToEnter(cluster);
    if (answer instanceof pg.Client) return answer;
    if (end !== undefined) return explain(cluster, end);
    if (performance.now() - since > PATIENCE_MS) return answer;
    await pause(since);
  }
}

/**
 * Worth another try: another server has the folder; the last processes of a killed one have not ended yet; a command
 * came in before us and was the last to leave; or it was killed.
 */
function explain({ folder }: Cluster, { failed, output }: ServerEnd): Answer {
  const reason = complaintIn(output);
  if (failed && !/lock file ".*" already exists|pre-existing shared memory block/.test(output)) {
    throw unusable(reason, remedyFor(output, folder));
  }
  return { reason, absent: true };
}

interface Answer {
  readonly reason: string;
  /** Nobody listens; otherwise there is a server that starts, stops or has no room. */
  readonly absent: boolean;
}

async function tryToEnter(cluster: Cluster): Promise<pg.Client | Answer> {
  const lease = new pg.Client({
    ...connectionTo(cluster),
    application_name: 'reckoner lease',
    connectionTimeoutMillis: 5_000,
    lock_timeout: 5_000,
  });
  lease.on('error', () => {}); // A lost lease shows as 'end'; an unhandled 'error' would end the process.
  try {
    await lease.connect();
    await lease.query('SELECT pg_advisory_lock_shared($1)', [IN_USE]);
    // A shutdown may close the connection that had the lock we waited for a moment before it closes ours.
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

const ABSENT = new Set(['ENOENT', 'ECONNREFUSED']);
const PASSING = new Set([
  'ECONNRESET',
  'EPIPE',
  'EAGAIN', // More are connecting at this moment than the socket's queue holds.
  '57P01', // Shut down by an administrator: the last command left.
  '57P02', // Another of its processes crashed.
  '57P03', // Starting, recovering or shutting down.
  '53300', // Too many connections.
  '55P03', // lock_timeout: the shutdown takes its time.
]);

/** What a failed connection says about the server; undefined for a failure that waiting does not repair. */
function answerOf(error: unknown): Answer | undefined {
  const code = codeOf(error);
  const reason = reasonOf(error);
  if (code !== undefined && ABSENT.has(code)) return { reason, absent: true };
  // pg has no code for these.
  const lost = code === undefined && /^Connection terminated|^timeout expired|connection error/.test(reason);
  return lost || (code !== undefined && PASSING.has(code)) ? { reason, absent: false } : undefined;
}

const connectionTo = ({ data }: Cluster) =>
  ({ host: data, port: PORT, user: 'reckoner', database: 'reckoner', ssl: false }) as const;

/**
 * Lets one process at a time create and start: PostgreSQL alone would survive several, but each would make a cluster.
 * The holder touches the file, and a file that was not touched for three seconds is abandoned (a process number would
 * mean nothing to another container). Two that find it abandoned at once may both start; then PostgreSQL's locks decide.
 */
async function takeStartLock(file: string): Promise<(() => Promise<void>) | undefined> {
  const handle = await open(file, 'wx', 0o600).catch(unless('EEXIST'));
  if (handle === undefined) {
    const found = await stat(file).catch(unless('ENOENT'));
    if (found && Date.now() - found.mtimeMs > 3_000) await rm(file, { force: true });
    return undefined;
  }
  const touching = setInterval(() => handle.utimes(new Date(), new Date()).catch(() => {}), 500);
  return async () => {
    clearInterval(touching);
    await handle.close();
    await rm(file, { force: true });
  };
}
