/** The engines in which the rules of checks.sql must give the same answers: SQLite, DuckDB and PostgreSQL. */
import { DuckDBInstance } from '@duckdb/node-api';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { answerLines, type Checks, logTables, type Rule, type Table } from './log-tables.ts';

const definition = ({ name, columns }: Table, [whole, text]: readonly [string, string]) =>
  `CREATE TABLE "${name}" (${columns.map((column) => `"${column.name}" ${column.isText ? text : whole}`).join(', ')})`;

export async function inDuckDb(checks: Checks, log: string): Promise<string[]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    for (const table of logTables(checks, log)) {
      await connection.run(definition(table, ['BIGINT', 'VARCHAR']));
      const appender = await connection.createAppender(table.name);
      for (const row of table.rows) {
        for (const value of row) {
          if (value === null) appender.appendNull();
          else if (typeof value === 'bigint') appender.appendBigInt(value);
          else appender.appendVarchar(value);
        }
        appender.endRow();
      }
      appender.closeSync();
    }
    for (const statement of checks.prepare) await connection.run(statement);
    const lines: string[] = [];
    for (const rule of checks.rules) {
      const answer = await connection.runAndReadAll(rule.query);
      lines.push(...answerLines(rule, answer.getRows()));
    }
    return lines.sort();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

const inCopy = (value: string | bigint | null) =>
  value === null ? '\\N' : String(value).replace(/[\\\t\n\r]/g, (found) => COPIED[found] as string);
const COPIED: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** Runs the rules in an empty database. */
async function eachInPostgres(
  url: string,
  checks: Checks,
  log: string,
  see: (rule: Rule, answer: pg.QueryArrayResult<unknown[]>) => void,
): Promise<void> {
  // Numbers of any size as text, as the other engines print them.
  const client = new pg.Client(url);
  await client.connect();
  try {
    for (const table of logTables(checks, log)) {
      await client.query(definition(table, ['bigint', 'text COLLATE "C"']));
      const stream = client.query(copyFrom(`COPY "${table.name}" FROM STDIN`));
      await new Promise<void>((resolve, reject) => {
        stream.on('error', reject).on('finish', resolve);
        stream.end(table.rows.map((row) => `${row.map(inCopy).join('\t')}\n`).join(''));
      });
    }
    await client.query('ANALYZE');
    for (const statement of checks.prepare) await client.query(statement);
    await client.query('ANALYZE');
    for (const rule of checks.rules) see(rule, await client.query({ text: rule.query, rowMode: 'array' }));
  } finally {
    await client.end();
  }
}

export async function inPostgres(url: string, checks: Checks, log: string): Promise<string[]> {
  const lines: string[] = [];
  await eachInPostgres(url, checks, log, (rule, { rows }) => lines.push(...answerLines(rule, rows)));
  return lines.sort();
}

/** Which columns of the rows of each rule are texts. */
export async function textsInPostgres(url: string, checks: Checks): Promise<ReadonlyMap<string, boolean[]>> {
  const texts = new Map<string, boolean[]>();
  await eachInPostgres(url, checks, '', ({ name }, { fields }) =>
    texts.set(
      name,
      fields.map(({ dataTypeID }) => dataTypeID === pg.types.builtins.TEXT),
    ),
  );
  return texts;
}
