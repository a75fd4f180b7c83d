/** SQL of the seals. */
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

export interface Seal {
  readonly month: Month;
  /** The last fact that it covers. */
  readonly facts_to: number;
  readonly sealed_at: string;
  readonly record: string;
  /** SHA-256 of the record. */
  readonly seal: string;
  readonly previous: Month | null;
}

/** Closed months in order, each with its seal or without one. */
export function readSeals(tx: Transaction): Promise<(Partial<Seal> & Pick<Seal, 'month'>)[]> {
  return query(
    tx,
    `SELECT m.month, s.facts_to, s.sealed_at, s.record, s.seal, s.previous
     FROM closed_months m LEFT JOIN seals s ON s.month = m.month ORDER BY m.month`,
  );
}

/** The seals of months. */
export async function readSealsOf(tx: Transaction, months: readonly Month[]): Promise<ReadonlyMap<Month, string>> {
  const rows = await query<Pick<Seal, 'month' | 'seal'>>(
    tx,
    `SELECT month, seal FROM seals WHERE month = ANY (:months::text[])`,
    { months },
  );
  return new Map(rows.map(({ month, seal }) => [month, seal]));
}

/** Months that were closed before there were seals. */
export async function readUnsealedMonths(tx: Transaction): Promise<Month[]> {
  const rows = await query<{ month: Month }>(
    tx,
    `SELECT month FROM closed_months WHERE month NOT IN (SELECT month FROM seals) ORDER BY month`,
  );
  return rows.map((row) => row.month);
}

/** What a closed month says of itself, and the totals of its rows: those of its first documents, which bill them all. */
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
         SELECT currency, trim_scale(sum(sign * spot_price))::text AS spot_price, trim_scale(sum(sign * partner_cut))::text AS partner_cut,
                trim_scale(sum(sign * invoice_amount))::text AS invoice_amount
         FROM documents CROSS JOIN LATERAL (SELECT document_sign(document) AS sign) AS s
         WHERE month = m.month AND purpose = 'month' AND replaces IS NULL GROUP BY currency) AS c) AS t
     WHERE m.month = :month`,
    { month },
  );
}

/** The number of the last fact so far. Exact under the ledger's whole lock: nobody else is recording one. */
export async function readLastFact(tx: Transaction): Promise<number> {
  const { last } = await queryOne<{ last: number }>(
    tx,
    `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM fact_numbers`,
  );
  return last;
}

/** What the seal before a month covers already. */
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

// --- Letters to the auditor -------------------------------------------------------------------------------------------

/** Records that the auditor is to be told of a seal, under a Message-ID that is fixed from now on. */
export async function queueSealLetter(tx: Transaction, month: Month, mailDomain: string): Promise<void> {
  await execute(
    tx,
    `INSERT INTO seal_letters (month, message_id, status)
     SELECT :month, '<seal.' || :month || '.' || installation_id || '@' || :mailDomain || '>', 'queued' FROM installation`,
    { month, mailDomain },
  );
}

export interface SealLetter {
  readonly month: Month;
  readonly message_id: string;
  readonly sealed_at: string;
  readonly seal: string;
  readonly record: string;
}

/** Letters to send now, for this process alone: for as long as one attempt can take, nobody else gets them. */
export async function claimSealLetters(tx: Transaction): Promise<SealLetter[]> {
  return query(
    tx,
    `WITH claimed AS (
       UPDATE seal_letters SET tried_until = clock_timestamp() + interval '20 minutes'
       WHERE month IN (
         SELECT month FROM seal_letters
         WHERE status <> 'sent' AND (tried_until IS NULL OR tried_until < clock_timestamp())
         FOR UPDATE SKIP LOCKED)
       RETURNING month, message_id
     )
     SELECT c.month, c.message_id, s.sealed_at, s.seal, s.record
     FROM claimed c JOIN seals s ON s.month = c.month ORDER BY c.month`,
  );
}

export async function settleSealLetter(
  tx: Transaction,
  result: { month: Month; sent: boolean; held: boolean; recipient: string; reply: string; now: string },
): Promise<void> {
  await execute(
    tx,
    `UPDATE seal_letters
     SET status = CASE WHEN :sent::boolean THEN 'sent' WHEN :held::boolean THEN 'held' ELSE 'queued' END,
         recipient = CASE WHEN :sent::boolean THEN :recipient END, reply = :reply, tried_until = NULL,
         sent_at = CASE WHEN :sent::boolean THEN :now::timestamptz END
     WHERE month = :month AND status <> 'sent'`,
    result,
  );
}
