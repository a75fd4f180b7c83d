/**
 * Imports ledger rows (ledger/import.ts). The command streams files of any size, whereas the console reads a file as a
 * whole. A request for approval keeps only the SHA-256 of the files.
 */
import { basename } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { readTotals, readTotalsFile, withTotals } from '#ledger/control';
import { isRequest } from '#ledger/held';
import { ImportOptions, ImportReport, importRows } from '#ledger/import';
import { describeDifferingCut } from '#ledger/quoted';
import { RowFormat, SourceFile } from '#ledger/read';
import { countLines, refuseTooMany } from '#reading/limits';
import { SEE } from '#remedy';
import { printable, table, wrapped } from '#text-table';
import { Amount, plural } from '#values';
import {
  ActionContext,
  Agree,
  choice,
  defineAction,
  Facts,
  file,
  flag,
  Report,
  several,
  text,
  whole,
} from './action.ts';
import { sizesOf } from './documents.ts';

export const ROW_FORMATS = ['csv', 'ndjson'] as const;

export const ledgerImport = defineAction({
  name: 'ledger.import',
  command: { arguments: { files: '<files...>' } },
  title: 'Import ledger rows',
  role: 'finance',
  input: {
    files: several(file('File', 'Ledger rows as CSV or NDJSON. All rows are recorded, or none.')),
    format: choice('Format', 'Default: from the file name.', ROW_FORMATS).optional(),
    skipInvalid: flag('Skip invalid rows', 'Record the valid rows even if others are invalid.').optional(),
    acceptDiffering: flag(
      'Accept differing',
      "Record rows that differ from the API's quote with the same id.",
    ).optional(),
    control: several(
      text('Control total', 'The sum of invoiceAmount of all rows in a currency, as USD=8311.20.'),
    ).optional(),
    count: whole('Rows', 'The number of rows of all files.', { least: 0, value: 'rows' }).optional(),
  },
  subject: ({ files }) => files.map(({ name }) => basename(name)).join(' '),
  // Only counts lines, because rows are parsed later, while they are staged (ledger/read.ts).
  async read(_context, { files }) {
    for (const { name, bytes } of files) {
      const lines = countLines(bytes);
      await nextTurn();
      refuseTooMany(name, lines);
    }
  },
  perform(tx, context, input, agree?: Agree<ImportReport>): Promise<ImportReport> {
    const sources = withTotals(input.files).map(({ file: { name, bytes }, totals }) => ({
      ...{ name, format: input.format ?? rowFormatOf(name), text: bytes.toString('utf8') },
      ...(totals && { totals: readTotalsFile(totals.name, totals.bytes.toString('utf8')) }),
    }));
    return record(tx, context, sources, { ...input, agree });
  },
  committed: () => failpoint('import.committed'),
  facts: async (_tx, { files }, report) => (report === undefined ? {} : factsOf(files, report)),
  // Sales move nothing against us.
  amounts: (_seen, _input, { totals, reversals }) =>
    sizesOf([
      ...Object.keys(totals).map((currency) => Amount.zero(currency)),
      ...reversals.map(({ invoice_amount, currency }) => Amount.of(invoice_amount, currency)),
    ]),
  requestOf: ({ files, ...input }, { sha256 }) => ({
    ...input,
    files: withTotals(files).map(({ file: { name } }, index) => ({ name: basename(name), sha256: sha256[index] })),
  }),
  report: async ({ result, preview }, { width }) => reportImport(result, { dryRun: preview, width }),
});

/** The same action with files of any size: the files are read while their rows are staged. */
export function ledgerImportOf(
  sources: readonly SourceFile[],
  options: Pick<ImportOptions, 'rejects' | 'onProgress'>,
): typeof ledgerImport {
  const { read: _, ...action } = ledgerImport;
  return {
    ...action,
    perform: (tx, context, input, agree) => record(tx, context, sources, { ...input, ...options, agree }),
  };
}

const record = (
  tx: Transaction,
  { environment, actor, settings }: ActionContext,
  sources: readonly SourceFile[],
  { skipInvalid = false, acceptDiffering = false, control, count, rejects, onProgress, agree }: RecordOptions,
) =>
  importRows(tx, sources, {
    ...{ skipInvalid, acceptDiffering, ...controlGiven({ control, count }), rejects, agree },
    ...(onProgress && { onProgress }),
    ...{ now: environment.now(), actor, ceilings: settings.reversals, environment },
  });

type RecordOptions = Partial<Pick<ImportOptions, 'rejects' | 'onProgress' | 'agree'>> &
  Readonly<{
    skipInvalid?: boolean | undefined;
    acceptDiffering?: boolean | undefined;
    control?: readonly string[] | undefined;
    count?: number | undefined;
  }>;

/** Leaves out late rows, whose number is only known once they are recorded. */
const factsOf = (
  files: readonly { readonly name: string }[],
  { accepted, held, rejected, sha256, totals, reversals }: ImportReport,
): Facts => ({
  ...Object.fromEntries(withTotals(files).map(({ file }, at) => [basename(file.name), { sha256: sha256[at] ?? null }])),
  rows: { recorded: String(accepted), held: String(held), rejected: String(rejected) },
  ...Object.fromEntries(
    Object.entries(totals).map(([currency, { spotPrice, partnerCut, invoiceAmount }]) => {
      const of = (amount: string) => Amount.of(amount, currency);
      const sums = { spotPrice: of(spotPrice), partnerCut: of(partnerCut), invoiceAmount: of(invoiceAmount) };
      return [`rows in ${currency}`, sums];
    }),
  ),
  ...Object.fromEntries(
    reversals
      .slice(0, SHOWN)
      .map(({ partner_id, currency, invoice_amount }) => [
        `reversals of ${partner_id} in ${currency}`,
        { invoiceAmount: Amount.of(invoice_amount, currency) },
      ]),
  ),
});

const controlGiven = ({ control, count }: { control?: readonly string[] | undefined; count?: number | undefined }) =>
  control === undefined && count === undefined
    ? {}
    : { control: { count, ...(control && { totals: readTotals(control) }) } };

export function rowFormatOf(name: string): RowFormat {
  if (/\.csv$/i.test(name)) return 'csv';
  if (/\.(ndjson|jsonl)$/i.test(name)) return 'ndjson';
  throw refuse('file_format_unknown', { file: name });
}

function reportImport(report: ImportReport, { dryRun, width }: { dryRun: boolean; width: number | undefined }): Report {
  const { accepted, duplicates, held, rejected, errors, held_rows, other_currencies, differing_cuts, control } = report;
  return {
    json: {
      ...{ accepted, duplicates, held, rejected, errors },
      ...(held_rows.length > 0 && { held_rows }),
      ...(other_currencies.length > 0 && { other_currencies }),
      ...(differing_cuts.length > 0 && { differing_cuts }),
      ...(control.length > 0 && { control }),
    },
    text: describe(report, dryRun, width),
    ...(held > 0 && !report.refused && { remedies: [held === requestsAmong(held_rows) ? SEE.requested : SEE.held] }),
    attention: rejected > 0 || held > 0,
  };
}

/** How many held rows are reversals that a person grants or refuses. */
const requestsAmong = (held: ImportReport['held_rows']) =>
  held.filter(({ field, code: sign }) => isRequest({ kind: field === 'reversal_id' ? 'reversal' : '', sign })).length;

/** The maximum number of invalid rows that are shown. With --json, the report shows a thousand invalid rows. */
const SHOWN = 20;

function describe(report: ImportReport, dryRun: boolean, width: number | undefined) {
  const { accepted, duplicates, held, rejected, late, errors, refused, control } = report;
  const differs = control.some(({ agrees }) => !agrees);
  const recorded = dryRun ? 'would be recorded' : 'recorded';
  const lines: string[] = [];
  for (const [found, count] of [
    [errors, Math.max(rejected, errors.length)],
    [report.held_rows, held],
  ] as const) {
    if (found.length === 0) continue;
    const rows = found
      .slice(0, SHOWN)
      .map((each) => [each.file, each.line || '', each.field, `${each.code}: ${printable(each.reason)}`]);
    lines.push(table(['file', '>line', 'field', 'reason'], rows, width));
    if (count > SHOWN) lines.push(`… and ${count - Math.min(SHOWN, found.length)} more.`);
    lines.push('');
  }
  if (refused) {
    if (differs) {
      lines.push(
        `Nothing ${recorded}: the rows differ from the stated totals. ${rejected > 0 ? 'Invalid rows do not count. ' : ''}Ask for a complete file, or correct the totals.`,
      );
      return lines.join('\n');
    }
    lines.push(`Nothing ${recorded}: ${plural(rejected, 'invalid row')}, ${plural(duplicates, 'duplicate')}.`);
    lines.push(`Correct them, or record only the valid rows with ${fieldName('skipInvalid')}.`);
    return lines.join('\n');
  }
  const waiting = held === 0 ? '' : `, ${held} held`;
  lines.push(
    `${plural(accepted, 'row')} ${recorded}, ${plural(duplicates, 'duplicate')}${waiting}, ${rejected} rejected.`,
  );
  if (held > 0) {
    const requests = requestsAmong(report.held_rows);
    const are = held === 1 ? 'A held row is' : 'Held rows are';
    const decides =
      requests === 0
        ? 'decides: a sale of its own, or a repetition'
        : requests === held
          ? `grants or refuses ${held === 1 ? 'the reversal' : 'the reversals'}`
          : 'decides: reversals are granted or refused, other rows are sales of their own or repetitions';
    lines.push(...wrapped(`${are} not recorded until a person ${decides}.`, 80));
  }
  if (control.length > 0) lines.push('The rows agree with the stated totals.');
  if (late > 0)
    lines.push(
      `${plural(late, 'row belongs', 'rows belong')} to a closed month and will be billed in the earliest open month.`,
    );
  for (const { partner_id, partner_currency, currency, rows } of report.other_currencies)
    lines.push(
      ...wrapped(
        `Check: ${plural(rows, 'row')} of ${partner_id} ${rows === 1 ? 'is' : 'are'} in ${currency}; its own ` +
          `currency is ${partner_currency}. The close issues a separate document for them. Reverse wrong rows before ` +
          'that.',
        80,
      ),
    );
  for (const row of report.differing_cuts) {
    const remedy = 'Correct a wrong split with a full reversal and a requote.';
    lines.push(...wrapped(`Check: ${printable(describeDifferingCut(row))} ${remedy}`, 80));
  }
  return lines.join('\n');
}
