/**
 * The ledger: one row per acceptance or reversal, never changed, posted to exactly one month; and the months that are
 * closed, each following the one before.
 */
import type { Knex } from 'knex';

// ISO 4217 minor digits other than 2, frozen as they stood when this migration was written.
const MINOR_DIGITS = `CASE
        WHEN currency IN ('BIF','CLP','DJF','GNF','ISK','JPY','KMF','KRW','PYG','RWF','UGX','UYI','VND','VUV','XAF','XOF','XPF') THEN 0
        WHEN currency IN ('BHD','IQD','JOD','KWD','LYD','OMR','TND') THEN 3
        WHEN currency IN ('CLF','UYW') THEN 4
        ELSE 2 END`;

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE closed_months (
      month billing_month PRIMARY KEY,
      -- NULL for the first month only; UNIQUE makes the closed months one unbroken chain.
      previous billing_month CONSTRAINT closed_months_chain UNIQUE NULLS NOT DISTINCT REFERENCES closed_months,
      issued_on date NOT NULL,
      closed_at timestamptz NOT NULL,
      entries bigint NOT NULL,
      late_entries bigint NOT NULL,
      partners_with_documents bigint NOT NULL,
      partners_without_activity bigint NOT NULL,
      CONSTRAINT closed_months_follow CHECK (month = month_after(previous)),
      CONSTRAINT closed_months_late_are_entries CHECK (late_entries BETWEEN 0 AND entries)
    )`);
  await knex.raw(`CALL make_append_only('closed_months')`);

  await knex.raw(`
    CREATE TABLE ledger_rows (
      partner_id text COLLATE "C" NOT NULL,
      -- The month that the row is billed in: its own while that is open, otherwise the earliest open one.
      posted_month text COLLATE "C" NOT NULL,
      entry_id bigint GENERATED ALWAYS AS IDENTITY,
      kind text COLLATE "C" NOT NULL,
      quote_id text COLLATE "C" NOT NULL,
      requote_id text COLLATE "C",
      reversal_id text COLLATE "C",
      enrollment_id text COLLATE "C",
      policy_id text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      accepted_at timestamptz NOT NULL,
      spot_price numeric NOT NULL,
      partner_cut numeric NOT NULL,
      invoice_amount numeric NOT NULL,
      -- Facts of the row at the time it was recorded, never recomputed.
      time_zone text NOT NULL,
      month text COLLATE "C" NOT NULL,
      arrangement text NOT NULL,
      recorded_at timestamptz NOT NULL,
      PRIMARY KEY (partner_id, posted_month, entry_id),
      CONSTRAINT ledger_rows_policy_known FOREIGN KEY (partner_id, policy_id) REFERENCES policies,
      CONSTRAINT ledger_rows_balance CHECK (spot_price = partner_cut + invoice_amount),
      CONSTRAINT ledger_rows_sign CHECK (
        CASE kind WHEN 'reversal' THEN spot_price <= 0 AND partner_cut <= 0 AND invoice_amount <= 0
                  ELSE spot_price >= 0 AND partner_cut >= 0 AND invoice_amount >= 0 END),
      CONSTRAINT ledger_rows_minor_digits CHECK (
        greatest(scale(spot_price), scale(partner_cut), scale(invoice_amount)) <= ${MINOR_DIGITS}),
      CONSTRAINT ledger_rows_amount_limit CHECK (abs(spot_price) < 1e15),
      CONSTRAINT ledger_rows_kind_has_ids CHECK (
        CASE kind WHEN 'quote_accepted' THEN requote_id IS NULL AND reversal_id IS NULL
                  WHEN 'requote_accepted' THEN requote_id IS NOT NULL AND reversal_id IS NULL
                  WHEN 'reversal' THEN reversal_id IS NOT NULL
                  ELSE false END),
      -- A month that no close could come to would never be billed. LIKE costs a row a tenth of the domain's pattern.
      CONSTRAINT ledger_rows_months_form CHECK (month LIKE '____-__' AND posted_month LIKE '____-__'),
      CONSTRAINT ledger_rows_arrangement_known CHECK (arrangement IN ('invoicing', 'connected_account')),
      CONSTRAINT ledger_rows_posted_in_own_month_or_later CHECK (posted_month >= month)
    )`);
  // A row is known by its partner, kind and own id: that of the reversal, else the requote, else the quote.
  await knex.raw(`
    CREATE UNIQUE INDEX ledger_rows_known_once
      ON ledger_rows (partner_id, kind, coalesce(reversal_id, requote_id, quote_id))`);
  // What was added to or taken from a quote after its acceptance; few rows, so few pages.
  await knex.raw(`
    CREATE INDEX ledger_rows_of_quote ON ledger_rows (partner_id, quote_id) WHERE kind <> 'quote_accepted'`);
  // The close reads one month whole. Rows arrive in order of posting, so block ranges find it, and cost an import nothing.
  await knex.raw(
    `CREATE INDEX ledger_rows_by_posted_month ON ledger_rows USING brin (posted_month) WITH (autosummarize = on)`,
  );

  // The lock that decides a row's month is taken by the program; this makes a forgotten lock an error, not a lost row.
  await knex.raw(`
    CREATE FUNCTION refuse_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      last_closed text;
      earliest text := (SELECT min(posted_month) FROM added);
    BEGIN
      -- The ledger's lock, see src/ledger/lock.ts: with a close under way, its end is waited for and seen.
      PERFORM pg_advisory_xact_lock_shared(7310, 2);
      SELECT max(month) INTO last_closed FROM closed_months;
      IF earliest <= last_closed THEN
        RAISE EXCEPTION 'rows cannot post to %: months to % are closed', earliest, last_closed
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'ledger_rows_month_open';
      END IF;
      RETURN NULL;
    END
    $$`);
  await knex.raw(`
    CREATE TRIGGER ledger_rows_month_open AFTER INSERT ON ledger_rows REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_closed_month()`);
  await knex.raw(`CALL make_append_only('ledger_rows')`);
}
