/**
 * Disputes of invoices: a partner contests an invoice, or a part of it. The disputed amount stays due and is not dunned
 * until the dispute is closed. src/payments has card disputes, which a processor reports for payments. Refusals:
 * document_unknown, document_void, not_an_invoice, amount_invalid, invoice_disputed, invoice_not_disputed,
 * dispute_exceeds_balance, row_not_correctable, argument_invalid (a promised date in the past).
 */

import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { positiveAmount } from '#errors/amounts';
import { refuse, refuseField } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Amount } from '#money';
import { recordEvent } from '#people/audit-events';
import { documentToCorrect, invoiceToCorrect } from './correctable.ts';
import { shareOfTaxes } from './credit.ts';
import { insertDispute, insertDisputeClosing, readOpenDisputes } from './disputes.sql.ts';
import { DocumentRow } from './documents.sql.ts';
import { IssueContext } from './issue/context.ts';
import { amountOfRows } from './rows-to-correct.ts';

export type DisputeRequest = Readonly<{
  number: string;
  reason: string;
  /** In the invoice's currency. The default is the amount of `rows` with its tax, or else the whole balance. */
  amount?: string | undefined;
  /** The numbers of the disputed ledger rows. */
  rows?: readonly number[] | undefined;
  owner?: string | undefined;
  /** The date by which an answer is promised. */
  promisedOn?: string | undefined;
}>;

export async function openDispute(
  tx: Transaction,
  context: IssueContext,
  { number, reason, amount: text, rows, owner = '', promisedOn }: DisputeRequest,
) {
  const invoice = await invoiceToCorrect(tx, number, 'disputed');
  const { currency } = invoice;
  const [open] = await readOpenDisputes(tx, { number });
  if (open !== undefined) {
    const amount = Amount.of(open.amount, currency).forPeople();
    throw refuse('invoice_disputed', { number, since: open.disputed_on, amount });
  }
  const balance = Amount.of(invoice.balance, currency);
  const ofRows = rows === undefined ? undefined : await grossOfRows(tx, invoice, rows);
  const amount = text === undefined ? (ofRows ?? balance) : positiveAmount(text, currency);
  if (!amount.isPositive() || balance.minus(amount).isNegative()) {
    throw refuse('dispute_exceeds_balance', { number, amount: amount.forPeople(), balance: balance.forPeople() });
  }
  const today = todayOf(context);
  if (promisedOn !== undefined && promisedOn < today) {
    throw refuseField('promisedOn', promisedOn, `is before today, ${today}`);
  }
  const now = context.environment.now().toISO();
  const facts = { amount: amount.toString(), reason, owner, promisedOn: promisedOn ?? null };
  const details = {
    amount: facts.amount,
    currency,
    reason,
    owner,
    promised_on: facts.promisedOn,
    ...(rows && { rows }),
  };
  const eventId = await recordEvent(tx, context.actor, { action: 'dispute.open', subject: number, details, now });
  await insertDispute(tx, { documentId: invoice.document_id, ...facts, today, now, eventId });
  failpoint('dispute.recorded');
}

async function grossOfRows(tx: Transaction, invoice: DocumentRow, rows: readonly number[]) {
  const amount = await amountOfRows(tx, invoice, rows, 'disputed');
  const shares = await shareOfTaxes(tx, invoice, amount);
  return amount.plus(Amount.sum(invoice.currency, shares, (each) => each.tax));
}

/** Closes the dispute of an invoice. `reason` states the outcome. The balance is dunned again. */
export async function closeDispute(
  tx: Transaction,
  context: IssueContext,
  { number, reason }: Readonly<{ number: string; reason: string }>,
) {
  const { document_id: documentId } = await documentToCorrect(tx, number);
  const [open] = await readOpenDisputes(tx, { number });
  if (open === undefined) throw refuse('invoice_not_disputed', { number });
  const now = context.environment.now().toISO();
  const details = { reason };
  const eventId = await recordEvent(tx, context.actor, { action: 'dispute.close', subject: number, details, now });
  await insertDisputeClosing(tx, { documentId, reason, today: todayOf(context), now, eventId });
  failpoint('dispute_closing.recorded');
}
