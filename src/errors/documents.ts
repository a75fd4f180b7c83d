/** Refusals about documents and their corrections. */
import { EXIT, entry } from './definition.ts';

export const DOCUMENTS = {
  document_unknown: entry<{ number: string }>(
    EXIT.badInput,
    (f) => `There is no document ${f.number}. 'reckoner invoice list' shows those there are.`,
  ),
  pdf_not_drawn: entry<{ number: string; reason: string; void: boolean }>(EXIT.refused, (f) =>
    f.void
      ? `${f.number} was voided before its PDF was drawn. 'reckoner invoice pdf ${f.number} --void-copy' draws one.`
      : `${f.number} has no PDF yet: ${f.reason}. Run 'reckoner deliver', then ask again.`,
  ),
  document_void: entry<{
    number: string;
    voided_on: string;
    purpose: string;
    month: string;
    replaced_by: string | null;
  }>(EXIT.refused, (f) => {
    const since = `${f.number} is void since ${f.voided_on}`;
    if (f.replaced_by !== null) return `${since}. ${f.replaced_by} replaces it: use that.`;
    return f.purpose === 'month'
      ? `${since}. It has no replacement: 'reckoner invoice rerun --month ${f.month}' issues one.`
      : `${since}, and nothing replaces it.`;
  }),
  document_not_void: entry<{ number: string }>(
    EXIT.refused,
    (f) => `${f.number} is not void, so it has no void copy. Without --void-copy you get the PDF that was issued.`,
  ),
  not_an_invoice: entry<{ number: string; document: string; act: string }>(
    EXIT.refused,
    (f) => `${f.number} is a ${f.document.replace('_', ' ')}: only an invoice can be ${f.act}.`,
  ),
  not_of_the_ledger: entry<{ number: string; purpose: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} is no month's document (${f.purpose.replace('_', ' ')}), so it cannot be made again from ledger ` +
      'rows. Void it and make a new one.',
  ),
  payment_applied: entry<{ number: string; amount_paid: string; act: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} cannot be ${f.act} while a payment is applied to it (${f.amount_paid}). ` +
      `Take it back first ('reckoner payment list', 'payment unapply ID'), or lower the invoice by 'reckoner invoice credit'.`,
  ),
  credit_used: entry<{ number: string; used: string; act: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} cannot be ${f.act}: ${f.used} of its credit is used already. ` +
      'Void the invoice that used it first, or leave the credit note and correct the difference by later rows.',
  ),
  document_written_off: entry<{ number: string; written_off: string; act: string }>(
    EXIT.refused,
    (f) => `${f.number} cannot be ${f.act}: ${f.written_off} of it is written off, which is final.`,
  ),
  credit_repeated: entry<{ number: string; amount: string; by: string; on: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} has been credited ${f.amount} for that reason already, by ${f.by} of ${f.on}. ` +
      'If another credit of the same amount is meant, add --again.',
  ),
  credit_exceeds_invoice: entry<{ number: string; amount: string; left: string }>(
    EXIT.refused,
    (f) =>
      `${f.amount} is more than ${f.number} can still be credited: ${f.left}. ` +
      'Credits and write-offs never exceed the invoice. Name a smaller amount.',
  ),
  nothing_to_write_off: entry<{ number: string }>(
    EXIT.refused,
    (f) => `Nothing is open on ${f.number}: there is nothing to write off.`,
  ),
  document_on_hold: entry<{ number: string; since: string; reason: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} is on hold since ${f.since}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      `'reckoner invoice release ${f.number}' ends the hold.`,
  ),
  document_not_on_hold: entry<{ number: string }>(EXIT.refused, (f) => `${f.number} is not on hold.`),
} as const;
