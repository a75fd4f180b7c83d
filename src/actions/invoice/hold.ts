import { documentNumber, text } from '#actions/action';
import { amountsIn, emailText, isUnsent, reportDocument } from '#actions/documents';
import { onEach } from '#actions/each';
import { holdDocument, releaseDocument } from '#documents/hold';
import { toDo } from '#remedy';

export const invoiceHold = onEach({
  name: 'invoice.hold',
  said: ['is on hold', 'are on hold'],
  title: 'Put a document on hold',
  command: {
    summary: 'Stop e-mails and reminders for a document until it is released',
    arguments: { number: '<number...>' },
  },
  role: 'finance',
  input: {
    number: documentNumber(),
    reason: text('Reason', 'The reason. It is recorded.', { more: 'The e-mail log shows the reason.' }).optional(),
  },
  perform: (tx, context, { number, reason = '' }) => holdDocument(tx, context, { number, reason }),
  report: ({ input: { number } }, _context, tx) =>
    reportDocument(tx, number, (document) => ({
      text: `${number} is on hold.\nE-mail: ${emailText(document)}`,
      remedies: [toDo('Undo', 'invoice.release', { number })],
    })),
});

export const invoiceRelease = onEach({
  name: 'invoice.release',
  said: ['is no longer on hold', 'are no longer on hold'],
  title: 'Release a document from hold',
  command: { summary: 'Release a document from hold', arguments: { number: '<number...>' }, deliver: true },
  role: 'finance',
  input: { number: documentNumber() },
  perform: (tx, context, { number }) => releaseDocument(tx, context, number),
  sends: ({ number }) => [number],
  amounts: ({ before }, { number }) => amountsIn(before, [number], 'balance'),
  report: ({ input: { number }, delivered }, _context, tx) =>
    reportDocument(tx, number, (document) => ({
      text: `${number} is no longer on hold.\nE-mail: ${emailText(document)}`,
      remedies: [toDo('Undo', 'invoice.hold', { number })],
      attention: delivered && isUnsent(document),
    })),
});
