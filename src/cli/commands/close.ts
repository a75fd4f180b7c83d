/** `reckoner close`. */

import { type Feeds, isIncomplete, missingFeeds } from '../../close/feeds.ts';
import { type MonthFacts, readMonthFacts } from '../../close/queries.ts';
import { closeMonths, previewClose } from '../../close/run.ts';
import { documentJson } from '../../documents/document.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { countDeliveries } from '../../mail/queries.ts';
import { Amount } from '../../money.ts';
import type { Month } from '../../month.ts';
import { readSealsOf } from '../../seals/queries.ts';
import { plural } from '../../text.ts';
import { monthArgument, repeatedArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition, type DeliverOption, NO_DELIVER } from '../define.ts';
import { amount, money, table } from '../output.ts';

export const define: Definition = (command, act) => {
  command
    .argument('[month]', 'YYYY-MM (default: all months that are due)', monthArgument('month'))
    .option('--first-month <month>', 'the first month, at the first close', monthArgument('--first-month'))
    .option('--without <partner>', 'close although this partner sent no rows; repeatable', repeatedArgument)
    .option('--allow-empty', 'close without whatever feeds are missing, or without any rows')
    .option('--dry-run', 'show what would be issued and write nothing; also for the current month')
    .option(...NO_DELIVER)
    .action(act(acting(close)));
};

interface CloseOptions extends DeliverOption {
  readonly firstMonth?: Month;
  readonly dryRun?: boolean;
  readonly without?: readonly string[];
  readonly allowEmpty?: boolean;
}

async function close(
  context: CommandContext,
  month: Month | undefined,
  { firstMonth, dryRun, deliver, without, allowEmpty }: CloseOptions,
): Promise<number> {
  if (month === undefined && (without !== undefined || allowEmpty)) {
    throw refuse('usage', { reason: '--without and --allow-empty need the month that they are about' });
  }
  const request = { month, firstMonth, without, allowEmpty };
  const { database, output } = context;
  if (dryRun) {
    const { months, documents, feeds } = await previewClose(database, context, request);
    const missing = feeds.filter(isIncomplete);
    output.print(
      {
        months: months.map((facts) => monthJson(facts, 'preview')),
        documents: documents.map(documentJson),
        missing_feeds: missing.map(missingJson),
      },
      () =>
        [
          describeMonths(months, 'would close'),
          table(
            ['number', '~partner', 'month', '>rows', '>amount due'],
            documents.map((row) => [
              row.number,
              row.partner_name,
              row.month,
              row.lines.reduce((count, line) => count + line.count, 0),
              money(row.amount_due, row.currency),
            ]),
          ),
          ...missing.map(describeMissing),
          'Preview only: nothing was written.',
        ].join('\n\n'),
    );
    return EXIT.done;
  }
  const closed = await (deliver ? closeAndDeliver(context, request) : closeAlone(context, request));
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
}

type Request = Parameters<typeof closeMonths>[2];

const closeAlone = (context: CommandContext, request: Request): Promise<Month[]> =>
  closeMonths(context.database, context, request, (month) => context.output.note(`Closed ${month}.`));

async function closeAndDeliver(context: CommandContext, request: Request): Promise<Month[]> {
  // Rendering and mail take a quarter of a second to load, and a close without delivery needs neither.
  const { withProgress } = await import('../deliveries.ts');
  const { runMonthEnd } = await import('../../month-end/month-end.ts');
  const failures: unknown[] = [];
  const done: Month[] = [];
  const closed = await withProgress(context.output, (reporter) =>
    runMonthEnd(context, request, {
      ...reporter,
      onClosed(month) {
        done.push(month);
        reporter.onClosed?.(month);
      },
      // The months that this run closed before are delivered first.
      onCloseFailed(error) {
        if (done.length === 0) throw error;
        failures.push(error);
      },
    }),
  );
  for (const failure of failures) throw failure;
  return closed;
}

const missingJson = (feeds: Feeds) => ({
  month: feeds.month,
  partners: missingFeeds(feeds).map(({ partner_id, name }) => ({ partner_id, name })),
  empty: feeds.empty,
});

function describeMissing(feeds: Feeds): string {
  const missing = missingFeeds(feeds);
  const decision =
    missing.length > 0 ? missing.map((each) => `--without ${each.partner_id}`).join(' ') : '--allow-empty';
  return [
    missing.length > 0
      ? `${feeds.month} has no rows of ${plural(missing.length, 'partner')} that had rows in each of the last closed months:`
      : `${feeds.month} has no rows of any partner.`,
    ...missing.map(({ partner_id, name }) => `  ${partner_id}  ${name}`),
    `It closes only with 'reckoner close ${feeds.month} ${decision}'.`,
  ].join('\n');
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
    ...[spot_price, partner_cut, invoice_amount].map((each) => amount(each, currency)),
  ]);
  return [
    `${facts.month} ${verb}`,
    `  Documents   ${plural(facts.invoices, 'invoice')}, ${plural(facts.credit_notes, 'credit note')}, ` +
      plural(facts.statements, 'statement'),
    `  Rows        ${facts.entries}, ${facts.late_entries} of them late`,
    `  Partners    ${facts.partners_without_activity} without activity`,
    `  Deliveries  ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain`,
    ...(seal === undefined ? [] : [`  Seal        ${seal}`]),
    ...(totals.length > 0 ? [table(['  ', '>spotPrice', '>partnerCut', '>invoiceAmount'], totals)] : []),
  ].join('\n');
}
