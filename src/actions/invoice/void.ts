import { documentJson } from '../../documents/document.ts';
import { voidDocument } from '../../documents/void.ts';
import { failpoint } from '../../failpoint.ts';
import { toDo } from '../../remedy.ts';
import { defineAction } from '../action.ts';
import { amountsIn, deliver, documentNumbered, OF_DOCUMENT } from '../documents.ts';
import { documentNumber, onLatestDate, reason } from '../fields.ts';

export const invoiceVoid = defineAction({
  name: 'invoice.void',
  title: 'Void a document',
  command: { summary: 'Void a document as of today; its number is kept', arguments: { number: '<number>' } },
  role: 'finance',
  input: { number: documentNumber(), reason: reason(), onLatestDate: onLatestDate() },
  ...OF_DOCUMENT,
  perform: (tx, context, { onLatestDate, ...request }) => voidDocument(tx, { ...context, onLatestDate }, request),
  committed: () => failpoint('void.committed'),
  after: (context, { input }) => deliver(context, [input.number]),
  amounts: ({ before }, { number }) => amountsIn(before, [number], 'amount'),
  async report(tx, _context, { input: { number } }) {
    const document = await documentNumbered(tx, number);
    const isOfMonth = document.purpose === 'month';
    return {
      json: documentJson(document),
      text: `${number} is void.${isOfMonth ? ' Its rows are unbilled until its replacement is issued.' : ''}`,
      remedies: isOfMonth ? [toDo('Issue it', 'invoice.rerun', { number })] : [],
    };
  },
});
