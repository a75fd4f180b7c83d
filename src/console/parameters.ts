/** What an address asks for, checked before it is read. An empty field asks for nothing. Refusal: argument_invalid. */
import { refuse } from '../errors/refusals.ts';
import { isDate, isMonth, type Month } from '../month.ts';

export type Asked = string | undefined;

const invalid = (argument: string, value: string, reason: string) =>
  refuse('argument_invalid', { argument, value, reason });

export function dayAsked(argument: string, value: Asked): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (isDate(value)) return value;
  throw invalid(argument, value, 'is not a date such as 2026-10-31');
}

export function monthAsked(argument: string, value: Asked): Month | undefined {
  if (value === undefined || value === '') return undefined;
  if (isMonth(value)) return value;
  throw invalid(argument, value, 'is not a month such as 2026-10');
}

export function choiceAsked<Choice extends string>(
  argument: string,
  value: Asked,
  choices: readonly Choice[],
): Choice | undefined {
  if (value === undefined || value === '') return undefined;
  if ((choices as readonly string[]).includes(value)) return value as Choice;
  throw invalid(argument, value, `must be one of ${choices.join(', ')}`);
}

/** An id that the database assigned. */
export function idAsked(argument: string, value: Asked): number | undefined {
  if (value === undefined || value === '') return undefined;
  if (/^[1-9]\d{0,14}$/.test(value)) return Number(value);
  throw invalid(argument, value, 'is not a number such as 12');
}

/** Words to search for; PostgreSQL's texts have no NUL. */
export function textAsked(value: Asked): string | undefined {
  const text = value?.replaceAll('\0', '').trim().slice(0, 200);
  return text === '' ? undefined : text;
}

/** An amount in major units, with or without commas between thousands. */
export function amountAsked(argument: string, value: Asked): string | undefined {
  if (value === undefined || value.trim() === '') return undefined;
  const amount = readAmount(value);
  if (amount !== undefined) return amount;
  throw invalid(argument, value, 'is not an amount such as 1,250.00');
}

/** `1250.00` of `1,250.00`; undefined for what is no amount. */
export function readAmount(text: string): string | undefined {
  const plain = text.trim();
  const written = /^(\d{1,15}|\d{1,3}(,\d{3}){1,4})(\.\d{1,6})?$/.test(plain);
  return written ? plain.replaceAll(',', '') : undefined;
}
