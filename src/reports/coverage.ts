/**
 * Coverage: partner × closed month; each cell has its documents, no activity, or a gap (rows without a live document).
 */
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
  /** Those of these months whose books are open: payments and corrections can still be dated in them. */
  readonly books_open: readonly Month[];
}

/** Which months to read, those closed by a date (`YYYY-MM-DD`, in the issuer's zone) or all, and for which partners. */
interface CoverageQuestion {
  readonly asOf: string | undefined;
  readonly scope?: Scope;
}

/**
 * The rows that each closed month bills. A month's first documents bill all of its rows, and its close counted these:
 * if both counts agree no rows are read; if a document is missing, its month's rows show whose it was. Inside a WITH.
 */
const BILLED = `months AS (
       SELECT month, previous, entries FROM closed_months
       WHERE :asOf::date IS NULL OR issued_on <= :asOf::date
     ), whole AS MATERIALIZED (
       SELECT m.month::text FROM months m LEFT JOIN (
         SELECT month, sum(entries) AS entries FROM documents
         WHERE purpose = 'month' AND replaces IS NULL GROUP BY month) AS d USING (month)
       WHERE m.entries = coalesce(d.entries, 0)
     ), billed AS (
       SELECT d.month::text, d.partner_id, d.currency, d.arrangement, d.entries FROM documents d
       WHERE d.purpose = 'month' AND d.replaces IS NULL AND d.month IN (SELECT month FROM whole)
         AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
       UNION ALL
       SELECT m.month::text, e.partner_id, e.currency, e.arrangement, e.entries
       FROM (SELECT * FROM months WHERE month NOT IN (SELECT month FROM whole)) AS m
       CROSS JOIN LATERAL (
         SELECT partner_id, currency, arrangement, count(*) AS entries FROM ledger_rows
         WHERE posted_month > coalesce(m.previous, '') AND posted_month <= m.month
           AND (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
         GROUP BY partner_id, currency, arrangement) AS e
     )`;

/** What bills a group of `billed` AS b. */
const DOCUMENT = `d.purpose = 'month' AND d.month = b.month AND d.partner_id = b.partner_id AND d.currency = b.currency
         AND d.arrangement = b.arrangement`;

export async function readCoverage(tx: Transaction, { asOf, scope = null }: CoverageQuestion): Promise<Coverage> {
  const months = await query<{ month: Month }>(
    tx,
    `SELECT month FROM closed_months WHERE :asOf::date IS NULL OR issued_on <= :asOf::date ORDER BY month`,
    { asOf: asOf ?? null },
  );
  const covered = await query<CoverageCell & { partner_id: string }>(
    tx,
    `WITH ${BILLED}
     SELECT p.partner_id, b.month, sum(b.entries)::bigint AS entries,
            CASE WHEN bool_and(d.number IS NOT NULL) THEN 'document' WHEN b.month IS NOT NULL THEN 'gap' END AS state,
            coalesce(array_agg(d.number ORDER BY d.series, d.sequence) FILTER (WHERE d.number IS NOT NULL),
              '{}') AS documents
     FROM partners p LEFT JOIN billed b USING (partner_id) LEFT JOIN live_documents d ON ${DOCUMENT}
     WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
     GROUP BY p.partner_id, b.month ORDER BY p.partner_id`,
    { asOf: asOf ?? null, scope },
  );
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

/** One for each month. */
function cellsOf(months: readonly { month: Month }[], covered: readonly CoverageCell[]): CoverageCell[] {
  const known = new Map(covered.map(({ month, state, documents, entries }) => [month, { state, documents, entries }]));
  return months.map(({ month }) => ({
    month,
    ...(known.get(month) ?? { state: 'no_activity', documents: [], entries: 0 }),
  }));
}

async function openAmong(tx: Transaction, months: readonly { month: Month }[]): Promise<Month[]> {
  const closedTo = await readLastClosedBooks(tx);
  return months.map(({ month }) => month).filter((month) => closedTo === null || month > closedTo);
}

/** How many gaps each of these partners has; those without gaps are left out. */
export function readGaps(
  tx: Transaction,
  { asOf, scope = null }: CoverageQuestion,
): Promise<{ partner_id: string; gaps: number }[]> {
  return query(
    tx,
    `WITH ${BILLED}
     SELECT b.partner_id, count(DISTINCT b.month) AS gaps
     FROM billed b WHERE NOT EXISTS (SELECT FROM live_documents d WHERE ${DOCUMENT})
     GROUP BY b.partner_id ORDER BY b.partner_id`,
    { asOf: asOf ?? null, scope },
  );
}
