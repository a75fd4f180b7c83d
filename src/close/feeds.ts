/**
 * Doubts about the rows of a month before it closes. A doubt of a certain kind stops the month until a person decides. A
 * doubt that only history suggests holds the e-mails of the partner's documents, unless the partner's feed is strict. A
 * decision is a fact and covers a doubt with the same evidence. Refusals: feeds_in_doubt, month_empty,
 * feed_not_in_doubt, decide_separately.
 */
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { closeAccepting, closeEmpty } from '#errors/close';
import { refuse } from '#errors/refusals';
import { readLastClosed } from '#ledger/closed-months.sql';
import { readLastCheckpoint } from '#log/checkpoints.sql';
import { Scope } from '#people/scope';
import { Remedy, ToDo, toDo } from '#remedy';
import { counted, Month, moneyText, monthBefore, plural } from '#values';
import {
  ExpectedFeed,
  FeedHistory,
  insertFeedDecisions,
  RepeatedDelivery,
  readExpectedFeeds,
  readFeedDecisions,
  readFeedHistories,
  readLastImport,
  readRepeatedDeliveries,
  readWhetherEmpty,
  readWhetherStrict,
  StoredFeedDecision,
} from './feeds.sql.ts';
import { readStatedTotals, readStatements, StatedTotals } from './stated.sql.ts';
import { totalsText } from './stated.ts';
import { earlyEnd, fewSales, MOST_MONTHS } from './usual.ts';

/**
 * How many of the latest closed months decide whether a feed is expected. If only one month is closed, that month
 * decides alone.
 */
const MONTHS_COMPARED = 2;

type DoubtKind = 'missing' | 'incomplete' | 'totals' | 'repeated' | 'few' | 'early';

export type Doubt = Readonly<{
  partner_id: string;
  name: string;
  /**
   * `missing`: an expected feed without any row. `incomplete`: the partner stated that more rows will come. `totals`: the
   * rows contradict the totals that the partner stated. `repeated`: a delivery came again under other ids. `few` and
   * `early`: fewer sales, or an earlier last day, than the months before let expect.
   */
  kind: DoubtKind;
  /** What was found, with its numbers: `has no rows`. The partner is the subject. */
  evidence: string;
  /** The currency of `repeated`, `few` and `early`. */
  currency?: string;
  /** Whether the doubt stops the month. Otherwise, the partner's documents of the month are held. */
  stops: boolean;
  /** Whether a person accepted the doubt with this evidence. */
  accepted: boolean;
  /** How many doubts of this kind about the partner's month a person accepted with other evidence. */
  accepted_before: number;
}>;

export type Feeds = Readonly<{
  month: Month;
  /** The partners with an expected feed, by id, without the partners in the setting `allow_empty`. */
  expected: readonly ExpectedFeed[];
  empty: boolean;
  /** Whether a decision needs approval, so that a close cannot take it. */
  needsApproval: boolean;
  /** The doubts in the order of partners. */
  doubts: readonly Doubt[];
}>;

/** Which doubts are read that history suggests: none of a month that has not ended, or only those that stop the month. */
type HistoryRead = 'none' | 'strict' | 'all';

export type Reading = Readonly<{
  history: HistoryRead;
  judged?: JudgedDeliveries | undefined;
}>;

/** The repeated deliveries among the imports of a month up to an event. */
export type JudgedDeliveries = Readonly<{
  month: Month;
  to: number;
  found: readonly RepeatedDelivery[];
}>;

/** Judges the imports that were not judged yet. Before a close takes the ledger's lock, it judges those of weeks. */
export async function judgeDeliveries(
  tx: Transaction,
  month: Month,
  judged?: JudgedDeliveries,
): Promise<JudgedDeliveries> {
  const before = judged?.month === month ? judged : { to: 0, found: [] };
  const { event_id: to } = await readLastImport(tx, { month });
  if (to === before.to) return { month, ...before };
  const from = monthBefore(monthBefore(month));
  return {
    month,
    to,
    found: [...before.found, ...(await readRepeatedDeliveries(tx, { month, from, after: before.to }))],
  };
}

type Suspicion = Omit<Doubt, 'accepted' | 'accepted_before'>;

export async function readPartnerFeeds(
  tx: Transaction,
  { allow_empty: allowed, approvals }: Pick<Settings, 'allow_empty' | 'approvals'>,
  month: Month,
  { history, judged, ...clock }: Reading & Readonly<{ now: string; hasEnded: boolean }>,
): Promise<Feeds> {
  const given = { month, monthsCompared: MONTHS_COMPARED, allowed: Array.isArray(allowed) ? allowed : [], ...clock };
  const statements = await readStatedTotals(tx, month);
  const stating = new Map(statements.map((each) => [each.partner_id, each]));
  // A statement of no rows is the feed of a partner without sales. A statement of rows that are missing is contradicted.
  const expected =
    allowed === true
      ? []
      : (await readExpectedFeeds(tx, given)).map((feed) =>
          stating.has(feed.partner_id) ? { ...feed, arrived: true, missing: false } : feed,
        );
  const found: Suspicion[] = [
    ...expected.filter(({ arrived }) => !arrived).map(missing),
    ...statements.flatMap(ofStatement),
    ...(await judgeDeliveries(tx, month, judged)).found.map(repeated),
    ...(await readUnusual(tx, month, history)).filter(({ partner_id }) => !isConfirmed(stating.get(partner_id))),
  ];
  const decisions = await readFeedDecisions(tx, { month });
  const decided = new Set(decisions.map(keyOf));
  const before = ({ partner_id, kind, evidence }: Suspicion) =>
    decisions.filter((each) => each.partner_id === partner_id && each.kind === kind && each.evidence !== evidence)
      .length;
  const doubts = [...new Map(found.map((each) => [keyOf(each), each])).values()];
  return {
    month,
    expected,
    needsApproval: approvals['feed.accept'] !== undefined,
    empty: allowed !== true && (await readWhetherEmpty(tx, { month })).empty,
    doubts: doubts
      .map((each) => ({ ...each, accepted: decided.has(keyOf(each)), accepted_before: before(each) }))
      .sort((one, other) => (one.partner_id < other.partner_id ? -1 : one.partner_id > other.partner_id ? 1 : 0)),
  };
}

const keyOf = ({ partner_id, kind, evidence }: { partner_id: string; kind: string; evidence: string }) =>
  JSON.stringify([partner_id, kind, evidence]);

const missing = ({ partner_id, name }: ExpectedFeed): Suspicion => ({
  ...{ partner_id, name, kind: 'missing', stops: true },
  evidence: 'has no rows, but had rows in each of the last closed months',
});

const isConfirmed = (statement: StatedTotals | undefined) => statement?.complete === true && statement.agrees;

function ofStatement({ partner_id, name, complete, agrees, stated, here }: StatedTotals): Suspicion[] {
  const said = `stated ${totalsText(stated)}`;
  const about = { partner_id, name, stops: true };
  if (!complete) {
    return [
      {
        ...about,
        kind: 'incomplete',
        evidence: `${said} so far, and that more will come. The ledger has ${totalsText(here)}`,
      },
    ];
  }
  return agrees ? [] : [{ ...about, kind: 'totals', evidence: `${said}, but the ledger has ${totalsText(here)}` }];
}

const repeated = (found: RepeatedDelivery): Suspicion => ({
  ...{ partner_id: found.partner_id, name: found.name, currency: found.currency, kind: 'repeated', stops: true },
  evidence:
    `delivered the same ${plural(found.entries, 'row')} of ${moneyText(found.invoice_amount, found.currency)} twice under ` +
    `different ids, ${found.first === null ? 'in one import' : `at ${found.first} and`} at ${found.second}`,
});

async function readUnusual(tx: Transaction, month: Month, history: HistoryRead) {
  if (history === 'none' || (history === 'strict' && !(await readWhetherStrict(tx)).strict)) return [];
  const rows = {
    ...{ month, previous: await readLastClosed(tx), partnerIds: null },
    covered: (await readLastCheckpoint(tx))?.last_no ?? 0,
  };
  const asked = { ...rows, monthsCompared: MOST_MONTHS, onlyStrict: history === 'strict' };
  return (await readFeedHistories(tx, asked)).flatMap(unusual);
}

function unusual(feed: FeedHistory) {
  const { partner_id, name, currency, strict, sales, quiet, sales_now: now, quiet_now: quietNow } = feed;
  const about = { partner_id, name, currency, stops: strict };
  const before = `the ${plural(sales.length, 'month')} before`;
  const found: Suspicion[] = [];
  if (now <= fewSales(sales)) {
    const [least, most] = [Math.min(...sales), Math.max(...sales)];
    const range = least === most ? counted(most) : `${counted(least)} to ${counted(most)}`;
    const evidence = `has ${plural(now, 'sale')} in ${currency}, where ${before} had ${range}`;
    found.push({ ...about, kind: 'few', evidence });
  }
  if (quietNow !== null && quietNow >= earlyEnd(sales, quiet)) {
    const evidence =
      `has no row in ${currency} in the last ${plural(quietNow, 'day')} of the month, where ${before} had at most ` +
      `${plural(Math.max(...quiet), 'day')} without a row at the end`;
    found.push({ ...about, kind: 'early', evidence });
  }
  return found;
}

/** A statement of a closed month that the ledger contradicts, and that no one accepted before the close. */
type Contradicted = StatedTotals & Pick<Doubt, 'evidence'>;

/** Partners often state the totals of a month when it is closed already. Reads those of the last two closed months. */
export async function readContradicted(tx: Transaction, scope: Scope): Promise<Contradicted[]> {
  const last = await readLastClosed(tx);
  if (last === null) return [];
  const from = monthBefore(last);
  const decided = new Set(
    [...(await readFeedDecisions(tx, { month: last })), ...(await readFeedDecisions(tx, { month: from }))].map(keyOf),
  );
  return (await readStatements(tx, { from, scope, differing: true }))
    .filter(({ month, complete }) => month <= last && complete)
    .flatMap((each) => ofStatement(each).map((doubt) => ({ ...each, ...doubt })))
    .filter((each) => !decided.has(keyOf(each)));
}

// --- Decisions ---

export type FeedDecision = Readonly<{
  /** Accept that these partners have no rows. */
  without?: readonly string[] | undefined;
  /** Accept the other doubts about the rows of these partners. */
  acceptFeed?: readonly string[] | undefined;
  /** Accept every missing feed, even a month without any rows. */
  allowEmpty?: boolean | undefined;
}>;

const isDecided = (doubt: Doubt, { without = [], acceptFeed = [], allowEmpty = false }: FeedDecision) =>
  doubt.accepted ||
  (doubt.kind === 'missing' ? allowEmpty || without.includes(doubt.partner_id) : acceptFeed.includes(doubt.partner_id));

/** Feeds that have not arrived, and those that alarm: they are later than usual for their partner. */
export const missingFeeds = ({ expected }: Feeds): ExpectedFeed[] => expected.filter(({ arrived }) => !arrived);
export const lateFeeds = ({ expected }: Feeds): ExpectedFeed[] => expected.filter(({ missing: late }) => late);

/** `2 feeds missing`, or, if none is later than usual, `2 feeds not here yet`. */
export function outstandingFeeds(feeds: Feeds) {
  const late = lateFeeds(feeds).length;
  const rest = missingFeeds(feeds).length - late;
  return [late > 0 ? `${plural(late, 'feed')} missing` : '', rest > 0 ? `${plural(rest, 'feed')} not here yet` : '']
    .filter((each) => each !== '')
    .join(', ');
}

/** The doubts that stop the month and that no one has accepted yet, and whether an empty month is not accepted yet. */
export const undecidedFeeds = (
  { doubts, empty }: Feeds,
  decision: FeedDecision = {},
): Readonly<{ doubts: readonly Doubt[]; empty: boolean }> => ({
  doubts: doubts.filter((each) => each.stops && !isDecided(each, decision)),
  empty: empty && !decision.allowEmpty,
});

/** `p-2 (Harbour Lights) has no rows, but had rows in each of the last closed months` */
export const describeDoubt = ({ partner_id, name, evidence, accepted }: Doubt) =>
  `${partner_id} (${name}) ${evidence}${accepted ? ' (accepted)' : ''}`;

/** The same of an accepted doubt, with the reason. */
export const describeDecision = ({ partner_id, name, evidence, reason }: StoredFeedDecision) =>
  `${partner_id} (${name}) ${evidence}${reason === null ? '' : `: ${reason}`}`;

export const isUndecided = (feeds: Feeds, decision?: FeedDecision) => {
  const { doubts, empty } = undecidedFeeds(feeds, decision);
  return empty || doubts.length > 0;
};

/** The doubts for which the close holds documents. */
export const holdingDoubts = ({ doubts }: Feeds, decision: FeedDecision): Doubt[] =>
  doubts.filter((each) => !each.stops && !isDecided(each, decision));

/** Refuses a decision about a partner whose feed is not in doubt. */
export function refuseStrangers({ month, doubts }: Feeds, { without = [], acceptFeed = [] }: FeedDecision) {
  const stranger = (ids: readonly string[], isMissing: boolean) =>
    ids.find((id) => !doubts.some(({ partner_id, kind }) => partner_id === id && (kind === 'missing') === isMissing));
  for (const [field, id] of [
    ['without', stranger(without, true)],
    ['acceptFeed', stranger(acceptFeed, false)],
  ] as const) {
    if (id !== undefined) throw refuse('feed_not_in_doubt', { month, partner_id: id, field });
  }
}

/** Closes the month with everything accepted that is in doubt. */
export const closeAnyway = (feeds: Feeds): Remedy =>
  feeds.empty ? closeEmpty(feeds.month) : closeAccepting(feeds.month, undecidedFeeds(feeds).doubts, feeds);

export const acceptFeed = (month: Month, { partner_id }: Pick<Doubt, 'partner_id'>): ToDo =>
  toDo('Accept it', 'feed.accept', { partnerId: partner_id, month });

/** Refuses a month that has no rows, or whose rows are in doubt, unless the operator accepted that. */
export function refuseDoubts(feeds: Feeds, decision: FeedDecision) {
  const { month, needsApproval } = feeds;
  const { doubts, empty } = undecidedFeeds(feeds, decision);
  if (empty) throw refuse('month_empty', { month });
  refuseStrangers(feeds, decision);
  if (doubts.length === 0) return;
  throw refuse('feeds_in_doubt', {
    month,
    doubts: doubts.map(({ partner_id, name, kind, evidence }) => ({ partner_id, name, kind, evidence })),
    ...(needsApproval && { needsApproval }),
    ...(decision.without && { without: [...new Set(decision.without)] }),
    ...(decision.acceptFeed && { acceptFeed: [...new Set(decision.acceptFeed)] }),
  });
}

/** Records what a close accepts: the doubts that its request names. */
export async function recordDecisions(
  tx: Transaction,
  { approvals }: Pick<Settings, 'approvals'>,
  feeds: Feeds,
  decision: FeedDecision,
  { now, eventId }: Readonly<{ now: string; eventId: number }>,
) {
  const { month, doubts } = feeds;
  const decided = doubts.filter((each) => !each.accepted && isDecided(each, decision));
  const [first] = decided;
  if (first === undefined) return;
  if (approvals['feed.accept'] !== undefined) {
    throw refuse('decide_separately', { month, partner_id: first.partner_id });
  }
  await insertFeedDecisions(tx, { month, decided, reason: null, now, eventId });
}
