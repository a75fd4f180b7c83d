/** Receipts for payments and notices of refunds: once each, to the invoicing contact, while they are still true. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ParsedMail, simpleParser } from 'mailparser';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { EmailResult } from '../../src/mail/outbox.ts';
import { resendEmail } from '../../src/mail/resend.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { startOver } from '../close/start-over.ts';
import { correctionsOf } from '../documents/correcting.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const [INV_1, INV_2] = ['INV-2026-000001', 'INV-2026-000002'];

let world: World;
let books: Books;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  books = booksOf(world);
  const contact = (partner_id: string) => ({ name: 'AP', email: `${partner_id}@partner.example`, cc: [] });
  await world.partners([
    partner({ invoicing_contact: contact('p-1') }),
    partner({ partner_id: 'p-2', name: 'Harbour East', parent: 'p-1', invoicing_contact: contact('p-2') }),
  ]);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  world.at('2026-08-10T15:00:00Z');
});

/** A run of the outbox: what it sent or not, as "kind status". */
async function send(context: Pick<World, 'settings'> = world): Promise<string[]> {
  const results: EmailResult[] = [];
  await sendEmails({ ...world, ...context }, { onEmail: (result) => results.push(result) });
  return results
    .filter(({ email }) => email.kind === 'payment_receipt' || email.kind === 'refund_notice')
    .map(({ email, status }) => `${email.kind} ${status}`);
}

async function mails(prefix: string): Promise<ParsedMail[]> {
  const folder = join(world.home, 'outbox');
  const names = readdirSync(folder).filter((name) => name.startsWith(prefix));
  return Promise.all(names.sort().map((name) => simpleParser(readFileSync(join(folder, name)))));
}
const latest = async (prefix: string) => (await mails(prefix)).at(-1) as ParsedMail;
const pay = (amount: string, reference: string, number: string | undefined = INV_1) =>
  books.record({ amount, reference, number, receivedOn: '2026-08-10' });

test('a payment is acknowledged once to its payer, when it first pays an invoice', async () => {
  const { paymentId } = await books.record({
    amount: '20.00',
    partnerId: 'p-1',
    reference: 'FT-1',
    receivedOn: '2026-08-10',
  });
  expect(await send()).toEqual([]);
  await books.apply(paymentId, [INV_1, INV_2]);
  expect(await send()).toEqual(['payment_receipt sent']);
  const mail = await latest('receipt');
  expect([mail.to].flat().map((to) => to?.text)).toEqual(['"AP" <p-1@partner.example>']);
  expect(mail.subject).toBe(
    '[SANDBOX] Payment received: USD 20.00, with thanks from Sandbox Protection Services, Inc.',
  );
  for (const said of [
    'On August 10, 2026, by bank transfer,',
    'We have received your payment of USD 20.00, with the reference\nFT-1.',
    `- ${INV_1}: USD 7.00\npaid in full`,
    `- ${INV_2} of Harbour East: USD 7.00\npaid in full`,
    'Not applied to an invoice yet: USD 6.00',
  ])
    expect(mail.text).toContain(said);
  expect(mail.html).toContain('paid in full');
  expect(await send()).toEqual([]);
  // It is applied once more: the receipt was sent.
  await books.unapply(paymentId, INV_2);
  await books.apply(paymentId, INV_2);
  expect(await send()).toEqual([]);
  await books.verified();
});

test('a wire of the parent that finance applies to a child is acknowledged to the parent alone', async () => {
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
  const { new_lines } = await books.bankText(
    'w.csv',
    `${head}2026-08-10,7.00,USD,1,B-1,WIRE,HARBOUR LIGHTS TICKETING,\n`,
  );
  const paymentId = new_lines[0]?.payment_id as number;
  await books.apply(paymentId, INV_2);
  expect(await send()).toEqual(['payment_receipt sent']);
  const mail = await latest('receipt');
  expect([mail.to].flat().map((to) => to?.text)).toEqual(['"AP" <p-1@partner.example>']);
  expect(mail.text).toContain(`- ${INV_2} of Harbour East: USD 7.00\npaid in full`);
  await books.unapply(paymentId);
  expect(await books.payment(paymentId)).toMatchObject({ partner_id: 'p-1', unapplied: '7.00' });
  await books.verified();
});

test('a payer is told nothing of a company above or beside it, except the sum', async () => {
  const { paymentId } = await books.record({
    ...{ amount: '14.00', partnerId: 'p-2', reference: 'FT-1', receivedOn: '2026-08-10' },
  });
  await books.apply(paymentId, [INV_1, INV_2]);
  expect(await send()).toEqual(['payment_receipt sent']);
  const { text, html, to } = await latest('receipt');
  expect([to].flat().map((each) => each?.text)).toEqual(['"AP" <p-2@partner.example>']);
  for (const said of [text, html]) {
    expect(said).toContain(INV_2);
    expect(said).not.toContain(INV_1);
    expect(said).not.toContain('Harbour Lights');
    expect(said).toMatch(/Applied to invoices of other companies(: |<[\s\S]*>)USD 7.00/);
  }
});

test('a payment that pays only another company is acknowledged without its invoice', async () => {
  const { paymentId } = await books.record({
    ...{ amount: '7.00', partnerId: 'p-2', reference: 'FT-1', receivedOn: '2026-08-10' },
  });
  await books.apply(paymentId, INV_1);
  expect(await send()).toEqual(['payment_receipt sent']);
  const { text } = await latest('receipt');
  expect(text).not.toContain(INV_1);
  expect(text).toContain('Applied to invoices of other companies: USD 7.00');
});

test('a part payment says what is left to pay, and a bank charge that it is borne', async () => {
  await pay('4.00', 'FT-1');
  expect(await send()).toEqual(['payment_receipt sent']);
  expect((await latest('receipt')).text).toContain(`- ${INV_1}: USD 4.00\nUSD 3.00 is left to pay`);
  books = booksOf(world, { small_difference: { USD: '1.00', percent: '50' } });
  await pay('2.50', 'FT-2');
  expect(await send()).toEqual(['payment_receipt sent']);
  expect((await latest('receipt')).text).toContain('USD 2.50\npaid in full; USD 0.50 in bank charges, borne by us');
});

test('a payment that was reversed gets no receipt, and none after it', async () => {
  const first = await pay('7.00', 'FT-1');
  await books.reverse({ paymentId: first.paymentId, kind: 'returned', reason: 'R01' });
  expect(await send()).toEqual([]);
  // Queued, and reversed before it is sent.
  const second = await pay('7.00', 'FT-2');
  world.settings = { ...world.settings, sandbox_recipients: ['.elsewhere'] };
  expect(await send()).toEqual(['payment_receipt held']);
  await books.reverse({ paymentId: second.paymentId, kind: 'returned', reason: 'R01' });
  expect(await send()).toEqual(['payment_receipt withdrawn']);
  expect(await send()).toEqual([]);
});

test('a receipt that was withdrawn because the payment was not applied any more is sent once it is', async () => {
  const { sandbox_recipients } = world.settings;
  const { paymentId } = await pay('7.00', 'FT-1');
  world.settings = { ...world.settings, sandbox_recipients: ['.elsewhere'] };
  expect(await send()).toEqual(['payment_receipt held']);
  await books.unapply(paymentId);
  expect(await send()).toEqual(['payment_receipt withdrawn']);
  world.settings = { ...world.settings, sandbox_recipients };
  await books.apply(paymentId, INV_2);
  expect(await send()).toEqual(['payment_receipt sent']);
  expect(await send()).toEqual([]);
  await books.verified();
});

test('a receipt tells what was paid back, and not as received or returned what was recorded by mistake or is no payment', async () => {
  const { paymentId } = await books.record({
    ...{ amount: '20.00', partnerId: 'p-1', reference: 'FT-1', receivedOn: '2026-08-10' },
  });
  await books.apply(paymentId, INV_1);
  const reason = 'agreed with the partner';
  await books.reverse({ paymentId, kind: 'refunded', reason, amount: '1.00' });
  await books.reverse({ paymentId, kind: 'mistake', reason, amount: '4.00' });
  await books.reverse({ paymentId, kind: 'other', reason, amount: '2.00', account: 'income:interest' });
  expect(await send()).toEqual(['payment_receipt sent']);
  const { subject, text } = await latest('receipt');
  expect(subject).toContain('Payment received: USD 16.00');
  for (const said of [
    'We have received your payment of USD 16.00, with the reference',
    'Paid back from this payment: -USD 1.00',
    'Part that is not a payment from you: -USD 2.00',
    'Not applied to an invoice yet: USD 6.00',
  ])
    expect(text).toContain(said);
  expect(text).not.toContain('eturned');
  await books.verified();
});

const addressees = async () =>
  (await mails('receipt')).map((mail) => [mail.to].flat().map((to) => to?.value[0]?.address)[0]).sort();
const receipts = () =>
  world.sql<{ partner_id: string; status: string; reason: string | null }>(
    `SELECT partner_id, status, reason FROM emails WHERE kind = 'payment_receipt' ORDER BY email_id`,
  );

test('a receipt that waits for a former payer is withdrawn, and the present payer gets its own', async () => {
  const { sandbox_recipients } = world.settings;
  const { paymentId } = await pay('7.00', 'FT-1');
  world.settings = { ...world.settings, sandbox_recipients: ['.elsewhere'] };
  expect(await send()).toEqual(['payment_receipt held']);
  await books.unapply(paymentId);
  await books.assign(paymentId, 'p-2');
  await books.apply(paymentId, INV_2);
  world.settings = { ...world.settings, sandbox_recipients };
  expect((await send()).sort()).toEqual(['payment_receipt sent', 'payment_receipt withdrawn']);
  expect(await receipts()).toMatchObject([
    { partner_id: 'p-1', status: 'withdrawn', reason: 'the payment now belongs to another partner' },
    { partner_id: 'p-2', status: 'sent' },
  ]);
  expect(await addressees()).toEqual(['p-2@partner.example']);
  expect(await send()).toEqual([]);
  await books.verified();
});

test('a payment acknowledged to the wrong payer is acknowledged to the right one, and no more to the wrong one', async () => {
  const { paymentId } = await pay('7.00', 'FT-1');
  expect(await send()).toEqual(['payment_receipt sent']);
  await books.assign(paymentId, 'p-2');
  const [first] = await world.sql<{ email_id: number }>(`SELECT email_id FROM emails WHERE kind = 'payment_receipt'`);
  const context = { ...world, composers: [] };
  await world.database.transaction((tx) => resendEmail(tx, context, { emailId: Number(first?.email_id) }));
  expect((await send()).sort()).toEqual(['payment_receipt sent', 'payment_receipt withdrawn']);
  expect(await addressees()).toEqual(['p-1@partner.example', 'p-2@partner.example']);
  expect((await mails('receipt')).filter((mail) => mail.text?.includes('from Harbour East to'))).toHaveLength(1);
  // Corrected back: the first payer has its receipt.
  await books.assign(paymentId, 'p-1');
  expect(await send()).toEqual([]);
  await books.verified();
});

test('without the settings no receipt and no notice is sent, nor later for what is a week old', async () => {
  await pay('7.00', 'FT-1');
  const settings = { ...world.settings, payment_receipts: false };
  expect(await send({ settings })).toEqual([]);
  world.at('2026-08-18T15:00:00Z');
  expect(await send()).toEqual([]);
});

test('a possible duplicate is not acknowledged', async () => {
  const line = (reference: string) =>
    `date,amount,currency,account,bank_reference,text,payer,payer_account\n2026-08-10,7.00,USD,0001,${reference},${INV_1},Harbour,\n`;
  await books.bankText('once.csv', line('B-1'));
  await books.bankText('twice.csv', line(''));
  expect(await send()).toEqual([]);
  const [first, second] = await books.payments();
  await books.apply(first?.payment_id ?? 0, INV_1);
  await books.reverse({ paymentId: second?.payment_id ?? 0, kind: 'duplicate', duplicateOf: first?.payment_id ?? 0 });
  expect(await send()).toEqual(['payment_receipt sent']);
});

test('a refund of credit is announced once, with amount, credit note, method and reference', async () => {
  const action = correctionsOf(world);
  const note = await action.credit(INV_1, '5.00');
  await action.unapply(note, INV_1);
  const refund = (amount: string, reference: string) =>
    world.database.transaction((tx) =>
      refundCredit(tx, books.acting, { number: note, amount, method: 'wire', reference }),
    );
  await refund('3.00', 'OUT-1');
  expect(await send()).toEqual(['refund_notice sent']);
  const mail = await latest('refund');
  expect(mail.subject).toBe('[SANDBOX] Refund of USD 3.00 from Sandbox Protection Services, Inc.');
  for (const said of [
    'On August 10, 2026, by bank transfer,',
    `We have refunded USD 3.00 of your credit note ${note}.`,
    'Reference: OUT-1',
    'Still open of the credit note: USD 2.00',
  ])
    expect(mail.text).toContain(said);
  expect(mail.html).toContain(note);
  expect(await send()).toEqual([]);
  // Another is returned before its notice is sent.
  await refund('2.00', 'OUT-2');
  world.settings = { ...world.settings, sandbox_recipients: ['.elsewhere'] };
  expect(await send()).toEqual(['refund_notice held']);
  await world.database.transaction((tx) => returnRefund(tx, books.acting, { number: note, reason: 'account closed' }));
  expect(await send()).toEqual(['refund_notice withdrawn']);
  expect(await send()).toEqual([]);
  await books.verified();
});
