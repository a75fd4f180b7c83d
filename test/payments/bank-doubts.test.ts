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
