/**
 * The embedded PostgreSQL server: a real server under the home, started by the first command that needs it, shared by
 * all that run at the same time, and shut down by the last. Refusal: embedded_server.
 *
 * Each command holds one advisory lock in shared mode on a connection of its own, the keeper. Who leaves drops it and
 * asks for the same lock in exclusive mode: only the last one gets it, and keeps it until the server is gone, so that
 * nobody enters in between. The kernel closes the keeper of a command that was killed, so a count is never wrong.
 */
import { type FileHandle, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf } from '../errors/refusals.ts';
import { codeOf, complaintIn, OWN_DATABASE, remedyFor, unless, unusable } from './binaries.ts';
import {
  createCluster,
  isCreated,
  isStopping,
  PATIENCE_MS,
  type Place,
  PORT,
  postmasterOf,
  preparePlace,
  removeLeftovers,
  type ServerEnd,
  startServer,
  stopServer,
} from './cluster.ts';

export interface EmbeddedServer {
  /** For pg.Client and pg.Pool. `host` is the folder of the socket. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly user: 'reckoner';
    readonly database: 'reckoner';
    /** Said aloud, because PGSSLMODE=require in the environment would break a connection through a socket. */
    readonly ssl: false;
  };
  /**
   * Leaves, after closing one's own connections; the last one out shuts the server down and waits until it is gone.
   * A process that does not call it does not end.
   */
  release(): Promise<void>;
}

/** Enters the server of this folder (RECKONER_HOME/postgres): creates, starts or joins it, whichever is needed. */
export async function acquireEmbeddedServer(directory: string): Promise<EmbeddedServer> {
  try {
    const place = await preparePlace(directory);
    return new Stay(place, await enterOrStart(place));
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    const said = error.message.replace(/^[A-Z]+: /, '');
    throw unusable(said, remedyFor(said, directory), error);
  }
}

const IN_USE = 7_261_003_101; // The advisory lock. Any number, the same in every release.

// --- Sharing --------------------------------------------------------------------------------------------------------

/** One command's stay in the server, from entering to leaving. */
class Stay implements EmbeddedServer {
  readonly connection;
  readonly #place: Place;
  #keeper: Promise<pg.Client | undefined>;
  #left = false;

  constructor(place: Place, keeper: pg.Client) {
    this.connection = connectionTo(place);
    this.#place = place;
    this.#keeper = Promise.resolve(this.#watch(keeper));
  }

  /**
   * A keeper is lost when PostgreSQL crashes or is killed. Without a new one, the next short command would believe
   * itself alone and shut the server down under a worker that runs for weeks.
   */
  #watch(keeper: pg.Client): pg.Client {
    keeper.once('end', () => {
      if (!this.#left) this.#keeper = this.#enterAgain();
    });
    return keeper;
  }

  async #enterAgain(): Promise<pg.Client | undefined> {
    await sleep(250);
    if (this.#left) return undefined;
    try {
      return this.#watch(await enterOrStart(this.#place));
    } catch {
      return undefined; // The command's own queries fail and say why.
    }
  }

  async release(): Promise<void> {
    if (this.#left) return;
    this.#left = true;
    const keeper = await this.#keeper;
    if (keeper === undefined) return;
    try {
      await keeper.query('SELECT pg_advisory_unlock_shared($1)', [IN_USE]);
      const { rows } = await keeper.query<{ last: boolean }>('SELECT pg_try_advisory_lock($1) AS last', [IN_USE]);
      if (rows[0]?.last) await stopServer(this.#place);
    } catch (error) {
      if (answerOf(error) === undefined) throw error; // Otherwise it is gone already, and so is the need to stop it.
    } finally {
      keeper.end().catch(() => {});
    }
  }
}

/** The loop that all waiting goes through: enter, else start if nobody answers and nobody else is starting, again. */
async function enterOrStart(place: Place): Promise<pg.Client> {
  const lock = new StartLock(join(place.folder, 'start.lock'));
  let since = performance.now();
  for (;;) {
    let answer = await tryToEnter(place);
    if (!(answer instanceof pg.Client) && answer.absent && (await postmasterOf(place)) === undefined) {
      const creating = !isCreated(place);
      const unlock = await lock.tryToTake();
      if (unlock) answer = await createAndStart(place).finally(unlock);
      if (creating) since = performance.now(); // Creating is not hurried: on a slow disk it takes a minute.
    }
    if (answer instanceof pg.Client) return answer;
    if (performance.now() - since > PATIENCE_MS) {
      throw unusable(
        `it let nobody in for ${PATIENCE_MS / 1000} seconds: ${answer.reason}`,
        `Try again in a minute; ${join(place.folder, 'server.log')} may say more. Or ${OWN_DATABASE}.`,
      );
    }
    await pause(since);
  }
}

/** 5 ms at first, 100 ms after two seconds: each attempt leaves a line in the server's log. */
const pause = (since: number) => sleep(Math.min(5 + (performance.now() - since) / 20, 100));

/** Called with the start lock held. Answers with a keeper, or with the reason for another try. */
async function createAndStart(place: Place): Promise<pg.Client | Answer> {
  const present = await tryToEnter(place);
  if (present instanceof pg.Client || !present.absent) return present; // Started while we waited for the lock.
  await removeLeftovers(place);
  if (!isCreated(place)) await createCluster(place);
  const server = await startServer(place);
  const since = performance.now();
  for (;;) {
    // Asked before the attempt: one that has ended may have been a second server that found the first.
    const end = await server.end();
    const answer = await tryToEnter(place);
    if (answer instanceof pg.Client) return answer;
    if (end !== undefined) return explain(place, end);
    if (performance.now() - since > PATIENCE_MS) return answer;
    await pause(since);
  }
}

/**
 * Worth another try: another server has the folder; the last processes of a killed one have not noticed yet; a command
 * came in before us and was the last one out; or it was killed.
 */
function explain({ folder }: Place, { failed, said }: ServerEnd): Answer {
  const reason = complaintIn(said);
  if (failed && !/lock file ".*" already exists|pre-existing shared memory block/.test(said)) {
    throw unusable(reason, remedyFor(said, folder));
  }
  return { reason, absent: true };
}

interface Answer {
  readonly reason: string;
  /** Nobody listens; otherwise there is a server that starts, stops or has no room. */
  readonly absent: boolean;
}

async function tryToEnter(place: Place): Promise<pg.Client | Answer> {
  const keeper = new pg.Client({
    ...connectionTo(place),
    application_name: 'reckoner keeper',
    connectionTimeoutMillis: 5_000,
    lock_timeout: 5_000,
  });
  keeper.on('error', () => {}); // Losing it shows as 'end'; unheard, an 'error' would end the process.
  try {
    await keeper.connect();
    await keeper.query('SELECT pg_advisory_lock_shared($1)', [IN_USE]);
    // A shutdown may end the connection of the last one out, whose lock we waited for, a moment before it ends ours.
    if (!(await isStopping(place))) return keeper;
    keeper.end().catch(() => {});
    return { reason: 'the server is being shut down', absent: false };
  } catch (error) {
    keeper.end().catch(() => {});
    const answer = answerOf(error);
    if (answer) return answer;
    if (!(error instanceof pg.DatabaseError)) throw error;
    throw unusable(`it answers «${error.message}»`, remedyFor(error.message, place.folder), error);
  }
}

const ABSENT = new Set(['ENOENT', 'ECONNREFUSED']);
const PASSING = new Set([
  'ECONNRESET',
  'EPIPE',
  'EAGAIN', // More are connecting at this moment than the socket's queue holds.
  '57P01', // Shut down by an administrator: it was the last one out.
  '57P02', // Another of its processes crashed.
  '57P03', // Starting, recovering or shutting down.
  '53300', // Too many connections.
  '55P03', // lock_timeout: the last one out takes its time.
]);

/** What a failed connection says of the server; undefined for a failure that waiting does not mend. */
function answerOf(error: unknown): Answer | undefined {
  const code = codeOf(error);
  const reason = reasonOf(error);
  if (code !== undefined && ABSENT.has(code)) return { reason, absent: true };
  // pg has no code for these.
  const lost = code === undefined && /^Connection terminated|^timeout expired|connection error/.test(reason);
  return lost || (code !== undefined && PASSING.has(code)) ? { reason, absent: false } : undefined;
}

const connectionTo = (place: Place) =>
  ({ host: place.sockets, port: PORT, user: 'reckoner', database: 'reckoner', ssl: false }) as const;

/**
 * Lets one process at a time create and start: PostgreSQL alone would survive several, but each would make a cluster,
 * and it has a gap of some microseconds when two find the leftovers of a killed server. The holder touches the file;
 * it is abandoned when untouched for 3 s by the watcher's own clock (a pid would mean nothing to another container).
 * Two watchers who give up on it in the same instant may both get in, and then PostgreSQL's own locks decide.
 */
class StartLock {
  readonly #file: string;
  #seen = { touch: '', at: 0 };

  constructor(file: string) {
    this.#file = file;
  }

  async tryToTake(): Promise<(() => Promise<void>) | undefined> {
    let handle: FileHandle;
    try {
      handle = await open(this.#file, 'wx', 0o600);
    } catch (error) {
      unless('EEXIST')(error);
      await this.#removeIfAbandoned();
      return undefined;
    }
    const { ino } = await handle.stat();
    const touching = setInterval(() => handle.utimes(new Date(), new Date()).catch(() => {}), 500);
    return async () => {
      clearInterval(touching);
      await handle.close();
      if ((await stat(this.#file).catch(unless('ENOENT')))?.ino === ino) await rm(this.#file, { force: true });
    };
  }

  async #removeIfAbandoned(): Promise<void> {
    const found = await stat(this.#file).catch(unless('ENOENT'));
    const touch = `${found?.ino} ${found?.mtimeMs}`;
    if (touch !== this.#seen.touch) this.#seen = { touch, at: performance.now() };
    else if (found && performance.now() - this.#seen.at > 3_000) await rm(this.#file, { force: true });
  }
}
