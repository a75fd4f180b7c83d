import { documentNumber, text } from '#actions/action';
import { emailText, isUnsent, reportDocument } from '#actions/documents';
import { onEach } from '#actions/each';
import { resendDocument } from '#delivery/resend';

export const invoiceResend = onEach({
  name: 'invoice.resend',
  said: ['is e-mailed again', 'are e-mailed again'],
  title: 'E-mail a document again',
  command: { arguments: { number: '<number...>' }, deliver: true },
  role: 'finance',
  input: {
    number: documentNumber(),
    to: text('To', "Send to this address instead of the partner's contacts.", { value: 'address' }).optional(),
  },
  perform: resendDocument,
  sends: ({ number }) => [number],
  report: ({ input: { number }, delivered }, _context, tx) =>
    reportDocument(tx, number, (document) => ({
      text: `${number}: ${emailText(document)}`,
      attention: delivered && isUnsent(document),
    })),
});
