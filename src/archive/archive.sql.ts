/** SQL of archived months (migrations/016_archive.sql). */
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { NumberRange } from '../log/lines.sql.ts';
import type { Month } from '../month.ts';

/** A file of a month in a store, with all rows of the partners from the first to the last. */
export type ArchivedFile = Readonly<{
  name: string;
  sha256: string;
  bytes: number;
  entries: number;
  partner_from: string;
  partner_to: string;
}>;

export interface StoredFile extends ArchivedFile {
  readonly month: Month;
  readonly store: string;
}

/** Billing months, numbers in the log, and partners; absent means all. */
export type RowScope = Readonly<{
  from?: Month | undefined;
  to?: Month | undefined;
  numbers?: NumberRange | undefined;
  partnerIds?: readonly string[] | undefined;
}>;

/** The files that have archived rows of these months and partners. */
export const readStoredFiles = (tx: Transaction, { from, to, numbers, partnerIds }: RowScope): Promise<StoredFile[]> =>
  query(
    tx,
    `SELECT f.*, a.store FROM archived_files f JOIN archived_months a USING (month)
     WHERE f.month >= coalesce(:from::text, '') AND f.month <= coalesce(:to::text, '9999-12')
       AND (:after::bigint IS NULL OR a.last_no > :after::bigint AND a.first_no <= :upTo::bigint)
       AND (:partnerIds::text[] IS NULL OR EXISTS (
         SELECT FROM unnest(:partnerIds::text[]) AS p (id)
         WHERE p.id COLLATE "C" BETWEEN f.partner_from AND f.partner_to))
     ORDER BY f.month, f.name`,
    {
      ...{ from: from ?? null, to: to ?? null, partnerIds: partnerIds ?? null },
      ...{ after: numbers?.after ?? null, upTo: numbers?.to ?? null },
    },
  );

/** A value that changes whenever a month is archived or brought back. */
export async function readArchiveState(tx: Transaction): Promise<string> {
  const { state } = await queryOne<{ state: string }>(
    tx,
    `SELECT concat_ws(' ', count(*), max(event_id)) AS state FROM archived_months`,
  );
  return state;
}

export const readPartnerIds = async (tx: Transaction): Promise<string[]> =>
  (await query<{ partner_id: string }>(tx, 'SELECT partner_id FROM partners')).map(({ partner_id }) => partner_id);

/** The number of rows that these archived months have of these partners. */
export async function countArchived(
  tx: Transaction,
  months: readonly Month[],
  { partnerIds }: RowScope,
): Promise<number> {
  const { entries } = await queryOne<{ entries: number }>(
    tx,
    `SELECT coalesce(sum(entries), 0)::bigint AS entries FROM month_partners
     WHERE month = ANY (:months::text[]) AND (:partnerIds::text[] IS NULL OR partner_id = ANY (:partnerIds::text[]))`,
    { months, partnerIds: partnerIds ?? null },
  );
  return entries;
}

/** Makes the table for copies of rows in this session, unless it has one. */
export const openArchive = (tx: Transaction): Promise<number> =>
  execute(tx, `SELECT open_archive() WHERE to_regclass('pg_temp.archived_rows') IS NULL`);

/** Lines of a partner and an id of a quote, requote or reversal. Only well-formed rows have such ids. */
export const STAGED_IDS = `COPY (
  SELECT s.partner_id, i.id FROM staged s
  CROSS JOIN LATERAL (VALUES (s.quote_id), (s.requote_id), (s.reversal_id)) AS i (id)
  WHERE s.code IS NULL AND i.id IS NOT NULL) TO STDOUT`;

export const copyInto = (columns: readonly string[]): string =>
  `COPY pg_temp.archived_rows (${columns.join(', ')}) FROM STDIN`;

/** Removes from `archived_rows` the rows that ledger_rows has, and describes the others to the planner. */
export async function keepOnlyMoved(tx: Transaction): Promise<void> {
  await execute(
    tx,
    `DELETE FROM pg_temp.archived_rows a USING ONLY ledger_rows r
     WHERE (r.partner_id, r.posted_month, r.entry_id) = (a.partner_id, a.posted_month, a.entry_id)`,
  );
  await execute(tx, 'SELECT analyze_archive()');
}

/** The numbers of rows of a month's partners, by the facts of its close. */
export const readMonthPartners = (tx: Transaction, month: Month): Promise<{ partner_id: string; entries: number }[]> =>
  query(tx, `SELECT partner_id, entries FROM month_partners WHERE month = :month ORDER BY partner_id`, { month });

/** Whether a closed month is archived, or can be. */
export type MonthState = Readonly<{
  previous: Month | null;
  entries: number;
  /** The number of the close's first fact. */
  first: number;
  books_closed: boolean;
  /** How many months were closed after it. */
  later: number;
  /** Null if it is not archived. */
  store: string | null;
}>;

export const readMonthState = (tx: Transaction, month: Month): Promise<MonthState[]> =>
  query(
    tx,
    `SELECT m.previous, m.entries, m.log_no AS first,
            EXISTS (SELECT FROM book_closes b WHERE b.month = m.month) AS books_closed,
            (SELECT count(*) FROM closed_months l WHERE l.month > m.month) AS later,
            (SELECT store FROM archived_months a WHERE a.month = m.month) AS store
     FROM closed_months m WHERE m.month = :month`,
    { month },
  );

/** The rows of the billing month that are in the database. */
export async function countPresent(tx: Transaction, month: Month, previous: Month | null): Promise<number> {
  const { entries } = await queryOne<{ entries: number }>(
    tx,
    `SELECT count(*) AS entries FROM ONLY ledger_rows
     WHERE posted_month > coalesce(:previous::text, '') AND posted_month <= :month`,
    { month, previous },
  );
  return entries;
}

export async function moveMonth(
  tx: Transaction,
  given: {
    readonly month: Month;
    readonly store: string;
    readonly files: readonly ArchivedFile[];
    readonly day: string;
    readonly now: string;
    readonly eventId: number;
  },
): Promise<number> {
  const { moved } = await queryOne<{ moved: number }>(
    tx,
    `SELECT archive_month(:month, :store, :files::json, :day::date, :now::timestamptz, :eventId::bigint) AS moved`,
    { ...given, files: JSON.stringify(given.files) },
  );
  return moved;
}

export const returnMonth = (tx: Transaction, month: Month): Promise<number> =>
  execute(tx, `SELECT return_month(:month)`, { month });
