/** kill -9 while a month is archived or comes back: its rows are in the database or in the store, and never in neither. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Failpoint } from '../support/failpoints.ts';
import { killed, reckoner } from '../support/program.ts';
import { seeded } from '../support/random.ts';
import { serveWorld } from '../support/service.ts';
import { times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import type { World } from '../support/world.ts';
import { worldOfOldMonths, worldOfOldQuotes } from './archived-world.ts';

let world: World;
beforeAll(async () => {
  world = await worldOfOldMonths();
});
afterAll(() => world.end());

const KILLS = times({ few: 2, short: 6, long: 30 });
const { random, seed } = seeded();

const environmentOf = ({ home, databaseUrl }: World) => ({
  RECKONER_HOME: home,
  DATABASE_URL: databaseUrl,
  RECKONER_NOW: '2026-07-20T12:00:00Z',
});

const run = (args: readonly string[], failpoint?: Failpoint, of: World = world) =>
  reckoner(['--json', ...args], {
    env: { ...environmentOf(of), ...(failpoint && { RECKONER_FAILPOINT: failpoint }) },
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

test(`archive and unarchive killed at ${KILLS} random instants leave the month whole (seed ${seed})`, async () => {
  const month = '2026-02';
  let took = 3000;
  for (let round = 0; round < KILLS; round += 1) {
    const goes = !(await isArchived(month));
    const args = goes ? ['archive', month, '--to', 'cold'] : ['unarchive', month];
    const begun = performance.now();
    const struck = await killed(['--json', ...args], environmentOf(world), took * (0.3 + 0.7 * random()));
    if (!struck) took = Math.min(took, performance.now() - begun);
    await stands(month, 4);
    if (struck) tally('kills survived', 'of a month at a random instant', 1);
    // The next round begins with the other command where this one had ended, and else repeats it.
    if (round % 3 === 2) expect([0, 3]).toContain((await run(args)).status);
  }
}, 600_000);

test('deliver killed while it answers late requests answers each one once', async () => {
  const { world: own, quotes } = await worldOfOldQuotes();
  try {
    const served = await serveWorld(own);
    const caller = await served.caller('p-1');
    // This publishes the events of the rows before the rows leave.
    await caller.get('/api/v1/events');
    expect((await run(['archive', '2026-01', '--to', 'cold'], undefined, own)).status).toBe(0);
    const points = ['late_request.recalled', 'late_request.answered', 'late_request.committed'] as const;
    for (const [at, point] of points.entries()) {
      const quote = quotes[at] as string;
      const asked = await caller.post(`/api/v1/quote/${quote}/requote`, { insured_amount: '500' });
      const refused = await caller.post(`/api/v1/quote/${quote}/requote`, { insured_amount: '10' });
      const state = async ({ body }: typeof asked) => (await caller.get(body['location'] as string)).body;
      expect((await run(['deliver'], point, own)).signal).toBe('SIGKILL');
      expect((await state(asked))['status']).toBe(point === 'late_request.committed' ? 'done' : 'pending');
      expect((await run(['deliver'], undefined, own)).status).toBe(0);
      expect(await state(asked)).toMatchObject({ status: 'done', answer: { status: 201, body: { quote_id: quote } } });
      expect(await state(refused)).toMatchObject({ status: 'refused', answer: { body: { code: 'requote_lower' } } });
      const made = `SELECT FROM requotes WHERE quote_id = $1 AND insured_amount = 500`;
      expect(await own.sql(made, [quote])).toHaveLength(1);
      expect((await own.verify()).checks.flatMap((each) => each.differences)).toEqual([]);
      tally('kills survived', 'of a late request', 1);
    }
    await served.end();
  } finally {
    await own.end();
  }
});
