/** Refusals about arguments, files, backups and exports. */
import { EXIT, entry } from './definition.ts';

export const FILES = {
  argument_invalid: entry<{ argument: string; value: string; reason: string }>(
    EXIT.badInput,
    (f) => `${f.argument} '${f.value}' ${f.reason}.`,
  ),
  usage: entry<{ reason: string }>(EXIT.badInput, (f) => `${f.reason}. Run 'reckoner --help' for the commands.`),
  file_unreadable: entry<{ file: string; reason: string }>(
    EXIT.badInput,
    (f) => `${f.file} cannot be read: ${f.reason}. Check the path and its permissions.`,
  ),
  file_unwritable: entry<{ file: string; reason: string }>(
    EXIT.failed,
    (f) => `${f.file} cannot be written: ${f.reason}. Check the path, its permissions and the space left.`,
  ),
  file_format_unknown: entry<{ file: string }>(
    EXIT.badInput,
    (f) => `The format of ${f.file} cannot be told from its name. Say --format csv or --format ndjson.`,
  ),
  database_not_empty: entry<{ tables: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `Nothing was restored: this database is not empty, there are rows in ${f.tables.join(', ')}. ` +
      'Restore into an empty database (another DATABASE_URL or RECKONER_HOME).',
  ),
  backup_exists: entry<{ file: string }>(
    EXIT.refused,
    (f) => `${f.file} is there already, and a backup replaces no file. Name another one, or move this one away.`,
  ),
  backup_invalid: entry<{ file: string; reason: string }>(
    EXIT.badInput,
    (f) => `Nothing was restored from ${f.file}: ${f.reason}. Use another copy or an earlier backup.`,
  ),
  backup_newer: entry<{ file: string; program: string; unknown: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `${f.file} was made by a newer program (${f.program}), which has ${f.unknown.join(', ')}. ` +
      'Restore it with that program or a later one.',
  ),
  backup_environment: entry<{ file: string; backup: string; program: string }>(
    EXIT.refused,
    (f) =>
      `${f.file} is a backup of ${f.backup}, but RECKONER_ENVIRONMENT is ${f.program}. ` +
      'Use a backup of that environment, or correct the variable.',
  ),
  export_exists: entry<{ out: string }>(
    EXIT.refused,
    (f) => `${f.out} is there already, and an export replaces nothing. Name another place, or an empty folder.`,
  ),
} as const;
