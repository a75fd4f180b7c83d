/**
 * The facts of the ledger, and the form in which each fact is written to the log (docs/log-format.md). This is the only
 * declaration of the forms. The lines, their hashes, the log of a pack and the verifiers' parsers follow from it.
 *
 * After the first release, a form never changes: the second version of a kind is the new kind `name.2`.
 */

/**
 * Each paragraph declares one kind: its table, then the columns in the order in which they are written. `?` marks a
 * column that may be NULL. The type follows a colon, and a column without a type is a text. The currency of an amount
 * is in the line's column `currency`, or in the column named after `@`. A `personal` text is written as its commitment,
 * so that it can be erased.
 */
const FORMS = `
  ledger_rows kind partner_id quote_id requote_id? reversal_id? enrollment_id? policy_id currency accepted_at:time
    spot_price:amount partner_cut:amount invoice_amount:amount order_reference? cover_from?:day cover_to?:day
    posted_month recorded_at:time month time_zone arrangement event_id:int
  ledger_receipts event_id:int posted_month partner_id currency entries:int spot_price:amount partner_cut:amount
    invoice_amount:amount
  held_rows held_row_id:int kind partner_id quote_id requote_id? reversal_id? enrollment_id? policy_id currency
    accepted_at:time spot_price:amount partner_cut:amount invoice_amount:amount order_reference? cover_from?:day
    cover_to?:day sign repeats? recorded_at:time event_id:int
  held_row_decisions held_row_id:int decision reason recorded_at:time event_id:int
  cancellation_terms cancellation_terms_id:int partner_id policy_id from_day?:day window_days?:int after_window? cut?
    before_cover_only?:flag recorded_at:time event_id:int
  reversal_grounds partner_id reversal_id quote_id ground cancellation_terms_id?:int held_row_id?:int sold_on?:day
    judged_on?:day recorded_at:time event_id:int
  audit_events event_id:int occurred_at:time action subject details:map claimed_by?:personal os_user host via
    user_id?:int
  erasures commitment reason recorded_at:time event_id:int
  users user_id:int kind login:personal name:personal follows?:int recorded_at:time event_id:int
  user_ends user_id:int reason?:personal recorded_at:time event_id:int
  user_roles user_role_id:int user_id:int action role partner_id? source recorded_at:time event_id:int
  user_identities user_id:int issuer subject recorded_at:time event_id:int
  passkeys passkey_id:int user_id:int credential_id public_key:hex name:personal recorded_at:time event_id:int
  passkey_ends passkey_id:int recorded_at:time event_id:int
  approval_requests request_id:int action input:map subject partner_ids?:map preview_hash requested_by:int reason?
    requested_at:time expires_at:time event_id:int
  approval_decisions request_id:int requested_by:int decision decided_by:int reason? recorded_at:time event_id:int
  pauses pause_id:int cause reason state_of?:time paused_at:time event_id:int
  resumptions pause_id:int resumed_at:time event_id:int
  issuer_versions issuer_version_id:int content:map first_used_at:time
  openings opening_id:int cut_over_on:day sha256 name recorded_at:time event_id:int
  opening_totals opening_id:int currency items:int invoices:amount credits:amount cash:amount control:amount
  documents document_id:int number series sequence:int document purpose partner_id month currency arrangement
    issued_on:day due_on?:day terms_days?:int enrollments:int entries:int spot_price:amount partner_cut:amount
    invoice_amount:amount credit_applied:amount partner_name contact_name:personal address_line1 address_line2
    address_city address_region address_postal_code address_country tax_id purchase_order legal_note e_invoice
    buyer_reference electronic_address issuer_version_id:int sandbox:flag issued_at:time replaces?:int credits?:int
    invoice_lowered_by?:amount invoice_left?:amount reason reopened_on?:day entry_on:day opening_id?:int
    opening_number? opening_revision?:int opening_follows?:int original_amount?:amount
  skipped_numbers series first_sequence:int last_sequence:int pause_id:int recorded_at:time event_id:int
  document_lines document_id:int position:int policy_id policy_name kind month count:int currency
    spot_price:amount partner_cut:amount invoice_amount:amount
  document_taxes document_id:int position:int currency country registration name category rate:rate reduced:flag
    reason reason_code taxable:amount tax:amount line_positions:map
  credit_applications credit_application_id:int credit_note_id:int invoice_id:int currency amount:amount
    applied_on:day recorded_at:time at_issue:flag event_id:int reopened_on?:day entry_on:day
  voids document_id:int partner_id month currency arrangement reason voided_on:day recorded_at:time event_id:int
    reopened_on?:day entry_on:day
  credit_releases credit_application_id:int document_id?:int released_on:day recorded_at:time event_id:int
    reopened_on?:day entry_on:day
  write_offs write_off_id:int document_id:int currency amount:amount reason written_off_on:day recorded_at:time
    event_id:int reopened_on?:day entry_on:day
  write_off_reversals write_off_id:int reason reversed_on:day recorded_at:time event_id:int reopened_on?:day
    entry_on:day
  holds hold_id:int document_id:int follows?:int reason held_at:time event_id:int
  hold_releases hold_id:int document_id:int released_at:time event_id:int
  invoice_disputes invoice_dispute_id:int document_id:int follows?:int currency amount:amount reason owner:personal
    promised_on?:day disputed_on:day recorded_at:time event_id:int
  invoice_dispute_closings invoice_dispute_id:int document_id:int reason closed_on:day recorded_at:time event_id:int
  instruction_versions instruction_version_id:int currency content:map first_used_at:time
  document_pdfs document_id:int renderer_version:int libraries:map instruction_version_id?:int
    instructions_changed:flag sha256 rendered_at:time
  document_e_invoices document_id:int writer_version:int parties:map sha256 written_at:time
  book_closes month previous? facts_to:int closed_at:time event_id:int
  book_balances month control account currency amount:amount
  bank_files bank_file_id:int sha256 name format bytes:int recorded_at:time event_id:int
  bank_statements bank_statement_id:int bank_file_id:int position:int account currency reference opening?:amount
    closing?:amount closed_on?:day credits:amount debits:amount lines:int
  bank_lines bank_line_id:int account identity currency direction amount:amount bank_booked_on:day value_on?:day
    bank_reference? references:map text:personal payer_name?:personal payer_account?:personal type is_reversal:flag
    return_code? raw:personal
  bank_statement_lines bank_statement_id:int position:int bank_line_id:int account currency
  bank_line_outcomes bank_line_id:int outcome payment_id?:int payout_id?:int payment_reversal_id?:int
    needs_review:flag reason:personal recorded_at:time event_id:int
  payments payment_id:int identity source partner_id? currency amount:amount method account received_on:day
    entry_on:day reference:personal payer_name?:personal payer_account?:personal recorded_at:time event_id:int
    opening_id?:int opening_number?
  payment_sources identity payment_id:int source reference:personal bank_line_id?:int recorded_at:time event_id:int
  payment_assignments payment_assignment_id:int payment_id:int from_partner_id? partner_id kind currency
    amount:amount assigned_on:day entry_on:day recorded_at:time event_id:int
  forgotten_payer_accounts forgotten_payer_account_id:int payer_account:personal recorded_at:time event_id:int
  payment_applications payment_application_id:int payment_id:int document_id:int partner_id currency amount:amount
    applied_on:day entry_on:day confidence:number evidence:map recorded_at:time event_id:int
  payment_suggestions payment_suggestion_id:int payment_id:int document_id?:int same_as?:int currency
    amount:amount confidence:number evidence:map recorded_at:time event_id:int
  small_differences payment_application_id:int document_id:int currency amount:amount entry_on:day
    recorded_at:time event_id:int
  payment_reversals payment_reversal_id:int identity payment_id:int partner_id? currency amount:amount kind code?
    reason bank_line_id?:int duplicate_of?:int booked_to? reversed_on:day entry_on:day recorded_at:time event_id:int
  payment_reinstatements payment_reversal_id:int partner_id? reinstated_on:day entry_on:day recorded_at:time
    event_id:int
  payment_unapplications payment_application_id:int payment_reversal_id?:int unapplied_on:day entry_on:day
    recorded_at:time event_id:int
  payouts payout_id:int bank_line_id:int account currency amount:amount direction received_on:day entry_on:day
    recorded_at:time event_id:int
  payout_payments payment_id:int payout_id:int currency amount:amount
  payout_settlements payout_id:int currency gross:amount fees:amount entry_on:day evidence:map recorded_at:time
    event_id:int
  disputes dispute_id:int identity payment_id:int currency amount:amount reason opened_on:day recorded_at:time
    event_id:int
  dispute_outcomes dispute_id:int outcome decided_on:day recorded_at:time event_id:int
  credit_refunds credit_refund_id:int document_id:int partner_id currency amount:amount method account
    reference:personal refunded_on:day entry_on:day recorded_at:time event_id:int
  credit_refund_returns credit_refund_id:int reason returned_on:day entry_on:day recorded_at:time event_id:int
  refund_matches refund_match_id:int bank_line_id:int account currency amount:amount direction
    credit_refund_id?:int payment_reversal_id?:int paid_on:day entry_on:day evidence:map recorded_at:time
    event_id:int
  processor_event_outcomes processor_event_id:int outcome payment_id?:int reason:personal recorded_at:time
    event_id:int event_sha256?
  processor_event_erasures processor_event_id:int recorded_at:time event_id:int
  payment_exception_closings payment_exception_closing_id:int processor_event_id?:int bank_line_id?:int
    bank_statement_id?:int payment_id?:int reason recorded_at:time event_id:int
  settlement_files settlement_file_id:int partner_id sha256 name lines:int recorded_at:time event_id:int
  settlement_lines settlement_line_id:int settlement_file_id:int line:int partner_id quote_id requote_id?
    reversal_id? transfer? payment? kind currency amount:amount refunded?:amount occurred_at?:time
  balance_transactions balance_transaction_id:int account id reported_by type kind currency amount:amount
    fee:amount net:amount source_currency? source_amount?:amount@source_currency exchange_rate?:number
    occurred_at:time payment? of_payment? transfer? quote_id? requote_id? enrollment_id? recorded_at:time
    event_id:int payload_sha256
  processor_readings processor_reading_id:int account read_from?:time read_to:time file? balance_transactions:int
    new_balance_transactions:int recorded_at:time event_id:int
  share_allocations share_allocation_id:int balance_transaction_id:int partner_id posted_month entry_id:int
    quote_id requote_id? currency amount:amount settled_currency settled_amount:amount@settled_currency
    other_account:flag matched_by settlement_line_id?:int reason occurred_on:day entry_on:day recorded_at:time
    event_id:int
  balance_transaction_closings balance_transaction_closing_id:int balance_transaction_id:int currency
    amount:amount reason recorded_at:time event_id:int
  reversal_evidence share_allocation_id:int partner_id posted_month entry_id:int price_from recorded_at:time
    event_id:int
  share_payments share_allocation_id:int payment_id:int payment_reversal_id?:int currency amount:amount
    recorded_at:time event_id:int
  missing_shares document_id:int partner_id month currency arrangement quote_id amount:amount
  payout_contents balance_transaction_id:int payout_transaction_id:int account currency recorded_at:time
    event_id:int
  account_payouts payout_id:int account currency balance_transaction_id?:int recorded_at:time event_id:int
  api_clients client_id partner_id created_at:time event_id:int
  client_revocations client_id revoked_at:time event_id:int
  client_secrets client_id sequence:int issued_at:time expires_at?:time previous_sequence?:int
    previous_ends_at?:time event_id:int
  quote_acceptances quote_id partner_id client_id posted_month entry_id:int
  requote_acceptances quote_id step:int previous_step?:int requote_id partner_id client_id posted_month entry_id:int
  gl_exports gl_export_id:int month format part:int previous?:int kind checkpoint books_closed:flag accounts:map writer:int
    recorded_at:time event_id:int
  gl_export_lines gl_export_id:int line:int control account partner_id? policy_id? currency amount:amount
    to_account class location name memo
  gl_export_files gl_export_id:int position:int name sha256
  email_attempts email_id:int attempt:int started_at:time ended_at:time outcome reply:personal kind message_id
    recipients:map message_sha256 pdf_sha256?
  email_bounces email_bounce_id:int email_id:int recipient:personal status diagnostic:personal reporting_server
    report_sha256 recorded_at:time event_id:int
  reminders document_id:int dunning_level:int email_id:int partner_id currency counted_from:day
  feed_decisions feed_decision_id:int month partner_id kind evidence reason? recorded_at:time event_id:int
  feed_statements feed_statement_id:int partner_id month entries:int complete:flag recorded_at:time event_id:int
  feed_statement_totals feed_statement_id:int currency invoice_amount:amount
  closed_months month previous? issued_on:day closed_at:time entries:int late_entries:int partners_with_documents:int
    partners_without_activity:int
  month_totals month currency entries:int spot_price:amount partner_cut:amount invoice_amount:amount
  month_partners month partner_id currency arrangement entries:int spot_price:amount partner_cut:amount
    invoice_amount:amount last_accepted_at:time root
  month_zones time_zone month begins_at:time
  log_continues origin follows lost_size:int lost_root kept_size:int reason recorded_at:time event_id:int
  log_keys key_name public_key previous? signature? reason recorded_at:time event_id:int
`;

export interface LogColumn {
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
}

/** A kind of fact, named as its table. */
export interface LogForm {
  readonly kind: string;
  readonly columns: readonly LogColumn[];
}

const columnOf = (text: string): LogColumn => {
  const [name = '', type = 'text'] = text.split(':');
  return { name: name.replace(/\?$/, ''), type, nullable: name.endsWith('?') };
};

/** The forms of all facts; ledger rows come first. */
export const LOG_FORMS: readonly LogForm[] = FORMS.trim()
  .split(/\n(?! {4})/)
  .map((paragraph) => {
    const [kind = '', ...columns] = paragraph.trim().split(/\s+/);
    return { kind, columns: columns.map(columnOf) };
  });

/** The column that has the log number of a fact in its table. */
export const numberOf = (kind: string): string => (kind === 'ledger_rows' ? 'entry_id' : 'log_no');

/** The forms in the format for verifiers, one line for each form. */
export const formLines = (): string[] =>
  LOG_FORMS.map(({ kind, columns }) =>
    [
      '-- FORM',
      kind,
      ...columns.map(({ name, type, nullable }) => `${name}${nullable ? '?' : ''}${type === 'text' ? '' : `:${type}`}`),
    ].join(' '),
  );

const currencyOfDocument = (column: string) => `(SELECT d.currency FROM documents d WHERE d.document_id = f.${column})`;
const currencyOfPayment = `(SELECT p.currency FROM payments p WHERE p.payment_id = f.payment_id)`;

/** Columns of a form that its table does not have, each as SQL over the table `f`. */
export const COMPUTED: Readonly<Record<string, string>> = {
  'document_lines.currency': currencyOfDocument('document_id'),
  'document_taxes.line_positions': `(SELECT coalesce(jsonb_agg(l.position ORDER BY l.position), '[]')
    FROM document_lines l WHERE l.document_id = f.document_id AND l.tax = f.position)`,
  'credit_applications.currency': currencyOfDocument('credit_note_id'),
  'write_offs.currency': currencyOfDocument('document_id'),
  'invoice_disputes.currency': currencyOfDocument('document_id'),
  'payment_assignments.currency': currencyOfPayment,
  'payment_suggestions.currency': currencyOfPayment,
  'payout_payments.currency': currencyOfPayment,
  'payout_settlements.currency': `(SELECT p.currency FROM payouts p WHERE p.payout_id = f.payout_id)`,
  'disputes.currency': currencyOfPayment,
  'processor_event_outcomes.event_sha256': 'processor_event_sha256(f.processor_event_id)',
  'balance_transactions.payload_sha256': `encode(sha256(convert_to(f.payload::text, 'UTF8')), 'hex')`,
};

/** Columns of these tables that no form contains, each with the reason. */
export const NOT_WRITTEN: Readonly<Record<string, string>> = {
  'issuer_versions.logo_sha256': 'computed from the content',
  'approval_requests.preview': 'its hash is written',
  'documents.tax': 'the sum of its document_taxes, which are written',
  'documents.gross': 'computed from invoice_amount and tax',
  'document_lines.tax': 'document_taxes are written with the positions of their lines',
  'document_pdfs.pdf': 'its hash is written',
  'document_e_invoices.xml': 'its hash is written',
  'balance_transactions.share_currency': 'computed from written columns',
  'balance_transactions.share_amount': 'computed from written columns',
  'balance_transactions.payload':
    'raw data of the processor, which includes personal data; its hash and the values read from it are written',
  'client_secrets.secret_sha256': 'a hash of a secret, never exported',
  'gl_export_files.content': 'its hash is written',
};
