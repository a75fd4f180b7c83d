/** Shows, beside a test that fails, what the programs that it ran last wrote to stderr and with which status they ended. */
import { afterEach } from 'vitest';
import type { Ran } from './program.ts';

const SHOWN = 4;
const runs: { readonly what: string; readonly ran: Ran }[] = [];

export function remember(what: string, ran: Ran): void {
  runs.push({ what, ran });
  if (runs.length > SHOWN) runs.shift();
}

afterEach(({ task }) => {
  const error = task.result?.errors?.[0];
  if (error) {
    const shown = runs.map(({ what, ran }) => `${what} ended with ${ran.signal ?? ran.status}\n${ran.stderr}`);
    error.message = [error.message, ...shown].join('\n\n');
  }
  runs.length = 0;
});
