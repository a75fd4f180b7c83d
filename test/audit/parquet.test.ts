/** Parquet files of packs: every cell is that of the CSV beside it, with exact amounts, dates and times. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { columnsOf, type DataFile } from '../../src/audit/dictionary.ts';
import { EXPORT_KINDS } from '../../src/audit/export.ts';
import { booksOf } from '../payments/books.ts';
import { tool } from '../support/tools.ts';
import type { World } from '../support/world.ts';
import { exported, month, openBooks } from './books.ts';

let world: World;
const packs: string[] = [];
beforeAll(async () => {
  world = await openBooks();
  const books = booksOf(world);
  world.at('2026-10-15T10:00:00.123Z');
  await books.record({
    ...{ amount: '999999999999999.99', number: 'INV-2026-000004', currency: 'USD', receivedOn: '2026-10-15' },
    reference: '=FT-1',
  });
  await books.bank('ach-october-01.bai');
  for (const kind of EXPORT_KINDS) packs.push(await exported(world, { kind, to: month('2026-10'), parquet: true }));
}, 120_000);
afterAll(() => world.end());

type Row = Record<string, string>;
const csvOf = (pack: string, file: string) =>
  parse(readFileSync(join(pack, `${file}.csv`)), { columns: true }) as Row[];
const plain = (text: string) => (/^'['=+@\t\r-]/.test(text) ? text.slice(1) : text);
const filesOf = (pack: string) =>
  readdirSync(pack)
    .filter((name) => name.endsWith('.parquet'))
    .map((name) => name.slice(0, -'.parquet'.length) as DataFile);

test('each table has a Parquet file with its rows, and the manifest names it', () => {
  let tables = 0;
  for (const pack of packs) {
    const manifest = JSON.parse(readFileSync(join(pack, 'manifest.json'), 'utf8')) as {
      files: { name: string; rows: number }[];
    };
    const data = readdirSync(pack).filter((name) => name.endsWith('.csv') && name !== 'dictionary.csv');
    expect(
      filesOf(pack)
        .map((file) => `${file}.csv`)
        .sort(),
    ).toEqual(data.sort());
    for (const file of filesOf(pack)) {
      const rows = (format: string) => manifest.files.find(({ name }) => name === `${file}.${format}`)?.rows;
      expect([file, rows('parquet')]).toEqual([file, rows('csv')]);
      tables += 1;
    }
  }
  expect(tables).toBe(18);
});

/** This reader gives decimals as numbers, which are nearly those of the CSV. pyarrow gives them exactly. */
test('every cell is that of the CSV', async () => {
  const seen = new Map<string, number>();
  for (const pack of packs) {
    for (const file of filesOf(pack)) {
      const own = await asyncBufferFromFile(join(pack, `${file}.parquet`));
      const schema = (await parquetMetadataAsync(own)).schema.slice(1);
      const rows = await parquetReadObjects({ file: own });
      const cells = csvOf(pack, file);
      expect([file, rows.length]).toEqual([file, cells.length]);
      for (const [at, { name, type }] of columnsOf(file).entries()) {
        const { name: stored, type: physical, converted_type: converted, scale } = schema[at] ?? {};
        expect([file, name]).toEqual([file, stored]);
        const kind = `${physical} ${converted ?? ''} ${scale ?? ''}`.trim();
        for (const [index, row] of rows.entries()) {
          const text = plain(cells[index]?.[name] ?? '');
          const value = row[name];
          const read =
            value instanceof Date ? value.toISOString().slice(0, type === 'date' ? 10 : 23) : String(value ?? '');
          const [seconds = '', fraction = ''] = text.replace(/Z$/, '').split('.');
          const wanted = type === 'instant' && text !== '' ? `${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}` : text;
          if (typeof value === 'number' && type !== 'date')
            expect(value).toBeCloseTo(Number(text), text.length > 12 ? 0 : 6);
          else expect([file, name, index, read]).toEqual([file, name, index, wanted]);
          seen.set(`${type}: ${kind}`, (seen.get(`${type}: ${kind}`) ?? 0) + Number(text !== ''));
        }
      }
    }
  }
  expect([...seen.keys()].sort()).toEqual([
    'amount: FIXED_LEN_BYTE_ARRAY DECIMAL 4',
    'boolean: BOOLEAN',
    'date: INT32 DATE',
    'decimal: FIXED_LEN_BYTE_ARRAY DECIMAL 12',
    'instant: INT64 TIMESTAMP_MICROS',
    'integer: INT64',
    'json: BYTE_ARRAY UTF8',
    'list: BYTE_ARRAY UTF8',
    'month: BYTE_ARRAY UTF8',
    'text: BYTE_ARRAY UTF8',
  ]);
  for (const [kind, cells] of seen) expect([kind, cells > 0]).toEqual([kind, true]);
});

/** A Python that has pyarrow, which reads decimals and microseconds exactly. */
const pythonWithArrow = () =>
  [process.env['PYARROW_PYTHON'], tool('python3')].find(
    (each) => each !== undefined && spawnSync(each, ['-c', 'import pyarrow']).status === 0,
  );
const SCRIPT = `
import csv, datetime, decimal, json, sys
import pyarrow.parquet as pq
path, types = sys.argv[1], json.loads(sys.argv[2])
decimal.getcontext().prec = 60
cells = 0
with open(path + '.csv', newline='', encoding='utf-8') as file:
    table = pq.read_table(path + '.parquet')
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    for index, row in enumerate(csv.DictReader(file)):
        assert list(row) == table.column_names
        for name, text in row.items():
            value, kind = columns[name][index], types[name]
            if len(text) > 1 and text[0] == "'" and text[1] in "'=+@\\t\\r-": text = text[1:]
            if text == '': wanted = None
            elif kind in ('amount', 'decimal'): wanted = decimal.Decimal(text)
            elif kind == 'integer': wanted = int(text)
            elif kind == 'boolean': wanted = text == 'true'
            elif kind == 'date': wanted = datetime.date.fromisoformat(text)
            elif kind == 'instant':
                seconds, _, fraction = text.rstrip('Z').partition('.')
                wanted = datetime.datetime.fromisoformat(seconds).replace(tzinfo=datetime.timezone.utc, microsecond=int(fraction.ljust(6, '0') or 0))
            else: wanted = text
            assert value == wanted and type(value) is type(wanted), (name, index, value, wanted)
            cells += 1
    assert table.num_rows == index + 1 if cells else table.num_rows == 0
print(cells)
`;

test('pyarrow reads every cell exactly', ({ skip }) => {
  // Debian has no package of it, so CI may lack it too.
  const python = pythonWithArrow() ?? skip('needs pyarrow');
  let cells = 0;
  for (const pack of packs) {
    for (const file of filesOf(pack)) {
      const types = Object.fromEntries(columnsOf(file).map(({ name, type }) => [name, type]));
      const ran = spawnSync(python, ['-c', SCRIPT, join(pack, file), JSON.stringify(types)], {
        encoding: 'utf8',
      });
      expect([file, ran.status, ran.stderr]).toEqual([file, 0, '']);
      cells += Number(ran.stdout);
    }
  }
  expect(cells).toBeGreaterThan(1_000);
});

test('a pack in JSON Lines has the same Parquet, and one for an accounting program none', async () => {
  for (const kind of ['payments', 'ledger', 'partners'] as const) {
    const lines = await exported(world, { kind, format: 'jsonl', to: month('2026-10'), parquet: true });
    const cells = packs[EXPORT_KINDS.indexOf(kind)] as string;
    for (const file of filesOf(cells)) {
      const [one, other] = [cells, lines].map((pack) => readFileSync(join(pack, `${file}.parquet`)));
      if (kind !== 'partners') expect([file, one?.equals(other as Buffer)]).toEqual([file, true]);
    }
  }
  const invoices = await exported(world, { kind: 'invoices', format: 'jsonl', to: month('2026-10'), parquet: true });
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(join(invoices, 'invoices.parquet')) });
  expect(JSON.parse(String(rows[0]?.['lines']))).toEqual(expect.any(Array));
  const plainPack = await exported(world, { kind: 'journal', to: month('2026-10') });
  expect(existsSync(join(plainPack, 'journal.parquet'))).toBe(false);
});
