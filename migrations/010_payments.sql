-- Money received: bank files with their lines, payments with their sources, applications and reversals, payouts of the
-- processor, credit refunds, and processor events. All of it is append-only: an unapplication undoes an application,
-- and a reinstatement undoes a reversal.

CREATE TABLE bank_files (
  bank_file_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sha256 text NOT NULL CONSTRAINT bank_file_once UNIQUE CONSTRAINT bank_file_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  name text NOT NULL,
  format text NOT NULL CONSTRAINT bank_file_has_format CHECK (format <> ''),
  bytes bigint NOT NULL
);
CALL make_fact_of_event('bank_files');

CREATE TABLE bank_statements (
  bank_statement_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  bank_file_id bigint NOT NULL REFERENCES bank_files,
  position integer NOT NULL,
  account text COLLATE "C" NOT NULL CONSTRAINT bank_statement_has_account CHECK (account <> ''),
  currency text COLLATE "C" NOT NULL,
  reference text NOT NULL,
  -- The value that the file states, or NULL if the file states none.
  opening numeric,
  closing numeric,
  closed_on date,
  credits numeric NOT NULL,
  debits numeric NOT NULL,
  lines integer NOT NULL,
  CONSTRAINT bank_statement_place_once UNIQUE (bank_file_id, position),
  CONSTRAINT bank_statement_of_account UNIQUE (bank_statement_id, account, currency),
  CONSTRAINT bank_statement_adds_up CHECK (opening + credits - debits = closing)
);
CALL make_fact('bank_statements');

-- A line is stored once, even if it is in several files.
CREATE TABLE bank_lines (
  bank_line_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account text COLLATE "C" NOT NULL,
  -- The bank's reference with day, direction and amount (lineIdentities in src/payments/bank/statement.ts).
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
  CONSTRAINT bank_line_once UNIQUE (identity, account),
  CONSTRAINT bank_line_of_account UNIQUE (bank_line_id, account, currency),
  CONSTRAINT bank_line_money UNIQUE (bank_line_id, currency, amount, direction),
  CONSTRAINT bank_line_minor_digits CHECK (scale(amount) <= minor_digits(currency))
);
-- The amount of a debit is negative.
CREATE FUNCTION signed_amount(line bank_lines) RETURNS numeric STABLE LANGUAGE sql
RETURN CASE line.direction WHEN 'credit' THEN line.amount ELSE -line.amount END;
CREATE INDEX bank_lines_by_amount ON bank_lines (currency, amount, bank_booked_on);
CREATE INDEX bank_lines_of_account ON bank_lines (account, bank_booked_on);
CALL make_fact('bank_lines');
CALL keep_personal('bank_lines', 'references:text', 'text', 'payer_name', 'payer_account', 'raw');

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
);
CREATE INDEX bank_statement_lines_of_line ON bank_statement_lines (bank_line_id);
CALL make_fact('bank_statement_lines');

-- Whether two accounts with different names may be one account: one name contains the number that is the other name,
-- as an IBAN contains the account number that another format writes alone. Two banks may have a number.
CREATE FUNCTION accounts_alike(account text, other text) RETURNS boolean IMMUTABLE LANGUAGE sql
RETURN (SELECT bool_or(number ~ '^[0-9]{6,}$' AND strpos(regexp_replace(name, '[^A-Z0-9]', '', 'g'), number) > 0)
        FROM (VALUES (account, other), (other, account)) AS v (name, short)
        CROSS JOIN LATERAL ltrim(regexp_replace(short, '[^A-Z0-9]', '', 'g'), '0') AS number);

-- Finds lines that may be duplicates of the given lines, with the same day, direction, amount and currency. The two
-- lines are on two accounts and have the same reference (or text), or they are never in the same file, on one account
-- or on accounts that are alike and never in the same format. Two lines of one file are always different lines. Each
-- of `line_ids` is equal to each of `equal_ids`: a file may have 50,000 lines with one amount, so that pairs of lines
-- would be too many. The planner has no statistics on lines that were just imported. Without this setting, it would
-- look up each line among all other lines.
CREATE FUNCTION equal_bank_lines(given_ids bigint[])
RETURNS TABLE (line_ids bigint[], equal_ids bigint[], in_other_file boolean)
STABLE LANGUAGE plpgsql SET enable_nestloop = on AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('enable_nestloop', (cardinality(given_ids) < 500)::text, true);
  RETURN QUERY
  WITH lines AS MATERIALIZED (
    SELECT l.bank_line_id, l.account, l.identity, l.currency, l.amount, l.bank_booked_on, l.direction
    FROM unnest(given_ids) AS i (bank_line_id) JOIN bank_lines l USING (bank_line_id)
  ), named AS MATERIALIZED (
    SELECT s.account, array_agg(DISTINCT f.format) AS formats
    FROM bank_statements s JOIN bank_files f USING (bank_file_id) GROUP BY s.account
  ), accounts AS MATERIALIZED (
    SELECT account AS given_account, account FROM lines
    UNION
    SELECT o.account, t.account FROM named o JOIN named t ON NOT o.formats && t.formats
    WHERE o.account IN (SELECT account FROM lines) AND accounts_alike(o.account, t.account)
  ), in_files AS (
    SELECT k.given_account, t.bank_line_id, t.account, t.currency, t.amount, t.bank_booked_on, t.direction,
           coalesce(array_agg(s.bank_file_id ORDER BY s.bank_file_id) FILTER (WHERE s.bank_file_id IS NOT NULL), '{}')
             AS files,
           bool_or(t.account = k.given_account AND n.bank_line_id IS NOT NULL) AS is_given
    FROM (SELECT DISTINCT a.given_account, a.account, l.currency, l.amount, l.bank_booked_on, l.direction
          FROM lines l JOIN accounts a ON a.given_account = l.account) AS k
    JOIN bank_lines t USING (account, currency, amount, bank_booked_on, direction)
    LEFT JOIN lines n ON n.bank_line_id = t.bank_line_id
    LEFT JOIN bank_statement_lines x ON x.bank_line_id = t.bank_line_id
    LEFT JOIN bank_statements s USING (bank_statement_id)
    GROUP BY k.given_account, t.bank_line_id
  ), sets AS MATERIALIZED (
    SELECT given_account, account, currency, amount, bank_booked_on, direction, files,
           array_agg(bank_line_id ORDER BY bank_line_id) AS ids,
           array_agg(bank_line_id) FILTER (WHERE is_given) AS given
    FROM in_files GROUP BY 1, 2, 3, 4, 5, 6, 7
  )
  SELECT ARRAY[l.bank_line_id], array_agg(t.bank_line_id ORDER BY t.bank_line_id), false
  FROM lines l JOIN bank_lines t USING (identity, currency, amount, bank_booked_on, direction)
  WHERE t.account <> l.account GROUP BY l.bank_line_id
  UNION ALL
  SELECT o.given, t.ids, true
  FROM sets o JOIN sets t USING (given_account, currency, amount, bank_booked_on, direction)
  WHERE o.given IS NOT NULL AND NOT o.files && t.files AND (o.account, o.files) <> (t.account, t.files);
END
$$;

-- Describes the tables of a large import to the planner. Only the owner may. Tables that were empty when they were last
-- analyzed, as after a preview, seem to have one row: the planner compared each of 20,000 lines with all others.
CREATE FUNCTION analyze_bank_import() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own oid;
BEGIN
  GET DIAGNOSTICS own = PG_ROUTINE_OID;
  EXECUTE (
    SELECT 'ANALYZE ' || string_agg(format('%s.%I', p.pronamespace::regnamespace, name), ', ')
    FROM pg_proc p CROSS JOIN unnest(ARRAY['bank_lines', 'bank_statement_lines', 'bank_line_outcomes', 'payments',
      'payment_sources', 'payment_applications', 'payment_suggestions']) AS name
    WHERE p.oid = own);
END
$$;

-- The day up to which the bank has reported each account: the day of the latest closing balance, or the latest booked
-- day if that is later; and the currencies of its files. A missing file is noticed only if files state balances.
CREATE VIEW bank_feeds AS
SELECT account, reported_to, balances_stated, currencies
FROM (SELECT s.account, bool_and(s.opening IS NOT NULL AND s.closing IS NOT NULL) AS balances_stated,
             array_agg(DISTINCT s.currency) AS currencies,
             greatest(max(s.closed_on),
                      (SELECT max(l.bank_booked_on) FROM bank_lines l WHERE l.account = s.account)) AS reported_to
      FROM bank_statements s GROUP BY s.account) AS reported
WHERE reported_to IS NOT NULL;

CREATE TABLE payments (
  payment_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The source that reported the payment first. payment_sources has all sources, including this one.
  identity text COLLATE "C" NOT NULL CONSTRAINT payment_once UNIQUE,
  source text NOT NULL CONSTRAINT payment_source_known CHECK (source IN ('hand', 'bank', 'processor', 'opening')),
  -- The payer that was known when the money arrived, or NULL if no payer was known (payment_assignments has later
  -- payers).
  partner_id text COLLATE "C" REFERENCES partners,
  currency text COLLATE "C" NOT NULL CONSTRAINT payment_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
  amount numeric NOT NULL CONSTRAINT payment_amount_positive CHECK (amount > 0),
  -- The money of a link is with the processor until a payout brings it to the bank.
  method text NOT NULL CONSTRAINT payment_method_known CHECK (method IN ('ach', 'wire', 'check', 'link', 'other')),
  -- Our account that received the money, or empty if unknown.
  account text NOT NULL,
  received_on date NOT NULL,
  entry_on date NOT NULL,
  reference text NOT NULL CONSTRAINT payment_has_reference CHECK (btrim(reference) <> ''),
  payer_name text,
  payer_account text,
  -- For unapplied cash of the previous system: the opening, and the payment's number in the previous system. The cash
  -- is entered on the day of the cut-over, although the bank received it earlier.
  opening_id bigint,
  opening_number text COLLATE "C" CONSTRAINT payment_opening_number_form
    CHECK (opening_number ~ '^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$'),
  CONSTRAINT payment_of_an_opening CHECK (
    num_nonnulls(opening_id, opening_number) = CASE source WHEN 'opening' THEN 2 ELSE 0 END
    AND (source <> 'opening' OR method <> 'link')),
  CONSTRAINT payment_entered_at_the_cut_over FOREIGN KEY (opening_id, entry_on)
    REFERENCES openings (opening_id, cut_over_on),
  CONSTRAINT payment_currency_stays UNIQUE (payment_id, currency),
  CONSTRAINT payment_money UNIQUE (payment_id, currency, amount),
  CONSTRAINT payment_entry_not_before_receipt CHECK (entry_on >= received_on),
  CONSTRAINT payment_minor_digits CHECK (scale(amount) <= minor_digits(currency)),
  CONSTRAINT payment_amount_limit CHECK (amount < 1e15)
);
CREATE INDEX payments_of_opening ON payments (opening_id) WHERE opening_id IS NOT NULL;
CREATE INDEX payments_by_amount ON payments (currency, amount);
CREATE INDEX payments_without_account ON payments (payment_id) WHERE source = 'hand' AND account = '';
CREATE INDEX payments_by_entry ON payments USING brin (entry_on) WITH (pages_per_range = 16, autosummarize = on);
CREATE INDEX payments_of_partner ON payments (partner_id) WHERE partner_id IS NOT NULL;
CREATE INDEX payments_of_payer ON payments (payer_account) WHERE payer_account IS NOT NULL;
CALL make_entry('payments');
CALL keep_personal('payments', 'reference', 'payer_name', 'payer_account');

-- The sources of a payment. The same payment may be reported by webhook, in a bank file and by hand. A payment reported
-- in three ways is one payment with three sources.
CREATE TABLE payment_sources (
  identity text COLLATE "C" PRIMARY KEY,
  payment_id bigint NOT NULL REFERENCES payments,
  source text NOT NULL CONSTRAINT payment_source_kind_known
    CHECK (source IN ('hand', 'bank', 'processor', 'opening')),
  reference text NOT NULL,
  bank_line_id bigint CONSTRAINT payment_source_of_a_line_once UNIQUE REFERENCES bank_lines,
  CONSTRAINT payment_source_bank_has_line CHECK ((source = 'bank') = (bank_line_id IS NOT NULL))
);
CREATE INDEX payment_sources_of_payment ON payment_sources (payment_id);
CREATE INDEX payment_sources_by_reference ON payment_sources (reference);
CALL make_fact_of_event('payment_sources');
CALL keep_personal('payment_sources', 'reference');

-- Assignments: transfers of a payment's unapplied cash from one partner to another.
--   named    Finance or a manual entry names or corrects the payer.
--   assumed  The payer was unknown, and is taken from the first invoice that the payment is applied to.
--   part     A part pays another partner's invoice. The part returns to the payer when the application is undone.
-- The latest named or assumed assignment determines the payer. The unapplied part of a payment always belongs to the
-- payer.
CREATE TABLE payment_assignments (
  payment_assignment_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  payment_id bigint NOT NULL REFERENCES payments,
  from_partner_id text COLLATE "C" REFERENCES partners,
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  kind text NOT NULL CONSTRAINT assignment_kind_known CHECK (kind IN ('named', 'assumed', 'part')),
  -- The amount of unapplied cash that moved. 0 if the payment was completely applied.
  amount numeric NOT NULL,
  assigned_on date NOT NULL,
  entry_on date NOT NULL,
  CONSTRAINT assignment_changes CHECK (partner_id IS DISTINCT FROM from_partner_id),
  CONSTRAINT assignment_amount_positive CHECK (amount > 0 OR amount = 0 AND kind = 'named')
);
CREATE INDEX payment_assignments_of_payment ON payment_assignments (payment_id);
CREATE INDEX payment_assignments_of_partner ON payment_assignments (partner_id);
CALL make_entry('payment_assignments');

-- Payers' accounts that were forgotten: their earlier payments no longer identify the payer.
CREATE TABLE forgotten_payer_accounts (
  forgotten_payer_account_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  payer_account text COLLATE "C" NOT NULL CONSTRAINT forgotten_account_not_empty CHECK (payer_account <> '')
);
CALL make_fact_of_event('forgotten_payer_accounts');
CALL keep_personal('forgotten_payer_accounts', 'payer_account');


CREATE TABLE payment_applications (
  payment_application_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  payment_id bigint NOT NULL,
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT payment_application_positive CHECK (amount > 0),
  applied_on date NOT NULL,
  entry_on date NOT NULL,
  confidence numeric NOT NULL CONSTRAINT payment_application_confidence_range CHECK (confidence BETWEEN 0 AND 1),
  -- The reasons for the match: what was found and where, who paid, and how the amounts compare (Evidence in
  -- src/payments/match.ts).
  evidence jsonb NOT NULL CONSTRAINT payment_application_says_why CHECK (evidence->>'rule' IS NOT NULL AND evidence->>'why' IS NOT NULL),
  CONSTRAINT payment_application_document UNIQUE (payment_application_id, document_id, currency),
  CONSTRAINT payment_application_in_its_currency FOREIGN KEY (payment_id, currency)
    REFERENCES payments (payment_id, currency),
  CONSTRAINT payment_application_to_its_partner FOREIGN KEY (document_id, partner_id, currency)
    REFERENCES documents (document_id, partner_id, currency)
);
CREATE INDEX payment_applications_of_payment ON payment_applications (payment_id);
CREATE INDEX payment_applications_of_document ON payment_applications (document_id);
CREATE INDEX payment_applications_by_entry ON payment_applications USING brin (entry_on) WITH (pages_per_range = 16, autosummarize = on);
-- Few applications have such evidence, and the list of exceptions searches for it.
CREATE INDEX payment_applications_with_swapped_digits ON payment_applications (payment_id)
  WHERE jsonb_exists(evidence, 'digits_swapped');
CALL make_entry('payment_applications');
-- A match's reason names the payer, and the bank's text where it was found. What a processor's payment names is its link.
CREATE FUNCTION keep_texts_of_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.evidence := keep_texts_in(NEW.evidence,
    CASE NEW.evidence->>'rule' WHEN 'processor' THEN '"why"' ELSE '"(why|found)"' END);
  RETURN NEW;
END
$$;
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON payment_applications FOR EACH ROW
  EXECUTE FUNCTION keep_texts_of_evidence();

-- A shortfall that finance does not pursue. The shortfall is posted to bank charges together with the application, and
-- undone together with the application.
CREATE TABLE small_differences (
  payment_application_id bigint PRIMARY KEY,
  document_id bigint NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT small_difference_positive CHECK (amount > 0),
  entry_on date NOT NULL,
  CONSTRAINT small_difference_of_its_application FOREIGN KEY (payment_application_id, document_id, currency)
    REFERENCES payment_applications (payment_application_id, document_id, currency)
);
CREATE INDEX small_differences_of_document ON small_differences (document_id);
CALL make_entry('small_differences');
CREATE INDEX small_differences_of_event ON small_differences (event_id);

CREATE TABLE payment_suggestions (
  payment_suggestion_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  payment_id bigint NOT NULL REFERENCES payments,
  document_id bigint REFERENCES documents,
  same_as bigint REFERENCES payments,
  amount numeric NOT NULL CONSTRAINT payment_suggestion_positive CHECK (amount > 0),
  confidence numeric NOT NULL CONSTRAINT payment_suggestion_confidence_range CHECK (confidence BETWEEN 0 AND 1),
  evidence jsonb NOT NULL CONSTRAINT payment_suggestion_says_why CHECK (evidence->>'why' IS NOT NULL),
  CONSTRAINT payment_suggestion_of_one_thing CHECK (num_nonnulls(document_id, same_as) = 1),
  CONSTRAINT payment_suggestion_not_itself CHECK (same_as <> payment_id),
  CONSTRAINT payment_suggestion_once UNIQUE NULLS NOT DISTINCT (payment_id, document_id, same_as)
);
CALL make_fact_of_event('payment_suggestions');
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON payment_suggestions FOR EACH ROW
  EXECUTE FUNCTION keep_texts_of_evidence();

-- Whether money that is not a customer's may be booked to an account. Accounts that other facts move are excluded,
-- except bank charges.
CREATE FUNCTION is_bookable(account text) RETURNS boolean IMMUTABLE STRICT LANGUAGE sql
RETURN account ~ '^(assets|liabilities|equity|income|expenses)(:[a-z0-9][a-z0-9-]*)+$'
  AND account !~ ('^(assets:(receivable|bank|processor)|liabilities:(partner-credit|unapplied|tax)|'
    'equity:opening-balances|income:(sales|adjustments)|expenses:(partner-cut|bad-debts|processor-fees))(:|$)');

-- Reversals of payments and of applications.

CREATE TABLE payment_reversals (
  payment_reversal_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The origin of the reversal: a bank line, a refund or dispute of the processor, or a command.
  identity text COLLATE "C" NOT NULL CONSTRAINT payment_reversal_once UNIQUE,
  payment_id bigint NOT NULL,
  -- The partner whose unapplied cash is reduced, or NULL if not known.
  partner_id text COLLATE "C" REFERENCES partners,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT payment_reversal_positive CHECK (amount > 0),
  kind text NOT NULL CONSTRAINT payment_reversal_kind_known
    CHECK (kind IN ('returned', 'refunded', 'disputed', 'mistake', 'duplicate', 'other')),
  -- The return code, such as R01, or the processor's term.
  code text,
  reason text NOT NULL CONSTRAINT payment_reversal_has_reason CHECK (btrim(reason) <> ''),
  bank_line_id bigint CONSTRAINT payment_reversal_of_a_line_once UNIQUE REFERENCES bank_lines,
  duplicate_of bigint REFERENCES payments,
  -- For money that stays in the bank but pays no invoice: the account to which it is booked, such as income:interest.
  booked_to text COLLATE "C" CONSTRAINT payment_reversal_account_bookable CHECK (is_bookable(booked_to)),
  reversed_on date NOT NULL,
  entry_on date NOT NULL,
  CONSTRAINT payment_reversal_in_its_currency FOREIGN KEY (payment_id, currency) REFERENCES payments (payment_id, currency),
  CONSTRAINT payment_reversal_names_the_other CHECK ((kind = 'duplicate') = (duplicate_of IS NOT NULL)),
  CONSTRAINT payment_reversal_names_the_account CHECK ((kind = 'other') = (booked_to IS NOT NULL)),
  CONSTRAINT payment_reversal_not_of_itself CHECK (duplicate_of <> payment_id)
);
ALTER TABLE payment_reversals
  ADD CONSTRAINT payment_reversal_money UNIQUE (payment_reversal_id, currency, amount);
CREATE INDEX payment_reversals_of_payment ON payment_reversals (payment_id);
CALL make_entry('payment_reversals');

-- Reversals that were undone: the processor or the bank returned the money after all, for example because a dispute was
-- won.
CREATE TABLE payment_reinstatements (
  payment_reversal_id bigint PRIMARY KEY REFERENCES payment_reversals,
  partner_id text COLLATE "C" REFERENCES partners,
  reinstated_on date NOT NULL,
  entry_on date NOT NULL
);
CALL make_entry('payment_reinstatements');

CREATE TABLE payment_unapplications (
  payment_application_id bigint PRIMARY KEY REFERENCES payment_applications,
  payment_reversal_id bigint REFERENCES payment_reversals,
  unapplied_on date NOT NULL,
  entry_on date NOT NULL
);
CREATE INDEX payment_unapplications_of_reversal ON payment_unapplications (payment_reversal_id)
  WHERE payment_reversal_id IS NOT NULL;
CALL make_entry('payment_unapplications');

-- Payouts bring link money from the processor to the bank. A payout is not a payment, because the payments in it are
-- already recorded.
CREATE TABLE payouts (
  payout_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  bank_line_id bigint NOT NULL CONSTRAINT payout_of_a_line_once UNIQUE,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  direction text NOT NULL CONSTRAINT payout_comes_in CHECK (direction = 'credit'),
  received_on date NOT NULL,
  entry_on date NOT NULL,
  CONSTRAINT payout_is_its_line FOREIGN KEY (bank_line_id, currency, amount, direction)
    REFERENCES bank_lines (bank_line_id, currency, amount, direction)
);
CALL make_entry('payouts');

-- The contents of a payout: its payments, and the processor's fees on these payments.
CREATE TABLE payout_settlements (
  payout_id bigint PRIMARY KEY REFERENCES payouts,
  gross numeric NOT NULL,
  fees numeric NOT NULL CONSTRAINT payout_fees_not_negative CHECK (fees >= 0),
  entry_on date NOT NULL,
  evidence jsonb NOT NULL CONSTRAINT payout_settlement_says_why CHECK (evidence->>'why' IS NOT NULL)
);
CALL make_entry('payout_settlements');

CREATE TABLE payout_payments (
  payment_id bigint PRIMARY KEY REFERENCES payments,
  payout_id bigint NOT NULL REFERENCES payout_settlements,
  amount numeric NOT NULL CONSTRAINT payout_payment_positive CHECK (amount > 0)
);
CREATE INDEX payout_payments_of_payout ON payout_payments (payout_id);
CALL make_fact('payout_payments');

-- Each bank line has one outcome, with its reason.
CREATE TABLE bank_line_outcomes (
  bank_line_id bigint PRIMARY KEY REFERENCES bank_lines,
  outcome text NOT NULL CONSTRAINT bank_line_outcome_known
    CHECK (outcome IN ('payment', 'payout', 'return', 'refund', 'ignored')),
  payment_id bigint REFERENCES payments,
  payout_id bigint REFERENCES payouts,
  payment_reversal_id bigint REFERENCES payment_reversals,
  -- True for a debit that looks like the return of an unknown payment.
  needs_review boolean NOT NULL,
  reason text NOT NULL CONSTRAINT bank_line_outcome_has_reason CHECK (reason <> ''),
  CONSTRAINT bank_line_outcome_names_its_fact CHECK (
    (outcome = 'payment') = (payment_id IS NOT NULL) AND (outcome = 'payout') = (payout_id IS NOT NULL)
    AND (outcome = 'return') = (payment_reversal_id IS NOT NULL))
);
CREATE INDEX bank_line_outcomes_of_payment ON bank_line_outcomes (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX bank_line_outcomes_to_review ON bank_line_outcomes (bank_line_id) WHERE needs_review;
CALL make_fact_of_event('bank_line_outcomes');
CALL keep_personal('bank_line_outcomes', 'reason');

-- Credit refunds: open credit, or part of it, paid out to the partner.

CREATE TABLE credit_refunds (
  credit_refund_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT credit_refund_positive CHECK (amount > 0),
  method text NOT NULL CONSTRAINT credit_refund_method_known CHECK (method IN ('ach', 'wire', 'check', 'other')),
  account text NOT NULL,
  reference text NOT NULL,
  refunded_on date NOT NULL,
  entry_on date NOT NULL,
  CONSTRAINT credit_refund_of_a_document FOREIGN KEY (document_id, partner_id, currency)
    REFERENCES documents (document_id, partner_id, currency)
);
ALTER TABLE credit_refunds ADD CONSTRAINT credit_refund_money UNIQUE (credit_refund_id, currency, amount);
CREATE INDEX credit_refunds_of_document ON credit_refunds (document_id);
CALL make_entry('credit_refunds');
CALL keep_personal('credit_refunds', 'reference');

-- The bank returned the refund, or the refund was never sent. The credit is open again.
CREATE TABLE credit_refund_returns (
  credit_refund_id bigint PRIMARY KEY REFERENCES credit_refunds,
  -- The credit line that returned the refund, or NULL if the line is unknown.
  bank_line_id bigint CONSTRAINT credit_refund_return_of_a_line_once UNIQUE REFERENCES bank_lines,
  reason text NOT NULL CONSTRAINT credit_refund_return_has_reason CHECK (btrim(reason) <> ''),
  returned_on date NOT NULL,
  entry_on date NOT NULL
);
CALL make_entry('credit_refund_returns');

-- The bank's debit line that paid the refund of a credit note or payment. The line determines the refund's bank
-- account. If the refund was undone, its line may pay a different refund.
CREATE TABLE refund_matches (
  refund_match_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  bank_line_id bigint NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  direction text NOT NULL CONSTRAINT refund_match_goes_out CHECK (direction = 'debit'),
  credit_refund_id bigint CONSTRAINT refund_match_of_credit_once UNIQUE,
  payment_reversal_id bigint CONSTRAINT refund_match_of_payment_once UNIQUE,
  paid_on date NOT NULL,
  entry_on date NOT NULL,
  -- The reason. `apart_from` lists equal lines that pay other refunds. The reference distinguishes these lines from
  -- this line.
  evidence jsonb NOT NULL CONSTRAINT refund_match_says_why CHECK (evidence->>'why' IS NOT NULL),
  CONSTRAINT refund_match_of_one_refund CHECK (num_nonnulls(credit_refund_id, payment_reversal_id) = 1),
  CONSTRAINT refund_match_is_its_line FOREIGN KEY (bank_line_id, currency, amount, direction)
    REFERENCES bank_lines (bank_line_id, currency, amount, direction),
  CONSTRAINT refund_match_of_its_account FOREIGN KEY (bank_line_id, account, currency)
    REFERENCES bank_lines (bank_line_id, account, currency),
  CONSTRAINT refund_match_is_its_credit FOREIGN KEY (credit_refund_id, currency, amount)
    REFERENCES credit_refunds (credit_refund_id, currency, amount),
  CONSTRAINT refund_match_is_its_reversal FOREIGN KEY (payment_reversal_id, currency, amount)
    REFERENCES payment_reversals (payment_reversal_id, currency, amount)
);
CREATE INDEX refund_matches_of_line ON refund_matches (bank_line_id);
CALL make_entry('refund_matches');
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON refund_matches FOR EACH ROW
  EXECUTE FUNCTION keep_texts_of_evidence();

-- Bookings of bank lines that are neither a customer's nor a processor's money, such as bank charges, interest and
-- transfers between our accounts. Each booking replaces the previous booking of its line. A booking without an account
-- only takes the previous booking back.
CREATE TABLE bank_bookings (
  bank_booking_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  bank_line_id bigint NOT NULL,
  previous bigint,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  direction text NOT NULL,
  booked_to text COLLATE "C" CONSTRAINT bank_booking_account_bookable CHECK (is_bookable(booked_to)),
  reason text NOT NULL CONSTRAINT bank_booking_has_reason CHECK (btrim(reason) <> ''),
  booked_on date NOT NULL,
  entry_on date NOT NULL,
  CONSTRAINT bank_booking_of_line UNIQUE (bank_booking_id, bank_line_id),
  CONSTRAINT bank_booking_replaces_one UNIQUE NULLS NOT DISTINCT (bank_line_id, previous),
  CONSTRAINT bank_booking_replaces_its_own FOREIGN KEY (previous, bank_line_id)
    REFERENCES bank_bookings (bank_booking_id, bank_line_id),
  CONSTRAINT bank_booking_begins_with_account CHECK (num_nonnulls(previous, booked_to) > 0),
  CONSTRAINT bank_booking_is_its_line FOREIGN KEY (bank_line_id, currency, amount, direction)
    REFERENCES bank_lines (bank_line_id, currency, amount, direction),
  CONSTRAINT bank_booking_of_its_account FOREIGN KEY (bank_line_id, account, currency)
    REFERENCES bank_lines (bank_line_id, account, currency)
);
CREATE INDEX bank_bookings_replaced ON bank_bookings (previous) WHERE previous IS NOT NULL;
CALL make_entry('bank_bookings');

CREATE FUNCTION payload_hash(payload jsonb) RETURNS text IMMUTABLE STRICT LANGUAGE sql
RETURN encode(sha256(convert_to(payload::text, 'UTF8')), 'hex');

-- Events are stored in the form in which they were received, before they are processed. An event without an outcome
-- waits to be processed, or for its payment.
CREATE TABLE processor_events (
  processor_event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The connected account. Empty for our own account.
  account text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  livemode boolean NOT NULL,
  created timestamptz NOT NULL,
  -- The payload contains data of payers. After an erasure (processor_event_erasures) the payload is NULL, but
  -- payload_sha256 stays.
  payload jsonb,
  payload_sha256 text NOT NULL,
  received_at timestamptz NOT NULL,
  CONSTRAINT processor_event_once UNIQUE (account, id),
  CONSTRAINT processor_event_payload_is_hashed CHECK (payload_sha256 = payload_hash(payload) OR payload IS NULL)
);

-- The part of an event that the log covers, in addition to the event's outcome. Erasing the payload does not change
-- this hash.
CREATE FUNCTION processor_event_sha256(processor_event_id bigint) RETURNS text STABLE LANGUAGE sql AS $$
  SELECT encode(sha256(convert_to(concat_ws(' ', e.account, e.id, e.type, e.livemode, e.created,
           coalesce(payload_hash(e.payload), e.payload_sha256)), 'UTF8')), 'hex')
  FROM processor_events e WHERE e.processor_event_id = $1
$$;

CREATE TABLE processor_event_outcomes (
  processor_event_id bigint PRIMARY KEY REFERENCES processor_events,
  -- effect: the event changed something. nothing: the event was already known or is irrelevant. manual_review: finance
  -- decides.
  outcome text NOT NULL CONSTRAINT processor_event_outcome_known CHECK (outcome IN ('effect', 'nothing', 'manual_review')),
  payment_id bigint REFERENCES payments,
  reason text NOT NULL CONSTRAINT processor_event_outcome_has_reason CHECK (reason <> '')
);
CALL make_fact_of_event('processor_event_outcomes');
CALL keep_personal('processor_event_outcomes', 'reason');

CREATE TABLE disputes (
  dispute_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  identity text COLLATE "C" NOT NULL CONSTRAINT dispute_once UNIQUE,
  payment_id bigint NOT NULL REFERENCES payments,
  amount numeric NOT NULL CONSTRAINT dispute_amount_positive CHECK (amount > 0),
  reason text NOT NULL,
  opened_on date NOT NULL
);
CREATE INDEX disputes_of_payment ON disputes (payment_id);
CALL make_fact_of_event('disputes');

CREATE TABLE dispute_outcomes (
  dispute_id bigint NOT NULL REFERENCES disputes,
  outcome text NOT NULL CONSTRAINT dispute_outcome_known CHECK (outcome IN ('won', 'lost', 'closed')),
  decided_on date NOT NULL,
  -- A dispute that was lost may be won on appeal. The last recorded outcome is valid.
  PRIMARY KEY (dispute_id, outcome)
);
CALL make_fact_of_event('dispute_outcomes');

CREATE VIEW last_dispute_outcomes AS
SELECT DISTINCT ON (dispute_id) dispute_id, outcome, decided_on FROM dispute_outcomes ORDER BY dispute_id, log_no DESC;

-- Closings of exceptions that can be resolved in no other way. Examples are a bank line that looks like a return but
-- matches no payment, an unreadable event, or a possible duplicate that is a different payment and pays nothing yet.
CREATE TABLE payment_exception_closings (
  payment_exception_closing_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  processor_event_id bigint CONSTRAINT payment_exception_event_closed_once UNIQUE REFERENCES processor_event_outcomes,
  bank_line_id bigint CONSTRAINT payment_exception_line_closed_once UNIQUE REFERENCES bank_line_outcomes,
  bank_statement_id bigint CONSTRAINT payment_exception_statement_closed_once UNIQUE REFERENCES bank_statements,
  payment_id bigint CONSTRAINT payment_exception_payment_closed_once UNIQUE REFERENCES payments,
  reason text NOT NULL CONSTRAINT payment_exception_closing_has_reason CHECK (reason <> ''),
  CONSTRAINT payment_exception_closing_of_one_thing
    CHECK (num_nonnulls(processor_event_id, bank_line_id, bank_statement_id, payment_id) = 1)
);
CALL make_fact_of_event('payment_exception_closings');

-- Recording an erasure erases the event's payload. Nothing else can erase a payload.
CREATE TABLE processor_event_erasures (
  processor_event_id bigint PRIMARY KEY REFERENCES processor_event_outcomes
);
CALL make_fact_of_event('processor_event_erasures');

CREATE FUNCTION is_erasure(before processor_events, after processor_events) RETURNS boolean STABLE LANGUAGE sql
RETURN after.payload IS NULL AND to_jsonb(after) - 'payload' = to_jsonb(before) - 'payload'
  AND EXISTS (SELECT FROM processor_event_erasures x WHERE x.processor_event_id = before.processor_event_id);
CALL make_append_only('processor_events', 'UPDATE', 'is_erasure(OLD, NEW)');

-- The function runs as its owner, so that the program needs no right to update events.
CREATE FUNCTION erase_payloads(processor_event_ids bigint[]) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  UPDATE processor_events e SET payload = NULL
  WHERE e.processor_event_id = ANY (processor_event_ids) AND e.payload IS NOT NULL;
END;

CREATE FUNCTION erase_recorded_payloads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM erase_payloads((SELECT array_agg(processor_event_id) FROM added));
  RETURN NULL;
END
$$;
CALL run_after_insert('payloads_are_erased', 'processor_event_erasures', 'erase_recorded_payloads');

-- The following views contain only facts that were not undone.

CREATE VIEW live_payment_applications AS
SELECT * FROM payment_applications a
WHERE NOT EXISTS (SELECT FROM payment_unapplications u WHERE u.payment_application_id = a.payment_application_id);

CREATE VIEW live_small_differences AS
SELECT * FROM small_differences s
WHERE NOT EXISTS (SELECT FROM payment_unapplications u WHERE u.payment_application_id = s.payment_application_id);

-- The part of a document's credited amount that was posted to bank charges.
CREATE VIEW document_bank_charges AS
SELECT document_id, sum(amount) AS bank_charges FROM live_small_differences GROUP BY document_id;

CREATE VIEW live_payment_reversals AS
SELECT * FROM payment_reversals r
WHERE NOT EXISTS (SELECT FROM payment_reinstatements i WHERE i.payment_reversal_id = r.payment_reversal_id);

CREATE VIEW live_credit_refunds AS
SELECT * FROM credit_refunds f
WHERE NOT EXISTS (SELECT FROM credit_refund_returns b WHERE b.credit_refund_id = f.credit_refund_id);

-- Excludes matches of refunds that were returned, because their bank lines did not pay these refunds permanently.
CREATE VIEW live_refund_matches AS
SELECT * FROM refund_matches m
WHERE NOT EXISTS (SELECT FROM credit_refund_returns b WHERE b.credit_refund_id = m.credit_refund_id)
  AND NOT EXISTS (SELECT FROM payment_reinstatements i WHERE i.payment_reversal_id = m.payment_reversal_id);

CREATE VIEW live_bank_bookings AS
SELECT * FROM bank_bookings b
WHERE booked_to IS NOT NULL AND NOT EXISTS (SELECT FROM bank_bookings n WHERE n.previous = b.bank_booking_id);

-- The present state of each bank line: what the import found, the refund that the line pays, or its booking. A line
-- that is `unbooked` is in no account of the books.
CREATE VIEW bank_line_states AS
SELECT l.bank_line_id, o.payment_id, b.booked_to, coalesce(b.reason, personal(o.reason)) AS reason,
       CASE WHEN o.outcome NOT IN ('ignored', 'refund') THEN o.outcome
            WHEN EXISTS (SELECT FROM payment_reversals r WHERE r.bank_line_id = l.bank_line_id)
              OR EXISTS (SELECT FROM credit_refund_returns r WHERE r.bank_line_id = l.bank_line_id) THEN 'return'
            WHEN b.bank_booking_id IS NOT NULL THEN 'booked'
            WHEN EXISTS (SELECT FROM live_refund_matches m WHERE m.bank_line_id = l.bank_line_id) THEN 'refund'
            ELSE 'unbooked' END AS state
FROM bank_lines l JOIN bank_line_outcomes o USING (bank_line_id) LEFT JOIN live_bank_bookings b USING (bank_line_id);

CREATE FUNCTION refuse_line_of_two_kinds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  IF (SELECT count(*) FROM (
        SELECT bank_line_id FROM live_refund_matches UNION ALL SELECT bank_line_id FROM live_bank_bookings
        UNION ALL SELECT bank_line_id FROM bank_line_outcomes WHERE outcome IN ('payment', 'payout')
        UNION ALL SELECT bank_line_id FROM payment_reversals UNION ALL SELECT bank_line_id FROM credit_refund_returns) AS kinds
      WHERE bank_line_id = NEW.bank_line_id) > 1 THEN
    PERFORM refuse(TG_NAME, format('bank line %s has two meanings', NEW.bank_line_id));
  END IF;
  RETURN NULL;
END
$$;
CALL check_at_commit('refund_match_of_line_once', 'refund_matches', 'refuse_line_of_two_kinds()');
CALL check_at_commit('bank_booking_of_line_once', 'bank_bookings', 'refuse_line_of_two_kinds()');
CALL check_at_commit('reversal_of_line_once', 'payment_reversals',
                     'refuse_line_of_two_kinds()', 'NEW.bank_line_id IS NOT NULL');
CALL check_at_commit('refund_return_of_line_once', 'credit_refund_returns',
                     'refuse_line_of_two_kinds()', 'NEW.bank_line_id IS NOT NULL');

-- The applied, reversed and unapplied amounts of each payment, and its payer if known. `stays`: the money is in the
-- bank, because a part of the payment was not reversed, or was booked to a different account.
CREATE VIEW payment_balances AS
SELECT payment_id, partner_id, currency, amount, applied, reversed, amount - applied - reversed AS unapplied,
       CASE WHEN reversed = amount THEN 'reversed' WHEN applied = amount - reversed THEN 'applied'
            WHEN applied = 0 THEN 'unapplied' ELSE 'partly_applied' END AS status,
       reversed - booked_to_other < amount AS stays
FROM (
  SELECT p.payment_id, p.currency, p.amount,
         coalesce((SELECT a.partner_id FROM payment_assignments a
                   WHERE a.payment_id = p.payment_id AND a.kind <> 'part'
                   ORDER BY a.payment_assignment_id DESC LIMIT 1), p.partner_id) AS partner_id,
         (SELECT coalesce(sum(a.amount), 0) FROM live_payment_applications a
          WHERE a.payment_id = p.payment_id) AS applied,
         (SELECT coalesce(sum(r.amount), 0) FROM live_payment_reversals r
          WHERE r.payment_id = p.payment_id) AS reversed,
         (SELECT coalesce(sum(r.amount), 0) FROM live_payment_reversals r
          WHERE r.payment_id = p.payment_id AND r.kind = 'other') AS booked_to_other
  FROM payments p
) AS sums;

-- The items that were open when the books of a month were closed: documents with their balances, and unapplied cash by
-- payment and partner. Later open items are computed from these items and the facts since then, whatever the age of the
-- ledger. Both tables are derived from facts, so they are not facts of the log, and `verify` derives them again.
CREATE TABLE book_open_documents (
  month billing_month NOT NULL CONSTRAINT book_open_document_of_closed_books
    REFERENCES book_closes DEFERRABLE INITIALLY DEFERRED,
  document_id bigint NOT NULL REFERENCES documents,
  balance numeric NOT NULL CONSTRAINT book_open_document_not_zero CHECK (balance <> 0),
  PRIMARY KEY (month, document_id)
);
CALL make_append_only('book_open_documents');

CREATE TABLE book_unapplied_cash (
  month billing_month NOT NULL CONSTRAINT book_unapplied_cash_of_closed_books
    REFERENCES book_closes DEFERRABLE INITIALLY DEFERRED,
  payment_id bigint NOT NULL REFERENCES payments,
  partner_id text COLLATE "C" REFERENCES partners,
  amount numeric NOT NULL CONSTRAINT book_unapplied_cash_not_zero CHECK (amount <> 0),
  CONSTRAINT book_unapplied_cash_once UNIQUE NULLS NOT DISTINCT (month, payment_id, partner_id)
);
CALL make_append_only('book_unapplied_cash');

-- The items are stored in the transaction that closes the books, before the close itself. Any later row would belong to
-- no close, so the trigger refuses later rows.
CREATE FUNCTION refuse_open_item_of_closed_books() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  closed text;
BEGIN
  PERFORM lock_ledger();
  SELECT min(month) INTO closed FROM added JOIN book_closes USING (month);
  IF closed IS NOT NULL THEN
    PERFORM refuse(TG_TABLE_NAME || '_books_open',
                   format('what was open at the end of %s was stored when its books were closed', closed));
  END IF;
  RETURN NULL;
END
$$;
CALL run_after_insert('entry_books_open', 'book_open_documents', 'refuse_open_item_of_closed_books');
CALL run_after_insert('entry_books_open', 'book_unapplied_cash', 'refuse_open_item_of_closed_books');

-- The last month with closed books that ended on or before the day. NULL if there is none.
CREATE FUNCTION books_by(as_of date) RETURNS text STABLE LANGUAGE sql AS $$
  SELECT max(month) FROM book_closes WHERE (month_after(month) || '-01')::date <= as_of + 1
$$;

-- Every fact that changes the unapplied cash of a payment, by the partner that owns the cash, with the columns of
-- balance_changes.
CREATE VIEW cash_changes (payment_id, partner_id, amount, entry_on, undone, undone_on) AS
SELECT payment_id, partner_id, amount, entry_on, false, NULL::date FROM payments
UNION ALL
SELECT payment_id, from_partner_id, -amount, entry_on, false, NULL FROM payment_assignments
UNION ALL
SELECT payment_id, partner_id, amount, entry_on, false, NULL FROM payment_assignments
UNION ALL
SELECT a.payment_id, a.partner_id, -a.amount, a.entry_on, u.payment_application_id IS NOT NULL, u.entry_on
FROM payment_applications a LEFT JOIN payment_unapplications u USING (payment_application_id)
UNION ALL
SELECT payment_id, partner_id, -amount, entry_on, false, NULL FROM payment_reversals
UNION ALL
SELECT r.payment_id, i.partner_id, r.amount, i.entry_on, false, NULL
FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id);

-- The unapplied cash on a day, by payment and partner. The day 'infinity' means now. Amounts that were undone by that
-- day are not counted. The function is PL/pgSQL, so that each query is planned for its starting day.
CREATE FUNCTION unapplied_cash(as_of date)
RETURNS TABLE (payment_id bigint, partner_id text, amount numeric) STABLE ROWS 200 LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  books text := books_by(as_of);
  since date := coalesce((month_after(books) || '-01')::date, '-infinity');
BEGIN
  RETURN QUERY
  SELECT payment_id, partner_id, sum(amount)
  FROM (
    SELECT payment_id, partner_id, amount FROM book_unapplied_cash WHERE month = books
    UNION ALL
    SELECT payment_id, partner_id, amount FROM cash_changes
    WHERE entry_on BETWEEN since AND as_of AND (undone_on IS NULL OR undone_on > as_of)
    UNION ALL
    SELECT payment_id, partner_id, -amount FROM cash_changes
    WHERE undone_on BETWEEN since AND as_of AND entry_on < since
  ) AS moved
  GROUP BY payment_id, partner_id HAVING sum(amount) <> 0;
END
$$;

-- The payments with unapplied cash, computed in one pass. payment_balances would compute the sums of each payment
-- separately.
CREATE VIEW unapplied_payments AS
SELECT payment_id FROM unapplied_cash('infinity') GROUP BY payment_id HAVING sum(amount) > 0;

-- True if the payload of an event is no longer needed: the event was processed, finance made its decisions, and the
-- payment is applied or refunded and not disputed.
CREATE FUNCTION payload_may_go(processor_event_id bigint) RETURNS boolean STABLE LANGUAGE sql
RETURN EXISTS (
  SELECT FROM processor_events e JOIN processor_event_outcomes o ON o.processor_event_id = e.processor_event_id
  WHERE e.processor_event_id = payload_may_go.processor_event_id AND e.received_at < now() - interval '30 days'
    AND (o.outcome <> 'manual_review' OR EXISTS (
      SELECT FROM payment_exception_closings c WHERE c.processor_event_id = o.processor_event_id))
    AND NOT EXISTS (SELECT FROM payment_balances b WHERE b.payment_id = o.payment_id AND b.unapplied <> 0)
    AND NOT EXISTS (SELECT FROM disputes d WHERE d.payment_id = o.payment_id
                      AND NOT EXISTS (SELECT FROM dispute_outcomes w WHERE w.dispute_id = d.dispute_id)));

CREATE FUNCTION refuse_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM refuse('erased_payload_is_not_needed',
                 format('the payload of processor event %s is still needed', NEW.processor_event_id));
END
$$;
CREATE TRIGGER erased_payload_is_not_needed BEFORE INSERT ON processor_event_erasures FOR EACH ROW
  WHEN (payload_may_go(NEW.processor_event_id) IS NOT TRUE) EXECUTE FUNCTION refuse_erasure();

-- The unapplied part of each payment by the partner that owns it.
CREATE VIEW payment_cash AS
SELECT payment_id, partner_id, sum(amount) AS amount FROM cash_changes WHERE NOT undone GROUP BY payment_id, partner_id;

-- The accounts that payers have paid from, with their partners. An account is learned from a payment that is applied,
-- or whose payer was named, after the account was last forgotten. Link payments are excluded, because their money comes
-- from the processor's account. `by_finance`: finance determined the payer of at least one payment, by naming the
-- payer, applying the payment or entering it. An erased account is unknown.
CREATE VIEW payer_accounts AS
SELECT t.text AS payer_account, b.partner_id, personal(p.payer_name) AS payer_name,
       bool_or(p.source = 'hand'
         OR EXISTS (SELECT FROM payment_assignments g WHERE g.payment_id = p.payment_id AND g.kind = 'named')
         OR EXISTS (SELECT FROM live_payment_applications a
                    WHERE a.payment_id = p.payment_id AND a.evidence->>'rule' = 'by_hand')) AS by_finance,
       count(*) AS payments, max(p.received_on) AS last_received_on
FROM payments p JOIN personal_texts t ON t.commitment = p.payer_account JOIN payment_balances b USING (payment_id)
WHERE b.partner_id IS NOT NULL AND p.method <> 'link'
  AND coalesce(greatest(
        (SELECT max(a.event_id) FROM live_payment_applications a WHERE a.payment_id = p.payment_id),
        (SELECT max(g.event_id) FROM payment_assignments g WHERE g.payment_id = p.payment_id AND g.kind = 'named')), 0)
    > coalesce((SELECT max(f.event_id) FROM forgotten_payer_accounts f WHERE personal(f.payer_account) = t.text), 0)
GROUP BY t.text, b.partner_id, personal(p.payer_name);

-- Every fact that changes the open amount of a document. Balances, open items and the journal are built on this view,
-- so a new kind of fact needs one more SELECT here. The columns are:
--   the document, and the kind of document that the fact applies to
--   the column of document_balances that the fact changes, the fact and its id
--   the amount (negative if it reduces the open amount), entry date, true date, and fact number
--   whether the fact is undone, and the undoing fact with its dates, its number and its time of recording
--   the journal entry: debit, credit, our bank account, and the bank account that a returned amount arrived on, if it
--   is a different account. If the fact is undone, the entry is reversed. Debit and credit are NULL if another row has
--   the entry: document_amounts for an issue, and the invoice's row for applied credit.
--   the payment, the credit note or the text that the entry refers to
-- To select facts that were not undone, filter by NOT undone. PostgreSQL then reads only the index of the table that has
-- the undoing facts.
CREATE VIEW balance_changes (
  document_id, document, changes, fact, id, amount, entry_on, dated_on, recorded,
  undone, undone_by, undone_on, undone_dated_on, undone_recorded, undone_at,
  debit, credit, bank_account, returned_to, payment_id, credit_note_id, reference
) AS
SELECT d.document_id, d.document, 'amount_due', 'document_issued', d.document_id, d.gross,
       d.entry_on, d.issued_on, d.log_no,
       v.document_id IS NOT NULL, 'document_voided', v.entry_on, v.voided_on, v.log_no, v.recorded_at,
       NULL, NULL, NULL, NULL, NULL::bigint, NULL::bigint, NULL
FROM documents d LEFT JOIN voids v ON v.document_id = d.document_id
WHERE d.document <> 'statement'

UNION ALL
SELECT a.invoice_id, 'invoice', 'credited', 'credit_applied', a.credit_application_id, -a.amount,
       a.entry_on, a.applied_on, a.log_no,
       r.credit_application_id IS NOT NULL, 'credit_released', r.entry_on, r.released_on, r.log_no, r.recorded_at,
       'liabilities:partner-credit', 'assets:receivable:billed', NULL, NULL, NULL, a.credit_note_id, NULL
FROM credit_applications a LEFT JOIN credit_releases r USING (credit_application_id)

UNION ALL
-- The same fact from the side of the credit note.
SELECT a.credit_note_id, 'credit_note', 'credited', 'credit_applied', a.credit_application_id, -a.amount,
       a.entry_on, a.applied_on, a.log_no,
       r.credit_application_id IS NOT NULL, 'credit_released', r.entry_on, r.released_on, r.log_no, r.recorded_at,
       NULL, NULL, NULL, NULL, NULL::bigint, NULL::bigint, NULL
FROM credit_applications a LEFT JOIN credit_releases r USING (credit_application_id)

UNION ALL
SELECT w.document_id, 'invoice', 'credited', 'written_off', w.write_off_id, -w.amount,
       w.entry_on, w.written_off_on, w.log_no,
       r.write_off_id IS NOT NULL, 'write_off_undone', r.entry_on, r.reversed_on, r.log_no, r.recorded_at,
       'expenses:bad-debts', 'assets:receivable:billed', NULL, NULL, NULL, NULL, NULL
FROM write_offs w LEFT JOIN write_off_reversals r USING (write_off_id)

UNION ALL
SELECT a.document_id, 'invoice', 'amount_paid', 'payment_applied', a.payment_application_id, -a.amount,
       a.entry_on, a.applied_on, a.log_no,
       u.payment_application_id IS NOT NULL, 'payment_unapplied', u.entry_on, u.unapplied_on, u.log_no, u.recorded_at,
       'liabilities:unapplied', 'assets:receivable:billed', NULL, NULL, a.payment_id, NULL, NULL
FROM payment_applications a LEFT JOIN payment_unapplications u USING (payment_application_id)

UNION ALL
SELECT s.document_id, 'invoice', 'credited', 'small_difference', s.payment_application_id, -s.amount,
       s.entry_on, a.applied_on, s.log_no,
       u.payment_application_id IS NOT NULL, 'small_difference_undone', u.entry_on, u.unapplied_on, u.log_no, u.recorded_at,
       'expenses:bank-charges', 'assets:receivable:billed', NULL, NULL, a.payment_id, NULL, NULL
FROM small_differences s LEFT JOIN payment_unapplications u USING (payment_application_id)
LEFT JOIN payment_applications a USING (payment_application_id)

UNION ALL
SELECT f.document_id, 'credit_note', 'amount_paid', 'credit_refunded', f.credit_refund_id, -f.amount,
       f.entry_on, f.refunded_on, f.log_no,
       b.credit_refund_id IS NOT NULL, 'credit_refund_returned', b.entry_on, b.returned_on, b.log_no, b.recorded_at,
       'liabilities:partner-credit', 'assets:bank', f.account,
       coalesce((SELECT l.account FROM bank_lines l WHERE l.bank_line_id = b.bank_line_id),
         (SELECT m.account FROM refund_matches m WHERE m.credit_refund_id = f.credit_refund_id)), NULL, NULL, f.reference
FROM credit_refunds f LEFT JOIN credit_refund_returns b USING (credit_refund_id);

-- amount_due = gross - credit_applied, both as issued. balance = amount_due - credited - amount_paid. A balance of zero
-- means paid. For an invoice, `credited` is the amount that was settled without cash since its issue: applied credit,
-- write-offs and small differences. Credit that was applied at issue and later taken back is subtracted. For a credit
-- note, `credited` is the amount applied to invoices, and `amount_paid` the amount refunded. Nothing is due on a
-- statement, and nothing is owed on a void document. The view is in this file because it needs the tables of payments.
CREATE VIEW document_balances AS
SELECT d.document_id, due.amount_due, settled.credited, settled.amount_paid,
       CASE WHEN v.document_id IS NULL THEN due.amount_due - settled.credited - settled.amount_paid ELSE 0 END AS balance,
       CASE WHEN v.document_id IS NOT NULL THEN 'void'
            WHEN due.amount_due - settled.credited - settled.amount_paid = 0 THEN 'paid' ELSE 'open' END AS status
FROM documents d LEFT JOIN voids v ON v.document_id = d.document_id
CROSS JOIN LATERAL (
  SELECT CASE WHEN d.document = 'statement' THEN 0 ELSE d.gross - d.credit_applied END AS amount_due) AS due
CROSS JOIN LATERAL (
  SELECT coalesce(-sum(c.amount) FILTER (WHERE c.changes = 'credited'), 0)
           - CASE WHEN v.document_id IS NULL THEN d.credit_applied ELSE 0 END AS credited,
         coalesce(-sum(c.amount) FILTER (WHERE c.changes = 'amount_paid'), 0) AS amount_paid
  FROM balance_changes c
  WHERE c.document_id = d.document_id AND c.document = d.document AND c.changes <> 'amount_due' AND NOT c.undone
  -- OFFSET 0 makes PostgreSQL compute each sum once, instead of once for every column that uses the sum.
  OFFSET 0) AS settled;

-- The documents that were open on a day, with their balances. The day 'infinity' means now. A void document is never
-- open, whatever was applied to it and released. Therefore, issues are not joined with voids.
CREATE FUNCTION open_items(as_of date)
RETURNS TABLE (document_id bigint, balance numeric) STABLE ROWS 1000 LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  books text := books_by(as_of);
  since date := coalesce((month_after(books) || '-01')::date, '-infinity');
BEGIN
  RETURN QUERY
  SELECT moved.document_id, sum(moved.amount)
  FROM (
    SELECT document_id, balance AS amount FROM book_open_documents WHERE month = books
    UNION ALL
    SELECT document_id, amount FROM balance_changes
    WHERE entry_on BETWEEN since AND as_of AND (changes = 'amount_due' OR undone_on IS NULL OR undone_on > as_of)
    UNION ALL
    SELECT document_id, -amount FROM balance_changes
    WHERE undone_on BETWEEN since AND as_of AND entry_on < since AND changes <> 'amount_due'
  ) AS moved
  WHERE NOT EXISTS (
    SELECT FROM voids v WHERE v.document_id = moved.document_id AND v.entry_on <= as_of)
  GROUP BY moved.document_id HAVING sum(moved.amount) <> 0;
END
$$;

-- The documents with the status open, computed in one pass. document_balances would compute the sums of each document
-- separately.
CREATE VIEW open_documents AS SELECT document_id FROM open_items('infinity');

-- The credit notes with a balance and without a hold, which can be applied when an invoice is issued.
CREATE VIEW applicable_credit AS
SELECT d.document_id, d.number, d.purpose, d.partner_id, d.currency, b.balance
FROM documents d JOIN document_balances b USING (document_id)
WHERE d.document = 'credit_note' AND b.status = 'open'
  AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = d.document_id);

CREATE VIEW payment_history AS
SELECT a.document_id, a.recorded_at AS at, 'paid' AS action,
       jsonb_build_object('amount', a.amount::text, 'reference', personal(p.reference),
                          'why', personal(a.evidence->>'why')) AS facts,
       a.event_id
FROM payment_applications a JOIN payments p USING (payment_id)
UNION ALL
SELECT s.document_id, s.recorded_at, 'small_difference', jsonb_build_object('amount', s.amount::text), s.event_id
FROM small_differences s
UNION ALL
SELECT a.document_id, u.recorded_at, 'unpaid',
       jsonb_build_object('amount', a.amount::text, 'reference', personal(p.reference), 'kind', r.kind, 'code', r.code,
         'reason', r.reason, 'charges', s.amount::text),
       u.event_id
FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
JOIN payments p USING (payment_id)
LEFT JOIN payment_reversals r ON r.payment_reversal_id = u.payment_reversal_id
LEFT JOIN small_differences s ON s.payment_application_id = a.payment_application_id
UNION ALL
SELECT document_id, recorded_at, 'refunded',
       jsonb_build_object('amount', amount::text, 'reference', personal(reference), 'on', refunded_on::text), event_id
FROM credit_refunds
UNION ALL
SELECT f.document_id, b.recorded_at, 'refund_returned',
       jsonb_build_object('amount', f.amount::text, 'reason', b.reason), b.event_id
FROM credit_refund_returns b JOIN credit_refunds f USING (credit_refund_id);

-- The last day on which a document was reopened, or on which part of a payment was unapplied. A later settlement is
-- entered on that day at the earliest. With an earlier date, a report as of a day in between would count the money
-- twice. (Banks date some lines a day ahead.) An opened item exists from the day of the cut-over.
CREATE FUNCTION document_reopened_on(bigint) RETURNS date STABLE LANGUAGE sql AS $$
  SELECT greatest(
    (SELECT d.entry_on FROM documents d WHERE d.document_id = $1 AND d.opening_id IS NOT NULL),
    -- Not max(), for which PostgreSQL would plan the view twice.
    (SELECT c.undone_on FROM balance_changes c WHERE c.document_id = $1 AND c.undone ORDER BY c.undone_on DESC LIMIT 1))
$$;

CREATE FUNCTION payment_reopened_on(payment bigint) RETURNS date STABLE LANGUAGE sql AS $$
  SELECT greatest(
    (SELECT p.entry_on FROM payments p WHERE p.payment_id = payment AND p.opening_id IS NOT NULL),
    (SELECT max(u.entry_on) FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
     WHERE a.payment_id = payment),
    (SELECT max(i.entry_on) FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
     WHERE r.payment_id = payment),
    (SELECT max(g.entry_on) FROM payment_assignments g WHERE g.payment_id = payment AND g.kind <> 'part'))
$$;

-- The documents and unapplied cash of an opening must add up to its totals in each currency.
CREATE FUNCTION refuse_opening_that_does_not_add_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  off record;
BEGIN
  SELECT * INTO off FROM opening_differences x WHERE x.opening_id = NEW.opening_id LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('opening_adds_up', format('opening %s does not add up in %s', NEW.opening_id, off.currency));
  END IF;
  RETURN NULL;
END
$$;
CREATE VIEW opening_sums AS
SELECT opening_id, currency, count(*)::integer AS items, sum(invoices) AS invoices, sum(credits) AS credits,
       sum(cash) AS cash
FROM (SELECT opening_id, currency, CASE document WHEN 'invoice' THEN invoice_amount ELSE 0 END AS invoices,
             CASE document WHEN 'credit_note' THEN invoice_amount ELSE 0 END AS credits, 0 AS cash
      FROM documents WHERE opening_id IS NOT NULL
      UNION ALL
      SELECT opening_id, currency, 0, 0, amount FROM payments WHERE opening_id IS NOT NULL) AS items
GROUP BY opening_id, currency;
CREATE VIEW opening_differences AS
SELECT opening_id, currency, t.items, s.items AS items_found, t.invoices, s.invoices AS invoices_found, t.credits,
       s.credits AS credits_found, t.cash, s.cash AS cash_found
FROM opening_totals t FULL JOIN opening_sums s USING (opening_id, currency)
WHERE (t.items, t.invoices, t.credits, t.cash) IS DISTINCT FROM (s.items, s.invoices, s.credits, s.cash);
CALL check_at_commit('opening_adds_up', 'openings', 'refuse_opening_that_does_not_add_up()');

-- Bank statements that do not continue the earlier statements of their account. Normally, the opening balance of a
-- statement is a balance inside an earlier statement, or the closing balance of an earlier statement plus the lines
-- booked in between. In all other cases a file is missing or wrong. The first statement of an account has nothing to
-- continue. Closed exceptions are omitted.
CREATE VIEW bank_statement_breaks AS
WITH dated AS (
  SELECT s.bank_statement_id, s.bank_file_id, s.account, s.currency, s.opening, s.closing, s.closed_on,
         coalesce(min(l.bank_booked_on), s.closed_on) AS first_on,
         greatest(s.closed_on, max(l.bank_booked_on)) AS last_on
  FROM bank_statements s
  LEFT JOIN bank_statement_lines p ON p.bank_statement_id = s.bank_statement_id
  LEFT JOIN bank_lines l ON l.bank_line_id = p.bank_line_id
  WHERE s.opening IS NOT NULL AND s.closing IS NOT NULL
  GROUP BY s.bank_statement_id
), placed AS (
  SELECT *, row_number() OVER (PARTITION BY account, currency ORDER BY first_on, last_on, bank_statement_id) AS place FROM dated
)
SELECT s.bank_statement_id, s.account, s.currency, s.first_on, s.opening - t.closing AS amount,
       -- The first day for which lines may be missing. If there is no closing date, the last day of a file may be
       -- incomplete.
       least(s.first_on, coalesce(t.closed_on + 1, t.last_on)) AS gap_from,
       'bank-statement-' || s.bank_statement_id AS exception,
       format('%s of account %s opens with %s, but %s ends with %s on %s: %s',
         regexp_replace(f.name, '^.*[/\\]', ''), s.account, round(s.opening, minor_digits(s.currency)),
         regexp_replace(o.name, '^.*[/\\]', ''), round(t.closing, minor_digits(s.currency)), t.last_on,
         CASE WHEN t.last_on > s.first_on THEN 'they overlap and do not agree'
              WHEN t.last_on = s.first_on THEN 'a file between them is missing, or they overlap'
              ELSE 'a file between them is missing' END) AS reason
FROM placed s
JOIN bank_files f ON f.bank_file_id = s.bank_file_id
JOIN LATERAL (
  SELECT * FROM placed t
  WHERE (t.account, t.currency) = (s.account, s.currency) AND t.place < s.place
  ORDER BY t.place DESC LIMIT 1) AS t ON true
JOIN bank_files o ON o.bank_file_id = t.bank_file_id
WHERE NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.bank_statement_id = s.bank_statement_id)
  AND NOT EXISTS (
  SELECT FROM placed e
  WHERE (e.account, e.currency) = (s.account, s.currency) AND e.bank_statement_id <> s.bank_statement_id
    AND e.closing = s.opening AND e.last_on <= s.first_on
    -- A statement without lines is considered only if it comes before this statement.
    AND (e.opening <> e.closing OR e.place < s.place))
  AND t.closing + (
    SELECT coalesce(sum(signed_amount(l)), 0) FROM bank_lines l
    WHERE (l.account, l.currency) = (s.account, s.currency)
      AND l.bank_booked_on > t.last_on AND l.bank_booked_on < s.first_on) <> s.opening
  AND NOT EXISTS (
    SELECT FROM placed e
    CROSS JOIN LATERAL (
      SELECT e.opening AS one, e.opening AS other
      UNION ALL
      -- The running balance. A file may begin with the oldest or with the newest line.
      SELECT e.opening + sum(m.signed) OVER (ORDER BY m.position),
             e.opening + sum(m.signed) OVER (ORDER BY m.position DESC)
      FROM (SELECT p.position, signed_amount(l) AS signed
            FROM bank_statement_lines p JOIN bank_lines l ON l.bank_line_id = p.bank_line_id
            WHERE p.bank_statement_id = e.bank_statement_id) AS m) AS inside
    WHERE (e.account, e.currency) = (s.account, s.currency) AND e.place < s.place AND e.last_on >= s.first_on
      AND s.opening IN (inside.one, inside.other));

-- The payments that a payment may duplicate, written as one clause. Excludes payments that finance decided are
-- different.
CREATE VIEW suggested_duplicates AS
SELECT s.payment_id, p.received_on,
       string_agg(format('payment %s: %s', s.same_as, s.evidence->>'why'), '; ' ORDER BY s.same_as) AS of
FROM payment_suggestions s JOIN payment_balances same ON same.payment_id = s.same_as
JOIN payments p ON p.payment_id = s.payment_id
WHERE same.stays AND NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.payment_id = s.payment_id)
GROUP BY s.payment_id, p.received_on;

CREATE VIEW possible_duplicates AS
SELECT * FROM suggested_duplicates WHERE payment_id IN (SELECT payment_id FROM unapplied_payments);

-- Exceptions: money and events that wait for manual review. Each exception has its key in commands and the day since
-- which it has been waiting.
CREATE VIEW payment_exceptions AS
SELECT CASE WHEN e.of IS NOT NULL THEN 'possible_duplicate' WHEN s.why IS NOT NULL THEN 'suggestion'
            WHEN b.partner_id IS NULL THEN 'unknown_payer' ELSE 'unapplied_cash' END AS kind,
       'payment-' || b.payment_id AS exception, b.partner_id, p.currency, b.unapplied AS amount, p.received_on AS since,
       coalesce('perhaps the same as ' || e.of, s.why, personal(l.reason),
         CASE WHEN b.applied > 0 THEN 'the rest of this payment is applied, this part is not'
              ELSE format('no invoice is known for it: by %s, reference %s', p.method, personal(p.reference)) END) AS reason
FROM payment_balances b JOIN payments p USING (payment_id)
CROSS JOIN LATERAL (
  SELECT (array_agg(format('perhaps %s: %s', d.number, personal(s.evidence->>'why'))
                    ORDER BY s.confidence DESC, s.payment_suggestion_id))[1] AS why
  FROM payment_suggestions s JOIN documents d USING (document_id) JOIN document_balances o USING (document_id)
  WHERE s.payment_id = b.payment_id AND o.status = 'open') AS s
LEFT JOIN LATERAL (SELECT of FROM suggested_duplicates e WHERE e.payment_id = b.payment_id) AS e ON true
LEFT JOIN LATERAL (
  SELECT o.reason FROM bank_line_outcomes o WHERE o.payment_id = b.payment_id AND b.applied = 0
  ORDER BY o.bank_line_id LIMIT 1) AS l ON true
WHERE b.payment_id IN (SELECT payment_id FROM unapplied_payments)
UNION ALL
SELECT 'digits_swapped', 'payment-' || a.payment_id, d.partner_id, d.currency, o.balance, p.received_on,
       format('%s of %s was paid of %s, and %s is left open: digits may be swapped', round(a.amount, minor_digits(d.currency)),
         round(a.amount + o.balance, minor_digits(d.currency)), d.number, round(o.balance, minor_digits(d.currency)))
-- OFFSET 0, because few applications have this evidence, and balances are computed only for them.
FROM (SELECT * FROM live_payment_applications WHERE jsonb_exists(evidence, 'digits_swapped') OFFSET 0) AS a
JOIN documents d USING (document_id) JOIN payments p USING (payment_id)
CROSS JOIN LATERAL (
  SELECT balance FROM document_balances b WHERE b.document_id = a.document_id AND b.status = 'open' OFFSET 0) AS o
WHERE NOT EXISTS (SELECT FROM payment_balances b WHERE b.payment_id = a.payment_id AND b.unapplied > 0)
  AND NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.payment_id = a.payment_id)
UNION ALL
SELECT 'payout', 'payout-' || o.payout_id, NULL, o.currency, o.amount, o.received_on,
       'not known of which payments: ' || coalesce(nullif(personal(l.text), ''), l.bank_reference, '')
FROM payouts o JOIN bank_lines l USING (bank_line_id)
WHERE NOT EXISTS (SELECT FROM payout_settlements s WHERE s.payout_id = o.payout_id)
UNION ALL
SELECT 'bank_line', 'line-' || o.bank_line_id, NULL, l.currency,
       signed_amount(l), l.bank_booked_on, personal(o.reason)
FROM bank_line_outcomes o JOIN bank_lines l USING (bank_line_id)
WHERE o.needs_review AND o.outcome = 'ignored'
  AND NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.bank_line_id = o.bank_line_id)
  AND NOT EXISTS (SELECT FROM refund_matches m WHERE m.bank_line_id = o.bank_line_id)
  AND (SELECT state FROM bank_line_states b WHERE b.bank_line_id = o.bank_line_id) = 'unbooked'
UNION ALL
SELECT 'bank_statement', exception, NULL, currency, amount, first_on, reason FROM bank_statement_breaks
UNION ALL
SELECT CASE WHEN o.processor_event_id IS NULL THEN 'waiting_event' ELSE 'event' END, e.id, NULL, NULL, NULL,
       e.created::date, format('%s: %s', e.type, coalesce(personal(o.reason), 'waits for another event'))
FROM processor_events e LEFT JOIN processor_event_outcomes o USING (processor_event_id)
WHERE (o.processor_event_id IS NULL OR o.outcome = 'manual_review')
  AND NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.processor_event_id = e.processor_event_id);

-- Rules that concern several rows. The rules take the payments' lock (src/payments/context.ts), so that a transaction
-- without the lock waits here and is checked against the state after the wait.

CREATE FUNCTION refuse_overdrawn_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  found payment_balances%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  SELECT * INTO found FROM payment_balances WHERE payment_id = NEW.payment_id;
  IF found.unapplied < 0 THEN
    PERFORM refuse('payment_within_amount', format(
      'payment %s of %s has %s applied and %s taken back', NEW.payment_id, found.amount, found.applied, found.reversed));
  END IF;
  RETURN NULL;
END
$$;

CALL check_at_commit('payment_within_amount', 'payment_applications', 'refuse_overdrawn_payment()');
CALL check_at_commit('payment_within_amount', 'payment_reversals', 'refuse_overdrawn_payment()');

-- The unapplied part of a payment belongs to the payer. A part that pays a different partner's document must first be
-- assigned to that partner. When the application is undone, the part must return.
CREATE FUNCTION refuse_cash_of_another_partner() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  payment bigint := CASE TG_TABLE_NAME
    WHEN 'payment_unapplications' THEN (
      SELECT a.payment_id FROM payment_applications a
      WHERE a.payment_application_id = (to_jsonb(NEW)->>'payment_application_id')::bigint)
    ELSE (to_jsonb(NEW)->>'payment_id')::bigint END;
  strange record;
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  SELECT c.partner_id, c.amount, b.partner_id AS payer INTO strange
  FROM payment_cash c JOIN payment_balances b USING (payment_id)
  WHERE c.payment_id = payment AND c.amount <> 0 AND c.partner_id IS DISTINCT FROM b.partner_id LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('payment_cash_of_its_payer', format(
      'payment %s of %s has %s of %s', payment, coalesce(strange.payer, 'an unknown payer'), strange.amount,
      coalesce(strange.partner_id, 'an unknown payer')));
  END IF;
  RETURN NULL;
END
$$;

CALL check_at_commit('payment_cash_of_its_payer', 'payment_assignments', 'refuse_cash_of_another_partner()');
CALL check_at_commit('payment_cash_of_its_payer', 'payment_applications', 'refuse_cash_of_another_partner()');
CALL check_at_commit('payment_cash_of_its_payer', 'payment_unapplications', 'refuse_cash_of_another_partner()');

-- The trigger's arguments are the column that refers to the document, and the kind of document that the fact applies
-- to.
CREATE FUNCTION refuse_overpaid_document() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  settled bigint := (to_jsonb(NEW)->>TG_ARGV[0])::bigint;
  found document_balances%ROWTYPE;
  kind text;
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  SELECT * INTO found FROM document_balances WHERE document_id = settled;
  IF found.status = 'void' AND found.amount_paid <> 0 THEN
    PERFORM refuse('document_void_is_unpaid',
                   format('document %s is void and has %s paid', settled, found.amount_paid));
  END IF;
  IF found.amount_due < found.credited + found.amount_paid THEN
    PERFORM refuse('document_not_overpaid', format(
      'document %s over %s is credited %s and paid %s', settled, found.amount_due, found.credited, found.amount_paid));
  END IF;
  SELECT document INTO kind FROM documents WHERE document_id = settled;
  IF kind <> TG_ARGV[1] THEN
    PERFORM refuse('document_kind_takes_it',
                   format('document %s is a %s and takes no %s', settled, kind, TG_TABLE_NAME));
  END IF;
  RETURN NULL;
END
$$;

CALL check_at_commit('document_not_overpaid', 'payment_applications', 'refuse_overpaid_document(document_id, invoice)');
CALL check_at_commit('document_not_overpaid', 'small_differences', 'refuse_overpaid_document(document_id, invoice)');
CALL check_at_commit('document_not_overpaid', 'credit_refunds', 'refuse_overpaid_document(document_id, credit_note)');
CALL check_at_commit('document_not_overpaid', 'write_offs', 'refuse_overpaid_document(document_id, invoice)');
CALL check_at_commit('document_not_overpaid', 'voids', 'refuse_overpaid_document(document_id)');
-- Credit applied at issue was checked when the documents were issued.
CALL check_at_commit('document_not_overpaid', 'credit_applications',
                     'refuse_overpaid_document(invoice_id, invoice)', 'NOT NEW.at_issue');
CALL check_at_commit('credit_note_not_overdrawn', 'credit_applications',
                     'refuse_overpaid_document(credit_note_id, credit_note)', 'NOT NEW.at_issue');

-- The credit of a credit note is neither applied nor refunded between a hold and its release. The order of the log
-- decides. A transaction that records a hold, an application or a refund waits here for the others.
CREATE FUNCTION refuse_use_of_held_credit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  note bigint := (to_jsonb(NEW)->>TG_ARGV[0])::bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  IF EXISTS (
    SELECT FROM holds h LEFT JOIN hold_releases r USING (hold_id)
    JOIN (SELECT log_no FROM credit_applications WHERE credit_note_id = note
          UNION ALL SELECT log_no FROM credit_refunds WHERE document_id = note) AS used ON used.log_no > h.log_no
    WHERE h.document_id = note AND (r.log_no IS NULL OR r.log_no > used.log_no)) THEN
    PERFORM refuse('held_credit_not_used',
                   format('credit of document %s is used while the document is on hold', note));
  END IF;
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER held_credit_not_used AFTER INSERT ON credit_applications DEFERRABLE
  FOR EACH ROW EXECUTE FUNCTION refuse_use_of_held_credit('credit_note_id');
CREATE CONSTRAINT TRIGGER held_credit_not_used AFTER INSERT ON credit_refunds DEFERRABLE
  FOR EACH ROW EXECUTE FUNCTION refuse_use_of_held_credit('document_id');
CREATE CONSTRAINT TRIGGER held_credit_not_used AFTER INSERT ON holds DEFERRABLE
  FOR EACH ROW EXECUTE FUNCTION refuse_use_of_held_credit('document_id');

-- The dunning levels that a document has reached, in days after its due date, each with its e-mail.
CREATE TABLE reminders (
  document_id bigint NOT NULL,
  dunning_level integer NOT NULL,
  email_id bigint NOT NULL,
  -- The partner, or the payer of its family. The e-mail goes to it.
  payer_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  -- The due date, or the later day on which the document's settlement was undone. In that case, the levels start again.
  counted_from date NOT NULL,
  PRIMARY KEY (document_id, dunning_level, counted_from),
  CONSTRAINT reminder_to_its_payer FOREIGN KEY (email_id, payer_id) REFERENCES emails (email_id, partner_id),
  CONSTRAINT reminder_of_its_partners_document FOREIGN KEY (document_id, partner_id, currency)
    REFERENCES documents (document_id, partner_id, currency)
);
CREATE INDEX reminders_of_email ON reminders (email_id);
CALL make_fact('reminders');

-- Pauses of a partner's reminders. The partner's latest row counts: through the day `until`, the partner gets no
-- reminder. NULL ends the pause before it.
CREATE TABLE reminder_pauses (
  reminder_pause_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  until date,
  reason text NOT NULL CONSTRAINT reminder_pause_has_reason CHECK (btrim(reason) <> ''),
  recorded_on date NOT NULL,
  CONSTRAINT reminder_pause_ahead CHECK (until >= recorded_on)
);
CREATE INDEX reminder_pauses_of_partner ON reminder_pauses (partner_id, reminder_pause_id);
CALL make_fact_of_event('reminder_pauses');

CREATE VIEW present_reminder_pauses AS
SELECT DISTINCT ON (partner_id) partner_id, until, reason, recorded_on FROM reminder_pauses
ORDER BY partner_id, reminder_pause_id DESC;

ALTER TABLE emails ADD CONSTRAINT email_of_a_payment FOREIGN KEY (payment_id) REFERENCES payments,
  ADD CONSTRAINT email_of_a_refund FOREIGN KEY (credit_refund_id) REFERENCES credit_refunds;
CREATE INDEX payment_applications_recorded ON payment_applications (recorded_at);
CREATE INDEX credit_refunds_recorded ON credit_refunds (recorded_at);
