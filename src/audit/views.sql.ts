/**
 * The data files of packs: the views of templates/export/checks.sql over the facts in the database, as CSV or JSON Lines.
 * A verifier runs the same queries over the log in the pack.
 */
import { execute, query, querying, Transaction } from '#database/transaction';
import { Month } from '#month';
import { decimal, expressionOf, rowsOf, TableFormat, View } from './columns.sql.ts';
import { makeLiveViews, prepareTables } from './live.sql.ts';
import { Totals } from './pack.ts';
import { readRules } from './rules.ts';

type ViewedFacts = Readonly<{
  from: Month;
  to: Month;
  first: number;
  size: number;
  lastNo: number;
}>;

/**
 * Makes the tables that the views of these names need, and returns the views. The caller rolls back. From then on, the
 * transaction sees these instead of the tables of the same names.
 */
export async function makeViews(
  tx: Transaction,
  names: readonly string[],
  { from, to, first, size, lastNo }: ViewedFacts,
): Promise<ReadonlyMap<string, View>> {
  const { prepare, views } = readRules();
  const chosen = views.filter(({ name }) => names.includes(name));
  const home = await makeLiveViews(tx, lastNo);
  await execute(tx, `UPDATE pack SET first = ${first}, size = ${size}, from_month = '${from}', to_month = '${to}'`);
  await prepareTables(tx, tablesFor(chosen, prepare), { home, to: lastNo });
  return new Map(chosen.map((view) => [view.name, view]));
}

/** The statements that make or fill a table, if a view or a later statement of these names the table. */
function tablesFor(views: readonly View[], prepare: readonly string[]) {
  const words = new Set<string>();
  const read = (sql: string) => {
    for (const [word] of sql.matchAll(/\w+/g)) words.add(word);
  };
  for (const view of views) read(view.query);
  const needed: string[] = [];
  for (const each of prepare.toReversed()) {
    const statement = each.replace(/^--.*\n/gm, '');
    const [, table = ''] = /^(?:CREATE TABLE|INSERT INTO|CREATE INDEX \w+ ON) (\w+)/.exec(statement) ?? [];
    if (!words.has(table)) continue;
    read(statement);
    needed.unshift(statement);
  }
  return needed;
}

/** COPY options that write JSON unchanged: JSON escapes control characters, so none can be a quote or delimiter. */
const AS_IT_IS = `FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02'`;

/** A COPY of the rows of a view. */
export function copyOf(view: View, format: TableFormat) {
  if (format === 'csv') {
    const list = view.columns.map((column) => `${expressionOf(column, format)} AS "${column.name}"`);
    return `COPY (SELECT ${list.join(', ')} FROM ${rowsOf(view)}) TO STDOUT (FORMAT csv, HEADER)`;
  }
  const pairs = view.columns.map((column) => `'${column.name}', ${expressionOf(column, format)}`);
  return `COPY (SELECT json_build_object(${pairs.join(', ')}) FROM ${rowsOf(view)}) TO STDOUT (${AS_IT_IS})`;
}

/** The sums of a view's amounts by currency. */
export async function readTotals(tx: Transaction, view: View): Promise<Totals> {
  const amounts = view.columns.filter(({ type }) => type === 'amount');
  const sums = amounts.map(({ name }) => `${decimal(`sum("${name}")`, 'currency')} AS "${name}"`);
  const rows = await query<Record<string, string>>(
    tx,
    `SELECT currency, ${sums.join(', ')} FROM ${rowsOf(view)} GROUP BY currency ORDER BY currency`,
  );
  return Object.fromEntries(rows.map(({ currency, ...totals }) => [currency, totals]));
}

export type Sum = { control: string; account: string; currency: string; amount: string };

/** The balances of all accounts before a month, except zero balances, from the table `journal`. */
export const readOpening = querying<Sum, { from: Month }>(`
  SELECT control, account, currency, ${decimal('sum(amount)', 'currency')} AS amount FROM journal WHERE month < :from
  GROUP BY control, account, currency HAVING sum(amount) <> 0 ORDER BY account, currency`);

/** The accounts of the journal up to a month. */
export const readAccounts = querying<Sum, { to: Month }>(
  `SELECT DISTINCT control, account, currency, '0' AS amount FROM journal WHERE month <= :to`,
);

export type JournalLine = Readonly<{
  entry_on: string;
  dated_on: string;
  fact: string;
  log_no: number;
  account: string;
  currency: string;
  amount: string;
  document: string | null;
  reference: string | null;
}>;

const READ_AT_ONCE = 3000;

/** The rows of the view `journal` in order and in batches, in constant memory. */
export async function* readJournal(tx: Transaction, view: View): AsyncGenerator<JournalLine[]> {
  const list = view.columns.map((column) => `${expressionOf(column, 'jsonl')} AS "${column.name}"`);
  await execute(tx, `DECLARE journal_lines NO SCROLL CURSOR FOR SELECT ${list.join(', ')} FROM ${rowsOf(view)}`);
  for (;;) {
    const lines = await query<JournalLine>(tx, `FETCH ${READ_AT_ONCE} FROM journal_lines`);
    if (lines.length === 0) break;
    yield lines;
  }
  await execute(tx, 'CLOSE journal_lines');
}
