import { documentNumber, onLatestDate, reason } from '#actions/action';
import { adjustmentsOf, amountsIn, followBalance, reportDocument } from '#actions/documents';
import { onEach } from '#actions/each';
import { undoWriteOff, writeOffInvoice } from '#documents/write-off';
import { failpoint } from '#failpoint';
import { moneyText } from '#money';
import { toDo } from '#remedy';

export const invoiceWriteOff = onEach({
  name: 'invoice.write_off',
  said: ['is written off', 'are written off'],
  command: { arguments: { number: '<number...>' } },
  title: 'Write off the open balance of an invoice',
  role: 'finance',
  danger: true,
  input: {
    number: documentNumber(),
    reason: reason('Recorded, and not shown to the partner.'),
    onLatestDate: onLatestDate(),
  },
  perform: (tx, context, { onLatestDate, ...request }) => writeOffInvoice(tx, { ...context, onLatestDate }, request),
  committed: (context, { input }) => followBalance(context, input.number),
  amounts: ({ before }, { number }) => amountsIn(before, [number], 'balance'),
  adjusts: (tx, { before }, { number }) => adjustmentsOf(tx, number, amountsIn(before, [number], 'balance')),
  report: ({ input: { number } }, _context, tx) =>
    reportDocument(tx, number, ({ written_off, currency }) => ({
      text: `Wrote off ${moneyText(written_off, currency)} of ${number}. Its balance is now zero.`,
      remedies: [toDo('Undo', 'invoice.write_off_undone', { number })],
    })),
});

export const invoiceWriteOffUndo = onEach({
  name: 'invoice.write_off_undone',
  said: ['is open again', 'are open again'],
  command: { called: 'invoice write-off --undo', arguments: { number: '<number...>' } },
  title: 'Undo a write-off',
  role: 'finance',
  input: { number: documentNumber(), reason: reason(), onLatestDate: onLatestDate() },
  perform: (tx, context, { onLatestDate, ...request }) => undoWriteOff(tx, { ...context, onLatestDate }, request),
  async committed(context, { input }) {
    failpoint('write_off_undo.committed');
    await followBalance(context, input.number);
  },
  amounts: (_seen, _input, amount) => [amount],
  report: ({ input: { number }, result: amount }, _context, tx) =>
    reportDocument(tx, number, ({ balance, currency }) => ({
      text:
        `The write-off of ${amount.forPeople()} of ${number} is undone. ` +
        `Its balance is ${moneyText(balance, currency)} again.`,
    })),
});
