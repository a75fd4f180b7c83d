/** Reading a settlement file: the same aside as in place, and others are served meanwhile. */
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { readSettlementText } from '../../src/splits/read-settlement.ts';
import { compiled } from '../support/program.ts';

const NOW = Date.parse('2026-11-02T06:00:00Z');
const fileOf = (lines: number, amount: string) => {
  const each = Array.from({ length: lines }, (_, nth) => `q-${nth},tr_${nth},py_${nth},${amount}\n`);
  return ['quote_id,transfer,payment,amount\n', ...each].join('');
};

/** What the compiled program reads, and how often the event loop came round meanwhile. */
async function read(text: string) {
  const load = (path: string) => import(/* @vite-ignore */ pathToFileURL(compiled(path)).href);
  const { readAside } = (await load('src/reading/aside.js')) as typeof import('../../src/reading/aside.ts');
  const { settlementFile } = (await load(
    'src/splits/read-settlement.js',
  )) as typeof import('../../src/splits/read-settlement.ts');
  const task = { name: 'settlement.csv', bytes: Buffer.from(text), currency: 'USD', now: NOW, mostLines: 10_000 };
  let rounds = 0;
  const counting = setInterval(() => {
    rounds += 1;
  }, 1);
  const reading = await readAside(settlementFile, task);
  clearInterval(counting);
  return { reading, rounds, inPlace: readSettlementText(task) };
}

test.each([
  ['a large file is read while others are served', fileOf(9999, '7.00'), { lines: 9999, problemCount: 0 }],
  ['a large file of wrong lines is, too', fileOf(9999, '7.001'), { lines: 0, problemCount: 9999 }],
  ['a file of too many lines is not read, and others are served', fileOf(10_001, '7.00'), { problemCount: 1 }],
])('%s', async (_, text, expected) => {
  const { reading, rounds, inPlace } = await read(text);
  expect(reading).toMatchObject(expected);
  expect(reading).toEqual(inPlace);
  expect(reading.problems.length).toBeLessThanOrEqual(20);
  expect(rounds).toBeGreaterThan(0);
});

test('a small file is read at once', async () => {
  const { reading, rounds, inPlace } = await read(fileOf(3, '7.00'));
  expect(reading).toEqual(inPlace);
  expect([reading.lines, rounds]).toEqual([3, 0]);
});
