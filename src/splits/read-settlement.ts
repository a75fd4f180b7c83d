/**
 * Reads a settlement file and returns its lines as JSON for the database. A large file is read in a separate process
 * (reading/aside.ts): 10,000 lines take a quarter of a second, during which no other call would be answered.
 */
import { GivenFile, readerOf } from '#reading/aside';
import { csvRecords } from '#reading/csv';
import { MOST_ITEMS, PROBLEMS_TOLD } from '#reading/limits';
import { readSettlement, SettlementProblem } from './settlement.ts';

type SettlementTask = GivenFile &
  Readonly<{
    /** The partner's currency. It applies to lines that name no currency. */
    currency: string;
    /** A time in milliseconds since 1970. */
    now: number;
    /** If a file has more lines than this after its header, it is not read. */
    mostLines?: number;
  }>;

export type SettlementReading = Readonly<{
  currency: string;
  lines: number;
  json: string;
  problems: readonly SettlementProblem[];
  problemCount: number;
}>;

export const settlementFile = readerOf(import.meta.url, 'settlementFile', readSettlementText);

export function readSettlementText({ bytes, currency, now, mostLines }: SettlementTask): SettlementReading {
  const text = Buffer.from(bytes).toString('utf8');
  const refused = (problems: readonly SettlementProblem[]) => ({
    ...{ currency, lines: 0, json: '[]', problems: problems.slice(0, PROBLEMS_TOLD), problemCount: problems.length },
  });
  const tooLong = lengthProblem(text, mostLines);
  if (tooLong !== undefined) return refused([tooLong]);
  const malformed: SettlementProblem[] = [];
  const records = csvRecords(text, (reason, line) => {
    malformed.push({ path: line === null ? '' : `line ${line}`, line, code: 'csv_malformed', reason });
  });
  if (malformed.length > 0) return refused(malformed);
  const { lines, problems } = readSettlement(records, { partnerCurrency: currency, now });
  if (problems.length > 0) return refused(problems);
  return { currency, lines: lines.length, json: JSON.stringify(lines), problems: [], problemCount: 0 };
}

function lengthProblem(text: string, mostLines = MOST_ITEMS): SettlementProblem | undefined {
  const lines = text.trimEnd().split(/\r\n?|\n/).length - 1;
  if (lines <= mostLines) return undefined;
  const reason = `has ${lines} lines after its header, but at most ${mostLines} are accepted: send them in several files`;
  return { path: '', line: null, code: 'lines_too_many', reason };
}
