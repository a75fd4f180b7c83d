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
} from '#audit/export';
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
  const { month: from, to = from, format, out } = options;
  if (to < from) throw refuse('argument_invalid', { argument: '--to', value: to, reason: `is before ${from}` });
  const request: ExportRequest = { kind, from, to, format, out };
  // A replica allows no temporary tables.
  return (kind === 'ledger' ? reading : readingNow)(async ({ environment, database }) => {
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

type ProofOptions = Readonly<{
  partner: string;
  month: Month;
  out: string;
}>;

async function exportProof({ database, output }: CommandContext, options: ProofOptions) {
  const { partner: partnerId, month, out } = options;
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
