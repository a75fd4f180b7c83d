/** Files that nobody means well with: each is refused with its reason, stores nothing and leaves the ledger usable. */
import { execFileSync } from 'node:child_process';
import { createWriteStream, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { query } from '../../src/database/transaction.ts';
import { importRows } from '../../src/ledger/import.ts';
import { reckoner } from '../support/program.ts';
import { tally } from '../support/tally.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { csv, csvLine, HEADER, ledger, ndjson, size, told } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
});
afterAll(() => world.end());

const importText = (name: string, text: string) => world.importFiles([world.file(name, text)]);
const GOOD = csvLine(quote({ quote_id: 'never' }));

describe('a file that cannot be read refuses the import and leaves the connection usable', () => {
  const files: readonly [what: string, name: () => string][] = [
    ['a missing file', () => join(world.home, 'missing.csv')],
    ['a missing NDJSON file', () => join(world.home, 'missing.ndjson')],
    ['a folder', () => world.home],
    ['a file below a file', () => join(world.file('flat.csv', ''), 'rows.csv')],
  ];
  for (const [what, name] of files) {
    test(`${what}, alone and behind a good file`, async () => {
      const good = world.file('good.ndjson', ndjson(...Array.from({ length: 5_000 }, () => quote())));
      for (const names of [[name()], [good, name()]]) {
        await expect(world.importFiles(names)).rejects.toMatchObject({
          code: 'file_unreadable',
          facts: { file: name() },
        });
      }
      expect(await size(world)).toBe(0);
      expect(await world.rows([quote()], { preview: true })).toMatchObject({ accepted: 1 });
    });
  }
});

test('a server that goes away while it is written to fails the import, and the next one works', async () => {
  const pipe = join(world.home, 'pipe.ndjson');
  execFileSync('mkfifo', [pipe]);
  const importing = world.importFiles([pipe]).then(
    () => 'recorded',
    () => 'failed',
  );
  const copying = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity 
    WHERE datname = current_database() AND query LIKE 'COPY staged%'`;
  while ((await world.sql(copying)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const writer = createWriteStream(pipe).on('error', () => {}); // The reader may leave first.
  writer.end(ndjson(...Array.from({ length: 20_000 }, () => quote())));
  expect(await importing).toBe('failed');
  expect(await size(world)).toBe(0);
  expect(await world.rows([quote()], { preview: true })).toMatchObject({ accepted: 1 });
});

describe('bytes that mean something to somebody else', () => {
  const texts: readonly [what: string, file: string, text: string, told: string[]][] = [
    [
      'a NUL in an id',
      'nul.csv',
      `${HEADER}\n${GOOD.replace('p-1', 'p\0-1')}\n`,
      ['2 partner_id identifier_malformed'],
    ],
    ['a NUL as a line', 'nul.ndjson', `\0\n${ndjson(quote())}`, ['1  json_malformed']],
    ['an escaped NUL', 'nul2.ndjson', ndjson(quote({ quote_id: 'q\0' })), ['1 quote_id identifier_malformed']],
    ["the end of COPY's data", 'end.csv', `${HEADER}\n\\.\n${GOOD}\n`, ['2  column_count']],
    ["COPY's NULL", 'null.csv', `${HEADER}\n${GOOD.replace('p-1', '\\N')}\n`, ['2 partner_id identifier_malformed']],
    [
      'tabs and backslashes',
      'tabs.csv',
      `${HEADER}\n${GOOD.replace('p-1', 'p\\t\t\\1\\x41')}\n`,
      ['2 partner_id identifier_malformed'],
    ],
    ['a lone CR', 'cr.csv', `${HEADER}\n${GOOD}\r${GOOD}\n`, ['2  column_count']],
    ['half a character in a field name', 'half.ndjson', '{"\\ud800":1}\n', ['1 \ufffd field_unknown']],
    [
      'SQL in a field name',
      'sql.ndjson',
      ndjson({ "x'); DROP TABLE ledger_rows; --": 1 }),
      ["1 x'); DROP TABLE ledger_rows; -- field_unknown"],
    ],
    [
      'SQL in an amount',
      'sql2.ndjson',
      ndjson(quote({ spotPrice: "0'); DROP TABLE ledger_rows; --" })),
      ['1 spotPrice amount_malformed'],
    ],
    ['the constructor', 'constructor.ndjson', '{"constructor":{"prototype":{}}}\n', ['1 constructor field_unknown']],
    ['ten thousand nested lists', 'nest.ndjson', `${'['.repeat(10_000)}${']'.repeat(10_000)}\n`, ['1  json_malformed']],
    [
      'a number of a hundred thousand digits',
      'digits.ndjson',
      ndjson(quote({ spotPrice: '@' })).replace('"@"', '9'.repeat(100_000)),
      ['1 spotPrice amount_too_large'],
    ],
  ];
  for (const [what, file, text, wanted] of texts) {
    test(`${what} is refused in its place`, async () => {
      const report = await importText(file, text);
      expect(report).toMatchObject({ accepted: 0, refused: true });
      expect(told(report)).toEqual(wanted);
      expect(report.errors.every(({ reason }) => !reason.includes('\0'))).toBe(true);
      expect(await size(world)).toBe(0);
    });
  }

  test('invalid UTF-8 is refused in its place', async () => {
    const file = world.file('latin.ndjson', '');
    execFileSync('sh', ['-c', `printf '{"kind":"quote_accepted","quote_id":"caf\\351"}\\n' > "$1"`, 'sh', file]);
    const report = await world.importFiles([file]);
    expect(told(report)).toEqual(['1 partner_id field_missing']);
  });

  test('a byte that is no character in an id is refused as an id', async () => {
    const text = ndjson(quote({ quote_id: 'caf@' }));
    const file = world.file('latin2.ndjson', '');
    execFileSync('sh', ['-c', `printf '%s' "$2" | sed 's/caf@/caf\\xe9/' > "$1"`, 'sh', file, text]);
    expect(told(await world.importFiles([file]))).toEqual(['1 quote_id identifier_malformed']);
  });
});

/** Each is refused in its place, or read right: never an exception, never half a file. */
describe('files as other programs write them', () => {
  const row = (overrides: object = {}) => quote({ quote_id: 'foreign', ...overrides });
  const utf16be = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le').swap16();
  const utf16le = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le');
  const twoLines = { csv: csv(row()), ndjson: ndjson(row()) };
  const deep = (open: string, close: string) => open.repeat(100_000) + close.repeat(100_000);
  const field = (name: string, json: string) => ndjson(row({ [name]: '@' })).replace('"@"', json);
  const cell = (name: string, text: string) => csv(row({ [name]: text }));
  const TEN_MEGABYTES = 10_000_000;

  const refused: [what: string, format: 'csv' | 'ndjson', bytes: string | Buffer, told: string[]][] = [
    ['UTF-16, little end first', 'csv', utf16le(twoLines.csv), ['1  not_utf8']],
    ['UTF-16, big end first', 'csv', utf16be(twoLines.csv), ['1  not_utf8']],
    // Its second half line is the other byte of the line end.
    ['UTF-16, little end first', 'ndjson', utf16le(twoLines.ndjson), ['1  not_utf8', '2  json_malformed']],
    ['UTF-16, big end first', 'ndjson', utf16be(twoLines.ndjson), ['1  not_utf8']],
    ['UTF-16 without a mark', 'csv', Buffer.from(HEADER, 'utf16le'), ['1 k\0i\0n\0d\0 field_unknown']],
    ['UTF-16 without a mark', 'ndjson', Buffer.from('{}', 'utf16le'), ['1  json_malformed']],
    ['Latin-1 in an id', 'csv', Buffer.from(cell('policy_id', 'café'), 'latin1'), ['2 policy_id identifier_malformed']],
    ['Latin-1 in a header', 'csv', Buffer.from(`réf,${HEADER}\n`, 'latin1'), ['1  not_utf8']],
    [
      'Latin-1 in an id',
      'ndjson',
      Buffer.from(field('policy_id', '"é"'), 'latin1'),
      ['1 policy_id identifier_malformed'],
    ],
    ['two byte order marks', 'ndjson', `\uFEFF\uFEFF${twoLines.ndjson}`, ['1  json_malformed']],
    ['lines that end in CR', 'csv', twoLines.csv.replaceAll('\n', '\r'), ['1 cover_to\rquote_accepted field_unknown']],
    ['lines that end in CR', 'ndjson', ndjson(row(), row()).replaceAll('\n', '\r'), ['1  json_malformed']],
    ['CR before CRLF', 'csv', csv(row()).replaceAll('\n', '\r\r\n'), ['2 cover_to date_malformed']],
    ['a NUL behind an amount', 'csv', cell('spotPrice', '10.00\0'), ['2 spotPrice amount_malformed']],
    ['a header twice', 'csv', `${HEADER}\n${twoLines.csv}`, ['2 kind kind_unknown']],
    ['a column twice', 'csv', csv(row()).replaceAll(/^kind,|^quote_accepted,/gm, '$&$&'), ['1 kind field_repeated']],
    ['a column twice but for its case', 'csv', `Kind,${csv(row())}`, ['1 Kind field_unknown']],
    [
      'a name twice, with one value',
      'ndjson',
      field('currency', '"USD","currency":"USD"'),
      ['1 currency field_repeated'],
    ],
    ['a name twice, with two', 'ndjson', field('spotPrice', '10.00,"spotPrice":99.00'), ['1 spotPrice field_repeated']],
    ['a name twice, as a number', 'ndjson', field('partnerCut', '3,"partnerCut":3'), ['1 partnerCut field_repeated']],
    [
      'a name twice, once in escapes',
      'ndjson',
      field('spotPrice', String.raw`"10.00","spotPric\u0065":"99.00"`),
      ['1 spotPrice field_repeated'],
    ],
    ['a hundred thousand nested lists', 'ndjson', deep('[', ']'), ['1  json_malformed']],
    ['lists that do not end', 'ndjson', '['.repeat(100_000), ['1  json_malformed']],
    [
      'a hundred thousand nested lists in a field',
      'ndjson',
      field('quote_id', deep('[', ']')),
      ['1 quote_id field_malformed'],
    ],
    [
      'a hundred thousand nested objects in a field',
      'ndjson',
      field('quote_id', deep('{"a":', '}').replace(':}', ':1}')),
      ['1 quote_id field_malformed'],
    ],
    ['a line of ten megabytes', 'csv', `${HEADER}\n${'x'.repeat(TEN_MEGABYTES)}\n`, ['2  line_too_long']],
    ['a line of ten megabytes', 'ndjson', field('quote_id', `"${'x'.repeat(TEN_MEGABYTES)}"`), ['1  line_too_long']],
    ['ten megabytes of quotation marks', 'csv', `${HEADER}\n${'"'.repeat(TEN_MEGABYTES)}`, ['2  line_too_long']],
    ['ten megabytes of NUL', 'ndjson', Buffer.alloc(TEN_MEGABYTES), ['1  line_too_long']],
    ['a quoted line break in an id', 'csv', cell('partner_id', '"p-1\n"'), ['2 partner_id identifier_malformed']],
  ];
  for (const value of ['1e400', '1E2', '1e-400', '-1e2', '10.000', '1e0']) {
    const code = value === '10.000' ? undefined : 'amount_malformed';
    if (code) refused.push([`the number ${value}`, 'ndjson', field('spotPrice', value), [`1 spotPrice ${code}`]]);
    if (code) refused.push([`the number ${value}`, 'csv', cell('spotPrice', value), [`2 spotPrice ${code}`]]);
  }
  const noAmounts = [
    '١٠.٠٠',
    '１０.００',
    '𝟏𝟎',
    '10٫00',
    '10,00',
    '"10,00"',
    '−10.00',
    '+10.00',
    '10.',
    '.5',
    '0x10',
    '1_000',
    'NaN',
  ];
  for (const value of [
    ...noAmounts,
    'Infinity',
    '=10',
    '=1+9',
    '@SUM(A1)',
    '$10.00',
    ' 10.00',
    '10.00 ',
    "'10.00",
    '\t10',
  ]) {
    const line = cell('spotPrice', value);
    // A comma that is not quoted makes a column.
    refused.push([
      `the amount ${value}`,
      'csv',
      line,
      [value === '10,00' ? '2  column_count' : '2 spotPrice amount_malformed'],
    ]);
    refused.push([
      `the amount ${value}`,
      'ndjson',
      ndjson(row({ spotPrice: value })),
      ['1 spotPrice amount_malformed'],
    ]);
  }
  for (const value of ['=cmd|A1', '+q', '-q', '@q', 'q\u202Eb', 'ｑ', 'q\u0301', '٣', '\uFEFFq', 'q q', '"', '']) {
    const code = value === '' ? 'field_missing' : 'identifier_malformed';
    refused.push([`the id "${value}"`, 'ndjson', ndjson(row({ quote_id: value })), [`1 quote_id ${code}`]]);
    const quotedCell = value === '"' ? '""""' : value;
    refused.push([`the id "${value}"`, 'csv', cell('quote_id', quotedCell), [`2 quote_id ${code}`]]);
  }
  for (const value of ['٢٠٢٦-07-15T12:00:00Z', '2026-07-15T12:00:0０Z', '2026-07-15t12:00:00z', '20260715T120000Z']) {
    refused.push([`the time ${value}`, 'csv', cell('accepted_at', value), ['2 accepted_at time_malformed']]);
  }

  test.each(refused)('%s (%s) is refused in its place', async (_, format, bytes, wanted) => {
    const file = join(world.home, `foreign.${format}`);
    writeFileSync(file, bytes);
    // Behind a good file, of which nothing may be recorded either.
    const report = await world.importFiles([world.file('good.ndjson', ndjson(quote())), file]);
    expect(report).toMatchObject({ accepted: 0, refused: true });
    expect(told(report)).toEqual(wanted.map((each) => each.replaceAll('\0', '')));
    expect(report.errors.every((error) => error.file === file && /\S/.test(error.reason))).toBe(true);
    expect(JSON.stringify(report.errors).length).toBeLessThan(5_000);
    expect(await size(world)).toBe(0);
    tally('inputs tried', 'written by hand', 1);
  });

  const read: readonly [what: string, format: 'csv' | 'ndjson', bytes: string | Buffer][] = [
    ['a byte order mark', 'csv', `\uFEFF${twoLines.csv}`],
    ['a byte order mark', 'ndjson', `\uFEFF${twoLines.ndjson}`],
    ['two byte order marks', 'csv', `\uFEFF\uFEFF${twoLines.csv}`],
    ['CRLF', 'csv', twoLines.csv.replaceAll('\n', '\r\n')],
    ['CRLF', 'ndjson', twoLines.ndjson.replaceAll('\n', '\r\n')],
    ['every cell in quotes', 'csv', twoLines.csv.replaceAll(/[^,\n]+/g, '"$&"')],
    ['no end of its last line', 'csv', twoLines.csv.trimEnd()],
    ['no end of its last line', 'ndjson', twoLines.ndjson.trimEnd()],
    ['an amount with zeros behind it', 'csv', cell('spotPrice', '10.000000')],
    ['an amount with zeros before it', 'csv', cell('spotPrice', '0010')],
    ['an amount as a number', 'ndjson', field('spotPrice', '10.000')],
    ['a name in escapes', 'ndjson', twoLines.ndjson.replace('spotPrice', String.raw`\u0073potPrice`)],
    ['a value in escapes', 'ndjson', twoLines.ndjson.replace('foreign', String.raw`\u0066oreign`)],
    ['spaces between', 'ndjson', twoLines.ndjson.replaceAll(',', ' ,\t').replaceAll('":', '" : ')],
  ];
  test.each(read)('%s (%s) is read right', async (_, format, bytes) => {
    const file = join(world.home, `foreign.${format}`);
    writeFileSync(file, bytes);
    const undone = world.database.preview(async (tx) => {
      const report = await importRows(tx, [{ name: file, format }], {
        skipInvalid: false,
        now: world.environment.now(),
        actor: world.actor,
        ceilings: world.settings.reversals,
        environment: world.environment,
      });
      const entries = await query(tx, `SELECT quote_id, spot_price, partner_cut, invoice_amount FROM ledger_rows`);
      return { accepted: report.accepted, errors: report.errors, entries };
    });
    const entry = { quote_id: 'foreign', spot_price: '10', partner_cut: '3', invoice_amount: '7' };
    expect(await undone).toEqual({ accepted: 1, errors: [], entries: [entry] });
    tally('inputs tried', 'written by hand', 1);
  });

  test('a zero below zero is zero', async () => {
    const none = { spotPrice: '-0', partnerCut: '-0.00', invoiceAmount: 0 };
    const text = ndjson(row(none), row({ ...none, quote_id: 'foreign-2', spotPrice: 0 })).replace('"-0.00"', '-0.00');
    const undone = world.database.preview(async (tx) => {
      const name = world.file('zero.ndjson', text);
      const given = {
        skipInvalid: false,
        now: world.environment.now(),
        actor: world.actor,
        ceilings: world.settings.reversals,
        environment: world.environment,
      };
      expect(await importRows(tx, [{ name, format: 'ndjson' }], given)).toMatchObject({ accepted: 2, errors: [] });
      return query(tx, `SELECT DISTINCT spot_price + 0 AS spot, partner_cut AS cut FROM ledger_rows`);
    });
    expect((await undone).map((each) => JSON.stringify(each).includes('-'))).toEqual([false]);
  });
});

test('the program itself names every file and line, exits 2 and shows no stack', async () => {
  const files = {
    'utf16.csv': Buffer.from(`\uFEFF${csv(quote())}`, 'utf16le'),
    'deep.ndjson': '['.repeat(100_000),
    'long.csv': `${HEADER}\n${'x'.repeat(10_000_000)}\n`,
    'nul.ndjson': Buffer.alloc(1000),
    'twice.ndjson': ndjson(quote()).replace('"spotPrice"', '"spotPrice":"20.00","spotPrice"'),
  };
  const names = Object.entries(files).map(([name, bytes]) => {
    writeFileSync(join(world.home, name), bytes);
    return join(world.home, name);
  });
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-01T10:00:00Z' };
  const ran = await reckoner(['--json', 'ledger', 'import', world.file('good.csv', csv(quote())), ...names], { env });
  expect({ status: ran.status, stack: /\n\s+at /.test(ran.stderr) }).toEqual({ status: 2, stack: false });
  const report = ran.json() as { accepted: number; errors: { file: string; line: number; code: string }[] };
  expect(report.accepted).toBe(0);
  expect(report.errors.map(({ file, line, code }) => `${basename(file)} ${line} ${code}`)).toEqual([
    'utf16.csv 1 not_utf8',
    'deep.ndjson 1 json_malformed',
    'long.csv 2 line_too_long',
    'nul.ndjson 1 json_malformed',
    'twice.ndjson 1 field_repeated',
  ]);
  const people = await reckoner(['ledger', 'import', ...names], { env });
  expect({ status: people.status, stack: /\n\s+at /.test(people.stderr) }).toEqual({ status: 2, stack: false });
  expect(await size(world)).toBe(0);
});

test('a field named __proto__ gives its row nothing', async () => {
  const row = quote();
  const inherited = `{"__proto__":${JSON.stringify(row)}}`;
  expect(told(await importText('proto.ndjson', `${inherited}\n`))).toEqual(['1 __proto__ field_unknown']);
  expect(await ledger(world, row['quote_id'])).toEqual([]);
});

test('after all that the ledger is there and takes a row', async () => {
  expect(await size(world)).toBe(0);
  expect(await world.rows([quote()])).toMatchObject({ accepted: 1 });
});
