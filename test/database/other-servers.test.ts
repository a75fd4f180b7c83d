/**
 * The whole way of a ledger on other servers and majors of PostgreSQL, with the roles of roles.sql: installed programs under
 * /usr/lib/postgresql, and what RECKONER_OTHER_SERVERS names, each a superuser's URL or the folder of a server's programs.
 * `npm run test:postgres` names 16, 17 and 18 of npm's embedded builds.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, inject, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { ROOT } from '../support/modules.ts';
import { startServer } from '../support/own-server.ts';
import { command } from '../support/program.ts';
import { ask } from '../support/standby.ts';
import { partner, quote } from '../support/world.ts';

const INSTALLED = '/usr/lib/postgresql';
const OLDEST = 16;

const folder = mkdtempSync(join(tmpdir(), 'reckoner-servers-'));
const started: (() => void)[] = [];
afterAll(() => {
  for (const stop of started) stop();
  rmSync(folder, { recursive: true, force: true });
});

async function startPrograms(bin: string): Promise<string> {
  const { url, stop } = await startServer(bin);
  started.push(stop);
  return url;
}

const installed = (existsSync(INSTALLED) ? readdirSync(INSTALLED) : []).filter((version) => Number(version) >= OLDEST);
const named = (process.env['RECKONER_OTHER_SERVERS'] ?? '').split(' ').filter((url) => url !== '');
const servers: (readonly [name: string, start: () => Promise<string>])[] = [
  ...installed.map((version) => [version, () => startPrograms(join(INSTALLED, version, 'bin'))] as const),
  ...named.map((each) =>
    each.startsWith('/')
      ? ([`of ${each.split('/').at(-3)}`, () => startPrograms(each)] as const)
      : ([`at ${new URL(each).host}`, async () => each] as const),
  ),
];

async function makeDatabase(server: string, name: string): Promise<string> {
  await ask(server, `DROP DATABASE IF EXISTS ${name}`);
  await ask(server, `CREATE DATABASE ${name}`);
  return Object.assign(new URL(server), { pathname: `/${name}` }).href;
}

/** Makes the roles of `roles.sql` in a database. */
const makeRoles = (database: string) => ask(database, readFileSync(join(ROOT, 'migrations/roles.sql'), 'utf8'));

const as = (database: string, username: string) => Object.assign(new URL(database), { username }).href;

/** What the role answers to a statement: its error, or nothing. */
const answer = (database: string, role: string, sql: string): Promise<string> =>
  ask(as(database, role), sql).then(
    () => '',
    (error: Error) => error.message,
  );

/** As docs/operations.md says, only these run as the owner. */
const AS_OWNER = ['init', 'migrate', 'restore'];

/** A home of its own and a database, and how to run commands with them. */
async function openHome(server: string, name: string, roles: 'roles' | 'superuser' = 'roles') {
  const home = mkdtempSync(join(folder, 'home-'));
  writeFileSync(join(home, 'settings.json'), JSON.stringify(firstSettings('sandbox')));
  const env = {
    RECKONER_HOME: home,
    RECKONER_NOW: '2026-08-10T10:00:00Z',
  };
  const database = await makeDatabase(server, name);
  if (roles === 'roles') await makeRoles(database);
  return async (...args: string[]): Promise<unknown> => {
    const role = AS_OWNER.includes(args[0] as string) ? 'reckoner_owner' : 'reckoner_runtime';
    const DATABASE_URL = roles === 'roles' ? as(database, role) : database;
    const ran = await command(['--json', ...args], { env: { ...env, DATABASE_URL } });
    expect({ args, status: ran.status, stderr: ran.status === 0 ? '' : ran.stdout + ran.stderr }).toEqual({
      ...{ args, status: 0, stderr: '' },
    });
    return ran.json();
  };
}

test.skipIf(servers.length > 0 || process.env['CI'] === 'true')(
  'a ledger on another server (needs postgresql-16 or later beside the embedded one)',
  (context) => context.skip('needs another PostgreSQL'),
);

test('CI has another server', () => {
  if (process.env['CI'] === 'true') expect(servers).not.toEqual([]);
});

test.each(servers)(
  'a ledger on server %s is as migrated, and moves to the embedded server and back',
  async (_, start) => {
    const there = await start();
    const here = inject('serverUrl');
    const first = await openHome(there, 'reckoner_other');
    await first('init');
    const partners = join(folder, 'partners.json');
    writeFileSync(partners, JSON.stringify([partner()]));
    await first('partner', 'import', partners);
    const rows = join(folder, 'rows.ndjson');
    writeFileSync(rows, `${JSON.stringify(quote())}\n`);
    await first('ledger', 'import', rows);
    await first('close', '--no-deliver');
    const unchanged = async (at: typeof first) => {
      const { differences, checks } = (await at('verify')) as { differences: number; checks: { note?: string }[] };
      expect({ differences, notes: checks.flatMap(({ note }) => note ?? []) }).toEqual({ differences: 0, notes: [] });
      expect(await at('migrate')).toEqual({ migrations: [] });
      expect(await at('verify')).toMatchObject({ differences: 0 });
    };
    await unchanged(first);
    const database = Object.assign(new URL(there), { pathname: '/reckoner_other' }).href;
    const refused = (role: string, sql: string) => expect(answer(database, role, sql)).resolves;
    await refused('reckoner_reader', 'BEGIN; LOCK TABLE ledger_gate IN ROW EXCLUSIVE MODE').toMatch(
      /^permission denied/,
    );
    await refused('reckoner_runtime', 'DELETE FROM documents').toMatch(/^permission denied/);
    await refused('reckoner_runtime', `UPDATE partners SET contact_email = 'evil@evil.example'`).toMatch(/event/);
    await refused('reckoner_reader', 'SELECT count(*) FROM documents').toBe('');
    const place = mkdtempSync(join(folder, 'backups-'));
    const backup = join(place, 'there.backup');
    await first('backup', backup);
    const second = await openHome(here, 'reckoner_moved_here', 'superuser');
    await second('restore', backup);
    await unchanged(second);
    const again = join(place, 'here.backup');
    await second('backup', again);
    const third = await openHome(there, 'reckoner_moved_back');
    await third('restore', again);
    await unchanged(third);
  },
  600_000,
);
