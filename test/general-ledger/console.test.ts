/** The hand-off in the console, in a real browser: a month is exported by its form, and its file downloaded. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMINISTRATOR, alertOf, invite, signedIn } from '../support/console.ts';
import { serveRoutes } from '../support/console-routes.ts';
import type { Served } from '../support/service.ts';
import { has, needs, tool } from '../support/tools.ts';
import type { World } from '../support/world.ts';
import { MONTHS, openMonths, writeAccounts } from './months.ts';
import { readBack } from './read-back.ts';

let world: World;
let served: Served;
let browser: Browser | undefined;
beforeAll(async () => {
  world = await openMonths(...MONTHS);
  await invite(world, ADMINISTRATOR);
  ({ served } = await serveRoutes(world));
  if (has('chromium')) browser = await chromium.launch({ executablePath: tool('chromium'), args: ['--no-sandbox'] });
});
afterAll(async () => {
  await browser?.close();
  await served.end();
  await world.end();
});

test('an export without accounts leads to the form that maps them, and names no place on the server', async () => {
  const finance = await signedIn(served, await invite(world, 'fin@issuer.example', { roles: ['finance'] }));
  rmSync(join(world.home, 'accounts.json'));
  const path = '/console/actions/gl.export';
  const refused = await finance.post(path, { month: '2026-09', format: 'generic', step: 'preview' });
  writeAccounts(world);
  expect([refused.status, alertOf(refused)]).toEqual([422, expect.stringMatching(/^accounts\.json is missing\./)]);
  expect(refused.text).not.toContain(world.home);
  expect(refused.text).toContain('href="/console/actions/settings.adopt?section=accounts"');
});

test('finance exports a month for QuickBooks and downloads its journal', async (context) => {
  needs('chromium', context);
  const link = await invite(world, 'mara@issuer.example', { roles: ['finance'] });
  const page = await (browser as Browser).newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(served.url + link);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(/\/console$/);
  await page.goto(`${served.url}/console/reports/general-ledger`);
  await page.getByRole('link', { name: 'Export', exact: true }).first().click();
  await page.getByLabel('Format').selectOption('quickbooks');
  await page.locator('main form button').first().click();
  await page.getByText('Part 1 of 2026-09 for quickbooks').first().waitFor();
  await page.locator('main button.main').click();
  await page.locator('main').getByRole('link', { name: 'General ledger' }).click();
  await page.getByText('final').first().waitFor();
  if (process.env['PICTURE']) await page.screenshot({ path: process.env['PICTURE'], fullPage: true });
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'gl-2026-09-1-quickbooks.csv' }).click();
  const content = readFileSync(await (await downloading).path());
  expect(readBack('quickbooks', [{ name: 'gl.csv', content }]).length).toBeGreaterThan(10);
  const [stored] = await world.sql<{ content: Buffer }>('SELECT content FROM gl_export_files');
  expect(content.equals(stored?.content as Buffer)).toBe(true);
}, 120_000);
