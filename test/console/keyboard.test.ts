/**
 * The work of a month by the keyboard alone, in a real browser: after the sign-in no click, and no address that is typed.
 * Without Chromium these tests are skipped.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { verifyPack } from '../audit/books.ts';
import { type Books, HARBOUR, NORD, openBooks } from '../payments/books.ts';
import { ADMINISTRATOR, invite, serveConsole } from '../support/console.ts';
import { launch, openPage } from '../support/pages.ts';
import type { Served } from '../support/service.ts';
import { has, needs, tool } from '../support/tools.ts';
import { quote } from '../support/world.ts';

let books: Books;
let served: Served;
let browser: Browser;

beforeAll(async () => {
  if (!has('chromium')) return;
  books = await openBooks();
  await books.rows([
    quote({
      partner_id: HARBOUR,
      accepted_at: '2026-10-10T12:00:00Z',
      invoiceAmount: '310.00',
      spotPrice: '310.00',
      partnerCut: '0',
    }),
  ]);
  // Nord owes 840.00, 840.00 and 1,500.00; its bank kept 15.00.
  await books.record({ partnerId: NORD, amount: '3165.00', reference: 'WIRE-1' });
  books.at('2026-11-02T15:00:00Z');
  await invite(books, ADMINISTRATOR);
  served = await serveConsole(books, {
    small_difference: { USD: '25.00' },
    approvals: { 'invoice.void': { always: true } },
    allow_empty: true,
  });
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await served?.end();
  await books?.end();
});
beforeEach((context) => needs('chromium', context));

/** A browser whose user is signed in, and the keys that this user presses. */
async function at(login: string, roles: Parameters<typeof invite>[2]): Promise<Keys> {
  const { page } = await openPage(browser);
  await page.goto(served.url + (await invite(books, login, roles)));
  const keys = new Keys(page);
  await keys.tabTo('Sign in');
  await keys.press('Enter');
  await page.waitForURL(/\/console($|\/(close|invoices))/);
  return keys;
}

/** What has the focus: its text, or what it is called. */
const FOCUSED = `(() => {
  const at = document.activeElement === document.body ? null : document.activeElement;
  return (at?.getAttribute('aria-label') ?? (at?.labels?.[0] ?? at)?.textContent ?? '').trim().replace(/\\s+/g, ' ');
})()`;
/** Whether it is seen to have it. */
const RING = `(() => {
  const at = document.activeElement;
  if (at === null || at === document.body || at.id === 'main') return true;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  return (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1) || at.tagName === 'IFRAME';
})()`;

class Keys {
  readonly page: Page;
  constructor(page: Page) {
    this.page = page;
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  focused(): Promise<string> {
    return this.page.evaluate(FOCUSED) as Promise<string>;
  }

  /** Moves the focus on until it is on what has this name; it is seen wherever it is. */
  async tabTo(name: string, key = 'Tab'): Promise<void> {
    const passed: string[] = [];
    for (let presses = 0; presses < 120; presses += 1) {
      await this.press(key);
      const on = await this.focused();
      expect([on, await this.page.evaluate(RING)]).toEqual([on, true]);
      if (on === name) return;
      passed.push(on);
    }
    throw new Error(`the keyboard does not reach ${name}, but ${[...new Set(passed)].join(' | ')}`);
  }

  /** Presses Enter on it and waits for the page to which that leads. */
  async enter(name: string, heading: string | RegExp, key = 'Tab'): Promise<void> {
    await this.tabTo(name, key);
    await this.press('Enter');
    await this.heading(heading);
  }

  async heading(name: string | RegExp): Promise<void> {
    await this.page.getByRole('heading', { name }).first().waitFor();
  }

  /** Goes to a page by its letter. The page before may have the same heading. */
  async goTo(letter: string, heading: string | RegExp): Promise<void> {
    await this.page.evaluate("document.getElementById('main').dataset.left = ''");
    await this.press('g', letter);
    await this.page.locator('#main:not([data-left])').waitFor();
    await this.heading(heading);
  }

  text(): Promise<string> {
    return this.page.locator('main').innerText();
  }
}

test('single keys are turned off for a browser, and on again; what is filled in is not left by a key', async () => {
  const keys = await at('mara@issuer.example', { roles: ['finance'] });
  const { page } = keys;
  await page.goto(`${served.url}/console/payments/1`);
  await keys.tabTo('Choose INV-2026-000002');
  await keys.press(' ', 'Escape');
  await page.waitForTimeout(500);
  expect(new URL(page.url()).pathname).toBe('/console/payments/1');
  await keys.press(' ', 'Escape');
  await page.waitForURL(/\/console\/payments$/);

  await page.goto(`${served.url}/console/account`);
  await keys.enter('Single keys off', 'Your account');
  await page.locator('html[data-keys="off"]').waitFor();
  await keys.press('g', 'i', '?', 'Escape');
  await page.waitForTimeout(500);
  expect([new URL(page.url()).pathname, await page.locator('dialog[open]').count()]).toEqual(['/console/account', 0]);
  await keys.enter('Single keys on', 'Your account');
  await page.locator('html:not([data-keys])').waitFor();
  await keys.goTo('i', 'Invoices');
});

test('finance previews a month, closes it and finds what it made', async () => {
  const keys = await at('mara@issuer.example', { roles: ['finance'] });
  const issued = () => books.documents({ months: ['2026-10' as Month] });
  await keys.goTo('c', 'October 2026');
  await keys.enter('Close October 2026', /./, '.');
  await keys.page.waitForURL(/month\.close$/);
  await keys.page.getByText('310.00').first().waitFor();
  expect(await issued()).toEqual([]);
  await keys.press('Escape');
  await keys.page.waitForURL(/close\/2026-10$/);
  await keys.enter('Close October 2026', /./, '.');
  await keys.page.waitForURL(/month\.close$/);
  const sign = 'Close October 2026 and e-mail 1 document';
  await keys.page.getByRole('button', { name: sign }).waitFor();
  expect(await keys.text()).toContain('INV-2026-000013');
  await keys.enter(sign, /October 2026/, '.');
  await keys.page.waitForURL(/close\/2026-10$/);
  await keys.page.getByText('Billed').first().waitFor();
  expect(await issued()).toMatchObject([{ amount_due: '310.00' }]);
  await keys.goTo('i', 'Invoices');
  await keys.press('j');
  expect(await keys.focused()).toBe('INV-2026-000013');
  await keys.page.context().close();
});

test('finance asks for a void, and a second person approves it', async () => {
  const approver = await at('lee@issuer.example', { roles: ['approver'] });
  const finance = await at('rosa@issuer.example', { roles: ['finance'] });
  await finance.press('/');
  await finance.page.keyboard.type('INV-2026-000009');
  await finance.press('Enter');
  await finance.heading(/INV-2026-000009/);
  await finance.tabTo('More actions');
  await finance.press('Enter');
  await finance.enter('Void', 'Void a document');
  await finance.tabTo('Reason');
  await finance.page.keyboard.type('Sent twice');
  await finance.press('Enter');
  await finance.heading('When it is done');
  await finance.enter('Request approval: Void INV-2026-000009', /Approval requested/);
  expect((await books.balance('INV-2026-000009')).status).toBe('open');

  await approver.goTo('q', 'Work queue');
  await approver.tabTo('Approvals 1');
  await approver.press('Enter');
  await approver.page.waitForURL(/queue=approvals/);
  await approver.heading('1 item');
  await approver.press('j', 'Enter');
  await approver.page.waitForURL(/approvals\/\d+/);
  await approver.enter('Approve and do it now', /^Done$/, '.');
  expect((await books.balance('INV-2026-000009')).status).toBe('void');
  await finance.page.context().close();
  await approver.page.context().close();
});

test('finance matches a wire to three invoices less a bank fee in one action, and undoes it in one', async () => {
  const keys = await at('noa@issuer.example', { roles: ['finance'] });
  await keys.goTo('p', 'Payments');
  await keys.enter('All payments', 'Payments');
  // Both pages have this heading.
  await keys.heading('1 payment');
  await keys.press('j', 'Enter');
  await keys.heading(/Payment 1/);
  for (let row = 0; row < 3; row += 1) await keys.press('j', 'x');
  await keys.tabTo('Bank fee optional');
  await keys.page.keyboard.type('15');
  const sum = async () => (await keys.page.locator('[data-sum]').innerText()).replaceAll(/\s+/g, ' ');
  expect(await sum()).toBe('Chosen 3,180.00 USD Payment 3,165.00 USD Bank fee 15.00 USD Stays open 0.00 USD');
  await keys.press('Enter');
  await keys.heading('When it is done');
  expect(await keys.text()).toContain('15.00 USD to bank charges');
  const live = () =>
    books.sql<{ amount: string }>('SELECT a.amount::text FROM live_payment_applications a ORDER BY a.amount');
  expect(await live()).toEqual([]);
  await keys.enter('Apply payment 1 to invoices', /^Done$/);
  expect(await live()).toEqual([{ amount: '840.00' }, { amount: '840.00' }, { amount: '1485.00' }]);
  await keys.enter('Payment 1', /Payment 1/);
  await keys.enter('Undo all', /Unapply a payment/, '.');
  await keys.tabTo('Reason');
  await keys.page.keyboard.type('wrong invoices');
  await keys.enter('Preview', 'When it is done');
  await keys.enter('Unapply payment 1 from the invoices it paid', /^Done$/);
  expect(await live()).toEqual([]);
  expect((await books.balance('INV-2026-000010')).balance).toBe('1500.00');
  await keys.page.context().close();
});

test('an auditor has a pack of a month made and downloads it, and its offline verifier finds nothing wrong', async () => {
  const keys = await at('nia@auditor.example', { roles: ['viewer'] });
  await keys.goTo('u', 'Audit');
  await keys.tabTo('Packs');
  await keys.press('Enter');
  await keys.page.waitForURL(/audit\/packs$/);
  await keys.heading('Packs');
  await keys.tabTo('Format of invoices');
  await keys.press('Tab');
  expect(await keys.focused()).toBe('Make');
  await keys.press('Enter');
  const download = keys.page.getByRole('link', { name: /^Download/ });
  await download.waitFor({ timeout: 60_000 });
  await keys.tabTo((await download.innerText()).trim());
  const arrives = keys.page.waitForEvent('download');
  await keys.press('Enter');
  const zip = await arrives;
  expect(zip.suggestedFilename()).toMatch(/^invoices-2026-\d\d\.zip$/);
  const pack = join(books.home, 'downloaded');
  expect(spawnSync(tool('python3'), ['-m', 'zipfile', '-e', await zip.path(), pack]).status).toBe(0);
  // What needs the months before it stays open.
  expect(verifyPack([pack])).toMatchObject({
    status: 2,
    output: expect.stringMatching(/^Nothing is wrong; \d+ open\.$/m),
  });
  // It is this file that is checked: a changed byte is found.
  const data = join(pack, 'invoices.csv');
  writeFileSync(data, readFileSync(data, 'utf8').replace('INV-', 'INX-'));
  expect(verifyPack([pack]).status).toBe(1);
  await keys.page.context().close();
});

test('a report is downloaded, the help opens and closes, and the skip link leads to the content', async () => {
  const keys = await at('kim@auditor.example', { roles: ['viewer'] });
  await keys.goTo('a', 'Aging');
  await keys.tabTo('CSV', '.');
  const arrives = keys.page.waitForEvent('download');
  await keys.press('Enter');
  const file = await (await arrives).path();
  expect(readFileSync(file, 'utf8')).toContain('p-2');

  await keys.press('?');
  await keys.page.locator('dialog[open]').waitFor();
  await keys.press('Escape');
  expect(await keys.page.locator('dialog[open]').count()).toBe(0);
  expect(await keys.focused()).toBe('CSV');

  await keys.press('/');
  await keys.page.keyboard.type('g c j');
  await keys.press('Escape');
  expect(await keys.page.evaluate('document.activeElement === document.body')).toBe(true);
  expect(keys.page.url()).toMatch(/\/console\/aging$/);
  await keys.page.reload();
  await keys.press('Tab');
  expect(await keys.focused()).toBe('Skip to content');
  await keys.press('Enter', 'Tab');
  expect(await keys.page.evaluate(`document.activeElement.closest('main') !== null`)).toBe(true);
  await keys.page.context().close();
});

test('no page holds the focus: Tab leads through every part of it and out again, and back', async () => {
  const keys = await at('ines@issuer.example', { roles: ['finance', 'administrator'] });
  // Audit has hundreds of links, all of one kind.
  for (const letter of ['c', 'q', 'p', 'r', 'a', 'o', 's']) {
    const from = keys.page.url();
    await keys.press('g', letter);
    await keys.page.waitForURL((url) => url.href !== from);
    await keys.page.waitForLoadState('networkidle');
    await keys.tabTo('Skip to content');
    await keys.tabTo('Sign out', 'Shift+Tab');
  }
  await keys.page.context().close();
});
