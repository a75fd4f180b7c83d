/** A backup of a ledger that was cut over, taxes its invoices, writes e-invoices and was handed to the general ledger. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { glExport } from '../../src/actions/general-ledger.ts';
import { openingImport, openingReverse } from '../../src/actions/opening.ts';
import { runAction } from '../../src/actions/run.ts';
import { verify } from '../../src/audit/verify.ts';
import { eInvoiceSellerSchema } from '../../src/config/e-invoice.ts';
import { settingsSchema } from '../../src/config/settings.ts';
import { writeBackup } from '../../src/database/backup.ts';
import { checkBackup, restoreBackup } from '../../src/database/restore.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { cash, credit, csvOf, invoice } from '../opening/file.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const BELGIAN = {
  partner_id: 'p-be',
  name: 'Vuurtoren Tickets BV',
  address: { line1: 'Koningsstraat 1', line2: '', city: 'Brussel', region: '', postal_code: '1000', country: 'BE' },
  ...{ currency: 'EUR', e_invoice: 'ubl', purchase_order: 'PO-77', electronic_address: '0208:0843766574' },
};

/** Each table that the books fill, with every row as PostgreSQL writes it. */
const TABLES = ['openings', 'opening_totals', 'document_taxes', 'document_lines', 'document_e_invoices'].concat([
  ...['gl_exports', 'gl_export_lines', 'gl_export_files', 'documents', 'payments', 'voids', 'audit_events'],
]);

async function rowsOf({ sql }: World): Promise<Record<string, string[]>> {
  const rows: Record<string, string[]> = {};
  for (const table of TABLES) {
    const found = await sql<{ row: string }>(`SELECT t::text AS row FROM ${table} t ORDER BY t::text COLLATE "C"`);
    rows[table] = found.map(({ row }) => row);
  }
  return rows;
}

test('openings, tax, e-invoices and journals are in a backup, and restored as they were', async () => {
  const world = await openWorld();
  const target = await openWorld();
  try {
    world.at('2026-06-30T20:00:00Z');
    const seller = eInvoiceSellerSchema.parse({ electronic_address: '0088:4012345000009' });
    const rules = [
      { country: 'BE', category: 'standard', rate: '21' },
      { category: 'outside_scope', reason: 'Outside the scope of VAT' },
    ];
    const tax = { from: '2026-07', rules, countries: { BE: { registration: 'BE0843766574' } } };
    world.settings = {
      ...world.settings,
      issuer: { ...world.settings.issuer, e_invoice: seller },
      tax: settingsSchema.shape.tax.parse(tax),
    };
    await world.partners([partner(), partner(BELGIAN)]);
    const items = [invoice('R-1', '10.00'), credit('C-1', '2.00'), cash('Z-1', '3.00'), cash('Z-2', '1.00')];
    const file = { name: 'open-items.csv', bytes: Buffer.from(csvOf(items)) };
    const input = { file, cutOver: '2026-06-30', control: ['USD=4.00'], count: items.length };
    await runAction(world, openingImport, input, { deliver: false });
    await runAction(world, openingReverse, { numbers: ['C-1', 'Z-2'], reason: 'they were applied before' });
    world.at('2026-08-01T11:00:00Z');
    await world.rows([quote(), quote({ partner_id: 'p-be', currency: 'EUR' })]);
    await world.close();
    await world.deliver();
    writeAccounts(world, everyAccount());
    await runAction(world, glExport, { month: '2026-07', format: 'generic', preliminary: true } as never);
    const before = await rowsOf(world);
    expect(Object.entries(before).filter(([, rows]) => rows.length === 0)).toEqual([]);
    const backup = join(world.home, 'books.backup');
    await writeBackup(world.database, world.environment, backup);
    const checked = await checkBackup(backup, { name: 'sandbox' });
    const { proof } = await restoreBackup(target.database, checked, async (tx) => verify(tx, undefined));
    expect(proof).toMatchObject({ differences: 0 });
    expect(await rowsOf(target)).toEqual(before);
  } finally {
    await target.end();
    await world.end();
  }
}, 120_000);
