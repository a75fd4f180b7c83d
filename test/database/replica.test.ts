/** A real primary and a streaming replica of it, on the embedded server's own programs: what only reads reads there. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acquireEmbeddedServer, type EmbeddedServer } from '../../src/database/embedded.ts';
import { awaitReplica } from '../../src/database/replica.ts';
import { type Ran, reckoner } from '../support/program.ts';
import { ask, startStandby, urlOf } from '../support/standby.ts';
import { someOf, times } from '../support/sweep.ts';
import { partner, quote } from '../support/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'reckoner-replica-'));
chmodSync(folder, 0o755); // The replica's server connects through the primary's folder.
const home = join(folder, 'home');
let primary: EmbeddedServer;
let replica: EmbeddedServer;
let primaryUrl: string;
let replicaUrl: string;

/** Runs the program with these variables besides. */
const run = (env: Record<string, string>, ...args: string[]): Promise<Ran> =>
  reckoner(['--json', ...args], { env: { RECKONER_HOME: home, RECKONER_NOW: '2026-08-01T10:00:00Z', ...env } });
const onPrimary = (...args: string[]) => run({ DATABASE_URL: primaryUrl }, ...args);
const onBoth = (...args: string[]) => run({ DATABASE_URL: primaryUrl, DATABASE_URL_READ: replicaUrl }, ...args);
const onReplica = (...args: string[]) => run({ DATABASE_URL_READ: replicaUrl }, ...args);

const partnerFile = (id: string): string => {
  const file = join(folder, `${id}.json`);
  writeFileSync(file, JSON.stringify([partner({ partner_id: id })]));
  return file;
};

beforeAll(async () => {
  primary = await acquireEmbeddedServer(join(folder, 'primary'));
  primaryUrl = urlOf(primary);
  expect((await onPrimary('init')).status).toBe(0);
  expect((await onPrimary('partner', 'import', partnerFile('p-1'))).status).toBe(0);
  const rows = join(folder, 'rows.ndjson');
  writeFileSync(rows, `${JSON.stringify(quote())}\n`);
  expect((await onPrimary('ledger', 'import', rows)).status).toBe(0);
  replica = await startStandby(primary, join(folder, 'primary'), join(folder, 'replica'));
  replicaUrl = urlOf(replica);
  // After the copy: this reaches the replica by streaming alone.
  expect((await onPrimary('close')).status).toBe(0);
});

afterAll(async () => {
  await replica?.release();
  await primary?.release();
  rmSync(folder, { recursive: true, force: true });
});

test('the replica streams, and refuses writes', async () => {
  expect(await ask(primaryUrl, 'SELECT state FROM pg_stat_replication')).toEqual([{ state: 'streaming' }]);
  await expect(ask(replicaUrl, 'CREATE TEMPORARY TABLE t (i int)')).rejects.toThrow('read-only');
});

/** What `partner show` and the other reports do besides, these do too. */
const COMMANDS = [
  ['invoice', 'show', 'INV-2026-000001'],
  ['report', 'statement', '--partner', 'p-1'],
  ['report', 'trial-balance'],
  ['report', 'close'],
];

const SOME = someOf(COMMANDS, times({ few: 1, short: COMMANDS.length, long: COMMANDS.length }));

test.each(SOME.map((args) => [args.join(' '), args]))('%s reads the same there', async (_, args) => {
  const [there, here] = await Promise.all([onReplica(...args), onPrimary(...args)]);
  expect({ status: there.status, stderr: there.stderr }).toEqual({ status: 0, stderr: '' });
  expect(there.json()).toEqual(here.json());
});

test.each(['ledger'])('export %s writes the same from there', async (kind) => {
  const hashes = await Promise.all(
    (
      [
        ['there', onReplica],
        ['here', onPrimary],
      ] as const
    ).map(async ([name, by]) => {
      const out = join(folder, `${kind}-${name}`);
      const ran = await by('export', kind, '--month', '2026-07', '--out', out);
      expect({ status: ran.status, stderr: ran.stderr }).toEqual({ status: 0, stderr: '' });
      const { files } = JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8')) as {
        files: { sha256: string }[];
      };
      expect(files.length).toBeGreaterThan(1);
      return files.map(({ sha256 }) => sha256);
    }),
  );
  expect(hashes[0]).toEqual(hashes[1]);
});

test('a command sees everything committed before it began, even on a lagging replica', async () => {
  await ask(replicaUrl, 'SELECT pg_wal_replay_pause()');
  expect((await onPrimary('partner', 'import', partnerFile('p-2'))).status).toBe(0);
  const listed = onBoth('partner', 'list');
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(await ask(replicaUrl, 'SELECT partner_id FROM partners')).toHaveLength(1);
  await ask(replicaUrl, 'SELECT pg_wal_replay_resume()');
  expect((await listed).json()).toMatchObject([{ partner_id: 'p-1' }, { partner_id: 'p-2' }]);
});

test('a replica that does not catch up is refused, with its lag', async () => {
  const replica = new pg.Pool({ connectionString: replicaUrl });
  const there = { name: 'of DATABASE_URL', connection: { connectionString: primaryUrl } };
  await ask(replicaUrl, 'SELECT pg_wal_replay_pause()');
  try {
    expect((await onPrimary('partner', 'import', partnerFile('p-3'))).status).toBe(0);
    await expect(awaitReplica(replica, 'of DATABASE_URL_READ', there, 300)).rejects.toThrow(
      /is \d+ bytes behind and did not catch up in 0\.3 seconds/,
    );
    // Who reaches no primary has it as it is.
    expect((await onReplica('partner', 'list')).json()).toHaveLength(2);
  } finally {
    await ask(replicaUrl, 'SELECT pg_wal_replay_resume()');
  }
  await awaitReplica(replica, 'of DATABASE_URL_READ', there);
  await replica.end();
});

test('a replica of another primary is refused', async () => {
  const other = await acquireEmbeddedServer(join(folder, 'other'));
  try {
    const ran = await run({ DATABASE_URL: urlOf(other), DATABASE_URL_READ: replicaUrl }, 'partner', 'list');
    expect(ran.status).toBe(1);
    expect(ran.stdout).toContain('is a replica of another server than DATABASE_URL');
  } finally {
    await other.release();
  }
});

test('a command that writes or needs temporary tables goes to the primary, and is refused where there is none', async () => {
  const held = await onBoth('invoice', 'hold', 'INV-2026-000001', '--reason', 'asked to');
  expect(held.status).toBe(0);
  expect((await onBoth('invoice', 'show', 'INV-2026-000001')).stdout).toContain('asked to');
  // The journal is made in temporary tables.
  const journal = ['export', 'journal', '--month', '2026-07', '--out'];
  expect((await onBoth(...journal, join(folder, 'journal'))).status).toBe(0);
  for (const args of [['status'], [...journal, join(folder, 'refused')]]) {
    const refused = await onReplica(...args);
    expect(refused).toMatchObject({ status: 2 });
    expect(refused.json()).toMatchObject({ error: { code: 'environment_invalid', variable: 'DATABASE_URL' } });
  }
});
