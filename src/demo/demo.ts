/**
 * `npm run demo`: creates a sandbox with three months of realistic partners and rows. Imports, closes and delivers each
 * month, with the clock set to the time of that month. Every step runs the real program. With `--own-services`
 * (compose.yaml), the environment provides the database and mail server, and an existing demo is kept.
 */
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { acquireEmbeddedServer } from '#database/embedded';
import { DocumentJson } from '#documents/document';
import { groupThousands } from '#money';
import { packageRoot } from '#package';
import { makeLink } from './link.ts';
import { ADMINISTRATOR, FINANCE, PEOPLE } from './people.ts';

const DATA = join(packageRoot, 'src', 'demo', 'data');
const HOME = resolve('reckoner-demo');
const PROGRAM = join(packageRoot, 'dist', 'src', 'cli', 'reckoner.js');

/**
 * Each month is imported and closed on the morning after it has ended in Los Angeles. In August, finance confirms that
 * one partner sold nothing: otherwise its rows would be expected, because it had rows in July.
 */
const MONTHS = [
  { month: '2026-07', file: '2026-07.csv', close: 'close', now: '2026-08-01T10:07:00Z' },
  {
    month: '2026-08',
    file: '2026-08.ndjson',
    close: 'close 2026-08 --without p-sen-bien',
    now: '2026-09-01T10:07:00Z',
  },
  { month: '2026-09', file: '2026-09.csv', close: 'close', now: '2026-10-01T10:07:00Z' },
] as const;

const ownServices = process.argv.includes('--own-services');
const { DATABASE_URL, SMTP_URL, LOG_SIGNING_KEY: _key, ...others } = process.env;
const inherited = ownServices ? { ...others, DATABASE_URL, SMTP_URL } : others;
/** The demo's own key, which signs its checkpoints. */
const LOG_KEY_FILE = join(HOME, 'log-signing-key.pem');

/** A partner with a connected account that sends settlement files. */
const ROUTED = 'p-copperleaf';

/** Runs a command with the clock set to `now`, or with the real clock. */
function reckoner(args: readonly string[], now?: string) {
  const env = {
    ...{ ...inherited, RECKONER_HOME: HOME, RECKONER_ENVIRONMENT: 'sandbox', RECKONER_NOW: now },
    LOG_SIGNING_KEY_FILE: LOG_KEY_FILE,
  };
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], { env, encoding: 'utf8' });
  // Exit 4 is intended: the command is done, and an item needs attention.
  if (status !== 0 && status !== 4) {
    process.stderr.write(`${stdout}${stderr}`);
    process.exit(status ?? 1);
  }
  return stdout;
}

function say(command: string, answer: string) {
  process.stdout.write(`$ reckoner ${command}\n${answer.trimEnd()}\n\n`);
}

if (ownServices && existsSync(join(HOME, 'pdf'))) {
  process.stdout.write(`The demo in ${HOME} already exists.\n`);
  process.exit(0);
}
// Like Reckoner, the demo creates files that only its user can read.
process.umask(0o077);
if (existsSync(HOME)) {
  // HOME is the folder of an earlier demo. No other folder is ever removed.
  rmSync(HOME, { recursive: true, force: true });
}
mkdirSync(HOME, { recursive: true });
const { privateKey } = generateKeyPairSync('ed25519');
writeFileSync(LOG_KEY_FILE, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
// The embedded server is kept running, so that all commands share it.
const server = ownServices ? undefined : await acquireEmbeddedServer(join(HOME, 'postgres'));
say('init', reckoner(['init'], MONTHS[0].now));
say('partner import partners.json', reckoner(['partner', 'import', join(DATA, 'partners.json')], MONTHS[0].now));
for (const { month, file, close, now } of MONTHS) {
  say(`ledger import ${file}`, reckoner(['ledger', 'import', join(DATA, file)], now));
  say(close, reckoner(close.split(' '), now));
  const settling = (path: string) => ['processor', 'import', path, '--partner', ROUTED];
  const settled = `${month}-settlement.csv`;
  say(settling(settled).join(' '), reckoner(settling(join(DATA, settled)), now));
  say(`reconcile ${month}`, reckoner(['reconcile', month], now));
}

const last = MONTHS[MONTHS.length - 1]?.now ?? '';
// The statement has the bank's own charges only. It gives the account an opening balance.
say('payment import 2026-09-bank.bai', reckoner(['payment', 'import', join(DATA, '2026-09-bank.bai')], last));
say('report bank-reconciliation', reckoner(['report', 'bank-reconciliation'], last));
const documents = JSON.parse(reckoner(['--json', 'invoice', 'list'], last)) as DocumentJson[];
const folder = join(HOME, 'pdf');
mkdirSync(folder, { recursive: true });
for (const document of documents) {
  const pdf = join(folder, `${document.number}.pdf`);
  reckoner(['invoice', 'pdf', document.number, '-o', pdf], last);
  const amount = `${groupThousands(document.amount_due)} ${document.currency}`;
  const file = join(HOME, 'outbox', `${document.email?.message_id.slice(1, -1)}.eml`);
  const email = ownServices ? `e-mail ${document.email?.message_id}` : relative('.', file);
  process.stdout.write(
    `${document.number.padEnd(16)} ${document.partner_id.padEnd(18)} ${document.month} ${amount.padStart(16)}\n` +
      `  ${relative('.', pdf)}\n  ${email}\n`,
  );
}
// After this, every command needs a user. `serve:demo` creates the sign-in links of the users.
for (const [email, name, role] of PEOPLE) {
  reckoner(['--by', ADMINISTRATOR, 'user', 'invite', email, '--name', name, '--role', role, '--no-mail'], last);
}
process.stdout.write(
  `\nThe checkpoints are signed with ${relative('.', LOG_KEY_FILE)}. Commands that send e-mails need it:\n` +
    `  export LOG_SIGNING_KEY_FILE=${relative('.', LOG_KEY_FILE)}\n` +
    `Commands that change data need a user: export RECKONER_USER=${FINANCE}\n`,
);
if (!ownServices) {
  // The link is valid for a day, so it is created with the real clock.
  process.stdout.write(
    `\nThe console: run 'npm run serve:demo', then sign in once as finance with\n  ${makeLink(HOME, (args) => reckoner(args))}\n`,
  );
}
await server?.release();
