/**
 * Applies a credit note to open invoices of its partner in its currency, and unapplies it. Refusals: document_unknown,
 * document_on_hold, credit_not_applicable, credit_amount_too_large, credit_not_applied, credit_covers_invoice,
 * amount_invalid, clock_behind.
 */
import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { positiveAmount } from '#errors/amounts';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Amount, isZero } from '#money';
import { recordEvent } from '#people/audit-events';
import { howSettled, refuseHeld } from './correctable.ts';
import { DocumentRow, readDocuments } from './documents.sql.ts';
import { dateOfAction, IssueContext } from './issue/context.ts';
import { insertCreditApplications, insertCreditReleases, readCreditOn } from './placed-credit.sql.ts';

type PlaceRequest = Readonly<{
  creditNote: string;
  number: string;
  /** The amount in the documents' currency. If the amount is omitted, as much as possible is applied. */
  amount?: string | undefined;
}>;

export type PlacedCredit = Readonly<{
  credit_note: string;
  number: string;
  partner_id: string;
  currency: string;
  amount: string;
}>;

export async function applyCredit(
  tx: Transaction,
  context: IssueContext,
  { creditNote, number, amount: text }: PlaceRequest,
): Promise<PlacedCredit> {
  await lockLedgerWhole(tx);
  const note = await readDocument(tx, creditNote);
  const invoice = await readDocument(tx, number);
  const reason = whyNotPlaceable(note, invoice);
  if (reason !== undefined) throw refuse('credit_not_applicable', { credit_note: creditNote, number, reason });
  refuseHeld(note);
  const { currency, partner_id } = invoice;
  const amount = amountToPlace(note, invoice, text);
  const { today, ...action } = await beginAction(tx, context, 'credit.apply', { creditNote, number, amount });
  await insertCreditApplications(tx, action, [
    {
      credit_note_id: note.document_id,
      invoice_id: invoice.document_id,
      amount: amount.toString(),
      applied_on: today,
    },
  ]);
  failpoint('placement.recorded');
  return { credit_note: creditNote, number, partner_id, currency, amount: amount.toString() };
}

/**
 * Releases all credit of a credit note from an invoice. One that was issued with nothing due must be reissued instead,
 * because it could not be paid.
 */
export async function unapplyCredit(
  tx: Transaction,
  context: IssueContext,
  { creditNote, number }: Pick<PlaceRequest, 'creditNote' | 'number'>,
): Promise<PlacedCredit> {
  await lockLedgerWhole(tx);
  const note = await readDocument(tx, creditNote);
  const invoice = await readDocument(tx, number);
  const applied = await readCreditOn(tx, { creditNoteId: note.document_id, invoiceId: invoice.document_id });
  if (applied.length === 0) throw refuse('credit_not_applied', { credit_note: creditNote, number });
  const { currency, partner_id, document_id: invoiceId } = invoice;
  if (isZero(invoice.amount_due)) throw refuse('credit_covers_invoice', { credit_note: creditNote, number });
  const amount = Amount.sum(currency, applied, (each) => Amount.of(each.amount, currency));
  const action = await beginAction(tx, context, 'credit.unapply', { creditNote, number, amount });
  await insertCreditReleases(tx, { ...action, ids: applied.map((each) => each.credit_application_id), invoiceId });
  failpoint('release.recorded');
  return { credit_note: creditNote, number, partner_id, currency, amount: amount.toString() };
}

async function readDocument(tx: Transaction, number: string) {
  const [document] = await readDocuments(tx, { number });
  if (document === undefined) throw refuse('document_unknown', { number });
  return document;
}

async function beginAction(
  tx: Transaction,
  context: IssueContext,
  action: string,
  { creditNote, number, amount }: { creditNote: string; number: string; amount: Amount },
) {
  const today = await dateOfAction(tx, context);
  const now = context.environment.now().toISO();
  const details = { number, amount: amount.toString(), currency: amount.currency };
  const eventId = await recordEvent(tx, context.actor, { action, subject: creditNote, details, now });
  return { now, eventId, today };
}

type Placeable = Pick<
  DocumentRow,
  'number' | 'document' | 'status' | 'partner_id' | 'currency' | 'replaced_by' | 'written_off'
>;

/** Why credit cannot be applied to an invoice; undefined if it can. */
export function whyNotPlaceable(note: Placeable, invoice: Placeable) {
  const replacement = ({ replaced_by }: Placeable) => (replaced_by === null ? '' : `; ${replaced_by} replaces it`);
  if (note.document !== 'credit_note') return `${note.number} is ${aKind(note)}, not a credit note`;
  if (note.status === 'void') return `${note.number} is void${replacement(note)}`;
  if (note.status === 'paid') return `the credit of ${note.number} is used up`;
  if (invoice.document !== 'invoice') return `${invoice.number} is ${aKind(invoice)}, not an invoice`;
  if (invoice.status === 'void') return `${invoice.number} is void${replacement(invoice)}`;
  if (invoice.partner_id !== note.partner_id) {
    return `it belongs to ${invoice.partner_id}, and the credit to ${note.partner_id}`;
  }
  if (invoice.currency !== note.currency) return `it is in ${invoice.currency}, and the credit in ${note.currency}`;
  if (invoice.status === 'paid') return `${invoice.number} ${howSettled(invoice)}`;
  return undefined;
}

const aKind = ({ document }: Placeable) => (document === 'invoice' ? 'an invoice' : `a ${document.replace('_', ' ')}`);

function amountToPlace(note: DocumentRow, invoice: DocumentRow, given: string | undefined) {
  const { currency } = invoice;
  const credit = Amount.of(note.balance, currency);
  const balance = Amount.of(invoice.balance, currency);
  if (given === undefined) return credit.minus(balance).isPositive() ? balance : credit;
  const amount = positiveAmount(given, currency);
  for (const [most, what] of [
    [credit, `of open credit on ${note.number}`],
    [balance, `that is open on ${invoice.number}`],
  ] as const) {
    if (amount.minus(most).isPositive()) {
      throw refuse('credit_amount_too_large', { amount: amount.forPeople(), most: most.forPeople(), what });
    }
  }
  return amount;
}
