/** A drill restores a backup where nothing can be sent, verifies it, and leaves the ledger as it was. */

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeDatabase, type OwnDatabase } from '../support/databases.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { command, job, type Ran } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let scratch: OwnDatabase;
let nights: string;
beforeAll(async () => {
  world = await openWorld();
  // A login that owns the scratch database and nothing else, as docs/operations.md makes it.
  const login = 'reckoner_drill';
  await world.sql(`DO $$ BEGIN CREATE ROLE ${login} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`);
  const made = await makeDatabase('drill', { owner: login });
  scratch = { ...made, url: Object.assign(new URL(made.url), { username: login }).href };
  nights = join(world.home, 'nights');
  mkdirSync(nights);
  const partners = Array.from({ length: 12 }, (_, index) => `p-${index + 1}`);
  await world.partners(partners.map((partner_id) => partner({ partner_id })));
  await world.rows(partners.map((partner_id) => quote({ partner_id, quote_id: `q-${partner_id}` })));
  world.at('2026-08-01T12:00:00Z');
  await world.close('2026-07');
  await world.deliver();
  expect((await run(['backup', nights, '--keep', '9'], '2026-08-02T02:40:00Z')).status).toBe(0);
});
afterAll(async () => {
  await world.end();
  await scratch.drop();
});

const env = (now: string, more: Record<string, string> = {}) => ({
  ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now },
  ...{ RECKONER_BACKUPS: nights, DRILL_DATABASE_URL: scratch.url, ...more },
});
const run = (args: readonly string[], now = '2026-08-02T04:00:00Z', more: Record<string, string> = {}): Promise<Ran> =>
  command(args, { env: env(now, more) });
const runs = () => world.sql(`SELECT exit_status, subject FROM job_runs WHERE job = 'drill' ORDER BY job_run_id`);
const drillLine = async (now?: string) =>
  (await run(['status'], now)).stdout.split('\n').find((line) => line.startsWith('Drill'));
const backupOf = (name: string): string => join(world.home, name);
const tablesOf = (url: string) => run(['--json', 'drill', '--into', url]);

test('before the first drill the status says that there was none', async () => {
  expect(await drillLine()).toBe('Drill        never: no backup was restored and verified');
});

test("the night's backup is restored, verified and compared, and nothing of it is left", async () => {
  const before = await world.sql(`SELECT count(*)::int AS events FROM audit_events`);
  const ran = await run(['--json', 'drill']);
  expect([ran.status, ran.stderr]).toEqual([0, '']);
  const found = ran.json() as Record<string, unknown>;
  expect(found).toMatchObject({ made_at: expect.stringContaining('2026-08-02T02:40:00'), differences: [] });
  expect(found['documents']).toBe(12);
  expect(found['checkpoints']).toBeGreaterThan(0);
  expect(await runs()).toEqual([{ exit_status: 0, subject: expect.stringContaining('2026-08-02T02:40:00') }]);
  expect(await world.sql(`SELECT count(*)::int AS events FROM audit_events`)).toEqual(before);
  expect(await drillLine()).toBe('Drill        backup of 2026-08-02 02:40 UTC restored and verified in 0 seconds');
  // The scratch database is as empty as before: a second drill finds room there.
  expect((await job('drill', { env: env('2026-08-02T04:00:00Z') })).status).toBe(0);
});

test('without a scratch database an embedded server is started, and removed afterward', async () => {
  const ran = await run(['drill', nights], undefined, { DRILL_DATABASE_URL: '' });
  expect([ran.status, ran.stdout]).toEqual([0, expect.stringContaining('0 differences found.')]);
  expect(readdirSync(world.home).filter((name) => name.startsWith('drill-'))).toEqual([]);
});

test('a database that is in use is refused, and the drill counts as failed', async () => {
  const ran = await tablesOf(world.databaseUrl);
  expect([ran.status, ran.stderr]).toEqual([3, expect.stringContaining('the database is not empty')]);
  expect((await runs()).at(-1)).toMatchObject({ exit_status: 3 });
  const status = await run(['status']);
  expect(status.stdout).toContain('The last run of drill failed');
});

test('an encrypted backup needs its private key', async () => {
  const secret = await generateX25519Identity();
  const identity = backupOf('identity.txt');
  writeFileSync(identity, `${secret}\n`, { mode: 0o600 });
  const file = backupOf('encrypted.backup');
  expect((await run(['backup', file, '--recipient', await identityToRecipient(secret)])).status).toBe(0);
  expect((await run(['drill', file])).status).toBe(2);
  expect((await run(['drill', file, '--identity', identity])).status).toBe(0);
  expect((await run(['drill', file], undefined, { DRILL_IDENTITY_FILE: identity })).status).toBe(0);
});

test('a changed backup is refused, and one whose content was changed with its hash is found out', async () => {
  const file = join(nights, readdirSync(nights)[0] as string);
  const lines = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n');
  const trailer = JSON.parse(lines.pop() as string) as Record<string, unknown>;
  const at = lines.findIndex((line) => line.startsWith('{"table":"ledger_rows"')) + 1;
  const changed = `${lines.with(at, (lines[at] as string).replace('q-p-1', 'q-p-X')).join('\n')}\n`;
  const write = (name: string, sha256: unknown) => {
    writeFileSync(backupOf(name), gzipSync(`${changed}${JSON.stringify({ ...trailer, sha256 })}\n`));
    return run(['--json', 'drill', backupOf(name)]);
  };
  const refused = await write('flipped.backup', trailer['sha256']);
  expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining('does not match its SHA-256')]);
  const found = await write('forged.backup', createHash('sha256').update(changed).digest('hex'));
  expect(found.status).toBe(4);
  expect((found.json() as { differences: string[] }).differences.length).toBeGreaterThan(0);
  expect((await run(['status'])).stdout).toContain('is not the ledger');
});

test('a backup whose log is not the beginning of the log of the ledger is found out', async () => {
  await world.sql(`${GUARDS_OFF} UPDATE log_checkpoints SET root = sha256(root) WHERE closes = 'month 2026-07';
                   ${GUARDS_ON}`);
  const ran = await run(['--json', 'drill']);
  expect([ran.status, ran.json()]).toEqual([
    4,
    expect.objectContaining({ differences: [expect.stringContaining('is not in the log of the ledger')] }),
  ]);
});

test('a backup of another ledger is refused', async () => {
  const other = await openWorld();
  await other.sql(`${GUARDS_OFF} UPDATE installation SET installation_id = 'abcdefabcdef'; ${GUARDS_ON}`);
  await other.partners([partner()]);
  await other.rows([quote()]);
  const file = backupOf('other.backup');
  const made = await command(['backup', file], {
    env: { RECKONER_HOME: other.home, DATABASE_URL: other.databaseUrl, RECKONER_NOW: '2026-08-02T02:40:00Z' },
  });
  expect(made.status).toBe(0);
  const ran = await run(['drill', file]);
  expect([ran.status, ran.stderr]).toEqual([2, expect.stringContaining('it belongs to the ledger')]);
  await other.end();
});

test('forty days after the last drill the status asks for another', async () => {
  expect((await run(['status'], '2026-09-10T04:00:00Z')).stdout).not.toContain('drill last ran');
  expect((await run(['status'], '2026-09-12T04:00:00Z')).stdout).toContain('drill last ran');
  expect((await run(['status'], '2026-12-12T04:00:00Z')).stdout).toContain('drill last ran');
});
