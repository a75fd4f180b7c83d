/** Payments: `reckoner payment list` and the console's All payments. */

import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { PAYMENT_STATUSES, PaymentStatus } from '#payments/enums';
import { PaymentJson, paymentJson } from '#payments/payment';
import { readPayments } from '#payments/payments.sql';
import { Amount, names } from '#values';
import {
  choice,
  date,
  defineList,
  given,
  ListQuery,
  Mark,
  partner,
  Sums,
  soughtAmount,
  soughtText,
  text,
} from './list.ts';
import { PATTERN, sortedBy, sortsOf, sumsBy, TEXTS } from './statement.ts';

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
  currency: text('Currency', 'Only payments in this currency.').optional(),
  amountFrom: soughtAmount('Amount from', 'Only payments of at least this amount.').optional(),
  amountTo: soughtAmount('Amount to', 'Only payments of at most this amount.').optional(),
});
type PaymentFilter = z.output<typeof filters>;

/** Payments that were attributed to these partners at any time. `payment_balances` states the current partner. */
const OF_SCOPE = `SELECT payment_id FROM payments WHERE partner_id = ANY (:scope::text[])
       UNION SELECT payment_id FROM payment_assignments WHERE partner_id = ANY (:scope::text[])`;
const OF_PARTNER = `SELECT payment_id FROM payments WHERE partner_id = :partner
       UNION SELECT payment_id FROM payment_assignments WHERE partner_id = :partner`;

const VISIBLE = '(:scope::text[] IS NULL OR b.partner_id = ANY (:scope::text[]))';

const FROM = 'payments p JOIN payment_balances b USING (payment_id)';
const NAME = 'SELECT name FROM partners WHERE partner_id = b.partner_id';
const NAMED = `(SELECT partner_id FROM partners WHERE lower(name) LIKE ${PATTERN})`;
const OF_NAME = `SELECT payment_id FROM payments WHERE partner_id IN ${NAMED}
       UNION SELECT payment_id FROM payment_assignments WHERE partner_id IN ${NAMED}`;

/** Money from an unknown payer is only for users who see every partner. */
const WHERE = `(:scope::text[] IS NULL OR (${VISIBLE} AND p.payment_id IN (${OF_SCOPE})))
         AND (:partner::text IS NULL OR (b.partner_id = :partner AND p.payment_id IN (${OF_PARTNER})))
         AND (:status::text IS NULL OR b.status = :status)
         -- Few payments are unapplied, so the index on them comes first.
         AND (:status::text IS NULL OR :status NOT IN ('unapplied', 'partly_applied')
              OR p.payment_id IN (SELECT payment_id FROM unapplied_payments))
         AND (:status::text IS NULL OR :status <> 'reversed'
              OR p.payment_id IN (SELECT payment_id FROM payment_reversals))
         AND (:currency::text IS NULL OR p.currency = upper(:currency))
         AND (:amount::numeric IS NULL OR p.amount = :amount::numeric)
         AND (:amountFrom::numeric IS NULL OR p.amount >= :amountFrom::numeric)
         AND (:amountTo::numeric IS NULL OR p.amount <= :amountTo::numeric)
         AND (:from::date IS NULL OR p.received_on >= :from::date)
         AND (:to::date IS NULL OR p.received_on <= :to::date)
         AND (:text::text IS NULL OR p.reference IN ${TEXTS} OR p.payer_name IN ${TEXTS}
              OR p.payer_account IN ${TEXTS}
              OR p.payment_id IN (SELECT payment_id FROM payment_sources WHERE reference IN ${TEXTS})
              OR (p.payment_id IN (${OF_NAME}) AND (${NAME}) ILIKE ${PATTERN}))`;

/**
 * A subquery reads the partner's name only for the rows of the page. With the name as a joined column, the database
 * read every payment.
 */
const SORTED = sortedBy({
  select: () => `p.payment_id, (${NAME}) AS partner_name`,
  from: FROM,
  where: WHERE,
  visible: VISIBLE,
  id: 'p.payment_id',
  by: { payment_id: 'p.payment_id', received_on: 'p.received_on', amount: 'p.amount' },
});
type PaymentSort = keyof typeof SORTED;

async function readTotals(tx: Transaction, { filter, scope }: ListQuery<PaymentFilter, PaymentSort>): Promise<Sums> {
  return sumsBy(
    await query<{ currency: string; count: number; amount: string; unapplied: string }>(
      tx,
      `SELECT p.currency, count(*)::int AS count, sum(p.amount) AS amount,
            sum(CASE WHEN p.payment_id = ANY (ARRAY(SELECT payment_id FROM unapplied_payments)) THEN b.unapplied
                     ELSE 0 END) AS unapplied
     FROM ${FROM} WHERE ${WHERE} GROUP BY p.currency ORDER BY p.currency`,
      { ...given(filters, filter), scope },
    ),
  );
}

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

const of = (amount: string, { currency }: PaymentRow) => Amount.of(amount, currency);

/** The shortfall against the paid documents, which was posted to bank charges. */
const bankCharges = (row: PaymentRow) =>
  row.applications
    .filter(({ unapplied_on }) => unapplied_on === null)
    .reduce((sum, each) => sum.plus(of(each.small_difference ?? '0', row)), Amount.zero(row.currency));

/** The documents that the payment settles, or the first suggestion with a question mark. */
function documentsOf({ applications, suggestions }: PaymentRow) {
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
  sorts: sortsOf(SORTED, '-payment_id', 'payment_id'),
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
  sums: readTotals,
  json: async (_tx, rows) => rows.map(({ partner_name: _name, ...payment }) => payment),
});
