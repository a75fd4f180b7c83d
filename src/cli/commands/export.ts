/** `reckoner export`. */
import { type ExportFormat, type ExportKind, type ExportRequest, exportPack } from '../../audit/export.ts';
import { proveRow } from '../../audit/proof.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { groupThousands } from '../../money.ts';
import type { Month } from '../../month.ts';
import { plural } from '../../text.ts';
import { choiceArgument, monthArgument, rowArgument } from '../arguments.ts';
import { type CommandContext, type Definition, type Done, reading } from '../define.ts';
import { type Output, table, writeFileAsked } from '../output.ts';

const HELP = `
An export contains a manifest with the hashes of its files, the seals of its
months, the evidence for those seals, and README.txt. verify.mjs (Node) and
verify.py (Python) of a release check all of it without Reckoner. An existing
file or folder is never replaced.`;

const KINDS: Readonly<Record<ExportKind, string>> = {
  ledger: 'Ledger rows by posting month',
  invoices: 'Documents and their lines',
  payments: 'Payments by entry date, with their applications',
  journal: 'Journal entries by entry date, with opening balances',
  events: 'Audit events: who did what, and when',
};

export const define: Definition = (group, act) => {
  group.addHelpText('after', HELP);
  for (const [kind, description] of Object.entries(KINDS) as [ExportKind, string][]) {
    const formats = kind === 'journal' ? ['csv', 'jsonl', 'hledger', 'beancount'] : ['csv', 'jsonl'];
    group
      .command(kind)
      .description(description)
      .requiredOption('--month <month>', 'the first month, YYYY-MM', monthArgument('--month'))
      .option('--to <month>', 'the last month (default: the same)', monthArgument('--to'))
      .option('--format <format>', formats.join(', '), choiceArgument('--format', formats), 'csv')
      .requiredOption('--out <place>', 'a new folder, or a new file that ends in .zip')
      .action(act((output, options: ExportOptions) => exportData(output, kind, options)));
  }
  group
    .command('proof')
    .description('Prove that a ledger row is under the seal of its month')
    .requiredOption('--row <id>', 'the entry_id of the row', rowArgument)
    .option('--out <file>', 'write to this file (default: stdout)')
    .action(act(reading(exportProof)));
};

export interface ExportOptions {
  readonly month: Month;
  readonly to?: Month;
  readonly format: ExportFormat;
  readonly out: string;
}

function exportData(output: Output, kind: ExportKind, options: ExportOptions): Done {
  const { month: from, to = from, format, out } = options;
  if (to < from) throw refuse('argument_invalid', { argument: '--to', value: to, reason: `is before ${from}` });
  const request: ExportRequest = { kind, from, to, format, out };
  return reading(async ({ environment, database }) => {
    const exported = await database.reading((tx) => exportPack(tx, environment, request));
    output.print(exported, () => {
      const { files, months, manifest_sha256 } = exported;
      const data = files.filter(({ name }) => !name.includes('/'));
      return [
        `Wrote ${out}: ${kind} of ${from === to ? from : `${from} to ${to}`}, ${plural(files.length, 'file')}.`,
        table(
          ['file', '>rows', '>bytes'],
          data.map(({ name, rows, bytes }) => [name, rows, groupThousands(String(bytes))]),
        ),
        ...months.map(
          ({ month, seal, books_seal }) =>
            `${month}  ${seal ?? 'open, not sealed yet'}${books_seal === null ? ' (books open: preliminary)' : ''}`,
        ),
        `SHA-256 of manifest.json: ${manifest_sha256}`,
        `'node verify.mjs ${out}' with the verify.mjs of a release checks it. README.txt explains how.`,
      ].join('\n');
    });
    return EXIT.done;
  })(output);
}

async function exportProof(
  { database, output }: CommandContext,
  options: { row: number; out?: string },
): Promise<void> {
  const proof = await database.reading((tx) => proveRow(tx, options.row));
  const { out } = options;
  if (out !== undefined) writeFileAsked(out, `${JSON.stringify(proof, null, 2)}\n`, 'wx');
  const { month, entry_id, index, rows, seal } = proof;
  output.print(proof, () =>
    out === undefined
      ? `${JSON.stringify(proof, null, 2)}`
      : [
          `Wrote ${out}: row ${entry_id} is number ${groupThousands(String(index + 1))} of the ` +
            `${groupThousands(String(rows))} rows of ${month}.`,
          `Seal of ${month}: ${seal}`,
          `To check it, run 'node verify.mjs ${out}' with the verify.mjs of a release. Compare the seal with the`,
          'one that the close printed, that was mailed to the auditor, or that the next documents show.',
        ].join('\n'),
  );
}
