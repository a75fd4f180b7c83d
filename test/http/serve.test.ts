/** `reckoner serve` as operations runs it: a process that listens, tells how it is, and stops without losing anything. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { commit, packageVersion } from '../../src/package.ts';
import type { Credentials } from '../../src/partners/clients.ts';
import { storeEvents } from '../../src/payments/processor-events/store.ts';
import { makeLinks, stripePayment } from '../payments/stripe-events.ts';
import { share } from '../splits/balance-transactions.ts';
import { LEDGER_LOCK } from '../support/locks.ts';
import { command, compiled, job } from '../support/program.ts';
import { ask, callerWith, PRICED } from '../support/service.ts';
import { startStripe } from '../support/stripe/stand-in.ts';
import { has, tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
const children: ChildProcess[] = [];
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED)]);
});
afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
});
afterAll(() => world.end());

const env = () => ({ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl });

const serve = (...args: string[]) => serveWith({}, ...args);

async function serveWith(more: Record<string, string>, ...args: string[]) {
  const program = compiled('src/cli/reckoner.js');
  const child = spawn(process.execPath, [program, 'serve', '--port', '0', ...args], {
    env: { ...process.env, ...env(), ...more },
  });
  children.push(child);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  await expect.poll(() => stdout, { timeout: 60_000 }).toContain('http://');
  const url = /http:\/\/[\d.:]+\d/.exec(stdout)?.[0] ?? '';
  return { child, url, stdout: () => stdout, stderr: () => stderr };
}

const client = async () => (await command(['--json', 'client', 'create', 'p-1'], { env: env() })).json() as Credentials;

test('prints its address, answers the health checks, and serves metrics', async () => {
  const { url, stdout, child } = await serve();
  expect(stdout()).toMatch(/^Listening on http:\/\/127\.0\.0\.1:\d+ \(sandbox\)\. Press Ctrl-C to stop\.\n$/);
  expect((await ask(`${url}/healthz`)).body).toEqual({ status: 'ok', version: packageVersion, commit });
  expect((await ask(`${url}/readyz`)).body).toEqual({ status: 'ready' });
  const caller = await callerWith(url, await client());
  const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
  for (const _ of [1, 2]) await caller.get(`/api/v1/quote/${made.body['quote_id']}/accept`);
  await world.rows([quote({ accepted_at: '2026-06-03T12:00:00Z' })]);
  await world.close('2026-06');
  await world.sql(
    `INSERT INTO job_runs (job, started_at, finished_at, exit_status)
     VALUES ('verify', now(), now() - interval '4 days', 0), ('verify', now(), now() - interval '3 days', 4)`,
  );
  const { text } = await ask(`${url}/metrics`);
  for (const line of [
    'reckoner_acceptances_total{kind="quote"} 2',
    'reckoner_token_exchanges_total{result="issued"} 1',
    'reckoner_deliveries{status="pending"} 1',
    'reckoner_delivery_queue_depth 1',
    'reckoner_open_entries 1',
    `reckoner_http_request_duration_seconds_count{method="GET",route="/api/v1/quote/:quote_id/accept",status="200"} 2`,
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  expect(Number(/^reckoner_last_close_timestamp_seconds (\S+)/m.exec(text)?.[1])).toBeGreaterThan(1_700_000_000);
  const daysSince = (metric: string) =>
    (Date.now() / 1000 - Number(new RegExp(`^reckoner_job_${metric}\\{name="verify"\\} (\\S+)`, 'm').exec(text)?.[1])) /
    86_400;
  expect(daysSince('last_run_timestamp_seconds')).toBeCloseTo(3, 1);
  expect(text).toContain('reckoner_job_last_exit_status{name="verify"} 4\n');
  expect(daysSince('last_success_timestamp_seconds')).toBeCloseTo(4, 1);
  if (has('promtool')) {
    // It names what breaks Prometheus's conventions.
    expect(execFileSync(tool('promtool'), ['check', 'metrics'], { input: text, encoding: 'utf8' })).toBe('');
  }
  for (const file of ['deploy/prometheus/reckoner.rules.yml', 'deploy/grafana/reckoner.json']) {
    const names = readFileSync(join(import.meta.dirname, '../..', file), 'utf8').match(
      /\b(reckoner|nodejs|process)_[a-z_]+/g,
    );
    const served = (name: string) => text.includes(`# TYPE ${name.replace(/_(bucket|count|sum)$/, '')} `);
    expect(names?.length).toBeGreaterThan(10);
    expect(names?.filter((name) => !served(name))).toEqual([]);
  }
  const viaProxy = await ask(`${url}/metrics`, { headers: { 'x-forwarded-for': '203.0.113.9' } });
  expect(viaProxy.status).toBe(403);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

/** Events that were answered 200 and came no further. */
async function paidAndUntold(key: string): Promise<string> {
  await world.rows([quote({ accepted_at: '2026-07-10T12:00:00Z' })], {});
  await world.close();
  const [invoice] = (await world.documents()).filter(
    ({ document, status }) => document === 'invoice' && status === 'open',
  );
  const { number = '', balance = '' } = invoice ?? {};
  const paid = stripePayment({ invoice: number, amount: Number(balance.replace('.', '')), key, on: '2026-08-01' });
  const events = [paid.ordered(), paid.completed(), paid.intentSucceeded()];
  await makeLinks(world.sql, events);
  const text = events.map((each) => `${JSON.stringify(each)}\n`);
  await world.database.transaction((tx) =>
    storeEvents(tx, { environment: world.environment }, { name: 'webhook', text: text.join('') }),
  );
  return number;
}
const statusOf = async (number: string) => (await world.documents()).find((each) => each.number === number)?.status;

test('a payment event stored before the process was killed is processed when the next one starts', async () => {
  const number = await paidAndUntold('S1');
  const { child } = await serve();
  await expect.poll(() => statusOf(number), { timeout: 20_000 }).toBe('paid');
  child.kill('SIGTERM');
  await once(child, 'exit');
});

test('and by the jobs, if no server runs', async () => {
  world.at('2026-09-02T10:00:00Z');
  const number = await paidAndUntold('S2');
  const ran = await job('deliver', { env: { ...env(), RECKONER_NOW: '2026-09-02T11:00:00Z' } });
  expect(ran.status).toBe(0);
  expect(await statusOf(number)).toBe('paid');
  expect(ran.stderr).toContain('events of the processor');
});

test('with --json prints one JSON document and logs each request to stderr without page addresses', async () => {
  const { url, stdout, stderr, child } = await serve('--json');
  expect(JSON.parse(stdout())).toEqual({ listening: url });
  await ask(`${url}/pay/${'s'.repeat(32)}`, { headers: { authorization: 'Bearer top-secret' } });
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([0, null]);
  const lines = stderr()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.at(-1)).toMatchObject({
    level: 'info',
    method: 'GET',
    route: '/pay/:token',
    status: 404,
    msg: 'answered',
  });
  expect(stderr()).not.toMatch(/top-secret|ssss/);
});

test('on a stop signal it finishes running requests and accepts no new ones', async () => {
  const { url, child } = await serve();
  const caller = await callerWith(url, await client());
  const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
  const path = `/api/v1/quote/${made.body['quote_id']}/accept`;
  // The acceptance waits for the ledger while the process is asked to stop.
  const [answer, exit] = await world.database.transaction(async (tx) => {
    await tx.knex.raw(LEDGER_LOCK);
    const accepting = caller.get(path);
    await expect
      .poll(
        async () =>
          (
            await world.sql(
              `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database() AND l.relation = 'ledger_gate'::regclass AND NOT granted`,
            )
          ).length,
      )
      .toBe(1);
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await expect
      .poll(() =>
        fetch(`${url}/healthz`).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(0);
    return [accepting, exited] as const;
  });
  expect((await answer).status).toBe(200);
  expect(await exit).toEqual([0, null]);
  expect(await world.sql(`SELECT FROM ledger_rows WHERE quote_id = $1`, [made.body['quote_id']])).toHaveLength(1);
});

test('killed during acceptances, it has recorded each in full or not at all', async () => {
  const { url, child } = await serve();
  const caller = await callerWith(url, await client());
  const ids = await Promise.all(
    Array.from(
      { length: 30 },
      async () =>
        (await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' })).body[
          'quote_id'
        ] as string,
    ),
  );
  const answers = ids.map((id) =>
    caller.get(`/api/v1/quote/${id}/accept`).then(
      ({ status }) => status,
      () => 0,
    ),
  );
  setTimeout(() => child.kill('SIGKILL'), 25);
  const statuses = await Promise.all(answers);
  const recorded = await world.sql<{ quote_id: string; accepted: boolean }>(
    `SELECT e.quote_id, a.quote_id IS NOT NULL AS accepted FROM ledger_rows e LEFT JOIN quote_acceptances a USING (quote_id) WHERE e.quote_id = ANY ($1)`,
    [ids],
  );
  // Whoever was told so is in the ledger, once; nobody is there half.
  expect(recorded.filter(({ accepted }) => !accepted)).toEqual([]);
  expect(new Set(recorded.map(({ quote_id }) => quote_id)).size).toBe(recorded.length);
  ids.forEach((id, index) => {
    if (statuses[index] === 200) expect(recorded.map(({ quote_id }) => quote_id)).toContain(id);
  });
  const again = await serve();
  const back = await callerWith(again.url, caller.credentials);
  for (const id of ids) expect((await back.get(`/api/v1/quote/${id}/accept`)).status).toBe(200);
  expect(await world.sql(`SELECT FROM ledger_rows WHERE quote_id = ANY ($1)`, [ids])).toHaveLength(30);
});

test('clients are listed with their live secrets’ dates, and each secret is shown only once', async () => {
  const made = await client();
  expect(made).toEqual({
    partner_id: 'p-1',
    client_id: expect.any(String) as string,
    client_secret: expect.any(String) as string,
  });
  const rotated = await command(['client', 'rotate', made.client_id], { env: env() });
  expect([rotated.status, rotated.stdout]).toEqual([
    0,
    expect.stringContaining('client_secret  rk_sandbox_') as string,
  ]);
  const list = async () =>
    (
      (await command(['--json', 'client', 'list', 'p-1'], { env: env() })).json() as {
        client_id: string;
        secrets: unknown[];
        revoked_at: string | null;
      }[]
    ).find(({ client_id }) => client_id === made.client_id);
  expect((await list())?.secrets).toHaveLength(2);
  expect((await command(['client', 'revoke', made.client_id], { env: env() })).status).toBe(0);
  expect(await list()).toMatchObject({ secrets: [], revoked_at: expect.any(String) as string });
  const people = await command(['client', 'list'], { env: env() });
  expect(people.stdout).not.toContain(made.client_secret);
  expect(Math.max(...people.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
});

test('a webhook of a connected account makes the account be read, once however often it arrives', async () => {
  const stripe = await startStripe();
  await world.partners([
    partner({
      ...{ partner_id: 'p-split', arrangement: 'connected_account', connected_account_id: 'acct_1' },
      ...{ merchant_of_record: 'platform', split: 'real_time' },
    }),
  ]);
  await world.rows([quote({ partner_id: 'p-split', quote_id: 'q-split', accepted_at: '2026-07-10T12:00:00Z' })]);
  const came = share(700, '2026-07-10T12:00:05Z', { quote_id: 'q-split' });
  stripe.state.balanceTransactions.set(came.id, { ...came });
  const { url, child, stderr } = await serveWith({
    ...{ STRIPE_WEBHOOK_SECRET_acct_1: 'whsec_1', STRIPE_WEBHOOK_SECRET_acct_other: 'whsec_2' },
    ...{ STRIPE_SECRET_KEY_acct_1: 'sk_test_acct1', STRIPE_API_BASE: stripe.url },
  });
  const tell = (id: string, account: string) => {
    const at = Math.floor(Date.now() / 1000);
    const body = JSON.stringify({
      ...{ id, object: 'event', type: 'charge.succeeded', created: at, livemode: false },
      data: { object: came.source },
    });
    const signature = createHmac('sha256', account === 'acct_1' ? 'whsec_1' : 'whsec_2')
      .update(`${at}.${body}`)
      .digest('hex');
    const headers = { 'content-type': 'application/json', 'stripe-signature': `t=${at},v1=${signature}` };
    return ask(`${url}/webhooks/stripe?account=${account}`, { method: 'POST', headers, body });
  };
  const found = () => world.sql(`SELECT quote_id, amount::text, matched_by FROM share_allocations`);
  expect((await tell('evt_1', 'acct_1')).status).toBe(200);
  await expect.poll(found, { timeout: 60_000 }).toEqual([{ quote_id: 'q-split', amount: '7', matched_by: 'metadata' }]);
  // Again, another of the same payment, and one of an account that is none of ours.
  for (const [id, account] of [
    ['evt_1', 'acct_1'],
    ['evt_2', 'acct_1'],
    ['evt_3', 'acct_other'],
  ] as const) {
    expect((await tell(id, account)).status).toBe(200);
  }
  await expect.poll(() => stderr().match(/account read/g)?.length, { timeout: 60_000 }).toBe(2);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
  expect(await found()).toHaveLength(1);
  expect(await world.sql(`SELECT FROM payments WHERE account = 'acct_1'`)).toEqual([]);
  expect(
    await world.sql(`SELECT count(*)::int AS events, count(o.*)::int AS told FROM processor_events e
                     LEFT JOIN processor_event_outcomes o USING (processor_event_id)
                     WHERE e.account <> ''`),
  ).toEqual([{ events: 3, told: 3 }]);
  await stripe.close();
});
