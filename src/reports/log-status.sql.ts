/** SQL of the log's state in the status. */
import { querying, queryingOne, queryingValue } from '#database/transaction';
import { LOG_FORMS, numberOf } from '#log/forms';

const COUNTS = LOG_FORMS.map(
  ({ kind }) => `SELECT count(*) AS facts FROM ${kind} WHERE ${numberOf(kind)} > :after::bigint`,
).join(' UNION ALL ');

/** Counts the facts that were recorded after a log number. */
export const countFactsAfter = queryingValue<number, { after: number }>(
  `SELECT sum(facts)::bigint AS facts FROM (${COUNTS}) AS c`,
);

/**
 * The time of the first fact after a log number. Only rows, events and sent e-mails are considered, because other facts
 * state no time.
 */
export const readFirstAfter = queryingOne<{ readonly at: string | null }, { after: number }>(`
  SELECT least(
    (SELECT occurred_at FROM audit_events WHERE log_no > :after::bigint ORDER BY log_no LIMIT 1),
    (SELECT recorded_at FROM ledger_rows WHERE entry_id > :after::bigint ORDER BY entry_id LIMIT 1),
    (SELECT ended_at FROM email_attempts WHERE log_no > :after::bigint ORDER BY log_no LIMIT 1)) AS at`);

export type LostKey = Readonly<{
  recorded_at: string;
  reason: string;
}>;

/** The latest key, if it was recorded after an instant and the previous key did not sign it. */
export const readLostKey = querying<LostKey, { since: string }>(`
  SELECT recorded_at, reason
  FROM (SELECT * FROM log_keys ORDER BY log_no DESC LIMIT 1) AS k
  WHERE previous IS NOT NULL AND signature IS NULL AND recorded_at >= :since::timestamptz`);
