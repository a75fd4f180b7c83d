/**
 * SQL of the close: what there is to close, and the statements that turn a month's rows into documents. Each is one
 * statement over the whole month, whether it holds ten rows or a million.
 */

import type { Logo } from '../config/logo.ts';
import type { Issuer } from '../config/settings.ts';
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

/** Credit that a partner has in each currency, from which an invoice takes what it can. Inside of a WITH. */
export const OPEN_CREDIT = `open_credit AS (
       SELECT d.partner_id, d.currency, sum(b.balance) AS balance
       FROM documents d JOIN document_balances b USING (document_id)
       WHERE d.document = 'credit_note' AND b.status = 'open'
       GROUP BY d.partner_id, d.currency
     )`;

export interface LedgerState {
  /** The month of the first close; null before it. */
  readonly first_month: Month | null;
  readonly last_closed: Month | null;
  /** The earliest month that a row belongs to; asked for only before the first close. */
  readonly earliest_row: Month | null;
}

export function readLedgerState(tx: Transaction): Promise<LedgerState> {
  return queryOne(
    tx,
    `SELECT min(month) AS first_month, max(month) AS last_closed,
            CASE WHEN max(month) IS NULL THEN (
              -- Before the first close a row posts to its own month. A probe for each partner, where
              -- a million rows took 0.4 s.
              SELECT min(e.posted_month) FROM partners p CROSS JOIN LATERAL (
                SELECT posted_month FROM ledger_rows WHERE partner_id = p.partner_id ORDER BY posted_month LIMIT 1) AS e
            ) END AS earliest_row
     FROM closed_months`,
  );
}

/** Without a look at the rows. */
export async function readLastClosed(tx: Transaction): Promise<Month | null> {
  const { month } = await queryOne<{ month: Month | null }>(tx, `SELECT max(month) AS month FROM closed_months`);
  return month;
}

/** Time zones of the active partners; of all partners where none is active. */
export async function readPartnerZones(tx: Transaction): Promise<string[]> {
  const rows = await query<{ time_zone: string }>(
    tx,
    `SELECT DISTINCT time_zone FROM partners
     WHERE inactive_since IS NULL OR NOT EXISTS (SELECT FROM partners WHERE inactive_since IS NULL)`,
  );
  return rows.map((row) => row.time_zone);
}

/** Open months that have rows posted to them, in order, up to and without the given one. */
export function readOpenMonthsWithRows(
  tx: Transaction,
  after: Month | null,
  before: Month,
): Promise<{ month: Month; entries: number }[]> {
  return query(
    tx,
    `SELECT posted_month AS month, count(*) AS entries FROM ledger_rows
     WHERE posted_month > coalesce(:after::text, '') AND posted_month < :before
     GROUP BY posted_month ORDER BY posted_month`,
    { after, before },
  );
}

export interface LatestAct {
  readonly number: string;
  readonly act: 'issued' | 'voided' | 'written off';
  /** `YYYY-MM-DD` in the issuer's zone. */
  readonly dated: string;
}

/** What happened to a document last, by its date. */
export async function readLatestAct(tx: Transaction): Promise<LatestAct | undefined> {
  const rows = await query<LatestAct>(
    tx,
    `WITH acts (document_id, act, dated) AS (
       -- Documents are dated in the order in which they are issued, so the last one has the latest date.
       (SELECT document_id, 'issued', issued_on FROM documents ORDER BY document_id DESC LIMIT 1)
       UNION ALL
       (SELECT document_id, 'voided', voided_on FROM voids ORDER BY voided_on DESC, document_id DESC LIMIT 1)
       UNION ALL
       (SELECT document_id, 'written off', written_off_on FROM write_offs ORDER BY write_off_id DESC LIMIT 1)
     )
     SELECT d.number, a.act, a.dated FROM acts a JOIN documents d USING (document_id)
     ORDER BY a.dated DESC, a.act LIMIT 1`,
  );
  return rows[0];
}

/** The issuer as it is printed; its logo is kept apart, once, and named here by its hash. */
export async function recordIssuerVersion(tx: Transaction, issuer: Issuer, now: string): Promise<number> {
  const { logo } = issuer;
  if (logo !== null) await recordLogo(tx, logo, now);
  // Without a logo the content is what it was before there were any, and so the same version.
  const bindings = { content: JSON.stringify({ ...issuer, logo: logo === null ? '' : { sha256: logo.sha256 } }), now };
  await execute(
    tx,
    `INSERT INTO issuer_versions (content, first_used_at) VALUES (:content::jsonb, :now::timestamptz)
     ON CONFLICT ON CONSTRAINT issuer_version_once DO NOTHING`,
    bindings,
  );
  const { id } = await queryOne<{ id: number }>(
    tx,
    `SELECT issuer_version_id AS id FROM issuer_versions WHERE content = :content::jsonb`,
    bindings,
  );
  return id;
}

async function recordLogo(tx: Transaction, logo: Logo, now: string): Promise<void> {
  await execute(
    tx,
    `INSERT INTO logos (sha256, media_type, width, height, content, first_used_at)
     VALUES (:sha256, :media_type, :width, :height, decode(:content, 'base64'), :now::timestamptz)
     ON CONFLICT ON CONSTRAINT logo_once DO NOTHING`,
    { ...logo, now },
  );
}

/**
 * Totals the month's rows, of one partner or of all, by document line, once, for the statements that follow. A closed
 * month's rows are those posted after the month before it and up to it: for the first month that includes all earlier
 * ones. Nothing is replaced yet.
 */
export async function totalRows(
  tx: Transaction,
  month: Month,
  previous: Month | null,
  partnerId: string | null = null,
): Promise<void> {
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.month_lines, pg_temp.replaced`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE month_lines ON COMMIT DROP AS
     SELECT partner_id, currency, arrangement, policy_id, kind, month, count(*) AS count,
            sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount
     FROM ledger_rows
     WHERE posted_month > coalesce(:previous::text, '') AND posted_month <= :month
       AND (:partnerId::text IS NULL OR partner_id = :partnerId)
     GROUP BY partner_id, currency, arrangement, policy_id, kind, month`,
    { month, previous, partnerId },
  );
  await execute(tx, 'ANALYZE pg_temp.month_lines');
  await execute(
    tx,
    `CREATE TEMPORARY TABLE replaced (
       document_id bigint NOT NULL, partner_id text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL,
       arrangement text NOT NULL, due_on date, terms_days integer
     ) ON COMMIT DROP`,
  );
}

/** The currencies of the rows that were totalled. */
export async function readCurrencies(tx: Transaction): Promise<string[]> {
  const rows = await query<{ currency: string }>(tx, `SELECT DISTINCT currency FROM pg_temp.month_lines`);
  return rows.map((row) => row.currency);
}

/** A closed month with the one before it; undefined where it is not closed. */
export async function readClosedMonth(tx: Transaction, month: Month): Promise<{ previous: Month | null } | undefined> {
  const rows = await query<{ previous: Month | null }>(tx, `SELECT previous FROM closed_months WHERE month = :month`, {
    month,
  });
  return rows[0];
}

export interface Issue {
  readonly month: Month;
  /** `YYYY-MM-DD` in the issuer's zone. */
  readonly issuedOn: string;
  readonly termsDays: number;
  readonly issuerVersionId: number;
  readonly sandbox: boolean;
  /** ISO instant. */
  readonly now: string;
  readonly askedFor: 'close' | 'rerun' | 'missing_shares';
  readonly eventId: number;
  /** The right-hand side of the Message-IDs. */
  readonly mailDomain: string;
}

/**
 * Issues a document for each partner, currency and arrangement of `month_lines`, in place of the void one that
 * `replaced` names for it, with the due date and terms given there. Numbers go on from the last of their series in order
 * of partner and currency; they are safe to take by looking because the caller holds the ledger's lock until the
 * documents are committed.
 */
export async function insertDocuments(tx: Transaction, issue: Issue): Promise<void> {
  // The planner knows nothing yet of documents issued a moment ago: joining 15,000 lines to 2,000 of them by their
  // table took 6.5 s, by this one 0.1 s.
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.issued_documents`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE issued_documents (
       document_id bigint NOT NULL, partner_id text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL,
       arrangement text NOT NULL, sign integer NOT NULL
     ) ON COMMIT DROP`,
  );
  await execute(
    tx,
    `WITH totals AS (
       SELECT partner_id, currency, arrangement, sum(count) AS entries,
              sum(count) FILTER (WHERE kind = 'quote_accepted') AS enrollments,
              sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount
       FROM pg_temp.month_lines GROUP BY partner_id, currency, arrangement
     ), kinds AS (
       SELECT totals.*,
              CASE WHEN arrangement = 'connected_account' THEN 'statement'
                   WHEN invoice_amount < 0 THEN 'credit_note' ELSE 'invoice' END AS document
       FROM totals
     ), numbered AS (
       SELECT kinds.*, series.series, CASE document WHEN 'credit_note' THEN -1 ELSE 1 END AS sign,
              row_number() OVER (PARTITION BY document ORDER BY partner_id, currency, arrangement)
                + coalesce((SELECT max(d.sequence) FROM documents d WHERE d.series = series.series), 0) AS sequence
       FROM kinds
       CROSS JOIN LATERAL (
         SELECT CASE document WHEN 'invoice' THEN 'INV-' WHEN 'credit_note' THEN 'CN-' ELSE 'ST-' END
                || left(:issuedOn, 4) COLLATE "C" AS series) AS series
     ), ${OPEN_CREDIT}, issued AS (
       INSERT INTO documents (
         series, sequence, document, purpose, partner_id, month, currency, arrangement, issued_on, due_on, terms_days,
         enrollments, entries, spot_price, partner_cut, invoice_amount, credit_applied, partner_name, address_line1,
         address_line2, address_city, address_region, address_postal_code, address_country, tax_id, purchase_order,
         legal_note, issuer_version_id, sandbox, issued_at, replaces)
       SELECT n.series, n.sequence, n.document, 'month', n.partner_id, :month, n.currency, n.arrangement,
              :issuedOn::date, coalesce(r.due_on, :issuedOn::date + terms.days), terms.days,
              coalesce(n.enrollments, 0), n.entries, n.sign * n.spot_price, n.sign * n.partner_cut,
              n.sign * n.invoice_amount,
              CASE n.document WHEN 'invoice' THEN least(coalesce(c.balance, 0), n.invoice_amount) ELSE 0 END,
              p.name, p.address_line1, p.address_line2, p.address_city, p.address_region, p.address_postal_code,
              p.address_country, p.tax_id, p.purchase_order, p.legal_note, :issuerVersionId::bigint,
              :sandbox::boolean, :now::timestamptz, r.document_id
       FROM numbered n
       JOIN partners p ON p.partner_id = n.partner_id
       LEFT JOIN open_credit c ON c.partner_id = n.partner_id AND c.currency = n.currency
       LEFT JOIN pg_temp.replaced r ON r.partner_id = n.partner_id AND r.currency = n.currency
         AND r.arrangement = n.arrangement
       CROSS JOIN LATERAL (
         SELECT CASE n.document WHEN 'invoice'
                THEN coalesce(r.terms_days, p.payment_terms_days, :termsDays::integer) END AS days
       ) AS terms
       ORDER BY n.document, n.sequence
       RETURNING document_id, partner_id, currency, arrangement, document
     )
     INSERT INTO pg_temp.issued_documents
     SELECT document_id, partner_id, currency, arrangement, CASE document WHEN 'credit_note' THEN -1 ELSE 1 END
     FROM issued`,
    { ...issue },
  );
  await execute(tx, 'ANALYZE pg_temp.issued_documents');
}

export async function insertDocumentLines(tx: Transaction, month: Month): Promise<void> {
  await execute(
    tx,
    `INSERT INTO document_lines (
       document_id, position, policy_id, policy_name, kind, month, count, spot_price, partner_cut, invoice_amount)
     SELECT d.document_id,
            row_number() OVER (PARTITION BY d.document_id ORDER BY l.month < :month, l.month, l.policy_id,
              array_position(ARRAY['quote_accepted', 'requote_accepted', 'reversal'], l.kind COLLATE "C")),
            l.policy_id, o.name, l.kind, l.month, l.count, d.sign * l.spot_price, d.sign * l.partner_cut,
            d.sign * l.invoice_amount
     FROM pg_temp.month_lines l
     JOIN pg_temp.issued_documents d ON d.partner_id = l.partner_id AND d.currency = l.currency
       AND d.arrangement = l.arrangement
     JOIN policies o ON o.partner_id = l.partner_id AND o.policy_id = l.policy_id`,
    { month },
  );
}

/**
 * Uses up open credit for the credit that the invoices were issued with: first what the void of a replaced one gave
 * back, then the oldest.
 */
export async function applyOpenCredit(tx: Transaction, issue: Issue): Promise<void> {
  await execute(
    tx,
    `INSERT INTO credit_applications (credit_note_id, invoice_id, amount, applied_on, recorded_at)
     SELECT credit_note_id, invoice_id, least(used_up_to, credit_applied) - used_before,
            :issuedOn::date, :now::timestamptz
     FROM (
       SELECT note.document_id AS credit_note_id, invoice.document_id AS invoice_id, invoice.credit_applied,
              sum(b.balance) OVER in_turn AS used_up_to, sum(b.balance) OVER in_turn - b.balance AS used_before
       FROM pg_temp.issued_documents
       JOIN documents invoice USING (document_id)
       JOIN documents note ON note.partner_id = invoice.partner_id AND note.currency = invoice.currency
         AND note.document = 'credit_note'
       JOIN document_balances b ON b.document_id = note.document_id AND b.status = 'open'
       WHERE invoice.credit_applied > 0
       WINDOW in_turn AS (PARTITION BY invoice.document_id ORDER BY NOT EXISTS (
           SELECT FROM credit_releases r JOIN credit_applications a USING (credit_application_id)
           WHERE r.document_id = invoice.replaces AND a.credit_note_id = note.document_id), note.document_id)
     ) AS notes
     WHERE used_before < credit_applied`,
    { ...issue },
  );
}

/** Queues one sending for each document issued, under a Message-ID that is fixed from now on. */
export async function queueSendings(tx: Transaction, issue: Issue): Promise<void> {
  await execute(
    tx,
    `INSERT INTO sendings (document_id, asked_for, message_id, status, queued_at, event_id)
     SELECT d.document_id, :askedFor, '<' || d.number || '.1.' || i.installation_id || '@' || :mailDomain || '>',
            'queued', :now::timestamptz, :eventId::bigint
     FROM pg_temp.issued_documents JOIN documents d USING (document_id) CROSS JOIN installation i
     ORDER BY d.document_id`,
    { ...issue },
  );
  await execute(
    tx,
    `SELECT enqueue_deliveries(array_agg(document_id)) FROM pg_temp.issued_documents HAVING count(*) > 0`,
  );
}

export async function recordClosedMonth(tx: Transaction, issue: Issue, previous: Month | null): Promise<void> {
  await execute(
    tx,
    `INSERT INTO closed_months (
       month, previous, issued_on, closed_at, entries, late_entries, partners_with_documents, partners_without_activity)
     SELECT :month, :previous, :issuedOn::date, :now::timestamptz,
            coalesce(sum(count), 0), coalesce(sum(count) FILTER (WHERE month < :month), 0), count(DISTINCT partner_id),
            (SELECT count(*) FROM partners p
             WHERE p.inactive_since IS NULL AND p.partner_id NOT IN (SELECT partner_id FROM pg_temp.month_lines))
     FROM pg_temp.month_lines`,
    { ...issue, previous },
  );
}

/** What must hold before documents may be issued: rows, lines and documents are the same sums. */
export function readConservation(
  tx: Transaction,
): Promise<{ rows: number; lines: number; documents: number; differences: number }> {
  return queryOne(
    tx,
    `SELECT (SELECT coalesce(sum(count), 0)::bigint FROM pg_temp.month_lines) AS rows,
            coalesce(sum(l.count), 0)::bigint AS lines, coalesce(sum(d.entries), 0)::bigint AS documents,
            count(*) FILTER (WHERE (l.spot_price, l.partner_cut, l.invoice_amount, c.applied)
              IS DISTINCT FROM (d.spot_price, d.partner_cut, d.invoice_amount, d.credit_applied)) AS differences
     FROM pg_temp.issued_documents
     JOIN documents d USING (document_id)
     CROSS JOIN LATERAL (
       SELECT sum(count) AS count, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
              sum(invoice_amount) AS invoice_amount
       FROM document_lines l WHERE l.document_id = d.document_id) AS l
     CROSS JOIN LATERAL (
       SELECT coalesce(sum(amount), 0) AS applied FROM credit_applications c WHERE c.invoice_id = d.document_id) AS c`,
  );
}

export interface MonthFacts {
  readonly month: Month;
  readonly invoices: number;
  readonly credit_notes: number;
  readonly statements: number;
  readonly entries: number;
  readonly late_entries: number;
  readonly partners_without_activity: number;
  readonly totals: readonly { currency: string; spot_price: string; partner_cut: string; invoice_amount: string }[];
  readonly deliveries: Readonly<Record<'sent' | 'pending' | 'held' | 'failed' | 'uncertain', number>>;
}

/**
 * What a closed month gave, with the present state of its live documents' deliveries. Totals are those of its rows:
 * a replacement stands for the same rows as the first document, so the first ones are counted.
 */
export function readMonthFacts(tx: Transaction, months: readonly Month[]): Promise<MonthFacts[]> {
  return query(
    tx,
    `SELECT m.month, m.entries, m.late_entries, m.partners_without_activity,
            d.invoices, d.credit_notes, d.statements, d.deliveries, coalesce(t.totals, '[]') AS totals
     FROM closed_months m
     CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE document = 'invoice' AND replaces IS NULL) AS invoices,
              count(*) FILTER (WHERE document = 'credit_note' AND replaces IS NULL) AS credit_notes,
              count(*) FILTER (WHERE document = 'statement' AND replaces IS NULL) AS statements,
              json_build_object(
                'sent', count(*) FILTER (WHERE s.status = 'sent'),
                'pending', count(*) FILTER (WHERE s.status IN ('queued', 'sending')),
                'held', count(*) FILTER (WHERE s.status = 'held'),
                'failed', count(*) FILTER (WHERE s.status = 'failed'),
                'uncertain', count(*) FILTER (WHERE s.status = 'uncertain')) AS deliveries
       FROM documents
       LEFT JOIN LATERAL (
         SELECT s.status FROM sendings s
         WHERE s.document_id = documents.document_id
           AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = documents.document_id)
         ORDER BY s.sending_id DESC LIMIT 1) AS s ON true
       WHERE documents.month = m.month AND purpose = 'month') AS d
     CROSS JOIN LATERAL (
       SELECT json_agg(c ORDER BY c.currency) AS totals
       FROM (
         SELECT currency, sum(sign * spot_price)::text AS spot_price, sum(sign * partner_cut)::text AS partner_cut,
                sum(sign * invoice_amount)::text AS invoice_amount
         FROM documents CROSS JOIN LATERAL (SELECT CASE document WHEN 'credit_note' THEN -1 ELSE 1 END AS sign) AS s
         WHERE month = m.month AND purpose = 'month' AND replaces IS NULL GROUP BY currency) AS c) AS t
     WHERE m.month = ANY (:months::text[])
     ORDER BY m.month`,
    { months },
  );
}
