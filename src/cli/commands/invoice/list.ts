/** `reckoner invoice list`. */
import { documentJson } from '../../../documents/document.ts';
import { type DocumentRow, readDocuments } from '../../../documents/queries.ts';
import type { Month } from '../../../month.ts';
import { choiceArgument, monthArgument } from '../../arguments.ts';
import { type CommandContext, type Definition, reading } from '../../define.ts';
import { amount, short, table } from '../../output.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('list')
    .description('List documents in number order')
    .option('--month <month>', 'only documents of this month', monthArgument('--month'))
    .option('--partner <id>', 'only documents of this partner')
    .option('--status <status>', 'open, paid or void', choiceArgument('--status', ['open', 'paid', 'void']))
    .action(act(reading(invoiceList)));
};

async function invoiceList(
  { database, output }: CommandContext,
  { month, partner: partnerId, status }: { month?: Month; partner?: string; status?: 'open' | 'paid' | 'void' },
): Promise<void> {
  const months = month === undefined ? undefined : [month];
  const documents = await database.reading((tx) => readDocuments(tx, { months, partnerId, status }));
  output.print(documents.map(documentJson), () => (documents.length === 0 ? 'No documents found.' : listed(documents)));
}

/** In 80 columns: a list of one month omits the month, and the partner gets the remaining width. */
function listed(documents: readonly DocumentRow[]): string {
  const months = new Set(documents.map(({ month }) => month));
  const month = months.size > 1;
  const others = documents.map((row) => [
    row.number,
    ...(month ? [row.month] : []),
    row.due_on ?? '',
    amount(row.amount_due, row.currency),
    row.currency,
    row.status,
    row.email_status ?? '',
  ]);
  const headings = ['number', ...(month ? ['month'] : []), 'due', '>amount due', '', 'status', 'e-mail'];
  const taken = headings.reduce(
    (sum, heading, at) => sum + 2 + Math.max(heading.length, ...others.map((row) => row[at]?.length ?? 0)),
    0,
  );
  const width = Math.max(8, 80 - taken);
  const rows = others.map(([number = '', ...rest], at) => [
    number,
    short(documents[at]?.partner_id ?? '', width),
    ...rest,
  ]);
  return table(['number', 'partner', ...headings.slice(1)], rows);
}
