/**
 * SQL of the checks. Each text is the inside of a WITH: `inspected` has a row for each thing looked at, `differences` a
 * subject and a detail for each that is not as it must be. `:month` is null for everything; `:after` is the month closed
 * before it.
 */

/** Whether a column is the month that is asked for; all are where everything is. */
export const inMonth = (column: string): string => `(:month::text IS NULL OR ${column} = :month)`;

/** What a CTE of differences has, as one value. */
export const listOf = (differences: string): string => `
  (SELECT coalesce(json_agg(json_build_object('subject', subject, 'detail', detail) ORDER BY subject), '[]')
   FROM ${differences})`;

/**
 * What one of several checks in a statement found, as a column: the CTE `name` has what was looked at, and
 * `name_differences` a subject and a detail for each that is not as it must be.
 */
export const findingOf = (name: string): string => `
  json_build_object('inspected', (SELECT count(*) FROM ${name}), 'differences', ${listOf(`${name}_differences`)}) AS ${name}`;

// The documents of months as they bill rows: the last of each chain of replacements. One that is void leaves a gap, and
// its rows unbilled, until it is replaced.
export const LAST_OF_CHAIN = `NOT EXISTS (SELECT FROM documents later WHERE later.replaces = d.document_id)`;

/** The rows that a closed month bills: those posted after the month before it (`:after`) and up to it. */
export const OF_MONTH = `(posted_month > :after AND posted_month <= :month)`;

/**
 * Requotes and reversals belong to a quote of the same policy and currency and never take its sums below zero; no quote
 * is accepted twice. Only the quotes that have such rows, `changed`, are summed, one in twelve, and only those that may
 * have been accepted twice, `suspected`, counted. Summing every quote took 3.5 µs a row, this takes 2. `rows` says whose
 * quotes are looked at.
 */
const rowsWithinTheirQuotes = (rows: string, changed: string, suspected: string) => `quotes AS MATERIALIZED (
  SELECT partner_id, quote_id, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
         sum(invoice_amount) AS invoice_amount, count(*) FILTER (WHERE kind = 'quote_accepted') AS acceptances,
         min(policy_id) = max(policy_id) AS one_policy, min(currency) = max(currency) AS one_currency,
         coalesce(bool_or(kind = 'quote_accepted' AND ${rows}), false) AS accepted_here
  FROM ledger_rows WHERE (partner_id, quote_id) IN (${changed})
  GROUP BY partner_id, quote_id
), suspected AS MATERIALIZED (
  ${suspected}
), repeated AS (
  SELECT partner_id, quote_id, count(*) AS acceptances FROM ledger_rows
  WHERE kind = 'quote_accepted' AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM suspected)
  GROUP BY partner_id, quote_id HAVING count(*) > 1
  UNION
  SELECT partner_id, quote_id, acceptances FROM quotes WHERE acceptances > 1
), inspected AS (
  SELECT FROM ledger_rows WHERE kind = 'quote_accepted' AND ${rows} UNION ALL SELECT FROM quotes WHERE NOT accepted_here
), differences AS (
  SELECT format('quote %s of %s', quote_id, partner_id) AS subject,
         format('%s acceptance(s), %s, %s, sums %s %s %s', acceptances,
                CASE WHEN one_policy THEN 'one policy' ELSE 'several policies' END,
                CASE WHEN one_currency THEN 'one currency' ELSE 'several currencies' END,
                spot_price, partner_cut, invoice_amount) AS detail
  FROM quotes
  WHERE acceptances = 0 OR NOT one_policy OR NOT one_currency OR least(spot_price, partner_cut, invoice_amount) < 0
  UNION ALL
  SELECT format('quote %s of %s', quote_id, partner_id), format('is accepted %s times', acceptances) FROM repeated
)`;

/** Acceptances that have the hash of another one. Eight bytes for a quote are grouped three times as fast as its ids. */
function alike(rows: string): string {
  const hash = `hash_record_extended(ROW(partner_id, quote_id), 0)`;
  const acceptances = `FROM ledger_rows WHERE kind = 'quote_accepted' AND ${rows}`;
  return `SELECT partner_id, quote_id ${acceptances}
    AND ${hash} IN (SELECT ${hash} ${acceptances} GROUP BY 1 HAVING count(*) > 1)`;
}

export const ROWS_WITHIN_THEIR_QUOTES = rowsWithinTheirQuotes(
  'true',
  `SELECT partner_id, quote_id FROM ledger_rows WHERE kind <> 'quote_accepted'`,
  alike('true'),
);

/**
 * The same of the quotes that a month has a row of, with their rows of any month. The rows of other months pass by once,
 * half a microsecond each; to look for each quote of the month by its key took 14.
 */
export const ROWS_OF_MONTH_WITHIN_THEIR_QUOTES = rowsWithinTheirQuotes(
  OF_MONTH,
  `SELECT partner_id, quote_id FROM ledger_rows
   WHERE kind <> 'quote_accepted' AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM ledger_rows WHERE ${OF_MONTH})`,
  `${alike(OF_MONTH)}
  UNION ALL
  SELECT partner_id, quote_id FROM ledger_rows
  WHERE kind = 'quote_accepted' AND NOT ${OF_MONTH}
    AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM ledger_rows WHERE kind = 'quote_accepted' AND ${OF_MONTH})`,
);

/** What was accepted over HTTP is in the ledger as it was offered: same partner, ids, policy, currency and amounts. */
export const ACCEPTANCES_ARE_THEIR_ROWS = `accepted AS (
  SELECT a.partner_id, a.posted_month, a.entry_id, 'quote_accepted' AS kind, a.quote_id, NULL AS requote_id, q.policy_id,
         q.currency, q.spot_price, q.partner_cut, q.invoice_amount
  FROM quote_acceptances a JOIN quotes q ON q.quote_id = a.quote_id
  UNION ALL
  SELECT a.partner_id, a.posted_month, a.entry_id, 'requote_accepted', a.quote_id, a.requote_id, q.policy_id,
         q.currency, r.spot_price - r.accepted_spot_price, r.partner_cut - r.accepted_partner_cut,
         r.invoice_amount - r.accepted_invoice_amount
  FROM requote_acceptances a
  JOIN requotes r ON r.requote_id = a.requote_id
  JOIN quotes q ON q.quote_id = a.quote_id
), inspected AS (
  SELECT * FROM accepted WHERE ${inMonth('posted_month')}
), differences AS (
  SELECT format('%s of %s', coalesce(a.requote_id, a.quote_id), a.partner_id) AS subject,
         format('accepted at %s = %s + %s %s, in the ledger %s', a.spot_price, a.partner_cut, a.invoice_amount, a.currency,
                coalesce(format('%s = %s + %s %s', e.spot_price, e.partner_cut, e.invoice_amount, e.currency), 'nothing')) AS detail
  FROM inspected a
  LEFT JOIN ledger_rows e ON e.partner_id = a.partner_id AND e.posted_month = a.posted_month AND e.entry_id = a.entry_id
  WHERE (e.kind, e.quote_id, e.requote_id, e.policy_id, e.currency, e.spot_price, e.partner_cut, e.invoice_amount)
    IS DISTINCT FROM
        (a.kind, a.quote_id, a.requote_id, a.policy_id, a.currency, a.spot_price, a.partner_cut, a.invoice_amount)
)`;

const APPEND_ONLY = [
  'installation',
  'closed_months',
  'ledger_rows',
  'logos',
  'issuer_versions',
  'documents',
  'document_lines',
  'credit_applications',
  'payment_links',
  'instruction_versions',
  'document_pdfs',
  'payment_link_intents',
  'payment_link_attempts',
  'payment_link_objects',
  'payment_link_closings',
  'audit_events',
  'voids',
  'credit_releases',
  'write_offs',
  'holds',
  'hold_releases',
  'bank_files',
  'bank_statements',
  'bank_lines',
  'bank_statement_lines',
  'bank_line_outcomes',
  'payments',
  'payment_sources',
  'payment_assignments',
  'payment_applications',
  'payment_unapplications',
  'payment_reversals',
  'payment_reinstatements',
  'payment_suggestions',
  'small_differences',
  'payouts',
  'payout_settlements',
  'payout_payments',
  'credit_refunds',
  'credit_refund_returns',
  'processor_events',
  'processor_event_outcomes',
  'disputes',
  'dispute_outcomes',
  'reminders',
  'api_clients',
  'client_secrets',
  'client_revocations',
  'signing_keys',
  'quotes',
  'quote_acceptances',
  'requotes',
  'requote_acceptances',
  'idempotency_keys',
  'seals',
  'settlement_files',
  'settlement_lines',
  'balance_transactions',
  'processor_readings',
  'share_allocations',
  'reversal_evidence',
  'missing_shares',
  'share_payments',
  'payment_exception_closings',
  'payout_contents',
  'account_payouts',
];

/** The triggers stand and are enabled, and the app's role, where there is one, may only read and add. */
export const APPEND_ONLY_GUARDS = `inspected AS (
  SELECT unnest(ARRAY[${APPEND_ONLY.map((table) => `'${table}'`).join(', ')}])::regclass AS guarded
), guards AS (
  SELECT guarded,
         (SELECT count(*) FROM pg_trigger t WHERE t.tgrelid = guarded AND t.tgenabled IN ('O', 'A')
            AND t.tgname IN ('append_only_rows', 'append_only_table')) AS triggers,
         (SELECT string_agg(privilege, ', ') FROM unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS privilege
          WHERE EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app')
            AND has_table_privilege('reckoner_app', guarded, privilege)) AS privileges
  FROM inspected
), differences AS (
  SELECT guarded::text AS subject,
         format('%s of 2 guarding triggers are enabled; the app may %s', triggers, coalesce(privileges, 'change nothing')) AS detail
  FROM guards WHERE triggers <> 2 OR privileges IS NOT NULL
)`;

/** Closed months are one chain without a hole, and none is closed before the one that it follows. */
export const MONTHS_FOLLOW = `inspected AS (
  SELECT m.*, p.closed_at AS previous_closed_at, p.month AS found_previous, min(m.month) OVER () AS first_month
  FROM closed_months m LEFT JOIN closed_months p ON p.month = m.previous
), differences AS (
  SELECT month AS subject, format('follows %s', coalesce(previous, 'nothing')) AS detail
  FROM inspected
  WHERE CASE WHEN month = first_month THEN previous IS NOT NULL
             ELSE found_previous IS NULL OR month <> month_after(found_previous) END
)`;

export const ONE_LIVE_DOCUMENT = `inspected AS (
  SELECT partner_id, month, currency, arrangement, count(*) AS documents, string_agg(number, ', ' ORDER BY number) AS numbers
  FROM live_documents d WHERE purpose = 'month' AND ${inMonth('month')}
  GROUP BY partner_id, month, currency, arrangement
), differences AS (
  SELECT format('%s for %s in %s', partner_id, month, currency) AS subject,
         format('has %s live documents: %s', documents, numbers) AS detail
  FROM inspected WHERE documents > 1
)`;

/** Each series runs from 1 without a gap, its dates never go back, and its year and kind are those of its documents. */
export const NUMBERS_WITHOUT_GAPS = `inspected AS (
  SELECT number, series, sequence, issued_on,
         lag(sequence, 1, 0) OVER in_order AS previous_sequence, lag(issued_on) OVER in_order AS previous_issued_on,
         series = document_series(document, issued_on) AS named_right
  FROM documents WINDOW in_order AS (PARTITION BY series ORDER BY sequence)
), differences AS (
  SELECT number AS subject,
         format('follows number %s of its series, dated %s', previous_sequence, coalesce(previous_issued_on::text, 'nothing')) AS detail
  FROM inspected WHERE sequence <> previous_sequence + 1 OR issued_on < previous_issued_on OR NOT named_right
)`;

/** A document's header is the sum of its lines, its dates follow its terms, and its credit is within its amount. */
export const DOCUMENTS_ADD_UP = `inspected AS (
  SELECT d.number, d.spot_price, d.partner_cut, d.invoice_amount, d.credit_applied, d.due_on, d.issued_on, d.terms_days,
         d.document, l.spot_price AS line_spot_price, l.partner_cut AS line_partner_cut,
         l.invoice_amount AS line_invoice_amount, l.entries AS line_entries, d.entries, replaced.due_on AS replaced_due_on
  FROM documents d
  LEFT JOIN documents replaced ON replaced.document_id = d.replaces
  LEFT JOIN LATERAL (
    SELECT sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount,
           sum(count) AS entries
    FROM document_lines l WHERE l.document_id = d.document_id) AS l ON true
  WHERE d.purpose = 'month' AND ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject,
         format('header %s %s %s of %s rows, lines %s %s %s of %s', spot_price, partner_cut, invoice_amount, entries,
                line_spot_price, line_partner_cut, line_invoice_amount, line_entries) AS detail
  FROM inspected
  WHERE (spot_price, partner_cut, invoice_amount, entries)
        IS DISTINCT FROM (line_spot_price, line_partner_cut, line_invoice_amount, line_entries)
     OR spot_price <> partner_cut + invoice_amount
     OR (due_on <> issued_on + terms_days AND due_on IS DISTINCT FROM replaced_due_on)
     OR credit_applied < 0 OR (credit_applied > 0 AND credit_applied > invoice_amount)
)`;

/**
 * Credit used is credit given: of each note no more than its amount, of each invoice what it was issued with. A void
 * document uses none and gives none.
 */
export const CREDIT_TIES = `used AS (
  SELECT a.*, r.credit_application_id IS NOT NULL AS released
  FROM credit_applications a LEFT JOIN credit_releases r USING (credit_application_id)
), notes AS (
  SELECT d.number, coalesce(sum(a.amount), 0) AS applied, CASE WHEN v.document_id IS NULL THEN d.invoice_amount ELSE 0 END AS most, 0 AS least
  FROM documents d LEFT JOIN voids v ON v.document_id = d.document_id
  LEFT JOIN used a ON a.credit_note_id = d.document_id AND NOT a.released
  WHERE d.document = 'credit_note' GROUP BY d.document_id, v.document_id
), issued_with AS (
  SELECT d.number, coalesce(sum(a.amount), 0) AS applied, d.credit_applied AS most, d.credit_applied AS least
  FROM documents d LEFT JOIN used a ON a.invoice_id = d.document_id AND a.at_issue
  WHERE d.document <> 'credit_note' GROUP BY d.document_id
), given_back AS (
  SELECT d.number || ', void,' AS number, coalesce(sum(a.amount), 0) AS applied, 0 AS most, 0 AS least
  FROM documents d JOIN voids v ON v.document_id = d.document_id
  LEFT JOIN used a ON a.invoice_id = d.document_id AND NOT a.released
  GROUP BY d.document_id
), strangers AS (
  SELECT n.number || ' on ' || i.number AS number, a.amount AS applied, 0 AS most, 0 AS least
  FROM used a
  JOIN documents n ON n.document_id = a.credit_note_id JOIN documents i ON i.document_id = a.invoice_id
  WHERE (n.document, i.document, n.partner_id, n.currency) IS DISTINCT FROM ('credit_note', 'invoice', i.partner_id, i.currency)
), released_by AS (
  SELECT i.number || ', given back,' AS number, a.amount AS applied,
         CASE WHEN v.document_id = a.invoice_id THEN a.amount ELSE 0 END AS most, 0 AS least
  FROM credit_releases r
  JOIN credit_applications a USING (credit_application_id) JOIN documents i ON i.document_id = a.invoice_id
  LEFT JOIN voids v ON v.document_id = r.document_id
), inspected AS (
  SELECT * FROM notes UNION ALL SELECT * FROM issued_with WHERE most <> 0 OR applied <> 0
  UNION ALL SELECT * FROM given_back UNION ALL SELECT * FROM strangers UNION ALL SELECT * FROM released_by
), differences AS (
  SELECT number AS subject, format('%s of credit %s is applied', applied, most) AS detail
  FROM inspected WHERE applied > most OR applied < least
)`;

/** Nothing is owed below zero, and credit notes against an invoice never exceed it, whatever it replaced. */
export const BALANCES_WITHIN_DOCUMENTS = `RECURSIVE chains AS (
  SELECT document_id, document_id AS head FROM documents d WHERE ${LAST_OF_CHAIN} AND d.document = 'invoice'
  UNION ALL
  SELECT d.replaces, c.head FROM chains c JOIN documents d ON d.document_id = c.document_id WHERE d.replaces IS NOT NULL
), credits AS (
  SELECT c.head AS document_id,
         coalesce(sum((SELECT sum(n.invoice_amount) FROM live_documents n WHERE n.credits = c.document_id)), 0) AS amount
  FROM chains c GROUP BY c.head
), inspected AS (
  SELECT d.number, d.invoice_amount, b.*, coalesce(c.amount, 0) AS credits
  FROM documents d JOIN document_balances b USING (document_id) LEFT JOIN credits c USING (document_id)
  WHERE ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject, format('amount due %s, credited %s, paid %s, balance %s; credit notes of %s against %s',
                                   amount_due, credited, amount_paid, balance, credits, invoice_amount) AS detail
  FROM inspected
  WHERE balance < 0 OR credited < 0 OR amount_paid < 0 OR (credits > 0 AND credits > invoice_amount)
     OR (status <> 'void' AND balance <> amount_due - credited - amount_paid)
)`;

/**
 * The accounts that are kept twice tie, by partner and currency: open invoices are receivable, open credit notes credit,
 * cash that pays nothing unapplied. Over everything, whatever month is asked for.
 */
export const ACCOUNTS_TIE = `inspected AS (
  SELECT control, partner_id, currency, sum(items) AS items, sum(posted) AS posted
  FROM (SELECT CASE d.document WHEN 'invoice' THEN 'assets:receivable:billed' ELSE 'liabilities:partner-credit' END AS control,
               d.partner_id, d.currency, CASE d.document WHEN 'invoice' THEN b.balance ELSE -b.balance END AS items,
               0 AS posted
        FROM documents d JOIN document_balances b USING (document_id) WHERE d.document <> 'statement'
        UNION ALL
        SELECT 'liabilities:unapplied', partner_id, currency, -unapplied, 0 FROM payment_balances
        UNION ALL
        SELECT control, partner_id, currency, 0, amount FROM journal_of_facts
        WHERE control IN ('assets:receivable:billed', 'liabilities:partner-credit', 'liabilities:unapplied')) AS both_ways
  GROUP BY control, partner_id, currency
), differences AS (
  SELECT format('%s of %s', control, coalesce(partner_id, 'a payer nobody knows')) AS subject,
         format('open items are %s %s, the journal has %s', items, currency, posted) AS detail
  FROM inspected WHERE items <> posted
)`;

/** A replacement stands for what its void one stood for and came after it; nothing of a void document is on its way. */
export const VOIDS_AND_REPLACEMENTS = `inspected AS (
  SELECT d.number, v.voided_on, d.issued_on, later.number AS replaced_by, later.issued_on AS replaced_on,
         (d.partner_id, d.month, d.currency, d.arrangement, d.document, d.spot_price, d.partner_cut, d.invoice_amount)
           IS DISTINCT FROM (later.partner_id, later.month, later.currency, later.arrangement, later.document,
                             later.spot_price, later.partner_cut, later.invoice_amount) AS other,
         (SELECT count(*) FROM emails e WHERE e.document_id = d.document_id AND e.status = 'held') AS held,
         (SELECT count(*) FROM write_offs w WHERE w.document_id = d.document_id) AS written_off
  FROM documents d
  LEFT JOIN voids v ON v.document_id = d.document_id
  LEFT JOIN documents later ON later.replaces = d.document_id
  WHERE (v.document_id IS NOT NULL OR later.document_id IS NOT NULL) AND ${inMonth('d.month')}
), differences AS (
  SELECT number AS subject,
         format('issued %s, void %s, replaced by %s on %s', issued_on, coalesce(voided_on::text, 'never'),
                coalesce(replaced_by, 'nothing'), replaced_on) AS detail
  FROM inspected
  WHERE voided_on IS NULL OR voided_on < issued_on OR held > 0 OR written_off > 0
     OR (replaced_by IS NOT NULL AND (other OR replaced_on < voided_on))
)`;

/**
 * An e-mail that was sent has a time, recipients and the hash of what was sent; one in flight, or to be repeated, has its
 * bytes. The log has each attempt that ended.
 */
export const EMAILS_TELL_THEIR_STATE = `inspected AS (
  SELECT e.*, coalesce(d.number, concat_ws(' ', e.partner_id, e.month, e.day)) AS about,
         (SELECT count(*) FROM email_attempts a WHERE a.email_id = e.email_id) AS logged
  FROM emails e LEFT JOIN documents d USING (document_id)
  WHERE ${inMonth('coalesce(d.month, e.month)')}
), differences AS (
  SELECT format('e-mail %s, %s %s', email_id, kind, about) AS subject, format('is %s: %s', status, coalesce(reason, 'no reason')) AS detail
  FROM inspected
  WHERE CASE status
          WHEN 'sent' THEN sent_at IS NULL OR message_sha256 IS NULL OR coalesce(cardinality(recipients), 0) = 0
                           OR (document_id IS NOT NULL
                               AND NOT EXISTS (SELECT FROM document_pdfs w WHERE w.document_id = inspected.document_id))
          WHEN 'sending' THEN message IS NULL
          WHEN 'held' THEN reason IS NULL
          ELSE sent_at IS NOT NULL END
     OR unclear_attempts > attempts
     OR logged <> attempts - CASE status WHEN 'sending' THEN 1 ELSE 0 END
     OR (message IS NOT NULL AND message_sha256 IS DISTINCT FROM encode(sha256(message), 'hex'))
)`;

/**
 * Links at a processor: one is open at most, over no more than its document's amount and in its currency; what was
 * switched off had been made, what was refused had not, and each was attempted under keys counted from 1.
 */
export const PAYMENT_LINKS_TELL_THEIR_STATE = `inspected AS (
  SELECT d.number, d.currency AS document_currency, d.invoice_amount - d.credit_applied AS amount_due, i.*,
         o.provider_id, c.why, v.document_id IS NOT NULL AS void,
         count(*) FILTER (WHERE c.version IS NULL) OVER (PARTITION BY i.document_id) AS open_links,
         (SELECT count(*) FROM payment_link_attempts a WHERE (a.document_id, a.version) = (i.document_id, i.version)) AS attempts,
         (SELECT max(attempt) FROM payment_link_attempts a WHERE (a.document_id, a.version) = (i.document_id, i.version)) AS last_attempt
  FROM payment_link_intents i JOIN documents d ON d.document_id = i.document_id
  LEFT JOIN payment_link_objects o ON (o.document_id, o.version) = (i.document_id, i.version)
  LEFT JOIN payment_link_closings c ON (c.document_id, c.version) = (i.document_id, i.version)
  LEFT JOIN voids v ON v.document_id = i.document_id
  WHERE ${inMonth('d.month')}
), differences AS (
  SELECT format('link %s of %s', version, number) AS subject,
         format('over %s %s of %s %s due, %s open, %s of %s attempts, %s, closed: %s', amount, currency, amount_due,
                document_currency, open_links, attempts, coalesce(last_attempt, 0), coalesce(provider_id, 'not made'),
                coalesce(why, 'no')) AS detail
  FROM inspected
  WHERE open_links > 1 OR amount > amount_due OR currency <> document_currency OR last_attempt IS DISTINCT FROM attempts
     OR (why IN ('refused', 'not_made') AND provider_id IS NOT NULL)
     OR (why IN ('void', 'paid', 'amount_changed', 'used_up') AND provider_id IS NULL)
     OR (why = 'void' AND NOT void)
)`;

/** Balance transactions add up, those from a settlement file agree with their line, and no share exceeds its own. */
export const BALANCE_TRANSACTIONS_ADD_UP = `inspected AS (
  SELECT m.balance_transaction_id, m.account, m.id, m.amount, m.fee, m.net, m.currency, m.payload,
         l.amount AS line_amount, l.currency AS line_currency, coalesce(r.amount, 0) AS matched, r.currencies
  FROM balance_transactions m
  LEFT JOIN settlement_lines l ON m.reported_by = 'settlement_file' AND m.id = 'line:' || l.settlement_line_id
  LEFT JOIN LATERAL (
    SELECT sum(amount) AS amount, count(*) FILTER (WHERE currency <> m.currency) AS currencies FROM share_allocations r
    WHERE r.balance_transaction_id = m.balance_transaction_id) AS r ON true
  WHERE ${inMonth("to_char(m.moved_at, 'YYYY-MM')")}
), differences AS (
  SELECT format('balance transaction %s of %s', id, account) AS subject,
         format('%s less %s is %s %s; settlement line %s, matched to %s', amount, fee, net, currency,
                coalesce(line_amount::text, 'none'), matched) AS detail
  FROM inspected
  WHERE net <> amount - fee OR (line_amount, line_currency) <> (net, currency) OR currencies > 0
     OR (matched <> 0 AND sign(matched) <> sign(net)) OR abs(matched) > abs(net)
)`;

/**
 * An allocated balance transaction comes from the source of its account in its month, and no other account has the same
 * id and payment allocated. So nothing counts twice. Over everything, whatever month is asked for.
 */
export const BALANCE_TRANSACTIONS_COUNTED_ONCE = `inspected AS MATERIALIZED (
  SELECT t.*, CASE WHEN t.account IN (
           SELECT connected_account_id FROM partner_arrangements WHERE balance_transactions_from = 'settlement_file')
         THEN account_source(t.account, to_char(t.moved_at AT TIME ZONE 'UTC', 'YYYY-MM'))
         ELSE 'processor' END AS source,
         count(*) OVER (PARTITION BY t.id, t.payment) > 1 AS repeated
  FROM balance_transactions t
  WHERE (SELECT sum(amount) FROM share_allocations s WHERE s.balance_transaction_id = t.balance_transaction_id) <> 0
), differences AS (
  SELECT format('balance transaction %s of %s', id, account) AS subject,
         CASE WHEN reported_by <> source THEN format('reported by %s, but the source of its month is %s', reported_by, source)
              ELSE format('payment %s is allocated for another account too', payment) END AS detail
  FROM inspected WHERE reported_by <> source OR (repeated AND payment IS NOT NULL)
)`;

/**
 * A share is of an accepted quote with a row that is routed, of a partner whose account it came to, and what was pulled
 * back and reversed in the ledger is a reversal of just that quote and amount, in a statement and not on an invoice.
 */
export const SHARES_ARE_OF_THEIR_QUOTES = `inspected AS (
  SELECT r.share_allocation_id, r.partner_id, r.quote_id, r.currency, r.amount,
         e.kind, e.quote_id AS entry_quote, e.currency AS entry_currency,
         coalesce(e.arrangement = 'connected_account', false) OR EXISTS (
           SELECT FROM ledger_rows o WHERE o.partner_id = r.partner_id AND o.quote_id = r.quote_id
             AND o.kind <> 'quote_accepted' AND o.arrangement = 'connected_account') AS to_be_routed,
         EXISTS (SELECT FROM partner_arrangements a JOIN balance_transactions m ON m.account = a.connected_account_id
                 WHERE m.balance_transaction_id = r.balance_transaction_id AND a.partner_id = r.partner_id) AS own_account,
         v.share_allocation_id IS NOT NULL AS reversed, x.kind AS reversal_kind, x.quote_id AS reversal_quote,
         x.invoice_amount AS reversal_amount, x.arrangement AS reversal_arrangement
  FROM share_allocations r
  LEFT JOIN ledger_rows e ON e.partner_id = r.partner_id AND e.posted_month = r.posted_month AND e.entry_id = r.entry_id
  LEFT JOIN reversal_evidence v USING (share_allocation_id)
  LEFT JOIN ledger_rows x ON x.partner_id = v.partner_id AND x.posted_month = v.posted_month AND x.entry_id = v.entry_id
  WHERE ${inMonth('r.posted_month')}
), differences AS (
  SELECT format('share %s of quote %s of %s', share_allocation_id, quote_id, partner_id) AS subject,
         format('%s %s, of a %s of quote %s%s%s', amount, currency, coalesce(kind, 'row that is not there'),
                coalesce(entry_quote, 'none'), CASE WHEN NOT to_be_routed THEN ', all invoiced' END,
                CASE WHEN reversed THEN format(', reversed by %s of quote %s', coalesce(reversal_amount::text, 'nothing'),
                                               coalesce(reversal_quote, 'none')) END) AS detail
  FROM inspected
  WHERE kind IS DISTINCT FROM 'quote_accepted'
     OR (entry_quote, entry_currency) IS DISTINCT FROM (quote_id, currency) OR NOT own_account OR NOT to_be_routed
     OR (reversed AND (reversal_kind, reversal_quote, reversal_amount, reversal_arrangement)
          IS DISTINCT FROM ('reversal', quote_id, amount, 'connected_account'))
)`;

/** An invoice for missing shares is the sum of what its quotes lack, and bills no quote beyond what was accepted of it. */
export const MISSING_SHARES_ARE_BILLED = `billed AS (
  SELECT document_id, min(month) AS month, sum(amount) AS amount FROM missing_shares GROUP BY document_id
), documents_of AS (
  SELECT coalesce(d.number, format('document %s, which is not there,', document_id)) AS subject,
         d.invoice_amount AS stated, coalesce(b.amount, 0) AS summed, l.amount AS lines
  FROM documents d
  FULL JOIN billed b USING (document_id)
  CROSS JOIN LATERAL (SELECT coalesce(sum(invoice_amount), 0) AS amount FROM document_lines l WHERE l.document_id = d.document_id) AS l
  WHERE (d.purpose = 'missing_shares' OR b.document_id IS NOT NULL) AND ${inMonth('coalesce(d.month, b.month)')}
), quotes AS (
  SELECT format('quote %s of %s', b.quote_id, b.partner_id) AS subject, sum(b.amount) AS billed,
         (SELECT coalesce(sum(e.invoice_amount), 0) FROM ledger_rows e
          WHERE e.partner_id = b.partner_id AND e.quote_id = b.quote_id AND e.currency = b.currency
            AND e.kind <> 'reversal' AND e.arrangement = 'connected_account') AS accepted
  FROM live_missing_shares b
  WHERE ${inMonth('b.month')}
  GROUP BY b.partner_id, b.quote_id, b.currency
), inspected AS (
  SELECT subject FROM documents_of UNION ALL SELECT subject FROM quotes
), differences AS (
  SELECT subject, format('says %s where its quotes lack %s, and its lines %s', coalesce(stated::text, 'nothing'), summed, lines) AS detail
  FROM documents_of WHERE stated IS DISTINCT FROM summed OR stated IS DISTINCT FROM lines
  UNION ALL
  SELECT subject, format('%s is billed as missing of %s accepted', billed, accepted) FROM quotes WHERE billed > accepted
)`;

/** What of a share pays an invoice is a payment of that partner and amount, and what takes it back a reversal. */
export const SHARES_PAY_THEIR_INVOICES = `inspected AS (
  SELECT s.share_allocation_id, r.partner_id, r.quote_id, r.currency, r.amount AS share, s.amount, p.payment_id, p.identity,
         t.identity AS taken_as,
         p.partner_id AS payer, p.amount AS paid, p.account AS paid_to, m.account, t.amount AS taken,
         t.payment_id AS taken_of, i.payment_reversal_id IS NOT NULL AS given_back,
         sum(s.amount) OVER (PARTITION BY s.share_allocation_id) AS of_share,
         EXISTS (SELECT FROM missing_shares b WHERE b.partner_id = r.partner_id AND b.quote_id = r.quote_id) AS billed
  FROM share_payments s LEFT JOIN share_allocations r USING (share_allocation_id) LEFT JOIN balance_transactions m USING (balance_transaction_id)
  JOIN payments p ON p.payment_id = s.payment_id
  LEFT JOIN payment_reversals t ON t.payment_reversal_id = s.payment_reversal_id
  LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = s.payment_reversal_id
  WHERE r.share_allocation_id IS NULL OR ${inMonth(`to_char(r.entry_on, 'YYYY-MM')`)}
), differences AS (
  SELECT format('payment %s', p.payment_id) AS subject, format('came as %s, and no share says so', p.identity) AS detail
  FROM payments p
  WHERE p.identity ~ '^processor[|].+[|]share [0-9]+$'
    AND NOT EXISTS (SELECT FROM share_payments s WHERE s.payment_id = p.payment_id AND s.payment_reversal_id IS NULL)
  UNION ALL
  SELECT format('reversal %s', t.payment_reversal_id), format('was taken back as %s, and no share says so', t.identity)
  FROM payment_reversals t
  WHERE t.identity ~ '^processor[|].+[|]share [0-9]+[|][0-9]+$'
    AND NOT EXISTS (SELECT FROM share_payments s WHERE s.payment_reversal_id = t.payment_reversal_id AND s.amount < 0)
  UNION ALL
  SELECT format('share %s of quote %s of %s', share_allocation_id, quote_id, partner_id) AS subject,
         format('%s of %s %s is payment %s over %s of %s, %s taken back', amount, share, currency, payment_id, paid,
                coalesce(payer, 'nobody'), coalesce(taken, 0)) AS detail
  FROM inspected
  WHERE NOT billed OR payer IS DISTINCT FROM partner_id OR paid_to IS DISTINCT FROM account
     OR sign(amount) <> sign(share) OR abs(of_share) > abs(share)
     OR CASE WHEN taken IS NULL THEN paid <> amount OR identity NOT LIKE '%|share ' || share_allocation_id
             WHEN amount < 0 THEN (taken, taken_of) <> (-amount, payment_id)
                                  OR taken_as NOT LIKE '%|share ' || share_allocation_id || '|' || payment_id
             ELSE (taken, taken_of) <> (amount, payment_id) OR NOT given_back END
)`;
