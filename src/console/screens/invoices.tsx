/** All documents, newest first, with filters in the address. */

import { query, type Transaction } from '../../database/transaction.ts';
import { sheetOfDocuments } from '../../documents/list-sheet.ts';
import type { EmailStatus } from '../../documents/queries.ts';
import type { DocumentKind } from '../../documents/snapshot.ts';
import { daysBetween, type Month } from '../../month.ts';
import type { Scope } from '../../people/scope.ts';
import type { Sheet } from '../../sheet.ts';
import { plural } from '../../text.ts';
import { BALANCE } from '../columns.tsx';
import { Card, Chip, type Column, DataTable, Downloads, Money, type Tone } from '../kit.tsx';
import type { Screen } from '../page.tsx';

export const DOCUMENT_STATES = ['open', 'overdue', 'paid', 'void'] as const;

export interface InvoiceFilter {
  /** Part of the number, the purchase order or the partner's name or id, in any case. */
  readonly q?: string | undefined;
  readonly month?: Month | undefined;
  readonly status?: (typeof DOCUMENT_STATES)[number] | undefined;
  readonly partner?: string | undefined;
  /** The id of the last document of the page before. */
  readonly after?: number | undefined;
}

export interface InvoiceLine {
  readonly document_id: number;
  readonly number: string;
  readonly document: DocumentKind;
  readonly partner_id: string;
  readonly partner_name: string;
  readonly month: Month;
  readonly currency: string;
  readonly issued_on: string;
  readonly due_on: string | null;
  readonly amount_due: string;
  readonly balance: string;
  readonly status: 'open' | 'paid' | 'void';
  readonly email_status: EmailStatus | null;
  /** Since when it is on hold; null if it is not. */
  readonly held_at: string | null;
  readonly disputed: boolean;
}

const PAGE = 50;

export interface InvoicesView {
  readonly filter: InvoiceFilter;
  readonly today: string;
  readonly lines: readonly InvoiceLine[];
  /** The id after which the next page begins; null on the last page. */
  readonly next: number | null;
}

// An array is found once: the planner takes most documents for open, and would find them again for each document.
const OPEN = 'd.document_id = ANY (ARRAY(SELECT document_id FROM open_documents))';
const VOID = 'd.document_id IN (SELECT document_id FROM voids)';

const LINES = `SELECT d.document_id, d.number, d.document, d.partner_id, d.partner_name, d.month, d.currency,
            d.issued_on, d.due_on, b.amount_due::text, b.balance::text, b.status, s.status AS email_status, h.held_at,
            EXISTS (SELECT FROM open_invoice_disputes o WHERE o.document_id = d.document_id) AS disputed
     FROM documents d
     JOIN document_balances b USING (document_id)
     LEFT JOIN LATERAL (
       SELECT status FROM document_emails e WHERE e.document_id = d.document_id AND e.status <> 'withdrawn'
       ORDER BY e.email_id DESC LIMIT 1) AS s ON true
     LEFT JOIN current_holds h USING (document_id)
     WHERE (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
       AND (:after::bigint IS NULL OR d.document_id < :after)
       AND (:month::text IS NULL OR d.month = :month)
       AND (:partner::text IS NULL OR d.partner_id = :partner)
       AND (:status::text IS NULL OR :status <> 'open' OR ${OPEN})
       AND (:status::text IS NULL OR :status <> 'overdue'
            OR (${OPEN} AND d.document = 'invoice' AND d.due_on < :today::date))
       AND (:status::text IS NULL OR :status <> 'paid'
            OR (d.document_id NOT IN (SELECT document_id FROM open_documents) AND NOT (${VOID})))
       AND (:status::text IS NULL OR :status <> 'void' OR ${VOID})
       AND (:q::text IS NULL
            OR strpos(lower(concat_ws(E'\\n', d.number, d.purchase_order, d.partner_name, d.partner_id)),
                      lower(:q)) > 0)`;

const givenOf = (scope: Scope, { after, month, partner, status, q }: InvoiceFilter, today: string) => ({
  scope,
  ...{ after: after ?? null, month: month ?? null, partner: partner ?? null, status: status ?? null, q: q ?? null },
  today,
});

/** One page by key: balances and e-mails are looked up for its documents alone. */
export async function readInvoices(
  tx: Transaction,
  scope: Scope,
  filter: InvoiceFilter,
  today: string,
): Promise<InvoicesView> {
  const lines = await query<InvoiceLine>(tx, `${LINES} ORDER BY d.document_id DESC LIMIT :limit`, {
    ...givenOf(scope, filter, today),
    limit: PAGE + 1,
  });
  const shown = lines.slice(0, PAGE);
  return { filter, today, lines: shown, next: lines.length > PAGE ? (shown.at(-1)?.document_id ?? null) : null };
}

/** All documents of the filter, as `invoice list` writes them. */
export async function readInvoicesSheet(
  tx: Transaction,
  scope: Scope,
  filter: Omit<InvoiceFilter, 'after'>,
  today: string,
): Promise<Sheet> {
  const given = givenOf(scope, filter, today);
  return sheetOfDocuments(await query<InvoiceLine>(tx, `${LINES} ORDER BY d.series, d.sequence`, given), today);
}

/** `/console/invoices?status=open`: the filter with changes, without what is empty. */
function addressOf(filter: InvoiceFilter, changes: InvoiceFilter): string {
  const given = Object.entries({ ...filter, after: undefined, ...changes }).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '/console/invoices' : `/console/invoices?${text}`;
}

const TABS = [
  [undefined, 'All'],
  ['open', 'Open'],
  ['overdue', 'Overdue'],
  ['paid', 'Paid'],
  ['void', 'Void'],
] as const;

export function invoicesScreen({ filter, today, lines, next }: InvoicesView): Screen {
  const columns: Column<InvoiceLine>[] = [
    {
      heading: 'Number',
      cell: ({ number }) => (
        <a class="row number" href={`/console/invoices/${number}`}>
          {number}
        </a>
      ),
    },
    { heading: 'Status', cell: (line) => <Standing line={line} today={today} /> },
    { heading: 'Partner', cell: ({ partner_name }) => partner_name },
    { heading: 'Month', cell: ({ month }) => <span class="soft">{month}</span> },
    { heading: 'Due', cell: ({ due_on }) => due_on !== null && <span class="soft">{due_on}</span> },
    {
      heading: 'Amount due',
      number: true,
      cell: ({ amount_due, currency }) => (
        <span class="soft">
          <Money amount={amount_due} currency={currency} />
        </span>
      ),
    },
    BALANCE,
  ];
  const { q, month, partner } = filter;
  return {
    place: 'invoices',
    title: 'Invoices',
    acts: <Downloads path="/console/invoices" question={{ ...filter, after: undefined }} />,
    lead: [month, partner].filter((each) => each !== undefined).join(' · ') || undefined,
    content: (
      <>
        <form class="filters" action="/console/invoices">
          <label class="field">
            Number, partner, purchase order
            <input name="q" value={q} type="search" />
          </label>
          <label class="field">
            Month
            <input name="month" value={month} placeholder="2026-09" pattern="\d{4}-\d\d" size={9} />
          </label>
          {filter.status !== undefined && <input type="hidden" name="status" value={filter.status} />}
          {partner !== undefined && <input type="hidden" name="partner" value={partner} />}
          <button type="submit">Filter</button>
        </form>
        <ul class="tabs">
          {TABS.map(([status, name]) => (
            <li>
              <a href={addressOf(filter, { status })} aria-current={filter.status === status ? 'page' : undefined}>
                {name}
              </a>
            </li>
          ))}
        </ul>
        <Card title={plural(lines.length, 'document')} note="newest first" flush>
          <DataTable
            columns={columns}
            rows={lines}
            nothing={
              Object.values(filter).every((each) => each === undefined)
                ? 'There are no documents yet. The first close makes them.'
                : 'No documents match. Change the filter, or choose All.'
            }
            caption="Documents"
          />
          {(next !== null || filter.after !== undefined) && (
            <div class="pager">
              {filter.after !== undefined ? <a href={addressOf(filter, {})}>Newest</a> : <span />}
              {next !== null && <a href={addressOf(filter, { after: next })}>Older</a>}
            </div>
          )}
        </Card>
      </>
    ),
  };
}

/** Its state in one word, and beside it what keeps people busy: overdue, on hold, disputed, an e-mail that was not sent. */
export function Standing({
  line,
  today,
}: {
  line: Pick<InvoiceLine, 'document' | 'status' | 'due_on' | 'held_at' | 'disputed' | 'email_status'>;
  today: string;
}) {
  const { document, status, due_on, held_at, disputed, email_status } = line;
  const late = document === 'invoice' && status === 'open' && due_on !== null ? daysBetween(due_on, today) : 0;
  const tone: Tone = status === 'paid' ? 'good' : late > 0 ? 'bad' : 'plain';
  return (
    <>
      <Chip tone={tone}>{late > 0 ? `${plural(late, 'day')} overdue` : status}</Chip>
      {held_at !== null && (
        <>
          {' '}
          <Chip tone="warn">on hold</Chip>
        </>
      )}
      {disputed && (
        <>
          {' '}
          <Chip tone="warn">disputed</Chip>
        </>
      )}
      {status !== 'void' && email_status !== null && email_status !== 'sent' && (
        <>
          {' '}
          <Chip tone={email_status === 'failed' ? 'bad' : 'warn'}>{`e-mail ${email_status}`}</Chip>
        </>
      )}
    </>
  );
}
