/** A review of who may see and do what, as of a day: `reckoner report access`, and the console's Access. */

import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { Month } from '#month';
import { rolesInWords } from '#people/roles';
import { names } from '#text';
import { date, defineList, flag, ListQuery, pageOf } from './list.ts';

/** A role that was granted to a user. */
type Access = Readonly<{
  user_role_id: number;
  login: string;
  name: string;
  role: string;
  partner_id: string | null;
  from_month: Month | null;
  to_month: Month | null;
  last_day: string | null;
  granted_at: string;
  granted_by: string;
  approved_by: string | null;
  last_seen_at: string | null;
  signs_in_by: readonly string[];
  /** When the role was revoked or the user deactivated, or after the last day of the access. */
  ended_on: string | null;
}>;

const filters = z.strictObject({
  as_of: date('As of', 'The access at the end of this day. Default: now.').optional(),
  ended: flag('Ended', 'Also access that had ended by then.').optional(),
});

/** A grant lasts until the next row of the same user, role, partner and source, which revokes it. */
const STATEMENT = `
     WITH day AS (
       SELECT :asOf::date AS day, (:asOf::date + 1)::timestamp AT TIME ZONE :zone AS ends_at
     ), grants AS (
       SELECT r.*, lead(r.recorded_at) OVER (
                PARTITION BY r.user_id, r.role, r.partner_id, r.source ORDER BY r.user_role_id) AS revoked_at
       FROM user_roles r
     ), found AS (
       SELECT g.user_role_id, u.user_id, u.kind, personal(u.login) AS login, personal(u.name) AS name, g.role,
              g.partner_id, l.from_month, l.to_month, l.last_day, g.recorded_at AS granted_at, g.event_id, g.source,
              d.ends_at, x.ended_at, l.last_day < d.day AS is_over
       FROM grants g CROSS JOIN day d JOIN users u USING (user_id) LEFT JOIN user_ends e USING (user_id)
       CROSS JOIN LATERAL (
         SELECT min(at) AS ended_at FROM unnest(ARRAY[g.revoked_at, e.recorded_at]) AS ends (at)
         WHERE at < d.ends_at) AS x
       LEFT JOIN LATERAL (
         SELECT * FROM user_limits x WHERE x.user_id = g.user_id AND x.recorded_at < d.ends_at
         ORDER BY user_limit_id DESC LIMIT 1) AS l ON true
       WHERE g.action = 'grant' AND g.recorded_at < d.ends_at
     )
     SELECT f.user_role_id, f.login, f.name, f.role, f.partner_id, f.from_month, f.to_month, f.last_day::text,
            f.granted_at,
            CASE f.source WHEN 'claim' THEN 'identity provider'
                          ELSE coalesce(personal(b.login), personal(v.claimed_by), v.os_user) END AS granted_by,
            personal(v.details->'approval'->>'approved_by') AS approved_by,
            greatest((SELECT max(occurred_at) FROM audit_events s
                      WHERE s.user_id = f.user_id AND s.occurred_at < f.ends_at),
                     (SELECT max(last_seen_at) FROM sessions s
                      WHERE s.user_id = f.user_id AND s.last_seen_at < f.ends_at)) AS last_seen_at,
            array_remove(ARRAY[
              CASE WHEN EXISTS (
                SELECT FROM passkeys p LEFT JOIN passkey_ends x USING (passkey_id)
                WHERE p.user_id = f.user_id AND p.recorded_at < f.ends_at
                  AND coalesce(x.recorded_at >= f.ends_at, true)) THEN 'passkey' END,
              CASE WHEN EXISTS (
                SELECT FROM user_identities i
                WHERE i.user_id = f.user_id AND i.recorded_at < f.ends_at) THEN 'identity provider' END,
              CASE f.kind WHEN 'program' THEN 'program' END], NULL) AS signs_in_by,
            coalesce((f.ended_at AT TIME ZONE :zone)::date, CASE WHEN f.is_over THEN f.last_day END)::text AS ended_on
     FROM found f JOIN audit_events v USING (event_id) LEFT JOIN users b ON b.user_id = v.user_id
     WHERE :ended::boolean OR (f.ended_at IS NULL AND f.is_over IS NOT TRUE)
     ORDER BY f.login COLLATE "C", f.user_role_id`;

const keyOf = ({ user_role_id }: Access) => String(user_role_id);

async function readRows(tx: Transaction, asked: ListQuery<z.output<typeof filters>>): Promise<Access[]> {
  const { filter, today, context } = asked;
  const { as_of: asOf = today, ended = false } = filter;
  return pageOf(await query<Access>(tx, STATEMENT, { asOf, ended, zone: context.settings.time_zone }), asked, keyOf);
}

export const access = defineList({
  command: 'report access',
  summary: 'Review who has access: roles, limits, who granted and approved them, last seen',
  title: 'Access',
  one: 'role',
  ofLedger: true,
  none: 'There are no users.',
  first: { label: 'Make the first one, an administrator,', action: 'user.invite', input: {} },
  filters,
  views: [
    ['In force', {}],
    ['With ended', { ended: 'yes' }],
  ],
  sorts: ['login', 'login'],
  columns: {
    login: { heading: 'User', cut: true, to: ({ login }) => ['audit', { subject: login }] },
    name: { cut: true },
    role: {},
    partner_id: {},
    has: {
      heading: 'Role',
      value: ({ role, partner_id }) => rolesInWords([{ role: role as 'viewer', partner_id }]),
    },
    from_month: { type: 'month' },
    to_month: { type: 'month' },
    months: {
      value: ({ from_month: from, to_month: to }) => (from === null ? '' : from === to ? from : `${from} to ${to}`),
      look: 'line',
    },
    last_day: { heading: 'Until', type: 'date' },
    granted_at: { heading: 'Since', type: 'instant', look: 'soft' },
    granted_on: { heading: 'Since', type: 'date', look: 'soft', value: ({ granted_at }) => granted_at },
    granted_by: { look: 'soft', cut: true },
    approved_by: { look: 'soft', cut: true },
    last_seen_at: { heading: 'Last seen', type: 'instant', look: 'soft' },
    seen_on: { heading: 'Last seen', type: 'date', look: 'soft', value: ({ last_seen_at }) => last_seen_at },
    signs_in_by: {
      heading: 'Signs in by',
      value: ({ signs_in_by: by }) => (by.length === 0 ? 'link' : by.join(', ')),
    },
    ended_on: { heading: 'Ended', type: 'date' },
  },
  sheet: names(
    'login name role partner_id from_month to_month last_day granted_at granted_by approved_by last_seen_at signs_in_by',
    'ended_on',
  ),
  terminal: names('login has months last_day granted_on granted_by approved_by seen_on signs_in_by ended_on'),
  page: names('login has months last_day granted_on granted_by approved_by seen_on signs_in_by ended_on'),
  key: keyOf,
  read: readRows,
});
