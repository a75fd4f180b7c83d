/** Reading the ledger back as a bookkeeper would, and writing the same rows as NDJSON or as CSV. */
import type { ImportReport } from '../../src/ledger/import.ts';
import { ROW_FIELDS } from '../../src/ledger/row.ts';
import type { World } from '../support/world.ts';

export type Row = Record<string, unknown>;

export interface Entry {
  readonly partner_id: string;
  readonly kind: string;
  readonly quote_id: string;
  readonly requote_id: string | null;
  readonly reversal_id: string | null;
  readonly enrollment_id: string | null;
  readonly policy_id: string;
  readonly currency: string;
  /** In UTC with all six fractional digits. */
  readonly accepted_at: string;
  readonly spot_price: string;
  readonly partner_cut: string;
  readonly invoice_amount: string;
  readonly time_zone: string;
  readonly month: string;
  readonly posted_month: string;
  readonly arrangement: string;
}

/** All rows, or those of one quote, in the order in which they were recorded. */
export function ledger(world: World, quoteId?: unknown): Promise<Entry[]> {
  return world.sql<Entry>(
    `SELECT partner_id, kind, quote_id, requote_id, reversal_id, enrollment_id, policy_id, currency,
            to_char(accepted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS accepted_at,
            spot_price::text, partner_cut::text, invoice_amount::text, time_zone, month, posted_month, arrangement
     FROM ledger_rows WHERE $1::text IS NULL OR quote_id = $1 ORDER BY entry_id`,
    [quoteId ?? null],
  );
}

/** How many rows the ledger has. */
export async function size(world: World): Promise<number> {
  const [counted] = await world.sql<{ rows: string }>('SELECT count(*) AS rows FROM ledger_rows');
  return Number(counted?.rows);
}

export const HEADER = ROW_FIELDS.join(',');

/** A row as a line of CSV under HEADER. */
export const csvLine = (row: Row): string => ROW_FIELDS.map((field) => row[field] ?? '').join(',');

export const csv = (...rows: readonly Row[]): string => [HEADER, ...rows.map(csvLine), ''].join('\n');

export const ndjson = (...rows: readonly Row[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

/** The report's errors as `line field code`, in its order. */
export const told = (report: ImportReport): string[] =>
  report.errors.map(({ line, field, code }) => `${line} ${field} ${code}`);

export const RECORDED_NOTHING = { accepted: 0, late: 0, refused: true };
