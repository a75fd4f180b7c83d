import { defineAction, documentNumber, note, onLatestDate, reason } from '#actions/action';
import { amountsIn, deliver, OF_DOCUMENT, reportDocument } from '#actions/documents';
import { voidDocument } from '#documents/void';
import { failpoint } from '#failpoint';
import { toDo } from '#remedy';

export const invoiceVoid = defineAction({
  name: 'invoice.void',
  title: 'Void a document',
  command: { summary: 'Void a document as of today; its number is kept', arguments: { number: '<number>' } },
  role: 'finance',
  input: {
    number: documentNumber(),
    reason: reason('Printed on the void copy, and in the API of the partner.'),
    note: note(),
    onLatestDate: onLatestDate(),
  },
  ...OF_DOCUMENT,
  perform: (tx, context, { onLatestDate, ...request }) => voidDocument(tx, { ...context, onLatestDate }, request),
  committed: () => failpoint('void.committed'),
  after: (context, { input }) => deliver(context, [input.number]),
  amounts: ({ before }, { number }) => amountsIn(before, [number], 'amount'),
  report: ({ input: { number } }, _context, tx) =>
    reportDocument(tx, number, ({ purpose }) => ({
      text: `${number} is void.${purpose === 'month' ? ' Its rows are unbilled until its replacement is issued.' : ''}`,
      remedies: purpose === 'month' ? [toDo('Issue it', 'invoice.rerun', { number })] : [],
    })),
});
