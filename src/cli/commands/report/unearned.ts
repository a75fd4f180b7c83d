import { AS_OF, AsOfOption, CommandContext, Definition, outputWidth, PresentOptions } from '#cli/command';
import { showing } from '#cli/report-command';
import { todayOf } from '#config/today';
import { readPresentDay } from '#reports/balances.sql';
import { refuseFutureDay } from '#reports/future-day';
import { describeUnearned, readUnearned, unearnedSheet } from '#reports/unearned';

export const define: Definition = (report, action) => {
  showing(
    report
      .command('unearned')
      .description('Show unearned sales by partner and policy; exit 4 if they do not tie to the journal')
      .option(...AS_OF),
    action,
    reportUnearned,
  );
};

async function reportUnearned(context: CommandContext, { asOf }: PresentOptions & AsOfOption) {
  const today = todayOf(context);
  const report = await context.database.reading(async (tx) => {
    await refuseFutureDay(tx, asOf, today);
    return readUnearned(tx, asOf ?? (await readPresentDay(tx, today)));
  });
  return {
    json: report,
    sheet: () => unearnedSheet(report),
    text: () => describeUnearned(report, outputWidth()),
    attention: !report.ties,
    day: report,
  };
}
