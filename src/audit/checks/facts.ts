/** The check of fact numbers: each is covered by exactly one seal, or comes after the last seal. */
import { SEALED_TABLES, type SealedTable } from '../../seals/canonical.ts';

/** The time when a fact was recorded, by the program's clock, is in the first of these columns that its table has. */
const RECORDED = [
  'recorded_at',
  'issued_at',
  'rendered_at',
  'held_at',
  'released_at',
  'closed_at',
  'created_at',
  'revoked_at',
  'first_used_at',
  'signed_at',
  'taken_at',
  'ended_at',
  'paused_at',
  'resumed_at',
] as const;

function recordedAt({ name, columns }: SealedTable): string {
  if (name === 'audit_events') return 'occurred_at';
  return RECORDED.find((column) => columns.includes(column)) ?? 'NULL::timestamptz';
}

const FACTS = SEALED_TABLES.map(
  (table) => `SELECT '${table.name}' AS fact, fact_id, ${recordedAt(table)} AS recorded_at FROM ${table.name}`,
).join('\n  UNION ALL ');

/**
 * A seal covers the numbers after those of the previous seal, so no seal ever covers a number that is zero or less, or
 * that the sequence has not given yet. A fact recorded long before a seal does not have a number after it, nor the
 * reverse: a transaction may wait for a close, but not for a day. A sandbox's clock may be set, so times are compared
 * in production only.
 */
export const FACTS_UNDER_SEALS = `facts AS MATERIALIZED (
  ${FACTS}
), given AS (
  SELECT last_value - (NOT is_called)::int AS last FROM fact_numbers
), sealed AS (
  SELECT coalesce(array_agg(facts_to + 1 ORDER BY month), '{}') AS next_facts,
         coalesce(array_agg(sealed_at ORDER BY month), '{}') AS times
  FROM seals
), seals_inspected AS (
  SELECT month, facts_to, lag(facts_to, 1, 0::bigint) OVER (ORDER BY month) AS facts_before FROM seals
), inspected AS (
  SELECT fact FROM facts UNION ALL SELECT month FROM seals_inspected
), misplaced AS (
  SELECT fact, fact_id, recorded_at, times[width_bucket(fact_id, next_facts)] AS sealed_before,
         times[width_bucket(fact_id, next_facts) + 1] AS sealed_at
  FROM facts CROSS JOIN sealed CROSS JOIN installation WHERE recorded_at IS NOT NULL AND environment = 'production'
), differences AS (
  SELECT format('%s, fact %s', fact, fact_id) AS subject,
         format('is under no seal: facts are numbered from 1, and the last number given is %s', last) AS detail
  FROM facts CROSS JOIN given WHERE fact_id NOT BETWEEN 1 AND last
  UNION ALL
  SELECT format('fact %s', fact_id), format('is the number of several facts: %s', string_agg(fact, ', ' ORDER BY fact))
  FROM facts GROUP BY fact_id HAVING count(*) > 1
  UNION ALL
  SELECT format('%s, fact %s', fact, fact_id),
         format('was recorded at %s, but numbered %s', recorded_at,
                CASE WHEN recorded_at > sealed_at THEN format('before the seal of %s', sealed_at)
                     ELSE format('after the seal of %s', sealed_before) END)
  FROM misplaced
  WHERE recorded_at < sealed_before - interval '1 day' OR recorded_at > sealed_at + interval '1 day'
  UNION ALL
  SELECT format('seal of %s', month),
         format('covers facts %s to %s, and %s is the last number given', facts_before + 1, facts_to, last)
  FROM seals_inspected CROSS JOIN given WHERE facts_to NOT BETWEEN facts_before AND last
  UNION ALL
  SELECT format('row %s of %s', entry_id, partner_id),
         format('rows are numbered from 1, and the last number given is %s', last)
  FROM ledger_rows
  CROSS JOIN (SELECT last_value - (NOT is_called)::int AS last FROM ledger_rows_entry_id_seq) AS given_rows
  WHERE entry_id NOT BETWEEN 1 AND last
)`;
