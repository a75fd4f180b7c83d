import { monthClose } from '#actions/close';
import {
  amount,
  CommandContext,
  checkPresentable,
  Definition,
  DeliverOption,
  EXIT,
  FORMAT,
  fitted,
  monthArgument,
  NO_DELIVER,
  OUT,
  PresentOptions,
  present,
  printable,
  readingNow,
  refuse,
  repeatedArgument,
  table,
} from '#cli/command';
import { readInput } from '#cli/fields';
import { doing } from '#cli/run-action';
import { COMPARED, ComparedLine, compareInvoices, parseInvoiced } from '#close/compare';
import { previewClose } from '#close/run';
import { Sheet } from '#sheet';
import { Month, plural } from '#values';

type CloseOptions = DeliverOption &
  PresentOptions &
  Readonly<{
    firstMonth?: Month;
    dryRun?: boolean;
    without?: string[];
    acceptFeed?: string[];
    allowEmpty?: boolean;
    compare?: string;
  }>;

export const define: Definition = (command, action) => {
  command
    .argument('[month]', 'YYYY-MM (default: all months that are due)', monthArgument('month'))
    .option(
      '--first-month <month>',
      'the first month that is billed here; only at the first close',
      monthArgument('--first-month'),
    )
    .option('--without <partner>', 'close even though this partner sent no rows; repeatable', repeatedArgument)
    .option(
      '--accept-feed <partner>',
      "close although this partner's rows contradict its totals, are incomplete or came twice; repeatable",
      repeatedArgument,
    )
    .option('--allow-empty', 'close without the missing feeds, or without any rows')
    .option('--dry-run', 'show what would be issued; write nothing; also for the current month')
    .option('--compare <file>', "with --dry-run: compare the result with the previous system's invoices; '-' is stdin")
    .option(...FORMAT)
    .option(...OUT)
    .option(...NO_DELIVER)
    .action(
      action((output, month: Month | undefined, options: CloseOptions) =>
        options.compare === undefined
          ? closing(output, month, options)
          : readingNow(comparing)(output, month, options as CloseOptions & { compare: string }),
      ),
    );
};

const closing = doing(monthClose, (month: Month | undefined, { compare: _, format, out, ...options }: CloseOptions) => {
  if (format !== undefined || out !== undefined) throw usage('--format and --out require --compare');
  return { month, ...options };
});

const usage = (reason: string) => refuse('usage', { reason, command: 'close' });

/** Exit 4: a line differs from the previous system's invoices. */
async function comparing(
  { database, output, ...context }: CommandContext,
  month: Month | undefined,
  { compare, firstMonth, without, acceptFeed, allowEmpty, dryRun, ...options }: CloseOptions & { compare: string },
): Promise<number> {
  if (!dryRun || month === undefined) throw usage("'close --compare' needs a month and --dry-run");
  checkPresentable(output, options);
  const invoiced = parseInvoiced({ name: compare, bytes: readInput(compare) });
  const { documents } = await previewClose(database, context, { month, firstMonth, without, acceptFeed, allowEmpty });
  const billed = documents.filter(({ purpose, document }) => purpose === 'month' && document !== 'statement');
  const lines = compareInvoices(billed, invoiced);
  const equal = lines.every(({ result }) => result === 'equal');
  await present(
    output,
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
