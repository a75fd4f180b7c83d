/** The hand-off of a month with tax: what is payable by rate, mapped, named where no rule maps it, and tied. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settingsSchema } from '../../src/config/settings.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { GL_FORMATS, type GlFormat } from '../../src/general-ledger/accounts.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import type { Month } from '../../src/month.ts';
import { readTrialBalance } from '../../src/reports/trial-balance.ts';
import { refusalOf } from '../close/refusal.ts';
import { sale } from '../documents/correcting.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { writeAccounts } from './months.ts';
import { nonZero, readBack, sumsBy, units } from './read-back.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const rules = [
    { category: 'standard', rate: '19' },
    { policy: 'parking', category: 'standard', rate: '7' },
  ];
  world.settings = { ...world.settings, tax: settingsSchema.shape.tax.parse({ from: '2026-07', rules }) };
  const address = { line1: '1 Quay', line2: '', city: 'Town', region: '', postal_code: '10115', country: 'DE' };
  await world.partners([partner({ currency: 'EUR', address })]);
  await world.rows([
    sale('2026-07', '100', { currency: 'EUR' }),
    sale('2026-07', '50', { currency: 'EUR', policy_id: 'parking' }),
  ]);
  await world.close();
  await world.database.transaction((tx) =>
    creditInvoice(tx, world, { number: 'INV-2026-000001', amount: '15', reason: 'goodwill' }),
  );
  world.at('2026-09-02T15:00:00Z');
  await world.close('2026-08', { allowEmpty: true });
  world.at('2026-10-15T15:00:00Z');
});
afterAll(async () => {
  await world.end();
});

const RULES = [
  { account: 'assets:receivable', to: 'Receivable' },
  { account: 'assets:receivable:billed', to: 'Receivable' },
  { account: 'assets:receivable:unbilled', to: 'Receivable' },
  { account: 'liabilities:partner-credit', to: 'Credit' },
  { account: 'income:sales', to: 'Sales' },
  { account: 'income:adjustments', to: 'Sales' },
  { account: 'expenses:partner-cut', to: 'Commission' },
  { account: 'liabilities:tax:DE:standard:19', to: 'VAT 19' },
];

const exported = (month: string, format: GlFormat = 'generic') =>
  world.database.transaction((tx) => exportGl(tx, world, { month: month as Month, format, preliminary: true }));

test('a rate that no rule maps is named, and nothing is exported', async () => {
  writeAccounts(world, { accounts: RULES });
  expect(await refusalOf(exported('2026-07'))).toMatchObject({
    code: 'accounts_unmapped',
    facts: { month: '2026-07', accounts: [expect.stringContaining('liabilities:tax:DE:standard:7')] },
  });
  expect(await world.sql('SELECT gl_export_id FROM gl_exports')).toEqual([]);
});

test.each(GL_FORMATS.map((format) => [format] as const))(
  '%s: tax payable goes to the account of its rate, and all accounts come to the trial balance',
  async (format) => {
    writeAccounts(world, { accounts: [...RULES, { account: 'liabilities:tax', to: 'Other VAT' }] });
    const files = [...(await exported('2026-07', format)).files, ...(await exported('2026-08', format)).files];
    const read = sumsBy(readBack(format, files), ({ account }) => account);
    const { accounts } = await world.database.reading((tx) =>
      readTrialBalance(tx, { asOf: '2026-08-31', today: '2026-10-15', detail: true }),
    );
    const theirs = (account: string): string => {
      if (account === 'liabilities:tax:DE:standard:7') return 'Other VAT';
      return RULES.find((rule) => account === rule.account || account.startsWith(`${rule.account}:`))?.to as string;
    };
    const balances = accounts.map(({ account, debit, credit }) => ({
      ...{ account, amount: units(debit ?? '') - units(credit ?? '') },
    }));
    expect(nonZero(read)).toEqual(nonZero(sumsBy(balances, ({ account }) => theirs(account))));
    expect([read.get('VAT 19'), read.get('Other VAT')]).toEqual([units('-17.10'), units('-3.15')]);
  },
);
