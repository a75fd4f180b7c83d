/** Reminders: who is reminded of what, when, how often, and who never. The e-mails are those in the outbox. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import { type ParsedMail, simpleParser } from 'mailparser';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openingImport } from '../../src/actions/opening.ts';
import { runAction } from '../../src/actions/run.ts';
import { openDispute } from '../../src/documents/disputes.ts';
import { holdDocument, releaseDocument } from '../../src/documents/hold.ts';
import { rerunMonth } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { undoWriteOff } from '../../src/documents/write-off.ts';
import { countOtherEmails } from '../../src/mail/outbox.sql.ts';
import { type EmailResult, sendOtherEmails } from '../../src/mail/outbox.ts';
import type { Month } from '../../src/month.ts';
import { unapplyPayment } from '../../src/payments/apply.ts';
import { assignPayment } from '../../src/payments/assign.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { refundCredit } from '../../src/payments/refund.ts';
import { planReminders, recordReminders } from '../../src/payments/remind.ts';
import { reminderEmail, toneOf } from '../../src/payments/reminder-email.ts';
import { reversePayment } from '../../src/payments/reverse.ts';
import { correctionsOf } from '../documents/correcting.ts';
import { csvOf, invoice } from '../opening/file.ts';
import { withoutEvent } from '../support/guards.ts';
import { startMailServer } from '../support/mail-server.ts';
import { readStatus } from '../support/status.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.end());

/** July's invoices, issued and sent on 1 August, due on 31 August. */
async function invoiceJuly(...partnerIds: string[]): Promise<void> {
  await world.partners(
    partnerIds.map((partner_id) =>
      partner({ partner_id, invoicing_contact: { name: 'AP', email: `${partner_id}@partner.example`, cc: [] } }),
    ),
  );
  await world.rows(partnerIds.map((partner_id) => quote({ partner_id })));
  await world.close();
  await world.deliver();
}

const day = (date: string) => world.at(`${date}T16:00:00Z`);
const plan = async () => (await world.database.reading((tx) => planReminders(tx, world))).plan;
const record = () => world.database.transaction((tx) => recordReminders(tx, world));

async function send(): Promise<EmailResult[]> {
  const results: EmailResult[] = [];
  await sendOtherEmails({ ...world, composers: [reminderEmail], onEmail: (result) => results.push(result) });
  return results;
}

/** A day of the job: what it sent, as "partner level number,number". */
async function remind(date: string): Promise<string[]> {
  day(date);
  const { reminders } = await record();
  const outcomes = await send();
  expect(outcomes.map((each) => each.status)).toEqual(reminders.map(() => 'sent'));
  return reminders.map(
    ({ partner_id, dunning_level, documents }) =>
      `${partner_id} ${dunning_level} ${documents.map((each) => each.number).join(',')}`,
  );
}

async function mails(): Promise<ParsedMail[]> {
  const folder = join(world.home, 'outbox');
  const names = readdirSync(folder)
    .filter((name) => name.startsWith('reminder'))
    .sort();
  return Promise.all(names.map((name) => simpleParser(readFileSync(join(folder, name)))));
}

const INV_1 = 'INV-2026-000001';

test('each dunning level is sent once, on its day: a week before, on the day, 7, 21 and 45 days after', async () => {
  await invoiceJuly('p-1');
  const sentOn: [string, string[]][] = [];
  // The day of each level with the days around it.
  for (const date of ['2026-08-24', '2026-08-31', '2026-09-07', '2026-09-21', '2026-10-15']) {
    for (const shift of [-1, 0, 1]) {
      const today = DateTime.fromISO(date).plus({ days: shift }).toISODate() as string;
      const sent = await remind(today);
      if (sent.length > 0) sentOn.push([today, sent]);
    }
  }
  expect(sentOn).toEqual([
    ['2026-08-24', [`p-1 -7 ${INV_1}`]],
    ['2026-08-31', [`p-1 0 ${INV_1}`]],
    ['2026-09-07', [`p-1 7 ${INV_1}`]],
    ['2026-09-21', [`p-1 21 ${INV_1}`]],
    ['2026-10-15', [`p-1 45 ${INV_1}`]],
  ]);
  expect((await mails()).map((mail) => mail.subject)).toEqual([
    '[SANDBOX] Coming due: USD 7.00 with Sandbox Protection Services, Inc.',
    '[SANDBOX] Coming due: USD 7.00 with Sandbox Protection Services, Inc.',
    '[SANDBOX] Payment reminder: USD 7.00 overdue',
    '[SANDBOX] Urgent payment reminder: USD 7.00 overdue',
    '[SANDBOX] Final payment reminder: USD 7.00 overdue',
  ]);
});

test('running twice on a day, or at once, sends one e-mail', async () => {
  await invoiceJuly('p-1', 'p-2');
  day('2026-09-07');
  const both = await Promise.all([record(), record()]);
  expect(both.map(({ reminders }) => reminders.length).sort()).toEqual([0, 2]);
  const outcomes = (await Promise.all([send(), send()])).flat();
  expect(outcomes.filter((each) => each.status === 'sent')).toHaveLength(2);
  expect(await remind('2026-09-07')).toEqual([]);
  expect(await mails()).toHaveLength(2);
});

test('after weeks without a run, only the latest level is sent', async () => {
  await invoiceJuly('p-1');
  expect(await remind('2026-09-25')).toEqual([`p-1 21 ${INV_1}`]);
  expect(await remind('2026-09-26')).toEqual([]);
  expect(await remind('2026-10-15')).toEqual([`p-1 45 ${INV_1}`]);
});

test('one e-mail lists everything the partner owes, by currency, with its credit beside it', async () => {
  await invoiceJuly('p-1');
  world.at('2026-09-01T10:00:00Z');
  await world.rows([
    quote({ accepted_at: '2026-08-15T12:00:00Z' }),
    quote({ accepted_at: '2026-08-15T12:00:00Z', currency: 'EUR', policy_id: 'parking' }),
  ]);
  await world.close();
  await world.deliver();
  const payment = {
    amount: '2.00',
    currency: 'USD',
    method: 'wire',
    receivedOn: '2026-09-01',
    reference: 'FT-1',
  } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...payment, partnerId: 'p-1' }));
  expect(await remind('2026-09-07')).toEqual([`p-1 7 ${INV_1},INV-2026-000002,INV-2026-000003`]);
  const [mail] = await mails();
  expect([mail?.to].flat().map((to) => to?.text)).toEqual(['"AP" <p-1@partner.example>']);
  const text = mail?.text ?? '';
  for (const said of [
    '- INV-2026-000002: EUR 7.00\nAugust 2026, due',
    `- ${INV_1}: USD 7.00\nJuly 2026, due August 31, 2026, overdue by 7 days\nhttp://127.0.0.1:8080/pay/`,
    '- INV-2026-000003: USD 7.00\nAugust 2026, due October 1, 2026, due in 24 days',
    'Total open: USD 14.00\nOf which overdue: USD 7.00\nPayment received, not applied yet: -USD 2.00\nLeft to pay: USD 12.00',
    'SANDBOX',
  ])
    expect(text).toContain(said);
  expect(mail?.html).toContain('overdue by 7 days');
});

test('what open credit and unapplied cash cover, from the earliest due date on, is not reminded of', async () => {
  await invoiceJuly('p-1');
  world.at('2026-09-01T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-15T12:00:00Z' })]);
  await world.close();
  await world.deliver();
  const action = correctionsOf(world);
  // 4.00 of open credit and 3.00 of cash cover the 7.00 of July.
  await action.credit('INV-2026-000002', '4.00');
  await action.unapply('CN-2026-000001', 'INV-2026-000002');
  const cash = {
    amount: '3.00',
    currency: 'USD',
    method: 'wire',
    receivedOn: '2026-09-01',
    reference: 'FT-1',
  } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...cash, partnerId: 'p-1' }));
  expect(await remind('2026-09-07')).toEqual([]);
  day('2026-09-07');
  expect(await plan()).toMatchObject({ skipped: [{ number: INV_1, reason: 'covered_by_credit' }] });
  // The other invoice is reminded of; the e-mail has both, the credit, and what is left.
  expect(await remind('2026-10-01')).toEqual(['p-1 0 INV-2026-000002']);
  const [mail] = await mails();
  expect(mail?.text).toContain(
    'Total open: USD 14.00\nCredit note CN-2026-000001: -USD 4.00\nPayment received, not applied yet: -USD 3.00\nLeft to pay: USD 7.00',
  );
  expect(mail?.subject).toContain('USD 7.00');
  await action.apply('CN-2026-000001', 'INV-2026-000002');
  // Placed on the other invoice, it no longer covers this one.
  expect(await remind('2026-10-15')).toEqual([`p-1 45 ${INV_1},INV-2026-000002`]);
});

test('credit on hold covers no invoice, and a reminder does not name it', async () => {
  await invoiceJuly('p-1');
  world.at('2026-09-01T16:00:00Z');
  const action = correctionsOf(world);
  const note = await action.credit(INV_1, '7.00');
  await action.unapply(note, INV_1);
  await action.hold(note);
  // The levels count from the day on which the credit was taken back.
  expect(await remind('2026-09-08')).toEqual([`p-1 7 ${INV_1}`]);
  const [mail] = await mails();
  expect(mail?.subject).toContain('USD 7.00');
  expect(mail?.text).not.toContain(note);
  await action.release(note);
  day('2026-09-22');
  expect((await plan()).skipped).toMatchObject([{ number: INV_1, reason: 'covered_by_credit' }]);
});

test('the tone follows the dunning level: a notice, a reminder, an urgent and a final one, each with the invoice attached', async () => {
  await invoiceJuly('p-1');
  for (const date of ['2026-08-24', '2026-09-07', '2026-09-21', '2026-10-15']) await remind(date);
  const sent = await mails();
  expect(sent.map((mail) => mail.subject)).toEqual([
    '[SANDBOX] Coming due: USD 7.00 with Sandbox Protection Services, Inc.',
    '[SANDBOX] Payment reminder: USD 7.00 overdue',
    '[SANDBOX] Urgent payment reminder: USD 7.00 overdue',
    '[SANDBOX] Final payment reminder: USD 7.00 overdue',
  ]);
  for (const [index, said] of [
    'These invoices are coming due.',
    'Our records show the following invoices as unpaid. If you have paid in the',
    'Please pay the overdue amount now.',
    'This is our final reminder.',
  ].entries()) {
    expect(sent[index]?.text).toContain(said);
  }
  const issued = await world.sql<{ pdf: Buffer }>('SELECT pdf FROM document_pdfs');
  for (const { attachments } of sent) {
    expect(attachments.map(({ filename, content }) => [filename, content.equals(issued[0]?.pdf as Buffer)])).toEqual([
      [`${INV_1}.pdf`, true],
    ]);
  }
});

test.each([
  [[-7, 0, 7, 21, 45], 'notice notice first firm final'],
  [[0, 3, 10, 20, 30], 'notice first firm firm final'],
  [[5, 10], 'first final'],
  [[14], 'first'],
])('of the levels %j the tones are %s', (levels, tones) => {
  expect(levels.map((level) => toneOf(level, levels)).join(' ')).toBe(tones);
});

test('a reminder states the original, the paid and the open amount, and leaves out what is disputed', async () => {
  await invoiceJuly('p-1');
  day('2026-09-01');
  const payment = {
    amount: '2.00',
    currency: 'USD',
    method: 'wire',
    receivedOn: '2026-09-01',
    reference: 'FT-1',
  } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...payment, number: INV_1 }));
  await world.database.transaction((tx) => openDispute(tx, world, { number: INV_1, reason: 'wrong', amount: '1.50' }));
  day('2026-09-07');
  expect((await plan()).reminders[0]?.documents).toMatchObject([{ number: INV_1, balance: '5.00', disputed: '1.50' }]);
  await remind('2026-09-07');
  const [mail] = await mails();
  expect(mail?.subject).toBe('[SANDBOX] Payment reminder: USD 3.50 overdue');
  expect(mail?.text?.replaceAll('\n', ' ')).toContain(
    'Original amount USD 7.00; USD 2.00 paid; USD 1.50 in dispute, not requested here ',
  );
  expect(mail?.text).toContain('Total open: USD 3.50\nOf which overdue: USD 3.50');
  expect(mail?.html).toContain('Original amount USD 7.00; USD 2.00 paid; USD 1.50 in dispute');
});

test('what is named as overdue is never more than what is left to pay after disputes, credit and cash', async () => {
  await invoiceJuly('p-1');
  day('2026-09-01');
  const cash = {
    amount: '3.00',
    currency: 'USD',
    method: 'wire',
    receivedOn: '2026-09-01',
    reference: 'FT-1',
  } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...cash, partnerId: 'p-1' }));
  await world.database.transaction((tx) => openDispute(tx, world, { number: INV_1, reason: 'wrong', amount: '1.50' }));
  await remind('2026-09-07');
  const [mail] = await mails();
  expect(mail?.subject).toBe('[SANDBOX] Payment reminder: USD 2.50 overdue');
  expect(mail?.text).toContain('USD 2.50\noverdue\n');
  expect(mail?.text).toContain('Left to pay: USD 2.50');
});

test('a held document is named as soon as it has reached a level, also before its due date', async () => {
  await invoiceJuly('p-1');
  await world.database.transaction((tx) => holdDocument(tx, world, { number: INV_1, reason: 'they ask why' }));
  day('2026-08-23');
  expect((await plan()).skipped).toEqual([]);
  day('2026-08-24');
  expect((await plan()).skipped).toEqual([{ number: INV_1, partner_id: 'p-1', reason: 'on_hold' }]);
});

test('paid, void and held documents are skipped; after the release the next level is sent', async () => {
  await invoiceJuly('p-1', 'p-2', 'p-3', 'p-4');
  const numbered = (sequence: number) => `INV-2026-00000${sequence}`;
  day('2026-09-01');
  const payment = {
    amount: '7.00',
    currency: 'USD',
    method: 'wire',
    receivedOn: '2026-09-01',
    reference: 'FT-1',
  } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...payment, number: numbered(1) }));
  await world.database.transaction((tx) => voidDocument(tx, world, { number: numbered(2), reason: 'wrong' }));
  await world.database.transaction((tx) => holdDocument(tx, world, { number: numbered(3), reason: 'they ask why' }));
  expect((await plan()).skipped).toEqual([{ number: numbered(3), partner_id: 'p-3', reason: 'on_hold' }]);
  expect(await remind('2026-09-07')).toEqual([`p-4 7 ${numbered(4)}`]);
  day('2026-09-08');
  await world.database.transaction((tx) => releaseDocument(tx, world, numbered(3)));
  expect(await remind('2026-09-08')).toEqual([`p-3 7 ${numbered(3)}`]);
});

test('a debt whose payment the bank returned begins anew with the first overdue level, and the e-mail says why', async () => {
  await invoiceJuly('p-1');
  await remind('2026-09-07');
  day('2026-09-12');
  const payment = {
    amount: '7.00',
    currency: 'USD',
    method: 'ach',
    receivedOn: '2026-09-12',
    reference: 'A-900001',
  } as const;
  const { paymentId } = await world.database.transaction((tx) =>
    recordPayment(tx, world, { ...payment, number: INV_1 }),
  );
  day('2026-10-20');
  await world.database.transaction((tx) =>
    reversePayment(tx, world, { paymentId, kind: 'returned', reason: 'account closed', code: 'AC04' }),
  );
  const sent: string[] = [];
  for (const date of ['2026-10-21', '2026-10-26', '2026-10-27', '2026-10-28', '2026-11-10']) {
    for (const each of await remind(date)) sent.push(`${date} ${each}`);
  }
  expect(sent).toEqual([`2026-10-27 p-1 7 ${INV_1}`, `2026-11-10 p-1 21 ${INV_1}`]);
  const [, first] = await mails();
  expect(first?.subject).toBe('[SANDBOX] Payment reminder: USD 7.00 overdue');
  expect(first?.text?.replaceAll('\n', ' ')).toContain(
    'your payment of September 12, 2026 was returned by the bank on October 20, 2026',
  );
});

type Action = (number: string) => Promise<unknown>;
test('what was overdue at the cut-over is first reminded of by the first level, and only it is then demanded as final', async () => {
  await world.partners([partner({ invoicing_contact: { name: 'AP', email: 'p-1@partner.example', cc: [] } })]);
  day('2026-08-03');
  const file = {
    name: 'open-items.csv',
    bytes: Buffer.from(
      csvOf([
        invoice('OLD-1', '812.40', { date: '2026-05-01', due_on: '2026-05-31' }),
        invoice('OLD-2', '30.00', { date: '2026-07-31', due_on: '2026-09-14' }),
      ]),
    ),
  };
  const input = { file, cutOver: '2026-07-31', control: ['USD=842.40'], count: 2 };
  await runAction(world, openingImport, input, { deliver: false });
  const levels: string[] = [];
  for (let date = 3; date <= 60; date += 1) {
    const on = new Date(Date.UTC(2026, 7, date)).toISOString().slice(0, 10);
    for (const told of await remind(on)) levels.push(`${on} ${told.split(' ')[1]}`);
  }
  expect(levels).toEqual([
    '2026-08-10 7', // Counted from the import on 3 August, months after it was due.
    '2026-08-24 21',
    '2026-09-07 -7', // OLD-2: it is due on 14 September.
    '2026-09-14 0',
    '2026-09-17 45',
    '2026-09-21 7',
  ]);
  const sent = await mails();
  expect(sent.map(({ subject }) => subject?.replace('[SANDBOX] ', ''))).toEqual([
    'Payment reminder: USD 812.40 overdue',
    'Urgent payment reminder: USD 812.40 overdue',
    'Payment reminder: USD 812.40 overdue',
    'Payment reminder: USD 812.40 overdue',
    'Final payment reminder: USD 812.40 overdue',
    'Payment reminder: USD 842.40 overdue',
  ]);
  const final = sent[4] as ParsedMail;
  for (const text of [final.text, final.html].map((each) =>
    String(each)
      .replace(/<[^>]*>/g, '')
      .replace(/\s+/g, ' '),
  )) {
    expect(text).toMatch(/this is our final reminder of USD 812\.40\./i);
    expect(text).toContain('Please pay USD 812.40 within seven days.');
    expect(text).toContain('due May 31, 2026, overdue by 109 days, final reminder');
    expect(text).toContain('due September 14, 2026, overdue by 3 days');
    expect(text).not.toContain('overdue by 3 days, final reminder');
    expect(text).toContain('USD 842.40');
  }
});

const settlings: readonly (readonly [what: string, settle: Action, takeBack: Action])[] = [
  [
    'payment is unapplied',
    (number) =>
      world.database.transaction((tx) =>
        recordPayment(tx, world, {
          ...({ amount: '7.00', currency: 'USD', method: 'wire', receivedOn: '2026-08-20' } as const),
          ...{ reference: 'FT-1', number },
        }),
      ),
    (number) =>
      world.database.transaction(async (tx) => {
        await unapplyPayment(tx, world, { paymentId: 1, number });
        await assignPayment(tx, world, { paymentId: 1, partnerId: 'p-2' });
      }),
  ],
  [
    'write-off is undone',
    (number) => correctionsOf(world).writeOff(number),
    (number) => world.database.transaction((tx) => undoWriteOff(tx, world, { number, reason: 'they pay after all' })),
  ],
  [
    'credit is taken back',
    (number) => correctionsOf(world).credit(number, '7.00'),
    async (number) => {
      const action = correctionsOf(world);
      await action.unapply('CN-2026-000001', number);
      const refund = { number: 'CN-2026-000001', amount: '7.00', method: 'wire', reference: 'OUT-1' } as const;
      await world.database.transaction((tx) => refundCredit(tx, world, refund));
    },
  ],
];

test.each(settlings)('a debt whose %s begins anew with the first overdue level', async (_what, settle, takeBack) => {
  await invoiceJuly('p-1', 'p-2');
  day('2026-08-20');
  await settle(INV_1);
  // Late in the evening in New York, where the issuer is: in London it is the next day.
  world.at('2026-10-21T01:00:00Z');
  await takeBack(INV_1);
  const sent: string[] = [];
  for (const date of ['2026-10-21', '2026-10-26', '2026-10-27', '2026-11-10', '2026-12-04']) {
    for (const each of await remind(date)) if (each.includes(INV_1)) sent.push(`${date} ${each}`);
  }
  expect(sent).toEqual([`2026-10-27 p-1 7 ${INV_1}`, `2026-11-10 p-1 21 ${INV_1}`, `2026-12-04 p-1 45 ${INV_1}`]);
});

test('what is due after the notice period is named apart from what is coming due', async () => {
  await world.partners([partner({ payment_terms_days: 60 })]);
  await world.rows([quote()]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([
    quote({ accepted_at: '2026-08-10T12:00:00Z', spotPrice: '20', partnerCut: '6', invoiceAmount: '14' }),
  ]);
  await world.close();
  await world.deliver();
  expect(await remind('2026-09-23')).toEqual([`p-1 -7 ${INV_1},INV-2026-000002`]);
  const [mail] = await mails();
  expect(mail?.subject).toBe('[SANDBOX] Coming due: USD 7.00 with Sandbox Protection Services, Inc.');
  expect(mail?.text).toContain('USD 7.00\ncoming due; USD 14.00 more due later\n');
});

test('a reminder goes to the address for reminders alone, if the partner has one', async () => {
  const contact = { name: 'AP', email: 'ap@partner.example', cc: ['copy@partner.example'] };
  await world.partners([
    partner({ payment_terms_days: 60, invoicing_contact: contact, reminder_email: 'dunning@partner.example' }),
  ]);
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  await remind('2026-09-23');
  expect(await world.sql(`SELECT kind, recipients FROM emails ORDER BY email_id`)).toEqual([
    { kind: 'invoice', recipients: ['ap@partner.example', 'copy@partner.example'] },
    { kind: 'reminder', recipients: ['dunning@partner.example'] },
  ]);
});

test('an undecided dispute or unconfirmed payment stops reminders until it is resolved', async () => {
  await invoiceJuly('p-1', 'p-2');
  const fact = `recorded_at, event_id) SELECT`;
  const event = `now(), (SELECT min(event_id) FROM audit_events)`;
  day('2026-09-01');
  const payment = {
    amount: '7.00',
    currency: 'USD',
    method: 'link',
    receivedOn: '2026-09-01',
    reference: 'pi_1',
  } as const;
  const { paymentId } = await world.database.transaction((tx) =>
    recordPayment(tx, world, { ...payment, number: INV_1 }),
  );
  const other = await world.database.transaction((tx) =>
    recordPayment(tx, world, { ...payment, reference: 'FT-9', method: 'wire', partnerId: 'p-2' }),
  );
  // The processor takes the first back; the second may be for p-2's invoice.
  const { reversePayment } = await import('../../src/payments/reverse.ts');
  await world.database.transaction((tx) =>
    reversePayment(tx, world, { paymentId, kind: 'mistake', reason: 'disputed' } as never),
  );
  await world.sql(
    `INSERT INTO disputes (identity, payment_id, amount, reason, opened_on, ${fact} 'dp_1', ${paymentId}, 7, 'fraudulent', '2026-09-01', ${event}`,
  );
  await world.sql(
    `INSERT INTO payment_suggestions (payment_id, document_id, amount, confidence, evidence, ${fact} ${other.paymentId}, document_id, 7, 0.5,
       '{"why": "the amount"}', ${event} FROM documents WHERE number = 'INV-2026-000002' ON CONFLICT DO NOTHING`,
  );
  expect(await remind('2026-09-07')).toEqual([]);
  expect((await plan()).skipped.map(({ number, reason }) => `${number} ${reason}`)).toEqual([
    `${INV_1} card_dispute`,
    'INV-2026-000002 payment_to_confirm',
  ]);
  await world.sql(
    `INSERT INTO dispute_outcomes (dispute_id, outcome, decided_on, ${fact} dispute_id, 'lost', '2026-09-08', ${event} FROM disputes`,
  );
  expect(await remind('2026-09-08')).toEqual([`p-1 7 ${INV_1}`]);
});

/** Cash of a partner that pays nothing yet. */
const cash = (partnerId: string, amount: string, reference: string, currency = 'USD') =>
  world.database.transaction((tx) =>
    recordPayment(tx, world, {
      ...{ amount, partnerId, reference, currency, method: 'wire', receivedOn: '2026-09-01' },
    }),
  );

test("a parent's unapplied cash holds its children's reminders up to its amount, after its own debts", async () => {
  await invoiceJuly('p-parent', 'p-a', 'p-b', 'p-c');
  const child = (partner_id: string, parent: string) =>
    partner({ partner_id, parent, invoicing_contact: { name: 'AP', email: `${partner_id}@partner.example`, cc: [] } });
  await world.partners([child('p-a', 'p-parent'), child('p-b', 'p-a'), child('p-c', 'p-parent')]);
  day('2026-09-01');
  await cash('p-parent', '20.00', 'FT-1');
  // The payer of the family gets one e-mail about what its cash does not cover.
  expect(await remind('2026-09-07')).toEqual(['p-parent 7 INV-2026-000002,INV-2026-000003']);
  day('2026-09-07');
  expect((await plan()).skipped.map(({ number, reason }) => `${number} ${reason}`)).toEqual([
    'INV-2026-000001 covered_by_parent',
    'INV-2026-000004 covered_by_credit',
  ]);
  await cash('p-a', '1.00', 'FT-2');
  await cash('p-parent', '0.99', 'FT-3');
  day('2026-09-21');
  // 7.00 of the parent's own; 6.00 and 7.00 of its children; 0.99 is left for the last.
  const { reminders, skipped } = await plan();
  expect(reminders.flatMap(({ documents }) => documents.map((each) => each.partner_id))).toEqual(['p-c']);
  expect(skipped.map(({ partner_id, reason }) => `${partner_id} ${reason}`)).toEqual([
    'p-a covered_by_parent',
    'p-b covered_by_parent',
    'p-parent covered_by_credit',
  ]);
});

test("a parent's cash in another currency holds no reminder of its children", async () => {
  await invoiceJuly('p-parent', 'p-a');
  const contact = { name: 'AP', email: 'p-a@partner.example', cc: [] };
  await world.partners([partner({ partner_id: 'p-a', parent: 'p-parent', invoicing_contact: contact })]);
  day('2026-09-01');
  await cash('p-parent', '100.00', 'FT-1', 'EUR');
  expect(await remind('2026-09-07')).toEqual(['p-parent 7 INV-2026-000001,INV-2026-000002']);
});

test('a payment that may be a duplicate covers nothing, and the invoice that it names is named with that reason', async () => {
  await invoiceJuly('p-1', 'p-2');
  day('2026-09-01');
  await cash('p-1', '3.50', 'FT-1');
  await cash('p-1', '3.50', 'FT-2');
  expect(await remind('2026-09-07')).toHaveLength(2);
  const text = (await mails())[0]?.text ?? '';
  expect(text).toContain('Payment received, not applied yet: -USD 3.50');
  await world.sql(
    `INSERT INTO payment_suggestions (payment_id, document_id, amount, confidence, evidence, recorded_at, event_id)
     SELECT max(payment_id), (SELECT document_id FROM documents WHERE partner_id = 'p-1'), 3.5, 0.5, '{"why": "x"}', now(),
            min(event_id) FROM payments`,
  );
  day('2026-09-21');
  expect((await plan()).skipped).toMatchObject([{ partner_id: 'p-1', reason: 'possible_duplicate' }]);
});

test('an invoice that was never e-mailed is skipped', async () => {
  await world.partners([partner({ invoicing_contact: { name: '', email: '', cc: [] } })]);
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  expect(await remind('2026-09-07')).toEqual([]);
  expect((await plan()).skipped).toEqual([{ number: INV_1, partner_id: 'p-1', reason: 'not_sent' }]);
});

test('a replacement with the old due date does not repeat the levels of the document it replaces', async () => {
  await invoiceJuly('p-1');
  expect(await remind('2026-09-07')).toHaveLength(1);
  day('2026-09-10');
  await world.partners([
    partner({ name: 'Renamed', invoicing_contact: { name: 'AP', email: 'p-1@partner.example', cc: [] } }),
  ]);
  await world.database.transaction((tx) =>
    rerunMonth(tx, world, '2026-07' as Month, { newTerms: false, changed: true }),
  );
  await world.deliver();
  expect(await remind('2026-09-11')).toEqual([]);
  expect(await remind('2026-09-21')).toEqual(['p-1 21 INV-2026-000002']);
});

test('a replacement that is issued on the day of a level does not repeat it on the next day', async () => {
  await invoiceJuly('p-1');
  expect(await remind('2026-09-07')).toEqual(['p-1 7 INV-2026-000001']);
  await world.partners([
    partner({ name: 'Renamed', invoicing_contact: { name: 'AP', email: 'p-1@partner.example', cc: [] } }),
  ]);
  await world.database.transaction((tx) =>
    rerunMonth(tx, world, '2026-07' as Month, { newTerms: false, changed: true }),
  );
  await world.deliver();
  expect(await remind('2026-09-08')).toEqual([]);
});

test('a reminder of an invoice that is paid before it is sent is withdrawn', async () => {
  await invoiceJuly('p-1');
  day('2026-09-07');
  await record();
  const payment = {
    amount: '7.00',
    currency: 'USD',
    method: 'wire',
    receivedOn: '2026-09-07',
    reference: 'FT-1',
  } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...payment, number: INV_1 }));
  expect(await send()).toMatchObject([{ status: 'withdrawn', detail: expect.stringContaining('paid') }]);
  expect(await mails()).toEqual([]);
});

test('without an address it is held with the reason, and sent once there is one', async () => {
  await invoiceJuly('p-1');
  day('2026-09-07');
  await world.sql(withoutEvent('partners', `UPDATE partners SET contact_email = ''`));
  await record();
  expect(await send()).toMatchObject([
    { status: 'held', detail: "partner p-1 has no invoicing contact's e-mail address" },
  ]);
  await world.sql(withoutEvent('partners', `UPDATE partners SET contact_email = 'new@partner.example'`));
  expect(await send()).toMatchObject([{ status: 'sent' }]);
  expect([(await mails())[0]?.to].flat()[0]?.text).toContain('new@partner.example');
});

test('without dunning levels in the settings, no partner is reminded', async () => {
  await invoiceJuly('p-1');
  world.settings = { ...world.settings, reminders: [] };
  expect(await remind('2026-12-31')).toEqual([]);
});

test('a failing mail server defers it; one that disconnects after the message makes it uncertain, after one retry', async () => {
  const server = await startMailServer();
  try {
    await invoiceJuly('p-1', 'p-2');
    world.environment = { ...world.environment, smtpUrl: `${server.url}/?requireTLS=false` };
    rmSync(join(world.home, 'outbox'), { recursive: true });
    day('2026-09-07');
    await record();
    server.behaviour = 'defer_recipients';
    expect((await send()).map((each) => each.status)).toEqual(['deferred', 'deferred']);
    server.behaviour = 'drop_after_data';
    expect((await send()).map((each) => each.status)).toEqual(['deferred', 'deferred']);
    expect((await send()).map((each) => each.status)).toEqual(['uncertain', 'uncertain']);
    const bytes = server.mails.map((mail) => mail.raw.toString('base64'));
    expect(new Set(bytes).size).toBe(2);
    expect(bytes).toHaveLength(4);
    expect(await send()).toEqual([]);
    expect(await world.database.reading((tx) => countOtherEmails(tx))).toMatchObject({ uncertain: 2, sent: 0 });
    const { attention } = await world.database.reading((tx) => readStatus(tx, world));
    expect(
      attention.filter((each) => /^E-mail \d+, reminder to p-[12] to p-[12]@.*may or may not/.test(each)),
    ).toHaveLength(2);
  } finally {
    await server.close();
  }
});

test('an e-mail that was being sent when the program died is sent again with the same bytes', async () => {
  await invoiceJuly('p-1');
  day('2026-09-07');
  await record();
  const raw = 'as it was\r\n';
  await world.sql(
    `UPDATE emails SET status = 'sending', attempts = 1, message = convert_to('${raw}', 'UTF8'),
            message_sha256 = 'x', recipients = '{p-1@partner.example}', envelope_from = 'billing@protection.example', attempted_at = now()
     WHERE kind = 'reminder'`,
  );
  expect(await send()).toMatchObject([{ status: 'sent' }]);
  const folder = join(world.home, 'outbox');
  const [name] = readdirSync(folder).filter((each) => each.startsWith('reminder'));
  expect(readFileSync(join(folder, name as string), 'utf8')).toBe(raw);
});

test('recorded reminders and their e-mails cannot be changed', async () => {
  await invoiceJuly('p-1');
  await remind('2026-09-07');
  await expect(world.sql(`UPDATE emails SET day = '2026-09-08' WHERE kind = 'reminder'`)).rejects.toThrow('is a fact');
  await expect(
    world.sql(`UPDATE emails SET status = 'queued', sent_at = NULL WHERE kind = 'reminder'`),
  ).rejects.toThrow('is a fact');
  await expect(world.sql(`DELETE FROM reminders`)).rejects.toThrow('append-only');
});
