/**
 * Actions on users for random histories: who is there, with which roles, and who is responsible for what waits. Beside the
 * books each history keeps a plain list of both, which says beforehand what is refused, and is compared after each action.
 */
import { expect } from 'vitest';
import type { ActionContext } from '../../src/actions/action.ts';
import { userDeactivate, userInvite, userLink, userRole, userSignOut } from '../../src/actions/user.ts';
import { workAssign } from '../../src/actions/work/assign.ts';
import { readWork } from '../../src/actions/work/items.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import type { Month } from '../../src/month.ts';
import { ROLES, type Role } from '../../src/people/roles.ts';
import { beginSession } from '../../src/people/sessions.ts';
import { takeSignInLink } from '../../src/people/sign-in.sql.ts';
import { readUsers } from '../../src/people/users.sql.ts';
import { identify } from '../../src/people/users.ts';
import type { Action, History } from '../property/actions.ts';
import { confirmed } from '../property/confirmed.ts';

/** `finance` for all partners, `finance@p-1` for one. */
type Held = string;

const ADMINISTRATOR = 'ada@issuer.example';
const LOGINS = ['mara', 'lee', 'sam', 'pat', 'kim'].map((name) => `${name}@issuer.example`);

interface People {
  /** Active persons with their roles. */
  readonly roles: Map<string, Set<Held>>;
  /** Viewers whose access is limited. */
  readonly limited: Set<string>;
  /** Whoever is responsible, by the item of the work queue. */
  readonly responsible: Map<string, string>;
}

const known = new WeakMap<History, People>();

export const pick = <Value>({ random }: History, values: readonly Value[]): Value | undefined =>
  values[Math.floor(random() * values.length)];

/** The code of what a piece of work was refused with; `done` where it was not. */
export async function outcomeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'done';
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
}

const heldAs = (role: string, partnerId: string | null): Held => (partnerId === null ? role : `${role}@${partnerId}`);

/** Whether a person has a role over all of these partners; 'all': over the whole ledger. To read, any role will do. */
export function hasRole(held: ReadonlySet<Held>, role: Role, partners: readonly string[] | 'all'): boolean {
  const over = [...held].filter((each) => role === 'viewer' || each.split('@')[0] === role);
  if (over.some((each) => !each.includes('@'))) return true;
  return partners !== 'all' && partners.every((id) => over.some((each) => each.endsWith(`@${id}`)));
}

/** The people of this history; the first time somebody administrates, two ask, and two approve. */
export async function peopleOf(history: History): Promise<People> {
  const there = known.get(history);
  if (there !== undefined) return there;
  const people: People = { roles: new Map(), limited: new Set(), responsible: new Map() };
  known.set(history, people);
  await invite(history, people, ADMINISTRATOR, ['administrator']);
  await invite(history, people, LOGINS[0] as string, ['finance', 'approver']);
  await invite(history, people, LOGINS[1] as string, ['approver']);
  await invite(history, people, LOGINS[2] as string, ['finance']);
  await invite(history, people, LOGINS[3] as string, ['approver'], 'p-1');
  return people;
}

/** What a user works with. */
export async function working({ world }: History, login: string): Promise<ActionContext> {
  const { database, environment, settings } = world;
  const actor = await database.reading((tx) => identify(tx, world.actor, { login, unattended: false }));
  return { database, environment, settings, actor };
}

/** Somebody who may manage users: there always is one. */
function manager(history: History, { roles }: People): string {
  const found = [...roles].filter(([, held]) => held.has('administrator')).map(([login]) => login);
  const login = pick(history, found);
  if (login === undefined) throw new Error('there is no administrator left');
  return login;
}

async function invite(
  history: History,
  people: People,
  login: string,
  roles: readonly Role[],
  partnerId?: string,
): Promise<void> {
  const { world } = history;
  const { database, environment, settings, actor } = world;
  const context =
    people.roles.size === 0
      ? { database, environment, settings, actor }
      : await working(history, manager(history, people));
  const isLimited = roles.join() === 'viewer' && history.random() < 0.5;
  const limits = isLimited ? { from: '2026-07' as Month, to: '2026-08' as Month } : {};
  const input = { login, roles: [...roles], ...(partnerId !== undefined && { partnerId }), ...limits };
  const done = await outcomeOf(confirmed(context, userInvite, { ...input, noMail: true }));
  expect([login, done]).toEqual([login, people.roles.has(login) ? 'user_exists' : 'done']);
  if (done !== 'done') return;
  people.roles.set(login, new Set(roles.map((role) => heldAs(role, partnerId ?? null))));
  people.limited[isLimited ? 'add' : 'delete'](login);
}

/** The users of the ledger are those of the list, and so are their roles. */
async function expectPeople({ world }: History, { roles }: People): Promise<void> {
  const now = world.environment.now().toISO();
  const users = await world.database.reading((tx) => readUsers(tx, { now }));
  const active = users.filter(({ kind, ended_at }) => kind === 'person' && ended_at === null);
  const found = active.map((each): [string, string[]] => [
    each.login,
    each.roles.map(({ role, partner_id }) => heldAs(role, partner_id)).sort(),
  ]);
  const expected = [...roles].map(([login, held]): [string, string[]] => [login, [...held].sort()]);
  const byLogin = ([one]: [string, string[]], [other]: [string, string[]]) => (one < other ? -1 : 1);
  expect(found.sort(byLogin)).toEqual(expected.sort(byLogin));
}

const administrators = ({ roles }: People): number =>
  [...roles.values()].filter((held) => held.has('administrator')).length;

async function inviteSomebody(history: History): Promise<boolean> {
  const people = await peopleOf(history);
  const login = pick(history, LOGINS) as string;
  const role = pick(history, ROLES) as Role;
  const partnerId = role === 'administrator' ? undefined : pick(history, [undefined, 'p-1', 'p-2']);
  const isNew = !people.roles.has(login);
  await invite(history, people, login, [role], partnerId);
  await expectPeople(history, people);
  return isNew;
}

/** Grants one role, revokes one, or both: what the user does not have, and the last administrator's, cannot be revoked. */
async function changeSomebody(history: History): Promise<boolean> {
  const people = await peopleOf(history);
  const { random } = history;
  const login = pick(history, [...people.roles.keys()]) as string;
  const held = people.roles.get(login) as Set<Held>;
  const partner = pick(history, [null, null, 'p-1', 'p-2']) ?? null;
  const someRole = () => {
    const role = pick(history, partner === null ? ROLES : ROLES.filter((each) => each !== 'administrator')) as Role;
    return { role, partner_id: partner };
  };
  const owned = pick(
    history,
    [...held].filter((each) => each === heldAs(each.split('@')[0] as Role, partner)),
  );
  const strange = someRole();
  const ownedOrNot =
    owned !== undefined && random() < 0.7 ? { role: owned.split('@')[0] as Role, partner_id: partner } : strange;
  const grant = random() < 0.6 ? [someRole()] : [];
  const revoke = random() < 0.6 ? [ownedOrNot] : [];
  const after = new Set(held);
  // What is granted and had before stays; what is revoked was had before.
  for (const { role, partner_id } of grant) after.add(heldAs(role, partner_id));
  for (const { role, partner_id } of revoke) after.delete(heldAs(role, partner_id));
  const had = revoke.every(({ role, partner_id }) => held.has(heldAs(role, partner_id)));
  const isLast = held.has('administrator') && !after.has('administrator') && administrators(people) === 1;
  const { limited } = people;
  const isRefused = limited.has(login) && [...after].some((each) => !each.startsWith('viewer'));
  const expected = !had
    ? 'role_unchanged'
    : isLast
      ? 'last_administrator'
      : isRefused
        ? 'limits_of_viewers_only'
        : 'done';
  const context = await working(history, manager(history, people));
  const named = (of: readonly { role: Role }[]) => (of.length === 0 ? undefined : of.map(({ role }) => role));
  const input = { login, grant: named(grant), revoke: named(revoke), partnerId: partner ?? undefined };
  if (grant.length + revoke.length === 0) return false;
  const change = confirmed(context, userRole, input);
  expect([login, grant, revoke, await outcomeOf(change)]).toEqual([login, grant, revoke, expected]);
  if (expected === 'done') people.roles.set(login, after);
  await expectPeople(history, people);
  return expected === 'done';
}

/** Somebody gets a new link and signs in by it, once; what is open is ended by an administrator. */
async function signSomebodyOut(history: History): Promise<boolean> {
  const people = await peopleOf(history);
  const { world } = history;
  const login = pick(history, [...people.roles.keys()]) as string;
  const context = await working(history, manager(history, people));
  const json = await confirmed(context, userLink, { login, noMail: true });
  const secret = (json as { url: string }).url.replace(/.*#/, '');
  const signIn = () =>
    world.database.transaction(async (tx) => {
      const user = await takeSignInLink(tx, { secret, now: world.environment.now().toISO() });
      const given = { method: 'link', network: '192.0.2.0/24', browser: 'a test' } as const;
      if (user !== undefined) await beginSession(tx, context, { user, ...given });
      return user?.login;
    });
  expect([await signIn(), await signIn()]).toEqual([login, undefined]);
  await confirmed(context, userSignOut, { login });
  const now = world.environment.now().toISO();
  const [user] = await world.database.reading((tx) => readUsers(tx, { login, now }));
  expect(user?.sessions).toBe(0);
  return true;
}

async function endSomebody(history: History): Promise<boolean> {
  const people = await peopleOf(history);
  const login = pick(history, [...people.roles.keys()]) as string;
  const isLast = people.roles.get(login)?.has('administrator') === true && administrators(people) === 1;
  const context = await working(history, manager(history, people));
  const end = confirmed(context, userDeactivate, { login, reason: 'left' });
  expect([login, await outcomeOf(end)]).toEqual([login, isLast ? 'last_administrator' : 'done']);
  if (!isLast) people.roles.delete(login);
  // Nothing is that user's any more, even if the same address is invited again.
  for (const [item, whose] of people.responsible) if (!people.roles.has(whose)) people.responsible.delete(item);
  await expectPeople(history, people);
  return !isLast;
}

/** Somebody becomes responsible for an item of the work queue, or nobody any more. */
async function assignSomething(history: History): Promise<boolean> {
  const people = await peopleOf(history);
  const { world } = history;
  const question = () => {
    const now = world.environment.now();
    return { settings: world.settings, scope: null, now: now.toMillis(), today: now.toISODate() };
  };
  const items = await world.database.reading((tx) => readWork(tx, question()));
  const item = pick(history, items);
  const by = pick(history, [...people.roles.keys()]) as string;
  if (item === undefined) return false;
  const partners = item.partners.length === 0 ? ('all' as const) : item.partners.map(({ id }) => id);
  const to = pick(history, [undefined, 'cron', 'gone@issuer.example', ...LOGINS]);
  const before = people.responsible.get(item.item);
  const held = people.roles.get(to ?? '');
  const expected = !hasRole(people.roles.get(by) as Set<Held>, 'finance', partners)
    ? 'role_needed'
    : to === 'cron'
      ? 'work_assignee_unfit'
      : to !== undefined && held === undefined
        ? 'user_unknown'
        : held !== undefined && !hasRole(held, 'viewer', partners)
          ? 'work_assignee_unfit'
          : to === before
            ? 'work_assigned_already'
            : 'done';
  const context = await working(history, by);
  const done = await outcomeOf(confirmed(context, workAssign, { item: item.item, ...(to !== undefined && { to }) }));
  expect([item.item, by, to, done]).toEqual([item.item, by, to, expected]);
  if (done === 'done' && to !== undefined) people.responsible.set(item.item, to);
  if (done === 'done' && to === undefined) people.responsible.delete(item.item);
  for (const each of await world.database.reading((tx) => readWork(tx, question()))) {
    const whose = people.responsible.get(each.item) ?? null;
    expect([each.item, each.assignee?.login ?? null]).toEqual([each.item, whose]);
  }
  return done === 'done';
}

export const PEOPLE_ACTS: readonly Action[] = [
  { name: 'a user is invited', weight: 1, run: inviteSomebody },
  { name: 'the roles of a user change', weight: 1, run: changeSomebody },
  { name: 'a user is deactivated', weight: 0.5, run: endSomebody },
  { name: 'a user signs in by a new link, and is signed out', weight: 0.5, run: signSomebodyOut },
  { name: 'work is assigned', weight: 2, run: assignSomething },
];
