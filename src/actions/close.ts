import { Block } from '#blocks';
import { decisionFor, planClose } from '#close/close';
import { closeAnyway, describeDoubt, FeedDecision, Feeds, isUndecided } from '#close/feeds';
import {
  MonthFacts,
  MonthSum,
  OtherCurrency,
  readContentHashes,
  readIssueDays,
  readMonthFacts,
  readOtherCurrencies,
  readSums,
} from '#close/months.sql';
import { describeOtherCurrency, otherCurrencyJson } from '#close/other-currencies';
import { closeMonths, closeTogether } from '#close/run';
import { Transaction } from '#database/transaction';
import { ForeseenHold } from '#delivery/foresee';
import { documentJson } from '#documents/document';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { Refusal, refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { CheckpointOf, readCheckpointsOf } from '#log/closing.sql';
import { factsOf as sizeOf } from '#log/text';
import { nameNeedingAttention } from '#mail/outbox.sql';
import { isZero } from '#money';
import { refuseWhilePaused } from '#people/pauses';
import { readLateRows, readPartnerChanges, totalsJson } from '#reports/close';
import { PartnerChange } from '#reports/close.sql';
import { changesBlocks, lateBlocks } from '#reports/close-text';
import { printable, table, wrapped } from '#text-table';
import { Amount, groupThousands, Month, monthBefore, monthName, plural } from '#values';
import { ActionContext, defineAction, Facts, flag, month, partner, Report, several, text } from './action.ts';
import { amountsIn } from './documents.ts';

type CloseInput = Readonly<{
  month?: Month | undefined;
  firstMonth?: Month | undefined;
  without?: readonly string[] | undefined;
  acceptFeed?: readonly string[] | undefined;
  allowEmpty?: boolean | undefined;
}>;

type CloseOutcome = Readonly<{
  months: readonly Month[];
  /** What was in doubt about the months of a preview. */
  feeds?: readonly Feeds[];
  /**
   * The reason why the run stopped. Months that were closed before the failure are delivered before the failure is
   * thrown.
   */
  failure?: unknown;
  /** This is set if all months were closed in one transaction. */
  together?: true;
  /** Why a close would refuse what a forecast shows. */
  refusal?: Refusal | undefined;
}>;

export const monthClose = defineAction({
  name: 'month.close',
  command: {
    called: 'close',
    arguments: { month: '[month]' },
    options: { without: '--without <partner>', acceptFeed: '--accept-feed <partner>' },
  },
  title: 'Close months: issue and deliver their documents',
  role: 'finance',
  input: {
    month: month('Month', 'The month. Default: all months that are due.').optional(),
    firstMonth: month('First month', 'The first month that is billed here. Only at the first close.').optional(),
    without: several(partner('Close even though this partner sent no rows.', { label: 'Without' })).optional(),
    acceptFeed: several(
      text('Accept feed', "Close even though this partner's rows contradict its totals, are incomplete or came twice."),
    ).optional(),
    allowEmpty: flag('Allow empty', 'Close without the missing feeds, or without any rows.').optional(),
  },
  check({ month, without, acceptFeed, allowEmpty }) {
    if (month === undefined && (without !== undefined || acceptFeed !== undefined || allowEmpty)) {
      const [one, two, three] = ['without', 'acceptFeed', 'allowEmpty'].map((each) => fieldName(each));
      throw refuse('usage', { reason: `${one}, ${two} and ${three} require the month` });
    }
  },
  subject: ({ month }) => month ?? 'due months',
  async perform(tx, context, input): Promise<CloseOutcome> {
    const { forecast, undone = false } = context;
    const refusal = forecast ? await refusalOf(tx, context, input) : undefined;
    return { ...(await closeTogether(tx, context, { ...input, forecast, preview: undone })), together: true, refusal };
  },
  async run({ database, permitted, deliver, reporter, ...context }, input): Promise<CloseOutcome> {
    if (deliver) await database.reading(refuseWhilePaused);
    const months: Month[] = [];
    try {
      await closeMonths(permitted, context, input, (closed, others) => {
        months.push(closed);
        reporter.onClosed?.(closed, others);
      });
    } catch (failure) {
      if (reporter.onCloseFailed !== undefined) reporter.onCloseFailed(failure);
      else if (deliver && months.length > 0) return { months, failure };
      else throw failure;
    }
    return { months };
  },
  async committed({ database, reporter }, { result: { months, together } }) {
    if (!together || months.length === 0) return;
    failpoint('close.committed');
    const others = await database.reading((tx) => readOtherCurrencies(tx, { months }));
    for (const each of months) {
      reporter.onClosed?.(
        each,
        others.filter(({ month }) => month === each),
      );
    }
  },
  async after({ reporter, ...context }, { result: { months, failure } }) {
    const { followClose } = await import('#month-end/month-end');
    await followClose(context, reporter, months);
    if (failure !== undefined) throw failure;
  },
  async facts(tx, _input, closed): Promise<Facts> {
    const months = closed === undefined ? [] : await readMonthFacts(tx, { months: closed.months });
    const sums = await readSums(tx, { months: closed?.months ?? [] });
    const contents = new Map(
      (await readContentHashes(tx, { months: closed?.months ?? [] })).map((each) => [each.month, each.sha256]),
    );
    return Object.fromEntries(
      months.map((each) => [
        each.month,
        factsOf(
          each,
          sums.filter(({ month }) => month === each.month),
          contents.get(each.month),
        ),
      ]),
    );
  },
  // Credit notes are added to invoices, not subtracted: one partner's credit must not hide what another partner owes.
  amounts({ after }) {
    const fields = new Set(Object.values(after).flatMap(Object.keys).filter(isSum));
    return amountsIn(after, Object.keys(after), ...fields);
  },
  report: ({ input, result, preview }, context, tx) =>
    preview ? reportPreview(tx, context, input, result) : reportClosed(tx, input, result.months),
});

async function refusalOf(tx: Transaction, context: ActionContext, input: CloseInput) {
  try {
    await planClose(tx, context, { ...input, preview: true });
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown;
    throw thrown;
  }
}

/**
 * The names of the totals of a month's documents, one for each kind. The currency is appended, as in `invoices in USD`.
 */
const SUMS = { invoice: 'invoices in ', credit_note: 'credit notes in ' } as const;
const isSum = (field: string) => Object.values(SUMS).some((name) => field.startsWith(name));

const factsOf = (counts: MonthFacts, sums: readonly MonthSum[], content: string | undefined): Facts[string] => ({
  status: 'closed',
  invoices: String(counts.invoices),
  'credit notes': String(counts.credit_notes),
  statements: String(counts.statements),
  rows: String(counts.entries),
  ...Object.fromEntries(
    sums.map(({ document, currency, invoice_amount }) => [
      `${SUMS[document]}${currency}`,
      Amount.of(invoice_amount, currency),
    ]),
  ),
  // Limits an approval to the terms and addresses that were shown.
  'content of documents': content === undefined ? 'none' : `sha256 ${content.slice(0, 16)}`,
});

async function reportClosed(tx: Transaction, { month }: CloseInput, closed: readonly Month[]): Promise<Report> {
  const named = month !== undefined && !closed.includes(month) ? [...closed, month] : closed;
  const months = await readMonthFacts(tx, { months: named });
  const checkpoints = await readCheckpointsOf(tx, 'month', named);
  const needing = await nameNeedingAttention(tx);
  const others = await readOtherCurrencies(tx, { months: named });
  const days = await readIssueDays(tx, named);
  const verb = ({ month: each }: MonthFacts) =>
    closed.includes(each) ? 'closed' : `was already closed on ${days.get(each)}; nothing was issued now`;
  return {
    json: { months: months.map((facts) => monthJson(facts, 'closed', checkpoints)), ...otherCurrenciesJson(others) },
    text: [describeMonths(months, verb, checkpoints), ...describeOtherCurrencies(others)].join('\n\n'),
    attention: needing.documents.length > 0,
  };
}

async function reportPreview(
  tx: Transaction,
  context: ActionContext,
  input: CloseInput,
  { months: closed, feeds = [], refusal }: CloseOutcome,
): Promise<Report> {
  const { foreseeHolds } = await import('#delivery/foresee');
  const documents = await readDocuments(tx, { months: closed });
  const holds = await foreseeHolds(tx, context, documents);
  const others = await readOtherCurrencies(tx, { months: closed });
  const months = (await readMonthFacts(tx, { months: closed })).map((facts) => withHolds(facts, documents, holds));
  const last = closed.at(-1);
  const changes = last === undefined ? [] : await readPartnerChanges(tx, { month: last, previous: monthBefore(last) });
  const late = last === undefined ? [] : await readLateRows(tx, { month: last });
  const doubted = feeds.filter(({ doubts, empty }) => empty || doubts.length > 0);
  const sending = documents.length - holds.length;
  return {
    refusal,
    remedies: doubted.filter((each) => isUndecided(each, decisionFor(each, input))).map(closeAnyway),
    json: {
      months: months.map((facts) => monthJson(facts, 'preview')),
      documents: documents.map(documentJson),
      feeds: doubted.map(({ month, empty, doubts }) => ({ month, empty, doubts })),
      holds,
      changes,
      ...otherCurrenciesJson(others),
    },
    button: `Close ${closed.map((each) => monthName(each)).join(', ')} and e-mail ${plural(sending, 'document')}`,
    text: describePreview(months),
    blocks: [
      ...(last === undefined ? [] : comparedBlocks(last, changes)),
      ...doubted.map((each) => doubtsBlock(each, decisionFor(each, input))),
      ...holdsBlocks(holds),
      ...lateBlocks(late),
      ...otherCurrenciesBlocks(others),
      ...(documents.length === 0 ? [] : [documentsBlock(documents)]),
    ],
  };
}

const NOTHING_DUE =
  'Nothing to do: no month is due.\nThe first month with rows is due once it has ended everywhere, then each month.';

const describePreview = (months: readonly MonthFacts[]) =>
  months.length === 0
    ? NOTHING_DUE
    : months
        .map(
          ({ month, entries, late_entries, partners_without_activity: idle, deliveries, ...counts }) =>
            `${monthName(month)} is closed with ${describeCounts(counts)} from ${plural(entries, 'row')}, ` +
            `${late_entries} of them late. ${plural(deliveries.pending, 'document goes', 'documents go')} out by e-mail, ` +
            `and ${deliveries.held} are held. ${plural(idle, 'partner')} had no activity.`,
        )
        .join('\n');

const describeCounts = ({
  invoices,
  credit_notes,
  statements,
}: Pick<MonthFacts, 'invoices' | 'credit_notes' | 'statements'>) =>
  SERIES.format([
    plural(invoices, 'invoice'),
    ...(credit_notes === 0 ? [] : [plural(credit_notes, 'credit note')]),
    ...(statements === 0 ? [] : [plural(statements, 'statement')]),
  ]);
const SERIES = new Intl.ListFormat('en-US');

/** The changes that are listed for each currency. */
const LARGEST = 5;

function comparedBlocks(month: Month, changes: readonly PartnerChange[]): Block[] {
  const before = monthBefore(month);
  const sums = [...new Set(changes.map(({ currency }) => currency))].map((currency) => {
    const own = changes.filter((each) => each.currency === currency);
    const sum = (of: 'last_month' | 'invoice_amount' | 'change') =>
      Amount.sum(currency, own, (each) => Amount.of(each[of], currency));
    return [sum('last_month'), sum('invoice_amount'), sum('change')];
  });
  // A preview's numbers are not final.
  const partners = changes.filter(({ change }) => !isZero(change)).map((each) => ({ ...each, documents: [] }));
  return [
    {
      title: `Totals beside ${monthName(before)}`,
      table: { headings: [`>${monthName(before)}`, `>${monthName(month)}`, '>change'], rows: sums },
    },
    ...changesBlocks({ partners, previous: before, month }, LARGEST),
  ];
}

const documentsBlock = (documents: readonly DocumentRow[]): Block => ({
  title: `All ${plural(documents.length, 'document')}`,
  folded: true,
  table: {
    headings: ['number', '~partner', 'month', '>rows', '>amount due'],
    rows: documents.map((row) => [
      row.number,
      row.partner_name,
      row.month,
      row.lines.reduce((count, line) => count + line.count, 0),
      // A credit note is owed to the partner.
      Amount.of(
        `${row.document === 'credit_note' && !isZero(row.amount_due) ? '-' : ''}${row.amount_due}`,
        row.currency,
      ),
    ]),
  },
});

/** Counts documents of the preview as held if the close would hold them. */
function withHolds(facts: MonthFacts, documents: readonly DocumentRow[], holds: readonly ForeseenHold[]): MonthFacts {
  const { pending, held } = facts.deliveries;
  const numbers = new Set(holds.map(({ number }) => number));
  const count = documents.filter(({ month, number }) => month === facts.month && numbers.has(number)).length;
  return { ...facts, deliveries: { ...facts.deliveries, pending: pending + held - count, held: count } };
}

const holdsBlocks = (holds: readonly ForeseenHold[]): Block[] =>
  holds.length === 0
    ? []
    : [
        {
          title: `${plural(holds.length, 'document')} to be held`,
          table: {
            headings: ['number', '~partner', '~reason'],
            rows: holds.map(({ number, partner_id, reason }) => [
              number,
              { text: partner_id, page: `/console/partners/${encodeURIComponent(partner_id)}` },
              reason,
            ]),
          },
        },
      ];

const otherCurrenciesJson = (others: readonly OtherCurrency[]) =>
  others.length === 0 ? {} : { other_currencies: others.map(otherCurrencyJson) };

const describeOtherCurrencies = (others: readonly OtherCurrency[]) =>
  others.length === 0
    ? []
    : [
        [
          "In a currency other than the partner's own:",
          ...others.flatMap((row) => wrapped(printable(describeOtherCurrency(row)), 76, '  ')),
        ].join('\n'),
      ];

const otherCurrenciesBlocks = (others: readonly OtherCurrency[]): Block[] =>
  others.length === 0
    ? []
    : [{ title: "In a currency other than the partner's own", tone: 'warn', lines: others.map(describeOtherCurrency) }];

function doubtsBlock(feeds: Feeds, decision: FeedDecision): Block {
  const { month, doubts, empty } = feeds;
  const stops = doubts.some((each) => each.stops);
  return {
    title: `In doubt about ${monthName(month)}`,
    tone: 'warn',
    lines: [
      ...(empty ? [`${month} has no rows from any partner.`] : []),
      ...doubts.map(describeDoubt),
      ...(isUndecided(feeds, decision)
        ? ['It does not close automatically.']
        : empty || stops
          ? ['It closes as it is, as requested.']
          : []),
    ],
  };
}

/** Returns a month of the close report in the contract's format. The totals are sums of the month's ledger rows. */
export function monthJson(
  facts: MonthFacts,
  status: 'closed' | 'preview',
  checkpoints: ReadonlyMap<Month, CheckpointOf> = new Map(),
): Record<string, unknown> {
  const checkpoint = checkpoints.get(facts.month);
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
    totals: totalsJson(totals),
    deliveries,
    // A preview has no checkpoint.
    ...(checkpoint !== undefined && { checkpoint }),
  };
}

function describeMonths(
  months: readonly MonthFacts[],
  verb: (facts: MonthFacts) => string,
  checkpoints: ReadonlyMap<Month, CheckpointOf> = new Map(),
) {
  if (months.length === 0) return NOTHING_DUE;
  return months.map((facts) => describeMonth(facts, verb(facts), checkpoints.get(facts.month))).join('\n\n');
}

function describeMonth(facts: MonthFacts, verb: string, checkpoint: CheckpointOf | undefined) {
  const { sent, pending, held, failed, uncertain } = facts.deliveries;
  const totals = facts.totals.map(({ currency, spot_price, partner_cut, invoice_amount }) => [
    `  ${currency}`,
    ...[spot_price, partner_cut, invoice_amount].map((each) => groupThousands(Amount.of(each, currency).toString())),
  ]);
  return [
    `${facts.month} ${verb}`,
    `  Documents   ${describeCounts(facts)}`,
    `  Rows        ${facts.entries}, ${facts.late_entries} of them late`,
    `  Partners    ${facts.partners_without_activity} without activity`,
    `  Deliveries  ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain`,
    ...(checkpoint === undefined ? [] : [`  Checkpoint  ${sizeOf(checkpoint)}, ${checkpoint.root}`]),
    ...(totals.length > 0 ? [table(['  ', '>spotPrice', '>partnerCut', '>invoiceAmount'], totals)] : []),
  ].join('\n');
}
