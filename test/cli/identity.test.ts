/** Who did it: once there are users, whatever changes something leaves its user in its audit event. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storeEvents } from '../../src/payments/processor-events/store.ts';
import { makeLinks, stripePayment } from '../payments/stripe-events.ts';
import { makeDatabase } from '../support/databases.ts';
import { command, compiled, job, type Ran } from '../support/program.ts';
import { PRICED, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const ADA = 'ada@issuer.example';
const MARA = 'mara@issuer.example';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED), partner({ partner_id: 'p-2' })]);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  await run(['user', 'invite', ADA, '--no-mail'], {});
  await run(['--by', ADA, 'user', 'invite', MARA, '--role', 'finance', '--role', 'approver', '--no-mail'], {});
});
afterAll(() => world.end());

const NOW = '2026-09-02T10:00:00Z';
const environment = () => ({ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: NOW });

async function run(args: readonly string[], env: Record<string, string> = { RECKONER_USER: ADA }): Promise<Ran> {
  const ran = await command(['--json', ...args], { env: { ...environment(), ...env } });
  if (ran.status !== 0 && ran.status !== 4)
    throw new Error(`${args.join(' ')}: ${ran.status} ${ran.stderr}${ran.stdout}`);
  return ran;
}

interface Event {
  readonly action: string;
  readonly via: string;
  readonly claimed_by: string | null;
  readonly login: string | null;
}
const latest = async () => Number((await world.sql(`SELECT max(event_id) AS id FROM audit_events`))[0]?.['id']);
/** The events of some work. */
async function eventsOf(work: () => Promise<unknown>): Promise<readonly Event[]> {
  const before = await latest();
  await work();
  return world.sql(
    `SELECT e.action, e.via, personal(e.claimed_by) AS claimed_by, personal(u.login) AS login FROM audit_events e LEFT JOIN users u USING (user_id)
     WHERE e.event_id > $1 ORDER BY e.event_id`,
    [before],
  );
}

test('a command that is no action asks for its role as well', async () => {
  const before = await latest();
  for (const [user, ...args] of [
    [MARA, 'resume'],
    [MARA, 'purge'],
    [ADA, 'processor', 'poll'],
  ]) {
    const ran = await command(args, { env: { ...environment(), RECKONER_USER: user ?? '' } });
    expect([args, ran.status, / does not have the role /.test(ran.stderr)]).toEqual([args, 3, true]);
  }
  expect(await latest()).toBe(before);
});

test('a command that changes something is refused without a user, with the cure, and changes nothing', async () => {
  const before = await latest();
  for (const env of [{}, { RECKONER_USER: 'nobody@issuer.example' }]) {
    for (const args of [
      ['resume'],
      ['invoice', 'void', 'INV-2026-000001', '--reason', 'a test'],
      ['user', 'invite', 'eve@issuer.example'],
      ['deliver', '--retry', 'failed'],
      ['purge'],
    ]) {
      const ran = await command(args, { env: { ...environment(), ...env } });
      expect([args, ran.status, /Set --by or RECKONER_USER/.test(ran.stderr)]).toEqual([args, 2, true]);
    }
  }
  expect(await latest()).toBe(before);
});

/** What somebody who is called at night looks at first, and the lists of every group. */
const READING: readonly (readonly string[])[] = [
  ['status'],
  ['invoice', 'list'],
  ['invoice', 'show', 'INV-2026-000001'],
  ['invoice', 'link', 'INV-2026-000001'],
  ['partner', 'list'],
  ['payment', 'exceptions'],
  ['payment', 'accounts'],
  ['client', 'list'],
  ['webhook', 'list'],
  ['webhook', 'show', 'p-1'],
  ['user', 'list'],
  ['user', 'show', ADA],
  ['user', 'sessions'],
  ['work', 'list'],
  ['approval', 'list'],
  ['security', 'list'],
  ['reconcile', '2026-07'],
  ['report', 'aging'],
];

test('what only reads runs without a user, and leaves nothing', async () => {
  const before = await latest();
  for (const args of READING) {
    const ran = await command(args, { env: environment() });
    const isRead = [0, 4].includes(ran.status ?? 1) || /^Partner p-1 has no webhook/.test(ran.stderr);
    expect([args, isRead || ran.stderr]).toEqual([args, true]);
  }
  expect(await latest()).toBe(before);
});

test('whoever is on call pauses without a user; the pause is of cron, and resuming it takes an administrator', async () => {
  const events = await eventsOf(async () => {
    const ran = await command(['pause', '--reason', 'numbers look wrong'], { env: environment() });
    expect(ran).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('The ledger is paused: numbers look wrong.'),
    });
    expect((await command(['resume'], { env: environment() })).status).toBe(2);
    await run(['resume']);
    await run(['verify']);
  });
  expect(events).toEqual([
    { action: 'ledger.pause', via: 'command', claimed_by: 'cron', login: 'cron' },
    { action: 'ledger.resume', via: 'command', claimed_by: ADA, login: ADA },
  ]);
});

test('commands leave their user, by --by before RECKONER_USER', async () => {
  const number = (await world.documents())[0]?.number ?? '';
  const rows = join(world.home, 'rows.ndjson');
  writeFileSync(rows, `${JSON.stringify(quote({ accepted_at: '2026-09-01T12:00:00Z' }))}\n`);
  const settings = join(world.home, 'settings.json');
  const given = JSON.parse(readFileSync(settings, 'utf8')) as object;
  writeFileSync(settings, JSON.stringify({ ...given, reminders: [-3, 5] }));
  const commands: readonly (readonly string[])[] = [
    ['pause', '--reason', 'a test'],
    ['resume'],
    ['ledger', 'import', rows],
    ['invoice', 'hold', number],
    ['invoice', 'release', number],
    ['client', 'create', 'p-1'],
    ['checkpoint', 'take'],
    ['purge'],
    ['deliver'],
  ];
  const events = await eventsOf(async () => {
    for (const args of commands) await run(['--by', MARA, ...args]).catch(async () => run(args));
    await run(['user', 'role', MARA, '--grant', 'viewer']);
    await run(['user', 'sign-out', MARA]);
  });
  expect(events.map(({ action }) => action)).toEqual(
    expect.arrayContaining([
      'settings.change',
      'ledger.pause',
      'ledger.import',
      'invoice.hold',
      'client.create',
      'user.role',
    ]),
  );
  expect(events.filter(({ login }) => login !== ADA && login !== MARA)).toEqual([]);
  expect(events.find(({ action }) => action === 'invoice.hold')).toMatchObject({ login: MARA, claimed_by: MARA });
});

test('the user of the jobs cannot be deactivated: no job would run any more', async () => {
  const ran = await command(['--by', ADA, 'user', 'deactivate', 'cron'], { env: environment() });
  expect([ran.status, ran.stderr]).toEqual([2, expect.stringContaining("is the jobs' user and cannot be deactivated")]);
});

test('jobs, a nightly backup and what serve does by itself are the user cron', async () => {
  const events = await eventsOf(async () => {
    for (const name of ['month-close', 'deliver', 'remind', 'watch', 'purge', 'verify', 'reconcile']) {
      const ran = await job(name, { env: environment() });
      expect([name, [0, 4].includes(ran.status ?? 1)]).toEqual([name, true]);
    }
    await run(['backup', world.home, '--keep', '3'], {});
    world.at(NOW);
    await paid('S1');
    const serving = spawn(process.execPath, [compiled('src/cli/reckoner.js'), 'serve', '--port', '0'], {
      env: { ...process.env, ...environment() },
      stdio: 'ignore',
    });
    const applied = () => world.sql(`SELECT FROM audit_events WHERE action LIKE 'payment.%' AND via = 'http'`);
    await expect.poll(async () => (await applied()).length, { timeout: 60_000 }).toBeGreaterThan(0);
    serving.kill('SIGTERM');
  });
  expect(events.filter(({ login }) => login !== 'cron')).toEqual([]);
  expect(new Set(events.map(({ via }) => via))).toEqual(new Set(['job', 'command', 'http']));
});

/** Stores the events of a payment that nobody has processed. */
async function paid(key: string): Promise<void> {
  const invoice = (await world.documents()).find(({ status, document }) => status === 'open' && document === 'invoice');
  const { number = '', balance = '' } = invoice ?? {};
  const payment = stripePayment({ invoice: number, amount: Number(balance.replace('.', '')), key, on: '2026-09-01' });
  const events = [payment.ordered(), payment.completed(), payment.intentSucceeded()];
  await makeLinks(world.sql, events);
  const text = events.map((each) => `${JSON.stringify(each)}\n`).join('');
  await world.database.transaction((tx) =>
    storeEvents(tx, { environment: world.environment }, { name: 'webhook', text }),
  );
}

test('a call of a partner leaves its client, which is no user', async () => {
  const served = await serveWorld(world);
  const caller = await served.caller('p-1');
  const before = await latest();
  const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
  const id = String(made.body['quote_id']);
  expect((await caller.get(`/api/v1/quote/${id}/accept`)).status).toBe(200);
  const reversed = await caller.post(`/api/v1/quote/${id}/reverse`, { reversal_id: 'r-1' });
  expect([reversed.status, reversed.text.slice(0, 200)]).toEqual([201, reversed.text.slice(0, 200)]);
  await served.end();
  const events = await world.sql(
    `SELECT action, via, user_id, details->>'client_id' AS client FROM audit_events WHERE event_id > $1 ORDER BY event_id`,
    [before],
  );
  const own = { via: 'http', user_id: null, client: caller.credentials.client_id };
  expect(events).toEqual([
    { action: 'quote.accept', ...own },
    { action: 'quote.reverse', ...own },
  ]);
});

test('a restored database has the restore by its own user, and goes without one where it has none', async () => {
  const file = join(world.home, 'kept.backup');
  await run(['--by', ADA, 'backup', file], {});
  for (const [by, login] of [
    [ADA, ADA],
    ['nobody@issuer.example', null],
  ] as const) {
    const target = await makeDatabase('restored');
    await run(['--by', by, 'restore', file], { RECKONER_HOME: world.home, DATABASE_URL: target.url });
    const reader = new pg.Client(target.url);
    await reader.connect();
    const { rows } = await reader.query(
      `SELECT personal(e.claimed_by) AS claimed_by, personal(u.login) AS login FROM audit_events e LEFT JOIN users u USING (user_id)
       WHERE e.action = 'database.restore'`,
    );
    await reader.end();
    expect(rows).toEqual([{ claimed_by: by, login }]);
    await target.drop();
  }
});
