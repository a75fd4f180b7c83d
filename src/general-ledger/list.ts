import { columnsOf, Sheet } from '#sheet';
import { ListedExport } from './exports.sql.ts';
import { externalId } from './files.ts';

export const glListSheet = (exports: readonly ListedExport[]): Sheet => ({
  name: 'General ledger',
  columns: columnsOf(
    'month format part:count kind state currency debit:amount external_id recorded_at by files checkpoint',
  ),
  rows: exports.flatMap(({ totals, files, login, ...each }) =>
    totals.map(({ currency, debit }) => ({
      ...each,
      ...{ currency, debit, by: login, external_id: externalId(each, currency) },
      files: files.map(({ name }) => name).join(' '),
    })),
  ),
});
