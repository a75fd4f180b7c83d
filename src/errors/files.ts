/** Refusals about arguments, files, backups and exports. */
import type { AmountProblem } from '../money.ts';
import { define, EXIT } from './definition.ts';

export type AmountFault = AmountProblem['code'] | 'amount_not_positive';

export const FILES = {
  argument_invalid: define<{ argument: string; value: string; reason: string }>(
    EXIT.badInput,
    (f) => `${f.argument} '${f.value}' ${f.reason}.`,
  ),
  amount_invalid: define<{ argument: string; value: string; currency: string; problem: AmountFault; reason: string }>(
    EXIT.badInput,
    (f) => `${f.argument} '${f.value}' ${f.reason}.`,
  ),
  currency_unknown: define<{ argument: string; value: string }>(
    EXIT.badInput,
    (f) => `${f.argument} '${f.value}' is not an ISO 4217 currency such as USD.`,
  ),
  date_in_future: define<{ argument: string; value: string; today: string }>(
    EXIT.badInput,
    (f) => `${f.argument} ${f.value} is in the future: today is ${f.today}.`,
  ),
  usage: define<{ reason: string }>(EXIT.badInput, (f) => `${f.reason}. Run 'reckoner --help' for the commands.`),
  file_unreadable: define<{ file: string; reason: string }>(
    EXIT.badInput,
    (f) => `Cannot read ${f.file}: ${f.reason}. Check the path and its permissions.`,
  ),
  file_unwritable: define<{ file: string; reason: string }>(
    EXIT.failed,
    (f) => `Cannot write ${f.file}: ${f.reason}. Check the path, its permissions and the free space.`,
  ),
  file_format_unknown: define<{ file: string }>(
    EXIT.badInput,
    (f) => `Cannot tell the format of ${f.file} from its name. Add --format csv or --format ndjson.`,
  ),
  database_not_empty: define<{ tables: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `Nothing was restored: the database is not empty. It has rows in ${f.tables.join(', ')}. ` +
      'Restore into an empty database (another DATABASE_URL or RECKONER_HOME).',
  ),
  backup_exists: define<{ file: string }>(
    EXIT.refused,
    (f) => `${f.file} already exists, and a backup never replaces a file. Choose another name, or move the file away.`,
  ),
  backup_invalid: define<{ file: string; reason: string }>(
    EXIT.badInput,
    (f) => `Nothing was restored from ${f.file}: ${f.reason}. Use another copy or an earlier backup.`,
  ),
  backup_newer: define<{ file: string; program: string; unknown: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `${f.file} was made by a newer version (${f.program}): this version does not know ${f.unknown.join(', ')}. ` +
      'Restore it with that version or a later one.',
  ),
  backup_environment: define<{ file: string; backup: string; program: string }>(
    EXIT.refused,
    (f) =>
      `${f.file} is a backup of ${f.backup}, but RECKONER_ENVIRONMENT is ${f.program}. ` +
      'Use a backup of that environment, or correct the variable.',
  ),
  export_exists: define<{ out: string }>(
    EXIT.refused,
    (f) => `${f.out} already exists, and an export never replaces anything. Choose another place, or an empty folder.`,
  ),
} as const;
