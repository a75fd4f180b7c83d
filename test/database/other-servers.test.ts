/**
 * The whole way of a ledger on servers other than the embedded one, whose definitions PostgreSQL writes otherwise: installed
 * programs under /usr/lib/postgresql (postgresql-17 of Debian 13), and servers that RECKONER_OTHER_SERVERS names by a
 * superuser's URL each.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, expect, inject, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { startServer } from '../support/own-server.ts';
import { command } from '../support/program.ts';
import { partner, quote } from '../support/world.ts';

const INSTALLED = '/usr/lib/postgresql';
const OLDEST = 16;

const folder = mkdtempSync(join(tmpdir(), 'reckoner-servers-'));
const started: (() => void)[] = [];
afterAll(() => {
  for (const stop of started) stop();
  rmSync(folder, { recursive: true, force: true });
});

async function startInstalled(version: string): Promise<string> {
  const { url, stop } = await startServer(join(INSTALLED, version, 'bin'));
  started.push(stop);
  return url;
}

const installed = (existsSync(INSTALLED) ? readdirSync(INSTALLED) : []).filter((version) => Number(version) >= OLDEST);
const named = (process.env['RECKONER_OTHER_SERVERS'] ?? '').split(' ').filter((url) => url !== '');
const servers: (readonly [name: string, start: () => Promise<string>])[] = [
  ...installed.map((version) => [version, () => startInstalled(version)] as const),
  ...named.map((url) => [new URL(url).host, async () => url] as const),
];

async function makeDatabase(server: string, name: string): Promise<string> {
  const client = new pg.Client(server);
  await client.connect();
  try {
    await client.query(`DROP DATABASE IF EXISTS ${name}`);
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  return Object.assign(new URL(server), { pathname: `/${name}` }).href;
}

/** A home of its own and a database, and how to run commands with them. */
async function openHome(server: string, name: string) {
  const home = mkdtempSync(join(folder, 'home-'));
  writeFileSync(join(home, 'settings.json'), JSON.stringify(firstSettings('sandbox')));
  const env = {
    RECKONER_HOME: home,
    DATABASE_URL: await makeDatabase(server, name),
    RECKONER_NOW: '2026-08-10T10:00:00Z',
  };
  return async (...args: string[]): Promise<unknown> => {
    const ran = await command(['--json', ...args], { env });
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
    const backup = join(folder, 'there.backup');
    await first('backup', backup);
    const second = await openHome(here, 'reckoner_moved_here');
    await second('restore', backup);
    await unchanged(second);
    const again = join(folder, 'here.backup');
    await second('backup', again);
    const third = await openHome(there, 'reckoner_moved_back');
    await third('restore', again);
    await unchanged(third);
  },
  600_000,
);
