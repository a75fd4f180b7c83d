/**
 * Damaged and hostile bank files: each is read or refused with a reason, and soon. They are read in a process of their own,
 * because a reader that does not end could not be stopped otherwise, and because its CPU time can be told from ours.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readBankFile } from '../../src/payments/bank/read.ts';
import { compiled } from '../support/program.ts';
import { seeded } from '../support/random.ts';
import { CSV_MAPS } from './books.ts';
import { settingsWith } from './settings.ts';

/** CPU time, which is the same on a busy machine: more than any of them needs, less than a reader that is not linear. */
const LONGEST_CPU_MS = 10_000;
/** After which a reader is stopped: it does not end. */
const ENDLESS_MS = 100_000;

const READER = `
const [read, refusals, reference, maps] = JSON.parse(process.env.READER);
const { readBankFile } = await import(read);
const { Refusal } = await import(refusals);
const { findReferences } = await import(reference);
const answer = ({ name, map, bytes }) => {
  try {
    const { statements } = readBankFile({ name, map, bytes: Buffer.from(bytes) }, maps);
    const lines = statements.flatMap((statement) => statement.lines);
    for (const line of lines) findReferences(line.references);
    return lines.length + ' lines';
  } catch (error) {
    return error instanceof Refusal ? error.code : 'not a refusal: ' + error.stack;
  }
};
process.on('message', (file) => {
  const before = process.cpuUsage();
  const text = answer(file);
  const { user, system } = process.cpuUsage(before);
  process.send({ text, cpu: (user + system) / 1000 });
});
process.send('ready');`;

const FILES = join(import.meta.dirname, 'files');
/** The column map of a CSV file, by its name up to the first dash. */
const MAPS = {
  plain: {
    columns: {
      ...{ date: 'date', amount: 'amount', currency: 'currency', account: 'account', payer: 'payer' },
      ...{ bank_reference: 'bank_reference', text: ['text'], payer_account: 'payer_account' },
    },
  },
  sparkasse: (CSV_MAPS as Record<string, object>)['sparkasse'],
  newest: (CSV_MAPS as Record<string, object>)['newest_first'],
};
const mapOf = (name: string): string | undefined => (name.endsWith('.csv') ? name.split('-')[0] : undefined);

const moduleAt = (path: string) => pathToFileURL(compiled(`src/${path}`)).href;

let reader: ChildProcess;

async function start(): Promise<void> {
  reader = spawn(process.execPath, ['--input-type=module', '-e', READER], {
    env: {
      ...process.env,
      READER: JSON.stringify([
        moduleAt('payments/bank/read.js'),
        moduleAt('errors/refusals.js'),
        moduleAt('payments/reference.js'),
        settingsWith({ bank_csv: MAPS }).bank_csv,
      ]),
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  await once(reader, 'message');
}

beforeAll(async () => {
  await start();
});
afterAll(() => reader.kill('SIGKILL'));

/** What became of a file: its number of lines, or the code of the refusal. */
async function read(name: string, content: string | Buffer): Promise<string> {
  const clock = AbortSignal.timeout(ENDLESS_MS);
  reader.send({ name, map: mapOf(name), bytes: Buffer.from(content as string) });
  try {
    const [{ text, cpu }] = (await once(reader, 'message', { signal: clock })) as [{ text: string; cpu: number }];
    expect(cpu, `CPU milliseconds for ${name}`).toBeLessThan(LONGEST_CPU_MS);
    return text;
  } catch (error) {
    if (!clock.aborted) throw error;
    reader.kill('SIGKILL');
    await start();
    return `not read within ${ENDLESS_MS} ms`;
  }
}

const bai = (account: string, ...transactions: readonly string[]) =>
  [
    '01,021000021,RECKONER,261001,0610,1,80,10,2/',
    '02,RECKONER,021000021,1,261001,2359,USD,2/',
    account,
    ...transactions,
    '49,0,3/',
    '98,0,1,5/',
    '99,0,1,7/',
  ].join('\n');

const camt = (entry: string) =>
  `<Document><BkToCstmrStmt><Stmt><Id>1</Id><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct>${entry}` +
  '</Stmt></BkToCstmrStmt></Document>';

const entry = (text: string) =>
  '<Ntry><Amt Ccy="EUR">1.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-10-01</Dt></BookgDt>' +
  `<NtryDtls><TxDtls><RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`;

const plain = (text: string) =>
  `date,amount,currency,account,bank_reference,text,payer,payer_account\n2026-10-02,1.00,USD,1,R,${text},,\n`;

const ofx = (content: string) =>
  `<OFX><STMTRS><CURDEF>USD<BANKACCTFROM><ACCTID>1</BANKACCTFROM><BANKTRANLIST><STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20261007` +
  `<TRNAMT>5.00<FITID>1${content}</STMTTRN></BANKTRANLIST></STMTRS></OFX>`;

/** An entry of 20,000 transactions. */
const BATCH = entry('A')
  .replace('1.00', '20000.00')
  .replace(/<TxDtls>.*<\/TxDtls>/, '<TxDtls><Amt Ccy="EUR">1.00</Amt></TxDtls>'.repeat(20_000));
const prefixed = (text: string) =>
  text
    .replace(/<(\/?)(?=[A-Z])/g, '<$1c:')
    .replace('Document>', 'Document xmlns:c="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">');

/** By what they try: a file name, its content, and what must become of it. */
const HOSTILE: Readonly<Record<string, readonly [name: string, content: string, result: string | RegExp]>> = {
  'a negative number of availability pairs': ['a.bai', bai('03,123,USD,010,100,,D,-2.5/'), 'bank_file_invalid'],
  'availability pairs that go backwards to the same field': [
    'a.bai',
    bai('03,123,USD,010,100,,D,-2/'),
    'bank_file_invalid',
  ],
  'a million availability pairs': ['a.bai', bai('03,123,USD,010,100,,D,1000000/'), 'bank_file_invalid'],
  'a transaction with a negative number of pairs': [
    'a.bai',
    bai('03,123,USD,010,100,,/', '16,142,100,D,-3,REF,TEXT/'),
    'bank_file_invalid',
  ],
  'a BAI2 amount of a million digits': ['a.bai', bai(`03,123,USD,010,${'9'.repeat(1e6)},,/`), 'bank_file_invalid'],
  'a count of a million digits': ['a.bai', `${bai('03,123,USD/').slice(0, -3)}${'9'.repeat(1e6)}/`, 'bank_file_totals'],
  '200,000 spaces in the text of a payer': [
    'a.bai',
    bai('03,123,USD/', `16,142,0,,,,ORIGINATOR: A${' '.repeat(200_000)}B/`),
    /lines|bank_file/,
  ],
  '100,000 BAI2 continuations': [
    'a.bai',
    bai('03,123,USD/', '16,142,1,,,,A', ...Array(100_000).fill('88,B')),
    'bank_file_totals',
  ],
  '99,000 digits after the year in a text': ['plain-1.csv', plain(`INV2026${'1'.repeat(99_000)}`), '1 lines'],
  '49,000 digits with a separator after each': ['plain-1.csv', plain(`INV2026${'1-'.repeat(49_000)}`), '1 lines'],
  '33,000 times INV': ['plain-1.csv', plain('INV'.repeat(33_000)), '1 lines'],
  'a CSV line of 600,000 characters': ['plain-1.csv', plain('INV'.repeat(2e5)), 'bank_file_invalid'],
  '60,000 CSV rows': [
    'plain-1.csv',
    plain('A') + Array.from({ length: 60_000 }, (_, each) => `2026-10-02,1.00,USD,1,R${each},A,,`).join('\n'),
    '60001 lines',
  ],
  'a CSV amount of a million digits': ['plain-1.csv', plain('A').replace('1.00', '9'.repeat(1e6)), 'bank_file_invalid'],
  'a CSV quote that never ends': ['plain-1.csv', plain(`"${'A'.repeat(1e6)}`), 'bank_file_invalid'],
  'a million commas': ['plain-1.csv', plain(','.repeat(1e6)), 'bank_file_invalid'],
  'an element __proto__': ['c.xml', camt('<__proto__><polluted>1</polluted></__proto__>'), 'bank_file_invalid'],
  'XML 10,000 elements deep': ['c.xml', camt(`${'<a>'.repeat(1e4)}${'</a>'.repeat(1e4)}`), 'bank_file_invalid'],
  'a billion laughs': ['c.xml', `<!DOCTYPE a [<!ENTITY b "c">]>${camt('')}`, 'bank_file_invalid'],
  '20,000 XML attributes': [
    'c.xml',
    camt(`<Ntry ${Array.from({ length: 2e4 }, (_, each) => `a${each}="1"`).join(' ')}></Ntry>`),
    /bank_file/,
  ],
  'an XML amount of a million digits': [
    'c.xml',
    camt(entry('A')).replace('1.00', '9'.repeat(1e6)),
    'bank_file_invalid',
  ],
  'a million character references': ['c.xml', camt(entry('&#65;'.repeat(1e6))), /lines|bank_file_invalid/],
  '150,000 lines of remittance in one entry': [
    'c.xml',
    camt(entry('A').replace('<Ustrd>A</Ustrd>', '<Ustrd>A</Ustrd>'.repeat(150_000))),
    '1 lines',
  ],
  'a BAI2 continuation of 200,000 fields': [
    'a.bai',
    bai('03,123,USD/', '16,142,1,,,,A').replace('USD/', `USD,\n88,${','.repeat(200_000)}/`),
    /bank_file/,
  ],
  '20,000 transactions of an entry, with a prefix': ['c.xml', prefixed(camt(BATCH)), '20000 lines'],
  '20,000 balances': [
    'c.xml',
    prefixed(camt('<Bal><Tp><CdOrPrtry><Cd>ITAV</Cd></CdOrPrtry></Tp></Bal>'.repeat(20_000) + entry('A'))),
    '1 lines',
  ],
  'OFX 3,000 elements deep': ['a.ofx', ofx(`${'<A>'.repeat(3000)}x${'</A>'.repeat(3000)}`), 'bank_file_invalid'],
  '60,000 OFX elements that are left open': ['a.ofx', ofx('<A>'.repeat(60_000)), 'bank_file_invalid'],
  '200,000 fields in an OFX element that is left open': ['a.ofx', ofx(`<X>${'<A>1'.repeat(200_000)}`), '1 lines'],
  'an OFX tag that never ends': ['a.ofx', ofx(`<${'A'.repeat(900_000)}`), 'bank_file_invalid'],
  'an XML tag that never ends': ['c.xml', `<Document ${'a'.repeat(1e6)}`, 'bank_file_invalid'],
};

test.each(Object.entries(HOSTILE))('%s ends soon', async (_, [name, content, result]) => {
  const given = await read(name, content);
  if (typeof result === 'string') expect(given).toBe(result);
  else expect(given).toMatch(result);
});

const messageOf = (xml: string): string => {
  try {
    readBankFile({ name: 'c.xml', bytes: Buffer.from(xml) }, {});
    return 'read';
  } catch (error) {
    return (error as Error).message;
  }
};

test.each([
  ['closed', `${'<a>'.repeat(200)}${'</a>'.repeat(200)}`, 'tags are nested deeper than 100'],
  ['not closed', '<a>'.repeat(200), 'tags are nested deeper than 100'],
])('tags that are nested deep and %s are refused without a list of them', (_, tags, says) => {
  const message = messageOf(`<Document>${tags}${tags.includes('/') ? '</Document>' : ''}`);
  expect(message).toContain(says);
  expect(message).not.toContain('"');
});

test('a few tags that are not closed are named as such', () => {
  expect(messageOf('<Document><a>')).toContain('is not XML: has tags that are not closed');
});

test('OFX elements that are nested deep are refused by their line', () => {
  const bytes = Buffer.from(ofx(`\n${'<A>'.repeat(200)}`));
  const reading = () => readBankFile({ name: 'a.ofx', bytes }, {});
  expect(reading).toThrow('line 2: tags are nested deeper than 100');
});

test('a CSV record without an end is refused by its first line, without reading what follows', () => {
  const text = `${plain('A')}${plain('5" pipe').split('\n')[1]}\n${'2026-10-02,1.00,USD,1,R,A,,\n'.repeat(20_000)}`;
  const maps = settingsWith({ bank_csv: MAPS }).bank_csv;
  const reading = () =>
    readBankFile({ name: 'a.csv', map: 'plain', bytes: Buffer.from(`${text}"\xff`, 'latin1') }, maps);
  expect(reading).toThrow(/line 3: .*100000 characters/);
});

test('an amount that an entry and its only transaction state is one problem', () => {
  const negative = entry('A').replaceAll('1.00', '-1.00').replace('<TxDtls>', '<TxDtls><Amt Ccy="EUR">-1.00</Amt>');
  expect(messageOf(camt(negative)).match(/is negative/g)).toHaveLength(1);
});

/** One damage of a text: a piece doubled, dropped, moved, or a character changed. */
function damaged(text: string, random: () => number): string {
  const at = Math.floor(random() * text.length);
  const length = 1 + Math.floor(random() * 40);
  const piece = text.slice(at, at + length);
  const kind = Math.floor(random() * 5);
  const marks = ',/-<>&"\n\t;0D\u00ff=';
  const mark = marks[Math.floor(random() * marks.length)] as string;
  if (kind === 0) return text.slice(0, at) + text.slice(at + length);
  if (kind === 1) return text.slice(0, at) + piece.repeat(2 + Math.floor(random() * 200)) + text.slice(at);
  if (kind === 2) return text.slice(0, at) + mark + text.slice(at + 1);
  if (kind === 3) return text.slice(0, at) + mark + text.slice(at);
  return text.slice(0, at);
}

const files = readdirSync(FILES, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const names = files.map(({ parentPath, name }) => relative(FILES, join(parentPath, name)));
test.each(names)('%s, damaged in 150 ways, is read or refused each time', async (name) => {
  const { random } = seeded();
  const whole = readFileSync(join(FILES, name), 'latin1');
  const results = new Set<string>();
  for (let time = 0; time < 150; time += 1) {
    let text = whole;
    for (let times = 1 + Math.floor(random() * 3); times > 0; times -= 1) text = damaged(text, random);
    results.add(await read(name, Buffer.from(text, 'latin1')));
  }
  expect([...results].filter((each) => !/^(\d+ lines|bank_\w+)$/.test(each))).toEqual([]);
});
