/** Refusals about documents and their corrections. */
import { define, EXIT } from './definition.ts';

export const DOCUMENTS = {
  document_unknown: define<{ number: string }>(
    EXIT.badInput,
    (f) => `No such document: ${f.number}. 'reckoner invoice list' shows all documents.`,
  ),
  pdf_not_drawn: define<{ number: string; reason: string; void: boolean }>(EXIT.refused, (f) =>
    f.void
      ? `${f.number} was voided before its PDF was rendered. Use 'reckoner invoice pdf ${f.number} --void-copy'.`
      : `${f.number} has no PDF yet: ${f.reason}. Run 'reckoner deliver', then try again.`,
  ),
  document_void: define<{
    number: string;
    voided_on: string;
    purpose: string;
    month: string;
    replaced_by: string | null;
  }>(EXIT.refused, (f) => {
    const voided = `${f.number} was voided on ${f.voided_on}`;
    if (f.replaced_by !== null) return `${voided}. Use its replacement, ${f.replaced_by}.`;
    return f.purpose === 'month'
      ? `${voided} and has no replacement. 'reckoner invoice rerun --month ${f.month}' issues one.`
      : `${voided} and has no replacement.`;
  }),
  document_not_void: define<{ number: string }>(
    EXIT.refused,
    (f) => `${f.number} is not void, so it has no void copy. Omit --void-copy to get the PDF that was issued.`,
  ),
  not_an_invoice: define<{ number: string; document: string; act: string }>(
    EXIT.refused,
    (f) => `${f.number} is a ${f.document.replace('_', ' ')}. Only an invoice can be ${f.act}.`,
  ),
  not_of_the_ledger: define<{ number: string; purpose: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} was not issued by a month close (${f.purpose.replace('_', ' ')}), so it cannot be recomputed from ` +
      'ledger rows. Void it and issue a new one.',
  ),
  payment_applied: define<{ number: string; amount_paid: string; act: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} cannot be ${f.act} while a payment of ${f.amount_paid} is applied to it. ` +
      "Unapply the payment first ('reckoner payment list', 'reckoner payment unapply ID'), or reduce the invoice " +
      "with 'reckoner invoice credit'.",
  ),
  credit_used: define<{ number: string; used: string; act: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} cannot be ${f.act}: ${f.used} of its credit has been used. Void the invoice that used it first, ` +
      'or keep the credit note and correct the difference with later rows.',
  ),
  document_written_off: define<{ number: string; written_off: string; act: string }>(
    EXIT.refused,
    (f) => `${f.number} cannot be ${f.act}: ${f.written_off} of it has been written off, which is final.`,
  ),
  credit_repeated: define<{ number: string; amount: string; by: string; on: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} was already credited ${f.amount} for the same reason, by ${f.by} on ${f.on}. ` +
      'To issue another credit note, add --again.',
  ),
  credit_exceeds_invoice: define<{ number: string; amount: string; left: string }>(
    EXIT.refused,
    (f) =>
      `${f.amount} exceeds what can still be credited on ${f.number}: ${f.left}. ` +
      'Credits and write-offs together cannot exceed the invoice.',
  ),
  nothing_to_write_off: define<{ number: string }>(
    EXIT.refused,
    (f) => `${f.number} has no open balance to write off.`,
  ),
  document_on_hold: define<{ number: string; since: string; reason: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} has been on hold since ${f.since}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      `Release it with 'reckoner invoice release ${f.number}'.`,
  ),
  document_not_on_hold: define<{ number: string }>(EXIT.refused, (f) => `${f.number} is not on hold.`),
} as const;
