/**
 * The report of a close: what a month issued, compared with the month before, what is late or held, and the status of
 * its e-mails. It is read again each time, so deliveries are current. Refusals: month_not_closed.
 */

import { type MonthFacts, readMonthFacts, readOtherCurrencies } from '../close/months.sql.ts';
import { otherCurrencyJson } from '../close/other-currencies.ts';
import { query, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type DifferingCuts, readDifferingCuts } from '../ledger/quoted.ts';
import { Amount } from '../money.ts';
import type { Month } from '../month.ts';

export interface PartnerChange {
  readonly partner_id: string;
  readonly name: string;
  readonly currency: string;
  /** This month's documents, the last of each chain of replacements, without void ones. */
  readonly documents: readonly string[];
  /** What the month bills: a credit note is negative, a routed statement counts with its stated amount. */
  readonly invoice_amount: string;
  readonly last_month: string;
  readonly change: string;
}

export interface CloseReport extends Omit<MonthFacts, 'totals'> {
  readonly previous: Month | null;
  readonly issued_on: string;
  readonly closed_at: string;
  /** The program version that closed it, and the SHA-256 of the schema's objects at that time. */
  readonly program: string | null;
  readonly schema: string | null;
  /** In production, who could approve at the close, and what needed it. Null elsewhere. */
  readonly approvals: {
    /** People who could approve everything. */
    readonly approvers: number;
    /** Others who could approve for some partners. */
    readonly approvers_of_some: number;
    readonly rules: readonly string[];
    /** `approvers` of the previous close; null for the first. */
    readonly approvers_before: number | null;
  } | null;
  /**
   * By action, the events since the previous close that needed a second person when no one but their user could
   * approve.
   */
  readonly done_alone: Readonly<Record<string, number>>;
  readonly totals: Readonly<
    Record<string, { readonly spotPrice: string; readonly partnerCut: string; readonly invoiceAmount: string }>
  >;
  /** The tax of the month's documents by currency, on top of all other amounts; omitted if none are taxed. */
  readonly taxes?: Readonly<Record<string, string>>;
  /** By currency, and within it by the size of the change; before a second month, by the size of the amount. */
  readonly partners: readonly PartnerChange[];
  /** Active partners whose month had no rows. */
  readonly no_activity: readonly { readonly partner_id: string; readonly name: string }[];
  readonly late: readonly {
    readonly partner_id: string;
    readonly name: string;
    readonly month: Month;
    readonly currency: string;
    readonly entries: number;
    readonly invoice_amount: string;
  }[];
  /** Documents in a currency other than their partner's own. */
  readonly other_currencies: readonly ReturnType<typeof otherCurrencyJson>[];
  /** Billed rows whose cut differs from the policy's, at today's rate. */
  readonly differing_cuts: readonly DifferingCuts[];
  /** Documents put on hold, and unsent e-mails, with the reason. */
  readonly held: readonly {
    readonly number: string;
    readonly partner_id: string;
    readonly name: string;
    readonly status: string;
    readonly reason: string;
  }[];
}

/** The report's document part, which needs no reading of the month's rows. */
export type CloseFigures = Omit<CloseReport, 'late' | 'other_currencies' | 'differing_cuts'>;

/** For one month, or the last one closed; undefined if none is requested and none is closed. */
export async function readCloseReport(tx: Transaction, asked?: Month): Promise<CloseReport | undefined> {
  const figures = await readCloseFigures(tx, asked);
  if (figures === undefined) return undefined;
  const { month, previous } = figures;
  return {
    ...figures,
    late: await readLateRows(tx, figures),
    other_currencies: (await readOtherCurrencies(tx, [month])).map(otherCurrencyJson),
    differing_cuts: await readDifferingCuts(tx, { after: previous, to: month }),
  };
}

/** Like readCloseReport. */
export async function readCloseFigures(tx: Transaction, asked?: Month): Promise<CloseFigures | undefined> {
  const [closed] = await query<
    Pick<CloseReport, 'issued_on' | 'closed_at' | 'program' | 'schema' | 'approvals' | 'done_alone'> & {
      month: Month;
      previous: Month | null;
    }
  >(
    tx,
    `SELECT month, previous, issued_on, closed_at, e.details->>'program' AS program, e.details->>'schema' AS schema,
            (SELECT json_build_object(
               'approvers', e.details->'approvers', 'approvers_of_some', e.details->'approvers_of_some',
               'rules', e.details->'approval_rules', 'approvers_before', before.details->'approvers')
             FROM installation WHERE environment = 'production' AND jsonb_exists(e.details, 'approvers')) AS approvals,
            (SELECT coalesce(json_object_agg(action, count ORDER BY action), '{}')
             FROM (SELECT details->'one_person'->>'action' AS action, count(*) FROM audit_events
                   WHERE jsonb_exists(details, 'one_person') AND event_id <= e.event_id
                     AND event_id > coalesce(before.event_id, 0)
                   GROUP BY 1) AS alone) AS done_alone
     FROM closed_months
     LEFT JOIN LATERAL (
       SELECT event_id, details FROM audit_events
       WHERE action = 'month.close' AND subject = month ORDER BY event_id DESC LIMIT 1
     ) AS e ON true
     LEFT JOIN LATERAL (
       SELECT event_id, details FROM audit_events
       WHERE action = 'month.close' AND subject = previous ORDER BY event_id DESC LIMIT 1
     ) AS before ON true
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
  const taxes = await readTaxes(tx, month);
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
    ...(taxes.length > 0 && {
      taxes: Object.fromEntries(taxes.map(({ currency, tax }) => [currency, Amount.of(tax, currency).toString()])),
    }),
    partners: partners.map(withDigits),
    no_activity: await readInactive(tx, month, previous),
    held: await readHeld(tx, month),
  };
}

/** The rows of earlier months that a closed month bills, by partner, month and currency. */
export async function readLateRows(
  tx: Transaction,
  { month, previous }: Pick<CloseReport, 'month' | 'previous'>,
): Promise<CloseReport['late']> {
  return (await readLate(tx, month, previous)).map((row) => ({
    ...row,
    invoice_amount: Amount.of(row.invoice_amount, row.currency).toString(),
  }));
}

function withDigits({ currency, ...row }: PartnerChange): PartnerChange {
  const text = (amount: string) => Amount.of(amount, currency).toString();
  const { invoice_amount, last_month, change } = row;
  return { ...row, currency, invoice_amount: text(invoice_amount), last_month: text(last_month), change: text(change) };
}

// --- Queries ------------------------------------------------------------------------------------------------------------

function readChanges(tx: Transaction, month: Month, previous: Month | null): Promise<PartnerChange[]> {
  return query(
    tx,
    `SELECT c.*, c.invoice_amount - c.last_month AS change
     FROM (
     SELECT d.partner_id, p.name, d.currency,
            coalesce(array_agg(d.number ORDER BY d.series, d.sequence) FILTER (WHERE d.month = :month),
              '{}') AS documents,
            coalesce(sum(s.amount) FILTER (WHERE d.month = :month), 0) AS invoice_amount,
            coalesce(sum(s.amount) FILTER (WHERE d.month <> :month), 0) AS last_month
     FROM live_documents d JOIN partners p USING (partner_id)
     CROSS JOIN LATERAL (SELECT document_sign(d.document) * d.invoice_amount AS amount) AS s
     WHERE d.month IN (:month, coalesce(:previous, :month)) AND d.purpose = 'month'
     GROUP BY d.partner_id, p.name, d.currency) AS c
     ORDER BY c.currency, abs(c.invoice_amount - c.last_month) DESC, c.partner_id`,
    { month, previous },
  );
}

function readTaxes(tx: Transaction, month: Month): Promise<{ currency: string; tax: string }[]> {
  return query(
    tx,
    `SELECT t.currency, sum(document_sign(d.document) * t.tax) AS tax
     FROM live_documents d JOIN document_taxes t USING (document_id)
     WHERE d.month = :month AND d.purpose = 'month' GROUP BY t.currency ORDER BY t.currency`,
    { month },
  );
}

// The rows that a closed month bills: posted after the month before it and up to it.
const OF_MONTH = `e.posted_month > coalesce(:previous::text, '') AND e.posted_month <= :month`;

async function readInactive(
  tx: Transaction,
  month: Month,
  previous: Month | null,
): Promise<CloseReport['no_activity'][number][]> {
  return query(
    tx,
    `SELECT p.partner_id, p.name FROM partners p
     WHERE p.inactive_since IS NULL
       AND NOT EXISTS (SELECT FROM ledger_rows e WHERE e.partner_id = p.partner_id AND ${OF_MONTH})
     ORDER BY p.partner_id`,
    { month, previous },
  );
}

function readLate(tx: Transaction, month: Month, previous: Month | null): Promise<CloseReport['late'][number][]> {
  return query(
    tx,
    `SELECT e.partner_id, p.name, e.month, e.currency, count(*) AS entries, sum(e.invoice_amount) AS invoice_amount
     FROM ledger_rows e JOIN partners p USING (partner_id) WHERE ${OF_MONTH} AND e.month < :month
     GROUP BY e.partner_id, p.name, e.month, e.currency ORDER BY e.partner_id, e.month, e.currency`,
    { month, previous },
  );
}

function readHeld(tx: Transaction, month: Month): Promise<CloseReport['held'][number][]> {
  return query(
    tx,
    `SELECT d.number, d.partner_id, d.partner_name AS name,
            CASE WHEN h.hold_id IS NULL THEN s.status ELSE 'on hold' END AS status,
            coalesce(nullif(h.reason, ''), s.reason, '') AS reason
     FROM live_documents d
     LEFT JOIN LATERAL (
       SELECT e.status, e.reason FROM latest_emails e WHERE e.document_id = d.document_id) AS s ON true
     LEFT JOIN current_holds h ON h.document_id = d.document_id
     WHERE d.month = :month AND (h.hold_id IS NOT NULL OR s.status IN ('held', 'failed', 'uncertain', 'bounced'))
     ORDER BY d.series, d.sequence`,
    { month },
  );
}
