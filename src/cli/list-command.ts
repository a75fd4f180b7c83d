import { z } from 'zod';
import { namesOf } from '#actions/command';
import { choice, flag, readFields } from '#actions/fields';
import { withPartnerIds } from '#actions/partner-names';
import { todayOf } from '#config/today';
import { EXIT } from '#errors/refusals';
import {
  Column,
  cellOf,
  columnOf,
  isQuiet,
  isShown,
  List,
  ListQuery,
  readSums,
  sheetOf,
  sortableOf,
  Total,
  textOf,
  Value,
} from '#lists/list';
import { Amount, groupThousands } from '#money';
import { uncapitalized } from '#text';
import { wholeNumberArgument } from './arguments.ts';
import { CommandContext, Definition, reading, readingNow } from './define.ts';
import { addFields, givenTo } from './fields.ts';
import { outputWidth, table } from './output.ts';
import { FORMAT, OUT, PresentOptions, present } from './present.ts';
import { withCommands } from './remedies.ts';

type Options = PresentOptions &
  Readonly<{
    limit?: number;
  }>;

export const listCommand = async (loading: Promise<List>): Promise<{ readonly define: Definition }> => {
  const list = await loading;
  return {
    define(group, action) {
      const command = group.command(list.command.replace(/.* /, '')).description(list.summary);
      addFields(command, list.filters, list.words);
      addFields(command, sortingOf(list));
      if (list.most !== undefined) {
        const help = `list at most this many (default: ${list.most})`;
        command.option('--limit <count>', help, wholeNumberArgument('--limit', 1, 1_000_000));
      }
      command.option(...FORMAT).option(...OUT);
      if (list.help !== undefined) command.addHelpText('after', `\n${list.help}`);
      const read = list.current ? readingNow : reading;
      command.action(action(read((context, ...given: unknown[]) => printList(context, list, given))));
    },
  };
};

function sortingOf(list: List) {
  const sortable = sortableOf(list);
  if (sortable.length === 0) return z.strictObject({});
  const [, usual] = list.sorts;
  return z.strictObject({
    sort: choice('Sort by', `The column to sort by. Default: ${usual}.`, sortable).optional(),
    descending: flag('Descending', 'Sort from the last to the first.').optional(),
  });
}

function sortOf(list: List, options: Options) {
  const sorting = sortingOf(list);
  const given = readFields(sorting, givenTo(sorting, { options })) as { sort?: string; descending?: boolean };
  const sort = given.sort ?? list.sorts[1];
  return given.descending ? `-${sort.replace('-', '')}` : sort;
}

async function printList(context: CommandContext, list: List, values: readonly unknown[]) {
  const options = values.at(-1) as Options;
  const given = givenTo(list.filters, { values, options }, list.words);
  const today = todayOf(context);
  const filter = readFields(list.filters, given, namesOf({ input: list.filters, command: list.words }));
  const { rows, json, totals } = await context.database.reading(async (tx) => {
    const asked: ListQuery<unknown> = {
      ...{ filter: await withPartnerIds(tx, list.filters, filter, null), scope: null, period: null, today, context },
      ...{ sort: sortOf(list, options), after: null, limit: options.limit ?? list.most ?? null },
    };
    const found = await list.read(tx, asked);
    return {
      rows: found,
      json: list.json !== undefined && context.output.json ? await list.json(tx, found, today) : found,
      totals:
        found.length === 0 || context.output.json
          ? []
          : (await readSums(tx, list, asked, asked.limit === null ? found : null)).totals,
    };
  });
  // If an option is given, the list may be empty only because the option filters rows out. An argument only selects
  // whose rows are listed.
  const isFiltered = Object.keys(given).some(
    (name) => list.words?.arguments?.[name] === undefined && (name !== 'as_of' || list.first !== undefined),
  );
  const none =
    list.none !== undefined && !isFiltered
      ? await withCommands(list.none, list.first === undefined ? [] : [list.first])
      : `No ${list.one}s found.`;
  const people = () =>
    [tableOf(list, rows, today), ...(totals.length === 0 ? [] : [totalsOf(list, totals)])].join('\n\n');
  await present(
    context,
    list.command,
    options,
    json,
    () => sheetOf(list, rows, today),
    () => (rows.length === 0 ? none : people()),
  );
  return list.attention?.(rows) ? EXIT.attention : EXIT.done;
}

/** Lists rows as a table. On a terminal, columns that do not fit are dropped. */
export function tableOf(list: List, rows: readonly unknown[], today: string) {
  const values = (name: string) =>
    rows.map((row) => inTable(cellOf(list, name, row, today), columnOf(list, name), row));
  const shown = list.terminal.filter((name) => {
    const { width: least = 0, unlessSame } = columnOf(list, name);
    return fits(least) && isShown(list, name, rows, today) && (unlessSame !== true || new Set(values(name)).size > 1);
  });
  const columns = shown.map(values);
  return table(
    shown.map((name) => headingOf(list, name)),
    rows.map((_, at) => columns.map((column) => column[at] ?? '')),
  );
}

const fits = (width: number) => (outputWidth() ?? Number.POSITIVE_INFINITY) >= width;

function headingOf(list: List, name: string) {
  const { heading, type, cut } = columnOf(list, name);
  const mark = type === 'amount' || type === 'count' ? '>' : cut ? '~' : '';
  return `${mark}${uncapitalized(heading)}${type === 'instant' ? ' (UTC)' : ''}`;
}

function inTable(value: Value, column: Column<unknown>, row: unknown) {
  if (!(value instanceof Amount)) return inTime(textOf(value), column.type);
  return column.look === 'quiet' && isQuiet(column, value, row) ? '' : groupThousands(value.toString());
}

const inTime = (text: string, type: Column<unknown>['type']) =>
  type === 'instant' ? text.slice(0, 16).replace('T', ' ') : type === 'date' ? text.slice(0, 10) : text;

function totalsOf(list: List, totals: readonly Total[]) {
  const names = [...new Set(totals.flatMap((total) => Object.keys(total)))].filter((name) => {
    const { unlessZero, width = 0 } = columnOf(list, name);
    return fits(width) && (!unlessZero || totals.some((total) => total[name]?.isZero() === false));
  });
  return table(
    ['total', ...names.map((name) => `>${uncapitalized(columnOf(list, name).heading)}`)],
    totals.map((total) => [
      Object.values(total)[0]?.currency ?? '',
      ...names.map((name) => groupThousands(total[name]?.toString() ?? '')),
    ]),
  );
}
