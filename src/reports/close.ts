/**
 * The report of a close: what a month issued, against the month before it, what is late or held, and how its e-mails
 * stand. It is read anew each time, so that deliveries are as they are now. Refusals: month_not_closed.
 */

import { type MonthFacts, readMonthFacts } from '../close/queries.ts';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { Composed, Notice } from '../delivery/notice.ts';
import { mailDomain } from '../documents/issue/context.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { type Month, monthName } from '../month.ts';
import { type Actor, recordEvent } from '../people/audit-events.ts';

export interface PartnerChange {
  readonly partner_id: string;
  readonly currency: string;
  /** Documents of this month, the last of each chain of replacements; void ones left out. */
  readonly documents: readonly string[];
  /** What the month bills: a credit note is below zero, a routed statement counts as what it tells. */
  readonly invoice_amount: string;
  readonly last_month: string;
  readonly change: string;
}

export interface CloseReport extends Omit<MonthFacts, 'totals'> {
  readonly previous: Month | null;
  readonly issued_on: string;
  readonly closed_at: string;
  readonly totals: Readonly<
    Record<string, { readonly spotPrice: string; readonly partnerCut: string; readonly invoiceAmount: string }>
  >;
  readonly partners: readonly PartnerChange[];
  /** Active partners whose month had no rows. */
  readonly no_activity: readonly string[];
  readonly late: readonly {
    readonly partner_id: string;
    readonly month: Month;
    readonly currency: string;
    readonly entries: number;
    readonly invoice_amount: string;
  }[];
  /** Documents that somebody put on hold, and e-mails that did not go out, with the reason. */
  readonly held: readonly {
    readonly number: string;
    readonly partner_id: string;
    readonly status: string;
    readonly reason: string;
  }[];
}

/** Of one month, or of the one closed last; undefined where none is asked for and none is closed. */
export async function readCloseReport(tx: Transaction, asked?: Month): Promise<CloseReport | undefined> {
  const [closed] = await query<{ month: Month; previous: Month | null; issued_on: string; closed_at: string }>(
    tx,
    `SELECT month, previous, issued_on, closed_at FROM closed_months
     WHERE :month::text IS NULL OR month = :month ORDER BY month DESC LIMIT 1`,
    { month: asked ?? null },
  );
  if (closed === undefined) {
    if (asked !== undefined) throw refuse('month_not_closed', { month: asked });
    return undefined;
  }
  const { month, previous } = closed;
  const [facts] = await readMonthFacts(tx, [month]);
  const { totals, ...counts } = facts as MonthFacts;
  const partners = await readChanges(tx, month, previous);
  return {
    ...counts,
    ...closed,
    totals: Object.fromEntries(
      totals.map(({ currency, spot_price, partner_cut, invoice_amount }) => {
        const text = (amount: string) => Amount.of(amount, currency).toString();
        return [
          currency,
          { spotPrice: text(spot_price), partnerCut: text(partner_cut), invoiceAmount: text(invoice_amount) },
        ];
      }),
    ),
    partners: partners.map(({ currency, ...row }) => {
      const [now, before] = [Amount.of(row.invoice_amount, currency), Amount.of(row.last_month, currency)];
      return {
        ...row,
        currency,
        invoice_amount: now.toString(),
        last_month: before.toString(),
        change: now.minus(before).toString(),
      };
    }),
    no_activity: await readInactive(tx, month, previous),
    late: (await readLate(tx, month, previous)).map((row) => ({
      ...row,
      invoice_amount: Amount.of(row.invoice_amount, row.currency).toString(),
    })),
    held: await readHeld(tx, month),
  };
}

// --- Its e-mail -------------------------------------------------------------------------------------------------------------

/** A close this long ago is no news: months that were closed before anybody asked for reports are not sent. */
const NEWS_FOR_DAYS = 7;

/** Records the report of each month that was closed lately and has none, for `sendNotices`. Safe to repeat. */
export async function recordCloseReports(
  tx: Transaction,
  { environment, settings, actor }: { environment: Environment; settings: Settings; actor: Actor },
): Promise<number> {
  if (settings.finance_email === '') return 0;
  const now = environment.now();
  const since = now.minus({ days: NEWS_FOR_DAYS }).toISO();
  // Two closes that end at once would both find it missing.
  await execute(tx, `SELECT pg_advisory_xact_lock(7310::integer, 62::integer)`);
  const months = await query<{ month: string }>(
    tx,
    `SELECT month FROM closed_months m
     WHERE closed_at >= :since::timestamptz
       AND NOT EXISTS (SELECT FROM notices n WHERE n.kind = 'close_report' AND n.month = m.month) ORDER BY month`,
    { since },
  );
  if (months.length === 0) return 0;
  const names = months.map((each) => each.month);
  const eventId = await recordEvent(tx, actor, {
    action: 'report.close',
    subject: names.join(', '),
    details: { to: settings.finance_email },
    now: now.toISO(),
  });
  return execute(
    tx,
    `INSERT INTO notices (kind, month, message_id, status, queued_at, event_id)
     SELECT 'close_report', m.month, format('<close-report.%s.%s@%s>', m.month, i.installation_id, :mailDomain::text),
            'queued', :now::timestamptz, :eventId::bigint
     FROM unnest(:names::text[]) AS m (month) CROSS JOIN installation i`,
    { names, now: now.toISO(), eventId, mailDomain: mailDomain(settings) },
  );
}

/** To finance, in the words that the command uses. */
export async function composeCloseReport(
  tx: Transaction,
  notice: Notice,
  { environment, settings }: { environment: Environment; settings: Settings },
  describe: (report: CloseReport) => string,
): Promise<Composed> {
  if (settings.finance_email === '') return { held: 'settings.json has no finance_email' };
  const report = (await readCloseReport(tx, notice.month as Month)) as CloseReport;
  const body = `${describe(report)}\n`;
  const mark = environment.name === 'sandbox' ? '[SANDBOX] ' : '';
  const { sent, pending, held, failed, uncertain } = report.deliveries;
  const unsent = pending + held + failed + uncertain;
  return {
    to: { name: 'Finance', address: settings.finance_email },
    cc: [],
    letter: {
      subject: `${mark}${monthName(report.month)} is closed: ${sent} sent${unsent > 0 ? `, ${unsent} not sent` : ''}`,
      text: body,
      html: `<!doctype html><html lang="en"><body><pre>${escapeHtml(body)}</pre></body></html>`,
    },
    attachments: [],
  };
}

const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

// --- Queries ------------------------------------------------------------------------------------------------------------

function readChanges(tx: Transaction, month: Month, previous: Month | null): Promise<Omit<PartnerChange, 'change'>[]> {
  return query(
    tx,
    `SELECT d.partner_id, d.currency,
            coalesce(array_agg(d.number ORDER BY d.series, d.sequence) FILTER (WHERE d.month = :month), '{}') AS documents,
            coalesce(sum(s.amount) FILTER (WHERE d.month = :month), 0) AS invoice_amount,
            coalesce(sum(s.amount) FILTER (WHERE d.month <> :month), 0) AS last_month
     FROM live_documents d
     CROSS JOIN LATERAL (SELECT document_sign(d.document) * d.invoice_amount AS amount) AS s
     WHERE d.month IN (:month, coalesce(:previous, :month)) AND d.purpose = 'month'
     GROUP BY d.partner_id, d.currency ORDER BY d.partner_id, d.currency`,
    { month, previous },
  );
}

// The rows that a closed month bills: posted after the month before it and up to it.
const OF_MONTH = `e.posted_month > coalesce(:previous::text, '') AND e.posted_month <= :month`;

async function readInactive(tx: Transaction, month: Month, previous: Month | null): Promise<string[]> {
  const rows = await query<{ partner_id: string }>(
    tx,
    `SELECT p.partner_id FROM partners p
     WHERE p.inactive_since IS NULL
       AND NOT EXISTS (SELECT FROM ledger_rows e WHERE e.partner_id = p.partner_id AND ${OF_MONTH})
     ORDER BY p.partner_id`,
    { month, previous },
  );
  return rows.map((row) => row.partner_id);
}

function readLate(tx: Transaction, month: Month, previous: Month | null): Promise<CloseReport['late'][number][]> {
  return query(
    tx,
    `SELECT e.partner_id, e.month, e.currency, count(*) AS entries, sum(e.invoice_amount) AS invoice_amount
     FROM ledger_rows e WHERE ${OF_MONTH} AND e.month < :month
     GROUP BY e.partner_id, e.month, e.currency ORDER BY e.partner_id, e.month, e.currency`,
    { month, previous },
  );
}

function readHeld(tx: Transaction, month: Month): Promise<CloseReport['held'][number][]> {
  return query(
    tx,
    `SELECT d.number, d.partner_id, CASE WHEN h.hold_id IS NULL THEN s.status ELSE 'on hold' END AS status,
            coalesce(nullif(h.reason, ''), s.reason, '') AS reason
     FROM live_documents d
     LEFT JOIN LATERAL (
       SELECT s.status, s.reason FROM sendings s WHERE s.document_id = d.document_id ORDER BY s.sending_id DESC LIMIT 1
     ) AS s ON true
     LEFT JOIN current_holds h ON h.document_id = d.document_id
     WHERE d.month = :month AND (h.hold_id IS NOT NULL OR s.status IN ('held', 'failed', 'uncertain'))
     ORDER BY d.series, d.sequence`,
    { month },
  );
}
