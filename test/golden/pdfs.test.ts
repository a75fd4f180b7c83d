/**
 * What the renderer renders, for good: a document is rendered again under the version that it was issued with.
 * `UPDATE_PDFS=1` writes the hashes before the first release; those of a released version are never written again. A new pdfkit or fontkit may change them all: then documents rendered with the old one are checked
 * by their kept bytes alone (src/audit/checks/pdfs.ts), and the hashes are taken again from a program that differs by that
 * library only.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TaxCategory } from '../../src/config/tax.ts';
import { renderDocument } from '../../src/documents/pdf/render.ts';
import type { DocumentSnapshot } from '../../src/documents/snapshot.ts';
import type { Month } from '../../src/month.ts';
import {
  adjustment,
  creditNote,
  snapshot,
  instructions,
  internationalWire,
  lateLines,
  line,
  statement,
  usualLines,
  zeroInvoice,
} from '../support/snapshots.ts';
import { pngLogo } from '../support/logos.ts';
import { contentHash } from '../support/pdf-content.ts';

const FILE = join(import.meta.dirname, 'pdfs.json');

const { partner, issuer } = snapshot();
const hamburg = { line1: 'Speicherstadt 12', line2: '', city: 'Hamburg', region: '', postal_code: '20457', country: 'DE' };
const manyLines = Array.from({ length: 120 }, (_, index) =>
  line(`Policy ${index + 1}`, 'quote_accepted', index + 1, `${100 + index}.25`, '20.10', {
    month: index < 90 ? '2026-10' : '2026-08',
  }),
);

const taxAt = (category: TaxCategory, rate: string, reduced = false) => ({
  ...{ category, rate, reduced, reason: '', reason_code: '' },
});
const EXEMPT = { ...taxAt('exempt', '0'), reason: 'Insurance, exempt from VAT', reason_code: '' };
const logo = pngLogo();
const SNAPSHOTS: Readonly<Record<string, DocumentSnapshot>> = {
  usual: snapshot(),
  'late rows, credit and changed instructions': snapshot({
    lines: [...usualLines, ...lateLines],
    credit_applied: '1250.00',
    credit_notes: [
      { number: 'CN-2026-000003', amount: '1000.00' },
      { number: 'CN-2026-000004', amount: '250.00' },
    ],
    instructions_changed: true,
    sandbox: true,
  }),
  'several pages': snapshot({ lines: manyLines }),
  'credit note': creditNote(),
  statement: statement(),
  'nothing due': zeroInvoice(),
  'covered by credit': snapshot({ credit_applied: '19907.85' }),
  'three decimals, to Germany': snapshot({
    currency: 'KWD',
    lines: [line('Ticket Protection', 'quote_accepted', 1412, '1185400.125', '2.000', { currency: 'KWD' })],
    instructions: { wire: internationalWire },
    issuer: { ...issuer, address: hamburg },
    partner: { ...partner, address: hamburg, tax_id: 'DE123456789', purchase_order: 'PO-1', legal_note: 'A note.' },
  }),
  'difficult names': snapshot({
    partner: { ...partner, name: '<b>&</b> 株 Nguyễn Ελληνικά '.repeat(6) },
    issuer: { ...issuer, email: '', phone: '', tax_id: '' },
  }),
  'no way to pay': snapshot({ payment_link: null, instructions: null }),
  'not a web address': snapshot({ payment_link: 'javascript:alert(1)', instructions: { ach: instructions.ach } }),
  adjustment: adjustment(),
  'replacement with logo and checkpoint': snapshot({
    replaces: 'INV-2026-000040',
    issuer: { ...issuer, logo },
    checkpoint: { month: '2026-09' as Month, size: 3028, root: `${'aB'.repeat(21)}a=` },
  }),
  'replacement due as the replaced invoice': snapshot({
    ...{ replaces: 'INV-2026-000040', due_on: '2026-11-15', due_date_kept: true },
  }),
  'adjustment with open credit': adjustment({ lowered: { by: '1000.00', left: '0.00' } }),
  'missing shares': snapshot({ purpose: 'missing_shares' }),
  'with tax at two rates, and exempt': snapshot({
    lines: [
      { ...line('Ticket Protection', 'quote_accepted', 10, '1000.00', '300.00'), tax: taxAt('standard', '19') },
      { ...line('Parking', 'quote_accepted', 2, '50.00', '10.00'), tax: taxAt('standard', '7', true) },
      { ...line('Travel', 'quote_accepted', 1, '20.00', '5.00'), tax: EXEMPT },
    ],
    taxTotals: [
      { ...taxAt('standard', '19'), country: 'DE', name: 'VAT', taxable: '700.00', tax: '133.00' },
      { ...taxAt('standard', '7', true), country: 'DE', name: 'VAT', taxable: '40.00', tax: '2.80' },
      { ...EXEMPT, country: 'DE', name: 'VAT', taxable: '15.00', tax: '0.00' },
    ],
    ...{ net: '755.00', tax: '135.80', gross: '890.80', amount_due: '890.80', registration: 'DE123456789' },
    partner: { ...partner, address: hamburg, tax_id: 'DE811569869' },
  }),
  'to India, on A4': snapshot({ partner: { ...partner, address: { ...hamburg, country: 'IN' } } }),
  'SEPA transfer': snapshot({
    ...{ currency: 'EUR', creditor_reference: 'RF54INV2026000042' },
    instructions: { wire: { ...internationalWire, intermediary: undefined } },
  }),
  'creditor reference of another currency': snapshot({
    ...{ currency: 'GBP', creditor_reference: 'RF54INV2026000042' },
    instructions: { wire: internationalWire },
  }),
};

const kept = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, string>;

test('each document is rendered as before', async () => {
  const rendered: Record<string, string> = {};
  for (const [name, each] of Object.entries(SNAPSHOTS)) rendered[name] = contentHash(await renderDocument(each));
  if (process.env['UPDATE_PDFS'] === '1') writeFileSync(FILE, `${JSON.stringify(rendered, null, 2)}\n`);
  expect(new Set(Object.values(rendered)).size).toBe(Object.keys(SNAPSHOTS).length);
  expect(Object.keys(rendered).length).toBeGreaterThan(10);
  expect(rendered).toEqual(kept);
});

test('the creditor reference is printed', async () => {
  for (const name of ['SEPA transfer', 'creditor reference of another currency']) {
    const document = SNAPSHOTS[name] as DocumentSnapshot;
    expect(contentHash(await renderDocument({ ...document, creditor_reference: null }))).not.toBe(kept[name]);
  }
});
