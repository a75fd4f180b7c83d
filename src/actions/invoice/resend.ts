import { resendDocument } from '../../delivery/resend.ts';
import { documentJson } from '../../documents/document.ts';
import { defineAction } from '../action.ts';
import { deliver, documentNumbered, emailText, isUnsent, OF_DOCUMENT } from '../documents.ts';
import { documentNumber, text } from '../fields.ts';

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
  perform: (tx, context, request) => resendDocument(tx, context, request),
  after: (context, { input }) => deliver(context, [input.number]),
  amounts: () => [],
  async report(tx, _context, { input: { number }, delivered }) {
    const document = await documentNumbered(tx, number);
    return {
      json: documentJson(document),
      text: `${number}: ${emailText(document)}`,
      attention: delivered && isUnsent(document),
    };
  },
});
