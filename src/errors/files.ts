import { fieldName } from '#field-names';
import { AmountProblem } from '#money';
import { Remedy, toRun } from '#remedy';
import { badInput, COMMAND_SECONDS, failed, refused, says, someOf } from './definition.ts';

type AmountFault = AmountProblem['code'] | 'amount_not_positive' | 'amount_sign';

export const FILES = {
  argument_invalid: badInput<{ argument: string; value: string; reason: string; remedies?: readonly Remedy[] }>((f) =>
    says(`${f.argument} '${f.value}' ${f.reason}.`, ...(f.remedies ?? [])),
  ),
  amount_invalid: badInput<{ argument: string; value: string; currency: string; problem: AmountFault; reason: string }>(
    (f) => `${f.argument} '${f.value}' ${f.reason}.`,
  ),
  currency_unknown: badInput("{argument} '{value}' is not an ISO 4217 currency such as USD."),
  date_in_future: badInput('{argument} {value} is in the future: today is {today}.'),
  date_too_early: refused('{argument} {value} is too early: {what} on {earliest}. Give that day or a later one.'),
  usage: badInput<{
    reason: string;
    /** The command that was called, such as `invoice void`, if it is known. */
    command?: string | undefined;
  }>((f) =>
    says(
      `${f.reason}.`,
      f.command === undefined ? toRun('See the commands', '--help') : toRun('See its options', `${f.command} --help`),
    ),
  ),
  file_unreadable: badInput('Cannot read {file}: {reason}. Check the path and its permissions.'),
  file_items_too_many: badInput(
    'Nothing was recorded: {file} has more than {most} items, the limit for one file. Split it.',
  ),
  file_memory: badInput([
    'Nothing was recorded: reading {file} needs more than the {mebibytes} MiB of memory that a file of its size ',
    'may take. Check that it is the right file, or split it.',
  ]),
  file_takes_too_long: badInput<{ file: string; seconds: number }>(
    (f) =>
      `Nothing was recorded: reading ${f.file} was stopped after ${f.seconds} s. Check that it is the right file. ` +
      'Split ' +
      `it${f.seconds < COMMAND_SECONDS ? `, or run the command in a shell, where reading may take ${COMMAND_SECONDS / 60} minutes` : ''}.`,
    422,
  ),
  file_unwritable: failed('Cannot write {file}: {reason}. Check the path, its permissions and the free space.'),
  totals_invalid: badInput<{ file: string; reason: string }>(
    (f) =>
      `Nothing was recorded: ${f.file} does not state totals such as {"count": 412, "totals": {"USD": "8311.20"}}: ` +
      `${f.reason}. Correct it, or remove it to import without totals.`,
  ),
  file_format_unknown: badInput<{ file: string }>(
    (f) =>
      `Cannot tell the format of ${f.file} from its name. Add ${fieldName('format', 'csv')} or ${fieldName('format', 'ndjson')}.`,
  ),
  database_not_empty: refused<{ tables: readonly string[] }>(
    (f) =>
      `Nothing was restored: the database is not empty. It has rows in ${f.tables.join(', ')}. ` +
      'Restore into an empty database (another DATABASE_URL or RECKONER_HOME).',
  ),
  backup_exists: refused(
    '{file} already exists, and a backup never replaces a file. Choose another name, or move the file away.',
  ),
  backup_invalid: badInput('Nothing was restored from {file}: {reason}. Use another copy or an earlier backup.'),
  backup_encrypted: badInput('Nothing was restored from {file}: it is encrypted, and {reason}.'),
  backup_newer: refused<{ file: string; program: string; unknown: readonly string[] }>(
    (f) =>
      `${f.file} was made by a newer version (${f.program}): this version does not know ${f.unknown.join(', ')}. ` +
      'Restore it with that version or a later one.',
  ),
  backup_unreleased: refused<{ file: string; program: string; changed: readonly string[] }>(
    (f) =>
      `A build from before the first release (${f.program}) made ${f.file}: its migrations ${someOf(f.changed)} ` +
      "differ from this version's. Restore it with that build.",
  ),
  backup_environment: refused([
    '{file} is a backup of {backup}, but RECKONER_ENVIRONMENT is {program}. ',
    'Use a backup of that environment, or correct the variable.',
  ]),
  export_exists: refused(
    '{out} already exists, and an export never replaces anything. Choose another path, or an empty folder.',
  ),
} as const;
