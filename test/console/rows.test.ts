/** The page of ledger rows: its links from a preview, an invoice and the search, its default month, and ticked rows. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn, wordsOf } from '../support/console.ts';
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
const page = async (path: string, browser = finance) => (await browser.get(`/console${path}`)).text;

test('the page begins with the latest month, and shows it in the filter', async () => {
  const text = await page('/rows');
  expect(text).toContain('name="month" value="2026-08"');
  expect(text).toContain('q-d');
  expect(text).not.toContain('q-a');
});

test('a preview of a close leads from the reason of a change to its rows', async () => {
  const text = await page('/close/2026-08/preview?exact=yes');
  expect(text).toContain('href="/console/rows?partner=p-1&amp;month=2026-08"');
  expect(text.replaceAll(/\s+/g, ' ')).toContain('2 → 1 rows, average price 15.00 → 10.00 USD');
});

test('an invoice and each of its lines lead to their rows', async () => {
  const text = await page(`/invoices/${INV_1}`);
  expect(text).toContain(`href="/console/rows?document=${INV_1}"`);
  expect(text).toContain(`href="/console/rows?document=${INV_1}&amp;policy=ticket-protection&amp;kind=quote_accepted"`);
});

test('rows of an invoice are ticked to credit, dispute or reverse them; other rows only to reverse them', async () => {
  const text = await page(`/rows?document=${INV_1}`);
  expect(text).toContain(`<input type="hidden" name="number" value="${INV_1}"`);
  expect([...text.matchAll(/formaction="\/console\/actions\/([a-z._]+)"/g)].map(([, each]) => each)).toEqual([
    ...['invoice.credit', 'dispute.open', 'rows.reverse'],
  ]);
  const open = await page('/rows');
  expect([...open.matchAll(/formaction="\/console\/actions\/([a-z._]+)"/g)].map(([, each]) => each)).toEqual([
    'rows.reverse',
  ]);
});

test('the form of a credit has the ticked rows, and its preview their sum', async () => {
  const ids = [...(await page(`/rows?document=${INV_1}`)).matchAll(/name="rows" value="(\d+)"/g)].map(
    ([, id]) => id as string,
  );
  expect(ids).toHaveLength(2);
  const form = await page(`/actions/invoice.credit?number=${INV_1}&rows=${ids.join('&rows=')}`);
  for (const id of ids) expect(form).toContain(`value="${id}"`);
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
  expect(text).not.toContain('formaction');
  expect(await page('/search?q=ENR-100', own)).not.toContain('q-a');
});
