/** The list of ledger rows: each filter, paging, scope, rows of archived months, and what may be ticked. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sheetOf } from '../../src/lists/list.ts';
import { rows } from '../../src/lists/rows.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

const POLICIES = ['ticket-protection', 'parking'].map((policy_id) => ({
  ...{ policy_id, name: policy_id, kind: 'insurance', partner_cut_rate: '0.30' },
}));

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-20T12:00:00Z');
  await world.partners([partner({ policies: POLICIES }), partner({ partner_id: 'p-2' })]);
  const first = quote({ quote_id: 'q-a', enrollment_id: 'ENR-100', order_reference: 'ORD 1' });
  await world.rows([
    first,
    requote(first, { requote_id: 'rq-a' }),
    quote({ quote_id: 'q-b', enrollment_id: 'ENR-101', order_reference: 'ORD 12', policy_id: 'parking' }),
    quote({ quote_id: 'q-c', partner_id: 'p-2', accepted_at: '2026-07-31T23:30:00Z' }),
  ]);
  await world.close('2026-07');
  await world.rows([
    quote({ quote_id: 'q-d', accepted_at: '2026-08-03T12:00:00Z' }),
    quote({ quote_id: 'q-late', accepted_at: '2026-07-30T12:00:00Z' }),
    reversal(first, { reversal_id: 'rv-a', requote_id: null, accepted_at: '2026-08-04T12:00:00Z' }),
  ]);
});
afterAll(() => world.end());

type Asked = Parameters<typeof rows.read>[1];
const read = (filter: Asked['filter'] = {}, more: Partial<Asked> = {}) =>
  world.database.reading((tx) =>
    rows.read(tx, {
      ...{
        filter,
        scope: null,
        period: null,
        today: '2026-08-20',
        sort: 'entry_id',
        after: null,
        limit: null,
        context: world,
      },
      ...more,
    }),
  );
const ids = async (filter: Asked['filter'], more?: Partial<Asked>) =>
  (await read(filter, more)).map(({ own_id }) => own_id);

describe('rows are found', () => {
  test.each<[string, Asked['filter'], string[]]>([
    ['without a filter in the latest month', {}, ['q-d', 'q-late', 'rv-a']],
    ['by month', { month: '2026-07' as never }, ['q-a', 'rq-a', 'q-b', 'q-c']],
    ['by partner, in the latest month', { partner: 'p-2' }, []],
    ['by partner and month', { partner: 'p-2', month: '2026-07' as never }, ['q-c']],
    ['by document', { document: 'inv-2026-000001' }, ['q-a', 'rq-a', 'q-b']],
    ['of no document', { document: 'INV-2026-000009' }, []],
    ['by policy', { policy: 'parking', month: '2026-07' as never }, ['q-b']],
    ['by kind', { kind: 'reversal' }, ['rv-a']],
    ['that are late', { late: true }, ['q-late']],
    ['by quote, in every month', { quote: 'q-a' }, ['q-a', 'rq-a', 'rv-a']],
    ['by the beginning of an enrollment', { enrollment: 'ENR-10' }, ['q-a', 'rq-a', 'q-b', 'rv-a']],
    ['by a whole enrollment', { enrollment: 'ENR-101' }, ['q-b']],
    ['by the beginning of an order', { order: 'ORD 1' }, ['q-a', 'rq-a', 'q-b', 'rv-a']],
    ['by day, in every month', { from: '2026-07-30', to: '2026-08-03' }, ['q-d', 'q-late', 'q-c']],
  ])('%s', async (_, filter, found) => {
    expect((await ids(filter)).sort()).toEqual(found.sort());
  });

  test('by the beginning of a text that is a pattern elsewhere, as it is written', async () => {
    expect(await ids({ enrollment: 'ENR%' })).toEqual([]);
  });

  test('a row has its document, and says whether it is late', async () => {
    const [billed] = await read({ quote: 'q-c' });
    expect(billed).toMatchObject({ document: 'INV-2026-000002', accepted_on: '2026-07-31', posted_month: '2026-07' });
    const [open] = await read({ quote: 'q-late' });
    expect(open).toMatchObject({ document: null, month: '2026-07', posted_month: '2026-08' });
    expect(sheetOf(rows, [open as never], '2026-08-20').rows[0]).toMatchObject({ late: 'yes', spot_price: '10.00' });
  });

  test('rows that wait for a decision are listed instead of recorded ones', async () => {
    await world.rows([quote({ quote_id: 'q-d2', enrollment_id: 'x', accepted_at: '2026-08-03T12:00:00Z' })]);
    await world.rows([quote({ quote_id: 'q-d3', enrollment_id: 'x', accepted_at: '2026-08-03T12:00:00Z' })], {
      holds: true,
    });
    expect(await ids({ held: true })).toEqual(['q-d3']);
    expect(await ids({ held: true, month: '2026-07' as never })).toEqual([]);
    expect((await read({ held: true }))[0]).toMatchObject({ posted_month: null, document: null, month: '2026-08' });
  });
});

test('pages follow each other in both orders, through partners and months, without a gap', async () => {
  for (const sort of ['entry_id', '-entry_id'] as const) {
    const filter = { from: '2026-01-01' };
    const all = await read(filter, { sort });
    expect(all.length).toBeGreaterThan(7);
    for (const [index, row] of all.entries()) {
      const after = rows.key?.(row) ?? null;
      const next = await read(filter, { sort, after, limit: 3 });
      expect(next, `${sort} after ${after}`).toEqual(all.slice(index + 1, index + 4));
    }
  }
});

test('a user of one partner sees its rows alone, whatever is asked for', async () => {
  const scope = ['p-2'];
  expect(await ids({}, { scope })).toEqual(['q-c']);
  for (const filter of [{ quote: 'q-a' }, { document: 'INV-2026-000001' }, { partner: 'p-1' }, { enrollment: 'E' }]) {
    expect([filter, await ids(filter, { scope })]).toEqual([filter, []]);
  }
});
