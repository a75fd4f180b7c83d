/** Nobody overlooks the partner without an invoice: partner by closed month, a document, no activity, or a gap. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Coverage, readCoverage } from '../../src/reports/coverage.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { reckoner } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  await world.rows([quote(), quote({ currency: 'EUR' }), quote({ partner_id: 'p-2' })]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
  await world.close();
});
afterAll(() => world.end());

const coverage = (asOf?: string): Promise<Coverage> => world.database.reading((tx) => readCoverage(tx, { asOf }));

test('a cell names all documents of its partner and month, or says that there was no activity', async () => {
  expect(await coverage()).toEqual({
    months: ['2026-07', '2026-08'],
    gaps: 0,
    books_open: ['2026-07', '2026-08'],
    partners: [
      {
        ...{ partner_id: 'p-1', name: 'Harbour Lights Ticketing' },
        cells: [
          { month: '2026-07', state: 'document', documents: ['INV-2026-000001', 'INV-2026-000002'], entries: 2 },
          { month: '2026-08', state: 'document', documents: ['INV-2026-000004'], entries: 1 },
        ],
      },
      {
        ...{ partner_id: 'p-2', name: 'Harbour Lights Ticketing' },
        cells: [
          { month: '2026-07', state: 'document', documents: ['INV-2026-000003'], entries: 1 },
          { month: '2026-08', state: 'no_activity', documents: [], entries: 0 },
        ],
      },
    ],
  });
});

test('people see it within 80 columns: several documents of a month stand below each other', async () => {
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-01T10:00:00Z' };
  const { stdout } = await reckoner(['report', 'coverage'], { env });
  expect(stdout.split('\n').slice(2, 7)).toEqual([
    'Documents by partner (–: no activity):',
    'partner                   2026-07          2026-08',
    'Harbour Lights Ticketing  INV-2026-000001  INV-2026-000004',
    '                          INV-2026-000002',
    'Harbour Lights Ticketing  INV-2026-000003  –',
  ]);
});

test('as of a date, months that closed later are left out', async () => {
  expect((await coverage('2026-08-31')).months).toEqual(['2026-07']);
});

test('a month counts as closed on the day of its close, and not before', async () => {
  expect((await coverage('2026-07-31')).months).toEqual([]);
  const { months, partners } = await coverage('2026-08-01');
  expect([months, partners.map(({ cells }) => cells.map(({ state }) => state))]).toEqual([
    ['2026-07'],
    [['document'], ['document']],
  ]);
});

test('rows of a closed month without their document are a gap', async () => {
  await world.sql(GUARDS_OFF);
  await world.sql(`DELETE FROM documents WHERE number = 'INV-2026-000002'`);
  await world.sql(GUARDS_ON);
  const { gaps, partners } = await coverage();
  expect(gaps).toBe(1);
  expect(partners[0]?.cells[0]).toEqual({ month: '2026-07', state: 'gap', documents: ['INV-2026-000001'], entries: 2 });
});
