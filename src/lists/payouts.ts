/** Payouts that the processor sent to the bank: `reckoner payment payouts`. */

import { z } from 'zod';
import { payoutJson } from '#actions/payment/payout';
import { Transaction } from '#database/transaction';
import { PayoutRow, readPayouts } from '#payments/payouts.sql';
import { Amount, names } from '#values';
import { defineList } from './list.ts';

const of = (amount: string | null, { currency }: PayoutRow) => (amount === null ? null : Amount.of(amount, currency));

export const payouts = defineList({
  command: 'payment payouts',
  summary: "List the processor's payouts to the bank; exit 4 if a payout's contents are unknown",
  title: 'Payouts',
  one: 'payout',
  ofLedger: true,
  none: 'No payouts yet.',
  filters: z.strictObject({}),
  sorts: ['received_on', 'received_on'],
  columns: {
    payout_id: { heading: 'Id', type: 'count' },
    received_on: { heading: 'Received', type: 'date' },
    account: { heading: 'Our account' },
    currency: { heading: '' },
    amount: { type: 'amount' },
    gross: { type: 'amount' },
    fees: { type: 'amount' },
    fees_known: { heading: 'Fees', type: 'amount', value: (row) => of(row.fees, row) ?? '?' },
    of_account: { heading: 'Connected account' },
    payments: { value: ({ payments }) => payments.join(' ') },
    brought: {
      ...{ heading: 'Payments or account', cut: true },
      value: ({ gross, of_account, payments }) => (gross === null ? 'unknown' : (of_account ?? payments.join(' '))),
    },
  },
  sheet: names('payout_id received_on account currency amount gross fees of_account payments'),
  terminal: names('payout_id received_on amount currency fees_known brought'),
  summed: ['amount'],
  read: (tx: Transaction) => readPayouts(tx),
  json: async (_tx, rows) => rows.map(payoutJson),
  attention: (rows) => rows.some(({ gross }) => gross === null),
});
