/** A session that ended is renewed by its user, and a form that was being filled is not lost. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { addPasskey } from '../../src/people/passkeys.ts';
import type { User } from '../../src/people/roles.ts';
import { identify } from '../../src/people/users.ts';
import { ADMINISTRATOR, Browser, invite, serveConsole, signedIn, wordsOf } from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const MARA = 'mara@issuer.example';

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
  await invite(world, ADMINISTRATOR);
  await invite(world, MARA, { roles: ['finance'] });
  served = await serveConsole(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});
beforeEach(async () => {
  world.at('2026-08-01T10:00:00Z');
  await world.sql('DELETE FROM request_counts');
});

const outbox = () => readdirSync(join(world.home, 'outbox'), { withFileTypes: true }).map(({ name }) => name);
const mailsSince = (before: readonly string[]) =>
  outbox()
    .filter((name) => !before.includes(name) && name.endsWith('.eml'))
    .map((name) => readFileSync(join(world.home, 'outbox', name), 'utf8').replaceAll(/=\r?\n/g, ''));

async function linkMailedSince(before: readonly string[]): Promise<string> {
  for (let tries = 0; tries < 100; tries += 1) {
    const [mail] = mailsSince(before);
    const [link] = /\/console\/sign-in#[\w-]{43}/.exec(mail ?? '') ?? [];
    if (link !== undefined) return link;
    await wait(50);
  }
  throw new Error('no e-mail was sent');
}

const ask = (browser: Browser, login: string, to = '/console') => browser.post('/console/sign-in/ask', { login, to });
const voids = () => world.sql('SELECT document_id FROM voids');
const FIELDS = { number: 'INV-2026-000001', reason: 'wrong price, by 2%' };
const BACK = '/console/actions/invoice.void?number=INV-2026-000001&reason=wrong+price%2C+by+2%25';

describe('a form of a session that ended', () => {
  test.each(['preview', 'confirm'])(
    'sent to %s leads to the sign-in and back, filled, and nothing is done',
    async (step) => {
      const browser = await signedIn(served, await invite(world, MARA));
      world.at('2026-08-01T10:31:00Z');
      const sent = await browser.post('/console/actions/invoice.void', { ...FIELDS, step, shown: 'x' });
      expect(sent.status).toBe(303);
      const signIn = new URL(sent.location ?? '', served.url);
      expect([signIn.pathname, signIn.searchParams.get('to'), signIn.searchParams.get('ended')]).toEqual([
        '/console/sign-in',
        BACK,
        '1',
      ]);
      expect(await voids()).toEqual([]);
      const page = await browser.get(sent.location ?? '');
      expect(wordsOf(page)).toContain('Your session has ended, and nothing was changed.');
      const link = await invite(world, MARA);
      const again = await browser.post(link, { to: BACK });
      expect([again.status, again.location]).toEqual([303, BACK]);
      const form = await browser.get(BACK);
      expect(form.text).toContain('value="wrong price, by 2%"');
      expect(await voids()).toEqual([]);
    },
  );

  test('keeps no files', async () => {
    const browser = await signedIn(served, await invite(world, MARA));
    world.at('2026-08-01T10:31:00Z');
    const file = new File(['secret,rows'], 'bank.csv');
    const sent = await browser.upload('/console/actions/payment.import', { step: 'preview' }, { file });
    expect(new URL(sent.location ?? '', served.url).searchParams.get('to')).toBe('/console/actions/payment.import?');
  });

  test('whose fields are too long keeps those that fit', async () => {
    const browser = await signedIn(served, await invite(world, MARA));
    world.at('2026-08-01T10:31:00Z');
    const sent = await browser.post('/console/actions/invoice.void', { ...FIELDS, reason: 'x'.repeat(9000) });
    expect(new URL(sent.location ?? '', served.url).searchParams.get('to')).toBe(
      '/console/actions/invoice.void?number=INV-2026-000001',
    );
  });

  test('of no action leads to its page, and without a page to the first one', async () => {
    const browser = await signedIn(served, await invite(world, MARA));
    world.at('2026-08-01T10:31:00Z');
    const to = async (path: string) => {
      const { location } = await browser.post(path, { item: 'x' });
      return new URL(location ?? '', served.url).searchParams.get('to');
    };
    expect([await to('/console/queue'), await to('/console/sign-out')]).toEqual(['/console/queue', '/console']);
  });

  test('is not read for a browser that never had a session, or from another site', async () => {
    const sent = await new Browser(served.url).post('/console/actions/invoice.void', FIELDS);
    expect([sent.status, sent.location]).toEqual([401, null]);
    const browser = await signedIn(served, await invite(world, MARA));
    world.at('2026-08-01T10:31:00Z');
    const foreign = await browser.post('/console/actions/invoice.void', FIELDS, { origin: 'https://evil.example' });
    expect([foreign.status, foreign.location]).toEqual([403, null]);
  });
});

describe('a link by e-mail', () => {
  test('signs its user in once, and leads back to the page in the browser that asked', async () => {
    const before = outbox();
    const browser = new Browser(served.url);
    expect((await browser.get('/console/sign-in')).text).toContain('E-mail me a link');
    const asked = await ask(browser, ' Mara@Issuer.example', BACK);
    expect([asked.status, wordsOf(asked).includes('a link is on its way')]).toEqual([200, true]);
    const link = await linkMailedSince(before);
    expect(mailsSince(before).join()).not.toContain('wrong');
    const signed = await browser.post(link, { to: '/console' });
    expect([signed.status, signed.location]).toEqual([303, BACK]);
    expect((await new Browser(served.url).post(link)).status).toBe(403);
    const [event] = await world.sql<{ details: object }>(
      `SELECT details FROM audit_events WHERE action = 'user.ask_link' AND personal(subject) = $1`,
      [MARA],
    );
    expect(event?.details).toMatchObject({ expires_at: '2026-08-01T10:15:00.000Z' });
  });

  test('expires after 15 minutes, and does not end a link that an administrator made', async () => {
    const invited = await invite(world, MARA);
    const before = outbox();
    await ask(new Browser(served.url), MARA);
    const link = await linkMailedSince(before);
    world.at('2026-08-01T10:15:01Z');
    expect((await new Browser(served.url).post(link)).status).toBe(403);
    expect((await new Browser(served.url).post(invited)).status).toBe(303);
  });

  test('is not sent to strangers or to users with a passkey, and the answer is the same', async () => {
    const before = outbox();
    await invite(world, 'keys@issuer.example');
    const actor = await world.database.reading((tx) =>
      identify(tx, world.actor, { login: 'keys@issuer.example', unattended: false }),
    );
    const given = { user: actor.user as User, credentialId: 'credential-of-keys-1', counter: 0, name: 'Laptop' };
    await world.database.transaction((tx) =>
      addPasskey(tx, { ...world, actor }, { ...given, publicKey: new Uint8Array([1]) }),
    );
    const [known, stranger, keys] = await Promise.all(
      [MARA, 'nobody@issuer.example', 'keys@issuer.example'].map((login) => ask(new Browser(served.url), login)),
    );
    expect(stranger?.text).toBe(known?.text);
    expect(keys?.text).toBe(known?.text);
    await linkMailedSince(before);
    await wait(300);
    expect(mailsSince(before).length).toBe(1);
  });

  test('is limited for each address, whether or not there is a user', async () => {
    for (const login of [MARA, 'nobody@issuer.example']) {
      const asked: number[] = [];
      for (let time = 0; time < 4; time += 1) asked.push((await ask(new Browser(served.url), login)).status);
      expect(asked).toEqual([200, 200, 200, 429]);
    }
  });

  test('is not offered without a mail server', async () => {
    const own = await serveConsole(world, { mail_from: '' });
    const browser = new Browser(own.url);
    expect((await browser.get('/console/sign-in')).text).not.toContain('E-mail me a link');
    expect((await ask(browser, MARA)).status).toBe(404);
    await own.end();
  });

  test('is not asked for from another site', async () => {
    const before = outbox();
    const asked = await new Browser(served.url).post(
      '/console/sign-in/ask',
      { login: MARA },
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
    );
    expect(asked.status).toBe(403);
    expect(mailsSince(before)).toEqual([]);
  });
});
