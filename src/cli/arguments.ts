/** Arguments of commands, checked as they are parsed. Refusal: argument_invalid. */
import { DateTime } from 'luxon';
import { refuse } from '../errors/refusals.ts';
import { isDate, isMonth, type Month } from '../month.ts';

export function monthArgument(argument: string): (value: string) => Month {
  return (value) => {
    if (isMonth(value)) return value;
    throw refuse('argument_invalid', { argument, value, reason: 'is not a month such as 2026-10' });
  };
}

export function choiceArgument<Choice extends string>(argument: string, choices: readonly Choice[]) {
  return (value: string): Choice => {
    if ((choices as readonly string[]).includes(value)) return value as Choice;
    throw refuse('argument_invalid', { argument, value, reason: `must be one of ${choices.join(', ')}` });
  };
}

export function dateArgument(argument: string): (value: string) => string {
  return (value) => {
    if (isDate(value)) return value;
    throw refuse('argument_invalid', { argument, value, reason: 'is not a date such as 2026-10-31' });
  };
}

/** An instant with its zone, or a day, which begins in UTC. Gives an ISO instant in UTC. */
export function instantArgument(argument: string): (value: string) => string {
  return (value) => {
    const instant = DateTime.fromISO(value, { zone: 'utc' });
    const said = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d))?$/.test(value);
    if (said && instant.isValid) return instant.toISO();
    const reason = 'is neither a day such as 2026-11-01 nor a time such as 2026-11-01T06:00:00Z';
    throw refuse('argument_invalid', { argument, value, reason });
  };
}

/** Text that is stored permanently: one line, not empty. */
export function lineArgument(argument: string): (text: string) => string {
  return (text) => {
    const line = text.trim();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it searches for
    if (line !== '' && line.length <= 500 && !/[\u0000-\u001f\u007f]/.test(line)) return line;
    throw refuse('argument_invalid', { argument, value: text, reason: 'must be one line of 1 to 500 characters' });
  };
}

export const reasonArgument = lineArgument('--reason');

/** An id that the database assigned. */
export function idArgument(argument: string): (value: string) => number {
  return (value) => {
    if (/^[1-9]\d{0,14}$/.test(value)) return Number(value);
    throw refuse('argument_invalid', { argument, value, reason: 'is not a number such as 12' });
  };
}

/** An amount to search for, in major units; it has no currency yet. */
export function amountArgument(argument: string): (value: string) => string {
  return (value) => {
    if (/^\d{1,15}(\.\d{1,4})?$/.test(value)) return value;
    throw refuse('argument_invalid', { argument, value, reason: 'is not an amount such as 1234.50' });
  };
}

/** Several ids, collected one by one. */
export function idsArgument(argument: string): (value: string, before: number[] | undefined) => number[] {
  const read = idArgument(argument);
  return (value, before) => [...(before ?? []), read(value)];
}
/** The values of an option that may be repeated. */
export const repeatedArgument = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value];

export function wholeNumberArgument(argument: string, least: number, most: number) {
  return (value: string): number => {
    if (/^\d{1,9}$/.test(value) && Number(value) >= least && Number(value) <= most) return Number(value);
    throw refuse('argument_invalid', { argument, value, reason: `is not a whole number from ${least} to ${most}` });
  };
}
