/**
 * Finance proposes settings in a real browser: a form with the values in force, old beside new, and a second person.
 * Without Chromium these tests are skipped.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runAction } from '../../src/actions/run.ts';
import { settingsAdopt } from '../../src/actions/settings.ts';
import { CONTROL_ACCOUNTS } from '../../src/config/accounts.ts';
import { SECTION_NAMES, SECTIONS } from '../../src/config/settings.ts';
import { settingsInForce } from '../../src/people/settings-in-force.ts';
import { readAgain } from '../support/adopting.ts';
import { ADMINISTRATOR, invite, serveConsole } from '../support/console.ts';
import { AXE, AXE_RULES, launch, openPage, signIn, TOO_WIDE } from '../support/pages.ts';
import type { Served } from '../support/service.ts';
import { has, needs } from '../support/tools.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let served: Served;
let browser: Browser;

beforeAll(async () => {
  if (!has('chromium')) return;
  world = await openWorld();
  await world.partners([partner()]);
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world, { approvals: { 'settings.adopt.holds': { always: true } } });
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await served?.end();
  await world?.end();
});
beforeEach((context) => needs('chromium', context));

async function at(login: string, roles: Parameters<typeof invite>[2]): Promise<Page> {
  const { page } = await openPage(browser);
  await signIn(page, served.url + (await invite(world, login, roles)), /\/console$/);
  return page;
}
const textOf = (page: Page) => page.locator('main').innerText();
const inForce = async () => (await settingsInForce(world.database, world.settings)).holds;

async function propose(page: Page, title: string): Promise<void> {
  await page.goto(`${served.url}/console/settings`);
  await page.getByRole('row', { name: title }).getByRole('link', { name: 'Propose a change' }).click();
  await page.getByRole('button', { name: 'Preview' }).waitFor();
}

test('finance proposes a hold, is told which field is wrong, and a second person puts it in force', async () => {
  const mara = await at('mara@issuer.example', { roles: ['finance'] });
  const lee = await at('lee@issuer.example', { roles: ['approver'] });
  await propose(mara, 'Holds');
  await mara.getByText('Another').first().click();
  await mara.getByLabel('Currency').fill('USD');
  await mara.getByLabel('Amount', { exact: true }).fill('-5');
  await mara.getByLabel('Times the largest invoice').fill('2.5');
  await mara.getByRole('button', { name: 'Preview' }).click();
  await mara.getByText('This is below zero.').waitFor();
  expect(await mara.getByLabel('Times the largest invoice').inputValue()).toBe('2.5');
  await mara.getByLabel('Amount', { exact: true }).first().fill('250.00');
  await mara.getByRole('button', { name: 'Preview' }).click();
  await mara.getByText('nothing is done yet').waitFor();
  expect(await textOf(mara)).toMatch(/Holds, above an amount, USD\s+none\s+250\.00/);
  await mara.getByRole('button', { name: 'Put settings in force' }).click();
  await mara.getByText('Approval requested').first().waitFor();
  expect(await inForce()).toEqual({ above: {}, times: null });

  await lee.goto(`${served.url}/console/approvals/1`);
  expect(await textOf(lee)).toMatch(/Holds, above an amount, USD\s+none\s+250\.00/);
  await lee.getByRole('button', { name: 'Approve' }).click();
  await expect.poll(inForce, { timeout: 20_000 }).toEqual({ above: { USD: '250.00' }, times: '2.5' });

  // An entry is removed.
  await propose(mara, 'Holds');
  await mara.getByLabel('Remove').first().check();
  await mara.getByRole('button', { name: 'Preview' }).click();
  await mara.getByText('nothing is done yet').waitFor();
  expect(await textOf(mara)).toMatch(/Holds, above an amount, USD\s+250\.00\s+none/);
});

test('every account is listed by its name to be mapped, and one without a target stays unmapped', async () => {
  const mara = await at('mapping@issuer.example', { roles: ['finance'] });
  await mara.goto(`${served.url}/console/reports/general-ledger`);
  await mara.getByRole('link', { name: 'Accounts' }).last().click();
  for (const name of Object.values(CONTROL_ACCOUNTS))
    await mara.getByText(`${name}: not mapped`, { exact: true }).waitFor();
  await mara.getByText('Sales: not mapped').click();
  const sales = mara.locator('details[open]');
  await sales.getByLabel('Account in the general ledger').fill('4000 Sales');
  await mara.getByRole('button', { name: 'Preview' }).click();
  await mara.getByText('nothing is done yet').waitFor();
  expect(await textOf(mara)).toMatch(/General-ledger account 1, account in the general ledger\s+none\s+4000 Sales/);
  await mara.getByRole('button', { name: 'Change the form' }).click();
  await mara.getByText('Sales: 4000 Sales').waitFor();
  await mara.getByText('Bank: not mapped').waitFor();
});

test('each section has a form that carries its values unchanged, fits a phone, and has labels', async () => {
  await readAgain(world);
  const files = {
    tax: { from: '2027-01', countries: { DE: {} }, rules: [{ category: 'standard', rate: '19', country: 'DE' }] },
    accounts: { accounts: [{ account: 'income:sales', to: '4000', by_partner: false }], names: { 'p-1': 'Harbour' } },
    approvals: { 'settings.adopt.holds': {}, 'invoice.void': { above: { USD: '10.00', EUR: '9.00' } } },
    reminder_minimum: { USD: '10.00', '*': '1' },
  };
  for (const [section, value] of Object.entries(files)) {
    const file = { name: 'section.json', bytes: Buffer.from(JSON.stringify(value)) };
    await runAction(world, settingsAdopt, { section: section as keyof typeof files, file });
  }
  const page = await at('root@issuer.example', { roles: ['administrator', 'finance'] });
  await page.setViewportSize({ width: 390, height: 844 });
  for (const section of SECTION_NAMES) {
    await propose(page, SECTIONS[section]);
    expect([section, await page.evaluate(TOO_WIDE)]).toEqual([section, []]);
    await page.evaluate(AXE);
    const found = (await page.evaluate(`axe.run(${JSON.stringify(AXE_RULES)})`)) as { violations: { id: string }[] };
    expect([section, found.violations.map(({ id }) => id)]).toEqual([section, []]);
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.waitForLoadState();
    // Those that were adopted are in force already; the first adoption of the others changes no value.
    const told = section in files || section === 'holds' ? /already in force/ : /unchanged, once adopted/;
    await page.getByText(told).first().waitFor();
    expect(await textOf(page)).not.toMatch(/[{}]|reckoner /);
  }
});
