/** Reversals, requests and their decisions at the same time, on real connections: each has one result, and our share ties. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { reversalGrant, reversalRefuse } from '../../src/actions/held.ts';
import { runAction } from '../../src/actions/run.ts';
import { closeNext } from '../../src/close/close.ts';
import { closeMonths } from '../../src/close/run.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { readHeldRows } from '../../src/ledger/held.sql.ts';
import { importRows } from '../../src/ledger/import.ts';
import { parsePartners } from '../../src/partners/file.ts';
import { importPartners } from '../../src/partners/import.ts';
import { inspect } from '../close/invariants.ts';
import { startOver } from '../close/start-over.ts';
import { untilLockAwaited } from '../support/locks.ts';
import { type Answer, type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;
/** Other machines on the same database. */
let others: Database;
let served: Served;
/** The same with a ceiling of 20.00 a month. */
let limited: Served;
let caller: Caller;
const CEILING = { above: { USD: '20.00' }, share: null };
beforeAll(async () => {
  world = await openWorld();
  others = await openDatabase(world.environment, { poolSize: 16 });
  served = await serveWorld(world, { patience: 60 });
  limited = await serveWorld(world, { patience: 60, settings: { reversals: CEILING } });
});
beforeEach(async () => {
  await startOver(world);
  world.at('2026-07-31T12:00:00Z');
  await world.partners([partner(PRICED)]);
  caller = await served.caller('p-1');
});
afterEach(async () => {
  expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
});
afterAll(async () => {
  await served.end();
  await limited.end();
  await others.close();
  await world.end();
});

const ROUNDS = 6;
const repeatedly = async (round: (number: number) => Promise<void>) => {
  for (let number = 0; number < ROUNDS; number += 1) await round(number);
};

type Row = Record<string, unknown>;
/** A sale of 10.00 = 3.00 + 7.00 of this month. */
async function sale(overrides: object = {}): Promise<Row> {
  const row = quote({ accepted_at: '2026-07-20T12:00:00Z', ...overrides });
  expect(await world.rows([row])).toMatchObject({ accepted: 1 });
  return row;
}
/** Our whole share, while the partner keeps its cut: no rule allows it without terms. */
const SHARE_ALONE = { spotPrice: '-7.00', partnerCut: '0.00', invoiceAmount: '-7.00' };
/** In proportion. */
const HALF = { spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' };
const reverse = (by: Caller, of: Row, body: object): Promise<Answer> =>
  by.post(`/api/v1/quote/${of['quote_id']}/reverse`, body);
async function request(of: Row, reversal_id: string): Promise<number> {
  const { status, body } = await reverse(caller, of, { reversal_id, ...SHARE_ALONE });
  expect(status).toBe(202);
  return body['request_id'] as number;
}
const elsewhere = () => ({ ...world, database: others });
const grant = (row: number) => runAction(elsewhere(), reversalGrant, { row, reason: 'goodwill' } as never);
const refuse = (row: number) => runAction(elsewhere(), reversalRefuse, { row, reason: 'it took place' } as never);
/** What became of a decision: done, or the code of its refusal. */
const outcome = (decision: Promise<unknown>): Promise<string> =>
  decision.then(
    () => 'done',
    (error: { code?: string }) => error.code ?? String(error),
  );
const importing = (rows: readonly object[], beforeCommit: () => Promise<unknown> = async () => {}) =>
  others.transaction(async (tx) => {
    const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    const options = { skipInvalid: false, now: world.environment.now(), actor: world.actor };
    const report = await importRows(tx, [{ name: 'rows', format: 'ndjson', text }], {
      ...{ ...options, ceilings: world.settings.reversals, environment: world.environment },
    });
    await beforeCommit();
    return report;
  });
const recorded = async (of: Row) =>
  world.sql<{ id: string; share: string; month: string }>(
    `SELECT reversal_id AS id, trim_scale(-invoice_amount)::text AS share, posted_month AS month FROM ledger_rows
     WHERE quote_id = $1 AND kind = 'reversal' ORDER BY entry_id`,
    [of['quote_id']],
  );
const undecided = async () =>
  (await world.database.reading((tx) => readHeldRows(tx, { undecided: true }))).map(({ held_row_id }) => held_row_id);

test('of two people who grant one request at once, one does', async () => {
  await repeatedly(async (round) => {
    const sold = await sale();
    const id = await request(sold, `twice-${round}`);
    const outcomes = await Promise.all([outcome(grant(id)), outcome(grant(id))]);
    expect(outcomes.sort()).toEqual(['done', 'held_row_decided']);
    expect(await recorded(sold)).toMatchObject([{ share: '7' }]);
  });
});

test('of two people of whom one grants a request and one refuses it, one decides', async () => {
  await repeatedly(async (round) => {
    const sold = await sale();
    const id = await request(sold, `either-${round}`);
    const decisions = round % 2 === 0 ? [grant(id), refuse(id)] : [refuse(id), grant(id)];
    const [first, second] = await Promise.all(decisions.map(outcome));
    expect([first, second].sort()).toEqual(['done', 'held_row_decided']);
    const granted = (round % 2 === 0 ? first : second) === 'done';
    expect(await recorded(sold)).toHaveLength(granted ? 1 : 0);
    const { status, body } = await reverse(caller, sold, { reversal_id: `either-${round}`, ...SHARE_ALONE });
    expect([status, body['status']]).toEqual(granted ? [201, 'recorded'] : [202, 'rejected']);
  });
});

test('a request that is granted while its month closes is in this month or in the next', async () => {
  for (const [month, next] of ['07', '08', '09', '10', '11'].map((each, index, all) => [each, all[index + 1]])) {
    if (next === undefined) break;
    world.at(`2026-${month}-28T12:00:00Z`);
    caller = await served.caller('p-1');
    const sold = await sale({ accepted_at: `2026-${month}-20T12:00:00Z` });
    const id = await request(sold, `at-the-cut-${month}`);
    world.at(`2026-${next}-01T12:00:00Z`);
    await Promise.all([grant(id), closeMonths(others, world, {})]);
    const [row] = await recorded(sold);
    expect([`2026-${month}`, `2026-${next}`]).toContain(row?.month);
  }
  expect((await inspect(world)).broken).toEqual({});
});

test('two reversals of a quote by API at once that together exceed it: one is recorded, one is refused', async () => {
  await repeatedly(async (round) => {
    const sold = await sale();
    const part = { spotPrice: '-6.00', partnerCut: '-1.80', invoiceAmount: '-4.20' };
    const answers = await Promise.all(
      ['a', 'b'].map((id) => reverse(caller, sold, { reversal_id: `${id}-${round}`, ...part })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422]);
    expect(answers.find(({ status }) => status === 422)?.body['code']).toBe('reversal_exceeds');
    expect(await recorded(sold)).toMatchObject([{ share: '4.2' }]);
  });
});

test('a grant that waits for a good reversal of the same quote is refused, and the request can still be decided', async () => {
  const sold = await sale();
  const id = await request(sold, 'all-of-our-share');
  let granting: Promise<string> | undefined;
  // The good reversal is of a moment before the request, so that it does not wait for the request.
  const good = reversal(sold, { ...HALF, reversal_id: 'half', accepted_at: '2026-07-31T11:00:00Z' });
  const report = await importing([good], async () => {
    granting = outcome(grant(id));
    await untilLockAwaited(world);
  });
  expect(report).toMatchObject({ accepted: 1, held: 0 });
  expect(await granting).toBe('held_row_invalid');
  expect(await recorded(sold)).toMatchObject([{ id: 'half' }]);
  expect(await undecided()).toEqual([id]);
  const less = { row: id, invoiceAmount: '3.50', partnerCut: '0', reason: 'all that is left' };
  expect(await outcome(runAction(elsewhere(), reversalGrant, less as never))).toBe('done');
  expect(await recorded(sold)).toMatchObject([{ share: '3.5' }, { share: '3.5' }]);
});

test('a grant and a good reversal by API at once never take more than there is', async () => {
  await repeatedly(async (round) => {
    const sold = await sale();
    const id = await request(sold, `request-${round}`);
    const [granted, { status }] = await Promise.all([
      outcome(grant(id)),
      reverse(caller, sold, { reversal_id: `good-${round}`, ...HALF }),
    ]);
    expect([['done', 422] as const, ['held_row_invalid', 201] as const]).toContainEqual([granted, status]);
    expect(await recorded(sold)).toHaveLength(1);
    expect((await undecided()).includes(id)).toBe(granted !== 'done');
    if (granted !== 'done') await refuse(id);
  });
});

test('the same reversal by API twice at once is recorded once or requested once, and answered alike', async () => {
  await repeatedly(async (round) => {
    for (const [kind, amounts, expected] of [
      ['good', HALF, 201],
      ['bad', SHARE_ALONE, 202],
      ['all', {}, 201],
    ] as const) {
      const sold = await sale();
      const body = { reversal_id: `${kind}-${round}`, ...amounts };
      const [one, other] = await Promise.all([reverse(caller, sold, body), reverse(caller, sold, body)]);
      expect([one.status, other.status, other.text]).toEqual([expected, expected, one.text]);
      expect(await recorded(sold)).toHaveLength(expected === 201 ? 1 : 0);
    }
  });
  expect(await undecided()).toHaveLength(ROUNDS);
});

test('the same reversal by API and in a file at once is recorded once or requested once', async () => {
  await repeatedly(async (round) => {
    for (const [kind, amounts, expected] of [
      ['good', HALF, 201],
      ['bad', SHARE_ALONE, 202],
    ] as const) {
      const sold = await sale();
      const reversal_id = `${kind}-${round}`;
      // The moment that the call will have.
      const row = reversal(sold, { ...amounts, reversal_id, accepted_at: world.environment.now().toISO() });
      const [report, { status }] = await Promise.all([
        importing([row]),
        reverse(caller, sold, { reversal_id, ...amounts }),
      ]);
      expect([kind, status, report.errors]).toEqual([kind, expected, []]);
      expect(report.accepted + report.duplicates + report.held).toBe(1);
      expect(await recorded(sold)).toHaveLength(expected === 201 ? 1 : 0);
    }
  });
  expect(await undecided()).toHaveLength(ROUNDS);
});

test('while terms change, each reversal is judged by those before or by those after', async () => {
  const withTerms = (window_days: string) =>
    partner({ policies: PRICED.policies.map((policy) => ({ ...policy, cancellation: { window_days } })) });
  const change = (window_days: string) => {
    const given = {
      event: { action: 'partner.import', subject: 'partners.json', details: {} },
      actor: world.actor,
      now: world.environment.now(),
    };
    return others.transaction((tx) =>
      importPartners(tx, parsePartners(JSON.stringify([withTerms(window_days)]), 'partners.json'), {
        ...{ ...given, settings: world.settings },
      }),
    );
  };
  await change('5');
  await repeatedly(async (round) => {
    // Eleven days ago: within 30 days, and later than 5.
    const [one, other] = [await sale(), await sale()];
    const file = reversal(other, { reversal_id: `file-${round}`, accepted_at: world.environment.now().toISO() });
    const [, { status }, report] = await Promise.all([
      change(round % 2 === 0 ? '30' : '5'),
      reverse(caller, one, { reversal_id: `api-${round}` }),
      importing([file]),
    ]);
    expect([201, 202]).toContain(status);
    expect(report.accepted + report.held).toBe(1);
  });
  const judged = await world.sql<{ window_days: number }>(
    `SELECT DISTINCT t.window_days FROM reversal_grounds JOIN cancellation_terms t USING (cancellation_terms_id)`,
  );
  // A window of 5 days allows none of them.
  expect(judged.filter(({ window_days }) => window_days !== 30)).toEqual([]);
});

test('reversals at once never exceed the ceiling of their month', async () => {
  const by = await limited.caller('p-1');
  world.settings = { ...world.settings, reversals: CEILING };
  const sales: Row[] = [];
  for (let number = 0; number < 8; number += 1) sales.push(await sale());
  const answers = await Promise.all(
    sales.map(async (sold, index) =>
      index % 2 === 0
        ? (await reverse(by, sold, { reversal_id: `many-${index}` })).status
        : (await importing([reversal(sold, { reversal_id: `many-${index}`, accepted_at: '2026-07-31T11:00:00Z' })]))
            .accepted,
    ),
  );
  // Two of 7.00 fit.
  expect(answers.filter((answer) => answer === 201 || answer === 1)).toHaveLength(2);
  expect(await undecided()).toHaveLength(6);
});

test('a reversal that a close moves to the next month counts towards the ceiling of the next month', async () => {
  world.settings = { ...world.settings, reversals: { above: { USD: '10.00' }, share: null } };
  const [one, other] = [await sale(), await sale()];
  world.at('2026-08-01T12:00:00Z');
  await importing([reversal(one, { accepted_at: '2026-08-01T11:00:00Z' })]);
  let late: ReturnType<typeof importing> | undefined;
  await others.transaction(async (tx) => {
    await closeNext(tx, world, { preview: false });
    late = importing([reversal(other, { accepted_at: '2026-07-31T11:00:00Z' })]);
    await untilLockAwaited(world);
  });
  expect(await late).toMatchObject({ accepted: 0, held: 1, held_rows: [{ code: 'ceiling' }] });
});
