/** Reading files: which record stands on which physical line, whatever ends it, and that no record is lost or merged. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RowFormat, readRecords, type SourceRecord } from '../../src/ledger/read.ts';
import { ROW_FIELDS } from '../../src/ledger/row.ts';
import fc from '../support/property.ts';
import { quote } from '../support/world.ts';
import { csvLine, HEADER, type Row } from './ledger.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-lines-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function read(text: string | Buffer, format: RowFormat): Promise<SourceRecord[]> {
  const name = join(folder, 'rows');
  writeFileSync(name, text);
  const records: SourceRecord[] = [];
  let bytes = 0;
  for await (const batch of readRecords({ name, format }, (more) => (bytes += more))) records.push(...batch);
  if (!records.some((record) => record.fatal)) expect(bytes).toBe(Buffer.byteLength(text));
  return records;
}
/** `line quote_id`, or `line code` where a record can't be read. */
const told = (records: readonly SourceRecord[]) =>
  records.map(({ line, texts, problem }) => `${line} ${problem?.code ?? texts.quote_id}`);

const A = csvLine(quote({ quote_id: 'a' }));
const B = csvLine(quote({ quote_id: 'b' }));
const J = (id: string) => JSON.stringify(quote({ quote_id: id }));
const quoted = (line: string) => `"${line.split(',').join('","')}"`;

describe('CSV rows are reported with their physical line', () => {
  const files: readonly [sentence: string, text: string, told: string[]][] = [
    ['with LF', `${HEADER}\n${A}\n${B}\n`, ['2 a', '3 b']],
    ['with CRLF', `${HEADER}\r\n${A}\r\n${B}\r\n`, ['2 a', '3 b']],
    ['with CRLF after the header and LF after rows', `${HEADER}\r\n${A}\n${B}\n`, ['2 a', '3 b']],
    ['with LF after the header and CRLF after rows', `${HEADER}\n${A}\r\n${B}\r\n`, ['2 a', '3 b']],
    ['without a line end after the last line', `${HEADER}\n${A}\n${B}`, ['2 a', '3 b']],
    ['with a byte order mark', `\uFEFF${HEADER}\n${A}\n${B}\n`, ['2 a', '3 b']],
    ['with a byte order mark before quotes', `\uFEFF${quoted(HEADER)}\n${A}\n`, ['2 a']],
    ['with blank lines everywhere', `\n\r\n${HEADER}\n\n${A}\n   \n\t\r\n${B}\n\n\n`, ['5 a', '8 b']],
    ['with every field in quotes', `${quoted(HEADER)}\n${quoted(A)}\r\n${quoted(B)}`, ['2 a', '3 b']],
    [
      'with some fields in quotes',
      `${HEADER}\n${A.replace('p-1', '"p-1"')}\n${B.replace('7.00', '"7.00"')}\n`,
      ['2 a', '3 b'],
    ],
    ['with spaces around the names in the header', `${HEADER.replaceAll(',', ' , ')}\n${A}\n`, ['2 a']],
    ['with a line break in a quoted field', `${HEADER}\n${A.replace('p-1', '"p\n1"')}\n${B}\n`, ['2 a', '4 b']],
    ['with CRLF in a quoted field', `${HEADER}\r\n${A.replace('p-1', '"p\r\n\r\n1"')}\r\n${B}\r\n`, ['2 a', '5 b']],
    [
      'with a stray quotation mark',
      `${HEADER}\n${A}\n${A.replace('a', 'a"b"c"')}\n${B}\n`,
      ['2 a', '3 csv_malformed', '4 b'],
    ],
    [
      'with text after a quoted field',
      `${HEADER}\n${quoted(A).replace('"a"', '"a"x')}\n${quoted(B)}\n`,
      ['2 csv_malformed', '3 b'],
    ],
    [
      'with a missing quotation mark',
      `${HEADER}\n${A}\n${quoted(A).replace('"a"', '"a')}\n${quoted(B)}\n`,
      ['2 a', '3 csv_malformed', '4 b'],
    ],
    ['with a quotation mark that is never closed', `${HEADER}\n${A}\n${B},"\n${A}\n${B}\n`, ['2 a', '3 csv_malformed']],
    [
      'with a quotation mark that only a stray one lines later would close',
      `${HEADER}\n${A}\n${A.replace('p-1', '"p-1')}\n${A}\n${B.replace('p-1', 'p"-1')}\n${B}\n`,
      ['2 a', '3 csv_malformed'],
    ],
    [
      'with other columns than the header',
      `${HEADER}\n${A},\n${A.slice(0, 20)}\n${B}\n`,
      ['2 column_count', '3 column_count', '4 b'],
    ],
    ['with a header and nothing else', `${HEADER}\n`, []],
    ['with a header without a line end', HEADER, []],
    ['with nothing but a byte order mark', '\uFEFF', ['1 header_missing']],
  ];
  for (const [sentence, text, wanted] of files) {
    test(sentence, async () => expect(told(await read(text, 'csv'))).toEqual(wanted));
  }

  test('columns may be in any order, and optional ones may be missing', async () => {
    const names = [
      'invoiceAmount',
      'currency',
      'accepted_at',
      'policy_id',
      'quote_id',
      'partner_id',
      'kind',
      'spotPrice',
      'partnerCut',
    ];
    const row: Row = quote({ quote_id: 'a' });
    const text = `${names.join(',')}\n${names.map((name) => row[name]).join(',')}\n`;
    const [record] = await read(text, 'csv');
    expect(record?.texts).toMatchObject({
      quote_id: 'a',
      spotPrice: '10.00',
      invoiceAmount: '7.00',
      enrollment_id: '',
    });
  });

  test('a doubled quotation mark is one quotation mark', async () => {
    const [record] = await read(`${HEADER}\n${A.replace('p-1', '"say ""p-1"", ok"')}\n`, 'csv');
    expect(record?.texts).toMatchObject({ partner_id: 'say "p-1", ok', quote_id: 'a', invoiceAmount: '7.00' });
  });
});

describe('NDJSON rows are reported with their physical line', () => {
  const files: readonly [sentence: string, text: string, told: string[]][] = [
    ['with LF', `${J('a')}\n${J('b')}\n`, ['1 a', '2 b']],
    ['with CRLF', `${J('a')}\r\n${J('b')}\r\n`, ['1 a', '2 b']],
    ['without a line end after the last line', `${J('a')}\n${J('b')}`, ['1 a', '2 b']],
    ['with a byte order mark', `\uFEFF${J('a')}\n${J('b')}\n`, ['1 a', '2 b']],
    ['with a byte order mark where none belongs', `${J('a')}\n\uFEFF${J('b')}\n`, ['1 a', '2 json_malformed']],
    ['with blank lines everywhere', `\n\r\n${J('a')}\n  \n\t\n${J('b')}\n\n`, ['3 a', '6 b']],
    ['with nothing in it', '', []],
    ['with broken lines between', `{\n${J('a')}\n}\n${J('b')}`, ['1 json_malformed', '2 a', '3 json_malformed', '4 b']],
  ];
  for (const [sentence, text, wanted] of files) {
    test(sentence, async () => expect(told(await read(text, 'ndjson'))).toEqual(wanted));
  }
});

describe('any file', () => {
  test('a CSV field is read back unchanged, whatever the chunks', async () => {
    const field = fc.string({
      unit: fc.constantFrom('a', '7', ' ', ',', '"', '\n', 'é', '😀', "'", '\\'),
      maxLength: 8,
    });
    const row = fc.tuple(...ROW_FIELDS.map(() => field));
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 5 }), fc.boolean(), async (rows, always) => {
        const write = (text: string) => (always || /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
        const lines = rows.filter((fields) => always || fields.some((text) => text.trim() !== ''));
        const records = await read([HEADER, ...lines.map((fields) => fields.map(write).join(','))].join('\n'), 'csv');
        // An apostrophe in front marks a text, as in our own files.
        const marked = (name: string, text = '') => (name === 'order_reference' ? text.replace(/^'/, '') : text);
        expect(records.map(({ texts }) => ROW_FIELDS.map((name) => texts[name]))).toEqual(
          lines.map((fields) => ROW_FIELDS.map((name, at) => marked(name, fields[at]))),
        );
        expect(records.every(({ problem }) => problem === undefined)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test('every line is reported, and reading never throws', async () => {
    const text = fc.string({
      unit: fc.constantFrom('a', ',', '"', '\n', '\r', '{', '}', '[', ':', '1', '\0', '\uFEFF'),
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(text, fc.constantFrom('csv', 'ndjson'), async (junk, format) => {
        const records = await read(format === 'csv' ? `${HEADER}\n${junk}` : junk, format);
        const lines = records.map(({ line }) => line);
        expect(lines).toEqual([...new Set(lines)].sort((one, other) => one - other));
        if (format === 'ndjson') {
          const full = junk
            .replace(/^\uFEFF/, '')
            .split('\n')
            .flatMap((line, index) => (line.trim() === '' ? [] : [index + 1]));
          expect(lines).toEqual(full);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('a character split between two chunks is read whole', async () => {
    const pad = 'x'.repeat(256 * 1024 - J('').length - 1);
    const records = await read(`${J(`${pad}é😀`)}\n${J('b')}\n`, 'ndjson');
    expect(records.map(({ texts }) => texts.quote_id.slice(-3))).toEqual(['é😀', 'b']);
  });
});

describe('a line that is much too long', () => {
  const long = 'x'.repeat(2_000_000);

  test('is reported once, in either format, and the lines after it are read', async () => {
    expect(told(await read(`${J('a')}\n${J(long)}\n${J('b')}\n`, 'ndjson'))).toEqual(['1 a', '2 line_too_long', '3 b']);
    expect(told(await read(`${HEADER}\n${A}\n${long}\n${B}\n`, 'csv'))).toEqual(['2 a', '3 line_too_long', '4 b']);
  });

  test('is cut to its first million characters', async () => {
    const [, record] = await read(`${J('a')}\n${long}`, 'ndjson');
    expect(record?.raw).toHaveLength(1_000_000);
  });

  test('may be the only line of a file', async () => {
    const records = await read(long, 'csv');
    expect(told(records)).toEqual(['1 line_too_long']);
    expect(records[0]?.fatal).toBe(true);
  });

  test('may be a quoted field over a million lines, which is reported where it begins', async () => {
    const records = await read(`${HEADER}\n${A}\n"${'x\n'.repeat(1_000_000)}"\n${B}\n`, 'csv');
    expect(told(records)).toEqual(['2 a', '3 csv_malformed']);
    expect(records.at(-1)?.fatal).toBe(true);
  });

  test('may consist of quotation marks only', async () => {
    expect(told(await read(`${HEADER}\n${'"'.repeat(999_999)}\n${B}\n`, 'csv'))).toEqual(['2 csv_malformed']);
    expect(told(await read(`${HEADER}\n${'"'.repeat(999_998)}\n${B}\n`, 'csv'))).toEqual(['2 column_count', '3 b']);
  });
});
