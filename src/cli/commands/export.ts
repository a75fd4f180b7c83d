import { join } from 'node:path';
import { needRows } from '#archive/rows';
import {
  EXPORT_CONTENTS,
  EXPORT_KINDS,
  ExportFormat,
  ExportKind,
  ExportRequest,
  exportFormats,
  exportPack,
  exportSubject,
} from '#audit/export';
import { exportAll } from '#audit/export-all';
import {
  CommandContext,
  choiceArgument,
  Definition,
  EXIT,
  monthArgument,
  Output,
  reading,
  readingNow,
  refuse,
  table,
  writeFileAsked,
} from '#cli/command';
import { recordExport } from '#cli/record-export';
import { makeFolder } from '#files';
import { provePartner } from '#log/partner-proof';
import { groupThousands, Month, plural } from '#values';

const HELP = `
An export contains the requested data, the log with its checkpoints (which
proves the data), the rules as checks.sql, and a manifest. A release has
verify.mjs (Node) and verify.py (Python), which check all of it without
Reckoner. An existing file or folder is never replaced.`;

export const define: Definition = (group, action) => {
  group.addHelpText('after', HELP);
  for (const kind of EXPORT_KINDS) {
    const formats = exportFormats(kind);
    group
      .command(kind)
      .description(EXPORT_CONTENTS[kind])
      .requiredOption('--month <month>', 'the first month, YYYY-MM', monthArgument('--month'))
      .option('--to <month>', 'the last month (default: the same)', monthArgument('--to'))
      .option('--format <format>', formats.join(', '), choiceArgument('--format', formats), 'csv')
      .requiredOption('--out <place>', 'a new folder, or a new file that ends in .zip')
      .action(action((output, options: ExportOptions) => exportData(output, kind, options)));
  }
  group
    .command('all')
    .description('All of these, a pack of each month, in one folder or .zip file: for the audit of a year')
    .requiredOption('--month <month>', 'the first month, YYYY-MM', monthArgument('--month'))
    .option('--to <month>', 'the last month (default: the same)', monthArgument('--to'))
    .requiredOption('--out <place>', 'a new folder, or a new file that ends in .zip')
    .action(action(readingNow(exportEverything)));
  group
    .command('proof')
    .description("Prove that a partner's rows of a closed month are complete, without showing rows of other partners")
    .requiredOption('--partner <id>', 'the partner')
    .requiredOption('--month <month>', 'the closed month, YYYY-MM', monthArgument('--month'))
    .requiredOption('--out <place>', 'a new folder')
    .action(action(reading(exportProof)));
};

type ExportOptions = Readonly<{
  month: Month;
  to?: Month;
  format: ExportFormat;
  out: string;
}>;

function exportData(output: Output, kind: ExportKind, options: ExportOptions) {
  const { format, out } = options;
  const { from, to } = monthsOf(options);
  const request: ExportRequest = { kind, from, to, format, out };
  // A replica allows no temporary tables.
  return (kind === 'ledger' ? reading : readingNow)(async (context) => {
    const { environment, database } = context;
    await recordExport(context, exportSubject(request), { kind, from, to, format, out });
    const exported = await exportPack(database, environment, request);
    output.print(exported, () => {
      const { files, months, checkpoint, manifest_sha256 } = exported;
      const data = files.filter(({ name }) => !name.includes('/'));
      return [
        `Wrote ${out}: ${kind} of ${from === to ? from : `${from} to ${to}`}, ${plural(files.length, 'file')}.`,
        table(
          ['file', '>rows', '>bytes'],
          data.map(({ name, rows, bytes }) => [name, rows, groupThousands(String(bytes))]),
        ),
        ...months.map(
          ({ month, closed_at_size, books_at_size }) =>
            `${month}  ${closed_at_size === null ? 'open' : 'closed'}${books_at_size === null ? ', books open: preliminary' : ''}`,
        ),
        `The log to its checkpoint of ${plural(checkpoint.size, 'fact')}: ${checkpoint.root}`,
        `SHA-256 of manifest.json: ${manifest_sha256}`,
        `'node verify.mjs ${out}' with the verify.mjs of a release checks it. README.txt explains how.`,
      ].join('\n');
    });
    return EXIT.done;
  })(output);
}

function monthsOf({ month: from, to = from }: Pick<ExportOptions, 'month' | 'to'>) {
  if (to < from) throw refuse('argument_invalid', { argument: '--to', value: to, reason: `is before ${from}` });
  return { from, to };
}

async function exportEverything(context: CommandContext, options: Omit<ExportOptions, 'format'>) {
  const { environment, database, output } = context;
  const { out } = options;
  const { from, to } = monthsOf(options);
  const request = { from, to, format: 'csv', out } as const;
  await recordExport(context, exportSubject({ kind: 'all', from, to }), { kind: 'all', ...request });
  const exported = await exportAll(database, environment, request);
  const { months, packs, sums_sha256 } = exported;
  output.print(exported, () =>
    [
      `Wrote ${out}: ${plural(packs, 'pack')} of ${plural(months.length, 'month')}, ${months[0]} to ${months.at(-1)}.`,
      `SHA-256 of SHA256SUMS, which has those of all manifests: ${sums_sha256}`,
    ].join('\n'),
  );
}

type ProofOptions = Readonly<{
  partner: string;
  month: Month;
  out: string;
}>;

async function exportProof(context: CommandContext, options: ProofOptions) {
  const { database, output } = context;
  const { partner: partnerId, month, out } = options;
  await recordExport(context, `proof ${month}`, { kind: 'proof', partner: partnerId, month, out });
  const proofs = await database.reading(async (tx) => {
    await needRows(tx, { from: month, to: month, partnerIds: [partnerId] });
    return provePartner(tx, { partnerId, month }, (numbers) => needRows(tx, { numbers }));
  });
  await makeFolder(out);
  const files = proofs.map(({ currency, arrangement, rows, proof }) => {
    const name = `${currency}-${arrangement}`;
    writeFileAsked(join(out, `${name}.tsv`), rows.map((row) => `${row}\n`).join(''), 'wx');
    writeFileAsked(join(out, `${name}.tlog-proof`), proof, 'wx');
    return { file: name, rows: rows.length };
  });
  output.print({ out, partner_id: partnerId, month, files }, () =>
    [
      `Wrote ${out}: ${plural(files.length, 'proof')} of ${partnerId} in ${month}.`,
      table(
        ['file', '>rows'],
        files.map(({ file, rows }) => [`${file}.tsv`, rows]),
      ),
      `'node verify.mjs --partner ${out} --key FILE' with the verify.mjs of a release checks it.`,
    ].join('\n'),
  );
}
