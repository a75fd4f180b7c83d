/** Signing in by a link, and what a session can and cannot do. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { changeRoles, deactivateUser, identify } from '../../src/people/users.ts';
import { ADMINISTRATOR, Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Other Tickets' })]);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  await world.deliver();
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});
beforeEach(() => world.at('2026-08-01T10:00:00Z'));

const administrator = () =>
  world.database.reading(async (tx) => ({
    ...world,
    actor: await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false }),
  }));
const sessions = () => world.sql<{ ended_at: string | null }>(`SELECT ended_at FROM sessions ORDER BY session_id`);

describe('a link', () => {
  test('signs in once, by a button, and not because its page was looked at', async () => {
    const link = await invite(world, 'vera@issuer.example', { roles: ['viewer'], name: 'Vera <Viewer>' });
    const browser = new Browser(served.url);
    for (let look = 0; look < 3; look += 1) expect((await browser.get(link)).status).toBe(200);
    expect(browser.cookies.size).toBe(0);
    const answer = await browser.post(link);
    expect([answer.status, answer.location]).toEqual([303, '/console']);
    expect((await browser.get('/console')).status).toBe(200);
    const again = await new Browser(served.url).post(link);
    expect([again.status, again.headers.get('set-cookie')]).toEqual([403, null]);
    expect(again.text).toContain('was used, has expired or was replaced');
  });

  test('has its secret in the fragment, which no request has in its address, and works without scripts', async () => {
    const link = await invite(world, 'paste@issuer.example');
    expect(link).toMatch(/^\/console\/sign-in#[\w-]{43}$/);
    const [page = '', code = ''] = link.split('#');
    expect((await new Browser(served.url).get(`${page}/${code}`)).status).not.toBe(200);
    const form = (await new Browser(served.url).get(page)).text;
    expect(form).toMatch(/<form method="post"[^>]*data-link/);
    expect(form).toContain('<input name="code"');
    const pasted = { code: ` ${served.url}${link}\n`, to: '/console/account' };
    const answer = await new Browser(served.url).post(page, pasted);
    expect([answer.status, answer.location]).toEqual([303, '/console/account']);
  });

  test('used twice at the same moment signs in one browser', async () => {
    const link = await invite(world, 'twice@issuer.example');
    const answers = await Promise.all([1, 2, 3, 4].map(() => new Browser(served.url).post(link)));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 403, 403, 403]);
  });

  test('that has expired, or was replaced by a newer one, signs nobody in', async () => {
    const old = await invite(world, 'late@issuer.example');
    const link = await invite(world, 'late@issuer.example');
    expect((await new Browser(served.url).post(old)).status).toBe(403);
    world.at('2026-08-02T10:00:01Z');
    expect((await new Browser(served.url).post(link)).status).toBe(403);
  });

  test('is stored as a hash only', async () => {
    const link = await invite(world, 'hash@issuer.example');
    const secret = link.split('#').at(-1) ?? '';
    const [{ found } = { found: -1 }] = await world.sql<{ found: number }>(
      `SELECT (SELECT count(*) FROM sign_in_links l WHERE l::text LIKE $1)::int
            + (SELECT count(*) FROM audit_events e WHERE e::text LIKE $1)::int AS found`,
      [`%${secret}%`],
    );
    expect(found).toBe(0);
  });
});

describe('a session', () => {
  test('has a cookie that no script reads, and of which the database has the hash', async () => {
    const browser = new Browser(served.url);
    const answer = await browser.post(await invite(world, 'cookie@issuer.example'));
    expect(answer.headers.getSetCookie()[0]).toMatch(/^reckoner=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
    const [{ found } = { found: -1 }] = await world.sql<{ found: number }>(
      `SELECT count(*)::int AS found FROM sessions s WHERE s::text LIKE $1`,
      [`%${browser.cookies.get('reckoner')}%`],
    );
    expect(found).toBe(0);
  });

  test('never takes the cookie that the browser had before: nobody can plant one', async () => {
    const planted = 'A'.repeat(43);
    const browser = new Browser(served.url);
    browser.cookies.set('reckoner', planted);
    await browser.post(await invite(world, 'fixed@issuer.example'));
    expect(browser.cookies.get('reckoner')).not.toBe(planted);
    browser.cookies.set('reckoner', planted);
    expect((await browser.get('/console/account')).location).toBe('/console/sign-in?to=%2Fconsole%2Faccount');
  });

  test('ends when it was idle for half an hour, and goes on where it was used', async () => {
    const browser = await signedIn(served, await invite(world, 'idle@issuer.example'));
    world.at('2026-08-01T10:29:00Z');
    expect((await browser.get('/console/account')).status).toBe(200);
    world.at('2026-08-01T10:58:00Z');
    expect((await browser.get('/console/account')).status).toBe(200);
    world.at('2026-08-01T11:29:00Z');
    expect((await browser.get('/console/account')).status).toBe(303);
  });

  test('is kept alive by nothing that a page asks for by itself', async () => {
    const browser = await signedIn(served, await invite(world, 'live@issuer.example'));
    const live = { 'hx-request': 'true' };
    world.at('2026-08-01T10:20:00Z');
    expect((await browser.get('/console/account', live)).status).toBe(200);
    world.at('2026-08-01T10:31:00Z');
    const ended = await browser.get('/console/account', live);
    expect([ended.status, ended.headers.get('hx-redirect')]).toEqual([401, '/console/sign-in?to=%2Fconsole%2Faccount']);
  });

  test('ends after twelve hours, however busy it was', async () => {
    const browser = await signedIn(served, await invite(world, 'busy@issuer.example'));
    for (let minutes = 20; minutes < 12 * 60; minutes += 20) {
      world.at(new Date(Date.parse('2026-08-01T10:00:00Z') + minutes * 60_000).toISOString());
      expect((await browser.get('/console/account')).status).toBe(200);
    }
    world.at('2026-08-01T22:00:00Z');
    expect((await browser.get('/console/account')).status).toBe(303);
  });

  test('ends when a role of its user is revoked, in the middle of the work', async () => {
    const login = 'demoted@issuer.example';
    const browser = await signedIn(served, await invite(world, login, { roles: ['viewer', 'finance'] }));
    const context = await administrator();
    const revoke = [{ role: 'finance', partner_id: null }] as const;
    await world.database.transaction((tx) => changeRoles(tx, context, { login, grant: [], revoke }));
    expect((await browser.get('/console/account')).status).toBe(303);
    const again = await signedIn(served, await invite(world, login));
    expect((await again.get('/console/account')).text).not.toContain('finance');
  });

  test('ends when its user is deactivated, whose links end too', async () => {
    const login = 'gone@issuer.example';
    const browser = await signedIn(served, await invite(world, login));
    const link = await invite(world, login);
    const context = await administrator();
    await world.database.transaction((tx) => deactivateUser(tx, context, { login, reason: 'has left' }));
    expect((await browser.get('/console/account')).status).toBe(303);
    expect((await browser.post('/console/sign-out')).status).toBe(401);
    expect((await new Browser(served.url).post(link)).status).toBe(403);
  });

  test('is left by signing out, here or everywhere, and its cookie is worth nothing afterwards', async () => {
    const login = 'leaves@issuer.example';
    const first = await signedIn(served, await invite(world, login));
    const second = await signedIn(served, await invite(world, login));
    const kept = first.cookies.get('reckoner') ?? '';
    expect((await first.post('/console/sign-out')).location).toBe('/console/sign-in');
    expect(first.cookies.size).toBe(0);
    first.cookies.set('reckoner', kept);
    expect((await first.get('/console/account')).status).toBe(303);
    expect((await second.get('/console/account')).status).toBe(200);
    await second.post('/console/account/sign-out-everywhere');
    expect((await second.get('/console/account')).status).toBe(303);
    expect((await sessions()).slice(-2).every(({ ended_at }) => ended_at !== null)).toBe(true);
  });

  test("cannot end another user's session by its number", async () => {
    const other = await signedIn(served, await invite(world, 'other@issuer.example'));
    const browser = await signedIn(served, await invite(world, 'nosy@issuer.example'));
    const all = await world.sql<{ session_id: number }>(`SELECT session_id FROM sessions ORDER BY session_id`);
    for (const { session_id } of all.slice(0, -1)) {
      await browser.post('/console/account/sessions/end', { session: String(session_id) });
    }
    expect((await other.get('/console/account')).status).toBe(200);
  });

  test('is recorded with its user when it begins and when it ends', async () => {
    const login = 'seen@issuer.example';
    const browser = await signedIn(served, await invite(world, login));
    await browser.post('/console/sign-out');
    const events = await world.sql(
      `SELECT e.action, e.via, personal(e.claimed_by) AS claimed_by, personal(u.login) AS login FROM audit_events e JOIN users u USING (user_id)
       WHERE personal(e.subject) = $1 AND personal(u.login) = $1 ORDER BY e.event_id`,
      [login],
    );
    expect(events).toEqual([
      { action: 'user.sign_in', via: 'console', claimed_by: login, login },
      { action: 'user.sign_out', via: 'console', claimed_by: login, login },
    ]);
  });
});

describe('a form', () => {
  const TRIES: readonly [string, Record<string, string>, Record<string, string | undefined>][] = [
    ['without a token', { form_token: '' }, {}],
    ['with the token of another session', { form_token: 'x'.repeat(43) }, {}],
    ['from another site', {}, { 'sec-fetch-site': 'cross-site' }],
    ['from another host of the same site', {}, { 'sec-fetch-site': 'same-site' }],
    ['typed into the address bar', {}, { 'sec-fetch-site': 'none' }],
    ['from another origin, as older browsers say', {}, { 'sec-fetch-site': undefined, origin: 'https://evil.example' }],
    ['from a page that hides its origin', {}, { origin: 'null' }],
    ['that says nothing of where it comes from', {}, { 'sec-fetch-site': undefined, origin: undefined }],
    ['as JSON', {}, { 'content-type': 'application/json' }],
    ['as plain text, which any page may send', {}, { 'content-type': 'text/plain' }],
  ];
  test.each(TRIES)('%s changes nothing', async (_, fields, headers) => {
    const browser = await signedIn(served, await invite(world, 'form@issuer.example'));
    const before = await sessions();
    const answer = await browser.post('/console/sign-out', fields, headers);
    expect([403, 415]).toContain(answer.status);
    expect(await sessions()).toEqual(before);
    expect((await browser.get('/console/account')).status).toBe(200);
  });

  test('of an older browser, which names its origin only, is taken', async () => {
    const browser = await signedIn(served, await invite(world, 'old@issuer.example'));
    expect((await browser.post('/console/sign-out', {}, { 'sec-fetch-site': undefined })).status).toBe(303);
  });

  test('without a session is refused, and says to sign in', async () => {
    const answer = await new Browser(served.url).post('/console/sign-out');
    expect([answer.status, answer.text.includes('Sign in')]).toEqual([401, true]);
  });

  test('to sign in comes from our own page', async () => {
    const link = await invite(world, 'lured@issuer.example');
    const lured = await new Browser(served.url).post(link, {}, { 'sec-fetch-site': 'cross-site' });
    expect([lured.status, lured.headers.get('set-cookie')]).toEqual([403, null]);
  });
});

describe('a role limited to a partner', () => {
  test('sees that partner alone: other documents are not there, and neither is what shows all', async () => {
    const browser = await signedIn(
      served,
      await invite(world, 'scoped@issuer.example', { roles: ['viewer'], partnerId: 'p-1' }),
    );
    const documents = await world.documents();
    const [own, other] = ['p-1', 'p-2'].map(
      (id) => documents.find(({ partner_id }) => partner_id === id)?.number ?? '',
    );
    expect((await browser.get('/console')).text).not.toContain('p-2');
    const list = (await browser.get('/console/invoices')).text;
    expect([list.includes(own ?? ''), list.includes(other ?? '')]).toEqual([true, false]);
    expect((await browser.get('/console/invoices?partner=p-2')).text).not.toContain(other);
    expect((await browser.get(`/console/invoices/${own}`)).status).toBe(200);
    const [hidden, unknown] = [
      await browser.get(`/console/invoices/${other}`),
      await browser.get('/console/invoices/INV-2026-999999'),
    ];
    expect([hidden.status, unknown.status]).toEqual([404, 404]);
    expect(hidden.text.replaceAll(other ?? '', '')).toBe(unknown.text.replaceAll('INV-2026-999999', ''));
    expect((await browser.get(`/console/invoices/${own}/document.pdf`)).headers.get('content-type')).toBe(
      'application/pdf',
    );
    expect((await browser.get(`/console/invoices/${other}/document.pdf`)).status).toBe(404);
    for (const path of ['/console/close', '/console/settings', '/console/reports/trial-balance']) {
      expect([path, (await browser.get(path)).status]).toEqual([path, 403]);
    }
  });
});

test('every answer keeps to the policy and to no cache, and every page asks for a session', async () => {
  const nobody = new Browser(served.url);
  for (const path of ['', '/close', '/invoices', '/invoices/INV-2026-000001', '/payments', '/aging', '/account']) {
    const answer = await nobody.get(`/console${path}`);
    expect([path, answer.status]).toEqual([path, 303]);
    expect(answer.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; (?!.*unsafe)/,
    );
    expect(answer.headers.get('cache-control')).toBe('no-store');
  }
  expect((await nobody.get('/console/nothing')).status).toBe(404);
  expect((await nobody.get('/console/sign-in?to=//evil.example')).status).toBe(200);
});

test('a theme is chosen by a button, outlasts the session and is one of those that exist', async () => {
  const browser = await signedIn(served, await invite(world, 'dora@issuer.example', { roles: ['viewer'] }));
  const choose = (theme: string) => browser.post('/console/account/theme', { theme });
  const shown = async () =>
    /<html lang="en"(?: data-theme="(\w+)")?/.exec((await browser.get('/console/account')).text)?.[1];
  expect(await shown()).toBeUndefined();
  expect((await choose('dark')).headers.get('set-cookie')).toMatch(
    /^reckoner-theme=dark; Path=\/; HttpOnly; SameSite=Lax/,
  );
  expect(await shown()).toBe('dark');
  await choose('light');
  expect(await shown()).toBe('light');
  await choose('"><script>');
  expect(await shown()).toBeUndefined();
  await choose('dark');
  await browser.post('/console/sign-out');
  expect((await browser.get('/console/sign-in')).text).toContain('data-theme="dark"');
});

test('plain http is for this machine alone', async () => {
  const answer = await new Browser(served.url).get('/console/sign-in');
  expect(answer.status).toBe(200);
  const app = await import('node:http');
  const status = await new Promise((resolve) => {
    app.get(`${served.url}/console/sign-in`, { headers: { host: 'ledger.example' } }, (got) => {
      got.resume();
      resolve(got.statusCode);
    });
  });
  expect(status).toBe(403);
});

test('behind https the cookie is bound to its host and is never sent in the clear', async () => {
  const secure = await serveConsole(world, { public_url: 'https://billing.example' });
  try {
    const browser = new Browser(secure.url);
    const link = await invite(world, 'https@issuer.example');
    expect((await browser.post(link)).status).toBe(403);
    const answer = await browser.post(link, {}, { origin: 'https://billing.example' });
    expect(answer.headers.getSetCookie()[0]).toMatch(
      /^__Host-reckoner=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect((await browser.get('/console/account')).status).toBe(200);
    // A cookie of that name without the prefix may come from another host of the domain.
    const value = browser.cookies.get('__Host-reckoner') ?? '';
    browser.cookies.clear();
    browser.cookies.set('reckoner', value);
    expect((await browser.get('/console/account')).status).toBe(303);
  } finally {
    await secure.end();
  }
});

// Last: a network stays stopped for a quarter of an hour, and all of these tests come from one.
test('a link is guessed by nobody: a network with too many wrong ones is stopped, and the right one still signs in', async () => {
  const link = await invite(world, 'right@issuer.example');
  const wrong = () => new Browser(served.url).post(`/console/sign-in#${'x'.repeat(43)}`);
  const statuses: number[] = [];
  for (let each = 0; each < 13; each += 1) statuses.push((await wrong()).status);
  expect(statuses.slice(-2)).toEqual([429, 429]);
  expect((await new Browser(served.url).post(link)).status).toBe(303);
  await expect
    .poll(() => world.sql(`SELECT DISTINCT kind FROM security_events WHERE kind LIKE 'sign_in%' ORDER BY kind`), {
      timeout: 5000,
    })
    .toEqual([{ kind: 'sign_in_locked' }, { kind: 'sign_in_refused' }]);
});
