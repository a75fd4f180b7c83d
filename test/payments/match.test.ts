/** Document numbers, payer names, matching rules, payouts: the arithmetic of cash application, without a database. */
import { describe, expect, test } from 'vitest';
import { creditorReferenceOf } from '../../src/documents/creditor-reference.ts';
import { Amount } from '../../src/money.ts';
import { coveringRun, coveringSet } from '../../src/payments/covering-sets.ts';
import type { Payable } from '../../src/payments/evidence.ts';
import { match } from '../../src/payments/match.ts';
import { OpenItems } from '../../src/payments/open-items.ts';
import { namePlausible, PayerNames } from '../../src/payments/payer-names.ts';
import { feesPlausible, settle } from '../../src/payments/payout-contents.ts';
import { findReferences } from '../../src/payments/reference.ts';
import { planUnapplying } from '../../src/payments/reverse.ts';
import { cpuMilliseconds } from '../support/cpu.ts';

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

  test('all partners together are found as each by itself is', () => {
    const payers = [...new Set(cases.map(([name]) => name))].map((name, at) => ({ partner_id: `p-${at}`, name }));
    const names = new PayerNames(payers);
    for (const [, written] of cases) {
      const expected = payers.filter(({ name }) => namePlausible(name, written)).map(({ partner_id: id }) => id);
      expect([written, names.namedIn(written)]).toEqual([written, expected.sort()]);
    }
  });

  test('letters without accents, apostrophes and names of common words are compared as banks write them', () => {
    const names = new PayerNames(
      ['Øresund Færgerejser ApS', "D'Angelo's Box Office, Inc.", "O'Brien Travel Ltd", 'The Ticket Company LLC'].map(
        (name) => ({
          partner_id: name,
          name,
        }),
      ),
    );
    const named = (written: string) => names.ofName(written).flatMap(({ ids }) => [...ids].map((id) => id.slice(0, 3)));
    expect(
      ['ORESUND FAERGEREJSER APS', 'DANGELOS BOX OFFICE INC', 'O BRIEN TRAVEL LTD', 'OBRIEN TRAVEL'].map(named),
    ).toEqual([['Øre'], ["D'A"], ["O'B"], ["O'B"]]);
    expect(['THE TICKET COMPANY LLC', 'TICKET INC', 'TICKET COMPANY'].map(named)).toEqual([['The'], [], []]);
  });

  test('10,000 lines are compared with the names of 10,000 partners in seconds', () => {
    const payers = Array.from({ length: 10_000 }, (_, at) => ({ partner_id: `p-${at}`, name: `Partner ${at} Events` }));
    const names = new PayerNames(payers);
    for (const { partner_id: id, name } of payers) expect(names.namedIn(`WIRE FROM ${name}`)).toContain(id);
  });
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
    month: null,
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

test('documents are found by what is open of them now, the first issued first', () => {
  const [second, first, euro] = [
    payable(2, 'p-1', '100'),
    payable(1, 'p-2', '250'),
    payable(3, 'p-2', '100', { currency: 'EUR', balance: Amount.of('100', 'EUR') }),
  ];
  const items = bookOf([second, first, euro]);
  const withBalance = (amount: string) => items.withBalance(usd(amount)).map(({ number }) => number);
  expect([withBalance('100'), withBalance('250')]).toEqual([[second.number], [first.number]]);
  items.apply([{ document: first, amount: usd('150'), small_difference: undefined }]);
  expect([withBalance('100'), withBalance('250')]).toEqual([[first.number, second.number], []]);
  items.apply([{ document: second, amount: usd('99'), small_difference: usd('1') }]);
  expect([withBalance('100'), withBalance('0')]).toEqual([[first.number], []]);
});

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
    expect([applied(result), result.suggested[0]?.confidence, result.partner_id]).toEqual([[], '0.40', undefined]);
  });

  test('several documents are paid when the amount is enough; otherwise they are suggested', () => {
    const book = () => bookOf([payable(1, 'p-1', '100'), payable(2, 'p-1', '50')]);
    const text = 'HARBOUR LIGHTS INV-2026-000002 INV-2026-000001';
    expect(applied(match(pay('150', text), book()))).toEqual(['1:100.00', '2:50.00']);
    const more = match(pay('160', text), book());
    expect([applied(more), more.why]).toEqual([
      ['1:100.00', '2:50.00'],
      expect.stringContaining('10.00 USD more than owed'),
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

  test('a document that was replaced twice leads to the last one', () => {
    const replaced = (sequence: number) =>
      payable(sequence, 'p-1', '0', { status: 'void', replaced_by: `INV-2026-00000${sequence + 1}` });
    const result = match(
      pay('100', 'HARBOUR LIGHTS INV-2026-000001'),
      bookOf([replaced(1), replaced(2), payable(3, 'p-1', '90')]),
    );
    expect([applied(result), suggested(result)]).toEqual([[], ['3:90.00']]);
  });

  test('of documents that have only the amount in common, five are suggested and six are not', () => {
    const equal = (count: number) =>
      bookOf(Array.from({ length: count }, (_, at) => payable(at + 1, at % 2 ? 'p-1' : 'p-2', '100')));
    expect(match(pay('100', 'thanks'), equal(5)).suggested).toHaveLength(5);
    expect(match(pay('100', 'thanks'), equal(6)).suggested).toEqual([]);
  });

  test('a doubtful number holds a payment only if it may be another open invoice of the payer', () => {
    const paid = (text: string) =>
      match(
        pay('90', `HARBOUR LIGHTS INV-2026-000001 ${text}`),
        bookOf([
          payable(1, 'p-1', '100'),
          payable(2, 'p-1', '30'),
          payable(3, 'p-1', '0', { status: 'paid' }),
          payable(4, 'p-2', '40'),
        ]),
      );
    expect(applied(paid('2026-000002'))).toEqual([]);
    expect(applied(paid('2026-000003'))).toEqual(['1:90.00']);
    expect(applied(paid('2026-000004'))).toEqual(['1:90.00']);
  });
});

describe('one receipt for several documents', () => {
  const none = usd('0');
  const choice = (amount: string, open: readonly Payable[], fee = none) => {
    const set = coveringSet(usd(amount), open, fee);
    return set && [set.documents.map((each) => each.document_id), set.fee.toString()];
  };
  const of = (...balances: string[]) => balances.map((balance, index) => payable(index + 1, 'p-1', balance));

  test('the smallest set that adds up is chosen, and of equal sizes the oldest', () => {
    expect(choice('60', of('10', '20', '40'))).toEqual([[2, 3], '0.00']);
    expect(choice('60', of('10', '20', '30', '60'))).toEqual([[4], '0.00']);
    expect(choice('30', of('10', '20', '20'))).toEqual([[1, 2], '0.00']);
    expect(choice('15', of('1', '2', '3', '4', '5'))).toEqual([[1, 2, 3, 4, 5], '0.00']);
    expect(choice('21', of('1', '2', '3', '4', '5', '6'))).toBeUndefined();
    expect(choice('0.30', of('0.10', '0.20'))).toEqual([[1, 2], '0.00']);
  });

  test('less a bank fee: only where no sum is exact, and never above the limit', () => {
    expect(choice('58', of('10', '20', '40'), usd('2'))).toEqual([[2, 3], '2.00']);
    expect(choice('58', of('10', '20', '40'), usd('1.99'))).toBeUndefined();
    expect(choice('58', of('20', '40', '28', '30'), usd('2'))).toEqual([[3, 4], '0.00']);
    expect(choice('39', of('10', '20', '40'), usd('2'))).toEqual([[3], '1.00']);
  });

  test('sums of the largest amounts are exact', () => {
    const large = of('9000000000000.01', '9000000000000.02', '5.00');
    expect(choice('18000000000000.03', large)).toEqual([[1, 2], '0.00']);
    expect(choice('18000000000000.02', large)).toBeUndefined();
    expect(choice('999999999999999.99', of('999999999999999.98', '0.01'))).toBeUndefined();
  });

  test('the worst case ends soon: forty documents, and no five of them add up', () => {
    // Even amounts near a fifth of an odd total, and a fee that is missed by a cent: nothing is ruled out early.
    const open = Array.from({ length: 60 }, (_, index) =>
      payable(index + 1, 'p-1', `${200 + ((index * 37) % 41) * 2}.00`),
    );
    const taken = cpuMilliseconds(() => expect(choice('1200.99', open, usd('0.99'))).toBeUndefined());
    expect(taken).toBeLessThan(1000);
  });

  test('they are suggested to a payer that looks like theirs, to be accepted together', () => {
    const open = [payable(1, 'p-1', '10'), payable(2, 'p-1', '20'), payable(3, 'p-1', '40'), payable(4, 'p-2', '60')];
    const result = match(pay('60', 'HARBOUR LIGHTS'), bookOf(open));
    expect(suggested(result)).toEqual(['2:20.00', '3:40.00']);
    expect(result.suggested.map((each) => each.evidence.set)).toEqual(
      Array(2).fill(['INV-2026-000002', 'INV-2026-000003']),
    );
    const lessFee = match(pay('58.50', 'HARBOUR LIGHTS'), bookOf(open, {}, { USD: '2', percent: '3' }));
    expect(suggested(lessFee)).toEqual(['2:20.00', '3:38.50']);
    expect(lessFee.suggested[0]?.evidence.why).toContain('the amount received plus 1.50 USD, which may be a bank fee');
  });
});

describe('short numbers', () => {
  const short = (text: string) => findReferences([{ field: 'text', text }]).short.map((each) => each.sequence);

  test('are sequences padded with zeros that stand alone', () => {
    expect(short('000012, 000020')).toEqual(['000012', '000020']);
    expect(short('INV-2026-000012, 000020/000021')).toEqual(['000020', '000021']);
    expect(short('INV-2026-000012 2026-10-01')).toEqual([]);
    expect(short('INV 2026 000 012')).toEqual([]);
    expect(short('2026-000012 TRACE 091000019 REF A000012')).toEqual([]);
  });

  test("of the payer's open invoices are suggested, and together if the amount is exact", () => {
    const open = () => bookOf([payable(12, 'p-1', '10'), payable(20, 'p-1', '20'), payable(21, 'p-2', '30')]);
    const both = match(pay('30', 'HARBOUR LIGHTS 000012, 000020'), open());
    expect(suggested(both)).toEqual(['12:10.00', '20:20.00', '21:30.00'].slice(0, 2));
    expect(both.suggested[0]?.evidence.set).toEqual(['INV-2026-000012', 'INV-2026-000020']);
    expect(suggested(match(pay('30', '000012, 000020'), open()))).toEqual(['12:10.00', '20:20.00']);
    expect(suggested(match(pay('29', '000012, 000020'), open()))).toEqual([]);
  });

  test('after a whole number are paid with it if the amount is exact, and suggested with it less a bank fee', () => {
    const open = () => bookOf([payable(12, 'p-1', '10'), payable(20, 'p-1', '20')], {}, { USD: '1.50' });
    const text = 'HARBOUR LIGHTS INV-2026-000012, 000020';
    const both = match(pay('30', text), open());
    expect([applied(both), suggested(both), both.partner_id]).toEqual([['12:10.00', '20:20.00'], [], 'p-1']);
    const lessFee = match(pay('28.50', text), open());
    expect([applied(lessFee), suggested(lessFee)]).toEqual([[], ['12:10.00', '20:18.50']]);
    expect(lessFee.suggested.map(({ evidence: { set, fee } }) => [set?.length, fee])).toEqual(
      Array(2).fill([2, '1.50']),
    );
    expect(suggested(match(pay('12', text), open()))).toEqual(['12:10.00', '20:12.00']);
  });

  test('of equal amounts bear a bank fee on the first', () => {
    const equal = bookOf([payable(12, 'p-1', '10'), payable(20, 'p-1', '10')], {}, { USD: '1.50' });
    expect(suggested(match(pay('18.50', 'HARBOUR LIGHTS 000012, 000020'), equal))).toEqual(['12:8.50', '20:10.00']);
  });

  test('that are nothing of the payer do not hold a line', () => {
    const open = bookOf([payable(12, 'p-1', '10'), payable(20, 'p-2', '20')]);
    expect(applied(match(pay('10', 'HARBOUR LIGHTS INV-2026-000012 BATCH 000020'), open))).toEqual(['12:10.00']);
  });
});

describe('a payer whose whole name is written as the payer', () => {
  const HARBOUR = { name: 'HARBOUR LIGHTS TICKETING INC' };
  const months = (...balances: [balance: string, month: string][]) =>
    balances.map(([balance, month], index) => payable(index + 1, 'p-1', balance, { month }));

  test('pays its only invoice of exactly the amount, if the text names no number', () => {
    const open = () => bookOf([payable(1, 'p-1', '100'), payable(2, 'p-1', '50'), payable(3, 'p-2', '100')]);
    const paid = match(pay('100', 'JULY', HARBOUR), open());
    expect([applied(paid), paid.partner_id]).toEqual([['1:100.00'], 'p-1']);
    expect(paid.applied[0]).toMatchObject({ confidence: '0.88', evidence: { rule: 'amount_and_name' } });
    for (const payer of [HARBOUR, { ...HARBOUR, account: 'ACC-1' }])
      expect(
        applied(match(pay('100', 'INV-2026-000777', payer), bookOf([payable(1, 'p-1', '100')], { 'ACC-1': 'p-1' }))),
      ).toEqual([]);
    expect(applied(match(pay('100', 'JULY NORTHERN STAGE COMPANY', HARBOUR), open()))).toEqual([]);
  });

  test('pays nothing by a part of its name, or by a name in the text alone', () => {
    const open = () => bookOf([payable(1, 'p-1', '100')]);
    expect(applied(match(pay('100', 'JULY', { name: 'HARBOUR LIGHTS' }), open()))).toEqual([]);
    expect(applied(match(pay('100', 'HARBOUR LIGHTS TICKETING', { name: 'PAYMENTS LTD' }), open()))).toEqual([]);
  });

  test('pays the one of several equal invoices whose month the text names', () => {
    const open = () => bookOf(months(['35', '2026-07'], ['35', '2026-08'], ['40', '2026-09']));
    expect(applied(match(pay('35', 'FEE AUGUST', HARBOUR), open()))).toEqual(['2:35.00']);
    expect(applied(match(pay('35', 'Gebühr für den Juli', HARBOUR), open()))).toEqual(['1:35.00']);
    expect(applied(match(pay('35', '8月分', HARBOUR), open()))).toEqual(['2:35.00']);
    expect(applied(match(pay('35', 'FEES JULY AND AUGUST', HARBOUR), open()))).toEqual([]);
    expect(applied(match(pay('35', 'FEE', HARBOUR), open()))).toEqual([]);
    // A date, another year, and a month in the payer's name are no periods.
    for (const text of ['ORDER OF 31 JULY 2026', 'JULY 31', '8月3日', 'FEE JULY 2025', 'FEE 2025-07'])
      expect([text, applied(match(pay('35', text, HARBOUR), open()))]).toEqual([text, []]);
    expect(applied(match(pay('35', 'FEE JULY 2026', HARBOUR), open()))).toEqual(['1:35.00']);
    const august = new OpenItems(
      months(['35', '2026-07'], ['35', '2026-08']),
      [{ partner_id: 'p-1', name: 'August Events LLC' }],
      new Map(),
      {},
    );
    expect(applied(match(pay('35', 'ORG: AUGUST EVENTS LLC FEE', { name: 'AUGUST EVENTS LLC' }), august))).toEqual([]);
  });

  test('is not one whose name only begins alike, in the field of the payer or in the text', () => {
    const open = () =>
      new OpenItems([payable(1, 'p-1', '100')], [{ partner_id: 'p-1', name: 'Harbour Tickets' }], new Map(), {});
    for (const name of [
      'HARBOUR TICKETS 2 LLC',
      'HARBOUR TICKETS CREDIT LLC',
      'HARBOUR TICKETS WEST',
      'HARBOUR TICKETS 24',
    ])
      expect([name, applied(match(pay('100', 'JULY', { name }), open()))]).toEqual([name, []]);
    expect(applied(match(pay('100', 'WIRE FROM HARBOUR TICKETS WEST LLC'), open()))).toEqual([]);
    expect(applied(match(pay('60', 'WIRE FROM HARBOUR TICKETS WEST LLC INV-2026-000001'), open()))).toEqual([]);
    expect(applied(match(pay('100', 'WIRE FROM HARBOUR TICKETS LLC'), open()))).toEqual([]);
    expect(applied(match(pay('100', 'JULY', { name: 'WIRE FROM HARBOUR TICKETS LLC' }), open()))).toEqual([]);
    expect(applied(match(pay('100', 'JULY', { name: 'HARBOUR TICKETS LLC' }), open()))).toEqual(['1:100.00']);
  });

  test('does not pay for whom another partner of one word is the ultimate debtor', () => {
    const open = new OpenItems(
      [payable(1, 'p-1', '100')],
      [...PAYERS, { partner_id: 'p-3', name: 'Eventbrite Inc' }],
      new Map([['ACC-1', 'p-1']]),
      {},
    );
    const line = { ...pay('100', '', { ...HARBOUR, account: 'ACC-1' }), behind: ['Eventbrite Inc'] };
    expect(applied(match(line, open))).toEqual([]);
  });

  test('pays all that is open, of whatever number, if the amount is exactly that', () => {
    const nine = () => Array.from({ length: 9 }, (_, index) => payable(index + 1, 'p-1', `${index + 1}.07`));
    expect(applied(match(pay('45.63', 'STATEMENT', HARBOUR), bookOf(nine())))).toHaveLength(9);
    expect(applied(match(pay('44.56', 'STATEMENT', HARBOUR), bookOf(nine())))).toEqual([]);
  });

  test('pays the invoice of exactly the amount whose number the end of a field cuts off', () => {
    const open = () => bookOf([payable(100, 'p-1', '100'), payable(110, 'p-1', '100'), payable(2, 'p-2', '100')]);
    const paid = match(pay('100', 'TICKETS AUGUST INV-2026-00010', HARBOUR), open());
    expect([applied(paid), paid.applied[0]?.evidence.reference?.guess]).toEqual([
      ['100:100.00'],
      'the number is cut off',
    ]);
    expect(applied(match(pay('100', 'TICKETS AUGUST INV-2026-0001', HARBOUR), open()))).toEqual([]);
    expect(applied(match(pay('90', 'TICKETS AUGUST INV-2026-00010', HARBOUR), open()))).toEqual([]);
    // `INV 20` may be the beginning of a year, and is a sequence of its own.
    const twenty = () => bookOf([payable(5, 'p-1', '49'), payable(20, 'p-1', '70')]);
    expect(applied(match(pay('49', 'INV 20 THANKS', HARBOUR), twenty()))).toEqual([]);
    expect(applied(match(pay('49', 'INV 20', HARBOUR), twenty()))).toEqual([]);
    expect(applied(match(pay('70', 'INV 20', HARBOUR), twenty()))).toEqual(['20:70.00']);
  });

  test('pays the invoices that sequences alone name, if the amount is exact', () => {
    const open = () => bookOf([payable(12, 'p-1', '10'), payable(442, 'p-1', '20'), payable(443, 'p-2', '20')]);
    expect(applied(match(pay('20', 'INV 442', HARBOUR), open()))).toEqual(['442:20.00']);
    expect(applied(match(pay('30', 'INV-2026-000012 AND 442', HARBOUR), open()))).toEqual(['12:10.00', '442:20.00']);
    expect(applied(match(pay('30', 'INV-2026-000012 AND 443', HARBOUR), open()))).toEqual(['12:10.00']);
    expect(applied(match(pay('20', 'INV 443', HARBOUR), open()))).toEqual([]);
  });

  test('three invoices that the text names by short numbers are suggested before others that add up', () => {
    const open = () =>
      bookOf(
        months(['900', '2026-05'], ['600', '2026-06'], ['500', '2026-07'], ['1200', '2026-03'], ['780', '2026-04']),
      );
    // The fee is above the limit of small differences, and two older invoices add up to exactly the payment.
    for (const text of ['000001 000002 000003 LESS FEE', 'INV 2026 000001 000002 000003 LESS FEE']) {
      const less = match(pay('1980', text, HARBOUR), open());
      expect([applied(less), suggested(less).slice(0, 3)]).toEqual([[], ['1:880.00', '2:600.00', '3:500.00']]);
      expect(less.why).toContain('; INV-2026-000001 and INV-2026-000002 and INV-2026-000003 are suggested');
    }
    // The payment is far from the sum, so they are no set.
    const far = match(pay('780', '000001 000002 000003', HARBOUR), open());
    expect(far.suggested.filter(({ evidence }) => evidence.set)).toEqual([]);
  });

  test('pays three invoices less one fee, though only the first number is whole', () => {
    const open = bookOf(months(['900', '2026-07'], ['600.42', '2026-08'], ['492', '2026-09']), {}, { USD: '25.00' });
    const paid = match(pay('1977.42', 'INV 2026 000001 000002 000003 LESS FEE', HARBOUR), open);
    expect([applied(paid), paid.applied[2]?.small_difference?.toString()]).toEqual([
      ['1:900.00', '2:600.42', '3:477.00'],
      '15.00',
    ]);
  });

  test('pays what it states of each invoice, if that adds up to the payment', () => {
    const open = () => bookOf([payable(1, 'p-1', '100'), payable(2, 'p-1', '50')]);
    const stated = (...parts: string[]) => parts.map((part) => `RMR*IV*INV-2026-00000${part}\\`).join('');
    expect(applied(match(pay('120', stated('1**80.00', '2**40'), HARBOUR), open()))).toEqual(['1:80.00', '2:40.00']);
    expect(applied(match(pay('120', stated('1**80.00', '2**41'), HARBOUR), open()))).toEqual([]);
    expect(applied(match(pay('120', stated('1**60.00', '2**60'), HARBOUR), open()))).toEqual([]);
  });
});

test('a reference with check digits is paid by anybody if the amount is exact, unless another partner is named', () => {
  const reference = creditorReferenceOf('INV2026000001') as string;
  const open = () => bookOf([payable(1, 'p-1', '100'), payable(2, 'p-2', '100')]);
  const paid = match(pay('100', reference, { name: 'SOMEBODY ELSE' }), open());
  expect([applied(paid), paid.partner_id, paid.applied[0]?.evidence.rule]).toEqual([
    ['1:100.00'],
    'p-1',
    'checked_reference',
  ]);
  expect(applied(match(pay('99', reference, { name: 'SOMEBODY ELSE' }), open()))).toEqual([]);
  expect(applied(match(pay('100', reference, { name: 'NORTHERN STAGE COMPANY' }), open()))).toEqual([]);
  expect(applied(match(pay('100', 'INV-2026-000001', { name: 'SOMEBODY ELSE' }), open()))).toEqual([]);
});

test('sets of any size are found that people pay: a month of a family, a statement, all of one child', () => {
  const family = Array.from({ length: 60 }, (_, index) =>
    payable(index + 1, `p-${index % 6}`, `${100 + index}.01`, {
      month: `2026-0${1 + Math.floor(index / 12)}`,
      due_on: `2026-0${2 + Math.floor(index / 12)}-${10 + (index % 6)}`,
    }),
  );
  const run = (documents: readonly Payable[]) => {
    const total = documents.reduce((sum, { balance }) => sum.plus(balance), usd('0'));
    return coveringRun(total, family)
      ?.map(({ document_id }) => document_id)
      .sort((a, b) => a - b);
  };
  const ids = (documents: readonly Payable[]) => documents.map(({ document_id }) => document_id);
  for (const set of [
    family,
    family.slice(12, 24),
    family.slice(0, 36),
    family.filter((each) => each.partner_id === 'p-4'),
  ])
    expect(run(set)).toEqual(ids(set));
  expect(coveringRun(usd('1.00'), family)).toBeUndefined();
});

test('a misspelt number with a payer that fits is suggested and named as such', () => {
  const book = bookOf([payable(10, 'p-1', '100')]);
  const result = match(pay('100', 'INV-2026-OOOO1O', { name: 'Harbour Lights Ticketing' }), book);
  expect([suggested(result), result.suggested[0]?.confidence]).toEqual([['10:100.00'], '0.60']);
  expect(result.why).toBe(
    'invoice number misspelled (INV-2026-OOOO1O); payer looks like p-1 (Harbour Lights Ticketing); INV-2026-000010 is suggested',
  );
});

describe('a parent that pays for its children', () => {
  const FAMILY = [
    { partner_id: 'hq', name: 'Grand Venues Holding' },
    { partner_id: 'p-1', name: 'Harbour Lights Ticketing', parent: 'hq' },
    { partner_id: 'p-2', name: 'Northern Stage Company', parent: 'p-1' },
    { partner_id: 'p-3', name: 'Somebody Elses Stage' },
  ];
  const family = (payables: readonly Payable[], accounts: Record<string, string> = {}) =>
    new OpenItems(payables, FAMILY, new Map(Object.entries(accounts)), {});
  const open = () => [
    payable(1, 'p-1', '100'),
    payable(2, 'p-2', '50'),
    payable(3, 'hq', '25'),
    payable(4, 'p-3', '70'),
  ];

  test('certain numbers of several children are paid by the parent that the name or the account shows', () => {
    const text = 'INV-2026-000001 INV-2026-000002';
    const byName = match(pay('150', text, { name: 'GRAND VENUES HOLDING' }), family(open()));
    expect([applied(byName), byName.partner_id]).toEqual([['1:100.00', '2:50.00'], 'hq']);
    expect(byName.applied[1]?.evidence.why).toContain('hq pays for p-2');
    const byAccount = match(pay('150', text, { account: 'A' }), family(open(), { A: 'p-1' }));
    expect([applied(byAccount), byAccount.partner_id]).toEqual([['1:100.00', '2:50.00'], 'p-1']);
  });

  test('a child does not pay for its parent, nor anybody for a stranger', () => {
    const up = match(pay('25', 'INV-2026-000003', { account: 'A' }), family(open(), { A: 'p-1' }));
    expect([applied(up), up.suggested[0]?.confidence]).toEqual([[], '0.40']);
    const strange = match(pay('170', 'GRAND VENUES INV-2026-000001 INV-2026-000004'), family(open()));
    expect([applied(strange), suggested(strange)]).toEqual([[], ['1:100.00', '4:70.00']]);
    expect(strange.why).toContain('documents of p-1 and p-3 are named, and no partner pays for all of them');
  });

  test('an exact amount or a covering set is looked for among the invoices of all its children', () => {
    expect(applied(match(pay('50', '', { account: 'A' }), family(open(), { A: 'hq' })))).toEqual(['2:50.00']);
    expect(suggested(match(pay('75', 'GRAND VENUES'), family(open())))).toEqual(['2:50.00', '3:25.00']);
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

  test('are left to finance where the last payment may or may not be in one', () => {
    const [first] = waiting;
    const cent = { payment_id: 2, amount: usd('1.00') };
    expect(settle(usd('98.00'), first ? [first, cent] : [])).toBeUndefined();
    expect(settle(usd('98.00'), waiting)?.payments).toEqual([first]);
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
    bank_charges: null,
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
