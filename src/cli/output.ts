/**
 * The output of commands: JSON for programs, tables for people. Errors go to stderr, and with --json also to stdout.
 */
import { writeFileSync } from 'node:fs';
import { SingleBar } from 'cli-progress';
import { remediesJson } from '#actions/remedies';
import { databaseFailure } from '#database/transaction';
import { EXIT, Refusal, reasonOf, refuse } from '#errors/refusals';
import { Amount, groupThousands } from '#money';
import { counted } from '#text';
import { fitLines, printableLines, table as textTable } from '#text-table';
import { withCommands } from './remedies.ts';

export { moneyText as money } from '#money';
export { printable, wrapped } from '#text-table';

/** On a terminal, cells are shortened to fit. */
export const table: typeof textTable = (headings, rows) => textTable(headings, rows, outputWidth());

export const fitted = (text: string) => fitLines(text, outputWidth());

/** The terminal's width in columns; undefined if the output goes to a pipe or a file. */
export const outputWidth = () => (process.stdout.isTTY ? process.stdout.columns : undefined);

export type Output = Readonly<{
  json: boolean;
  /** The value of `--by`. */
  by: string | null;
  /** Prints `value` with --json, otherwise the text for people. */
  print: (value: unknown, people: () => string) => void;
  /** Prints a note for people to stderr. */
  note: (text: string) => void;
  /** Shows a progress bar if stderr is a terminal and --json is not set. */
  progress: (label: string, total: number, unit?: string) => Progress;
}>;

export type Progress = Readonly<{
  advance: (by?: number) => void;
  done: () => void;
}>;

const SILENT: Progress = { advance: () => {}, done: () => {} };

export function openOutput(json: boolean, by: string | null): Output {
  return {
    json,
    by,
    print: (value, people) => {
      process.stdout.write(json ? jsonText(value) : ended(printableLines(people())));
    },
    note: (text) => {
      if (!json) process.stderr.write(ended(printableLines(text)));
    },
    progress: (label, total, unit = '') => {
      if (json || !process.stderr.isTTY || total === 0) return SILENT;
      const bar = new SingleBar({
        stream: process.stderr,
        format: `${barLabel(label)} {bar} {percentage}% of {total}${unit}`,
        formatValue: counted,
        barsize: BAR_COLUMNS,
        hideCursor: true,
        clearOnComplete: true,
      });
      bar.start(total, 0);
      return { advance: (by = 1) => bar.increment(by), done: () => bar.stop() };
    },
  };
}

const BAR_COLUMNS = 30;
/** What a bar says after its label: ` ==== 100% of 1,000,000,000 bytes`. */
const REST_COLUMNS = BAR_COLUMNS + 30;

/** A terminal does not wrap a bar, so a long label would hide how far the work is. Its end is the name of a file. */
function barLabel(label: string) {
  const room = Math.max((process.stderr.columns || 80) - REST_COLUMNS, 10);
  return label.length > room ? `…${label.slice(1 - room)}` : label;
}

/** Writes an output file. With `wx`, an existing file is not replaced. */
export function writeFileAsked(file: string, content: Buffer | string, flag: 'w' | 'wx' = 'w') {
  try {
    writeFileSync(file, content, { flag });
  } catch (error) {
    throw refuse('file_unwritable', { file, reason: reasonOf(error) }, error);
  }
}

/** Formats an amount, such as `1,234.50`. */
export const amount = (text: string, currency: string) => groupThousands(Amount.of(text, currency).toString());

/** JSON.stringify escapes only control characters below U+0020; terminals obey others. */
const jsonText = (value: unknown) =>
  `${JSON.stringify(value, null, 2).replace(
    /[\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )}\n`;

const ended = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

/** Prints an error and returns the exit status. With RECKONER_DEBUG, an unexpected error has its stack trace. */
export async function reportError(thrown: unknown, json: boolean): Promise<number> {
  const error = databaseFailure(thrown) ?? thrown;
  if (error instanceof Refusal) {
    const { facts, code, remedies } = error;
    const message = remedies.length === 0 ? error.message : await withCommands(error.message, remedies);
    if (json) {
      const said = remedies.length > 0 && { remedies: await remediesJson(remedies) };
      process.stdout.write(jsonText({ error: { code, message, ...facts, ...said } }));
    }
    process.stderr.write(`${printableLines(message)}\n`);
    return error.exit;
  }
  const message = reasonOf(error);
  if (json) process.stdout.write(jsonText({ error: { code: 'internal', message } }));
  process.stderr.write(
    `Reckoner failed: ${printableLines(message)}\nCommitted changes are kept, and uncommitted changes were rolled back. Run the command again.\n`,
  );
  if (process.env['RECKONER_DEBUG'] && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  return EXIT.failed;
}
