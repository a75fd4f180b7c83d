/** The alarm that needs no mail: one script, which cron, systemd and containers run alike. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { jobScript } from '../support/program.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-alarm-'));
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(firstSettings('sandbox')));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const told = () => readFileSync(join(folder, 'told'), 'utf8');
const HOOK = 'tee told-on-stdin | sed "s/^/$ALARM_NAME $ALARM_STATUS: /" > told';

function run(
  script: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<{ status: number | null; stdout: string; stderr: string; ms: number }> {
  const began = performance.now();
  return new Promise((resolve) => {
    const child = spawn(script, args, { cwd: folder, env: { PATH: process.env['PATH'], ...env } });
    const text = { stdout: '', stderr: '' };
    for (const each of ['stdout', 'stderr'] as const)
      child[each].on('data', (chunk: Buffer) => {
        text[each] += chunk.toString();
      });
    child.on('close', (status) => resolve({ status, ...text, ms: performance.now() - began }));
  });
}

test('the command gets the name, the exit status and a sentence', async () => {
  const ran = await run(jobScript('alarm'), ['deliver', '4'], { RECKONER_ALARM_COMMAND: HOOK });
  expect([ran.status, ran.stdout, ran.stderr]).toEqual([0, '', '']);
  expect(told()).toMatch(/^deliver 4: Reckoner on \S+: deliver: exit 4\n$/);
});

test('without a command nothing happens', async () => {
  expect(await run(jobScript('alarm'), ['deliver', '4'], {})).toMatchObject({ status: 0, stdout: '', stderr: '' });
});

test('a command that fails or hangs is a line of the log, and is ended', async () => {
  const failed = await run(jobScript('alarm'), ['deliver', '1'], { RECKONER_ALARM_COMMAND: 'exit 7' });
  expect([failed.status, failed.stderr]).toEqual([
    0,
    'alarm of deliver: RECKONER_ALARM_COMMAND ended with exit status 7\n',
  ]);
  const env = { RECKONER_ALARM_COMMAND: 'sleep 60', RECKONER_ALARM_SECONDS: '1' };
  const hung = await run(jobScript('alarm'), ['deliver', '1'], env);
  expect([hung.status, hung.stderr]).toEqual([0, expect.stringContaining('exit status 124')]);
  expect(hung.ms).toBeLessThan(20_000);
});

test('a job of cron that fails before it has a database raises the alarm, and exits with its own status', async () => {
  const environment = join(folder, 'environment');
  writeFileSync(
    environment,
    `RECKONER_HOME='${folder}'\nDATABASE_URL=postgres://nobody@127.0.0.1:1/none\n` +
      `RECKONER_ALARM_COMMAND='cat > ${join(folder, 'told')}; exit 3'\n`,
  );
  const ran = await run(jobScript('run-job'), ['deliver'], { RECKONER_ENVIRONMENT_FILE: environment });
  expect([ran.status, ran.stdout]).toEqual([1, 'deliver: exit 1\n']);
  expect(told()).toMatch(/deliver: exit 1\n$/);
  expect(ran.stderr).toContain('RECKONER_ALARM_COMMAND ended with exit status 3');
});

test('an environment that cannot be read raises the alarm that cron itself names', async () => {
  const env = { RECKONER_ENVIRONMENT_FILE: join(folder, 'none'), RECKONER_ALARM_COMMAND: HOOK };
  const ran = await run(jobScript('run-job'), ['watch'], env);
  expect([ran.status, ran.stdout]).toEqual([1, expect.stringContaining('cannot be read by')]);
  expect(told()).toContain('so the job did not run');
});

test('a container backs up and raises the alarm as cron does', async () => {
  const scheduler = jobScript('../deploy/scheduler.sh');
  mkdirSync(join(folder, 'backups'));
  const env = {
    ...{ RECKONER_HOME: folder, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', RECKONER_ALARM_COMMAND: HOOK },
    RECKONER_BACKUPS: join(folder, 'backups'),
  };
  for (const job of ['backup', 'deliver']) {
    const ran = await run(scheduler, ['once', job], env);
    expect([ran.status, ran.stderr]).toEqual([1, expect.stringContaining(`${job}: exit 1\n`)]);
    expect(told()).toMatch(new RegExp(`^${job} 1: `));
  }
});

test('cron, systemd and containers run the same jobs', () => {
  const read = (path: string) => readFileSync(jobScript(path), 'utf8');
  const inCron = [...read('crontab').matchAll(/\$RUN (\S+)/g)].map(([, job]) => job).sort();
  const inContainers = [
    ...new Set([...read('../deploy/scheduler.sh').matchAll(/\brun ([a-z-]+) &/g)].map(([, job]) => job)),
  ];
  expect(inContainers.sort()).toEqual(inCron);
  for (const job of inCron) expect(read(`systemd/reckoner-${job}.timer`)).toContain('[Timer]');
  expect(inCron).toContain('drill');
});

test('a server or worker that fails again and again raises the alarm, and is started again later', () => {
  for (const name of ['serve', 'worker']) {
    const unit = readFileSync(jobScript(`systemd/reckoner-${name}.service`), 'utf8');
    expect(unit).toContain(`OnFailure=reckoner-alarm@${name}.service reckoner-again@${name}.service\n`);
    // More starts than the limit must fit into the interval, or the limit is never reached.
    const [, minutes] = /^StartLimitIntervalSec=(\d+)min$/m.exec(unit) ?? [];
    const [, burst] = /^StartLimitBurst=(\d+)$/m.exec(unit) ?? [];
    const [, pause] = /^RestartSec=(\d+)$/m.exec(unit) ?? [];
    const longestStart = 20;
    expect(Number(burst) * (Number(pause) + longestStart)).toBeLessThan(60 * Number(minutes));
  }
});
