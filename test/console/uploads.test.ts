/** Files that are made to cost: the server refuses each, answers others meanwhile, and lives with a small heap. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Credentials } from '../../src/partners/clients.ts';
import { ADMINISTRATOR, alertOf, Browser, invite } from '../support/console.ts';
import { command, compiled } from '../support/program.ts';
import { type Caller, callerWith, PRICED } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

/** Below what MemoryMax of jobs/systemd leaves. */
const HEAP = '--max-old-space-size=768';
const FINANCE = 'fay@issuer.example';
/** Finance of one partner, who may import no partner. */
const NARROW = 'nfin@issuer.example';
/**
 * The longest that the event loop may work without a pause, in CPU time, which other programs on this machine do not
 * lengthen. Each of these files stopped the server for seconds.
 */
const LONGEST_TURN_MS = 50;
/** By the clock, which they do: beside what a harmless upload of that size costs on this machine now. */
const LONGEST_MS = 1000;
const TIMES_HARMLESS = 3;

let world: World;
let server: ChildProcess | undefined;
let url: string;
let caller: Caller;
let turns: string;
const browsers = new Map<string, Browser>();

beforeAll(async () => {
  world = await openWorld();
  // The server has the clock of this machine, and the links are new.
  world.at(new Date().toISOString());
  const connected = { arrangement: 'connected_account', connected_account_id: 'acct_1' } as const;
  const split = { merchant_of_record: 'platform', split: 'real_time', connected_account_type: 'standard' } as const;
  await world.partners([partner(PRICED), partner({ partner_id: 'p-2', ...connected, ...split })]);
  const settings = join(world.home, 'settings.json');
  const columns = { date: 'date', amount: 'amount', text: ['text'] };
  const changed = { public_url: 'http://127.0.0.1', bank_csv: { plain: { columns, account: 'DE1', currency: 'EUR' } } };
  writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, 'utf8')), ...changed }));
  await invite(world, ADMINISTRATOR);
  const links = {
    [FINANCE]: await invite(world, FINANCE, { roles: ['finance'] }),
    [NARROW]: await invite(world, NARROW, { roles: ['finance'], partnerId: 'p-1' }),
  };
  turns = join(world.home, 'turns');
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl };
  const measured = ['--import', join(import.meta.dirname, '../support/longest-turn.mjs')];
  const program = [...measured, compiled('src/cli/reckoner.js'), '--json', 'serve', '--port', '0'];
  const child = spawn(process.execPath, program, {
    env: { ...process.env, ...env, NODE_OPTIONS: HEAP, RECKONER_TURNS: turns },
  });
  server = child;
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  url = (JSON.parse(said.toString()) as { listening: string }).listening;
  for (const [login, link] of Object.entries(links)) {
    const browser = new Browser(url);
    expect((await browser.post(link)).status).toBe(303);
    expect((await browser.get('/console/account')).status).toBe(200);
    browsers.set(login, browser);
  }
  const client = await command(['--json', '--by', ADMINISTRATOR, 'client', 'create', 'p-1'], { env });
  caller = await callerWith(url, client.json() as Credentials);
});
afterAll(async () => {
  server?.kill('SIGKILL');
  await world.end();
});

interface Waits {
  /** The longest that anybody waited for /healthz. */
  readonly health: number;
  /** How long each acceptance took. */
  readonly acceptances: readonly number[];
}

/** Does the work. Meanwhile partners' customers accept, and a probe asks for the health: nobody is refused. */
async function beside(work: () => Promise<void>): Promise<Waits> {
  let health = 0;
  const acceptances: number[] = [];
  let isDone = false;
  const timed = async (ask: () => Promise<{ readonly status: number }>) => {
    const began = performance.now();
    expect((await ask()).status).toBe(200);
    return performance.now() - began;
  };
  const untilDone = async (step: () => Promise<void>) => {
    while (!isDone) {
      await step();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const asking = untilDone(async () => {
    health = Math.max(health, await timed(() => fetch(`${url}/healthz`)));
  });
  const accepting = untilDone(async () => {
    const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
    expect(made.status).toBe(201);
    acceptances.push(await timed(() => caller.get(`/api/v1/quote/${made.body['quote_id']}/accept`)));
  });
  await work().finally(() => {
    isDone = true;
  });
  await Promise.all([asking, accepting]);
  return { health, acceptances };
}

/** The longest turn of the server's event loop while the work is done, in milliseconds of CPU time. */
async function longestTurn(work: () => Promise<void>): Promise<number> {
  const read = async (): Promise<number> => {
    writeFileSync(turns, '');
    server?.kill('SIGUSR2');
    await expect.poll(() => readFileSync(turns, 'utf8'), { interval: 5 }).not.toBe('');
    return Number(readFileSync(turns, 'utf8'));
  };
  await read();
  await work();
  return read();
}

const at = (share: number, sorted: readonly number[]) => Math.round(sorted[Math.floor(share * sorted.length)] ?? 0);

let harmless = 0;
test('a harmless file of that size is refused', async () => {
  const browser = browsers.get(FINANCE) as Browser;
  const { health } = await beside(async () => {
    const file = new File(['x'.repeat(3_900_000)], 'a.dat');
    const page = await browser.upload('/console/actions/payment.import', { step: 'preview' }, { file });
    expect([page.status, alertOf(page)]).toEqual([422, expect.stringContaining('Cannot recognize the format')]);
  });
  harmless = health;
});

const EMPTY_ITEMS = `[${'{},'.repeat(1_200_000)}{}]`;
const ATTRIBUTES = `<Document ${Array.from({ length: 200_000 }, (_, nth) => `a${nth}="1"`).join(' ')}/>`;
const COMMAS = ','.repeat(3_900_000);

test.each([
  ['1,200,000 empty partners of who may import none', NARROW, 'partner.import', {}, 'file', 'a.json', EMPTY_ITEMS],
  ['1,200,000 empty partners', FINANCE, 'partner.import', {}, 'file', 'a.json', EMPTY_ITEMS],
  ['1,200,000 empty events', FINANCE, 'payment.events', {}, 'file', 'a.ndjson', '{}\n'.repeat(1_200_000)],
  ['1,000,000 empty lists', FINANCE, 'processor.import', { account: 'acct_1' }, 'file', 'a', '[]\n'.repeat(1_000_000)],
  ['commas as a settlement file', FINANCE, 'processor.import', { partnerId: 'p-2' }, 'file', 'a.csv', COMMAS],
  ['commas as a bank file', FINANCE, 'payment.import', {}, 'file', 'a.csv', COMMAS],
  ['200,000 attributes', FINANCE, 'payment.import', {}, 'file', 'a.xml', ATTRIBUTES],
  ['400,000 tags in each other', FINANCE, 'payment.import', {}, 'file', 'a.xml', '<a>'.repeat(400_000)],
  ['80,000 rows', FINANCE, 'payment.import', {}, 'file', 'a.csv', '2026-10-01,1.25,payment\n'.repeat(80_000)],
  ['1,000,000 ledger rows', FINANCE, 'ledger.import', {}, 'files', 'a.ndjson', '{}\n'.repeat(1_000_000)],
  ['400,000 messages', FINANCE, 'email.bounces', {}, 'files', 'a.mbox', 'From x\n\n'.repeat(400_000)],
  ['one message of 500,000 lines', FINANCE, 'email.bounces', {}, 'files', 'a.mbox', 'From x\n'.repeat(500_000)],
] as const)(
  '%s: others are answered meanwhile',
  { timeout: 120_000 },
  async (_, login, action, fields, field, name, text) => {
    const browser = browsers.get(login) as Browser;
    let waits: Waits | undefined;
    const upload = async () => {
      const file = new File([text], name);
      const page = await browser.upload(
        `/console/actions/${action}`,
        { step: 'preview', ...fields },
        { [field]: file },
      );
      // A message that is no report is passed over, as in a mailbox.
      if (text.startsWith('From x\nFrom')) expect(page.status).toBe(200);
      else expect([page.status, alertOf(page)]).toEqual([422, expect.stringMatching(/\S/)]);
      if (login === NARROW) expect(alertOf(page)).toContain('role');
      expect(page.text.length).toBeLessThan(8 * 1024 * 1024);
    };
    let turn = LONGEST_TURN_MS;
    // A garbage collection may fall into a turn, but not into the longest one each time.
    for (let tries = 0; tries < 3 && turn >= LONGEST_TURN_MS; tries += 1) {
      turn = await longestTurn(async () => {
        waits = await beside(upload);
      });
    }
    const { health, acceptances } = waits as Waits;
    const sorted = acceptances.toSorted((one, other) => one - other);
    console.info(
      `${name} ${action}: longest turn ${Math.round(turn)} ms of CPU time; ${sorted.length} acceptances, ` +
        `p50 ${at(0.5, sorted)} ms, p99 ${at(0.99, sorted)} ms`,
    );
    expect(turn).toBeLessThan(LONGEST_TURN_MS);
    expect(Math.max(health, ...sorted)).toBeLessThan(LONGEST_MS + TIMES_HARMLESS * harmless);
    expect(server?.exitCode).toBeNull();
  },
);

/**
 * Stops the process that reads for the server, as soon as it runs its own program. Before that, the server waits for it
 * without end.
 */
async function stopReader(): Promise<void> {
  const { pid } = server as ChildProcess;
  const commandOf = (process: unknown) => readFileSync(`/proc/${process}/cmdline`, 'utf8');
  for (;;) {
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
    if (child !== undefined && commandOf(child) !== commandOf(pid)) return void process.kill(Number(child), 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('a reading that stops is refused as that, and the next upload is read', { timeout: 120_000 }, async () => {
  const browser = browsers.get(FINANCE) as Browser;
  const upload = () =>
    browser.upload(
      '/console/actions/payment.import',
      { step: 'preview' },
      { file: new File(['x'.repeat(100_000)], 'a.dat') },
    );
  const [page] = await Promise.all([upload(), stopReader()]);
  expect([page.status, alertOf(page)]).toEqual([
    422,
    expect.stringMatching(/reading a\.dat was stopped after 20 s\. .* Split it, or run the command in a shell/),
  ]);
  expect(alertOf(await upload())).toContain('Cannot recognize the format');
});
