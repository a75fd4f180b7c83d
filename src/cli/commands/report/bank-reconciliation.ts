import { CommandContext, Definition, dateArgument, outputWidth, PresentOptions } from '#cli/command';
import { showing } from '#cli/report-command';
import { todayOf } from '#config/today';
import {
  bankReconciliationSheet,
  describeBankReconciliation,
  readBankReconciliation,
} from '#reports/bank-reconciliation';
import { refuseFutureDay } from '#reports/future-day';

export const define: Definition = (report, action) => {
  showing(
    report
      .command('bank-reconciliation')
      .description('Reconcile each bank account with the books; exit 4 if one does not tie')
      .option('--account <account>', 'only this bank account')
      .option('--on <YYYY-MM-DD>', 'the day (default: today)', dateArgument('--on')),
    action,
    reportBankReconciliation,
  );
};

async function reportBankReconciliation(
  context: CommandContext,
  options: PresentOptions & { account?: string; on?: string },
) {
  const { database } = context;
  const today = todayOf(context);
  const found = await database.reading(async (tx) => {
    await refuseFutureDay(tx, options.on, today, '--on');
    return readBankReconciliation(tx, { on: options.on, account: options.account, today });
  });
  return {
    json: found,
    sheet: () => bankReconciliationSheet(found),
    text: () => describeBankReconciliation(found, outputWidth()),
    attention: found.ties === false,
  };
}
