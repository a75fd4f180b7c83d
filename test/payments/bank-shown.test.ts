/** What the import of a bank file says beyond its lines: details of batches, corrections, totals without details, zip. */
import { crc32, deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { paymentImport } from '../../src/actions/payment/import.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import { type Books, inv, openBooks } from './books.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

const file = (name: string, content: string | Buffer) => ({ name, bytes: Buffer.from(content as string) });
const camt = (message: string, element: string, part: string, content: string) =>
  `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}.001.08"><${element}><${part}><Id>1</Id><Acct><Id><IBAN>` +
  `DE02120300000000202051</IBAN></Id><Ccy>EUR</Ccy></Acct>${content}</${part}></${element}></Document>`;
const entry = (details = '') =>
  '<Ntry><Amt Ccy="EUR">810.25</Amt><CdtDbtInd>CRDT</CdtDbtInd><BookgDt><Dt>2026-10-12</Dt></BookgDt>' +
  `<AcctSvcrRef>BATCH-7</AcctSvcrRef>${details}</Ntry>`;
const part = (amount: string, number: string) =>
  `<TxDtls><Amt Ccy="EUR">${amount}</Amt><RltdPties><Dbtr><Pty><Nm>Muenchner Fest GmbH</Nm></Pty></Dbtr></RltdPties>` +
  `<RmtInf><Ustrd>${number}</Ustrd></RmtInf></TxDtls>`;
const STATEMENT = camt('camt.053', 'BkToCstmrStmt', 'Stmt', entry());
const DETAILS = camt(
  'camt.054',
  'BkToCstmrDbtCdtNtfctn',
  'Ntfctn',
  entry(`<NtryDtls>${part('750.25', inv(8))}${part('60.00', inv(12))}</NtryDtls>`),
);
const context = () => ({ ...books, ...books.acting });
const unwrapped = ({ text }: { text: string }) => text.replaceAll('\n', ' ');

test('the details of a batch, once accepted, apply its payment to the invoices of the parts', async () => {
  await runAction(context(), paymentImport, { file: file('day.xml', STATEMENT) });
  const accept = [8, 12].map((number, index) => `DE02120300000000202051 line 1.${index + 1}: ${inv(number)}`);
  const { report } = await previewAction(context(), paymentImport, { file: file('details.xml', DETAILS) });
  expect(unwrapped(report)).toContain(
    'This file has the details of entries that a statement books. It adds no payment',
  );
  expect(report.attention).toBe(true);
  const done = await runAction(context(), paymentImport, { file: file('details.xml', DETAILS), accept });
  expect(done.json).toMatchObject({ lines: { new: 0 }, outcomes: { payment: 0, shown: 2 } });
  expect(await books.balance(inv(8))).toMatchObject({ status: 'paid' });
  expect(await books.balance(inv(12))).toMatchObject({ status: 'paid' });
  expect(await books.payments()).toMatchObject([{ amount: '810.25', applied: '810.25' }]);
});

test('details that come before their statement are no payment, and are attached once the statement has come', async () => {
  const batch = (name: string, details: string) =>
    entry(details.replace('<NtryDtls>', '<NtryDtls><Btch><NbOfTxs>2</NbOfTxs></Btch>')).replaceAll('BATCH-7', name);
  const parts = `<NtryDtls>${part('790.25', inv(4))}${part('20.00', inv(9))}</NtryDtls>`;
  const details = camt('camt.054', 'BkToCstmrDbtCdtNtfctn', 'Ntfctn', batch('BATCH-9', parts));
  const before = await books.payments();
  const first = await runAction(context(), paymentImport, { file: file('details.xml', details) });
  expect(first.json).toMatchObject({ lines: { new: 0 }, outcomes: { payment: 0, shown: 2 } });
  expect(await books.payments()).toEqual(before);
  const day = camt('camt.053', 'BkToCstmrStmt', 'Stmt', batch('BATCH-9', '<NtryDtls></NtryDtls>'));
  const { report } = await previewAction(context(), paymentImport, { file: file('day.xml', day) });
  expect(unwrapped(report)).toMatch(
    /is a batch without details\. If the bank has them in a camt\.054, import that file, also again/,
  );
  await runAction(context(), paymentImport, { file: file('day.xml', day) });
  const again = await runAction(context(), paymentImport, { file: file('details.xml', details) });
  expect(again.json).toMatchObject({
    new_lines: [
      { part: 1, payment_id: expect.any(Number), amount: '790.25' },
      { part: 2, payment_id: expect.any(Number), amount: '20.00' },
    ],
  });
  expect(await books.payments()).toHaveLength(before.length + 1);
});

test('the parts of an entry have numbers of their own', async () => {
  const day = camt(
    'camt.053',
    'BkToCstmrStmt',
    'Stmt',
    entry(`<NtryDtls>${part('750.25', 'x')}${part('60.00', 'y')}</NtryDtls>`),
  )
    .replaceAll('BATCH-7', 'BATCH-10')
    .replaceAll('2026-10-12', '2026-10-13');
  const { report } = await previewAction(context(), paymentImport, { file: file('parts.xml', day) });
  expect(report.json).toMatchObject({
    new_lines: [
      { position: 1, part: 1 },
      { position: 1, part: 2 },
    ],
  });
});

const bai = (status: string, account: string, ...transactions: readonly string[]) => {
  const control = [...account.matchAll(/,(?:010|015|100|400),(\d+)/g)].reduce((sum, [, each]) => sum + Number(each), 0);
  const total = transactions.reduce((sum, each) => sum + Number(each.split(',')[2]), control);
  const records = transactions.length + 2;
  return [
    ...['01,BANK,OURS,261013,0600,1,,,2/', `02,OURS,BANK,${status},261012,,USD,2/`, account, ...transactions],
    ...[`49,${total},${records}/`, `98,${total},1,${records + 2}/`, `99,${total},1,${records + 4}/`],
  ].join('\n');
};

test('the payments of a correction are recorded and not applied', async () => {
  const corrected = bai('3', '03,0007,USD/', `16,195,125000,Z,C-1,,HARBOUR LIGHTS TICKETING ${inv(1)}/`);
  const { report } = await previewAction(context(), paymentImport, { file: file('corrected.bai', corrected) });
  expect(unwrapped(report)).toContain('The group at line 2 corrects data that the bank sent earlier');
  expect(report.json).toMatchObject({
    new_lines: [{ applied: [], suggested: [{ number: inv(1) }], why: 'the bank corrects earlier data' }],
  });
});

test.each([
  ['2', 'deletes data that the bank sent earlier: its lines were not recorded'],
  ['4', 'is a test: its lines were not recorded'],
])('the lines of a group with the status %s are not recorded, and the import says why', async (status, why) => {
  const text = bai(status, '03,0007,USD/', `16,195,125000,Z,C-2,,${inv(1)}/`);
  const { report } = await previewAction(context(), paymentImport, { file: file('group.bai', text) });
  expect(report.json).toMatchObject({ lines: { total: 0 }, new_lines: [] });
  expect(unwrapped(report)).toContain(why);
});

test('an account with totals only is read, and the import says what is missing', async () => {
  const only = bai('1', '03,0007,USD,010,100000,,,015,150000,,,100,70000,3,,400,20000,1,/');
  const { report } = await previewAction(context(), paymentImport, { file: file('totals.bai', only) });
  expect(unwrapped(report)).toContain('Account 0007: the file has its balances and totals only, without transactions.');
  const some = bai('1', '03,0007,USD,100,70000,3,,400,20000,1,/', '16,195,50000,Z,C-3,,x/');
  const partial = await previewAction(context(), paymentImport, { file: file('partial.bai', some) });
  expect(unwrapped(partial.report)).toContain('no details of 200.00 USD of credits and 200.00 USD of debits');
});

/** A zip archive with these files. */
function zip(files: Readonly<Record<string, string>>, damage = 0) {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let at = 0;
  for (const [name, text] of Object.entries(files)) {
    const content = Buffer.from(text);
    const packed = deflateRawSync(content);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(8, 4);
    fields.writeUInt32LE((crc32(content) ^ damage) >>> 0, 10);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(content.length, 18);
    fields.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, Buffer.from(name), packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    entries.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00', 'latin1'), fields, rest, Buffer.from(name)]));
    locals.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, directory, end]);
}

test('a zip archive with a statement and the details of its batch is one import', async () => {
  const other = {
    'a/day.xml': STATEMENT.replaceAll('BATCH-7', 'BATCH-8'),
    'b.xml': DETAILS.replaceAll('BATCH-7', 'BATCH-8'),
  };
  const { report } = await previewAction(context(), paymentImport, { file: file('day.zip', zip(other)) });
  expect(report.json).toMatchObject({ format: 'camt053 camt054', lines: { total: 1 }, outcomes: { shown: 2 } });
});

test.each([
  ['cut off', zip({ 'day.xml': STATEMENT }).subarray(0, 200)],
  ['damaged', zip({ 'day.xml': STATEMENT }, 1)],
  ['a spreadsheet', zip({ 'xl/workbook.xml': '<x/>' })],
  ['empty', zip({ 'folder/': '' })],
])('a zip archive that is %s is refused', async (_title, bytes) => {
  const reading = previewAction(context(), paymentImport, { file: file('day.zip', bytes) });
  await expect(reading).rejects.toMatchObject({
    code: expect.stringMatching(/^bank_file_invalid|bank_format_not_read$/),
  });
});

test('a map is tried on a file before it is in the settings', async () => {
  const csv = file('july.csv', 'Posted,Sum,Memo\n10/12/2026,12.50,tried\n');
  const columns = 'date=Posted; amount=Sum; text=Memo; date_format=MM/dd/yyyy; account=0012';
  const { report } = await previewAction(context(), paymentImport, { file: csv, columns });
  expect(report.json).toMatchObject({ new_lines: [{ account: '0012', amount: '12.50', booked_on: '2026-10-12' }] });
  const wrong = previewAction(context(), paymentImport, {
    file: { ...csv },
    columns: 'date=Posted; amount=Sum; decimal=x',
  });
  await expect(wrong).rejects.toMatchObject({ code: 'argument_invalid' });
});

test('a zip archive with one statement under two names is refused', async () => {
  const twice = { 'a.xml': STATEMENT, 'copy/b.xml': STATEMENT };
  const reading = previewAction(context(), paymentImport, { file: file('day.zip', zip(twice)) });
  await expect(reading).rejects.toThrow(/statement 2: is statement 1 of .* again/);
});
