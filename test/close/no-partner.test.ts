/** Before the first partner there is nothing to close, and no future month may close by mistake. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openWorld, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(() => startOver(world));

test('without a partner nothing is due', async () => {
  expect(await world.close()).toEqual([]);
  expect(await world.close(undefined, { firstMonth: '2026-06' })).toEqual([]);
});

test('without a partner a month must have ended where the issuer is', async () => {
  world.at('2026-08-01T03:59:00Z');
  expect(await refusalOf(world.close('2026-07'))).toEqual({
    code: 'month_not_ended',
    facts: { month: '2026-07', time_zone: 'America/New_York', ends_at: '2026-08-01T00:00:00.000-04:00' },
  });
  expect(await refusalOf(world.close('2036-01'))).toMatchObject({ code: 'month_not_ended' });
  world.at('2026-08-01T04:00:00Z');
  expect(await world.close('2026-07')).toEqual(['2026-07']);
});
