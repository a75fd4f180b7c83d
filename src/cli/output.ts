/** What commands print: JSON for programs, tables for people; errors to stderr, and with --json on stdout as well. */
import { writeFileSync } from 'node:fs';
import { SingleBar } from 'cli-progress';
import Table from 'cli-table3';
import { databaseFailure } from '../database/transaction.ts';
import { EXIT, Refusal, reasonOf, refuse } from '../errors/refusals.ts';

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

const NO_FRAME = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

/** A plain table; columns whose heading begins with '>' are aligned to the right. */
export function table(headings: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const drawn = new Table({
    head: headings.map((heading) => heading.replace(/^>/, '')),
    colAligns: headings.map((heading) => (heading.startsWith('>') ? 'right' : 'left')),
    chars: NO_FRAME,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  });
  drawn.push(...rows.map((row) => row.map((cell) => printable(String(cell ?? '')))));
  return drawn
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** Text from outside can't move a terminal's cursor or change its colours. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '\uFFFD');
}

/** Cuts a text to a width and shows that it did. */
export function short(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** Breaks a text into lines of at most that many characters, at spaces where it can. */
export function wrapped(text: string, width: number, indent = ''): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
      continue;
    }
    for (let from = 0; from === 0 || from < word.length; ) {
      const begin = lines.length === 0 ? '' : indent;
      const part = word.slice(from, from + width - begin.length);
      lines.push(begin + part);
      from += Math.max(1, part.length);
    }
  }
  return lines;
}
