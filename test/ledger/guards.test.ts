/** What the database refuses by itself, whoever asks: the ledger is append-only, balanced, and closed months stay shut. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { execute } from '../../src/database/transaction.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { ledger } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-02T06:00:00Z');
  await world.partners([partner()]);
  await world.rows([quote({ quote_id: 'kept' })]);
});
afterAll(() => world.end());

const CHANGES = [
  `UPDATE ledger_rows SET spot_price = 1, partner_cut = 0, invoice_amount = 1`,
  `UPDATE ledger_rows SET posted_month = '2026-09'`,
  `UPDATE ledger_rows SET quote_id = quote_id`,
  `DELETE FROM ledger_rows`,
  `DELETE FROM ledger_rows WHERE quote_id = 'kept'`,
  `TRUNCATE ledger_rows`,
  `TRUNCATE ledger_rows RESTART IDENTITY CASCADE`,
  `MERGE INTO ledger_rows e USING partners p ON p.partner_id = e.partner_id WHEN MATCHED THEN DELETE`,
];

describe('the ledger is append-only', () => {
  for (const change of CHANGES) {
    test(`for the program's role: ${change}`, async () => {
      const before = await ledger(world);
      const attempt = world.database.transaction((tx) => execute(tx, change));
      await expect(attempt).rejects.toMatchObject({ code: '42501' }); // insufficient_privilege
      expect(await ledger(world)).toEqual(before);
    });

    test(`for the owner: ${change}`, async () => {
      const before = await ledger(world);
      // Other tables refer to the rows, so that without CASCADE no trigger is asked.
      await expect(world.sql(change)).rejects.toMatchObject(
        change === 'TRUNCATE ledger_rows'
          ? { code: '0A000' } // feature_not_supported: cannot truncate a table referenced in a foreign key constraint
          : { code: '23000', constraint: 'ledger_rows_append_only' },
      );
      expect(await ledger(world)).toEqual(before);
    });
  }

  test('and so are the closed months', async () => {
    for (const change of [
      'UPDATE closed_months SET entries = 0',
      'DELETE FROM closed_months',
      'TRUNCATE closed_months CASCADE',
    ]) {
      await expect(world.database.transaction((tx) => execute(tx, change))).rejects.toMatchObject({ code: '42501' });
      if (change.startsWith('TRUNCATE')) {
        await expect(world.sql(change)).rejects.toMatchObject({ constraint: 'closed_months_append_only' });
      }
    }
  });
});

/** A row as the ledger keeps it; say only what is wrong with it. */
const ENTRY: Readonly<Record<string, string | null>> = {
  partner_id: 'p-1',
  posted_month: '2026-07',
  kind: 'quote_accepted',
  quote_id: 'new',
  requote_id: null,
  reversal_id: null,
  enrollment_id: null,
  policy_id: 'ticket-protection',
  currency: 'USD',
  accepted_at: '2026-07-15T12:00:00Z',
  spot_price: '10',
  partner_cut: '3',
  invoice_amount: '7',
  order_reference: null,
  cover_from: null,
  cover_to: null,
  time_zone: 'America/New_York',
  month: '2026-07',
  arrangement: 'invoicing',
  recorded_at: '2026-07-15T12:00:01Z',
  // Of the first import of partners.
  event_id: '1',
};

async function insert(overrides: Record<string, string | null>): Promise<unknown> {
  const entry = { ...ENTRY, ...overrides };
  const names = Object.keys(entry);
  const values = names.map((_, index) => `$${index + 1}`).join(', ');
  return world.sql(`INSERT INTO ledger_rows (${names.join(', ')}) VALUES (${values})`, Object.values(entry));
}

const amounts = (spot_price: string, partner_cut: string, invoice_amount: string) => ({
  spot_price,
  partner_cut,
  invoice_amount,
});

describe('the database refuses, also from the owner,', () => {
  const refused: readonly [what: string, constraint: string, overrides: Record<string, string | null>][] = [
    ['a row that does not balance', 'ledger_rows_balance', amounts('10', '3', '6.99')],
    ['a quote below zero', 'ledger_rows_sign', amounts('-10', '-3', '-7')],
    ['a quote with a negative cut', 'ledger_rows_sign', amounts('7', '-3', '10')],
    ['a reversal above zero', 'ledger_rows_sign', { kind: 'reversal', reversal_id: 'rv' }],
    ['a tenth of a cent', 'ledger_rows_minor_digits', amounts('10.001', '3', '7.001')],
    ['half a yen', 'ledger_rows_minor_digits', { currency: 'JPY', ...amounts('1', '0.5', '0.5') }],
    ['four digits of a dinar', 'ledger_rows_minor_digits', { currency: 'KWD', ...amounts('0.0001', '0', '0.0001') }],
    [
      'five digits of a unidad de fomento',
      'ledger_rows_minor_digits',
      { currency: 'CLF', ...amounts('0.00001', '0', '0.00001') },
    ],
    ['zeros behind the digits of its currency', 'ledger_rows_minor_digits', amounts('10.000', '3', '7')],
    ['10^15', 'ledger_rows_amount_limit', amounts('1000000000000000', '0', '1000000000000000')],
    ['infinity', 'ledger_rows_amount_limit', amounts('Infinity', '0', 'Infinity')],
    ['what is not a number', 'ledger_rows_amount_limit', amounts('NaN', '0', 'NaN')],
    ['a kind that nobody knows', 'ledger_rows_kind_has_ids', { kind: 'refund' }],
    ['a quote with a requote', 'ledger_rows_kind_has_ids', { requote_id: 'rq' }],
    ['a requote without an id', 'ledger_rows_kind_has_ids', { kind: 'requote_accepted' }],
    ['a reversal without an id', 'ledger_rows_kind_has_ids', { kind: 'reversal', ...amounts('0', '0', '0') }],
    ['an arrangement that nobody knows', 'ledger_rows_arrangement_known', { arrangement: 'barter' }],
    ['a row billed before its own month', 'ledger_rows_posted_in_own_month_or_later', { month: '2026-08' }],
    ['an invisible character in a quote', 'ledger_rows_ids_form', { quote_id: 'q\u200b1' }],
    ['a letter of another alphabet in an enrollment', 'ledger_rows_ids_form', { enrollment_id: 'e-\u0430' }],
    ['a line end in a requote', 'ledger_rows_ids_form', { kind: 'requote_accepted', requote_id: 'rq\n' }],
    ['129 characters', 'ledger_rows_ids_form', { quote_id: 'q'.repeat(129) }],
    ['an order of 129 characters', 'ledger_rows_order_reference_form', { order_reference: 'x'.repeat(129) }],
    ['an order without a character', 'ledger_rows_order_reference_form', { order_reference: '' }],
    ['an order with a line end', 'ledger_rows_order_reference_form', { order_reference: 'a\n' }],
    ['an order with an invisible character', 'ledger_rows_order_reference_form', { order_reference: 'a\u200bb' }],
    ['cover without its first day', 'ledger_rows_cover', { cover_to: '2026-07-15' }],
    ['cover that ends early', 'ledger_rows_cover', { cover_from: '2026-07-15', cover_to: '2026-07-14' }],
    ['cover that ends after 2099', 'ledger_rows_cover', { cover_from: '2026-07-15', cover_to: '2100-01-01' }],
    ['cover without an end', 'ledger_rows_cover', { cover_from: '2026-07-15', cover_to: 'infinity' }],
    ['cover since ever', 'ledger_rows_cover', { cover_from: '-infinity' }],
    ['a row that is there', 'ledger_rows_known_once', { quote_id: 'kept' }],
    ['a policy that its partner does not sell', 'ledger_rows_policy_known', { policy_id: 'cancellation' }],
    ['a partner that nobody imported', 'ledger_rows_policy_known', { partner_id: 'p-9' }],
    ['an event that nobody recorded', 'ledger_rows_event_known', { event_id: '999' }],
  ];
  for (const [what, constraint, overrides] of refused) {
    test(`${what}: ${constraint}`, async () => {
      await expect(insert(overrides)).rejects.toMatchObject({ constraint });
      expect(await ledger(world)).toHaveLength(1);
    });
  }

  test('nothing that is right: the same row without its fault is recorded', async () => {
    await insert({ quote_id: 'right' });
    expect(await ledger(world, 'right')).toHaveLength(1);
    // No receipt has this row, so no month with it would close.
    await world.sql(`${GUARDS_OFF} DELETE FROM ledger_rows WHERE quote_id = 'right'; ${GUARDS_ON}`);
  });

  test('a row of a month that is closed, or of one before it: ledger_rows_month_open', async () => {
    expect(await world.close('2026-07')).toEqual(['2026-07']);
    for (const month of ['2026-07', '2026-06', '2019-01']) {
      await expect(insert({ quote_id: 'too-late', month, posted_month: month })).rejects.toMatchObject({
        constraint: 'ledger_rows_month_open',
      });
    }
    await insert({ quote_id: 'in-time', posted_month: '2026-08' });
    expect(await ledger(world, 'too-late')).toEqual([]);
  });

  test('a change of a month that is closed', async () => {
    for (const change of ['UPDATE closed_months SET entries = 0', 'DELETE FROM closed_months']) {
      await expect(world.sql(change)).rejects.toMatchObject({ constraint: 'closed_months_append_only' });
    }
    await expect(
      world.sql(
        `INSERT INTO closed_months SELECT '2026-09', '2026-07', issued_on, closed_at, 0, 0, 0, 0 FROM closed_months`,
      ),
    ).rejects.toMatchObject({ constraint: 'closed_months_follow' });
    await expect(
      world.sql(
        `INSERT INTO closed_months SELECT '2026-09', NULL, issued_on, closed_at, 0, 0, 0, 0 FROM closed_months`,
      ),
    ).rejects.toMatchObject({ constraint: 'closed_months_chain' });
  });
});
