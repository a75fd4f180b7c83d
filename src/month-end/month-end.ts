/** The steps after a close: delivers the issued documents, then notifies finance and the auditor. */
import { OnClosed } from '#close/run';
import { Database } from '#database/database';
import { deliverForever, deliverPending, deliverThese } from '#delivery/deliver';
import { Delivery } from '#delivery/document';
import { Refusal } from '#errors/refusals';
import { takeDueCheckpoint } from '#log/checkpoint';
import { Checkpoint } from '#log/checkpoints.sql';
import { TreeHead } from '#log/note';
import { signCheckpoints, stampCheckpoints } from '#log/sign';
import { EmailResult, sendOtherEmails } from '#mail/outbox';
import { Month } from '#month';
import { sendEvents, sendEventsForever, WebhookReporter } from '#partner-events/send';
import { ActorContext, recordEvent } from '#people/audit-events';
import { refuseWhilePaused, whileNotPaused } from '#people/pauses';
import { COMPOSERS } from './emails/composers.ts';

type MonthEndContext = ActorContext &
  Readonly<{
    database: Database;
  }>;

export type Reporter = WebhookReporter &
  Readonly<{
    onClosed?: OnClosed;
    onStart?: (documents: number) => void;
    onDelivery?: (delivery: Delivery) => void;
    onEmail?: (result: EmailResult) => void;
    /** Why a checkpoint got no time stamp. The next run requests it again. */
    onNotStamped?: (head: TreeHead, reason: string) => void;
    /** A long-running worker tries again in a minute. */
    onEmailsFailed?: (error: unknown) => void;
    /** Taken or refused. A refused checkpoint does not stop the e-mails, and the next run retries it. */
    onCheckpoint?: (checkpoint: Checkpoint) => void;
    onCheckpointRefused?: (refusal: Refusal) => void;
    /** Documents that were issued earlier are delivered first. Without this callback, the error is thrown afterward. */
    onCloseFailed?: (error: unknown) => void;
  }>;

/** Delivers undelivered documents after the close of these months, and notifies finance and the auditor. */
export async function followClose(context: MonthEndContext, reporter: Reporter, closed: readonly Month[]) {
  await deliverDocuments(context, reporter, { recorded: closed.length === 0 });
  await takeDayCheckpoint(context, reporter);
  await sendEmails(context, reporter);
}

export async function deliverAll(context: MonthEndContext, reporter: Reporter) {
  await context.database.reading(refuseWhilePaused);
  await deliverDocuments(context, reporter, { recorded: true });
  await takeDayCheckpoint(context, reporter);
  await sendEmails(context, reporter);
  await sendEvents({ ...context, ...reporter });
}

type Worker = (stop: AbortSignal) => Promise<void>;

/** Delivers until the signal to stop, with another worker beside. Does nothing while the ledger is paused. */
export async function deliverAllForever(
  context: MonthEndContext,
  reporter: Reporter,
  stop: AbortSignal,
  beside: Worker,
) {
  await whileNotPaused(context.database, stop, (until) => deliverUntil(context, reporter, until, beside));
}

async function deliverUntil(context: MonthEndContext, reporter: Reporter, stop: AbortSignal, beside: Worker) {
  const counted = counting(reporter);
  const sendOthers = () =>
    takeDayCheckpoint(context, reporter)
      .then(() => sendEmails(context, reporter, stop))
      .catch((error: unknown) => reporter.onEmailsFailed?.(error));
  // If one worker fails, the others are stopped too.
  const either = new AbortController();
  const both = AbortSignal.any([stop, either.signal]);
  const ended = (work: Promise<void>) => work.finally(() => either.abort());
  const results = await Promise.allSettled([
    ended(deliverForever({ ...context, ...counted.reporter, sendOthers }, both)),
    ended(sendEventsForever({ ...context, ...reporter }, both)),
    ended(beside(both)),
  ]);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  await recordRun(context, counted.sent());
}

/** Takes the day's checkpoint before the e-mails are queued, so that the letter about it is sent immediately. */
async function takeDayCheckpoint(
  context: MonthEndContext,
  { onCheckpoint, onCheckpointRefused }: Pick<Reporter, 'onCheckpoint' | 'onCheckpointRefused'>,
) {
  try {
    const taken = await takeDueCheckpoint(context.database, context);
    if (taken !== undefined) onCheckpoint?.(taken);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    onCheckpointRefused?.(error);
  }
}

/** No event is recorded, because the action that changed the documents has recorded one. */
export const deliverNumbers = (
  context: MonthEndContext,
  reporter: Pick<Reporter, 'onStart' | 'onDelivery'>,
  numbers: readonly string[],
) => deliverThese(optionsOf(context, reporter), numbers);

/** Signs checkpoints, sends every due e-mail without a document, and then requests time stamps. */
export async function sendEmails(
  context: MonthEndContext,
  { onEmail, onNotStamped }: Pick<Reporter, 'onEmail' | 'onNotStamped'>,
  stop?: AbortSignal,
) {
  await signCheckpoints(context);
  await sendOtherEmails({ ...context, composers: COMPOSERS, onEmail, stop });
  if (stop?.aborted) return;
  await stampCheckpoints(context, onNotStamped);
}

export const sendTheseEmails = (
  context: MonthEndContext,
  { onEmail }: Pick<Reporter, 'onEmail'>,
  only: readonly number[],
) => sendOtherEmails({ ...context, composers: COMPOSERS, onEmail, only });

async function deliverDocuments(context: MonthEndContext, reporter: Reporter, { recorded }: { recorded: boolean }) {
  const counted = counting(reporter);
  await deliverPending(optionsOf(context, counted.reporter));
  if (recorded) await recordRun(context, counted.sent());
}

const optionsOf = (context: MonthEndContext, { onStart, onDelivery }: Pick<Reporter, 'onStart' | 'onDelivery'>) => ({
  ...context,
  onStart,
  onDelivery,
});

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

/** The event of a close covers the run that closed the month. */
async function recordRun({ database, environment, actor }: MonthEndContext, sent: number) {
  if (sent === 0) return;
  const event = { action: 'delivery.run', subject: `${sent} sent`, details: { sent }, now: environment.now().toISO() };
  await database.transaction((tx) => recordEvent(tx, actor, event));
}
