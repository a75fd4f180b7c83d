/** The facts behind the roll-forward: `reckoner report movements`, and the pages that its cells lead to. */
import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { activityText } from '#reports/account-statement';
import { TIED_ACCOUNTS } from '#reports/balances.sql';
import { MOVEMENTS, MovementRow, readMovements } from '#reports/roll-forward.sql';
import { names } from '#values';
import { choice, defineList, flag, ListQuery, pageOf, withDigits } from './list.ts';
import { rollForwardFilters, scopeOf } from './roll-forward.ts';

const filters = z.strictObject({
  ...rollForwardFilters,
  movement: choice('Movement', 'Only this column of the roll-forward.', MOVEMENTS).optional(),
  unknown: flag('Payer unknown', 'Only cash of unknown payers.').optional(),
});
type Filter = z.output<typeof filters>;

type Row = MovementRow & { readonly key: string };

/** A document with tax has two movements, and cash that is assigned has one of each partner. */
async function readRows(tx: Transaction, asked: ListQuery<Filter>): Promise<Row[]> {
  const { movement = null, unknown = null, ...filter } = asked.filter;
  const scope = await scopeOf(tx, { ...asked, filter });
  const rows = await readMovements(tx, { ...scope, ...TIED_ACCOUNTS, movement, unknown });
  return rows.map((row, at) => ({ ...withDigits(row, 'amount'), key: String(at + 1) }));
}

export const movements = defineList({
  command: 'report movements',
  summary: 'List the movements of the roll-forward with their documents and payments',
  title: 'Movements',
  one: 'movement',
  none: 'No balance of a partner has changed yet.',
  filters,
  sorts: ['entry_on', 'entry_on'],
  columns: {
    entry_on: { heading: 'Entered', type: 'date', look: 'soft' },
    dated_on: { heading: 'Dated', type: 'date', look: 'soft', unlessSame: true },
    partner_id: {},
    partner_name: {
      ...{ heading: 'Partner', cut: true },
      value: ({ partner_name, partner_id }) => partner_name ?? partner_id ?? 'Payer unknown',
    },
    movement: { value: (row) => row.movement.replace('_', ' ') },
    fact: {},
    activity: {
      value: (row) => activityText(row),
      to: ({ document, payment_id }) =>
        document !== null ? ['invoices', document] : payment_id === null ? null : ['payments', `payment-${payment_id}`],
    },
    document: {},
    payment_id: { type: 'count' },
    reference: {},
    currency: {},
    amount: { type: 'amount' },
  },
  sheet: names('entry_on dated_on partner_id partner_name movement fact document payment_id reference currency amount'),
  terminal: names('entry_on dated_on partner_name movement activity amount currency'),
  page: names('entry_on activity partner_name movement dated_on amount'),
  summed: ['amount'],
  totalled: 'partner_name',
  whole: true,
  key: ({ key }) => key,
  keyed: 'text',
  read: async (tx: Transaction, asked: ListQuery<Filter, 'entry_on'>) =>
    pageOf(await readRows(tx, asked), asked, ({ key }) => key),
});
