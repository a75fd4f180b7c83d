/** `reckoner invoice rerun`. */
import { invoiceRerun } from '../../../acts/invoice/rerun.ts';
import type { Month } from '../../../month.ts';
import { monthArgument } from '../../arguments.ts';
import { type Definition, type DeliverOption, NO_DELIVER, ON_LATEST_DATE } from '../../define.ts';
import { doing } from '../../run-act.ts';

const HELP = `
With a number: replaces the document if it would differ now. Of a void document
without a replacement it issues that. No other document is touched.
With --month: issues what is missing after voids, and lists the documents that
would differ; --changed replaces these too. A replacement keeps the due date of
the document that it replaces, unless --new-terms.`;

export interface RerunArguments extends DeliverOption {
  readonly month?: Month;
  readonly partner?: string;
  readonly changed?: boolean;
  readonly newTerms?: boolean;
  readonly onLatestDate?: boolean;
  readonly dryRun?: boolean;
}

export const define: Definition = (invoice, act) => {
  invoice
    .command('rerun [number]')
    .description('Recompute a document and replace it if it would differ, or reissue a void one')
    .option('--month <month>', 'issue the missing documents of a month', monthArgument('month'))
    .option('--partner <id>', 'with --month: only documents of this partner')
    .option('--changed', 'with --month: also replace documents that would differ')
    .option('--new-terms', "use today's payment terms, counted from today, instead of the old due date")
    .option('--dry-run', 'show the outcome, write nothing')
    .option(...ON_LATEST_DATE)
    .option(...NO_DELIVER)
    .addHelpText('after', HELP)
    .action(
      act(
        doing(invoiceRerun, (number: string | undefined, { partner, ...options }: RerunArguments) => ({
          ...{ number, partnerId: partner, ...options },
        })),
      ),
    );
};
