/** Files as large as they come: one bad row in a thousand, thousands of bad rows, fifty thousand good ones. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { times } from '../support/sweep.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csv, ledger, ndjson, RECORDED_NOTHING, type Row, size, told } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld({ fresh: true });
  world.at('2026-08-01T10:00:00Z');
  await world.partners(Array.from({ length: 20 }, (_, index) => partner({ partner_id: `p-${index}` })));
});
afterAll(() => world.end());

test('one bad row in a thousand stores nothing and is named by its line', async () => {
  const rows = Array.from({ length: 1_000 }, () => quote());
  rows[617] = quote({ invoiceAmount: '7.01' });
  const file = world.file('thousand.csv', csv(...rows));
  const report = await world.importFiles([file]);
  expect(report).toMatchObject({ ...RECORDED_NOTHING, duplicates: 0, rejected: 1 });
  expect(report.errors).toMatchObject([{ file, line: 619, field: 'spotPrice', code: 'amounts_unbalanced' }]);
  expect(await size(world)).toBe(0);
});

test('one bad row in the second of two files stores nothing of the first', async () => {
  const good = world.file('good.csv', csv(...Array.from({ length: 100 }, () => quote())));
  const bad = world.file('bad.ndjson', ndjson(quote(), quote({ policy_id: 'unknown' })));
  const report = await world.importFiles([good, bad]);
  expect(report).toMatchObject({ ...RECORDED_NOTHING, rejected: 1 });
  expect(report.errors).toMatchObject([{ file: bad, line: 2, code: 'policy_unknown' }]);
  expect(await size(world)).toBe(0);
});

test('the rows of an import are numbered by partner, and those of a partner as in the file', async () => {
  const other = await openWorld({ fresh: true });
  other.at('2026-08-01T10:00:00Z');
  await other.partners(['p-a', 'p-b'].map((id) => partner({ partner_id: id })));
  const of = (id: string) => quote({ partner_id: id });
  const [second, first, third, fourth] = [of('p-b'), of('p-a'), of('p-b'), of('p-a')];
  await other.rows([second, first, third, fourth]);
  expect((await ledger(other)).map(({ quote_id }) => quote_id)).toEqual(
    [first, fourth, second, third].map((row) => row['quote_id']),
  );
  await other.end();
});

test('a preview says what would be recorded and records nothing', async () => {
  const file = world.file('preview.csv', csv(quote(), quote()));
  expect(await world.importFiles([file], { preview: true })).toMatchObject({ accepted: 2, refused: false });
  expect(await size(world)).toBe(0);
});

test('of 1,500 bad rows the first 1,000 are reported, in file order, and all are counted', async () => {
  // By turns bad by itself, by its partner, by its quote: found in different ways, reported in one order.
  const kinds = [
    () => quote({ spotPrice: '10.01' }),
    () => quote({ partner_id: 'p-unknown' }),
    () => requote(quote()),
    () => quote(),
  ];
  const rows = Array.from({ length: 2_000 }, (_, index) => (kinds[index % 4] as () => Row)());
  const report = await world.rows(rows);
  expect(report).toMatchObject({ ...RECORDED_NOTHING, rejected: 1_500 });
  expect(report.errors).toHaveLength(1_000);
  const lines = report.errors.map(({ line }) => line);
  expect(lines).toEqual(rows.flatMap((_, index) => (index % 4 === 3 ? [] : [index + 1])).slice(0, 1_000));
  expect(told(report).slice(0, 3)).toEqual([
    '1 spotPrice amounts_unbalanced',
    '2 partner_id partner_unknown',
    '3 quote_id quote_unknown',
  ]);
  expect(await size(world)).toBe(0);
});

const ROWS = times({ few: 10_000, short: 50_000, long: 50_000 });

test(`${ROWS} rows are imported, and counted as duplicates the second time`, async () => {
  const rows: Row[] = [];
  for (let index = 0; rows.length < ROWS; index += 1) {
    const row = quote({
      quote_id: `q50-${index}`,
      partner_id: `p-${index % 20}`,
      spotPrice: 10,
      partnerCut: 3,
      invoiceAmount: 7,
    });
    rows.push(row);
    if (index % 10 === 0) rows.push(requote(row));
    if (index % 20 === 0) rows.push(reversal(row));
  }
  const [csvFile, ndjsonFile] = [world.file('fifty.csv', csv(...rows)), world.file('fifty.ndjson', ndjson(...rows))];
  const importing = async (file: string) => {
    const start = performance.now();
    const report = await world.importFiles([file]);
    return { report, took: performance.now() - start };
  };
  const first = await importing(csvFile);
  expect(first.report).toMatchObject({ accepted: ROWS, duplicates: 0, rejected: 0 });
  const second = await importing(ndjsonFile);
  expect(second.report).toMatchObject({ accepted: 0, duplicates: ROWS, rejected: 0 });
  // Half as long; it was many times as long when each row looked through all that were found before it.
  expect(second.took).toBeLessThan(3 * first.took);
  expect(await size(world)).toBe(ROWS);
});
