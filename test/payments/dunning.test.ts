/** Reminders: what waits for the bank, what is too small for a letter, pauses, and the one letter of a family. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ParsedMail, simpleParser } from 'mailparser';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readWork } from '../../src/actions/work/items.ts';
import { todayOf } from '../../src/config/today.ts';
import { holdDocument, releaseDocument } from '../../src/documents/hold.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { sendOtherEmails } from '../../src/mail/outbox.ts';
import { planReminders, type ReminderPlan, recordReminders } from '../../src/payments/remind.ts';
import { reminderEmail } from '../../src/payments/reminder-email.ts';
import { pauseReminders } from '../../src/payments/reminder-pauses.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { readStatus } from '../support/status.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { type Books, booksOf } from './books.ts';

let world: World;
let books: Books;
beforeEach(async () => {
  world = await openWorld();
  books = booksOf(world);
});
afterEach(() => world.end());

const INV_1 = 'INV-2026-000001';
const INV_2 = 'INV-2026-000002';
const INV_3 = 'INV-2026-000003';

const contact = (id: string) => ({ name: 'AP', email: `${id}@partner.example`, cc: [] });

/** July's invoices of 7.00, issued and sent on 1 August, due on 31 August, a Monday. */
async function invoiceJuly(partners: readonly Record<string, unknown>[], rows: readonly object[] = []): Promise<void> {
  await world.partners(
    partners.map((each) => partner({ invoicing_contact: contact(String(each['partner_id'])), ...each })),
  );
  await world.rows(rows.length > 0 ? rows : partners.map(({ partner_id }) => quote({ partner_id })));
  await world.close();
  await world.deliver();
}

const at = (date: string) => world.at(`${date}T16:00:00Z`);
const plan = async (date: string): Promise<ReminderPlan> => {
  at(date);
  return (await world.database.reading((tx) => planReminders(tx, world))).plan;
};

/** A day of the job: what it recorded, as "payer level number,number"; the e-mails are sent. */
async function remind(date: string, without?: { accounts: string[]; reason: string }): Promise<string[]> {
  at(date);
  const { reminders } = await world.database.transaction((tx) => recordReminders(tx, world, without));
  await sendOtherEmails({ ...world, composers: [reminderEmail] });
  return reminders.map(
    ({ partner_id, dunning_level, documents }) =>
      `${partner_id} ${dunning_level} ${documents.map(({ number }) => number).join(',')}`,
  );
}

async function mails(): Promise<ParsedMail[]> {
  const folder = join(world.home, 'outbox');
  const names = readdirSync(folder).filter((name) => name.startsWith('reminder'));
  return Promise.all(names.sort().map((name) => simpleParser(readFileSync(join(folder, name)))));
}

/** The bank's statement of a day, with a credit for an invoice where one is named. */
async function bank(account: string, day: string, line?: { invoice: string; amount?: string; ccy?: string }) {
  const [amount, ccy] = [line?.amount ?? '7.00', line?.ccy ?? 'USD'];
  const entry = line
    ? `<Ntry><Amt Ccy="${ccy}">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>
       <BookgDt><Dt>${day}</Dt></BookgDt>
       <AcctSvcrRef>R-${line.invoice}-${day}</AcctSvcrRef><NtryDtls><TxDtls>
       <Refs><EndToEndId>${line.invoice}</EndToEndId></Refs></TxDtls></NtryDtls></Ntry>`
    : '';
  const balance = (code: string, value: string) =>
    `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="${ccy}">${value}</Amt><CdtDbtInd>CRDT</CdtDbtInd>
     <Dt><Dt>${day}</Dt></Dt></Bal>`;
  await books.bankText(
    `${account}-${day}.xml`,
    `<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>
     <GrpHdr><MsgId>M-${account}-${day}</MsgId><CreDtTm>${day}T23:00:00Z</CreDtTm></GrpHdr>
     <Stmt><Id>S-${account}-${day}</Id><CreDtTm>${day}T23:00:00Z</CreDtTm>
     <Acct><Id><Othr><Id>${account}</Id></Othr></Id><Ccy>${ccy}</Ccy></Acct>
     ${['OPBD', 'CLBD'].map((code) => balance(code, code === 'CLBD' && line ? amount : '0.00')).join('')}
     ${entry}</Stmt></BkToCstmrStmt></Document>`,
  );
}

const pause = (partnerId: string, until: string | null, reason = 'an installment plan') =>
  world.database.transaction((tx) => pauseReminders(tx, world, { partnerId, until, reason }));

const refusalOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: unknown) => {
      if (error instanceof Refusal) return error.code;
      throw error;
    },
  );

describe('levels wait for the bank file', () => {
  test('a level after the last reported day waits for the file, and what the file paid is not dunned', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }, { partner_id: 'p-2' }]);
    at('2026-09-04');
    // 3 September is a Thursday, so Friday's run knows what is paid, and that of Monday, 7 September, does not.
    await bank('0001', '2026-09-03');
    const waiting = { reason: 'awaits_bank_file', waits_for: [{ account: '0001', reported_to: '2026-09-03' }] };
    expect(await remind('2026-09-04')).toEqual([`p-1 0 ${INV_1}`, `p-2 0 ${INV_2}`]);
    expect(await remind('2026-09-07')).toEqual([]);
    expect((await plan('2026-09-07')).skipped).toEqual([
      { number: INV_1, partner_id: 'p-1', ...waiting },
      { number: INV_2, partner_id: 'p-2', ...waiting },
    ]);
    await bank('0001', '2026-09-04', { invoice: INV_1 });
    // The report of Monday may show what paid the other one.
    expect(await remind('2026-09-08')).toEqual([]);
    await bank('0001', '2026-09-07');
    expect(await remind('2026-09-08')).toEqual([`p-2 7 ${INV_2}`]);
    expect(await remind('2026-09-09')).toEqual([]);
    await books.verified();
  });

  test('a level that a pause, a hold or a missed run made late waits for the report of the day before the run', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }, { partner_id: 'p-2' }, { partner_id: 'p-3' }]);
    at('2026-09-04');
    await bank('0001', '2026-09-03');
    expect(await remind('2026-09-04')).toHaveLength(3);
    await bank('0001', '2026-09-04');
    await pause('p-1', '2026-09-15');
    await world.database.transaction((tx) => holdDocument(tx, world, { number: INV_2, reason: 'asked' }));
    // The job does not run on 7 September, and the bank's files end with 4 September. Two pay meanwhile.
    at('2026-09-16');
    await world.database.transaction((tx) => releaseDocument(tx, world, INV_2));
    expect((await plan('2026-09-16')).skipped.map(({ reason }) => reason)).toEqual(Array(3).fill('awaits_bank_file'));
    expect(await remind('2026-09-16')).toEqual([]);
    for (const [index, invoice] of [INV_1, INV_2].entries()) await bank('0001', `2026-09-1${4 + index}`, { invoice });
    expect(await remind('2026-09-16')).toEqual([`p-3 7 ${INV_3}`]);
    await books.verified();
  });

  test("Friday's report decides the levels of Saturday, Sunday and Monday", async () => {
    await invoiceJuly([
      { partner_id: 'p-1', payment_terms_days: 28 },
      { partner_id: 'p-2', payment_terms_days: 29 },
      { partner_id: 'p-3', payment_terms_days: 30 },
      { partner_id: 'p-4', payment_terms_days: 31 },
    ]);
    at('2026-08-28');
    await bank('0001', '2026-08-28');
    // Due on Saturday, Sunday, Monday and Tuesday.
    expect(await remind('2026-08-29')).toEqual(expect.arrayContaining([`p-1 0 ${INV_1}`]));
    expect(await remind('2026-08-30')).toEqual([`p-2 0 ${INV_2}`]);
    expect(await remind('2026-08-31')).toEqual([`p-3 0 ${INV_3}`]);
    expect(await remind('2026-09-01')).toEqual([]);
    await bank('0001', '2026-08-31');
    expect(await remind('2026-09-01')).toEqual(['p-4 0 INV-2026-000004']);
  });

  test('after weeks of waiting, only the latest level is sent', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }]);
    at('2026-08-20');
    await bank('0001', '2026-08-19');
    for (const day of ['2026-08-24', '2026-08-31', '2026-09-07', '2026-09-21']) expect(await remind(day)).toEqual([]);
    await bank('0001', '2026-09-21');
    expect(await remind('2026-09-22')).toEqual([`p-1 21 ${INV_1}`]);
  });

  test('every account of the currency must be reported; currencies without files remind as before', async () => {
    await invoiceJuly(
      [{ partner_id: 'p-1' }, { partner_id: 'p-2', currency: 'EUR' }],
      [quote({ partner_id: 'p-1' }), quote({ partner_id: 'p-2', currency: 'EUR' })],
    );
    at('2026-08-31');
    await bank('0001', '2026-08-28');
    await bank('0002', '2026-08-20');
    expect(await remind('2026-08-31')).toEqual([`p-2 0 ${INV_2}`]);
    expect((await plan('2026-08-31')).skipped).toMatchObject([
      { number: INV_1, waits_for: [{ account: '0002', reported_to: '2026-08-20' }] },
    ]);
    // The account is closed: the setting says why, and nothing waits for it.
    world.settings = { ...world.settings, ended_bank_accounts: { '0002': 'closed in August' } };
    expect(await remind('2026-08-31')).toEqual([`p-1 0 ${INV_1}`]);
  });

  test('finance can remind without a file, with a reason that is recorded', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }]);
    at('2026-08-31');
    await bank('0001', '2026-08-20');
    const without = { accounts: ['0001'], reason: 'nothing to report' };
    expect(await refusalOf(remind('2026-08-31', { ...without, accounts: ['9999'] }))).toBe('bank_account_unknown');
    expect(await remind('2026-08-31', without)).toEqual([`p-1 0 ${INV_1}`]);
    expect(await world.sql("SELECT details FROM audit_events WHERE action = 'reminder.record'")).toMatchObject([
      { details: { without: ['0001'], reason: 'nothing to report' } },
    ]);
    expect(await mails()).toHaveLength(1);
    await books.verified();
  });

  test('after three working days of waiting, it is a finding of the status and of the work queue', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }]);
    at('2026-08-31');
    await bank('0001', '2026-08-20');
    const found = async (date: string) => {
      at(date);
      const { findings } = await world.database.reading((tx) => readStatus(tx, world));
      const question = { settings: world.settings, scope: null, today: todayOf(world), now: Date.parse(date) };
      const work = await world.database.reading((tx) => readWork(tx, question));
      const items = [findings, work].map((each) => each.filter(({ item }) => item.startsWith('bank_file:')));
      expect(items[0]?.map(({ item }) => item)).toEqual(items[1]?.map(({ item }) => item));
      return items[0]?.map(({ urgent }) => urgent);
    };
    // The level of 24 August waits: Tuesday, Wednesday and Thursday.
    expect(await found('2026-08-26')).toEqual([]);
    expect(await found('2026-08-27')).toEqual([
      'Since 2026-08-24, the reminders of 1 invoice wait for the bank file of 0001, reported through 2026-08-20. ' +
        'If it no longer reports, list it in ended_bank_accounts of settings.json.',
    ]);
    at('2026-08-27');
    await bank('0001', '2026-08-26');
    expect(await found('2026-08-27')).toEqual([]);
  });
});

test('a letter that is withdrawn says what is true of its documents', async () => {
  await invoiceJuly([{ partner_id: 'p-1' }]);
  at('2026-08-31');
  await bank('0001', '2026-08-28');
  await world.database.transaction((tx) => recordReminders(tx, world));
  at('2026-09-08');
  await sendOtherEmails({ ...world, composers: [reminderEmail] });
  expect(await world.sql('SELECT reason FROM emails WHERE kind = $1', ['reminder'])).toEqual([
    {
      reason: 'no document of it is demanded now: it waits for the bank file of 0001, reported through 2026-08-28',
    },
  ]);
});

describe('no letter for little', () => {
  test('what the bank kept of a payment is not dunned', async () => {
    await invoiceJuly(
      [{ partner_id: 'p-1' }],
      [quote({ spotPrice: '1526.00', partnerCut: '0.00', invoiceAmount: '1526.00' })],
    );
    at('2026-08-20');
    const { paymentId } = await books.record({ amount: '1500.00', receivedOn: '2026-08-20', partnerId: 'p-1' });
    await books.apply(paymentId, INV_1);
    expect((await plan('2026-08-31')).reminders).toHaveLength(1);
    world.settings = { ...world.settings, small_difference: { USD: '30.00' } };
    expect(await plan('2026-08-31')).toMatchObject({
      reminders: [],
      skipped: [{ number: INV_1, reason: 'bank_charges' }],
    });
    // More than a bank keeps is dunned.
    world.settings = { ...world.settings, small_difference: { USD: '25.00' } };
    expect((await plan('2026-08-31')).reminders).toHaveLength(1);
  });

  test('a letter below the smallest sum is not sent; the sum is that of the letter', async () => {
    const rows = ['0.40', '0.70'].map((amount, index) =>
      quote({
        ...{ partner_id: 'p-1', spotPrice: amount, partnerCut: '0.00', invoiceAmount: amount },
        accepted_at: `2026-0${7 + index}-15T12:00:00Z`,
      }),
    );
    await invoiceJuly([{ partner_id: 'p-1' }], rows.slice(0, 1));
    const small = { reminders: [], skipped: [{ number: INV_1, partner_id: 'p-1', reason: 'below_minimum' }] };
    expect(await plan('2026-08-31')).toMatchObject(small);
    expect(await remind('2026-08-31')).toEqual([]);
    at('2026-09-01');
    await world.rows(rows.slice(1));
    await world.close();
    await world.deliver();
    // The second invoice is due on 1 October. Until its first level, only the first one is due.
    expect(await plan('2026-09-07')).toMatchObject(small);
    expect(await remind('2026-09-24')).toEqual([`p-1 21 ${INV_1},${INV_2}`]);
    world.settings = { ...world.settings, reminder_minimum: { '*': '1', USD: '5.00' } };
    expect(await remind('2026-10-15')).toEqual([]);
    world.settings = { ...world.settings, reminder_minimum: {} };
    expect(await remind('2026-10-16')).toEqual([`p-1 45 ${INV_1},${INV_2}`]);
  });

  test('credit and cash count: what they leave is the sum of the letter', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }]);
    at('2026-08-20');
    await books.record({ amount: '6.50', receivedOn: '2026-08-20', partnerId: 'p-1' });
    expect(await plan('2026-08-31')).toMatchObject({ reminders: [], skipped: [{ reason: 'below_minimum' }] });
  });
});

describe('a pause', () => {
  test('a paused partner gets no letter through its last day, and then the latest level only', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }, { partner_id: 'p-2' }]);
    at('2026-08-25');
    await pause('p-1', '2026-09-10');
    expect(await remind('2026-08-31')).toEqual([`p-2 0 ${INV_2}`]);
    expect((await plan('2026-09-10')).skipped).toMatchObject([
      { number: INV_1, reason: 'paused', paused_until: '2026-09-10' },
    ]);
    expect(await remind('2026-09-10')).toEqual([`p-2 7 ${INV_2}`]);
    expect(await remind('2026-09-11')).toEqual([`p-1 7 ${INV_1}`]);
    await books.verified();
  });

  test('it can be extended and ended early, with a reason; a past day and an end without a pause are refused', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }]);
    at('2026-08-25');
    expect(await refusalOf(pause('p-9', '2026-09-10'))).toBe('partner_unknown');
    expect(await refusalOf(pause('p-1', '2026-08-24'))).toBe('argument_invalid');
    expect(await refusalOf(pause('p-1', null))).toBe('reminders_not_paused');
    await pause('p-1', '2026-08-31');
    await pause('p-1', '2026-09-30', 'a longer plan');
    expect(await remind('2026-09-07')).toEqual([]);
    await pause('p-1', null, 'the plan is not kept');
    expect(await refusalOf(pause('p-1', null))).toBe('reminders_not_paused');
    expect(await remind('2026-09-07')).toEqual([`p-1 7 ${INV_1}`]);
    await books.verified();
  });

  test('a letter that waits to be sent is withdrawn by a pause', async () => {
    await invoiceJuly([{ partner_id: 'p-1' }]);
    at('2026-08-31');
    await world.database.transaction((tx) => recordReminders(tx, world));
    await pause('p-1', '2026-09-10');
    const statuses: string[] = [];
    await sendOtherEmails({ ...world, composers: [reminderEmail], onEmail: ({ status }) => statuses.push(status) });
    expect(statuses).toEqual(['withdrawn']);
    expect(await world.sql('SELECT reason FROM emails WHERE kind = $1', ['reminder'])).toEqual([
      { reason: 'no document of it is demanded now: its reminders are paused through 2026-09-10' },
    ]);
  });
});

describe('one letter for a family', () => {
  const FAMILY = [
    { partner_id: 'hq', name: 'Granite Ticketing LLC' },
    { partner_id: 'lark', name: 'Larkspur Events', parent: 'hq' },
    { partner_id: 'pine', name: 'Pinewood Shows', parent: 'lark' },
    { partner_id: 'solo', name: 'Solo Arena' },
  ];

  test('the payer gets one e-mail with the items of all, each with its partner; the children get none', async () => {
    await invoiceJuly(FAMILY);
    expect(await remind('2026-08-31')).toEqual([`hq 0 ${INV_1},${INV_2},${INV_3}`, 'solo 0 INV-2026-000004']);
    const letters = await mails();
    expect(letters.map((mail) => [mail.to].flat()[0]?.text).sort()).toEqual([
      '"AP" <hq@partner.example>',
      '"AP" <solo@partner.example>',
    ]);
    const [letter] = letters.filter((mail) => [mail.to].flat()[0]?.text.includes('hq@'));
    for (const said of [
      'This e-mail lists the open invoices of all companies that Granite Ticketing',
      `- ${INV_1} Granite Ticketing LLC: USD 7.00\nJuly 2026, due`,
      `- ${INV_2} Larkspur Events: USD 7.00\nJuly 2026, due`,
      `- ${INV_3} Pinewood Shows: USD 7.00\nJuly 2026, due`,
      'Total open: USD 21.00',
    ]) {
      expect(letter?.text).toContain(said);
    }
    expect(letter?.attachments.map(({ filename }) => filename)).toEqual(
      [INV_1, INV_2, INV_3].map((each) => `${each}.pdf`),
    );
    const [other] = letters.filter((mail) => [mail.to].flat()[0]?.text.includes('solo@'));
    expect(other?.text).not.toMatch(/Granite|Larkspur|Pinewood|pays for/);
    // Each level once, for a family too.
    expect(await remind('2026-08-31')).toEqual([]);
    await books.verified();
  });

  test("cash of the payer reduces the family's sum; a child's own money only its own", async () => {
    await invoiceJuly(FAMILY);
    at('2026-08-20');
    // The payer's own invoice takes 7.00, and the first child's 2.00 of it.
    await books.record({ amount: '9.00', receivedOn: '2026-08-20', partnerId: 'hq', reference: 'A' });
    // More than this child owes. The rest is not taken off what others owe.
    await books.record({ amount: '8.00', receivedOn: '2026-08-20', partnerId: 'pine', reference: 'B' });
    expect(await remind('2026-08-31')).toEqual([`hq 0 ${INV_2}`, 'solo 0 INV-2026-000004']);
    const letter = (await mails()).find((mail) => [mail.to].flat()[0]?.text.includes('hq@'));
    expect(letter?.text).toContain(
      'Total open: USD 7.00\nPayments and credit, not applied yet: -USD 2.00\nLeft to pay: USD 5.00',
    );
  });

  test('a pause leaves out the items of the partner and of all that it pays for; that of the payer stops the letter', async () => {
    await invoiceJuly(FAMILY);
    at('2026-08-25');
    const asked = async () => (await plan('2026-08-31')).reminders[0]?.documents.map(({ number }) => number);
    await pause('pine', '2026-09-05');
    expect(await asked()).toEqual([INV_1, INV_2]);
    await pause('pine', null);
    expect(await asked()).toEqual([INV_1, INV_2, INV_3]);
    // A partner that has a parent and a child.
    await pause('lark', '2026-09-05');
    expect(await asked()).toEqual([INV_1]);
    await pause('hq', '2026-09-05');
    expect((await plan('2026-08-31')).reminders.map(({ partner_id }) => partner_id)).toEqual(['solo']);
  });

  test("the payer's statement is one account of the family and ties; a child's is its own", async () => {
    await invoiceJuly(FAMILY);
    at('2026-08-20');
    const { paymentId } = await books.record({ amount: '14.00', receivedOn: '2026-08-20', partnerId: 'hq' });
    await books.apply(paymentId, [INV_1, INV_2] as never);
    at('2026-08-31');
    const statement = (partnerId: string) =>
      world.database.reading((tx) => readAccountStatement(tx, { partnerId, today: '2026-08-31' }));
    const of = await statement('hq');
    expect(of).toMatchObject({
      ties: true,
      pays_for: [
        { partner_id: 'lark', name: 'Larkspur Events' },
        { partner_id: 'pine', name: 'Pinewood Shows' },
      ],
      accounts: [{ closing: '7.00', unapplied: '0.00', open_items: [{ number: INV_3, partner_id: 'pine' }] }],
    });
    // The part that the payer paid for the child is no movement of the family.
    expect(
      of.accounts[0]?.lines.map(({ partner_id, document, reference, amount }) => [
        partner_id,
        document ?? reference,
        amount,
      ]),
    ).toEqual([
      ['hq', INV_1, '7.00'],
      ['lark', INV_2, '7.00'],
      ['pine', INV_3, '7.00'],
      ['hq', 'FT-1', '-14.00'],
    ]);
    expect(await statement('pine')).toMatchObject({ pays_for: [], ties: true, accounts: [{ closing: '7.00' }] });
    expect((await statement('solo')).accounts[0]?.lines).toHaveLength(1);
  });
});
