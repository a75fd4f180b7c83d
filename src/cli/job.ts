/**
 * The cron jobs. Each logs one JSON line per fact to stderr, records its run, and exits with the statuses of a command.
 */
import { pino } from 'pino';
import { Action } from '#actions/action';
import { withdrawDone } from '#actions/approve';
import { booksClose } from '#actions/books';
import { monthClose, monthJson } from '#actions/close';
import { permitting, runAction } from '#actions/run';
import { finishTask, insertTask } from '#audit/tasks.sql';
import { closeDueBooks } from '#close/books';
import { Doubt } from '#close/feeds';
import { OtherCurrency, readMonthFacts } from '#close/months.sql';
import { LOCKS } from '#database/locks';
import { oneAtATime } from '#database/session';
import { databaseFailure } from '#database/transaction';
import { EXIT, exitOf, Refusal } from '#errors/refusals';
import { mailFailure } from '#findings/emails';
import { answerLateRequests } from '#http/late-requests';
import { openLog } from '#log';
import { readCheckpointsOf } from '#log/closing.sql';
import { countDeliveries, nameNeedingAttention, readMailFailure } from '#mail/outbox.sql';
import { Month } from '#month';
import { queueStatusEmail } from '#month-end/emails/status';
import { deliverAll, sendEmails } from '#month-end/month-end';
import { processEvents } from '#payments/processor-events/process';
import { recordReminders } from '#payments/remind';
import { refuseWhilePaused } from '#people/pauses';
import { tellAttention, WEEK_HOURS } from '#reports/job-attention';
import { AttentionItem, readUntold, recordAttention } from '#reports/jobs.sql';
import { purge } from '#reports/purge';
import { readStatus, readStatusAndItems } from '#reports/status';
import { RECONCILED_MONTHS } from '#splits/account-health';
import { accessTo, readAccount } from '#splits/poll';
import { readStatementMonths } from '#splits/reconcile.sql';
import { needsWork, reconcileMonth } from '#splits/reconcile-month';
import { recordRequestedReversals } from '#splits/requested';
import { accountsToRead } from './commands/processor/poll.ts';
import { Context, withContext } from './context.ts';
import { logFailure, logOf, recordRun } from './job-log.ts';
import { inCommands, withCommands } from './remedies.ts';

type Job = Context &
  Readonly<{
    name: string;
    log: pino.Logger;
  }>;

/** While the ledger is paused, only jobs with `whilePaused` run. */
async function runJob(
  name: string,
  work: (job: Job) => Promise<number>,
  { whilePaused = false }: { whilePaused?: boolean } = {},
) {
  const log = openLog({ job: name });
  try {
    return await withContext(
      async (context) => {
        const startedAt = context.environment.now().toISO();
        const exitStatus = await context.database
          .reading(async (tx) => whilePaused || (await refuseWhilePaused(tx)))
          .then(() => work({ ...context, name, log }))
          .catch(failed(log));
        await recordRun(context, { job: name, startedAt, exitStatus });
        log.info({ exit: exitStatus }, 'finished');
        return exitStatus;
      },
      { job: true, by: name },
    );
  } catch (error) {
    // Without a database, only the log and the exit status can report the failure.
    logFailure(log, error);
    return exitOf(error);
  }
}

/** A pause is not a failure, even if it begins during the job. */
const failed = (log: pino.Logger) => (error: unknown) => {
  const known = databaseFailure(error) ?? error;
  if (known instanceof Refusal && known.code === 'paused') {
    log.info({ code: known.code, ...known.facts }, 'the ledger is paused: nothing was done');
    return EXIT.done;
  }
  logFailure(log, error);
  return exitOf(known);
};

/** Daily: sends payment reminders by the dunning levels in the settings. */
export function runRemind() {
  return runJob('remind', async (job) => {
    // First, because partners who have paid must get no reminder.
    await processPendingEvents(job);
    const plan = await job.database.transaction((tx) => recordReminders(tx, job));
    for (const { partner_id, dunning_level, documents } of plan.reminders) {
      job.log.info({ partner_id, dunning_level, documents: documents.map((each) => each.number) }, 'reminder due');
    }
    await sendEmails(job, logOf(job.log));
    return exitFor(job, (await job.database.reading(nameNeedingAttention)).others);
  });
}

/** Hourly: closes due months, delivers documents, and closes due books. Exit 4 if a month stays open too long. */
export function runMonthClose() {
  return runJob('month-close', async (job) => {
    const { database, log } = job;
    let refusal: unknown;
    const closed: Month[] = [];
    const reporter = {
      ...logOf(job.log),
      onClosed(month: Month, others: readonly OtherCurrency[]) {
        closed.push(month);
        log.info({ month }, 'month closed');
        for (const other of others) log.warn(other, "not in the partner's currency");
      },
      onCloseFailed(error: unknown) {
        logRefused(log, error);
        refusal = error;
      },
    };
    await runAction(job, monthClose, {}, { reporter });
    await database.reading(async (tx) => {
      const checkpoints = await readCheckpointsOf(tx, 'month', closed);
      for (const facts of await readMonthFacts(tx, { months: closed }))
        log.info(monthJson(facts, 'closed', checkpoints), 'month issued');
    });
    let closedBooks = 0;
    const booksRefused = await closeDueBooks(
      database,
      job,
      (month) => {
        closedBooks += 1;
        log.info({ month }, 'books closed');
      },
      (month) => permitting(job, booksClose, { month }),
    );
    if (closedBooks > 0) await sendEmails(job, logOf(job.log));
    if (booksRefused !== undefined) logRefused(log, booksRefused);
    await withdrawDoneBy(job, monthClose, refusal);
    await withdrawDoneBy(job, booksClose, booksRefused);
    const status = await database.reading((tx) => readStatus(tx, job));
    for (const overdue of status.months.overdue)
      log.error(overdue, 'month still open 24 hours after it ended everywhere');
    const stops = refusal instanceof Refusal ? stopsOf(refusal) : [];
    const waits = refusal instanceof Refusal && (refusal.exit === EXIT.attention || isAskedFor(refusal));
    const undecided = waits ? (refusal as Refusal) : undefined;
    const untold = await tell(job, [
      ...(await unsent(job)),
      ...status.months.overdue.map(({ month }) => `${month} is open`),
      ...stops,
      ...[undecided, booksRefused].flatMap((each) =>
        each === undefined ? [] : [`${each.code} ${each.facts['month'] ?? each.facts['request_id'] ?? ''}`],
      ),
    ]);
    // cron mails what is printed: when the month stops, when another doubt stops it, and once a day.
    if (undecided !== undefined && stops.some((item) => untold.includes(item))) {
      process.stdout.write(`${await withCommands(undecided.message, undecided.remedies)}\n`);
    }
    const exit = untold.length > 0 ? EXIT.attention : EXIT.done;
    if (refusal !== undefined && undecided === undefined && status.months.overdue.length === 0) return exitOf(refusal);
    return exit;
  });
}

/** This job's requests whose action a person has since carried out. Only approval_needed shows what was done. */
async function withdrawDoneBy(job: Job, action: Action, refusal: unknown) {
  const asked = refusal instanceof Refusal && refusal.code === 'approval_needed' ? refusal : undefined;
  if (refusal !== undefined && asked === undefined) return;
  for (const request of await withdrawDone(job, action, asked?.facts['request_id'] as number | undefined)) {
    job.log.info({ request, action: action.name }, 'request withdrawn: it was done in the meantime');
  }
}

/** Pending or rejected. Reported once a day, like decisions that finance must make. */
const isAskedFor = (error: unknown): error is Refusal =>
  error instanceof Refusal && (error.code === 'approval_needed' || error.code === 'approval_rejected');

function logRefused(log: pino.Logger, error: unknown) {
  if (isAskedFor(error)) log.warn({ code: error.code, ...error.facts }, 'waits for approval');
  else logFailure(log, error);
}

/** Every ten minutes: delivers undelivered documents. */
export function runDeliver() {
  return runJob('deliver', async (job) => {
    await processPendingEvents(job);
    await deliverAll(job, logOf(job.log));
    await answerLateRequests({ ...job, onLateFailed: (error) => logFailure(job.log, error) });
    return exitFor(job, await unsent(job));
  });
}

/** Daily: e-mails the status to operations for a new item, and again after a week. Of two hosts, only one sends it. */
export const runWatch = () =>
  runJob('watch', (job) => oneAtATime(job.database.connection, LOCKS.watch, () => tellOperations(job)), {
    whilePaused: true,
  });

async function tellOperations(job: Job) {
  const { database, log } = job;
  const { status, items } = await database.reading((tx) => readStatusAndItems(tx, job));
  for (const sentence of await inCommands(status.findings)) log.warn(sentence);
  const found = {
    // Items are compared, not sentences: the times and counts in sentences would look new each day.
    ...{ job: job.name, items },
    ...{ now: job.environment.now().toISO(), againAfterHours: WEEK_HOURS },
  };
  const untold = await database.transaction((tx) => readUntold(tx, found));
  // While the ledger is paused, only the exit status reports the items.
  if (untold.length === 0 || status.paused !== null) {
    await database.transaction((tx) => recordAttention(tx, found));
    return untold.length === 0 ? EXIT.done : EXIT.attention;
  }
  await database.transaction((tx) => queueStatusEmail(tx, job));
  let sent = false;
  await sendEmails(job, {
    onEmail(result) {
      if (result.email.kind === 'status' && result.status === 'sent') sent = true;
      logOf(job.log).onEmail?.(result);
    },
  });
  if (!sent) return EXIT.failed;
  await database.transaction((tx) => recordAttention(tx, found));
  return EXIT.attention;
}

/** Nightly: runs all checks of `verify`. Exit 4: a check found a difference. */
export function runVerify() {
  return runJob(
    'verify',
    async ({ environment, database, actor: { host }, log }) => {
      const startedAt = environment.now().toISO();
      const { verifyAndTell, verifyResult } = await import('#audit/tasks');
      const found = await verifyAndTell({ environment, database }, ({ check, inspected, differences }) => {
        log.info({ check, inspected, differences: differences.length }, 'check');
        for (const difference of differences) log.error({ check, ...difference }, 'difference');
      });
      const result = verifyResult(found.checks);
      await database.transaction(async (tx) => {
        const task = { kind: 'verify', input: {}, userId: null, host, now: startedAt } as const;
        const taskId = await insertTask(tx, task);
        if (taskId !== undefined) await finishTask(tx, { taskId, now: environment.now().toISO(), result });
      });
      return found.differences > 0 ? EXIT.attention : EXIT.done;
    },
    { whilePaused: true },
  );
}

/** Nightly: deletes data that is no longer needed. */
export function runPurge() {
  return runJob('purge', async (job) => {
    job.log.info(await purge(job.database, job), 'deleted');
    return EXIT.done;
  });
}

/** Daily: reads the connected accounts and reconciles the latest months. Exit 4: an exception is open. */
export function runReconcile() {
  return runJob('reconcile', async (job) => {
    const { environment, settings, database, log, name } = job;
    let failed: number = EXIT.done;
    // After a failure, the remaining accounts are still read.
    for (const account of await accountsToRead(job)) {
      try {
        log.info(await readAccount(database, job, accessTo(environment, account)), 'account read');
      } catch (error) {
        logFailure(log, error);
        failed = exitOf(error);
      }
    }
    // Partners may have sent settlement files, or a reading was interrupted.
    await database.transaction((tx) => recordRequestedReversals(tx, job));
    const months = await database.reading((tx) => readStatementMonths(tx, { months: RECONCILED_MONTHS }));
    let open = 0;
    const items: AttentionItem[] = [];
    for (const month of months) {
      const found = await database.reading((tx) => reconcileMonth(tx, { settings, now: environment.now() }, month));
      for (const partner of found.partners) log.info({ month, ...partner }, 'reconciled');
      for (const exception of found.exceptions.filter(needsWork)) log.warn({ month, ...exception }, 'open');
      open += found.open;
      if (found.open > 0) items.push({ item: month, count: found.open });
    }
    await database.transaction((tx) => tellAttention(tx, { job: name, items, now: environment.now().toISO() }));
    return failed === EXIT.done && open > 0 ? EXIT.attention : failed;
  });
}

/** Processes events that `serve` stored but did not process, because it was killed or a lock on payments was held. */
async function processPendingEvents({ database, log, ...job }: Job) {
  const { effects, waiting, manual_review } = await database.transaction((tx) => processEvents(tx, job));
  if (effects + waiting.length + manual_review.length === 0) return;
  log.info({ effects, waiting: waiting.length, manual_review: manual_review.length }, 'events of the processor');
}

/** Returns the names of the e-mails that need attention. */
async function unsent({ database, environment, log }: Job) {
  const [deliveries, needing, failing] = await database.reading(async (tx) => [
    await countDeliveries(tx),
    await nameNeedingAttention(tx),
    await readMailFailure(tx),
  ]);
  log.info(deliveries, 'deliveries');
  // No e-mail of `watch` can report that no e-mail leaves.
  const failures = mailFailure(failing, environment.now().toMillis()).map(({ item }) => item);
  return [...needing.documents, ...needing.others, ...failures];
}

const stopsOf = ({ code, facts }: Refusal) =>
  code === 'feeds_in_doubt'
    ? (facts['doubts'] as readonly Doubt[]).map(
        (each) => `${facts['month']} ${each.partner_id} ${each.kind} ${each.evidence}`,
      )
    : code === 'month_empty'
      ? [`${facts['month']} is empty`]
      : [];

const exitFor = async (job: Job, needing: readonly string[]) =>
  (await tell(job, needing)).length > 0 ? EXIT.attention : EXIT.done;

/** Reports the items that are new, or that are due to be reported again, after a day. Returns these items. */
async function tell({ environment, database, name: job, log }: Job, needing: readonly string[]) {
  const found = { job, items: needing.map((item) => ({ item, count: 1 })), now: environment.now().toISO() };
  const untold = await database.transaction((tx) => tellAttention(tx, found));
  for (const item of untold) log.warn({ item }, 'needs attention');
  return untold;
}
