/** `reckoner invoice resend`. */
import { invoiceResend } from '../../../acts/invoice/resend.ts';
import { type Definition, type DeliverOption, NO_DELIVER } from '../../define.ts';
import { doing } from '../../run-act.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('resend <number>')
    .description('E-mail a document again')
    .option('--to <address>', "send to this address instead of the partner's contacts")
    .option(...NO_DELIVER)
    .action(
      act(doing(invoiceResend, (number: string, options: { to?: string } & DeliverOption) => ({ number, ...options }))),
    );
};
