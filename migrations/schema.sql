-- Facts: SHA-256 48802a990afa04a1821c06d87a51d7d736706a8318c61cb6d5b5e437354f5631, without the role reckoner_app be675ee7a0513172951821d759d159587a61bc32d9b5b2a758c88d92949edd1e

GRANT DELETE, INSERT, SELECT ON job_runs, doubled_rows, quotes, requotes, idempotency_keys TO reckoner_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON job_attention, sign_in_links, sign_in_challenges, sessions, request_counts,
  partner_sign_in_links, partner_sessions, running_lines, partner_edges, payment_link_waits, link_checks,
  unallocated_balance_transactions, audit_tasks TO reckoner_app;
GRANT INSERT, SELECT ON installation, security_events, personal_texts, audit_events, erasures, users, user_ends,
  user_roles, user_limits, user_identities, passkeys, passkey_ends, pauses, resumptions, servers, cancellation_terms,
  api_clients, client_secrets, client_revocations, signing_keys, closed_months, book_closes, book_balances, ledger_rows,
  ledger_receipts, feed_decisions, feed_statements, feed_statement_totals, held_rows, held_row_decisions,
  reversal_grounds, revenue_schedules, quote_acceptances, requote_acceptances, month_totals, month_partners,
  month_zones, log_keys, log_continues, log_checkpoints, log_signatures, log_stamps, logos, issuer_versions, openings,
  opening_totals, documents, skipped_numbers, document_taxes, document_lines, voids, credit_applications,
  credit_releases, write_offs, write_off_reversals, holds, hold_releases, portal_deliveries, invoice_disputes,
  invoice_dispute_closings, instruction_versions, document_pdfs, document_e_invoices, email_attempts, email_bounces,
  payment_links, payment_link_changes, payment_link_intents, payment_link_attempts, payment_link_objects,
  payment_link_closings, payment_link_orders, payment_link_outcomes, checkouts, checkout_invoices, checkout_sessions,
  checkout_orders, checkout_endings, bank_files, bank_statements, bank_lines, bank_statement_lines, payments,
  payment_sources, payment_assignments, forgotten_payer_accounts, payment_applications, small_differences,
  payment_suggestions, payment_reversals, payment_reinstatements, payment_unapplications, payouts, payout_settlements,
  payout_payments, bank_line_outcomes, credit_refunds, credit_refund_returns, refund_matches, bank_bookings,
  processor_events, processor_event_outcomes, disputes, dispute_outcomes, payment_exception_closings,
  processor_event_erasures, book_open_documents, book_unapplied_cash, reminders, reminder_pauses, settlement_files,
  settlement_lines, balance_transactions, processor_readings, share_allocations, balance_transaction_closings,
  reversal_evidence, missing_shares, share_payments, payout_contents, account_payouts, partner_events,
  approval_requests, approval_decisions, gl_exports, gl_export_lines, gl_export_files, archived_sales TO reckoner_app;
GRANT INSERT, SELECT, UPDATE ON passkey_uses, partners, partner_arrangements, policies, client_uses, presentation,
  late_requests, emails, account_months, published_marks, webhooks TO reckoner_app;
GRANT SELECT ON schema_records, settings_in_force, active_users, present_roles, present_user_limits,
  present_work_assignments, open_pauses, partner_payers, present_cancellation_terms, archived_months, archived_files,
  archived_postings, archived_posting_months, undecided_rows, live_documents, live_credit_applications, live_write_offs,
  current_holds, open_invoice_disputes, document_emails, latest_emails, latest_other_emails, unfinished_emails,
  document_email_history, current_links, ordered_payments, payment_link_history, printed_links, bank_feeds,
  last_dispute_outcomes, live_payment_applications, live_small_differences, document_bank_charges,
  live_payment_reversals, live_credit_refunds, live_refund_matches, live_bank_bookings, bank_line_states,
  payment_balances, cash_changes, unapplied_payments, payment_cash, payer_accounts, balance_changes, document_balances,
  open_documents, applicable_credit, payment_history, opening_sums, opening_differences, bank_statement_breaks,
  suggested_duplicates, possible_duplicates, payment_exceptions, present_reminder_pauses, account_sources,
  account_partners, routed_quotes, unattributed_balance_transactions, unexplained_balance_transactions,
  live_missing_shares, expected_account_payouts, arrived_account_payouts, billed_rows, tax_days, document_amounts,
  placed_payments, journal_entries, entry_dates, journal_of_facts, journal_of_rows, journal, journal_months,
  journal_of_row_months, partner_event_facts, gl_export_states, gl_unexported_months, archived_groups, rows_elsewhere,
  partner_months TO reckoner_app;
GRANT SELECT, UPDATE ON ledger_gate TO reckoner_app;
GRANT SELECT, USAGE ON SEQUENCE audit_events_event_id_seq, log_numbers TO reckoner_app;
