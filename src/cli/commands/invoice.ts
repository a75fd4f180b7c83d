/** `reckoner invoice list|show|pdf`. */
import type { Transaction } from '../../database/transaction.ts';
import { documentJson } from '../../documents/document.ts';
import { type HistoryLine, readHistory } from '../../documents/history.ts';
import { type DocumentFilter, type DocumentRow, readDocuments, readPdf } from '../../documents/queries.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { Amount, groupThousands } from '../../money.ts';
import type { Month } from '../../month.ts';
import { reading } from '../context.ts';
import { type Output, printable, short, table, wrapped, writeFileAsked } from '../output.ts';

export interface InvoiceListOptions {
  readonly month?: Month;
  readonly partner?: string;
  readonly status?: 'open' | 'paid' | 'void';
}

export async function invoiceList(output: Output, options: InvoiceListOptions): Promise<number> {
  return reading(async ({ database }) => {
    const documents = await database.reading((tx) =>
      readDocuments(tx, {
        months: options.month === undefined ? undefined : [options.month],
        partnerId: options.partner,
        status: options.status,
      }),
    );
    output.print(documents.map(documentJson), () =>
      documents.length === 0 ? 'There are no such documents.' : listed(documents),
    );
    return EXIT.done;
  });
}

/** In 80 columns: of one month the month is not said, and the partner has what the others leave. */
function listed(documents: readonly DocumentRow[]): string {
  const months = new Set(documents.map(({ month }) => month));
  const month = months.size > 1;
  const others = documents.map((row) => [
    row.number,
    ...(month ? [row.month] : []),
    row.due_on ?? '',
    amount(row.amount_due, row.currency),
    row.currency,
    row.status,
    row.email_status ?? '',
  ]);
  const headings = ['number', ...(month ? ['month'] : []), 'due', '>amount due', '', 'status', 'e-mail'];
  const taken = headings.reduce(
    (sum, heading, at) => sum + 2 + Math.max(heading.length, ...others.map((row) => row[at]?.length ?? 0)),
    0,
  );
  const width = Math.max(8, 80 - taken);
  const rows = others.map(([number = '', ...rest], at) => [
    number,
    short(documents[at]?.partner_id ?? '', width),
    ...rest,
  ]);
  return table(['number', 'partner', ...headings.slice(1)], rows);
}

const amount = (text: string, currency: string): string => groupThousands(Amount.of(text, currency).toString());

export async function invoiceShow(output: Output, number: string): Promise<number> {
  return reading(async ({ database }) => {
    const [row, story] = await database.reading(async (tx) => {
      const document = await documentNumbered(tx, number);
      return [document, await readHistory(tx, document.document_id)] as const;
    });
    output.print({ ...documentJson(row), story }, () => `${described(row)}\n\n${told(story)}`);
    return EXIT.done;
  });
}

export async function documentNumbered(
  tx: Transaction,
  number: string,
  filter: Pick<DocumentFilter, 'withLogos'> = {},
): Promise<DocumentRow> {
  const [row] = await readDocuments(tx, { ...filter, number });
  if (row === undefined) throw refuse('document_unknown', { number });
  return row;
}

const TITLES = { invoice: 'Invoice', credit_note: 'Credit note', statement: 'Statement' } as const;
const KINDS = { quote_accepted: 'quotes', requote_accepted: 'requotes', reversal: 'reversals' } as const;

/** `1,234.50 USD`. */
export const money = (text: string, currency: string): string => `${amount(text, currency)} ${currency}`;

function described(row: DocumentRow): string {
  const facts: [string, string][] = [
    ['partner', `${row.partner_name} (${row.partner_id})`],
    ['month', row.month],
    ['issued on', row.issued_on],
    ['due on', row.due_on ?? 'nothing is due'],
    ['status', statusStory(row)],
    ['amount', money(row.invoice_amount, row.currency)],
    ['credit applied', money(row.credit_applied, row.currency)],
    ['amount due', money(row.amount_due, row.currency)],
    ['credited', money(row.credited, row.currency)],
    ['paid', money(row.amount_paid, row.currency)],
    ['balance', money(row.balance, row.currency)],
    ['payment link', row.payment_link ?? 'none'],
    [
      'PDF',
      row.pdf_sha256 === null ? 'not drawn yet' : `${row.pdf_bytes} bytes, sha256 ${row.pdf_sha256.slice(0, 16)}…`,
    ],
    ['e-mail', emailStory(row)],
  ];
  const lines = row.lines.map((line) => [
    short(line.policy_name, 24),
    KINDS[line.kind],
    line.month,
    line.count,
    amount(line.spot_price, row.currency),
    amount(line.partner_cut, row.currency),
    amount(line.invoice_amount, row.currency),
  ]);
  return [
    `${TITLES[row.document]} ${row.number}`,
    ...facts.map(([label, value]) => `  ${label.padEnd(15)} ${printable(value)}`),
    '',
    table(['policy', 'rows', 'month', '>count', '>sales', '>their cut', '>ours'], lines),
  ].join('\n');
}

function statusStory({ status, voided_on, replaced_by, held_at, replaces, credits }: DocumentRow): string {
  const remarks = [
    ...(voided_on === null
      ? []
      : [`since ${voided_on}, ${replaced_by === null ? 'not replaced' : `replaced by ${replaced_by}`}`]),
    ...(replaces === null ? [] : [`replaces ${replaces}`]),
    ...(credits === null ? [] : [`against ${credits}`]),
    ...(held_at === null ? [] : ['on hold']),
  ];
  return [status, ...remarks].join(', ');
}

/** Each happening with its instant; texts are broken into lines of a terminal. */
function told(story: readonly HistoryLine[]): string {
  const lines = story.flatMap(({ at, says, by }) => {
    const who =
      by === null ? '' : ` (${by.claimed_by === null ? '' : `${by.claimed_by}, as `}${by.os_user} on ${by.host})`;
    return wrapped(printable(says + who), 57).map(
      (line, index) => `  ${index === 0 ? at.slice(0, 19) : ' '.repeat(19)}  ${line}`,
    );
  });
  return ['Story', ...lines].join('\n');
}

export function emailStory(row: DocumentRow): string {
  const { email_status: status, email_reason: reason, email_to: to, sent_at: sentAt } = row;
  if (status === null) return 'none';
  if (status === 'sent') return `sent to ${(to ?? []).join(', ')} at ${sentAt}`;
  return reason === null ? status : `${status}: ${reason}`;
}

export interface InvoicePdfOptions {
  readonly output?: string;
  readonly voidCopy?: boolean;
}

export async function invoicePdf(output: Output, number: string, options: InvoicePdfOptions): Promise<number> {
  if (options.output === '-' && output.json) {
    throw refuse('argument_invalid', {
      argument: '--output',
      value: '-',
      reason: 'puts the PDF where --json puts its document',
    });
  }
  return reading(async ({ database }) => {
    const [row, kept] = await database.reading(async (tx) => {
      const found = await documentNumbered(tx, number, { withLogos: options.voidCopy });
      return [found, options.voidCopy ? undefined : await readPdf(tx, found.document_id)] as const;
    });
    // Drawing takes a while to load, and nothing else here draws.
    const pdf = options.voidCopy ? await (await import('../../documents/void-copy.ts')).renderVoidCopy(row) : kept;
    if (pdf === undefined) {
      const reason = row.email_reason ?? 'it was not delivered';
      throw refuse('pdf_not_drawn', { number, reason, void: row.status === 'void' });
    }
    const file = options.output ?? `${number}${options.voidCopy ? '-void' : ''}.pdf`;
    if (file === '-') {
      process.stdout.write(pdf);
      return EXIT.done;
    }
    writeFileAsked(file, pdf);
    output.print({ number, file, bytes: pdf.length }, () => `Wrote ${file} (${pdf.length} bytes).`);
    return EXIT.done;
  });
}
