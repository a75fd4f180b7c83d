import { fieldName } from '#field-names';
import { DELIVER, Remedy, SEE, seeDocument, toDo, toRun } from '#remedy';
import { badInput, refused, says } from './definition.ts';

export interface UnprintableField {
  readonly field: string;
  readonly characters: readonly string[];
}

/** Their words would be in the wrong order on a page. */
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

const MOST_SHOWN = 8;

/** Returns a text such as `株式 (U+682A U+5F0F)`. */
function shown(characters: readonly string[]) {
  const some = characters.slice(0, MOST_SHOWN);
  const codes = some.map((each) => `U+${(each.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`);
  const rest = characters.length - some.length;
  return `${some.join('')} (${codes.join(' ')})${rest === 0 ? '' : ` and ${rest} more`}`;
}

export const DOCUMENTS = {
  document_unknown: badInput<{
    number: string;
    /** When it was skipped, and the reason for the pause at that time. */
    skipped?: { on: string; reason: string } | undefined;
  }>(
    (f) =>
      says(
        f.skipped === undefined
          ? `No such document: ${f.number}.`
          : `No such document: ${f.number} was skipped on ${f.skipped.on}, because it may have been issued in a ledger that ` +
              `was lost (${f.skipped.reason}).`,
        SEE.documents,
      ),
    404,
  ),
  pdf_not_rendered: refused<{ number: string; reason: string; void: boolean }>((f) =>
    f.void
      ? says(
          `${f.number} was voided before its PDF was rendered.`,
          toRun('Get its void copy', `invoice pdf ${f.number} --void-copy`),
        )
      : says(`${f.number} has no PDF yet: ${f.reason.replace(/\.$/, '')}.`, DELIVER),
  ),
  e_invoice_not_asked_for: refused<{
    number: string;
    document: 'invoice' | 'credit_note' | 'statement';
    partner_id: string;
  }>((f) =>
    f.document === 'statement'
      ? `${f.number} has no e-invoice: it is a statement, which asks for no money.`
      : says(
          `${f.number} has no e-invoice: partner ${f.partner_id} requested none when ${f.number} was issued. To issue it ` +
            'with an e-invoice, set e_invoice in partners.json and import the file.',
          toDo('Then replace it', 'invoice.rerun', { number: f.number }),
        ),
  ),
  e_invoice_not_written: refused<{ number: string; reason: string; void: boolean }>((f) =>
    f.void
      ? `${f.number} was voided before its e-invoice was written, so there is none.`
      : says(`${f.number} has no e-invoice yet: ${f.reason.replace(/\.$/, '')}.`, DELIVER),
  ),
  characters_unprintable: refused<{
    subject: string;
    fields: readonly UnprintableField[];
    folder: string;
    /** If a rerun can replace the issued document with these fields. */
    number?: string | undefined;
  }>((f) => {
    const fields = f.fields.map(({ field, characters }) => `${shown(characters)} in ${field}`);
    const rightToLeft = f.fields.some(({ characters }) => characters.some((each) => RIGHT_TO_LEFT.test(each)));
    return says(
      `${f.subject} cannot be rendered: no font has ${fields.join(', ')}. Put a font that has these characters, such as ` +
        'one of https://fonts.google.com/noto, into the folder templates/fonts of the installation.' +
        (f.number === undefined
          ? ''
          : ' Or correct these texts and replace the document: an issued document keeps its texts.') +
        (rightToLeft ? ' Right-to-left scripts are not supported: write these texts in Latin letters.' : ''),
      DELIVER,
      ...(f.number === undefined
        ? []
        : [toDo('Replace it', 'invoice.rerun', { number: f.number }, 'once the texts are corrected')]),
    );
  }),
  document_void: refused<{
    number: string;
    voided_on: string;
    purpose: string;
    month: string;
    replaced_by: string | null;
  }>((f) => {
    const voided = `${f.number} was voided on ${f.voided_on}`;
    if (f.replaced_by !== null) return `${voided}. Use its replacement, ${f.replaced_by}.`;
    const remedy = toDo('Issue a replacement', 'invoice.rerun', { number: f.number });
    return says(`${voided} and has no replacement.`, ...(f.purpose === 'month' ? [remedy] : []));
  }),
  document_not_void: refused(
    '{number} is not void, so it has no void copy. Omit --void-copy to get the PDF that was issued.',
  ),
  not_an_invoice: refused<{ number: string; document: string; action: string }>(
    (f) => `${f.number} is a ${f.document.replace('_', ' ')}. Only an invoice can be ${f.action}.`,
  ),
  not_of_the_ledger: refused<{ number: string; purpose: string }>(
    (f) =>
      `${f.number} was not issued by a month close (${f.purpose.replace('_', ' ')}), so it cannot be recomputed from ` +
      'ledger rows. Void it and issue a new one.',
  ),
  payment_applied: refused(
    '{number} cannot be {action} while a payment of {amount_paid} is applied to it.',
    ({ number }) => seeDocument('See the payment', number),
    ({ number }) => toDo('Unapply it first', 'payment.unapply', { number }),
    ({ number }) => toDo('Reduce the invoice', 'invoice.credit', { number }, 'instead'),
  ),
  credit_used: refused(
    [
      '{number} cannot be {action}: {used} of its credit has been used. Take that credit back, or keep the credit note and ',
      'correct the difference with later rows.',
    ],
    ({ number }) => toDo('Take the credit back first', 'credit.unapply', { creditNote: number }),
  ),
  document_written_off: refused(
    '{number} cannot be {action}: {written_off} of it has been written off.',
    ({ number }) => toDo('Undo that first', 'invoice.write_off_undone', { number }),
  ),
  credit_repeated: refused<{ number: string; amount: string; by: string; on: string }>(
    (f) =>
      `${f.number} was already credited ${f.amount} for the same reason, by ${f.by} on ${f.on}. ` +
      `To issue another credit note, add ${fieldName('again')}.`,
  ),
  row_not_correctable: refused<{ row: number; action: 'credited' | 'disputed' | 'reversed'; reason: string }>((f) =>
    says(`Row ${f.row} cannot be ${f.action}: ${f.reason}. Nothing was recorded.`, SEE.rows),
  ),
  credit_exceeds_invoice: refused([
    '{amount} exceeds the amount that can still be credited on {number}: {left}. ',
    'Credits and write-offs together cannot exceed the invoice.',
  ]),
  credit_not_applicable: refused('{credit_note} cannot be applied to {number}: {reason}.', SEE.open),
  credit_amount_too_large: refused('{amount} is more than the {most} {what}. Give a smaller amount.'),
  credit_not_applied: refused(
    'No credit from {credit_note} is applied to {number}, so there is nothing to take back.',
    ({ credit_note }) => seeDocument('See where its credit went', credit_note),
  ),
  credit_covers_invoice: refused(
    [
      '{number} was issued with nothing due, because credit from {credit_note} covers it: it has no payment page, ',
      'and its PDF asks for no payment. Voiding it frees the credit. Apply or refund that credit, then reissue the ',
      'invoice.',
    ],
    ({ number }) => toDo('Void it', 'invoice.void', { number }),
    ({ number }) => toDo('Then reissue it', 'invoice.rerun', { number }),
  ),
  nothing_to_write_off: refused('{number} has no open balance to write off.'),
  not_written_off: refused('No part of {number} was written off, so there is nothing to undo.'),
  link_missing: refused([
    '{number} has no payment link that can be changed: it has not been delivered, asks for no payment, ',
    "or prints another page's link.",
  ]),
  link_revoked: refused('The payment link of {number} is already revoked.', ({ number }) =>
    toDo('Make a new one', 'invoice.link_rotate', { number }),
  ),
  document_on_hold: refused<{ number: string; since: string; reason: string }>(({ number, ...f }) =>
    says(
      `${number} has been on hold since ${f.since}${f.reason === '' ? '' : ` (${f.reason})`}.`,
      toDo('Release it', 'invoice.release', { number }),
    ),
  ),
  invoice_disputed: refused('{amount} of {number} has been in dispute since {since}.', ({ number }) =>
    toDo('Close the dispute first', 'dispute.close', { number }),
  ),
  invoice_not_disputed: refused('{number} has no open dispute.', SEE.disputes),
  dispute_exceeds_balance: refused(
    '{amount} exceeds the open balance of {number}: {balance}. Only an open amount can be disputed.',
  ),
  document_not_on_hold: refused('{number} is not on hold.'),
  email_unknown: badInput('No such e-mail: {email}.', toRun('See the e-mails with their numbers', 'email list')),
  email_unfinished: refused<{ email: number; status: string; reason: string }>((f) =>
    says(
      `E-mail ${f.email} has not been sent yet: it is ${f.status}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
        'Supply what is missing.',
      DELIVER,
    ),
  ),
  email_not_dismissible: refused<{ email: number; because: string; remedies: readonly Remedy[] }>((f) =>
    says(`E-mail ${f.email} cannot be dismissed: ${f.because}.`, ...f.remedies),
  ),
  document_email_unfinished: refused<{ number: string; status: string; reason: string }>((f) =>
    says(
      `The e-mail of ${f.number} has not been sent yet: it is ${f.status}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
        'Supply what is missing. An e-mail can be resent once it is sent, failed or uncertain.',
      DELIVER,
    ),
  ),
  recipient_refused: refused(
    '{address} is not in sandbox_recipients in settings.json. A sandbox sends mail only to those recipients.',
  ),
} as const;
