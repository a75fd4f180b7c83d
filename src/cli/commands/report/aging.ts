/** `reckoner report aging`. */
import { todayOf } from '../../../config/today.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { groupThousands } from '../../../money.ts';
import { dateName } from '../../../month.ts';
import { type Aging, type AgingRow, BUCKETS, readAging } from '../../../reports/aging.ts';
import { plural } from '../../../text.ts';
import { AS_OF, type CommandContext, CSV, type Definition, reading } from '../../define.ts';
import { short, table } from '../../output.ts';
import { present, type ReportOptions } from './present.ts';

export const define: Definition = (report, act) => {
  report
    .command('aging')
    .description('Open receivables by days overdue; exit 4 if they do not tie to the journal')
    .option(...AS_OF)
    .option(...CSV)
    .action(act(reading(reportAging)));
};

const HEADINGS = {
  not_due: 'not due',
  days_1_30: '1-30',
  days_31_60: '31-60',
  days_61_90: '61-90',
  over_90: 'over 90',
};

async function reportAging(context: CommandContext, options: ReportOptions): Promise<number> {
  const { database, output } = context;
  const aging = await database.reading((tx) => readAging(tx, { asOf: options.asOf, today: todayOf(context) }));
  const columns = ['partner_id', 'currency', ...BUCKETS, 'open', 'credit', 'unapplied'];
  present(
    output,
    options,
    aging,
    () => [columns, aging.partners.map((row) => ({ ...row }))],
    () => describeAging(aging),
  );
  if (!aging.ties) output.note(differencesOf(aging).join('\n'));
  return aging.ties ? EXIT.done : EXIT.attention;
}

function describeAging(aging: Aging): string {
  const parts = [`Accounts receivable aging as of ${dateName(aging.as_of)}, by days overdue`];
  for (const total of aging.totals) {
    const own = aging.partners.filter((row) => row.currency === total.currency);
    const amounts = (row: Pick<AgingRow, (typeof BUCKETS)[number]>) => BUCKETS.map((name) => groupThousands(row[name]));
    const owing = own.filter((row) => BUCKETS.some((name) => Number(row[name]) !== 0));
    const width = nameWidth([...owing, total].map(amounts));
    parts.push(
      table(
        [total.currency, ...BUCKETS.map((name) => `>${HEADINGS[name]}`)],
        [...owing.map((row) => [short(named(row), width), ...amounts(row)]), ['total', ...amounts(total)]],
      ),
    );
    const beside = own.filter((row) => Number(row.credit) !== 0 || Number(row.unapplied) !== 0);
    const columns = (row: Pick<AgingRow, 'open' | 'credit' | 'unapplied'>) =>
      [row.open, row.credit, row.unapplied].map(groupThousands);
    parts.push(
      table(
        [total.currency, '>open invoices', '>open credit', '>unapplied cash'],
        [...beside.map((row) => [short(named(row), 20), ...columns(row)]), ['total', ...columns(total)]],
      ),
    );
  }
  if (aging.totals.length === 0) parts.push('Nothing is open.');
  parts.push(
    aging.ties
      ? `It ties: ${plural(aging.documents.length, 'open document')} and unapplied cash equal the journal balances of\nreceivable:billed, partner-credit and unapplied, by partner.`
      : 'IT DOES NOT TIE TO THE JOURNAL. The differences are on stderr and in --json.',
  );
  return parts.join('\n\n');
}

/** The remaining width for the partner's name in 80 columns. */
function nameWidth(rows: readonly (readonly string[])[]): number {
  const widths = rows[0]?.map((_, column) => Math.max(7, ...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return Math.max(8, 80 - widths.reduce((sum, width) => sum + width + 2, 0));
}

const named = ({ partner_id }: { partner_id: string | null }): string => partner_id ?? '(payer unknown)';

function differencesOf({ tie, documents_differ }: Aging): string[] {
  return [
    ...tie.flatMap(({ account, currency, differences }) =>
      differences.map(
        (each) =>
          `${account} of ${named(each)}: open items ${each.open_items} ${currency}, journal ${each.journal} ${currency}`,
      ),
    ),
    ...documents_differ.map((each) => `${each.number}: ${each.open_items} recomputed, ${each.balance} shown`),
  ];
}
