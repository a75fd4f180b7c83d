/** Rows of imports that are held, and the decisions about them. */
import { columnsOf, execute, executing, query, querying, queryingColumn, Transaction } from '#database/transaction';
import { Scope } from '#people/scope';
import { OUTSIDE_TERMS } from './cancellation.ts';
import { Sign } from './doubles.sql.ts';
import { ROW_FACTS, RowFacts } from './row.ts';
import { GOOD, OWN_ID_FIELD, sameContent } from './rows.sql.ts';
import { saleKind } from './running-lines.sql.ts';

/**
 * Finds staged rows that were held before. A row with other content is a conflict, and one whose decision is made is a
 * duplicate.
 */
export const findHeldBefore = executing(`
  INSERT INTO findings (seq, field, code, reason)
  SELECT s.seq, ${OWN_ID_FIELD},
         CASE WHEN NOT (${sameContent('s', 'h')}) THEN 'conflict' WHEN d.decision IS NULL THEN 'held'
              ELSE 'duplicate' END,
         CASE WHEN NOT (${sameContent('s', 'h')}) THEN format('%s %s was held with other content', s.kind, s.own_id)
         END
  FROM held_rows h
  JOIN staged s ON s.partner_id = h.partner_id AND s.kind = h.kind AND s.own_id = own_id(h)
  LEFT JOIN held_row_decisions d USING (held_row_id)
  WHERE ${GOOD}`);

/** Holds requotes and reversals of a sale that is held or was discarded, in this import or before. */
export const holdRelated = executing(`
  INSERT INTO findings (seq, field, code)
  WITH held AS MATERIALIZED (
    SELECT h.partner_id, h.kind, own_id(h) AS own_id FROM held_rows h
    WHERE h.kind <> 'reversal' AND NOT EXISTS (
      SELECT FROM ledger_rows e WHERE e.partner_id = h.partner_id AND e.kind = h.kind AND own_id(e) = own_id(h))
    UNION
    SELECT s.partner_id, s.kind, s.own_id FROM findings f JOIN staged s USING (seq)
    WHERE f.code = 'held' AND s.kind <> 'reversal'
  )
  SELECT s.seq, ${OWN_ID_FIELD}, 'held' FROM related s
  WHERE s.kind <> 'quote_accepted' AND ${GOOD}
    AND ((s.partner_id, 'quote_accepted', s.quote_id) IN (SELECT partner_id, kind, own_id FROM held)
         OR s.kind = 'reversal'
            AND (s.partner_id, 'requote_accepted', s.requote_id) IN (SELECT partner_id, kind, own_id FROM held))`);

/** Holds requotes and reversals that come after a held reversal of their quote, in this import or before. */
export async function holdAfterReversals(tx: Transaction) {
  await execute(
    tx,
    `INSERT INTO findings (seq, field, code, reason)
     WITH outside AS MATERIALIZED (
       SELECT r.partner_id, r.quote_id, r.accepted_at, r.seq FROM findings f JOIN related r USING (seq)
       WHERE f.code = 'held' AND f.reason IS NOT NULL AND r.kind = 'reversal'
       UNION ALL
       SELECT partner_id, quote_id, accepted_at, 0 FROM undecided_rows WHERE sign = ANY (:signs::text[])
     )
     SELECT s.seq, ${OWN_ID_FIELD}, 'held', 'held_reversal' FROM related s
     WHERE s.kind <> 'quote_accepted' AND ${GOOD} AND EXISTS (
       SELECT FROM outside o WHERE o.partner_id = s.partner_id AND o.quote_id = s.quote_id
         AND (o.accepted_at, o.seq) < (s.accepted_at, s.seq))`,
    { signs: Object.keys(OUTSIDE_TERMS) },
  );
}

/** Holds the doubles of these kinds, unless the row that they repeat was rejected. */
export const holdDoubles = executing<{ reversals: boolean }>(`
  INSERT INTO findings (seq, field, code)
  SELECT s.seq, ${OWN_ID_FIELD}, 'held' FROM doubles d JOIN staged s USING (seq)
  WHERE (s.kind = 'reversal') = :reversals AND ${GOOD}
    AND NOT EXISTS (SELECT FROM findings r WHERE r.seq = d.repeats_seq AND r.code NOT IN ('duplicate', 'held'))`);

const NEWLY_HELD = `findings f JOIN staged s USING (seq) LEFT JOIN doubles d USING (seq)
     WHERE f.code = 'held' AND NOT EXISTS (
       SELECT FROM held_rows h WHERE h.partner_id = s.partner_id AND h.kind = s.kind AND own_id(h) = s.own_id)`;

export async function countNewlyHeld(tx: Transaction) {
  const [{ rows } = { rows: 0 }] = await query<{ rows: number }>(tx, `SELECT count(*) AS rows FROM ${NEWLY_HELD}`);
  return rows;
}

/** Records the newly held rows, in file order. */
export const insertHeldRows = executing<{ recordedAt: string; eventId: number }>(`
  INSERT INTO held_rows (kind, partner_id, ${ROW_FACTS}, sign, repeats, recorded_at, event_id)
  SELECT s.kind, s.partner_id, s.quote_id, s.requote_id, s.reversal_id, s.enrollment_id, s.policy_id, s.currency,
         s.accepted_at, trim_scale(s.spot_price), trim_scale(s.partner_cut), trim_scale(s.invoice_amount),
         s.order_reference, s.cover_from, s.cover_to, coalesce(d.sign, f.reason, 'held_sale'), d.repeats,
         :recordedAt::timestamptz, :eventId::bigint
  FROM ${NEWLY_HELD} ORDER BY f.reason IS NOT DISTINCT FROM 'held_reversal', s.seq`);

/** SQL: whether a held row is a reversal that the terms do not cover, and that may not repeat another one. */
export const IS_REQUESTED = `kind = 'reversal' AND sign <> 'held_sale' AND repeats IS NULL`;

export type HeldInFile = Readonly<{
  file: number;
  line: number;
  field: string;
  sign: Sign;
  repeats: string | null;
  held_row_id: number | null;
}>;

/** The held rows of this import, new or held before, in file order. */
export const readHeldInFile = querying<HeldInFile, { limit: number }>(`
  SELECT s.file, s.line, f.field, coalesce(h.sign, d.sign, f.reason, 'held_sale') AS sign,
         CASE WHEN h.held_row_id IS NULL THEN d.repeats ELSE h.repeats END AS repeats, h.held_row_id
  FROM findings f JOIN staged s USING (seq) LEFT JOIN doubles d USING (seq)
  LEFT JOIN held_rows h ON h.partner_id = s.partner_id AND h.kind = s.kind AND own_id(h) = s.own_id
  WHERE f.code = 'held' ORDER BY s.seq LIMIT :limit`);

export type HeldRow = RowFacts &
  Readonly<{
    held_row_id: number;
    kind: string;
    partner_id: string;
    partner_name: string;
    own_id: string;
    sign: Sign;
    repeats: string | null;
    recorded_at: string;
    source: string;
    decision: 'recorded' | 'discarded' | null;
    decision_reason: string | null;
    /** Whether the call stated the amounts, if the row was requested by the API. */
    stated: boolean;
  }>;

type HeldQuestion = Readonly<{
  ids?: readonly number[];
  partner?: string | null;
  /** The id of a reversal. */
  reversal?: string | null;
  scope?: Scope;
  undecided?: boolean;
  after?: string | null;
  limit?: number | null;
}>;

/** Reads held rows in the order in which they were held. */
export function readHeldRows(tx: Transaction, question: HeldQuestion): Promise<HeldRow[]> {
  const {
    ids = null,
    partner = null,
    reversal = null,
    scope = null,
    undecided = false,
    after = null,
    limit = null,
  } = question;
  return query(
    tx,
    `SELECT h.held_row_id, h.kind, h.partner_id, p.name AS partner_name, own_id(h) AS own_id,
            ${columnsOf('h', ROW_FACTS)}, h.sign, h.repeats, h.recorded_at,
            e.subject AS source, d.decision, d.reason AS decision_reason,
            NOT jsonb_exists(e.details, 'all_that_is_given') AS stated
     FROM held_rows h JOIN partners p USING (partner_id) JOIN audit_events e USING (event_id)
     LEFT JOIN held_row_decisions d USING (held_row_id)
     WHERE (:ids::bigint[] IS NULL OR h.held_row_id = ANY (:ids::bigint[]))
       AND (:partner::text IS NULL OR h.partner_id = :partner)
       AND (:reversal::text IS NULL OR h.kind = 'reversal' AND own_id(h) = :reversal)
       AND (:scope::text[] IS NULL OR h.partner_id = ANY (:scope::text[]))
       AND (NOT :undecided::boolean OR d.decision IS NULL)
       AND (:after::bigint IS NULL OR h.held_row_id > :after::bigint)
     ORDER BY h.held_row_id LIMIT :limit`,
    { ids, partner, reversal, scope, undecided, after, limit },
  );
}

/** These held rows, and the undecided rows that are held only because their sale or reversal is among them. */
export const readWithRelated = queryingColumn<number, { ids: readonly number[] }>(`
  WITH RECURSIVE named AS (
    SELECT h.held_row_id, h.partner_id, h.kind, own_id(h) AS own_id, h.quote_id, h.accepted_at FROM held_rows h
    WHERE h.held_row_id = ANY (:ids::bigint[])
    UNION
    SELECT r.held_row_id, r.partner_id, r.kind, coalesce(r.reversal_id, r.requote_id)::identifier, r.quote_id,
           r.accepted_at
    FROM undecided_rows r JOIN named n ON n.partner_id = r.partner_id
      AND CASE r.sign WHEN 'held_sale' THEN
            n.own_id = CASE n.kind WHEN 'quote_accepted' THEN r.quote_id
                                   WHEN 'requote_accepted' THEN r.requote_id END
          WHEN 'held_reversal' THEN
            n.kind = 'reversal' AND n.quote_id = r.quote_id AND n.accepted_at <= r.accepted_at END
  )
  SELECT held_row_id FROM named ORDER BY held_row_id`);

export type RoutedRequest = Readonly<{
  held_row_id: number;
  partner_id: string;
  quote_id: string;
  /** Our share, above zero. */
  asked: string;
  /** What the processor has taken back of the quote beyond its reversals in the ledger, above zero. */
  beyond_ledger: string;
}>;

/** The undecided reversals of routed sales whose share may be among what the processor has taken back. */
export const readRoutedRequests = (tx: Transaction, limit: number): Promise<RoutedRequest[]> =>
  query(
    tx,
    `SELECT h.held_row_id, h.partner_id, h.quote_id, (-h.invoice_amount)::text AS asked, b.amount::text AS beyond_ledger
     FROM undecided_rows h
     JOIN ledger_rows s ON s.partner_id = h.partner_id AND own_id(s) = coalesce(h.requote_id, h.quote_id)
       AND s.kind = ${saleKind('h')}
     CROSS JOIN LATERAL (
       SELECT shares_taken_back(h.partner_id, h.quote_id) + coalesce(sum(e.invoice_amount), 0) AS amount
       FROM ledger_rows e WHERE e.partner_id = h.partner_id AND e.quote_id = h.quote_id AND e.kind = 'reversal'
         AND e.arrangement = 'connected_account') AS b
     WHERE h.kind = 'reversal' AND h.sign = ANY (:signs::text[]) AND s.arrangement = 'connected_account'
       AND h.invoice_amount < 0 AND b.amount >= -h.invoice_amount
     ORDER BY h.held_row_id LIMIT :limit`,
    { signs: [...Object.keys(OUTSIDE_TERMS), 'held_reversal'], limit },
  );

export const insertDecisions = executing<{
  ids: readonly number[];
  decision: 'recorded' | 'discarded';
  reason: string;
  now: string;
  eventId: number;
}>(`
  INSERT INTO held_row_decisions (held_row_id, decision, reason, recorded_at, event_id)
  SELECT held_row_id, :decision, :reason, :now::timestamptz, :eventId::bigint
  FROM unnest(:ids::bigint[]) AS held_row_id ORDER BY 1`);
