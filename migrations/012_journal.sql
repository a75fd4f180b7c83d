-- The journal: every fact as a balanced journal entry. Views derive the journal from the facts, and it is never stored.
--
--   journal_of_rows     ledger rows, two postings each, and three where we are the principal
--   journal_entries     documents, corrections and payments: one row per entry, with its debit and its credit
--   journal_of_facts    the entries of journal_entries as two postings each
--   journal             all postings: a debit is positive, a credit negative
--   journal_months      all postings, summed by month and account. Rows are grouped before they are posted, so that
--                       millions of rows are read only once. An account whose debits equal its credits has a sum of 0.
--
-- An entry's month never changes. The entry of a row has the month that the row is posted to. The entry of any other
-- fact has the month of its entry_on. A statement has no entry, because its money goes from the processor to the
-- partner.

-- The tax point of a month's document is the last day of its month. Other documents have none.
CREATE FUNCTION tax_point(purpose text, month text) RETURNS date STABLE LANGUAGE sql
RETURN CASE purpose WHEN 'month' THEN last_day(month) END;

-- A day while its books are open, and otherwise, or if there is none, the entry of the fact itself.
CREATE FUNCTION entry_while_open(day date, entry_on date, reopened_on date) RETURNS date STABLE LANGUAGE sql
RETURN CASE WHEN day IS NULL OR reopened_on > day THEN entry_on ELSE day END;

-- The days on which the tax of a document is entered, and taken out by its void. Both are the tax point while its books
-- are open. A replacement enters its tax on the day on which the void took out that of the replaced document, while the
-- books of that day are open. So the tax of a sale does not leave the books of a month and come back in a later one.
CREATE VIEW tax_days AS
SELECT d.document_id, p.tax_point,
       entry_while_open(entry_while_open(p.tax_point, r.entry_on, r.reopened_on), d.entry_on, d.reopened_on) AS taxed_on,
       CASE WHEN v.document_id IS NOT NULL THEN entry_while_open(p.tax_point, v.entry_on, v.reopened_on) END
         AS untaxed_on
FROM documents d
CROSS JOIN LATERAL (SELECT tax_point(d.purpose, d.month) AS tax_point) AS p
LEFT JOIN voids v ON v.document_id = d.document_id
LEFT JOIN voids r ON r.document_id = d.replaces AND p.tax_point IS NOT NULL;

-- A document's amounts by account, and its tax by country, category and rate (DE:standard:19). A positive amount is
-- debited to the account. Amounts of invoices are positive, and amounts of credit notes are negative. With tax, one amount
-- of a document can have the opposite sign of the total.
--
-- The tax of a document with a tax point is entered as unbilled (see `tax_days`), and the issue then bills the gross
-- amount. The tax of other documents is entered at their issue.
CREATE VIEW document_amounts AS
SELECT d.document_id, d.log_no, d.entry_on, d.issued_on, NULL::date AS untaxed_on, NULL::date AS tax_point, d.partner_id,
       d.currency, d.number, s.account,
       CASE d.purpose WHEN 'adjustment' THEN 'income:adjustments' WHEN 'missing_shares' THEN 'assets:receivable:processor'
                      WHEN 'opening' THEN 'equity:opening-balances' ELSE 'assets:receivable:unbilled' END AS billed,
       CASE WHEN d.purpose <> 'opening' THEN d.partner_id END AS billed_detail,
       document_sign(d.document) * s.amount AS amount
FROM documents d CROSS JOIN LATERAL (
  SELECT CASE d.document WHEN 'invoice' THEN 'assets:receivable:billed' ELSE 'liabilities:partner-credit' END AS account,
         CASE d.purpose WHEN 'month' THEN d.gross ELSE d.invoice_amount END AS amount) AS s
WHERE d.document <> 'statement' AND s.amount <> 0
UNION ALL
SELECT d.document_id, d.log_no, s.taxed_on, d.issued_on, s.untaxed_on, s.tax_point, d.partner_id, d.currency, d.number,
       CASE WHEN s.tax_point IS NOT NULL THEN 'assets:receivable:unbilled'
            WHEN d.document = 'invoice' THEN 'assets:receivable:billed' ELSE 'liabilities:partner-credit' END,
       'liabilities:tax', concat_ws(':', nullif(t.country, ''), t.category, trim_scale(t.rate)::text),
       document_sign(d.document) * t.tax
FROM document_taxes t JOIN documents d USING (document_id) JOIN tax_days s USING (document_id)
WHERE t.tax <> 0;

-- The payments that were recorded by hand without our bank account, with the first bank line that shows them. The move
-- to the line's account is entered on the first day whose books were open when the line was recorded.
CREATE VIEW placed_payments AS
SELECT DISTINCT ON (p.payment_id) p.payment_id, p.partner_id, p.currency, p.amount, p.reference, l.account,
       l.bank_booked_on, s.log_no,
       greatest(l.bank_booked_on, p.entry_on, (
         SELECT (month_after(max(c.month)) || '-01')::date FROM book_closes c WHERE c.log_no < s.log_no)) AS entry_on
FROM payments p JOIN payment_sources s USING (payment_id) JOIN bank_lines l USING (bank_line_id)
WHERE p.source = 'hand' AND p.account = '' AND p.method <> 'link'
ORDER BY p.payment_id, s.log_no;

-- Each SELECT below is one kind of fact, or all kinds of balance_changes, written in four lines:
--   the fact, its id, its entry date and its true date
--   debit: control account, the detail of its subaccount (a partner, our bank account), and the partner
--   credit: the same three columns
--   currency, amount, document number, reference, and the fact's number in the order of recording
-- A negative amount is posted the other way: its debit account is credited. No amount is zero, by the tables' constraints
-- or by a WHERE.
CREATE VIEW journal_entries (
  fact, log_no, entry_on, dated_on,
  debit, debit_detail, debit_partner,
  credit, credit_detail, credit_partner,
  currency, amount, document, reference, recorded
) AS

SELECT CASE WHEN d.tax_point IS NULL THEN 'document_issued' ELSE 'document_taxed' END, d.document_id,
       d.entry_on, coalesce(d.tax_point, d.issued_on),
       d.account, d.partner_id, d.partner_id,
       d.billed, d.billed_detail, d.partner_id,
       d.currency, d.amount, d.number, NULL, d.log_no
FROM document_amounts d

UNION ALL
SELECT CASE WHEN d.tax_point IS NULL THEN 'document_voided' ELSE 'document_untaxed' END, d.document_id,
       coalesce(d.untaxed_on, v.entry_on), coalesce(d.tax_point, v.voided_on),
       d.billed, d.billed_detail, d.partner_id,
       d.account, d.partner_id, d.partner_id,
       d.currency, d.amount, d.number, NULL, v.log_no
FROM voids v JOIN document_amounts d ON d.document_id = v.document_id

UNION ALL
-- All other changes of balances (010_payments.sql). Accounts of partners have a subaccount for each partner. Expense
-- accounts have no subaccounts.
SELECT c.fact, c.id, c.entry_on, c.dated_on,
       c.debit, CASE WHEN c.debit NOT LIKE 'expenses:%' THEN d.partner_id END, d.partner_id,
       c.credit, coalesce(c.bank_account, d.partner_id), d.partner_id,
       d.currency, -c.amount, d.number, coalesce(c.reference, p.reference, n.number), c.recorded
FROM balance_changes c JOIN documents d ON d.document_id = c.document_id
LEFT JOIN payments p ON p.payment_id = c.payment_id LEFT JOIN documents n ON n.document_id = c.credit_note_id
WHERE c.debit IS NOT NULL

UNION ALL
SELECT c.undone_by, c.id, c.undone_on, c.undone_dated_on,
       c.credit, coalesce(c.returned_to, c.bank_account, d.partner_id), d.partner_id,
       c.debit, CASE WHEN c.debit NOT LIKE 'expenses:%' THEN d.partner_id END, d.partner_id,
       d.currency, -c.amount, d.number, coalesce(c.reference, p.reference, n.number), c.undone_recorded
FROM balance_changes c JOIN documents d ON d.document_id = c.document_id
LEFT JOIN payments p ON p.payment_id = c.payment_id LEFT JOIN documents n ON n.document_id = c.credit_note_id
WHERE c.debit IS NOT NULL AND c.undone

UNION ALL
-- The money of a payment link is with the processor until a payout brings it to the bank. The bank's opening balance
-- includes an opening's money.
SELECT 'payment_received', p.payment_id, p.entry_on, p.received_on,
       CASE WHEN p.source = 'opening' THEN 'equity:opening-balances' WHEN p.method = 'link' THEN 'assets:processor'
            ELSE 'assets:bank' END,
       CASE WHEN p.source = 'opening' OR p.method = 'link' THEN NULL ELSE p.account END, p.partner_id,
       'liabilities:unapplied', p.partner_id, p.partner_id,
       p.currency, p.amount, NULL, p.reference, p.log_no
FROM payments p

UNION ALL
-- A payment was recorded by hand without its bank account, and a bank line showed the account later.
SELECT 'payment_placed', s.payment_id, s.entry_on, s.bank_booked_on,
       'assets:bank', s.account, s.partner_id,
       'assets:bank', NULL, s.partner_id,
       s.currency, s.amount, NULL, s.reference, s.log_no
FROM placed_payments s

UNION ALL
SELECT 'payment_assigned', g.payment_assignment_id, g.entry_on, g.assigned_on,
       'liabilities:unapplied', g.from_partner_id, g.from_partner_id,
       'liabilities:unapplied', g.partner_id, g.partner_id,
       p.currency, g.amount, NULL, p.reference, g.log_no
FROM payment_assignments g JOIN payments p USING (payment_id)
WHERE g.amount > 0

UNION ALL
SELECT 'payment_reversed', r.payment_reversal_id, r.entry_on, r.reversed_on,
       'liabilities:unapplied', r.partner_id, r.partner_id,
       -- Money that is not a customer's stays in the bank. Cash that an opening carried over by mistake never arrived.
       CASE WHEN r.kind = 'other' THEN r.booked_to
            WHEN p.source = 'opening' AND r.kind IN ('mistake', 'duplicate') THEN 'equity:opening-balances'
            WHEN p.method = 'link' THEN 'assets:processor' ELSE 'assets:bank' END,
       CASE WHEN r.kind = 'other' OR p.method = 'link' THEN NULL
            WHEN p.source = 'opening' AND r.kind IN ('mistake', 'duplicate') THEN NULL
            ELSE coalesce(l.account, p.account) END, r.partner_id,
       r.currency, r.amount, NULL, p.reference, r.log_no
FROM payment_reversals r JOIN payments p USING (payment_id)
LEFT JOIN bank_lines l ON l.bank_line_id = r.bank_line_id

UNION ALL
SELECT 'payment_reinstated', r.payment_reversal_id, i.entry_on, i.reinstated_on,
       CASE p.method WHEN 'link' THEN 'assets:processor' ELSE 'assets:bank' END,
       CASE p.method WHEN 'link' THEN NULL ELSE coalesce(m.account, p.account) END, i.partner_id,
       'liabilities:unapplied', i.partner_id, i.partner_id,
       r.currency, r.amount, NULL, p.reference, i.log_no
FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id) JOIN payments p USING (payment_id)
LEFT JOIN refund_matches m USING (payment_reversal_id)

UNION ALL
SELECT 'payout_received', o.payout_id, o.entry_on, o.received_on,
       'assets:bank', o.account, NULL,
       'assets:processor', NULL, NULL,
       o.currency, o.amount, NULL, l.bank_reference, o.log_no
FROM payouts o JOIN bank_lines l USING (bank_line_id)

UNION ALL
-- The parts of covered sales that later months earn leave income at the end of the month that billed them, and come back
-- at the end of the month that earns them. A reversal's parts are negative.
SELECT e.fact, s.log_no, last_day(e.month), last_day(e.month),
       'income:sales', s.policy_id, s.partner_id,
       'liabilities:unearned', s.partner_id, s.partner_id,
       s.currency, e.amount, NULL, NULL, s.log_no
FROM revenue_schedules s
CROSS JOIN LATERAL (VALUES ('sales_deferred', s.month, s.amount), ('sales_earned', s.release_month, -s.amount))
  AS e (fact, month, amount)
WHERE s.release_month > s.month

UNION ALL
-- A booking moves the line's money from the account of the previous booking, or from our bank account.
SELECT 'bank_booked', b.bank_booking_id, b.entry_on, b.booked_on,
       coalesce(b.booked_to, 'assets:bank'), CASE WHEN b.booked_to IS NULL THEN b.account END, NULL,
       coalesce(p.booked_to, 'assets:bank'), CASE WHEN p.booked_to IS NULL THEN b.account END, NULL,
       b.currency, -signed_amount(l), NULL, l.bank_reference, b.log_no
FROM bank_bookings b JOIN bank_lines l USING (bank_line_id)
LEFT JOIN bank_bookings p ON p.bank_booking_id = b.previous

UNION ALL
-- The processor's fees. Together with the payout itself, this entry removes the whole amount of the payout's payments
-- from the processor's account.
SELECT 'payout_settled', t.payout_id, t.entry_on, t.entry_on,
       'expenses:processor-fees', NULL, NULL,
       'assets:processor', NULL, NULL,
       o.currency, t.fees, NULL, l.bank_reference, t.log_no
FROM payout_settlements t JOIN payouts o USING (payout_id) JOIN bank_lines l USING (bank_line_id)
WHERE t.fees > 0

UNION ALL
-- A bank line showed from which account a refund was paid. Before, this account was unknown or was booked as a
-- different account.
SELECT 'refund_matched', m.refund_match_id, m.entry_on, m.paid_on,
       'assets:bank', coalesce(f.account, p.account), coalesce(f.partner_id, r.partner_id),
       'assets:bank', m.account, coalesce(f.partner_id, r.partner_id),
       m.currency, m.amount, d.number, coalesce(f.reference, p.reference), m.log_no
FROM refund_matches m
LEFT JOIN credit_refunds f ON f.credit_refund_id = m.credit_refund_id
LEFT JOIN documents d ON d.document_id = f.document_id
LEFT JOIN payment_reversals r ON r.payment_reversal_id = m.payment_reversal_id
LEFT JOIN payments p ON p.payment_id = r.payment_id
WHERE m.account <> coalesce(f.account, p.account)

UNION ALL
-- A transfer is posted against the expected amount of the partner's quotes. The part that pays an invoice is left out,
-- because that payment has its own entry. The amount of a reversed transfer is negative.
SELECT CASE WHEN r.amount > 0 THEN 'share_received' ELSE 'share_reversed' END, r.share_allocation_id, r.entry_on,
       r.occurred_on,
       'assets:processor', NULL, r.partner_id,
       'assets:receivable:processor', r.partner_id, r.partner_id,
       r.currency, r.amount - coalesce(p.amount, 0), NULL, m.id, r.log_no
FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
LEFT JOIN (SELECT share_allocation_id, sum(amount) AS amount FROM share_payments GROUP BY share_allocation_id) AS p
  USING (share_allocation_id)
WHERE r.amount <> coalesce(p.amount, 0)

UNION ALL
-- A conversion by the processor replaces the amount in the quote's currency by the amount in the account's currency.
-- equity:conversion keeps each currency balanced.
SELECT 'share_converted', r.share_allocation_id, r.entry_on, r.occurred_on,
       'equity:conversion', NULL, r.partner_id,
       'assets:processor', NULL, r.partner_id,
       s.currency, s.amount, NULL, m.id, r.log_no
FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
CROSS JOIN LATERAL (VALUES (r.currency, r.amount), (r.settled_currency, -r.settled_amount)) AS s (currency, amount)
WHERE r.currency <> r.settled_currency AND s.amount <> 0;

-- The entry dates of the facts that may be dated after the day on which they are recorded.
CREATE VIEW entry_dates (entry_on) AS
SELECT entry_on FROM balance_changes
UNION ALL SELECT undone_on FROM balance_changes WHERE undone
UNION ALL SELECT entry_on FROM cash_changes
UNION ALL SELECT entry_on FROM placed_payments
UNION ALL SELECT entry_on FROM payouts
UNION ALL SELECT entry_on FROM payout_settlements
UNION ALL SELECT entry_on FROM bank_bookings
UNION ALL SELECT entry_on FROM refund_matches
UNION ALL SELECT entry_on FROM share_allocations;

CREATE VIEW journal_of_facts AS
SELECT to_char(j.entry_on, 'YYYY-MM') COLLATE "C" AS month, j.entry_on, j.dated_on, j.fact, j.log_no, p.control,
       p.control || coalesce(':' || nullif(p.detail, ''), '') AS account, p.partner_id,
       CASE p.control WHEN 'income:sales' THEN p.detail END AS policy_id, j.currency, p.amount, j.document, j.reference
FROM journal_entries j
CROSS JOIN LATERAL (VALUES
  (j.debit, j.debit_detail, j.debit_partner, j.amount),
  (j.credit, j.credit_detail, j.credit_partner, -j.amount)) AS p (control, detail, partner_id, amount);

-- The postings of one row, or of a sum of rows. If we are the supplier, we sell to our partners at the invoice amount,
-- however the money is routed. The cut belongs to the partners. If we are the principal, we sell at the whole price,
-- and the cut is an expense. PostgreSQL inlines this function.
CREATE FUNCTION row_postings(text, text, text, numeric, numeric, numeric)
RETURNS TABLE (control text, detail text, amount numeric) STABLE LANGUAGE sql AS $$
  SELECT p.control, p.detail, p.amount
  FROM (VALUES
    (CASE $1 WHEN 'invoicing' THEN 'assets:receivable:unbilled' ELSE 'assets:receivable:processor' END, $2, $6),
    ('expenses:partner-cut', $2, $5),
    ('income:sales', $3, -CASE WHEN (SELECT we_are FROM presentation) = 'principal' THEN $4 ELSE $6 END)
  ) AS p (control, detail, amount)
  WHERE p.control <> 'expenses:partner-cut' OR (SELECT we_are FROM presentation) = 'principal'
$$;

-- A row is dated on the local day of its acceptance, which is in its own month. A late row is dated on the first day of
-- the month that it is posted to. (If clocks are set back at midnight, the first hour of a month still has the previous
-- day's date: see src/month.ts.)
CREATE VIEW journal_of_rows AS
SELECT e.posted_month AS month,
       CASE WHEN e.posted_month > e.month THEN (e.posted_month || '-01')::date
            ELSE greatest(day.dated_on, (e.month || '-01')::date) END AS entry_on,
       day.dated_on, e.kind AS fact, e.entry_id AS log_no, p.control,
       p.control || coalesce(':' || nullif(p.detail, ''), '') AS account, e.partner_id, e.policy_id, e.currency, p.amount,
       NULL::text AS document, own_id(e) AS reference
FROM ledger_rows e
CROSS JOIN LATERAL (SELECT (e.accepted_at AT TIME ZONE e.time_zone)::date AS dated_on) AS day
CROSS JOIN LATERAL row_postings(e.arrangement, e.partner_id, e.policy_id, e.spot_price, e.partner_cut, e.invoice_amount) AS p
WHERE p.amount <> 0;

CREATE VIEW journal AS
SELECT * FROM journal_of_rows UNION ALL SELECT * FROM journal_of_facts;

CREATE VIEW journal_months AS
SELECT e.month, p.control, p.control || coalesce(':' || nullif(p.detail, ''), '') AS account, e.partner_id, e.currency,
       sum(p.amount) AS amount
FROM (SELECT posted_month AS month, arrangement, partner_id, policy_id, currency, sum(spot_price) AS spot_price,
             sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount
      FROM ledger_rows GROUP BY posted_month, arrangement, partner_id, policy_id, currency) AS e
CROSS JOIN LATERAL row_postings(e.arrangement, e.partner_id, e.policy_id, e.spot_price, e.partner_cut, e.invoice_amount) AS p
GROUP BY e.month, p.control, p.detail, e.partner_id, e.currency
UNION ALL
SELECT month, control, account, partner_id, currency, sum(amount) AS amount
FROM journal_of_facts GROUP BY month, control, account, partner_id, currency;

-- The part of journal_months that comes from rows, for reports. For a closed month, it uses the lines of the month's
-- first documents, which bill all rows of the month. Only the rows of open months are therefore read. journal_months
-- reads all rows themselves, so that the two views can be compared.
CREATE VIEW journal_of_row_months AS
SELECT e.month, p.control, p.control || coalesce(':' || nullif(p.detail, ''), '') AS account, e.currency, p.amount
-- The cast d.month::text is needed, because a condition on the month is applied to both parts only if both have the
-- same type.
FROM (SELECT d.month::text AS month, d.arrangement, d.partner_id, l.policy_id, d.currency,
             sum(s.sign * l.spot_price) AS spot_price, sum(s.sign * l.partner_cut) AS partner_cut,
             sum(s.sign * l.invoice_amount) AS invoice_amount
      FROM documents d JOIN document_lines l USING (document_id)
      CROSS JOIN LATERAL (SELECT document_sign(d.document) AS sign) AS s
      WHERE d.purpose = 'month' AND d.replaces IS NULL
      GROUP BY d.month::text, d.arrangement, d.partner_id, l.policy_id, d.currency
      UNION ALL
      SELECT posted_month, arrangement, partner_id, policy_id, currency, sum(spot_price), sum(partner_cut),
             sum(invoice_amount)
      FROM ledger_rows WHERE posted_month > coalesce((SELECT max(month) FROM closed_months), '')
      GROUP BY posted_month, arrangement, partner_id, policy_id, currency) AS e
CROSS JOIN LATERAL row_postings(e.arrangement, e.partner_id, e.policy_id, e.spot_price, e.partner_cut, e.invoice_amount) AS p
WHERE p.amount <> 0;


-- The tasks that auditors started in the console, and the nightly verify, with their results. Working state. Only one
-- task of each kind runs at a time.
CREATE TABLE audit_tasks (
  task_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL CONSTRAINT audit_task_kind_known CHECK (kind IN ('verify', 'export')),
  input jsonb NOT NULL,
  asked_by bigint REFERENCES users,
  asked_at timestamptz NOT NULL,
  finished_at timestamptz,
  host text NOT NULL,
  -- While the task runs, this is updated every few seconds, by the database's clock.
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The progress so far, as the checks of a verify or the bytes of an export.
  progress bigint NOT NULL DEFAULT 0,
  result jsonb,
  problem text
);
CREATE UNIQUE INDEX audit_task_one_at_once ON audit_tasks (kind) WHERE finished_at IS NULL;
CREATE INDEX audit_tasks_latest ON audit_tasks (kind, task_id DESC);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'audit_tasks');
