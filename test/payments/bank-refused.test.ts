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

const EXPORT = 'Order camt.053 or BAI2 statements of this account from the bank, or export its transactions as CSV.';
const CAMT053 = 'Order the camt.053 statements of this account from the bank';
const iso = (message: string, content: string) =>
  `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}">${content}</Document>`;
const enveloped = (document: string) =>
  `<BizMsgEnvlp><AppHdr xmlns="urn:iso:std:iso:20022:tech:xsd:head.001.001.01"><Fr/></AppHdr>${document}</BizMsgEnvlp>`;
const MT940 =
  ':20:STARTUMS\r\n:25:20030700/0001234567\r\n:28C:00001/001\r\n:60F:C261001EUR100,00\r\n' +
  ':61:2610011001C10,00N051NONREF\r\n:86:051?00GUTSCHRIFT\r\n:62F:C261001EUR110,00\r\n-\r\n';

test.each([
  ['MT940', 'commerzbank.txt', MT940, 'an MT940 statement', EXPORT],
  [
    'MT940 with the headers of SWIFT',
    'ing.sta',
    `{1:F01INGBNL2AXXX}{2:I940INGBNL2AXN}{4:\r\n${MT940}`,
    'an MT940',
    EXPORT,
  ],
  ['MT940 below lines of the bank', 'abn.csv', `ABNANL2A\r\n940\r\nABNANL2A\r\n${MT940}`, 'an MT940 statement', EXPORT],
  [
    'MT942',
    'interim.xml',
    ':20:X\n:25:1234\n:28C:1/1\n:34F:EUR0,00\n:13D:2610071200+0200\n:61:261007C10,00NTRFX\n',
    'an MT942 report',
    EXPORT,
  ],
  [
    'OFX 1',
    'anz.qfx',
    'OFXHEADER:100\r\nDATA:OFXSGML\r\nVERSION:102\r\n\r\n<OFX><SIGNONMSGSRSV1>',
    'an OFX file',
    EXPORT,
  ],
  [
    'OFX 2',
    'bank.csv',
    '<?xml version="1.0"?>\n<?OFX OFXHEADER="200" VERSION="211"?>\n<OFX></OFX>',
    'an OFX file',
    EXPORT,
  ],
  ['OFX without a header', 'bank.qbo', '<OFX><BANKMSGSRSV1></BANKMSGSRSV1></OFX>', 'an OFX file', EXPORT],
  ['camt.052', 'day.xml', iso('camt.052.001.08', '<BkToCstmrAcctRpt/>'), 'a camt.052 message', CAMT053],
  ['camt.054', 'day.camt053', iso('camt.054.001.08', '<BkToCstmrDbtCdtNtfctn/>'), 'a camt.054 message', CAMT053],
  ['camt.054 in an envelope', 'a.xml', enveloped(iso('camt.054.001.08', '')), 'a camt.054 message', CAMT053],
  ['camt.052 without its namespace', 'b.xml', '<Document>\n<BkToCstmrAcctRpt>\n', 'a camt.052 message', CAMT053],
  ['camt.052 in UTF-16', 'c.xml', Buffer.from(`\uFEFF${iso('camt.052.001.02', '')}`, 'utf16le'), 'a camt.052', CAMT053],
  ['a payment status report', 'd.xml', iso('pain.002.001.03', '<CstmrPmtStsRpt/>'), 'a pain.002 message', CAMT053],
  [
    'a zip',
    'statements.zip',
    Buffer.from('PK\x03\x04\x14\x00\x00\x00'),
    'a zip archive',
    'Unpack it and import the files',
  ],
])('%s is refused by its name, and the user is told what to get', async (_title, name, text, format, instead) => {
  const message = await told(name, text);
  expect(message).toContain(`bank_format_not_read: Nothing was recorded: ${name} is ${format}`);
  expect(message).toContain(instead);
  expect(message).not.toContain('for the file again');
  expect(await books.sql('SELECT name FROM bank_files')).toEqual([]);
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
