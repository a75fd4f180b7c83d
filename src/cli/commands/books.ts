import { booksClose, checkWithout, reportBooks } from '#actions/books';
import { blocksText } from '#blocks';
import {
  acting,
  CommandContext,
  Definition,
  DeliverOption,
  EXIT,
  monthArgument,
  NO_DELIVER,
  outputWidth,
  REASON,
  repeatedArgument,
} from '#cli/command';
import { inFull } from '#cli/remedies';
import { runCommand } from '#cli/run-action';
import { Month } from '#month';

export const define: Definition = (books, action) => {
  books
    .command('close')
    .argument('<month>', 'YYYY-MM, closed for billing', monthArgument('month'))
    .description('Close the books of a month: nothing more can be dated in it, and its balances are kept')
    .option('--without <account>', 'a bank account that no longer reports; repeatable', repeatedArgument)
    .option(...REASON)
    .option('--dry-run', 'show the balances and anything that is missing; write nothing')
    .option(...NO_DELIVER)
    .action(action(acting(closeBooks)));
};

type BooksCloseOptions = DeliverOption &
  Readonly<{
    without?: string[];
    reason?: string;
    dryRun?: boolean;
  }>;

async function closeBooks(context: CommandContext, month: Month, options: BooksCloseOptions) {
  const { dryRun = false, deliver, without, reason } = options;
  const input = { month, without, reason };
  if (!dryRun) return runCommand(context, booksClose, input, { deliver });
  checkWithout(input);
  const report = await context.database.reading((tx) => reportBooks(tx, context, input, { dryRun, now: false }));
  const blocks = blocksText(report.blocks ?? [], outputWidth());
  const text = await inFull({ ...report, text: `${report.text}\n\n${blocks}\n\nPreview only: nothing was written.` });
  context.output.print(report.json, () => text);
  return report.attention ? EXIT.attention : EXIT.done;
}
