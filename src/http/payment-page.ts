/**
 * The page of a payment link: what one document asks for and how to pay it. Only its token opens it. It shows no other
 * partner and no other document, except the one that replaces this one.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { readDocumentRows } from '../delivery/queries.ts';
import { rowsCsv } from '../delivery/rows.ts';
import { documentSnapshot } from '../documents/document.ts';
import { readTemplate } from '../documents/pdf/template.ts';
import { addressLine, type Fact, type PaymentFact, present, rowKindName, type Total } from '../documents/present.ts';
import { readPdf } from '../documents/queries.ts';
import { Amount } from '../money.ts';
import { monthName } from '../month.ts';
import { page, sendPage } from './pages.ts';
import { type PaymentPage, readPaymentPage } from './queries.ts';
import type { Shared } from './shared.ts';

const paymentPage = page<PaymentView>('payment');
const unknownPage = page<Record<string, unknown>>('unknown');

const TOKEN = /^[A-Za-z0-9_-]{32,128}$/;

export function addPaymentPages(app: FastifyInstance, { database, environment, settings, limits }: Shared): void {
  const sandbox = environment.name === 'sandbox';
  const find = (token: string) =>
    TOKEN.test(token) ? database.reading((tx) => readPaymentPage(tx, token)) : Promise.resolve(undefined);
  const unknown = (reply: FastifyReply) =>
    sendPage(
      reply,
      unknownPage({ title: 'Page not found', sandbox, name: settings.issuer.legal_name, email: settings.issuer.email }),
      404,
    );
  const withHead = { exposeHeadRoute: true };

  app.get<{ Params: { token: string } }>('/pay/:token', withHead, async (request, reply) => {
    await limits.request(request.ip);
    const found = await find(request.params.token);
    return found === undefined ? unknown(reply) : sendPage(reply, paymentPage(viewOf(found, request.params.token)));
  });

  app.get<{ Params: { token: string } }>('/pay/:token/invoice.pdf', async (request, reply) => {
    await limits.request(request.ip);
    const found = await find(request.params.token);
    // A void document is not served: its reader might pay it.
    if (found === undefined || found.document.status === 'void') return unknown(reply);
    const pdf = await database.reading((tx) => readPdf(tx, found.document.document_id));
    if (pdf === undefined) return unknown(reply);
    return download(reply, `${found.document.number}.pdf`, 'application/pdf', 'inline').send(pdf);
  });

  app.get<{ Params: { token: string } }>('/pay/:token/rows.csv', async (request, reply) => {
    await limits.request(request.ip);
    const found = await find(request.params.token);
    if (found === undefined || found.document.status === 'void') return unknown(reply);
    const rows = await database.reading((tx) => readDocumentRows(tx, found.document.document_id));
    return download(reply, `${found.document.number}-rows.csv`, 'text/csv; charset=utf-8', 'attachment').send(
      rowsCsv(rows),
    );
  });
}

const download = (reply: FastifyReply, name: string, type: string, how: 'inline' | 'attachment'): FastifyReply =>
  reply
    .headers({ 'X-Robots-Tag': 'noindex, nofollow', 'Content-Disposition': `${how}; filename="${name}"` })
    .type(type);

// --- The template's view ----------------------------------------------------------------------------------------------

interface PageFact extends Fact {
  /** A number that payers copy: one click selects it. */
  readonly copy: boolean;
}

interface PaymentView {
  readonly heading: string;
  readonly number: string;
  readonly month: string;
  readonly issuer: { readonly name: string; readonly email: string; readonly phone: string };
  readonly partner: string;
  readonly state: 'due' | 'paid' | 'void' | 'nothing';
  readonly isDue: boolean;
  readonly isPaid: boolean;
  readonly isVoid: boolean;
  readonly isNothing: boolean;
  readonly balance: string;
  readonly amountDue: string;
  readonly partlyPaid: boolean;
  readonly dueOn: string;
  readonly dueDateKept: boolean;
  readonly issuedOn: string;
  readonly replacement: { readonly number: string; readonly href: string } | null;
  readonly purchaseOrder: string;
  readonly lines: readonly { policy: string; month: string; rows: string; amount: string }[];
  readonly totals: readonly { label: string; amount: string }[];
  readonly processorUrl: string;
  readonly reference: string;
  readonly ach: readonly PageFact[] | null;
  readonly wire: readonly PageFact[] | null;
  readonly pdf: string;
  readonly rows: string;
}

function viewOf(found: PaymentPage, token: string): PaymentView & { title: string; sandbox: boolean } {
  const { document, instructions } = found;
  const { currency, issuer } = document;
  const additions = { paymentLink: found.processor_url, instructions, instructionsChanged: false };
  const { locale, title: heading, ...presented } = present(documentSnapshot(document, additions));
  const labels = readTemplate().labels.payment_page;
  const isVoid = document.status === 'void';
  const isDue = document.document === 'invoice' && document.status === 'open';
  const isPaid = document.document === 'invoice' && document.status === 'paid';
  const balance = Amount.of(document.balance, currency);
  const paid = Amount.of(document.amount_due, currency).minus(balance);
  const partlyPaid = isDue && paid.isPositive();
  const totals: Total[] = [
    presented.total,
    ...presented.credit,
    ...(isDue && paid.isNegative() ? [{ label: labels.credit_taken_back, amount: paid.negated() }] : []),
    ...(partlyPaid ? [{ label: labels.paid, amount: paid.negated() }] : []),
    ...(document.document === 'invoice' && !isVoid ? [{ label: labels.balance, amount: balance }] : []),
  ];
  return {
    title: `${heading} ${document.number}`,
    sandbox: document.sandbox,
    heading,
    number: document.number,
    month: presented.month,
    issuer: { name: issuer.legal_name, email: issuer.email, phone: issuer.phone },
    partner: document.partner_name,
    state: isVoid ? 'void' : isDue ? 'due' : isPaid ? 'paid' : 'nothing',
    isDue,
    isPaid,
    isVoid,
    isNothing: !isVoid && !isDue && !isPaid,
    balance: locale.amount(balance),
    amountDue: presented.amount,
    partlyPaid,
    dueOn: presented.dueOn,
    dueDateKept: presented.dueDateKept,
    issuedOn: presented.issuedOn,
    replacement:
      found.replacement_number === null
        ? null
        : { number: found.replacement_number, href: found.replacement_token ? `/pay/${found.replacement_token}` : '' },
    purchaseOrder: document.purchase_order,
    lines: document.lines.map((line) => ({
      policy: line.policy_name,
      month: monthName(line.month),
      rows: `${locale.number(String(line.count))} ${rowKindName(line.kind, line.count)}`,
      amount: locale.amount(Amount.of(line.invoice_amount, currency)),
    })),
    totals: totals.map(({ label, amount }) => ({ label, amount: locale.amount(amount) })),
    processorUrl: isDue ? (found.processor_url ?? '') : '',
    reference: document.number,
    ach: isDue && presented.ach ? presented.ach.flatMap(pageFacts) : null,
    wire: isDue && presented.wire ? presented.wire.flatMap(pageFacts) : null,
    pdf: !isVoid && document.pdf_sha256 !== null ? `/pay/${token}/invoice.pdf` : '',
    rows: !isVoid && document.lines.length > 0 ? `/pay/${token}/rows.csv` : '',
  };
}

/** A row of bank details, and one for its address. */
function pageFacts({ field, kind, label, value, address }: PaymentFact): PageFact[] {
  const labels: Readonly<Record<string, string>> = readTemplate().labels.payment_page;
  const addressLabel = labels[`${field}_address`];
  return [
    { label: labels[field] ?? label, value, copy: kind === 'number' },
    ...(address && addressLabel ? [{ label: addressLabel, value: addressLine(address), copy: false }] : []),
  ].filter((fact) => fact.value !== '');
}
