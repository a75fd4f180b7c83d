/** Checks the parameters of URLs. An empty parameter counts as absent. Refusal: argument_invalid. */
import { SOUGHT_TEXT } from '#actions/fields';
import { refuse } from '#errors/refusals';
import { isDate, isMonth, Month } from '#month';

type Parameter = string | undefined;

const invalid = (argument: string, value: string, reason: string) =>
  refuse('argument_invalid', { argument, value, reason });

export function dayAsked(argument: string, value: Parameter): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (isDate(value)) return value;
  throw invalid(argument, value, 'is not a date such as 2026-10-31');
}

export function monthAsked(argument: string, value: Parameter): Month | undefined {
  if (value === undefined || value === '') return undefined;
  if (isMonth(value)) return value;
  throw invalid(argument, value, 'is not a month such as 2026-10');
}

export function choiceAsked<Choice extends string>(
  argument: string,
  value: Parameter,
  choices: readonly Choice[],
): Choice | undefined {
  if (value === undefined || value === '') return undefined;
  if ((choices as readonly string[]).includes(value)) return value as Choice;
  throw invalid(argument, value, `must be one of ${choices.join(', ')}`);
}

export function idAsked(argument: string, value: Parameter): number | undefined {
  if (value === undefined || value === '') return undefined;
  if (/^[1-9]\d{0,14}$/.test(value)) return Number(value);
  throw invalid(argument, value, 'is not a number such as 12');
}

export const textAsked = (value: Parameter): string | undefined => SOUGHT_TEXT.parse(value ?? '') || undefined;
