/** Cron at work with nobody watching: what the jobs do, log and exit with. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { untilLockAwaited } from '../support/locks.ts';
import { command, job, type Ran } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2', time_zone: 'Pacific/Pago_Pago' })]);
  world.at('2026-10-05T00:00:00Z');
  await world.rows(
    ['2026-07', '2026-08', '2026-09'].flatMap((month) => [
      quote({ accepted_at: `${month}-15T12:00:00Z` }),
      quote({ accepted_at: `${month}-16T12:00:00Z`, partner_id: 'p-2' }),
    ]),
  );
});
afterAll(() => world.end());

const env = (now: string) => ({
  RECKONER_HOME: world.home,
  DATABASE_URL: world.databaseUrl,
  RECKONER_NOW: now,
});
const run = (name: string, now: string): Promise<Ran> => job(name, { env: env(now) });
const facts = (ran: Ran) =>
  ran.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test('before a month has ended in Pago Pago nothing is due, and nothing happens', async () => {
  const ran = await run('month-close', '2026-08-01T10:59:59Z');
  expect(ran.status).toBe(0);
  expect(facts(ran).some((fact) => fact['msg'] === 'month closed')).toBe(false);
});

test('a month that stays open 24 hours after it ended everywhere is named, and the watch mails it to operations', async () => {
  // July ended in Pago Pago at 11:00 UTC on 1 August.
  const status = await command(['--json', 'status'], { env: env('2026-08-02T11:00:01Z') });
  expect(status.status).toBe(4);
  expect(status.json()).toMatchObject({
    months: { due: ['2026-07'], overdue: [{ month: '2026-07', ended_at: '2026-08-01T11:00:00.000Z' }] },
  });
  const ran = await run('watch', '2026-08-02T11:00:01Z');
  expect(ran.status).toBe(4);
  const [mail] = readdirSync(join(world.home, 'outbox')).filter((name) => name.startsWith('status'));
  const parsed = await simpleParser(readFileSync(join(world.home, 'outbox', mail as string)));
  expect(parsed.subject).toBe('[SANDBOX] Reckoner needs attention: 2 items');
  expect(parsed.text).toContain('month-close last ran at 2026-08-01 10:59 UTC.');
  expect(parsed.text).toContain('2026-07 ended in every time zone at 2026-08-01 11:00 UTC and is still open.');
  expect([parsed.to].flat().map((to) => to?.text)).toEqual(['"Operations" <operations@protection.example>']);
});

test('a cron that missed three months closes them in order, delivers them, and logs one JSON line a fact', async () => {
  const ran = await run('month-close', '2026-10-02T00:07:00Z');
  expect(ran.status).toBe(0);
  const logged = facts(ran);
  expect(logged.filter((fact) => fact['msg'] === 'month closed').map((fact) => fact['month'])).toEqual([
    '2026-07',
    '2026-08',
    '2026-09',
  ]);
  expect(logged.filter((fact) => fact['msg'] === 'delivery' && fact['status'] === 'sent')).toHaveLength(6);
  expect(logged.at(-1)).toMatchObject({ level: 'info', job: 'month-close', exit: 0, msg: 'finished' });
  expect((await world.documents()).map((document) => document.number)).toEqual(
    [1, 2, 3, 4, 5, 6].map((sequence) => `INV-2026-00000${sequence}`),
  );
});

test('two runs that overlap do no harm: both exit 0, each month is closed once, each e-mail written once', async () => {
  await world.rows([quote({ accepted_at: '2026-10-01T12:00:00Z' })]);
  const runs = await Promise.all([
    run('month-close', '2026-11-01T12:07:00Z'),
    run('month-close', '2026-11-01T12:07:00Z'),
  ]);
  expect(runs.map((ran) => ran.status)).toEqual([0, 0]);
  const closed = runs.flatMap(facts).filter((fact) => fact['msg'] === 'month closed');
  expect(closed).toMatchObject([{ month: '2026-10' }]);
  expect(await world.sql(`SELECT attempts FROM document_emails`)).toEqual(Array(7).fill({ attempts: 1 }));
});

test('when all is well the watch is silent, and status tells when each job ran last', async () => {
  const before = readdirSync(join(world.home, 'outbox'));
  expect((await run('watch', '2026-11-01T13:00:00Z')).status).toBe(0);
  expect((await run('deliver', '2026-11-01T13:10:00Z')).status).toBe(0);
  expect(readdirSync(join(world.home, 'outbox'))).toEqual(before);
  const status = await command(['--json', 'status'], { env: env('2026-11-01T13:20:00Z') });
  expect({ status: status.status, jobs: (status.json() as { jobs: unknown }).jobs }).toMatchObject({
    status: 0,
    jobs: [
      { job: 'deliver', finished_at: '2026-11-01T13:10:00Z', exit_status: 0 },
      { job: 'month-close', finished_at: '2026-11-01T12:07:00Z', exit_status: 0 },
      { job: 'watch', finished_at: '2026-11-01T13:00:00Z', exit_status: 0 },
    ],
  });
});

test('on its day of the settings the job closes the books, and names what keeps them open', async () => {
  const settings = { ...firstSettings('sandbox'), books_close_day: 5 };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  const line = '2026-10-30,-3.00,USD,0001,FT-1,fee,,';
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
  const file = world.file('october.csv', `${head}\n${line}\n`);
  expect((await command(['payment', 'import', file], { env: env('2026-11-03T12:00:00Z') })).status).toBe(0);
  const early = await run('month-close', '2026-11-04T12:07:00Z');
  expect(facts(early).flatMap((fact) => (fact['msg'] === 'books closed' ? [fact['month']] : []))).toEqual([
    '2026-07',
    '2026-08',
    '2026-09',
  ]);
  const late = await run('month-close', '2026-11-05T12:07:00Z');
  expect(late.status).toBe(4);
  expect(facts(late)).toContainEqual(expect.objectContaining({ level: 'error', code: 'bank_feed_behind' }));
  const status = await command(['status'], { env: env('2026-11-05T13:00:00Z') });
  expect(status.status).toBe(4);
  expect(status.stdout).toContain('Books        closed to 2026-09; open: 2026-10');
  expect(status.stdout).toMatch(/account 0001 is reported through 2026-10-30\.[\s\S]*They were due on 2026-11-05\./);
  await command(
    [
      'payment',
      'import',
      world.file('november.csv', `${head}\n${line.replace('10-30', '11-02').replace('FT-1', 'FT-2')}\n`),
    ],
    { env: env('2026-11-05T13:00:00Z') },
  );
  expect((await run('month-close', '2026-11-05T14:07:00Z')).status).toBe(0);
  expect(await world.sql('SELECT max(month) AS month FROM book_closes')).toEqual([{ month: '2026-10' }]);
});

test('a document that finance put on hold is no alarm: the jobs exit 0', async () => {
  world.at('2026-12-01T12:00:00Z');
  await world.rows(['p-1', 'p-2'].map((partner_id) => quote({ accepted_at: '2026-11-10T12:00:00Z', partner_id })));
  const now = '2026-12-01T12:07:00Z';
  const actions = [
    ['close', '--no-deliver'],
    ['invoice', 'hold', 'INV-2026-000008', '--reason', 'to be discussed'],
  ];
  for (const action of actions) expect((await command(action, { env: env(now) })).status).toBe(0);
  expect((await run('deliver', now)).status).toBe(0);
  expect((await run('month-close', now)).status).toBe(0);
  expect(await world.sql(`SELECT count(*) FROM emails WHERE status = 'held'`)).toEqual([{ count: '1' }]);
});

test('without a database the job says so in its log and exits 1', async () => {
  const ran = await job('month-close', {
    env: { ...env('2026-11-01T14:00:00Z'), DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' },
  });
  expect(ran.status).toBe(1);
  expect(facts(ran)).toMatchObject([{ level: 'error', code: 'database_unreachable' }]);
});

test('the job that delivers tells once when no e-mail has left for an hour, since no e-mail could tell it', async () => {
  const away = await openWorld();
  await away.partners([partner()]);
  await away.rows([quote()]);
  away.at('2026-08-01T12:00:00Z');
  await away.close('2026-07');
  const deliver = async (time: string, more: object = { SMTP_URL: 'smtp://127.0.0.1:1' }) => {
    const own = { RECKONER_HOME: away.home, DATABASE_URL: away.databaseUrl, RECKONER_NOW: `2026-08-01T${time}:00Z` };
    return (await job('deliver', { env: { ...own, ...more } })).status;
  };
  const exits: (number | null)[] = [];
  for (const time of ['12:10', '12:20', '13:20', '13:30']) exits.push(await deliver(time));
  expect(exits).toEqual([0, 0, 4, 0]);
  expect(await deliver('13:40', {})).toBe(0);
  expect(await away.documents()).toMatchObject([{ email: { status: 'sent' } }]);
  await away.end();
});

describe('what needs attention', () => {
  let troubled: World;
  const at = (time: string) => ({
    env: { RECKONER_HOME: troubled.home, DATABASE_URL: troubled.databaseUrl, RECKONER_NOW: time },
  });
  beforeAll(async () => {
    troubled = await openWorld();
    await troubled.partners([partner({ invoicing_contact: { name: '', email: '', cc: [] } })]);
    await troubled.rows([quote()]);
    troubled.at('2026-08-01T12:00:00Z');
    await troubled.close('2026-07');
  });
  afterAll(() => troubled.end());

  test('is told once by the job that runs every ten minutes, and again after a day', async () => {
    const exits: (number | null)[] = [];
    for (const time of ['01T12:10', '01T12:20', '01T18:00', '02T12:30', '02T12:40']) {
      exits.push((await job('deliver', at(`2026-08-${time}:00Z`))).status);
    }
    expect(exits).toEqual([4, 0, 0, 4, 0]);
    // The command says how things are, not what is new.
    expect((await command(['deliver'], at('2026-08-02T12:50:00Z'))).status).toBe(4);
  });

  test('is e-mailed once, again when something else does, and again after a week', async () => {
    const mails = () => readdirSync(join(troubled.home, 'outbox')).filter((name) => name.startsWith('status')).length;
    const sent: [number | null, number][] = [];
    for (const day of ['03', '04', '05'])
      sent.push([(await job('watch', at(`2026-08-${day}T07:30:00Z`))).status, mails()]);
    expect(sent).toEqual([
      [4, 1],
      [0, 1],
      [0, 1],
    ]);
    expect((await job('watch', at('2026-08-10T07:30:05Z'))).status).toBe(4);
    expect(mails()).toBe(2);
  });

  test('is not e-mailed as new because its sentence holds another time or count, but a second thing of its kind is', async () => {
    const mails = () => readdirSync(join(troubled.home, 'outbox')).filter((name) => name.startsWith('status')).length;
    const before = mails();
    // The sentence names the time of the last run.
    const failed = (time: string) =>
      troubled.sql(
        `INSERT INTO job_runs (job, started_at, finished_at, exit_status) VALUES ('remind', '${time}', '${time}', 1)`,
      );
    await failed('2026-08-11T07:00:00Z');
    expect((await job('watch', at('2026-08-11T07:30:00Z'))).status).toBe(4);
    await failed('2026-08-12T07:00:00Z');
    expect((await job('watch', at('2026-08-12T07:30:00Z'))).status).toBe(0);
    expect(mails()).toBe(before + 1);
    const differences = (count: number) =>
      troubled.sql(
        `INSERT INTO job_runs (job, started_at, finished_at, exit_status)
         VALUES ('verify', '2026-08-13T03:0${count}:00Z', '2026-08-13T03:0${count}:00Z', 4);
         DELETE FROM job_attention WHERE job = 'verify';
         INSERT INTO job_attention (job, item, count, told_at)
         VALUES ('verify', 'ledger_rows', ${count}, '2026-08-13T03:00:00Z')`,
      );
    const exits: [number | null, number][] = [];
    for (const [count, hour] of [
      [2, '07'],
      [2, '08'],
      [3, '09'],
      [1, '10'],
      [2, '11'],
    ] as const) {
      await differences(count);
      exits.push([(await job('watch', at(`2026-08-13T${hour}:30:00Z`))).status, mails() - before]);
    }
    expect(exits).toEqual([
      [4, 2],
      [0, 2],
      [4, 3],
      [0, 3],
      [4, 4],
    ]);
    await troubled.sql(`${GUARDS_OFF} DELETE FROM job_runs WHERE job IN ('remind', 'verify'); ${GUARDS_ON}`);
  });

  test('is e-mailed once where two hosts watch at the same moment', async () => {
    const mails = () => readdirSync(join(troubled.home, 'outbox')).filter((name) => name.startsWith('status')).length;
    const before = mails();
    const rival = new pg.Client(troubled.databaseUrl);
    await rival.connect();
    await rival.query('BEGIN; LOCK TABLE emails IN SHARE MODE');
    const both = ['10', '11'].map((second) => job('watch', at(`2026-08-21T07:30:${second}Z`)));
    // Neither has told anybody yet, and each has seen what there is to tell or waits for the other.
    await untilLockAwaited(troubled, 2);
    await rival.end();
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([0, 4]);
    expect(mails()).toBe(before + 1);
  });

  test('is nothing any more once it is mended', async () => {
    await troubled.partners([partner()]);
    expect((await job('deliver', at('2026-08-10T08:00:00Z'))).status).toBe(0);
    expect(await troubled.sql(`SELECT FROM job_attention WHERE job = 'deliver'`)).toEqual([]);
  });
});
