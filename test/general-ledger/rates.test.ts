/** `report trial-balance --rates`: three months of three currencies in one, worked out again beside it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import readXlsx from 'read-excel-file/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command } from '../support/program.ts';
import type { World } from '../support/world.ts';
import { MONTHS, openMonths } from './months.ts';
import { sumsBy, units } from './read-back.ts';

let world: World;
let folder: string;
let file: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-rates-'));
  file = join(folder, 'rates.json');
  const rates = { EUR: '1.08253', JPY: '0.006723' };
  const given = { currency: 'USD', source: 'European Central Bank', date: '2026-09-30', rates };
  writeFileSync(file, JSON.stringify(given));
  world = await openMonths(...MONTHS);
});
afterAll(async () => {
  await world.end();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: string[]) =>
  command(args, {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-10-16T10:00:00Z' },
  });
const report = ['report', 'trial-balance', '--as-of', '2026-09-30'];

/** Of a unit in millionths of a dollar. */
const WORTH: Record<string, bigint> = { USD: 1_000_000n, EUR: 1_082_530n, JPY: 6_723n };

interface Side {
  readonly account: string;
  readonly currency: string;
  readonly debit: string;
  readonly credit: string;
}
const balanceOf = ({ debit, credit }: Side): bigint => units(debit) - units(credit);

test.each([[[]], [['--detail']]])(
  '%j: every account is converted and rounded once, and debits equal credits',
  async (more) => {
    const trial = (await run('--json', ...report, ...more)).json() as { accounts: Side[] };
    const shown = (await run('--json', ...report, ...more, '--rates', file)).json() as {
      accounts: Side[];
      presentation: { accounts: Side[]; rounding: Side; total: Side };
    };
    expect(shown.accounts).toEqual(trial.accounts);
    // In 10^-9 of a dollar; a half goes away from zero. In thousandths, a cent is ten.
    const exact = sumsBy(
      trial.accounts.map((each) => ({ ...each, amount: balanceOf(each) * (WORTH[each.currency] as bigint) })),
      ({ account }) => account,
    );
    const cents = (value: bigint): bigint => {
      const size = value < 0n ? -value : value;
      const rounded = ((size + 5_000_000n) / 10_000_000n) * 10n;
      return value < 0n ? -rounded : rounded;
    };
    const expected = [...exact].map(([account, value]) => [account, cents(value)]).filter(([, value]) => value !== 0n);
    const { accounts, rounding, total } = shown.presentation;
    expect(accounts.map((each) => [each.account, balanceOf(each)])).toEqual(expected);
    const lines = accounts.reduce((sum, each) => sum + balanceOf(each), 0n);
    expect(balanceOf(rounding)).toBe(-lines);
    expect([total.debit === total.credit, units(total.debit) > 0n]).toEqual([true, true]);
  },
);

test('the report names the source, the day and the rates, within 80 columns', async () => {
  const ran = await run(...report, '--rates', file);
  expect(ran.status).toBe(0);
  expect(ran.stdout).toContain(
    'In USD, at the rates of European Central Bank of 30 September 2026:\n  1 EUR = 1.08253 USD\n  1 JPY = 0.006723 USD\n',
  );
  expect(ran.stdout).not.toContain('not from the date');
  expect(Math.max(...ran.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  const earlier = await run('report', 'trial-balance', '--as-of', '2026-08-31', '--rates', file);
  expect(earlier.stdout).toContain('The rates are not from the date of the balances, 31 August 2026.');
});

test('for a spreadsheet it is the balances in one currency, each with source and day, and they balance', async () => {
  const csv = (await run(...report, '--rates', file, '--format', 'csv')).stdout.replace('\uFEFF', '').split('\r\n');
  expect(csv.shift()).toBe('account,currency,debit,credit,rates_source,rates_date');
  expect(csv.pop()).toBe('');
  const rows = csv.map((line) => line.split(','));
  expect(new Set(rows.map((row) => [row[1], row[4], row[5]].join()))).toEqual(
    new Set(['USD,European Central Bank,2026-09-30']),
  );
  expect(rows.reduce((sum, row) => sum + units(row[2] as string) - units(row[3] as string), 0n)).toBe(0n);
  const out = join(folder, 'trial.xlsx');
  expect((await run(...report, '--rates', file, '--format', 'xlsx', '--out', out)).status).toBe(0);
  const [sheet] = await readXlsx(out);
  expect(sheet?.data.length).toBe(rows.length + 1);
  expect(sheet?.data[1]?.slice(0, 2)).toEqual([rows[0]?.[0], 'USD']);
});
