import { acceptDoubts } from '../close/close.ts';
import { type Doubt, describeDoubt } from '../close/feeds.ts';
import { failpoint } from '../failpoint.ts';
import { toDo } from '../remedy.ts';
import { printable } from '../text-table.ts';
import { defineAction, type Facts } from './action.ts';
import { month, reason, text } from './fields.ts';

export const feedAccept = defineAction({
  name: 'feed.accept',
  title: "Accept what is in doubt about a partner's rows of a month",
  command: {
    summary: "Accept what is in doubt about a partner's rows, so that the month can close",
    arguments: { month: '<month>', partner: '<partner>' },
  },
  role: 'finance',
  input: {
    month: month('Month', 'The open month.'),
    partner: text('Partner', 'The partner whose rows are right as they are, or who had no sales.'),
    reason: reason(),
  },
  subject: ({ partner }) => partner,
  partners: async (_tx, { partner }) => [partner],
  perform: (tx, context, { month: of, partner, reason: why }) =>
    acceptDoubts(tx, context, { month: of, partnerId: partner, reason: why }),
  committed: () => failpoint('feed_decision.committed'),
  // The evidence is part of the effect, so that an approval covers the numbers that were shown.
  facts: async (_tx, { partner, month: of }, accepted) => factsOf(`${partner} ${of}`, accepted ?? []),
  amounts: () => [],
  report: async (_tx, _context, { input: { month: of }, result: accepted }) => ({
    json: { month: of, accepted: accepted.map(({ partner_id, kind, evidence }) => ({ partner_id, kind, evidence })) },
    text: [`Accepted for ${of}:`, ...accepted.map((each) => `  ${printable(describeDoubt(each))}`)].join('\n'),
    remedies: [toDo('Close the month now', 'month.close', { month: of })],
  }),
});

const factsOf = (of: string, accepted: readonly Doubt[]): Facts =>
  accepted.length === 0 ? {} : { [of]: Object.fromEntries(accepted.map(({ kind, evidence }) => [kind, evidence])) };
