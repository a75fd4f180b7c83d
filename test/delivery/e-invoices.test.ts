/** Partners that ask for e-invoices get them with their documents; what a profile demands and nobody knows holds the e-mail. */

import { expect, test } from 'vitest';
import { findChangedEInvoices } from '../../src/audit/checks/e-invoices.ts';
import { settingsSchema } from '../../src/config/settings.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import type { DocumentJson } from '../../src/documents/document.ts';
import { lastDay } from '../../src/month.ts';
import { readReadiness } from '../../src/reports/readiness.ts';
import { refund, sale } from '../documents/correcting.ts';
import { BELGIAN, extracted, FRENCH, GERMAN, SELLER, sellAs } from '../support/e-invoice-partners.ts';
import { brokenProfileRules, judge, type Stated, statedBy } from '../support/en16931.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { needs } from '../support/tools.ts';
import { partner, quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

const withSeller = (seller: object | undefined): void => sellAs(world, seller);

/** Closes July, with an invoice in euros of each. */
async function closeJuly(...partners: readonly Record<string, unknown>[]): Promise<void> {
  await world.partners(partners.map((each) => partner(each)));
  await world.rows(partners.map(({ partner_id }) => quote({ partner_id, currency: 'EUR' })));
  await world.close();
}

function attached(name: string): Buffer {
  const found = server.mails.flatMap(({ parsed }) => parsed.attachments).filter(({ filename }) => filename === name);
  expect(found).toHaveLength(1);
  return found[0]?.content as Buffer;
}

const emails = () =>
  world.sql<{ partner_id: string; status: string; reason: string | null }>(
    `SELECT d.partner_id, s.status, s.reason FROM document_emails s JOIN documents d USING (document_id)
     ORDER BY d.document_id`,
  );

const differences = async () => {
  const { checks } = await world.verify();
  return checks.flatMap(({ check, differences: found }) => found.map(({ detail }) => `${check}: ${detail}`));
};

const ofEInvoices = async () => {
  const { differences: found } = await world.database.reading((tx) => findChangedEInvoices(tx, { month: null }));
  return found.map(({ detail }) => detail);
};

test('invoices and credit notes of German, French and Belgian partners break no rule', async (context) => {
  needs('pdfdetach', context);
  withSeller(SELLER);
  await closeJuly(BELGIAN, GERMAN, FRENCH);
  await world.deliver();
  for (const number of ['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003']) {
    await world.database.transaction((tx) =>
      creditInvoice(tx, world, { number, amount: '1.00', reason: 'Cancelled & refunded', again: true }),
    );
  }
  await world.deliver();
  for (const series of ['INV-2026-00000', 'CN-2026-00000']) {
    for (const n of [1, 2]) {
      const ubl = attached(`${series}${n}.xml`);
      expect(judge(ubl).failed).toEqual([]);
      expect(brokenProfileRules(ubl)).toEqual([]);
    }
    expect(judge(extracted(attached(`${series}3.pdf`))).failed).toEqual([]);
  }
  expect(attached('CN-2026-000002.xml').toString()).toContain('<cbc:ID>INV-2026-000002</cbc:ID>');
  expect(await differences()).toEqual([]);
});

test('what a profile demands and nobody knows holds the e-mail, not the close, and delivery goes on once it is supplied', async () => {
  withSeller({ ...SELLER, contact_name: '' });
  await closeJuly({ ...GERMAN, buyer_reference: '', address: { ...GERMAN.address, postal_code: '' } });
  const gaps = await world.database.reading((tx) => readReadiness(tx, world));
  const wanted = gaps.missing.filter(({ needs: text }) => text.includes('e-invoices'));
  expect(wanted.map(({ scope, id, needs: text }) => `${scope} ${id}: ${text}`)).toEqual([
    'settings issuer.e_invoice.contact_name: a value, for e-invoices (BT-41)',
    'partner p-de: address.postal_code, for e-invoices (xrechnung, BT-53)',
    'partner p-de: buyer_reference, for e-invoices (xrechnung, BT-10)',
  ]);
  await world.deliver();
  expect(await emails()).toEqual([
    {
      partner_id: 'p-de',
      status: 'held',
      reason:
        'its e-invoice (XRechnung) lacks address.postal_code (BT-53), buyer_reference (BT-10) in partners.json; ' +
        'issuer.e_invoice.contact_name (BT-41) in settings.json. ' +
        'Fill it in, import partners.json and deliver it; errors on the document itself are corrected by a rerun',
    },
  ]);
  expect(server.mails).toHaveLength(0);
  withSeller(SELLER);
  await world.partners([partner(GERMAN)]);
  await world.deliver();
  expect(await emails()).toMatchObject([{ status: 'sent' }]);
  const xml = attached('INV-2026-000001.xml');
  expect(xml.toString()).toContain('<cbc:PostalZone>10117</cbc:PostalZone>');
  expect(judge(xml).failed).toEqual([]);
  expect(brokenProfileRules(xml)).toEqual([]);
  expect(await differences()).toEqual([]);
});

test('a document keeps what it froze: a later change of the partner changes no e-invoice of it', async () => {
  withSeller(SELLER);
  await closeJuly(GERMAN);
  await world.partners([
    partner({ ...GERMAN, buyer_reference: 'another', electronic_address: 'EM:ap@partner.example' }),
  ]);
  await world.deliver();
  expect(attached('INV-2026-000001.xml').toString()).toContain('<cbc:BuyerReference>04011000-12345-34<');
  expect(await differences()).toEqual([]);
});

test('verify finds an e-invoice that is not the one that was sent', async () => {
  withSeller(SELLER);
  await closeJuly(GERMAN);
  await world.deliver();
  const damages: readonly (readonly [change: string, back: string, detail: string])[] = [
    [`xml = xml || '\\x0a'::bytea`, 'xml = :xml', 'its e-invoice hashes to'],
    [
      `xml = xml || '\\x0a'::bytea, sha256 = encode(sha256(xml || '\\x0a'::bytea), 'hex')`,
      `xml = :xml, sha256 = encode(sha256(:xml), 'hex')`,
      'writing its e-invoice again gives another one',
    ],
    [
      `parties = jsonb_set(parties, '{buyer,name}', '"Somebody Else"')`,
      `parties = jsonb_set(parties, '{buyer,name}', '"${GERMAN.name}"')`,
      'its e-invoice and the document name a party differently',
    ],
  ];
  const hash = `encode(sha256(xml), 'hex')`;
  const xml = `'\\x${attached('INV-2026-000001.xml').toString('hex')}'::bytea`;
  const change = (statement: string) => world.sql(`BEGIN; ${GUARDS_OFF} ${statement}; ${GUARDS_ON} COMMIT`);
  await change('ALTER TABLE document_e_invoices DROP CONSTRAINT document_e_invoice_is_its_hash');
  for (const [damage, back, detail] of damages) {
    await change(`UPDATE document_e_invoices SET ${damage}`);
    expect((await ofEInvoices()).join()).toContain(detail);
    await change(`UPDATE document_e_invoices SET ${back.replaceAll(':xml', xml)}`);
  }
  for (const [format, detail] of [
    ['none', 'has an e-invoice that its partner did not ask for'],
    ['facturx', 'writing its e-invoice again gives another one'],
  ]) {
    await change(`UPDATE documents SET e_invoice = '${format}'`);
    expect(await ofEInvoices()).toEqual([detail]);
  }
  await change(`UPDATE documents SET e_invoice = 'xrechnung'`);
  await change(
    `ALTER TABLE document_e_invoices ADD CONSTRAINT document_e_invoice_is_its_hash CHECK (sha256 = ${hash})`,
  );
  expect(await differences()).toEqual([]);
  await change('DELETE FROM document_e_invoices');
  expect(await ofEInvoices()).toEqual(['has no e-invoice (xrechnung) beside its PDF']);
});

test('a partner that asks for none gets none', async () => {
  withSeller(SELLER);
  await closeJuly({ ...GERMAN, e_invoice: 'none' });
  await world.deliver();
  expect(server.mails[0]?.parsed.attachments.map(({ filename }) => filename)).toEqual([
    'INV-2026-000001.pdf',
    'INV-2026-000001-rows.csv',
  ]);
  expect(await world.sql('SELECT document_id FROM document_e_invoices')).toEqual([]);
});

/** What finance configured: Germany and Belgium tax parking, Germany exempts insurance, and France has reverse charge. */
function withTax(): void {
  withSeller({ ...SELLER, no_tax: null });
  const tax = settingsSchema.shape.tax.parse({
    from: '2026-07',
    countries: { BE: { registration: 'BE0843766574' } },
    rules: [
      { country: 'DE', category: 'standard', rate: '19' },
      { country: 'DE', policy: 'ticket-protection', category: 'exempt', reason: 'Insurance, exempt from VAT' },
      { country: 'FR', category: 'reverse_charge', reason_code: 'VATEX-EU-AE' },
      { country: 'BE', category: 'standard', rate: '21' },
    ],
  });
  world.settings = { ...world.settings, tax, issuer: { ...world.settings.issuer, tax_id: 'DE123456788' } };
}

const CODES: Readonly<Record<string, string>> = { standard: 'S', exempt: 'E', reverse_charge: 'AE' };

/** What its e-invoice shall state. A credit against an invoice has no lines of its own: it has one for each rate. */
function statedIn({
  document,
  month,
  credits,
  net,
  tax,
  gross,
  amount_due,
  taxTotals = [],
  lines,
}: DocumentJson): Stated {
  const code = (category = '') => CODES[category] ?? category;
  const known = (amount = 'none') => amount;
  return {
    net: known(net),
    tax: known(tax),
    gross: known(gross),
    due: known(document === 'invoice' ? amount_due : gross),
    taxPoint: credits === null ? lastDay(month) : '',
    taxes: taxTotals.map((total) => [code(total.category), total.rate, total.taxable, total.tax, total.reason]),
    lines:
      lines.length > 0
        ? lines.map((line) => [line.invoiceAmount, code(line.tax?.category), known(line.tax?.rate)])
        : taxTotals.map((total) => [total.taxable, code(total.category), total.rate]),
  };
}

test('e-invoices state the tax of their documents: standard, exempt, reverse charge, and credits whose tax was rounded over all', async (context) => {
  needs('pdfdetach', context);
  withTax();
  const partners = [BELGIAN, { ...GERMAN, tax_id: 'DE987654328' }, { ...FRENCH, tax_id: 'FR40303265045' }];
  await world.partners(partners.map((each) => partner(each)));
  const parking = (partner_id: string, month: string, amount: string) =>
    sale(month, amount, { partner_id, currency: 'EUR', policy_id: 'parking' });
  const belgian = parking('p-be', '2026-07', '100');
  await world.rows([
    belgian,
    parking('p-de', '2026-07', '60.03'),
    sale('2026-07', '40', { partner_id: 'p-de', currency: 'EUR' }),
    sale('2026-07', '80', { partner_id: 'p-fr', currency: 'EUR' }),
  ]);
  await world.close();
  await world.deliver();
  const credit = (number: string, amount: string) =>
    world.database.transaction((tx) => creditInvoice(tx, world, { number, amount, reason: 'Cancelled', again: true }));
  // 21 % of 33.35 is 7.0035, and of twice as much 14.007: the second credit takes 7.01, so that both together have it.
  await credit('INV-2026-000001', '33.35');
  await credit('INV-2026-000001', '33.35');
  await credit('INV-2026-000002', '10.01');
  await credit('INV-2026-000003', '80.00');
  // A month below zero, and one whose invoice has credit applied.
  world.at('2026-09-01T10:00:00Z');
  await world.rows([refund(belgian, '2026-08'), parking('p-de', '2026-08', '50')]);
  await world.close();
  await world.deliver();
  const documents = await world.documents();
  expect(documents.map(({ number, gross }) => [number, gross])).toEqual([
    ['CN-2026-000001', '40.35'],
    ['CN-2026-000002', '40.36'],
    ['CN-2026-000003', '11.15'],
    ['CN-2026-000004', '80.00'],
    ['CN-2026-000005', '121.00'],
    ['INV-2026-000001', '121.00'],
    ['INV-2026-000002', '111.44'],
    ['INV-2026-000003', '80.00'],
    ['INV-2026-000004', '59.50'],
  ]);
  for (const document of documents) {
    const isFrench = document.partner_id === 'p-fr';
    const { number } = document;
    const xml = isFrench ? extracted(attached(`${number}.pdf`)) : attached(`${number}.xml`);
    expect({ number, ...judge(xml) }).toMatchObject({ number, failed: [] });
    if (!isFrench) expect(brokenProfileRules(xml)).toEqual([]);
    expect({ number, ...statedBy(xml) }).toEqual({ number, ...statedIn(document) });
  }
  expect(attached('INV-2026-000001.xml').toString()).toContain('<cbc:CompanyID>BE0843766574<');
  expect(attached('INV-2026-000002.xml').toString()).toContain('<cbc:CompanyID>DE123456788<');
  expect(extracted(attached('INV-2026-000003.pdf')).toString()).toContain('VATEX-EU-AE');
  expect(await differences()).toEqual([]);
}, 600_000);
