import type { Month } from '../../../month.ts';
import { readCloseReport } from '../../../reports/close.ts';
import { describeClose } from '../../../reports/close-text.ts';
import { closeSheet } from '../../../reports/sheets.ts';
import {
  type CommandContext,
  type Definition,
  EXIT,
  FORMAT,
  fitted,
  monthArgument,
  OUT,
  outputWidth,
  type PresentOptions,
  present,
  reading,
} from '../../command.ts';

export const define: Definition = (report, action) => {
  report
    .command('close')
    .argument('[month]', 'a closed month (default: the latest)', monthArgument('month'))
    .description('What a close issued, compared with the month before; exit 4 if e-mails are held')
    .option(...FORMAT)
    .option(...OUT)
    .action(action(reading(reportClose)));
};

async function reportClose(
  { database, output }: CommandContext,
  month: Month | undefined,
  options: PresentOptions,
): Promise<number> {
  const report = await database.reading((tx) => readCloseReport(tx, month));
  await present(
    output,
    options,
    report ?? null,
    () => closeSheet(report),
    () => (report === undefined ? 'No month has been closed yet.' : fitted(describeClose(report, outputWidth()))),
  );
  return report !== undefined && report.held.length > 0 ? EXIT.attention : EXIT.done;
}
