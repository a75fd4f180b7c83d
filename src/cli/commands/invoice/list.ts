/** `reckoner invoice list`. */
import { todayOf } from '../../../config/today.ts';
import { documentJson } from '../../../documents/document.ts';
import { daysOverdue, sheetOfDocuments, signed } from '../../../documents/list-sheet.ts';
import { type DocumentRow, readDocuments } from '../../../documents/queries.ts';
import { Amount, groupThousands } from '../../../money.ts';
import type { Month } from '../../../month.ts';
import { amountArgument, choiceArgument, dateArgument, monthArgument } from '../../arguments.ts';
import { type CommandContext, type Definition, reading } from '../../define.ts';
import { table } from '../../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../../present.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('list')
    .description('List documents in number order')
    .option('--month <month>', 'only documents of this month', monthArgument('--month'))
    .option('--partner <id>', 'only documents of this partner')
    .option('--status <status>', 'open, paid or void', choiceArgument('--status', ['open', 'paid', 'void']))
    .option('--overdue', 'only open invoices past their due date')
    .option('--amount <amount>', 'only those with this amount due or balance', amountArgument('--amount'))
    .option('--text <text>', "only those with this text in the number, the purchase order or the partner's name or id")
    .option('--from <date>', 'issued on this day or later', dateArgument('--from'))
    .option('--to <date>', 'issued on this day or earlier', dateArgument('--to'))
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(invoiceList)));
};

interface InvoiceListOptions extends PresentOptions {
  readonly month?: Month;
  readonly partner?: string;
  readonly status?: 'open' | 'paid' | 'void';
  readonly overdue?: boolean;
  readonly amount?: string;
  readonly text?: string;
  readonly from?: string;
  readonly to?: string;
}

async function invoiceList(context: CommandContext, options: InvoiceListOptions): Promise<void> {
  const { month, partner: partnerId, status, overdue, amount, text, from, to } = options;
  const { database, output } = context;
  const months = month === undefined ? undefined : [month];
  const today = todayOf(context);
  const filter = { months, partnerId, status, amount, text, from, to, overdueOn: overdue ? today : undefined };
  const documents = await database.reading((tx) => readDocuments(tx, filter));
  await present(
    output,
    options,
    documents.map(documentJson),
    () => sheetOfDocuments(documents, today),
    () =>
      documents.length === 0 ? 'No documents found.' : `${listed(documents, today)}\n\n${totals(documents, today)}`,
  );
}

/** A narrower terminal shows balances without the amounts due as issued. */
const WIDE = 110;

/** A list of one month omits the month. In a terminal the name is cut to its width, in a pipe nothing is cut. */
function listed(documents: readonly DocumentRow[], today: string): string {
  const wide = !process.stdout.isTTY || process.stdout.columns >= WIDE;
  const month = new Set(documents.map((row) => row.month)).size > 1;
  const rows = documents.map((row) => [
    row.number,
    row.partner_name,
    ...(month ? [row.month] : []),
    row.due_on ?? '',
    daysOverdue(row, today) || '',
    ...(wide ? [groupThousands(signed(row, row.amount_due).toString())] : []),
    groupThousands(signed(row, row.balance).toString()),
    row.currency,
    row.held_at === null ? row.status : `${row.status}, on hold`,
    row.email_status ?? '',
  ]);
  const headings = ['number', '~partner', ...(month ? ['month'] : []), 'due', '>overdue'];
  const amounts = [...(wide ? ['>amount due'] : []), '>balance', ''];
  return table([...headings, ...amounts, 'status', 'e-mail'], rows);
}

/** What is open of the documents listed, by currency. */
function totals(documents: readonly DocumentRow[], today: string): string {
  const currencies = [...new Set(documents.map((row) => row.currency))].sort();
  const rows = currencies.map((currency) => {
    const sum = (matches: (row: DocumentRow) => boolean) =>
      documents
        .filter((row) => row.currency === currency && matches(row))
        .reduce((total, row) => total.plus(signed(row, row.balance)), Amount.zero(currency));
    const invoices = sum((row) => row.document === 'invoice');
    const overdue = sum((row) => daysOverdue(row, today) > 0);
    const credit = sum((row) => row.document === 'credit_note');
    return [
      currency,
      ...[invoices, overdue, credit, invoices.plus(credit)].map((each) => groupThousands(each.toString())),
    ];
  });
  return table(['total', '>open invoices', '>of which overdue', '>open credit', '>net'], rows);
}
