/** The rules of duplicate detection, one by one, without a database. */
import { describe, expect, test } from 'vitest';
import { Amount } from '../../src/money.ts';
import { type Candidate, identify, type ReportedPayment, RULES, type RuleName } from '../../src/payments/duplicates.ts';

const DAY = '2026-10-14';
const NUMBER = 'INV-2026-000001';

/** A payment of 100.00 by hand, of partner p-1. */
const candidate = (overrides: Partial<Candidate> = {}): Candidate => ({
  payment_id: 1,
  method: 'wire',
  currency: 'USD',
  amount: '100.00',
  reversed: '0.00',
  stays: true,
  taken_back: [],
  partner_id: 'p-1',
  received_on: DAY,
  references: ['by phone'],
  documents: [],
  reported_by_bank: false,
  reported_by_processor: false,
  reported_by_hand: true,
  paid_out: false,
  ...overrides,
});
const link = (overrides: Partial<Candidate> = {}): Candidate =>
  candidate({
    method: 'link',
    references: ['pi_ABC1234567'],
    reported_by_hand: false,
    reported_by_processor: true,
    ...overrides,
  });

type Report = Partial<Omit<ReportedPayment, 'amount'>> & { readonly amount?: string };
const report = ({ amount = '100.00', ...overrides }: Report): ReportedPayment => ({
  source: 'hand',
  amount: Amount.of(amount, 'USD'),
  on: DAY,
  references: ['other words'],
  documents: [],
  partners: ['p-1'],
  partnersByName: [],
  ...overrides,
});
const byBank = (overrides: Report) => report({ source: 'bank', partners: [], ...overrides });
const byProcessor = (overrides: Report) => report({ source: 'processor', partners: [], ...overrides });

/** Payment 1 is of a line in another file, of the same account, day and amount. */
const IN_ANOTHER = new Map([[1, 'august.csv has a line of the same account, day and amount, with no reference']]);

const daysAfter = (days: number) => new Date(Date.parse(DAY) + days * 86_400_000).toISOString().slice(0, 10);

/** The rule that is met, or that the payment is new. */
function ruleOf(reported: ReportedPayment, ...candidates: readonly Candidate[]): RuleName | 'new' {
  const identity = identify(reported, candidates);
  if (identity.verdict === 'new') return 'new';
  return identity.verdict === 'same' ? identity.of.rule : (identity.of[0]?.rule ?? 'new');
}

const CASES: Readonly<
  Record<string, readonly (readonly [name: string, ReportedPayment, Candidate, RuleName | 'new'])[]>
> = {
  'a hand entry': [
    ['another amount', report({ amount: '100.01' }), candidate(), 'new'],
    ['another partner', report({ partners: ['p-2'] }), candidate(), 'new'],
    ['another document', report({ documents: ['n-1'] }), candidate({ documents: ['n-2'] }), 'new'],
    ['its partner and another one', report({ partners: ['p-1', 'p-2'] }), candidate(), 'new'],
    ['the same amount and payer', report({}), candidate(), 'same_amount_by_hand'],
    ['of an unknown payer', report({}), candidate({ partner_id: null }), 'same_amount_by_hand'],
    ['30 days apart', report({ on: daysAfter(30) }), candidate(), 'same_amount_by_hand'],
    ['31 days apart', report({ on: daysAfter(31) }), candidate(), 'new'],
    ['a wholly reversed payment', report({}), candidate({ reversed: '100.00', stays: false }), 'new'],
    ['the same words on one day', report({ references: ['By phone.'] }), candidate(), 'same_words_same_day'],
    [
      'the same words a day later',
      report({ references: ['by phone'], on: daysAfter(1) }),
      candidate(),
      'same_amount_by_hand',
    ],
    [
      'a reference that the bank reported',
      report({ references: ['FT-8812345'], on: daysAfter(30) }),
      candidate({ references: ['payment FT-8812345 of May'], reported_by_bank: true }),
      'reference',
    ],
    [
      'the same, 31 days later',
      report({ references: ['FT-8812345'], on: daysAfter(31) }),
      candidate({ references: ['FT-8812345'], reported_by_bank: true }),
      'same_amount_by_hand',
    ],
    [
      'a reference that was only entered by hand, for no document',
      report({ references: ['FT-8812345'], on: daysAfter(1) }),
      candidate({ references: ['FT-8812345'] }),
      'same_amount_by_hand',
    ],
    [
      'the same, for the same document',
      report({ references: ['FT-8812345'], on: daysAfter(1), documents: ['n-1'] }),
      candidate({ references: ['FT-8812345'], documents: ['n-1'] }),
      'reference',
    ],
    [
      'a short reference for the same document',
      report({ references: ['7'], on: daysAfter(1), documents: ['n-1'] }),
      candidate({ references: ['7'], documents: ['n-1'] }),
      'reference',
    ],
    [
      'a short reference inside another text',
      report({ references: ['1234567'], on: daysAfter(1) }),
      candidate({ references: ['order 12345678'], reported_by_bank: true }),
      'same_amount_by_hand',
    ],
    [
      'a reference of eight characters inside another text',
      report({ references: ['12345678'], on: daysAfter(1) }),
      candidate({ references: ['order 123456789'], reported_by_bank: true }),
      'reference',
    ],
    [
      "the processor's id, whenever",
      report({ references: ['pi_ABC1234567'], on: daysAfter(90) }),
      link(),
      'processor_id',
    ],
    [
      'the document number, 7 days apart',
      report({ references: [NUMBER], on: daysAfter(7), documents: [NUMBER] }),
      candidate({ references: [NUMBER], documents: [NUMBER] }),
      'document_number',
    ],
    [
      'the document number, 8 days apart: another part',
      report({ references: [NUMBER], on: daysAfter(8), documents: [NUMBER] }),
      candidate({ references: [NUMBER], documents: [NUMBER] }),
      'same_amount_by_hand',
    ],
  ],
  'a bank line': [
    ['the same amount, which no line has shown', byBank({}), candidate(), 'same_amount_in_bank_line'],
    ['the same amount in another line', byBank({}), candidate({ reported_by_bank: true }), 'new'],
    ['31 days apart', byBank({ on: daysAfter(31) }), candidate(), 'new'],
    ['another partner, by account', byBank({ partners: ['p-2'] }), candidate(), 'new'],
    ['another partner, by name', byBank({ partnersByName: ['p-2'] }), candidate(), 'new'],
    [
      'a name counts for nothing where the account is known',
      byBank({ partners: ['p-1'], partnersByName: ['p-2'] }),
      candidate(),
      'same_amount_in_bank_line',
    ],
    ['another document', byBank({ documents: ['n-1'] }), candidate({ documents: ['n-2'] }), 'new'],
    [
      'a line of another file with its account, day and amount',
      byBank({ inOtherFiles: IN_ANOTHER }),
      candidate({ reported_by_bank: true }),
      'same_line_in_another_file',
    ],
    [
      'the same, from an unknown payer',
      byBank({ inOtherFiles: IN_ANOTHER, documents: ['n-1'], partners: ['p-1'] }),
      candidate({ reported_by_bank: true, partner_id: null }),
      'same_line_in_another_file',
    ],
    [
      'the same, but for another document',
      byBank({ inOtherFiles: IN_ANOTHER, documents: ['n-1'] }),
      candidate({ reported_by_bank: true, documents: ['n-2'] }),
      'new',
    ],
    [
      'the same, but of another partner',
      byBank({ inOtherFiles: IN_ANOTHER, partnersByName: ['p-2'] }),
      candidate({ reported_by_bank: true }),
      'new',
    ],
    ['a link payment', byBank({}), link(), 'new'],
    [
      'a reference of a hand entry',
      byBank({ references: ['transfer FT-8812345'] }),
      candidate({ references: ['FT-8812345'] }),
      'reference',
    ],
    [
      'the same, of another partner',
      byBank({ references: ['FT-8812345'], partners: ['p-2'] }),
      candidate({ references: ['FT-8812345'] }),
      'reference_but_other_partner',
    ],
    [
      'the same, of another partner and 31 days later',
      byBank({ references: ['FT-8812345'], partners: ['p-2'], on: daysAfter(31) }),
      candidate({ references: ['FT-8812345'] }),
      'new',
    ],
    [
      'the same, but another amount',
      byBank({ references: ['FT-8812345'], amount: '99.00' }),
      candidate({ references: ['FT-8812345'] }),
      'new',
    ],
    [
      'words without a digit',
      byBank({ references: ['by phone'] }),
      candidate({ partner_id: null }),
      'same_amount_in_bank_line',
    ],
    [
      'a document number of both',
      byBank({ references: ['thanks'], documents: [NUMBER], on: daysAfter(7) }),
      candidate({ references: ['inv 2026 000001'], documents: [NUMBER] }),
      'document_number',
    ],
    [
      "the processor's id, less a fee",
      byBank({ references: ['payout pi_ABC1234567'], amount: '97.00' }),
      link(),
      'link_payment_paid_out',
    ],
    [
      "the processor's id of a payment that was paid out",
      byBank({ references: ['pi_ABC1234567'] }),
      link({ paid_out: true }),
      'known_processor_id',
    ],
    [
      "the processor's id of a payment in another currency",
      byBank({ references: ['pi_ABC1234567'] }),
      link({ currency: 'EUR' }),
      'new',
    ],
    [
      'what was whole again on the day, with a reference of both',
      byBank({ references: ['FT-8812345'] }),
      link({
        references: ['FT-8812345'],
        taken_back: [{ amount: '20.00', kind: 'disputed', reversed_on: daysAfter(-2), reinstated_on: DAY }],
      }),
      'reference',
    ],
    [
      'what was left of a link payment on the day, with a reference of both',
      byBank({ references: ['FT-8812345'], amount: '80.00' }),
      link({
        references: ['FT-8812345'],
        reversed: '20.00',
        taken_back: [{ amount: '20.00', kind: 'refunded', reversed_on: DAY, reinstated_on: null }],
      }),
      'reference',
    ],
  ],
  "a processor's event": [
    ['nothing but the amount', byProcessor({ references: ['pi_ABC1234567'] }), candidate(), 'new'],
    [
      'its id in a hand entry',
      byProcessor({ references: ['pi_ABC1234567', 'ch_ABC1234567'] }),
      candidate({ references: ['link ch_ABC1234567'] }),
      'processor_id',
    ],
    [
      'its id, but another amount',
      byProcessor({ references: ['pi_ABC1234567'], amount: '99.00' }),
      candidate({ references: ['pi_ABC1234567'] }),
      'new',
    ],
    ['another payment of the processor', byProcessor({ references: ['pi_ABC1234567'] }), link(), 'new'],
  ],
};

for (const [what, cases] of Object.entries(CASES)) {
  describe(what, () => {
    for (const [name, reported, known, rule] of cases) {
      test(`${name}: ${rule}`, () => expect(ruleOf(reported, known)).toBe(rule));
    }
  });
}

test('every rule decides a case', () => {
  const decided = new Set(Object.values(CASES).flatMap((cases) => cases.map(([, , , rule]) => rule)));
  expect(RULES.map(({ name }) => name).filter((name) => !decided.has(name))).toEqual([]);
});

describe('several candidates', () => {
  const references = ['FT-8812345'];
  const held = candidate({ payment_id: 1 });
  const same = candidate({ payment_id: 2, references, reported_by_bank: true });

  test('the same payment comes before possible duplicates, and the oldest first', () => {
    const later = { ...same, payment_id: 3 };
    expect(identify(report({ references, on: daysAfter(1) }), [held, same, later])).toMatchObject({
      verdict: 'same',
      of: { payment: { payment_id: 2 }, evidence: 'both have FT-8812345' },
    });
  });

  test('all possible duplicates are given, with their evidence', () => {
    const identity = identify(byBank({}), [held, candidate({ payment_id: 4, partner_id: null })]);
    expect(identity).toMatchObject({
      verdict: 'possible_duplicate',
      of: [{ payment: { payment_id: 1 } }, { payment: { payment_id: 4 } }],
    });
  });

  test('without any the payment is new', () => expect(identify(byBank({}), [])).toEqual({ verdict: 'new' }));
});
