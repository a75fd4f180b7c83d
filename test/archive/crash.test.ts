/** kill -9 while a month is archived or comes back: its rows are in the database or in the store, and never in neither. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Failpoint } from '../../src/failpoint.ts';
import { reckoner } from '../support/program.ts';
import { tally } from '../support/tally.ts';
import type { World } from '../support/world.ts';
import { worldOfOldMonths } from './archived-world.ts';

let world: World;
beforeAll(async () => {
  world = await worldOfOldMonths();
});
afterAll(() => world.end());

const run = (args: readonly string[], failpoint?: Failpoint) =>
  reckoner(['--json', ...args], {
    env: {
      RECKONER_HOME: world.home,
      DATABASE_URL: world.databaseUrl,
      RECKONER_NOW: '2026-07-20T12:00:00Z',
      ...(failpoint && { RECKONER_FAILPOINT: failpoint }),
    },
  });
const rowsOf = async (month: string) =>
  Number((await world.sql('SELECT count(*) AS n FROM ledger_rows WHERE posted_month = $1', [month]))[0]?.['n']);
const isArchived = async (month: string) =>
  (await world.sql('SELECT FROM archived_months WHERE month = $1', [month])).length === 1;

/** All rows are in the database or recorded as archived, and every check of verify holds with the rows of both. */
async function stands(month: string, rows: number): Promise<void> {
  expect(await rowsOf(month)).toBe((await isArchived(month)) ? 0 : rows);
  const { checks } = await world.verify();
  expect(checks.flatMap((each) => each.differences)).toEqual([]);
}

const ARCHIVING = ['archive.written', 'archive.proven', 'archive.moved', 'archive.committed'] as const;
const RETURNING = ['archive.returned', 'archive.committed'] as const;

test.each([
  ...ARCHIVING.map((point) => ['archive', point] as const),
  ...RETURNING.map((point) => ['unarchive', point] as const),
])('%s killed at %s leaves the month whole, and done again it ends', async (command, point) => {
  const month = '2026-02';
  const arguments_ = command === 'archive' ? ['archive', month, '--to', 'cold'] : ['unarchive', month];
  const other = command === 'archive' ? ['unarchive', month] : ['archive', month, '--to', 'cold'];
  if ((await isArchived(month)) === (command === 'archive')) expect((await run(other)).status).toBe(0);
  expect((await run(arguments_, point)).signal).toBe('SIGKILL');
  await stands(month, 4);
  const again = await run(arguments_);
  expect([0, 3]).toContain(again.status);
  expect(await isArchived(month)).toBe(command === 'archive');
  await stands(month, 4);
  tally('kills survived', 'of a month that is archived or comes back', 1);
});
