/** The search over everything: by number, partner, amount, reference and quote, and only among the reader's partners. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Books, HARBOUR, MUNICH, openBooks } from '../payments/books.ts';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { quote, requote } from '../support/world.ts';

const ORDERED = quote({ quote_id: 'q-ordered', order_reference: 'ORD 17' });

let books: Books;
let served: Served;
let finance: Browser;
let munich: Browser;
let quoteId: string;
let paymentId: number;
beforeAll(async () => {
  books = await openBooks();
  paymentId = (await books.record({ partnerId: HARBOUR, amount: '61.10', reference: 'WIRE-77' })).paymentId;
  const [row] = await books.sql<{ quote_id: string }>(
    `SELECT quote_id FROM ledger_rows WHERE partner_id = 'p-1' ORDER BY entry_id LIMIT 1`,
  );
  quoteId = row?.quote_id ?? '';
  const { rejected } = await books.rows([
    ...[ORDERED, requote(ORDERED, { order_reference: undefined })],
    quote({ order_reference: 'ORD 17' }),
  ]);
  expect(rejected).toBe(0);
  await invite(books, ADMINISTRATOR);
  served = await serveConsole(books);
  finance = await signedIn(served, await invite(books, 'mara@issuer.example', { roles: ['finance'] }));
  const viewer = { roles: ['viewer'], partnerId: MUNICH } as const;
  munich = await signedIn(served, await invite(books, 'vera@issuer.example', viewer));
});
afterAll(async () => {
  await served.end();
  await books.end();
});

const found = (browser: Browser, q: string) => browser.get(`/console/search?q=${encodeURIComponent(q)}`);

test('the number of a document leads straight to it', async () => {
  const { status, location } = await found(finance, 'inv-2026-000005');
  expect([status, location]).toEqual([303, '/console/invoices/INV-2026-000005']);
});

test('a partner, an amount, a reference, a quote and part of a number are found', async () => {
  expect((await found(finance, 'harbour')).text).toContain('href="/console/partners/p-1"');
  expect((await found(finance, '1,250.00')).text).toContain('/console/invoices/INV-2026-000001');
  for (const q of ['61.10', 'WIRE-77', 'wire-77']) {
    expect((await found(finance, q)).text).toContain(`/console/payments/${paymentId}`);
  }
  expect((await found(finance, quoteId)).text).toContain(`${quoteId}</a>`);
  expect((await found(finance, '00000')).text).toContain('INV-2026-000009');
  expect((await found(finance, "x'; --")).text).toContain('Nothing found.');
  expect((await found(finance, '')).status).toBe(200);
});

test('an order is found by the full reference of its partner, with all of its quotes', async () => {
  const { text } = await found(finance, 'ORD 17');
  expect(text).toContain('q-ordered</a>');
  expect(text.match(/ORD 17<\/span>/g)).toHaveLength(2);
  expect((await found(finance, 'ORD 1')).text).toContain('Nothing found.');
  expect((await found(finance, 'q-ordered')).text).toContain('ORD 17</span>');
});

test('a reader of one partner finds nothing of another', async () => {
  for (const q of ['INV-2026-000005', 'harbour', '1250.00', 'WIRE-77', quoteId, 'ORD 17']) {
    const { status, text } = await found(munich, q);
    expect([q, status, text.includes('Nothing found.')]).toEqual([q, 200, true]);
  }
  expect((await found(munich, '500')).text).toContain('INV-2026-000004');
});
