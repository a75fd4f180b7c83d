/** An e-invoice is the same file wherever it is got, and nobody else gets it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { voidDocument } from '../../src/documents/void.ts';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import { contactOf } from '../support/contact.ts';
import { BELGIAN, extracted, FRENCH, GERMAN, SELLER, sellAs } from '../support/e-invoice-partners.ts';
import type { MailServer } from '../support/mail-server.ts';
import { openMailWorld } from '../support/mail-world.ts';
import { command } from '../support/program.ts';
import { ask, type Served } from '../support/service.ts';
import { needs } from '../support/tools.ts';
import { partner, quote, type World } from '../support/world.ts';

const AMERICAN = { partner_id: 'p-us', currency: 'USD' };
const PARTNERS = [GERMAN, FRENCH, BELGIAN, AMERICAN];

let world: World;
let server: MailServer;
let served: Served;
let clerk: Browser;
/** By partner: its document, and the path of the page that asks for its payment. */
const numbers: Record<string, string> = {};
const pages: Record<string, string> = {};

openMailWorld((opened) => {
  ({ world, server } = opened);
});
beforeAll(async () => {
  sellAs(world, SELLER);
  const contact = { name: 'Accounts Payable', email: 'ap@partner.example', cc: [] };
  await world.partners(PARTNERS.map((each) => partner({ ...each, invoicing_contact: contact })));
  await world.rows(PARTNERS.map(({ partner_id, currency }) => quote({ partner_id, currency })));
  await world.close();
  await world.deliver();
  for (const { partner_id, number, payment_link } of await world.documents()) {
    numbers[partner_id] = number;
    pages[partner_id] = new URL(payment_link ?? '').pathname;
  }
  served = await serveConsole(world);
  clerk = await signedIn(served, await invite(world, ADMINISTRATOR));
});
afterAll(() => served.end());

const run = (...args: string[]) =>
  command(args, {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-03T10:00:00Z' },
  });

const numberOf = (partnerId: string): string => numbers[partnerId] as string;
const keptOf = async (number: string) =>
  (
    await world.sql<{ xml: Buffer }>(`SELECT xml FROM document_e_invoices JOIN documents USING (document_id)
    WHERE number = '${number}'`)
  )[0]?.xml;

test.each(['p-de', 'p-fr', 'p-be'])(
  'the e-invoice of %s is the mailed one in the books, the console, the API, the place and on the payment page',
  async (partnerId) => {
    const number = numberOf(partnerId);
    const kept = await keptOf(number);
    const path = join(world.home, `${number}.xml`);
    expect((await run('invoice', 'e-invoice', number, '--output', path)).status).toBe(0);
    const caller = await served.caller(partnerId);
    const contact = await contactOf(world, served, partnerId);
    const got: Record<string, string> = {
      command: readFileSync(path, 'utf8'),
      console: (await clerk.get(`/console/invoices/${number}/e-invoice.xml`)).text,
      api: (await caller.get(`/api/v1/invoices/${number}/e-invoice`)).text,
      place: (await contact.get(`/place/documents/${number}/e-invoice.xml`)).text,
      page: (await ask(`${served.url}${pages[partnerId]}/e-invoice.xml`)).text,
    };
    const expected = kept?.toString() ?? 'none';
    for (const [where, text] of Object.entries(got)) expect([where, text]).toEqual([where, expected]);
    // Whoever reads a document there finds its e-invoice.
    const links: Record<string, string> = {
      [`/console/invoices/${number}/e-invoice.xml`]: (await clerk.get(`/console/invoices/${number}`)).text,
      [`/place/documents/${number}/e-invoice.xml`]: (await contact.get(`/place/documents/${number}`)).text,
      [`${pages[partnerId]}/e-invoice.xml`]: (await ask(`${served.url}${pages[partnerId]}`)).text,
    };
    for (const [link, text] of Object.entries(links)) expect(text).toContain(`href="${link}"`);
  },
);

test('it is the file that was mailed: attached, or inside the PDF', async (context) => {
  needs('pdfdetach', context);
  const attached = new Map(
    server.mails.flatMap(({ parsed }) => parsed.attachments.map(({ filename, content }) => [filename, content])),
  );
  for (const partnerId of ['p-de', 'p-fr', 'p-be']) {
    const number = numberOf(partnerId);
    const mailed = attached.get(`${number}.xml`) ?? extracted(attached.get(`${number}.pdf`) as Buffer);
    expect([number, mailed.equals((await keptOf(number)) as Buffer)]).toEqual([number, true]);
  }
  expect(attached.has(`${numberOf('p-fr')}.xml`)).toBe(false);
});

test('a document of a partner that asks for none has none anywhere, and the command says so', async () => {
  const number = numberOf('p-us');
  const ran = await run('--json', 'invoice', 'e-invoice', number);
  expect([ran.status, ran.json()]).toMatchObject([
    3,
    { error: { code: 'e_invoice_not_asked_for', number, document: 'invoice', partner_id: 'p-us' } },
  ]);
  const contact = await contactOf(world, served, 'p-us');
  const caller = await served.caller('p-us');
  const answers = {
    console: (await clerk.get(`/console/invoices/${number}/e-invoice.xml`)).status,
    api: (await caller.get(`/api/v1/invoices/${number}/e-invoice`)).status,
    place: (await contact.get(`/place/documents/${number}/e-invoice.xml`)).status,
    page: (await ask(`${served.url}${pages['p-us']}/e-invoice.xml`)).status,
  };
  expect(answers).toEqual({ console: 404, api: 404, place: 404, page: 404 });
  for (const { text } of [
    await clerk.get(`/console/invoices/${number}`),
    await contact.get(`/place/documents/${number}`),
    await ask(`${served.url}${pages['p-us']}`),
  ]) {
    expect(text).not.toContain('e-invoice.xml');
  }
});

test('it goes to stdout on request, and not together with --json', async () => {
  const number = numberOf('p-de');
  const { status, stdout } = await run('invoice', 'e-invoice', number, '--output', '-');
  expect([status, stdout]).toEqual([0, (await keptOf(number))?.toString()]);
  const both = await run('--json', 'invoice', 'e-invoice', number, '--output', '-');
  expect([both.status, both.json()]).toMatchObject([2, { error: { code: 'argument_invalid' } }]);
});

test('of a void document the books keep it, and its partner cannot pay by it any more', async () => {
  const number = numberOf('p-be');
  await world.database.transaction((tx) => voidDocument(tx, world, { number, reason: 'wrong' }));
  const contact = await contactOf(world, served, 'p-be');
  expect([
    (await run('invoice', 'e-invoice', number, '--output', join(world.home, 'void.xml'))).status,
    (await clerk.get(`/console/invoices/${number}/e-invoice.xml`)).status,
    (await contact.get(`/place/documents/${number}/e-invoice.xml`)).status,
    (await ask(`${served.url}${pages['p-be']}/e-invoice.xml`)).status,
  ]).toEqual([0, 200, 404, 404]);
});
