/** Transactions in one round trip: recorded whole or not at all, whichever side an error comes from. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { query, type Transaction } from '../../src/database/transaction.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(() => world.sql(`${GUARDS_OFF} DELETE FROM job_runs; ${GUARDS_ON}`));

const RUN = `INSERT INTO job_runs (job, started_at, finished_at, exit_status)
             VALUES (:job, '2026-08-01', '2026-08-01', 0) RETURNING job`;
const recordRun = (tx: Transaction, job: string) => query<{ job: string }>(tx, RUN, { job });
const runs = async () =>
  (await world.sql<{ job: string }>('SELECT job FROM job_runs ORDER BY job')).map(({ job }) => job);

test('all statements are recorded together', async () => {
  const both = await world.database.inOneTrip((tx) => Promise.all([recordRun(tx, 'one'), recordRun(tx, 'two')]));
  expect(both).toEqual([[{ job: 'one' }], [{ job: 'two' }]]);
  expect(await runs()).toEqual(['one', 'two']);
});

test('if the server refuses a statement, nothing is recorded', async () => {
  await expect(
    world.database.inOneTrip((tx) => Promise.all([recordRun(tx, 'one'), query(tx, 'SELECT 1 / 0')])),
  ).rejects.toThrow('division by zero');
  expect(await runs()).toEqual([]);
});

test.each<[string, (tx: Transaction) => Promise<unknown>]>([
  ['a missing binding', (tx) => Promise.all([recordRun(tx, 'one'), query(tx, RUN)])],
  [
    'a missing binding deep in the work',
    async (tx) => {
      const deep = async () => {
        await Promise.resolve();
        return query(tx, RUN);
      };
      return Promise.all([recordRun(tx, 'one'), deep().then((rows) => rows)]);
    },
  ],
  [
    'an error thrown before a promise is returned',
    (tx) => {
      void recordRun(tx, 'one').catch(() => {});
      throw new Error('no value');
    },
  ],
])('if the work fails before the server answers, nothing is recorded: %s', async (_, work) => {
  await expect(world.database.inOneTrip(work)).rejects.toThrow('no value');
  expect(await runs()).toEqual([]);
  // The connections stay usable.
  await world.database.inOneTrip((tx) => recordRun(tx, 'after'));
  expect(await runs()).toEqual(['after']);
});
