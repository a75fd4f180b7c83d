/** The frame of cron's jobs: one JSON line a fact on stdout, the run recorded, an exit status as of commands. */
import { pino } from 'pino';
import { verify } from '../audit/verify.ts';
import { readMonthFacts } from '../close/queries.ts';
import { closeMonths } from '../close/run.ts';
import { databaseFailure } from '../database/transaction.ts';
import { deliverPending } from '../delivery/deliver.ts';
import { countNotices } from '../delivery/notice.ts';
import { countDeliveries } from '../delivery/queries.ts';
import { EXIT, Refusal, reasonOf } from '../errors/refusals.ts';
import { processEvents } from '../payments/processor-events/process.ts';
import { recordReminders } from '../payments/remind.ts';
import { mailSeals } from '../reports/seal-letter.ts';
import { readStatus, recordJobRun } from '../reports/status.ts';
import { mailStatus } from '../reports/watch.ts';
import { readSealsOf } from '../seals/queries.ts';
import { RECONCILED_MONTHS } from '../splits/account-health.ts';
import { accessTo, readAccount } from '../splits/poll.ts';
import { readStatementMonths } from '../splits/reconcile.sql.ts';
import { needsWork, reconcileMonth } from '../splits/reconcile-month.ts';
import { monthJson } from './commands/close.ts';
import { accountsToRead } from './commands/processor/poll.ts';
import { describeStatus } from './commands/status.ts';
import { type Context, withContext } from './context.ts';
import { recordDeliveries } from './deliveries.ts';
import { sendAllNotices } from './notices.ts';

interface Job extends Context {
  readonly log: pino.Logger;
}

async function runJob(name: string, work: (job: Job) => Promise<number>): Promise<number> {
  const log = pino({ base: { job: name }, timestamp: pino.stdTimeFunctions.isoTime, formatters: LEVEL_NAMES });
  try {
    return await withContext(
      async (context) => {
        const startedAt = context.environment.now().toISO();
        const exit = await work({ ...context, log }).catch((error: unknown) => {
          logFailure(log, error);
          return exitOf(error);
        });
        const finishedAt = context.environment.now().toISO();
        await context.database.transaction((tx) =>
          recordJobRun(tx, { job: name, startedAt, finishedAt, exitStatus: exit }),
        );
        log.info({ exit }, 'finished');
        return exit;
      },
      { job: true, by: name },
    );
  } catch (error) {
    // Without a database the run can't be recorded: the log and the exit status are all there is.
    logFailure(log, error);
    return exitOf(error);
  }
}

const LEVEL_NAMES = { level: (label: string) => ({ level: label }) };

const exitOf = (error: unknown): number => (error instanceof Refusal ? error.exit : EXIT.failed);

function logFailure(log: pino.Logger, thrown: unknown): void {
  const error = databaseFailure(thrown) ?? thrown;
  if (error instanceof Refusal) log.error({ code: error.code, ...error.facts }, error.message);
  else log.error({ code: 'internal' }, reasonOf(error));
}

/** Once a day: reminds partners of what they owe, by the steps of the settings. */
export function runRemind(): Promise<number> {
  return runJob('remind', async (job) => {
    // Who has paid is not reminded.
    await workOffEvents(job);
    const plan = await job.database.transaction((tx) => recordReminders(tx, job));
    for (const { partner_id, step, documents } of plan.reminders) {
      job.log.info({ partner_id, step, documents: documents.map((each) => each.number) }, 'to be reminded');
    }
    return (await noticesNeedPerson(job)) ? EXIT.attention : EXIT.done;
  });
}

/** Every hour: closes what is due, delivers, and raises the alarm over a month that stays open. */
export function runMonthClose(): Promise<number> {
  return runJob('month-close', async (job) => {
    const { environment, database, log } = job;
    let refusal: unknown;
    try {
      const closed = await closeMonths(database, job, {}, (month) => log.info({ month }, 'month closed'));
      const seals = await database.reading((tx) => readSealsOf(tx, closed));
      for (const facts of await database.reading((tx) => readMonthFacts(tx, closed))) {
        log.info(monthJson(facts, 'closed', seals), 'month issued');
      }
    } catch (error) {
      // What was issued before must still go out.
      logFailure(log, error);
      refusal = error;
    }
    await deliverAndLog(job);
    const unsent = await noticesNeedPerson(job);
    const status = await database.reading((tx) => readStatus(tx, environment.now()));
    for (const overdue of status.months.overdue)
      log.error(overdue, 'month still open 24 hours after it ended everywhere');
    if (refusal !== undefined && !(status.months.overdue.length > 0)) return exitOf(refusal);
    const attention = status.months.overdue.length > 0 || needsPerson(status.deliveries) || unsent;
    return attention ? EXIT.attention : EXIT.done;
  });
}

/** Every ten minutes: delivers what is issued and not delivered. */
export function runDeliver(): Promise<number> {
  return runJob('deliver', async (job) => {
    await workOffEvents(job);
    await deliverAndLog(job);
    const deliveries = await job.database.reading((tx) => countDeliveries(tx));
    return (await noticesNeedPerson(job)) || needsPerson(deliveries) ? EXIT.attention : EXIT.done;
  });
}

/** Once a day: mails the status to operations when it needs a person. */
export function runWatch(): Promise<number> {
  return runJob('watch', async (job) => {
    const { environment, settings, database, log } = job;
    const status = await database.reading((tx) => readStatus(tx, environment.now()));
    for (const sentence of status.attention) log.warn(sentence);
    if (status.attention.length === 0) return EXIT.done;
    const { outcome, reply } = await mailStatus(environment, settings, status, describeStatus(status));
    log.info({ outcome, reply, to: settings.operations_email }, 'status mailed');
    return outcome === 'sent' ? EXIT.attention : EXIT.failed;
  });
}

/** Once a night: every check over everything. Exit 4: a check found a difference. */
export function runVerify(): Promise<number> {
  return runJob('verify', async ({ database, log }) => {
    const found = await database.reading((tx) =>
      verify(tx, undefined, ({ check, inspected, differences }) => {
        log.info({ check, inspected, differences: differences.length }, 'check');
        for (const difference of differences) log.error({ check, ...difference }, 'difference');
      }),
    );
    return found.differences > 0 ? EXIT.attention : EXIT.done;
  });
}

/** Every day: reads the connected accounts and reconciles the latest months. Exit 4: something is open. */
export function runReconcile(): Promise<number> {
  return runJob('reconcile', async (job) => {
    const { environment, settings, database, log } = job;
    let failed: number = EXIT.done;
    // One account that cannot be read keeps no other from being read.
    for (const account of await accountsToRead(job)) {
      try {
        log.info(await readAccount(database, job, accessTo(environment, account)), 'account read');
      } catch (error) {
        logFailure(log, error);
        failed = exitOf(error);
      }
    }
    const months = await database.reading((tx) => readStatementMonths(tx, RECONCILED_MONTHS));
    let open = 0;
    for (const month of months) {
      const found = await database.reading((tx) => reconcileMonth(tx, { settings, now: environment.now() }, month));
      for (const partner of found.partners) log.info({ month, ...partner }, 'reconciled');
      for (const exception of found.exceptions.filter(needsWork)) log.warn({ month, ...exception }, 'open');
      open += found.open;
    }
    return failed === EXIT.done && open > 0 ? EXIT.attention : failed;
  });
}

/** What the processor told, and no `serve` worked off: it was killed after its answer, or the payments were locked. */
async function workOffEvents({ database, log, ...job }: Job): Promise<void> {
  const { effects, waiting, for_person } = await database.transaction((tx) => processEvents(tx, job));
  if (effects + waiting.length + for_person.length === 0) return;
  log.info({ effects, waiting: waiting.length, for_person: for_person.length }, 'events of the processor');
}

async function deliverAndLog(job: Job): Promise<void> {
  let sent = 0;
  await deliverPending({
    ...job,
    onDelivery: (delivery) => {
      if (delivery.status === 'sent' && !delivery.before) sent += 1;
      job.log[delivery.status === 'sent' ? 'info' : 'warn'](delivery, 'delivery');
    },
  });
  await recordDeliveries(job, sent);
  const deliveries = await job.database.reading((tx) => countDeliveries(tx));
  job.log.info(deliveries, 'deliveries');
  for (const letter of await mailSeals(job)) job.log.info(letter, 'seal mailed to the auditor');
}

/** Sends the e-mails without documents that wait, and says whether one of them needs a person. */
async function noticesNeedPerson(job: Job): Promise<boolean> {
  await sendAllNotices(job, ({ notice, status, detail }) => {
    const { kind, partner_id, month } = notice;
    job.log[status === 'sent' || status === 'withdrawn' ? 'info' : 'warn'](
      { kind, partner_id, month, status, detail },
      'notice',
    );
  });
  return needsPerson(await job.database.reading((tx) => countNotices(tx)));
}

const needsPerson = ({ held, failed, uncertain }: { held: number; failed: number; uncertain: number }): boolean =>
  held + failed + uncertain > 0;
