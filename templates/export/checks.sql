-- The rules of the ledger. Each query returns what is wrong: the first column says where. No row: the rule holds.
--
-- They run in SQLite (3.40 or later), DuckDB and PostgreSQL over one table for each kind of fact in log.tsv, with the
-- columns of its FORM line. Amounts are whole numbers of the currency's smallest unit, rates millionths (19 % is 190000),
-- days are numbers since 1970-01-01, flags 1 or 0, times and all else text. log_no is the number of the fact. Other tables:
-- map_values (log_no, column_name, path, value), currencies (code, digits), pack (first, size, from_month, to_month).
--
-- A line of PREPARE under `EACH pattern` stands for its copies, joined by UNION ALL: one for each match of the pattern in
-- the columns of a form, with its kind for KIND and the part in parentheses for COLUMN. A `!` marks a column in which a
-- number occurs once.
--
-- The lines `columns` name the columns of a rule's rows; an amount is in the row's `currency`, or that after its `@`.
-- Rules marked `whole` look back before a pack's first leaf: they are decidable only over the log from its beginning.
--
-- Only whole numbers are used, no division, no casts of texts that are not digits and no dates: a rule must give the
-- same rows everywhere.

-- The decimals of the currencies of ISO 4217 (2026-01-01):
-- CURRENCIES 0 BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF
-- CURRENCIES 2 AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY COP
-- CURRENCIES 2 COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR
-- CURRENCIES 2 JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN
-- CURRENCIES 2 NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL
-- CURRENCIES 2 THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG
-- CURRENCIES 3 BHD IQD JOD KWD LYD OMR TND
-- CURRENCIES 4 CLF UYW

-- FORM ledger_rows kind partner_id quote_id requote_id? reversal_id? enrollment_id? policy_id currency accepted_at:time spot_price:amount partner_cut:amount invoice_amount:amount order_reference? cover_from?:day cover_to?:day posted_month recorded_at:time month time_zone arrangement event_id:int
-- FORM ledger_receipts event_id:int posted_month partner_id currency entries:int spot_price:amount partner_cut:amount invoice_amount:amount
-- FORM held_rows held_row_id!:int kind partner_id quote_id requote_id? reversal_id? enrollment_id? policy_id currency accepted_at:time spot_price:amount partner_cut:amount invoice_amount:amount order_reference? cover_from?:day cover_to?:day sign repeats? recorded_at:time event_id:int
-- FORM held_row_decisions held_row_id!:int decision reason recorded_at:time event_id:int
-- FORM cancellation_terms cancellation_terms_id!:int partner_id policy_id from_day?:day window_days?:int after_window? cut? before_cover_only?:flag recorded_at:time event_id:int
-- FORM reversal_grounds partner_id reversal_id quote_id ground cancellation_terms_id?:int held_row_id?:int sold_on?:day judged_on?:day recorded_at:time event_id:int
-- FORM audit_events event_id!:int occurred_at:time action subject details:map claimed_by?:personal os_user host via user_id?:int
-- FORM erasures commitment reason recorded_at:time event_id:int
-- FORM users user_id!:int kind login:personal name:personal follows?:int recorded_at:time event_id:int
-- FORM user_ends user_id!:int reason?:personal recorded_at:time event_id:int
-- FORM user_roles user_role_id!:int user_id:int action role partner_id? source recorded_at:time event_id:int
-- FORM user_limits user_limit_id!:int user_id:int from_month? to_month? last_day?:day recorded_at:time event_id:int
-- FORM user_identities user_id:int issuer subject recorded_at:time event_id:int
-- FORM passkeys passkey_id!:int user_id:int credential_id public_key:hex name:personal recorded_at:time event_id:int
-- FORM passkey_ends passkey_id:int recorded_at:time event_id:int
-- FORM approval_requests request_id!:int action input:map subject partner_ids?:map preview_hash requested_by:int reason? requested_at:time expires_at:time event_id:int
-- FORM approval_decisions request_id!:int requested_by:int decision decided_by:int reason? recorded_at:time event_id:int
-- FORM pauses pause_id!:int cause reason state_of?:time paused_at:time event_id:int
-- FORM resumptions pause_id!:int resumed_at:time event_id:int
-- FORM issuer_versions issuer_version_id!:int content:map first_used_at:time
-- FORM openings opening_id!:int cut_over_on:day sha256 name recorded_at:time event_id:int
-- FORM opening_totals opening_id:int currency items:int invoices:amount credits:amount cash:amount control:amount
-- FORM documents document_id!:int number series sequence:int document purpose partner_id month currency arrangement issued_on:day due_on?:day terms_days?:int terms_end_of_month?:flag terms_day?:int enrollments:int entries:int spot_price:amount partner_cut:amount invoice_amount:amount credit_applied:amount partner_name contact_name:personal address_line1 address_line2 address_city address_region address_postal_code address_country tax_id purchase_order legal_note e_invoice buyer_reference electronic_address issuer_version_id:int sandbox:flag issued_at:time replaces?!:int credits?:int invoice_lowered_by?:amount invoice_left?:amount reason reopened_on?:day entry_on:day opening_id?:int opening_number? opening_revision?:int opening_follows?:int original_amount?:amount
-- FORM revenue_schedules month partner_id policy_id currency release_month amount:amount
-- FORM skipped_numbers series first_sequence:int last_sequence:int pause_id:int recorded_at:time event_id:int
-- FORM document_lines document_id:int position:int policy_id policy_name kind month count:int currency spot_price:amount partner_cut:amount invoice_amount:amount
-- FORM document_taxes document_id:int position:int currency country registration name category rate:rate reduced:flag reason reason_code taxable:amount tax:amount line_positions:map
-- FORM credit_applications credit_application_id!:int credit_note_id:int invoice_id:int currency amount:amount applied_on:day recorded_at:time at_issue:flag event_id:int reopened_on?:day entry_on:day
-- FORM voids document_id!:int partner_id month currency arrangement reason voided_on:day recorded_at:time event_id:int reopened_on?:day entry_on:day
-- FORM credit_releases credit_application_id!:int document_id?:int released_on:day recorded_at:time event_id:int reopened_on?:day entry_on:day
-- FORM write_offs write_off_id!:int document_id:int currency amount:amount reason written_off_on:day recorded_at:time event_id:int reopened_on?:day entry_on:day
-- FORM write_off_reversals write_off_id!:int reason reversed_on:day recorded_at:time event_id:int reopened_on?:day entry_on:day
-- FORM holds hold_id!:int document_id:int follows?:int reason held_at:time event_id:int
-- FORM hold_releases hold_id!:int document_id:int released_at:time event_id:int
-- FORM invoice_disputes invoice_dispute_id!:int document_id:int follows?:int currency amount:amount reason owner:personal promised_on?:day disputed_on:day recorded_at:time event_id:int
-- FORM invoice_dispute_closings invoice_dispute_id!:int document_id:int reason closed_on:day recorded_at:time event_id:int
-- FORM instruction_versions instruction_version_id!:int currency content:map first_used_at:time
-- FORM document_pdfs document_id!:int renderer_version:int libraries:map instruction_version_id?:int instructions_changed:flag sha256 rendered_at:time
-- FORM document_e_invoices document_id!:int writer_version:int parties:map sha256 written_at:time
-- FORM book_closes month previous? facts_to:int closed_at:time event_id:int
-- FORM book_balances month control account currency amount:amount
-- FORM bank_files bank_file_id!:int sha256 name format bytes:int recorded_at:time event_id:int
-- FORM bank_statements bank_statement_id!:int bank_file_id:int position:int account currency reference opening?:amount closing?:amount closed_on?:day credits:amount debits:amount lines:int
-- FORM bank_lines bank_line_id!:int account identity currency direction amount:amount bank_booked_on:day value_on?:day bank_reference? references:map text:personal payer_name?:personal payer_account?:personal type is_reversal:flag return_code? raw:personal
-- FORM bank_statement_lines bank_statement_id:int position:int bank_line_id:int account currency
-- FORM bank_line_outcomes bank_line_id!:int outcome payment_id?:int payout_id?:int payment_reversal_id?:int needs_review:flag reason:personal recorded_at:time event_id:int
-- FORM payments payment_id!:int identity source partner_id? currency amount:amount method account received_on:day entry_on:day reference:personal payer_name?:personal payer_account?:personal recorded_at:time event_id:int opening_id?:int opening_number?
-- FORM payment_sources identity payment_id:int source reference:personal bank_line_id?!:int recorded_at:time event_id:int
-- FORM payment_assignments payment_assignment_id!:int payment_id:int from_partner_id? partner_id kind currency amount:amount assigned_on:day entry_on:day recorded_at:time event_id:int
-- FORM forgotten_payer_accounts forgotten_payer_account_id!:int payer_account:personal recorded_at:time event_id:int
-- FORM payment_applications payment_application_id!:int payment_id:int document_id:int partner_id currency amount:amount applied_on:day entry_on:day confidence:number evidence:map recorded_at:time event_id:int
-- FORM payment_suggestions payment_suggestion_id!:int payment_id:int document_id?:int same_as?:int currency amount:amount confidence:number evidence:map recorded_at:time event_id:int
-- FORM small_differences payment_application_id!:int document_id:int currency amount:amount entry_on:day recorded_at:time event_id:int
-- FORM payment_reversals payment_reversal_id!:int identity payment_id:int partner_id? currency amount:amount kind code? reason bank_line_id?!:int duplicate_of?:int booked_to? reversed_on:day entry_on:day recorded_at:time event_id:int
-- FORM payment_reinstatements payment_reversal_id!:int partner_id? reinstated_on:day entry_on:day recorded_at:time event_id:int
-- FORM payment_unapplications payment_application_id!:int payment_reversal_id?:int unapplied_on:day entry_on:day recorded_at:time event_id:int
-- FORM payouts payout_id!:int bank_line_id!:int account currency amount:amount direction received_on:day entry_on:day recorded_at:time event_id:int
-- FORM payout_payments payment_id!:int payout_id:int currency amount:amount
-- FORM payout_settlements payout_id!:int currency gross:amount fees:amount entry_on:day evidence:map recorded_at:time event_id:int
-- FORM disputes dispute_id!:int identity payment_id:int currency amount:amount reason opened_on:day recorded_at:time event_id:int
-- FORM dispute_outcomes dispute_id:int outcome decided_on:day recorded_at:time event_id:int
-- FORM credit_refunds credit_refund_id!:int document_id:int partner_id currency amount:amount method account reference:personal refunded_on:day entry_on:day recorded_at:time event_id:int
-- FORM credit_refund_returns credit_refund_id!:int bank_line_id?:int reason returned_on:day entry_on:day recorded_at:time event_id:int
-- FORM refund_matches refund_match_id!:int bank_line_id:int account currency amount:amount direction credit_refund_id?!:int payment_reversal_id?!:int paid_on:day entry_on:day evidence:map recorded_at:time event_id:int
-- FORM bank_bookings bank_booking_id!:int bank_line_id:int previous?:int account currency amount:amount direction booked_to? reason booked_on:day entry_on:day recorded_at:time event_id:int
-- FORM processor_event_outcomes processor_event_id!:int outcome payment_id?:int reason:personal recorded_at:time event_id:int event_sha256?
-- FORM processor_event_erasures processor_event_id:int recorded_at:time event_id:int
-- FORM payment_exception_closings payment_exception_closing_id!:int processor_event_id?:int bank_line_id?:int bank_statement_id?:int payment_id?:int reason recorded_at:time event_id:int
-- FORM settlement_files settlement_file_id!:int partner_id sha256 name lines:int recorded_at:time event_id:int
-- FORM settlement_lines settlement_line_id!:int settlement_file_id:int line:int partner_id quote_id requote_id? reversal_id? transfer? payment? kind currency amount:amount refunded?:amount occurred_at?:time
-- FORM balance_transactions balance_transaction_id!:int account id reported_by type kind currency amount:amount fee:amount net:amount source_currency? source_amount?:amount@source_currency exchange_rate?:number occurred_at:time payment? of_payment? transfer? quote_id? requote_id? enrollment_id? recorded_at:time event_id:int payload_sha256
-- FORM processor_readings processor_reading_id!:int account read_from?:time read_to:time file? balance_transactions:int new_balance_transactions:int recorded_at:time event_id:int
-- FORM share_allocations share_allocation_id!:int balance_transaction_id:int partner_id posted_month entry_id:int quote_id requote_id? currency amount:amount settled_currency settled_amount:amount@settled_currency other_account:flag matched_by settlement_line_id?:int reason occurred_on:day entry_on:day recorded_at:time event_id:int
-- FORM balance_transaction_closings balance_transaction_closing_id!:int balance_transaction_id:int currency amount:amount reason recorded_at:time event_id:int
-- FORM reversal_evidence share_allocation_id:int partner_id posted_month entry_id!:int price_from recorded_at:time event_id:int
-- FORM share_payments share_allocation_id:int payment_id:int payment_reversal_id?:int currency amount:amount recorded_at:time event_id:int
-- FORM missing_shares document_id:int partner_id month currency arrangement quote_id amount:amount
-- FORM payout_contents balance_transaction_id!:int payout_transaction_id:int account currency recorded_at:time event_id:int
-- FORM account_payouts payout_id:int account currency balance_transaction_id?:int recorded_at:time event_id:int
-- FORM api_clients client_id partner_id created_at:time event_id:int
-- FORM client_revocations client_id revoked_at:time event_id:int
-- FORM client_secrets client_id sequence:int issued_at:time expires_at?:time previous_sequence?:int previous_ends_at?:time event_id:int
-- FORM quote_acceptances quote_id partner_id client_id posted_month entry_id:int
-- FORM requote_acceptances quote_id step:int previous_step?:int requote_id partner_id client_id posted_month entry_id:int
-- FORM gl_exports gl_export_id!:int month format part:int previous?:int kind checkpoint books_closed:flag accounts:map writer:int recorded_at:time event_id:int
-- FORM gl_export_lines gl_export_id:int line:int control account partner_id? policy_id? currency amount:amount to_account class location name memo
-- FORM gl_export_files gl_export_id:int position:int name sha256
-- FORM email_attempts email_id:int attempt:int started_at:time ended_at:time outcome reply:personal kind message_id recipients:map message_sha256 pdf_sha256?
-- FORM email_bounces email_bounce_id!:int email_id:int recipient:personal status diagnostic:personal reporting_server report_sha256 recorded_at:time event_id:int
-- FORM portal_deliveries portal_delivery_id!:int document_id:int delivered_on:day reference recorded_at:time event_id:int
-- FORM reminders document_id:int dunning_level:int email_id:int payer_id partner_id currency counted_from:day
-- FORM reminder_pauses reminder_pause_id!:int partner_id until?:day reason recorded_on:day recorded_at:time event_id:int
-- FORM feed_decisions feed_decision_id!:int month partner_id kind evidence reason? recorded_at:time event_id:int
-- FORM feed_statements feed_statement_id!:int partner_id month entries:int complete:flag recorded_at:time event_id:int
-- FORM feed_statement_totals feed_statement_id:int currency invoice_amount:amount
-- FORM closed_months month previous? issued_on:day closed_at:time entries:int late_entries:int partners_with_documents:int partners_without_activity:int
-- FORM month_totals month currency entries:int spot_price:amount partner_cut:amount invoice_amount:amount
-- FORM month_partners month partner_id currency arrangement entries:int spot_price:amount partner_cut:amount invoice_amount:amount last_accepted_at:time root
-- FORM month_zones time_zone month begins_at:time
-- FORM log_continues origin follows lost_size:int lost_root kept_size:int reason recorded_at:time event_id:int
-- FORM log_keys key_name public_key previous? signature? reason recorded_at:time event_id:int

-- PREPARE
-- Days as numbers since 1970-01-01, as text, and by month; and the minutes of a day.
CREATE TABLE digit AS WITH digit(x) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) SELECT x FROM digit;
CREATE TABLE days AS
WITH two(x) AS (SELECT a.x + 10 * b.x FROM digit a CROSS JOIN digit b),
     written(x, text) AS (SELECT x, CASE WHEN x < 10 THEN '0' ELSE '' END || x FROM two),
     parts AS (
       SELECT '20' || y.text || '-' || m.text AS month, '20' || y.text || '-' || m.text || '-' || d.text AS day
       FROM written y CROSS JOIN written m CROSS JOIN written d
       WHERE m.x BETWEEN 1 AND 12 AND d.x BETWEEN 1 AND 31
         AND d.x <= CASE WHEN m.x IN (4, 6, 9, 11) THEN 30 WHEN m.x <> 2 THEN 31 WHEN y.x % 4 = 0 THEN 29 ELSE 28 END)
SELECT month, day, CAST(10956 + row_number() OVER (ORDER BY day) AS INTEGER) AS n FROM parts;
CREATE INDEX days_by_number ON days (n);
CREATE INDEX days_by_text ON days (day);
CREATE TABLE pack_days AS SELECT d.* FROM days d JOIN pack k ON d.month BETWEEN k.from_month AND k.to_month;
CREATE TABLE months AS
SELECT month, min(n) AS first_day, max(n) AS last_day, row_number() OVER (ORDER BY month) AS n,
       lead(month) OVER (ORDER BY month) AS next
FROM days GROUP BY month;
CREATE TABLE minutes AS
WITH two(x, text) AS (SELECT 10 * a.x + b.x, CAST(a.x AS TEXT) || b.x FROM digit a CROSS JOIN digit b)
SELECT h.text || ':' || m.text AS minute, 60 * h.x + m.x AS n FROM two h CROSS JOIN two m WHERE h.x < 24 AND m.x < 60;

-- Reversals whose sales are not at hand. A log has all sales; the program may have moved rows of old months elsewhere.
CREATE TABLE unread (log_no BIGINT);

-- The days on which terms with an end of month or a pay day make an invoice due.
CREATE TABLE terms_due AS
SELECT document_id, CASE WHEN terms_day IS NULL OR own >= least_on THEN own ELSE following END AS due_on
FROM (
  SELECT d.document_id, d.terms_day, CASE d.terms_end_of_month WHEN 1 THEN m.last_day ELSE y.n END AS least_on,
         CASE WHEN d.terms_day IS NULL THEN m.last_day WHEN m.first_day + d.terms_day - 1 > m.last_day THEN m.last_day
              ELSE m.first_day + d.terms_day - 1 END AS own,
         CASE WHEN f.first_day + d.terms_day - 1 > f.last_day THEN f.last_day ELSE f.first_day + d.terms_day - 1 END
           AS following
  FROM documents d JOIN days y ON y.n = d.issued_on + d.terms_days JOIN months m ON m.month = y.month
  JOIN months f ON f.month = m.next
  WHERE d.terms_end_of_month = 1 OR d.terms_day IS NOT NULL) AS t;

-- The ledger rows, read three times: in groups, by quote, and those that other facts name.
CREATE TABLE row_groups AS
SELECT posted_month, partner_id, currency, arrangement, policy_id, kind, month, time_zone, event_id,
       count(*) AS entries, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
       sum(invoice_amount) AS invoice_amount, min(accepted_at) AS first_at, max(accepted_at) AS last_at,
       min(recorded_at) AS first_recorded, max(recorded_at) AS last_recorded, min(log_no) AS first_no,
       max(log_no) AS last_no, min(quote_id) AS quote_id,
       sum(CASE WHEN spot_price = partner_cut + invoice_amount AND CASE kind
                     WHEN 'reversal' THEN spot_price <= 0 AND partner_cut <= 0 AND invoice_amount <= 0
                     ELSE spot_price >= 0 AND partner_cut >= 0 AND invoice_amount >= 0 END
                THEN 0 ELSE 1 END) AS unbalanced,
       sum(CASE WHEN CASE kind WHEN 'quote_accepted' THEN requote_id IS NULL AND reversal_id IS NULL
                               WHEN 'requote_accepted' THEN requote_id IS NOT NULL AND reversal_id IS NULL
                               WHEN 'reversal' THEN reversal_id IS NOT NULL ELSE 1 = 0 END
                THEN 0 ELSE 1 END) AS misnamed,
       sum(CASE WHEN cover_to < cover_from OR cover_to IS NOT NULL AND cover_from IS NULL THEN 1 ELSE 0 END) AS uncovered
FROM ledger_rows
GROUP BY posted_month, partner_id, currency, arrangement, policy_id, kind, month, time_zone, event_id;
-- The rows of feeds: without the reversals that a person recorded or asked for.
CREATE TABLE fed_groups AS
SELECT * FROM row_groups WHERE event_id NOT IN (
  SELECT event_id FROM audit_events WHERE action = 'rows.reverse'
  UNION SELECT d.event_id FROM held_row_decisions d JOIN held_rows h ON h.held_row_id = d.held_row_id
        JOIN audit_events e ON e.event_id = h.event_id WHERE e.action = 'rows.reverse');
CREATE TABLE quotes AS
SELECT partner_id, quote_id, count(*) AS entries, sum(CASE kind WHEN 'quote_accepted' THEN 1 ELSE 0 END) AS sales,
       min(policy_id) AS policy_id, max(policy_id) AS other_policy_id, min(currency) AS currency,
       max(currency) AS other_currency, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
       sum(invoice_amount) AS invoice_amount,
       min(CASE kind WHEN 'quote_accepted' THEN arrangement END) AS arrangement
FROM ledger_rows WHERE log_no NOT IN (SELECT log_no FROM unread)
GROUP BY partner_id, quote_id HAVING count(*) > 1 OR min(kind) <> 'quote_accepted';
CREATE INDEX quotes_by ON quotes (partner_id, quote_id);
CREATE TABLE named_rows AS
SELECT log_no, kind, partner_id, quote_id, requote_id, reversal_id, policy_id, currency, spot_price, partner_cut,
       invoice_amount, posted_month, arrangement, event_id, enrollment_id, order_reference, accepted_at, cover_from, cover_to
FROM ledger_rows
WHERE kind <> 'quote_accepted'
   OR log_no IN (SELECT entry_id FROM share_allocations UNION SELECT entry_id FROM reversal_evidence
                 UNION SELECT entry_id FROM quote_acceptances UNION SELECT entry_id FROM requote_acceptances)
   OR quote_id IN (SELECT quote_id FROM missing_shares UNION SELECT quote_id FROM held_rows
                   UNION SELECT repeats FROM held_rows WHERE kind = 'quote_accepted'
                   UNION SELECT quote_id FROM reversal_grounds);
CREATE INDEX named_rows_by_number ON named_rows (log_no);
CREATE INDEX named_rows_by_quote ON named_rows (partner_id, quote_id);
-- Rows that a held row may repeat or follow.
CREATE TABLE sales_known AS
SELECT log_no, 0 AS held, kind, partner_id, coalesce(reversal_id, requote_id, quote_id) AS own_id, quote_id, policy_id,
       currency, spot_price, partner_cut, accepted_at, enrollment_id, order_reference
FROM named_rows WHERE (SELECT count(*) FROM held_rows) > 0
UNION ALL
SELECT log_no, 1, kind, partner_id, coalesce(reversal_id, requote_id, quote_id), quote_id, policy_id, currency, spot_price,
       partner_cut, accepted_at, enrollment_id, order_reference
FROM held_rows;

-- Reversals with their grounds, and their sales: the requote that they name, or the quote.
CREATE TABLE grounded AS
SELECT r.log_no, r.event_id, r.partner_id, r.reversal_id, r.quote_id, r.requote_id, r.policy_id, r.currency, r.accepted_at,
       r.arrangement, r.spot_price, r.partner_cut, r.invoice_amount, g.log_no AS ground_no, g.ground, g.cancellation_terms_id,
       g.sold_on, g.judged_on, g.recorded_at, s.accepted_at AS sold_at, coalesce(s.cover_from, q.cover_from) AS cover_from,
       CASE WHEN s.cover_from IS NULL THEN q.cover_to ELSE s.cover_to END AS cover_to
FROM reversal_grounds g
JOIN named_rows r ON r.partner_id = g.partner_id AND r.quote_id = g.quote_id AND r.kind = 'reversal'
  AND r.reversal_id = g.reversal_id
LEFT JOIN named_rows q ON q.partner_id = r.partner_id AND q.quote_id = r.quote_id AND q.kind = 'quote_accepted'
LEFT JOIN named_rows s ON s.partner_id = r.partner_id AND s.quote_id = r.quote_id
  AND s.kind = CASE WHEN r.requote_id IS NULL THEN 'quote_accepted' ELSE 'requote_accepted' END
  AND s.requote_id IS NOT DISTINCT FROM r.requote_id
WHERE r.log_no NOT IN (SELECT log_no FROM unread);
CREATE INDEX grounded_by_quote ON grounded (partner_id, quote_id);
-- What was sold before each reversal by a rule, less what was let go otherwise; and what rules had let go with it. Pro rata
-- applies to what is left after a window, and a reversal of the whole quote takes such a part of each requote.
CREATE TABLE ground_sums AS
SELECT log_no, sum(CASE WHEN taken THEN 0 ELSE spot_price END) AS base_spot,
       sum(CASE WHEN taken THEN 0 ELSE partner_cut END) AS base_cut, sum(CASE WHEN taken THEN 0 ELSE invoice_amount END) AS base_share,
       -sum(CASE WHEN taken THEN spot_price ELSE 0 END) AS taken_spot, -sum(CASE WHEN taken THEN partner_cut ELSE 0 END) AS taken_cut,
       -sum(CASE WHEN taken THEN invoice_amount ELSE 0 END) AS taken_share
FROM (SELECT r.log_no, x.spot_price, x.partner_cut, x.invoice_amount, x.kind = 'reversal' AND x.ground NOT IN ('person', 'processor')
        AND (x.ground = 'pro_rata' OR r.ground <> 'pro_rata') AS taken
      FROM grounded r
      JOIN (SELECT n.*, coalesce(g.ground, '') AS ground FROM named_rows n LEFT JOIN grounded g USING (log_no)) x
        ON x.partner_id = r.partner_id AND x.quote_id = r.quote_id
       AND (r.requote_id IS NULL OR x.requote_id = r.requote_id
            OR r.ground = 'pro_rata' AND x.kind = 'reversal' AND x.requote_id IS NULL AND x.accepted_at >= r.sold_at)
      WHERE r.ground NOT IN ('person', 'processor')
        AND CASE WHEN x.kind <> 'reversal' THEN (x.log_no < r.log_no OR x.event_id = r.event_id) AND x.accepted_at <= r.accepted_at
                 WHEN x.event_id <> r.event_id THEN x.log_no < r.log_no
                 ELSE x.accepted_at < r.accepted_at OR x.accepted_at = r.accepted_at AND x.log_no <= r.log_no END) AS parts
GROUP BY log_no;

-- Sums of the rows: by event; by line of a document, and by partner, with the month that bills them.
CREATE TABLE first_close AS SELECT min(month) AS month FROM closed_months;
CREATE TABLE row_events AS
SELECT event_id, currency, sum(entries) AS entries, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
       sum(invoice_amount) AS invoice_amount, min(first_no) AS first_no, min(first_recorded) AS first_recorded,
       max(last_recorded) AS last_recorded, min(kind) AS kind, max(kind) AS last_kind, min(quote_id) AS quote_id
FROM row_groups GROUP BY event_id, currency;
CREATE TABLE row_lines AS
SELECT CASE WHEN posted_month < (SELECT month FROM first_close) THEN (SELECT month FROM first_close)
            ELSE posted_month END AS billed_month, partner_id, currency, arrangement, policy_id, kind, month,
       sum(entries) AS entries, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
       sum(invoice_amount) AS invoice_amount, max(last_at) AS last_at
FROM row_groups GROUP BY 1, 2, 3, 4, 5, 6, 7;
CREATE TABLE row_partners AS
SELECT billed_month, partner_id, currency, arrangement, sum(entries) AS entries, sum(spot_price) AS spot_price,
       sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount,
       sum(CASE WHEN month < billed_month THEN entries ELSE 0 END) AS late_entries, max(last_at) AS last_at
FROM row_lines GROUP BY billed_month, partner_id, currency, arrangement;

-- What events say: their details, each with the last part of its path, the leaf, and the stem before it; and the fields of
-- partners and of the settings that they changed, each until the next change of the same field, or until fact
-- 999999999999999: in force.
CREATE TABLE details AS
SELECT e.event_id, e.action, e.subject, e.log_no, v.path, rtrim(v.path, replace(v.path, '.', '')) AS stem,
       substr(v.path, length(rtrim(v.path, replace(v.path, '.', ''))) + 1) AS leaf, v.value
FROM map_values v JOIN audit_events e USING (log_no) WHERE v.column_name = 'details';
CREATE INDEX details_by ON details (log_no, path);
CREATE TABLE fields AS
SELECT CASE WHEN f.action IN ('settings.change', 'settings.adopt') THEN 'settings' ELSE 'partner ' || f.subject END AS subject,
       f.value AS field, n.value, f.log_no, f.stem,
       lead(f.log_no, 1, 999999999999999) OVER (
         PARTITION BY CASE WHEN f.action IN ('settings.change', 'settings.adopt') THEN '' ELSE f.subject END, f.value
         ORDER BY f.log_no) AS until_no
FROM details f LEFT JOIN details n ON n.log_no = f.log_no AND n.path = f.stem || 'new'
WHERE f.action IN ('partner.create', 'partner.update', 'settings.change', 'settings.adopt') AND substr(f.path, 1, 8) = 'changes.'
  AND f.leaf = 'field';
CREATE INDEX fields_by ON fields (subject, field);

-- The facts after the month before the pack was closed, until its last month was closed.
CREATE TABLE span AS
SELECT coalesce(max(CASE WHEN c.month < k.from_month THEN c.log_no END), 0) AS after_no,
       coalesce(CASE WHEN max(c.month) >= max(k.to_month) THEN max(CASE WHEN c.month <= k.to_month THEN c.log_no END) END,
                999999999999999) AS until_no
FROM pack k LEFT JOIN closed_months c ON 1 = 1;

-- The settings of tax, each until the next change of any of them, and their rules.
CREATE TABLE tax_settings AS
SELECT c.log_no, lead(c.log_no, 1, 999999999999999) OVER (ORDER BY c.log_no) AS until_no, b.value AS begins, r.log_no AS rules_no, r.stem
FROM (SELECT DISTINCT log_no FROM fields WHERE subject = 'settings' AND substr(field, 1, 4) = 'tax.') c
LEFT JOIN fields b ON b.subject = 'settings' AND b.field = 'tax.from' AND b.log_no <= c.log_no
  AND b.until_no > c.log_no
LEFT JOIN fields r ON r.subject = 'settings' AND r.field = 'tax.rules' AND r.log_no <= c.log_no
  AND r.until_no > c.log_no;
CREATE TABLE tax_rules AS
SELECT s.log_no, max(CASE d.leaf WHEN 'category' THEN d.value END) AS category,
       max(CASE d.leaf WHEN 'rate' THEN d.value END) AS rate, max(CASE d.leaf WHEN 'reduced' THEN d.value END) AS reduced,
       max(CASE d.leaf WHEN 'partner' THEN d.value END) AS partner_id,
       max(CASE d.leaf WHEN 'policy' THEN d.value END) AS policy_id, max(CASE d.leaf WHEN 'kind' THEN d.value END) AS kind,
       max(CASE d.leaf WHEN 'country' THEN d.value END) AS country,
       max(CASE d.leaf WHEN 'from' THEN d.value END) AS from_day, max(CASE d.leaf WHEN 'until' THEN d.value END) AS until_day
FROM tax_settings s JOIN details d ON d.log_no = s.rules_no AND substr(d.stem, 1, length(s.stem) + 4) = s.stem || 'new.'
GROUP BY s.log_no, d.stem HAVING count(CASE d.leaf WHEN 'category' THEN 1 END) > 0;
CREATE TABLE taxed_lines AS
SELECT t.document_id, t.position, v.value AS line
FROM document_taxes t JOIN map_values v ON v.log_no = t.log_no AND v.column_name = 'line_positions' WHERE v.path <> '';

-- Amounts as events state them: the totals of rows, and sums of what else an event recorded; each as text without
-- trailing zeros, and with all decimals (plain).
CREATE TABLE stated_totals AS
SELECT event_id, substr(path, 8, 3) AS currency, substr(path, 12) AS field,
       CASE WHEN replace(value, '.', '') = value THEN value ELSE rtrim(rtrim(value, '0'), '.') END AS value
FROM details WHERE substr(path, 1, 7) = 'totals.' AND substr(path, 11, 1) = '.';
-- The facts that change what is open on a document after its issue; amounts below zero take a fact back.
CREATE TABLE balance_facts AS
SELECT 'payment' AS what, 'payment_applied' AS fact, a.log_no, a.event_id, a.recorded_at, a.document_id,
       NULL AS credit_note_id, a.payment_id, a.currency, a.amount, a.applied_on AS dated_on, a.entry_on, v.value AS why,
       NULL AS account
FROM payment_applications a
LEFT JOIN map_values v ON v.log_no = a.log_no AND v.column_name = 'evidence' AND v.path = 'why'
UNION ALL SELECT 'credit', 'credit_applied', log_no, event_id, recorded_at, invoice_id, credit_note_id, NULL, currency, amount,
  applied_on, entry_on, NULL, NULL FROM credit_applications
UNION ALL SELECT 'credit', 'credit_released', r.log_no, r.event_id, r.recorded_at, a.invoice_id, a.credit_note_id, NULL,
  a.currency, -a.amount, r.released_on, r.entry_on, NULL, NULL
FROM credit_releases r JOIN credit_applications a USING (credit_application_id)
UNION ALL SELECT 'write-off', 'written_off', log_no, event_id, recorded_at, document_id, NULL, NULL, currency, amount,
  written_off_on, entry_on, reason, NULL FROM write_offs
UNION ALL SELECT 'write-off', 'write_off_undone', r.log_no, r.event_id, r.recorded_at, w.document_id, NULL, NULL,
  w.currency, -w.amount, r.reversed_on, r.entry_on, r.reason, NULL
FROM write_off_reversals r JOIN write_offs w USING (write_off_id)
UNION ALL SELECT 'payment', 'payment_unapplied', u.log_no, u.event_id, u.recorded_at, a.document_id, NULL, a.payment_id,
  a.currency, -a.amount, u.unapplied_on, u.entry_on,
  CASE WHEN u.payment_reversal_id IS NULL THEN 'unapplied by a user' ELSE 'payment reversed' END, NULL
FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
UNION ALL SELECT 'difference', 'small_difference', s.log_no, s.event_id, s.recorded_at, s.document_id, NULL, a.payment_id,
  s.currency, s.amount, a.applied_on, s.entry_on, 'a difference too small to pursue', NULL
FROM small_differences s LEFT JOIN payment_applications a USING (payment_application_id)
UNION ALL SELECT 'difference', 'small_difference_undone', u.log_no, u.event_id, u.recorded_at, s.document_id, NULL,
  a.payment_id, s.currency, -s.amount, u.unapplied_on, u.entry_on,
  CASE WHEN u.payment_reversal_id IS NULL THEN 'unapplied by a user' ELSE 'payment reversed' END, NULL
FROM payment_unapplications u JOIN small_differences s USING (payment_application_id)
LEFT JOIN payment_applications a ON a.payment_application_id = u.payment_application_id
UNION ALL SELECT 'refund', 'credit_refunded', log_no, event_id, recorded_at, document_id, NULL, NULL, currency, amount,
  refunded_on, entry_on, reference, account FROM credit_refunds
UNION ALL SELECT 'refund', 'credit_refund_returned', b.log_no, b.event_id, b.recorded_at, f.document_id, NULL, NULL,
  f.currency, -f.amount, b.returned_on, b.entry_on, b.reason, coalesce(l.account, m.account, f.account)
FROM credit_refund_returns b JOIN credit_refunds f USING (credit_refund_id)
LEFT JOIN refund_matches m ON m.credit_refund_id = f.credit_refund_id
LEFT JOIN bank_lines l ON l.bank_line_id = b.bank_line_id;
CREATE TABLE event_sums AS
SELECT event_id, action, currency, sum(amount) AS amount
FROM (SELECT event_id, 'dispute.open' AS action, currency, amount FROM invoice_disputes
      UNION ALL SELECT p.event_id, e.action, p.currency, p.amount
      FROM payments p JOIN audit_events e ON e.event_id = p.event_id AND e.action = 'payment.record'
      UNION ALL SELECT b.event_id, e.action, b.currency, abs(b.amount)
      FROM balance_facts b JOIN audit_events e USING (event_id)
      WHERE b.fact || ' by ' || e.action IN (
        'written_off by invoice.write_off', 'write_off_undone by invoice.write_off_undone', 'credit_refunded by credit.refund',
        'credit_refund_returned by credit.refund_returned', 'payment_applied by payment.apply',
        'credit_applied by credit.apply')) f
GROUP BY event_id, action, currency;
-- Changes of the settings, with the minute an hour later: until then, another process may still use the settings before.
CREATE TABLE settings_changes AS
SELECT e.log_no, u.day || 'T' || v.minute AS until
FROM audit_events e JOIN days d ON d.day = substr(e.occurred_at, 1, 10) JOIN minutes m ON m.minute = substr(e.occurred_at, 12, 5)
JOIN minutes v ON v.n = CASE WHEN m.n < 1380 THEN m.n + 60 ELSE m.n - 1380 END
JOIN days u ON u.n = CASE WHEN m.n < 1380 THEN d.n ELSE d.n + 1 END
WHERE e.action IN ('settings.change', 'settings.adopt');
CREATE TABLE gl_totals AS
SELECT gl_export_id, currency, sum(CASE WHEN amount > 0 THEN amount ELSE 0 END) AS amount
FROM (SELECT gl_export_id, currency, sum(amount) AS amount FROM gl_export_lines
      GROUP BY gl_export_id, currency, to_account, class, location, name, memo) x
GROUP BY gl_export_id, currency;
CREATE TABLE numerals AS
SELECT currency, amount,
       CASE WHEN part = '' THEN sign || whole ELSE sign || whole || '.' || part END AS text,
       CASE WHEN digits = 0 THEN sign || text ELSE sign || whole || '.' || substr(text, length(text) - digits + 1) END AS plain
FROM (SELECT currency, amount, digits, sign, text, substr(text, 1, length(text) - digits) AS whole,
             rtrim(substr(text, length(text) - digits + 1), '0') AS part
      FROM (SELECT currency, amount, digits, CASE WHEN amount < 0 THEN '-' ELSE '' END AS sign,
                   substr('0000' || abs(amount), CASE WHEN length(CAST(abs(amount) AS TEXT)) > digits THEN 5
                                                      ELSE length(CAST(abs(amount) AS TEXT)) + 4 - digits END) AS text
            FROM (SELECT a.currency, a.amount, CAST(c.digits AS INTEGER) AS digits
                  FROM (SELECT currency, spot_price AS amount FROM row_events
                        UNION SELECT currency, partner_cut FROM row_events
                        UNION SELECT currency, invoice_amount FROM row_events
                        UNION SELECT currency, amount FROM event_sums
                        UNION SELECT currency, invoice_amount FROM documents WHERE purpose = 'adjustment'
                        UNION SELECT currency, amount FROM payments
                        UNION SELECT currency, amount FROM bank_lines
                        UNION SELECT currency, invoices FROM opening_totals
                        UNION SELECT currency, credits FROM opening_totals
                        UNION SELECT currency, cash FROM opening_totals
                        UNION SELECT currency, control FROM opening_totals
                        UNION SELECT currency, invoice_amount FROM feed_statement_totals
                        UNION SELECT currency, amount FROM payment_reversals
                        UNION SELECT currency, amount FROM credit_applications
                        UNION SELECT currency, amount FROM payment_applications
                        UNION SELECT currency, amount FROM gl_totals) a JOIN currencies c ON c.code = a.currency) n) t) w;
CREATE INDEX numerals_by ON numerals (amount, currency);
-- The limits that the settings and comparisons state, by currency, in its smallest unit; a text other than a number counts as
-- more than any amount.
CREATE TABLE limits AS
SELECT code, value, CASE WHEN length(in_digits) BETWEEN 1 AND 18 AND ltrim(in_digits, '0123456789') = ''
                         THEN CAST(in_digits AS BIGINT) ELSE 999999999999999999 END AS units
FROM (SELECT t.code, t.value, replace(t.value, '.', '') || substr('0000', 1, t.digits - t.places) AS in_digits
      FROM (SELECT c.code, CAST(c.digits AS INTEGER) AS digits, v.value,
                   CASE WHEN replace(v.value, '.', '') = v.value THEN 0
                        ELSE length(v.value) - length(rtrim(v.value, '0123456789')) END AS places
            FROM (SELECT substr(field, 18) AS code, value FROM fields
                  WHERE subject = 'settings' AND substr(field, 1, 17) = 'small_difference.'
                  UNION SELECT substr(field, length(field) - 2), value FROM fields
                  WHERE subject = 'settings' AND substr(field, 1, 10) = 'approvals.'
                  UNION SELECT c.value, a.value FROM details c
                  JOIN details a ON a.log_no = c.log_no
                    AND a.path IN (c.stem || 'above', c.stem || 'amount', c.stem || 'before')
                  WHERE (substr(c.path, 1, 17) = 'compared.amounts.' OR substr(c.path, 1, 21) = 'compared.adjustments.')
                    AND c.leaf = 'currency') v
            JOIN currencies c ON c.code = v.code WHERE v.value IS NOT NULL) t
      WHERE t.places <= t.digits) u;
CREATE TABLE row_totals AS
SELECT event_id, currency, 'rows' AS field, CAST(entries AS TEXT) AS value FROM row_events
UNION ALL SELECT r.event_id, currency, r.field, n.text
FROM (SELECT event_id, currency, 'spotPrice' AS field, spot_price AS amount FROM row_events
      UNION ALL SELECT event_id, currency, 'partnerCut', partner_cut FROM row_events
      UNION ALL SELECT event_id, currency, 'invoiceAmount', invoice_amount FROM row_events) r
JOIN numerals n USING (currency, amount);

-- Documents with their sign, tax and gross amount, and the fact that voided them.
CREATE TABLE papers AS
SELECT d.document_id, d.log_no, d.number, d.document, d.purpose, d.partner_id, d.month, d.currency, d.arrangement,
       d.issued_on, d.entry_on, d.replaces, d.credits, d.invoice_amount, d.credit_applied,
       CASE d.document WHEN 'credit_note' THEN -1 ELSE 1 END AS sign, coalesce(t.taxable, 0) AS taxable,
       coalesce(t.tax, 0) AS tax, coalesce(t.totals, 0) AS tax_totals,
       d.invoice_amount + coalesce(t.tax, 0) AS gross, v.log_no AS void_no, v.voided_on
FROM documents d
LEFT JOIN (SELECT document_id, sum(taxable) AS taxable, sum(tax) AS tax, count(*) AS totals FROM document_taxes
           GROUP BY document_id) t ON t.document_id = d.document_id
LEFT JOIN (SELECT document_id, min(log_no) AS log_no, min(voided_on) AS voided_on FROM voids GROUP BY document_id) v
  ON v.document_id = d.document_id;
CREATE INDEX papers_by ON papers (document_id);
CREATE INDEX papers_of_partner ON papers (partner_id, month);
-- Each invoice with those that it replaced, one after the other, itself first.
CREATE TABLE chains AS
WITH RECURSIVE chain(head, document_id) AS (
  SELECT document_id, document_id FROM papers WHERE document = 'invoice'
  UNION
  SELECT c.head, d.replaces FROM chain c JOIN papers d USING (document_id) WHERE d.replaces IS NOT NULL)
SELECT head, document_id FROM chain;
-- What acts took from our share of a partner's sales, or no longer claimed from the partner: only acts that the approval
-- rule for adjustments counts. Then what their events state that was compared, and what was compared in 30 days before.
CREATE TABLE adjusting_actions AS
WITH adjusting(action) AS (VALUES ('invoice.credit'), ('invoice.write_off'), ('payment.apply'), ('payment.import'),
  ('payment.record'), ('reversal.grant'))
SELECT action FROM adjusting;
CREATE TABLE adjustments AS
SELECT e.log_no, x.partner_id, x.currency, sum(x.amount) AS amount
FROM (SELECT max(c.event_id) AS event_id, d.partner_id, d.currency, d.gross AS amount
      FROM papers d JOIN papers i ON i.document_id = d.credits
      JOIN audit_events c ON c.action = 'invoice.credit' AND c.subject = i.number AND c.log_no < d.log_no
      WHERE d.purpose = 'adjustment' GROUP BY d.document_id, d.partner_id, d.currency, d.gross
      UNION ALL SELECT w.event_id, d.partner_id, w.currency, w.amount
      FROM write_offs w JOIN papers d USING (document_id)
      UNION ALL SELECT s.event_id, d.partner_id, s.currency, s.amount
      FROM small_differences s JOIN papers d USING (document_id)
      UNION ALL SELECT event_id, partner_id, currency, -invoice_amount FROM row_groups WHERE kind = 'reversal') x
JOIN audit_events e ON e.event_id = x.event_id JOIN adjusting_actions n ON n.action = e.action
GROUP BY e.log_no, x.partner_id, x.currency HAVING sum(x.amount) > 0;
-- The events of an action on several things state the same comparison, which counts once, at the first of them.
CREATE TABLE comparisons AS
SELECT d.log_no, min(o.log_no) AS first_no
FROM details d JOIN adjusting_actions n ON n.action = d.action
JOIN details o ON o.path = d.path AND o.value = d.value JOIN adjusting_actions m ON m.action = o.action
WHERE d.path = 'compared.comparison' GROUP BY d.log_no;
CREATE TABLE compared_adjustments AS
SELECT k.first_no AS log_no, a.partner_id, a.currency, sum(a.amount) AS amount
FROM adjustments a JOIN comparisons k USING (log_no) GROUP BY k.first_no, a.partner_id, a.currency;
CREATE TABLE stated_adjustments AS
SELECT e.log_no, e.event_id, e.occurred_at, p.value AS partner_id, c.value AS currency, s.value AS stated,
       b.value AS stated_before, l.value AS stated_limit, coalesce(a.amount, 0) AS adjusted, ls.units AS stated_units,
       lb.units AS before_units, ll.units AS limit_units
FROM details c JOIN audit_events e USING (log_no) JOIN comparisons k ON k.log_no = c.log_no AND k.first_no = c.log_no
LEFT JOIN details p ON p.log_no = c.log_no AND p.path = c.stem || 'partner'
LEFT JOIN details s ON s.log_no = c.log_no AND s.path = c.stem || 'amount'
LEFT JOIN details b ON b.log_no = c.log_no AND b.path = c.stem || 'before'
LEFT JOIN details l ON l.log_no = c.log_no AND l.path = c.stem || 'above'
LEFT JOIN limits ls ON ls.code = c.value AND ls.value = s.value
LEFT JOIN limits lb ON lb.code = c.value AND lb.value = b.value
LEFT JOIN limits ll ON ll.code = c.value AND ll.value = l.value
LEFT JOIN compared_adjustments a ON a.log_no = c.log_no AND a.partner_id = p.value AND a.currency = c.value
WHERE substr(c.path, 1, 21) = 'compared.adjustments.' AND c.leaf = 'currency';
CREATE TABLE adjusted_before AS
SELECT t.log_no, t.partner_id, t.currency, sum(o.adjusted) AS amount
FROM stated_adjustments t JOIN days d ON d.day = substr(t.occurred_at, 1, 10)
JOIN stated_adjustments o ON o.partner_id = t.partner_id AND o.currency = t.currency AND o.log_no < t.log_no
JOIN days f ON f.day = substr(o.occurred_at, 1, 10)
WHERE d.n - f.n < 30 OR (d.n - f.n = 30 AND substr(o.occurred_at, 11) > substr(t.occurred_at, 11))
GROUP BY t.log_no, t.partner_id, t.currency;
-- What documents print of their partners, by the fields of partners.
CREATE TABLE printed AS
-- EACH \b(partner_name|address_\w+|tax_id|purchase_order|legal_note|e_invoice|buyer_reference|electronic_address)\b
SELECT document_id, replace(replace('COLUMN', 'partner_', ''), 'address_', 'address.') AS field, COLUMN AS text FROM KIND;
CREATE TABLE paper_lines AS
SELECT document_id, sum(count) AS entries, sum(CASE kind WHEN 'quote_accepted' THEN count ELSE 0 END) AS sales,
       min(currency) AS currency, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
       sum(invoice_amount) AS invoice_amount
FROM document_lines GROUP BY document_id;
CREATE TABLE billed_lines AS
SELECT d.document_id, d.number, d.month AS billed_month, d.partner_id, d.currency, d.arrangement, l.policy_id, l.kind,
       l.month, sum(l.count) AS entries, d.sign * sum(l.spot_price) AS spot_price,
       d.sign * sum(l.partner_cut) AS partner_cut, d.sign * sum(l.invoice_amount) AS invoice_amount
FROM papers d JOIN document_lines l USING (document_id) WHERE d.purpose = 'month'
GROUP BY d.document_id, d.number, d.month, d.partner_id, d.currency, d.arrangement, d.sign, l.policy_id, l.kind, l.month;

-- Roles that were granted, each until the same role was granted again or revoked.
CREATE TABLE grants AS
SELECT user_id, role, partner_id, source, log_no, until_no
FROM (SELECT r.*, lead(log_no, 1, 999999999999999) OVER (
        PARTITION BY user_id, role, partner_id, source ORDER BY log_no) AS until_no FROM user_roles r) r
WHERE action = 'grant';

-- What is in force: applications and reversals that were not taken back.
CREATE TABLE applied AS
SELECT a.* FROM payment_applications a LEFT JOIN payment_unapplications u
  USING (payment_application_id) WHERE u.log_no IS NULL;
CREATE TABLE reversed AS
SELECT r.* FROM payment_reversals r LEFT JOIN payment_reinstatements i
  USING (payment_reversal_id) WHERE i.log_no IS NULL;

-- Every change of what is open on a document, by day of entry: the issue, what settled it, and what was taken back.
CREATE TABLE document_moves AS
SELECT document_id, 'issue' AS what, entry_on, gross AS amount, log_no FROM papers WHERE document <> 'statement'
UNION ALL SELECT document_id, what, entry_on, -amount, log_no FROM balance_facts
UNION ALL SELECT credit_note_id, what, entry_on, -amount, log_no FROM balance_facts WHERE credit_note_id IS NOT NULL;
CREATE INDEX document_moves_by ON document_moves (document_id);
-- The event before each document and the one after it: between them are the facts of one act.
CREATE TABLE paper_events AS
SELECT document_id, event_no, next_no
FROM (SELECT document_id, max(CASE WHEN document_id IS NULL THEN log_no END) OVER (
               ORDER BY log_no ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS event_no,
             min(CASE WHEN document_id IS NULL THEN log_no END) OVER (
               ORDER BY log_no DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS next_no
      FROM (SELECT document_id, log_no FROM documents UNION ALL SELECT NULL, log_no FROM audit_events) f) f
WHERE document_id IS NOT NULL;
CREATE INDEX paper_events_by ON paper_events (document_id);

-- Every change of the unapplied cash of a payment, by the partner that owns it ('' while the owner is not known).
CREATE TABLE cash_moves AS
SELECT payment_id, coalesce(partner_id, '') AS partner_id, entry_on, amount, log_no FROM payments
UNION ALL SELECT payment_id, coalesce(from_partner_id, ''), entry_on, -amount, log_no FROM payment_assignments
UNION ALL SELECT payment_id, partner_id, entry_on, amount, log_no FROM payment_assignments
UNION ALL SELECT payment_id, partner_id, entry_on, -amount, log_no FROM payment_applications
UNION ALL SELECT a.payment_id, a.partner_id, u.entry_on, a.amount, u.log_no
FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
UNION ALL SELECT payment_id, coalesce(partner_id, ''), entry_on, -amount, log_no FROM payment_reversals
UNION ALL SELECT r.payment_id, coalesce(i.partner_id, ''), i.entry_on, r.amount, i.log_no
FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id);

-- The journal. Each branch debits one account and credits another with an amount, below zero to take an entry back;
-- an account has a part for each partner, policy, bank account or tax. Tax is entered on its tax point, and that of a
-- replacement on the day on which the void took out that of the replaced document, while the books of that day are open.
CREATE TABLE rates AS
SELECT rate, CASE WHEN part = '' THEN whole ELSE whole || '.' || part END AS text
FROM (SELECT rate, substr(text, 1, length(text) - 4) AS whole, rtrim(substr(text, length(text) - 3), '0') AS part
      FROM (SELECT rate, substr('0000' || rate, CASE WHEN rate < 10000 THEN length(CAST(rate AS TEXT)) ELSE 5 END) AS text
            FROM (SELECT DISTINCT rate FROM document_taxes) r) r) r;
-- The payments recorded by hand without a bank account, with the first bank line that shows them.
CREATE TABLE placed_payments AS
SELECT p.payment_id, p.partner_id, p.currency, p.amount, p.reference, l.account, l.bank_booked_on, s.log_no,
       (SELECT max(o.day) FROM (SELECT l.bank_booked_on AS day UNION SELECT p.entry_on
                                UNION SELECT m.last_day + 1 FROM book_closes c JOIN months m USING (month)
                                WHERE c.log_no < s.log_no) o) AS entry_on
FROM payments p JOIN payment_sources s USING (payment_id)
JOIN bank_lines l ON l.bank_line_id = s.bank_line_id
WHERE p.source = 'hand' AND p.account = '' AND p.method <> 'link' AND s.log_no = (
  SELECT min(f.log_no) FROM payment_sources f WHERE f.payment_id = p.payment_id AND f.bank_line_id IS NOT NULL);
CREATE TABLE entries AS
SELECT 'document_issued' AS fact, d.log_no, d.entry_on, d.issued_on AS dated_on, d.partner_id, d.currency,
       d.sign * CASE d.purpose WHEN 'month' THEN d.gross ELSE d.invoice_amount END AS amount,
       CASE d.document WHEN 'invoice' THEN 'assets:receivable:billed' ELSE 'liabilities:partner-credit' END AS debit,
       d.partner_id AS debit_part,
       CASE d.purpose WHEN 'adjustment' THEN 'income:adjustments' WHEN 'missing_shares' THEN 'assets:receivable:processor'
                      WHEN 'opening' THEN 'equity:opening-balances' ELSE 'assets:receivable:unbilled' END AS credit,
       CASE d.purpose WHEN 'opening' THEN '' ELSE d.partner_id END AS credit_part
FROM papers d WHERE d.document <> 'statement'
UNION ALL
SELECT CASE d.purpose WHEN 'month' THEN 'document_taxed' ELSE 'document_issued' END, d.log_no,
       CASE WHEN d.purpose <> 'month' OR o.reopened_on > o.taxed_from THEN d.entry_on ELSE o.taxed_from END,
       CASE d.purpose WHEN 'month' THEN o.tax_point ELSE d.issued_on END, d.partner_id, d.currency, d.sign * t.tax,
       CASE WHEN d.purpose = 'month' THEN 'assets:receivable:unbilled'
            WHEN d.document = 'invoice' THEN 'assets:receivable:billed' ELSE 'liabilities:partner-credit' END,
       d.partner_id, 'liabilities:tax',
       CASE t.country WHEN '' THEN '' ELSE t.country || ':' END || t.category || ':' || r.text
FROM document_taxes t JOIN papers d USING (document_id) JOIN rates r ON r.rate = t.rate
JOIN (SELECT d.document_id, d.reopened_on, m.last_day AS tax_point,
             CASE WHEN v.reopened_on > m.last_day THEN v.entry_on ELSE m.last_day END AS taxed_from
      FROM documents d JOIN months m USING (month) LEFT JOIN voids v ON v.document_id = d.replaces) o
  ON o.document_id = d.document_id
WHERE d.document <> 'statement';
-- While the books of the tax point are open, a void takes the tax out of them; afterwards on its own day.
CREATE TABLE void_entries AS
SELECT CASE e.fact WHEN 'document_taxed' THEN 'document_untaxed' ELSE 'document_voided' END AS fact, v.log_no,
       CASE WHEN e.fact <> 'document_taxed' OR v.reopened_on > e.dated_on THEN v.entry_on
            ELSE e.dated_on END AS entry_on,
       CASE e.fact WHEN 'document_taxed' THEN e.dated_on ELSE v.voided_on END AS dated_on, e.partner_id, e.currency,
       -e.amount AS amount, e.debit, e.debit_part, e.credit, e.credit_part
FROM voids v JOIN papers d USING (document_id) JOIN entries e ON e.log_no = d.log_no;
INSERT INTO entries SELECT * FROM void_entries;
INSERT INTO entries
SELECT b.fact, b.log_no, b.entry_on, b.dated_on, d.partner_id, d.currency, b.amount,
       CASE b.what WHEN 'payment' THEN 'liabilities:unapplied' WHEN 'write-off' THEN 'expenses:bad-debts'
                   WHEN 'difference' THEN 'expenses:bank-charges' ELSE 'liabilities:partner-credit' END,
       CASE WHEN b.what IN ('write-off', 'difference') THEN '' ELSE d.partner_id END,
       CASE b.what WHEN 'refund' THEN 'assets:bank' ELSE 'assets:receivable:billed' END,
       CASE b.what WHEN 'refund' THEN b.account ELSE d.partner_id END
FROM balance_facts b JOIN papers d USING (document_id)
UNION ALL
SELECT 'payment_received', p.log_no, p.entry_on, p.received_on, p.partner_id, p.currency, p.amount,
       CASE WHEN p.source = 'opening' THEN 'equity:opening-balances' WHEN p.method = 'link' THEN 'assets:processor'
            ELSE 'assets:bank' END,
       CASE WHEN p.source = 'opening' OR p.method = 'link' THEN '' ELSE p.account END,
       'liabilities:unapplied', coalesce(p.partner_id, '')
FROM payments p
UNION ALL
SELECT 'payment_placed', s.log_no, s.entry_on, s.bank_booked_on, s.partner_id, s.currency, s.amount,
       'assets:bank', s.account, 'assets:bank', ''
FROM placed_payments s
UNION ALL
SELECT 'payment_assigned', g.log_no, g.entry_on, g.assigned_on, g.partner_id, g.currency, g.amount,
       'liabilities:unapplied', coalesce(g.from_partner_id, ''), 'liabilities:unapplied', g.partner_id
FROM payment_assignments g
UNION ALL
SELECT 'payment_reversed', r.log_no, r.entry_on, r.reversed_on, r.partner_id, r.currency, r.amount,
       'liabilities:unapplied', coalesce(r.partner_id, ''),
       CASE WHEN r.kind = 'other' THEN r.booked_to
            WHEN p.source = 'opening' AND r.kind IN ('mistake', 'duplicate') THEN 'equity:opening-balances'
            WHEN p.method = 'link' THEN 'assets:processor' ELSE 'assets:bank' END,
       CASE WHEN r.kind = 'other' OR p.method = 'link' THEN ''
            WHEN p.source = 'opening' AND r.kind IN ('mistake', 'duplicate') THEN ''
            ELSE coalesce(l.account, p.account) END
FROM payment_reversals r JOIN payments p USING (payment_id)
LEFT JOIN bank_lines l ON l.bank_line_id = r.bank_line_id
UNION ALL
SELECT 'payment_reinstated', i.log_no, i.entry_on, i.reinstated_on, i.partner_id, r.currency, r.amount,
       CASE p.method WHEN 'link' THEN 'assets:processor' ELSE 'assets:bank' END,
       CASE p.method WHEN 'link' THEN '' ELSE coalesce(m.account, p.account) END,
       'liabilities:unapplied', coalesce(i.partner_id, '')
FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
JOIN payments p ON p.payment_id = r.payment_id
LEFT JOIN refund_matches m ON m.payment_reversal_id = r.payment_reversal_id
UNION ALL
SELECT 'payout_received', o.log_no, o.entry_on, o.received_on, NULL, o.currency, o.amount,
       'assets:bank', o.account, 'assets:processor', ''
FROM payouts o
UNION ALL
SELECT 'payout_settled', t.log_no, t.entry_on, t.entry_on, NULL, t.currency, t.fees,
       'expenses:processor-fees', '', 'assets:processor', ''
FROM payout_settlements t
UNION ALL
SELECT 'bank_booked', b.log_no, b.entry_on, b.booked_on, NULL, b.currency,
       CASE b.direction WHEN 'debit' THEN b.amount ELSE -b.amount END,
       coalesce(b.booked_to, 'assets:bank'), CASE WHEN b.booked_to IS NULL THEN b.account ELSE '' END,
       coalesce(p.booked_to, 'assets:bank'), CASE WHEN p.booked_to IS NULL THEN b.account ELSE '' END
FROM bank_bookings b LEFT JOIN bank_bookings p ON p.bank_booking_id = b.previous
UNION ALL
SELECT 'refund_matched', m.log_no, m.entry_on, m.paid_on, coalesce(f.partner_id, r.partner_id), m.currency, m.amount,
       'assets:bank', coalesce(f.account, p.account), 'assets:bank', m.account
FROM refund_matches m LEFT JOIN credit_refunds f USING (credit_refund_id)
LEFT JOIN payment_reversals r ON r.payment_reversal_id = m.payment_reversal_id
LEFT JOIN payments p ON p.payment_id = r.payment_id
UNION ALL
SELECT CASE WHEN s.amount > 0 THEN 'share_received' ELSE 'share_reversed' END, s.log_no, s.entry_on, s.occurred_on,
       s.partner_id, s.currency, s.amount - coalesce(p.amount, 0),
       'assets:processor', '', 'assets:receivable:processor', s.partner_id
FROM share_allocations s LEFT JOIN (SELECT share_allocation_id, sum(amount) AS amount FROM share_payments
  GROUP BY share_allocation_id) p ON p.share_allocation_id = s.share_allocation_id
UNION ALL
SELECT 'share_converted', s.log_no, s.entry_on, s.occurred_on, s.partner_id, s.currency, s.amount,
       'equity:conversion', '', 'assets:processor', ''
FROM share_allocations s WHERE s.currency <> s.settled_currency
UNION ALL
SELECT 'share_converted', s.log_no, s.entry_on, s.occurred_on, s.partner_id, s.settled_currency, s.settled_amount,
       'assets:processor', '', 'equity:conversion', ''
FROM share_allocations s WHERE s.currency <> s.settled_currency;
-- Covered sales leave income at the end of the month that billed them, and come back at the end of the month that earns them.
INSERT INTO entries
SELECT e.fact, s.log_no, m.last_day, m.last_day, s.partner_id, s.currency, e.sign * s.amount, 'income:sales', s.policy_id,
       'liabilities:unearned', s.partner_id
FROM revenue_schedules s
CROSS JOIN (SELECT 'sales_deferred' AS fact, 1 AS sign UNION ALL SELECT 'sales_earned', -1) e
JOIN months m ON m.month = CASE e.sign WHEN 1 THEN s.month ELSE s.release_month END
WHERE s.release_month > s.month;
-- As supplier we sell at the invoice amount; as principal at the whole price, and the partner's cut is an expense. The
-- first close decides, because each close refuses other settings than those that were recorded.
CREATE TABLE we_are AS
SELECT CASE WHEN EXISTS (SELECT 1 FROM fields f WHERE f.subject = 'settings' AND f.field = 'we_are'
                           AND f.value = 'principal' AND f.log_no < c.log_no AND f.until_no > c.log_no)
            THEN 1 ELSE 0 END AS principal
FROM (SELECT coalesce(min(log_no), 999999999999998) AS log_no FROM closed_months) c;
-- Where rows are posted: how often a debit has the price, the cut and our amount.
CREATE TABLE row_accounts AS
SELECT 'invoicing' AS arrangement, 'assets:receivable:unbilled' AS control, 'partner' AS part, 0 AS price, 0 AS cut, 1 AS amount
UNION ALL SELECT 'connected_account', 'assets:receivable:processor', 'partner', 0, 0, 1
UNION ALL SELECT '', 'income:sales', 'policy', -principal, 0, principal - 1 FROM we_are
UNION ALL SELECT '', 'expenses:partner-cut', 'partner', 0, 1, 0 FROM we_are WHERE principal = 1;
CREATE TABLE postings AS
SELECT entry_on, dated_on, fact, log_no, debit AS control, debit_part AS part,
       CASE fact WHEN 'payment_assigned' THEN nullif(debit_part, '') ELSE partner_id END AS partner_id, currency, amount
FROM entries WHERE debit <> credit OR debit_part <> credit_part
UNION ALL SELECT entry_on, dated_on, fact, log_no, credit, credit_part, partner_id, currency, -amount
FROM entries WHERE debit <> credit OR debit_part <> credit_part;
CREATE TABLE journal AS
SELECT d.month, p.control, p.control || CASE p.part WHEN '' THEN '' ELSE ':' || p.part END AS account, p.partner_id,
       p.currency, sum(p.amount) AS amount
FROM postings p JOIN days d ON d.n = p.entry_on
GROUP BY d.month, p.control, p.part, p.partner_id, p.currency
UNION ALL
SELECT posted_month, a.control, a.control || ':' || CASE a.part WHEN 'policy' THEN policy_id ELSE partner_id END,
       partner_id, currency, sum(a.price * spot_price + a.cut * partner_cut + a.amount * invoice_amount)
FROM row_groups g JOIN row_accounts a ON a.arrangement IN ('', g.arrangement)
GROUP BY posted_month, a.control, a.part, CASE a.part WHEN 'policy' THEN policy_id ELSE partner_id END, partner_id, currency;

-- The facts that name an event, and when they were recorded, if they say it.
CREATE TABLE fact_events AS
-- EACH \b(?!expires)(\w+_at):time event_id
SELECT 'KIND' AS kind, log_no, event_id, COLUMN AS recorded_at FROM KIND
UNION ALL SELECT 'approval_requests', log_no, event_id, requested_at FROM approval_requests
UNION ALL SELECT 'credit_applications', log_no, event_id, recorded_at FROM credit_applications
UNION ALL SELECT 'client_secrets', log_no, event_id, issued_at FROM client_secrets
UNION ALL SELECT 'ledger_rows', first_no, event_id, NULL FROM row_events;
CREATE INDEX fact_events_by ON fact_events (event_id);
CREATE TABLE reopened AS
-- EACH \b(reopened_on)\b
SELECT log_no, COLUMN AS reopened_on FROM KIND;
-- The facts with an entry in the journal: their own day, the day of entry, and the first day whose books were open.
CREATE TABLE dated AS
SELECT f.*, (SELECT max(m.last_day + 1) FROM book_closes b JOIN months m USING (month) WHERE b.log_no < f.log_no)
         AS opens_on
FROM (SELECT 'document_issued' AS fact, log_no, issued_on AS dated_on, entry_on, reopened_on,
             CASE purpose WHEN 'opening' THEN 0 ELSE 1 END AS states_reopened, issued_at AS recorded_at FROM documents
      UNION ALL SELECT 'document_voided', log_no, voided_on, entry_on, reopened_on, 2, recorded_at FROM voids
      UNION ALL SELECT b.fact, b.log_no, b.dated_on, b.entry_on, r.reopened_on, 2, b.recorded_at
      FROM balance_facts b JOIN reopened r USING (log_no)
      UNION ALL SELECT e.fact, e.log_no, e.dated_on, e.entry_on, NULL, 0, f.recorded_at
      FROM entries e JOIN fact_events f USING (log_no)
      WHERE e.fact NOT IN ('document_voided', 'credit_applied', 'credit_released', 'written_off', 'write_off_undone',
                           'payment_placed', 'small_difference_undone', 'share_converted')) f;
-- The actions whose events record facts of a kind, and whether they always do.
CREATE TABLE recording AS
WITH always(kind, action) AS (VALUES
  ('openings', 'opening.import'), ('feed_statements', 'feed.state'), ('holds', 'invoice.hold'), ('hold_releases', 'invoice.release'),
  ('portal_deliveries', 'invoice.delivered'), ('invoice_disputes', 'dispute.open'), ('invoice_dispute_closings', 'dispute.close'),
  ('reminder_pauses', 'reminder.pause'), ('reminder_pauses', 'reminder.resume'),
  ('write_offs', 'invoice.write_off'), ('write_off_reversals', 'invoice.write_off_undone'),
  ('book_closes', 'books.close'), ('feed_decisions', 'feed.accept'), ('credit_refunds', 'credit.refund'),
  ('credit_refund_returns', 'credit.refund_returned'), ('api_clients', 'client.create'),
  ('client_secrets', 'client.create'), ('client_revocations', 'client.revoke'), ('client_secrets', 'client.rotate'),
  ('pauses', 'ledger.pause'), ('resumptions', 'ledger.resume'), ('email_bounces', 'email.bounces'),
  ('users', 'user.invite'), ('users', 'user.provision'), ('user_ends', 'user.deactivate'),
  ('user_roles', 'user.invite'), ('user_roles', 'user.provision'), ('user_roles', 'user.role'),
  ('user_roles', 'user.claims'), ('user_identities', 'user.identify'), ('passkeys', 'user.add_passkey'),
  ('passkey_ends', 'user.remove_passkey'), ('erasures', 'person.erase'),
  ('processor_event_erasures', 'processor_event.erase'), ('bank_bookings', 'bank.book'), ('bank_bookings', 'bank.unbook'),
  ('approval_requests', 'approval.request'), ('approval_decisions', 'approval.approve'),
  ('approval_decisions', 'approval.reject'), ('approval_decisions', 'approval.withdraw'), ('voids', 'invoice.void'),
  ('bank_files', 'payment.import'), ('balance_transaction_closings', 'processor.close'),
  ('gl_exports', 'gl.export'), ('forgotten_payer_accounts', 'payment.forget_account'),
  ('payments', 'payment.record'), ('payment_applications', 'payment.apply'), ('reversal_evidence', 'processor.reverse'),
  ('payment_unapplications', 'payment.unapply'), ('payment_reversals', 'payment.reverse'),
  ('payment_assignments', 'payment.assign'), ('credit_applications', 'credit.apply'),
  ('credit_releases', 'credit.unapply'), ('log_keys', 'signing_key.change'),
  ('held_row_decisions', 'rows.release'), ('held_row_decisions', 'rows.discard'), ('ledger_rows', 'rows.release'),
  ('held_row_decisions', 'reversal.grant'), ('held_row_decisions', 'reversal.refuse'), ('ledger_rows', 'reversal.grant'),
  ('held_row_decisions', 'reversal.taken_back'), ('ledger_rows', 'reversal.taken_back'), ('reversal_grounds', 'reversal.taken_back'),
  ('reversal_grounds', 'reversal.grant'), ('reversal_grounds', 'quote.reverse'), ('held_rows', 'reversal.request')),
sometimes(kind, action) AS (VALUES
  ('user_limits', 'user.invite'), ('user_limits', 'user.role'),
  ('voids', 'invoice.rerun'), ('voids', 'opening.reverse'), ('pauses', 'database.restore'),
  ('user_identities', 'user.provision'), ('user_identities', 'user.claims'), ('skipped_numbers', 'ledger.resume'),
  ('log_continues', 'ledger.resume'), ('settlement_files', 'processor.import'), ('share_payments', 'shares.pay'),
  ('payment_exception_closings', 'payment.close_exception'), ('payment_exception_closings', 'payment.assign'),
  ('payment_exception_closings', 'payment.apply'), ('credit_refund_returns', 'payment.import'),
  ('bank_bookings', 'payment.import'), ('feed_decisions', 'month.close'), ('credit_applications', 'month.close'), ('credit_applications', 'invoice.rerun'),
  ('credit_applications', 'invoice.credit'), ('credit_applications', 'shares.bill'),
  ('credit_applications', 'payment.apply'), ('credit_applications', 'payment.import'),
  ('credit_applications', 'payment.record'), ('credit_applications', 'payment.events'),
  ('credit_applications', 'shares.pay'), ('credit_releases', 'invoice.void'), ('credit_releases', 'invoice.rerun'),
  ('credit_releases', 'opening.reverse'), ('ledger_rows', 'ledger.import'), ('held_rows', 'ledger.import'), ('ledger_rows', 'quote.accept'),
  ('ledger_rows', 'requote.accept'), ('ledger_rows', 'quote.reverse'), ('ledger_rows', 'processor.reverse'),
  ('reversal_grounds', 'ledger.import'), ('reversal_grounds', 'rows.release'), ('reversal_grounds', 'processor.reverse'),
  ('ledger_rows', 'rows.reverse'), ('held_rows', 'rows.reverse'), ('reversal_grounds', 'rows.reverse'),
  ('held_row_decisions', 'processor.reverse'), ('cancellation_terms', 'partner.import'),
  ('cancellation_terms', 'partner.change')),
money_kind(kind) AS (VALUES ('payments'), ('payment_sources'), ('payment_assignments'), ('payment_applications'), ('payment_suggestions'),
  ('small_differences'), ('payment_reversals'), ('payment_reinstatements'), ('payment_unapplications'), ('payouts'),
  ('payout_settlements'), ('bank_line_outcomes'), ('disputes'), ('dispute_outcomes'), ('processor_event_outcomes'),
  ('refund_matches'), ('account_payouts')),
money_action(action) AS (VALUES ('payment.record'), ('payment.import'), ('payment.events'), ('payment.apply'), ('payment.unapply'),
  ('payment.reverse'), ('payment.assign'), ('payment.settle'), ('payment.close_exception'), ('shares.pay'),
  ('opening.import'), ('opening.reverse'), ('credit.refund'), ('credit.refund_returned')),
share_kind(kind) AS (VALUES ('balance_transactions'), ('processor_readings'), ('share_allocations'), ('payout_contents')),
share_action(action) AS (VALUES ('processor.import'), ('processor.read'), ('processor.paid_out'), ('processor.match'), ('processor.unmatch'))
SELECT kind, action, max(always) AS always
FROM (SELECT kind, action, 1 AS always FROM always UNION ALL SELECT kind, action, 0 FROM sometimes
      UNION ALL SELECT kind, action, 0 FROM money_kind CROSS JOIN money_action
      UNION ALL SELECT kind, action, 0 FROM share_kind CROSS JOIN share_action) r GROUP BY kind, action;
CREATE TABLE fact_reasons AS
-- EACH \b(reason)\b.* event_id
SELECT 'KIND' AS kind, log_no, event_id, COLUMN AS reason FROM KIND;
CREATE TABLE fact_ids AS
-- EACH (\w+)\??!
SELECT 'KIND.COLUMN' AS place, COLUMN AS id FROM KIND WHERE COLUMN IS NOT NULL;
-- What events state about their facts, by the facts: always, or if an event of the action states it.
CREATE TABLE stated_facts AS
SELECT event_id, 'payment.record' AS action, 'reference' AS path, reference AS value, 0 AS always FROM payments
UNION ALL SELECT event_id, 'payment.record', 'currency', currency, 0 FROM payments
UNION ALL SELECT event_id, 'payment.record', 'account', account, 0 FROM payments
UNION ALL SELECT event_id, 'payment.reverse', 'kind', kind, 0 FROM payment_reversals
UNION ALL SELECT event_id, 'payment.reverse', 'code', code, 0 FROM payment_reversals
UNION ALL SELECT event_id, 'payment.reverse', 'account', booked_to, 0 FROM payment_reversals
UNION ALL SELECT event_id, 'payment.reverse', 'amount', plain, 0 FROM payment_reversals JOIN numerals USING (currency, amount)
UNION ALL SELECT event_id, 'payment.assign', 'from', from_partner_id, 0 FROM payment_assignments WHERE kind = 'named'
UNION ALL SELECT event_id, 'payment.assign', 'to', partner_id, 0 FROM payment_assignments WHERE kind = 'named'
UNION ALL SELECT event_id, NULL, 'sha256', sha256, 1 FROM bank_files
UNION ALL SELECT event_id, NULL, 'format', format, 1 FROM bank_files
UNION ALL SELECT f.event_id, NULL, 'lines', CAST(coalesce(sum(s.lines), 0) AS TEXT), 1
FROM bank_files f LEFT JOIN bank_statements s USING (bank_file_id) GROUP BY f.bank_file_id, f.event_id
UNION ALL SELECT event_id, NULL, 'lines', CAST(lines AS TEXT), 0 FROM settlement_files
UNION ALL SELECT event_id, NULL, 'sha256', sha256, 1 FROM openings
UNION ALL SELECT event_id, NULL, 'cut_over_on', day, 1 FROM openings LEFT JOIN days ON n = cut_over_on
UNION ALL SELECT event_id, NULL, 'month', month, 1 FROM feed_statements
UNION ALL SELECT event_id, NULL, 'entries', CAST(entries AS TEXT), 1 FROM feed_statements
UNION ALL SELECT event_id, NULL, 'complete', CASE complete WHEN 1 THEN 'true' ELSE 'false' END, 1 FROM feed_statements
UNION ALL SELECT event_id, 'dispute.open', 'promised_on', day, 0 FROM invoice_disputes LEFT JOIN days ON n = promised_on
UNION ALL SELECT event_id, NULL, 'until', day, 0 FROM reminder_pauses LEFT JOIN days ON n = until
UNION ALL SELECT event_id, NULL, 'limits.from', from_month, 1 FROM user_limits
UNION ALL SELECT event_id, NULL, 'limits.to', to_month, 1 FROM user_limits
UNION ALL SELECT event_id, NULL, 'limits.until', day, 1 FROM user_limits LEFT JOIN days ON n = last_day
UNION ALL SELECT event_id, NULL, 'credential_id', credential_id, 1 FROM passkeys
UNION ALL SELECT x.event_id, NULL, 'credential_id', p.credential_id, 1 FROM passkey_ends x JOIN passkeys p USING (passkey_id)
UNION ALL SELECT event_id, NULL, 'issuer', issuer, 1 FROM user_identities
UNION ALL SELECT event_id, NULL, 'action', action, 1 FROM approval_requests
UNION ALL SELECT event_id, NULL, 'request', CAST(request_id AS TEXT), 1 FROM approval_decisions
UNION ALL SELECT event_id, NULL, 'reason', reason, 0 FROM approval_decisions
UNION ALL SELECT event_id, 'payment.close_exception', 'reason', reason, 0 FROM payment_exception_closings
UNION ALL SELECT event_id, NULL, 'partner_id', partner_id, 1 FROM api_clients
UNION ALL SELECT r.event_id, NULL, 'partner_id', c.partner_id, 1
FROM client_revocations r LEFT JOIN api_clients c USING (client_id)
UNION ALL SELECT s.event_id, 'client.create', 'valid_days', CAST(b.n - a.n AS TEXT), 0
FROM client_secrets s LEFT JOIN days a ON a.day = substr(s.issued_at, 1, 10)
LEFT JOIN days b ON b.day = substr(s.expires_at, 1, 10)
UNION ALL SELECT event_id, NULL, 'format', format, 1 FROM gl_exports
UNION ALL SELECT event_id, NULL, 'part', CAST(part AS TEXT), 1 FROM gl_exports
UNION ALL SELECT event_id, NULL, 'kind', kind, 1 FROM gl_exports;
CREATE TABLE event_subjects AS
SELECT f.event_id, f.action, d.number
FROM (SELECT event_id, 'invoice.void' AS action, document_id FROM voids
      UNION ALL SELECT event_id, 'invoice.hold', document_id FROM holds
      UNION ALL SELECT event_id, 'invoice.release', document_id FROM hold_releases
      UNION ALL SELECT event_id, 'invoice.delivered', document_id FROM portal_deliveries
      UNION ALL SELECT event_id, 'dispute.open', document_id FROM invoice_disputes
      UNION ALL SELECT event_id, 'dispute.close', document_id FROM invoice_dispute_closings
      UNION ALL SELECT event_id, CASE fact WHEN 'written_off' THEN 'invoice.write_off'
          WHEN 'write_off_undone' THEN 'invoice.write_off_undone' WHEN 'credit_refunded' THEN 'credit.refund'
          WHEN 'credit_applied' THEN 'credit.apply' WHEN 'credit_released' THEN 'credit.unapply' END,
        coalesce(credit_note_id, document_id) FROM balance_facts WHERE what NOT IN ('payment', 'difference')) f
JOIN papers d ON d.document_id = f.document_id
UNION ALL SELECT event_id, 'feed.state', partner_id FROM feed_statements
UNION ALL SELECT event_id, 'gl.export', month FROM gl_exports
UNION ALL SELECT event_id, 'client.create', client_id FROM api_clients
UNION ALL SELECT event_id, 'client.revoke', client_id FROM client_revocations
UNION ALL SELECT event_id, 'client.create', client_id FROM client_secrets
UNION ALL SELECT event_id, 'client.rotate', client_id FROM client_secrets;
CREATE TABLE gl_last AS
SELECT month, format FROM (SELECT month, format, books_closed, row_number() OVER (PARTITION BY month, format
                             ORDER BY part DESC) AS back FROM gl_exports) e WHERE back = 1 AND books_closed = 1;

-- CHECKS

-- sold_once: A sale, requote or reversal of a partner is in the ledger once, known by its kind and own id.
-- whole
-- columns at partner times:int
SELECT 'quote ' || quote_id, partner_id, sales FROM quotes WHERE sales > 1
UNION ALL
SELECT CASE kind WHEN 'reversal' THEN 'reversal ' ELSE 'requote ' END || coalesce(reversal_id, requote_id), partner_id,
       count(*)
FROM named_rows WHERE kind <> 'quote_accepted'
GROUP BY partner_id, kind, coalesce(reversal_id, requote_id) HAVING count(*) > 1;

-- row_ids: A sale names its quote only, a requote also its requote, a reversal also its reversal; there are no other kinds.
-- columns at partner kind wrong_rows:int
SELECT 'rows of event ' || event_id, partner_id, kind, misnamed FROM row_groups WHERE misnamed > 0;

-- row_adds_up: The price is the partner's cut and our amount; none is below zero, and in a reversal none is above zero.
-- columns at partner policy kind wrong_rows:int
SELECT 'rows of event ' || event_id, partner_id, policy_id, kind, unbalanced FROM row_groups
WHERE unbalanced > 0;

-- row_cover: The cover of a row that names its last day names its first day, and does not end before it.
-- columns at partner policy kind rows:int
SELECT 'rows of event ' || event_id, partner_id, policy_id, kind, uncovered FROM row_groups
WHERE uncovered > 0;

-- quote_known: A requote or reversal belongs to a quote in the ledger with the same partner, policy and currency.
-- whole
-- columns at partner sales:int policy other_policy currency other_currency
SELECT 'quote ' || quote_id, partner_id, sales, policy_id, other_policy_id, currency, other_currency FROM quotes
WHERE sales = 0 OR policy_id <> other_policy_id OR currency <> other_currency;

-- quote_not_below_zero: Reversals never take the price, the cut or our amount of a quote below zero.
-- whole
-- columns at partner currency spot_price:amount partner_cut:amount invoice_amount:amount
SELECT 'quote ' || quote_id, partner_id, currency, spot_price, partner_cut, invoice_amount FROM quotes
WHERE spot_price < 0 OR partner_cut < 0 OR invoice_amount < 0;

-- requote_known: A reversal that names a requote names one of its own quote.
-- whole
-- columns at partner quote requote
SELECT 'reversal ' || r.reversal_id, r.partner_id, r.quote_id, r.requote_id
FROM named_rows r LEFT JOIN named_rows q ON q.partner_id = r.partner_id AND q.quote_id = r.quote_id
  AND q.kind = 'requote_accepted' AND q.requote_id = r.requote_id
WHERE r.kind = 'reversal' AND r.requote_id IS NOT NULL AND q.log_no IS NULL AND r.log_no NOT IN (SELECT log_no FROM unread);

-- reversal_routed_as_sale: A reversal is invoiced or routed by the processor as the sale or requote that it reverses was.
-- whole
-- columns at partner reversal_is sale_was
SELECT 'reversal ' || r.reversal_id, r.partner_id, r.arrangement, coalesce(q.arrangement, s.arrangement)
FROM named_rows r LEFT JOIN quotes s ON s.partner_id = r.partner_id AND s.quote_id = r.quote_id
LEFT JOIN named_rows q ON q.partner_id = r.partner_id AND q.quote_id = r.quote_id
  AND q.kind = 'requote_accepted' AND q.requote_id = r.requote_id
WHERE r.kind = 'reversal' AND r.arrangement <> CASE WHEN r.requote_id IS NULL THEN s.arrangement ELSE q.arrangement END;

-- row_month: A row belongs to the month in which it was accepted in its time zone.
-- whole
-- columns at partner month time_zone first_accepted_at last_accepted_at
SELECT 'rows of event ' || g.event_id, g.partner_id, g.month, g.time_zone, g.first_at, g.last_at
FROM row_groups g LEFT JOIN months m USING (month)
LEFT JOIN month_zones a ON a.time_zone = g.time_zone AND a.month = g.month
LEFT JOIN month_zones b ON b.time_zone = g.time_zone AND b.month = m.next
WHERE a.begins_at IS NULL OR m.month IS NULL OR g.first_at < a.begins_at
   OR g.last_at >= coalesce(b.begins_at, m.next || '-01T12:00:00.000000Z');

-- month_zone_plausible: A month begins in a time zone within 14 hours of its first midnight in UTC, at a whole quarter of an hour.
-- columns at begins_at
SELECT 'time zone ' || z.time_zone || ', month ' || z.month, z.begins_at
FROM month_zones z LEFT JOIN months m USING (month) LEFT JOIN days d ON d.day = substr(z.begins_at, 1, 10)
WHERE m.month IS NULL OR d.n IS NULL OR d.n < m.first_day - 1 OR d.n > m.first_day
   OR (d.n = m.first_day AND substr(z.begins_at, 12, 5) > '12:00')
   OR (d.n < m.first_day AND substr(z.begins_at, 12, 5) < '10:00')
   OR substr(z.begins_at, 15) NOT IN ('00:00.000000Z', '15:00.000000Z', '30:00.000000Z', '45:00.000000Z');

-- row_not_early: No row was accepted more than five minutes after it was recorded.
-- columns at partner last_accepted_at first_recorded_at
SELECT 'rows of event ' || g.event_id, g.partner_id, g.last_at, g.first_recorded
FROM row_groups g LEFT JOIN days a ON a.day = substr(g.last_at, 1, 10)
LEFT JOIN days b ON b.day = substr(g.first_recorded, 1, 10)
LEFT JOIN minutes c ON c.minute = substr(g.last_at, 12, 5) LEFT JOIN minutes d ON d.minute = substr(g.first_recorded, 12, 5)
WHERE g.last_at > g.first_recorded AND coalesce(1440 * (a.n - b.n) + c.n - d.n, 9) > 5;

-- row_posted: A row is posted to its own month; or if that was closed before, to the month that was open then.
-- whole
-- columns at partner month posted_month rows:int
SELECT 'rows of event ' || g.event_id, g.partner_id, g.month, g.posted_month, g.entries
FROM row_groups g LEFT JOIN closed_months p ON p.month = g.posted_month
LEFT JOIN months n ON n.next = g.posted_month LEFT JOIN closed_months b ON b.month = n.month
WHERE g.posted_month < g.month OR p.log_no < g.last_no
   OR (g.posted_month > g.month AND coalesce(b.log_no > g.first_no, 1 = 1));

-- row_of_event: A row names an event that was recorded just before it, at the same time; an acceptance or a reversal has its quote and kind.
-- whole
-- columns at action event_names event_at rows:int kind quote first_recorded_at last_recorded_at
SELECT 'rows of event ' || r.event_id, e.action, e.subject, e.occurred_at, r.entries, r.kind, r.quote_id,
       r.first_recorded, r.last_recorded
FROM row_events r LEFT JOIN audit_events e USING (event_id)
WHERE e.event_id IS NULL OR r.first_recorded <> e.occurred_at OR r.last_recorded <> e.occurred_at
   OR (e.action IN ('quote.accept', 'requote.accept', 'quote.reverse') AND (r.entries <> 1 OR r.quote_id <> e.subject))
   OR CASE e.action WHEN 'quote.accept' THEN r.kind <> 'quote_accepted' WHEN 'requote.accept' THEN r.kind <> 'requote_accepted'
                    ELSE e.action IN ('quote.reverse', 'processor.reverse', 'rows.reverse')
                      AND (r.kind <> 'reversal' OR r.last_kind <> 'reversal') END;

-- rows_of_every_event: An import, release or reversal states the totals of its rows, and an acceptance has its row.
-- whole
-- columns at action event_names
SELECT 'event ' || e.event_id, e.action, e.subject
FROM audit_events e LEFT JOIN row_events r USING (event_id)
LEFT JOIN (SELECT DISTINCT event_id FROM details WHERE substr(path, 1, 6) = 'totals') t ON t.event_id = e.event_id
WHERE (e.action IN ('quote.accept', 'requote.accept') AND r.event_id IS NULL)
   OR (e.action IN ('ledger.import', 'rows.release', 'rows.reverse', 'reversal.grant', 'reversal.taken_back', 'quote.reverse') AND t.event_id IS NULL);

-- import_totals: An import's rows are as many, with the same sums of each currency, as its event states.
-- whole
-- columns at currency field stated of_rows
SELECT 'event ' || coalesce(t.event_id, r.event_id), coalesce(t.currency, r.currency),
       coalesce(t.field, r.field), t.value, r.value
FROM row_totals r FULL JOIN stated_totals t
  ON t.event_id = r.event_id AND t.currency = r.currency AND t.field = r.field
WHERE (t.value IS NULL AND r.event_id IN (SELECT event_id FROM stated_totals)) OR r.value IS NULL OR t.value <> r.value;

-- receipts: The receipts of an import or reversal are its rows: their number and sums by month, partner and currency.
-- columns at partner month currency stated_rows:int counted_rows:int stated_price:amount price_of_rows:amount
-- columns stated_cut:amount cut_of_rows:amount stated_amount:amount amount_of_rows:amount
SELECT 'event ' || event_id, partner_id, posted_month, currency, sum(stated), sum(counted),
       sum(spot_price), sum(spot), sum(partner_cut), sum(cut), sum(invoice_amount), sum(summed)
FROM (SELECT event_id, partner_id, posted_month, currency, entries AS stated, spot_price, partner_cut, invoice_amount,
             0 AS counted, 0 AS spot, 0 AS cut, 0 AS summed FROM ledger_receipts
      UNION ALL
      SELECT g.event_id, g.partner_id, g.posted_month, g.currency, 0, 0, 0, 0, g.entries, g.spot_price, g.partner_cut,
             g.invoice_amount
      FROM row_groups g LEFT JOIN audit_events e USING (event_id)
      WHERE e.action IS NULL OR e.action NOT IN ('quote.accept', 'requote.accept')) x
WHERE posted_month >= (SELECT CASE first WHEN 0 THEN '' ELSE from_month END FROM pack)
GROUP BY event_id, partner_id, posted_month, currency
HAVING sum(stated) <> sum(counted) OR sum(spot_price) <> sum(spot) OR sum(partner_cut) <> sum(cut)
    OR sum(invoice_amount) <> sum(summed);

-- import_count: An import accepted and held as many rows as it states, and a release or discard decided as many.
-- whole
-- columns at stated counted:int
SELECT 'event ' || d.event_id, d.value, coalesce(r.entries, 0)
FROM details d LEFT JOIN (SELECT event_id, sum(entries) AS entries FROM row_events GROUP BY event_id) r
  ON r.event_id = d.event_id
WHERE d.action IN ('ledger.import', 'rows.release', 'rows.reverse', 'reversal.grant', 'reversal.taken_back') AND d.path = 'accepted'
  AND d.value <> CAST(coalesce(r.entries, 0) AS TEXT)
UNION ALL
SELECT 'held or decided by event ' || e.event_id, d.value, coalesce(h.rows, 0)
FROM audit_events e
LEFT JOIN details d ON d.event_id = e.event_id
  AND d.path = CASE WHEN e.action = 'ledger.import' THEN 'held'
                    WHEN e.action IN ('rows.release', 'reversal.grant', 'reversal.taken_back') THEN 'accepted' ELSE 'discarded' END
LEFT JOIN (SELECT event_id, count(*) AS rows FROM held_rows GROUP BY event_id
           UNION ALL SELECT event_id, count(*) FROM held_row_decisions GROUP BY event_id) h ON h.event_id = e.event_id
WHERE e.action IN ('ledger.import', 'rows.release', 'rows.discard', 'reversal.grant', 'reversal.refuse', 'reversal.taken_back')
  AND coalesce(d.value, '0') <> CAST(coalesce(h.rows, 0) AS TEXT);

-- held_row: A held row repeats a row known before, follows a held sale or reversal, or is a reversal of a known sale; it adds up.
-- whole
-- columns at partner kind sign currency spot_price:amount
SELECT 'held row ' || h.held_row_id, h.partner_id, h.kind, h.sign, h.currency, h.spot_price
FROM held_rows h LEFT JOIN sales_known k ON k.partner_id = h.partner_id AND k.log_no < h.log_no AND CASE h.sign
    WHEN 'held_sale' THEN k.held = 1 AND (k.kind = 'quote_accepted' AND k.own_id = h.quote_id
      OR k.kind = 'requote_accepted' AND k.own_id = h.requote_id AND h.kind = 'reversal')
    WHEN 'held_reversal' THEN k.held = 1 AND k.kind = 'reversal' AND k.quote_id = h.quote_id AND h.kind <> 'quote_accepted'
    ELSE CASE WHEN h.sign IN ('too_late', 'more_than_left', 'other_split', 'cover_began', 'cover_unknown', 'ceiling')
      THEN k.held = 0 AND k.kind = 'quote_accepted' AND k.own_id = h.quote_id AND h.kind = 'reversal'
    ELSE k.kind = h.kind AND k.own_id = h.repeats AND k.own_id <> coalesce(h.reversal_id, h.requote_id, h.quote_id)
      AND k.currency = h.currency AND k.spot_price = h.spot_price AND k.partner_cut = h.partner_cut
      AND CASE h.sign WHEN 'same_enrollment' THEN k.enrollment_id = h.enrollment_id
                      WHEN 'same_order' THEN k.order_reference = h.order_reference
                        AND coalesce(k.enrollment_id = h.enrollment_id, 1 = 1)
                      WHEN 'same_quote' THEN k.quote_id = h.quote_id AND h.kind <> 'quote_accepted'
                      ELSE h.sign = 'same_id' END
      AND (h.sign = 'same_id' OR k.policy_id = h.policy_id AND substr(k.accepted_at, 1, 19) = substr(h.accepted_at, 1, 19)) END
    END
WHERE k.own_id IS NULL OR h.spot_price <> h.partner_cut + h.invoice_amount;

-- held_row_decided: A held row is in the ledger exactly if its decision recorded it: as it was, or a reversal with other amounts.
-- whole
-- columns at decision action partner row_kind
SELECT 'decision on held row ' || d.held_row_id, d.decision, e.action, h.partner_id, h.kind
FROM held_row_decisions d LEFT JOIN held_rows h ON h.held_row_id = d.held_row_id AND h.log_no < d.log_no
LEFT JOIN audit_events e ON e.event_id = d.event_id
LEFT JOIN named_rows r ON r.event_id = d.event_id AND r.partner_id = h.partner_id AND r.kind = h.kind AND r.quote_id = h.quote_id
  AND r.requote_id IS NOT DISTINCT FROM h.requote_id AND r.reversal_id IS NOT DISTINCT FROM h.reversal_id
  AND r.enrollment_id IS NOT DISTINCT FROM h.enrollment_id AND r.policy_id = h.policy_id AND r.currency = h.currency
  AND r.accepted_at = h.accepted_at
  AND (r.spot_price = h.spot_price AND r.partner_cut = h.partner_cut OR e.action IN ('reversal.grant', 'processor.reverse') AND h.kind = 'reversal')
  AND r.order_reference IS NOT DISTINCT FROM h.order_reference AND r.cover_from IS NOT DISTINCT FROM h.cover_from
  AND r.cover_to IS NOT DISTINCT FROM h.cover_to
WHERE h.log_no IS NULL
   OR CASE d.decision WHEN 'recorded' THEN e.action NOT IN ('rows.release', 'reversal.grant', 'reversal.taken_back', 'processor.reverse')
                      WHEN 'discarded' THEN e.action NOT IN ('rows.discard', 'reversal.refuse') ELSE 1 = 1 END
   OR (d.decision = 'recorded' AND r.log_no IS NULL)
UNION ALL
SELECT 'held row ' || h.held_row_id, d.decision, e.action, h.partner_id, h.kind
FROM held_rows h LEFT JOIN held_row_decisions d USING (held_row_id)
JOIN named_rows r ON r.partner_id = h.partner_id AND r.kind = h.kind AND r.quote_id = h.quote_id
  AND coalesce(r.reversal_id, r.requote_id, r.quote_id) = coalesce(h.reversal_id, h.requote_id, h.quote_id)
JOIN audit_events e ON e.event_id = r.event_id
WHERE e.action NOT IN ('quote.accept', 'requote.accept') AND (d.decision IS NULL OR d.decision <> 'recorded');

-- reversal_ground: A reversal has a ground, which its event recorded just before it; a ground has its reversal.
-- columns at partner ground
SELECT 'reversal ' || coalesce(r.reversal_id, g.reversal_id), coalesce(r.partner_id, g.partner_id), g.ground
FROM (SELECT * FROM named_rows WHERE kind = 'reversal') r
FULL JOIN reversal_grounds g ON g.partner_id = r.partner_id AND g.reversal_id = r.reversal_id AND g.quote_id = r.quote_id
WHERE g.log_no IS NULL OR r.log_no IS NULL OR g.log_no > r.log_no OR g.event_id <> r.event_id
   OR g.ground NOT IN ('window', 'pro_rata', 'full', 'proportion', 'remainder', 'person', 'processor');

-- ground_of_person: A person allowed a reversal by a decision on its held row; a rule allowed only what a partner, an import or finance sent.
-- whole
-- columns at partner ground action
SELECT 'reversal ' || g.reversal_id, g.partner_id, g.ground, e.action
FROM reversal_grounds g LEFT JOIN audit_events e USING (event_id)
LEFT JOIN held_rows h ON h.held_row_id = g.held_row_id AND h.partner_id = g.partner_id AND h.reversal_id = g.reversal_id
LEFT JOIN held_row_decisions d ON d.held_row_id = h.held_row_id AND d.event_id = g.event_id
WHERE CASE g.ground WHEN 'person' THEN d.log_no IS NULL OR e.action NOT IN ('rows.release', 'reversal.grant')
                    WHEN 'processor' THEN e.action IN ('rows.release', 'reversal.grant')
                    ELSE e.action NOT IN ('ledger.import', 'quote.reverse', 'rows.reverse') OR g.held_row_id IS NOT NULL END
   OR (g.held_row_id IS NOT NULL AND h.log_no IS NULL);

-- ground_of_terms: A reversal was judged by the cancellation terms of its policy on the day of the sale, or there were none.
-- whole
-- columns at partner policy sold_on:day judged_by:int in_force:int
SELECT 'reversal ' || g.reversal_id, g.partner_id, g.policy_id, g.sold_on, g.cancellation_terms_id, t.cancellation_terms_id
FROM grounded g
LEFT JOIN (SELECT r.log_no AS row_no, t.cancellation_terms_id, t.window_days
           FROM grounded r JOIN cancellation_terms t ON t.partner_id = r.partner_id AND t.policy_id = r.policy_id
             AND t.log_no < r.ground_no AND coalesce(t.from_day <= r.sold_on, 1 = 1)
           LEFT JOIN cancellation_terms l ON l.partner_id = r.partner_id AND l.policy_id = r.policy_id
             AND l.log_no < r.ground_no AND (l.event_id > t.event_id OR l.event_id = t.event_id
               AND l.from_day <= r.sold_on AND coalesce(l.from_day > t.from_day, 1 = 1))
           WHERE l.log_no IS NULL) t ON t.row_no = g.log_no
WHERE g.sold_on IS NOT NULL
  AND CASE WHEN t.window_days IS NOT NULL THEN t.cancellation_terms_id END IS DISTINCT FROM g.cancellation_terms_id;

-- ground_in_time: A rule allowed a reversal in its time: the days of the sale and of the judgment, the window and the cover.
-- whole
-- columns at partner ground sold_at sold_on:day accepted_at judged_on:day window_days:int cover_from:day
SELECT 'reversal ' || g.reversal_id, g.partner_id, g.ground, g.sold_at, g.sold_on, g.accepted_at, g.judged_on, t.window_days,
       g.cover_from
FROM grounded g LEFT JOIN cancellation_terms t USING (cancellation_terms_id)
LEFT JOIN days s ON s.day = substr(g.sold_at, 1, 10) LEFT JOIN days a ON a.day = substr(g.accepted_at, 1, 10)
LEFT JOIN days r ON r.day = substr(g.recorded_at, 1, 10)
WHERE g.sold_on IS NOT NULL
  AND (coalesce(abs(g.sold_on - s.n) > 1, 1 = 1)
    OR coalesce(abs(g.judged_on - CASE WHEN a.n < r.n - 31 THEN r.n - 31 ELSE a.n END) > 1, 1 = 1)
    OR CASE g.ground WHEN 'window' THEN coalesce(g.judged_on - g.sold_on > t.window_days, 1 = 1)
                     WHEN 'proportion' THEN g.judged_on - g.sold_on > 30
                     WHEN 'remainder' THEN g.judged_on - g.sold_on > 30
                     ELSE coalesce(g.judged_on - g.sold_on <= t.window_days OR t.after_window <> g.ground, 1 = 1) END
    OR (t.before_cover_only = 1 AND coalesce(g.judged_on >= g.cover_from, 1 = 1)));

-- ground_amounts: What rules let go of a sale is no more than the terms give, in the split of the sale (up to 2,000,000,000 minor units).
-- whole
-- columns at partner ground currency base_spot:amount base_cut:amount base_share:amount taken_spot:amount taken_cut:amount
-- columns taken_share:amount
SELECT 'reversal ' || g.reversal_id, g.partner_id, g.ground, g.currency, m.base_spot, m.base_cut, m.base_share, m.taken_spot,
       m.taken_cut, m.taken_share
FROM grounded g JOIN ground_sums m USING (log_no)
LEFT JOIN cancellation_terms t ON t.cancellation_terms_id = g.cancellation_terms_id
WHERE m.taken_spot > m.base_spot OR m.taken_cut > m.base_cut OR m.taken_share > m.base_share
   OR (t.cut = 'kept_by_partner' AND g.partner_cut <> 0)
   OR (g.ground = 'remainder' AND (m.taken_spot <> m.base_spot OR m.taken_cut <> m.base_cut))
   OR (m.base_spot < 2000000000 AND coalesce(t.cut, '') <> 'kept_by_partner'
       AND (g.ground = 'pro_rata' OR m.taken_spot <> m.base_spot OR m.taken_cut <> m.base_cut)
       AND abs(m.taken_cut * m.base_spot - m.taken_spot * m.base_cut) > m.base_spot)
   OR (m.base_spot < 2000000000 AND g.ground = 'pro_rata' AND coalesce(
       2 * (g.cover_to - g.cover_from + 1) * (m.taken_share - CASE t.cut WHEN 'in_proportion' THEN 1 ELSE 0 END)
       > 2 * m.base_share * CASE WHEN g.judged_on < g.cover_from THEN g.cover_to - g.cover_from + 1
                                 WHEN g.judged_on > g.cover_to THEN 0 ELSE g.cover_to - g.judged_on END
         + g.cover_to - g.cover_from + 1, 1 = 1));

-- ground_of_processor: A reversal that the processor allowed takes, with those before it, no more than was taken back of a routed sale.
-- whole
-- columns at partner quote currency arrangement taken_back:amount reversed:amount
SELECT 'reversal ' || g.reversal_id, g.partner_id, g.quote_id, g.currency, g.arrangement, coalesce(b.amount, 0), -sum(n.invoice_amount)
FROM grounded g
JOIN named_rows n ON n.partner_id = g.partner_id AND n.quote_id = g.quote_id AND n.kind = 'reversal' AND n.arrangement = g.arrangement
  AND CASE WHEN n.event_id <> g.event_id THEN n.log_no < g.log_no
           ELSE n.accepted_at < g.accepted_at OR n.accepted_at = g.accepted_at AND n.log_no <= g.log_no END
LEFT JOIN grounded x ON x.log_no = n.log_no
LEFT JOIN reversal_evidence v ON v.entry_id = g.log_no
LEFT JOIN (SELECT g.log_no, -sum(s.amount) AS amount FROM grounded g
           JOIN share_allocations s ON s.partner_id = g.partner_id AND s.quote_id = g.quote_id AND s.log_no < g.ground_no
           JOIN balance_transactions b ON b.balance_transaction_id = s.balance_transaction_id
           WHERE g.ground = 'processor' AND b.kind IN ('reversal', 'dispute') GROUP BY g.log_no) b ON b.log_no = g.log_no
-- Finance knows which of the partner's reversals the processor has not made yet.
WHERE g.ground = 'processor' AND (x.ground = 'processor' OR coalesce(v.price_from, '') <> 'finance')
GROUP BY g.log_no, g.reversal_id, g.partner_id, g.quote_id, g.currency, g.arrangement, b.amount
HAVING -sum(n.invoice_amount) > coalesce(b.amount, 0) OR g.arrangement <> 'connected_account';

-- cancellation_terms: The terms of a policy are complete and are known values.
-- columns at partner policy from_day:day window_days:int after_window cut
SELECT 'terms ' || cancellation_terms_id, partner_id, policy_id, from_day, window_days, after_window, cut
FROM cancellation_terms
WHERE (window_days IS NULL) <> (after_window IS NULL) OR (window_days IS NULL) <> (cut IS NULL)
   OR (window_days IS NULL) <> (before_cover_only IS NULL) OR window_days < 0 OR window_days > 3660
   OR after_window NOT IN ('none', 'pro_rata', 'full') OR cut NOT IN ('in_proportion', 'kept_by_partner');

-- row_time_zone: A row has the time zone that its partner had when it was recorded.
-- whole
-- columns at partner time_zone partner_had
SELECT 'rows of event ' || g.event_id, g.partner_id, g.time_zone, f.value
FROM row_groups g LEFT JOIN fields f ON f.subject = 'partner ' || g.partner_id AND f.field = 'time_zone'
  AND f.log_no < g.first_no AND f.until_no > g.first_no
WHERE g.time_zone IS DISTINCT FROM f.value;

-- row_policy_known: A row names a policy that its partner had when the row was recorded.
-- whole
-- columns at partner policy
SELECT 'rows of event ' || g.event_id, g.partner_id, g.policy_id
FROM row_groups g
WHERE NOT EXISTS (SELECT 1 FROM fields f WHERE f.subject = 'partner ' || g.partner_id
                    AND f.field = 'policies.' || g.policy_id || '.name' AND f.log_no < g.first_no);

-- row_arrangement: A month's sales of a partner are all invoiced, or all routed by the processor; so are its requotes.
-- columns at arrangement other_arrangement
SELECT 'partner ' || partner_id || ' in ' || month, min(arrangement), max(arrangement)
FROM row_groups WHERE kind <> 'reversal'
GROUP BY partner_id, month HAVING min(arrangement) <> max(arrangement);

-- acceptance_has_row: An acceptance by a partner's client is one row of its quote or requote, recorded by the event of that client.
-- whole
-- columns at partner client row_kind action event_names
SELECT a.what || ' ' || a.own_id, a.partner_id, a.client_id, r.kind, e.action, e.subject
FROM (SELECT 'quote' AS what, quote_id AS own_id, quote_id, NULL AS requote_id, partner_id, client_id, posted_month,
             entry_id FROM quote_acceptances
      UNION ALL SELECT 'requote', requote_id, quote_id, requote_id, partner_id, client_id, posted_month, entry_id
      FROM requote_acceptances) a
LEFT JOIN named_rows r ON r.log_no = a.entry_id LEFT JOIN audit_events e ON e.event_id = r.event_id
LEFT JOIN details c ON c.log_no = e.log_no AND c.path = 'client_id'
LEFT JOIN details q ON q.log_no = e.log_no AND q.path = 'requote_id'
WHERE r.partner_id IS DISTINCT FROM a.partner_id OR r.posted_month <> a.posted_month OR r.quote_id <> a.quote_id
   OR r.requote_id IS DISTINCT FROM a.requote_id OR r.kind <> a.what || '_accepted' OR e.action <> a.what || '.accept'
   OR c.value IS DISTINCT FROM a.client_id OR q.value IS DISTINCT FROM a.requote_id
UNION ALL
SELECT coalesce('row ' || r.log_no, 'event ' || e.event_id), r.partner_id, NULL, r.kind,
       e.action, e.subject
FROM row_events g JOIN audit_events e ON e.event_id = g.event_id AND e.action IN ('quote.accept', 'requote.accept')
LEFT JOIN (SELECT event_id, log_no, kind, partner_id FROM named_rows) r ON r.event_id = g.event_id
WHERE r.log_no IS NULL OR (r.log_no NOT IN (SELECT entry_id FROM quote_acceptances)
  AND r.log_no NOT IN (SELECT entry_id FROM requote_acceptances));

-- requotes_in_order: The requotes of a quote that a client accepted are numbered from 1, each after the one before.
-- whole
-- columns at step:int previous_step:int
SELECT 'requote ' || a.requote_id, a.step, a.previous_step
FROM requote_acceptances a LEFT JOIN requote_acceptances b ON b.quote_id = a.quote_id AND b.step = a.previous_step
WHERE a.step <> coalesce(a.previous_step, 0) + 1 OR (a.previous_step IS NOT NULL AND b.log_no IS NULL)
   OR b.log_no > a.log_no;

-- months_in_order: Months close once, one after the other.
-- columns at states_previous closed_before
SELECT 'month ' || month, previous, before
FROM (SELECT c.month, c.previous, m.n, lag(c.month) OVER (ORDER BY c.log_no) AS before,
             lag(m.n) OVER (ORDER BY c.log_no) AS before_n, c.log_no, min(c.log_no) OVER () AS first_no
      FROM closed_months c LEFT JOIN months m USING (month)) c
WHERE n IS NULL OR (log_no <> first_no AND (n <> before_n + 1 OR previous IS DISTINCT FROM before))
   OR (log_no = first_no AND previous IS NOT NULL AND (SELECT first FROM pack) = 0);

-- month_close_event: A month is closed by the event of its close, at its time, after it had ended in the time zones of its rows. Our own day may be up to two days earlier.
-- columns at issued_on:day closed_at event_at ended_at
SELECT 'month ' || c.month, c.issued_on, c.closed_at, e.occurred_at, z.ended_at
FROM closed_months c LEFT JOIN audit_events e ON e.action = 'month.close' AND e.subject = c.month AND e.log_no < c.log_no
LEFT JOIN months m ON m.month = c.month LEFT JOIN days d ON d.day = substr(c.closed_at, 1, 10)
LEFT JOIN (SELECT g.month, max(z.begins_at) AS ended_at
           FROM (SELECT DISTINCT month, time_zone FROM row_groups WHERE posted_month = month) g JOIN months m ON m.month = g.month
           JOIN month_zones z ON z.time_zone = g.time_zone AND z.month = m.next GROUP BY g.month) z ON z.month = c.month
WHERE e.event_id IS NULL OR e.occurred_at <> c.closed_at OR coalesce(c.issued_on < m.last_day - 1, 1 = 1)
   OR coalesce(c.issued_on - d.n NOT IN (-1, 0, 1), 1 = 1) OR c.closed_at < z.ended_at;

-- month_ended_everywhere: A month is closed when it has ended in the time zones of all active partners.
-- whole
-- columns at closed_at time_zone ended_at
SELECT 'month ' || c.month, c.closed_at, z.time_zone, z.begins_at
FROM closed_months c JOIN months m USING (month) JOIN month_zones z ON z.month = m.next
JOIN fields f ON f.field = 'time_zone' AND f.value = z.time_zone AND f.subject <> 'settings' AND f.log_no < c.log_no AND f.until_no > c.log_no
JOIN fields a ON a.field = 'active' AND a.value = 'true' AND a.subject = f.subject AND a.log_no < c.log_no AND a.until_no > c.log_no
WHERE c.closed_at < z.begins_at;

-- close_names_missing_feeds: The close of a month names the active partners that had rows in the two months before and none in it, unless they stated totals of the month.
-- whole
-- columns at partner month_before month_before_that
WITH closes AS (
  SELECT c.month, e.log_no, lag(c.month) OVER (ORDER BY c.log_no) AS before,
         lag(c.month, 2) OVER (ORDER BY c.log_no) AS before_that
  FROM closed_months c JOIN audit_events e ON e.action = 'month.close' AND e.subject = c.month),
own AS (SELECT partner_id, month, min(first_no) AS first_no FROM fed_groups GROUP BY partner_id, month)
SELECT 'month ' || c.month, b.partner_id, c.before, c.before_that
FROM closes c
JOIN fields s ON s.subject = 'settings' AND s.field = 'allow_empty' AND s.value = 'false' AND s.log_no < c.log_no AND s.until_no > c.log_no
JOIN own b ON b.month = c.before AND b.first_no < c.log_no
JOIN fields f ON f.subject = 'partner ' || b.partner_id AND f.field = 'active' AND f.value = 'true' AND f.log_no < c.log_no AND f.until_no > c.log_no
LEFT JOIN own t ON t.partner_id = b.partner_id AND t.month = c.before_that AND t.first_no < c.log_no
LEFT JOIN own n ON n.partner_id = b.partner_id AND n.month = c.month AND n.first_no < c.log_no
WHERE (c.before_that IS NULL OR t.month IS NOT NULL) AND n.month IS NULL
  AND NOT EXISTS (SELECT 1 FROM feed_statements x WHERE x.partner_id = b.partner_id AND x.month = c.month
                    AND x.log_no < c.log_no)
  AND NOT EXISTS (SELECT 1 FROM details d WHERE d.log_no = c.log_no AND substr(d.path, 1, 8) = 'without.'
                    AND d.value = b.partner_id);

-- feed_decision: A doubt about a partner's rows is accepted while the month is open, by the event that names the partner or by the month's close. A feed that is accepted as missing has no rows.
-- whole
-- columns at partner kind action event_names
SELECT 'decision ' || d.feed_decision_id, d.partner_id, d.kind, e.action, e.subject
FROM feed_decisions d LEFT JOIN audit_events e USING (event_id)
LEFT JOIN closed_months c ON c.month = d.month AND c.log_no < d.log_no
LEFT JOIN details m ON m.event_id = d.event_id AND m.path = 'month'
WHERE c.month IS NOT NULL OR d.kind NOT IN ('missing', 'incomplete', 'totals', 'repeated', 'few', 'early')
   OR CASE e.action WHEN 'feed.accept' THEN e.subject <> d.partner_id OR m.value IS DISTINCT FROM d.month OR d.reason IS NULL
                         OR NOT EXISTS (SELECT 1 FROM details k WHERE k.event_id = d.event_id AND k.value = d.kind
                                          AND substr(k.path, 1, 6) = 'kinds.')
                    ELSE e.subject <> d.month OR d.reason IS NOT NULL END
   OR (d.kind = 'missing' AND EXISTS (
         SELECT 1 FROM fed_groups r WHERE r.partner_id = d.partner_id AND r.month = d.month AND r.first_no < d.log_no));

-- close_without_decided: If the settings expect all feeds, someone accepted each missing feed before the month closed.
-- whole
-- columns at partner
SELECT 'month ' || d.subject, d.value
FROM details d
JOIN fields s ON s.subject = 'settings' AND s.field = 'allow_empty' AND s.value = 'false' AND s.log_no < d.log_no AND s.until_no > d.log_no
JOIN closed_months c ON c.month = d.subject AND c.log_no > d.log_no
WHERE d.action = 'month.close' AND substr(d.path, 1, 8) = 'without.'
  AND NOT EXISTS (SELECT 1 FROM feed_decisions f WHERE f.month = d.subject AND f.partner_id = d.value AND f.kind = 'missing'
                    AND f.log_no < c.log_no);

-- close_accepts_contradictions: If a partner's rows contradict its latest statement, or more were to come, someone accepted that before the month closed.
-- whole
-- columns at partner complete:int stated_rows:int counted_rows:int
WITH latest AS (
  SELECT c.month, s.partner_id, e.log_no, c.log_no AS close_no, max(s.feed_statement_id) AS id
  FROM closed_months c JOIN audit_events e ON e.action = 'month.close' AND e.subject = c.month
  JOIN feed_statements s ON s.month = c.month AND s.log_no < e.log_no GROUP BY c.month, s.partner_id, e.log_no, c.log_no),
sums AS (
  SELECT id, sum(entries) AS entries, max(CASE WHEN stated = here THEN 0 ELSE 1 END) AS differs
  FROM (SELECT id, currency, sum(stated) AS stated, sum(here) AS here, sum(entries) AS entries
        FROM (SELECT l.id, t.currency, t.invoice_amount AS stated, 0 AS here, 0 AS entries
              FROM latest l JOIN feed_statement_totals t ON t.feed_statement_id = l.id
              UNION ALL
              SELECT l.id, r.currency, 0, r.invoice_amount, r.entries
              FROM latest l JOIN fed_groups r ON r.partner_id = l.partner_id AND r.month = l.month AND r.first_no < l.log_no) x
        GROUP BY id, currency) y GROUP BY id)
SELECT 'month ' || l.month, l.partner_id, s.complete, s.entries, coalesce(x.entries, 0)
FROM latest l JOIN feed_statements s ON s.feed_statement_id = l.id LEFT JOIN sums x ON x.id = l.id
WHERE (s.complete = 0 OR s.entries <> coalesce(x.entries, 0) OR x.differs = 1) AND NOT EXISTS (
  SELECT 1 FROM feed_decisions f WHERE f.month = l.month AND f.partner_id = l.partner_id
    AND f.kind IN ('incomplete', 'totals') AND f.log_no < l.close_no);

-- every_close_recorded: Every event of a close has closed its month.
-- columns at month
SELECT 'event ' || e.event_id, e.subject
FROM audit_events e LEFT JOIN closed_months c ON c.month = e.subject AND c.log_no > e.log_no
WHERE e.action = 'month.close' AND c.month IS NULL;

-- month_totals: The close of a month states the number and sums of its rows in each currency.
-- columns at currency stated_rows:int counted_rows:int stated_price:amount price_of_rows:amount stated_cut:amount
-- columns cut_of_rows:amount stated_amount:amount amount_of_rows:amount
SELECT 'month ' || coalesce(t.month, r.billed_month), coalesce(t.currency, r.currency), t.entries, r.entries,
       t.spot_price, r.spot_price, t.partner_cut, r.partner_cut, t.invoice_amount, r.invoice_amount
FROM month_totals t FULL JOIN (
  SELECT p.billed_month, p.currency, sum(p.entries) AS entries, sum(p.spot_price) AS spot_price,
         sum(p.partner_cut) AS partner_cut, sum(p.invoice_amount) AS invoice_amount
  FROM row_partners p JOIN closed_months c ON c.month = p.billed_month GROUP BY p.billed_month, p.currency) r
  ON r.billed_month = t.month AND r.currency = t.currency
WHERE coalesce(t.month, r.billed_month) >= (SELECT from_month FROM pack)
  AND (t.month IS NULL OR r.billed_month IS NULL OR t.entries <> r.entries OR t.spot_price <> r.spot_price
       OR t.partner_cut <> r.partner_cut OR t.invoice_amount <> r.invoice_amount);

-- month_partners: The close of a month states the number, sums and last time of each partner's rows; the verifier compares their root.
-- columns at partner arrangement currency stated_rows:int counted_rows:int stated_price:amount price_of_rows:amount
-- columns stated_cut:amount cut_of_rows:amount stated_amount:amount amount_of_rows:amount stated_last last_of_rows
SELECT 'month ' || month, partner_id, arrangement, currency, sum(stated), sum(counted), sum(spot_price), sum(spot),
       sum(partner_cut), sum(cut), sum(invoice_amount), sum(summed), max(last_accepted_at), max(last_at)
FROM (SELECT month, partner_id, currency, arrangement, entries AS stated, spot_price, partner_cut, invoice_amount,
             last_accepted_at, 0 AS counted, 0 AS spot, 0 AS cut, 0 AS summed, NULL AS last_at FROM month_partners
      UNION ALL
      SELECT p.billed_month, p.partner_id, p.currency, p.arrangement, 0, 0, 0, 0, NULL, p.entries, p.spot_price,
             p.partner_cut, p.invoice_amount, p.last_at
      FROM row_partners p JOIN closed_months c ON c.month = p.billed_month) x
WHERE month >= (SELECT from_month FROM pack) GROUP BY month, partner_id, currency, arrangement
HAVING sum(stated) <> sum(counted) OR sum(spot_price) <> sum(spot) OR sum(partner_cut) <> sum(cut)
    OR sum(invoice_amount) <> sum(summed) OR max(last_accepted_at) <> max(last_at);

-- month_counts: The close of a month states how many rows, late rows and partners with documents it has, and when these were issued.
-- columns at stated_rows:int counted_rows:int stated_late_rows:int counted_late_rows:int stated_partners:int
-- columns counted_partners:int issued_on:day documents_from:day documents_to:day
SELECT 'month ' || c.month, c.entries, coalesce(r.entries, 0), c.late_entries, coalesce(r.late_entries, 0),
       c.partners_with_documents, coalesce(d.partners, 0), c.issued_on, d.first_on, d.last_on
FROM closed_months c
LEFT JOIN (SELECT billed_month, sum(entries) AS entries, sum(late_entries) AS late_entries FROM row_partners
           GROUP BY billed_month) r ON r.billed_month = c.month
LEFT JOIN (SELECT month, count(DISTINCT partner_id) AS partners, min(issued_on) AS first_on, max(issued_on) AS last_on,
                  min(log_no) AS first_no, max(log_no) AS last_no
           FROM documents WHERE purpose = 'month' AND replaces IS NULL GROUP BY month) d ON d.month = c.month
WHERE c.month >= (SELECT from_month FROM pack)
  AND (c.entries <> coalesce(r.entries, 0) OR c.late_entries <> coalesce(r.late_entries, 0)
       OR c.partners_with_documents <> coalesce(d.partners, 0) OR d.first_on <> c.issued_on OR d.last_on <> c.issued_on
       OR d.last_no > c.log_no
       OR d.first_no < (SELECT max(e.log_no) FROM audit_events e WHERE e.action = 'month.close' AND e.subject = c.month));

-- partners_without_activity: The close of a month states how many active partners had no rows in it.
-- whole
-- columns at stated:int counted:int
SELECT 'month ' || c.month, c.partners_without_activity, count(CASE WHEN r.subject IS NULL THEN f.subject END)
FROM closed_months c LEFT JOIN fields f ON f.field = 'active' AND f.value = 'true' AND f.subject <> 'settings'
  AND f.log_no < c.log_no AND f.until_no > c.log_no
LEFT JOIN (SELECT DISTINCT billed_month, 'partner ' || partner_id AS subject FROM row_partners) r
  ON r.billed_month = c.month AND r.subject = f.subject
GROUP BY c.month, c.partners_without_activity
HAVING count(CASE WHEN r.subject IS NULL THEN f.subject END) <> c.partners_without_activity;

-- documents_of_rows: The lines of a month's document are the rows that it bills: by policy, kind and month, their number and sums.
-- columns at policy kind month stated_rows:int counted_rows:int currency stated_price:amount price_of_rows:amount
-- columns stated_cut:amount cut_of_rows:amount stated_amount:amount amount_of_rows:amount
SELECT coalesce(max(number), 'no document of partner ' || partner_id || ' for ' || billed_month), policy_id, kind,
       month, sum(entries), sum(counted), currency, sum(spot_price), sum(spot), sum(partner_cut), sum(cut),
       sum(invoice_amount), sum(summed)
FROM (SELECT b.billed_month, b.partner_id, b.currency, b.arrangement, b.policy_id, b.kind, b.month, d.document_id,
             d.number, b.entries AS counted, b.spot_price AS spot, b.partner_cut AS cut, b.invoice_amount AS summed,
             0 AS entries, 0 AS spot_price, 0 AS partner_cut, 0 AS invoice_amount
      FROM row_lines b JOIN closed_months c ON c.month = b.billed_month
      LEFT JOIN papers d ON d.partner_id = b.partner_id AND d.month = b.billed_month AND d.purpose = 'month'
        AND d.currency = b.currency AND d.arrangement = b.arrangement
      UNION ALL
      SELECT l.billed_month, l.partner_id, l.currency, l.arrangement, l.policy_id, l.kind, l.month, l.document_id,
             l.number, 0, 0, 0, 0, l.entries, l.spot_price, l.partner_cut, l.invoice_amount
      FROM billed_lines l) x
WHERE billed_month >= (SELECT from_month FROM pack)
GROUP BY billed_month, partner_id, currency, arrangement, policy_id, kind, month, document_id
HAVING sum(counted) <> sum(entries) OR sum(spot) <> sum(spot_price) OR sum(cut) <> sum(partner_cut)
    OR sum(summed) <> sum(invoice_amount) OR max(number) IS NULL;

-- document_adds_up: A document states the sums of its lines, the number of their rows, and of those how many are sales.
-- columns at stated_rows:int rows_of_lines:int stated_sales:int sales_of_lines:int currency stated_price:amount
-- columns price_of_lines:amount stated_cut:amount cut_of_lines:amount stated_amount:amount amount_of_lines:amount
SELECT d.number, d.entries, l.entries, d.enrollments, l.sales, d.currency, d.spot_price, l.spot_price, d.partner_cut,
       l.partner_cut, d.invoice_amount, l.invoice_amount
FROM documents d LEFT JOIN paper_lines l USING (document_id)
WHERE d.spot_price <> d.partner_cut + d.invoice_amount
   OR (d.purpose = 'month' AND (l.document_id IS NULL OR d.entries <> l.entries OR d.enrollments <> l.sales
       OR d.spot_price <> l.spot_price OR d.partner_cut <> l.partner_cut OR d.invoice_amount <> l.invoice_amount))
   OR (d.purpose IN ('adjustment', 'opening') AND (l.document_id IS NOT NULL OR d.entries <> 0 OR d.enrollments <> 0
       OR d.partner_cut <> 0))
   OR (d.purpose = 'missing_shares' AND (d.invoice_amount IS DISTINCT FROM l.invoice_amount OR d.entries <> 0
       OR d.spot_price <> l.spot_price OR d.partner_cut <> l.partner_cut))
UNION ALL
SELECT 'lines of unknown document ' || l.document_id, NULL, l.entries, NULL, l.sales, l.currency, NULL,
       l.spot_price, NULL, l.partner_cut, NULL, l.invoice_amount
FROM paper_lines l LEFT JOIN documents d USING (document_id) WHERE d.document_id IS NULL;

-- line_adds_up: The price of a line is the cut and our amount, of at least one row.
-- columns at month kind rows:int document_currency currency spot_price:amount partner_cut:amount
-- columns invoice_amount:amount
SELECT 'line ' || l.position || ' of ' || d.number, l.month, l.kind, l.count, d.currency, l.currency,
       l.spot_price, l.partner_cut, l.invoice_amount
FROM document_lines l JOIN documents d USING (document_id)
WHERE l.spot_price <> l.partner_cut + l.invoice_amount OR l.count < 1 OR l.currency <> d.currency
   OR (d.purpose = 'month' AND l.month > d.month) OR l.kind NOT IN ('quote_accepted', 'requote_accepted', 'reversal');

-- one_live_document: A partner has one document of a month, currency and arrangement that is not void, and each further one replaces a void one.
-- whole
-- columns at currency arrangement documents:int not_void:int replace_none:int
SELECT 'partner ' || partner_id || ' in ' || month, currency, arrangement, count(*),
       sum(CASE WHEN void_no IS NULL THEN 1 ELSE 0 END), sum(CASE WHEN replaces IS NULL THEN 1 ELSE 0 END)
FROM papers WHERE purpose = 'month' GROUP BY partner_id, month, currency, arrangement
HAVING sum(CASE WHEN void_no IS NULL THEN 1 ELSE 0 END) > 1 OR sum(CASE WHEN replaces IS NULL THEN 1 ELSE 0 END) <> 1;

-- numbers_without_gaps: The numbers of a series begin with 1 and have no gap but skipped numbers, none is used twice, and their days never go back.
-- whole
-- columns at number_before:int issued_on:day latest_before:day
SELECT 'number ' || sequence || ' of ' || series, before, issued_on, latest
FROM (SELECT series, sequence, issued_on, lag(till) OVER (PARTITION BY series ORDER BY sequence, till, coalesce(issued_on, 0)) AS before,
             max(issued_on) OVER (PARTITION BY series ORDER BY sequence, till, coalesce(issued_on, 0)
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
      FROM (SELECT series, sequence, sequence AS till, CASE purpose WHEN 'opening' THEN NULL ELSE issued_on END AS issued_on
            FROM documents
            UNION ALL SELECT series, first_sequence, last_sequence, NULL FROM skipped_numbers) n) n
WHERE sequence <> coalesce(before, 0) + 1 OR issued_on < latest;

-- number_form: A document's number is in the series of its kind and year; an item that was carried over keeps its own number.
-- columns at series sequence:int document issued_on:day
SELECT d.number, d.series, d.sequence, d.document, d.issued_on
FROM documents d LEFT JOIN days y ON y.n = d.issued_on
WHERE d.sequence < 1
   OR (d.purpose <> 'opening' AND (d.opening_number IS NOT NULL
       OR d.series IS DISTINCT FROM CASE d.document WHEN 'invoice' THEN 'INV-' WHEN 'credit_note' THEN 'CN-' ELSE 'ST-' END
          || substr(y.day, 1, 4)
       OR d.number <> d.series || '-'
          || substr('00000' || d.sequence, CASE WHEN d.sequence < 100000 THEN length(CAST(d.sequence AS TEXT)) ELSE 6 END)))
   OR (d.purpose = 'opening' AND (d.series <> 'OPENING' OR d.number IS DISTINCT FROM d.opening_number
       || CASE d.opening_revision WHEN 1 THEN '' ELSE '~' || d.opening_revision END));

-- skipped_by_resumption: Numbers are skipped only by the resumption of a paused ledger, whose event names them.
-- whole
-- columns at resumed_by_event:int recorded_by_event:int
SELECT 'numbers ' || s.first_sequence || ' to ' || s.last_sequence || ' of ' || s.series,
       r.event_id, s.event_id
FROM skipped_numbers s LEFT JOIN resumptions r USING (pause_id)
WHERE r.event_id IS DISTINCT FROM s.event_id OR s.last_sequence < s.first_sequence OR s.first_sequence < 1
   OR 2 <> (SELECT count(*)
            FROM (SELECT d.value, CASE d.leaf WHEN 'from' THEN s.first_sequence WHEN 'to' THEN s.last_sequence END AS n
                  FROM details d WHERE d.event_id = s.event_id AND d.action = 'ledger.resume'
                    AND substr(d.path, 1, 8) = 'skipped.') d
            WHERE d.value = s.series || '-'
              || substr('00000' || d.n, CASE WHEN d.n < 100000 THEN length(CAST(d.n AS TEXT)) ELSE 6 END))
UNION ALL
SELECT 'event ' || d.event_id || ', which names ' || count(*) || ' series', d.event_id, NULL
FROM details d
WHERE d.action = 'ledger.resume' AND substr(d.path, 1, 8) = 'skipped.' AND d.leaf = 'from'
GROUP BY d.event_id
HAVING count(*) <> (SELECT count(*) FROM skipped_numbers s WHERE s.event_id = d.event_id);

-- document_days: A document is issued when its month has ended at its partner, on the day of its record or of the latest document, and is due after its terms or when what it replaces was due.
-- columns at month issued_on:day due_on:day terms_days:int issued_at
SELECT d.number, d.month, d.issued_on, d.due_on, d.terms_days, d.issued_at
FROM documents d LEFT JOIN months m USING (month) LEFT JOIN days x ON x.day = substr(d.issued_at, 1, 10)
LEFT JOIN documents o ON o.document_id = d.replaces LEFT JOIN terms_due t ON t.document_id = d.document_id
WHERE d.purpose <> 'opening'
  AND ((d.document = 'invoice') <> (d.due_on IS NOT NULL) OR (d.due_on IS NULL) <> (d.terms_days IS NULL)
       OR d.due_on < CASE WHEN d.replaces IS NULL THEN d.issued_on ELSE 0 END OR d.terms_days < 0
       OR (d.document <> 'invoice' AND (d.terms_end_of_month IS NOT NULL OR d.terms_day IS NOT NULL))
       OR (d.due_on <> coalesce(t.due_on, d.issued_on + d.terms_days)
           AND (d.replaces IS NULL OR (o.log_no IS NOT NULL AND d.due_on IS DISTINCT FROM o.due_on)))
       OR (d.purpose = 'month' AND coalesce(d.issued_on < m.last_day - 1, 1 = 1))
       OR (coalesce(x.n - d.issued_on NOT IN (-1, 0, 1), 1 = 1)
           AND d.issued_on NOT IN (SELECT p.issued_on FROM documents p WHERE p.log_no < d.log_no)));

-- document_kind: Exactly the months of connected accounts are statements; no document is owed less than zero; only documents that may have credit, tax or an opening have one.
-- columns at document purpose arrangement currency with_tax:amount credit_applied:amount original:amount
-- columns invoice_lowered_by:amount invoice_left:amount
SELECT d.number, d.document, d.purpose, d.arrangement, d.currency, d.gross, d.credit_applied, f.original_amount,
       f.invoice_lowered_by, f.invoice_left
FROM papers d JOIN documents f USING (document_id)
WHERE d.document NOT IN ('invoice', 'credit_note', 'statement')
   OR d.purpose NOT IN ('month', 'adjustment', 'missing_shares', 'opening')
   OR (d.purpose = 'month' AND (d.document = 'statement') <> (d.arrangement = 'connected_account'))
   OR (d.document <> 'statement' AND d.gross < 0)
   OR (d.tax_totals > 0 AND d.arrangement <> 'invoicing')
   OR (d.credit_applied <> 0 AND (d.document <> 'invoice' OR d.credit_applied < 0 OR d.credit_applied > d.gross))
   OR (d.purpose = 'missing_shares' AND (d.document <> 'invoice' OR d.arrangement <> 'connected_account'
       OR d.invoice_amount <= 0))
   OR (d.purpose = 'adjustment') <> (d.credits IS NOT NULL)
   OR (d.purpose = 'adjustment' AND (d.document <> 'credit_note' OR d.invoice_amount <= 0 OR trim(f.reason) = ''
       OR f.invoice_lowered_by IS NULL OR f.invoice_left IS NULL OR f.invoice_lowered_by < 0
       OR f.invoice_lowered_by > d.gross OR f.invoice_left < 0))
   OR (d.purpose <> 'adjustment' AND (f.invoice_lowered_by IS NOT NULL OR f.invoice_left IS NOT NULL))
   OR (d.purpose = 'opening') <> (f.opening_id IS NOT NULL)
   OR (d.purpose = 'opening') <> (f.opening_revision IS NOT NULL)
   OR (d.purpose <> 'opening' AND (f.opening_follows IS NOT NULL OR f.original_amount IS NOT NULL))
   OR (d.purpose = 'opening' AND (d.document = 'statement' OR d.arrangement <> 'invoicing' OR d.invoice_amount <= 0
       OR f.original_amount < d.invoice_amount OR f.original_amount IS NULL OR d.credit_applied <> 0));

-- document_party: A document names its partner, its address and its numbers as they were recorded before it was issued.
-- whole
-- columns at field printed recorded
SELECT d.number, x.field, nullif(x.text, ''), f.value
FROM documents d JOIN printed x USING (document_id)
LEFT JOIN fields f ON f.subject = 'partner ' || d.partner_id AND f.field = x.field
  AND f.log_no < d.log_no AND f.until_no > d.log_no
WHERE NOT (substr(x.text, 1, 1) = '#' AND length(x.text) = 45)
  AND x.text <> CASE WHEN x.field = 'e_invoice' AND (d.document = 'statement' OR d.purpose = 'opening') THEN 'none'
                        WHEN x.field IN ('buyer_reference', 'electronic_address') AND d.purpose = 'opening' THEN ''
                        ELSE coalesce(f.value, '') END;

-- policy_named: A line names its policy as it was recorded before the document was issued.
-- whole
-- columns at policy printed recorded
SELECT 'line ' || l.position || ' of ' || d.number, l.policy_id, l.policy_name, f.value
FROM document_lines l JOIN documents d USING (document_id)
LEFT JOIN fields o ON o.subject = 'partner ' || d.partner_id AND o.field = 'policies.' || l.policy_id || '.purchase_order'
  AND o.log_no < d.log_no AND o.until_no > d.log_no
LEFT JOIN fields f ON f.subject = 'partner ' || d.partner_id AND f.field = 'policies.' || l.policy_id || '.name'
  AND f.log_no < d.log_no AND f.until_no > d.log_no
WHERE l.policy_name IS DISTINCT FROM f.value || coalesce(', PO ' || o.value, '');

-- terms_of_partner: An invoice has the payment terms of its partner when it was issued; a replacement may keep older ones.
-- whole
-- columns at field terms partner_had
SELECT d.number, x.field, x.terms, f.value
FROM documents d JOIN (
  SELECT document_id, 'payment_terms_days' AS field, CAST(terms_days AS TEXT) AS terms FROM documents
  UNION ALL SELECT document_id, 'payment_terms_end_of_month', CASE terms_end_of_month WHEN 1 THEN 'true' END FROM documents
  UNION ALL SELECT document_id, 'payment_terms_day', CAST(terms_day AS TEXT) FROM documents) x USING (document_id)
LEFT JOIN fields f ON f.subject = 'partner ' || d.partner_id AND f.field = x.field
  AND f.log_no < d.log_no AND f.until_no > d.log_no
WHERE d.document = 'invoice' AND d.purpose <> 'opening' AND d.replaces IS NULL
  AND x.terms IS DISTINCT FROM CASE x.field WHEN 'payment_terms_days' THEN coalesce(f.value, x.terms) ELSE f.value END;

-- wording_known: A document prints a version of the issuer that was recorded before it, and all documents belong to one environment.
-- whole
-- columns at issuer_version:int recorded_before sandbox:int sandbox_elsewhere:int
SELECT d.number, d.issuer_version_id, CASE WHEN v.log_no < d.log_no THEN 'yes' ELSE 'no' END, d.sandbox,
       (SELECT min(sandbox) FROM documents)
FROM documents d LEFT JOIN issuer_versions v USING (issuer_version_id)
WHERE v.log_no IS NULL OR v.log_no > d.log_no OR d.sandbox <> (SELECT min(sandbox) FROM documents);

-- issuer_in_force: Each text of a version of the issuer was a setting when the version was first used.
-- whole
-- columns at path text
SELECT 'issuer version ' || v.issuer_version_id, t.path, t.value
FROM issuer_versions v JOIN map_values t ON t.log_no = v.log_no AND t.column_name = 'content'
WHERE t.path <> 'logo' AND t.value <> '' AND EXISTS (
      SELECT 1 FROM fields WHERE subject = 'settings' AND substr(field, 1, 7) = 'issuer.' AND log_no < v.log_no)
  AND NOT EXISTS (SELECT 1 FROM fields f WHERE f.subject = 'settings' AND f.field = 'issuer.' || t.path AND f.value = t.value
                    AND f.log_no < v.log_no AND f.until_no > v.log_no);

-- void_of_document: A document is voided after its issue, and the void repeats what it was for.
-- whole
-- columns at void_partner partner void_month month void_currency currency void_arrangement arrangement voided_on:day
-- columns issued_on:day
SELECT coalesce(d.number, 'unknown document ' || v.document_id), v.partner_id, d.partner_id, v.month,
       d.month, v.currency, d.currency, v.arrangement, d.arrangement, v.voided_on, d.issued_on
FROM voids v LEFT JOIN papers d USING (document_id)
WHERE d.document_id IS NULL OR d.partner_id <> v.partner_id OR d.month <> v.month OR d.currency <> v.currency
   OR d.arrangement <> v.arrangement OR d.log_no > v.log_no OR v.voided_on < d.issued_on OR trim(v.reason) = '';

-- replacement: A replacement replaces one void document with the same partner, month, currency and amounts, and is issued after the void.
-- whole
-- columns at replaces partner replaced_partner month replaced_month currency amount:amount replaced_currency
-- columns replaced_amount:amount@replaced_currency issued_on:day replaced_voided_on:day
SELECT n.number, o.number, n.partner_id, o.partner_id, n.month, o.month, n.currency, n.sign * n.invoice_amount,
       o.currency, o.sign * o.invoice_amount, n.issued_on, o.voided_on
FROM papers n LEFT JOIN papers o ON o.document_id = n.replaces
WHERE n.replaces IS NOT NULL
  AND (o.void_no IS NULL OR o.void_no > n.log_no OR o.voided_on > n.issued_on OR n.partner_id <> o.partner_id
       OR n.month <> o.month OR n.currency <> o.currency OR n.arrangement <> o.arrangement OR n.purpose <> o.purpose
       OR n.sign * n.invoice_amount <> o.sign * o.invoice_amount);

-- hold: A hold is put on an issued document after its last hold was released, and is released later.
-- whole
-- columns at document follows_hold:int released_before_at held_at released_at
SELECT 'hold ' || h.hold_id, d.number, h.follows, r.released_at, h.held_at, NULL
FROM holds h LEFT JOIN documents d USING (document_id)
LEFT JOIN hold_releases r ON r.hold_id = h.follows AND r.document_id = h.document_id
WHERE d.log_no IS NULL OR d.log_no > h.log_no OR (h.follows IS NOT NULL AND (r.log_no IS NULL OR r.log_no > h.log_no))
UNION ALL
SELECT 'release of hold ' || r.hold_id, d.number, NULL, NULL, h.held_at, r.released_at
FROM hold_releases r LEFT JOIN documents d USING (document_id)
LEFT JOIN holds h ON h.hold_id = r.hold_id AND h.document_id = r.document_id
WHERE h.log_no IS NULL OR h.log_no > r.log_no OR h.held_at > r.released_at;

-- held_credit: No credit of a credit note is applied or refunded between its hold and the release of that hold.
-- whole
-- columns at document currency used:amount held_at used_at released_at
SELECT u.fact || ', fact ' || u.log_no, d.number, u.currency, u.amount, h.held_at, u.recorded_at, r.released_at
FROM balance_facts u JOIN holds h ON h.document_id = coalesce(u.credit_note_id, u.document_id) AND h.log_no < u.log_no
LEFT JOIN hold_releases r ON r.hold_id = h.hold_id AND r.document_id = h.document_id
LEFT JOIN documents d ON d.document_id = h.document_id
WHERE u.fact IN ('credit_applied', 'credit_refunded') AND (r.log_no IS NULL OR r.log_no > u.log_no);

-- invoice_dispute: A dispute is about an issued invoice and at most its amount; the invoice's next dispute follows the end of this one.
-- whole
-- columns at document currency disputed:amount document_currency document_amount:amount@document_currency
-- columns disputed_on:day promised_on:day closed_on:day
SELECT 'dispute ' || t.invoice_dispute_id, d.number, t.currency, t.amount, d.currency, d.gross,
       t.disputed_on, t.promised_on, c.closed_on
FROM invoice_disputes t LEFT JOIN papers d USING (document_id)
LEFT JOIN invoice_dispute_closings c ON c.invoice_dispute_id = t.follows AND c.document_id = t.document_id
WHERE d.log_no IS NULL OR d.log_no > t.log_no OR d.document <> 'invoice' OR t.amount <= 0 OR t.amount > d.gross
   OR t.currency <> d.currency OR t.promised_on < t.disputed_on OR trim(t.reason) = ''
   OR (t.follows IS NOT NULL AND (c.log_no IS NULL OR c.log_no > t.log_no))
UNION ALL
SELECT 'end of dispute ' || c.invoice_dispute_id, NULL, t.currency, t.amount, NULL, NULL, t.disputed_on,
       t.promised_on, c.closed_on
FROM invoice_dispute_closings c LEFT JOIN invoice_disputes t ON t.invoice_dispute_id = c.invoice_dispute_id
  AND t.document_id = c.document_id
WHERE t.log_no IS NULL OR t.log_no > c.log_no OR t.disputed_on > c.closed_on;

-- credits_within_invoice: Credit notes against an invoice are for the same partner and month, and with those against what it replaced never exceed it.
-- whole
-- columns at partner month currency credited:amount invoice invoice_partner invoice_month invoice_currency
-- columns invoice_amount:amount@invoice_currency
SELECT 'credits of ' || d.number, d.partner_id, d.month, d.currency, sum(n.invoice_amount), d.number, d.partner_id,
       d.month, d.currency, d.invoice_amount
FROM chains c JOIN papers d ON d.document_id = c.head AND d.document_id NOT IN (
  SELECT replaces FROM papers WHERE replaces IS NOT NULL)
JOIN papers n ON n.credits = c.document_id AND n.void_no IS NULL
GROUP BY d.number, d.partner_id, d.month, d.currency, d.invoice_amount HAVING sum(n.invoice_amount) > d.invoice_amount
UNION ALL
SELECT n.number, n.partner_id, n.month, n.currency, n.invoice_amount, i.number, i.partner_id, i.month, i.currency,
       i.invoice_amount
FROM papers n LEFT JOIN papers i ON i.document_id = n.credits
WHERE n.credits IS NOT NULL AND (i.document IS DISTINCT FROM 'invoice' OR i.partner_id <> n.partner_id
  OR i.month <> n.month OR i.currency <> n.currency OR i.arrangement <> n.arrangement OR i.log_no > n.log_no);

-- tax_adds_up: The taxable amounts of a document with tax are its amount before tax, and each of its lines is in one of them.
-- columns at currency taxable:amount document_currency document_amount:amount@document_currency lines:int
-- columns taxed_lines:int
SELECT d.number, d.currency, d.taxable, d.currency, d.invoice_amount, coalesce(l.lines, 0), coalesce(t.lines, 0)
FROM papers d LEFT JOIN (SELECT document_id, count(*) AS lines FROM document_lines GROUP BY document_id) l
  ON l.document_id = d.document_id
LEFT JOIN (SELECT document_id, count(*) AS lines, count(DISTINCT line) AS once FROM taxed_lines GROUP BY document_id) t
  ON t.document_id = d.document_id
WHERE d.tax_totals > 0 AND (d.taxable <> d.invoice_amount OR coalesce(l.lines, 0) <> coalesce(t.lines, 0)
  OR t.lines <> t.once)
UNION ALL
SELECT 'tax ' || t.position || ' of ' || coalesce(d.number, 'unknown document '
         || t.document_id),
       t.currency, t.taxable, d.currency, d.invoice_amount, NULL, NULL
FROM document_taxes t LEFT JOIN papers d USING (document_id)
WHERE d.document_id IS NULL OR t.currency <> d.currency;

-- taxable_of_lines: Each taxable amount of a month's document is the sum of the lines that it names.
-- columns at currency taxable:amount of_lines:amount
SELECT 'tax ' || t.position || ' of ' || d.number, t.currency, t.taxable,
       coalesce(sum(l.invoice_amount), 0)
FROM document_taxes t JOIN papers d ON d.document_id = t.document_id AND d.purpose <> 'adjustment'
LEFT JOIN taxed_lines x ON x.document_id = t.document_id AND x.position = t.position
LEFT JOIN document_lines l ON l.document_id = x.document_id AND CAST(l.position AS TEXT) = x.line
GROUP BY d.number, t.position, t.currency, t.taxable
HAVING coalesce(sum(l.invoice_amount), 0) <> t.taxable;

-- tax_rounded_once: Tax is the rate of the taxable amount, rounded once, half up; credits against an invoice together have the tax of their sum.
-- whole
-- columns at rate:rate currency taxable:amount tax:amount
WITH notes AS (
  SELECT n.log_no, n.void_no, n.credits, t.country, t.category, t.rate, t.reduced, t.taxable, t.tax
  FROM document_taxes t JOIN papers n ON n.document_id = t.document_id AND n.purpose = 'adjustment'),
before AS (
  SELECT t.log_no, sum(n.taxable) AS taxable, sum(n.tax) AS tax
  FROM document_taxes t JOIN papers d ON d.document_id = t.document_id AND d.purpose = 'adjustment'
  JOIN chains c ON c.head = d.credits
  JOIN notes n ON n.credits = c.document_id AND n.log_no < d.log_no AND (n.void_no IS NULL OR n.void_no > d.log_no)
    AND n.country = t.country AND n.category = t.category AND n.rate = t.rate AND n.reduced = t.reduced
  GROUP BY t.log_no)
SELECT number, rate, currency, taxable, tax
FROM (SELECT d.number, t.rate, t.currency, t.taxable + coalesce(b.taxable, 0) AS taxable,
             t.tax + coalesce(b.tax, 0) AS tax
      FROM document_taxes t JOIN papers d USING (document_id)
      LEFT JOIN before b ON b.log_no = t.log_no) t
WHERE abs(taxable) >= 2000000000000 OR abs(tax) >= 2000000000000 OR rate > 1000000
   OR (tax <> 0 AND (tax > 0) <> (taxable > 0))
   OR 2 * (abs(tax) * 1000000 - abs(taxable) * rate) <= -1000000
   OR 2 * (abs(tax) * 1000000 - abs(taxable) * rate) > 1000000;

-- tax_category: Only the standard category has a rate, and a category that charges nothing for a reason prints the reason.
-- columns at category rate:rate reduced:int name reason reason_code currency tax:amount
SELECT 'tax ' || position || ' of document ' || document_id, category, rate, reduced,
       nullif(name, ''), nullif(reason, ''), nullif(reason_code, ''), currency, tax
FROM document_taxes
WHERE category NOT IN ('standard', 'zero', 'exempt', 'reverse_charge', 'outside_scope')
   OR (category = 'standard') <> (rate > 0) OR rate > 1000000 OR rate < 0 OR (reduced = 1 AND category <> 'standard')
   OR (category IN ('standard', 'zero')) <> (reason = '') OR (category IN ('standard', 'zero') AND reason_code <> '')
   OR (rate = 0 AND tax <> 0) OR name = '';

-- tax_of_credited: A credit note against an invoice has the countries, categories and rates of that invoice.
-- whole
-- columns at invoice country category rate:rate
SELECT d.number, v.number, nullif(t.country, ''), t.category, t.rate
FROM document_taxes t JOIN papers d ON d.document_id = t.document_id AND d.purpose = 'adjustment'
LEFT JOIN papers v ON v.document_id = d.credits
LEFT JOIN document_taxes i ON i.document_id = d.credits AND i.country = t.country AND i.category = t.category
  AND i.rate = t.rate AND i.reduced = t.reduced
WHERE i.document_id IS NULL
UNION ALL
SELECT d.number || CASE d.tax_totals WHEN 0 THEN ', without tax' ELSE ', with tax unlike its invoice' END, i.number,
       NULL, NULL, NULL
FROM papers d JOIN papers i ON i.document_id = d.credits
WHERE (d.tax_totals > 0) <> (i.tax_totals > 0);

-- tax_by_the_rules: Each sale has the tax of the most specific rule in force for its partner, policy, kind, country and month when it was billed.
-- whole
-- columns at country category rate:rate reduced:int partner_country rule_category rule_rate rule_reduced
WITH taxed AS (
  SELECT d.number, d.log_no, d.address_country, d.partner_id, l.policy_id, y.day, t.position, l.position AS line,
         t.category, t.rate, t.reduced, t.country, t.reason, s.log_no AS settings_no, s.begins
  FROM documents d JOIN document_lines l ON l.document_id = d.document_id AND l.kind <> 'reversal'
  JOIN months m ON m.month = l.month JOIN days y ON y.n = m.last_day
  JOIN tax_settings s ON s.log_no < d.log_no AND s.until_no > d.log_no
  LEFT JOIN taxed_lines x ON x.document_id = d.document_id AND x.line = CAST(l.position AS TEXT)
  LEFT JOIN document_taxes t ON t.document_id = d.document_id AND t.position = x.position
  WHERE d.purpose = 'month' AND d.arrangement = 'invoicing' AND d.month >= s.begins),
fitting AS (
  SELECT x.*, r.category AS rule_category, r.rate AS rule_rate, r.reduced AS rule_reduced,
         row_number() OVER (PARTITION BY x.log_no, x.line, coalesce(x.position, 0) ORDER BY
           CASE WHEN r.partner_id IS NULL THEN 0 ELSE 8 END + CASE WHEN r.policy_id IS NULL THEN 0 ELSE 4 END
           + CASE WHEN r.kind IS NULL THEN 0 ELSE 2 END + CASE WHEN r.country IS NULL THEN 0 ELSE 1 END DESC,
           coalesce(x.country, ''), coalesce(x.rate, 0), coalesce(r.category, ''), coalesce(r.rate, '')) AS place
  FROM taxed x
  LEFT JOIN fields k ON k.subject = 'partner ' || x.partner_id AND k.field = 'policies.' || x.policy_id || '.kind'
    AND k.log_no < x.log_no AND k.until_no > x.log_no
  LEFT JOIN tax_rules r ON r.log_no = x.settings_no AND coalesce(r.partner_id = x.partner_id, 1 = 1)
    AND coalesce(r.policy_id = x.policy_id, 1 = 1) AND coalesce(r.kind = k.value, r.kind IS NULL)
    AND coalesce(r.country = x.address_country, 1 = 1)
    AND coalesce(r.from_day <= x.day, r.until_day < x.begins || '-01' OR x.begins || '-01' <= x.day)
    AND coalesce(r.until_day >= x.day, 1 = 1))
SELECT 'line ' || f.line || ' of ' || f.number, f.country, f.category, f.rate, f.reduced,
       f.address_country, f.rule_category, f.rule_rate, f.rule_reduced
FROM fitting f LEFT JOIN rates n USING (rate)
WHERE f.place = 1 AND (f.category IS DISTINCT FROM f.rule_category OR f.country <> f.address_country
  OR n.text IS DISTINCT FROM coalesce(f.rule_rate, '0')
  OR f.reduced <> CASE WHEN f.rule_reduced = 'true' THEN 1 ELSE 0 END);

-- tax_registration: A tax total prints a registration number that the settings had for its country, and the reason of a tax rule.
-- whole
-- columns at position:int country registration
WITH reasons AS (
  SELECT value, min(log_no) AS log_no FROM details
  WHERE action IN ('settings.change', 'settings.adopt') AND value <> '' AND stem <> '' AND leaf = 'reason'
  GROUP BY value)
SELECT d.number, t.position, t.country, t.registration
FROM document_taxes t JOIN documents d USING (document_id)
WHERE d.purpose = 'month' AND EXISTS (SELECT 1 FROM tax_settings s WHERE s.log_no < d.log_no)
  AND ((t.registration <> '' AND NOT EXISTS (
          SELECT 1 FROM fields f WHERE f.subject = 'settings' AND f.field = 'tax.countries.' || t.country || '.registration'
            AND f.value = t.registration AND f.log_no < d.log_no))
       OR (t.category IN ('exempt', 'outside_scope') AND NOT EXISTS (
          SELECT 1 FROM reasons r WHERE r.log_no < d.log_no AND replace(t.reason, r.value, '') <> t.reason)));

-- tax_of_reversals: A reversal has a country, category and rate with which an earlier document of the partner billed that policy, or a rule in force.
-- whole
-- columns at policy country category rate:rate
SELECT 'line ' || l.position || ' of ' || d.number, l.policy_id, t.country, t.category, t.rate
FROM documents d JOIN document_lines l ON l.document_id = d.document_id AND l.kind = 'reversal'
JOIN taxed_lines x ON x.document_id = d.document_id AND x.line = CAST(l.position AS TEXT)
JOIN document_taxes t ON t.document_id = d.document_id AND t.position = x.position
JOIN tax_settings s ON s.log_no < d.log_no AND s.until_no > d.log_no
JOIN rates n ON n.rate = t.rate
WHERE d.purpose = 'month' AND NOT EXISTS (
  SELECT 1 FROM tax_rules r WHERE r.log_no = s.log_no AND r.category = t.category AND coalesce(r.rate, '0') = n.text
    AND coalesce(r.country = t.country, 1 = 1))
  AND NOT EXISTS (
  SELECT 1 FROM documents o JOIN document_lines b ON b.document_id = o.document_id AND b.policy_id = l.policy_id
  JOIN taxed_lines y ON y.document_id = o.document_id AND y.line = CAST(b.position AS TEXT)
  JOIN document_taxes u ON u.document_id = o.document_id AND u.position = y.position
  WHERE o.partner_id = d.partner_id AND o.log_no < d.log_no AND u.country = t.country AND u.category = t.category
    AND u.rate = t.rate);

-- credit_applied: Credit goes from a credit note to an invoice of the same partner and currency, after both were issued and while neither is void.
-- whole
-- columns at credit_note invoice partner invoice_partner currency applied:amount applied_on:day
-- columns credit_note_voided_on:day invoice_voided_on:day
SELECT 'credit application ' || a.credit_application_id, n.number, i.number, n.partner_id, i.partner_id,
       a.currency, a.amount, a.applied_on, n.voided_on, i.voided_on
FROM credit_applications a LEFT JOIN papers n ON n.document_id = a.credit_note_id
LEFT JOIN papers i ON i.document_id = a.invoice_id
LEFT JOIN credit_releases r ON r.credit_application_id = a.credit_application_id
WHERE n.document IS DISTINCT FROM 'credit_note' OR i.document IS DISTINCT FROM 'invoice'
   OR n.partner_id <> i.partner_id OR n.currency <> i.currency OR a.currency <> i.currency OR a.amount <= 0
   OR a.log_no < n.log_no OR a.log_no < i.log_no OR n.void_no < a.log_no OR i.void_no < a.log_no
   OR a.applied_on < n.issued_on OR a.applied_on < i.issued_on
   OR (r.log_no IS NULL AND (n.void_no IS NOT NULL OR i.void_no IS NOT NULL));

-- credit_at_issue: An invoice states the credit that was applied when it was issued.
-- whole
-- columns at currency stated:amount applied:amount
SELECT d.number, d.currency, d.credit_applied, coalesce(sum(a.amount), 0)
FROM papers d LEFT JOIN credit_applications a ON a.invoice_id = d.document_id AND a.at_issue = 1
WHERE d.document <> 'credit_note' GROUP BY d.number, d.currency, d.credit_applied
HAVING coalesce(sum(a.amount), 0) <> d.credit_applied;

-- credit_at_close: While the settings apply all open credit at the close, an invoice is issued with none of it left that is not on hold, or with nothing to pay.
-- whole
-- columns at currency to_pay:amount credit_note credit_left:amount
SELECT d.number, d.currency, d.gross - d.credit_applied, n.number, sum(m.amount)
FROM (SELECT p.*, x.event_no, x.next_no FROM papers p JOIN paper_events x USING (document_id)
      WHERE p.document = 'invoice' AND p.purpose = 'month') d
JOIN fields s ON s.subject = 'settings' AND s.field = 'credit_at_close' AND s.value = 'all' AND s.log_no < d.event_no AND s.until_no > d.event_no
JOIN papers n ON n.document = 'credit_note' AND n.partner_id = d.partner_id AND n.currency = d.currency
  AND n.arrangement = d.arrangement AND n.log_no < d.event_no AND (n.void_no IS NULL OR n.void_no > d.log_no)
JOIN document_moves m ON m.document_id = n.document_id AND (m.log_no < d.next_no OR d.next_no IS NULL)
WHERE d.gross > d.credit_applied AND NOT EXISTS (
  SELECT 1 FROM holds h LEFT JOIN hold_releases r USING (hold_id)
  WHERE h.document_id = n.document_id AND h.log_no < d.event_no AND (r.log_no IS NULL OR r.log_no > d.event_no))
GROUP BY d.number, d.currency, d.gross, d.credit_applied, n.number HAVING sum(m.amount) > 0;

-- credit_released: Credit is released after it was applied; by a void, only that of the invoice that it voids.
-- whole
-- columns at applied_on:day released_on:day by_void_of:int of_invoice:int
SELECT 'credit application ' || r.credit_application_id, a.applied_on, r.released_on, r.document_id,
       a.invoice_id
FROM credit_releases r LEFT JOIN credit_applications a USING (credit_application_id)
LEFT JOIN voids v ON v.document_id = r.document_id
WHERE a.log_no IS NULL OR a.log_no > r.log_no OR r.released_on < a.applied_on
   OR (r.document_id IS NOT NULL AND (r.document_id <> a.invoice_id OR v.log_no IS NULL));

-- credit_lowers_at_once: A credit note against an invoice states what it took off that invoice at once, and that is what was applied.
-- whole
-- columns at currency stated:amount applied:amount
SELECT d.number, d.currency, f.invoice_lowered_by, coalesce(sum(a.amount), 0)
FROM papers d JOIN documents f USING (document_id)
LEFT JOIN credit_applications a ON a.credit_note_id = d.document_id AND a.invoice_id = d.credits
  AND a.event_id IN (SELECT event_id FROM audit_events WHERE action = 'invoice.credit')
WHERE d.purpose = 'adjustment' GROUP BY d.number, d.currency, f.invoice_lowered_by
HAVING coalesce(sum(a.amount), 0) <> coalesce(f.invoice_lowered_by, -1);

-- credit_states_rest: A credit note against an invoice states what it left to pay on that invoice.
-- whole
-- columns at currency states_left:amount was_left:amount
SELECT n.number, n.currency, n.invoice_left, sum(m.amount)
FROM (SELECT d.number, d.currency, d.credits, d.invoice_left, x.next_no
      FROM documents d JOIN paper_events x USING (document_id)
      WHERE d.invoice_left IS NOT NULL AND d.credits IS NOT NULL) n
JOIN document_moves m ON m.document_id = n.credits AND (m.log_no < n.next_no OR n.next_no IS NULL)
GROUP BY n.number, n.currency, n.invoice_left HAVING sum(m.amount) <> n.invoice_left;

-- correction_dated: A void, a release of credit or a write-off is dated on the day of its record, or on that of the latest document.
-- whole
-- columns at dated_on:day recorded_at
SELECT f.fact || ', fact ' || f.log_no, f.dated_on, f.recorded_at
FROM dated f JOIN days r ON r.day = substr(f.recorded_at, 1, 10)
WHERE f.fact IN ('document_voided', 'credit_released', 'written_off', 'write_off_undone') AND f.dated_on - r.n NOT IN (-1, 0, 1)
  AND f.dated_on NOT IN (SELECT d.issued_on FROM documents d WHERE d.log_no < f.log_no);

-- never_overpaid: On no day was a document settled for more than its amount with tax, nor credit taken from a credit note beyond it.
-- whole
-- columns at on:day currency left:amount
SELECT d.number, m.entry_on, d.currency, m.balance
FROM (SELECT document_id, entry_on, sum(sum(amount)) OVER (PARTITION BY document_id ORDER BY entry_on) AS balance
      FROM document_moves GROUP BY document_id, entry_on) m
JOIN papers d ON d.document_id = m.document_id WHERE m.balance < 0;

-- void_unsettled: Nothing stays applied to a void document: no payment, credit, write-off, small difference or refund.
-- whole
-- columns at settled_by currency still_applied:amount applied_after_void:amount
SELECT d.number, m.what, d.currency, -sum(m.amount),
       sum(CASE WHEN m.log_no > d.void_no AND m.amount < 0 THEN -m.amount ELSE 0 END)
FROM document_moves m JOIN papers d USING (document_id)
WHERE d.void_no IS NOT NULL AND m.what <> 'issue' GROUP BY d.number, m.what, d.currency
HAVING sum(m.amount) <> 0 OR sum(CASE WHEN m.log_no > d.void_no AND m.amount < 0 THEN 1 ELSE 0 END) > 0;

-- write_off: A write-off is all that is open on an issued invoice, in the invoice's currency, and is undone later.
-- whole
-- columns at document document_currency currency write_off_is_of:amount issued_on:day written_off_on:day
-- columns undone_on:day
SELECT 'write-off ' || w.write_off_id, d.number, d.currency, w.currency, w.amount, d.issued_on,
       w.written_off_on, NULL
FROM write_offs w LEFT JOIN papers d USING (document_id)
WHERE d.document IS DISTINCT FROM 'invoice' OR d.log_no > w.log_no OR w.currency <> d.currency OR w.amount <= 0
   OR w.written_off_on < d.issued_on OR trim(w.reason) = ''
   OR (SELECT sum(m.amount) FROM document_moves m WHERE m.document_id = w.document_id AND m.log_no <= w.log_no) <> 0
UNION ALL
SELECT 'undone write-off ' || r.write_off_id, NULL, NULL, w.currency, w.amount, NULL, w.written_off_on,
       r.reversed_on
FROM write_off_reversals r LEFT JOIN write_offs w USING (write_off_id)
WHERE w.log_no IS NULL OR w.log_no > r.log_no OR r.reversed_on < w.written_off_on OR trim(r.reason) = '';

-- refund_of_credit: A refund pays an issued credit note to the note's partner in the note's currency, and comes back later.
-- whole
-- columns at document document_partner partner document_currency currency refunded:amount method refunded_on:day
-- columns returned_on:day
SELECT 'refund ' || f.credit_refund_id, d.number, d.partner_id, f.partner_id, d.currency,
       f.currency, f.amount, f.method, f.refunded_on, NULL
FROM credit_refunds f LEFT JOIN papers d USING (document_id)
WHERE d.document IS DISTINCT FROM 'credit_note' OR d.log_no > f.log_no OR d.partner_id <> f.partner_id
   OR f.currency <> d.currency OR f.amount <= 0 OR f.method NOT IN ('ach', 'wire', 'check', 'other')
UNION ALL
SELECT 'returned refund ' || b.credit_refund_id, NULL, NULL, f.partner_id, NULL, f.currency, f.amount,
       f.method, f.refunded_on, b.returned_on
FROM credit_refund_returns b LEFT JOIN credit_refunds f USING (credit_refund_id)
WHERE f.log_no IS NULL OR f.log_no > b.log_no OR b.returned_on < f.refunded_on;

-- payment_identity: The identity of a payment is that of exactly one of its sources.
-- whole
-- columns at identity currency amount:amount sources_of_identity:int
SELECT 'payment ' || p.payment_id, p.identity, p.currency, p.amount, count(s.log_no)
FROM payments p LEFT JOIN payment_sources s ON s.payment_id = p.payment_id AND s.identity = p.identity
GROUP BY p.payment_id, p.identity, p.currency, p.amount HAVING count(s.log_no) <> 1;

-- identity_of_payment: The identity of a bank line ends with its day, direction and amount; that of a payment names its line, or what was recorded by hand.
-- whole
-- columns at currency amount:amount booked_on:day names_line:int
SELECT 'line ' || l.account || ' ' || l.identity, l.currency, l.amount, l.bank_booked_on, NULL
FROM bank_lines l JOIN days d ON d.n = l.bank_booked_on
JOIN numerals n ON n.currency = l.currency AND n.amount = l.amount
WHERE replace(l.identity || '|', '|' || d.day || '|' || l.direction || '|' || n.plain || '|', '') = l.identity || '|'
UNION ALL
SELECT 'source ' || s.identity || ' of payment ' || s.payment_id, NULL, NULL, NULL, s.bank_line_id
FROM payment_sources s JOIN bank_lines l USING (bank_line_id)
WHERE s.source = 'bank' AND s.identity <> 'bank|' || l.account || '|' || l.identity
UNION ALL
SELECT 'payment ' || p.identity, p.currency, p.amount, p.received_on, NULL
FROM payments p JOIN audit_events e ON e.event_id = p.event_id AND e.action = 'payment.record'
JOIN days d ON d.n = p.received_on JOIN numerals n ON n.currency = p.currency AND n.amount = p.amount
WHERE p.source = 'hand'
  AND (substr(p.identity, 1, length(e.subject) + length(n.plain) + 11)
         <> 'hand|' || e.subject || '|' || p.currency || '|' || n.plain || '|'
       OR (e.subject = p.partner_id AND replace(p.identity || '|', '|' || d.day || '|', '') = p.identity || '|'));

-- payment_source: A source names a payment that was recorded before; a source from the bank names a bank line.
-- whole
-- columns at source payment:int names_line:int
SELECT 'source ' || s.identity, s.source, s.payment_id, s.bank_line_id
FROM payment_sources s LEFT JOIN payments p USING (payment_id)
WHERE p.log_no IS NULL OR (s.source = 'bank') <> (s.bank_line_id IS NOT NULL)
   OR p.log_no > s.log_no OR s.source NOT IN ('hand', 'bank', 'processor', 'opening');

-- payment_form: A payment is above zero and came by a known way, no later than the day after it was recorded.
-- columns at source method currency amount:amount received_on:day entry_on:day recorded_at
SELECT 'payment ' || p.payment_id, p.source, p.method, p.currency, p.amount, p.received_on, p.entry_on,
       p.recorded_at
FROM payments p LEFT JOIN days d ON d.day = substr(p.recorded_at, 1, 10)
WHERE p.amount <= 0 OR p.source NOT IN ('hand', 'bank', 'processor', 'opening')
   OR p.method NOT IN ('ach', 'wire', 'check', 'link', 'other') OR p.entry_on < p.received_on OR trim(p.reference) = ''
   OR (p.source = 'opening') <> (p.opening_id IS NOT NULL) OR (p.source <> 'bank' AND coalesce(p.received_on > d.n + 1, 1 = 1));

-- payment_not_overdrawn: On no day was more of a payment applied or given back than its owner had of it.
-- whole
-- columns at owner on:day currency left:amount
SELECT 'payment ' || m.payment_id, nullif(m.partner_id, ''), m.entry_on, p.currency, m.balance
FROM (SELECT payment_id, partner_id, entry_on,
             sum(sum(amount)) OVER (PARTITION BY payment_id, partner_id ORDER BY entry_on) AS balance
      FROM cash_moves GROUP BY payment_id, partner_id, entry_on) m
LEFT JOIN (SELECT payment_id, min(currency) AS currency FROM payments GROUP BY payment_id) p
  ON p.payment_id = m.payment_id
WHERE m.balance < 0;

-- cash_of_payer: What is left of a payment belongs to its payer: as known when it came, or as named or assumed last.
-- whole
-- columns at owner currency left:amount payer
SELECT 'payment ' || c.payment_id, nullif(c.partner_id, ''), p.currency, c.amount,
       coalesce(g.partner_id, p.partner_id)
FROM (SELECT payment_id, partner_id, sum(amount) AS amount FROM cash_moves GROUP BY payment_id, partner_id
      HAVING sum(amount) <> 0) c
JOIN payments p ON p.payment_id = c.payment_id
LEFT JOIN (SELECT payment_id, max(payment_assignment_id) AS last FROM payment_assignments WHERE kind <> 'part'
           GROUP BY payment_id) n ON n.payment_id = c.payment_id
LEFT JOIN payment_assignments g ON g.payment_assignment_id = n.last
WHERE c.partner_id <> coalesce(g.partner_id, p.partner_id, '');

-- payment_assigned: Unapplied cash moves from one partner to another, in the currency of its payment, after the payment came.
-- whole
-- columns at from_partner to_partner kind currency assigned:amount payment_currency
SELECT 'assignment ' || g.payment_assignment_id, g.from_partner_id, g.partner_id, g.kind, g.currency,
       g.amount, p.currency
FROM payment_assignments g LEFT JOIN payments p USING (payment_id)
WHERE p.log_no IS NULL OR p.log_no > g.log_no OR g.currency <> p.currency OR g.partner_id = coalesce(g.from_partner_id, '')
   OR g.kind NOT IN ('named', 'assumed', 'part') OR g.amount < 0 OR (g.amount = 0 AND g.kind <> 'named');

-- payment_applied: A payment is applied to an invoice of the same partner and currency that is not void, after it came and the invoice was issued.
-- whole
-- columns at payment:int document partner document_partner currency applied:amount payment_currency document_currency
-- columns received_on:day applied_on:day entry_on:day voided_on:day
SELECT 'application ' || a.payment_application_id, a.payment_id, d.number, a.partner_id, d.partner_id,
       a.currency, a.amount, p.currency, d.currency, p.received_on, a.applied_on, a.entry_on, d.voided_on
FROM payment_applications a LEFT JOIN papers d USING (document_id)
LEFT JOIN payments p ON p.payment_id = a.payment_id
WHERE p.log_no IS NULL OR d.document IS DISTINCT FROM 'invoice' OR d.partner_id <> a.partner_id
   OR d.currency <> a.currency OR p.currency <> a.currency OR a.amount <= 0 OR a.log_no < d.log_no
   OR a.log_no < p.log_no OR d.void_no < a.log_no OR a.applied_on < p.received_on
   OR a.entry_on < a.applied_on OR a.entry_on < p.entry_on;

-- payment_unapplied: An application is taken back after it was made; by a reversal, only of its payment.
-- whole
-- columns at payment:int reversal_is_of_payment:int applied_entry_on:day unapplied_on:day entry_on:day
SELECT 'application ' || u.payment_application_id, a.payment_id, r.payment_id, a.entry_on, u.unapplied_on,
       u.entry_on
FROM payment_unapplications u
LEFT JOIN payment_applications a USING (payment_application_id)
LEFT JOIN payment_reversals r ON r.payment_reversal_id = u.payment_reversal_id
WHERE a.log_no IS NULL OR a.log_no > u.log_no OR u.entry_on < a.entry_on OR u.entry_on < u.unapplied_on
   OR (u.payment_reversal_id IS NOT NULL AND r.payment_id IS DISTINCT FROM a.payment_id);

-- small_difference: A small difference belongs to the application that left it, of the same document, currency and day of entry.
-- whole
-- columns at document:int currency difference:amount event:int applied_to:int applied_currency
-- columns applied:amount@applied_currency applied_by_event:int
SELECT 'difference of application ' || s.payment_application_id, s.document_id, s.currency, s.amount,
       s.event_id, a.document_id, a.currency, a.amount, a.event_id
FROM small_differences s LEFT JOIN payment_applications a USING (payment_application_id)
WHERE a.log_no IS NULL OR a.log_no > s.log_no OR a.document_id <> s.document_id OR a.currency <> s.currency
   OR s.amount <= 0 OR a.event_id <> s.event_id;

-- small_difference_allowed: A small difference is at most what the settings allow in its currency.
-- whole
-- columns at currency amount:amount settings_allow
SELECT 'difference of application ' || s.payment_application_id, s.currency, s.amount, f.value
FROM small_differences s JOIN fields f ON f.subject = 'settings' AND f.field = 'small_difference.' || s.currency
  AND f.log_no < s.log_no AND f.until_no > s.log_no
JOIN limits l ON l.code = s.currency AND l.value = f.value
WHERE s.amount > l.units AND NOT EXISTS (
  SELECT 1 FROM settings_changes z WHERE z.log_no < s.log_no AND substr(s.recorded_at, 1, 16) <= z.until);

-- payment_suggested: A suggestion is for a payment of its currency, and names either a document or another payment.
-- whole
-- columns at payment:int document:int same_as:int currency suggested:amount payment_currency
SELECT 'suggestion ' || s.payment_suggestion_id, s.payment_id, s.document_id, s.same_as,
       s.currency, s.amount, p.currency
FROM payment_suggestions s LEFT JOIN payments p USING (payment_id)
LEFT JOIN documents d ON d.document_id = s.document_id LEFT JOIN payments o ON o.payment_id = s.same_as
WHERE p.log_no IS NULL OR p.log_no > s.log_no OR p.currency <> s.currency OR s.amount <= 0 OR s.same_as = s.payment_id
   OR (s.document_id IS NULL) = (s.same_as IS NULL) OR (s.document_id IS NOT NULL AND d.log_no IS NULL)
   OR (s.same_as IS NOT NULL AND o.log_no IS NULL);

-- payment_reversed: A payment is given back after it came, in its currency and for one cause.
-- whole
-- columns at payment:int kind payment_currency currency reversed:amount payment_entry_on:day reversed_on:day
-- columns entry_on:day
SELECT 'reversal ' || r.payment_reversal_id, r.payment_id, r.kind, p.currency, r.currency, r.amount,
       p.entry_on, r.reversed_on, r.entry_on
FROM payment_reversals r LEFT JOIN payments p USING (payment_id)
WHERE p.log_no IS NULL OR p.log_no > r.log_no OR r.currency <> p.currency OR r.amount <= 0 OR r.entry_on < p.entry_on
   OR r.entry_on < r.reversed_on OR trim(r.reason) = ''
   OR r.kind NOT IN ('returned', 'refunded', 'disputed', 'mistake', 'duplicate', 'other')
   OR (r.kind = 'duplicate') <> (r.duplicate_of IS NOT NULL) OR (r.kind = 'other') <> (r.booked_to IS NOT NULL);

-- payment_reinstated: A reversal is undone after it was recorded.
-- whole
-- columns at reversal_entry_on:day reinstated_on:day entry_on:day
SELECT 'reversal ' || i.payment_reversal_id, r.entry_on, i.reinstated_on, i.entry_on
FROM payment_reinstatements i LEFT JOIN payment_reversals r USING (payment_reversal_id)
WHERE r.log_no IS NULL OR r.log_no > i.log_no OR i.entry_on < r.entry_on OR i.entry_on < i.reinstated_on;

-- duplicate_payment: A payment reversed as a duplicate has the amount, currency and payer of the other, and no circle of duplicates leaves none.
-- whole
-- columns at duplicate_of:int partner other_partner currency amount:amount other_currency
-- columns other_amount:amount@other_currency
WITH RECURSIVE chain(payment_id, leads_to) AS (
  SELECT payment_id, duplicate_of FROM reversed WHERE kind = 'duplicate'
  UNION
  SELECT c.payment_id, r.duplicate_of FROM chain c JOIN reversed r ON r.payment_id = c.leads_to AND r.kind = 'duplicate')
SELECT 'payment ' || p.payment_id, r.duplicate_of, p.partner_id, o.partner_id, p.currency, p.amount,
       o.currency, o.amount
FROM reversed r JOIN payments p USING (payment_id) LEFT JOIN payments o ON o.payment_id = r.duplicate_of
WHERE r.kind = 'duplicate' AND (o.log_no IS NULL OR p.amount <> o.amount OR p.currency <> o.currency
  OR p.partner_id <> o.partner_id OR p.payment_id = o.payment_id)
UNION ALL
SELECT 'payment ' || payment_id || ', in a circle', leads_to, NULL, NULL, NULL, NULL, NULL, NULL
FROM chain WHERE payment_id = leads_to;

-- dispute_outcome: A processor's dispute names a payment; it takes at most the disputed amount, and gives the amount back exactly if the last outcome is not a loss.
-- whole
-- columns at payment:int reversal_is_of_payment:int payment_currency currency disputed:amount taken:amount given_back
-- columns outcome opened_on:day decided_on:day
SELECT 'dispute ' || d.identity, d.payment_id, r.payment_id, p.currency, d.currency, d.amount, r.amount,
       CASE WHEN i.log_no IS NULL THEN 'no' ELSE 'yes' END, o.outcome, d.opened_on, o.decided_on
FROM disputes d LEFT JOIN payments p USING (payment_id)
LEFT JOIN (SELECT dispute_id, outcome, decided_on FROM (SELECT dispute_id, outcome, decided_on,
             row_number() OVER (PARTITION BY dispute_id ORDER BY log_no DESC) AS back FROM dispute_outcomes) w
           WHERE back = 1) o ON o.dispute_id = d.dispute_id
LEFT JOIN payment_reversals r ON r.identity = d.identity
LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = r.payment_reversal_id
WHERE p.log_no IS NULL OR p.log_no > d.log_no OR d.currency <> p.currency OR d.amount <= 0 OR r.amount > d.amount
   OR r.payment_id <> d.payment_id
   OR (r.log_no IS NOT NULL AND (i.log_no IS NOT NULL) <> (coalesce(o.outcome, 'open') IN ('won', 'closed')))
UNION ALL
SELECT 'outcome of dispute ' || o.dispute_id, d.payment_id, NULL, NULL, d.currency, d.amount, NULL, NULL,
       o.outcome, d.opened_on, o.decided_on
FROM dispute_outcomes o LEFT JOIN disputes d USING (dispute_id)
WHERE d.log_no IS NULL OR d.log_no > o.log_no OR o.decided_on < d.opened_on
   OR o.outcome NOT IN ('won', 'lost', 'closed');

-- bank_statement_adds_up: A bank statement has the lines that it states; they are its credits and debits, and these lead from its opening to its closing balance.
-- whole
-- columns at account stated_lines:int counted_lines:int currency opening:amount closing:amount stated_credits:amount
-- columns credits_of_lines:amount stated_debits:amount debits_of_lines:amount
SELECT 'statement ' || s.bank_statement_id, s.account, s.lines, coalesce(l.lines, 0), s.currency,
       s.opening, s.closing, s.credits, coalesce(l.credits, 0), s.debits, coalesce(l.debits, 0)
FROM bank_statements s LEFT JOIN (
  SELECT x.bank_statement_id, count(*) AS lines, count(DISTINCT x.position) AS places,
         count(DISTINCT x.bank_line_id) AS once,
         sum(CASE l.direction WHEN 'credit' THEN l.amount ELSE 0 END) AS credits,
         sum(CASE l.direction WHEN 'debit' THEN l.amount ELSE 0 END) AS debits
  FROM bank_statement_lines x JOIN bank_lines l USING (bank_line_id) GROUP BY x.bank_statement_id) l
  ON l.bank_statement_id = s.bank_statement_id
LEFT JOIN bank_files f ON f.bank_file_id = s.bank_file_id
WHERE s.lines <> coalesce(l.lines, 0) OR s.credits <> coalesce(l.credits, 0) OR s.debits <> coalesce(l.debits, 0)
   OR s.opening + s.credits - s.debits <> s.closing OR (s.opening IS NULL AND s.closing IS NOT NULL) OR l.places <> l.lines OR l.once <> l.lines OR f.log_no IS NULL;

-- bank_line_in_statement: A line of a statement has the statement's account and currency, and every bank line is in a statement.
-- whole
-- columns at account listed_account statement_account direction currency amount:amount listed_currency
-- columns statement_currency
SELECT 'bank line ' || coalesce(x.bank_line_id, l.bank_line_id), l.account, x.account, s.account,
       l.direction, l.currency, l.amount, x.currency, s.currency
FROM bank_lines l FULL JOIN bank_statement_lines x ON x.bank_line_id = l.bank_line_id
LEFT JOIN bank_statements s ON s.bank_statement_id = x.bank_statement_id
WHERE l.log_no IS NULL OR x.log_no IS NULL OR s.log_no IS NULL OR x.account <> l.account OR x.currency <> l.currency
   OR x.account <> s.account OR x.currency <> s.currency OR l.amount <= 0 OR l.direction NOT IN ('credit', 'debit');

-- bank_line_outcome: Every bank line has an outcome: a payment or payout of a credit, a return or refund of a debit, each of this line, or a reason to ignore it.
-- whole
-- columns at direction currency amount:amount outcome payment:int payout:int reversal:int
SELECT 'bank line ' || l.bank_line_id, l.direction, l.currency, l.amount, o.outcome, o.payment_id,
       o.payout_id, o.payment_reversal_id
FROM bank_lines l LEFT JOIN bank_line_outcomes o USING (bank_line_id)
LEFT JOIN payment_sources s ON s.bank_line_id = l.bank_line_id AND s.payment_id = o.payment_id
LEFT JOIN payouts x ON x.payout_id = o.payout_id
LEFT JOIN payment_reversals r ON r.payment_reversal_id = o.payment_reversal_id
WHERE o.log_no IS NULL OR o.log_no < l.log_no OR o.reason = '' OR CASE o.outcome
  WHEN 'payment' THEN s.log_no IS NULL
  WHEN 'payout' THEN x.bank_line_id IS DISTINCT FROM l.bank_line_id
  WHEN 'return' THEN r.bank_line_id IS DISTINCT FROM l.bank_line_id
  WHEN 'refund' THEN l.bank_line_id NOT IN (SELECT bank_line_id FROM refund_matches)
  WHEN 'ignored' THEN o.payment_id IS NOT NULL OR o.payout_id IS NOT NULL OR o.payment_reversal_id IS NOT NULL
  ELSE 1 = 1 END;

-- of_bank_line: A payment, payout, return, refund or booking that names a bank line has its direction, amount, currency, account and day.
-- whole
-- columns at line:int direction line_direction currency amount:amount line_currency line_amount:amount@line_currency
-- columns account line_account on:day line_on:day
SELECT x.what, x.bank_line_id, x.direction, l.direction, x.currency, x.amount, l.currency, l.amount, x.account, l.account,
       x.day, l.bank_booked_on
FROM (SELECT 'source ' || s.identity AS what, s.bank_line_id, 'credit' AS side, 'credit' AS direction, p.currency, p.amount,
             CASE WHEN s.identity = p.identity THEN p.account END AS account,
             CASE WHEN s.identity = p.identity THEN p.received_on END AS day, s.log_no
      FROM payment_sources s JOIN payments p USING (payment_id)
      UNION ALL SELECT 'payout ' || payout_id, bank_line_id, 'credit', direction, currency, amount, account, received_on, log_no
      FROM payouts
      UNION ALL SELECT 'refund match ' || refund_match_id, bank_line_id, 'debit', direction, currency, amount, account, paid_on,
             log_no
      FROM refund_matches
      UNION ALL SELECT 'booking ' || bank_booking_id, bank_line_id, direction, direction, currency, amount, account, NULL, log_no
      FROM bank_bookings
      UNION ALL SELECT 'reversal ' || payment_reversal_id, bank_line_id, 'debit', 'debit', currency, amount, NULL, NULL, log_no
      FROM payment_reversals
      UNION ALL SELECT 'returned refund ' || b.credit_refund_id, b.bank_line_id, 'credit', 'credit', f.currency, f.amount, NULL,
             NULL, b.log_no
      FROM credit_refund_returns b JOIN credit_refunds f USING (credit_refund_id)) x
LEFT JOIN bank_lines l ON l.bank_line_id = x.bank_line_id
WHERE x.bank_line_id IS NOT NULL
  AND (l.log_no IS NULL OR l.log_no > x.log_no OR x.direction <> x.side OR l.direction <> x.side OR l.amount <> x.amount
       OR l.currency <> x.currency OR l.account <> x.account OR l.bank_booked_on <> x.day);

-- payout_adds_up: A payout and its fees equal the payments in it, or what the connected account paid out; each payment is by link, has the payout's currency, and came before.
-- whole
-- columns at currency gross:amount fees:amount of_payments:amount payout_currency paid_out:amount@payout_currency
-- columns paid_out_on:day payment_currency payment_is_of:amount@payment_currency method received_on:day
SELECT 'payout ' || t.payout_id, t.currency, t.gross, t.fees, coalesce(p.amount, 0), o.currency, o.amount,
       o.received_on, NULL, NULL, NULL, NULL
FROM payout_settlements t LEFT JOIN payouts o USING (payout_id)
LEFT JOIN (SELECT payout_id, sum(amount) AS amount FROM payout_payments GROUP BY payout_id) p ON p.payout_id = t.payout_id
LEFT JOIN account_payouts a ON a.payout_id = t.payout_id
WHERE o.log_no IS NULL OR t.entry_on < o.entry_on OR o.amount + t.fees <> t.gross OR t.fees < 0 OR t.currency <> o.currency
   OR (a.payout_id IS NULL AND coalesce(p.amount, 0) <> t.gross) OR (a.payout_id IS NOT NULL AND p.payout_id IS NOT NULL)
UNION ALL
SELECT 'payment ' || x.payment_id || ' in payout ' || x.payout_id, x.currency, NULL, NULL,
       x.amount, o.currency, o.amount, o.received_on, p.currency, p.amount, p.method, p.received_on
FROM payout_payments x LEFT JOIN payments p USING (payment_id)
LEFT JOIN payouts o ON o.payout_id = x.payout_id LEFT JOIN payout_settlements t ON t.payout_id = x.payout_id
WHERE p.log_no IS NULL OR t.log_no IS NULL OR p.method <> 'link' OR p.currency <> o.currency OR x.currency <> o.currency
   OR x.amount <= 0 OR x.amount > p.amount OR p.received_on > o.received_on;

-- payout_covers_remaining: A payout has of each payment what had not been given back: by a mistake or duplicate known when it was settled, or by a reversal in force on the payout's day.
-- whole
-- columns at payout:int currency in_payout:amount payment:amount given_back:amount
SELECT 'payment ' || x.payment_id, x.payout_id, x.currency, x.amount, p.amount, coalesce(sum(r.amount), 0)
FROM payout_payments x JOIN payments p USING (payment_id) JOIN payouts o ON o.payout_id = x.payout_id
JOIN payout_settlements s ON s.payout_id = x.payout_id
LEFT JOIN (SELECT r.payment_id, r.amount, r.kind, r.event_id, r.reversed_on, i.event_id AS undone_by, i.reinstated_on
           FROM payment_reversals r LEFT JOIN payment_reinstatements i USING (payment_reversal_id)) r
  ON r.payment_id = x.payment_id AND r.event_id < s.event_id
  AND (r.kind IN ('mistake', 'duplicate') OR (r.reversed_on <= o.received_on
       AND NOT coalesce(r.undone_by < s.event_id AND r.reinstated_on <= o.received_on, 1 = 0)))
GROUP BY x.payment_id, x.payout_id, x.currency, x.amount, p.amount HAVING x.amount <> p.amount - coalesce(sum(r.amount), 0);

-- account_payout: A bank receipt from a connected account is a payout of that account of its amount, and its fees are those of what the payout contains.
-- whole
-- columns at account transaction_account currency received:amount fees:amount account_currency
-- columns paid_out:amount@account_currency kept:amount@account_currency
SELECT 'payout ' || a.payout_id, a.account, m.account, coalesce(o.currency, s.currency), o.amount,
       s.fees, a.currency, -m.net, coalesce(k.kept, 0)
FROM account_payouts a LEFT JOIN payouts o USING (payout_id)
LEFT JOIN payout_settlements s ON s.payout_id = a.payout_id
LEFT JOIN balance_transactions m ON m.balance_transaction_id = a.balance_transaction_id
LEFT JOIN (SELECT a.payout_id, sum(CASE WHEN p.kind = 'other' AND substr(p.type, 1, 6) <> 'payout' THEN -p.net ELSE 0 END)
                    AS kept
           FROM account_payouts a JOIN payout_settlements s USING (payout_id)
           JOIN payout_contents c ON c.payout_transaction_id = a.balance_transaction_id AND c.event_id <= s.event_id
           JOIN balance_transactions p ON p.balance_transaction_id = c.balance_transaction_id GROUP BY a.payout_id) k
  ON k.payout_id = a.payout_id
WHERE o.log_no IS NULL OR o.currency <> a.currency
   OR s.fees <> CASE WHEN coalesce(k.kept, 0) > 0 THEN k.kept ELSE 0 END
   OR (a.balance_transaction_id IS NOT NULL AND (m.log_no IS NULL OR m.type <> 'payout' OR -m.net <> o.amount
       OR m.account <> a.account));

-- payout_contains: The contents of a connected account's payout add up to it and have its account and currency.
-- whole
-- columns at type account other_account currency other_currency paid_out:amount contents:amount
SELECT 'transaction ' || c.payout_transaction_id, m.type, m.account,
       max(CASE WHEN p.account <> m.account THEN p.account WHEN c.account <> m.account THEN c.account END), m.currency,
       max(CASE WHEN p.currency <> m.currency THEN p.currency WHEN c.currency <> m.currency THEN c.currency END), -m.net, sum(p.net)
FROM payout_contents c LEFT JOIN balance_transactions m ON m.balance_transaction_id = c.payout_transaction_id
LEFT JOIN balance_transactions p ON p.balance_transaction_id = c.balance_transaction_id
GROUP BY c.payout_transaction_id, m.type, m.account, m.currency, m.net
HAVING m.type IS DISTINCT FROM 'payout' OR sum(p.net) <> -m.net
    OR sum(CASE WHEN p.account = m.account AND p.currency = m.currency AND c.account = m.account
                  AND c.currency = m.currency THEN 0 ELSE 1 END) > 0;

-- refund_match: A debit of the bank pays one refund in force, of its amount, currency and account.
-- whole
-- columns at currency paid:amount account refund_currency refund_is_of:amount@refund_currency
SELECT 'refund match ' || m.refund_match_id, m.currency, m.amount, m.account, coalesce(f.currency, r.currency),
       coalesce(f.amount, r.amount)
FROM refund_matches m LEFT JOIN credit_refunds f ON f.credit_refund_id = m.credit_refund_id
LEFT JOIN payment_reversals r ON r.payment_reversal_id = m.payment_reversal_id
WHERE (m.credit_refund_id IS NULL) = (m.payment_reversal_id IS NULL)
   OR coalesce(f.amount, r.amount, -1) <> m.amount OR coalesce(f.currency, r.currency) <> m.currency
   OR coalesce(f.log_no, r.log_no) > m.log_no OR (f.account <> '' AND f.account <> m.account)
UNION ALL
SELECT 'bank line ' || m.bank_line_id || ', of ' || count(*) || ' refunds', NULL, NULL, NULL, NULL, NULL
FROM refund_matches m LEFT JOIN credit_refund_returns b USING (credit_refund_id)
LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = m.payment_reversal_id
WHERE b.log_no IS NULL AND i.log_no IS NULL GROUP BY m.bank_line_id HAVING count(*) > 1;

-- bank_booking: A bank line is booked to an account that nothing else moves; a line that is a payment, payout, refund or return is not booked.
-- whole
-- columns at currency amount:amount account booked_to booked_on:day line_on:day outcome
SELECT 'booking ' || b.bank_booking_id, b.currency, b.amount, b.account, b.booked_to, b.booked_on, l.bank_booked_on, o.outcome
FROM bank_bookings b LEFT JOIN bank_lines l USING (bank_line_id)
LEFT JOIN bank_line_outcomes o ON o.bank_line_id = b.bank_line_id
LEFT JOIN bank_bookings p ON p.bank_booking_id = b.previous
LEFT JOIN bank_bookings n ON n.previous = b.bank_booking_id
WHERE b.booked_on < l.bank_booked_on OR trim(b.reason) = ''
   OR o.outcome NOT IN ('ignored', 'refund') OR (b.previous IS NULL AND b.booked_to IS NULL)
   OR (b.previous IS NOT NULL AND (p.log_no IS NULL OR p.log_no > b.log_no OR p.bank_line_id <> b.bank_line_id
       OR p.booked_to IS NOT DISTINCT FROM b.booked_to))
   OR substr(b.booked_to, 1, 11) = 'assets:bank' OR substr(b.booked_to, 1, 16) = 'assets:processor'
   OR substr(b.booked_to, 1, 17) = 'assets:receivable' OR substr(b.booked_to, 1, 12) = 'income:sales'
   OR substr(b.booked_to, 1, 18) = 'income:adjustments' OR substr(b.booked_to, 1, 21) = 'liabilities:unapplied'
   OR (n.log_no IS NULL AND b.booked_to IS NOT NULL AND b.bank_line_id IN (
     SELECT bank_line_id FROM payment_reversals WHERE bank_line_id IS NOT NULL
     UNION SELECT bank_line_id FROM credit_refund_returns WHERE bank_line_id IS NOT NULL
     UNION SELECT m.bank_line_id FROM refund_matches m
     LEFT JOIN credit_refund_returns r USING (credit_refund_id)
     LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = m.payment_reversal_id
     WHERE r.log_no IS NULL AND i.log_no IS NULL));

-- share_transaction: The net amount of a balance transaction is its amount less its fee, and a converted one names what was sent.
-- whole
-- columns at account kind reported_by currency amount:amount fee:amount net:amount source_currency
-- columns source_amount:amount@source_currency exchange_rate
SELECT 'transaction ' || balance_transaction_id, account, kind, reported_by, currency, amount, fee, net,
       source_currency, source_amount, exchange_rate
FROM balance_transactions
WHERE amount - fee <> net OR kind NOT IN ('share', 'misrouted', 'reversal', 'dispute', 'other')
   OR reported_by NOT IN ('processor', 'settlement_file') OR (source_currency IS NULL) <> (source_amount IS NULL)
   OR (source_currency IS NULL) <> (exchange_rate IS NULL) OR source_currency = currency
   OR (source_amount > 0) <> (amount > 0);

-- share_dated: A share is dated on the day of its transaction.
-- whole
-- columns at dated_on:day transaction_at
SELECT 'share ' || s.share_allocation_id, s.occurred_on, b.occurred_at
FROM share_allocations s JOIN balance_transactions b USING (balance_transaction_id)
JOIN days d ON d.day = substr(b.occurred_at, 1, 10)
WHERE s.occurred_on - d.n NOT IN (-1, 0, 1);

-- share_of_settlement_line: A transaction that a settlement file reported has the net amount, currency and time of its line.
-- whole
-- columns at currency net:amount line_currency line_amount:amount@line_currency
SELECT 'transaction ' || b.id, b.currency, b.net, l.currency, l.amount
FROM balance_transactions b JOIN settlement_lines l ON b.id = 'line:' || l.settlement_line_id
WHERE b.reported_by = 'settlement_file' AND (l.amount <> b.net OR l.currency <> b.currency OR l.occurred_at <> b.occurred_at);

-- settlement_line: A line of a settlement file is in its partner's file and has the sign of its kind.
-- whole
-- columns at partner file_partner kind currency amount:amount refunded:amount
SELECT 'settlement line ' || l.settlement_line_id, l.partner_id, f.partner_id, l.kind, l.currency,
       l.amount, l.refunded
FROM settlement_lines l LEFT JOIN settlement_files f USING (settlement_file_id)
WHERE f.log_no IS NULL OR f.log_no > l.log_no OR f.partner_id <> l.partner_id OR l.line > f.lines + 1
   OR CASE l.kind WHEN 'share' THEN l.amount <= 0 WHEN 'reversal' THEN l.amount >= 0 WHEN 'dispute' THEN l.amount = 0
                  ELSE 1 = 1 END OR l.refunded < 0 OR (l.transfer IS NULL AND l.payment IS NULL);

-- share_of_quote: A share belongs to the sale in the row that it names, in the row's currency; the processor was to route at least part of the quote.
-- whole
-- columns at partner quote posted_month matched_by currency amount:amount settled_currency
-- columns settled:amount@settled_currency row_kind row_partner row_quote row_month row_currency row_arrangement
SELECT 'share ' || s.share_allocation_id, s.partner_id, s.quote_id, s.posted_month, s.matched_by,
       s.currency, s.amount, s.settled_currency, s.settled_amount, r.kind, r.partner_id, r.quote_id, r.posted_month,
       r.currency, r.arrangement
FROM share_allocations s LEFT JOIN named_rows r ON r.log_no = s.entry_id
LEFT JOIN balance_transactions b ON b.balance_transaction_id = s.balance_transaction_id
LEFT JOIN settlement_lines l ON l.settlement_line_id = s.settlement_line_id
WHERE r.kind IS DISTINCT FROM 'quote_accepted' OR r.partner_id <> s.partner_id OR r.quote_id <> s.quote_id
   OR r.currency <> s.currency OR r.posted_month <> s.posted_month OR b.log_no IS NULL OR b.log_no > s.log_no
   OR b.currency <> s.settled_currency OR s.amount = 0 OR s.entry_on < s.occurred_on
   OR (s.currency = s.settled_currency AND s.amount <> s.settled_amount)
   OR (s.settled_amount <> 0 AND (s.settled_amount > 0) <> (s.amount > 0))
   OR (s.matched_by = 'settlement_file') <> (s.settlement_line_id IS NOT NULL)
   OR s.matched_by NOT IN ('metadata', 'payment', 'settlement_file', 'finance')
   OR (s.matched_by = 'finance' AND trim(s.reason) = '')
   OR (s.settlement_line_id IS NOT NULL AND (l.log_no IS NULL OR l.partner_id <> s.partner_id
       OR l.quote_id <> s.quote_id OR l.requote_id IS DISTINCT FROM s.requote_id OR l.currency <> s.currency))
   OR (s.matched_by = 'metadata' AND b.quote_id IS NOT NULL
       AND (b.quote_id <> s.quote_id OR b.requote_id IS DISTINCT FROM s.requote_id))
   OR (s.requote_id IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM named_rows o WHERE o.partner_id = s.partner_id AND o.quote_id = s.quote_id
           AND o.kind = 'requote_accepted' AND o.requote_id = s.requote_id))
   OR (r.arrangement <> 'connected_account' AND NOT EXISTS (
         SELECT 1 FROM named_rows o WHERE o.partner_id = s.partner_id AND o.quote_id = s.quote_id
           AND o.kind <> 'quote_accepted' AND o.arrangement = 'connected_account'));

-- shares_within_transaction: The shares of a transaction have its sign and are no more than its net amount.
-- whole
-- columns at currency net:amount of_shares:amount
SELECT 'transaction ' || b.balance_transaction_id, b.currency, b.net, s.amount
FROM balance_transactions b JOIN (SELECT balance_transaction_id, sum(settled_amount) AS amount FROM share_allocations
  GROUP BY balance_transaction_id) s ON s.balance_transaction_id = b.balance_transaction_id
WHERE abs(s.amount) > abs(b.net) OR (s.amount <> 0 AND (s.amount > 0) <> (b.net > 0));

-- transaction_closed: Finance closed no more of a transaction than its net amount, with its sign and a reason.
-- whole
-- columns at currency closed:amount transaction_currency net:amount@transaction_currency
SELECT 'transaction ' || c.balance_transaction_id, c.currency, c.amount, b.currency, b.net
FROM balance_transaction_closings c LEFT JOIN balance_transactions b USING (balance_transaction_id)
WHERE b.log_no IS NULL OR b.log_no > c.log_no OR b.currency <> c.currency OR abs(c.amount) > abs(b.net)
   OR (c.amount > 0) <> (b.net > 0) OR c.amount = 0 OR trim(c.reason) = '';

-- share_reversal: A ledger reversal for a reversed transfer has the quote, the amount and the routing of that transfer.
-- whole
-- columns at partner quote currency amount:amount row_kind row_partner row_quote row_currency
-- columns row_amount:amount@row_currency row_arrangement
SELECT 'share ' || v.share_allocation_id, s.partner_id, s.quote_id, s.currency, s.amount, r.kind,
       r.partner_id, r.quote_id, r.currency, r.invoice_amount, r.arrangement
FROM reversal_evidence v LEFT JOIN share_allocations s USING (share_allocation_id)
LEFT JOIN named_rows r ON r.log_no = v.entry_id
WHERE r.kind IS DISTINCT FROM 'reversal' OR s.log_no IS NULL OR r.quote_id <> s.quote_id OR r.invoice_amount <> s.amount
   OR r.partner_id <> v.partner_id OR r.partner_id <> s.partner_id OR r.posted_month <> v.posted_month
   OR r.arrangement <> 'connected_account' OR v.price_from NOT IN ('whole', 'settlement_file', 'finance')
   OR r.event_id <> v.event_id;

-- missing_shares: An invoice for missing shares is the sum of its quotes, and bills no quote beyond what was sold for the processor to route.
-- whole
-- columns at partner month currency billed:amount of_quotes:amount sold:amount document_partner document_month
-- columns document_currency
SELECT coalesce(d.number, 'document ' || b.document_id), d.partner_id, d.month,
       coalesce(d.currency, b.currency), d.invoice_amount, b.amount, NULL, d.partner_id, d.month, d.currency
FROM (SELECT * FROM papers WHERE purpose = 'missing_shares') d
FULL JOIN (SELECT document_id, min(currency) AS currency, sum(amount) AS amount FROM missing_shares
           GROUP BY document_id) b
  ON b.document_id = d.document_id
WHERE d.document_id IS NULL OR b.document_id IS NULL OR d.invoice_amount <> b.amount
UNION ALL
SELECT 'quote ' || b.quote_id, b.partner_id, NULL, b.currency, sum(b.amount), NULL, coalesce(r.amount, 0), NULL, NULL,
       NULL
FROM missing_shares b JOIN papers d ON d.document_id = b.document_id AND d.void_no IS NULL
LEFT JOIN (SELECT partner_id, quote_id, currency, sum(invoice_amount) AS amount FROM named_rows
           WHERE kind <> 'reversal' AND arrangement = 'connected_account' GROUP BY partner_id, quote_id, currency) r
  ON r.partner_id = b.partner_id AND r.quote_id = b.quote_id AND r.currency = b.currency
GROUP BY b.partner_id, b.quote_id, b.currency, r.amount HAVING sum(b.amount) > coalesce(r.amount, 0)
UNION ALL
SELECT 'quote ' || b.quote_id || ' on ' || d.number, b.partner_id, b.month, b.currency, b.amount, NULL, NULL,
       d.partner_id, d.month, d.currency
FROM missing_shares b JOIN papers d USING (document_id)
WHERE b.partner_id <> d.partner_id OR b.month <> d.month OR b.currency <> d.currency OR b.amount <= 0
   OR b.arrangement <> d.arrangement;

-- share_payment: The part of a share that pays an invoice is a payment, or a reversal of one, of that amount, partner, currency and account, whose identity names the share.
-- whole
-- columns at partner currency paid:amount share_currency share:amount@share_currency payment_partner payment_currency
-- columns payment:amount@payment_currency reversal_currency reversed:amount@reversal_currency
SELECT 'share ' || x.share_allocation_id, s.partner_id, x.currency, x.amount, s.currency, s.amount,
       p.partner_id, p.currency, p.amount, r.currency, r.amount
FROM share_payments x LEFT JOIN share_allocations s USING (share_allocation_id)
LEFT JOIN balance_transactions b ON b.balance_transaction_id = s.balance_transaction_id
LEFT JOIN payments p ON p.payment_id = x.payment_id
LEFT JOIN payment_reversals r ON r.payment_reversal_id = x.payment_reversal_id
LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = x.payment_reversal_id
WHERE s.log_no IS NULL OR p.log_no IS NULL OR x.currency <> s.currency OR x.currency <> p.currency
   OR p.partner_id IS DISTINCT FROM s.partner_id OR (x.amount > 0) <> (s.amount > 0) OR x.amount = 0
   OR NOT EXISTS (SELECT 1 FROM missing_shares b WHERE b.partner_id = s.partner_id AND b.quote_id = s.quote_id)
   OR p.account IS DISTINCT FROM b.account
   OR CASE WHEN x.payment_reversal_id IS NULL
             THEN x.amount <> p.amount
               OR p.identity <> replace(p.identity, '|share ' || x.share_allocation_id, '')
                 || '|share ' || x.share_allocation_id
           WHEN x.amount < 0 THEN r.amount IS DISTINCT FROM -x.amount OR r.payment_id <> x.payment_id
             OR r.identity <> replace(r.identity, '|share ' || x.share_allocation_id || '|'
                                                    || x.payment_id, '')
               || '|share ' || x.share_allocation_id || '|' || x.payment_id
           ELSE r.amount IS DISTINCT FROM x.amount OR r.payment_id <> x.payment_id OR i.log_no IS NULL END
UNION ALL
SELECT 'share ' || x.share_allocation_id, s.partner_id, s.currency, sum(x.amount), s.currency, s.amount,
       NULL, NULL, NULL, NULL, NULL
FROM share_payments x JOIN share_allocations s USING (share_allocation_id)
GROUP BY x.share_allocation_id, s.partner_id, s.currency, s.amount HAVING abs(sum(x.amount)) > abs(s.amount)
UNION ALL
SELECT 'payment ' || payment_id, partner_id, NULL, NULL, NULL, NULL, partner_id, currency, amount, NULL, NULL
FROM payments
WHERE substr(identity, 1, 10) = 'processor|' AND replace(identity, '|share ', '') <> identity
  AND payment_id NOT IN (SELECT payment_id FROM share_payments WHERE payment_reversal_id IS NULL)
UNION ALL
SELECT 'reversal ' || payment_reversal_id, partner_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, currency, amount
FROM payment_reversals
WHERE substr(identity, 1, 10) = 'processor|' AND replace(identity, '|share ', '') <> identity
  AND payment_reversal_id NOT IN (SELECT payment_reversal_id FROM share_payments
                                  WHERE amount < 0 AND payment_reversal_id IS NOT NULL);

-- reading: A reading of an account goes forward, and reports no more new transactions than it read.
-- columns at account read_from read_to transactions:int new:int
SELECT 'reading ' || processor_reading_id, account, read_from, read_to, balance_transactions,
       new_balance_transactions
FROM processor_readings
WHERE read_from >= read_to OR new_balance_transactions < 0 OR new_balance_transactions > balance_transactions;

-- readings_of_transactions: An import of an account's transactions recorded as many of the account as its readings call new.
-- whole
-- columns at account called_new:int recorded:int
SELECT 'event ' || r.event_id, r.account, r.new_transactions, coalesce(b.transactions, 0)
FROM (SELECT event_id, account, sum(new_balance_transactions) AS new_transactions FROM processor_readings
      GROUP BY event_id, account) r
LEFT JOIN (SELECT event_id, account, count(*) AS transactions FROM balance_transactions GROUP BY event_id, account) b
  ON b.event_id = r.event_id AND b.account = r.account
WHERE r.new_transactions <> coalesce(b.transactions, 0);

-- opening_adds_up: Items carried over add up to the totals and the control total of their opening, on the day of the cut-over.
-- whole
-- columns at currency stated_items:int counted_items:int stated_control:amount control_of_items:amount
-- columns stated_invoices:amount invoices_of_items:amount stated_credits:amount credits_of_items:amount
-- columns stated_cash:amount cash_of_items:amount
SELECT 'opening ' || coalesce(t.opening_id, s.opening_id), coalesce(t.currency, s.currency), t.items,
       s.items, t.control, s.invoices - s.credits - s.cash, t.invoices, s.invoices, t.credits, s.credits, t.cash, s.cash
FROM opening_totals t FULL JOIN (
  SELECT opening_id, currency, count(*) AS items, sum(invoices) AS invoices, sum(credits) AS credits, sum(cash) AS cash
  FROM (SELECT opening_id, currency, CASE document WHEN 'invoice' THEN invoice_amount ELSE 0 END AS invoices,
               CASE document WHEN 'credit_note' THEN invoice_amount ELSE 0 END AS credits, 0 AS cash
        FROM documents WHERE opening_id IS NOT NULL
        UNION ALL SELECT opening_id, currency, 0, 0, amount FROM payments WHERE opening_id IS NOT NULL) i
  GROUP BY opening_id, currency) s ON s.opening_id = t.opening_id AND s.currency = t.currency
WHERE t.items IS NULL OR s.items IS NULL OR t.items <> s.items OR t.invoices <> s.invoices OR t.credits <> s.credits
   OR t.cash <> s.cash OR t.control <> t.invoices - t.credits - t.cash
UNION ALL
SELECT 'opening ' || o.opening_id || ', cut over before the closed month ' || m.month, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM openings o JOIN days d ON d.n = o.cut_over_on JOIN closed_months m ON m.month > d.month AND m.log_no < o.log_no;

-- opening_items: An item carried over is entered on the day of its opening's cut-over; a revision follows the void one with its number.
-- whole
-- columns at dated_on:day entry_on:day cut_over_on:day revision:int
SELECT d.number, d.issued_on, d.entry_on, o.cut_over_on, d.opening_revision
FROM documents d LEFT JOIN openings o USING (opening_id)
LEFT JOIN papers f ON f.document_id = d.opening_follows
WHERE d.opening_id IS NOT NULL AND (o.log_no IS NULL OR o.log_no > d.log_no OR d.entry_on <> o.cut_over_on
  OR d.issued_on > o.cut_over_on OR (d.opening_revision = 1) <> (d.opening_follows IS NULL)
  OR (d.opening_follows IS NOT NULL AND (f.void_no IS NULL OR f.void_no > d.log_no)))
UNION ALL
SELECT 'payment ' || p.payment_id, p.received_on, p.entry_on, o.cut_over_on, NULL
FROM payments p LEFT JOIN openings o USING (opening_id)
WHERE (p.opening_id IS NULL) <> (p.opening_number IS NULL)
   OR (p.opening_id IS NOT NULL AND (o.log_no IS NULL OR p.entry_on <> o.cut_over_on OR p.method = 'link'));

-- opening_of_event: An opening has the totals that its event states.
-- whole
-- columns at currency total event_states
SELECT 'opening ' || t.opening_id, t.currency, v.path, v.value
FROM opening_totals t JOIN openings o USING (opening_id)
JOIN details s ON s.event_id = o.event_id AND substr(s.path, 1, 5) = 'sums.' AND s.value = t.currency AND s.leaf = 'currency'
JOIN details v ON v.event_id = o.event_id AND v.stem = s.stem
LEFT JOIN numerals i ON i.currency = t.currency AND i.amount = t.invoices
LEFT JOIN numerals k ON k.currency = t.currency AND k.amount = t.credits
LEFT JOIN numerals m ON m.currency = t.currency AND m.amount = t.cash
LEFT JOIN numerals x ON x.currency = t.currency AND x.amount = t.control
WHERE CASE v.leaf WHEN 'items' THEN v.value <> CAST(t.items AS TEXT)
        WHEN 'invoices' THEN v.value <> i.plain WHEN 'credits' THEN v.value <> k.plain
        WHEN 'cash' THEN v.value <> m.plain WHEN 'control' THEN v.value <> x.plain ELSE 1 = 0 END;

-- feed_stated: A statement of a feed has the totals that its event states.
-- whole
-- columns at partner month currency stated:amount event_states
SELECT 'statement ' || coalesce(CAST(t.feed_statement_id AS TEXT), 'of event ' || d.event_id), t.partner_id,
       t.month, coalesce(t.currency, d.currency), t.invoice_amount, d.value
FROM (SELECT t.log_no, t.feed_statement_id, t.currency, t.invoice_amount, s.partner_id, s.month, s.event_id,
             s.log_no AS statement_no, n.plain
      FROM feed_statement_totals t LEFT JOIN feed_statements s USING (feed_statement_id)
      LEFT JOIN numerals n ON n.currency = t.currency AND n.amount = t.invoice_amount) t
FULL JOIN (SELECT d.event_id, substr(d.path, 8) AS currency, d.value
           FROM details d JOIN feed_statements s USING (event_id) WHERE substr(d.path, 1, 7) = 'totals.') d
  ON d.event_id = t.event_id AND d.currency = t.currency
WHERE d.value IS DISTINCT FROM t.plain OR t.log_no IS NULL OR t.statement_no IS NULL OR t.log_no < t.statement_no;

-- books_in_order: The books of a month are closed once, one month after the other, after it ended and its billing close, over all facts before the event of that close.
-- whole
-- columns at states_previous closed_before event_names billing_closed_at closed_at
SELECT 'books of ' || b.month, b.previous, b.before, e.subject, c.closed_at, b.closed_at
FROM (SELECT c.*, lag(c.month) OVER (ORDER BY c.log_no) AS before FROM book_closes c) b
LEFT JOIN months m ON m.month = b.month LEFT JOIN months p ON p.month = b.before
LEFT JOIN closed_months c ON c.month = b.month LEFT JOIN audit_events e ON e.event_id = b.event_id
WHERE m.n IS NULL OR m.n <> p.n + 1 OR b.previous IS DISTINCT FROM b.before OR c.log_no IS NULL OR c.log_no > b.log_no
   OR e.subject <> b.month OR b.facts_to IS DISTINCT FROM e.log_no OR (SELECT d.n FROM days d WHERE d.day = substr(b.closed_at, 1, 10)) < m.last_day;

-- books_name_bank_feeds: A close of books states to which day each bank account was reported, and names those that were behind.
-- whole
-- columns at account reported_to stated
WITH reported AS (
  SELECT account, log_no, closed_on AS day FROM bank_statements WHERE closed_on IS NOT NULL
  UNION ALL SELECT account, log_no, bank_booked_on FROM bank_lines),
feeds AS (
  SELECT b.month, m.last_day, e.log_no, r.account, max(r.day) AS day
  FROM book_closes b JOIN audit_events e USING (event_id) JOIN months m ON m.month = b.month
  JOIN reported r ON r.log_no < e.log_no GROUP BY b.month, m.last_day, e.log_no, r.account)
SELECT 'books of ' || f.month, f.account, d.day, v.value
FROM feeds f JOIN days d ON d.n = f.day
LEFT JOIN details a ON a.log_no = f.log_no AND a.value = f.account AND a.leaf = 'account'
  AND (substr(a.path, 1, 11) = 'bank_feeds.' OR substr(a.path, 1, 8) = 'without.')
LEFT JOIN details v ON v.log_no = f.log_no AND v.path = a.stem || 'reported_to'
WHERE a.path IS NULL OR v.value IS DISTINCT FROM d.day OR (f.day < f.last_day AND substr(a.path, 1, 11) = 'bank_feeds.');

-- bank_balances_continue: Books are not closed while a bank statement of their time begins with another balance than the one before ended with, without an explanation.
-- whole
-- columns at account currency begins_with:amount ended_with:amount books_of
WITH dated AS (
  SELECT s.bank_statement_id, s.account, s.currency, s.opening, s.closing, s.log_no,
         coalesce(min(l.bank_booked_on), s.closed_on) AS first_on, coalesce(max(l.bank_booked_on), s.closed_on) AS last_on
  FROM bank_statements s LEFT JOIN bank_statement_lines p USING (bank_statement_id)
  LEFT JOIN bank_lines l ON l.bank_line_id = p.bank_line_id
  WHERE s.opening IS NOT NULL AND s.closing IS NOT NULL
  GROUP BY s.bank_statement_id, s.account, s.currency, s.opening, s.closing, s.log_no, s.closed_on),
placed AS (
  SELECT d.*, lag(closing) OVER w AS before, lag(last_on) OVER w AS before_on, max(log_no) OVER w AS known_no
  FROM dated d WINDOW w AS (PARTITION BY account, currency ORDER BY first_on, last_on, bank_statement_id))
SELECT 'statement ' || p.bank_statement_id, p.account, p.currency, p.opening, p.before, b.month
FROM placed p JOIN book_closes b ON b.log_no > p.known_no JOIN months m ON m.month = b.month AND m.last_day >= p.first_on
WHERE p.opening <> p.before + coalesce((
        SELECT sum(CASE l.direction WHEN 'credit' THEN l.amount ELSE -l.amount END) FROM bank_lines l
        WHERE l.account = p.account AND l.currency = p.currency AND l.bank_booked_on > p.before_on
          AND l.bank_booked_on < p.first_on), 0)
  AND p.before_on < p.first_on
  AND NOT EXISTS (SELECT 1 FROM dated e WHERE e.account = p.account AND e.currency = p.currency
                    AND e.bank_statement_id <> p.bank_statement_id AND e.first_on < p.first_on AND e.last_on >= p.first_on)
  AND NOT EXISTS (SELECT 1 FROM dated e WHERE e.account = p.account AND e.currency = p.currency AND e.closing = p.opening
                    AND e.bank_statement_id <> p.bank_statement_id AND e.last_on <= p.first_on)
  AND NOT EXISTS (SELECT 1 FROM payment_exception_closings x
                  WHERE x.bank_statement_id = p.bank_statement_id AND x.log_no < b.log_no)
  AND NOT EXISTS (SELECT 1 FROM bank_lines l WHERE l.account = p.account AND l.currency = p.currency
                    AND l.bank_booked_on >= p.before_on AND l.bank_booked_on <= p.first_on
                    AND l.bank_line_id NOT IN (
                      SELECT x.bank_line_id FROM bank_statement_lines x JOIN dated y USING (bank_statement_id)));

-- books_balance: The balances of closed books add up to zero in each currency; each names its account and is not zero.
-- columns at account control currency amount:amount
SELECT 'books of ' || month, 'all', NULL, currency, sum(amount)
FROM book_balances GROUP BY month, currency HAVING sum(amount) <> 0
UNION ALL
SELECT 'books of ' || month, account, control, currency, amount FROM book_balances
WHERE substr(account, 1, length(control)) <> control OR (account <> control AND substr(account, length(control) + 1, 1) <> ':')
   OR month NOT IN (SELECT month FROM book_closes) OR amount = 0;

-- books_of_journal: The balances of closed books are those of the month before plus the month's journal, which the facts give by the posting rules.
-- whole
-- columns at account currency stated:amount in_journal:amount
SELECT 'books of ' || month, account, currency, sum(stated), sum(posted)
FROM (SELECT b.month, b.account, b.currency, b.amount AS stated, 0 AS posted FROM book_balances b
      UNION ALL SELECT n.month, b.account, b.currency, 0, b.amount
      FROM book_balances b JOIN book_closes n ON n.previous = b.month
      UNION ALL SELECT c.month, j.account, j.currency, 0, j.amount
      FROM journal j JOIN book_closes c
        ON c.month = CASE WHEN j.month < (SELECT min(month) FROM book_closes) THEN (SELECT min(month) FROM book_closes)
                          ELSE j.month END) x
GROUP BY month, account, currency HAVING sum(stated) <> sum(posted);

-- revenue_schedule: Parts of covered sales are recorded only by a close over cover, for its month and later ones.
-- whole
-- columns at currency amount:amount
SELECT 'part of ' || s.month || ' in ' || s.release_month || ' of ' || s.partner_id || ', ' || s.policy_id, s.currency,
       s.amount
FROM revenue_schedules s
LEFT JOIN closed_months c ON c.month = s.month AND c.log_no < s.log_no
LEFT JOIN details d ON d.action = 'month.close' AND d.subject = s.month AND d.path = 'recognition'
WHERE c.log_no IS NULL OR d.value IS DISTINCT FROM 'over_cover' OR s.release_month < s.month OR s.amount = 0;

-- covered_within_sales: The covered sales that a close divides are not more than the policy's sales, and take back no more than its reversals.
-- whole
-- columns at currency divided:amount sold:amount reversed:amount
SELECT 'sales of ' || s.month || ' of ' || s.partner_id || ', ' || s.policy_id, s.currency, s.amount,
       coalesce(sum(CASE WHEN g.kind <> 'reversal' THEN g.invoice_amount END), 0),
       coalesce(sum(CASE WHEN g.kind = 'reversal' THEN g.invoice_amount END), 0)
FROM (SELECT month, partner_id, policy_id, currency, sum(amount) AS amount FROM revenue_schedules
      GROUP BY month, partner_id, policy_id, currency) s
LEFT JOIN closed_months c ON c.month = s.month
LEFT JOIN row_groups g ON g.partner_id = s.partner_id AND g.policy_id = s.policy_id AND g.currency = s.currency
  AND g.posted_month <= c.month AND g.posted_month > coalesce(c.previous, '')
GROUP BY s.month, s.partner_id, s.policy_id, s.currency, s.amount
HAVING s.amount > coalesce(sum(CASE WHEN g.kind <> 'reversal' THEN g.invoice_amount END), 0)
    OR s.amount < coalesce(sum(CASE WHEN g.kind = 'reversal' THEN g.invoice_amount END), 0);

-- entry_day: Each entry of the journal has a day of this century.
-- whole
-- columns at day_number:int
SELECT j.fact || ' ' || j.log_no, j.entry_on
FROM entries j LEFT JOIN days d ON d.n = j.entry_on WHERE d.n IS NULL;

-- entry_in_open_books: Nothing is dated in books that were closed before it was recorded, nor before the day on which it happened.
-- whole
-- columns at dated_on:day entry_on:day books_open_from:day
SELECT f.fact || ', fact ' || f.log_no, f.dated_on, f.entry_on, f.opens_on
FROM dated f WHERE f.entry_on < f.dated_on OR f.entry_on < f.opens_on;

-- entry_dated_on_its_day: An entry is dated on its own day; or if the books of that day were closed, or what it settles was issued or opened again later, on that first possible day.
-- whole
-- columns at dated_on:day entry_on:day reopened_on:day books_open_from:day
SELECT f.fact || ', fact ' || f.log_no, f.dated_on, f.entry_on, f.reopened_on, f.opens_on
FROM dated f
WHERE f.states_reopened > 0
  AND (f.entry_on <> CASE WHEN f.reopened_on > f.dated_on THEN f.reopened_on ELSE f.dated_on END
       OR coalesce(f.reopened_on < f.opens_on, f.opens_on IS NOT NULL)
       OR (f.states_reopened = 1 AND f.reopened_on IS DISTINCT FROM f.opens_on)
       OR (f.reopened_on <> coalesce(f.opens_on, 0)
           AND f.reopened_on NOT IN (SELECT entry_on FROM document_moves WHERE entry_on IS NOT NULL)));

-- entry_not_late: A payment's entry that is dated after its own day is dated on the first open day, when it was recorded, or when its payment or document was opened again.
-- whole
-- columns at dated_on:day entry_on:day books_open_from:day
SELECT f.fact || ', fact ' || f.log_no, f.dated_on, f.entry_on, f.opens_on
FROM dated f LEFT JOIN days r ON r.day = substr(f.recorded_at, 1, 10)
WHERE f.states_reopened = 0 AND f.entry_on > f.dated_on AND f.entry_on <> coalesce(f.opens_on, 0)
  AND f.entry_on > r.n + 1 AND f.entry_on NOT IN (SELECT entry_on FROM document_moves WHERE log_no <> f.log_no AND entry_on IS NOT NULL)
  AND f.entry_on NOT IN (SELECT entry_on FROM cash_moves WHERE log_no <> f.log_no AND entry_on IS NOT NULL);

-- event_of_fact: A fact names an event that was recorded before it; only the row of an acceptance may come before its event.
-- whole
-- columns at event:int action
SELECT f.kind || ', fact ' || f.log_no, f.event_id, e.action
FROM fact_events f LEFT JOIN audit_events e USING (event_id)
WHERE f.event_id IS NOT NULL AND (e.log_no IS NULL OR e.log_no > f.log_no)
  AND NOT coalesce(f.kind = 'ledger_rows' AND e.action IN ('quote.accept', 'requote.accept'), 1 = 0);

-- ids_once: An id of these facts occurs once in them: their own id, or that of a thing to which they can happen once.
-- columns at id:int times:int
SELECT place, id, count(*) FROM fact_ids GROUP BY place, id HAVING count(*) > 1;

-- names_once: What names a fact, or its place in what it belongs to, occurs once.
-- columns at times:int
SELECT name, count(*)
FROM (SELECT 'month ' || month || ' in ' || time_zone AS name FROM month_zones
      UNION ALL SELECT 'receipt of event ' || event_id || ' for ' || partner_id || ', ' || posted_month || ', ' || currency
      FROM ledger_receipts
      UNION ALL SELECT 'total of ' || month || ' in ' || currency FROM month_totals
      UNION ALL SELECT 'total of ' || month || ' in ' || currency || ', ' || arrangement || ', for ' || partner_id
      FROM month_partners
      UNION ALL SELECT 'part of ' || month || ' in ' || release_month || ' of ' || partner_id || ', ' || policy_id || ', ' || currency
      FROM revenue_schedules
      UNION ALL SELECT 'line ' || position || ' of document ' || document_id FROM document_lines
      UNION ALL SELECT 'number ' || number FROM documents
      UNION ALL SELECT 'hold of document ' || document_id || ' after hold ' || coalesce(follows, 0) FROM holds
      UNION ALL SELECT 'dispute of document ' || document_id || ' after dispute ' || coalesce(follows, 0)
      FROM invoice_disputes
      UNION ALL SELECT 'tax of document ' || document_id || ', ' || country || ' ' || category || ' ' || rate || ' ' || reduced
      FROM document_taxes
      UNION ALL SELECT 'tax ' || position || ' of document ' || document_id FROM document_taxes
      UNION ALL SELECT 'payment ' || identity FROM payments
      UNION ALL SELECT 'source ' || identity FROM payment_sources
      UNION ALL SELECT 'payment reversal ' || identity FROM payment_reversals
      UNION ALL SELECT 'dispute ' || identity FROM disputes
      UNION ALL SELECT 'statement ' || position || ' of bank file ' || bank_file_id FROM bank_statements
      UNION ALL SELECT 'bank file of SHA-256 ' || sha256 FROM bank_files
      UNION ALL SELECT 'booking of bank line ' || bank_line_id || ' after booking ' || coalesce(previous, 0)
      FROM bank_bookings
      UNION ALL SELECT 'settlement file of SHA-256 ' || sha256 || ' of ' || partner_id FROM settlement_files
      UNION ALL SELECT 'total of opening ' || opening_id || ' in ' || currency FROM opening_totals
      UNION ALL SELECT 'total of statement ' || feed_statement_id || ' in ' || currency FROM feed_statement_totals
      UNION ALL SELECT 'secret ' || sequence || ' of client ' || client_id FROM client_secrets
      UNION ALL SELECT 'revocation of client ' || client_id FROM client_revocations
      UNION ALL SELECT 'client ' || client_id FROM api_clients
      UNION ALL SELECT 'bounce of e-mail ' || email_id || ' for ' || recipient FROM email_bounces
      UNION ALL SELECT 'held ' || kind || ' ' || coalesce(reversal_id, requote_id, quote_id) || ' of ' || partner_id
      FROM held_rows
      UNION ALL SELECT 'ground of reversal ' || reversal_id || ' of ' || partner_id FROM reversal_grounds
      UNION ALL SELECT 'terms of ' || partner_id || ', ' || policy_id || ' from day '
                         || coalesce(CAST(from_day AS TEXT), '-') || ' by event ' || event_id FROM cancellation_terms
      UNION ALL SELECT 'decision on ' || month || ' of ' || partner_id || ', ' || kind || ': ' || evidence FROM feed_decisions
      UNION ALL SELECT 'balance of ' || month || ' in ' || currency || ' of ' || account FROM book_balances
      UNION ALL SELECT 'bank line of ' || account || ': ' || identity FROM bank_lines
      UNION ALL SELECT 'transaction ' || id || ' of ' || account FROM balance_transactions
      UNION ALL SELECT 'settlement line of ' || partner_id || ', quote ' || quote_id || coalesce(' requote ' || requote_id, '')
                         || coalesce(' transfer ' || transfer, '') || coalesce(' payment ' || payment, '') FROM settlement_lines
      UNION ALL SELECT 'share of transaction ' || balance_transaction_id || ' for quote ' || quote_id
                         || coalesce(' requote ' || requote_id, '') FROM share_allocations WHERE matched_by <> 'finance'
      UNION ALL SELECT 'erasure of ' || commitment FROM erasures
      UNION ALL SELECT 'PDF of SHA-256 ' || sha256 FROM document_pdfs
      UNION ALL SELECT 'reminder ' || dunning_level || ' of document ' || document_id || ', counted from day ' || counted_from
      FROM reminders) n
GROUP BY name HAVING count(*) > 1;

-- event_makes_fact: A fact names an event of an action that records such facts.
-- whole
-- columns at action facts:int
SELECT f.kind || ', fact ' || min(f.log_no), e.action, count(*)
FROM fact_events f JOIN audit_events e USING (event_id)
LEFT JOIN recording r ON r.kind = f.kind AND r.action = e.action
WHERE r.kind IS NULL GROUP BY f.kind, e.action;

-- event_has_fact: An event of an action that always records a fact has recorded it, but for a payment that was recorded already; one that changes roles changes limits or a role, and one that names limits records them.
-- whole
-- columns at action event_names lacks
SELECT 'event ' || e.event_id, e.action, e.subject, r.kind
FROM audit_events e JOIN recording r ON r.action = e.action AND r.always = 1
LEFT JOIN (SELECT DISTINCT kind, event_id FROM fact_events) f ON f.kind = r.kind AND f.event_id = e.event_id
WHERE f.kind IS NULL AND NOT (e.action = 'payment.record' AND EXISTS (
  SELECT 1 FROM details d WHERE d.event_id = e.event_id AND d.path = 'same_as' AND d.value IS NOT NULL))
  AND NOT (e.action = 'user.role' AND e.event_id IN (SELECT event_id FROM user_limits))
UNION
SELECT 'event ' || d.event_id, d.action, d.path, 'user_limits'
FROM details d WHERE d.action IN ('user.invite', 'user.role') AND substr(d.path, 1, 7) = 'limits.'
  AND d.event_id NOT IN (SELECT event_id FROM user_limits);

-- event_in_order: An event is not recorded a day before one that is earlier in the log, except in a sandbox, whose clock may be set.
-- columns at occurred_at latest_before
SELECT 'event ' || e.event_id, e.occurred_at, e.latest
FROM (SELECT event_id, occurred_at, max(occurred_at) OVER (ORDER BY log_no ROWS BETWEEN UNBOUNDED PRECEDING
             AND 1 PRECEDING) AS latest FROM audit_events) e
JOIN days a ON a.day = substr(e.occurred_at, 1, 10) JOIN days b ON b.day = substr(e.latest, 1, 10)
WHERE a.n < b.n - 1 AND (SELECT max(sandbox) FROM documents) = 0;

-- changes_continue: A change of a partner or of the settings starts from the value that the change before it left.
-- whole
-- columns at field starts_from was_left
WITH changes AS (
  SELECT f.subject, f.field, f.log_no, f.value, o.log_no AS old_no, o.value AS old, n.log_no AS new_no,
         lag(f.value) OVER w AS before, lag(n.log_no) OVER w AS before_no,
         row_number() OVER w AS place
  FROM fields f LEFT JOIN details o ON o.log_no = f.log_no AND o.path = f.stem || 'old'
  LEFT JOIN details n ON n.log_no = f.log_no AND n.path = f.stem || 'new'
  WINDOW w AS (PARTITION BY f.subject, f.field ORDER BY f.log_no))
SELECT subject, field, old, before
FROM changes
WHERE old_no IS NOT NULL AND substr(coalesce(old, ''), 1, 1) <> '#' AND substr(coalesce(before, ''), 1, 1) <> '#'
  AND ((place = 1 AND old IS NOT NULL) OR (before_no IS NOT NULL AND old IS DISTINCT FROM before));

-- fact_of_event_time: A fact was recorded at the time of the event that it names.
-- whole
-- columns at recorded_at event_at
SELECT f.kind || ', fact ' || f.log_no, f.recorded_at, e.occurred_at
FROM fact_events f JOIN audit_events e USING (event_id)
WHERE f.recorded_at <> e.occurred_at
  AND f.kind NOT IN ('processor_readings', 'passkeys', 'passkey_ends', 'user_identities');

-- reason_of_event: A void, write-off, hold, dispute, reversal or decision on a held row has the reason that its event states.
-- whole
-- columns at recorded event_states
SELECT f.kind || ', fact ' || f.log_no, f.reason, d.value
FROM fact_reasons f JOIN details d ON d.event_id = f.event_id AND d.path = 'reason'
WHERE f.reason <> d.value AND d.action IN ('invoice.void', 'invoice.write_off', 'invoice.write_off_undone', 'invoice.hold',
  'dispute.open', 'dispute.close', 'reminder.pause', 'reminder.resume', 'feed.accept', 'payment.reverse', 'bank.book', 'bank.unbook',
  'processor.close', 'ledger.pause', 'user.deactivate',
  'opening.reverse',   'rows.release', 'rows.discard')
  AND length(f.reason) * length(d.value) > 0
  AND NOT (substr(f.reason, 1, 1) = '#' AND length(f.reason) = 45) AND NOT (substr(d.value, 1, 1) = '#' AND length(d.value) = 45);

-- event_subject: An event names what its fact is about: the document, client, month or partner, and the amount that was written off, refunded, disputed or credited.
-- whole
-- columns at action event_names recorded
SELECT 'event ' || e.event_id, e.action, e.subject, x.number
FROM event_subjects x JOIN audit_events e ON e.event_id = x.event_id AND e.action = x.action
WHERE e.subject IS DISTINCT FROM x.number
UNION ALL
SELECT 'event ' || x.event_id, x.action, v.value, n.text
FROM event_sums x JOIN numerals n USING (currency, amount)
LEFT JOIN details v ON v.event_id = x.event_id AND v.path = 'amount'
WHERE CASE WHEN replace(v.value, '.', '') = v.value THEN v.value ELSE rtrim(rtrim(v.value, '0'), '.') END
  IS DISTINCT FROM n.text
  AND NOT EXISTS (SELECT 1 FROM details m WHERE m.event_id = x.event_id AND m.path = 'amounts.0');

-- details_of_event: What an event says about its fact is what the fact says: the kind, amount, day, partner, invoice, file or reason.
-- whole
-- columns at about stated of_fact
SELECT 'event ' || s.event_id, s.path, d.value, s.value
FROM stated_facts s LEFT JOIN details d ON d.event_id = s.event_id AND d.path = s.path
  AND d.action = coalesce(s.action, d.action)
WHERE d.value IS DISTINCT FROM s.value AND (s.always = 1 OR d.log_no IS NOT NULL)
  AND NOT coalesce(substr(s.value, 1, 1) = '#' AND length(s.value) = 45, 1 = 0)
UNION ALL
SELECT 'event ' || p.event_id, d.path, d.value, CASE d.path WHEN 'on' THEN y.day ELSE p.reference END
FROM portal_deliveries p JOIN details d ON d.event_id = p.event_id AND d.path IN ('on', 'reference')
LEFT JOIN days y ON y.n = p.delivered_on WHERE d.value IS DISTINCT FROM CASE d.path WHEN 'on' THEN y.day ELSE p.reference END
UNION ALL
SELECT 'event ' || d.event_id, d.action, d.path, d.value
FROM details d LEFT JOIN (
  SELECT DISTINCT b.event_id, p.number FROM balance_facts b JOIN papers p USING (document_id)) x
  ON x.event_id = d.event_id AND x.number = d.value
WHERE (d.path = 'number' AND d.action IN ('payment.apply', 'credit.apply', 'credit.unapply') AND x.number IS NULL)
   OR (d.action = 'payment.unapply' AND substr(d.path, 1, 8) = 'numbers.' AND x.number IS NULL)
   OR (d.action = 'payment.assign' AND d.path = 'to' AND NOT EXISTS (
         SELECT 1 FROM payment_assignments a WHERE a.event_id = d.event_id AND a.partner_id = d.value)
       AND EXISTS (SELECT 1 FROM payment_assignments a WHERE a.event_id = d.event_id))
UNION ALL
SELECT 'event ' || m.event_id, m.action, m.value, m.path
FROM details m JOIN details x ON x.log_no = m.log_no AND x.path = 'numbers.' || substr(m.path, 9)
WHERE m.action = 'payment.unapply' AND substr(m.path, 1, 8) = 'amounts.' AND NOT EXISTS (
  SELECT 1 FROM balance_facts b JOIN papers d USING (document_id)
  JOIN numerals n ON n.currency = b.currency AND n.amount = -b.amount
  WHERE b.fact = 'payment_unapplied' AND b.event_id = m.event_id AND d.number = x.value AND n.plain = m.value)
UNION ALL
SELECT 'event ' || d.event_id, d.action, d.value, n.plain
FROM details d JOIN (
  SELECT event_id, currency, -sum(amount) AS amount FROM balance_facts WHERE fact = 'credit_released'
  GROUP BY event_id, currency HAVING count(*) = 1) a ON a.event_id = d.event_id
JOIN numerals n ON n.currency = a.currency AND n.amount = a.amount
WHERE d.action = 'credit.unapply' AND d.path = 'amount' AND d.value <> n.plain
UNION ALL
SELECT 'event ' || x.event_id, d.path, d.value, n.plain
FROM gl_exports x JOIN details d ON d.event_id = x.event_id AND substr(d.path, 1, 7) = 'totals.'
JOIN currencies c ON c.code = substr(d.path, 8)
LEFT JOIN gl_totals l ON l.gl_export_id = x.gl_export_id AND l.currency = c.code
LEFT JOIN numerals n ON n.currency = c.code AND n.amount = l.amount
WHERE d.value IS DISTINCT FROM n.plain AND d.value IS DISTINCT FROM n.text
UNION ALL
SELECT 'event ' || d.event_id, d.action, d.path, d.value
FROM details d
WHERE d.action IN ('partner.create', 'partner.update') AND d.path = 'import_event_id' AND NOT EXISTS (
  SELECT 1 FROM audit_events e
  WHERE CAST(e.event_id AS TEXT) = d.value AND e.action IN ('partner.import', 'partner.change') AND e.log_no < d.log_no)
UNION ALL
SELECT 'event ' || d.event_id, d.action, d.path, d.value
FROM details d
WHERE d.action = 'user.role' AND d.leaf = 'role'
  AND NOT EXISTS (SELECT 1 FROM user_roles r WHERE r.event_id = d.event_id AND r.role = d.value
                    AND r.action = CASE substr(d.path, 1, 8) WHEN 'granted.' THEN 'grant' ELSE 'revoke' END);

-- document_of_event: A document was issued by the close of its month, a rerun, a credit, a bill of missing shares or an opening, at that time.
-- whole
-- columns at purpose month currency invoice_amount:amount issued_at
SELECT d.number, d.purpose, d.month, d.currency, d.invoice_amount, d.issued_at
FROM documents d LEFT JOIN papers i ON i.document_id = d.credits LEFT JOIN openings o ON o.opening_id = d.opening_id
LEFT JOIN numerals n ON n.currency = d.currency AND n.amount = d.invoice_amount
WHERE NOT EXISTS (
  SELECT 1 FROM audit_events e WHERE e.log_no < d.log_no AND e.occurred_at = d.issued_at
    AND e.action NOT IN ('partner.create', 'partner.update') AND CASE
    WHEN d.purpose = 'month' AND d.replaces IS NULL THEN e.action = 'month.close' AND e.subject = d.month
    WHEN d.purpose = 'month' THEN e.action = 'invoice.rerun'
    WHEN d.purpose = 'adjustment' THEN e.action = 'invoice.credit' AND e.subject = i.number AND EXISTS (
      SELECT 1 FROM details v WHERE v.log_no = e.log_no AND v.path = 'amount'
        AND CASE WHEN replace(v.value, '.', '') = v.value THEN v.value ELSE rtrim(rtrim(v.value, '0'), '.') END = n.text)
    WHEN d.purpose = 'missing_shares' THEN e.action = 'shares.bill' AND e.subject = d.month
    ELSE e.event_id = o.event_id END);

-- event_counts: An event that says how many items it recorded recorded as many.
-- whole
-- columns at action event_states recorded:int
SELECT 'event ' || d.event_id, d.action, d.value, count(f.log_no)
FROM details d JOIN (
  SELECT 'processor_event.erase' AS action, 'erased' AS path, 'processor_event_erasures' AS kind
  UNION ALL SELECT 'person.erase', 'texts', 'erasures'
  UNION ALL SELECT 'email.bounces', 'bounces', 'email_bounces') c ON c.action = d.action AND c.path = d.path
LEFT JOIN fact_events f ON f.kind = c.kind AND f.event_id = d.event_id
GROUP BY d.event_id, d.action, d.value HAVING d.value <> CAST(count(f.log_no) AS TEXT);

-- erasure_form: The erasure of a personal text has the form of a commitment.
-- columns at fact:int
SELECT 'text ' || commitment, log_no FROM erasures WHERE length(commitment) <> 45 OR substr(commitment, 1, 1) <> '#';

-- user_known: Who acted is a user who was recorded before and had not been deactivated.
-- whole
-- columns at action user:int
SELECT 'event ' || e.event_id, e.action, e.user_id
FROM audit_events e LEFT JOIN users u USING (user_id) LEFT JOIN user_ends x ON x.user_id = e.user_id
WHERE e.user_id IS NOT NULL AND (u.log_no IS NULL OR u.log_no > e.log_no OR x.log_no < e.log_no);

-- user_limited: Limits belong to a user recorded before, who has only the role viewer while they last; they name both months, in order, or none; and no one acts more than a day after the last day, which is one of the issuer's time zone.
-- whole
-- columns at role_or_action limit:int from_month to_month last_day:day
WITH limited AS (
  SELECT l.*, lead(log_no, 1, 999999999999999) OVER (PARTITION BY user_id ORDER BY log_no) AS until_no FROM user_limits l)
SELECT 'user ' || l.user_id, NULL, l.user_limit_id, l.from_month, l.to_month, l.last_day
FROM limited l LEFT JOIN users u USING (user_id)
WHERE u.log_no IS NULL OR u.log_no > l.log_no OR (l.from_month IS NULL) <> (l.to_month IS NULL) OR l.from_month > l.to_month
UNION ALL
SELECT 'user ' || l.user_id, g.role, l.user_limit_id, l.from_month, l.to_month, l.last_day
FROM limited l JOIN grants g ON g.user_id = l.user_id AND g.role <> 'viewer'
WHERE (l.from_month IS NOT NULL OR l.last_day IS NOT NULL) AND g.log_no < l.until_no AND g.until_no > l.log_no
UNION ALL
SELECT 'event ' || e.event_id, e.action, l.user_limit_id, l.from_month, l.to_month, l.last_day
FROM limited l JOIN audit_events e ON e.user_id = l.user_id AND e.log_no > l.log_no AND e.log_no < l.until_no
JOIN days d ON d.day = substr(e.occurred_at, 1, 10)
WHERE d.n > l.last_day + 1;

-- user_recorded: Roles, passkeys, identities and ends belong to users recorded before them, and a login follows a user who had ended.
-- whole
-- columns at name follows:int
SELECT 'user ' || u.user_id, u.login, u.follows
FROM users u LEFT JOIN user_ends x ON x.user_id = u.follows
WHERE u.follows IS NOT NULL AND (x.log_no IS NULL OR x.log_no > u.log_no)
UNION ALL
SELECT n.what || n.user_id, n.name, NULL
FROM (SELECT 'end of user ' AS what, user_id, NULL AS name, log_no FROM user_ends
      UNION ALL SELECT action || ' of a role of user ', user_id, role, log_no FROM user_roles
      UNION ALL SELECT 'passkey of user ', user_id, credential_id, log_no FROM passkeys
      UNION ALL SELECT 'identity of user ', user_id, issuer, log_no FROM user_identities) n
LEFT JOIN users u USING (user_id)
WHERE u.log_no IS NULL OR u.log_no > n.log_no
UNION ALL
SELECT 'role of user ' || user_id, role, NULL FROM user_roles
WHERE action NOT IN ('grant', 'revoke') OR role NOT IN ('viewer', 'finance', 'approver', 'administrator')
UNION ALL
SELECT 'end of passkey ' || x.passkey_id, NULL, NULL
FROM passkey_ends x LEFT JOIN passkeys p USING (passkey_id)
WHERE p.log_no IS NULL OR p.log_no > x.log_no;

-- role_of_event: A user or a role was recorded by the event about that user, which names the role and its partner.
-- whole
-- columns at login role action event_names
SELECT 'user ' || u.user_id, u.login, NULL, e.action, e.subject
FROM users u JOIN audit_events e USING (event_id)
WHERE u.kind = 'person' AND u.login <> e.subject AND NOT (substr(u.login, 1, 1) = '#' AND length(u.login) = 45)
UNION ALL
SELECT 'role of user ' || r.user_id, u.login, r.role, e.action, e.subject
FROM user_roles r JOIN audit_events e USING (event_id) JOIN users u ON u.user_id = r.user_id
WHERE (u.login <> e.subject AND NOT (substr(u.login, 1, 1) = '#' AND length(u.login) = 45)
       AND e.action IN ('user.invite', 'user.role'))
   OR (e.action IN ('user.invite', 'user.role', 'user.claims') AND NOT EXISTS (
         SELECT 1 FROM details d
         JOIN details p ON p.log_no = d.log_no AND p.path = d.stem || 'partner_id'
         WHERE d.log_no = e.log_no AND d.value = r.role AND d.leaf = 'role'
           AND CASE WHEN r.action = 'revoke' THEN substr(d.path, 1, 8) = 'revoked.'
                    WHEN e.action = 'user.invite' THEN substr(d.path, 1, 6) = 'roles.'
                    ELSE substr(d.path, 1, 8) = 'granted.' END
           AND p.value IS NOT DISTINCT FROM r.partner_id))
   OR (e.action = 'user.provision' AND (r.action <> 'grant' OR r.partner_id IS NOT NULL OR NOT EXISTS (
         SELECT 1 FROM details d WHERE d.log_no = e.log_no AND substr(d.path, 1, 6) = 'roles.' AND d.value = r.role)));

-- act_in_role: Users who changed users, clients, bank details or approval rules, or erased a person, were administrators (users also while there is no administrator); users who corrected, paid or closed had the role finance, and those who adopted other settings either.
-- whole
-- columns at action subject user:int
SELECT 'event ' || e.event_id, e.action, e.subject, e.user_id
FROM audit_events e JOIN users u ON u.user_id = e.user_id AND u.kind = 'person'
WHERE e.action IN ('user.invite', 'user.role', 'user.deactivate', 'client.create', 'client.rotate', 'client.revoke',
                   'settings.adopt', 'person.erase', 'invoice.void', 'invoice.credit', 'invoice.write_off',
                   'invoice.write_off_undone', 'invoice.rerun', 'invoice.hold', 'invoice.release', 'dispute.open',
                   'dispute.close', 'credit.apply', 'credit.unapply', 'credit.refund', 'credit.refund_returned',
                   'payment.record', 'payment.import', 'payment.apply', 'payment.unapply', 'payment.reverse',
                   'payment.assign', 'payment.close_exception', 'ledger.import', 'opening.import', 'month.close',
                   'books.close', 'feed.accept')
  AND NOT EXISTS (
    SELECT 1 FROM grants g
    WHERE g.user_id = e.user_id AND g.log_no < e.log_no AND g.until_no > e.log_no
      AND (g.role = CASE WHEN e.action IN ('user.invite', 'user.role', 'user.deactivate', 'client.create', 'client.rotate',
                                           'client.revoke', 'settings.adopt', 'person.erase')
                         THEN 'administrator' ELSE 'finance' END
           OR (g.role = 'finance' AND e.action = 'settings.adopt' AND e.subject NOT IN ('instructions', 'approvals'))))
  AND (e.action NOT IN ('user.invite', 'user.role') OR EXISTS (
    SELECT 1 FROM grants g
    WHERE g.role = 'administrator' AND g.log_no < e.log_no AND g.until_no > e.log_no
      AND NOT EXISTS (SELECT 1 FROM user_ends x WHERE x.user_id = g.user_id AND x.log_no < e.log_no)));

-- sign_in_of_event: A user adds passkeys alone.
-- whole
-- columns at user:int by_user:int
SELECT 'passkey ' || p.passkey_id, p.user_id, e.user_id
FROM passkeys p LEFT JOIN audit_events e USING (event_id) WHERE e.user_id IS DISTINCT FROM p.user_id;

-- approval_by_another: A request is approved or rejected by another user, and withdrawn by its own; approved before it expired.
-- whole
-- columns at decision decided_by:int names_requester:int requested_by:int decided_at expires_at
SELECT 'request ' || d.request_id, d.decision, d.decided_by, d.requested_by, r.requested_by,
       d.recorded_at, r.expires_at
FROM approval_decisions d LEFT JOIN approval_requests r USING (request_id)
WHERE r.log_no IS NULL OR r.log_no > d.log_no OR r.requested_by <> d.requested_by
   OR (d.decision = 'withdraw') <> (d.decided_by = r.requested_by) OR d.decision NOT IN ('approve', 'reject', 'withdraw')
   OR (d.decision = 'approve' AND d.recorded_at >= r.expires_at);

-- approval_by_approver: Who approved or rejected was an approver for all partners, or for each that the request touches.
-- whole
-- columns at decision decided_by:int partner
SELECT 'request ' || d.request_id, d.decision, d.decided_by,
       CASE t.partner_id WHEN '' THEN 'all' ELSE t.partner_id END
FROM approval_decisions d JOIN (
  SELECT r.request_id, coalesce(v.value, '') AS partner_id FROM approval_requests r
  LEFT JOIN map_values v ON v.log_no = r.log_no AND v.column_name = 'partner_ids' AND v.path <> '') t
  ON t.request_id = d.request_id
WHERE d.decision <> 'withdraw' AND NOT EXISTS (
  SELECT 1 FROM grants a LEFT JOIN user_ends x ON x.user_id = a.user_id
  WHERE a.role = 'approver' AND a.user_id = d.decided_by AND a.log_no < d.log_no AND a.until_no > d.log_no
    AND (x.log_no IS NULL OR x.log_no > d.log_no)
    AND (a.partner_id IS NULL OR a.partner_id = t.partner_id));

-- approval_of_event: Requests and decisions are recorded by the events of their users.
-- whole
-- columns at about user:int event_names event_user:int
SELECT 'request ' || r.request_id, r.subject, r.requested_by, e.subject, e.user_id
FROM approval_requests r LEFT JOIN audit_events e USING (event_id)
WHERE e.user_id IS DISTINCT FROM r.requested_by OR e.subject IS DISTINCT FROM r.subject
UNION ALL
SELECT 'decision on request ' || d.request_id, 'approval.' || d.decision, d.decided_by, e.action, e.user_id
FROM approval_decisions d LEFT JOIN audit_events e USING (event_id)
WHERE e.user_id IS DISTINCT FROM d.decided_by OR e.action IS DISTINCT FROM 'approval.' || d.decision;

-- request_of_act: A request expires as the settings say, touches the partner of its document, and states the reason of the act.
-- whole
-- columns at stated of_act
SELECT 'request ' || r.request_id, r.requested_at, r.expires_at
FROM approval_requests r JOIN fields f ON f.subject = 'settings' AND f.field = 'approvals_expire_days'
  AND f.log_no < r.log_no AND f.until_no > r.log_no
LEFT JOIN days a ON a.day = substr(r.requested_at, 1, 10) LEFT JOIN days b ON b.day = substr(r.expires_at, 1, 10)
WHERE CAST(b.n - a.n AS TEXT) IS DISTINCT FROM f.value AND NOT EXISTS (
  SELECT 1 FROM settings_changes z WHERE z.log_no < r.log_no AND substr(r.requested_at, 1, 16) <= z.until)
UNION ALL
SELECT 'request ' || r.request_id, d.partner_id, r.subject
FROM approval_requests r JOIN map_values i ON i.log_no = r.log_no AND i.column_name = 'input'
  AND (i.path = 'number' OR substr(i.path, 1, 7) = 'number.')
JOIN documents d ON d.number = i.value AND d.log_no < r.log_no
WHERE EXISTS (SELECT 1 FROM map_values p WHERE p.log_no = r.log_no AND p.column_name = 'partner_ids' AND p.path <> '')
  AND NOT EXISTS (SELECT 1 FROM map_values p
                  WHERE p.log_no = r.log_no AND p.column_name = 'partner_ids' AND p.value = d.partner_id)
UNION ALL
SELECT 'request ' || r.request_id, i.value, s.value
FROM approval_requests r JOIN map_values i ON i.log_no = r.log_no AND i.column_name = 'input' AND i.path = 'reason'
JOIN details a ON a.path = 'approval.request' AND a.value = CAST(r.request_id AS TEXT) AND a.action = r.action
JOIN details s ON s.log_no = a.log_no AND s.path = 'reason'
WHERE i.value <> s.value AND substr(i.value, 1, 1) <> '#' AND substr(s.value, 1, 1) <> '#';

-- act_approved: An act done under an approval names a request for it and its documents, by the same user, that was approved before and was used once; an import has the files of its request.
-- whole
-- columns at action event_names request user:int requested_by:int
WITH acts AS (
  SELECT e.event_id, e.log_no, e.action, e.subject, e.user_id, e.occurred_at, a.value AS request, r.request_id,
         r.log_no AS request_no, r.requested_by, r.expires_at, r.action AS asked, r.subject AS asked_subject
  FROM details a JOIN audit_events e USING (event_id)
  LEFT JOIN approval_requests r ON CAST(r.request_id AS TEXT) = a.value WHERE a.path = 'approval.request'),
inputs AS (SELECT log_no, path, value FROM map_values WHERE column_name = 'input')
SELECT 'event ' || t.event_id, t.action, t.subject, t.request, t.user_id, t.requested_by
FROM acts t LEFT JOIN approval_decisions d ON d.request_id = t.request_id AND d.decision = 'approve'
WHERE t.requested_by IS DISTINCT FROM t.user_id OR d.log_no IS NULL OR d.log_no > t.log_no
  OR (t.action = 'ledger.import' AND t.occurred_at > t.expires_at)
  OR (t.asked = t.action AND t.asked_subject <> t.subject AND t.asked_subject IN (SELECT number FROM documents))
UNION ALL
SELECT 'event ' || t.event_id, t.action, n.number, t.request, t.user_id, t.requested_by
FROM acts t
JOIN (SELECT event_id, subject AS number FROM audit_events WHERE action <> 'invoice.rerun'
      UNION SELECT v.event_id, d.number FROM voids v JOIN documents d USING (document_id)) n ON n.event_id = t.event_id
JOIN inputs f ON f.log_no = t.request_no AND f.path = 'number.0'
WHERE t.asked = t.action AND NOT EXISTS (
  SELECT 1 FROM inputs i WHERE i.log_no = t.request_no AND i.value = n.number AND substr(i.path, 1, 7) = 'number.')
UNION ALL
SELECT 'event ' || t.event_id, t.action, s.value, t.request, t.user_id, t.requested_by
FROM acts t JOIN details s ON s.log_no = t.log_no AND s.stem = 'sha256.'
WHERE t.action = 'ledger.import' AND t.request_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM inputs i WHERE i.log_no = t.request_no AND i.value = s.value AND i.path = 'files.' || s.leaf || '.sha256')
UNION ALL
SELECT 'request ' || request || ', used ' || count(*) || ' times', action, subject, NULL, NULL, NULL
FROM acts WHERE asked = action GROUP BY request, action, subject HAVING count(*) > 1
UNION ALL
SELECT 'request ' || request || ', used by other acts only', NULL, NULL, NULL, NULL, NULL
FROM acts WHERE request_id IS NOT NULL GROUP BY request HAVING sum(CASE WHEN asked = action THEN 1 ELSE 0 END) = 0;

-- act_needed_approval: An act that the settings gave to two people for more than an hour, and each adoption that takes out or weakens an approval rule, states its approval, the amounts compared, that no one else could approve, or that a close or rerun put the document on hold.
-- whole
-- columns at action event_names user:int
SELECT DISTINCT 'event ' || e.event_id, e.action, e.subject, e.user_id
FROM audit_events e JOIN (
  SELECT DISTINCT log_no, until_no, substr(field, 11) AS rule FROM fields
  WHERE subject = 'settings' AND substr(field, 1, 10) = 'approvals.' AND value IS NOT NULL) r
  ON (substr(r.rule, 1, length(e.action) + 1) = e.action || '.'
      OR e.action = 'partner.change' AND substr(r.rule, 1, 15) = 'partner.import.')
  AND (e.action <> 'settings.adopt'
    OR substr(r.rule, 16, 6) IN ('always', 'above.') OR substr(r.rule, 16, length(e.subject) + 1) = e.subject || '.')
JOIN settings_changes z ON z.log_no = r.log_no AND substr(e.occurred_at, 1, 16) > z.until
WHERE e.user_id IS NOT NULL AND r.log_no < e.log_no AND r.until_no > e.log_no
  AND NOT EXISTS (SELECT 1 FROM details d WHERE d.event_id = e.event_id AND (substr(d.path, 1, 8) = 'compared'
                    OR substr(d.path, 1, 8) = 'approval' OR substr(d.path, 1, 10) = 'one_person'
                    OR (e.action = 'invoice.hold' AND d.path = 'by')))
UNION
SELECT 'event ' || e.event_id, e.action, e.subject, e.user_id
FROM adjustments a JOIN audit_events e USING (log_no)
JOIN fields f ON f.subject = 'settings' AND substr(f.field, 1, 22) = 'approvals.adjustments.' AND f.value IS NOT NULL
  AND f.log_no < e.log_no AND f.until_no > e.log_no
JOIN settings_changes z ON z.log_no = f.log_no AND substr(e.occurred_at, 1, 16) > z.until
WHERE e.user_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM details d WHERE d.event_id = e.event_id AND (substr(d.path, 1, 21) = 'compared.adjustments.'
    OR substr(d.path, 1, 8) = 'approval' OR substr(d.path, 1, 10) = 'one_person'))
UNION
SELECT 'event ' || e.event_id, e.action, e.subject, e.user_id
FROM audit_events e JOIN fields f ON f.log_no = e.log_no AND substr(f.field, 1, 10) = 'approvals.'
LEFT JOIN fields p ON p.subject = 'settings' AND p.field = f.field AND p.until_no = e.log_no
LEFT JOIN limits n ON n.code = substr(f.field, length(f.field) - 2) AND n.value = f.value
LEFT JOIN limits o ON o.code = substr(f.field, length(f.field) - 2) AND o.value = p.value
WHERE e.action = 'settings.adopt' AND e.subject = 'approvals' AND e.user_id IS NOT NULL
  AND CASE WHEN substr(f.field, length(f.field) - 6) = '.always' THEN f.value IS NULL
           WHEN f.value IS NULL THEN NOT EXISTS (
             SELECT 1 FROM fields q WHERE q.subject = 'settings' AND q.value IS NOT NULL AND q.log_no <= e.log_no
               AND q.until_no > e.log_no
               AND substr(q.field, 1, length(f.field) - 9) = substr(f.field, 1, length(f.field) - 9))
           WHEN p.value IS NULL THEN EXISTS (
             SELECT 1 FROM fields q WHERE q.subject = 'settings' AND q.value IS NOT NULL AND q.log_no < e.log_no
               AND q.until_no >= e.log_no
               AND substr(q.field, 1, length(f.field) - 9) = substr(f.field, 1, length(f.field) - 9))
           ELSE n.units > o.units END
  AND NOT EXISTS (SELECT 1 FROM details d WHERE d.event_id = e.event_id
                    AND (substr(d.path, 1, 8) = 'approval' OR substr(d.path, 1, 10) = 'one_person'));

-- amounts_compared: The limit that an act was compared with is that of the settings, and its amount is within it.
-- whole
-- columns at action about limit_stated settings_have
SELECT 'event ' || e.event_id, e.action, c.value, a.value, f.value
FROM details c JOIN audit_events e USING (event_id)
JOIN details a ON a.log_no = c.log_no AND a.path = c.stem || 'above'
LEFT JOIN details m ON m.log_no = c.log_no AND m.path = c.stem || 'amount'
LEFT JOIN fields f ON f.subject = 'settings' AND f.field = 'approvals.' || e.action || '.above.' || c.value
  AND f.log_no < e.log_no AND f.until_no > e.log_no
LEFT JOIN limits l ON l.code = c.value AND l.value = a.value LEFT JOIN limits s ON s.code = c.value AND s.value = f.value
LEFT JOIN limits x ON x.code = c.value AND x.value = m.value
WHERE substr(c.path, 1, 17) = 'compared.amounts.' AND c.leaf = 'currency'
  AND ((f.value IS NOT NULL AND l.units IS DISTINCT FROM s.units AND NOT EXISTS (
  SELECT 1 FROM settings_changes z WHERE z.log_no < e.log_no AND substr(e.occurred_at, 1, 16) <= z.until)) OR x.units > l.units)
UNION ALL
SELECT 'event ' || e.event_id, e.action, e.subject, d.value, m.value
FROM audit_events e JOIN details d ON d.log_no = e.log_no AND d.path = 'amount'
JOIN details m ON m.log_no = e.log_no AND m.path = 'compared.amounts.0.amount'
WHERE e.action = 'credit.refund' AND d.value <> m.value
UNION ALL
SELECT 'event ' || w.event_id, 'invoice.write_off', w.currency, CAST(w.amount AS TEXT), m.value
FROM (SELECT min(o.event_id) AS event_id, k.first_no, o.currency, sum(o.amount) AS amount
      FROM write_offs o JOIN audit_events e USING (event_id) JOIN comparisons k ON k.log_no = e.log_no
      GROUP BY k.first_no, o.currency) w
LEFT JOIN details c ON c.log_no = w.first_no AND c.value = w.currency AND substr(c.path, 1, 17) = 'compared.amounts.'
  AND c.leaf = 'currency'
LEFT JOIN details m ON m.log_no = c.log_no AND m.path = c.stem || 'amount'
LEFT JOIN limits l ON l.code = w.currency AND l.value = m.value
WHERE l.units IS DISTINCT FROM w.amount
  AND EXISTS (SELECT 1 FROM details x WHERE x.log_no = w.first_no AND x.path = 'compared.amounts.0.amount');

-- adjustments_compared: An act that was compared with the rule for adjustments states what its facts adjust and what was adjusted for the partner in 30 days before, and both are within the limit of the settings.
-- whole
-- columns at of partner currency stated adjusted:amount settings_have
WITH known AS (
  SELECT s.*, coalesce(b.amount, 0) AS adjusted_before
  FROM stated_adjustments s LEFT JOIN adjusted_before b USING (log_no, partner_id, currency))
SELECT 'event ' || event_id, 'amount', partner_id, currency, stated, adjusted, NULL
FROM known WHERE stated_units IS DISTINCT FROM adjusted
UNION ALL
SELECT 'event ' || event_id, 'before', partner_id, currency, stated_before, adjusted_before, NULL
FROM known WHERE before_units IS DISTINCT FROM adjusted_before
UNION ALL
SELECT 'event ' || event_id, 'limit', partner_id, currency, stated_limit, adjusted + adjusted_before, NULL
FROM known WHERE limit_units IS NULL OR adjusted + adjusted_before > limit_units
UNION ALL
SELECT 'event ' || e.event_id, 'amount', a.partner_id, a.currency, NULL, a.amount, NULL
FROM compared_adjustments a JOIN audit_events e USING (log_no)
WHERE a.log_no IN (SELECT log_no FROM stated_adjustments) AND NOT EXISTS (
  SELECT 1 FROM stated_adjustments s WHERE s.log_no = a.log_no AND s.partner_id = a.partner_id AND s.currency = a.currency)
UNION ALL
SELECT 'event ' || s.event_id, 'limit', s.partner_id, s.currency, s.stated_limit, NULL, f.value
FROM known s JOIN fields f ON f.subject = 'settings' AND f.field = 'approvals.adjustments.above.' || s.currency
  AND f.log_no < s.log_no AND f.until_no > s.log_no
LEFT JOIN limits x ON x.code = s.currency AND x.value = f.value
WHERE f.value IS NOT NULL AND s.limit_units IS DISTINCT FROM x.units AND NOT EXISTS (
  SELECT 1 FROM settings_changes z WHERE z.log_no < s.log_no AND substr(s.occurred_at, 1, 16) <= z.until);

-- close_states_approvals: The close of a month states the approval rules that the settings had, and how many people could approve.
-- whole
-- columns at month rule
SELECT 'event ' || e.event_id, e.subject, r.rule
FROM audit_events e JOIN (
  SELECT v.event_id, v.value AS rule FROM details v WHERE v.action = 'month.close'
    AND substr(v.path, 1, 15) = 'approval_rules.') r ON r.event_id = e.event_id
WHERE EXISTS (SELECT 1 FROM fields WHERE subject = 'settings') AND NOT EXISTS (
  SELECT 1 FROM settings_changes z WHERE z.log_no < e.log_no AND substr(e.occurred_at, 1, 16) <= z.until)
  AND NOT EXISTS (
  SELECT 1 FROM fields f WHERE f.subject = 'settings' AND f.value IS NOT NULL AND f.log_no < e.log_no AND f.until_no > e.log_no
    AND substr(f.field, 1, length(r.rule) + 11) = 'approvals.' || r.rule || '.')
UNION ALL
SELECT 'event ' || e.event_id, e.subject, f.field
FROM audit_events e JOIN fields f ON f.subject = 'settings' AND substr(f.field, 1, 10) = 'approvals.'
  AND f.value IS NOT NULL AND f.log_no < e.log_no AND f.until_no > e.log_no
JOIN audit_events c ON c.log_no = f.log_no
JOIN days a ON a.day = substr(c.occurred_at, 1, 10) JOIN days b ON b.day = substr(e.occurred_at, 1, 10)
WHERE e.action = 'month.close' AND a.n < b.n AND NOT EXISTS (
  SELECT 1 FROM details v WHERE v.log_no = e.log_no AND substr(v.path, 1, 15) = 'approval_rules.'
    AND substr(f.field, 11, length(v.value) + 1) = v.value || '.')
UNION ALL
SELECT 'event ' || e.event_id, e.subject, v.value
FROM audit_events e JOIN details v ON v.log_no = e.log_no AND v.path = 'approvers'
LEFT JOIN grants r ON r.role = 'approver' AND r.partner_id IS NULL AND r.log_no < e.log_no AND r.until_no > e.log_no
LEFT JOIN users u ON u.user_id = r.user_id AND u.kind = 'person'
LEFT JOIN user_ends x ON x.user_id = u.user_id AND x.log_no < e.log_no
WHERE e.action = 'month.close'
GROUP BY e.event_id, e.subject, v.value
HAVING v.value <> CAST(count(DISTINCT CASE WHEN x.log_no IS NULL THEN u.user_id END) AS TEXT);

-- pause_ended: A ledger was paused and resumed by its events, one after the other.
-- whole
-- columns at paused_at resumed_at
SELECT 'pause ' || coalesce(p.pause_id, r.pause_id), p.paused_at, r.resumed_at
FROM pauses p FULL JOIN resumptions r ON r.pause_id = p.pause_id
WHERE p.log_no IS NULL OR r.log_no < p.log_no;

-- nothing_while_paused: While the ledger was paused, nothing was sold, issued, paid, corrected or closed.
-- whole
-- columns at kind fact:int
SELECT 'pause ' || p.pause_id, f.kind, f.log_no
FROM pauses p LEFT JOIN resumptions r USING (pause_id)
JOIN (SELECT 'documents' AS kind, log_no FROM documents UNION ALL SELECT 'closed_months', log_no FROM closed_months
      UNION ALL SELECT 'ledger_rows', first_no FROM row_groups UNION ALL SELECT 'ledger_rows', last_no FROM row_groups
      UNION ALL SELECT kind, log_no FROM fact_events
      WHERE kind IN ('voids', 'credit_applications', 'write_offs', 'book_closes', 'bank_files', 'payments',
                     'payment_applications', 'payment_reversals', 'credit_refunds', 'balance_transactions',
                     'share_allocations')) f
  ON f.log_no > p.log_no AND (r.log_no IS NULL OR f.log_no < r.log_no);

-- client_secret: The secrets of a client are numbered from 1, each made for a client that was not revoked.
-- whole
-- columns at secret:int previous:int
SELECT 'client ' || s.client_id, s.sequence, s.previous_sequence
FROM client_secrets s LEFT JOIN api_clients c USING (client_id)
LEFT JOIN client_revocations r ON r.client_id = s.client_id
LEFT JOIN client_secrets p ON p.client_id = s.client_id AND p.sequence = s.previous_sequence
WHERE c.log_no IS NULL OR c.log_no > s.log_no OR r.log_no < s.log_no OR s.sequence < 1
   OR s.sequence <> coalesce(s.previous_sequence, 0) + 1 OR (s.previous_sequence IS NOT NULL AND p.log_no IS NULL);

-- client_of_event: A client's secret ends, and ends the former one, when its event states.
-- whole
-- columns at about fact_has event_states
SELECT 'secret of client ' || s.client_id, 'valid for days', s.expires_at, v.value
FROM client_secrets s JOIN details v ON v.event_id = s.event_id AND v.path = 'valid_days'
WHERE (v.value IS NULL) <> (s.expires_at IS NULL)
UNION ALL
SELECT 'secret of client ' || s.client_id, 'the former ends', s.previous_ends_at, v.value
FROM client_secrets s LEFT JOIN details v ON v.event_id = s.event_id AND v.path = 'previous_ends_at'
WHERE substr(s.previous_ends_at, 1, 23) IS DISTINCT FROM substr(v.value, 1, 23);

-- log_key: A new key of the log follows the one before and is signed by it, or says why it is not.
-- whole
-- columns at states_previous key_before
SELECT 'key ' || key_name || ' ' || public_key, previous, before
FROM (SELECT k.*, lag(k.public_key) OVER (ORDER BY k.log_no) AS before FROM log_keys k) k
WHERE (before IS NOT NULL AND previous IS DISTINCT FROM before) OR (previous IS NULL AND signature IS NOT NULL)
   OR (previous IS NOT NULL AND signature IS NULL AND reason = '');

-- exception_closed: An exception that finance closed is one known thing, with a reason.
-- whole
-- columns at bank_line:int bank_statement:int payment:int processor_event:int reason
SELECT 'closing ' || c.payment_exception_closing_id, c.bank_line_id, c.bank_statement_id, c.payment_id,
       c.processor_event_id, nullif(c.reason, '')
FROM payment_exception_closings c LEFT JOIN bank_line_outcomes o USING (bank_line_id)
LEFT JOIN bank_statements s ON s.bank_statement_id = c.bank_statement_id LEFT JOIN payments p ON p.payment_id = c.payment_id
LEFT JOIN processor_event_outcomes x ON x.processor_event_id = c.processor_event_id
WHERE trim(c.reason) = '' OR CASE WHEN c.bank_line_id IS NULL THEN 0 ELSE 1 END
  + CASE WHEN c.bank_statement_id IS NULL THEN 0 ELSE 1 END + CASE WHEN c.payment_id IS NULL THEN 0 ELSE 1 END
  + CASE WHEN c.processor_event_id IS NULL THEN 0 ELSE 1 END <> 1
   OR coalesce(o.log_no, s.log_no, p.log_no, x.log_no, c.log_no) >= c.log_no;

-- processor_event: An event of the processor that changed something names its payment; only one with an outcome was erased.
-- whole
-- columns at outcome payment:int
SELECT 'processor event ' || o.processor_event_id, o.outcome, o.payment_id
FROM processor_event_outcomes o LEFT JOIN payments p USING (payment_id)
WHERE o.outcome NOT IN ('effect', 'nothing', 'manual_review') OR o.reason = '' OR (o.outcome = 'effect' AND o.payment_id IS NULL)
   OR (o.payment_id IS NOT NULL AND o.payment_id NOT IN (SELECT payment_id FROM payment_sources WHERE source = 'processor'))
UNION ALL
SELECT 'erased processor event ' || x.processor_event_id, NULL, NULL
FROM processor_event_erasures x LEFT JOIN processor_event_outcomes o USING (processor_event_id)
WHERE o.log_no IS NULL OR o.log_no > x.log_no;

-- pdf_of_document: The PDF of a document is its own, made after its issue; nothing carried over has one.
-- whole
-- columns at purpose sha256
SELECT 'PDF of ' || coalesce(d.number, 'unknown document ' || w.document_id), d.purpose, w.sha256
FROM document_pdfs w LEFT JOIN documents d USING (document_id)
WHERE d.log_no IS NULL OR d.log_no > w.log_no OR d.purpose = 'opening' OR length(w.sha256) <> 64
   OR (d.sandbox = 0 AND w.rendered_at < d.issued_at
       AND coalesce((SELECT r.n < d.issued_on - 1 FROM days r WHERE r.day = substr(w.rendered_at, 1, 10)), 1 = 1));

-- pdf_prints_instructions: A PDF prints bank details of its document's currency, which were recorded before it.
-- whole
-- columns at currency bank_details:int of_currency
SELECT d.number, d.currency, w.instruction_version_id, v.currency
FROM document_pdfs w JOIN documents d USING (document_id)
LEFT JOIN instruction_versions v ON v.instruction_version_id = w.instruction_version_id
WHERE w.instruction_version_id IS NOT NULL AND (v.log_no IS NULL OR v.log_no > w.log_no OR v.currency <> d.currency);

-- bank_details_in_force: A PDF prints the bank details of its currency that were adopted last before it, and all of them.
-- whole
-- columns at bank_details:int field printed adopted
WITH printed AS (
  SELECT min(d.number) AS number, d.currency, v.instruction_version_id, v.log_no AS version_no, a.adopted
  FROM document_pdfs w JOIN documents d USING (document_id)
  JOIN instruction_versions v ON v.instruction_version_id = w.instruction_version_id
  LEFT JOIN (SELECT w.log_no, max(e.log_no) AS adopted FROM document_pdfs w JOIN audit_events e
               ON e.action = 'settings.adopt' AND e.subject = 'instructions' AND e.log_no < w.log_no GROUP BY w.log_no) a ON a.log_no = w.log_no
  GROUP BY d.currency, v.instruction_version_id, v.log_no, a.adopted),
own AS (
  SELECT p.number, p.currency, p.instruction_version_id, p.version_no, p.adopted,
         substr(x.path, length(p.currency) + 8) AS path, x.value
  FROM printed p JOIN details x ON x.log_no = p.adopted
  WHERE substr(x.path, 1, length(p.currency) + 7) = 'value.' || p.currency || '.' AND x.value <> '{}'),
adopted AS (
  SELECT number, currency, instruction_version_id, version_no, path, value FROM own
  UNION ALL
  SELECT p.number, p.currency, p.instruction_version_id, p.version_no, substr(x.path, 9), x.value
  FROM printed p JOIN details x ON x.log_no = p.adopted
  LEFT JOIN (SELECT DISTINCT currency, adopted FROM own) o ON o.currency = p.currency AND o.adopted = p.adopted
  WHERE substr(x.path, 1, 8) = 'value.*.' AND x.value <> '{}' AND o.currency IS NULL),
texts AS (
  SELECT p.number, p.currency, p.instruction_version_id, p.version_no, t.path, t.value
  FROM printed p JOIN map_values t ON t.log_no = p.version_no AND t.column_name = 'content' WHERE t.path <> '')
SELECT t.number, t.instruction_version_id, t.path, t.value, NULL
FROM texts t LEFT JOIN adopted x ON x.version_no = t.version_no AND x.number = t.number AND x.path = t.path
  AND x.value = t.value
WHERE x.number IS NULL
UNION ALL
SELECT x.number, x.instruction_version_id, x.path, NULL, x.value
FROM adopted x LEFT JOIN texts t ON t.version_no = x.version_no AND t.number = x.number AND t.path = x.path
  AND t.value = x.value
WHERE t.number IS NULL AND (x.currency = 'USD' OR substr(x.path, 1, 4) <> 'ach.');

-- e_invoice: An e-invoice belongs to a document that was to have one and whose PDF exists, and names the document's buyer; only what the document leaves empty may be filled.
-- whole
-- columns at e_invoice has_pdf sha256
SELECT 'e-invoice of ' || coalesce(d.number, 'unknown document ' || x.document_id), d.e_invoice,
       CASE WHEN w.log_no IS NULL THEN 'no' ELSE 'yes' END, x.sha256
FROM document_e_invoices x LEFT JOIN documents d USING (document_id)
LEFT JOIN document_pdfs w ON w.document_id = x.document_id
WHERE d.e_invoice IS NULL OR d.e_invoice = 'none' OR w.log_no IS NULL OR length(x.sha256) <> 64
UNION ALL
SELECT 'e-invoice of ' || d.number || ', ' || v.path || ' ' || v.value, d.e_invoice, NULL, x.sha256
FROM document_e_invoices x JOIN documents d USING (document_id)
JOIN map_values v ON v.log_no = x.log_no AND v.column_name = 'parties'
JOIN printed p ON p.document_id = d.document_id AND 'buyer.' || replace(p.field, 'address.', '') = v.path
WHERE p.text <> '' AND p.text <> v.value;

-- email_attempt: The attempts of an e-mail are numbered from 1 and end after they began; a PDF sent with one is that of the document that it names, and was made before.
-- whole
-- columns at attempt:int attempt_before:int outcome started_at ended_at pdf_sha256
SELECT 'e-mail ' || email_id, attempt, before, outcome, started_at, ended_at, pdf_sha256
FROM (SELECT a.*, lag(a.attempt) OVER (PARTITION BY a.email_id ORDER BY a.attempt, a.log_no) AS before,
             lag(a.message_id) OVER (PARTITION BY a.email_id ORDER BY a.attempt, a.log_no) AS message_before FROM email_attempts a) a
WHERE attempt <> coalesce(before, 0) + 1 OR ended_at < started_at OR message_id <> message_before
   OR outcome NOT IN ('sent', 'refused', 'deferred', 'unclear') OR length(message_sha256) <> 64
   OR (pdf_sha256 IS NOT NULL AND kind IN ('invoice', 'credit_note', 'statement')
       AND pdf_sha256 NOT IN (SELECT sha256 FROM document_pdfs))
UNION ALL
SELECT 'e-mail ' || a.email_id || ' with the PDF of ' || d.number, a.attempt, NULL, a.outcome, a.started_at,
       a.ended_at, a.pdf_sha256
FROM email_attempts a JOIN document_pdfs w ON w.sha256 = a.pdf_sha256 JOIN documents d ON d.document_id = w.document_id
WHERE a.kind IN ('invoice', 'credit_note', 'statement')
  AND (w.log_no > a.log_no OR substr(a.message_id, 1, length(d.number) + 2) <> '<' || d.number || '.');

-- email_sent_once: After an e-mail was sent it was not attempted again, and two e-mails have no message id in common.
-- whole
-- columns at sent_in_attempt:int attempted_again:int
SELECT 'e-mail ' || a.email_id, a.attempt, b.attempt
FROM email_attempts a JOIN email_attempts b ON b.email_id = a.email_id AND b.attempt > a.attempt WHERE a.outcome = 'sent'
UNION ALL
SELECT 'message ' || message_id || ', of ' || count(DISTINCT email_id) || ' e-mails', NULL, NULL
FROM email_attempts GROUP BY message_id
HAVING count(DISTINCT email_id) > 1;

-- email_bounced: A bounce names an e-mail that was attempted and one of its recipients.
-- whole
-- columns at recipient status
SELECT 'e-mail ' || b.email_id, b.recipient, b.status
FROM email_bounces b
WHERE b.email_id NOT IN (SELECT email_id FROM email_attempts);

-- reminded: A reminder names an invoice of its partner and currency, counts days from the invoice's due date or later, and reaches each level no earlier, by an e-mail of that kind.
-- whole
-- columns at partner document_partner currency document_currency level:int counted_from:day due_on:day
SELECT 'reminder of ' || coalesce(d.number, 'unknown document ' || r.document_id), r.partner_id,
       d.partner_id, r.currency, d.currency, r.dunning_level, r.counted_from, d.due_on
FROM reminders r LEFT JOIN documents d USING (document_id)
WHERE d.document IS DISTINCT FROM 'invoice' OR d.partner_id <> r.partner_id OR d.currency <> r.currency
   OR r.counted_from < d.due_on OR d.log_no > r.log_no
UNION ALL
SELECT 'reminder of document ' || r.document_id || ' on ' || e.subject, r.partner_id, NULL, NULL, NULL,
       r.dunning_level, r.counted_from, NULL
FROM reminders r
JOIN (SELECT log_no, subject, lead(log_no, 1, 999999999999999) OVER (ORDER BY log_no) AS until_no FROM audit_events
      WHERE action = 'reminder.record') e ON e.log_no < r.log_no AND e.until_no > r.log_no
JOIN days y ON y.day = e.subject
WHERE r.counted_from + r.dunning_level > y.n
UNION ALL
SELECT 'reminder of document ' || r.document_id || ' by an e-mail of the kind ' || a.kind, r.partner_id,
       NULL, NULL, NULL, r.dunning_level, r.counted_from, NULL
FROM reminders r JOIN email_attempts a USING (email_id) WHERE a.kind <> 'reminder';

-- reminder_pause: A pause of a partner's reminders ends on its day or later; only a pause that lasts is ended early.
-- whole
-- columns at partner until:day before:day recorded_on:day action subject
SELECT 'pause of reminders ' || p.reminder_pause_id, p.partner_id, p.until, p.before, p.recorded_on,
       e.action, e.subject
FROM (SELECT reminder_pause_id, partner_id, until, recorded_on, event_id, reason,
             lag(until) OVER (PARTITION BY partner_id ORDER BY log_no) AS before FROM reminder_pauses) p
LEFT JOIN audit_events e ON e.event_id = p.event_id
WHERE p.until < p.recorded_on OR trim(p.reason) = '' OR e.subject <> p.partner_id
   OR e.action <> CASE WHEN p.until IS NULL THEN 'reminder.resume' ELSE 'reminder.pause' END
   OR (p.until IS NULL AND coalesce(p.before < p.recorded_on, 1 = 1));

-- portal_delivery: A document is delivered by portal after its issue, and not after the day of the record.
-- columns at document delivered_on:day recorded_at
SELECT 'portal delivery ' || p.portal_delivery_id, d.number, p.delivered_on, p.recorded_at
FROM portal_deliveries p LEFT JOIN papers d USING (document_id) LEFT JOIN days y ON y.day = substr(p.recorded_at, 1, 10)
WHERE d.log_no IS NULL OR d.log_no > p.log_no OR d.void_no < p.log_no OR p.delivered_on < d.issued_on
   OR coalesce(p.delivered_on > y.n + 1, 1 = 1);

-- gl_part: An exported journal is balanced in each currency, has its lines and files, and its parts are numbered from 1.
-- whole
-- columns at month format kind part:int part_before:int states_previous:int currency amount:amount
SELECT 'export ' || l.gl_export_id, NULL, NULL, NULL, NULL, NULL, NULL, l.currency, sum(l.amount)
FROM gl_export_lines l
GROUP BY l.gl_export_id, l.currency HAVING sum(l.amount) <> 0
UNION ALL
SELECT 'export ' || e.gl_export_id, e.month, e.format, e.kind, e.part, e.before, e.previous, NULL, NULL
FROM (SELECT x.*, lag(x.part) OVER (PARTITION BY x.month, x.format ORDER BY x.log_no) AS before FROM gl_exports x) e
LEFT JOIN closed_months c ON c.month = e.month
WHERE e.part <> coalesce(e.before, 0) + 1 OR e.previous IS DISTINCT FROM e.before OR (e.part = 1) <> (e.kind = 'journal')
   OR e.gl_export_id NOT IN (SELECT gl_export_id FROM gl_export_lines)
   OR e.gl_export_id NOT IN (SELECT gl_export_id FROM gl_export_files) OR c.log_no IS NULL OR c.log_no > e.log_no
   OR (e.books_closed = 1) <> EXISTS (SELECT 1 FROM book_closes b WHERE b.month = e.month AND b.log_no < e.log_no)
UNION ALL
SELECT 'export ' || l.gl_export_id || ', of ' || count(*)
         || ' lines, the last with number ' || max(l.line)
         || coalesce(', of ' || n.value || ' by its event', ''), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM gl_export_lines l LEFT JOIN gl_exports e USING (gl_export_id)
LEFT JOIN details n ON n.event_id = e.event_id AND n.path = 'lines'
GROUP BY l.gl_export_id, n.value
HAVING count(*) <> max(l.line) OR count(DISTINCT l.line) <> count(*) OR n.value IS DISTINCT FROM CAST(count(*) AS TEXT)
UNION ALL
SELECT 'file ' || f.name || ' of export ' || f.gl_export_id || ' with SHA-256 ' || f.sha256, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL
FROM gl_export_files f
WHERE length(f.sha256) <> 64 OR f.gl_export_id NOT IN (SELECT gl_export_id FROM gl_exports);

-- gl_of_event: An exported journal has the accounts of its map, or of the map of an earlier part.
-- whole
-- columns at account to_account
SELECT 'export ' || l.gl_export_id || ', line ' || l.line, l.account, l.to_account
FROM gl_export_lines l JOIN gl_exports e USING (gl_export_id)
WHERE NOT EXISTS (
  SELECT 1 FROM map_values a JOIN map_values t ON t.log_no = a.log_no AND t.column_name = 'accounts'
    AND t.path = substr(a.path, 1, length(a.path) - 7) || 'to'
  JOIN gl_exports x ON x.log_no = a.log_no AND x.month = e.month AND x.format = e.format AND x.log_no <= e.log_no
  WHERE a.column_name = 'accounts' AND substr(a.path, 1, 9) = 'accounts.'
    AND substr(a.path, length(a.path) - 7) = '.account' AND t.value = l.to_account
    AND substr(l.account || ':', 1, length(a.value) + 1) = a.value || ':');

-- gl_line: A line of an exported journal has an account of its control account.
-- whole
-- columns at control account to_account
SELECT 'line ' || l.line || ' of export ' || l.gl_export_id, l.control, l.account, l.to_account
FROM gl_export_lines l
WHERE l.account <> l.control AND substr(l.account, 1, length(l.control) + 1) <> l.control || ':';

-- gl_of_books: The parts of a month that was exported from closed books are together its journal, account by account.
-- whole
-- columns at format account currency exported:amount in_books:amount
SELECT 'exports of ' || month, format, account, currency, sum(exported), sum(posted)
FROM (SELECT t.month, t.format, l.account, l.currency, l.amount AS exported, 0 AS posted
      FROM gl_last t JOIN gl_exports e ON e.month = t.month AND e.format = t.format
      JOIN gl_export_lines l ON l.gl_export_id = e.gl_export_id
      UNION ALL SELECT t.month, t.format, b.account, b.currency, 0, b.amount
      FROM gl_last t JOIN book_balances b USING (month)
      UNION ALL SELECT t.month, t.format, b.account, b.currency, 0, -b.amount
      FROM gl_last t JOIN book_closes c USING (month) JOIN book_balances b ON b.month = c.previous) x
GROUP BY month, format, account, currency HAVING sum(exported) <> sum(posted);

-- VIEWS
-- The data files of packs. Each is what its query returns, column by column; amounts and days are written for people.
-- Balances and states are those at the last checkpoint of the pack.

-- VIEW ledger: The rows that the months of the pack bill, with the document that bills them.
-- columns kind partner_id quote_id requote_id reversal_id enrollment_id policy_id currency accepted_at:time
-- columns spotPrice:amount partnerCut:amount invoiceAmount:amount order_reference cover_from:day cover_to:day
-- columns entry_id:int posted_month recorded_at:time document allowed_by
SELECT r.kind, r.partner_id, r.quote_id, r.requote_id, r.reversal_id, r.enrollment_id, r.policy_id, r.currency,
       r.accepted_at, r.spot_price, r.partner_cut, r.invoice_amount, r.order_reference, r.cover_from, r.cover_to,
       r.log_no, r.billed_month, r.recorded_at, d.number, g.ground
FROM (SELECT l.*, CASE WHEN l.posted_month < f.month THEN f.month ELSE l.posted_month END AS billed_month
      FROM ledger_rows l CROSS JOIN first_close f) r
JOIN pack k ON r.billed_month BETWEEN k.from_month AND k.to_month
LEFT JOIN (SELECT number, month, partner_id, currency, arrangement FROM papers
           WHERE purpose = 'month' AND document_id NOT IN (SELECT replaces FROM papers WHERE replaces IS NOT NULL)) d
  ON d.month = r.billed_month AND d.partner_id = r.partner_id AND d.currency = r.currency
 AND d.arrangement = r.arrangement
LEFT JOIN reversal_grounds g ON r.kind = 'reversal' AND g.partner_id = r.partner_id AND g.reversal_id = r.reversal_id
ORDER BY r.billed_month, r.log_no;

-- VIEW invoices: The documents of the months of the pack, without the amounts of tax; balance_at_end is by the last of these months, 0 if the document was issued later.
-- whole
-- columns number series sequence:int document purpose status partner_id partner_name month currency arrangement
-- columns issued_on:day due_on:day enrollments:int spotPrice:amount partnerCut:amount invoiceAmount:amount
-- columns credit_applied:amount amount_due:amount credited:amount amount_paid:amount balance:amount
-- columns balance_at_end:amount pdf_sha256 email_status sent_at:time replaces replaced_by credits reason voided_on:day void_reason
WITH settled AS (
  SELECT document_id, sum(CASE WHEN what IN ('credit', 'write-off', 'difference') THEN -amount ELSE 0 END) AS credited,
         sum(CASE WHEN what IN ('payment', 'refund') THEN -amount ELSE 0 END) AS paid
  FROM document_moves GROUP BY document_id),
state AS (
  SELECT p.*, CASE p.document WHEN 'statement' THEN 0 ELSE p.gross - p.credit_applied END AS due,
         coalesce(s.credited, 0) - CASE WHEN p.void_no IS NULL THEN p.credit_applied ELSE 0 END AS credited,
         coalesce(s.paid, 0) AS paid
  FROM papers p LEFT JOIN settled s USING (document_id)),
ended AS (
  SELECT m.document_id, sum(m.amount) AS balance
  FROM document_moves m JOIN months e ON m.entry_on <= e.last_day JOIN pack k ON k.to_month = e.month
  LEFT JOIN voids v ON v.document_id = m.document_id AND v.entry_on <= e.last_day
  WHERE v.document_id IS NULL GROUP BY m.document_id),
mails AS (
  SELECT pdf_sha256, email_id, ended_at, row_number() OVER (PARTITION BY pdf_sha256 ORDER BY log_no DESC) AS back
  FROM email_attempts WHERE outcome = 'sent' AND kind IN ('invoice', 'credit_note', 'statement'))
SELECT d.number, d.series, d.sequence, d.document, d.purpose,
       CASE WHEN s.void_no IS NOT NULL THEN 'void' WHEN s.due - s.credited - s.paid = 0 THEN 'paid' ELSE 'open' END,
       d.partner_id, d.partner_name, d.month, d.currency, d.arrangement, d.issued_on, d.due_on, d.enrollments,
       d.spot_price, d.partner_cut, d.invoice_amount, d.credit_applied, s.due, s.credited, s.paid,
       CASE WHEN s.void_no IS NULL THEN s.due - s.credited - s.paid ELSE 0 END, coalesce(e.balance, 0), w.sha256,
       CASE WHEN m.email_id IN (SELECT email_id FROM email_bounces) THEN 'bounced'
            WHEN m.email_id IS NOT NULL THEN 'sent'
            WHEN d.document_id IN (SELECT document_id FROM portal_deliveries) THEN 'portal' END, m.ended_at,
       former.number, successor.number, credited.number, d.reason, v.voided_on, v.reason
FROM documents d JOIN state s USING (document_id)
JOIN pack k ON d.month BETWEEN k.from_month AND k.to_month
LEFT JOIN ended e ON e.document_id = d.document_id
LEFT JOIN document_pdfs w ON w.document_id = d.document_id
LEFT JOIN mails m ON m.pdf_sha256 = w.sha256 AND m.back = 1
LEFT JOIN papers former ON former.document_id = d.replaces
LEFT JOIN papers successor ON successor.replaces = d.document_id
LEFT JOIN papers credited ON credited.document_id = d.credits
LEFT JOIN voids v ON v.document_id = d.document_id
WHERE d.purpose <> 'opening' ORDER BY d.series, d.sequence;

-- VIEW invoice-lines: The lines of these documents.
-- columns number position:int policy_id policy_name kind month count:int currency
-- columns spotPrice:amount partnerCut:amount invoiceAmount:amount
SELECT d.number, l.position, l.policy_id, l.policy_name, l.kind, l.month, l.count, l.currency, l.spot_price,
       l.partner_cut, l.invoice_amount
FROM document_lines l JOIN documents d USING (document_id)
JOIN pack k ON d.month BETWEEN k.from_month AND k.to_month
WHERE d.purpose <> 'opening' ORDER BY d.series, d.sequence, l.position;

-- VIEW voids: The voids of these documents.
-- columns number document_id:int partner_id month currency arrangement reason voided_on:day entry_on:day
-- columns recorded_at:time event_id:int
SELECT d.number, v.document_id, v.partner_id, v.month, v.currency, v.arrangement, v.reason, v.voided_on, v.entry_on,
       v.recorded_at, v.event_id
FROM voids v JOIN documents d USING (document_id)
JOIN pack k ON d.month BETWEEN k.from_month AND k.to_month
WHERE d.purpose <> 'opening' ORDER BY d.series, d.sequence;

-- VIEW write-offs: The write-offs by entry date; one that was undone has a second row with the amount below zero.
-- whole
-- columns log_no:int write_off_id:int move document partner_id currency amount:amount reason dated_on:day
-- columns entry_on:day recorded_at:time event_id:int
SELECT b.log_no, coalesce(w.write_off_id, r.write_off_id),
       CASE b.fact WHEN 'written_off' THEN 'written_off' ELSE 'reversed' END, d.number, d.partner_id, d.currency, b.amount,
       b.why, b.dated_on, b.entry_on, b.recorded_at, b.event_id
FROM balance_facts b JOIN papers d USING (document_id) JOIN pack_days t ON t.n = b.entry_on
LEFT JOIN write_offs w ON w.log_no = b.log_no LEFT JOIN write_off_reversals r ON r.log_no = b.log_no
WHERE b.what = 'write-off' ORDER BY b.log_no;

-- VIEW openings: The items of the previous system that were carried over before the months closed; balance_at_end as in invoices.
-- whole
-- columns log_no:int opening_id:int cut_over_on:day kind number partner_id date:day due_on:day currency
-- columns original_amount:amount amount:amount status balance:amount balance_at_end:amount
WITH items AS (
  SELECT d.log_no, d.opening_id, d.entry_on AS cut_over_on,
         CASE d.document WHEN 'invoice' THEN 'invoice' ELSE 'credit' END AS kind, d.number, d.partner_id,
         d.issued_on AS day, d.due_on, d.currency, d.original_amount, d.invoice_amount AS amount,
         CASE WHEN p.void_no IS NULL THEN 0 ELSE 1 END AS reversed,
         CASE WHEN p.void_no IS NULL THEN m.balance ELSE 0 END AS balance,
         CASE WHEN v.entry_on <= m.last_day THEN 0 ELSE m.at_end END AS balance_at_end
  FROM documents d JOIN papers p USING (document_id)
  JOIN (SELECT m.document_id, e.last_day, sum(m.amount) AS balance,
               sum(CASE WHEN m.entry_on <= e.last_day THEN m.amount ELSE 0 END) AS at_end
        FROM document_moves m JOIN pack k ON 1 = 1 JOIN months e ON e.month = k.to_month
        GROUP BY m.document_id, e.last_day) m ON m.document_id = d.document_id
  LEFT JOIN voids v ON v.document_id = d.document_id
  WHERE d.opening_id IS NOT NULL
  UNION ALL
  SELECT p.log_no, p.opening_id, p.entry_on, 'cash', p.opening_number, p.partner_id, p.received_on, NULL, p.currency,
         p.amount, p.amount, CASE r.amount WHEN p.amount THEN 1 ELSE 0 END,
         p.amount - coalesce(a.amount, 0) - coalesce(r.amount, 0), m.at_end
  FROM payments p
  JOIN (SELECT m.payment_id, sum(CASE WHEN m.entry_on <= e.last_day THEN m.amount ELSE 0 END) AS at_end
        FROM cash_moves m JOIN pack k ON 1 = 1 JOIN months e ON e.month = k.to_month GROUP BY m.payment_id) m
    ON m.payment_id = p.payment_id
  LEFT JOIN (SELECT payment_id, sum(amount) AS amount FROM applied GROUP BY payment_id) a ON a.payment_id = p.payment_id
  LEFT JOIN (SELECT payment_id, sum(amount) AS amount FROM reversed GROUP BY payment_id) r ON r.payment_id = p.payment_id
  WHERE p.opening_id IS NOT NULL)
SELECT i.log_no, i.opening_id, i.cut_over_on, i.kind, i.number, i.partner_id, i.day, i.due_on, i.currency,
       i.original_amount, i.amount,
       CASE WHEN i.reversed = 1 THEN 'reversed' WHEN i.balance = 0 THEN 'settled' ELSE 'open' END, i.balance,
       i.balance_at_end
FROM items i JOIN span s ON i.log_no > s.after_no AND i.log_no <= s.until_no
ORDER BY i.log_no;

-- VIEW payments: The payments by entry date.
-- whole
-- columns payment_id:int received_on:day entry_on:day partner_id currency amount:amount method account reference
-- columns payer_name payer_account source identity recorded_at:time applied:amount reversed:amount unapplied:amount
-- columns status
SELECT p.payment_id, p.received_on, p.entry_on, coalesce(g.partner_id, p.partner_id), p.currency, p.amount, p.method,
       p.account, p.reference, p.payer_name, p.payer_account, p.source, p.identity, p.recorded_at,
       coalesce(a.amount, 0), coalesce(r.amount, 0), p.amount - coalesce(a.amount, 0) - coalesce(r.amount, 0),
       CASE WHEN r.amount = p.amount THEN 'reversed'
            WHEN coalesce(a.amount, 0) = p.amount - coalesce(r.amount, 0) THEN 'applied'
            WHEN coalesce(a.amount, 0) = 0 THEN 'unapplied' ELSE 'partly_applied' END
FROM payments p JOIN pack_days t ON t.n = p.entry_on
LEFT JOIN (SELECT payment_id, partner_id, row_number() OVER (PARTITION BY payment_id
             ORDER BY payment_assignment_id DESC) AS back
           FROM payment_assignments WHERE kind <> 'part') g ON g.payment_id = p.payment_id AND g.back = 1
LEFT JOIN (SELECT payment_id, sum(amount) AS amount FROM applied GROUP BY payment_id) a ON a.payment_id = p.payment_id
LEFT JOIN (SELECT payment_id, sum(amount) AS amount FROM reversed GROUP BY payment_id) r ON r.payment_id = p.payment_id
ORDER BY p.payment_id;

-- VIEW payment-moves: What was applied, taken off again, reversed and assigned, by entry date.
-- whole
-- columns payment_id:int move document currency amount:amount dated_on:day entry_on:day why recorded_at:time
SELECT m.payment_id, m.move, d.number, m.currency, m.amount, m.dated_on, m.entry_on, m.why, m.recorded_at
FROM (SELECT log_no, payment_id,
             CASE fact WHEN 'payment_applied' THEN 'applied' WHEN 'payment_unapplied' THEN 'unapplied'
                       WHEN 'small_difference' THEN 'bank_charges' ELSE 'bank_charges_reversed' END AS move,
             document_id, currency, amount, dated_on, entry_on, why, recorded_at
      FROM balance_facts WHERE payment_id IS NOT NULL
      UNION ALL
      SELECT r.log_no, r.payment_id, r.kind, NULL, r.currency, -r.amount, r.reversed_on, r.entry_on,
             CASE WHEN r.code IS NULL THEN r.reason ELSE r.code || ': ' || r.reason END, r.recorded_at
      FROM payment_reversals r
      UNION ALL
      SELECT i.log_no, r.payment_id, 'reinstated', NULL, r.currency, r.amount, i.reinstated_on, i.entry_on,
             'its reversal was taken back', i.recorded_at
      FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
      UNION ALL
      SELECT g.log_no, g.payment_id, 'assigned', NULL, g.currency, g.amount, g.assigned_on, g.entry_on,
             'from ' || coalesce(g.from_partner_id, 'an unknown payer') || ' to ' || g.partner_id, g.recorded_at
      FROM payment_assignments g) m
LEFT JOIN papers d ON d.document_id = m.document_id JOIN pack_days t ON t.n = m.entry_on
ORDER BY m.log_no, m.move;

-- VIEW credit-moves: Uses of open credit by entry date: above zero when used, below zero when open again.
-- whole
-- columns credit_note move document currency amount:amount dated_on:day entry_on:day why recorded_at:time
SELECT n.number, m.move, d.number, n.currency, m.amount, m.dated_on, m.entry_on, m.why, m.recorded_at
FROM (SELECT b.log_no, b.credit_note_id, CASE b.fact WHEN 'credit_applied' THEN 'applied' ELSE 'released' END AS move,
             b.document_id AS invoice_id, b.amount, b.dated_on, b.entry_on, e.action AS why, b.recorded_at
      FROM balance_facts b JOIN audit_events e USING (event_id) WHERE b.what = 'credit'
      UNION ALL
      SELECT log_no, document_id, CASE fact WHEN 'credit_refunded' THEN 'refunded' ELSE 'refund_returned' END, NULL,
             amount, dated_on, entry_on, why, recorded_at
      FROM balance_facts WHERE what = 'refund') m
JOIN papers n ON n.document_id = m.credit_note_id LEFT JOIN papers d ON d.document_id = m.invoice_id
JOIN pack_days t ON t.n = m.entry_on
ORDER BY m.log_no;

-- VIEW bank-lines: The lines of bank statements by the day of the bank, each with its outcome.
-- whole
-- columns bank_statement_id:int position:int bank_line_id:int account currency direction amount:amount
-- columns bank_booked_on:day value_on:day bank_reference text payer_name payer_account type is_reversal:flag
-- columns return_code outcome payment_id:int payout_id:int payment_reversal_id:int booked_to needs_review:flag reason
-- columns statement file file_sha256 recorded_at:time
SELECT x.bank_statement_id, x.position, l.bank_line_id, l.account, l.currency, l.direction, l.amount, l.bank_booked_on,
       l.value_on, l.bank_reference, l.text, l.payer_name, l.payer_account, l.type, l.is_reversal, l.return_code,
       o.outcome, o.payment_id, o.payout_id, o.payment_reversal_id, b.booked_to, o.needs_review, o.reason, s.reference,
       f.name, f.sha256, f.recorded_at
FROM bank_statement_lines x JOIN bank_lines l USING (bank_line_id)
JOIN bank_statements s ON s.bank_statement_id = x.bank_statement_id
JOIN bank_files f ON f.bank_file_id = s.bank_file_id
LEFT JOIN bank_line_outcomes o ON o.bank_line_id = l.bank_line_id
LEFT JOIN bank_bookings b ON b.bank_line_id = l.bank_line_id
  AND b.bank_booking_id NOT IN (SELECT previous FROM bank_bookings WHERE previous IS NOT NULL)
JOIN pack_days t ON t.n = l.bank_booked_on
ORDER BY x.bank_statement_id, x.position;

-- VIEW partners: The partners as the changes so far leave them. Values of a list are separated by blanks.
-- whole
-- columns partner_id name address.line1 address.line2 address.city address.region address.postal_code address.country
-- columns invoicing_contact.name invoicing_contact.email invoicing_contact.cc reminder_email statement_email
-- columns dispute_email currency time_zone payment_terms_days
-- columns payment_terms_end_of_month:flag payment_terms_day active:flag tax_id purchase_order legal_note parent account_statement e_invoice buyer_reference
-- columns electronic_address feed arrangement arrangement_from connected_account_id merchant_of_record split
-- columns settlement_currencies connected_account_type connected_account_state balance_transactions_from
WITH RECURSIVE lists(subject, field, log_no, stem, n, text) AS (
  SELECT f.subject, f.field, f.log_no, f.stem, 0, v.value
  FROM fields f JOIN details v ON v.log_no = f.log_no AND v.path = f.stem || 'new.0' WHERE f.until_no = 999999999999999
  UNION ALL
  SELECT l.subject, l.field, l.log_no, l.stem, l.n + 1, l.text || ' ' || v.value
  FROM lists l JOIN details v ON v.log_no = l.log_no AND v.path = l.stem || 'new.' || CAST(l.n + 1 AS TEXT)),
present AS (
  SELECT subject, field, value FROM fields WHERE until_no = 999999999999999 AND value <> '[]'
  UNION ALL
  SELECT l.subject, l.field, l.text FROM lists l
  WHERE NOT EXISTS (SELECT 1 FROM lists m WHERE m.subject = l.subject AND m.field = l.field AND m.n > l.n))
SELECT p.partner_id, max(CASE c.field WHEN 'name' THEN c.value END),
       max(CASE c.field WHEN 'address.line1' THEN c.value END), max(CASE c.field WHEN 'address.line2' THEN c.value END),
       max(CASE c.field WHEN 'address.city' THEN c.value END), max(CASE c.field WHEN 'address.region' THEN c.value END),
       max(CASE c.field WHEN 'address.postal_code' THEN c.value END),
       max(CASE c.field WHEN 'address.country' THEN c.value END),
       max(CASE c.field WHEN 'invoicing_contact.name' THEN c.value END),
       max(CASE c.field WHEN 'invoicing_contact.email' THEN c.value END),
       max(CASE c.field WHEN 'invoicing_contact.cc' THEN c.value END),
       max(CASE c.field WHEN 'reminder_email' THEN c.value END),
       max(CASE c.field WHEN 'statement_email' THEN c.value END),
       max(CASE c.field WHEN 'dispute_email' THEN c.value END),
       max(CASE c.field WHEN 'currency' THEN c.value END), max(CASE c.field WHEN 'time_zone' THEN c.value END),
       max(CASE c.field WHEN 'payment_terms_days' THEN c.value END),
       max(CASE c.field WHEN 'payment_terms_end_of_month' THEN CASE c.value WHEN 'true' THEN 1 END END),
       max(CASE c.field WHEN 'payment_terms_day' THEN c.value END),
       max(CASE c.field WHEN 'active' THEN CASE c.value WHEN 'true' THEN 1 ELSE 0 END END),
       max(CASE c.field WHEN 'tax_id' THEN c.value END), max(CASE c.field WHEN 'purchase_order' THEN c.value END),
       max(CASE c.field WHEN 'legal_note' THEN c.value END), max(CASE c.field WHEN 'parent' THEN c.value END),
       max(CASE c.field WHEN 'account_statement' THEN c.value END),
       max(CASE c.field WHEN 'e_invoice' THEN c.value END), max(CASE c.field WHEN 'buyer_reference' THEN c.value END),
       max(CASE c.field WHEN 'electronic_address' THEN c.value END), max(CASE c.field WHEN 'feed' THEN c.value END),
       max(CASE c.field WHEN 'arrangement' THEN c.value END),
       max(CASE c.field WHEN 'arrangement_from' THEN c.value END),
       max(CASE c.field WHEN 'connected_account_id' THEN c.value END),
       max(CASE c.field WHEN 'merchant_of_record' THEN c.value END), max(CASE c.field WHEN 'split' THEN c.value END),
       max(CASE c.field WHEN 'settlement_currencies' THEN c.value END),
       max(CASE c.field WHEN 'connected_account_type' THEN c.value END),
       max(CASE c.field WHEN 'connected_account_state' THEN c.value END),
       max(CASE c.field WHEN 'balance_transactions_from' THEN c.value END)
FROM (SELECT DISTINCT subject AS partner_id FROM audit_events WHERE action = 'partner.create') p
LEFT JOIN present c ON c.subject = 'partner ' || p.partner_id
GROUP BY p.partner_id ORDER BY p.partner_id;

-- VIEW policies: The policies of the partners as the changes so far leave them.
-- whole
-- columns partner_id policy_id name kind active:flag partner_cut_rate price.rate price.minimum largest_price
-- columns purchase_order
SELECT substr(n.subject, 9), substr(n.field, 10, length(n.field) - 14), n.value,
       max(CASE c.field WHEN n.stem || '.kind' THEN c.value END),
       max(CASE c.field WHEN n.stem || '.active' THEN CASE c.value WHEN 'true' THEN 1 ELSE 0 END END),
       max(CASE c.field WHEN n.stem || '.partner_cut_rate' THEN c.value END),
       max(CASE c.field WHEN n.stem || '.price.rate' THEN c.value END),
       max(CASE c.field WHEN n.stem || '.price.minimum' THEN c.value END),
       max(CASE c.field WHEN n.stem || '.largest_price' THEN c.value END),
       max(CASE c.field WHEN n.stem || '.purchase_order' THEN c.value END)
FROM (SELECT subject, field, value, substr(field, 1, length(field) - 5) AS stem FROM fields
      WHERE until_no = 999999999999999 AND value IS NOT NULL AND substr(subject, 1, 8) = 'partner '
        AND substr(field, 1, 9) = 'policies.' AND substr(field, length(field) - 4) = '.name') n
LEFT JOIN fields c ON c.subject = n.subject AND c.until_no = 999999999999999
  AND c.field IN (n.stem || '.kind', n.stem || '.active', n.stem || '.partner_cut_rate', n.stem || '.price.rate',
                  n.stem || '.price.minimum', n.stem || '.largest_price', n.stem || '.purchase_order')
GROUP BY n.subject, n.field, n.value ORDER BY n.subject, n.field;

-- VIEW partner-changes: Every changed value of a partner or policy that was recorded before the months closed.
-- columns event_id:int occurred_at:time partner_id action field part old new import_event_id claimed_by os_user host
-- columns via
WITH changed AS (
  SELECT log_no, value AS field, stem FROM details
  WHERE action IN ('partner.create', 'partner.update') AND substr(path, 1, 8) = 'changes.' AND leaf = 'field'),
parts AS (
  SELECT c.log_no, c.field, substr(d.path, length(c.stem) + 5) AS part,
         max(CASE substr(d.path, length(c.stem) + 1, 3) WHEN 'old' THEN d.value END) AS was,
         max(CASE substr(d.path, length(c.stem) + 1, 3) WHEN 'new' THEN d.value END) AS becomes
  FROM changed c JOIN details d ON d.log_no = c.log_no
    AND substr(d.path, 1, length(c.stem) + 3) IN (c.stem || 'old', c.stem || 'new')
    AND substr(d.path, length(c.stem) + 4, 1) IN ('', '.')
  GROUP BY c.log_no, c.field, substr(d.path, length(c.stem) + 5))
SELECT e.event_id, e.occurred_at, e.subject, e.action, p.field, p.part, p.was, p.becomes, i.value, e.claimed_by,
       e.os_user, e.host, e.via
FROM parts p JOIN audit_events e USING (log_no)
JOIN span s ON p.log_no > s.after_no AND p.log_no <= s.until_no
LEFT JOIN details i ON i.log_no = p.log_no AND i.path = 'import_event_id'
WHERE p.was IS NOT NULL OR p.becomes IS NOT NULL ORDER BY p.log_no, p.field, p.part;

-- VIEW events: What was done before the months closed, by whom and from where.
-- columns event_id:int occurred_at:time action subject claimed_by os_user host via user_id:int
SELECT e.event_id, e.occurred_at, e.action, e.subject, e.claimed_by, e.os_user, e.host, e.via, e.user_id
FROM audit_events e JOIN span s ON e.log_no > s.after_no AND e.log_no <= s.until_no
ORDER BY e.log_no;

-- VIEW event-details: The details of these events, one value in a row.
-- columns event_id:int path value
SELECT d.event_id, d.path, d.value
FROM details d JOIN span s ON d.log_no > s.after_no AND d.log_no <= s.until_no
ORDER BY d.log_no, d.path;

-- VIEW opening-balances: The balances of the accounts before the first month: debits above zero, credits below.
-- whole
-- columns account currency amount:amount
SELECT j.account, j.currency, sum(j.amount) FROM journal j JOIN pack k ON j.month < k.from_month
GROUP BY j.control, j.account, j.currency HAVING sum(j.amount) <> 0 ORDER BY j.account, j.currency;

-- VIEW journal: Every posting by entry date: debits above zero, credits below. Rows are dated on their day in UTC.
-- whole
-- columns entry_on:day dated_on:day fact log_no:int account partner_id policy_id currency amount:amount document
-- columns reference
WITH named(log_no, document, reference) AS (
  SELECT log_no, number, NULL FROM papers
  UNION ALL SELECT void_no, number, NULL FROM papers WHERE void_no IS NOT NULL
  UNION ALL SELECT b.log_no, d.number, coalesce(n.number, p.reference)
  FROM balance_facts b JOIN papers d USING (document_id) LEFT JOIN papers n ON n.document_id = b.credit_note_id
  LEFT JOIN payments p ON p.payment_id = b.payment_id WHERE b.what <> 'refund'
  UNION ALL SELECT f.log_no, d.number, f.reference FROM credit_refunds f JOIN papers d USING (document_id)
  UNION ALL SELECT b.log_no, d.number, f.reference
  FROM credit_refund_returns b JOIN credit_refunds f USING (credit_refund_id)
  JOIN papers d ON d.document_id = f.document_id
  UNION ALL SELECT log_no, NULL, reference FROM placed_payments
  UNION ALL SELECT DISTINCT m.log_no, NULL, p.reference FROM cash_moves m JOIN payments p USING (payment_id)
  WHERE m.log_no NOT IN (SELECT log_no FROM balance_facts)
  UNION ALL SELECT x.log_no, NULL, l.bank_reference
  FROM (SELECT log_no, bank_line_id FROM payouts UNION ALL SELECT log_no, bank_line_id FROM bank_bookings
        UNION ALL SELECT t.log_no, o.bank_line_id FROM payout_settlements t JOIN payouts o USING (payout_id)) x
  JOIN bank_lines l USING (bank_line_id)
  UNION ALL SELECT m.log_no, d.number, coalesce(f.reference, p.reference)
  FROM refund_matches m LEFT JOIN credit_refunds f USING (credit_refund_id)
  LEFT JOIN papers d ON d.document_id = f.document_id
  LEFT JOIN payment_reversals r ON r.payment_reversal_id = m.payment_reversal_id
  LEFT JOIN payments p ON p.payment_id = r.payment_id
  UNION ALL SELECT s.log_no, NULL, b.id
  FROM share_allocations s JOIN balance_transactions b USING (balance_transaction_id)),
dated AS (
  SELECT r.log_no, r.kind, r.partner_id, r.policy_id, r.currency, r.spot_price, r.partner_cut, r.invoice_amount,
         r.arrangement, coalesce(r.reversal_id, r.requote_id, r.quote_id) AS own_id, t.n AS dated_on,
         CASE WHEN r.posted_month > r.month OR t.n < m.first_day THEN m.first_day WHEN t.n > m.last_day THEN m.last_day
              ELSE t.n END AS entry_on
  FROM ledger_rows r JOIN pack k ON r.posted_month BETWEEN k.from_month AND k.to_month
  JOIN months m ON m.month = r.posted_month JOIN days t ON t.day = substr(r.accepted_at, 1, 10)),
lines AS (
  SELECT p.entry_on, p.dated_on, p.fact, p.log_no, p.control, p.part, p.partner_id, NULL AS policy_id, p.currency, p.amount,
         n.document, n.reference
  FROM postings p LEFT JOIN named n USING (log_no) JOIN pack_days t ON t.n = p.entry_on
  UNION ALL
  SELECT entry_on, dated_on, kind, log_no, a.control, CASE a.part WHEN 'policy' THEN policy_id ELSE partner_id END, partner_id,
         policy_id, currency, a.price * spot_price + a.cut * partner_cut + a.amount * invoice_amount, NULL, own_id
  FROM dated d JOIN row_accounts a ON a.arrangement IN ('', d.arrangement))
SELECT entry_on, dated_on, fact, log_no, control || CASE part WHEN '' THEN '' ELSE ':' || part END AS account, partner_id,
       policy_id, currency, amount, document, reference
FROM lines WHERE amount <> 0 ORDER BY entry_on, fact, log_no, amount DESC, account;

-- VIEW gl-exports: The journals of the months that went to the general ledger, one file in a row.
-- columns gl_export_id:int month format part:int kind checkpoint books_closed:flag position:int file sha256
-- columns recorded_at:time event_id:int
SELECT e.gl_export_id, e.month, e.format, e.part, e.kind, e.checkpoint, e.books_closed, f.position, f.name, f.sha256,
       e.recorded_at, e.event_id
FROM gl_exports e JOIN gl_export_files f USING (gl_export_id)
JOIN pack k ON e.month BETWEEN k.from_month AND k.to_month
ORDER BY e.gl_export_id, f.position;

-- VIEW gl-lines: The lines of these journals, and the external id of their journal.
-- columns gl_export_id:int line:int month format part:int external_id control account partner_id policy_id currency
-- columns amount:amount to_account class location name memo
SELECT l.gl_export_id, l.line, e.month, e.format, e.part,
       e.month || '-' || e.part || '-' || l.currency || '-' || substr(e.checkpoint, 1, 6), l.control,
       l.account, l.partner_id, l.policy_id, l.currency, l.amount, l.to_account, l.class, l.location, l.name, l.memo
FROM gl_export_lines l JOIN gl_exports e USING (gl_export_id)
JOIN pack k ON e.month BETWEEN k.from_month AND k.to_month
ORDER BY l.gl_export_id, l.line;
