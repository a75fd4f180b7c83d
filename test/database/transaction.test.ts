/** Transactions that the server undoes: real deadlocks and real lost races, tried again, a bounded number of times. */
import { statSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { closeMonths } from '../../src/close/run.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { LOCKS } from '../../src/database/locks.ts';
import {
  databaseFailure,
  execute,
  executing,
  querying,
  queryingColumn,
  queryingFirst,
  queryingOne,
  queryingValue,
  queryOne,
  sqlstate,
  type Transaction,
} from '../../src/database/transaction.ts';
import { refuse } from '../../src/errors/refusals.ts';
import { importRows } from '../../src/ledger/import.ts';
import { inspect } from '../close/invariants.ts';
import { startOver } from '../close/start-over.ts';
import { LEDGER_LOCK } from '../support/locks.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
/** Two connections only: one that a failed attempt had not given back would be missed. */
let database: Database;
beforeAll(async () => {
  world = await openWorld();
  await world.sql(`CREATE TABLE tills (till text PRIMARY KEY, cash integer NOT NULL CHECK (cash >= 0))`);
  await world.sql(`GRANT SELECT, INSERT, UPDATE ON tills TO reckoner_app`);
  const [{ name } = { name: '' }] = await world.sql<{ name: string }>(`SELECT current_database() AS name`);
  // A second by default: the server looks for deadlocks only then.
  await world.sql(`ALTER DATABASE ${name} SET deadlock_timeout = '200ms'`);
  database = await openDatabase(world.environment, { poolSize: 2 });
});
afterAll(async () => {
  await database.close();
  await world.end();
});
beforeEach(async () => {
  await world.sql(`DELETE FROM tills`);
  await world.sql(`INSERT INTO tills VALUES ('front', 100), ('back', 100)`);
});

const cash = async () =>
  Object.fromEntries(
    (await world.sql<{ till: string; cash: number }>(`SELECT till, cash FROM tills`)).map((row) => [
      row.till,
      row.cash,
    ]),
  );
const put = (tx: Transaction, till: string, amount: number) =>
  execute(tx, `UPDATE tills SET cash = cash + :amount WHERE till = :till`, { till, amount });

const OVERTAKEN = `DO $$ BEGIN RAISE EXCEPTION 'overtaken' USING ERRCODE = 'serialization_failure'; END $$`;

/** A promise to be kept from outside. */
function signal(): { given: Promise<void>; give: () => void } {
  let give: () => void = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

/** Work that somebody else overtakes in its first attempts: the row that it has read is changed before it writes. */
function overtaken(
  times: number,
  amount: number,
): { attempts: () => number; work: (tx: Transaction) => Promise<void> } {
  let attempts = 0;
  return {
    attempts: () => attempts,
    work: async (tx) => {
      attempts += 1;
      await execute(tx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`);
      await queryOne(tx, `SELECT cash FROM tills WHERE till = 'front'`);
      if (attempts <= times) await world.sql(`UPDATE tills SET cash = cash + 1 WHERE till = 'front'`);
      await put(tx, 'front', amount);
      await put(tx, 'back', -amount);
    },
  };
}

describe('a transaction that the server rolled back is retried', () => {
  test('of two in a deadlock, one is rolled back and retried, and both take effect once', async () => {
    const [first, second] = [signal(), signal()];
    let attempts = 0;
    const undone: unknown[] = [];
    const moving = async (from: string, to: string, mine: () => void, theirs: Promise<void>) =>
      database.transaction(async (tx) => {
        attempts += 1;
        await put(tx, from, -10);
        mine();
        await theirs;
        await put(tx, to, 10).catch((error: unknown) => {
          undone.push(sqlstate(error));
          throw error;
        });
        return from;
      });
    const moved = await Promise.all([
      moving('front', 'back', first.give, second.given),
      moving('back', 'front', second.give, first.given),
    ]);
    expect(moved).toEqual(['front', 'back']);
    expect({ attempts, undone }).toEqual({ attempts: 3, undone: ['40P01'] });
    expect(await cash()).toEqual({ front: 100, back: 100 });
  });

  for (const times of [1, 4]) {
    test(`after ${times === 1 ? '1 serialization failure' : `${times} serialization failures`} it takes effect once`, async () => {
      const { attempts, work } = overtaken(times, 10);
      await database.transaction(work);
      expect(attempts()).toBe(times + 1);
      expect(await cash()).toEqual({ front: 100 + times + 10, back: 90 });
    });
  }

  test('at most five times: then it fails and has no effect', async () => {
    const { attempts, work } = overtaken(Number.POSITIVE_INFINITY, 10);
    const failure = await database.transaction(work).catch((error: unknown) => error);
    expect(sqlstate(failure)).toBe('40001');
    expect(attempts()).toBe(5);
    expect(await cash()).toEqual({ front: 105, back: 100 });
  });

  test('as a preview, too, and still rolled back', async () => {
    let attempts = 0;
    const seen = await database.preview(async (tx) => {
      attempts += 1;
      await put(tx, 'front', 1);
      // It has read before its work begins, so that the isolation cannot be chosen any more.
      if (attempts === 1) await execute(tx, OVERTAKEN);
      return 'seen';
    });
    expect({ seen, attempts }).toEqual({ seen: 'seen', attempts: 2 });
    expect(await cash()).toEqual({ front: 100, back: 100 });
  });
});

describe('an error that would come again is not retried', () => {
  const failures: readonly [what: string, work: (tx: Transaction) => Promise<unknown>, told: unknown][] = [
    ['a row that is there already', (tx) => execute(tx, `INSERT INTO tills VALUES ('front', 0)`), { code: '23505' }],
    ['an amount that a rule forbids', (tx) => put(tx, 'back', -101), { code: '23514' }],
    ['a statement that makes no sense', (tx) => execute(tx, `SELECT 1 / 0`), { code: '22012' }],
    [
      'a lock that was not to be had in time',
      async (tx) => {
        const holder = new pg.Client(world.databaseUrl);
        await holder.connect();
        try {
          await holder.query(`BEGIN; UPDATE tills SET cash = 0 WHERE till = 'back'`);
          await execute(tx, `SET LOCAL lock_timeout = '10ms'`);
          await put(tx, 'back', 1);
        } finally {
          await holder.end();
        }
      },
      { code: '55P03' },
    ],
    ['a refusal', () => Promise.reject(refuse('partner_unknown', { partner_id: 'p-9' })), { code: 'partner_unknown' }],
    ['a bug', () => Promise.reject(new TypeError('cash is not a function')), { name: 'TypeError' }],
    ['a bug that calls itself 40001', () => Promise.reject(Object.assign(new Error(), { code: '40001' })), {}],
  ];
  for (const [what, work, told] of failures) {
    test(`${what}: one attempt, without effect`, async () => {
      let attempts = 0;
      const trying = database.transaction(async (tx) => {
        attempts += 1;
        await put(tx, 'front', 10);
        return work(tx);
      });
      await expect(trying).rejects.toMatchObject(told as object);
      expect(attempts).toBe(1);
      expect(await cash()).toEqual({ front: 100, back: 100 });
    });
  }
});

/**
 * Runs an action of the program into a deadlock that it loses: somebody holds a table that the action needs and then asks for
 * a lock of the program's, with more patience than the action has.
 */
async function sacrificed<Result>(table: string, lock: string, action: () => Promise<Result>): Promise<Result> {
  const other = new pg.Client(world.databaseUrl);
  await other.connect();
  try {
    await other.query(`SET deadlock_timeout = '1min'`);
    await other.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    const acting = action();
    acting.catch(() => {});
    const waiting = `SELECT FROM pg_locks l JOIN pg_database b ON b.oid = l.database
                     WHERE b.datname = current_database() AND l.relation = '${table}'::regclass AND NOT l.granted`;
    while ((await world.sql(waiting)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await other.query(lock);
    await other.query('COMMIT');
    return await acting;
  } finally {
    await other.end();
  }
}

describe('commands that lose a deadlock take effect once', () => {
  beforeEach(async () => {
    await startOver(world);
    await world.sql(`INSERT INTO tills VALUES ('front', 100), ('back', 100)`);
    await world.partners([partner()]);
  });

  test('a close issues its documents once, numbered from one', async () => {
    await world.rows([quote()]);
    expect(await sacrificed('emails', LEDGER_LOCK, () => closeMonths(database, world, {}))).toEqual(['2026-07']);
    expect((await world.documents()).map(({ number }) => number)).toEqual(['INV-2026-000001']);
    expect((await inspect(world)).broken).toEqual({});
  });

  test('an import reads its file again and records each row once', async () => {
    const name = world.file('rows.ndjson', [quote(), quote()].map((row) => `${JSON.stringify(row)}\n`).join(''));
    let bytes = 0;
    const onProgress = (more: number) => (bytes += more);
    const options = {
      skipInvalid: false,
      now: world.environment.now(),
      actor: world.actor,
      ceilings: world.settings.reversals,
      environment: world.environment,
      onProgress,
    };
    const importing = () => database.transaction((tx) => importRows(tx, [{ name, format: 'ndjson' }], options));
    expect(
      await sacrificed('ledger_rows', `SELECT pg_advisory_xact_lock(${LOCKS.importers})`, importing),
    ).toMatchObject({ accepted: 2, duplicates: 0 });
    expect(await world.sql(`SELECT count(*)::int FROM ledger_rows`)).toEqual([{ count: 2 }]);
    expect(bytes).toBe(2 * statSync(name).size);
  });
});

describe('two transactions that read beside each other', () => {
  test('see the same picture, whatever is committed meanwhile', async () => {
    await database.readingBeside(async (tx, beside) => {
      await world.sql(`UPDATE tills SET cash = 7 WHERE till = 'front'`);
      for (const each of [tx, beside as Transaction]) {
        expect(await queryOne(each, `SELECT cash FROM tills WHERE till = 'front'`)).toEqual({ cash: 100 });
      }
    });
    expect(await cash()).toMatchObject({ front: 7 });
  });

  test('write nothing, and give their connections back when the work fails', async () => {
    const before = await cash();
    for (let time = 0; time < 3; time += 1) {
      await expect(database.readingBeside((tx) => put(tx, 'front', 1))).rejects.toThrow(/read-only transaction/);
      // The second one may write, for temporary tables, and is rolled back.
      await database.readingBeside((_, beside) => put(beside as Transaction, 'front', 1));
    }
    expect(await cash()).toEqual(before);
    const { transactions } = database.pools();
    expect(transactions).toMatchObject({ used: 0, waiting: 0 });
  });

  test('fail together when the server ends either connection, and the next ones work', async () => {
    for (const lost of [0, 1]) {
      const work = database.readingBeside(async (...both) => {
        const { pid } = await queryOne<{ pid: number }>(both[lost] as Transaction, 'SELECT pg_backend_pid() AS pid');
        await world.sql(`SELECT pg_terminate_backend(${pid})`);
        await Promise.all(both.map((each) => queryOne(each as Transaction, 'SELECT count(*) FROM tills')));
      });
      const failure = await work.catch((error: unknown) => error);
      expect(databaseFailure(failure)).toMatchObject({ code: 'database_failed' });
      expect(database.pools()['transactions']).toMatchObject({ used: 0, waiting: 0 });
    }
    expect(await database.readingBeside(async (_, beside) => beside !== undefined)).toBe(true);
  });

  test('are one where the pool has a single connection', async () => {
    const small = await openDatabase(world.environment, { poolSize: 1 });
    try {
      expect(await small.readingBeside(async (_, beside) => beside)).toBeUndefined();
    } finally {
      await small.close();
    }
  });
});

describe('a declared statement', () => {
  const TILLS = 'SELECT till, cash FROM tills WHERE cash >= :least ORDER BY till';
  const NAMES = 'SELECT till FROM tills WHERE cash >= :least ORDER BY till';
  const [front, back] = ['front', 'back'].map((till) => ({ till, cash: 100 }));

  test('gives its rows, the first one, the only one, a column or a value', async () => {
    await database.transaction(async (tx) => {
      expect(await querying<object, { least: number }>(TILLS)(tx, { least: 100 })).toEqual([back, front]);
      expect(await queryingFirst<object, { least: number }>(TILLS)(tx, { least: 100 })).toEqual(back);
      expect(await queryingFirst<object, { least: number }>(TILLS)(tx, { least: 101 })).toBeUndefined();
      expect(await queryingColumn<string, { least: number }>(NAMES)(tx, { least: 100 })).toEqual(['back', 'front']);
      expect(await queryingValue<number>('SELECT count(*) FROM tills')(tx)).toBe(2);
      expect(await queryingOne<object>('SELECT sum(cash)::integer AS cash FROM tills')(tx)).toEqual({ cash: 200 });
      expect(
        await executing<{ till: string }>('UPDATE tills SET cash = 0 WHERE till = :till')(tx, { till: 'back' }),
      ).toBe(1);
    });
    expect(await cash()).toEqual({ front: 100, back: 0 });
  });

  test('that has one row throws where there are several or none', async () => {
    await database.transaction(async (tx) => {
      const one = queryingOne<object, { least: number }>(TILLS);
      await expect(one(tx, { least: 100 })).rejects.toThrow('expected one row but got 2');
      await expect(one(tx, { least: 101 })).rejects.toThrow('expected one row but got 0');
    });
  });

  test('sends lists and objects as JSON where the parameter is JSON, and lists as arrays elsewhere', async () => {
    const sent = queryingOne<object, { list: unknown; object: unknown; text: string; none: null; names: string[] }>(
      `SELECT :list::json AS list, :object::jsonb AS object, :text::json AS text, :none::json AS none, :names::text[] AS names`,
    );
    await database.transaction(async (tx) => {
      const given = { list: [{ a: 1 }, 'b'], object: { c: [2] }, text: '{"d":3}', none: null, names: ['e', 'f'] };
      expect(await sent(tx, given)).toEqual({ ...given, text: { d: 3 } });
    });
  });
});
