-- Facts: SHA-256 8987d4a9c555039e945a19da4091da7b533425a11e8dd0d58e97e9f2d506e3e8, without the role reckoner_app ce5a53933e30537ab39be8455346735d4d290072073d8586b3e54bf360adc2be
/*
What the migrations make, in their order. Generated for reading: change a migration, then run npm run db:schema.
Definitions and reasons stand in the migrations. The hash of an object changes with every part of its definition.
A FACT is a table to which make_fact added log_no with its check and index, and the triggers append_only, fact_number
and facts_in_order. A column may be null where it says so. Every trigger is enabled always. The app may call every
function that is no trigger, and read every sequence.

-- 001_foundation ------------------------------------------------------------------------------------------------------

PROCEDURE grant_to_app(IN privileges text, IN target regclass) #e5e61fd7
FUNCTION refuse_change() trigger #eb44215b
PROCEDURE make_append_only(IN target regclass, IN allowed text DEFAULT NULL::text, IN condition text DEFAULT NULL::text,
  IN of_app text DEFAULT 'SELECT, INSERT'::text) #1ce090dd
PROCEDURE enable_triggers_always() #14cd1bb8
PROCEDURE close_functions() #5cfa9a25
FUNCTION number_fact() trigger #80b97023
FUNCTION begin_recording() trigger #796cea08
PROCEDURE refuse_rows_while_paused(IN target regclass) #4ea3229d
PROCEDURE make_fact(IN target regclass, IN while_paused boolean DEFAULT false) #cbd33ade
DOMAIN billing_month text #89a2c4e6
FUNCTION month_after(month text) text #1788a4ff
FUNCTION is_identifier(value text) boolean #162a1fab
FUNCTION minor_digits(currency text) integer #7dca1fe2
TABLE installation #aada6f94
  columns: only_one boolean default, environment text, installation_id text default, log_host text default,
    created_at timestamptz default
  key: (only_one)
  checks: installation_only_one, installation_environment, installation_log_host_form
  triggers: append_only
TABLE schema_records #da283392
  columns: schema_record_id bigint, recorded_at timestamptz default, program text, server_version integer, objects jsonb
  key: (schema_record_id)
  triggers: append_only
TABLE job_runs #ab6eb2cb
  columns: job_run_id bigint identity, job text, started_at timestamptz, finished_at timestamptz, exit_status integer
  key: (job_run_id)
  indexes: job_runs_latest (job, finished_at DESC)
  triggers: append_only, kept_rows
FUNCTION job_run_may_go(run job_runs) boolean #3a3e76b2
TABLE security_events #1a81a4e2
  columns: security_event_id bigint identity, kind text, network text, client_id text null, tries bigint,
    first_at timestamptz, last_at timestamptz, host text
  key: (security_event_id)
  checks: security_event_kind_known, security_event_network_short, security_event_client_short, security_event_counted,
    security_event_times_in_order
  indexes: security_events_latest (last_at)
TABLE job_attention #0de69234
  columns: job text, item text, count bigint, told_at timestamptz
  key: (job, item)
  checks: job_attention_counted

-- 002_people ----------------------------------------------------------------------------------------------------------

FUNCTION commitment_of(salt bytea, value text) text #4f5dd99a
FUNCTION is_commitment(value text) boolean #044cd961
TABLE personal_texts #f205a6a9
  columns: commitment text, salt bytea, text text
  key: (commitment)
  checks: personal_text_salt_length, personal_text_matches
  indexes: personal_texts_by_text hash (lower(text))
  triggers: append_only, kept_rows
FUNCTION keep_text(value text) text #12c91042
FUNCTION keep_texts_in(value jsonb, keys text, is_personal boolean DEFAULT false) jsonb #480377f9
FUNCTION personal(value text) text #e2b471b3
FUNCTION personal(texts text[]) text[] #12aefdd5
FUNCTION commitments_to(texts text[]) text[] #a370fc50
FUNCTION personal_json(value jsonb) jsonb #85590dcb
FUNCTION keep_texts() trigger #48dfcc3e
PROCEDURE keep_personal(IN target regclass, VARIADIC columns text[]) #5f983251
FUNCTION acting_user() bigint #9db50fb3
FUNCTION approval_details() jsonb #6e735f19
FACT audit_events #e83c32c9
  columns: event_id bigint identity, occurred_at timestamptz, action text, subject text, details jsonb,
    claimed_by text null, os_user text, host text, via text, user_id bigint null default
  key: (event_id)
  references: event_of_a_user (user_id) of users
  checks: event_action_form, event_via_known, event_of_the_console_has_its_user, audit_events_claimed_by_kept
  indexes: audit_events_of_subject (subject), audit_events_of_action (action, event_id), audit_events_of_user (user_id),
    audit_events_of_name (COALESCE(claimed_by, lower(os_user))), audit_events_compared (occurred_at),
    audit_events_by_time brin (occurred_at), audit_events_of_work (subject, event_id DESC)
  triggers: personal_texts_kept
FUNCTION personal_keys(action text) text #c22f1cc4
FUNCTION acts_on_person(action text) boolean #a255e3f2
FUNCTION keep_texts_of_event() trigger #4a42290b
FACT erasures #8640866f
  columns: commitment text, reason text, recorded_at timestamptz, event_id bigint
  key: (commitment)
  references: (event_id) of audit_events
  checks: erasure_commitment_form, erasure_has_reason
  indexes: erasures_of_event (event_id)
  triggers: texts_are_erased
FUNCTION is_erased(commitment text) boolean #36ff5fbb
FUNCTION erase_texts(commitments text[]) void security definer #27befb49
FUNCTION erase_recorded_texts() trigger #c42c1f38
FACT users #c1e724b1
  columns: user_id bigint identity, kind text, login text, name text, follows bigint null, recorded_at timestamptz,
    event_id bigint
  key: (user_id)
  unique: user_followed_once (follows)
  references: (event_id) of audit_events, user_follows_an_ended_one (follows) of user_ends
  checks: user_kind_known, user_has_name, users_login_kept, users_name_kept
  triggers: login_once, personal_texts_kept
FACT user_ends #25eda4da
  columns: user_id bigint, reason text null, recorded_at timestamptz, event_id bigint
  key: (user_id)
  references: (user_id) of users, (event_id) of audit_events
  checks: user_ends_reason_kept
  triggers: personal_texts_kept
FUNCTION refuse_wrong_login() trigger #47db5aaa
FACT user_roles #f88b147c
  columns: user_role_id bigint identity, user_id bigint, action text, role text, partner_id text null, source text,
    recorded_at timestamptz, event_id bigint
  key: (user_role_id)
  references: (user_id) of users, (event_id) of audit_events, user_role_of_a_partner (partner_id) of partners
  checks: user_role_action_known, user_role_known, user_role_source_known, administrator_of_all_partners
  indexes: user_roles_of_user (user_id, user_role_id)
VIEW active_users #a212e23f
  columns: user_id, kind, login, name, follows, recorded_at, event_id
VIEW present_roles #101900e9
  columns: user_id, role, partner_id, source
FACT user_identities #b391b644
  columns: user_id bigint, issuer text, subject text, recorded_at timestamptz, event_id bigint
  key: (issuer, subject, user_id)
  references: (user_id) of users, (event_id) of audit_events
FACT passkeys #ae0364b3
  columns: passkey_id bigint identity, user_id bigint, credential_id text, public_key bytea, name text,
    recorded_at timestamptz, event_id bigint
  key: (passkey_id)
  unique: passkey_once (credential_id)
  references: (user_id) of users, (event_id) of audit_events
  checks: passkey_credential_form, passkey_has_name, passkeys_name_kept
  indexes: passkeys_of_user (user_id)
  triggers: personal_texts_kept
FACT passkey_ends #8a5d0a1e
  columns: passkey_id bigint, recorded_at timestamptz, event_id bigint
  key: (passkey_id)
  references: (passkey_id) of passkeys, (event_id) of audit_events
VIEW present_work_assignments #89352cd1
  columns: item, user_id, event_id
TABLE passkey_uses #88ef0c0f
  columns: passkey_id bigint, counter bigint, used_at timestamptz
  key: (passkey_id)
  references: (passkey_id) of passkeys
TABLE sign_in_links #8cc4888e
  columns: sha256 text, user_id bigint, expires_at timestamptz, used_at timestamptz null, event_id bigint
  key: (sha256)
  references: (user_id) of users, (event_id) of audit_events
  checks: sign_in_link_form
  indexes: sign_in_links_of_user (user_id)
TABLE sign_in_challenges #5757565e
  columns: sha256 text, kind text, content jsonb, expires_at timestamptz
  key: (sha256)
  checks: sign_in_challenge_known
  indexes: sign_in_challenges_ended (expires_at)
TABLE sessions #077136d9
  columns: session_id bigint identity, sha256 text, user_id bigint, method text, network text, browser text,
    created_at timestamptz, last_seen_at timestamptz, ends_at timestamptz, ended_at timestamptz null, event_id bigint
  key: (session_id)
  unique: session_once (sha256)
  references: (user_id) of users, (event_id) of audit_events
  checks: session_form, session_method_known
  indexes: sessions_of_user (user_id)
FACT pauses #c8fbf90b
  columns: pause_id bigint identity, cause text, reason text, state_of timestamptz null, paused_at timestamptz,
    event_id bigint
  key: (pause_id)
  references: (event_id) of audit_events
  checks: pause_cause_known, pause_has_reason, pause_of_a_restore_has_its_state
FACT resumptions #e06cd1b9
  columns: pause_id bigint, resumed_at timestamptz, event_id bigint
  key: (pause_id)
  references: (pause_id) of pauses, (event_id) of audit_events
VIEW open_pauses #f255bf73
  columns: pause_id, cause, reason, state_of, paused_at, event_id, log_no
FUNCTION end_open_pauses() void #8d118f04
FUNCTION is_paused() boolean #d250f602

-- 003_partners --------------------------------------------------------------------------------------------------------

TABLE partners #c1019a9d
  columns: partner_id text, name text, address_line1 text, address_line2 text, address_city text, address_region text,
    address_postal_code text, address_country text, contact_name text, contact_email text, contact_cc text[],
    currency text, time_zone text, payment_terms_days integer null, tax_id text, purchase_order text, legal_note text,
    parent text null, account_statement text default, e_invoice text default, buyer_reference text default,
    electronic_address text default, feed text null, inactive_since timestamptz null, imported_at timestamptz
  key: (partner_id)
  references: partner_parent_known (parent) of partners
  checks: partner_id_form, partner_has_name, partner_currency_form, partner_terms_range, partner_parent_is_another,
    partner_account_statement_known, partner_e_invoice_known, partner_feed_known
  indexes: partners_of_parent (parent)
  triggers: partner_parent_not_cyclic
FUNCTION refuse_cyclic_parent() trigger #bc34ba9b
VIEW partner_payers #0dcde81c
  columns: partner_id, payer_id, distance
TABLE partner_arrangements #51f6c604
  columns: partner_id text, from_month billing_month, arrangement text, connected_account_id text null,
    merchant_of_record text null, split text null, settlement_currencies text[] null, connected_account_type text null,
    connected_account_state text null, balance_transactions_from text null
  key: (partner_id, from_month)
  references: (partner_id) of partners
  checks: arrangement_known, merchant_known, split_known, connected_account_type_known, connected_account_state_known,
    balance_transactions_from_known, connected_account_complete, real_time_needs_platform_merchant,
    onboarding_is_of_a_connected_account
  indexes: partner_arrangements_of_account (connected_account_id)
FUNCTION are_dated_rates(rates jsonb) boolean #8aab4abf
TABLE policies #4c076d86
  columns: partner_id text, policy_id text, name text, kind text, partner_cut_rate numeric,
    dated_cut_rates jsonb default, price_rate numeric null, price_minimum numeric null, largest_price numeric null,
    inactive_since timestamptz null
  key: (partner_id, policy_id)
  references: (partner_id) of partners
  checks: policy_id_form, policy_has_name, policy_kind_known, partner_cut_rate_range, dated_cut_rates_form,
    price_rate_range, price_minimum_range, largest_price_positive, price_complete
  triggers: policies_keep_their_names, policies_stay, policies_stay_whole
FUNCTION cut_rate_on(policy policies, day date) numeric #556f57f9
FACT cancellation_terms #98ad818d
  columns: cancellation_terms_id bigint identity, partner_id text, policy_id text, from_day date null,
    window_days integer null, after_window text null, cut text null, before_cover_only boolean null,
    recorded_at timestamptz, event_id bigint
  key: (cancellation_terms_id)
  unique: cancellation_terms_once_for_a_day (partner_id, policy_id, event_id, from_day)
  references: (event_id) of audit_events, (partner_id, policy_id) of policies
  checks: cancellation_window_range, cancellation_after_window_known, cancellation_cut_known,
    cancellation_terms_complete
VIEW present_cancellation_terms #012b6145
  columns: cancellation_terms_id, partner_id, policy_id, from_day, window_days, after_window, cut, before_cover_only,
    recorded_at, event_id, log_no
FUNCTION refuse_lost_policy() trigger #0c5e3ce3
FACT api_clients #c93a170f
  columns: client_id text, partner_id text, created_at timestamptz, event_id bigint
  key: (client_id)
  unique: client_of_partner (client_id, partner_id)
  references: (partner_id) of partners, (event_id) of audit_events
  checks: client_id_form
  indexes: api_clients_of_partner (partner_id)
FACT client_secrets #4a6194cb
  columns: client_id text, sequence integer, secret_sha256 text, issued_at timestamptz, expires_at timestamptz null,
    previous_sequence integer null generated, previous_ends_at timestamptz null, event_id bigint
  key: (client_id, sequence)
  references: (client_id) of api_clients, (event_id) of audit_events, client_secret_follows (client_id,
    previous_sequence) of client_secrets
  checks: client_secret_sequence_positive, client_secret_is_a_hash, client_secret_expires_after_issue,
    client_secret_ends_the_one_before
FACT client_revocations #27f9a6fa
  columns: client_id text, revoked_at timestamptz, event_id bigint
  key: (client_id)
  references: (client_id) of api_clients, (event_id) of audit_events
TABLE client_uses #83cc9612
  columns: client_id text, used_at timestamptz
  key: (client_id)
  references: (client_id) of api_clients
TABLE signing_keys #4295f0f9
  columns: kid text, public_jwk jsonb, published_at timestamptz, signs_until timestamptz, published_until timestamptz
  key: (kid)
  checks: signing_key_is_public, signing_key_outlives_its_tokens
  indexes: signing_keys_in_use (published_until)
  triggers: append_only
TABLE failed_exchanges #eafbf790
  columns: key text, failures integer, ends_at timestamptz
  key: (key)
  checks: failed_exchange_key_length
  indexes: failed_exchanges_ended (ends_at)
TABLE request_counts #5b0b01ea
  columns: key text, requests integer, ends_at timestamptz
  key: (key)
  checks: request_count_key_length
  indexes: request_counts_ended (ends_at)
TABLE partner_sign_in_links #b11e86d2
  columns: sha256 text, partner_id text, contact_name text, contact_email text, expires_at timestamptz,
    used_at timestamptz null
  key: (sha256)
  references: (partner_id) of partners
  checks: partner_sign_in_link_form, partner_sign_in_link_has_address
  indexes: partner_sign_in_links_ended (expires_at)
TABLE partner_sessions #14051dd9
  columns: sha256 text, partner_id text, contact_name text, contact_email text, last_seen_at timestamptz,
    ends_at timestamptz, event_id bigint
  key: (sha256)
  references: (partner_id) of partners, (event_id) of audit_events
  checks: partner_session_form
  indexes: partner_sessions_ended (ends_at)
TABLE presentation #ea155000
  columns: only_one boolean default, we_are text
  key: (only_one)
  checks: presentation_only_one, presentation_known
  triggers: append_only, kept_rows

-- 004_ledger ----------------------------------------------------------------------------------------------------------

FACT closed_months #9462c837
  columns: month billing_month, previous billing_month null, issued_on date, closed_at timestamptz, entries bigint,
    late_entries bigint, partners_with_documents bigint, partners_without_activity bigint
  key: (month)
  unique: closed_months_chain (previous)
  references: (previous) of closed_months
  checks: closed_months_follow, closed_months_late_are_entries
  triggers: month_has_ended
FUNCTION first_instant(month text, zone text) timestamp with time zone #0715fabb
FUNCTION refuse_running_month() trigger #be87b9fa
FACT book_closes #9a13fd90
  columns: month billing_month, previous billing_month null, facts_to bigint, closed_at timestamptz, event_id bigint
  key: (month)
  unique: book_closes_chain (previous)
  references: book_close_after_billing (month) of closed_months, (previous) of book_closes, (event_id) of audit_events
  checks: book_closes_follow
FACT book_balances #121caeb5
  columns: month billing_month, control text, account text, currency text, amount numeric
  key: (month, account, currency)
  references: book_balance_of_closed_books (month) of book_closes
  checks: book_balance_not_zero
FUNCTION earliest_postable_date() date #cf23f7b3
FUNCTION refuse_entry_in_closed_books() trigger #56015c9e
PROCEDURE require_open_books(IN target regclass) #10191a15
FUNCTION is_order_reference(value text) boolean #5c64dee2
FUNCTION is_cover(from_day date, to_day date) boolean #c5457695
TABLE ledger_rows #bc2380b0
  columns: partner_id text, posted_month text, entry_id bigint identity, kind text, quote_id text, requote_id text null,
    reversal_id text null, enrollment_id text null, policy_id text, currency text, accepted_at timestamptz,
    spot_price numeric, partner_cut numeric, invoice_amount numeric, order_reference text null, cover_from date null,
    cover_to date null, time_zone text, month text, arrangement text, recorded_at timestamptz, event_id bigint
  key: (partner_id, posted_month, entry_id)
  checks: ledger_rows_id_positive, ledger_rows_balance, ledger_rows_sign, ledger_rows_minor_digits,
    ledger_rows_amount_limit, ledger_rows_kind_has_ids, ledger_rows_ids_form, ledger_rows_order_reference_form,
    ledger_rows_cover, ledger_rows_months_form, ledger_rows_arrangement_known, ledger_rows_posted_in_own_month_or_later
  indexes: ledger_rows_known_once unique (partner_id, kind, COALESCE(reversal_id, requote_id, quote_id)),
    ledger_rows_of_quote (partner_id, quote_id), ledger_rows_reversals (posted_month, partner_id),
    ledger_rows_of_order (partner_id, order_reference), ledger_rows_of_enrollment (partner_id, enrollment_id),
    ledger_rows_of_accounts_by_time (partner_id, accepted_at), ledger_rows_of_accounts_by_month (posted_month,
    partner_id, quote_id), ledger_rows_by_posted_month brin (posted_month, accepted_at, partner_id),
    ledger_rows_by_entry brin (entry_id)
  triggers: append_only, ledger_rows_event_known, ledger_rows_in_order, ledger_rows_month_open,
    ledger_rows_policy_known, ledger_rows_reversal_has_ground
FUNCTION next_log_number() bigint #33bfacb4
DOMAIN identifier text #6e26e57a
FUNCTION own_id(e ledger_rows) identifier #3fb7de20
FUNCTION refuse_closed_month() trigger #3a932511
FUNCTION refuse_unknown_policy() trigger #93f53198
FUNCTION refuse_unknown_event() trigger #78a01444
FACT ledger_receipts #2b74aff0
  columns: event_id bigint, posted_month billing_month, partner_id text, currency text, entries bigint,
    spot_price numeric, partner_cut numeric, invoice_amount numeric
  key: (posted_month, event_id, partner_id, currency)
  references: (event_id) of audit_events, (partner_id) of partners
  checks: ledger_receipt_of_rows, ledger_receipts_balance
FACT feed_decisions #8a0f4b80
  columns: feed_decision_id bigint identity, month billing_month, partner_id text, kind text, evidence text,
    reason text null, recorded_at timestamptz, event_id bigint
  key: (feed_decision_id)
  unique: feed_decision_once (month, partner_id, kind, evidence)
  references: (partner_id) of partners, (event_id) of audit_events
  checks: feed_decision_kind_known, feed_decision_has_reason
  triggers: feed_decisions_month_open
FUNCTION refuse_decision_on_closed_month() trigger #f57a20f7
FACT feed_statements #50136424
  columns: feed_statement_id bigint identity, partner_id text, month billing_month, entries bigint, complete boolean,
    recorded_at timestamptz, event_id bigint
  key: (feed_statement_id)
  references: (partner_id) of partners, (event_id) of audit_events
  checks: feed_statement_entries_not_negative
  indexes: feed_statements_of_month (month, partner_id, feed_statement_id)
FACT feed_statement_totals #abac319e
  columns: feed_statement_id bigint, currency text, invoice_amount numeric
  key: (feed_statement_id, currency)
  references: (feed_statement_id) of feed_statements
  checks: feed_statement_total_digits, feed_statement_total_limit
TABLE running_lines #17bc40d1
  columns: posted_month text, partner_id text, currency text, arrangement text, policy_id text, kind text, month text,
    sold_month text, sold_posted text, sold_kind text, by_receipt boolean, count bigint, spot_price numeric,
    partner_cut numeric, invoice_amount numeric, last_accepted_at timestamptz
  key: (posted_month, partner_id, currency, arrangement, policy_id, kind, month, sold_month, sold_posted, sold_kind,
    by_receipt)
FUNCTION bare_id(own_id text) text #13eee4c4
FACT held_rows #69ea719e
  columns: held_row_id bigint identity, kind text, partner_id text, quote_id text, requote_id text null,
    reversal_id text null, enrollment_id text null, policy_id text, currency text, accepted_at timestamptz,
    spot_price numeric, partner_cut numeric, invoice_amount numeric, order_reference text null, cover_from date null,
    cover_to date null, sign text, repeats text null, recorded_at timestamptz, event_id bigint
  key: (held_row_id)
  references: (partner_id) of partners, (event_id) of audit_events, (partner_id, policy_id) of policies
  checks: held_row_sign_known, held_row_balance, held_row_repeats_a_row
  indexes: held_rows_known_once unique (partner_id, kind, COALESCE(reversal_id, requote_id, quote_id))
FUNCTION own_id(h held_rows) identifier #810dbc5e
FACT held_row_decisions #8fab9f29
  columns: held_row_id bigint, decision text, reason text, recorded_at timestamptz, event_id bigint
  key: (held_row_id)
  references: (held_row_id) of held_rows, (event_id) of audit_events
  checks: held_row_decision_known, held_row_decision_has_reason
FACT reversal_grounds #5a6cea6a
  columns: partner_id text, reversal_id text, quote_id text, ground text, cancellation_terms_id bigint null,
    held_row_id bigint null, sold_on date null, judged_on date null, recorded_at timestamptz, event_id bigint
  key: (partner_id, reversal_id)
  references: (partner_id) of partners, (cancellation_terms_id) of cancellation_terms, (held_row_id) of held_rows,
    (event_id) of audit_events
  checks: reversal_ground_known, reversal_ground_of_terms, reversal_ground_of_person, reversal_ground_has_days
FUNCTION refuse_reversal_without_ground() trigger #a5aeb805
VIEW undecided_rows #4f85b7f1
  columns: held_row_id, kind, partner_id, quote_id, requote_id, reversal_id, enrollment_id, policy_id, currency,
    accepted_at, spot_price, partner_cut, invoice_amount, order_reference, cover_from, cover_to, sign, repeats,
    recorded_at, event_id, log_no
TABLE doubled_rows #b21802e6
  columns: posted_month text, partner_id text, entry_id bigint, repeats text
  key: (partner_id, posted_month, entry_id)
  references: (partner_id, posted_month, entry_id) of ledger_rows
FUNCTION has_no_rows() boolean #59605fb8

-- 005_quotes ----------------------------------------------------------------------------------------------------------

TABLE quotes #a9173b9c
  columns: quote_id text, partner_id text, client_id text, policy_id text, currency text, insured_amount numeric,
    price_rate numeric, price_minimum numeric, partner_cut_rate numeric, spot_price numeric, partner_cut numeric,
    invoice_amount numeric, quoted_at timestamptz, expires_at timestamptz null, order_reference text null,
    cover_from date null, cover_to date null
  key: (quote_id)
  unique: quote_of_partner (quote_id, partner_id)
  references: quote_policy_known (partner_id, policy_id) of policies, quote_client_is_the_partners (client_id,
    partner_id) of api_clients
  checks: quote_id_form, quote_insures_something, quote_cut_rate_range, quote_expires_later, quote_order_reference_form,
    quote_cover, quote_balance, quote_amount_limit, quote_price_follows_terms, quote_cut_follows_terms
  indexes: quotes_of_partner (partner_id, quoted_at), quotes_expired (expires_at, quote_id)
  triggers: append_only, kept_rows
FUNCTION quote_may_go(quote quotes) boolean #c11f753d
FACT quote_acceptances #1cabffcc
  columns: quote_id text, partner_id text, client_id text, posted_month text, entry_id bigint
  key: (quote_id)
  unique: acceptance_entry_once (partner_id, posted_month, entry_id)
  references: acceptance_is_of_a_quote (quote_id, partner_id) of quotes, acceptance_client_is_the_partners (client_id,
    partner_id) of api_clients, acceptance_is_in_the_ledger (partner_id, posted_month, entry_id) of ledger_rows
TABLE requotes #1f461427
  columns: requote_id text, quote_id text, partner_id text, client_id text, step integer, currency text,
    insured_amount numeric, accepted_spot_price numeric, accepted_partner_cut numeric, accepted_invoice_amount numeric,
    spot_price numeric, partner_cut numeric, invoice_amount numeric, requoted_at timestamptz,
    expires_at timestamptz null, order_reference text null, cover_from date null, cover_to date null
  key: (requote_id)
  unique: requote_step (requote_id, quote_id, partner_id, step)
  references: requote_is_of_an_accepted_quote (quote_id) of quote_acceptances, requote_quote_is_the_partners (quote_id,
    partner_id) of quotes, requote_client_is_the_partners (client_id, partner_id) of api_clients
  checks: requote_id_form, requote_step_positive, requote_insures_something, requote_expires_later,
    requote_order_reference_form, requote_cover, requote_balance, requote_accepted_balance, requote_amount_limit,
    requote_minor_digits, requote_never_lower
  indexes: requotes_of_quote (quote_id), requotes_expired (expires_at, requote_id)
  triggers: append_only, kept_rows
FUNCTION requote_may_go(requote requotes) boolean #44a32e5f
FACT requote_acceptances #542fc7b3
  columns: quote_id text, step integer, previous_step integer null generated, requote_id text, partner_id text,
    client_id text, posted_month text, entry_id bigint
  key: requote_one_accepted_per_step (quote_id, step)
  unique: requote_accepted_once (requote_id), requote_acceptance_entry_once (partner_id, posted_month, entry_id)
  references: requote_acceptance_is_of_a_requote (requote_id, quote_id, partner_id, step) of requotes,
    requote_acceptance_follows (quote_id, previous_step) of requote_acceptances,
    requote_acceptance_client_is_the_partners (client_id, partner_id) of api_clients,
    requote_acceptance_is_in_the_ledger (partner_id, posted_month, entry_id) of ledger_rows
TABLE idempotency_keys #6aec24d2
  columns: partner_id text, idempotency_key text, request_sha256 text, status integer, answer text,
    recorded_at timestamptz
  key: idempotency_key_once (partner_id, idempotency_key)
  references: (partner_id) of partners
  checks: idempotency_key_length, idempotency_request_is_a_hash
  indexes: idempotency_keys_recorded (recorded_at)
  triggers: append_only, kept_rows
FUNCTION idempotency_key_may_go(kept idempotency_keys) boolean #c9728ba6

-- 006_log -------------------------------------------------------------------------------------------------------------

FUNCTION log_map_parts(value jsonb) TABLE(path text, value jsonb) #635b409b
FUNCTION log_map(value jsonb) text #6ade57c8
FUNCTION log_map_values(value jsonb) TABLE(path text, value text) #a047c3ef
FUNCTION log_units(currency text) numeric #547c435a
FACT month_totals #4e34ee11
  columns: month billing_month, currency text, entries bigint, spot_price numeric, partner_cut numeric,
    invoice_amount numeric
  key: (month, currency)
  references: (month) of closed_months
  checks: month_totals_balance
FACT month_partners #4a4a6a20
  columns: month billing_month, partner_id text, currency text, arrangement text, entries bigint, spot_price numeric,
    partner_cut numeric, invoice_amount numeric, last_accepted_at timestamptz, root text
  key: (month, partner_id, currency, arrangement)
  references: (month) of closed_months
  checks: month_partner_has_entries, month_partner_root_form
FACT month_zones #5a710a23
  columns: time_zone text, month billing_month, begins_at timestamptz
  key: (time_zone, month)
FACT log_keys #f92298dd
  columns: key_name text, public_key text, previous text null, signature text null, reason text,
    recorded_at timestamptz, event_id bigint
  key: (public_key)
  unique: log_keys_chain (previous)
  references: (previous) of log_keys, (event_id) of audit_events
  checks: log_key_name_form, log_key_public_key_form, log_key_signature_form, log_key_follows, log_key_loss_explained
FACT log_continues #3cb2d4a8
  columns: origin text, follows text, lost_size bigint, lost_root text, kept_size bigint, reason text,
    recorded_at timestamptz, event_id bigint
  key: (origin)
  unique: log_continues_once (follows)
  references: (event_id) of audit_events
  checks: log_continues_origin_form, log_continues_root_form, log_continues_kept_not_negative
TABLE log_checkpoints #09adfdf9
  columns: size bigint, origin text, last_no bigint, root bytea, edge bytea, span bytea, taken_at timestamptz,
    closes text null, facts_root bytea
  key: (size)
  unique: log_checkpoint_last_no_once (last_no), log_checkpoint_closes_once (closes)
  checks: log_checkpoint_size_positive, log_checkpoint_root_length, log_checkpoint_closes_form
  triggers: append_only
TABLE log_signatures #c45182d6
  columns: size bigint, key_name text, line text, made_at timestamptz
  key: (size, key_name, line)
  references: (size) of log_checkpoints
  checks: log_signature_line_form
  triggers: append_only
TABLE log_stamps #22e2909c
  columns: size bigint, authority text, response bytea, stamped_at timestamptz
  key: (size)
  references: (size) of log_checkpoints
  triggers: append_only
TABLE partner_edges #9466f235
  columns: posted_month text, partner_id text, currency text, arrangement text, entries bigint, edge bytea
  key: (posted_month, partner_id, currency, arrangement)
FUNCTION log_numbers_ascend() boolean #5bc645d4

-- 007_documents -------------------------------------------------------------------------------------------------------

TABLE logos #687263b5
  columns: sha256 text, media_type text, width integer, height integer, content bytea, first_used_at timestamptz
  key: logo_once (sha256)
  checks: logo_media_type_known, logo_width_positive, logo_height_positive, logo_is_its_hash
  triggers: append_only
FACT issuer_versions #d1590265
  columns: issuer_version_id bigint identity, content jsonb, first_used_at timestamptz, logo_sha256 text null generated
  key: (issuer_version_id)
  unique: issuer_version_once (content)
  references: issuer_logo_kept (logo_sha256) of logos
FUNCTION document_sign(document text) integer #b625b051
FUNCTION document_series(document text, issued_on date) text #319f08c1
FACT openings #b314c468
  columns: opening_id bigint identity, cut_over_on date, sha256 text, name text, recorded_at timestamptz,
    event_id bigint
  key: (opening_id)
  unique: opening_on_its_day (opening_id, cut_over_on)
  references: (event_id) of audit_events
  checks: opening_sha256_form, opening_has_name
  triggers: opening_adds_up, opening_before_closed_months
FACT opening_totals #053956ae
  columns: opening_id bigint, currency text, items integer, invoices numeric, credits numeric, cash numeric,
    control numeric
  key: (opening_id, currency)
  references: (opening_id) of openings
  checks: opening_total_of_items, opening_invoices_not_negative, opening_credits_not_negative,
    opening_cash_not_negative, opening_meets_its_control
FUNCTION refuse_opening_of_closed_month() trigger #d0399044
FACT documents #4fb8a3c2
  columns: document_id bigint identity, series text, sequence integer, number text generated, document text,
    purpose text, partner_id text, month billing_month, currency text, arrangement text, issued_on date,
    due_on date null, terms_days integer null, enrollments bigint, entries bigint, spot_price numeric,
    partner_cut numeric, invoice_amount numeric, tax numeric default, gross numeric generated, credit_applied numeric,
    partner_name text, contact_name text, address_line1 text, address_line2 text, address_city text,
    address_region text, address_postal_code text, address_country text, tax_id text, purchase_order text,
    legal_note text, e_invoice text default, buyer_reference text default, electronic_address text default,
    issuer_version_id bigint, sandbox boolean, issued_at timestamptz, replaces bigint null, credits bigint null,
    invoice_lowered_by numeric null, invoice_left numeric null, reason text default, reopened_on date null default,
    entry_on date generated, opening_id bigint null, opening_number text null, opening_revision integer null,
    opening_follows bigint null, original_amount numeric null
  key: (document_id)
  unique: document_number_once (number), document_replaced_once (replaces), opening_followed_once (opening_follows),
    document_sequence_once (series, sequence), document_of_opening_number (document_id, opening_number),
    document_stands_for (document_id, partner_id, month, currency, arrangement),
    document_of_partner_and_currency (document_id, partner_id, currency)
  references: (partner_id) of partners, (issuer_version_id) of issuer_versions,
    opening_follows_its_number (opening_follows, opening_number) of documents,
    document_entered_at_the_cut_over (opening_id, reopened_on) of openings,
    document_credits_its_partners_invoice (credits, partner_id, month, currency, arrangement) of documents,
    document_replaces_a_void_one (replaces, partner_id, month, currency, arrangement) of voids,
    opening_follows_a_void_one (opening_follows) of voids
  checks: document_sequence_positive, document_known, document_purpose_known, document_arrangement_known,
    document_e_invoice_known, opening_number_form, opening_revision_positive, document_series_of_kind_and_year,
    document_statement_has_no_e_invoice, document_balance, document_arrangement_gives_kind,
    document_amount_not_negative, document_tax_on_invoicing, document_credit_within_amount, document_due_on_invoices,
    document_due_after_terms, document_missing_shares_are_invoiced, document_adjustment_credits_an_invoice,
    document_adjustment_states_what_is_left, document_opening_has_its_facts, document_opening_bills_nothing,
    opening_number_not_ours, opening_revision_follows, documents_contact_name_kept
  indexes: document_one_live_per_month unique (partner_id, month, currency, arrangement),
    opening_number_once unique (lower(opening_number)), documents_of_opening (opening_id), documents_by_month (month),
    documents_by_entry brin (entry_on), credit_notes_of_partner (partner_id, currency), adjustments_of_invoice (credits)
  triggers: document_tax_ties, entry_books_open, number_given_or_skipped, personal_texts_kept
FUNCTION keep_contact() trigger #7716baac
FACT skipped_numbers #32e1ee0d
  columns: series text, first_sequence integer, last_sequence integer, pause_id bigint, recorded_at timestamptz,
    event_id bigint
  key: (series, first_sequence)
  references: (pause_id) of resumptions, (event_id) of audit_events
  checks: skipped_series_form, skipped_sequence_positive, skipped_range
  triggers: number_given_or_skipped
FUNCTION refuse_skipped_number() trigger #91d6d151
FUNCTION tax_of(taxable numeric, rate numeric, currency text) numeric #81a3fbb7
FACT document_taxes #309a4f8f
  columns: document_id bigint, position integer, currency text, country text, registration text, name text,
    category text, rate numeric, reduced boolean, reason text, reason_code text, taxable numeric, tax numeric
  key: (document_id, position)
  unique: document_tax_once (document_id, country, category, rate, reduced)
  references: (document_id) of documents
  checks: document_tax_position_positive, document_tax_named, document_tax_category_known,
    document_tax_rate_of_category, document_tax_reason_of_category, document_tax_none_without_rate, document_tax_digits
  triggers: document_tax_ties
FACT document_lines #fa5f3327
  columns: document_id bigint, position integer, policy_id text, policy_name text, kind text, month billing_month,
    count bigint, spot_price numeric, partner_cut numeric, invoice_amount numeric, tax integer null
  key: (document_id, position)
  unique: line_once (document_id, policy_id, kind, month, tax)
  references: (document_id) of documents, line_tax_of_its_document (document_id, tax) of document_taxes
  checks: line_kind_known, line_has_rows, line_balance
FUNCTION lines_of_tax(document_id bigint, tax integer) text #0973385f
FUNCTION refuse_untied_tax() trigger #199fd9d6
FACT voids #5fe937c7
  columns: document_id bigint, partner_id text, month billing_month, currency text, arrangement text, reason text,
    voided_on date, recorded_at timestamptz, event_id bigint, reopened_on date null default, entry_on date generated
  key: (document_id)
  unique: void_stands_for (document_id, partner_id, month, currency, arrangement)
  references: (event_id) of audit_events, void_is_of_a_document (document_id, partner_id, month, currency,
    arrangement) of documents
  checks: void_has_reason
  triggers: document_not_overpaid, entry_books_open
VIEW live_documents #b7638584
  columns: document_id, series, sequence, number, document, purpose, partner_id, month, currency, arrangement,
    issued_on, due_on, terms_days, enrollments, entries, spot_price, partner_cut, invoice_amount, tax, gross,
    credit_applied, partner_name, contact_name, address_line1, address_line2, address_city, address_region,
    address_postal_code, address_country, tax_id, purchase_order, legal_note, e_invoice, buyer_reference,
    electronic_address, issuer_version_id, sandbox, issued_at, replaces, credits, invoice_lowered_by, invoice_left,
    reason, reopened_on, entry_on, opening_id, opening_number, opening_revision, opening_follows, original_amount,
    log_no
FACT credit_applications #1a788cb4
  columns: credit_application_id bigint identity, credit_note_id bigint, invoice_id bigint, amount numeric,
    applied_on date, recorded_at timestamptz, at_issue boolean default, event_id bigint, reopened_on date null default,
    entry_on date generated
  key: (credit_application_id)
  unique: credit_application_of_invoice (credit_application_id, invoice_id)
  references: (credit_note_id) of documents, (invoice_id) of documents, (event_id) of audit_events
  checks: credit_application_positive
  indexes: credit_applications_of_note (credit_note_id), credit_applications_of_invoice (invoice_id)
  triggers: credit_note_not_overdrawn, document_not_overpaid, entry_books_open, held_credit_not_used
FACT credit_releases #f6a1d826
  columns: credit_application_id bigint, document_id bigint null, released_on date, recorded_at timestamptz,
    event_id bigint, reopened_on date null default, entry_on date generated
  key: (credit_application_id)
  references: (credit_application_id) of credit_applications, (document_id) of voids, (event_id) of audit_events,
    credit_release_by_its_invoices_void (credit_application_id, document_id) of credit_applications
  triggers: credit_release_leaves_nothing_due, entry_books_open
FUNCTION refuse_release_of_covering_credit() trigger #14e47462
VIEW live_credit_applications #6448b742
  columns: credit_application_id, credit_note_id, invoice_id, amount, applied_on, recorded_at, at_issue, event_id,
    reopened_on, entry_on, log_no
FACT write_offs #9871b33f
  columns: write_off_id bigint identity, document_id bigint, amount numeric, reason text, written_off_on date,
    recorded_at timestamptz, event_id bigint, reopened_on date null default, entry_on date generated
  key: (write_off_id)
  references: (document_id) of documents, (event_id) of audit_events
  checks: write_off_positive, write_off_has_reason
  indexes: write_offs_of_document (document_id)
  triggers: document_not_overpaid, entry_books_open
FACT write_off_reversals #4e06bbf3
  columns: write_off_id bigint, reason text, reversed_on date, recorded_at timestamptz, event_id bigint,
    reopened_on date null default, entry_on date generated
  key: (write_off_id)
  references: (write_off_id) of write_offs, (event_id) of audit_events
  checks: write_off_reversal_has_reason
  triggers: entry_books_open
VIEW live_write_offs #8279cdf8
  columns: write_off_id, document_id, amount, reason, written_off_on, recorded_at, event_id, reopened_on, entry_on,
    log_no
FACT holds #3c3b401f
  columns: hold_id bigint identity, document_id bigint, follows bigint null, reason text, held_at timestamptz,
    event_id bigint
  key: (hold_id)
  unique: hold_of_document (hold_id, document_id), hold_one_at_a_time (document_id, follows)
  references: (document_id) of documents, (event_id) of audit_events, hold_follows_a_release (follows,
    document_id) of hold_releases
  triggers: held_credit_not_used
FACT hold_releases #88c30072
  columns: hold_id bigint, document_id bigint, released_at timestamptz, event_id bigint
  key: (hold_id)
  unique: hold_release_stands_for (hold_id, document_id)
  references: (event_id) of audit_events, hold_release_is_of_a_hold (hold_id, document_id) of holds
VIEW current_holds #79091af9
  columns: hold_id, document_id, follows, reason, held_at, event_id, log_no
FACT invoice_disputes #e102a05e
  columns: invoice_dispute_id bigint identity, document_id bigint, follows bigint null, amount numeric, reason text,
    owner text, promised_on date null, disputed_on date, recorded_at timestamptz, event_id bigint
  key: (invoice_dispute_id)
  unique: invoice_dispute_of_document (invoice_dispute_id, document_id), invoice_dispute_one_at_a_time (document_id,
    follows)
  references: (document_id) of documents, (event_id) of audit_events, invoice_dispute_follows_a_closing (follows,
    document_id) of invoice_dispute_closings
  checks: invoice_dispute_positive, invoice_dispute_has_reason, invoice_dispute_promise_ahead,
    invoice_disputes_owner_kept
  triggers: personal_texts_kept
FACT invoice_dispute_closings #3596e7d7
  columns: invoice_dispute_id bigint, document_id bigint, reason text, closed_on date, recorded_at timestamptz,
    event_id bigint
  key: (invoice_dispute_id)
  unique: invoice_dispute_closing_stands_for (invoice_dispute_id, document_id)
  references: (event_id) of audit_events, invoice_dispute_closing_is_of_a_dispute (invoice_dispute_id,
    document_id) of invoice_disputes
  checks: invoice_dispute_closing_has_reason
VIEW open_invoice_disputes #55ad731c
  columns: invoice_dispute_id, document_id, follows, amount, reason, owner, promised_on, disputed_on, recorded_at,
    event_id, log_no
FACT instruction_versions #cb86f101
  columns: instruction_version_id bigint identity, currency text, content jsonb, first_used_at timestamptz
  key: (instruction_version_id)
  unique: instruction_version_once (currency, content)
VIEW instructions_in_force #4a3bb4ba
  columns: event_id, instructions
FUNCTION instructions_for(instructions jsonb, currency text) jsonb #ed30a453
FACT document_pdfs #ba59e7b6
  columns: document_id bigint, renderer_version integer, libraries jsonb, instruction_version_id bigint null,
    instructions_changed boolean, sha256 text, pdf bytea, rendered_at timestamptz
  key: (document_id)
  references: (document_id) of documents, (instruction_version_id) of instruction_versions
  checks: document_pdf_sha256_form, document_pdf_is_its_hash
  triggers: instructions_in_force
FUNCTION refuse_other_instructions() trigger #2026d0ab
FACT document_e_invoices #0d5c3afb
  columns: document_id bigint, writer_version integer, parties jsonb, sha256 text, xml bytea, written_at timestamptz
  key: (document_id)
  references: (document_id) of document_pdfs
  checks: document_e_invoice_sha256_form, document_e_invoice_is_its_hash

-- 008_mail ------------------------------------------------------------------------------------------------------------

TABLE emails #7c95b1fd
  columns: email_id bigint identity, kind text, document_id bigint null, partner_id text null, month text null,
    day date null, payment_id bigint null, credit_refund_id bigint null, checkpoint_size bigint null,
    approval_request_id bigint null, preliminary boolean default, asked_for text null, addressed_to text null,
    event_id bigint null, message_id text, status text, reason text null, recipients text[] null, message bytea null,
    message_sha256 text null, envelope_from text null, attempts integer default, unclear_attempts integer default,
    due_at timestamptz default, queued_at timestamptz, attempted_at timestamptz null, sent_at timestamptz null,
    dismissal_reason text null
  key: (email_id)
  unique: email_message_id_once (message_id)
  references: (document_id) of documents, (partner_id) of partners, (month) of closed_months,
    (checkpoint_size) of log_checkpoints, (event_id) of audit_events, email_of_a_payment (payment_id) of payments,
    email_of_a_refund (credit_refund_id) of credit_refunds,
    email_of_an_approval (approval_request_id) of approval_requests
  checks: email_kind_known, email_preliminary_statement, email_asked_for_known, email_status_known,
    email_document_named, email_asked_for_named, email_partner_and_day_named, email_money_named, email_month_named,
    email_checkpoint_named, email_approval_named, email_address_for_a_resend, email_event_named,
    email_in_flight_has_message, email_sent_has_time, email_held_has_reason, email_dismissed_unsent
  indexes: email_of_an_issue_once unique (document_id), reminder_once unique (partner_id, day),
    account_statement_once unique (partner_id, day, preliminary), payment_receipt_once unique (payment_id, partner_id),
    refund_notice_once unique (credit_refund_id), close_report_once unique (month), feed_doubts_wait_once unique (day),
    instructions_changed_once unique (event_id), approval_email_once unique (kind, approval_request_id),
    checkpoint_email_once unique (checkpoint_size), status_email_waits_once unique (kind),
    emails_of_document (document_id, email_id), emails_unfinished (status), emails_due (due_at, email_id)
  triggers: emails_facts_stay, not_begun_while_paused, not_while_paused
FUNCTION is_erased_email(before emails, after emails) boolean #1486deae
FUNCTION refuse_rewritten_email() trigger #5d2b9c5e
FACT email_attempts #fa368097
  columns: email_id bigint, attempt integer, started_at timestamptz, ended_at timestamptz, outcome text, reply text,
    kind text, message_id text, recipients text[], message_sha256 text, pdf_sha256 text null
  key: (email_id, attempt)
  references: (email_id) of emails
  checks: email_attempt_outcome_known, email_attempts_reply_kept
  indexes: email_attempts_by_end (ended_at)
  triggers: personal_texts_kept
FACT email_bounces #ff1b8f8d
  columns: email_bounce_id bigint identity, email_id bigint, recipient text, status text, diagnostic text,
    reporting_server text, report_sha256 text, recorded_at timestamptz, event_id bigint
  key: (email_bounce_id)
  unique: email_bounce_once (email_id, recipient)
  references: (email_id) of emails, (event_id) of audit_events
  checks: email_bounce_status_form, email_bounce_report_hash, email_bounces_diagnostic_kept,
    email_bounces_recipient_kept
  triggers: personal_texts_kept
VIEW document_emails #fb273708
  columns: email_id, document_id, asked_for, addressed_to, event_id, message_id, status, reason, recipients,
    message_sha256, attempts, unclear_attempts, queued_at, attempted_at, sent_at
VIEW latest_emails #61b503b7
  columns: email_id, document_id, asked_for, addressed_to, event_id, message_id, status, reason, recipients,
    message_sha256, attempts, unclear_attempts, queued_at, attempted_at, sent_at
VIEW latest_other_emails #232f90be
  columns: email_id, kind, partner_id, month, day, payment_id, credit_refund_id, checkpoint_size, approval_request_id,
    addressed_to, status, reason, recipients, queued_at, dismissal_reason
VIEW unfinished_emails #dcf3c007
  columns: email_id, document_id
VIEW document_email_history #6aafc5fb
  columns: document_id, rank, at, action, facts, event_id
FUNCTION queue_document_emails(document_ids bigint[], asked_for text, addressed_to text, event_id bigint,
  mail_domain text, now timestamp with time zone) void #9da81168
FUNCTION withdraw_document_emails(document_ids bigint[]) TABLE(status text, reason text) #3142eb06
FUNCTION hold_document_emails(document_ids bigint[], reason text) void #576e54d2
FUNCTION release_document_emails(document_ids bigint[]) void #821fb691

-- 009_delivery --------------------------------------------------------------------------------------------------------

TABLE payment_links #d90dd354
  columns: document_id bigint, provider text, token text, url text, created_at timestamptz
  key: (document_id)
  unique: payment_link_token_once (token)
  references: (document_id) of documents
  checks: payment_link_token_unguessable
  triggers: append_only
TABLE payment_link_changes #432a9498
  columns: payment_link_change_id bigint identity, document_id bigint, follows bigint null, token text null,
    reason text, changed_at timestamptz, event_id bigint
  key: (payment_link_change_id)
  unique: payment_link_change_token_once (token), payment_link_change_one_at_a_time (document_id, follows)
  references: (document_id) of payment_links, (event_id) of audit_events
  checks: payment_link_change_token_unguessable, payment_link_change_has_reason
  triggers: append_only
VIEW current_links #53268020
  columns: document_id, provider, token, url
TABLE payment_link_intents #8eb7b63f
  columns: document_id bigint, version integer, provider text, amount numeric, currency text, request jsonb,
    intended_at timestamptz, follows integer null generated
  key: (document_id, version)
  references: (document_id) of documents, payment_link_follows_a_closed_one (document_id,
    follows) of payment_link_closings
  checks: payment_link_version_positive, payment_link_amount_positive
  triggers: append_only
TABLE payment_link_attempts #2003f74d
  columns: document_id bigint, version integer, attempt integer, idempotency_key text, attempted_at timestamptz
  key: (document_id, version, attempt)
  unique: payment_link_key_once (idempotency_key)
  references: payment_link_attempt_of_intent (document_id, version) of payment_link_intents
  checks: payment_link_attempt_positive, payment_link_key_short
  triggers: append_only, not_while_paused
TABLE payment_link_objects #5c052977
  columns: document_id bigint, version integer, provider_id text, url text, found boolean, created_at timestamptz
  key: (document_id, version)
  unique: payment_link_object_once (provider_id)
  references: payment_link_object_of_intent (document_id, version) of payment_link_intents
  triggers: append_only
TABLE payment_link_closings #a382af14
  columns: document_id bigint, version integer, why text, detail text null, sessions_expired integer default,
    closed_at timestamptz
  key: (document_id, version)
  references: payment_link_closing_of_intent (document_id, version) of payment_link_intents
  checks: payment_link_closing_known
  triggers: append_only
TABLE payment_link_orders #20fde620
  columns: document_id bigint, version integer, ordered_on date, event_id bigint
  key: (document_id, version)
  references: (event_id) of audit_events, payment_link_order_of_object (document_id, version) of payment_link_objects
  triggers: append_only
TABLE payment_link_outcomes #cd31859e
  columns: document_id bigint, version integer, outcome text, recorded_at timestamptz
  key: (document_id, version)
  references: payment_link_outcome_of_object (document_id, version) of payment_link_objects
  checks: payment_link_outcome_known
  triggers: append_only
TABLE payment_link_waits #95425ab5
  columns: document_id bigint, kind text, reason text, wanted text, since timestamptz default,
    noted_at timestamptz default
  key: (document_id)
  references: (document_id) of documents
  checks: payment_link_wait_known
TABLE checkouts #78d0f9c4
  columns: checkout_id bigint identity, reference text, partner_id text, provider text, currency text, amount numeric,
    request jsonb, idempotency_key text, expires_at timestamptz, recorded_at timestamptz, event_id bigint
  key: (checkout_id)
  unique: checkout_reference_once (reference), checkout_key_once (idempotency_key), checkout_of_partner (checkout_id,
    partner_id, currency)
  references: (partner_id) of partners, (event_id) of audit_events
  checks: checkout_reference_unguessable, checkout_amount_positive, checkout_key_short
  indexes: checkouts_of_partner (partner_id)
  triggers: append_only, checkout_is_whole, not_while_paused
TABLE checkout_invoices #d90a1ac1
  columns: checkout_id bigint, position integer, document_id bigint, partner_id text, currency text, amount numeric
  key: (checkout_id, position)
  unique: checkout_invoice_once (checkout_id, document_id)
  references: checkout_invoice_of_its_checkout (checkout_id, partner_id, currency) of checkouts,
    checkout_invoice_of_its_partner (document_id, partner_id, currency) of documents
  checks: checkout_position_positive, checkout_invoice_amount_positive
  indexes: checkout_invoices_of_document (document_id)
  triggers: append_only, checkout_stays_whole
TABLE checkout_sessions #40f2dd07
  columns: checkout_id bigint, provider_id text, url text, created_at timestamptz
  key: (checkout_id)
  unique: checkout_session_once (provider_id)
  references: (checkout_id) of checkouts
  triggers: append_only
TABLE checkout_orders #1341f492
  columns: checkout_id bigint, ordered_on date, event_id bigint
  key: (checkout_id)
  references: (checkout_id) of checkouts, (event_id) of audit_events
  triggers: append_only
TABLE checkout_endings #33dc96de
  columns: checkout_id bigint, why text, detail text null, ended_at timestamptz
  key: (checkout_id)
  references: (checkout_id) of checkouts
  checks: checkout_ending_known
  triggers: append_only
VIEW ordered_payments #ca522917
  columns: document_id, amount, ordered_on, reference
FUNCTION refuse_other_checkout() trigger #aa83ae22
TABLE link_checks #f624ea0a
  columns: document_id bigint, asked integer default
  key: (document_id)
  references: (document_id) of documents
FUNCTION request_link_checks(document_ids bigint[]) void #809ed541
VIEW payment_link_history #bd2b17d6
  columns: document_id, rank, at, action, facts
VIEW printed_links #9acf6060
  columns: document_id, url

-- 010_payments --------------------------------------------------------------------------------------------------------

FACT bank_files #eb6a68ab
  columns: bank_file_id bigint identity, sha256 text, name text, format text, bytes bigint, recorded_at timestamptz,
    event_id bigint
  key: (bank_file_id)
  unique: bank_file_once (sha256)
  references: (event_id) of audit_events
  checks: bank_file_sha256_form, bank_file_has_format
FACT bank_statements #8afe0ccc
  columns: bank_statement_id bigint identity, bank_file_id bigint, position integer, account text, currency text,
    reference text, opening numeric null, closing numeric null, closed_on date null, credits numeric, debits numeric,
    lines integer
  key: (bank_statement_id)
  unique: bank_statement_place_once (bank_file_id, position), bank_statement_of_account (bank_statement_id, account,
    currency)
  references: (bank_file_id) of bank_files
  checks: bank_statement_has_account, bank_statement_adds_up
FACT bank_lines #a9dabe04
  columns: bank_line_id bigint identity, account text, identity text, currency text, direction text, amount numeric,
    bank_booked_on date, value_on date null, bank_reference text null, references jsonb, text text,
    payer_name text null, payer_account text null, type text, is_reversal boolean, return_code text null, raw text
  key: (bank_line_id)
  unique: bank_line_once (identity, account), bank_line_of_account (bank_line_id, account, currency),
    bank_line_money (bank_line_id, currency, amount, direction)
  checks: bank_line_direction_known, bank_line_amount_positive, bank_line_minor_digits, bank_lines_text_kept,
    bank_lines_payer_name_kept, bank_lines_payer_account_kept, bank_lines_raw_kept
  indexes: bank_lines_by_amount (currency, amount, bank_booked_on), bank_lines_of_account (account, bank_booked_on)
  triggers: personal_texts_kept
FACT bank_statement_lines #f54d8740
  columns: bank_statement_id bigint, position integer, bank_line_id bigint, account text, currency text
  key: (bank_statement_id, position)
  unique: bank_statement_line_once (bank_statement_id, bank_line_id)
  references: bank_statement_line_of_its_account (bank_line_id, account, currency) of bank_lines,
    bank_statement_line_of_a_statement (bank_statement_id, account, currency) of bank_statements
  indexes: bank_statement_lines_of_line (bank_line_id)
FUNCTION equal_bank_lines(line_ids bigint[]) TABLE(bank_line_id bigint, equal_line_id bigint) #ecbfdf88
VIEW bank_feeds #08ab9ea9
  columns: account, reported_to, balances_stated, currencies
FACT payments #72b04be5
  columns: payment_id bigint identity, identity text, source text, partner_id text null, currency text, amount numeric,
    method text, account text, received_on date, entry_on date, reference text, payer_name text null,
    payer_account text null, recorded_at timestamptz, event_id bigint, opening_id bigint null, opening_number text null
  key: (payment_id)
  unique: payment_once (identity), payment_currency_stays (payment_id, currency), payment_money (payment_id, currency,
    amount)
  references: (partner_id) of partners, (event_id) of audit_events, payment_entered_at_the_cut_over (opening_id,
    entry_on) of openings
  checks: payment_source_known, payment_currency_form, payment_amount_positive, payment_method_known,
    payment_has_reference, payment_opening_number_form, payment_of_an_opening, payment_entry_not_before_receipt,
    payment_minor_digits, payment_amount_limit, payments_reference_kept, payments_payer_name_kept,
    payments_payer_account_kept
  indexes: payments_of_opening (opening_id), payments_by_amount (currency, amount), payments_by_entry brin (entry_on),
    payments_of_partner (partner_id), payments_of_payer (payer_account)
  triggers: entry_books_open, personal_texts_kept
FACT payment_sources #adeea87f
  columns: identity text, payment_id bigint, source text, reference text, bank_line_id bigint null,
    recorded_at timestamptz, event_id bigint
  key: (identity)
  unique: payment_source_of_a_line_once (bank_line_id)
  references: (payment_id) of payments, (bank_line_id) of bank_lines, (event_id) of audit_events
  checks: payment_source_kind_known, payment_source_bank_has_line, payment_sources_reference_kept
  indexes: payment_sources_of_payment (payment_id), payment_sources_by_reference (reference)
  triggers: personal_texts_kept
FACT payment_assignments #9a7d2d4f
  columns: payment_assignment_id bigint identity, payment_id bigint, from_partner_id text null, partner_id text,
    kind text, amount numeric, assigned_on date, entry_on date, recorded_at timestamptz, event_id bigint
  key: (payment_assignment_id)
  references: (payment_id) of payments, (from_partner_id) of partners, (partner_id) of partners,
    (event_id) of audit_events
  checks: assignment_kind_known, assignment_changes, assignment_amount_positive
  indexes: payment_assignments_of_payment (payment_id), payment_assignments_of_partner (partner_id)
  triggers: entry_books_open, payment_cash_of_its_payer
FACT forgotten_payer_accounts #9f295715
  columns: forgotten_payer_account_id bigint identity, payer_account text, recorded_at timestamptz, event_id bigint
  key: (forgotten_payer_account_id)
  references: (event_id) of audit_events
  checks: forgotten_account_not_empty, forgotten_payer_accounts_payer_account_kept
  triggers: personal_texts_kept
FACT payment_applications #ed23d7bb
  columns: payment_application_id bigint identity, payment_id bigint, document_id bigint, partner_id text,
    currency text, amount numeric, applied_on date, entry_on date, confidence numeric, evidence jsonb,
    recorded_at timestamptz, event_id bigint
  key: (payment_application_id)
  unique: payment_application_document (payment_application_id, document_id, currency)
  references: (event_id) of audit_events, payment_application_in_its_currency (payment_id, currency) of payments,
    payment_application_to_its_partner (document_id, partner_id, currency) of documents
  checks: payment_application_positive, payment_application_confidence_range, payment_application_says_why
  indexes: payment_applications_of_payment (payment_id), payment_applications_of_document (document_id),
    payment_applications_by_entry brin (entry_on), payment_applications_with_swapped_digits (payment_id),
    payment_applications_recorded (recorded_at)
  triggers: document_not_overpaid, entry_books_open, payment_cash_of_its_payer, payment_within_amount,
    personal_texts_kept
FUNCTION keep_texts_of_evidence() trigger #de846abf
FACT small_differences #6d326274
  columns: payment_application_id bigint, document_id bigint, currency text, amount numeric, entry_on date,
    recorded_at timestamptz, event_id bigint
  key: (payment_application_id)
  references: (event_id) of audit_events, small_difference_of_its_application (payment_application_id, document_id,
    currency) of payment_applications
  checks: small_difference_positive
  indexes: small_differences_of_document (document_id), small_differences_of_event (event_id)
  triggers: document_not_overpaid, entry_books_open
FACT payment_suggestions #a333206c
  columns: payment_suggestion_id bigint identity, payment_id bigint, document_id bigint null, same_as bigint null,
    amount numeric, confidence numeric, evidence jsonb, recorded_at timestamptz, event_id bigint
  key: (payment_suggestion_id)
  unique: payment_suggestion_once (payment_id, document_id, same_as)
  references: (payment_id) of payments, (document_id) of documents, (same_as) of payments, (event_id) of audit_events
  checks: payment_suggestion_positive, payment_suggestion_confidence_range, payment_suggestion_says_why,
    payment_suggestion_of_one_thing, payment_suggestion_not_itself
  triggers: personal_texts_kept
FACT payment_reversals #0d9df4ea
  columns: payment_reversal_id bigint identity, identity text, payment_id bigint, partner_id text null, currency text,
    amount numeric, kind text, code text null, reason text, bank_line_id bigint null, duplicate_of bigint null,
    booked_to text null, reversed_on date, entry_on date, recorded_at timestamptz, event_id bigint
  key: (payment_reversal_id)
  unique: payment_reversal_once (identity), payment_reversal_of_a_line_once (bank_line_id),
    payment_reversal_money (payment_reversal_id, currency, amount)
  references: (partner_id) of partners, (bank_line_id) of bank_lines, (duplicate_of) of payments,
    (event_id) of audit_events, payment_reversal_in_its_currency (payment_id, currency) of payments
  checks: payment_reversal_positive, payment_reversal_kind_known, payment_reversal_has_reason,
    payment_reversal_account_form, payment_reversal_account_not_ours, payment_reversal_names_the_other,
    payment_reversal_names_the_account, payment_reversal_not_of_itself
  indexes: payment_reversals_of_payment (payment_id)
  triggers: entry_books_open, payment_within_amount
FACT payment_reinstatements #32bf3f64
  columns: payment_reversal_id bigint, partner_id text null, reinstated_on date, entry_on date, recorded_at timestamptz,
    event_id bigint
  key: (payment_reversal_id)
  references: (payment_reversal_id) of payment_reversals, (partner_id) of partners, (event_id) of audit_events
  triggers: entry_books_open
FACT payment_unapplications #69cad609
  columns: payment_application_id bigint, payment_reversal_id bigint null, unapplied_on date, entry_on date,
    recorded_at timestamptz, event_id bigint
  key: (payment_application_id)
  references: (payment_application_id) of payment_applications, (payment_reversal_id) of payment_reversals,
    (event_id) of audit_events
  indexes: payment_unapplications_of_reversal (payment_reversal_id)
  triggers: entry_books_open, payment_cash_of_its_payer
FACT payouts #651828c2
  columns: payout_id bigint identity, bank_line_id bigint, account text, currency text, amount numeric, direction text,
    received_on date, entry_on date, recorded_at timestamptz, event_id bigint
  key: (payout_id)
  unique: payout_of_a_line_once (bank_line_id)
  references: (event_id) of audit_events, payout_is_its_line (bank_line_id, currency, amount, direction) of bank_lines
  checks: payout_comes_in
  triggers: entry_books_open
FACT payout_settlements #8a34fe79
  columns: payout_id bigint, gross numeric, fees numeric, entry_on date, evidence jsonb, recorded_at timestamptz,
    event_id bigint
  key: (payout_id)
  references: (payout_id) of payouts, (event_id) of audit_events
  checks: payout_fees_not_negative, payout_settlement_says_why
  triggers: entry_books_open
FACT payout_payments #de2c0a61
  columns: payment_id bigint, payout_id bigint, amount numeric
  key: (payment_id)
  references: (payment_id) of payments, (payout_id) of payout_settlements
  checks: payout_payment_positive
  indexes: payout_payments_of_payout (payout_id)
FACT bank_line_outcomes #7b42b0af
  columns: bank_line_id bigint, outcome text, payment_id bigint null, payout_id bigint null,
    payment_reversal_id bigint null, needs_review boolean, reason text, recorded_at timestamptz, event_id bigint
  key: (bank_line_id)
  references: (bank_line_id) of bank_lines, (payment_id) of payments, (payout_id) of payouts,
    (payment_reversal_id) of payment_reversals, (event_id) of audit_events
  checks: bank_line_outcome_known, bank_line_outcome_has_reason, bank_line_outcome_names_its_fact,
    bank_line_outcomes_reason_kept
  indexes: bank_line_outcomes_of_payment (payment_id), bank_line_outcomes_to_review (bank_line_id)
  triggers: personal_texts_kept
FACT credit_refunds #e233cfd8
  columns: credit_refund_id bigint identity, document_id bigint, partner_id text, currency text, amount numeric,
    method text, account text, reference text, refunded_on date, entry_on date, recorded_at timestamptz, event_id bigint
  key: (credit_refund_id)
  unique: credit_refund_money (credit_refund_id, currency, amount)
  references: (event_id) of audit_events, credit_refund_of_a_document (document_id, partner_id, currency) of documents
  checks: credit_refund_positive, credit_refund_method_known, credit_refunds_reference_kept
  indexes: credit_refunds_of_document (document_id), credit_refunds_recorded (recorded_at)
  triggers: document_not_overpaid, entry_books_open, held_credit_not_used, personal_texts_kept
FACT credit_refund_returns #b03b8157
  columns: credit_refund_id bigint, reason text, returned_on date, entry_on date, recorded_at timestamptz,
    event_id bigint
  key: (credit_refund_id)
  references: (credit_refund_id) of credit_refunds, (event_id) of audit_events
  checks: credit_refund_return_has_reason
  triggers: entry_books_open
FACT refund_matches #cb58990a
  columns: refund_match_id bigint identity, bank_line_id bigint, account text, currency text, amount numeric,
    direction text, credit_refund_id bigint null, payment_reversal_id bigint null, paid_on date, entry_on date,
    evidence jsonb, recorded_at timestamptz, event_id bigint
  key: (refund_match_id)
  unique: refund_match_of_credit_once (credit_refund_id), refund_match_of_payment_once (payment_reversal_id)
  references: (event_id) of audit_events, refund_match_is_its_line (bank_line_id, currency, amount,
    direction) of bank_lines, refund_match_of_its_account (bank_line_id, account, currency) of bank_lines,
    refund_match_is_its_credit (credit_refund_id, currency, amount) of credit_refunds,
    refund_match_is_its_reversal (payment_reversal_id, currency, amount) of payment_reversals
  checks: refund_match_goes_out, refund_match_says_why, refund_match_of_one_refund
  indexes: refund_matches_of_line (bank_line_id)
  triggers: entry_books_open, personal_texts_kept, refund_match_of_line_once
FUNCTION payload_hash(payload jsonb) text #e6bb5181
TABLE processor_events #42d42d6b
  columns: processor_event_id bigint identity, account text, id text, type text, livemode boolean, created timestamptz,
    payload jsonb null, payload_sha256 text, received_at timestamptz
  key: (processor_event_id)
  unique: processor_event_once (account, id)
  checks: processor_event_payload_is_hashed
  triggers: append_only, kept_rows
FUNCTION processor_event_sha256(processor_event_id bigint) text #bde78047
FACT processor_event_outcomes #f243f5f1
  columns: processor_event_id bigint, outcome text, payment_id bigint null, reason text, recorded_at timestamptz,
    event_id bigint
  key: (processor_event_id)
  references: (processor_event_id) of processor_events, (payment_id) of payments, (event_id) of audit_events
  checks: processor_event_outcome_known, processor_event_outcome_has_reason, processor_event_outcomes_reason_kept
  triggers: personal_texts_kept
FACT disputes #657c65ee
  columns: dispute_id bigint identity, identity text, payment_id bigint, amount numeric, reason text, opened_on date,
    recorded_at timestamptz, event_id bigint
  key: (dispute_id)
  unique: dispute_once (identity)
  references: (payment_id) of payments, (event_id) of audit_events
  checks: dispute_amount_positive
  indexes: disputes_of_payment (payment_id)
FACT dispute_outcomes #a89ba102
  columns: dispute_id bigint, outcome text, decided_on date, recorded_at timestamptz, event_id bigint
  key: (dispute_id, outcome)
  references: (dispute_id) of disputes, (event_id) of audit_events
  checks: dispute_outcome_known
VIEW last_dispute_outcomes #0af9c9e9
  columns: dispute_id, outcome, decided_on
FACT payment_exception_closings #97273c29
  columns: payment_exception_closing_id bigint identity, processor_event_id bigint null, bank_line_id bigint null,
    bank_statement_id bigint null, payment_id bigint null, reason text, recorded_at timestamptz, event_id bigint
  key: (payment_exception_closing_id)
  unique: payment_exception_event_closed_once (processor_event_id), payment_exception_line_closed_once (bank_line_id),
    payment_exception_statement_closed_once (bank_statement_id), payment_exception_payment_closed_once (payment_id)
  references: (processor_event_id) of processor_event_outcomes, (bank_line_id) of bank_line_outcomes,
    (bank_statement_id) of bank_statements, (payment_id) of payments, (event_id) of audit_events
  checks: payment_exception_closing_has_reason, payment_exception_closing_of_one_thing
FACT processor_event_erasures #cd567da3
  columns: processor_event_id bigint, recorded_at timestamptz, event_id bigint
  key: (processor_event_id)
  references: (processor_event_id) of processor_event_outcomes, (event_id) of audit_events
  triggers: erased_payload_is_not_needed, payloads_are_erased
FUNCTION is_erasure(before processor_events, after processor_events) boolean #828be977
FUNCTION erase_payloads(processor_event_ids bigint[]) void security definer #80a1df48
FUNCTION erase_recorded_payloads() trigger #449a3934
VIEW live_payment_applications #b31daa21
  columns: payment_application_id, payment_id, document_id, partner_id, currency, amount, applied_on, entry_on,
    confidence, evidence, recorded_at, event_id, log_no
VIEW live_small_differences #4601487a
  columns: payment_application_id, document_id, currency, amount, entry_on, recorded_at, event_id, log_no
VIEW document_bank_charges #03d47c78
  columns: document_id, bank_charges
VIEW live_payment_reversals #44e0f844
  columns: payment_reversal_id, identity, payment_id, partner_id, currency, amount, kind, code, reason, bank_line_id,
    duplicate_of, booked_to, reversed_on, entry_on, recorded_at, event_id, log_no
VIEW live_credit_refunds #6a49fd0f
  columns: credit_refund_id, document_id, partner_id, currency, amount, method, account, reference, refunded_on,
    entry_on, recorded_at, event_id, log_no
VIEW live_refund_matches #68cd512e
  columns: refund_match_id, bank_line_id, account, currency, amount, direction, credit_refund_id, payment_reversal_id,
    paid_on, entry_on, evidence, recorded_at, event_id, log_no
FUNCTION refuse_line_of_two_refunds() trigger #6a214138
VIEW payment_balances #ea4e04cf
  columns: payment_id, partner_id, currency, amount, applied, reversed, unapplied, status, stays
TABLE book_open_documents #7e9e68f5
  columns: month billing_month, document_id bigint, balance numeric
  key: (month, document_id)
  references: book_open_document_of_closed_books (month) of book_closes, (document_id) of documents
  checks: book_open_document_not_zero
  triggers: append_only, entry_books_open
TABLE book_unapplied_cash #4df07fa6
  columns: month billing_month, payment_id bigint, partner_id text null, amount numeric
  unique: book_unapplied_cash_once (month, payment_id, partner_id)
  references: book_unapplied_cash_of_closed_books (month) of book_closes, (payment_id) of payments,
    (partner_id) of partners
  checks: book_unapplied_cash_not_zero
  triggers: append_only, entry_books_open
FUNCTION refuse_open_item_of_closed_books() trigger #a818e97e
FUNCTION books_by(as_of date) text #7ad5f0c8
FUNCTION unapplied_cash(as_of date) TABLE(payment_id bigint, partner_id text, amount numeric) #8399993f
VIEW unapplied_payments #68de9aa4
  columns: payment_id
FUNCTION payload_may_go(processor_event_id bigint) boolean #71f836ce
FUNCTION refuse_erasure() trigger #8b75c849
VIEW payment_cash #c8c00830
  columns: payment_id, partner_id, amount
VIEW payer_accounts #a4e1568a
  columns: payer_account, partner_id, payer_name, by_finance, payments, last_received_on
VIEW balance_changes #46ba4a25
  columns: document_id, document, changes, fact, id, amount, entry_on, dated_on, recorded, undone, undone_by, undone_on,
    undone_dated_on, undone_recorded, undone_at, debit, credit, bank_account, returned_to, payment_id, credit_note_id,
    reference
VIEW document_balances #85b0ef94
  columns: document_id, amount_due, credited, amount_paid, balance, status
FUNCTION open_items(as_of date) TABLE(document_id bigint, balance numeric) #1f21ee19
VIEW open_documents #7395c067
  columns: document_id
VIEW applicable_credit #1f89c1ae
  columns: document_id, number, purpose, partner_id, currency, balance
VIEW payment_history #f9c3b22b
  columns: document_id, at, action, facts, event_id
FUNCTION document_reopened_on(bigint) date #862ef566
FUNCTION payment_reopened_on(payment bigint) date #ee6c1d04
FUNCTION refuse_opening_that_does_not_add_up() trigger #45bd6894
VIEW opening_sums #cb30db6b
  columns: opening_id, currency, items, invoices, credits, cash
VIEW opening_differences #a525e164
  columns: opening_id, currency, items, items_found, invoices, invoices_found, credits, credits_found, cash, cash_found
VIEW bank_statement_breaks #5941c6ba
  columns: bank_statement_id, account, currency, first_on, opening, expected, expected_on, days_of_overlap, gap_from,
    file, expected_file
VIEW suggested_duplicates #c3b5339d
  columns: payment_id, received_on, of
VIEW possible_duplicates #fa0094fb
  columns: payment_id, received_on, of
VIEW payment_exceptions #1b5d0a6f
  columns: kind, exception, partner_id, currency, amount, since, reason
FUNCTION refuse_overdrawn_payment() trigger #308abbec
FUNCTION refuse_cash_of_another_partner() trigger #d958370f
FUNCTION refuse_overpaid_document() trigger #bac2b88a
FUNCTION refuse_use_of_held_credit() trigger #1491ac30
FACT reminders #240572af
  columns: document_id bigint, dunning_level integer, email_id bigint, partner_id text, currency text, counted_from date
  key: (document_id, dunning_level, counted_from)
  references: (email_id) of emails, reminder_of_its_partners_document (document_id, partner_id, currency) of documents
  indexes: reminders_of_email (email_id)
FACT reminder_pauses #d687ef7d
  columns: reminder_pause_id bigint identity, partner_id text, until date null, reason text, recorded_on date,
    recorded_at timestamptz, event_id bigint
  key: (reminder_pause_id)
  references: (partner_id) of partners, (event_id) of audit_events
  checks: reminder_pause_has_reason, reminder_pause_ahead
  indexes: reminder_pauses_of_partner (partner_id, reminder_pause_id)
VIEW present_reminder_pauses #ea0804d4
  columns: partner_id, until, reason, recorded_on

-- 011_splits ----------------------------------------------------------------------------------------------------------

FACT settlement_files #f2413543
  columns: settlement_file_id bigint identity, partner_id text, sha256 text, name text, lines bigint,
    recorded_at timestamptz, event_id bigint
  key: (settlement_file_id)
  unique: settlement_file_once (partner_id, sha256), settlement_file_of_partner (settlement_file_id, partner_id)
  references: (partner_id) of partners, (event_id) of audit_events
  checks: settlement_file_sha256_form
FACT settlement_lines #7726c441
  columns: settlement_line_id bigint identity, settlement_file_id bigint, line bigint, partner_id text, quote_id text,
    requote_id text null, reversal_id text null, transfer text null, payment text null, kind text, currency text,
    amount numeric, refunded numeric null, occurred_at timestamptz null
  key: (settlement_line_id)
  unique: settlement_line_once (partner_id, payment, transfer, quote_id, requote_id)
  references: settlement_line_of_its_file (settlement_file_id, partner_id) of settlement_files
  checks: settlement_line_kind_known, settlement_line_refund_not_negative, settlement_line_names_transfer_or_payment,
    settlement_line_sign, settlement_line_minor_digits
  indexes: settlement_lines_by_payment (payment, partner_id), settlement_lines_by_transfer (transfer, partner_id)
FUNCTION is_same_settlement(one settlement_lines, other settlement_lines) boolean #c31cfeed
FUNCTION settlement_lines_beside(line settlement_lines) SETOF settlement_lines #27b9b233
FUNCTION repeated_settlement_line(settlement_line_id bigint) bigint #db4f1b75
FACT balance_transactions #51708b1b
  columns: balance_transaction_id bigint identity, account text, id text, reported_by text, type text, kind text,
    currency text, amount numeric, fee numeric, net numeric, source_currency text null, source_amount numeric null,
    exchange_rate numeric null, share_currency text generated, share_amount numeric generated, occurred_at timestamptz,
    payment text null, of_payment text null, transfer text null, quote_id text null, requote_id text null,
    enrollment_id text null, payload jsonb, recorded_at timestamptz, event_id bigint
  key: (balance_transaction_id)
  unique: balance_transaction_once (account, id), balance_transaction_in_its_currency (balance_transaction_id,
    currency), balance_transaction_of_its_account (balance_transaction_id, account, currency)
  references: (event_id) of audit_events
  checks: balance_transaction_reported_by_known, balance_transaction_kind_known, balance_transaction_adds_up,
    balance_transaction_conversion_whole, balance_transaction_converted_from_another,
    balance_transaction_converted_to_the_same_side, balance_transaction_source_minor_digits,
    balance_transaction_minor_digits
  indexes: balance_transactions_by_payment (payment, account), balance_transactions_by_time (account, occurred_at),
    balance_transactions_of_quote (quote_id), balance_transactions_of_one_payment (account, COALESCE(of_payment,
    payment, id)), payouts_at_the_processor (account, occurred_at)
  triggers: balance_transactions_kept
FUNCTION account_source(account text, month text) text #d38a9371
VIEW account_sources #d9a7dd29
  columns: account, month, source
VIEW account_partners #2a2f1649
  columns: account, partner_id
VIEW routed_quotes #d0717b7f
  columns: partner_id, posted_month, entry_id, quote_id, currency, own_id
FACT processor_readings #feaa2e08
  columns: processor_reading_id bigint identity, account text, read_from timestamptz null, read_to timestamptz,
    file text null, balance_transactions bigint, new_balance_transactions bigint, recorded_at timestamptz,
    event_id bigint
  key: (processor_reading_id)
  references: (event_id) of audit_events
  checks: reading_goes_forward, reading_new_are_read
  indexes: processor_readings_of_account (account, read_to)
FACT share_allocations #abbc82aa
  columns: share_allocation_id bigint identity, balance_transaction_id bigint, partner_id text, posted_month text,
    entry_id bigint, quote_id text, requote_id text null, currency text, amount numeric, settled_currency text,
    settled_amount numeric, other_account boolean default, matched_by text, settlement_line_id bigint null,
    reason text default, occurred_on date, entry_on date, recorded_at timestamptz, event_id bigint
  key: (share_allocation_id)
  unique: share_allocation_currency_stays (share_allocation_id, currency)
  references: (settlement_line_id) of settlement_lines, (event_id) of audit_events,
    share_allocation_of_a_balance_transaction (balance_transaction_id, settled_currency) of balance_transactions,
    share_allocation_of_a_quote (partner_id, posted_month, entry_id) of ledger_rows
  checks: share_allocation_of_something, share_allocation_matched_by_known, share_allocation_settlement_named,
    share_allocation_by_finance_has_reason, share_allocation_unconverted_is_equal,
    share_allocation_settles_to_the_same_side, share_allocation_other_account_by_finance,
    share_allocation_entry_not_before, share_allocation_minor_digits
  indexes: share_allocation_once unique (balance_transaction_id, quote_id, requote_id) NULLS NOT DISTINCT,
    share_allocations_of_quote (partner_id, quote_id), share_allocations_by_entry brin (entry_on),
    share_allocations_by_month brin (posted_month), share_allocations_of_balance_transaction (balance_transaction_id),
    share_allocations_of_event (event_id)
  triggers: entry_books_open, share_allocations_kept
TABLE unallocated_balance_transactions #57ef7fe4
  columns: balance_transaction_id bigint, closed boolean default
  key: (balance_transaction_id)
  references: (balance_transaction_id) of balance_transactions
TABLE account_months #f4374164
  columns: account text, currency text, month billing_month, amount numeric
  key: (account, currency, month)
FUNCTION keep_balance_transactions() trigger #fd749d4d
VIEW unattributed_balance_transactions #277fecd3
  columns: balance_transaction_id, account, id, reported_by, type, kind, currency, amount, fee, net, source_currency,
    source_amount, exchange_rate, share_currency, share_amount, occurred_at, payment, of_payment, transfer, quote_id,
    requote_id, enrollment_id, payload, recorded_at, event_id, log_no, closed
FACT balance_transaction_closings #0ff4c37e
  columns: balance_transaction_closing_id bigint identity, balance_transaction_id bigint, currency text, amount numeric,
    reason text, recorded_at timestamptz, event_id bigint
  key: (balance_transaction_closing_id)
  unique: balance_transaction_closed_once (balance_transaction_id, amount)
  references: (event_id) of audit_events, balance_transaction_closing_in_its_currency (balance_transaction_id,
    currency) of balance_transactions
  checks: balance_transaction_closing_of_something, balance_transaction_closing_has_reason
  triggers: balance_transaction_closings_kept
FUNCTION keep_unallocated() trigger #c10bf7f8
VIEW unexplained_balance_transactions #14e3b60a
  columns: balance_transaction_id, account, id, reported_by, type, kind, currency, amount, fee, net, source_currency,
    source_amount, exchange_rate, share_currency, share_amount, occurred_at, payment, of_payment, transfer, quote_id,
    requote_id, enrollment_id, payload, recorded_at, event_id, log_no, closed, unexplained, rest_currency, rest_amount,
    ended
FUNCTION shares_taken_back(of_partner text, of_quote text) numeric #c09a2a2d
FACT reversal_evidence #4302de65
  columns: share_allocation_id bigint, partner_id text, posted_month text, entry_id bigint, price_from text,
    recorded_at timestamptz, event_id bigint
  key: (share_allocation_id)
  unique: reversal_evidence_once (partner_id, posted_month, entry_id)
  references: (share_allocation_id) of share_allocations, (event_id) of audit_events,
    reversal_evidence_of_a_row (partner_id, posted_month, entry_id) of ledger_rows
  checks: reversal_price_from_known
FACT missing_shares #88da7317
  columns: document_id bigint, partner_id text, month billing_month, currency text, arrangement text, quote_id text,
    amount numeric
  key: (document_id, quote_id)
  references: missing_share_on_its_partners_invoice (document_id, partner_id, month, currency, arrangement) of documents
  checks: missing_share_was_to_be_routed, missing_share_positive
  indexes: missing_shares_of_quote (partner_id, quote_id)
VIEW live_missing_shares #0e748867
  columns: document_id, partner_id, month, currency, arrangement, quote_id, amount, log_no
FACT share_payments #ff7def2b
  columns: share_allocation_id bigint, payment_id bigint, payment_reversal_id bigint null, currency text,
    amount numeric, recorded_at timestamptz, event_id bigint
  key: (share_allocation_id, payment_id)
  references: (payment_reversal_id) of payment_reversals, (event_id) of audit_events,
    share_payment_of_a_share (share_allocation_id, currency) of share_allocations,
    share_payment_in_its_currency (payment_id, currency) of payments
  checks: share_payment_of_something, share_payment_below_zero_takes_back
  indexes: share_payments_of_payment (payment_id)
FACT payout_contents #59a16a29
  columns: balance_transaction_id bigint, payout_transaction_id bigint, account text, currency text,
    recorded_at timestamptz, event_id bigint
  key: (balance_transaction_id)
  references: (event_id) of audit_events, payout_content_of_its_account (balance_transaction_id, account,
    currency) of balance_transactions, payout_content_of_a_payout (payout_transaction_id, account,
    currency) of balance_transactions
  checks: payout_content_not_itself
  indexes: payout_contents_of_payout (payout_transaction_id)
FACT account_payouts #7afeb6df
  columns: payout_id bigint, account text, currency text, balance_transaction_id bigint null, recorded_at timestamptz,
    event_id bigint
  key: (payout_id)
  unique: account_payout_arrives_once (balance_transaction_id)
  references: (payout_id) of payout_settlements, (event_id) of audit_events,
    account_payout_of_its_account (balance_transaction_id, account, currency) of balance_transactions
VIEW expected_account_payouts #a4725ae4
  columns: balance_transaction_id, account, payout, currency, amount, occurred_at, is_manual, fees, has_unknown
VIEW arrived_account_payouts #c2392d57
  columns: payout_id, account, payout
FUNCTION record_account_payouts(payouts json, at timestamp with time zone, event bigint) void #38515aed
VIEW billed_rows #af9c1950
  columns: document_id, number, billed_month, kind, partner_id, quote_id, requote_id, reversal_id, enrollment_id,
    policy_id, currency, accepted_at, spot_price, partner_cut, invoice_amount, order_reference, cover_from, cover_to,
    entry_id, recorded_at
FUNCTION csv_cell(value text) text #a1bdb2cc

-- 012_journal ---------------------------------------------------------------------------------------------------------

VIEW document_amounts #16c032c2
  columns: document_id, log_no, entry_on, issued_on, partner_id, currency, number, account, billed, billed_detail,
    amount
VIEW journal_entries #c19e8995
  columns: fact, log_no, entry_on, dated_on, debit, debit_detail, debit_partner, credit, credit_detail, credit_partner,
    currency, amount, document, reference, recorded
VIEW dated_facts #153c6fc9
  columns: fact, id, log_no, dated_on, entry_on
VIEW journal_of_facts #bc944670
  columns: month, entry_on, dated_on, fact, log_no, control, account, partner_id, policy_id, currency, amount, document,
    reference
FUNCTION row_postings(text, text, text, numeric, numeric, numeric) TABLE(control text, detail text,
  amount numeric) #6569e8a6
VIEW journal_of_rows #d69def94
  columns: month, entry_on, dated_on, fact, log_no, control, account, partner_id, policy_id, currency, amount, document,
    reference
VIEW journal #d125ccf8
  columns: month, entry_on, dated_on, fact, log_no, control, account, partner_id, policy_id, currency, amount, document,
    reference
VIEW journal_months #ab81498a
  columns: month, control, account, partner_id, currency, amount
VIEW journal_of_row_months #9d9858b1
  columns: month, control, account, currency, amount
TABLE audit_tasks #dc59aeab
  columns: task_id bigint identity, kind text, input jsonb, asked_by bigint null, asked_at timestamptz,
    finished_at timestamptz null, host text, seen_at timestamptz default, progress bigint default, result jsonb null,
    problem text null
  key: (task_id)
  references: (asked_by) of users
  checks: audit_task_kind_known
  indexes: audit_task_one_at_once unique (kind), audit_tasks_latest (kind, task_id DESC)

-- 013_partner_events --------------------------------------------------------------------------------------------------

FUNCTION row_event_type(kind text) text #9c2e6ae3
VIEW partner_event_facts #d4eef284
  columns: log_no, partner_id, type, recorded_at, data
TABLE partner_events #5c754223
  columns: partner_id text, position bigint, type text, posted_month text null, entry_id bigint null, log_no bigint null
  key: (partner_id, position)
  unique: partner_event_of_row_once (entry_id), partner_event_of_fact_once (log_no)
  checks: partner_event_position_positive, partner_event_of_one_thing
  triggers: append_only
TABLE published_marks #8813e60c
  columns: only_one boolean default, log_no bigint
  key: (only_one)
  checks: published_marks_only_one
TABLE webhooks #3a52c50e
  columns: partner_id text, url text null, secret_version integer, key_check text, previous_until timestamptz null,
    acknowledged bigint, attempted_at timestamptz null, failures integer default, failing_since timestamptz null,
    last_failure text null, next_attempt_at timestamptz null, paused_at timestamptz null
  key: (partner_id)
  references: (partner_id) of partners
  checks: webhook_secret_version_positive, webhook_acknowledged_not_negative, webhook_failing_says_why,
    webhook_paused_after_failures

-- 014_approvals -------------------------------------------------------------------------------------------------------

FUNCTION approval_digest(action text, input jsonb, subject text, partner_ids text[], preview jsonb,
  expires_at timestamp with time zone) text #7950d1af
FACT approval_requests #20554b89
  columns: request_id bigint identity, action text, input jsonb, subject text, partner_ids text[] null, preview jsonb,
    preview_hash text, requested_by bigint, reason text null, requested_at timestamptz, expires_at timestamptz,
    event_id bigint
  key: (request_id)
  unique: approval_request_of_its_user (request_id, requested_by)
  references: (requested_by) of users, (event_id) of audit_events
  checks: approval_request_action_form, approval_request_names_partners, approval_request_hash_form,
    approval_request_expires_later
FACT approval_decisions #094df266
  columns: request_id bigint, requested_by bigint, decision text, decided_by bigint, reason text null,
    recorded_at timestamptz, event_id bigint
  key: (request_id)
  references: (decided_by) of users, (event_id) of audit_events, approval_decision_of_its_request (request_id,
    requested_by) of approval_requests
  checks: approval_decision_known, approval_by_a_second_person, approval_rejection_has_reason
  triggers: approval_by_an_approver
FUNCTION may_approve(approver bigint, partner_ids text[]) boolean #21bb860f
FUNCTION approvers_before(fact bigint) TABLE(user_id bigint, partner_id text) #ab385852
FUNCTION refuse_wrong_approver() trigger #44d80c9f

-- 015_general_ledger --------------------------------------------------------------------------------------------------

FACT gl_exports #6dbeddd9
  columns: gl_export_id bigint identity, month billing_month, format text, part integer, previous integer null,
    kind text, checkpoint text, books_closed boolean, accounts jsonb, writer integer, recorded_at timestamptz,
    event_id bigint
  key: (gl_export_id)
  unique: gl_export_parts_differ (month, format, part)
  references: gl_export_after_billing (month) of closed_months, (event_id) of audit_events,
    gl_export_part_before (month, format, previous) of gl_exports
  checks: gl_export_format_known, gl_export_part_in_range, gl_export_kind_known, gl_export_checkpoint_form,
    gl_export_follows, gl_export_first_is_the_journal
FACT gl_export_lines #b0601ea2
  columns: gl_export_id bigint, line integer, control text, account text, partner_id text null, policy_id text null,
    currency text, amount numeric, to_account text, class text, location text, name text, memo text
  key: (gl_export_id, line)
  references: (gl_export_id) of gl_exports
  checks: gl_export_line_positive, gl_export_line_not_zero, gl_export_line_names_an_account
FACT gl_export_files #03de5641
  columns: gl_export_id bigint, position integer, name text, sha256 text, content bytea
  key: (gl_export_id, position)
  unique: gl_export_file_names_differ (gl_export_id, name)
  references: (gl_export_id) of gl_exports
  checks: gl_export_file_position, gl_export_file_name_form, gl_export_file_is_its_hash
VIEW gl_export_states #f402d60f
  columns: month, format, state
VIEW gl_unexported_months #91ad7609
  columns: month
*/

GRANT DELETE, INSERT, SELECT ON job_runs, doubled_rows, quotes, requotes, idempotency_keys TO reckoner_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON job_attention, sign_in_links, sign_in_challenges, sessions, failed_exchanges,
  request_counts, partner_sign_in_links, partner_sessions, running_lines, partner_edges, payment_link_waits,
  link_checks, unallocated_balance_transactions, audit_tasks TO reckoner_app;
GRANT INSERT, SELECT ON installation, security_events, personal_texts, audit_events, erasures, users, user_ends,
  user_roles, user_identities, passkeys, passkey_ends, pauses, resumptions, cancellation_terms, api_clients,
  client_secrets, client_revocations, signing_keys, closed_months, book_closes, book_balances, ledger_rows,
  ledger_receipts, feed_decisions, feed_statements, feed_statement_totals, held_rows, held_row_decisions,
  reversal_grounds, quote_acceptances, requote_acceptances, month_totals, month_partners, month_zones, log_keys,
  log_continues, log_checkpoints, log_signatures, log_stamps, logos, issuer_versions, openings, opening_totals,
  documents, skipped_numbers, document_taxes, document_lines, voids, credit_applications, credit_releases, write_offs,
  write_off_reversals, holds, hold_releases, invoice_disputes, invoice_dispute_closings, instruction_versions,
  document_pdfs, document_e_invoices, email_attempts, email_bounces, payment_links, payment_link_changes,
  payment_link_intents, payment_link_attempts, payment_link_objects, payment_link_closings, payment_link_orders,
  payment_link_outcomes, checkouts, checkout_invoices, checkout_sessions, checkout_orders, checkout_endings, bank_files,
  bank_statements, bank_lines, bank_statement_lines, payments, payment_sources, payment_assignments,
  forgotten_payer_accounts, payment_applications, small_differences, payment_suggestions, payment_reversals,
  payment_reinstatements, payment_unapplications, payouts, payout_settlements, payout_payments, bank_line_outcomes,
  credit_refunds, credit_refund_returns, refund_matches, processor_events, processor_event_outcomes, disputes,
  dispute_outcomes, payment_exception_closings, processor_event_erasures, book_open_documents, book_unapplied_cash,
  reminders, reminder_pauses, settlement_files, settlement_lines, balance_transactions, processor_readings,
  share_allocations, balance_transaction_closings, reversal_evidence, missing_shares, share_payments, payout_contents,
  account_payouts, partner_events, approval_requests, approval_decisions, gl_exports, gl_export_lines,
  gl_export_files TO reckoner_app;
GRANT INSERT, SELECT, UPDATE ON passkey_uses, partners, partner_arrangements, policies, client_uses, presentation,
  emails, account_months, published_marks, webhooks TO reckoner_app;
GRANT SELECT ON schema_records, active_users, present_roles, present_work_assignments, open_pauses, partner_payers,
  present_cancellation_terms, undecided_rows, live_documents, live_credit_applications, live_write_offs, current_holds,
  open_invoice_disputes, instructions_in_force, document_emails, latest_emails, latest_other_emails, unfinished_emails,
  document_email_history, current_links, ordered_payments, payment_link_history, printed_links, bank_feeds,
  last_dispute_outcomes, live_payment_applications, live_small_differences, document_bank_charges,
  live_payment_reversals, live_credit_refunds, live_refund_matches, payment_balances, unapplied_payments, payment_cash,
  payer_accounts, balance_changes, document_balances, open_documents, applicable_credit, payment_history, opening_sums,
  opening_differences, bank_statement_breaks, suggested_duplicates, possible_duplicates, payment_exceptions,
  present_reminder_pauses, account_sources, account_partners, routed_quotes, unattributed_balance_transactions,
  unexplained_balance_transactions, live_missing_shares, expected_account_payouts, arrived_account_payouts, billed_rows,
  document_amounts, journal_entries, dated_facts, journal_of_facts, journal_of_rows, journal, journal_months,
  journal_of_row_months, partner_event_facts, gl_export_states, gl_unexported_months TO reckoner_app;
GRANT SELECT, USAGE ON SEQUENCE audit_events_event_id_seq, log_numbers TO reckoner_app;
