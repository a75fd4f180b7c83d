/**
 * The page behind a payment link: what one document asks for, and how it is paid. Its token is all that opens it; of other
 * partners and other documents nothing is on it, but for the document that replaces this one.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { AchInstructions, WireInstructions } from '../config/instructions.ts';
import { readDocumentRows } from '../delivery/queries.ts';
import { rowsCsv } from '../delivery/rows.ts';
import { addressLine, DOCUMENT_TITLES, rowKindName } from '../documents/labels.ts';
import { localeOf } from '../documents/locale.ts';
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
    // A void document is no longer handed out: somebody might pay it.
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

// --- What the template sees -------------------------------------------------------------------------------------------

interface Fact {
  readonly label: string;
  readonly value: string;
  /** A number that people copy: one click selects all of it. */
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
  readonly issuedOn: string;
  readonly replacement: { readonly number: string; readonly href: string } | null;
  readonly purchaseOrder: string;
  readonly lines: readonly { policy: string; month: string; rows: string; amount: string }[];
  readonly totals: readonly { label: string; amount: string }[];
  readonly processorUrl: string;
  readonly reference: string;
  readonly ach: readonly Fact[] | null;
  readonly wire: readonly Fact[] | null;
  readonly pdf: string;
  readonly rows: string;
}

function viewOf(found: PaymentPage, token: string): PaymentView & { title: string; sandbox: boolean } {
  const { document, instructions } = found;
  const { currency, issuer } = document;
  const locale = localeOf(document.address_country);
  const money = (text: string) => locale.amount(Amount.of(text, currency));
  const isVoid = document.status === 'void';
  const isDue = document.document === 'invoice' && document.status === 'open';
  const isPaid = document.document === 'invoice' && document.status === 'paid';
  const heading = DOCUMENT_TITLES[document.document];
  const paid = Amount.of(document.amount_due, currency).minus(Amount.of(document.balance, currency));
  const partlyPaid = isDue && paid.isPositive();
  const totals = [
    { label: 'Total', amount: money(document.invoice_amount) },
    ...credit('Credit applied', document.credit_applied),
    ...(partlyPaid ? [{ label: 'Paid or credited', amount: locale.amount(paid.negated()) }] : []),
    ...(document.document === 'invoice' && !isVoid ? [{ label: 'Still due', amount: money(document.balance) }] : []),
  ];
  function credit(label: string, text: string): { label: string; amount: string }[] {
    const amount = Amount.of(text, currency);
    return amount.isZero() ? [] : [{ label, amount: locale.amount(amount.negated()) }];
  }
  return {
    title: `${heading} ${document.number}`,
    sandbox: document.sandbox,
    heading,
    number: document.number,
    month: monthName(document.month),
    issuer: { name: issuer.legal_name, email: issuer.email, phone: issuer.phone },
    partner: document.partner_name,
    state: isVoid ? 'void' : isDue ? 'due' : isPaid ? 'paid' : 'nothing',
    isDue,
    isPaid,
    isVoid,
    isNothing: !isVoid && !isDue && !isPaid,
    balance: money(document.balance),
    amountDue: money(document.amount_due),
    partlyPaid,
    dueOn: document.due_on === null ? '' : locale.date(document.due_on),
    issuedOn: locale.date(document.issued_on),
    replacement:
      found.replacement_number === null
        ? null
        : { number: found.replacement_number, href: found.replacement_token ? `/pay/${found.replacement_token}` : '' },
    purchaseOrder: document.purchase_order,
    lines: document.lines.map((line) => ({
      policy: line.policy_name,
      month: monthName(line.month),
      rows: `${locale.number(String(line.count))} ${rowKindName(line.kind, line.count)}`,
      amount: money(line.invoice_amount),
    })),
    totals,
    processorUrl: isDue ? (found.processor_url ?? '') : '',
    reference: document.number,
    ach: isDue && instructions?.ach ? achFacts(instructions.ach) : null,
    wire: isDue && instructions?.wire ? wireFacts(instructions.wire) : null,
    pdf: !isVoid && document.pdf_sha256 !== null ? `/pay/${token}/invoice.pdf` : '',
    rows: !isVoid && document.lines.length > 0 ? `/pay/${token}/rows.csv` : '',
  };
}

const plain = (label: string, value: string | undefined): Fact[] => (value ? [{ label, value, copy: false }] : []);
const number = (label: string, value: string | undefined): Fact[] => (value ? [{ label, value, copy: true }] : []);

const achFacts = (ach: AchInstructions): Fact[] => [
  ...plain('Account holder', ach.account_holder),
  ...plain('Holder’s address', addressLine(ach.account_holder_address)),
  ...plain('Bank', ach.bank_name),
  ...plain('Bank’s address', addressLine(ach.bank_address)),
  ...number('ACH routing number', ach.routing_number),
  ...number('Account number', ach.account_number),
  ...plain('Account type', ach.account_type),
];

const wireFacts = (wire: WireInstructions): Fact[] => [
  ...plain('Account holder', wire.account_holder),
  ...plain('Holder’s address', addressLine(wire.account_holder_address)),
  ...plain('Bank', wire.bank_name),
  ...plain('Bank’s address', addressLine(wire.bank_address)),
  ...number('Wire routing number', wire.routing_number),
  ...number('Account number', wire.account_number),
  ...number('IBAN', wire.iban),
  ...number('BIC (SWIFT)', wire.bic),
  ...plain('Intermediary bank', wire.intermediary?.bank_name),
  ...number('Intermediary’s BIC', wire.intermediary?.bic),
];
