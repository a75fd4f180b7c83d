/** Times of rows: which texts are times, which instant they mean, and how far a clock may be ahead. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROW_FIELDS, type RowTexts, rowProblem } from '../../src/ledger/row.ts';
import fc from '../support/property.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { ledger } from './ledger.ts';

const NOW = '2028-04-01T12:00:00.000Z';
const problemOf = (accepted_at: string) =>
  rowProblem(
    { ...Object.fromEntries(ROW_FIELDS.map((field) => [field, ''])), ...quote({ accepted_at }) } as RowTexts,
    Date.parse(NOW),
  );

/** The text of a time, and the instant that the ledger must keep. */
const TIMES: readonly [text: string, instant: string][] = [
  ['2026-07-15T12:00:00Z', '2026-07-15T12:00:00.000000Z'],
  ['2026-07-15T12:00Z', '2026-07-15T12:00:00.000000Z'],
  ['2026-07-15T12:00:00+02:00', '2026-07-15T10:00:00.000000Z'],
  ['2026-07-15T12:00:00+0200', '2026-07-15T10:00:00.000000Z'],
  ['2026-07-15T12:00:00+02', '2026-07-15T10:00:00.000000Z'],
  ['2026-07-15T12:00:00-03:30', '2026-07-15T15:30:00.000000Z'],
  ['2026-07-15T12:00:00+05:45', '2026-07-15T06:15:00.000000Z'],
  ['2026-07-15T00:00:00+14:00', '2026-07-14T10:00:00.000000Z'],
  ['2026-07-15T23:59:59-11:00', '2026-07-16T10:59:59.000000Z'],
  ['2026-07-15T12:00:00-00:00', '2026-07-15T12:00:00.000000Z'],
  ['2026-07-15T12:00:00.5Z', '2026-07-15T12:00:00.500000Z'],
  ['2026-07-15T12:00:00.123456Z', '2026-07-15T12:00:00.123456Z'],
  ['2026-07-31T23:59:59.999999Z', '2026-07-31T23:59:59.999999Z'],
  ['2026-07-15T12:00:00.000001-04:00', '2026-07-15T16:00:00.000001Z'],
  ['2028-02-29T23:59:59Z', '2028-02-29T23:59:59.000000Z'],
  ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000000Z'],
  ['2026-12-31T23:30:00-01:00', '2027-01-01T00:30:00.000000Z'],
  ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000000Z'],
];

const MALFORMED: readonly [text: string, why: string][] = [
  ['2026-07-15T12:00:00', 'has no offset'],
  ['2026-07-15T12:00:00.25', 'has no offset'],
  ['2026-07-15', 'is a day, not a time'],
  ['2026-07-15T24:00:00Z', 'is 24:00'],
  ['2026-07-15T12:60:00Z', 'has a minute 60'],
  ['2026-07-15T12:00:60Z', 'has a second 60'],
  ['2016-12-31T23:59:60Z', 'is a leap second'],
  ['2026-07-15T12:00:00.1234567Z', 'has seven fractional digits'],
  ['2026-07-15T12:00:00.1234560Z', 'has seven fractional digits, the last one zero'],
  ['2026-07-15T12:00:00.Z', 'has a point and no fraction'],
  ['2026-07-15T12:00:00,5Z', 'has a comma'],
  ['2026-07-15 12:00:00Z', 'has a space in the middle'],
  [' 2026-07-15T12:00:00Z', 'begins with a space'],
  ['2026-07-15T12:00:00Z\n', 'ends with a line break'],
  ['2026-07-15t12:00:00z', 'is in small letters'],
  ['20260715T120000Z', 'is in the basic format'],
  ['2026-W29-3T12:00:00Z', 'names a week'],
  ['2026-196T12:00:00Z', 'names a day of the year'],
  ['2026-7-15T12:00:00Z', 'has a month of one digit'],
  ['2026-00-15T12:00:00Z', 'has a month 0'],
  ['2026-13-15T12:00:00Z', 'has a month 13'],
  ['2026-07-00T12:00:00Z', 'has a day 0'],
  ['2026-07-32T12:00:00Z', 'has a day 32'],
  ['2026-06-31T12:00:00Z', 'is the 31st of June'],
  ['2026-02-29T12:00:00Z', 'is 29 February of no leap year'],
  ['2100-02-29T12:00:00Z', 'is 29 February 2100, no leap year'],
  ['2026-07-15T12:00:00+2:00', 'has an offset of one digit'],
  ['2026-07-15T12:00:00+16:00', 'has an offset beyond any'],
  ['2026-07-15T12:00:00+02:60', 'has an offset with a minute 60'],
  ['2026-07-15T12:00:00+02:00:00', 'has an offset with seconds'],
  ['2026-07-15T12:00:00 America/New_York', 'names a zone instead of an offset'],
  ['2026-07-15T12:00:00UTC', 'says UTC'],
  ['1753000000', 'counts seconds'],
  ['1969-12-31T23:59:59Z', 'is before 1970'],
  ['0000-01-01T00:00:00Z', 'is of the year 0'],
  ['+012026-07-15T12:00:00Z', 'has a year of six digits'],
  ['٢٠٢٦-07-15T12:00:00Z', 'has digits of another script'],
  ['infinity', 'is a word that PostgreSQL knows'],
  ['now', 'is another word that PostgreSQL knows'],
];

describe('a time', () => {
  for (const [text, why] of MALFORMED) {
    test(`that ${why} is refused: ${JSON.stringify(text)}`, () => {
      expect(problemOf(text)).toMatchObject({ field: 'accepted_at', code: 'time_malformed' });
    });
  }

  test('exactly five minutes ahead of the clock is accepted', () => {
    expect(problemOf('2028-04-01T12:05:00Z')).toBeUndefined();
    expect(problemOf('2028-04-01T12:05:00.000000Z')).toBeUndefined();
    expect(problemOf('2028-04-01T14:05:00+02:00')).toBeUndefined();
  });

  test('a microsecond more than five minutes ahead is refused', () => {
    for (const text of ['2028-04-01T12:05:00.000001Z', '2028-04-01T08:05:00.000001-04:00', '2028-04-01T12:05:01Z']) {
      expect(problemOf(text)).toMatchObject({ field: 'accepted_at', code: 'time_in_future' });
    }
  });

  test('in the year 9999 is in the future', () => {
    expect(problemOf('9999-12-31T23:59:59.999999Z')?.code).toBe('time_in_future');
  });

  test('that is anything else but the form is refused, and a refusal never throws', () => {
    const characters = fc.constantFrom(...'0123456789-:.TZ+ ');
    fc.assert(
      fc.property(fc.string({ unit: characters, maxLength: 32 }), (text) => {
        const problem = problemOf(text);
        if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text)) expect(problem).toBeDefined();
      }),
      { numRuns: 500 },
    );
  });
});

describe('in the ledger', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
    world.at(NOW);
    await world.partners([partner()]);
  });
  afterAll(() => world.end());

  test('every time is kept as the instant that it means, to the microsecond', async () => {
    const rows = TIMES.map(([accepted_at], index) => quote({ quote_id: `time-${index}`, accepted_at }));
    expect(await world.rows(rows)).toMatchObject({ accepted: TIMES.length, errors: [] });
    expect((await ledger(world)).map((entry) => entry.accepted_at)).toEqual(TIMES.map(([, instant]) => instant));
  });
});
