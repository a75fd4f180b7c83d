/** Carrying open items of a system before over: what is recorded, what is refused, and what can be done with an item. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openingImport, openingReverse } from '../../src/actions/opening.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import type { Transaction } from '../../src/database/transaction.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { openDispute } from '../../src/documents/disputes.ts';
import { holdDocument, releaseDocument } from '../../src/documents/hold.ts';
import { applyCredit } from '../../src/documents/place-credit.ts';
import { rerunDocument } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { undoWriteOff, writeOffInvoice } from '../../src/documents/write-off.ts';
import { Amount } from '../../src/money.ts';
import { daysBetween } from '../../src/month.ts';
import { applyPayment, unapplyPayment } from '../../src/payments/apply.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { readAging } from '../../src/reports/aging.ts';
import { readTrialBalance } from '../../src/reports/trial-balance.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { cash, credit, csvOf, type Item, invoice } from './file.ts';

const CUT_OVER = '2026-06-30';
const TODAY = '2026-07-01';

let world: World;
beforeEach(async () => {
  world = await openWorld();
  world.at('2026-07-01T10:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Northwind Travel' })]);
});
afterEach(() => world.end());

const controlOf = (items: readonly Item[]): string[] => {
  const sums = new Map<string, Amount>();
  for (const { kind, currency, amount } of items) {
    const value = kind === 'invoice' ? Amount.of(amount, currency) : Amount.of(amount, currency).negated();
    sums.set(currency, sums.get(currency)?.plus(value) ?? value);
  }
  return [...sums].map(([currency, sum]) => `${currency}=${sum}`);
};

interface Given {
  readonly text?: string;
  readonly control?: string[];
  readonly count?: number;
  readonly cutOver?: string;
}
const inputOf = (items: readonly Item[], given: Given = {}) => ({
  file: { name: 'open-items.csv', bytes: Buffer.from(given.text ?? csvOf(items)) },
  cutOver: given.cutOver ?? CUT_OVER,
  control: given.control ?? controlOf(items),
  count: given.count ?? items.length,
});
const carryOver = (items: readonly Item[], given: Given = {}) =>
  runAction(world, openingImport, inputOf(items, given), { deliver: false });

const aging = (asOf: string) => world.database.reading((tx) => readAging(tx, { asOf, today: TODAY }));
const action = <Result>(work: (tx: Transaction) => Promise<Result>) => world.database.transaction(work);

async function expectVerified(): Promise<void> {
  const { checks } = await world.verify();
  expect(checks.flatMap(({ differences }) => differences)).toEqual([]);
}

const count = async (table: string): Promise<number> =>
  Number((await world.sql<{ n: string }>(`SELECT count(*) AS n FROM ${table}`))[0]?.n);

const BASIC = [
  invoice('R-10442', '100.00', { original_amount: '250.00' }),
  invoice('R-10443', '40.10', { partner_id: 'p-2', date: '2026-06-15', due_on: '2026-07-15' }),
  credit('C-77', '15.00'),
  cash('Z-1', '7.50', { date: '2026-06-28', reference: 'overpaid in June' }),
];

describe('an opening', () => {
  test('is a document or a payment for each item, with the number and dates of the previous system', async () => {
    await carryOver(BASIC);
    const documents = await world.documents();
    expect(
      documents.map(({ number, document, purpose, issued_on, due_on, balance, lines }) => [
        ...[number, document, purpose, issued_on, due_on, balance, lines.length],
      ]),
    ).toEqual([
      ['R-10442', 'invoice', 'opening', '2026-05-31', '2026-06-30', '100.00', 0],
      ['R-10443', 'invoice', 'opening', '2026-06-15', '2026-07-15', '40.10', 0],
      ['C-77', 'credit_note', 'opening', '2026-05-31', null, '15.00', 0],
    ]);
    await expectVerified();
  });

  test('is in the trial balance against the opening balance, and never in sales', async () => {
    await carryOver(BASIC);
    const trial = await world.database.reading((tx) =>
      readTrialBalance(tx, { asOf: TODAY, today: TODAY, detail: true }),
    );
    expect(trial.accounts.map(({ account, debit, credit: right }) => [account, debit, right])).toEqual([
      ['assets:receivable:billed:p-1', '100.00', '0.00'],
      ['assets:receivable:billed:p-2', '40.10', '0.00'],
      ['equity:opening-balances', '0.00', '117.60'],
      ['liabilities:partner-credit:p-1', '0.00', '15.00'],
      ['liabilities:unapplied:p-1', '0.00', '7.50'],
    ]);
  });

  test('of 500 items in three currencies ages as in the previous system, on the day of the cut-over and the day after', async () => {
    const items = Array.from({ length: 500 }, (_, index): Item => {
      const currency = ['USD', 'EUR', 'JPY'][index % 3] as string;
      const amount =
        currency === 'JPY' ? String(1000 + index) : `${100 + index}.${String(index % 100).padStart(2, '0')}`;
      const given = { currency, partner_id: index % 2 === 0 ? 'p-1' : 'p-2' };
      if (index % 10 === 8) return credit(`C-${index}`, amount, given);
      if (index % 10 === 9) return cash(`Z-${index}`, amount, given);
      const due = new Date(Date.UTC(2026, 6, 20) - index * 36e5 * 8).toISOString().slice(0, 10);
      return invoice(`R-${10_000 + index}`, amount, { ...given, date: due < CUT_OVER ? due : CUT_OVER, due_on: due });
    });
    await carryOver(items);
    for (const day of [CUT_OVER, TODAY]) {
      const found = await aging(day);
      expect(found.ties).toBe(true);
      expect(Object.fromEntries(found.totals.map((total) => [total.currency, total]))).toMatchObject(
        listOf(items, day),
      );
    }
    expect((await aging('2026-06-29')).totals).toEqual([]);
    await expectVerified();
  });

  test('repeated is recognized and does nothing', async () => {
    await carryOver(BASIC);
    const again = await carryOver(BASIC);
    expect(again.text).toMatch(/was already carried over as of 2026-06-30, .* as opening 1\. Nothing to do\./);
    expect(await count('documents')).toBe(3);
    expect(await count('payments')).toBe(1);
  });

  test('in a dry run shows what it would carry over, and records nothing', async () => {
    const { report } = await previewAction(world, openingImport, inputOf(BASIC));
    expect(report.text).toContain('Would carry over 4 items as of 2026-06-30.');
    expect(report.text).toContain('117.60');
    expect(await count('openings')).toBe(0);
    expect(await count('documents')).toBe(0);
  });
});

/** What the list of the previous system says: by currency, the sums of each column on a day. */
function listOf(items: readonly Item[], day: string): Record<string, Record<string, string>> {
  const lists: Record<string, Record<string, Amount>> = {};
  for (const { kind, currency, amount, due_on: due } of items) {
    lists[currency] ??= Object.fromEntries(
      ['not_due', 'days_1_30', 'days_31_60', 'days_61_90', 'over_90', 'open', 'credit', 'unapplied', 'net'].map(
        (each) => [each, Amount.zero(currency)],
      ),
    );
    const list = lists[currency] as Record<string, Amount>;
    const value = Amount.of(amount, currency);
    const add = (column: string, by: Amount) => {
      list[column] = (list[column] as Amount).plus(by);
    };
    if (kind === 'invoice') {
      const days = daysBetween(due, day);
      const late = days <= 0 ? 'not_due' : days <= 30 ? 'days_1_30' : days <= 60 ? 'days_31_60' : 'days_61_90';
      add(days > 90 ? 'over_90' : late, value);
      add('open', value);
    } else add(kind === 'credit' ? 'credit' : 'unapplied', value);
    add('net', kind === 'invoice' ? value : value.negated());
  }
  return Object.fromEntries(
    Object.entries(lists).map(([currency, list]) => [
      currency,
      Object.fromEntries(Object.entries(list).map(([column, value]) => [column, value.toString()])),
    ]),
  );
}

describe('a file that cannot be carried over is refused with its line and the cure, and nothing is recorded', () => {
  const faults: readonly (readonly [string, readonly Item[], Given, RegExp])[] = [
    ['another total', BASIC, { control: ['USD=117.61'] }, /USD: the control is 117\.61, the file has 117\.60/],
    ['another count', BASIC, { count: 5 }, /items: the control is 5, the file has 4/],
    [
      'a total of a currency that it lacks',
      BASIC,
      { control: ['USD=117.60', 'EUR=1'] },
      /EUR: the control is 1\.00, the file has nothing/,
    ],
    ['no total of a currency that it has', BASIC, { control: ['EUR=117.60'] }, /USD: the control is not given/],
    [
      'an unknown partner',
      [invoice('R-1', '1', { partner_id: 'nobody' })],
      {},
      /line 2, partner_id: there is no partner nobody: import it first/,
    ],
    [
      'a number that Reckoner may give',
      [invoice('INV-2026-000001', '1')],
      {},
      /line 2, number: INV-2026-000001 is a number that Reckoner itself may assign/,
    ],
    ['a number twice', [invoice('R-1', '1'), credit('r-1', '1')], {}, /line 3, number: r-1 is on line 2 already/],
    [
      'a slash in a number',
      [invoice('R/1', '1')],
      {},
      /line 2, number: 'R\/1' is not .* Write - for another character/,
    ],
    [
      'a due date before the date',
      [invoice('R-1', '1', { due_on: '2026-05-01' })],
      {},
      /line 2, due_on: 2026-05-01 is before its date/,
    ],
    [
      'an item after the cut-over',
      [invoice('R-1', '1', { date: '2026-07-01', due_on: '2026-07-02' })],
      {},
      /line 2, date: 2026-07-01 is after the cut-over/,
    ],
    ['no due date', [invoice('R-1', '1', { due_on: '' })], {}, /line 2, due_on: '' is not a date/],
    [
      'a date that is none',
      [invoice('R-1', '1', { date: '2026-02-30' })],
      {},
      /line 2, date: '2026-02-30' is not a date/,
    ],
    [
      'less originally than is open',
      [invoice('R-1', '5', { original_amount: '4' })],
      {},
      /line 2, original_amount: 4\.00 is less than the open 5\.00/,
    ],
    [
      'a missing column',
      [],
      { text: 'kind,number\ninvoice,R-1', control: ['USD=1'], count: 1 },
      /line 1: has no column 'partner_id'/,
    ],
    [
      'a row cut short',
      BASIC,
      { text: `${csvOf(BASIC)}\ninvoice,R-9` },
      /line 6: has 2 fields, but the first line has 9/,
    ],
    ['an open quote', BASIC, { text: `${csvOf(BASIC)}\ninvoice,"R-9` }, /is not CSV/],
    ['an empty file', BASIC, { text: '' }, /has no items/],
    [
      'an amount of zero',
      [],
      { text: csvOf([invoice('R-1', '0')]), control: ['USD=0'], count: 1 },
      /line 2, amount: '0' is not above zero/,
    ],
    [
      'more decimals than the currency has',
      [],
      { text: csvOf([invoice('R-1', '1.005')]), control: ['USD=1'], count: 1 },
      /line 2, amount: '1\.005' has 3 decimals, but the currency has 2/,
    ],
    ['a cut-over in the future', BASIC, { cutOver: '2026-07-02' }, /--cut-over 2026-07-02 is in the future/],
    ['a control that is none', BASIC, { control: ['117.60'] }, /--control '117\.60' must be a currency and its total/],
  ];
  test.each(faults)('%s', async (_name, items, given, says) => {
    await expect(carryOver(items, given)).rejects.toThrow(says);
    for (const table of ['openings', 'opening_totals', 'documents', 'payments']) expect(await count(table)).toBe(0);
  });

  test('bytes that are no UTF-8', async () => {
    const input = { ...inputOf(BASIC), file: { name: 'items.csv', bytes: Buffer.from([0x6b, 0xe4, 0x0a]) } };
    await expect(runAction(world, openingImport, input, { deliver: false })).rejects.toThrow(
      /is not UTF-8: save it as/,
    );
  });

  test('a number that is carried over already', async () => {
    await carryOver(BASIC);
    await expect(carryOver([invoice('r-10442', '1')])).rejects.toThrow(
      /line 2, number: R-10442 is in the ledger already/,
    );
    await expect(carryOver([cash('Z-1', '1')])).rejects.toThrow(/line 2, number: is payment 1 already/);
  });

  test('a number that Reckoner gave in an earlier year, also where that document is void', async () => {
    await world.rows([quote({ accepted_at: '2025-11-10T12:00:00Z' })]);
    world.at('2025-12-02T10:00:00Z');
    await world.close('2025-11');
    const [ours] = await world.documents();
    expect(ours?.number).toBe('INV-2025-000001');
    await action((tx) => voidDocument(tx, world, { number: 'INV-2025-000001', reason: 'a wrong address' }));
    world.at('2026-07-01T10:00:00Z');
    await expect(carryOver([invoice('INV-2025-000001', '1')])).rejects.toThrow(
      /line 2, number: INV-2025-000001 is in the ledger already/,
    );
    await carryOver([invoice('INV-2025-000002', '1')]);
    await expectVerified();
  });

  test('in a ledger that closed a month after the cut-over', async () => {
    await world.rows([quote({ accepted_at: '2026-07-10T12:00:00Z' })]);
    world.at('2026-08-01T10:00:00Z');
    await world.close('2026-07');
    await expect(carryOver(BASIC)).rejects.toThrow(/2026-06-30 is before 2026-07, which is closed/);
    await carryOver(BASIC, { cutOver: '2026-07-31' });
    await expectVerified();
  });
});

describe('the database refuses', () => {
  const wrong: readonly (readonly [string, string, RegExp])[] = [
    ['an item that bills rows', `entries = 1`, /document_opening_bills_nothing/],
    ['an item that is no opening', `opening_id = NULL`, /document_opening_has_its_facts/],
    ['an item entered on another day', `reopened_on = '2026-07-01'`, /document_entered_at_the_cut_over/],
    ['a number of ours', `opening_number = 'INV-2026-000009'`, /opening_number_not_ours/],
    ['a revision of nothing', `opening_revision = 2`, /opening_revision_follows/],
  ];
  test.each(wrong)('%s', async (_name, change, constraint) => {
    await carryOver(BASIC);
    await world.sql(`ALTER TABLE documents DISABLE TRIGGER USER`);
    await expect(world.sql(`UPDATE documents SET ${change} WHERE number = 'R-10442'`)).rejects.toThrow(constraint);
  });

  test('totals that are not those of the items', async () => {
    await carryOver(BASIC);
    await expect(
      world.sql(`BEGIN; INSERT INTO openings (cut_over_on, sha256, name, recorded_at, event_id)
        SELECT cut_over_on, sha256, name, recorded_at, event_id FROM openings;
        INSERT INTO opening_totals (opening_id, currency, items, invoices, credits, cash, control)
        SELECT max(opening_id), 'USD', 1, 5, 0, 0, 5 FROM openings; COMMIT`),
    ).rejects.toThrow(/opening_adds_up|does not add up/);
  });
});

describe('an item that was carried over', () => {
  const caller = () => world;
  const show = async (number: string) => (await world.documents()).find((each) => each.number === number);

  test('is paid, credited, written off, disputed and held like any invoice', async () => {
    await carryOver(BASIC);
    const paid = await action((tx) =>
      recordPayment(tx, caller(), {
        ...{ amount: '60.00', currency: 'USD', method: 'wire', receivedOn: '2026-06-20', reference: 'R-10442' },
        ...{ partnerId: undefined, number: 'R-10442' },
      } as never),
    );
    expect(paid).toBeDefined();
    expect(await show('R-10442')).toMatchObject({ status: 'open', balance: '40.00' });
    // Money that arrived before the cut-over counts from that day on.
    expect((await aging(CUT_OVER)).totals[0]).toMatchObject({ open: '80.10' });
    const note = await action((tx) =>
      creditInvoice(tx, caller(), { number: 'R-10443', amount: '10', reason: 'wrong price' }),
    );
    expect(note).toBe('CN-2026-000001');
    expect(await show('R-10443')).toMatchObject({ balance: '30.10' });
    await action((tx) => applyCredit(tx, caller(), { creditNote: 'C-77', number: 'R-10442' } as never));
    expect(await show('R-10442')).toMatchObject({ balance: '25.00' });
    await action((tx) => openDispute(tx, caller(), { number: 'R-10443', reason: 'not ours' }));
    expect((await aging(TODAY)).totals[0]).toMatchObject({ disputed: '30.10' });
    await action((tx) => holdDocument(tx, caller(), { number: 'R-10443', reason: 'wait' }));
    await action((tx) => releaseDocument(tx, caller(), 'R-10443'));
    await action((tx) => writeOffInvoice(tx, caller(), { number: 'R-10443', reason: 'gone' }));
    expect(await show('R-10443')).toMatchObject({ status: 'paid' });
    await action((tx) => undoWriteOff(tx, caller(), { number: 'R-10443', reason: 'back' }));
    await expectVerified();
  });

  test('is neither voided nor run again', async () => {
    await carryOver(BASIC);
    await expect(action((tx) => voidDocument(tx, caller(), { number: 'R-10442', reason: 'x' }))).rejects.toMatchObject({
      message: 'R-10442 was carried over from the previous system, so it cannot be voided.',
      remedies: [{ action: 'opening.reverse', input: { numbers: ['R-10442'] } }],
    });
    await expect(action((tx) => rerunDocument(tx, caller(), 'R-10442', {} as never))).rejects.toThrow(
      'so it cannot be run again',
    );
  });

  test('is reversed by itself, and carried over again with what was wrong corrected', async () => {
    await carryOver(BASIC);
    await runAction(world, openingReverse, { numbers: ['R-10442', 'Z-1'], reason: 'wrong amount' });
    expect((await aging(TODAY)).totals[0]).toMatchObject({ open: '40.10', unapplied: '0.00' });
    await carryOver([invoice('R-10442', '90.00'), cash('Z-1', '17.50')], {
      text: csvOf([invoice('R-10442', '90.00'), cash('Z-1', '17.50')]),
    });
    expect((await world.documents()).map(({ number, status }) => [number, status])).toEqual([
      ['R-10442', 'void'],
      ['R-10443', 'open'],
      ['C-77', 'open'],
      ['R-10442~2', 'open'],
    ]);
    expect((await aging(TODAY)).totals[0]).toMatchObject({ open: '130.10', unapplied: '17.50' });
    await expectVerified();
  });

  test('is reversed with the whole opening, whose file can then be carried over again', async () => {
    await carryOver(BASIC);
    await runAction(world, openingReverse, { openingId: 1, reason: 'the wrong list' });
    expect((await aging(TODAY)).totals.every(({ net, open }) => net === '0.00' && open === '0.00')).toBe(true);
    await carryOver(BASIC);
    expect((await aging(TODAY)).totals[0]).toMatchObject({ open: '140.10', credit: '15.00', unapplied: '7.50' });
    await expectVerified();
  });

  test('that is used is not reversed, and nothing else of its opening', async () => {
    await carryOver(BASIC);
    await action((tx) => writeOffInvoice(tx, caller(), { number: 'R-10443', reason: 'gone' }));
    await expect(runAction(world, openingReverse, { openingId: 1, reason: 'all' })).rejects.toThrow(
      /Nothing was reversed: 1 item is in use\.\n {2}R-10443: it is written off/,
    );
    expect(await count('voids')).toBe(0);
    await expect(runAction(world, openingReverse, { numbers: ['R-1'], reason: 'x' })).rejects.toThrow(
      'Item R-1 was never carried over',
    );
  });

  test('that is partly paid, or cash that is partly applied, is not reversed until that is taken back', async () => {
    await carryOver(BASIC);
    const wire = { currency: 'USD', method: 'wire', receivedOn: TODAY, reference: 'R-10442' } as const;
    const { paymentId } = await action((tx) =>
      recordPayment(tx, caller(), { ...wire, amount: '0.01', number: 'R-10442' }),
    );
    const reverse = (...numbers: string[]) => runAction(world, openingReverse, { numbers, reason: 'wrong' });
    await expect(reverse('R-10442', 'C-77')).rejects.toMatchObject({
      message: expect.stringContaining('R-10442: a payment is applied to it'),
      remedies: [{ action: 'payment.unapply' }],
    });
    await action((tx) => unapplyPayment(tx, caller(), { paymentId }));
    const [carried] = await world.sql<{ id: string }>(`SELECT payment_id AS id FROM payments WHERE source = 'opening'`);
    const cashId = Number(carried?.id);
    await action((tx) => applyPayment(tx, caller(), { paymentId: cashId, numbers: ['R-10442'], amount: '0.01' }));
    await expect(reverse('Z-1')).rejects.toThrow(/Z-1: it pays an invoice/);
    await action((tx) => unapplyPayment(tx, caller(), { paymentId: cashId }));
    await reverse('R-10442', 'Z-1');
    expect((await aging(TODAY)).totals[0]).toMatchObject({ open: '40.10', unapplied: '0.01' });
    await expectVerified();
  });
});
