/** The rules of the ledger: templates/export/checks.sql, the same file that verifiers run over a pack. */
import { readFileSync } from 'node:fs';
import { attempt } from '#database/attempt';
import { execute, query, Transaction } from '#database/transaction';
import { DerivedRows } from '#log/derive';
import { withCopies } from '#log/forms';
import { CHECKS_SQL } from '#package';
import { Difference, Finding, unchecked } from './checks/query.ts';
import { columnsIn, expressionOf, Rule, rowsOf, View } from './columns.sql.ts';
import { LIVE_RULES, makeLiveViews, prepareTables } from './live.sql.ts';

type Rules = Readonly<{
  /** Statements that make the tables which rules and views share. */
  prepare: readonly string[];
  rules: readonly Rule[];
  views: readonly View[];
}>;

/** Reads the sections of the file. */
export function readRules(text = withCopies(readFileSync(CHECKS_SQL, 'utf8'))): Rules {
  const [, prepare = '', checks = '', views = ''] = text.split(/^-- PREPARE\n|^-- CHECKS\n|^-- VIEWS\n/m);
  const rules = checks.split(/\n\n+/).flatMap((paragraph): Rule[] => {
    const [, name, sentence, sql] = /^-- ([a-z0-9_]+): (.+)\n((?:.|\n)+)$/.exec(paragraph.trim()) ?? [];
    return name && sentence && sql ? [{ name, sentence, columns: columnsOf(sql), query: queryOf(sql) }] : [];
  });
  return {
    prepare: prepare
      .split(/;\n/)
      .map((each) => each.trim())
      .filter((each) => each !== ''),
    rules,
    views: views.split(/\n\n+/).flatMap((paragraph): View[] => {
      const [, name, sql] = /^-- VIEW ([a-z-]+): .+\n((?:.|\n)+)$/.exec(paragraph.trim()) ?? [];
      return name && sql ? [{ name, columns: columnsOf(sql), query: queryOf(sql) }] : [];
    }),
  };
}

const queryOf = (sql: string) => sql.replace(/^-- .*\n/gm, '').replace(/;\s*$/, '');

const columnsOf = (sql: string) => [...sql.matchAll(/^-- columns (.+)$/gm)].flatMap(([, list = '']) => columnsIn(list));

/** The maximum number of items that one rule names. */
const NAMED = 100;

/** The check of the rules, or of those with one name. The transaction must be able to make temporary tables. */
export async function findBrokenRules(tx: Transaction, copied: DerivedRows = 'all', only?: string): Promise<Finding> {
  await execute(tx, 'SAVEPOINT rules');
  try {
    return await runRules(tx, copied, only);
  } finally {
    await execute(tx, 'ROLLBACK TO SAVEPOINT rules');
  }
}

/** Runs all rules over the tables. The caller rolls back the tables that this function makes. */
async function runRules(tx: Transaction, copied: DerivedRows, only?: string): Promise<Finding> {
  const { prepare, rules } = readRules();
  const home = await makeLiveViews(tx);
  await prepareTables(tx, prepare, { home, copied });
  const found: Difference[][] = [];
  const find = async (rule: Rule) => {
    if (only !== undefined && rule.name !== only) return;
    const differences = await attempt(
      tx,
      () => differencesOf(tx, rule),
      (error) => [unchecked(rule.name, error)],
    );
    if (differences.length > 0) found.push(differences);
  };
  for (const rule of rules) await find(rule);
  await execute(tx, `SET LOCAL search_path = ${home}, pg_temp`);
  for (const rule of LIVE_RULES) await find(rule);
  // Readers show only the first items, so the first item of each broken rule comes first.
  const differences = Array.from({ length: NAMED }, (_, nth) => found.flatMap((own) => own.slice(nth, nth + 1))).flat();
  return { inspected: rules.length + LIVE_RULES.length, differences };
}

async function differencesOf(tx: Transaction, rule: Rule): Promise<Difference[]> {
  const list = rule.columns.map((column) => `${expressionOf(column, 'jsonl')} AS "${column.name}"`);
  // The planner must not plan for the first rows only, because usually there are none.
  const rows = await query<Record<string, unknown>>(
    tx,
    `WITH found AS MATERIALIZED (SELECT * FROM ${rowsOf(rule)}) SELECT ${list.join(', ')} FROM found LIMIT ${NAMED}`,
  );
  return rows.map((row) => differenceOf(rule, row));
}

function differenceOf({ name, sentence }: Rule, { at, ...values }: Record<string, unknown>): Difference {
  const named = Object.entries(values).map(([column, value]) => `${column} ${value ?? '–'}`);
  const isKnown = Object.values(values).some((value) => value !== null);
  return { subject: `${name}: ${at ?? '–'}`, detail: isKnown ? `${sentence} Found: ${named.join(', ')}` : sentence };
}
