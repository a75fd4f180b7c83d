/** The search over everything: by number, partner, amount, reference and quote, and only among the reader's partners. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDispute } from '../../src/documents/disputes.ts';
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
  expect((await found(finance, '%')).text).toContain('Nothing found.');
  expect((await found(finance, "x'; --")).text).toContain('Nothing found.');
  expect((await found(finance, '')).status).toBe(200);
});

test('a number is found without its zeros, and a partner with a typing error', async () => {
  const { status, location } = await found(finance, 'inv-2026-5');
  expect([status, location]).toEqual([303, '/console/invoices/INV-2026-000005']);
  expect((await found(finance, 'habour')).text).toContain('href="/console/partners/p-1"');
  expect((await found(finance, 'zzzzzz')).text).toContain('Nothing found.');
});

test('a line of the bank is found by part of its text, whatever became of it, and a dispute by its amount', async () => {
  await books.bankText(
    'lines.csv',
    `date,amount,currency,account,bank_reference,text,payer,payer_account
2026-10-09,-35.00,USD,0001,BK-7008,MONTHLY ACCOUNT FEE,BANK,
2026-10-10,977.42,USD,0001,BK-7009,WIRE 100% 1 AND 61 LESS FEE,JT HOLDINGS LLC,
`,
  );
  for (const q of ['less fee', 'JT HOLD', 'bk-7009', '977.42', '100% 1']) {
    const { text } = await found(finance, q);
    expect([q, text.includes('Bank lines')]).toEqual([q, true]);
  }
  expect((await found(finance, 'jt hold')).text).toContain('JT HOLDINGS LLC</');
  for (const q of ['BK-7008', '35.00', 'account fee']) {
    expect((await found(finance, q)).text).toContain('/console/payments/lines?from=2026-10-09&amp;to=2026-10-09');
  }
  await books.database.transaction((tx) =>
    openDispute(tx, books.acting, { number: 'INV-2026-000001', amount: '12.34', reason: 'price of two seats' }),
  );
  for (const q of ['12.34', 'two seats']) expect((await found(finance, q)).text).toContain('Disputes');
  expect((await finance.get('/console/queue/disputes')).text).toContain('price of two seats');
});

test('results are rows of lists, which the keys move through, and lead to the list with all of them', async () => {
  const { text } = await found(finance, 'inv-2026');
  expect(text).toMatch(/<td[^>]*><div class="value"><a class="row number" href="\/console\/invoices\/INV-2026-\d+"/);
  expect(text).not.toContain('type="checkbox"');
  expect((await found(munich, 'JT HOLD')).text).toContain('Nothing found.');
});

test('an order is found by its reference, or by the first four characters of it, with all of its quotes', async () => {
  const { text } = await found(finance, 'ORD 17');
  expect(text).toContain('q-ordered</a>');
  expect(text.match(/ORD 17<\/span>/g)).toHaveLength(2);
  expect((await found(finance, 'ORD 1')).text).toContain('ORD 17</span>');
  expect((await found(finance, 'ORD')).text).not.toContain('q-ordered</a>');
  expect((await found(finance, 'q-ordered')).text).toContain('ORD 17</span>');
});

test('a reader of one partner finds nothing of another', async () => {
  for (const q of ['INV-2026-000005', 'harbour', '1250.00', 'WIRE-77', quoteId, 'ORD 17']) {
    const { status, text } = await found(munich, q);
    expect([q, status, text.includes('Nothing found.')]).toEqual([q, 200, true]);
  }
  expect((await found(munich, '500')).text).toContain('INV-2026-000004');
});
