import { describedImport } from '#actions/processor/import';
import { acting, CommandContext, Context, Definition } from '#cli/command';
import { accountKeyVariable } from '#config/environment';
import { readConnectedAccounts } from '#splits/accounts.sql';
import { AccountReading, accessTo, readAccount } from '#splits/poll';

export const define: Definition = (processor, action) => {
  processor
    .command('poll')
    .description('Read new balance transactions of our connected accounts from the processor')
    .option('--account <id>', `only this account (default: every account with ${accountKeyVariable('<account>')} set)`)
    .action(action(acting(processorPoll, 'finance')));
};

async function processorPoll(context: CommandContext, { account }: { account?: string }) {
  const { database, environment, output } = context;
  const accounts = account === undefined ? await accountsToRead(context) : [account];
  const readings: AccountReading[] = [];
  for (const each of accounts) readings.push(await readAccount(database, context, accessTo(environment, each)));
  output.print(readings, () =>
    readings.length === 0
      ? 'No accounts to read: no connected account has a key.'
      : readings.map((each) => `${each.account}: ${describedImport(each)}`).join('\n'),
  );
}

/** The connected accounts whose API key is configured. */
export async function accountsToRead({ database, environment }: Context) {
  const accounts = await database.reading((tx) => readConnectedAccounts(tx));
  return accounts.map(({ account }) => account).filter((account) => environment.connectedKeys.has(account));
}
