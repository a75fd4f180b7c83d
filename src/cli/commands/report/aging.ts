import { AS_OF, AsOfOption, CommandContext, Definition, PresentOptions, table } from '#cli/command';
import { showing } from '#cli/report-command';
import { todayOf } from '#config/today';
import { Aging, AgingRow, BUCKETS, Bucket, differencesOf, payerName, readAging } from '#reports/aging';
import { refuseFutureDay } from '#reports/future-day';
import { preliminaryNote } from '#reports/preliminary';
import { agingDocumentsSheet, agingSheet } from '#reports/sheets';
import { dateName, groupThousands, plural } from '#values';

export const define: Definition = (report, action) => {
  showing(
    report
      .command('aging')
      .description('Show open receivables by days overdue; exit 4 if they do not tie to the journal')
      .option('--detail', 'also list each open invoice, longest overdue first')
      .option(...AS_OF),
    action,
    reportAging,
  );
};

const HEADINGS = {
  not_due: 'current',
  days_1_30: '1-30',
  days_31_60: '31-60',
  days_61_90: '61-90',
  over_90: 'over 90',
};

type AgingOptions = PresentOptions &
  AsOfOption &
  Readonly<{
    detail?: boolean;
  }>;

async function reportAging(context: CommandContext, options: AgingOptions) {
  const { database } = context;
  const question = { asOf: options.asOf, today: todayOf(context) };
  const aging = await database.reading(async (tx) => {
    await refuseFutureDay(tx, question.asOf, question.today);
    return readAging(tx, question);
  });
  return {
    json: aging,
    sheet: () => (options.detail ? agingDocumentsSheet(aging) : agingSheet(aging)),
    text: () => describeAging(aging, options.detail ?? false),
    attention: !aging.ties,
    day: aging,
    note: aging.ties ? undefined : differencesOf(aging).join('\n'),
  };
}

function describeAging(aging: Aging, detail: boolean) {
  const title = `Accounts receivable aging as of ${dateName(aging.as_of)}, by days overdue`;
  const parts = [[title, ...preliminaryNote(aging)].join('\n')];
  for (const total of aging.totals) {
    const own = aging.partners.filter((row) => row.currency === total.currency);
    const amounts = (row: Pick<AgingRow, Bucket>) => BUCKETS.map((name) => groupThousands(row[name]));
    const owing = own.filter((row) => BUCKETS.some((name) => Number(row[name]) !== 0));
    parts.push(
      table(
        [`~${total.currency}`, ...BUCKETS.map((name) => `>${HEADINGS[name]}`)],
        [...owing.map((row) => [payerName(row), ...amounts(row)]), ['total', ...amounts(total)]],
      ),
    );
    if (detail) parts.push(tableOfInvoices(aging, total.currency));
    const beside = own.filter((row) => [row.disputed, row.credit, row.unapplied].some((each) => Number(each) !== 0));
    const columns = (row: Pick<AgingRow, 'open' | 'disputed' | 'credit' | 'unapplied' | 'net'>) =>
      [row.open, row.disputed, row.credit, row.unapplied, row.net].map(groupThousands);
    parts.push(
      table(
        [`~${total.currency}`, '>open invoices', '>of which disputed', '>open credit', '>unapplied cash', '>net'],
        [...beside.map((row) => [payerName(row), ...columns(row)]), ['total', ...columns(total)]],
      ),
    );
  }
  if (aging.totals.length === 0) parts.push('Nothing is open.');
  parts.push(
    aging.ties
      ? `Ties: ${plural(aging.documents.length, 'open document')} and unapplied cash equal the journal balances of\nreceivable:billed, partner-credit and unapplied, by partner.`
      : 'IT DOES NOT TIE TO THE JOURNAL. The differences are on stderr and in --json.',
  );
  return parts.join('\n\n');
}

function tableOfInvoices({ documents }: Aging, currency: string) {
  const invoices = documents
    .filter((each) => each.document === 'invoice' && each.currency === currency)
    .toSorted((one, other) => (other.days_due ?? 0) - (one.days_due ?? 0));
  return table(
    ['~partner', 'invoice', 'due', '>days overdue', '>balance'],
    invoices.map((each) => [
      each.partner_name,
      each.number,
      each.due_on,
      Math.max(0, each.days_due ?? 0) || '',
      groupThousands(each.balance),
    ]),
  );
}
