/**
 * `npm run serve:demo`: serves the sandbox of `npm run demo`, or a new sandbox. Prints the credentials of two partners
 * for the curl commands in docs/partners.md: one partner is invoiced, the other has a connected account. Also prints a
 * link to the console, whose work queue is not empty (work.ts).
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '#package';
import { Credentials } from '#partners/clients';
import { addressAt, PORT, setAddress, takeLink } from './link.ts';
import { ADMINISTRATOR, PEOPLE } from './people.ts';
import { leaveWork } from './work.ts';

const HOME = resolve('reckoner-demo');
const PROGRAM = join(packageRoot, 'dist', 'src', 'cli', 'reckoner.js');
const [INVOICED, CONNECTED] = ['p-harbour-lights', 'p-copperleaf'];
const args = process.argv.slice(2);
const { values } = parseArgs({ args, options: { port: { type: 'string', default: PORT } }, strict: false });
const port = String(values.port);
const ADDRESS = addressAt(port);

const { DATABASE_URL: _database, SMTP_URL: _smtp, ...inherited } = process.env;
/** The key that signs the demo's checkpoints. A sandbox that is created here has no such key. */
const LOG_KEY_FILE = join(HOME, 'log-signing-key.pem');
const env = {
  ...{ ...inherited, RECKONER_HOME: HOME, RECKONER_ENVIRONMENT: 'sandbox', RECKONER_USER: ADMINISTRATOR },
  ...(existsSync(LOG_KEY_FILE) && { LOG_SIGNING_KEY_FILE: LOG_KEY_FILE }),
};

function reckoner(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    ...{ env, encoding: 'utf8', maxBuffer: Number.POSITIVE_INFINITY },
  });
  // Exit 4 is intended: the command is done, and an item needs attention.
  if (status !== 0 && status !== 4) {
    process.stderr.write(`${stdout}${stderr}`);
    process.exit(status ?? 1);
  }
  return stdout;
}

if (!existsSync(join(HOME, 'settings.json'))) {
  reckoner('init');
  reckoner('partner', 'import', join(packageRoot, 'src', 'demo', 'data', 'partners.json'));
}
setAddress(HOME, ADDRESS);
const users = JSON.parse(reckoner('--json', 'user', 'list')) as { login: string }[];
for (const [email, name, role] of PEOPLE) {
  if (users.some(({ login }) => login === email)) continue;
  reckoner('user', 'invite', email, '--name', name, '--role', role, '--no-mail');
}
if (existsSync(join(HOME, 'pdf'))) leaveWork(HOME, reckoner);
const link = takeLink(HOME, port, (args) => reckoner(...args));
function exportsOf(partner: string) {
  const { client_id, client_secret } = JSON.parse(reckoner('--json', 'client', 'create', partner)) as Credentials;
  return (
    `export BASE_URL=${ADDRESS} PARTNER_ID=${partner}\n` +
    `export CLIENT_ID=${client_id} CLIENT_SECRET=${client_secret}\n`
  );
}
process.stdout.write(
  `# As an invoiced partner:\n${exportsOf(INVOICED)}` +
    `# As a partner with a connected account, which sends settlement files:\n${exportsOf(CONNECTED)}`,
);
process.stdout.write(`\n# The console, as finance (once): ${link}\n\n`);
const serving = spawn(process.execPath, [PROGRAM, 'serve', ...args], { env, stdio: 'inherit' });
// Ctrl-C also reaches the server, which then stops by itself.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => serving.kill('SIGTERM'));
serving.on('exit', (code) => process.exit(code ?? 1));
