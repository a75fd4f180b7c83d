/** Every list and report with buttons for CSV and XLSX: the file is what the command writes, for the day and filter of the page. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { voidDocument } from '../../src/documents/void.ts';
import { type Books, HARBOUR, openBooks } from '../payments/books.ts';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import { reckoner } from '../support/program.ts';
import type { Served } from '../support/service.ts';

let books: Books;
let served: Served;
let finance: Browser;
beforeAll(async () => {
  books = await openBooks();
  await books.record({ partnerId: HARBOUR, amount: '1250.00', number: 'INV-2026-000001', reference: 'W-1' });
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
  await books.bankText('credits.csv', `${head}2026-10-13,55.01,USD,1,B-1,THANKS,J Smith,\n`);
  await invite(books, ADMINISTRATOR);
  served = await serveConsole(books);
  finance = await signedIn(served, await invite(books, 'mara@issuer.example', { roles: ['finance'] }));
});
afterAll(async () => {
  await served?.end();
  await books?.end();
});

async function written(command: readonly string[]): Promise<string> {
  const env = { RECKONER_HOME: books.home, DATABASE_URL: books.databaseUrl, RECKONER_NOW: '2026-10-15T15:00:00Z' };
  const { status, stdout } = await reckoner([...command, '--format', 'csv'], { env });
  expect(status).toBe(0);
  return stdout;
}

test.each([
  ['invoices', ['invoice', 'list']],
  ['invoices?overdue=yes&month=2026-07', ['invoice', 'list', '--overdue', '--month', '2026-07']],
  ['invoices?status=paid&text=harbour', ['invoice', 'list', '--status', 'paid', '--text', 'harbour']],
  ['aging?as_of=2026-08-31', ['report', 'aging', '--as-of', '2026-08-31']],
  [
    'reports/trial-balance?as_of=2026-09-01&detail=yes',
    ['report', 'trial-balance', '--as-of', '2026-09-01', '--detail'],
  ],
  ['reports/coverage?as_of=2026-09-15', ['report', 'coverage', '--as-of', '2026-09-15']],
  ['reports/cash-application', ['report', 'cash-application']],
  ['reports/roll-forward', ['report', 'roll-forward']],
  ['reports/movements', ['report', 'movements']],
  ['reports/reserve', ['report', 'reserve']],
  ['reports/general-ledger/entries', ['gl', 'entries']],
  ['reports/close?month=2026-08', ['report', 'close', '2026-08']],
])('%s is downloaded as the command writes it', async (address, command) => {
  const page = await finance.get(`/console/${address}`);
  expect(page.status).toBe(200);
  const links = [...page.text.matchAll(/href="(\/console\/[^"]+\.(?:csv|xlsx)[^"]*)"/g)].map(([, href = '']) =>
    href.replaceAll('&amp;', '&'),
  );
  expect(links.map((href) => /\.(csv|xlsx)/.exec(href)?.[1])).toEqual(['csv', 'xlsx']);
  const [csv, xlsx] = await Promise.all(links.map((href) => finance.get(href)));
  expect([csv?.status, csv?.text.replace('\uFEFF', '')]).toEqual([200, (await written(command)).replace('\uFEFF', '')]);
  expect(csv?.text.split('\n').length).toBeGreaterThan(2);
  expect(csv?.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w-]+\.csv"$/);
  expect([xlsx?.status, xlsx?.text.slice(0, 2)]).toEqual([200, 'PK']);
});

test('a parameter that a report does not have is refused, and addresses name the day and the basis as files do', async () => {
  for (const question of ['trial-balance?asOf=2026-07-31', 'tax?by=issued', 'tax.csv?month=2026-07', 'close?day=1']) {
    const { status, text } = await finance.get(`/console/reports/${question}`);
    expect([question, status]).toEqual([question, 400]);
    expect(text).toMatch(/is not a parameter of this page/);
  }
  expect((await finance.get('/console/reports/trial-balance?as_of=2026-07-31')).text).toContain('as of 31 July 2026');
  expect((await finance.get('/console/reports/tax?basis=issued')).text).toContain('of documents issued from');
  expect((await finance.get('/console/reports/tax?to=2027-09-30')).text).toMatch(/2027-09-01 is in the future/);
});

test('the page of the reserve has its day, and says which total to post', async () => {
  const { text } = await finance.get('/console/reports/reserve');
  const [, day] = /name="as_of" value="(\d{4}-\d\d-\d\d)"/.exec(text) ?? [];
  expect(text).toContain(`open invoices by days overdue as of ${day}; post the total of one grouping, always the same`);
  expect(text).toContain('<span class="unseen">Currency</span>');
  expect(text).not.toContain('<span class="unseen">Actions</span>');
});

test('whoever sees some partners downloads only their documents', async () => {
  const link = await invite(books, 'vera@issuer.example', { roles: ['viewer'], partnerId: 'p-4' });
  const { status, text } = await (await signedIn(served, link)).get('/console/invoices.csv');
  expect(status).toBe(200);
  expect(text.match(/INV-2026-\d+/g)).toEqual(['INV-2026-000004', 'INV-2026-000008', 'INV-2026-000012']);
});

test('a page that does not exist says so in the frame of whoever is signed in', async () => {
  const page = await finance.get('/console/no/such/page');
  expect([page.status, page.text.includes('href="/console/queue"')]).toEqual([404, true]);
});

test('a void document shows its void copy first, and the original as it was issued', async () => {
  const number = 'INV-2026-000002';
  await books.deliver();
  await books.database.transaction((tx) => voidDocument(tx, books, { number, reason: 'wrong price' }));
  const { text } = await finance.get(`/console/invoices/${number}`);
  const files = [...text.matchAll(/(?:href|src)="\/console\/invoices\/[^"/]+\/([\w-]+\.pdf)[^"]*"/g)];
  expect(files.map(([, file]) => file)).toEqual(['void-copy.pdf', 'document.pdf', 'void-copy.pdf']);
  const copy = await finance.get(`/console/invoices/${number}/void-copy.pdf`);
  expect([copy.status, copy.headers.get('content-disposition')]).toEqual([
    200,
    `inline; filename="${number}-void.pdf"`,
  ]);
  expect((await finance.get('/console/invoices/INV-2026-000001/void-copy.pdf')).status).toBe(422);
});
