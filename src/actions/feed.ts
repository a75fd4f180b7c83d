/** Stating the totals of a partner's rows of a month (close/stated.ts). */
import { type FeedTotals, readStatements, type StatedTotals } from '../close/stated.sql.ts';
import { differencesOf, feedJson, stateFeed } from '../close/stated.ts';
import { refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { fieldName } from '../field-names.ts';
import { readTotals } from '../ledger/control.ts';
import { Amount, groupThousands, moneyText } from '../money.ts';
import { toRun } from '../remedy.ts';
import { counted, plural } from '../text.ts';
import { printable, table } from '../text-table.ts';
import { defineAction, type Facts } from './action.ts';
import { flag, month, several, text, whole } from './fields.ts';

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
A month with rows that contradict a complete statement does not close.`,
  },
  role: 'finance',
  input: {
    partnerId: text('Partner', 'The partner.'),
    month: month('Month', "The month of the rows, in the partner's time zone."),
    count: whole('Rows', 'The number of rows, including reversals.', { least: 0, value: 'rows' }),
    control: several(text('Control total', 'The sum of invoiceAmount in a currency, as USD=8311.20.')).optional(),
    incomplete: flag('Incomplete', 'More rows of the month will come.').optional(),
  },
  check({ count, control }) {
    if (count === 0 || control !== undefined) return;
    throw refuse('usage', { reason: `give ${fieldName('control', 'USD=8311.20')} for each currency of the rows` });
  },
  subject: ({ partnerId }) => partnerId,
  partners: async (_tx, { partnerId }) => [partnerId],
  perform: (tx, context, { partnerId, month, count, control = [], incomplete = false }) =>
    stateFeed(tx, context, {
      ...{ partnerId, month, complete: !incomplete, stated: { entries: count, totals: readTotals(control) } },
    }),
  committed: () => failpoint('feed.committed'),
  async facts(tx, { partnerId, month }): Promise<Facts> {
    const [feed] = await readStatements(tx, { partnerId, month });
    return feed === undefined ? {} : { [`${month} of ${partnerId}`]: factsOf(feed) };
  },
  amounts: () => [],
  report: async (_tx, { width }, { result: { feed, fresh } }) => ({
    json: { ...feedLine(feed), already_stated: !fresh },
    text: describe(feed, { fresh, width }),
    remedies: [toRun('See all statements', 'feed list', '/console/feeds')],
    attention: feed.complete && !feed.agrees,
  }),
});

export const feedLine = (feed: StatedTotals) => ({
  ...{ partner_id: feed.partner_id, name: feed.name, ...feedJson(feed) },
});

function describe(feed: StatedTotals, { fresh, width }: { fresh: boolean; width: number | undefined }): string {
  const { name, month, complete, stated, here, agrees } = feed;
  const currencies = [...new Set([...Object.keys(stated.totals), ...Object.keys(here.totals)])].sort();
  const line = (what: string, { entries, totals }: FeedTotals) => [
    ...[what, counted(entries), ...currencies.map((each) => groupThousands(totals[each] ?? Amount.zero(each).toString()))],
  ];
  return [
    `${printable(name)}, ${month}: ${fresh ? 'stated' : 'already stated'}${complete ? '.' : '. More rows will come.'}`,
    '',
    table(
      ['', '>rows', ...currencies.map((each) => `>${each}`)],
      [line('stated', stated), line('recorded', here), line('difference', differencesOf(feed))],
      width,
    ),
    '',
    agrees
      ? 'The ledger agrees.'
      : complete
        ? 'The ledger differs. Import what is missing, reverse what is wrong, or state other totals.'
        : 'The ledger differs.',
  ].join('\n');
}

/** Returns `412 rows, 8,311.20 USD`. */
export const totalsText = ({ entries, totals }: FeedTotals): string =>
  [plural(entries, 'row'), ...Object.entries(totals).map(([currency, amount]) => moneyText(amount, currency))].join(
    ', ',
  );

const factsOf = ({ stated, complete, agrees }: StatedTotals): Facts[string] => ({
  stated: totalsText(stated),
  complete: complete ? 'yes' : 'no',
  'the ledger agrees': agrees ? 'yes' : 'no',
});
