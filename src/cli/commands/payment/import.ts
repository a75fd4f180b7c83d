/** `reckoner payment import`. */
import { EXIT } from '../../../errors/refusals.ts';
import { failpoint } from '../../../failpoint.ts';
import { groupThousands } from '../../../money.ts';
import { BANK_FORMATS } from '../../../payments/bank/read.ts';
import { readBankFileAside } from '../../../payments/bank/read-aside.ts';
import { type BankImport, importBankFile } from '../../../payments/bank-import/import.ts';
import type { LineReport } from '../../../payments/bank-import/report.ts';
import { plural } from '../../../text.ts';
import { choiceArgument } from '../../arguments.ts';
import { acting, type Definition, type Done } from '../../define.ts';
import { readInput } from '../../input.ts';
import { type Output, printable, table, wrapped } from '../../output.ts';
import { amountOf } from './describe.ts';

const HELP = `
A file that was already imported changes nothing, and a line that another file
brought is not recorded again. Certain matches are applied; others become
suggestions, which 'reckoner payment apply ID --invoice NUMBER' accepts. Exit
status 4: a line needs manual review, or a statement does not continue what is
known of its account.`;

const FORMATS = BANK_FORMATS.map(({ name }) => name);

export const define: Definition = (payment, act) => {
  payment
    .command('import <file>')
    .description("Import a bank file, all of it or nothing, and match its lines; '-' is stdin")
    .option('--format <format>', `${FORMATS.join(', ')} (default: detected)`, choiceArgument('--format', FORMATS))
    .option('--map <name>', 'for CSV: a column map of the settings ("bank_csv")')
    .option('--dry-run', 'check and match everything, record nothing')
    .addHelpText('after', HELP)
    .action(act(paymentImport));
};

function paymentImport(
  output: Output,
  name: string,
  options: { format?: string; map?: string; dryRun?: boolean },
): Done {
  const bytes = readInput(name);
  const { dryRun = false, format, map } = options;
  return acting(async (context) => {
    const { database } = context;
    const work = dryRun ? database.preview : database.transaction;
    const file = { name, bytes, format, map };
    // Before the transaction: while a file is read, none is open.
    const read = await readBankFileAside(file, context.settings.bank_csv);
    const report = await work((tx) => importBankFile(tx, context, file, read));
    failpoint('payments.committed');
    const { new_lines, ...rest } = report;
    const lines = dryRun ? withoutNewIds(new_lines) : new_lines;
    // A dry run rolls back the statement's id.
    const breaks = dryRun ? rest.breaks.map((each) => ({ ...each, exception: null })) : rest.breaks;
    output.print({ ...rest, breaks, dry_run: dryRun, new_lines: lines }, () =>
      describeImport({ ...report, new_lines: lines }, dryRun),
    );
    return new_lines.some((line) => line.needs_review) || report.breaks.length > 0 ? EXIT.attention : EXIT.done;
  })(output);
}

/** A dry run rolls back the payment ids that it assigned, so they are left out of its report. */
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
  ['ignored', (count) => `${count} ignored`],
];

function describeImport(report: BankImport, dryRun: boolean): string {
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
    text.push(table(['booked', '>amount', '', '~payer', 'is', '~for'], rows), '');
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
      `${plural(pending, 'entry is', 'entries are')} still pending at the bank and ${pending === 1 ? 'was' : 'were'} not ` +
        'recorded. A later file has them once the bank has booked them; import that file.',
    );
  return text.join('\n');
}

/** What a payment was short and was written to bank charges, which settles the invoice. */
const chargesOf = (line: LineReport): string[] =>
  line.applied.flatMap(({ number, small_difference }) =>
    small_difference === null
      ? []
      : wrapped(
          `line ${line.position}: ${amountOf(line, small_difference)} of ${number} is missing and written to bank charges ` +
            '("small_difference" in the settings)',
          80,
          '  ',
        ),
  );

function whatFor(line: LineReport): string {
  if (line.applied.length + line.credit.length > 0) {
    return [...new Set([...line.applied, ...line.credit].map((each) => each.number))].join(' ');
  }
  if (line.same_as.length > 0) return `= ${line.same_as[0]}?`;
  if (line.suggested.length > 0) return `${line.suggested[0]?.number}?`;
  return line.payment_id === null ? '' : `payment ${line.payment_id}`;
}
