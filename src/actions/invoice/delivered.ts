import { date, documentNumber, line, ON_TODAY } from '#actions/action';
import { emailText, reportDocument } from '#actions/documents';
import { onEach } from '#actions/each';
import { recordPortalDelivery } from '#documents/portal-delivery';

export const invoiceDelivered = onEach({
  name: 'invoice.delivered',
  said: ['was delivered by portal', 'were delivered by portal'],
  title: 'Record a delivery by portal',
  command: {
    summary: "Record that a document was uploaded to the partner's portal, instead of its e-mail",
    arguments: { number: '<number...>' },
  },
  role: 'finance',
  input: {
    number: documentNumber(),
    on: date('On', 'The day of the upload.'),
    reference: line('Reference', "The portal's reference.").optional(),
  },
  ...ON_TODAY,
  perform: (tx, context, { number, on, reference = '' }) =>
    recordPortalDelivery(tx, context, { number, on, reference }),
  report: ({ input: { number, on } }, _context, tx) =>
    reportDocument(tx, number, (document) => ({
      text: `${number} was delivered by the partner's portal on ${on}.\nE-mail: ${emailText(document)}`,
    })),
});
