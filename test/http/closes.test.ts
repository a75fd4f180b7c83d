/** Acceptances while months close: each lands in one month, before the cut or after it, and is billed once. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { closeMonths } from '../../src/close/run.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { LEDGER_LOCK, untilLockAwaited } from '../support/locks.ts';
import { seeded } from '../support/random.ts';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
let closer: Database;
const zones = ['America/New_York', 'Pacific/Pago_Pago', 'Asia/Tokyo'];

beforeAll(async () => {
  world = await openWorld();
  closer = await openDatabase(world.environment);
  await world.partners(zones.map((time_zone, index) => partner({ ...PRICED, partner_id: `p-${index}`, time_zone })));
  served = await serveWorld(world, { patience: 1, poolSize: 20 });
});
afterAll(async () => {
  await served.end();
  await closer.close();
  await world.end();
});

async function quotesOf(caller: Caller, count: number): Promise<string[]> {
  const made = await Promise.all(
    Array.from({ length: count }, () =>
      caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' }),
    ),
  );
  return made.map(({ body }) => body['quote_id'] as string);
}

test('in the last millisecond of a month it belongs to that month, a millisecond later to the next', async () => {
  world.at('2026-06-30T13:00:00Z');
  const tokyo = await served.caller('p-2');
  const [last, first] = await quotesOf(tokyo, 2);
  // Midnight in Tokyo is 15:00 in UTC.
  world.at('2026-06-30T14:59:59.999Z');
  const late = await served.caller('p-2');
  expect((await late.get(`/api/v1/quote/${last}/accept`)).body['accepted_at']).toBe('2026-06-30T14:59:59.999Z');
  world.at('2026-06-30T15:00:00.000Z');
  expect((await late.get(`/api/v1/quote/${first}/accept`)).status).toBe(200);
  const rows = await world.sql(`SELECT quote_id, month, posted_month FROM ledger_rows WHERE quote_id = ANY ($1)`, [
    [last, first],
  ]);
  expect(new Map(rows.map((row) => [row['quote_id'], [row['month'], row['posted_month']]]))).toEqual(
    new Map([
      [last, ['2026-06', '2026-06']],
      [first, ['2026-07', '2026-07']],
    ]),
  );
});

test('of a closed month it posts to the earliest open month and keeps its own month', async () => {
  world.at('2026-06-30T20:00:00Z');
  const caller = await served.caller('p-0');
  const [id] = await quotesOf(caller, 1);
  await world.rows([quote({ partner_id: 'p-0', accepted_at: '2026-06-10T12:00:00Z' })]);
  world.at('2026-07-01T12:00:00Z');
  expect(await world.close('2026-06')).toEqual(['2026-06']);
  // A machine whose clock is behind: its instant is June's still.
  world.at('2026-06-30T20:30:00Z');
  expect((await caller.get(`/api/v1/quote/${id}/accept`)).status).toBe(200);
  expect(await world.sql(`SELECT month, posted_month FROM ledger_rows WHERE quote_id = $1`, [id])).toEqual([
    { month: '2026-06', posted_month: '2026-07' },
  ]);
});

test('if a close holds the ledger for too long, it answers 503 with Retry-After and records nothing', async () => {
  world.at('2026-07-20T12:00:00Z');
  const caller = await served.caller('p-0');
  const [id] = await quotesOf(caller, 1);
  const holder = new pg.Client(world.databaseUrl);
  await holder.connect();
  await holder.query('BEGIN');
  await holder.query(LEDGER_LOCK);
  const busy = await caller.get(`/api/v1/quote/${id}/accept`);
  expect(busy).toMatchObject({ status: 503, body: { code: 'ledger_busy' } });
  expect(busy.headers.get('retry-after')).toBe('5');
  // Reading and quoting go on.
  expect((await caller.get(`/api/v1/quote/${id}`)).body['status']).toBe('open');
  const waiting = caller.get(`/api/v1/quote/${id}/accept`);
  await untilLockAwaited(world);
  await holder.query('COMMIT');
  await holder.end();
  expect((await waiting).status).toBe(200);
  expect(await world.sql(`SELECT FROM ledger_rows WHERE quote_id = $1`, [id])).toHaveLength(1);
});

test('at random instants around month ends, with closes running, each is recorded once and billed once', async () => {
  const { seed, random } = seeded();
  process.stdout.write(`acceptances and closes: seed ${seed}\n`);
  for (const [month, next] of [
    ['2026-07', '2026-08'],
    ['2026-08', '2026-09'],
    ['2026-09', '2026-10'],
  ] as const) {
    // Around the end of the month in Pago Pago, the last zone: 11:00 in UTC on the first.
    const end = Date.parse(`${next}-01T11:00:00Z`);
    world.at(new Date(end - 1000).toISOString());
    const callers = await Promise.all(zones.map((_, index) => served.caller(`p-${index}`)));
    const ids = await Promise.all(callers.map((caller) => quotesOf(caller, 12)));
    const work = callers.flatMap((caller, index) =>
      (ids[index] ?? []).flatMap((id) => Array.from({ length: 1 + Math.floor(random() * 3) }, () => ({ caller, id }))),
    );
    const closes: Promise<unknown>[] = [];
    const answers: { id: string; status: number; text: string }[] = [];
    await Promise.all(
      work.map(async ({ caller, id }) => {
        await new Promise((resolve) => setTimeout(resolve, random() * 300));
        // The clock swings over the boundary while requests are under way.
        world.at(new Date(end + Math.floor((random() - 0.5) * 20)).toISOString());
        if (random() < 0.1) {
          world.at(new Date(end).toISOString());
          closes.push(closeMonths(closer, world, {}).catch((error: unknown) => error));
        }
        const { status, text } = await caller.get(`/api/v1/quote/${id}/accept`);
        answers.push({ id, status, text });
      }),
    );
    await Promise.all(closes);
    // Whoever was told to come back does, and finds it accepted or accepts it.
    world.at(new Date(end + 1000).toISOString());
    for (const { id, status } of answers.filter(({ status }) => status !== 200)) {
      expect(status).toBe(503);
      const caller = callers[ids.findIndex((own) => own.includes(id))] as Caller;
      expect((await caller.get(`/api/v1/quote/${id}/accept`)).status).toBe(200);
    }
    for (const own of ids.flat()) {
      const of = answers.filter(({ id }) => id === own);
      expect(new Set(of.filter(({ status }) => status === 200).map(({ text }) => text)).size).toBeLessThan(2);
    }
    await world.close();
    const rows = await world.sql<{ quote_id: string; entries: number; wrong: number }>(
      `SELECT quote_id, count(*)::int AS entries, count(*) FILTER (WHERE posted_month < month)::int AS wrong
       FROM ledger_rows WHERE quote_id = ANY ($1) GROUP BY quote_id`,
      [ids.flat()],
    );
    expect(rows).toHaveLength(ids.flat().length);
    expect(rows.filter(({ entries, wrong }) => entries !== 1 || wrong !== 0)).toEqual([]);
    expect(await world.sql(`SELECT max(month) AS closed FROM closed_months`)).toEqual([{ closed: month }]);
  }
  const proof = await world.verify();
  expect(proof).toMatchObject({ differences: 0 });
}, 60_000);
