/** Signing in with an identity provider, which runs in this test. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { consoleSchema } from '../../src/config/console.ts';
import { deactivateUser, identify } from '../../src/people/users.ts';
import { ADMINISTRATOR, Browser, invite, type Page, serveConsole } from '../support/console.ts';
import { CLIENT_SECRET, type IdentityProvider, openIdentityProvider } from '../support/identity-provider.ts';
import type { Served } from '../support/service.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
let served: Served;
let provider: IdentityProvider;
beforeAll(async () => {
  world = await openWorld();
  provider = await openIdentityProvider();
  world.environment = { ...world.environment, oidcSecret: CLIENT_SECRET };
  await invite(world, ADMINISTRATOR);
  const oidc = {
    ...{ issuer: provider.issuer, client_id: 'reckoner', roles_claim: 'groups' },
    roles: { billing: 'finance', approvers: 'approver', audit: 'viewer' },
  };
  const settings = consoleSchema.parse({ oidc });
  served = await serveConsole(world, { console: settings });
});
afterAll(async () => {
  await served.end();
  await provider.end();
  await world.end();
});
let hour = 0;
beforeEach(() => {
  // Wrong answers of a quarter of an hour stop a network.
  hour += 1;
  world.at(`2026-08-02T${String(hour).padStart(2, '0')}:00:00Z`);
  provider.forge = (claims) => claims;
  provider.forgeKey = false;
});

const groups = ['billing', 'football'];
const vera = { sub: 'v-1', email: 'Vera@issuer.example', email_verified: true, name: 'Vera', groups };

/** Asks the provider, and gives the callback that it answers with. */
async function ask(browser: Browser, to = '/console/account'): Promise<string> {
  const asked = await browser.get(`/console/sign-in/provider?to=${encodeURIComponent(to)}`);
  expect(asked.status).toBe(303);
  const answered = await fetch(asked.location ?? '', { redirect: 'manual' });
  const { pathname, search, origin } = new URL(answered.headers.get('location') ?? '');
  expect(origin).toBe(served.url);
  return pathname + search;
}
async function signIn(browser = new Browser(served.url)): Promise<{ browser: Browser; answer: Page }> {
  return { answer: await browser.get(await ask(browser)), browser };
}
const rolesOf = async (browser: Browser) =>
  /<p>vera@issuer\.example · ([^<]*)</.exec((await browser.get('/console/account')).text)?.[1];

test('a member of a group that has a role becomes a user with it, and signs in', async () => {
  provider.person = vera;
  const { browser, answer } = await signIn();
  expect([answer.status, answer.location]).toEqual([303, '/console/account']);
  expect(await rolesOf(browser)).toBe('finance');
  const events = await world.sql(
    `SELECT action FROM audit_events WHERE subject = 'vera@issuer.example' ORDER BY event_id`,
  );
  expect(events.map(({ action }) => action)).toEqual(['user.provision', 'user.identify', 'user.sign_in']);
});

test('the provider says who it is, not the address: with a new address the user is the same', async () => {
  provider.person = { ...vera, email: 'vera.married@issuer.example' };
  const { browser } = await signIn();
  expect(await rolesOf(browser)).toBe('finance');
});

test('groups are read at each sign-in: what they take back ends what is open, and they give no more than they say', async () => {
  provider.person = vera;
  const { browser: before } = await signIn();
  provider.person = { ...vera, groups: 'audit' };
  const { browser } = await signIn();
  expect(await rolesOf(browser)).toBe('viewer');
  expect((await before.get('/console/account')).status).toBe(303);
  provider.person = { ...vera, groups: ['football', '__proto__', 'constructor'] };
  const refused = await signIn();
  expect([refused.answer.status, refused.answer.text.includes('give you no role here')]).toEqual([403, true]);
  expect((await browser.get('/console/account')).status).toBe(303);
});

test('who was invited is found by a verified address, and by no other', async () => {
  await invite(world, 'kim@issuer.example', { roles: ['approver'] });
  provider.person = { sub: 'k-1', email: 'kim@issuer.example', groups: ['billing'] };
  const unverified = await signIn();
  expect([unverified.answer.status, unverified.answer.text.includes('is verified')]).toEqual([403, true]);
  provider.person = { sub: 'k-1', email: 'kim@issuer.example', email_verified: true, groups: [] };
  const { browser } = await signIn();
  expect((await browser.get('/console/account')).text).toContain('kim@issuer.example · approver');
});

test('nobody comes in without an invitation and without a group', async () => {
  provider.person = { sub: 'x-1', email: 'eve@issuer.example', email_verified: true, groups: ['football'] };
  expect((await signIn()).answer.status).toBe(403);
  expect(await world.sql(`SELECT FROM users WHERE login LIKE 'eve%'`)).toEqual([]);
});

test('who was deactivated does not come back by the provider', async () => {
  provider.person = { sub: 'd-1', email: 'dora@issuer.example', email_verified: true, groups: ['billing'] };
  await signIn();
  const actor = await world.database.reading((tx) =>
    identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false }),
  );
  await world.database.transaction((tx) =>
    deactivateUser(tx, { ...world, actor }, { login: 'dora@issuer.example', reason: null }),
  );
  const { answer } = await signIn();
  expect([answer.status, answer.text.includes('was deactivated')]).toEqual([403, true]);
});

test('an answer is of the browser that asked, once', async () => {
  provider.person = vera;
  const browser = new Browser(served.url);
  const callback = await ask(browser);
  const stolen = await new Browser(served.url).get(callback);
  expect([stolen.status, stolen.headers.getSetCookie()]).toEqual([403, []]);
  expect((await browser.get(callback)).status).toBe(303);
  browser.cookies.delete('reckoner');
  expect((await browser.get(callback)).status).toBe(403);
});

test('an answer with another state, nonce, audience, issuer, time or key signs nobody in', async () => {
  provider.person = vera;
  const browser = new Browser(served.url);
  const callback = await ask(browser);
  expect((await browser.get(callback.replace(/state=[^&]+/, 'state=other'))).status).toBe(403);
  const forgeries: ((claims: Record<string, unknown>) => Record<string, unknown>)[] = [
    (claims) => ({ ...claims, nonce: 'other' }),
    (claims) => ({ ...claims, aud: 'another-client' }),
    (claims) => ({ ...claims, iss: 'https://evil.example' }),
    (claims) => ({ ...claims, exp: 1 }),
    ({ nonce: _, ...claims }) => claims,
  ];
  for (const forge of forgeries) {
    provider.forge = forge;
    const { answer, browser: tried } = await signIn();
    expect([answer.status, tried.cookies.has('reckoner')]).toEqual([403, false]);
  }
  provider.forge = (claims) => claims;
  provider.forgeKey = true;
  expect((await signIn()).answer.status).toBe(403);
  provider.forgeKey = false;
  expect((await signIn()).answer.status).toBe(303);
});

test('a sign-in leads to pages of the console only', async () => {
  for (const to of [
    '//evil.example',
    'https://evil.example',
    '/console/sign-in/x',
    '/console/../pay/x',
    '/\\evil.example',
  ]) {
    provider.person = { ...vera, groups: ['billing'] };
    const browser = new Browser(served.url);
    const { location } = await browser.get(await ask(browser, to));
    expect([to, location?.replace('/console/../pay/x', '/console')]).toEqual([to, '/console']);
  }
});
