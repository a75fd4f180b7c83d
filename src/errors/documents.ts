/** Refusals about documents, their corrections and their e-mails. */
import { badInput, refused } from './definition.ts';

export const DOCUMENTS = {
  document_unknown: badInput<{ number: string }>(
    (f) => `No such document: ${f.number}. 'reckoner invoice list' shows all documents.`,
  ),
  pdf_not_rendered: refused<{ number: string; reason: string; void: boolean }>((f) =>
    f.void
      ? `${f.number} was voided before its PDF was rendered. Use 'reckoner invoice pdf ${f.number} --void-copy'.`
      : `${f.number} has no PDF yet: ${f.reason}. Run 'reckoner deliver', then try again.`,
  ),
  document_void: refused<{
    number: string;
    voided_on: string;
    purpose: string;
    month: string;
    replaced_by: string | null;
  }>((f) => {
    const voided = `${f.number} was voided on ${f.voided_on}`;
    if (f.replaced_by !== null) return `${voided}. Use its replacement, ${f.replaced_by}.`;
    return f.purpose === 'month'
      ? `${voided} and has no replacement. 'reckoner invoice rerun --month ${f.month}' issues one.`
      : `${voided} and has no replacement.`;
  }),
  document_not_void: refused<{ number: string }>(
    (f) => `${f.number} is not void, so it has no void copy. Omit --void-copy to get the PDF that was issued.`,
  ),
  not_an_invoice: refused<{ number: string; document: string; act: string }>(
    (f) => `${f.number} is a ${f.document.replace('_', ' ')}. Only an invoice can be ${f.act}.`,
  ),
  not_of_the_ledger: refused<{ number: string; purpose: string }>(
    (f) =>
      `${f.number} was not issued by a month close (${f.purpose.replace('_', ' ')}), so it cannot be recomputed from ` +
      'ledger rows. Void it and issue a new one.',
  ),
  payment_applied: refused<{ number: string; amount_paid: string; act: string }>(
    (f) =>
      `${f.number} cannot be ${f.act} while a payment of ${f.amount_paid} is applied to it. ` +
      "Unapply the payment first ('reckoner payment list', 'reckoner payment unapply ID'), or reduce the invoice " +
      "with 'reckoner invoice credit'.",
  ),
  credit_used: refused<{ number: string; used: string; act: string }>(
    (f) =>
      `${f.number} cannot be ${f.act}: ${f.used} of its credit has been used. Void the invoice that used it first, ` +
      'or keep the credit note and correct the difference with later rows.',
  ),
  document_written_off: refused<{ number: string; written_off: string; act: string }>(
    (f) => `${f.number} cannot be ${f.act}: ${f.written_off} of it has been written off, which is final.`,
  ),
  credit_repeated: refused<{ number: string; amount: string; by: string; on: string }>(
    (f) =>
      `${f.number} was already credited ${f.amount} for the same reason, by ${f.by} on ${f.on}. ` +
      'To issue another credit note, add --again.',
  ),
  credit_exceeds_invoice: refused<{ number: string; amount: string; left: string }>(
    (f) =>
      `${f.amount} exceeds what can still be credited on ${f.number}: ${f.left}. ` +
      'Credits and write-offs together cannot exceed the invoice.',
  ),
  nothing_to_write_off: refused<{ number: string }>((f) => `${f.number} has no open balance to write off.`),
  document_on_hold: refused<{ number: string; since: string; reason: string }>(
    (f) =>
      `${f.number} has been on hold since ${f.since}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      `Release it with 'reckoner invoice release ${f.number}'.`,
  ),
  invoice_disputed: refused<{ number: string; since: string; amount: string }>(
    (f) =>
      `${f.amount} of ${f.number} has been in dispute since ${f.since}. Close that dispute first: ` +
      `'reckoner dispute close ${f.number} --reason REASON'.`,
  ),
  invoice_not_disputed: refused<{ number: string }>(
    (f) => `${f.number} has no open dispute. 'reckoner dispute list' shows all open disputes.`,
  ),
  dispute_exceeds_balance: refused<{ number: string; amount: string; balance: string }>(
    (f) => `${f.amount} exceeds what is open on ${f.number}: ${f.balance}. Only an open amount can be disputed.`,
  ),
  document_not_on_hold: refused<{ number: string }>((f) => `${f.number} is not on hold.`),
  email_unknown: badInput<{ email: number }>(
    (f) => `There is no e-mail ${f.email}. 'reckoner email list' shows the e-mails with their numbers.`,
  ),
  email_unfinished: refused<{ email: number; status: string; reason: string }>(
    (f) =>
      `E-mail ${f.email} has not been sent yet: it is ${f.status}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      "Supply what is missing and run 'reckoner deliver'.",
  ),
  email_not_dismissible: refused<{ email: number; because: string }>(
    (f) => `E-mail ${f.email} cannot be dismissed: ${f.because}.`,
  ),
  document_email_unfinished: refused<{ number: string; status: string; reason: string }>(
    (f) =>
      `The e-mail of ${f.number} has not been sent yet: it is ${f.status}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      "Supply what is missing and run 'reckoner deliver'. An e-mail can be resent once it is sent, failed or uncertain.",
  ),
  recipient_refused: refused<{ address: string }>(
    (f) => `${f.address} is not in sandbox_recipients in settings.json. A sandbox sends mail only to those recipients.`,
  ),
} as const;
