/** Stating the totals of a partner's rows of a month (close/stated.ts), and accepting doubts about them (close/feeds.ts). */
import { acceptDoubts } from '#close/close';
import { Doubt, describeDoubt } from '#close/feeds';
import { differencesOf, feedJson, stateFeed, totalsText } from '#close/stated';
import { FeedTotals, readStatements, StatedTotals } from '#close/stated.sql';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { currenciesOf, readTotals } from '#ledger/control';
import { toDo, toRun } from '#remedy';
import { printable } from '#text-table';
import { Amount, counted, groupThousands } from '#values';
import {
  defineAction,
  Facts,
  flag,
  month,
  OF_PARTNER,
  partner,
  Report,
  reason,
  several,
  text,
  whole,
} from './action.ts';

export const feedState = defineAction({
  name: 'feed.state',
  title: "State the totals of a partner's month",
  command: {
    summary: "State how many rows a partner's month has, and their totals; safe to repeat",
    arguments: { partnerId: '<partner>', month: '<month>' },
    options: { control: '--control <currency=total...>' },
    help: `The totals are those of the partner: the number of its rows of the month, and
the sum of their invoiceAmount in each currency, reversals included. Rows count
in their own month, even if they are billed later. The latest statement counts.
A month whose rows contradict a complete statement waits for a decision.`,
  },
  role: 'finance',
  input: {
    partnerId: partner(),
    month: month('Month', "The month of the rows, in the partner's time zone."),
    count: whole('Rows', 'The number of rows, including reversals.', { least: 0, value: 'rows' }),
    control: several(text('Control total', 'The sum of invoiceAmount in a currency, as USD=8311.20.')).optional(),
    incomplete: flag('Incomplete', 'More rows of the month will come.').optional(),
  },
  check({ count, control }) {
    if (count === 0 || control !== undefined) return;
    throw refuse('usage', { reason: `give ${fieldName('control', 'USD=8311.20')} for each currency of the rows` });
  },
  ...OF_PARTNER,
  perform: (tx, context, { partnerId, month, count, control = [], incomplete = false }) =>
    stateFeed(tx, context, {
      ...{ partnerId, month, complete: !incomplete, stated: { entries: count, totals: readTotals(control) } },
    }),
  committed: () => failpoint('feed.committed'),
  async facts(tx, { partnerId, month }): Promise<Facts> {
    const [feed] = await readStatements(tx, { partnerId, month });
    return feed === undefined ? {} : { [`${month} of ${partnerId}`]: factsOf(feed) };
  },
  report: async ({ result: { feed, fresh } }) => ({
    json: { ...feedLine(feed), already_stated: !fresh },
    ...describe(feed, fresh),
    remedies: [toRun('See all statements', 'feed list', '/console/feeds')],
    attention: feed.complete && !feed.agrees,
  }),
});

export const feedLine = (feed: StatedTotals) => ({
  ...{ partner_id: feed.partner_id, name: feed.name, ...feedJson(feed) },
});

function describe(feed: StatedTotals, fresh: boolean): Omit<Report, 'json'> {
  const { name, month, complete, stated, here, agrees } = feed;
  const currencies = currenciesOf(stated.totals, here.totals);
  const line = (what: string, { entries, totals }: FeedTotals) => [
    ...[
      what,
      counted(entries),
      ...currencies.map((each) => groupThousands(totals[each] ?? Amount.zero(each).toString())),
    ],
  ];
  const text = [
    `${printable(name)}, ${month}: ${fresh ? 'stated' : 'already stated'}${complete ? '.' : '. More rows will come.'}`,
    agrees
      ? 'The ledger agrees.'
      : complete
        ? 'The ledger differs. Import what is missing, reverse what is wrong, or state other totals.'
        : 'The ledger differs.',
  ].join('\n');
  const table = {
    headings: ['', '>rows', ...currencies.map((each) => `>${each}`)],
    rows: [line('stated', stated), line('recorded', here), line('difference', differencesOf(feed))],
  };
  return { text, blocks: [{ title: 'Totals', table }] };
}

const factsOf = ({ stated, complete, agrees }: StatedTotals): Facts[string] => ({
  stated: totalsText(stated),
  complete: complete ? 'yes' : 'no',
  'the ledger agrees': agrees ? 'yes' : 'no',
});

export const feedAccept = defineAction({
  name: 'feed.accept',
  title: "Accept what is in doubt about a partner's rows of a month",
  command: {
    summary: "Accept what is in doubt about a partner's rows, so that the month can close",
    arguments: { partnerId: '<partner>', month: '<month>' },
  },
  role: 'finance',
  input: {
    partnerId: partner('The partner whose rows are right as they are, or who had no sales.'),
    month: month('Month', 'The open month.'),
    reason: reason(),
  },
  ...OF_PARTNER,
  perform: (tx, context, { partnerId, month: of, reason: why }) =>
    acceptDoubts(tx, context, { month: of, partnerId, reason: why }),
  committed: () => failpoint('feed_decision.committed'),
  // The evidence is part of the effect, so that an approval covers the numbers that were shown.
  facts: async (_tx, { partnerId, month: of }, accepted) => acceptedFacts(`${of} of ${partnerId}`, accepted ?? []),
  report: async ({ input: { month: of }, result: accepted }) => ({
    json: { month: of, accepted: accepted.map(({ partner_id, kind, evidence }) => ({ partner_id, kind, evidence })) },
    text: [`Accepted for ${of}:`, ...accepted.map((each) => `  ${printable(describeDoubt(each))}`)].join('\n'),
    remedies: [toDo('Close the month now', 'month.close', { month: of })],
  }),
});

const acceptedFacts = (of: string, accepted: readonly Doubt[]): Facts =>
  accepted.length === 0 ? {} : { [of]: Object.fromEntries(accepted.map(({ kind, evidence }) => [kind, evidence])) };
