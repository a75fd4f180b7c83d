/** The bank reconciliation of an account with stated balances: it ties, or says by what it does not. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reportText } from '../../src/lists/report.ts';
import { bankReconciliation } from '../../src/lists/reports.ts';
import type { Month } from '../../src/month.ts';
import { bankReconciliationSheet, readBankReconciliation } from '../../src/reports/bank-reconciliation.ts';
import { readBooksReport } from '../../src/reports/books.ts';
import { type Books, HARBOUR, inv, openBooks } from '../payments/books.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

type Line = readonly [type: string, amount: number, reference: string, text: string];

/** A BAI2 statement of one day, in cents, with its opening and closing balance. */
function statement(day: string, opening: number, ...lines: readonly Line[]): string {
  return statementOf('0041', day, opening, ...lines);
}
function statementOf(account: string, day: string, opening: number, ...lines: readonly Line[]): string {
  const closing = opening + lines.reduce((sum, [type, amount]) => sum + (type < '400' ? amount : -amount), 0);
  const records = lines.map(([type, amount, reference, text]) => `16,${type},${amount},Z,${reference},,${text}/`);
  const control = opening + closing + lines.reduce((sum, [, amount]) => sum + amount, 0);
  return [
    ...[`01,BANK,OURS,${day},2000,1,80,,2/`, `02,OURS,BANK,1,${day},,USD,2/`],
    `03,${account},USD,010,${opening},,,015,${closing},,/`,
    ...records,
    ...[`49,${control},${records.length + 2}/`, `98,${control},1,${records.length + 4}/`],
    `99,${control},1,${records.length + 6}/`,
  ].join('\n');
}

let files = 0;
const bank = (text: string) => {
  files += 1;
  return books.bankText(`day-${files}.bai`, text);
};
const read = (on: string, account = '0041') =>
  books.database.reading((tx) => readBankReconciliation(tx, { on, account, today: '2026-10-31' }));

test('without a statement there is nothing to tie, and the report says so', async () => {
  expect(await read('2026-10-04')).toEqual({ on: '2026-10-04', accounts: [], ties: null });
  await books.record({
    partnerId: HARBOUR,
    amount: '12.00',
    reference: 'BY HAND',
    receivedOn: '2026-10-03',
    account: '0099',
  });
  const found = await read('2026-10-04', '0099');
  expect(found).toMatchObject({ ties: null, accounts: [{ state: 'no_statement', in_transit: '-12.00' }] });
  const text = reportText(bankReconciliation, found, 80);
  expect(text).toContain('0099 USD:\n  no statement to compare with');
  expect(text).toContain('No bank statement to compare with.');
  expect(text).not.toMatch(/\bties?\b/);
});

test('begins with the first stated balance, and ties when every line is in the books', async () => {
  await bank(statement('261005', 100_000, ['195', 33_333, 'A-1', inv(3)], ['698', 1_200, 'F-1', 'MISC FEES']));
  expect(await read('2026-10-05')).toMatchObject({
    ties: true,
    accounts: [
      {
        ...{ account: '0041', state: 'tied', opened_on: '2026-10-05', opening: '1000.00', items: [] },
        ...{ books: '321.33', expected: '1321.33', bank: '1321.33', difference: '0.00' },
      },
    ],
  });
  const text = reportText(bankReconciliation, await read('2026-10-05'), 80);
  expect(text).toContain('0041 USD:\n  ties');
  expect(text).toContain('opening balance of 2026-10-05, before the books');
  expect(Math.max(...text.split('\n').map((each) => each.length))).toBeLessThanOrEqual(80);
});

test('lists lines that are not in the books, and payments that no statement shows', async () => {
  await bank(statement('261006', 132_133, ['699', 5_000, 'X-1', 'PAYROLL SERVICE']));
  await books.record({
    partnerId: 'p-1',
    amount: '70.00',
    account: '0041',
    receivedOn: '2026-10-06',
    reference: 'CHECK-7',
  });
  const [account] = (await read('2026-10-06')).accounts;
  expect(account).toMatchObject({
    ...{ state: 'items', bank: '1271.33', books: '391.33', difference: '0.00' },
    ...{ not_in_books: '-50.00', in_transit: '-70.00' },
    items: [
      { kind: 'not_in_books', amount: '-50.00', state: 'unbooked', text: 'PAYROLL SERVICE · X-1' },
      { kind: 'in_transit', amount: '-70.00', text: 'CHECK-7' },
    ],
  });
  // The day before is as it was.
  expect((await read('2026-10-05')).ties).toBe(true);
  const [line] = account?.items.filter((each) => each.bank_line_id !== null) ?? [];
  await books.book({ bankLineId: line?.bank_line_id ?? 0, kind: 'other', account: 'expenses:payroll' });
  expect((await read('2026-10-06')).accounts).toMatchObject([{ state: 'tied', in_transit: '-70.00', items: [{}] }]);
  expect(bankReconciliationSheet(await read('2026-10-06')).rows.map((each) => 'amount' in each && each.amount)).toEqual(
    [...['341.33', '1000.00', '-70.00', '1271.33', '-70.00']],
  );
});

test('names what no line explains, as the close of the books does', async () => {
  books.at('2026-11-02T15:00:00Z');
  await bank(statement('261031', 140_000, ['195', 100, 'A-2', 'thanks']));
  const [account] = (await read('2026-10-31')).accounts;
  expect(account).toMatchObject({ state: 'differs', bank: '1401.00', difference: '128.67' });
  const report = await books.database.reading((tx) => readBooksReport(tx, books.acting, { month: '2026-10' as Month }));
  expect(report.bank_balances).toEqual([
    {
      ...{ account: '0041', currency: 'USD', bank: '1401.00', books: '342.33', difference: '1058.67' },
      ...{
        before_first_statement: '1000.00',
        not_in_books: '0.00',
        in_transit: '-70.00',
        withdrawn: '0.00',
        unexplained: '128.67',
      },
    },
  ]);
});

test('leaves out the lines of a statement that the bank issued again without them', async () => {
  const csv = (amount: string) =>
    [
      ...['01,BANK,OURS,261007,2000,1,80,,2/', '02,OURS,BANK,1,261007,,USD,2/', `03,0042,USD,010,0,,,015,${amount},,/`],
      `16,195,${amount},Z,S-A,,thanks/`,
      ...[`49,${Number(amount) * 2},3/`, `98,${Number(amount) * 2},1,5/`, `99,${Number(amount) * 2},1,7/`],
    ].join('\n');
  const first = await bank(csv('35000'));
  await bank(csv('35500'));
  expect(await read('2026-10-07', '0042')).toMatchObject({
    ties: false,
    accounts: [
      {
        ...{ bank: '355.00', books: '705.00', withdrawn: '-350.00', in_transit: '0.00', difference: '0.00' },
        ...{ state: 'items', items: [{ kind: 'withdrawn', amount: '-350.00', bank_line_id: null }] },
      },
    ],
  });
  expect(reportText(bankReconciliation, await read('2026-10-07', '0042'))).toContain(
    'in the books, on a statement that the bank withdrew',
  );
  await books.reverse({ paymentId: first.new_lines[0]?.payment_id ?? 0, on: '2026-10-07' });
  expect((await read('2026-10-07', '0042')).accounts).toMatchObject([{ books: '355.00', state: 'tied' }]);
});

test('what was recorded before the first statement belongs to its opening balance', async () => {
  const account = '0043';
  const record = (amount: string, receivedOn: string) =>
    books.record({ partnerId: 'p-1', amount, account, receivedOn, reference: `CHECK-${amount}` });
  await record('40.00', '2026-10-01');
  const mistaken = await record('30.00', '2026-10-02');
  await bank(statementOf(account, '261008', 100_000, ['195', 6_400, 'C-1', 'thanks']));
  const tied = { state: 'tied', books: '134.00', opening: '930.00', bank: '1064.00', items: [] };
  expect((await read('2026-10-08', account)).accounts).toMatchObject([tied]);
  // What was never received is not part of the balance.
  await books.reverse({ paymentId: mistaken.paymentId, kind: 'mistake', on: '2026-10-09' });
  expect((await read('2026-11-02', account)).accounts).toMatchObject([{ ...tied, books: '104.00', opening: '960.00' }]);
});

test('two statements of a day are taken in the order of their balances, whichever was imported first', async () => {
  const account = '0044';
  await bank(statementOf(account, '261008', 20_000, ['195', 6_500, 'D-2', 'afternoon']));
  await bank(statementOf(account, '261008', 10_000, ['195', 10_000, 'D-1', 'morning']));
  expect((await read('2026-10-08', account)).accounts).toMatchObject([
    { state: 'tied', books: '165.00', opening: '100.00', bank: '265.00' },
  ]);
});

test('a line that the bank booked after the day of its own statement counts once', async () => {
  const account = '0045';
  await books.bankText(
    'late-line.xml',
    `<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>
     <GrpHdr><MsgId>M-1</MsgId><CreDtTm>2026-10-08T23:00:00Z</CreDtTm></GrpHdr>
     <Stmt><Id>S-1</Id><CreDtTm>2026-10-08T23:00:00Z</CreDtTm>
     <Acct><Id><Othr><Id>${account}</Id></Othr></Id><Ccy>USD</Ccy></Acct>
     ${[
       ['OPBD', '0.00'],
       ['CLBD', '66.00'],
     ]
       .map(
         ([code, amount]) => `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="USD">${amount}</Amt>
     <CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-10-08</Dt></Dt></Bal>`,
       )
       .join('')}
     <Ntry><Amt Ccy="USD">66.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>
     <BookgDt><Dt>2026-10-09</Dt></BookgDt><AcctSvcrRef>E-1</AcctSvcrRef></Ntry></Stmt></BkToCstmrStmt></Document>`,
  );
  expect((await read('2026-10-09', account)).accounts).toMatchObject([
    { state: 'tied', books: '66.00', bank: '66.00', difference: '0.00' },
  ]);
});
