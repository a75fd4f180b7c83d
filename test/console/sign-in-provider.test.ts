/** Signing in with an identity provider: a certified one, which runs in this test. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { consoleSchema } from '../../src/config/console.ts';
import { deactivateUser, identify } from '../../src/people/users.ts';
import { ADMINISTRATOR, Browser, invite, type Page, serveConsole, signedIn } from '../support/console.ts';
import {
  IdentityProvider,
  type Person,
  type ProvidedConsole,
  ProviderVisitor,
  serveProvided,
} from '../support/identity-provider.ts';
import type { Served } from '../support/service.ts';
import type { World } from '../support/world.ts';

const OIDC = {
  ...{ client_id: 'reckoner', roles_claim: 'groups', scopes: ['openid', 'email', 'profile', 'groups'] },
  roles: { billing: 'finance', approvers: 'approver', audit: 'viewer' },
};

let opened: ProvidedConsole;
let world: World;
let served: Served;
let provider: IdentityProvider;
beforeAll(async () => {
  provider = await IdentityProvider.open();
  opened = await serveProvided({ ...OIDC, issuer: provider.issuer });
  ({ world, served } = opened);
  provider.register(served.url);
});
afterAll(async () => {
  await opened.end();
  await provider.end();
});
beforeEach(() => {
  opened.nextHour();
  provider.set({});
});
afterEach(() => void vi.useRealTimers());

const groups = ['billing', 'football'];
const vera = { sub: 'v-1', email: 'Vera@issuer.example', email_verified: true, name: 'Vera', groups };

/** Asks the provider, and gives the callback that it answers with. */
async function ask(browser: Browser, { to = '/console/account', at = new ProviderVisitor(provider) } = {}) {
  const asked = await browser.get(`/console/sign-in/provider?to=${encodeURIComponent(to)}`);
  expect(asked.status).toBe(303);
  const answered = await at.follow(asked.location ?? '');
  if (!('to' in answered)) throw new Error(`the provider stays at ${answered.status} ${answered.text}`);
  const { pathname, search, origin } = new URL(answered.to);
  expect(origin).toBe(served.url);
  return pathname + search;
}
async function signIn(person: Person | null, browser = new Browser(served.url)): Promise<[Browser, Page]> {
  provider.person = person;
  return [browser, await browser.get(await ask(browser))];
}
/** What the account's page says of whoever is signed in. */
const whoIs = async (browser: Browser) => /<p>([^<]* · [^<]*)</.exec((await browser.get('/console/account')).text)?.[1];
const says = ({ text }: Page) => /You were not signed in: ([^<]*)</.exec(text)?.[1];
const eventsOf = async (login: string) =>
  (await world.sql(`SELECT action FROM audit_events WHERE personal(subject) = $1 ORDER BY event_id`, [login])).map(
    ({ action }) => action,
  );

test('a member of a group that has a role becomes a user with it, and signs in', async () => {
  const [browser, answer] = await signIn(vera);
  expect([answer.status, answer.location]).toEqual([303, '/console/account']);
  expect(await whoIs(browser)).toBe('vera@issuer.example · finance');
  expect(await eventsOf('vera@issuer.example')).toEqual(['user.provision', 'user.identify', 'user.sign_in']);
});

test('signing in again asks the provider to authenticate the user again; an older proof is not enough', async () => {
  const asked = await new Browser(served.url).get('/console/sign-in/provider?again=1');
  expect(new URL(asked.location ?? '').searchParams.get('max_age')).toBe('0');
  const [browser] = await signIn(vera);
  await whoIs(browser);
  const remove = () => browser.post('/console/account/passkeys/remove', { passkey: '1' });
  expect((await remove()).location).toBe('/console/account');
  await world.sql(`UPDATE sessions SET proved_at = proved_at - interval '6 minutes'`);
  expect((await remove()).location).toContain('/console/sign-in?');
});

test('the provider is asked for a code, with a state, a nonce and a proof that only this browser can complete', async () => {
  const asked = await new Browser(served.url).get('/console/sign-in/provider');
  const { searchParams: given } = new URL(asked.location ?? '');
  expect(Object.fromEntries(given)).toMatchObject({
    ...{ response_type: 'code', client_id: 'reckoner', code_challenge_method: 'S256' },
    ...{ redirect_uri: `${served.url}/console/sign-in/provider/callback`, scope: 'openid email profile groups' },
  });
  for (const name of ['state', 'nonce', 'code_challenge']) expect(given.get(name)).toMatch(/^[\w-]{43}$/);
});

test('the provider says who it is, not the address: with a new address the user is the same', async () => {
  const [browser] = await signIn({ ...vera, email: 'vera.married@issuer.example' });
  expect(await whoIs(browser)).toBe('vera@issuer.example · finance');
});

test('another account with the address of a user is not this user', async () => {
  const [browser, answer] = await signIn({ ...vera, sub: 'v-2' });
  expect([answer.status, browser.cookies.has('reckoner')]).toEqual([403, false]);
  expect(says(answer)).toMatch(/^vera@issuer\.example is linked to another account of the identity provider/);
});

test('groups are read at each sign-in: what they take back ends what is open, and they give no more than they say', async () => {
  const [before] = await signIn(vera);
  const [browser] = await signIn({ ...vera, groups: 'audit' });
  expect(await whoIs(browser)).toBe('vera@issuer.example · viewer');
  expect((await before.get('/console/account')).status).toBe(303);
  const [both] = await signIn({ ...vera, groups: ['audit', 'billing'] });
  expect(await whoIs(both)).toBe('vera@issuer.example · finance, viewer');
  expect((await browser.get('/console/account')).status).toBe(303);
  const [, refused] = await signIn({ ...vera, groups: ['football', '__proto__', 'constructor'] });
  expect([refused.status, says(refused)]).toEqual([403, 'your groups at the identity provider give you no role here.']);
  expect((await both.get('/console/account')).status).toBe(303);
});

test('claims that are not in the ID token are asked for', async () => {
  provider.set({ claimsAtUserinfo: true });
  const before = provider.asked.get('/me') ?? 0;
  const [browser] = await signIn({ ...vera, sub: 'u-1', email: 'una@issuer.example' });
  expect(await whoIs(browser)).toBe('una@issuer.example · finance');
  const [later] = await signIn({ ...vera, sub: 'u-1', email: 'una@issuer.example', groups: ['approvers'] });
  expect(await whoIs(later)).toBe('una@issuer.example · approver');
  expect((provider.asked.get('/me') ?? 0) - before).toBe(2);
});

test('who was invited is found by a verified address, and by no other', async () => {
  await invite(world, 'kim@issuer.example', { roles: ['approver'] });
  const kim = { sub: 'k-1', email: 'kim@issuer.example' };
  for (const verified of [{}, { email_verified: false }]) {
    const [, answer] = await signIn({ ...kim, ...verified, groups: ['billing'] });
    expect([answer.status, says(answer)]).toEqual([
      403,
      'the identity provider does not say that kim@issuer.example is verified.',
    ]);
  }
  const [browser] = await signIn({ ...kim, email_verified: true, groups: [] });
  expect(await whoIs(browser)).toBe('kim@issuer.example · approver');
});

test('an address that the provider does not say is verified makes no user, who would have it before its owner', async () => {
  const { email_verified: _, ...silent } = { ...vera, sub: 'c-1', email: 'ceo@issuer.example' };
  for (const person of [silent, { ...silent, email_verified: false }]) {
    for (const claimsAtUserinfo of [false, true]) {
      provider.set({ claimsAtUserinfo });
      const [, answer] = await signIn(person);
      expect([answer.status, says(answer)]).toEqual([
        403,
        'the identity provider does not say that ceo@issuer.example is verified.',
      ]);
    }
  }
  expect(await eventsOf('ceo@issuer.example')).toEqual([]);
});

test('settings can say that a provider verifies each address without saying so, and not that it means what it denies', async () => {
  const oidc = { ...OIDC, issuer: provider.issuer, email_verified: 'assumed' as const };
  const other = await serveConsole(world, { console: consoleSchema.parse({ oidc }) });
  try {
    provider.register(other.url);
    const signInThere = async (person: Person) => {
      const browser = new Browser(other.url);
      provider.person = person;
      const asked = await browser.get('/console/sign-in/provider');
      const answered = await new ProviderVisitor(provider).follow(asked.location ?? '');
      const { pathname, search } = new URL('to' in answered ? answered.to : '');
      return (await browser.get(pathname + search)).status;
    };
    const otto = { sub: 'o-1', email: 'otto@issuer.example', groups: ['billing'] };
    expect(await signInThere({ ...otto, email_verified: false })).toBe(403);
    expect(await eventsOf('otto@issuer.example')).toEqual([]);
    expect(await signInThere(otto)).toBe(303);
    expect(await eventsOf('otto@issuer.example')).toContain('user.provision');
  } finally {
    provider.register(served.url);
    await other.end();
  }
});

test('nobody comes in without an invitation and without a group, and the security log counts it', async () => {
  const [, answer] = await signIn({
    sub: 'x-1',
    email: 'eve@issuer.example',
    email_verified: true,
    groups: ['football'],
  });
  expect([answer.status, says(answer)]).toEqual([403, 'you were not invited, and your groups give you no role here.']);
  expect(await world.sql(`SELECT FROM users WHERE personal(login) LIKE 'eve%'`)).toEqual([]);
  const refused = () =>
    world.sql(`SELECT kind FROM security_events WHERE last_at >= $1`, [world.environment.now().toISO()]);
  await expect.poll(refused, { timeout: 20_000 }).toContainEqual({ kind: 'sign_in_refused' });
});

test('who was deactivated comes back by an invitation, as another user, and not by the provider', async () => {
  const dora = { sub: 'd-1', email: 'dora@issuer.example', email_verified: true, groups: ['billing'] };
  const [open] = await signIn(dora);
  const actor = await world.database.reading((tx) =>
    identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false }),
  );
  await world.database.transaction((tx) =>
    deactivateUser(tx, { ...world, actor }, { login: 'dora@issuer.example', reason: null }),
  );
  expect((await open.get('/console/account')).status).toBe(303);
  for (const person of [dora, { ...dora, sub: 'd-2' }, { ...dora, email: 'dora.new@issuer.example' }]) {
    const [, answer] = await signIn(person);
    expect([answer.status, says(answer)]).toEqual([403, 'your user was deactivated.']);
  }
  await invite(world, 'dora@issuer.example', { roles: ['viewer'] });
  const [again] = await signIn(dora);
  expect(await whoIs(again)).toBe('dora@issuer.example · finance, viewer');
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

test("another browser's answer, another state and an answer that does not name its issuer sign nobody in", async () => {
  provider.person = vera;
  const theirs = await ask(new Browser(served.url));
  const code = /code=([^&]+)/.exec(theirs)?.[1] ?? '';
  const changes: ((callback: string) => string)[] = [
    (callback) => callback.replace(/state=[^&]+/, 'state=other'),
    (callback) => callback.replace(/&iss=[^&]+/, ''),
    (callback) => callback.replace(/iss=[^&]+/, `iss=${encodeURIComponent('https://evil.example')}`),
    // The code of another sign-in, which has another proof.
    (callback) => callback.replace(/code=[^&]+/, `code=${code}`),
    (callback) => `${callback}&code=again`,
  ];
  for (const change of changes) {
    const browser = new Browser(served.url);
    const callback = await ask(browser);
    expect(change(callback)).not.toBe(callback);
    const answer = await browser.get(change(callback));
    expect([change.toString(), answer.status, browser.cookies.has('reckoner')]).toEqual([
      change.toString(),
      403,
      false,
    ]);
  }
});

test('who cancels at the provider is told so', async () => {
  const [browser, answer] = await signIn(null);
  expect([answer.status, browser.cookies.has('reckoner')]).toEqual([403, false]);
  expect(says(answer)).toBe('the sign-in was canceled at the identity provider, or the provider refused you access.');
});

test('a client proves itself as the provider asks for it', async () => {
  provider.set({ authentication: 'client_secret_basic' });
  const settings = consoleSchema.parse({ oidc: { ...OIDC, issuer: provider.issuer } });
  const other = await serveConsole(world, { console: settings });
  try {
    provider.register(other.url);
    provider.set({ authentication: 'client_secret_basic' });
    const browser = new Browser(other.url);
    provider.person = vera;
    const asked = await browser.get('/console/sign-in/provider');
    const answered = await new ProviderVisitor(provider).follow(asked.location ?? '');
    const { pathname, search } = new URL('to' in answered ? answered.to : '');
    expect((await browser.get(pathname + search)).status).toBe(303);
  } finally {
    provider.register(served.url);
    await other.end();
  }
});

test('a key that the provider has changed is read again, when the keys are older than a minute', async () => {
  await signIn(vera);
  await provider.rotateKeys();
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(Date.now() + 61_000);
  const [browser] = await signIn(vera);
  expect(await whoIs(browser)).toBe('vera@issuer.example · finance');
});

describe('while the provider is down', () => {
  const DOWN = 'the identity provider does not answer. Try again, or sign in with a passkey or a link.';

  test('the page says so, and a link still signs in', async () => {
    provider.person = vera;
    const browser = new Browser(served.url);
    const callback = await ask(browser);
    provider.stop();
    const answer = await browser.get(callback);
    expect([answer.status, says(answer), answer.text.includes('href="/console/sign-in"')]).toEqual([403, DOWN, true]);
    expect(answer.text).not.toMatch(/\bat \w+ \(|Error|127\.0\.0\.1/);
    const linked = await signedIn(served, await invite(world, 'lena@issuer.example'));
    expect(await whoIs(linked)).toBe('lena@issuer.example · viewer');
  });

  test('a server that was started then asks it again at the next sign-in', async () => {
    provider.stop();
    const settings = consoleSchema.parse({ oidc: { ...OIDC, issuer: provider.issuer } });
    const other = await serveConsole(world, { console: settings });
    try {
      const browser = new Browser(other.url);
      const refused = await browser.get('/console/sign-in/provider');
      expect([refused.status, says(refused)]).toEqual([403, DOWN]);
      expect((await browser.get('/console/sign-in')).status).toBe(200);
      provider.set({});
      expect((await browser.get('/console/sign-in/provider')).status).toBe(303);
    } finally {
      await other.end();
    }
  });
});

describe('signing out', () => {
  test('leads whoever signed in with the provider to a page that can sign out there too', async () => {
    const at = new ProviderVisitor(provider);
    provider.person = vera;
    const browser = new Browser(served.url);
    await browser.get(await ask(browser, { at }));
    await browser.get('/console/account');
    expect((await browser.post('/console/sign-out')).location).toBe('/console/sign-in/provider/left');
    // The provider still knows the browser: whoever sits there is not asked again.
    provider.person = { ...vera, sub: 'somebody-else' };
    await browser.get(await ask(browser, { at }));
    expect(await whoIs(browser)).toBe('vera@issuer.example · finance');
    await browser.post('/console/account/sign-out-everywhere');
    const left = await browser.get('/console/sign-in/provider/left');
    const end = /href="([^"]+)"[^>]*>\s*Sign out of your organization/.exec(left.text)?.[1]?.replaceAll('&amp;', '&');
    const asked = await at.follow(end ?? '');
    const form = 'text' in asked ? asked.text : '';
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(form)?.[1] ?? '';
    const back = await at.follow(/action="([^"]+)"/.exec(form)?.[1] ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ xsrf, logout: 'yes' }).toString(),
    });
    expect(back).toEqual({ to: `${served.url}/console/sign-in` });
    const next = await browser.get(await ask(browser, { at }));
    expect(says(next)).toMatch(/another account/);
  });

  test('leads to the sign-in where the provider ends no sessions, and for a session that a link began', async () => {
    provider.set({ logout: false });
    const settings = consoleSchema.parse({ oidc: { ...OIDC, issuer: provider.issuer } });
    const other = await serveConsole(world, { console: settings });
    try {
      expect((await new Browser(other.url).get('/console/sign-in/provider/left')).location).toBe('/console/sign-in');
    } finally {
      await other.end();
    }
    const linked = await signedIn(served, await invite(world, 'leo@issuer.example'));
    expect((await linked.post('/console/sign-out')).location).toBe('/console/sign-in');
  });
});

test('a sign-in leads to pages of the console only', async () => {
  provider.person = vera;
  for (const to of [
    ...['//evil.example', 'https://evil.example', '/console/sign-in/x', '/\\evil.example'],
    ...['/console/close\r\nSet-Cookie: a=b', '/console/close#//evil.example', '/consolex', 'javascript:alert(1)'],
  ]) {
    const browser = new Browser(served.url);
    const { location, headers } = await browser.get(await ask(browser, { to }));
    expect([to, location, headers.getSetCookie().length]).toEqual([to, '/console', 2]);
  }
});
