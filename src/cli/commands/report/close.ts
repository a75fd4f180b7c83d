import { CommandContext, Definition, fitted, monthArgument, outputWidth } from '#cli/command';
import { showing } from '#cli/report-command';
import { Month } from '#month';
import { readCloseReport } from '#reports/close';
import { describeClose } from '#reports/close-text';
import { closeSheet } from '#reports/sheets';

export const define: Definition = (report, action) => {
  showing(
    report
      .command('close')
      .argument('[month]', 'a closed month (default: the latest)', monthArgument('month'))
      .description('Compare a close with the month before; exit 4 if e-mails are held'),
    action,
    reportClose,
  );
};

async function reportClose({ database }: CommandContext, month: Month | undefined) {
  const report = await database.reading((tx) => readCloseReport(tx, month));
  return {
    json: report ?? null,
    sheet: () => closeSheet(report),
    text: () => (report === undefined ? 'No month has been closed yet.' : fitted(describeClose(report, outputWidth()))),
    attention: report !== undefined && report.held.length > 0,
  };
}
