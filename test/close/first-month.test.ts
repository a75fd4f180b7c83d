/** The first close fixes the first month: that of the earliest row, or the one that was asked for. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { previewClose } from '../../src/close/run.ts';
import type { Month } from '../../src/month.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  await world.partners([partner()]);
});

const rowsOf = (...days: string[]) => world.rows(days.map((day) => quote({ accepted_at: `${day}T12:00:00Z` })));

const facts = async () =>
  (await world.documents()).map(({ month, lines }) => [month, lines.map((line) => `${line.month} × ${line.count}`)]);

test('the first month is that of the earliest row', async () => {
  await rowsOf('2026-06-10', '2026-05-31');
  expect(await world.close()).toEqual(['2026-05', '2026-06', '2026-07']);
});

test('a first month that is given gathers the rows of all months before it', async () => {
  await rowsOf('2026-03-10', '2026-05-10', '2026-05-11', '2026-06-10', '2026-07-10');
  expect(await world.close(undefined, { firstMonth: '2026-06' })).toEqual(['2026-06', '2026-07']);
  expect(await facts()).toEqual([
    ['2026-06', ['2026-06 × 1', '2026-03 × 1', '2026-05 × 2']],
    ['2026-07', ['2026-07 × 1']],
  ]);
  expect(await world.months('2026-06')).toMatchObject([{ entries: 4, late_entries: 3 }]);
});

test('rows of months before the first that come after its close post to the open month', async () => {
  await rowsOf('2026-06-10');
  await world.close('2026-06', { firstMonth: '2026-06' });
  expect(await world.rows([quote({ accepted_at: '2026-01-10T12:00:00Z' })])).toMatchObject({ late: 1 });
  await world.close('2026-07');
  expect(await facts()).toEqual([
    ['2026-06', ['2026-06 × 1']],
    ['2026-07', ['2026-01 × 1']],
  ]);
});

test('a first month before the earliest row begins with months without rows', async () => {
  await rowsOf('2026-06-10');
  expect(await world.close('2026-06', { firstMonth: '2026-04' })).toEqual(['2026-04', '2026-05', '2026-06']);
});

test('the first month cannot be moved after the first close, even when nothing would close', async () => {
  await rowsOf('2026-06-10');
  await world.close('2026-06');
  for (const firstMonth of ['2026-05', '2026-07']) {
    expect(await refusalOf(world.close('2026-07', { firstMonth }))).toEqual({
      code: 'first_month_fixed',
      facts: { asked: firstMonth, fixed: '2026-06' },
    });
    expect(await refusalOf(world.close('2026-06', { firstMonth }))).toMatchObject({ code: 'first_month_fixed' });
  }
  expect(await world.close('2026-07', { firstMonth: '2026-06' })).toEqual(['2026-07']);
});

test('a first month that did not close is not fixed', async () => {
  await rowsOf('2026-07-10');
  world.at('2026-07-20T00:00:00Z');
  expect(await world.close(undefined, { firstMonth: '2026-07' })).toEqual([]);
  await world.preview('2026-07');
  world.at('2026-08-01T10:00:00Z');
  expect(await world.close(undefined, { firstMonth: '2026-06' })).toEqual(['2026-06', '2026-07']);
});

test('a month before the first is refused, before and after the first close', async () => {
  await rowsOf('2026-06-10');
  expect(await refusalOf(world.close('2026-05'))).toEqual({
    code: 'before_first_month',
    facts: { month: '2026-05', first: '2026-06' },
  });
  expect(await refusalOf(world.close('2026-06', { firstMonth: '2026-07' }))).toEqual({
    code: 'before_first_month',
    facts: { month: '2026-06', first: '2026-07' },
  });
  expect(await world.months('2026-05', '2026-06', '2026-07')).toEqual([]);
  await world.close('2026-06');
  expect(await refusalOf(world.close('2026-05'))).toMatchObject({ code: 'before_first_month' });
});

test('rows between the first month that is given and the month to close refuse it, and all of them are counted', async () => {
  await rowsOf('2026-03-10', '2026-04-10', '2026-05-10', '2026-06-10');
  expect(await refusalOf(world.close('2026-06', { firstMonth: '2026-05' }))).toEqual({
    code: 'earlier_month_open',
    facts: { month: '2026-06', open: '2026-05', entries: 3 },
  });
  expect(await world.close('2026-05', { firstMonth: '2026-05' })).toEqual(['2026-05']);
  expect(await facts()).toEqual([['2026-05', ['2026-05 × 1', '2026-03 × 1', '2026-04 × 1']]]);
});

test('without a row there is no first month, unless one is asked for', async () => {
  expect(await world.close()).toEqual([]);
  expect(await world.close('2026-06')).toEqual(['2026-06']);
  expect(await refusalOf(world.close('2026-05'))).toMatchObject({ code: 'before_first_month' });
});

test('the first close can be previewed with the first month that is wanted', async () => {
  await rowsOf('2026-03-10', '2026-06-10');
  const preview = await previewClose(world.database, world, { firstMonth: '2026-06' as Month });
  expect(preview.months.map(({ month, entries, late_entries }) => [month, entries, late_entries])).toEqual([
    ['2026-06', 2, 1],
    ['2026-07', 0, 0],
  ]);
  expect(await world.documents()).toEqual([]);
});
