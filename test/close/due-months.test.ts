/** Which months a close takes: those that have ended for every active partner, oldest first, none twice. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

/** Pago Pago is the last inhabited place where a day ends: eleven hours after UTC, the whole year. */
const PAGO_PAGO = 'Pacific/Pago_Pago';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(() => startOver(world));

/** Partner p-1 in New York and p-2 in Pago Pago, each with one quote of July. */
async function twoPartners(): Promise<void> {
  await world.partners([partner(), partner({ partner_id: 'p-2', time_zone: PAGO_PAGO })]);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
}

test('a month is due from the instant at which it has ended in the last zone, Pago Pago', async () => {
  await twoPartners();
  world.at('2026-08-01T10:59:59.999Z');
  expect(await world.close()).toEqual([]);
  expect(await world.documents()).toEqual([]);
  world.at('2026-08-01T11:00:00Z');
  expect(await world.close()).toEqual(['2026-07']);
});

test('a month that was asked for too early is refused with the zone and the instant it waits for', async () => {
  await twoPartners();
  world.at('2026-08-01T10:59:59Z');
  expect(await refusalOf(world.close('2026-07'))).toEqual({
    code: 'month_not_ended',
    facts: { month: '2026-07', time_zone: PAGO_PAGO, ends_at: '2026-08-01T00:00:00.000-11:00' },
  });
  expect(await world.documents()).toEqual([]);
  expect(await world.months('2026-07')).toEqual([]);
});

test('the month that runs is refused', async () => {
  await twoPartners();
  world.at('2026-08-15T00:00:00Z');
  await world.close();
  expect(await refusalOf(world.close('2026-08'))).toMatchObject({
    code: 'month_not_ended',
    facts: { month: '2026-08' },
  });
});

test('a partner that is inactive holds no month back', async () => {
  await twoPartners();
  world.at('2026-08-01T05:00:00Z');
  expect(await world.close()).toEqual([]);
  await world.partners([partner({ partner_id: 'p-2', time_zone: PAGO_PAGO, active: false })]);
  expect(await world.close()).toEqual(['2026-07']);
  // It had rows, so it still gets its document.
  expect((await world.documents()).map((document) => document.partner_id)).toEqual(['p-1', 'p-2']);
});

test('where all partners are inactive, all of their zones count', async () => {
  await twoPartners();
  await world.partners([
    partner({ active: false }),
    partner({ partner_id: 'p-2', time_zone: PAGO_PAGO, active: false }),
  ]);
  world.at('2026-08-01T10:59:00Z');
  expect(await world.close()).toEqual([]);
  world.at('2026-08-01T11:00:00Z');
  expect(await world.close()).toEqual(['2026-07']);
});

test('a change of the clocks moves the end of the month: in New York March begins at five, April at four o’clock UTC', async () => {
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-02-10T00:00:00Z' }), quote({ accepted_at: '2026-03-10T00:00:00Z' })]);
  world.at('2026-03-01T04:59:59Z');
  expect(await world.close()).toEqual([]);
  world.at('2026-03-01T05:00:00Z');
  expect(await world.close()).toEqual(['2026-02']);
  world.at('2026-04-01T03:59:59Z');
  expect(await world.close()).toEqual([]);
  world.at('2026-04-01T04:00:00Z');
  expect(await world.close()).toEqual(['2026-03']);
});

test('the last instant of a month is billed in it, the next one in the next month', async () => {
  await world.partners([partner()]);
  world.at('2026-09-02T00:00:00Z');
  await world.rows([
    quote({ accepted_at: '2026-07-31T23:59:59.999999-04:00' }),
    quote({ accepted_at: '2026-08-01T00:00:00-04:00', spotPrice: '20.00', partnerCut: '6.00', invoiceAmount: '14.00' }),
  ]);
  await world.close();
  expect((await world.documents()).map(({ month, spotPrice }) => [month, spotPrice])).toEqual([
    ['2026-07', '10.00'],
    ['2026-08', '20.00'],
  ]);
});

test('several missed months close oldest first, and each is dated today', async () => {
  await world.partners([partner()]);
  await world.rows(['2026-05-10', '2026-06-10', '2026-07-10'].map((day) => quote({ accepted_at: `${day}T12:00:00Z` })));
  expect(await world.close()).toEqual(['2026-05', '2026-06', '2026-07']);
  expect((await world.documents()).map(({ number, month, issued_on }) => [number, month, issued_on])).toEqual([
    ['INV-2026-000001', '2026-05', '2026-08-01'],
    ['INV-2026-000002', '2026-06', '2026-08-01'],
    ['INV-2026-000003', '2026-07', '2026-08-01'],
  ]);
});

test('a month without rows closes too, and is reported', async () => {
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' })]);
  expect(await world.close()).toEqual(['2026-06', '2026-07']);
  expect(await world.months('2026-07')).toEqual([
    {
      month: '2026-07',
      invoices: 0,
      credit_notes: 0,
      statements: 0,
      entries: 0,
      late_entries: 0,
      partners_without_activity: 1,
      totals: [],
      deliveries: { sent: 0, pending: 0, held: 0, failed: 0, uncertain: 0 },
    },
  ]);
});

test('earlier months without rows close along with the month that is asked for', async () => {
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-03-10T12:00:00Z' })]);
  await world.close('2026-03');
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' })]);
  expect(await world.close('2026-06')).toEqual(['2026-04', '2026-05', '2026-06']);
});

test('an earlier month with rows refuses the month that is asked for, and nothing closes', async () => {
  await world.partners([partner()]);
  await world.rows([
    quote({ accepted_at: '2026-04-10T12:00:00Z' }),
    quote({ accepted_at: '2026-06-10T12:00:00Z' }),
    quote({ accepted_at: '2026-06-11T12:00:00Z' }),
    quote({ accepted_at: '2026-07-10T12:00:00Z' }),
  ]);
  await world.close('2026-04');
  expect(await refusalOf(world.close('2026-07'))).toEqual({
    code: 'earlier_month_open',
    facts: { month: '2026-07', open: '2026-06', entries: 2 },
  });
  expect(await world.months('2026-05', '2026-06', '2026-07')).toEqual([]);
});

test('if nothing is due, nothing happens', async () => {
  await world.partners([partner()]);
  expect(await world.close()).toEqual([]);
  await world.rows([quote({ accepted_at: '2026-08-01T09:00:00Z' })]);
  expect(await world.close()).toEqual([]);
});

test('closing again changes nothing, whether the month is named or not', async () => {
  await twoPartners();
  world.at('2026-08-02T00:00:00Z');
  await world.close();
  const before = await world.documents();
  world.at('2026-08-03T00:00:00Z');
  expect(await world.close()).toEqual([]);
  expect(await world.close('2026-07')).toEqual([]);
  expect(await world.documents()).toEqual(before);
});

test('a row that comes after its month closed is billed with the next one, under its own month', async () => {
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close('2026-07');
  expect(await world.rows([quote({ accepted_at: '2026-07-31T23:00:00Z' })])).toMatchObject({ accepted: 1, late: 1 });
  world.at('2026-09-01T10:00:00Z');
  await world.close();
  const [late] = await world.documents({ months: ['2026-08' as never] });
  expect(late).toMatchObject({ month: '2026-08', enrollments: 1, lines: [{ month: '2026-07', count: 1 }] });
  expect(await world.months('2026-08')).toMatchObject([{ entries: 1, late_entries: 1, partners_without_activity: 0 }]);
});
