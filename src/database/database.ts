/**
 * The database: DATABASE_URL, or the embedded server under RECKONER_HOME; for what only reads, the replica that
 * DATABASE_URL_READ names (replica.ts). Opening checks its version, its migrations and that it belongs to this
 * environment. Refusals: database_unreachable, database_too_old, database_not_migrated, database_newer,
 * database_environment, embedded_server, environment_invalid (DATABASE_URL), replica_unusable.
 */
import { join } from 'node:path';
import knexFactory, { type Knex } from 'knex';
import type pg from 'pg';
import type { Environment } from '../config/environment.ts';
import { readSettings } from '../config/settings.ts';
import { Refusal, reasonOf, refuse } from '../errors/refusals.ts';
import { acquireEmbeddedServer } from './embedded.ts';
import { migrate, pendingMigrations } from './migrate.ts';
import { inOneTrip } from './pipeline.ts';
import { awaitReplica } from './replica.ts';
import { inTransaction, type Transaction, valueTypes } from './transaction.ts';

export interface Database {
  /** Does work in a transaction of the app's role, retried where the server undid it. */
  readonly transaction: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
  /** The same for reading: one consistent picture, and nothing can be written by mistake. */
  readonly reading: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
  /** The same in one round trip, for work whose statements do not need each other's answers; see pipeline.ts. */
  readonly inOneTrip: <Result>(
    work: (tx: Transaction) => Promise<Result>,
    options?: { readOnly?: boolean },
  ) => Promise<Result>;
  /** Does the work for its result and undoes everything that it wrote. */
  readonly preview: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
  /** A transaction of the owner, for what the app's role may not do: backup and restore. */
  readonly asOwner: <Result>(
    work: (tx: Transaction) => Promise<Result>,
    options?: { readOnly?: boolean },
  ) => Promise<Result>;
  /** How long its transactions wait for a lock, in milliseconds; 0 is for ever. */
  readonly lockPatience: number;
  /** For what needs connections of its own, as the owner: the queue and advisory locks. */
  readonly connection: pg.ClientConfig;
  readonly migrations: { readonly run: () => Promise<string[]> };
  readonly close: () => Promise<void>;
  /** For a process that must stop now: lets go of the server; transactions under way are undone by it. */
  readonly abandon: () => Promise<void>;
}

const OLDEST_SERVER = 160000;

export interface DatabaseOptions {
  readonly unmigrated?: boolean;
  /** Nothing will be written: where there is a replica, it is read. */
  readonly readOnly?: boolean;
  /** Connections of the app's role; 4 unless said otherwise. */
  readonly poolSize?: number;
  /** For callers who rather hear that it is busy than wait: how long a lock, a statement and a connection may take. */
  readonly patience?: { readonly lockSeconds: number; readonly statementSeconds: number };
}

/**
 * Opens the database for a command. `unmigrated` is for `init`, `migrate` and `restore`, which bring it up to date, and
 * for `backup`, which is wanted before that; they check by themselves whose it is.
 */
export async function openDatabase(environment: Environment, options: DatabaseOptions = {}): Promise<Database> {
  const { databaseUrl, databaseReadUrl } = environment;
  if (options.readOnly && databaseReadUrl !== undefined) return openReplica(environment, databaseReadUrl);
  if (databaseUrl === undefined && databaseReadUrl !== undefined) {
    const reason = 'is not set, and the replica of DATABASE_URL_READ cannot be written to';
    throw refuse('environment_invalid', { variable: 'DATABASE_URL', reason });
  }
  const server = await reachServer(environment);
  const app = pool(server.connection, options.poolSize ?? 4, 'app', options.patience);
  const owner = pool(server.connection, 1, 'owner');
  const pipelined: pg.ClientConfig = { ...server.connection, pipeline: true };
  const trips = pool(pipelined, options.poolSize ?? 4, 'app', options.patience);
  const close = async () => {
    await Promise.all([app.destroy(), owner.destroy(), trips.destroy()]);
    await server.release();
  };
  try {
    await checkServer(owner, server.name);
    if (!options.unmigrated) {
      const pending = await pendingMigrations(owner);
      if (pending.length > 0) throw refuse('database_not_migrated', { pending });
      await checkEnvironment(owner, environment);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    transaction: (work) => inTransaction(app, work),
    reading: (work) => inTransaction(app, work, { readOnly: true }),
    inOneTrip: (work, given) => inOneTrip(trips, work, given),
    preview: (work) => previewed(app, work),
    asOwner: (work, given) => inTransaction(owner, work, given),
    lockPatience: (options.patience?.lockSeconds ?? 0) * 1000,
    connection: server.connection,
    migrations: {
      run: async () => {
        await pendingMigrations(owner);
        const done = await migrate(owner, server.connection);
        await owner.raw(`INSERT INTO installation (environment) VALUES (?) ON CONFLICT DO NOTHING`, [environment.name]);
        await checkEnvironment(owner, environment);
        return done;
      },
    },
    close,
    abandon: () => server.release(),
  };
}

/** A database of which nothing but `reading` works. */
async function openReplica(environment: Environment, url: string): Promise<Database> {
  const server = serverAt('DATABASE_URL_READ', url);
  const app = pool(server.connection, 4, 'app');
  const close = () => app.destroy();
  try {
    await checkServer(app, server.name);
    const { databaseUrl } = environment;
    await awaitReplica(app, server.name, databaseUrl === undefined ? undefined : serverAt('DATABASE_URL', databaseUrl));
    const pending = await pendingMigrations(app);
    if (pending.length > 0) throw refuse('database_not_migrated', { pending });
    await checkEnvironment(app, environment);
  } catch (error) {
    await close();
    throw error;
  }
  const never = async (): Promise<never> => {
    throw new Error('a command that only reads tried to write');
  };
  return {
    reading: (work) => inTransaction(app, work, { readOnly: true }),
    transaction: never,
    inOneTrip: never,
    preview: never,
    asOwner: never,
    lockPatience: 0,
    connection: server.connection,
    migrations: { run: never },
    close,
    abandon: async () => {},
  };
}

/** Carries a preview's result out of the transaction that its throwing undoes. */
class Undone<Result> extends Error {
  readonly result: Result;
  constructor(result: Result) {
    super('a preview is undone');
    this.result = result;
  }
}

async function previewed<Result>(app: Knex, work: (tx: Transaction) => Promise<Result>): Promise<Result> {
  try {
    return await inTransaction(app, async (tx) => {
      throw new Undone(await work(tx));
    });
  } catch (error) {
    if (error instanceof Undone) return error.result as Result;
    throw error;
  }
}

export interface ServerAt {
  /** How messages call it; never with a password. */
  readonly name: string;
  readonly connection: pg.ClientConfig;
}

interface Server extends ServerAt {
  readonly release: () => Promise<void>;
}

function serverAt(variable: string, url: string): ServerAt {
  const { host, pathname } = URL.canParse(url) ? new URL(url) : { host: '', pathname: '' };
  return {
    name: `of ${variable} (${host || 'local socket'}${pathname})`,
    connection: { connectionString: url, ...SESSION },
  };
}

async function reachServer(environment: Environment): Promise<Server> {
  if (environment.databaseUrl !== undefined) {
    return { ...serverAt('DATABASE_URL', environment.databaseUrl), release: async () => {} };
  }
  refuseAccidentalLedger(environment);
  const directory = join(environment.home, 'postgres');
  const embedded = await acquireEmbeddedServer(directory);
  return {
    name: `in ${directory}`,
    connection: { ...embedded.connection, ...SESSION },
    release: () => embedded.release(),
  };
}

/** A variable that cron lost must not start a second, empty ledger. */
function refuseAccidentalLedger(environment: Environment): void {
  if (environment.name === 'sandbox' || readSettings(environment).database === 'embedded') return;
  const reason =
    'is not set, and this is production: set it, or say "database": "embedded" in settings.json if the ledger is in the ' +
    `server under ${environment.home}`;
  throw refuse('environment_invalid', { variable: 'DATABASE_URL', reason });
}

const SESSION: pg.ClientConfig = {
  types: valueTypes,
  application_name: 'reckoner',
  connectionTimeoutMillis: 15_000,
  keepAlive: true,
};

// One round trip: times are written in UTC, dates as ISO, and the app works as the role that may not rewrite history.
const SESSION_SETUP = `SET TIME ZONE 'UTC'; SET datestyle TO ISO; SET client_min_messages TO warning`;
const TAKE_APP_ROLE = `
  SELECT set_config('role', 'reckoner_app', false)
  FROM pg_roles WHERE rolname = 'reckoner_app' AND pg_has_role(current_user, oid, 'MEMBER')`;

function sessionSetup(role: 'app' | 'owner', patience: DatabaseOptions['patience']): string {
  const setup = patience
    ? `${SESSION_SETUP}; SET lock_timeout TO '${patience.lockSeconds}s'; SET statement_timeout TO '${patience.statementSeconds}s'`
    : SESSION_SETUP;
  return role === 'app' ? `${setup}; ${TAKE_APP_ROLE}` : setup;
}

function pool(
  connection: pg.ClientConfig,
  max: number,
  role: 'app' | 'owner',
  patience?: DatabaseOptions['patience'],
): Knex {
  const setup = sessionSetup(role, patience);
  return knexFactory({
    client: 'pg',
    connection: connection as Knex.PgConnectionConfig,
    pool: {
      min: 0,
      max,
      afterCreate(client: pg.Client, done: (error: Error | null, client: pg.Client) => void) {
        // A connection that the server ends while idle is dropped from the pool; the next query opens another.
        client.on('error', () => {});
        client.query(setup, (error) => done(error, client));
      },
    },
    acquireConnectionTimeout: patience ? patience.statementSeconds * 1000 : 60_000,
    // Its errors reach us as errors; on stdout they would break --json.
    log: { warn() {}, error() {}, deprecate() {}, debug() {} },
  });
}

async function checkServer(owner: Knex, name: string): Promise<void> {
  let version: { number: number; text: string };
  try {
    const { rows } = (await owner.raw(
      `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS text`,
    )) as { rows: { number: number; text: string }[] };
    version = rows[0] as { number: number; text: string };
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw refuse('database_unreachable', { database: name, reason: reasonOf(error) }, error);
  }
  refuseOldServer(version);
}

export function refuseOldServer(version: { number: number; text: string }): void {
  if (version.number < OLDEST_SERVER) throw refuse('database_too_old', { version: version.text });
}

/** A database belongs to its environment for good. */
export async function checkEnvironment(owner: Knex, environment: Pick<Environment, 'name'>): Promise<void> {
  const { rows } = (await owner.raw('SELECT environment FROM installation')) as { rows: { environment: string }[] };
  const belongsTo = rows[0]?.environment;
  if (belongsTo === undefined) throw refuse('database_not_migrated', { pending: ['installation'] });
  if (belongsTo !== environment.name) {
    throw refuse('database_environment', { database: belongsTo, program: environment.name });
  }
}
