/**
 * A month that was billed to forty partners with wrong details, reissued in a real browser. Counts the clicks. Without
 * Chromium these tests are skipped.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ADMINISTRATOR, invite, serveConsole } from '../support/console.ts';
import { launch, openPage } from '../support/pages.ts';
import type { Served } from '../support/service.ts';
import { has, needs } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const PARTNERS = Array.from({ length: 40 }, (_, at) => `p-${at + 1}`);
let world: World;
let served: Served;
let browser: Browser;
let page: Page;
let clicks = 0;

beforeAll(async () => {
  if (!has('chromium')) return;
  world = await openWorld();
  await world.partners(PARTNERS.map((partner_id) => partner({ partner_id })));
  await world.rows(PARTNERS.map((partner_id, at) => quote({ partner_id, quote_id: `q-${at}` })));
  await world.close();
  await world.deliver();
  await world.partners(PARTNERS.map((partner_id) => partner({ partner_id, tax_id: 'US-9' })));
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
  browser = await launch();
  ({ page } = await openPage(browser));
  await page.goto(served.url + (await invite(world, 'fin@issuer.example', { roles: ['finance'] })));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(/\/console($|\/(close|invoices))/);
});
afterAll(async () => {
  await browser?.close();
  await served?.end();
  await world?.end();
});
beforeEach((context) => needs('chromium', context));

const ticked = () => page.locator('main input.tick:checked').count();

async function click(role: 'link' | 'button', name: string) {
  clicks += 1;
  await page.getByRole(role, { name, exact: true }).first().click();
}

test('rows are ticked by mouse, as a range with shift, and by key', async () => {
  await page.goto(`${served.url}/console/invoices`);
  const boxes = page.locator('main input.tick');
  await boxes.nth(1).click();
  await boxes.nth(5).click({ modifiers: ['Shift'] });
  expect(await ticked()).toBe(5);
  await page.locator('main').focus();
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  expect(await ticked()).toBe(6);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download PDFs' }).click();
  expect((await download).suggestedFilename()).toBe('documents.zip');
});

test('forty documents are reissued with five clicks', async () => {
  await page.goto(`${served.url}/console`);
  await click('link', 'Invoices');
  await page.getByRole('heading', { name: 'Invoices' }).waitFor();
  await click('button', 'Select this page');
  await page.waitForURL(/tick=page/);
  expect(await ticked()).toBe(40);
  await click('button', 'Reissue');
  await page.getByRole('button', { name: 'Preview' }).waitFor();
  await click('button', 'Preview');
  await page.getByRole('heading', { name: 'When it is done' }).waitFor();
  await click('button', 'Replace 40 documents');
  await page.getByRole('heading', { name: /^Done/ }).first().waitFor();
  expect(clicks).toBe(5);
  const [{ replaced = 0 } = {}] = await world.sql<{ replaced: number }>(
    'SELECT count(*)::int AS replaced FROM documents WHERE replaces IS NOT NULL',
  );
  expect(replaced).toBe(40);
});
