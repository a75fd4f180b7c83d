import { documentJson } from '../../documents/document.ts';
import { undoWriteOff, writeOffInvoice } from '../../documents/write-off.ts';
import { failpoint } from '../../failpoint.ts';
import { moneyText } from '../../money.ts';
import { defineAction } from '../action.ts';
import { adjustmentsOf, amountsIn, documentNumbered, followBalance, OF_DOCUMENT } from '../documents.ts';
import { documentNumber, onLatestDate, reason } from '../fields.ts';

export const invoiceWriteOff = defineAction({
  name: 'invoice.write_off',
  command: { arguments: { number: '<number>' } },
  title: 'Write off the open balance of an invoice',
  role: 'finance',
  input: { number: documentNumber(), reason: reason(), onLatestDate: onLatestDate() },
  ...OF_DOCUMENT,
  perform: (tx, context, { onLatestDate, ...request }) => writeOffInvoice(tx, { ...context, onLatestDate }, request),
  committed: (context, { input }) => followBalance(context, input.number),
  amounts: ({ before }, { number }) => amountsIn(before, [number], 'balance'),
  adjusts: (tx, { before }, { number }) => adjustmentsOf(tx, number, amountsIn(before, [number], 'balance')),
  async report(tx, _context, { input: { number } }) {
    const document = await documentNumbered(tx, number);
    return {
      json: documentJson(document),
      text: `Wrote off ${moneyText(document.written_off, document.currency)} of ${number}. Its balance is now zero.`,
    };
  },
});

export const invoiceWriteOffUndo = defineAction({
  name: 'invoice.write_off_undone',
  command: { called: 'invoice write-off --undo', arguments: { number: '<number>' } },
  title: 'Undo a write-off',
  role: 'finance',
  input: { number: documentNumber(), reason: reason(), onLatestDate: onLatestDate() },
  ...OF_DOCUMENT,
  perform: (tx, context, { onLatestDate, ...request }) => undoWriteOff(tx, { ...context, onLatestDate }, request),
  async committed(context, { input }) {
    failpoint('write_off_undo.committed');
    await followBalance(context, input.number);
  },
  amounts: (_seen, _input, amount) => [amount],
  async report(tx, _context, { input: { number }, result: amount }) {
    const document = await documentNumbered(tx, number);
    return {
      json: documentJson(document),
      text:
        `The write-off of ${amount.forPeople()} of ${number} is undone. ` +
        `Its balance is ${moneyText(document.balance, document.currency)} again.`,
    };
  },
});
