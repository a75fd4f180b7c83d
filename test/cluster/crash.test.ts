/**
 * kill -9 of the program and of the cluster's servers while a month goes to the cluster or comes back: its rows are in the
 * database or on the cluster, and never in neither. A part that a server left prepared is ended by the next read.
 */
import { spawn } from 'node:child_process';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { worldOfOldMonths } from '../archive/archived-world.ts';
import { type Cluster, hasCitus, startCluster } from '../support/cluster.ts';
import type { Failpoint } from '../support/failpoints.ts';
import { compiled, reckoner } from '../support/program.ts';
import { seeded } from '../support/random.ts';
import { times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import type { World } from '../support/world.ts';

const KILLS = times({ few: 2, short: 6, long: 40 });
const { random, seed } = seeded();
const MONTH = '2026-02';
const ROWS = 4;

describe.skipIf(!hasCitus)('a month that goes to a cluster', () => {
  let cluster: Cluster;
  let world: World;
  beforeAll(async () => {
    cluster = await startCluster(9730);
    world = await worldOfOldMonths({ citusUrl: cluster.url });
  });
  afterAll(async () => {
    await world.end();
    cluster.end();
  });

  const environment = () => ({
    RECKONER_HOME: world.home,
    DATABASE_URL: world.databaseUrl,
    CITUS_URL: cluster.url,
    RECKONER_NOW: '2026-07-20T12:00:00Z',
  });
  const ARCHIVE = ['archive', MONTH, '--to', 'cluster'];
  const RETURN = ['unarchive', MONTH];
  const run = (args: readonly string[], failpoint?: Failpoint) =>
    reckoner(['--json', ...args], { env: { ...environment(), ...(failpoint && { RECKONER_FAILPOINT: failpoint }) } });
  const isArchived = async () =>
    (await world.sql('SELECT FROM archived_months WHERE month = $1', [MONTH])).length === 1;

  /** All rows are in the database or recorded as archived, and every check of verify holds with the rows of both. */
  async function stands(): Promise<void> {
    const [{ n } = { n: 0 }] = await world.sql('SELECT count(*)::int AS n FROM ledger_rows WHERE posted_month = $1', [
      MONTH,
    ]);
    expect(n).toBe((await isArchived()) ? 0 : ROWS);
    const { checks } = await world.verify();
    expect(checks.flatMap((each) => each.differences)).toEqual([]);
    const prepared = await Promise.all([1, 2].map((node) => cluster.sql(node, 'SELECT gid FROM pg_prepared_xacts')));
    if (await isArchived()) expect(prepared.flat()).toEqual([]);
  }

  const POINTS = ['archive.copied', 'archive.written', 'archive.proven', 'archive.moved', 'archive.committed'] as const;
  test.each([
    ...POINTS.map((point) => [ARCHIVE, point] as const),
    ...(['archive.returned', 'archive.committed'] as const).map((point) => [RETURN, point] as const),
  ])('%j killed at %s leaves it whole, and done again it ends', async (args, point) => {
    const goes = args === ARCHIVE;
    if ((await isArchived()) === goes) expect((await run(goes ? RETURN : ARCHIVE)).status).toBe(0);
    // Without a copy from before, the rows are copied again.
    if (goes && !(await isArchived())) await forget();
    expect((await run(args, point)).signal).toBe('SIGKILL');
    await stands();
    expect([0, 3]).toContain((await run(args)).status);
    expect(await isArchived()).toBe(goes);
    await stands();
    tally('kills survived', 'of a month that goes to a cluster or comes back', 1);
  });

  /** As people do who need no copy any more. */
  const forget = () =>
    cluster.sql(
      0,
      `DO $$ BEGIN
         IF to_regclass('cold.cold_rows') IS NOT NULL THEN
           DROP TABLE IF EXISTS cold."rows_${MONTH}"; DELETE FROM cold.cold_months WHERE month = '${MONTH}';
         END IF;
       END $$`,
    );

  /** Ends when the worker has a part that is prepared. */
  async function prepared(node: number, hasEnded: () => boolean): Promise<boolean> {
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${cluster.port + node}/postgres` });
    client.on('error', () => {});
    await client.connect();
    try {
      while (!hasEnded()) if ((await client.query('SELECT FROM pg_prepared_xacts')).rowCount !== 0) return true;
      return false;
    } finally {
      await client.end();
    }
  }

  test(`servers killed ${KILLS} times while it goes or comes back leave it whole (seed ${seed})`, async () => {
    let took = 2500;
    for (let round = 0; round < KILLS; round += 1) {
      const goes = !(await isArchived());
      if (goes) await forget();
      const child = spawn(process.execPath, [compiled('src/cli/reckoner.js'), ...(goes ? ARCHIVE : RETURN)], {
        env: { ...process.env, ...environment() },
        stdio: 'ignore',
      });
      let hasEnded = false;
      const begun = performance.now();
      const ended = new Promise<void>((resolve) => {
        child.on('close', () => {
          hasEnded = true;
          resolve();
        });
      });
      const node = round % 3;
      const isPrepared =
        goes && node > 0 && random() < 0.8
          ? await prepared(node, () => hasEnded)
          : await new Promise<false>((resolve) => setTimeout(() => resolve(false), took * (0.3 + 0.7 * random())));
      const struck = !hasEnded;
      await cluster.stop(node);
      await new Promise((resolve) => setTimeout(resolve, 100 * random()));
      await cluster.start(node);
      await ended;
      if (!struck) took = Math.min(took, performance.now() - begun);
      await stands();
      const what = isPrepared ? 'a worker with a prepared part' : ['a coordinator', 'a worker', 'a worker'][node];
      if (struck) tally('kills survived', `of ${what} while a month goes or comes back`, 1);
    }
    if (!(await isArchived())) expect([0, 3]).toContain((await run(ARCHIVE)).status);
    await stands();
  }, 1_200_000);
});
