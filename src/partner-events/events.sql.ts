/** SQL of partner events. */

import { columnsOf, execute, prepared, querying, queryingValue, queryOne, Transaction } from '#database/transaction';
import { ROW_FACTS, RowFacts } from '#ledger/row';
import { NumberRange } from '#log/lines.sql';

export type PageRow = Readonly<{
  installation_id: string;
  position: number;
  type: string;
  posted_month: string | null;
  entry_id: number | null;
  log_no: number | null;
}>;

type EventFilter = Readonly<{ partnerId: string; after: number; type: string | null; limit: number }>;

const EVENT_PAGE = prepared(
  'events.page',
  `SELECT i.installation_id, e.position, e.type, e.posted_month, e.entry_id, e.log_no
   FROM partner_events e CROSS JOIN installation i
   WHERE e.partner_id = :partnerId AND e.position > :after AND (:type::text IS NULL OR e.type = :type)
   ORDER BY e.position LIMIT :limit`,
);

export const readEventPage = querying<PageRow, EventFilter>(EVENT_PAGE);

export type LedgerEventRow = RowFacts &
  Readonly<{
    entry_id: number;
    month: string;
    posted_month: string;
    recorded_at: string;
    ground: string | null;
  }>;

/** The ledger rows of events. A row is found by its whole key, because the id alone has no index. */
export const readEventRows = querying<
  LedgerEventRow,
  { partnerId: string; months: readonly string[]; ids: readonly number[] }
>(`
  SELECT r.entry_id, ${columnsOf('r', ROW_FACTS)}, r.month, r.posted_month, r.recorded_at, g.ground
  FROM unnest(:months::text[], :ids::bigint[]) AS k (posted_month, entry_id)
  JOIN ledger_rows r ON r.partner_id = :partnerId AND r.posted_month = k.posted_month AND r.entry_id = k.entry_id
  LEFT JOIN reversal_grounds g ON g.partner_id = r.partner_id AND g.reversal_id = r.reversal_id`);

export type FactRow = Readonly<{
  log_no: number;
  recorded_at: string;
  data: Readonly<Record<string, unknown>>;
}>;

/** The facts of events. The numbers are passed as one list, so that every part of the view looks them up by index. */
export const readEventFacts = querying<FactRow, { ids: readonly number[] }>(
  `SELECT log_no, recorded_at, data FROM partner_event_facts WHERE log_no = ANY (:ids)`,
);

/** The position of a partner's last event; 0 before the first. */
export const readLastPosition = queryingValue<number, { partnerId: string }>(
  `SELECT coalesce(max(position), 0) AS last FROM partner_events WHERE partner_id = :partnerId`,
);

/** The position of a partner's last event whose row is only in an archive; 0 if there is none. */
export const readLastArchived = queryingValue<number, { partnerId: string }>(`
  SELECT coalesce(max(n.position), 0) AS last FROM partner_events n
  WHERE n.partner_id = :partnerId AND n.posted_month IN (SELECT posted_month FROM archived_posting_months)
    AND NOT EXISTS (SELECT FROM ledger_rows e WHERE e.partner_id = n.partner_id
                      AND e.posted_month = n.posted_month AND e.entry_id = n.entry_id)`);

/** Locks the mark of publishing, and returns the number up to which everything is published. */
export async function lockPublished(tx: Transaction) {
  await execute(tx, `INSERT INTO published_marks (log_no) VALUES (0) ON CONFLICT (only_one) DO NOTHING`);
  const { log_no } = await queryOne<{ log_no: number }>(tx, `SELECT log_no FROM published_marks FOR UPDATE`);
  return log_no;
}

/** Indexes the rows and facts of a range, and moves the mark. */
export async function indexEvents(tx: Transaction, range: NumberRange) {
  await execute(tx, INDEX_EVENTS, { ...range });
  await execute(tx, `UPDATE published_marks SET log_no = :to`, { to: range.to });
}

const INDEX_EVENTS = `
  WITH found AS MATERIALIZED (
    SELECT partner_id, row_event_type(kind) AS type, posted_month, entry_id, NULL::bigint AS log_no
    FROM ledger_rows WHERE entry_id > :after AND entry_id <= :to
    UNION ALL
    SELECT partner_id, type, NULL, NULL, log_no
    FROM partner_event_facts WHERE log_no > :after AND log_no <= :to
  ), partners_found AS (
    SELECT p.partner_id,
           coalesce((SELECT max(position) FROM partner_events e WHERE e.partner_id = p.partner_id), 0) AS last
    FROM (SELECT DISTINCT partner_id FROM found) AS p
  )
  INSERT INTO partner_events (partner_id, position, type, posted_month, entry_id, log_no)
  SELECT f.partner_id, p.last + row_number() OVER (PARTITION BY f.partner_id ORDER BY coalesce(f.entry_id, f.log_no)),
         f.type, f.posted_month, f.entry_id, f.log_no
  FROM found f JOIN partners_found p USING (partner_id)
  ORDER BY coalesce(f.entry_id, f.log_no)`;
