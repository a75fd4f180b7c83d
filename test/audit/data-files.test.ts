/** The data files of packs: each column is described, and what they say ties to the documents, statements and partners. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { Decimal } from 'decimal.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cellOf as sqlCellOf } from '../../src/audit/data-files.sql.ts';
import { columnsOf, type DataFile } from '../../src/audit/dictionary.ts';
import { EXPORT_KINDS } from '../../src/audit/export.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { undoWriteOff, writeOffInvoice } from '../../src/documents/write-off.ts';
import { packageRoot } from '../../src/package.ts';
import { readPartners } from '../../src/partners/partners.sql.ts';
import { fieldsOf } from '../../src/people/field-changes.ts';
import { cellOf } from '../../src/text.ts';
import { type Books, inv, openBooks } from '../payments/books.ts';
import { partner } from '../support/world.ts';
import { exported, month } from './books.ts';

type Row = Record<string, string>;
let books: Books;
const packs = new Map<string, string>();
const path = (kind: string, format: string, name: string) => join(packs.get(`${kind}-${format}`) as string, name);
const csv = (kind: string, name: string) =>
  parse(readFileSync(path(kind, 'csv', name)), { columns: true, relax_column_count: false }) as Row[];
const jsonl = (kind: string, name: string) =>
  readFileSync(path(kind, 'jsonl', name), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
/** Without the apostrophe of a text that a spreadsheet could run. */
const plain = (text: string) => text.replace(/^'/, '');

/** Sums of a column by what other columns say. */
function sumsBy(
  rows: readonly Row[],
  columns: readonly string[],
  amount: (row: Row) => string,
): Record<string, string> {
  const sums = new Map<string, Decimal>();
  for (const row of rows) {
    const key = columns.map((column) => row[column]).join(' ');
    sums.set(key, (sums.get(key) ?? new Decimal(0)).plus(amount(row)));
  }
  return Object.fromEntries([...sums].map(([key, sum]) => [key, sum.toFixed()]).sort());
}

beforeAll(async () => {
  books = await openBooks();
  const acted = <Result>(work: Parameters<typeof books.database.transaction<Result>>[0]) =>
    books.database.transaction(work);
  await books.bank('ach-october-01.bai');
  await books.bank('eur-october-06.camt053.xml');
  await acted((tx) => voidDocument(tx, books, { number: inv(5), reason: '=a wrong\naddress' }));
  await acted((tx) => writeOffInvoice(tx, books, { number: inv(3), reason: '@insolvent' }));
  await acted((tx) => writeOffInvoice(tx, books, { number: inv(11), reason: 'too "small"' }));
  books.at('2026-10-20T10:00:00Z');
  await acted((tx) => undoWriteOff(tx, books, { number: inv(3), reason: 'it pays, after all' }));
  const named = { partner_id: 'p-1', name: '=Harbour("Lights")', legal_note: 'first\nsecond, "third"' };
  const contact = { name: '@Ann', email: 'ann@partner.example', cc: ['one@partner.example', 'two@partner.example'] };
  await books.partners([
    partner({ ...named, invoicing_contact: contact, payment_terms_days: null }),
    partner({
      ...{ partner_id: 'p-5', active: false, parent: 'p-1' },
      policies: [
        { policy_id: 'a.price.rate', name: '-A', kind: 'insurance', partner_cut_rate: '0.25', active: false },
        { policy_id: 'b', name: 'B', kind: 'insurance', partner_cut_rate: '0', price: { rate: '0.1', minimum: '5' } },
      ],
    }),
  ]);
  for (const kind of EXPORT_KINDS)
    for (const format of ['csv', 'jsonl'] as const)
      packs.set(`${kind}-${format}`, await exported(books, { kind, format, to: month('2026-10') }));
}, 120_000);
afterAll(() => books.end());

test('every column of every data file is described, in its order', () => {
  let described = 0;
  for (const [name, pack] of packs) {
    const dictionary = parse(readFileSync(join(pack, 'dictionary.csv')), { columns: true }) as Row[];
    const files = readdirSync(pack).filter((file) => /[.](csv|jsonl)$/.test(file) && file !== 'dictionary.csv');
    expect([name, [...new Set(dictionary.map(({ file }) => file))].sort()]).toEqual([name, files.sort()]);
    for (const file of files) {
      const own = dictionary.filter((row) => row['file'] === file);
      const [first = ''] = readFileSync(join(pack, file), 'utf8').split('\n');
      const keys = file.endsWith('.csv') ? first.split(',') : Object.keys(first === '' ? {} : JSON.parse(first));
      const names = own.map((row) => row['column'] ?? '').filter((column) => first.includes(column));
      if (file.endsWith('.csv')) expect([file, names]).toEqual([file, keys]);
      else expect([file, keys.filter((key) => !names.includes(key))]).toEqual([file, []]);
      expect(own.filter(({ meaning }) => !/^[A-Za-z].{2,}[^.]$/.test(meaning ?? ''))).toEqual([]);
      described += own.length;
    }
  }
  expect(described).toBeGreaterThan(300);
});

test('the page of the format has the same columns', () => {
  const page = readFileSync(join(packageRoot, 'docs/pack-format.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([a-z-]+)[.](F|csv|jsonl)` \| (\S[^|]*) \| [^|]+ \|$/gm)];
  const compared = rows.map(([, file, format, columns]) => {
    const names = columnsOf(file as DataFile, format === 'jsonl' ? 'jsonl' : 'csv').map(({ name }) => name);
    const top = names.filter((name) => !/^(lines|pdf|email)[.]/.test(name));
    expect([file, (columns as string).trim().replaceAll('*', '').split(' ')]).toEqual([file, top]);
    return file;
  });
  expect(compared).toHaveLength(19);
});

test('no cell of the new files is read as a formula, and both formats say the same', () => {
  const files = [
    ['invoices', 'voids'],
    ['invoices', 'write-offs'],
    ['payments', 'bank-lines'],
    ['partners', 'partners'],
    ['partners', 'policies'],
    ['partners', 'partner-changes'],
  ] as const;
  for (const [kind, name] of files) {
    const [rows, lines] = [csv(kind, `${name}.csv`), jsonl(kind, `${name}.jsonl`)];
    expect([name, rows.length > 0, rows.length]).toEqual([name, true, lines.length]);
    for (const [at, row] of rows.entries()) {
      const texts = Object.entries(lines[at] as object).map(([column, value]) => [
        column,
        value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value),
      ]);
      const read = Object.entries(row).map(([column, text]) => [column, plain(text).replaceAll('", "', '","')]);
      expect([name, read]).toEqual([name, texts]);
      const risky = Object.values(row).filter((text) => /^[=+@\t\r-]/.test(text) && !/^-\d+(\.\d+)?$/.test(text));
      expect(risky).toEqual([]);
    }
    const manifest = JSON.parse(readFileSync(path(kind, 'csv', 'manifest.json'), 'utf8'));
    const listed = manifest.files.find((file: { name: string }) => file.name === `${name}.csv`);
    expect([name, listed.rows]).toEqual([name, rows.length]);
  }
});

test('PostgreSQL and the program cover the same texts', async () => {
  const blanks = ['', ' ', '  ', '\t', '\n', '\r\n', ' \n\t', '\u00a0', "'", ' '];
  const signs = [
    '=1',
    '+1',
    '-1',
    '-1.50',
    '- 1',
    '@x',
    '＝1',
    '＋1',
    '－1',
    '＠x',
    "'x",
    'x',
    'Ä',
    '～',
    '＊',
    '￥',
    '𝟙',
    '5',
  ];
  const texts = blanks.flatMap((blank) => signs.map((sign) => blank + sign));
  const found = await books.sql<{ text: string; cell: string }>(
    `SELECT text, ${sqlCellOf('text')} AS cell FROM unnest($1::text[]) AS text`,
    [texts],
  );
  expect(found.map(({ cell }) => cell)).toEqual(found.map(({ text }) => cellOf(text)));
  expect(found).toHaveLength(texts.length);
});

test('the voids are the void documents of the invoices', () => {
  const voids = csv('invoices', 'voids.csv');
  const documents = csv('invoices', 'invoices.csv').filter(({ status }) => status === 'void');
  expect(documents.length).toBeGreaterThan(0);
  expect(
    voids.map(({ number, partner_id, month: of, currency, arrangement, voided_on, reason }) => [
      ...[number, partner_id, of, currency, arrangement, voided_on, reason],
    ]),
  ).toEqual(
    documents.map(({ number, partner_id, month: of, currency, arrangement, voided_on, void_reason }) => [
      ...[number, partner_id, of, currency, arrangement, voided_on, void_reason],
    ]),
  );
});

test('the write-offs are what the journal has as bad debts, and what the invoices are lower by', () => {
  const writeOffs = csv('invoices', 'write-offs.csv');
  expect(writeOffs.map(({ move, document, amount }) => [move, document, amount])).toEqual([
    ['written_off', inv(3), '333.33'],
    ['written_off', inv(11), '2100.00'],
    ['reversed', inv(3), '-333.33'],
  ]);
  const journal = csv('journal', 'journal.csv').filter(({ account }) => account?.startsWith('expenses:bad-debts'));
  const amount = (row: Row) => row['amount'] ?? '';
  expect(sumsBy(writeOffs, ['partner_id', 'currency'], amount)).toEqual(
    sumsBy(journal, ['partner_id', 'currency'], amount),
  );
  const credited = csv('invoices', 'invoices.csv').filter((row) => Number(row['credited']) !== 0);
  const live = Object.entries(sumsBy(writeOffs, ['document'], amount)).filter(([, sum]) => sum !== '0');
  expect(sumsBy(credited, ['number'], (row) => row['credited'] ?? '')).toEqual(Object.fromEntries(live));
});

test('the lines of each bank statement add up to its totals', async () => {
  const lines = csv('payments', 'bank-lines.csv');
  const statements = await books.sql<Row>(
    `SELECT bank_statement_id::text AS id, trim_scale(credits)::text AS credits, trim_scale(debits)::text AS debits, lines
     FROM bank_statements ORDER BY bank_statement_id`,
  );
  expect(statements.length).toBeGreaterThan(1);
  for (const { id, credits, debits, lines: count } of statements) {
    const own = lines.filter((line) => line['bank_statement_id'] === id);
    const sum = (direction: string) =>
      sumsBy(
        own.filter((line) => line['direction'] === direction),
        [],
        (row) => row['amount'] ?? '',
      )[''] ?? '0';
    expect([id, own.length, sum('credit'), sum('debit')]).toEqual([id, Number(count), credits, debits]);
  }
  const payments = csv('payments', 'payments.csv').filter(({ source }) => source === 'bank');
  const received = lines.filter(({ outcome }) => outcome === 'payment');
  expect(received.map(({ payment_id, amount }) => [payment_id, amount]).sort()).toEqual(
    payments.map(({ payment_id, amount }) => [payment_id, amount]).sort(),
  );
});

test('replaying the changes of partners gives the partners and policies as they are', async () => {
  const replayed = new Map<string, Map<string, unknown>>();
  for (const { partner_id, field, old, new: after } of jsonl('partners', 'partner-changes.jsonl')) {
    const fields = replayed.get(partner_id as string) ?? new Map<string, unknown>();
    replayed.set(partner_id as string, fields);
    expect([field, fields.get(field as string) ?? null]).toEqual([field, old]);
    if (after === null) fields.delete(field as string);
    else fields.set(field as string, after);
  }
  const present = new Map<string, Map<string, unknown>>();
  for (const { partner_id, ...fields } of jsonl('partners', 'partners.jsonl')) {
    const set = Object.entries(fields).filter(([, value]) => value !== null && value !== '');
    present.set(partner_id as string, new Map(set));
  }
  for (const { partner_id, policy_id, ...fields } of jsonl('partners', 'policies.jsonl')) {
    for (const [field, value] of Object.entries(fields)) {
      if (value !== null) present.get(partner_id as string)?.set(`policies.${policy_id}.${field}`, value);
    }
  }
  const ordered = (all: Map<string, Map<string, unknown>>) =>
    [...all].sort().map(([id, fields]) => [id, Object.fromEntries([...fields].sort())]);
  expect(ordered(present)).toHaveLength(5);
  expect(ordered(replayed)).toEqual(ordered(present));
  // The columns are the fields of partners.json.
  const known = new Set(columnsOf('partners').map(({ name }) => name));
  for (const { policies: _, ...own } of await books.database.reading((tx) => readPartners(tx)))
    expect([...fieldsOf(own).keys()].filter((field) => !known.has(field))).toEqual([]);
});

test('a pack for an accounting program has a dictionary without rows', async () => {
  const pack = await exported(books, { kind: 'journal', format: 'hledger', to: month('2026-10') });
  expect(readFileSync(join(pack, 'dictionary.csv'), 'utf8')).toBe('file,column,type,meaning\n');
  expect(existsSync(join(pack, 'journal.ledger'))).toBe(true);
});
