/** `reckoner payment accounts`. */
import { type PayerAccount, readPayerAccounts } from '../../../payments/payer-accounts.ts';
import { type CommandContext, type Definition, readingNow } from '../../define.ts';
import { table } from '../../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../../present.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('accounts')
    .description('List the bank accounts that payers are known by')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(readingNow(paymentAccounts)));
};

async function paymentAccounts({ database, output }: CommandContext, options: PresentOptions): Promise<void> {
  const accounts = await database.reading(readPayerAccounts);
  await present(
    output,
    options,
    accounts,
    () => ({
      name: 'Payer accounts',
      columns: {
        payer_account: 'text',
        partner_ids: 'text',
        names: 'text',
        payments: 'count',
        last_received_on: 'date',
      },
      rows: accounts.map((each) => ({ ...each, partner_ids: each.partners.join(' '), names: each.names.join(', ') })),
    }),
    () => (accounts.length === 0 ? 'No payer is known by its account yet.' : listed(accounts)),
  );
}

const listed = (accounts: readonly PayerAccount[]): string =>
  table(
    ['account', '~partner', '>payments', 'last', ''],
    accounts.map((each) => [
      each.payer_account,
      each.names.join(', '),
      each.payments,
      each.last_received_on,
      each.partners.length > 1 ? 'several partners: not used' : '',
    ]),
  );
