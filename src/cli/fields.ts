/** The arguments and options of a command, of the fields of an act's input or of a list's filters. */
import { type Command, Option } from 'commander';
import type { z } from 'zod';
import { type CommandWords, flagsOf } from '../acts/command.ts';
import { type Field, fieldsOf, READ } from '../acts/fields.ts';
import { repeatedArgument } from './arguments.ts';

export function addFields(command: Command, input: z.ZodObject, words: CommandWords = {}): void {
  for (const field of fieldsOf(input)) {
    const argument = words.arguments?.[field.name];
    // One that is called as its field says what it is.
    if (argument !== undefined) {
      command.argument(argument, argument.includes(field.name) ? '' : asOption(field.help));
      continue;
    }
    const option = new Option(flagsOf(field, words), optionHelp(field)).makeOptionMandatory(field.required);
    command.addOption(field.several ? option.argParser(repeatedArgument) : option);
  }
}

/** The fields as they were given. */
export function givenTo(
  input: z.ZodObject,
  { values = [], options }: { readonly values?: readonly unknown[]; readonly options: object },
  words: CommandWords = {},
): Record<string, unknown> {
  const places = Object.keys(words.arguments ?? {});
  const given = fieldsOf(input).map((field): [string, unknown] => {
    const at = places.indexOf(field.name);
    const name = new Option(flagsOf(field, words)).attributeName();
    const value = at >= 0 ? values[at] : (options as Readonly<Record<string, unknown>>)[name];
    const read = READ[field.kind];
    return [field.name, typeof value === 'string' && read !== undefined ? read(value) : value];
  });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

const optionHelp = ({ help, several }: Field): string => `${asOption(help)}${several ? '; may be repeated' : ''}`;

/** Sentences as the help of an option: `Why. It is recorded.` is `why; it is recorded`. */
const asOption = (help: string): string =>
  help
    .replace(/\.? Default: (.*)\.$/, ' (default: $1)')
    .replace(/\.$/, '')
    .split('. ')
    .map((sentence) => sentence.charAt(0).toLowerCase() + sentence.slice(1))
    .join('; ');
