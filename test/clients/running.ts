/** The program as it runs for two partners, one invoiced and one with a connected account, at an address it knows. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Credentials } from '../../src/partners/clients.ts';
import { command, compiled, type Ran } from '../support/program.ts';
import { PRICED } from '../support/service.ts';
import { openWorld, partner, quote } from '../support/world.ts';

export interface Running {
  readonly url: string;
  /** What each partner's program has in its environment. */
  readonly as: Readonly<Record<'p-1' | 'p-csv', NodeJS.ProcessEnv>>;
  /** A command at a time; it must succeed. */
  readonly reckon: (now: string, ...args: string[]) => Promise<Ran>;
  /** Serves from now on, with this clock. */
  readonly serveAt: (now: string) => Promise<void>;
  readonly end: () => Promise<void>;
}

/** With documents of two months, so that there are pages of them, and clients that were made at this time. */
export async function openRunning(now: string): Promise<Running> {
  const world = await openWorld();
  const url = await freeAddress();
  const settings = { ...JSON.parse(readFileSync(join(world.home, 'settings.json'), 'utf8')), public_url: url };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  await world.partners([
    partner(PRICED),
    partner({
      ...{ ...PRICED, partner_id: 'p-csv', arrangement: 'connected_account', connected_account_id: 'acct_csv' },
      ...{ merchant_of_record: 'platform', split: 'sequential', balance_transactions_from: 'settlement_file' },
    }),
  ]);
  const env = (at: string) => ({ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: at });
  let server: ChildProcess | undefined;
  const stop = async () => {
    if (server === undefined || server.exitCode !== null) return;
    server.kill('SIGTERM');
    await once(server, 'exit');
  };
  async function reckon(at: string, ...args: string[]): Promise<Ran> {
    const ran = await command(['--json', ...args], { env: env(at) });
    expect({ args, status: ran.status, stderr: ran.stderr }).toEqual({ args, status: 0, stderr: '' });
    return ran;
  }
  for (const [month, closed] of [
    ['2026-05', '2026-06-02T12:00:00Z'],
    ['2026-06', '2026-07-02T12:00:00Z'],
  ]) {
    await world.rows(Array.from({ length: 10 }, () => quote({ accepted_at: `${month}-03T12:00:00Z` })));
    await reckon(closed as string, 'close');
  }
  async function clientOf(id: string): Promise<NodeJS.ProcessEnv> {
    const { client_id, client_secret } = (await reckon(now, 'client', 'create', id)).json() as Credentials;
    return { BASE_URL: url, PARTNER_ID: id, CLIENT_ID: client_id, CLIENT_SECRET: client_secret };
  }
  return {
    url,
    as: { 'p-1': await clientOf('p-1'), 'p-csv': await clientOf('p-csv') },
    reckon,
    async serveAt(at) {
      await stop();
      server = spawn(
        process.execPath,
        [compiled('src/cli/reckoner.js'), '--json', 'serve', '--port', new URL(url).port],
        { env: { ...process.env, ...env(at) }, stdio: ['ignore', 'pipe', 'ignore'] },
      );
      await once(server.stdout as NodeJS.ReadableStream, 'data');
    },
    async end() {
      await stop();
      await world.end();
    },
  };
}

/** An address that is free now: the program must know its own before it listens. */
async function freeAddress(): Promise<string> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return `http://127.0.0.1:${port}`;
}
