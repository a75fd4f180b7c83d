/** Audit events: `reckoner audit list`, and the console's *Events*. */
import { z } from 'zod';
import { ACTIONS } from '#actions/loaded';
import { query, queryingColumn, Transaction } from '#database/transaction';
import { fieldWords } from '#field-names';
import { sourceOf } from '#people/audit-events';
import { FieldChange } from '#people/field-changes';
import { capitalized, inWords, names } from '#text';
import { date, defineList, given, ListQuery, MOST_COUNTED, periodGiven, Sums, text } from './list.ts';

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

const filters = z.strictObject({
  action: text('Action', 'Only this action, or actions that begin with it: invoice.void, or invoice.').optional(),
  subject: text('Subject', 'Only events about this document, partner, month or file.').optional(),
  by: text('By', 'Only events of this person.').optional(),
  from: date('From', 'On or after this day (UTC).').optional(),
  to: date('To', 'On or before this day (UTC).').optional(),
});

/** Their details concern only one partner. */
const OF_ONE_PARTNER = '^(invoice|partner|client|webhook|dispute)[.]';

const ASKED = `(:after::bigint IS NULL OR e.event_id < :after::bigint)
       AND (:by::text IS NULL OR e.user_id = ANY (:users::bigint[])
            OR (e.user_id IS NULL AND coalesce(e.claimed_by, lower(e.os_user)) = ANY (:names::text[])))
       AND (:subject::text IS NULL
            OR e.subject = ANY (array_prepend(:subject::text, commitments_to(ARRAY[:subject::text]))))
       -- greatest() and least() ignore nulls.
       AND e.occurred_at >= coalesce(greatest(:from::date, (:firstMonth::text || '-01')::date), '-infinity')
                            ::timestamp AT TIME ZONE 'UTC'
       AND e.occurred_at < (coalesce(least(:to::date, last_day(:lastMonth::text)), 'infinity') + 1)
                           ::timestamp AT TIME ZONE 'UTC'
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
const readActions = queryingColumn<string>(`
  WITH RECURSIVE found AS (
    SELECT min(action) AS action FROM audit_events
    UNION ALL
    SELECT (SELECT min(e.action) FROM audit_events e WHERE e.action > f.action) FROM found f
    WHERE f.action IS NOT NULL
  )
  SELECT action FROM found WHERE action IS NOT NULL`);

const readUserIds = queryingColumn<number, { by: string | null }>(
  `SELECT user_id FROM users WHERE lower(personal(login)) = lower(:by)`,
);

const readNames = queryingColumn<string, { by: string | null }>(`
  SELECT lower(:by) UNION ALL SELECT commitment FROM personal_texts WHERE lower(text) = lower(:by)`);

type Asked = ListQuery<z.output<typeof filters>>;

const sourceOfEvents = ({ filter: { action } }: Asked) =>
  action === undefined ? `(SELECT * FROM audit_events e WHERE ${ASKED})` : EVENTS_OF_ACTIONS;

async function parametersOf(tx: Transaction, asked: Asked) {
  const { scope, after, limit } = asked;
  const filter = given(filters, asked.filter);
  const { action, by } = filter;
  return {
    ...{ ...filter, ...periodGiven(asked), scope, after, limit, own: OF_ONE_PARTNER },
    users: by === null ? [] : await readUserIds(tx, { by }),
    names: by === null ? [] : await readNames(tx, { by }),
    actions:
      action === null ? [] : (await readActions(tx)).filter((each) => each === action || each.startsWith(`${action}.`)),
  };
}

/**
 * A user limited to some partners sees only events about them and their documents; others can reveal other partners. A
 * user limited to some months sees their events.
 */
const readEvents = async (tx: Transaction, asked: Asked): Promise<ListedEvent[]> =>
  query(
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
     FROM ${sourceOfEvents(asked)} AS e
     LEFT JOIN users u USING (user_id)
     ORDER BY e.event_id DESC LIMIT :limit`,
    await parametersOf(tx, asked),
  );

/** Counts without the subjects and details of events. */
async function countEvents(tx: Transaction, asked: Asked): Promise<Sums> {
  const [{ count } = { count: 0 }] = await query<{ count: number }>(
    tx,
    `SELECT count(*)::int AS count FROM (SELECT FROM ${sourceOfEvents(asked)} AS e LIMIT :limit) AS counted`,
    await parametersOf(tx, { ...asked, limit: MOST_COUNTED + 1 }),
  );
  return { count: count > MOST_COUNTED ? null : count, totals: [] };
}

/** A file that a command read is named without its place on the server. */
const withoutFolder = (text: string) => (text.startsWith('/') ? text.replace(/^(\/[^/\n]+)+\//, '') : text);

const detailsOf = ({ details }: ListedEvent) =>
  Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) =>
      name === 'changes' && Array.isArray(value)
        ? (value as readonly FieldChange[]).map(fromOldToNew).join('; ')
        : `${fieldWords(name)}: ${withoutFolder(inWords(value))}`,
    )
    .join('; ');

const fromOldToNew = ({ field, old, new: now }: FieldChange) =>
  `${fieldWords(field)}: ${inWords(old)} → ${inWords(now)}`;

export const auditEvents = defineList({
  command: 'audit list',
  summary: 'List audit events: who did what, when and from where, latest first',
  most: 500,
  title: 'Events',
  one: 'event',
  ofPeriod: true,
  none: 'Nothing was recorded yet.',
  filters,
  sorts: ['-event_id', '-event_id'],
  columns: {
    event_id: { type: 'count' },
    occurred_at: { heading: 'At', type: 'instant' },
    action: {},
    what: {
      heading: 'Action',
      value: ({ action }) => ACTIONS.get(action)?.title ?? capitalized(action.replaceAll(/[._]/g, ' ')),
      to: ({ action }) => ['audit', { action }],
    },
    subject: {},
    about: {
      heading: 'Subject',
      look: 'wrap',
      value: ({ subject }) => withoutFolder(subject),
      to: ({ of, subject }) =>
        of === null ? ['audit', { subject }] : [of === 'document' ? 'invoices' : 'partners', subject],
    },
    by: {
      cut: true,
      value: ({ by, os_user, via }) => (by === os_user ? sourceOf({ via }) : by),
      to: ({ by }) => ['audit', { by }],
    },
    os_user: { heading: 'System user' },
    host: {},
    via: {},
    details: { look: 'fold', value: detailsOf },
  },
  sheet: names('event_id occurred_at action subject by os_user host via details'),
  terminal: names('occurred_at action about by'),
  page: names('what occurred_at about by host details'),
  key: ({ event_id }) => String(event_id),
  read: readEvents,
  sums: countEvents,
});
