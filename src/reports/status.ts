/** How the system stands: months, backlog of deliveries, last runs of the jobs, and what needs a person. */
import type { DateTime } from 'luxon';
import { dueMonths, endOfMonthEverywhere, nextToClose } from '../close/close.ts';
import { readLedgerState, readPartnerZones } from '../close/queries.ts';
import { accountKeyVariable } from '../config/environment.ts';
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import { type LinkTrouble, readLinkTroubles } from '../delivery/links/queries.ts';
import { countDeliveries, countOtherEmails } from '../mail/queries.ts';
import type { Month } from '../month.ts';
import { countExceptions, type ExceptionKind } from '../payments/exceptions.sql.ts';
import { type AccountHealth, readAccountHealth, STALE_HOURS } from '../splits/account-health.ts';
import { WATCHED_DAYS } from '../splits/accounts.sql.ts';

/** A month still open this long after it has ended everywhere, or a document not sent after as long, is an alarm. */
const OVERDUE_HOURS = 24;

export interface Status {
  readonly environment: string;
  readonly append_only: 'role_and_triggers' | 'triggers';
  readonly partners: number;
  readonly months: {
    readonly first: Month | null;
    readonly last_closed: Month | null;
    /** Ended everywhere and not closed. */
    readonly due: readonly Month[];
    readonly overdue: readonly { readonly month: Month; readonly ended_at: string }[];
  };
  /** Rows that no document bills yet. */
  readonly open_entries: number;
  readonly deliveries: Readonly<Record<'sent' | 'pending' | 'held' | 'failed' | 'uncertain', number>>;
  /** E-mails that carry no document: reminders, close reports and seals. */
  readonly emails: Readonly<Record<'sent' | 'pending' | 'held' | 'failed' | 'uncertain', number>>;
  readonly waiting: readonly {
    readonly number: string;
    readonly partner_id: string;
    readonly status: string;
    readonly reason: string | null;
  }[];
  /** Void documents of closed months that nothing replaces: their rows are unbilled. */
  readonly gaps: readonly { readonly number: string; readonly partner_id: string; readonly month: Month }[];
  /** Links at the processor that are not as they should be; an amount that it does not take is no trouble. */
  readonly links: readonly LinkTrouble[];
  /** Connected accounts: how far each was read, and what is open on the latest statements. */
  readonly connected: AccountHealth;
  readonly jobs: readonly { readonly job: string; readonly finished_at: string; readonly exit_status: number }[];
  /** What of payments waits for a person, by kind. */
  readonly payment_exceptions: Partial<Record<ExceptionKind, number>>;
  /** One sentence for each thing that needs a person; empty when all is well. */
  readonly attention: readonly string[];
}

/** At most so many single documents are listed; the counts are complete. */
const LISTED = 100;

export async function readStatus(tx: Transaction, now: DateTime<true>): Promise<Status> {
  const installation = await queryOne<{ environment: string; app_role: boolean; partners: number }>(
    tx,
    `SELECT environment, current_user = 'reckoner_app' AS app_role, (SELECT count(*) FROM partners) AS partners
     FROM installation`,
  );
  const state = await readLedgerState(tx);
  const zones = await readPartnerZones(tx);
  const next = nextToClose(state, undefined);
  const due = next === undefined ? [] : dueMonths(next, zones, now);
  const overdue = due
    .map((month) => ({ month, endedAt: endOfMonthEverywhere(month, zones).at }))
    .filter(({ endedAt }) => now.diff(endedAt).as('hours') > OVERDUE_HOURS)
    .map(({ month, endedAt }) => ({ month, ended_at: endedAt.toUTC().toISO() }));
  const { open_entries } = await queryOne<{ open_entries: number }>(
    tx,
    `SELECT count(*) AS open_entries FROM ledger_rows WHERE posted_month > coalesce(:last::text, '')`,
    { last: state.last_closed },
  );
  const deliveries = await countDeliveries(tx);
  const emails = await countOtherEmails(tx);
  const { delayed } = await queryOne<{ delayed: number }>(
    tx,
    `SELECT count(*) AS delayed FROM latest_emails e
     WHERE status IN ('queued', 'sending') AND queued_at < :since::timestamptz
       AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = e.document_id)`,
    { since: now.minus({ hours: OVERDUE_HOURS }).toISO() },
  );
  const waiting = await query<Status['waiting'][number]>(
    tx,
    `SELECT d.number, d.partner_id, s.status, s.reason
     FROM latest_emails s JOIN documents d USING (document_id)
     WHERE s.status <> 'sent' AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = s.document_id)
       ORDER BY d.series, d.sequence LIMIT :listed`,
    { listed: LISTED },
  );
  const gaps = await query<Status['gaps'][number]>(
    tx,
    `SELECT d.number, d.partner_id, d.month FROM documents d JOIN voids v ON v.document_id = d.document_id
     WHERE d.purpose = 'month' AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = d.document_id)
     ORDER BY d.series, d.sequence`,
  );
  const links = await readLinkTroubles(tx);
  const exceptions = await countExceptions(tx);
  const connected = await readAccountHealth(tx, now);
  const jobs = await query<Status['jobs'][number]>(
    tx,
    `SELECT DISTINCT ON (job) job, finished_at, exit_status FROM job_runs ORDER BY job, finished_at DESC`,
  );
  return {
    environment: installation.environment,
    append_only: installation.app_role ? 'role_and_triggers' : 'triggers',
    partners: installation.partners,
    months: { first: state.first_month, last_closed: state.last_closed, due, overdue },
    open_entries,
    deliveries,
    emails,
    waiting,
    gaps,
    links: links.slice(0, LISTED),
    connected,
    jobs,
    payment_exceptions: exceptions,
    attention: [
      ...attentionOf(overdue, deliveries, delayed, gaps, jobs),
      ...attentionToLinks(links),
      ...attentionToEmails(emails),
      ...attentionToPayments(exceptions),
      ...attentionToConnected(connected),
    ],
  };
}

function attentionOf(
  overdue: Status['months']['overdue'],
  deliveries: Status['deliveries'],
  delayed: number,
  gaps: Status['gaps'],
  jobs: Status['jobs'],
): string[] {
  const documents = (count: number) => (count === 1 ? '1 document' : `${count} documents`);
  const needed: string[] = [];
  for (const { month, ended_at } of overdue) {
    needed.push(
      `${month} ended everywhere at ${ended_at} and is still open. Run 'reckoner close' and read what it says.`,
    );
  }
  if (deliveries.held > 0) {
    needed.push(`${documents(deliveries.held)} held: supply what is missing, then run 'reckoner deliver'.`);
  }
  if (delayed > 0) {
    needed.push(
      `${documents(delayed)} issued more than ${OVERDUE_HOURS} hours ago ${delayed === 1 ? 'is' : 'are'} still to be sent. ` +
        "Run 'reckoner deliver' and read what it says.",
    );
  }
  if (deliveries.failed > 0) {
    needed.push(`${documents(deliveries.failed)} refused by the mail server for good: correct the partner's contact.`);
  }
  if (deliveries.uncertain > 0) {
    needed.push(
      `${documents(deliveries.uncertain)} may or may not have arrived: ask the partner before sending again.`,
    );
  }
  for (const month of new Set(gaps.map((gap) => gap.month))) {
    const numbers = gaps.filter((gap) => gap.month === month).map((gap) => gap.number);
    needed.push(
      `${numbers.join(', ')} of ${month} ${numbers.length === 1 ? 'is' : 'are'} void without a replacement, so their rows are ` +
        `unbilled. 'reckoner invoice rerun --month ${month}' issues one.`,
    );
  }
  for (const { job, finished_at, exit_status } of jobs) {
    if (exit_status === 1 || exit_status === 2) {
      needed.push(`The last run of ${job} failed at ${finished_at} (exit ${exit_status}). Read its log.`);
    }
  }
  return needed;
}

/** An outage of the processor that is shorter than this needs no attention. */
const LINK_LATE_SECONDS = 3600;

function attentionToLinks(links: readonly LinkTrouble[]): string[] {
  const named = (some: readonly LinkTrouble[]) =>
    some.length > 3
      ? `${some
          .slice(0, 3)
          .map(({ number }) => number)
          .join(', ')} and ${some.length - 3} more`
      : some.map(({ number }) => number).join(', ');
  const why = (some: readonly LinkTrouble[]) => some.find(({ reason }) => reason !== null)?.reason ?? 'not tried yet';
  const active = links.filter((each) => each.active);
  const refused = links.filter((each) => !each.active && each.kind === 'refused');
  const late = links.filter(
    (each) => !each.active && each.kind === 'unavailable' && each.waited_seconds > LINK_LATE_SECONDS,
  );
  const needed: string[] = [];
  if (active.length > 0) {
    needed.push(
      `${named(active)}: can still be paid by a link although that is not owed (${why(active)}). Run 'reckoner deliver'; ` +
        'if it stays, switch the link off at the processor by hand.',
    );
  }
  if (refused.length > 0) {
    needed.push(
      `${named(refused)}: the processor refused the payment link (${why(refused)}). The next attempt is in a day.`,
    );
  }
  if (late.length > 0) {
    needed.push(`${named(late)}: no payment link for more than an hour (${why(late)}). Run 'reckoner deliver'.`);
  }
  return needed;
}

function attentionToEmails({ held, failed, uncertain }: Status['emails']): string[] {
  const emails = (count: number) =>
    count === 1 ? '1 reminder, close report or seal' : `${count} reminders, close reports or seals`;
  return [
    ...(held > 0 ? [`${emails(held)} held: supply what is missing, then run 'reckoner deliver'.`] : []),
    ...(failed > 0 ? [`${emails(failed)} refused by the mail server for good: correct the address.`] : []),
    ...(uncertain > 0 ? [`${emails(uncertain)} may or may not have arrived.`] : []),
  ];
}

const EXCEPTIONS: Readonly<Record<ExceptionKind, readonly [one: string, many: string]>> = {
  unknown_payer: ['payment of an unknown payer', 'payments of unknown payers'],
  suggestion: ['payment with a suggestion', 'payments with suggestions'],
  payout: ['payout of unknown payments', 'payouts of unknown payments'],
  bank_line: ['bank line', 'bank lines'],
  event: ['event of the processor', 'events of the processor'],
  waiting_event: ['event that waits for another', 'events that wait for others'],
};

function attentionToPayments(counts: Status['payment_exceptions']): string[] {
  const named = Object.entries(counts).map(([kind, count]) => {
    const [one, many] = EXCEPTIONS[kind as ExceptionKind];
    return `${count} ${count === 1 ? one : many}`;
  });
  return named.length === 0
    ? []
    : [`Money to look at: ${named.join(', ')}. 'reckoner payment exceptions' lists what each waits for.`];
}

function attentionToConnected({ accounts, stale, open, unknown, payouts }: AccountHealth): string[] {
  const ofAccount = (account: string) => accounts.find((each) => each.account === account);
  return [
    ...stale.map((account) => {
      const { partners = [], read_to = null, followed = false } = ofAccount(account) ?? {};
      const last =
        read_to === null ? 'was never read' : `was last read up to ${read_to}, more than ${STALE_HOURS} hours ago`;
      if (followed) {
        return (
          `${account}, which ${partners.join(', ')} had before, ${last}: money may still move on it for ` +
          `${WATCHED_DAYS} days. Run 'reckoner processor poll' with ${accountKeyVariable(account)}.`
        );
      }
      return (
        `${account} of ${partners.join(', ')} ${last}. Run 'reckoner processor poll'; ` +
        `without a key (${accountKeyVariable(account)}) take in settlement files, and say so by balance_transactions_from.`
      );
    }),
    ...Object.entries(open).map(
      ([month, quotes]) =>
        `${quotes} quote${quotes === 1 ? '' : 's'} of ${month} not routed as expected. 'reckoner reconcile ${month}' shows which.`,
    ),
    ...(unknown > 0
      ? [
          `${unknown} movement${unknown === 1 ? '' : 's'} on connected accounts of no known quote. ` +
            "'reckoner reconcile' of their months names them.",
        ]
      : []),
    ...(payouts > 0
      ? [
          `${payouts} payout${payouts === 1 ? '' : 's'} of connected accounts not as expected: not in the bank, not told ` +
            "what of, or something passed over. 'reckoner reconcile' of their months names them.",
        ]
      : []),
  ];
}

export async function recordJobRun(
  tx: Transaction,
  run: { job: string; startedAt: string; finishedAt: string; exitStatus: number },
): Promise<void> {
  await query(
    tx,
    `INSERT INTO job_runs (job, started_at, finished_at, exit_status)
     VALUES (:job, :startedAt::timestamptz, :finishedAt::timestamptz, :exitStatus)`,
    run,
  );
}
