import { ActionContext, choice, defineAction, Facts, FileInput, file, text } from '#actions/action';
import { contentBy } from '#actions/contents';
import { amountsIn } from '#actions/documents';
import { failpoint } from '#failpoint';
import { BANK_FORMATS } from '#payments/bank/read';
import { readBankFileAside } from '#payments/bank/read-aside';
import { BankImport, importBankFile } from '#payments/bank-import/import';
import { LineReport } from '#payments/bank-import/report';
import { printable, table, wrapped } from '#text-table';
import { Amount, groupThousands, plural } from '#values';
import { amountOf, smallDifferencesOf } from './describe.ts';

const FORMATS = BANK_FORMATS.map(({ name }) => name);

export const paymentImport = defineAction({
  name: 'payment.import',
  title: 'Import a bank file',
  command: {
    summary: 'Import a bank file, all or nothing, and match its lines',
    arguments: { file: '<file>' },
    dryRun: 'check and match everything, record nothing',
    help: `A file that was already imported changes nothing, and a line from an earlier
file is not recorded again. Certain matches are applied; others become
suggestions, which 'reckoner payment apply ID --invoice NUMBER' accepts.
Exit status 4: a line needs manual review, or a statement does not continue the
account's last one.`,
  },
  role: 'finance',
  input: {
    file: file('File', 'A file from the bank. All or nothing is imported.'),
    format: choice('Format', 'Default: detected.', FORMATS).optional(),
    map: text('Column map', 'For CSV: a column map from the settings ("bank_csv").', { value: 'name' }).optional(),
  },
  subject: ({ file }) => file.name,
  partners: async () => 'all',
  read: (context, input) => readStatements(context, input),
  perform: async (tx, context, input) => importBankFile(tx, context, input.file, await readStatements(context, input)),
  committed: () => failpoint('payments.committed'),
  facts: async (_tx, _input, report): Promise<Facts> =>
    Object.fromEntries(
      (report?.new_lines ?? []).map((line) => [
        `line ${line.position} of ${line.booked_on}`,
        {
          amount: Amount.of(line.amount, line.currency),
          is: line.outcome,
          for: whatFor({ ...line, payment_id: null }),
        },
      ]),
    ),
  amounts: ({ after }) => amountsIn(after, Object.keys(after), 'amount'),
  adjusts: (tx, _seen, _input, { event_id }) => smallDifferencesOf(tx, event_id),
  async report({ result: report, preview: dryRun }, { width }) {
    const { new_lines, event_id: _, ...rest } = report;
    const lines = dryRun ? withoutNewIds(new_lines) : new_lines;
    // A dry run rolls back the exception's id.
    const breaks = dryRun ? rest.breaks.map((each) => ({ ...each, exception: null })) : rest.breaks;
    return {
      json: { ...rest, breaks, dry_run: dryRun, new_lines: lines },
      text: describeImport({ ...report, new_lines: lines }, dryRun, width),
      attention: new_lines.some((line) => line.needs_review) || report.breaks.length > 0,
    };
  },
});

const readStatements = ({ settings }: ActionContext, { file, format, map }: ImportInput) =>
  contentBy(file, () => readBankFileAside({ ...file, format, map }, settings.bank_csv));

type ImportInput = Readonly<{
  file: FileInput;
  format?: string | undefined;
  map?: string | undefined;
}>;

/** Leaves out payment ids that a dry run assigned, because they are rolled back. */
function withoutNewIds(lines: readonly LineReport[]): LineReport[] {
  const own = new Set(lines.filter((line) => line.outcome === 'payment').map((line) => line.payment_id));
  return lines.map((line) => ({
    ...line,
    payment_id: own.has(line.payment_id) ? null : line.payment_id,
    same_as: line.same_as.filter((id) => !own.has(id)),
  }));
}

const OUTCOMES: readonly (readonly [LineReport['outcome'], (count: number) => string])[] = [
  ['payment', (count) => plural(count, 'payment')],
  ['duplicate', (count) => `${count} already recorded`],
  ['payout', (count) => plural(count, 'payout')],
  ['return', (count) => plural(count, 'return')],
  ['refund', (count) => plural(count, 'refund')],
  ['booked', (count) => `${count} booked to bank charges`],
  ['ignored', (count) => `${count} ignored`],
];

function describeImport(report: BankImport, dryRun: boolean, width: number | undefined) {
  if (report.already_imported !== null) {
    return `${report.file} was already imported at ${report.already_imported}. Nothing to do.`;
  }
  const { lines, outcomes, new_lines } = report;
  const text: string[] = [];
  if (new_lines.length > 0) {
    const rows = new_lines.map((line) => [
      line.booked_on,
      `${line.direction === 'debit' ? '-' : ''}${groupThousands(line.amount)}`,
      line.currency,
      line.payer ?? '',
      line.outcome === 'duplicate' ? 'known' : line.outcome,
      whatFor(line),
    ]);
    text.push(table(['booked', '>amount', '', '~payer', 'is', '~for'], rows, width), '');
    for (const line of new_lines) text.push(...chargesOf(line));
    for (const line of new_lines.filter((each) => each.needs_review || each.remark)) {
      text.push(...wrapped(`line ${line.position}, ${amountOf(line, line.amount)}: ${printable(line.why)}`, 80, '  '));
    }
  }
  const charges = Object.entries(report.bank_charges).map(([currency, sum]) => `${groupThousands(sum)} ${currency}`);
  if (charges.length > 0) text.push(`${dryRun ? 'Would write' : 'Wrote'} ${charges.join(', ')} to bank charges.`);
  for (const { exception, reason } of report.breaks) {
    text.push(...wrapped(`${dryRun ? '' : `${exception}: `}${printable(reason)}.`, 80, '  '));
  }
  const pending = report.statements.reduce((sum, each) => sum + each.pending, 0);
  const counts = OUTCOMES.filter(([kind]) => outcomes[kind] > 0).map(([kind, describe]) => describe(outcomes[kind]));
  text.push(
    `${dryRun ? 'Would record' : 'Recorded'} ${lines.new} of ${plural(lines.total, 'line')}` +
      `${counts.length > 0 ? `: ${counts.join(', ')}` : ''}.`,
  );
  if (lines.known > 0) text.push(`${plural(lines.known, 'line was', 'lines were')} imported from an earlier file.`);
  if (pending > 0)
    text.push(
      `${plural(pending, 'entry is', 'entries are')} still pending at the bank and ` +
        `${pending === 1 ? 'was' : 'were'} not recorded. A later file will have them as booked; import that file.`,
    );
  return text.join('\n');
}

const chargesOf = (line: LineReport) =>
  line.applied.flatMap(({ number, small_difference }) =>
    small_difference === null
      ? []
      : wrapped(
          `line ${line.position}: ${amountOf(line, small_difference)} of ${number} is missing and was posted to ` +
            'bank charges ("small_difference" in the settings)',
          80,
          '  ',
        ),
  );

function whatFor(line: LineReport) {
  if (line.applied.length + line.credit.length > 0) {
    return [...new Set([...line.applied, ...line.credit].map((each) => each.number))].join(' ');
  }
  if (line.same_as.length > 0) return `= ${line.same_as[0]}?`;
  if (line.suggested.length > 0) return `${line.suggested[0]?.number}?`;
  return line.payment_id === null ? '' : `payment ${line.payment_id}`;
}
