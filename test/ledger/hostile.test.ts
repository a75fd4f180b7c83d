/** Files that nobody means well with: each is refused with its reason, stores nothing and leaves the ledger usable. */
import { execFileSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { csvLine, HEADER, ledger, ndjson, size, told } from './ledger.ts';

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
      ndjson({ "x'); DROP TABLE entries; --": 1 }),
      ["1 x'); DROP TABLE entries; -- field_unknown"],
    ],
    [
      'SQL in an amount',
      'sql2.ndjson',
      ndjson(quote({ spotPrice: "0'); DROP TABLE entries; --" })),
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

  test('text in UTF-16 is refused, not guessed at', async () => {
    const file = join(world.home, 'utf16.csv');
    execFileSync('sh', ['-c', `printf '\\377\\376k\\000i\\000n\\000d\\000,\\000' > "$1"`, 'sh', file]);
    expect(await world.importFiles([file])).toMatchObject({ accepted: 0, refused: true });
  });
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
