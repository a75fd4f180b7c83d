/**
 * Checks expected feeds before a month closes. A feed is expected from each active partner that had its own rows in
 * each of the last closed months. Refusals: feeds_missing, month_empty, feed_not_missing, partner_unknown.
 */
import type { Settings } from '../config/settings.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Month } from '../month.ts';
import { type ToDo, toDo } from '../remedy.ts';
import { type ExpectedFeed, readExpectedFeeds, readWhetherEmpty } from './feeds.sql.ts';

/**
 * How many of the latest closed months decide whether a feed is expected. If only one month is closed, that month
 * decides alone.
 */
const MONTHS_COMPARED = 2;

export interface Feeds {
  readonly month: Month;
  /** The partners with an expected feed, by id, without the partners in the setting `allow_empty`. */
  readonly expected: readonly ExpectedFeed[];
  readonly empty: boolean;
}

export async function readPartnerFeeds(
  tx: Transaction,
  { allow_empty: allowed }: Pick<Settings, 'allow_empty'>,
  month: Month,
): Promise<Feeds> {
  if (allowed === true) return { month, expected: [], empty: false };
  const given = { month, monthsCompared: MONTHS_COMPARED, allowed: allowed === false ? [] : allowed };
  const expected = await readExpectedFeeds(tx, given);
  const { empty } = await readWhetherEmpty(tx, month);
  return { month, expected, empty };
}

export const missingFeeds = ({ expected }: Feeds): ExpectedFeed[] => expected.filter(({ arrived }) => !arrived);

export const isIncomplete = (feeds: Feeds): boolean => missingFeeds(feeds).length > 0 || feeds.empty;

export interface FeedDecision {
  readonly without?: readonly string[] | undefined;
  /** Accept every missing feed, even a month without any rows. */
  readonly allowEmpty?: boolean | undefined;
}

export function refuseStrangers(feeds: Feeds, { without = [] }: FeedDecision): void {
  const missing = missingFeeds(feeds);
  const stranger = without.find((id) => !missing.some(({ partner_id }) => partner_id === id));
  if (stranger !== undefined) throw refuse('feed_not_missing', { month: feeds.month, partner_id: stranger });
}

/** The missing feeds that the operator has not accepted yet, and whether an empty month is not accepted yet. */
export function undecidedFeeds(
  feeds: Feeds,
  { without = [], allowEmpty = false }: FeedDecision,
): { readonly partners: readonly ExpectedFeed[]; readonly empty: boolean } {
  if (allowEmpty) return { partners: [], empty: false };
  return {
    partners: missingFeeds(feeds).filter(({ partner_id }) => !without.includes(partner_id)),
    empty: feeds.empty,
  };
}

export const closeAnyway = (feeds: Feeds): ToDo => {
  const { month, empty } = feeds;
  const without = missingFeeds(feeds).map(({ partner_id }) => partner_id);
  return empty
    ? toDo('Close it empty', 'month.close', { month, allowEmpty: 'yes' }, 'if there were no sales')
    : toDo('Close without them', 'month.close', { month, without }, 'if they had no sales');
};

/** Refuses a month that has no rows, or lacks an expected feed, unless the operator accepted that. */
export function refuseMissingFeeds(feeds: Feeds, decision: FeedDecision): void {
  const { month } = feeds;
  const { partners, empty } = undecidedFeeds(feeds, decision);
  if (empty) throw refuse('month_empty', { month });
  refuseStrangers(feeds, decision);
  if (partners.length > 0) {
    throw refuse('feeds_missing', {
      month,
      partners: partners.map(({ partner_id, name }) => ({ partner_id, name })),
      ...(decision.without && { without: [...new Set(decision.without)] }),
    });
  }
}
