import { refuse } from '#errors/refusals';
import { Sheet } from '#sheet';
import { choiceArgument } from './arguments.ts';
import { CommandContext } from './context.ts';
import { Output, writeFileAsked } from './output.ts';
import { recordExport } from './record-export.ts';

export type PresentOptions = Readonly<{
  format?: 'csv' | 'xlsx';
  out?: string;
}>;

export const FORMAT = [
  '--format <format>',
  'csv or xlsx, for spreadsheets',
  choiceArgument('--format', ['csv', 'xlsx']),
] as const;
export const OUT = ['-o, --out <file>', 'with --format: write to this file instead of stdout'] as const;

/** Refuses output options that cannot be combined, before a command changes something. Refusal: usage. */
export function checkPresentable(output: Output, { format, out }: PresentOptions) {
  if (format === undefined) {
    if (out !== undefined) throw refuse('usage', { reason: '--out needs --format csv or --format xlsx' });
    return;
  }
  if (output.json) throw refuse('usage', { reason: `--json and --format ${format} cannot be combined` });
  if (format === 'xlsx' && out === undefined && process.stdout.isTTY)
    throw refuse('usage', { reason: 'a workbook cannot be printed here. Write it to a file with --out FILE' });
}

/**
 * Prints a report as a table for people, or as JSON, CSV or XLSX. CSV and XLSX are recorded as an export of `subject`,
 * except of a dry run or an act, which has none. Refusals: usage, file_unwritable.
 */
export async function present(
  context: CommandContext,
  subject: string | null,
  options: PresentOptions,
  value: unknown,
  sheet: () => Sheet,
  people: () => string,
) {
  const { output } = context;
  checkPresentable(output, options);
  const { format, out } = options;
  if (format === undefined) {
    output.print(value, people);
    return;
  }
  const { csvOf, xlsxOf } = await import('#sheet');
  const exported = sheet();
  if (subject !== null) await recordExport(context, subject, { format, rows: exported.rows.length });
  const content = format === 'csv' ? csvOf(exported) : await xlsxOf(exported);
  if (out !== undefined) {
    writeFileAsked(out, content);
    output.note(`Wrote ${out}.`);
  } else process.stdout.write(content);
}
