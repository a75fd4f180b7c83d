/** A credit note against an invoice lowers it at once; what is over is open credit, and credits never exceed it. */
import { beforeEach, expect, test } from 'vitest';
import { creditInvoice } from '../../src/documents/credit.ts';
import { refusalOf } from '../close/refusal.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';
import {
  type Corrections,
  correctionsOf,
  creditInUse,
  document,
  expectVerified,
  refund,
  sale,
  standing,
  story,
} from './correcting.ts';

let world: World;
let server: MailServer;
let action: Corrections;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});
beforeEach(async () => {
  action = correctionsOf(world);
  await world.partners([partner()]);
});

const INV_1 = 'INV-2026-000001';

async function invoiceOf(amount: string, more: Record<string, unknown> = {}): Promise<void> {
  await world.rows([sale('2026-07', amount, more)]);
  await world.close();
}

test('it is applied at once: the invoice’s balance falls, the note is used up, and both histories say so', async () => {
  await invoiceOf('50');
  await world.deliver();
  world.at('2026-08-03T10:00:00Z');
  expect(await action.credit(INV_1, '20', 'double sale')).toBe('CN-2026-000001');
  expect(await document(world, INV_1)).toMatchObject({
    status: 'open',
    credit_applied: '0.00',
    amount_due: '50.00',
    credited: '20.00',
    balance: '30.00',
  });
  expect(await story(world, INV_1)).toContainEqual(['credited', '20.00 USD credited by CN-2026-000001: double sale']);
  expect(await story(world, 'CN-2026-000001')).toEqual(
    expect.arrayContaining([
      ['issued', `issued as a credit against ${INV_1}`],
      ['credit_given', `20.00 USD applied to ${INV_1}`],
    ]),
  );
  await expectVerified(world);
});

test('the same credit is refused a second time unless requested with --again: a command may be repeated after a crash', async () => {
  await invoiceOf('50');
  const credit = (amount: string, reason: string, again = false) =>
    world.database.transaction((tx) => creditInvoice(tx, world, { number: INV_1, amount, reason, again }));
  await credit('20', 'double sale');
  expect(await refusalOf(credit('20.00', 'double sale'))).toMatchObject({
    code: 'credit_repeated',
    facts: { by: 'CN-2026-000001', amount: '20.00 USD' },
  });
  await credit('2', 'double sale');
  await credit('20', 'another double sale');
  await credit('2', 'double sale', true);
  expect((await document(world, INV_1)).credited).toBe('44.00');
});

test('the credit note is a document of its own, in the shape of the contract', async () => {
  await invoiceOf('50');
  world.at('2026-09-03T10:00:00Z');
  await action.credit(INV_1, '20');
  expect(await document(world, 'CN-2026-000001')).toEqual({
    number: 'CN-2026-000001',
    series: 'CN-2026',
    sequence: 1,
    document: 'credit_note',
    purpose: 'adjustment',
    status: 'paid',
    partner_id: 'p-1',
    month: '2026-07',
    currency: 'USD',
    issued_on: '2026-09-03',
    due_on: null,
    enrollments: 0,
    spotPrice: '20.00',
    partnerCut: '0.00',
    invoiceAmount: '20.00',
    credit_applied: '0.00',
    amount_due: '20.00',
    credited: '20.00',
    amount_paid: '0.00',
    balance: '0.00',
    lines: [],
    payment_link: null,
    pdf: null,
    email: { status: 'queued', to: null, message_id: expect.stringMatching(/^<CN-2026-000001\.1\./), sent_at: null },
    replaces: null,
    replaced_by: null,
    credits: INV_1,
    void_reason: null,
  });
});

test('its e-mail attaches the credit note and no ledger rows', async () => {
  await world.rows([quote(), quote()]);
  await world.close();
  await world.deliver();
  server.mails.length = 0;
  await action.credit(INV_1, '1');
  await world.deliver();
  expect(server.mails.map(({ parsed }) => parsed.attachments.map(({ filename }) => filename))).toEqual([
    ['CN-2026-000001.pdf'],
  ]);
  await expectVerified(world);
});

test('credit above the balance stays open and goes to the next invoice', async () => {
  const sold = sale('2026-06', '30');
  await world.rows([sold]);
  await world.close('2026-06');
  await world.rows([refund(sold, '2026-07')]);
  await world.close('2026-07');
  world.at('2026-09-01T10:00:00Z');
  await world.rows([sale('2026-08', '100')]);
  await world.close();
  await action.credit('INV-2026-000002', '90'); // 70 are open on it
  expect(await standing(world)).toMatchObject({
    'CN-2026-000002': '90.00 - 0.00 - 70.00 = 20.00 open',
    'INV-2026-000002': '100.00 - 30.00 - 70.00 = 0.00 paid',
  });
  await expectVerified(world);
  world.at('2026-10-01T10:00:00Z');
  await world.rows([sale('2026-09', '50')]);
  await world.close();
  expect(await standing(world)).toMatchObject({
    'CN-2026-000002': '90.00 - 0.00 - 90.00 = 0.00 paid',
    'INV-2026-000003': '50.00 - 20.00 - 0.00 = 30.00 open',
  });
  await expectVerified(world);
});

test('a credit against an invoice that is paid is open credit as a whole', async () => {
  await invoiceOf('50');
  await action.writeOff(INV_1, 'small');
  expect(await refusalOf(action.credit(INV_1, '0.01'))).toMatchObject({ code: 'credit_exceeds_invoice' });
  const sold = sale('2026-07', '0');
  await world.rows([sold]);
  world.at('2026-09-01T10:00:00Z');
  await world.close();
  expect(await refusalOf(action.credit('INV-2026-000002', '0.01'))).toMatchObject({
    code: 'credit_exceeds_invoice',
    facts: { left: '0.00 USD' },
  });
  await expectVerified(world);
});

test('credits never exceed the invoice, one by one and together', async () => {
  await invoiceOf('50');
  expect(await refusalOf(action.credit(INV_1, '50.01'))).toMatchObject({
    code: 'credit_exceeds_invoice',
    facts: { amount: '50.01 USD', left: '50.00 USD' },
  });
  await action.credit(INV_1, '49.99');
  expect(await refusalOf(action.credit(INV_1, '0.02'))).toMatchObject({ facts: { left: '0.01 USD' } });
  await action.credit(INV_1, '0.01');
  expect(await standing(world)).toMatchObject({ [INV_1]: '50.00 - 0.00 - 50.00 = 0.00 paid' });
  await expectVerified(world);
});

test('across a chain of replacements credits never exceed the invoice; voiding a credit note frees its part', async () => {
  await invoiceOf('50');
  await action.credit(INV_1, '20');
  await world.partners([partner({ name: 'One' })]);
  await action.rerun(INV_1);
  await action.credit('INV-2026-000002', '20');
  await world.partners([partner({ name: 'Two' })]);
  await action.rerun('INV-2026-000002');
  expect(await standing(world)).toMatchObject({ 'INV-2026-000003': '50.00 - 40.00 - 0.00 = 10.00 open' });
  expect(await refusalOf(action.credit('INV-2026-000003', '10.01'))).toMatchObject({ facts: { left: '10.00 USD' } });
  await action.voided('INV-2026-000003');
  await action.voided('CN-2026-000001');
  await action.rerunMonth('2026-07');
  expect(await creditInUse(world)).toEqual(['20.00 of CN-2026-000002 for INV-2026-000004']);
  await action.credit('INV-2026-000004', '30');
  expect(await refusalOf(action.credit('INV-2026-000004', '0.01'))).toMatchObject({ facts: { left: '0.00 USD' } });
  await expectVerified(world);
});

test('an amount has the digits of its currency: yen none, dinars three', async () => {
  await world.partners([partner({ partner_id: 'p-2' })]);
  await world.rows([
    sale('2026-07', '1000', { currency: 'JPY' }),
    sale('2026-07', '10', { currency: 'KWD', partner_id: 'p-2' }),
  ]);
  await world.close();
  expect(await refusalOf(action.credit(INV_1, '0.5'))).toMatchObject({ code: 'amount_invalid' });
  await action.credit(INV_1, '1.00');
  await action.credit('INV-2026-000002', '0.125');
  expect(await standing(world)).toMatchObject({
    [INV_1]: '1000 - 0 - 1 = 999 open',
    'INV-2026-000002': '10.000 - 0.000 - 0.125 = 9.875 open',
  });
  await expectVerified(world);
});

test('an amount that is not a number, zero or negative is refused, and nothing changes', async () => {
  await invoiceOf('50');
  const before = await standing(world);
  for (const amount of ['0', '-1', '1e1', '1,5', '', ' 1', '+1', '0x10', 'NaN', '1.001']) {
    expect({ amount, ...(await refusalOf(action.credit(INV_1, amount))) }).toMatchObject({ code: 'amount_invalid' });
  }
  expect(await standing(world)).toEqual(before);
});

test('only a live invoice can be credited or written off', async () => {
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'third_party', split: 'sequential' };
  await world.partners([partner({ partner_id: 'p-2', arrangement: 'connected_account', ...connected })]);
  const sold = sale('2026-06', '30');
  await world.rows([sold, sale('2026-06', '5', { partner_id: 'p-2' })]);
  await world.close('2026-06');
  await world.rows([refund(sold, '2026-07')]);
  await world.close('2026-07');
  for (const number of ['CN-2026-000001', 'ST-2026-000001']) {
    expect(await refusalOf(action.credit(number, '1'))).toMatchObject({ code: 'not_an_invoice', facts: { number } });
    expect(await refusalOf(action.writeOff(number))).toMatchObject({ code: 'not_an_invoice', facts: { number } });
  }
  await action.voided(INV_1);
  expect(await refusalOf(action.credit(INV_1, '1'))).toMatchObject({ code: 'document_void' });
  expect(await refusalOf(action.writeOff(INV_1))).toMatchObject({ code: 'document_void' });
});

test('a write-off covers the open balance, once, and leaves the invoice paid', async () => {
  await invoiceOf('50');
  await action.credit(INV_1, '20');
  world.at('2026-11-03T10:00:00Z');
  await action.writeOff(INV_1, 'bankrupt');
  expect(await standing(world)).toMatchObject({ [INV_1]: '50.00 - 0.00 - 50.00 = 0.00 paid' });
  expect(await world.sql('SELECT amount::text, reason, written_off_on::text FROM write_offs')).toEqual([
    { amount: '30.00', reason: 'bankrupt', written_off_on: '2026-11-03' },
  ]);
  expect((await story(world, INV_1)).at(-1)).toEqual(['written_off', '30.00 USD written off: bankrupt']);
  expect(await refusalOf(action.writeOff(INV_1))).toMatchObject({ code: 'nothing_to_write_off' });
  await expectVerified(world);
});

test('a credit changes only the balance of the invoice', async () => {
  await invoiceOf('50');
  await world.deliver();
  const before = await document(world, INV_1);
  await action.credit(INV_1, '20');
  await world.deliver();
  expect(await document(world, INV_1)).toEqual({ ...before, credited: '20.00', balance: '30.00' });
});

test('many credits and write-offs in any order never take an invoice below zero', async () => {
  await invoiceOf('10');
  for (const amount of ['3', '3', '3']) await action.credit(INV_1, amount);
  await action.writeOff(INV_1);
  expect(await refusalOf(action.credit(INV_1, '1'))).toMatchObject({ code: 'credit_exceeds_invoice' });
  expect(await standing(world)).toMatchObject({ [INV_1]: '10.00 - 0.00 - 10.00 = 0.00 paid' });
  await expectVerified(world);
});
