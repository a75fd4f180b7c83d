/** The calls with which a partner states the totals of its month, and learns whether the ledger agrees. */
import { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { feedJson, stateFeed } from '#close/stated';
import { readStatements } from '#close/stated.sql';
import { Month } from '#month';
import { thisProcess } from '#people/audit-events';
import { OtherResult, pageOf, serve } from './call.ts';
import { operation } from './operation.ts';
import { feedAnswer, month, pageLimit, statedTotals, wholeNumber } from './schemas.ts';
import { Shared } from './shared.ts';

const EXAMPLE = {
  ...{ month: '2026-10', count: 412, totals: { USD: '8311.20' }, complete: true },
  stated_at: '2026-11-01T00:20:00.000Z',
  recorded: { count: 411, totals: { USD: '8296.33' } },
  agrees: false,
  differences: { count: -1, totals: { USD: '-14.87' } },
};

export const stateTotals = operation({
  id: 'stateTotals',
  action: 'makes',
  path: '/api/v1/feeds',
  summary: 'State the totals of your rows of a month',
  description:
    'How many rows (acceptances and reversals) you have in a month of your time zone, and the sums of their ' +
    'invoiceAmount by currency. `differences` are our figures less yours. A month whose complete statement differs is ' +
    'not billed before we have looked at it. With `complete` false, you say that more rows will come. The latest ' +
    'statement of a month counts; the same one again records nothing (200).',
  body: z.strictObject({
    month,
    count: wholeNumber.describe('Rows, including reversals'),
    totals: statedTotals,
    complete: z.boolean().default(true).describe('False: more rows will come'),
  }),
  otherwise: { status: 200, description: 'The same totals were stated last: the statement as it compares now' },
  answer: feedAnswer,
  example: EXAMPLE,
  refusals: ['month_not_begun', 'ledger_busy'],
});

export const listFeeds = operation({
  id: 'listFeeds',
  action: 'reads',
  path: '/api/v1/feeds',
  summary: 'The totals that you stated',
  description:
    'Your latest statement of each month, the latest month first, compared with the rows as they are recorded now.',
  query: z.strictObject({
    limit: pageLimit,
    cursor: month.optional().describe('Only statements of earlier months than this one'),
    month: month.optional().describe('Only the statement of this month, YYYY-MM'),
  }),
  answer: z.array(feedAnswer),
  example: [EXAMPLE],
  refusals: ['request_invalid'],
});

export function addFeeds(app: FastifyInstance, shared: Shared) {
  const acting = { environment: shared.environment, actor: thisProcess('http') };
  serve(app, shared, stateTotals, async (tx, { body, caller: { partnerId, clientId } }) => {
    const { month, count: entries, totals, complete } = body;
    const given = { partnerId, clientId, month: month as Month, stated: { entries, totals }, complete };
    const { feed, fresh } = await stateFeed(tx, acting, given);
    return fresh ? feedJson(feed) : new OtherResult(feedJson(feed));
  });
  serve(app, shared, listFeeds, async (tx, { query, caller: { partnerId } }) => {
    const { month, cursor, limit } = query;
    const after = cursor === undefined ? null : { month: cursor, partnerId };
    const items = await readStatements(tx, { partnerId, month: month as Month | undefined, after, limit: limit + 1 });
    return pageOf(shared, listFeeds, { query, items: items.map(feedJson), cursorOf: (each) => each.month });
  });
}
