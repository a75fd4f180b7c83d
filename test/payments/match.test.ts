/** Document numbers, payer names, matching rules, payouts: the arithmetic of cash application, without a database. */
import { describe, expect, test } from 'vitest';
import { Amount } from '../../src/money.ts';
import { match, onlySum } from '../../src/payments/match.ts';
import { OpenItems, type Payable } from '../../src/payments/open-items.ts';
import { namePlausible } from '../../src/payments/payer-names.ts';
import { feesPlausible, settle } from '../../src/payments/payout.ts';
import { findReferences } from '../../src/payments/reference.ts';
import { planUnapplying } from '../../src/payments/reverse.ts';

const usd = (amount: string) => Amount.of(amount, 'USD');
const found = (text: string) =>
  findReferences([{ field: 'text', text }]).references.map((each) =>
    each.guess === undefined ? each.number : `${each.number}?`,
  );

describe('references', () => {
  const N = 'INV-2026-000123';
  const cases: readonly (readonly [written: string, ...found: string[]])[] = [
    ['INV-2026-000123', N],
    ['INV2026000123', N],
    ['inv 2026 000123', N],
    ['Inv.2026/000123', N],
    ['INV 2026 000 123', N],
    ['INVOICE NO. 2026-000123 THANKS', N],
    ['XXINV2026000123YY', N],
    ['INV-2026-000123,INV-2026-000124', N, 'INV-2026-000124'],
    ['INV-2026-000123 2026-10-01', N],
    ['INV-2026-1000123', 'INV-2026-1000123', 'INV-2026-100012?'],
    ['INV-2026-0001239', 'INV-2026-000123?'],
    ['INV-2O26-OOO123', 'INV-2026-000123?'],
    ['1NV-2026-OOO123', 'INV-2026-000123?'],
    ['2026-000123', 'INV-2026-000123?'],
    ['INV-2026-123', 'INV-2026-000123?'],
    ['INV-1999-000123'],
    ['INVENTORY 2026'],
    ['CN-2026-000123', 'INV-2026-000123?'],
    ['NOTHING HERE 000123'],
  ];
  for (const [written, ...numbers] of cases) {
    test(`'${written}' names ${numbers.join(' and ') || 'nothing'}`, () => expect(found(written)).toEqual(numbers));
  }

  test('a number at the end of its field may be truncated', () => {
    expect(findReferences([{ field: 'text', text: 'PAYMENT FOR SEPTEMBER INV-2026-0001' }]).partial).toMatchObject([
      { beginning: 'INV20260001' },
    ]);
  });
});

describe('names', () => {
  const cases: readonly (readonly [name: string, written: string, plausible: boolean])[] = [
    ['Harbour Lights Ticketing', 'HARBOUR LIGHTS', true],
    ['Harbour Lights Ticketing', 'ORIG CO NAME:HARBOUR LIG ORIG ID:1', true],
    ['Harbour Lights Ticketing', 'HARBOUR MASTER', false],
    ['Harbour Lights Ticketing', 'LIGHTS HARBOUR', false],
    ['Société Théâtrale du Nord', 'SOCIETE THEATRALE DU NORD SA', true],
    ['Müller & Söhne GmbH', 'MUELLER SOEHNE', true],
    ['The Blue Room Ltd', 'BLUE ROOM', true],
    ['Zed', 'ZED', false],
    ['Eventim', 'EVENTIM AG', true],
    ['Eventim', 'EVENTS', false],
  ];
  for (const [name, written, plausible] of cases) {
    test(`'${written}' is ${plausible ? '' : 'not '}${name}`, () =>
      expect(namePlausible(name, written)).toBe(plausible));
  }
});

function payable(sequence: number, partner_id: string, balance: string, overrides: Partial<Payable> = {}): Payable {
  return {
    document_id: sequence,
    number: `INV-2026-${String(sequence).padStart(6, '0')}`,
    partner_id,
    currency: 'USD',
    status: 'open',
    balance: usd(balance),
    due_on: `2026-10-${String(sequence).padStart(2, '0')}`,
    replaced_by: null,
    ...overrides,
  };
}

const PAYERS = [
  { partner_id: 'p-1', name: 'Harbour Lights Ticketing' },
  { partner_id: 'p-2', name: 'Northern Stage Company' },
];
const bookOf = (
  payables: readonly Payable[],
  accounts: Record<string, string> = {},
  small: Record<string, string> = {},
) => new OpenItems(payables, PAYERS, new Map(Object.entries(accounts)), small);

const pay = (amount: string, text: string, payer: { name?: string; account?: string } = {}) => ({
  amount: usd(amount),
  references: [{ field: 'text', text }],
  payer_name: payer.name,
  payer_account: payer.account,
  text,
});
const applied = (result: ReturnType<typeof match>) =>
  result.applied.map((each) => `${each.document.document_id}:${each.amount}`);
const suggested = (result: ReturnType<typeof match>) =>
  result.suggested.map((each) => `${each.document.document_id}:${each.amount}`);

describe('matching', () => {
  test('a reference alone applies nothing: the payer must be plausible', () => {
    const result = match(pay('100', 'INV-2026-000001', { name: 'Somebody Else' }), bookOf([payable(1, 'p-1', '100')]));
    expect([applied(result), suggested(result), result.partner_id]).toEqual([[], ['1:100.00'], undefined]);
  });

  test('an exact amount from a known account is applied, unless two documents have it', () => {
    const from = { account: 'ACC-1' };
    const one = bookOf([payable(1, 'p-1', '100'), payable(2, 'p-1', '50')], { 'ACC-1': 'p-1' });
    expect(applied(match(pay('100', '', from), one))).toEqual(['1:100.00']);
    const two = bookOf([payable(1, 'p-1', '100'), payable(2, 'p-1', '100')], { 'ACC-1': 'p-1' });
    const result = match(pay('100', '', from), two);
    expect([applied(result), suggested(result), result.partner_id]).toEqual([[], ['1:100.00', '2:100.00'], 'p-1']);
  });

  test('an amount alone is never applied, even if only one document has it', () => {
    const result = match(pay('100', 'thanks'), bookOf([payable(1, 'p-1', '100')]));
    expect([applied(result), result.suggested[0]?.confidence]).toEqual([[], '0.20']);
  });

  test('the reference of one partner from the account of another is only suggested', () => {
    const book = bookOf([payable(1, 'p-1', '100')], { 'ACC-2': 'p-2' });
    const result = match(pay('100', 'INV-2026-000001 HARBOUR LIGHTS', { account: 'ACC-2' }), book);
    expect([applied(result), result.suggested[0]?.confidence, result.partner_id]).toEqual([[], '0.40', 'p-2']);
  });

  test('several documents are paid when the amount is enough; otherwise they are suggested', () => {
    const book = () => bookOf([payable(1, 'p-1', '100'), payable(2, 'p-1', '50')]);
    const text = 'HARBOUR LIGHTS INV-2026-000002 INV-2026-000001';
    expect(applied(match(pay('150', text), book()))).toEqual(['1:100.00', '2:50.00']);
    const more = match(pay('160', text), book());
    expect([applied(more), more.why]).toEqual([
      ['1:100.00', '2:50.00'],
      expect.stringContaining('USD 10.00 more than owed'),
    ]);
    const less = match(pay('120', text), book());
    expect([applied(less), suggested(less)]).toEqual([[], ['1:100.00', '2:20.00']]);
  });

  test('a small difference is written off where the settings allow it', () => {
    const book = bookOf([payable(1, 'p-1', '100')], {}, { USD: '2.00' });
    const result = match(pay('98', 'HARBOUR LIGHTS INV-2026-000001'), book);
    expect(result.applied.map((each) => [each.amount.toString(), each.small_difference?.toString()])).toEqual([
      ['98.00', '2.00'],
    ]);
    const below = match(pay('97.99', 'HARBOUR LIGHTS INV-2026-000001'), book);
    expect(below.applied.map((each) => each.small_difference)).toEqual([undefined]);
  });

  test('a small difference is within the amount and within the percent of what was owed', () => {
    const short = (paid: string, settings: Record<string, string>, owed = '1000') =>
      match(pay(paid, 'HARBOUR LIGHTS INV-2026-000001'), bookOf([payable(1, 'p-1', owed)], {}, settings)).applied.map(
        (each) => each.small_difference?.toString(),
      );
    expect(short('980', { USD: '25' })).toEqual(['20.00']);
    expect(short('979.99', { USD: '25' })).toEqual([undefined]);
    expect(short('975', { USD: '25', percent: '2.5' })).toEqual(['25.00']);
    expect(short('974.99', { USD: '25', percent: '50' })).toEqual([undefined]);
    expect(short('0.32', { USD: '25' }, '19.32')).toEqual([undefined]);
    expect(short('999.99', { USD: '25', percent: '0' })).toEqual([undefined]);
    expect(short('999.99', { percent: '5' })).toEqual([undefined]);
  });

  test('a void document leads to what replaced it, a paid one to unapplied cash', () => {
    const replaced = payable(1, 'p-1', '0', { status: 'void', replaced_by: 'INV-2026-000002' });
    const result = match(pay('100', 'HARBOUR LIGHTS INV-2026-000001'), bookOf([replaced, payable(2, 'p-1', '90')]));
    expect([applied(result), suggested(result), result.partner_id]).toEqual([[], ['2:90.00'], 'p-1']);
    const paid = bookOf([payable(1, 'p-1', '0', { status: 'paid' })]);
    expect(match(pay('100', 'HARBOUR LIGHTS INV-2026-000001'), paid)).toMatchObject({ applied: [], partner_id: 'p-1' });
  });

  test('documents are suggested together if only one choice adds up', () => {
    const open = [payable(1, 'p-1', '10'), payable(2, 'p-1', '20'), payable(3, 'p-1', '40')];
    expect(onlySum(usd('60'), open)?.map((each) => each.document_id)).toEqual([2, 3]);
    expect(onlySum(usd('30'), [...open, payable(4, 'p-1', '20')])).toBeUndefined();
    const result = match(pay('60', 'HARBOUR LIGHTS'), bookOf(open));
    expect(suggested(result)).toEqual(['2:20.00', '3:40.00']);
  });
});

describe('payouts', () => {
  const waiting = ['100.00', '50.00', '200.00'].map((amount, index) => ({
    payment_id: index + 1,
    amount: usd(amount),
  }));

  test('are the oldest payments up to one, less a plausible fee', () => {
    expect(settle(usd('145.20'), waiting)).toMatchObject({
      payments: [{ payment_id: 1 }, { payment_id: 2 }],
      fees: usd('4.80'),
    });
    expect(settle(usd('350.00'), waiting)?.payments).toHaveLength(3);
    expect(settle(usd('120.00'), waiting)).toBeUndefined();
    expect(settle(usd('400.00'), waiting)).toBeUndefined();
  });

  test('a fee is at most 4 % and one unit for each payment', () => {
    expect(feesPlausible(usd('5.00'), usd('100'), 1)).toBe(true);
    expect(feesPlausible(usd('5.01'), usd('100'), 1)).toBe(false);
    expect(feesPlausible(Amount.of('-1', 'JPY'), Amount.of('100', 'JPY'), 1)).toBe(false);
  });
});

test('a reversal is taken from unapplied cash, then from the latest applications', () => {
  const live = [3, 2].map((id) => ({
    payment_application_id: id,
    payment_id: 1,
    document_id: id,
    number: `n-${id}`,
    amount: '50',
  }));
  const state = { currency: 'USD', unapplied: '10' };
  const plan = (amount: string) => {
    const { undone, kept } = planUnapplying(state, live, amount);
    return [undone.map((each) => each.document_id), kept && `${kept.document_id}:${kept.amount}`];
  };
  expect(plan('10')).toEqual([[], undefined]);
  expect(plan('30')).toEqual([[3], '3:30.00']);
  expect(plan('60')).toEqual([[3], undefined]);
  expect(plan('110')).toEqual([[3, 2], undefined]);
});
