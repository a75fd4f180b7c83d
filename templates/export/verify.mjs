#!/usr/bin/env node
/**
 * Checks a pack exported by Reckoner, or the proof of a row. It needs Node 20.12 or later and nothing else, and only reads.
 *
 *   node verify.mjs PACK                      check the pack in that folder
 *     --previous PACK                         … and that it continues an earlier pack
 *     --seal 2026-07=5f0c…                    … and that a month has the seal that you received
 *     --books-seal 2026-07=9b41…              … and that its books have the seal that you received
 *   node verify.mjs PROOF.json [--seal …]     check that one row is under the seal of its month
 *
 * Take it from a release of Reckoner, never from whoever made the pack, and compare its SHA-256 with the one in
 * docs/auditors.md or in a seal's e-mail. docs/pack-format.md is the grammar that it follows, and verify.py does the same.
 * It parses first and checks then: a pack that is not exactly as the grammar says is refused.
 *
 * Exit status: 0 all checks hold, 1 refused, 2 nothing could be checked.
 */
import { createHash, hash } from 'node:crypto';
import { closeSync, lstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

// --- Output ----------------------------------------------------------------------------------------------------------

/** A text from a pack, safe to print: control, format and direction characters are shown as \u{…}. */
const printable = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (each) => `\\u{${each.codePointAt(0).toString(16)}}`);
const print = (text) => console.log(printable(text));

const SHOWN = 20;
/** What a check found. Only the first problems are kept: a forged pack can have millions. */
class Problems {
  count = 0;
  first = [];
  add(text) {
    this.count += 1;
    if (this.count <= SHOWN) this.first.push(text);
  }
}

/** Something is not as the grammar says. */
class Malformed extends Error {}
/** A check that refuses has failed; what comes after it is not read. */
class Refused extends Error {}
/** Nothing can be checked: exit status 2. */
class Unusable extends Error {}

function malformed(place, what) {
  throw new Malformed(`${place}: ${what}`);
}

const failed = [];
let total = 0;
const notes = [];

/** Runs a check and prints its result. `work` adds problems and returns what it looked at, and a value. */
function check(name, work, { refuses = false } = {}) {
  const problems = new Problems();
  let [looked, value] = ['', undefined];
  try {
    [looked, value] = work(problems);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    problems.add(error.message);
  }
  print(`${problems.count === 0 ? 'ok  ' : 'FAIL'}  ${name.padEnd(20)} ${looked}`);
  for (const problem of problems.first) print(`      ${problem}`);
  if (problems.count > SHOWN) print(`      … and ${problems.count - SHOWN} more`);
  for (const text of notes.splice(0)) print(`note  ${text}`);
  if (problems.count === 0) return value;
  failed.push(name);
  total += problems.count;
  if (refuses) throw new Refused();
  return value;
}

// --- Words -----------------------------------------------------------------------------------------------------------

const MONTH = '\\d{4}-(?:0[1-9]|1[0-2])';
const DAY = `${MONTH}-(?:0[1-9]|[12]\\d|3[01])`;
const TIME = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d';
const INSTANT = `${DAY}T${TIME}\\.\\d{6}Z`;
const NUMBER = '(?:0|[1-9]\\d{0,14})';
const HASH = '[0-9a-f]{64}';
const AMOUNT = '(?:0|-?(?:0\\.\\d{0,3}[1-9]|[1-9]\\d*(?:\\.\\d{0,3}[1-9])?))';
const CURRENCY = '[A-Z]{3}';
const NAME = '[a-z][a-z0-9_]*';
const INSTALLATION = '[0-9a-f]{12} (?:production|sandbox)';
const CONTROL = '[a-z][a-z-]*(?::[a-z][a-z-]*)*';
const whole = (pattern) => new RegExp(`^(?:${pattern})$`);

const IS_AMOUNT = whole(AMOUNT);
const IS_NUMBER = whole(NUMBER);

/** A canonical amount as an integer of ten-thousandths: no currency has more decimals. */
function units(text) {
  const point = text.indexOf('.');
  if (point < 0) return BigInt(text) * 10000n;
  return BigInt(text.slice(0, point) + text.slice(point + 1).padEnd(4, '0'));
}

function monthAfter(month) {
  const [year, number] = month.split('-').map(Number);
  return number === 12
    ? `${String(year + 1).padStart(4, '0')}-01`
    : `${month.slice(0, 5)}${String(number + 1).padStart(2, '0')}`;
}

const words = (text) => text.split(' ');
const ascending = (texts) => texts.every((text, index) => index === 0 || texts[index - 1] < text);
const sha256 = (text) => hash('sha256', text);

function addTo(sums, key, values) {
  const before = sums.get(key);
  if (before === undefined) sums.set(key, [...values]);
  else for (let index = 0; index < values.length; index += 1) before[index] += values[index];
}

// --- Reading ---------------------------------------------------------------------------------------------------------

/** The lines of a file without their LF. The file is UTF-8, and its last line ends with LF too. */
function* linesOf(pack, name) {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const file = openSync(join(pack.folder, name));
  try {
    const piece = Buffer.alloc(1 << 18);
    let rest = '';
    for (;;) {
      const length = readSync(file, piece);
      const lines = (rest + decoded(text, piece.subarray(0, length), length > 0, name)).split('\n');
      rest = lines.pop();
      yield* lines;
      if (length === 0) break;
    }
    if (rest !== '') malformed(name, 'its last line does not end');
  } finally {
    closeSync(file);
  }
}

function decoded(decoder, bytes, more, name) {
  try {
    return decoder.decode(bytes, { stream: more });
  } catch {
    return malformed(name, 'is not UTF-8');
  }
}

const LONGEST_TEXT = 1 << 26;
/** A small file whole. */
function textOf(folder, name) {
  const path = join(folder, name);
  if (statSync(path).size > LONGEST_TEXT) malformed(name, 'is too long');
  return decoded(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }), readFileSync(path), false, name);
}

/** A JSON object that is written exactly as the program writes it, so that no key is there twice. */
function jsonOf(text, name) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    malformed(name, 'is not JSON');
  }
  // Half of a surrogate pair is no text: it cannot be written as UTF-8.
  if (`${JSON.stringify(value, null, 2)}\n` !== text || /\\ud[89a-f]/i.test(text))
    malformed(name, 'is not written as the program writes it');
  return value;
}

/** An object with exactly these keys in this order; returns its values. */
function valuesOf(place, object, keys) {
  if (object === null || typeof object !== 'object' || Array.isArray(object)) malformed(place, 'is not an object');
  if (Object.keys(object).join() !== keys.join()) malformed(place, `does not have exactly ${keys.join(', ')}`);
  return keys.map((key) => object[key]);
}

/** Requires a text of this form. */
function text(place, value, pattern) {
  if (typeof value !== 'string' || !whole(pattern).test(value)) malformed(place, 'does not have its form');
  return value;
}
const number = (place, value) =>
  Number.isSafeInteger(value) && IS_NUMBER.test(String(value)) ? value : malformed(place, 'is not a number');
const orNull = (place, value, pattern) => (value === null ? null : text(place, value, pattern));
function list(place, value) {
  if (!Array.isArray(value)) malformed(place, 'is not a list');
  return value;
}

const ESCAPES = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', '\\': '\\' };
/** A field of COPY's text format. NULL is null. */
function unescaped(field, place) {
  if (!field.includes('\\')) return field;
  if (field === '\\N') return null;
  return field.replace(/\\(.?)/gs, (_, letter) => ESCAPES[letter] ?? malformed(place, 'has an unknown escape'));
}

/** Reads a .tsv file: `row` gets each line and its fields. Returns the columns and the number of rows. */
function readTsv(pack, name, begin) {
  let [columns, row, rows] = [undefined, undefined, 0];
  for (const line of linesOf(pack, name)) {
    const fields = line.split('\t');
    if (columns === undefined) {
      columns = fields;
      if (!fields.every((each) => whole(NAME).test(each)) || new Set(fields).size !== fields.length)
        malformed(name, 'its first line does not name its columns');
      row = begin(fields);
      continue;
    }
    rows += 1;
    if (line.includes('\r')) malformed(name, `row ${rows} has a carriage return`);
    if (fields.length !== columns.length) malformed(name, `row ${rows} does not have ${columns.length} fields`);
    const plain = line.includes('\\') ? fields.map((each) => unescaped(each, `${name}: row ${rows}`)) : fields;
    row(plain, line, rows);
  }
  if (columns === undefined) malformed(name, 'is empty');
  return { columns, rows };
}

/** Fields by name. Throws if a column that this program interprets is missing. */
function pick(place, columns, wanted) {
  const places = wanted.map((each) => columns.indexOf(each));
  if (places.includes(-1)) malformed(place, `does not have the columns ${wanted.join(', ')}`);
  return (fields) => Object.fromEntries(wanted.map((each, index) => [each, fields[places[index]]]));
}

/** The rows of a .csv file: the header is exactly `columns`. */
function* csvRows(pack, name, columns) {
  let [rows, open] = [-1, ''];
  for (const line of linesOf(pack, name)) {
    open = open === '' ? line : `${open}\n${line}`;
    if (open.includes('"') && open.split('"').length % 2 === 0) continue; // A quoted cell continues on the next line.
    const cells = open.includes('"') || open.includes('\r') ? quotedCells(open) : open.split(',');
    open = '';
    rows += 1;
    if (rows === 0 && cells?.join() !== columns.join()) malformed(name, `its header is not ${columns.join(',')}`);
    if (cells?.length !== columns.length) malformed(name, `row ${rows} does not have ${columns.length} cells`);
    if (rows > 0) yield cells;
  }
  if (open !== '') malformed(name, 'a quote is open at its end');
  if (rows < 0) malformed(name, 'is empty');
}

const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|$)/y;
function quotedCells(line) {
  const cells = [];
  CELL.lastIndex = 0;
  for (let end = ','; end === ','; ) {
    const found = CELL.exec(line);
    if (found === null) return undefined;
    cells.push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'));
    end = found[3];
  }
  return cells;
}

/** The objects of a .jsonl file, each with its line. */
function* jsonRows(pack, name) {
  let rows = 0;
  for (const line of linesOf(pack, name)) {
    rows += 1;
    let value;
    try {
      value = JSON.parse(line);
    } catch {
      malformed(name, `row ${rows} is not JSON`);
    }
    // A key that is there twice is in the text more often than in the value.
    const keys = [...line.matchAll(/"(?:[^"\\]|\\.)*"\s*(:?)/g)].filter(([, colon]) => colon === ':').length;
    if (value === null || typeof value !== 'object' || Array.isArray(value) || countKeys(value) !== keys)
      malformed(name, `row ${rows} is not an object with each key once`);
    yield [value, line];
  }
}
const countKeys = (value) =>
  value === null || typeof value !== 'object'
    ? 0
    : Object.values(value).reduce(
        (sum, each) => sum + countKeys(each),
        Array.isArray(value) ? 0 : Object.keys(value).length,
      );

/** The rows of a data file as texts in the order of its columns; NULL is an empty text. */
function* dataRows(pack, name, columns) {
  if (name.endsWith('.csv')) {
    for (const cells of csvRows(pack, name, columns)) yield [cells];
    return;
  }
  for (const [object, line] of jsonRows(pack, name)) {
    const keys = Object.keys(object);
    if (keys.join() !== columns.filter((each) => Object.hasOwn(object, each)).join())
      malformed(name, `a row has other keys than ${columns.join(', ')}`);
    yield [columns.map((each) => jsonCell(object[each])), line, object];
  }
}
const jsonCell = (value) =>
  value === null || value === undefined ? '' : typeof value === 'object' ? value : String(value);

// --- Layout ----------------------------------------------------------------------------------------------------------

const TABLES = ['csv', 'jsonl'];
/** The data files of each kind of pack, by format. */
const DATA = {
  ledger: (format) => TABLES.includes(format) && [`ledger.${format}`],
  invoices: (format) =>
    TABLES.includes(format) && [`invoices.${format}`, ...(format === 'csv' ? ['invoice-lines.csv'] : [])],
  payments: (format) =>
    TABLES.includes(format) && ['payments', 'payment-moves', 'credit-moves'].map((name) => `${name}.${format}`),
  events: (format) => TABLES.includes(format) && [`events.${format}`],
  journal: (format) =>
    format === 'hledger'
      ? ['journal.ledger']
      : format === 'beancount'
        ? ['journal.beancount']
        : TABLES.includes(format) && [`opening-balances.${format}`, `journal.${format}`],
};
const ALL_DATA = Object.entries(DATA).flatMap(([, files]) =>
  [...TABLES, 'hledger', 'beancount'].flatMap((format) => files(format) || []),
);
const KNOWN_FILE = new RegExp(
  `^(?:manifest\\.json|README\\.txt|${ALL_DATA.map((name) => name.replace('.', '\\.')).join('|')}|` +
    `sealed/${MONTH}/(?:record\\.txt|${NAME}\\.tsv)|books/${MONTH}/(?:record\\.txt|entries\\.tsv|accounts\\.tsv))$`,
);
const KNOWN_FOLDER = new RegExp(`^(?:sealed|books)(?:/${MONTH})?$`);

/** The names of the files in a folder. Links are not followed. */
function scan(folder, problems, under = '') {
  const found = [];
  const entries = readdirSync(join(folder, under), { withFileTypes: true });
  if (entries.length === 0) problems.add(under === '' ? 'the folder is empty' : `${under} is empty`);
  for (const entry of entries) {
    const name = under === '' ? entry.name : `${under}/${entry.name}`;
    if (entry.isFile() && KNOWN_FILE.test(name)) found.push(name);
    else if (entry.isDirectory() && KNOWN_FOLDER.test(name)) found.push(...scan(folder, problems, name));
    else if (entry.isFile() || entry.isDirectory()) problems.add(`${name} does not belong in a pack`);
    else problems.add(`${name} is not a regular file`);
  }
  return found;
}

// --- The manifest ----------------------------------------------------------------------------------------------------

const MANIFEST = words('format version kind data_format from to program installation environment');
MANIFEST.push('created_at', 'months', 'preliminary', 'files');
const LEDGER_SUMS = words('spotPrice partnerCut invoiceAmount');
const DOCUMENT_SUMS = [...LEDGER_SUMS, 'credit_applied', 'amount_due', 'credited', 'amount_paid', 'balance'];
const SUMMED = { ledger: LEDGER_SUMS, invoices: DOCUMENT_SUMS, payments: ['amount'] };

function readManifest(folder) {
  const name = 'manifest.json';
  const of = (key) => `${name}: ${key}`;
  const values = valuesOf(name, jsonOf(textOf(folder, name), name), MANIFEST);
  const manifest = Object.fromEntries(MANIFEST.map((key, index) => [key, values[index]]));
  const { kind, from, to } = manifest;
  if (manifest.format !== 'reckoner-export' || manifest.version !== 1)
    malformed(name, 'is not of an export pack, version 1');
  const data = Object.hasOwn(DATA, kind) ? DATA[kind](manifest.data_format) : false;
  if (data === false) malformed(of('kind'), 'kind and data_format are unknown');
  if (text(of('from'), from, MONTH) > text(of('to'), to, MONTH)) malformed(of('from'), 'is after to');
  text(of('program'), manifest.program, '[0-9A-Za-z.+-]+');
  text(of('installation'), `${manifest.installation} ${manifest.environment}`, INSTALLATION);
  text(of('created_at'), manifest.created_at, `${DAY}T${TIME}\\.\\d{3}Z`);
  const months = readMonths(manifest, of('months'));
  const open = months.some(({ books }) => books === null);
  const ends = months.at(-1)?.month === to;
  if (typeof manifest.preliminary !== 'boolean' || (open ? !manifest.preliminary : ends && manifest.preliminary))
    malformed(of('preliminary'), 'does not follow from the months');
  return { ...manifest, data, months, files: readFiles(manifest, of('files')) };
}

function readMonths({ from, to, months }, place) {
  let before;
  return list(place, months).map((each) => {
    const [month, seal, previous, books] = valuesOf(place, each, words('month seal previous books_seal'));
    text(place, month, MONTH);
    const at = `${place}: ${month}`;
    orNull(at, seal, HASH);
    orNull(at, books, HASH);
    orNull(at, previous, MONTH);
    if (month < from || month > to) malformed(at, `is not from ${from} to ${to}`);
    if (previous !== null && monthAfter(previous) !== month) malformed(at, 'previous is not the month before');
    if (before !== undefined && (before.month >= month || previous === null)) malformed(at, 'is out of order');
    if (before !== undefined && seal !== null && (before.seal === null || before.month !== previous))
      malformed(at, 'does not follow the sealed month before it');
    if (books !== null && (seal === null || (before !== undefined && before.books === null)))
      malformed(at, 'has closed books before what they follow');
    before = { month, seal, previous, books };
    return before;
  });
}

function readFiles({ kind, files }, place) {
  const found = new Map();
  for (const each of list(place, files)) {
    const summed = Object.hasOwn(SUMMED, kind) && [`${kind}.csv`, `${kind}.jsonl`].includes(each?.name);
    const keys = ['name', 'bytes', 'sha256', 'rows', ...(summed ? ['totals'] : [])];
    const [name, bytes, sum, rows, totals] = valuesOf(place, each, keys);
    const at = `${place}: ${text(place, name, '[\\x20-\\x7e]{1,200}')}`;
    if (found.has(name)) malformed(at, 'is there twice');
    const file = { bytes: number(at, bytes), sha256: text(at, sum, HASH), rows: number(at, rows) };
    if (summed) file.totals = readTotals(totals, SUMMED[kind], at);
    found.set(name, file);
  }
  return found;
}

function readTotals(totals, columns, place) {
  if (totals === null || typeof totals !== 'object') malformed(place, 'has no totals');
  const currencies = Object.keys(totals);
  if (!ascending(currencies) || !currencies.every((each) => whole(CURRENCY).test(each)))
    malformed(place, 'its totals are not by currency');
  return new Map(
    currencies.map((each) => {
      const sums = valuesOf(`${place}: ${each}`, totals[each], columns);
      return [each, sums.map((sum) => units(plainAmount(text(`${place}: ${each}`, sum, WITH_DIGITS))))];
    }),
  );
}

/** An amount with its currency's digits, and in canonical form. */
const WITH_DIGITS = '-?(?:0|[1-9]\\d*)(?:\\.\\d{1,4})?';
const IS_WITH_DIGITS = whole(WITH_DIGITS);
const plainAmount = (cell) => (cell.includes('.') ? cell.replace(/\.?0+$/, '') : cell);

// --- Records ---------------------------------------------------------------------------------------------------------

const PREVIOUS = `none|(?<month>${MONTH}) (?<seal>${HASH})`;
const many = true;
/** The lines of a seal record in order: the first word, and the form of the rest. */
const SEAL_RECORD = [
  ['reckoner', 'seal 1'],
  ['installation', `(?<text>${INSTALLATION})`],
  ['month', `(?<text>${MONTH})`],
  ['previous', PREVIOUS],
  ['issued_on', DAY],
  ['closed_at', INSTANT],
  ['sealed_at', INSTANT],
  ['rows', `(?<text>${NUMBER})`],
  ['rows_root', `(?<text>${HASH})`],
  ['rows_columns', `(?<text>${NAME}(?: ${NAME})*)`],
  [
    'closed_with',
    `(?<text>${NUMBER}) rows, ${NUMBER} late, ${NUMBER} partners with documents, ${NUMBER} without activity`,
  ],
  ['total', `(?<key>${CURRENCY}) (?<sums>${AMOUNT} ${AMOUNT} ${AMOUNT})`, many],
  ['facts', `(?<first>${NUMBER}) to (?<last>${NUMBER})`],
  ['facts_of', `(?<key>${NAME}) (?<rows>${NUMBER}) (?<root>${HASH})`, many],
];
const BOOKS_RECORD = [
  ['reckoner', 'books 1'],
  ['installation', `(?<text>${INSTALLATION})`],
  ['month', `(?<text>${MONTH})`],
  ['previous', PREVIOUS],
  ['sealed_after', `(?<month>${MONTH}) (?<seal>${HASH})`],
  ['closed_at', INSTANT],
  ['facts_to', `(?<text>${NUMBER})`],
  ['entries', `(?<rows>${NUMBER}) (?<sha256>${HASH})`],
  ['accounts', `(?<rows>${NUMBER}) (?<sha256>${HASH})`],
  ['balance', `(?<key>${CONTROL} ${CURRENCY}) (?<amount>${AMOUNT})`, many],
];

/** The lines of a record by their first word. Only the words of the grammar are there, each in its place. */
function parseRecord(place, content, grammar) {
  const lines = content.split('\n');
  if (lines.pop() !== '') malformed(place, 'its last line does not end');
  const record = {};
  let at = 0;
  for (const [word, form, repeated = false] of grammar) {
    const pattern = new RegExp(`^${word} (?:${form})$`);
    const found = [];
    while (lines[at]?.startsWith(`${word} `) && (repeated || found.length === 0)) {
      const { groups } = pattern.exec(lines[at]) ?? malformed(place, `line ${at + 1} is not a line ${word}`);
      found.push(groups ?? {});
      at += 1;
    }
    if (!repeated && found.length === 0) malformed(place, `line ${at + 1} is not the line ${word}`);
    const keys = found.map(({ key }) => key?.replace(' ', '\x01'));
    if (repeated && !ascending(keys)) malformed(place, `the lines ${word} are not in order`);
    record[word] = repeated ? found : found[0];
  }
  if (at < lines.length) malformed(place, `line ${at + 1} is not known`);
  return record;
}

const previousOf = ({ month, seal }) => (month === undefined ? null : { month, seal });

function readSealRecord(place, content) {
  const lines = parseRecord(place, content, SEAL_RECORD);
  const [first, last] = [Number(lines.facts.first), Number(lines.facts.last)];
  const columns = lines.rows_columns.text.split(' ');
  const previous = previousOf(lines.previous);
  if (first > last) malformed(place, 'its range of facts is empty');
  if (lines.facts_of.length === 0 || lines.facts_of.some(({ rows }) => rows === '0'))
    malformed(place, 'it covers no facts');
  if (new Set(columns).size !== columns.length) malformed(place, 'a column of the rows is there twice');
  if (lines.closed_with.text !== lines.rows.text) malformed(place, 'it was closed with another number of rows');
  if (previous === null ? first !== 1 : monthAfter(previous.month) !== lines.month.text)
    malformed(place, 'it does not follow what was before it');
  return {
    seal: sha256(content),
    installation: lines.installation.text,
    month: lines.month.text,
    previous,
    rows: Number(lines.rows.text),
    root: lines.rows_root.text,
    columns,
    totals: new Map(lines.total.map(({ key, sums }) => [key, sums.split(' ').map(units)])),
    first,
    last,
    tables: new Map(lines.facts_of.map((each) => [each.key, { rows: Number(each.rows), root: each.root }])),
  };
}

function readBooksRecord(place, content) {
  const lines = parseRecord(place, content, BOOKS_RECORD);
  const month = lines.month.text;
  const previous = previousOf(lines.previous);
  if (previous !== null && monthAfter(previous.month) !== month)
    malformed(place, 'it does not follow what was before it');
  if (lines.sealed_after.month < month) malformed(place, 'it follows the seal of an earlier month');
  if (lines.balance.some(({ amount }) => amount === '0')) malformed(place, 'a balance is zero');
  const table = ({ rows, sha256: sum }) => ({ rows: Number(rows), sha256: sum });
  return {
    seal: sha256(content),
    text: content,
    installation: lines.installation.text,
    month,
    previous,
    sealedAfter: lines.sealed_after,
    factsTo: Number(lines.facts_to.text),
    entries: table(lines.entries),
    accounts: table(lines.accounts),
    balances: new Map(lines.balance.map(({ key, amount }) => [key, units(amount)])),
  };
}

/** The records of a pack, each as the manifest names it. */
function readRecords(pack, problems) {
  const { manifest, names } = pack;
  for (const { month, seal, previous, books } of manifest.months) {
    for (const [folder, expected, read, into] of [
      ['sealed', seal, readSealRecord, pack.records],
      ['books', books, readBooksRecord, pack.books],
    ]) {
      if (expected === null) continue;
      const place = `${folder}/${month}/record.txt`;
      if (!names.includes(place)) malformed(place, 'is missing');
      const record = read(place, textOf(pack.folder, place));
      if (record.seal !== expected) problems.add(`${place}: its seal is ${record.seal}, not ${expected}`);
      if (record.month !== month) problems.add(`${place}: it is of ${record.month}`);
      if (record.installation !== `${manifest.installation} ${manifest.environment}`)
        problems.add(`${place}: it is of the installation ${record.installation}`);
      if (folder === 'sealed' && (record.previous?.month ?? null) !== previous)
        problems.add(`${place}: the month before it is not ${previous ?? 'none'}`);
      into.set(month, record);
    }
  }
  const first = firstOf(pack.records)?.previous;
  if (first && first.month >= manifest.from) problems.add(`${first.month} was sealed and is not in the pack`);
}

const firstOf = (map) => map.values().next().value;

// --- Files -----------------------------------------------------------------------------------------------------------

function checkFiles(pack, problems) {
  const { manifest, records, books } = pack;
  const expected = new Set(['README.txt', ...manifest.data]);
  for (const [month, { tables }] of records) {
    expected.add(`sealed/${month}/record.txt`);
    if (manifest.kind === 'ledger') expected.add(`sealed/${month}/ledger_rows.tsv`);
    for (const name of tables.keys()) expected.add(`sealed/${month}/${name}.tsv`);
  }
  for (const month of books.keys())
    for (const name of ['record.txt', 'entries.tsv', 'accounts.tsv']) expected.add(`books/${month}/${name}`);
  const there = new Set(pack.names);
  for (const name of expected) {
    if (!there.has(name)) problems.add(`${name} is missing`);
    if (!manifest.files.has(name)) problems.add(`${name} is not in the manifest`);
  }
  for (const name of there)
    if (!expected.has(name) && name !== 'manifest.json') problems.add(`${name} is covered by nothing`);
  for (const [name, file] of manifest.files) {
    if (!expected.has(name)) problems.add(`${name}, in the manifest, is covered by nothing`);
    else if (there.has(name) && hashOfFile(join(pack.folder, name), file.bytes) !== file.sha256)
      problems.add(`${name} is not the file that the manifest names`);
  }
}

function hashOfFile(path, bytes) {
  if (lstatSync(path).size !== bytes) return undefined;
  const sum = createHash('sha256');
  const file = openSync(path);
  try {
    const piece = Buffer.alloc(1 << 20);
    for (let length = readSync(file, piece); length > 0; length = readSync(file, piece))
      sum.update(piece.subarray(0, length));
  } finally {
    closeSync(file);
  }
  return sum.digest('hex');
}

// --- Tables ----------------------------------------------------------------------------------------------------------

const SUMS = words('spot_price partner_cut invoice_amount');
const BILL = words('partner_id month currency arrangement');
const DOCUMENT = ['document_id', 'number', 'series', 'sequence', 'document', 'purpose', ...BILL, 'issued_on', 'due_on'];
DOCUMENT.push('enrollments', 'entries', ...SUMS, 'credit_applied', 'partner_name', 'replaces', 'credits', 'reason');
const EVENT = words('event_id occurred_at action subject details claimed_by os_user host via');
const PAYMENT = words('payment_id received_on entry_on partner_id currency amount method account');
PAYMENT.push('reference', 'payer_name', 'payer_account', 'source', 'identity', 'recorded_at');
const APPLICATION = words('payment_application_id payment_id document_id currency amount applied_on');
const MOVED = ['entry_on', 'recorded_at'];

/** The tables that are interpreted, with the columns that are. All others are only compared with their seal. */
const INTERPRETED = {
  documents: DOCUMENT,
  document_lines: ['document_id', 'position', 'policy_id', 'policy_name', 'kind', 'month', 'count', ...SUMS],
  voids: ['document_id', ...BILL, 'reason', 'voided_on'],
  document_pdfs: ['document_id', 'sha256'],
  book_closes: words('month facts_to record seal'),
};
/** Those that only a pack of their kind compares. */
const INTERPRETED_FOR = {
  events: { audit_events: EVENT },
  payments: {
    audit_events: ['event_id', 'action'],
    payments: PAYMENT,
    payment_applications: [...APPLICATION, ...MOVED, 'evidence'],
    payment_unapplications: ['payment_application_id', 'payment_reversal_id', 'unapplied_on', ...MOVED],
    small_differences: words('payment_application_id document_id currency amount entry_on recorded_at'),
    payment_reversals: ['payment_id', 'currency', 'amount', 'kind', 'code', 'reason', 'reversed_on', ...MOVED],
    payment_assignments: ['payment_id', 'from_partner_id', 'partner_id', 'amount', 'assigned_on', ...MOVED],
    credit_applications: [
      ...words('credit_application_id credit_note_id invoice_id amount applied_on event_id'),
      ...MOVED,
    ],
    credit_releases: ['credit_application_id', 'released_on', ...MOVED, 'event_id'],
    credit_refunds: ['credit_refund_id', 'document_id', 'currency', 'amount', 'reference', 'refunded_on', ...MOVED],
    credit_refund_returns: ['credit_refund_id', 'reason', 'returned_on', ...MOVED],
  },
};
/** Fields of these columns have a form wherever they are interpreted. */
const FORMS = {
  ...Object.fromEntries([...SUMS, 'amount', 'credit_applied'].map((name) => [name, IS_AMOUNT])),
  ...Object.fromEntries(
    words('sequence position count entries facts_to document_id event_id').map((name) => [name, IS_NUMBER]),
  ),
  ...Object.fromEntries(['month', 'posted_month'].map((name) => [name, whole(MONTH)])),
  ...Object.fromEntries(['entry_on', 'dated_on'].map((name) => [name, whole(DAY)])),
  currency: whole(CURRENCY),
};

/**
 * Reads all .tsv files: malformed ones refuse the pack. Everything else that is wrong is kept for the checks it belongs to.
 */
function readTables(pack) {
  const wanted = { ...INTERPRETED, ...INTERPRETED_FOR[pack.manifest.kind] };
  for (const record of pack.records.values()) {
    const seen = new Set();
    // Events first: other facts name them.
    const tables = [...record.tables.keys()].sort(
      (one, other) => (other === 'audit_events') - (one === 'audit_events'),
    );
    for (const table of tables) readFacts(pack, record, table, wanted[table], seen);
    if (pack.manifest.kind === 'ledger') readRows(pack, record);
  }
  for (const books of pack.books.values()) readBooks(pack, books);
  return pack;
}

function countRows(pack, name, rows, expected, problems) {
  if (rows !== pack.manifest.files.get(name).rows) malformed(name, `it has ${rows} rows, and others in the manifest`);
  if (rows !== expected) problems.add(`${name}: ${rows} rows where ${expected} were sealed`);
}

function requireForms(place, columns) {
  const formed = columns.flatMap((column, index) => (Object.hasOwn(FORMS, column) ? [[index, FORMS[column]]] : []));
  return (fields, row) => {
    for (const [index, form] of formed)
      if (fields[index] !== null && !form.test(fields[index]))
        malformed(place, `row ${row}: ${columns[index]} does not have its form`);
  };
}

function readFacts(pack, record, table, interpreted, seen) {
  const name = `sealed/${record.month}/${table}.tsv`;
  const { seals } = pack.problems;
  const expected = record.tables.get(table);
  const tree = new MerkleTree();
  let before = 0;
  const { rows } = readTsv(pack, name, (columns) => {
    if (columns[0] !== 'fact_id') malformed(name, 'its first column is not fact_id');
    tree.add(columns.join('\t'));
    const [event, entry] = [columns.indexOf('event_id'), columns.indexOf('entry_on')];
    const take = interpreted && pick(name, columns, interpreted);
    const formed = requireForms(name, interpreted ? columns.filter((each) => interpreted.includes(each)) : []);
    const checked = columns.flatMap((each, index) => (interpreted?.includes(each) ? [index] : []));
    return (fields, line, row) => {
      tree.add(line);
      if (fields[0] === null || !IS_NUMBER.test(fields[0])) malformed(name, `row ${row}: fact_id is not a number`);
      const fact = Number(fields[0]);
      if (fact <= before) seals.add(`${name}: fact ${fact} is out of order`);
      if (fact < record.first || fact > record.last) seals.add(`${name}: fact ${fact} is outside of its record`);
      if (seen.has(fact)) seals.add(`${name}: fact ${fact} is in another table too`);
      seen.add(fact);
      before = fact;
      if (entry > 0 && fields[entry] !== null) checkDated(pack, name, fact, fields[entry]);
      if (event > 0 && fields[event] !== null) {
        const id = fields[event];
        if (table === 'audit_events') {
          pack.events.add(id);
          if (pack.firstEvent === undefined || Number(id) < pack.firstEvent) pack.firstEvent = Number(id);
        } else if (!pack.events.has(id) && (pack.fromTheStart || !(Number(id) < pack.firstEvent)))
          seals.add(`${name}: fact ${fact} names event ${id}, which is not there`);
      }
      if (take === undefined) return;
      formed(
        checked.map((index) => fields[index]),
        row,
      );
      pack.facts[table] ??= [];
      pack.facts[table].push({ ...take(fields), sealed_in: record.month });
    };
  });
  countRows(pack, name, rows, expected.rows, seals);
  if (tree.root() !== expected.root) seals.add(`${name} is not what was sealed`);
  pack.counts.facts += rows;
}

/** No fact that was recorded after the books had closed is dated in them. */
function checkDated(pack, name, fact, day) {
  const month = day.slice(0, 7);
  for (const books of pack.books.values()) {
    if (month > books.month) continue;
    if (fact > books.factsTo)
      pack.problems.books.add(`${name}: fact ${fact} is dated ${day}, and was recorded after those books had closed`);
    return;
  }
}

/** The root of a Merkle tree (RFC 9162, 2.1.1), from its leaves in order. */
class MerkleTree {
  subtrees = [];
  add(line) {
    let tree = { hash: hash('sha256', `\0${line}`, 'latin1'), leaves: 1 };
    for (let left = this.subtrees.at(-1); left?.leaves === tree.leaves; left = this.subtrees.at(-1))
      tree = { hash: nodeHash(this.subtrees.pop().hash, tree.hash), leaves: 2 * tree.leaves };
    this.subtrees.push(tree);
  }
  root() {
    if (this.subtrees.length === 0) return sha256('');
    const root = this.subtrees.map((each) => each.hash).reduceRight((right, left) => nodeHash(left, right));
    return Buffer.from(root, 'latin1').toString('hex');
  }
}
/** Hashes are texts of 32 one-byte characters. */
const nodeHash = (left, right) => hash('sha256', Buffer.from(`\x01${left}${right}`, 'latin1'), 'latin1');

function readRows(pack, record) {
  const { month } = record;
  const name = `sealed/${month}/ledger_rows.tsv`;
  const tree = new MerkleTree();
  const totals = new Map();
  const problems = pack.problems.rows;
  let before = 0;
  const { rows } = readTsv(pack, name, (columns) => {
    if (columns.join(' ') !== record.columns.join(' ')) malformed(name, 'its columns are not those of the record');
    const wanted = [
      'entry_id',
      'posted_month',
      'partner_id',
      'currency',
      'arrangement',
      'policy_id',
      'kind',
      'month',
      ...SUMS,
    ];
    pick(name, columns, [
      ...wanted,
      'accepted_at',
      'recorded_at',
      'quote_id',
      'requote_id',
      'reversal_id',
      'enrollment_id',
    ]);
    const places = wanted.map((each) => columns.indexOf(each));
    const formed = requireForms(name, columns);
    return (fields, line, row) => {
      tree.add(line);
      const of = places.map((index) => fields[index] ?? malformed(name, `row ${row} has a NULL that no row has`));
      formed(fields, row);
      const [id, posted, partner, currency, arrangement, policy, kind, own, ...sums] = of;
      if (!IS_NUMBER.test(id)) malformed(name, `row ${row}: entry_id is not a number`);
      const amounts = sums.map(units);
      if (Number(id) <= before) problems.add(`${name}: row ${id} is out of order`);
      before = Number(id);
      if (amounts[0] !== amounts[1] + amounts[2]) problems.add(`${name}: row ${id} does not add up`);
      if (record.previous === null ? posted > month : posted !== month)
        problems.add(`${name}: row ${id} was posted to ${posted}`);
      addTo(totals, currency, amounts);
      const owed = arrangement === 'invoicing' ? 'unbilled' : 'processor';
      const posts = (account, amount) => addTo(pack.postings, `${month}\t${account}\t${currency}`, [amount]);
      posts(`assets:receivable:${owed}:${partner}`, amounts[2]);
      posts(`expenses:partner-cut:${partner}`, amounts[1]);
      posts(`income:sales:${policy}`, -amounts[0]);
      const line_ = [partner, month, currency, arrangement, policy, kind, own].join('\t');
      addTo(pack.groups, line_, [...amounts, 1n]);
    };
  });
  countRows(pack, name, rows, record.rows, pack.problems.seals);
  if (tree.root() !== record.root) pack.problems.seals.add(`${name} is not what was sealed`);
  for (const currency of new Set([...totals.keys(), ...record.totals.keys()]))
    if (String(totals.get(currency)) !== String(record.totals.get(currency)))
      problems.add(`${name}: the rows in ${currency} do not add up to the total of the record`);
  pack.counts.rows += rows;
}

const ENTRY = words('fact fact_id entry_on dated_on debit credit currency amount document reference');

function readBooks(pack, books) {
  const { month } = books;
  const problems = pack.problems.books;
  books.moved = new Map();
  books.accountsNow = new Map();
  const read = (table, columns, row) => {
    const name = `books/${month}/${table}.tsv`;
    const { rows } = readTsv(pack, name, (found) => {
      if (found.join() !== columns.join()) malformed(name, `its columns are not ${columns.join(', ')}`);
      const formed = requireForms(name, columns);
      return (fields, _, index) => {
        if (fields.some((each, at) => each === null && columns[at] !== 'document' && columns[at] !== 'reference'))
          malformed(name, `row ${index} has a NULL`);
        formed(fields, index);
        row(fields, name);
      };
    });
    countRows(pack, name, rows, books[table].rows, problems);
    if (pack.manifest.files.get(name).sha256 !== books[table].sha256) problems.add(`${name} is not what was sealed`);
    pack.counts[table] += rows;
  };
  read('entries', ENTRY, (fields, name) => {
    const [fact, id, entryOn, , debit, credit, currency, amount] = fields;
    const own = entryOn.slice(0, 7);
    if (own > month || (own < month && books.previous !== null))
      problems.add(`${name}: ${fact} ${id} is dated ${entryOn}`);
    addTo(books.moved, `${debit}\t${currency}`, [units(amount)]);
    addTo(books.moved, `${credit}\t${currency}`, [-units(amount)]);
    if (pack.manifest.kind === 'journal') pack.entries.push(fields);
  });
  read('accounts', words('control account currency amount'), ([control, account, currency, amount], name) => {
    const key = `${account}\t${currency}`;
    if (books.accountsNow.has(key)) problems.add(`${name}: ${account} in ${currency} is there twice`);
    if (account !== control && !account.startsWith(`${control}:`))
      problems.add(`${name}: ${account} is not in ${control}`);
    if (amount === '0') problems.add(`${name}: the balance of ${account} in ${currency} is zero`);
    books.accountsNow.set(key, { control, amount: units(amount) });
  });
}

// --- Seals -----------------------------------------------------------------------------------------------------------

function checkSeals({ records, counts }, problems) {
  let before;
  for (const record of records.values()) {
    const { month, previous, first } = record;
    if (before !== undefined) {
      if (previous?.seal !== before.seal)
        problems.add(`${month} was sealed after ${previous?.seal}, not after ${before.seal}`);
      if (first !== before.last + 1) problems.add(`${month}: its facts begin at ${first}, after ${before.last}`);
    }
    before = record;
  }
  return `${records.size} months, ${counts.facts} facts, ${counts.rows} rows`;
}

// --- Documents -------------------------------------------------------------------------------------------------------

const billOf = (row) => BILL.map((name) => row[name]).join('\t');

/** Arranges the sealed documents for the checks that need them. */
function arrange(pack, problems) {
  const { documents = [], document_lines: lines = [], voids = [], document_pdfs: pdfs = [] } = pack.facts;
  for (const document of documents) {
    if (pack.documents.has(document.document_id)) problems.add(`${document.number}: its document_id is there twice`);
    pack.documents.set(document.document_id, document);
    if (pack.numbers.has(document.number)) problems.add(`${document.number} is there twice`);
    pack.numbers.set(document.number, document);
    document.lines = [];
  }
  for (const line of lines) {
    const document = pack.documents.get(line.document_id);
    if (document === undefined || document.sealed_in !== line.sealed_in)
      problems.add(
        `a line of document_id ${line.document_id}, sealed in ${line.sealed_in}, is of no document of that month`,
      );
    else if (line.position !== String(document.lines.push(line)))
      problems.add(`${document.number}: line ${line.position} is out of order`);
  }
  for (const each of voids) {
    const document = pack.documents.get(each.document_id);
    if (document === undefined) {
      if (pack.fromTheStart) problems.add(`document_id ${each.document_id} is void, and is no document`);
      continue;
    }
    if (document.void !== undefined) problems.add(`${document.number} is void twice`);
    if (each.sealed_in < document.sealed_in || billOf(each) !== billOf(document))
      problems.add(`the void of ${document.number} is of another document`);
    document.void = each;
  }
  for (const { document_id: id, sha256: sum } of pdfs) {
    const document = pack.documents.get(id);
    if (document === undefined) {
      if (pack.fromTheStart) problems.add(`document_id ${id} has a PDF, and is no document`);
    } else if (document.pdf !== undefined) problems.add(`${document.number} has two PDFs`);
    else document.pdf = sum;
  }
}

function checkDocuments(pack, problems) {
  arrange(pack, problems);
  const { documents, records, groups } = pack;
  const sequences = new Map();
  const billed = new Set();
  for (const document of documents.values()) {
    const { number, series, sequence, purpose } = document;
    if (number !== `${series}-${sequence.padStart(6, '0')}`)
      problems.add(`${number} is number ${sequence} of ${series}`);
    if (!sequences.has(series)) sequences.set(series, []);
    sequences.get(series).push(Number(sequence));
    if (document.replaces !== null) checkReplaced(pack, document, problems);
    if (purpose !== 'month') continue;
    const header = SUMS.map((name) => units(document[name]));
    if (header[0] !== header[1] + header[2]) problems.add(`${number} does not add up`);
    const sums = [0n, 0n, 0n, 0n];
    for (const line of document.lines) {
      const amounts = [...SUMS.map((name) => units(line[name])), BigInt(line.count)];
      for (const index of sums.keys()) sums[index] += amounts[index];
      if (groups.size === 0 || !records.has(document.month)) continue;
      const key = [billOf(document), line.policy_id, line.kind, line.month].join('\t');
      billed.add(key);
      const sign = document.document === 'credit_note' ? -1n : 1n;
      const expected = groups.get(key)?.map((sum, index) => (index < 3 ? sign * sum : sum));
      if (String(expected) !== String(amounts))
        problems.add(`line ${line.position} of ${number} is not the sum of its rows`);
    }
    if (document.lines.length === 0 || String(sums) !== String([...header, BigInt(document.entries)]))
      problems.add(`${number} is not the sum of its lines`);
    if (!pack.bills.has(billOf(document))) pack.bills.set(billOf(document), []);
    pack.bills.get(billOf(document)).push(document);
  }
  for (const chain of pack.bills.values()) {
    const live = chain.filter((each) => each.void === undefined);
    if (live.length > 1) problems.add(`${live.map(({ number }) => number).join(', ')} bill the same rows`);
    if (live.length === 0) notes.push(`${chain.at(-1).number} is void, and no sealed document replaces it`);
  }
  for (const key of groups.keys()) {
    const [partner, month, currency] = key.split('\t');
    if (!billed.has(key)) problems.add(`rows of ${partner} in ${month} in ${currency} are on no document`);
  }
  checkNumbers(sequences, pack.fromTheStart, problems);
  return `${documents.size} documents, ${sequences.size} series`;
}

function checkReplaced({ documents, fromTheStart }, { number, replaces }, problems) {
  const replaced = documents.get(replaces);
  if (replaced === undefined) {
    if (fromTheStart) problems.add(`${number} replaces document_id ${replaces}, which is no document`);
    return;
  }
  if (replaced.void === undefined) problems.add(`${number} replaces ${replaced.number}, which is not void`);
  if (replaced.replacedBy !== undefined) problems.add(`${replaced.number} is replaced twice`);
  replaced.replacedBy = number;
}

function checkNumbers(sequences, fromTheStart, problems) {
  for (const [series, numbers] of sequences) {
    numbers.sort((one, other) => one - other);
    let next = fromTheStart ? 1 : numbers[0];
    for (const each of numbers) {
      if (each > next)
        problems.add(`${series}: ${each === next + 1 ? `${next} is` : `${next} to ${each - 1} are`} missing`);
      if (each < next) problems.add(`${series}: ${each} was given twice`);
      next = each + 1;
    }
  }
}

// --- Closed books ----------------------------------------------------------------------------------------------------

/** The accounts that rows are posted to: without the rows, their balances cannot be added up. */
const OF_ROWS = /^(?:assets:receivable:(?:unbilled|processor)|expenses:partner-cut|income:sales)(?::|\t)/;

function checkBooks(pack, problems) {
  const { books, records, counts } = pack;
  let before;
  for (const each of books.values()) {
    const { month, previous, sealedAfter, factsTo } = each;
    if (before !== undefined && previous?.seal !== before.seal)
      problems.add(`the books of ${month} closed after ${previous?.seal ?? 'none'}, not after ${before.seal}`);
    if (before !== undefined && factsTo < before.factsTo)
      problems.add(`the books of ${month} closed before those of ${before.month}`);
    const sealed = records.get(sealedAfter.month);
    if (sealed !== undefined && sealed.seal !== sealedAfter.seal)
      problems.add(`the books of ${month} name another seal of ${sealedAfter.month}`);
    const next = records.get(monthAfter(sealedAfter.month));
    if ((sealed !== undefined && factsTo < sealed.last) || (next !== undefined && factsTo > next.last))
      problems.add(`the books of ${month} did not close after the seal of ${sealedAfter.month}`);
    checkTrialBalance(each, problems);
    if (before !== undefined || previous === null) checkRollForward(pack, before, each, problems);
    else notes.push(`the balances of ${month} are not added up: the books before it are not in this pack`);
    before = each;
  }
  for (const close of pack.facts.book_closes ?? []) {
    const closed = books.get(close.month);
    if (closed === undefined && records.has(close.month))
      problems.add(`the books of ${close.month} closed, and are not in the pack`);
    if (
      closed !== undefined &&
      (closed.text !== close.record || closed.seal !== close.seal || String(closed.factsTo) !== close.facts_to)
    )
      problems.add(`the books of ${close.month} are not those that were sealed in ${close.sealed_in}`);
  }
  for (const month of records.keys())
    if (!books.has(month)) notes.push(`the books of ${month} are open: what is dated in it can still change`);
  return `${books.size} months, ${counts.entries} entries, ${counts.accounts} balances`;
}

function checkTrialBalance({ month, accountsNow, balances }, problems) {
  const found = new Map();
  const currencies = new Map();
  for (const [key, { control, amount }] of accountsNow) {
    const currency = key.split('\t')[1];
    addTo(found, `${control} ${currency}`, [amount]);
    addTo(currencies, currency, [amount]);
  }
  for (const name of new Set([...found.keys(), ...balances.keys()]))
    if ((found.get(name)?.[0] ?? 0n) !== (balances.get(name) ?? 0n))
      problems.add(`${month}: the accounts of ${name} do not add up to the balance of the record`);
  for (const [currency, [sum]] of currencies)
    if (sum !== 0n) problems.add(`${month}: debits and credits in ${currency} differ`);
}

function checkRollForward({ manifest, postings }, before, { month, accountsNow, moved }, problems) {
  const withRows = manifest.kind === 'ledger';
  const found = new Map(moved);
  for (const [key, { amount }] of before?.accountsNow ?? []) addTo(found, key, [amount]);
  for (const [key, sums] of postings) if (key.startsWith(`${month}\t`)) addTo(found, key.slice(month.length + 1), sums);
  for (const key of new Set([...found.keys(), ...accountsNow.keys()])) {
    if (!withRows && OF_ROWS.test(key)) continue;
    if ((accountsNow.get(key)?.amount ?? 0n) !== (found.get(key)?.[0] ?? 0n))
      problems.add(`${month}: ${key.replace('\t', ' in ')} does not follow from the month before`);
  }
}

// --- Data files ------------------------------------------------------------------------------------------------------

/** A sealed time `2026-07-15 12:00:00.25+00` as it is exported, without zeros at the end of its fraction. */
const exportedTime = (sealed) => sealed.replace(' ', 'T').replace(/\+00$/, 'Z');
const plainTime = (cell) => cell.replace(/(\.\d*?)0+Z$/, '$1Z').replace('.Z', 'Z');
const AMOUNTS = new Set([...DOCUMENT_SUMS, 'amount']);
const TIMES = new Set(words('accepted_at recorded_at occurred_at'));

/** Whether an exported cell is the sealed value. In CSV, a text that a spreadsheet could run has an apostrophe in front. */
function isExport(column, cell, sealed, csv) {
  const expected = sealed ?? '';
  if (cell === expected && !(csv && /^['=+@\t\r-]/.test(expected) && !IS_WITH_DIGITS.test(expected))) return true;
  if (AMOUNTS.has(column)) return IS_WITH_DIGITS.test(cell) && plainAmount(cell) === expected;
  if (TIMES.has(column)) return plainTime(cell) === exportedTime(expected);
  return csv && /^['=+@\t\r-]/.test(expected) && cell === `'${expected}`;
}

/** Compares a row with its sealed values, in the order of the columns; undefined is not compared. */
function compareRow(name, columns, cells, sealed, csv, problems) {
  let other;
  for (let index = 0; index < columns.length; index += 1) {
    if (sealed[index] !== undefined && !isExport(columns[index], cells[index], sealed[index], csv))
      other = [...(other ?? []), columns[index]];
  }
  if (other !== undefined) problems.add(`${name} is not as it was sealed in ${other.join(', ')}`);
}

/** Reads a data file against the manifest's rows and totals, and gives each row to `row`. */
function readData(pack, name, columns, row) {
  const { rows: expected, totals } = pack.manifest.files.get(name);
  const problems = pack.problems[name];
  const sums = new Map();
  const summed = totals === undefined ? [] : SUMMED[pack.manifest.kind].map((column) => columns.indexOf(column));
  const currency = columns.indexOf('currency');
  let rows = 0;
  for (const [cells, line, object] of dataRows(pack, name, columns)) {
    rows += 1;
    if (totals !== undefined) {
      const amounts = summed.map((index) => {
        if (!IS_WITH_DIGITS.test(cells[index])) malformed(name, `row ${rows}: ${columns[index]} is not an amount`);
        return units(plainAmount(cells[index]));
      });
      addTo(sums, cells[currency], amounts);
    }
    row(cells, line, object);
  }
  if (rows !== expected) problems.add(`${rows} rows where the manifest says ${expected}`);
  for (const each of new Set([...sums.keys(), ...(totals?.keys() ?? [])]))
    if (String(sums.get(each)) !== String(totals.get(each))) problems.add(`its ${each} totals are not the manifest's`);
  return rows;
}

const unsealed = (count, what) => {
  if (count > 0) notes.push(`${count} ${what} under no seal of this pack`);
};
const statedNow = (name, columns) => notes.push(`${name}: ${columns} are as of the export, and under no seal`);

const LEDGER = words('kind partner_id quote_id requote_id reversal_id enrollment_id policy_id currency');
LEDGER.push(...words('accepted_at spotPrice partnerCut invoiceAmount entry_id posted_month recorded_at document'));

/** The sealed rows of all months as they are exported. */
function* sealedRows(pack) {
  const sealedNames = { spotPrice: 'spot_price', partnerCut: 'partner_cut', invoiceAmount: 'invoice_amount' };
  for (const { month, columns } of pack.records.values()) {
    const places = LEDGER.map((each) => columns.indexOf(sealedNames[each] ?? each));
    const arrangement = columns.indexOf('arrangement');
    const posted = LEDGER.indexOf('posted_month');
    let first = true;
    for (const line of linesOf(pack, `sealed/${month}/ledger_rows.tsv`)) {
      if (first) {
        first = false;
        continue;
      }
      const fields = line.split('\t').map((each) => unescaped(each, month));
      const row = places.map((index) => fields[index]);
      row[posted] = month;
      yield { row, bill: [row[1], month, row[7], fields[arrangement]].join('\t') };
    }
  }
}

function compareLedger(pack, name, csv) {
  const problems = pack.problems[name];
  const sealed = sealedRows(pack);
  const open = new Set(pack.manifest.months.filter(({ seal }) => seal === null).map(({ month }) => month));
  const document = LEDGER.indexOf('document');
  const id = LEDGER.indexOf('entry_id');
  let [later, unknown, last] = [0, 0, 0];
  const rows = readData(pack, name, LEDGER, (cells) => {
    const { value, done } = sealed.next();
    if (done) {
      later += 1;
      if (!open.has(cells[13])) problems.add(`row ${cells[id]} is none of the sealed rows of ${cells[13]}`);
      if (cells[document] !== '') problems.add(`row ${cells[id]} of an open month names ${cells[document]}`);
      if (!IS_NUMBER.test(cells[id]) || (later > 1 && Number(cells[id]) <= last))
        problems.add(`row ${cells[id]} is out of order`);
      last = Number(cells[id]);
      return;
    }
    compareRow(`row ${value.row[id]}`, LEDGER, cells, value.row, csv, problems);
    const expected = pack.bills.get(value.bill)?.find(({ replacedBy }) => replacedBy === undefined)?.number;
    if (cells[document] === expected) return;
    if (cells[document] === '' || pack.numbers.has(cells[document]) || !IS_DOCUMENT.test(cells[document]))
      problems.add(`row ${value.row[id]} names ${cells[document] || 'no document'}, and not ${expected}`);
    else unknown += 1;
  });
  if (!sealed.next().done) problems.add('sealed rows are missing at its end');
  unsealed(later, `rows of ${name} are of open months, and`);
  unsealed(unknown, `rows of ${name} name a document that is`);
  return rows;
}
const IS_DOCUMENT = /^[A-Z]+-\d{4}-\d{6,}$/;

const INVOICE = words('number series sequence document purpose status partner_id partner_name month');
INVOICE.push('currency', 'arrangement', 'issued_on', 'due_on', 'enrollments', ...DOCUMENT_SUMS, 'payment_link');
INVOICE.push(...words('pdf_sha256 email_status sent_at replaces replaced_by credits reason voided_on void_reason'));
const JSON_ONLY_IN_CSV = words('partner_name arrangement pdf_sha256 email_status sent_at reason voided_on');
const INVOICE_JSON = INVOICE.filter((each) => !JSON_ONLY_IN_CSV.includes(each)).flatMap((each) =>
  each === 'payment_link' ? words('lines payment_link pdf email') : [each],
);
const LINE_JSON = ['policy_id', 'kind', 'month', 'count', ...LEDGER_SUMS];

const sealedSums = (row) => SUMS.map((name) => row[name]);

/** The sealed values of a document by column. */
function documentValues(pack, document) {
  const numberOf = (id) => (id === null ? '' : pack.documents.get(id)?.number);
  const [spotPrice, partnerCut, invoiceAmount] = sealedSums(document);
  return {
    ...document,
    ...{ spotPrice, partnerCut, invoiceAmount },
    replaces: numberOf(document.replaces),
    credits: numberOf(document.credits),
    // What can still happen is compared only once it is sealed.
    replaced_by: document.replacedBy,
    pdf_sha256: document.pdf,
    voided_on: document.void?.voided_on,
    void_reason: document.void?.reason,
    pdf: undefined,
    lines: undefined,
  };
}

/** The documents of the pack's months in number order. */
function documentsInOrder({ documents, manifest: { from, to } }) {
  return [...documents.values()]
    .filter(({ month }) => month >= from && month <= to)
    .sort((one, other) =>
      one.series < other.series ? -1 : one.series > other.series ? 1 : one.sequence - other.sequence,
    );
}

function compareInvoices(pack, name, csv) {
  const problems = pack.problems[name];
  const columns = csv ? INVOICE : INVOICE_JSON;
  const missing = new Set(documentsInOrder(pack).map((each) => each.number));
  const at = Object.fromEntries(columns.map((each, index) => [each, index]));
  const later = { document: 0, pdf: 0, void: 0, replacement: 0 };
  let before = ['', 0];
  const rows = readData(pack, name, columns, (cells, _, object) => {
    const of = (column) => cells[at[column]];
    const number = of('number');
    const [series, sequence] = [of('series'), Number(of('sequence'))];
    if (series < before[0] || (series === before[0] && !(sequence > before[1])))
      problems.add(`${number} is out of order`);
    before = [series, sequence];
    checkStanding(number, of, problems);
    const document = pack.numbers.get(number);
    const pdf = csv ? of('pdf_sha256') : (readPart(name, object.pdf, ['sha256', 'bytes'])?.[0] ?? '');
    const lines = csv ? undefined : list(`${name}: lines`, object.lines);
    if (!csv) readPart(name, object.email, words('status to message_id sent_at'));
    if (pdf !== '' && !(typeof pdf === 'string' && whole(HASH).test(pdf)))
      problems.add(`${number}: the hash of its PDF is none`);
    if (document === undefined) {
      later.document += 1;
      return;
    }
    missing.delete(number);
    const values = documentValues(pack, document);
    compareRow(
      number,
      columns,
      cells,
      columns.map((each) => values[each]),
      csv,
      problems,
    );
    if (document.pdf !== undefined && pdf !== document.pdf)
      problems.add(`${number} has another PDF than the sealed one`);
    if (document.pdf === undefined && pdf !== '') later.pdf += 1;
    const isVoid = of('status') === 'void';
    if (document.void !== undefined && !isVoid) problems.add(`${number} is void, and not ${of('status')}`);
    if (document.void === undefined && isVoid) later.void += 1;
    if (!isVoid && (of('void_reason') !== '' || (csv && of('voided_on') !== '')))
      problems.add(`${number} is not void, and says why it is`);
    if (document.replacedBy === undefined && of('replaced_by') !== '') {
      later.replacement += 1;
      if (pack.numbers.has(of('replaced_by'))) problems.add(`${number} is not replaced by ${of('replaced_by')}`);
    }
    if (lines !== undefined) compareJsonLines(name, number, document.lines, lines, problems);
  });
  for (const number of missing) problems.add(`${number} is missing`);
  unsealed(later.document, `documents of ${name} are`);
  unsealed(later.pdf, `PDFs of ${name} are`);
  unsealed(later.void, `voids of ${name} are`);
  unsealed(later.replacement, `replacements of ${name} are`);
  statedNow(name, 'status, credited, amount_paid, balance, payment_link, and what is said of e-mails,');
  return rows;
}

const readPart = (name, value, keys) => (value === null ? undefined : valuesOf(name, value, keys));

/** What is due, what is left and the status follow from the other columns. */
function checkStanding(number, of, problems) {
  const amount = (column) => units(plainAmount(of(column)));
  const due = of('document') === 'statement' ? 0n : amount('invoiceAmount') - amount('credit_applied');
  const left = of('status') === 'void' ? 0n : due - amount('credited') - amount('amount_paid');
  if (amount('amount_due') !== due) problems.add(`${number}: amount_due does not follow`);
  if (amount('balance') !== left) problems.add(`${number}: balance does not follow`);
  if (of('status') !== 'void' && of('status') !== (left === 0n ? 'paid' : 'open'))
    problems.add(`${number}: status does not follow`);
}

function compareJsonLines(name, number, sealed, lines, problems) {
  if (lines.length !== sealed.length)
    problems.add(`${number} has ${lines.length} lines where ${sealed.length} were sealed`);
  for (const [index, line] of sealed.slice(0, lines.length).entries()) {
    const cells = valuesOf(`${name}: line of ${number}`, lines[index], LINE_JSON).map(jsonCell);
    const values = [line.policy_id, line.kind, line.month, line.count, ...sealedSums(line)];
    compareRow(`line ${line.position} of ${number}`, LINE_JSON, cells, values, false, problems);
  }
}

const INVOICE_LINE = [
  'number',
  'position',
  'policy_id',
  'policy_name',
  'kind',
  'month',
  'count',
  'currency',
  ...LEDGER_SUMS,
];

function compareInvoiceLines(pack, name) {
  const problems = pack.problems[name];
  const sealed = documentsInOrder(pack).flatMap((document) => document.lines.map((line) => ({ document, line })));
  let [next, later] = [0, 0];
  const rows = readData(pack, name, INVOICE_LINE, (cells) => {
    if (!pack.numbers.has(cells[0])) {
      later += 1;
      return;
    }
    const expected = sealed[next];
    next += 1;
    if (expected === undefined) {
      problems.add(`line ${cells[1]} of ${cells[0]} was not sealed`);
      return;
    }
    const { document, line } = expected;
    const { position, policy_id, policy_name, kind, month, count } = line;
    const values = [document.number, position, policy_id, policy_name, kind, month, count, document.currency];
    compareRow(
      `line ${position} of ${document.number}`,
      INVOICE_LINE,
      cells,
      [...values, ...sealedSums(line)],
      true,
      problems,
    );
  });
  for (const { document, line } of sealed.slice(next))
    problems.add(`line ${line.position} of ${document.number} is missing`);
  unsealed(later, `lines of ${name} are of documents`);
  return rows;
}

function compareEvents(pack, name, csv) {
  const problems = pack.problems[name];
  const sealed = pack.facts.audit_events ?? [];
  const last = pack.manifest.months.at(-1);
  const open = last.seal === null || last.month < pack.manifest.to;
  let next = 0;
  const rows = readData(pack, name, EVENT, (cells, line) => {
    const event = sealed[next];
    next += 1;
    if (event === undefined) {
      if (!open) problems.add(`event ${cells[0]} was not sealed`);
      return;
    }
    // In JSON Lines the details are the sealed text, not a text of it.
    const details = csv || line.includes(`, "details" : ${event.details}, "claimed_by" : `);
    if (!details) problems.add(`event ${event.event_id} is not as it was sealed in details`);
    const values = EVENT.map((each) => (each === 'details' && !csv ? undefined : event[each]));
    compareRow(`event ${event.event_id}`, EVENT, cells, values, csv, problems);
  });
  for (const event of sealed.slice(next)) problems.add(`event ${event.event_id} is missing`);
  unsealed(next - sealed.length, `events of ${name} are`);
  return rows;
}

const PAYMENT_COLUMNS = [...PAYMENT, 'applied', 'reversed', 'unapplied', 'status'];

function comparePayments(pack, name, csv) {
  const problems = pack.problems[name];
  const { from, to } = pack.manifest;
  const sealed = new Map((pack.facts.payments ?? []).map((each) => [each.payment_id, each]));
  const missing = new Set([...sealed.values()].filter((each) => dated(each, from, to)).map((each) => each.payment_id));
  let [later, before] = [0, 0];
  const rows = readData(pack, name, PAYMENT_COLUMNS, (cells) => {
    const id = cells[0];
    if (!(Number(id) > before)) problems.add(`payment ${id} is out of order`);
    before = Number(id);
    const payment = sealed.get(id);
    missing.delete(id);
    if (payment === undefined) {
      later += 1;
      return;
    }
    // A payment may be assigned to its partner later, by a fact of its own.
    const values = PAYMENT.map((each) => (each === 'partner_id' ? (payment[each] ?? undefined) : payment[each]));
    compareRow(`payment ${id}`, PAYMENT_COLUMNS, cells, values, csv, problems);
  });
  for (const id of missing) problems.add(`payment ${id} is missing`);
  unsealed(later, `payments of ${name} are`);
  statedNow(name, 'applied, reversed, unapplied, status, and a partner assigned later');
  return rows;
}

const dated = ({ entry_on }, from, to) => entry_on.slice(0, 7) >= from && entry_on.slice(0, 7) <= to;
const negated = (amount) => (amount === '0' ? '0' : amount.startsWith('-') ? amount.slice(1) : `-${amount}`);
const MOVE = words('move document currency amount dated_on entry_on why recorded_at');

/** The moves of payments that the sealed facts give: id, move, id of the document, currency, amount, day, why, fact. */
function* paymentMoves({ facts }) {
  const applications = new Map((facts.payment_applications ?? []).map((each) => [each.payment_application_id, each]));
  const differences = new Map((facts.small_differences ?? []).map((each) => [each.payment_application_id, each]));
  for (const each of applications.values()) {
    const why = jsonMember(each.evidence, 'why');
    yield [each.payment_id, 'applied', each.document_id, each.currency, each.amount, each.applied_on, why, each];
  }
  for (const each of differences.values()) {
    const of = applications.get(each.payment_application_id);
    const why = 'a difference too small to pursue';
    if (of)
      yield [of.payment_id, 'bank_charges', each.document_id, each.currency, each.amount, of.applied_on, why, each];
  }
  for (const each of facts.payment_unapplications ?? []) {
    const of = applications.get(each.payment_application_id);
    const small = differences.get(each.payment_application_id);
    const why = each.payment_reversal_id === null ? 'unapplied by a user' : 'payment reversed';
    const undone = (move, { document_id, currency, amount }) => [
      of.payment_id,
      move,
      document_id,
      currency,
      negated(amount),
      each.unapplied_on,
      why,
      each,
    ];
    if (of) yield undone('unapplied', of);
    if (of && small) yield undone('bank_charges_reversed', small);
  }
  for (const each of facts.payment_reversals ?? []) {
    const why = [each.code, each.reason].filter((part) => part !== null).join(': ');
    yield [each.payment_id, each.kind, null, each.currency, negated(each.amount), each.reversed_on, why, each];
  }
  const payments = new Map((facts.payments ?? []).map((each) => [each.payment_id, each]));
  for (const each of facts.payment_assignments ?? []) {
    const of = payments.get(each.payment_id);
    const why = `from ${each.from_partner_id ?? 'an unknown payer'} to ${each.partner_id}`;
    if (of) yield [each.payment_id, 'assigned', null, of.currency, each.amount, each.assigned_on, why, each];
  }
}

/** The same for credit. The id is that of the credit note. */
function* creditMoves({ facts, documents }) {
  const action = new Map((facts.audit_events ?? []).map((each) => [each.event_id, each.action]));
  const applications = new Map((facts.credit_applications ?? []).map((each) => [each.credit_application_id, each]));
  const currency = (id) => documents.get(id)?.currency;
  for (const each of applications.values()) {
    const of = [each.credit_note_id, 'applied', each.invoice_id, currency(each.credit_note_id), each.amount];
    yield [...of, each.applied_on, action.get(each.event_id), each];
  }
  for (const each of facts.credit_releases ?? []) {
    const of = applications.get(each.credit_application_id);
    if (of === undefined) continue;
    const what = [of.credit_note_id, 'released', of.invoice_id, currency(of.credit_note_id), negated(of.amount)];
    yield [...what, each.released_on, action.get(each.event_id), each];
  }
  const refunds = new Map((facts.credit_refunds ?? []).map((each) => [each.credit_refund_id, each]));
  for (const each of refunds.values())
    yield [each.document_id, 'refunded', null, each.currency, each.amount, each.refunded_on, each.reference, each];
  for (const each of facts.credit_refund_returns ?? []) {
    const of = refunds.get(each.credit_refund_id);
    if (of)
      yield [
        of.document_id,
        'refund_returned',
        null,
        of.currency,
        negated(of.amount),
        each.returned_on,
        each.reason,
        each,
      ];
  }
}

function jsonMember(json, key) {
  try {
    const value = JSON.parse(json)[key];
    return value === undefined || value === null ? null : String(value);
  } catch {
    return null;
  }
}

/** Compares moves with those that the sealed facts give, in any order. */
function compareMoves(pack, name, csv, id, moves) {
  const problems = pack.problems[name];
  const { from, to } = pack.manifest;
  const numberOf = (document) => (document === null ? '' : pack.documents.get(document)?.number);
  const expected = new Map();
  for (const [of, move, document, currency, amount, datedOn, why, fact] of moves) {
    if (!dated(fact, from, to)) continue;
    const place = id === 'credit_note' ? numberOf(of) : of;
    const values = [
      place,
      move,
      numberOf(document),
      currency,
      amount,
      datedOn,
      fact.entry_on,
      why ?? '',
      exportedTime(fact.recorded_at),
    ];
    // What is older than the pack is not compared.
    if (values.includes(undefined)) continue;
    const key = values.join('\t');
    expected.set(key, (expected.get(key) ?? 0) + 1);
  }
  let later = 0;
  const rows = readData(pack, name, [id, ...MOVE], (cells) => {
    const [of, move, document, currency, amount, datedOn, entryOn, why, recordedAt] = cells;
    const plainWhy = csv && /^'['=+@\t\r-]/.test(why) ? why.slice(1) : why;
    const plain = IS_WITH_DIGITS.test(amount) ? plainAmount(amount) : amount;
    const key = [of, move, document, currency, plain, datedOn, entryOn, plainWhy, plainTime(recordedAt)].join('\t');
    const left = expected.get(key);
    if (left === undefined) later += 1;
    else if (left === 1) expected.delete(key);
    else expected.set(key, left - 1);
  });
  for (const key of expected.keys()) problems.add(`it does not have the sealed move ${key.replaceAll('\t', ' ')}`);
  unsealed(later, `rows of ${name} are`);
  return rows;
}

const BALANCE = words('account currency amount');
const POSTING = words('entry_on dated_on fact fact_id account partner_id policy_id currency amount document reference');
const OF_LEDGER_ROWS = new Set(words('quote_accepted requote_accepted reversal'));

/** A cell of a text that is compared by a key, without the apostrophe of CSV. */
const uncovered = (cell, csv) => (csv && /^'['=+@\t\r-]/.test(cell) ? cell.slice(1) : cell);

function compareOpening(pack, name, csv) {
  const problems = pack.problems[name];
  const rows = readData(pack, name, BALANCE, ([account, currency, amount]) => {
    const key = `${uncovered(account, csv)}\t${currency}`;
    if (!IS_WITH_DIGITS.test(amount)) malformed(name, `the balance of ${account} is not an amount`);
    if (pack.opening.has(key)) problems.add(`${account} in ${currency} is there twice`);
    pack.opening.set(key, [units(plainAmount(amount))]);
  });
  if (![...pack.books.keys()].some((month) => month >= pack.manifest.from)) unsealed(rows, `rows of ${name} are`);
  return rows;
}

function compareJournal(pack, name, csv) {
  const problems = pack.problems[name];
  const { from, to } = pack.manifest;
  const expected = new Map();
  for (const [fact, id, entryOn, datedOn, debit, credit, currency, amount, document, reference] of pack.entries) {
    if (entryOn.slice(0, 7) < from) continue;
    for (const [account, value] of [
      [debit, amount],
      [credit, negated(amount)],
    ]) {
      const key = [entryOn, datedOn, fact, id, account, currency, value, document ?? '', reference ?? ''].join('\t');
      expected.set(key, (expected.get(key) ?? 0) + 1);
    }
  }
  const months = new Map();
  let later = 0;
  const rows = readData(pack, name, POSTING, (cells) => {
    const [entryOn, datedOn, fact, id, account, , , currency, amount, document, reference] = cells.map((each) =>
      uncovered(each, csv),
    );
    if (!IS_WITH_DIGITS.test(amount)) malformed(name, `an amount of ${fact} ${id} is not an amount`);
    const month = entryOn.slice(0, 7);
    if (!whole(DAY).test(entryOn) || month < from || month > to) problems.add(`${fact} ${id} is dated ${entryOn}`);
    if (!pack.books.has(month)) {
      later += 1;
      return;
    }
    if (!months.has(month)) months.set(month, new Map());
    addTo(months.get(month), `${account}\t${currency}`, [units(plainAmount(amount))]);
    if (OF_LEDGER_ROWS.has(fact)) return;
    const key = [entryOn, datedOn, fact, id, account, currency, plainAmount(amount), document, reference].join('\t');
    const left = expected.get(key);
    if (left === undefined)
      problems.add(`${fact} ${id} does not post ${amount} ${currency} to ${account} as it was sealed`);
    else if (left === 1) expected.delete(key);
    else expected.set(key, left - 1);
  });
  for (const key of expected.keys()) problems.add(`it does not have the posting ${key.replaceAll('\t', ' ')}`);
  const sums = new Map(pack.opening);
  for (const [month, { accountsNow }] of pack.books) {
    for (const [key, values] of months.get(month) ?? []) sums.set(key, [(sums.get(key)?.[0] ?? 0n) + values[0]]);
    for (const key of new Set([...sums.keys(), ...accountsNow.keys()]))
      if ((sums.get(key)?.[0] ?? 0n) !== (accountsNow.get(key)?.amount ?? 0n))
        problems.add(`${key.replace('\t', ' in ')} at the end of ${month} is not the balance that was sealed`);
  }
  unsealed(later, `rows of ${name} are of months with open books, and`);
  statedNow(name, 'partner_id and policy_id');
  return rows;
}

const COMPARED = {
  ledger: compareLedger,
  invoices: compareInvoices,
  'invoice-lines': compareInvoiceLines,
  events: compareEvents,
  payments: comparePayments,
  'payment-moves': (pack, name, csv) => compareMoves(pack, name, csv, 'payment_id', paymentMoves(pack)),
  'credit-moves': (pack, name, csv) => compareMoves(pack, name, csv, 'credit_note', creditMoves(pack)),
  'opening-balances': compareOpening,
  journal: compareJournal,
};

function checkData(pack) {
  for (const name of pack.manifest.data) {
    const [kind, format] = name.split('.');
    if (!TABLES.includes(format)) {
      print(`note  ${name} is compared with nothing: check it with the program that it is for`);
      continue;
    }
    check(name, (problems) => {
      pack.problems[name] = problems;
      return [`${COMPARED[kind](pack, name, format === 'csv')} rows as sealed and as in the manifest`];
    });
  }
}

// --- A pack ----------------------------------------------------------------------------------------------------------

/** Parses a pack; `step` runs each check. Nothing is read before what it depends on holds. */
function readPack(folder, step) {
  const pack = { folder, records: new Map(), books: new Map(), facts: {}, documents: new Map(), numbers: new Map() };
  Object.assign(pack, {
    bills: new Map(),
    events: new Set(),
    groups: new Map(),
    postings: new Map(),
    entries: [],
    opening: new Map(),
  });
  pack.counts = { facts: 0, rows: 0, entries: 0, accounts: 0 };
  pack.problems = { seals: new Problems(), rows: new Problems(), books: new Problems() };
  const refuses = { refuses: true };
  pack.names = step(
    'layout',
    (problems) => {
      const names = scan(folder, problems);
      return [`${names.length} files`, names];
    },
    refuses,
  );
  pack.manifest = step(
    'manifest',
    () => {
      const manifest = readManifest(folder);
      return [
        `${manifest.kind}, ${manifest.from} to ${manifest.to}, ${manifest.installation} ${manifest.environment}`,
        manifest,
      ];
    },
    refuses,
  );
  step(
    'records',
    (problems) => {
      readRecords(pack, problems);
      return [`${pack.records.size} seals of months, ${pack.books.size} of books`];
    },
    refuses,
  );
  if (pack.records.size === 0) throw new Unusable('nothing in this pack is sealed, so there is nothing to check');
  pack.fromTheStart = firstOf(pack.records).previous === null;
  step(
    'files',
    (problems) => {
      checkFiles(pack, problems);
      return [`${pack.manifest.files.size} files as in the manifest`];
    },
    refuses,
  );
  step(
    'tables',
    () => {
      readTables(pack);
      return [`${pack.counts.facts} facts, ${pack.counts.rows} rows`];
    },
    refuses,
  );
  return pack;
}

function merge(into, { count, first }) {
  for (const each of first) into.add(each);
  into.count += count - first.length;
}

function checkPack(folder, { previous, seals, books }) {
  const pack = readPack(folder, check);
  check('seals', (problems) => {
    merge(problems, pack.problems.seals);
    return [checkSeals(pack, problems)];
  });
  if (pack.manifest.kind === 'ledger') {
    check('rows', (problems) => {
      merge(problems, pack.problems.rows);
      return [`${pack.counts.rows} rows: each adds up, totals as sealed`];
    });
  }
  check('documents', (problems) => [checkDocuments(pack, problems)]);
  check('books', (problems) => {
    merge(problems, pack.problems.books);
    return [checkBooks(pack, problems)];
  });
  print('note  README.txt is for people: it is compared with nothing');
  for (const { month, seal } of pack.manifest.months)
    if (seal === null) print(`note  ${month} is open: nothing of it is sealed`);
  const last = pack.manifest.months.at(-1);
  if (last.month < pack.manifest.to) print(`note  nothing after ${last.month} is in this pack`);
  checkData(pack);
  if (previous !== undefined) check('previous', (problems) => [checkPrevious(pack, previous, problems)]);
  checkHeld(pack, seals, books);
  for (const [month, { seal }] of pack.records) print(`seal  ${month}  ${seal}`);
  for (const [month, { seal }] of pack.books) print(`books ${month}  ${seal}`);
}

/** Checks that a pack continues an earlier one. */
function checkPrevious(pack, folder, problems) {
  const earlier = readPack(folder, (name, work) => {
    const own = new Problems();
    const [, value] = work(own);
    if (own.count > 0) malformed(`${folder}: ${name}`, own.first[0]);
    return value;
  });
  const { from, to, installation, environment } = pack.manifest;
  if (earlier.manifest.installation !== installation || earlier.manifest.environment !== environment)
    problems.add(`${folder} is of the installation ${earlier.manifest.installation} ${earlier.manifest.environment}`);
  let joined = false;
  for (const [now, then, of] of [
    [pack.records, earlier.records, ''],
    [pack.books, earlier.books, 'the books of '],
  ]) {
    const before = firstOf(now)?.previous;
    for (const [month, { seal }] of then) {
      const found = now.get(month)?.seal ?? (before?.month === month ? before.seal : undefined);
      if (found === undefined && month >= from && month <= to)
        problems.add(`${of}${month} had ${seal}, and is not sealed now`);
      if (found !== undefined && found !== seal) problems.add(`${of}${month} had ${seal}, and has ${found}`);
      if (found !== undefined && of === '') joined = true;
    }
  }
  const first = firstOf(pack.records);
  if (!joined)
    problems.add(`${first.month} was sealed after ${first.previous?.month ?? 'none'}, and that is not in ${folder}`);
  const before = earlier.records.get(first.previous?.month);
  if (before !== undefined && first.first !== before.last + 1)
    problems.add(`facts begin at ${first.first}, and end at ${before.last} in ${folder}`);
  checkNumbersContinue(pack, earlier, first.month, problems);
  return `${earlier.records.size} months of ${folder}`;
}

/** In each series, numbers begin after the last one that was sealed before this pack's first month. */
function checkNumbersContinue(pack, earlier, month, problems) {
  const highest = new Map();
  for (const { series, sequence, sealed_in } of earlier.facts.documents ?? [])
    if (sealed_in < month) highest.set(series, Math.max(highest.get(series) ?? 0, Number(sequence)));
  const lowest = new Map();
  for (const { series, sequence } of pack.documents.values())
    lowest.set(series, Math.min(lowest.get(series) ?? Number.POSITIVE_INFINITY, Number(sequence)));
  if (!earlier.records.has(firstOf(pack.records).previous?.month)) return;
  for (const [series, first] of lowest) {
    const known = highest.get(series);
    if (known === undefined && !earlier.fromTheStart) continue;
    if (first !== (known ?? 0) + 1)
      problems.add(`${series} begins at ${first}, after ${known ?? 0} in the earlier pack`);
  }
}

/** Seals that were given on the command line. */
function heldSeals(given, option) {
  return (given ?? []).map((each) => {
    const [, month, seal] = /^([^=]*)=(.*)$/.exec(each) ?? [];
    const example = `--${option} 2026-07=5f0c…`;
    if (month === undefined || !whole(MONTH).test(month))
      throw new Unusable(`'${each}' does not name a month and a seal: ${example}`);
    if (!whole('[0-9A-Fa-f]{64}').test(seal))
      throw new Unusable(
        `'${seal}' is not a whole seal: it has 64 digits from 0 to f, not the 16 of an e-mail's subject`,
      );
    return [month, seal.toLowerCase()];
  });
}

function checkHeld({ manifest, records, books }, heldMonths, heldBooks) {
  if (heldMonths.length + heldBooks.length === 0) return;
  const apart = [];
  check('held seals', (problems) => {
    for (const [held, now, of] of [
      [heldMonths, records, ''],
      [heldBooks, books, 'the books of '],
    ]) {
      const before = firstOf(now)?.previous;
      for (const [month, seal] of held) {
        const found = now.get(month)?.seal ?? (before?.month === month ? before.seal : undefined);
        if (found !== undefined && found !== seal)
          problems.add(
            `${of}${month} has ${found}, and you gave ${seal}: compare it with your copy. If that says the same, ${of}${month} was sealed again`,
          );
        if (found === undefined && month >= manifest.from && month <= manifest.to)
          problems.add(`${of}${month} was sealed, and is open in this pack`);
        else if (found === undefined) apart.push(`${of}${month}`);
      }
    }
    return [`${heldMonths.length + heldBooks.length - apart.length} compared`];
  });
  if (apart.length > 0 && failed.length === 0)
    throw new Unusable(
      `${apart.join(', ')}: this pack (${manifest.from} to ${manifest.to}) cannot say. Ask for one that contains it`,
    );
}

// --- A proof ---------------------------------------------------------------------------------------------------------

const PROOF = words('format version month entry_id line leaf index rows path root record seal');

/** The root to which a path leads from a leaf (RFC 9162, 2.1.3.2); undefined if it cannot be a path of that leaf. */
function rootOf(leaf, index, size, path) {
  let [at, last, root] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (last === 0) return undefined;
    const right = at % 2 === 1 || at === last;
    root = right ? nodeHash(sibling, root) : nodeHash(root, sibling);
    if (right) while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)];
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 ? root : undefined;
}

function checkProof(path, { seals }) {
  const record = check(
    'proof',
    () => {
      const content = textOf('', path);
      const [format, version, month, id, line, leaf, index, rows, siblings, root, recordText, seal] = valuesOf(
        'proof',
        jsonOf(content, 'proof'),
        PROOF,
      );
      if (format !== 'reckoner-proof' || version !== 1) malformed('proof', 'is not of version 1');
      if (typeof recordText !== 'string' || typeof line !== 'string')
        malformed('proof', 'its record or line is not a text');
      const found = readSealRecord('record', recordText);
      const bytes = list('path', siblings).map((each) =>
        Buffer.from(text('path', each, HASH), 'hex').toString('latin1'),
      );
      const fields = line.split('\t');
      if (/[\n\r]/.test(line) || fields.length !== found.columns.length) malformed('line', 'is not a line of rows');
      const own = hash('sha256', `\0${line}`, 'latin1');
      const size = number('rows', rows);
      if (found.seal !== seal) malformed('seal', `the record hashes to ${found.seal}`);
      if (found.month !== month) malformed('month', `the record is of ${found.month}`);
      if (found.rows !== size || number('index', index) >= size) malformed('rows', `the month has ${found.rows} rows`);
      if (fields[found.columns.indexOf('entry_id')] !== String(number('entry_id', id)))
        malformed('entry_id', 'the line is of another row');
      if (Buffer.from(own, 'latin1').toString('hex') !== leaf) malformed('leaf', 'is not the hash of the line');
      const led = rootOf(own, index, size, bytes);
      if (found.root !== root || led === undefined || Buffer.from(led, 'latin1').toString('hex') !== root)
        malformed('path', 'does not lead to the root of the record');
      for (const [place, column] of found.columns.entries()) print(`      ${column.padEnd(16)} ${fields[place]}`);
      return [`row ${id} is under the seal of ${found.month}`, found];
    },
    { refuses: true },
  );
  const pack = {
    manifest: { from: record.month, to: record.month },
    records: new Map([[record.month, record]]),
    books: new Map(),
  };
  checkHeld(pack, seals, []);
  print(`seal  ${record.month}  ${record.seal}`);
}

// --- The command -----------------------------------------------------------------------------------------------------

function run() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      previous: { type: 'string' },
      seal: { type: 'string', multiple: true },
      'books-seal': { type: 'string', multiple: true },
    },
  });
  const held = {
    previous: values.previous,
    seals: heldSeals(values.seal, 'seal'),
    books: heldSeals(values['books-seal'], 'books-seal'),
  };
  const [place] = positionals;
  if (positionals.length !== 1) throw new Unusable('name one pack (a folder) or one proof (a .json file)');
  if (statSync(place).isDirectory()) checkPack(place, held);
  else if (place.endsWith('.zip'))
    throw new Unusable(`${place} is a .zip: unzip it into an empty folder, and name that folder`);
  else if (!place.endsWith('.json') || !statSync(place).isFile())
    throw new Unusable(`${place} is neither a folder nor a .json file`);
  else if (held.previous !== undefined || held.books.length > 0)
    throw new Unusable('a proof is compared with --seal only');
  else checkProof(place, held);
}

try {
  run();
  process.exitCode = failed.length === 0 ? 0 : 1;
} catch (error) {
  if (error instanceof Refused) process.exitCode = 1;
  else {
    process.exitCode = failed.length === 0 ? 2 : 1;
    console.error(printable(`Cannot check: ${error.message}`));
  }
}
if (process.exitCode === 0) print('All checks hold.');
if (process.exitCode === 1) print(`${total} ${total === 1 ? 'problem' : 'problems'}: ${failed.join(', ')}.`);
