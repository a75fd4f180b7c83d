/** Rows with the partner's reference of an order and the days of cover, in CSV and in NDJSON. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LEDGER_HEADER } from '../../src/audit/ledger-rows.ts';
import { ROW_FIELDS } from '../../src/ledger/row.ts';
import { exported } from '../audit/books.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csv, csvLine, ledger, type Row } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await world.end();
});

const ORDER = { order_reference: '#1001 B', cover_from: '2026-07-15', cover_to: '2026-07-31' };
const ordersOf = (row: Row) =>
  world.sql(
    `SELECT order_reference, cover_from::text, cover_to::text FROM ledger_rows WHERE quote_id = $1 ORDER BY entry_id`,
    [row['quote_id']],
  );

test.each([12, 13, 14, 15])('a CSV file may have the first %i columns', async (count) => {
  const row = quote(ORDER);
  const lines = csv(row)
    .trimEnd()
    .split('\n')
    .map((line) => line.split(',').slice(0, count).join(','));
  expect(await world.importFiles([world.file('some.csv', lines.join('\n'))])).toMatchObject({ accepted: 1 });
  expect(await ordersOf(row)).toEqual([
    {
      order_reference: count > 12 ? ORDER.order_reference : null,
      cover_from: count > 13 ? ORDER.cover_from : null,
      cover_to: count > 14 ? ORDER.cover_to : null,
    },
  ]);
});

test('quotes share an order, and requotes and reversals have their own values or none', async () => {
  const [first, second] = [quote(ORDER), quote(ORDER)];
  const more = requote(first, { order_reference: 'ORD-2', cover_from: undefined, cover_to: undefined });
  const back = reversal(first, { order_reference: '', cover_to: null });
  expect(await world.rows([first, second, more, back])).toMatchObject({ accepted: 4 });
  expect(await ordersOf(first)).toEqual([
    ORDER,
    { order_reference: 'ORD-2', cover_from: null, cover_to: null },
    { ...ORDER, order_reference: null, cover_to: null },
  ]);
  expect(await ordersOf(second)).toEqual([ORDER]);
});

test('a cover may begin without an end, and last one day', async () => {
  const [open, day] = [
    quote({ cover_from: '2028-02-29' }),
    quote({ cover_from: '2026-08-01', cover_to: '2026-08-01' }),
  ];
  expect(await world.rows([open, day])).toMatchObject({ accepted: 2 });
});

test('the reference is kept as it is given, up to 128 characters of any script', async () => {
  const references = ['Größe 7 / №5', '注文 17', '😀'.repeat(128), 'a\\N', "'quoted'", '=1+1', '-5', 'x, "y"'];
  const rows = references.map((order_reference) => quote({ order_reference }));
  expect(await world.rows(rows)).toMatchObject({ accepted: rows.length });
  const kept = await Promise.all(rows.map(ordersOf));
  expect(kept.flat().map((row) => (row as Row)['order_reference'])).toEqual(references);
});

test('an exported ledger can be imported again, and every row is a duplicate', async () => {
  world.at('2026-08-02T12:00:00Z');
  await world.close('2026-07');
  const pack = await exported(world, { kind: 'ledger' });
  const rows = await ledger(world);
  const report = await world.importFiles([`${pack}/ledger.csv`]);
  expect(report).toMatchObject({ accepted: 0, rejected: 0, duplicates: rows.length });
  expect(LEDGER_HEADER.startsWith(`${ROW_FIELDS.join(',')},entry_id,`)).toBe(true);
  expect(readFileSync(`${pack}/ledger.csv`, 'utf8')).toContain(",'=1+1,");
});

test('a corrected file of rejects keeps its orders', async () => {
  const bad = quote({ order_reference: '=2', spotPrice: '10.01' });
  const rejects = `${world.home}/rejects.csv`;
  const file = world.file('bad.csv', csv(bad));
  expect(await world.importFiles([file], { skipInvalid: true, rejects })).toMatchObject({ rejected: 1 });
  expect(csvLine(bad)).toContain(',=2,');
  writeFileSync(rejects, readFileSync(rejects, 'utf8').replace('10.01', '10.00'));
  expect(await world.importFiles([rejects])).toMatchObject({ accepted: 1 });
  expect(await ordersOf(bad)).toMatchObject([{ order_reference: '=2' }]);
});
