/**
 * Closing months: one transaction chooses a month, totals its rows, issues its documents and takes a checkpoint of the
 * log. A preview runs the same transaction and rolls it back. `run.ts` runs this transaction;
 * `src/month-end/month-end.ts` runs the steps after it. Refusals: month_not_ended, month_not_begun, earlier_month_open,
 * first_month_fixed, before_first_month, clock_behind, settings_incomplete, tax_rule_missing, we_are_fixed,
 * recognition_fixed, and those of `feeds.ts`.
 */
import { DateTime } from 'luxon';
import { countApprovers } from '#approvals/requests.sql';
import { Settings } from '#config/settings';
import { atOneInstant } from '#config/today';
import { readClosingTime } from '#database/fitness';
import { lockLedgerShared, lockLedgerWhole } from '#database/ledger-lock';
import { compareSchema } from '#database/schema';
import { raiseWorkMemory, Transaction } from '#database/transaction';
import { beginIssue, IssueContext, refuseIncompleteSettings } from '#documents/issue/context';
import { draftMonth } from '#documents/issue/drafts';
import { issueDocuments } from '#documents/issue/issue';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { readLastClosed } from '#ledger/closed-months.sql';
import { checkpointMonth, refuseUntied } from '#log/checkpoint';
import { insertMonthTotals, readLastCheckpoint } from '#log/checkpoints.sql';
import { Month, monthAfter, monthInterval, monthOf, monthsBetween } from '#month';
import { packageVersion } from '#package';
import { settleWeAre } from '#partners/presentation';
import { Installation, recordEvent } from '#people/audit-events';
import { insertFeedDecisions, readWhetherEmpty } from './feeds.sql.ts';
import {
  Doubt,
  FeedDecision,
  Feeds,
  holdingDoubts,
  JudgedDeliveries,
  missingFeeds,
  Reading,
  readPartnerFeeds,
  recordDecisions,
  refuseDoubts,
  refuseStrangers,
} from './feeds.ts';
import { holdDocuments } from './holds.ts';
import {
  insertRevenueSchedules,
  LedgerState,
  readLedgerState,
  readOpenMonthsWithRows,
  readPartnerZones,
  readRecognition,
  recordClosedMonth,
} from './months.sql.ts';
import { lockFeed } from './stated.sql.ts';

export type CloseRequest = FeedDecision &
  Readonly<{
    /** The month to close; if omitted, all months that are due. */
    month?: Month | undefined;
    /**
     * The first month of the ledger, which the first close sets permanently. The default is the month of the earliest
     * row.
     */
    firstMonth?: Month | undefined;
    /** A preview is rolled back. */
    preview: boolean;
    /**
     * Whether a preview includes a month that a close would still refuse, because the month has not ended or is in doubt.
     */
    forecast?: boolean | undefined;
    /** The imports that were judged before the close took the ledger's lock. */
    judged?: JudgedDeliveries | undefined;
  }>;

/**
 * The months that a request would close now, oldest first. The list is empty if no month is due or the month is closed
 * already.
 */
export async function planClose(tx: Transaction, { environment, settings }: IssueContext, request: CloseRequest) {
  refuseIncompleteSettings({ environment, settings });
  const state = await readLedgerState(tx);
  checkFirstMonth(state, request);
  const months = await monthsOfPlan(tx, { environment, settings }, request, state);
  const [first] = months;
  if (first === undefined) return months;
  const check = request.forecast ? refuseStrangers : refuseDoubts;
  const { judged } = request;
  const reading = { history: request.acceptFeed ? 'all' : 'strict', judged } as const;
  const feeds = await readFeeds(tx, { environment, settings }, first, reading);
  check(feeds, decisionFor(feeds, request));
  // If a later month is refused, the earlier months do not close either.
  const { month, allowEmpty } = request;
  if (month !== undefined && month !== first && !request.forecast && !allowEmpty) {
    if ((await readWhetherEmpty(tx, { month })).empty && settings.allow_empty !== true)
      throw refuse('month_empty', { month });
  }
  return months;
}

/**
 * The operator's decisions for a month of the plan. The decisions apply to the month that the request names. An earlier
 * month has no rows, so it may close only if no rows were expected.
 */
export function decisionFor(
  feeds: Feeds,
  { month, without, acceptFeed, allowEmpty }: Pick<CloseRequest, 'month' | keyof FeedDecision>,
): FeedDecision {
  if (feeds.month === month) return { without, acceptFeed, allowEmpty };
  return { allowEmpty: month !== undefined && missingFeeds(feeds).length === 0 };
}

async function monthsOfPlan(
  tx: Transaction,
  { environment, settings }: Pick<IssueContext, 'environment' | 'settings'>,
  request: CloseRequest,
  state: LedgerState,
) {
  const next = nextToClose(state, request.firstMonth);
  const zones = await readPartnerZones(tx);
  const { month } = request;
  const now = await readClosingTime(tx, environment);
  if (month === undefined) return next === undefined ? [] : dueMonths(next, zones, now);
  if (state.last_closed !== null && month <= state.last_closed) return [];
  // A forecast may include a month that has already begun in some time zone, but no later month.
  if (!request.forecast || month > monthOf(now, 'Etc/GMT-14')) refuseRunning(month, zones, settings, now);
  const from = next ?? month;
  if (month < from) throw refuse('before_first_month', { month, first: from });
  await refuseOpenRows(tx, state, request.firstMonth, month);
  return monthsBetween(from, month);
}

/**
 * Closes the first month of the plan and returns it; undefined if no month is left to close. The plan is made again
 * under the ledger's lock, because rows may have arrived after the run began.
 */
export async function closeNext(tx: Transaction, given: IssueContext, request: CloseRequest) {
  await lockLedgerWhole(tx);
  const context = atOneInstant(given);
  // This memory is enough to group a month's rows by hashing, and to sort a million hashes.
  await raiseWorkMemory(tx);
  failpoint('close.locked');
  await settleWeAre(tx, context.settings);
  const previous = await readLastClosed(tx);
  const { recognition } = context.settings;
  await refuseOtherRecognition(tx, recognition);
  const [month] = await planClose(tx, context, request);
  if (month === undefined) return undefined;
  // The missing feeds are read even if the settings allow them, because the close records which feeds were missing.
  const expecting = { ...context, settings: { ...context.settings, allow_empty: false } };
  const feeds = await readFeeds(tx, expecting, month, { history: 'all', judged: request.judged });
  const decision = decisionFor(feeds, request);
  const without = missingFeeds(feeds).map(({ partner_id }) => partner_id);
  const missing = feeds.empty || without.length > 0 ? { without, empty: feeds.empty } : {};
  const stated = { ...missing, ...(recognition === 'over_cover' && { recognition }) };
  const details = request.preview
    ? stated
    : { ...stated, ...(await identity(tx, context)), ...(await approvalsAt(tx, context)) };
  const batch = await beginIssue(tx, context, { month, purpose: 'month', askedFor: 'close' }, (now) =>
    recordEvent(tx, context.actor, { action: 'month.close', subject: month, details, now }),
  );
  await recordDecisions(tx, context.settings, feeds, decision, batch);
  const covered = (await readLastCheckpoint(tx))?.last_no ?? 0;
  await refuseUntied(tx, covered);
  await draftMonth(tx, context.settings, { month, previous, covered, partnerIds: null });
  await issueDocuments(tx, batch);
  failpoint('close.issued');
  await holdDocuments(tx, context, batch, holdingDoubts(feeds, decision));
  await recordClosedMonth(tx, { ...batch, previous });
  failpoint('close.recorded');
  await insertMonthTotals(tx, { month });
  if (recognition === 'over_cover') await insertRevenueSchedules(tx, { month, previous });
  // A preview takes no checkpoint, because the previewed month may not have ended.
  if (!request.preview) {
    await checkpointMonth(tx, context, { month, previous, now: batch.now });
    failpoint('close.checkpointed');
  }
  return month;
}

/** Reversals take back what the close of their sale divided, so the first close fixes when sales are income. */
async function refuseOtherRecognition(tx: Transaction, asked: Settings['recognition']) {
  const { recorded } = await readRecognition(tx);
  if (recorded !== null && recorded !== asked) throw refuse('recognition_fixed', { asked, recorded });
}

/** The program's version, and the SHA-256 of the schema's objects in the database (src/database/schema.ts). */
const identity = async (tx: Transaction, { schema }: IssueContext) => ({
  program: packageVersion,
  schema: (schema ?? (await compareSchema(tx))).sha256,
});

/**
 * The number of users who could approve actions, and the actions that needed approval, for the report of the close and
 * the verifiers.
 */
const approvalsAt = async (tx: Transaction, { settings }: IssueContext) => ({
  ...(await countApprovers(tx)),
  approval_rules: Object.keys(settings.approvals).sort(),
});

/** The instant at which a month has ended in all of these zones, and the zone where the month ends last. */
export function endOfMonthEverywhere(month: Month, zones: readonly string[]): { at: DateTime<true>; zone: string } {
  const ends = zones.map((zone) => ({ zone, at: monthInterval(month, zone).endsAt }));
  return ends.reduce((last, each) => (each.at > last.at ? each : last));
}

/** The months from `from` on that have ended in every zone. */
export function dueMonths(from: Month, zones: readonly string[], now: DateTime) {
  const due: Month[] = [];
  if (zones.length === 0) return due;
  for (let month = from; endOfMonthEverywhere(month, zones).at <= now; month = monthAfter(month)) due.push(month);
  return due;
}

/** The next month to close, and whether the month has ended in every zone; null before the first rows. */
export async function readNextMonth(tx: Transaction, now: DateTime) {
  const next = nextToClose(await readLedgerState(tx), undefined);
  if (next === undefined) return null;
  return { month: next, due: dueMonths(next, await readPartnerZones(tx), now).length > 0 };
}

/** The doubts about a month's rows. The sales of a month are judged only after the month has ended everywhere. */
export async function readFeeds(
  tx: Transaction,
  { environment, settings }: Installation,
  month: Month,
  { history, judged }: Reading = { history: 'all' },
): Promise<Feeds> {
  const zones = await readPartnerZones(tx);
  const hasEnded = zones.length > 0 && endOfMonthEverywhere(month, zones).at <= environment.now();
  const now = environment.now().toISO();
  return readPartnerFeeds(tx, settings, month, { history: hasEnded ? history : 'none', judged, now, hasEnded });
}

/** Accepts all that is in doubt about a partner's rows of an open month. Returns the accepted doubts. */
export async function acceptDoubts(
  tx: Transaction,
  context: IssueContext,
  { month, partnerId, reason }: Readonly<{ month: Month; partnerId: string; reason: string }>,
): Promise<Doubt[]> {
  const partner = await lockFeed(tx, { partnerId });
  // Nothing is known yet of a month that has not begun, so a missing feed must not be accepted in advance.
  if (partner !== undefined && month > monthOf(context.environment.now(), partner.time_zone)) {
    throw refuse('month_not_begun', { month, time_zone: partner.time_zone });
  }
  await lockLedgerShared(tx);
  const isClosed = month <= ((await readLastClosed(tx)) ?? '');
  const { doubts } = isClosed ? { doubts: [] } : await readFeeds(tx, context, month);
  const decided = doubts.filter(({ partner_id, accepted }) => partner_id === partnerId && !accepted);
  if (decided.length === 0) throw refuse('feed_not_in_doubt', { month, partner_id: partnerId });
  const now = context.environment.now().toISO();
  const kinds = decided.map(({ kind }) => kind);
  const details = { month, kinds, reason };
  const eventId = await recordEvent(tx, context.actor, { action: 'feed.accept', subject: partnerId, details, now });
  await insertFeedDecisions(tx, { month, decided, reason, now, eventId });
  failpoint('feed_decision.recorded');
  return decided;
}

export async function readNextFeeds(
  tx: Transaction,
  context: Installation,
): Promise<(Feeds & { readonly due: boolean }) | null> {
  const next = await readNextMonth(tx, context.environment.now());
  return next && { ...(await readFeeds(tx, context, next.month)), due: next.due };
}

/** The next month to close; undefined while there is neither a row nor a first month. */
export function nextToClose(state: LedgerState, firstMonth: Month | undefined) {
  if (state.last_closed !== null) return monthAfter(state.last_closed);
  return firstMonth ?? state.earliest_row ?? undefined;
}

function checkFirstMonth(state: LedgerState, { firstMonth, month }: CloseRequest) {
  if (firstMonth !== undefined && state.first_month !== null && firstMonth !== state.first_month) {
    throw refuse('first_month_fixed', { asked: firstMonth, fixed: state.first_month });
  }
  const first = state.first_month ?? firstMonth;
  if (first !== undefined && month !== undefined && month < first) throw refuse('before_first_month', { month, first });
}

/**
 * Refuses a month that has not ended. If there are no partners, the issuer's zone decides, so that no future month
 * closes by mistake.
 */
function refuseRunning(month: Month, zones: readonly string[], settings: Settings, now: DateTime) {
  const end = endOfMonthEverywhere(month, zones.length > 0 ? zones : [settings.time_zone]);
  if (now < end.at) throw refuse('month_not_ended', { month, time_zone: end.zone, ends_at: end.at.toISO() });
}

/**
 * Refuses to close a month while an earlier open month has rows. At the first close, rows of earlier months post to the
 * first month.
 */
async function refuseOpenRows(tx: Transaction, state: LedgerState, firstMonth: Month | undefined, before: Month) {
  const gathering = state.last_closed === null ? firstMonth : undefined;
  const open = (await readOpenMonthsWithRows(tx, { after: state.last_closed, before }))
    .map((each) => (gathering !== undefined && each.month < gathering ? { ...each, month: gathering } : each))
    .filter((each) => each.month < before);
  const first = open[0]?.month;
  if (first === undefined) return;
  const entries = open.filter((each) => each.month === first).reduce((count, each) => count + each.entries, 0);
  throw refuse('earlier_month_open', { month: before, open: first, entries });
}
