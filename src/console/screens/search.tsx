/** The global search. A document number opens the document. Other text lists what has it. */
import { SOUGHT_AMOUNT } from '#actions/fields';
import { needQuotes } from '#archive/rows';
import { consoleHref, ListContext, ListTable, ListView } from '#console/list';
import { addressOf, amountColumn, Card, Column, InvoiceLink, Screen, TableCard, textAsked } from '#console/parts';
import { Transaction } from '#database/transaction';
import { rowKindName } from '#documents/present';
import { bankLines } from '#lists/bank-lines';
import { disputes } from '#lists/disputes';
import { fullNumber, invoices } from '#lists/invoices';
import { List } from '#lists/list';
import { partners } from '#lists/partners';
import { payments } from '#lists/payments';
import { FoundRow, readFoundNumber, readFoundRows } from './search.sql.ts';

type SearchView = Readonly<{
  q: string | undefined;
  /** The document whose number equals the searched text. */
  exact: string | null;
  found: readonly Found[];
  rows: readonly FoundRow[];
  /** Why archived rows could not be looked at. */
  fault?: string | undefined;
}>;

type Found = Readonly<{
  view: ListView;
  path: string;
  isPart: boolean;
}>;

/** The lists that are searched with their own filters, and their places in the console. */
const LISTS: readonly (readonly [place: string, list: List])[] = [
  ['partners', partners],
  ['invoices', invoices],
  ['queue/disputes', disputes],
  ['payments/all', payments],
  ['payments/lines', bankLines],
];

const SHOWN = 20;

export async function readSearch(
  tx: Transaction,
  asked: { readonly q?: string },
  seen: ListContext,
): Promise<SearchView> {
  const { scope } = seen;
  const q = textAsked(asked.q);
  if (q === undefined) return { q, exact: null, found: [], rows: [] };
  const exact = (await readFoundNumber(tx, { number: fullNumber(q), scope }))?.number ?? null;
  if (exact !== null) return { q, exact, found: [], rows: [] };
  const amount = SOUGHT_AMOUNT.safeParse(q).data;
  const found: Found[] = [];
  for (const [place, list] of LISTS.filter(([, { ofLedger }]) => !ofLedger || scope === null)) {
    for (const question of [{ text: q }, ...(amount === undefined || list === partners ? [] : [{ amount }])]) {
      const [sort] = list.sorts;
      const rows = await list.read(tx, { ...seen, filter: question, sort, after: null, limit: SHOWN + 1 });
      const empty = { sums: { count: null, totals: [] }, partners: new Map<string, string>(), next: null, ticked: [] };
      const view = { list, question, sort, today: seen.today, rows: rows.slice(0, SHOWN), ...empty };
      if (rows.length > 0) found.push({ view, path: `/console/${place}`, isPart: rows.length > SHOWN });
    }
  }
  const rows = await readFoundRows(tx, { q, scope, limit: SHOWN });
  // Text that a list has is not an id of a row, so the archive is not read for it.
  if (found.length > 0 && rows.length === 0) return { q, exact, found, rows };
  const fault = await needQuotes(tx, q);
  return { q, exact, found, rows: await readFoundRows(tx, { q, scope, limit: SHOWN }), fault };
}

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

export function searchScreen(view: SearchView): Screen | { readonly to: string } {
  const { q, exact, found, rows, fault } = view;
  if (exact !== null) return { to: `/console/invoices/${exact}` };
  return {
    place: null,
    title: q === undefined ? 'Search' : `Search: ${q}`,
    content: (
      <div class="stack">
        {found.length + rows.length === 0 && (
          <p class="nothing">
            {q !== undefined && 'Nothing found. '}
            Search for a document number, a partner, an exact amount, a payment reference, a text of the bank, a quote
            or enrollment id or an order reference.
          </p>
        )}
        {fault !== undefined && <p class="nothing">Rows of archived months were not searched: {fault}</p>}
        {found.map(({ view: { list, question }, view: each, path, isPart }) => (
          <Card
            title={question['amount'] ? `${list.title} with the amount ${q}` : list.title}
            note={isPart && <a href={addressOf(path, question)}>all that match</a>}
            flush
          >
            <ListTable view={each} path={path} face={list.page ?? []} hrefOf={consoleHref} />
          </Card>
        ))}
        {rows.length > 0 && <TableCard title="Ledger rows" note={noteOf(rows)} columns={rowColumns} rows={rows} />}
      </div>
    ),
  };
}

const noteOf = (found: readonly unknown[]) => (found.length === SHOWN ? `the latest ${SHOWN}` : undefined);
