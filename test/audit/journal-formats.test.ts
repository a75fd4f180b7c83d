/** The three programs read what is written for them, find every assertion to hold, and get the balances that we have. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  accountName,
  beancountAccount,
  HLEDGER,
  type JournalEntry,
  type JournalFormat,
  type Posting,
} from '../../src/audit/journal-formats.ts';
import { JOURNAL_PROGRAMS, judgeJournal, runProgram } from '../support/journal-programs.ts';
import { needs } from '../support/tools.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-journal-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const posting = (control: string, detail: string, currency: string, amount: string): Posting => ({
  control,
  detail,
  currency,
  amount,
});
const UNBILLED = 'assets:receivable:unbilled';
const SALES = 'income:sales';

/** Ids of every kind that the contract allows, accounts with spaces, currencies of 0 to 4 digits, texts that mean harm. */
const OPENING = [
  posting(UNBILLED, 'p-1', 'USD', '12.5'),
  posting(SALES, 'ticket', 'USD', '-12.5'),
  posting(UNBILLED, 'p-1', 'JPY', '1000'),
  posting(SALES, 'ticket', 'JPY', '-1000'),
];
const entry = (
  entry_on: string,
  log_no: number,
  postings: Posting[],
  more: Partial<JournalEntry> = {},
): JournalEntry => ({
  entry_on,
  dated_on: entry_on,
  fact: 'quote_accepted',
  log_no,
  document: null,
  reference: 'q-1',
  postings,
  ...more,
});
const ENTRIES = [
  entry('2026-07-01', 1, [
    posting(UNBILLED, 'p-1', 'USD', '7'),
    posting('expenses:partner-cut', 'p-1', 'USD', '3'),
    posting(SALES, 'ticket', 'USD', '-10'),
  ]),
  entry('2026-07-02', 2, [posting(UNBILLED, 'P:1', 'KWD', '1.005'), posting(SALES, 'a.b_c', 'KWD', '-1.005')], {
    reference: '"; = 5 USD (x) | \n    evil:account  1 USD\n',
    dated_on: '2026-06-30',
  }),
  entry('2026-07-31', 3, [posting(UNBILLED, 'P.1', 'CLF', '0.0001'), posting(SALES, 'a-b-c', 'CLF', '-0.0001')]),
  entry('2026-08-15', 4, [
    posting('assets:bank', 'DE89 3704  ; x', 'USD', '100000000000000.25'),
    posting('assets:processor', '', 'USD', '-100000000000000.25'),
  ]),
  entry('2026-08-31', 5, [posting(UNBILLED, 'p-1', 'JPY', '-1000'), posting(SALES, 'ticket', 'JPY', '1000')]),
];

function sums(postings: readonly Posting[], name: (posting: Posting) => string): Map<string, Posting> {
  const found = new Map<string, Posting & { minor: bigint }>();
  for (const each of postings) {
    const key = `${name(each)} ${each.currency}`;
    const [whole = '', fraction = ''] = each.amount.split('.');
    const minor = (found.get(key)?.minor ?? 0n) + BigInt(whole + fraction.padEnd(4, '0'));
    const digits = String(minor < 0n ? -minor : minor).padStart(5, '0');
    const amount = `${minor < 0n ? '-' : ''}${digits.slice(0, -4)}.${digits.slice(-4)}`.replace(/\.?0+$/, '');
    found.set(key, { ...each, minor, amount });
  }
  return found;
}

/** Amounts as other programs write them: by value. */
const byValue = (amount: string) => amount.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');

function write(format: JournalFormat, spoil: (posting: Posting) => Posting = (each) => each): string {
  const upTo = (day: string) => [
    ...OPENING,
    ...ENTRIES.filter(({ entry_on }) => entry_on <= day).flatMap(({ postings }) => postings),
  ];
  const closing = (day: string) => format.closing(day, [...sums(upTo(day), accountName).values()].map(spoil));
  const july = ENTRIES.filter(({ entry_on }) => entry_on < '2026-08');
  const text = [
    format.head('A test; = "of" formats', upTo('2026-12-31')),
    format.opening('2026-07-01', OPENING),
    ...july.map(format.entry),
    closing('2026-07-31'),
    ...ENTRIES.filter((each) => !july.includes(each)).map(format.entry),
    closing('2026-08-31'),
  ].join('');
  const path = join(folder, format.file);
  writeFileSync(path, text);
  return path;
}

describe.each(JOURNAL_PROGRAMS)('$program', (judge) => {
  test('takes the file', (context) => {
    needs(judge.program, context);
    expect(judgeJournal(judge, write(judge.writer))).toBe('');
  });

  test('looks at the balances that are asserted', (context) => {
    needs(judge.program, context);
    const wrong = write(judge.writer, (each) =>
      each.currency === 'KWD' && each.control === SALES ? { ...each, amount: '-1.006' } : each,
    );
    expect(judgeJournal(judge, wrong)).not.toBe('');
  });
});

test('hledger has our balances', (context) => {
  needs('hledger', context);
  const { output } = runProgram('hledger', [
    'balance',
    '-f',
    write(HLEDGER),
    '-E',
    '--flat',
    '--no-total',
    '-O',
    'csv',
    '--layout',
    'bare',
  ]);
  const found = output
    .trim()
    .split('\n')
    .slice(1)
    .map((row) => row.split(',').map((cell) => cell.replace(/^"|"$/g, '')))
    .map(([account, currency, amount = '']) => [`${account} ${currency}`, byValue(amount)])
    .filter(([, amount]) => amount !== '0');
  const ours = [...sums([...OPENING, ...ENTRIES.flatMap(({ postings }) => postings)], accountName)]
    .map(([key, { amount }]) => [key, amount])
    .filter(([, amount]) => amount !== '0');
  expect(new Map(found as [string, string][])).toEqual(new Map(ours as [string, string][]));
});

test('no two subaccounts get the same name', () => {
  const details = ['p-1', 'P-1', 'p.1', 'p_1', 'p:1', 'p--1', 'p-002d1', 'p-', 'p', 'p%2D1', 'a b', 'a  b', 'ä'];
  for (const name of [accountName, beancountAccount]) {
    expect(new Set(details.map((detail) => name({ control: UNBILLED, detail }))).size).toBe(details.length);
  }
});
