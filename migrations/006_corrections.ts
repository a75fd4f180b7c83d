/**
 * Who did what, and what corrects an issued document: voids and their replacements, credit given back, write-offs,
 * holds, sendings that a person asked for. A document itself is never edited: each of these is a new fact.
 */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE audit_events (
      event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      occurred_at timestamptz NOT NULL,
      -- Noun and verb, as the command says it: invoice.void.
      action text NOT NULL CONSTRAINT event_action_form CHECK (action ~ '^[a-z_]+[.][a-z_]+$'),
      -- What it was done to: a document's number, a partner, a month, a file.
      subject text NOT NULL,
      details jsonb NOT NULL,
      -- What --by said. It is a claim; the two after it are what the machine says.
      claimed_by text,
      os_user text NOT NULL,
      host text NOT NULL,
      via text NOT NULL CONSTRAINT event_via_known CHECK (via IN ('command', 'job', 'http'))
    )`);
  await knex.raw(`CREATE INDEX audit_events_of_subject ON audit_events (subject)`);
  await knex.raw(`CALL make_append_only('audit_events')`);

  // What a document stands for: its replacement stands for the same, and so does a credit against it.
  await knex.raw(`
    ALTER TABLE documents
      ADD CONSTRAINT document_stands_for UNIQUE (document_id, partner_id, month, currency, arrangement)`);
  await knex.raw(`
    CREATE TABLE voids (
      document_id bigint PRIMARY KEY,
      partner_id text COLLATE "C" NOT NULL,
      month billing_month NOT NULL,
      currency text COLLATE "C" NOT NULL,
      arrangement text NOT NULL,
      reason text NOT NULL CONSTRAINT void_has_reason CHECK (btrim(reason) <> ''),
      voided_on date NOT NULL,
      recorded_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events,
      CONSTRAINT void_stands_for UNIQUE (document_id, partner_id, month, currency, arrangement),
      CONSTRAINT void_is_of_a_document FOREIGN KEY (document_id, partner_id, month, currency, arrangement)
        REFERENCES documents (document_id, partner_id, month, currency, arrangement)
    )`);
  await knex.raw(`CALL make_append_only('voids')`);

  // One live document a month: the first replaces nothing, each further one a void one, and that once. So they are a
  // chain of which only the last can be live. (Deferrable for a restore: documents and voids name each other.)
  await knex.raw(`
    ALTER TABLE documents
      ADD COLUMN replaces bigint CONSTRAINT document_replaced_once UNIQUE,
      ADD COLUMN credits bigint,
      ADD COLUMN reason text NOT NULL DEFAULT '',
      ADD CONSTRAINT document_replaces_a_void_one FOREIGN KEY (replaces, partner_id, month, currency, arrangement)
        REFERENCES voids (document_id, partner_id, month, currency, arrangement) DEFERRABLE,
      ADD CONSTRAINT document_credits_its_partners_invoice FOREIGN KEY (credits, partner_id, month, currency, arrangement)
        REFERENCES documents (document_id, partner_id, month, currency, arrangement),
      ADD CONSTRAINT document_adjustment_credits_an_invoice CHECK (
        (purpose = 'adjustment') = (credits IS NOT NULL)
        AND (purpose <> 'adjustment' OR (document = 'credit_note' AND invoice_amount > 0 AND btrim(reason) <> ''))),
      DROP CONSTRAINT document_due_after_terms,
      -- A replacement keeps the due date that its partner was given, unless it was made on new terms.
      ADD CONSTRAINT document_due_after_terms CHECK (due_on = issued_on + terms_days OR replaces IS NOT NULL)`);
  await knex.raw(`DROP INDEX document_one_live_per_month`);
  await knex.raw(`
    CREATE UNIQUE INDEX document_one_live_per_month ON documents (partner_id, month, currency, arrangement)
      WHERE purpose = 'month' AND replaces IS NULL`);
  await knex.raw(`CREATE INDEX adjustments_of_invoice ON documents (credits) WHERE credits IS NOT NULL`);

  // Credit is used when an invoice is issued, or later by a credit note against it. A void gives all of it back.
  await knex.raw(`
    ALTER TABLE credit_applications
      ADD COLUMN at_issue boolean NOT NULL DEFAULT true,
      ADD CONSTRAINT credit_application_of_invoice UNIQUE (credit_application_id, invoice_id)`);
  await knex.raw(`
    CREATE TABLE credit_releases (
      credit_application_id bigint PRIMARY KEY,
      document_id bigint NOT NULL REFERENCES voids,
      released_on date NOT NULL,
      recorded_at timestamptz NOT NULL,
      CONSTRAINT credit_release_by_its_invoices_void FOREIGN KEY (credit_application_id, document_id)
        REFERENCES credit_applications (credit_application_id, invoice_id)
    )`);
  await knex.raw(`CALL make_append_only('credit_releases')`);

  await knex.raw(`
    CREATE TABLE write_offs (
      write_off_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      document_id bigint NOT NULL REFERENCES documents,
      amount numeric NOT NULL CONSTRAINT write_off_positive CHECK (amount > 0),
      reason text NOT NULL CONSTRAINT write_off_has_reason CHECK (btrim(reason) <> ''),
      written_off_on date NOT NULL,
      recorded_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events
    )`);
  await knex.raw(`CREATE INDEX write_offs_of_document ON write_offs (document_id)`);
  await knex.raw(`CALL make_append_only('write_offs')`);

  // A hold, and its end. The next hold of a document follows the release of the one before, so one at most is on.
  await knex.raw(`
    CREATE TABLE holds (
      hold_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      document_id bigint NOT NULL REFERENCES documents,
      follows bigint,
      reason text NOT NULL,
      held_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events,
      CONSTRAINT hold_of_document UNIQUE (hold_id, document_id),
      CONSTRAINT hold_one_at_a_time UNIQUE NULLS NOT DISTINCT (document_id, follows)
    )`);
  await knex.raw(`
    CREATE TABLE hold_releases (
      hold_id bigint PRIMARY KEY,
      document_id bigint NOT NULL,
      released_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events,
      CONSTRAINT hold_release_stands_for UNIQUE (hold_id, document_id),
      CONSTRAINT hold_release_is_of_a_hold FOREIGN KEY (hold_id, document_id) REFERENCES holds (hold_id, document_id)
    )`);
  await knex.raw(`
    ALTER TABLE holds ADD CONSTRAINT hold_follows_a_release FOREIGN KEY (follows, document_id)
      REFERENCES hold_releases (hold_id, document_id) DEFERRABLE`);
  await knex.raw(`CALL make_append_only('holds')`);
  await knex.raw(`CALL make_append_only('hold_releases')`);

  // Sendings that somebody asked for, and those that a void took back before they went out.
  await knex.raw(`
    ALTER TABLE sendings
      ADD COLUMN event_id bigint REFERENCES audit_events,
      -- Whom a person named instead of the partner's contacts.
      ADD COLUMN addressed_to text,
      DROP CONSTRAINT sending_asked_for_known,
      ADD CONSTRAINT sending_asked_for_known CHECK (asked_for IN ('close', 'rerun', 'credit', 'resend')),
      ADD CONSTRAINT sending_person_is_known CHECK (asked_for = 'close' OR event_id IS NOT NULL),
      DROP CONSTRAINT sending_status_known,
      ADD CONSTRAINT sending_status_known
        CHECK (status IN ('queued', 'sending', 'sent', 'held', 'failed', 'uncertain', 'withdrawn'))`);
  await knex.raw(`DROP INDEX sending_one_for_the_close`);
  await knex.raw(`CREATE UNIQUE INDEX sending_one_of_the_issue ON sendings (document_id) WHERE asked_for <> 'resend'`);
  await knex.raw(`
    CREATE OR REPLACE FUNCTION refuse_rewritten_sending() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF (OLD.document_id, OLD.message_id, OLD.asked_for, OLD.queued_at, OLD.event_id, OLD.addressed_to)
         IS DISTINCT FROM (NEW.document_id, NEW.message_id, NEW.asked_for, NEW.queued_at, NEW.event_id, NEW.addressed_to)
         OR OLD.status IN ('sent', 'withdrawn') THEN
        RAISE EXCEPTION 'sending % is a fact: send again by a new one', OLD.sending_id
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'sendings_facts_stay';
      END IF;
      RETURN NEW;
    END
    $$`);

  // amount_due = invoiceAmount - credit_applied, both as issued; balance = amount_due - credited - amount_paid; zero
  // means paid. Of an invoice, \`credited\` is the credit applied after its issue and what was written off; of a credit
  // note what has been applied to invoices. A statement has nothing due, and of a void document nothing is owed.
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
               ELSE 0 END AS credited,
             0::numeric AS amount_paid
      FROM documents d LEFT JOIN voids v ON v.document_id = d.document_id
    ) AS sums`);
}
