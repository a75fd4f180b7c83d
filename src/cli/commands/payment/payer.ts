/** `reckoner payment assign`, `reckoner payment accounts` and `reckoner payment forget-account`. */
import { failpoint } from '../../../failpoint.ts';
import { assignPayment } from '../../../payments/assign.ts';
import { type PayerAccount, readPayerAccounts } from '../../../payments/payer-accounts.sql.ts';
import { forgetAccount } from '../../../payments/payer-accounts.ts';
import { plural } from '../../../text.ts';
import { idArgument } from '../../arguments.ts';
import { acting, type CommandContext, type Definition } from '../../define.ts';
import { printable, short, table } from '../../output.ts';
import { show } from './describe.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('assign')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description("Set or correct a payment's payer: what is unapplied of it becomes that partner's")
    .requiredOption('--partner <id>', 'the partner that paid')
    .action(act(acting(paymentAssign)));
  payment
    .command('accounts')
    .description('List the bank accounts that payers are known by')
    .action(act(acting(paymentAccounts)));
  payment
    .command('forget-account <account>')
    .description('Forget whose bank account this is; later payments from it are matched without it')
    .action(act(acting(paymentForgetAccount)));
};

async function paymentAssign(
  context: CommandContext,
  paymentId: number,
  { partner: partnerId }: { partner: string },
): Promise<void> {
  const before = await context.database.transaction((tx) => assignPayment(tx, context, { paymentId, partnerId }));
  failpoint('assignment.committed');
  const instead = before === null ? '' : `, not ${before}`;
  return show(context, paymentId, `Payment ${paymentId} was paid by ${partnerId}${instead}.`);
}

async function paymentAccounts({ database, output }: CommandContext): Promise<void> {
  const accounts = await database.reading(readPayerAccounts);
  output.print(accounts, () => (accounts.length === 0 ? 'No payer is known by its account yet.' : listed(accounts)));
}

const listed = (accounts: readonly PayerAccount[]): string =>
  table(
    ['account', 'partner', '>payments', 'last', ''],
    accounts.map((each) => [
      each.payer_account,
      short(each.names.join(', '), 34),
      each.payments,
      each.last_received_on,
      each.partners.length > 1 ? 'several partners: not used' : '',
    ]),
  );

async function paymentForgetAccount(context: CommandContext, account: string): Promise<void> {
  const { database, output } = context;
  const known = await database.transaction((tx) => forgetAccount(tx, context, account));
  output.print(
    known,
    () =>
      `${printable(account)} is forgotten: ${plural(known.payments, 'payment')} of ${known.names.join(' and ')} no longer ` +
      'tell who pays from it. What is applied stays applied.',
  );
}
