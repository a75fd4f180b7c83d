/**
 * Every statement in src against a migrated database: PostgreSQL can plan it, its columns are the properties of the row
 * type that its caller names, and its parameters are the values that the caller gives.
 */
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { compiled } from '../../src/database/transaction.ts';
import { makeDatabase, type OwnDatabase } from '../support/databases.ts';
import { type Asked, findStatements, type Kind, ONLY_COLUMN, type Property } from '../support/sql/statements.ts';

/** Statements whose text only the running program knows: all of a file, or those of one expression in it. */
const NOT_EVALUATED: Readonly<Record<string, string>> = {
  'src/log/lines.sql.ts': 'generated from the forms of facts; test/log compares the lines',
  'src/audit/rules.ts': 'the rules of templates/export/checks.sql; test/audit/rules.test.ts runs them',
  'src/audit/views.sql.ts': 'runs the views of templates/export/checks.sql; test/audit/data-files.test.ts runs them',
  'src/audit/live.sql.ts': 'generated from the forms of facts; test/audit/rules.test.ts runs them',
  'src/reports/log-status.sql.ts': 'generated from the forms of facts; test/reports/status.test.ts runs it',
  'src/audit/checks/query.ts': 'the checks; test/audit/verify.test.ts runs them',
  'src/database/backup.ts': 'names tables as the catalog has them',
  'src/database/restore.ts': 'names tables as the catalog has them',
  'src/database/restore-indexes.ts': 'makes indexes as the catalog has them',
  'src/log/personal.sql.ts': 'generated from the forms of facts; test/log/erasure.test.ts runs it',
  'src/database/claims.ts claimOf(items)': 'asks for items as each kind of them says what is due',
};

/** Columns that a table allows to be null, and that never are in these rows. */
const NEVER_NULL: Readonly<Record<string, string>> = {
  'src/documents/emails.sql.ts reason': 'the statement sets it',
  'src/payments/remind.sql.ts due_on': 'an invoice has one',
  'src/payments/remind.sql.ts partner_id': 'a reminder has one',
  'src/quotes/quotes.sql.ts reversal_id': 'a reversal has one',
};

const isExcepted = ({ place, source }: { place: string; source: string }): boolean => {
  const file = place.replace(/:\d+$/, '');
  return NOT_EVALUATED[file] !== undefined || NOT_EVALUATED[`${file} ${source}`] !== undefined;
};

interface Column {
  readonly name: string;
  readonly type: number;
  /** The column of a table that it is; 0 for an expression. */
  readonly tableID: number;
  readonly columnID: number;
}

let database: OwnDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await makeDatabase('row_types', { template: inject('template') });
  client = new pg.Client(database.url);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** What a statement answers with, from PostgreSQL's description of it: nothing is run. */
function describe(text: string): Promise<Column[]> {
  return new Promise((resolve, reject) => {
    let columns: Column[] = [];
    const description = {
      submit(connection: { parse: (o: object) => void; describe: (o: object) => void; sync: () => void }) {
        connection.parse({ name: '', text, types: [] });
        connection.describe({ type: 'S', name: '' });
        connection.sync();
      },
      handleRowDescription({
        fields,
      }: {
        fields: { name: string; dataTypeID: number; tableID: number; columnID: number }[];
      }) {
        columns = fields.map(({ dataTypeID: type, ...field }) => ({ ...field, type }));
      },
      handleError: reject,
      handleReadyForQuery: () => resolve(columns),
    };
    client.query(description as unknown as pg.Submittable);
  });
}

/** The statements that make temporary tables, by the table that they make: it is there before others are described. */
const temporaryTables = (asked: readonly Asked[]): Map<string, { place: string; text: string }[]> => {
  const archived = [{ place: 'src/archive/archive.sql.ts', text: 'SELECT open_archive()' }];
  const made = new Map(['archived_rows'].map((name) => [name, archived]));
  for (const { place, texts } of asked) {
    for (const text of texts) {
      const name = /^\s*CREATE TEMPORARY TABLE (?:IF NOT EXISTS )?(\w+)/.exec(text)?.[1];
      if (name !== undefined) made.set(name, [...(made.get(name) ?? []), { place, text }]);
    }
  }
  return made;
};

/** What is fetched from a cursor is what it was declared for. */
function cursorsOf(asked: readonly Asked[]): ReadonlyMap<string, string> {
  const declared = asked
    .flatMap(({ texts }) => texts)
    .map((text) => /^\s*DECLARE (\w+) .*?CURSOR FOR\s(.*)$/s.exec(text));
  return new Map(declared.flatMap((match) => (match ? [[match[1] ?? '', match[2] ?? '']] : [])));
}

/** The statement as it is described; each of several that one call asks, which cannot have parameters. */
function statementsIn(cursors: ReadonlyMap<string, string>, text: string): string[] {
  const fetched = /^\s*FETCH \w+ FROM (\w+)/.exec(text)?.[1];
  if (fetched !== undefined) return [cursors.get(fetched) ?? text];
  return compiled(text).names.length === 0 && /^\s*SET /.test(text) ? text.split('; ') : [text];
}

const folderOf = (place: string): string => place.slice(0, place.lastIndexOf('/'));

/** Describes a statement, in a transaction with the temporary tables that it turns out to need. */
async function describeWith(
  { place, text }: { place: string; text: string },
  temporary: ReturnType<typeof temporaryTables>,
): Promise<Column[]> {
  const needed: string[] = [];
  for (;;) {
    await client.query('BEGIN');
    try {
      for (const each of needed) {
        const { text: sql, names } = compiled(each);
        await client.query(
          sql,
          names.map(() => null),
        );
      }
      return await describe(compiled(text).text);
    } catch (error) {
      const missing = /^relation "(?:pg_temp\.)?(\w+)" does not exist/.exec((error as Error).message)?.[1] ?? '';
      const candidates = temporary.get(missing) ?? [];
      // Where two parts of the program make a table of one name, a statement means that of its own folder.
      const chosen = candidates.find((each) => folderOf(each.place) === folderOf(place)) ?? candidates[0];
      if (chosen === undefined || needed[0] === chosen.text || needed.length > 8) throw error;
      // It stands before all that it turns out to be needed for.
      const rest = needed.filter((each) => each !== chosen.text);
      needed.splice(0, needed.length, chosen.text, ...rest);
    } finally {
      await client.query('ROLLBACK');
    }
  }
}

const KINDS: ReadonlyMap<number, Kind> = new Map<number, Kind>([
  [16, 'boolean'],
  [17, 'bytes'],
  ...([20, 21, 23, 26, 700, 701] as const).map((oid): [number, Kind] => [oid, 'number']),
  ...([114, 3802] as const).map((oid): [number, Kind] => [oid, 'json']),
  [2278, 'any'], // void
]);

/** How pg gives a value of a type to the program; what no list names is text. */
async function kindsOf(): Promise<(oid: number) => Kind> {
  const { rows } = await client.query<{ oid: number }>(`SELECT oid::int FROM pg_type WHERE typcategory = 'A'`);
  const lists = new Set(rows.map(({ oid }) => oid));
  return (oid) => KINDS.get(oid) ?? (lists.has(oid) ? 'list' : 'text');
}

/** Columns of tables without NOT NULL. Of expressions and outer joins PostgreSQL does not say whether they can be null. */
async function nullableColumns(): Promise<(column: Column, text: string) => boolean> {
  const { rows } = await client.query<{ key: string; name: string }>(
    `SELECT attrelid || '.' || attnum AS key, attname AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relkind IN ('r', 'p') AND NOT a.attnotnull AND a.attnum > 0`,
  );
  const names = new Map(rows.map(({ key, name }) => [key, name]));
  return ({ tableID, columnID }, text) => {
    const name = names.get(`${tableID}.${columnID}`);
    return name !== undefined && !new RegExp(`\\b${name} IS NOT NULL`).test(text);
  };
}

const fits = (column: Kind, property: Kind): boolean =>
  column === property || property === 'any' || column === 'any' || (column === 'json' && property !== 'bytes');

test('every statement returns the row type that its caller declares', async () => {
  const found = findStatements();
  const asked = found.asked.filter((each) => !isExcepted(each));
  const kindOf = await kindsOf();
  const mayBeNull = await nullableColumns();
  const temporary = temporaryTables(asked);
  const cursors = cursorsOf(asked);
  const problems: string[] = found.unevaluated
    .filter((each) => !isExcepted(each))
    .map(({ place, reason }) => `${place}: its text cannot be told (${reason})`);
  const given = new Map<string, { names: ReadonlySet<string>; used: ReadonlySet<string> }[]>();
  let described = 0;
  let rowTypes = 0;
  for (const { place, texts, row, bindings } of asked) {
    const used = new Set<string>();
    // A cursor has its parameters where it is declared, not where it is read.
    for (const text of texts) for (const name of compiled(text).names) used.add(name);
    for (const text of texts.flatMap((each) => statementsIn(cursors, each))) {
      let columns: Column[];
      try {
        columns = await describeWith({ place, text }, temporary);
        described += 1;
      } catch (error) {
        problems.push(`${place}: ${(error as Error).message}\n${text.slice(0, 300)}`);
        continue;
      }
      if (row === undefined) continue;
      const file = place.replace(/:\d+$/, '');
      const nullable = (column: Column) =>
        mayBeNull(column, text) && NEVER_NULL[`${file} ${column.name}`] === undefined;
      problems.push(...compare(columns, row, kindOf, nullable).map((problem) => `${place}: ${problem}`));
    }
    if (row !== undefined) rowTypes += 1;
    for (const name of used) if (!bindings.names.has(name)) problems.push(`${place}: no value for :${name}`);
    if (bindings.exact) given.set(place, [...(given.get(place) ?? []), { names: bindings.names, used }]);
  }
  // A call that asks one of several statements gives what any of them needs.
  for (const [place, calls] of given) {
    const used = new Set(calls.flatMap((call) => [...call.used]));
    for (const name of calls[0]?.names ?? []) {
      if (!used.has(name)) problems.push(`${place}: :${name} is not in the statement`);
    }
  }
  process.stdout.write(`row types: ${described} statements described, ${rowTypes} row types compared\n`);
  expect(problems).toEqual([]);
  expect(described).toBeGreaterThan(300);
  expect(rowTypes).toBeGreaterThan(150);
});

function compare(
  columns: readonly Column[],
  row: ReadonlyMap<string, Property>,
  kindOf: (oid: number) => Kind,
  mayBeNull: (column: Column) => boolean,
): string[] {
  if (row.has(ONLY_COLUMN) && columns.length !== 1) return [`${columns.length} columns, where one is read`];
  const propertyOf = (name: string) => row.get(name) ?? row.get(ONLY_COLUMN);
  const names = new Set([...columns.map(({ name }) => name), ONLY_COLUMN]);
  const missing = [...row].filter(([name, { optional }]) => !optional && !names.has(name)).map(([name]) => name);
  return [
    ...missing.map((name) => `no column for the property ${name}`),
    ...columns.flatMap((column) => {
      const { name, type } = column;
      const property = propertyOf(name);
      if (property === undefined) return [`no property for the column ${name}`];
      const kind = kindOf(type);
      if (mayBeNull(column) && !property.nullable && !property.optional)
        return [`the column ${name} can be null, and its property cannot`];
      return fits(kind, property.kind) ? [] : [`the column ${name} is ${kind}, and its property ${property.kind}`];
    }),
  ];
}
