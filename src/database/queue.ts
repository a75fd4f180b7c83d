/** What the queue (graphile-worker) is given to work with: connections as the owner, and where its own troubles go. */
import { Logger, runMigrations } from 'graphile-worker';
import pg from 'pg';

/** Only what went wrong inside the queue itself. What became of a delivery, delivery says. */
export const quietQueueLogger = new Logger(() => (level, message) => {
  if (level === 'error' && !message.startsWith('Failed task')) process.stderr.write(`queue: ${message}\n`);
});

export const migrateQueue = runMigrations;

export function openQueuePool(connection: pg.ClientConfig, max: number): pg.Pool {
  const pool = new pg.Pool({ ...connection, max });
  // A lost connection is reported by the query that needs it; unheard, the event would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/**
 * Some of its troubles the queue writes to the console by itself, stacks and all; what matters of them reaches us as
 * errors too. Gives back the console.
 */
export function quietConsole(): () => void {
  const { trace, error } = console;
  Object.assign(console, { trace() {}, error() {} });
  return () => void Object.assign(console, { trace, error });
}
