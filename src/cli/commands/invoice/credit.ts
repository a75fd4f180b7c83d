/** `reckoner invoice credit`. */
import { invoiceCredit } from '../../../acts/invoice/credit.ts';
import { type Definition, type DeliverOption, NO_DELIVER, ON_LATEST_DATE, REASON } from '../../define.ts';
import { doing } from '../../run-act.ts';

interface CreditOptions extends DeliverOption {
  readonly amount: string;
  readonly reason: string;
  readonly again?: boolean;
  readonly onLatestDate?: boolean;
}

export const define: Definition = (invoice, act) => {
  invoice
    .command('credit <number>')
    .description('Issue a credit note against an invoice')
    .requiredOption('--amount <amount>', "the amount, in the invoice's currency")
    .requiredOption(...REASON)
    .option('--again', 'issue it even if a credit with the same amount and reason exists')
    .option(...ON_LATEST_DATE)
    .option(...NO_DELIVER)
    .action(act(doing(invoiceCredit, (number: string, options: CreditOptions) => ({ number, ...options }))));
};
