/**
 * Reads the text of a settlement file. A large one that a call sends is read in a thread of its own: 10,000 lines take a
 * quarter of a second, in which no other call would be answered. The lines are given as the JSON that the database takes.
 */
import { parse } from 'csv-parse/sync';
import { reasonOf } from '../errors/refusals.ts';
import { CAN_START_THREADS, inThread } from '../thread.ts';
import { readSettlement, type SettlementProblem } from './settlement.ts';

export interface SettlementTask {
  readonly text: string;
  /** The partner's, for lines that name none. */
  readonly currency: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** A file with more lines after its header is not read. */
  readonly mostLines?: number;
}

export interface SettlementReading {
  readonly currency: string;
  readonly lines: number;
  /** The lines as a JSON array. */
  readonly json: string;
  /** The first of them. */
  readonly problems: readonly SettlementProblem[];
  readonly problemCount: number;
}

/** The most problems that a refusal lists. */
export const PROBLEMS_TOLD = 20;

/** This is read in 10 ms; a thread takes a tenth of a second to start. */
const LARGE_CHARACTERS = 16 * 1024;
const MOST_MEBIBYTES = 128;

export function readSettlementText(task: SettlementTask): SettlementReading {
  const { text, currency, now } = task;
  const refused = (problems: readonly SettlementProblem[]) => ({
    ...{ currency, lines: 0, json: '[]', problems: problems.slice(0, PROBLEMS_TOLD), problemCount: problems.length },
  });
  const tooLong = lengthProblem(task);
  if (tooLong !== undefined) return refused([tooLong]);
  const records = recordsOf(text);
  if ('problem' in records) return refused([records.problem]);
  const { lines, problems } = readSettlement(records.records, { partnerCurrency: currency, now });
  if (problems.length > 0) return refused(problems);
  return { currency, lines: lines.length, json: JSON.stringify(lines), problems: [], problemCount: 0 };
}

/** The same without holding up other calls. */
export function readSettlementAside(task: SettlementTask): Promise<SettlementReading> {
  if (!CAN_START_THREADS || task.text.length < LARGE_CHARACTERS) return Promise.resolve(readSettlementText(task));
  return inThread(new URL('./read-settlement-thread.js', import.meta.url), task, MOST_MEBIBYTES);
}

function lengthProblem({ text, mostLines = Number.POSITIVE_INFINITY }: SettlementTask): SettlementProblem | undefined {
  const lines = text.trimEnd().split(/\r\n?|\n/).length - 1;
  if (lines <= mostLines) return undefined;
  const reason = `has ${lines} lines after its header, and at most ${mostLines} are taken: send them in several files`;
  return { path: '', line: null, code: 'lines_too_many', reason };
}

function recordsOf(text: string): { records: Parameters<typeof readSettlement>[0] } | { problem: SettlementProblem } {
  try {
    const parsed = parse(text, {
      bom: true,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
    }) as unknown as { record: string[]; info: { lines: number } }[];
    return { records: parsed.map(({ record, info }) => ({ line: info.lines, cells: record })) };
  } catch (error) {
    return { problem: { path: '', line: null, code: 'csv_malformed', reason: `is no CSV: ${reasonOf(error)}` } };
  }
}
