/** What a command works with: environment, settings and database, opened for it and closed after it. */
import { type Environment, readEnvironment } from '../config/environment.ts';
import { readSettings, type Settings } from '../config/settings.ts';
import { type Database, type DatabaseOptions, openDatabase } from '../database/database.ts';
import { type Actor, thisProcess } from '../people/audit-events.ts';
import type { Output } from './output.ts';

export interface Context {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly database: Database;
  /** Who asks: named in the audit events of what is done. */
  readonly actor: Actor;
}

/** Opens, works, closes: also when the work fails or the process is asked to stop. */
export async function withContext<Result>(
  work: (context: Context) => Promise<Result>,
  options: DatabaseOptions & { onStop?: () => void; by?: string | null; job?: boolean } = {},
): Promise<Result> {
  const environment = readEnvironment();
  const settings = readSettings(environment);
  const actor = thisProcess(options.job ? 'job' : 'command', options.by);
  return withDatabase(environment, options, (database) => work({ environment, settings, database, actor }));
}

/** The same for a command that only reads, from the replica where there is one. */
export const reading = <Result>(work: (context: Context) => Promise<Result>): Promise<Result> =>
  withContext(work, { readOnly: true });

/** The same for a command that changes something: its events name whom `--by` claims. */
export const acting = <Result>({ by }: Output, work: (context: Context) => Promise<Result>): Promise<Result> =>
  withContext(work, { by });

/**
 * The same without settings, for the commands that come before them. Asked to stop, a command ends at once and what it
 * had not committed is undone, unless it says by `onStop` that it can come to an end by itself.
 */
export async function withDatabase<Result>(
  environment: Environment,
  options: DatabaseOptions & { onStop?: () => void },
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(environment, options);
  let asked = false;
  const stop = (signal: NodeJS.Signals) => {
    const exit = () => process.exit(signal === 'SIGINT' ? 130 : 143);
    if (asked) exit();
    asked = true;
    if (options.onStop) options.onStop();
    else {
      process.stderr.write('Stopped: what was not committed is undone.\n');
      void database.abandon().finally(exit);
    }
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  try {
    return await work(database);
  } finally {
    await database.close();
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}
