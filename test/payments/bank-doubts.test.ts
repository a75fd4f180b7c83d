/** Files whose amounts, signs or statements may mean two things: refused in words, or read without a loss. */
import { describe, expect, test } from 'vitest';
import { bankCsvSchema } from '../../src/config/bank-csv.ts';
import { readBankFile } from '../../src/payments/bank/read.ts';

/** The statements of a file, each with its signed amounts. */
function read(name: string, content: string | Buffer, map?: object) {
  const maps = map === undefined ? {} : { own: bankCsvSchema.parse({ account: '0001', ...map }) };
  return readBankFile({ name, bytes: Buffer.from(content as string) }, maps).statements.map((statement) => ({
    ...statement,
    amounts: statement.lines.map(({ direction, amount }) => `${direction === 'debit' ? '-' : ''}${amount}`),
  }));
}
const amounts = (name: string, content: string | Buffer, map?: object) =>
  read(name, content, map).flatMap((statement) => statement.amounts);

const transaction = (amount: string, { type = 'OTHER', id = 'F1', memo = 'INV-1' } = {}) =>
  `<STMTTRN><TRNTYPE>${type}<DTPOSTED>20261012<TRNAMT>${amount}<FITID>${id}<MEMO>${memo}</STMTTRN>`;
const ofx = (transactions: string, currency = 'USD') =>
  `OFXHEADER:100\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>${currency}<BANKACCTFROM><ACCTID>0001</BANKACCTFROM>` +
  `<BANKTRANLIST>${transactions}</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>\n`;

const mt940 = (amount: string, currency: string) =>
  [
    ...[':20:X', ':25:0001', ':28C:1/1', `:60F:C261001${currency}0,`, `:61:261012C${amount}NTRFNONREF`],
    ...[`:62F:C261012${currency}${amount}`, '-', ''],
  ].join('\n');

const csv = (amount: string) => `Day;Sum;Text\n2026-10-06;${amount};x\n`;
const ONE_COLUMN = { columns: { date: 'Day', amount: 'Sum', text: ['Text'] }, delimiter: ';' };

describe('thousands without decimals', () => {
  test.each([
    ['OFX in dollars', 'a.ofx', ofx(transaction('1.500')), undefined],
    ['OFX in yen', 'a.ofx', ofx(transaction('-1.000'), 'JPY'), undefined],
    ['OFX with two separators', 'a.ofx', ofx(transaction('1,500,000')), undefined],
    ['MT940 in yen', 'a.sta', mt940('1.000', 'JPY'), undefined],
    ['MT940 in euros', 'a.sta', mt940('1,500', 'EUR'), undefined],
    ['CSV with a decimal point', 'a.csv', csv('1.500'), ONE_COLUMN],
    ['CSV with a decimal comma', 'a.csv', csv('-1,500'), { ...ONE_COLUMN, decimal: ',' }],
  ])('are refused: 1.500 in %s', (_title, name, content, map) => {
    expect(() => amounts(name, content, map)).toThrow('may have thousands or decimals after its separator');
  });

  test('are read where only one meaning is left', () => {
    expect(amounts('a.ofx', ofx(transaction('1.500'), 'KWD'))).toEqual(['1.500']);
    expect(amounts('a.ofx', ofx(transaction('0.500')))).toEqual(['0.50']);
    expect(amounts('a.sta', mt940('1500,', 'JPY'))).toEqual(['1500']);
    expect(amounts('a.csv', csv('1,500'), ONE_COLUMN)).toEqual(['1500.00']);
    expect(amounts('a.csv', csv('1.500'), { ...ONE_COLUMN, decimal: ',' })).toEqual(['1500.00']);
  });
});

describe('a transaction of OFX', () => {
  test.each(['CREDIT', 'DEP', 'DIRECTDEP'])('of the type %s cannot be negative', (type) => {
    expect(amounts('a.ofx', ofx(transaction('5.00', { type })))).toEqual(['5.00']);
    expect(() => amounts('a.ofx', ofx(transaction('-5.00', { type })))).toThrow(`contradicts the type ${type}`);
  });

  test.each<readonly [type: string, reason: string]>([
    ['DEBIT', 'contradicts the type DEBIT'],
    ...['CHECK', 'FEE', 'SRVCHG'].map((type) => [type, `the ${type} of 5.00 has no minus sign`] as const),
  ])('of the type %s cannot be positive in a file without minus signs', (type, reason) => {
    expect(amounts('a.ofx', ofx(transaction('-5.00', { type })))).toEqual(['-5.00']);
    expect(() => amounts('a.ofx', ofx(transaction('5.00', { type })))).toThrow(reason);
  });

  test('of interest is earned or paid', () => {
    expect(amounts('a.ofx', ofx(transaction('-5.00', { type: 'INT' })))).toEqual(['-5.00']);
  });

  test.each(['5.0', '5,00', '+5.00', '05'])('occurs twice if its amount is once 5.00 and once %s', (again) => {
    const file = ofx(transaction('5.00') + transaction(again));
    expect(() => amounts('a.ofx', file)).toThrow('the transaction F1 occurs twice');
    expect(amounts('a.ofx', ofx(transaction('5.00') + transaction('-5.00')))).toEqual(['5.00', '-5.00']);
  });
});

test('a text of OFX that is longer than a piece of the file ends', () => {
  for (const memo of ['x'.repeat(40_000), `<![CDATA[${'x<'.repeat(100_000)}]]>`]) {
    const file = ofx(transaction('5.00', { memo }) + transaction('6.00', { id: 'F2' }));
    expect(amounts('a.ofx', file)).toEqual(['5.00', '6.00']);
  }
  const endless = ofx(transaction('5.00', { memo: 'x'.repeat(3_000_000) }));
  expect(() => amounts('a.ofx', endless)).toThrow('has an element of more than 1048576 bytes');
});

test('each message of a file is a statement (MT940) or an interim report (MT942), whichever is first', () => {
  const interim = ':20:Y\n:25:0002\n:28C:1/1\n:34F:EUR0,\n:61:261012C7,00NTRFNONREF\n:90D:0EUR0,\n:90C:1EUR7,\n-\n';
  const statement = mt940('5,00', 'EUR');
  for (const content of [statement + interim, interim + statement]) {
    const found = read('a.sta', content).map((each) => [each.account, each.only ?? 'booked', ...each.amounts]);
    expect(found.sort()).toEqual([
      ['0001', 'booked', '5.00'],
      ['0002', 'interim', '7.00'],
    ]);
  }
});

describe('camt.053', () => {
  const entry = (amount: string) =>
    `<Ntry><Amt Ccy="EUR">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-10-14</Dt>` +
    '</BookgDt><ValDt><Dt>2026-10-14</Dt></ValDt></Ntry>';
  const message = (entries: string, account = '0001') =>
    `<BkToCstmrStmt><Stmt><Id>S</Id><Acct><Id><Othr><Id>${account}</Id></Othr></Id><Ccy>EUR</Ccy></Acct>${entries}` +
    '</Stmt></BkToCstmrStmt>';
  const document = (content: string) =>
    `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">${content}</Document>`;
  const two = document(message(entry('10.00') + entry('20.00')));
  const prefixed = two.replaceAll(/<(\/?)(?=\w)/g, '<$1a-b:').replace('xmlns=', 'xmlns:a-b=');

  test.each([
    ['a name space prefix with a dash', prefixed],
    ['end tags with a space', two.replaceAll('</Ntry>', '</Ntry >')],
    ['one end tag with a space', two.replace('</Ntry>', '</Ntry\n>')],
    ['a long comment before the message', prefixed.replace('<a-b:Bk', `<!-- ${'x'.repeat(20_000)} --><a-b:Bk`)],
  ])('loses no entry: %s', (_title, content) => {
    expect(amounts('a.xml', content)).toEqual(['10.00', '20.00']);
  });

  test('reads the statements of all messages and documents of a file', () => {
    const [first, second] = [message(entry('10.00'), '0001'), message(entry('20.00'), '0002')];
    for (const content of [document(first + second), `<All>${document(first)}${document(second)}</All>`]) {
      expect(read('a.xml', content).map((each) => [each.account, each.amounts])).toEqual([
        ['0001', ['10.00']],
        ['0002', ['20.00']],
      ]);
    }
    const other = '<BkToCstmrAcctRpt><Rpt><Id>R</Id></Rpt></BkToCstmrAcctRpt>';
    expect(() => amounts('a.xml', document(first + other))).toThrow('cannot be read');
  });

  test('refuses an entry that is empty', () => {
    expect(() => amounts('a.xml', two.replace('<Ntry>', '<Ntry/><Ntry>'))).toThrow('a.xml (camt.053) cannot be read');
  });
});
