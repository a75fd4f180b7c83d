/**
 * The position: what changed since a day, and for each currency what is open, overdue, received and expected by week,
 * who owes most, and the days sales outstanding. It reads documents and payments, never ledger rows.
 */
import { DateTime } from 'luxon';
import { Transaction } from '#database/transaction';
import { Installation } from '#people/audit-events';
import { Scope } from '#people/scope';
import { columnsOf, Sheet } from '#sheet';
import { table } from '#text-table';
import { Amount, addDays, compare, dateName, groupThousands, plural, workingDaysFrom } from '#values';
import { daysSalesOutstanding } from './days-sales-outstanding.sql.ts';
import { ChangeKind, Flow, OpenSum, readChanges, readFlows, readOpenSums } from './position.sql.ts';

/** The weeks shown before and from this week, this week included. */
const WEEKS = 8;
const TOP_PARTNERS = 5;

type Change = Readonly<{
  kind: ChangeKind;
  count: number;
  /** In the currency with the most changes first. Empty for changes without money. */
  sums: readonly Readonly<{ currency: string; count: number; amount: string }>[];
}>;

/** `week` is the Monday of the week. */
export type Week = Readonly<{ week: string; amount: string }>;

export type CurrencyPosition = Readonly<{
  currency: string;
  open_documents: number;
  open: string;
  overdue: string;
  credit: string;
  /** Null if nothing was billed. */
  days_sales_outstanding: number | null;
  received: readonly Week[];
  /** Open invoices by the week of their due date, without overdue ones. The last week has all later ones too. */
  expected: readonly Week[];
  owing: readonly Readonly<{ partner_id: string; partner_name: string; open: string; overdue: string }>[];
}>;

export type Position = Readonly<{
  today: string;
  since: string;
  changes: readonly Change[];
  currencies: readonly CurrencyPosition[];
}>;

type PositionQuestion = Readonly<{ since?: string | undefined; today: string; scope?: Scope }>;

const mondayOf = (day: string) => DateTime.fromISO(day, { zone: 'utc' }).startOf('week').toFormat('yyyy-MM-dd');

/** Reads the position today. Changes are those since the last working day, or since `since`. */
export async function readPosition(
  tx: Transaction,
  { settings }: Pick<Installation, 'settings'>,
  { since, today, scope = null }: PositionQuestion,
): Promise<Position> {
  const monday = mondayOf(today);
  const weeks = Array.from({ length: 2 * WEEKS - 1 }, (_, at) => addDays(monday, 7 * (at - WEEKS + 1)));
  const [first, last] = [weeks[0] as string, weeks.at(-1) as string];
  const sums = await readOpenSums(tx, { scope, today, lastWeek: last, partners: TOP_PARTNERS });
  const flows = await readFlows(tx, { scope, today, receivedFrom: first });
  const from = since ?? workingDaysFrom(today, -1);
  const start = DateTime.fromISO(from, { zone: settings.time_zone }).toISO() as string;
  const changes = await readChanges(tx, { since: start, scope });
  return { today, since: from, changes: changesOf(changes), currencies: currenciesOf(sums, flows, weeks) };
}

function changesOf(rows: Awaited<ReturnType<typeof readChanges>>): Change[] {
  return CHANGE_KINDS.flatMap((kind) => {
    const own = rows.filter((each) => each.kind === kind);
    if (own.length === 0) return [];
    const sums = own.flatMap(({ currency, count, amount }) =>
      currency === null || amount === null ? [] : [{ currency, count, amount: Amount.of(amount, currency).toString() }],
    );
    sums.sort((one, other) => other.count - one.count || compare(one.currency, other.currency));
    return [{ kind, count: own.reduce((sum, { count }) => sum + count, 0), sums }];
  });
}

/** The currency with the most open documents comes first. Amounts in different currencies cannot be ranked. */
function currenciesOf(sums: readonly OpenSum[], flows: readonly Flow[], weeks: readonly string[]): CurrencyPosition[] {
  const currencies = [...new Set([...sums, ...flows].map(({ currency }) => currency))];
  return currencies
    .map((currency) => {
      const own = sums.filter((each) => each.currency === currency);
      return currencyOf(
        currency,
        own,
        flows.filter((each) => each.currency === currency),
        weeks,
      );
    })
    .sort((one, other) => other.open_documents - one.open_documents || compare(one.currency, other.currency));
}

function currencyOf(currency: string, sums: readonly OpenSum[], flows: readonly Flow[], weeks: readonly string[]) {
  const money = (amount = '0') => Amount.of(amount, currency).toString();
  const total = sums.find(({ of }) => of === 'currency');
  const due = sums.filter(({ of }) => of === 'week');
  const byWeek = (found: readonly Readonly<{ week: string | null; amount: string }>[], shown: readonly string[]) =>
    shown.map((week) => ({ week, amount: money(found.find((each) => each.week === week)?.amount) }));
  const open = Amount.of(total?.open ?? '0', currency);
  return {
    ...{ currency, open_documents: total?.documents ?? 0, open: open.toString() },
    ...{ overdue: money(total?.overdue), credit: money(total?.credit) },
    days_sales_outstanding: daysSalesOutstanding(
      open,
      flows.find(({ week }) => week === null),
    ),
    received: byWeek(flows, weeks.slice(0, WEEKS)),
    expected: byWeek(
      due.map((each) => ({ week: each.week, amount: each.open })),
      weeks.slice(WEEKS - 1),
    ),
    owing: sums
      .filter(({ of }) => of === 'partner')
      .map((each) => ({
        ...{ partner_id: each.partner_id ?? '', partner_name: each.partner_name ?? '' },
        ...{ open: money(each.open), overdue: money(each.overdue) },
      })),
  };
}

/** What each kind of change is called after its count. */
const CHANGES: Readonly<Record<ChangeKind, readonly [one: string, many: string]>> = {
  invoice: ['invoice issued', 'invoices issued'],
  credit_note: ['credit note issued', 'credit notes issued'],
  statement: ['statement issued', 'statements issued'],
  voided: ['document voided', 'documents voided'],
  received: ['payment recorded', 'payments recorded'],
  reversed: ['payment reversed', 'payments reversed'],
  written_off: ['write-off', 'write-offs'],
  disputed: ['dispute opened', 'disputes opened'],
  dispute_ended: ['dispute ended', 'disputes ended'],
  held: ['document put on hold', 'documents put on hold'],
  released: ['hold released', 'holds released'],
  partners: ["change of a partner's data", "changes of partners' data"],
  settings: ['change of the settings', 'changes of the settings'],
};
const CHANGE_KINDS = Object.keys(CHANGES) as ChangeKind[];

export const changeName = ({ kind, count }: Change) => plural(count, ...CHANGES[kind]);

export function describePosition({ today, since, changes, currencies }: Position) {
  const amounts = (sums: Change['sums']) => sums.map((each) => Amount.of(each.amount, each.currency).forPeople());
  const weekTable = (heading: string, currency: string, weeks: readonly Week[]) =>
    table(
      [heading, `>${currency}`],
      weeks.map(({ week, amount }) => [week, groupThousands(amount)]),
    );
  return [
    `Position on ${dateName(today)}`,
    [
      `Since ${dateName(since)}:`,
      ...changes.map((each) => `  ${[changeName(each), ...amounts(each.sums)].join(', ')}`),
      ...(changes.length === 0 ? ['  nothing changed'] : []),
    ].join('\n'),
    ...currencies.map((each) => {
      const { currency, days_sales_outstanding: days } = each;
      return [
        `${currency}: ${plural(each.open_documents, 'open document')}`,
        table(
          ['>open invoices', '>overdue', '>open credit', '>days sales outstanding'],
          [[...[each.open, each.overdue, each.credit].map(groupThousands), days === null ? 'none billed' : days]],
        ),
        weekTable('received in the week of', currency, each.received),
        weekTable('expected in the week of', currency, each.expected),
        ...(each.owing.length === 0
          ? []
          : [
              table(
                ['~owes most', '>open', '>overdue'],
                each.owing.map((one) => [one.partner_name, ...[one.open, one.overdue].map(groupThousands)]),
              ),
            ]),
      ].join('\n\n');
    }),
  ].join('\n\n');
}

/** One figure per row. Changes are on the console's page and in JSON. */
export const positionSheet = ({ currencies }: Pick<Position, 'currencies'>): Sheet => ({
  name: 'Position',
  columns: columnsOf('currency figure week:date partner_id partner_name amount:amount days:count'),
  rows: currencies.flatMap(({ currency, open, overdue, credit, days_sales_outstanding: days, ...each }) => [
    ...Object.entries({ open, overdue, credit }).map(([figure, amount]) => ({ currency, figure, amount })),
    { currency, figure: 'days_sales_outstanding', days },
    ...(['received', 'expected'] as const).flatMap((figure) =>
      each[figure].map((row) => ({ currency, figure, ...row })),
    ),
    ...each.owing.map((row) => ({ currency, figure: 'owing', ...row, amount: row.open })),
  ]),
});
