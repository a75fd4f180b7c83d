/** Cash application: what a receipt shows, what may be chosen for it, and whom it is shown to. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Books, HARBOUR, MUNICH, NORD, openBooks } from '../payments/books.ts';
import { ADMINISTRATOR, alertOf, type Browser, invite, type Page, serveConsole, signedIn } from '../support/console.ts';
import type { Served } from '../support/service.ts';

const BANK_FILE = `date,amount,currency,account,bank_reference,text,payer,payer_account
2026-10-02,61.10,USD,000123456789,CSV-0009,thanks for everything,Nobody We Know,ACC-NOBODY
`;

let books: Books;
let served: Served;
let finance: Browser;
let known: number;
let unknown: number;
let twice: number;
beforeAll(async () => {
  books = await openBooks();
  known = (await books.record({ partnerId: NORD, amount: '2340.00', reference: 'WIRE-1' })).paymentId;
  const { new_lines } = await books.bankText('october.csv', BANK_FILE);
  unknown = new_lines[0]?.payment_id ?? 0;
  await books.record({ partnerId: HARBOUR, amount: '50.00', reference: 'CHECK 7', method: 'wire' });
  twice = (await books.record({ partnerId: HARBOUR, amount: '50.00', reference: 'CHECK 7B', method: 'wire' }))
    .paymentId;
  await invite(books, ADMINISTRATOR);
  served = await serveConsole(books);
  finance = await signedIn(served, await invite(books, 'mara@issuer.example', { roles: ['finance'] }));
});
afterAll(async () => {
  await served.end();
  await books.end();
});

/** The fields of the preview's form, as a browser sends them back. */
const sentBack = ({ text }: Page): [string, string][] =>
  [...text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
    .map(([, name = '', value = '']): [string, string] => [name, value.replaceAll('&quot;', '"')])
    .filter(([name]) => name !== 'form_token');

describe('a receipt', () => {
  test('shows what is open of its payer, and several invoices chosen at once are previewed and paid in one action', async () => {
    const page = await finance.get(`/console/payments/${known}`);
    expect(page.status).toBe(200);
    for (const number of ['INV-2026-000002', 'INV-2026-000006', 'INV-2026-000010']) {
      expect(page.text).toContain(`value="${number}"`);
    }
    expect(page.text).not.toContain('value="INV-2026-000001"');
    const fields: [string, string][] = [
      ['paymentId', String(known)],
      ['numbers', 'INV-2026-000002'],
      ['numbers', 'INV-2026-000010'],
    ];
    const preview = await finance.post('/console/actions/payment.apply', [...fields, ['step', 'preview']]);
    expect(alertOf(preview)).toBe('');
    expect((await books.payment(known)).applications).toEqual([]);
    const done = await finance.post('/console/actions/payment.apply', [...sentBack(preview), ['step', 'confirm']]);
    const words = done.text.replaceAll(/<[^>]*>/g, '');
    expect([done.status, words.includes('is applied to INV-2026-000002, INV-2026-000010')]).toEqual([200, true]);
    expect((await books.payment(known)).unapplied).toBe('0.00');
  });

  test('that is applied says to what, with the action that undoes it', async () => {
    const { text } = await finance.get(`/console/payments/payment-${known}`);
    expect(text).toContain(`payment.unapply?paymentId=${known}&amp;number=INV-2026-000010`);
    expect(text).toContain('Nothing is unapplied');
  });

  test('finds invoices of any partner by number or name', async () => {
    const { text } = await finance.get(`/console/payments/${twice}?q=000009`);
    expect(text).toContain('value="INV-2026-000009"');
    expect(text).not.toContain('value="INV-2026-000001"');
  });

  test('shows what the bank wrote, and offers to name its payer', async () => {
    const { status, text } = await finance.get(`/console/payments/${unknown}`);
    expect(status).toBe(200);
    expect(text).toContain('thanks for everything');
    expect(text).toMatch(/action="\/console\/actions\/payment.assign"/);
  });

  test('that may be a duplicate can be reversed as one, or kept', async () => {
    const { text } = await finance.get(`/console/payments/payment-${twice}`);
    expect(text).toContain('Possible duplicate');
    expect(text).toContain(`payment.reverse?paymentId=${twice}&amp;kind=duplicate`);
    expect(text).toContain(`payment.close_exception?exception=payment-${twice}`);
  });

  test('that does not exist is not there', async () => {
    for (const path of ['999', 'payment-0', 'line-999', "x'y"]) {
      const page = await finance.get(`/console/payments/${encodeURIComponent(path)}`);
      expect([path, page.status]).toEqual([path, 404]);
    }
  });
});

describe('all payments', () => {
  test('are listed latest first, and filtered by reference, amount and status', async () => {
    const ids = async (query: string) =>
      [
        ...(await finance.get(`/console/payments/all${query}`)).text.matchAll(
          /class="row number" href="[^"]*\/(\d+)"/g,
        ),
      ].map(([, id]) => Number(id));
    const all = await ids('');
    expect(all).toEqual([...all].sort((one, other) => other - one));
    expect(await ids('?text=wire-1')).toEqual([known]);
    expect(await ids('?amount=2,340.00')).toEqual([known]);
    expect(await ids(`?status=applied&partner=${NORD}`)).toEqual([known]);
    expect(await ids(`?after=${all[0]}`)).toEqual(all.slice(1));
    expect((await finance.get('/console/payments/all?amount=lots')).status).toBe(400);
  });
});

describe('whoever sees only some partners', () => {
  test('sees the payments of these, and none of an unknown payer', async () => {
    const munich = await signedIn(
      served,
      await invite(books, 'vera@issuer.example', { roles: ['viewer'], partnerId: MUNICH }),
    );
    expect((await munich.get(`/console/payments/${known}`)).status).toBe(404);
    expect((await munich.get(`/console/payments/${unknown}`)).status).toBe(404);
    for (const list of ['/console/payments', '/console/payments/all']) {
      const { status, text } = await munich.get(list);
      expect([list, status, text.includes('WIRE-1')]).toEqual([list, 200, false]);
    }
  });

  test('and a viewer of all has no button that acts', async () => {
    const viewer = await signedIn(served, await invite(books, 'vic@issuer.example', { roles: ['viewer'] }));
    const { status, text } = await viewer.get(`/console/payments/${twice}`);
    expect(status).toBe(200);
    expect(text).not.toContain('/console/actions/');
    expect((await viewer.get('/console/invoices/INV-2026-000001')).text).not.toContain('/console/actions/');
  });
});

describe('a bank file', () => {
  const PATH = '/console/actions/payment.import';
  const fileOf = (text: string, name: string) => new File([text], name);
  const HOSTILE = '../../<b>\u202e\u0007nov.csv';
  const NEXT = `${BANK_FILE.split('\n')[0]}
2026-10-14,980.50,USD,000123456789,CSV-0010,invoice INV-2026-000005,Harbour Lights Ticketing,ACC-HARBOUR-1
`;

  test('is previewed, and imported as it was shown when that is confirmed', async () => {
    await finance.get(PATH);
    const before = await books.payments();
    const preview = await finance.upload(PATH, { step: 'preview' }, { file: fileOf(NEXT, HOSTILE) });
    expect(alertOf(preview)).toBe('');
    expect(preview.text).toMatch(/980.50.*INV-2026-000005/s);
    expect(preview.text).not.toContain('<b>');
    expect(await books.payments()).toEqual(before);
    const done = await finance.post(PATH, [...sentBack(preview), ['step', 'confirm']]);
    expect([done.status, done.text.includes('1 of 1 line recorded: 1 payment.')]).toEqual([200, true]);
    expect((await books.balance('INV-2026-000005')).status).toBe('paid');
    const files = await books.sql<{ name: string }>(`SELECT name FROM bank_files ORDER BY bank_file_id DESC LIMIT 1`);
    expect(files).toEqual([{ name: '<b>nov.csv' }]);
  });

  test('that is none is refused in the words of the command, and kept in the form', async () => {
    const refused = await finance.upload(PATH, { step: 'preview' }, { file: fileOf('hello', 'letter.txt') });
    expect([refused.status, alertOf(refused).includes('letter.txt')]).toEqual([422, true]);
    expect(refused.text).toMatch(/type="checkbox" name="file" value="letter.txt,aGVsbG8="/);
  });

  test('of more than 4 MB, without a token, or by who may not, is not read', async () => {
    const large = fileOf('x'.repeat(4 * 1024 * 1024 + 1), 'large.csv');
    expect((await finance.upload(PATH, { step: 'preview' }, { file: large })).status).toBe(413);
    const forged = await finance.upload(PATH, { step: 'preview', form_token: 'x' }, { file: fileOf(NEXT, 'a.csv') });
    expect(forged.status).toBe(403);
    const viewer = await signedIn(served, await invite(books, 'val@issuer.example', { roles: ['viewer'] }));
    expect((await viewer.upload(PATH, { step: 'preview' }, { file: fileOf(NEXT, 'a.csv') })).status).toBe(403);
    const path = '/console/actions/invoice.hold';
    expect((await finance.upload(path, { step: 'preview' }, { file: fileOf(NEXT, 'a.csv') })).status).toBe(403);
  });
});
