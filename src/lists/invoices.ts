/** Documents: `reckoner invoice list`, the console's Invoices, and a partner's own documents. */
import { z } from 'zod';
import { query, type Transaction } from '../database/transaction.ts';
import { documentJson } from '../documents/document.ts';
import { type EmailStatus, readDocuments } from '../documents/documents.sql.ts';
import { daysOverdue, signed } from '../documents/overdue.ts';
import { documentTitle } from '../documents/present.ts';
import type { DocumentKind } from '../documents/snapshot.ts';
import { Amount, type Month, names, plural } from '../values.ts';
import {
  choice,
  date,
  defineList,
  flag,
  given,
  type ListQuery,
  type Mark,
  month,
  partner,
  soughtAmount,
  soughtText,
  type Total,
} from './list.ts';

type InvoiceRow = Readonly<{
  document_id: number;
  number: string;
  document: DocumentKind;
  partner_id: string;
  partner_name: string;
  month: Month;
  currency: string;
  issued_on: string;
  due_on: string | null;
  amount_due: string;
  balance: string;
  status: 'open' | 'paid' | 'void';
  email_status: EmailStatus | null;
  held_at: string | null;
  disputed: boolean;
}>;

type Stands = Pick<InvoiceRow, 'document' | 'status' | 'due_on' | 'held_at' | 'disputed' | 'email_status'>;

const filters = z.strictObject({
  month: month('Month', 'Only documents of this month.').optional(),
  partner: partner('Only documents of this partner.', { value: 'id' }).optional(),
  status: choice('Status', 'Open, paid or void.', ['open', 'paid', 'void']).optional(),
  overdue: flag('Overdue', 'Only open invoices past their due date.').optional(),
  amount: soughtAmount('Amount', 'Only documents with this amount due or this balance.').optional(),
  text: soughtText(
    'Number, partner, purchase order',
    "Only documents with this text in the number, the purchase order or the partner's name or id.",
  ).optional(),
  from: date('Issued from', 'Issued on or after this day.').optional(),
  to: date('Issued to', 'Issued on or before this day.').optional(),
});
type InvoiceFilter = z.output<typeof filters>;

// PostgreSQL computes an array only once. With a subquery, the planner assumed that most documents were open, and
// searched again for each document.
const OPEN = 'd.document_id = ANY (ARRAY(SELECT document_id FROM open_documents))';
const VOID = 'd.document_id IN (SELECT document_id FROM voids)';

const IN_SCOPE = '(:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))';

const ASKED_FOR = `${IN_SCOPE}
       AND (:month::text IS NULL OR d.month = :month)
       AND (:partner::text IS NULL OR d.partner_id = :partner)
       AND (:status::text IS NULL OR :status <> 'open' OR ${OPEN})
       AND (:status::text IS NULL OR :status <> 'paid'
            OR (d.document_id NOT IN (SELECT document_id FROM open_documents) AND NOT (${VOID})))
       AND (:status::text IS NULL OR :status <> 'void' OR ${VOID})
       AND (:overdue::boolean IS NULL OR (${OPEN} AND d.document = 'invoice' AND d.due_on < :today::date))
       AND (:amount::numeric IS NULL OR :amount::numeric IN (
              SELECT unnest(ARRAY[amount_due, balance]) FROM document_balances b WHERE b.document_id = d.document_id))
       AND (:from::date IS NULL OR d.issued_on >= :from::date)
       AND (:to::date IS NULL OR d.issued_on <= :to::date)
       AND (:text::text IS NULL
            OR strpos(lower(concat_ws(E'\\n', d.number, d.purchase_order, d.partner_name, d.partner_id)),
                      lower(:text)) > 0)`;

/**
 * The inner query selects the documents of the page, so that balances and e-mails are read only for these documents.
 * Documents that are equal in the sort order "by" are sorted by id. A page begins after the last document of the
 * previous page. If the user may not see that document, the page is empty, because the start of the page would reveal
 * the document's figures.
 */
const lines = (by: string, order: 'ASC' | 'DESC', from = 'documents d') => `
     SELECT d.document_id, d.number, d.document, d.partner_id, d.partner_name, d.month, d.currency,
            d.issued_on, d.due_on, b.amount_due::text, b.balance::text, b.status, s.status AS email_status, h.held_at,
            EXISTS (SELECT FROM open_invoice_disputes o WHERE o.document_id = d.document_id) AS disputed
     FROM (
       SELECT d.document_id, ${by} AS at FROM ${from}
       WHERE ${ASKED_FOR}
         AND (:after::bigint IS NULL OR (${by}, d.document_id) ${order === 'ASC' ? '>' : '<'} (
                SELECT ${by}, d.document_id FROM ${from} WHERE d.document_id = :after::bigint AND ${IN_SCOPE}))
       ORDER BY ${by} ${order}, d.document_id ${order} LIMIT :limit
     ) AS page
     JOIN documents d USING (document_id)
     JOIN document_balances b USING (document_id)
     LEFT JOIN LATERAL (
       SELECT delivery AS status FROM document_emails e
       WHERE e.document_id = d.document_id AND e.delivery <> 'withdrawn'
       ORDER BY e.email_id DESC LIMIT 1) AS s ON true
     LEFT JOIN current_holds h USING (document_id)
     ORDER BY page.at ${order}, d.document_id ${order}`;

/** Only open documents have a balance, so the sum reads only open documents. */
const OPEN_ITEMS = "documents d LEFT JOIN open_items('infinity') o USING (document_id)";
const OWED = `CASE d.document WHEN 'credit_note' THEN -coalesce(o.balance, 0) ELSE coalesce(o.balance, 0) END`;
const DUE = `coalesce(d.due_on, 'infinity'::date)`;

const SORTED = {
  '-issued': lines('d.document_id', 'DESC'),
  number: lines('(d.series, d.sequence)', 'ASC'),
  due_on: lines(DUE, 'ASC'),
  '-due_on': lines(DUE, 'DESC'),
  partner_name: lines('lower(d.partner_name)', 'ASC'),
  '-partner_name': lines('lower(d.partner_name)', 'DESC'),
  balance: lines(OWED, 'ASC', OPEN_ITEMS),
  '-balance': lines(OWED, 'DESC', OPEN_ITEMS),
} as const;
type InvoiceSort = keyof typeof SORTED;

const parametersOf = ({ filter, scope, today }: ListQuery<InvoiceFilter, InvoiceSort>) => ({
  ...given(filters, filter),
  ...{ scope, today },
});

const readLines = (tx: Transaction, asked: ListQuery<InvoiceFilter, InvoiceSort>): Promise<InvoiceRow[]> =>
  query(tx, SORTED[asked.sort], { ...parametersOf(asked), after: asked.after, limit: asked.limit });

async function readTotals(tx: Transaction, asked: ListQuery<InvoiceFilter, InvoiceSort>): Promise<Total[]> {
  const rows = await query<{ currency: string; invoices: string; overdue: string; credit: string }>(
    tx,
    `SELECT d.currency,
            coalesce(sum(o.balance) FILTER (WHERE d.document = 'invoice'), 0) AS invoices,
            coalesce(sum(o.balance) FILTER (WHERE d.document = 'invoice' AND d.due_on < :today::date), 0) AS overdue,
            coalesce(-sum(o.balance) FILTER (WHERE d.document = 'credit_note'), 0) AS credit
     FROM open_items('infinity') o JOIN documents d USING (document_id)
     WHERE ${ASKED_FOR}
     GROUP BY d.currency ORDER BY d.currency`,
    parametersOf(asked),
  );
  return rows.map(({ currency, ...row }) => {
    const [invoices, overdue, credit] = [row.invoices, row.overdue, row.credit].map((each) =>
      Amount.of(each, currency),
    ) as [Amount, Amount, Amount];
    return {
      ...{ 'Open invoices': invoices, 'Of which overdue': overdue, 'Open credit': credit },
      Net: invoices.plus(credit),
    };
  });
}

export function standingOf(row: Stands, today: string): Mark[] {
  const { status, held_at, email_status: email } = row;
  const unsent = status !== 'void' && email !== null && email !== 'sent' && email !== 'portal';
  return [
    ...partnersStanding(row, today),
    ...(held_at === null ? [] : [{ text: 'on hold', tone: 'warn' } as const]),
    ...(unsent ? [{ text: `e-mail ${email}`, tone: email === 'failed' ? 'bad' : 'warn' } as const] : []),
  ];
}

/** Partners do not see holds and e-mail problems, which concern only the issuer. */
export function partnersStanding(row: Stands, today: string): Mark[] {
  const late = daysOverdue(row, today);
  return [
    late > 0
      ? { text: `${plural(late, 'day')} overdue`, tone: 'bad' }
      : { text: row.status, tone: row.status === 'paid' ? 'good' : 'plain' },
    ...(row.disputed ? [{ text: 'disputed', tone: 'warn' } as const] : []),
  ];
}

export const invoices = defineList({
  command: 'invoice list',
  summary: 'List documents in number order',
  title: 'Documents',
  one: 'document',
  filters,
  views: [
    ['All', {}],
    ['Open', { status: 'open' }],
    ['Overdue', { overdue: 'yes' }],
    ['Paid', { status: 'paid' }],
    ['Void', { status: 'void' }],
  ],
  sorts: ['-issued', 'number', 'due_on', '-due_on', 'partner_name', '-partner_name', 'balance', '-balance'],
  columns: {
    number: { to: ({ number }) => ['invoices', number] },
    document: {},
    kind: { heading: 'Document', value: ({ document }) => documentTitle(document) },
    standing: { heading: 'Status', type: 'marks', value: standingOf },
    partners_standing: { heading: 'Status', type: 'marks', value: partnersStanding },
    partner_id: {},
    partner_name: { cut: true },
    month: { type: 'month', look: 'soft', unlessSame: true },
    issued_on: { heading: 'Issued', type: 'date', look: 'soft' },
    due_on: { heading: 'Due', type: 'date', look: 'soft' },
    days_overdue: { heading: 'Overdue', type: 'count', value: (row, today) => daysOverdue(row, today) || null },
    amount_due: { type: 'amount', look: 'soft', width: 110, value: (row) => signed(row, row.amount_due) },
    balance: { type: 'amount', value: (row) => signed(row, row.balance) },
    currency: { heading: '' },
    status: {},
    status_held: {
      heading: 'Status',
      value: ({ status, held_at }) => (held_at === null ? status : `${status}, on hold`),
    },
    on_hold_since: { value: ({ held_at }) => held_at },
    email_status: { heading: 'E-mail' },
  },
  sheet: names(
    'number document partner_id partner_name month issued_on due_on days_overdue currency amount_due balance',
    'status on_hold_since email_status',
  ),
  terminal: names('number partner_name month due_on days_overdue amount_due balance currency status_held email_status'),
  page: names('number standing partner_name month due_on amount_due balance'),
  place: names('number partners_standing kind month issued_on due_on balance'),
  ticks: {
    ...{ field: 'numbers', actions: ['payment.apply'] },
    of: ({ number, document, status }) => (document === 'invoice' && status === 'open' ? number : null),
  },
  key: ({ document_id }) => String(document_id),
  read: readLines,
  json: async (tx, rows) =>
    (await readDocuments(tx, { ids: rows.map(({ document_id }) => document_id) })).map(documentJson),
  totals: readTotals,
});
