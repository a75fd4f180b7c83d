/** A remittance "INV-11 less CN-1": the payment and the credit together, certain only if they are exact. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Amount } from '../../src/money.ts';
import { match } from '../../src/payments/match.ts';
import { OpenItems } from '../../src/payments/open-items.ts';
import { findCreditNotes, findReferences } from '../../src/payments/reference.ts';
import { correctionsOf, creditInUse, document, expectVerified, story } from '../documents/correcting.ts';
import { type Books, inv, openBooks, refusalOf } from './books.ts';

const usd = (amount: string) => Amount.of(amount, 'USD');
const text = (written: string) => [{ field: 'text', text: written }];

describe('credit notes in remittances', () => {
  const cases: readonly (readonly [written: string, ...numbers: string[]])[] = [
    ['INV-2026-000011 LESS CN-2026-000001', 'CN-2026-000001'],
    ['inv 2026 000011 cn 2026 000001', 'CN-2026-000001'],
    ['INV2026000011/CN2026000001', 'CN-2026-000001'],
    ['CM-2026-000007 and CN-2026-000007 CN-2026-000008', 'CN-2026-000007', 'CN-2026-000008'],
    ['ACN-2026-000001'],
    ['CN-1'],
  ];
  for (const [written, ...numbers] of cases) {
    test(`"${written}" names ${numbers.join(' and ') || 'none'}`, () =>
      expect(findCreditNotes(text(written)).map((each) => each.number)).toEqual(numbers));
  }

  test('the digits of a credit note are not taken for an invoice', () => {
    expect(findReferences(text('INV-2026-000011 LESS CN-2026-000001')).references.map((each) => each.number)).toEqual([
      'INV-2026-000011',
    ]);
  });
});

describe('matching less credit', () => {
  const payable = (sequence: number, balance: string) => ({
    document_id: sequence,
    number: `INV-2026-${String(sequence).padStart(6, '0')}`,
    partner_id: 'p-1',
    currency: 'USD',
    status: 'open' as const,
    balance: usd(balance),
    due_on: `2026-10-${String(sequence).padStart(2, '0')}`,
    replaced_by: null,
    month: null,
  });
  const note = (sequence: number, balance: string, partner_id = 'p-1', held_at: string | null = null) => ({
    document_id: 100 + sequence,
    number: `CN-2026-${String(sequence).padStart(6, '0')}`,
    partner_id,
    currency: 'USD',
    balance: usd(balance),
    held_at,
  });
  const items = (
    invoices: readonly ReturnType<typeof payable>[],
    notes: readonly ReturnType<typeof note>[],
    small: Record<string, string> = {},
  ) =>
    new OpenItems(
      invoices,
      [{ partner_id: 'p-1', name: 'Harbour Lights' }],
      new Map([['ACC-90001', 'p-1']]),
      small,
      notes,
    );
  const pay = (amount: string, written: string, account: string | undefined = 'ACC-90001') => ({
    ...{ amount: usd(amount), references: text(written), payer_name: undefined, payer_account: account, text: written },
  });
  const shown = ({ applied, credit = [], suggested }: ReturnType<typeof match>) => ({
    applied: applied.map((each) => `${each.document.document_id}:${each.amount}`),
    credit: credit.map((each) => `${each.credit.document_id}>${each.document.document_id}:${each.amount}`),
    suggested: suggested.map((each) => `${each.document.document_id}:${each.amount}`),
  });

  const ONE = [payable(1, '100'), payable(2, '50')];

  test('credit that the text does not name is used if the invoice less exactly this credit is paid', () => {
    const paid = (amount: string, ...notes: ReturnType<typeof note>[]) =>
      shown(match(pay(amount, 'INV-2026-000001'), items([payable(1, '100'), payable(2, '60')], notes)));
    expect(paid('80', note(1, '20'))).toEqual({ applied: ['1:80.00'], credit: ['101>1:20.00'], suggested: [] });
    expect(paid('70', note(1, '20'), note(2, '10')).credit).toEqual(['101>1:20.00', '102>1:10.00']);
    // Two equal credit notes, a held one, or another invoice of exactly the amount: nothing is certain.
    expect(paid('80', note(1, '20'), note(2, '20')).credit).toEqual([]);
    expect(paid('80', note(1, '20', 'p-1', '2026-10-01')).credit).toEqual([]);
    expect(paid('60', note(1, '40')).credit).toEqual([]);
  });

  const cases: readonly (readonly [
    what: string,
    amount: string,
    written: string,
    notes: readonly ReturnType<typeof note>[],
    small: Record<string, string>,
    expected: ReturnType<typeof shown>,
  ])[] = [
    [
      'an exact remittance is certain',
      ...(['70', 'INV-2026-000001 LESS CN-2026-000001', [note(1, '30')], {}] as const),
      { applied: ['1:70.00'], credit: ['101>1:30.00'], suggested: [] },
    ],
    [
      'several invoices and notes: credit goes to the earliest due first',
      ...([
        '25',
        'INV-2026-000001 INV-2026-000002 CN-2026-000001 CN-2026-000002',
        [note(1, '95'), note(2, '30')],
        {},
      ] as const),
      { applied: ['2:25.00'], credit: ['101>1:95.00', '102>1:5.00', '102>2:25.00'], suggested: [] },
    ],
    [
      'an exact deduction is preferred to a small difference',
      ...(['98', 'INV-2026-000001 CN-2026-000001', [note(1, '2')], { USD: '5' }] as const),
      { applied: ['1:98.00'], credit: ['101>1:2.00'], suggested: [] },
    ],
    [
      'another amount is only suggested',
      ...(['60', 'INV-2026-000001 LESS CN-2026-000001', [note(1, '30')], {}] as const),
      { applied: [], credit: [], suggested: ['1:60.00'] },
    ],
    [
      'the whole invoice needs no credit',
      ...(['100', 'INV-2026-000001 LESS CN-2026-000001', [note(1, '30')], {}] as const),
      { applied: ['1:100.00'], credit: [], suggested: [] },
    ],
    [
      "another partner's credit note is not deducted",
      ...(['70', 'INV-2026-000001 LESS CN-2026-000001', [note(1, '30', 'p-2')], {}] as const),
      { applied: ['1:70.00'], credit: [], suggested: [] },
    ],
    [
      'credit on hold is only suggested, also where the amount is exact',
      ...(['70', 'INV-2026-000001 LESS CN-2026-000001', [note(1, '30', 'p-1', '2026-10-01T00:00:00Z')], {}] as const),
      { applied: [], credit: [], suggested: ['1:70.00'] },
    ],
    [
      'nor is it written to bank charges',
      ...([
        '98',
        'INV-2026-000001 LESS CN-2026-000001',
        [note(1, '2', 'p-1', '2026-10-01T00:00:00Z')],
        { USD: '5' },
      ] as const),
      { applied: [], credit: [], suggested: ['1:98.00'] },
    ],
    [
      'credit that is used up is not deducted',
      ...(['70', 'INV-2026-000001 LESS CN-2026-000001', [note(1, '0')], {}] as const),
      { applied: ['1:70.00'], credit: [], suggested: [] },
    ],
  ];
  for (const [what, amount, written, notes, small, expected] of cases) {
    test(what, () => expect(shown(match(pay(amount, written), items(ONE, notes, small)))).toEqual(expected));
  }

  test('without a plausible payer it is suggested, with the credit', () => {
    const result = match(pay('70', 'INV-2026-000001 LESS CN-2026-000001', 'ACC-90009'), items(ONE, [note(1, '30')]));
    expect(shown(result)).toMatchObject({ applied: [], credit: [], suggested: ['1:70.00'] });
    expect(result.suggested[0]?.evidence.why).toContain('INV-2026-000001 less CN-2026-000001 (30.00 USD)');
  });
});

describe('importing', () => {
  let books: Books;
  let action: ReturnType<typeof correctionsOf>;
  /** 200.00 of open credit of p-1, whose INV-1 of 1,250.00, INV-5 of 980.50 and INV-9 of 77.77 are open. */
  let note: string;
  beforeAll(async () => {
    books = await openBooks();
  });
  afterAll(() => books.end());
  beforeEach(async () => {
    action = correctionsOf(books);
    note = await action.credit(inv(1), '200.00');
    await action.unapply(note, inv(1));
  });
  let lines = 0;
  const line = (amount: string, written: string, payer = 'HARBOUR LIGHTS TICKETING') => {
    lines += 1;
    return books.bankText(
      `usd-${lines}.csv`,
      `date,amount,currency,account,bank_reference,text,payer,payer_account\n2026-10-14,${amount},USD,1,BK-${lines},${written},${payer},\n`,
    );
  };

  test('the payment and the credit are applied under one event, the invoice is paid and the history says how', async () => {
    const { new_lines } = await line('780.50', `${inv(5)} LESS ${note}`);
    expect(new_lines).toMatchObject([
      {
        applied: [{ number: inv(5), amount: '780.50' }],
        credit: [{ credit_note: note, number: inv(5), amount: '200.00' }],
        why: `pays ${inv(5)} less ${note} (200.00 USD)`,
        needs_review: false,
      },
    ]);
    expect(await books.balance(inv(5))).toEqual({
      ...{ balance: '0.00', amount_paid: '780.50', credited: '200.00', status: 'paid' },
    });
    expect((await document(books, note)).status).toBe('paid');
    expect((await story(books, inv(5))).map(([name]) => name)).toEqual(expect.arrayContaining(['credit_used', 'paid']));
    const [payment] = (await books.payments()).slice(-1);
    expect(payment?.applications[0]?.evidence).toMatchObject({ rule: 'reference_and_payer', less: [note] });
    await books.verified();
    // Sent back by the bank: the credit stays where the partner wanted it.
    await books.reverse({ paymentId: payment?.payment_id as number });
    expect(await books.balance(inv(5))).toMatchObject({ balance: '780.50', status: 'open' });
    await books.verified();
    await action.unapply(note, inv(5));
    await expectVerified(books);
  });

  test('a possible duplicate places nothing, and an inexact one is accepted by the command that it names', async () => {
    const { new_lines } = await line('70.00', `${inv(9)} LESS ${note}`);
    const [{ payment_id, applied, credit, suggested, needs_review }] = new_lines as [(typeof new_lines)[number]];
    expect({ applied, credit, needs_review }).toEqual({ applied: [], credit: [], needs_review: true });
    expect(suggested[0]?.why).toContain('to accept it, apply both');
    expect(await refusalOf(books.apply(payment_id as number, inv(9), undefined, ['CN-2026-000099']))).toBe(
      'document_unknown',
    );
    expect(await refusalOf(books.apply(payment_id as number, inv(2), undefined, [note]))).toBe('credit_not_applicable');
    await books.apply(payment_id as number, inv(9), undefined, [note]);
    expect(await books.balance(inv(9))).toMatchObject({ balance: '0.00', amount_paid: '70.00', credited: '7.77' });
    expect(await creditInUse(books)).toContain(`7.77 of ${note} for ${inv(9)}`);
    await books.verified();
    const again = await line('50.00', `${inv(1)} LESS ${note}`);
    expect(again.new_lines).toMatchObject([{ applied: [], credit: [] }]);
  });

  test('credit on hold is not placed by an import; after its release, the suggestion is accepted', async () => {
    await action.hold(note, 'the insurer asks');
    const { new_lines } = await line('1050.00', `${inv(1)} LESS ${note}`);
    const [{ payment_id, applied, credit, suggested, needs_review }] = new_lines as [(typeof new_lines)[number]];
    expect({ applied, credit, needs_review }).toEqual({ applied: [], credit: [], needs_review: true });
    expect(suggested[0]?.why).toBe(
      `pays ${inv(1)} less ${note} (200.00 USD, on hold); ${note} must be released first; to accept it, apply both`,
    );
    const accept = () => books.apply(payment_id as number, inv(1), undefined, [note]);
    expect(await refusalOf(accept())).toBe('document_on_hold');
    await action.release(note);
    await accept();
    expect(await books.balance(inv(1))).toMatchObject({ credited: '200.00', status: 'paid' });
    await books.verified();
  });
});
