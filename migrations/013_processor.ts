/**
 * What the processor routed to us under connected accounts: how each account was set up, what moved on it, the partners'
 * settlement files, which quote each movement is of and who found that, the ledger's reversal that a pulled-back share
 * became, what never came and was billed, and what of a share came after that and pays the invoice. All of it is added to
 * and never changed: a match that was wrong is undone by another of the opposite amount.
 *
 * A share is an entry of the journal: the processor's money against what the partner's quotes were to bring. Of what pays
 * an invoice the payment is the entry instead.
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
  await onboarding(knex);
  await settlementFiles(knex);
  await movements(knex);
  await routedShares(knex);
  await missingShares(knex);
  await sharePayments(knex);
  await journal(knex);
}

async function onboarding(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE partner_arrangements
      ADD COLUMN connected_account_type text
        CONSTRAINT connected_account_type_known CHECK (connected_account_type IN ('standard', 'express', 'custom')),
      ADD COLUMN connected_account_state text
        CONSTRAINT connected_account_state_known
        CHECK (connected_account_state IN ('invited', 'onboarding', 'active', 'restricted', 'disconnected')),
      -- NULL: the processor itself. An account that gives us no key is known by the partner's settlement files alone.
      ADD COLUMN balance_transactions_from text
        CONSTRAINT movements_from_known CHECK (balance_transactions_from IN ('processor', 'settlement_file')),
      ADD CONSTRAINT onboarding_is_of_a_connected_account CHECK (
        arrangement = 'connected_account'
        OR num_nonnulls(connected_account_type, connected_account_state, balance_transactions_from) = 0)`);
  await knex.raw(`
    CREATE INDEX partner_arrangements_of_account ON partner_arrangements (connected_account_id)
      WHERE connected_account_id IS NOT NULL`);
}

async function settlementFiles(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE settlement_files (
      settlement_file_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      partner_id text COLLATE "C" NOT NULL REFERENCES partners,
      sha256 text NOT NULL CONSTRAINT settlement_file_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
      name text NOT NULL,
      lines bigint NOT NULL,
      ${RECORDED},
      CONSTRAINT settlement_file_once UNIQUE (partner_id, sha256),
      CONSTRAINT settlement_file_of_partner UNIQUE (settlement_file_id, partner_id)
    )`);
  await knex.raw(`CALL make_append_only('settlement_files')`);
  await knex.raw(`CALL make_fact('settlement_files')`);

  // A line is there once, in however many files it stood: one transfer and payment, one quote or requote.
  await knex.raw(`
    CREATE TABLE settlement_lines (
      settlement_line_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      settlement_file_id bigint NOT NULL,
      line bigint NOT NULL,
      partner_id text COLLATE "C" NOT NULL,
      quote_id text COLLATE "C" NOT NULL,
      requote_id text COLLATE "C",
      reversal_id text COLLATE "C",
      transfer text COLLATE "C",
      payment text COLLATE "C",
      kind text NOT NULL CONSTRAINT settlement_line_kind_known CHECK (kind IN ('share', 'reversal', 'dispute')),
      currency text COLLATE "C" NOT NULL,
      amount numeric NOT NULL,
      refunded numeric CONSTRAINT settlement_line_refund_not_negative CHECK (refunded >= 0),
      moved_at timestamptz,
      CONSTRAINT settlement_line_once UNIQUE NULLS NOT DISTINCT (partner_id, payment, transfer, quote_id, requote_id),
      CONSTRAINT settlement_line_of_its_file FOREIGN KEY (settlement_file_id, partner_id)
        REFERENCES settlement_files (settlement_file_id, partner_id),
      CONSTRAINT settlement_line_names_what_moved CHECK (num_nonnulls(transfer, payment) > 0),
      CONSTRAINT settlement_line_sign CHECK (
        CASE kind WHEN 'share' THEN amount > 0 WHEN 'reversal' THEN amount < 0 ELSE amount <> 0 END),
      CONSTRAINT settlement_line_minor_digits CHECK (scale(amount) <= ${MINOR_DIGITS})
    )`);
  await knex.raw(`CREATE INDEX settlement_lines_by_payment ON settlement_lines (payment) WHERE payment IS NOT NULL`);
  await knex.raw(`CREATE INDEX settlement_lines_by_transfer ON settlement_lines (transfer) WHERE transfer IS NOT NULL`);
  await knex.raw(`CALL make_append_only('settlement_lines')`);
  await knex.raw(`CALL make_fact('settlement_lines')`);
}

async function movements(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE balance_transactions (
      balance_transaction_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      account text COLLATE "C" NOT NULL,
      -- The balance transaction's id; of a settlement line, where there is no other source, its payment or transfer.
      id text COLLATE "C" NOT NULL,
      reported_by text NOT NULL CONSTRAINT balance_transaction_told_by_known CHECK (reported_by IN ('processor', 'settlement_file')),
      type text NOT NULL,
      -- See MovementKind in src/splits/movement.ts.
      kind text NOT NULL
        CONSTRAINT balance_transaction_kind_known CHECK (kind IN ('share', 'misrouted', 'reversal', 'dispute', 'other')),
      currency text COLLATE "C" NOT NULL,
      amount numeric NOT NULL,
      fee numeric NOT NULL,
      net numeric NOT NULL,
      moved_at timestamptz NOT NULL,
      payment text COLLATE "C",
      of_payment text COLLATE "C",
      transfer text COLLATE "C",
      quote_id text COLLATE "C",
      requote_id text COLLATE "C",
      enrollment_id text COLLATE "C",
      payload jsonb NOT NULL,
      ${RECORDED},
      CONSTRAINT balance_transaction_once UNIQUE (account, id),
      CONSTRAINT balance_transaction_in_its_currency UNIQUE (balance_transaction_id, currency),
      CONSTRAINT balance_transaction_adds_up CHECK (net = amount - fee),
      CONSTRAINT balance_transaction_minor_digits CHECK (greatest(scale(amount), scale(fee), scale(net)) <= ${MINOR_DIGITS})
    )`);
  await knex.raw(`CREATE INDEX movements_by_payment ON balance_transactions (account, payment)`);
  await knex.raw(`CREATE INDEX movements_by_time ON balance_transactions (account, moved_at)`);
  await knex.raw(`CALL make_append_only('balance_transactions')`);
  await knex.raw(`CALL make_fact('balance_transactions')`);

  // How far each account was read. The next reading begins before the end of this one.
  await knex.raw(`
    CREATE TABLE processor_readings (
      processor_reading_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      account text COLLATE "C" NOT NULL,
      read_from timestamptz,
      read_to timestamptz NOT NULL,
      movements bigint NOT NULL,
      new_balance_transactions bigint NOT NULL,
      ${RECORDED},
      CONSTRAINT reading_goes_forward CHECK (read_from < read_to),
      CONSTRAINT reading_new_are_read CHECK (new_balance_transactions BETWEEN 0 AND movements)
    )`);
  await knex.raw(`CREATE INDEX processor_readings_of_account ON processor_readings (account, read_to)`);
  await knex.raw(`CALL make_append_only('processor_readings')`);
  await knex.raw(`CALL make_fact('processor_readings')`);
}

async function routedShares(knex: Knex): Promise<void> {
  // Which quote a movement, or a part of it, is of. The quote is named by the row of its acceptance.
  await knex.raw(`
    CREATE TABLE share_allocations (
      share_allocation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      balance_transaction_id bigint NOT NULL,
      partner_id text COLLATE "C" NOT NULL,
      posted_month text COLLATE "C" NOT NULL,
      entry_id bigint NOT NULL,
      quote_id text COLLATE "C" NOT NULL,
      requote_id text COLLATE "C",
      currency text COLLATE "C" NOT NULL,
      amount numeric NOT NULL CONSTRAINT share_allocation_of_something CHECK (amount <> 0),
      matched_by text NOT NULL CONSTRAINT share_allocation_found_by_known
        CHECK (matched_by IN ('metadata', 'payment', 'settlement_file', 'person')),
      settlement_line_id bigint REFERENCES settlement_lines,
      -- Why a person says so.
      reason text NOT NULL DEFAULT '',
      moved_on date NOT NULL,
      -- The date of its journal entry: the true one, but never before the earliest month open when it was recorded.
      entry_on date NOT NULL,
      ${RECORDED},
      CONSTRAINT share_allocation_of_a_movement FOREIGN KEY (balance_transaction_id, currency)
        REFERENCES balance_transactions (balance_transaction_id, currency),
      CONSTRAINT share_allocation_currency_stays UNIQUE (share_allocation_id, currency),
      CONSTRAINT share_allocation_of_a_quote FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows,
      CONSTRAINT share_allocation_settlement_named CHECK ((matched_by = 'settlement_file') = (settlement_line_id IS NOT NULL)),
      CONSTRAINT share_allocation_person_says_why CHECK (matched_by <> 'person' OR btrim(reason) <> ''),
      CONSTRAINT share_allocation_entry_not_before CHECK (entry_on >= moved_on),
      CONSTRAINT share_allocation_minor_digits CHECK (scale(amount) <= ${MINOR_DIGITS})
    )`);
  // Found by itself, a movement is matched once.
  await knex.raw(`
    CREATE UNIQUE INDEX share_allocation_once ON share_allocations (balance_transaction_id, quote_id, requote_id) NULLS NOT DISTINCT
      WHERE matched_by <> 'person'`);
  await knex.raw(`CREATE INDEX share_allocations_of_quote ON share_allocations (partner_id, quote_id)`);
  await knex.raw(`CREATE INDEX share_allocations_of_movement ON share_allocations (balance_transaction_id)`);
  await knex.raw(`CREATE INDEX share_allocations_of_event ON share_allocations (event_id)`);
  await knex.raw(`
    CREATE TRIGGER entry_month_open AFTER INSERT ON share_allocations REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_month()`);
  await knex.raw(`CALL make_append_only('share_allocations')`);
  await knex.raw(`CALL make_fact('share_allocations')`);

  // The ledger's reversal that a share pulled back became.
  await knex.raw(`
    CREATE TABLE reversal_evidence (
      share_allocation_id bigint PRIMARY KEY REFERENCES share_allocations,
      partner_id text COLLATE "C" NOT NULL,
      posted_month text COLLATE "C" NOT NULL,
      entry_id bigint NOT NULL,
      -- Where its price comes from: all that was left was pulled back, the settlement file says it, or a person does.
      price_from text NOT NULL
        CONSTRAINT reversal_price_from_known CHECK (price_from IN ('whole', 'settlement_file', 'person')),
      ${RECORDED},
      CONSTRAINT reversal_evidence_once UNIQUE (partner_id, posted_month, entry_id),
      CONSTRAINT reversal_evidence_of_a_row FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows
    )`);
  await knex.raw(`CALL make_append_only('reversal_evidence')`);
  await knex.raw(`CALL make_fact('reversal_evidence')`);
}

async function missingShares(knex: Knex): Promise<void> {
  // What each invoice for missing shares bills, quote by quote.
  await knex.raw(`
    CREATE TABLE missing_shares (
      document_id bigint NOT NULL,
      partner_id text COLLATE "C" NOT NULL,
      month billing_month NOT NULL,
      currency text COLLATE "C" NOT NULL,
      arrangement text NOT NULL CONSTRAINT missing_share_was_to_be_routed CHECK (arrangement = 'connected_account'),
      quote_id text COLLATE "C" NOT NULL,
      amount numeric NOT NULL CONSTRAINT missing_share_positive CHECK (amount > 0),
      PRIMARY KEY (document_id, quote_id),
      CONSTRAINT missing_share_on_its_partners_invoice FOREIGN KEY (document_id, partner_id, month, currency, arrangement)
        REFERENCES documents (document_id, partner_id, month, currency, arrangement)
    )`);
  await knex.raw(`CREATE INDEX missing_shares_of_quote ON missing_shares (partner_id, quote_id)`);
  await knex.raw(`CALL make_append_only('missing_shares')`);
  await knex.raw(`CALL make_fact('missing_shares')`);
  await knex.raw(`
    ALTER TABLE sendings
      DROP CONSTRAINT sending_asked_for_known,
      ADD CONSTRAINT sending_asked_for_known
        CHECK (asked_for IN ('close', 'rerun', 'credit', 'resend', 'missing_shares'))`);
  await knex.raw(`
    ALTER TABLE documents ADD CONSTRAINT document_missing_shares_are_invoiced CHECK (
      purpose <> 'missing_shares' OR (document = 'invoice' AND arrangement = 'connected_account' AND invoice_amount > 0))`);
}

async function sharePayments(knex: Knex): Promise<void> {
  // What of a share came after it was billed, and is a payment of the partner instead; what of it was pulled back, or was
  // matched by mistake, takes that payment back, and what of that was a mistake gives it back again.
  await knex.raw(`
    CREATE TABLE share_payments (
      share_allocation_id bigint NOT NULL,
      payment_id bigint NOT NULL,
      payment_reversal_id bigint REFERENCES payment_reversals,
      currency text COLLATE "C" NOT NULL,
      -- Of the share's own sign.
      amount numeric NOT NULL CONSTRAINT share_payment_of_something CHECK (amount <> 0),
      ${RECORDED},
      PRIMARY KEY (share_allocation_id, payment_id),
      CONSTRAINT share_payment_of_a_share FOREIGN KEY (share_allocation_id, currency)
        REFERENCES share_allocations (share_allocation_id, currency),
      CONSTRAINT share_payment_in_its_currency FOREIGN KEY (payment_id, currency)
        REFERENCES payments (payment_id, currency),
      CONSTRAINT share_payment_below_zero_takes_back CHECK (amount > 0 OR payment_reversal_id IS NOT NULL)
    )`);
  await knex.raw(`CREATE INDEX share_payments_of_payment ON share_payments (payment_id)`);
  await knex.raw(`CALL make_append_only('share_payments')`);
  await knex.raw(`CALL make_fact('share_payments')`);
}

/** Adds the shares to the facts that the journal is of (migration 010). Pulled back, a share's entry is the reverse. */
async function journal(knex: Knex): Promise<void> {
  const came = 'r.amount > 0';
  const side = (debit: boolean) => ({
    control: `CASE WHEN (${came}) = ${debit} THEN 'assets:processor' ELSE 'assets:receivable:processor' END`,
    detail: `CASE WHEN (${came}) = ${debit} THEN NULL ELSE r.partner_id END`,
  });
  const { rows } = (await knex.raw(`SELECT rtrim(pg_get_viewdef('journal_entries'), ';') AS definition`)) as {
    rows: { definition: string }[];
  };
  // The definition has quoted texts, in which knex would look for bindings.
  const definition = `${rows[0]?.definition}
    UNION ALL
    SELECT CASE WHEN ${came} THEN 'share_routed' ELSE 'share_pulled_back' END::text, r.share_allocation_id, r.entry_on, r.moved_on,
           ${side(true).control}, (${side(true).detail})::text, r.partner_id::text,
           ${side(false).control}, (${side(false).detail})::text, r.partner_id::text,
           r.currency, (abs(r.amount - coalesce(p.amount, 0)))::numeric, NULL::text, m.id::text
    FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
    LEFT JOIN (SELECT share_allocation_id, sum(amount) AS amount FROM share_payments GROUP BY share_allocation_id) AS p
      USING (share_allocation_id)
    WHERE r.amount <> coalesce(p.amount, 0)`;
  await knex.raw(`CREATE OR REPLACE VIEW journal_entries AS ${definition.replaceAll('?', '\\?')}`);
}
