/** `reckoner ledger import`. */
import { statSync } from 'node:fs';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import { type ImportReport, importRows } from '../../ledger/import.ts';
import { describeDifferingCut } from '../../ledger/quoted.ts';
import type { RowFormat, SourceFile } from '../../ledger/read.ts';
import { plural } from '../../text.ts';
import { choiceArgument } from '../arguments.ts';
import { withContext } from '../context.ts';
import type { Definition } from '../define.ts';
import { type Output, printable, table, wrapped } from '../output.ts';

export const define: Definition = (ledger, act) => {
  ledger
    .command('import')
    .argument('<file...>', "CSV or NDJSON files; '-' is stdin")
    .description('Import ledger rows, all of them or none')
    .option('--format <format>', 'csv or ndjson (default: by file name)', choiceArgument('--format', ['csv', 'ndjson']))
    .option('--skip-invalid', 'record the valid rows even if others are invalid')
    .option('--rejects <file>', 'write the invalid rows with their reasons to this file: CSV or NDJSON, as the import')
    .option('--accept-differing', "record rows that differ from our API's quote of the same id")
    .option('--dry-run', 'check everything, record nothing')
    .action(act(ledgerImport));
};

/** How many invalid rows people see; --json has up to a thousand. */
const SHOWN = 20;

async function ledgerImport(
  output: Output,
  names: string[],
  options: {
    format?: RowFormat;
    skipInvalid?: boolean;
    rejects?: string;
    acceptDiffering?: boolean;
    dryRun?: boolean;
  },
): Promise<number> {
  const files = names.map((name): SourceFile => ({ name, format: options.format ?? formatOf(name) }));
  const bytes = files.reduce((total, file) => total + sizeOf(file.name), 0);
  const { skipInvalid = false, acceptDiffering = false } = options;
  const report = await withContext(
    async ({ environment, database, actor }) => {
      const progress = output.progress('Reading', bytes, ' bytes');
      const { rejects } = options;
      const work = options.dryRun ? database.preview : database.transaction;
      try {
        // Invalid rows roll everything back, including the staged rows.
        return await work((tx) =>
          importRows(tx, files, {
            ...{ skipInvalid, acceptDiffering, rejects, now: environment.now(), actor },
            onProgress: progress.advance,
          }),
        );
      } finally {
        progress.done();
      }
    },
    { by: output.by, dryRun: options.dryRun ?? false },
  );
  failpoint('import.committed');
  const { accepted, duplicates, rejected, errors, other_currencies, differing_cuts } = report;
  output.print(
    {
      ...{ accepted, duplicates, rejected, errors },
      ...(other_currencies.length > 0 && { other_currencies }),
      ...(differing_cuts.length > 0 && { differing_cuts }),
    },
    () => describe(report, options.dryRun ?? false),
  );
  if (report.refused) return EXIT.badInput;
  return rejected === 0 ? EXIT.done : EXIT.attention;
}

function formatOf(name: string): RowFormat {
  if (/\.csv$/i.test(name)) return 'csv';
  if (/\.(ndjson|jsonl)$/i.test(name)) return 'ndjson';
  throw refuse('file_format_unknown', { file: name });
}

function sizeOf(name: string): number {
  if (name === '-') return 0;
  const stat = statSync(name, { throwIfNoEntry: false });
  if (stat === undefined) throw refuse('file_unreadable', { file: name, reason: 'no such file' });
  if (stat.isDirectory()) throw refuse('file_unreadable', { file: name, reason: 'it is a folder' });
  return stat.size;
}

function describe(report: ImportReport, dryRun: boolean): string {
  const { accepted, duplicates, rejected, late, errors, refused } = report;
  const recorded = dryRun ? 'would be recorded' : 'recorded';
  const lines: string[] = [];
  if (errors.length > 0) {
    const rows = errors
      .slice(0, SHOWN)
      .map((error) => [error.file, error.line, error.field, `${error.code}: ${printable(error.reason)}`]);
    lines.push(table(['file', '>line', 'field', 'reason'], rows));
    if (rejected > SHOWN) lines.push(`… and ${rejected - Math.min(SHOWN, errors.length)} more.`);
    lines.push('');
  }
  if (refused) {
    lines.push(`Nothing ${recorded}: ${plural(rejected, 'invalid row')}, ${plural(duplicates, 'duplicate')}.`);
    lines.push('Correct them, or record only the valid rows with --skip-invalid --rejects FILE.');
    return lines.join('\n');
  }
  lines.push(`${plural(accepted, 'row')} ${recorded}, ${plural(duplicates, 'duplicate')}, ${rejected} rejected.`);
  if (late > 0)
    lines.push(
      `${plural(late, 'row belongs', 'rows belong')} to a closed month and will be billed in the earliest open month.`,
    );
  for (const { partner_id, partner_currency, currency, rows } of report.other_currencies)
    lines.push(
      ...wrapped(
        `Check: ${plural(rows, 'row')} of ${partner_id} ${rows === 1 ? 'is' : 'are'} in ${currency}; its own currency ` +
          `is ${partner_currency}. The close makes a document of its own of them. Reverse what is wrong before that.`,
        80,
      ),
    );
  for (const row of report.differing_cuts) {
    const remedy = 'Correct a wrong split by a full reversal and a requote.';
    lines.push(...wrapped(`Check: ${printable(describeDifferingCut(row))} ${remedy}`, 80));
  }
  return lines.join('\n');
}
