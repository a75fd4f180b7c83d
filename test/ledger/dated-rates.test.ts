/** Rates of the cut from days on: each row is judged by the rate of the day of its own acceptance. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readDifferingCuts } from '../../src/ledger/quoted.sql.ts';
import { cutRateOn, cutRateText } from '../../src/partners/cut-rate.ts';
import { readPartners } from '../../src/partners/partners.sql.ts';
import { readStatus } from '../../src/reports/status.ts';
import { type Caller, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, requote, type World } from '../support/world.ts';
import { told } from './ledger.ts';

const ID = 'ticket-protection';
const policy = (partner_cut_rate: unknown) => ({
  ...{ policy_id: ID, name: 'Ticket Protection', kind: 'insurance', partner_cut_rate },
  price: { rate: '0.1', minimum: '2.00' },
});
const sells = (rate: unknown, overrides = {}) => partner({ policies: [policy(rate)], ...overrides });
const FROM_TENTH = [{ from: '2026-08-10', rate: '0.25' }];
const at = (accepted_at: string, partnerCut: '3.00' | '2.50', overrides = {}) =>
  quote({ accepted_at, partnerCut, invoiceAmount: partnerCut === '3.00' ? '7.00' : '7.50', ...overrides });

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await world.end();
});

const rateOf = async (partnerId = 'p-1') => {
  const [found] = await world.database.reading((tx) => readPartners(tx, partnerId));
  return found?.policies[0]?.partner_cut_rate;
};
async function cuts(rows: readonly Record<string, unknown>[]): Promise<string[]> {
  const report = await world.rows(rows);
  expect(told(report)).toEqual([]);
  return report.differing_cuts.map(
    ({ partner_id, partner_cut_rate, rows: count, by_rate }) => `${partner_id} ${partner_cut_rate} ${count} ${by_rate}`,
  );
}

test('after 0.30 became 0.25 on 10 August, a late row of July with 0.30 is right, and one of 11 August is named', async () => {
  await world.partners([sells('0.30')]);
  world.at('2026-08-05T12:00:00Z');
  expect(await cuts([at('2026-07-10T12:00:00Z', '3.00')])).toEqual([]);
  await world.close('2026-07');
  await world.partners([sells(FROM_TENTH)]);
  world.at('2026-08-20T12:00:00Z');
  expect(await cuts([at('2026-07-30T12:00:00Z', '3.00')])).toEqual([]);
  expect(await cuts([at('2026-08-11T12:00:00Z', '3.00')])).toEqual(['p-1 0.25 1 2.50']);
  expect(await cuts([at('2026-08-11T12:00:00Z', '2.50')])).toEqual([]);
  expect(await cuts([at('2026-07-30T12:00:00Z', '2.50')])).toEqual(['p-1 0.30 1 3.00']);
  const listed = (await world.database.reading((tx) => readStatus(tx, world))).differing_cuts;
  expect(listed.map((each) => `${each.partner_cut_rate} ${each.rows}`)).toEqual(['0.25 1', '0.30 1']);
  const months = { after: '2026-07', to: '2026-08' };
  expect(await world.database.reading((tx) => readDifferingCuts(tx, months))).toEqual(listed);
});

test('the day is that of the partner’s time zone, and a requote has its own day', async () => {
  await world.partners([sells('0.30', { partner_id: 'p-2' })]);
  await world.partners([sells(FROM_TENTH, { partner_id: 'p-2' })]);
  const of = { partner_id: 'p-2' };
  const before = at('2026-08-10T03:59:59.999999Z', '3.00', of);
  expect(await cuts([before, at('2026-08-10T04:00:00Z', '2.50', of)])).toEqual([]);
  const amounts = { spotPrice: '10.00', partnerCut: '2.50', invoiceAmount: '7.50' };
  expect(await cuts([requote(before, { ...amounts, accepted_at: '2026-08-12T12:00:00Z' })])).toEqual([]);
  expect(await cuts([requote(before, { ...amounts, accepted_at: '2026-08-09T12:00:00Z' })])).toEqual([
    'p-2 0.30 1 3.00',
  ]);
});

test('a change by value applies to all days, as before', async () => {
  const of = { partner_id: 'p-3' };
  await world.partners([sells('0.30', of)]);
  await world.partners([sells('0.25', of)]);
  expect(await cuts([at('2026-07-30T12:00:00Z', '3.00', of)])).toEqual(['p-3 0.25 1 2.50']);
  await world.partners([sells(FROM_TENTH, of)]);
  await world.partners([sells('0.30', of)]);
  expect(await rateOf('p-3')).toBe('0.30');
});

describe('a file with days', () => {
  const of = { partner_id: 'p-4' };
  const steps: readonly [sentence: string, given: unknown, kept: unknown][] = [
    ['of a new policy has its first rate before the first day too', FROM_TENTH, [{ rate: '0.25' }, ...FROM_TENTH]],
    ['changes nothing when it comes again', FROM_TENTH, [{ rate: '0.25' }, ...FROM_TENTH]],
    [
      'replaces all rates if it begins with a rate without a day',
      [{ rate: '0.30' }, ...FROM_TENTH],
      [{ rate: '0.30' }, ...FROM_TENTH],
    ],
    [
      'keeps the rates of the days before its first day',
      [{ from: '2026-09-01', rate: '0.20' }],
      [{ rate: '0.30' }, ...FROM_TENTH, { from: '2026-09-01', rate: '0.20' }],
    ],
    [
      'replaces the rates from its first day on',
      [{ from: '2026-08-10', rate: '0.24' }],
      [{ rate: '0.30' }, { from: '2026-08-10', rate: '0.24' }],
    ],
  ];
  test.each(steps)('%s', async (_, given, kept) => {
    await world.partners([sells(given, of)]);
    expect(await rateOf('p-4')).toEqual(kept);
    const changes = () => world.sql(`SELECT 1 FROM audit_events WHERE action LIKE 'partner.%' AND subject = 'p-4'`);
    const before = (await changes()).length;
    await world.partners([sells(kept, of)]);
    expect(await rateOf('p-4')).toEqual(kept);
    expect(await changes()).toHaveLength(before);
  });

  test('shows each change in the history of its partner', async () => {
    const changed = await world.sql<{ new: string }>(
      `SELECT c->>'new' AS new FROM audit_events, jsonb_array_elements(details->'changes') AS c
       WHERE subject = 'p-4' AND c->>'field' = 'policies.${ID}.partner_cut_rate' ORDER BY event_id`,
    );
    expect(changed.map((each) => each.new)).toEqual([
      '0.25, 0.25 from 2026-08-10',
      '0.30, 0.25 from 2026-08-10',
      '0.30, 0.25 from 2026-08-10, 0.20 from 2026-09-01',
      '0.30, 0.24 from 2026-08-10',
    ]);
  });
});

describe('the API', () => {
  let served: Served;
  let caller: Caller;
  beforeAll(async () => {
    served = await serveWorld(world);
    caller = await served.caller('p-1');
  });
  afterAll(() => served.end());
  const asked = async () =>
    (await caller.post('/api/v1/quote', { policy_id: ID, insured_amount: '100' })).body as Record<string, unknown>;

  test.each([
    ['2026-08-10T03:59:59Z', 3, '0.30'],
    ['2026-08-10T04:00:00Z', 2.5, '0.25'],
  ])('quotes at %s by the rate of the day, and names it', async (now, partnerCut, rate) => {
    world.at(now);
    expect(await asked()).toMatchObject({ spotPrice: 10, partnerCut });
    expect((await caller.get('/api/v1/policies')).body).toMatchObject([{ policy_id: ID, partner_cut_rate: rate }]);
  });

  test('a requote keeps the rate of its quote, and neither is named', async () => {
    world.at('2026-08-10T03:00:00Z');
    const { quote_id: id } = await asked();
    await caller.get(`/api/v1/quote/${id}/accept`);
    world.at('2026-08-11T12:00:00Z');
    const { body } = await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '200' });
    expect(body).toMatchObject({ incrementalPartnerCut: 3 });
    await caller.get(`/api/v1/requote/${body['requote_id']}/accept`);
    const { differing_cuts } = await world.database.reading((tx) => readStatus(tx, world));
    expect(differing_cuts.filter(({ partner_id }) => partner_id === 'p-1').map(({ rows }) => rows)).toEqual([1, 1]);
  });
});

test.each([
  ['not a list', '{}'],
  ['a day twice', '[{"from":"2026-08-10","rate":"0.1"},{"from":"2026-08-10","rate":"0.2"}]'],
  ['days out of order', '[{"from":"2026-08-10","rate":"0.1"},{"from":"2026-08-09","rate":"0.2"}]'],
  ['a rate above 1', '[{"from":"2026-08-10","rate":"1.1"}]'],
  ['no day', '[{"rate":"0.1"}]'],
  ['no rate', '[{"from":"2026-08-10"}]'],
])('the database refuses %s', async (_, rates) => {
  const change = world.sql('UPDATE policies SET dated_cut_rates = $1::jsonb', [rates]);
  await expect(change).rejects.toMatchObject({ constraint: 'dated_cut_rates_form' });
});

test('a rate is that of the last day that has come', () => {
  const rates = [{ rate: '0.30' }, ...FROM_TENTH, { from: '2026-09-01', rate: '0.20' }];
  const on = (day: string) => cutRateOn(rates, day);
  expect(['2026-08-09', '2026-08-10', '2026-08-31', '2026-09-01'].map(on)).toEqual(['0.30', '0.25', '0.25', '0.20']);
  expect([cutRateOn('0.30', '2026-08-10'), cutRateOn(FROM_TENTH, '2026-01-01')]).toEqual(['0.30', '0.25']);
  expect(cutRateText(rates)).toBe('0.30, 0.25 from 2026-08-10, 0.20 from 2026-09-01');
});
