/**
 * Reminders: on the days that the settings name, counted from the due date, a partner gets one e-mail that lists all it
 * owes. Each document takes a step once. A run after days without any takes the latest step reached, not one for each.
 *
 * Not reminded of, and not listed: what is on hold, what a dispute that is not decided yet reopened, what a payment that
 * waits for a person may be for, and what was never sent.
 */

import { createHash } from 'node:crypto';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import { todayOf } from '../config/today.ts';
import { execute, query, type Transaction } from '../database/transaction.ts';
import { mailDomain } from '../documents/issue/context.ts';
import { queueEmails } from '../mail/queries.ts';
import { Amount } from '../money.ts';
import { type Actor, recordEvent } from '../people/audit-events.ts';

export interface Reminding {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly actor: Actor;
}

export interface DueReminder {
  readonly partner_id: string;
  /** The latest step that one of its documents has reached, in days after the due date. */
  readonly step: number;
  /** All that the e-mail would list; `step` is null on those that no step is due for. */
  readonly documents: readonly {
    readonly number: string;
    readonly due_on: string;
    readonly balance: string;
    readonly currency: string;
    readonly step: number | null;
  }[];
}

export interface Silence {
  readonly number: string;
  readonly partner_id: string;
  readonly because: 'on_hold' | 'disputed' | 'payment_to_confirm' | 'not_sent';
}

export interface ReminderPlan {
  readonly day: string;
  readonly reminders: readonly DueReminder[];
  /** Overdue, and not reminded of. */
  readonly silent: readonly Silence[];
}

/** One at a time, so that a run sees what the one before recorded. */
const REMINDERS = '7310::integer, 61::integer';

/** What is due to be said today; records nothing. */
export async function planReminders(tx: Transaction, reminding: Reminding): Promise<ReminderPlan> {
  const day = todayOf(reminding);
  const rows = await readOwed(tx, { day, steps: reminding.settings.reminders, partnerId: null });
  const said = new Set(await readRemindedOn(tx, day));
  const listed = rows.filter((row) => row.because === null);
  const partners = [...new Set(listed.filter((row) => row.step !== null).map((row) => row.partner_id))];
  return {
    day,
    reminders: partners
      .filter((partnerId) => !said.has(partnerId))
      .map((partner_id) => {
        const own = listed.filter((row) => row.partner_id === partner_id);
        return {
          partner_id,
          step: Math.max(...own.flatMap((row) => row.step ?? [])),
          documents: own.map(({ number, due_on, balance, currency, step }) => ({
            number,
            due_on,
            balance: Amount.of(balance, currency).toString(),
            currency,
            step,
          })),
        };
      }),
    silent: rows
      .filter((row) => row.because !== null && row.due_on < day)
      .map(({ number, partner_id, because }) => ({ number, partner_id, because: because as Silence['because'] })),
  };
}

/** Records today's reminders, to be sent by `sendOtherEmails`. Safe to repeat: each partner and step is said once. */
export async function recordReminders(tx: Transaction, reminding: Reminding): Promise<ReminderPlan> {
  await execute(tx, `SELECT pg_advisory_xact_lock(${REMINDERS})`);
  const plan = await planReminders(tx, reminding);
  if (plan.reminders.length === 0) return plan;
  const now = reminding.environment.now().toISO();
  const eventId = await recordEvent(tx, reminding.actor, {
    action: 'reminder.record',
    subject: plan.day,
    details: { partners: plan.reminders.length },
    now,
  });
  await insertReminders(tx, plan, { now, eventId, mailDomain: mailDomain(reminding.settings) });
  return plan;
}

// --- Queries --------------------------------------------------------------------------------------------------------------

export interface OwedRow {
  readonly document_id: number;
  readonly number: string;
  readonly partner_id: string;
  readonly month: string;
  readonly currency: string;
  readonly due_on: string;
  readonly balance: string;
  readonly payment_link: string | null;
  /** The latest step reached that nothing was said of yet; null where there is none. */
  readonly step: number | null;
  readonly because: Silence['because'] | null;
}

/**
 * Open invoices in number order. A step counts where its day came after the issue, so that a replacement with the old
 * due date does not begin with what was said of the one before it, and where no later step was said already.
 */
export function readOwed(
  tx: Transaction,
  question: { day: string; steps: readonly number[]; partnerId: string | null },
): Promise<OwedRow[]> {
  return query(
    tx,
    `SELECT d.document_id, d.number, d.partner_id, d.month, d.currency, d.due_on, b.balance,
            (SELECT url FROM payment_links k WHERE k.document_id = d.document_id) AS payment_link,
            CASE WHEN NOT EXISTS (SELECT FROM reminders r WHERE r.document_id = d.document_id AND r.step >= reached.step)
                 THEN reached.step END AS step,
            CASE WHEN EXISTS (SELECT FROM current_holds h WHERE h.document_id = d.document_id) THEN 'on_hold'
                 WHEN EXISTS (
                   SELECT FROM payment_applications a JOIN disputes t ON t.payment_id = a.payment_id
                   WHERE a.document_id = d.document_id
                     AND NOT EXISTS (SELECT FROM dispute_outcomes o WHERE o.dispute_id = t.dispute_id)) THEN 'disputed'
                 WHEN EXISTS (
                   SELECT FROM payment_suggestions s JOIN payment_balances p ON p.payment_id = s.payment_id
                   WHERE s.document_id = d.document_id AND p.unapplied > 0) THEN 'payment_to_confirm'
                 WHEN NOT EXISTS (
                   SELECT FROM emails e WHERE e.document_id = d.document_id AND e.status = 'sent') THEN 'not_sent'
            END AS because
     FROM documents d JOIN document_balances b USING (document_id)
     CROSS JOIN LATERAL (
       SELECT max(step) AS step FROM unnest(:steps::integer[]) AS step
       WHERE d.due_on + step <= :day::date AND d.due_on + step > d.issued_on) AS reached
     WHERE d.document = 'invoice' AND b.status = 'open'
       AND (:partnerId::text IS NULL OR d.partner_id = :partnerId)
     ORDER BY d.series, d.sequence`,
    { ...question },
  );
}

/** Partners that had their e-mail of that day. */
async function readRemindedOn(tx: Transaction, day: string): Promise<string[]> {
  const rows = await query<{ partner_id: string }>(
    tx,
    `SELECT partner_id FROM emails WHERE kind = 'reminder' AND day = :day::date`,
    { day },
  );
  return rows.map((row) => row.partner_id);
}

async function insertReminders(
  tx: Transaction,
  plan: ReminderPlan,
  facts: { now: string; eventId: number; mailDomain: string },
): Promise<void> {
  const emails = plan.reminders.map(({ partner_id }) => ({
    ...({ kind: 'reminder', day: plan.day, partner_id } as const),
    name: `reminder.${plan.day}.${createHash('sha256').update(partner_id).digest('hex').slice(0, 16)}`,
  }));
  const queued = await queueEmails(tx, emails, facts);
  const levels = plan.reminders.flatMap((each) =>
    each.documents.flatMap(({ number, step }) => (step === null ? [] : [{ number, step }])),
  );
  await execute(
    tx,
    `INSERT INTO reminders (document_id, step, email_id, partner_id, currency)
     SELECT d.document_id, s.step, e.email_id, d.partner_id, d.currency
     FROM json_to_recordset(:levels::json) AS s (number text, step integer)
     JOIN documents d USING (number)
     JOIN emails e ON e.partner_id = d.partner_id AND e.email_id = ANY (:emailIds::bigint[])`,
    { levels: JSON.stringify(levels), emailIds: queued.map((each) => each.email_id) },
  );
}
