/** The queue (graphile-worker), which only this file imports: its setup, its migrations and its logging. */
import './no-queue-config.ts';
import { Logger, type RunnerOptions, run, runMigrations, runOnce } from 'graphile-worker';
import type pg from 'pg';
import type { Logger as Log } from 'pino';
import { openLog } from '../log.ts';

export type { RunnerOptions, WorkerEvents } from 'graphile-worker';
export { run, runOnce };

/** Nothing is taken from the environment or from files of the current directory, whatever the queue's defaults are. */
export const QUEUE_OPTIONS = {
  schema: 'graphile_worker',
  parsedCronItems: [],
  noHandleSignals: true,
} as const satisfies RunnerOptions;

/** Logs only failures of the queue itself. The worker pool reports failed deliveries. */
export const queueLoggerTo = (log: () => Log): Logger =>
  new Logger(() => (level, message) => {
    if (level === 'error' && !message.startsWith('Failed task')) log().error({ code: 'queue' }, message);
  });

export const quietQueueLogger = queueLoggerTo(() => openLog({ part: 'queue' }));

export const migrateQueue = (pgPool: pg.Pool): Promise<void> =>
  runMigrations({ ...QUEUE_OPTIONS, pgPool, logger: quietQueueLogger });

/**
 * Silences the console, where the queue prints some errors with their stacks; those that matter are thrown, too. Returns
 * a function that restores the console.
 */
export function quietConsole(): () => void {
  const { trace, error } = console;
  Object.assign(console, { trace() {}, error() {} });
  return () => void Object.assign(console, { trace, error });
}
