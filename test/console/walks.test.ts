/**
 * The console in a real browser: every screen on a phone, a laptop and a large display, light and dark, with and without
 * JavaScript, and work done with the keyboard alone. Without Chromium these tests are skipped.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openDispute } from '../../src/documents/disputes.ts';
import { holdDocument } from '../../src/documents/hold.ts';
import { GL_FORMATS } from '../../src/general-ledger/accounts.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import type { Month } from '../../src/month.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { type Books, HARBOUR, MUNICH, NORD, openBooks } from '../payments/books.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import {
  addressOf,
  askToRelease,
  isMoved,
  isOpen,
  type Route,
  serveRoutes,
  sizeIn,
} from '../support/console-routes.ts';
import { expectNoFaults, launch, type Opened, openPage, signIn } from '../support/pages.ts';
import type { Served } from '../support/service.ts';
import { has, needs } from '../support/tools.ts';

let books: Books;
let served: Served;
let browser: Browser;
/** The addresses of all screens. Forms of actions are alike: some stand for all. */
const screens: string[] = [];
const ACTIONS = /^\/actions\/(invoice\.void|payment\.apply|client\.create|user\.role|close)$/;

const BANK_FILE = `date,amount,currency,account,bank_reference,text,payer,payer_account
2026-10-02,61.10,USD,000123456789,CSV-0009,thanks for everything,Nobody We Know,ACC-NOBODY
`;

beforeAll(async () => {
  if (!has('chromium')) return;
  books = await openBooks();
  const [first, , third] = await books.documents();
  await books.deliver();
  const { new_lines } = await books.bankText('october.csv', BANK_FILE);
  await books.record({ partnerId: NORD, amount: '2340.00', reference: 'WIRE-1' });
  const { number: paid = '' } = first ?? {};
  await books.record({ number: paid, amount: '100.00', reference: 'PART' });
  const { transaction } = books.database;
  await transaction((tx) => holdDocument(tx, books.acting, { number: third?.number ?? '', reason: 'ask first' }));
  await transaction((tx) => openDispute(tx, books.acting, { number: paid, reason: 'Tickets of the festival' }));
  await invite(books, ADMINISTRATOR);
  const opened = await serveRoutes(books);
  served = opened.served;
  await served.client(MUNICH);
  const requestId = await askToRelease(books, paid, HARBOUR);
  writeAccounts(books, everyAccount());
  for (const format of GL_FORMATS) {
    const journal = { month: '2026-08' as Month, format, preliminary: true };
    await transaction((tx) => exportGl(tx, books, journal));
  }
  const objects = {
    requestId,
    number: paid,
    partnerId: NORD,
    exception: String(new_lines[0]?.payment_id),
    month: '2026-08',
    size: await sizeIn(books),
  };
  screens.push(...opened.routes.filter(isScreen).map((route) => served.url + addressOf(route, objects)));
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await served?.end();
  await books?.end();
});
beforeEach((context) => needs('chromium', context));

function isScreen(route: Route): boolean {
  const { method, path } = route;
  if (method !== 'GET' || isOpen(route) || isMoved(route) || /\.(csv|xlsx|pdf|xml|zip)$|:file$/.test(path))
    return false;
  return !path.startsWith('/actions/') || ACTIONS.test(path);
}

let visitors = 0;
/** A browser in which a user who sees everything is signed in. */
async function open(options?: BrowserContextOptions): Promise<Opened> {
  const opened = await openPage(browser, options);
  visitors += 1;
  const link = await invite(books, `visitor-${visitors}@issuer.example`, { roles: ['finance', 'administrator'] });
  await signIn(opened.page, served.url + link, /\/console$/);
  return opened;
}

describe('every screen, on a phone, a laptop and a large display, light and dark', () => {
  test('fits, and neither axe nor the browser finds a fault', async () => {
    expect(screens.length).toBeGreaterThan(25);
    await expectNoFaults(await open(), screens);
  }, 600_000);

  test('fits without JavaScript', async () => {
    await expectNoFaults(await open({ javaScriptEnabled: false }), screens, { withAxe: false });
  });
});

describe('on a narrow screen', () => {
  const PHONE = { width: 390, height: 844 };
  /** Whether all of an element is between the sides of the window. */
  const isInWindow = (page: Page, selector: string): Promise<boolean> =>
    page.evaluate(`(() => {
      const { left, right } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
      return left >= 0 && right <= innerWidth;
    })()`);

  test('the latest months are seen first, without JavaScript too', async () => {
    const { page } = await open({ javaScriptEnabled: false, viewport: PHONE });
    await page.goto(`${served.url}/console/close`);
    expect(await page.locator('.strip li').count()).toBeGreaterThan(3);
    expect(await isInWindow(page, '.strip li:last-child')).toBe(true);
    expect(await isInWindow(page, '.strip li:first-child')).toBe(false);
  });

  test('the month and the place that are shown are scrolled into the window', async () => {
    const { page } = await open({ viewport: PHONE });
    await page.goto(`${served.url}/console/close/2026-07`);
    await expect.poll(() => isInWindow(page, '.strip a[aria-current]')).toBe(true);
    await page.goto(`${served.url}/console/settings`);
    await expect.poll(() => isInWindow(page, '.rail a[aria-current]')).toBe(true);
  });
});

describe('with the keyboard alone', () => {
  /** Moves the focus on until it is on what has this text. */
  async function tabTo(page: Page, name: string): Promise<void> {
    for (let presses = 0; presses < 100; presses += 1) {
      await page.keyboard.press('Tab');
      const at = (await page.evaluate(
        `(document.activeElement?.labels?.[0] ?? document.activeElement)?.textContent?.trim()`,
      )) as string;
      if (at === name) return;
    }
    throw new Error(`the keyboard does not reach ${name}`);
  }

  test('finance signs in, opens an invoice, voids it after seeing what that does, and finds it in the list', async () => {
    const { number = '' } = (await books.documents()).find(({ balance }) => balance === '1500.00') ?? {};
    const { page } = await openPage(browser);
    await page.goto(served.url + (await invite(books, 'mara@issuer.example', { roles: ['finance'] })));
    await tabTo(page, 'Sign in');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/console$/);

    await page.keyboard.press('g');
    await page.keyboard.press('i');
    await page.waitForURL(/\/console\/invoices$/);
    await page.locator('main tbody tr').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('k');
    const focused = () => page.evaluate('document.activeElement?.textContent') as Promise<string>;
    for (let rows = 0; rows < 20 && (await focused()) !== number; rows += 1) await page.keyboard.press('j');
    expect(await focused()).toBe(number);
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`/console/invoices/${number}$`));

    await tabTo(page, 'More actions');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Void');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/console\/actions\/invoice\.void/);
    await tabTo(page, 'Reason');
    await page.keyboard.type('Sent twice');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'When it is done' }).waitFor();
    const voids = () => books.sql(`SELECT reason FROM voids`);
    expect(await voids()).toEqual([]);
    await tabTo(page, `Void ${number}`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Done', exact: true }).waitFor();
    expect(await page.textContent('main')).toContain(`${number} is void.`);
    expect(await voids()).toEqual([{ reason: 'Sent twice' }]);

    await page.keyboard.press('g');
    await page.keyboard.press('i');
    await page.waitForURL(/\/console\/invoices$/);
    await page.keyboard.press('/');
    expect(await page.evaluate(`document.activeElement?.getAttribute('name')`)).toBe('q');
    await page.keyboard.type('g c');
    expect(page.url()).toMatch(/\/console\/invoices$/);
    await page.context().close();
  });
});

test('an action is done without JavaScript by the same form', async () => {
  const { page } = await open({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
  const { number = '' } = (await books.documents()).find(({ balance }) => balance === '750.25') ?? {};
  await page.goto(`${served.url}/console/actions/invoice.hold?number=${number}`);
  await page.getByLabel('Reason').fill('ask the festival');
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.locator('button[value="confirm"]').click();
  await page.getByRole('heading', { name: 'Done', exact: true }).waitFor();
  expect(await books.sql(`SELECT reason FROM holds WHERE reason = 'ask the festival'`)).toHaveLength(1);
  await page.context().close();
});

test('on paper a table stays a table, in ink, without what is pressed', async () => {
  const { page } = await open({ viewport: { width: 780, height: 1100 }, colorScheme: 'dark' });
  await page.goto(`${served.url}/console/aging`);
  const headings = page.getByRole('columnheader', { name: 'Not due' }).first();
  expect(await headings.isVisible()).toBe(false);
  await page.emulateMedia({ media: 'print' });
  expect(await headings.isVisible()).toBe(true);
  expect(await page.evaluate('getComputedStyle(document.body).color')).toBe('rgb(22, 25, 29)');
  for (const pressed of ['.rail', '.topbar', '.tabs', '.filters input', '.actions']) {
    expect([pressed, await page.locator(pressed).first().isVisible()]).toEqual([pressed, false]);
  }
  // A total is repeated on each sheet where it is the table's footer.
  expect(await page.evaluate(`getComputedStyle(document.querySelector('tfoot')).display`)).toBe('table-row-group');
  await page.goto(`${served.url}/console/partners/${NORD}/statement?from=2026-07-01&as_of=2026-08-31`);
  expect(await page.getByText('Account statement, 2026-07-01 to 2026-08-31').isVisible()).toBe(true);
  expect(await page.getByRole('link', { name: 'Rows' }).count()).toBe(0);
  await page.context().close();
});

test('a theme is chosen without JavaScript, and stays', async () => {
  const { page } = await open({ javaScriptEnabled: false, colorScheme: 'light' });
  const ground = () => page.evaluate(`getComputedStyle(document.body).color`);
  await page.goto(`${served.url}/console/account`);
  const light = await ground();
  await page.getByRole('button', { name: 'Dark' }).click();
  await page.goto(`${served.url}/console/invoices`);
  expect(await ground()).not.toBe(light);
  await page.context().close();
});
