/** The blocks of docs/cluster.md, run in their order, from three empty servers and a ledger with old months. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { worldOfOldMonths } from '../archive/archived-world.ts';
import { type Cluster, hasCitus, startCluster } from '../support/cluster.ts';
import { ROOT } from '../support/modules.ts';
import { reckoner } from '../support/program.ts';
import type { World } from '../support/world.ts';

const PORT = 9740;
const PAGE = readFileSync(join(ROOT, 'docs', 'cluster.md'), 'utf8');
const BLOCKS = [...PAGE.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, kind = '', text = '']) => ({ kind, text }));

/** The servers of the page are on this machine. */
const here = (text: string) =>
  ['coordinator', 'worker-1', 'worker-2', 'worker-3'].reduce(
    (page, name, node) => page.replaceAll(`'${name}.internal', 5432`, `'127.0.0.1', ${PORT + node}`),
    text,
  );

describe.skipIf(!hasCitus)('the guide', () => {
  let cluster: Cluster;
  let world: World;
  beforeAll(async () => {
    cluster = await startCluster(PORT, { empty: true });
    world = await worldOfOldMonths();
  });
  afterAll(async () => {
    await world.end();
    cluster.end();
  });

  test('makes a cluster of three empty servers, on which a month is, with a worker more and a restore point', async () => {
    expect(BLOCKS.map(({ kind }) => kind)).toEqual([
      ...['sql', 'sql', 'sql', 'json', 'sh'],
      // The standby, as in faults.test.ts.
      ...['sql', 'sql'],
      ...['sql', 'sql', 'sql'],
    ]);
    const [configure, extend, join_, settings, commands, , , more, backup, drop] = BLOCKS.map(({ text }) =>
      here(text),
    ) as [...[string, string, string, string, string], ...[string, string, string, string, string]];
    const onEach = async (text: string, nodes: readonly number[]) => {
      for (const node of nodes)
        for (const statement of text.split(/;$/m)) if (statement.trim() !== '') await cluster.sql(node, statement);
    };
    // The fourth server is prepared like the first three, for the worker that is added.
    await onEach(configure, [0, 1, 2, 3]);
    for (const node of [0, 1, 2, 3]) {
      await cluster.stop(node);
      await cluster.start(node);
    }
    await onEach(extend, [0, 1, 2, 3]);
    await onEach(join_, [0]);
    expect(JSON.parse(settings)).toEqual({ archive: { cluster: { citus: 'cold' } } });
    const run = async (command: string) => {
      const { RECKONER_HOME, DATABASE_URL } = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl };
      const env = { RECKONER_HOME, DATABASE_URL, CITUS_URL: cluster.url, RECKONER_NOW: '2026-07-20T12:00:00Z' };
      const { status, stdout, stderr } = await reckoner(command.split(' ').slice(1), { env });
      expect({ command, status, stdout, stderr }).toMatchObject({ status: 0 });
      return stdout;
    };
    const [archive, verify] = commands.trim().split('\n') as [string, string];
    expect(await run(archive)).toMatch(/^2026-01 has 3 rows: 3 left the database for 'cluster', 0 stay\./);
    await run(verify);
    await onEach(more, [0]);
    await onEach(backup, [0]);
    await run('reckoner verify --all');
    await run('reckoner unarchive 2026-01');
    await onEach(drop, [0]);
    expect(await cluster.sql(0, 'SELECT FROM cold.cold_rows')).toEqual([]);
    await run(archive);
  });
});
