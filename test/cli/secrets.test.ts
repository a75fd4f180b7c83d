/** Secrets stay where they were put: neither output, logs, exports nor the list of processes has one of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { newLogPem } from '../support/log-keys.ts';
import { compiled, type Ran, reckoner } from '../support/program.ts';
import { ask, callerWith, PRICED } from '../support/service.ts';
import { startStripe } from '../support/stripe/stand-in.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const NOW = '2026-08-01T10:00:00Z';
const planted = (name: string) => `planted${name}${'0123456789'.repeat(3)}`;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'pem', type: 'pkcs8' });
/** The middle of a key in PEM, which is in its first line. */
const heart = (pem: string) => pem.split('\n')[1]?.slice(20, 60) ?? '';
const logPem = newLogPem();

/** What must appear nowhere, by what it is. */
const secrets = new Map<string, string>([
  ...['Database', 'Smtp', 'Stripe', 'Connected', 'Webhook', 'ConnectedWebhook', 'Link', 'Signing'].map(
    (name) => [name, planted(name)] as const,
  ),
  ['Log', heart(logPem)],
  ['Dkim', heart(rsa.toString())],
]);
const secret = (name: string) => secrets.get(name) as string;

let world: World;
let stripe: Awaited<ReturnType<typeof startStripe>>;
let env: Record<string, string>;
let server: ChildProcess | undefined;
/** Everything that was printed or logged, by what printed it. */
const printed: [string, string][] = [];
/** What /proc showed of any process while the program ran. */
const commandLines = new Set<string>();
let watching: NodeJS.Timeout;

beforeAll(async () => {
  world = await openWorld();
  stripe = await startStripe({ now: () => new Date(NOW) });
  const settings = { ...firstSettings('sandbox'), payment_link: { provider: 'stripe' } };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  env = {
    RECKONER_HOME: world.home,
    RECKONER_NOW: NOW,
    RECKONER_DEBUG: '1',
    LOG_LEVEL: 'debug',
    STRIPE_API_BASE: stripe.url,
    // The tests' own server asks for no password.
    DATABASE_URL: world.databaseUrl.replace(/\/\/([^:@/]+)@/, `//$1:${secret('Database')}@`),
    // Nobody listens there: what cannot be sent is told.
    SMTP_URL: `smtp://reckoner:${secret('Smtp')}@127.0.0.1:1`,
    STRIPE_SECRET_KEY: `sk_test_${secret('Stripe')}`,
    STRIPE_SECRET_KEY_acct_1: `sk_test_${secret('Connected')}`,
    STRIPE_WEBHOOK_SECRET: secret('Webhook'),
    STRIPE_WEBHOOK_SECRET_acct_1: secret('ConnectedWebhook'),
    WEBHOOK_SIGNING_KEY: secret('Signing'),
    LOG_SIGNING_KEY: logPem,
    DKIM_PRIVATE_KEY: rsa.toString(),
  };
  watching = setInterval(() => {
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      try {
        commandLines.add(readFileSync(`/proc/${name}/cmdline`, 'utf8'));
      } catch {
        // It has ended.
      }
    }
  }, 100);
});
afterAll(async () => {
  clearInterval(watching);
  if (server?.exitCode === null) server.kill('SIGKILL');
  await stripe.close();
  await world.end();
});

async function run(args: readonly string[], more: Record<string, string> = {}): Promise<Ran> {
  const ran = await reckoner(args, { env: { ...env, ...more } });
  printed.push([args.join(' '), ran.stdout + ran.stderr]);
  return ran;
}
/** Prints a new secret once, on stdout, and nowhere else. */
async function told(name: string, key: string, args: readonly string[]): Promise<Record<string, string>> {
  const ran = await reckoner(['--json', ...args], { env });
  const answer = ran.json() as Record<string, string>;
  secrets.set(name, answer[key] as string);
  printed.push([args.join(' '), ran.stderr + ran.stdout.replace(answer[key] as string, '')]);
  return answer;
}
const file = (name: string, text: string) => {
  const path = join(world.home, name);
  writeFileSync(path, text);
  return path;
};
const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());

function expectNone(where: string, text: string): void {
  for (const [name, value] of secrets) expect([where, name, text.includes(value)]).toEqual([where, name, false]);
}

test('a month is imported, closed, delivered and exported, and no secret is printed', async () => {
  const partners = file('partners.json', JSON.stringify([partner(PRICED)]));
  const rows = file('rows.ndjson', `${JSON.stringify(quote({ quote_id: 'q-1' }))}\n`);
  for (const args of [['partner', 'import', partners], ['ledger', 'import', rows], ['close']]) {
    expect([args, (await run(args)).status]).toEqual([args, 0]);
  }
  await told('webhook', 'secret', ['webhook', 'set', 'p-1', '--url', 'https://127.0.0.1:1/in', '--after', '0']);
  await run(['--json', 'deliver']);
  const links = await world.sql<{ token: string }>('SELECT token FROM payment_links');
  expect(links).toHaveLength(1);
  secrets.set('payment token', links[0]?.token as string);
  mkdirSync(join(world.home, 'exports'));
  for (const kind of ['ledger', 'invoices', 'payments', 'partners', 'events', 'journal']) {
    const out = join(world.home, 'exports', kind);
    expect([kind, (await run(['export', kind, '--month', '2026-07', '--out', out])).status]).toEqual([kind, 0]);
  }
  for (const args of [
    ['status', '--json'],
    ['security', 'list'],
    ['client', 'list'],
    ['webhook', 'list'],
    ['doctor'],
  ]) {
    await run(args);
  }
});

test('the service answers good calls and bad ones, and its log has no secret', async () => {
  const credentials = await told('client secret', 'client_secret', ['client', 'create', 'p-1']);
  server = spawn(process.execPath, [compiled('src/cli/reckoner.js'), 'serve', '--port', '0'], {
    env: { ...process.env, ...env },
  });
  let log = '';
  for (const stream of [server.stdout, server.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
  }
  await expect.poll(() => log, { timeout: 60_000 }).toContain('http://');
  const url = /http:\/\/[\d.:]+\d/.exec(log)?.[0] ?? '';
  const caller = await callerWith(url, credentials as never);
  secrets.set('access token', caller.token);
  const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
  expect(made.status).toBe(201);
  const token = secret('payment token');
  const calls: [string, RequestInit, number][] = [
    [`/pay/${token}`, {}, 200],
    [`/pay/${token}/nothing`, {}, 404],
    [`/api/v1/quote?access_token=${caller.token}`, {}, 405],
    ['/api/v1/invoices', { headers: { authorization: `Bearer ${caller.token}x` } }, 401],
    ['/webhooks/stripe', { method: 'POST', headers: { 'stripe-signature': secret('Webhook') }, body: '{}' }, 400],
  ];
  for (const [path, init, status] of calls)
    expect([path, (await ask(url + path, init)).status]).toEqual([path, status]);
  server.kill('SIGTERM');
  await once(server, 'exit');
  printed.push(['serve', log]);
  expect(log).toContain('/api/v1/quote');
});

test.each([
  ['DATABASE_URL', () => `mysql://reckoner:${secret('Database')}@db.example/x`],
  ['DATABASE_URL', () => `postgres://reckoner:${secret('Database')}@127.0.0.1:1/x`],
  ['SMTP_URL', () => `http://reckoner:${secret('Smtp')}@mail.example`],
  ['STRIPE_SECRET_KEY', () => `pk_test_${secret('Stripe')}`],
  ['STRIPE_SECRET_KEY', () => `sk_live_${secret('Stripe')}`],
  ['STRIPE_SECRET_KEY_acct_1', () => `sk_live_${secret('Connected')}`],
  ['STRIPE_WEBHOOK_SECRET_acct_1', () => secret('Webhook')],
  ['LOG_SIGNING_KEY', () => logPem.replace('PRIVATE', 'PUBLIC')],
  ['DKIM_PRIVATE_KEY', () => rsa.toString().replace('PRIVATE', 'PUBLIC')],
  ['WEBHOOK_SIGNING_KEY', () => 'plantedShort'],
])('a wrong %s is refused and not repeated', async (variable, value) => {
  const ran = await run(['status'], { [variable]: value() });
  expect([ran.status !== 0, ran.stdout]).toEqual([true, '']);
  expect(ran.stderr).not.toContain('plantedShort');
});

test('no secret is in what was printed, in logs, in exports or in the list of processes', () => {
  expect(secrets.size).toBe(14);
  for (const [where, text] of printed) expectNone(where, text);
  const exports = filesOf(join(world.home, 'exports'));
  expect(exports.length).toBeGreaterThan(10);
  for (const path of exports) expectNone(path, readFileSync(path, 'latin1'));
  expect([...commandLines].some((line) => line.includes('reckoner.js'))).toBe(true);
  for (const line of commandLines) expectNone('a command line', line);
});
