/** --skip-invalid records the good rows in file order, loses with a bad row what depends on it, and writes the rejects. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csv, csvLine, HEADER, ledger, ndjson, type Row, size, told } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
});
afterAll(() => world.end());

const SKIP = { skipInvalid: true };
const back = (of: Row, whole: number, overrides: Row = {}) =>
  reversal(of, { spotPrice: `-${whole}`, partnerCut: '0', invoiceAmount: `-${whole}`, ...overrides });
const priced = (whole: number) => quote({ spotPrice: `${whole}`, partnerCut: '0', invoiceAmount: `${whole}` });
/** A bad row by itself that still says what it is. */
const unbalanced = (overrides: Row = {}) => quote({ spotPrice: '10.01', ...overrides });

describe('with --skip-invalid', () => {
  test('the good rows are recorded and the bad ones reported by line', async () => {
    const [one, two] = [quote(), quote()];
    const report = await world.rows([one, unbalanced(), two, quote({ policy_id: 'unknown' })], SKIP);
    expect(report).toMatchObject({ accepted: 2, duplicates: 0, rejected: 2, refused: false });
    expect(told(report)).toEqual(['2 spotPrice amounts_unbalanced', '4 policy_id policy_unknown']);
    expect(await ledger(world, one['quote_id'])).toHaveLength(1);
  });

  test('a file without a good row records nothing and is not refused', async () => {
    const before = await size(world);
    expect(await world.rows([unbalanced(), unbalanced()], SKIP)).toMatchObject({
      accepted: 0,
      rejected: 2,
      refused: false,
    });
    expect(await size(world)).toBe(before);
  });

  test('a file without a bad row is imported as without it', async () => {
    expect(await world.rows([quote(), quote()], SKIP)).toMatchObject({ accepted: 2, rejected: 0, refused: false });
  });

  test('a file that cannot be read to its end still refuses everything', async () => {
    const before = await size(world);
    const good = world.file('good.csv', csv(quote()));
    const open = world.file('open.csv', `${HEADER}\n${csvLine(quote())}\n"${csvLine(quote())}\n`);
    const report = await world.importFiles([good, open], SKIP);
    expect(report).toMatchObject({ accepted: 0, rejected: 1, refused: true });
    expect(told(report)).toEqual(['3  csv_malformed']);
    expect(await size(world)).toBe(before);
  });

  test('a line that is far too long is one bad row like any other', async () => {
    const long = JSON.stringify(quote({ quote_id: 'x'.repeat(2_000_000) }));
    const file = world.file('long.ndjson', `${ndjson(quote())}${long}\n${ndjson(quote())}`);
    const report = await world.importFiles([file], SKIP);
    expect(report).toMatchObject({ accepted: 2, rejected: 1, refused: false });
    expect(told(report)).toEqual(['2  line_too_long']);
  });

  test('a stray quotation mark spoils its own line only', async () => {
    const stray = csvLine(quote()).replace('p-1', 'p"-1');
    const file = world.file('stray.csv', [HEADER, csvLine(quote()), stray, csvLine(quote()), ''].join('\n'));
    const report = await world.importFiles([file], SKIP);
    expect(report).toMatchObject({ accepted: 2, rejected: 1 });
    expect(told(report)).toEqual(['3  csv_malformed']);
  });
});

describe('limits are judged in file order', () => {
  test('a reversal that comes before its quote is too much', async () => {
    const row = quote();
    const report = await world.rows([reversal(row), row], SKIP);
    expect(told(report)).toEqual(['1 quote_id quote_exceeded']);
    expect((await ledger(world, row['quote_id'])).map((entry) => entry.kind)).toEqual(['quote_accepted']);
  });

  test('a reversal that counts on a later requote is too much, one behind it is not', async () => {
    const row = priced(10);
    const more = requote(row, { spotPrice: '5', partnerCut: '0', invoiceAmount: '5' });
    const report = await world.rows([row, back(row, 12), more, back(row, 15)], SKIP);
    expect(told(report)).toEqual(['2 quote_id quote_exceeded']);
    expect((await ledger(world, row['quote_id'])).map((entry) => entry.spot_price)).toEqual(['10', '5', '-15']);
  });

  test('one that is too much is left out, and smaller ones behind it still fit', async () => {
    const row = priced(10);
    const report = await world.rows([row, back(row, 8), back(row, 5), back(row, 2), back(row, 1)], SKIP);
    expect(told(report)).toEqual(['3 quote_id quote_exceeded', '5 quote_id quote_exceeded']);
    expect((await ledger(world, row['quote_id'])).map((entry) => entry.spot_price)).toEqual(['10', '-8', '-2']);
  });

  test('over the files in the order in which they are named', async () => {
    const row = priced(10);
    const [large, small] = [
      world.file('large.ndjson', ndjson(back(row, 7))),
      world.file('small.csv', csv(back(row, 4))),
    ];
    await world.rows([row]);
    const report = await world.importFiles([small, large], SKIP);
    expect(report.errors).toMatchObject([{ file: large, line: 1, code: 'quote_exceeded' }]);
    expect((await ledger(world, row['quote_id'])).map((entry) => entry.spot_price)).toEqual(['10', '-4']);
  });

  test('a duplicate of a reversal takes nothing more', async () => {
    const row = priced(10);
    const six = back(row, 6);
    const report = await world.rows([row, six, six, back(row, 4)], SKIP);
    expect(report).toMatchObject({ accepted: 3, duplicates: 1, rejected: 0 });
  });
});

describe('what depends on a bad row is lost with it', () => {
  test('a bad quote takes its requotes and reversals with it', async () => {
    const bad = unbalanced();
    const more = requote(bad);
    const report = await world.rows(
      [bad, more, reversal(bad), reversal(bad, { requote_id: more['requote_id'] })],
      SKIP,
    );
    expect(report).toMatchObject({ accepted: 0, rejected: 4 });
    expect(told(report)).toEqual([
      '1 spotPrice amounts_unbalanced',
      '2 quote_id quote_unknown',
      '3 quote_id quote_unknown',
      '4 quote_id quote_unknown',
    ]);
  });

  test('also a quote that only its partner, its policy or the ledger spoils', async () => {
    await world.partners([partner({ partner_id: 'p-off', active: false })]);
    for (const overrides of [{ partner_id: 'p-unknown' }, { policy_id: 'unknown' }, { partner_id: 'p-off' }]) {
      world.at('2026-08-20T10:00:00Z');
      const bad = quote({ accepted_at: '2026-08-20T09:00:00Z', ...overrides });
      expect(await world.rows([reversal(bad), bad], SKIP)).toMatchObject({ accepted: 0, rejected: 2 });
    }
  });

  test('a bad requote takes the reversal that names it, and no other', async () => {
    const row = quote();
    const bad = requote(row, { spotPrice: '5.01' });
    const named = reversal(row, {
      requote_id: bad['requote_id'],
      spotPrice: '-5.00',
      partnerCut: '-1.50',
      invoiceAmount: '-3.50',
    });
    const report = await world.rows([row, bad, named, reversal(row)], SKIP);
    expect(report).toMatchObject({ accepted: 2, rejected: 2 });
    expect(told(report)).toEqual(['2 spotPrice amounts_unbalanced', '3 requote_id requote_unknown']);
  });

  test('a requote under another policy takes the reversal that names it', async () => {
    const row = quote();
    const bad = requote(row, { policy_id: 'parking' });
    const named = reversal(row, {
      requote_id: bad['requote_id'],
      spotPrice: '-1',
      partnerCut: '0',
      invoiceAmount: '-1',
    });
    const report = await world.rows([named, bad, row], SKIP);
    expect(told(report)).toEqual(['1 requote_id requote_unknown', '2 policy_id quote_mismatch']);
  });

  test('a reversal that counted on a bad requote is too much', async () => {
    const row = quote();
    const bad = requote(row, { spotPrice: '5.01' });
    const all = reversal(row, { spotPrice: '-15.00', partnerCut: '-4.50', invoiceAmount: '-10.50' });
    const report = await world.rows([row, bad, all], SKIP);
    expect(told(report)).toEqual(['2 spotPrice amounts_unbalanced', '3 quote_id quote_exceeded']);
  });

  test('but not where the ledger has the quote already', async () => {
    const row = quote();
    await world.rows([row]);
    const report = await world.rows([{ ...row, spotPrice: '11', partnerCut: '4' }, reversal(row)], SKIP);
    expect(report).toMatchObject({ accepted: 1, rejected: 1 });
    expect(told(report)).toEqual(['1 quote_id conflict']);
  });
});

describe('the rejects file', () => {
  test('has every bad row as it stood, with its place and reason, in order', async () => {
    const bad = unbalanced();
    const broken = '{"kind":"quote_accepted",\t"C:\\new"';
    const first = world.file('first.ndjson', `\uFEFF${ndjson(quote())}${broken}\n\n${ndjson(bad)}`);
    const stray = csvLine(unbalanced({ quote_id: 'q"x' }));
    const second = world.file('second.csv', `${HEADER}\r\n${csvLine(quote())}\r\n\r\n\\.\r\n${stray}`);
    const rejects = join(world.home, 'rejects.ndjson');
    const report = await world.importFiles([first, second], { ...SKIP, rejects });
    expect(report).toMatchObject({ accepted: 2, rejected: 4 });
    const text = readFileSync(rejects, 'utf8');
    expect(text.endsWith('\n')).toBe(true);
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Row);
    expect(lines).toEqual([
      { ...report.errors[0], file: first, line: 2, code: 'json_malformed', row: broken },
      {
        file: first,
        line: 4,
        field: 'spotPrice',
        code: 'amounts_unbalanced',
        reason: '10.01 is not partnerCut 3.00 + invoiceAmount 7.00',
        row: JSON.stringify(bad),
      },
      {
        file: second,
        line: 4,
        field: '',
        code: 'column_count',
        reason: 'has 1 columns where the header has 15',
        row: '\\.',
      },
      { ...report.errors[3], file: second, line: 5, code: 'csv_malformed', row: stray },
    ]);
    expect(Object.keys(lines[0] ?? {})).toEqual(['file', 'line', 'field', 'code', 'reason', 'row']);
  });

  test('of CSV files is CSV: corrected and with its reasons, it can be imported again', async () => {
    const bad = unbalanced();
    const broken = `${csvLine(unbalanced())},one,too,many`;
    const file = world.file('rows.csv', `${HEADER}\n${csvLine(bad)}\n${broken}\n`);
    const rejects = join(world.home, 'rejects.csv');
    expect(await world.importFiles([file], { ...SKIP, rejects })).toMatchObject({ accepted: 0, rejected: 2 });
    const [header, first, second] = readFileSync(rejects, 'utf8').split('\r\n');
    expect(header).toBe(`${HEADER},reject_file,reject_line,reject_field,reject_code,reject_reason,reject_row`);
    expect(first).toBe(
      `${csvLine(bad)},${file},2,spotPrice,amounts_unbalanced,10.01 is not partnerCut 3.00 + invoiceAmount 7.00,`,
    );
    expect(second).toContain(`,3,,column_count,has 18 columns where the header has 15,"${broken}"`);
    const corrected = `${header}\r\n${first?.replace('10.01', '10.00')}\r\n`;
    expect(await world.importFiles([world.file('corrected.csv', corrected)])).toMatchObject({ accepted: 1 });
  });

  test('of one of several formats is named by its ending', async () => {
    const bad = unbalanced();
    const rejects = join(world.home, 'from-ndjson.csv');
    await world.importFiles([world.file('rows.ndjson', ndjson(bad))], { ...SKIP, rejects });
    const corrected = readFileSync(rejects, 'utf8').replace('10.01', '10.00');
    expect(await world.importFiles([world.file('corrected-2.csv', corrected)])).toMatchObject({ accepted: 1 });
  });

  test('is written too when the import is refused, and the bad rows can be imported from it once corrected', async () => {
    const rejects = join(world.home, 'refused.ndjson');
    const bad = unbalanced();
    expect(await world.rows([quote(), bad], { rejects })).toMatchObject({ accepted: 0, rejected: 1, refused: true });
    const { row } = JSON.parse(readFileSync(rejects, 'utf8')) as { row: string };
    expect(await world.importFiles([world.file('mended.ndjson', row.replace('10.01', '10.00'))])).toMatchObject({
      accepted: 1,
    });
  });

  test('has all bad rows where the report has a thousand', async () => {
    const rejects = join(world.home, 'many.ndjson');
    const rows = Array.from({ length: 2_345 }, (_, index) => unbalanced({ quote_id: `many-${index}` }));
    const report = await world.rows(rows, { ...SKIP, rejects });
    expect(report).toMatchObject({ accepted: 0, rejected: 2_345 });
    expect(report.errors).toHaveLength(1_000);
    const lines = readFileSync(rejects, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { line: number }).line);
    expect(lines).toEqual(rows.map((_, index) => index + 1));
  });

  test('is empty where no row is bad', async () => {
    const rejects = join(world.home, 'none.ndjson');
    expect(await world.rows([quote()], { ...SKIP, rejects })).toMatchObject({ accepted: 1 });
    expect(readFileSync(rejects, 'utf8')).toBe('');
  });

  test('that cannot be written stores nothing', async () => {
    const before = await size(world);
    const folder = join(world.home, 'folder');
    mkdirSync(folder);
    for (const rejects of [folder, join(world.home, 'nowhere', 'rejects.ndjson'), '/dev/null/rejects.ndjson']) {
      for (const rows of [[quote(), unbalanced()], [quote()]]) {
        await expect(world.rows(rows, { ...SKIP, rejects })).rejects.toMatchObject({
          code: 'file_unwritable',
          facts: { file: rejects },
        });
      }
    }
    expect(await size(world)).toBe(before);
  });

  test('is never one of the files that are imported', async () => {
    const text = ndjson(quote(), unbalanced());
    const file = world.file('precious.ndjson', text);
    await expect(
      world.importFiles([file], { ...SKIP, rejects: join(world.home, '.', 'precious.ndjson') }),
    ).rejects.toMatchObject({
      code: 'file_unwritable',
    });
    expect(readFileSync(file, 'utf8')).toBe(text);
  });
});
