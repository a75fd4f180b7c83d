/** Opens the context of a command (environment, settings, database) and closes it afterward. */

import { readCheckedSettings } from '#actions/rules';
import { Environment, readEnvironment } from '#config/environment';
import { todayOf } from '#config/today';
import { Database, DatabaseOptions, openDatabase } from '#database/database';
import { lookingFrom } from '#documents/last-seen';
import { ActorContext, thisProcess } from '#people/audit-events';
import { Role, refuseEnded, requireRole } from '#people/roles';
import { recordSettingsChanges } from '#people/settings-changes';
import { settingsInForce } from '#people/settings-in-force';
import { identify } from '#people/users';
import { Output } from './output.ts';

export type Context = ActorContext &
  Readonly<{
    database: Database;
  }>;

type ContextOptions = DatabaseOptions &
  Readonly<{
    onStop?: () => void;
    by?: string | null;
    job?: boolean;
    /** Runs as `cron` unless `--by` or RECKONER_USER names a user. */
    unattended?: boolean;
    /** Reads from the primary and writes nothing, not even changed settings, so no user is needed. */
    writesNothing?: boolean;
  }>;

const LOOK_MILLISECONDS = 1000;

/** Runs `work` with an open context. Unless the command only reads, changed settings are recorded first. */
export async function withContext<Result>(work: (context: Context) => Promise<Result>, options: ContextOptions = {}) {
  const environment = readEnvironment();
  const settings = readCheckedSettings(environment);
  const actor = thisProcess(options.job ? 'job' : 'command', options.by);
  const opened = options.readOnly ? options : { ...options, look: lookingFrom({ environment, settings }) };
  return withDatabase(environment, opened, async (database) => {
    const inForce = await settingsInForce(database, settings);
    if (options.readOnly || options.writesNothing) return work({ environment, settings: inForce, database, actor });
    // The name of a job is not a login.
    const login = (options.job ? undefined : options.by) ?? environment.user;
    const unattended = options.job === true || options.unattended === true;
    const identified = await database.reading((tx) => identify(tx, actor, { login, unattended }));
    const context = { environment, settings: inForce, database, actor: identified };
    if (identified.user !== undefined) refuseEnded(identified.user, todayOf(context));
    await recordSettingsChanges(database, context);
    // A process that stays open has seen what it recorded a second ago, and a command what it recorded at all.
    const looking = setInterval(() => void database.look().catch(() => {}), LOOK_MILLISECONDS).unref();
    try {
      return await work(context);
    } finally {
      clearInterval(looking);
      await database.look().catch(() => {});
    }
  });
}

export type CommandContext = Context &
  Readonly<{
    output: Output;
  }>;

/** The exit status; undefined stands for 0. */
export type ExitStatus = Promise<number> | Promise<void>;

/** A command that only reads, from the replica if there is one. */
export const reading =
  <Given extends unknown[]>(work: (context: CommandContext, ...given: Given) => ExitStatus) =>
  (output: Output, ...given: Given): ExitStatus =>
    withContext((context) => work({ ...context, output }, ...given) as Promise<void>, { readOnly: true });

/** Like `reading`, but from the primary, because the result must be current. */
export const readingNow =
  <Given extends unknown[]>(work: (context: CommandContext, ...given: Given) => ExitStatus) =>
  (output: Output, ...given: Given): ExitStatus =>
    withContext((context) => work({ ...context, output }, ...given) as Promise<void>, { writesNothing: true });

/**
 * A command that changes something. The events of the command contain the value of `--by`. If `role` is given, a person
 * must have that role. A dry run writes nothing.
 */
export const acting =
  <Given extends unknown[]>(work: (context: CommandContext, ...given: Given) => ExitStatus, role?: Role) =>
  (output: Output, ...given: Given): ExitStatus =>
    withContext(
      (context) => {
        const { user } = context.actor;
        if (role !== undefined && user?.kind === 'person') requireRole(user, role);
        return work({ ...context, output }, ...given) as Promise<void>;
      },
      { by: output.by, writesNothing: isDryRun(given) },
    );

const isDryRun = (given: readonly unknown[]) =>
  given.some((each) => (each as Record<string, unknown> | null | undefined)?.['dryRun'] === true);

/** Supervisors kill a process after 30 seconds. */
const STOP_MILLISECONDS = 25_000;

/**
 * Runs `work` with an open database, for commands that need no settings. On SIGINT or SIGTERM the command ends at once
 * and uncommitted changes are rolled back, unless the command passes `onStop` to stop by itself.
 *
 * Node calls a signal handler only between two tasks, never during a long task such as reading a large file. If nothing
 * needs to be released, SIGTERM therefore has no handler: the operating system ends the process at once, and the
 * database server rolls back.
 */
export async function withDatabase<Result>(
  environment: Environment,
  options: DatabaseOptions & { onStop?: () => void },
  work: (database: Database) => Promise<Result>,
) {
  const database = await openDatabase(environment, options);
  let asked = false;
  const stop = (signal: NodeJS.Signals) => {
    const exit = () => process.exit(signal === 'SIGINT' ? 130 : 143);
    if (asked) exit();
    asked = true;
    setTimeout(exit, STOP_MILLISECONDS).unref();
    if (options.onStop) options.onStop();
    else {
      process.stderr.write('Stopped. Uncommitted changes were rolled back.\n');
      void database.abandon().finally(exit);
    }
  };
  process.on('SIGINT', stop);
  const isEmbedded = environment.databaseUrl === undefined;
  if (options.onStop || isEmbedded) process.on('SIGTERM', stop);
  try {
    return await work(database);
  } finally {
    await database.close();
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}
