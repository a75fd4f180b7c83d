/** The nightly backup of cron and systemd, as the shell script that they run. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jobScript } from '../support/program.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-nights-'));
  world = await openWorld();
});
afterAll(async () => {
  await world.end();
  rmSync(folder, { recursive: true, force: true });
});

const night = (now: string) =>
  execFileSync(jobScript('run-backup'), {
    env: {
      ...{ PATH: process.env['PATH'], RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now },
      ...{ RECKONER_BACKUPS: folder, RECKONER_BACKUPS_KEPT: '2' },
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  }).toString();

test('it keeps the latest that it made, and every file that somebody else put there', () => {
  writeFileSync(join(folder, 'before-the-upgrade.backup'), '');
  for (const day of ['01', '02', '03']) expect(night(`2026-08-${day}T02:40:00Z`)).toBe('');
  expect(readdirSync(folder).sort()).toEqual([
    'before-the-upgrade.backup',
    'reckoner-sandbox-20260802T024000Z.backup',
    'reckoner-sandbox-20260803T024000Z.backup',
  ]);
});
