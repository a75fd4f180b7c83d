/**
 * Reminders (dunning). The settings name days before and after the due date. On each of these days, a partner gets one
 * e-mail that lists all its open items. Each document reaches each dunning level once. After days without a run, only
 * the latest level reached is sent.
 *
 * If a partner has a parent, the parent pays for it and gets the reminder: one e-mail lists the open items of the whole
 * family. The payer of a family is the parent that has no parent.
 *
 * If the settlement of a debt was undone and the debt is open again, its dunning starts again with the first overdue
 * level. A debt carried over by an opening starts with the first overdue level, counted from the day of the import.
 *
 * The disputed part of a document is not dunned. A document is skipped for any reason of `SkipReason`, or if it is
 * completely disputed. Refusal: bank_account_unknown.
 */

import { createHash } from 'node:crypto';
import { Without } from '#close/books';
import { todayOf } from '#config/today';
import { LOCKS, takeLock } from '#database/locks';
import { Transaction } from '#database/transaction';
import { queueEmails } from '#mail/outbox.sql';
import { Amount } from '#money';
import { recordEvent } from '#people/audit-events';
import { Caller } from './context.ts';
import { Debt, isWorthALetter, readDebts } from './debts.ts';
import { insertReminders, OwedRow, readRemindedOn, SkipReason } from './remind.sql.ts';

type DueReminder = Readonly<{
  partner_id: string;
  dunning_level: number;
  documents: readonly Pick<
    OwedRow,
    'partner_id' | 'number' | 'due_on' | 'balance' | 'disputed' | 'currency' | 'dunning_level'
  >[];
}>;

type SkippedDocument = Readonly<{
  number: string;
  partner_id: string;
  reason: SkipReason;
  /** For `awaits_bank_file`: the accounts whose files are missing. */
  waits_for?: Debt['waits_for'];
  /** For `paused`: the last day of the pause. */
  paused_until?: string | null;
}>;

export type ReminderPlan = Readonly<{
  day: string;
  reminders: readonly DueReminder[];
  /** Documents that are overdue or have reached a dunning level, but are not dunned. */
  skipped: readonly SkippedDocument[];
}>;

export async function planReminders(
  tx: Transaction,
  caller: Caller,
  without?: Without,
  partnerIds?: readonly string[],
): Promise<Readonly<{ plan: ReminderPlan; rows: readonly Debt[] }>> {
  const day = todayOf(caller);
  const { settings } = caller;
  const debts = await readDebts(tx, { settings, day, without });
  const isDue = (row: Debt) => row.due_on < day || row.dunning_level !== null;
  const reminded = new Set(await readRemindedOn(tx, { day }));
  const open = debts.filter((row) => row.skip_reason === null && !reminded.has(row.payer_id));
  const small = new Set<string>();
  const reminders: DueReminder[] = [];
  const families = new Map<string, Debt[]>();
  for (const row of open) {
    const family = families.get(row.payer_id);
    if (family === undefined) families.set(row.payer_id, [row]);
    else family.push(row);
  }
  const isAsked = (partnerId: string) => partnerIds === undefined || partnerIds.includes(partnerId);
  for (const [partner_id, own] of families) {
    if (!isAsked(partner_id)) continue;
    const levels = own.flatMap((row) => row.dunning_level ?? []);
    if (levels.length === 0) continue;
    if (isWorthALetter(own.filter(isDue), settings)) {
      reminders.push({ partner_id, dunning_level: Math.max(...levels), documents: own.map(documentOf) });
    } else small.add(partner_id);
  }
  const rows = debts.map((row): Debt => {
    const isSmall = row.skip_reason === null && small.has(row.payer_id);
    return isSmall ? { ...row, skip_reason: 'below_minimum' } : row;
  });
  const isSkipped = (row: Debt) => isAsked(row.payer_id) && (isDue(row) || row.waits_since !== null);
  return { plan: { day, reminders, skipped: rows.filter(isSkipped).flatMap(skippedOf) }, rows };
}

function documentOf({ partner_id, number, due_on, currency, dunning_level, ...row }: OwedRow) {
  const inDigits = (text: string) => Amount.of(text, currency).toString();
  const amounts = { balance: inDigits(row.balance), disputed: inDigits(row.disputed) };
  return { partner_id, number, due_on, ...amounts, currency, dunning_level };
}

export function skippedOf({
  number,
  partner_id,
  skip_reason: reason,
  waits_for,
  paused_until,
}: Debt): SkippedDocument[] {
  if (reason === null) return [];
  return [
    {
      ...{ number, partner_id, reason },
      ...(reason === 'awaits_bank_file' && { waits_for }),
      ...(reason === 'paused' && { paused_until }),
    },
  ];
}

const SKIPPED = {
  on_hold: 'on hold',
  disputed: 'the partner disputes it',
  payment_ordered: 'its contact has ordered a bank debit, which is under way',
  card_dispute: 'a dispute about its payment is pending',
  payment_to_confirm: 'an unconfirmed payment may pay it',
  possible_duplicate: 'a possible duplicate payment may pay it',
  not_sent: 'it has not been e-mailed',
  covered_by_credit: 'open credit or unapplied cash covers it',
  covered_by_parent: "its parent's unapplied cash covers it",
  bank_charges: 'its payments left open no more than bank charges',
  paused: 'its reminders are paused through',
  awaits_bank_file: 'it waits for the bank file of',
  below_minimum: 'the reminder would be below the smallest sum',
} as const;

export const whySkipped = ({ reason, waits_for = [], paused_until = '' }: SkippedDocument) =>
  [
    SKIPPED[reason],
    ...(reason === 'paused' ? [paused_until] : []),
    ...(reason === 'awaits_bank_file'
      ? [waits_for.map(({ account, reported_to }) => `${account}, reported through ${reported_to}`).join('; ')]
      : []),
  ].join(' ');

/** Queues the reminders that are due, to all payers or to some. */
export async function recordReminders(
  tx: Transaction,
  caller: Caller,
  without?: Without,
  partnerIds?: readonly string[],
): Promise<ReminderPlan> {
  // Only one run at a time, because each run reads the records of the previous run.
  await takeLock(tx, LOCKS.reminders);
  const { plan, rows } = await planReminders(tx, caller, without, partnerIds);
  const { day, reminders } = plan;
  if (reminders.length === 0) return plan;
  const now = caller.environment.now().toISO();
  const details = { partners: reminders.length, ...(without && { without: without.accounts, reason: without.reason }) };
  const eventId = await recordEvent(tx, caller.actor, { action: 'reminder.record', subject: day, details, now });
  const emails = reminders.map(({ partner_id }) => ({
    ...({ kind: 'reminder', day, partner_id } as const),
    name: `reminder.${day}.${createHash('sha256').update(partner_id).digest('hex').slice(0, 16)}`,
  }));
  const queued = await queueEmails(tx, emails, caller, eventId);
  const reminded = new Set(reminders.flatMap(({ documents }) => documents.map(({ number }) => number)));
  const levels = rows.flatMap(({ number, payer_id, dunning_level, counted_from }) =>
    dunning_level === null || !reminded.has(number) ? [] : [{ number, payer_id, dunning_level, counted_from }],
  );
  await insertReminders(tx, { levels, emailIds: queued.map((each) => each.email_id) });
  return plan;
}
