import {
  CommandContext,
  choiceArgument,
  Definition,
  dateArgument,
  monthArgument,
  PresentOptions,
  refuse,
} from '#cli/command';
import { showing } from '#cli/report-command';
import { todayOf } from '#config/today';
import { lastDay, Month } from '#month';
import { describeTax, readTaxReport, taxSheet } from '#reports/tax';
import { TAX_BASES, TaxPeriod } from '#reports/tax.sql';

type TaxOptions = PresentOptions &
  Readonly<{
    month?: Month;
    from?: string;
    to?: string;
    basis?: TaxPeriod['by'];
  }>;

export const define: Definition = (report, action) => {
  showing(
    report
      .command('tax')
      .description(
        'Show the tax of documents by country, category, rate and currency; exit 4 if it does not tie to the journal',
      )
      .option('--month <month>', 'the tax of this month (default: the current one)', monthArgument('--month'))
      .option('--from <YYYY-MM-DD>', 'the first day, instead of --month', dateArgument('--from'))
      .option('--to <YYYY-MM-DD>', 'the last day', dateArgument('--to'))
      .option(
        '--basis <basis>',
        'tax-point (default): the tax of the sales of the period; issued: of its documents',
        choiceArgument('--basis', TAX_BASES),
      ),
    action,
    reportTax,
  );
};

async function reportTax(context: CommandContext, options: TaxOptions) {
  const { database } = context;
  const report = await database.reading((tx) =>
    readTaxReport(tx, { ...daysOf(options, todayOf(context)), by: options.basis ?? 'tax-point' }),
  );
  return {
    json: report,
    sheet: () => taxSheet(report),
    text: () => describeTax(report),
    attention: !report.ties,
    day: report,
  };
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
