/** Open credit is money to be placed: on any open invoice, back again, and paid out in parts. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { readAging } from '../../src/reports/aging.ts';
import { refusalOf } from '../close/refusal.ts';
import { startOver } from '../close/start-over.ts';
import { openWorld, partner, type World } from '../support/world.ts';
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
let action: Corrections;
let settings: Settings;
beforeAll(async () => {
  world = await openWorld();
  settings = world.settings;
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  world.settings = settings;
  action = correctionsOf(world);
  await world.partners([partner()]);
});

const [INV_1, INV_2, INV_3] = ['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003'];
const CN_1 = 'CN-2026-000001';

/** June 100.00 and May 60.00 owed, and a credit note of July over 40.00; INV-1 is May's. It is 10 August. */
async function withCredit(): Promise<void> {
  const sold = sale('2026-06', '40');
  await world.rows([sale('2026-05', '60'), sold, sale('2026-06', '60')]);
  world.at('2026-06-02T10:00:00Z');
  await world.close('2026-05');
  world.at('2026-07-02T10:00:00Z');
  await world.close('2026-06');
  world.at('2026-08-10T10:00:00Z');
  await world.rows([refund(sold, '2026-07')]);
  await world.close('2026-07');
}

const refundOf = (request: { amount?: string; reference?: string; again?: boolean; on?: string | undefined } = {}) =>
  world.database.transaction((tx) =>
    refundCredit(tx, world, { number: CN_1, method: 'wire', reference: 'OUT-1', ...request }),
  );
const journal = (fact: string) =>
  world.sql<{ account: string; amount: string; document: string; reference: string }>(
    `SELECT account, trim_scale(amount)::text AS amount, document, reference FROM journal_of_facts WHERE fact = $1 ORDER BY amount DESC, account`,
    [fact],
  );

test('open credit is applied to any open invoice, as much as both allow, and each says so', async () => {
  await withCredit();
  expect(await action.apply(CN_1, INV_1)).toEqual({
    credit_note: CN_1,
    number: INV_1,
    partner_id: 'p-1',
    currency: 'USD',
    amount: '40.00',
  });
  expect(await standing(world)).toEqual({
    [CN_1]: '40.00 - 0.00 - 40.00 = 0.00 paid',
    [INV_1]: '60.00 - 0.00 - 40.00 = 20.00 open',
    [INV_2]: '100.00 - 0.00 - 0.00 = 100.00 open',
  });
  expect(await story(world, INV_1)).toContainEqual(['credit_used', `40.00 USD of credit from ${CN_1} applied`]);
  expect(await story(world, CN_1)).toContainEqual(['credit_given', `40.00 USD applied to ${INV_1}`]);
  expect(await journal('credit_applied')).toEqual([
    { account: 'liabilities:partner-credit:p-1', amount: '40', document: INV_1, reference: CN_1 },
    { account: 'assets:receivable:billed:p-1', amount: '-40', document: INV_1, reference: CN_1 },
  ]);
  expect(
    await world.sql(`SELECT action, subject, details->>'number' AS number FROM audit_events
                          WHERE action LIKE 'credit.%'`),
  ).toEqual([{ action: 'credit.apply', subject: CN_1, number: INV_1 }]);
  await expectVerified(world);
});

test('it is placed in parts on several invoices, taken back from one, and moved to another', async () => {
  await withCredit();
  await action.apply(CN_1, INV_1, '15');
  await action.apply(CN_1, INV_2, '20');
  expect((await document(world, CN_1)).balance).toBe('5.00');
  await action.apply(CN_1, INV_1, '5');
  expect((await action.unapply(CN_1, INV_1)).amount).toBe('20.00');
  expect(await story(world, INV_1)).toContainEqual([
    'credit_taken_back',
    `15.00 USD of credit from ${CN_1} taken back`,
  ]);
  expect(await story(world, CN_1)).toContainEqual(['credit_recovered', `5.00 USD taken back from ${INV_1}`]);
  await action.apply(CN_1, INV_2);
  expect(await creditInUse(world)).toEqual([`20.00 of ${CN_1} for ${INV_2}`, `20.00 of ${CN_1} for ${INV_2}`]);
  expect(await refusalOf(action.unapply(CN_1, INV_1))).toMatchObject({ code: 'credit_not_applied' });
  expect(await journal('credit_released')).toHaveLength(4);
  await expectVerified(world);
});

test('credit that an invoice was issued with is moved to an older one; the issued amounts and the PDF stay', async () => {
  await withCredit();
  world.at('2026-09-02T10:00:00Z');
  await world.rows([sale('2026-08', '90')]);
  await world.close('2026-08');
  await world.deliver();
  const before = await document(world, INV_3);
  expect(before).toMatchObject({ credit_applied: '40.00', amount_due: '50.00', balance: '50.00' });
  await action.unapply(CN_1, INV_3);
  expect(await document(world, INV_3)).toMatchObject({
    ...{ credit_applied: '40.00', amount_due: '50.00', credited: '-40.00', balance: '90.00' },
    pdf: before.pdf,
  });
  await action.apply(CN_1, INV_1);
  expect(await standing(world)).toMatchObject({
    [INV_1]: '60.00 - 0.00 - 40.00 = 20.00 open',
    [INV_3]: '90.00 - 40.00 - -40.00 = 90.00 open',
  });
  await expectVerified(world);
  // Placed on it again, it stands as issued.
  await action.unapply(CN_1, INV_1);
  await action.apply(CN_1, INV_3);
  expect(await document(world, INV_3)).toMatchObject({ credited: '0.00', balance: '50.00' });
  await expectVerified(world);
});

test('an invoice whose credit of the issue was taken back is paid in full, and verify finds nothing', async () => {
  await withCredit();
  world.at('2026-09-02T10:00:00Z');
  await world.rows([sale('2026-08', '90')]);
  await world.close('2026-08');
  await action.unapply(CN_1, INV_3);
  const payment = { currency: 'USD', method: 'wire', receivedOn: '2026-09-02', reference: 'FT-1' } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...payment, number: INV_3, amount: '90.00' }));
  expect(await document(world, INV_3)).toMatchObject({ amount_due: '50.00', amount_paid: '90.00', status: 'paid' });
  const [row] = await world.database.reading((tx) => readDocuments(tx, { number: INV_3 }));
  expect(row).toMatchObject({ credit_taken_back: '40', credited: '-40' });
  await expectVerified(world);
});

test('credit that covers an invoice whole at issue is moved by voiding and reissuing the invoice', async () => {
  await withCredit();
  world.at('2026-09-02T10:00:00Z');
  await world.rows([sale('2026-08', '30')]);
  await world.close('2026-08');
  await world.deliver();
  const before = await document(world, INV_3);
  expect(before).toMatchObject({ credit_applied: '30.00', amount_due: '0.00', status: 'paid' });
  expect(await refusalOf(action.unapply(CN_1, INV_3))).toMatchObject({ code: 'credit_covers_invoice' });
  expect(await document(world, INV_3)).toEqual(before);
  // As the message says.
  await action.voided(INV_3);
  await action.apply(CN_1, INV_1);
  await action.rerun(INV_3);
  expect(await document(world, 'INV-2026-000004')).toMatchObject({
    ...{ replaces: INV_3, credit_applied: '0.00', amount_due: '30.00', balance: '30.00' },
  });
  await expectVerified(world);
  // No other way leads there.
  await action.unapply(CN_1, INV_1);
  await action.voided('INV-2026-000004');
  await action.rerun('INV-2026-000004');
  await expect(
    world.sql(
      `INSERT INTO credit_releases (credit_application_id, released_on, recorded_at, event_id, reopened_on)
       SELECT max(a.credit_application_id), max(a.applied_on), max(a.recorded_at), max(a.event_id), max(a.entry_on)
       FROM credit_applications a JOIN documents d ON d.document_id = a.invoice_id WHERE d.number = 'INV-2026-000005'`,
    ),
  ).rejects.toThrow(/issued with nothing due/);
});

test('a void releases placed credit for the replacement, and what was taken back before only once', async () => {
  await withCredit();
  await action.apply(CN_1, INV_2, '30');
  await action.unapply(CN_1, INV_2);
  await action.apply(CN_1, INV_2, '10');
  await action.voided(INV_2);
  expect(await document(world, CN_1)).toMatchObject({ balance: '40.00', status: 'open' });
  world.settings = { ...settings, credit_at_close: 'none' };
  action = correctionsOf(world);
  await action.rerun(INV_2);
  expect(await document(world, INV_3)).toMatchObject({ replaces: INV_2, credit_applied: '10.00', balance: '90.00' });
  expect((await document(world, CN_1)).balance).toBe('30.00');
  await expectVerified(world);
});

test('what credit cannot be placed on is refused with the reason, and nothing changes', async () => {
  await withCredit();
  await world.partners([partner({ partner_id: 'p-2' })]);
  world.at('2026-09-02T10:00:00Z');
  await world.rows([sale('2026-08', '10', { partner_id: 'p-2' }), sale('2026-08', '50', { currency: 'EUR' })]);
  await world.close('2026-08');
  const other = (await world.documents()).find((each) => each.partner_id === 'p-2')?.number as string;
  const eur = (await world.documents()).find((each) => each.currency === 'EUR')?.number as string;
  const before = [await standing(world), await world.sql('SELECT count(*) FROM audit_events')];
  const refused: [note: string, invoice: string, amount: string | undefined, code: string, says: RegExp][] = [
    [CN_1, other, undefined, 'credit_not_applicable', /belongs to p-2, and the credit to p-1/],
    [CN_1, eur, undefined, 'credit_not_applicable', /in EUR, and the credit in USD/],
    [CN_1, CN_1, undefined, 'credit_not_applicable', /CN-2026-000001 is a credit note, not an invoice/],
    [INV_1, INV_2, undefined, 'credit_not_applicable', /INV-2026-000001 is an invoice, not a credit note/],
    [CN_1, 'INV-2026-000099', undefined, 'document_unknown', /INV-2026-000099/],
    ['CN-2026-000099', INV_1, undefined, 'document_unknown', /CN-2026-000099/],
    [CN_1, INV_1, '40.01', 'credit_amount_too_large', /of open credit on CN-2026-000001/],
    [CN_1, INV_1, '0', 'amount_invalid', /./],
    [CN_1, INV_1, '1.001', 'amount_invalid', /./],
  ];
  for (const [note, invoice, amount, code, says] of refused) {
    const found = await refusalOf(action.apply(note, invoice, amount));
    expect(found).toMatchObject({ code });
    expect(JSON.stringify(found)).toMatch(says);
  }
  expect([await standing(world), await world.sql('SELECT count(*) FROM audit_events')]).toEqual(before);
  await action.credit(INV_1, '60');
  expect(await refusalOf(action.apply(CN_1, INV_1))).toMatchObject({ facts: { reason: `${INV_1} is paid` } });
  await action.voided(INV_2);
  expect(await refusalOf(action.apply(CN_1, INV_2))).toMatchObject({ facts: { reason: `${INV_2} is void` } });
  await refundOf();
  expect(await refusalOf(action.apply(CN_1, eur))).toMatchObject({
    facts: { reason: `the credit of ${CN_1} is used up` },
  });
  await expectVerified(world);
});

test('the tables refuse more credit than the note has, and a note that is no credit note', async () => {
  await withCredit();
  const insert = (note: string, amount: string) =>
    world
      .sql(
        `INSERT INTO credit_applications (credit_note_id, invoice_id, amount, applied_on, recorded_at, at_issue, event_id)
         SELECT n.document_id, i.document_id, $2, '2026-08-10', now(), false, (SELECT min(event_id) FROM audit_events)
         FROM documents n, documents i WHERE n.number = $1 AND i.number = 'INV-2026-000001'`,
        [note, amount],
      )
      .then(
        () => 'nothing',
        (error: { constraint?: string }) => error.constraint,
      );
  expect(await insert(CN_1, '41')).toBe('document_not_overpaid');
  expect(await insert('INV-2026-000002', '1')).toBe('document_kind_takes_it');
  expect(await insert(CN_1, '0')).toBe('credit_application_positive');
});

test('a refund is dated neither before its credit note nor twice under one reference, whatever its date', async () => {
  await withCredit();
  const before = await world.sql('SELECT count(*) FROM credit_refunds');
  expect(await refusalOf(refundOf({ amount: '2', on: '2026-08-09' }))).toMatchObject({
    code: 'date_too_early',
    facts: { value: '2026-08-09', earliest: '2026-08-10' },
  });
  expect(await world.sql('SELECT count(*) FROM credit_refunds')).toEqual(before);
  world.at('2026-08-12T10:00:00Z');
  expect(await refundOf({ amount: '2', on: '2026-08-10' })).toMatchObject({ refunded_on: '2026-08-10' });
  for (const on of ['2026-08-10', '2026-08-11', undefined]) {
    expect(await refusalOf(refundOf({ amount: '2', on, reference: 'out 1' }))).toMatchObject({
      code: 'refund_repeated',
    });
  }
  expect(await refundOf({ amount: '2', on: '2026-08-11', again: true })).toMatchObject({ refunded_on: '2026-08-11' });
  const returned = (on: string) =>
    world.database.transaction((tx) => returnRefund(tx, world, { number: CN_1, reason: 'account closed', on }));
  expect(await refusalOf(returned('2026-08-10'))).toMatchObject({ code: 'date_too_early' });
  expect(await returned('2026-08-12')).toMatchObject({ returned_on: '2026-08-12', entry_on: '2026-08-12' });
  await expectVerified(world);
});

test('credit is refunded in parts, a repeated part is refused, and a returned part is open again', async () => {
  await withCredit();
  expect(await refundOf({ amount: '15' })).toMatchObject({ amount: '15.00' });
  expect(await refusalOf(refundOf({ amount: '15.00' }))).toMatchObject({ code: 'refund_repeated' });
  await refundOf({ amount: '15', again: true });
  expect(await refusalOf(refundOf({ amount: '10.01' }))).toMatchObject({ code: 'credit_amount_too_large' });
  await action.apply(CN_1, INV_1, '4');
  expect(await refundOf()).toMatchObject({ amount: '6.00' });
  expect(await document(world, CN_1)).toMatchObject({ credited: '4.00', amount_paid: '36.00', status: 'paid' });
  const returned = (amount?: string) =>
    world.database.transaction((tx) => returnRefund(tx, world, { number: CN_1, reason: 'account closed', amount }));
  expect(await returned('15')).toMatchObject({ amount: '15.00' });
  expect(await refusalOf(returned('7'))).toMatchObject({ code: 'credit_not_refundable' });
  expect(await returned()).toMatchObject({ amount: '6.00' });
  expect(await document(world, CN_1)).toMatchObject({ amount_paid: '15.00', balance: '21.00' });
  expect((await story(world, CN_1)).filter(([name]) => name.startsWith('refund'))).toEqual([
    ['refunded', '15.00 USD refunded on 2026-08-10, reference OUT-1'],
    ['refunded', '15.00 USD refunded on 2026-08-10, reference OUT-1'],
    ['refunded', '6.00 USD refunded on 2026-08-10, reference OUT-1'],
    ['refund_returned', 'refund of 15.00 USD returned: account closed'],
    ['refund_returned', 'refund of 6.00 USD returned: account closed'],
  ]);
  await expectVerified(world);
});

test.each<[setting: Settings['credit_at_close'], used: string[]]>([
  ['all', ['15 of CN-2026-000001', '10.00 of CN-2026-000002']],
  ['months', ['15 of CN-2026-000001']],
  ['none', []],
])('with credit_at_close "%s" a close takes %j by itself', async (setting, used) => {
  const sold = sale('2026-06', '15');
  await world.rows([sale('2026-05', '60'), sold]);
  world.at('2026-07-02T10:00:00Z');
  await world.close();
  world.at('2026-08-02T10:00:00Z');
  await world.rows([refund(sold, '2026-07')]);
  await world.close();
  world.settings = { ...settings, credit_at_close: setting };
  action = correctionsOf(world);
  expect(await action.credit(INV_1, '10')).toBe('CN-2026-000002');
  await action.unapply('CN-2026-000002', INV_1);
  world.at('2026-09-02T10:00:00Z');
  await world.rows([sale('2026-08', '90')]);
  await world.close();
  expect(await creditInUse(world)).toEqual(used.map((each) => `${each} for ${INV_3}`));
  await expectVerified(world);
});

test('aging and the open balance of the partner know placed credit on every day', async () => {
  await withCredit();
  await action.apply(CN_1, INV_1, '25');
  world.at('2026-08-12T10:00:00Z');
  await action.unapply(CN_1, INV_1);
  const on = async (asOf: string) => {
    const { partners, ties } = await world.database.reading((tx) => readAging(tx, { asOf, today: '2026-08-12' }));
    const [row] = partners;
    return { open: row?.open, credit: row?.credit, ties };
  };
  expect(await on('2026-08-09')).toEqual({ open: '160.00', credit: '0.00', ties: true });
  expect(await on('2026-08-10')).toEqual({ open: '135.00', credit: '15.00', ties: true });
  expect(await on('2026-08-11')).toEqual({ open: '135.00', credit: '15.00', ties: true });
  expect(await on('2026-08-12')).toEqual({ open: '160.00', credit: '40.00', ties: true });
});
