/**
 * Acceptances a second and their 99th percentile over 16 connections, beside the same ledger insert by a bare pg loop over
 * 16 connections in the same run. RECKONER_BENCH=1 npx vitest run test/bench/acceptances.test.ts
 */
import http from 'node:http';
import pg from 'pg';
import { expect, test } from 'vitest';
import { PRICED, serveWorld } from '../support/service.ts';
import { openWorld, partner } from '../support/world.ts';

const CONNECTIONS = 16;
const ACCEPTANCES = 4000;

async function timed(
  count: number,
  work: (worker: number) => Promise<void>,
): Promise<{ perSecond: number; p99: number }> {
  const took: number[] = [];
  let left = count;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, worker) => {
      while (left > 0) {
        left -= 1;
        const at = performance.now();
        await work(worker);
        took.push(performance.now() - at);
      }
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  took.sort((one, other) => one - other);
  return {
    perSecond: Math.round(count / seconds),
    p99: Math.round((took[Math.floor(took.length * 0.99)] ?? 0) * 10) / 10,
  };
}

test.skipIf(!process.env['RECKONER_BENCH'])(
  'acceptances beside a bare insert',
  async () => {
    const world = await openWorld();
    await world.partners([partner(PRICED)]);
    const served = await serveWorld(world, {
      settings: { http: { ...world.settings.http, requests_per_minute: 10_000_000 } },
    });
    const caller = await served.caller('p-1');
    const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    const headers = { authorization: `Bearer ${caller.token}`, 'x-service-partner-id': 'p-1' };
    const get = (path: string) =>
      new Promise<number>((resolve, reject) => {
        http
          .get(`${served.url}${path}`, { agent, headers }, (answer) => {
            answer.resume().on('end', () => resolve(answer.statusCode ?? 0));
          })
          .on('error', reject);
      });
    // Quotes as the API makes them, set-based.
    await world.sql(
      `INSERT INTO quotes SELECT 'q-bench-' || n, 'p-1', $1, 'ticket-protection', 'USD', 250, 0.085, 2, 0.30, 21.25, 6.38, 14.87, now()
     FROM generate_series(1, $2::int) AS n`,
      [caller.credentials.client_id, ACCEPTANCES + 200],
    );
    let next = 0;
    const accept = async () => {
      next += 1;
      expect(await get(`/api/v1/quote/q-bench-${next}/accept`)).toBe(200);
    };
    await timed(200, accept);
    const cpu = process.cpuUsage();
    const ours = await timed(ACCEPTANCES, accept);
    const used = process.cpuUsage(cpu);
    const milliseconds = Math.round((used.user + used.system) / ACCEPTANCES / 10) / 100;

    const clients = await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        const client = new pg.Client(world.databaseUrl);
        await client.connect();
        return client;
      }),
    );
    let bare = 0;
    const insert = async (worker: number) => {
      bare += 1;
      await clients[worker]?.query(
        `INSERT INTO entries (partner_id, posted_month, kind, quote_id, enrollment_id, policy_id, currency, accepted_at, spot_price,
         partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at)
       VALUES ('p-1', '2026-08', 'quote_accepted', $1, $2, 'ticket-protection', 'USD', now(), 21.25, 6.38, 14.87,
         'America/New_York', '2026-08', 'invoicing', now())`,
        [`bare-${bare}`, `e-${bare}`],
      );
    };
    await timed(200, insert);
    const loop = await timed(ACCEPTANCES, insert);
    process.stdout.write(
      `acceptances over HTTP: ${ours.perSecond}/s, p99 ${ours.p99} ms, ${milliseconds} ms of CPU each (client and server)\nbare insert by pg:     ${loop.perSecond}/s, p99 ${loop.p99} ms\n`,
    );
    for (const client of clients) await client.end();
    await served.end();
    await world.end();
  },
  600_000,
);
