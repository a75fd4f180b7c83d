/** Doubts about the rows of a month: what stops its close, what holds a document, and what a person accepts. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { monthClose } from '../../src/actions/close.ts';
import { feedAccept } from '../../src/actions/feed.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import { acceptDoubts, readNextFeeds } from '../../src/close/close.ts';
import { readContradicted } from '../../src/close/feeds.ts';
import { stateFeed } from '../../src/close/stated.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { lastDay, type Month } from '../../src/month.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { readCloseReport } from '../../src/reports/close.ts';
import { describeClose } from '../../src/reports/close-text.ts';
import { readStatusAndItems } from '../../src/reports/status.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
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
  world.settings = { ...world.settings, allow_empty: false };
  await world.partners([named('p-1'), named('p-2')]);
});

const named = (partner_id: string, more: object = {}) =>
  partner({ partner_id, name: `Partner ${partner_id}`, ...more });

/** Sales of a month, spread evenly over its days up to `to`. */
function sales(month: string, count: number, { partner_id = 'p-1', to = 31, ...more }: Record<string, unknown> = {}) {
  const days = Math.min(Number(lastDay(month as Month).slice(8)), to as number);
  return Array.from({ length: count }, (_, nth) => {
    const day = String(1 + Math.floor((nth * days) / count)).padStart(2, '0');
    const minute = String(nth % 60).padStart(2, '0');
    return quote({ partner_id, accepted_at: `${month}-${day}T16:${minute}:00Z`, ...more });
  });
}

let again = 0;
/** The same sale under other ids. */
const other = (row: Record<string, unknown>) => {
  again += 1;
  return quote({ ...row, quote_id: `again-${again}`, enrollment_id: `again-${again}` });
};

/** Three closed months, of 40 sales of p-1 and one of p-2; July and its sales of p-2 are there, and it has ended. */
async function threeMonths(): Promise<void> {
  world.at('2026-08-01T12:00:00Z');
  for (const month of ['2026-04', '2026-05', '2026-06']) {
    await world.rows([...sales(month, 40), ...sales(month, 1, { partner_id: 'p-2' })]);
    expect(await world.close(month)).toEqual([month]);
  }
  await world.rows(sales('2026-07', 1, { partner_id: 'p-2' }));
}

/** The partner states totals of its rows. */
const state = (partnerId: string, month: string, entries: number, usd: string | null, complete = true) =>
  world.database.transaction((tx) =>
    stateFeed(tx, world, {
      ...{ partnerId, month: month as Month, complete },
      stated: { entries, totals: usd === null ? {} : { USD: usd } },
    }),
  );

const held = async () =>
  (
    await world.sql<{ partner_id: string; reason: string }>(
      `SELECT d.partner_id, h.reason FROM current_holds h JOIN documents d USING (document_id) ORDER BY d.document_id`,
    )
  ).map(({ partner_id, reason }) => [partner_id, reason]);
const doubts = async () =>
  (await world.database.reading((tx) => readNextFeeds(tx, world)))?.doubts.map(
    ({ partner_id, kind, stops, accepted }) => [
      partner_id,
      kind,
      ...(stops ? ['stops'] : []),
      ...(accepted ? ['accepted'] : []),
    ],
  );
const accept = (partnerId: string, month = '2026-07') =>
  world.database.transaction((tx) =>
    acceptDoubts(tx, world, { month: month as Month, partnerId, reason: 'the partner confirms it' }),
  );
const decisions = () => world.sql(`SELECT partner_id, kind, reason FROM feed_decisions ORDER BY feed_decision_id`);
const differences = async () =>
  (await world.verify()).checks.flatMap(({ check, differences: found }) =>
    found.map(({ subject }) => `${check}: ${subject}`),
  );

test('totals that the rows contradict stop the month until a person accepts that, and only with these numbers', async () => {
  await world.rows(sales('2026-07', 3));
  await state('p-1', '2026-07', 4, '28.00');
  expect(await refusalOf(world.close())).toMatchObject({
    code: 'feeds_in_doubt',
    facts: {
      doubts: [
        {
          partner_id: 'p-1',
          kind: 'totals',
          evidence: 'stated 4 rows, 28.00 USD, but the ledger has 3 rows, 21.00 USD',
        },
      ],
    },
  });
  await accept('p-1');
  expect(await doubts()).toEqual([['p-1', 'totals', 'stops', 'accepted']]);
  // Another row, and still not the one that is missing.
  await world.rows(sales('2026-07', 1, { spotPrice: '9.00', partnerCut: '3.00', invoiceAmount: '6.00' }));
  expect(await refusalOf(world.close())).toMatchObject({ code: 'feeds_in_doubt' });
  expect(await world.close('2026-07', { acceptFeed: ['p-1'] })).toEqual(['2026-07']);
  expect(await decisions()).toEqual([
    { partner_id: 'p-1', kind: 'totals', reason: 'the partner confirms it' },
    { partner_id: 'p-1', kind: 'totals', reason: null },
  ]);
  expect(await held()).toEqual([]);
  expect(await differences()).toEqual([]);
});

test('rows that agree with the totals close, and so do the rows that were missing', async () => {
  await world.rows(sales('2026-07', 3));
  await state('p-1', '2026-07', 4, '28.00');
  expect(await refusalOf(world.close())).toMatchObject({ code: 'feeds_in_doubt' });
  await world.rows(sales('2026-07', 1));
  expect(await world.close()).toEqual(['2026-07']);
  expect(await decisions()).toEqual([]);
  expect(await differences()).toEqual([]);
});

test('a statement that more rows will come stops the month', async () => {
  await world.rows(sales('2026-07', 3));
  await state('p-1', '2026-07', 3, '21.00', false);
  expect(await refusalOf(world.close())).toMatchObject({ facts: { doubts: [{ kind: 'incomplete' }] } });
  await state('p-1', '2026-07', 3, '21.00');
  expect(await world.close()).toEqual(['2026-07']);
});

test('a complete statement of no rows is the feed of a partner without sales', async () => {
  await world.rows([...sales('2026-06', 1), ...sales('2026-06', 1, { partner_id: 'p-2' })]);
  await world.close('2026-06');
  await world.rows(sales('2026-07', 1));
  expect(await doubts()).toEqual([['p-2', 'missing', 'stops']]);
  await state('p-2', '2026-07', 0, null);
  expect(await doubts()).toEqual([]);
  expect(await world.close()).toEqual(['2026-07']);
  expect(await differences()).toEqual([]);
});

test('a delivery that comes again under other ids stops the month; one with another second or amount does not', async () => {
  const delivery = sales('2026-07', 5);
  await world.rows(delivery);
  await world.rows(
    delivery.map((row) => other({ ...row, accepted_at: String(row['accepted_at']).replace(':00Z', ':01Z') })),
  );
  expect(await doubts()).toEqual([]);
  await world.rows(delivery.map(other));
  expect(await doubts()).toEqual([['p-1', 'repeated', 'stops']]);
  expect(await refusalOf(world.close())).toMatchObject({
    facts: {
      doubts: [
        {
          partner_id: 'p-1',
          evidence: expect.stringMatching(
            /^delivered the same 5 rows of 35\.00 USD twice under different ids, at 2026-08-01 10:00 UTC \(event \d+\) and at 2026-08-01 10:00 UTC \(event \d+\)$/,
          ),
        },
      ],
    },
  });
  expect(await world.close('2026-07', { acceptFeed: ['p-1'] })).toEqual(['2026-07']);
});

test('a delivery that is in one file twice stops the month; sales in pairs do not', async () => {
  const delivery = sales('2026-07', 3);
  await world.rows([...delivery, ...delivery.map(other)]);
  expect(await refusalOf(world.close())).toMatchObject({
    facts: {
      doubts: [
        {
          kind: 'repeated',
          evidence: expect.stringMatching(/under different ids, in one import at 2026-08-01 10:00 UTC \(event \d+\)$/),
        },
      ],
    },
  });
  expect(await world.close('2026-07', { acceptFeed: ['p-1'] })).toEqual(['2026-07']);
  await world.rows(sales('2026-06', 4).flatMap((row) => [row, other(row)]));
  expect((await doubts())?.filter(([, kind]) => kind === 'repeated')).toEqual([]);
});

test('a delivery of a closed month that comes again in the next month stops that month', async () => {
  const delivery = sales('2026-06', 5);
  await world.rows(delivery);
  await world.close('2026-06');
  await world.rows([...delivery.map(other)]);
  await world.rows(sales('2026-07', 2));
  expect(await doubts()).toEqual([['p-1', 'repeated', 'stops']]);
});

test('two rows that are alike twice are no repeated delivery', async () => {
  const delivery = sales('2026-07', 2);
  await world.rows(delivery);
  await world.rows(delivery.map(other));
  expect(await doubts()).toEqual([]);
});

test('far fewer sales than usual hold the document; the month closes', async () => {
  await threeMonths();
  await world.rows(sales('2026-07', 4));
  expect(await doubts()).toEqual([['p-1', 'few']]);
  expect(await world.close()).toEqual(['2026-07']);
  const reason = 'p-1 has 4 sales in USD, where the 3 months before had 40';
  expect(await held()).toEqual([['p-1', reason]]);
  expect(await decisions()).toEqual([]);
  expect(await differences()).toEqual([]);
});

test('history speaks from the fourth month on', async () => {
  world.at('2026-07-01T12:00:00Z');
  for (const month of ['2026-04', '2026-05']) {
    await world.rows(sales(month, 40));
    await world.close(month);
  }
  await world.rows(sales('2026-06', 1));
  expect(await doubts()).toEqual([]);
});

test('late rows count in their own month, and reversals are no sales', async () => {
  await threeMonths();
  const now = sales('2026-07', 4);
  const back = now.map((row, nth) => ({
    ...row,
    ...{ kind: 'reversal', reversal_id: `r-${nth}`, spotPrice: '-10.00', partnerCut: '-3.00', invoiceAmount: '-7.00' },
  }));
  await world.rows([...now, ...back, ...sales('2026-06', 40)]);
  expect(await doubts()).toEqual([['p-1', 'few']]);
});

test('a last day that is earlier than ever before holds the document', async () => {
  await threeMonths();
  await world.rows(sales('2026-07', 40, { to: 12 }));
  expect(await doubts()).toEqual([['p-1', 'early']]);
  expect(await world.close()).toEqual(['2026-07']);
  const reason =
    'p-1 has no row in USD in the last 19 days of the month, where the 3 months before had at most 0 days without a row ' +
    'at the end';
  expect(await held()).toEqual([['p-1', reason]]);
});

test('before the month has ended, its sales are not judged', async () => {
  await threeMonths();
  await world.close('2026-07', { without: ['p-1'] });
  world.at('2026-08-20T12:00:00Z');
  await world.rows([...sales('2026-08', 4, { to: 19 }), ...sales('2026-08', 1, { partner_id: 'p-2' })]);
  expect(await doubts()).toEqual([]);
  expect((await world.preview('2026-08')).documents.map(({ held_at }) => held_at)).toEqual([null, null]);
  world.at('2026-09-01T12:00:00Z');
  expect(await doubts()).toContainEqual(['p-1', 'few']);
});

test('at a partner with a strict feed, what history suggests stops the month', async () => {
  await threeMonths();
  await world.partners([named('p-1', { feed: 'strict' })]);
  await world.rows(sales('2026-07', 4));
  expect(await refusalOf(world.close())).toMatchObject({
    code: 'feeds_in_doubt',
    facts: { doubts: [{ partner_id: 'p-1', kind: 'few' }] },
  });
  expect(await world.close('2026-07', { acceptFeed: ['p-1'] })).toEqual(['2026-07']);
  expect(await held()).toEqual([]);
  expect(await decisions()).toEqual([{ partner_id: 'p-1', kind: 'few', reason: null }]);
  expect(await differences()).toEqual([]);
});

test('what a person accepts before the close holds no document', async () => {
  await threeMonths();
  await world.rows(sales('2026-07', 4));
  await accept('p-1');
  expect(await doubts()).toEqual([['p-1', 'few', 'accepted']]);
  await world.close();
  expect(await held()).toEqual([]);
});

test('totals that agree confirm a month of few sales', async () => {
  await threeMonths();
  await world.rows(sales('2026-07', 4));
  await state('p-1', '2026-07', 4, '28.00');
  expect(await doubts()).toEqual([]);
});

test('a currency without sales holds the documents of the partner in its other currencies', async () => {
  world.at('2026-08-01T12:00:00Z');
  for (const month of ['2026-04', '2026-05', '2026-06']) {
    await world.rows([...sales(month, 40), ...sales(month, 30, { currency: 'EUR' })]);
    await world.close(month);
  }
  await world.rows(sales('2026-07', 40));
  await world.close();
  expect(await held()).toEqual([['p-1', 'p-1 has 0 sales in EUR, where the 3 months before had 30']]);
});

test('an acceptance shows the doubts, is recorded with its reason, and is in the report of the close', async () => {
  await world.rows(sales('2026-07', 3));
  await state('p-1', '2026-07', 4, '28.00');
  const input = { month: '2026-07' as Month, partnerId: 'p-1', reason: 'one sale was cancelled' };
  const evidence = 'stated 4 rows, 28.00 USD, but the ledger has 3 rows, 21.00 USD';
  const shown = await previewAction(world, feedAccept, input);
  expect(shown.changes).toEqual([{ of: '2026-07 of p-1', field: 'totals', before: null, after: evidence }]);
  expect(await decisions()).toEqual([]);
  const report = await runAction(world, feedAccept, input, { reporter: {} });
  expect(report.text).toBe(`Accepted for 2026-07:\n  p-1 (Partner p-1) ${evidence}`);
  expect(await refusalOf(runAction(world, feedAccept, input, { reporter: {} }))).toEqual({
    code: 'feed_not_in_doubt',
    facts: { month: '2026-07', partner_id: 'p-1' },
  });
  await world.close();
  const closed = await world.database.reading((tx) => readCloseReport(tx));
  expect(closed?.accepted_doubts).toMatchObject([{ partner_id: 'p-1', kind: 'totals', reason: input.reason }]);
  expect(closed && describeClose(closed).replaceAll(/\s+/g, ' ')).toContain(
    `In doubt and accepted: p-1 (Partner p-1) ${evidence}: one sale was cancelled`,
  );
  expect(await refusalOf(runAction(world, feedAccept, input, { reporter: {} }))).toMatchObject({
    code: 'feed_not_in_doubt',
  });
});

test('the database refuses a decision about a closed month', async () => {
  await world.rows(sales('2026-07', 3));
  await world.close();
  await expect(
    world.sql(
      `INSERT INTO feed_decisions (month, partner_id, kind, evidence, recorded_at, event_id)
       SELECT '2026-07', 'p-1', 'missing', 'has no rows', now(), max(event_id) FROM audit_events`,
    ),
  ).rejects.toThrow('a doubt about a closed month cannot be accepted');
});

test('the auditor finds a close for which no one accepted a missing feed or a contradiction', async () => {
  await recordSettingsChanges(world.database, world);
  await world.rows([...sales('2026-06', 1), ...sales('2026-06', 1, { partner_id: 'p-2' })]);
  await world.close('2026-06');
  await world.rows(sales('2026-07', 3));
  await state('p-1', '2026-07', 4, '28.00');
  await world.close('2026-07', { without: ['p-2'], acceptFeed: ['p-1'] });
  expect(await differences()).toEqual([]);
  await world.sql(`${GUARDS_OFF} DELETE FROM feed_decisions; ${GUARDS_ON}`);
  const found = await differences();
  expect(found).toContain('rules_hold: close_without_decided: month 2026-07');
  expect(found).toContain('rules_hold: close_accepts_contradictions: month 2026-07');
});

test('a preview judges the rows as they are before the close', async () => {
  await threeMonths();
  await world.partners([named('p-1', { feed: 'strict' }), named('p-2')]);
  await world.rows(sales('2026-07', 3));
  await takeCheckpoint(world.database, world);
  await state('p-2', '2026-07', 1, '7.00');
  expect((await world.preview('2026-07' as Month)).feeds).toMatchObject([
    { doubts: [{ partner_id: 'p-1', kind: 'few', stops: true }] },
  ]);
  await state('p-2', '2026-07', 2, '14.00');
  const [feeds] = (await world.preview('2026-07' as Month)).feeds;
  expect(feeds?.doubts.map(({ kind }) => kind)).toEqual(['few', 'totals']);
  expect(feeds?.doubts[1]?.evidence).toContain('but the ledger has 1 row,');
  const shown = await previewAction({ ...world, forecast: true }, monthClose, { month: '2026-07' as Month });
  expect(shown.report.json).toMatchObject({ feeds: [{ doubts: feeds?.doubts }] });
});

test('nobody accepts a missing feed of a month that has not begun', async () => {
  await world.rows(sales('2026-06', 1));
  world.at('2026-07-31T12:00:00Z');
  expect(await world.close('2026-06')).toEqual(['2026-06']);
  const accept = (month: string) =>
    world.database.transaction((tx) =>
      acceptDoubts(tx, world, { month: month as Month, partnerId: 'p-1', reason: 'no sales' }),
    );
  expect(await refusalOf(accept('2026-08'))).toMatchObject({ code: 'month_not_begun', facts: { month: '2026-08' } });
  expect(await accept('2026-07')).toMatchObject([{ partner_id: 'p-1', kind: 'missing' }]);
});

test('a complete statement that comes after the close is a finding until the ledger agrees', async () => {
  await world.rows(sales('2026-07', 3));
  await world.close('2026-07');
  const stated = () => world.database.reading((tx) => readContradicted(tx, null));
  expect(await stated()).toEqual([]);
  await state('p-1', '2026-07', 5, '35.00');
  expect(await stated()).toMatchObject([{ partner_id: 'p-1', month: '2026-07' }]);
  const { items } = await world.database.reading((tx) => readStatusAndItems(tx, world));
  expect(items).toContainEqual({ item: 'stated:p-1', count: 1 });
  await world.rows(sales('2026-07', 2));
  expect(await stated()).toEqual([]);
});

test('a contradiction that a person accepted before the close is no finding after it', async () => {
  await world.rows(sales('2026-07', 3));
  await state('p-1', '2026-07', 5, '35.00');
  await world.close('2026-07', { acceptFeed: ['p-1'] });
  expect(await world.database.reading((tx) => readContradicted(tx, null))).toEqual([]);
});

test('if accepting a feed needs approval, the refusal says to ask for it', async () => {
  world.settings = { ...world.settings, approvals: { 'feed.accept': { always: true } } };
  await world.rows(sales('2026-07', 3));
  await state('p-1', '2026-07', 5, '35.00');
  await expect(world.close('2026-07')).rejects.toMatchObject({
    remedies: [{ action: 'feed.accept', input: { partnerId: 'p-1', month: '2026-07' } }],
  });
});
