/** `reckoner report trial-balance`. */

import { todayOf } from '../../../config/today.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { groupThousands } from '../../../money.ts';
import { dateName } from '../../../month.ts';
import { refuseFutureDay } from '../../../reports/journal.ts';
import { preliminaryNote } from '../../../reports/preliminary.ts';
import { trialBalanceSheet } from '../../../reports/sheets.ts';
import { readTrialBalance, type TrialBalance } from '../../../reports/trial-balance.ts';
import { AS_OF, type AsOfOption, type CommandContext, type Definition, reading } from '../../define.ts';
import { table } from '../../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../../present.ts';
import { notePreliminary } from './preliminary.ts';

export const define: Definition = (report, act) => {
  report
    .command('trial-balance')
    .description('The balance of every account; exit 4 if debits and credits differ')
    .option('--detail', 'by partner, policy and bank account')
    .option(...AS_OF)
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(reportTrialBalance)));
};

async function reportTrialBalance(
  context: CommandContext,
  options: PresentOptions & AsOfOption & { detail?: boolean },
): Promise<number> {
  const { database, output } = context;
  const question = { asOf: options.asOf, today: todayOf(context), detail: options.detail ?? false };
  const trial = await database.reading(async (tx) => {
    await refuseFutureDay(tx, question.asOf, question.today);
    return readTrialBalance(tx, question);
  });
  await present(
    output,
    options,
    trial,
    () => trialBalanceSheet(trial),
    () => describeTrialBalance(trial),
  );
  notePreliminary(output, options, trial);
  return trial.balanced ? EXIT.done : EXIT.attention;
}

export function describeTrialBalance(trial: TrialBalance): string {
  const { as_of, accounts, totals, balanced } = trial;
  if (accounts.length === 0)
    return [`All accounts are zero as of ${dateName(as_of)}.`, ...preliminaryNote(trial)].join('\n');
  const shown = (amount: string) => (Number(amount) === 0 ? '' : groupThousands(amount));
  const parts = totals.map((total) =>
    table(
      [`~account, ${total.currency}`, '>debit', '>credit'],
      [
        ...accounts
          .filter((each) => each.currency === total.currency)
          .map((each) => [each.account, shown(each.debit), shown(each.credit)]),
        ['total', groupThousands(total.debit), groupThousands(total.credit)],
      ],
    ),
  );
  const verdict = balanced
    ? 'Debits equal credits in every currency.'
    : "DEBITS DO NOT EQUAL CREDITS. Do not rely on these figures; run 'reckoner verify'.";
  return [[`Trial balance as of ${dateName(as_of)}`, ...preliminaryNote(trial)].join('\n'), ...parts, verdict].join(
    '\n\n',
  );
}
