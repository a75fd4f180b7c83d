/**
 * Checks of documents, their numbers, credit and balances. Each constant is the body of a WITH, with the CTEs that
 * `query.ts` describes: `inspected`, and `differences` with a subject and a detail.
 */
import { inMonth } from './query.ts';

// The document that bills a month's rows is the last in its chain of replacements. If that last document is void, the
// rows are unbilled until it is replaced.
export const LAST_OF_CHAIN = `NOT EXISTS (SELECT FROM documents later WHERE later.replaces = d.document_id)`;

/** The bank details on a document are those that were in force when its PDF was recorded. */
export const INSTRUCTIONS_IN_FORCE = `adoptions AS MATERIALIZED (
  SELECT event_id, log_no, lead(log_no) OVER (ORDER BY event_id) AS until_fact_id,
         details->'instructions' AS instructions
  FROM audit_events WHERE action = 'instructions.adopt'
), inspected AS (
  SELECT d.number, d.currency, w.instruction_version_id, v.content, a.event_id,
         instructions_for(a.instructions, d.currency) AS in_force
  FROM document_pdfs w JOIN documents d USING (document_id)
  LEFT JOIN instruction_versions v USING (instruction_version_id)
  LEFT JOIN adoptions a ON w.log_no > a.log_no AND (a.until_fact_id IS NULL OR w.log_no < a.until_fact_id)
  WHERE w.instruction_version_id IS NOT NULL AND ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject,
         format('prints bank details (version %s) that were not in force when it was issued; those of %s were',
                instruction_version_id, coalesce('event ' || event_id, 'no event')) AS detail
  FROM inspected WHERE in_force IS DISTINCT FROM content
)`;

export const ONE_LIVE_DOCUMENT = `inspected AS (
  SELECT partner_id, month, currency, arrangement, count(*) AS documents,
         string_agg(number, ', ' ORDER BY number) AS numbers
  FROM live_documents d WHERE purpose = 'month' AND ${inMonth('month')}
  GROUP BY partner_id, month, currency, arrangement
), differences AS (
  SELECT format('%s for %s in %s', partner_id, month, currency) AS subject,
         format('has %s live documents: %s', documents, numbers) AS detail
  FROM inspected WHERE documents > 1
)`;

/**
 * Each series starts at 1 and has no gaps except skipped numbers, which no document has. The dates in a series never
 * decrease, and its name matches each document's kind and year. The event of a resumption names the numbers that it
 * skipped.
 */
export const NUMBERS_WITHOUT_GAPS = `skipped AS (
  SELECT s.series, s.first_sequence, s.last_sequence, s.event_id, r.event_id AS resumed_by,
         s.series || '-' || lpad(first_sequence::text, greatest(6, length(first_sequence::text)), '0') AS "from",
         s.series || '-' || lpad(last_sequence::text, greatest(6, length(last_sequence::text)), '0') AS "to"
  FROM skipped_numbers s JOIN resumptions r USING (pause_id)
), told AS (
  SELECT e.event_id, k."from", k."to", true AS is_told
  FROM audit_events e
  CROSS JOIN LATERAL json_to_recordset(CASE json_typeof(e.details::json->'skipped')
    WHEN 'array' THEN e.details::json->'skipped' ELSE '[]' END) AS k ("from" text, "to" text)
  WHERE e.action = 'ledger.resume'
), numbers AS (
  -- Documents of an opening have the dates of the previous system.
  SELECT number, series, sequence AS first, sequence AS last,
         CASE WHEN purpose <> 'opening' THEN issued_on END AS issued_on,
         series = CASE purpose WHEN 'opening' THEN 'OPENING'
                       ELSE document_series(document, issued_on) END AS named_right
  FROM documents
  UNION ALL
  SELECT format('%s to %s, skipped,', "from", last_sequence), series, first_sequence, last_sequence, NULL, true
  FROM skipped
), inspected AS (
  SELECT number, series, first, last, issued_on, named_right, lag(last, 1, 0) OVER in_order AS previous,
         max(issued_on) OVER (in_order ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous_issued_on
  FROM numbers WINDOW in_order AS (PARTITION BY series ORDER BY first, last)
), differences AS (
  SELECT number AS subject,
         format('series %s, after number %s dated %s', series, previous, coalesce(previous_issued_on::text, 'never'))
           AS detail
  FROM inspected WHERE first <> previous + 1 OR issued_on < previous_issued_on OR NOT named_right
  UNION ALL
  SELECT format('%s to %s', "from", "to"),
         CASE WHEN s.series IS NULL THEN format('skipped by event %s, but no longer recorded', event_id)
              ELSE format('skipped, but not by event %s', event_id) END
  FROM skipped s FULL JOIN told t USING (event_id, "from", "to")
  WHERE s.series IS NULL OR t.is_told IS NULL OR s.resumed_by <> event_id
)`;

/** A disputed amount is at most the invoice's amount, and only the last dispute of an invoice may be open. */
export const DISPUTES_WITHIN_INVOICES = `inspected AS (
  SELECT d.number, d.document, d.gross, t.amount,
         c.invoice_dispute_id IS NULL AND EXISTS (
           SELECT FROM invoice_disputes later WHERE later.follows = t.invoice_dispute_id) AS followed,
         c.closed_on < t.disputed_on AS closed_before
  FROM invoice_disputes t JOIN documents d USING (document_id)
  LEFT JOIN invoice_dispute_closings c USING (invoice_dispute_id)
  WHERE ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject, format('%s of %s in dispute', amount, gross) AS detail
  FROM inspected WHERE document <> 'invoice' OR amount > gross OR followed OR closed_before
)`;

/**
 * The amounts in a document's header are the sums of its lines, its due date follows from its terms, and its credit is
 * at most its amount.
 */
export const DOCUMENTS_ADD_UP = `inspected AS (
  SELECT d.number, d.spot_price, d.partner_cut, d.invoice_amount, d.gross, d.credit_applied, d.due_on, d.issued_on,
         d.terms_days, d.document, l.spot_price AS line_spot_price, l.partner_cut AS line_partner_cut,
         l.invoice_amount AS line_invoice_amount, l.entries AS line_entries, d.entries,
         replaced.due_on AS replaced_due_on
  FROM documents d
  LEFT JOIN documents replaced ON replaced.document_id = d.replaces
  LEFT JOIN LATERAL (
    SELECT sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount,
           sum(count) AS entries
    FROM document_lines l WHERE l.document_id = d.document_id) AS l ON true
  WHERE d.purpose = 'month' AND ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject,
         format('header %s %s %s from %s rows, lines %s %s %s from %s rows', spot_price, partner_cut, invoice_amount,
                entries, line_spot_price, line_partner_cut, line_invoice_amount, line_entries) AS detail
  FROM inspected
  WHERE (spot_price, partner_cut, invoice_amount, entries)
        IS DISTINCT FROM (line_spot_price, line_partner_cut, line_invoice_amount, line_entries)
     OR spot_price <> partner_cut + invoice_amount
     OR (due_on <> issued_on + terms_days AND due_on IS DISTINCT FROM replaced_due_on)
     OR credit_applied < 0 OR (credit_applied > 0 AND credit_applied > gross)
)`;

/**
 * Credit applied from a credit note is at most its amount. An invoice states the credit that was applied to it at
 * issue. A credit note against an invoice states the amount by which it reduced the invoice at once. A void document
 * neither uses nor gives credit.
 */
export const CREDIT_TIES = `used AS (
  SELECT a.*, r.credit_application_id IS NOT NULL AS released
  FROM credit_applications a LEFT JOIN credit_releases r USING (credit_application_id)
), notes AS (
  SELECT d.number, coalesce(sum(a.amount), 0) AS applied,
         CASE WHEN v.document_id IS NULL THEN d.gross ELSE 0 END AS most, 0 AS least
  FROM documents d LEFT JOIN voids v ON v.document_id = d.document_id
  LEFT JOIN used a ON a.credit_note_id = d.document_id AND NOT a.released
  WHERE d.document = 'credit_note' GROUP BY d.document_id, v.document_id
), issued_with AS (
  SELECT d.number, coalesce(sum(a.amount), 0) AS applied, d.credit_applied AS most, d.credit_applied AS least
  FROM documents d LEFT JOIN used a ON a.invoice_id = d.document_id AND a.at_issue
  WHERE d.document <> 'credit_note' GROUP BY d.document_id
), returned AS (
  SELECT d.number || ', void,' AS number, coalesce(sum(a.amount), 0) AS applied, 0 AS most, 0 AS least
  FROM documents d JOIN voids v ON v.document_id = d.document_id
  LEFT JOIN used a ON a.invoice_id = d.document_id AND NOT a.released
  GROUP BY d.document_id
), mismatched AS (
  SELECT n.number || ' on ' || i.number AS number, a.amount AS applied, 0 AS most, 0 AS least
  FROM used a
  JOIN documents n ON n.document_id = a.credit_note_id JOIN documents i ON i.document_id = a.invoice_id
  WHERE (n.document, i.document, n.partner_id, n.currency)
    IS DISTINCT FROM ('credit_note', 'invoice', i.partner_id, i.currency)
), released_by AS (
  SELECT i.number || ', released,' AS number, a.amount AS applied,
         CASE WHEN r.document_id IS NULL OR v.document_id = a.invoice_id THEN a.amount ELSE 0 END AS most, 0 AS least
  FROM credit_releases r
  JOIN credit_applications a USING (credit_application_id) JOIN documents i ON i.document_id = a.invoice_id
  LEFT JOIN voids v ON v.document_id = r.document_id
), at_once AS (
  SELECT d.number || ', at once,' AS number, coalesce(sum(a.amount), 0) AS applied, d.invoice_lowered_by AS most,
         d.invoice_lowered_by AS least
  FROM documents d
  LEFT JOIN (credit_applications a JOIN audit_events e ON e.event_id = a.event_id AND e.action = 'invoice.credit')
    ON a.credit_note_id = d.document_id AND a.invoice_id = d.credits
  WHERE d.purpose = 'adjustment' GROUP BY d.document_id
), inspected AS (
  SELECT * FROM notes UNION ALL SELECT * FROM issued_with WHERE most <> 0 OR applied <> 0
  UNION ALL SELECT * FROM returned UNION ALL SELECT * FROM mismatched UNION ALL SELECT * FROM released_by
  UNION ALL SELECT * FROM at_once
), differences AS (
  SELECT number AS subject, format('credit applied is %s; expected %s to %s', applied, least, most) AS detail
  FROM inspected WHERE applied > most OR applied < least
)`;

/**
 * No balance is below zero. The credit taken back from an invoice never exceeds the credit that was applied at its
 * issue. The credit notes against an invoice, and against the invoices that it replaced, never exceed the invoice's
 * amount.
 */
export const BALANCES_WITHIN_DOCUMENTS = `RECURSIVE chains AS (
  SELECT document_id, document_id AS head FROM documents d WHERE ${LAST_OF_CHAIN} AND d.document = 'invoice'
  UNION ALL
  SELECT d.replaces, c.head FROM chains c JOIN documents d ON d.document_id = c.document_id WHERE d.replaces IS NOT NULL
), credits AS (
  SELECT c.head AS document_id,
         coalesce(sum((SELECT sum(n.invoice_amount) FROM live_documents n WHERE n.credits = c.document_id)), 0)
           AS amount
  FROM chains c GROUP BY c.head
), inspected AS (
  SELECT d.number, d.invoice_amount, d.credit_applied, b.*, coalesce(c.amount, 0) AS credits
  FROM documents d JOIN document_balances b USING (document_id) LEFT JOIN credits c USING (document_id)
  WHERE ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject,
         format('amount due %s, credited %s, paid %s, balance %s; credit notes of %s against an invoice of %s',
                                   amount_due, credited, amount_paid, balance, credits, invoice_amount) AS detail
  FROM inspected
  WHERE balance < 0 OR credited < -credit_applied OR amount_paid < 0 OR (credits > 0 AND credits > invoice_amount)
     OR (status <> 'void' AND balance <> amount_due - credited - amount_paid)
)`;

/**
 * Open items agree with the journal by partner and currency: open invoices with receivables, open credit notes with
 * partner credit, and unapplied cash with its account. This check always covers everything.
 */
export const ACCOUNTS_TIE = `inspected AS (
  SELECT control, partner_id, currency, sum(items) AS items, sum(posted) AS posted
  FROM (SELECT CASE d.document WHEN 'invoice' THEN 'assets:receivable:billed'
                    ELSE 'liabilities:partner-credit' END AS control,
               d.partner_id, d.currency, CASE d.document WHEN 'invoice' THEN b.balance ELSE -b.balance END AS items,
               0 AS posted
        FROM documents d JOIN document_balances b USING (document_id) WHERE d.document <> 'statement'
        UNION ALL
        SELECT 'liabilities:unapplied', partner_id, currency, -unapplied, 0 FROM payment_balances
        UNION ALL
        SELECT control, partner_id, currency, 0, amount FROM journal_of_facts
        WHERE control IN ('assets:receivable:billed', 'liabilities:partner-credit',
          'liabilities:unapplied')) AS both_ways
  GROUP BY control, partner_id, currency
), differences AS (
  SELECT format('%s of %s', control, coalesce(partner_id, 'an unidentified payer')) AS subject,
         format('open items are %s %s; the journal has %s', items, currency, posted) AS detail
  FROM inspected WHERE items <> posted
)`;

/**
 * A replacement has the month and amounts of the void document and is issued after it. No e-mail of a void document is
 * held.
 */
export const VOIDS_AND_REPLACEMENTS = `inspected AS (
  SELECT d.number, v.voided_on, d.issued_on, later.number AS replaced_by, later.issued_on AS replaced_on,
         (d.partner_id, d.month, d.currency, d.arrangement, s.sign * d.spot_price, s.sign * d.partner_cut,
          s.sign * d.invoice_amount)
           IS DISTINCT FROM (later.partner_id, later.month, later.currency, later.arrangement,
             s.later * later.spot_price, s.later * later.partner_cut, s.later * later.invoice_amount) AS other,
         (SELECT count(*) FROM emails e WHERE e.document_id = d.document_id AND e.status = 'held') AS held,
         (SELECT count(*) FROM live_write_offs w WHERE w.document_id = d.document_id) AS written_off
  FROM documents d
  LEFT JOIN voids v ON v.document_id = d.document_id
  LEFT JOIN documents later ON later.replaces = d.document_id
  -- A different tax can turn an invoice into a credit note.
  CROSS JOIN LATERAL (
    SELECT document_sign(d.document) AS sign, document_sign(later.document) AS later) AS s
  WHERE (v.document_id IS NOT NULL OR later.document_id IS NOT NULL) AND ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject,
         format('issued on %s, void on %s, replaced by %s on %s', issued_on, coalesce(voided_on::text, 'no day'),
                coalesce(replaced_by, 'no document'), coalesce(replaced_on::text, 'no day')) AS detail
  FROM inspected
  WHERE voided_on IS NULL OR voided_on < issued_on OR held > 0 OR written_off > 0
     OR (replaced_by IS NOT NULL AND (other OR replaced_on < voided_on))
)`;

/**
 * Items carried over from the previous system add up to the control totals, bill no rows, and are entered on the day of
 * the cut-over. These items were recorded before any later month was closed.
 */
export const OPENINGS_AS_CONTROLLED = `items AS (
  SELECT o.opening_id, o.cut_over_on, d.number, d.entry_on,
         d.purpose = 'opening' AND d.arrangement = 'invoicing' AND d.entries = 0 AND d.enrollments = 0
           AND d.partner_cut = 0 AND d.credit_applied = 0 AND d.original_amount >= d.invoice_amount
           AND NOT EXISTS (SELECT FROM document_lines l WHERE l.document_id = d.document_id)
           AND NOT EXISTS (SELECT FROM document_pdfs w WHERE w.document_id = d.document_id) AS bills_nothing
  FROM documents d LEFT JOIN openings o ON o.opening_id = d.opening_id
  WHERE d.purpose = 'opening' OR d.opening_id IS NOT NULL
  UNION ALL
  SELECT o.opening_id, o.cut_over_on, p.opening_number, p.entry_on, p.source = 'opening' AND p.method <> 'link'
  FROM payments p LEFT JOIN openings o ON o.opening_id = p.opening_id
  WHERE p.source = 'opening' OR p.opening_id IS NOT NULL
), inspected AS (
  SELECT 'opening ' || o.opening_id AS subject,
         format('as of %s, after which %s was closed', o.cut_over_on, m.month) AS detail, m.month IS NOT NULL AS wrong
  FROM openings o
  LEFT JOIN LATERAL (
    SELECT min(c.month) AS month FROM closed_months c
    WHERE c.month > to_char(o.cut_over_on, 'YYYY-MM') COLLATE "C" AND c.log_no < o.log_no) AS m ON true
  UNION ALL
  SELECT format('opening %s in %s', t.opening_id, t.currency),
         format('control %s, invoices %s, credits %s, cash %s', t.control, t.invoices, t.credits, t.cash),
         t.control <> t.invoices - t.credits - t.cash
  FROM opening_totals t
  UNION ALL
  SELECT format('opening %s in %s', opening_id, currency),
         format('%s items, invoices %s, credits %s, cash %s; found %s, %s, %s, %s', items, invoices, credits, cash,
                items_found, invoices_found, credits_found, cash_found), true
  FROM opening_differences
  UNION ALL
  SELECT number, format('carried over as of %s, entered on %s', coalesce(cut_over_on::text, 'no day'), entry_on),
         entry_on IS DISTINCT FROM cut_over_on OR NOT bills_nothing
  FROM items
), differences AS (
  SELECT subject, detail FROM inspected WHERE wrong
)`;
