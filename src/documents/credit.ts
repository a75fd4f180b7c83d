/**
 * Issues a credit note against an invoice, called an adjustment. Refusals: document_unknown, document_void,
 * not_an_invoice, amount_invalid, credit_repeated, credit_exceeds_invoice, row_not_correctable,
 * settings_incomplete, clock_behind.
 */
import { Transaction } from '#database/transaction';
import { positiveAmount } from '#errors/amounts';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Amount } from '#money';
import { recordEvent } from '#people/audit-events';
import { invoiceToCorrect } from './correctable.ts';
import { readCreditsAgainst } from './corrections.sql.ts';
import { CreditShare, shareCredit } from './document-tax.ts';
import { DocumentRow } from './documents.sql.ts';
import { beginIssue, IssueContext, refuseIncompleteSettings } from './issue/context.ts';
import { draftAdjustment } from './issue/drafts.sql.ts';
import { IssuedDocument, issueDocuments } from './issue/issue.ts';
import { readCreditedTaxes } from './issue/tax.sql.ts';
import { insertCreditApplications } from './placed-credit.sql.ts';
import { amountOfRows } from './rows-to-correct.ts';

type CreditRequest = Readonly<{
  number: string;
  /** The amount before tax, in the invoice's currency; undefined if it follows from `rows`. */
  amount?: string | undefined;
  /** The numbers of the credited ledger rows. */
  rows?: readonly number[] | undefined;
  reason: string;
  /** For the issuer only. */
  note?: string | undefined;
  /** Allows a second credit of the same amount for the same reason. */
  again?: boolean | undefined;
}>;

/**
 * Issues a credit note against an invoice and returns its number. It is applied to the invoice at once, up to the
 * balance; the rest stays open for the partner's next invoice. The credits against an invoice never exceed it. A second
 * credit of the same amount and reason is refused, unless `again` is set.
 */
export async function creditInvoice(
  tx: Transaction,
  context: IssueContext,
  { number, amount: text, rows, reason, note: internal, again = false }: CreditRequest,
) {
  refuseIncompleteSettings(context);
  const invoice = await invoiceToCorrect(tx, number, 'credited');
  const { currency, document_id: documentId, month } = invoice;
  const given = rows === undefined ? text : (await amountOfRows(tx, invoice, rows, 'credited')).toString();
  const amount = positiveAmount(given ?? '', currency);
  const shares = await shareOfTaxes(tx, invoice, amount);
  const tax = Amount.sum(currency, shares, (each) => each.tax);
  const gross = amount.plus(tax);
  await checkCredit(tx, invoice, { amount, gross }, { reason, again: again || rows !== undefined });
  const details = {
    ...{ amount: amount.toString(), currency, reason, note: internal },
    ...(rows !== undefined && { rows }),
  };
  const batch = await beginIssue(tx, context, { month, purpose: 'adjustment', askedFor: 'credit' }, (now) =>
    recordEvent(tx, context.actor, { action: 'invoice.credit', subject: number, details, now }),
  );
  const balance = Amount.of(invoice.balance, currency);
  const applied = balance.minus(gross).isNegative() ? balance : gross;
  await draftAdjustment(tx, {
    documentId,
    amount: amount.toString(),
    reason,
    loweredBy: applied.toString(),
    left: balance.minus(applied).toString(),
    tax: tax.toString(),
    shares,
  });
  const [note] = (await issueDocuments(tx, batch)) as [IssuedDocument];
  if (applied.isPositive()) {
    await insertCreditApplications(tx, batch, [
      {
        credit_note_id: note.document_id,
        invoice_id: documentId,
        amount: applied.toString(),
        applied_on: batch.issuedOn,
      },
    ]);
  }
  failpoint('credit.issued');
  return note.number;
}

/** Divides an amount before tax among the taxes of an invoice. */
export const shareOfTaxes = async (
  tx: Transaction,
  { taxes, document_id: documentId }: DocumentRow,
  amount: Amount,
): Promise<CreditShare[]> =>
  taxes.length === 0 ? [] : shareCredit(amount, taxes, await readCreditedTaxes(tx, { documentId }));

/** Refuses a repeated credit, and one that exceeds what earlier credits and write-offs have left of the invoice. */
async function checkCredit(
  tx: Transaction,
  invoice: DocumentRow,
  { amount, gross }: { amount: Amount; gross: Amount },
  { reason, again }: { reason: string; again: boolean },
) {
  const { number, currency } = invoice;
  const credits = await readCreditsAgainst(tx, { documentId: invoice.document_id });
  const same = credits.find((each) => each.reason === reason && Amount.of(each.amount, currency).equals(amount));
  if (same !== undefined && !again) {
    throw refuse('credit_repeated', { number, amount: amount.forPeople(), by: same.number, on: same.issued_on });
  }
  const of = (text: string) => Amount.of(text, currency);
  const leftOf = (whole: string, credited: readonly string[], less = '0') =>
    credited.reduce((left, each) => left.minus(of(each)), of(whole)).minus(of(less));
  const left = leftOf(
    invoice.invoice_amount,
    credits.map((each) => each.amount),
    invoice.taxes.length === 0 ? invoice.written_off : '0',
  );
  if (left.minus(amount).isNegative()) {
    throw refuse('credit_exceeds_invoice', { number, amount: amount.forPeople(), left: left.forPeople() });
  }
  // A write-off includes tax.
  const owed = leftOf(
    invoice.gross,
    credits.map((each) => each.gross),
    invoice.written_off,
  );
  if (owed.minus(gross).isNegative()) {
    throw refuse('credit_exceeds_invoice', { number, amount: gross.forPeople(), left: owed.forPeople() });
  }
}
