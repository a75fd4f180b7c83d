/** Cron under rules of approval: what a job would do by itself waits for a second person, once, and is then really done. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { LEE, openApproving } from '../support/approving.ts';
import { command, job, type Ran } from '../support/program.ts';
import { quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openApproving();
  ruled(RULES);
  world.at('2026-09-20T00:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-15T12:00:00Z' })]);
});
afterAll(() => world.end());

const RULES = { 'month.close': { always: true }, 'books.close': { always: true } } as const;

function ruled(approvals: Settings['approvals'], more: Partial<Settings> = {}): void {
  const { logo: _, ...issuer } = world.settings.issuer;
  const settings = { ...world.settings, sections: undefined, issuer, approvals, ...more };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
}

const env = (now: string) => ({ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now });
const run = (name: string, now: string): Promise<Ran> => job(name, { env: env(now) });
const lee = (now: string, ...args: string[]): Promise<Ran> => command(['--by', LEE, ...args], { env: env(now) });
const facts = ({ stderr }: Ran) =>
  stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const requests = () =>
  world.sql<{ request_id: number; action: string; login: string; decision: string | null }>(
    `SELECT request_id::int, action, personal(login) AS login, decision
     FROM approval_requests r JOIN users ON user_id = r.requested_by LEFT JOIN approval_decisions d USING (request_id)
     ORDER BY request_id`,
  );
const closed = async (table: string) =>
  (await world.sql<{ month: string }>(`SELECT month FROM ${table} ORDER BY month`)).map(({ month }) => month);
const mailed = (begin: string) => readdirSync(join(world.home, 'outbox')).filter((name) => name.startsWith(begin));

test('the hourly close under a rule closes nothing, leaves one request of cron, and tells it once', async () => {
  const ran = await run('month-close', '2026-09-01T13:00:00Z');
  expect([ran.status, await closed('closed_months')]).toEqual([4, ['2026-07']]);
  const asked = [{ request_id: 1, action: 'month.close', login: 'cron', decision: null }];
  expect(await requests()).toEqual(asked);
  expect(facts(ran)).toContainEqual(
    expect.objectContaining({ level: 'warn', msg: 'waits for approval', code: 'approval_needed', request_id: 1 }),
  );
  expect(facts(ran)).toContainEqual(expect.objectContaining({ msg: 'needs attention', item: 'approval_needed 1' }));
  for (const hour of ['14', '15']) {
    const again = await run('month-close', `2026-09-01T${hour}:00:00Z`);
    expect([again.status, facts(again).some(({ msg }) => msg === 'needs attention')]).toEqual([0, false]);
  }
  expect(await requests()).toEqual(asked);
});

test('other jobs go on meanwhile, and ask for nothing', async () => {
  for (const name of ['deliver', 'remind']) expect((await run(name, '2026-09-01T16:00:00Z')).status).toBe(0);
  expect(await requests()).toHaveLength(1);
});

test('the status names the request, who may decide it and the command that shows it; the watch mails it', async () => {
  const status = await lee('2026-09-01T16:00:00Z', 'status');
  expect(status.status).toBe(4);
  const said = status.stdout.replaceAll(/\s+/g, ' ');
  expect(said).toContain(
    'Request 1 by cron waits for approval until 2026-09-15 13:00 UTC: month.close of due months. ' +
      "Decide on it with 'reckoner approval show 1'.",
  );
  expect((await run('watch', '2026-09-01T16:00:00Z')).status).toBe(4);
  expect(mailed('status')).toHaveLength(1);
});

test('the approval closes the month, and delivers its documents', async () => {
  const ran = await lee('2026-09-01T17:00:00Z', 'approval', 'approve', '1', '--reason', 'checked');
  expect([ran.status, ran.stderr]).toMatchObject([0, expect.stringContaining('Closed 2026-08.')]);
  expect(ran.stdout).toContain('Request 1 is approved, and done.');
  expect(await closed('closed_months')).toEqual(['2026-07', '2026-08']);
  expect(
    await world.sql(`SELECT d.number, e.status FROM documents d JOIN latest_emails e USING (document_id)
                          WHERE month = '2026-08'`),
  ).toEqual([{ number: 'INV-2026-000003', status: 'sent' }]);
  expect(mailed('checkpoint')).toHaveLength(2);
  const events = await world.sql(
    `SELECT action, personal(login) AS login, personal_json(details->'approval') AS approval FROM audit_events JOIN users USING (user_id)
     WHERE action IN ('approval.approve', 'month.close') ORDER BY audit_events.event_id`,
  );
  expect(events).toEqual([
    { action: 'approval.approve', login: LEE, approval: null },
    { action: 'month.close', login: 'cron', approval: { request: 1, approved_by: LEE } },
  ]);
  const after = await run('month-close', '2026-09-01T18:00:00Z');
  expect([after.status, (await requests()).length]).toEqual([0, 1]);
});

test('the books that the job would close wait in the same way', async () => {
  ruled(RULES, { books_close_day: 10 });
  const ran = await run('month-close', '2026-09-02T13:00:00Z');
  expect([ran.status, await closed('book_closes')]).toEqual([4, []]);
  expect(facts(ran)).toContainEqual(
    expect.objectContaining({ level: 'warn', msg: 'waits for approval', code: 'approval_needed', request_id: 2 }),
  );
  expect(facts(ran).filter(({ level }) => level === 'error')).toEqual([]);
  expect((await run('month-close', '2026-09-02T14:00:00Z')).status).toBe(0);
  expect((await requests()).filter(({ action }) => action === 'books.close')).toHaveLength(1);
  expect((await lee('2026-09-02T15:00:00Z', 'approval', 'approve', '2')).status).toBe(0);
  expect(await closed('book_closes')).toEqual(['2026-07']);
  ruled(RULES);
});

test('what was rejected is not asked for again until it would do something else', async () => {
  await world.rows([quote({ accepted_at: '2026-09-15T12:00:00Z' })]);
  await run('month-close', '2026-10-01T13:00:00Z');
  const [waiting] = (await requests()).filter(({ decision }) => decision === null);
  const number = waiting?.request_id ?? 0;
  await lee('2026-10-01T14:00:00Z', 'approval', 'reject', String(number), '--reason', 'rows are missing');
  const before = await requests();
  const ran = await run('month-close', '2026-10-01T15:00:00Z');
  expect([ran.status, await requests()]).toEqual([4, before]);
  expect(facts(ran)).toContainEqual(
    expect.objectContaining({ level: 'warn', code: 'approval_rejected', request_id: number, decided_by: LEE }),
  );
  expect((await run('month-close', '2026-10-01T16:00:00Z')).status).toBe(0);
  await world.rows([quote({ accepted_at: '2026-09-16T12:00:00Z' })]);
  await run('month-close', '2026-10-01T17:00:00Z');
  expect(await requests()).toHaveLength(before.length + 1);
});

test('what a person has closed meanwhile the job waits for no more: it withdraws its request', async () => {
  const [waiting] = (await requests()).filter(({ decision }) => decision === null);
  expect(waiting).toMatchObject({ action: 'month.close', login: 'cron' });
  ruled({});
  const close = ['--by', 'mara@issuer.example', 'close', '2026-09', '--no-deliver'];
  expect(await command(close, { env: env('2026-10-01T18:00:00Z') })).toMatchObject({ status: 0 });
  ruled(RULES);
  const after = await run('month-close', '2026-10-01T19:00:00Z');
  expect(facts(after)).toContainEqual(
    expect.objectContaining({ msg: 'request withdrawn: it was done in the meantime', request: waiting?.request_id }),
  );
  expect((await requests()).filter(({ decision }) => decision === null)).toEqual([]);
  expect((await requests()).find(({ request_id }) => request_id === waiting?.request_id)).toMatchObject({
    decision: 'withdraw',
  });
});
