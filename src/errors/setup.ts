/** Refusals about the environment, the settings, and the PostgreSQL server. */
import { bullets, EXIT, entry, type FieldProblem } from './definition.ts';

export const SETUP = {
  environment_invalid: entry<{ variable: string; reason: string }>(
    EXIT.badInput,
    (f) => `${f.variable} ${f.reason}. Correct the environment variable and run the command again.`,
  ),
  settings_missing: entry<{ file: string }>(
    EXIT.badInput,
    (f) => `There are no settings at ${f.file}. Run 'reckoner init' first, or point RECKONER_HOME at an existing home.`,
  ),
  settings_invalid: entry<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) => `The settings in ${f.file} cannot be used:\n${bullets(f.problems)}\nCorrect the file and run again.`,
  ),
  settings_incomplete: entry<{ file: string; missing: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `Production issues no documents yet: in ${f.file} real values are missing for ${f.missing.join(', ')}. ` +
      `Complete the settings; 'reckoner init --check' lists everything that is missing.`,
  ),
  database_unreachable: entry<{ database: string; reason: string }>(
    EXIT.failed,
    (f) => `The database ${f.database} cannot be reached: ${f.reason}. Check that it runs, then repeat the command.`,
  ),
  replica_unusable: entry<{ database: string; reason: string; remedy: string }>(
    EXIT.failed,
    (f) =>
      `The database ${f.database} cannot stand in for the primary: it ${f.reason}. ${f.remedy} Without ` +
      'DATABASE_URL_READ, everything is read from DATABASE_URL.',
  ),
  database_too_old: entry<{ version: string }>(
    EXIT.failed,
    (f) => `PostgreSQL ${f.version} is too old: version 16 or later is needed. Point DATABASE_URL at a newer server.`,
  ),
  database_not_migrated: entry<{ pending: readonly string[] }>(
    EXIT.refused,
    (f) => `The database lacks ${f.pending.length} migration(s): ${f.pending.join(', ')}. Run 'reckoner migrate'.`,
  ),
  database_newer: entry<{ unknown: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `The database has migrations that this program does not know (${f.unknown.join(', ')}). ` +
      'Use the newer program that made them.',
  ),
  database_environment: entry<{ database: string; program: string }>(
    EXIT.refused,
    (f) =>
      `This database belongs to ${f.database} for good, but RECKONER_ENVIRONMENT is ${f.program}. ` +
      'Use the database of that environment, or correct the variable.',
  ),
  database_failed: entry<{ reason: string; remedy: string }>(
    EXIT.failed,
    (f) => `PostgreSQL gave up: ${f.reason}. What was committed stays, the rest was undone. ${f.remedy}`,
  ),
  embedded_server: entry<{ reason: string; remedy: string }>(
    EXIT.failed,
    (f) => `The embedded PostgreSQL server cannot run: ${f.reason}. ${f.remedy}`,
  ),
  listen_failed: entry<{ address: string; reason: string }>(
    EXIT.failed,
    (f) => `Cannot listen at ${f.address}: ${f.reason}. Stop what listens there, or choose another --host or --port.`,
  ),
} as const;
