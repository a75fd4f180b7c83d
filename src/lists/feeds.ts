/** Stated totals: `reckoner feed list`, and the console's Feeds. */

import { z } from 'zod';
import { feedLine } from '#actions/feed';
import { differencesOf } from '#close/stated';
import { readStatements, StatedTotals } from '#close/stated.sql';
import { Transaction } from '#database/transaction';
import { Amount, names } from '#values';
import { defineList, flag, ListQuery, month, partner, textOf } from './list.ts';

const filters = z.strictObject({
  month: month('Month', 'Only statements of this month.').optional(),
  partner: partner('Only statements of this partner.').optional(),
  differing: flag('Differing', 'Only statements that the ledger contradicts.').optional(),
});

const readRows = (
  tx: Transaction,
  { filter: { month, partner, differing }, scope, after, limit }: ListQuery<z.output<typeof filters>>,
) => {
  const [ofMonth = '', partnerId = ''] = after?.split(' ') ?? [];
  const last = after === null ? null : { month: ofMonth, partnerId };
  return readStatements(tx, { month, partnerId: partner, differing, scope, after: last, limit });
};

const amountsOf = ({ totals }: StatedTotals['stated']) =>
  Object.entries(totals).map(([currency, amount]) => Amount.of(amount, currency));

export const feeds = defineList({
  command: 'feed list',
  summary: 'List the totals that partners state of their months',
  title: 'Feeds',
  one: 'statement',
  none: 'No partner has stated totals.',
  first: { label: 'State them', action: 'feed.state', input: {} },
  help: 'Shows the latest statement of each partner and month.',
  filters,
  views: [
    ['All', {}],
    ['Differing', { differing: 'yes' }],
  ],
  sorts: ['-month', '-month'],
  columns: {
    month: { type: 'month' },
    partner_id: {},
    name: { heading: 'Partner', cut: true, to: ({ partner_id }) => ['partners', partner_id] },
    complete: {},
    stated_rows: { type: 'count', value: ({ stated }) => stated.entries },
    stated: { type: 'amount', value: ({ stated }) => amountsOf(stated) },
    recorded_rows: { type: 'count', value: ({ here }) => here.entries },
    recorded: { type: 'amount', value: ({ here }) => amountsOf(here) },
    stated_totals: { heading: 'Stated', value: ({ stated }) => textOf(amountsOf(stated)) },
    recorded_totals: { heading: 'Recorded', value: ({ here }) => textOf(amountsOf(here)) },
    difference_totals: { heading: 'Difference', value: (row) => textOf(amountsOf(differencesOf(row))) },
    difference: { type: 'amount', value: (row) => amountsOf(differencesOf(row)) },
    agrees: {},
    agreement: {
      ...{ heading: '', type: 'marks' },
      value: ({ agrees, complete }) => [
        agrees ? { text: 'agrees', tone: 'good' } : { text: 'differs', tone: complete ? 'bad' : 'warn' },
        ...(complete ? [] : [{ text: 'more to come', tone: 'plain' } as const]),
      ],
    },
    recorded_at: { heading: 'Stated at', type: 'instant', look: 'soft' },
    via: { heading: 'By', value: ({ via }) => (via === 'http' ? 'partner' : 'finance') },
  },
  sheet: names(
    'month partner_id name complete stated_rows stated_totals recorded_rows recorded_totals difference_totals',
    'agrees recorded_at via',
  ),
  terminal: names('month name stated_rows stated recorded_rows recorded difference agreement'),
  page: names('month name stated_rows stated recorded_rows recorded difference agreement recorded_at via'),
  remedies: ({ partner_id, month }) => [
    { label: 'State other totals', action: 'feed.state', input: { partnerId: partner_id, month }, partner: partner_id },
  ],
  key: ({ month, partner_id }) => `${month} ${partner_id}`,
  keyed: 'text',
  read: readRows,
  json: async (_tx, rows) => rows.map(feedLine),
});
