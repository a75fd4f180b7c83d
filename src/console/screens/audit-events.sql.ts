import { query, queryingColumn, Transaction } from '#database/transaction';
import { Month } from '#month';
import { Scope } from '#people/scope';

export type ListedEvent = Readonly<{
  event_id: number;
  occurred_at: string;
  action: string;
  subject: string;
  by: string;
  os_user: string;
  host: string;
  via: string;
  details: Readonly<Record<string, unknown>>;
  /** The kind of the event's subject, or null if the kind has no page. */
  of: 'document' | 'partner' | null;
}>;

export type Filter = Readonly<{
  action: string | null;
  by: string | null;
  subject: string | null;
  from: string | null;
  to: string | null;
  before: number | null;
}>;

/** Their details concern only one partner. */
const OF_ONE_PARTNER = '^(invoice|partner|client|webhook|dispute)[.]';

const ASKED = `(:before::bigint IS NULL OR e.event_id < :before::bigint)
       AND (:by::text IS NULL OR e.user_id = ANY (:users::bigint[])
            OR (e.user_id IS NULL AND coalesce(e.claimed_by, lower(e.os_user)) = ANY (:names::text[])))
       AND (:subject::text IS NULL
            OR e.subject = ANY (array_prepend(:subject::text, commitments_to(ARRAY[:subject::text]))))
       AND (:from::date IS NULL OR e.occurred_at >= :from::date::timestamp AT TIME ZONE 'UTC')
       AND (:to::date IS NULL OR e.occurred_at < (:to::date + 1)::timestamp AT TIME ZONE 'UTC')
       AND (:scope::text[] IS NULL OR e.subject IN (
              SELECT unnest(:scope::text[])
              UNION ALL SELECT d.number FROM documents d WHERE d.partner_id = ANY (:scope::text[])))`;

/** The latest of each action by the index on actions, so that a rare one needs no scan. */
const EVENTS_OF_ACTIONS = `(
       SELECT e.* FROM unnest(:actions::text[]) AS a (action)
       CROSS JOIN LATERAL (
         SELECT * FROM audit_events e WHERE e.action = a.action AND ${ASKED}
         ORDER BY e.event_id DESC LIMIT :limit) AS e)`;

/** Every action that has events, by one index probe each; DISTINCT would scan all events. */
export const readActions = queryingColumn<string>(`
  WITH RECURSIVE found AS (
    SELECT min(action) AS action FROM audit_events
    UNION ALL
    SELECT (SELECT min(e.action) FROM audit_events e WHERE e.action > f.action) FROM found f
    WHERE f.action IS NOT NULL
  )
  SELECT action FROM found WHERE action IS NOT NULL`);

/** The events that match the filter, latest first. `actions` must list all actions. */
export async function readEvents(
  tx: Transaction,
  asked: Filter &
    Readonly<{
      actions: readonly string[];
      scope: Scope;
      /** The months of the documents whose pages the user may open; null means all, and the partners' pages. */
      firstMonth: Month | null;
      lastMonth: Month | null;
      limit: number;
    }>,
): Promise<ListedEvent[]> {
  const users = await query<{ user_id: number }>(
    tx,
    `SELECT user_id FROM users WHERE lower(personal(login)) = lower(:by)`,
    { by: asked.by },
  );
  const [{ names } = { names: [] }] = await query<{ names: string[] }>(
    tx,
    `SELECT lower(:by) || ARRAY(SELECT commitment FROM personal_texts WHERE lower(text) = lower(:by)) AS names`,
    { by: asked.by },
  );
  return query(
    tx,
    `SELECT e.event_id, to_char(e.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS occurred_at,
            e.action, personal(e.subject) AS subject,
            coalesce(personal(u.login), personal(e.claimed_by), e.os_user) AS by, e.os_user, e.host, e.via,
            CASE WHEN :scope::text[] IS NULL OR e.action ~ :own THEN personal_json(e.details) ELSE '{}' END AS details,
            CASE WHEN EXISTS (
                   SELECT FROM documents d WHERE d.number = e.subject
                     AND (:firstMonth::text IS NULL OR d.month BETWEEN :firstMonth AND :lastMonth)) THEN 'document'
                 WHEN :firstMonth::text IS NULL AND EXISTS (
                   SELECT FROM partners p WHERE p.partner_id = e.subject) THEN 'partner' END AS of
     FROM ${asked.action === null ? `(SELECT * FROM audit_events e WHERE ${ASKED})` : EVENTS_OF_ACTIONS} AS e
     LEFT JOIN users u USING (user_id)
     ORDER BY e.event_id DESC LIMIT :limit`,
    {
      ...{ ...asked, own: OF_ONE_PARTNER },
      users: users.map(({ user_id }) => user_id),
      names,
      actions: asked.actions.filter((each) => each === asked.action || each.startsWith(`${asked.action}.`)),
    },
  );
}
