/**
 * Money in: bank files with their lines, payments and where each was seen, what they pay, what was taken back, payouts
 * of the processor, credit paid out, and the inbox of the processor's events. All of it is append-only: an application
 * is undone by an unapplication, a reversal by a reinstatement.
 *
 * Each fact has its true date (`…_on`) and `entry_on`, the date of its journal entry: the true one, but never before the
 * earliest month that was open when it was recorded.
 */
import type { Knex } from 'knex';

// ISO 4217 minor digits other than 2, frozen as they stood when this migration was written.
const MINOR_DIGITS = `CASE
        WHEN currency IN ('BIF','CLP','DJF','GNF','ISK','JPY','KMF','KRW','PYG','RWF','UGX','UYI','VND','VUV','XAF','XOF','XPF') THEN 0
        WHEN currency IN ('BHD','IQD','JOD','KWD','LYD','OMR','TND') THEN 3
        WHEN currency IN ('CLF','UYW') THEN 4
        ELSE 2 END`;

/** What every fact says of its recording. */
const RECORDED = `recorded_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events`;

export async function up(knex: Knex): Promise<void> {
  await bankFiles(knex);
  await payments(knex);
  await applications(knex);
  await reversals(knex);
  await payoutsAndOutcomes(knex);
  await creditRefunds(knex);
  await processorEvents(knex);
  await balances(knex);
  await guards(knex);
}

async function bankFiles(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE bank_files (
      bank_file_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      sha256 text NOT NULL CONSTRAINT bank_file_once UNIQUE CONSTRAINT bank_file_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
      name text NOT NULL,
      format text NOT NULL CONSTRAINT bank_file_format_known CHECK (format IN ('csv', 'bai2', 'camt053')),
      bytes bigint NOT NULL,
      ${RECORDED}
    )`);
  await knex.raw(`CALL make_append_only('bank_files')`);

  await knex.raw(`
    CREATE TABLE bank_statements (
      bank_statement_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      bank_file_id bigint NOT NULL REFERENCES bank_files,
      position integer NOT NULL,
      account text COLLATE "C" NOT NULL CONSTRAINT bank_statement_has_account CHECK (account <> ''),
      currency text COLLATE "C" NOT NULL,
      reference text NOT NULL,
      -- As the file states them; NULL where it doesn't.
      opening numeric,
      closing numeric,
      credits numeric NOT NULL,
      debits numeric NOT NULL,
      lines integer NOT NULL,
      CONSTRAINT bank_statement_place_once UNIQUE (bank_file_id, position),
      CONSTRAINT bank_statement_of_account UNIQUE (bank_statement_id, account, currency),
      CONSTRAINT bank_statement_adds_up CHECK (opening + credits - debits = closing)
    )`);
  await knex.raw(`CALL make_append_only('bank_statements')`);

  // A line is there once, in however many files it stood.
  await knex.raw(`
    CREATE TABLE bank_lines (
      bank_line_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      account text COLLATE "C" NOT NULL,
      -- The bank's reference with day, direction and amount; see lineIdentities in src/payments/bank/statement.ts.
      identity text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      direction text NOT NULL CONSTRAINT bank_line_direction_known CHECK (direction IN ('credit', 'debit')),
      amount numeric NOT NULL CONSTRAINT bank_line_amount_positive CHECK (amount > 0),
      bank_booked_on date NOT NULL,
      value_on date,
      bank_reference text,
      "references" jsonb NOT NULL,
      text text NOT NULL,
      payer_name text,
      payer_account text,
      type text NOT NULL,
      is_reversal boolean NOT NULL,
      return_code text,
      raw text NOT NULL,
      CONSTRAINT bank_line_once UNIQUE (account, identity),
      CONSTRAINT bank_line_of_account UNIQUE (bank_line_id, account, currency),
      CONSTRAINT bank_line_money UNIQUE (bank_line_id, currency, amount, direction),
      CONSTRAINT bank_line_minor_digits CHECK (scale(amount) <= ${MINOR_DIGITS})
    )`);
  await knex.raw(`CALL make_append_only('bank_lines')`);

  await knex.raw(`
    CREATE TABLE bank_statement_lines (
      bank_statement_id bigint NOT NULL,
      position integer NOT NULL,
      bank_line_id bigint NOT NULL,
      account text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      PRIMARY KEY (bank_statement_id, position),
      CONSTRAINT bank_statement_line_once UNIQUE (bank_statement_id, bank_line_id),
      CONSTRAINT bank_statement_line_of_its_account FOREIGN KEY (bank_line_id, account, currency)
        REFERENCES bank_lines (bank_line_id, account, currency),
      CONSTRAINT bank_statement_line_of_a_statement FOREIGN KEY (bank_statement_id, account, currency)
        REFERENCES bank_statements (bank_statement_id, account, currency)
    )`);
  await knex.raw(`CREATE INDEX bank_statement_lines_of_line ON bank_statement_lines (bank_line_id)`);
  await knex.raw(`CALL make_append_only('bank_statement_lines')`);
}

async function payments(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE payments (
      payment_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      -- Where and as what it was seen first. Other sightings of it are in payment_sources, this one too.
      identity text COLLATE "C" NOT NULL CONSTRAINT payment_once UNIQUE,
      source text NOT NULL CONSTRAINT payment_source_known CHECK (source IN ('hand', 'bank', 'processor')),
      -- Whose money it was known to be when it arrived; NULL: that was to be found out (payment_assignments).
      partner_id text COLLATE "C" REFERENCES partners,
      currency text COLLATE "C" NOT NULL CONSTRAINT payment_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
      amount numeric NOT NULL CONSTRAINT payment_amount_positive CHECK (amount > 0),
      -- A link's money is with the processor until a payout brings it to the bank.
      method text NOT NULL CONSTRAINT payment_method_known CHECK (method IN ('ach', 'wire', 'link', 'other')),
      -- Our account that it came to; empty where nobody said.
      account text NOT NULL,
      received_on date NOT NULL,
      entry_on date NOT NULL,
      reference text NOT NULL CONSTRAINT payment_has_reference CHECK (btrim(reference) <> ''),
      payer_name text,
      payer_account text,
      ${RECORDED},
      CONSTRAINT payment_currency_stays UNIQUE (payment_id, currency),
      CONSTRAINT payment_money UNIQUE (payment_id, currency, amount),
      CONSTRAINT payment_entry_not_before_receipt CHECK (entry_on >= received_on),
      CONSTRAINT payment_minor_digits CHECK (scale(amount) <= ${MINOR_DIGITS}),
      CONSTRAINT payment_amount_limit CHECK (amount < 1e15)
    )`);
  await knex.raw(`CREATE INDEX payments_by_amount ON payments (currency, amount)`);
  await knex.raw(`CREATE INDEX payments_of_payer ON payments (payer_account) WHERE payer_account IS NOT NULL`);
  await knex.raw(`CALL make_append_only('payments')`);

  // The same payment may arrive by webhook, by bank file and by hand: one payment, seen three times.
  await knex.raw(`
    CREATE TABLE payment_sources (
      identity text COLLATE "C" PRIMARY KEY,
      payment_id bigint NOT NULL REFERENCES payments,
      source text NOT NULL CONSTRAINT payment_source_kind_known CHECK (source IN ('hand', 'bank', 'processor')),
      reference text NOT NULL,
      bank_line_id bigint CONSTRAINT payment_source_of_a_line_once UNIQUE REFERENCES bank_lines,
      ${RECORDED},
      CONSTRAINT payment_source_bank_has_line CHECK ((source = 'bank') = (bank_line_id IS NOT NULL))
    )`);
  await knex.raw(`CREATE INDEX payment_sources_of_payment ON payment_sources (payment_id)`);
  await knex.raw(`CREATE INDEX payment_sources_by_reference ON payment_sources (reference)`);
  await knex.raw(`CALL make_append_only('payment_sources')`);

  // Whose money a payment is, where that became known after it arrived. The latest counts.
  await knex.raw(`
    CREATE TABLE payment_assignments (
      payment_assignment_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      payment_id bigint NOT NULL REFERENCES payments,
      from_partner_id text COLLATE "C" REFERENCES partners,
      partner_id text COLLATE "C" NOT NULL REFERENCES partners,
      -- What of it was unapplied cash then, and so moved.
      amount numeric NOT NULL CONSTRAINT assignment_amount_positive CHECK (amount > 0),
      assigned_on date NOT NULL,
      entry_on date NOT NULL,
      ${RECORDED},
      CONSTRAINT assignment_changes CHECK (partner_id IS DISTINCT FROM from_partner_id)
    )`);
  await knex.raw(`CREATE INDEX payment_assignments_of_payment ON payment_assignments (payment_id)`);
  await knex.raw(`CALL make_append_only('payment_assignments')`);
}

async function applications(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE documents
      ADD CONSTRAINT document_of_partner_and_currency UNIQUE (document_id, partner_id, currency)`);
  await knex.raw(`
    CREATE TABLE payment_applications (
      payment_application_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      payment_id bigint NOT NULL,
      document_id bigint NOT NULL,
      partner_id text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      amount numeric NOT NULL CONSTRAINT payment_application_positive CHECK (amount > 0),
      applied_on date NOT NULL,
      entry_on date NOT NULL,
      -- From 0 to 1; of what a person said 1.
      confidence numeric NOT NULL CONSTRAINT payment_application_confidence_range CHECK (confidence BETWEEN 0 AND 1),
      -- Why: what was found where, who paid, how the amounts compare. See Evidence in src/payments/match.ts.
      evidence jsonb NOT NULL CONSTRAINT payment_application_says_why CHECK (evidence->>'rule' IS NOT NULL AND evidence->>'why' IS NOT NULL),
      ${RECORDED},
      CONSTRAINT payment_application_document UNIQUE (payment_application_id, document_id, currency),
      CONSTRAINT payment_application_in_its_currency FOREIGN KEY (payment_id, currency)
        REFERENCES payments (payment_id, currency),
      CONSTRAINT payment_application_to_its_partner FOREIGN KEY (document_id, partner_id, currency)
        REFERENCES documents (document_id, partner_id, currency)
    )`);
  await knex.raw(`CREATE INDEX payment_applications_of_payment ON payment_applications (payment_id)`);
  await knex.raw(`CREATE INDEX payment_applications_of_document ON payment_applications (document_id)`);
  await knex.raw(`CALL make_append_only('payment_applications')`);

  // What was too little to chase: written to bank charges with the payment that left it, and undone with it.
  await knex.raw(`
    CREATE TABLE small_differences (
      payment_application_id bigint PRIMARY KEY,
      document_id bigint NOT NULL,
      currency text COLLATE "C" NOT NULL,
      amount numeric NOT NULL CONSTRAINT small_difference_positive CHECK (amount > 0),
      entry_on date NOT NULL,
      ${RECORDED},
      CONSTRAINT small_difference_of_its_application FOREIGN KEY (payment_application_id, document_id, currency)
        REFERENCES payment_applications (payment_application_id, document_id, currency)
    )`);
  await knex.raw(`CREATE INDEX small_differences_of_document ON small_differences (document_id)`);
  await knex.raw(`CALL make_append_only('small_differences')`);

  // What a person has yet to confirm: a document that a payment may be for, or a payment that it may be the same as.
  await knex.raw(`
    CREATE TABLE payment_suggestions (
      payment_suggestion_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      payment_id bigint NOT NULL REFERENCES payments,
      document_id bigint REFERENCES documents,
      same_as bigint REFERENCES payments,
      amount numeric NOT NULL CONSTRAINT payment_suggestion_positive CHECK (amount > 0),
      confidence numeric NOT NULL CONSTRAINT payment_suggestion_confidence_range CHECK (confidence BETWEEN 0 AND 1),
      evidence jsonb NOT NULL CONSTRAINT payment_suggestion_says_why CHECK (evidence->>'why' IS NOT NULL),
      ${RECORDED},
      CONSTRAINT payment_suggestion_of_one_thing CHECK (num_nonnulls(document_id, same_as) = 1),
      CONSTRAINT payment_suggestion_not_itself CHECK (same_as <> payment_id),
      CONSTRAINT payment_suggestion_once UNIQUE NULLS NOT DISTINCT (payment_id, document_id, same_as)
    )`);
  await knex.raw(`CALL make_append_only('payment_suggestions')`);
}

async function reversals(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE payment_reversals (
      payment_reversal_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      -- What took it back, once: a line of the bank, a refund or dispute of the processor, a person's act.
      identity text COLLATE "C" NOT NULL CONSTRAINT payment_reversal_once UNIQUE,
      payment_id bigint NOT NULL,
      -- Whose unapplied cash it comes out of; NULL while that is not known.
      partner_id text COLLATE "C" REFERENCES partners,
      currency text COLLATE "C" NOT NULL,
      amount numeric NOT NULL CONSTRAINT payment_reversal_positive CHECK (amount > 0),
      kind text NOT NULL CONSTRAINT payment_reversal_kind_known
        CHECK (kind IN ('returned', 'refunded', 'disputed', 'mistake', 'duplicate')),
      -- R01 and so on, or the processor's word for it.
      code text,
      reason text NOT NULL CONSTRAINT payment_reversal_has_reason CHECK (btrim(reason) <> ''),
      bank_line_id bigint CONSTRAINT payment_reversal_of_a_line_once UNIQUE REFERENCES bank_lines,
      duplicate_of bigint REFERENCES payments,
      reversed_on date NOT NULL,
      entry_on date NOT NULL,
      ${RECORDED},
      CONSTRAINT payment_reversal_in_its_currency FOREIGN KEY (payment_id, currency) REFERENCES payments (payment_id, currency),
      CONSTRAINT payment_reversal_names_the_other CHECK ((kind = 'duplicate') = (duplicate_of IS NOT NULL)),
      CONSTRAINT payment_reversal_not_of_itself CHECK (duplicate_of <> payment_id)
    )`);
  await knex.raw(`CREATE INDEX payment_reversals_of_payment ON payment_reversals (payment_id)`);
  await knex.raw(`CALL make_append_only('payment_reversals')`);

  // The processor or the bank gave it back after all: a dispute won.
  await knex.raw(`
    CREATE TABLE payment_reinstatements (
      payment_reversal_id bigint PRIMARY KEY REFERENCES payment_reversals,
      partner_id text COLLATE "C" REFERENCES partners,
      reinstated_on date NOT NULL,
      entry_on date NOT NULL,
      ${RECORDED}
    )`);
  await knex.raw(`CALL make_append_only('payment_reinstatements')`);

  await knex.raw(`
    CREATE TABLE payment_unapplications (
      payment_application_id bigint PRIMARY KEY REFERENCES payment_applications,
      -- NULL: a person undid it.
      payment_reversal_id bigint REFERENCES payment_reversals,
      unapplied_on date NOT NULL,
      entry_on date NOT NULL,
      ${RECORDED}
    )`);
  await knex.raw(`
    CREATE INDEX payment_unapplications_of_reversal ON payment_unapplications (payment_reversal_id)
      WHERE payment_reversal_id IS NOT NULL`);
  await knex.raw(`CALL make_append_only('payment_unapplications')`);
}

async function payoutsAndOutcomes(knex: Knex): Promise<void> {
  // Link money on its way from the processor to the bank. It is no payment: each of those was one already.
  await knex.raw(`
    CREATE TABLE payouts (
      payout_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      bank_line_id bigint NOT NULL CONSTRAINT payout_of_a_line_once UNIQUE,
      account text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      amount numeric NOT NULL,
      direction text NOT NULL CONSTRAINT payout_comes_in CHECK (direction = 'credit'),
      received_on date NOT NULL,
      entry_on date NOT NULL,
      ${RECORDED},
      CONSTRAINT payout_is_its_line FOREIGN KEY (bank_line_id, currency, amount, direction)
        REFERENCES bank_lines (bank_line_id, currency, amount, direction)
    )`);
  await knex.raw(`CALL make_append_only('payouts')`);
  // Which payments a payout brought, and what the processor kept of them.
  await knex.raw(`
    CREATE TABLE payout_settlements (
      payout_id bigint PRIMARY KEY REFERENCES payouts,
      gross numeric NOT NULL,
      fees numeric NOT NULL CONSTRAINT payout_fees_not_negative CHECK (fees >= 0),
      entry_on date NOT NULL,
      evidence jsonb NOT NULL CONSTRAINT payout_settlement_says_why CHECK (evidence->>'why' IS NOT NULL),
      ${RECORDED}
    )`);
  await knex.raw(`CALL make_append_only('payout_settlements')`);
  await knex.raw(`
    CREATE TABLE payout_payments (
      payment_id bigint PRIMARY KEY REFERENCES payments,
      payout_id bigint NOT NULL REFERENCES payout_settlements,
      amount numeric NOT NULL CONSTRAINT payout_payment_positive CHECK (amount > 0)
    )`);
  await knex.raw(`CREATE INDEX payout_payments_of_payout ON payout_payments (payout_id)`);
  await knex.raw(`CALL make_append_only('payout_payments')`);

  // What became of each line, exactly one thing, and why.
  await knex.raw(`
    CREATE TABLE bank_line_outcomes (
      bank_line_id bigint PRIMARY KEY REFERENCES bank_lines,
      outcome text NOT NULL CONSTRAINT bank_line_outcome_known
        CHECK (outcome IN ('payment', 'payout', 'return', 'ignored')),
      payment_id bigint REFERENCES payments,
      payout_id bigint REFERENCES payouts,
      payment_reversal_id bigint REFERENCES payment_reversals,
      -- A debit that looks like a return which could not be found: a person looks.
      needs_review boolean NOT NULL,
      reason text NOT NULL CONSTRAINT bank_line_outcome_has_reason CHECK (reason <> ''),
      ${RECORDED},
      CONSTRAINT bank_line_outcome_names_its_fact CHECK (
        (outcome = 'payment') = (payment_id IS NOT NULL) AND (outcome = 'payout') = (payout_id IS NOT NULL)
        AND (outcome = 'return') = (payment_reversal_id IS NOT NULL))
    )`);
  await knex.raw(`CALL make_append_only('bank_line_outcomes')`);
}

async function creditRefunds(knex: Knex): Promise<void> {
  // Open credit paid out to the partner, whole.
  await knex.raw(`
    CREATE TABLE credit_refunds (
      credit_refund_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      document_id bigint NOT NULL,
      partner_id text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      amount numeric NOT NULL CONSTRAINT credit_refund_positive CHECK (amount > 0),
      method text NOT NULL CONSTRAINT credit_refund_method_known CHECK (method IN ('ach', 'wire', 'other')),
      account text NOT NULL,
      reference text NOT NULL,
      refunded_on date NOT NULL,
      entry_on date NOT NULL,
      ${RECORDED},
      CONSTRAINT credit_refund_of_a_document FOREIGN KEY (document_id, partner_id, currency)
        REFERENCES documents (document_id, partner_id, currency)
    )`);
  await knex.raw(`CREATE INDEX credit_refunds_of_document ON credit_refunds (document_id)`);
  await knex.raw(`CALL make_append_only('credit_refunds')`);
  // The bank sent it back, or it was never sent: the credit is open again.
  await knex.raw(`
    CREATE TABLE credit_refund_returns (
      credit_refund_id bigint PRIMARY KEY REFERENCES credit_refunds,
      reason text NOT NULL CONSTRAINT credit_refund_return_has_reason CHECK (btrim(reason) <> ''),
      returned_on date NOT NULL,
      entry_on date NOT NULL,
      ${RECORDED}
    )`);
  await knex.raw(`CALL make_append_only('credit_refund_returns')`);
}

async function processorEvents(knex: Knex): Promise<void> {
  // Stored before it is processed, as it came. An event without an outcome waits: for its turn, or for its payment.
  await knex.raw(`
    CREATE TABLE processor_events (
      processor_event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      -- Empty: our own account; else the connected account that it is of.
      account text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      type text NOT NULL,
      livemode boolean NOT NULL,
      created timestamptz NOT NULL,
      payload jsonb NOT NULL,
      received_at timestamptz NOT NULL,
      CONSTRAINT processor_event_once UNIQUE (account, id)
    )`);
  await knex.raw(`CALL make_append_only('processor_events')`);
  await knex.raw(`
    CREATE TABLE processor_event_outcomes (
      processor_event_id bigint PRIMARY KEY REFERENCES processor_events,
      -- effect: it changed something; nothing: it had been told already or tells nothing; person: nobody knows what it means.
      outcome text NOT NULL CONSTRAINT processor_event_outcome_known CHECK (outcome IN ('effect', 'nothing', 'person')),
      payment_id bigint REFERENCES payments,
      reason text NOT NULL CONSTRAINT processor_event_outcome_has_reason CHECK (reason <> ''),
      ${RECORDED}
    )`);
  await knex.raw(`CALL make_append_only('processor_event_outcomes')`);

  await knex.raw(`
    CREATE TABLE disputes (
      dispute_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      identity text COLLATE "C" NOT NULL CONSTRAINT dispute_once UNIQUE,
      payment_id bigint NOT NULL REFERENCES payments,
      amount numeric NOT NULL CONSTRAINT dispute_amount_positive CHECK (amount > 0),
      reason text NOT NULL,
      opened_on date NOT NULL,
      ${RECORDED}
    )`);
  await knex.raw(`CREATE INDEX disputes_of_payment ON disputes (payment_id)`);
  await knex.raw(`CALL make_append_only('disputes')`);
  await knex.raw(`
    CREATE TABLE dispute_outcomes (
      dispute_id bigint PRIMARY KEY REFERENCES disputes,
      outcome text NOT NULL CONSTRAINT dispute_outcome_known CHECK (outcome IN ('won', 'lost', 'closed')),
      decided_on date NOT NULL,
      ${RECORDED}
    )`);
  await knex.raw(`CALL make_append_only('dispute_outcomes')`);
}

async function balances(knex: Knex): Promise<void> {
  // What of each payment is applied, taken back and still unapplied cash, and whose it is as far as that is known.
  await knex.raw(`
    CREATE VIEW payment_balances AS
    SELECT payment_id, partner_id, currency, amount, applied, reversed, amount - applied - reversed AS unapplied,
           CASE WHEN reversed = amount THEN 'reversed' WHEN applied = amount - reversed THEN 'applied'
                WHEN applied = 0 THEN 'unapplied' ELSE 'partly_applied' END AS status
    FROM (
      SELECT p.payment_id, p.currency, p.amount,
             coalesce((SELECT a.partner_id FROM payment_assignments a WHERE a.payment_id = p.payment_id
                       ORDER BY a.payment_assignment_id DESC LIMIT 1), p.partner_id) AS partner_id,
             (SELECT coalesce(sum(a.amount), 0) FROM payment_applications a
              LEFT JOIN payment_unapplications u USING (payment_application_id)
              WHERE a.payment_id = p.payment_id AND u.payment_application_id IS NULL) AS applied,
             (SELECT coalesce(sum(r.amount), 0) FROM payment_reversals r
              LEFT JOIN payment_reinstatements i USING (payment_reversal_id)
              WHERE r.payment_id = p.payment_id AND i.payment_reversal_id IS NULL) AS reversed
      FROM payments p
    ) AS sums`);
  await knex.raw(`CALL grant_to_app('SELECT', 'payment_balances')`);

  // amount_due = invoiceAmount - credit_applied, both as issued; balance = amount_due - credited - amount_paid; zero
  // means paid. Of an invoice, \`credited\` is what was settled without cash: credit applied after its issue, what was
  // written off, small differences. Of a credit note it is what has been applied to invoices, and \`amount_paid\` what
  // was paid out. A statement has nothing due, and of a void document nothing is owed.
  await knex.raw(`
    CREATE OR REPLACE VIEW document_balances AS
    SELECT document_id, amount_due, credited, amount_paid,
           CASE WHEN void THEN 0 ELSE amount_due - credited - amount_paid END AS balance,
           CASE WHEN void THEN 'void' WHEN amount_due - credited - amount_paid = 0 THEN 'paid' ELSE 'open' END AS status
    FROM (
      SELECT d.document_id, v.document_id IS NOT NULL AS void,
             CASE WHEN d.document = 'statement' THEN 0 ELSE d.invoice_amount - d.credit_applied END AS amount_due,
             CASE d.document
               WHEN 'credit_note' THEN (
                 SELECT coalesce(sum(a.amount), 0) FROM credit_applications a
                 LEFT JOIN credit_releases r USING (credit_application_id)
                 WHERE a.credit_note_id = d.document_id AND r.credit_application_id IS NULL)
               WHEN 'invoice' THEN (
                 SELECT coalesce(sum(a.amount), 0) FROM credit_applications a
                 LEFT JOIN credit_releases r USING (credit_application_id)
                 WHERE a.invoice_id = d.document_id AND NOT a.at_issue AND r.credit_application_id IS NULL)
                 + (SELECT coalesce(sum(w.amount), 0) FROM write_offs w WHERE w.document_id = d.document_id)
                 + (SELECT coalesce(sum(s.amount), 0) FROM small_differences s
                    LEFT JOIN payment_unapplications u USING (payment_application_id)
                    WHERE s.document_id = d.document_id AND u.payment_application_id IS NULL)
               ELSE 0 END AS credited,
             CASE d.document
               WHEN 'credit_note' THEN (
                 SELECT coalesce(sum(f.amount), 0) FROM credit_refunds f
                 LEFT JOIN credit_refund_returns b USING (credit_refund_id)
                 WHERE f.document_id = d.document_id AND b.credit_refund_id IS NULL)
               WHEN 'invoice' THEN (
                 SELECT coalesce(sum(a.amount), 0) FROM payment_applications a
                 LEFT JOIN payment_unapplications u USING (payment_application_id)
                 WHERE a.document_id = d.document_id AND u.payment_application_id IS NULL)
               ELSE 0 END AS amount_paid
      FROM documents d LEFT JOIN voids v ON v.document_id = d.document_id
    ) AS sums`);
}

/** The rules over several rows. Whoever forgets the payments' lock waits here, and is judged by what there is then. */
async function guards(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE FUNCTION refuse_overdrawn_payment() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      found payment_balances%ROWTYPE;
    BEGIN
      PERFORM pg_advisory_xact_lock(7310, 51);
      SELECT * INTO found FROM payment_balances WHERE payment_id = NEW.payment_id;
      IF found.unapplied < 0 THEN
        RAISE EXCEPTION 'payment % of % has % applied and % taken back', NEW.payment_id, found.amount, found.applied, found.reversed
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'payment_within_amount';
      END IF;
      IF TG_TABLE_NAME = 'payment_applications' THEN
        IF found.partner_id IS DISTINCT FROM NEW.partner_id AND NOT EXISTS (
             SELECT FROM payment_unapplications u WHERE u.payment_application_id = NEW.payment_application_id) THEN
          RAISE EXCEPTION 'payment % of % pays a document of %', NEW.payment_id, coalesce(found.partner_id, 'nobody'), NEW.partner_id
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'payment_application_of_its_payer';
        END IF;
      END IF;
      RETURN NULL;
    END
    $$`);
  for (const table of ['payment_applications', 'payment_reversals']) {
    await knex.raw(`
      CREATE CONSTRAINT TRIGGER payment_within_amount AFTER INSERT ON ${table} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION refuse_overdrawn_payment()`);
  }

  // The column that names the document is the trigger's argument.
  await knex.raw(`
    CREATE FUNCTION refuse_overpaid_document() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      id bigint := (to_jsonb(NEW)->>TG_ARGV[0])::bigint;
      found document_balances%ROWTYPE;
      kind text;
      needed text := CASE WHEN TG_TABLE_NAME IN ('payment_applications', 'small_differences', 'write_offs') THEN 'invoice'
                          WHEN TG_TABLE_NAME = 'credit_refunds' THEN 'credit_note' END;
    BEGIN
      PERFORM pg_advisory_xact_lock(7310, 51);
      SELECT * INTO found FROM document_balances WHERE document_id = id;
      IF found.status = 'void' AND found.amount_paid <> 0 THEN
        RAISE EXCEPTION 'document % is void and has % paid', id, found.amount_paid
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'document_void_is_unpaid';
      END IF;
      IF found.amount_due < found.credited + found.amount_paid THEN
        RAISE EXCEPTION 'document % over % is credited % and paid %', id, found.amount_due, found.credited, found.amount_paid
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'document_not_overpaid';
      END IF;
      SELECT document INTO kind FROM documents WHERE document_id = id;
      IF kind <> needed THEN
        RAISE EXCEPTION 'document % is a % and takes no %', id, kind, TG_TABLE_NAME
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'document_kind_takes_it';
      END IF;
      RETURN NULL;
    END
    $$`);
  const documentsOf: readonly (readonly [table: string, column: string])[] = [
    ['payment_applications', 'document_id'],
    ['small_differences', 'document_id'],
    ['credit_refunds', 'document_id'],
    ['write_offs', 'document_id'],
    ['voids', 'document_id'],
    ['credit_applications', 'invoice_id'],
  ];
  for (const [table, column] of documentsOf) {
    // What a close applies was counted when its documents were issued: not once more for each of its rows.
    const when = table === 'credit_applications' ? 'WHEN (NOT NEW.at_issue)' : '';
    await knex.raw(`
      CREATE CONSTRAINT TRIGGER document_not_overpaid AFTER INSERT ON ${table} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW ${when} EXECUTE FUNCTION refuse_overpaid_document('${column}')`);
  }

  // A closed month's balances never move. The lock that decides an entry's date is taken by the program.
  await knex.raw(`
    CREATE FUNCTION refuse_entry_in_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      last_closed text;
      earliest date := (SELECT min(entry_on) FROM added);
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(7310, 2);
      SELECT max(month) INTO last_closed FROM closed_months;
      IF to_char(earliest, 'YYYY-MM') COLLATE "C" <= last_closed THEN
        RAISE EXCEPTION 'an entry of % cannot be dated %: months to % are closed', TG_TABLE_NAME, earliest, last_closed
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_TABLE_NAME || '_month_open';
      END IF;
      RETURN NULL;
    END
    $$`);
  for (const table of ENTRIES) {
    await knex.raw(`
      CREATE TRIGGER entry_month_open AFTER INSERT ON ${table} REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_month()`);
  }
}

/** The facts that have a journal entry. */
const ENTRIES = [
  'payments',
  'payment_assignments',
  'payment_applications',
  'small_differences',
  'payment_reversals',
  'payment_reinstatements',
  'payment_unapplications',
  'payouts',
  'payout_settlements',
  'credit_refunds',
  'credit_refund_returns',
] as const;
