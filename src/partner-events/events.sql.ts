import { LOCKS } from '../database/locks.ts';
import { execute, prepared, query, queryOne, type Transaction } from '../database/transaction.ts';

export interface PageRow {
  readonly installation_id: string;
  readonly position: number;
  readonly type: string;
  readonly posted_month: string | null;
  readonly entry_id: number | null;
  readonly fact_id: number | null;
}

export const readEventPage = (
  tx: Transaction,
  filter: { partnerId: string; after: number; type: string | null; limit: number },
): Promise<PageRow[]> => query(tx, EVENT_PAGE, { ...filter });

const EVENT_PAGE = prepared(
  'events.page',
  `SELECT i.installation_id, e.position, e.type, e.posted_month, e.entry_id, e.fact_id
   FROM partner_events e CROSS JOIN installation i
   WHERE e.partner_id = :partnerId AND e.position > :after::bigint AND (:type::text IS NULL OR e.type = :type::text)
   ORDER BY e.position LIMIT :limit`,
);

export interface LedgerEventRow {
  readonly entry_id: number;
  readonly quote_id: string;
  readonly requote_id: string | null;
  readonly reversal_id: string | null;
  readonly enrollment_id: string | null;
  readonly policy_id: string;
  readonly currency: string;
  readonly accepted_at: string;
  readonly month: string;
  readonly posted_month: string;
  readonly spot_price: string;
  readonly partner_cut: string;
  readonly invoice_amount: string;
  readonly recorded_at: string;
}

/** The ledger rows of events. A row is found by its whole key, because the id alone has no index. */
export const readEventRows = (
  tx: Transaction,
  keys: { partnerId: string; months: readonly string[]; ids: readonly number[] },
): Promise<LedgerEventRow[]> =>
  query(
    tx,
    `SELECT r.entry_id, r.quote_id, r.requote_id, r.reversal_id, r.enrollment_id, r.policy_id, r.currency,
            r.accepted_at, r.month, r.posted_month, r.spot_price, r.partner_cut, r.invoice_amount, r.recorded_at
     FROM unnest(:months::text[], :ids::bigint[]) AS k (posted_month, entry_id)
     JOIN ledger_rows r ON r.partner_id = :partnerId AND r.posted_month = k.posted_month AND r.entry_id = k.entry_id`,
    keys,
  );

export interface FactRow {
  readonly fact_id: number;
  readonly recorded_at: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The facts of events. The numbers are passed as one list, so that every part of the view looks them up by index. */
export const readEventFacts = (tx: Transaction, ids: readonly number[]): Promise<FactRow[]> =>
  query(tx, `SELECT fact_id, recorded_at, data FROM partner_event_facts WHERE fact_id = ANY (:ids::bigint[])`, { ids });

/** The position of a partner's last event; 0 before the first. */
export async function readLastPosition(tx: Transaction, partnerId: string): Promise<number> {
  const { last } = await queryOne<{ last: number }>(
    tx,
    `SELECT coalesce(max(position), 0) AS last FROM partner_events WHERE partner_id = :partnerId`,
    { partnerId },
  );
  return last;
}

/** The last ids of rows and facts to publish. */
export interface Marks {
  readonly entries: number;
  readonly facts: number;
}

/** The last assigned ids, and the transactions that may still commit an id up to these. */
export interface Cut extends Marks {
  readonly recorders: readonly string[];
}

/** Reads the cut in three statements. The rows are read after the facts, because a row is billed by a later fact. */
export async function readCut(tx: Transaction): Promise<Cut> {
  const { facts } = await queryOne<{ facts: number }>(tx, LAST_FACT);
  const { entries } = await queryOne<{ entries: number }>(tx, LAST_ENTRY);
  return { facts, entries, recorders: await readRecorders(tx) };
}

const LAST_FACT = prepared(
  'events.last_fact',
  `SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END AS facts FROM fact_numbers`,
);

const LAST_ENTRY = prepared(
  'events.last_entry',
  `SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END AS entries FROM ledger_rows_entry_id_seq`,
);

const keyOf = (lock: string) => lock.replaceAll('::integer', '');

const RECORDERS = prepared(
  'events.recorders',
  `SELECT virtualtransaction FROM pg_locks
   WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND pid IS DISTINCT FROM pg_backend_pid()
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND (classid::bigint, objid::bigint) = (${keyOf(LOCKS.ledger)})`,
);

export async function readRecorders(tx: Transaction): Promise<string[]> {
  const rows = await query<{ virtualtransaction: string }>(tx, RECORDERS);
  return rows.map(({ virtualtransaction: each }) => each);
}

export async function lockPublished(tx: Transaction): Promise<Marks> {
  await execute(
    tx,
    `INSERT INTO published_marks (entries_to, facts_to) VALUES (0, 0) ON CONFLICT (only_one) DO NOTHING`,
  );
  return queryOne(tx, `SELECT entries_to AS entries, facts_to AS facts FROM published_marks FOR UPDATE`);
}

export async function indexEvents(tx: Transaction, from: Marks, to: Marks): Promise<void> {
  await execute(tx, INDEX_EVENTS, {
    entriesFrom: from.entries,
    entriesTo: to.entries,
    factsFrom: from.facts,
    factsTo: to.facts,
  });
  await execute(tx, `UPDATE published_marks SET entries_to = :entries::bigint, facts_to = :facts::bigint`, { ...to });
}

const INDEX_EVENTS = `
  WITH found AS MATERIALIZED (
    SELECT partner_id, row_event_type(kind) AS type, posted_month, entry_id, NULL::bigint AS fact_id
    FROM ledger_rows WHERE entry_id > :entriesFrom::bigint AND entry_id <= :entriesTo::bigint
    UNION ALL
    SELECT partner_id, type, NULL, NULL, fact_id
    FROM partner_event_facts WHERE fact_id > :factsFrom::bigint AND fact_id <= :factsTo::bigint
  ), partners_found AS (
    SELECT p.partner_id,
           coalesce((SELECT max(position) FROM partner_events e WHERE e.partner_id = p.partner_id), 0) AS last
    FROM (SELECT DISTINCT partner_id FROM found) AS p
  )
  INSERT INTO partner_events (partner_id, position, type, posted_month, entry_id, fact_id)
  SELECT f.partner_id, p.last + row_number() OVER (PARTITION BY f.partner_id ORDER BY f.entry_id, f.fact_id),
         f.type, f.posted_month, f.entry_id, f.fact_id
  FROM found f JOIN partners_found p USING (partner_id)
  ORDER BY f.entry_id, f.fact_id`;
