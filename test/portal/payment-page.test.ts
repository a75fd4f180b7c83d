/**
 * The payment page in a real browser: without JavaScript, on a phone's screen and on paper. axe-core needs JavaScript and
 * looks at it in visits of its own. Without Chromium these tests are skipped.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { creditInvoice } from '../../src/documents/credit.ts';
import { rerunDocument } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { writeOffInvoice } from '../../src/documents/write-off.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { adopt } from '../support/adopting.ts';
import { contactOf } from '../support/contact.ts';
import { AXE } from '../support/pages.ts';
import { ask, PRICED, type Served, serveWorld } from '../support/service.ts';
import { someOf, times } from '../support/sweep.ts';
import { has, needs, tool } from '../support/tools.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;
let served: Served;
let browser: Browser;
let context: BrowserContext;
/** Paths of the pages by what is on them. */
const paths: Record<string, string> = {};

const pathOf = async (where: string) => {
  const [row] = await world.sql<{ url: string }>(
    `SELECT url FROM payment_links JOIN documents USING (document_id) WHERE ${where} ORDER BY document_id DESC LIMIT 1`,
  );
  return new URL(row?.url ?? '').pathname;
};

beforeAll(async () => {
  world = await openWorld();
  await world.partners([
    partner({ ...PRICED, name: '<b>Harbour</b> & "Lights" Ticketing', purchase_order: 'PO-7 {{x}}' }),
    partner({ ...PRICED, partner_id: 'p-void', name: 'Void Ventures' }),
    partner({ ...PRICED, partner_id: 'p-new', name: 'Renamed Rides' }),
    partner({ ...PRICED, partner_id: 'p-paid', name: 'Paid Parking' }),
    partner({ ...PRICED, partner_id: 'p-credit', name: 'Credit Cruises' }),
    partner({ ...PRICED, partner_id: 'p-part', name: 'Part Payers' }),
    partner({ ...PRICED, partner_id: 'p-off', name: 'Off Ramp' }),
    partner({
      ...{ ...PRICED, partner_id: 'p-euro', name: 'Klangwerk', currency: 'EUR', time_zone: 'Europe/Berlin' },
      address: { line1: 'Kai 1', line2: '', city: 'Berlin', region: '', postal_code: '10999', country: 'DE' },
    }),
    partner({ ...PRICED, partner_id: 'p-yen', name: 'Tokyo Tickets', currency: 'JPY', time_zone: 'Asia/Tokyo' }),
  ]);
  const returned = quote({ partner_id: 'p-credit', accepted_at: '2026-06-10T12:00:00Z' });
  await world.rows([
    ...Array.from({ length: 3 }, () => quote()),
    quote({ accepted_at: '2026-06-20T12:00:00Z' }),
    ...['p-void', 'p-new', 'p-paid', 'p-part', 'p-off'].map((partner_id) => quote({ partner_id })),
    quote({ partner_id: 'p-euro', currency: 'EUR', spotPrice: '2000', partnerCut: '600', invoiceAmount: '1400' }),
    quote({ partner_id: 'p-yen', currency: 'JPY', spotPrice: '1000', partnerCut: '300', invoiceAmount: '700' }),
    returned,
    reversal(returned, { accepted_at: '2026-07-02T12:00:00Z' }),
  ]);
  await world.close('2026-06');
  await world.close('2026-07');
  await world.deliver();
  Object.assign(paths, {
    due: await pathOf(`partner_id = 'p-1' AND month = '2026-07'`),
    euro: await pathOf(`partner_id = 'p-euro'`),
    yen: await pathOf(`partner_id = 'p-yen'`),
    void: await pathOf(`partner_id = 'p-void'`),
    replaced: await pathOf(`partner_id = 'p-new'`),
    paid: await pathOf(`partner_id = 'p-paid'`),
    part: await pathOf(`partner_id = 'p-part'`),
    off: await pathOf(`partner_id = 'p-off'`),
  });
  const numberOf = async (partnerId: string) => (await world.documents({ partnerId }))[0]?.number ?? '';
  const issuing = { ...world, actor: world.actor };
  await world.partners([partner({ ...PRICED, partner_id: 'p-new', name: 'Renamed Rides, Inc.' })]);
  const [toVoid, toReplace, toCredit] = [await numberOf('p-void'), await numberOf('p-new'), await numberOf('p-paid')];
  await world.database.transaction((tx) => voidDocument(tx, issuing, { number: toVoid, reason: 'for the test' }));
  await world.database.transaction((tx) => rerunDocument(tx, issuing, toReplace, { newTerms: false }));
  await world.database.transaction((tx) =>
    creditInvoice(tx, issuing, { number: toCredit, amount: '7.00', reason: 'goodwill' }),
  );
  for (const partnerId of ['p-part', 'p-off']) {
    const number = await numberOf(partnerId);
    const cash = { currency: 'USD', method: 'wire', receivedOn: '2026-08-01', number } as const;
    await world.database.transaction((tx) =>
      recordPayment(tx, issuing, { ...cash, amount: '2.00', reference: `FT-${partnerId}` }),
    );
    if (partnerId === 'p-off') {
      await world.database.transaction((tx) => writeOffInvoice(tx, issuing, { number, reason: 'gone' }));
    }
  }
  await world.deliver();
  paths['replacement'] = await pathOf(`partner_id = 'p-new'`);
  served = await serveWorld(world);
  if (!has('chromium')) return;
  browser = await chromium.launch({
    executablePath: tool('chromium'),
    args: [
      ...['--no-sandbox', '--headless', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  });
  context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await served?.end();
  await world?.end();
});

async function visit(path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${served.url}${path}`);
  return page;
}

describe('in a browser without JavaScript', () => {
  beforeEach((context) => needs('chromium', context));

  test('a due invoice says what is owed, for what, and how it is paid by ACH and wire', async () => {
    const page = await visit(paths['due'] ?? '');
    expect(await page.title()).toMatch(/^Invoice INV-2026-\d{6}$/);
    const text = await page.innerText('body');
    for (const said of [
      'SANDBOX',
      'USD 21.00',
      'August 31, 2026',
      'Ticket Protection',
      '3 enrollments',
      'Pay by ACH',
      'Pay by wire transfer',
    ]) {
      expect(text).toContain(said);
    }
    // A name is text, whatever it looks like.
    expect(text).toContain('<b>Harbour</b> & "Lights" Ticketing');
    expect(text).toContain('PO-7 {{x}}');
    const numbers = await page.locator('.copy').allInnerTexts();
    expect(numbers).toEqual(expect.arrayContaining(['123456780', '000123456789', 'EXMPUS33XXX']));
    // One click takes the whole number.
    await page.locator('.copy', { hasText: '123456780' }).first().click();
    expect(await page.evaluate('getComputedStyle(document.querySelector(".copy")).userSelect')).toBe('all');
    expect(await page.evaluate('getSelection().toString()')).toBe('123456780');
    await page.close();
  });

  test('amounts and dates are written as on the document: in English', async () => {
    const page = await visit(paths['euro'] ?? '');
    const text = await page.innerText('body');
    expect(text).toContain('EUR 1,400.00');
    expect(text).toContain('Due 31 August 2026');
    expect(text).toContain('1 enrollment');
    expect(text).not.toContain('enrollments');
    await page.close();
  });

  test('a yen invoice has the instructions of its currency, and no ACH', async () => {
    const page = await visit(paths['yen'] ?? '');
    const text = await page.innerText('body');
    expect(text).toContain('JPY 700');
    expect(text).toContain('GB82WEST12345698765432');
    expect(text).not.toContain('ACH');
    await page.close();
  });

  test('a credited one says so, adds up and asks for nothing', async () => {
    const page = await visit(paths['paid'] ?? '');
    const text = await page.innerText('body');
    expect(text).toContain('This invoice is covered by credit. Nothing is due.');
    expect(text).toMatch(
      /Total\s+USD 7\.00\s+Credit note CN-2026-\d{6}, .*2026\s+-USD 7\.00\s+Balance due\s+USD 0\.00/,
    );
    expect(text).not.toMatch(/Pay by|routing|paid/);
    await page.close();
  });

  test('a partly paid one shows what was paid and what is left, and how long it is overdue', async () => {
    const before = world.environment.now().toISO();
    world.at('2026-09-01T12:00:00Z');
    const page = await visit(paths['part'] ?? '');
    const text = await page.innerText('body');
    expect(text).toMatch(/USD 5\.00\s+Due August 31, 2026 Overdue by 1 day/);
    expect(text).toContain('Balance due. Original amount USD 7.00; USD 2.00 paid or credited.');
    expect(text).toMatch(/Total\s+USD 7\.00\s+Payment received, August 1, 2026\s+-USD 2\.00\s+Balance due\s+USD 5\.00/);
    world.at('2026-09-03T12:00:00Z');
    await page.reload();
    expect(await page.innerText('body')).toContain('Overdue by 3 days');
    world.at(before);
    await page.reload();
    expect(await page.innerText('body')).not.toContain('Overdue');
    await page.close();
  });

  test('a written-off one is closed, and says neither that it is paid nor thank you', async () => {
    const page = await visit(paths['off'] ?? '');
    const text = await page.innerText('body');
    expect(text).toContain('This invoice is closed. Nothing is due.');
    expect(text).toMatch(
      /Total\s+USD 7\.00\s+Payment received, .*2026\s+-USD 2\.00\s+Written off, .*2026\s+-USD 5\.00\s+Balance due\s+USD 0\.00/,
    );
    expect(text).not.toMatch(/Pay by|routing|is paid|Thank you/);
    await page.close();
  });

  test('changed bank details reach the page of an open invoice, with a warning, and without a restart', async () => {
    const { instructions } = world.settings;
    const moved = JSON.parse(JSON.stringify(instructions).replaceAll('000123456789', '000987654321'));
    const page = await visit(paths['due'] ?? '');
    expect(await page.innerText('body')).not.toContain('have changed');
    await adopt(world, 'instructions', moved);
    await page.reload();
    const text = await page.innerText('body');
    expect(text).toContain('Our bank details have changed since this invoice was issued.');
    expect(text).toContain('on a phone number that you already know');
    expect(text).toContain('000987654321');
    expect(text).not.toContain('000123456789');
    expect(text).not.toContain('same bank details');
    expect(text).toContain('with bank details that are out of date');
    // A file on the server changes nothing.
    const file = join(world.home, 'settings.json');
    const written = readFileSync(file, 'utf8');
    writeFileSync(file, '{');
    await page.reload();
    expect(await page.innerText('body')).toContain('000987654321');
    writeFileSync(file, written);
    await adopt(world, 'instructions', instructions);
    await page.reload();
    expect(await page.innerText('body')).toContain('000123456789');
    await page.close();
  });

  test('an invoice that was sent with a warning about changed bank details has it on its page', async () => {
    await world.sql('ALTER TABLE document_pdfs DISABLE TRIGGER ALL');
    await world.sql(
      `UPDATE document_pdfs SET instructions_changed = true WHERE document_id =
         (SELECT document_id FROM documents WHERE partner_id = 'p-1' AND month = '2026-07')`,
    );
    await world.sql('ALTER TABLE document_pdfs ENABLE ALWAYS TRIGGER append_only');
    const page = await visit(paths['due'] ?? '');
    expect(await page.innerText('body')).toContain('Our bank details have changed since your last invoice.');
    await page.close();
  });

  test('a void invoice says so, asks for nothing and offers no files', async () => {
    const page = await visit(paths['void'] ?? '');
    const text = await page.innerText('body');
    expect(text).toContain('This invoice is void. Do not pay it.');
    expect(text).not.toMatch(/Pay by|routing|7\.00/);
    expect(await page.locator('a[href^="/pay/"]').count()).toBe(0);
    await page.close();
    expect((await ask(`${served.url}${paths['void']}/invoice.pdf`)).status).toBe(404);
    expect((await ask(`${served.url}${paths['void']}/rows.csv`)).status).toBe(404);
  });

  test('a replaced invoice names its replacement and does not link to it', async () => {
    const page = await visit(paths['replaced'] ?? '');
    expect(await page.innerText('body')).toContain('It was replaced by INV-');
    expect(await page.locator('a[href^="/pay/"]').count()).toBe(0);
    await page.close();
  });

  test('an unknown page says so politely', async () => {
    const cutOff = ['/pay', '/pay/', '/pay?a', '/pay/x', `${paths['due']}/`, `${paths['due']}/invoice.pdf.`];
    for (const path of [...cutOff, `/pay/${'a'.repeat(32)}`, `${paths['due']}x`, '/pay/%00', '/pay/..%2f..%2fetc']) {
      const answer = await ask(`${served.url}${path}`);
      expect([answer.status, answer.text.includes('There is no such page')]).toEqual([404, true]);
    }
  });

  test('only shows: another method is refused with those it has, and changes nothing', async () => {
    const path = paths['due'] ?? '';
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const answer = await ask(`${served.url}${path}`, { method, body: 'x' });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      expect(answer.text).toContain('Nothing was changed.');
    }
    expect((await ask(`${served.url}/pay/a/b/c`, { method: 'POST' })).status).toBe(404);
  });

  test('shows its PDF in nobody else’s frame', async () => {
    const pdf = await ask(`${served.url}${paths['due']}/invoice.pdf`);
    expect([pdf.status, pdf.headers.get('x-frame-options')]).toEqual([200, 'DENY']);
    expect(pdf.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  });

  test('fits a phone: nothing is wider than 360 pixels', async () => {
    for (const path of Object.values(paths)) {
      const page = await visit(path);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
      await page.close();
    }
  });

  test('on a phone, each line of the table takes the whole width, its amount at the right', async () => {
    const page = await visit(paths['due'] ?? '');
    const [heading, line, amount, total] = await Promise.all(
      ['#for', '.lines tbody tr', '.lines tbody .number', '.lines tfoot .number'].map((at) =>
        page.locator(at).first().boundingBox(),
      ),
    );
    const right = (box: typeof heading) => (box?.x ?? 0) + (box?.width ?? 0);
    expect(line?.width).toBe(heading?.width);
    expect([right(amount ?? null), right(total ?? null)]).toEqual([right(heading ?? null), right(heading ?? null)]);
    await page.close();
  });

  test('prints on one page, without the button and the files', async () => {
    const page = await visit(paths['due'] ?? '');
    await page.emulateMedia({ media: 'print' });
    expect(await page.locator('#files').isVisible()).toBe(false);
    const pdf = (await page.pdf({ format: 'A4' })).toString('latin1');
    expect(pdf.match(/\/Type\s*\/Page\b(?!s)/g)).toHaveLength(1);
    await page.close();
  });

  test('axe finds no problem on any page, on large or small screens', async () => {
    // axe is a script, which the pages' policy would not let run.
    const viewports = [
      { width: 360, height: 740 },
      { width: 1280, height: 900 },
    ];
    for (const viewport of someOf(viewports, times({ few: 1, short: 2, long: 2 }))) {
      const looking = await browser.newContext({ viewport, bypassCSP: true });
      for (const path of [...Object.values(paths), '/pay/x', '/reference']) {
        const page = await looking.newPage();
        await page.goto(`${served.url}${path}`);
        await page.evaluate(AXE);
        const found = (await page.evaluate('axe.run()')) as {
          violations: { id: string; nodes: { html: string }[] }[];
          passes: unknown[];
        };
        expect(found.violations.map(({ id, nodes }) => [path, id, nodes[0]?.html])).toEqual([]);
        expect(found.passes.length).toBeGreaterThan(10);
        await page.close();
      }
      await looking.close();
    }
  }, 120_000);

  test('is self-contained and does not violate its own content security policy', async () => {
    const strict = await browser.newContext();
    const page = await strict.newPage();
    const [requests, complaints]: [string[], string[]] = [[], []];
    page.on('request', (request) => requests.push(request.url()));
    page.on('console', (message) => complaints.push(message.text()));
    for (const path of [paths['due'], '/reference']) await page.goto(`${served.url}${path}`);
    expect(requests.map((url) => new URL(url).pathname)).toEqual([paths['due'], '/reference']);
    expect(complaints).toEqual([]);
    await strict.close();
  });
});

test('the PDF is the one that was sent, and the CSV has every row behind the document', async () => {
  const pdf = await fetch(`${served.url}${paths['due']}/invoice.pdf`);
  const [kept] = await world.sql<{ pdf: Buffer; number: string }>(
    `SELECT pdf, number FROM document_pdfs JOIN documents USING (document_id) WHERE partner_id = 'p-1' AND month = '2026-07'`,
  );
  expect(Buffer.from(await pdf.arrayBuffer()).equals(kept?.pdf ?? Buffer.alloc(0))).toBe(true);
  expect(pdf.headers.get('content-type')).toBe('application/pdf');
  const csv = await ask(`${served.url}${paths['due']}/rows.csv`);
  expect(csv.headers.get('content-disposition')).toBe(`attachment; filename="${kept?.number}-rows.csv"`);
  const rows = parse(csv.text, { columns: true, bom: true }) as Record<string, string>[];
  expect(rows.map((row) => [row['partner_id'], row['document'], row['invoiceAmount']])).toEqual(
    Array.from({ length: 3 }, () => ['p-1', kept?.number, '7.00']),
  );
});

test('it may not be indexed, cached or framed, and names no other partner', async () => {
  const answer = await ask(`${served.url}${paths['due']}`);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'cache-control': 'no-store',
    'x-robots-tag': 'noindex, nofollow',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
    'content-security-policy': expect.stringMatching(
      /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    ) as string,
  });
  expect(answer.text).not.toMatch(/Void Ventures|Renamed|Paid Parking|p-void|<script/);
  const head = await fetch(`${served.url}${paths['due']}`, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
  // The page's address opens it, so it is never logged.
  expect(served.log()).toContain('/pay/:token');
  expect(served.log()).not.toContain(paths['due']?.split('/').at(-1));
});

/** The rows below the lines of an invoice, each as its texts. */
const stepsOn = (html: string): string[] =>
  [...(/<tfoot>(.*)<\/tfoot>/s.exec(html)?.[1]?.matchAll(/<tr.*?<\/tr>/gs) ?? [])].map(([row]) =>
    row
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim(),
  );

test("the partner's place goes from the total to the balance by the same steps as the payment page", async () => {
  const found: Record<string, readonly string[]> = {};
  for (const state of ['due', 'part', 'off', 'paid']) {
    const [invoice] = await world.sql<{ partner_id: string; number: string }>(
      `SELECT partner_id, number FROM payment_links JOIN documents USING (document_id) WHERE token = $1`,
      [paths[state]?.split('/').at(-1)],
    );
    const contact = await contactOf(world, served, invoice?.partner_id ?? '');
    const place = await contact.get(`/place/documents/${invoice?.number}`);
    found[state] = stepsOn((await ask(`${served.url}${paths[state]}`)).text);
    expect([state, stepsOn(place.text)]).toEqual([state, found[state]]);
  }
  expect(found['due']).toEqual(['Total USD 21.00', 'Balance due USD 21.00']);
  expect(found['off']).toEqual([
    'Total USD 7.00',
    'Payment received, August 1, 2026 -USD 2.00',
    expect.stringMatching(/^Written off, .* 2026 -USD 5\.00$/),
    'Balance due USD 0.00',
  ]);
  expect(found['paid']?.[1]).toMatch(/^Credit note CN-2026-\d{6}, .* 2026 -USD 7\.00$/);
});
