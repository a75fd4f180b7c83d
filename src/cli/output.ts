/** What commands print: JSON for programs, tables for people; errors to stderr, and with --json on stdout as well. */
import { writeFileSync } from 'node:fs';
import { SingleBar } from 'cli-progress';
import { databaseFailure } from '../database/transaction.ts';
import { EXIT, Refusal, reasonOf, refuse } from '../errors/refusals.ts';

export { printable, short, table, wrapped } from '../text-table.ts';

export interface Output {
  readonly json: boolean;
  /** Who asks, as `--by` claims. */
  readonly by: string | null;
  /** The one JSON document of --json, or whatever people read instead. */
  readonly print: (value: unknown, people: () => string) => void;
  /** A remark for people on stderr; never on stdout. */
  readonly note: (text: string) => void;
  /** A bar on stderr where that is a terminal and people are reading. */
  readonly progress: (label: string, total: number, unit?: string) => Progress;
}

export interface Progress {
  readonly advance: (by?: number) => void;
  readonly done: () => void;
}

const SILENT: Progress = { advance: () => {}, done: () => {} };

export function openOutput(json: boolean, by: string | null): Output {
  return {
    json,
    by,
    print: (value, people) => {
      process.stdout.write(json ? `${JSON.stringify(value, null, 2)}\n` : ended(people()));
    },
    note: (text) => {
      if (!json) process.stderr.write(ended(text));
    },
    progress: (label, total, unit = '') => {
      if (json || !process.stderr.isTTY || total === 0) return SILENT;
      const bar = new SingleBar({
        stream: process.stderr,
        format: `${label} {bar} {percentage}% of {total}${unit}`,
        barsize: 30,
        hideCursor: true,
        clearOnComplete: true,
      });
      bar.start(total, 0);
      return { advance: (by = 1) => bar.increment(by), done: () => bar.stop() };
    },
  };
}

/** Writes a file that was asked for. `wx` refuses one that is there. Refusal: file_unwritable. */
export function writeFileAsked(file: string, content: Buffer | string, flag: 'w' | 'wx' = 'w'): void {
  try {
    writeFileSync(file, content, { flag });
  } catch (error) {
    throw refuse('file_unwritable', { file, reason: reasonOf(error) }, error);
  }
}

const ended = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

/** Reports an error and says with which status to exit. Only a bug shows where it happened. */
export function reportError(thrown: unknown, json: boolean): number {
  const error = databaseFailure(thrown) ?? thrown;
  if (error instanceof Refusal) {
    if (json) {
      const { facts, code, message } = error;
      process.stdout.write(`${JSON.stringify({ error: { code, message, ...facts } }, null, 2)}\n`);
    }
    process.stderr.write(`${error.message}\n`);
    return error.exit;
  }
  const message = reasonOf(error);
  if (json) process.stdout.write(`${JSON.stringify({ error: { code: 'internal', message } }, null, 2)}\n`);
  process.stderr.write(
    `Reckoner failed: ${message}\nWhat was committed stays; the rest was undone. Run the command again.\n`,
  );
  if (process.env['RECKONER_DEBUG'] && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  return EXIT.failed;
}
