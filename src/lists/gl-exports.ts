/** Journals exported to the general ledger, and months that wait: `reckoner gl list`, and the console's *General ledger*. */
import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { ListedExport, readExports, readUnexported } from '#general-ledger/exports.sql';
import { externalId } from '#general-ledger/files';
import { isInPeriod } from '#people/scope';
import { toDo } from '#remedy';
import { Month, names } from '#values';
import { defineList, ListQuery, Mark, month, pageOf } from './list.ts';

/** A journal in a currency. A month that waits has only its state. */
type Row = Partial<Omit<ListedExport, 'month' | 'state'>> &
  Readonly<{
    key: string;
    month: Month;
    state: ListedExport['state'] | 'missing';
    currency?: string;
    debit?: string;
    external_id?: string;
    is_first: boolean;
    of?: ListedExport;
  }>;

const filters = z.strictObject({ month: month('Month', 'Only this month.').optional() });
type Asked = ListQuery<z.output<typeof filters>>;

/** More than a ledger has. */
const MOST = 1_000_000;

/** The files of an export have all currencies, so only its first row has them. */
const rowsOf = (of: ListedExport): Row[] =>
  of.totals.map(({ currency, debit }, at) => ({
    ...{ ...of, of, currency, debit, external_id: externalId(of, currency), key: `${of.gl_export_id}-${currency}` },
    ...{ is_first: at === 0, files: at === 0 ? of.files : [] },
  }));

async function readRows(tx: Transaction, asked: Asked): Promise<Row[]> {
  const { month: only } = asked.filter;
  const waiting = (await readUnexported(tx, { limit: MOST })).filter((each) => only === undefined || each === only);
  const exported = await readExports(tx, { month: only, limit: MOST });
  const rows = [
    ...waiting.map((each): Row => ({ key: each, month: each, state: 'missing', is_first: true })),
    ...exported.flatMap(rowsOf),
  ];
  return pageOf(
    rows.filter((each) => isInPeriod(asked.period, each.month)),
    asked,
    ({ key }) => key,
  );
}

const STATES: Readonly<Record<Row['state'], Mark>> = {
  final: { text: 'final', tone: 'good' },
  preliminary: { text: 'preliminary', tone: 'warn' },
  outdated: { text: 'outdated', tone: 'bad' },
  missing: { text: 'not exported', tone: 'warn' },
};

export const glExports = defineList({
  command: 'gl list',
  summary: 'List exported journals, newest month first',
  most: 500,
  title: 'General ledger',
  one: 'journal',
  ofLedger: true,
  ofPeriod: true,
  none: 'No months have been exported for the general ledger.',
  filters,
  sorts: ['-month', '-month'],
  columns: {
    month: { type: 'month' },
    format: {},
    part: { type: 'count' },
    kind: {},
    state: { type: 'marks', value: ({ state }) => [STATES[state]] },
    currency: { heading: '', look: 'soft' },
    debit: { heading: 'Debits', type: 'amount', bare: true },
    external_id: {},
    recorded_at: { heading: 'Exported', type: 'instant' },
    login: { heading: 'By', cut: true },
    files: {
      cut: true,
      value: ({ gl_export_id: id, files = [] }) =>
        files.map(({ name }) => ({ text: name, page: `/console/reports/general-ledger/${id}/${name}` })),
    },
    checkpoint: {},
  },
  sheet: names('month format part kind state currency debit external_id recorded_at login files checkpoint'),
  terminal: names('month format part kind state debit currency recorded_at login files'),
  page: names('month format part kind state debit currency recorded_at login files'),
  remedies: ({ month: of, format, state, is_first }) =>
    is_first && (state === 'outdated' || state === 'missing')
      ? [{ ...toDo('Export', 'gl.export', { month: of, ...(format && { format }) }), partner: null }]
      : [],
  key: ({ key }) => key,
  keyed: 'text',
  read: readRows,
  /** Returns each export once. */
  json: async (_tx, rows) => [...new Set(rows.flatMap(({ of }) => of ?? []))],
});
