/** `reckoner close`. */
import { type MonthFacts, readMonthFacts } from '../../close/queries.ts';
import { closeMonths, previewClose } from '../../close/run.ts';
import { documentJson } from '../../documents/document.ts';
import { EXIT } from '../../errors/refusals.ts';
import { countDeliveries } from '../../mail/queries.ts';
import { Amount, groupThousands } from '../../money.ts';
import type { Month } from '../../month.ts';
import { readSealsOf } from '../../seals/queries.ts';
import { monthArgument } from '../arguments.ts';
import { acting, type Context } from '../context.ts';
import { type Definition, NO_DELIVER } from '../define.ts';
import { type Output, short, table } from '../output.ts';

export const define: Definition = (command, act) => {
  command
    .argument('[month]', 'YYYY-MM (default: all months that are due)', monthArgument('month'))
    .option('--first-month <month>', 'the first month, at the first close', monthArgument('--first-month'))
    .option('--dry-run', 'show what would be issued and write nothing; also for the current month')
    .option(...NO_DELIVER)
    .action(act(close));
};

export interface CloseOptions {
  readonly firstMonth?: Month;
  readonly dryRun?: boolean;
  /** commander's form of --no-deliver. */
  readonly deliver: boolean;
}

export async function close(output: Output, month: Month | undefined, options: CloseOptions): Promise<number> {
  const request = { month, firstMonth: options.firstMonth };
  return acting(output, async (context) => {
    const { database } = context;
    if (options.dryRun) {
      const { months, documents } = await previewClose(database, context, request);
      output.print(
        { months: months.map((facts) => monthJson(facts, 'preview')), documents: documents.map(documentJson) },
        () =>
          [
            describeMonths(months, 'would close'),
            table(
              ['number', 'partner', 'month', '>rows', '>amount due'],
              documents.map((row) => [
                row.number,
                short(row.partner_id, 24),
                row.month,
                row.lines.reduce((count, line) => count + line.count, 0),
                money(row.amount_due, row.currency),
              ]),
            ),
            'Preview only: nothing was written.',
          ].join('\n\n'),
      );
      return EXIT.done;
    }
    const closed = await (options.deliver
      ? closeAndDeliver(context, output, request)
      : closeAlone(context, output, request));
    const named = month !== undefined && !closed.includes(month) ? [...closed, month] : closed;
    const [months, seals, deliveries] = await database.reading(async (tx) => [
      await readMonthFacts(tx, named),
      await readSealsOf(tx, named),
      await countDeliveries(tx),
    ]);
    output.print({ months: months.map((facts) => monthJson(facts, 'closed', seals)) }, () =>
      describeMonths(months, 'closed', seals),
    );
    return deliveries.held + deliveries.failed + deliveries.uncertain > 0 ? EXIT.attention : EXIT.done;
  });
}

type Request = Parameters<typeof closeMonths>[2];

const closeAlone = (context: Context, output: Output, request: Request): Promise<Month[]> =>
  closeMonths(context.database, context, request, (month) => output.note(`Closed ${month}.`));

async function closeAndDeliver(context: Context, output: Output, request: Request): Promise<Month[]> {
  // What renders and mails takes a quarter of a second to load, and a close without delivery needs none of it.
  const { withProgress } = await import('../deliveries.ts');
  const { runMonthEnd } = await import('../../month-end/month-end.ts');
  return withProgress(output, (reporter) => runMonthEnd(context, request, reporter));
}

/** A month of the contract's close report. Totals are those of the month's rows. */
export function monthJson(
  facts: MonthFacts,
  status: 'closed' | 'preview',
  seals: ReadonlyMap<Month, string> = new Map(),
): Record<string, unknown> {
  const seal = seals.get(facts.month);
  const { totals, deliveries, ...counts } = facts;
  return {
    month: counts.month,
    status,
    invoices: counts.invoices,
    credit_notes: counts.credit_notes,
    statements: counts.statements,
    entries: counts.entries,
    late_entries: counts.late_entries,
    partners_without_activity: counts.partners_without_activity,
    totals: Object.fromEntries(
      totals.map(({ currency, spot_price, partner_cut, invoice_amount }) => {
        const text = (amount: string) => Amount.of(amount, currency).toString();
        return [
          currency,
          { spotPrice: text(spot_price), partnerCut: text(partner_cut), invoiceAmount: text(invoice_amount) },
        ];
      }),
    ),
    deliveries,
    // A preview has none.
    ...(seal !== undefined && { seal }),
  };
}

const money = (amount: string, currency: string): string =>
  `${groupThousands(Amount.of(amount, currency).toString())} ${currency}`;

function describeMonths(
  months: readonly MonthFacts[],
  verb: string,
  seals: ReadonlyMap<Month, string> = new Map(),
): string {
  if (months.length === 0) return 'Nothing to do: all months that have ended in every time zone are closed.';
  return months.map((facts) => describeMonth(facts, verb, seals.get(facts.month))).join('\n\n');
}

function describeMonth(facts: MonthFacts, verb: string, seal: string | undefined): string {
  const { sent, pending, held, failed, uncertain } = facts.deliveries;
  const totals = facts.totals.map(({ currency, spot_price, partner_cut, invoice_amount }) => [
    `  ${currency}`,
    ...[spot_price, partner_cut, invoice_amount].map((each) => groupThousands(Amount.of(each, currency).toString())),
  ]);
  return [
    `${facts.month} ${verb}`,
    `  Documents   ${count(facts.invoices, 'invoice')}, ${count(facts.credit_notes, 'credit note')}, ` +
      count(facts.statements, 'statement'),
    `  Rows        ${facts.entries}, ${facts.late_entries} of them late`,
    `  Partners    ${facts.partners_without_activity} without activity`,
    `  Deliveries  ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain`,
    ...(seal === undefined ? [] : [`  Seal        ${seal}`]),
    ...(totals.length > 0 ? [table(['  ', '>spotPrice', '>partnerCut', '>invoiceAmount'], totals)] : []),
  ].join('\n');
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
