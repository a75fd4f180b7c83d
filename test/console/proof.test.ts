/** What needs a sign-in of the last five minutes, and signing out with and without passkeys. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { addPasskey } from '../../src/people/passkeys.ts';
import type { User } from '../../src/people/roles.ts';
import { readActiveUser } from '../../src/people/users.sql.ts';
import { identify, signOutUser } from '../../src/people/users.ts';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn, wordsOf } from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});
beforeEach(() => world.at('2026-08-01T10:00:00Z'));

const asAdministrator = async (login = ADMINISTRATOR): Promise<Browser> =>
  signedIn(served, await invite(world, login, { roles: ['administrator'] }));
const isUser = async (login: string) => (await world.database.reading((tx) => readActiveUser(tx, login))) !== undefined;
const contextOf = (login: string) =>
  world.database.reading(async (tx) => ({
    ...world,
    actor: await identify(tx, world.actor, { login, unattended: false }),
  }));

let made = 0;
async function givePasskey(login: string, name: string): Promise<void> {
  made += 1;
  const credentialId = `credential-of-a-test-${made}`;
  const context = await contextOf(login);
  const user = context.actor.user as User;
  const given = { user, credentialId, publicKey: new Uint8Array([made]), counter: 0, name };
  await world.database.transaction((tx) => addPasskey(tx, context, given));
}
const passkeysLeft = async (login: string) =>
  (
    await world.sql<{ name: string }>(
      `SELECT personal(p.name) AS name FROM passkeys p JOIN active_users u USING (user_id)
       WHERE u.login = $1 AND NOT EXISTS (SELECT FROM passkey_ends e WHERE e.passkey_id = p.passkey_id) ORDER BY 1`,
      [login],
    )
  ).map(({ name }) => name);

describe('a sign-in of the last five minutes', () => {
  test('is needed to invite a user; signing in again leads back to the filled form', async () => {
    const browser = await asAdministrator();
    const fields = { login: 'new@issuer.example', roles: 'viewer' };
    world.at('2026-08-01T10:05:01Z');
    const refused = await browser.post('/console/actions/user.invite', { ...fields, step: 'preview' });
    expect(refused.status).toBe(303);
    const signIn = new URL(refused.location ?? '', served.url);
    expect([signIn.pathname, signIn.searchParams.get('again')]).toEqual(['/console/sign-in', '1']);
    expect((await browser.get(refused.location ?? '')).text).toContain('needs a sign-in of the last five minutes');
    const back = signIn.searchParams.get('to') ?? '';
    expect(back).toBe('/console/actions/user.invite?login=new%40issuer.example&roles=viewer');
    const before = browser.cookies.get('reckoner');
    const link = await invite(world, ADMINISTRATOR);
    expect((await browser.post(link)).status).toBe(303);
    expect(browser.cookies.get('reckoner')).not.toBe(before);
    expect((await browser.get(back)).text).toContain('value="new@issuer.example"');
    expect(wordsOf(await browser.post('/console/actions/user.invite', { ...fields, step: 'preview' }))).toContain(
      'is a user now',
    );
    expect(await isUser('new@issuer.example')).toBe(false);
  });

  test('replaces the session of the same browser, which then signs nobody in', async () => {
    const browser = await asAdministrator();
    const old = browser.cookies.get('reckoner') ?? '';
    expect((await browser.post(await invite(world, ADMINISTRATOR))).status).toBe(303);
    browser.cookies.set('reckoner', old);
    expect((await browser.get('/console/account')).status).toBe(303);
  });

  test.each(['user.link', 'user.role', 'client.create', 'client.rotate', 'settings.adopt'])(
    'is needed for %s',
    async (name) => {
      const browser = await asAdministrator();
      const post = () => browser.post(`/console/actions/${name}`, { step: 'preview', login: ADMINISTRATOR });
      expect((await post()).location ?? '').not.toContain('/console/sign-in');
      world.at('2026-08-01T10:05:01Z');
      expect((await post()).location).toMatch(/^\/console\/sign-in\?to=.*&again=1$/);
      // A page is read without one, and so is an action that gives no access.
      expect((await browser.get(`/console/actions/${name}`)).status).toBe(200);
    },
  );

  test('is needed to decide an approval, and to add or remove a passkey', async () => {
    const browser = await asAdministrator();
    await givePasskey(ADMINISTRATOR, 'Laptop');
    world.at('2026-08-01T10:05:01Z');
    expect((await browser.post('/console/approvals/1', { decision: 'approve' })).location).toContain('&again=1');
    expect((await browser.post('/console/account/passkeys/remove', { passkey: '1' })).location).toBe(
      '/console/sign-in?to=%2Fconsole%2Faccount&again=1',
    );
    const asked = await browser.json('/console/account/passkeys/options', {});
    expect([asked.status, JSON.parse(asked.text)]).toMatchObject([
      403,
      { code: 'proof_needed', to: '/console/sign-in?to=%2Fconsole%2Faccount&again=1' },
    ]);
    expect(await passkeysLeft(ADMINISTRATOR)).toEqual(['Laptop']);
  });
});

describe('signing out everywhere', () => {
  const login = 'mara@issuer.example';

  test('says how many passkeys stay, and ends them if the user wants', async () => {
    const browser = await asAdministrator(login);
    await givePasskey(login, 'Laptop');
    await givePasskey(login, 'Phone');
    const account = wordsOf(await browser.get('/console/account'));
    expect(account).toContain('Passkeys that stay after signing out everywhere: 2.');
    expect((await browser.post('/console/account/sign-out-everywhere')).status).toBe(303);
    expect(await passkeysLeft(login)).toEqual(['Laptop', 'Phone']);
    const again = await signedIn(served, await invite(world, login));
    expect((await again.post('/console/account/sign-out-everywhere/passkeys')).location).toBe('/console/sign-in');
    expect(await passkeysLeft(login)).toEqual([]);
  });

  test('by an administrator ends passkeys only if asked to, each with its event', async () => {
    await asAdministrator(login);
    await givePasskey(login, 'Tablet');
    const context = await contextOf(ADMINISTRATOR);
    const signOut = (passkeys: boolean) =>
      world.database.transaction((tx) => signOutUser(tx, context, { login, passkeys }));
    expect(await signOut(false)).toEqual({ sessions: 1, passkeys_ended: 0, passkeys_left: 1 });
    expect(await signOut(true)).toEqual({ sessions: 0, passkeys_ended: 1, passkeys_left: 0 });
    expect(await signOut(true)).toEqual({ sessions: 0, passkeys_ended: 0, passkeys_left: 0 });
    const ended = await world.sql(
      `SELECT FROM audit_events JOIN passkey_ends USING (event_id) WHERE action = 'user.remove_passkey'`,
    );
    expect(ended).toHaveLength(3);
  });
});
