import { defineAction, documentNumber, text } from '#actions/action';
import { amountsIn, deliver, emailText, isUnsent, OF_DOCUMENT, reportDocument } from '#actions/documents';
import { holdDocument, releaseDocument } from '#documents/hold';
import { toDo } from '#remedy';

export const invoiceHold = defineAction({
  name: 'invoice.hold',
  title: 'Put a document on hold',
  command: {
    summary: 'Stop e-mails and reminders for a document until it is released',
    arguments: { number: '<number>' },
  },
  role: 'finance',
  input: {
    number: documentNumber(),
    reason: text('Reason', 'The reason. It is recorded.', { more: 'The e-mail log shows the reason.' }).optional(),
  },
  ...OF_DOCUMENT,
  perform: (tx, context, { number, reason = '' }) => holdDocument(tx, context, { number, reason }),
  report: ({ input: { number } }, _context, tx) =>
    reportDocument(tx, number, (document) => ({
      text: `${number} is on hold.\nE-mail: ${emailText(document)}`,
      remedies: [toDo('Release it', 'invoice.release', { number })],
    })),
});

export const invoiceRelease = defineAction({
  name: 'invoice.release',
  title: 'Release a document from hold',
  command: { summary: 'Release a document from hold', arguments: { number: '<number>' }, deliver: true },
  role: 'finance',
  input: { number: documentNumber() },
  ...OF_DOCUMENT,
  perform: (tx, context, { number }) => releaseDocument(tx, context, number),
  after: (context, { input }) => deliver(context, [input.number]),
  amounts: ({ before }, { number }) => amountsIn(before, [number], 'balance'),
  report: ({ input: { number }, delivered }, _context, tx) =>
    reportDocument(tx, number, (document) => ({
      text: `${number} is no longer on hold.\nE-mail: ${emailText(document)}`,
      attention: delivered && isUnsent(document),
    })),
});
