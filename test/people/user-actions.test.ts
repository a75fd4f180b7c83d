/** Users are invited, given roles, deactivated and signed out in the console as by commands, and a link is shown once. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { runAction } from '../../src/actions/run.ts';
import { userDeactivate, userInvite, userLink, userRole, userSignOut } from '../../src/actions/user.ts';
import type { Settings } from '../../src/config/settings.ts';
import { readActiveUser } from '../../src/people/users.sql.ts';
import { refusalOf } from '../close/refusal.ts';
import { as } from '../support/approving.ts';
import {
  ADMINISTRATOR,
  alertOf,
  Browser,
  invite,
  type Page,
  serveConsole,
  signedIn,
  wordsOf,
} from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const LEE = 'lee@issuer.example';
const RULES: Settings['approvals'] = {
  ...{ 'user.invite': { always: true }, 'user.link': { always: true } },
  ...{ 'user.role': { always: true }, 'user.deactivate': { always: true } },
};
const NONE: Settings['approvals'] = {};

let world: World;
let served: Served;
let ada: Browser;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
  // As the command does it before there are users, whatever the rules say.
  const { actor, database, environment, settings } = world;
  const shell = { actor, database, environment, settings: { ...settings, approvals: RULES } };
  await runAction(shell, userInvite, { login: ADMINISTRATOR, noMail: true });
  await invite(world, LEE, { roles: ['approver'] });
  served = await serveConsole(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});
beforeEach(async () => {
  ada = await signedIn(served, await invite(world, ADMINISTRATOR));
});

type Fields = readonly (readonly [string, string])[];
const action = (name: string, fields: Fields, browser = ada) => browser.post(`/console/actions/${name}`, fields);

/** Fills the form in, looks at what it would do, and does that. */
async function done(name: string, fields: Fields, browser = ada): Promise<[preview: Page, done: Page]> {
  const preview = await action(name, [...fields, ['step', 'preview']], browser);
  const shown = /name="shown" value="([^"]+)"/.exec(preview.text)?.[1] ?? alertOf(preview);
  return [preview, await action(name, [...fields, ['shown', shown], ['step', 'confirm']], browser)];
}

const LINK = /\/console\/sign-in#([\w-]{43})/;
const linkOn = ({ text }: { text: string }): string => LINK.exec(text)?.[0] ?? '';
const rolesOf = async (login: string) =>
  (await world.database.reading((tx) => readActiveUser(tx, login)))?.roles.map(({ role }) => role);

/** All that the database keeps, as text. */
async function everything(): Promise<string> {
  const tables = await world.sql<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  );
  const each = tables.map(({ name }) => `SELECT (SELECT json_agg(t)::text FROM ${name} t) AS kept`);
  return JSON.stringify(await world.sql(each.join(' UNION ALL ')));
}
const found = async () => {
  const { checks } = await world.verify();
  return checks.filter(({ differences }) => differences.length > 0);
};

describe('in the console', () => {
  test('an administrator invites a user: the preview has no link, what was done shows it once, and it signs in', async () => {
    const [preview, after] = await done('user.invite', [
      ...([
        ['login', 'Mara@issuer.example'],
        ['name', 'Mara'],
        ['roles', 'finance'],
      ] as const),
      ['roles', 'viewer'],
    ]);
    expect(wordsOf(preview)).toMatch(/mara@issuer\.example.*finance, viewer/);
    expect(linkOn(preview)).toBe('');
    expect(wordsOf(after)).toContain('mara@issuer.example is a user now: finance, viewer.');
    const link = linkOn(after);
    expect(await everything()).not.toContain(LINK.exec(link)?.[1]);
    const mara = await signedIn(served, link);
    expect((await new Browser(served.url).post(link)).status).not.toBe(303);
    expect((await mara.get('/console/actions/user.invite')).status).toBe(403);
    const [event] = await world.sql(
      `SELECT action, personal(login) AS login FROM audit_events JOIN users USING (user_id) WHERE personal(subject) = 'mara@issuer.example'`,
    );
    expect(event).toEqual({ action: 'user.invite', login: ADMINISTRATOR });
  });

  test('who is a user is not invited again, but gets another role or another link', async () => {
    const again = await action('user.invite', [
      ['login', 'mara@issuer.example'],
      ['step', 'preview'],
    ]);
    expect(again.status).toBe(422);
    expect(alertOf(again)).toMatch(/mara@issuer\.example is already a user/);
    const before = await signedIn(served, await invite(world, 'mara@issuer.example'));
    const [, changed] = await done('user.role', [
      ...([
        ['login', 'mara@issuer.example'],
        ['grant', 'approver'],
      ] as const),
      ['revoke', 'viewer'],
    ]);
    expect(wordsOf(changed)).toContain('mara@issuer.example now has: approver, finance. The user is signed out.');
    expect((await before.get('/console/account')).status).toBe(303);
    const [preview, made] = await done('user.link', [['login', 'mara@issuer.example']]);
    expect(linkOn(preview)).toBe('');
    await signedIn(served, linkOn(made));
  });

  test('sessions end, and a user ends', async () => {
    const mara = await signedIn(served, await invite(world, 'mara@issuer.example'));
    const [preview, out] = await done('user.sign_out', [['login', 'mara@issuer.example']]);
    expect(wordsOf(preview)).toMatch(/Signed in/);
    expect(wordsOf(out)).toMatch(/\d sessions? of mara@issuer\.example ended\./);
    expect((await mara.get('/console/account')).status).toBe(303);
    const [, ended] = await done('user.deactivate', [
      ['login', 'mara@issuer.example'],
      ['reason', 'left'],
    ]);
    expect(wordsOf(ended)).toContain('mara@issuer.example has been deactivated');
    expect(await rolesOf('mara@issuer.example')).toBeUndefined();
  });

  test('the last administrator stays', async () => {
    for (const [name, fields] of [
      ['user.deactivate', []],
      ['user.role', [['revoke', 'administrator']]],
    ] as const) {
      const refused = await action(name, [['login', ADMINISTRATOR], ...fields, ['step', 'preview']]);
      expect([refused.status, alertOf(refused)]).toEqual([422, expect.stringContaining('is the last administrator')]);
    }
  });

  test('what cannot be is refused beside the form', async () => {
    const step = ['step', 'preview'] as const;
    const said = async (name: string, fields: Fields) => alertOf(await action(name, [...fields, step]));
    expect(await said('user.invite', [['login', 'two@a.example,b@b.example']])).toBe(
      '“E-mail address” is not a single e-mail address.',
    );
    expect(await said('user.role', [['login', LEE]])).toBe('“Grant” names no role, and neither does “Revoke”.');
    expect(await said('user.link', [['login', 'cron']])).toBe('“E-mail address” is a program and cannot sign in.');
    const unknown: Fields = [
      ['login', 'new@issuer.example'],
      ['partnerId', 'p-9'],
    ];
    expect(await said('user.invite', unknown)).toMatch(/^No such partner: p-9/);
  });

  test('administrators manage all users, so that the role is for all partners, and no other role manages any', async () => {
    const narrowed: Fields = [
      ['login', LEE],
      ['grant', 'administrator'],
      ['partnerId', 'p-1'],
      ['step', 'preview'],
    ];
    expect(alertOf(await action('user.role', narrowed))).toBe(
      '“Partner” cannot limit the role administrator, which is for all partners.',
    );
    const lee = await signedIn(served, await invite(world, LEE));
    for (const name of ['user.invite', 'user.link', 'user.role', 'user.deactivate', 'user.sign_out']) {
      const { status } = await action(
        name,
        [
          ['login', ADMINISTRATOR],
          ['grant', 'finance'],
          ['step', 'preview'],
        ],
        lee,
      );
      expect([name, status]).toEqual([name, 403]);
    }
    const page = await lee.get('/console/settings/users');
    expect([page.status, page.text.includes('/console/actions/user.')]).toEqual([200, false]);
    expect((await ada.get('/console/settings/users')).text).toContain('/console/actions/user.invite"');
  });
});

describe('under a rule', () => {
  /** Ada asks, and Lee approves: what the action says then. */
  const approved = async (work: () => Promise<unknown>) => {
    const { code, facts } = await refusalOf(work());
    expect(code).toBe('approval_needed');
    const kept = await everything();
    const lee = await as(world, LEE, RULES);
    return { kept, report: await approveRequest(lee, facts['request_id'] as number, { reason: null }) };
  };

  test('nobody alone makes a user, a link, gives a role or ends a user; and what is kept has no link', async () => {
    const by = await as(world, ADMINISTRATOR, RULES);
    const login = 'pat@issuer.example';
    const invited = await approved(() => runAction(by, userInvite, { login, roles: ['finance'] }));
    const linked = await approved(() => runAction(by, userLink, { login, noMail: true }));
    for (const { report, kept } of [invited, linked]) {
      const secret = LINK.exec(report.text)?.[1] ?? 'none';
      expect(secret).toHaveLength(43);
      expect(kept).not.toMatch(LINK);
      expect(await everything()).not.toContain(secret);
    }
    expect(linked.report.text).not.toContain('ailed');
    await approved(() => runAction(by, userRole, { login, grant: ['approver'] }));
    expect(await rolesOf(login)).toEqual(expect.arrayContaining(['approver', 'finance']));
    await approved(() => runAction(by, userDeactivate, { login }));
    expect(await rolesOf(login)).toBeUndefined();
    // Sessions of a stolen machine must not wait.
    await runAction(by, userSignOut, { login: LEE });
    expect(await found()).toEqual([]);
  });
});

describe('the shell', () => {
  test('ends sessions of one’s own without a role', async () => {
    const kim = await signedIn(served, await invite(world, 'kim@issuer.example', { roles: ['viewer'] }));
    await runAction(await as(world, 'kim@issuer.example', NONE), userSignOut, { login: 'Kim@issuer.example' });
    expect((await kim.get('/console/account')).status).toBe(303);
    const other = runAction(await as(world, 'kim@issuer.example', NONE), userSignOut, { login: LEE });
    expect((await refusalOf(other)).code).toBe('role_needed');
  });

  test('makes an administrator where there is none any more, which the console does not', async () => {
    // As a group of the identity provider takes the role back.
    await world.sql(
      `INSERT INTO user_roles (user_id, action, role, source, recorded_at, event_id)
       SELECT user_id, 'revoke', 'administrator', 'administrator', recorded_at, event_id FROM users WHERE personal(login) = $1`,
      [ADMINISTRATOR],
    );
    const lee = await as(world, LEE, NONE);
    const input = { login: LEE, grant: ['administrator'] };
    const browsing = { ...lee, actor: { ...lee.actor, via: 'console' as const } };
    expect((await refusalOf(runAction(browsing, userRole, input as never))).code).toBe('role_needed');
    const shell = { ...lee, actor: { ...lee.actor, via: 'command' as const } };
    await runAction(shell, userRole, input as never);
    expect(await rolesOf(LEE)).toContain('administrator');
  });
});
