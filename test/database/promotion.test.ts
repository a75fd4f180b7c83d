/**
 * Promotion, recovery, snapshots and split brain, with real servers: a host compares each database with what it has seen,
 * so no number is given twice, and a planned switchover stops nothing.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { acquireEmbeddedServer, type EmbeddedServer } from '../../src/database/embedded.ts';
import { type Ran, reckoner } from '../support/program.ts';
import { ask, copyServer, startStandby, urlOf } from '../support/standby.ts';
import { partner, quote } from '../support/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'reckoner-promotion-'));
chmodSync(folder, 0o755); // A standby connects through its primary's folder.
const at = (...names: string[]) => join(folder, ...names);
const servers = new Set<EmbeddedServer>();

/** The server of a folder, which the end of the tests stops. */
async function serverOf(starting: Promise<EmbeddedServer>): Promise<EmbeddedServer> {
  const server = await starting;
  servers.add(server);
  return server;
}
async function stop(server: EmbeddedServer): Promise<void> {
  servers.delete(server);
  await server.release();
}
afterAll(async () => {
  for (const server of servers) await server.release();
  rmSync(folder, { recursive: true, force: true });
});

interface Shown {
  readonly paused: { readonly reason: string } | null;
  readonly moved: readonly { readonly timeline: string }[];
}

/** A host with a memory of its own. */
const host = (name: string) => {
  const run = (server: EmbeddedServer, ...args: string[]): Promise<Ran> =>
    reckoner(['--json', ...args], {
      env: { RECKONER_HOME: at(name), RECKONER_NOW: '2026-08-01T10:00:00Z', DATABASE_URL: urlOf(server) },
    });
  const done = async (server: EmbeddedServer, ...args: string[]): Promise<Ran> => {
    const ran = await run(server, ...args);
    expect({ args, status: ran.status, stderr: ran.stderr }).toEqual({ args, status: 0, stderr: '' });
    return ran;
  };
  const status = async (server: EmbeddedServer) => (await run(server, 'status')).json() as Shown;
  return { run, done, status };
};
type Host = ReturnType<typeof host>;

/** Voids a document and issues its replacement, or gives what refuses it. */
async function replaced(by: Host, server: EmbeddedServer, number: string): Promise<string> {
  const voided = await by.run(server, 'invoice', 'void', number, '--reason', 'corrected');
  if (voided.status !== 0) return `exit ${voided.status}: ${voided.stderr}`;
  await by.done(server, 'invoice', 'rerun', number, '--no-deliver');
  const listed = (await by.done(server, 'invoice', 'list')).json() as { number: string }[];
  return (
    listed
      .map((each) => each.number)
      .sort()
      .at(-1) ?? ''
  );
}

/** A ledger with two invoices of July, INV-2026-000001 and INV-2026-000002, which the host has seen. */
async function begin(name: string): Promise<{ primary: EmbeddedServer; standby: EmbeddedServer; seeing: Host }> {
  const primary = await serverOf(acquireEmbeddedServer(at(`${name}-1`)));
  const seeing = host(`${name}-host`);
  await seeing.done(primary, 'init');
  const partners = at(`${name}-partners.json`);
  writeFileSync(partners, JSON.stringify(['p-1', 'p-2'].map((partner_id) => partner({ partner_id }))));
  await seeing.done(primary, 'partner', 'import', partners);
  const rows = at(`${name}.ndjson`);
  const of = (partner_id: string) => quote({ partner_id, quote_id: partner_id, enrollment_id: '' });
  writeFileSync(rows, ['p-1', 'p-2'].map((id) => `${JSON.stringify(of(id))}\n`).join(''));
  await seeing.done(primary, 'ledger', 'import', rows);
  await seeing.done(primary, 'close');
  const standby = await serverOf(startStandby(primary, at(`${name}-1`), at(`${name}-2`)));
  await caughtUp(primary);
  return { primary, standby, seeing };
}

async function caughtUp(primary: EmbeddedServer): Promise<void> {
  await expect
    .poll(() => ask(urlOf(primary), 'SELECT replay_lsn = pg_current_wal_lsn() AS up FROM pg_stat_replication'), {
      timeout: 20_000,
    })
    .toEqual([{ up: true }]);
}

/** The standby hears nothing of its primary any more. */
async function cutLink(standby: EmbeddedServer): Promise<void> {
  await ask(urlOf(standby), `ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'`);
  await ask(urlOf(standby), 'SELECT pg_reload_conf()');
  await expect
    .poll(() => ask(urlOf(standby), 'SELECT count(*)::int AS receivers FROM pg_stat_wal_receiver'), { timeout: 20_000 })
    .toEqual([{ receivers: 0 }]);
}

const promote = (standby: EmbeddedServer) => ask(urlOf(standby), 'SELECT pg_promote()');

test('a standby that was promoted behind its primary is paused, and gives no number twice', async () => {
  const { primary, standby, seeing } = await begin('lagging');
  await cutLink(standby);
  expect(await replaced(seeing, primary, 'INV-2026-000001')).toBe('INV-2026-000003');
  await stop(primary);
  await promote(standby);
  expect(await replaced(seeing, standby, 'INV-2026-000002')).toMatch(/^exit 3: .*INV-2026-000003/);
  const { paused } = await seeing.status(standby);
  expect(paused?.reason).toMatch(
    /^this host has seen INV-2026-000003, \d+ events that the database lacks \(timeline 00000002\)$/,
  );
  const numbers = ['INV-2026-000003', 'CN-2026-000000', 'ST-2026-000000'].flatMap((each) => ['--numbers-after', each]);
  await seeing.done(standby, 'resume', ...numbers, '--no-checkpoint-seen');
  expect(await replaced(seeing, standby, 'INV-2026-000002')).toBe('INV-2026-000004');
});

test('the old primary that comes back is paused by the first host that has seen the new one', async () => {
  const seeing = host('lagging-host');
  const old = await serverOf(acquireEmbeddedServer(at('lagging-1')));
  expect(await replaced(seeing, old, 'INV-2026-000002')).toMatch(/^exit 3: .*a resumption of the ledger/);
});

test('a host without a memory pauses a ledger that is on another timeline', async () => {
  const { primary, standby } = await begin('stranger');
  await caughtUp(primary);
  await stop(primary);
  await promote(standby);
  const stranger = host('stranger-new');
  mkdirSync(at('stranger-new'));
  cpSync(at('stranger-host', 'settings.json'), at('stranger-new', 'settings.json'));
  const { paused } = await stranger.status(standby);
  expect(paused?.reason).toBe(
    'the database is on timeline 00000002, which is new to the ledger, and this host has no memory of it',
  );
});

test('after a planned switchover, the ledger goes on, and the status says on which timeline', async () => {
  const { primary, standby, seeing } = await begin('planned');
  expect((await seeing.status(primary)).moved).toEqual([]);
  await caughtUp(primary);
  await stop(primary);
  await promote(standby);
  expect(await replaced(seeing, standby, 'INV-2026-000001')).toBe('INV-2026-000003');
  const { paused, moved } = await seeing.status(standby);
  expect({ paused, moved }).toMatchObject({ paused: null, moved: [{ timeline: '00000002' }] });
});

test('a database that was set back to a snapshot is paused', async () => {
  const primary = await serverOf(acquireEmbeddedServer(at('planned-2')));
  await stop(primary);
  copyServer(at('planned-2'), at('snapshot'));
  const seeing = host('planned-host');
  const later = await serverOf(acquireEmbeddedServer(at('planned-2')));
  expect(await replaced(seeing, later, 'INV-2026-000002')).toBe('INV-2026-000004');
  await stop(later);
  const back = await serverOf(acquireEmbeddedServer(at('snapshot')));
  // Whoever comes first pauses it, and nobody fails.
  for (const { paused } of await Promise.all([1, 2, 3].map(() => seeing.status(back)))) {
    expect(paused?.reason).toMatch(/^this host has seen INV-2026-000004, /);
  }
});

test('with a synchronous standby nothing is lost, and the old primary alone commits nothing', async () => {
  const { primary, standby, seeing } = await begin('synchronous');
  await ask(urlOf(primary), `ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
  await ask(urlOf(primary), 'SELECT pg_reload_conf()');
  await expect
    .poll(() => ask(urlOf(primary), 'SELECT sync_state FROM pg_stat_replication'), { timeout: 20_000 })
    .toEqual([{ sync_state: 'sync' }]);
  // A host that never sees the new primary remembers the old one.
  const apart = host('synchronous-apart');
  cpSync(at('synchronous-host'), at('synchronous-apart'), { recursive: true });
  expect(await replaced(seeing, primary, 'INV-2026-000001')).toBe('INV-2026-000003');
  process.kill(Number(readFileSync(at('synchronous-1', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGKILL');
  await promote(standby);
  expect(await seeing.status(standby)).toMatchObject({ paused: null, moved: [{ timeline: '00000002' }] });
  const old = await serverOf(acquireEmbeddedServer(at('synchronous-1')));
  const waiting = apart.run(old, 'invoice', 'void', 'INV-2026-000002', '--reason', 'corrected');
  const ended = await Promise.race([waiting, sleep(6_000, 'waits')]);
  expect(ended).toBe('waits');
  expect(await ask(urlOf(old), `SELECT wait_event FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)).not.toEqual([]);
  // The operator stops it, as the handbook says.
  await stop(old);
  await waiting;
});

test('processes of a host keep one memory, in one file', () => {
  const kept = at('planned-host', 'last-seen');
  expect(existsSync(kept)).toBe(true);
  for (const ledger of readdirSync(kept)) expect(readdirSync(join(kept, ledger))).toHaveLength(1);
});
