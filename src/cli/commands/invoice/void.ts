/** `reckoner invoice void`. */
import { invoiceVoid } from '../../../acts/invoice/void.ts';
import { type Definition, ON_LATEST_DATE, REASON } from '../../define.ts';
import { doing } from '../../run-act.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('void <number>')
    .description('Void a document as of today; its number is kept')
    .requiredOption(...REASON)
    .option(...ON_LATEST_DATE)
    .action(
      act(
        doing(invoiceVoid, (number: string, options: { reason: string; onLatestDate?: boolean }) => ({
          number,
          ...options,
        })),
      ),
    );
};
