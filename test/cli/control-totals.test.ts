/** Totals that a file of rows must meet, by the compiled program: options, a file of totals, and what scripts get. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { csv } from '../ledger/ledger.ts';
import { command, type Ran } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
});
afterAll(() => world.end());

const run = (...args: string[]): Promise<Ran> =>
  command(['--json', ...args], {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-01T10:00:00Z' },
  });
const sold = () => world.sql('SELECT quote_id FROM ledger_rows');

test('the rows of a file are recorded only if they meet the totals of the command, of all currencies and files', async () => {
  const one = world.file('one.csv', csv(quote(), quote({ currency: 'EUR' })));
  const other = world.file('other.csv', csv(quote()));
  const totals = ['--control', 'USD=14.00', '--control', 'EUR=7', '--count', '3'];
  const part = await run('ledger', 'import', ...totals, one);
  expect(part.status).toBe(2);
  expect(part.json()).toMatchObject({
    ...{ accepted: 0, duplicates: 0, rejected: 0 },
    errors: [
      { file: '', line: 0, field: 'count', code: 'control_differs' },
      { file: '', line: 0, field: 'USD', code: 'control_differs' },
    ],
    control: [{ by: 'option', file: null, agrees: false }],
  });
  expect(await sold()).toEqual([]);
  expect((await run('ledger', 'import', one, other, ...totals)).status).toBe(0);
  expect(await sold()).toHaveLength(3);
});

test('a file of totals beside a file is read, also where a pattern names both', async () => {
  const rows = world.file('july.csv', csv(quote(), quote()));
  world.file('july.csv.totals.json', '{"count": 3, "totals": {"USD": "21.00"}}');
  const before = await sold();
  const missing = await run('ledger', 'import', rows);
  expect(missing.status).toBe(2);
  expect(missing.json()).toMatchObject({ errors: [{ file: `${rows}.totals.json`, field: 'count' }, { field: 'USD' }] });
  expect(await sold()).toEqual(before);
  world.file('july.csv.totals.json', '{"count": 2, "totals": {"USD": 14}}');
  expect(await run('ledger', 'import', rows, `${rows}.totals.json`)).toMatchObject({ status: 0 });
  expect((await run('ledger', 'import', rows)).json()).toMatchObject({ duplicates: 2, control: [{ agrees: true }] });
});
