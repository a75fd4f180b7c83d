/** `reckoner processor poll`. */
import { accountKeyVariable } from '../../../config/environment.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { readConnectedAccounts } from '../../../splits/accounts.sql.ts';
import { type AccountReading, accessTo, readAccount } from '../../../splits/poll.ts';
import { type Context, withContext } from '../../context.ts';
import type { Definition } from '../../define.ts';
import type { Output } from '../../output.ts';
import { describedImport } from './import.ts';

export const definePoll: Definition = (processor, act) => {
  processor
    .command('poll')
    .description('Read new balance transactions of our connected accounts from the processor')
    .option('--account <id>', `only this account (default: every account with ${accountKeyVariable('<account>')} set)`)
    .action(act(processorPoll));
};

async function processorPoll(output: Output, { account }: { account?: string }): Promise<number> {
  return withContext(
    async (context) => {
      const { database, environment } = context;
      const accounts = account === undefined ? await accountsToRead(context) : [account];
      const readings: AccountReading[] = [];
      for (const each of accounts) readings.push(await readAccount(database, context, accessTo(environment, each)));
      output.print(readings, () =>
        readings.length === 0
          ? 'No accounts to read: no connected account has a key.'
          : readings.map((each) => `${each.account}: ${describedImport(each)}`).join('\n'),
      );
      return EXIT.done;
    },
    { by: output.by },
  );
}

/** The connected accounts that there is a key for. */
export async function accountsToRead({ database, environment }: Context): Promise<string[]> {
  const accounts = await database.reading((tx) => readConnectedAccounts(tx));
  return accounts.map(({ account }) => account).filter((account) => environment.connectedKeys.has(account));
}
