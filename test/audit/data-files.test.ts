/** The data files of packs: each column is described, and the files tie to the documents, statements and partners. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { Decimal } from 'decimal.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cellOf as sqlCellOf } from '../../src/audit/columns.sql.ts';
import { EXPORT_KINDS } from '../../src/audit/export.ts';
import { readRules } from '../../src/audit/rules.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { undoWriteOff, writeOffInvoice } from '../../src/documents/write-off.ts';
import { packageRoot } from '../../src/package.ts';
import { readPartners } from '../../src/partners/partners.sql.ts';
import { fieldsOf } from '../../src/people/field-changes.ts';
import { cellOf } from '../../src/text.ts';
import { type Books, inv, openBooks } from '../payments/books.ts';
import { partner } from '../support/world.ts';
import { checkpoint, exported, month } from './books.ts';

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

const isCommitment = (text = '') => /^#\S{43}=/.test(text);

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
        {
          ...{ policy_id: 'b', name: 'B', kind: 'insurance' },
          partner_cut_rate: [{ rate: '0' }, { from: '2026-08-10', rate: '0.1' }],
          price: { rate: '0.1', minimum: '5' },
        },
      ],
    }),
  ]);
  await checkpoint(books);
  for (const kind of EXPORT_KINDS)
    for (const format of ['csv', 'jsonl'] as const)
      packs.set(`${kind}-${format}`, await exported(books, { kind, format, to: month('2026-10') }));
}, 120_000);
afterAll(() => books.end());

const { views } = readRules();

test('every data file has the columns of its view, and every view is a data file', () => {
  const found = new Set<string>();
  for (const pack of packs.values()) {
    for (const file of readdirSync(pack).filter((name) => /[.](csv|jsonl)$/.test(name))) {
      const [name = '', format] = file.split('.');
      const [first = ''] = readFileSync(join(pack, file), 'utf8').split('\n');
      const columns = views.find((view) => view.name === name)?.columns.map((column) => column.name) ?? [];
      const keys = format === 'csv' ? first.split(',') : Object.keys(first === '' ? {} : JSON.parse(first));
      if (first !== '') expect([file, keys]).toEqual([file, columns]);
      found.add(name);
    }
  }
  expect([...found].sort()).toEqual(views.map(({ name }) => name).sort());
});

test('the page of exports describes these columns', () => {
  const page = readFileSync(join(packageRoot, 'docs/exports.md'), 'utf8');
  const described = page
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      name: section.slice(1, section.indexOf('`', 1)),
      columns: [...section.matchAll(/^[|] `(\S+)` [|] [^|]+ [|] [A-Za-z`][^|]+[^.] [|]$/gm)].map(([, name]) => name),
    }));
  expect(described).toEqual(
    views.map(({ name, columns }) => ({ name, columns: columns.map((column) => column.name) })),
  );
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

test('replaying the changes of partners gives the partners and policies as they are', () => {
  const replayed = new Map<string, Map<string, string>>();
  for (const { partner_id = '', field = '', part = '', old, new: after = '' } of csv(
    'partners',
    'partner-changes.csv',
  )) {
    const fields = replayed.get(partner_id) ?? new Map<string, string>();
    replayed.set(partner_id, fields);
    const place = part === '' ? field : `${field} ${part}`;
    // Two commitments of one text differ.
    if (!isCommitment(old))
      expect([place, fields.get(place) ?? '']).toEqual([place, old === '[]' ? '' : plain(old ?? '')]);
    if (after === '' || after === '[]') fields.delete(place);
    else fields.set(place, plain(after));
  }
  const present = new Map<string, Map<string, string>>();
  for (const { partner_id = '', ...fields } of csv('partners', 'partners.csv')) {
    const set = Object.entries(fields).flatMap(([field, text]) => {
      if (text === '') return [];
      if (!['invoicing_contact.cc', 'settlement_currencies'].includes(field)) return [[field, plain(text)] as const];
      return text.split(' ').map((each, at) => [`${field} ${at}`, plain(each)] as const);
    });
    present.set(partner_id, new Map(set));
  }
  for (const { partner_id = '', policy_id, ...fields } of csv('partners', 'policies.csv')) {
    for (const [field, text] of Object.entries(fields)) {
      if (text !== '') present.get(partner_id)?.set(`policies.${policy_id}.${field}`, plain(text));
    }
  }
  const ordered = (all: Map<string, Map<string, string>>) =>
    [...all].sort().map(([id, fields]) => [id, Object.fromEntries([...fields].sort())]);
  expect(ordered(present)).toHaveLength(5);
  expect(ordered(replayed)).toEqual(ordered(present));
});

test('the partners are those of the program', async () => {
  const known = new Set(views.find(({ name }) => name === 'partners')?.columns.map(({ name }) => name));
  const rows = new Map(csv('partners', 'partners.csv').map((row) => [row['partner_id'], row]));
  const partners = await books.database.reading((tx) => readPartners(tx));
  expect(rows.size).toBe(partners.length);
  let compared = 0;
  for (const { policies: _, ...own } of partners) {
    for (const [field, value] of fieldsOf(own)) {
      expect([field, known.has(field)]).toEqual([field, true]);
      const text = Array.isArray(value) ? value.join(' ') : String(value);
      if (isCommitment(rows.get(own.partner_id)?.[field])) continue;
      compared += 1;
      expect([field, plain(rows.get(own.partner_id)?.[field] ?? '')]).toEqual([field, text]);
    }
  }
  expect(compared).toBeGreaterThan(40);
});

test('a journal for an accounting program is one text', async () => {
  const pack = await exported(books, { kind: 'journal', format: 'hledger', to: month('2026-10') });
  expect(readdirSync(pack).filter((name) => /[.](csv|jsonl|ledger)$/.test(name))).toEqual(['journal.ledger']);
});
