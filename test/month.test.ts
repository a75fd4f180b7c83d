/** Billing months: their instants in every zone, whatever the clocks do that night. */
import { DateTime } from 'luxon';
import { describe, expect, test } from 'vitest';
import {
  dateName,
  isDate,
  isMonth,
  isTimeZone,
  type Month,
  monthAfter,
  monthBefore,
  monthInterval,
  monthName,
  monthOf,
  monthsBetween,
  workingDaysFrom,
} from '../src/month.ts';

/** The first instant of a month, worked out by hand from the zone's offset that night. */
const FIRST_INSTANTS: readonly [zone: string, month: string, instant: string, why: string][] = [
  ['UTC', '2026-08', '2026-08-01T00:00:00.000Z', 'no offset'],
  ['Pacific/Pago_Pago', '2026-08', '2026-08-01T11:00:00.000Z', 'eleven hours behind'],
  ['Pacific/Kiritimati', '2026-08', '2026-07-31T10:00:00.000Z', 'fourteen hours ahead'],
  ['Asia/Kolkata', '2026-08', '2026-07-31T18:30:00.000Z', 'half an hour'],
  ['Asia/Kathmandu', '2026-08', '2026-07-31T18:15:00.000Z', 'three quarters of an hour'],
  ['Pacific/Chatham', '2026-04', '2026-03-31T10:15:00.000Z', '13:45 in summer'],
  ['Pacific/Chatham', '2026-05', '2026-04-30T11:15:00.000Z', '12:45 in winter'],
  ['America/New_York', '2026-11', '2026-11-01T04:00:00.000Z', 'still summer time, which ends that morning'],
  ['America/New_York', '2026-12', '2026-12-01T05:00:00.000Z', 'winter time'],
  ['America/New_York', '2028-03', '2028-03-01T05:00:00.000Z', 'the day after 29 February'],
  ['America/St_Johns', '2026-11', '2026-11-01T02:30:00.000Z', 'two and a half hours, until that morning'],
  ['America/St_Johns', '2026-12', '2026-12-01T03:30:00.000Z', 'three and a half hours'],
  ['America/St_Johns', '2009-11', '2009-11-01T03:30:00.000Z', 'a minute after midnight it was 23:01 again'],
  ['Australia/Lord_Howe', '2026-04', '2026-03-31T13:00:00.000Z', 'eleven hours in summer'],
  ['Australia/Lord_Howe', '2026-05', '2026-04-30T13:30:00.000Z', 'ten and a half in winter'],
  ['Australia/Lord_Howe', '2023-10', '2023-09-30T13:30:00.000Z', 'half an hour is skipped that night'],
  ['Europe/London', '2026-04', '2026-03-31T23:00:00.000Z', 'summer time'],
  ['America/Havana', '2026-11', '2026-11-01T04:00:00.000Z', 'midnight comes twice that night'],
  ['America/Havana', '2026-12', '2026-12-01T05:00:00.000Z', 'winter time'],
  ['America/Asuncion', '2017-10', '2017-10-01T04:00:00.000Z', 'midnight does not come that night'],
];

const MONTHS = monthsBetween('2026-09' as Month, '2027-05' as Month);

describe('a month', () => {
  for (const [zone, month, instant, why] of FIRST_INSTANTS) {
    test(`${month} begins in ${zone} at ${instant}: ${why}`, () => {
      const startsAt = monthInterval(month as Month, zone).startsAt;
      expect(startsAt.toUTC().toISO()).toBe(instant);
      expect(monthOf(startsAt, zone)).toBe(month);
      expect(monthOf(startsAt.minus(1), zone)).toBe(monthBefore(month as Month));
    });
  }

  test('begins in every zone where the calendar turns, and ends where the next one begins', () => {
    const zones = Intl.supportedValuesOf('timeZone');
    expect(zones.length).toBeGreaterThan(400);
    const wrong: string[] = [];
    for (const zone of zones) {
      let end: number | undefined;
      for (const month of MONTHS) {
        const { startsAt, endsAt } = monthInterval(month, zone);
        const turns = startsAt.day === 1 && startsAt.minus(1).day > 27;
        if (!turns || (end ?? startsAt.toMillis()) !== startsAt.toMillis()) wrong.push(`${zone} ${month}`);
        end = endsAt.toMillis();
      }
    }
    expect(wrong).toEqual([]);
  });

  test('is written YYYY-MM and not otherwise', () => {
    expect(['2026-01', '2026-12', '0001-01', '9999-11'].every(isMonth)).toBe(true);
    for (const text of [
      '2026-00',
      '2026-13',
      '2026-1',
      '26-01',
      '2026-01-01',
      '2026/01',
      '0000-12',
      '9999-12',
      '',
      '2026-01\n',
      ' 2026-01',
    ]) {
      expect(isMonth(text)).toBe(false);
    }
  });

  test('follows and precedes across the turn of the year', () => {
    expect(monthAfter('2026-12' as Month)).toBe('2027-01');
    expect(monthBefore('2027-01' as Month)).toBe('2026-12');
    expect(monthsBetween('2026-11' as Month, '2027-02' as Month)).toEqual(['2026-11', '2026-12', '2027-01', '2027-02']);
    expect(monthsBetween('2027-02' as Month, '2026-11' as Month)).toEqual([]);
  });

  test('is named in words', () => {
    expect(monthName('2026-10')).toBe('October 2026');
    expect(dateName('2026-12-01')).toBe('1 December 2026');
  });
});

test('a day exists in the calendar, and in the database, which has no year 0', () => {
  expect(['0001-01-01', '2024-02-29', '9999-12-31'].every(isDate)).toBe(true);
  expect(['0000-01-01', '2026-02-29', '2026-1-01', '2026-01-01T00:00:00Z'].some(isDate)).toBe(false);
});

describe('a time zone', () => {
  test('is an IANA name, never an offset', () => {
    for (const name of ['America/New_York', 'Pacific/Kiritimati', 'UTC', 'Etc/GMT+5'])
      expect(isTimeZone(name)).toBe(true);
    for (const name of [
      '',
      'UTC+3',
      'GMT-5',
      '+02:00',
      'local',
      'system',
      'America/Newyork',
      'New York',
      'America/New_York\n',
    ]) {
      expect(isTimeZone(name)).toBe(false);
    }
  });

  test('decides the month of one and the same instant', () => {
    const instant = DateTime.fromISO('2026-07-31T23:30:00Z');
    expect(monthOf(instant, 'Pacific/Kiritimati')).toBe('2026-08');
    expect(monthOf(instant, 'Pacific/Pago_Pago')).toBe('2026-07');
  });
});

test('working days are counted from Monday to Friday, also backwards and from a Sunday', () => {
  const days: readonly [from: string, count: number, to: string][] = [
    ['2026-08-03', 5, '2026-08-10'],
    ['2026-08-07', 1, '2026-08-10'],
    ['2026-08-09', 1, '2026-08-10'],
    ['2026-08-08', 5, '2026-08-14'],
    ['2026-08-10', -1, '2026-08-07'],
    ['2026-08-09', -2, '2026-08-06'],
    ['2026-08-09', 0, '2026-08-09'],
  ];
  for (const [from, count, to] of days) expect([from, count, workingDaysFrom(from, count)]).toEqual([from, count, to]);
});
