/** The machine around the program: what lies in the current directory is not run, and no home is needed. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { reckoner } from '../support/program.ts';
import { openWorld, partner, quote } from '../support/world.ts';

test('code and crontabs in the current directory are not run by a close or a delivery', async () => {
  const world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
  const cwd = mkdtempSync(join(tmpdir(), 'reckoner-cwd-'));
  const trace = join(cwd, 'ran');
  const code = `require('node:fs').writeFileSync(${JSON.stringify(trace)}, 'ran'); module.exports = { schema: 'other' };`;
  for (const name of ['reckoner.config.cjs', '.reckonerrc.cjs', 'knexfile.js', 'index.js']) {
    writeFileSync(join(cwd, name), code);
  }
  writeFileSync(join(cwd, 'crontab'), '* * * * * not a crontab of ours\n');
  try {
    const env = {
      ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-10T10:00:00Z' },
      HOME: undefined,
    };
    for (const args of [['migrate'], ['close'], ['deliver']]) {
      const ran = await reckoner(['--json', ...args], { env, cwd });
      expect({ args, status: ran.status, stderr: ran.stderr }).toMatchObject({ args, status: 0 });
    }
    expect(existsSync(trace)).toBe(false);
    expect(await world.sql(`SELECT status FROM latest_emails`)).toEqual([{ status: 'sent' }]);
  } finally {
    rmSync(cwd, { recursive: true, force: true });
    await world.end();
  }
});
