/** Rows of old months leave the database for a store, are read as before, and come back. */
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { monthArchive, monthUnarchive } from '../../src/actions/archive.ts';
import { runAction } from '../../src/actions/run.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import type { Month } from '../../src/month.ts';
import { refusalOf } from '../close/refusal.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const MONTHS = ['2026-01', '2026-02', '2026-03', '2026-04', '2026-05', '2026-06'] as Month[];

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const settings = { ...firstSettings('sandbox'), allow_empty: true as const, archive: { cold: { parquet: 'cold' } } };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  world.at('2026-01-02T12:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Brightside' })]);
  for (const [at, month] of MONTHS.entries()) {
    world.at(`${month}-25T12:00:00Z`);
    const id = (name: string) => `${name}-${month}`;
    await world.rows([
      quote({ quote_id: id('q-a'), accepted_at: `${month}-10T12:00:00Z`, order_reference: 'ord "1"\\2' }),
      quote({ quote_id: id('q-b'), accepted_at: `${month}-11T12:00:00Z` }),
      quote({ quote_id: id('q-c'), partner_id: 'p-2', accepted_at: `${month}-12T12:00:00Z` }),
      ...(at === 0 ? [] : [quote({ quote_id: id('late'), accepted_at: `${MONTHS[at - 1]}-20T12:00:00Z` })]),
    ]);
    world.at(`${MONTHS[at + 1] ?? '2026-07'}-02T12:00:00Z`);
    await world.close();
  }
  world.at('2026-07-20T12:00:00Z');
  await world.closeBooks(...MONTHS.slice(0, 5));
});
afterAll(() => world.end());

const context = () => ({ ...world, reporter: {} });
const archive = (month: string) => runAction(context(), monthArchive, { month: month as Month, store: 'cold' });
const unarchive = (month: string) => runAction(context(), monthUnarchive, { month: month as Month });
const count = async () => Number((await world.sql('SELECT count(*) FROM ledger_rows'))[0]?.['count']);
const differences = async () => {
  const { checks } = await world.verify();
  return checks.flatMap((each) => each.differences);
};

describe('a month', () => {
  test('leaves the database, and every check of verify holds as before', async () => {
    expect(await differences()).toEqual([]);
    const before = await count();
    const report = await archive('2026-01');
    expect(report.json).toMatchObject({ month: '2026-01', entries: 3, moved: 3, stay: 0 });
    expect(await count()).toBe(before - 3);
    expect(await differences()).toEqual([]);
  });

  test('comes back as it was', async () => {
    const rows = () => world.sql('SELECT * FROM ledger_rows ORDER BY entry_id');
    await archive('2026-02');
    await unarchive('2026-01');
    await unarchive('2026-02');
    const whole = await rows();
    await archive('2026-01');
    await archive('2026-02');
    await unarchive('2026-02');
    await unarchive('2026-01');
    expect(await rows()).toEqual(whole);
    expect(await differences()).toEqual([]);
  });
});
