/** SQL of archived months (migrations/016_archive.sql). */
import { asTableOwner } from '#database/grants';
import { LOCKS, takeLock } from '#database/locks';
import {
  execute,
  executing,
  query,
  querying,
  queryingColumn,
  queryingValue,
  queryOne,
  Transaction,
} from '#database/transaction';
import { GROUP_AMOUNTS, GROUP_COLUMNS, GROUP_TIMES, groupsOf } from '#ledger/row-groups.sql';
import { saleKind } from '#ledger/running-lines.sql';
import { ColdMonth } from '#log/derive';
import { NumberRange, time } from '#log/lines.sql';
import { Month } from '#month';

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

/** Posting months, numbers in the log, and partners; absent means all. */
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
    `SELECT f.*, a.store
     FROM archived_files f JOIN archived_months a USING (month) JOIN archived_postings p USING (month)
     WHERE f.month >= coalesce(:from, '') AND p.after < coalesce(:to, '9999-12')
       AND (:after::bigint IS NULL OR a.last_no > :after AND a.first_no <= :upTo)
       AND (:partnerIds::text[] IS NULL OR EXISTS (
         SELECT FROM unnest(:partnerIds::text[]) AS p (id)
         WHERE p.id COLLATE "C" BETWEEN f.partner_from AND f.partner_to))
     ORDER BY f.month, f.name`,
    {
      ...{ from: from ?? null, to: to ?? null, partnerIds: partnerIds ?? null },
      ...{ after: numbers?.after ?? null, upTo: numbers?.to ?? null },
    },
  );

/**
 * Keeps the archives as they are until the transaction ends, if each of its statements has its own snapshot.
 */
export const keepArchives = executing(`
  SELECT pg_advisory_xact_lock_shared(${LOCKS.archives})
  WHERE current_setting('transaction_isolation') = 'read committed'`);

export const readColdMonths = querying<ColdMonth>(
  'SELECT month, store, first_no, last_no FROM archived_months ORDER BY month',
);

/** The rows of a scope that closes of archived months counted. */
export async function countArchived(tx: Transaction, { partnerIds, from, to }: RowScope) {
  const { entries } = await queryOne<{ entries: number }>(
    tx,
    `SELECT coalesce(sum(m.entries), 0)::bigint AS entries
     FROM month_partners m JOIN archived_postings p USING (month)
     WHERE (:partnerIds::text[] IS NULL OR m.partner_id = ANY (:partnerIds))
       AND month >= coalesce(:from, '') AND p.after < coalesce(:to, '9')`,
    { partnerIds: partnerIds ?? null, from: from ?? null, to: to ?? null },
  );
  return entries;
}

/** What a close stated of a partner's rows of a month: their number, and the values of its facts, with spaces between. */
export type Stated = Readonly<{ month: Month; partner_id: string; entries: number; lines: readonly string[] }>;

/** What the closes stated of months and partners. */
export const readStated = (
  tx: Transaction,
  months: readonly Month[],
  partnerIds: RowScope['partnerIds'],
): Promise<Stated[]> =>
  query(
    tx,
    `SELECT month, partner_id, sum(entries)::bigint AS entries,
            array_agg(concat_ws(' ', month, partner_id, currency, arrangement, entries, trim_scale(spot_price),
                                trim_scale(partner_cut), trim_scale(invoice_amount),
                                ${time('last_accepted_at')}, root)) AS lines
     FROM month_partners
     WHERE month = ANY (:months) AND (:partnerIds::text[] IS NULL OR partner_id = ANY (:partnerIds))
     GROUP BY month, partner_id`,
    { months, partnerIds: partnerIds ?? null },
  );

/** Makes the tables for copies in a session that has none. */
export const openArchive = executing('SELECT open_archive()');

/** Whether this session has the tables for copies. */
export const hasTable = queryingValue<boolean>(`SELECT to_regclass('pg_temp.archived_rows') IS NOT NULL`);

/** Lines of a partner and an id of a quote, requote or reversal. Only well-formed rows have such ids. */
export const STAGED_IDS = `
  SELECT s.partner_id, i.id FROM staged s
  CROSS JOIN LATERAL (VALUES (s.quote_id), (s.requote_id), (s.reversal_id)) AS i (id)
  WHERE s.code IS NULL AND i.id IS NOT NULL`;

/** Lines of a partner and a day of the sales that are staged for archived months, with the days around it. */
export const STAGED_DAYS = `
  SELECT DISTINCT s.partner_id, to_char(s.accepted_at + each * interval '1 day', 'YYYY-MM-DD')
  FROM staged s CROSS JOIN generate_series(-1, 1) AS each
  WHERE s.code IS NULL
    AND s.accepted_at < (SELECT (max(month) || '-01')::date + interval '1 month 2 days' FROM archived_months)`;

/** Rows of archived months `p` that are in the database. */
const STAYED = `archived_postings p
  JOIN ONLY ledger_rows e ON e.posted_month > p.after AND e.posted_month <= p.month`;

/** Lines of a partner and a quote of the copied rows, and of a month's rows that stayed. */
export const quotesOf = (month: Month) => `
  SELECT partner_id, quote_id FROM pg_temp.archived_rows
  UNION SELECT e.partner_id, e.quote_id FROM ${STAYED}
  WHERE p.month = '${month}'`;

/** The partners that rows are staged for. */
export const readStagedPartners = queryingColumn<string>('SELECT DISTINCT partner_id FROM staged WHERE code IS NULL');

export const copyInto = (columns: readonly string[]) => `COPY pg_temp.archived_rows (${columns.join(', ')}) FROM STDIN`;

const listed = (months: readonly Month[]) => months.map((month) => `'${month}'`).join(', ');

const IN_ARCHIVES = 'e.posted_month IN (SELECT posted_month FROM archived_posting_months)';

/** The partners, numbers and leaves of rows of archived months that are in the database, too. */
export const presentLeaves = (months: readonly Month[]) => `
  SELECT e.partner_id, concat_ws(' ', e.entry_id, encode(row_leaf(e), 'hex'))
  FROM ${STAYED} WHERE p.month IN (${listed(months)})`;

/** Lines of a partner and a number of the archived rows that other facts name. */
export const NUMBER_LINES = `
  SELECT e.partner_id, e.entry_id
  FROM (SELECT partner_id, posted_month, entry_id FROM share_allocations
        UNION SELECT partner_id, posted_month, entry_id FROM reversal_evidence
        UNION SELECT partner_id, posted_month, entry_id FROM quote_acceptances
        UNION SELECT partner_id, posted_month, entry_id FROM requote_acceptances) AS e
  WHERE ${IN_ARCHIVES}`;

/**
 * Lines of a partner and a quote that other facts or rows outside of the archive name, if its sale is not in the
 * database.
 */
export const QUOTE_LINES = `
  SELECT DISTINCT n.partner_id, n.quote_id
  FROM (SELECT partner_id, quote_id FROM missing_shares
        UNION ALL SELECT h.partner_id, h.quote_id FROM held_rows h LEFT JOIN held_row_decisions d USING (held_row_id)
        WHERE h.kind <> 'quote_accepted' OR d.decision = 'recorded'
        UNION ALL SELECT partner_id, repeats FROM held_rows WHERE kind = 'quote_accepted' AND repeats IS NOT NULL
        UNION ALL SELECT partner_id, quote_id FROM ONLY ledger_rows e
        WHERE e.kind <> 'quote_accepted' AND (e.kind <> 'reversal' OR NOT ${IN_ARCHIVES})) AS n
  WHERE NOT EXISTS (SELECT FROM ONLY ledger_rows s
                    WHERE s.partner_id = n.partner_id AND s.kind = 'quote_accepted' AND own_id(s) = n.quote_id)`;

/** Lines of a partner and a quote of each row in the database. */
export const HOT_LINES = 'SELECT partner_id, quote_id FROM ONLY ledger_rows';

/** Whether facts name rows or quotes that may be archived. */
export const namesArchived = queryingValue<boolean>(`SELECT EXISTS (${NUMBER_LINES}) OR EXISTS (${QUOTE_LINES})`);

const among = (names: readonly string[], name: string) => names.includes(name);
const groupText = (name: string) =>
  among(GROUP_TIMES, name) ? time(name) : among(GROUP_AMOUNTS, name) ? `trim_scale(${name})` : name;
/** The partners and groups of months, for `otherGroups`. */
export const storedGroups = (months: readonly Month[]) => `
  SELECT partner_id, concat_ws(' ', posted_month, partner_id, policy_id, kind,
    ${GROUP_COLUMNS.map(groupText).join(', ')})
  FROM archived_groups g
  WHERE EXISTS (SELECT FROM archived_postings p WHERE p.month IN (${listed(months)})
                  AND g.posted_month > p.after AND g.posted_month <= p.month)`;

/** Removes from the copies those that are there twice. */
export const keepOneCopy = executing(`
  DELETE FROM pg_temp.archived_rows a USING pg_temp.archived_rows b
  WHERE (a.partner_id, a.posted_month, a.entry_id) = (b.partner_id, b.posted_month, b.entry_id) AND a.ctid > b.ctid`);

/** Removes from the copies the rows that ledger_rows has, and describes the others to the planner. */
export async function keepOnlyMoved(tx: Transaction) {
  await execute(
    tx,
    `DELETE FROM pg_temp.archived_rows a USING ONLY ledger_rows r
     WHERE (r.partner_id, r.posted_month, r.entry_id) = (a.partner_id, a.posted_month, a.entry_id)`,
  );
  await describeCopies(tx);
}

/** Describes the copies to the planner. */
export const describeCopies = executing('SELECT analyze_archive()');

/** Keeps the months of archived sales that rows of an event reverse, for documents (ledger/running-lines.sql.ts). */
export const keepReversedSales = (tx: Transaction, eventId: number) =>
  execute(
    tx,
    `INSERT INTO archived_sales (partner_id, kind, own_id, month, posted_month)
     SELECT q.partner_id, q.kind, coalesce(q.requote_id, q.quote_id), q.month, q.posted_month
     FROM ledger_rows e
     JOIN pg_temp.archived_rows q ON q.partner_id = e.partner_id
       AND coalesce(q.requote_id, q.quote_id) = coalesce(e.requote_id, e.quote_id)
       AND q.kind = ${saleKind('e')}
     WHERE e.event_id = :eventId AND e.kind = 'reversal'
     ON CONFLICT DO NOTHING`,
    { eventId },
  );

/** The numbers of rows of a month's partners, by the facts of its close. */
export const readMonthPartners = querying<{ partner_id: string; entries: number }, { month: Month }>(
  'SELECT partner_id, entries FROM month_partners WHERE month = :month ORDER BY partner_id',
);

/** Whether a closed month is archived, or can be. */
export type MonthState = Readonly<{
  previous: Month | null;
  entries: number;
  /** The number of the close's first fact. */
  first: number;
  books_closed: boolean;
  /** How many months were closed after it. */
  later: number;
  /** Whether partners have the events of its rows. */
  published: boolean;
  /** Null if it is not archived. */
  store: string | null;
}>;

export const readMonthState = querying<MonthState, { month: Month }>(
  `SELECT m.previous, m.entries, m.log_no AS first,
            EXISTS (SELECT FROM book_closes b WHERE b.month = m.month) AS books_closed,
            (SELECT count(*) FROM closed_months l WHERE l.month > m.month) AS later,
            m.log_no <= (SELECT coalesce(max(log_no), 0) FROM published_marks) AS published,
            (SELECT store FROM archived_months a WHERE a.month = m.month) AS store
     FROM closed_months m WHERE m.month = :month`,
);

/** The rows of the billing month that are in the database. */
export const countPresent = queryingValue<number, Readonly<{ month: Month; previous: Month | null }>>(`
  SELECT count(*) AS entries FROM ONLY ledger_rows
  WHERE posted_month > coalesce(:previous, '') AND posted_month <= :month`);

/** Waits for transactions that have copies of archived rows, and keeps others from beginning until this one ends. */
export const lockArchives = (tx: Transaction) => takeLock(tx, LOCKS.archives);

/** Has the owner record a month's files and delete its rows. Returns the number of deleted rows. */
export async function moveMonth(
  tx: Transaction,
  given: {
    readonly month: Month;
    readonly store: string;
    /** Null for a preview. */
    readonly files: readonly ArchivedFile[] | null;
    readonly day: string;
    readonly now: string;
    readonly eventId: number;
  },
) {
  const files = given.files && JSON.stringify(given.files);
  const { month } = given;
  return asTableOwner(tx, async () => {
    await execute(
      tx,
      `INSERT INTO archived_groups ${groupsOf(`(
         SELECT e.* FROM closed_months m
         JOIN ONLY ledger_rows e ON e.posted_month > coalesce(m.previous, '') AND e.posted_month <= m.month
         WHERE m.month = :month AND NOT EXISTS (SELECT FROM archived_months a WHERE a.month = m.month)
           AND e.event_id IN (SELECT event_id FROM ledger_receipts))`)}`,
      { month },
    );
    const { moved } = await queryOne<{ moved: number }>(
      tx,
      `SELECT archive_month(:month, :store, :files::json, :day, :now, :eventId) AS moved`,
      { ...given, files },
    );
    return moved;
  });
}

/** Rows of a partner in a closed month, currency and arrangement, with the leaves of all its rows there. */
export type Tree = Readonly<{ month: string; currency: string; arrangement: string; rows: string; leaves: string }>;

/** Adds rows to their archived month, which are proved by the leaves of their tree (one after another). */
export const recallRows = (tx: Transaction, partnerId: string, { leaves, ...tree }: Tree) =>
  execute(
    tx,
    `SELECT recall_rows(:rows::json, :month, :partnerId, :currency, :arrangement, array(
       SELECT substring(l.leaves FROM 32 * n + 1 FOR 32)
       FROM (SELECT :leaves::bytea AS leaves) AS l, generate_series(0, length(l.leaves) / 32 - 1) AS n ORDER BY n))`,
    { partnerId, ...tree, leaves: Buffer.from(leaves, 'hex') },
  );

/** Has the owner insert the copies of a month's rows, and forget its files. */
export const returnMonth = (tx: Transaction, month: Month) =>
  asTableOwner(tx, () => execute(tx, `SELECT return_month(:month)`, { month }));
