/**
 * Billing months. A month in a time zone is a half-open interval, from local midnight of its first day to local
 * midnight of the next month's first day (contract, Amounts, times, identifiers).
 */
import { DateTime, IANAZone } from 'luxon';

/** `YYYY-MM`. Months sort as text. */
export type Month = string & { readonly brand: 'month' };

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/;

/** The last month is 9999-11, so that every month has a next month that sorts after it as text. */
export const isMonth = (text: string): text is Month => MONTH.test(text) && text >= '0001-01' && text < '9999-12';

/** Returns whether a text is an existing day, `YYYY-MM-DD`. */
export const isDate = (text: string) =>
  /^(?!0000)\d{4}-\d\d-\d\d$/.test(text) && DateTime.fromISO(text, { zone: 'utc' }).isValid;

interface MonthInterval {
  readonly startsAt: DateTime<true>;
  /** The first instant after the month. */
  readonly endsAt: DateTime<true>;
}

const valid = (at: DateTime) => {
  if (!at.isValid) throw new TypeError(`${at.invalidReason}: ${at.invalidExplanation}`);
  return at as DateTime<true>;
};

/**
 * Returns the first instant of a month's first day. If the clocks skip midnight on that day (Asunción on 2017-10-01),
 * the first instant is the instant of the jump. If the clocks go back to midnight (Havana on 2026-11-01), the first
 * instant is the first of the two midnights.
 */
function startOfLocalMonth(year: number, month: number, zone: string) {
  const start = valid(DateTime.fromObject({ year, month, day: 1 }, { zone }).startOf('day'));
  const justBefore = start.minus({ milliseconds: 1 });
  return justBefore.month === month ? start.plus({ minutes: start.offset - justBefore.offset }) : start;
}

export function monthInterval(month: Month, zone: string): MonthInterval {
  const [year, number] = parts(month);
  const next = parts(monthAfter(month));
  return { startsAt: startOfLocalMonth(year, number, zone), endsAt: startOfLocalMonth(next[0], next[1], zone) };
}

export function monthOf(instant: DateTime, zone: string) {
  return valid(instant.setZone(zone)).toFormat('yyyy-MM') as Month;
}

export function monthAfter(month: Month) {
  return shift(month, 1);
}

export function monthBefore(month: Month) {
  return shift(month, -1);
}

/** Returns the months from `first` to `last`, both included. The result is empty if `first` is later. */
export function monthsBetween(first: Month, last: Month) {
  const months: Month[] = [];
  for (let month = first; month <= last; month = monthAfter(month)) months.push(month);
  return months;
}

export function lastDay(month: Month) {
  const [year, number] = parts(month);
  return new Date(Date.UTC(year, number, 0)).toISOString().slice(0, 10);
}

const NAMES = 'January February March April May June July August September October November December'.split(' ');

/** Returns `October 2026`, or `Oct 2026` if short. */
export function monthName(month: string, length: 'short' | 'long' = 'long') {
  const name = NAMES[parts(month as Month)[1] - 1] as string;
  return `${length === 'short' ? name.slice(0, 3) : name} ${month.slice(0, 4)}`;
}

/** Returns `1 December 2026`, or `December 1, 2026` as Americans write it. Unlike 12/1, both are unambiguous. */
export function dateName(date: string, first: 'day' | 'month' = 'day') {
  const name = NAMES[parts(date as Month)[1] - 1] as string;
  const day = Number(date.slice(8, 10));
  return first === 'day' ? `${day} ${name} ${date.slice(0, 4)}` : `${name} ${day}, ${date.slice(0, 4)}`;
}

/** Accepts only IANA names. Offsets such as `UTC+3` have no rules for daylight saving time. */
export function isTimeZone(name: string) {
  return /^[A-Za-z]/.test(name) && IANAZone.isValidZone(name) && !/^(utc|gmt)[+-]/i.test(name);
}

function parts(month: Month): [year: number, month: number] {
  return [Number(month.slice(0, 4)), Number(month.slice(5, 7))];
}

function shift(month: Month, by: number) {
  const [year, number] = parts(month);
  const index = year * 12 + (number - 1) + by;
  return `${String(Math.floor(index / 12)).padStart(4, '0')}-${String((index % 12) + 1).padStart(2, '0')}` as Month;
}

/** Returns the days between two dates, `YYYY-MM-DD`. The result is negative if the second date is earlier. */
export function daysBetween(from: string, to: string) {
  return Math.round((Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / 86_400_000);
}

/** The day that is this many days after a day, or before it if the number is negative. */
export const addDays = (day: string, days: number) =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);

export const daysApart = (one: string, other: string) => Math.abs(daysBetween(one, other));

/**
 * Returns the day that is this many working days after a day, or before it if the number is negative. Working days are
 * Monday to Friday.
 */
export function workingDaysFrom(day: string, count: number) {
  let at = DateTime.fromISO(day, { zone: 'utc' });
  for (let left = Math.abs(count); left > 0; ) {
    at = at.plus({ days: Math.sign(count) });
    if (at.weekday <= 5) left -= 1;
  }
  return at.toFormat('yyyy-MM-dd');
}
