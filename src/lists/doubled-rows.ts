/** Rows of the API in open months that may repeat another one: `reckoner ledger doubled`. */

import { z } from 'zod';
import { doubledRowJson } from '#actions/held';
import { Transaction } from '#database/transaction';
import { DoubledRow, readDoubledRows } from '#ledger/doubles.sql';
import { toDo } from '#remedy';
import { Amount, names } from '#values';
import { defineList, given, ListQuery, partner } from './list.ts';

const filters = z.strictObject({
  partner: partner('Only rows of this partner.', { value: 'id' }).optional(),
});

const readRows = (tx: Transaction, { filter, scope, after, limit }: ListQuery<z.output<typeof filters>>) =>
  readDoubledRows(tx, { ...given(filters, filter), scope, after, limit });

const of = ({ invoice_amount, currency }: DoubledRow) => Amount.of(invoice_amount, currency);

export const doubledRows = defineList({
  command: 'ledger doubled',
  summary: 'List recorded API rows that may repeat another one',
  title: 'Doubled rows',
  one: 'doubled row',
  none: 'No rows of the API repeat another one.',
  filters,
  sorts: ['entry_id', 'entry_id'],
  columns: {
    entry_id: { heading: 'Row', type: 'count' },
    partner_id: {},
    partner_name: { cut: true, to: ({ partner_id }) => ['partners', partner_id] },
    kind: { value: ({ kind }) => kind.replace('_', ' '), unlessSame: true },
    own_id: { heading: 'Id', look: 'id' },
    repeats: { look: 'id' },
    order_reference: { heading: 'Order', cut: true },
    accepted_at: { heading: 'Accepted', type: 'instant' },
    currency: { heading: '' },
    amount: { type: 'amount', value: (row) => of(row) },
  },
  sheet: names('entry_id partner_id kind own_id repeats order_reference accepted_at currency amount'),
  terminal: names('partner_id kind own_id repeats order_reference accepted_at amount currency'),
  page: names('partner_name kind own_id repeats order_reference accepted_at amount'),
  remedies: ({ partner_id }) => [
    { ...toDo('Keep all of the partner', 'rows.separate', { partner: partner_id }), partner: partner_id },
  ],
  key: ({ entry_id }) => String(entry_id),
  summed: ['amount'],
  read: readRows,
  json: async (_tx, rows) => rows.map(doubledRowJson),
});
