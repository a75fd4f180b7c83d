/** Payments by hand: applied, unapplied, reversed, refunded; and one payment that is reported in several ways. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { writeOffInvoice } from '../../src/documents/write-off.ts';
import type { Month } from '../../src/month.ts';
import { openPaymentContext } from '../../src/payments/context.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { reverseAll } from '../../src/payments/reverse.ts';
import { checkpoint, exported } from '../audit/books.ts';
import { quote, reversal } from '../support/world.ts';
import { type Books, inv, openBooks, refusalOf } from './books.ts';
import { stripePayment } from './stripe-events.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

const OCTOBER = '2026-10' as Month;
const CSV = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';

describe('by hand', () => {
  test('a payment for an invoice pays it up to its balance; the rest is unapplied cash of the partner', async () => {
    const { paymentId } = await books.record({ amount: '1300', number: inv(1), reference: 'FT-100' });
    expect(await books.balance(inv(1))).toEqual({
      balance: '0.00',
      amount_paid: '1250.00',
      credited: '0.00',
      status: 'paid',
    });
    expect(await books.payment(paymentId)).toMatchObject({
      partner_id: 'p-1',
      amount: '1300.00',
      applied: '1250.00',
      unapplied: '50.00',
      status: 'partly_applied',
      applications: [{ number: inv(1), applied_on: '2026-10-14', unapplied_on: null, confirmed_by: 'a bookkeeper' }],
    });
  });

  test('our bank account is recorded with it, and the journal books it there', async () => {
    const request = { amount: '11.00', partnerId: 'p-2', reference: 'FT-101' };
    const { paymentId } = await books.record({ ...request, account: 'GB82 WEST 1234' });
    expect(await books.payment(paymentId)).toMatchObject({ account: 'GB82WEST1234' });
    expect(
      await books.sql(
        `SELECT account FROM journal WHERE fact = 'payment_received' AND log_no = ${paymentId} AND amount > 0`,
      ),
    ).toEqual([{ account: 'assets:bank:GB82WEST1234' }]);
    for (const wrong of [{ account: ' ' }, { account: '0001', method: 'link' as const }]) {
      expect(await refusalOf(books.record({ ...request, reference: 'FT-102', ...wrong }))).toBe('argument_invalid');
    }
    await books.reverse({ paymentId, kind: 'mistake' });
  });

  test('what is left pays the next invoice; undone, it is unapplied cash again', async () => {
    const [payment] = await books.payments('p-1');
    const id = payment?.payment_id ?? 0;
    await books.apply(id, inv(5));
    expect(await books.balance(inv(5))).toMatchObject({ balance: '930.50', amount_paid: '50.00' });
    await books.unapply(id, inv(5));
    expect(await books.balance(inv(5))).toMatchObject({ balance: '980.50', amount_paid: '0.00' });
    expect(await books.payment(id)).toMatchObject({ unapplied: '50.00' });
  });

  test('the same invoice, amount and reference is the same payment; another reference makes a possible duplicate', async () => {
    const first = await books.record({ amount: '77.77', number: inv(9), reference: 'Wire 4711-X' });
    const again = await books.record({
      amount: '77.77',
      number: inv(9),
      reference: 'wire 4711 x',
      receivedOn: '2026-10-13',
    });
    expect(again).toMatchObject({ paymentId: first.paymentId, duplicate: true });
    const other = await books.record({ amount: '77.77', number: inv(9), reference: 'FT-999' });
    expect(other.duplicate).toBe(false);
    expect(await books.payment(other.paymentId)).toMatchObject({
      unapplied: '77.77',
      suggestions: [{ same_as: first.paymentId, number: null }],
    });
    await books.reverse({ paymentId: other.paymentId, kind: 'duplicate', duplicateOf: first.paymentId });
    expect(await books.payment(other.paymentId)).toMatchObject({
      status: 'reversed',
      unapplied: '0.00',
      suggestions: [],
    });
  });

  test('after a mistake was reversed, the same payment can be recorded again', async () => {
    const request = { amount: '10', partnerId: 'p-1', reference: 'CHECK 5' };
    const first = await books.record(request);
    await books.reverse({ paymentId: first.paymentId, kind: 'mistake' });
    expect((await books.record(request)).duplicate).toBe(false);
    expect((await books.record(request)).duplicate).toBe(true);
  });

  test('a payment of an unknown payer belongs to the partner that finance names, without an invoice', async () => {
    const line = '2026-10-13,15.50,USD,0001,B-NOBODY-7,deposit,Somebody Unknown,';
    const report = await books.bankText('nobody.csv', `${CSV}${line}\n`);
    const [{ payment_id: paymentId }] = report.new_lines as unknown as [{ payment_id: number }];
    const said = { amount: '15.50', reference: 'B-NOBODY-7', partnerId: 'p-3' };
    expect(await books.record(said)).toMatchObject({ paymentId, duplicate: true });
    expect(await books.payment(paymentId)).toMatchObject({ partner_id: 'p-3', unapplied: '15.50' });
    // Said again, it is known.
    expect(await books.record(said)).toMatchObject({ paymentId, duplicate: true });
  });

  test('a payment for a paid invoice is kept as unapplied cash, and says so', async () => {
    const own = { number: inv(1), reference: 'FT-LATE-1' };
    expect((await books.balance(inv(1))).status).toBe('paid');
    expect(await books.record({ ...own, amount: '9' })).toMatchObject({ kept: `${inv(1)} is paid` });
    expect(await books.record({ amount: '9.50', number: inv(6), reference: 'FT-LATE-2' })).not.toHaveProperty('kept');
  });

  test('impossible requests are refused, and nothing changes', async () => {
    const { paymentId } = await books.record({ amount: '20', partnerId: 'p-2', reference: 'FT-200' });
    const before = await books.payments();
    const cases: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['payment_not_applicable', () => books.apply(paymentId, inv(4))],
      ['payment_amount_too_large', () => books.apply(paymentId, inv(2), '20.01')],
      ['payment_nothing_applied', () => books.unapply(paymentId)],
      ['document_unknown', () => books.apply(paymentId, 'INV-1999-000001')],
      ['payment_unknown', () => books.apply(999_999, inv(2))],
      ['date_in_future', () => books.record({ receivedOn: '2026-10-16', number: inv(2) })],
      ['amount_invalid', () => books.record({ amount: '1.005', number: inv(2) })],
      ['amount_invalid', () => books.record({ amount: '-1', number: inv(2) })],
      ['argument_invalid', () => books.record({ currency: 'EUR', number: inv(2) })],
      ['partner_unknown', () => books.record({ partnerId: 'p-nobody' })],
      ['payment_amount_too_large', () => books.reverse({ paymentId, amount: '20.01' })],
    ];
    for (const [code, action] of cases) expect(await refusalOf(action())).toBe(code);
    expect(await books.payments()).toEqual(before);
  });

  test('of a payment that is wholly reversed nothing remains, and the refusal says so', async () => {
    const { paymentId } = await books.record({ amount: '21', partnerId: 'p-2', reference: 'FT-201' });
    await books.reverse({ paymentId });
    await expect(books.reverse({ paymentId })).rejects.toThrow(
      `There is nothing that remains of payment ${paymentId}.`,
    );
  });

  test('a hand entry that the bank reports too is no mistake', async () => {
    const { paymentId } = await books.record({ amount: '22.50', partnerId: 'p-2', reference: 'FT-20220202' });
    const line = '2026-10-14,22.50,USD,0001,FT-20220202,deposit,,';
    const report = await books.bankText('mistake.csv', `${CSV}${line}\n`);
    expect(report.new_lines).toMatchObject([{ payment_id: paymentId }]);
    expect(await refusalOf(books.reverse({ paymentId, kind: 'mistake' }))).toBe('argument_invalid');
    await books.reverse({ paymentId });
  });

  test('an invoice with an applied payment cannot be voided; after unapplying it can', async () => {
    const { paymentId } = await books.record({ amount: '33.33', number: inv(3), reference: 'FT-300' });
    const action = () =>
      books.database.transaction((tx) => voidDocument(tx, books.acting, { number: inv(3), reason: 'wrong' }));
    expect(await refusalOf(action())).toBe('payment_applied');
    await books.unapply(paymentId);
    await action();
    expect(await books.balance(inv(3))).toMatchObject({ status: 'void', balance: '0.00' });
    expect(await refusalOf(books.apply(paymentId, inv(3)))).toBe('payment_not_applicable');
    expect(await refusalOf(books.record({ amount: '1', number: inv(3), reference: 'FT-301' }))).toBe(
      'argument_invalid',
    );
  });

  test('the database refuses what the program never writes', async () => {
    const insert = (paymentId: string, document: string, amount: string) =>
      books.sql(
        `INSERT INTO payment_applications (payment_id, document_id, partner_id, currency, amount, applied_on, entry_on, confidence, evidence, recorded_at, event_id)
         SELECT ${paymentId}, document_id, partner_id, currency, ${amount}, '2026-10-15', '2026-10-15', 1, '{"rule":"person","why":"x"}', now(), 1
         FROM documents WHERE number = '${document}'`,
      );
    const ofNord = `(SELECT payment_id FROM payments WHERE personal(reference) = 'FT-200')`;
    await expect(insert(ofNord, inv(2), '21')).rejects.toThrow(/has 21 applied|payment_within_amount|20/);
    await expect(insert(ofNord, inv(5), '1')).rejects.toThrow(/payment \d+ of p-2 has -1 of p-1/);
    await expect(insert(ofNord, inv(4), '1')).rejects.toThrow(/payment_application_in_its_currency/);
    await expect(insert(ofNord, inv(2), '0')).rejects.toThrow(/payment_application_positive/);
  });

  test('a payment of a month closed for billing is entered on its own day while the books are open', async () => {
    const { paymentId } = await books.record({
      amount: '5',
      number: inv(5),
      reference: 'LATE',
      receivedOn: '2026-09-03',
    });
    expect(await books.payment(paymentId)).toMatchObject({ received_on: '2026-09-03', entry_on: '2026-09-03' });
  });

  test('a payment that is reported late is applied from the day on which the invoice was reopened', async () => {
    const { paymentId } = await books.record({
      amount: '2100',
      number: inv(11),
      reference: 'FT-350',
      receivedOn: '2026-10-02',
    });
    await books.unapply(paymentId);
    const late = await books.record({
      amount: '2100',
      number: inv(11),
      reference: 'FT-351',
      receivedOn: '2026-10-05',
    });
    const entered = (id: number) =>
      books.sql('SELECT entry_on::text FROM payment_applications WHERE payment_id = $1', [id]);
    expect(await entered(paymentId)).toEqual([{ entry_on: '2026-10-02' }]);
    expect(await entered(late.paymentId)).toEqual([{ entry_on: '2026-10-15' }]);
    expect((await books.payment(late.paymentId)).received_on).toBe('2026-10-05');
    await books.unapply(late.paymentId);
    await books.reverse({ paymentId: late.paymentId, on: '2026-10-06' });
  });

  test('two concurrent commands cannot apply the same payment twice', async () => {
    const { paymentId } = await books.record({ amount: '100', partnerId: 'p-2', reference: 'FT-400' });
    const actions = await Promise.all([2, 6, 10].map((each) => refusalOf(books.apply(paymentId, inv(each), '60'))));
    expect(actions.sort()).toEqual(['none', 'payment_amount_too_large', 'payment_amount_too_large']);
    expect(await books.payment(paymentId)).toMatchObject({ applied: '60.00', unapplied: '40.00' });
  });
});

describe('reversal', () => {
  test('a return undoes the latest applications; what is not needed is applied again', async () => {
    const { paymentId } = await books.record({ amount: '120.10', number: inv(7), reference: 'FT-500' });
    await books.reverse({ paymentId, amount: '20.10', code: 'R01' });
    expect(await books.balance(inv(7))).toMatchObject({ balance: '20.10', amount_paid: '100.00', status: 'open' });
    expect(await books.payment(paymentId)).toMatchObject({ status: 'applied', applied: '100.00', reversed: '20.10' });
    await books.reverse({ paymentId });
    expect(await books.balance(inv(7))).toMatchObject({ balance: '120.10', amount_paid: '0.00' });
    expect(await books.payment(paymentId)).toMatchObject({ status: 'reversed', unapplied: '0.00' });
  });
});

describe('reversal by a line dated tomorrow', () => {
  test('an invoice that is written off today is settled from the day on which it is reopened', async () => {
    const own = await openBooks();
    const { paymentId } = await own.record({ amount: '77.77', number: inv(9), reference: 'FT-TOMORROW' });
    await own.database.transaction(async (tx) => {
      const kind = 'returned' as const;
      await reverseAll(
        tx,
        await openPaymentContext(tx, own.acting, { action: 'payment.reverse', subject: '1', details: {} }),
        [
          {
            ...{ identity: 'tomorrow', payment_id: paymentId, amount: '77.77', kind, code: 'R01', reason: 'returned' },
            ...{ bank_line_id: null, duplicate_of: null, reversed_on: '2026-10-16' },
          },
        ],
      );
    });
    await own.database.transaction((tx) => writeOffInvoice(tx, own, { number: inv(9), reason: 'gone' }));
    expect(await own.sql('SELECT written_off_on::text, entry_on::text FROM write_offs')).toEqual([
      { written_off_on: '2026-10-15', entry_on: '2026-10-16' },
    ]);
    await own.verified();
    await own.end();
  });
});

describe('reversal as a duplicate', () => {
  const invalid = (action: Promise<unknown>) => expect(action).rejects.toThrow(/--duplicate-of/);
  const duplicate = (paymentId: number, duplicateOf: number) =>
    books.reverse({ paymentId, kind: 'duplicate', duplicateOf });

  test('the other payment must not be reversed: two payments cannot be duplicates of each other', async () => {
    const ids: number[] = [];
    for (const reference of ['DUP-1', 'DUP-2', 'DUP-3']) {
      ids.push((await books.record({ amount: '21', partnerId: 'p-1', reference })).paymentId);
    }
    const [one = 0, two = 0, three = 0] = ids;
    await duplicate(two, one);
    await invalid(duplicate(one, two));
    expect(await books.payment(one)).toMatchObject({ status: 'unapplied' });
    // In part, and over a third, it comes to the same.
    await books.reverse({ paymentId: one, kind: 'duplicate', duplicateOf: three, amount: '1' });
    await invalid(duplicate(three, two));
    await invalid(duplicate(three, one));
  });

  test('the other payment must have the same amount, currency and partner, as far as the partner is known', async () => {
    const payment = (request: object) => books.record({ amount: '22', partnerId: 'p-1', ...request });
    const { paymentId } = await payment({ reference: 'DUP-10' });
    const others = [
      await payment({ reference: 'DUP-11', amount: '22.01' }),
      await payment({ reference: 'DUP-12', currency: 'EUR' }),
      await payment({ reference: 'DUP-13', partnerId: 'p-2' }),
    ];
    for (const other of others) await invalid(duplicate(paymentId, other.paymentId));
    const report = await books.bankText('dup.csv', `${CSV}2026-09-01,22.00,USD,0001,B-DUP,deposit,,\n`);
    await duplicate(paymentId, report.new_lines[0]?.payment_id ?? 0);
    expect(await books.payment(paymentId)).toMatchObject({ status: 'reversed' });
  });
});

describe('small differences', () => {
  test('a few cents are written off to bank charges if the settings allow it, and reopened with the payment', async () => {
    const own = await openBooks({ small_difference: { USD: '5.00' } });
    const { paymentId } = await own.record({ amount: '1245.00', number: inv(1) });
    expect(await own.balance(inv(1))).toEqual({
      balance: '0.00',
      amount_paid: '1245.00',
      credited: '5.00',
      status: 'paid',
    });
    await own.unapply(paymentId);
    expect(await own.balance(inv(1))).toEqual({
      balance: '1250.00',
      amount_paid: '0.00',
      credited: '0.00',
      status: 'open',
    });
    const short = await own.record({ amount: '834.99', number: inv(2), reference: 'FT-2' });
    expect(await own.balance(inv(2))).toMatchObject({ balance: '5.01', status: 'open' });
    const line = `2026-10-14,975.50,USD,0001,B-1,${inv(5)} Harbour Lights Ticketing,,\n`;
    expect((await own.bankText('one.csv', CSV + line)).new_lines).toMatchObject([
      { applied: [{ small_difference: '5.00' }] },
    ]);
    expect((await own.payment(short.paymentId)).applications).toMatchObject([{ small_difference: null }]);
    await own.verified();
    await own.end();
  });

  test('they are bank charges in the import, the export and the document, and never more than the percent', async () => {
    const own = await openBooks({ small_difference: { USD: '25.00', percent: '1' } });
    const lines = [
      `2026-10-14,1240.00,USD,0001,B-1,${inv(1)},Harbour Lights Ticketing,`,
      `2026-10-14,58.77,USD,0001,B-2,${inv(9)},Harbour Lights Ticketing,`,
    ];
    const report = await own.bankText('charges.csv', `${CSV}${lines.join('\n')}\n`);
    expect(report.bank_charges).toEqual({ USD: '10.00' });
    expect(report.new_lines).toMatchObject([
      { applied: [{ number: inv(1), small_difference: '10.00' }] },
      { applied: [{ number: inv(9), small_difference: null }] },
    ]);
    expect(await own.balance(inv(9))).toMatchObject({ balance: '19.00', status: 'open' });
    const [row] = await own.database.reading((tx) => readDocuments(tx, { number: inv(1) }));
    expect(row).toMatchObject({ credited: '10.00', bank_charges: '10.00', written_off: '0' });
    await own.unapply(report.new_lines[0]?.payment_id ?? 0);
    await checkpoint(own);
    const pack = await exported(own, { kind: 'payments', from: OCTOBER, to: OCTOBER, format: 'jsonl' });
    const moves = readFileSync(join(pack, 'payment-moves.jsonl'), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    expect(moves.filter(({ move }) => move.startsWith('bank_charges'))).toMatchObject([
      { move: 'bank_charges', document: inv(1), currency: 'USD', amount: '10.00' },
      { move: 'bank_charges_reversed', document: inv(1), currency: 'USD', amount: '-10.00' },
    ]);
    await own.verified();
    await own.end();
  });
});

describe('refund of credit', () => {
  test('a credit note is refunded once; when the refund is returned, its credit is open again', async () => {
    const own = await openBooks();
    const sale = quote({ partner_id: 'p-1', accepted_at: '2026-10-05T12:00:00Z' });
    await own.rows([sale, reversal(sale, { accepted_at: '2026-10-06T12:00:00Z' })]);
    await own.sql(`SELECT 1`);
    own.at('2026-11-02T15:00:00Z');
    await own.close();
    own.at('2026-11-03T15:00:00Z');
    const back = quote({ partner_id: 'p-2', accepted_at: '2026-10-07T12:00:00Z' });
    await own.rows([back]);
    own.at('2026-12-02T15:00:00Z');
    await own.close();
    await own.rows([reversal(back, { accepted_at: '2026-12-01T16:00:00Z' })]);
    own.at('2027-01-02T15:00:00Z');
    await own.close();
    const [note] = (await own.documents()).filter((each) => each.document === 'credit_note');
    const number = note?.number ?? '';
    expect(note).toMatchObject({ status: 'open', balance: '7.00' });
    const refund = () =>
      own.database.transaction((tx) => refundCredit(tx, own.acting, { number, method: 'ach', reference: 'OUT-1' }));
    expect(await refund()).toMatchObject({ amount: '7.00', refunded_on: '2027-01-02' });
    expect(await own.balance(number)).toMatchObject({ status: 'paid', amount_paid: '7.00', balance: '0.00' });
    expect(await refusalOf(refund())).toBe('credit_not_refundable');
    await own.database.transaction((tx) => returnRefund(tx, own.acting, { number, reason: 'account closed' }));
    expect(await own.balance(number)).toMatchObject({ status: 'open', amount_paid: '0.00', balance: '7.00' });
    expect(
      await refusalOf(
        own.database.transaction((tx) =>
          refundCredit(tx, own.acting, { number: inv(1), method: 'ach', reference: '' }),
        ),
      ),
    ).toBe('credit_not_refundable');
    await own.verified();
    await own.end();
  });
});

describe('one payment, reported by webhook, bank file and hand', () => {
  const linked = stripePayment({ invoice: inv(5), amount: 98050, key: 'ONE' });
  const line = `2026-10-14,980.50,USD,000123456789,PO-1,STRIPE TRANSFER ${linked.ids.intent},STRIPE,\n`;
  const tellings: Readonly<Record<string, (books: Books) => Promise<unknown>>> = {
    webhook: (own) => own.events([linked.completed(), linked.intentSucceeded()]),
    bank: (own) => own.bankText('payouts.csv', CSV + line),
    hand: (own) => own.record({ amount: '980.50', method: 'link', number: inv(5), reference: linked.ids.intent }),
  };
  const orders = [
    ['webhook', 'bank', 'hand'],
    ['webhook', 'hand', 'bank'],
    ['bank', 'webhook', 'hand'],
    ['bank', 'hand', 'webhook'],
    ['hand', 'webhook', 'bank'],
    ['hand', 'bank', 'webhook'],
  ];
  const isOne = async (own: Books) => {
    const payments = await own.payments();
    expect(
      payments.map(({ amount, applied, status, partner_id }) => ({ amount, applied, status, partner_id })),
    ).toEqual([{ amount: '980.50', applied: '980.50', status: 'applied', partner_id: 'p-1' }]);
    expect(await own.balance(inv(5))).toMatchObject({ status: 'paid', amount_paid: '980.50' });
    // The line moved its money from the processor to the bank.
    expect(await own.sql(`SELECT fees::text, gross::text FROM payout_settlements`)).toEqual([
      { fees: '0.00', gross: '980.50' },
    ]);
    await own.verified();
  };
  for (const order of orders) {
    test(`first ${order.join(', then ')}`, async () => {
      const own = await openBooks();
      for (const each of order) await tellings[each]?.(own);
      await isOne(own);
      await own.end();
    });
  }
  test('all three at once', async () => {
    const own = await openBooks();
    await Promise.all(Object.values(tellings).map((tell) => tell(own)));
    await isOne(own);
    await own.end();
  });

  test('a wire that is recorded by hand before the bank reports it, concurrently too', async () => {
    const own = await openBooks();
    const wire = `2026-10-14,1250.00,USD,000123456789,FT26-99,WIRE ${inv(1)},Harbour Lights Ticketing,ACC-90001\n`;
    const byHand = () => own.record({ amount: '1250', number: inv(1), reference: 'FT26-99' });
    await Promise.all([byHand(), own.bankText('wire.csv', CSV + wire), byHand()]);
    const payments = await own.payments();
    expect(payments).toMatchObject([{ amount: '1250.00', applied: '1250.00', status: 'applied' }]);
    expect(new Set(payments[0]?.sources.map((each) => each.source))).toEqual(new Set(['hand', 'bank']));
    await own.verified();
    await own.end();
  });
});
