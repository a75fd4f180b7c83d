import type { Sheet } from '../sheet.ts';
import type { ListedExport } from './exports.sql.ts';
import { externalId } from './files.ts';

export const glListSheet = (exports: readonly ListedExport[]): Sheet => ({
  name: 'General ledger',
  columns: {
    ...({ month: 'text', format: 'text', part: 'count', kind: 'text', state: 'text', currency: 'text' } as const),
    ...({
      debit: 'amount',
      external_id: 'text',
      recorded_at: 'text',
      by: 'text',
      files: 'text',
      checkpoint: 'text',
    } as const),
  },
  rows: exports.flatMap(({ totals, files, login, ...each }) =>
    totals.map(({ currency, debit }) => ({
      ...each,
      ...{ currency, debit, by: login, external_id: externalId(each, currency) },
      files: files.map(({ name }) => name).join(' '),
    })),
  ),
});
