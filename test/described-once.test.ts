/**
 * What the faces share is described once: a list in a file of src/lists, an action in a file of src/actions, a finding in a file
 * of src/findings. A new column, filter, option, action or finding then touches three files of src at most: its description, the
 * table that names it, and the function that does or reads it. Files that describe one by hand are listed with the reason; a
 * reason that is no longer needed fails.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '..', 'src');
const FILES = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => /\.tsx?$/.test(path))
  .sort();
const textOf = (path: string): string => readFileSync(join(SRC, path), 'utf8');
const those = (folder: RegExp, text: RegExp): string[] =>
  FILES.filter((path) => folder.test(path) && text.test(textOf(path)));

type Exceptions = Readonly<Record<string, string>>;

/** Commands that do one of two actions, or an action and more. */
const COMMANDS_BY_HAND: Exceptions = {
  'cli/commands/close.ts': '--compare shows a close beside the month before, and its preview has a sheet',
  'cli/commands/credit.ts': 'refund --returned is another action than refund',
  'cli/commands/deliver.ts': 'a retry comes before the delivery',
  'cli/commands/export-gl.ts': 'the files of an export are written here, also those of an earlier part',
  'cli/commands/invoice/link.ts': '--rotate and --revoke are two actions',
  'cli/commands/invoice/write-off.ts': '--undo is another action than a write-off',
  'cli/commands/ledger.ts': 'files of any size are read while their rows are staged',
  'cli/commands/reconcile.ts': 'it reports, reverses and bills',
  'cli/commands/remind.ts': 'what is due is also a sheet',
};

/** Commands with a sheet that is no list. */
const SHEETS_BY_HAND: Exceptions = {
  'cli/commands/close.ts': 'a comparison of two months',
  'cli/commands/opening.ts': 'an opening is shown with its items',
  'cli/commands/payment/exceptions.ts': 'its table for people is a paragraph for each exception',
  'cli/commands/reconcile.ts': 'a report of a month',
  'cli/commands/remind.ts': 'what an action would do',
};

/** Pages that do an action without its form. */
const ACTIONS_BY_HAND: Exceptions = {
  'console/actions.ts': 'where a close and an export lead to',
  'console/queue.ts': 'the work queue, whose items are assigned',
  'console/screens/queue.tsx': 'and its page',
  'console/screens/today.tsx': 'its first items',
  'portal/dispute.tsx': "a partner's own contact disputes, without the role of finance",
};

/** Texts with a command in them. */
const COMMANDS_IN_TEXT: Exceptions = {
  'actions/ledger.ts': 'the help of the command pause',
  'actions/payment/import.ts': 'the help of the command payment import',
  'actions/remedies.ts': 'how a remedy is written as a command',
};

test('a command that does an action is made of its description', () => {
  expect(those(/^cli\/commands\//, /\b(doing|runAction|reported)\(/)).toEqual(Object.keys(COMMANDS_BY_HAND));
});

test('a command with a sheet is made of a list, but for reports', () => {
  const found = those(/^cli\/commands\/(?!report\/)/, /\.option\(\.\.\.FORMAT\)|\bshowing\(/);
  expect(found).toEqual(Object.keys(SHEETS_BY_HAND));
});

test('the console and the server name no action: forms and previews are made of its description', () => {
  const named =
    /from '(#|(\.\.\/)+)actions\/(?!(registry|loaded|action|approve|blocks|fields|run|rules|consequence|command|partner-names)(\.ts)?')/;
  expect(those(/^(console|http|portal)\//, named)).toEqual(Object.keys(ACTIONS_BY_HAND));
});

test('no sentence holds a command: what to do about something is data', () => {
  const found = those(
    /^(?!cli\/|demo\/)/,
    /^(?!\s*(\/\/|\/?\*)).*('reckoner (?!lease)|`reckoner (?!\w+ \$\{\w*FORM))/m,
  );
  expect(found).toEqual(Object.keys(COMMANDS_IN_TEXT));
});
