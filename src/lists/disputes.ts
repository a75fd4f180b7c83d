/** Open disputes: `reckoner dispute list`. */

import { z } from 'zod';
import { disputeJson } from '#actions/dispute';
import { query, Transaction } from '#database/transaction';
import { DISPUTE, OPEN_DISPUTES, OpenDispute } from '#documents/disputes.sql';
import { names } from '#text';
import { defineList, given, ListQuery, Sums, soughtAmount, soughtText } from './list.ts';
import { sortedBy, sortsOf, sumsBy } from './statement.ts';

const filters = z.strictObject({
  amount: soughtAmount('Amount', 'Only disputes of exactly this amount.').optional(),
  text: soughtText(
    'Invoice, partner, owner, reason',
    'Only disputes with this text in the number of the invoice, the partner, the owner or the reason.',
  ).optional(),
});

const VISIBLE = '(:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))';

const WHERE = `${VISIBLE}
         AND (:amount::numeric IS NULL OR t.amount = :amount::numeric)
         AND (:text::text IS NULL OR strpos(lower(concat_ws(E'\\n', d.number, d.partner_name, d.partner_id,
                personal(t.owner), t.reason)), lower(:text)) > 0)`;

const SORTED = sortedBy({
  select: () => DISPUTE,
  from: OPEN_DISPUTES,
  where: WHERE,
  visible: VISIBLE,
  id: 'd.number',
  type: 'text',
  by: {
    promised_on: "coalesce(t.promised_on, 'infinity'::date)",
    number: 'd.number',
    partner_name: 'lower(d.partner_name)',
    amount: 't.amount',
    balance: 'b.balance',
    disputed_on: 't.disputed_on',
  },
});
type DisputeQuery = ListQuery<z.output<typeof filters>, keyof typeof SORTED>;

const readRows = (tx: Transaction, { filter, scope, sort, after, limit }: DisputeQuery): Promise<OpenDispute[]> =>
  query(tx, SORTED[sort], { ...given(filters, filter), scope, after, limit });

async function readTotals(tx: Transaction, { filter, scope }: DisputeQuery): Promise<Sums> {
  return sumsBy(
    await query<{ currency: string; count: number; amount: string; balance: string }>(
      tx,
      `SELECT d.currency, count(*)::int AS count, sum(t.amount) AS amount, sum(b.balance) AS balance
     FROM ${OPEN_DISPUTES} WHERE ${WHERE} GROUP BY d.currency ORDER BY d.currency`,
      { ...given(filters, filter), scope },
    ),
  );
}

const lateOf = ({ promised_on }: OpenDispute, today: string): string =>
  promised_on !== null && promised_on < today ? 'late' : '';

export const disputes = defineList({
  command: 'dispute list',
  summary: 'List open invoice disputes by promised date',
  title: 'Disputes',
  one: 'dispute',
  none: 'No invoices are in dispute.',
  filters,
  sorts: sortsOf(SORTED, 'promised_on', 'promised_on'),
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
  page: names('number partner_name amount balance disputed_on promised_on late owner reason rows'),
  key: ({ number }) => number,
  keyed: 'text',
  read: readRows,
  json: async (_tx, rows) => rows.map(disputeJson),
  sums: readTotals,
});
