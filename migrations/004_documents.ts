/** What a closed month gives: invoices, credit notes and statements with their lines, and credit applied to invoices. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  // The issuer as printed. Kept once per wording, so that every document keeps the one it was issued under.
  await knex.raw(`
    CREATE TABLE issuer_versions (
      issuer_version_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      content jsonb NOT NULL CONSTRAINT issuer_version_once UNIQUE,
      first_used_at timestamptz NOT NULL
    )`);
  await knex.raw(`CALL make_append_only('issuer_versions')`);

  await knex.raw(`
    CREATE TABLE documents (
      document_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      series text COLLATE "C" NOT NULL,
      sequence integer NOT NULL CONSTRAINT document_sequence_positive CHECK (sequence > 0),
      number text COLLATE "C" NOT NULL GENERATED ALWAYS AS
        (series || '-' || lpad(sequence::text, greatest(6, length(sequence::text)), '0')) STORED
        CONSTRAINT document_number_once UNIQUE,
      document text NOT NULL CONSTRAINT document_known CHECK (document IN ('invoice', 'credit_note', 'statement')),
      purpose text NOT NULL CONSTRAINT document_purpose_known CHECK (purpose IN ('month', 'adjustment', 'missing_shares')),
      partner_id text COLLATE "C" NOT NULL REFERENCES partners,
      month billing_month NOT NULL,
      currency text COLLATE "C" NOT NULL,
      arrangement text NOT NULL CONSTRAINT document_arrangement_known
        CHECK (arrangement IN ('invoicing', 'connected_account')),
      issued_on date NOT NULL,
      due_on date,
      terms_days integer,
      enrollments bigint NOT NULL,
      entries bigint NOT NULL,
      spot_price numeric NOT NULL,
      partner_cut numeric NOT NULL,
      invoice_amount numeric NOT NULL,
      credit_applied numeric NOT NULL,
      partner_name text NOT NULL,
      address_line1 text NOT NULL,
      address_line2 text NOT NULL,
      address_city text NOT NULL,
      address_region text NOT NULL,
      address_postal_code text NOT NULL,
      address_country text NOT NULL,
      tax_id text NOT NULL,
      purchase_order text NOT NULL,
      legal_note text NOT NULL,
      issuer_version_id bigint NOT NULL REFERENCES issuer_versions,
      sandbox boolean NOT NULL,
      issued_at timestamptz NOT NULL,
      CONSTRAINT document_sequence_once UNIQUE (series, sequence),
      CONSTRAINT document_series_of_kind_and_year CHECK (
        series = CASE document WHEN 'invoice' THEN 'INV-' WHEN 'credit_note' THEN 'CN-' ELSE 'ST-' END
                 || extract(year FROM issued_on)),
      CONSTRAINT document_balance CHECK (spot_price = partner_cut + invoice_amount),
      CONSTRAINT document_arrangement_gives_kind CHECK (
        purpose <> 'month' OR (document = 'statement') = (arrangement = 'connected_account')),
      -- A partner never owes a negative invoice: a net-negative month is a credit note, its sums negated.
      CONSTRAINT document_amount_not_negative CHECK (document = 'statement' OR invoice_amount >= 0),
      CONSTRAINT document_credit_within_amount CHECK (
        credit_applied = 0 OR (document = 'invoice' AND credit_applied BETWEEN 0 AND invoice_amount)),
      CONSTRAINT document_due_on_invoices CHECK (
        (document = 'invoice') = (due_on IS NOT NULL) AND (due_on IS NULL) = (terms_days IS NULL)),
      CONSTRAINT document_due_after_terms CHECK (due_on = issued_on + terms_days)
    )`);
  await knex.raw(`
    CREATE UNIQUE INDEX document_one_live_per_month ON documents (partner_id, month, currency, arrangement)
      WHERE purpose = 'month'`);
  await knex.raw(`CREATE INDEX documents_by_month ON documents (month)`);
  await knex.raw(
    `CREATE INDEX credit_notes_of_partner ON documents (partner_id, currency) WHERE document = 'credit_note'`,
  );
  await knex.raw(`CALL make_append_only('documents')`);

  await knex.raw(`
    CREATE TABLE document_lines (
      document_id bigint NOT NULL REFERENCES documents,
      -- The document's own month before earlier ones, then policy, then the order of kinds.
      position integer NOT NULL,
      policy_id text COLLATE "C" NOT NULL,
      policy_name text NOT NULL,
      kind text COLLATE "C" NOT NULL CONSTRAINT line_kind_known
        CHECK (kind IN ('quote_accepted', 'requote_accepted', 'reversal')),
      month billing_month NOT NULL,
      count bigint NOT NULL CONSTRAINT line_has_rows CHECK (count > 0),
      spot_price numeric NOT NULL,
      partner_cut numeric NOT NULL,
      invoice_amount numeric NOT NULL,
      PRIMARY KEY (document_id, position),
      CONSTRAINT line_once UNIQUE (document_id, policy_id, kind, month),
      CONSTRAINT line_balance CHECK (spot_price = partner_cut + invoice_amount)
    )`);
  await knex.raw(`CALL make_append_only('document_lines')`);

  // An open credit note used for an invoice. Each is a fact dated the day it happened.
  await knex.raw(`
    CREATE TABLE credit_applications (
      credit_application_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      credit_note_id bigint NOT NULL REFERENCES documents,
      invoice_id bigint NOT NULL REFERENCES documents,
      amount numeric NOT NULL CONSTRAINT credit_application_positive CHECK (amount > 0),
      applied_on date NOT NULL,
      recorded_at timestamptz NOT NULL
    )`);
  await knex.raw(`CREATE INDEX credit_applications_of_note ON credit_applications (credit_note_id)`);
  await knex.raw(`CREATE INDEX credit_applications_of_invoice ON credit_applications (invoice_id)`);
  await knex.raw(`CALL make_append_only('credit_applications')`);

  // What is still open of each document, by the contract's arithmetic:
  // amount_due = invoiceAmount - credit_applied; balance = amount_due - credited - amount_paid; zero means paid.
  // Of a credit note, \`credited\` is what has been applied to invoices. A statement has nothing due.
  await knex.raw(`
    CREATE VIEW document_balances AS
    SELECT document_id, amount_due, credited, amount_paid, amount_due - credited - amount_paid AS balance,
           CASE WHEN amount_due - credited - amount_paid = 0 THEN 'paid' ELSE 'open' END AS status
    FROM (
      SELECT d.document_id,
             CASE WHEN d.document = 'statement' THEN 0 ELSE d.invoice_amount - d.credit_applied END AS amount_due,
             CASE WHEN d.document = 'credit_note'
                  THEN coalesce((SELECT sum(a.amount) FROM credit_applications a WHERE a.credit_note_id = d.document_id), 0)
                  ELSE 0 END AS credited,
             0::numeric AS amount_paid
      FROM documents d
    ) AS sums`);
  await knex.raw(`CALL grant_to_app('SELECT', 'document_balances')`);
}
