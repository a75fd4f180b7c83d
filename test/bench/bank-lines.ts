/** Bank files of a given size in each format, from a fixed seed: one account, whose lines look like those of real banks. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { seeded } from '../support/random.ts';

interface Line {
  readonly number: number;
  readonly day: number;
  readonly cents: number;
  readonly name: string;
  readonly account: string;
  readonly text: string;
}

interface Format {
  readonly ending: string;
  readonly head: () => string;
  readonly line: (line: Line, balance: number) => string;
  readonly foot: (sums: Sums) => string;
}

interface Sums {
  lines: number;
  records: number;
  balance: number;
  credits: number;
  debits: number;
}

const OPENING = 1_000_000_00;
const FIRST_DAY = 3;
const DAYS = 18;
const NAMES = ['Nordlicht Reisen', 'Harbour Events', 'Casa Verde', 'Kestrel Travel', 'Studio Lumen', 'Ponte Vecchio'];
const WORDS = 'order booking festival voucher delivery season transfer instalment deposit partner group ticket'.split(
  ' ',
);

const decimal = (cents: number, point = '.') =>
  `${Math.trunc(cents / 100)}${point}${String(cents % 100).padStart(2, '0')}`;
const abs = ({ cents }: Line) => Math.abs(cents);
const iso = (day: number) => `2026-08-${String(day).padStart(2, '0')}`;
const compact = (day: number) => iso(day).replaceAll('-', '').slice(2);

const camt = (message: string, element: string, part: string): Format => ({
  ending: 'xml',
  head: () =>
    `<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}.001.08"><${element}>` +
    `<GrpHdr><MsgId>M1</MsgId><CreDtTm>${iso(FIRST_DAY + DAYS)}T06:00:00</CreDtTm></GrpHdr><${part}><Id>S1</Id>` +
    '<Acct><Id><IBAN>DE02120300000000202051</IBAN></Id><Ccy>EUR</Ccy></Acct>\n',
  line: (line) =>
    `<Ntry><NtryRef>${line.number}</NtryRef><Amt Ccy="EUR">${decimal(abs(line))}</Amt><CdtDbtInd>${line.cents < 0 ? 'DBIT' : 'CRDT'}</CdtDbtInd>` +
    `<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>${iso(line.day)}</Dt></BookgDt><ValDt><Dt>${iso(line.day)}</Dt></ValDt>` +
    `<AcctSvcrRef>BR${line.number}</AcctSvcrRef><BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd>` +
    `<NtryDtls><TxDtls><Refs><EndToEndId>E2E-${line.number}</EndToEndId></Refs><RltdPties><Dbtr><Pty><Nm>${line.name}</Nm></Pty></Dbtr>` +
    `<DbtrAcct><Id><IBAN>${line.account}</IBAN></Id></DbtrAcct></RltdPties><RmtInf><Ustrd>${line.text}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>\n`,
  foot: ({ balance }) =>
    (part === 'Stmt' ? balanceOf('OPBD', OPENING, FIRST_DAY) + balanceOf('CLBD', balance, FIRST_DAY + DAYS) : '') +
    `</${part}></${element}></Document>\n`,
});

const balanceOf = (code: string, cents: number, day: number) =>
  `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${decimal(cents)}</Amt><CdtDbtInd>CRDT</CdtDbtInd>` +
  `<Dt><Dt>${iso(day)}</Dt></Dt></Bal>\n`;

const parts = (text: string, length: number) => text.match(new RegExp(`.{1,${length}}`, 'g')) ?? [];

export const FORMATS: Readonly<Record<string, Format>> = {
  camt053: camt('camt.053', 'BkToCstmrStmt', 'Stmt'),
  camt052: camt('camt.052', 'BkToCstmrAcctRpt', 'Rpt'),
  camt054: camt('camt.054', 'BkToCstmrDbtCdtNtfctn', 'Ntfctn'),
  mt940: {
    ending: 'sta',
    head: () => `:20:X\r\n:25:12030000/202051\r\n:28C:7/1\r\n:60F:C260803EUR${decimal(OPENING, ',')}\r\n`,
    line: (line) =>
      `:61:${compact(line.day)}${compact(line.day).slice(2)}${line.cents < 0 ? 'D' : 'C'}${decimal(abs(line), ',')}NTRFE${line.number}//BR${line.number}\r\n` +
      `:86:166?00GUTSCHRIFT${parts(line.text, 27)
        .slice(0, 10)
        .map((each, at) => `?2${at}${each}`)
        .join('\r\n')}?30BANKDEFF?31${line.account}?32${line.name}` +
      `${parts(line.text.slice(270), 27)
        .slice(0, 4)
        .map((each, at) => `\r\n?6${at}${each}`)
        .join('')}\r\n`,
    foot: ({ balance }) => `:62F:C260821EUR${decimal(balance, ',')}\r\n-\r\n`,
  },
  mt942: {
    ending: 'sta',
    head: () => ':20:X\r\n:25:12030000/202051\r\n:28C:7/1\r\n:34F:EUR0,00\r\n:13D:2608211200+0200\r\n',
    line: (line, balance) => (FORMATS['mt940'] as Format).line(line, balance),
    foot: () => '-\r\n',
  },
  bai2: {
    ending: 'bai',
    head: () => `01,BANK,OURS,260821,0600,1,,,2/\n02,OURS,BANK,1,260820,,USD,2/\n03,0012345,USD,010,${OPENING},,/\n`,
    line: (line) =>
      `16,${line.cents < 0 ? '495' : '195'},${abs(line)},V,${compact(line.day)},,BR${line.number},E${line.number},` +
      `ORIG NAME:${line.name} ORIG ID:${line.account}\n${parts(line.text, 70)
        .map((each) => `88,${each}\n`)
        .join('')}`,
    foot: ({ credits, debits, records }) => {
      const control = OPENING + credits + debits;
      return `49,${control},${records + 2}/\n98,${control},1,${records + 4}/\n99,${control},1,${records + 6}/\n`;
    },
  },
  ofx: {
    ending: 'ofx',
    head: () =>
      'OFXHEADER:100\r\nDATA:OFXSGML\r\nVERSION:102\r\nSECURITY:NONE\r\nENCODING:USASCII\r\nCHARSET:1252\r\n\r\n<OFX><BANKMSGSRSV1><STMTTRNRS>' +
      '<STMTRS><CURDEF>USD<BANKACCTFROM><BANKID>121000248<ACCTID>0012345<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST>\r\n',
    line: (line) =>
      `<STMTTRN>\r\n<TRNTYPE>${line.cents < 0 ? 'DEBIT' : 'CREDIT'}\r\n<DTPOSTED>20${compact(line.day)}120000\r\n<TRNAMT>${line.cents < 0 ? '-' : ''}${decimal(abs(line))}\r\n` +
      `<FITID>20${compact(line.day)}${line.number}\r\n<REFNUM>E${line.number}\r\n<NAME>${line.name}\r\n<BANKACCTTO><BANKID>1<ACCTID>${line.account}<ACCTTYPE>CHECKING</BANKACCTTO>\r\n<MEMO>${line.text}\r\n</STMTTRN>\r\n`,
    foot: () => '</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>\r\n',
  },
  csv: {
    ending: 'csv',
    head: () => 'date,amount,currency,account,bank_reference,text,payer,payer_account,balance\n',
    line: (line, balance) =>
      `${iso(line.day)},${line.cents < 0 ? '-' : ''}${decimal(abs(line))},USD,0012345,BR${line.number},${line.text},${line.name},${line.account},${decimal(balance)}\n`,
    foot: () => '',
  },
};

/** The texts make a line about 640 bytes long in each format, so that 100 MB have fewer than 200,000 lines. */
const TEXT_LENGTH: Readonly<Record<string, number>> = {
  ...{ camt053: 120, camt052: 120, camt054: 120, mt940: 370, mt942: 370, bai2: 470, ofx: 400, csv: 540 },
};

/** Writes a file of about so many bytes, and returns the number of its lines. One line in 50 names an invoice. */
export async function writeBankFile(path: string, name: string, bytes: number): Promise<number> {
  const format = FORMATS[name] as Format;
  const { random } = seeded(1);
  const below = (most: number) => Math.floor(random() * most);
  const file = createWriteStream(path);
  const sums: Sums = { lines: 0, records: 0, balance: OPENING, credits: 0, debits: 0 };
  let written = 0;
  const write = async (text: string) => {
    written += Buffer.byteLength(text);
    if (!file.write(text)) await once(file, 'drain');
  };
  const length = TEXT_LENGTH[name] as number;
  await write(format.head());
  // Two lines of a day may be in another order than their balances.
  let waiting: string | undefined;
  while (written < bytes) {
    sums.lines += 1;
    const number = sums.lines;
    const isDebit = below(10) < 3 && sums.balance > OPENING / 2;
    const cents = (isDebit ? -1 : 1) * (100 + below(1_000_000));
    let text = number % 50 === 0 ? `INV-2026-${String(1 + below(200)).padStart(6, '0')}` : `REF${below(1e9)}`;
    while (text.length < length) text += ` ${WORDS[below(WORDS.length)]} ${below(100_000)}`;
    const day = FIRST_DAY + Math.min(DAYS - 1, Math.floor((written / bytes) * DAYS));
    sums.balance += cents;
    if (isDebit) sums.debits -= cents;
    else sums.credits += cents;
    const account = `DE${String(10 ** 19 + below(5_000)).slice(0, 20)}`;
    const content = format.line(
      {
        number,
        day,
        cents,
        name: `${NAMES[below(NAMES.length)]} ${below(500)}`,
        account,
        text: text.slice(0, length).trim(),
      },
      sums.balance,
    );
    sums.records += content.split('\n').length - 1;
    if (name === 'csv' && number % 7 === 0 && waiting === undefined) waiting = content;
    else {
      await write(content);
      if (waiting !== undefined) await write(waiting);
      waiting = undefined;
    }
  }
  if (waiting !== undefined) await write(waiting);
  await write(format.foot(sums));
  file.end();
  await once(file, 'finish');
  return sums.lines;
}
