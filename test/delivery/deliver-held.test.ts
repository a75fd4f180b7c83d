/** An e-mail that is missing something is held with a reason, holds up no other, and is sent once it is supplied. */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import type { Settings } from '../../src/config/settings.ts';
import { installedFonts } from '../../src/documents/printable.ts';
import { rerunDocument } from '../../src/documents/rerun.ts';
import { adopt, readAgain } from '../support/adopting.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, realSettings, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

const contact = (email: string, cc: string[] = []) => ({ invoicing_contact: { name: 'Accounts', email, cc } });

/** Closes July with a document of p-1, as it is here, and one of p-2, which lacks nothing. */
async function closeJuly(lacking: Record<string, unknown>, sale: Record<string, unknown> = {}): Promise<void> {
  await world.partners([partner(lacking), partner({ partner_id: 'p-2', ...contact('two@partner.example') })]);
  await world.rows([quote(sale), quote({ partner_id: 'p-2' })]);
  await world.close();
}

/** Delivers, and gives what became of p-1's document. */
async function deliver(): Promise<{ status: string | undefined; reason: string | null }> {
  await world.deliver();
  const [row] = await world.sql<{ status: string; reason: string | null }>(
    `SELECT s.status, s.reason FROM document_emails s JOIN documents d USING (document_id) WHERE d.partner_id = 'p-1'`,
  );
  return { status: row?.status, reason: row?.reason ?? null };
}

const recipients = () => server.mails.map(({ to }) => to.join(' ')).sort();

async function change(settings: Partial<Settings>): Promise<void> {
  world.settings = { ...world.settings, ...settings };
}

test('without a contact’s address: held, and sent after the partner is imported with one', async () => {
  await closeJuly(contact('', ['boss@partner.example']));
  expect(await deliver()).toEqual({ status: 'held', reason: "partner p-1 has no invoicing contact's e-mail address" });
  expect(recipients()).toEqual(['two@partner.example']);
  // All that can be done without it is done.
  expect((await world.documents())[0]).toMatchObject({
    partner_id: 'p-1',
    status: 'open',
    payment_link: expect.stringContaining('/pay/'),
    pdf: { bytes: expect.any(Number) },
    email: { status: 'held', to: null, sent_at: null },
  });
  const [before] = await world.documents();
  await world.partners([partner(contact('one@partner.example', ['boss@partner.example']))]);
  expect(await deliver()).toMatchObject({ status: 'sent' });
  expect(recipients()).toEqual(['one@partner.example boss@partner.example', 'two@partner.example']);
  const [after] = await world.documents();
  expect(after).toMatchObject({ number: before?.number, pdf: before?.pdf, payment_link: before?.payment_link });
});

test('without instructions for its currency: held before it is drawn, and sent once the settings have them', async () => {
  const { USD } = world.settings.instructions;
  await readAgain(world, { instructions: { USD: USD ?? {} } });
  await closeJuly({}, { currency: 'EUR', spotPrice: '10', partnerCut: '3', invoiceAmount: '7' });
  expect(await deliver()).toEqual({ status: 'held', reason: 'settings.json has no payment instructions for EUR' });
  expect(recipients()).toEqual(['two@partner.example']);
  expect((await world.documents())[0]).toMatchObject({ partner_id: 'p-1', pdf: null });
  await adopt(world, 'instructions', { USD: USD ?? {}, EUR: { wire: USD?.wire } });
  expect(await deliver()).toMatchObject({ status: 'sent' });
});

test('ACH alone pays no invoice in another currency than the dollar', async () => {
  const { USD } = world.settings.instructions;
  await readAgain(world, { instructions: { '*': { ach: USD?.ach } } });
  await closeJuly({}, { currency: 'EUR', spotPrice: '10', partnerCut: '3', invoiceAmount: '7' });
  expect(await deliver()).toMatchObject({
    status: 'held',
    reason: 'settings.json has no payment instructions for EUR',
  });
});

test('without a public address for payment pages: held, and sent once there is one', async () => {
  const { public_url } = world.settings;
  change({ public_url: '' });
  await closeJuly({});
  expect(await deliver()).toEqual({ status: 'held', reason: 'settings.json has no public_url for the payment link' });
  expect(recipients()).toEqual([]);
  change({ public_url });
  expect(await deliver()).toMatchObject({ status: 'sent' });
  expect(recipients()).toEqual(['ap@partner.example', 'two@partner.example']);
});

test('without a sender: held, and sent once the settings have one', async () => {
  const { mail_from } = world.settings;
  change({ mail_from: '' });
  await closeJuly({});
  expect(await deliver()).toEqual({ status: 'held', reason: 'settings.json has no mail_from' });
  change({ mail_from });
  expect(await deliver()).toMatchObject({ status: 'sent' });
});

test('a sandbox mails no outside address, neither as contact nor as copy', async () => {
  await closeJuly(contact('ap@customer.com'));
  const outside = 'sandbox mail goes only to sandbox_recipients, and ap@customer.com is not among them';
  expect(await deliver()).toEqual({ status: 'held', reason: outside });
  await world.partners([partner(contact('ap@partner.test', ['boss@customer.com']))]);
  expect(await deliver()).toEqual({ status: 'held', reason: outside.replace('ap@', 'boss@') });
  expect(recipients()).toEqual(['two@partner.example']);
});

test('a sandbox’s list of recipients, when it grows, releases what was held', async () => {
  await closeJuly(contact('ap@customer.com'));
  await deliver();
  change({ sandbox_recipients: [...world.settings.sandbox_recipients, 'ap@customer.com'] });
  expect(await deliver()).toMatchObject({ status: 'sent' });
  expect(recipients()).toEqual(['ap@customer.com', 'two@partner.example']);
});

test('production writes to everybody', async () => {
  const sandbox = world.environment;
  world.environment = { ...sandbox, name: 'production' };
  world.settings = realSettings(world.settings);
  try {
    await closeJuly(contact('ap@customer.com'));
    expect(await deliver()).toMatchObject({ status: 'sent' });
  } finally {
    world.environment = sandbox;
  }
  expect(server.mails.map(({ parsed }) => parsed.subject).join()).not.toContain('SANDBOX');
});

test('what is held stays held until it is looked at again, with the reason of the last look', async () => {
  await closeJuly(contact(''));
  await deliver();
  change({ public_url: '' });
  // The link and the drawing are there already: only the address lacks.
  expect(await deliver()).toMatchObject({ reason: "partner p-1 has no invoicing contact's e-mail address" });
  await world.partners([partner(contact('ap@customer.com'))]);
  expect(await deliver()).toMatchObject({ status: 'held', reason: expect.stringContaining('sandbox_recipients') });
});

test('a held invoice holds no later one', async () => {
  await closeJuly(contact(''));
  await deliver();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
  await world.close();
  await world.partners([partner(contact('one@partner.example'))]);
  server.mails.length = 0;
  await world.deliver();
  expect(recipients()).toEqual(['one@partner.example', 'one@partner.example']);
});

test('a template of the house that names a field which does not exist: held, and sent once it is mended', async () => {
  const templates = join(world.home, 'templates');
  mkdirSync(join(templates, 'email'), { recursive: true });
  writeFileSync(join(templates, 'email', 'invoice.txt.hbs'), 'Please pay {{amuont}}.');
  try {
    await closeJuly({});
    expect(await deliver()).toEqual({
      status: 'held',
      reason: expect.stringMatching(/invoice\.txt\.hbs[\s\S]*amuont/),
    });
    expect(recipients()).toEqual([]);
  } finally {
    rmSync(templates, { recursive: true });
  }
  expect(await deliver()).toMatchObject({ status: 'sent' });
  expect(recipients()).toEqual(['ap@partner.example', 'two@partner.example']);
});

test('with a malformed template of the house: held with the file and the reason, and sent once it is mended', async () => {
  const folder = join(world.home, 'templates', 'email');
  const file = join(folder, 'invoice.html.hbs');
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(file, '{{#if due}} never closed');
    await closeJuly({});
    const held = await deliver();
    expect(held.status).toBe('held');
    expect(held.reason).toContain(file);
    expect(held.reason).toContain('Parse error');
    expect(recipients()).toEqual([]);
    // The drawing needs no e-mail, and is there already.
    expect((await world.documents())[0]).toMatchObject({ pdf: { bytes: expect.any(Number) } });
    writeFileSync(file, '<p>Please pay {{amount}} by {{dueOn}}, {{partner.name}}.</p>');
    expect(await deliver()).toMatchObject({ status: 'sent' });
    const [mail] = server.mails;
    expect(mail?.parsed.html).toMatch(
      /<p[^>]*>Please pay USD 7\.00 by August 31, 2026, Harbour Lights Ticketing\.<\/p>/,
    );
    expect(mail?.parsed.text).toBe('Please pay USD 7.00 by August 31, 2026, Harbour Lights Ticketing.\n');
  } finally {
    rmSync(join(world.home, 'templates'), { recursive: true });
  }
});

test('a name in letters that no font has: held with these letters, and sent once a font has them', async () => {
  await closeJuly({
    name: '株式会社東京 Tickets',
    policies: [
      {
        policy_id: 'ticket-protection',
        name: 'チケット保険',
        kind: 'non_insurance',
        active: true,
        partner_cut_rate: '0.30',
      },
    ],
  });
  const { status, reason } = await deliver();
  expect(status).toBe('held');
  expect(reason).toContain('no font has 株式会社東京 (U+682A U+5F0F U+4F1A U+793E U+6771 U+4EAC) in the partner');
  expect(reason).toContain(`チケット保険 (U+30C1`);
  expect(reason).toContain('templates/fonts');
  expect(reason).not.toContain(world.home);
  expect((await world.documents())[0]).toMatchObject({ partner_id: 'p-1', pdf: null });

  const folder = join(world.home, 'templates', 'fonts');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'broken.otf'), 'no font');
  for (const file of ['NotoSansJP-Regular-subset.ttf', 'NotoSansJP-Bold-subset.ttf']) {
    copyFileSync(join(import.meta.dirname, '..', 'support', 'fonts', file), join(folder, file));
  }
  expect(await deliver()).toMatchObject({ status: 'sent' });
  const [{ pdf, libraries } = { pdf: Buffer.alloc(0), libraries: {} }] = await world.sql<{
    pdf: Buffer;
    libraries: Record<string, string>;
  }>(`SELECT pdf, libraries FROM document_pdfs JOIN documents USING (document_id) WHERE partner_id = 'p-1'`);
  expect(libraries['fonts']).toMatch(/^[0-9a-f]{64} [0-9a-f]{64}$/);
  const text = await textOf(pdf);
  expect(text).toContain('株式会社東京 Tickets');
  expect(text).toContain('チケット保険');
  expect(text).not.toContain('U+');
  const others = await world.sql<{ libraries: object }>(
    `SELECT libraries FROM document_pdfs JOIN documents USING (document_id) WHERE partner_id = 'p-2'`,
  );
  expect(others).toEqual([{ libraries: expect.not.objectContaining({ fonts: expect.anything() }) as object }]);

  // Rendered again with the same fonts it has the same bytes; without them its hash is verified.
  const differences = async (fonts: ReturnType<typeof installedFonts>) => {
    const { checks } = await world.database.readingBeside((tx, beside) => verify(tx, undefined, { fonts, beside }));
    return checks.flatMap(({ differences: found }) => found);
  };
  expect(installedFonts(world.environment)).toHaveLength(2);
  expect(await differences(installedFonts(world.environment))).toEqual([]);
  expect(await differences([])).toEqual([]);
});

async function textOf(pdf: Buffer): Promise<string> {
  const task = getDocument({ data: new Uint8Array(pdf), useSystemFonts: false, verbosity: 0 });
  const page = await (await task.promise).getPage(1);
  const { items } = await page.getTextContent();
  await task.destroy();
  return items.map((item) => ('str' in item ? item.str : '')).join('');
}

test('a document held for letters that no font has names its rerun, and the replacement does not mention it', async () => {
  await closeJuly({ name: `Nile ${String.fromCodePoint(0x13000)}` });
  const held = await deliver();
  expect(held.status).toBe('held');
  expect(held.reason).toContain('Or correct these texts and replace the document');
  await world.partners([partner({ name: 'Nile' })]);
  await world.database.transaction((tx) => rerunDocument(tx, world, 'INV-2026-000001', { newTerms: false }));
  await world.deliver();
  const mail = server.mails.find(({ to }) => to.join() === 'ap@partner.example');
  expect(mail?.raw.toString()).toContain('INV-2026-000003');
  expect(mail?.raw.toString()).not.toContain('Please do not pay');
});
