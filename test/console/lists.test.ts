/** A list as a page: filters, tabs, sorting, paging by key, ticks, totals and its files. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Books, openBooks } from '../payments/books.ts';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import type { Served } from '../support/service.ts';

let books: Books;
let served: Served;
let finance: Browser;
beforeAll(async () => {
  books = await openBooks();
  await invite(books, ADMINISTRATOR);
  served = await serveConsole(books);
  finance = await signedIn(served, await invite(books, 'mara@issuer.example', { roles: ['finance'] }));
});
afterAll(async () => {
  await served?.end();
  await books?.end();
});

const page = async (question: string) => (await finance.get(`/console/invoices${question}`)).text;
const numbers = (text: string) =>
  [...text.matchAll(/class="row number" href="[^"]*\/([A-Z]+-[\d-]+)"/g)].map(([, each]) => each);
const sql = async (order: string) =>
  (
    await books.sql<{ number: string }>(
      `SELECT number FROM documents d JOIN document_balances b USING (document_id) ORDER BY ${order}`,
    )
  ).map(({ number }) => number);

describe('documents are sorted', () => {
  test.each([
    ['', 'd.document_id DESC'],
    ['?sort=number', 'd.series, d.sequence'],
    ['?sort=-month', 'd.month DESC, d.document_id DESC'],
    ['?sort=due_on', "coalesce(d.due_on, 'infinity'), d.document_id"],
    ['?sort=-due_on', "coalesce(d.due_on, 'infinity') DESC, d.document_id DESC"],
    ['?sort=partner_name', 'lower(d.partner_name), d.document_id'],
    [
      '?sort=balance',
      "d.currency, CASE d.document WHEN 'credit_note' THEN -b.balance ELSE b.balance END, d.document_id",
    ],
    [
      '?sort=-balance',
      "d.currency, CASE d.document WHEN 'credit_note' THEN -b.balance ELSE b.balance END DESC, d.document_id",
    ],
  ])('%s', async (question, order) => {
    const all = await sql(order);
    expect(numbers(await page(question))).toEqual(all);
    // The page after any of them goes on with the one that follows.
    const at = Math.floor(all.length / 2);
    const [row] = await books.sql<{ id: string }>(
      `SELECT document_id AS id FROM documents WHERE number = '${all[at]}'`,
    );
    const after = `${question === '' ? '?' : `${question}&`}after=${row?.id}`;
    expect(numbers(await page(after))).toEqual(all.slice(at + 1));
  });

  test('by what a heading leads to: the same the other way round', async () => {
    const text = await page('?sort=due_on&status=open');
    expect(text).toMatch(/aria-sort="ascending"><[^>]*"\/console\/invoices\?sort=-due_on&amp;status=open">Due</);
  });

  test('by an amount the largest first, and by another column from its beginning', async () => {
    const text = await page('?status=open');
    for (const sort of ['-balance', '-amount_due', 'due_on']) expect(text).toContain(`?status=open&amp;sort=${sort}"`);
  });

  test('and by nothing else', async () => {
    expect((await finance.get('/console/invoices?sort=number;')).status).toBe(400);
    expect((await finance.get('/console/invoices?after=x')).status).toBe(400);
  });
});

test('every filter of the command is one of the page', async () => {
  const text = await page('?overdue=yes');
  for (const name of ['month', 'partner', 'amount', 'text', 'from', 'to']) expect(text).toContain(`name="${name}"`);
  expect(text).toMatch(/<input (?=[^>]*name="text")(?=[^>]*type="search")/);
  expect(text).toMatch(/<input (?=[^>]*name="month")(?=[^>]*placeholder="2026-09")(?=[^>]*pattern="\\d\{4\}-\\d\\d")/);
  expect(text).toContain('value="/console/invoices?overdue=yes" aria-current="page">Overdue<');
  expect(numbers(await page('?amount=1,250.00'))).toContain('INV-2026-000001');
});

test('a page begins with the first of its tabs, and each tab leads to its rows', async () => {
  const tabs = async (question: string) => {
    const { text } = await finance.get(`/console/approvals${question}`);
    return [...text.matchAll(/<a href="([^"]*)"( aria-current="page")?>(Waiting|All)<\/a>/g)].map(
      ([, href, current, name]) => [name, href, current !== undefined],
    );
  };
  const waiting = [
    ['Waiting', '/console/approvals?waiting=yes', true],
    ['All', '/console/approvals?view=all', false],
  ];
  expect(await tabs('')).toEqual(waiting);
  expect(await tabs('?waiting=yes')).toEqual(waiting);
  expect((await tabs('?view=all')).map(([name, , current]) => [name, current])).toEqual([
    ['Waiting', false],
    ['All', true],
  ]);
  expect((await finance.get('/console/approvals')).text).toContain('href="/console/approvals.csv?waiting=yes"');
  expect((await finance.get('/console/approvals?view=all')).text).toContain('href="/console/approvals.csv"');
  // Where the first is All, an address without a filter asks for all.
  expect(await page('?status=open')).toContain('"/console/invoices">All<');
});

test('ticked rows go to an action as several values of its field', async () => {
  expect(await page('')).toContain('aria-label="Select INV-2026-000001" name="number" value="INV-2026-000001"');
  const ticked = '?month=&number=INV-2026-000001&number=INV-2026-000002&go=';
  for (const [go, to] of [
    ['/console/actions/payment.apply', '/console/actions/payment.apply?numbers=INV-2026-000001&numbers='],
    ['/console/actions/invoice.hold', '/console/actions/invoice.hold?number=INV-2026-000001&number='],
    ['/console/actions/invoice.credit?inFull=yes', '/console/actions/invoice.credit?inFull=yes&number='],
  ] as const) {
    const { status, headers } = await finance.get(`/console/invoices${ticked}${encodeURIComponent(go)}`);
    expect([status, headers.get('location')]).toEqual([expect.any(Number), expect.stringContaining(to)]);
  }
  const form = await finance.get(
    '/console/actions/payment.apply?numbers=INV-2026-000001&numbers=INV-2026-000002&paymentId=7',
  );
  expect(form.status).toBe(200);
  expect([...form.text.matchAll(/name="numbers"[^>]*|value="(INV[^"]*)"[^>]*name="numbers"/g)].length).toBeGreaterThan(
    2,
  );
  expect(form.text).toContain('INV-2026-000002');
});

test('a page is selected whole, and its next page keeps only those that were selected', async () => {
  const boxes = async (question: string) =>
    [...(await page(question)).matchAll(/<input type="checkbox" class="tick"[^>]*>/g)].map(([box]) => box);
  const all = await boxes('?tick=page');
  expect(all.length).toBeGreaterThan(3);
  expect(all.every((box) => box.includes('checked'))).toBe(true);
  expect((await boxes('')).some((box) => box.includes('checked'))).toBe(false);
  expect(await page('?tick=page&sort=number')).not.toContain('tick=page');
});

test('the PDFs of the selected documents are one file, which names those that have none', async () => {
  const [first] = await books.sql<{ number: string }>(
    'SELECT number FROM documents d WHERE NOT EXISTS (SELECT FROM document_pdfs p WHERE p.document_id = d.document_id)',
  );
  const file = await finance.get(`/console/invoices/pdfs.zip?month=&number=${first?.number}&number=INV-9`);
  expect([file.status, file.headers.get('content-type')]).toEqual([200, 'application/zip']);
  expect(file.text).toContain('missing.txt');
  expect((await finance.get('/console/invoices/pdfs.zip?number=INV-9')).status).toBe(404);
});

test('below the rows are the sums of all documents of the filter, by currency', async () => {
  const foot = async (question: string) => {
    const [, text = ''] = /<tfoot>(.*?)<\/tfoot>/s.exec(await page(question)) ?? [];
    return text
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll('\u00a0', ' ')
      .replaceAll(/\s+/g, ' ');
  };
  const summed = (where: string) =>
    books.sql<{ currency: string; due: string; balance: string }>(
      `SELECT currency, to_char(sum(b.amount_due * sign), 'FM9,999,999.00') AS due,
              to_char(sum(b.balance * sign), 'FM9,999,999.00') AS balance
       FROM documents d JOIN document_balances b USING (document_id)
       CROSS JOIN LATERAL (SELECT CASE d.document WHEN 'credit_note' THEN -1 ELSE 1 END AS sign) AS s
       WHERE currency <> 'JPY' AND ${where} GROUP BY currency`,
    );
  for (const [question, where] of [
    ['', 'true'],
    ['?kind=invoice&currency=usd', "d.document = 'invoice' AND currency = 'USD'"],
    ['?amountFrom=500&amountTo=1,000', "d.document <> 'statement' AND b.amount_due BETWEEN 500 AND 1000"],
  ] as const) {
    const expected = await summed(where);
    expect([question, expected.length]).not.toEqual([question, 0]);
    for (const { currency, due, balance } of expected) {
      expect(await foot(question)).toContain(`${due} ${currency} ${balance} ${currency}`);
    }
  }
});

test('documents are filtered by kind, hold, dispute and due date', async () => {
  const matching = async (question: string, where: string) => {
    const expected = await books.sql<{ number: string }>(
      `SELECT number FROM documents d WHERE ${where} ORDER BY document_id DESC`,
    );
    expect(numbers(await page(question))).toEqual(expected.map(({ number }) => number));
  };
  await matching('?kind=credit_note', "document = 'credit_note'");
  await matching('?held=yes', 'document_id IN (SELECT document_id FROM current_holds)');
  await matching('?disputed=yes', 'document_id IN (SELECT document_id FROM open_invoice_disputes)');
  await matching('?dueFrom=2026-09-01&dueTo=2026-09-30', "due_on BETWEEN '2026-09-01' AND '2026-09-30'");
});
