/** Rows that are not recorded until a person decides, requested reversals among them: `reckoner ledger held`. */

import { z } from 'zod';
import { heldRowJson } from '#actions/held';
import { Transaction } from '#database/transaction';
import { isRequest } from '#ledger/held';
import { HeldRow, readHeldRows } from '#ledger/held.sql';
import { reasonToHold } from '#ledger/import';
import { ToDo, toDo } from '#remedy';
import { Amount, names } from '#values';
import { defineList, flag, given, ListQuery, partner } from './list.ts';

const filters = z.strictObject({
  partner: partner('Only rows of this partner.', { value: 'id' }).optional(),
  all: flag('Decided too', 'Also rows that were recorded or discarded.').optional(),
});
type HeldFilter = z.output<typeof filters>;

const readRows = (tx: Transaction, { filter, scope, after, limit }: ListQuery<HeldFilter>) => {
  const { partner, all } = given(filters, filter);
  return readHeldRows(tx, { partner, undecided: all !== true, scope, after, limit });
};

const of = (amount: string, { currency }: HeldRow) => Amount.of(amount, currency);
const isOpen = ({ decision }: HeldRow) => decision === null;

const remediesOf = (row: HeldRow) => {
  const id = String(row.held_row_id);
  return isRequest(row)
    ? grantOrRefuse(id)
    : [toDo('Record it', 'rows.release', { rows: [id] }), toDo('Discard it', 'rows.discard', { rows: [id] })];
};

/** The remedies of a reversal that waits. */
export const grantOrRefuse = (row: string): readonly ToDo[] => [
  toDo('Grant it', 'reversal.grant', { row }),
  toDo('Refuse it', 'reversal.refuse', { row }),
];

export const heldRows = defineList({
  command: 'ledger held',
  summary: 'List rows that are not recorded until a person decides',
  title: 'Held rows',
  one: 'held row',
  none: 'No rows are held.',
  help: `Record a row that is a sale of its own, or discard a row that repeats one. Grant
or refuse a reversal:
  reckoner ledger release 12 --reason 'two seats'
  reckoner ledger discard 13 14 --reason 'sent twice'
  reckoner reversal grant 15 --reason 'event canceled'`,
  filters,
  sorts: ['held_row_id', 'held_row_id'],
  columns: {
    held_row_id: { heading: 'Row', type: 'count' },
    partner_id: {},
    partner_name: { cut: true, to: ({ partner_id }) => ['partners', partner_id] },
    kind: { value: ({ kind }) => kind.replace('_', ' '), unlessSame: true },
    own_id: { heading: 'Id', look: 'id' },
    accepted_at: { heading: 'Accepted', type: 'instant' },
    accepted_on: { heading: 'Accepted', type: 'date', value: ({ accepted_at }) => accepted_at },
    currency: { heading: '' },
    amount: { type: 'amount', value: (row) => of(row.invoice_amount, row) },
    why: { cut: true, look: 'wrap', value: ({ sign, repeats }) => reasonToHold(sign, repeats) },
    source: { heading: 'From', cut: true, width: 120 },
    recorded_at: { heading: 'Since', type: 'instant' },
    status: { value: ({ decision }) => decision ?? 'held', unlessSame: true },
  },
  sheet: names('held_row_id partner_id kind own_id accepted_at currency amount why source recorded_at status'),
  terminal: names('held_row_id partner_id kind own_id accepted_at amount currency why source status'),
  page: names('held_row_id partner_name kind own_id accepted_on amount why source'),
  ticks: {
    ...{ field: 'rows', actions: ['rows.release', 'rows.discard'] },
    of: (row) => (isOpen(row) && !isRequest(row) ? String(row.held_row_id) : null),
  },
  remedies: (row) => (isOpen(row) ? remediesOf(row).map((each) => ({ ...each, partner: row.partner_id })) : []),
  key: ({ held_row_id }) => String(held_row_id),
  summed: ['amount'],
  read: readRows,
  json: async (_tx, rows) => rows.map(heldRowJson),
});
