/** The exports for the general ledger, with their state by each month's closed books. */
import { query, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { Sheet } from '../sheet.ts';
import type { GlExport } from './exports.sql.ts';
import { externalId } from './files.ts';

/** An export as `gl list` shows it. */
export interface ListedExport extends GlExport {
  readonly login: string | null;
  /**
   * The state of a month's parts in a format together: `final` matches the month's closed books, `preliminary` waits
   * for them, and `outdated` no longer matches them.
   */
  readonly state: 'final' | 'preliminary' | 'outdated';
  readonly totals: readonly { readonly currency: string; readonly debit: string }[];
  readonly files: readonly { readonly name: string; readonly sha256: string; readonly bytes: number }[];
}

/** The latest exports, newest month first; for one month if given. */
export function readExports(
  tx: Transaction,
  { month = null, limit }: { month?: Month | null | undefined; limit: number },
): Promise<ListedExport[]> {
  return query(
    tx,
    `WITH shown AS (
       SELECT * FROM gl_exports WHERE :month::text IS NULL OR month = :month
       ORDER BY month DESC, format, part DESC LIMIT :limit
     )
     SELECT s.gl_export_id, s.month, s.format, s.part, s.kind, s.seal, s.books_closed, s.recorded_at,
            coalesce(u.login, a.claimed_by) AS login,
            states.state, coalesce(t.totals, '[]') AS totals, coalesce(f.files, '[]') AS files
     FROM shown s JOIN audit_events a USING (event_id) LEFT JOIN users u USING (user_id)
     JOIN gl_export_states states ON (states.month, states.format) = (s.month, s.format)
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('currency', currency, 'debit', debit::text) ORDER BY currency) AS totals
       FROM (SELECT currency, sum(greatest(amount, 0)) AS debit
             FROM (SELECT currency, sum(amount) AS amount FROM gl_export_lines l
                   WHERE l.gl_export_id = s.gl_export_id
                   GROUP BY currency, to_account, class, location, name, memo) AS written
             GROUP BY currency) AS sums) AS t
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('name', name, 'sha256', sha256, 'bytes', length(content)) ORDER BY position)
         AS files
       FROM gl_export_files f WHERE f.gl_export_id = s.gl_export_id) AS f
     ORDER BY s.month DESC, s.format, s.part DESC`,
    { month, limit },
  );
}

/** A line for each currency of each export. */
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
      seal: 'text',
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

/** Months with closed books and something to export that were never exported, latest first. */
export async function readUnexported(tx: Transaction, { limit }: { limit: number }): Promise<Month[]> {
  const months = await query<{ month: Month }>(
    tx,
    `SELECT month FROM gl_unexported_months ORDER BY month DESC LIMIT :limit`,
    { limit },
  );
  return months.map(({ month }) => month);
}
