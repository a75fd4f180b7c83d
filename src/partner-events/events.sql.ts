/** SQL of partner events. */
import { prepared, query, queryOne, type Transaction } from '../database/transaction.ts';

export interface PageRow {
  readonly installation_id: string;
  readonly position: number;
  readonly type: string;
  readonly posted_month: string | null;
  readonly entry_id: number | null;
  readonly fact_id: number | null;
}

/** A partner's events after a position, with the subject of each. */
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

/** The ledger rows that events are about. A row is found by its whole key: the id alone has no index of its own. */
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

/** The facts that events are about. The numbers are given as one list, which every part of the view looks up by index. */
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
