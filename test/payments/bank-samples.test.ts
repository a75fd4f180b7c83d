/**
 * Samples of bank files in the shapes of many banks, each with lines and sums that samples/make.py computed before it
 * wrote the file. Damaged copies are refused, or read exactly as far as they are whole.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type BankCsvMap, knownBankMaps, triedBankMap } from '../../src/config/bank-csv.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { Amount } from '../../src/money.ts';
import { BANK_FORMATS, readBankFile } from '../../src/payments/bank/read.ts';
import type { BankStatement } from '../../src/payments/bank/statement.ts';

const sample = (name: string): Buffer => readFileSync(fileURLToPath(new URL(`samples/${name}`, import.meta.url)));

interface Expected {
  readonly file: string;
  readonly format: string;
  readonly statements: string[];
  map: string;
}

const EXPECTED = new Map<string, Expected>();
for (const row of sample('expected.tsv').toString().trim().split('\n').slice(1)) {
  const [file = '', format = '', account, currency, lines, credits, debits, only, map = ''] = row.split('\t');
  const known = EXPECTED.get(file) ?? { file, format, statements: [], map };
  known.statements.push([account, currency, lines, credits, debits, only].join(' '));
  EXPECTED.set(file, known);
}

/** The map of a sample: the name of a known map and what the account adds, or a map of its own. */
function mapsOf({ map }: Pick<Expected, 'map'>): Record<string, BankCsvMap> {
  if (map === '') return {};
  const [name = '', text = ''] = map.split(': ');
  const tried = triedBankMap(text, knownBankMaps()[name]);
  if (!tried.success) throw tried.error;
  return { own: tried.data };
}

const read = (name: string, bytes: Buffer, expected: Expected) => {
  const maps = mapsOf(expected);
  return readBankFile({ name, bytes, map: expected.map === '' ? undefined : 'own' }, maps);
};

function sums({ account, currency, lines, only }: BankStatement) {
  const sum = (direction: string) =>
    Amount.sum(
      currency,
      lines.filter((each) => each.direction === direction),
      ({ amount }) => amount,
    );
  return [account, currency, lines.length, sum('credit'), sum('debit'), only ?? ''].join(' ');
}

test('at least 120 samples of at least 40 banks are in all formats', () => {
  const banks = new Set([...EXPECTED.keys()].map((file) => file.split('.')[0]));
  expect(EXPECTED.size).toBeGreaterThanOrEqual(120);
  expect(banks.size).toBeGreaterThanOrEqual(40);
  expect(new Set([...EXPECTED.values()].map(({ format }) => format))).toEqual(
    new Set(BANK_FORMATS.map(({ name }) => name)),
  );
});

test.each([...EXPECTED.keys()])('%s has the lines and sums that were written', (name) => {
  const expected = EXPECTED.get(name) as Expected;
  const { format, statements } = read(name, sample(name), expected);
  expect(format).toBe(expected.format);
  expect(statements.map(sums)).toEqual(expected.statements);
});

test.each([...EXPECTED.keys()])('%s keeps who paid, for what and with which ids', (name) => {
  const expected = EXPECTED.get(name) as Expected;
  const lines = read(name, sample(name), expected).statements.flatMap((statement) => statement.lines);
  const texts = lines.map(({ text, references }) => [text, ...references.map((each) => each.text)].join(' '));
  if (name !== 'seb.940') expect(texts.filter((text) => !/INV-2026-\d{6}/.test(text))).toEqual([]);
});

/** What became of a damaged file: refused, exact as far as it is whole, or the wrong sums. */
function outcomeOf(name: string, bytes: Buffer) {
  const expected = EXPECTED.get(name) as Expected;
  try {
    const found = read(name, bytes, expected)
      .statements.filter(({ lines }) => lines.length > 0)
      .map(sums);
    const isExact = found.length > 0 && found.every((each, index) => each === expected.statements[index]);
    return isExact ? 'exact' : `wrong: ${found.join('; ')}`;
  } catch (error) {
    if (error instanceof Refusal && error.exit === 2) return 'refused';
    throw error;
  }
}

/** Undefined if the file is refused. */
function refusedOr<Result>(reading: () => Result): Result | undefined {
  try {
    return reading();
  } catch (error) {
    if (error instanceof Refusal && error.exit === 2) return undefined;
    throw error;
  }
}

const hasBalance = (map: string) => Object.values(mapsOf({ map })).some(({ columns }) => columns.balance !== undefined);

const withFormat = (...formats: readonly string[]) =>
  [...EXPECTED.values()].filter(({ format }) => formats.includes(format)).map(({ file }) => file);

/** The pieces of a file that can be lost or doubled: its lines, or the entries and balances of XML. */
const piecesOf = (name: string) => {
  const text = sample(name).toString('latin1');
  return name.endsWith('.xml')
    ? text.split(/(?<=<\/Ntry>|<\/Bal>)|(?=<Ntry>|<Bal>)/)
    : name.endsWith('.bai') && !text.includes('\n')
      ? text.split(/(?<=\/)(?=\d\d,)/)
      : text.split(/(?<=\n)/);
};

const SIGNS: readonly (readonly [files: RegExp, sign: RegExp, swap: (found: string) => string])[] = [
  [
    /\.94\d$/,
    /^(:61:\d{6}(?:\d{4})?R?)([CD])/,
    (found) => found.replace(/[CD]$/, (each) => (each === 'C' ? 'D' : 'C')),
  ],
  [/\.bai$/, /^16,(165|455|142|451|195|495)/, (found) => (found.startsWith('16,1') ? '16,455' : '16,165')],
  [/\.xml$/, /<CdtDbtInd>(CRDT|DBIT)/, (found) => (found.endsWith('CRDT') ? '<CdtDbtInd>DBIT' : '<CdtDbtInd>CRDT')],
  [/\.(ofx|qfx|qbo)$/, /<TRNAMT>[+-]?/, (found) => (found.endsWith('-') ? '<TRNAMT>' : '<TRNAMT>-')],
];

/** The running balances of a CSV file prove all lines but the oldest. Nothing shows that a whole line at an end is lost. */
describe('a damaged CSV file with running balances is refused or has the lines as far as it is whole', () => {
  const names = withFormat('csv').filter((name) => hasBalance((EXPECTED.get(name) as Expected).map));
  const amountsOf = (name: string, bytes: Buffer) =>
    read(name, bytes, EXPECTED.get(name) as Expected).statements.flatMap(({ lines }) =>
      lines.map(({ direction, amount }) => `${direction} ${amount}`),
    );
  type Damages = (rows: readonly string[]) => Iterable<readonly string[]>;
  const all = (damages: Damages, isRight: (found: readonly string[], whole: readonly string[]) => boolean) => {
    let tried = 0;
    const wrong: string[] = [];
    for (const name of names) {
      const whole = amountsOf(name, sample(name));
      for (const rows of damages(
        sample(name)
          .toString('latin1')
          .split(/(?<=\n)/),
      )) {
        tried += 1;
        const found = refusedOr(() => amountsOf(name, Buffer.from(rows.join(''), 'latin1')));
        if (found !== undefined && !isRight(found, whole)) wrong.push(`${name}: ${found.join()}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(tried).toBeGreaterThan(10);
  };
  const isPiece = (found: readonly string[], whole: readonly string[]) => whole.join().includes(found.join());

  test('cut off', () =>
    all(function* (rows) {
      const text = rows.join('');
      for (let at = 1; at < text.length; at += 7) yield [text.slice(0, at)];
    }, isPiece));

  test('with a line deleted', () => {
    // Not the oldest of a bank that lists the lines of a day in another order.
    const rowsOf: Damages = (rows) =>
      rows.flatMap((row, index) => (row.includes('INV-2026-000188 order 7') ? [] : [rows.toSpliced(index, 1)]));
    all(rowsOf, isPiece);
  });

  test('with a line doubled', () =>
    all(
      (rows) => rows.slice(1).map((row, index) => rows.toSpliced(index + 1, 0, row)),
      (found, whole) => found.join() === whole.join(),
    ));

  test('with two lines swapped', () =>
    all(
      (rows) => rows.slice(2).map((row, index) => rows.toSpliced(index + 1, 2, row, rows[index + 1] as string)),
      (found, whole) => [...found].sort().join() === [...whole].sort().join(),
    ));
});

// Without types of transactions, OFX has nothing that contradicts a sign.
const UNTYPED = ['suncorp.ofx', 'banco-do-brasil.ofx'];
// Without balances and totals, nothing contradicts a sign or a missing entry.
const UNBALANCED = ['revolut.053.xml', 'natwest.bai', 'regions.bai'];

describe.each([
  ['MT940 and MT942', withFormat('mt940', 'mt942')],
  ['OFX', withFormat('ofx')],
  ['camt.053', withFormat('camt053').filter((name) => !UNBALANCED.includes(name))],
  ['BAI2', withFormat('bai2')],
])('a damaged file of %s is refused or read exactly', (_title, names) => {
  const all = (damages: (name: string) => Iterable<Buffer>) => {
    let tried = 0;
    const wrong: string[] = [];
    for (const name of names) {
      for (const bytes of damages(name)) {
        const outcome = outcomeOf(name, bytes);
        if (outcome !== 'exact' && outcome !== 'refused') wrong.push(`${name} ${outcome}`);
        tried += 1;
      }
    }
    expect(wrong).toEqual([]);
    expect(tried).toBeGreaterThan(50);
  };
  const latin = (pieces: readonly string[]) => Buffer.from(pieces.join(''), 'latin1');

  test('cut off', () =>
    all(function* (name) {
      const bytes = sample(name);
      for (let at = 1; at < bytes.length; at += 61) yield bytes.subarray(0, at);
    }));

  test('with a piece deleted', () =>
    all(function* (name) {
      const pieces = piecesOf(name);
      for (const index of pieces.keys()) yield latin(pieces.toSpliced(index, 1));
    }));

  test('with a piece doubled', () =>
    all(function* (name) {
      const pieces = piecesOf(name);
      for (const [index, piece] of pieces.entries()) yield latin(pieces.toSpliced(index, 0, piece));
    }));

  test('with two pieces swapped', () =>
    all(function* (name) {
      const pieces = piecesOf(name);
      for (const [index, piece] of pieces.slice(1).entries())
        yield latin(pieces.toSpliced(index, 2, piece, pieces[index] as string));
    }));

  test('with a sign swapped', () =>
    all(function* (name) {
      const [, sign, swap] = SIGNS.find(([files]) => files.test(name)) ?? [];
      const pieces = piecesOf(name);
      if (sign === undefined || swap === undefined || UNTYPED.includes(name) || UNBALANCED.includes(name)) return;
      for (const [index, piece] of pieces.entries()) {
        if (sign.test(piece)) yield latin(pieces.with(index, piece.replace(sign, swap)));
      }
    }));
});

/** These files are shown and never recorded. Most have no balances, so nothing shows that a whole entry is lost. */
describe.each([
  ['camt.052', withFormat('camt052')],
  ['camt.054', withFormat('camt054')],
])('a damaged file of %s is refused or has no line that was not written', (_title, names) => {
  const amountsOf = (name: string, bytes: Buffer) =>
    read(name, bytes, EXPECTED.get(name) as Expected)
      .statements.flatMap(({ lines }) => lines.map(({ direction, amount, text }) => `${direction} ${amount} ${text}`))
      .sort();
  const all = (damages: (name: string) => Iterable<readonly string[]>, mayLack: boolean) => {
    let tried = 0;
    const wrong: string[] = [];
    for (const name of names) {
      const whole = amountsOf(name, sample(name));
      for (const pieces of damages(name)) {
        tried += 1;
        const found = refusedOr(() => amountsOf(name, Buffer.from(pieces.join(''), 'latin1')));
        if (found === undefined) continue;
        const left = [...whole];
        const isWritten = found.every((each) => left.includes(each) && left.splice(left.indexOf(each), 1));
        if (!isWritten || (!mayLack && left.length > 0)) wrong.push(`${name}: ${found.join('; ')}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(tried).toBeGreaterThan(15);
  };

  test('cut off', () =>
    all(function* (name) {
      const text = sample(name).toString('latin1');
      for (let at = 1; at < text.length; at += 61) yield [text.slice(0, at)];
    }, false));

  test('with an entry deleted', () =>
    all((name) => piecesOf(name).map((_, index) => piecesOf(name).toSpliced(index, 1)), true));

  test('with an entry doubled', () =>
    all((name) => piecesOf(name).map((piece, index) => piecesOf(name).toSpliced(index, 0, piece)), false));

  test('with two entries swapped', () =>
    all((name) => {
      const pieces = piecesOf(name);
      return pieces.slice(1).map((piece, index) => pieces.toSpliced(index, 2, piece, pieces[index] as string));
    }, false));
});
