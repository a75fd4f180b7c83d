/** Payments: `reckoner payment list` and the console's All payments. */

import { z } from 'zod';
import { query, type Transaction } from '../database/transaction.ts';
import { PAYMENT_STATUSES, type PaymentStatus } from '../payments/enums.ts';
import { type PaymentJson, paymentJson } from '../payments/payment.ts';
import { readPayments } from '../payments/payments.sql.ts';
import { Amount, names } from '../values.ts';
import {
  choice,
  date,
  defineList,
  given,
  type ListQuery,
  type Mark,
  partner,
  soughtAmount,
  soughtText,
} from './list.ts';

type PaymentRow = PaymentJson & { readonly partner_name: string | null };

const filters = z.strictObject({
  partner: partner('Only payments of this partner.', { value: 'id' }).optional(),
  status: choice('Status', `${PAYMENT_STATUSES.join(', ')}.`, PAYMENT_STATUSES).optional(),
  amount: soughtAmount('Amount', 'Only payments of exactly this amount.').optional(),
  text: soughtText(
    'Reference or payer',
    'Only payments with this text in a reference, or in the name or account of the payer.',
  ).optional(),
  from: date('From', 'Received on or after this day.').optional(),
  to: date('To', 'Received on or before this day.').optional(),
});
type PaymentFilter = z.output<typeof filters>;

/** Payments that were attributed to these partners at any time. `payment_balances` states the current partner. */
const OF_SCOPE = `SELECT payment_id FROM payments WHERE partner_id = ANY (:scope::text[])
       UNION SELECT payment_id FROM payment_assignments WHERE partner_id = ANY (:scope::text[])`;
const OF_PARTNER = `SELECT payment_id FROM payments WHERE partner_id = :partner
       UNION SELECT payment_id FROM payment_assignments WHERE partner_id = :partner`;

/**
 * Money from an unknown payer is only for users who see every partner. A subquery reads the partner's name only for the
 * rows of the page. With the name as a joined column, the database read every payment.
 */
const found = (after: string, order: string) => `
     SELECT p.payment_id, (SELECT name FROM partners WHERE partner_id = b.partner_id) AS partner_name
     FROM payments p JOIN payment_balances b USING (payment_id) LEFT JOIN partners n ON n.partner_id = b.partner_id
     WHERE (:after::bigint IS NULL OR ${after})
       AND (:scope::text[] IS NULL OR (b.partner_id = ANY (:scope::text[]) AND p.payment_id IN (${OF_SCOPE})))
       AND (:partner::text IS NULL OR (b.partner_id = :partner AND p.payment_id IN (${OF_PARTNER})))
       AND (:status::text IS NULL OR b.status = :status)
       -- Few payments are unapplied, so the index on them comes first.
       AND (:status::text IS NULL OR :status NOT IN ('unapplied', 'partly_applied')
            OR p.payment_id IN (SELECT payment_id FROM unapplied_payments))
       AND (:status::text IS NULL OR :status <> 'reversed'
            OR p.payment_id IN (SELECT payment_id FROM payment_reversals))
       AND (:amount::numeric IS NULL OR p.amount = :amount::numeric)
       AND (:from::date IS NULL OR p.received_on >= :from::date)
       AND (:to::date IS NULL OR p.received_on <= :to::date)
       AND (:text::text IS NULL OR strpos(lower(concat_ws(E'\\n', personal(p.reference), personal(p.payer_name),
              personal(p.payer_account), n.name,
              (SELECT string_agg(personal(s.reference), E'\\n') FROM payment_sources s
               WHERE s.payment_id = p.payment_id))),
              lower(:text)) > 0)
     ORDER BY ${order} LIMIT :limit`;

const sorted = (by: string, order: 'ASC' | 'DESC') =>
  found(
    `(${by}, p.payment_id) ${order === 'ASC' ? '>' : '<'} (
       SELECT ${by}, p.payment_id FROM payments p JOIN payment_balances b USING (payment_id)
       WHERE p.payment_id = :after AND (:scope::text[] IS NULL OR b.partner_id = ANY (:scope::text[])))`,
    `${by} ${order}, p.payment_id ${order}`,
  );

const SORTED = {
  '-payment_id': found('p.payment_id < :after', 'p.payment_id DESC'),
  payment_id: found('p.payment_id > :after', 'p.payment_id'),
  received_on: sorted('p.received_on', 'ASC'),
  '-received_on': sorted('p.received_on', 'DESC'),
  amount: sorted('p.amount', 'ASC'),
  '-amount': sorted('p.amount', 'DESC'),
} as const;
type PaymentSort = keyof typeof SORTED;

/** Reads the ids first and then the details, so that only one statement reads payments. */
async function readRows(tx: Transaction, asked: ListQuery<PaymentFilter, PaymentSort>): Promise<PaymentRow[]> {
  const lines = await query<{ payment_id: number; partner_name: string | null }>(tx, SORTED[asked.sort], {
    ...given(filters, asked.filter),
    ...{ scope: asked.scope, after: asked.after, limit: asked.limit },
  });
  const payments = await readPayments(tx, { ids: lines.map(({ payment_id }) => payment_id) });
  const rows = new Map(payments.map((each) => [each.payment_id, paymentJson(each)]));
  return lines.flatMap(({ payment_id, partner_name }) => {
    const row = rows.get(payment_id);
    return row === undefined ? [] : [{ ...row, partner_name }];
  });
}

const of = (amount: string, { currency }: PaymentRow): Amount => Amount.of(amount, currency);

/** The shortfall against the paid documents, which was posted to bank charges. */
const bankCharges = (row: PaymentRow): Amount =>
  row.applications
    .filter(({ unapplied_on }) => unapplied_on === null)
    .reduce((sum, each) => sum.plus(of(each.small_difference ?? '0', row)), Amount.zero(row.currency));

/** The documents that the payment settles, or the first suggestion with a question mark. */
function documentsOf({ applications, suggestions }: PaymentRow): string {
  const numbers = applications.filter((each) => each.unapplied_on === null).map((each) => each.number);
  const [suggestion] = suggestions;
  if (numbers.length > 0 || suggestion === undefined) return numbers.join(' ');
  return suggestion.number === null ? `duplicate of ${suggestion.same_as}?` : `${suggestion.number}?`;
}

const TONES = { applied: 'good', partly_applied: 'warn', unapplied: 'warn', reversed: 'plain' } as const;
export const standingOf = ({ status }: { readonly status: PaymentStatus }): Mark[] => [
  { text: status.replace('_', ' '), tone: TONES[status] },
];

export const payments = defineList({
  command: 'payment list',
  summary: 'List payments with their applications and suggested matches',
  title: 'Payments',
  one: 'payment',
  filters,
  sorts: ['-payment_id', 'payment_id', 'received_on', '-received_on', 'amount', '-amount'],
  columns: {
    payment_id: { type: 'count', to: ({ payment_id }) => ['payments', String(payment_id)] },
    received_on: { heading: 'Received', type: 'date' },
    standing: { heading: 'Status', type: 'marks', value: standingOf },
    partner_id: {},
    payer: {
      cut: true,
      value: ({ partner_name, payer }) => partner_name ?? payer.name ?? '(unknown)',
      to: ({ partner_id }) => (partner_id === null ? null : ['partners', partner_id]),
    },
    payer_account: { heading: 'Account of the payer', value: ({ payer }) => payer.account },
    reference: {},
    reported: { heading: 'Reference', look: 'wrap', value: ({ method, reference }) => `${method} · ${reference}` },
    method: {},
    account: { heading: 'Our account' },
    currency: { heading: '' },
    amount: { type: 'amount' },
    applied: { type: 'amount' },
    unapplied: { type: 'amount', look: 'quiet' },
    reversed: { type: 'amount' },
    bank_charges: { type: 'amount', look: 'quiet', value: bankCharges },
    status: {},
    documents: { heading: 'For', cut: true, value: documentsOf },
  },
  sheet: names(
    'payment_id received_on partner_id payer payer_account reference method account currency amount applied',
    'unapplied reversed bank_charges status documents',
  ),
  terminal: names('payment_id received_on payer amount currency status bank_charges documents'),
  page: names('payment_id received_on standing payer reported amount unapplied'),
  ticks: {
    ...{ field: 'paymentIds', actions: ['payment.settle'], ofLedger: true },
    of: ({ payment_id, method }) => (method === 'link' ? String(payment_id) : null),
  },
  key: ({ payment_id }) => String(payment_id),
  read: readRows,
  json: async (_tx, rows) => rows.map(({ partner_name: _name, ...payment }) => payment),
});
