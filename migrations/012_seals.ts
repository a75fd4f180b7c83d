/**
 * Seals of closed months, each naming the one before, and the letters that tell the auditor. Every fact gets a number in
 * the order of recording, so that a seal covers those after the last one of the seal before.
 */
import type { Knex } from 'knex';

/** The tables of facts as of this migration, where the migrations before it made them; a later one calls make_fact. */
const FACTS = [
  ...['audit_events', 'issuer_versions', 'documents', 'document_lines', 'credit_applications', 'voids'],
  ...['credit_releases', 'write_offs', 'holds', 'hold_releases', 'instruction_versions', 'document_pdfs'],
  ...['bank_files', 'bank_statements', 'bank_lines', 'bank_statement_lines', 'bank_line_outcomes', 'payments'],
  ...['payment_sources', 'payment_assignments', 'payment_applications', 'payment_suggestions', 'small_differences'],
  ...['payment_reversals', 'payment_reinstatements', 'payment_unapplications', 'payouts', 'payout_payments'],
  ...['payout_settlements', 'disputes', 'dispute_outcomes', 'credit_refunds', 'credit_refund_returns'],
  ...['processor_event_outcomes', 'api_clients', 'client_revocations'],
];

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`CREATE SEQUENCE fact_numbers`);
  await knex.raw(`CALL grant_to_app('SELECT, UPDATE', 'fact_numbers')`);
  // A close holds the ledger's lock whole (src/ledger/lock.ts). Whoever records a fact holds it shared until the commit,
  // so that no fact with a lower number can appear after the close has taken the last number.
  await knex.raw(`
    CREATE FUNCTION wait_for_seal() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(7310, 2);
      RETURN NULL;
    END
    $$`);
  await knex.raw(`
    CREATE PROCEDURE make_fact(target regclass) LANGUAGE plpgsql AS $$
    BEGIN
      EXECUTE format('ALTER TABLE %s ADD COLUMN fact_id bigint NOT NULL DEFAULT nextval(''fact_numbers'')', target);
      EXECUTE format('CREATE UNIQUE INDEX %I ON %s (fact_id)', target || '_fact', target);
      EXECUTE format('CREATE TRIGGER facts_in_order BEFORE INSERT ON %s
                      FOR EACH STATEMENT EXECUTE FUNCTION wait_for_seal()', target);
    END
    $$`);
  for (const table of FACTS) {
    await knex.raw(`
      DO $$
      BEGIN
        IF to_regclass('${table}') IS NOT NULL THEN
          CALL make_fact('${table}');
        END IF;
      END
      $$`);
  }

  await knex.raw(`
    CREATE TABLE seals (
      month billing_month PRIMARY KEY REFERENCES closed_months,
      -- NULL for the first only: the seals are one unbroken chain.
      previous billing_month CONSTRAINT seals_chain UNIQUE NULLS NOT DISTINCT REFERENCES seals,
      form integer NOT NULL,
      facts_to bigint NOT NULL,
      sealed_at timestamptz NOT NULL,
      statement text NOT NULL,
      seal text NOT NULL,
      CONSTRAINT seals_follow CHECK (month = month_after(previous)),
      CONSTRAINT seal_is_the_hash_of_its_statement CHECK (seal = encode(sha256(convert_to(statement, 'UTF8')), 'hex'))
    )`);
  await knex.raw(`CALL make_append_only('seals')`);

  // One letter a seal, recorded with it and sent after. A repetition has the same Message-ID and the same bytes.
  await knex.raw(`
    CREATE TABLE seal_letters (
      month billing_month PRIMARY KEY REFERENCES seals,
      message_id text NOT NULL CONSTRAINT seal_letter_message_id_once UNIQUE,
      status text NOT NULL CONSTRAINT seal_letter_status_known CHECK (status IN ('queued', 'sent', 'held')),
      recipient text,
      -- What the mail server said last, or why it is held.
      reply text,
      -- While somebody tries: until then nobody else does.
      tried_until timestamptz,
      sent_at timestamptz,
      CONSTRAINT seal_letter_sent_has_time CHECK ((status = 'sent') = (sent_at IS NOT NULL AND recipient IS NOT NULL))
    )`);
  await knex.raw(`CALL grant_to_app('SELECT, INSERT, UPDATE', 'seal_letters')`);
}
