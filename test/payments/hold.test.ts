/** Bank lines that contradict themselves: each is held for finance with the right suggestions, and nothing is applied. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { paymentFacts } from '../../src/actions/payment/describe.ts';
import { paymentImport } from '../../src/actions/payment/import.ts';
import { verify } from '../../src/audit/verify.ts';
import { exceptionJson } from '../../src/cli/commands/payment/exceptions.ts';
import { applyPayment, unapplyPayment } from '../../src/payments/apply.ts';
import { listExceptions } from '../../src/payments/exceptions.ts';
import { readPayerAccounts } from '../../src/payments/payer-accounts.ts';
import { readPayments } from '../../src/payments/payments.sql.ts';
import { openWorld, partner, quote } from '../support/world.ts';
import { type Books, booksOf, inv } from './books.ts';
import { importBankFile } from './import-file.ts';

/** INV-2026-000001 to -000030, in this order: July of all, then August. */
const PARTNERS: readonly (readonly [id: string, name: string, july: string, august: string, parent?: string])[] = [
  ['blue', 'Bluebird Events Corp', '350.00', '490.00'],
  ['cedar', 'Cedar Arena LLC', '770.00', '210.00'],
  ['east', 'Harbour Tickets East Inc', '700.00', '840.00'],
  ['ember', 'Ember Lodging LLC', '308.00', '301.00'],
  ['falcon', 'Falcon Charters LLC', '420.00', '420.00'],
  ['granite', 'Granite Tours Inc', '1400.00', '1050.00'],
  ['knights', 'New York Knights Tickets', '131.31', '141.41'],
  ['larkspur', 'Larkspur Stage LLC', '782.69', '111.11', 'ridge'],
  ['orchid', 'Orchid Cruises LLC', '420.00', '420.00'],
  ['pinewood', 'Pinewood Hall LLC', '392.90', '222.22', 'ridge'],
  ['ridge', 'Ridgeline Group LLC', '55.55', '66.66'],
  ['solo', 'Zenobia GmbH', '615.00', '33.33'],
  ['tick', 'The Ticket Company LLC', '560.00', '425.00'],
  ['tmaster', 'Ticketmaster L.L.C.', '151.51', '161.61'],
  ['west', 'Harbour Tickets West Inc', '980.00', '630.00'],
];
const number = (id: string, month: 'july' | 'august') =>
  inv(PARTNERS.findIndex(([each]) => each === id) + 1 + (month === 'july' ? 0 : PARTNERS.length));

const short = (id: string, month: 'july' | 'august') => number(id, month).slice(-6);

let books: Books;
beforeAll(async () => {
  const world = await openWorld();
  await world.partners(
    PARTNERS.map(([partner_id, name, , , parent = null]) =>
      partner({
        partner_id,
        name,
        parent,
        invoicing_contact: { name: 'AP', email: `ap@${partner_id}.example`, cc: [] },
      }),
    ),
  );
  for (const [index, month] of ['2026-07', '2026-08'].entries()) {
    world.at(`2026-0${8 + index}-02T15:00:00Z`);
    await world.rows(
      PARTNERS.map(([partner_id, , ...months]) =>
        quote({
          ...{ partner_id, accepted_at: `${month}-15T12:00:00Z`, partnerCut: '0' },
          ...{ spotPrice: months[index], invoiceAmount: months[index] },
        }),
      ),
    );
    await world.close();
  }
  world.at('2026-10-12T15:00:00Z');
  books = booksOf(world, { small_difference: { USD: '25.00', percent: '1' } });
});
afterAll(() => books.end());

let files = 0;
/** A BAI2 file of one line, whose text is cut at 70 characters. */
function bai2(type: string, amount: string, reference: string, text: string, day = '261005'): string {
  const cents = amount.replace('.', '');
  const pieces = text.includes('|') ? text.split('|') : (text.match(/.{1,70}/g) as string[]);
  files += 1;
  return [
    `01,BANKUS,CUST,${day},2000,${files},,,2/`,
    `02,CUST,BANKUS,1,${day},2400,USD,2/`,
    '03,000123456789,USD/',
    `16,${type},${cents},Z,${reference},,${pieces[0]}/`,
    ...pieces.slice(1).map((piece) => `88,${piece}/`),
    `49,${cents},${pieces.length + 2}/`,
    `98,${cents},1,${pieces.length + 4}/`,
    `99,${cents},1,${pieces.length + 6}/`,
  ].join('\n');
}
const ach = (amount: string, payer: string, id: string, text: string, day?: string) =>
  bai2(
    ...(['142', amount, `T${files}`] as const),
    `ORIG CO NAME:${payer} ORIG ID:${id} DESC DATE:261003 CO ENTRY DESCR:PAYMENTS SEC:CCD IND NAME:ISSUER TRN: ${text}`,
    day,
  );
const wire = (amount: string, payer: string, text: string) =>
  bai2('195', amount, `W${files}`, `WT FED#01234 JPMORGAN CHASE /ORG=${payer} SRF# 1234 TRN#999 RFB# ${text}`);
const csv = (amount: string, payer: string, text: string, account = '') =>
  `date,amount,currency,account,bank_reference,text,payer,payer_account\n2026-10-05,${amount},USD,1,C-${amount},${text},${payer},${account}\n`;
const camt = (amount: string, parties: string, text: string) => `<?xml version="1.0"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt><Id>S</Id><Acct><Id><IBAN>DE02120300000000202051</IBAN></Id><Ccy>USD</Ccy></Acct><Ntry><Amt Ccy="USD">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-10-05</Dt></BookgDt><AcctSvcrRef>R-${amount}</AcctSvcrRef><NtryDtls><TxDtls><RltdPties>${parties}</RltdPties><RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry></Stmt></BkToCstmrStmt></Document>`;

/** Imports files one after another, and gives what the last one did; nothing is kept. */
const imported = (...contents: readonly string[]) =>
  books.database.preview(async (tx) => {
    const reports = [];
    for (const [index, text] of contents.entries()) {
      const result = await importBankFile(tx, books.acting, { name: `${index}.txt`, bytes: Buffer.from(text) });
      const done = { input: {}, result, preview: false } as Parameters<typeof paymentImport.report>[0];
      const report = await paymentImport.report(done, { width: 80 } as Parameters<typeof paymentImport.report>[1], tx);
      reports.push({ line: result.new_lines[0], exit: report.attention ? 4 : 0 });
    }
    const { checks } = await verify(tx, undefined, { schema: books.schema });
    expect(checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
    const last = reports.at(-1);
    const line = last?.line;
    const exceptions = await Promise.all((await listExceptions(tx, books.acting.settings)).map(exceptionJson));
    const [payment] = await readPayments(tx, { ids: [line?.payment_id ?? 0] });
    return {
      payer: payment?.partner_id ?? null,
      unapplied: payment?.unapplied,
      applied: line?.applied.map((each) => `${each.number} ${each.amount}`),
      suggested: line?.suggested.map((each) => each.number),
      exceptions: exceptions.filter((each) => line?.payment_id == null || each.payment_id === line.payment_id),
      exit: last?.exit,
      line,
      accounts: (await readPayerAccounts(tx)).map((each) => `${each.payer_account} ${each.partners.join(' ')}`),
    };
  });

interface Case {
  readonly files: readonly string[];
  /** The payer that is recorded; left out: nobody. */
  readonly payer?: string;
  /** The first suggestions, in their order. */
  readonly suggested: readonly string[];
  readonly why: string;
}

const PROVIDER = 'BILL.COM LLC DES:PAYABLES ID:0123 INDN:ISSUER CO ID:9876543210 CCD PMT INFO:';

const NAME_CASES: Readonly<Record<string, () => Case>> = {
  "a name that fits two partners, cut by the bank, with one's number and the other's amount": () => ({
    files: [ach('630.00', 'HARBOUR TICKETS ', '1112223334', number('east', 'august'))],
    suggested: [number('west', 'august'), number('east', 'august')],
    why: 'nothing shows that Harbour Tickets East Inc paid',
  }),
  "a near-twin's full name with the twin's number": () => ({
    files: [wire('630.00', 'HARBOUR TICKETS WEST INC', number('east', 'july'))],
    suggested: [number('west', 'august'), number('east', 'july')],
    why: `${number('east', 'july')} of east is named, but the payer's name is that of west`,
  }),
  "a stranger whose name goes on otherwise than the partner's": () => ({
    files: [wire('700.00', 'HARBOUR TICKETS NORTH INC', number('east', 'july'))],
    suggested: [number('east', 'july')],
    why: 'nothing shows that Harbour Tickets East Inc paid',
  }),
  'one word of the trade, in the text of another partner': () => ({
    files: [ach('770.00', 'CEDAR ARENA LLC', '1112223336', `TICKET PROTECTION JULY ${number('tick', 'july')}`)],
    suggested: [number('cedar', 'july'), number('tick', 'july')],
    why: `${number('tick', 'july')} of tick is named, but the payer's name is that of cedar`,
  }),
  'one word of a longer name': () => ({
    files: [csv('615.00', 'Zenobia Travel Partners', `WIRE ${number('solo', 'july')}`)],
    suggested: [number('solo', 'july')],
    why: 'nothing shows that Zenobia GmbH paid',
  }),
  'one word of a longer name, where the bank has no field for it': () => ({
    files: [csv('615.00', '', `WIRE ZENOBIA CHARTERS LLC ${number('solo', 'july')}`)],
    suggested: [number('solo', 'july')],
    why: 'nothing shows that Zenobia GmbH paid',
  }),
  "a named invoice, and exactly another partner's amount": () => ({
    files: [wire('630.00', 'HARBOUR TICKETS EAST INC', number('east', 'july'))],
    payer: 'east',
    suggested: [number('east', 'july'), number('west', 'august')],
    why: `${number('east', 'july')} is named, but the amount is exactly that of ${number('west', 'august')} of west`,
  }),
  "a named invoice, and exactly the amount of another of the payer's": () => ({
    files: [ach('1050.00', 'GRANITE TOURS IN', '1112223335', number('granite', 'july'))],
    payer: 'granite',
    suggested: [number('granite', 'august'), number('granite', 'july')],
    why: `${number('granite', 'july')} is named, but the amount is exactly that of ${number('granite', 'august')}`,
  }),
  'an exact amount and a blank payer id that an earlier line had too': () => ({
    files: [
      ach('350.00', 'BLUEBIRD EVENTS ', '', number('blue', 'july')),
      ach('490.00', 'CITY OF SPRINGFI', '', 'PERMIT REFUND 5581', '261006'),
    ],
    suggested: [number('blue', 'august')],
    why: 'no invoice number is recognized, and the payer is not known',
  }),
  'an exact amount and the beginning of a payer id that an earlier line had too': () => ({
    files: [
      bai2(
        '142',
        '210.00',
        'A1',
        `ORIG CO NAME:CEDAR ARENA LLC ORIG ID:91|12223336 DESC DATE:261003 TRN: ${number('cedar', 'august')}`,
      ),
      bai2(
        '142',
        '770.00',
        'A2',
        'ORIG CO NAME:CITY OF SPRINGFIELD ORIG ID:91|88776655 DESC DATE:261003 TRN: PERMIT REFUND',
      ),
    ],
    suggested: [number('cedar', 'july')],
    why: 'no invoice number is recognized, and the payer is not known',
  }),
  "a payment provider's id, and another partner in the text": () => ({
    files: [
      ach('420.00', 'BILL.COM INC', '9876543210', `FALCON CHARTERS LLC ${number('falcon', 'july')}`),
      ach('420.00', 'BILL.COM INC', '9876543210', 'ORCHID CRUISES LLC PAYMENT', '261006'),
    ],
    suggested: [number('orchid', 'july'), number('orchid', 'august')],
    why: 'no invoice number is recognized; payer looks like orchid',
  }),
  "a known account, an exact amount and a stranger's name": () => ({
    files: [
      ach('350.00', 'BLUEBIRD EVENTS', '1112223399', number('blue', 'july')),
      ach('490.00', 'CITY OF SPRINGFIELD', '1112223399', 'PERMIT', '261006'),
    ],
    suggested: [number('blue', 'august')],
    why: "the payer's name is CITY OF SPRINGFIELD, not Bluebird Events Corp",
  }),
  "a known account, another amount and a stranger's name": () => ({
    files: [
      ach('350.00', 'BLUEBIRD EVENTS', '1112223399', number('blue', 'july')),
      ach('491.00', 'CITY OF SPRINGFIELD', '1112223399', 'PERMIT', '261006'),
    ],
    suggested: [],
    why: 'from an account of blue, but another name is given; no invoice number is recognized',
  }),
  "a payment provider's id, where the bank has no field for the payer": () => ({
    files: [
      bai2('142', '420.00', 'B-1', `${PROVIDER} FALCON CHARTERS LLC ${number('falcon', 'july')}`),
      bai2('142', '420.00', 'B-2', `${PROVIDER} CITY OF SPRINGFIELD PERMIT`, '261006'),
    ],
    suggested: [number('orchid', 'july'), number('falcon', 'august')],
    why: 'the payer is not known',
  }),
  'a longer name, and a part of the amount': () => ({
    files: [csv('100.00', 'BLUEBIRD EVENTS SOUTH INC', number('blue', 'july'))],
    suggested: [number('blue', 'july')],
    why: 'nothing shows that Bluebird Events Corp paid',
  }),
  "a known account, and another partner's name": () => ({
    files: [
      csv('308.00', 'Ember Lodging LLC', number('ember', 'july'), 'ACC-700001'),
      csv('301.00', 'Orchid Cruises LLC', 'thanks', 'ACC-700001'),
    ],
    suggested: [number('ember', 'august')],
    why: 'the text names orchid, not ember',
  }),
  "a known account, and another partner's invoice in another amount": () => ({
    files: [
      csv('308.00', 'Ember Lodging LLC', number('ember', 'july'), 'ACC-700001'),
      csv('301.00', 'Ember Lodging LLC', number('solo', 'july'), 'ACC-700001'),
    ],
    payer: 'ember',
    suggested: [number('ember', 'august'), number('solo', 'july')],
    why: `${number('solo', 'july')} is named, but the account belongs to ember`,
  }),
  "an ultimate debtor that is another partner than the number's": () => ({
    files: [
      camt(
        '308.00',
        '<Dbtr><Pty><Nm>Wise Payments Ltd</Nm></Pty></Dbtr><UltmtDbtr><Pty><Nm>Orchid Cruises LLC</Nm></Pty></UltmtDbtr>',
        number('ember', 'july'),
      ),
    ],
    suggested: [number('ember', 'july')],
    why: 'nothing shows that Ember Lodging LLC paid',
  }),
  'a whole number and one that is cut off': () => ({
    files: [
      csv('2450.00', 'Granite Tours Inc', `${number('granite', 'july')} ${number('granite', 'august').slice(0, -3)}`),
    ],
    payer: 'granite',
    suggested: [number('granite', 'july'), number('granite', 'august')],
    why: 'may be the number of another invoice that it pays',
  }),
};

describe('held, not applied', () => {
  for (const [what, build] of Object.entries(NAME_CASES)) {
    test(what, async () => {
      const { files: contents, payer = null, suggested, why } = build();
      const found = await imported(...contents);
      expect(found).toMatchObject({ applied: [], payer, exit: 4, unapplied: found.line?.amount });
      expect(found.line?.why).toContain(why);
      expect(found.suggested?.slice(0, suggested.length)).toEqual(suggested);
      expect(found.exceptions).toHaveLength(1);
    });
  }
});

const CUT = 'ORIG CO NAME:EMBER LODGING LLC DESC DATE:261003 CO ENTRY ';

describe('applied, because nothing contradicts', () => {
  const cases: Readonly<Record<string, () => readonly [applied: string, ...files: string[]]>> = {
    "the payer's whole name": () => [
      `${number('east', 'july')} 700.00`,
      wire('700.00', 'HARBOUR TICKETS EAST INC', number('east', 'july')),
    ],
    'a name that is cut, but fits one partner only': () => [
      `${number('ember', 'july')} 308.00`,
      ach('308.00', 'EMBER LODGING LL', '1112223337', number('ember', 'july')),
    ],
    'the only word of a name': () => [
      `${number('solo', 'july')} 615.00`,
      csv('615.00', 'ZENOBIA GMBH', number('solo', 'july')),
    ],
    'the only word of a name, in a text': () => [
      `${number('solo', 'july')} 615.00`,
      csv('615.00', '', `WIRE FROM ZENOBIA ${number('solo', 'july')}`),
    ],
    'the only word of a name with a dotted legal form': () => [
      `${number('tmaster', 'july')} 151.51`,
      csv('151.51', 'TICKETMASTER LLC', number('tmaster', 'july')),
    ],
    "two words of another partner's name in the address of a bank": () => [
      `${number('east', 'july')} 700.00`,
      wire('700.00', 'HARBOUR TICKETS EAST INC', `${number('east', 'july')} JPMORGAN CHASE BANK NEW YORK NY`),
    ],
    'a longer name with the number and the exact amount': () => [
      `${number('blue', 'july')} 350.00`,
      csv('350.00', 'BLUEBIRD EVENTS SOUTH INC', number('blue', 'july')),
    ],
    'a part payment of a round amount': () => [
      `${number('granite', 'july')} 500.00`,
      csv('500.00', 'Granite Tours', number('granite', 'july')),
    ],
    "a payment provider that names its customer and the customer's invoice": () => [
      `${number('falcon', 'july')} 420.00`,
      ach('420.00', 'BILL.COM INC', '9876543210', `FALCON CHARTERS LLC ${number('falcon', 'july')}`),
    ],
    'an ultimate debtor': () => [
      `${number('ember', 'july')} 308.00`,
      camt(
        '308.00',
        '<Dbtr><Pty><Nm>Wise Payments Ltd</Nm></Pty></Dbtr><UltmtDbtr><Nm>Ember Lodging LLC</Nm></UltmtDbtr>',
        number('ember', 'july'),
      ),
    ],
    'an exact amount from an account that was learned under its name': () => [
      `${number('ember', 'august')} 301.00`,
      ach('308.00', 'EMBER LODGING LL', '1112223337', number('ember', 'july')),
      ach('301.00', 'EMBER LODGING LL', '1112223337', 'AUGUST'),
    ],
    'an account whose label is cut by a full record': () => [
      `${number('ember', 'august')} 301.00`,
      bai2('142', '308.00', 'B1', `${CUT}DESCR:PAY ORIG ID:1112223337 TRN: ${number('ember', 'july')}`),
      ach('301.00', 'EMBER LODGING LL', '1112223337', 'AUGUST'),
    ],
    'an account that is cut by a full record': () => [
      `${number('ember', 'august')} 301.00`,
      bai2('142', '308.00', 'B2', `${CUT}ORIG ID:1112223337 TRN: ${number('ember', 'july')}`),
      ach('301.00', 'EMBER LODGING LL', '1112223337', 'AUGUST'),
    ],
  };
  for (const [what, build] of Object.entries(cases)) {
    test(what, async () => {
      const [applied, ...contents] = build();
      expect(await imported(...contents)).toMatchObject({ applied: [applied], exit: 0, exceptions: [] });
    });
  }
});

test('no account is learned from a label, a stump or a payment provider', async () => {
  const { accounts } = await imported(
    ach('350.00', 'BLUEBIRD EVENTS ', '', number('blue', 'july')),
    bai2(
      '142',
      '210.00',
      'A1',
      `ORIG CO NAME:CEDAR ARENA LLC ORIG ID:91|12223336 DESC DATE:261003 TRN: ${number('cedar', 'august')}`,
    ),
    csv('420.00', 'Bill.com', `Falcon Charters LLC ${number('falcon', 'july')}`, '9876543210'),
    csv('700.00', 'Harbour Tickets East', number('east', 'july'), '91'),
    csv('490.00', 'Bluebird Events South Inc', number('blue', 'august'), 'ACC-700002'),
    csv('615.00', '', `Zenobia ${number('solo', 'july')}`, 'ACC-700003'),
    csv('308.00', 'Ember Lodging LLC', number('ember', 'july'), 'ACC-700001'),
  );
  expect(accounts).toEqual(['ACC-700001 ember']);
});

test('several invoices of which one is named by a short number are paid less one fee', async () => {
  const { applied, exit, unapplied } = await imported(
    csv('2435.00', 'Granite Tours Inc', `INV 2026 ${short('granite', 'july')} ${short('granite', 'august')} LESS FEE`),
  );
  expect([applied, exit, unapplied]).toEqual([
    [`${number('granite', 'july')} 1400.00`, `${number('granite', 'august')} 1035.00`],
    0,
    '0.00',
  ]);
});

describe('money that goes back', () => {
  const paid = () => ach('308.00', 'EMBER LODGING LL', '1112223337', number('ember', 'july'));
  const back = (type: string, reference: string, text: string) => bai2(type, '308.00', reference, text, '261007');
  const cases: Readonly<Record<string, () => readonly [outcome: string, why: string, ...files: string[]]>> = {
    'a credit reversal (552) under the same reference': () => [
      ...(['return', 'is returned by the bank'] as const),
      bai2(
        '142',
        '308.00',
        'T07A-552',
        `ORIG CO NAME:EMBER LODGING LL ORIG ID:1112223337 TRN: ${number('ember', 'july')}`,
      ),
      back('552', 'T07A-552', 'CREDIT REVERSAL ORIG CO NAME:EMBER LODGING LL'),
    ],
    'an ACH reversal (558) with the invoice number': () => [
      ...(['return', 'is returned by the bank'] as const),
      paid(),
      back('558', 'R-1', `ACH REVERSAL EMBER LODGING LL ${number('ember', 'july')}`),
    ],
    'a posting error (554) of a payment that is not certain': () => [
      ...(['ignored', 'its payment is not certain'] as const),
      paid(),
      back('554', 'R-2', 'POSTING ERROR CORRECTION'),
    ],
    'a debit that the bank does not call a return, with amount and invoice number of a payment': () => [
      ...(['ignored', 'reverse it as returned'] as const),
      paid(),
      back('469', 'CB-1', `MISC ACH DEBIT EMBER LODGING LLC ${number('ember', 'july')}`),
    ],
    'a debit of the amount of a payment, with a return word': () => [
      ...(['ignored', 'reverse it as returned'] as const),
      paid(),
      back('469', 'CB-3', 'RETURNED DEPOSITED ITEM EMBER LODGING LLC'),
    ],
    'a debit of the amount of a payment, in CSV': () => [
      ...(['ignored', 'reverse it as returned'] as const),
      paid(),
      csv('-308.00', '', 'RETURNED ITEM EMBER LODGING'),
    ],
    'a debit of the amount of a payment, and nothing else': () => [
      ...(['ignored', 'has the amount of payment'] as const),
      paid(),
      back('469', 'CB-4', 'MISC DEBIT'),
    ],
    'a debit of another amount that names an invoice': () => [
      ...(['ignored', `may be a return for ${number('ember', 'july')}`] as const),
      paid(),
      bai2('469', '100.00', 'CB-5', `DEBIT ADJ EMBER ${number('ember', 'july')}`, '261007'),
    ],
    'a debit of another amount with a return word': () => [
      ...(['ignored', 'looks like a return, but its payment is not certain'] as const),
      paid(),
      bai2('469', '99.00', 'CB-6', 'CHECK RETURNED', '261007'),
    ],
    'a debit of several returns': () => [
      ...(['ignored', 'looks like a return for'] as const),
      paid(),
      bai2(
        '469',
        '608.00',
        'CB-2',
        `ACH RETURNS 2 ITEMS ${number('ember', 'july')} ${number('ember', 'august')}`,
        '261007',
      ),
    ],
    'a refund that comes back (257), with a credit note': () => [
      ...(['ignored', 'record that it was returned'] as const),
      bai2('257', '50.00', 'RT-77', 'INDIVIDUAL ACH RETURN ITEM R03 NO ACCOUNT ORIG OUT-1 CN-2026-000001 BLUEBIRD'),
    ],
    'a refund that comes back (257), and names nothing': () => [
      ...(['ignored', 'If a refund came back'] as const),
      bai2('257', '301.00', 'RT-78', 'INDIVIDUAL ACH RETURN ITEM R03 NO ACCOUNT OUR REFUND 8812'),
    ],
    'a refund that comes back in camt.053': () => [
      ...(['ignored', 'record that it was returned'] as const),
      camt('50.00', '', 'CN-2026-000001 REFUND').replace(
        '</TxDtls>',
        '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>',
      ),
    ],
  };
  for (const [what, build] of Object.entries(cases)) {
    test(`${what} is seen`, async () => {
      const [outcome, why, ...contents] = build();
      const { line, exit, exceptions } = await imported(...contents);
      expect([line?.outcome, exit, line?.needs_review]).toEqual([outcome, 4, true]);
      expect(line?.why).toContain(why);
      if (outcome === 'ignored') expect(exceptions.map(({ kind }) => kind)).toContain('bank_line');
    });
  }

  test('a sweep of another amount is none', async () => {
    expect(await imported(paid(), bai2('501', '999.00', 'SW-1', 'SWEEP TO INVESTMENT', '261007'))).toMatchObject({
      exit: 0,
      exceptions: [],
    });
  });

  test('a fee for a return is none', async () => {
    expect(await imported(bai2('567', '12.00', 'FEE-1', 'RETURN ITEM FEE R01'))).toMatchObject({
      exit: 0,
      exceptions: [],
    });
  });
});

describe("a parent's wire for its children", () => {
  const accepted = (numbers: readonly string[], content: string) =>
    books.database.preview(async (tx) => {
      const result = await importBankFile(tx, books.acting, { name: 'wire.txt', bytes: Buffer.from(content) });
      const paymentId = result.new_lines[0]?.payment_id as number;
      await applyPayment(tx, books.acting, { paymentId, numbers });
      const payer = async () => (await readPayments(tx, { ids: [paymentId] }))[0]?.partner_id;
      const applied = await payer();
      const facts = await paymentFacts(tx, paymentId);
      const accounts = (await readPayerAccounts(tx)).map((each) => `${each.payer_account} ${each.partners.join(' ')}`);
      await unapplyPayment(tx, books.acting, { paymentId });
      expect(
        (await verify(tx, undefined, { schema: books.schema })).checks.flatMap(({ differences }) => differences),
      ).toEqual([]);
      return { applied, undone: await payer(), accounts, shown: facts[`payment ${paymentId}`]?.['payer'] };
    });

  test('that names nothing is the parent its name shows, on every path', async () => {
    const content = csv('1175.59', 'RIDGELINE GROUP LLC', 'WIRE RIDGELINE SUBSIDIARIES', 'ACC-900001');
    const [line] = [(await imported(content)).line];
    expect(line?.suggested.map((each) => each.number).sort()).toEqual(
      [number('larkspur', 'july'), number('pinewood', 'july')].sort(),
    );
    for (const numbers of [[number('larkspur', 'july'), number('pinewood', 'july')], [number('larkspur', 'july')]]) {
      expect(await accepted(numbers, content)).toMatchObject({
        ...{ applied: 'ridge', undone: 'ridge', accounts: ['ACC-900001 ridge'], shown: 'ridge (Ridgeline Group LLC)' },
      });
    }
  });

  test('that the bank gives no name for teaches its account where finance applies it', async () => {
    const content = csv('111.11', '', 'WIRE', 'ACC-900002');
    expect(await accepted([number('larkspur', 'august')], content)).toMatchObject({
      accounts: ['ACC-900002 larkspur'],
    });
  });

  test('from a name that is nobody pays for two children as their common parent', async () => {
    const content = csv('1175.59', 'Somebody', 'WIRE', 'ACC-900001');
    expect(await accepted([number('larkspur', 'july'), number('pinewood', 'july')], content)).toMatchObject({
      ...{ applied: 'ridge', undone: 'ridge', accounts: [] },
    });
  });

  test('for strangers is refused until its payer is named', async () => {
    const content = csv('1175.59', 'Somebody', 'WIRE');
    const both = accepted([number('larkspur', 'july'), number('orchid', 'july')], content);
    await expect(both).rejects.toMatchObject({ code: 'payment_not_applicable' });
  });
});
