import { defineAction, documentNumber, text } from '#actions/action';
import { deliver, emailText, isUnsent, OF_DOCUMENT, reportDocument } from '#actions/documents';
import { resendDocument } from '#delivery/resend';

export const invoiceResend = defineAction({
  name: 'invoice.resend',
  title: 'E-mail a document again',
  command: { arguments: { number: '<number>' }, deliver: true },
  role: 'finance',
  input: {
    number: documentNumber(),
    to: text('To', "Send to this address instead of the partner's contacts.", { value: 'address' }).optional(),
  },
  ...OF_DOCUMENT,
  perform: resendDocument,
  after: (context, { input }) => deliver(context, [input.number]),
  report: ({ input: { number }, delivered }, _context, tx) =>
    reportDocument(tx, number, (document) => ({
      text: `${number}: ${emailText(document)}`,
      attention: delivered && isUnsent(document),
    })),
});
