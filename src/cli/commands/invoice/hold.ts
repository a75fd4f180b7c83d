/** `reckoner invoice hold` and `reckoner invoice release`. */
import { invoiceHold, invoiceRelease } from '../../../acts/invoice/hold.ts';
import { type Definition, type DeliverOption, NO_DELIVER } from '../../define.ts';
import { doing } from '../../run-act.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('hold <number>')
    .description('Stop e-mails and reminders for a document until it is released')
    .option('--reason <reason>', 'why; it is recorded')
    .action(act(doing(invoiceHold, (number: string, options: { reason?: string }) => ({ number, ...options }))));
  invoice
    .command('release <number>')
    .description('Release a document from hold')
    .option(...NO_DELIVER)
    .action(act(doing(invoiceRelease, (number: string, options: DeliverOption) => ({ number, ...options }))));
};
