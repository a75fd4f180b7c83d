/** A viewer's access that is limited to months and ends by itself: how it is given, kept, proved and reviewed. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAction } from '../../src/actions/run.ts';
import { userInvite, userRole } from '../../src/actions/user.ts';
import { verify } from '../../src/audit/verify.ts';
import { access } from '../../src/lists/access.ts';
import { userOfIdentity } from '../../src/people/identities.ts';
import { readActiveUser } from '../../src/people/users.sql.ts';
import { failing } from '../audit/failing.ts';
import { type Owner, openOwner } from '../audit/owner.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, openApproving } from '../support/approving.ts';
import { ADMINISTRATOR } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { World } from '../support/world.ts';

const KIM = 'kim@audit.example';
const QUARTER = { from: '2026-07', to: '2026-09' } as const;

let world: World;
let owner: Owner;
beforeAll(async () => {
  world = await openApproving();
  owner = openOwner(world);
  await invited({ login: KIM, roles: ['viewer'], ...QUARTER, until: '2027-03-31' });
});
afterAll(async () => {
  await owner.close();
  await world.end();
});

const ada = () => as(world, ADMINISTRATOR, {});
const invited = async (input: object) =>
  runAction(await ada(), userInvite, { noMail: true, ...input } as Parameters<typeof runAction>[2] as never);
const changed = async (input: object) => runAction(await ada(), userRole, { login: KIM, ...input } as never);
const limitsOf = async (login = KIM) =>
  (await world.database.reading((tx) => readActiveUser(tx, login)))?.limits ?? null;

describe('limits', () => {
  test('are what the administrator gave, and a change keeps what it does not name', async () => {
    expect(await limitsOf()).toEqual({ ...QUARTER, until: '2027-03-31' });
    const { text } = await changed({ until: '2027-06-30' });
    expect(text).toBe(`${KIM} now has: viewer, 2026-07 to 2026-09, until 2027-06-30. The user is signed out.`);
    expect(await limitsOf()).toEqual({ ...QUARTER, until: '2027-06-30' });
    await changed({ endLimits: true });
    expect(await limitsOf()).toBeNull();
    await changed({ ...QUARTER, until: '2027-03-31' });
    const events = await world.sql<{ limits: object }>(
      `SELECT details->'limits' AS limits FROM audit_events WHERE action LIKE 'user.%' AND jsonb_exists(details, 'limits')
       ORDER BY event_id`,
    );
    expect(events.map(({ limits }) => limits)).toEqual([
      { ...QUARTER, until: '2027-03-31' },
      { ...QUARTER, until: '2027-06-30' },
      { from: null, to: null, until: null },
      { ...QUARTER, until: '2027-03-31' },
    ]);
  });

  test.each([
    ['only one month', { from: '2026-07' }, /needs it/],
    ['months in the wrong order', { from: '2026-09', to: '2026-07' }, /is before 2026-09/],
    ['a last day that has passed', { until: '2026-07-01' }, /has passed/],
    ['an end of limits beside limits', { endLimits: true, until: '2027-12-31' }, /cannot be given with limits/],
    ['another role', { grant: ['finance'] }, /has the role finance\. Only the access of a viewer can be limited/],
  ])('are refused with %s', async (_, input, says) => {
    await expect(changed(input)).rejects.toThrow(says);
    expect(await limitsOf()).toEqual({ ...QUARTER, until: '2027-03-31' });
  });

  test('are not for a user with another role, and the identity provider gives a limited viewer none', async () => {
    const other = await refusalOf(invited({ login: 'fay@issuer.example', roles: ['finance'], until: '2027-03-31' }));
    expect(other.code).toBe('limits_of_viewers_only');
    const identity = {
      ...{ issuer: 'https://id.example', subject: 'kim', email: KIM, emailVerified: true, name: 'Kim' },
      roles: ['finance', 'viewer'] as const,
    };
    const found = await world.database.transaction((tx) => userOfIdentity(tx, world, identity));
    expect(found).toMatchObject({ user: { roles: [{ role: 'viewer' }], limits: QUARTER } });
  });

  test.each([
    ['user_limit_has_both_months', `INSERT INTO user_limits (user_id, from_month, recorded_at, event_id)`, `'2026-07'`],
    [
      'user_limit_months_in_order',
      `INSERT INTO user_limits (user_id, to_month, from_month, recorded_at, event_id)`,
      `'2026-07', '2026-09'`,
    ],
  ])('that are wrong cannot be written: %s', async (constraint, insert, values) => {
    const written = world.sql(
      `${insert} SELECT user_id, ${values}, recorded_at, event_id FROM user_limits ORDER BY user_limit_id LIMIT 1`,
    );
    await expect(written).rejects.toMatchObject({ constraint });
  });

  test('beside another role cannot be written, in either order', async () => {
    const [admin] = await world.sql<{ user_id: number }>(
      `SELECT user_id FROM users WHERE personal(login) = '${ADMINISTRATOR}'`,
    );
    for (const statement of [
      `INSERT INTO user_limits (user_id, last_day, recorded_at, event_id)
       SELECT ${admin?.user_id}, '2027-03-31', recorded_at, event_id FROM user_limits LIMIT 1`,
      `INSERT INTO user_roles (user_id, action, role, source, recorded_at, event_id)
       SELECT user_id, 'grant', 'finance', 'administrator', recorded_at, event_id FROM user_limits LIMIT 1`,
    ])
      await expect(world.sql(statement)).rejects.toMatchObject({ constraint: 'limits_of_viewers_only' });
  });
});

describe('the rules', () => {
  const found = (...statements: readonly string[]) =>
    owner.undone(async (tx) => {
      await tx.knex.raw(GUARDS_OFF);
      for (const statement of statements) await tx.knex.raw(statement);
      await tx.knex.raw(GUARDS_ON);
      return failing(await verify(tx, undefined, { schema: world.schema }));
    });
  const LAST = '(SELECT max(user_limit_id) FROM user_limits)';

  test('hold', async () => {
    expect(await found()).toEqual([]);
  });

  test.each([
    [
      'later months than the event names',
      'details_of_event',
      `UPDATE user_limits SET to_month = '2026-12' WHERE to_month IS NOT NULL`,
    ],
    ['a later last day than the event names', 'details_of_event', `UPDATE user_limits SET last_day = last_day + 1`],
    [
      'limits that no event gave',
      'event_makes_fact',
      `INSERT INTO user_limits (user_id, recorded_at, event_id)
       SELECT l.user_id, e.occurred_at, e.event_id FROM user_limits l, audit_events e
       WHERE l.user_limit_id = ${LAST} AND e.action = 'month.close'`,
    ],
    [
      'limits of a user with another role',
      'user_limited',
      `UPDATE user_limits SET user_id = (SELECT min(user_id) FROM user_roles WHERE role = 'administrator')`,
    ],
    [
      'an act after the last day',
      'user_limited',
      `UPDATE user_limits SET last_day = '2026-01-31' WHERE user_limit_id = ${LAST};
       UPDATE audit_events SET user_id = (SELECT user_id FROM user_limits WHERE user_limit_id = ${LAST})
       WHERE event_id = (SELECT max(event_id) FROM audit_events)`,
    ],
    ['the end of the limits removed', 'event_has_fact', `DELETE FROM user_limits WHERE from_month IS NULL`],
    ['all limits removed', 'event_has_fact', `DELETE FROM user_limits WHERE user_limit_id = ${LAST}`],
  ])('find %s', async (_, check, statement) => {
    expect(await found(statement)).toContain(check);
  });
});

describe('the review of access', () => {
  const review = (filter: { as_of?: string; ended?: boolean } = {}) =>
    world.database.reading((tx) =>
      access.read(tx, {
        ...{ filter, scope: null, period: null, today: '2026-10-15', sort: 'login', after: null, limit: null },
        context: world,
      }),
    );

  test('has each role with its limits, who granted it, and how the user signs in', async () => {
    const rows = await review();
    const kim = rows.filter(({ login }) => login === KIM);
    expect(kim).toMatchObject([
      { role: 'viewer', from_month: '2026-07', to_month: '2026-09', last_day: '2027-03-31', granted_by: ADMINISTRATOR },
      { role: 'viewer', granted_by: 'identity provider', signs_in_by: ['identity provider'] },
    ]);
    expect(rows.filter(({ login }) => login === 'mara@issuer.example').map(({ role }) => role)).toEqual([
      'finance',
      'approver',
    ]);
  });

  test('is as of a day: before the invitation there was no access, and after its last day it has ended', async () => {
    expect((await review({ as_of: '2026-01-31' })).length).toBe(0);
    expect((await review({ as_of: '2027-03-31' })).some(({ login }) => login === KIM)).toBe(true);
    expect((await review({ as_of: '2027-04-01' })).some(({ login }) => login === KIM)).toBe(false);
    const ended = (await review({ as_of: '2027-04-01', ended: true })).filter(({ login }) => login === KIM);
    expect(ended.map(({ ended_on }) => ended_on)).toEqual(['2027-03-31', '2027-03-31']);
  });
});
