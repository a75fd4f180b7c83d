/** The open items, documents and account statement of a partner. */

import { ListPager, ListTable, ListView } from '#console/list';
import {
  balanceColumns,
  Card,
  Chip,
  Column,
  DataTable,
  Form,
  Money,
  owedColumns,
  TableCard,
  Tabs,
} from '#console/parts';
import { Accounts, PartnerStatementView, StatementFiles, StatementPeriod } from '#console/screens/partner-statement';
import { Transaction } from '#database/transaction';
import { InvoiceInCheckout, readInvoicesInCheckout } from '#delivery/checkouts/checkouts.sql';
import { checkoutProvider } from '#delivery/checkouts/open';
import { readLinkTokens } from '#delivery/links/links.sql';
import { linkProvider } from '#delivery/payment-link';
import { OpenItem } from '#reports/open-items.sql';
import { PartnerBalance, readPartnerBalances } from '#reports/partner-balances';
import { Amount, moneyText, plural } from '#values';
import { PartnerScreen, PartnerVisit } from './route.ts';

/** The form field of each selected invoice, because repeated fields are refused. */
export const CHOSEN = 'invoice:';

export const chosenIn = (fields: ReadonlyMap<string, string>, prefix = CHOSEN) =>
  [...fields.keys()].flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));

const TABS = [
  ['', 'Open'],
  ['/documents', 'All documents'],
  ['/reversals', 'Reversals'],
  ['/statement', 'Account statement'],
  ['/terms', 'Terms'],
] as const;

export const frameOf = (visit: PartnerVisit, tab: (typeof TABS)[number][0]) => ({
  title: visit.reader.partner,
  lead: `Invoices from ${visit.reader.issuer}`,
  tabs: (
    <Tabs
      label="Your account"
      tabs={TABS.map(([path, name]) => ({ name, href: `/place${path}`, current: path === tab }))}
    />
  ),
});

export type OpenView = Readonly<{
  as_of: string;
  balances: readonly PartnerBalance[];
  items: readonly OpenItem[];
  pages: ReadonlyMap<number, string>;
  canPay: boolean;
  underWay: ReadonlyMap<number, InvoiceInCheckout>;
}>;

export async function readOpen(tx: Transaction, { partnerId, today, context }: PartnerVisit): Promise<OpenView> {
  const { environment, settings } = context;
  const inCheckout = await readInvoicesInCheckout(tx, { partnerId, now: environment.now().toISO() });
  const { as_of, balances, items } = await readPartnerBalances(tx, { today, scope: [partnerId] });
  return {
    ...{ as_of, balances },
    items: items.toSorted((one, other) => ((one.due_on ?? '9') < (other.due_on ?? '9') ? -1 : 1)),
    pages: await readLinkTokens(tx, items),
    canPay: checkoutProvider(linkProvider(settings, environment)) !== undefined,
    underWay: new Map(inCheckout.map((each) => [each.document_id, each])),
  };
}

const BALANCES: readonly Column<PartnerBalance>[] = [
  ...balanceColumns('Unapplied payments'),
  {
    heading: 'Balance',
    number: true,
    cell: ({ net, currency }) => (
      <strong>
        <Money amount={net} currency={currency} bare />
      </strong>
    ),
  },
];

export const numberCell = ({ number }: { readonly number: string }) => (
  <a class="row number" href={`/place/documents/${number}`}>
    {number}
  </a>
);

/** At the processor, where the form leads, or by a wire. */
const WAYS: readonly (readonly [name: string, action?: string])[] = [['Pay'], ['Wire', '/place/wires']];

type PaymentProblem = Readonly<{
  problem: string;
  chosen: readonly string[];
}>;

export function openScreen(view: OpenView, visit: PartnerVisit, refused?: PaymentProblem): PartnerScreen {
  const { as_of, balances, items, canPay } = view;
  const payable = items.filter((item) => isPayable(view, item));
  const columns = columnsOf(view);
  const table = (
    <DataTable
      columns={payable.length === 0 ? columns : [...columns.slice(0, 1), choiceOf(view, refused), ...columns.slice(1)]}
      rows={items}
      nothing="All invoices are settled."
      caption="Open"
    />
  );
  return {
    ...frameOf(visit, ''),
    content: (
      <div class="stack">
        {refused !== undefined && (
          <p class="problem" role="alert">
            {refused.problem}
          </p>
        )}
        <TableCard
          title="Balance"
          note={`as of ${as_of}`}
          columns={BALANCES}
          rows={balances}
          nothing="Nothing is open."
        />
        <Card title="Open" note={plural(items.length, 'document')} flush>
          {payable.length === 0 ? (
            table
          ) : (
            <Form action="/place/payments" token={visit.reader.formToken}>
              {table}
              {WAYS.map(([name, action]) =>
                action === undefined && !canPay ? null : (
                  <p class="buttons in">
                    <button type="submit" class={action === undefined ? 'main' : undefined} formaction={action}>
                      {`${name} selected`}
                    </button>
                    {totalsOf(payable).map(({ total, count }) => (
                      <button type="submit" name="all" value={total.currency} formaction={action}>
                        {`${name} all ${count} · ${moneyText(total.toString(), total.currency)}`}
                      </button>
                    ))}
                  </p>
                ),
              )}
            </Form>
          )}
        </Card>
      </div>
    ),
  };
}

export const isPayable = ({ underWay }: OpenView, { document, document_id }: OpenItem) =>
  document === 'invoice' && underWay.get(document_id)?.ordered_on == null;

/** The payable items that the form names, or those of a currency. */
export function payableItems(view: OpenView, fields: ReadonlyMap<string, string>) {
  const [currency, chosen] = [fields.get('all'), chosenIn(fields)];
  return view.items.filter(
    (item) =>
      isPayable(view, item) && (currency === undefined ? chosen.includes(item.number) : item.currency === currency),
  );
}

/** The payable total of each currency that has several invoices. */
function totalsOf(payable: readonly OpenItem[]): { total: Amount; count: number }[] {
  const currencies = [...new Set(payable.map(({ currency }) => currency))];
  return currencies
    .map((currency) => payable.filter((each) => each.currency === currency))
    .filter((items) => items.length > 1)
    .map((items) => {
      const amounts = items.map(({ balance, currency }) => Amount.of(balance, currency));
      return { count: items.length, total: amounts.reduce((sum, each) => sum.plus(each)) };
    });
}

const choiceOf = (view: OpenView, refused: PaymentProblem | undefined): Column<OpenItem> => ({
  heading: 'Choose',
  cell: (item) =>
    isPayable(view, item) && (
      <input
        type="checkbox"
        name={`${CHOSEN}${item.number}`}
        checked={refused?.chosen.includes(item.number)}
        aria-label={`Choose ${item.number}`}
      />
    ),
});

const columnsOf = (view: OpenView): Column<OpenItem>[] => [
  { heading: 'Number', cell: numberCell },
  { heading: 'Issued', cell: ({ issued_on }) => <span class="soft">{issued_on}</span> },
  ...owedColumns(view.as_of),
  { heading: 'Pay', cell: (item) => payCell(view, item) },
];

/** A payment of several invoices links to its own page. */
export const UnderWay = ({ payment: { reference, ordered_on } }: { readonly payment: InvoiceInCheckout }) => {
  const chip = <Chip tone="warn">{ordered_on === null ? 'payment started' : `debit of ${ordered_on}`}</Chip>;
  return reference === null ? chip : <a href={`/place/payments/${reference}`}>{chip}</a>;
};

function payCell(view: OpenView, item: OpenItem) {
  const { document_id, document, number } = item;
  const payment = view.underWay.get(document_id);
  const token = document === 'invoice' && isPayable(view, item) ? view.pages.get(document_id) : undefined;
  return (
    <>
      {payment !== undefined && <UnderWay payment={payment} />}{' '}
      {token !== undefined && (
        <a class="button" href={`/pay/${token}`} aria-label={`Pay ${number}`}>
          Pay
        </a>
      )}
    </>
  );
}

/** The partner's own rows, whose links lead to its documents. */
function listScreen(view: ListView, visit: PartnerVisit, tab: (typeof TABS)[number]): PartnerScreen {
  const [at, title] = tab;
  const path = `/place${at}`;
  const hrefOf = (_place: string, number: unknown) => `/place/documents/${encodeURIComponent(String(number))}`;
  return {
    ...frameOf(visit, at),
    content: (
      <Card title={title} flush>
        <ListTable
          {...{ view, path, hrefOf, face: view.list.place ?? [] }}
          nothing={`There are no ${view.list.one}s yet.`}
        />
        <ListPager view={view} path={path} />
      </Card>
    ),
  };
}

export const documentsScreen = (view: ListView, visit: PartnerVisit) => listScreen(view, visit, TABS[1]);
export const reversalsScreen = (view: ListView, visit: PartnerVisit) => listScreen(view, visit, TABS[2]);

export function statementScreen({ statement }: PartnerStatementView, visit: PartnerVisit): PartnerScreen {
  const path = '/place/statement';
  return {
    ...frameOf(visit, '/statement'),
    actions: <StatementFiles path={path} statement={statement} />,
    content: (
      <>
        <StatementPeriod path={path} statement={statement}>
          {statement.preliminary && <Chip tone="warn">preliminary: it can still change</Chip>}
        </StatementPeriod>
        <div class="stack">
          <Accounts statement={statement} documents="/place/documents" />
        </div>
      </>
    ),
  };
}
