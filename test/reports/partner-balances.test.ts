/** What partners owe today: an invoice is overdue from the day after it was due. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPartnerBalances } from '../../src/reports/partner-balances.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
});
afterAll(() => world.end());

test.each([
  ['2026-08-31', '0.00'],
  ['2026-09-01', '7.00'],
])('of an invoice due on 2026-08-31, what is overdue on %s is %s', async (today, overdue) => {
  const { as_of, balances } = await world.database.reading((tx) => readPartnerBalances(tx, { today, scope: null }));
  expect([as_of, balances]).toEqual([
    today,
    [
      {
        ...{ partner_id: 'p-1', currency: 'USD', open: '7.00', overdue },
        ...{ credit: '0.00', unapplied: '0.00', net: '7.00' },
      },
    ],
  ]);
});
