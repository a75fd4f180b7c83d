/** `reckoner doctor`: what is wrong with a machine, before anything depends on it. */
import { chmodSync, existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Finding } from '../../src/cli/doctor.ts';
import { startMailServer } from '../support/mail-server.ts';
import { command } from '../support/program.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

async function doctor(env: Record<string, string> = {}) {
  const ran = await command(['--json', 'doctor'], {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, ...env },
  });
  const { findings, problems } = ran.json() as { findings: Finding[]; problems: number };
  const of = (check: string) => findings.filter((each) => each.check === check && each.state !== 'ok');
  return { ...ran, findings, problems, of };
}

test('a machine that can run Reckoner has no problem', async () => {
  const mail = await startMailServer();
  chmodSync(world.home, 0o700);
  const { status, findings } = await doctor({ SMTP_URL: mail.url });
  await mail.close();
  // The tests' server gives up safety for speed, and is told so.
  const problems = findings.filter(({ state }) => state === 'problem').map(({ says }) => says.split(':')[0]);
  expect([status, problems]).toEqual([4, ['full_page_writes is off']]);
  expect(findings.map(({ check }) => check)).toEqual(
    expect.arrayContaining([
      'node',
      'time zones',
      'environment',
      'home',
      'disk',
      'fonts',
      'database',
      'settings',
      'mail',
    ]),
  );
  expect(mail.mails).toEqual([]);
});

test('everything that is wrong is named at once, and no secret with it', async () => {
  const port = await freePort();
  const { status, problems, stdout, of } = await doctor({
    DATABASE_URL: `postgres://someone:geheim-1@127.0.0.1:${port}/none`,
    SMTP_URL: `smtp://someone:geheim-2@127.0.0.1:${port}`,
  });
  expect([status, problems]).toEqual([4, 2]);
  expect(of('database')[0]?.says).toContain(`127.0.0.1:${port}/none`);
  expect(of('mail')[0]?.says).toContain('ECONNREFUSED');
  expect(stdout).not.toContain('geheim');
});

test('a home that others may read is a warning, and one that is missing a problem', async () => {
  chmodSync(world.home, 0o755);
  expect((await doctor()).of('home')).toMatchObject([
    { state: 'warning', says: expect.stringContaining('chmod 0700') },
  ]);
  chmodSync(world.home, 0o700);
  const missing = join(world.home, 'nowhere');
  const { status, of } = await doctor({ RECKONER_HOME: missing, DATABASE_URL: '' });
  expect([status, of('home')[0]?.state, of('settings')[0]?.state]).toEqual([4, 'problem', 'problem']);
  expect(existsSync(missing)).toBe(false);
});

function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => done(port));
    });
  });
}
