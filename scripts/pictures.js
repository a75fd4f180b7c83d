/**
 * `npm run pictures`: makes the console's pictures in docs/ from the demonstration, with some work left in it. Needs
 * /usr/bin/chromium. Two options help to check the console during changes:
 *
 *   --demo FOLDER   uses the demonstration that an earlier run made in this folder, or makes one there
 *   --all FOLDER    writes every screen there instead: 1280 px light and dark, 390 px light
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { leaveWork } from '../dist/src/demo/work.js';

const root = join(import.meta.dirname, '..');
const PROGRAM = join(root, 'dist/src/cli/reckoner.js');
const PORT = '18080';
const ADDRESS = `http://localhost:${PORT}`;
const NOW = '2026-11-01T09:00:00Z';
const USER = 'mara@issuer.example';

/** The pictures of the README. */
const PICTURES = [
  { name: 'console-close', path: 'close/2026-10', colorScheme: 'light' },
  { name: 'console-receipt', path: 'payments/2', colorScheme: 'light' },
  { name: 'console-aging', path: 'aging', colorScheme: 'dark' },
];
/** Every screen, for developers who change them. */
const SCREENS = [
  ...[
    'close',
    'close/2026-10',
    'queue',
    'payments',
    'payments/all',
    'payments/lines',
    'payments/1',
    'payments/2',
    'payments/3',
  ],
  ...['invoices', 'invoices/INV-2026-000002', 'invoices/INV-2026-000009', 'invoices/CN-2026-000001'],
  ...['partners', 'partners/p-harbour-lights', 'partners/p-harbour-lights/statement'],
  ...['partners/p-harbour-lights/terms', 'partners/p-harbour-lights/emails', 'aging', 'reports/coverage'],
  ...[
    'reports/close',
    'reports/trial-balance',
    'reports/bank-reconciliation',
    'accounts',
    'audit',
    'audit/checkpoints',
  ],
  ...['audit/checks', 'audit/settings', 'audit/packs', 'audit/packs/2026-08', 'settings', 'account', 'approvals'],
  ...['actions/invoice.void?number=INV-2026-000009', 'actions/payment.import', 'search?q=harbour', 'nothing'],
];

const { values: asked } = parseArgs({ options: { demo: { type: 'string' }, all: { type: 'string' } } });
const folder = asked.demo === undefined ? mkdtempSync(join(tmpdir(), 'reckoner-pictures-')) : resolve(asked.demo);
const home = join(folder, 'reckoner-demo');
const { DATABASE_URL: _database, SMTP_URL: _smtp, ...inherited } = process.env;
const env = {
  ...{ ...inherited, RECKONER_HOME: home, RECKONER_ENVIRONMENT: 'sandbox', RECKONER_NOW: NOW, RECKONER_USER: USER },
  LOG_SIGNING_KEY_FILE: join(home, 'log-signing-key.pem'),
};

function reckoner(args, changed = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    ...{ env: { ...env, ...changed }, encoding: 'utf8' },
  });
  // 4: done, but something needs attention, as intended here.
  if (status !== 0 && status !== 4) throw new Error(`${args.join(' ')}: ${stderr}`);
  return stdout;
}

if (!existsSync(home)) {
  mkdirSync(folder, { recursive: true });
  process.stdout.write('Making the demonstration. It takes a minute or two.\n');
  const { status } = spawnSync(process.execPath, [join(root, 'dist/src/demo/demo.js')], {
    ...{ cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] },
  });
  if (status !== 0) process.exit(status ?? 1);
}
if (JSON.parse(reckoner(['--json', 'payment', 'list'])).length === 0) {
  leaveWork(home, (...args) => reckoner(args));
  // An e-mail that no server accepted.
  reckoner(['invoice', 'resend', 'INV-2026-000006'], { SMTP_URL: 'smtp://127.0.0.1:9' });
}
const settingsFile = join(home, 'settings.json');
const settings = JSON.parse(readFileSync(settingsFile, 'utf8'));
writeFileSync(settingsFile, `${JSON.stringify({ ...settings, public_url: ADDRESS }, null, 2)}\n`);

const server = spawn(process.execPath, [PROGRAM, 'serve', '--port', PORT], { env, stdio: 'ignore' });
const ended = new Promise((done) => server.once('exit', done));
try {
  await makePictures();
} finally {
  server.kill('SIGTERM');
  await ended;
  if (asked.demo === undefined) rmSync(folder, { recursive: true, force: true });
}

async function makePictures() {
  await listening();
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  try {
    if (asked.all === undefined) {
      const page = await signedIn(browser, 1280);
      for (const { name, path, colorScheme } of PICTURES) {
        await page.emulateMedia({ colorScheme });
        await take(page, path, { path: join(root, 'docs', `${name}.png`) });
      }
      return;
    }
    mkdirSync(asked.all, { recursive: true });
    for (const [width, colorScheme] of [
      [1280, 'light'],
      [1280, 'dark'],
      [390, 'light'],
    ]) {
      const page = await signedIn(browser, width);
      await page.emulateMedia({ colorScheme });
      for (const path of SCREENS) {
        const name = `${path.replaceAll(/[^\w.]/g, '-')}.${width}.${colorScheme}.png`;
        await take(page, path, { path: join(asked.all, name), fullPage: true });
      }
      await page.context().close();
    }
  } finally {
    await browser.close();
  }
}

async function listening() {
  for (let tries = 0; tries < 300; tries += 1) {
    const answer = await fetch(`${ADDRESS}/console/sign-in`).catch(() => undefined);
    if (answer?.status === 200) return;
    if (server.exitCode !== null) break;
    await new Promise((done) => setTimeout(done, 200));
  }
  throw new Error('the server did not start');
}

async function signedIn(browser, width) {
  const { url } = JSON.parse(
    reckoner(['--json', 'user', 'link', USER, '--no-mail'], { RECKONER_USER: 'ada@issuer.example' }),
  );
  const context = await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 800 } });
  const page = await context.newPage();
  await page.goto(url);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(/\/console\/close/);
  return page;
}

async function take(page, path, options) {
  await page.goto(`${ADDRESS}/console/${path}`);
  await page.evaluate('document.fonts.ready');
  await page.screenshot(options);
}
