/** Open disputes: `reckoner dispute list`. */

import { z } from 'zod';
import { disputeJson } from '../actions/dispute.ts';
import type { Transaction } from '../database/transaction.ts';
import { type OpenDispute, readOpenDisputes } from '../documents/disputes.sql.ts';
import { Amount, compare, names, sumsOf } from '../values.ts';
import { defineList, type ListQuery, pageOf, type Total } from './list.ts';

const of = (amount: string, { currency }: OpenDispute): Amount => Amount.of(amount, currency);

const keyOf = ({ number }: OpenDispute): string => number;

const readRows = async (tx: Transaction, asked: ListQuery<unknown>): Promise<OpenDispute[]> =>
  pageOf(await readOpenDisputes(tx, { scope: asked.scope }), asked, keyOf);

async function readTotals(tx: Transaction, { scope }: ListQuery<unknown>): Promise<Total[]> {
  const open = await readOpenDisputes(tx, { scope });
  return sumsOf(open.map((row) => of(row.amount, row)))
    .sort((one, other) => compare(one.currency, other.currency))
    .map((disputed) => ({ Disputed: disputed }));
}

const lateOf = ({ promised_on }: OpenDispute, today: string): string =>
  promised_on !== null && promised_on < today ? 'late' : '';

export const disputes = defineList({
  command: 'dispute list',
  summary: 'List open invoice disputes by promised date',
  title: 'Disputes',
  one: 'dispute',
  none: 'No invoices are in dispute.',
  filters: z.strictObject({}),
  sorts: ['promised_on', 'promised_on'],
  columns: {
    number: { heading: 'Invoice', to: ({ number }) => ['invoices', number] },
    partner_id: {},
    partner_name: { cut: true },
    amount: { heading: 'Disputed', type: 'amount' },
    balance: { type: 'amount' },
    currency: { heading: '' },
    due_on: { heading: 'Due', type: 'date' },
    disputed_on: { heading: 'Since', type: 'date' },
    promised_on: { heading: 'Promised', type: 'date' },
    late: { value: lateOf },
    promise: {
      heading: 'Promised',
      value: (row, today) => [row.promised_on, lateOf(row, today)].filter((each) => each).join(', '),
    },
    owner: {},
    reason: { cut: true },
    rows: { value: () => 'Rows', to: ({ number }) => ['rows', { document: number }] },
  },
  sheet: names(
    'number partner_id partner_name currency amount balance due_on disputed_on promised_on late owner reason',
  ),
  terminal: names('number partner_name amount balance currency disputed_on promise owner reason'),
  page: names('number partner_name amount balance disputed_on promise owner reason rows'),
  key: keyOf,
  keyed: 'text',
  read: readRows,
  json: async (_tx, rows) => rows.map(disputeJson),
  totals: readTotals,
});
