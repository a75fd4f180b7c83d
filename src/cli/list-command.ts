/** The command of a list: its filters as options, its rows as a table, JSON, CSV or a workbook. */
import { namesOf } from '../acts/command.ts';
import { readFields } from '../acts/fields.ts';
import { todayOf } from '../config/today.ts';
import {
  type Asked,
  type Column,
  cellOf,
  columnOf,
  type List,
  sheetOf,
  type Total,
  textOf,
  type Value,
} from '../lists/list.ts';
import { Amount, groupThousands } from '../money.ts';
import { type CommandContext, type Definition, reading } from './define.ts';
import { addFields, givenTo } from './fields.ts';
import { outputWidth, table } from './output.ts';
import { FORMAT, OUT, type PresentOptions, present } from './present.ts';

export const listCommand = async (loading: Promise<List>): Promise<{ readonly define: Definition }> => {
  const list = await loading;
  return {
    define(group, act) {
      const command = group.command(list.command.replace(/.* /, '')).description(list.summary);
      addFields(command, list.filters);
      command
        .option(...FORMAT)
        .option(...OUT)
        .action(act(reading((context, options: PresentOptions) => printList(context, list, options))));
    },
  };
};

async function printList(context: CommandContext, list: List, options: PresentOptions): Promise<void> {
  const given = givenTo(list.filters, { options });
  const today = todayOf(context);
  const asked: Asked<unknown> = {
    ...{ filter: readFields(list.filters, given, namesOf(list.filters)), scope: null, today },
    ...{ sort: list.sorts[1], after: null, limit: null },
  };
  const { rows, json, totals } = await context.database.reading(async (tx) => {
    const found = await list.read(tx, asked);
    return {
      rows: found,
      json: context.output.json ? await list.json(tx, found) : [],
      totals: found.length === 0 ? [] : ((await list.totals?.(tx, asked)) ?? []),
    };
  });
  const people = () => [tableOf(list, rows, today), ...(totals.length === 0 ? [] : [totalsOf(totals)])].join('\n\n');
  await present(
    context.output,
    options,
    json,
    () => sheetOf(list, rows, today),
    () => (rows.length === 0 ? `No ${list.one}s found.` : people()),
  );
}

/** In a pipe nothing is left out for its width. */
function tableOf(list: List, rows: readonly unknown[], today: string): string {
  const width = outputWidth() ?? Number.POSITIVE_INFINITY;
  const values = (name: string) => rows.map((row) => inTable(cellOf(list, name, row, today), columnOf(list, name)));
  const shown = list.terminal.filter((name) => {
    const { width: least = 0, unlessSame } = columnOf(list, name);
    return width >= least && (unlessSame !== true || new Set(values(name)).size > 1);
  });
  const columns = shown.map(values);
  return table(
    shown.map((name) => headingOf(list, name)),
    rows.map((_, at) => columns.map((column) => column[at] ?? '')),
  );
}

function headingOf(list: List, name: string): string {
  const { heading, type, cut } = columnOf(list, name);
  return `${type === 'amount' || type === 'count' ? '>' : cut ? '~' : ''}${lowered(heading)}`;
}

const lowered = (heading: string): string => heading.charAt(0).toLowerCase() + heading.slice(1);

function inTable(value: Value, { look }: Column<unknown>): string {
  if (!(value instanceof Amount)) return textOf(value);
  return look === 'quiet' && value.isZero() ? '' : groupThousands(value.toString());
}

function totalsOf(totals: readonly Total[]): string {
  const [first = {}] = totals;
  return table(
    ['total', ...Object.keys(first).map((name) => `>${lowered(name)}`)],
    totals.map((total) => [
      Object.values(total)[0]?.currency ?? '',
      ...Object.values(total).map((each) => groupThousands(each.toString())),
    ]),
  );
}
