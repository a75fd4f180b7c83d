/** A German, a French and a Belgian partner that request e-invoices, and a seller with the data to issue them. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { internationalWire } from './snapshots.ts';
import { tool } from './tools.ts';
import type { World } from './world.ts';

/** The seller's data in the settings, complete for every format. */
export const SELLER = {
  contact_name: 'Accounts Receivable',
  electronic_address: '0088:4012345000009',
  registration_id: '0199:549300MLUDYVRQOOXS22',
  no_tax: { category: 'O', reason: 'Not subject to VAT', reason_code: 'VATEX-EU-O' },
} as const;

const address = (line1: string, city: string, postal_code: string, country: string) => ({
  address: { line1, line2: '', city, region: '', postal_code, country },
  currency: 'EUR',
});
export const GERMAN = {
  partner_id: 'p-de',
  name: 'Leuchtturm Tickets & Söhne AG',
  ...address('Unter den Linden 1', 'Berlin', '10117', 'DE'),
  e_invoice: 'xrechnung',
  buyer_reference: '04011000-12345-34',
  electronic_address: '0204:04011000-12345-34',
};
export const FRENCH = {
  partner_id: 'p-fr',
  name: 'Billetterie du Phare SAS',
  ...address('12 rue de Rivoli', 'Paris', '75001', 'FR'),
  e_invoice: 'facturx',
};
export const BELGIAN = {
  partner_id: 'p-be',
  name: 'Vuurtoren Tickets BV',
  ...address('Koningsstraat 1', 'Brussel', '1000', 'BE'),
  e_invoice: 'ubl',
  purchase_order: 'PO-77',
  electronic_address: '0208:0843766574',
};

/** Adds to the settings the seller's data for e-invoices and a bank account in euros. */
export function sellAs(world: World, seller: object | undefined): void {
  const { issuer, instructions, ...others } = world.settings;
  world.settings = {
    ...others,
    issuer: { ...issuer, e_invoice: seller as typeof issuer.e_invoice },
    instructions: { ...instructions, EUR: { wire: internationalWire } },
  };
}

/** The file embedded in a Factur-X PDF, extracted by poppler. */
export function extracted(pdf: Buffer): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'e-invoice-'));
  try {
    writeFileSync(join(folder, 'in.pdf'), pdf);
    execFileSync(tool('pdfdetach'), [
      '-savefile',
      'factur-x.xml',
      '-o',
      join(folder, 'out.xml'),
      join(folder, 'in.pdf'),
    ]);
    return readFileSync(join(folder, 'out.xml'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
