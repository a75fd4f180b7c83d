/** Totals of a month by call: compared at once, recorded once, and only as the caller's own. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
let caller: Caller;
let other: Caller;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-01T10:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  await world.rows([quote(), quote(), quote({ partner_id: 'p-2' })]);
  served = await serveWorld(world, { patience: 1 });
  [caller, other] = [await served.caller('p-1'), await served.caller('p-2')];
});
afterAll(async () => {
  const { checks } = await world.verify();
  expect(checks.flatMap(({ differences }) => differences)).toEqual([]);
  await served.end();
  await world.end();
});

const statements = async () =>
  (await world.sql<{ count: number }>('SELECT count(*)::int AS count FROM feed_statements'))[0]?.count;
const state = (body: object, by = caller) => by.post('/api/v1/feeds', body);

test('a statement is answered with what is recorded and how it differs; its event names the client', async () => {
  const { status, body } = await state({ month: '2026-07', count: 3, totals: { USD: '21.00' } });
  expect(status).toBe(201);
  expect(body).toEqual({
    ...{ month: '2026-07', count: 3, totals: { USD: '21.00' }, complete: true, stated_at: '2026-08-01T10:00:00.000Z' },
    ...{ recorded: { count: 2, totals: { USD: '14.00' } }, agrees: false },
    differences: { count: -1, totals: { USD: '-7.00' } },
  });
  expect(await world.sql(`SELECT subject, via, details FROM audit_events WHERE action = 'feed.state'`)).toEqual([
    {
      ...{ subject: 'p-1', via: 'http' },
      details: {
        ...{ month: '2026-07', entries: 3, totals: { USD: '21.00' }, complete: true },
        client_id: caller.credentials.client_id,
      },
    },
  ]);
});

test('the same totals again, also six at once and written otherwise, answer 200 and record nothing', async () => {
  const before = (await statements()) as number;
  const body = { month: '2026-07', count: 2, totals: { USD: 14.0 }, complete: true };
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => state(body)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201]);
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(await statements()).toBe(before + 1);
  expect((await state({ totals: { USD: '14.00' }, count: '2', month: '2026-07' })).status).toBe(200);
});

test('an idempotency key repeats the first response, whatever the order of currencies', async () => {
  const key = { 'idempotency-key': 'feed-1' };
  const totals = { EUR: '1', USD: '14' };
  const body = { month: '2026-06', count: 2, totals, complete: false };
  const first = await caller.post('/api/v1/feeds', body, key);
  expect(first).toMatchObject({ status: 201, body: { complete: false, agrees: false } });
  const again = await caller.post('/api/v1/feeds', { ...body, totals: { USD: '14', EUR: '1' } }, key);
  expect(again).toMatchObject({ status: 201, body: first.body });
});

test('a partner lists its own latest statements, the latest month first, in pages', async () => {
  await state({ month: '2026-07', count: 1, totals: { USD: '7' } }, other);
  const all = await caller.get('/api/v1/feeds');
  expect(all.body).toMatchObject([
    { month: '2026-07', agrees: true },
    { month: '2026-06', complete: false },
  ]);
  const page = await caller.get('/api/v1/feeds?limit=1');
  expect(page.body).toHaveLength(1);
  expect(page.headers.get('link')).toContain('/api/v1/feeds?limit=1&cursor=2026-07');
  expect((await caller.get('/api/v1/feeds?cursor=2026-07')).body).toMatchObject([{ month: '2026-06' }]);
  expect((await caller.get('/api/v1/feeds?month=2026-07')).body).toMatchObject([{ month: '2026-07', count: 2 }]);
  expect((await caller.get('/api/v1/feeds?month=2026-01')).body).toEqual([]);
  expect((await other.get('/api/v1/feeds')).body).toMatchObject([{ month: '2026-07', count: 1 }]);
});

test.each([
  [{ month: '2026-7', count: 1, totals: {} }, 'month'],
  [{ month: '2026-07', count: -1, totals: {} }, 'count'],
  [{ month: '2026-07', count: 1.5, totals: {} }, 'count'],
  [{ month: '2026-07', count: 1, totals: { XXL: '1' } }, 'totals.XXL'],
  [{ month: '2026-07', count: 1, totals: { USD: '1.001' } }, 'totals.USD'],
  [{ month: '2026-07', count: 1, totals: { USD: '1e3' } }, 'totals.USD'],
  [{ month: '2026-07', count: 1 }, 'totals'],
  [{ month: '2026-07', count: 1, totals: {}, rows: 1 }, 'rows'],
])('%j is refused by its field', async (body, path) => {
  const before = await statements();
  expect(await state(body)).toMatchObject({ status: 400, body: { code: 'request_invalid', problems: [{ path }] } });
  expect(await statements()).toBe(before);
});

test('a month that has not begun is refused', async () => {
  expect(await state({ month: '2026-09', count: 0, totals: {} })).toMatchObject({
    status: 422,
    body: { code: 'month_not_begun', month: '2026-09' },
  });
});
