import { amount, date, defineAction, reason, several, text, whole } from '#actions/action';
import { documentFacts, partnersOfDocuments } from '#actions/documents';
import { applyPayment, unapplyPayment } from '#payments/apply';
import {
  fallOf,
  movedOf,
  OF_PAYMENT,
  partnersOfPayment,
  paymentFacts,
  reportPayment,
  smallDifferencesOf,
} from './describe.ts';

export const paymentApply = defineAction({
  name: 'payment.apply',
  title: 'Apply a payment to invoices',
  command: {
    summary: 'Apply a payment to one or more invoices; also accepts a suggestion',
    arguments: { paymentId: '<id>' },
    options: { numbers: '--invoice <number>', creditNotes: '--credit <number>' },
    help: `Repeat --invoice to pay several invoices with one payment, all or none. The
invoices may belong to several partners: the part that pays another partner's
invoice is assigned to that partner, and the payer stays the same.
With --fee, payment plus fee must equal what is open on the invoices, except for
a small difference.`,
  },
  role: 'finance',
  input: {
    paymentId: whole('Payment', 'The payment.'),
    numbers: several(text('Invoice', 'The invoice.', { more: 'Several invoices are paid in order, all or none.' })),
    amount: amount('Amount', 'The amount, for a single invoice. Default: as much as possible.').optional(),
    fee: amount('Bank fee', 'The fee that a bank deducted; it is posted to bank charges.', {
      more: 'Payment plus fee must equal what is open on the invoices.',
    }).optional(),
    creditNotes: several(text('Credit note', 'A credit note that pays the rest of the invoice.')).optional(),
    on: date(
      'On',
      'The day of the application, if its books are open, such as the day of the receipt. Default: today.',
    ).optional(),
  },
  subject: ({ paymentId }) => String(paymentId),
  async partners(tx, { paymentId, numbers, creditNotes = [] }) {
    const payer = await partnersOfPayment(tx, paymentId);
    return payer === 'all' ? payer : [...payer, ...(await partnersOfDocuments(tx, [...numbers, ...creditNotes]))];
  },
  perform: applyPayment,
  facts: async (tx, { paymentId, numbers, creditNotes = [] }) => ({
    ...(await paymentFacts(tx, paymentId)),
    ...(await documentFacts(tx, [...numbers, ...creditNotes])),
  }),
  // The action moves the cash and the credit that it applies.
  amounts(seen, { paymentId, creditNotes = [] }) {
    const [cash, ...more] = movedOf(seen, paymentId, 'unapplied');
    const credit = creditNotes.flatMap((number) => fallOf(seen, number, 'balance'));
    return cash === undefined ? more : [credit.reduce((sum, each) => sum.plus(each), cash)];
  },
  adjusts: (tx, _seen, _input, eventId) => smallDifferencesOf(tx, eventId),
  report({ input: { paymentId, numbers, creditNotes } }, _context, tx) {
    const less = creditNotes === undefined ? '' : `, together with ${creditNotes.join(' and ')}`;
    return reportPayment(tx, paymentId, `Payment ${paymentId} is applied to ${numbers.join(', ')}${less}.`);
  },
});

export const paymentUnapply = defineAction({
  name: 'payment.unapply',
  title: 'Unapply a payment from the invoices it paid',
  command: {
    summary: 'Turn the applied part of a payment back into unapplied cash',
    arguments: { paymentId: '<id>' },
    options: { number: '--invoice <number>' },
  },
  role: 'finance',
  input: {
    paymentId: whole('Payment', 'The payment.'),
    reason: reason('Recorded, and not shown to the partner.'),
    number: text('Invoice', 'Only from this invoice.', { more: 'Default: from all invoices.' }).optional(),
  },
  ...OF_PAYMENT,
  perform: unapplyPayment,
  amounts: (seen, { paymentId }) => movedOf(seen, paymentId, 'applied'),
  report: ({ input: { paymentId } }, _context, tx) =>
    reportPayment(tx, paymentId, `Payment ${paymentId} is unapplied cash again, and the invoices it paid are open.`),
});
