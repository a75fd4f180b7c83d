import {
  CommandContext,
  Definition,
  dateArgument,
  EXIT,
  FORMAT,
  OUT,
  PresentOptions,
  present,
  reading,
} from '#cli/command';
import { todayOf } from '#config/today';
import { describePosition, positionSheet, readPosition } from '#reports/position';

export const define: Definition = (report, action) => {
  report
    .command('position')
    .description('Show changes, cash by week, the largest debtors and days sales outstanding')
    .option('--since <YYYY-MM-DD>', 'changes since this day (default: the last working day)', dateArgument('--since'))
    .option(...FORMAT)
    .option(...OUT)
    .action(action(reading(reportPosition)));
};

async function reportPosition(context: CommandContext, options: PresentOptions & { since?: string }): Promise<number> {
  const { database } = context;
  const asked = { since: options.since, today: todayOf(context) };
  const found = await database.reading((tx) => readPosition(tx, context, asked));
  await present(
    context,
    'report position',
    options,
    found,
    () => positionSheet(found),
    () => describePosition(found),
  );
  return EXIT.done;
}
