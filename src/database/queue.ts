/** The setup of the queue (graphile-worker): its migrations and its logging. */
import { Logger, runMigrations } from 'graphile-worker';

/** Logs only failures of the queue itself. The worker pool reports failed deliveries. */
export const quietQueueLogger = new Logger(() => (level, message) => {
  if (level === 'error' && !message.startsWith('Failed task')) process.stderr.write(`queue: ${message}\n`);
});

export const migrateQueue = runMigrations;

/**
 * Silences the console, where the queue prints some errors with their stacks; those that matter are thrown, too. Returns
 * a function that restores the console.
 */
export function quietConsole(): () => void {
  const { trace, error } = console;
  Object.assign(console, { trace() {}, error() {} });
  return () => void Object.assign(console, { trace, error });
}
