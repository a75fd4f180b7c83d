/** Payers' known bank accounts: `reckoner payment accounts`. */

import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { readPayerAccounts } from '#payments/payer-accounts';
import { names } from '#text';
import { defineList } from './list.ts';

export const payerAccounts = defineList({
  command: 'payment accounts',
  summary: 'List the known bank accounts of payers',
  title: 'Payer accounts',
  one: 'payer account',
  ofLedger: true,
  none: 'No payer accounts are known yet.',
  current: true,
  filters: z.strictObject({}),
  sorts: ['payer_account', 'payer_account'],
  columns: {
    payer_account: { heading: 'Account' },
    partner_ids: { heading: 'Partner', value: ({ partners }) => partners.join(' ') },
    names: { heading: 'Partner', cut: true, value: ({ names }) => names.join(', ') },
    payments: { type: 'count' },
    last_received_on: { heading: 'Last', type: 'date' },
    used: { heading: '', value: ({ partners }) => (partners.length > 1 ? 'several partners: not used' : '') },
  },
  sheet: names('payer_account partner_ids names payments last_received_on'),
  terminal: names('payer_account names payments last_received_on used'),
  read: (tx: Transaction) => readPayerAccounts(tx),
});
