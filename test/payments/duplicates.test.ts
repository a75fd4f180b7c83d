/** Duplicate detection over hand entries and bank files: the same payment, possible duplicates, other payments. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Books, CSV_MAPS, inv, openBooks } from './books.ts';
import { settingsWith } from './settings.ts';

let books: Books;
beforeAll(async () => {
  const plain = settingsWith({}).bank_csv['plain'];
  const other = {
    ...plain,
    columns: { ...plain?.columns, account: undefined },
    account: 'Main account',
    currency: 'USD',
  };
  books = await openBooks({ bank_csv: settingsWith({ bank_csv: { ...CSV_MAPS, plain, other } }).bank_csv });
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
let files = 0;
/** Imports lines in a file of their own. */
const bank = (...lines: readonly string[]) => {
  files += 1;
  return books.bankText(`lines-${files}.csv`, `${HEAD}${lines.join('\n')}\n`, { map: 'plain' });
};

describe('a hand entry and a bank line', () => {
  test('words without a digit are no reference: a wire transfer of another partner is another payment', async () => {
    const { paymentId } = await books.record({ amount: '300', partnerId: 'p-3', reference: 'Wire transfer' });
    const report = await bank(`2026-10-14,300.00,USD,0001,B-1,WIRE TRANSFER ${inv(1)},Harbour Lights Ticketing,`);
    expect(report.new_lines).toMatchObject([
      { outcome: 'payment', same_as: [], applied: [{ number: inv(1), amount: '300.00' }] },
    ]);
    expect((await books.payment(paymentId)).sources).toHaveLength(1);
  });

  test('the same words in August and October do not make one payment', async () => {
    await bank('2026-08-20,321.00,USD,0001,B-2,wire transfer august,Somebody Unknown,');
    const recorded = await books.record({ amount: '321', number: inv(5), reference: 'Wire transfer' });
    expect(recorded).toMatchObject({ duplicate: false, possibleDuplicates: [] });
    expect(await books.balance(inv(5))).toMatchObject({ amount_paid: '321.00' });
    expect((await books.payments()).find((each) => each.payer.name === 'Somebody Unknown')).toMatchObject({
      partner_id: null,
      unapplied: '321.00',
    });
  });

  test('a shared reference makes a possible duplicate where the line names another partner', async () => {
    const { paymentId } = await books.record({ amount: '310', partnerId: 'p-3', reference: 'FT-8812345' });
    const report = await bank(`2026-10-14,310.00,USD,0001,B-3,FT-8812345 ${inv(1)},Harbour Lights Ticketing,`);
    expect(report.new_lines).toMatchObject([
      { outcome: 'payment', same_as: [paymentId], applied: [], needs_review: true, suggested: [{ number: inv(1) }] },
    ]);
  });

  test('and where only the payer, by name or by account, is another partner', async () => {
    const { paymentId } = await books.record({ amount: '311', partnerId: 'p-3', reference: 'FT-8812346' });
    const named = await bank('2026-10-14,311.00,USD,0001,B-4,FT-8812346,Harbour Lights Ticketing,');
    expect(named.new_lines).toMatchObject([{ outcome: 'payment', same_as: [paymentId], applied: [] }]);
    await bank(`2026-10-14,1.00,USD,0001,B-5,${inv(1)},Harbour Lights Ticketing,ACC-HARBOUR-1`);
    const known = await bank('2026-10-14,311.00,USD,0009,B-6,FT-8812346,Treasury,ACC-HARBOUR-1');
    expect(known.new_lines).toMatchObject([{ outcome: 'payment', same_as: [paymentId], applied: [] }]);
  });

  test('an equal amount of the same payer that is in no bank line yet is a possible duplicate', async () => {
    const byPhone = await books.record({ amount: '1500', number: inv(10), reference: 'confirmed by phone' });
    const line = `2026-10-15,1500.00,USD,0001,B-7,${inv(10)},Société Théâtrale du Nord,`;
    const report = await bank(line);
    expect(report.new_lines).toMatchObject([{ outcome: 'payment', same_as: [byPhone.paymentId], needs_review: true }]);
    const payment_id = report.new_lines[0]?.payment_id ?? 0;
    expect(await books.payment(payment_id)).toMatchObject({
      unapplied: '1500.00',
      suggestions: [{ same_as: byPhone.paymentId }],
    });
    await books.reverse({ paymentId: payment_id, kind: 'duplicate', duplicateOf: byPhone.paymentId });
    // The bank has shown it now: the next of that amount is another payment.
    const next = await bank('2026-10-14,1500.00,USD,0001,B-8,thanks,Société Théâtrale du Nord,');
    expect(next.new_lines).toMatchObject([{ outcome: 'payment', same_as: [] }]);
  });

  test('an equal amount for another invoice that the line names is another payment', async () => {
    await books.record({ amount: '100', number: inv(2), reference: 'by phone' });
    const report = await bank(`2026-10-15,100.00,USD,0001,B-9,${inv(6)},Société Théâtrale du Nord,`);
    expect(report.new_lines).toMatchObject([{ same_as: [], applied: [{ number: inv(6), amount: '100.00' }] }]);
  });

  test('an equal amount of more than thirty days ago is another payment', async () => {
    await books.record({ amount: '44.44', partnerId: 'p-2', reference: 'by phone', receivedOn: '2026-09-14' });
    const report = await bank(`2026-10-15,44.44,USD,0001,B-10,${inv(2)},Société Théâtrale du Nord,`);
    expect(report.new_lines).toMatchObject([{ same_as: [], applied: [{ number: inv(2) }] }]);
  });
});

describe('one bank line under two names of its account', () => {
  const line = (amount: string, reference: string, text: string) =>
    `2026-10-14,${amount},USD,0001,${reference},${text},Blue Ridge Arena LLC,`;

  test('is applied once: the second line is a possible duplicate, and nothing is applied', async () => {
    const text = `${HEAD}${line('500.00', 'B-20', inv(11))}\n`;
    const [first] = (await books.bankText('one.csv', text, { map: 'plain' })).new_lines;
    expect(first).toMatchObject({ applied: [{ number: inv(11), amount: '500.00' }] });
    const [second] = (await books.bankText('two.csv', `${text}\n`, { map: 'other' })).new_lines;
    expect(second).toMatchObject({ account: 'Mainaccount', same_as: [first?.payment_id], applied: [] });
    expect(second?.why).toMatch(/account 0001/);
    expect(await books.balance(inv(11))).toMatchObject({ amount_paid: '500.00' });
    // The bank shows both, so neither is a mistake: one is taken back as the duplicate of the other.
    const [kept = 0, again = 0] = [first, second].map((each) => each?.payment_id ?? 0);
    const mistake = (paymentId: number) => books.reverse({ paymentId, kind: 'mistake' });
    await expect(mistake(kept)).rejects.toMatchObject({
      message: expect.stringMatching(/bank line reports payment \d+.*--kind other.*--kind duplicate/),
      remedies: [{ action: 'payment.unapply' }, { action: 'payment.assign' }],
    });
    await books.reverse({ paymentId: again, kind: 'duplicate', duplicateOf: kept });
    await books.unapply(kept);
    await books.reverse({ paymentId: kept, kind: 'other', account: 'income:interest' });
    await expect(mistake(kept)).rejects.toThrow(/bank line reports/);
  });

  test('within one file too; a return that is reported twice reverses once', async () => {
    const twice = (text: string) => [text, text.replace(',0001,', ',0002,')];
    const paid = await bank(...twice(line('120.10', 'B-21', inv(7))));
    expect(paid.new_lines).toMatchObject([
      { applied: [{ number: inv(7) }], same_as: [] },
      { applied: [], same_as: [paid.new_lines[0]?.payment_id] },
    ]);
    await books.reverse({
      paymentId: paid.new_lines[1]?.payment_id ?? 0,
      kind: 'duplicate',
      duplicateOf: paid.new_lines[0]?.payment_id ?? 0,
    });
    const returned = await bank(...twice(`2026-10-15,-120.10,USD,0001,B-22,RETURN R01 ${inv(7)},,`));
    expect(returned.new_lines).toMatchObject([{ outcome: 'return' }, { outcome: 'ignored', needs_review: true }]);
    expect(await books.balance(inv(7))).toMatchObject({ amount_paid: '0.00' });
  });

  test('a payout that is reported twice is settled once', async () => {
    const payout = '2026-10-14,55.00,USD,0001,PO-77,STRIPE TRANSFER,Stripe,';
    await bank(payout);
    const again = await bank(payout.replace(',0001,', ',0002,'));
    expect(again.new_lines).toMatchObject([{ outcome: 'ignored', needs_review: true }]);
    expect(await books.sql(`SELECT count(*)::int AS payouts FROM payouts`)).toEqual([{ payouts: 1 }]);
  });
});

describe('a payment recorded by hand twice', () => {
  test('the same invoice, amount and reference is one payment, however short the reference', async () => {
    for (const reference of ['102', '7', '1234']) {
      const cheque = { amount: '10', number: inv(9), reference, method: 'other' as const };
      expect(await books.record(cheque)).toMatchObject({ duplicate: false });
      expect(await books.record({ ...cheque, receivedOn: '2026-10-13' })).toMatchObject({ duplicate: true });
    }
    expect(await books.balance(inv(9))).toMatchObject({ amount_paid: '30.00' });
  });

  test('so is an entry for the same partner and day', async () => {
    const cheque = { amount: '11', partnerId: 'p-1', reference: '102' };
    expect(await books.record(cheque)).toMatchObject({ duplicate: false });
    expect(await books.record(cheque)).toMatchObject({ duplicate: true });
    expect(await books.record({ ...cheque, receivedOn: '2026-10-13' })).toMatchObject({ duplicate: false });
  });

  test('words alone make it the same on one day; on another day it is a possible duplicate', async () => {
    const part = { amount: '12', number: inv(9), reference: 'Wire transfer' };
    const first = await books.record(part);
    expect(await books.record(part)).toMatchObject({ duplicate: true });
    expect(await books.record({ ...part, receivedOn: '2026-10-07' })).toMatchObject({
      duplicate: false,
      possibleDuplicates: [first.paymentId],
    });
  });

  test('after thirty days the same reference makes only a possible duplicate', async () => {
    const old = await books.record({ amount: '13', number: inv(9), reference: 'CHK 4711', receivedOn: '2026-09-01' });
    const again = await books.record({ amount: '13', number: inv(9), reference: 'CHK 4711' });
    expect(again).toMatchObject({ duplicate: false, possibleDuplicates: [old.paymentId] });
  });

  test('a bank line of an unknown payer with the same amount is a possible duplicate', async () => {
    const report = await bank('2026-10-13,14.00,USD,0001,B-30,deposit,Somebody Unknown,');
    const recorded = await books.record({ amount: '14', number: inv(11), reference: 'Cheque 99' });
    const line = report.new_lines[0]?.payment_id;
    expect(recorded).toMatchObject({ duplicate: false, possibleDuplicates: [line] });
    // It pays, so the suggestion is of what the other has unapplied.
    expect(await books.payment(recorded.paymentId)).toMatchObject({
      unapplied: '0.00',
      suggestions: [{ same_as: line }],
    });
  });
});
