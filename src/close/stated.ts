/**
 * Records what a partner, or finance on its behalf, states of its rows of a month: their number, the sums of their
 * invoice amounts, and whether more will come. A repeated statement records nothing. Refusals: partner_unknown,
 * month_not_begun.
 */
import { isDeepStrictEqual } from 'node:util';
import { lockLedgerShared } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { totalDifferences } from '#ledger/control';
import { ActorContext, recordEvent } from '#people/audit-events';
import { instant } from '#quotes/accept';
import { Month, moneyText, monthOf, plural } from '#values';
import { FeedTotals, insertStatement, lockFeed, readStatements, StatedTotals } from './stated.sql.ts';

type FeedStatement = Readonly<{
  partnerId: string;
  month: Month;
  stated: FeedTotals;
  complete: boolean;
  /** The API client that stated the totals. */
  clientId?: string;
}>;

/** Records a statement, unless the latest one of the partner and month is the same. */
export async function stateFeed(
  tx: Transaction,
  { environment, actor }: Pick<ActorContext, 'environment' | 'actor'>,
  { partnerId, month, stated, complete, clientId }: FeedStatement,
): Promise<Readonly<{ feed: StatedTotals; fresh: boolean }>> {
  const partner = await lockFeed(tx, { partnerId });
  if (partner === undefined) throw refuse('partner_unknown', { partner_id: partnerId });
  const { time_zone } = partner;
  if (month > monthOf(environment.now(), time_zone)) throw refuse('month_not_begun', { month, time_zone });
  // Until the transaction ends, no checkpoint is taken, so the figures are those of one moment.
  await lockLedgerShared(tx);
  const [known] = await readStatements(tx, { partnerId, month });
  if (known?.complete === complete && isDeepStrictEqual(known.stated, stated)) return { feed: known, fresh: false };
  const now = environment.now().toISO();
  const details = { month, ...stated, complete, ...(clientId !== undefined && { client_id: clientId }) };
  const eventId = await recordEvent(tx, actor, { action: 'feed.state', subject: partnerId, details, now });
  await insertStatement(tx, { ...{ partnerId, month, ...stated, complete, now, eventId } });
  failpoint('feed.recorded');
  const [feed] = await readStatements(tx, { partnerId, month });
  return { feed: feed as StatedTotals, fresh: true };
}

/** A statement as programs see it: the stated figures, those of the ledger, and the differences. */
export const feedJson = (feed: StatedTotals) => {
  const figures = ({ entries: count, totals }: FeedTotals) => ({ count, totals });
  return {
    ...{ month: feed.month, ...figures(feed.stated), complete: feed.complete, stated_at: instant(feed.recorded_at) },
    ...{ recorded: figures(feed.here), agrees: feed.agrees, differences: figures(differencesOf(feed)) },
  };
};

/** The ledger's figures less the stated ones: the number of rows, and the amount of each currency that differs. */
export function differencesOf({ stated, here }: Pick<StatedTotals, 'stated' | 'here'>): FeedTotals {
  const differences = totalDifferences(stated.totals, here.totals);
  return {
    entries: here.entries - stated.entries,
    totals: Object.fromEntries(differences.map((each) => [each.currency, each.toString()])),
  };
}

/** Returns `412 rows, 8,311.20 USD`. */
export const totalsText = ({ entries, totals }: FeedTotals) =>
  [plural(entries, 'row'), ...Object.entries(totals).map(([currency, amount]) => moneyText(amount, currency))].join(
    ', ',
  );
