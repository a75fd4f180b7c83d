import { ComponentChildren } from 'preact';
import { Card, Column, DataTable, Facts, Figures, Marks } from '#console/kit';
import { Transaction } from '#database/transaction';
import { jointReferenceOf } from '#documents/creditor-reference';
import { refuse } from '#errors/refusals';
import { FileKind, InvoiceView, readInvoice } from './invoice.ts';
import { UnderWay } from './overview.tsx';
import { PartnerScreen, PartnerVisit } from './route.ts';

/** Throws page_unknown, also for another partner's document. */
export async function readOwnInvoice(
  tx: Transaction,
  { partnerId, request, context, today }: PartnerVisit,
  number: string,
) {
  const view = await readInvoice(tx, { partnerId, number }, { ...context, today });
  if (view === undefined) throw refuse('page_unknown', { path: request.url });
  return view;
}

export const FILE_LINKS: Readonly<Record<FileKind, readonly [name: string, text: string]>> = {
  pdf: ['document.pdf', 'PDF'],
  'e-invoice.xml': ['e-invoice.xml', 'E-invoice (XML)'],
  'rows.csv': ['rows.csv', 'Rows (CSV)'],
};

export function documentScreen(view: InvoiceView): PartnerScreen {
  const path = `/place/documents/${view.number}`;
  return {
    title: view.title,
    crumbs: [{ name: view.partner, href: '/place' }],
    lead: <Marks marks={view.marks} />,
    actions: (
      <>
        {view.pay !== null && view.token !== null && (
          <a class="button main" href={`/pay/${view.token}`}>
            Pay
          </a>
        )}
        {view.pay !== null && (
          <a class="button" href={`/place/wires/${jointReferenceOf(view.documentId, [])}`}>
            Wire
          </a>
        )}
        {view.files.map(({ kind }) => {
          const [name, text] = FILE_LINKS[kind];
          return (
            <a class="button" href={`${path}/${name}`} download={kind !== 'pdf'}>
              {text}
            </a>
          );
        })}
        {view.canDispute && (
          <a class="button" href={`${path}/dispute`}>
            Dispute
          </a>
        )}
      </>
    ),
    content: (
      <div class="stack">
        <Card title={view.month || 'From our previous billing system'}>
          <Figures
            figures={[
              ['Balance', view.balance],
              ['Amount due', view.amountDue],
              ['Paid', view.paid],
            ]}
          />
          <Facts
            facts={[
              ['Issued on', view.issuedOn],
              ['Due on', view.dueOn],
              ['Purchase order', view.purchaseOrder],
              ['Creditor reference', view.pay?.creditorReference],
              ['Replaced by', view.replacedBy && <DocumentLink number={view.replacedBy} />],
              ['Replaces', view.replaces && <DocumentLink number={view.replaces} />],
              ['Credits', view.credits && <DocumentLink number={view.credits} />],
              ['Payment', view.underWay && <UnderWay payment={view.underWay} />],
              ['Disputed', view.disputed],
            ]}
          />
          {view.carriedOver && <p class="soft">{view.carriedOver}</p>}
        </Card>
        <Card title="Details" flush>
          <Details view={view} />
        </Card>
      </div>
    ),
  };
}

const DocumentLink = ({ number, children }: { number: string; children?: ComponentChildren }) => (
  <a class="number" href={`/place/documents/${number}`}>
    {children ?? number}
  </a>
);

type Line = InvoiceView['lines'][number];

const TAX: Column<Line> = { heading: 'Tax', number: true, cell: ({ tax }) => tax };
const COLUMNS: readonly Column<Line>[] = [
  { heading: 'Policy', cell: ({ policy }) => policy },
  { heading: 'Month', cell: ({ month }) => <span class="soft">{month}</span> },
  { heading: 'Count', number: true, cell: ({ rows }) => rows },
];
const AMOUNT: Column<Line> = { heading: 'Amount', number: true, cell: ({ amount }) => amount };

/** The lines, and then each step from their total to the balance. */
const Details = ({ view: { lines, totals, taxNotes } }: { view: InvoiceView }) => {
  const columns = [...COLUMNS, ...(lines.some(({ tax }) => tax !== '') ? [TAX] : []), AMOUNT];
  return (
    <>
      <DataTable
        columns={columns}
        rows={lines}
        caption="Details"
        foot={totals.map(({ label, amount, creditNote }) => (
          <tr class="step">
            <td colSpan={columns.length - 1}>
              {creditNote === null ? label : <DocumentLink number={creditNote}>{label}</DocumentLink>}
            </td>
            <td class="num">{amount}</td>
          </tr>
        ))}
      />
      {taxNotes.length > 0 && <p class="soft in">{taxNotes.join(' ')}</p>}
    </>
  );
};
