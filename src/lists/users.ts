/** Users and their roles: `reckoner user list` and the console's Users. */
import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { rolesInWords } from '#people/roles';
import { ListedUser, readUsers } from '#people/users.sql';
import { names, plural } from '#text';
import { defineList, ListQuery, pageOf } from './list.ts';

const keyOf = ({ user_id }: ListedUser) => String(user_id);

const readRows = async (tx: Transaction, asked: ListQuery<unknown>) =>
  pageOf(await readUsers(tx, { now: asked.context.environment.now().toISO() }), asked, keyOf);

export const userJson = ({ user_id, kind, login, name, roles, recorded_at, ended_at, ...rest }: ListedUser) => ({
  ...{ user_id, kind, login, name, roles, created_at: recorded_at, deactivated_at: ended_at, ...rest },
});

const rolesOf = ({ kind, roles }: ListedUser) => (kind === 'program' ? 'program' : rolesInWords(roles));

/** What readers get of an erased text, as `personal` in migrations/002_people.sql. */
const ERASED = '(erased)';

/** A program has no actions, and neither has a user whose personal data is erased. */
function remediesOf({ login, kind, ended_at, sessions }: ListedUser) {
  if (kind === 'program' || login === ERASED) return [];
  if (ended_at !== null) {
    return [{ label: 'Erase personal data', action: 'person.erase', input: { user: login }, partner: null }];
  }
  const known = { input: { login }, partner: null };
  return [
    { label: 'Change roles', action: 'user.role', ...known },
    { label: 'New sign-in link', action: 'user.link', ...known },
    ...(sessions > 0 ? [{ label: 'End all sessions', action: 'user.sign_out', ...known }] : []),
    { label: 'Deactivate', action: 'user.deactivate', ...known },
  ];
}

export const users = defineList({
  command: 'user list',
  summary: 'List users with their roles',
  title: 'Users',
  one: 'user',
  ofLedger: true,
  none: 'There are no users.',
  first: { label: 'Make the first one, an administrator,', action: 'user.invite', input: {} },
  filters: z.strictObject({}),
  sorts: ['login', 'login'],
  columns: {
    login: { heading: 'User', cut: true, to: ({ login }) => ['audit', { by: login }] },
    name: {},
    own_name: { heading: 'Name', cut: true, value: ({ login, name }) => (name === login ? '' : name) },
    kind: {},
    roles: { value: ({ roles }) => rolesInWords(roles) },
    roles_now: {
      ...{ heading: 'Roles', cut: true },
      value: ({ roles, ended_at }) =>
        ended_at === null ? rolesInWords(roles) : `deactivated ${ended_at.slice(0, 10)}`,
    },
    standing: { heading: 'Roles', value: (row) => (row.ended_at === null ? rolesOf(row) : 'deactivated') },
    created_at: { heading: 'Since', value: ({ recorded_at }) => recorded_at },
    since: { type: 'date', look: 'soft', value: ({ recorded_at }) => recorded_at },
    deactivated_at: { heading: 'Deactivated', value: ({ ended_at }) => ended_at },
    last_seen_at: { heading: 'Last seen', type: 'instant', look: 'soft' },
    sessions: { type: 'count' },
    signed_in: {
      type: 'marks',
      value: ({ sessions }) => (sessions > 0 ? [{ text: plural(sessions, 'session'), tone: 'good' }] : []),
    },
    passkeys: { type: 'count' },
    changes: { heading: 'History', value: () => 'Changes', to: ({ login }) => ['audit', { subject: login }] },
  },
  sheet: names('login name kind roles created_at deactivated_at last_seen_at sessions passkeys'),
  terminal: names('login own_name roles_now last_seen_at'),
  page: names('login own_name standing since last_seen_at signed_in passkeys changes'),
  remedies: remediesOf,
  key: keyOf,
  read: readRows,
  json: async (_tx, rows) => rows.map(userJson),
});
