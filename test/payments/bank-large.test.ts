/** Bank files whose lines are sent to the database some at a time: no line is lost or reordered, and none takes minutes. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bankCsvSchema } from '../../src/config/bank-csv.ts';
import { type Books, openBooks } from './books.ts';

const MAP = bankCsvSchema.parse({
  columns: { date: 'date', text: ['text'], amount: 'amount', balance: 'balance', bank_reference: 'reference' },
  date_format: 'yyyy-MM-dd',
  account: '0012345',
});

let books: Books;
beforeEach(async () => {
  books = await openBooks({ bank_csv: { lines: MAP } }, undefined, { fresh: true });
});
afterEach(async () => {
  await books.verified();
  await books.end();
});

/** A file of an account: each line has its number as reference, and the balance after it. */
function fileOf(amounts: readonly number[]) {
  let balance = 0;
  const lines = amounts.map((amount, index) => {
    balance += amount;
    return `2026-10-01,transfer ${index + 1},${amount},${balance},R-${index + 1}\n`;
  });
  return `date,text,amount,balance,reference\n${lines.join('')}`;
}

/** The planner expected one row in tables that were empty when they were last analyzed: 6,000 lines took many minutes. */
test('a large file is imported as fast as its preview, whose lines the server has cleared away', async () => {
  const text = fileOf(Array.from({ length: 4_000 }, (_, index) => (index % 4 === 3 ? -1 : 1 + (index % 1000))));
  const importing = async (preview: boolean) => {
    const began = performance.now();
    const { lines, breaks } = await books.bankText('october.csv', text, { map: 'lines', preview });
    return { lines, breaks, seconds: (performance.now() - began) / 1000 };
  };
  const previewed = await importing(true);
  await books.sql('VACUUM (ANALYZE, TRUNCATE FALSE)');
  const [{ rows } = {}] = await books.sql("SELECT reltuples AS rows FROM pg_class WHERE relname = 'bank_lines'");
  expect(rows).toBe(0);
  const { seconds, ...imported } = await importing(false);
  expect(imported).toEqual({ lines: { total: 4_000, new: 4_000, known: 0 }, breaks: [] });
  expect(seconds).toBeLessThan(4 * previewed.seconds);
});
