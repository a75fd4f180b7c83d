/** Files that are made to cost: the server refuses each, answers others meanwhile, and lives with a small heap. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMINISTRATOR, alertOf, Browser, invite } from '../support/console.ts';
import { compiled } from '../support/program.ts';
import { openWorld, partner, type World } from '../support/world.ts';

/** Below what MemoryMax of jobs/systemd leaves. */
const HEAP = '--max-old-space-size=768';
const FINANCE = 'fay@issuer.example';
/** Finance of one partner, who may import no partner. */
const NARROW = 'nfin@issuer.example';
/** Beside what a harmless upload of that size costs on this machine now. Each of these stopped the server for longer. */
const LONGEST_MS = 1000;
const TIMES_HARMLESS = 3;

let world: World;
let server: ChildProcess | undefined;
let url: string;
const browsers = new Map<string, Browser>();

beforeAll(async () => {
  world = await openWorld();
  const connected = { arrangement: 'connected_account', connected_account_id: 'acct_1' } as const;
  const split = { merchant_of_record: 'platform', split: 'real_time', connected_account_type: 'standard' } as const;
  await world.partners([partner(), partner({ partner_id: 'p-2', ...connected, ...split })]);
  const settings = join(world.home, 'settings.json');
  const columns = { date: 'date', amount: 'amount', text: ['text'] };
  const changed = { public_url: 'http://127.0.0.1', bank_csv: { plain: { columns, account: 'DE1', currency: 'EUR' } } };
  writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, 'utf8')), ...changed }));
  await invite(world, ADMINISTRATOR);
  const links = {
    [FINANCE]: await invite(world, FINANCE, { roles: ['finance'] }),
    [NARROW]: await invite(world, NARROW, { roles: ['finance'], partnerId: 'p-1' }),
  };
  const child = spawn(process.execPath, [compiled('src/cli/reckoner.js'), '--json', 'serve', '--port', '0'], {
    env: {
      ...{ ...process.env, RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, NODE_OPTIONS: HEAP },
      // The links are new.
      RECKONER_NOW: world.environment.now().toISO(),
    },
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
});
afterAll(async () => {
  server?.kill('SIGKILL');
  await world.end();
});

/** Does the work, and gives the longest that anybody waited for /healthz meanwhile. */
async function longestWait(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let isDone = false;
  const asking = (async () => {
    while (!isDone) {
      const began = performance.now();
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      longest = Math.max(longest, performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  await work().finally(() => {
    isDone = true;
  });
  await asking;
  return longest;
}

/**
 * The longest delay of the server's event loop while the work is done, by its own metric, which starts anew with each
 * reading. A reading less than a second old is given again.
 */
async function longestDelay(work: () => Promise<void>): Promise<number> {
  const read = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const text = await (await fetch(`${url}/metrics`)).text();
    return 1000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1]);
  };
  await read();
  await work();
  return read();
}

let harmless = 0;
test('a harmless file of that size is refused', async () => {
  const browser = browsers.get(FINANCE) as Browser;
  harmless = await longestWait(async () => {
    const file = new File(['x'.repeat(3_900_000)], 'a.dat');
    const page = await browser.upload('/console/actions/payment.import', { step: 'preview' }, { file });
    expect([page.status, alertOf(page)]).toEqual([422, expect.stringContaining('Cannot recognize the format')]);
  });
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
    let wait = 0;
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
    const delay = await longestDelay(async () => {
      wait = await longestWait(upload);
    });
    console.info(`${name} ${action}: the event loop was delayed by at most ${Math.round(delay)} ms`);
    expect(delay).toBeLessThan(LONGEST_MS);
    expect(wait).toBeLessThan(LONGEST_MS + TIMES_HARMLESS * harmless);
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
