/**
 * Reminders: on the days that the settings name, counted from the due date, a partner gets one e-mail that lists all it
 * owes. Each document takes a step once. A run after days without any takes the latest step reached, not one for each.
 *
 * Not reminded of, and not listed: what is on hold, what a dispute that is not decided yet reopened, what a payment that
 * waits for a person may be for, and what was never sent.
 */

import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import { todayOf } from '../config/today.ts';
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { Composed, Notice } from '../delivery/notice.ts';
import { mailDomain } from '../documents/issue/context.ts';
import { localeOf } from '../documents/locale.ts';
import { addressLine, oneLine, type TemplateFolder } from '../mail/document-email.ts';
import { Amount } from '../money.ts';
import { daysApart, monthName } from '../month.ts';
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

/** Records today's reminders, to be sent by `sendNotices`. Safe to repeat: each partner and step is said once. */
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

// --- The letter -----------------------------------------------------------------------------------------------------------

/** The letter of a reminder, from what is owed when it is sent: paid or held meanwhile, it is taken back. */
export async function composeReminder(
  tx: Transaction,
  notice: Notice,
  reminding: Pick<Reminding, 'environment' | 'settings'>,
  templates: TemplateFolder,
): Promise<Composed> {
  const { environment, settings } = reminding;
  const partnerId = notice.partner_id as string;
  const day = todayOf(reminding);
  const owed = (await readOwed(tx, { day, steps: [], partnerId })).filter((row) => row.because === null);
  const reached = new Set(await readReminded(tx, notice.notice_id));
  if (!owed.some((row) => reached.has(row.document_id))) {
    return { withdrawn: 'what it was to remind of is paid, void, held or disputed by now' };
  }
  const partner = await readContact(tx, partnerId);
  if (partner.contact_email === '') return { held: `partner ${partnerId} has no invoicing contact's e-mail address` };
  const credits = await readInFavour(tx, partnerId);
  const overdue = owed.filter((row) => row.due_on < day);
  const currencies = [...new Set(owed.map((row) => row.currency))].sort();
  const { issuer } = settings;
  const locale = localeOf(partner.address_country);
  const total = (rows: readonly OwedRow[], currency: string) =>
    rows
      .filter((row) => row.currency === currency)
      .reduce((sum, row) => sum.plus(Amount.of(row.balance, currency)), Amount.zero(currency));
  const totals = currencies.map((currency) => locale.amount(total(owed, currency))).join(' and ');
  const unnamed = {
    subject: '',
    sandbox: environment.name === 'sandbox',
    contactName: oneLine(partner.contact_name),
    overdue: overdue.length > 0,
    total: totals,
    asOf: locale.date(day),
    currencies: currencies.map((currency) => ({
      currency,
      total: locale.amount(total(owed, currency)),
      overdue: total(overdue, currency).isZero() ? '' : locale.amount(total(overdue, currency)),
      documents: owed
        .filter((row) => row.currency === currency)
        .map((row) => ({
          number: row.number,
          month: monthName(row.month),
          dueOn: locale.date(row.due_on),
          standing: standing(daysApart(row.due_on, day), row.due_on < day),
          overdue: row.due_on < day,
          amount: locale.amount(Amount.of(row.balance, currency)),
          paymentLink: oneLine(row.payment_link ?? ''),
        })),
      credits: credits
        .filter((each) => each.currency === currency)
        .map((each) => ({ what: each.what, amount: locale.amount(Amount.of(each.amount, currency)) })),
    })),
    attachments: [],
    rowsOmitted: false,
    paymentLink: '',
    issuer: {
      name: oneLine(issuer.legal_name),
      address: addressLine(issuer.address),
      email: oneLine(issuer.email),
      phone: oneLine(issuer.phone),
      taxId: oneLine(issuer.tax_id),
    },
    partner: { name: oneLine(partner.name) },
  };
  const words = oneLine(templates.render('reminder', 'subject', unnamed));
  const subject = unnamed.sandbox ? `[SANDBOX] ${words}` : words;
  const view = { ...unnamed, subject };
  return {
    to: { name: partner.contact_name, address: partner.contact_email },
    cc: partner.contact_cc,
    letter: {
      subject,
      text: templates.render('reminder', 'txt', view),
      html: templates.render('reminder', 'html', view),
    },
    attachments: [],
  };
}

function standing(days: number, late: boolean): string {
  if (days === 0) return 'due today';
  return `${late ? 'overdue by' : 'due in'} ${days} day${days === 1 ? '' : 's'}`;
}

// --- Queries --------------------------------------------------------------------------------------------------------------

interface OwedRow {
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
function readOwed(
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
                   SELECT FROM sendings s WHERE s.document_id = d.document_id AND s.status = 'sent') THEN 'not_sent'
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
    `SELECT partner_id FROM notices WHERE kind = 'reminder' AND day = :day::date`,
    { day },
  );
  return rows.map((row) => row.partner_id);
}

/** The documents whose steps an e-mail was recorded for. */
async function readReminded(tx: Transaction, noticeId: number): Promise<number[]> {
  const rows = await query<{ document_id: number }>(
    tx,
    `SELECT document_id FROM reminders WHERE notice_id = :noticeId`,
    { noticeId },
  );
  return rows.map((row) => row.document_id);
}

async function readContact(
  tx: Transaction,
  partnerId: string,
): Promise<{
  name: string;
  contact_name: string;
  contact_email: string;
  contact_cc: string[];
  address_country: string;
}> {
  const rows = await query<{
    name: string;
    contact_name: string;
    contact_email: string;
    contact_cc: string[];
    address_country: string;
  }>(
    tx,
    `SELECT name, contact_name, contact_email, contact_cc, address_country FROM partners WHERE partner_id = :partnerId`,
    { partnerId },
  );
  const [row] = rows;
  if (row === undefined) throw new Error(`there is no partner ${partnerId} to remind`);
  return row;
}

/** Open credit and cash that pays nothing yet: said beside what is owed, and not taken off it. */
function readInFavour(
  tx: Transaction,
  partnerId: string,
): Promise<{ currency: string; what: string; amount: string }[]> {
  return query(
    tx,
    `SELECT currency, 'Credit note ' || number AS what, balance AS amount
     FROM open_credit WHERE partner_id = :partnerId
     UNION ALL
     SELECT currency, 'Payment received, not applied yet', sum(unapplied) FROM payment_balances
     WHERE partner_id = :partnerId AND unapplied > 0 GROUP BY currency
     ORDER BY currency, what`,
    { partnerId },
  );
}

async function insertReminders(
  tx: Transaction,
  plan: ReminderPlan,
  facts: { now: string; eventId: number; mailDomain: string },
): Promise<void> {
  const bindings = { ...facts, day: plan.day };
  await execute(
    tx,
    `INSERT INTO notices (kind, partner_id, day, message_id, status, queued_at, event_id)
     SELECT 'reminder', r.partner_id, :day::date,
            format('<reminder.%s.%s.%s@%s>', :day::text, left(encode(sha256(convert_to(r.partner_id, 'UTF8')), 'hex'), 16),
                   i.installation_id, :mailDomain::text),
            'queued', :now::timestamptz, :eventId::bigint
     FROM unnest(:partners::text[]) AS r (partner_id) CROSS JOIN installation i`,
    { ...bindings, partners: plan.reminders.map((each) => each.partner_id) },
  );
  const steps = plan.reminders.flatMap((each) =>
    each.documents.filter(({ step }) => step !== null).map(({ number, step }) => ({ number, step })),
  );
  await execute(
    tx,
    `INSERT INTO reminders (document_id, step, notice_id, partner_id, currency)
     SELECT d.document_id, s.step, n.notice_id, d.partner_id, d.currency
     FROM json_to_recordset(:steps::json) AS s (number text, step integer)
     JOIN documents d USING (number)
     JOIN notices n ON n.kind = 'reminder' AND n.partner_id = d.partner_id AND n.day = :day::date`,
    { ...bindings, steps: JSON.stringify(steps) },
  );
}
