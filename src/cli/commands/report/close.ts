/** `reckoner report close`. */
import { EXIT } from '../../../errors/refusals.ts';
import type { Month } from '../../../month.ts';
import { readCloseReport } from '../../../reports/close.ts';
import { describeClose } from '../../../reports/close-text.ts';
import { monthArgument } from '../../arguments.ts';
import { type CommandContext, CSV, type Definition, reading } from '../../define.ts';
import { present, type ReportOptions } from './present.ts';

export const define: Definition = (report, act) => {
  report
    .command('close')
    .argument('[month]', 'a closed month (default: the latest)', monthArgument('month'))
    .description('What a close issued, compared with the month before; exit 4 if e-mails are held')
    .option(...CSV)
    .action(act(reading(reportClose)));
};

async function reportClose(
  { database, output }: CommandContext,
  month: Month | undefined,
  options: ReportOptions,
): Promise<number> {
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
}
