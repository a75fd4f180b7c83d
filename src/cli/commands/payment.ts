/** `reckoner payment record|import|list|apply|unapply|reverse|payouts|settle|events|exceptions|close-exception` and `reckoner credit refund`. */
import { readFileSync } from 'node:fs';
import { EXIT, reasonOf, refuse } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import { Amount, groupThousands } from '../../money.ts';
import { applyPayment, unapplyPayment } from '../../payments/apply.ts';
import type { BankFormat, Method, PaymentStatus, ReversalKind } from '../../payments/enums.ts';
import { closeException, ENDS, type PaymentException, readExceptions } from '../../payments/exceptions.ts';
import { type BankImport, importBankFile, type LineReport } from '../../payments/import.ts';
import { type InboxReport, processEvents, storeEvents } from '../../payments/inbox.ts';
import { type PayoutRow, readPayouts } from '../../payments/lines.ts';
import { type PaymentJson, paymentJson } from '../../payments/payment.ts';
import { readPayments } from '../../payments/queries.ts';
import { recordPayment } from '../../payments/record.ts';
import { refundCredit, returnRefund } from '../../payments/refund.ts';
import { reversePayment, whatIsOwedAgain } from '../../payments/reverse.ts';
import { settlePayout } from '../../payments/settle.ts';
import { acting, type Context, withContext } from '../context.ts';
import { type Output, printable, short, table, wrapped } from '../output.ts';

export interface PaymentRecordOptions {
  readonly amount: string;
  readonly currency: string;
  readonly method: Method;
  readonly receivedOn: string;
  readonly reference: string;
  readonly invoice?: string;
  readonly partner?: string;
}

export async function paymentRecord(output: Output, options: PaymentRecordOptions): Promise<number> {
  const { invoice, partner, ...request } = options;
  if ((invoice === undefined) === (partner === undefined)) {
    throw refuse('usage', { reason: 'a payment is recorded with either --invoice or --partner' });
  }
  return acting(output, async (context) => {
    const { paymentId, duplicate, alike, kept } = await context.database.transaction((tx) =>
      recordPayment(tx, context, { ...request, number: invoice, partnerId: partner }),
    );
    const payment = await onePayment(context, paymentId);
    // One that paid its invoice whole has no suggestion left of a payment that did so too; told once, it is told here.
    const untold = alike.filter((id) => !payment.suggestions.some((each) => each.same_as === id));
    output.print({ ...payment, duplicate, alike, kept: kept ?? null }, () =>
      [
        duplicate
          ? `Payment ${paymentId} is the same payment and was known: nothing is recorded twice.`
          : `Payment ${paymentId} is recorded${kept === undefined ? '' : `; ${kept}: it is kept as unapplied cash`}.`,
        described(payment),
        ...untold.flatMap((id) => labelled('perhaps', `the same as payment ${id}, which has its amount`)),
      ].join('\n'),
    );
    const forPerson = payment.suggestions.length > 0 || alike.length > 0 || kept !== undefined;
    return forPerson ? EXIT.attention : EXIT.done;
  });
}

async function onePayment({ database }: Context, paymentId: number): Promise<PaymentJson> {
  const [row] = await database.reading((tx) => readPayments(tx, { ids: [paymentId] }));
  if (row === undefined) throw refuse('payment_unknown', { payment_id: paymentId });
  return paymentJson(row);
}

const amountOf = (payment: { currency: string }, amount: string): string =>
  `${groupThousands(amount)} ${payment.currency}`;

function described(payment: PaymentJson): string {
  const lines: [string, string][] = [
    ['amount', amountOf(payment, payment.amount)],
    ['payer', payment.partner_id ?? 'not known yet'],
    ['received on', `${payment.received_on} by ${payment.method}, reference ${payment.reference}`],
  ];
  for (const each of payment.applications.filter(({ unapplied_on }) => unapplied_on === null)) {
    const charges =
      each.small_difference === null ? '' : `, and ${amountOf(payment, each.small_difference)} to bank charges`;
    lines.push(['applied', `${amountOf(payment, each.amount)} to ${each.number}${charges}`]);
  }
  for (const each of payment.reversals) {
    const back = each.reinstated_on === null ? '' : `, given back on ${each.reinstated_on}`;
    lines.push([each.kind, `${amountOf(payment, each.amount)} on ${each.reversed_on}: ${each.reason}${back}`]);
  }
  if (Number(payment.unapplied) > 0) lines.push(['unapplied', amountOf(payment, payment.unapplied)]);
  for (const each of payment.suggestions) {
    const of =
      each.number === null
        ? `the same as payment ${each.same_as}`
        : `${each.number}, ${amountOf(payment, each.amount)}`;
    lines.push(['perhaps', `${of}: ${each.why}`]);
  }
  return lines.flatMap(([label, value]) => labelled(label, value)).join('\n');
}

/** `  label        value`; a value that is too long for 80 columns goes on below itself. */
const labelled = (label: string, value: string): string[] =>
  wrapped(printable(value), 65).map((line, index) => `  ${(index === 0 ? label : '').padEnd(12)} ${line}`);

export interface PaymentImportOptions {
  readonly format?: BankFormat;
  readonly map?: string;
  readonly dryRun?: boolean;
}

export async function paymentImport(output: Output, name: string, options: PaymentImportOptions): Promise<number> {
  const bytes = readBytes(name);
  const { dryRun = false, format, map } = options;
  return acting(output, async (context) => {
    const { database } = context;
    const work = dryRun ? database.preview : database.transaction;
    const report = await work((tx) => importBankFile(tx, context, { name, bytes, format, map }));
    failpoint('payments.committed');
    const { new_lines, ...rest } = report;
    const lines = dryRun ? withoutNewIds(new_lines) : new_lines;
    output.print({ ...rest, dry_run: dryRun, new_lines: lines }, () =>
      describeImport({ ...report, new_lines: lines }, dryRun),
    );
    return new_lines.some((line) => line.needs_review) ? EXIT.attention : EXIT.done;
  });
}

/** The ids that a dry run gives are undone with it, and the next payments have them: those that were there are told. */
function withoutNewIds(lines: readonly LineReport[]): LineReport[] {
  const own = new Set(lines.filter((line) => line.outcome === 'payment').map((line) => line.payment_id));
  return lines.map((line) => ({
    ...line,
    payment_id: own.has(line.payment_id) ? null : line.payment_id,
    same_as: line.same_as.filter((id) => !own.has(id)),
  }));
}

function readBytes(name: string): Buffer {
  try {
    return readFileSync(name === '-' ? 0 : name);
  } catch (error) {
    throw refuse('file_unreadable', { file: name, reason: reasonOf(error) }, error);
  }
}

const OUTCOMES: readonly (readonly [LineReport['outcome'], string])[] = [
  ['payment', 'payment(s)'],
  ['seen_again', 'known already'],
  ['payout', 'payout(s)'],
  ['return', 'return(s)'],
  ['ignored', 'no payment'],
];

function describeImport(report: BankImport, dryRun: boolean): string {
  if (report.already_imported !== null) {
    return `${report.file} was imported at ${report.already_imported}: nothing to do.`;
  }
  const { lines, outcomes, new_lines } = report;
  const text: string[] = [];
  if (new_lines.length > 0) {
    const rows = new_lines.map((line) => [
      line.booked_on,
      `${line.direction === 'debit' ? '-' : ''}${groupThousands(line.amount)}`,
      line.currency,
      short(line.payer ?? '', 18),
      line.outcome === 'seen_again' ? 'known' : line.outcome,
      short(whatFor(line), 24),
    ]);
    text.push(table(['booked', '>amount', '', 'payer', 'is', 'for'], rows), '');
    for (const line of new_lines.filter((each) => each.needs_review)) {
      text.push(...wrapped(`line ${line.position}, ${amountOf(line, line.amount)}: ${printable(line.why)}`, 80, '  '));
    }
  }
  const pending = report.statements.reduce((sum, each) => sum + each.pending, 0);
  const told = OUTCOMES.filter(([kind]) => outcomes[kind] > 0).map(([kind, label]) => `${outcomes[kind]} ${label}`);
  text.push(
    `${dryRun ? 'Would record' : 'Recorded'} ${lines.new} of ${lines.total} line(s)${told.length > 0 ? `: ${told.join(', ')}` : ''}.`,
  );
  if (lines.known > 0) text.push(`${lines.known} line(s) were known from earlier files.`);
  if (pending > 0) text.push(`${pending} entr(ies) are announced and not booked; they come again when they are.`);
  return text.join('\n');
}

function whatFor(line: LineReport): string {
  if (line.applied.length > 0) return line.applied.map((each) => each.number).join(' ');
  if (line.same_as.length > 0) return `= ${line.same_as[0]}?`;
  if (line.suggested.length > 0) return `${line.suggested[0]?.number}?`;
  return line.payment_id === null ? '' : `payment ${line.payment_id}`;
}

export interface PaymentListOptions {
  readonly partner?: string;
  readonly status?: PaymentStatus;
}

export async function paymentList(output: Output, options: PaymentListOptions): Promise<number> {
  return acting(output, async ({ database }) => {
    const rows = await database.reading((tx) =>
      readPayments(tx, { partnerId: options.partner, status: options.status }),
    );
    const payments = rows.map(paymentJson);
    output.print(payments, () => (payments.length === 0 ? 'There are no such payments.' : listed(payments)));
    return EXIT.done;
  });
}

function listed(payments: readonly PaymentJson[]): string {
  const rows = payments.map((payment) => {
    const numbers = payment.applications.filter((each) => each.unapplied_on === null).map((each) => each.number);
    const [suggestion] = payment.suggestions;
    const perhaps =
      suggestion === undefined ? '' : suggestion.number === null ? `= ${suggestion.same_as}?` : `${suggestion.number}?`;
    return [
      payment.payment_id,
      payment.received_on,
      short(payment.partner_id ?? '?', 12),
      groupThousands(payment.amount),
      payment.currency,
      payment.status === 'partly_applied' ? 'in part' : payment.status,
      short(numbers.length > 0 ? numbers.join(' ') : perhaps, 20),
    ];
  });
  return table(['>id', 'received', 'partner', '>amount', '', 'status', 'for'], rows);
}

export async function paymentApply(
  output: Output,
  paymentId: number,
  options: { invoice: string; amount?: string },
): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) =>
      applyPayment(tx, context, { paymentId, number: options.invoice, amount: options.amount }),
    );
    return show(output, context, paymentId, `Payment ${paymentId} is applied to ${options.invoice}.`);
  });
}

export async function paymentUnapply(
  output: Output,
  paymentId: number,
  options: { invoice?: string },
): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => unapplyPayment(tx, context, { paymentId, number: options.invoice }));
    return show(output, context, paymentId, `Payment ${paymentId} is unapplied cash again; what it paid is open.`);
  });
}

export interface PaymentReverseOptions {
  readonly as: ReversalKind;
  readonly reason: string;
  readonly code?: string;
  readonly amount?: string;
  readonly on?: string;
  readonly duplicateOf?: number;
}

export async function paymentReverse(
  output: Output,
  paymentId: number,
  options: PaymentReverseOptions,
): Promise<number> {
  const { as: kind, ...request } = options;
  return acting(output, async (context) => {
    const { amount, reopened } = await context.database.transaction((tx) =>
      reversePayment(tx, context, { paymentId, kind, ...request }),
    );
    const { amount: whole } = await onePayment(context, paymentId);
    const what = amount.toString() === whole ? `Payment ${paymentId}` : `${amount.forPeople()} of payment ${paymentId}`;
    return show(output, context, paymentId, `${what} is taken back; ${whatIsOwedAgain(reopened)}.`);
  });
}

async function show(output: Output, context: Context, paymentId: number, sentence: string): Promise<number> {
  const payment = await onePayment(context, paymentId);
  output.print(payment, () => `${sentence}\n${described(payment)}`);
  return EXIT.done;
}

const payoutJson = (row: PayoutRow) => {
  const text = (amount: string | null) => (amount === null ? null : Amount.of(amount, row.currency).toString());
  return { ...row, amount: text(row.amount), gross: text(row.gross), fees: text(row.fees) };
};

export async function paymentPayouts(output: Output): Promise<number> {
  return acting(output, async ({ database }) => {
    const rows = await database.reading((tx) => readPayouts(tx));
    output.print(rows.map(payoutJson), () =>
      rows.length === 0
        ? 'There are no payouts.'
        : table(
            ['>id', 'received', '>amount', '', '>fees', 'payments, or account'],
            rows.map((row) => [
              row.payout_id,
              row.received_on,
              groupThousands(payoutJson(row).amount ?? ''),
              row.currency,
              payoutJson(row).fees ?? '?',
              row.gross === null ? 'not known' : short(row.of_account ?? row.payments.join(' '), 30),
            ]),
          ),
    );
    return rows.some((row) => row.gross === null) ? EXIT.attention : EXIT.done;
  });
}

export interface PaymentSettleOptions {
  readonly account?: string;
  readonly of?: string;
}

export async function paymentSettle(
  output: Output,
  payoutId: number,
  paymentIds: number[],
  { account, of: payout }: PaymentSettleOptions,
): Promise<number> {
  return acting(output, async (context) => {
    const request = { payoutId, paymentIds, account, payout };
    await context.database.transaction((tx) => settlePayout(tx, context, request));
    const [row] = await context.database.reading((tx) => readPayouts(tx, payoutId));
    output.print(
      row === undefined ? null : payoutJson(row),
      () =>
        `Payout ${payoutId} brought ${account === undefined ? `${paymentIds.length} payment(s)` : `what ${account} paid out`}.`,
    );
    return EXIT.done;
  });
}

/** Feeds the inbox from a file and works it off; without a file, only works off what waits. */
export async function paymentEvents(output: Output, name: string | undefined): Promise<number> {
  const text = name === undefined ? undefined : readBytes(name).toString('utf8');
  return acting(output, async (context) => {
    const stored =
      text === undefined
        ? { stored: 0, known: 0, accounts: [] }
        : await context.database.transaction((tx) => storeEvents(tx, context, { name: name ?? '', text }));
    failpoint('inbox.stored');
    const report = await context.database.transaction((tx) => processEvents(tx, context));
    failpoint('inbox.processed');
    output.print({ ...stored, ...report }, () => describeInbox(stored, report));
    return report.for_person.length + report.waiting.length > 0 ? EXIT.attention : EXIT.done;
  });
}

function describeInbox(stored: { stored: number; known: number }, report: InboxReport): string {
  const lines = [
    `${stored.stored} event(s) stored, ${stored.known} known already; ${report.effects} changed something, ${report.without_effect} did not.`,
  ];
  for (const each of report.waiting)
    lines.push(...wrapped(`waits: ${each.id} (${each.type}): ${printable(each.reason)}`, 80, '  '));
  for (const each of report.for_person)
    lines.push(...wrapped(`for a person: ${each.id} (${each.type}): ${printable(each.reason)}`, 80, '  '));
  return lines.join('\n');
}

/** What waits for a person; exit 4 while there is something. */
export async function paymentExceptions(output: Output): Promise<number> {
  return withContext(async ({ database }) => {
    const exceptions = await database.reading((tx) => readExceptions(tx));
    output.print(exceptions, () =>
      exceptions.length === 0 ? 'No payment waits for a person.' : exceptions.map(toldException).join('\n'),
    );
    return exceptions.length > 0 ? EXIT.attention : EXIT.done;
  });
}

function toldException({ kind, exception, partner_id, currency, amount, since, reason }: PaymentException): string {
  const sum =
    amount === null || currency === null
      ? ''
      : `  ${groupThousands(Amount.of(amount, currency).toString())} ${currency}`;
  return [
    `${exception}  ${since}${sum}${partner_id === null ? '' : `  ${partner_id}`}`,
    ...wrapped(printable(reason), 78).map((line) => `  ${line}`),
    `  ends by ${ENDS[kind]}`,
  ].join('\n');
}

export async function paymentCloseException(
  output: Output,
  exception: string,
  { reason }: { reason: string },
): Promise<number> {
  return acting(output, async (context) => {
    const closed = await context.database.transaction((tx) => closeException(tx, context, { exception, reason }));
    output.print({ ...closed, closed: reason }, () => `${exception} waits no longer: ${printable(reason)}`);
    return EXIT.done;
  });
}

export interface CreditRefundOptions {
  readonly method: 'ach' | 'wire' | 'other';
  readonly reference: string;
  readonly on?: string;
  readonly returned?: string;
}

export async function creditRefund(output: Output, number: string, options: CreditRefundOptions): Promise<number> {
  return acting(output, async (context) => {
    const { returned, ...request } = options;
    const refund = await context.database.transaction((tx) =>
      returned === undefined
        ? refundCredit(tx, context, { number, ...request })
        : returnRefund(tx, context, { number, reason: returned, on: options.on }),
    );
    const amount = Amount.of(refund.amount, refund.currency);
    output.print({ ...refund, amount: amount.toString(), returned: returned !== undefined }, () =>
      returned === undefined
        ? `${amount.forPeople()} of ${number} is paid out to ${refund.partner_id}: the credit is used up.`
        : `The refund of ${amount.forPeople()} came back: ${number} is open again.`,
    );
    return EXIT.done;
  });
}
