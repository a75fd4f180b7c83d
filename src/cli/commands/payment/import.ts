/** `reckoner payment import`. */
import { EXIT } from '../../../errors/refusals.ts';
import { failpoint } from '../../../failpoint.ts';
import { groupThousands } from '../../../money.ts';
import { BANK_FORMATS } from '../../../payments/bank/read.ts';
import { type BankImport, importBankFile } from '../../../payments/bank-import/import.ts';
import type { LineReport } from '../../../payments/bank-import/report.ts';
import { choiceArgument } from '../../arguments.ts';
import { acting } from '../../context.ts';
import type { Definition } from '../../define.ts';
import { readInput } from '../../input.ts';
import { type Output, printable, short, table, wrapped } from '../../output.ts';
import { amountOf } from './describe.ts';

const HELP = `
A file that was already imported changes nothing, and a line that another file
brought is not recorded again. Certain matches are applied; others become
suggestions, which 'reckoner payment apply' accepts. Exit status 4: a line needs
manual review.`;

const FORMATS = BANK_FORMATS.map(({ name }) => name);

export const defineImport: Definition = (payment, act) => {
  payment
    .command('import <file>')
    .description("Import a bank file, all of it or nothing, and match its lines; '-' is stdin")
    .option('--format <format>', `${FORMATS.join(', ')} (default: detected)`, choiceArgument('--format', FORMATS))
    .option('--map <name>', 'for CSV: a column map of the settings ("bank_csv")')
    .option('--dry-run', 'check and match everything, record nothing')
    .addHelpText('after', HELP)
    .action(act(paymentImport));
};

export interface PaymentImportOptions {
  readonly format?: string;
  readonly map?: string;
  readonly dryRun?: boolean;
}

export async function paymentImport(output: Output, name: string, options: PaymentImportOptions): Promise<number> {
  const bytes = readInput(name);
  const { dryRun = false, format, map } = options;
  return acting(output, async (context) => {
    const { database } = context;
    const work = dryRun ? database.preview : database.transaction;
    const report = await work((tx) => importBankFile(tx, context, { name, bytes, format, map }));
    failpoint('payments.committed');
    const { new_lines, ...rest } = report;
    const lines = dryRun ? withoutNewIds(new_lines) : new_lines;
    output.print({ ...rest, dry_run: dryRun, new_lines: lines }, () =>
      describeImport({ ...report, new_lines: lines }, dryRun),
    );
    return new_lines.some((line) => line.needs_review) ? EXIT.attention : EXIT.done;
  });
}

/** The ids that a dry run gives are undone with it, and the next payments have them: those that were there are told. */
function withoutNewIds(lines: readonly LineReport[]): LineReport[] {
  const own = new Set(lines.filter((line) => line.outcome === 'payment').map((line) => line.payment_id));
  return lines.map((line) => ({
    ...line,
    payment_id: own.has(line.payment_id) ? null : line.payment_id,
    same_as: line.same_as.filter((id) => !own.has(id)),
  }));
}

const OUTCOMES: readonly (readonly [LineReport['outcome'], string])[] = [
  ['payment', 'payment(s)'],
  ['seen_again', 'known already'],
  ['payout', 'payout(s)'],
  ['return', 'return(s)'],
  ['ignored', 'no payment'],
];

function describeImport(report: BankImport, dryRun: boolean): string {
  if (report.already_imported !== null) {
    return `${report.file} was imported at ${report.already_imported}: nothing to do.`;
  }
  const { lines, outcomes, new_lines } = report;
  const text: string[] = [];
  if (new_lines.length > 0) {
    const rows = new_lines.map((line) => [
      line.booked_on,
      `${line.direction === 'debit' ? '-' : ''}${groupThousands(line.amount)}`,
      line.currency,
      short(line.payer ?? '', 18),
      line.outcome === 'seen_again' ? 'known' : line.outcome,
      short(whatFor(line), 24),
    ]);
    text.push(table(['booked', '>amount', '', 'payer', 'is', 'for'], rows), '');
    for (const line of new_lines.filter((each) => each.needs_review)) {
      text.push(...wrapped(`line ${line.position}, ${amountOf(line, line.amount)}: ${printable(line.why)}`, 80, '  '));
    }
  }
  const pending = report.statements.reduce((sum, each) => sum + each.pending, 0);
  const told = OUTCOMES.filter(([kind]) => outcomes[kind] > 0).map(([kind, label]) => `${outcomes[kind]} ${label}`);
  text.push(
    `${dryRun ? 'Would record' : 'Recorded'} ${lines.new} of ${lines.total} line(s)${told.length > 0 ? `: ${told.join(', ')}` : ''}.`,
  );
  if (lines.known > 0) text.push(`${lines.known} line(s) were known from earlier files.`);
  if (pending > 0) text.push(`${pending} entr(ies) are announced and not booked; they come again when they are.`);
  return text.join('\n');
}

function whatFor(line: LineReport): string {
  if (line.applied.length > 0) return line.applied.map((each) => each.number).join(' ');
  if (line.same_as.length > 0) return `= ${line.same_as[0]}?`;
  if (line.suggested.length > 0) return `${line.suggested[0]?.number}?`;
  return line.payment_id === null ? '' : `payment ${line.payment_id}`;
}
