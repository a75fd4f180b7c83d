/** SQL of the seals. */
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { TreeSoFar } from './merkle.ts';
import { vkeyOf } from './signature.ts';
import type { SigningKey } from './signatures.sql.ts';

export interface Seal {
  readonly month: Month;
  /** The number of the last fact that it covers. */
  readonly facts_to: number;
  readonly sealed_at: string;
  readonly record: string;
  /** SHA-256 of the record. */
  readonly seal: string;
  readonly previous: Month | null;
}

/** A closed month with its seal. If the seal is missing, only `month` and the month closed before it are set. */
export type ClosedMonth = Partial<Seal> & Pick<Seal, 'month'> & { readonly closed_after: Month | null };

/** Closed months in order. */
export function readSeals(tx: Transaction): Promise<ClosedMonth[]> {
  return query(
    tx,
    `SELECT m.month, m.previous AS closed_after, s.facts_to, s.sealed_at, s.record, s.seal, s.previous
     FROM closed_months m LEFT JOIN seals s ON s.month = m.month ORDER BY m.month`,
  );
}

/** A seal and the verifier key of its signature; null if it is not signed. */
export interface SignedSeal {
  readonly seal: string;
  readonly signed_by: string | null;
}

/** The seals of these months, by month. */
export async function readSealsOf(tx: Transaction, months: readonly Month[]): Promise<ReadonlyMap<Month, SignedSeal>> {
  const rows = await query<Pick<Seal, 'month' | 'seal'> & { key: SigningKey | null }>(
    tx,
    `SELECT m.month, m.seal, CASE WHEN s.fact_id IS NOT NULL THEN to_json(s) END AS key
     FROM seals m LEFT JOIN seal_signatures s ON s.kind = 'month' AND s.name = m.month
     WHERE m.month = ANY (:months::text[])`,
    { months },
  );
  return new Map(rows.map(({ month, seal, key }) => [month, { seal, signed_by: key && vkeyOf(key) }]));
}

/** The last seal; undefined before the first. */
export async function readLastSeal(tx: Transaction): Promise<Before | undefined> {
  const [last] = await query<Before>(tx, `SELECT month, seal, facts_to FROM seals ORDER BY month DESC LIMIT 1`);
  return last;
}

/** The facts of a closed month in its seal record. Totals come from its first documents, which bill all rows. */
export function readMonthToSeal(
  tx: Transaction,
  month: Month,
): Promise<{
  readonly installation_id: string;
  readonly environment: string;
  readonly previous: Month | null;
  readonly issued_on: string;
  readonly closed_at: string;
  readonly entries: number;
  readonly late_entries: number;
  readonly partners_with_documents: number;
  readonly partners_without_activity: number;
  readonly totals: readonly { currency: string; spot_price: string; partner_cut: string; invoice_amount: string }[];
}> {
  return queryOne(
    tx,
    `SELECT i.installation_id, i.environment, m.previous, m.issued_on, m.closed_at, m.entries, m.late_entries,
            m.partners_with_documents, m.partners_without_activity, coalesce(t.totals, '[]') AS totals
     FROM closed_months m
     CROSS JOIN installation i
     CROSS JOIN LATERAL (
       SELECT json_agg(c ORDER BY c.currency COLLATE "C") AS totals
       FROM (
         SELECT currency, trim_scale(spot_price)::text AS spot_price, trim_scale(partner_cut)::text AS partner_cut,
                trim_scale(invoice_amount)::text AS invoice_amount
         FROM month_totals WHERE month = m.month) AS c) AS t
     WHERE m.month = :month`,
    { month },
  );
}

/** The number of the last fact. Exact under the whole ledger lock, when nothing else records facts. */
export async function readLastFact(tx: Transaction): Promise<number> {
  const { last } = await queryOne<{ last: number }>(
    tx,
    `SELECT last_value - (NOT is_called)::int AS last FROM fact_numbers`,
  );
  return last;
}

/** The previous seal; `month` and `seal` are null before the first. */
export interface Before {
  readonly month: Month | null;
  readonly seal: string | null;
  readonly facts_to: number;
}

export async function insertSeal(
  tx: Transaction,
  seal: Pick<Seal, 'month' | 'facts_to' | 'sealed_at' | 'record' | 'previous'>,
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO seals (month, previous, facts_to, sealed_at, record, seal)
     VALUES (:month, :previous, :facts_to::bigint, :sealed_at::timestamptz,
             :record, encode(sha256(convert_to(:record, 'UTF8')), 'hex'))`,
    { ...seal },
  );
}

// --- Checkpoints ------------------------------------------------------------------------------------------------------

export interface Checkpoint {
  readonly checkpoint_number: number;
  /** The number of the previous one; null for the first. */
  readonly previous: number | null;
  /** The number of the last fact that it covers, and the entry_id of the last row. */
  readonly facts_to: number;
  readonly entries_to: number;
  readonly taken_at: string;
  /** For each open posting month, the Merkle tree of its rows so far. */
  readonly trees: Readonly<Record<string, TreeSoFar>>;
  readonly record: string;
  /** SHA-256 of the record. */
  readonly seal: string;
}

/** All checkpoints in order. */
export function readCheckpoints(tx: Transaction): Promise<Checkpoint[]> {
  return query(
    tx,
    `SELECT checkpoint_number, previous, facts_to, entries_to, taken_at, trees, record, seal FROM checkpoints
     ORDER BY checkpoint_number`,
  );
}

/** The last checkpoint; undefined before the first. */
export async function readLastCheckpoint(tx: Transaction): Promise<Checkpoint | undefined> {
  const [last] = await query<Checkpoint>(
    tx,
    `SELECT checkpoint_number, previous, facts_to, entries_to, taken_at, trees, record, seal FROM checkpoints
     ORDER BY checkpoint_number DESC LIMIT 1`,
  );
  return last;
}

/** The last entry_id assigned. Exact under the whole ledger lock, when nothing else records rows. */
export async function readLastEntry(tx: Transaction): Promise<number> {
  const { last } = await queryOne<{ last: number }>(
    tx,
    `SELECT last_value - (NOT is_called)::int AS last FROM ledger_rows_entry_id_seq`,
  );
  return last;
}

interface Event {
  readonly event_id: number;
  readonly action: string;
  readonly occurred_at: string;
}

/** The first recorded event. */
export async function readFirstEvent(tx: Transaction): Promise<Event | undefined> {
  const [first] = await query<Event>(
    tx,
    `SELECT event_id, action, occurred_at FROM audit_events ORDER BY event_id LIMIT 1`,
  );
  return first;
}

/** The last recorded event. */
export async function readLastEvent(tx: Transaction): Promise<Event | undefined> {
  const [last] = await query<Event>(
    tx,
    `SELECT event_id, action, occurred_at FROM audit_events ORDER BY event_id DESC LIMIT 1`,
  );
  return last;
}

export async function insertCheckpoint(
  tx: Transaction,
  checkpoint: Omit<Checkpoint, 'seal'> & { readonly eventId: number },
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO checkpoints (
       checkpoint_number, previous, facts_to, entries_to, taken_at, event_id, trees, record, seal)
     VALUES (:checkpoint_number::bigint, :previous::bigint, :facts_to::bigint, :entries_to::bigint,
             :taken_at::timestamptz, :eventId::bigint, :trees::jsonb, :record,
             encode(sha256(convert_to(:record, 'UTF8')), 'hex'))`,
    { ...checkpoint, trees: JSON.stringify(checkpoint.trees) },
  );
}
