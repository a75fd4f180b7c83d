/** The security log: who was refused is seen at once, and an attack does not fill the disk. */
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { execute } from '../../src/database/transaction.ts';
import { readSecurityEvents } from '../../src/reports/security.sql.ts';
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
  await expect.poll(() => world.sql(`SELECT FROM security_events`), { timeout: 20_000 }).not.toEqual([]);
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

test('what is counted is written when the server stops, before the requests under way have ended', async () => {
  const own = await serveWorld(world);
  const before = await world.sql(`SELECT FROM security_events`);
  for (let each = 0; each < 5; each += 1) {
    const { status } = await ask(`${own.url}/api/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_id: 'nobody', client_secret: `no-${each}` }),
    });
    expect([401, 429]).toContain(status);
  }
  const { hostname, port } = new URL(own.url);
  const slow = connect(Number(port), hostname);
  slow.on('error', () => {});
  slow.write(
    `POST /api/oauth/token HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
  );
  await new Promise((resolve) => setTimeout(resolve, 300));
  const ended = own.end();
  await expect
    .poll(
      async () => {
        const rows = await world.sql<{ tries: number }>(
          `SELECT tries::int FROM security_events ORDER BY security_event_id OFFSET ${before.length}`,
        );
        return rows.reduce((sum, { tries }) => sum + tries, 0);
      },
      { timeout: 20_000 },
    )
    .toBeGreaterThanOrEqual(5);
  slow.destroy();
  await ended;
});

test('the program changes and deletes no row; the owner of the database may delete addresses', async () => {
  const asProgram = (statement: string) => world.database.transaction((tx) => execute(tx, statement));
  await expect(asProgram(`UPDATE security_events SET tries = 1`)).rejects.toThrow(/permission denied/);
  await expect(asProgram(`DELETE FROM security_events`)).rejects.toThrow(/permission denied/);
  await world.sql(`DELETE FROM security_events WHERE last_at < now() - interval '1 year'`);
});
