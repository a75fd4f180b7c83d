/** The same bank line from two files: another export, another format, with other references or none. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import { type Books, inv, openBooks } from './books.ts';

const times = <Of>(count: number, of: Of) => Array.from({ length: count }, () => of);

let books: Books;
beforeAll(async () => {
  books = await openBooks();
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
  return books.bankText(`lines-${files}.csv`, `${HEAD}${lines.join('\n')}\n`);
};

describe('one bank line in two files', () => {
  const line = (amount: string, reference: string, text: string, payer = 'Harbour Lights Ticketing') =>
    `2026-10-12,${amount},USD,0007,${reference},${text},${payer},`;

  test('another export without references books nothing twice, and says how to go on', async () => {
    const first = await bank(line('500.00', 'B-40', inv(1)), line('675.00', 'B-41', 'thanks'));
    const second = await bank(line('500.00', '', inv(1)), line('675.00', '', 'thanks'));
    const ids = first.new_lines.map((each) => each.payment_id);
    expect(second.new_lines).toMatchObject([
      { outcome: 'payment', same_as: [ids[0]], applied: [], needs_review: true, suggested: [{ number: inv(1) }] },
      { outcome: 'payment', same_as: [ids[1]], applied: [], needs_review: true },
    ]);
    expect(second.new_lines[0]?.why).toMatch(
      /possible duplicate of payment \d+: lines-\d+\.csv has a line of the same account, day and amount, with reference B-40; nothing is applied/,
    );
    expect(await books.balance(inv(1))).toMatchObject({ amount_paid: '500.00' });
    const held = second.new_lines.map((each) => `payment-${each.payment_id}`);
    const exceptions = await books.database.reading((tx) => readExceptions(tx));
    const kinds = exceptions.filter((each) => held.includes(each.exception)).map((each) => each.kind);
    expect(kinds).toEqual(['possible_duplicate', 'possible_duplicate']);
    // A third export finds the first two, and once a duplicate is reversed, the payment that stays.
    const duplicate = { paymentId: second.new_lines[1]?.payment_id ?? 0, duplicateOf: ids[1] ?? 0 };
    await books.reverse({ ...duplicate, kind: 'duplicate' });
    const third = await bank(line('675.00', 'C-41', 'thanks'));
    expect(third.new_lines).toMatchObject([{ same_as: [ids[1]], applied: [] }]);
    // It is another payment after all.
    await books.apply(third.new_lines[0]?.payment_id ?? 0, inv(1));
    expect((await books.payment(third.new_lines[0]?.payment_id ?? 0)).applied).toBe('675.00');
  });

  test('another format of the day is the same payment, unless it names another document', async () => {
    await bank(line('77.77', 'B-42', inv(9)));
    expect(await books.balance(inv(9))).toMatchObject({ status: 'paid' });
    const bai = (text: string) =>
      [
        ...['01,BANK,OURS,261013,0600,1,80,,2/', '02,OURS,BANK,1,261012,,USD,2/', '03,0007,USD,,,,/'],
        `16,165,7777,Z,OTHER-1,,HARBOUR LIGHTS ${text}/`,
        ...['49,7777,3/', '98,7777,1,5/', '99,7777,1,7/'],
      ].join('\n');
    expect(await books.bankText('day.bai', bai(inv(9)))).toMatchObject({ lines: { new: 0, known: 1 }, new_lines: [] });
    const other = await books.bankText('other.bai', bai(inv(5)));
    expect(other.new_lines).toMatchObject([{ outcome: 'payment', applied: [{ number: inv(5) }] }]);
  });

  test('two equal payments in one file are two, also when one of them was in an earlier file', async () => {
    const two = [line('41.00', 'B-43', 'a'), line('41.00', 'B-44', 'b')];
    expect((await bank(...two)).new_lines).toMatchObject([{ same_as: [] }, { same_as: [] }]);
    const more = await bank(...two, line('41.00', 'B-45', 'c'));
    expect(more.new_lines).toMatchObject([{ bank_reference: 'B-45', same_as: [] }]);
  });

  test('lines for different invoices, or of different partners, are different payments', async () => {
    await bank(line('42.00', 'B-46', inv(2), 'Société Théâtrale du Nord'));
    const other = await bank(line('42.00', 'B-47', inv(6), 'Société Théâtrale du Nord'));
    expect(other.new_lines).toMatchObject([{ same_as: [], applied: [{ number: inv(6), amount: '42.00' }] }]);
  });

  test("a duplicate of money that is no customer's is possible and can be reversed, before and after it is booked", async () => {
    const inBank = async () => {
      const [row] = await books.sql<{ amount: string }>(
        `SELECT sum(amount)::text AS amount FROM journal WHERE account = 'assets:bank:0007'`,
      );
      return Number(row?.amount);
    };
    const before = await inBank();
    const first = await bank(line('5.05', 'B-60', 'GROSS INTEREST', ''));
    const second = await bank(line('5.05', '', 'GROSS INTEREST', ''));
    const [kept, held] = [first, second].map((each) => each.new_lines[0]?.payment_id ?? 0) as [number, number];
    await books.reverse({ paymentId: kept, kind: 'other', account: 'income:interest' });
    const third = await bank(line('5.05', 'C-60', 'GROSS INTEREST', ''));
    expect(third.new_lines).toMatchObject([
      { outcome: 'payment', same_as: expect.arrayContaining([kept]), applied: [], needs_review: true },
    ]);
    const duplicates = [held, third.new_lines[0]?.payment_id ?? 0];
    const exceptions = await books.database.reading((tx) => readExceptions(tx));
    const kinds = exceptions.filter((each) => duplicates.some((id) => each.exception === `payment-${id}`));
    expect(kinds.map(({ kind }) => kind)).toEqual(['possible_duplicate', 'possible_duplicate']);
    for (const paymentId of duplicates) await books.reverse({ paymentId, kind: 'duplicate', duplicateOf: kept });
    expect((await inBank()) - before).toBeCloseTo(5.05);
  });

  test('a payment that the bank took back is not booked again, nor a payout or a return', async () => {
    const returned = '2026-10-13,-43.00,USD,0007,B-49,RETURN R01 B-48000048,,';
    await bank(line('43.00', 'B-48000048', 'thanks'), returned);
    const again = await bank(line('43.00', '', 'thanks'), returned.replace('B-49', ''));
    expect(again.new_lines).toMatchObject([
      { outcome: 'ignored', needs_review: true, why: expect.stringMatching(/which was sent back/) },
      { outcome: 'ignored', needs_review: true, why: expect.stringMatching(/possible duplicate of a return/) },
    ]);
    const payout = '2026-10-13,56.00,USD,0007,PO-78,STRIPE TRANSFER,Stripe,';
    await bank(payout);
    const payoutAgain = await bank(payout.replace('PO-78', ''));
    expect(payoutAgain.new_lines).toMatchObject([{ outcome: 'ignored', needs_review: true }]);
  });
});

const ofx = (account: string, ...lines: readonly (readonly [amount: string, text: string])[]) =>
  `<OFX><STMTRS><CURDEF>USD<BANKACCTFROM><ACCTID>${account}</BANKACCTFROM><BANKTRANLIST>${lines
    .map(
      ([amount, text], index) =>
        `<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20261012<TRNAMT>${amount}<FITID>F${index}Z<MEMO>${text}</STMTTRN>\n`,
    )
    .join('')}</BANKTRANLIST></STMTRS></OFX>`;
const mt940 = (account: string, ...lines: readonly (readonly [amount: string, text: string])[]) => {
  const closing = lines.reduce((sum, [amount]) => sum + Number(amount.replace('.', '')), 0);
  return [
    ...[':20:X', `:25:${account}`, ':28C:1', ':60F:C261011USD0,'],
    ...lines.map(([amount, text]) => `:61:2610121012C${amount.replace('.', ',')}NTRFNONREF\n:86:${text}`),
    `:62F:C261012USD${`${closing}`.replace(/(..)$/, ',$1')}\n-\n`,
  ].join('\n');
};

test('hundreds of equal payments that another format tells with other texts are each a possible duplicate of one', async () => {
  const telling = (text: string, count: number) =>
    Array.from({ length: count }, (_, index) => ['9.99', `${text} ${index}`] as const);
  const first = await books.bankText('equal.sta', mt940('NL00TEST0000000300', ...telling('ticket', 300)));
  const second = await books.bankText('equal.ofx', ofx('NL00TEST0000000300', ...telling('other words', 310)));
  const ids = first.new_lines.map(({ payment_id }) => payment_id);
  expect(ids).toHaveLength(300);
  expect(second.new_lines.slice(0, 300).map(({ same_as }) => same_as)).toEqual(ids.map((id) => [id]));
  // It is not known which of the lines are the ten more.
  expect(second.new_lines.slice(300).map(({ same_as }) => same_as)).toEqual(times(10, [ids[0]]));
  expect(second.new_lines.map(({ applied }) => applied)).toEqual(times(310, []));
  expect(second.new_lines[0]?.why).toMatch(/with no reference \(and 299 more\)/);
  expect(JSON.stringify(second).length / JSON.stringify(first).length).toBeLessThan(2);
});

test('equal payments of two partners that another file tells in another order are duplicates of their own', async () => {
  const [harbour, nord] = ['Harbour Lights Ticketing', 'Société Théâtrale du Nord'];
  const line = (reference: string, payer: string, invoice: string) =>
    `2026-10-12,64.00,USD,0009,${reference},${invoice},${payer},`;
  const [one, other] = (await bank(line('B-90', harbour, inv(5)), line('B-91', nord, inv(6)))).new_lines;
  const again = await bank(line('', nord, inv(6)), line('', harbour, inv(5)));
  expect(again.new_lines).toMatchObject([
    { same_as: [other?.payment_id], applied: [] },
    { same_as: [one?.payment_id], applied: [] },
  ]);
});

test('a number with zeros before it is the account without them, and the end of an IBAN may be', async () => {
  const days = [['64.32', `transfer ${inv(3)}`]] as const;
  await books.bankText('zeros.sta', mt940('000999888777', ...days));
  expect(await books.bankText('no-zeros.ofx', ofx('999888777', ...days))).toMatchObject({
    statements: [{ account: '000999888777' }],
    lines: { new: 0, known: 1 },
  });
  const iban = await books.bankText('iban.ofx', ofx('NL91ABNA0417164300', ['64.33', inv(3)]));
  const number = await books.bankText('number.sta', mt940('0417164300', ['64.33', inv(3)], ['64.34', inv(3)]));
  expect(number.new_lines).toMatchObject([
    { account: '0417164300', same_as: [iban.new_lines[0]?.payment_id], applied: [], needs_review: true },
    { account: '0417164300', same_as: [], suggested: [{ number: inv(3) }] },
  ]);
  // A format that has both names tells two accounts.
  await books.bankText('both.ofx', ofx('0417164300', ['64.35', 'thanks']));
  const two = await books.bankText('two.sta', mt940('0417164300', ['64.33', `other ${inv(3)}`]));
  expect(two.new_lines[0]?.same_as).not.toContain(iban.new_lines[0]?.payment_id);
});

test('a line with a bank reference in two statements of a file is recorded once, and twice if a statement has it twice', async () => {
  const statement = (number: number, opening: string, closing: string, ...lines: readonly string[]) =>
    [
      ...[':20:X', ':25:0077', `:28C:${number}/1`, `:60F:C261012USD${opening}`],
      ...lines.map((reference) => `:61:261012C10,00NTRFNONREF//${reference}`),
      ...[`:62F:C261012USD${closing}`, '-', ''],
    ].join('\n');
  const file = statement(1, '0,', '20,', 'B-77', 'B-78') + statement(2, '20,', '50,', 'B-78', 'B-78', 'B-79');
  const report = await books.bankText('twice.sta', file);
  expect(report.lines).toEqual({ total: 5, new: 4, known: 1 });
  const recorded = await books.sql("SELECT bank_reference AS is FROM bank_lines WHERE account = '0077' ORDER BY 1");
  expect(recorded).toEqual(['B-77', 'B-78', 'B-78', 'B-79'].map((is) => ({ is })));
});
