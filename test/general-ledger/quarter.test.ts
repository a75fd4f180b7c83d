/**
 * A quarter of a German, an American and a Japanese issuer: the tax of each month by hand, and the same balances in the
 * programs of others and in the hand-off to each general ledger.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settingsSchema } from '../../src/config/settings.ts';
import { GL_FORMATS } from '../../src/general-ledger/accounts.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import { lastDay, type Month } from '../../src/month.ts';
import { readTaxReport } from '../../src/reports/tax.ts';
import { readTrialBalance } from '../../src/reports/trial-balance.ts';
import { month, textJournals } from '../audit/books.ts';
import { correctionsOf, expectVerified, refund, sale } from '../documents/correcting.ts';
import { JOURNAL_PROGRAMS, judgeJournal, runProgram } from '../support/journal-programs.ts';
import { needs } from '../support/tools.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { everyAccount, writeAccounts } from './months.ts';
import { nonZero, readBack, sumsBy, units } from './read-back.ts';

/** Taxable amount, of it recorded late, and tax, by month and category, as a person computes them from the sales below. */
type ByHand = Readonly<Record<string, Readonly<Record<string, readonly [taxable: string, late: string, tax: string]>>>>;
type Issuer = Readonly<{
  home: string;
  away: string;
  currency: string;
  rate: string;
  away_rule: object;
  byHand: ByHand;
}>;

const REASON = { reason: 'Insurance' };
const ISSUERS: Readonly<Record<string, Issuer>> = {
  German: {
    ...{ home: 'DE', away: 'FR', currency: 'EUR', rate: '19', away_rule: { category: 'reverse_charge' } },
    byHand: {
      // 100.03 × 19 % = 19.0057.
      '2026-07': {
        standard: ['100.03', '0.00', '19.01'],
        exempt: ['50.00', '0.00', '0.00'],
        reverse_charge: ['80.00', '0.00', '0.00'],
      },
      // (200.00 + 10.05 late - 100.03 reversed) × 19 % = 20.9038; less the credit's 15.00 × 100.03/150.03 = 10.00 × 19 %.
      '2026-08': { standard: ['100.02', '10.05', '19.00'], exempt: ['15.00', '0.00', '0.00'] },
      '2026-09': { standard: ['30.00', '0.00', '5.70'] },
    },
  },
  American: {
    ...{ home: 'US', away: 'CA', currency: 'USD', rate: '7.75' },
    away_rule: { category: 'outside_scope', reason: 'Not sold in the United States' },
    byHand: {
      // 100.03 × 7.75 % = 7.7523.
      '2026-07': {
        standard: ['100.03', '0.00', '7.75'],
        exempt: ['50.00', '0.00', '0.00'],
        outside_scope: ['80.00', '0.00', '0.00'],
      },
      // 110.02 × 7.75 % = 8.5266, less 10.00 × 7.75 % = 0.775, half up.
      '2026-08': { standard: ['100.02', '10.05', '7.75'], exempt: ['15.00', '0.00', '0.00'] },
      '2026-09': { standard: ['30.00', '0.00', '2.33'] },
    },
  },
  Japanese: {
    ...{ home: 'JP', away: 'KR', currency: 'JPY', rate: '10', away_rule: { category: 'zero' } },
    byHand: {
      // 10003 × 10 % = 1000.3.
      '2026-07': {
        standard: ['10003', '0', '1000'],
        exempt: ['5000', '0', '0'],
        zero: ['8000', '0', '0'],
      },
      // 11002 × 10 % = 1100.2, less 1000 × 10 %.
      '2026-08': { standard: ['10002', '1005', '1000'], exempt: ['1500', '0', '0'] },
      '2026-09': { standard: ['3000', '0', '300'] },
    },
  },
};

const POLICIES = [
  { policy_id: 'parking', name: 'Parking', kind: 'non_insurance', partner_cut_rate: '0.30' },
  { policy_id: 'cover', name: 'Cover', kind: 'insurance', partner_cut_rate: '0.30' },
];
const at = (country: string, currency: string, partner_id: string) =>
  partner({
    ...{ partner_id, currency, policies: POLICIES },
    address: { line1: '1 Quay', line2: '', city: 'Town', region: '', postal_code: '10115', country },
  });

/** Taxed, exempt, foreign, late, reversed, credited and written-off sales of three months, and their books closed. */
async function trade({ home, away, currency, rate, away_rule }: Issuer): Promise<World> {
  const world = await openWorld();
  const rules = [
    { country: home, category: 'standard', rate },
    { country: home, kind: 'insurance', category: 'exempt', ...REASON },
    { country: away, ...away_rule },
  ];
  world.settings = { ...world.settings, tax: settingsSchema.shape.tax.parse({ from: '2026-07', rules }) };
  await world.partners([at(home, currency, 'p-1'), at(away, currency, 'p-2')]);
  const amount = (hundredths: string) => (currency === 'JPY' ? hundredths : hundredths.replace(/(..)$/, '.$1'));
  const sold = (of: string, hundredths: string, policy_id = 'parking', partner_id = 'p-1') =>
    sale(of, amount(hundredths), { currency, policy_id, partner_id });
  const reversed = sold('2026-07', '10003');
  const late = sold('2026-07', '1005');
  await world.rows([reversed, sold('2026-07', '5000', 'cover'), sold('2026-07', '8000', 'parking', 'p-2')]);
  await world.close();
  world.at('2026-08-20T10:00:00Z');
  const action = correctionsOf(world);
  await action.credit('INV-2026-000001', amount('1500'));
  world.at('2026-09-01T10:00:00Z');
  await world.rows([sold('2026-08', '20000'), late, refund(reversed, '2026-08'), sold('2026-08', '2000', 'cover')]);
  await world.close();
  world.at('2026-09-15T10:00:00Z');
  await action.writeOff('INV-2026-000003');
  world.at('2026-10-01T10:00:00Z');
  await world.rows([sold('2026-09', '3000')]);
  await world.close();
  await world.closeBooks('2026-07', '2026-08', '2026-09');
  world.at('2026-10-15T15:00:00Z');
  return world;
}

const MONTHS = ['2026-07', '2026-08', '2026-09'] as const;

describe.each(Object.entries(ISSUERS))('a %s issuer', (_name, issuer) => {
  let world: World;
  let journals: Map<string, string>;
  beforeAll(async () => {
    world = await trade(issuer);
    journals = await textJournals(world, month('2026-07'), month('2026-09'), join(world.home, 'journal'));
  }, 120_000);
  afterAll(() => world.end());

  const balances = async (asOf: string): Promise<Map<string, bigint>> => {
    const { accounts } = await world.database.reading((tx) =>
      readTrialBalance(tx, { asOf, today: '2026-10-15', detail: true }),
    );
    return new Map(accounts.map(({ account, debit, credit }) => [account, units(debit ?? '') - units(credit ?? '')]));
  };

  test('the tax of each month of supply is what a person computes', async () => {
    const found: Record<string, unknown> = {};
    for (const each of MONTHS) {
      const period = { from: `${each}-01`, to: lastDay(each as string as Month), basis: 'tax-point' as const };
      const { lines, ties } = await world.database.reading((tx) => readTaxReport(tx, period));
      expect(ties).toBe(true);
      found[each] = Object.fromEntries(
        lines.map(({ category, taxable, late, tax }) => [category, [taxable, late, tax]]),
      );
    }
    expect(found).toEqual(issuer.byHand);
  });

  test('the account of tax has the tax of the months so far, also after a write-off', async () => {
    let payable = 0n;
    for (const each of MONTHS) {
      payable += units(issuer.byHand[each]?.['standard']?.[2] ?? '');
      const posted = (await balances(lastDay(each as string as Month))).get(
        `liabilities:tax:${issuer.home}:standard:${issuer.rate}`,
      );
      expect([each, posted]).toEqual([each, -payable]);
    }
  });

  test.for(JOURNAL_PROGRAMS)('$program finds every balance that the journal asserts', (judge, context) => {
    needs(judge.program, context);
    expect(judgeJournal(judge, journals.get(judge.format) as string)).toBe('');
  });

  test('hledger and ledger come to our balances, account by account', async (context) => {
    needs('hledger', context);
    needs('ledger', context);
    const path = journals.get('hledger') as string;
    const ours = nonZero(await balances('2026-09-30'));
    const read = (lines: readonly string[]) =>
      nonZero(
        new Map(
          lines.map((line) => {
            const [, account = '', amount = ''] = /^"?([^",\t]+)"?[,\t]"?(-?[\d.]+)/.exec(line) ?? [];
            return [account, units(amount)];
          }),
        ),
      );
    const linesOf = (program: 'hledger' | 'ledger', args: readonly string[]) =>
      runProgram(program, args)
        .output.split('\n')
        .filter((line) => /[a-z]+:/.test(line));
    expect(read(linesOf('hledger', ['-f', path, 'bal', '--flat', '-O', 'csv']))).toEqual(ours);
    expect(
      read(linesOf('ledger', ['-f', path, 'bal', '--flat', '--balance-format', '%(account)\t%(display_total)\n'])),
    ).toEqual(ours);
  });

  test.each(GL_FORMATS.map((format) => [format] as const))('%s has our balances', async (format) => {
    writeAccounts(world, everyAccount());
    const files = [];
    for (const each of MONTHS) {
      const asked = { month: each as string as Month, format, preliminary: false };
      files.push(...(await world.database.transaction((tx) => exportGl(tx, world, asked))).files);
    }
    const { accounts } = everyAccount() as { accounts: { account: string; to: string }[] };
    const to = new Map(accounts.map((each) => [each.account, each.to]));
    const mapped = (account: string) => {
      const control = account.startsWith('liabilities:tax')
        ? 'liabilities:tax'
        : account.split(':').slice(0, -1).join(':');
      return to.get(control) ?? to.get(account) ?? account;
    };
    const theirs = sumsBy(
      [...(await balances('2026-09-30'))].map(([account, amount]) => ({ account, amount })),
      ({ account }) => mapped(account),
    );
    expect(nonZero(sumsBy(readBack(format, files), ({ account }) => account))).toEqual(nonZero(theirs));
  });

  test('verify finds nothing', () => expectVerified(world));
});
