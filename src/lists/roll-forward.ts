/** The roll-forward of what partners owe: `reckoner report roll-forward`, and the console's report. */
import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { readPresentDay, readTiedBalances } from '#reports/balances.sql';
import { refuseFutureDay } from '#reports/future-day';
import {
  GROUPS,
  MOVEMENTS,
  Movement,
  RollForwardRow,
  RollForwardScope,
  readRollForward,
} from '#reports/roll-forward.sql';
import { Amount, addDays, Month, monthsBetween, names } from '#values';
import { choice, defineList, given, Link, ListQuery, month, pageOf, partner, text, withDigits } from './list.ts';

export const rollForwardFilters = {
  from: month('From', 'The first month. Default: eleven months before the last one.').optional(),
  to: month('To', 'The last month. Default: the current month.').optional(),
  group: choice(
    'Group by',
    'By partner (default), by payer with its family, or all partners together.',
    GROUPS,
  ).optional(),
  partner: partner('Only this partner. By family: also the partners that it pays for.', { value: 'id' }).optional(),
  currency: text('Currency', 'Only this currency.').optional(),
};

export const GROUP_VIEWS = [
  ['By partner', {}],
  ['By family', { group: 'family' }],
  ['All partners', { group: 'all' }],
] as const;

/** The statement of a payer includes its family. */
export const statementOf = (partnerId: string, at: Readonly<Record<string, string>>): Link => [
  `partners/${encodeURIComponent(partnerId)}/statement`,
  at,
];

const filters = z.strictObject(rollForwardFilters);
type Filter = z.output<typeof filters>;
type Asked = Omit<ListQuery<Filter>, 'sort'> & { readonly sort: string };

const MOST_MONTHS = 120;

const COLUMNS = ['opening', ...MOVEMENTS, 'closing'] as const;

/** The months, partners and currencies that are asked for. Refusals: date_in_future, argument_invalid. */
export async function scopeOf(
  tx: Transaction,
  { filter, scope, today }: Pick<ListQuery<Filter>, 'filter' | 'scope' | 'today'>,
): Promise<RollForwardScope> {
  const { from, to, group, partner: partnerId, currency } = given(filters, filter);
  if (to !== null) await refuseFutureDay(tx, `${to}-01`, today, '--to');
  const present = await readPresentDay(tx, today);
  const last = to ?? (present.slice(0, 7) as Month);
  const first = from ?? (addDays(`${last}-01`, -330).slice(0, 7) as Month);
  const count = monthsBetween(first, last).length;
  if (count === 0 || count > MOST_MONTHS) {
    const reason = count === 0 ? `is after ${last}` : `is more than ${MOST_MONTHS} months before ${last}`;
    throw refuse('argument_invalid', { argument: '--from', value: first, reason });
  }
  return { from: first, to: last, group: group ?? 'partner', partner: partnerId, currency, scope, present };
}

async function readRows(tx: Transaction, { sort, ...asked }: Asked): Promise<RollForwardRow[]> {
  const scope = await scopeOf(tx, asked);
  const openings = await readTiedBalances(tx, addDays(`${scope.from}-01`, -1));
  const rows = await readRollForward(tx, { ...scope, openings, newestFirst: sort === '-month' });
  return rows.map((row) => withDigits(row, ...COLUMNS, 'aging'));
}

const differs = ({ closing, aging, currency }: RollForwardRow) =>
  !Amount.of(closing, currency).equals(Amount.of(aging, currency));

/** To the facts of a cell. */
const movementsTo =
  (movement: Movement) =>
  ({ month: of, group, partner_id, currency, moved }: RollForwardRow): Link | null => {
    if (!moved.includes(movement)) return null;
    return [
      'reports/movements',
      {
        ...{ from: of, to: of, group, currency, movement },
        ...(partner_id !== null ? { partner: partner_id } : group === 'all' ? {} : { unknown: 'yes' }),
      },
    ];
  };

/** To the statement of the partner or payer; for others, to the aging. */
const openTo = ({ month: of, partner_id, currency, as_of }: RollForwardRow): Link =>
  partner_id === null ? ['aging', { as_of, currency }] : statementOf(partner_id, { from: `${of}-01`, as_of });

const keyOf = ({ month: of, currency, partner_id }: RollForwardRow) => [of, currency, partner_id ?? ''].join(' ');

const quiet = (movement: Movement, heading?: string) => ({
  ...(heading && { heading }),
  ...({ type: 'amount', look: 'quiet', bare: true, unlessZero: true } as const),
  to: movementsTo(movement),
});

export const rollForward = defineList({
  command: 'report roll-forward',
  summary: 'Roll the receivables forward by month; exit 4 if a balance does not tie to the aging',
  help: `A balance is billed receivables less open credit and unapplied cash. Each
closing balance is compared with the aging at the end of its month.`,
  title: 'Roll-forward',
  one: 'row',
  none: 'No partner has owed anything yet.',
  attention: (rows) => rows.some(differs),
  filters,
  views: GROUP_VIEWS,
  sorts: ['-month', 'partner_id'],
  columns: {
    partner_id: {},
    partner_name: {
      ...{ heading: 'Partner', cut: true, unlessSame: true },
      value: ({ partner_name, partner_id, group }) =>
        partner_name ?? partner_id ?? (group === 'all' ? 'All partners' : 'Payer unknown'),
    },
    month: { type: 'month', look: 'soft' },
    currency: { heading: '', look: 'soft' },
    opening: { type: 'amount', look: 'quiet', bare: true },
    carried_over: { ...quiet('carried_over'), width: 110 },
    invoiced: quiet('invoiced'),
    tax: quiet('tax'),
    credited: quiet('credited'),
    cash: quiet('cash'),
    written_off: { ...quiet('written_off'), width: 110 },
    differences: { ...quiet('differences', 'Bank charges'), width: 110 },
    closing: { type: 'amount', bare: true, to: openTo },
    aging: { type: 'amount' },
    ties: {
      ...{ heading: '', type: 'marks' },
      value: (row) => [differs(row) ? { text: 'not as aging', tone: 'bad' } : { text: 'ties', tone: 'good' }],
    },
  },
  sheet: [...names('partner_id partner_name month currency'), ...COLUMNS, 'aging'],
  terminal: [...names('partner_name month currency'), ...COLUMNS],
  page: [...names('month partner_name currency'), ...COLUMNS, 'ties'],
  formulas: (row, cell, before) => ({
    closing: `SUM(${cell('opening')}:${cell('differences')})`,
    ...(before?.['partner_id'] === row['partner_id'] &&
      before?.['currency'] === row['currency'] && { opening: cell('closing', -1) }),
  }),
  summed: [...COLUMNS, 'aging'],
  // Balances of different months have no sum.
  balances: { opening: 'first', closing: 'last', aging: 'last' },
  totalled: 'partner_name',
  whole: true,
  key: keyOf,
  keyed: 'text',
  read: async (tx: Transaction, asked: ListQuery<Filter, '-month' | 'partner_id'>) =>
    pageOf(await readRows(tx, asked), asked, keyOf),
});
