/** Reads which months are open, what each close recorded, and which documents each close issued. */

import { Settings } from '#config/settings';
import { executing, query, querying, queryingColumn, queryingOne, Transaction } from '#database/transaction';
import { CONTENT } from '#documents/content.sql';
import { IssueBatch } from '#documents/issue/issue.sql';
import { Month } from '#month';

export type LedgerState = Readonly<{
  first_month: Month | null;
  last_closed: Month | null;
  /** The earliest month that a row belongs to; null after the first close. */
  earliest_row: Month | null;
}>;

export const readLedgerState = queryingOne<LedgerState>(`
  SELECT min(month) AS first_month, max(month) AS last_closed,
         CASE WHEN max(month) IS NULL THEN (
           -- Before the first close, a row posts to its own month. The index is probed for each partner, because
           -- reading a million rows took 0.4 s.
           SELECT min(e.posted_month) FROM partners p CROSS JOIN LATERAL (
             SELECT posted_month FROM ledger_rows WHERE partner_id = p.partner_id ORDER BY posted_month LIMIT 1) AS e
         ) END AS earliest_row
  FROM closed_months`);

/** Time zones of the active partners; of all partners if none is active. */
export const readPartnerZones = queryingColumn<string>(`
  SELECT DISTINCT time_zone FROM partners
  WHERE inactive_since IS NULL OR NOT EXISTS (SELECT FROM partners WHERE inactive_since IS NULL)`);

export const readOpenMonthsWithRows = querying<
  { month: Month; entries: number },
  { after: Month | null; before: Month }
>(`
  SELECT posted_month AS month, count(*) AS entries FROM ledger_rows
  WHERE posted_month > coalesce(:after::text, '') AND posted_month < :before
  GROUP BY posted_month ORDER BY posted_month`);

export const recordClosedMonth = executing<{ previous: Month | null } & IssueBatch>(`
  INSERT INTO closed_months (
    month, previous, issued_on, closed_at, entries, late_entries, partners_with_documents, partners_without_activity)
  SELECT :month, :previous, :issuedOn::date, :now::timestamptz,
         coalesce(sum(count), 0), coalesce(sum(count) FILTER (WHERE month < :month), 0), count(DISTINCT partner_id),
         (SELECT count(*) FROM partners p
          WHERE p.inactive_since IS NULL AND p.partner_id NOT IN (SELECT partner_id FROM pg_temp.draft_lines))
  FROM pg_temp.draft_lines`);

/** Records the parts of a closed month's covered sales, by the month that earns them. */
export const insertRevenueSchedules = executing<{ month: Month; previous: Month | null }>(`
  INSERT INTO revenue_schedules (month, partner_id, policy_id, currency, release_month, amount)
  SELECT :month, partner_id, policy_id, currency, release_month, trim_scale(amount)
  FROM covered_parts(:previous::text, :month)
  ORDER BY partner_id COLLATE "C", policy_id COLLATE "C", currency, release_month`);

/** When sales are income by the last close, whose event states only "over_cover"; null before the first close. */
export const readRecognition = queryingOne<{ recorded: Settings['recognition'] | null }>(`
  SELECT CASE WHEN c.month IS NOT NULL THEN coalesce(e.details ->> 'recognition', 'at_sale') END AS recorded
  FROM (SELECT max(month) AS month FROM closed_months) AS c
  LEFT JOIN audit_events e ON e.action = 'month.close' AND e.subject = c.month`);

export async function readIssueDays(tx: Transaction, months: readonly Month[]): Promise<ReadonlyMap<Month, string>> {
  const rows = await query<{ month: Month; issued_on: string }>(
    tx,
    `SELECT month, issued_on FROM closed_months WHERE month = ANY (:months::text[])`,
    { months },
  );
  return new Map(rows.map(({ month, issued_on }) => [month, issued_on]));
}

/**
 * A document in a currency other than its partner's currency. Such a document is allowed, but is usually caused by a
 * wrong row.
 */
export type OtherCurrency = Readonly<{
  month: Month;
  partner_id: string;
  name: string;
  partner_currency: string;
  currency: string;
  number: string;
  invoice_amount: string;
}>;

export const readOtherCurrencies = querying<OtherCurrency, { months: readonly Month[] }>(`
  SELECT d.month, d.partner_id, p.name, p.currency AS partner_currency, d.currency, d.number,
         document_sign(d.document) * d.invoice_amount AS invoice_amount
  FROM live_documents d JOIN partners p USING (partner_id)
  WHERE d.month = ANY (:months::text[]) AND d.purpose = 'month' AND d.currency <> p.currency
  ORDER BY d.month, d.series, d.sequence`);

export type MonthFacts = Readonly<{
  month: Month;
  invoices: number;
  credit_notes: number;
  statements: number;
  entries: number;
  late_entries: number;
  partners_without_activity: number;
  totals: readonly { currency: string; spot_price: string; partner_cut: string; invoice_amount: string }[];
  deliveries: Readonly<Record<'sent' | 'pending' | 'held' | 'failed' | 'uncertain', number>>;
}>;

export const readContentHashes = querying<Readonly<{ month: Month; sha256: string }>, { months: readonly Month[] }>(`
  SELECT d.month, encode(sha256(convert_to(string_agg(
           ${CONTENT}::text, E'\\n' ORDER BY d.partner_id, d.currency, d.arrangement), 'UTF8')), 'hex') AS sha256
  FROM documents d
  JOIN issuer_versions i USING (issuer_version_id)
  JOIN partners p USING (partner_id)
  WHERE d.month = ANY (:months::text[]) AND d.purpose = 'month' AND d.replaces IS NULL
  GROUP BY d.month`);

export type MonthSum = Readonly<{
  month: Month;
  document: 'invoice' | 'credit_note';
  currency: string;
  invoice_amount: string;
}>;

export const readSums = querying<MonthSum, { months: readonly Month[] }>(`
  SELECT month, document, currency, sum(invoice_amount)::text AS invoice_amount
  FROM documents
  WHERE month = ANY (:months::text[]) AND purpose = 'month' AND replaces IS NULL AND document <> 'statement'
  GROUP BY month, document, currency
  ORDER BY month, document DESC, currency`);

/**
 * The facts of closed months, with the current state of their documents' e-mails. Totals include only first documents,
 * because a replacement bills the same rows again.
 */
export const readMonthFacts = querying<MonthFacts, { months: readonly Month[] }>(`
  SELECT m.month, m.entries, m.late_entries, m.partners_without_activity,
         d.invoices, d.credit_notes, d.statements, d.deliveries, coalesce(t.totals, '[]') AS totals
  FROM closed_months m
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE document = 'invoice' AND replaces IS NULL) AS invoices,
           count(*) FILTER (WHERE document = 'credit_note' AND replaces IS NULL) AS credit_notes,
           count(*) FILTER (WHERE document = 'statement' AND replaces IS NULL) AS statements,
           json_build_object(
             'sent', count(*) FILTER (WHERE s.delivery IN ('sent', 'portal')),
             'pending', count(*) FILTER (WHERE s.delivery IN ('queued', 'sending')),
             'held', count(*) FILTER (WHERE s.delivery = 'held'),
             'failed', count(*) FILTER (WHERE s.delivery IN ('failed', 'bounced')),
             'uncertain', count(*) FILTER (WHERE s.delivery = 'uncertain')) AS deliveries
    FROM documents
    LEFT JOIN LATERAL (
      SELECT s.delivery FROM document_emails s
      WHERE s.document_id = documents.document_id
        AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = documents.document_id)
      ORDER BY s.email_id DESC LIMIT 1) AS s ON true
    WHERE documents.month = m.month AND purpose = 'month') AS d
  CROSS JOIN LATERAL (
    SELECT json_agg(c ORDER BY c.currency) AS totals
    FROM (
      SELECT currency, spot_price::text, partner_cut::text, invoice_amount::text
      FROM month_totals WHERE month = m.month) AS c) AS t
  WHERE m.month = ANY (:months::text[])
  ORDER BY m.month`);

/** The newly issued documents of some partners, in number order. */
export const readIssuedNumbers = querying<
  { number: string; partner_id: string; currency: string },
  { partnerIds: readonly string[] }
>(`
  SELECT d.number, d.partner_id, d.currency
  FROM pg_temp.issued_documents JOIN documents d USING (document_id)
  WHERE d.partner_id = ANY (:partnerIds::text[]) ORDER BY d.document_id`);

export type OddDocument = Readonly<{
  number: string;
  currency: string;
  gross: string;
  /** The partner's largest monthly invoice in this currency in the previous 12 months; null if there was none. */
  largest: string | null;
  is_above: boolean;
}>;

/**
 * The newly issued invoices and credit notes to hold, in number order. Both are compared with the partner's largest
 * invoice: earlier credit notes are too few and too different to tell what is usual. If a partner has no earlier
 * invoices, only the limit on the amount applies. Each earlier invoice counts at its amount less its credit notes.
 * Void, held and zero invoices are ignored.
 */
export const readOddDocuments = querying<
  OddDocument,
  { month: string; above: Readonly<Record<string, string>>; times: string | null }
>(`
  SELECT d.number, d.currency, d.gross, b.largest, coalesce(d.gross > a.amount, false) AS is_above
  FROM pg_temp.issued_documents JOIN documents d USING (document_id)
  LEFT JOIN json_each_text(:above::json) AS limits (currency, amount) ON limits.currency = d.currency
  CROSS JOIN LATERAL (SELECT limits.amount::numeric AS amount) AS a
  CROSS JOIN LATERAL (
    SELECT nullif(max(o.gross - c.credited), 0) AS largest
    FROM live_documents o CROSS JOIN LATERAL (
      SELECT coalesce(sum(gross), 0) AS credited FROM live_documents WHERE credits = o.document_id) AS c
    WHERE o.partner_id = d.partner_id AND o.currency = d.currency AND o.document = 'invoice' AND o.purpose = 'month'
      AND o.month < :month
      AND o.month >= to_char(to_date(:month, 'YYYY-MM') - interval '12 months', 'YYYY-MM') COLLATE "C"
      AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = o.document_id)) AS b
  WHERE d.document IN ('invoice', 'credit_note')
    AND (d.gross > a.amount OR d.gross > :times::numeric * b.largest)
  ORDER BY d.document_id`);
