/**
 * Expected feeds: the partners whose rows a month should have before it closes. A partner is expected if it is active and
 * had rows of its own in each of the last closed months. Refusals: feeds_missing, month_empty, feed_not_missing,
 * partner_unknown.
 */
import type { Settings } from '../config/settings.ts';
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Month } from '../month.ts';
import { type ToDo, toDo } from '../remedy.ts';

/** A partner that skipped one of these months is not expected. With one closed month, that one decides. */
const MONTHS_COMPARED = 2;

interface ExpectedFeed {
  readonly partner_id: string;
  readonly name: string;
  /** Whether the month has rows of the partner by now. */
  readonly arrived: boolean;
}

export interface Feeds {
  readonly month: Month;
  /** In the order of their ids; without those that the setting `allow_empty` names. */
  readonly expected: readonly ExpectedFeed[];
  /** Whether no row of any partner posts to the month. */
  readonly empty: boolean;
}

/** Which feeds a month should have and which of them have arrived. The months before it that are closed decide. */
export async function readPartnerFeeds(
  tx: Transaction,
  { allow_empty: allowed }: Pick<Settings, 'allow_empty'>,
  month: Month,
): Promise<Feeds> {
  if (allowed === true) return { month, expected: [], empty: false };
  const expected = await query<ExpectedFeed>(
    tx,
    // The documents of closed months say whose rows they bill; what came late may not be billed yet. A scalar subquery is
    // one probe of the primary key for each partner and month; EXISTS may read the whole ledger.
    `WITH compared AS MATERIALIZED (
       SELECT month FROM closed_months WHERE month < :month ORDER BY month DESC LIMIT :monthsCompared
     ), billed AS MATERIALIZED (
       SELECT DISTINCT d.partner_id, l.month FROM documents d JOIN document_lines l USING (document_id)
       WHERE d.month >= (SELECT min(month) FROM compared) AND l.month IN (SELECT month FROM compared)
     )
     SELECT p.partner_id, p.name,
            (SELECT true FROM ledger_rows r
             WHERE r.partner_id = p.partner_id AND r.posted_month >= :month AND r.month = :month LIMIT 1)
            IS NOT NULL AS arrived
     FROM partners p
     WHERE p.inactive_since IS NULL AND p.partner_id <> ALL (:allowed::text[])
       AND (SELECT count(*) > 0 AND bool_and((p.partner_id, c.month) IN (SELECT partner_id, month FROM billed) OR (
              SELECT true FROM ledger_rows r
              WHERE r.partner_id = p.partner_id AND r.posted_month > c.month AND r.month = c.month
              LIMIT 1) IS NOT NULL)
            FROM compared c)
     ORDER BY p.partner_id`,
    { month, monthsCompared: MONTHS_COMPARED, allowed: allowed === false ? [] : allowed },
  );
  const { empty } = await queryOne<{ empty: boolean }>(
    tx,
    // The first partner with rows ends it.
    `SELECT (SELECT true FROM partners p
             WHERE (SELECT true FROM ledger_rows r
                    WHERE r.partner_id = p.partner_id AND r.posted_month = :month LIMIT 1) LIMIT 1) IS NULL AS empty`,
    { month },
  );
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
