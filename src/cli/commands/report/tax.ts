import { todayOf } from '../../../config/today.ts';
import { lastDay, type Month } from '../../../month.ts';
import { describeTax, readTaxReport, taxSheet } from '../../../reports/tax.ts';
import {
  type CommandContext,
  type Definition,
  dateArgument,
  EXIT,
  FORMAT,
  monthArgument,
  OUT,
  type PresentOptions,
  present,
  reading,
  refuse,
} from '../../command.ts';
import { notePreliminary } from './preliminary.ts';

type TaxOptions = PresentOptions &
  Readonly<{
    month?: Month;
    from?: string;
    to?: string;
  }>;

export const define: Definition = (report, action) => {
  report
    .command('tax')
    .description(
      'The tax of documents by country, category, rate and currency; exit 4 if it does not tie to the journal',
    )
    .option('--month <month>', 'documents dated in this month (default: the current one)', monthArgument('--month'))
    .option('--from <YYYY-MM-DD>', 'instead of --month: documents dated from this date', dateArgument('--from'))
    .option('--to <YYYY-MM-DD>', 'to this date', dateArgument('--to'))
    .option(...FORMAT)
    .option(...OUT)
    .action(action(reading(reportTax)));
};

async function reportTax(context: CommandContext, options: TaxOptions): Promise<number> {
  const { database, output } = context;
  const report = await database.reading((tx) => readTaxReport(tx, daysOf(options, todayOf(context))));
  await present(
    output,
    options,
    report,
    () => taxSheet(report),
    () => describeTax(report),
  );
  notePreliminary(output, options, report);
  return report.ties ? EXIT.done : EXIT.attention;
}

function daysOf({ month, from, to }: TaxOptions, today: string) {
  if (month !== undefined && (from ?? to) !== undefined) {
    throw refuse('argument_invalid', {
      argument: '--month',
      value: month,
      reason: 'cannot be given with --from or --to',
    });
  }
  const whole = month ?? (today.slice(0, 7) as Month);
  if (from === undefined && to === undefined) return { from: `${whole}-01`, to: lastDay(whole) };
  return { from: from ?? `${(to as string).slice(0, 7)}-01`, to: to ?? today };
}
