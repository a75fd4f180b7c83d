/**
 * Records which e-mails came back. A report is matched by the Message-ID and names a recipient. If the first recipient
 * was given up, the e-mail becomes `bounced` and needs attention; if only a copy was, it stays sent. A repeated report
 * changes nothing.
 */
import { Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { ActorContext, recordEvent } from '#people/audit-events';
import { ReportedBounce } from './bounce-report.ts';
import { insertBounces, readBounces, readByMessageIds, Target } from './bounces.sql.ts';
import { nameOf, readEmail } from './log.ts';
import { lockEmails } from './outbox.sql.ts';

export type RecordedBounces = Readonly<{
  bounces: readonly Readonly<{
    email: number;
    about: string;
    recipient: string;
    status: string;
    diagnostic: string;
    bounced: boolean;
  }>[];
  duplicates: number;
  unmatched: readonly Readonly<{ message_id: string; recipient: string; reason: string }>[];
}>;

/** `source` names the files, for the audit event. */
export async function recordBounces(
  tx: Transaction,
  { actor, environment }: Pick<ActorContext, 'actor' | 'environment'>,
  { source, reports }: { source: string; reports: readonly ReportedBounce[] },
): Promise<RecordedBounces> {
  const targets = await readTargets(tx, reports);
  const unmatched: RecordedBounces['unmatched'][number][] = [];
  const found = new Map<string, { target: Target; recipient: string; report: ReportedBounce }>();
  let duplicates = 0;
  const known = await readKnown(tx, [...targets.values()]);
  for (const report of reports) {
    const target = targets.get(report.messageId);
    const recipient = target && recipientOf(target, report);
    const reason = whyUnmatched(target, recipient);
    const key = `${target?.email_id} ${recipient}`;
    if (target === undefined || recipient === undefined || reason !== undefined) {
      const named = report.recipients.at(0) ?? '';
      unmatched.push({ message_id: report.messageId, recipient: named, reason: reason ?? '' });
    } else if (known.has(key) || found.has(key)) duplicates += 1;
    else found.set(key, { target, recipient, report });
  }
  const bounces = [...found.values()].map(({ target, recipient, report }) => ({
    ...{ email_id: target.email_id, recipient, status: report.status, diagnostic: report.diagnostic },
    ...{ reporting_server: report.server, report_sha256: report.sha256 },
    bounced: recipient === target.to?.[0],
  }));
  if (bounces.length > 0) {
    const now = environment.now().toISO();
    const details = { bounces: bounces.length };
    const eventId = await recordEvent(tx, actor, { action: 'email.bounces', subject: source, details, now });
    await insertBounces(tx, { bounces: JSON.stringify(bounces), now, eventId });
    failpoint('bounces.recorded');
  }
  const told = [];
  for (const { email_id: email, recipient, status, diagnostic, bounced } of bounces) {
    told.push({ email, about: nameOf(await readEmail(tx, email)), recipient, status, diagnostic, bounced });
  }
  return { bounces: told, duplicates, unmatched };
}

async function readTargets(tx: Transaction, reports: readonly ReportedBounce[]) {
  const messageIds = [...new Set(reports.map(({ messageId }) => messageId))];
  const read = () => readByMessageIds(tx, { messageIds });
  await lockEmails(
    tx,
    (await read()).map(({ email_id: emailId }) => ({ emailId })),
  );
  return new Map((await read()).map((email) => [email.message_id, email]));
}

async function readKnown(tx: Transaction, targets: readonly Target[]) {
  const ids = targets.map(({ email_id }) => email_id);
  return new Set((await readBounces(tx, { ids })).map(({ email_id, recipient }) => `${email_id} ${recipient}`));
}

/**
 * The report on a forwarded e-mail names an address that we do not know. If the e-mail had only one recipient, that is
 * who it is about.
 */
function recipientOf({ to }: Target, { recipients }: ReportedBounce) {
  const named = recipients.map((address) => address.toLowerCase());
  return to?.find((address) => named.includes(address.toLowerCase())) ?? (to?.length === 1 ? to[0] : undefined);
}

function whyUnmatched(target: Target | undefined, recipient: string | undefined) {
  if (target === undefined) return 'no e-mail of this installation has this Message-ID';
  if (target.status === 'queued' || target.status === 'sending' || target.status === 'held') {
    return `e-mail ${target.email_id} is not sent yet: read the report again after it is sent`;
  }
  if (target.status === 'failed' || target.status === 'withdrawn') return `e-mail ${target.email_id} was never sent`;
  return recipient === undefined ? `e-mail ${target.email_id} did not go to this address` : undefined;
}
