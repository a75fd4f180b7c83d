/** Every command that a message, template or page of the documentation prints is one that the program has. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { beforeAll, expect, test } from 'vitest';
import { commandText } from '../../src/actions/command.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import type { Handler } from '../../src/cli/define.ts';
import { COMMANDS, loaded } from '../../src/cli/program.ts';
import { remediesInSource } from '../support/remedies-in-source.ts';

const ROOT = join(import.meta.dirname, '../..');
const program = new Command('reckoner').option('--json').option('--by <name>').option('--help').option('--version');

beforeAll(async () => {
  const handle: Handler = () => async () => {};
  for (const [name, [, load]] of Object.entries(COMMANDS)) {
    const command = program.command(name);
    for (const { define } of await loaded(load)) define(command, handle);
  }
});

function filesIn(folder: string, ending: RegExp): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .map((name) => join(folder, name));
}

interface Printed {
  readonly file: string;
  readonly text: string;
}

/** What stands between these quotes and begins with `reckoner`; an expression in a template is one word. */
function printedIn(files: readonly string[], quote: string): Printed[] {
  const pattern = new RegExp(`${quote}(reckoner (?:[^${quote}$\n]|\\$\\{[^}]*\\})*)${quote}`, 'g');
  return files.flatMap((file) => {
    const source = readFileSync(join(ROOT, file), 'utf8').replaceAll(/\$\{[^{}]*(\{[^{}]*\}[^{}]*)*\}/g, 'VALUE');
    return [...source.matchAll(pattern)].map(([, text]) => ({ file, text: text as string }));
  });
}

/** What is wrong with a command as it stands; undefined where it can be typed, with values for the words in capitals. */
function problemOf(text: string, { complete }: { complete: boolean }): string | undefined {
  const words = text
    .split(/\s+/)
    .slice(1)
    .filter((word) => word !== 'VALUE…');
  let command: Command = program;
  while (words[0] !== undefined) {
    const next = command.commands.find((each) => each.name() === words[0]);
    if (next === undefined) break;
    command = next;
    words.shift();
  }
  // The owner of advisory locks, and what stands for any command.
  if (text === 'reckoner lease' || /COMMAND|^reckoner VALUE --help$/.test(text)) return undefined;
  if (command === program && !(words[0] ?? '').startsWith('-')) return 'no such command';
  const options = [...program.options, ...command.options];
  const given: string[] = [];
  const values: string[] = [];
  while (words.length > 0) {
    const word = words.shift() as string;
    if (!/^--?[a-z]/.test(word)) {
      values.push(word);
      continue;
    }
    const option = options.find((each) => each.long === word || each.short === word);
    if (option === undefined) return word === '--help' ? undefined : `no option ${word}`;
    given.push(word);
    if (option.required && words.shift() === undefined) return `${word} needs a value`;
  }
  if (!complete || text.endsWith(' --help')) return undefined;
  if (command.commands.length > 0) return 'it is a group of commands';
  const needed = command.registeredArguments.filter((each) => each.required).length;
  if (values.length < needed) return `it needs ${needed} arguments`;
  const missing = command.options.find((each) => each.mandatory && !given.includes(each.long ?? ''));
  return missing && `it needs ${missing.long}`;
}

const problemsOf = (printed: readonly Printed[], how: { complete: boolean }): string[] =>
  printed.flatMap(({ file, text }) => {
    const problem = problemOf(text, how);
    return problem === undefined ? [] : [`${file}: ${text}: ${problem}`];
  });

test('every command of a remedy can be copied: it exists, and has its arguments and required options', () => {
  const { actions, commands } = remediesInSource();
  const printed = [
    ...actions.map(({ file, action, fields }) => {
      const known = Object.fromEntries(fields.map((name) => [name, 'VALUE']));
      return { file, text: commandText(ACTIONS.get(action) as NonNullable<ReturnType<typeof ACTIONS.get>>, known) };
    }),
    ...commands.map(({ file, command }) => ({ file, text: `reckoner ${command}` })),
  ];
  expect(printed.length).toBeGreaterThan(90);
  expect(problemsOf(printed, { complete: true })).toEqual([]);
});

test('every command in a message can be copied: it exists, and has its arguments and required options', () => {
  const files = [
    ...filesIn('src', /\.ts$/),
    ...filesIn('templates', /\.(hbs|json)$/),
    ...filesIn('migrations', /^\d+_.*\.sql$/),
  ];
  const printed = printedIn(files, "'");
  expect(printed.length).toBeGreaterThan(20);
  expect(problemsOf(printed, { complete: true })).toEqual([]);
});

test('every command in the documentation exists with its options', () => {
  const printed = printedIn(['README.md', ...filesIn('docs', /\.md$/)], '`');
  expect(printed.length).toBeGreaterThan(20);
  expect(problemsOf(printed, { complete: false })).toEqual([]);
});
