/** Each refusal of the console, as the page that its reader gets. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { consoleSchema } from '../../src/config/console.ts';
import { CONSOLE_REFUSAL_CODES, type ConsoleRefusalCode, httpStatusOf } from '../../src/errors/refusals.ts';
import type { Month } from '../../src/month.ts';
import { ADMINISTRATOR, Browser, invite, type Page, serveConsole, signedIn } from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
let served: Served;
let browser: Browser;
beforeAll(async () => {
  world = await openWorld();
  const link = await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
  browser = await signedIn(served, link);
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const CASES: Record<ConsoleRefusalCode, { says: RegExp; run: () => Promise<Page> }> = {
  sign_in_link_invalid: {
    says: /was used, has expired or was replaced/,
    run: () => new Browser(served.url).post(`/console/sign-in#${'x'.repeat(43)}`),
  },
  sign_in_refused: {
    says: /the identity provider does not answer/,
    async run() {
      const oidc = consoleSchema.shape.oidc.parse({ issuer: 'http://127.0.0.1:1', client_id: 'x' });
      const own = await serveConsole(world, { console: { ...world.settings.console, oidc } });
      return new Browser(own.url).get('/console/sign-in/provider').finally(own.end);
    },
  },
  passkey_refused: {
    says: /it arrived too late/,
    run: () => new Browser(served.url).json('/console/sign-in/passkey', {}, { 'x-form-token': undefined }),
  },
  session_missing: {
    says: /Your session has ended\. Nothing was changed/,
    run: () => new Browser(served.url).post('/console/sign-out'),
  },
  form_refused: {
    says: /Nothing was changed: the request was not made for this session/,
    run: () => browser.post('/console/sign-out', { form_token: 'other' }),
  },
  console_insecure: {
    says: /not served to 127\.0\.0\.1 without encryption/,
    async run() {
      const { environment } = world;
      const own = await serveConsole(
        world,
        { public_url: 'http://ledger.example' },
        { ...environment, name: 'production' },
      );
      return new Browser(own.url).get('/console/sign-in').finally(own.end);
    },
  },
  proof_needed: {
    says: /Nothing was changed: this needs a sign-in of the last five minutes/,
    async run() {
      world.at(world.environment.now().plus({ minutes: 6 }).toISO());
      return browser.json('/console/account/passkeys', {});
    },
  },
  access_limited: {
    says: /You may see 2026-07 only\. What you asked for belongs to another month, or cannot be limited to months/,
    async run() {
      const month = '2026-07' as Month;
      const limits = { from: month, to: month, until: null };
      const link = await invite(world, 'kim@auditor.example', { limits });
      return (await signedIn(served, link)).get('/console/aging');
    },
  },
  page_unknown: { says: /Page not found/, run: () => browser.get('/console/nothing') },
};

test.each(Object.keys(CASES) as ConsoleRefusalCode[])('%s', async (code) => {
  const { says, run } = CASES[code];
  const { status, text } = await run();
  expect([code, status]).toEqual([code, httpStatusOf(code)]);
  expect(text).toMatch(says);
  expect(text).not.toMatch(/\n\s+at /);
});

test('each refusal of the console has its case', () => {
  expect(Object.keys(CASES).sort()).toEqual([...CONSOLE_REFUSAL_CODES].sort());
});

test('the title of a problem says what happened', async () => {
  for (const [path, title] of [
    ['/console/nothing', 'Page not found'],
    ['/console/invoices/INV-2026-999999', 'Document not found'],
    ['/console/partners/nobody', 'Partner not found'],
    ['/console/invoices?status=lost', 'Not a valid value'],
  ] as const) {
    expect((await browser.get(path)).text).toContain(`<h1>${title}</h1>`);
  }
});
