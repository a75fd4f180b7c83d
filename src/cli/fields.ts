/** Arguments and options of a command from an action's input fields or a list's filters. */

import { readFileSync, statSync } from 'node:fs';
import { Command, Option } from 'commander';
import { z } from 'zod';
import { CommandWords, flagsOf } from '#actions/command';
import { Field, FieldKind, FileInput, fieldsOf, fileReadAgain, READ } from '#actions/fields';
import { reasonOf, refuse } from '#errors/refusals';
import { inKebab } from '#field-names';
import { Note, NoteKey, readKey, readNote } from '#log/note';
import { uncapitalized } from '#text';
import { repeatedArgument } from './arguments.ts';

export function addFields(command: Command, input: z.ZodObject, words: CommandWords = {}) {
  for (const field of fieldsOf(input)) {
    const argument = words.arguments?.[field.name];
    // An argument with the name of its field needs no help.
    if (argument !== undefined) {
      const isClear = field.kind === 'text' && argument.includes(inKebab(field.name));
      command.argument(argument, isClear ? '' : helpOf(field));
      continue;
    }
    const help = `${helpOf(field)}${field.several ? '; may be repeated' : ''}`;
    const option = new Option(flagsOf(field, words), help).makeOptionMandatory(field.required);
    command.addOption(field.several ? option.argParser(repeatedArgument) : option);
  }
}

/** The values of the fields. Files are not read yet. */
export function givenTo(
  input: z.ZodObject,
  { values = [], options }: Readonly<{ values?: readonly unknown[]; options: object }>,
  words: CommandWords = {},
): Record<string, unknown> {
  const places = Object.keys(words.arguments ?? {});
  const given = fieldsOf(input).map((field) => {
    const at = places.indexOf(field.name);
    const option = new Option(flagsOf(field, words));
    const value = at >= 0 ? values[at] : (options as Readonly<Record<string, unknown>>)[option.attributeName()];
    // commander turns --no-mail into `mail: false`.
    if (option.negate) return [field.name, value === false || undefined];
    if (Array.isArray(value)) return [field.name, value.length === 0 ? undefined : value.flatMap(typedAs(field))];
    return [field.name, typeof value === 'string' ? typedAs(field)(value) : value];
  });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

const TYPED: Readonly<Partial<Record<FieldKind, (value: string) => unknown>>> = {
  ...READ,
  file: (name) => ({ name, bytes: new Uint8Array() }),
};

/** Several choices may also be one argument, separated by commas. */
const typedAs =
  ({ kind, several }: Field) =>
  (value: string) =>
    kind === 'choice' && several ? value.split(',').map((each) => each.trim()) : (TYPED[kind]?.(value) ?? value);

const LARGE_BYTES = 1024 * 1024;

/**
 * Reads the files of an input, after everything else is checked, because stdin may never end. Refusal: file_unreadable.
 */
export function withContents<Input>(fields: z.ZodObject, input: Input): Input {
  const read = ({ name }: FileInput): FileInput => {
    const bytes = readInput(name);
    const isLarge = bytes.length > LARGE_BYTES && statSync(name, { throwIfNoEntry: false })?.isFile() === true;
    return isLarge ? fileReadAgain(name, bytes, () => readInput(name)) : { name, bytes };
  };
  const files = fieldsOf(fields).flatMap(({ name, kind }) => {
    const given = (input as Readonly<Record<string, FileInput | FileInput[] | undefined>>)[name];
    if (kind !== 'file' || given === undefined) return [];
    return [[name, Array.isArray(given) ? given.map(read) : read(given)]];
  });
  return { ...input, ...Object.fromEntries(files) };
}

/** A field's help for --help: `The reason. It is recorded. Default: none.` becomes `the reason; it is recorded (default: none)`. */
function helpOf({ help, kind, choices = [] }: Field) {
  const [, sentences = '', byDefault] = /^(.*?) ?(?:Default: (.*)\.)?$/.exec(help) ?? [];
  const said = inClauses(sentences.replace(/\.$/, ''));
  const isNamed = choices.every((each) => said.includes(each));
  return [
    [said, ...(isNamed ? [] : [choices.join(', ')])].filter((each) => each !== '').join(': '),
    kind === 'file' ? "; '-' is stdin" : '',
    byDefault === undefined ? '' : ` (default: ${inClauses(byDefault)})`,
  ].join('');
}

/** Joins sentences with semicolons. */
const inClauses = (sentences: string) => sentences.split('. ').map(uncapitalized).join('; ');

/** Reads a file, or stdin if the name is '-'. */
export function readInput(name: string): Buffer {
  try {
    return readFileSync(name === '-' ? 0 : name);
  } catch (error) {
    throw refuse('file_unreadable', { file: name, reason: reasonOf(error) }, error);
  }
}

/** Refusals: file_unreadable, checkpoint_unreadable. */
export function readNoteFile(file: string): Note {
  const note = readNote(readInput(file).toString().replaceAll('\r\n', '\n'));
  if (note === undefined) throw refuse('checkpoint_unreadable', { file });
  return note;
}

/** A log's verifier key, or a file with it. Refusals: file_unreadable, argument_invalid. */
export function logKeyOf(argument: string, value: string): NoteKey {
  const key = readKey(value.includes('+') ? value : readInput(value).toString());
  if (key !== undefined && !key.isWitness) return key;
  throw refuse('argument_invalid', { argument, value, reason: 'is not a verifier key' });
}
