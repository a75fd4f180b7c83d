/** How reports are printed: as JSON, as CSV or for people. */
import { refuse } from '../../../errors/refusals.ts';
import { csv } from '../../csv.ts';
import type { Output } from '../../output.ts';

export interface ReportOptions {
  readonly asOf?: string;
  readonly format?: 'csv';
}

/** Prints a report as JSON, as CSV or for people. */
export function present(
  output: Output,
  { format }: ReportOptions,
  value: unknown,
  table: () => readonly [columns: readonly string[], rows: readonly Readonly<Record<string, string | number | null>>[]],
  people: () => string,
): void {
  if (format === undefined) output.print(value, people);
  else if (output.json) throw refuse('usage', { reason: '--json and --format csv cannot be combined' });
  else process.stdout.write(csv(...table()));
}
