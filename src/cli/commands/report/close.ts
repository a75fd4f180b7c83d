/** `reckoner report close`. */
import { EXIT } from '../../../errors/refusals.ts';
import type { Month } from '../../../month.ts';
import { readCloseReport } from '../../../reports/close.ts';
import { describeClose } from '../../../reports/close-text.ts';
import { monthArgument } from '../../arguments.ts';
import { reading } from '../../context.ts';
import { CSV, type Definition } from '../../define.ts';
import type { Output } from '../../output.ts';
import { present, type ReportOptions } from './present.ts';

export const defineClose: Definition = (report, act) => {
  report
    .command('close')
    .argument('[month]', 'a closed month (default: the latest)', monthArgument('month'))
    .description('What a close issued, compared with the month before; exit 4 if e-mails are held')
    .option(...CSV)
    .action(act(reportClose));
};

async function reportClose(output: Output, month: Month | undefined, options: ReportOptions): Promise<number> {
  return reading(async ({ database }) => {
    const report = await database.reading((tx) => readCloseReport(tx, month));
    const columns = ['partner_id', 'currency', 'documents', 'invoice_amount', 'last_month', 'change'];
    present(
      output,
      options,
      report ?? null,
      () => [columns, (report?.partners ?? []).map((row) => ({ ...row, documents: row.documents.join(' ') }))],
      () => (report === undefined ? 'No month has been closed yet.' : describeClose(report)),
    );
    return report !== undefined && report.held.length > 0 ? EXIT.attention : EXIT.done;
  });
}
