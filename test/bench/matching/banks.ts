/**
 * Bank files as banks write them: BAI2 in the text styles of four banks of the United States, camt.053.001.08, and a
 * Japanese bank's CSV. A line says what the payer's bank sent; its file says it in the words of our bank.
 */
import type { Draw } from './draw.ts';
import { decimal, type MonthIndex, STYLES, type Style } from './ledger.ts';
import type { Currency } from './shares.ts';

/** An account of ours. In dollars there is one at each of four banks, and each bank writes texts in its own style. */
export type Bank = Style | 'EUR' | 'GBP' | 'JPY';
export const BANKS: readonly Bank[] = [...STYLES, 'EUR', 'GBP', 'JPY'];

export const ACCOUNTS: Readonly<Record<Bank, string>> = {
  'orig-co-name': '000100200301',
  'orig-id': '000100200302',
  'des-co-id': '000100200303',
  'org-srf': '000100200304',
  EUR: 'DE02120300000000202051',
  GBP: 'GB33BUKB20201555555555',
  JPY: 'JP0001',
};
export const bankOf = (currency: Currency, style: Style): Bank => (currency === 'USD' ? style : currency);
export const currencyOf = (bank: Bank): Currency =>
  STYLES.some((style) => style === bank) ? 'USD' : (bank as Currency);

/** The column map of the Japanese bank, as settings.json has it. */
export const CSV_MAP = {
  columns: {
    date: 'Date',
    credit: 'Deposit',
    debit: 'Withdrawal',
    text: ['Memo'],
    payer: 'Remitter',
    bank_reference: 'Ref',
  },
  date_format: 'yyyy/MM/dd',
  account: ACCOUNTS.JPY,
  currency: 'JPY',
};

export interface Line {
  readonly bank: Bank;
  /** The bank's own reference, which no other line of the benchmark has. */
  readonly reference: string;
  /** YYYY-MM-DD. */
  readonly bookedOn: string;
  readonly direction: 'credit' | 'debit';
  /** In minor units. */
  readonly amount: number;
  readonly payer: string;
  readonly account: string;
  /** What the payer wrote. */
  readonly text: string;
  /** The partner for which a payment provider pays. */
  readonly ultimateDebtor?: string;
  /** The structured parts of a camt.053 line, in place of the text. */
  readonly creditorReference?: string;
  readonly documentNumber?: string;
  readonly kind: 'payment' | 'return' | 'lockbox';
}

export interface BankFile {
  readonly bank: Bank;
  readonly month: MonthIndex;
  readonly name: string;
  readonly content: string;
}

/** Capital letters without accents and without the signs that payment systems do not carry. */
export const inCapitals = (name: string): string =>
  name
    .replaceAll('ß', 'ss')
    .replaceAll('Ø', 'O')
    .replaceAll('ø', 'o')
    .replaceAll('æ', 'ae')
    .normalize('NFD')
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/['’&,]/g, '')
    .replace(/\s+/g, ' ')
    .toUpperCase();

const SENDING_BANKS = ['JPMORGAN CHASE BANK, NA', 'PNC BANK, NA', 'CITIBANK N.A.', 'TRUIST BANK', 'US BANK NA'];
const compactDay = (day: string): string => day.slice(2).replaceAll('-', '');

// --- BAI2 -------------------------------------------------------------------------------------------------------------

/** The length at which the banks of the benchmark continue a text in an 88 record. */
const TEXT_WIDTH = 70;

interface Transaction {
  readonly code: string;
  readonly text: string;
}

/** A company's name in an ACH batch has sixteen characters, in a wire thirty-five. */
const ACH_NAME = 16;
const WIRE_NAME = 35;

function transactionOf(draw: Draw, line: Line): Transaction {
  const { text, account, bookedOn } = line;
  const name = inCapitals(line.payer);
  const day = compactDay(bookedOn);
  if (line.kind === 'lockbox')
    return { code: '115', text: `LOCKBOX 0073${draw.digits(3)} DEPOSIT ITEM CHECK ${draw.digits(5)} ${text}` };
  if (line.kind === 'return') {
    const from = `ORIG CO NAME:${name.slice(0, ACH_NAME)} ORIG ID:${account}`;
    return { code: draw.one(['555', '557']), text: `ACH RETURN ITEM R01 INSUFFICIENT FUNDS ${from} ${text}` };
  }
  switch (line.bank) {
    case 'orig-co-name': {
      const described = `DESC DATE:${day} CO ENTRY DESCR:${draw.one(['PAYMENTS', 'VENDOR PAY', 'EDI PYMNTS', 'CORP PAY'])}`;
      const traced = `SEC:${draw.one(['CCD', 'CTX'])} TRACE#:${draw.digits(15)} EED:${day}`;
      const individual = `IND ID:${draw.one(['', draw.digits(6)])} IND NAME:SANDBOX PROTECTION TRN: ${text}`;
      return {
        code: '142',
        text: `ORIG CO NAME:${name.slice(0, ACH_NAME)} ORIG ID:${account} ${described} ${traced} ${individual}`,
      };
    }
    case 'orig-id': {
      const sent = `WIRE TYPE:WIRE IN DATE:${day} TIME:${draw.whole(10, 16)}${draw.whole(10, 59)} ET TRN:20${day}${draw.digits(8)}`;
      const from = `SEQ:${draw.digits(10)}/${draw.digits(6)} ORIG:${name.slice(0, WIRE_NAME)} ID:${account}`;
      return {
        code: '195',
        text: `${sent} ${from} SND BK:${draw.one(SENDING_BANKS)} ID:0${draw.digits(8)} PMT DET:${text}`,
      };
    }
    case 'des-co-id': {
      const described = `DES:${draw.one(['PAYMENT', 'VENDOR PMT', 'AP PAYMENT', 'EDI PYMNTS'])} ID:${draw.digits(draw.one([6, 11, 12, 13, 14, 15]))}`;
      const info = `INDN:SANDBOX PROTECTION CO ID:${account} ${draw.one(['CCD', 'CTX'])} PMT INFO:${text}`;
      return { code: '142', text: `${name.slice(0, ACH_NAME)} ${described} ${info}` };
    }
    default: {
      const from = `/ORG=${name.slice(0, WIRE_NAME)} SRF# ${draw.digits(6)} ${draw.digits(7)} TRN#${day}${draw.digits(6)}`;
      return { code: '195', text: `WT FED#${draw.digits(5)} ${draw.one(SENDING_BANKS)} ${from} RFB# ${text}` };
    }
  }
}

/** One group a day. The last field of a record may have commas and slashes; what does not fit follows in 88 records. */
function bai2(draw: Draw, bank: Bank, lines: readonly Line[], opening: number): string {
  const account = ACCOUNTS[bank];
  const days = [...new Set(lines.map(({ bookedOn }) => bookedOn))];
  const lastDay = compactDay(days.at(-1) ?? '2026-07-31');
  const file: string[] = [`01,BANKUS,CUST,${lastDay},2000,1,,,2/`];
  let balance = opening;
  let fileTotal = 0;
  for (const day of days) {
    const ofDay = lines.filter(({ bookedOn }) => bookedOn === day);
    const sumOf = (direction: Line['direction']) =>
      ofDay.filter((line) => line.direction === direction).reduce((sum, { amount }) => sum + amount, 0);
    const [credits, debits] = [sumOf('credit'), sumOf('debit')];
    const closing = balance + credits - debits;
    const records = [
      `03,${account},USD,010,${balance},,,015,${closing},,,100,${credits},,,400,${debits},,/`,
      ...ofDay.flatMap((line) => {
        const { code, text } = transactionOf(draw, line);
        const chunks = text.match(new RegExp(`.{1,${TEXT_WIDTH}}`, 'g')) ?? [''];
        const first = `16,${code},${line.amount},Z,${line.reference},,${chunks[0]}/`;
        return [first, ...chunks.slice(1).map((chunk) => `88,${chunk}/`)];
      }),
    ];
    const total = balance + closing + 2 * credits + 2 * debits;
    file.push(`02,CUST,BANKUS,1,${compactDay(day)},2400,USD,2/`, ...records);
    file.push(`49,${total},${records.length + 1}/`, `98,${total},1,${records.length + 3}/`);
    balance = closing;
    fileTotal += total;
  }
  return `${[...file, `99,${fileTotal},${days.length},${file.length + 1}/`].join('\n')}\n`;
}

// --- camt.053 ---------------------------------------------------------------------------------------------------------

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** The rows of unstructured remittance have at most this length at many banks. */
const REMITTANCE_WIDTH = 140;

function entry(draw: Draw, line: Line): string {
  const currency = currencyOf(line.bank);
  const amount = `<Amt Ccy="${currency}">${decimal(line.amount, currency)}</Amt>`;
  const party = (name: string) => `<Pty><Nm>${escaped(name)}</Nm></Pty>`;
  const endToEnd = draw.one(['NOTPROVIDED', 'NOTPROVIDED', `PAY${draw.digits(8)}`]);
  const account = line.account === '' ? '' : `<DbtrAcct><Id><IBAN>${line.account}</IBAN></Id></DbtrAcct>`;
  const ultimate = line.ultimateDebtor === undefined ? '' : `<UltmtDbtr>${party(line.ultimateDebtor)}</UltmtDbtr>`;
  const structured =
    line.creditorReference !== undefined
      ? `<Strd><CdtrRefInf><Tp><CdOrPrtry><Cd>SCOR</Cd></CdOrPrtry></Tp><Ref>${line.creditorReference}</Ref></CdtrRefInf></Strd>`
      : `<Strd><RfrdDocInf><Tp><CdOrPrtry><Cd>CINV</Cd></CdOrPrtry></Tp><Nb>${line.documentNumber}</Nb></RfrdDocInf></Strd>`;
  const isStructured = line.creditorReference !== undefined || line.documentNumber !== undefined;
  const remittance = isStructured ? structured : `<Ustrd>${escaped(line.text.slice(0, REMITTANCE_WIDTH))}</Ustrd>`;
  const domain = '<Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn>';
  return (
    `<Ntry>${amount}<CdtDbtInd>${line.direction === 'credit' ? 'CRDT' : 'DBIT'}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>` +
    `<BookgDt><Dt>${line.bookedOn}</Dt></BookgDt><ValDt><Dt>${line.bookedOn}</Dt></ValDt>` +
    `<AcctSvcrRef>${line.reference}</AcctSvcrRef><BkTxCd>${domain}</BkTxCd><NtryDtls><TxDtls>` +
    `<Refs><EndToEndId>${endToEnd}</EndToEndId></Refs>${amount}` +
    `<RltdPties><Dbtr>${party(line.payer)}</Dbtr>${account}${ultimate}</RltdPties>` +
    `<RmtInf>${remittance}</RmtInf></TxDtls></NtryDtls></Ntry>`
  );
}

function camt053(draw: Draw, bank: Bank, lines: readonly Line[], opening: number, month: string): string {
  const currency = currencyOf(bank);
  const closing = lines.reduce(
    (sum, { direction, amount }) => sum + (direction === 'credit' ? amount : -amount),
    opening,
  );
  const lastDay = lines.at(-1)?.bookedOn ?? `${month}-28`;
  const balance = (code: string, amount: number, day: string) =>
    `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="${currency}">${decimal(amount, currency)}</Amt>` +
    `<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>${day}</Dt></Dt></Bal>`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>',
    `<GrpHdr><MsgId>${bank}-${month}</MsgId><CreDtTm>${lastDay}T20:00:00</CreDtTm></GrpHdr>`,
    `<Stmt><Id>${bank}-${month}</Id><Acct><Id><IBAN>${ACCOUNTS[bank]}</IBAN></Id><Ccy>${currency}</Ccy></Acct>`,
    balance('OPBD', opening, `${month}-01`),
    balance('CLBD', closing, lastDay),
    ...lines.map((line) => entry(draw, line)),
    '</Stmt></BkToCstmrStmt></Document>',
    '',
  ].join('\n');
}

// --- CSV of a Japanese bank -------------------------------------------------------------------------------------------

function japaneseCsv(lines: readonly Line[]): string {
  const rows = lines.map(({ bookedOn, direction, amount, text, payer, reference }) => {
    const amounts = direction === 'credit' ? [String(amount), ''] : ['', String(amount)];
    return [bookedOn.replaceAll('-', '/'), ...amounts, `振込 ${text}`.trim(), payer, reference]
      .map((field) => (/[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field))
      .join(',');
  });
  return `${['Date,Deposit,Withdrawal,Memo,Remitter,Ref', ...rows].join('\n')}\n`;
}

/** The files of a month, one for each of our accounts that has lines, in the order of days. */
export function writeFiles(
  draw: Draw,
  {
    month,
    calendar,
    lines,
    openings,
  }: {
    readonly month: MonthIndex;
    /** YYYY-MM of the days on which the lines are booked. */
    readonly calendar: string;
    readonly lines: readonly Line[];
    /** Balances before this month, in minor units. They are carried on. */
    readonly openings: Map<Bank, number>;
  },
): BankFile[] {
  return BANKS.flatMap((bank): BankFile[] => {
    const own = lines
      .filter((line) => line.bank === bank)
      .sort((one, other) => (one.bookedOn < other.bookedOn ? -1 : one.bookedOn > other.bookedOn ? 1 : 0));
    if (own.length === 0) return [];
    const opening = openings.get(bank) ?? 0;
    const moved = own.reduce((sum, { direction, amount }) => sum + (direction === 'credit' ? amount : -amount), 0);
    openings.set(bank, opening + moved);
    const name = `${calendar}-${bank}`;
    if (bank === 'JPY') return [{ bank, month, name: `${name}.csv`, content: japaneseCsv(own) }];
    return bank === 'EUR' || bank === 'GBP'
      ? [{ bank, month, name: `${name}.xml`, content: camt053(draw, bank, own, opening, calendar) }]
      : [{ bank, month, name: `${name}.bai`, content: bai2(draw, bank, own, opening) }];
  });
}
