/** The queue's own log lines: only what went wrong inside the queue itself. What a delivery did, delivery says. */
import { Logger } from 'graphile-worker';

export const quietQueueLogger = new Logger(() => (level, message) => {
  if (level === 'error' && !message.startsWith('Failed task')) process.stderr.write(`queue: ${message}\n`);
});
