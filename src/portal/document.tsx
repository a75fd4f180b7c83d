/** One document as its partner's contact sees it: what is owed, what lowered it, its files, and a dispute. */
import type { ComponentChildren } from 'preact';
import { Card, type Column, DataTable, Facts, Marks, Money } from '../console/kit.tsx';
import type { Transaction } from '../database/transaction.ts';
import { type InvoiceInCheckout, readInvoicesInCheckout } from '../delivery/checkouts/checkouts.sql.ts';
import { readLinkTokens } from '../delivery/links/links.sql.ts';
import { type OpenDispute, readOpenDisputes } from '../documents/disputes.sql.ts';
import { type DocumentRow, type LineRow, readDocuments } from '../documents/documents.sql.ts';
import { documentTitle, rowKindName } from '../documents/present.ts';
import { lineTaxText, taxSteps } from '../documents/present-tax.ts';
import { refuse } from '../errors/refusals.ts';
import { partnersStanding } from '../lists/invoices.ts';
import { Amount } from '../money.ts';
import { monthName } from '../month.ts';
import { type Reduction, readReductions } from './invoice.sql.ts';
import { UnderWay } from './overview.tsx';
import type { PartnerScreen, PartnerVisit } from './route.ts';

export interface PartnerDocumentView {
  readonly document: DocumentRow;
  readonly reductions: readonly Reduction[];
  readonly dispute: OpenDispute | null;
  /** The token of its payment page; null if nothing is to be paid now, or the link was revoked. */
  readonly page: string | null;
  readonly underWay: InvoiceInCheckout | undefined;
  readonly canDispute: boolean;
  readonly today: string;
}

/** Refusal: page_unknown, of another partner's document as well. */
export async function readOwnDocument(
  tx: Transaction,
  { partnerId, request }: Pick<PartnerVisit, 'partnerId' | 'request'>,
  number: string,
): Promise<DocumentRow> {
  const [document] = await readDocuments(tx, { partnerId, number });
  if (document === undefined) throw refuse('page_unknown', { path: request.url });
  return document;
}

export async function readPartnerDocument(
  tx: Transaction,
  visit: PartnerVisit,
  number: string,
): Promise<PartnerDocumentView> {
  const document = await readOwnDocument(tx, visit, number);
  const [dispute = null] = await readOpenDisputes(tx, { number });
  const isOpen = document.document === 'invoice' && document.status === 'open';
  const now = visit.context.environment.now().toISO();
  const inCheckout = isOpen ? await readInvoicesInCheckout(tx, visit.partnerId, now) : [];
  const underWay = inCheckout.find(({ document_id }) => document_id === document.document_id);
  return {
    ...{ document, dispute, underWay, today: visit.today },
    reductions: await readReductions(tx, document.document_id),
    page:
      isOpen && underWay?.ordered_on == null
        ? ((await readLinkTokens(tx, [document])).get(document.document_id) ?? null)
        : null,
    canDispute: isOpen && dispute === null,
  };
}

const REDUCTIONS: Readonly<Record<Reduction['kind'], string>> = {
  payment: 'Payment',
  credit: 'Credit',
  bank_charges: 'Bank charges',
  written_off: 'Written off',
};

export function documentScreen(view: PartnerDocumentView): PartnerScreen {
  const { document, reductions, dispute, page, underWay, canDispute, today } = view;
  const { number, currency } = document;
  const path = `/place/documents/${number}`;
  const hasFiles = document.status !== 'void' && document.pdf_sha256 !== null;
  const isCarried = document.purpose === 'opening';
  const lines: Column<LineRow>[] = [
    { heading: 'Policy', cell: ({ policy_name }) => policy_name },
    { heading: 'Month', cell: ({ month }) => <span class="soft">{monthName(month)}</span> },
    { heading: 'Count', number: true, cell: ({ count, kind }) => `${count} ${rowKindName(kind, count)}` },
    {
      heading: 'Amount',
      number: true,
      cell: ({ invoice_amount }) => <Money amount={invoice_amount} currency={currency} />,
    },
    ...(document.taxes.length === 0
      ? []
      : ([{ heading: 'Tax', number: true, cell: (line) => lineTaxText(line, document) }] satisfies Column<LineRow>[])),
  ];
  return {
    title: `${documentTitle(document.document)} ${number}`,
    crumbs: [{ name: document.partner_name, href: '/place' }],
    lead: <Marks marks={partnersStanding({ ...document, disputed: dispute !== null }, today)} />,
    actions: (
      <>
        {page !== null && (
          <a class="button main" href={`/pay/${page}`}>
            Pay
          </a>
        )}
        {hasFiles && (
          <a class="button" href={`${path}/document.pdf`}>
            PDF
          </a>
        )}
        {hasFiles && document.e_invoice !== 'none' && (
          <a class="button" href={`${path}/e-invoice.xml`} download>
            E-invoice (XML)
          </a>
        )}
        {document.status !== 'void' && document.lines.length > 0 && (
          <a class="button" href={`${path}/rows.csv`} download>
            Rows (CSV)
          </a>
        )}
        {canDispute && (
          <a class="button" href={`${path}/dispute`}>
            Dispute
          </a>
        )}
      </>
    ),
    content: (
      <div class="stack">
        <Card title={isCarried ? 'From our previous billing system' : monthName(document.month)}>
          <Figures document={document} />
          <Facts
            facts={[
              ...taxSteps(document).map(({ label, amount }): [string, ComponentChildren] => [
                label,
                <Money amount={amount.toString()} currency={currency} />,
              ]),
              ['Issued on', document.issued_on],
              ['Due on', document.due_on],
              [
                'Issued over',
                document.original_amount && <Money amount={document.original_amount} currency={currency} />,
              ],
              ['Open on', document.carried_over_on && <CarriedOver document={document} />],
              ['Purchase order', document.purchase_order],
              ['Replaced by', document.replaced_by && <DocumentLink number={document.replaced_by} />],
              ['Replaces', document.replaces && <DocumentLink number={document.replaces} />],
              ['Credits', document.credits && <DocumentLink number={document.credits} />],
              ['Payment', underWay && <UnderWay payment={underWay} />],
              ['Disputed', dispute && <Disputed dispute={dispute} />],
            ]}
          />
        </Card>
        {!isCarried && (
          <Card title="Lines" flush>
            <DataTable columns={lines} rows={document.lines} labelled nothing="It has no lines." caption="Lines" />
          </Card>
        )}
        {document.document === 'invoice' && (
          <Card title="Payments and credits" flush>
            <DataTable
              columns={reductionColumns(currency)}
              rows={reductions}
              labelled
              nothing="Nothing has been applied yet."
              caption="Payments and credits"
            />
          </Card>
        )}
      </div>
    ),
  };
}

/** What was open of it when it came over, and when that was. */
const CarriedOver = ({ document: { carried_over_on: on, invoice_amount, currency } }: { document: DocumentRow }) => (
  <>
    {on}: <Money amount={invoice_amount} currency={currency} />
  </>
);

const DocumentLink = ({ number }: { number: string }) => (
  <a class="number" href={`/place/documents/${number}`}>
    {number}
  </a>
);

const Figures = ({ document: { currency, balance, amount_due, amount_paid } }: { document: DocumentRow }) => (
  <dl class="figures">
    {(
      [
        ['Balance', balance],
        ['Amount due', amount_due],
        ['Paid', amount_paid],
      ] as const
    ).map(([name, amount]) => (
      <div>
        <dt>{name}</dt>
        <dd>
          <Money amount={Amount.of(amount, currency).toString()} currency={currency} />
        </dd>
      </div>
    ))}
  </dl>
);

const Disputed = ({ dispute: { amount, currency, disputed_on, promised_on } }: { dispute: OpenDispute }) => (
  <>
    <Money amount={amount} currency={currency} /> since {disputed_on}
    {promised_on !== null && `, an answer is promised for ${promised_on}`}
  </>
);

const reductionColumns = (currency: string): Column<Reduction>[] => [
  {
    heading: 'What',
    cell: ({ kind, credit_note }) => (
      <>
        {REDUCTIONS[kind]} {credit_note !== null && <DocumentLink number={credit_note} />}
      </>
    ),
  },
  { heading: 'Date', cell: ({ on }) => <span class="soft">{on}</span> },
  { heading: 'Amount', number: true, cell: ({ amount }) => <Money amount={amount} currency={currency} /> },
];
