/** Logs of cron jobs and workers, one line per fact, and the records of their runs. */
import { Logger } from 'pino';
import { databaseFailure } from '#database/transaction';
import { Refusal, reasonOf } from '#errors/refusals';
import { Reporter } from '#month-end/month-end';
import { JobRun, recordJobRun } from '#reports/jobs.sql';
import { Context } from './context.ts';

export const recordRun = ({ database, environment }: Context, run: JobRun) =>
  database.transaction((tx) => recordJobRun(tx, { ...run, finishedAt: environment.now().toISO() }));

/** Logs a failure. A refusal is logged with its code and facts. */
export function logFailure(log: Logger, thrown: unknown) {
  const error = databaseFailure(thrown) ?? thrown;
  if (error instanceof Refusal) {
    const { code, facts, remedies, message } = error;
    log.error({ code, ...facts, ...(remedies.length > 0 && { remedies }) }, message);
  } else log.error({ code: 'internal' }, reasonOf(error));
}

/** A reporter that writes to a log. */
export const logOf = (log: Logger): Reporter => ({
  onDelivery: (delivery) =>
    log[delivery.status === 'sent' || delivery.status === 'no_email' ? 'info' : 'warn'](delivery, 'delivery'),
  onEmail: ({ email, status, detail }) => {
    const { kind, partner_id, month } = email;
    log[status === 'sent' || status === 'withdrawn' ? 'info' : 'warn'](
      { kind, partner_id, month, status, detail },
      'email',
    );
  },
  onCheckpoint: ({ size, root }) => log.info({ size, root: root.toString('base64') }, 'checkpoint taken'),
  onCheckpointRefused: (refusal) => logFailure(log, refusal),
  onNotStamped: ({ size }, reason) => log.warn({ size, reason }, 'time stamp'),
  onWebhookSent: (partner_id, events) => log.info({ partner_id, events }, 'webhook'),
  onWebhookFailed: (partner_id, reason) => log.warn({ partner_id, reason }, 'webhook'),
  onEventsFailed: (error) => logFailure(log, error),
  onEmailsFailed: (error) => logFailure(log, error),
});
