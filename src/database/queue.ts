/** The setup of the queue (graphile-worker): connections as the owner, and logging. */
import { Logger, runMigrations } from 'graphile-worker';
import pg from 'pg';

/** Logs only failures of the queue itself. The worker pool reports failed deliveries. */
export const quietQueueLogger = new Logger(() => (level, message) => {
  if (level === 'error' && !message.startsWith('Failed task')) process.stderr.write(`queue: ${message}\n`);
});

export const migrateQueue = runMigrations;

export function openQueuePool(connection: pg.ClientConfig, max: number): pg.Pool {
  const pool = new pg.Pool({ ...connection, max });
  // The query that needs a lost connection reports it. An unhandled 'error' event would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/**
 * Silences the console, where the queue prints some errors with their stacks; those that matter are thrown, too. Returns
 * a function that restores the console.
 */
export function quietConsole(): () => void {
  const { trace, error } = console;
  Object.assign(console, { trace() {}, error() {} });
  return () => void Object.assign(console, { trace, error });
}
