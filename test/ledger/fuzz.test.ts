/**
 * Good files that something went wrong with, by the thousand and from a printed seed: every line is refused in its place
 * or read as any other program reads it, nothing throws, and a file is recorded whole or not at all.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { Decimal } from 'decimal.js';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ImportReport } from '../../src/ledger/import.ts';
import { type RowFormat, readRecords, type SourceRecord } from '../../src/ledger/read.ts';
import { ROW_CODES, ROW_FIELDS, rowProblem } from '../../src/ledger/row.ts';
import { seeded } from '../support/random.ts';
import { times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csv, ndjson, type Row, size } from './ledger.ts';

/** One in twenty is imported too. */
const INPUTS = times({ few: 3_000, short: 3_000, long: 30_000 }, 'RECKONER_INPUTS');
const IMPORTS = Math.ceil(INPUTS / 20);
const { seed } = seeded();
let { random } = seeded(seed);
const NOW = '2026-08-01T10:00:00Z';

let world: World;
let folder: string;
// Each test begins the sequence anew, so that one that fails fails alone too.
beforeEach(() => {
  ({ random } = seeded(seed));
});
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-fuzz-'));
  world = await openWorld();
  world.at(NOW);
  await world.partners([partner()]);
});
afterAll(async () => {
  await world.end();
  rmSync(folder, { recursive: true, force: true });
});

// --- What goes wrong with files ---------------------------------------------------------------------------------------

const below = (count: number) => Math.floor(random() * count);
const one = <Value>(values: readonly Value[]): Value => values[below(values.length)] as Value;

/** What is put somewhere into a file, or in the place of a value. */
const SCRAPS = [
  ...['\0', '\r', '\n', '\r\n', '\t', ' ', '"', '""', '"\n"', ',', ';', '\\', '\\N', '\\.', "'", '\uFEFF', '\u2028'],
  ...['1e400', '1e2', '-0', '-0.00', '+1', '0x10', 'NaN', '.5', '5.', '10.001', '0010.000', '999999999999999.99', '1e'],
  ...['10', '3', '7.00', '-7', '1000000000000000', '١٠', '１０', '−1', '1,0', '$1', '=1+1', '=cmd|A1', '@x', '<b>'],
  ...['é', '😀', '\uFFFD', '\u202E', 'null', 'true', '{}', '[]', '{', '}', '[', ']', ':', '""""', '\\u0000', '\\ud800'],
  ...['2026-07-15', '2026-02-30T12:00:00Z', '2026-07-15T24:00:00Z', '2026-07-15T12:00:00', '2026-07-15T12:00:00+15:59'],
  ...['kind', 'quote_id', 'spotPrice', '__proto__', 'constructor', 'reversal', 'requote_accepted', 'USD', 'JPY', 'XXX'],
  ...[
    'x'.repeat(129),
    '9'.repeat(400),
    '['.repeat(2_000),
    '{"a":'.repeat(500),
    '"kind":"reversal",',
    '\xff',
    '\x80\xc3',
  ],
];
const scrap = (): Buffer => {
  const text = one(SCRAPS);
  // The last two are bytes that are no characters.
  return Buffer.from(text, /[\x80-\xff]$/.test(text) && text.length < 3 && text !== 'é' ? 'latin1' : 'utf8');
};

const spliced = (bytes: Buffer, from: number, to: number, ...between: Buffer[]) =>
  Buffer.concat([bytes.subarray(0, from), ...between, bytes.subarray(to)]);
const onLines = (change: (lines: string[]) => string[]) => (bytes: Buffer) =>
  Buffer.from(change(bytes.toString('latin1').split('\n')).join('\n'), 'latin1');

/** Values between commas and quotation marks, in either format. */
function valueIn(bytes: Buffer): { from: number; to: number } {
  const values = [...bytes.toString('latin1').matchAll(/[^,":{}\n]+/g)];
  if (values.length === 0) return { from: 0, to: 0 };
  const value = one(values);
  return { from: value.index, to: value.index + value[0].length };
}

const MUTATIONS: readonly ((bytes: Buffer) => Buffer)[] = [
  // One bit.
  (bytes) => {
    const copy = Buffer.from(bytes);
    if (copy.length > 0) copy[below(copy.length)] = (copy[below(copy.length)] ?? 0) ^ (1 << below(8));
    return copy;
  },
  // Something too much, anywhere.
  (bytes) => {
    const at = below(bytes.length + 1);
    return spliced(bytes, at, at, scrap());
  },
  // Another value, twice as often as anything else.
  ...[0, 1].map(() => (bytes: Buffer) => {
    const { from, to } = valueIn(bytes);
    return spliced(bytes, from, to, scrap());
  }),
  // Two values in each other's place.
  (bytes) => {
    const [one, other] = [valueIn(bytes), valueIn(bytes)].sort((a, b) => a.from - b.from) as [Place, Place];
    if (one.to > other.from) return bytes;
    const [first, second] = [one, other].map(({ from, to }) => bytes.subarray(from, to)) as [Buffer, Buffer];
    return spliced(spliced(bytes, other.from, other.to, first), one.from, one.to, second);
  },
  // Some bytes lost, or there twice.
  (bytes) => {
    const at = below(bytes.length + 1);
    return spliced(bytes, at, Math.min(at + 1 + below(20), bytes.length));
  },
  (bytes) => {
    const at = below(bytes.length + 1);
    return spliced(bytes, at, at, bytes.subarray(at, at + below(300)));
  },
  // Cut off.
  (bytes) => bytes.subarray(0, below(bytes.length + 1)),
  // Lines lost, doubled, in another order.
  onLines((lines) => lines.toSpliced(below(lines.length), 1)),
  onLines((lines) => lines.toSpliced(below(lines.length), 0, one(lines))),
  onLines((lines) => lines.toSpliced(below(lines.length), 0, ...lines.splice(below(lines.length), 1))),
  // Other line ends, and quotes around every value.
  (bytes) => Buffer.from(bytes.toString('latin1').replaceAll('\n', one(['\r\n', '\r', '\n\n', '\n\r'])), 'latin1'),
  (bytes) => Buffer.from(bytes.toString('latin1').replaceAll(/[^,\n]+/g, '"$&"'), 'latin1'),
  // Another encoding.
  (bytes) => Buffer.from(bytes.toString('utf8'), one(['utf16le', 'latin1'] as const)),
  (bytes) => Buffer.concat([Buffer.from('\uFEFF'), bytes]),
];
type Place = ReturnType<typeof valueIn>;

const ORDERS = [
  {},
  { order_reference: '#1001 B' },
  { order_reference: 'Größe 7', cover_from: '2026-07-15' },
  { cover_from: '2026-07-15', cover_to: '2027-07-14' },
];

/** A good file of ten rows, most of them in one of the ways in which good rows may be written. */
function goodFile(format: RowFormat): Buffer {
  const quotes = Array.from({ length: 6 }, () => quote({ spotPrice: one(['10.00', '10', 10]), ...one(ORDERS) }));
  const sold = quotes[0] as Row;
  const rows = [
    ...quotes,
    requote(sold),
    requote(sold, { accepted_at: '2026-07-15T12:00:01Z' }),
    reversal(quotes[1] as Row),
    reversal(quotes[2] as Row),
  ];
  return Buffer.from(format === 'csv' ? csv(...rows) : ndjson(...rows));
}

function spoiltFile(format: RowFormat): Buffer {
  let bytes = goodFile(format);
  for (let times = 1 + below(3); times > 0; times -= 1) bytes = one(MUTATIONS)(bytes);
  return bytes;
}

/** Runs the check, and says with which file it failed. */
async function tried(bytes: Buffer, round: number, check: () => Promise<void> | void): Promise<void> {
  try {
    await check();
  } catch (error) {
    const file = JSON.stringify(bytes.toString('latin1')).slice(0, 4_000);
    throw new Error(`seed ${seed}, input ${round}: ${file}`, { cause: error });
  }
}

// --- How other programs read them -------------------------------------------------------------------------------------

/** The lines of a file as any editor numbers them. */
const linesOf = (bytes: Buffer) =>
  bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split('\n')
    .map((line) => line.replace(/\r$/, ''));

/** The one CSV record in a text. */
const cells = (text: string): string[] => {
  const records = parse(text, { record_delimiter: '\u001e\u001e', relax_column_count: true, skip_empty_lines: false });
  expect(records).toHaveLength(1);
  return records[0] as unknown as string[];
};

function expectReadRight(bytes: Buffer, format: RowFormat, records: readonly SourceRecord[]): void {
  const lines = linesOf(bytes);
  const header = lines.findIndex((line) => line.trim() !== '');
  if (format === 'csv' && header === -1) {
    expect(records).toMatchObject([{ line: 1, raw: '', fatal: true, problem: { code: 'header_missing' } }]);
    return;
  }
  let names: string[] | undefined;
  const taken = new Set(format === 'csv' && records[0]?.line !== header + 1 ? [header + 1] : []);
  for (const { line, raw, texts, problem } of records) {
    const span = lines.slice(line - 1, line - 1 + raw.split('\n').length);
    for (const [index] of span.entries()) {
      expect(taken.has(line + index)).toBe(false);
      taken.add(line + index);
    }
    expect(raw).toBe(span.join('\n').slice(0, 1_000_000));
    if (problem !== undefined) continue;
    if (format === 'csv') {
      names ??= cells(lines[header] as string).map((name) => name.trim());
      const values = cells(raw);
      // An apostrophe in front of an order's reference marks a text.
      const text = (name: string, value = '') => (name === 'order_reference' ? value.replace(/^'/, '') : value);
      const read = Object.fromEntries(names.map((name, index) => [name, text(name, values[index])]));
      expect(texts).toEqual({ ...Object.fromEntries(ROW_FIELDS.map((field) => [field, ''])), ...read });
    } else {
      const read = JSON.parse(raw) as Record<string, unknown>;
      expect(Object.keys(read).filter((key) => !(ROW_FIELDS as readonly string[]).includes(key))).toEqual([]);
      for (const field of ROW_FIELDS) {
        const value = Object.hasOwn(read, field) ? read[field] : null;
        if (typeof value === 'number') expect(Number(texts[field])).toBe(value);
        else expect(texts[field]).toBe(value ?? '');
      }
    }
  }
  // No line is passed over in silence.
  if (records.some(({ fatal }) => fatal)) return;
  expect(lines.flatMap((line, index) => (line.trim() === '' || taken.has(index + 1) ? [] : [index + 1]))).toEqual([]);
}

// --- The tests --------------------------------------------------------------------------------------------------------

test(
  `of ${INPUTS} spoilt files (seed ${seed}) each line is refused in its place or read as others read it`,
  async () => {
    const name = join(folder, 'spoilt');
    const codes = new Set<string>();
    let good = 0;
    for (let round = 0; round < INPUTS; round += 1) {
      const format = one(['csv', 'ndjson'] as const);
      const bytes = spoiltFile(format);
      writeFileSync(name, bytes);
      await tried(bytes, round, async () => {
        const records: SourceRecord[] = [];
        for await (const batch of readRecords({ name, format }, () => {})) records.push(...batch);
        expectReadRight(bytes, format, records);
        for (const record of records) {
          const problem = record.problem ?? rowProblem(record.texts, Date.parse(NOW));
          if (problem === undefined) good += 1;
          else codes.add(problem.code);
        }
      });
    }
    // It was worth something: files were spoilt in every way that a file can be by itself, and not all of them wholly.
    expect(good).toBeGreaterThan(INPUTS);
    if (INPUTS >= 1_000) expect(codes.size).toBeGreaterThan(15);
    tally('inputs tried', 'at random, read', INPUTS);
  },
  180_000 + INPUTS * 10,
);

test(
  `of ${IMPORTS} spoilt files (seed ${seed}) each is recorded whole, or nothing of it is`,
  async () => {
    let recorded = 0;
    let refused = 0;
    for (let round = 0; round < IMPORTS; round += 1) {
      const format = one(['csv', 'ndjson'] as const);
      const bytes = random() < 0.1 ? goodFile(format) : spoiltFile(format);
      const name = join(folder, `import.${format}`);
      const rejects = join(folder, 'rejects.ndjson');
      const skipInvalid = random() < 0.5;
      writeFileSync(name, bytes);
      await tried(bytes, round, async () => {
        const before = await size(world);
        const [books] = await world.sql<{ spot: string }>(
          `SELECT coalesce(sum(spot_price), 0) AS spot FROM ledger_rows`,
        );
        const report = await world.importFiles([name], { skipInvalid, rejects });
        const { accepted, duplicates, rejected, errors } = report;
        expect(await size(world)).toBe(before + accepted);
        expect(report.refused ? accepted : 0).toBe(0);
        expect(errors).toHaveLength(rejected);
        if (rejected > 0 && !skipInvalid) expect(report.refused).toBe(true);
        const lines = linesOf(bytes).length;
        for (const { file, line, code, reason } of errors) {
          expect({ file, known: (ROW_CODES as readonly string[]).includes(code) }).toEqual({ file: name, known: true });
          expect(line >= 1 && line <= Math.max(lines, 1)).toBe(true);
          expect(reason).toMatch(/^[^\0\n]+$/);
        }
        // What is rejected is written down once each, as it stood.
        const written = readFileSync(rejects, 'utf8').split('\n').filter(Boolean);
        expect(written.map((each) => (JSON.parse(each) as { line: number }).line)).toEqual(
          errors.map(({ line }) => line),
        );
        if (accepted === 0) {
          refused += 1;
          return;
        }
        recorded += 1;
        // The sum of the books moved by what the good lines say, and by nothing else.
        const rows = await goodRows(name, format, errors);
        expect(rows.length).toBe(accepted + duplicates);
        const spot = [...new Map(rows.map((row) => [row.own, row.spot])).values()].reduce(
          (sum, each) => sum.plus(each),
          new Decimal(0),
        );
        const [after] = await world.sql<{ spot: string }>(`SELECT sum(spot_price) AS spot FROM ledger_rows`);
        expect(new Decimal(after?.spot ?? 0).minus(books?.spot ?? 0).toFixed()).toBe(spot.toFixed());
        // The same file again is nothing new. (A reversal that came too early is no longer too early then.)
        if (rejected > 0) return;
        const again = await world.importFiles([name], { skipInvalid });
        expect(again).toMatchObject({ accepted: 0, duplicates: rows.length });
      });
    }
    expect(Math.min(recorded, refused)).toBeGreaterThan(IMPORTS / 20);
    tally('inputs tried', 'at random, imported', IMPORTS);
  },
  180_000 + IMPORTS * 300,
);

/** Why a row is rejected that is good by itself: the same row again is then no news either, but it is not in the books. */
const REJECTED_ONCE = new Set(['quote_unknown', 'quote_mismatch', 'requote_unknown', 'quote_exceeded']);

/** The rows of the lines that are not bad, with what they add to the books. */
async function goodRows(name: string, format: RowFormat, errors: ImportReport['errors']) {
  const bad = new Map(errors.map(({ line, code }) => [line, code]));
  const rejected = new Set<string>();
  const rows: { own: string; spot: Decimal }[] = [];
  for await (const batch of readRecords({ name, format }, () => {})) {
    for (const { line, texts } of batch) {
      const { kind, partner_id, quote_id, requote_id, reversal_id, spotPrice } = texts;
      const own = [kind, partner_id, reversal_id || requote_id || quote_id].join(' ');
      if (REJECTED_ONCE.has(bad.get(line) ?? '')) rejected.add(own);
      if (!bad.has(line)) rows.push({ own, spot: new Decimal(rejected.has(own) ? 0 : spotPrice) });
    }
  }
  return rows;
}
