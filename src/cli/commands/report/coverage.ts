import { AsOfOption, CommandContext, Definition, dateArgument, PresentOptions, table } from '#cli/command';
import { showing } from '#cli/report-command';
import { todayOf } from '#config/today';
import { Coverage, readCoverage } from '#reports/coverage';
import { refuseFutureDay } from '#reports/future-day';
import { coverageSheet } from '#reports/sheets';
import { plural } from '#text';

export const define: Definition = (report, action) => {
  showing(
    report
      .command('coverage')
      .description('List documents by partner and closed month; exit 4 if rows have no document')
      .option('--as-of <YYYY-MM-DD>', 'only months closed by that date', dateArgument('--as-of')),
    action,
    reportCoverage,
  );
};

/** The number of months in the table, latest first. --json has all. */
const SHOWN_MONTHS = 3;

async function reportCoverage(context: CommandContext, options: PresentOptions & AsOfOption) {
  const { database } = context;
  const coverage = await database.reading(async (tx) => {
    await refuseFutureDay(tx, options.asOf, todayOf(context));
    return readCoverage(tx, { asOf: options.asOf });
  });
  return {
    json: coverage,
    sheet: () => coverageSheet(coverage),
    text: () => described(coverage),
    attention: coverage.gaps > 0,
  };
}

function described({ months, partners, gaps, books_open }: Coverage) {
  if (months.length === 0) return 'No month is closed yet.';
  const shown = months.slice(-SHOWN_MONTHS);
  // If a month has several documents, each is on its own line.
  const rows = partners.flatMap(({ partner_id, cells }) => {
    const documentsOf = cells
      .slice(-SHOWN_MONTHS)
      .map(({ state, documents }) =>
        state === 'gap' ? ['GAP'] : state === 'no_activity' ? ['no activity'] : [...documents],
      );
    const lines = Math.max(1, ...documentsOf.map((each) => each.length));
    return Array.from({ length: lines }, (_, line) => [
      line === 0 ? partner_id : '',
      ...documentsOf.map((each) => each[line] ?? ''),
    ]);
  });
  return [
    table(['~partner', ...shown], rows),
    '',
    gaps === 0
      ? `No gaps: every partner with rows has a document in each of ${plural(months.length, 'closed month')}.`
      : `${plural(gaps, 'gap')}: rows of a closed month without a document.`,
    books_open.length === 0 ? 'The books of all these months are closed.' : `Books open: ${books_open.join(', ')}.`,
  ].join('\n');
}
