/**
 * Transactions as values: a function that needs one takes it as its first argument. Rows come back with their times,
 * dates and numbers as texts, exactly as PostgreSQL writes them.
 */
import knexFactory, { type Knex } from 'knex';
import pg from 'pg';
import { REFUSAL_OF_CONSTRAINT } from '../errors/constraints.ts';
import { Refusal, refuse } from '../errors/refusals.ts';

/** A transaction to run statements in: knex's, or one that is sent in one round trip (pipeline.ts). */
export interface Transaction {
  readonly ask: (statement: pg.QueryConfig) => Promise<pg.QueryResult>;
  /** Its connection, for COPY and for queries that also run on pools. A transaction in one round trip has none. */
  readonly client: pg.Client;
  /** For migrations. A transaction in one round trip has none. */
  readonly knex: Knex.Transaction;
}

/** The values of a statement's named parameters. */
export type Bindings = Readonly<Record<string, unknown>>;

/**
 * A statement that each connection plans once, under a unique name. For frequent queries: planning the query for quotes
 * took 1.6 ms each time, while reading a batch of them takes 0.4 ms.
 */
export interface PreparedQuery {
  readonly name: string;
  readonly sql: string;
}

export const prepared = (name: string, sql: string): PreparedQuery => ({ name, sql });

/** All rows of one statement. Parameters are named, with a cast where PostgreSQL cannot infer the type: `:ids::bigint[]`. */
export async function query<Row>(
  tx: Transaction,
  sql: string | PreparedQuery,
  bindings: Bindings = {},
): Promise<Row[]> {
  return (await ask(tx, sql, bindings)).rows as Row[];
}

/** The one row of a statement that always gives exactly one. */
export async function queryOne<Row>(
  tx: Transaction,
  sql: string | PreparedQuery,
  bindings: Bindings = {},
): Promise<Row> {
  const rows = await query<Row>(tx, sql, bindings);
  if (rows.length !== 1) throw new Error(`expected one row but got ${rows.length}: ${nameOf(sql)}`);
  return rows[0] as Row;
}

/** Runs a statement for its effect and returns how many rows it affected. */
export async function execute(tx: Transaction, sql: string | PreparedQuery, bindings: Bindings = {}): Promise<number> {
  return (await ask(tx, sql, bindings)).rowCount ?? 0;
}

// Not async: a transaction in one round trip must get all statements before anything is awaited.
function ask(tx: Transaction, query: string | PreparedQuery, bindings: Bindings): Promise<pg.QueryResult> {
  const { name, sql } = typeof query === 'string' ? { name: undefined, sql: query } : query;
  const { text, names } = compiled(sql);
  const values = names.map((each) => {
    if (bindings[each] === undefined) throw new Error(`no value for :${each} in ${nameOf(query)}`);
    return bindings[each];
  });
  return tx.ask({ ...(name !== undefined && { name }), text, values });
}

const nameOf = (query: string | PreparedQuery): string =>
  (typeof query === 'string' ? query.trim().split('\n')[0] : query.name) ?? '';

interface CompiledQuery {
  readonly text: string;
  /** The parameter behind $1, $2, and so on. */
  readonly names: readonly string[];
}

const compiledQueries = new Map<string, CompiledQuery>();

/** Matches text in which a colon starts no parameter (quotes, comments, casts), then a parameter with its cast. */
const PARAMETERS =
  /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\$\$[\s\S]*?\$\$|::|:([A-Za-z_]\w*)(::[a-z]+(?: (?:varying|precision|with time zone))?(?:\[\])?)?/g;

/**
 * A statement with pg's numbered parameters. The same name with the same cast is one parameter. Without a cast each
 * occurrence is a separate one, because PostgreSQL may infer a different type for each.
 */
export function compiled(sql: string): CompiledQuery {
  const known = compiledQueries.get(sql);
  if (known !== undefined) return known;
  const names: string[] = [];
  const numbers = new Map<string, number>();
  const text = sql.replace(PARAMETERS, (match: string, name?: string, cast?: string) => {
    if (name === undefined) return match;
    const number = (cast && numbers.get(match)) || names.push(name);
    numbers.set(match, number);
    return `$${number}${cast ?? ''}`;
  });
  const made = { text, names };
  compiledQueries.set(sql, made);
  return made;
}

/** Lets the rest of a transaction hash and sort up to a million rows in memory. More rows are spilled to disk. */
export async function raiseWorkMemory(tx: Transaction): Promise<void> {
  await execute(tx, `SET LOCAL work_mem = '96MB'`);
}

/** Sets a parameter of the database until the transaction ends. */
export async function setLocally(tx: Transaction, name: string, value: string): Promise<void> {
  await execute(tx, `SELECT set_config(:name, :value, true)`, { name, value });
}

/** Begins and ends transactions and runs migrations on connections of our pools. It has none of its own. */
const KNEX = knexFactory({
  client: 'pg',
  // We get its errors as exceptions. Printed on stdout, they would break --json.
  log: { warn() {}, error() {}, deprecate() {}, debug() {} },
});

const within = (client: pg.Client, knex: Knex.Transaction): Transaction => ({
  client,
  knex,
  async ask(statement) {
    // Its connection may be in another transaction by now.
    if (knex.isCompleted()) throw new Error(`${statement.text} was sent after the end of its transaction`);
    return client.query(statement);
  },
});

/** Gives a connection back to its pool, which drops one that is lost or did not end its transaction. */
const release = (client: pg.PoolClient): void => client.release(client.getTransactionStatus() !== 'I');

/** Errors worth a retry: the server rolled the whole transaction back, and the next attempt may succeed. */
const RETRIED_SQLSTATES: ReadonlySet<string> = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
]);

const ATTEMPTS = 5;

/** Does the work in one transaction, retried from its start for RETRIED_SQLSTATES, at most five times. */
export function inTransaction<Result>(
  pool: pg.Pool,
  work: (tx: Transaction) => Promise<Result>,
  options: { readOnly?: boolean } = {},
): Promise<Result> {
  return retried(async () => {
    const client = await pool.connect();
    try {
      const kind = options.readOnly ? READING : WRITING;
      return await KNEX.transaction((knex) => work(within(client, knex)), { ...kind, connection: client });
    } finally {
      release(client);
    }
  });
}

const READING = { readOnly: true, isolationLevel: 'repeatable read' } as const;
// Writers read again after waiting for a lock, so each statement needs a new snapshot.
const WRITING = { isolationLevel: 'read committed' } as const;

/** Reads in one transaction, with a second one of the same snapshot beside it if the pool has a connection for it. */
export function readBeside<Result>(
  pool: pg.Pool,
  work: (tx: Transaction, beside: Transaction | undefined) => Promise<Result>,
): Promise<Result> {
  const read = async (tx: Transaction) => {
    const client = pool.options.max < 2 ? undefined : await pool.connect().catch(() => undefined);
    let beside: Transaction | undefined;
    try {
      beside = client && (await beginBeside(client, tx));
      // The one that ends first is idle until the other ends.
      const patient = 'SET LOCAL idle_in_transaction_session_timeout TO 0';
      await Promise.all([execute(tx, patient), beside && execute(beside, patient)]);
      return await work(tx, beside);
    } finally {
      await beside?.knex.rollback();
      if (client) release(client);
    }
  };
  return inTransaction(pool, read, { readOnly: true });
}

/** Undefined if the connection is to a different server, for example if several replicas share one address. */
async function beginBeside(client: pg.Client, tx: Transaction): Promise<Transaction | undefined> {
  const { snapshot } = await queryOne<{ snapshot: string }>(tx, 'SELECT pg_export_snapshot() AS snapshot');
  const beside = within(client, await KNEX.transaction({ ...READING, connection: client }));
  try {
    await execute(beside, `SET TRANSACTION SNAPSHOT '${snapshot}'`);
    return beside;
  } catch {
    await beside.knex.rollback();
    return undefined;
  }
}

/** Retries a whole transaction for RETRIED_SQLSTATES, at most five times. */
export async function retried<Result>(transaction: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      if (attempt === ATTEMPTS || !RETRIED_SQLSTATES.has(sqlstate(error) ?? '')) throw error;
      await new Promise((resolve) => setTimeout(resolve, attempt * 20 + Math.random() * 50));
    }
  }
}

/** The SQLSTATE of a PostgreSQL error, undefined for anything else. */
export function sqlstate(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** The constraint that a statement would have broken, undefined for any other error. */
export function constraintOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.constraint : undefined;
}

/**
 * Whether an error was caused by a statement's data or a conflict, rather than by the server or the connection. If so,
 * the items of a failed batch can be retried one by one.
 */
export function isFaultOfOne(error: unknown): boolean {
  // Connections, resources, operators, the system and the server's own bugs (classes 08, 53, 57, 58, XX).
  return error instanceof pg.DatabaseError && !/^(08|53|57|58|XX)/.test(error.code ?? 'XX');
}

/** lock_not_available: another transaction held a lock for longer than lock_timeout. */
export const LOCK_TIMEOUT = '55P03';

const OID = { int8: 20, date: 1082, timestamptz: 1184 } as const;

/** How values are read: a date stays `YYYY-MM-DD`, a time keeps its microseconds, a NUMERIC its digits. */
export const valueTypes: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    switch (oid) {
      case OID.int8:
        return (text: string) => {
          const number = Number(text);
          if (!Number.isSafeInteger(number)) throw new RangeError(`${text} is too large for a count`);
          return number;
        };
      case OID.date:
        return (text: string) => text;
      case OID.timestamptz:
        // '2026-11-01 06:00:00.25+00' → '2026-11-01T06:00:00.25Z'; connections work in UTC.
        return (text: string) => text.replace(' ', 'T').replace(/\+00$/, 'Z');
      default:
        return pg.types.getTypeParser(oid, format as 'text');
    }
  },
} as pg.CustomTypesConfig;

/** What the operator can do about failures of the server that the statement did not cause. */
const REMEDIES: ReadonlyArray<readonly [sqlstates: RegExp, remedy: string]> = [
  [/^53100$/, "Free space on the database's disk and run the command again."],
  [/^53/, 'Give the server more memory or connections, or run fewer commands at once.'],
  [/^25006$/, 'Point DATABASE_URL at the primary server, which takes writes.'],
  [/^57P|^08/, 'Check that the server runs, and run the command again.'],
];

const LOST =
  /Connection terminated|connection error|connection was lost|not queryable|Query read timeout|EPIPE|ECONNRESET/;

/**
 * A database error as a refusal: a violated constraint by errors/constraints.ts, a failure of the server or of the
 * connection as database_failed. Undefined for a bug.
 */
export function databaseFailure(error: unknown): Refusal | undefined {
  if (!(error instanceof Error) || error instanceof Refusal) return undefined;
  const refused = REFUSAL_OF_CONSTRAINT.get(constraintOf(error) ?? '');
  if (refused !== undefined) return refused(error);
  const state = sqlstate(error);
  if (state === '42501') return refuse('database_privileges', { reason: error.message }, error);
  const known = REMEDIES.find(([states]) => state !== undefined && states.test(state));
  if (known) return refuse('database_failed', { reason: error.message, remedy: known[1] }, error);
  if (LOST.test(error.message)) {
    const remedy = 'Check that the server runs, and run the command again.';
    return refuse('database_failed', { reason: 'the connection to it was lost', remedy }, error);
  }
  return undefined;
}
