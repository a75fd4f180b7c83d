/**
 * The definition of a report: its question, a function that reads it, and the blocks that show it. The command
 * (cli/report-command.ts), the page (console/report-route.tsx) and the files are generated from the definition.
 */
import { z } from 'zod';
import { CommandWords } from '#actions/command';
import { Block, blocksText } from '#blocks';
import { Transaction } from '#database/transaction';
import { Period, Scope } from '#people/scope';
import { BooksOfDay, preliminaryNote } from '#reports/preliminary';
import { Sheet } from '#sheet';
import { capitalized } from '#text';
import { fitLines } from '#text-table';

export * from '#actions/fields';

/** Whether the figures agree, in a few words. `good` is null if there is nothing to compare. */
export type Verdict = Readonly<{ good: boolean | null; text: string }>;

type Seen = Readonly<{ today: string; scope: Scope; period: Period }>;

// Methods instead of properties make a report of a specific type assignable to Report.
export type Report<Asked = unknown, Found = unknown> = Readonly<{
  command: string;
  summary: string;
  words?: CommandWords;
  title: string;
  /** As of a list (list.ts). */
  ofLedger?: true;
  ofPeriod?: true;
  asked: z.ZodObject & z.ZodType<Asked>;
  /** Fields that only the command has. */
  ofCommand?: readonly string[];
  read(tx: Transaction, asked: Asked, seen: Seen): Promise<Found>;
  /** The values of the question's fields that the report was read with, for its page. */
  inForce(found: NoInfer<Found>): Readonly<Record<string, string>>;
  /** After the title: `as of 31 July 2026`. */
  lead(found: NoInfer<Found>): string;
  /** The terminal has room for narrower tables than a page. */
  blocks(found: NoInfer<Found>, on: 'page' | 'terminal'): readonly Block[];
  /** Instead of blocks, if there are none. */
  nothing: string;
  verdict(found: NoInfer<Found>): Verdict;
  /** Set if the report changes while the books of its day are open. */
  day?(found: NoInfer<Found>): BooksOfDay;
  /** By default, `--json` prints all that was found. */
  json?(found: NoInfer<Found>): unknown;
  sheet(found: NoInfer<Found>): Sheet;
}>;

/** Returns the report unchanged. The parameter's type checks that its functions agree. */
export const defineReport = <Asked, Found>(report: Report<Asked, Found>): Report<Asked, Found> => report;

/** The report as plain text. If a width is given, the tables are shortened to fit. */
export function reportText<Asked, Found>(report: Report<Asked, Found>, found: Found, width?: number) {
  const blocks = report.blocks(found, 'terminal');
  const { text } = report.verdict(found);
  const parts = [
    [`${report.title} ${report.lead(found)}`, ...(report.day ? preliminaryNote(report.day(found)) : [])].join('\n'),
    blocks.length === 0 ? report.nothing : blocksText(blocks, width),
    `${capitalized(text)}.`,
  ];
  return fitLines(parts.join('\n\n'), width);
}
