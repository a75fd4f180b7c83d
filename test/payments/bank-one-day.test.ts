/** One day of one account, told by each format in any order: the same lines and the same payments. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { query, type Transaction } from '../../src/database/transaction.ts';
import type { BankImport } from '../../src/payments/bank-import/import.ts';
import { someOf, times } from '../support/sweep.ts';
import { type Books, inv, openBooks } from './books.ts';
import { importBankFile } from './import-file.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

const IBAN = 'DE02120300000000202051';
const ALSO = 'Verwendungszweck';

interface Told {
  readonly amount: string;
  readonly name: string;
  readonly text: string;
  readonly ref: string;
}
// Two equal payments, a batch, charges and an outgoing payment. The account held 1,000.00 before.
const DAY: readonly Told[] = [
  { amount: '500.00', name: 'Muenchner Fest GmbH & Co. KG', text: `Rechnung ${inv(4)}`, ref: 'BR20261' },
  { amount: '810.25', name: '', text: 'Sammler 2 Posten', ref: 'BATCH-7' },
  { amount: '33.00', name: 'Olga Kern', text: 'danke', ref: 'BR20263' },
  { amount: '33.00', name: 'Olga Kern', text: 'danke', ref: 'BR20264' },
  { amount: '-12.00', name: '', text: 'Kontogebuehr', ref: 'BR20265' },
  { amount: '-80.00', name: 'Papierladen', text: 'Papier', ref: 'BR20266' },
];
const CLOSING = '2284.25';
const units = (amount: string) => amount.replace(/[-.]/g, '');
const isDebit = ({ amount }: Told) => amount.startsWith('-');
const plain = ({ amount }: Told) => amount.replace('-', '');
const xml = (text: string) => text.replace('&', '&amp;');

function bai2() {
  const records = DAY.map(
    (each) => `16,${isDebit(each) ? '495' : '195'},${units(each.amount)},Z,${each.ref},,${each.name} ${each.text}/`,
  );
  const control = DAY.reduce((sum, each) => sum + Number(units(each.amount)), 100000 + Number(units(CLOSING)));
  return [
    ...['01,BANK,OURS,261013,0600,1,,,2/', '02,OURS,BANK,1,261012,,EUR,2/'],
    ...[`03,120300000000202051,EUR,010,100000,,,015,${units(CLOSING)},,/`, ...records],
    ...[`49,${control},${records.length + 2}/`, `98,${control},1,${records.length + 4}/`],
    `99,${control},1,${records.length + 6}/`,
  ].join('\n');
}

const camtEntry = (each: Told, details: string) =>
  `<Ntry><Amt Ccy="EUR">${plain(each)}</Amt><CdtDbtInd>${isDebit(each) ? 'DBIT' : 'CRDT'}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>` +
  `<BookgDt><Dt>2026-10-12</Dt></BookgDt><AcctSvcrRef>${each.ref}</AcctSvcrRef>${details}</Ntry>`;
const camtDetails = (name: string, text: string, more = '') =>
  `<TxDtls>${more}<RltdPties><Dbtr><Pty><Nm>${xml(name)}</Nm></Pty></Dbtr></RltdPties><RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls>`;
const balance = (code: string, amount: string) =>
  `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd>` +
  '<Dt><Dt>2026-10-12</Dt></Dt></Bal>';
const camt = (message: string, element: string, part: string, content: string) =>
  `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}.001.08"><${element}><${part}><Id>1</Id><Acct><Id><IBAN>${IBAN}</IBAN>` +
  `</Id><Ccy>EUR</Ccy></Acct>${content}</${part}></${element}></Document>`;
const entries = DAY.map((each) =>
  camtEntry(each, each.name === '' ? '' : `<NtryDtls>${camtDetails(each.name, each.text)}</NtryDtls>`),
).join('');
const BATCH = DAY[1] as Told;
const inBatch = (amount: string, number: string) =>
  camtDetails('Muenchner Fest GmbH & Co. KG', number, `<Refs/><Amt Ccy="EUR">${amount}</Amt>`);

function mt940(account = `BYLADEM1001/${IBAN}`) {
  const lines = DAY.map(
    (each) =>
      `:61:2610121012${isDebit(each) ? 'D' : 'C'}${plain(each).replace('.', ',')}NTRFNONREF\n` +
      `:86:166?00${ALSO}?20${each.text}${each.name === '' ? '' : `?32${each.name.slice(0, 27)}?33${each.name.slice(27)}`}\n`,
  ).join('');
  return `:20:X\n:25:${account}\n:28C:7/1\n:60F:C261011EUR1000,00\n${lines}:62F:C261012EUR${CLOSING.replace('.', ',')}\n-\n`;
}

const ofx = () =>
  `<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>EUR<BANKACCTFROM><BANKID>12030000<ACCTID>202051<ACCTTYPE>CHECKING</BANKACCTFROM>` +
  `<BANKTRANLIST>${DAY.map(
    (each, index) =>
      `<STMTTRN><TRNTYPE>OTHER<DTPOSTED>20261012<TRNAMT>${each.amount}<FITID>F${index}00${index}${each.name === '' ? '' : `<NAME>${xml(each.name)}`}` +
      `<MEMO>${each.text}</STMTTRN>\n`,
  ).join('')}</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>`;

const csv = () =>
  `date,amount,currency,account,bank_reference,text,payer,payer_account\n${DAY.map(
    (each) => `2026-10-12,${each.amount},EUR,${IBAN},,${each.text},${each.name},\n`,
  ).join('')}`;

const PARTS = `<NtryDtls>${inBatch('750.25', inv(8))}${inBatch('60.00', inv(12))}</NtryDtls>`;
const CAMT054 = camt('camt.054', 'BkToCstmrDbtCdtNtfctn', 'Ntfctn', camtEntry(BATCH, PARTS));
const FILES: Readonly<Record<string, string>> = {
  'day.bai': bai2(),
  'day.053.xml': camt(
    'camt.053',
    'BkToCstmrStmt',
    'Stmt',
    balance('OPBD', '1000.00') + balance('CLBD', CLOSING) + entries,
  ),
  'day.054.xml': CAMT054,
  'day.052.xml': camt('camt.052', 'BkToCstmrAcctRpt', 'Rpt', entries),
  'parts.053.xml': camt(
    'camt.053',
    'BkToCstmrStmt',
    'Stmt',
    balance('OPBD', '1000.00') +
      balance('CLBD', CLOSING) +
      entries.replace(camtEntry(BATCH, ''), camtEntry({ ...BATCH, ref: 'OTHER' }, PARTS)),
  ),
  'day.sta': mt940(),
  'bank-code.sta': mt940('12030000/202051'),
  'number.sta': mt940('0000202051'),
  'other-number.sta': mt940('0000303051'),
  'day.ofx': ofx(),
  'day.csv': csv(),
};

const tell = (tx: Transaction, name: string): Promise<BankImport> =>
  importBankFile(tx, books.acting, { name, bytes: Buffer.from(FILES[name] as string) });

interface Outcome {
  readonly payments: readonly string[];
  readonly lines: number;
  readonly breaks: readonly unknown[];
  readonly reports: readonly BankImport[];
}

async function outcomeOf(tx: Transaction, reports: readonly BankImport[]): Promise<Outcome> {
  const payments = await query<{ payment: string }>(
    tx,
    `SELECT concat_ws(' ', round(p.amount, 2), b.applied, d.number) AS payment
     FROM payments p JOIN payment_balances b USING (payment_id)
     LEFT JOIN live_payment_applications a USING (payment_id) LEFT JOIN documents d USING (document_id)
     ORDER BY 1`,
  );
  const [lines] = await query<{ count: number }>(tx, 'SELECT count(*)::integer AS count FROM bank_lines');
  const breaks = reports.flatMap((each) => each.breaks);
  return { payments: payments.map((each) => each.payment), lines: lines?.count ?? 0, breaks, reports };
}

/** Tells the day in these orders, in a transaction that is rolled back. What orders begin with is told once. */
async function inOrders(
  all: readonly (readonly string[])[],
  ended: (order: readonly string[], outcome: Outcome) => void,
) {
  const after = async (tx: Transaction, told: readonly string[], reports: readonly BankImport[]): Promise<void> => {
    const those = all.filter((order) => told.every((name, index) => order[index] === name));
    if (those.some((order) => order.length === told.length)) ended(told, await outcomeOf(tx, reports));
    for (const name of new Set(those.flatMap((order) => order[told.length] ?? []))) {
      await query(tx, `SAVEPOINT told_${told.length}`);
      await after(tx, [...told, name], [...reports, await tell(tx, name)]);
      await query(tx, `ROLLBACK TO SAVEPOINT told_${told.length}`);
    }
  };
  await books.database.preview((tx) => after(tx, [], []));
}

async function inOrder(names: readonly string[]): Promise<Outcome> {
  let outcome: Outcome | undefined;
  await inOrders([names], (_, each) => {
    outcome = each;
  });
  return outcome as Outcome;
}

function* orders(names: readonly string[]): Generator<readonly string[]> {
  if (names.length === 0) yield [];
  for (const name of names) {
    for (const rest of orders(names.filter((each) => each !== name))) yield [name, ...rest];
  }
}

describe('a day that several formats tell', () => {
  const TOLD = ['day.bai', 'day.053.xml', 'day.054.xml', 'day.sta', 'day.ofx', 'day.csv'];
  const PAYMENTS = ['33.00 0', '33.00 0', `500.00 500.00 ${inv(4)}`, '810.25 0'];

  test('is the same lines and payments in every order', { timeout: 3_600_000 }, async () => {
    const all = [...orders(TOLD)];
    expect(all).toHaveLength(720);
    // Evenly spaced, so that each format comes first in some.
    const tried = someOf(all, times({ few: 24, short: 48, long: 720 }));
    const wrong: unknown[] = [];
    let ended = 0;
    await inOrders(tried, (order, { payments, lines, breaks }) => {
      ended += 1;
      if (JSON.stringify([payments, lines, breaks]) !== JSON.stringify([PAYMENTS, DAY.length, []])) {
        wrong.push({ order, payments, lines, breaks });
      }
    });
    expect(ended).toBe(tried.length);
    expect(wrong).toEqual([]);
  });

  test('as an interim report is shown and not recorded', async () => {
    const { payments, reports } = await inOrder(['day.052.xml', 'day.053.xml', 'day.052.xml']);
    expect(payments).toEqual(PAYMENTS);
    expect(reports[0]).toMatchObject({ lines: { total: 0, new: 0 }, outcomes: { shown: 6 }, event_id: null });
    expect(reports[0]?.new_lines[0]).toMatchObject({
      outcome: 'shown',
      why: expect.stringContaining('interim report'),
    });
    expect(reports[2]?.new_lines[0]).toMatchObject({ outcome: 'shown', why: 'already recorded from a statement' });
  });

  test('as details of a batch suggests the invoices of its parts, for the payment that the statement booked', async () => {
    const { reports } = await inOrder(['day.054.xml', 'day.053.xml', 'day.054.xml']);
    expect(reports[0]?.new_lines).toMatchObject([
      { outcome: 'shown', payment_id: null, why: expect.stringContaining('import the statement') },
      { outcome: 'shown', payment_id: null },
    ]);
    const batch = reports[1]?.new_lines.find(({ amount }) => amount === '810.25');
    expect(reports[2]?.new_lines).toMatchObject([
      { outcome: 'shown', payment_id: batch?.payment_id, amount: '750.25', suggested: [{ number: inv(8) }] },
      { outcome: 'shown', payment_id: batch?.payment_id, amount: '60.00', suggested: [{ number: inv(12) }] },
    ]);
  });

  test('of an account that one format names by its number alone is held: another bank may have that number', async () => {
    const known = await inOrder(['day.053.xml', 'bank-code.sta']);
    expect(known).toMatchObject({ payments: PAYMENTS, lines: DAY.length });
    const { payments, reports } = await inOrder(['day.053.xml', 'number.sta']);
    const first = reports[0]?.new_lines.filter(({ outcome }) => outcome === 'payment') ?? [];
    const held = reports[1]?.new_lines.filter(({ outcome }) => outcome === 'payment') ?? [];
    expect(held.map(({ same_as }) => same_as)).toEqual(first.map(({ payment_id }) => [payment_id]));
    expect(held.map(({ applied }) => applied)).toEqual(held.map(() => []));
    expect(held[0]?.why).toMatch(new RegExp(`of account ${IBAN}, which may be the same account; `));
    expect(payments).toEqual([...PAYMENTS, '33.00 0', '33.00 0', '500.00 0', '810.25 0'].sort());
    const other = await inOrder(['day.053.xml', 'other-number.sta']);
    expect(other.reports[1]?.new_lines.flatMap(({ same_as }) => same_as)).toEqual([]);
  });

  test('with a batch as one amount or as its parts is the same money, whichever comes first', async () => {
    const whole = await inOrder(['day.bai', 'parts.053.xml', 'day.csv']);
    expect(whole).toMatchObject({ payments: PAYMENTS, lines: DAY.length, breaks: [] });
    const parts = await inOrder(['parts.053.xml', 'day.bai', 'day.sta', 'day.ofx', 'day.csv']);
    expect(parts).toMatchObject({ lines: DAY.length + 1, breaks: [] });
    expect(parts.payments).toEqual([
      ...['33.00 0', '33.00 0', `500.00 500.00 ${inv(4)}`, `60.00 60.00 ${inv(12)}`, `750.25 750.25 ${inv(8)}`],
    ]);
  });
});
