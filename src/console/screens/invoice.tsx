import { Blocks } from '#console/blocks';
import { Actions, addressOf, Card, Figures, Marks, Money, RareAction, Screen, Seer } from '#console/parts';
import { Visit } from '#console/route';
import { Transaction } from '#database/transaction';
import { OpenDispute, readOpenDisputes } from '#documents/disputes.sql';
import { DocumentFilter, DocumentRow, readDocuments } from '#documents/documents.sql';
import { afterwords, HistoryLine, readHistory } from '#documents/history';
import { documentTitle } from '#documents/present';
import { settledWithoutCash } from '#documents/settled';
import { refuse } from '#errors/refusals';
import { documentFacts, linesBlocks } from '#lists/document';
import { standingOf } from '#lists/invoices';
import { isInPeriod, isInScope } from '#people/scope';
import { Amount, capitalized, monthName } from '#values';

type InvoiceView = Readonly<{
  document: DocumentRow;
  history: readonly HistoryLine[];
  dispute: OpenDispute | null;
  today: string;
}>;

type Seen = Pick<Visit, 'scope' | 'period' | 'params'>;

/** Throws document_unknown, also for another partner's document, or one of another month. */
export async function readInScope(
  tx: Transaction,
  { scope, period, params }: Seen,
  filter: Pick<DocumentFilter, 'withLogos'> = {},
): Promise<DocumentRow> {
  const { number = '' } = params;
  const [document] = await readDocuments(tx, { number, ...filter });
  if (document === undefined || !isInScope(scope, document.partner_id) || !isInPeriod(period, document.month))
    throw refuse('document_unknown', { number });
  return document;
}

export async function readInvoice(
  tx: Transaction,
  { today, ...seen }: Seen & Pick<Visit, 'today'>,
): Promise<InvoiceView> {
  const document = await readInScope(tx, seen);
  const { number } = document;
  const [dispute = null] = await readOpenDisputes(tx, { number });
  return { document, history: await readHistory(tx, document.document_id), dispute, today };
}

/** What the form of a payment already knows. */
const receivedFor = ({ number, balance, currency }: DocumentRow, receivedOn: string) => ({
  ...{ number, currency, amount: text(balance, currency), receivedOn },
});

/** In the order of their use. */
function actionsOn(row: DocumentRow, dispute: OpenDispute | null, today: string): RareAction[] {
  const { document, status, number, partner_id: partner, purpose } = row;
  const act = (action: string, name: string, input: RareAction['input'] = { number }): RareAction => ({
    ...{ action, name, partner, input },
  });
  const when = (is: boolean, ...actions: RareAction[]) => (is ? actions : []);
  const isCarried = purpose === 'opening';
  const rerun = act('invoice.rerun', 'Reissue');
  if (status === 'void') return when(!isCarried, rerun);
  const isThere = (amount: string) => /[1-9]/.test(amount);
  const isHeld = row.held_at !== null;
  const isOpen = status === 'open';
  const [isNote, isInvoice] = [document === 'credit_note', document === 'invoice'];
  return [
    ...when(isHeld, act('invoice.release', 'Release')),
    ...when(
      isOpen && isInvoice,
      act('payment.record', 'Record payment', receivedFor(row, today)),
      act('invoice.credit', 'Credit'),
      dispute === null ? act('dispute.open', 'Dispute') : act('dispute.close', 'Close dispute'),
    ),
    ...when(
      isNote && isOpen && !isHeld,
      act('credit.apply', 'Apply to an invoice', { creditNote: number }),
      act('credit.refund', 'Record a refund'),
    ),
    ...when(!isCarried, act('invoice.resend', 'Resend')),
    ...when(!isHeld, act('invoice.hold', 'Hold')),
    ...when(!isCarried, act('invoice.delivered', 'Delivered by portal')),
    ...when(isOpen && isInvoice, act('credit.apply', 'Apply credit')),
    ...when(
      isNote,
      act('credit.unapply', 'Unapply from an invoice', { creditNote: number }),
      act('credit.refund_returned', 'A refund came back'),
    ),
    ...when(
      isInvoice && (isThere(row.credited) || isThere(row.credit_applied)),
      act('credit.unapply', 'Take back credit'),
    ),
    ...when(isInvoice && isThere(row.written_off), act('invoice.write_off_undone', 'Undo the write-off')),
    ...when(isInvoice && isOpen, act('invoice.link_rotate', 'Replace the link of its payment page')),
    ...when(isInvoice && row.payment_link !== null, act('invoice.link_revoke', 'Revoke the link of its payment page')),
    ...when(isCarried && document !== 'statement', act('opening.reverse', 'Reverse', { numbers: number })),
    ...when(isInvoice && isOpen, act('invoice.write_off', 'Write off')),
    ...when(!isCarried && !isThere(row.amount_paid), rerun, act('invoice.void', 'Void')),
  ];
}

export function invoiceScreen(
  { document: row, history, dispute, today }: InvoiceView,
  { user }: { user: Seer },
): Screen {
  const { number, currency } = row;
  const pathOf = (name: string) => `/console/invoices/${number}/${name}.pdf`;
  const issued = row.pdf_sha256 === null ? null : pathOf('document');
  const voidCopy = row.status === 'void' && row.purpose !== 'opening' ? pathOf('void-copy') : null;
  const file = voidCopy ?? issued;
  return {
    place: 'invoices',
    title: `${documentTitle(row.document)} ${number}`,
    crumbs: [{ name: 'Invoices', href: '/console/invoices' }],
    lead: <Marks marks={standingOf({ ...row, disputed: dispute !== null }, today)} />,
    // What is settled needs nothing.
    actions: <Actions user={user} actions={actionsOn(row, dispute, today)} main={row.status !== 'paid'} />,
    content: (
      <div class="columns">
        <div class="stack">
          <section class="card">
            <header>
              <h2>
                <a href={`/console/partners/${row.partner_id}`}>{row.partner_name}</a>
              </h2>
              <p>{row.purpose === 'opening' ? 'carried over' : monthName(row.month)}</p>
            </header>
            <div class="in stack">
              <Figures
                figures={figuresOf(row).map(([name, amount]) => [
                  name,
                  <Money amount={text(amount, currency)} currency={currency} />,
                ])}
              />
            </div>
          </section>
          <Blocks blocks={[{ title: 'Facts', facts: factsOf(row, dispute) }, ...linesBlocks(row)]} />
          <History row={row} history={history} />
        </div>
        <Card
          title={voidCopy === null ? 'PDF' : 'Void copy'}
          actions={
            <>
              {file !== null && (
                <a class="button" href={file} hx-boost="false">
                  Open
                </a>
              )}
              {voidCopy !== null && issued !== null && (
                <a class="button" href={issued} hx-boost="false">
                  As it was issued
                </a>
              )}
              {row.pdf_sha256 !== null && row.e_invoice !== 'none' && (
                <a class="button" href={`/console/invoices/${number}/e-invoice.xml`} hx-boost="false" download>
                  E-invoice (XML)
                </a>
              )}
              {row.purpose === 'month' && (
                <a class="button" href={addressOf('/console/rows', { document: number })}>
                  Rows
                </a>
              )}
              {row.lines.length > 0 && (
                <a class="button" href={`/console/invoices/${number}/rows.csv`} hx-boost="false" download>
                  Rows (CSV)
                </a>
              )}
            </>
          }
        >
          {file === null ? (
            <p class="nothing">
              {row.purpose === 'opening'
                ? 'The previous system issued it, and the partner has the original.'
                : 'The PDF has not been rendered yet.'}
            </p>
          ) : (
            <iframe
              class="pdf"
              src={`${file}#navpanes=0&view=FitH`}
              title={`${voidCopy === null ? 'PDF' : 'Void copy'} of ${number}`}
            />
          )}
        </Card>
      </div>
    ),
  };
}

/** The amounts of a document's head. The first is what the others leave. */
function figuresOf(row: DocumentRow): (readonly [string, string])[] {
  const isThere = ([, amount]: readonly [string, string]) => /[1-9]/.test(amount);
  if (row.document !== 'invoice') {
    const used = [
      ['Applied to invoices', row.credited],
      ['Refunded', row.amount_paid],
    ] as const;
    const isNote = row.document === 'credit_note' && row.status !== 'void';
    return [
      ...(isNote ? [['Open credit', row.balance] as const] : []),
      ['Amount', row.document === 'credit_note' ? row.gross : row.invoice_amount],
      ...used.filter(isThere),
    ];
  }
  const settled = settledWithoutCash(row).map(({ label, amount }) => [capitalized(label), amount.toString()] as const);
  return [
    ['Balance', row.balance],
    ['Amount due', row.amount_due],
    ...settled.filter(isThere),
    ['Paid', row.amount_paid],
  ];
}

/** The history, with hashes, ids and host names folded below it. */
/** Without what the page shows above them, and its files. */
const factsOf = (...of: Parameters<typeof documentFacts>) =>
  documentFacts(...of).filter(([label]) => !['partner', 'month', 'status', 'PDF'].includes(label));

function History({ row, history }: { row: DocumentRow; history: readonly HistoryLine[] }) {
  const minute = (at: string) => at.slice(0, 16).replace('T', ' ');
  const technical = history.flatMap(({ at, technical: detail, by }) => {
    const where = by === null ? null : `${by.os_user} on ${by.host}`;
    const said = [detail, where].filter((each) => each !== null).join('; ');
    return said === '' ? [] : [`${minute(at)} ${said}`];
  });
  return (
    <Card title="History">
      <ol class="timeline">
        {history.map(({ at, says, by, ...more }) => (
          <li>
            <time dateTime={at}>{minute(at)}</time>
            <span>
              {capitalized(says) + afterwords(more)}
              {by?.claimed_by && <span class="soft">{` · ${by.claimed_by}`}</span>}
            </span>
          </li>
        ))}
      </ol>
      <details>
        <summary>Technical</summary>
        <ul class="technical">
          {row.pdf_sha256 !== null && (
            <li>
              PDF, SHA-256 <code class="hash">{row.pdf_sha256}</code>
            </li>
          )}
          {technical.map((each) => (
            <li class="wrap">{each}</li>
          ))}
        </ul>
      </details>
    </Card>
  );
}

const text = (amount: string, currency: string) => Amount.of(amount, currency).toString();
