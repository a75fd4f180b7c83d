/** SQL of the data files: the rows of each, and the COPY that writes them as CSV or JSON Lines. */
import type { Month } from '../month.ts';
import { type Column, columnsOf, type DataFile, type TableFormat } from './dictionary.ts';
import type { FactRange } from './exports.sql.ts';

/** What is exported: months, and the facts under their seals. */
interface ExportRange {
  readonly from: Month;
  readonly to: Month;
  readonly facts: FactRange;
}

// The same as `cellOf` in text.ts. Most texts begin with a letter, so that is compared first.
export const cellOf = (column: string) =>
  `CASE WHEN ${column} COLLATE "C" >= 'A' AND ${column} COLLATE "C" < '＋' THEN ${column}
        WHEN ${column} ~ '^([''\\t\\r\\n]|[ \\t\\r\\n]*[=+@＝＋－＠-])' AND ${column} !~ '^-?\\d+(\\.\\d+)?$' THEN '''' || ${column}
        ELSE nullif(${column}, '') END`;

/** The value of a column in CSV or JSON. Amounts have exactly the digits of the row's currency. */
function expressionOf({ name, type }: Column, format: TableFormat): string {
  const column = `"${name}"`;
  switch (type) {
    case 'amount':
      return `round(${column}, minor_digits(currency))::text`;
    case 'instant':
      return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
    case 'boolean':
      return format === 'csv' ? `${column}::text` : column;
    case 'json':
    case 'list':
      return format === 'csv' ? cellOf(`(${column} #>> '{}')`) : column;
    case 'text':
      return format === 'csv' ? cellOf(column) : column;
    default:
      return column;
  }
}

/** COPY options that write JSON unchanged: JSON escapes control characters, so none can be a quote or delimiter. */
const AS_IT_IS = `FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02'`;

/** A COPY of the rows that a query gives in order, with the columns of the data file. */
export function copyOf(file: DataFile, format: TableFormat, rows: string): string {
  const columns = columnsOf(file, format);
  if (format === 'csv') {
    const list = columns.map((column) => `${expressionOf(column, format)} AS "${column.name}"`);
    return `COPY (SELECT ${list.join(', ')} FROM (${rows}) AS data) TO STDOUT (FORMAT csv, HEADER)`;
  }
  const pairs = columns.map((column) => `'${column.name}', ${expressionOf(column, format)}`);
  return `COPY (SELECT json_build_object(${pairs.join(', ')}) FROM (${rows}) AS data) TO STDOUT (${AS_IT_IS})`;
}

/** Selects by the month of the entry date, so an export of months whose books are closed never changes. */
const monthOf = (column: string, { from, to }: ExportRange) =>
  `to_char(${column}, 'YYYY-MM') BETWEEN '${from}' AND '${to}'`;

/** Selects the facts under the months' seals and, for a month still open, those that no seal covers yet. */
const recordedIn = ({ facts: { after, to } }: ExportRange) =>
  `fact_id > ${after} ${to === null ? '' : `AND fact_id <= ${to}`}`;

// --- Documents --------------------------------------------------------------------------------------------------------

/** The voids of the documents in `invoices`, in the same order. */
const voids = ({ from, to }: ExportRange): string =>
  `SELECT d.number, v.* FROM voids v JOIN documents d USING (document_id)
   WHERE d.month BETWEEN '${from}' AND '${to}' AND d.purpose <> 'opening' ORDER BY d.series, d.sequence`;

/** Write-offs by entry date, and undone write-offs as negative amounts. */
const writeOffs = (range: ExportRange): string =>
  `SELECT moved.*, d.number AS document, d.partner_id, d.currency
   FROM (
     SELECT fact_id, write_off_id, 'written_off' AS move, document_id, amount, reason, written_off_on AS dated_on,
            entry_on, recorded_at, event_id
     FROM write_offs
     UNION ALL
     SELECT r.fact_id, write_off_id, 'reversed', w.document_id, -w.amount, r.reason, r.reversed_on, r.entry_on,
            r.recorded_at, r.event_id
     FROM write_off_reversals r JOIN write_offs w USING (write_off_id)
   ) AS moved JOIN documents d USING (document_id)
   WHERE ${monthOf('moved.entry_on', range)} ORDER BY fact_id`;

/** Items carried over by openings recorded under the months' seals, with their currently open amounts. */
const openings = (range: ExportRange): string =>
  `SELECT fact_id, opening_id, cut_over_on, kind, number, partner_id, date, due_on, currency, original_amount, amount,
          CASE WHEN reversed THEN 'reversed' WHEN balance = 0 THEN 'settled' ELSE 'open' END AS status, balance
   FROM (
     SELECT d.fact_id, d.opening_id, d.entry_on AS cut_over_on,
            CASE d.document WHEN 'invoice' THEN 'invoice' ELSE 'credit' END AS kind, d.number, d.partner_id,
            d.issued_on AS date, d.due_on, d.currency, d.original_amount, d.invoice_amount AS amount,
            b.status = 'void' AS reversed, b.balance
     FROM documents d JOIN document_balances b USING (document_id) WHERE d.opening_id IS NOT NULL
     UNION ALL
     SELECT p.fact_id, p.opening_id, p.entry_on, 'cash', p.opening_number, p.partner_id, p.received_on, NULL,
            p.currency, p.amount, p.amount, b.status = 'reversed', b.unapplied
     FROM payments p JOIN payment_balances b USING (payment_id) WHERE p.opening_id IS NOT NULL
   ) AS items
   WHERE ${recordedIn(range)} ORDER BY fact_id`;

// --- Payments ---------------------------------------------------------------------------------------------------------

/** Payments by entry date, with their current status. */
const payments = (range: ExportRange): string =>
  `SELECT p.payment_id, p.received_on, p.entry_on, b.partner_id, p.currency, p.amount, p.method, p.account,
          p.reference, p.payer_name, p.payer_account, p.source, p.identity, p.recorded_at, b.applied, b.reversed,
          b.unapplied, b.status
   FROM payments p JOIN payment_balances b USING (payment_id)
   WHERE ${monthOf('p.entry_on', range)} ORDER BY payment_id`;

/**
 * Applications and bank charges by entry date, and unapplied, reversed and refunded amounts as negative numbers. An
 * assigned amount moves between partners.
 */
const paymentMoves = (range: ExportRange): string =>
  `SELECT * FROM (
    SELECT a.payment_id, 'applied' AS move, d.number AS document, a.currency, a.amount, a.applied_on AS dated_on,
           a.entry_on, a.evidence->>'why' AS why, a.recorded_at
    FROM payment_applications a JOIN documents d USING (document_id)
    UNION ALL
    SELECT a.payment_id, 'unapplied', d.number, a.currency, -a.amount, u.unapplied_on, u.entry_on,
           CASE WHEN u.payment_reversal_id IS NULL THEN 'unapplied by a user' ELSE 'payment reversed' END,
           u.recorded_at
    FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
    JOIN documents d USING (document_id)
    UNION ALL
    SELECT a.payment_id, 'bank_charges', d.number, s.currency, s.amount, a.applied_on, s.entry_on,
           'a difference too small to pursue', s.recorded_at
    FROM small_differences s JOIN payment_applications a USING (payment_application_id)
    JOIN documents d ON d.document_id = s.document_id
    UNION ALL
    SELECT a.payment_id, 'bank_charges_reversed', d.number, s.currency, -s.amount, u.unapplied_on, u.entry_on,
           CASE WHEN u.payment_reversal_id IS NULL THEN 'unapplied by a user' ELSE 'payment reversed' END,
           u.recorded_at
    FROM payment_unapplications u JOIN small_differences s USING (payment_application_id)
    JOIN payment_applications a USING (payment_application_id) JOIN documents d ON d.document_id = s.document_id
    UNION ALL
    SELECT r.payment_id, r.kind, NULL, r.currency, -r.amount, r.reversed_on, r.entry_on,
           concat_ws(': ', r.code, r.reason), r.recorded_at
    FROM payment_reversals r
    UNION ALL
    SELECT g.payment_id, 'assigned', NULL, p.currency, g.amount, g.assigned_on, g.entry_on,
           format('from %s to %s', coalesce(g.from_partner_id, 'an unknown payer'), g.partner_id), g.recorded_at
    FROM payment_assignments g JOIN payments p USING (payment_id)
  ) AS moved
  WHERE ${monthOf('entry_on', range)} ORDER BY recorded_at, payment_id, move, document`;

/** Uses of open credit: above zero when used, below zero when open again. */
const creditMoves = (range: ExportRange): string =>
  `SELECT * FROM (
    SELECT n.number AS credit_note, 'applied' AS move, d.number AS document, n.currency, a.amount,
           a.applied_on AS dated_on, a.entry_on, e.action AS why, a.recorded_at, a.fact_id
    FROM credit_applications a JOIN documents n ON n.document_id = a.credit_note_id
    JOIN documents d ON d.document_id = a.invoice_id JOIN audit_events e USING (event_id)
    UNION ALL
    SELECT n.number, 'released', d.number, n.currency, -a.amount, r.released_on, r.entry_on, e.action, r.recorded_at,
           r.fact_id
    FROM credit_releases r JOIN credit_applications a USING (credit_application_id)
    JOIN documents n ON n.document_id = a.credit_note_id JOIN documents d ON d.document_id = a.invoice_id
    JOIN audit_events e ON e.event_id = r.event_id
    UNION ALL
    SELECT n.number, 'refunded', NULL, f.currency, f.amount, f.refunded_on, f.entry_on, f.reference, f.recorded_at,
           f.fact_id
    FROM credit_refunds f JOIN documents n USING (document_id)
    UNION ALL
    SELECT n.number, 'refund_returned', NULL, f.currency, -f.amount, b.returned_on, b.entry_on, b.reason, b.recorded_at,
           b.fact_id
    FROM credit_refund_returns b JOIN credit_refunds f USING (credit_refund_id) JOIN documents n USING (document_id)
  ) AS moved
  WHERE ${monthOf('entry_on', range)} ORDER BY fact_id`;

/** The lines of bank statements by the bank's booking day, each with its outcome. */
const bankLines = (range: ExportRange): string =>
  `SELECT x.bank_statement_id, x.position, l.*, o.outcome, o.payment_id, o.payout_id, o.payment_reversal_id,
          o.needs_review, o.reason, s.reference AS statement, f.name AS file, f.sha256 AS file_sha256, f.recorded_at
   FROM bank_statement_lines x
   JOIN bank_lines l USING (bank_line_id)
   JOIN bank_statements s USING (bank_statement_id)
   JOIN bank_files f USING (bank_file_id)
   LEFT JOIN bank_line_outcomes o USING (bank_line_id)
   WHERE ${monthOf('l.bank_booked_on', range)} ORDER BY x.bank_statement_id, x.position`;

// --- Partners ---------------------------------------------------------------------------------------------------------

/** The current partners. The columns are the fields named in audit events of changes. */
const partners = (): string =>
  `SELECT p.partner_id, p.name, p.address_line1 AS "address.line1", p.address_line2 AS "address.line2",
          p.address_city AS "address.city", p.address_region AS "address.region",
          p.address_postal_code AS "address.postal_code", p.address_country AS "address.country",
          p.contact_name AS "invoicing_contact.name", p.contact_email AS "invoicing_contact.email",
          to_jsonb(p.contact_cc) AS "invoicing_contact.cc", p.currency, p.time_zone, p.payment_terms_days,
          p.inactive_since IS NULL AS active, p.tax_id, p.purchase_order, p.legal_note, p.parent, p.account_statement,
          p.e_invoice, p.buyer_reference, p.electronic_address,
          a.arrangement, nullif(a.from_month, '0001-01') AS arrangement_from, a.connected_account_id,
          a.merchant_of_record, a.split, to_jsonb(a.settlement_currencies) AS settlement_currencies,
          a.connected_account_type, a.connected_account_state, a.balance_transactions_from
   FROM partners p
   CROSS JOIN LATERAL (
     SELECT * FROM partner_arrangements a WHERE a.partner_id = p.partner_id ORDER BY a.from_month DESC LIMIT 1) AS a
   ORDER BY p.partner_id`;

const policies = (): string =>
  `SELECT partner_id, policy_id, name, kind, inactive_since IS NULL AS active, partner_cut_rate::text,
          price_rate::text AS "price.rate", price_minimum::text AS "price.minimum", largest_price::text
   FROM policies ORDER BY partner_id, policy_id`;

/** One row for each changed field, from the sealed events. Replaying them gives the current partners. */
const partnerChanges = (range: ExportRange): string =>
  `SELECT e.*, e.subject AS partner_id, c.change->>'field' AS field, c.change->'old' AS old, c.change->'new' AS new,
          e.details->'import_event_id' AS import_event_id
   FROM audit_events e
   CROSS JOIN LATERAL jsonb_array_elements(e.details->'changes') WITH ORDINALITY AS c (change, position)
   WHERE e.action IN ('partner.create', 'partner.update') AND ${recordedIn(range)} ORDER BY e.fact_id, c.position`;

// --- Events and journal -----------------------------------------------------------------------------------------------

/** The audit events under the months' seals and, for a month still open, those that no seal covers yet. */
const events = (range: ExportRange): string => `SELECT * FROM audit_events WHERE ${recordedIn(range)} ORDER BY fact_id`;

/** One row per posting. Debits are positive; credits are negative. */
const journal = ({ from, to }: ExportRange): string =>
  `SELECT * FROM journal WHERE month BETWEEN '${from}' AND '${to}'
   ORDER BY month COLLATE "C", entry_on, fact COLLATE "C", fact_id, amount DESC, account COLLATE "C"`;

/** The journals of the months that went to the general ledger: one row per file. */
const glExports = ({ from, to }: ExportRange): string =>
  `SELECT e.*, f.position, f.name AS file, f.sha256 FROM gl_exports e JOIN gl_export_files f USING (gl_export_id)
   WHERE e.month BETWEEN '${from}' AND '${to}' ORDER BY gl_export_id, f.position`;

/**
 * The lines of these journals: the amount from each of our accounts to each account of the general ledger, with the
 * external id of the journal.
 */
const glLines = ({ from, to }: ExportRange): string =>
  `SELECT e.month, e.format, e.part, l.*,
          concat_ws('-', e.month, e.part, l.currency, left(e.seal, 6)) AS external_id
   FROM gl_exports e JOIN gl_export_lines l USING (gl_export_id)
   WHERE e.month BETWEEN '${from}' AND '${to}' ORDER BY gl_export_id, l.line`;

/** The rows of the data files that the database writes. The others are generated from sealed lines or documents. */
export const ROWS = {
  voids,
  'write-offs': writeOffs,
  openings,
  payments,
  'payment-moves': paymentMoves,
  'credit-moves': creditMoves,
  'bank-lines': bankLines,
  partners,
  policies,
  'partner-changes': partnerChanges,
  events,
  journal,
  'gl-exports': glExports,
  'gl-lines': glLines,
} as const satisfies Partial<Record<DataFile, (range: ExportRange) => string>>;
