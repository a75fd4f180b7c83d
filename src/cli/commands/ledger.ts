import { readFileSync, statSync } from 'node:fs';
import { ledgerImportOf, ROW_FORMATS, rowFormatOf } from '#actions/rows';
import {
  choiceArgument,
  Definition,
  EXIT,
  Output,
  refuse,
  repeatedArgument,
  wholeNumberArgument,
  withContext,
} from '#cli/command';
import { inFull } from '#cli/remedies';
import { reported } from '#cli/run-action';
import { readTotalsFile, totalsFileOf, withTotals } from '#ledger/control';
import { RowFormat } from '#ledger/read';

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
) {
  const files = withTotals(names.map((name) => ({ name }))).map(({ file: { name } }) => {
    const totals = totalsBeside(name);
    return { name, format: options.format ?? rowFormatOf(name), ...(totals && { totals }) };
  });
  const bytes = files.reduce((total, file) => total + sizeOf(file.name), 0);
  const { rejects, dryRun = false, ...given } = options;
  const input = { ...given, files: files.map(({ name }) => ({ name, bytes: Buffer.alloc(0) })) };
  let refused = false;
  const report = await withContext(
    async (context) => {
      const progress = output.progress('Reading', bytes, ' bytes');
      const streamed = ledgerImportOf(files, { rejects, onProgress: progress.advance });
      const action: typeof streamed = {
        ...streamed,
        report(done, reporting, tx) {
          refused = done.result.refused;
          return streamed.report(done, reporting, tx);
        },
      };
      try {
        return await reported({ ...context, output }, action, input, { dryRun });
      } finally {
        progress.done();
      }
    },
    { by: output.by, writesNothing: dryRun },
  );
  const text = await inFull(report);
  output.print(report.json, () => text);
  if (refused) return EXIT.badInput;
  return report.attention ? EXIT.attention : EXIT.done;
}

function totalsBeside(name: string) {
  const beside = totalsFileOf(name);
  const isFile = name !== '-' && statSync(beside, { throwIfNoEntry: false })?.isFile() === true;
  return isFile ? readTotalsFile(beside, readFileSync(beside, 'utf8')) : undefined;
}

function sizeOf(name: string) {
  if (name === '-') return 0;
  const stat = statSync(name, { throwIfNoEntry: false });
  if (stat === undefined) throw refuse('file_unreadable', { file: name, reason: 'no such file' });
  if (stat.isDirectory()) throw refuse('file_unreadable', { file: name, reason: 'it is a folder' });
  return stat.size;
}
