/** Bank files whose lines are sent to the database some at a time: no line is lost or reordered, and none takes minutes. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bankCsvSchema } from '../../src/config/bank-csv.ts';
import { PackedList } from '../../src/reading/packed-list.ts';
import { type Books, openBooks, refusalOf } from './books.ts';

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

test('501 lines are 501 payments, reported in the order of the file', async () => {
  const report = await books.bankText('october.csv', fileOf(Array.from({ length: 501 }, () => 5)), { map: 'lines' });
  expect(report.new_lines.map(({ bank_reference }) => bank_reference)).toEqual(
    Array.from({ length: 501 }, (_, index) => `R-${index + 1}`),
  );
  expect(new Set(report.new_lines.map(({ payment_id }) => payment_id)).size).toBe(501);
  expect(await books.payments()).toHaveLength(501);
});

test('a large file with a wrong line in its middle records nothing', async () => {
  const text = fileOf(Array.from({ length: 1_200 }, () => 5)).replace(
    '2026-10-01,transfer 700,',
    '2026-12-01,transfer 700,',
  );
  expect(await refusalOf(books.bankText('october.csv', text, { map: 'lines' }))).toBe('bank_file_invalid');
  const [counts] = await books.sql(
    'SELECT (SELECT count(*)::int FROM bank_files) AS files, (SELECT count(*)::int FROM bank_lines) AS lines',
  );
  expect(counts).toEqual({ files: 0, lines: 0 });
});

test('a packed list keeps the order and the content of its items', () => {
  const items = Array.from({ length: 1_203 }, (_, index) => ({ index, name: `line ${index}` }));
  const list = new PackedList<(typeof items)[number]>();
  for (const each of items) list.push(each);
  expect(list.length).toBe(1_203);
  expect([...list]).toEqual(items);
  expect([...list]).toEqual(items);
});
