/** The rules of checks.sql in three engines: over honest facts, and over the same facts with many faults. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readRules } from '../../../src/audit/rules.ts';
import { makeDatabase } from '../../support/databases.ts';
import { inDuckDb, inPostgres, textsInPostgres } from './engines.ts';
import { readChecks } from './log-tables.ts';
import { inSqlite } from './sqlite.ts';

const CHECKS = join(import.meta.dirname, '../../../templates/export/checks.sql');
const text = readFileSync(CHECKS, 'utf8');
const checks = readChecks(text);
/** What a random history of all actions recorded. */
const logOf = (name: string) => readFileSync(join(import.meta.dirname, `../mutations/logs/${name}.tsv`), 'utf8');
const honest = logOf('history');

const folder = mkdtempSync(join(tmpdir(), 'reckoner-rules-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(log: string): string {
  const file = join(folder, 'log.tsv');
  writeFileSync(file, log);
  return file;
}

async function inAllEngines(log: string, file = CHECKS) {
  const database = await makeDatabase('rules');
  const own = readChecks(readFileSync(file, 'utf8'));
  try {
    return {
      sqlite: inSqlite(file, fileOf(log)),
      duckdb: await inDuckDb(own, log),
      postgres: await inPostgres(database.url, own, log),
    };
  } finally {
    await database.drop();
  }
}

/**
 * Every third line has one field that is that of the previous line of its kind, and the last line of each kind is missing.
 * Lines of two currencies are left alone: their amounts have other decimals.
 */
function withFaults(log: string): string {
  const lines = log
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\t'));
  const last = new Map(lines.map((fields) => [fields[0], fields]));
  const before = new Map<string, string[]>();
  const forged = lines.flatMap((fields, index) => {
    const [kind = ''] = fields;
    const previous = before.get(kind);
    before.set(kind, fields);
    if (previous === undefined) return [fields];
    if (fields === last.get(kind)) return [];
    const currencies = (checks.forms.get(kind) ?? []).flatMap(({ name }, at) =>
      /currency/.test(name) ? [at + 2] : [],
    );
    if (index % 3 > 0 || currencies.some((at) => fields[at] !== previous[at])) return [fields];
    return [fields.with(2 + (index % (fields.length - 2)), previous[2 + (index % (fields.length - 2))] as string)];
  });
  return forged.map((fields) => `${fields.join('\t')}\n`).join('');
}

test('the rules find nothing wrong in honest facts, in any engine', async () => {
  expect(await inAllEngines(honest)).toEqual({ sqlite: [], duckdb: [], postgres: [] });
});

test('SQLite, DuckDB and PostgreSQL find the same faults', async () => {
  const rules = new Set<string | undefined>();
  for (const name of ['history', 'payments', 'clients']) {
    const { sqlite, duckdb, postgres } = await inAllEngines(withFaults(logOf(name)));
    expect(duckdb).toEqual(sqlite);
    expect(postgres).toEqual(sqlite);
    for (const line of sqlite) rules.add(line.split('\t')[0]);
  }
  expect(rules.size).toBeGreaterThan(60);
});

test('SQLite, DuckDB and PostgreSQL have the same rows in each data file', async () => {
  const [head = '', views = ''] = text.split(/-- CHECKS\n[\s\S]*-- VIEWS\n/);
  const asRules = views
    .slice(views.indexOf('-- VIEW '))
    .replace(/^-- (columns .*|whole)\n/gm, '')
    .replace(/^-- VIEW ([a-z-]+):/gm, (_, name: string) => `-- ${name.replaceAll('-', '_')}:`);
  const file = join(folder, 'views.sql');
  writeFileSync(file, `${head}-- CHECKS\n\n${asRules}`);
  const { sqlite, duckdb, postgres } = await inAllEngines(honest, file);
  expect(duckdb).toEqual(sqlite);
  expect(postgres).toEqual(sqlite);
  expect(new Set(sqlite.map((line) => line.split('\t')[0])).size).toBeGreaterThan(14);
});

test('each rule has a name of its own and one sentence', () => {
  expect(new Set(checks.rules.map(({ name }) => name)).size).toBe(checks.rules.length);
  for (const { sentence } of checks.rules) expect(sentence).toMatch(/^[A-Z].+[^.;]\.$/);
});

test('the rows of each rule have the columns that the rule names, with the currency of each amount', async () => {
  const database = await makeDatabase('rules');
  try {
    const texts = await textsInPostgres(database.url, checks);
    for (const { name: rule, columns } of readRules().rules) {
      const names = columns.map(({ name }) => name);
      expect({ rule, first: names[0], once: new Set(names).size }).toEqual({ rule, first: 'at', once: names.length });
      expect({ rule, texts: columns.map(({ type }) => type === 'text') }).toEqual({ rule, texts: texts.get(rule) });
      for (const { name, type } of columns) {
        expect([rule, name, type.replace(/@.*/, '')]).toEqual([
          rule,
          name,
          expect.stringMatching(/^(text|int|amount|day|rate)$/),
        ]);
        const [kind, currency = 'currency'] = type.split('@');
        if (kind === 'amount') expect([rule, ...names]).toContain(currency);
      }
    }
  } finally {
    await database.drop();
  }
});

test('the queries use neither division nor patterns, JSON, casts of text or dates, which engines understand differently', () => {
  for (const sql of [...checks.prepare, ...checks.rules.map(({ query }) => query)]) {
    const code = sql.replaceAll(/--.*|'[^']*'/g, '');
    expect(code).not.toMatch(
      /\/|\bLIKE\b|\bJSON|->|::|\bFILTER\b|\bdate\b|\bnow\b|\bCAST\((?!in_digits AS BIGINT\))[^)]* AS (?!TEXT|INTEGER\))/i,
    );
  }
});

test('the ledger rows are read three times, all of them to prepare', () => {
  const reads = (sql: string) => (sql.match(/\b(FROM|JOIN) ledger_rows\b/g) ?? []).length;
  expect(checks.prepare.reduce((sum, sql) => sum + reads(sql), 0)).toBe(3);
  expect(checks.rules.filter(({ query }) => reads(query) > 0)).toEqual([]);
});
