/** `reckoner report trial-balance`. */
import { todayOf } from '../../../config/today.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { groupThousands } from '../../../money.ts';
import { dateName } from '../../../month.ts';
import { readTrialBalance, type TrialBalance } from '../../../reports/trial-balance.ts';
import { AS_OF, type CommandContext, CSV, type Definition, reading } from '../../define.ts';
import { short, table } from '../../output.ts';
import { present, type ReportOptions } from './present.ts';

export const define: Definition = (report, act) => {
  report
    .command('trial-balance')
    .description('The balance of every account; exit 4 if debits and credits differ')
    .option('--detail', 'by partner, policy and bank account')
    .option(...AS_OF)
    .option(...CSV)
    .action(act(reading(reportTrialBalance)));
};

async function reportTrialBalance(
  context: CommandContext,
  options: ReportOptions & { detail?: boolean },
): Promise<number> {
  const { database, output } = context;
  const question = { asOf: options.asOf, today: todayOf(context), detail: options.detail ?? false };
  const trial = await database.reading((tx) => readTrialBalance(tx, question));
  const columns = ['account', 'currency', 'debit', 'credit'];
  present(
    output,
    options,
    trial,
    () => [columns, trial.accounts],
    () => describeTrialBalance(trial),
  );
  return trial.balanced ? EXIT.done : EXIT.attention;
}

function describeTrialBalance({ as_of, accounts, totals, balanced }: TrialBalance): string {
  if (accounts.length === 0) return `All accounts are zero as of ${dateName(as_of)}.`;
  const shown = (amount: string) => (Number(amount) === 0 ? '' : groupThousands(amount));
  const parts = totals.map((total) =>
    table(
      [`account, ${total.currency}`, '>debit', '>credit'],
      [
        ...accounts
          .filter((each) => each.currency === total.currency)
          .map((each) => [short(each.account, 40), shown(each.debit), shown(each.credit)]),
        ['total', groupThousands(total.debit), groupThousands(total.credit)],
      ],
    ),
  );
  const verdict = balanced
    ? 'Debits equal credits in every currency.'
    : "DEBITS DO NOT EQUAL CREDITS. Do not rely on these figures; run 'reckoner verify'.";
  return [`Trial balance as of ${dateName(as_of)}`, ...parts, verdict].join('\n\n');
}
