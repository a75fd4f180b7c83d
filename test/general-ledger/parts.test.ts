/** What changes after a month was exported: a part of differences, a part that moves to other accounts, or nothing. */
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHECKS } from '../../src/audit/checks.ts';
import { checkContext } from '../../src/audit/verify.ts';
import { accountsFile, storedAccounts } from '../../src/config/accounts.ts';
import type { GlFormat } from '../../src/general-ledger/accounts.ts';
import { exportGl, type GlRequest } from '../../src/general-ledger/export.ts';
import { readExports, readLines, readParts } from '../../src/general-ledger/exports.sql.ts';
import { filesOf, NETSUITE_LINES, XERO_LINES } from '../../src/general-ledger/files.ts';
import {
  balancedParts,
  type GlLine,
  latestTargets,
  moved,
  sharedNames,
  summarise,
} from '../../src/general-ledger/journal.ts';
import { unusableLines } from '../../src/general-ledger/limits.ts';
import type { Month } from '../../src/month.ts';
import { readDueHandOffs } from '../../src/reports/hand-offs.ts';
import { booksOf } from '../payments/books.ts';
import { readStatus } from '../support/status.ts';
import type { World } from '../support/world.ts';
import { ACCOUNTS, openMonths, writeAccounts } from './months.ts';
import { readBack, sumsBy, units } from './read-back.ts';

let world: World;
beforeAll(async () => {
  world = await openMonths('2026-07', '2026-08');
});
afterAll(() => world.end());

const asked = { month: '2026-09' as Month, format: 'quickbooks' } as const;
const exported = (request: Partial<GlRequest> = {}) =>
  world.database.transaction((tx) => exportGl(tx, world, { ...asked, ...request }));
const states = async () =>
  (await world.database.reading((tx) => readExports(tx, { month: asked.month, limit: 9 }))).map(
    ({ part, kind, state }) => `${part} ${kind} ${state}`,
  );
const linesOfAll = () =>
  world.database.reading(async (tx) => {
    const parts = await readParts(tx, asked);
    return readLines(tx, { ids: parts.map((part) => part.gl_export_id) });
  });
/** By account of theirs and currency. */
const sums = (lines: readonly GlLine[]) =>
  Object.fromEntries(
    [
      ...sumsBy(
        lines.map((line) => ({ ...line, amount: units(line.amount) })),
        ({ to_account, currency }) => `${to_account} ${currency}`,
      ),
    ]
      .filter(([, sum]) => sum !== 0n)
      .sort(),
  );

const due = () => world.database.reading(async (tx) => (await readDueHandOffs(tx, world)).map(Object.values));

test('once books are closed, the status asks for the journal of their month, where finance has an accounts.json', async () => {
  expect(await due()).toEqual([['2026-08', null, 'missing']]);
  const { attention } = await world.database.reading((tx) => readStatus(tx, world));
  expect(attention).toContain(
    'The books of 2026-08 are closed but not exported to the general ledger. Export its journal with ' +
      "'reckoner export gl --month 2026-08 --format FORMAT' and import the files.",
  );
  rmSync(accountsFile(world));
  expect(await due()).toEqual([]);
  writeAccounts(world);
});

test('what was posted between a preliminary export and the close of the books is a part of differences', async () => {
  const first = await exported({ preliminary: true });
  expect([first.recorded, first.part?.part, first.part?.kind]).toEqual([true, 1, 'journal']);
  expect(await states()).toEqual(['1 journal preliminary']);
  expect(first.files[0]?.content.toString()).toContain('Reckoner September 2026 (books open): ');

  const money = booksOf(world);
  await money.record({ partnerId: 'p-1', amount: '41.00', receivedOn: '2026-09-30', account: '0001', reference: 'W' });
  await world.closeBooks('2026-09');
  expect(await states()).toEqual(['1 journal outdated']);
  expect(await due()).toEqual([['2026-09', 'quickbooks', 'outdated']]);
  const { attention } = await world.database.reading((tx) => readStatus(tx, world));
  expect(attention).toContain(
    '2026-09 was exported for quickbooks before its books were closed, and has changed since. Export what changed with ' +
      "'reckoner export gl --month 2026-09 --format quickbooks' and import the files.",
  );

  const second = await exported();
  expect([second.part?.part, second.part?.kind]).toEqual([2, 'difference']);
  const lines = readBack('quickbooks', second.files);
  expect(lines.map(({ account, amount }) => [account, amount])).toEqual([
    ['Bank', 41_000n],
    ['Unapplied', -41_000n],
  ]);
  expect(lines[0]?.id).toMatch(/^2026-09-2-USD-[0-9a-f]{6}$/);
  expect(lines[0]?.id.slice(-6)).not.toBe(first.part?.checkpoint.slice(0, 6));
  expect(await states()).toEqual(['2 difference final', '1 journal final']);
  expect(await due()).toEqual([]);
});

test('a month that was passed over is asked for as well, but none before the first that was exported', async () => {
  await exported({ month: '2026-07' as Month, format: 'xero' });
  expect(await due()).toEqual([['2026-08', null, 'missing']]);
});

test('when accounts.json changed, what was exported stays, and the export says what would move', async () => {
  const accounts = ACCOUNTS.accounts.map((rule) => (rule.to === 'Commission' ? { ...rule, to: 'Cuts' } : rule));
  writeAccounts(world, { ...ACCOUNTS, accounts });
  const before = sums(await linesOfAll());
  const same = await exported();
  expect([same.recorded, same.part?.part]).toEqual([false, 2]);
  expect(new Set(same.movable.map(({ control }) => control))).toEqual(new Set(['expenses:partner-cut']));

  const moved = await exported({ reclassify: true });
  expect([moved.part?.part, moved.part?.kind]).toEqual([3, 'reclassification']);
  const after = sums(await linesOfAll());
  const renamed = Object.entries(before).map(([key, sum]) => [key.replace('Commission', 'Cuts'), sum]);
  expect(after).toEqual(Object.fromEntries(renamed.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1))));
  expect((await exported({ reclassify: true })).recorded).toBe(false);
  writeAccounts(world);
  expect(await states()).toEqual(['3 reclassification final', '2 difference final', '1 journal final']);
});

test('what is posted after accounts were moved goes to where they are now', () => {
  const posted = { control: 'income:sales', account: 'income:sales:parking', partner_id: 'p-1', policy_id: 'parking' };
  const line = (to_account: string, amount: string): GlLine => ({
    ...{ ...posted, currency: 'USD', amount, to_account, class: '', location: '', name: '', memo: 'income:sales' },
  });
  const journal = [line('Sales', '-10.00')];
  const reclassification = moved([line('Sales park', '-10.00')], journal);
  expect(reclassification.map(({ to_account, amount }) => [to_account, amount])).toEqual([
    ['Sales park', '-10.00'],
    ['Sales', '10.00'],
  ]);
  const known = latestTargets([...journal, ...reclassification]);
  expect([...known.values()].map(({ to_account }) => to_account)).toEqual(['Sales park']);
});

test('a blank before a formula does not hide it in a name of theirs', () => {
  for (const to of ['=1+1', ' =1+1', '\u00a0=1+1', '\u3000@SUM(A1)']) {
    expect(() => storedAccounts({ accounts: [{ account: 'income:sales', to }] })).toThrow(/formula/);
  }
});

/** 1,000 receivables of one currency and what they add up to on the other side. */
const manyLines = (currency: string): GlLine[] =>
  Array.from({ length: 1001 }, (_, at): GlLine => {
    const amount = at === 1000 ? '-500500.00' : `${at + 1}.00`;
    const account = `assets:receivable:billed:p-${at}`;
    const posted = { control: 'assets:receivable:billed', account, partner_id: `p-${at}`, policy_id: null };
    const target = { to_account: `A${at}`, class: '', location: '', name: '', memo: 'assets:receivable:billed' };
    return { ...posted, ...target, currency, amount };
  });
const large = {
  ...({ month: '2026-09' as Month, part: 1, kind: 'journal', checkpoint: 'a'.repeat(64), books_closed: true } as const),
  accounts: storedAccounts({ accounts: [{ account: 'x', to: 'x' }] }),
};

test('a journal of more lines than Xero takes is divided into files that balance and add up to it', () => {
  const lines = manyLines('USD');
  const files = filesOf({ ...large, format: 'xero', lines });
  expect(files.map(({ name }) => name)).toEqual([1, 2, 3, 4].map((at) => `gl-2026-09-1-xero-USD-${at}.csv`));
  for (const { content } of files)
    expect(content.toString().trimEnd().split('\n').length - 1).toBeLessThanOrEqual(XERO_LINES);
  const read = readBack('xero', files);
  expect([...sumsBy(read, ({ account }) => account)].length).toBe(1001);
  expect(sumsBy(read, ({ account }) => account).get('A1000')).toBe(-500_500_000n);
  const [whole] = summarise(lines);
  expect(balancedParts(whole?.lines ?? [], 2000)).toEqual([whole?.lines]);
});

test('a journal of more rows than QuickBooks takes is several, each with a number of its own, and the others stay whole', () => {
  const small = manyLines('EUR').slice(0, 1);
  const whole = [...small, ...small.map((line) => ({ ...line, amount: '-1.00', to_account: 'Sales' }))];
  const files = filesOf({ ...large, part: 10, format: 'quickbooks', lines: [...manyLines('USD'), ...whole] });
  expect(files.map(({ name }) => name)).toEqual([1, 2, 3].map((at) => `gl-2026-09-10-quickbooks-${at}.csv`));
  const rows = files.map(({ content }) => content.toString().trimEnd().split('\n').length);
  expect(Math.max(...rows)).toBeLessThanOrEqual(1000);
  const read = readBack('quickbooks', files);
  const numbers = ['2026-09-10-EUR-aaaaaa', '2026-09-10-USD-aaaa-1', '2026-09-10-USD-aaaa-2'];
  expect([...sumsBy(read, ({ id }) => id)].sort()).toEqual(numbers.map((number) => [number, 0n]));
  const sums = sumsBy(read, ({ account, currency }) => `${account} ${currency}`);
  expect([sums.size, sums.get('A1000 USD'), sums.get('A0 EUR')]).toEqual([1003, -500_500_000n, 1_000n]);
});

const receivable = (partner_id: string, name: string): GlLine => ({
  ...{ control: 'assets:receivable:billed', account: `assets:receivable:billed:${partner_id}`, partner_id },
  ...{ policy_id: null, currency: 'USD', amount: '5.00', to_account: 'Receivables', class: '', location: '', name },
  memo: 'assets:receivable:billed',
});

test('partners of one name are no one customer by accident, and one where accounts.json calls each of them so', () => {
  const lines = [receivable('p-1', 'Harbor'), receivable('p-2', 'Harbor'), receivable('p-3', 'Quay')];
  const shared = (names: object) =>
    sharedNames(storedAccounts({ accounts: [{ account: 'x', to: 'x' }], names }), lines);
  expect(shared({})).toEqual([{ name: 'Harbor', partners: ['p-1', 'p-2'] }]);
  expect(shared({ 'p-1': 'Harbor' })).toEqual([{ name: 'Harbor', partners: ['p-1', 'p-2'] }]);
  expect(shared({ 'p-1': 'Harbor', 'p-2': 'Harbor' })).toEqual([]);
});

test('a line that gets a customer moves to that customer, and a new name of a customer moves nothing', () => {
  const [nobody, harbor, renamed] = ['', 'Harbor', 'Quay'].map((name) => receivable('p-1', name));
  const movedBetween = (from: typeof nobody, to: typeof nobody) =>
    moved(to ? [to] : [], from ? [from] : []).map(({ name, amount }) => `${name} ${amount}`);
  expect(movedBetween(nobody, harbor)).toEqual(['Harbor 5.00', ' -5.00']);
  expect(movedBetween(harbor, renamed)).toEqual([]);
});

test('what is posted after a customer was renamed goes to the name that the customer has now', async () => {
  const own = await openMonths('2026-07', '2026-08');
  try {
    const by = (name: string) => {
      const accounts = ACCOUNTS.accounts.map((rule) => ({ ...rule, by_partner: rule.to === 'Unapplied' }));
      writeAccounts(own, { accounts, names: { 'p-1': name } });
      return own.database.transaction((tx) => exportGl(tx, own, { ...asked, preliminary: true }));
    };
    const unapplied = (files: Parameters<typeof readBack>[1]) =>
      readBack('quickbooks', files).flatMap(({ account, name }) => (account === 'Unapplied' ? [name] : []));
    expect(unapplied((await by('Harbour')).files)).toContain('Harbour');
    expect((await by('Harbour Lights')).recorded).toBe(false);
    const paid = { partnerId: 'p-1', amount: '41.00', receivedOn: '2026-09-30', account: '0001', reference: 'W' };
    await booksOf(own).record(paid);
    expect(unapplied((await by('Harbour Lights')).files)).toEqual(['Harbour Lights']);
  } finally {
    await own.end();
  }
});

test('a journal of more lines than NetSuite takes well is several, each balanced and with an external id of its own', () => {
  const [file] = filesOf({ ...large, format: 'netsuite', lines: manyLines('USD') });
  const read = readBack('netsuite', file === undefined ? [] : [file]);
  expect(new Set(read.map(({ id }) => id))).toEqual(new Set([1, 2].map((at) => `2026-09-1-USD-aaaaaa-${at}`)));
  expect(sumsBy(read, ({ account }) => account).get('A1000')).toBe(-500_500_000n);
  const count = (id: string) => read.filter((line) => line.id === id).length;
  expect(count('2026-09-1-USD-aaaaaa-1')).toBeLessThanOrEqual(NETSUITE_LINES);
});

describe('a line that a program cannot import is refused with its reason, before a file is written', () => {
  const posted = { control: 'income:sales', account: 'income:sales:x', partner_id: 'p-1', policy_id: 'x' };
  const line = (change: Partial<GlLine>): GlLine => ({
    ...{ ...posted, currency: 'USD', amount: '-10.00', to_account: 'Sales', class: '', location: '', name: '' },
    ...{ memo: 'income:sales', ...change },
  });
  test.each<[GlFormat, string, Partial<GlLine>, string]>([
    ['quickbooks', 'three decimals', { currency: 'KWD', amount: '-1.005' }, 'has more than 2 decimals'],
    ['xero', 'three decimals', { currency: 'KWD', amount: '-1.005' }, 'has more than 2 decimals'],
    ['netsuite', 'three decimals', { currency: 'KWD', amount: '-1.005' }, 'has more than 2 decimals'],
    ['netsuite', 'eleven digits', { amount: '-12345678901.00' }, 'has more than 10 digits before the decimal mark'],
    ['quickbooks', 'twelve digits', { amount: '-123456789012.00' }, 'has more than 11 digits before the decimal mark'],
    ['quickbooks', 'a long account', { to_account: 'a'.repeat(101) }, 'has more than 100 characters in its account'],
    ['quickbooks', 'a long customer', { name: 'n'.repeat(101) }, 'has more than 100 characters in its name'],
    ['quickbooks', 'a long class', { class: 'c'.repeat(101) }, 'has more than 100 characters in its class'],
    ['xero', 'an account that is no code', { to_account: 'Accounts R.' }, 'has more than 10 characters in its account'],
    ['xero', 'a long tracking option', { location: 'l'.repeat(101) }, 'has more than 100 characters in its location'],
  ])('%s: %s', (format, _, change, reason) => {
    const bad = line(change);
    const good = line({ ...change, to_account: 'Other', class: '', location: '', name: '', currency: bad.currency });
    const lines = [bad, { ...good, amount: bad.amount.slice(1) }];
    expect(unusableLines(format, lines).filter(({ account }) => account !== 'Other')).toEqual([
      expect.objectContaining({ account: bad.to_account, reason }),
    ]);
    expect(unusableLines('generic', lines)).toEqual([]);
    const fits = line({ to_account: 'S'.repeat(10), amount: '-9999999999.99' });
    expect(unusableLines(format, [fits, { ...fits, to_account: 'Other', amount: '9999999999.99' }])).toEqual([]);
  });
});

test('verify finds nothing, and the same lines in the files', async () => {
  await world.database.reading(async (tx) => {
    const scope = await checkContext(tx, null);
    for (const check of CHECKS.filter(({ name }) => name.startsWith('gl_'))) {
      const { inspected, differences } = await check.run(tx, scope);
      expect([check.name, inspected > 3, differences]).toEqual([check.name, true, []]);
    }
  });
});
