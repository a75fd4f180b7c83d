/** The demonstration's partner with a connected account: its settlement files explain its rows, except for two findings. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importRows } from '../../src/ledger/import.ts';
import type { Month } from '../../src/month.ts';
import { packageRoot } from '../../src/package.ts';
import { importSettlement } from '../../src/splits/import.ts';
import { needsWork, reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { openWorld, type World } from '../support/world.ts';

const dataOf = (name: string) => readFileSync(join(packageRoot, 'src', 'demo', 'data', name), 'utf8');

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners(JSON.parse(dataOf('partners.json')) as object[]);
});
afterAll(() => world.end());

const open = async (month: string) => {
  const { exceptions } = await world.database.reading((tx) =>
    reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, month as Month),
  );
  return exceptions.filter(needsWork).map(({ status, open }) => `${status} ${open}`);
};

test('each month is explained by the next, and one missing share and one reversed transfer of the last stay open', async () => {
  const found: Record<string, string[]> = {};
  for (const [month, rows, now] of [
    ['2026-07', '2026-07.csv', '2026-08-01T10:07:00Z'],
    ['2026-08', '2026-08.ndjson', '2026-09-01T10:07:00Z'],
    ['2026-09', '2026-09.csv', '2026-10-01T10:07:00Z'],
  ] as const) {
    world.at(now);
    const file = {
      name: rows,
      format: rows.endsWith('csv') ? ('csv' as const) : ('ndjson' as const),
      text: dataOf(rows),
    };
    await world.database.transaction((tx) =>
      importRows(tx, [file], {
        skipInvalid: false,
        now: world.environment.now(),
        actor: world.actor,
        ceilings: world.settings.reversals,
        environment: world.environment,
      }),
    );
    const settled = { name: `${month}-settlement.csv`, text: dataOf(`${month}-settlement.csv`) };
    await world.database.transaction((tx) => importSettlement(tx, world, settled, 'p-copperleaf'));
    await world.close();
    found[month] = await open(month);
  }
  expect(found).toEqual({
    // Lines of quotes, and of a reversal, whose rows are in the next file.
    '2026-07': ['unknown -8.17', 'unknown -23.35', 'unknown -5.44'],
    '2026-08': ['reversed 7.74', 'unknown -18.48', 'unknown -5.44'],
    '2026-09': ['missing 19.32', 'reversed 18.48'],
  });
  expect([await open('2026-07'), await open('2026-08')]).toEqual([[], []]);
});
