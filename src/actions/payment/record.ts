import { amount, choice, date, defineAction, partner, text } from '#actions/action';
import { documentFacts, partnersOfDocuments } from '#actions/documents';
import { refuse } from '#errors/refusals';
import { fieldName } from '#field-names';
import { Amount } from '#money';
import { enteredLater } from '#payments/context';
import { METHODS } from '#payments/enums';
import { recordPayment } from '#payments/record';
import { onePayment, paymentBlock, paymentFacts, smallDifferencesOf } from './describe.ts';

export const paymentRecord = defineAction({
  name: 'payment.record',
  title: 'Record a payment by hand',
  command: {
    summary: 'Record a payment by hand; a payment that is already recorded is not recorded twice',
    options: { number: '--invoice <number>' },
  },
  role: 'finance',
  input: {
    amount: amount('Amount', 'The amount received.'),
    currency: text('Currency', 'ISO 4217 currency code.', { value: 'code' }),
    method: choice('Method', 'How it was paid.', METHODS),
    receivedOn: date('Received on', 'The date it arrived.'),
    reference: text('Reference', "The bank's or processor's reference."),
    account: text('Account', 'Our bank account that received it, as named in bank files.').optional(),
    number: text('Invoice', 'Apply the payment to this invoice; any excess stays unapplied cash.').optional(),
    partnerId: partner('Keep the payment as unapplied cash of this partner.').optional(),
  },
  check({ number, partnerId }) {
    if ((number === undefined) === (partnerId === undefined)) {
      throw refuse('usage', {
        reason: `give either ${fieldName('number')} or ${fieldName('partnerId')}`,
      });
    }
  },
  subject: ({ reference }) => reference,
  partners: async (tx, { number, partnerId }) =>
    number === undefined ? [partnerId as string] : partnersOfDocuments(tx, [number]),
  perform: recordPayment,
  facts: async (tx, { number }, recorded) => ({
    ...(number === undefined ? {} : await documentFacts(tx, [number])),
    ...(recorded === undefined || recorded.duplicate ? {} : await paymentFacts(tx, recorded.paymentId, 'the payment')),
  }),
  amounts: (_seen, { amount, currency }) => [Amount.of(amount, currency)],
  adjusts: (tx, _seen, _input, { eventId }) => smallDifferencesOf(tx, eventId),
  async report({ result: { paymentId, duplicate, possibleDuplicates, kept } }, _context, tx) {
    const payment = await onePayment(tx, paymentId);
    // A payment that settled its invoice in full has no suggestions. The possible duplicates of such a payment are
    // listed here.
    const unlisted = possibleDuplicates.filter((id) => !payment.suggestions.some((each) => each.same_as === id));
    const later = enteredLater(payment.received_on, payment.entry_on);
    return {
      json: { ...payment, duplicate, possible_duplicates: possibleDuplicates, kept: kept ?? null },
      text: [
        duplicate
          ? `Payment ${paymentId} is already recorded: nothing was added.`
          : `Payment ${paymentId} is recorded${kept === undefined ? '' : `; ${kept}: it is kept as unapplied cash`}.`,
        ...(later === undefined ? [] : [later]),
        ...unlisted.map((id) => `Perhaps it is the same as payment ${id}, which has the same amount.`),
      ].join('\n'),
      blocks: [await paymentBlock(tx, payment)],
      attention: payment.suggestions.length > 0 || possibleDuplicates.length > 0 || kept !== undefined,
    };
  },
});
