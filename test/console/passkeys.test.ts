/** Passkeys in a real browser, with an authenticator that Chromium plays. Without Chromium these tests are skipped. */
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ADMINISTRATOR, invite, Browser as Plain, serveConsole } from '../support/console.ts';
import { launch } from '../support/pages.ts';
import type { Served } from '../support/service.ts';
import { has, needs } from '../support/tools.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
let served: Served;
let browser: Browser;
let url: string;
beforeAll(async () => {
  world = await openWorld();
  world.at(new Date().toISOString());
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
  url = served.url.replace('127.0.0.1', 'localhost');
  if (has('chromium')) browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await served.end();
  await world.end();
});

/** A page with an authenticator of its own, and what the page was refused by its policy. */
async function open(): Promise<{ page: Page; cdp: CDPSession; authenticatorId: string; violations: string[] }> {
  const context = await browser.newContext();
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const violations: string[] = [];
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) violations.push(message.text());
  });
  const cdp = await context.newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  return { page, cdp, authenticatorId, violations };
}

async function register(page: Page, login: string): Promise<void> {
  await page.goto(url + (await invite(world, login)));
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.goto(`${url}/console/account`);
  await page.getByLabel('Name of this device').fill('Laptop');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await expect.poll(() => page.textContent('main')).toMatch(/Laptop/);
}

const says = (page: Page) => page.locator('[data-passkey-says]');

describe('a passkey', () => {
  beforeEach((context) => needs('chromium', context));
  test('is added after the first sign-in, and signs in from then on', async () => {
    const { page, violations } = await open();
    await register(page, 'mara@issuer.example');
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.waitForURL(/\/console\/sign-in$/);
    await page.goto(`${url}/console/account`);
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await page.waitForURL(`${url}/console/account`);
    expect(await page.getByRole('cell', { name: 'passkey', exact: true }).count()).toBe(1);
    expect(violations).toEqual([]);
    const [{ counter } = { counter: 0 }] = await world.sql<{ counter: number }>(`SELECT counter FROM passkey_uses`);
    expect(Number(counter)).toBeGreaterThan(0);
    await page.context().close();
  });

  test('that was removed, or whose user was deactivated, signs nobody in', async () => {
    const { page } = await open();
    await register(page, 'rosa@issuer.example');
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('You have no passkey yet.').waitFor();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await expect.poll(() => says(page).textContent()).toMatch(/it is not registered here/);
    await page.context().close();
  });

  test('that has been copied is refused by its count', async () => {
    const { page } = await open();
    await register(page, 'copied@issuer.example');
    await world.sql(`UPDATE passkey_uses SET counter = 1000`);
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await expect.poll(() => says(page).textContent()).toMatch(/could not be verified|has been copied/);
    await page.context().close();
  });

  test('of a user who is not verified by the device is not enough', async () => {
    const { page, cdp, authenticatorId } = await open();
    await register(page, 'lost@issuer.example');
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await expect.poll(() => says(page).textContent()).toMatch(/Not done/);
    await page.context().close();
  });
});

test('an answer that nobody asked for is refused, and so is one from another site', async () => {
  const plain = new Plain(url);
  const credential = { id: 'x'.repeat(22), response: { clientDataJSON: 'e30' } };
  const answer = await plain.json('/console/sign-in/passkey', { credential });
  expect([answer.status, answer.text.includes('it arrived too late')]).toEqual([403, true]);
  await plain.json('/console/sign-in/passkey/options', {});
  const unknown = await plain.json('/console/sign-in/passkey', { credential });
  expect([unknown.status, unknown.text.includes('not registered here')]).toEqual([403, true]);
  expect((await plain.json('/console/sign-in/passkey', { credential })).text).toContain('it arrived too late');
  const foreign = await plain.json('/console/sign-in/passkey/options', {}, { 'sec-fetch-site': 'cross-site' });
  expect(foreign.status).toBe(403);
});
