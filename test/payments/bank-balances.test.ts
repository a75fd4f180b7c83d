/** Opening balances of bank files against what is known of their account: gaps, overlaps, and the missing file. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import { closeException } from '../../src/payments/exceptions.ts';
import { type Books, openBooks } from './books.ts';
import { settingsWith } from './settings.ts';

const COLUMNS = { date: 'date', amount: 'amount', balance: 'balance', bank_reference: 'ref', account: 'account' };
let books: Books;
beforeAll(async () => {
  const settings = settingsWith({
    bank_csv: { balances: { columns: COLUMNS }, plain: { columns: { ...COLUMNS, balance: undefined } } },
  });
  books = await openBooks({ bank_csv: settings.bank_csv });
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

let references = 0;
/** A file of `account` that opens with a balance, with one line for each `day amount`. */
async function file(account: string, opening: number, ...lines: readonly (readonly [day: string, amount: number])[]) {
  references += 1;
  let balance = opening;
  const rows = lines.map(([day, amount], index) => {
    balance += amount;
    return `2026-10-${day},${amount.toFixed(2)},${balance.toFixed(2)},R${references}-${index},${account}`;
  });
  const text = ['date,amount,balance,ref,account', ...rows].join('\n');
  const { breaks } = await books.bankText(`file-${references}.csv`, text, { map: 'balances' });
  return breaks.map(({ reason }) => reason);
}

const open = async (account: string) =>
  (await books.database.reading((tx) => readExceptions(tx))).filter(
    ({ kind, reason }) => kind === 'bank_statement' && reason.includes(`account ${account} `),
  );

test('files that continue one another say nothing, in whichever order they come', async () => {
  expect(await file('A1', 100, ['01', 10], ['02', -5])).toEqual([]);
  expect(await file('A1', 105, ['02', 7], ['03', 1])).toEqual([]);
  expect(await file('A1', 90, ['01', 10])).toEqual([]);
  expect(await open('A1')).toEqual([]);
});

test('a gap is told once, and listed until the missing file arrives', async () => {
  expect(await file('B2', 13_000, ['01', 492.79])).toEqual([]);
  const [told] = await file('B2', 99_999, ['04', 1]);
  expect(told).toMatch(
    /^file-\d+\.csv of account B2 opens with 99999\.00, but file-\d+\.csv ends with 13492\.79 on 2026-10-01: a file between them is missing$/,
  );
  expect(await file('B2', 100_000, ['05', 1])).toEqual([]);
  expect(await open('B2')).toMatchObject([{ currency: 'USD', since: '2026-10-04', reason: told }]);
  expect(await file('B2', 13_492.79, ['02', 86_506.21])).toEqual([]);
  expect(await open('B2')).toEqual([]);
});

test('a missing file may be one without balances', async () => {
  expect(await file('C3', 10, ['01', 5])).toEqual([]);
  expect(await file('C3', 22, ['03', 5])).toHaveLength(1);
  const text = 'date,amount,balance,ref,account\n2026-10-02,7.00,,C-9,C3\n';
  await books.bankText('without.csv', text, { map: 'plain' });
  expect(await open('C3')).toEqual([]);
});

test('a file that begins inside an earlier one, at a balance of it, overlaps and is consistent', async () => {
  expect(await file('D4', 100, ['01', 10], ['02', 20], ['03', 30])).toEqual([]);
  expect(await file('D4', 110, ['02', 20], ['03', 30], ['04', 40])).toEqual([]);
  expect(await file('D4', 100, ['01', 10], ['02', 20])).toEqual([]);
  const [told] = await file('D4', 111, ['02', 20]);
  expect(told).toMatch(/they overlap and do not agree$/);
});

test('a gap that cannot be filled is closed with a reason', async () => {
  expect(await file('E5', 10, ['01', 5])).toEqual([]);
  expect(await file('E5', 99, ['03', 5])).toHaveLength(1);
  const [gap] = await open('E5');
  const exception = gap?.exception ?? '';
  const reason = 'the bank moved the account to another branch';
  await books.database.transaction((tx) => closeException(tx, books.acting, { exception, reason }));
  expect(await open('E5')).toEqual([]);
  expect(await file('E5', 104, ['04', 1])).toEqual([]);
});
