import { querying } from '#database/transaction';
import { FieldChange } from './field-changes.ts';

/** Inserts events in order. `events` is a JSON array. */
export const insertEvents = querying<
  { event_id: number },
  {
    claimedBy: string | null;
    osUser: string;
    host: string;
    via: string;
    userId: number | null;
    events: string;
  }
>(`
  INSERT INTO audit_events (occurred_at, action, subject, details, claimed_by, os_user, host, via, user_id)
  SELECT now, action, subject, details || approval_details(), :claimedBy, :osUser, :host, :via,
         coalesce(:userId, acting_user())
  FROM ROWS FROM (json_to_recordset(:events::json) AS (now timestamptz, action text, subject text, details jsonb))
    WITH ORDINALITY AS event (now, action, subject, details, position)
  ORDER BY position
  RETURNING event_id`);

export type ChangeEvent = Readonly<{
  event_id: number;
  occurred_at: string;
  action: string;
  claimed_by: string | null;
  os_user: string;
  host: string;
  via: string;
  changes: readonly FieldChange[];
}>;

/** The change events of subjects, oldest first. */
export const readChangeEvents = querying<ChangeEvent, { subjects: readonly string[]; actions: readonly string[] }>(`
  SELECT event_id, to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS occurred_at, action,
         personal(claimed_by) AS claimed_by, os_user, host, via, personal_json(details->'changes') AS changes
  FROM audit_events WHERE subject = ANY (:subjects) AND action = ANY (:actions) ORDER BY event_id`);
