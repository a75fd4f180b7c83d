/** The state of the system: months, unsent e-mails, the jobs' latest runs, and urgent findings (findings/). */

import { DateTime } from 'luxon';
import { dueMonths, endOfMonthEverywhere, nextToClose, readNextFeeds } from '#close/close';
import { Feeds } from '#close/feeds';
import { readLedgerState, readPartnerZones } from '#close/months.sql';
import { readClockDifference } from '#database/fitness';
import { Transaction } from '#database/transaction';
import { LinkTrouble, readLinkTroubles } from '#delivery/links/links.sql';
import { Move, readMove } from '#documents/last-seen.sql';
import { openAtProcessors, staleAccounts, troubledWebhooks } from '#findings/accounts';
import { mailFailure, refusedInARow } from '#findings/emails';
import { Finding, isUrgent } from '#findings/finding';
import { capped, readFindings } from '#findings/findings';
import { failedJobs, forgottenPause, LastRun, wrongClock } from '#findings/machine';
import {
  missingCheckpoints,
  missingHandOffs,
  missingSignatures,
  missingTimeStamps,
  notInForce,
  openBooks,
  openMonths,
  signingKeys,
  waitingFeeds,
} from '#findings/months';
import { notPaidOut, receiptOf } from '#findings/payments';
import { DifferingCuts, readOpenDifferingCuts } from '#ledger/quoted.sql';
import { EmailStatus } from '#mail/email';
import { EmailKind } from '#mail/kinds';
import { nameOf, remediesOf } from '#mail/log';
import { readEmails } from '#mail/log.sql';
import { countDeliveries, countOtherEmails, RefusedInARow, readMailFailure, readRefusedInARow } from '#mail/outbox.sql';
import { Month } from '#month';
import { readWebhookHealth, WebhookHealth } from '#partner-events/health';
import { countKinds, listExceptions } from '#payments/exceptions';
import { ExceptionKind } from '#payments/exceptions.sql';
import { Installation } from '#people/audit-events';
import { Pause, readPauses } from '#people/pauses.sql';
import { Differences, proposedByFiles } from '#people/settings-in-force';
import { Remedy } from '#remedy';
import { AccountHealth, readAccountHealth } from '#splits/account-health';
import { readToldNotSeen, ToldNotSeen } from '#splits/payouts.sql';
import { HandOff } from './books.sql.ts';
import { BooksStatus, readBooksStatus } from './books-status.ts';
import { readDueHandOffs } from './hand-offs.ts';
import { AttentionItem, readLastRuns } from './jobs.sql.ts';
import { CheckpointStatus, KeyStatus, readCheckpointStatus, readKeyStatus } from './log-status.ts';
import { countOpenEntries, readInstalled, readWaiting } from './status.sql.ts';
import { readWaitingApprovals, WaitingApproval } from './waiting-approvals.ts';

export type Status = Readonly<{
  environment: string;
  /** How far this machine's clock is ahead of the database's clock. Differences of up to two minutes count as 0. */
  clock_ahead_seconds: number;
  append_only: 'role_and_triggers' | 'triggers';
  paused: Pick<Pause, 'cause' | 'reason' | 'state_of' | 'paused_at'> | null;
  /** The server and timeline that the ledger moved to last, as by a planned switchover; none if it never moved. */
  moved: readonly Move[];
  partners: number;
  months: Readonly<{
    first: Month | null;
    last_closed: Month | null;
    due: readonly Month[];
    overdue: readonly Readonly<{ month: Month; ended_at: string }>[];
  }>;
  books: BooksStatus;
  /** Closed books not exported to the general ledger; none without accounts.json. */
  general_ledger: readonly HandOff[];
  signing: KeyStatus;
  checkpoints: CheckpointStatus;
  /** The feeds of the next month to close, whether it has ended or not. Null before the first rows. */
  feeds: (Feeds & { readonly due: boolean }) | null;
  approvals: readonly WaitingApproval[];
  /**
   * Rows that no live document bills: the rows of open months, and the rows of void documents without a replacement.
   */
  open_entries: number;
  differing_cuts: readonly DifferingCuts[];
  deliveries: Readonly<Record<'sent' | 'pending' | 'held' | 'failed' | 'uncertain', number>>;
  /** E-mails without a document: reminders, reports of closes, and letters. */
  emails: Readonly<Record<'sent' | 'pending' | 'held' | 'failed' | 'uncertain', number>>;
  unfinished_emails: readonly Readonly<{
    email: number;
    kind: EmailKind;
    about: string;
    to: readonly string[] | null;
    status: EmailStatus;
    /** The time of the last attempt; before the first attempt, the time of queueing. */
    since: string;
    reason: string | null;
    remedies: readonly Remedy[];
  }>[];
  waiting: readonly Readonly<{
    number: string;
    partner_id: string;
    status: string;
    reason: string | null;
  }>[];
  /** The time since which all attempts to send e-mail have failed; null while mail works. */
  mail_failing: Readonly<{ since: string; reason: string }> | null;
  refused_in_a_row: (Omit<RefusedInARow, 'documents'> & { readonly documents: number }) | null;
  /** Where settings.json and accounts.json differ from the adopted settings. */
  settings_to_adopt: readonly Differences[];
  links: readonly LinkTrouble[];
  /** When each connected account was last read, and the open items of its latest statements. */
  connected: AccountHealth;
  /** Money that processors and partners reported, but that no payout has brought to the bank yet. */
  told_not_seen: readonly ToldNotSeen[];
  webhooks: WebhookHealth;
  jobs: readonly LastRun[];
  payment_exceptions: Partial<Record<ExceptionKind, number>>;
  findings: readonly Finding[];
}>;

/** A month needs attention if it is still open this long after it ended in every zone. */
const OVERDUE_HOURS = 24;

/** The largest number of documents, e-mails and links that are listed. The counts include those that are not listed. */
const LISTED = 100;

export const readStatus = async (tx: Transaction, context: Installation): Promise<Status> =>
  (await readStatusAndItems(tx, context)).status;

export async function readStatusAndItems(
  tx: Transaction,
  context: Installation,
): Promise<{ status: Status; items: AttentionItem[] }> {
  const now = context.environment.now();
  const installation = await readInstalled(tx);
  const months = await readMonths(tx, now);
  const { open_entries } = await countOpenEntries(tx, { last: months.last_closed });
  const deliveries = await countDeliveries(tx);
  const emails = await countOtherEmails(tx);
  const others = await readEmails(tx, { unfinished: true, withoutDocument: true, limit: LISTED });
  const unfinished_emails = others.map((email) => ({
    ...{ email: email.email_id, kind: email.kind, about: nameOf(email), to: email.to, status: email.status },
    ...{ since: email.attempted_at ?? email.queued_at, reason: email.reason, remedies: remediesOf(email) },
  }));
  const links = await readLinkTroubles(tx);
  const exceptions = await listExceptions(tx, context.settings);
  const connected = await readAccountHealth(tx, now);
  const jobs = await readLastRuns(tx);
  const refused = await readRefusedInARow(tx);
  const found = {
    environment: installation.environment,
    clock_ahead_seconds: await readClockDifference(tx, context.environment),
    append_only: installation.app_role ? 'role_and_triggers' : 'triggers',
    paused: (await readPauses(tx))[0] ?? null,
    moved: await readMove(tx),
    partners: installation.partners,
    months,
    books: await readBooksStatus(tx, context),
    general_ledger: await readDueHandOffs(tx, context),
    checkpoints: await readCheckpointStatus(tx, context),
    signing: await readKeyStatus(tx, context),
    feeds: await readNextFeeds(tx, context),
    approvals: await readWaitingApprovals(tx, now),
    settings_to_adopt: proposedByFiles(context),
    open_entries,
    differing_cuts: await readOpenDifferingCuts(tx, months.last_closed),
    deliveries,
    emails,
    unfinished_emails,
    waiting: await readWaiting(tx, { listed: LISTED }),
    mail_failing: await readMailFailure(tx),
    refused_in_a_row: refused && { ...refused, documents: refused.documents.length },
    links: links.slice(0, LISTED),
    connected,
    told_not_seen: await readToldNotSeen(tx),
    webhooks: await readWebhookHealth(tx, context.environment),
    jobs,
    payment_exceptions: countKinds(exceptions),
  } as const;
  const findings = [
    ...trouble({ ...found, refused }, { today: now.toISODate(), now: now.toMillis() }),
    ...(await readFindings(tx, {
      ...{ settings: context.settings, scope: null, limit: null },
      ...{ today: now.toISODate(), now: now.toMillis() },
    })),
    ...exceptions.map(receiptOf),
  ].filter(isUrgent);
  return {
    status: { ...found, findings: capped(findings) },
    items: findings.map(({ item, count = 1 }) => ({ item, count })),
  };
}

const trouble = (
  found: Omit<Status, 'findings'> & { readonly refused: RefusedInARow | null },
  { today, now }: { today: string; now: number },
) => [
  ...wrongClock(found.clock_ahead_seconds, today),
  ...forgottenPause(found.paused, now),
  ...openMonths(found.months.overdue),
  ...openBooks(found.books.due),
  ...missingHandOffs(found.general_ledger, today),
  ...signingKeys(found.signing, today),
  ...missingCheckpoints(found.checkpoints, today),
  ...missingSignatures(found, today),
  ...missingTimeStamps(found.checkpoints.unstamped, today),
  ...waitingFeeds(found.feeds, today),
  ...notInForce(found.settings_to_adopt, today),
  ...failedJobs(found.jobs, now),
  ...mailFailure(found.mail_failing, now),
  ...refusedInARow(found.refused),
  ...staleAccounts(found.connected, today),
  ...openAtProcessors(found.connected, today),
  ...notPaidOut(found.told_not_seen, now),
  ...troubledWebhooks(found.webhooks, { now, today }),
];

export async function readMonths(tx: Transaction, now: DateTime<true>): Promise<Status['months']> {
  const state = await readLedgerState(tx);
  const zones = await readPartnerZones(tx);
  const next = nextToClose(state, undefined);
  const due = next === undefined ? [] : dueMonths(next, zones, now);
  const overdue = due
    .map((month) => ({ month, endedAt: endOfMonthEverywhere(month, zones).at }))
    .filter(({ endedAt }) => now.diff(endedAt).as('hours') > OVERDUE_HOURS)
    .map(({ month, endedAt }) => ({ month, ended_at: endedAt.toUTC().toISO() }));
  return { first: state.first_month, last_closed: state.last_closed, due, overdue };
}
