/**
 * Coverage by partner and closed month. A cell contains the documents, or states that there was no activity, or that
 * there is a gap (rows without a live document).
 */
import { Block, documentCell, partnerCell } from '#blocks';
import { Transaction } from '#database/transaction';
import { readLastClosedBooks } from '#ledger/closed-months.sql';
import { columnsOf, Sheet } from '#sheet';
import { Month, plural } from '#values';
import { CoverageCell, CoverageQuestion, readCells, readClosedMonths } from './coverage.sql.ts';

export type Coverage = Readonly<{
  months: readonly Month[];
  partners: readonly Readonly<{ partner_id: string; name: string; cells: readonly CoverageCell[] }>[];
  gaps: number;
  /** The months whose books are open, so that payments and corrections can still be dated in them. */
  books_open: readonly Month[];
}>;

export async function readCoverage(tx: Transaction, { asOf, scope = null }: CoverageQuestion): Promise<Coverage> {
  const months = await readClosedMonths(tx, { asOf: asOf ?? null });
  const covered = await readCells(tx, { asOf: asOf ?? null, scope });
  const rows = new Map<string, (typeof covered)[number][]>();
  for (const cell of covered) {
    const own = rows.get(cell.partner_id);
    if (own) own.push(cell);
    else rows.set(cell.partner_id, [cell]);
  }
  const partners = [...rows].map(([partner_id, own]) => ({
    ...{ partner_id, name: own[0]?.name ?? '', cells: cellsOf(months, own) },
  }));
  return {
    months: months.map(({ month }) => month),
    partners,
    gaps: partners.flatMap((each) => each.cells).filter(({ state }) => state === 'gap').length,
    books_open: await openAmong(tx, months),
  };
}

function cellsOf(months: readonly { month: Month }[], covered: readonly CoverageCell[]): CoverageCell[] {
  const known = new Map(covered.map(({ month, state, documents, entries }) => [month, { state, documents, entries }]));
  return months.map(({ month }) => ({
    month,
    ...(known.get(month) ?? { state: 'no_activity', documents: [], entries: 0 }),
  }));
}

async function openAmong(tx: Transaction, months: readonly { month: Month }[]) {
  const closedTo = await readLastClosedBooks(tx);
  return months.map(({ month }) => month).filter((month) => closedTo === null || month > closedTo);
}

const cellOf = (partner: string, { month, state, documents, entries }: CoverageCell) =>
  state === 'no_activity'
    ? '–'
    : [
        ...(state === 'gap'
          ? [{ text: `gap: ${plural(entries, 'row')}`, page: `/console/rows?partner=${partner}&month=${month}` }]
          : []),
        ...documents.map(documentCell),
      ];

/** The latest months, each with the documents of a partner. */
export const coverageBlocks = ({ months, partners }: Coverage, most: number): Block[] =>
  months.length === 0 || partners.length === 0
    ? []
    : [
        {
          title: `Documents by partner${months.length > most ? ` in the last ${most} months` : ''} (–: no activity)`,
          table: {
            headings: ['~partner', ...months.slice(-most)],
            rows: partners.map(({ partner_id, name, cells }) => [
              ...[partnerCell(partner_id, name), ...cells.slice(-most).map((cell) => cellOf(partner_id, cell))],
            ]),
          },
        },
      ];

export const coverageSheet = ({ partners }: Coverage): Sheet => ({
  name: 'Coverage',
  columns: columnsOf('partner_id month state documents entries:count'),
  rows: partners.flatMap(({ partner_id, cells }) =>
    cells.map((cell) => ({ ...cell, partner_id, documents: cell.documents.join(' ') })),
  ),
});
