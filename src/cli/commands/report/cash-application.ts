import { EXIT } from '../../../errors/refusals.ts';
import {
  cashApplicationSheet,
  describeCashApplication,
  readCashApplication,
} from '../../../reports/cash-application.ts';
import { type CommandContext, type Definition, reading } from '../../define.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../../present.ts';

export const define: Definition = (report, action) => {
  report
    .command('cash-application')
    .description('By month, how many credits of bank files were applied automatically, and how many of these rightly')
    .option(...FORMAT)
    .option(...OUT)
    .action(action(reading(reportCashApplication)));
};

async function reportCashApplication({ database, output }: CommandContext, options: PresentOptions): Promise<number> {
  const report = await database.reading(readCashApplication);
  await present(
    output,
    options,
    report,
    () => cashApplicationSheet(report),
    () => describeCashApplication(report),
  );
  return EXIT.done;
}
