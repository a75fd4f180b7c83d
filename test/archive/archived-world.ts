/** A world of six closed months with few rows, whose books are closed to May, and whose settings have a cold store. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { firstSettings } from '../../src/config/first-settings.ts';
import type { Month } from '../../src/month.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const MONTHS = ['2026-01', '2026-02', '2026-03', '2026-04', '2026-05', '2026-06'] as Month[];

export async function worldOfOldMonths(): Promise<World> {
  const world = await openWorld();
  const settings = { ...firstSettings('sandbox'), allow_empty: true, archive: { cold: { parquet: 'cold' } } };
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
  return world;
}
