/** All payments, the latest first, with filters in the address. */
import { query, type Transaction } from '../../database/transaction.ts';
import { PAYMENT_STATUSES, type PaymentStatus } from '../../payments/enums.ts';
import type { User } from '../../people/roles.ts';
import type { Scope } from '../../people/scope.ts';
import { plural } from '../../text.ts';
import { addressOf, Card, Chip, type Column, DataTable, Money, Pager, Quiet, type Tone } from '../kit.tsx';
import type { Screen } from '../page.tsx';
import { amountAsked, choiceAsked, dayAsked, idAsked, textAsked } from '../parameters.ts';
import { PaymentActs, PaymentTabs } from './payments.tsx';

interface PaymentQuestion {
  readonly q?: string;
  readonly status?: string;
  readonly partner?: string;
  readonly amount?: string;
  readonly from?: string;
  readonly to?: string;
  readonly after?: string;
}

interface PaymentLine {
  readonly payment_id: number;
  readonly partner_id: string | null;
  readonly partner_name: string | null;
  readonly payer_name: string | null;
  readonly currency: string;
  readonly amount: string;
  readonly unapplied: string;
  readonly status: PaymentStatus;
  readonly method: string;
  readonly received_on: string;
  readonly reference: string;
}

export interface PaymentListView {
  readonly asked: PaymentQuestion;
  readonly lines: readonly PaymentLine[];
  readonly next: number | null;
}

const PAGE = 50;
const PATH = '/console/payments/all';

/** Of the reader's partners, or of the one that is asked for: the payments that ever were. Whose each is now says its balance. */
const OF_SCOPE = `SELECT payment_id FROM payments WHERE partner_id = ANY (:scope::text[])
       UNION SELECT payment_id FROM payment_assignments WHERE partner_id = ANY (:scope::text[])`;
const OF_PARTNER = `SELECT payment_id FROM payments WHERE partner_id = :partner
       UNION SELECT payment_id FROM payment_assignments WHERE partner_id = :partner`;

/** Money of an unknown payer is seen by those who see every partner. */
export async function readPaymentList(
  tx: Transaction,
  asked: PaymentQuestion,
  { scope }: { scope: Scope },
): Promise<PaymentListView> {
  const lines = await query<PaymentLine>(
    tx,
    `SELECT p.payment_id, b.partner_id, n.name AS partner_name, p.payer_name, p.currency, p.amount::text,
            b.unapplied::text, b.status, p.method, p.received_on, p.reference
     FROM payments p JOIN payment_balances b USING (payment_id) LEFT JOIN partners n ON n.partner_id = b.partner_id
     WHERE (:scope::text[] IS NULL OR (b.partner_id = ANY (:scope::text[]) AND p.payment_id IN (${OF_SCOPE})))
       AND (:after::bigint IS NULL OR p.payment_id < :after)
       AND (:partner::text IS NULL OR (b.partner_id = :partner AND p.payment_id IN (${OF_PARTNER})))
       AND (:status::text IS NULL OR b.status = :status)
       -- Few payments are not applied. They are found at once, and their status is looked up.
       AND (:status::text IS NULL OR :status NOT IN ('unapplied', 'partly_applied')
            OR p.payment_id IN (SELECT payment_id FROM unapplied_payments))
       AND (:status::text IS NULL OR :status <> 'reversed'
            OR p.payment_id IN (SELECT payment_id FROM payment_reversals))
       AND (:amount::numeric IS NULL OR p.amount = :amount::numeric)
       AND (:from::date IS NULL OR p.received_on >= :from::date)
       AND (:to::date IS NULL OR p.received_on <= :to::date)
       AND (:q::text IS NULL OR strpos(lower(concat_ws(E'\\n', p.reference, p.payer_name, p.payer_account, n.name,
              (SELECT string_agg(s.reference, E'\\n') FROM payment_sources s WHERE s.payment_id = p.payment_id))),
              lower(:q)) > 0)
     ORDER BY p.payment_id DESC LIMIT :limit`,
    {
      ...{ scope, after: idAsked('after', asked.after) ?? null, partner: textAsked(asked.partner) ?? null },
      status: choiceAsked('status', asked.status, PAYMENT_STATUSES) ?? null,
      amount: amountAsked('amount', asked.amount) ?? null,
      ...{ from: dayAsked('from', asked.from) ?? null, to: dayAsked('to', asked.to) ?? null },
      ...{ q: textAsked(asked.q) ?? null, limit: PAGE + 1 },
    },
  );
  const shown = lines.slice(0, PAGE);
  return { asked, lines: shown, next: lines.length > PAGE ? (shown.at(-1)?.payment_id ?? null) : null };
}

const TONES: Readonly<Record<PaymentStatus, Tone>> = {
  applied: 'good',
  partly_applied: 'warn',
  unapplied: 'warn',
  reversed: 'plain',
};

export const PaymentStanding = ({ status }: { status: PaymentStatus }) => (
  <Chip tone={TONES[status]}>{status.replace('_', ' ')}</Chip>
);

const columns: readonly Column<PaymentLine>[] = [
  {
    heading: 'Payment',
    cell: ({ payment_id }) => (
      <a class="row number" href={`/console/payments/${payment_id}`}>
        {payment_id}
      </a>
    ),
  },
  { heading: 'Received', cell: ({ received_on }) => received_on },
  { heading: 'Status', cell: ({ status }) => <PaymentStanding status={status} /> },
  {
    heading: 'Payer',
    cell: ({ partner_id, partner_name, payer_name }) =>
      partner_id === null ? (
        <span class="soft">{payer_name ?? 'unknown'}</span>
      ) : (
        <a href={`/console/partners/${partner_id}`}>{partner_name}</a>
      ),
  },
  {
    heading: 'Reference',
    cell: ({ method, reference }) => <span class="soft wrap">{`${method} · ${reference}`}</span>,
  },
  { heading: 'Amount', number: true, cell: ({ amount, currency }) => <Money amount={amount} currency={currency} /> },
  {
    heading: 'Unapplied',
    number: true,
    cell: ({ unapplied, currency }) => <Quiet amount={unapplied} currency={currency} />,
  },
];

export function paymentListScreen(
  { asked, lines, next }: PaymentListView,
  { user }: { user: Pick<User, 'roles'> },
): Screen {
  const { after, ...question } = asked;
  return {
    place: 'payments',
    title: 'Payments',
    acts: <PaymentActs user={user} />,
    content: (
      <>
        <PaymentTabs current="all" />
        <form class="filters" action={PATH}>
          <label class="field">
            Reference or payer
            <input name="q" value={asked.q} type="search" />
          </label>
          <label class="field">
            Partner
            <input name="partner" value={asked.partner} size={14} />
          </label>
          <label class="field">
            Amount
            <input name="amount" value={asked.amount} inputMode="decimal" size={10} />
          </label>
          <label class="field">
            Status
            <select name="status">
              <option value="">All</option>
              {PAYMENT_STATUSES.map((status) => (
                <option value={status} selected={asked.status === status}>
                  {status.replace('_', ' ')}
                </option>
              ))}
            </select>
          </label>
          <label class="field">
            From
            <input name="from" value={asked.from} type="date" />
          </label>
          <label class="field">
            To
            <input name="to" value={asked.to} type="date" />
          </label>
          <button type="submit">Filter</button>
        </form>
        <Card title={plural(lines.length, 'payment')} note="latest first" flush>
          <DataTable columns={columns} rows={lines} labelled nothing="No payments match." caption="Payments" />
          <Pager
            first={after === undefined ? null : addressOf(PATH, question)}
            next={next === null ? null : addressOf(PATH, { ...question, after: next })}
          />
        </Card>
      </>
    ),
  };
}
