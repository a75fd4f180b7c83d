/** Days sales outstanding, on the landing page and in the reserve, whatever the day of the month close. */
import { afterEach, expect, test } from 'vitest';
import { openingImport } from '../../src/actions/opening.ts';
import { runAction } from '../../src/actions/run.ts';
import { reserve } from '../../src/lists/reserve.ts';
import { readPosition } from '../../src/reports/position.ts';
import { csvOf, invoice } from '../opening/file.ts';
import { booksOf } from '../payments/books.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
afterEach(() => world.end());

const sale = (month: string) =>
  quote({ accepted_at: `${month}-15T12:00:00Z`, spotPrice: '100.00', partnerCut: '0', invoiceAmount: '100.00' });

async function daysOn(today: string): Promise<(number | null | undefined)[]> {
  world.at(`${today}T20:00:00Z`);
  return world.database.reading(async (tx) => {
    const asked = { filter: {}, scope: null, period: null, today, sort: 'partner_id', after: null, limit: null };
    const rows = await reserve.read(tx, { ...asked, context: world } as never);
    const { currencies } = await readPosition(tx, world, { today });
    return [rows[0]?.days_sales_outstanding, currencies[0]?.days_sales_outstanding];
  });
}

test.each(['01', '04'])('the days of a month are the same if its close runs on the %s', async (day) => {
  world = await openWorld();
  world.at('2026-07-01T10:00:00Z');
  await world.partners([partner()]);
  for (const [month, next] of [
    ['2026-07', '2026-08'],
    ['2026-08', '2026-09'],
    ['2026-09', '2026-10'],
  ] as const) {
    world.at(`${next}-${day}T10:00:00Z`);
    await world.rows([sale(month)]);
    await world.close(month);
  }
  const [july] = await world.documents({ months: ['2026-07' as never] });
  world.at('2026-10-20T10:00:00Z');
  const received = { number: july?.number, amount: '100.00', currency: 'USD', receivedOn: '2026-10-20' };
  await booksOf(world).record({ ...received, reference: 'R' });
  // 200 is open of 300 that July, August and September billed, in 92 days.
  expect(await daysOn('2026-10-31')).toEqual([61, 61]);
});

test('after one and two closes, the days are those of the months that were billed, also of a month without rows', async () => {
  world = await openWorld();
  world.at('2026-07-01T10:00:00Z');
  await world.partners([partner()]);
  expect(await daysOn('2026-07-31')).toEqual([undefined, undefined]);
  world.at('2026-08-01T10:00:00Z');
  await world.rows([sale('2026-07')]);
  await world.close('2026-07');
  // All is open of what July billed.
  expect(await daysOn('2026-08-06')).toEqual([31, 31]);
  world.at('2026-09-01T10:00:00Z');
  await world.rows([sale('2026-08')]);
  await world.close('2026-08');
  expect(await daysOn('2026-09-06')).toEqual([62, 62]);
  world.at('2026-10-01T10:00:00Z');
  await world.close('2026-09', { allowEmpty: true });
  // September billed nothing in its 30 days.
  expect(await daysOn('2026-10-06')).toEqual([92, 92]);
  world.at('2026-11-01T10:00:00Z');
  await world.close('2026-10', { allowEmpty: true });
  // 200 is open of 100 that August, September and October billed, in 92 days.
  expect(await daysOn('2026-11-06')).toEqual([184, 184]);
});

test('the months of the previous system do not count, because its paid invoices are unknown', async () => {
  world = await openWorld();
  world.at('2026-07-01T10:00:00Z');
  await world.partners([partner()]);
  const file = {
    name: 'open.csv',
    bytes: Buffer.from(csvOf([invoice('R-1', '60.00', { original_amount: '100.00' })])),
  };
  await runAction(
    world,
    openingImport,
    { file, cutOver: '2026-06-30', control: ['USD=60.00'], count: 1 },
    { deliver: false },
  );
  expect(await daysOn('2026-07-31')).toEqual([null, null]);
  await world.rows([sale('2026-07')]);
  world.at('2026-08-01T10:00:00Z');
  await world.close('2026-07');
  // 160 is open, and July billed 100 in 31 days.
  expect(await daysOn('2026-08-31')).toEqual([50, 50]);
});
