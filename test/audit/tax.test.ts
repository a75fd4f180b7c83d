/** Tax under audit: packs of taxed months hold by both verifiers, and verify names every amount of tax that was changed. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { settingsSchema } from '../../src/config/settings.ts';
import type { Transaction } from '../../src/database/transaction.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { correctionsOf } from '../documents/correcting.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';
import { expectPacksToHold, month } from './books.ts';
import { failing } from './failing.ts';
import { type Owner, openOwner } from './owner.ts';

let world: World;
let owner: Owner;

const ADDRESS = { line1: '1 Quay', line2: '', city: 'Town', region: '', postal_code: '10115' };

/**
 * Two months with their books closed: a change of rates and of a country between them, one rate reduced and not, a void, a
 * replacement and credits, some as e-invoices.
 */
beforeAll(async () => {
  world = await openWorld();
  const rules = [
    { category: 'standard', rate: '16', until: '2026-07-31' },
    { category: 'standard', rate: '19', from: '2026-08-01' },
    { policy: 'parking', category: 'exempt', reason: 'Exempt' },
    { partner: 'p-2', category: 'standard', rate: '10' },
    { partner: 'p-2', policy: 'parking', category: 'standard', rate: '10', reduced: true },
    { country: 'FR', category: 'standard', rate: '16' },
  ];
  const tax = settingsSchema.shape.tax.parse({ from: '2026-07', rules });
  world.settings = { ...world.settings, tax, issuer: { ...world.settings.issuer, tax_id: 'DE123456788' } };
  await recordSettingsChanges(world.database, world);
  const sold = quote();
  const yen = { partner_id: 'p-2', currency: 'JPY' };
  const moved = quote({ partner_id: 'p-3' });
  const p3 = (country: string) => partner({ partner_id: 'p-3', address: { ...ADDRESS, country } });
  await world.partners([p3('DE')]);
  await world.partners([partner({ e_invoice: 'facturx' }), partner({ partner_id: 'p-2', currency: 'JPY' })]);
  await world.rows([
    ...[sold, quote(), quote({ policy_id: 'parking' })],
    quote({ ...yen, spotPrice: '1305', partnerCut: '300', invoiceAmount: '1005' }),
    quote({ ...yen, policy_id: 'parking', spotPrice: '1306', partnerCut: '300', invoiceAmount: '1006' }),
    moved,
  ]);
  await world.close();
  await world.deliver();
  world.at('2026-08-20T10:00:00Z');
  const action = correctionsOf(world);
  await action.voided('INV-2026-000002');
  await action.rerun('INV-2026-000002');
  for (const amount of ['3.33', '3.33', '3.34']) await action.credit('INV-2026-000001', amount);
  world.at('2026-09-01T10:00:00Z');
  await world.partners([p3('FR')]);
  await world.rows([
    quote({
      partner_id: 'p-3',
      accepted_at: '2026-08-09T12:00:00Z',
      spotPrice: '40',
      partnerCut: '12',
      invoiceAmount: '28',
    }),
    reversal(moved, { accepted_at: '2026-08-10T12:00:00Z' }),
    quote({ accepted_at: '2026-08-09T12:00:00Z', spotPrice: '40', partnerCut: '12', invoiceAmount: '28' }),
    reversal(sold, { accepted_at: '2026-08-10T12:00:00Z' }),
  ]);
  await world.close();
  await world.deliver();
  await world.closeBooks('2026-07', '2026-08');
  owner = openOwner(world);
}, 120_000);
afterAll(async () => {
  await owner.close();
  await world.end();
});

test('packs of all kinds hold by both verifiers, over all months and over the last alone', async () => {
  // With the e-invoices of all documents of one partner: two invoices, and credits with tax.
  const [eInvoices] = await world.sql<{ documents: string; written: string }>(
    `SELECT count(*) AS documents, count(x.sha256) AS written
     FROM documents d LEFT JOIN document_e_invoices x USING (document_id) WHERE d.e_invoice = 'facturx'`,
  );
  expect(eInvoices).toEqual({ documents: '5', written: '5' });
  expect(await expectPacksToHold(world, month('2026-07'), month('2026-08'))).toBe(6);
  expect(await expectPacksToHold(world, month('2026-08'), month('2026-08'))).toBe(6);
});

/** Does the statements with every guard switched off, and gives the names of the checks and rules that find something. */
const named = (statements: readonly string[]): Promise<string[]> =>
  owner.undone(async (tx: Transaction) => {
    await tx.knex.raw(GUARDS_OFF);
    for (const statement of statements) {
      const { rowCount } = (await tx.knex.raw(statement)) as { rowCount: number | null };
      expect([statement, rowCount]).not.toEqual([statement, 0]);
    }
    await tx.knex.raw(GUARDS_ON);
    return failing(await verify(tx, undefined, { schema: world.schema }));
  });

const FIRST = `(SELECT document_id FROM documents WHERE number = 'INV-2026-000001')`;
const NOTE = `(SELECT document_id FROM documents WHERE number = 'CN-2026-000002')`;
/** Of July's invoice, the tax of one rate. */
const STANDARD = `document_id = ${FIRST} AND category = 'standard'`;

describe('verify names', () => {
  test.each<[what: string, rule: string, ...statements: string[]]>([
    [
      'a tax and its document, both a cent more',
      'tax_rounded_once',
      `UPDATE document_taxes SET tax = tax + 0.01 WHERE ${STANDARD}`,
      `UPDATE documents SET tax = tax + 0.01 WHERE document_id = ${FIRST}`,
    ],
    [
      'the tax of a document alone',
      'balance_shown',
      `UPDATE documents SET tax = tax + 0.01 WHERE document_id = ${FIRST}`,
    ],
    ['another rate', 'tax_by_the_rules', `UPDATE document_taxes SET rate = 7 WHERE ${STANDARD}`],
    [
      'a taxable amount moved from one rate to another',
      'taxable_of_lines',
      `UPDATE document_taxes SET taxable = taxable + CASE category WHEN 'standard' THEN -1 ELSE 1 END
       WHERE document_id = ${FIRST}`,
    ],
    [
      'a line of another rate',
      'taxable_of_lines',
      `UPDATE document_lines SET tax = 1 WHERE document_id = ${FIRST} AND tax = 2`,
    ],
    [
      'a line without tax',
      'tax_adds_up',
      `UPDATE document_lines SET tax = NULL WHERE document_id = ${FIRST} AND tax = 2`,
    ],
    [
      'a credit whose tax is a cent off',
      'tax_rounded_once',
      `UPDATE document_taxes SET tax = tax + 0.01 WHERE document_id = ${NOTE} AND tax > 0`,
      `UPDATE documents SET tax = tax + 0.01 WHERE document_id = ${NOTE}`,
    ],
    [
      'all totals removed',
      'tax_by_the_rules',
      `UPDATE document_lines SET tax = NULL WHERE document_id = ${FIRST}`,
      `DELETE FROM document_taxes WHERE document_id = ${FIRST}`,
    ],
  ])('%s', async (_what, rule, ...statements) => {
    const found = await named(statements);
    expect(found).toContain(rule);
    if (!statements.every((each) => each.includes('UPDATE documents'))) expect(found).toContain('log_derived_again');
  });

  test('tax that the journal posts to another account', async () => {
    const wrong = `CREATE OR REPLACE VIEW document_amounts AS ${await definition('document_amounts')}`.replace(
      `'liabilities:tax'`,
      `'liabilities:other'`,
    );
    const found = await owner.undone(async (tx: Transaction) => {
      await tx.knex.raw(wrong);
      return failing(await verify(tx, undefined, { schema: world.schema }));
    });
    expect(found).toContain('journal_shown');
  });
});

async function definition(view: string): Promise<string> {
  const [row] = await world.sql<{ text: string }>(`SELECT pg_get_viewdef('${view}'::regclass) AS text`);
  return row?.text ?? '';
}

test('the database refuses a document whose tax does not tie', async () => {
  const insert = `INSERT INTO document_taxes (document_id, position, currency, country, registration, name, category,
    rate, reduced, reason, reason_code, taxable, tax)
    SELECT document_id, 9, 'USD', '', '', 'VAT', 'standard', 5, false, '', '', 1, 0.05 FROM documents LIMIT 1`;
  await expect(world.sql(insert)).rejects.toMatchObject({ constraint: 'document_tax_ties' });
});

test('untouched, nothing is named', async () => {
  expect(await named(['SELECT 1'])).toEqual([]);
});
