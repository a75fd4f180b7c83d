/** A `payment import` that is ended while it reads: with the embedded server too, SIGTERM is heard during a long reading. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { acquireEmbeddedServer } from '../../src/database/embedded.ts';
import { cleanUp, makeHome, query } from '../support/embedded/commands.ts';
import { command, compiled } from '../support/program.ts';

/** Reading them takes seconds. */
const LINES = 200_000;
/** What a supervisor would wait is 30 seconds. */
const ENDS_WITHIN_MS = 8000;
/** Writes a file when a process of ours begins that another one started: the one that reads. */
const tellingIn = (file: string) =>
  `import { writeFileSync } from 'node:fs'; if (process.send) writeFileSync(${JSON.stringify(file)}, String(process.pid));`;

afterAll(cleanUp);

test('SIGTERM ends an import while it reads its file, and leaves no transaction open', {
  timeout: 120_000,
}, async () => {
  const home = await makeHome();
  const env = { RECKONER_HOME: home, DATABASE_URL: '' };
  expect((await command(['init'], { env })).status).toBe(0);
  const settings = join(home, 'settings.json');
  const columns = { date: 'Date', amount: 'Amount', text: ['Text'] };
  writeFileSync(
    settings,
    JSON.stringify({ ...JSON.parse(readFileSync(settings, 'utf8')), bank_csv: { own: { columns, account: 'DE1' } } }),
  );
  const file = join(home, 'october.csv');
  const lines = Array.from({ length: LINES }, (_, nth) => `2026-10-01,${nth + 1}.25,payment ${nth}`);
  writeFileSync(file, ['Date,Amount,Text', ...lines, ''].join('\n'));

  const reading = join(home, 'reading');
  const preload = `data:text/javascript,${encodeURIComponent(tellingIn(reading))}`;
  const args = ['--import', preload, compiled('src/cli/reckoner.js'), 'payment', 'import', file];
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: 'ignore' });
  await expect.poll(() => existsSync(reading), { timeout: 60_000, interval: 20 }).toBe(true);
  const began = performance.now();
  child.kill('SIGTERM');
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect({ code, signal }).toEqual({ code: 143, signal: null });
  expect(performance.now() - began).toBeLessThan(ENDS_WITHIN_MS);
  // The process that read has ended as well.
  const reader = Number(readFileSync(reading, 'utf8'));
  await expect.poll(() => existsSync(`/proc/${reader}/exe`), { timeout: 10_000 }).toBe(false);

  const server = await acquireEmbeddedServer(join(home, 'postgres'));
  const found = await query(
    server.connection,
    `SELECT (SELECT count(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()
             AND backend_type = 'client backend')::int AS open, (SELECT count(*) FROM bank_files)::int AS files`,
  );
  await server.release();
  expect(found).toEqual([{ open: 0, files: 0 }]);
});

test('a large file that is wrong is refused as a small one is', { timeout: 120_000 }, async () => {
  const home = await makeHome();
  const env = { RECKONER_HOME: home, DATABASE_URL: '' };
  expect((await command(['init'], { env })).status).toBe(0);
  const file = join(home, 'october.csv');
  const importing = async (lines: number) => {
    writeFileSync(file, `Date,Amount,Text\n${'2026-10-01,1.25,payment\n'.repeat(lines)}`);
    const { status, stdout, stderr } = await command(['--json', 'payment', 'import', file], { env });
    return { status, stdout, stderr };
  };
  const small = await importing(2);
  expect(small.stdout + small.stderr).toContain('bank_columns_missing');
  expect(await importing(20_000)).toEqual(small);
});
