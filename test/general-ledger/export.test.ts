/** The hand-off to the general ledger: three months of three currencies, in every format, read back and compared. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GL_FORMATS, type GlFormat } from '../../src/general-ledger/accounts.ts';
import { exportGl, type GlRequest } from '../../src/general-ledger/export.ts';
import { readExports } from '../../src/general-ledger/exports.sql.ts';
import { entries } from '../../src/lists/entries.ts';
import { lastDay, type Month } from '../../src/month.ts';
import { command } from '../support/program.ts';
import { needs, tool } from '../support/tools.ts';
import type { World } from '../support/world.ts';
import { ACCOUNTS, MONTHS, openMonths } from './months.ts';
import { nonZero, readBack, sumsBy, units } from './read-back.ts';

let world: World;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-gl-'));
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
const exported = (request: Omit<GlRequest, 'month'> & { month: string }) =>
  world.database.transaction((tx) => exportGl(tx, world, request as GlRequest));

/** Which of theirs an account of the trial balance is, by a reading of the map of its own. */
function theirs(account: string, currency: string): string {
  const rules = ACCOUNTS.accounts.filter((rule) => !('partner' in rule) && !('policy' in rule));
  const fitting = rules.filter((rule) => account === rule.account || account.startsWith(`${rule.account}:`)) as {
    account: string;
    currency?: string;
    to: string;
  }[];
  const named = fitting.filter((rule) => rule.currency === currency);
  const best = [...named, ...fitting.filter((rule) => rule.currency === undefined)].sort(
    (one, other) => other.account.length - one.account.length,
  );
  return (named[0] ?? best[0])?.to as string;
}

/** What `report trial-balance --detail` says at the end of a month, by account and currency. */
async function trialBalance(month: string): Promise<Map<string, bigint>> {
  const ran = await run('--json', 'report', 'trial-balance', '--detail', '--as-of', lastDay(month as Month));
  const { accounts } = ran.json() as { accounts: Record<'account' | 'currency' | 'debit' | 'credit', string>[] };
  const lines = accounts.map(({ account, currency, debit, credit }) => ({
    ...{ account, currency, amount: units(debit) - units(credit) },
  }));
  return sumsBy(lines, ({ account, currency }) => {
    // Sales by policy and partner go to accounts that no subaccount names.
    const to = account.startsWith('income:sales') ? 'Sales' : theirs(account, currency);
    return `${to} ${currency}`;
  });
}

describe.each(GL_FORMATS.map((format) => [format] as const))('%s', (format) => {
  test('three months of three currencies, read back, come to the trial balance at the end of each', async () => {
    const sums = new Map<string, bigint>();
    for (const month of MONTHS) {
      const out = join(folder, format, month);
      const ran = await run('--json', 'export', 'gl', '--month', month, '--format', format, '--out', out);
      expect([ran.stderr, ran.status]).toEqual(['', 0]);
      const files = readdirSync(out)
        .sort()
        .map((name) => ({ name, content: readFileSync(join(out, name)) }));
      const lines = readBack(format, files);
      expect(new Set(lines.map(({ currency }) => currency))).toEqual(new Set(['EUR', 'JPY', 'USD']));
      for (const { account, currency, amount } of lines) {
        const to = /^Sales/.test(account) ? 'Sales' : account;
        sums.set(`${to} ${currency}`, (sums.get(`${to} ${currency}`) ?? 0n) + amount);
      }
      expect([month, nonZero(sums)]).toEqual([month, nonZero(await trialBalance(month))]);
    }
  });

  test('a month that is exported again gives the same bytes and records nothing', async () => {
    const before = await world.sql('SELECT gl_export_id, log_no FROM gl_exports ORDER BY gl_export_id');
    const again = await exported({ month: '2026-08', format });
    expect(again.recorded).toBe(false);
    for (const { name, content } of again.files) {
      expect(content.equals(readFileSync(join(folder, format, '2026-08', name)))).toBe(true);
    }
    expect(await world.sql('SELECT gl_export_id, log_no FROM gl_exports ORDER BY gl_export_id')).toEqual(before);
  });
});

const textOf = (format: GlFormat, name: string, month = '2026-09') =>
  readFileSync(join(folder, format, month, name), 'utf8');

test('QuickBooks: its columns, a name on every receivable line, one currency for each journal number of 21 characters', async () => {
  const text = textOf('quickbooks', 'gl-2026-09-1-quickbooks.csv');
  expect(text.split('\n')[0]).toBe(
    'Journal No.,Journal Date,Account Name,Debits,Credits,Description,Name,Currency,Location,Class',
  );
  const lines = readBack('quickbooks', [{ name: 'x.csv', content: Buffer.from(text) }]);
  const receivable = lines.filter(({ account }) => /^(Rec|Unbilled)/.test(account));
  expect(receivable.length).toBeGreaterThan(3);
  expect(receivable.filter(({ name }) => name === '')).toEqual([]);
  expect(new Set(receivable.map(({ name }) => name))).toEqual(
    new Set(['Harbour Lights, "Ticketing"', 'Nord (Lille)', '東京チケット']),
  );
  for (const { id, currency, date } of lines) {
    expect(id.length).toBeLessThanOrEqual(21);
    expect([id.includes(currency), date]).toEqual([true, '09/30/2026']);
  }
});

test('Xero: its columns, and amounts of which a debit is above zero', () => {
  const [heading, line] = textOf('xero', 'gl-2026-09-1-xero-USD.csv').split('\n');
  expect(heading).toBe(
    '*Narration,*Date,Description,*AccountCode,*TaxRate,*Amount,TrackingName1,TrackingOption1,TrackingName2,TrackingOption2',
  );
  expect(line).toMatch(/^"Reckoner September 2026 USD, 2026-09-1-USD-[0-9a-f]{6}",30 Sep 2026,/);
  expect(textOf('xero', 'gl-2026-09-1-xero-JPY.csv')).toContain(',Tax Exempt,-300100,,,Location,Tokyo\n');
});

test('NetSuite: one line a row, with its external id and posting period', () => {
  const [heading, line] = textOf('netsuite', 'gl-2026-09-1-netsuite.csv').split('\n');
  expect(heading).toBe(
    'External ID,Date,Posting Period,Subsidiary,Currency,Exchange Rate,Memo,Account,Debit,Credit,Line Memo,Name,Class,Location',
  );
  expect(line).toMatch(/^2026-09-1-EUR-[0-9a-f]{6},09\/30\/2026,Sep 2026,Parent Company,EUR,,Reckoner September 2026,/);
});

test('hledger reads the generic file and comes to the same balances', (context) => {
  needs('hledger', context);
  writeFileSync(
    join(folder, 'gl.rules'),
    [
      'skip 1',
      'fields id, date, month, part, kind, currency_, account_, class, location, name, debit_, credit_, memo',
      'date-format %Y-%m-%d',
      'description %id',
      'account1 %account_',
      'amount1-in %debit_',
      'amount1-out %credit_',
      'currency1 %currency_ ',
      'account2 other',
    ].join('\n'),
  );
  const file = join(folder, 'generic', '2026-09', 'gl-2026-09-1-generic.csv');
  const args = ['-f', `csv:${file}`, '--rules-file', join(folder, 'gl.rules'), 'bal', '-N', '--flat', '-O', 'csv'];
  const ran = spawnSync(tool('hledger'), args, { encoding: 'utf8' });
  expect(ran.stderr).toBe('');
  const read = readBack('generic', [{ name: 'x.csv', content: readFileSync(file) }]);
  const sums = sumsBy(read, ({ account }) => account);
  const told = ran.stdout;
  for (const account of sums.keys()) expect(told).toContain(`"${account}"`);
  // The other side of every line is one account: it comes to nothing, in every currency.
  expect(told).not.toContain('"other"');
});

test('a list says what was exported, and that it is final', async () => {
  const listed = await world.database.reading((tx) => readExports(tx, { limit: 100 }));
  expect(listed.map(({ month, format, part, state }) => [month, format, part, state])).toEqual(
    [...MONTHS].reverse().flatMap((month) => [...GL_FORMATS].sort().map((format) => [month, format, 1, 'final'])),
  );
});

test('the entries of a month come to its journal, account by account, and name their documents', async () => {
  const asked = { scope: null, period: null, today: '2026-10-15', sort: 'entry_on', after: null, limit: null } as const;
  for (const month of MONTHS) {
    const rows = await world.database.reading((tx) =>
      entries.read(tx, { ...asked, filter: { month }, context: world } as never),
    );
    const ours = sumsBy(
      rows.map(({ to_account, currency, amount }) => ({ key: `${to_account} ${currency}`, amount: units(amount) })),
      ({ key }) => key,
    );
    const lines = readBack('generic', [
      {
        name: 'x.csv',
        content: readFileSync(join(folder, 'generic', month, `gl-${month}-1-generic.csv`)),
      },
    ]);
    expect([month, nonZero(ours)]).toEqual([
      month,
      nonZero(sumsBy(lines, ({ account, currency }) => `${account} ${currency}`)),
    ]);
    const balances = sumsBy(
      rows.map(({ entry, currency, amount }) => ({ key: `${entry} ${currency}`, amount: units(amount) })),
      ({ key }) => key,
    );
    expect([...balances.values()].filter((sum) => sum !== 0n)).toEqual([]);
    const documents = new Set((await world.documents()).map(({ number }) => number));
    const named = rows.filter(({ entry }) => /^(sales|document_issued):/.test(entry));
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter(({ document }) => document === null || !documents.has(document))).toEqual([]);
  }
  const [number] = (await world.documents({ partnerId: 'p-3' })).map((each) => each.number);
  const own = await world.database.reading((tx) =>
    entries.read(tx, {
      ...asked,
      filter: { month: '2026-08', document: number?.toLowerCase() },
      context: world,
    } as never),
  );
  expect(own.map(({ entry }) => entry.replace(/:.*/, ''))).toContain('document_issued');
  expect(new Set(own.map(({ document }) => document))).toEqual(new Set([number]));
});
