/** The security log: who was refused is seen at once, and an attack does not fill the disk. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { execute } from '../../src/database/transaction.ts';
import { readSecurityEvents } from '../../src/reports/security.ts';
import { ask, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED)]);
  served = await serveWorld(world);
});
afterAll(() => world.end());

test('300 wrong secrets of one client are few rows, which count each of them', async () => {
  const { client_id } = await served.client('p-1');
  const wrong = (secret: string) =>
    ask(`${served.url}/api/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_id, client_secret: secret }),
    });
  for (let each = 0; each < 300; each += 1) expect([401, 429]).toContain((await wrong(`no-${each}`)).status);
  await expect.poll(() => world.sql(`SELECT FROM security_events`), { timeout: 5000 }).not.toEqual([]);
  await served.end();
  const rows = await world.sql<{ kind: string; client_id: string; network: string; tries: number }>(
    `SELECT kind, client_id, network, tries::int FROM security_events ORDER BY security_event_id`,
  );
  const refused = rows.filter(({ kind }) => kind === 'exchange_refused');
  expect(refused.length).toBeLessThanOrEqual(8);
  expect(refused.reduce((sum, { tries }) => sum + tries, 0)).toBe(300);
  expect(refused[0]).toMatchObject({ client_id, network: '127.0.0.1', tries: 1 });
  expect(rows.some(({ kind }) => kind === 'exchange_locked')).toBe(true);
  const listed = await world.database.reading((tx) => readSecurityEvents(tx, { since: null, limit: 100 }));
  expect(listed.map(({ event }) => event)).toEqual(expect.arrayContaining(['exchange_refused', 'exchange_locked']));
  expect(listed.find(({ event }) => event === 'client.create')?.subject).toBeDefined();
});

test('the program changes and deletes no row; the owner of the database may delete addresses', async () => {
  const asProgram = (statement: string) => world.database.transaction((tx) => execute(tx, statement));
  await expect(asProgram(`UPDATE security_events SET tries = 1`)).rejects.toThrow(/permission denied/);
  await expect(asProgram(`DELETE FROM security_events`)).rejects.toThrow(/permission denied/);
  await world.sql(`DELETE FROM security_events WHERE last_at < now() - interval '1 year'`);
});
