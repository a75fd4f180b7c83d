"""The columns that no rule guards, by class, each with the reason."""

CLASSES = {
    'texts that people wrote: no other fact repeats them': '''
        approval_requests.reason approval_decisions.reason erasures.reason credit_refund_returns.reason disputes.reason
        user_ends.reason log_keys.reason payment_exception_closings.reason resumptions.reason log_continues.reason
        share_allocations.reason documents.reason''',
    'personal data: only a random commitment is in the log': '''
        audit_events.claimed_by users.login users.name passkeys.name documents.contact_name invoice_disputes.owner bank_lines.text
        bank_lines.payer_name bank_lines.payer_account bank_lines.raw bank_line_outcomes.reason payments.payer_name
        payments.payer_account payment_sources.reference payments.reference credit_refunds.reference
        forgotten_payer_accounts.payer_account processor_event_outcomes.reason email_attempts.reply
        email_bounces.recipient email_bounces.diagnostic user_identities.subject''',
    'where an act came from: the program alone knew it': '''
        audit_events.os_user audit_events.host audit_events.via''',
    'names of files and hashes of contents that are not in the log': '''
        openings.name bank_files.name bank_files.bytes settlement_files.name settlement_files.sha256 gl_export_files.name
        gl_export_files.sha256 gl_export_files.position gl_exports.checkpoint gl_exports.writer document_pdfs.sha256
        document_pdfs.libraries document_pdfs.renderer_version document_pdfs.rendered_at document_e_invoices.sha256
        document_e_invoices.parties document_e_invoices.writer_version document_e_invoices.written_at
        processor_event_outcomes.event_sha256 balance_transactions.payload_sha256 email_attempts.message_sha256
        email_bounces.report_sha256 approval_requests.preview_hash approval_requests.input processor_readings.file''',
    'what a bank stated: compare it with the bank file, whose hash is in the log': '''
        bank_statements.reference bank_statements.closed_on bank_statements.opening bank_statements.closing
        bank_statements.position bank_lines.value_on bank_lines.bank_reference bank_lines.references bank_lines.type
        bank_lines.is_reversal bank_lines.return_code bank_lines.identity bank_statement_lines.position''',
    'what the processor stated: compare it with its report': '''
        balance_transactions.account balance_transactions.type balance_transactions.occurred_at balance_transactions.id
        balance_transactions.payment balance_transactions.of_payment balance_transactions.transfer
        balance_transactions.quote_id balance_transactions.requote_id balance_transactions.enrollment_id
        balance_transactions.exchange_rate payment_reversals.code settlement_lines.requote_id settlement_lines.reversal_id
        settlement_lines.payment settlement_lines.transfer settlement_lines.refunded settlement_lines.occurred_at
        settlement_lines.line processor_readings.read_from processor_readings.read_to processor_readings.recorded_at
        processor_readings.account share_allocations.other_account payout_settlements.evidence disputes.identity
        account_payouts.account''',
    'what the program proposed or how sure it was; no balance depends on it': '''
        payment_applications.confidence payment_applications.evidence payment_suggestions.confidence
        payment_suggestions.evidence payment_suggestions.document_id payment_suggestions.same_as
        payment_suggestions.amount refund_matches.evidence bank_line_outcomes.needs_review
        document_pdfs.instructions_changed''',
    'a doubt in the words that a person accepted: the log has the rows and statements that they count': '''
        feed_decisions.evidence''',
    "what a partner states of a sale beside its price: compare it with the partner's file": '''
        ledger_rows.order_reference ledger_rows.cover_from ledger_rows.cover_to''',
    'ids that no other fact names': '''
        passkeys.passkey_id payment_suggestions.payment_suggestion_id refund_matches.refund_match_id
        forgotten_payer_accounts.forgotten_payer_account_id email_bounces.email_bounce_id email_bounces.email_id
        processor_readings.processor_reading_id payment_exception_closings.payment_exception_closing_id holds.hold_id
        invoice_disputes.invoice_dispute_id balance_transaction_closings.balance_transaction_closing_id
        reminders.email_id ledger_rows.enrollment_id settlement_lines.settlement_line_id
        settlement_files.settlement_file_id''',
    'users and their sign-in, beyond what their events state': '''
        users.kind user_roles.source user_roles.partner_id passkeys.public_key passkeys.recorded_at passkey_ends.recorded_at
        user_identities.recorded_at client_secrets.expires_at client_secrets.previous_ends_at approval_requests.partner_ids''',
    'e-mails: the mail servers hold the other side': '''
        email_attempts.kind email_attempts.recipients email_attempts.started_at email_attempts.ended_at
        email_bounces.status email_bounces.reporting_server reminders.payer_id''',
    'how the general ledger is asked to book a line; its own program holds the other side': '''
        gl_exports.accounts gl_export_lines.partner_id gl_export_lines.policy_id gl_export_lines.class
        gl_export_lines.location gl_export_lines.name gl_export_lines.memo gl_export_lines.account
        gl_export_lines.to_account gl_export_lines.control''',
    'when a wording was first used: the documents that print it are later': '''
        issuer_versions.first_used_at instruction_versions.first_used_at''',
    'the name of the log: compare it with the origin of the checkpoints': '''
        log_keys.key_name''',
    'details of many events, listed in *details* above': '''
        audit_events.details''',
    'settings of tax that the log has only as a text': '''
        document_taxes.registration''',
    'until the books of the month are closed, only a bank file shows it': '''
        credit_refunds.account payout_settlements.entry_on''',
    'why a ledger was paused, and the time of the copy that was restored': '''
        pauses.cause pauses.state_of''',
}
CLASSES = {reason: set(columns.split()) for reason, columns in CLASSES.items()}
