import { AS_OF, AsOfOption, CommandContext, Definition, outputWidth, PresentOptions } from '#cli/command';
import { showing } from '#cli/report-command';
import { todayOf } from '#config/today';
import { refuseFutureDay } from '#reports/future-day';
import { trialBalanceSheet } from '#reports/sheets';
import { describeTrialBalance, readTrialBalance } from '#reports/trial-balance';

export const define: Definition = (report, action) => {
  showing(
    report
      .command('trial-balance')
      .description('Show the balance of every account; exit 4 if debits and credits differ')
      .option('--detail', 'divide accounts by partner, policy and bank account')
      .option(...AS_OF),
    action,
    reportTrialBalance,
  );
};

async function reportTrialBalance(
  context: CommandContext,
  options: PresentOptions & AsOfOption & { detail?: boolean },
) {
  const { database } = context;
  const question = { asOf: options.asOf, today: todayOf(context), detail: options.detail ?? false };
  const trial = await database.reading(async (tx) => {
    await refuseFutureDay(tx, question.asOf, question.today);
    return readTrialBalance(tx, question);
  });
  return {
    json: trial,
    sheet: () => trialBalanceSheet(trial),
    text: () => describeTrialBalance(trial, outputWidth()),
    attention: !trial.balanced,
    day: trial,
  };
}
