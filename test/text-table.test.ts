/** Tables for people. */
import { expect, test } from 'vitest';
import { table } from '../src/text-table.ts';
import { cpuMilliseconds } from './support/cpu.ts';

const HEADINGS = ['~partner', 'number', '~note', '>balance'];
const ROWS = [
  ['Spreeklang Konzertbüro GmbH', 'INV-2026-000005', 'asked for a copy', '1,014.96'],
  ['Milepost', 'INV-2026-000003', '', '675.00'],
];
const widthOf = (text: string) => Math.max(...text.split('\n').map((line) => line.length));

test('without a limit, as in a pipe, nothing is shortened', () => {
  expect(table(HEADINGS, ROWS)).toContain('Spreeklang Konzertbüro GmbH  INV-2026-000005  asked for a copy  1,014.96');
});

test('in a terminal the widest of the columns that may be shortened gives way first', () => {
  const text = table(HEADINGS, ROWS, 60);
  expect(widthOf(text)).toBe(60);
  expect(text).toContain('Spreeklang Kon…  INV-2026-000005  asked for a copy  1,014.96');
});

test('numbers and amounts are never shortened, however narrow the terminal is', () => {
  expect(table(HEADINGS, ROWS, 20)).toContain('Spreekl…  INV-2026-000005  asked f…  1,014.96');
});

test('a table of 100,000 lines takes seconds at most, and wide characters keep its columns straight', () => {
  expect(cpuMilliseconds(() => table(HEADINGS, Array(50_000).fill(ROWS).flat()))).toBeLessThan(10_000);
  expect(
    table(
      ['a', 'b'],
      [
        ['日本', 'x'],
        ['abcd', 'y'],
      ],
    ),
  ).toBe('a     b\n日本  x\nabcd  y');
});
