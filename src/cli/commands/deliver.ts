import { deliveryRetry } from '#actions/delivery';
import { countKinds } from '#actions/emails';
import { runAction } from '#actions/run';
import {
  Context,
  choiceArgument,
  Definition,
  EXIT,
  instantArgument,
  Output,
  reasonOf,
  refuse,
  withContext,
} from '#cli/command';
import { withProgress } from '#cli/deliveries';
import { logFailure, logOf, recordRun } from '#cli/job-log';
import { Delivery } from '#delivery/document';
import { RETRIED, RetryRequest } from '#delivery/retry-emails';
import { answerLateRequests } from '#http/late-requests';
import { openLog } from '#log';
import { EmailResult } from '#mail/outbox';
import { countDeliveries, nameNeedingAttention } from '#mail/outbox.sql';
import { deliverAll, deliverAllForever } from '#month-end/month-end';
import { plural } from '#text';

export const define: Definition = (command, action) => {
  command
    .option('--watch', 'keep running as a worker')
    .option('--retry <status>', `first send ${RETRIED.join(' or ')} e-mails again`, choiceArgument('--retry', RETRIED))
    .option(
      '--since <time>',
      'with --retry: only e-mails that were tried since this day or time',
      instantArgument('--since'),
    )
    .action(action(deliver));
};

type DeliverOptions = Readonly<{
  watch?: boolean;
  retry?: RetryRequest['status'];
  since?: string;
}>;

async function deliver(output: Output, options: DeliverOptions) {
  const { retry: status, since } = options;
  if (since !== undefined && status === undefined) throw refuse('usage', { reason: '--since needs --retry' });
  const stopping = new AbortController();
  /** The e-mails of this run that do not belong to a document. */
  const others: EmailResult[] = [];
  const webhooks = { sent: 0, failed: [] as { partner_id: string; reason: string }[] };
  return withContext(
    async (context) => {
      const retried = status === undefined ? undefined : await runAction(context, deliveryRetry, { status, since });
      if (retried !== undefined) output.note(retried.text);
      if (options.watch) {
        output.note('Delivering issued documents. Press Ctrl-C to stop.');
        await standBy(context, stopping.signal);
      } else {
        await withProgress(output, (reporter) =>
          deliverAll(context, {
            ...reporter,
            onEmail(result) {
              others.push(result);
              reporter.onEmail?.(result);
            },
            onWebhookSent(_, events) {
              webhooks.sent += events;
            },
            onWebhookFailed(partner_id, reason) {
              webhooks.failed.push({ partner_id, reason });
            },
          }),
        );
        await answerLateRequests({ ...context, onLateFailed: (error) => output.note(reasonOf(error)) });
      }
      const [deliveries, needing] = await context.database.reading(async (tx) => [
        await countDeliveries(tx),
        await nameNeedingAttention(tx),
      ]);
      const { sent, pending, held, failed, uncertain } = deliveries;
      output.print(
        {
          ...(retried !== undefined && { retried: retried.json }),
          deliveries,
          ...(others.length > 0 && { other_emails: others.map(({ email, status }) => ({ kind: email.kind, status })) }),
          ...(webhooks.sent + webhooks.failed.length > 0 && { webhooks }),
        },
        () =>
          `Deliveries: ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain.` +
          describeOthers(others) +
          (webhooks.sent > 0 ? `\nSent to webhooks: ${plural(webhooks.sent, 'event')}.` : '') +
          webhooks.failed.map(({ partner_id, reason }) => `\n${describeRefusedEvent(partner_id, reason)}`).join('') +
          (needing.documents.length > 0 ? "\n'reckoner status' lists the reasons." : ''),
      );
      // A stopped worker does not exit with 4, because `status` and `watch` report the problem.
      return needing.documents.length > 0 && !options.watch ? EXIT.attention : EXIT.done;
    },
    { by: output.by, unattended: status === undefined, ...(options.watch && { onStop: () => stopping.abort() }) },
  );
}

/** The sent and queued e-mails without a document, in words; empty if there are none. */
function describeOthers(others: readonly EmailResult[]) {
  const of = (status: string) => others.filter((each) => each.status === status);
  const [sent, queued] = [of('sent'), of('deferred')];
  return [
    ...(sent.length > 0 ? [`\nSent now without a document: ${countKinds(sent)}.`] : []),
    ...(queued.length > 0 ? [`\nStill queued: ${countKinds(queued)}.`] : []),
  ].join('');
}

const describeRefusedEvent = (partnerId: string, reason: string) =>
  `The webhook of ${partnerId} did not accept an event: ${reason}. ` +
  `'reckoner webhook show ${partnerId}' shows when it is tried again.`;

const WORKER = 'worker';
const HEARTBEAT_MINUTES = 10;

/**
 * Runs the command as a worker. The worker logs like cron's job `deliver`, and its job runs are recorded under its own
 * name.
 */
async function standBy(context: Context, stop: AbortSignal) {
  const log = openLog({ job: WORKER });
  const startedAt = context.environment.now().toISO();
  const beat = () =>
    // A failure is only logged, because the loss of the database ends the work itself.
    recordRun(context, { job: WORKER, startedAt, exitStatus: EXIT.done }).catch((error: unknown) =>
      logFailure(log, error),
    );
  const beating = setInterval(beat, HEARTBEAT_MINUTES * 60_000);
  try {
    await beat();
    const reporter = logOf(log);
    const onDelivery = (delivery: Delivery) => {
      if (!delivery.before) reporter.onDelivery?.(delivery);
    };
    await deliverAllForever(context, { ...reporter, onDelivery }, stop, (until) =>
      answerLateRequests({ ...context, onLateFailed: (error) => logFailure(log, error) }, until),
    );
    await beat();
  } finally {
    clearInterval(beating);
  }
}
