/** What keeps everything from being written: two clocks that differ, a server that takes no writes, a newer database. */
import { DateTime } from 'luxon';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { closeMonths } from '../../src/close/run.ts';
import type { Environment } from '../../src/config/environment.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { execute } from '../../src/database/transaction.ts';
import type { Month } from '../../src/month.ts';
import { refusalOf } from '../close/refusal.ts';
import { correctionsOf, document, expectVerified } from '../documents/correcting.ts';
import { type DatabaseClock, databaseClock, makeReadOnly } from '../support/database-faults.ts';
import { withoutEvent } from '../support/guards.ts';
import { readStatus } from '../support/status.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let clock: DatabaseClock | undefined;
const opened: Database[] = [];
beforeEach(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const database of opened.splice(0)) await database.close();
  await clock?.end();
  clock = undefined;
  await world.end();
});

/** Stops the database's clock. */
async function databaseSays(instant: string): Promise<void> {
  clock ??= await databaseClock(world.databaseUrl);
  await clock.show(instant);
}

const machineWith = (now: () => DateTime<true>): Environment => ({ ...world.environment, clockIsSet: false, now });
const machineAt = (instant: string) => machineWith(() => DateTime.fromISO(instant, { zone: 'utc' }) as DateTime<true>);

async function opening(environment: Environment, readOnly = false): Promise<Database> {
  const database = await openDatabase(environment, { readOnly });
  opened.push(database);
  return database;
}

const writing = (database: Database) => database.transaction((tx) => execute(tx, `UPDATE partners SET name = name`));
const closing = async (environment: Environment, month?: string) =>
  closeMonths(await opening(environment), { ...world, environment }, { month: month as Month });

describe('the clocks of the machine and of the database', () => {
  test.each([
    ['40 days ahead', '2026-09-09T12:00:00Z', { seconds: 3_456_000, ahead: true }],
    ['3 minutes behind', '2026-07-31T11:57:00Z', { seconds: 180, ahead: false }],
  ])('a machine whose clock is %s may not write', async (_, machine, facts) => {
    await databaseSays('2026-07-31T12:00:00Z');
    expect(await refusalOf(opening(machineAt(machine)).then(writing))).toMatchObject({
      code: 'clock_differs',
      facts: { machine: new Date(machine).toISOString(), database: '2026-07-31T12:00:00.000Z', ...facts },
    });
    expect(await world.sql('SELECT FROM closed_months')).toEqual([]);
  });

  test('what only reads goes on, and the status says that the clocks differ', async () => {
    await databaseSays('2026-07-31T12:00:00Z');
    const environment = machineAt('2026-09-09T12:00:00Z');
    const database = await opening(environment);
    const { attention } = await database.reading((tx) => readStatus(tx, { ...world, environment }));
    expect(attention[0]).toMatch(/^This machine's clock is 40 days ahead of the database's/);
  });

  test('a clock that is set while the program runs is noticed by the next transaction', async () => {
    const database = await opening(machineWith(() => DateTime.utc()));
    await writing(database);
    const real = Date.now;
    vi.spyOn(Date, 'now').mockImplementation(() => real() + 40 * 86_400_000);
    expect(await refusalOf(writing(database))).toMatchObject({ code: 'clock_differs' });
    expect(await refusalOf(database.inOneTrip((tx) => execute(tx, 'SELECT 1')))).toMatchObject({
      code: 'clock_differs',
    });
    expect(await refusalOf(database.checkWritable())).toMatchObject({ code: 'clock_differs' });
    vi.restoreAllMocks();
    await writing(database);
  });

  test('with RECKONER_NOW, the clock of a sandbox is compared with no other', async () => {
    await databaseSays('2020-01-01T00:00:00Z');
    await writing(await opening({ ...machineAt('2026-08-01T12:00:00Z'), clockIsSet: true }));
  });
});

describe('a month that has not ended by the clock of the database', () => {
  const ENDS = '2026-08-01T04:00:00Z'; // in New York

  test('is not due, even where this machine is a minute ahead', async () => {
    await databaseSays('2026-08-01T03:59:30Z');
    const machine = machineAt('2026-08-01T04:00:30Z');
    expect(await closing(machine)).toEqual([]);
    expect(await refusalOf(closing(machine, '2026-07'))).toMatchObject({ code: 'month_not_ended' });
    await databaseSays(ENDS);
    expect(await closing(machine)).toEqual(['2026-07']);
  });

  test.each([
    ['a month of New York, before its end', 'America/New_York', '2026-08-01T03:59:59.999Z', false],
    ['a month of New York, at its end', 'America/New_York', ENDS, true],
    ['a month of Kiritimati, at its end', 'Pacific/Kiritimati', '2026-07-31T10:00:00Z', true],
    ['a month of Kiritimati, before its end', 'Pacific/Kiritimati', '2026-07-31T09:59:59Z', false],
  ])('is closed by no statement: %s', async (_, zone, now, closes) => {
    await world.sql(withoutEvent('partners', `UPDATE partners SET time_zone = '${zone}'`));
    await databaseSays(now);
    const insert = (await opening(machineAt(now))).transaction((tx) =>
      execute(tx, `INSERT INTO closed_months VALUES ('2026-07', NULL, '2026-08-01', now(), 0, 0, 0, 0)`),
    );
    if (closes) return expect(await insert).toBe(1);
    await expect(insert).rejects.toMatchObject({ constraint: 'closed_months_have_ended' });
    expect(await world.sql('SELECT FROM closed_months')).toEqual([]);
  });

  test('a month ends where the clocks are set back to midnight at the first of two midnights', async () => {
    // Havana, 2026-11-01: 00:00 CDT is 04:00Z, and again 00:00 CST at 05:00Z.
    expect(
      await world.sql(`SELECT first_instant('2026-11', 'America/Havana') = '2026-11-01T04:00:00Z' AS first`),
    ).toEqual([{ first: true }]);
    expect(
      await world.sql(`SELECT first_instant('2026-11', 'Mars/Olympus') = '2026-10-31T10:00:00Z' AS known`),
    ).toEqual([{ known: true }]);
  });

  test('can still be looked at in a preview', async () => {
    await databaseSays('2026-07-20T12:00:00Z');
    const environment = machineAt('2026-07-20T12:00:00Z');
    const database = await opening(environment);
    const rolledBack = new Error('a preview');
    const insert = database.preview(async (tx) => {
      await execute(tx, `INSERT INTO closed_months VALUES ('2026-07', NULL, '2026-08-01', now(), 0, 0, 0, 0)`);
      return rolledBack;
    });
    expect(await insert).toBe(rolledBack);
  });
});

test('what a clock dated wrongly is corrected the same day, on the latest date', async () => {
  await world.partners([partner(), partner({ partner_id: 'p-2' }), partner({ partner_id: 'p-3' })]);
  await world.rows([quote({ partner_id: 'p-2' }), quote({ partner_id: 'p-3' })]);
  world.at('2026-09-10T10:00:00Z'); // 40 days ahead: July and August close
  expect(await world.close()).toEqual(['2026-07', '2026-08']);
  world.at('2026-08-01T10:00:00Z');
  const action = correctionsOf(world);
  expect(await refusalOf(action.voided('INV-2026-000001'))).toMatchObject({ code: 'clock_behind' });
  Object.assign(world, { onLatestDate: true });
  await action.voided('INV-2026-000001', 'dated by a wrong clock');
  await action.credit('INV-2026-000002', '1');
  await action.writeOff('INV-2026-000003');
  await action.rerunMonth('2026-07');
  expect(await world.sql('SELECT DISTINCT voided_on::text AS day FROM voids')).toEqual([{ day: '2026-09-10' }]);
  expect(await document(world, 'INV-2026-000004')).toMatchObject({
    issued_on: '2026-09-10',
    replaces: 'INV-2026-000001',
  });
  await expectVerified(world);
});

describe('a server that takes no writes', () => {
  test('is refused at opening, also by what only reads: it may be a standby that is behind', async () => {
    await makeReadOnly(world.databaseUrl, 'on');
    for (const readOnly of [true, false]) {
      expect(await refusalOf(opening(world.environment, readOnly))).toMatchObject({ code: 'database_read_only' });
    }
    await makeReadOnly(world.databaseUrl, 'off');
  });
});

test('a program that runs is refused once a newer version has migrated the database', async () => {
  const database = await opening(machineWith(() => DateTime.utc()));
  await writing(database);
  await world.sql(`INSERT INTO migrations (name, batch) VALUES ('999_from_the_future', 99)`);
  const later = performance.now() + 31_000;
  vi.spyOn(performance, 'now').mockImplementation(() => later);
  expect(await refusalOf(writing(database))).toMatchObject({
    code: 'database_newer',
    facts: { unknown: ['999_from_the_future'] },
  });
});
