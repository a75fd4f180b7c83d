/** When an API client called last. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  served = await serveWorld(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});

test('a client that calls is noted with the time, once in some minutes, and no event is recorded', async () => {
  const events = async () => (await world.sql('SELECT FROM audit_events')).length;
  const caller = await served.caller('p-1');
  const before = await events();
  for (let call = 0; call < 3; call += 1) expect((await caller.get('/api/v1/invoices')).status).toBeLessThan(500);
  const uses = () => world.sql<{ client_id: string; used_at: Date }>('SELECT client_id, used_at FROM client_uses');
  await expect
    .poll(uses)
    .toEqual([{ client_id: caller.credentials.client_id, used_at: new Date(world.environment.now().toISO()) }]);
  world.at('2026-08-01T11:00:00Z');
  await caller.get('/api/v1/invoices');
  expect((await uses())[0]?.used_at.toISOString()).toBe('2026-08-01T10:00:00.000Z');
  expect(await events()).toBe(before);
});
