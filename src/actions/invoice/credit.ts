import { amount, documentNumber, flag, ledgerRows, note, onLatestDate, reason } from '#actions/action';
import {
  adjustmentsOf,
  amountsIn,
  documentNumbered,
  emailText,
  factsOf,
  followBalance,
  isUnsent,
} from '#actions/documents';
import { onEach } from '#actions/each';
import { creditInvoice } from '#documents/credit';
import { documentJson } from '#documents/document';
import { DocumentRow } from '#documents/documents.sql';
import { refuseField } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { isZero, moneyText } from '#money';
import { wrapped } from '#text-table';

/** A placeholder for the document number, which is assigned when the document is issued. */
const NOTE = 'the credit note';

export const invoiceCredit = onEach({
  name: 'invoice.credit',
  said: ['is credited', 'are credited'],
  title: 'Credit an invoice',
  command: { summary: 'Issue a credit note against an invoice', arguments: { number: '<number...>' }, deliver: true },
  role: 'finance',
  input: {
    number: documentNumber(),
    amount: amount('Amount', "The amount, in the invoice's currency. Without it, give the rows, or credit in full.", {
      more: 'On an invoice with tax, the amount before tax; tax is added.',
    }).optional(),
    inFull: flag('In full', 'Credit all that earlier credits have left of the invoice.').optional(),
    rows: ledgerRows('The numbers of the credited rows of the invoice, whose amounts are added up.').optional(),
    reason: reason('Printed on the credit note and in the e-mail to the partner.'),
    note: note(),
    again: flag('Again', 'Issue the credit note even if one with the same amount and reason exists.').optional(),
    onLatestDate: onLatestDate(),
  },
  check({ amount, rows, inFull }) {
    if ([amount, rows, inFull].filter((each) => each !== undefined && each !== false).length !== 1) {
      throw refuseField('amount', amount ?? '', `is needed, unless the rows or ${fieldName('inFull')} are given`);
    }
  },
  perform: (tx, context, { onLatestDate, ...request }) => creditInvoice(tx, { ...context, onLatestDate }, request),
  async committed(context, { input }) {
    failpoint('credit.committed');
    await followBalance(context, input.number);
  },
  sends: (_input, note) => [note],
  made: async (tx, note) => ({ [NOTE]: factsOf(await documentNumbered(tx, note)) }),
  amounts: ({ after }) => amountsIn(after, [NOTE], 'amount'),
  adjusts: async (tx, { after }, { number }) => adjustmentsOf(tx, number, amountsIn(after, [NOTE], 'amount')),
  async report({ input: { number }, result: note, delivered }, _context, tx) {
    const issued = await documentNumbered(tx, note);
    const invoice = await documentNumbered(tx, number);
    return {
      json: documentJson(issued),
      text: [
        `${note} credits ${moneyText(issued.gross, issued.currency)} on ${number}.`,
        ...wrapped(whereItWent(issued, invoice), 80, '  '),
        ...wrapped(`E-mail: ${emailText(issued)}`, 80, '  '),
      ].join('\n'),
      attention: delivered && isUnsent(issued),
    };
  },
});

function whereItWent(note: DocumentRow, invoice: DocumentRow) {
  const [applied, left, open] = [note.credited, invoice.balance, note.balance].map((each) =>
    moneyText(each, note.currency),
  );
  if (isZero(note.credited)) return `Nothing is left to pay on ${invoice.number}, so the full ${open} is open credit.`;
  const standing = `${applied} is applied to ${invoice.number}, which leaves ${left} to pay`;
  return isZero(note.balance) ? `${standing}.` : `${standing}; ${open} is open credit.`;
}
