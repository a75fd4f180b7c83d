/**
 * Transactions as values: a function that needs a transaction takes it as its first argument. Rows contain times, dates
 * and numeric values as texts, exactly as PostgreSQL writes them.
 */
import knexFactory, { Knex } from 'knex';
import pg from 'pg';
import { REFUSAL_OF_CONSTRAINT } from '#errors/constraints';
import { Refusal, refuse } from '#errors/refusals';

/** A transaction of knex, or a transaction in one round trip (pipeline.ts). */
export type Transaction = Readonly<{
  ask: (statement: pg.QueryConfig) => Promise<pg.QueryResult>;
  /** The connection, for COPY and for queries that also run on pools. Throws in a transaction in one round trip. */
  client: pg.Client;
  /** The knex transaction, for migrations. Throws in a transaction in one round trip. */
  knex: Knex.Transaction;
}>;

export type Bindings = Readonly<Record<string, unknown>>;

/**
 * A statement with a unique name, which each connection plans once. Used for frequent queries: planning the query for
 * quotes took 1.6 ms each time, while reading a batch of quotes takes 0.4 ms.
 */
export interface PreparedQuery {
  readonly name: string;
  readonly sql: string;
}

export const prepared = (name: string, sql: string): PreparedQuery => ({ name, sql });

/**
 * Returns all rows of a statement. Parameters are named, with a cast where PostgreSQL cannot infer the type:
 * `:ids::bigint[]`. An object or array for a parameter with the cast `::json` or `::jsonb` is sent as JSON.
 */
export async function query<Row>(tx: Transaction, sql: string | PreparedQuery, bindings: Bindings = {}) {
  return (await ask(tx, sql, bindings)).rows as Row[];
}

/** Returns the only row of a statement. Throws if there is not exactly one. */
export async function queryOne<Row>(tx: Transaction, sql: string | PreparedQuery, bindings: Bindings = {}) {
  const rows = await query<Row>(tx, sql, bindings);
  if (rows.length !== 1) throw new Error(`expected one row but got ${rows.length}: ${nameOf(sql)}`);
  return rows[0] as Row;
}

/** Runs a statement and returns how many rows it affected. */
export async function execute(tx: Transaction, sql: string | PreparedQuery, bindings: Bindings = {}) {
  return (await ask(tx, sql, bindings)).rowCount ?? 0;
}

type Asking<Given, Result> = unknown extends Given
  ? (tx: Transaction) => Promise<Result>
  : (tx: Transaction, given: Given) => Promise<Result>;

/** A function that returns all rows of this statement, like `query`. It is given the values of the parameters. */
export const querying = <Row, Given = unknown>(sql: string | PreparedQuery) =>
  ((tx: Transaction, given?: Bindings) => query<Row>(tx, sql, given)) as Asking<Given, Row[]>;

/** The same for the only row, like `queryOne`. */
export const queryingOne = <Row, Given = unknown>(sql: string | PreparedQuery) =>
  ((tx: Transaction, given?: Bindings) => queryOne<Row>(tx, sql, given)) as Asking<Given, Row>;

/** The same for the first row, if there is one. */
export const queryingFirst = <Row, Given = unknown>(sql: string | PreparedQuery) =>
  (async (tx: Transaction, given?: Bindings) => (await query<Row>(tx, sql, given))[0]) as Asking<
    Given,
    Row | undefined
  >;

const only = <Value>(row: object): Value => Object.values(row)[0];

/** The same for the only column of all rows. */
export const queryingColumn = <Value, Given = unknown>(sql: string | PreparedQuery) =>
  (async (tx: Transaction, given?: Bindings) => (await query<object>(tx, sql, given)).map(only)) as Asking<
    Given,
    Value[]
  >;

/** The same for the only column of the only row. */
export const queryingValue = <Value, Given = unknown>(sql: string | PreparedQuery) =>
  (async (tx: Transaction, given?: Bindings) => only(await queryOne<object>(tx, sql, given))) as Asking<Given, Value>;

/** The same for the number of affected rows, like `execute`. */
export const executing = <Given = unknown>(sql: string | PreparedQuery) =>
  ((tx: Transaction, given?: Bindings) => execute(tx, sql, given)) as Asking<Given, number>;

/** The columns of a row in a statement: `columnsOf('p', 'name, currency')` is `p.name, p.currency`. */
export const columnsOf = (row: string, columns: string) =>
  columns
    .split(/,\s+/)
    .map((column) => `${row}.${column}`)
    .join(', ');

/** The statement that inserts a row, whose parameters have the names of the columns. */
export const insertInto = (table: string, columns: string) => {
  const values = columns.split(/,\s+/).map((column) => `:${column}`);
  return `INSERT INTO ${table} (${columns}) VALUES (${values.join(', ')})`;
};

// This function is not async, because a transaction in one round trip must get all statements before anything is
// awaited.
function ask(tx: Transaction, query: string | PreparedQuery, bindings: Bindings) {
  const { name, sql } = typeof query === 'string' ? { name: undefined, sql: query } : query;
  const { text, names, json } = compiled(sql);
  const values = names.map((each, index) => {
    const value = bindings[each];
    if (value === undefined) throw new Error(`no value for :${each} in ${nameOf(query)}`);
    return json.has(index) && typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
  });
  return tx.ask({ ...(name !== undefined && { name }), text, values });
}

const nameOf = (query: string | PreparedQuery) =>
  (typeof query === 'string' ? query.trim().split('\n')[0] : query.name) ?? '';

type CompiledQuery = Readonly<{
  text: string;
  /** The names of the parameters $1, $2 and so on. */
  names: readonly string[];
  /** The places in \`names\` of those with a cast to json or jsonb. */
  json: ReadonlySet<number>;
}>;

const compiledQueries = new Map<string, CompiledQuery>();

/** Matches text in which a colon does not start a parameter (quotes, comments, casts), or a parameter with its cast. */
const PARAMETERS =
  /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\$\$[\s\S]*?\$\$|::|:([A-Za-z_]\w*)(::[a-z]+(?: (?:varying|precision|with time zone))?(?:\[\])?)?/g;

/**
 * Replaces named parameters by pg's numbered parameters. The same name with the same cast is one parameter. Without a
 * cast, each occurrence is a separate parameter, because PostgreSQL may infer a different type for each.
 */
export function compiled(sql: string) {
  const known = compiledQueries.get(sql);
  if (known !== undefined) return known;
  const names: string[] = [];
  const json = new Set<number>();
  const numbers = new Map<string, number>();
  const text = sql.replace(PARAMETERS, (match: string, name?: string, cast?: string) => {
    if (name === undefined) return match;
    const number = (cast && numbers.get(match)) || names.push(name);
    numbers.set(match, number);
    if (/^::jsonb?$/.test(cast ?? '')) json.add(number - 1);
    return `$${number}${cast ?? ''}`;
  });
  const made = { text, names, json };
  compiledQueries.set(sql, made);
  return made;
}

/**
 * Lets the rest of a transaction hash and sort up to a million rows in memory. If there are more rows, PostgreSQL
 * writes them to disk.
 */
export async function raiseWorkMemory(tx: Transaction) {
  await execute(tx, `SET LOCAL work_mem = '96MB'`);
}

/** Lets a transaction be idle for as long as it likes, while other work goes on. */
export const patiently = (tx: Transaction) => execute(tx, 'SET LOCAL idle_in_transaction_session_timeout TO 0');

export async function setLocally(tx: Transaction, name: string, value: string) {
  await execute(tx, `SELECT set_config(:name, :value, true)`, { name, value });
}

/**
 * Begins and ends transactions and runs migrations on connections of our pools. Knex has no connections of its own
 * here.
 */
const KNEX = knexFactory({
  client: 'pg',
  // Log lines of knex on stdout would break --json. knex throws its errors as exceptions anyway.
  log: { warn() {}, error() {}, deprecate() {}, debug() {} },
});

const within = (client: pg.Client, knex: Knex.Transaction): Transaction => ({
  client,
  knex,
  async ask(statement) {
    // The connection may be in another transaction by now.
    if (knex.isCompleted()) throw new Error(`${statement.text} was sent after the end of its transaction`);
    return client.query(statement);
  },
});

/** Returns a connection to its pool. The pool drops a connection that is lost or has not ended its transaction. */
const release = (client: pg.PoolClient) => client.release(client.getTransactionStatus() !== 'I');

/** After these errors the server has rolled the whole transaction back, and the next attempt may succeed. */
const RETRIED_SQLSTATES: ReadonlySet<string> = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
]);

const ATTEMPTS = 5;

/** Runs `work` in one transaction, which is retried for RETRIED_SQLSTATES, at most five times in all. */
export function inTransaction<Result>(
  pool: pg.Pool,
  work: (tx: Transaction) => Promise<Result>,
  options: { readOnly?: boolean; kind?: Knex.TransactionConfig } = {},
) {
  return retried(async () => {
    const client = await pool.connect();
    try {
      const kind = options.kind ?? (options.readOnly ? READING : WRITING);
      return await KNEX.transaction((knex) => work(within(client, knex)), { ...kind, connection: client });
    } finally {
      release(client);
    }
  });
}

/** Runs `work` in one transaction on a connection that is in no transaction. */
export const transactionOn = <Result>(client: pg.Client, work: (tx: Transaction) => Promise<Result>) =>
  KNEX.transaction((knex) => work(within(client, knex)), { ...WRITING, connection: client });

const SNAPSHOT = { isolationLevel: 'repeatable read' } as const;
const READING = { ...SNAPSHOT, readOnly: true } as const;
// A writer reads again after waiting for a lock, so each statement needs a new snapshot.
const WRITING = { isolationLevel: 'read committed' } as const;

/**
 * Runs `work` in one transaction that only reads. If the pool has a connection for it, `beside` is a second transaction
 * on the same snapshot, which can make temporary tables. Without a second transaction, the only one can make them. With
 * a second pool, its connection is the one that only reads.
 */
export function readBeside<Result>(
  pool: pg.Pool,
  work: (tx: Transaction, beside: Transaction | undefined) => Promise<Result>,
  second?: pg.Pool,
) {
  const read = async (tx: Transaction) => {
    const others = second ?? pool;
    const client = others.options.max < 2 ? undefined : await others.connect().catch(() => undefined);
    let beside: Transaction | undefined;
    try {
      beside = client && (await beginBeside(client, tx));
      if (beside) await execute(second === undefined ? tx : beside, 'SET TRANSACTION READ ONLY');
      // The transaction that finishes first stays idle until the end.
      await Promise.all([patiently(tx), beside && patiently(beside)]);
      return await (second && beside ? work(beside, tx) : work(tx, beside));
    } finally {
      await beside?.knex.rollback();
      if (client) release(client);
    }
  };
  return inTransaction(pool, read, { kind: SNAPSHOT });
}

/**
 * Begins a transaction on the same snapshot. Returns undefined if the connection is to a different server, for example
 * if several servers share one address.
 */
async function beginBeside(client: pg.Client, tx: Transaction): Promise<Transaction | undefined> {
  const { snapshot } = await queryOne<{ snapshot: string }>(tx, 'SELECT pg_export_snapshot() AS snapshot');
  // The transaction is not read-only, so that it can make temporary tables. It is always rolled back.
  const beside = within(client, await KNEX.transaction({ ...SNAPSHOT, connection: client }));
  try {
    await execute(beside, `SET TRANSACTION SNAPSHOT '${snapshot}'`);
    return beside;
  } catch {
    await beside.knex.rollback();
    return undefined;
  }
}

/** Retries a whole transaction for RETRIED_SQLSTATES, with at most five attempts. */
export async function retried<Result>(transaction: () => Promise<Result>) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      if (attempt === ATTEMPTS || !RETRIED_SQLSTATES.has(sqlstate(error) ?? '')) throw error;
      await new Promise((resolve) => setTimeout(resolve, attempt * 20 + Math.random() * 50));
    }
  }
}

export function sqlstate(error: unknown) {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** The constraint that a statement violated, or undefined for any other error. */
export function constraintOf(error: unknown) {
  return error instanceof pg.DatabaseError ? error.constraint : undefined;
}

/**
 * True if a statement's data or a conflict caused the error, not the server or the connection. The items of a failed
 * batch can then be retried one by one.
 */
export function isFaultOfOne(error: unknown) {
  // Errors of connections, resources, operators, the system and the server itself (classes 08, 53, 57, 58, XX).
  return error instanceof pg.DatabaseError && !/^(08|53|57|58|XX)/.test(error.code ?? 'XX');
}

/** lock_not_available: another transaction held a lock for longer than lock_timeout. */
export const LOCK_TIMEOUT = '55P03';

const OID = { int8: 20, date: 1082, timestamptz: 1184 } as const;

/** Value parsers: a date stays `YYYY-MM-DD`, a time keeps its microseconds, and a NUMERIC keeps its digits. */
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
        // '2026-11-01 06:00:00.25+00' → '2026-11-01T06:00:00.25Z'. Connections use UTC.
        return (text: string) => text.replace(' ', 'T').replace(/\+00$/, 'Z');
      default:
        return pg.types.getTypeParser(oid, format as 'text');
    }
  },
} as pg.CustomTypesConfig;

const REMEDIES: ReadonlyArray<readonly [sqlstates: RegExp, remedy: string]> = [
  [/^53100$/, "Free space on the database's disk and run the command again."],
  [/^53/, 'Give the server more memory or connections, or run fewer commands at once.'],
  [/^25006$/, 'Point DATABASE_URL at the primary server, which takes writes.'],
  [/^57P|^08/, 'Check that the server runs, and run the command again.'],
];

const LOST =
  /Connection terminated|connection error|connection was lost|not queryable|Query read timeout|EPIPE|ECONNRESET/;

/**
 * Turns a database error into a refusal: a violated constraint by errors/constraints.ts, a failure of the server or
 * connection as database_failed. Returns undefined for a bug.
 */
export function databaseFailure(error: unknown) {
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
