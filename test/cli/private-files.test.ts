/** What Reckoner writes is for its own account alone: no other user of the machine reads a letter, an export or the settings. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compiled } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-files-'));
  world = await openWorld();
  await world.partners([partner()]);
  world.at('2026-10-05T00:00:00Z');
  await world.rows([quote({ accepted_at: '2026-09-15T12:00:00Z' })]);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await world.end();
});

/** Files and folders, with what others than the owner may do. */
const modesUnder = (path: string): [path: string, others: number][] =>
  ['', ...readdirSync(path, { recursive: true, encoding: 'utf8' })].map((name) => [
    name,
    statSync(join(path, name)).mode & 0o077,
  ]);

test('e-mails, packs, exports, documents and backups are closed to others, even with an open umask', () => {
  const home = join(folder, 'home');
  const run = (path: string, ...args: string[]) =>
    execFileSync('sh', ['-c', 'umask 000; exec "$@"', 'sh', process.execPath, compiled(path), ...args], {
      cwd: folder,
      env: {
        ...process.env,
        RECKONER_HOME: home,
        DATABASE_URL: world.databaseUrl,
        RECKONER_NOW: '2026-10-05T00:00:00Z',
      },
      stdio: 'pipe',
    });
  const reckoner = (...args: string[]) => run('src/cli/reckoner.js', ...args);
  reckoner('init');
  run('jobs/month-close.js');
  expect(readdirSync(join(home, 'outbox')).length).toBeGreaterThan(1);
  reckoner('export', 'journal', '--month', '2026-09', '--out', 'pack');
  reckoner('export', 'invoices', '--month', '2026-09', '--out', 'pack.zip');
  reckoner('invoice', 'list', '--format', 'csv', '--out', 'list.csv');
  reckoner('invoice', 'pdf', 'INV-2026-000001', '--output', 'invoice.pdf');
  reckoner('backup', 'all.backup');
  const open = modesUnder(folder).filter(([path, others]) => path !== '' && others !== 0);
  expect(modesUnder(folder).length).toBeGreaterThan(20);
  expect(open).toEqual([]);
});
