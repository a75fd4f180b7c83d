/** The page of ledger rows: its links from a preview, an invoice and the search, its default month, and ticked rows. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { creditInvoice } from '../../src/documents/credit.ts';
import { openDispute } from '../../src/documents/disputes.ts';
import { reverseRows } from '../../src/documents/reverse-rows.ts';
import { ADMINISTRATOR, type Browser, invite, type Page, serveConsole, signedIn, wordsOf } from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
let finance: Browser;
let own: Browser;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-09-02T12:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Other' })]);
  await world.rows([
    quote({ quote_id: 'q-a', enrollment_id: 'ENR-100' }),
    quote({
      quote_id: 'q-b',
      enrollment_id: 'ENR-101',
      spotPrice: '20.00',
      partnerCut: '6.00',
      invoiceAmount: '14.00',
    }),
    quote({ quote_id: 'q-c', enrollment_id: 'ENR-102', partner_id: 'p-2' }),
  ]);
  await world.close('2026-07');
  await world.rows([quote({ quote_id: 'q-d', accepted_at: '2026-08-03T12:00:00Z' })]);
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
  finance = await signedIn(served, await invite(world, 'mara@issuer.example', { roles: ['finance'] }));
  own = await signedIn(served, await invite(world, 'vera@issuer.example', { roles: ['viewer'], partnerId: 'p-2' }));
});
afterAll(async () => {
  await served?.end();
  await world?.end();
});

const INV_1 = 'INV-2026-000001';
const shown = (path: string, browser = finance) => browser.get(`/console${path}`);
const page = async (path: string, browser = finance) => (await shown(path, browser)).text;

const plain = (found: Page) => wordsOf(found).replaceAll(/\s+/g, ' ');
const targetsOf = (text: string) =>
  [...text.matchAll(/name="go" value="\/console\/actions\/([^"]+)"/g)].map(([, each]) => each);
const ticksOf = (text: string, state = '') =>
  [...text.matchAll(/<input type="checkbox"[^>]*>/g)]
    .map(([each]) => each)
    .filter((each) => each.includes('name="rows"') && each.includes(state))
    .map((each) => /value="(\d+)"/.exec(each)?.[1] as string);

test('the page begins with the latest month, and shows it in the filter', async () => {
  const text = await page('/rows');
  expect(text).toContain('name="month" value="2026-08"');
  expect(text).toContain('q-d');
  expect(text).not.toContain('q-a');
});

test('a preview of a close leads from the reason of a change to its rows', async () => {
  const { text } = await finance.post('/console/actions/month.close', { month: '2026-08', step: 'preview' });
  expect(text).toContain('href="/console/rows?partner=p-1&amp;month=2026-08"');
  expect(text.replaceAll(/\s+/g, ' ')).toContain('2 → 1 row, average price 15.00 → 10.00 USD');
});

test('an invoice and each of its lines lead to their rows', async () => {
  const text = await page(`/invoices/${INV_1}`);
  expect(text).toContain(`href="/console/rows?document=${INV_1}"`);
  expect(text).toContain(`href="/console/rows?document=${INV_1}&amp;policy=ticket-protection&amp;kind=quote_accepted"`);
});

test('rows of an invoice are ticked to credit, dispute or reverse them; other rows only to reverse them', async () => {
  const text = await page(`/rows?document=${INV_1}`);
  expect(targetsOf(text)).toEqual([`invoice.credit?number=${INV_1}`, `dispute.open?number=${INV_1}`, 'rows.reverse']);
  expect(targetsOf(await page('/rows'))).toEqual(['rows.reverse']);
});

test('the form of a credit shows each ticked sale with the number of its row, and its preview their sum', async () => {
  const ids = ticksOf(await page(`/rows?document=${INV_1}`));
  expect(ids).toHaveLength(2);
  const formPage = await shown(`/actions/invoice.credit?number=${INV_1}&rows=${ids.join('&rows=')}`);
  expect(plain(formPage)).toContain(`ENR-100 · ticket-protection · 2026-07-15 · 7.00 USDRow ${ids[1]}`);
  expect(ticksOf(formPage.text, 'checked')).toEqual([...ids].reverse());
  const preview = await finance.post('/console/actions/invoice.credit', [
    ...[['number', INV_1] as const, ['reason', 'canceled'] as const, ['step', 'preview'] as const],
    ...ids.map((id) => ['rows', id] as const),
  ]);
  expect(wordsOf(preview)).toMatch(/21\.00\s*USD/);
});

test('an enrollment or its beginning is found, and leads to the rows of its quote', async () => {
  for (const q of ['ENR-100', 'ENR-10']) {
    expect(await page(`/search?q=${q}`)).toContain('href="/console/rows?quote=q-a"');
  }
  expect(await page('/search?q=EN')).not.toContain('quote=q-a');
});

test('a user of one partner sees the rows of this partner alone', async () => {
  const text = await page('/rows?month=2026-07', own);
  expect(text).toContain('q-c');
  expect(text).not.toContain('q-a');
  expect(targetsOf(text)).toEqual([]);
  expect(await page('/search?q=ENR-100', own)).not.toContain('q-a');
});

test('the sums below the rows are those of all rows of the filter, by currency', async () => {
  expect(plain(await shown('/rows?month=2026-07'))).toContain('Total40.00 USD12.00 USD28.00 USD');
  expect(plain(await shown('/rows?month=2026-07&partner=p-2'))).toContain('Total10.00 USD3.00 USD7.00 USD');
});

test('ticked rows stay selected through pages, tabs, sort orders and filters, and then go to the action', async () => {
  const [first = '', second = ''] = ticksOf(await page('/rows?month=2026-07'));
  const otherPage = await shown(`/rows?month=2026-08&rows=${first}&rows=${second}`);
  expect(plain(otherPage)).toContain('2 rows selected on other pages. Clear the selection');
  expect(otherPage.text).toMatch(new RegExp(`type="hidden" name="rows" value="${first}"`));
  expect(ticksOf(await page(`/rows?month=2026-07&rows=${first}`), 'checked')).toEqual([first]);
  const [late] = [...otherPage.text.matchAll(/name="go" value="([^"]*late=yes[^"]*)"/g)].map(([, to]) => to as string);
  const asked = new URLSearchParams([
    ['month', '2026-08'],
    ['rows', first],
    ['rows', second],
    ['go', `${late}`.replaceAll('&amp;', '&')],
  ]);
  const moved = await finance.get(`/console/rows?${asked}`);
  expect(moved.location).toBe(`/console/rows?month=2026-08&late=yes&rows=${first}&rows=${second}`);
  const reversed = await finance.get(
    `/console/rows?rows=${first}&go=${encodeURIComponent('/console/actions/rows.reverse')}`,
  );
  expect(reversed.location).toBe(`/console/actions/rows.reverse?rows=${first}`);
});

test('a button of a list leads to pages of the console alone, with at most 200 rows', async () => {
  expect((await finance.get('/console/rows?go=https://elsewhere.example')).status).toBe(404);
  const many = Array.from({ length: 201 }, (_, at) => `rows=${at}`).join('&');
  const refused = await finance.get(`/console/rows?${many}`);
  expect(refused.status).toBe(400);
  expect(wordsOf(refused)).toContain('select at most 200');
});

test('a button of the list leads only to pages of the console, whatever its address has in it', async () => {
  const to = async (go: string) => {
    const { status, location } = await shown(`/rows?${new URLSearchParams({ go })}`);
    return [status, location];
  };
  expect(await to('/console/rows\r\nX: y')).toEqual([303, '/console/rowsX:%20y']);
  for (const go of ['/console/../../etc', '//other.example/console/', 'https://other.example/', 'http://[']) {
    expect([go, ...(await to(go))]).toEqual([go, 404, null]);
  }
});

test('settings of the whole ledger are no form of who sees one partner alone', async () => {
  const roles = { roles: ['finance'], partnerId: 'p-2' } as const;
  const limited = await signedIn(served, await invite(world, 'lim@issuer.example', roles));
  const form = '/actions/settings.adopt?section=holds&edit=yes';
  expect((await shown(form, limited)).status).toBe(403);
  expect((await shown(form)).status).toBe(200);
});

test('rows that were credited, reversed or disputed carry a mark, and have a tab', async () => {
  const numberOf = async (quoteId: string) =>
    Number(/Row (\d+)|aria-label="Select (\d+)"/.exec(await page(`/rows?quote=${quoteId}`))?.[2]);
  const [a, b, d] = [await numberOf('q-a'), await numberOf('q-b'), await numberOf('q-d')];
  await world.database.transaction((tx) => openDispute(tx, world, { number: INV_1, rows: [a], reason: 'twice' }));
  await world.database.transaction((tx) => creditInvoice(tx, world, { number: INV_1, rows: [b], reason: 'twice' }));
  await world.database.transaction((tx) => reverseRows(tx, world, { rows: [d], reason: 'canceled' }));
  const july = wordsOf(await shown('/rows?month=2026-07&corrected=yes'));
  expect(july).toMatch(/q-a.*disputed/s);
  expect(july).toMatch(/q-b.*credited/s);
  expect(july).not.toContain('q-c');
  expect(wordsOf(await shown('/rows?quote=q-d'))).toMatch(/q-d.*reversed/s);
  expect(ticksOf(await page(`/rows?document=${INV_1}`))).toEqual([String(a)]);
});
