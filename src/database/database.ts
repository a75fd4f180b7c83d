/**
 * Opens the database: DATABASE_URL, or the embedded server under RECKONER_HOME. Commands that only read use the replica
 * of DATABASE_URL_READ, if there is one (replica.ts). Opening checks the version, the migrations, the environment, and
 * the conditions that fitness.ts checks again before transactions that write. Refusals: database_unreachable,
 * database_too_old, database_not_migrated, database_newer, database_unreleased, database_foreign, database_environment,
 * database_read_only, clock_differs, embedded_server, environment_invalid (DATABASE_URL), replica_unusable.
 */
import { join } from 'node:path';
import pg from 'pg';
import { Environment } from '#config/environment';
import { readSettings } from '#config/settings';
import { Refusal, reasonOf, refuse } from '#errors/refusals';
import { atMost } from '#turns';
import { connectionUrl } from './address.ts';
import { Prepare, withElsewhere } from './elsewhere.ts';
import { acquireEmbeddedServer } from './embedded.ts';
import { checkUnmigrated, Fitness, fitnessOf } from './fitness.ts';
import { MigrationResult, migrate, pendingMigrations, refuseUnmigrated } from './migrate.ts';
import { inOneTrip } from './pipeline.ts';
import { refusePooled } from './pooler.ts';
import { awaitReplica } from './replica.ts';
import { Look, openPool, Patience, Queryable, SESSION, ServerAt } from './session.ts';
import { execute, inTransaction, query, readBeside, Transaction } from './transaction.ts';

export type Database = Readonly<{
  /** Runs `work` in a transaction of the app's role. If the server rolls the transaction back, it is retried. */
  transaction: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
  /** Like `transaction`, but read-only. All statements use one snapshot. */
  reading: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
  /**
   * Like `reading`, with a second transaction on the same snapshot for parallel work. `beside` is undefined if no
   * connection is available.
   */
  readingBeside: <Result>(
    work: (tx: Transaction, beside: Transaction | undefined) => Promise<Result>,
  ) => Promise<Result>;
  /** Like `transaction` in one round trip, for work whose statements do not need each other's answers (pipeline.ts). */
  inOneTrip: <Result>(work: (tx: Transaction) => Promise<Result>, options?: { readOnly?: boolean }) => Promise<Result>;
  /** Runs `work` for its result, and rolls back everything that `work` wrote. */
  preview: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
  /**
   * Runs `work` on a connection of its own, with a table for copies of archived rows (archive/rows.ts) and without time
   * limits. At most three run at once.
   */
  aside: Aside;
  /** Runs `work` in a transaction as the owner, because the app's role may not do a backup or restore. */
  asOwner: <Result>(work: (tx: Transaction) => Promise<Result>, options?: { readOnly?: boolean }) => Promise<Result>;
  /** How long transactions wait for a lock, in milliseconds; 0 means no limit. */
  lockPatience: number;
  /** For work that needs its own connection: claims and other advisory locks. */
  connection: pg.ClientConfig;
  /** For metrics: the used and free connections of each pool, and the requests that wait for a connection. */
  pools: () => Readonly<Record<string, PoolState>>;
  /** `settle` runs in the same transaction as the migrations. Returns the names of the migrations that ran. */
  migrations: {
    readonly run: (settle?: (tx: Transaction, done: MigrationResult) => Promise<void>) => Promise<readonly string[]>;
  };
  /** Throws a refusal if transactions cannot write now. */
  checkWritable: () => Promise<void>;
  /** Compares the database with what this host has seen, and remembers what the database has now (`options.look`). */
  look: () => Promise<void>;
  close: () => Promise<void>;
  /** Drops all connections. This is for a process that must stop now. The server then rolls back the transactions. */
  abandon: () => Promise<void>;
}>;

type PoolState = Readonly<{
  used: number;
  free: number;
  waiting: number;
}>;

const OLDEST_SERVER = 160000;

export type DatabaseOptions = Readonly<{
  unmigrated?: boolean;
  /** Uses the replica, if there is one. */
  readOnly?: boolean;
  /** The number of connections of the app's role (default: 4). */
  poolSize?: number;
  patience?: Patience;
  look?: Look;
  /** A database for a drill, which may be embedded in production too. */
  scratch?: boolean;
}>;

/**
 * Opens the database for a command. `unmigrated` is for `init`, `migrate` and `restore`, which migrate the database
 * themselves, and for `backup`, which is also useful before a migration. These commands check the environment
 * themselves.
 */
export async function openDatabase(environment: Environment, options: DatabaseOptions = {}): Promise<Database> {
  const { databaseUrl, databaseReadUrl } = environment;
  if (options.readOnly && databaseReadUrl !== undefined) return openReplica(environment, databaseReadUrl);
  if (databaseUrl === undefined && databaseReadUrl !== undefined) {
    const reason = 'is not set, and the replica of DATABASE_URL_READ cannot be written to';
    throw refuse('environment_invalid', { variable: 'DATABASE_URL', reason });
  }
  const server = await reachServer(environment, options);
  const { clockIsSet } = environment;
  const asApp = { role: 'app', patience: options.patience, clockIsSet, look: options.look } as const;
  const app = openPool(server.connection, options.poolSize ?? 4, asApp);
  const owner = openPool(server.connection, 1, { role: 'owner', clockIsSet });
  const trips = openPool({ ...server.connection, pipeline: true }, options.poolSize ?? 4, asApp);
  const fitness = fitnessOf(app, server.name, environment);
  const close = async () => {
    await endPools([app, owner, trips]);
    await server.release();
  };
  try {
    await checkServer(owner, server.name);
    await refusePooled(server.connection, owner, server.name);
    // A standby is refused even for reading: it may be behind, and only replica.ts waits until it has caught up.
    await checkUnmigrated(owner, server.name);
    if (!options.unmigrated) {
      await refuseUnmigrated(owner);
      await checkEnvironment(owner, environment);
    }
  } catch (error) {
    await close();
    throw error;
  }
  const turn = atMost(MOST_ASIDE);
  const aside: Aside = (work) =>
    turn(async () => {
      const opening = 'SELECT open_archive(); SET idle_in_transaction_session_timeout TO 0';
      const own = openPool(server.connection, 1, { ...asApp, patience: undefined, opening });
      try {
        return await work(workOf({ app: own, trips, beside: app }, fitness));
      } finally {
        await own.end();
      }
    });
  return {
    ...wherever(workOf({ app, trips }, fitness), aside, environment),
    aside,
    asOwner: (work, given) => inTransaction(owner, work, given),
    lockPatience: (options.patience?.lockSeconds ?? 0) * 1000,
    connection: server.connection,
    pools: () => ({ transactions: stateOf(app), acceptances: stateOf(trips), owner: stateOf(owner) }),
    migrations: {
      run: async (settle = async () => {}) => {
        await checkUnmigrated(owner, server.name, environment);
        await pendingMigrations(owner);
        const done = await migrate(owner, server.connection, async (tx, migrated) => {
          const { name, logHost = 'reckoner.invalid' } = environment;
          const insert =
            'INSERT INTO installation (environment, log_host) VALUES (:name, :logHost) ON CONFLICT DO NOTHING';
          await query(tx, insert, { name, logHost });
          await checkEnvironment(tx.client, environment);
          await settle(tx, migrated);
        });
        await checkEnvironment(owner, environment);
        return done;
      },
    },
    checkWritable: fitness.check,
    look: lookingThrough(app, options.look),
    close,
    abandon: () => server.release(),
  };
}

type Work = Pick<Database, 'transaction' | 'reading' | 'readingBeside' | 'inOneTrip' | 'preview'>;

/** Transactions that write, and previews, are refused if the database is not fit for writing. */
function workOf({ app, trips, beside }: { app: pg.Pool; trips: pg.Pool; beside?: pg.Pool }, { assure }: Fitness): Work {
  return {
    transaction: async (work) => {
      await assure();
      return inTransaction(app, work);
    },
    reading: (work) => inTransaction(app, work, { readOnly: true }),
    readingBeside: (work) => readBeside(app, work, beside),
    inOneTrip: async (work, given) => {
      if (!given?.readOnly) await assure();
      return inOneTrip(trips, work, given);
    },
    preview: async (work) => {
      await assure();
      return previewed(app, work);
    },
  };
}

type Aside = <Result>(work: (own: Work) => Promise<Result>) => Promise<Result>;

/** The most connections of their own at once. Others wait. */
const MOST_ASIDE = 3;

/** Work that also gets what is elsewhere (elsewhere.ts). */
function wherever(work: Work, aside: Aside, environment: Environment): Work {
  const prepared = async <Result>(tx: Transaction, preparations: readonly Prepare[], then: () => Promise<Result>) => {
    for (const prepare of preparations) await prepare(tx, environment);
    return then();
  };
  const repeated =
    (kind: 'reading' | 'transaction' | 'preview'): Work['reading'] =>
    (given) =>
      withElsewhere(work, aside, (on, before) => on[kind]((tx) => prepared(tx, before, () => given(tx))));
  return {
    ...work,
    reading: repeated('reading'),
    readingBeside: (given) =>
      withElsewhere(work, aside, (on, before) =>
        on.readingBeside((tx, beside) => prepared(beside ?? tx, before, () => given(tx, beside))),
      ),
    transaction: repeated('transaction'),
    preview: repeated('preview'),
  };
}

/** A look that begins after the call. Callers that wait at the same time share one look. */
function lookingThrough(app: pg.Pool, look: Look | undefined) {
  if (look === undefined) return async () => {};
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= running
      .catch(() => {})
      .then(async () => {
        next = undefined;
        const client = await app.connect();
        await look(client).finally(() => client.release());
      });
    running = next;
    return next;
  };
}

async function endPools(pools: readonly pg.Pool[]) {
  await Promise.all(pools.map((pool) => (pool.ending ? undefined : pool.end())));
}

/** Opens a replica. Only the functions for reading work on a replica. */
async function openReplica(environment: Environment, url: string): Promise<Database> {
  const server = serverAt('DATABASE_URL_READ', url);
  const app = openPool(server.connection, 4, { role: 'app' });
  const close = () => endPools([app]);
  try {
    await checkServer(app, server.name);
    const { databaseUrl } = environment;
    await awaitReplica(app, server.name, databaseUrl === undefined ? undefined : serverAt('DATABASE_URL', databaseUrl));
    await refuseUnmigrated(app);
    await checkEnvironment(app, environment);
  } catch (error) {
    await close();
    throw error;
  }
  const never = async () => {
    throw new Error('a command that only reads tried to write');
  };
  // A replica allows no temporary tables.
  const aside: Aside = async (work) => {
    const primary = await openDatabase(environment);
    return primary.aside(work).finally(() => primary.close());
  };
  return {
    ...wherever(
      {
        reading: (work) => inTransaction(app, work, { readOnly: true }),
        readingBeside: (work) => readBeside(app, work),
        ...{ transaction: never, inOneTrip: never, preview: never },
      },
      aside,
      environment,
    ),
    aside,
    asOwner: never,
    lockPatience: 0,
    connection: server.connection,
    pools: () => ({ transactions: stateOf(app) }),
    migrations: { run: never },
    checkWritable: never,
    look: async () => {},
    close,
    abandon: async () => {},
  };
}

/** Carries a result out of a transaction. This throw rolls the transaction back. */
class Undone<Result> extends Error {
  readonly result: Result;
  constructor(result: Result) {
    super('a transaction is undone');
    this.result = result;
  }
}

/** Runs a transaction in which `work` calls `undo`, and returns what `undo` was given. */
export async function rolledBack<Result>(work: (undo: (result: Result) => never) => Promise<unknown>) {
  try {
    await work((result) => {
      throw new Undone(result);
    });
  } catch (error) {
    if (error instanceof Undone) return error.result as Result;
    throw error;
  }
  throw new Error('the transaction was not undone');
}

const previewed = <Result>(app: pg.Pool, work: (tx: Transaction) => Promise<Result>): Promise<Result> =>
  rolledBack((undo) =>
    inTransaction(app, async (tx) => {
      // Lets previews work while the ledger is paused.
      await execute(tx, 'SELECT end_open_pauses()');
      undo(await work(tx));
    }),
  );

interface Server extends ServerAt {
  readonly release: () => Promise<void>;
}

function serverAt(variable: string, url: string): ServerAt {
  const { host, pathname } = URL.canParse(url) ? new URL(url) : { host: '', pathname: '' };
  return {
    name: `of ${variable} (${host || 'local socket'}${pathname})`,
    connection: { connectionString: connectionUrl(url), ...SESSION },
  };
}

async function reachServer(environment: Environment, { scratch }: DatabaseOptions): Promise<Server> {
  if (environment.databaseUrl !== undefined) {
    return { ...serverAt('DATABASE_URL', environment.databaseUrl), release: async () => {} };
  }
  if (!scratch) refuseAccidentalLedger(environment);
  const directory = join(environment.home, 'postgres');
  const embedded = await acquireEmbeddedServer(directory);
  return {
    name: `in ${directory}`,
    connection: { ...embedded.connection, ...SESSION },
    release: () => embedded.release(),
  };
}

/**
 * Refuses to start the embedded server in production by accident: if DATABASE_URL is missing, for example in cron, a
 * second, empty ledger would be created.
 */
function refuseAccidentalLedger(environment: Environment) {
  if (environment.name === 'sandbox' || readSettings(environment).database === 'embedded') return;
  const reason =
    'is not set, and this is production: set it, or say "database": "embedded" in settings.json if the ledger is in the ' +
    `server under ${environment.home}`;
  throw refuse('environment_invalid', { variable: 'DATABASE_URL', reason });
}

const stateOf = ({ totalCount, idleCount, waitingCount }: pg.Pool): PoolState => ({
  used: totalCount - idleCount,
  free: idleCount,
  waiting: waitingCount,
});

async function checkServer(owner: Queryable, name: string) {
  let version: { number: number; text: string };
  try {
    const { rows } = await owner.query(
      `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS text`,
    );
    version = rows[0] as { number: number; text: string };
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw refuse('database_unreachable', { database: name, reason: unreachableBecause(error) }, error);
  }
  refuseOldServer(version);
}

function unreachableBecause(error: unknown) {
  const reason = reasonOf(error);
  if (!/client password must be a (non-empty )?string/.test(reason)) return reason;
  return 'the server asks for a password, and the URL, PGPASSWORD and the password file (~/.pgpass, mode 0600) have none';
}

export function refuseOldServer(version: { number: number; text: string }) {
  if (version.number < OLDEST_SERVER) throw refuse('database_too_old', { version: version.text });
}

export async function checkEnvironment(owner: Queryable, environment: Pick<Environment, 'name'>) {
  const { rows } = await owner.query('SELECT environment FROM installation');
  const belongsTo = (rows[0] as { environment: string } | undefined)?.environment;
  if (belongsTo === undefined) throw refuse('database_not_migrated', { pending: ['installation'] });
  if (belongsTo !== environment.name) {
    throw refuse('database_environment', { database: belongsTo, program: environment.name });
  }
}
