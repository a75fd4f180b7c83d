import { todayOf } from '../../../config/today.ts';
import { refuseFutureDay } from '../../../reports/future-day.ts';
import { readRates } from '../../../reports/rates.ts';
import { trialBalanceSheet } from '../../../reports/sheets.ts';
import { describeTrialBalance, readTrialBalance } from '../../../reports/trial-balance.ts';
import {
  AS_OF,
  type AsOfOption,
  type CommandContext,
  type Definition,
  EXIT,
  FORMAT,
  OUT,
  outputWidth,
  type PresentOptions,
  present,
  reading,
} from '../../command.ts';
import { notePreliminary } from './preliminary.ts';

export const define: Definition = (report, action) => {
  report
    .command('trial-balance')
    .description('The balance of every account; exit 4 if debits and credits differ')
    .option('--detail', 'divide accounts by partner, policy and bank account')
    .option(...AS_OF)
    .option('--rates <file>', 'also show the balances in one currency, at the rates of this file')
    .option(...FORMAT)
    .option(...OUT)
    .action(action(reading(reportTrialBalance)));
};

async function reportTrialBalance(
  context: CommandContext,
  options: PresentOptions & AsOfOption & { detail?: boolean; rates?: string },
): Promise<number> {
  const { database, output } = context;
  const rates = options.rates === undefined ? undefined : readRates(options.rates);
  const question = { asOf: options.asOf, today: todayOf(context), detail: options.detail ?? false, rates };
  const trial = await database.reading(async (tx) => {
    await refuseFutureDay(tx, question.asOf, question.today);
    return readTrialBalance(tx, question);
  });
  await present(
    output,
    options,
    trial,
    () => trialBalanceSheet(trial),
    () => describeTrialBalance(trial, outputWidth()),
  );
  notePreliminary(output, options, trial);
  return trial.balanced ? EXIT.done : EXIT.attention;
}
