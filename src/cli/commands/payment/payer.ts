/** `reckoner payment assign`, `reckoner payment accounts` and `reckoner payment forget-account`. */
import { paymentAssign, paymentForgetAccount } from '../../../acts/payment/payer.ts';
import { type PayerAccount, readPayerAccounts } from '../../../payments/payer-accounts.ts';
import { idArgument } from '../../arguments.ts';
import { type CommandContext, type Definition, readingNow } from '../../define.ts';
import { table } from '../../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../../present.ts';
import { doing } from '../../run-act.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('assign')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description("Set or correct a payment's payer: what is unapplied of it becomes that partner's")
    .requiredOption('--partner <id>', 'the partner that paid')
    .action(
      act(
        doing(paymentAssign, (paymentId: number, options: { partner: string }) => ({
          ...{ paymentId, partnerId: options.partner },
        })),
      ),
    );
  payment
    .command('accounts')
    .description('List the bank accounts that payers are known by')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(readingNow(paymentAccounts)));
  payment
    .command('forget-account <account>')
    .description('Forget whose bank account this is; later payments from it are matched without it')
    .action(act(doing(paymentForgetAccount, (account: string) => ({ account }))));
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
