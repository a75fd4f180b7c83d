/** Sales recognized over their cover: what each month earns, as a person would compute it, and what stays unearned. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { reportText } from '../../src/lists/report.ts';
import { unearned as unearnedReport } from '../../src/lists/reports.ts';
import { readTrialBalance } from '../../src/reports/trial-balance.ts';
import { readUnearned } from '../../src/reports/unearned.ts';
import { csvOf } from '../../src/sheet.ts';
import { expectVerified, refund, sale } from '../documents/correcting.ts';
import { openWorld, partner, requote, type World } from '../support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
  world.settings = { ...world.settings, recognition: 'over_cover' };
  await world.partners([partner()]);
});
afterEach(() => world.end());

const unearned = (asOf: string) => world.database.reading((tx) => readUnearned(tx, asOf));
const total = async (asOf: string): Promise<string | undefined> => {
  const { totals, ties } = await unearned(asOf);
  expect(ties).toBe(true);
  return totals['USD'];
};
const income = async (asOf: string): Promise<string> => {
  const { accounts } = await world.database.reading((tx) =>
    readTrialBalance(tx, { asOf, today: '2028-01-01', detail: false }),
  );
  return accounts.find(({ account }) => account === 'income:sales')?.credit ?? '0.00';
};

/** July 2026 to June 2027, 365 days, of which August has 31 and the rest of the year 153. */
const YEAR = { cover_from: '2026-07-01', cover_to: '2027-06-30' };

const PARKING = { policy_id: 'parking', name: 'Parking', kind: 'non_insurance', partner_cut_rate: '0' };

/** A reversal of this amount, without its own cover. */
const taken = (amount: string) => ({
  ...{ spotPrice: `-${amount}`, invoiceAmount: `-${amount}`, cover_from: undefined, cover_to: undefined },
});

test('a year of cover is earned month by month, by days, and the last month takes the rest', async () => {
  await world.rows([sale('2026-07', '100', YEAR), sale('2026-07', '7')]);
  await world.close();
  // 100.00 × 31/365 = 8.493; the sale without cover is earned at once.
  expect(await income('2026-07-30')).toBe('107.00');
  expect(await income('2026-07-31')).toBe('15.49');
  expect(await total('2026-07-31')).toBe('91.51');
  // 62/365 = 16.986, so August earns 16.99 - 8.49.
  expect(await income('2026-08-31')).toBe('23.99');
  expect(await total('2026-08-31')).toBe('83.01');
  expect(await total('2027-05-31')).toBe('8.22');
  expect(await total('2027-06-30')).toBeUndefined();
  expect(await income('2027-06-30')).toBe('107.00');
  expect((await unearned('2026-07-31')).lines).toEqual([
    {
      ...{ partner_id: 'p-1', name: expect.any(String), policy_id: 'ticket-protection', currency: 'USD' },
      ...{ unearned: '91.51', within_a_year: '91.51', earned_by: '2027-06' },
    },
  ]);
  expect(reportText(unearnedReport, await unearned('2026-07-31'))).toContain('Ties to the journal.');
  await expectVerified(world);
});

test('of the largest amount, a month earns what is rounded once', async () => {
  await world.rows([sale('2026-07', '900000000000001.57', YEAR)]);
  await world.close();
  expect(await income('2026-07-31')).toBe('76438356164383.69');
  await expectVerified(world);
});

test('a reversal takes back each half of a cent that its sale earned', async () => {
  // Two days of 0.01: each sum of half a cent is rounded away from zero, of the sale and of its reversal.
  const days = { cover_from: '2026-07-31', cover_to: '2026-08-01' };
  const sold = sale('2026-07', '0.01', days);
  await world.rows([
    sold,
    sale('2026-07', '0.03', days),
    { ...refund(sold, '2026-07'), accepted_at: '2026-07-20T12:00:00Z' },
  ]);
  await world.close();
  expect(await world.sql('SELECT amount::text FROM revenue_schedules ORDER BY release_month')).toEqual([
    { amount: '0.02' },
    { amount: '0.01' },
  ]);
});

test('as of the end of February, the February of the next leap year is within a year', async () => {
  world.at('2027-02-01T10:00:00Z');
  await world.rows([sale('2027-01', '397', { cover_from: '2027-02-01', cover_to: '2028-03-03' })]);
  await world.close();
  const within = async (asOf: string) => (await unearned(asOf)).lines[0]?.within_a_year;
  expect(await within('2027-02-28')).toBe('366.00');
  expect(await within('2027-02-27')).toBe('365.00');
});

test('as of the end of February in a leap year, the February after it is within a year', async () => {
  world.at('2026-11-01T10:00:00Z');
  await world.rows([sale('2026-10', '913', { cover_from: '2026-10-01', cover_to: '2029-03-31' })]);
  await world.close();
  const within = async (asOf: string) => (await unearned(asOf)).lines[0]?.within_a_year;
  // 1.00 a day: February 2028 to January 2029, or March 2028 to February 2029.
  expect(await within('2028-02-27')).toBe('366.00');
  expect(await within('2028-02-28')).toBe('394.00');
  expect(await within('2028-02-29')).toBe('365.00');
});

test('the report totals what is earned within a year, and lists a policy whose parts are zero together', async () => {
  const later = { cover_from: '2028-01-01', cover_to: '2028-01-31' };
  const sold = sale('2026-07', '100', { cover_from: '2026-12-01', cover_to: '2026-12-31' });
  await world.rows([
    sold,
    { ...refund(sold, '2026-07'), ...taken('100'), ...later, accepted_at: '2026-07-20T12:00:00Z' },
  ]);
  await world.close();
  const found = await unearned('2026-07-31');
  expect(found).toMatchObject({
    ...{ totals: { USD: '0.00' }, totals_within_a_year: { USD: '100.00' }, ties: true },
    lines: [{ unearned: '0.00', within_a_year: '100.00' }],
  });
  const { sheet } = unearnedReport;
  expect(csvOf(sheet(found))).toContain('Total,,USD,0.00,100.00,');
  expect(reportText(unearnedReport, found)).toMatch(/Total +0\.00 USD +100\.00 USD/);
});

test('a late sale earns its past months in the month that bills it', async () => {
  await world.rows([sale('2026-07', '7')]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([sale('2026-07', '100', YEAR)]);
  await world.close();
  expect(await income('2026-08-31')).toBe('23.99');
  expect(await total('2026-08-31')).toBe('83.01');
  await expectVerified(world);
});

test.each([
  ['states no cover', { cover_from: undefined, cover_to: undefined }],
  ['states that of its sale', {}],
])('a reversal that %s takes back the months of its sale, the past ones at once', async (_what, cover) => {
  const sold = sale('2026-07', '100', YEAR);
  await world.rows([sold]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([{ ...refund(sold, '2026-08'), ...cover }]);
  await world.close();
  expect(await total('2026-07-31')).toBe('91.51');
  expect(await total('2026-08-31')).toBeUndefined();
  expect(await income('2026-08-31')).toBe('0.00');
  expect(await income('2027-06-30')).toBe('0.00');
  await expectVerified(world);
});

test('a pro rata reversal takes back the days after it, and leaves what was earned until then', async () => {
  const terms = { cancellation: { window_days: 0, after_window: 'pro_rata' } };
  const policy = { policy_id: 'parking', name: 'Parking', kind: 'non_insurance', partner_cut_rate: '0' };
  await world.partners([partner({ policies: [{ ...policy, ...terms }] })]);
  const sold = sale('2026-07', '365', { ...YEAR, policy_id: 'parking' });
  await world.rows([sold]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  // After 10 August, 324 of the 365 days are left.
  const back = { spotPrice: '-324', invoiceAmount: '-324', cover_from: undefined, cover_to: undefined };
  await world.rows([{ ...refund(sold, '2026-08'), ...back }]);
  expect(await world.sql('SELECT ground FROM reversal_grounds')).toEqual([{ ground: 'pro_rata' }]);
  await world.close();
  expect(await total('2026-08-31')).toBeUndefined();
  expect(await income('2026-08-31')).toBe('41.00');
  await expectVerified(world);
});

test('a reversal of what a pro rata reversal left takes back the rest at once', async () => {
  const sold = sale('2026-07', '365', YEAR);
  await world.partners([
    partner({ policies: [{ ...PARKING, cancellation: { window_days: 0, after_window: 'pro_rata' } }] }),
  ]);
  await world.rows([{ ...sold, policy_id: 'parking' }]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([{ ...refund({ ...sold, policy_id: 'parking' }, '2026-08'), ...taken('324') }]);
  await world.close();
  expect(await income('2026-08-31')).toBe('41.00');
  world.at('2026-10-01T10:00:00Z');
  await world.rows([{ ...refund({ ...sold, policy_id: 'parking' }, '2026-09'), ...taken('41') }]);
  await world.close();
  expect(await total('2026-09-30')).toBeUndefined();
  expect(await income('2026-09-30')).toBe('0.00');
  expect(await income('2027-06-30')).toBe('0.00');
  await expectVerified(world);
});

test.each([
  ['in a later month', '2026-08'],
  ['in the month of its sale', '2026-07'],
])('a full reversal takes back a requote with cover of its own too, %s', async (_when, month) => {
  const sold = sale('2026-07', '365', YEAR);
  const more = requote(sold, {
    ...{ accepted_at: '2026-07-12T12:00:00Z', spotPrice: '184', partnerCut: '0', invoiceAmount: '184' },
    ...{ cover_from: '2027-01-01', cover_to: '2027-06-30' },
  });
  await world.rows([sold, more]);
  if (month === '2026-08') {
    await world.close();
    world.at('2026-09-01T10:00:00Z');
  }
  await world.rows([{ ...refund(sold, month), accepted_at: `${month}-20T12:00:00Z`, ...taken('549') }]);
  await world.close();
  expect(await total(`${month}-31`)).toBeUndefined();
  expect(await income(`${month}-31`)).toBe('0.00');
  expect(await income('2027-06-30')).toBe('0.00');
  await expectVerified(world);
});

/** A year of 365.00 and more cover of 184.00, 1.00 a day each, closed with July. */
async function soldWithMore(): Promise<{ sold: ReturnType<typeof sale>; more: ReturnType<typeof requote> }> {
  const sold = sale('2026-07', '365', YEAR);
  const more = requote(sold, {
    ...{ accepted_at: '2026-07-12T12:00:00Z', spotPrice: '184', partnerCut: '0', invoiceAmount: '184' },
    ...{ cover_from: '2026-08-01', cover_to: '2027-01-31' },
  });
  await world.rows([sold, more]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  return { sold, more };
}

test.each([
  ['that names a requote lowers the parts of the requote', true, '379.50', '150.00'],
  // 457/549 of 456.00 and of 150.00 are left: of all that was sold, what the reversal leaves.
  ['that names no requote lowers the parts of the quote and of the requote', false, '379.58', '124.86'],
])('a partial reversal %s', async (_what, isNamed, afterAugust, afterJanuary) => {
  const { sold, more } = await soldWithMore();
  expect(await total('2026-08-31')).toBe('456.00');
  const named = isNamed && { requote_id: more['requote_id'] };
  await world.rows([{ ...refund(sold, '2026-08'), ...taken('92'), ...named }]);
  await world.close();
  expect(await total('2026-08-31')).toBe(afterAugust);
  expect(await total('2027-01-31')).toBe(afterJanuary);
  expect(await total('2027-06-30')).toBeUndefined();
  await expectVerified(world);
});

test('reversals of a sale and of its requote, in several months, leave nothing of a sale that is taken back', async () => {
  const { sold, more } = await soldWithMore();
  const back = (month: string, id: string, amount: string, named = false) => ({
    ...{ ...refund(sold, month), reversal_id: id, ...taken(amount) },
    ...(named ? { requote_id: more['requote_id'] } : {}),
  });
  await world.rows([back('2026-08', 'r-1', '183', false), back('2026-08', 'r-2', '61.33', true)]);
  await world.close();
  // Two thirds are left of 303.00 and of 153.00, less half of the 122.67 of the requote: 153/184 of 61.33 are 51.00.
  expect(await total('2026-08-31')).toBe('253.00');
  world.at('2026-10-01T10:00:00Z');
  // The requote has 61.34 left, so the reversal lowers the whole sale of 304.67 to 204.67: of 182.00 and 41.00.
  await world.rows([back('2026-09', 'r-3', '100', true)]);
  await world.close();
  expect((await unearned('2026-09-30')).lines).toMatchObject([{ unearned: '149.81' }]);
  world.at('2026-11-01T10:00:00Z');
  await world.rows([back('2026-10', 'r-4', '204.67')]);
  await world.close();
  expect(await total('2026-10-31')).toBeUndefined();
  expect(await income('2026-10-31')).toBe('0.00');
  expect(await income('2027-06-30')).toBe('0.00');
  await expectVerified(world);
});

test('a reversal of most of a short requote never takes back more than is unearned', async () => {
  world.at('2027-02-01T10:00:00Z');
  const sold = sale('2027-01', '10', { cover_from: '2027-01-01', cover_to: '2027-12-31' });
  const more = requote(sold, {
    ...{ accepted_at: '2027-01-12T12:00:00Z', spotPrice: '1000', partnerCut: '0', invoiceAmount: '1000' },
    ...{ cover_from: '2027-01-01', cover_to: '2027-02-28' },
  });
  await world.rows([sold, more, { ...refund(sold, '2027-01'), accepted_at: '2027-01-20T12:00:00Z', ...taken('900') }]);
  await world.close();
  // (9.15 + 474.58) × 110/1010, and then 306/365 of 10.00 × 110/1010.
  expect(await total('2027-01-31')).toBe('52.68');
  expect(await total('2027-02-28')).toBe('0.91');
  await expectVerified(world);
});

test('without the setting a covered sale is income at once, and the first close fixes it', async () => {
  world.settings = { ...world.settings, recognition: 'at_sale' };
  await world.rows([sale('2026-07', '100', YEAR)]);
  await world.close();
  expect(await world.sql('SELECT * FROM revenue_schedules')).toEqual([]);
  expect(await income('2026-07-31')).toBe('100.00');
  world.at('2026-09-01T10:00:00Z');
  await world.rows([sale('2026-08', '50')]);
  world.settings = { ...world.settings, recognition: 'over_cover' };
  await expect(world.close()).rejects.toThrow(/closed with at_sale.*Set "recognition" to "at_sale"/);
  world.settings = { ...world.settings, recognition: 'at_sale' };
  await world.close();
  expect(await income('2026-08-31')).toBe('150.00');
  await expectVerified(world);
});

test('sales over cover stay so after the first close', async () => {
  world.settings = { ...world.settings, recognition: 'at_sale' };
  await world.rows([sale('2026-07', '100', YEAR)]);
  world.settings = { ...world.settings, recognition: 'over_cover' };
  await world.close();
  expect(await total('2026-07-31')).toBe('91.51');
  world.at('2026-09-01T10:00:00Z');
  world.settings = { ...world.settings, recognition: 'at_sale' };
  await expect(world.close()).rejects.toThrow(/closed with over_cover/);
});

test('ten lines of SQL over the rows come to the same sums', async () => {
  const covers = [
    YEAR,
    { cover_from: '2026-05-17', cover_to: '2026-05-17' },
    { cover_from: '2026-07-31', cover_to: '2028-02-29' },
  ];
  await world.rows(
    Array.from({ length: 60 }, (_, index) => sale('2026-07', `${index}.${10 + index}`, { ...covers[index % 3] })),
  );
  await world.close();
  expect(
    await world.sql(`
      WITH days AS (
        SELECT e.entry_id, e.invoice_amount AS amount, d::date, row_number() OVER (PARTITION BY e.entry_id ORDER BY d) AS nth,
               e.cover_to - e.cover_from + 1 AS days
        FROM ledger_rows e CROSS JOIN generate_series(e.cover_from, e.cover_to, interval '1 day') AS d
      ), earned AS (
        SELECT entry_id, to_char(d, 'YYYY-MM') AS month, round(amount * max(nth) / max(days), 2) AS up_to
        FROM days GROUP BY entry_id, amount, 2
      ), parts AS (
        SELECT month, up_to - coalesce(lag(up_to) OVER (PARTITION BY entry_id ORDER BY month), 0) AS part FROM earned)
      SELECT month FROM (SELECT greatest(month, '2026-07') AS month, sum(part) AS part FROM parts GROUP BY 1) AS p
      FULL JOIN (SELECT release_month::text AS month, sum(amount) AS amount FROM revenue_schedules GROUP BY 1) AS s USING (month)
      WHERE part IS DISTINCT FROM amount`),
  ).toEqual([]);
  expect(await world.sql('SELECT count(DISTINCT release_month)::int AS months FROM revenue_schedules')).toEqual([
    { months: 20 },
  ]);
});
