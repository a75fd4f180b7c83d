/** The global search. A document number opens the document. Other text lists what has it. */
import { SOUGHT_AMOUNT } from '../../actions/fields.ts';
import { needQuotes } from '../../archive/rows.ts';
import type { Transaction } from '../../database/transaction.ts';
import { rowKindName } from '../../documents/present.ts';
import type { Scope } from '../../people/scope.ts';
import {
  addressOf,
  amountColumn,
  Card,
  type Column,
  DataTable,
  InvoiceLink,
  PartnerLink,
  type Screen,
  textAsked,
} from '../parts.ts';
import {
  type FoundDocument,
  type FoundLine,
  type FoundPartner,
  type FoundPayment,
  type FoundRow,
  readFoundDocuments,
  readFoundLines,
  readFoundPartners,
  readFoundPayments,
  readFoundRows,
} from './search.sql.ts';

type SearchView = Readonly<{
  q: string | undefined;
  /** If it equals the searched text. */
  exact: string | null;
  documents: readonly FoundDocument[];
  partners: readonly FoundPartner[];
  payments: readonly FoundPayment[];
  lines: readonly FoundLine[];
  rows: readonly FoundRow[];
  /** Why archived rows could not be looked at. */
  fault?: string | undefined;
}>;

const SHOWN = 20;
const NOTHING = { exact: null, documents: [], partners: [], payments: [], lines: [], rows: [] };

export async function readSearch(
  tx: Transaction,
  asked: { readonly q?: string },
  { scope }: { scope: Scope },
): Promise<SearchView> {
  const q = textAsked(asked.q);
  if (q === undefined) return { q, ...NOTHING };
  const amount = SOUGHT_AMOUNT.safeParse(q).data ?? null;
  const seen = { q, amount, scope, limit: SHOWN };
  const documents = await readFoundDocuments(tx, seen);
  const exact = documents.find((each) => each.exact)?.number ?? null;
  if (exact !== null) return { q, ...NOTHING, exact };
  const found = {
    ...{ q, exact, documents },
    partners: await readFoundPartners(tx, seen),
    payments: await readFoundPayments(tx, seen),
    lines: await readFoundLines(tx, seen),
  };
  const isElse = [found.documents, found.partners, found.payments, found.lines].some((each) => each.length > 0);
  const rows = await readFoundRows(tx, seen);
  // What is found otherwise is no quote or order, so no archive is read for it.
  if (isElse && rows.length === 0) return { ...found, rows };
  const fault = await needQuotes(tx, q);
  return { ...found, rows: await readFoundRows(tx, seen), fault };
}

const documentColumns: readonly Column<FoundDocument>[] = [
  {
    heading: 'Number',
    cell: ({ number }) => <InvoiceLink number={number} first />,
  },
  { heading: 'Partner', cell: ({ partner_name }) => partner_name },
  { heading: 'Month', cell: ({ month }) => <span class="soft">{month}</span> },
  amountColumn('Amount', 'amount'),
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
  amountColumn('Amount', 'amount'),
];

const rowColumns: readonly Column<FoundRow>[] = [
  {
    heading: 'Quote',
    cell: ({ quote_id }) => (
      <a class="row" href={addressOf('/console/rows', { quote: quote_id })}>
        {quote_id}
      </a>
    ),
  },
  { heading: 'Enrollment', cell: ({ enrollment_id }) => <span class="soft id">{enrollment_id ?? ''}</span> },
  { heading: 'Order', cell: ({ order_reference }) => <span class="soft wrap">{order_reference ?? ''}</span> },
  { heading: 'Row', cell: ({ kind }) => <span class="soft">{rowKindName(kind)}</span> },
  { heading: 'Partner', cell: ({ partner_name }) => partner_name },
  {
    heading: 'Billed by',
    cell: ({ number, posted_month }) =>
      number === null ? (
        <span class="soft">{`not billed yet: due in ${posted_month}`}</span>
      ) : (
        <InvoiceLink number={number} />
      ),
  },
  amountColumn('Amount', 'amount'),
];

const lineColumns: readonly Column<FoundLine>[] = [
  { heading: 'Booked', cell: ({ booked_on }) => <span class="day">{booked_on}</span> },
  {
    heading: 'Text',
    cell: ({ text, booked_on }) => (
      <a class="row wrap" href={`/console/payments/lines?from=${booked_on}&to=${booked_on}`}>
        {text}
      </a>
    ),
  },
  { heading: 'Status', cell: ({ state }) => state },
  amountColumn('Amount', 'amount'),
];

export function searchScreen(view: SearchView): Screen | { readonly to: string } {
  const { q, exact, documents, partners, payments, lines, rows, fault } = view;
  if (exact !== null) return { to: `/console/invoices/${exact}` };
  const found = documents.length + partners.length + payments.length + lines.length + rows.length;
  return {
    place: null,
    title: q === undefined ? 'Search' : `Search: ${q}`,
    content: (
      <div class="stack">
        {found === 0 && (
          <p class="nothing">
            {q !== undefined && 'Nothing found. '}
            Search for a document number, a partner, an exact amount, a payment reference, a text of the bank, a quote
            or enrollment id or an order reference.
          </p>
        )}
        {fault !== undefined && <p class="nothing">Rows of archived months were not searched: {fault}</p>}
        {partners.length > 0 && (
          <Card title="Partners">
            <ul class="ticks plain">
              {partners.map(({ partner_id, name }) => (
                <li>
                  <PartnerLink id={partner_id}>{name}</PartnerLink>
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
        {lines.length > 0 && (
          <Card title="Bank lines" note={noteOf(lines)} flush>
            <DataTable columns={lineColumns} rows={lines} nothing="" caption="Bank lines" />
          </Card>
        )}
        {rows.length > 0 && (
          <Card title="Ledger rows" note={noteOf(rows)} flush>
            <DataTable columns={rowColumns} rows={rows} nothing="" caption="Ledger rows" />
          </Card>
        )}
      </div>
    ),
  };
}

const noteOf = (found: readonly unknown[]) => (found.length === SHOWN ? `the latest ${SHOWN}` : undefined);
