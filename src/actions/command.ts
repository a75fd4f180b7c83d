/**
 * The command line of an action: words, arguments and options, generated from its fields and its command description.
 */
import { z } from 'zod';
import { asOption, inKebab, NameOf, withValue } from '#field-names';
import { Field, fieldsOf } from './fields.ts';

/** The name of a longer option does not stand twice in its help, which has 80 columns. */
const LONG = 16;

/** The words of a command that differ from the names of its fields. */
export type CommandWords = Readonly<{
  /** Fields that are positional arguments: `{ number: '<number>' }`. */
  arguments?: Readonly<Record<string, string>>;
  /** Options whose names differ from their fields: `{ numbers: '--invoice <number>' }`. */
  options?: Readonly<Record<string, string>>;
}>;

export type ActionCommand = CommandWords &
  Readonly<{
    /** The command's words, if they differ from the action's name: `close` runs `month.close`. */
    called?: string;
    /** The summary in the list of commands and above the options. The default is the action's title. */
    summary?: string;
    help?: string;
    deliver?: true;
    /** Adds the option --dry-run, with this help. */
    dryRun?: string;
    /** Allows the command to run without a user, as `cron`. */
    unattended?: true;
  }>;

type ActionWithCommand = Readonly<{
  name: string;
  input: z.ZodObject;
  command?: ActionCommand | undefined;
}>;

export const wordsOf = ({ name, command }: ActionWithCommand) =>
  command?.called ?? name.replace('.', ' ').replaceAll('_', '-');

const PLACEHOLDERS: Readonly<Partial<Record<Field['kind'], string>>> = {
  ...{ amount: 'amount', date: 'YYYY-MM-DD', instant: 'time', month: 'month', file: 'file' },
};

export function flagsOf({ name, kind, value }: Field, { options = {} }: CommandWords = {}) {
  if (options[name] !== undefined) return options[name];
  const what = inKebab(name);
  if (kind === 'flag') return `--${what}`;
  return `--${what} <${value ?? (name.endsWith('Id') ? 'id' : (PLACEHOLDERS[kind] ?? (what.length > LONG ? 'value' : what)))}>`;
}

export const namesOf =
  ({ input, command = {} }: Pick<ActionWithCommand, 'input' | 'command'>): NameOf =>
  (name, value) => {
    const field = fieldsOf(input).find((each) => each.name === name);
    if (field === undefined) return asOption(name, value);
    const argument = command.arguments?.[name]?.replaceAll(/[<[\].>]/g, '');
    return argument ?? withValue(flagsOf(field, command).replace(/ .*/, ''), value);
  };

type KnownInput = Readonly<Record<string, string | number | true | readonly string[]>>;

/**
 * Returns `reckoner dispute close INV-2026-000003 --reason REASON`. Required values that are not known are placeholders
 * in capitals.
 */
export function commandText(action: ActionWithCommand, known: KnownInput) {
  const places = action.command?.arguments ?? {};
  const parts = fieldsOf(action.input).map((field) => {
    const value = known[field.name];
    const [option = '', placeholder = ''] = (places[field.name] ?? flagsOf(field, action.command)).split(' ');
    if (value === undefined && !field.required) return { option: '', at: 1 };
    if (field.kind === 'flag') return { option, at: 1 };
    const isPlaced = places[field.name] !== undefined;
    const values = value === undefined ? [inCapitals(isPlaced ? option : placeholder)] : [value].flat().map(quoted);
    return { option: values.map((each) => (isPlaced ? each : `${option} ${each}`)).join(' '), at: isPlaced ? 0 : 1 };
  });
  const words = parts.toSorted((one, other) => one.at - other.at).map(({ option }) => option);
  return ['reckoner', wordsOf(action), ...words.filter((word) => word !== '')].join(' ');
}

const inCapitals = (placeholder: string) => placeholder.replaceAll(/[<[\].>]/g, '').toUpperCase();

const quoted = (value: string | number | true) =>
  /^[\w@%+=:,./-]+$/.test(String(value)) ? String(value) : `"${String(value).replaceAll(/["$`\\]/g, '\\$&')}"`;
