/**
 * Coverage by partner and closed month. A cell contains the documents, or states that there was no activity, or that
 * there is a gap (rows without a live document).
 */
import { Transaction } from '#database/transaction';
import { readLastClosedBooks } from '#ledger/closed-months.sql';
import { Month } from '#month';
import { CoverageCell, CoverageQuestion, readCells, readClosedMonths } from './coverage.sql.ts';

export type Coverage = Readonly<{
  months: readonly Month[];
  partners: readonly Readonly<{ partner_id: string; cells: readonly CoverageCell[] }>[];
  gaps: number;
  /** The months whose books are open, so that payments and corrections can still be dated in them. */
  books_open: readonly Month[];
}>;

export async function readCoverage(tx: Transaction, { asOf, scope = null }: CoverageQuestion): Promise<Coverage> {
  const months = await readClosedMonths(tx, { asOf: asOf ?? null });
  const covered = await readCells(tx, { asOf: asOf ?? null, scope });
  const cells = new Map<string, CoverageCell[]>();
  for (const { partner_id, ...cell } of covered) {
    const own = cells.get(partner_id);
    if (own) own.push(cell);
    else cells.set(partner_id, [cell]);
  }
  const partners = [...cells].map(([partner_id, own]) => ({ partner_id, cells: cellsOf(months, own) }));
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
