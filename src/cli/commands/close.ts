import { monthClose } from '#actions/close';
import { readInput } from '#actions/run';
import {
  amount,
  CommandContext,
  checkPresentable,
  Definition,
  DeliverOption,
  EXIT,
  FORMAT,
  fitted,
  NO_DELIVER,
  OUT,
  PresentOptions,
  present,
  printable,
  readingNow,
  refuse,
  table,
} from '#cli/command';
import { addFields, givenTo, readInput as readFile } from '#cli/fields';
import { doing } from '#cli/run-action';
import { COMPARED, ComparedLine, compareInvoices, parseInvoiced } from '#close/compare';
import { previewClose } from '#close/run';
import { Sheet } from '#sheet';
import { Month, plural } from '#values';

type CloseOptions = DeliverOption & PresentOptions & Readonly<{ dryRun?: boolean; compare?: string }>;

export const define: Definition = (command, action) => {
  addFields(command, monthClose.input, monthClose.command);
  command
    .option('--dry-run', 'show what would be issued; write nothing; also for the current month')
    .option('--compare <file>', "with --dry-run: compare the result with the previous system's invoices; '-' is stdin")
    .option(...FORMAT)
    .option(...OUT)
    .option(...NO_DELIVER)
    .action(
      action((output, ...values: unknown[]) => {
        const { compare, ...options } = values.at(-1) as CloseOptions;
        const input = givenTo(monthClose.input, { values, options }, monthClose.command);
        return compare === undefined
          ? closing(output, input, options)
          : readingNow(comparing)(output, input, { ...options, compare });
      }),
    );
};

const closing = doing(monthClose, (input: object, { format, out, deliver, dryRun }: CloseOptions) => {
  if (format !== undefined || out !== undefined) throw usage('--format and --out require --compare');
  return { ...input, deliver, dryRun };
});

const usage = (reason: string) => refuse('usage', { reason, command: 'close' });

/** Exit 4: a line differs from the previous system's invoices. */
async function comparing(
  context: CommandContext,
  given: object,
  { compare, dryRun, ...options }: CloseOptions & { compare: string },
): Promise<number> {
  const { database, output } = context;
  const input = readInput(monthClose, given);
  const { month } = input;
  if (!dryRun || month === undefined) throw usage("'close --compare' needs a month and --dry-run");
  checkPresentable(output, options);
  const invoiced = parseInvoiced({ name: compare, bytes: readFile(compare) });
  const { documents } = await previewClose(database, context, input);
  const billed = documents.filter(({ purpose, document }) => purpose === 'month' && document !== 'statement');
  const lines = compareInvoices(billed, invoiced);
  const equal = lines.every(({ result }) => result === 'equal');
  await present(
    context,
    null,
    options,
    { month, equal, lines },
    () => sheetOf(lines),
    () => described(month, lines),
  );
  return equal ? EXIT.done : EXIT.attention;
}

const sheetOf = (lines: readonly ComparedLine[]): Sheet => ({
  name: 'Comparison',
  columns: {
    ...{ partner_id: 'text', policy_id: 'text', currency: 'text' },
    ...{ here: 'amount', there: 'amount', difference: 'amount', result: 'text' },
  },
  rows: lines,
});

function described(month: Month, lines: readonly ComparedLine[]) {
  const shown = (text: string | null, currency: string) => (text === null ? '' : amount(text, currency));
  const rows = lines.map(({ partner_id, policy_id, currency, here, there, difference, result }) => [
    ...[printable(partner_id), printable(policy_id), shown(here, currency), shown(there, currency)],
    ...[amount(difference, currency), currency, result],
  ]);
  const counts = COMPARED.map((each) => [each, lines.filter(({ result }) => result === each).length] as const);
  const said = counts.filter(([, count]) => count > 0).map(([each, count]) => `${count} ${each}`);
  return [
    table(['~partner', '~policy', '>here', '>there', '>difference', '', 'is'], rows),
    fitted(
      `${month}: ${plural(lines.length, 'line')}${said.length > 0 ? `, ${said.join(', ')}` : ''}. Nothing was closed.`,
    ),
  ].join('\n\n');
}
