/** SQL of the log's checkpoints. */
import { LOCKS, takeLock } from '#database/locks';
import {
  execute,
  executing,
  insertInto,
  query,
  querying,
  queryingColumn,
  queryingFirst,
  queryingValue,
  queryOne,
  Transaction,
} from '#database/transaction';
import { LINES_OF_MONTH, RowsOfMonth } from '#ledger/running-lines.sql';
import { Month } from '#month';

/** The month or the books that the last leaf of a checkpoint closes. */
export type Closes = `month ${Month}` | `books ${Month}`;

export type Checkpoint = Readonly<{
  /** The number of leaves. */
  size: number;
  origin: string;
  /** The log number of the last leaf. */
  last_no: number;
  root: Buffer;
  /** The subtrees over all leaves, and the subtrees over the leaves since the previous checkpoint (tree.ts). */
  edge: Buffer;
  span: Buffer;
  taken_at: string;
  /** Null for a daily checkpoint. */
  closes: Closes | null;
  /** The root over the leaves since the previous checkpoint, without the leaves of ledger rows. */
  facts_root: Buffer;
}>;

const COLUMNS = 'size, origin, last_no, root, edge, span, taken_at, closes, facts_root';

/** All checkpoints in order of size, or only checkpoints of at least the size `from`. */
export const readCheckpoints = (tx: Transaction, from = 0): Promise<Checkpoint[]> =>
  query(tx, `SELECT ${COLUMNS} FROM log_checkpoints WHERE size >= :from ORDER BY size`, { from });

/** The last checkpoint, or undefined before the first checkpoint. */
export const readLastCheckpoint = queryingFirst<Checkpoint>(
  `SELECT ${COLUMNS} FROM log_checkpoints ORDER BY size DESC LIMIT 1`,
);

/** The checkpoint of this size, if there is one. */
export const readCheckpointOf = querying<Checkpoint, { size: number }>(
  `SELECT ${COLUMNS} FROM log_checkpoints WHERE size = :size`,
);

/**
 * The last log number that was drawn. The number is exact while the caller holds the lock on the whole ledger.
 * Otherwise, some facts with lower numbers may not be committed yet.
 */
export const readLastNumber = queryingValue<number>(
  `SELECT last_value - (NOT is_called)::int AS last FROM log_numbers`,
);

/** The log numbers of rows that are below 1 or above the given number. */
export const readRowsOutside = queryingColumn<number, { number: number }>(
  `SELECT entry_id FROM ledger_rows WHERE entry_id > :number OR entry_id < 1 ORDER BY entry_id LIMIT 100`,
);

/** The closes that have no checkpoint, and the checkpoints whose close is not recorded. */
export const readClosesApart = querying<{ closes: string; has_checkpoint: boolean }>(`
  WITH closes AS (SELECT 'month ' || month AS closes FROM closed_months
                  UNION ALL SELECT 'books ' || month FROM book_closes)
  SELECT coalesce(c.closes, k.closes) AS closes, k.size IS NOT NULL AS has_checkpoint
  FROM closes c FULL JOIN (SELECT * FROM log_checkpoints WHERE closes IS NOT NULL) k USING (closes)
  WHERE c.closes IS NULL OR k.size IS NULL ORDER BY 1`);

/**
 * The name of the log at a log number: HOST/LEDGER, or the name of the latest successor log up to this number. The name
 * of a sandbox's log begins with `sandbox.`.
 */
const originUpTo = (number: string) => `coalesce(
  (SELECT origin FROM log_continues WHERE log_no <= ${number} ORDER BY log_no DESC LIMIT 1),
  (SELECT CASE environment WHEN 'sandbox' THEN 'sandbox.' ELSE '' END || log_host || '/' || installation_id
   FROM installation))`;

/** The current name of the log. */
export const readOrigin = queryingValue<string>(`
  SELECT coalesce((SELECT origin FROM log_continues ORDER BY log_no DESC LIMIT 1),
           CASE environment WHEN 'sandbox' THEN 'sandbox.' ELSE '' END || log_host || '/' || installation_id)
           AS origin
  FROM installation`);

/** The sizes of the checkpoints that have a wrong log name, each with the right name. */
export const readMisnamed = querying<{ size: number; own: string }>(`
  SELECT size, own FROM (SELECT size, origin, ${originUpTo('last_no')} AS own FROM log_checkpoints) AS named
  WHERE origin <> own ORDER BY size`);

export const insertContinuation = executing<
  Readonly<{
    origin: string;
    follows: string;
    lost_size: number;
    lost_root: string;
    kept_size: number;
    reason: string;
    now: string;
    eventId: number;
  }>
>(`
  INSERT INTO log_continues (origin, follows, lost_size, lost_root, kept_size, reason, recorded_at, event_id)
  VALUES (:origin, :follows, :lost_size, :lost_root, :kept_size, :reason, :now, :eventId)`);

/**
 * Takes the lock under which a checkpoint is compared with the last checkpoint and inserted. The lock is held for
 * milliseconds.
 */
export const lockLog = (tx: Transaction) => takeLock(tx, LOCKS.log);

export const insertCheckpoint = executing<Checkpoint>(insertInto('log_checkpoints', COLUMNS));

/** The rows of a partner in an open month, up to a checkpoint. */
export type PartnerEdge = Readonly<{
  /** Posting month, partner, currency and arrangement, separated by tabs. */
  key: string;
  entries: number;
  edge: Buffer;
}>;

/**
 * The closed months, each with the root of every partner's rows. The keys are those of `PartnerEdge` without the month.
 */
export const readMonthRoots = querying<Readonly<{ month: Month; roots: Readonly<Record<string, string>> }>>(`
  SELECT m.month, coalesce(json_object_agg(concat_ws(E'\\t', p.partner_id, p.currency, p.arrangement), p.root)
           FILTER (WHERE p.month IS NOT NULL), '{}') AS roots
  FROM closed_months m LEFT JOIN month_partners p USING (month) GROUP BY m.month ORDER BY m.month`);

export const readPartnerEdges = querying<PartnerEdge>(`
  SELECT concat_ws(E'\\t', posted_month, partner_id, currency, arrangement) AS key, entries, edge
  FROM partner_edges`);

export const savePartnerEdges = (tx: Transaction, edges: readonly PartnerEdge[]) =>
  execute(
    tx,
    `INSERT INTO partner_edges (posted_month, partner_id, currency, arrangement, entries, edge)
     SELECT split_part(key, E'\\t', 1), split_part(key, E'\\t', 2), split_part(key, E'\\t', 3),
            split_part(key, E'\\t', 4), entries, edge
     FROM unnest(:keys::text[], :entries::bigint[], :edges::bytea[]) AS e (key, entries, edge)
     ON CONFLICT (posted_month, partner_id, currency, arrangement)
       DO UPDATE SET entries = excluded.entries, edge = excluded.edge`,
    {
      keys: edges.map(({ key }) => key),
      entries: edges.map(({ entries }) => entries),
      edges: edges.map(({ edge }) => edge),
    },
  );

/** A closed month needs no edges, because the roots of its partners are recorded as facts. */
export const deletePartnerEdges = executing<{ month: Month }>(`DELETE FROM partner_edges WHERE posted_month <= :month`);

/** Records the first instants of months: the months of the rows after a log number, and the month after each. */
export const recordMonthZones = executing<{ after: number }>(`
  INSERT INTO month_zones (time_zone, month, begins_at)
  SELECT time_zone, each, first_instant(each, time_zone)
  FROM (SELECT DISTINCT time_zone, month FROM ledger_rows WHERE entry_id > :after) AS r
  CROSS JOIN LATERAL (VALUES (r.month), (month_after(r.month))) AS m (each)
  WHERE NOT EXISTS (SELECT FROM month_zones z WHERE z.time_zone = r.time_zone AND z.month = each)
  GROUP BY time_zone, each ORDER BY time_zone, each
  ON CONFLICT DO NOTHING`);

/**
 * Records the partners whose rows a month bills. Each key in `keys` (partner, currency, arrangement) has the root at
 * the same place in `roots`.
 */
export const insertMonthPartners = executing<
  RowsOfMonth & Readonly<{ keys: readonly string[]; roots: readonly string[] }>
>(`
  INSERT INTO month_partners (
    month, partner_id, currency, arrangement, entries, spot_price, partner_cut, invoice_amount, last_accepted_at,
    root)
  SELECT :month, l.partner_id, l.currency, l.arrangement, sum(l.count), sum(l.spot_price), sum(l.partner_cut),
         sum(l.invoice_amount), max(l.last_accepted_at), r.root
  FROM (${LINES_OF_MONTH}) AS l
  JOIN unnest(:keys::text[], :roots::text[]) AS r (key, root)
    ON r.key = concat_ws(E'\\t', l.partner_id, l.currency, l.arrangement)
  GROUP BY l.partner_id, l.currency, l.arrangement, r.root
  ORDER BY l.partner_id, l.currency, l.arrangement`);

/** Records the totals of a closed month from its first documents, which bill all rows of the month. */
export const insertMonthTotals = executing<{ month: Month }>(`
  INSERT INTO month_totals (month, currency, entries, spot_price, partner_cut, invoice_amount)
  SELECT month, currency, sum(entries), sum(sign * spot_price), sum(sign * partner_cut), sum(sign * invoice_amount)
  FROM documents CROSS JOIN LATERAL (SELECT document_sign(document) AS sign) AS s
  WHERE month = :month AND purpose = 'month' AND replaces IS NULL GROUP BY month, currency ORDER BY currency`);

/** Counts the facts after the last checkpoint, which only the database's guards protect. */
export const countUncovered = async (tx: Transaction) => {
  const last = await readLastNumber(tx);
  const { covered } = await queryOne<{ covered: number }>(
    tx,
    `SELECT coalesce(max(last_no), 0) AS covered FROM log_checkpoints`,
  );
  return last - covered;
};
