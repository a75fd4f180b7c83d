/** One receipt for several partners: parents pay for children, the payer is set and corrected, the books tie every day. */
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { forgetAccount, readPayerAccounts } from '../../src/payments/payer-accounts.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { readAging } from '../../src/reports/aging.ts';
import { BLUE_RIDGE, type Books, HARBOUR, inv, NORD, openBooks, refusalOf } from './books.ts';

let books: Books;
beforeEach(async () => {
  await books?.end();
  books = await openBooks();
});
afterAll(() => books.end());

const paidBy = async (id: number) => {
  const { partner_id, unapplied, applications } = await books.payment(id);
  const live = applications.filter((each) => each.unapplied_on === null);
  return [partner_id, unapplied, ...live.map((each) => `${each.number} of ${each.partner_id}: ${each.amount}`)];
};
/** What the aging of a day says is unapplied, by partner. */
const unapplied = async (asOf: string) => {
  const { partners } = await books.database.reading((tx) => readAging(tx, { asOf, today: TODAY }));
  return Object.fromEntries(
    partners.filter((row) => Number(row.unapplied) !== 0).map((row) => [row.partner_id ?? 'unknown', row.unapplied]),
  );
};
const TODAY = '2026-10-18';
const DAYS = ['2026-09-30', '2026-10-13', '2026-10-14', '2026-10-15', '2026-10-16', '2026-10-17', TODAY];
/** Each partner's account statement ties with its open items, and with the aging, on each of these days. */
async function tied(): Promise<void> {
  await books.verified();
  for (const asOf of DAYS) {
    const { partners, ties } = await books.database.reading((tx) => readAging(tx, { asOf, today: TODAY }));
    expect([asOf, ties]).toEqual([asOf, true]);
    for (const partnerId of [HARBOUR, NORD, BLUE_RIDGE]) {
      const account = await books.database.reading((tx) =>
        readAccountStatement(tx, { partnerId, from: '2026-09-01', asOf, today: TODAY }),
      );
      const row = partners.find((each) => each.partner_id === partnerId);
      const net = row === undefined ? 0 : Number(row.open) - Number(row.credit) - Number(row.unapplied);
      const closing = Number(account.accounts[0]?.closing ?? 0).toFixed(2);
      expect([asOf, partnerId, account.ties, closing]).toEqual([asOf, partnerId, true, net.toFixed(2)]);
    }
  }
}
const wire = async (amount: string, partnerId = HARBOUR) =>
  (await books.record({ amount, partnerId, receivedOn: '2026-10-13', reference: `FT-${amount}` })).paymentId;
const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
const fromNobody = async (amount: string, account = '') => {
  const line = `2026-10-13,${amount},USD,1,B-${amount},thanks,${account === '' ? 'J Smith' : ''},${account}\n`;
  const { new_lines } = await books.bankText(`${amount}.csv`, `${HEAD}${line}`);
  return new_lines[0]?.payment_id as number;
};

describe('splitting', () => {
  test('one payment pays invoices of three partners, and what is left stays the cash of its payer', async () => {
    const id = await wire('1300.00');
    await books.apply(id, [inv(2), inv(3), inv(9)]);
    expect(await paidBy(id)).toEqual([
      HARBOUR,
      '48.90',
      `${inv(2)} of ${NORD}: 840.00`,
      `${inv(3)} of ${BLUE_RIDGE}: 333.33`,
      `${inv(9)} of ${HARBOUR}: 77.77`,
    ]);
    expect(await unapplied('2026-10-14')).toEqual({ [HARBOUR]: '1300.00' });
    expect(await unapplied('2026-10-15')).toEqual({ [HARBOUR]: '48.90' });
    await tied();
  });

  test('several invoices are all paid or none, each once, and --amount goes with one', async () => {
    const id = await wire('1000.00');
    const before = await books.payments();
    expect(await refusalOf(books.apply(id, [inv(2), inv(6), inv(3)]))).toBe('payment_not_applicable');
    expect(await refusalOf(books.apply(id, [inv(2), inv(2)]))).toBe('argument_invalid');
    expect(await refusalOf(books.apply(id, [inv(2), inv(3)], '10.00'))).toBe('argument_invalid');
    expect(await books.payments()).toEqual(before);
  });

  test('undone, a part goes back to the payer, and may pay somebody else', async () => {
    const id = await wire('1300.00');
    await books.apply(id, [inv(2), inv(3)]);
    books.at('2026-10-16T15:00:00Z');
    await books.unapply(id, inv(2));
    expect(await paidBy(id)).toEqual([HARBOUR, '966.67', `${inv(3)} of ${BLUE_RIDGE}: 333.33`]);
    expect(await unapplied('2026-10-16')).toEqual({ [HARBOUR]: '966.67' });
    await books.apply(id, inv(7));
    expect(await unapplied('2026-10-17')).toEqual({ [HARBOUR]: '846.57' });
    await tied();
  });

  test('a return takes back every part, of every partner', async () => {
    const id = await wire('1300.00');
    await books.apply(id, [inv(2), inv(3), inv(9)]);
    books.at('2026-10-17T15:00:00Z');
    const { reopened } = await books.reverse({ paymentId: id, code: 'R01' });
    expect([...reopened].sort()).toEqual([inv(2), inv(3), inv(9)]);
    expect(await paidBy(id)).toEqual([HARBOUR, '0.00']);
    expect((await Promise.all([2, 3, 9].map((each) => books.balance(inv(each))))).map((each) => each.status)).toEqual([
      'open',
      'open',
      'open',
    ]);
    expect(await unapplied('2026-10-17')).toEqual({});
    await tied();
  });

  test('a part of a return takes the unapplied cash first, then what was applied last', async () => {
    const id = await wire('1300.00');
    await books.apply(id, [inv(2), inv(3)]);
    await books.reverse({ paymentId: id, amount: '226.67' });
    expect(await paidBy(id)).toEqual([
      HARBOUR,
      '0.00',
      `${inv(2)} of ${NORD}: 840.00`,
      `${inv(3)} of ${BLUE_RIDGE}: 233.33`,
    ]);
    await tied();
  });

  test('the first invoice of an unknown payer names it; the second may be of another partner', async () => {
    const id = await fromNobody('1000.00');
    await books.apply(id, inv(2));
    await books.apply(id, inv(7));
    expect(await paidBy(id)).toEqual([
      NORD,
      '39.90',
      `${inv(2)} of ${NORD}: 840.00`,
      `${inv(7)} of ${BLUE_RIDGE}: 120.10`,
    ]);
    await tied();
  });

  test('two applications of one payment at once: one waits for the other and takes what is left', async () => {
    const id = await wire('900.00');
    await Promise.all([books.apply(id, inv(2)), books.apply(id, inv(6))]);
    const [, left, ...parts] = await paidBy(id);
    expect([left, parts.length]).toEqual(['0.00', 2]);
    const amounts = parts.map((each) => String(each).split(': ')[1]).sort();
    expect(amounts).toEqual(['60.00', '840.00']);
    await tied();
  });
});

describe('the payer', () => {
  test("of an unknown payer, all is that partner's cash from the day of the receipt", async () => {
    const id = await fromNobody('1000.00');
    expect(await unapplied('2026-10-13')).toEqual({ unknown: '1000.00' });
    expect(await books.assign(id, NORD)).toBeNull();
    expect(await unapplied('2026-10-13')).toEqual({ [NORD]: '1000.00' });
    await tied();
  });

  test('corrected, what is unapplied moves on the day of the correction, and what was paid stays paid', async () => {
    const id = await wire('1000.00', NORD);
    await books.apply(id, inv(2));
    books.at('2026-10-16T15:00:00Z');
    expect(await books.assign(id, HARBOUR)).toBe(NORD);
    expect(await paidBy(id)).toEqual([HARBOUR, '160.00', `${inv(2)} of ${NORD}: 840.00`]);
    expect([await unapplied('2026-10-15'), await unapplied('2026-10-16')]).toEqual([
      { [NORD]: '160.00' },
      { [HARBOUR]: '160.00' },
    ]);
    books.at('2026-10-17T15:00:00Z');
    await books.unapply(id);
    expect(await unapplied('2026-10-17')).toEqual({ [HARBOUR]: '1000.00' });
    await tied();
  });

  test('of a payment that is wholly applied can be corrected, and the return is from the payer that it names', async () => {
    const id = await wire('840.00', NORD);
    await books.apply(id, inv(2));
    await books.assign(id, HARBOUR);
    await books.reverse({ paymentId: id });
    expect(await paidBy(id)).toEqual([HARBOUR, '0.00']);
    await tied();
  });

  test('cannot be set to itself, to nobody, or of a payment that is reversed', async () => {
    const id = await wire('1000.00');
    const before = await books.payments();
    expect(await refusalOf(books.assign(id, HARBOUR))).toBe('payment_not_assignable');
    expect(await refusalOf(books.assign(id, 'p-nobody'))).toBe('partner_unknown');
    expect(await refusalOf(books.assign(99, HARBOUR))).toBe('payment_unknown');
    expect(await books.payments()).toEqual(before);
    await books.reverse({ paymentId: id });
    expect(await refusalOf(books.assign(id, NORD))).toBe('payment_not_assignable');
  });

  test('that finance named is kept when the payment pays another partner first', async () => {
    const id = await fromNobody('1000.00');
    await books.assign(id, HARBOUR);
    await books.apply(id, inv(2));
    expect(await paidBy(id)).toEqual([HARBOUR, '160.00', `${inv(2)} of ${NORD}: 840.00`]);
    await tied();
  });
});

describe('accounts of payers', () => {
  const accounts = async () =>
    (await books.database.reading(readPayerAccounts)).map((each) => [each.payer_account, each.partners, each.payments]);
  const forget = (account: string) => books.database.transaction((tx) => forgetAccount(tx, books.acting, account));

  test('an account is learned from its payer, not from the partners that the payment is split over', async () => {
    const id = await fromNobody('1000.00', 'ACC-90009');
    expect(await accounts()).toEqual([]);
    await books.assign(id, HARBOUR);
    await books.apply(id, [inv(2), inv(7)]);
    expect(await accounts()).toEqual([['ACC-90009', [HARBOUR], 1]]);
  });

  test('a forgotten account applies nothing by itself, until it is learned again', async () => {
    await books.apply(await fromNobody('1000.00', 'ACC-90009'), inv(2));
    expect(await accounts()).toEqual([['ACC-90009', [NORD], 1]]);
    await forget('ACC-90009');
    expect(await accounts()).toEqual([]);
    expect(await refusalOf(forget('ACC-90009'))).toBe('payer_account_unknown');
    const next = await fromNobody('1500.00', 'ACC-90009');
    expect(await paidBy(next)).toEqual([null, '1500.00']);
    await books.apply(next, inv(10));
    expect(await accounts()).toEqual([['ACC-90009', [NORD], 1]]);
    await tied();
  });
});
