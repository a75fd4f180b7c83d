import {
  EXPORT_CONTENTS,
  EXPORT_KINDS,
  type ExportFormat,
  type ExportKind,
  type ExportRequest,
  exportFormats,
  exportPack,
} from '../../audit/export.ts';
import type { Subject } from '../../audit/proof.sql.ts';
import { type Proof, prove } from '../../audit/proof.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { groupThousands } from '../../money.ts';
import type { Month } from '../../month.ts';
import { plural } from '../../text.ts';
import { choiceArgument, idArgument, monthArgument } from '../arguments.ts';
import { type CommandContext, type Definition, type ExitStatus, reading } from '../define.ts';
import { type Output, table, writeFileAsked } from '../output.ts';

const HELP = `
An export contains a manifest with the hashes of its files, the seals of its
months, the evidence for those seals, and README.txt. verify.mjs (Node) and
verify.py (Python) of a release check all of it without Reckoner. An existing
file or folder is never replaced.`;

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
      .option('--parquet', 'add each table as Parquet too, with exact decimals and times')
      .requiredOption('--out <place>', 'a new folder, or a new file that ends in .zip')
      .action(action((output, options: ExportOptions) => exportData(output, kind, options)));
  }
  group
    .command('proof')
    .description('Prove that the seals of closed months cover an item, without revealing other items')
    .option('--row <id>', 'a ledger row, by its entry_id', idArgument('--row'))
    .option('--document <number>', 'a document with its lines, PDF and void')
    .option('--payment <id>', 'a payment and all facts recorded about it', idArgument('--payment'))
    .option('--event <id>', 'an audit event, by its event_id', idArgument('--event'))
    .option('--out <file>', 'write to this file (default: stdout)')
    .action(action(reading(exportProof)));
};

interface ExportOptions {
  readonly month: Month;
  readonly to?: Month;
  readonly format: ExportFormat;
  readonly out: string;
  readonly parquet?: boolean;
}

function exportData(output: Output, kind: ExportKind, options: ExportOptions): ExitStatus {
  const { month: from, to = from, format, out, parquet = false } = options;
  if (to < from) throw refuse('argument_invalid', { argument: '--to', value: to, reason: `is before ${from}` });
  if (parquet && format !== 'csv' && format !== 'jsonl')
    throw refuse('usage', { reason: '--parquet requires --format csv or jsonl' });
  const request: ExportRequest = { kind, from, to, format, out, parquet };
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

interface ProofOptions {
  readonly row?: number;
  readonly document?: string;
  readonly payment?: number;
  readonly event?: number;
  readonly out?: string;
}

async function exportProof({ database, output }: CommandContext, { out, ...asked }: ProofOptions): Promise<void> {
  if (Object.keys(asked).length !== 1) {
    const reason = 'name one thing to prove: --row ID, --document NUMBER, --payment ID or --event ID';
    throw refuse('usage', { reason });
  }
  const { proof, unsealed } = await database.reading((tx) => prove(tx, asked as Subject));
  const text = JSON.stringify(proof, null, 2);
  if (out !== undefined) writeFileAsked(out, `${text}\n`, 'wx');
  output.print(proof, () => (out === undefined ? text : describeProof(proof, out)));
  for (const { table: name, facts } of unsealed)
    output.note(`Not in the proof, because no seal covers it yet: ${plural(facts, 'fact')} of ${name}.`);
}

function describeProof({ subject, records, facts }: Proof, out: string): string {
  const [first] = facts;
  return [
    `Wrote ${out}: ${subject}, ${plural(facts.length, 'fact')} under ${plural(records.length, 'seal')}.`,
    ...(first?.table === 'ledger_rows'
      ? [
          `It is number ${groupThousands(String(first.index + 1))} of the ${groupThousands(String(first.leaves))} rows ` +
            `of ${first.month}.`,
        ]
      : []),
    ...records.map(({ month, seal }) => `Seal of ${month}: ${seal}`),
    `To check it, run 'node verify.mjs ${out}' with the verify.mjs of a release. Compare each seal with the`,
    'one that the close printed, the auditor received, or later documents show.',
  ].join('\n');
}
