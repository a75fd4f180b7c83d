import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { glExport } from '#actions/general-ledger';
import { readInput } from '#actions/run';
import {
  acting,
  CommandContext,
  choiceArgument,
  Definition,
  EXIT,
  monthArgument,
  readingNow,
  reasonOf,
  refuse,
  wholeNumberArgument,
} from '#cli/command';
import { recordExport } from '#cli/record-export';
import { reported } from '#cli/run-action';
import { codeOf, makeFolder, writeWhole } from '#files';
import { GL_FORMATS, GlFormat } from '#general-ledger/accounts';
import { readFiles, readParts, StoredFile } from '#general-ledger/exports.sql';
import { Month } from '#month';

const HELP = `
accounts.json under RECKONER_HOME maps our accounts to the general ledger's. A
repeated export of a month writes the same files. Postings that were recorded
after the last export become a new part. docs/general-ledger.md describes the
columns.`;

export const define: Definition = (group, action) => {
  group
    .command('gl')
    .description("Export a month's journal for the general ledger, summarized by account")
    .requiredOption('--month <month>', 'YYYY-MM, with closed books', monthArgument('--month'))
    .requiredOption('--format <format>', GL_FORMATS.join(', '), choiceArgument('--format', GL_FORMATS))
    .option('--out <folder>', 'where to write the files (default: here)')
    .option('--preliminary', 'export even while the books are open')
    .option('--reclassify', 'move exported amounts to the accounts that accounts.json now names')
    .option(
      '--part <number>',
      'write the files of this part again; export nothing',
      wholeNumberArgument('--part', 1, 99),
    )
    .option('--dry-run', 'show the journal; write nothing')
    .addHelpText('after', HELP)
    .action(
      action((output, options: Options) =>
        (options.part === undefined ? acting : readingNow)(exportGeneralLedger)(output, options),
      ),
    );
};

type Options = Readonly<{
  month: Month;
  format: GlFormat;
  out?: string;
  preliminary?: boolean;
  reclassify?: boolean;
  part?: number;
  dryRun?: boolean;
}>;

async function exportGeneralLedger(context: CommandContext, options: Options) {
  const { month, format, out = '.', preliminary, reclassify, part, dryRun = false } = options;
  const { database, output } = context;
  if (part !== undefined) {
    if (preliminary || reclassify || dryRun)
      throw refuse('usage', { reason: '--part can only be combined with --out' });
    const files = await database.reading(async (tx) => {
      const parts = await readParts(tx, { month, format });
      const asked = parts.find((each) => each.part === part);
      if (asked === undefined) throw refuse('gl_part_unknown', { month, format, part, parts: parts.length });
      return readFiles(tx, { id: asked.gl_export_id });
    });
    await recordExport(context, `gl ${month}`, { kind: 'gl', month, format, part, out });
    const written = await writeFiles(out, files);
    output.print({ month, format, part, files: written }, () => wrote(written));
    return EXIT.done;
  }
  const input = readInput(glExport, { month, format, preliminary, reclassify });
  const report = await reported(context, glExport, input, { dryRun });
  const json = report.json as { part: number | null };
  const files = dryRun
    ? []
    : await database.reading(async (tx) => {
        const last = (await readParts(tx, { month, format })).find((each) => each.part === json.part);
        return last === undefined ? [] : readFiles(tx, { id: last.gl_export_id });
      });
  const written = await writeFiles(out, files);
  output.print({ ...json, ...(dryRun && { dry_run: true }), written }, () =>
    dryRun ? report.text : `${report.text}\n\n${wrote(written)}`,
  );
  return report.attention ? EXIT.attention : EXIT.done;
}

const wrote = (files: readonly string[]) => (files.length === 0 ? 'No file.' : `Wrote ${files.join(', ')}.`);

/** Keeps identical files. Refusals: export_exists (a file differs), file_unwritable. */
async function writeFiles(folder: string, files: readonly StoredFile[]) {
  const paths = files.map(({ name }) => join(folder, name));
  for (const [at, { content }] of files.entries()) {
    const path = paths[at] as string;
    if (existsSync(path) && !isSame(path, content)) throw refuse('export_exists', { out: path });
  }
  for (const [at, { content }] of files.entries()) {
    const path = paths[at] as string;
    try {
      await makeFolder(folder);
      if (!existsSync(path)) await writeWhole(path, content, 'publish');
    } catch (error) {
      if (codeOf(error) === 'EEXIST' && !isSame(path, content)) throw refuse('export_exists', { out: path }, error);
      throw refuse('file_unwritable', { file: path, reason: reasonOf(error) }, error);
    }
  }
  return paths;
}

function isSame(path: string, content: Buffer) {
  try {
    return readFileSync(path).equals(content);
  } catch {
    return false;
  }
}
