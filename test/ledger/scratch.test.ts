import { afterAll, beforeAll, test } from 'vitest';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
let world: World;
beforeAll(async () => { world = await openWorld(); await world.partners([partner()]); });
afterAll(() => world.end());
const t = (name: string, f: () => Promise<unknown>) => test(name, async () => {
  const r = await Promise.race([f().catch((e) => `THROWN ${e?.code} ${e}`), new Promise((d) => setTimeout(() => d('HANG'), 4000))]);
  console.log(`## ${name}:`, typeof r === 'string' ? r.slice(0,600) : JSON.stringify(r)?.slice(0, 1500));
});
t('zeros', () => world.rows([quote({ spotPrice: `10.${'0'.repeat(20000)}` })]));
t('leading zeros', () => world.rows([quote({ spotPrice: `${'0'.repeat(200000)}10` })]));
t('future then inactive', async () => {
  world.at('2026-08-01T10:00:00Z');
  await world.partners([partner({ partner_id: 'p-2' })]);
  const q = quote({ partner_id: 'p-2', accepted_at: '2026-08-01T10:04:00Z' });
  await world.rows([q]);
  world.at('2026-08-01T10:02:00Z');
  await world.partners([partner({ partner_id: 'p-2', active: false })]);
  return world.rows([q]);
});
t('havana', async () => {
  world.at('2026-12-02T10:00:00Z');
  await world.partners([partner({ partner_id: 'p-3', time_zone: 'America/Havana' })]);
  await world.rows(['2026-11-01T03:59:59.999999Z','2026-11-01T04:00:00Z','2026-11-01T04:30:00Z','2026-11-01T05:00:00Z'].map((accepted_at, i) => quote({ partner_id: 'p-3', quote_id: `h-${i}`, accepted_at })));
  return world.sql(`select accepted_at::text, month from entries where partner_id='p-3'`);
});
t('surrogate partner', () => world.partners([partner({ name: 'a\ud800b' })]));
t('u2028 partner', () => world.partners([partner({ name: 'a\u2028b' })]));
t('offsets', async () => {
  world.at('2026-12-02T10:00:00Z');
  return world.rows(['2026-07-15T12:00+02','2026-07-15T12:00:00+0200','2026-07-15T12:00Z','2026-07-15T12:00:00.123456+15:59','2026-07-15T12:00:00-00:00','2026-07-15T12:00:00.5-15:59','1970-01-01T00:00:00+14:00'].map((accepted_at) => quote({ accepted_at })));
});
t('dup keys', () => { const p = world.file('k.ndjson', JSON.stringify(quote({spotPrice:'99.00'})).replace('}', ',"spotPrice":"10.00"}')+'\n'); return world.importFiles([p]); });
t('missing file', () => world.importFiles([`${world.home}/none.csv`]));
t('after hang', () => world.rows([quote()]));
t('folder', () => world.importFiles([world.home]));
