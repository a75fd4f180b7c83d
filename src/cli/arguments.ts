/** Command arguments, checked as they are parsed. */
import { DATE, INSTANT, LINE, MONTH } from '#actions/fields';
import { refuse } from '#errors/refusals';

export function choiceArgument<Choice extends string>(argument: string, choices: readonly Choice[]) {
  return (value: string) => {
    if ((choices as readonly string[]).includes(value)) return value as Choice;
    throw refuse('argument_invalid', { argument, value, reason: `must be one of ${choices.join(', ')}` });
  };
}

/** Checked like the field of an action. */
const fieldArgument =
  <Value>(schema: { readonly safeParse: (text: string) => ParseResult<Value> }) =>
  (argument: string) =>
  (value: string) => {
    const read = schema.safeParse(value);
    if (read.success) return read.data;
    throw refuse('argument_invalid', { argument, value, reason: read.error.issues[0]?.message ?? '' });
  };

type ParseResult<Value> =
  | Readonly<{ success: true; data: Value }>
  | Readonly<{ success: false; error: { readonly issues: readonly { readonly message: string }[] } }>;

export const monthArgument = fieldArgument(MONTH);
export const dateArgument = fieldArgument(DATE);
/** Returns an ISO time in UTC. */
export const instantArgument = fieldArgument(INSTANT);
/** One line of text, not empty, because it is stored permanently. */
export const lineArgument = fieldArgument(LINE);

export const reasonArgument = lineArgument('--reason');

export function idArgument(argument: string): (value: string) => number {
  return (value) => {
    if (/^[1-9]\d{0,14}$/.test(value)) return Number(value);
    throw refuse('argument_invalid', { argument, value, reason: 'is not a number such as 12' });
  };
}

export const repeatedArgument = (value: string, before: string[] | undefined) => [...(before ?? []), value];

export function wholeNumberArgument(argument: string, least: number, most: number) {
  return (value: string) => {
    if (/^\d{1,9}$/.test(value) && Number(value) >= least && Number(value) <= most) return Number(value);
    throw refuse('argument_invalid', { argument, value, reason: `is not a whole number from ${least} to ${most}` });
  };
}
