/** Backups that somebody changed are told from ours; each leaves an event to compare the file with; old ones are deleted. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LOG_PEM, newLogPem } from '../support/log-keys.ts';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
});
afterAll(() => world.end());

const run = (args: readonly string[], more: Record<string, string> = {}) =>
  command(args, { env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, ...more } });
const KEY = { LOG_SIGNING_KEY: LOG_PEM };

test('a backup with a changed row and a new hash of its own is refused where there is a key to check it with', async () => {
  const file = join(world.home, 'signed.backup');
  expect((await run(['backup', file], KEY)).status).toBe(0);
  const [event] = await world.sql<{ details: Record<string, unknown> }>(
    `SELECT details FROM audit_events WHERE action = 'backup.take'`,
  );
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
  expect(event?.details).toMatchObject({ file, sha256, signed: true });

  const lines = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n');
  const trailer = JSON.parse(lines.pop() as string) as Record<string, unknown>;
  const changed = `${lines.join('\n').replace('p-1', 'p-2')}\n`;
  const forge = (own: Record<string, unknown>) => {
    const hash = createHash('sha256').update(changed).digest('hex');
    const forged = join(world.home, 'forged.backup');
    writeFileSync(forged, gzipSync(`${changed}${JSON.stringify({ ...trailer, sha256: hash, ...own })}\n`));
    return run(['restore', forged], KEY);
  };
  for (const own of [{}, { signature: undefined }]) {
    const refused = await forge(own);
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringMatching(/not signed|its signature is not/)]);
  }
  const other = await run(['restore', file], { LOG_SIGNING_KEY: newLogPem() });
  expect(other.stderr).toContain('it was not signed with the key that signs checkpoints');
  // Our own is refused for the database only, which is not empty.
  expect((await run(['restore', file], KEY)).stderr).toContain('not empty');
});

test('with --keep the folder has the latest backups, and nothing else is deleted', async () => {
  const folder = join(world.home, 'backups');
  mkdirSync(folder);
  writeFileSync(join(folder, 'reckoner-sandbox-mine.backup'), '');
  for (const hour of ['01', '02', '03']) {
    const ran = await run(['backup', folder, '--keep', '2'], { RECKONER_NOW: `2026-12-01T${hour}:00:00Z` });
    expect([ran.status, ran.stderr]).toEqual([0, '']);
  }
  expect(readdirSync(folder).sort()).toEqual([
    'reckoner-sandbox-20261201T020000Z.backup',
    'reckoner-sandbox-20261201T030000Z.backup',
    'reckoner-sandbox-mine.backup',
  ]);
});

test('the backup of each night is a run of the job backup, whether it works or not; one taken by hand is none', async () => {
  const folder = join(world.home, 'nights');
  mkdirSync(folder);
  const runs = () =>
    world.sql(`SELECT finished_at::text, exit_status FROM job_runs WHERE job = 'backup' ORDER BY job_run_id`);
  const before = (await runs()).length;
  const at = (day: string) => ({ RECKONER_NOW: `2026-12-${day}T02:40:00Z` });
  expect((await run(['backup', folder, '--keep', '2'], at('02'))).status).toBe(0);
  expect((await run(['backup', folder, '--keep', '2'], at('02'))).status).toBe(3);
  expect((await run(['backup', join(folder, 'by-hand.backup')], at('03'))).status).toBe(0);
  expect((await runs()).slice(before)).toEqual([
    { finished_at: expect.stringContaining('2026-12-02 02:40:00'), exit_status: 0 },
    { finished_at: expect.stringContaining('2026-12-02 02:40:00'), exit_status: 3 },
  ]);
});
