/**
 * The search over everything: a number goes straight to its document; partners, amounts, references of payments and quotes
 * are listed. Each part is one query over an index or a small table, and keeps to the reader's partners.
 */
import { query, type Transaction } from '../../database/transaction.ts';
import { rowKindName } from '../../documents/present.ts';
import type { Scope } from '../../people/scope.ts';
import { Card, type Column, DataTable, Money } from '../kit.tsx';
import type { Screen } from '../page.tsx';
import { readAmount, textAsked } from '../parameters.ts';

interface FoundDocument {
  readonly number: string;
  readonly partner_name: string;
  readonly month: string;
  readonly currency: string;
  readonly amount: string;
}

interface FoundPayment {
  readonly payment_id: number;
  readonly payer: string | null;
  readonly received_on: string;
  readonly reference: string;
  readonly currency: string;
  readonly amount: string;
}

interface FoundRow {
  readonly quote_id: string;
  readonly kind: 'quote_accepted' | 'requote_accepted' | 'reversal';
  readonly partner_id: string;
  readonly partner_name: string;
  readonly posted_month: string;
  readonly number: string | null;
  readonly currency: string;
  readonly amount: string;
}

export interface SearchView {
  readonly q: string | undefined;
  /** The document of exactly this number. */
  readonly exact: string | null;
  readonly documents: readonly FoundDocument[];
  readonly partners: readonly { readonly partner_id: string; readonly name: string }[];
  readonly payments: readonly FoundPayment[];
  readonly rows: readonly FoundRow[];
}

const SHOWN = 20;
const NOTHING = { exact: null, documents: [], partners: [], payments: [], rows: [] };

export async function readSearch(
  tx: Transaction,
  asked: { readonly q?: string },
  { scope }: { scope: Scope },
): Promise<SearchView> {
  const q = textAsked(asked.q);
  if (q === undefined) return { q, ...NOTHING };
  const amount = readAmount(q) ?? null;
  const seen = { q, amount, scope, limit: SHOWN };
  const documents = await query<FoundDocument & { exact: boolean }>(
    tx,
    `SELECT number, partner_name, month, currency, gross::text AS amount, number = upper(:q) AS exact
     FROM documents
     WHERE (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
       AND (strpos(number, upper(:q)) > 0 OR gross = :amount::numeric
            OR gross - credit_applied = :amount::numeric OR lower(purchase_order) = lower(:q))
     ORDER BY number = upper(:q) DESC, document_id DESC LIMIT :limit`,
    seen,
  );
  const exact = documents.find((each) => each.exact)?.number ?? null;
  if (exact !== null) return { q, ...NOTHING, exact };
  return {
    ...{ q, exact, documents },
    partners: await query(
      tx,
      `SELECT partner_id, name FROM partners
       WHERE (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
         AND strpos(lower(concat_ws(E'\\n', partner_id, name, contact_email)), lower(:q)) > 0
       ORDER BY partner_id = :q DESC, lower(name), partner_id LIMIT :limit`,
      seen,
    ),
    payments: await readFoundPayments(tx, seen),
    rows: await readFoundRows(tx, seen),
  };
}

interface Seen {
  readonly [name: string]: unknown;
  readonly q: string;
  readonly amount: string | null;
  readonly scope: Scope;
  readonly limit: number;
}

/** By the whole reference, or the whole amount in any currency. */
const readFoundPayments = (tx: Transaction, seen: Seen): Promise<FoundPayment[]> =>
  query(
    tx,
    `WITH found AS (
       SELECT payment_id FROM payment_sources WHERE reference = ANY (ARRAY[:q, upper(:q), lower(:q)])
       UNION
       SELECT payment_id FROM payments
       WHERE currency IN (SELECT DISTINCT currency FROM partners) AND amount = :amount::numeric
     )
     SELECT p.payment_id, coalesce(n.name, p.payer_name) AS payer, p.received_on, p.reference, p.currency,
            p.amount::text
     FROM found JOIN payments p USING (payment_id) JOIN payment_balances b USING (payment_id)
     LEFT JOIN partners n ON n.partner_id = b.partner_id
     WHERE :scope::text[] IS NULL OR b.partner_id = ANY (:scope::text[])
     ORDER BY p.payment_id DESC LIMIT :limit`,
    seen,
  );

/** Rows of exactly this quote. Each partner is one probe of an index, for rows of acceptance and for what followed. */
const readFoundRows = (tx: Transaction, seen: Seen): Promise<FoundRow[]> =>
  query(
    tx,
    `SELECT r.quote_id, r.kind, r.partner_id, p.name AS partner_name, r.posted_month, r.currency,
            r.invoice_amount::text AS amount,
            (SELECT d.number FROM documents d
             WHERE d.partner_id = r.partner_id AND d.month = r.posted_month AND d.currency = r.currency
               AND d.arrangement = r.arrangement AND d.purpose = 'month'
             ORDER BY d.document_id DESC LIMIT 1) AS number
     FROM partners p CROSS JOIN LATERAL (
       SELECT * FROM ledger_rows a
       WHERE a.partner_id = p.partner_id AND a.kind = 'quote_accepted'
         AND coalesce(a.reversal_id, a.requote_id, a.quote_id) = :q
       UNION ALL
       SELECT * FROM ledger_rows b
       WHERE b.partner_id = p.partner_id AND b.kind <> 'quote_accepted' AND b.quote_id = :q) AS r
     WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
     ORDER BY r.entry_id LIMIT :limit`,
    seen,
  );

const documentColumns: readonly Column<FoundDocument>[] = [
  {
    heading: 'Number',
    cell: ({ number }) => (
      <a class="row number" href={`/console/invoices/${number}`}>
        {number}
      </a>
    ),
  },
  { heading: 'Partner', cell: ({ partner_name }) => partner_name },
  { heading: 'Month', cell: ({ month }) => <span class="soft">{month}</span> },
  { heading: 'Amount', number: true, cell: ({ amount, currency }) => <Money amount={amount} currency={currency} /> },
];

const paymentColumns: readonly Column<FoundPayment>[] = [
  {
    heading: 'Payment',
    cell: ({ payment_id }) => (
      <a class="row number" href={`/console/payments/${payment_id}`}>
        {payment_id}
      </a>
    ),
  },
  { heading: 'Payer', cell: ({ payer }) => payer ?? <span class="soft">unknown</span> },
  { heading: 'Received', cell: ({ received_on }) => <span class="soft">{received_on}</span> },
  { heading: 'Reference', cell: ({ reference }) => <span class="soft wrap">{reference}</span> },
  { heading: 'Amount', number: true, cell: ({ amount, currency }) => <Money amount={amount} currency={currency} /> },
];

const rowColumns: readonly Column<FoundRow>[] = [
  {
    heading: 'Quote',
    cell: ({ quote_id, number, partner_id }) => (
      <a class="row" href={number === null ? `/console/partners/${partner_id}` : `/console/invoices/${number}`}>
        {quote_id}
      </a>
    ),
  },
  { heading: 'Row', cell: ({ kind }) => <span class="soft">{rowKindName(kind)}</span> },
  { heading: 'Partner', cell: ({ partner_name }) => partner_name },
  {
    heading: 'Billed by',
    cell: ({ number, posted_month }) => number ?? <span class="soft">{`not yet, in ${posted_month}`}</span>,
  },
  { heading: 'Amount', number: true, cell: ({ amount, currency }) => <Money amount={amount} currency={currency} /> },
];

export function searchScreen(view: SearchView): Screen | { readonly to: string } {
  const { q, exact, documents, partners, payments, rows } = view;
  if (exact !== null) return { to: `/console/invoices/${exact}` };
  const found = documents.length + partners.length + payments.length + rows.length;
  return {
    place: null,
    title: q === undefined ? 'Search' : `Search: ${q}`,
    content: (
      <div class="stack">
        {found === 0 && (
          <p class="nothing">
            {q !== undefined && 'Nothing is found. '}
            Search for a document's number, a partner, an exact amount, the whole reference of a payment or a quote's
            id.
          </p>
        )}
        {partners.length > 0 && (
          <Card title="Partners">
            <ul class="ticks plain">
              {partners.map(({ partner_id, name }) => (
                <li>
                  <a class="row" href={`/console/partners/${partner_id}`}>
                    {name}
                  </a>
                  <span class="soft">{partner_id}</span>
                </li>
              ))}
            </ul>
          </Card>
        )}
        {documents.length > 0 && (
          <Card title="Documents" note={noteOf(documents)} flush>
            <DataTable columns={documentColumns} rows={documents} nothing="" caption="Documents" />
          </Card>
        )}
        {payments.length > 0 && (
          <Card title="Payments" note={noteOf(payments)} flush>
            <DataTable columns={paymentColumns} rows={payments} nothing="" caption="Payments" />
          </Card>
        )}
        {rows.length > 0 && (
          <Card title="Rows of the ledger" note={noteOf(rows)} flush>
            <DataTable columns={rowColumns} rows={rows} nothing="" caption="Rows of the ledger" />
          </Card>
        )}
      </div>
    ),
  };
}

const noteOf = (found: readonly unknown[]) => (found.length === SHOWN ? `the latest ${SHOWN}` : undefined);
