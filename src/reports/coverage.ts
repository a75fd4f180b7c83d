/** Coverage: partner × closed month, each cell its documents, no activity, or a gap: rows without a live document. */
import { query, type Transaction } from '../database/transaction.ts';
import { readLastClosedBooks } from '../ledger/closed-months.ts';
import type { Month } from '../month.ts';
import type { Scope } from '../people/scope.ts';

export interface CoverageCell {
  readonly month: Month;
  readonly state: 'document' | 'no_activity' | 'gap';
  /** Numbers of the live documents, in number order. */
  readonly documents: readonly string[];
  /** Ledger rows that the month bills to the partner. */
  readonly entries: number;
}

export interface Coverage {
  readonly months: readonly Month[];
  readonly partners: readonly { readonly partner_id: string; readonly cells: readonly CoverageCell[] }[];
  readonly gaps: number;
  /** Of these months, those whose books are open: payments and corrections can still be dated in them. */
  readonly books_open: readonly Month[];
}

/** Of all months closed by a date (`YYYY-MM-DD`, in the issuer's zone), or of all closed months. */
export async function readCoverage(tx: Transaction, asOf: string | undefined, scope: Scope = null): Promise<Coverage> {
  const cells = await query<CoverageCell & { partner_id: string }>(
    tx,
    `WITH months AS (
       SELECT month, previous FROM closed_months
       WHERE :asOf::date IS NULL OR issued_on <= :asOf::date
     ), billed AS (
       SELECT m.month, e.partner_id, e.currency, e.arrangement, count(*) AS entries
       FROM ledger_rows e
       JOIN months m ON m.month = greatest(e.posted_month, (SELECT min(month) FROM closed_months))
       GROUP BY m.month, e.partner_id, e.currency, e.arrangement
     ), covered AS (
       SELECT b.month, b.partner_id, sum(b.entries) AS entries, bool_and(d.number IS NOT NULL) AS complete,
              array_agg(d.number ORDER BY d.series, d.sequence) FILTER (WHERE d.number IS NOT NULL) AS documents
       FROM billed b
       LEFT JOIN live_documents d ON d.purpose = 'month' AND d.month = b.month AND d.partner_id = b.partner_id
         AND d.currency = b.currency AND d.arrangement = b.arrangement
       GROUP BY b.month, b.partner_id
     )
     SELECT p.partner_id, m.month::text AS month, coalesce(c.entries, 0)::bigint AS entries,
            coalesce(c.documents, '{}') AS documents,
            CASE WHEN c.partner_id IS NULL THEN 'no_activity' WHEN c.complete THEN 'document' ELSE 'gap' END AS state
     FROM partners p CROSS JOIN months m
     LEFT JOIN covered c ON c.partner_id = p.partner_id AND c.month = m.month
     WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
     ORDER BY p.partner_id, m.month`,
    { asOf: asOf ?? null, scope },
  );
  const partners = new Map<string, CoverageCell[]>();
  for (const { partner_id, ...cell } of cells) {
    const own = partners.get(partner_id);
    if (own) own.push(cell);
    else partners.set(partner_id, [cell]);
  }
  const closedTo = await readLastClosedBooks(tx);
  const months = [...new Set(cells.map((cell) => cell.month))];
  return {
    months,
    partners: [...partners].map(([partner_id, own]) => ({ partner_id, cells: own })),
    gaps: cells.filter((cell) => cell.state === 'gap').length,
    books_open: months.filter((month) => closedTo === null || month > closedTo),
  };
}
