/**
 * What follows a close: deliver what was issued, then tell finance and the auditor. The command, the console, the job and the
 * standing worker all do it by this module.
 */
import type { OnClosed } from '../close/run.ts';
import type { Database } from '../database/database.ts';
import { type DeliveryOptions, deliverForever, deliverPending, deliverThese } from '../delivery/deliver.ts';
import type { Delivery } from '../delivery/document.ts';
import { Refusal } from '../errors/refusals.ts';
import { type EmailResult, sendOtherEmails } from '../mail/outbox.ts';
import type { Month } from '../month.ts';
import { sendEvents, sendEventsForever, type WebhookReporter } from '../partner-events/send.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import { refuseWhilePaused, whileNotPaused } from '../people/pauses.ts';
import { takeDueCheckpoint } from '../seals/checkpoint.ts';
import type { Checkpoint } from '../seals/seals.sql.ts';
import type { SealName } from '../seals/signature.ts';
import { stampSeals } from '../seals/time-stamps.ts';
import { COMPOSERS } from './emails/composers.ts';

export interface MonthEndContext extends ActorContext {
  readonly database: Database;
}

/** Told what happens, as it happens: by a log, or by notes and a progress bar. */
export interface Reporter extends WebhookReporter {
  readonly onClosed?: OnClosed;
  /** The number of documents that delivery looks at. */
  readonly onStart?: (documents: number) => void;
  readonly onDelivery?: (delivery: Delivery) => void;
  /** An e-mail that carries no document was sent, or was not. */
  readonly onEmail?: (result: EmailResult) => void;
  /** A seal got no time stamp: why. The next run asks again. */
  readonly onNotStamped?: (seal: SealName, reason: string) => void;
  /** The e-mails that carry no document could not be looked at. A standing worker tries again in a minute. */
  readonly onEmailsFailed?: (error: unknown) => void;
  /** The day's checkpoint was taken, or refused: then the e-mails go out all the same, and the next run tries again. */
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void;
  readonly onCheckpointRefused?: (refusal: Refusal) => void;
  /** A close was refused or failed. What was issued before is delivered first; without this, the error is thrown after that. */
  readonly onCloseFailed?: (error: unknown) => void;
}

/** What follows the close of these months: delivers what is not delivered, and tells finance and the auditor. */
export async function followClose(
  context: MonthEndContext,
  reporter: Reporter,
  closed: readonly Month[],
): Promise<void> {
  await deliverDocuments(context, reporter, { recorded: closed.length === 0 });
  await takeDayCheckpoint(context, reporter);
  await sendEmails(context, reporter);
}

/** Delivers what is issued and not delivered, then sends every other e-mail that is due, and partners their events. */
export async function deliverAll(context: MonthEndContext, reporter: Reporter): Promise<void> {
  await context.database.reading(refuseWhilePaused);
  await deliverDocuments(context, reporter, { recorded: true });
  await takeDayCheckpoint(context, reporter);
  await sendEmails(context, reporter);
  await sendEvents({ ...context, ...reporter });
}

/** The same until the signal; while the ledger is paused, nothing. */
export async function deliverAllForever(
  context: MonthEndContext,
  reporter: Reporter,
  stop: AbortSignal,
): Promise<void> {
  await whileNotPaused(context.database, stop, (pausedOrStop) => deliverUntil(context, reporter, pausedOrStop));
}

async function deliverUntil(context: MonthEndContext, reporter: Reporter, stop: AbortSignal): Promise<void> {
  const counted = counting(reporter);
  const sendOthers = () =>
    takeDayCheckpoint(context, reporter)
      .then(() => sendEmails(context, reporter, stop))
      .catch((error: unknown) => reporter.onEmailsFailed?.(error));
  // If one of them fails, the other ends with it.
  const either = new AbortController();
  const both = AbortSignal.any([stop, either.signal]);
  const ended = (work: Promise<void>) => work.finally(() => either.abort());
  const results = await Promise.allSettled([
    ended(deliverForever({ ...context, ...counted.reporter, sendOthers }, both)),
    ended(sendEventsForever({ ...context, ...reporter }, both)),
  ]);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  await recordRun(context, counted.sent());
}

/** Before the e-mails are queued, so that its letter goes out at once. */
async function takeDayCheckpoint(
  context: MonthEndContext,
  { onCheckpoint, onCheckpointRefused }: Pick<Reporter, 'onCheckpoint' | 'onCheckpointRefused'>,
): Promise<void> {
  try {
    const taken = await takeDueCheckpoint(context.database, context);
    if (taken !== undefined) onCheckpoint?.(taken);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    onCheckpointRefused?.(error);
  }
}

/** Delivers these documents and no other. The action that touched them has recorded an event of its own. */
export const deliverNumbers = (
  context: MonthEndContext,
  reporter: Pick<Reporter, 'onStart' | 'onDelivery'>,
  numbers: readonly string[],
): Promise<void> => deliverThese(optionsOf(context, reporter), numbers);

/** Queues and sends every e-mail that is due and carries no document, then has the seals stamped that are not. */
export async function sendEmails(
  context: MonthEndContext,
  { onEmail, onNotStamped }: Pick<Reporter, 'onEmail' | 'onNotStamped'>,
  stop?: AbortSignal,
): Promise<void> {
  await sendOtherEmails({ ...context, composers: COMPOSERS, onEmail, stop });
  if (stop?.aborted) return;
  await stampSeals(context, onNotStamped);
}

/** Sends these e-mails, which carry no document, and no other. */
export const sendTheseEmails = (
  context: MonthEndContext,
  { onEmail }: Pick<Reporter, 'onEmail'>,
  only: readonly number[],
): Promise<void> => sendOtherEmails({ ...context, composers: COMPOSERS, onEmail, only });

async function deliverDocuments(
  context: MonthEndContext,
  reporter: Reporter,
  { recorded }: { recorded: boolean },
): Promise<void> {
  const counted = counting(reporter);
  await deliverPending(optionsOf(context, counted.reporter));
  if (recorded) await recordRun(context, counted.sent());
}

const optionsOf = (
  context: MonthEndContext,
  { onStart, onDelivery }: Pick<Reporter, 'onStart' | 'onDelivery'>,
): DeliveryOptions => ({ ...context, onStart, onDelivery });

function counting(reporter: Reporter): { reporter: Pick<Reporter, 'onStart' | 'onDelivery'>; sent: () => number } {
  let sent = 0;
  return {
    sent: () => sent,
    reporter: {
      ...(reporter.onStart && { onStart: reporter.onStart }),
      onDelivery(delivery) {
        if (delivery.status === 'sent' && !delivery.before) sent += 1;
        reporter.onDelivery?.(delivery);
      },
    },
  };
}

/** A run that sent documents leaves an event; where it closed a month, that event tells. */
async function recordRun({ database, environment, actor }: MonthEndContext, sent: number): Promise<void> {
  if (sent === 0) return;
  const event = { action: 'delivery.run', subject: `${sent} sent`, details: { sent }, now: environment.now().toISO() };
  await database.transaction((tx) => recordEvent(tx, actor, event));
}
