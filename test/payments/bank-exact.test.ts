/**
 * Small bank files, each with one thing that banks do or that damage does. What a file states is read exactly, or the file
 * is refused by the name of what is wrong, or the import says what was not checked. Nothing is lost in silence.
 */
import { crc32, deflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { triedBankMap } from '../../src/config/bank-csv.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { readBankFile } from '../../src/payments/bank/read.ts';

function mapWith(columns: string) {
  const map = triedBankMap(columns, undefined);
  if (!map.success) throw new Error(`not a map: ${columns}`);
  return map.data;
}

/** The signed amounts of each statement and what the import says of it, or why the file is refused. */
function outcomeOf(name: string, content: string | Buffer, columns = ''): string {
  const maps = columns === '' ? {} : { own: mapWith(columns) };
  try {
    const { statements } = readBankFile({ name, bytes: Buffer.from(content as string) }, maps);
    return statements
      .map(({ lines, pending, only, remarks = [] }) =>
        [
          ...lines.map(({ direction, amount }) => `${direction === 'debit' ? '-' : ''}${amount.toString()}`),
          ...(pending === 0 ? [] : [`pending ${pending}`]),
          ...[only ?? [], remarks].flat(2),
        ].join(' | '),
      )
      .join(' || ');
  } catch (error) {
    if (error instanceof Refusal && error.exit === 2) return `refused: ${error.message}`;
    throw error;
  }
}

type Case = readonly [title: string, content: string | Buffer, outcome: string | RegExp];
const check =
  (name: string, columns?: string) => (_title: string, content: string | Buffer, outcome: string | RegExp) => {
    const found = outcomeOf(name, content, columns);
    if (typeof outcome === 'string') expect(found).toBe(outcome);
    else expect(found).toMatch(outcome);
  };

const IBAN = 'DE75512108001245126199';
const NOT_CHECKED = `The statement of ${IBAN} has no opening or closing balance, so its sum was not checked.`;
const SUMMED = NOT_CHECKED.replace('not checked', 'only checked by the totals of its entries (TxsSummry)');

const ISO = 'urn:iso:std:iso:20022:tech:xsd:';
const balance = (code: string, amount: string, more = '<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-10-07</Dt></Dt>') =>
  `<Bal><Tp><CdOrPrtry>${code}</CdOrPrtry></Tp><Amt Ccy="EUR">${amount}</Amt>${more}</Bal>`;
const opens = (amount: string) => balance('<Cd>OPBD</Cd>', amount);
const closes = (amount: string) => balance('<Cd>CLBD</Cd>', amount);
const sheet = (content: string, account = IBAN) =>
  `<Stmt><Id>1</Id><Acct><Id><IBAN>${account}</IBAN></Id><Ccy>EUR</Ccy></Acct>${content}</Stmt>`;
const document = (content: string, namespace = `${ISO}camt.053.001.08`) =>
  `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="${namespace}"><BkToCstmrStmt><GrpHdr><CreDtTm>2026-10-07T20:00:00` +
  `</CreDtTm></GrpHdr>${content}</BkToCstmrStmt></Document>`;
const camt = (...content: readonly string[]) => document(sheet(content.join('')));
interface Entry {
  readonly way?: string;
  readonly status?: string;
  readonly dates?: string;
  readonly charges?: string;
  readonly currency?: string;
}
const BOOKED = '<Sts><Cd>BOOK</Cd></Sts>';
const entry = (amount: string, details = '', { way = 'CRDT', status = BOOKED, ...more }: Entry = {}) =>
  `<Ntry><Amt Ccy="${more.currency ?? 'EUR'}">${amount}</Amt><CdtDbtInd>${way}</CdtDbtInd>${status}` +
  `${more.dates ?? '<BookgDt><Dt>2026-10-07</Dt></BookgDt>'}${more.charges ?? ''}${details}</Ntry>`;
const part = (amount: string, way = '') =>
  `<TxDtls><Amt Ccy="EUR">${amount}</Amt>${way && `<CdtDbtInd>${way}</CdtDbtInd>`}<RltdPties><Dbtr><Nm>Kiosk am Tor</Nm></Dbtr></RltdPties></TxDtls>`;
const within = (name: string, amount: string) =>
  `<TxDtls><AmtDtls><${name}><Amt Ccy="EUR">${amount}</Amt></${name}></AmtDtls></TxDtls>`;
const details = (...parts: readonly string[]) => `<NtryDtls>${parts.join('')}</NtryDtls>`;
const batch = (number: number, total?: string) =>
  `<Btch><NbOfTxs>${number}</NbOfTxs>${total === undefined ? '' : `<TtlAmt Ccy="EUR">${total}</TtlAmt>`}</Btch>`;
const charges = (amount: string) => `<Chrgs><Rcrd><Amt Ccy="EUR">${amount}</Amt></Rcrd></Chrgs>`;
const page = (...content: readonly string[]) => camt(...content, entry('10.00'));
const interim = (amount: string) => balance('<Cd>ITBD</Cd>', amount);
const asOne = /^300\.00 \| .*entry 1 .*so it is one line, without a payer\./;

describe('camt.053', () => {
  test.each<Case>([
    ['no balance', page(), `10.00 | ${NOT_CHECKED}`],
    ['no closing balance', page(opens('5.00')), /^10\.00 \| .*has no closing balance, so its sum was not checked/],
    ['no opening balance', page(closes('5.00')), /^10\.00 \| .*has no opening balance, so its sum was not checked/],
    ['a balance of the bank only', page(balance('<Prtry>OPBD</Prtry>', '1.00')), `10.00 | ${NOT_CHECKED}`],
    [
      'two opening balances that differ',
      page(opens('5.00'), opens('6.00'), closes('15.00')),
      /refused.*has two balances OPBD: 5\.00 and 6\.00/s,
    ],
    ['the same opening balance twice', page(opens('5.00'), opens('5.00'), closes('15.00')), '10.00'],
    ['both balances', page(opens('5.00'), closes('15.00')), '10.00'],
    [
      'a closing balance that is wrong',
      page(opens('5.00'), closes('16.00')),
      /closing balance.* states 16\.00, .* 15\.00/,
    ],
    ['a balance that says not which it is', page(balance('', '1.00')), /refused.*a balance that does not say which/s],
    ['a balance without an amount', page(opens('')), /refused.*balance OPBD: '' is not an amount/s],
    [
      'a balance of no direction',
      page(balance('<Cd>OPBD</Cd>', '5.00', '')),
      /balance OPBD: '' is neither CRDT nor DBIT/,
    ],
    [
      'a balance of a day that is none',
      page(balance('<Cd>CLBD</Cd>', '1.00', '<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-10-41</Dt></Dt>')),
      /refused.*'2026-10-41' is not a date/s,
    ],
    ['the first page of a statement', page(opens('0.00'), interim('10.00')), '10.00'],
    ['the last page of a statement', page(interim('10.00'), closes('20.00')), '10.00'],
    [
      'a page that lacks a line',
      page(opens('0.00'), interim('30.00')),
      /refused.* states 30\.00, its records give 10\.00/s,
    ],
  ])('%s', check('a.xml'));

  const summary = (content: string) =>
    camt(`<TxsSummry>${content}</TxsSummry>`, entry('30.00'), entry('20.00', '', { way: 'DBIT' }));
  const net = (amount: string, way: string) =>
    `<TtlNtries><TtlNetNtry><Amt>${amount}</Amt><CdtDbtInd>${way}</CdtDbtInd></TtlNetNtry></TtlNtries>`;
  test.each<Case>([
    [
      'of all entries',
      summary('<TtlNtries><NbOfNtries>2</NbOfNtries><Sum>50.00</Sum></TtlNtries>'),
      `30.00 | -20.00 | ${SUMMED}`,
    ],
    [
      'that is wrong',
      summary('<TtlNtries><Sum>51.00</Sum></TtlNtries>'),
      /refused.* states 51\.00, its records give 50\.00/s,
    ],
    ['of one side', summary('<TtlCdtNtries><Sum>30.00</Sum></TtlCdtNtries>'), `30.00 | -20.00 | ${NOT_CHECKED}`],
    [
      'of both sides',
      summary('<TtlCdtNtries><Sum>30.00</Sum></TtlCdtNtries><TtlDbtNtries><Sum>20.00</Sum></TtlDbtNtries>'),
      `30.00 | -20.00 | ${SUMMED}`,
    ],
    ['that is net', summary(net('10.00', 'CRDT')), `30.00 | -20.00 | ${SUMMED}`],
    [
      'that is net on the other side',
      summary(net('10.00', 'DBIT')),
      /refused.* states 10\.00, its records give -10\.00/s,
    ],
    [
      'that is net, as version 2 writes it',
      summary('<TtlNtries><TtlNetNtryAmt>10.00</TtlNetNtryAmt><CdtDbtInd>CRDT</CdtDbtInd></TtlNtries>'),
      `30.00 | -20.00 | ${SUMMED}`,
    ],
  ])('a sum of entries %s', check('a.xml'));

  test.each<Case>([
    ['is given', camt(entry('10.00')), `10.00 | ${NOT_CHECKED}`],
    ['is not given', camt(entry('10.00', '', { status: '' })), `10.00 | ${NOT_CHECKED}`],
    [
      'is text, as version 2 writes it',
      camt(entry('10.00', '', { status: '<Sts>BOOK</Sts>' })),
      `10.00 | ${NOT_CHECKED}`,
    ],
    ...['PDNG', 'INFO', 'FUTR'].map(
      (each): Case => [
        `is ${each}`,
        camt(entry('10.00', '', { status: `<Sts><Cd>${each}</Cd></Sts>` })),
        `pending 1 | ${NOT_CHECKED}`,
      ],
    ),
    ...['<Sts><Cd>BOOKD</Cd></Sts>', '<Sts>BOOKD</Sts>', '<Sts><Prtry>BOOKD</Prtry></Sts>'].map(
      (each): Case => [
        `is ${each}`,
        camt(entry('10.00', '', { status: each })),
        /refused.*'BOOKD' is not a status \(Sts\) that is known: BOOK, PDNG, INFO, FUTR/s,
      ],
    ),
    ['is empty', camt(entry('10.00', '', { status: '<Sts/>' })), /refused.*'' is not a status/s],
  ])('an entry whose status %s', check('a.xml'));

  test.each<Case>([
    [
      'two batches',
      camt(entry('300.00', details(batch(1, '100.00'), part('100.00')) + details(batch(1, '200.00'), part('200.00')))),
      `100.00 | 200.00 | ${NOT_CHECKED}`,
    ],
    [
      'mixed signs',
      camt(entry('80.00', details(part('100.00', 'CRDT'), part('20.00', 'DBIT')))),
      `100.00 | -20.00 | ${NOT_CHECKED}`,
    ],
    [
      'mixed signs that do not add up',
      camt(entry('80.00', details(part('60.00', 'CRDT'), part('20.00', 'DBIT')))),
      /refused.* states 80\.00, its records give 40\.00/s,
    ],
    [
      'charges',
      camt(entry('285.00', details(part('100.00'), part('200.00')), { charges: charges('15.00') })),
      `100.00 | 200.00 | -15.00 | ${NOT_CHECKED}`,
    ],
    [
      'charges that explain nothing',
      camt(entry('300.00', details(part('110.00'), part('200.00')), { charges: charges('5.00') })),
      /^300\.00 \| .*310\.00 in all, which its charges do not explain, so it is one line/,
    ],
    [
      'one transaction of two lost',
      camt(entry('300.00', details(part('200.00')))),
      /refused.*its transactions: the file states 300\.00, its records give 200\.00/s,
    ],
    [
      'one transaction of two lost, as version 2 writes it',
      camt(entry('300.00', details(within('TxAmt', '200.00')))),
      /refused.* states 300\.00, its records give 200\.00/s,
    ],
    [
      'one debit of two lost',
      camt(entry('300.00', details(part('200.00')), { way: 'DBIT' })),
      /refused.* states 300\.00, its records give 200\.00/s,
    ],
    [
      'one transaction that is larger than its entry',
      camt(entry('80.00', details(part('100.00', 'CRDT')))),
      /refused.* states 80\.00, its records give 100\.00/s,
    ],
    ['one instructed amount of two lost', camt(entry('300.00', details(within('InstdAmt', '200.00')))), asOne],
    [
      'fewer transactions than its batch',
      camt(entry('300.00', details(batch(2), part('200.00')))),
      /refused.*has a batch of 2 transactions \(Btch\/NbOfTxs\) with the details of 1/s,
    ],
    [
      'one transaction with the amount of all three of its batch',
      camt(entry('300.00', details(batch(3, '300.00'), part('300.00')))),
      /^300\.00 \| .*entry 1 .*it has a batch of 3 transactions \(Btch\/NbOfTxs\) with the details of 1, so it is one line, without a payer/,
    ],
    [
      'a batch that states its number and gives no details',
      camt(entry('300.00', details(batch(2, '300.00')))),
      /^300\.00 \| .*entry 1 .* is a batch without details\. If the bank has them in a camt\.054, import that file/,
    ],
    [
      'details of one of many without an amount',
      camt(entry('300.00', details(batch(9), '<TxDtls><RltdPties/></TxDtls>'))),
      asOne,
    ],
    [
      'a transaction of no direction',
      camt(entry('300.00', details(part('300.00', 'CREDIT')))),
      /refused.*CdtDbtInd of a transaction \(TxDtls\): 'CREDIT' is neither CRDT nor DBIT/s,
    ],
    [
      'charges of no direction',
      camt(
        entry('300.00', details(part('301.00')), {
          charges: charges('1.00').replace('<Amt', '<CdtDbtInd>C</CdtDbtInd><Amt'),
        }),
      ),
      /refused.*CdtDbtInd of charges \(Chrgs\): 'C' is neither CRDT nor DBIT/s,
    ],
    ['two transactions without amounts', camt(entry('300.00', details('<TxDtls/>', '<TxDtls/>'))), asOne],
    [
      'another total than its batch',
      camt(entry('300.00', details(batch(2, '310.00'), part('100.00'), part('200.00')))),
      /refused.*Btch\/TtlAmt.* states 310\.00/s,
    ],
    [
      'a summary that counts its transactions',
      camt(
        '<TxsSummry><TtlNtries><NbOfNtries>2</NbOfNtries><Sum>300.00</Sum></TtlNtries></TxsSummry>',
        entry('300.00', details(part('100.00'), part('200.00'))),
      ),
      `100.00 | 200.00 | ${SUMMED}`,
    ],
  ])('an entry with %s', check('a.xml'));

  test('an entry that is one line in place of its details names none of their payers', () => {
    const text = camt(entry('300.00', details(batch(9), part('300.00').replace(/<Amt.*?<\/Amt>/, ''))));
    const [{ lines } = { lines: [] }] = readBankFile({ name: 'a.xml', bytes: Buffer.from(text) }, {}).statements;
    expect(lines.map(({ payer_name }) => payer_name)).toEqual([undefined]);
  });

  test.each<Case>([
    ...[',', 'E'].map(
      (each): Case => [`100${each}00`, camt(entry(`100${each}00`)), /refused.*is not an amount in EUR/s],
    ),
    ['nothing', camt(entry('')), /refused.*'' is not an amount in EUR/s],
    ['-100.00', camt(entry('-100.00', details(part('-100.00')))), /refused.*'-100\.00' is negative/s],
    ...['100.00000', '+100.00', ' 100.00 ', '100.'].map(
      (each): Case => [each, camt(entry(each)), `100.00 | ${NOT_CHECKED}`],
    ),
    ['.50', camt(entry('.50')), `0.50 | ${NOT_CHECKED}`],
    ['dollars', camt(entry('10.00', '', { currency: 'USD' })), /refused.*is in USD, but the account is in EUR/s],
  ])('an amount of %s', check('a.xml'));

  const xml = camt(entry('10.00'));
  const READ = `10.00 | ${NOT_CHECKED}`;
  const header = `<AppHdr xmlns="${ISO}head.001.001.02"><BizMsgIdr>x</BizMsgIdr></AppHdr>`;
  const enveloped = (text: string) => `<BizMsgEnvlp>${header}${text.replace(/^<\?.*?\?>/, '')}</BizMsgEnvlp>`;
  const named = (encoding: string) => xml.replace('UTF-8', encoding).replace('<Id>1<', '<Id>\u00fc<');
  test.each<Case>([
    ['in an envelope', enveloped(xml), READ],
    [
      'in an envelope of SWIFT, which has a body',
      `<Saa:DataPDU xmlns:Saa="urn:swift:saa:xsd:saa.2.0"><Saa:Body>${enveloped(xml).replace(/<\/?BizMsgEnvlp>/g, '')}</Saa:Body></Saa:DataPDU>`,
      READ,
    ],
    [
      'in envelopes at two levels',
      `<a>${enveloped(xml)}<b>${enveloped(xml.replace('10.00', '7.00'))}</b></a>`,
      `${READ} || 7.00 | ${NOT_CHECKED}`,
    ],
    ['in UTF-16', Buffer.from(`\ufeff${named('UTF-16')}`, 'utf16le'), READ],
    ['in UTF-16, the other byte first', Buffer.from(`\ufeff${named('UTF-16')}`, 'utf16le').swap16(), READ],
    ['in Latin-1', Buffer.from(named('ISO-8859-1'), 'latin1'), READ],
    ['in Windows-1252', Buffer.from(named('windows-1252'), 'latin1'), READ],
    ['in Latin-1 that says UTF-8', Buffer.from(named('UTF-8'), 'latin1'), /refused.*is not text in UTF-8/s],
    ['cut off', xml.slice(0, -80), /refused.*is not XML/s],
    [
      'with an entry outside its statement',
      xml.replace('</Stmt>', `</Stmt>${entry('7.00')}`),
      /refused.*has an entry \(Ntry\) outside a statement \(Stmt\)/s,
    ],
    ['with a document type', xml.replace('?>', '?><!DOCTYPE l [<!ENTITY a "aa">]>'), /refused.*document type/s],
    [
      'with an entry that names entries',
      camt(entry('10.00'), '<Ntry from="0" to="1"/>'),
      /refused.*entry 2: '' is not an amount in EUR/s,
    ],
    ['without dates', camt(entry('10.00', '', { dates: '' })), READ],
    [
      'with the time of an entry',
      camt(entry('10.00', '', { dates: '<BookgDt><DtTm>2026-10-07T23:30:00-05:00</DtTm></BookgDt>' })),
      READ,
    ],
  ])('a file %s', check('a.xml'));

  const referenced = (reference: string, amount = '10.00') =>
    entry(amount).replace('</Ntry>', `<AcctSvcrRef>${reference}</AcctSvcrRef></Ntry>`);
  test.each<Case>([
    [
      'in a file without balances',
      camt(referenced('R1'), referenced('R1')),
      /refused.*entry 2: is entry 1 \(R1\) again/s,
    ],
    [
      'in a notification',
      camt(referenced('R1'), referenced('R1'))
        .replaceAll('camt.053', 'camt.054')
        .replaceAll('BkToCstmrStmt', 'BkToCstmrDbtCdtNtfctn')
        .replaceAll('Stmt>', 'Ntfctn>'),
      /refused.*entry 2: is entry 1 \(R1\) again/s,
    ],
    [
      'that the balances contain twice',
      camt(opens('0.00'), closes('20.00'), referenced('R1'), referenced('R1')),
      '10.00 | 10.00',
    ],
    ['without a reference', camt(entry('10.00'), entry('10.00')), `10.00 | 10.00 | ${NOT_CHECKED}`],
    ['with another amount', camt(referenced('R1'), referenced('R1', '7.00')), `10.00 | 7.00 | ${NOT_CHECKED}`],
  ])('an entry that occurs twice %s', check('a.xml'));

  const prefixed = (text: string) => text.replace(/<(\/?)(?=[A-Z])/g, '<$1c:').replace('xmlns=', 'xmlns:c=');
  const foreign = (text: string) => `<Ntry xmlns="urn:other">${text.slice('<Ntry>'.length)}`;
  test.each<Case>([
    ['none', xml.replace(/ xmlns="[^"]*"/, ''), READ],
    ['one with a prefix', prefixed(xml), READ],
    [
      'two prefixes of one namespace',
      prefixed(xml).replace('xmlns:c=', `xmlns:d="${ISO}camt.053.001.08" xmlns:c=`).replaceAll('c:Ntry>', 'd:Ntry>'),
      READ,
    ],
    [
      'another one',
      document(sheet(entry('10.00')), 'urn:other'),
      /refused.*has the element Document in the namespace 'urn:other', which is not camt/s,
    ],
    ['none that is declared', prefixed(xml).replace(/ xmlns:c="[^"]*"/, ''), /refused.*Document in the namespace 'c'/s],
    [
      'another one for an entry',
      camt(entry('10.00'), foreign(entry('20.00'))),
      /refused.*has the element Ntry in the namespace 'urn:other'/s,
    ],
    [
      'another one for an entry, with a prefix',
      camt(
        entry('10.00'),
        entry('20.00').replaceAll('Ntry>', 'o:Ntry>').replace('<o:Ntry>', '<o:Ntry xmlns:o="urn:other">'),
      ),
      /refused.*Ntry in the namespace 'urn:other'/s,
    ],
    [
      'another one for an amount',
      camt(entry('10.00').replace('<Amt Ccy="EUR">', '<o:Amt xmlns:o="urn:other">20.00</o:Amt><Amt Ccy="EUR">')),
      READ,
    ],
    [
      'another one for supplementary data',
      camt(
        entry('10.00').replace(
          '</Ntry>',
          '<SplmtryData><Envlp><x xmlns="urn:other"><Bal/></x></Envlp></SplmtryData></Ntry>',
        ),
      ),
      READ,
    ],
    [
      'another message',
      document(sheet('')).replace(/BkToCstmrStmt/g, 'CstmrPmtStsRpt'),
      /refused.*has no camt\.053 statement \(Stmt\): it begins with the element Document/s,
    ],
    ['another XML', '<statement><amount>1.00</amount></statement>', /refused.*it begins with the element statement/s],
  ])('a file whose namespace is %s', check('a.xml'));
});

const message = (...fields: readonly string[]) =>
  [':20:X', ':25:10020030/1234567', ':28C:1/1', ...fields, '-', ''].join('\n');
const OPEN = ':60F:C261006EUR5,00';
const LINE = ':61:2610071007C10,00NTRFNONREF//R1';
const CLOSE = ':62F:C261007EUR15,00';
const whole = (...between: readonly string[]) => message(OPEN, LINE, ...between, CLOSE);
const envelope = (text: string) => `{1:F01X}{2:O940X}{4:\n${text.replace(/-\n$/, '-}')}{5:{CHK:1}}`;

describe('MT940', () => {
  test.each<Case>([
    ['whole', whole(), '10.00'],
    ['without an opening balance', message(LINE, CLOSE), /refused.*has no balance \(:60F:\)/s],
    ['without a closing balance', message(OPEN, LINE), /refused.*has no balance \(:62F:\)/s],
    ['with a balance without whole digits', message(':60F:C261006EUR,00', LINE, ':62F:C261007EUR10,'), '10.00'],
    ['with a space in an amount', whole(LINE.replace('C10,00', 'C1 000,00')), /refused.*is not an entry \(:61:\)/s],
    ['that ends with Ctrl-Z', `${whole()}\x1a`, '10.00'],
    ['that is filled with NUL', `${whole()}\0\0\0`, '10.00'],
    ['with an empty balance', message(':60F:', LINE, CLOSE), /refused.*'' is not a balance/s],
    [
      'with two opening balances',
      message(OPEN, ':60M:C261006EUR5,00', LINE, CLOSE),
      /refused.*the field :60M: occurs twice/s,
    ],
    ['with a field that is unknown', whole(':12:940'), /refused.*the field :12: is not one of a statement/s],
    [
      'with a note of the bank',
      `${whole().slice(0, -2)}:86:Ihr Berater: Herr Tor\nTel. 1\n-\n`,
      '10.00 | The bank writes of 10020030/1234567: Ihr Berater: Herr Tor Tel. 1',
    ],
    [
      'with a note at its head',
      message(':NS:22Kiosk', OPEN, LINE, CLOSE),
      '10.00 | The bank writes of 10020030/1234567: 22Kiosk',
    ],
    ['with lines that have no field', message(OPEN, 'carried forward', LINE, CLOSE), /^10\.00 \| .*: carried forward$/],
    ['in envelopes that share lines', envelope(whole()) + envelope(whole().replace('1/1', '2/1')), '10.00 || 10.00'],
    [
      'in an envelope that begins before the other has ended',
      envelope(whole()).replace(/-\}.*/, '') + envelope(whole()),
      /refused.*begins a message \(:20:\) before the previous one has ended/s,
    ],
  ])('a message %s', check('a.sta'));

  test('keeps every text of an entry', () => {
    const [statement] = readBankFile(
      { name: 'a.sta', bytes: Buffer.from(whole(':86:one', ':86:INV-2026-000004', ':NS:two')) },
      {},
    ).statements;
    const [line] = statement?.lines ?? [];
    expect(line?.text).toBe('one INV-2026-000004');
    expect(line?.references.map(({ text }) => text)).toEqual(expect.arrayContaining(['one INV-2026-000004', 'two']));
    expect(line?.raw).toBe(`${LINE}\n:86:one\n:86:INV-2026-000004\n:NS:two`);
  });
});

const NO_BALANCE = 'The statement of 0099 has no opening or closing balance, so its sum was';
const bai = (account: string, ...records: readonly string[]) =>
  ['01,B,A,261007,2000,1,,,2/', '02,A,B,1,261007,,USD,2/', account, ...records, ''].join('\n');
const ends = (total: string, records: number) => [
  `49,${total},${records}/`,
  `98,${total},1,${records + 2}/`,
  `99,${total},1,${records + 4}/`,
];
const CREDIT = '16,142,5000,Z,R1,,INV-2026-000001/';
const OWN_TYPES = ['16,921,5000,Z,R1,,INV-2026-000001/', '16,960,500,Z,R2,,STANDING ORDER/'];

describe('BAI2', () => {
  test.each<Case>([
    [
      'no balance',
      bai('03,0099,USD/', CREDIT, ...ends('5000', 3)),
      `50.00 | ${NO_BALANCE} only checked by its control total, which has no signs.`,
    ],
    ['nothing to check', bai('03,0099,USD/', CREDIT, ...ends('', 3)), `50.00 | ${NO_BALANCE} not checked.`],
    [
      'totals only',
      bai('03,0099,USD,100,5000,,,400,0,,/', CREDIT, ...ends('10000', 3)),
      `50.00 | ${NO_BALANCE} only checked by its totals of credits and debits.`,
    ],
    [
      'an opening balance only',
      bai('03,0099,USD,010,100,,/', CREDIT, ...ends('5100', 3)),
      /^50\.00 \| .*has no closing balance/,
    ],
    [
      'a blank closing balance',
      bai('03,0099,USD,010,100,,,015,,,/', CREDIT, ...ends('5100', 3)),
      /^50\.00 \| .*has no closing balance/,
    ],
    ['both balances', bai('03,0099,USD,010,100,,,015,5100,,/', CREDIT, ...ends('10200', 3)), '50.00'],
    [
      'a balance that cannot be read',
      bai('03,0099,USD,010,1x0,,/', CREDIT, ...ends('5000', 3)),
      /refused.*'1x0' is not an amount/s,
    ],
    [
      'a balance twice, with other amounts',
      bai('03,0099,USD,015,5100,,,015,5000,,/', CREDIT, ...ends('15100', 3)),
      /refused.*states type 015 twice: 5100 and 5000/s,
    ],
    [
      'the same balance twice',
      bai('03,0099,USD,010,100,,,015,5100,,,015,5100,,/', CREDIT, ...ends('15300', 3)),
      '50.00',
    ],
    [
      'summaries only',
      bai('03,0099,USD,010,100,,,015,150,,,100,70,3,,400,20,1,/', ...ends('340', 2)),
      / \| Account 0099: the file has its balances and totals only|^Account 0099: the file has its balances and totals only/,
    ],
    [
      'detail totals only',
      bai('03,0099,USD,010,500,,,190,700,4,0,110/', '88,700,4,/', ...ends('1900', 3)),
      /^Account 0099: the file has its balances and totals only/,
    ],
    [
      'a comma more before a continuation',
      bai('03,0099,USD,010,100,,,015,5100,,,/', '88,072,000,,/', CREDIT, ...ends('10200', 4)),
      '50.00',
    ],
    ['an end of Ctrl-Z', `${bai('03,0099,USD/', CREDIT, ...ends('5000', 3))}\x1a`, /^50\.00/],
    ['several records on a line', bai('03,0099,USD/', CREDIT, ...ends('5000', 3)).replaceAll('/\n', '/ '), /^50\.00/],
    [
      'a payer in UTF-8',
      bai('03,0099,USD/', CREDIT.replace('INV', 'ORIG CO NAME:MÜLLER TRN: INV'), ...ends('5000', 3)),
      /^50\.00/,
    ],
    [
      "a credit and a debit of the bank's own types",
      bai('03,0099,USD,010,100,,,015,4600,,/', ...OWN_TYPES, ...ends('10200', 4)),
      '50.00 | -5.00',
    ],
    [
      "a credit of the bank's own types that is lost",
      bai('03,0099,USD,010,100,,,015,4600,,/', OWN_TYPES[1] ?? '', ...ends('5200', 3)),
      /refused.*closing ledger balance \(015\): the file states 46\.00, its records give -4\.00/s,
    ],
    [
      'transactions of a loan, which are neither credits nor debits',
      bai('03,0099,USD,010,100,,,015,5100,,/', CREDIT, '16,721,700,Z/', '16,721,300,Z/', ...ends('11200', 5)),
      '50.00 | Account 0099: transactions of type 721, which are neither credits nor debits, were not recorded: 2 of 10.00 USD in all, the first at line 5.',
    ],
    [
      'a text of the bank that has no amount',
      bai('03,0099,USD,010,100,,,015,5100,,/', CREDIT, '16,890,,,,,BRANCH CLOSED ON FRIDAY/', ...ends('10200', 4)),
      '50.00 | The bank writes of 0099: BRANCH CLOSED ON FRIDAY',
    ],
    [
      'a credit that has no amount',
      bai('03,0099,USD/', CREDIT.replace('5000', ''), ...ends('0', 3)),
      /refused.*'' is not the amount of a transaction/s,
    ],
    ...['1', '2', '3', '4', ''].map(
      (modifier): Case => [
        `the as-of-date modifier '${modifier}'`,
        bai('03,0099,USD,010,100,,,015,5100,,/', CREDIT, ...ends('10200', 3)).replace('USD,2/', `USD,${modifier}/`),
        ['1', '3'].includes(modifier) ? '50.00 | interim' : '50.00',
      ],
    ),
  ])('an account with %s', check('a.bai'));
});

const MAP = 'date=day; amount=amount; balance=balance; text=text; account=0099; currency=USD';
const rows = (...lines: readonly string[]) => ['day,amount,balance,text', ...lines, ''].join('\n');
const day = (date: number, amount: string, balanceOf = '') => `2026-10-0${date},${amount},${balanceOf},A`;

describe('CSV', () => {
  test.each<Case>([
    ['beside each line', rows(day(1, '10.00', '15.00'), day(2, '-3.00', '12.00')), '10.00 | -3.00'],
    [
      'beside the last line of a day',
      rows(day(1, '10.00'), day(1, '2.00', '17.00'), day(2, '1.00'), day(2, '-3.00', '15.00')),
      '10.00 | 2.00 | 1.00 | -3.00',
    ],
    [
      'beside the last line of a day, the newest first',
      rows(day(2, '-3.00', '15.00'), day(2, '1.00'), day(1, '2.00', '17.00'), day(1, '10.00')),
      '-3.00 | 1.00 | 2.00 | 10.00',
    ],
    [
      'that does not include a line',
      rows(day(1, '10.00', '15.00'), day(2, '1.00'), day(2, '-3.00', '12.00')),
      /refused.*line 4: running balance.* states 12\.00, its records give 13\.00/s,
    ],
    ['before which a line is blank', `\n${rows(day(1, '10.00', '15.00'))}`, '10.00'],
    [
      'before a footer',
      rows(day(1, '10.00', '15.00'), 'Total,10.00,,'),
      /refused.*line 3: 'Total' is not a date .* add a rule to the map that skips such rows \(skip_rows\)/s,
    ],
    ['beside no line', rows(day(1, '10.00'), day(2, '-3.00')), `10.00 | -3.00 | ${NO_BALANCE} not checked.`],
    [
      'beside the last line only',
      rows(day(1, '10.00'), day(2, '-3.00', '12.00')),
      /^10\.00 \| -3\.00 \| .*has no opening balance, so its sum was not checked/,
    ],
    [
      'that is not there for the last line',
      rows(day(1, '10.00', '15.00'), day(2, '-3.00')),
      /has no opening or closing balance, so its sum was not checked/,
    ],
    ['that cannot be read', rows(day(1, '10.00', '1x')), /refused.*'1x' is not an amount in USD/s],
    [
      'beside the last line of a day, the newest day first',
      rows(day(2, '1.00'), day(2, '-3.00', '15.00'), day(1, '10.00'), day(1, '2.00', '17.00')),
      '1.00 | -3.00 | 10.00 | 2.00',
    ],
    [
      'beside an amount of zero that is wrong',
      rows(day(1, '10.00', '15.00'), day(2, '0.00', '777.00'), day(3, '3.00', '18.00')),
      /refused.*line 3: running balance.* states 777\.00, its records give 15\.00/s,
    ],
    [
      'beside an amount of zero',
      rows(day(1, '10.00', '15.00'), day(2, '0.00', '15.00'), day(3, '3.00', '18.00')),
      '10.00 | 3.00',
    ],
  ])('a balance %s', check('a.csv', MAP));

  /** The opening and the closing balance. */
  const balancesOf = (...lines: readonly string[]) => {
    const { statements } = readBankFile({ name: 'a.csv', bytes: Buffer.from(rows(...lines)) }, { own: mapWith(MAP) });
    return statements.map(({ opening, closing }) => `${opening} to ${closing}`).join();
  };
  test.each([
    ['with the newest line first', [day(2, '10', '110'), day(1, '-10', '100')], '110.00 to 110.00'],
    ['with the oldest line first', [day(1, '10', '110'), day(2, '-10', '100')], '100.00 to 100.00'],
    [
      'with the lines of a day in no order, if the first day sums to zero',
      [
        ...[day(1, '-10', '100'), day(1, '5', '110'), day(1, '5', '105')],
        ...[day(2, '7', '107'), day(2, '1', '109'), day(2, '1', '108')],
      ],
      '100.00 to 109.00',
    ],
    [
      'with the lines of a day in no order, if each day sums to zero',
      [...[day(1, '-10', '100'), day(1, '5', '110'), day(1, '5', '105')], ...[day(2, '-1', '105'), day(2, '1', '106')]],
      '105.00 to 105.00',
    ],
  ])('a file %s has its balances', (_, lines, balances) => expect(balancesOf(...lines)).toBe(balances));

  test('remarks with the amount zero alone are no statement', () => {
    const own = mapWith(MAP);
    const text = rows('2026-10-01,0.00,15.00,0098', '2026-10-01,1.00,15.00,0099', '2026-10-01,2.00,3.00,0097');
    const maps = { own: { ...own, columns: { ...own.columns, account: 'text' } } };
    const { statements } = readBankFile({ name: 'a.csv', bytes: Buffer.from(text) }, maps);
    const found = statements.map(({ account, lines }) => `${account} ${lines.map(({ amount }) => amount).join()}`);
    expect(found).toEqual(['0099 1.00', '0097 2.00']);
  });

  test('a record of several lines is named by its first', () => {
    const text = rows('2026-10-01,1x,,"A\nB\n"', '2026-10-01,10.00,,A');
    expect(outcomeOf('a.csv', text, MAP)).toMatch(/line 2: '1x'/);
  });

  test('a map is found for a file in UTF-16', () => {
    const bytes = Buffer.from(`\ufeff${rows(day(1, '10.00', '15.00'))}`, 'utf16le');
    const maps = { other: mapWith(MAP.replace('date=day', 'date=other')), own: mapWith(MAP) };
    for (const given of [bytes, Buffer.from(bytes).swap16()]) {
      expect(readBankFile({ name: 'a.csv', bytes: given }, maps).statements).toHaveLength(1);
    }
  });
});

const ofx = `<OFX><STMTRS><CURDEF>USD<BANKACCTFROM><ACCTID>0099</BANKACCTFROM><BANKTRANLIST><STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20261007<TRNAMT>5.00<FITID>1</STMTTRN></BANKTRANLIST></STMTRS></OFX>`;
test('OFX has no sum, and the import says so', () => check('a.ofx')('', ofx, `5.00 | ${NO_BALANCE} not checked.`));

test.each<Case>([
  [
    'an element before its beginning',
    `OFXHEADER:100\n\n${/<STMTTRN>.*<\/STMTTRN>/.exec(ofx)?.[0]}${ofx}`,
    /refused.*line 3: has an element before <OFX>/s,
  ],
  ['the header of version 1', `OFXHEADER:100\nDATA:OFXSGML\n\n${ofx}`, /^5\.00/],
  ['the header of version 2', `<?xml version="1.0"?>\n<?OFX OFXHEADER="200"?>\n${ofx}`, /^5\.00/],
  [
    'a currency that is left open',
    ofx.replace('</STMTTRN>', '<CURRENCY><CURRATE>1.1<CURSYM>EUR</STMTTRN>'),
    /refused.*ends a STMTTRN before its CURRENCY has ended/s,
  ],
  ['an empty field that is left open', ofx.replace('<FITID>', '<MEMO>\n<FITID>'), /^5\.00/],
])('OFX with %s', check('a.ofx'));

const transaction = (type: string, amount: string, more = `<FITID>${type}${amount}`) =>
  `<STMTTRN><TRNTYPE>${type}<DTPOSTED>20261008<TRNAMT>${amount}${more}</STMTTRN>`;
const withOthers = (...others: readonly string[]) =>
  ofx.replace('</BANKTRANLIST>', `${others.join('')}</BANKTRANLIST>`);
const AS_CREDITS =
  /^5\.00 \| -1\.00 \| 12\.00 \| Read as credits, because they have no minus sign: the [A-Z]+ of 12\.00 \(line 1\)\./;
test.each<Case>([
  ...['PAYMENT', 'DIRECTDEBIT'].flatMap((type): Case[] => [
    [
      `a ${type} that was received`,
      withOthers(transaction('DEBIT', '-1.00'), transaction(type, '12.00')),
      /^5\.00 \| -1\.00 \| 12\.00(?!.*no minus sign)/,
    ],
    [
      `a ${type} with a plus sign, if none has a minus sign`,
      withOthers(transaction(type, '12.00')),
      /refused.*Was it received or given back\? If so, import a longer period/s,
    ],
    [
      `a ${type} to a card`,
      withOthers(transaction(type, '12.00')).replaceAll('STMTRS', 'CCSTMTRS').replaceAll('BANKACCTFROM', 'CCACCTFROM'),
      /^5\.00 \| 12\.00/,
    ],
  ]),
  ...['FEE', 'SRVCHG', 'CHECK'].flatMap((type): Case[] => [
    [
      `a ${type} with a plus sign, if others have a minus sign`,
      withOthers(transaction('DEBIT', '-1.00'), transaction(type, '12.00')),
      AS_CREDITS,
    ],
    [
      `a ${type} with a plus sign, if none has a minus sign`,
      withOthers(transaction(type, '12.00')),
      /refused.*Was it received or given back\? If so, import a longer period/s,
    ],
    [`a ${type} with a minus sign`, withOthers(transaction(type, '-12.00')), /^5\.00 \| -12\.00/],
  ]),
  ['a DEBIT with a plus sign', withOthers(transaction('DEBIT', '12.00')), /refused.*contradicts the type DEBIT/s],
  ['a CREDIT with a minus sign', withOthers(transaction('CREDIT', '-12.00')), /refused.*contradicts the type CREDIT/s],
  [
    'two equal transactions with the id 0',
    withOthers(...Array(2).fill(transaction('CREDIT', '7.00', '<FITID>0'))),
    /^5\.00 \| 7\.00 \| 7\.00/,
  ],
  [
    'one id for all transactions of a day',
    withOthers(transaction('CREDIT', '7.00', '<FITID>9<NAME>A'), transaction('CREDIT', '7.00', '<FITID>9<NAME>B')),
    /^5\.00 \| 7\.00 \| 7\.00/,
  ],
  [
    'a transaction twice',
    withOthers(...Array(2).fill(transaction('CREDIT', '7.00', '<FITID>9<NAME>A'))),
    /refused.*the transaction 9 occurs twice/s,
  ],
  [
    'a comment before the header of version 2',
    `<?xml version="1.0"?>\n<!-- a bank -->\n<?OFX OFXHEADER="200"?>\n${ofx}`,
    /^5\.00/,
  ],
])('OFX with %s', check('a.ofx'));

test('a fee that is given back reverses a debit, and is no payment', () => {
  const text = withOthers(transaction('DEBIT', '-1.00'), transaction('FEE', '12.00'));
  const { statements } = readBankFile({ name: 'a.ofx', bytes: Buffer.from(text) }, {});
  expect(statements.flatMap(({ lines }) => lines.map(({ reversal }) => reversal))).toEqual([false, false, true]);
});

/** A zip archive of these files. */
function zip(files: Readonly<Record<string, string>>): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [name, text] of Object.entries(files)) {
    const packed = deflateRawSync(text);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50);
    local.writeUInt16LE(name.length, 26);
    const entryOf = Buffer.alloc(46);
    entryOf.writeUInt32LE(0x02014b50);
    entryOf.writeUInt16LE(8, 10);
    for (const [offset, value] of [
      [16, crc32(text)],
      [20, packed.length],
      [24, text.length],
      [42, at],
    ] as const)
      entryOf.writeUInt32LE(value, offset);
    entryOf.writeUInt16LE(name.length, 28);
    locals.push(local, Buffer.from(name), packed);
    directory.push(entryOf, Buffer.from(name));
    at += 30 + name.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50);
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, ...directory, end]);
}

describe('a zip archive', () => {
  const statement = camt(opens('0.00'), closes('10.00'), entry('10.00'));
  test.each<Case>([
    ['of a statement', zip({ 'a.xml': statement }), '10.00'],
    [
      'with documents for people',
      zip({ 'README.txt': 'Hello', '__MACOSX/._a.xml': 'x', 'a.xml': statement, 'x/a.pdf': '%PDF' }),
      '10.00 | The archive also has README.txt, __MACOSX/._a.xml, x/a.pdf: ignored.',
    ],
    [
      'with many documents',
      zip({ 'a.pdf': '', 'b.pdf': '', 'c.pdf': '', 'd.pdf': '', 'e.pdf': '', 'a.xml': statement }),
      '10.00 | The archive also has a.pdf, b.pdf, c.pdf and 2 more: ignored.',
    ],
    [
      'with checksums and signatures',
      zip({ 'a.xml': statement, 'a.xml.sha256': 'x', 'a.xml.sig': 'x', 'camt.xsd': '<xs:schema x="y"/>' }),
      '10.00 | The archive also has a.xml.sha256, a.xml.sig, camt.xsd: ignored.',
    ],
    ['of a statement of the license bank', zip({ 'License-bank.xml': statement }), '10.00'],
    ['of a statement that is named as a document', zip({ 'readme.md': statement }), '10.00'],
    ['with a file for people that is none', zip({ 'a.xml': statement, 'readme.sta': 'x' }), /refused.*readme\.sta/s],
    ['with another file', zip({ 'a.xml': statement, 'notes.dat': 'x' }), /refused.*notes\.dat/s],
    [
      'with documents only',
      zip({ 'a.pdf': '%PDF', 'b.pdf': '%PDF' }),
      /refused.*is a zip archive without bank files, but with a\.pdf, b\.pdf.*Import the file/s,
    ],
  ])('%s', check('a.zip'));
});

test.each<Case>([
  [
    'EDIFACT',
    "UNA:+.? '\nUNB+UNOC:3+BANK+OURS'UNH+1+FINSTA:D:96A:UN'",
    /refused: .*is an EDIFACT file \(FINSTA\).*Import the statements of this account/s,
  ],
  ['EDIFACT without its separators', "UNB+UNOC:3+BANK'", /refused: .*is an EDIFACT file/],
  ['QIF', '!Type:Bank\nD10/07/2026\n', /refused: .*is a QIF file.*Import the statements of this account/s],
  ['an empty file', '', /refused: .*is an empty file.*Download it again/s],
  ['gzip', Buffer.from('1f8b0800', 'hex'), /refused: .*is a file packed with gzip.*Unpack it/s],
  ['QIF with its settings first', '!Clear:AutoSwitch\n!Type:Bank\n', /refused: .*is a QIF file/],
])('%s is refused by its name', check('a.txt'));
