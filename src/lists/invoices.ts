/** Documents: `reckoner invoice list`, the console's Invoices, and a partner's own documents. */
import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { documentJson } from '#documents/document';
import { EmailStatus, readDocuments } from '#documents/documents.sql';
import { daysOverdue, signed } from '#documents/overdue';
import { documentTitle } from '#documents/present';
import { DOCUMENT_KINDS, DocumentKind } from '#documents/snapshot';
import { toDo } from '#remedy';
import { Month, names, plural } from '#values';
import {
  choice,
  date,
  defineList,
  flag,
  given,
  ListQuery,
  Mark,
  month,
  partner,
  periodGiven,
  Sums,
  soughtAmount,
  soughtText,
  text,
} from './list.ts';
import { PATTERN, sortedBy, sortsOf, sumsBy } from './statement.ts';

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
  held: flag('On hold', 'Only documents on hold.').optional(),
  disputed: flag('Disputed', 'Only invoices with an open dispute.').optional(),
  amount: soughtAmount('Amount', 'Only documents with this amount due or this balance.').optional(),
  text: soughtText(
    'Number, partner, purchase order',
    "Only documents with this text in the number, the purchase order or the partner's name or id.",
  ).optional(),
  from: date('Issued from', 'Issued on or after this day.').optional(),
  to: date('Issued to', 'Issued on or before this day.').optional(),
  kind: choice('Document', 'Invoices, credit notes or statements.', DOCUMENT_KINDS).optional(),
  currency: text('Currency', 'Only documents in this currency.').optional(),
  dueFrom: date('Due from', 'Due on or after this day.').optional(),
  dueTo: date('Due to', 'Due on or before this day.').optional(),
  amountFrom: soughtAmount('Amount from', 'Only documents with at least this amount due.').optional(),
  amountTo: soughtAmount('Amount to', 'Only documents with at most this amount due.').optional(),
});
type InvoiceFilter = z.output<typeof filters>;

// PostgreSQL computes an array only once. With a subquery, the planner assumed that most documents were open, and
// searched again for each document.
const OPEN = 'd.document_id = ANY (ARRAY(SELECT document_id FROM open_documents))';
const VOID = 'd.document_id IN (SELECT document_id FROM voids)';

const AMOUNT_DUE = `CASE d.document WHEN 'statement' THEN 0 WHEN 'credit_note' THEN d.credit_applied - d.gross
                     ELSE d.gross - d.credit_applied END`;

/** As in the index of their trigrams. */
const WORDS = `lower(d.number COLLATE "default" || E'\\n' || d.purchase_order || E'\\n' || d.partner_name || E'\\n' ||
                    d.partner_id)`;

/** The number of a document in full: `inv-2026-12` becomes `INV-2026-000012`. */
export const fullNumber = (text: string) =>
  text
    .toUpperCase()
    .replace(/^([A-Z]+-\d{4}-)(\d{1,5})$/, (_, series: string, at: string) => series + at.padStart(6, '0'));

const VISIBLE = `(:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
         AND (:firstMonth::text IS NULL OR d.month BETWEEN :firstMonth AND :lastMonth)`;

const WHERE = `${VISIBLE}
         AND (:month::text IS NULL OR d.month = :month)
         AND (:partner::text IS NULL OR d.partner_id = :partner)
         AND (:kind::text IS NULL OR d.document = :kind)
         AND (:currency::text IS NULL OR d.currency = upper(:currency))
         AND (:status::text IS NULL OR :status <> 'open' OR ${OPEN})
         AND (:status::text IS NULL OR :status <> 'paid'
              OR (d.document_id NOT IN (SELECT document_id FROM open_documents) AND NOT (${VOID})))
         AND (:status::text IS NULL OR :status <> 'void' OR ${VOID})
         AND (:overdue::boolean IS NULL OR (${OPEN} AND d.document = 'invoice' AND d.due_on < :today::date))
         AND (:held::boolean IS NULL OR d.document_id IN (SELECT document_id FROM current_holds))
         AND (:disputed::boolean IS NULL OR d.document_id IN (SELECT document_id FROM open_invoice_disputes))
         AND (:amount::numeric IS NULL OR abs(${AMOUNT_DUE}) = :amount::numeric
              OR d.document_id IN (SELECT document_id FROM open_items('infinity') WHERE balance = :amount::numeric))
         AND (:amountFrom::numeric IS NULL OR abs(${AMOUNT_DUE}) >= :amountFrom::numeric)
         AND (:amountTo::numeric IS NULL OR abs(${AMOUNT_DUE}) <= :amountTo::numeric)
         AND (:from::date IS NULL OR d.issued_on >= :from::date)
         AND (:to::date IS NULL OR d.issued_on <= :to::date)
         AND (:dueFrom::date IS NULL OR d.due_on >= :dueFrom::date)
         AND (:dueTo::date IS NULL OR d.due_on <= :dueTo::date)
         AND (:text::text IS NULL OR ${WORDS} LIKE ${PATTERN} OR d.number = :number)`;

/** Only open documents have a balance, so the sum reads only open documents. */
const OPEN_ITEMS = "documents d LEFT JOIN open_items('infinity') o USING (document_id)";
const BALANCE = `CASE d.document WHEN 'credit_note' THEN -coalesce(o.balance, 0) ELSE coalesce(o.balance, 0) END`;

/** The inner query selects the documents of the page, so that balances and e-mails are read only for these documents. */
const SORTED = sortedBy({
  select: (by) => `d.document_id, ${by} AS at`,
  from: 'documents d',
  where: WHERE,
  visible: VISIBLE,
  id: 'd.document_id',
  by: {
    // Documents are issued in the order of their ids.
    issued_on: 'd.document_id',
    number: '(d.series, d.sequence)',
    month: 'd.month',
    due_on: `coalesce(d.due_on, 'infinity'::date)`,
    partner_name: 'lower(d.partner_name)',
    amount_due: ['d.currency', AMOUNT_DUE, 'documents d'],
    balance: ['d.currency', BALANCE, OPEN_ITEMS],
  },
  around: (page, order) => `
     SELECT d.document_id, d.number, d.document, d.partner_id, d.partner_name, d.month, d.currency,
            d.issued_on, d.due_on, b.amount_due::text, b.balance::text, b.status, s.status AS email_status, h.held_at,
            EXISTS (SELECT FROM open_invoice_disputes o WHERE o.document_id = d.document_id) AS disputed
     FROM (
       ${page}
     ) AS page
     JOIN documents d USING (document_id)
     JOIN document_balances b USING (document_id)
     LEFT JOIN LATERAL (
       SELECT delivery AS status FROM document_emails e
       WHERE e.document_id = d.document_id AND e.delivery <> 'withdrawn'
       ORDER BY e.email_id DESC LIMIT 1) AS s ON true
     LEFT JOIN current_holds h USING (document_id)
     ORDER BY page.at ${order}, d.document_id ${order}`,
});
type InvoiceSort = keyof typeof SORTED;

const parametersOf = ({ filter, scope, today, period }: ListQuery<InvoiceFilter, InvoiceSort>) => ({
  ...given(filters, filter),
  ...periodGiven({ period }),
  ...{ scope, today, number: filter.text === undefined ? null : fullNumber(filter.text) },
});

const readLines = (tx: Transaction, asked: ListQuery<InvoiceFilter, InvoiceSort>): Promise<InvoiceRow[]> =>
  query(tx, SORTED[asked.sort], { ...parametersOf(asked), after: asked.after, limit: asked.limit });

async function readTotals(tx: Transaction, asked: ListQuery<InvoiceFilter, InvoiceSort>): Promise<Sums> {
  return sumsBy(
    await query<{ currency: string; count: number; amount_due: string; balance: string; overdue: string }>(
      tx,
      `SELECT d.currency, count(*)::int AS count, sum(${AMOUNT_DUE}) AS amount_due, sum(${BALANCE}) AS balance,
            coalesce(sum(${BALANCE}) FILTER (WHERE d.document = 'invoice' AND d.due_on < :today::date), 0) AS overdue
     FROM ${OPEN_ITEMS} WHERE ${WHERE} GROUP BY d.currency ORDER BY d.currency`,
      parametersOf(asked),
    ),
  );
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
      : {
          text: row.document === 'credit_note' && row.status === 'paid' ? 'used up' : row.status,
          tone: row.status === 'paid' ? 'good' : 'plain',
        },
    ...(row.disputed ? [{ text: 'disputed', tone: 'warn' } as const] : []),
  ];
}

export const invoices = defineList({
  command: 'invoice list',
  summary: 'List documents in number order',
  title: 'Documents',
  one: 'document',
  ofPeriod: true,
  filters,
  views: [
    ['All', {}],
    ['Open', { status: 'open' }],
    ['Overdue', { overdue: 'yes' }],
    ['Disputed', { disputed: 'yes' }],
    ['On hold', { held: 'yes' }],
    ['Paid', { status: 'paid' }],
    ['Void', { status: 'void' }],
  ],
  sorts: sortsOf(SORTED, '-issued_on', 'number'),
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
    ...{ field: 'number', fields: { 'payment.apply': 'numbers' }, pdfs: true },
    actions: [
      toDo('Resend', 'invoice.resend'),
      toDo('Hold', 'invoice.hold'),
      toDo('Release', 'invoice.release'),
      toDo('Apply a payment', 'payment.apply'),
      toDo('Reissue', 'invoice.rerun'),
      toDo('Credit in full', 'invoice.credit', { inFull: 'yes' }),
      toDo('Write off', 'invoice.write_off'),
      toDo('Void', 'invoice.void'),
    ],
    of: ({ number }) => number,
  },
  key: ({ document_id }) => String(document_id),
  read: readLines,
  async json(tx, rows) {
    const documents = await readDocuments(tx, { ids: rows.map(({ document_id }) => document_id) });
    const found = new Map(documents.map((each) => [each.number, documentJson(each)]));
    return rows.map(({ number }) => found.get(number));
  },
  sums: readTotals,
});
