/** `reckoner report coverage`. */
import { EXIT } from '../../errors.ts';
import { type Coverage, readCoverage } from '../../reports/coverage.ts';
import { withContext } from '../context.ts';
import { type Output, short, table } from '../output.ts';

/** The latest months are shown to people; --json gives all. */
const SHOWN_MONTHS = 3;

export async function reportCoverage(output: Output, options: { asOf?: string }): Promise<number> {
  return withContext(async ({ database }) => {
    const coverage = await database.reading((tx) => readCoverage(tx, options.asOf));
    output.print(coverage, () => described(coverage));
    return coverage.gaps > 0 ? EXIT.attention : EXIT.done;
  });
}

function described({ months, partners, gaps }: Coverage): string {
  if (months.length === 0) return 'No month is closed yet.';
  const shown = months.slice(-SHOWN_MONTHS);
  const rows = partners.map(({ partner_id, cells }) => [
    short(partner_id, 20),
    ...cells
      .slice(-SHOWN_MONTHS)
      .map(({ state, documents }) =>
        state === 'gap' ? 'GAP' : state === 'no_activity' ? 'no activity' : documents.join(' '),
      ),
  ]);
  return [
    table(['partner', ...shown], rows),
    '',
    gaps === 0
      ? `No gaps: every partner with rows has its document in each of ${months.length} closed months.`
      : `${gaps} gap(s): rows of a closed month without a document.`,
  ].join('\n');
}
