/**
 * Lowering what is owed on an issued invoice: a credit note against it, or a write-off of what is still open.
 * Refusals: document_unknown, document_void, not_an_invoice, argument_invalid, credit_repeated,
 * credit_exceeds_invoice, nothing_to_write_off, settings_incomplete, clock_behind.
 */

import { recordIssuerVersion } from '../close/queries.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { Amount, amountProblem, minorDigits } from '../money.ts';
import { recordEvent } from '../people/audit-events.ts';
import { type IssueContext, mailDomain, refuseClockBehind, refuseIncompleteSettings, todayOf } from './issue/issue.ts';
import { type DocumentRow, insertAdjustment, insertWriteOff, readCreditsAgainst } from './queries.ts';
import { documentToCorrect } from './void.ts';

export interface CreditRequest {
  readonly number: string;
  /** In the invoice's currency. */
  readonly amount: string;
  readonly reason: string;
  /** The same amount for the same reason once more. */
  readonly again?: boolean | undefined;
}

/**
 * Issues a credit note against an invoice and gives its number. It is used for the invoice at once, up to its balance;
 * the rest is open credit for the partner's next one. Credits never exceed the invoice. The same credit a second time is
 * taken for the command repeated, after a crash or a doubt, unless it is asked for.
 */
export async function creditInvoice(
  tx: Transaction,
  context: IssueContext,
  { number, amount: text, reason, again = false }: CreditRequest,
): Promise<string> {
  refuseIncompleteSettings(context);
  const invoice = await invoiceToLower(tx, number, 'credited');
  const { currency, document_id: documentId } = invoice;
  const amount = positiveAmount(text, currency);
  const credits = await readCreditsAgainst(tx, documentId);
  const same = credits.find((each) => each.reason === reason && Amount.of(each.amount, currency).equals(amount));
  if (same !== undefined && !again) {
    throw refuse('credit_repeated', { number, amount: amount.forPeople(), by: same.number, on: same.issued_on });
  }
  const lowered = credits.reduce(
    (sum, each) => sum.plus(Amount.of(each.amount, currency)),
    Amount.of(invoice.written_off, currency),
  );
  const left = Amount.of(invoice.invoice_amount, currency).minus(lowered);
  if (left.minus(amount).isNegative()) {
    throw refuse('credit_exceeds_invoice', { number, amount: amount.forPeople(), left: left.forPeople() });
  }
  const balance = Amount.of(invoice.balance, currency);
  const applied = balance.minus(amount).isNegative() ? balance : amount;
  const today = todayOf(context);
  await refuseClockBehind(tx, today);
  const { environment, settings, actor } = context;
  const now = environment.now().toISO();
  const details = { amount: amount.toString(), currency, reason };
  const note = await insertAdjustment(tx, {
    documentId,
    amount: amount.toString(),
    applied: applied.toString(),
    reason,
    today,
    now,
    issuerVersionId: await recordIssuerVersion(tx, settings.issuer, now),
    mailDomain: mailDomain(settings),
    eventId: await recordEvent(tx, actor, { action: 'invoice.credit', subject: number, details, now }),
  });
  failpoint('credit.issued');
  return note;
}

/** Gives up what is still open on an invoice. */
export async function writeOffInvoice(
  tx: Transaction,
  context: IssueContext,
  { number, reason }: { number: string; reason: string },
): Promise<void> {
  const invoice = await invoiceToLower(tx, number, 'written off');
  const balance = Amount.of(invoice.balance, invoice.currency);
  if (!balance.isPositive()) throw refuse('nothing_to_write_off', { number });
  const amount = balance.toString();
  const now = context.environment.now().toISO();
  const details = { amount, currency: invoice.currency, reason };
  const eventId = await recordEvent(tx, context.actor, { action: 'invoice.write_off', subject: number, details, now });
  const today = todayOf(context);
  await refuseClockBehind(tx, today);
  await insertWriteOff(tx, { documentId: invoice.document_id, amount, reason, today, now, eventId });
}

async function invoiceToLower(tx: Transaction, number: string, act: string): Promise<DocumentRow> {
  const invoice = await documentToCorrect(tx, number);
  const { document } = invoice;
  if (document !== 'invoice') throw refuse('not_an_invoice', { number, document, act });
  return invoice;
}

function positiveAmount(text: string, currency: string): Amount {
  const problem = amountProblem(text, minorDigits(currency) as number);
  if (problem !== undefined) {
    throw refuse('argument_invalid', { argument: '--amount', value: text, reason: problem.reason });
  }
  const amount = Amount.of(text, currency);
  if (!amount.isPositive()) {
    throw refuse('argument_invalid', { argument: '--amount', value: text, reason: 'must be above zero' });
  }
  return amount;
}
