import { readFileSync, statSync } from 'node:fs';
import { namesOf } from '../../actions/command.ts';
import { admit } from '../../actions/permit.ts';
import { controlGiven, ledgerImport, ROW_FORMATS, reportImport, rowFormatOf } from '../../actions/rows.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import { inNames } from '../../field-names.ts';
import { type Control, readTotalsFile, totalsFileOf, withTotals } from '../../ledger/control.ts';
import { importRows } from '../../ledger/import.ts';
import type { RowFormat, SourceFile } from '../../ledger/read.ts';
import { choiceArgument, repeatedArgument, wholeNumberArgument } from '../arguments.ts';
import { withContext } from '../context.ts';
import type { Definition } from '../define.ts';
import { type Output, outputWidth } from '../output.ts';
import { inFull } from '../remedies.ts';

export const define: Definition = (ledger, action) => {
  ledger
    .command('import')
    .argument('<file...>', "CSV or NDJSON files; '-' is stdin")
    .description('Import ledger rows, all or none')
    .option('--format <format>', 'csv or ndjson (default: by file name)', choiceArgument('--format', ROW_FORMATS))
    .option('--skip-invalid', 'record the valid rows even if others are invalid')
    .option('--rejects <file>', 'write the invalid rows with their reasons to this file, in the format of the import')
    .option('--accept-differing', "record rows that differ from the API's quote with the same id")
    .option('--control <total>', 'the sum of invoiceAmount in a currency, as USD=8311.20; repeatable', repeatedArgument)
    .option('--count <rows>', 'the number of rows of all files', wholeNumberArgument('--count', 0, 999_999_999))
    .option('--dry-run', 'check everything, record nothing')
    .action(action(importFiles));
};

async function importFiles(
  output: Output,
  names: string[],
  options: {
    format?: RowFormat;
    skipInvalid?: boolean;
    rejects?: string;
    acceptDiffering?: boolean;
    control?: string[];
    count?: number;
    dryRun?: boolean;
  },
): Promise<number> {
  const files = withTotals(names.map((name) => ({ name }))).map(({ file: { name } }): SourceFile => {
    const totals = totalsBeside(name);
    return { name, format: options.format ?? rowFormatOf(name), ...(totals && { totals }) };
  });
  const bytes = files.reduce((total, file) => total + sizeOf(file.name), 0);
  const { skipInvalid = false, acceptDiffering = false } = options;
  const control = controlGiven(options);
  const report = await withContext(
    async (context) => {
      const { environment, database, actor, settings } = context;
      const progress = output.progress('Reading', bytes, ' bytes');
      const { rejects } = options;
      const work = options.dryRun ? database.preview : database.transaction;
      try {
        // Invalid rows roll everything back, including the staged rows.
        return await work(async (tx) => {
          await admit(tx, context, ledgerImport, { files: [] });
          return importRows(tx, files, {
            ...{ skipInvalid, acceptDiffering, rejects, ...control, now: environment.now(), actor },
            ceilings: settings.reversals,
            onProgress: progress.advance,
          });
        });
      } finally {
        progress.done();
      }
    },
    { by: output.by, writesNothing: options.dryRun ?? false },
  );
  failpoint('import.committed');
  const reported = reportImport(report, { dryRun: options.dryRun ?? false, width: outputWidth() });
  const text = await inFull(reported);
  output.print(reported.json, () => inNames(text, namesOf(ledgerImport)));
  if (report.refused) return EXIT.badInput;
  return reported.attention ? EXIT.attention : EXIT.done;
}

/** What the file of totals beside a file states. Undefined if there is none. */
function totalsBeside(name: string): Control | undefined {
  const beside = totalsFileOf(name);
  const isFile = name !== '-' && statSync(beside, { throwIfNoEntry: false })?.isFile() === true;
  return isFile ? readTotalsFile(beside, readFileSync(beside, 'utf8')) : undefined;
}

function sizeOf(name: string): number {
  if (name === '-') return 0;
  const stat = statSync(name, { throwIfNoEntry: false });
  if (stat === undefined) throw refuse('file_unreadable', { file: name, reason: 'no such file' });
  if (stat.isDirectory()) throw refuse('file_unreadable', { file: name, reason: 'it is a folder' });
  return stat.size;
}
