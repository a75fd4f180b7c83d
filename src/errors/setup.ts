import { fieldWords } from '#field-names';
import { toDo, toRun } from '#remedy';
import { duration, plural } from '#text';
import { badInput, bullets, FieldProblem, failed, inFieldWords, refused, says, someOf } from './definition.ts';

export const SETUP = {
  environment_invalid: badInput('{variable} {reason}. Correct the environment variable and run the command again.'),
  settings_missing: badInput(
    'No settings found at {file}. Set RECKONER_HOME to an existing home.',
    toRun('Create a new home', 'init'),
  ),
  settings_invalid: badInput<{ file: string; problems: readonly FieldProblem[] }>(
    (f) =>
      `The settings in ${f.file} are invalid:\n${bullets(f.problems)}\nCorrect the file and run the command again.`,
  ),
  proposal_missing: refused<{ section: string }>((f) =>
    says(
      f.section === 'accounts'
        ? 'There is no accounts.json on the server. Write it, or propose the accounts in the console.'
        : `settings.json does not state "${f.section}". Add it there, or propose it in the console.`,
      toDo('Then adopt it', 'settings.adopt', { section: f.section }),
    ),
  ),
  proposal_invalid: badInput<{ section: string; problems: readonly FieldProblem[] }>(
    (f) =>
      `The proposal for ${fieldWords(f.section).toLowerCase()} is invalid:\n${bullets(f.problems.map(inFieldWords))}\n` +
      'Correct these fields.',
  ),
  settings_unchanged: refused('These settings are already in force: {section}. Change them first.', ({ section }) =>
    toDo('Then adopt them', 'settings.adopt', { section }),
  ),
  settings_incomplete: refused<{ file: string; missing: readonly string[] }>((f) =>
    says(
      `Production cannot issue documents yet: ${f.file} has no real values for ${f.missing.join(', ')}. Complete the settings.`,
      toRun('See everything that is missing', 'init --check'),
    ),
  ),
  database_unreachable: failed(
    'Cannot connect to the database {database}: {reason}. Check that it is running, then run the command again.',
  ),
  replica_unusable: failed([
    'Cannot read from the database {database}: it {reason}. {remedy} ',
    'If DATABASE_URL_READ is not set, all reads use DATABASE_URL.',
  ]),
  database_too_old: failed(
    'PostgreSQL {version} is too old: version 16 or later is required. Point DATABASE_URL at a newer server.',
  ),
  database_not_migrated: refused<{ pending: readonly string[] }>((f) =>
    says(
      `${plural(f.pending.length, 'migration')} must be applied first: ${f.pending.join(', ')}.`,
      toRun('Migrate the database', 'migrate'),
    ),
  ),
  database_newer: refused<{ unknown: readonly string[] }>(
    (f) =>
      `The database was migrated by a newer version: this version does not know ${f.unknown.join(', ')}. ` +
      'Use that version or a later one.',
  ),
  database_unreleased: refused<{ changed: readonly string[] }>(
    (f) =>
      `A build from before the first release made this database: its migrations ${someOf(f.changed)} differ from ` +
      "this version's. It cannot be upgraded: use that build, or an empty database.",
  ),
  database_foreign: refused<{ tables: readonly string[] }>(
    (f) =>
      `The database has tables of another program (${someOf(f.tables)}) and no ledger. ` +
      "Point DATABASE_URL at Reckoner's database, or at an empty one.",
  ),
  database_environment: refused([
    'This is a {database} database, but RECKONER_ENVIRONMENT is {program}. ',
    'A database never changes its environment: use another database, or correct the variable.',
  ]),
  log_host_fixed: refused([
    'The log of this database is named after the host {host}, so it cannot be named after {given}: the name ',
    'of a log never changes. Auditors and witnesses know the log by that name.',
  ]),
  database_read_only: failed([
    'The database {database} accepts no writes: it {reason}. Point DATABASE_URL at the primary server. A ',
    'standby belongs in DATABASE_URL_READ, which serves the commands that only read.',
  ]),
  clock_differs: failed<{ machine: string; database: string; seconds: number; ahead: boolean }>(
    (f) =>
      `This machine's clock says ${f.machine}, and the database's says ${f.database}: this machine is ` +
      `${duration(f.seconds)} ${f.ahead ? 'ahead' : 'behind'}. Nothing was recorded. Correct the clock that is ` +
      'wrong (timedatectl shows whether it is synchronized) and run the command again.',
  ),
  database_not_owner: refused([
    'The login {login} cannot {action}: the tables belong to {owner}. Run this command with the ',
    'DATABASE_URL of {owner}.',
  ]),
  database_busy: failed<{ holders: readonly string[]; seconds: number }>(
    (f) =>
      `Nothing was changed: after ${duration(f.seconds)} the database is still in use by ` +
      `${f.holders.join(', ') || 'a session that has just ended'}. Wait until that ends, or stop it, and run the ` +
      'command again.',
  ),
  database_pooled: failed([
    'The database {database} is behind a connection pooler that gives each transaction a different connection. Roles, ',
    'time limits and locks belong to a connection, so nothing can be recorded safely. Set pool_mode = session for this ',
    'database, or connect to PostgreSQL directly.',
  ]),
  database_pool_small: failed<{ database: string; seconds: number }>(
    (f) =>
      `The connection pooler of the database ${f.database} gave no connection within ${duration(f.seconds)}: it has too few, ` +
      'or all are in use. A command opens 3 to 9 connections, a worker 14, a server up to 33. Raise the limits of the ' +
      'pooler (default_pool_size, max_db_connections), or connect to PostgreSQL directly.',
  ),
  database_privileges: failed(
    "PostgreSQL refused this login: {reason}. docs/operations.md, 'Database roles', lists the roles.",
    {
      ...toRun("Grant the program's privileges again", 'migrate'),
      when: 'as the owner of the tables',
    },
  ),
  database_failed: failed(
    'PostgreSQL failed: {reason}. Committed changes are kept; the rest was rolled back. {remedy}',
  ),
  embedded_server: failed('The embedded PostgreSQL server cannot run: {reason}. {remedy}'),
  listen_failed: failed(
    'Cannot listen on {address}: {reason}. Choose another --host or --port, or stop the other program.',
  ),
} as const;
