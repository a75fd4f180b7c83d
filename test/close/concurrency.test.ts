/** Closes and imports at the same time: each month closes once, and each row lands on one side of the cut. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { closeNext } from '../../src/close/close.ts';
import { closeMonths } from '../../src/close/run.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { importRows } from '../../src/ledger/import.ts';
import type { Month } from '../../src/month.ts';
import { tally } from '../support/tally.ts';
import { lenientPolicies, openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { inspect } from './invariants.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

const JULY = '2026-07' as Month;

let world: World;
/** Other machines on the same database: enough connections for all that runs at once. */
let others: Database;
beforeAll(async () => {
  world = await openWorld();
  others = await openDatabase(world.environment, { poolSize: 24 });
});
afterAll(async () => {
  await others.close();
  await world.end();
});
beforeEach(async () => {
  await startOver(world);
  const policies = lenientPolicies();
  await world.partners(['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id, policies })));
});

const close = () => closeMonths(others, world, {});

let files = 0;

/** An import of its own file, as another process would run it; `beforeCommit` keeps its transaction open. */
function importFile(rows: readonly object[], beforeCommit: () => Promise<void> = async () => {}) {
  files += 1;
  const name = world.file(`rows-${files}.ndjson`, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return others.transaction(async (tx) => {
    const options = {
      skipInvalid: false,
      now: world.environment.now(),
      actor: world.actor,
      ceilings: world.settings.reversals,
      environment: world.environment,
    };
    const report = await importRows(tx, [{ name, format: 'ndjson' }], options);
    await beforeCommit();
    return report;
  });
}

const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** A promise to be kept from outside. */
function signal(): { given: Promise<void>; give: () => void } {
  let give: () => void = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

/** Returns once so many transactions wait for the ledger's lock. */
async function untilWaiting(count: number): Promise<void> {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; ) {
    const [row] = await world.sql<{ waiting: number }>(
      `SELECT count(*)::int AS waiting FROM pg_locks JOIN pg_database b ON b.oid = database
       WHERE datname = current_database() AND relation = 'ledger_gate'::regclass AND NOT granted`,
    );
    if ((row?.waiting ?? 0) >= count) return;
    await wait(5);
  }
  throw new Error(`${count} transaction(s) should wait for the ledger's lock, and do not`);
}

test('ten closes at once close each month once, and none of them fails', async () => {
  await world.rows(
    ['2026-05', '2026-06', '2026-07'].flatMap((month) =>
      ['p-1', 'p-2', 'p-3'].map((partner_id) => quote({ partner_id, accepted_at: `${month}-10T12:00:00Z` })),
    ),
  );
  const closed = await Promise.all(Array.from({ length: 10 }, close));
  expect(closed.flat().sort()).toEqual(['2026-05', '2026-06', '2026-07']);
  expect((await world.documents()).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect((await inspect(world)).broken).toEqual({});
});

test('a row whose import has not committed holds the close up, and is billed by it', async () => {
  await world.rows([quote()]);
  const [recorded, commit] = [signal(), signal()];
  const importing = importFile([quote({ partner_id: 'p-2' })], () => {
    recorded.give();
    return commit.given;
  });
  await recorded.given;
  const closing = close();
  await untilWaiting(1).finally(commit.give);
  expect(await importing).toMatchObject({ accepted: 1, late: 0 });
  expect(await closing).toEqual([JULY]);
  expect(await world.months(JULY)).toMatchObject([{ entries: 2, late_entries: 0 }]);
});

test('a row that comes while the close runs waits for it, and is billed with the next month', async () => {
  await world.rows([quote()]);
  const [decided, commit] = [signal(), signal()];
  const request = { preview: false };
  const closing = others.transaction(async (tx) => {
    expect(await closeNext(tx, world, request)).toBe(JULY);
    decided.give();
    await commit.given;
  });
  await decided.given;
  const importing = importFile([quote({ partner_id: 'p-2' })]);
  await untilWaiting(1).finally(commit.give);
  await closing;
  expect(await importing).toMatchObject({ accepted: 1, late: 1 });
  world.at('2026-09-01T10:00:00Z');
  await world.close();
  expect(await world.months(JULY, '2026-08')).toMatchObject([
    { entries: 1, late_entries: 0 },
    { entries: 1, late_entries: 1 },
  ]);
  expect((await inspect(world)).broken).toEqual({});
});

test('a close that fails lets the waiting row into its own month', async () => {
  await world.rows([quote()]);
  const [decided, fail] = [signal(), signal()];
  const request = { preview: false };
  const closing = others.transaction(async (tx) => {
    expect(await closeNext(tx, world, request)).toBe(JULY);
    decided.give();
    await fail.given;
    throw new Error('the power went');
  });
  await decided.given;
  const importing = importFile([quote({ partner_id: 'p-2' })]);
  await untilWaiting(1).finally(fail.give);
  await expect(closing).rejects.toThrow('the power went');
  expect(await importing).toMatchObject({ accepted: 1, late: 0 });
  expect(await close()).toEqual([JULY]);
  expect(await world.months(JULY)).toMatchObject([{ entries: 2 }]);
});

describe('thousands of rows around the cut while closes come and go', () => {
  const WRITERS = 6;
  const FILES = 8;
  const QUOTES = 140;
  /** The last instants of July and the first of August in New York, and others that are far from the cut. */
  const INSTANTS = [
    '2026-06-30T23:00:00Z',
    '2026-07-31T23:59:59.999999-04:00',
    '2026-08-01T00:00:00-04:00',
    '2026-07-31T23:59:59-04:00',
    '2026-08-01T09:00:00Z',
  ];

  /** One writer's files in order: quotes, then requotes and reversals of what it wrote itself, some of it files before. */
  function filesOf(writer: number): Record<string, unknown>[][] {
    const quotes: Record<string, unknown>[] = [];
    return Array.from({ length: FILES }, (_, file) => {
      const of = Array.from({ length: QUOTES }, (_, row) =>
        quote({
          partner_id: `p-${1 + ((writer + file + row) % 3)}`,
          policy_id: row % 4 === 0 ? 'parking' : 'ticket-protection',
          // Otherwise a file would have the same sales as another.
          accepted_at: INSTANTS[row % INSTANTS.length]
            ?.replace('59:59-', `5${writer}:5${file}-`)
            .replace('00:00Z', `0${writer}:0${file}Z`),
        }),
      );
      quotes.push(...of);
      const pick = (nth: number) => quotes[(nth * 37 + file) % quotes.length] as Record<string, unknown>;
      const more = Array.from({ length: 40 }, (_, nth) =>
        requote(pick(nth), { accepted_at: `2026-08-01T04:00:0${file}Z` }),
      );
      // At the end of July, or with the sale if that is later.
      const back = of.slice(0, 20).map((each) => {
        const [sold, last] = [String(each['accepted_at']), '2026-08-01T03:59:59.999999Z'];
        return reversal(each, { accepted_at: Date.parse(sold) > Date.parse(last) ? sold : last });
      });
      return [...of, ...more, ...back];
    });
  }

  test('every row is in exactly one month and on exactly one document', async () => {
    const written = Array.from({ length: WRITERS }, (_, writer) => filesOf(writer));
    const rows = written.flat(2);
    expect(rows.length).toBe(WRITERS * FILES * (QUOTES + 60));
    let committed = 0;
    let done = false;
    const [third, twoThirds] = [signal(), signal()];
    const writing = written.map(async (files) => {
      for (const file of files) {
        const report = await importFile(file);
        expect(report).toMatchObject({ accepted: file.length, duplicates: 0, rejected: 0 });
        committed += 1;
        if (committed * 3 >= WRITERS * FILES) third.give();
        if (committed * 3 >= 2 * WRITERS * FILES) twoThirds.give();
      }
    });
    // June closes while a third is there, July later; ten closes at a time, and previews, which take the same lock.
    const closing = [
      { after: third.given, month: '2026-06' },
      { after: twoThirds.given, month: '2026-07' },
    ].map(async ({ after, month }) => {
      await after;
      expect(done).toBe(false);
      const closes = Array.from({ length: 5 }, () => closeMonths(others, world, { month: month as Month }));
      return (await Promise.all([...closes, world.preview().then(() => [])])).flat();
    });
    await Promise.all(writing).finally(() => {
      done = true;
      third.give();
      twoThirds.give();
    });
    expect((await Promise.all(closing)).flat().sort()).toEqual(['2026-06', '2026-07']);
    expect((await inspect(world)).broken).toEqual({});

    world.at('2026-09-01T10:00:00Z');
    await world.close();
    const facts = await world.months('2026-06', '2026-07', '2026-08');
    expect(facts.reduce((total, { entries }) => total + entries, 0)).toBe(rows.length);
    // The cut went through the stream: of June's and July's rows some came in time, and some were late.
    expect(facts.every(({ entries, late_entries }) => entries > late_entries)).toBe(true);
    expect(facts.slice(1).every(({ late_entries }) => late_entries > 0)).toBe(true);
    expect(await documentsOfRows()).toEqual(
      new Map(rows.map((row) => [String(row['reversal_id'] ?? row['requote_id'] ?? row['quote_id']), 1])),
    );
    expect((await inspect(world)).broken).toEqual({});
    const { differences } = await world.verify();
    expect(differences).toBe(0);
    tally('rows through a cut', 'under concurrent imports and closes', rows.length);
  }, 60_000);

  /** Of each row, by its own id, on how many documents it is, with a line of its policy, kind and month. */
  async function documentsOfRows(): Promise<Map<string, number>> {
    const counted = await world.sql<{ own_id: string; documents: number }>(
      `SELECT own_id(e) AS own_id, count(l.document_id)::int AS documents
       FROM ledger_rows e
       LEFT JOIN documents d ON (d.partner_id, d.month, d.currency, d.arrangement)
                                = (e.partner_id, e.posted_month, e.currency, e.arrangement)
       LEFT JOIN document_lines l ON (l.document_id, l.policy_id, l.kind, l.month)
                                     = (d.document_id, e.policy_id, e.kind, e.month)
       GROUP BY e.entry_id, own_id`,
    );
    expect(new Set(counted.map(({ own_id }) => own_id)).size).toBe(counted.length);
    return new Map(counted.map(({ own_id, documents }) => [own_id, documents]));
  }
});

test('a partner whose arrangement changes while rows come in keeps one arrangement for each month', async () => {
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'platform', split: 'real_time' };
  const changed = partner({ arrangement: 'connected_account', arrangement_from: '2026-08', ...connected });
  const rows = Array.from({ length: 10 }, () => quote({ accepted_at: '2026-07-31T12:00:00Z' }));
  await Promise.all([...rows.map((row) => importFile([row])), world.partners([changed]), close()]);
  world.at('2026-09-01T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-15T12:00:00Z' })]);
  await world.close();
  expect(await world.sql(`SELECT DISTINCT month, arrangement FROM ledger_rows ORDER BY month`)).toEqual([
    { month: '2026-07', arrangement: 'invoicing' },
    { month: '2026-08', arrangement: 'connected_account' },
  ]);
  expect((await inspect(world)).broken).toEqual({});
});

/** A close of another machine that has planned, and gets round to deciding only after this. */
function slowClose(
  request: { month: string; firstMonth?: string },
  meanwhile: () => Promise<unknown>,
): Promise<Month[]> {
  let done: Promise<unknown> | undefined;
  const slow: Database = {
    ...others,
    transaction: async (work) => {
      done ??= meanwhile();
      await done;
      return others.transaction(work);
    },
  };
  const { month, firstMonth } = request;
  return closeMonths(slow, world, { month: month as Month, firstMonth: firstMonth as Month });
}

test('of two first closes that want different first months, the second is refused', async () => {
  await world.rows([quote()]);
  const second = slowClose({ month: '2026-07', firstMonth: '2026-07' }, () =>
    world.close('2026-05', { firstMonth: '2026-05' }),
  );
  expect(await refusalOf(second)).toEqual({ code: 'first_month_fixed', facts: { asked: '2026-07', fixed: '2026-05' } });
});

test('a close that another overtook with an earlier month closes the months between along', async () => {
  expect(await slowClose({ month: '2026-07' }, () => world.close('2026-05'))).toEqual(['2026-06', '2026-07']);
});

test('rows that come after the plan, in a month that was to close without rows, refuse the month that was asked for', async () => {
  await world.rows([quote({ accepted_at: '2026-05-10T12:00:00Z' })]);
  await world.close('2026-05');
  const late = slowClose({ month: '2026-07' }, () => world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' })]));
  expect(await refusalOf(late)).toEqual({
    code: 'earlier_month_open',
    facts: { month: '2026-07', open: '2026-06', entries: 1 },
  });
  expect(await world.months('2026-06', '2026-07')).toEqual([]);
});
