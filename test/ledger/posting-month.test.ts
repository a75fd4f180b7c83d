/** Which month a row belongs to and which one it is billed in, and that neither moves once the row is recorded. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LEDGER_LOCK, untilLockAwaited } from '../support/locks.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { ledger, size } from './ledger.ts';

/** The first instant of a month in a zone, by hand from the zone's offset that night. */
const EDGES: readonly [zone: string, before: string, month: string, instant: string][] = [
  ['Pacific/Pago_Pago', '2026-07', '2026-08', '2026-08-01T11:00:00.000000Z'],
  ['Pacific/Kiritimati', '2026-07', '2026-08', '2026-07-31T10:00:00.000000Z'],
  ['Asia/Kathmandu', '2026-07', '2026-08', '2026-07-31T18:15:00.000000Z'],
  ['America/New_York', '2026-10', '2026-11', '2026-11-01T04:00:00.000000Z'],
  ['America/New_York', '2026-11', '2026-12', '2026-12-01T05:00:00.000000Z'],
  ['America/New_York', '2028-02', '2028-03', '2028-03-01T05:00:00.000000Z'],
  ['America/St_Johns', '2026-10', '2026-11', '2026-11-01T02:30:00.000000Z'],
  ['America/St_Johns', '2026-11', '2026-12', '2026-12-01T03:30:00.000000Z'],
  ['America/Havana', '2026-10', '2026-11', '2026-11-01T04:00:00.000000Z'],
  ['America/Asuncion', '2017-09', '2017-10', '2017-10-01T04:00:00.000000Z'],
  ['Australia/Lord_Howe', '2026-03', '2026-04', '2026-03-31T13:00:00.000000Z'],
  ['Australia/Lord_Howe', '2026-04', '2026-05', '2026-04-30T13:30:00.000000Z'],
  ['Australia/Lord_Howe', '2023-09', '2023-10', '2023-09-30T13:30:00.000000Z'],
  ['Europe/London', '2026-03', '2026-04', '2026-03-31T23:00:00.000000Z'],
  ['UTC', '2026-12', '2027-01', '2027-01-01T00:00:00.000000Z'],
  ['UTC', '2028-02', '2028-03', '2028-03-01T00:00:00.000000Z'],
];
/** The microsecond before an instant that stands on a full minute. */
const justBefore = (instant: string) => `${new Date(Date.parse(instant) - 1).toISOString().slice(0, -1)}999Z`;

describe('the month of a row is that of its instant in the zone of its partner', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
    world.at('2028-04-01T00:00:00Z');
    const zones = [...new Set(EDGES.map(([zone]) => zone))];
    await world.partners(zones.map((zone) => partner({ partner_id: zone.replace('/', '-'), time_zone: zone })));
  });
  afterAll(() => world.end());

  for (const [zone, before, month, instant] of EDGES) {
    test(`in ${zone} a row at ${instant} is of ${month}, a microsecond before of ${before}`, async () => {
      const rows = [instant, justBefore(instant)].map((accepted_at) =>
        quote({ partner_id: zone.replace('/', '-'), accepted_at }),
      );
      expect(await world.rows(rows)).toMatchObject({ accepted: 2, errors: [] });
      const [at] = await ledger(world, rows[0]?.['quote_id']);
      const [earlier] = await ledger(world, rows[1]?.['quote_id']);
      expect(at).toMatchObject({ accepted_at: instant, month, posted_month: month, time_zone: zone });
      expect(earlier).toMatchObject({ accepted_at: justBefore(instant), month: before, time_zone: zone });
    });
  }

  test('both hours that are called midnight in Havana are of November', async () => {
    const rows = ['2026-11-01T04:30:00Z', '2026-11-01T05:30:00Z'].map((accepted_at) =>
      quote({ partner_id: 'America-Havana', accepted_at }),
    );
    await world.rows(rows);
    for (const row of rows) expect(await ledger(world, row['quote_id'])).toMatchObject([{ month: '2026-11' }]);
  });

  test('29 February 2028 is of February, to its last microsecond', async () => {
    const row = quote({ partner_id: 'UTC', accepted_at: '2028-02-29T23:59:59.999999Z' });
    await world.rows([row]);
    expect(await ledger(world, row['quote_id'])).toMatchObject([{ month: '2028-02' }]);
  });

  test('one instant is of two months for two partners', async () => {
    const accepted_at = '2026-07-31T23:30:00Z';
    const rows = ['Pacific-Kiritimati', 'Pacific-Pago_Pago'].map((partner_id) => quote({ partner_id, accepted_at }));
    await world.rows(rows);
    const months = await Promise.all(rows.map(async (row) => (await ledger(world, row['quote_id']))[0]?.month));
    expect(months).toEqual(['2026-08', '2026-07']);
  });
});

describe('month and zone are facts of the row', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
    await world.partners([partner({ time_zone: 'America/New_York' })]);
  });
  afterAll(() => world.end());

  test('a partner that moves takes its later rows along and leaves the earlier ones where they are', async () => {
    const accepted_at = '2026-07-31T20:00:00Z';
    const [before, behind] = [quote({ accepted_at }), quote({ accepted_at })];
    await world.rows([before]);
    expect(await world.partners([partner({ time_zone: 'Asia/Tokyo' })])).toMatchObject({ updated: 1 });
    await world.rows([behind, reversal(before, { accepted_at })]);
    expect(await ledger(world, before['quote_id'])).toMatchObject([
      { kind: 'quote_accepted', time_zone: 'America/New_York', month: '2026-07' },
      { kind: 'reversal', time_zone: 'Asia/Tokyo', month: '2026-08' },
    ]);
    expect(await ledger(world, behind['quote_id'])).toMatchObject([{ time_zone: 'Asia/Tokyo', month: '2026-08' }]);
    expect(await world.rows([before])).toMatchObject({ duplicates: 1, accepted: 0 });
  });

  test('a partner may move while an import waits for a close', async () => {
    // The ledger's lock, as a close holds it.
    const close = new pg.Client(world.databaseUrl);
    await close.connect();
    await close.query(`BEGIN; ${LEDGER_LOCK}`);
    const row = quote();
    const importing = world.rows([row]);
    await untilLockAwaited(world);
    const moving = world.partners([partner({ time_zone: 'Europe/Paris' })]);
    await untilLockAwaited(world, 2);
    await close.end();
    expect(await importing).toMatchObject({ accepted: 1 });
    expect(await moving).toMatchObject({ updated: 1 });
    expect(await ledger(world, row['quote_id'])).toMatchObject([{ time_zone: 'Asia/Tokyo', month: '2026-07' }]);
  });
});

describe('a row is billed', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
    world.at('2026-08-02T06:00:00Z');
    await world.partners([partner()]);
  });
  afterAll(() => world.end());

  const july = quote({ accepted_at: '2026-07-15T12:00:00Z' });

  test('in its own month while that is open, also long after', async () => {
    const [june, august] = [
      quote({ accepted_at: '2026-06-15T12:00:00Z' }),
      quote({ accepted_at: '2026-08-01T12:00:00Z' }),
    ];
    expect(await world.rows([june, july, august])).toMatchObject({ accepted: 3, late: 0 });
    expect((await ledger(world)).map((entry) => [entry.month, entry.posted_month])).toEqual([
      ['2026-06', '2026-06'],
      ['2026-07', '2026-07'],
      ['2026-08', '2026-08'],
    ]);
  });

  test('late in the earliest open month, still as of its own', async () => {
    expect(await world.close('2026-06')).toEqual(['2026-06']);
    expect(await world.close('2026-07')).toEqual(['2026-07']);
    const late = ['2026-06-30T12:00:00Z', '2026-07-31T12:00:00Z'].map((accepted_at) => quote({ accepted_at }));
    expect(await world.rows([...late, quote({ accepted_at: '2026-08-02T00:00:00Z' })])).toMatchObject({
      accepted: 3,
      late: 2,
    });
    expect(await ledger(world, late[0]?.['quote_id'])).toMatchObject([{ month: '2026-06', posted_month: '2026-08' }]);
    expect(await ledger(world, late[1]?.['quote_id'])).toMatchObject([{ month: '2026-07', posted_month: '2026-08' }]);
  });

  test('late also when it lies before the first month that was ever closed', async () => {
    const ancient = quote({ accepted_at: '2019-01-15T12:00:00Z' });
    expect(await world.rows([ancient])).toMatchObject({ accepted: 1, late: 1 });
    expect(await ledger(world, ancient['quote_id'])).toMatchObject([{ month: '2019-01', posted_month: '2026-08' }]);
  });

  test('late when it takes back what a closed month has, and the closed month keeps it', async () => {
    const rows = [reversal(july), requote(july)].map((row) => ({ ...row, accepted_at: '2026-07-20T12:00:00Z' }));
    expect(await world.rows(rows)).toMatchObject({ accepted: 2, late: 2 });
    expect(
      (await ledger(world, july['quote_id'])).map((entry) => [entry.kind, entry.month, entry.posted_month]),
    ).toEqual([
      ['quote_accepted', '2026-07', '2026-07'],
      ['reversal', '2026-07', '2026-08'],
      ['requote_accepted', '2026-07', '2026-08'],
    ]);
  });

  test('and a late row that arrives again is a duplicate, in whatever month it was billed', async () => {
    const before = await size(world);
    const late = quote({ accepted_at: '2026-07-31T12:00:00Z' });
    expect(await world.rows([late])).toMatchObject({ accepted: 1, late: 1 });
    world.at('2026-09-02T06:00:00Z');
    await world.close('2026-08');
    expect(await world.rows([late])).toMatchObject({ accepted: 0, duplicates: 1, late: 0 });
    expect(await size(world)).toBe(before + 1);
  });
});

describe('with a first month that is set by hand', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
    world.at('2026-08-02T06:00:00Z');
    await world.partners([partner()]);
  });
  afterAll(() => world.end());

  test('earlier rows that are there are billed in it, and those that come later in the next', async () => {
    const [early, own] = [quote({ accepted_at: '2026-05-15T12:00:00Z' }), quote()];
    await world.rows([early, own]);
    expect(await world.close('2026-07', { firstMonth: '2026-07' })).toEqual(['2026-07']);
    const documents = await world.documents();
    expect(documents.map(({ month, enrollments }) => [month, enrollments])).toEqual([['2026-07', 2]]);
    const later = quote({ accepted_at: '2026-05-16T12:00:00Z' });
    expect(await world.rows([later])).toMatchObject({ accepted: 1, late: 1 });
    expect(await ledger(world, later['quote_id'])).toMatchObject([{ month: '2026-05', posted_month: '2026-08' }]);
  });
});
