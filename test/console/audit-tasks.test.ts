/** What auditors start in the console: verify with its progress, and packs to download. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportPack } from '../../src/audit/export.ts';
import { exportAll } from '../../src/audit/export-all.ts';
import { insertTask, noteProgress, readTasks } from '../../src/audit/tasks.sql.ts';
import type { Month } from '../../src/month.ts';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { Served } from '../support/service.ts';
import { type ConsoleBooks, openConsole } from './books.ts';

const CHECKS = '/console/audit/checks';
const PACKS = '/console/audit/packs';

let books: ConsoleBooks;
let served: Served;
let viewer: Browser;
beforeAll(async () => {
  books = await openConsole();
  await invite(books, ADMINISTRATOR);
  served = await serveConsole(books);
  viewer = await signedIn(served, await invite(books, 'kim@auditor.example', { roles: ['viewer'] }));
});
afterAll(async () => {
  await served.end();
  await books.end();
});

const tasks = (kind: 'verify' | 'export') => books.database.reading((tx) => readTasks(tx, { kind, limit: 10 }));
const ended = (kind: 'verify' | 'export') =>
  expect.poll(async () => (await tasks(kind))[0]?.finished_at ?? null, { timeout: 60_000, interval: 200 });
const events = (action: string) =>
  books.sql<{ subject: string; login: string }>(
    `SELECT subject, personal(login) AS login FROM audit_events JOIN users USING (user_id) WHERE action = $1`,
    [action],
  );

describe('verify', () => {
  test('is started by a form, runs beside it, and shows each check; who started it is an event', async () => {
    expect((await viewer.get(CHECKS)).text).toContain('Verify now');
    const { status, location } = await viewer.post(CHECKS, { start: 'verify' });
    expect([status, location]).toEqual([303, CHECKS]);
    await ended('verify').not.toBeNull();
    const { text } = await viewer.get(CHECKS);
    expect(text).toMatch(/\d+ checks passed/);
    expect(text).toContain('log_derived_again');
    expect(await events('audit.verify')).toEqual([{ subject: 'everything', login: 'kim@auditor.example' }]);
    const runs = await books.sql(`SELECT FROM job_runs WHERE job = 'verify' AND exit_status = 0`);
    expect(runs.length).toBe(1);
  }, 90_000);

  test('names what it finds, which is in the work queue until the next one finds nothing', async () => {
    const damaged = `UPDATE documents SET partner_name = 'Somebody else' WHERE number = 'INV-2026-000001'`;
    const [{ partner_name: before } = { partner_name: '' }] = await books.sql<{ partner_name: string }>(
      `SELECT partner_name FROM documents WHERE number = 'INV-2026-000001'`,
    );
    await books.sql(`${GUARDS_OFF} ${damaged}; ${GUARDS_ON}`);
    await viewer.post(CHECKS, { start: 'verify' });
    await ended('verify').not.toBeNull();
    expect((await viewer.get(CHECKS)).text).toMatch(/checks? found differences/);
    const queue = await viewer.get('/console/queue?queue=findings');
    expect(queue.text).toContain('find the cause');
    await books.sql(
      `${GUARDS_OFF} UPDATE documents SET partner_name = '${before}' WHERE number = 'INV-2026-000001'; ${GUARDS_ON}`,
    );
    await viewer.post(CHECKS, { start: 'verify' });
    await ended('verify').not.toBeNull();
    expect((await viewer.get('/console/queue?queue=findings')).text).toContain('Nothing to do.');
  }, 180_000);

  test('that is under way is shown with its progress, and not started twice; a lost one makes way', async () => {
    const now = books.environment.now().toISO();
    const task = { kind: 'verify', input: {}, userId: null, host: 'desk', now } as const;
    const taskId = (await books.database.transaction((tx) => insertTask(tx, task))) as number;
    await books.database.transaction((tx) => noteProgress(tx, { taskId, progress: 7 }));
    const { text } = await viewer.get(CHECKS);
    expect(text).toMatch(/Verify is under way.*7 of \d+ checks, started by the nightly job/s);
    expect(text).toContain('hx-trigger="every 2s"');
    const before = (await tasks('verify')).length;
    expect((await viewer.post(CHECKS, { start: 'verify' })).status).toBe(303);
    expect((await tasks('verify')).length).toBe(before);
    await books.sql(`UPDATE audit_tasks SET seen_at = seen_at - interval '2 minutes' WHERE finished_at IS NULL`);
    expect((await viewer.get(CHECKS)).text).toContain('stopped during the last run');
    await viewer.post(CHECKS, { start: 'verify' });
    await ended('verify').not.toBeNull();
    expect((await tasks('verify')).map(({ problem }) => problem)[1]).toBe('the server that ran it has stopped');
  }, 90_000);
});

describe('a pack', () => {
  test('is made beside the request by the code of the command, and downloaded', async () => {
    const { location } = await viewer.post(PACKS, { kind: 'journal', month: '2026-07', format: 'hledger' });
    expect(location).toBe(`${PACKS}/2026-07`);
    await ended('export').not.toBeNull();
    const { text } = await viewer.get(`${PACKS}/2026-07`);
    const [, href = ''] = /href="(\/console\/audit\/packs\/files\/\d+\/pack\.zip)"/.exec(text) ?? [];
    const pack = await viewer.get(href);
    expect([pack.status, pack.headers.get('content-disposition')]).toEqual([
      200,
      'attachment; filename="journal-2026-07.zip"',
    ]);
    expect(pack.text.slice(0, 2)).toBe('PK');
    const out = `${books.home}/by-command.zip`;
    const month = '2026-07' as Month;
    const request = { kind: 'journal', from: month, to: month, format: 'hledger', out } as const;
    const command = await exportPack(books.database, books.environment, request);
    expect(text).toContain(command.manifest_sha256);
    expect(await events('audit.export')).toEqual([{ subject: 'journal 2026-07', login: 'kim@auditor.example' }]);
  }, 90_000);

  test('that cannot be made says why, and one that does not exist is no page', async () => {
    for (const wrong of [
      { kind: 'everything', month: '2026-07' },
      { kind: 'ledger', month: 'July' },
      { kind: 'ledger' },
    ])
      expect((await viewer.post(PACKS, wrong as Record<string, string>)).status).toBe(400);
    const [last] = await tasks('export');
    const taken = `${Number(last?.task_id) + 1}.zip`;
    writeFileSync(join(books.home, 'packs', taken), '');
    await viewer.post(PACKS, { kind: 'ledger', month: '2026-07' });
    await ended('export').not.toBeNull();
    const [task] = await tasks('export');
    expect([task?.result, task?.problem]).toMatchObject([null, expect.stringContaining(taken)]);
    expect((await viewer.get(PACKS)).text).toContain('already exists');
    expect((await viewer.get(`${PACKS}/files/4711/pack.zip`)).status).toBe(404);
  }, 90_000);

  test('of every kind and month is one file, whose packs the command checks; it says until when it is kept', async () => {
    const { text: offered } = await viewer.get(PACKS);
    expect(offered).toContain('Everything, for an audit');
    const { location } = await viewer.post(PACKS, { kind: 'all', month: '2026-07', to: '2026-09' });
    await ended('export').not.toBeNull();
    const [task] = await tasks('export');
    expect([task?.problem, task?.input]).toMatchObject([
      null,
      { kind: 'all', months: expect.arrayContaining(['2026-07']) },
    ]);
    const { text } = await viewer.get(location as string);
    expect(text).toMatch(/everything.*SHA256SUMS [0-9a-f]{64}/s);
    expect(text).toContain('the latest 5 are kept, each for 24 hours');
    expect(text).toContain('Kept until');
    const href = `${PACKS}/files/${task?.task_id}/pack.zip`;
    const { status, headers } = await viewer.get(href);
    expect([status, headers.get('content-disposition')]).toEqual([
      200,
      'attachment; filename="all-2026-07-2026-09.zip"',
    ]);
    const out = join(books.home, 'all');
    const request = { from: '2026-07' as Month, to: '2026-09' as Month, format: 'csv', out } as const;
    const command = await exportAll(books.database, books.environment, request);
    expect(task?.result).toMatchObject({ manifest_sha256: command.sums_sha256 });
    expect(command.packs).toBe(6 * command.months.length + (command.months.length > 1 ? 2 : 0));
    const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8').trimEnd().split('\n');
    for (const line of sums) {
      const [hash, file = ''] = line.split('  ');
      expect(
        createHash('sha256')
          .update(readFileSync(join(out, file)))
          .digest('hex'),
      ).toBe(hash);
    }
    await expect(exportAll(books.database, books.environment, request)).rejects.toMatchObject({
      code: 'export_exists',
    });
    expect((await viewer.post(PACKS, { kind: 'all', month: '2020-01' })).status).toBe(400);
  }, 90_000);

  test('that is under way shows its month; one whose server stopped must be made again', async () => {
    const now = books.environment.now().toISO();
    const input = {
      kind: 'all',
      from: '2026-07',
      to: '2026-09',
      format: 'csv',
      months: ['2026-07', '2026-08', '2026-09'],
    };
    const task = { kind: 'export', input, userId: null, host: 'desk', now } as const;
    const taskId = (await books.database.transaction((tx) => insertTask(tx, task))) as number;
    await books.database.transaction((tx) => noteProgress(tx, { taskId, progress: 7 }));
    expect((await viewer.get(PACKS)).text).toContain('under way, month 2 of 3 (2026-08)');
    await books.sql(`UPDATE audit_tasks SET seen_at = seen_at - interval '2 minutes' WHERE finished_at IS NULL`);
    expect((await viewer.get(PACKS)).text).toContain('the server has stopped: make it again');
  });

  test('is of the whole ledger, and not for a user of one partner', async () => {
    const narrowed = await signedIn(
      served,
      await invite(books, 'nia@auditor.example', { roles: ['viewer'], partnerId: 'p-2' }),
    );
    const before = (await tasks('export')).length;
    expect((await narrowed.post(PACKS, { kind: 'ledger', month: '2026-07' })).status).toBe(403);
    expect((await narrowed.get(`${PACKS}/files/${(await tasks('export')).at(-1)?.task_id}/pack.zip`)).status).toBe(403);
    expect((await tasks('export')).length).toBe(before);
  });
});
