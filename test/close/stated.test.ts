/** Stated totals: what a partner says of its month is kept as said, and compared with the rows of that month. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { feedState } from '../../src/actions/feed.ts';
import { checkpointTake } from '../../src/actions/ledger.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import { readStatedTotals } from '../../src/close/stated.sql.ts';
import { reverseRows } from '../../src/documents/reverse-rows.ts';
import type { Month } from '../../src/month.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(async () => {
  const { checks } = await world.verify();
  expect(checks.flatMap(({ differences }) => differences)).toEqual([]);
  await world.end();
});

beforeEach(async () => {
  await startOver(world);
  world.at('2026-08-01T10:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Pier Two' })]);
});

const JULY = '2026-07' as Month;
interface Given {
  partnerId?: string;
  month?: Month;
  count: number;
  control?: string[];
  incomplete?: boolean;
}
const state = async ({ partnerId = 'p-1', month = JULY, ...given }: Given) =>
  runAction(world, feedState, { partnerId, month, ...given });
const stated = (month = JULY) => world.database.reading((tx) => readStatedTotals(tx, month));
const recorded = async () =>
  (
    await world.sql<{ statements: number; totals: number; events: number }>(
      `SELECT (SELECT count(*)::int FROM feed_statements) AS statements,
              (SELECT count(*)::int FROM feed_statement_totals) AS totals,
              (SELECT count(*)::int FROM audit_events WHERE action = 'feed.state') AS events`,
    )
  )[0];

test('a statement is compared with all rows of its month: sales, requotes and reversals, in every currency', async () => {
  const one = quote();
  await world.rows([one, requote(one), reversal(one, { reversal_id: 'r-1' }), quote({ currency: 'EUR' })]);
  await world.rows([quote({ partner_id: 'p-2' }), quote({ accepted_at: '2026-08-01T05:00:00Z' })]);
  const report = await state({ count: 4, control: ['USD=3.50', 'EUR=7'] });
  expect(report.json).toMatchObject({
    ...{ partner_id: 'p-1', month: '2026-07', count: 4, totals: { EUR: '7.00', USD: '3.50' }, complete: true },
    ...{ recorded: { count: 4, totals: { EUR: '7.00', USD: '3.50' } }, agrees: true, already_stated: false },
    differences: { count: 0, totals: {} },
  });
  expect(report.attention).toBe(false);
  expect(await stated()).toEqual([
    {
      ...{ partner_id: 'p-1', name: 'Harbour Lights Ticketing', month: '2026-07', complete: true, via: 'command' },
      stated: { entries: 4, totals: { EUR: '7.00', USD: '3.50' } },
      here: { entries: 4, totals: { EUR: '7.00', USD: '3.50' } },
      ...{ agrees: true, recorded_at: '2026-08-01T10:00:00Z' },
    },
  ]);
});

test('a missing row is a difference of one row and of its amount, and needs attention', async () => {
  await world.rows([quote(), quote()]);
  const report = await state({ count: 3, control: ['USD=21.00'] });
  expect(report).toMatchObject({
    json: { agrees: false, differences: { count: -1, totals: { USD: '-7.00' } } },
    attention: true,
  });
  expect(report.text).toContain('The ledger differs.');
});

test('rows in a currency of which nothing was stated contradict the statement, even with the right number of rows', async () => {
  await world.rows([quote(), quote({ currency: 'EUR' })]);
  const { json } = await state({ count: 2, control: ['USD=7'] });
  expect(json).toMatchObject({ agrees: false, differences: { count: 0, totals: { EUR: '7.00' } } });
});

test('no rows at all can be stated as complete', async () => {
  expect((await state({ count: 0 })).json).toMatchObject({ count: 0, totals: {}, complete: true, agrees: true });
});

test('the same statement again records nothing; another one replaces it', async () => {
  await world.rows([quote()]);
  await state({ count: 1, control: ['USD=7'], incomplete: true });
  const before = await recorded();
  expect((await state({ count: 1, control: ['USD=7.00'], incomplete: true })).json).toMatchObject({
    already_stated: true,
  });
  expect(await recorded()).toEqual(before);
  await state({ count: 1, control: ['USD=7'] });
  expect(await recorded()).toEqual({ statements: 2, totals: 2, events: 2 });
  expect(await stated()).toMatchObject([{ complete: true, agrees: true }]);
});

test('a statement that was true before counts again if it is stated again', async () => {
  await state({ count: 0 });
  await state({ count: 1, control: ['USD=7'] });
  await state({ count: 0 });
  expect(await recorded()).toMatchObject({ statements: 3 });
  expect(await stated()).toMatchObject([{ stated: { entries: 0 } }]);
});

test('rows of a closed month are those that its documents bill, and late rows count in their own month', async () => {
  const one = quote();
  await world.rows([one, quote(), quote({ partner_id: 'p-2' })]);
  await world.close('2026-07');
  world.at('2026-08-05T10:00:00Z');
  await world.rows([quote(), reversal(one, { accepted_at: '2026-07-20T12:00:00Z' })]);
  await state({ count: 4, control: ['USD=14.00'] });
  expect(await stated()).toMatchObject([{ agrees: true, here: { entries: 4, totals: { USD: '14.00' } } }]);
  // August bills the late rows.
  world.at('2026-09-02T10:00:00Z');
  await world.close('2026-08');
  expect(await stated()).toMatchObject([{ agrees: true, here: { entries: 4, totals: { USD: '14.00' } } }]);
});

test('rows before and after a checkpoint count once', async () => {
  await world.rows([quote(), quote()]);
  await runAction(world, checkpointTake, {});
  await world.rows([quote(), quote({ accepted_at: '2026-06-20T12:00:00Z' })]);
  await state({ count: 3, control: ['USD=21.00'] });
  expect(await stated()).toMatchObject([{ agrees: true }]);
  await runAction(world, checkpointTake, {});
  expect(await stated()).toMatchObject([{ agrees: true, here: { entries: 3 } }]);
});

test('a month whose reversals exceed its sales has a total below zero', async () => {
  const one = quote({ accepted_at: '2026-06-15T12:00:00Z' });
  await world.rows([one]);
  await world.close('2026-06');
  await world.rows([reversal(one, { accepted_at: '2026-07-02T12:00:00Z' })]);
  await state({ count: 1, control: ['USD=-7.00'] });
  expect(await stated()).toMatchObject([{ agrees: true }]);
  await world.close('2026-07');
  expect(await stated()).toMatchObject([{ agrees: true, here: { totals: { USD: '-7.00' } } }]);
});

test('a month that has not begun for the partner cannot be stated', async () => {
  world.at('2026-08-01T03:00:00Z');
  expect(await refusalOf(state({ month: '2026-08' as Month, count: 0 }))).toMatchObject({
    code: 'month_not_begun',
    facts: { month: '2026-08', time_zone: 'America/New_York' },
  });
  expect(await refusalOf(state({ partnerId: 'p-9', count: 0 }))).toMatchObject({ code: 'partner_unknown' });
  expect(await refusalOf(state({ count: 2 }))).toMatchObject({ code: 'usage' });
  expect(await refusalOf(state({ count: 1, control: ['USD=7', 'USD=8'] }))).toMatchObject({ code: 'argument_invalid' });
  expect(await recorded()).toEqual({ statements: 0, totals: 0, events: 0 });
});

test('a preview shows the comparison and records nothing', async () => {
  await world.rows([quote()]);
  const input = { partnerId: 'p-1', month: JULY, count: 2, control: ['USD=14'] };
  const { report } = await previewAction(world, feedState, input);
  expect(report.json).toMatchObject({ agrees: false });
  expect(await recorded()).toMatchObject({ statements: 0 });
});

test('a reversal that finance records does not contradict what the partner states', async () => {
  const sold = quote();
  await world.rows([sold, quote()]);
  await state({ count: 2, control: ['USD=14.00'] });
  const [row] = await world.sql<{ entry_id: string }>('SELECT min(entry_id) AS entry_id FROM ledger_rows');
  world.at('2026-07-31T10:00:00Z');
  await world.database.transaction((tx) =>
    reverseRows(tx, world, { rows: [Number(row?.entry_id)], reason: 'canceled' }),
  );
  expect(await world.sql(`SELECT month FROM ledger_rows WHERE kind = 'reversal'`)).toEqual([{ month: '2026-07' }]);
  expect(await stated()).toMatchObject([{ agrees: true, here: { entries: 2, totals: { USD: '14.00' } } }]);
});
