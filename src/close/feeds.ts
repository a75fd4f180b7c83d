/**
 * Expected feeds: the partners whose rows a month should have before it closes. A partner is expected if it is active
 * and had its own rows in each of the last closed months. Refusals: feeds_missing, month_empty, feed_not_missing,
 * partner_unknown.
 */
import type { Settings } from '../config/settings.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Month } from '../month.ts';
import { type ToDo, toDo } from '../remedy.ts';
import { type ExpectedFeed, readExpectedFeeds, readWhetherEmpty } from './feeds.sql.ts';

/** A partner that skipped one of these months is not expected. If only one month is closed, that month decides. */
const MONTHS_COMPARED = 2;

export interface Feeds {
  readonly month: Month;
  /** Partners in the order of their ids, without those that the setting `allow_empty` names. */
  readonly expected: readonly ExpectedFeed[];
  /** Whether no row of any partner posts to the month. */
  readonly empty: boolean;
}

/** Which feeds a month should have and which of them have arrived. The closed months before it decide. */
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

/** Whether a close of the month needs a decision of the operator. */
export const isIncomplete = (feeds: Feeds): boolean => missingFeeds(feeds).length > 0 || feeds.empty;

/** The operator's decisions about the feeds of the month to close. */
export interface FeedDecision {
  /** Partners whose feed is missing and that the month closes without. */
  readonly without?: readonly string[] | undefined;
  /** Close without any missing feed, even with no rows at all. */
  readonly allowEmpty?: boolean | undefined;
}

/** Refuses a decision about a feed that is not missing. */
export function refuseStrangers(feeds: Feeds, { without = [] }: FeedDecision): void {
  const missing = missingFeeds(feeds);
  const stranger = without.find((id) => !missing.some(({ partner_id }) => partner_id === id));
  if (stranger !== undefined) throw refuse('feed_not_missing', { month: feeds.month, partner_id: stranger });
}

/** What the operator has yet to decide before the month closes: the feeds that are missing, and whether it has no rows. */
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

/** How to close an incomplete month anyway. */
export const closeAnyway = (feeds: Feeds): ToDo => {
  const { month, empty } = feeds;
  const without = missingFeeds(feeds).map(({ partner_id }) => partner_id);
  return empty
    ? toDo('Close it empty', 'month.close', { month, allowEmpty: 'yes' }, 'if there were no sales')
    : toDo('Close without them', 'month.close', { month, without }, 'if they had no sales');
};

/** Refuses a month that has no rows at all, or lacks an expected feed, unless the operator accepted that. */
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
