/** `reckoner close`. */

import { decisionFor } from '../../close/close.ts';
import { type FeedDecision, type Feeds, isIncomplete, missingFeeds, undecidedFeeds } from '../../close/feeds.ts';
import { describeOtherCurrency, otherCurrencyJson } from '../../close/other-currencies.ts';
import {
  type MonthFacts,
  type OtherCurrency,
  readIssueDays,
  readMonthFacts,
  readOtherCurrencies,
} from '../../close/queries.ts';
import { closeMonths, previewClose } from '../../close/run.ts';
import type { ForeseenHold } from '../../delivery/foresee.ts';
import { documentJson } from '../../documents/document.ts';
import type { DocumentRow } from '../../documents/queries.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { countNeedingAttention } from '../../mail/queries.ts';
import { Amount } from '../../money.ts';
import type { Month } from '../../month.ts';
import { readSealsOf, type SignedSeal } from '../../seals/queries.ts';
import { keyIdOf } from '../../seals/signature.ts';
import { plural } from '../../text.ts';
import { monthArgument, repeatedArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition, type DeliverOption, NO_DELIVER } from '../define.ts';
import { amount, money, printable, table, wrapped } from '../output.ts';

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
  if (dryRun) return preview(context, request);
  const closed = await (deliver ? closeAndDeliver(context, request) : closeAlone(context, request));
  const named = month !== undefined && !closed.includes(month) ? [...closed, month] : closed;
  const [months, seals, needing, others, days] = await database.reading(async (tx) => [
    await readMonthFacts(tx, named),
    await readSealsOf(tx, named),
    await countNeedingAttention(tx),
    await readOtherCurrencies(tx, named),
    await readIssueDays(tx, named),
  ]);
  const verb = ({ month: each }: MonthFacts) =>
    closed.includes(each) ? 'closed' : `was already closed on ${days.get(each)}; nothing was issued now`;
  output.print(
    { months: months.map((facts) => monthJson(facts, 'closed', seals)), ...otherCurrenciesJson(others) },
    () => [describeMonths(months, verb, seals), ...describeOtherCurrencies(others)].join('\n\n'),
  );
  return needing.documents > 0 ? EXIT.attention : EXIT.done;
}

/** What would be issued, what would be held and why, and what keeps the month from closing. */
async function preview({ database, output, ...context }: CommandContext, request: Request): Promise<number> {
  const { foreseeHolds } = await import('../../delivery/foresee.ts');
  const previewed = await previewClose(database, context, request, async (tx, { months, documents }) => ({
    holds: await foreseeHolds(tx, context, documents),
    others: await readOtherCurrencies(
      tx,
      months.map(({ month }) => month),
    ),
  }));
  const { documents, seen } = previewed;
  const { holds, others } = seen ?? { holds: [], others: [] };
  const months = previewed.months.map((facts) => withHolds(facts, documents, holds));
  const missing = previewed.feeds.filter(isIncomplete);
  output.print(
    {
      months: months.map((facts) => monthJson(facts, 'preview')),
      documents: documents.map(documentJson),
      missing_feeds: missing.map(missingJson),
      holds,
      ...otherCurrenciesJson(others),
    },
    () =>
      [
        describeMonths(months, () => 'would close'),
        table(
          ['number', '~partner', 'month', '>rows', '>amount due'],
          documents.map((row) => [
            row.number,
            row.partner_name,
            row.month,
            row.lines.reduce((count, line) => count + line.count, 0),
            // A credit note is owed to the partner.
            `${row.document === 'credit_note' ? '-' : ''}${money(row.amount_due, row.currency)}`,
          ]),
        ),
        ...(documents.some(({ document }) => document === 'credit_note')
          ? ['An amount below zero is credit: owed to the partner.']
          : []),
        ...describeOtherCurrencies(others),
        ...describeHolds(holds),
        ...missing.map((feeds) => describeMissing(feeds, decisionFor(feeds.month, request))),
        'Preview only: nothing was written.',
      ].join('\n\n'),
  );
  return EXIT.done;
}

/** The month with the documents that would be held counted as held. */
function withHolds(facts: MonthFacts, documents: readonly DocumentRow[], holds: readonly ForeseenHold[]): MonthFacts {
  const { pending, held } = facts.deliveries;
  const numbers = new Set(holds.map(({ number }) => number));
  const count = documents.filter(({ month, number }) => month === facts.month && numbers.has(number)).length;
  return { ...facts, deliveries: { ...facts.deliveries, pending: pending - count, held: held + count } };
}

const describeHolds = (holds: readonly ForeseenHold[]): string[] =>
  holds.length === 0
    ? []
    : [
        [
          `${plural(holds.length, 'document')} would be held:`,
          ...holds.flatMap(({ number, reason }) => wrapped(printable(`${number}: ${reason}`), 76, '  ')),
        ].join('\n'),
      ];

const otherCurrenciesJson = (others: readonly OtherCurrency[]) =>
  others.length === 0 ? {} : { other_currencies: others.map(otherCurrencyJson) };

const describeOtherCurrencies = (others: readonly OtherCurrency[]): string[] =>
  others.length === 0
    ? []
    : [
        [
          "In a currency that is not the partner's own:",
          ...others.flatMap((row) => wrapped(printable(describeOtherCurrency(row)), 76, '  ')),
        ].join('\n'),
      ];

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
      onClosed(month, others) {
        done.push(month);
        reporter.onClosed?.(month, others);
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

function describeMissing(feeds: Feeds, decision: FeedDecision): string {
  const { month } = feeds;
  const missing = missingFeeds(feeds);
  const { partners, empty } = undecidedFeeds(feeds, decision);
  const needed = missing.length > 0 ? missing.map((each) => `--without ${each.partner_id}`).join(' ') : '--allow-empty';
  return [
    missing.length > 0
      ? `${month} has no rows of ${plural(missing.length, 'partner')} that had rows in each of the last closed months:`
      : `${month} has no rows of any partner.`,
    ...missing.map(({ partner_id, name }) => `  ${partner_id}  ${name}`),
    partners.length > 0 || empty
      ? `It closes only with 'reckoner close ${month} ${needed}'.`
      : `It closes without ${missing.length === 0 ? 'rows' : 'them'}, as given.`,
  ].join('\n');
}

/** A month of the contract's close report. Totals are those of the month's rows. */
export function monthJson(
  facts: MonthFacts,
  status: 'closed' | 'preview',
  seals: ReadonlyMap<Month, SignedSeal> = new Map(),
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
    ...(seal !== undefined && { seal: seal.seal, ...(seal.signed_by !== null && { signed_by: seal.signed_by }) }),
  };
}

function describeMonths(
  months: readonly MonthFacts[],
  verb: (facts: MonthFacts) => string,
  seals: ReadonlyMap<Month, SignedSeal> = new Map(),
): string {
  if (months.length === 0) return 'Nothing to do: all months that have ended in every time zone are closed.';
  return months.map((facts) => describeMonth(facts, verb(facts), seals.get(facts.month))).join('\n\n');
}

function describeMonth(facts: MonthFacts, verb: string, seal: SignedSeal | undefined): string {
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
    ...(seal === undefined ? [] : [`  Seal        ${seal.seal}`]),
    ...(seal?.signed_by ? [`  Signed by   ${keyIdOf(seal.signed_by)}`] : []),
    ...(totals.length > 0 ? [table(['  ', '>spotPrice', '>partnerCut', '>invoiceAmount'], totals)] : []),
  ].join('\n');
}
