import { documentNumber, note, onLatestDate, reason } from '#actions/action';
import { amountsIn, reportDocument } from '#actions/documents';
import { onEach } from '#actions/each';
import { voidDocument } from '#documents/void';
import { failpoint } from '#failpoint';
import { toDo } from '#remedy';

export const invoiceVoid = onEach({
  name: 'invoice.void',
  said: ['is void', 'are void'],
  title: 'Void a document',
  command: { summary: 'Void a document as of today; its number is kept', arguments: { number: '<number...>' } },
  role: 'finance',
  danger: true,
  input: {
    number: documentNumber(),
    reason: reason('The partner reads it in an e-mail, on the void copy and in the API.'),
    note: note(),
    onLatestDate: onLatestDate(),
  },
  perform: (tx, context, { onLatestDate, ...request }) => voidDocument(tx, { ...context, onLatestDate }, request),
  committed: () => failpoint('void.committed'),
  sends: ({ number }) => [number],
  amounts: ({ before }, { number }) => amountsIn(before, [number], 'amount'),
  report: ({ input: { number } }, _context, tx) =>
    reportDocument(tx, number, ({ purpose }) => ({
      text: `${number} is void.${purpose === 'month' ? ' Its rows are unbilled until its replacement is issued.' : ''}`,
      remedies: purpose === 'month' ? [toDo('Issue it', 'invoice.rerun', { number })] : [],
    })),
});
