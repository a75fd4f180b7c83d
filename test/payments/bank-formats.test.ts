/** A bank format is one file and one line of a list: nothing else needs to know it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Amount } from '../../src/money.ts';
import { type BankFormat, decode } from '../../src/payments/bank/format.ts';
import { BANK_FORMATS, readBankFile } from '../../src/payments/bank/read.ts';
import { type Books, bankFile, inv, openBooks, refusalOf } from './books.ts';

/** A line a credit: `!made-up`, then day, amount in US dollars and text. */
const madeUp: BankFormat = {
  name: 'made_up',
  title: 'a made-up format',
  matches: ({ head }) => head.startsWith('!made-up'),
  *read(file) {
    const rows = decode(file, 'utf-8').trim().split('\n').slice(1);
    for (const [index, raw] of rows.entries()) {
      const [booked_on = '', amount = '', text = ''] = raw.split('|');
      const line = {
        position: index + 2,
        booked_on,
        value_on: undefined,
        direction: 'credit' as const,
        amount: Amount.of(amount, 'USD'),
        bank_reference: undefined,
        references: [{ field: 'text', text }],
        text,
        payer_name: undefined,
        payer_account: undefined,
        type: '',
        reversal: false,
        return_code: undefined,
        method: 'other' as const,
        raw,
      };
      yield { of: 0, line };
    }
    const none = { opening: undefined, closing: undefined, closed_on: undefined };
    yield { of: 0, statement: { account: '0001', currency: 'USD', reference: '', ...none, pending: 0 } };
  },
};
const FILE = `!made-up\n2026-10-14|77.77|${inv(9)} Harbour Lights\n`;

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

test('a format that is not in the list is refused', async () => {
  expect(await refusalOf(books.bankText('statement.made', FILE))).toBe('bank_format_unknown');
});

test('a format in the list is recognized, imported and recorded', async () => {
  const formats = BANK_FORMATS as BankFormat[];
  formats.push(madeUp);
  try {
    const report = await books.bankText('statement.made', FILE);
    expect(report).toMatchObject({
      format: 'made_up',
      new_lines: [{ outcome: 'payment', applied: [{ number: inv(9), amount: '77.77' }] }],
    });
  } finally {
    formats.pop();
  }
  expect(await books.sql('SELECT format FROM bank_files')).toEqual([{ format: 'made_up' }]);
});

test('no two formats have the same name', () => {
  const names = BANK_FORMATS.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(0);
  expect(new Set(names).size).toBe(names.length);
});

test('a statement reaches the day of its closing balance; a CSV file has none', () => {
  const reached = (name: string, map?: string) =>
    readBankFile({ name, bytes: bankFile(name), map, format: undefined }, books.settings.bank_csv).statements.map(
      (statement) => statement.closed_on,
    );
  expect(reached('eur-october-01.camt053.xml')).toEqual(['2026-10-01']);
  expect(reached('ach-october-12.bai')).toEqual(['2026-10-12']);
  expect(reached('plain-october.csv')).toEqual([undefined]);
});
