/** Why a partner's amount changed from one month to the next, in the preview of a close, its report and the console. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { previewClose } from '../../src/close/run.ts';
import type { Month } from '../../src/month.ts';
import type { PartnerChange } from '../../src/reports/close.sql.ts';
import { type CloseReport, readCloseReport, readPartnerChanges } from '../../src/reports/close.ts';
import { describeClose, whyChanged } from '../../src/reports/close-text.ts';
import { closeSheet } from '../../src/reports/sheets.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

const POLICIES = ['Tickets', 'Parking', 'Hotel'].map((name) => ({
  ...{ policy_id: name.toLowerCase(), name, kind: 'insurance', partner_cut_rate: '0.30' },
}));
const sale = (policy: string, day: string, spot: string, cut: string, share: string, more = {}) =>
  quote({
    ...{ policy_id: policy, accepted_at: `${day}T12:00:00Z`, spotPrice: spot, partnerCut: cut, invoiceAmount: share },
    ...more,
  });

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-09-02T12:00:00Z');
  const names = ['p-1', 'p-2', 'p-3', 'p-4'];
  await world.partners(
    names.map((partner_id) => partner({ partner_id, name: `Partner ${partner_id}`, policies: POLICIES })),
  );
  const july = sale('tickets', '2026-07-05', '10.00', '3.00', '7.00');
  await world.rows([
    july,
    sale('tickets', '2026-07-06', '11.00', '3.30', '7.70'),
    sale('hotel', '2026-07-07', '12.01', '3.60', '8.41'),
    sale('tickets', '2026-07-05', '10.00', '3.00', '7.00', { partner_id: 'p-2' }),
    sale('tickets', '2026-07-05', '10.00', '3.00', '7.00', { partner_id: 'p-3' }),
  ]);
  await world.close('2026-07');
  await world.rows([
    sale('tickets', '2026-08-05', '40.00', '12.00', '28.00'),
    sale('parking', '2026-08-06', '45.00', '13.50', '31.50'),
    sale('parking', '2026-08-07', '45.00', '13.50', '31.50'),
    reversal(july, { reversal_id: 'back', accepted_at: '2026-08-08T12:00:00Z' }),
    sale('tickets', '2026-08-05', '10.00', '3.00', '7.00', { partner_id: 'p-3' }),
    sale('tickets', '2026-08-05', '10.00', '3.00', '7.00', { partner_id: 'p-4' }),
  ]);
});
afterAll(() => world.end());

const reasons = (changes: readonly PartnerChange[]) =>
  Object.fromEntries(changes.map((row) => [row.partner_id, whyChanged(row)]));
const EXPECTED = {
  'p-1':
    '3 → 4 rows, 0 → 1 reversal among them, average price 11.00 → 43.33 USD, policy Parking is new, policy Hotel has no rows',
  'p-2': '1 → 0 rows',
  'p-3': '',
  'p-4': '0 → 1 row',
};

test('a preview says how rows, average price and policies moved, before anything is issued', async () => {
  const { seen } = await previewClose(world.database, world, { month: '2026-08' as Month }, (tx) =>
    readPartnerChanges(tx, { month: '2026-08' as Month, previous: '2026-07' as Month }),
  );
  expect(reasons(seen as PartnerChange[])).toEqual(EXPECTED);
  expect(seen?.find(({ partner_id }) => partner_id === 'p-1')).toMatchObject({
    ...{ entries: 4, last_entries: 3, average_price: '43.33', last_average_price: '11.00', reversals: 1 },
    ...{ new_policies: ['Parking'], ended_policies: ['Hotel'] },
  });
});

test('the report of the close says the same, as text and in its sheet', async () => {
  await world.close('2026-08');
  const report = (await world.database.reading((tx) => readCloseReport(tx))) as CloseReport;
  expect(reasons(report.partners)).toEqual(EXPECTED);
  const text = describeClose(report).replaceAll(/\s+/g, ' ');
  expect(text).toMatch(new RegExp(`Partner p-1, [\\d.]+: ${EXPECTED['p-1']}`));
  expect(text).not.toMatch(/Partner p-3, [\d.]+:/);
  expect(closeSheet(report).rows.map((row) => (row as { why: string }).why)).toContain(EXPECTED['p-1']);
});

test('partners without rows are those that were active at the close, whatever is imported later', async () => {
  const idle = async () => {
    const report = await world.database.reading((tx) => readCloseReport(tx, '2026-08' as Month));
    return report?.no_activity.map(({ partner_id }) => partner_id);
  };
  expect(await idle()).toEqual(['p-2']);
  world.at('2026-09-20T12:00:00Z');
  const policies = POLICIES.map((policy) => ({ ...policy, active: false }));
  await world.partners([
    partner({ partner_id: 'p-2', name: 'Partner p-2', policies, active: false }),
    partner({ partner_id: 'p-5', name: 'Partner p-5' }),
  ]);
  expect(await idle()).toEqual(['p-2']);
});
