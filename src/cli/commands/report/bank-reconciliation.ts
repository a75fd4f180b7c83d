import { todayOf } from '../../../config/today.ts';
import {
  bankReconciliationSheet,
  describeBankReconciliation,
  readBankReconciliation,
} from '../../../reports/bank-reconciliation.ts';
import { refuseFutureDay } from '../../../reports/future-day.ts';
import {
  type CommandContext,
  type Definition,
  dateArgument,
  EXIT,
  FORMAT,
  OUT,
  outputWidth,
  type PresentOptions,
  present,
  reading,
} from '../../command.ts';

export const define: Definition = (report, action) => {
  report
    .command('bank-reconciliation')
    .description('How the books lead to the balance of each bank account; exit 4 if one does not tie')
    .option('--account <account>', 'only this bank account')
    .option('--on <YYYY-MM-DD>', 'the day (default: today)', dateArgument('--on'))
    .option(...FORMAT)
    .option(...OUT)
    .action(action(reading(reportBankReconciliation)));
};

async function reportBankReconciliation(
  context: CommandContext,
  options: PresentOptions & { account?: string; on?: string },
): Promise<number> {
  const { database, output } = context;
  const today = todayOf(context);
  const found = await database.reading(async (tx) => {
    await refuseFutureDay(tx, options.on, today, '--on');
    return readBankReconciliation(tx, { on: options.on, account: options.account, today });
  });
  await present(
    output,
    options,
    found,
    () => bankReconciliationSheet(found),
    () => describeBankReconciliation(found, outputWidth()),
  );
  return found.ties ? EXIT.done : EXIT.attention;
}
