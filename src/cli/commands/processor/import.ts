/** `reckoner processor import`. */
import { refuse } from '../../../errors/refusals.ts';
import { type ImportReport, importBalanceTransactions, importSettlement } from '../../../splits/import.ts';
import { plural } from '../../../text.ts';
import { acting, type Definition, type Done } from '../../define.ts';
import { readInput } from '../../input.ts';
import type { Output } from '../../output.ts';

export const define: Definition = (processor, act) => {
  processor
    .command('import <file>')
    .description("Import a partner's settlement file, or balance transactions as NDJSON; '-' is stdin")
    .option('--partner <id>', "this partner's settlement file (quote_id, transfer, payment, amount)")
    .option('--account <id>', 'balance transactions of this account, with the source expanded')
    .action(act(processorImport));
};

function processorImport(output: Output, name: string, options: { partner?: string; account?: string }): Done {
  const { partner, account } = options;
  if ((partner === undefined) === (account === undefined)) {
    const reason = "'processor import' takes --partner with a settlement file, or --account with balance transactions";
    throw refuse('usage', { reason });
  }
  const file = { name, text: readInput(name).toString('utf8') };
  return acting(async (context) => {
    const report = await context.database.transaction((tx) =>
      partner === undefined
        ? importBalanceTransactions(tx, context, file, account as string)
        : importSettlement(tx, context, file, partner),
    );
    output.print(report, () => describedImport(report));
  })(output);
}

export const describedImport = ({ read, recorded, duplicates, matched }: ImportReport): string =>
  `${read} read: ${recorded} recorded, ${plural(duplicates, 'duplicate')}; ${plural(matched, 'transfer')} matched to quotes.`;
