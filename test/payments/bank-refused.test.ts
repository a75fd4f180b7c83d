/** Bank files that are not read, and entries that no bank may state: refused for what they are, with nothing recorded. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Refusal } from '../../src/errors/refusals.ts';
import { readBankFile } from '../../src/payments/bank/read.ts';
import { type Books, inv, openBooks } from './books.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

/** What the user is told; fails where the file is read. */
async function told(name: string, text: string | Buffer): Promise<string> {
  try {
    await books.bankText(name, text as string);
  } catch (error) {
    if (error instanceof Refusal && error.exit === 2) return `${error.code}: ${error.message}`;
    throw error;
  }
  throw new Error(`${name} was read`);
}

const iso = (message: string, content: string) =>
  `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}">${content}</Document>`;
const enveloped = (document: string) =>
  `<BizMsgEnvlp><AppHdr xmlns="urn:iso:std:iso:20022:tech:xsd:head.001.001.01"><Fr/></AppHdr>${document}</BizMsgEnvlp>`;

test.each([
  ['a payment status report', 'd.xml', iso('pain.002.001.03', '<CstmrPmtStsRpt/>'), 'a pain.002 message'],
  ['a payment order in UTF-16', 'c.xml', Buffer.from(`\uFEFF${iso('pain.001.001.09', '')}`, 'utf16le'), 'a pain.001'],
  ['an account opening in an envelope', 'a.xml', enveloped(iso('acmt.007.001.02', '')), 'an acmt.007 message'],
  ['a PDF', 'statement.csv', '%PDF-1.7\n', 'a PDF'],
  ['an old spreadsheet', 'statement.csv', Buffer.from('D0CF11E0A1B11AE1', 'hex'), 'a spreadsheet'],
  ['the page of a bank', 'statement.csv', '\n<!DOCTYPE html><html></html>', 'a web page'],
  ['QIF', 'statement.txt', '!Type:Bank\nD10/07/2026\n', 'a QIF file'],
  ['EDIFACT', 'statement.txt', "UNA:+.? 'UNB+UNOA:1+BANK'", 'an EDIFACT file'],
])('%s is refused by its name, and the user is told what to import instead', async (_title, name, text, format) => {
  const message = await told(name, text);
  expect(message).toContain(`bank_format_not_read: Nothing was recorded: ${name} is ${format}`);
  expect(message).toMatch(/Import the statements of this account|Save it as CSV|Download the file itself/);
  expect(await books.sql('SELECT name FROM bank_files')).toEqual([]);
});

test('a refusal names the format that was seen, and does not send the user to the bank for the same file', async () => {
  const message = await told(
    'a.sta',
    ':20:X\n:25:1\n:28C:1/1\n:60F:C261001EUR0,00\n:61:nothing\n:62F:C261001EUR0,00\n-\n',
  );
  expect(message).toContain("a.sta (MT940) cannot be read:\n  line 5: 'nothing' is not an entry (:61:)");
  expect(message).toContain('If this file differs from the file at the bank, download it again.');
});

test('a camt.053 in an envelope is not taken for its header', () => {
  const read = () =>
    readBankFile({ name: 'a.xml', bytes: Buffer.from(enveloped(iso('camt.053.001.08', '<BkToCstmrStmt/>'))) }, {});
  expect(read).toThrow(expect.objectContaining({ code: 'bank_file_invalid' }));
});

const bal = (code: string, amount: string) =>
  `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd>` +
  '<Dt><Dt>2026-10-14</Dt></Dt></Bal>';
interface Entry {
  readonly amount?: string;
  readonly status?: string;
  readonly day?: string;
  readonly part?: string;
  readonly reference?: string;
}
const entry = ({ amount = '10.00', status = '', day = '2026-10-14', part = '', reference = 'R-1' }: Entry) =>
  `<Ntry><Amt Ccy="EUR">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd>${status}<BookgDt><Dt>${day}</Dt></BookgDt>` +
  `<ValDt><Dt>${day}</Dt></ValDt><AcctSvcrRef>${reference}</AcctSvcrRef><NtryDtls><TxDtls>${part}<RmtInf>` +
  `<Ustrd>${inv(4)}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`;
const statement = (content: string, account = 'DE02120300000000202051') =>
  iso(
    'camt.053.001.08',
    `<BkToCstmrStmt><Stmt><Id>S</Id><Acct><Id><Othr><Id>${account}</Id></Othr></Id><Ccy>EUR</Ccy></Acct>${content}` +
      '</Stmt></BkToCstmrStmt>',
  );
const CREDIT = (amount: string) => bal('OPBD', '100.00') + bal('CLBD', amount);

test.each([
  ['without balances', ''],
  ['with balances', CREDIT('110.00')],
])('an entry of a camt.053 that has no status is booked, %s', async (_title, balances) => {
  const report = await books.bankText('a.xml', statement(balances + entry({})), { preview: true });
  expect(report).toMatchObject({ lines: { new: 1 }, statements: [{ pending: 0 }], new_lines: [{ amount: '10.00' }] });
});

test('a file of which nothing is booked yet is no file that was imported', async () => {
  const pending = statement(CREDIT('100.00') + entry({ status: '<Sts><Cd>PDNG</Cd></Sts>' }));
  for (const _time of ['first', 'second']) {
    expect(await books.bankText('today.xml', pending)).toMatchObject({
      ...{ already_imported: null, lines: { total: 0, new: 0, known: 0 } },
      statements: [{ pending: 1 }],
    });
  }
  expect(await books.sql('SELECT name FROM bank_files')).toEqual([]);
});

test('an entry of zero is a remark of the bank', async () => {
  const report = await books.bankText('a.xml', statement(CREDIT('100.00') + entry({ amount: '0.00' })), {
    preview: true,
  });
  expect(report.lines).toEqual({ total: 0, new: 0, known: 0 });
});

const part = (amount: string) => `<Amt Ccy="EUR">${amount}</Amt>`;
const long = 'x1'.repeat(10_000);
const bai = (units: string) => {
  const total = BigInt(units) * 2n;
  return [
    '01,A,B,261014,0000,1,80,10,2/',
    '02,B,A,1,261014,,EUR,2/',
    `03,123456,EUR,010,0,,,015,${units},,/`,
    `16,195,${units},Z,R1,C1,text`,
    ...[`49,${total},3/`, `98,${total},1,5/`, `99,${total},1,7/`, ''],
  ].join('\n');
};

test.each([
  ['a negative amount', 'a.xml', statement(CREDIT('90.00') + entry({ amount: '-10.00' })), "'-10.00' is negative"],
  [
    'a negative part of a batch',
    'a.xml',
    statement(entry({ part: `${part('30.00')}</TxDtls><TxDtls>${part('-20.00')}` })),
    "'-20.00' is negative",
  ],
  ['a day of the year 0', 'a.xml', statement(entry({ day: '0000-10-14' })), "'0000-10-14' is not a date"],
  ['an endless reference', 'a.xml', statement(entry({ reference: long })), 'more than 500 bytes'],
  ['an endless account', 'a.xml', statement(entry({}), long), 'names an account of more than 500 bytes'],
  ['a negative amount in BAI2', 'a.bai', bai('-1000'), "'-1000' is not the amount of a transaction"],
  [
    'an amount of 25 digits in BAI2',
    'a.bai',
    bai('9'.repeat(25)),
    'is not an amount above 0 and below 1000000000000000',
  ],
])('%s is refused before it reaches the database', async (_title, name, text, reason) => {
  const message = await told(name, text);
  expect(message).toContain('bank_file_invalid: ');
  expect(message).toContain(reason);
});
