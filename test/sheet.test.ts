/** Lists and reports for spreadsheets. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import readXlsx from 'read-excel-file/node';
import { expect, test } from 'vitest';
import { csvOf, type Sheet, xlsxOf } from '../src/sheet.ts';
import { needs, tool } from './support/tools.ts';

const sheet: Sheet = {
  name: 'Payments',
  columns: { payer: 'text', received_on: 'date', currency: 'text', amount: 'amount', lines: 'count' },
  rows: [
    { payer: 'Konzertbüro GmbH', received_on: '2026-08-04', currency: 'EUR', amount: '1234.50', lines: 3, other: [] },
    { payer: '=HYPERLINK("x")', received_on: null, currency: 'JPY', amount: '-2800000', lines: 0 },
    { payer: '株式会社', received_on: '2026-12-31', currency: 'USD', amount: '99999999999999.99', lines: 1 },
  ],
};

test('a CSV file begins with a byte order mark, ends lines as RFC 4180 says and carries no formula', () => {
  expect(csvOf(sheet).split('\r\n')).toEqual([
    '\uFEFFpayer,received_on,currency,amount,lines',
    'Konzertbüro GmbH,2026-08-04,EUR,1234.50,3',
    `"'=HYPERLINK(""x"")",,JPY,-2800000,0`,
    '株式会社,2026-12-31,USD,99999999999999.99,1',
    '',
  ]);
});

test('a formula is covered behind blanks and in full width too, and numbers and other texts are not', () => {
  const covered = [
    ' =1+1',
    '\t=1',
    '\n=1',
    '\r\n+1',
    ' \n@x',
    '＝1+1',
    '＋1',
    ' －1',
    '＠x',
    '-x',
    '- 5',
    ' -5',
    '\nx',
  ];
  const others = ['-5', '-5.00', 'a=1', ' a', '5 - 3', 'ÄÖ', '株式会社', '～x', '1 =1', ''];
  const written = (text: string) =>
    csvOf({ name: 'x', columns: { a: 'text' }, rows: [{ a: text }] })
      .slice('\uFEFFa\r\n'.length, -2)
      .replace(/^"(.*)"$/s, '$1');
  expect(covered.map(written)).toEqual(covered.map((text) => `'${text}`));
  expect(others.map(written)).toEqual(others);
});

test('a workbook has numbers and dates that can be summed and sorted, and keeps every digit of a long amount', async () => {
  const [first] = await readXlsx(await xlsxOf(sheet));
  expect(first?.sheet).toBe('Payments');
  expect(first?.data).toEqual([
    ['payer', 'received_on', 'currency', 'amount', 'lines'],
    ['Konzertbüro GmbH', new Date('2026-08-04'), 'EUR', 1234.5, 3],
    ['=HYPERLINK("x")', null, 'JPY', -2_800_000, 0],
    ['株式会社', new Date('2026-12-31'), 'USD', '99999999999999.99', 1],
  ]);
});

test('below the rows, a sheet has a sum for each currency, which a workbook computes', async (context) => {
  needs('python3', context);
  const row = (month: string, currency: string, opening: string, cash: string) => ({ month, currency, opening, cash });
  const balances: Sheet = {
    name: 'Balances',
    columns: { month: 'text', currency: 'text', opening: 'amount', cash: 'amount' },
    rows: [
      row('2026-07', 'USD', '1.00', '2.00'),
      row('2026-08', 'USD', '3.00', '4.00'),
      row('2026-07', 'JPY', '5', '6'),
    ],
    totals: [
      { row: row('Total', 'USD', '1.00', '6.00'), months: { opening: '2026-07' } },
      { row: row('Total', 'JPY', '5', '6'), months: { opening: '2026-07' } },
    ],
  };
  expect(csvOf(balances).split('\r\n').slice(4)).toEqual(['Total,USD,1.00,6.00', 'Total,JPY,5,6', '']);
  expect(formulasOf(await xlsxOf(balances))).toEqual([
    ['C5', 'SUMIFS(C2:C4,B2:B4,"USD",A2:A4,"2026-07")'],
    ['D5', 'SUMIFS(D2:D4,B2:B4,"USD")'],
    ['C6', 'SUMIFS(C2:C4,B2:B4,"JPY",A2:A4,"2026-07")'],
    ['D6', 'SUMIFS(D2:D4,B2:B4,"JPY")'],
  ]);
});

test('a list without rows is still a workbook with headings', async () => {
  const [first] = await readXlsx(await xlsxOf({ ...sheet, rows: [] }));
  expect(first?.data).toEqual([['payer', 'received_on', 'currency', 'amount', 'lines']]);
});

test('a workbook computes what a formula gives, and keeps a text that is too long to be computed', async (context) => {
  needs('python3', context);
  const balances: Sheet = {
    name: 'Balances',
    columns: { partner: 'text', opening: 'amount', cash: 'amount', closing: 'amount' },
    rows: [
      { partner: '=A1', opening: '10.00', cash: '-4.00', closing: '6.00' },
      { partner: 'b', opening: '6.00', cash: '0.00', closing: '99999999999999.99' },
    ],
    formulas: (_, cell, before) => ({
      ...{ partner: 'B2', closing: `SUM(${cell('opening')}:${cell('cash')})` },
      ...(before && { opening: cell('closing', -1) }),
    }),
  };
  expect(formulasOf(await xlsxOf(balances))).toEqual([
    ['D2', 'SUM(B2:C2)'],
    ['B3', 'D2'],
  ]);
});

/** The formulas of a workbook by cell, from its XML. */
function formulasOf(workbook: Buffer): (string | undefined)[][] {
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-sheet-'));
  try {
    writeFileSync(join(folder, 'a.xlsx'), workbook);
    execFileSync(tool('python3'), ['-m', 'zipfile', '-e', join(folder, 'a.xlsx'), folder]);
    const xml = readFileSync(join(folder, 'xl/worksheets/sheet1.xml'), 'utf8');
    return [...xml.matchAll(/<c r="(\w+)"[^>]*><f>([^<]*)<\/f>/g)].map(([, at, formula = '']) => [
      at,
      formula.replaceAll('&quot;', '"'),
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
