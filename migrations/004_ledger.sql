-- The ledger: one row per acceptance or reversal, never changed, posted to exactly one month; and the two closes of a
-- month, each following the previous one. The billing close (closed_months) shuts the month to rows; the close of its
-- books (book_closes) shuts it to all other facts.

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
);
CALL make_append_only('closed_months');
CALL refuse_rows_while_paused('closed_months');

-- The first instant of a month in a time zone. If clocks are set back to midnight there are two, and the first one
-- counts, as in src/month.ts. For a zone unknown to this server, the month begins when it begins anywhere on Earth.
CREATE FUNCTION first_instant(month text, zone text) RETURNS timestamptz STABLE LANGUAGE plpgsql AS $$
DECLARE
  midnight timestamp := (month || '-01')::timestamp;
  instant timestamptz;
BEGIN
  instant := midnight AT TIME ZONE zone;
  RETURN CASE WHEN (instant - interval '1 hour') AT TIME ZONE zone >= midnight THEN instant - interval '1 hour'
         ELSE instant END;
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN midnight AT TIME ZONE 'Etc/GMT-14';
END
$$;

-- A month that has not ended by the database's own clock never closes: a machine whose clock is ahead would close the
-- current month permanently. Only a sandbox whose clock is set by RECKONER_NOW may (src/database/session.ts). Checked
-- at the commit, so that a preview may include the current month.
CREATE FUNCTION refuse_running_month() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  ended_at timestamptz;
BEGIN
  IF current_setting('reckoner.clock_is_set', true) = 'on'
     AND EXISTS (SELECT FROM installation WHERE environment = 'sandbox') THEN
    RETURN NULL;
  END IF;
  SELECT max(first_instant(month_after(NEW.month), time_zone)) INTO ended_at FROM partners
  WHERE inactive_since IS NULL OR NOT EXISTS (SELECT FROM partners WHERE inactive_since IS NULL);
  IF coalesce(ended_at, first_instant(month_after(NEW.month), 'Etc/GMT-14')) > clock_timestamp() THEN
    RAISE EXCEPTION '% has not ended: by the clock of the database it is %', NEW.month, clock_timestamp()
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'closed_months_have_ended';
  END IF;
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER month_has_ended AFTER INSERT ON closed_months DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION refuse_running_month();

-- The books of a month end after its billing close: until then payments and corrections are dated in it. After that,
-- its balances never change. The table is append-only, and a fact: the next seal covers it.
CREATE TABLE book_closes (
  month billing_month PRIMARY KEY CONSTRAINT book_close_after_billing REFERENCES closed_months,
  -- NULL for the first month only; UNIQUE makes the closed books one unbroken chain.
  previous billing_month CONSTRAINT book_closes_chain UNIQUE NULLS NOT DISTINCT REFERENCES book_closes,
  -- The number of the last fact before the close. No later fact is dated in the month.
  facts_to bigint NOT NULL,
  closed_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  -- What the seal covers: the entries dated in the month and the trial balance at its end (docs/auditors.md).
  record text NOT NULL,
  seal text NOT NULL,
  CONSTRAINT book_closes_follow CHECK (month = month_after(previous)),
  CONSTRAINT book_close_seal_is_the_hash_of_its_record CHECK (seal = encode(sha256(convert_to(record, 'UTF8')), 'hex'))
);
CALL make_fact('book_closes');

-- The balance of every account at the end of a month with closed books, except zeros.
CREATE TABLE book_balances (
  month billing_month NOT NULL CONSTRAINT book_balance_of_closed_books
    REFERENCES book_closes DEFERRABLE INITIALLY DEFERRED,
  control text COLLATE "C" NOT NULL,
  -- Including the subaccount of the partner, policy or bank account.
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  -- Debits less credits.
  amount numeric NOT NULL CONSTRAINT book_balance_not_zero CHECK (amount <> 0),
  PRIMARY KEY (month, account, currency)
);
CALL make_fact('book_balances');

-- The earliest entry date for a fact now: the first day of the first month with open books. NULL while no books are
-- closed. Ledger rows follow the billing close instead (refuse_closed_month).
CREATE FUNCTION earliest_postable_date() RETURNS date STABLE LANGUAGE sql AS $$
  SELECT (month_after(max(month)) || '-01')::date FROM book_closes
$$;

-- The balances of closed books never change. Every fact with a journal entry has its true date (applied_on, issued_on,
-- …) and entry_on, the date of its journal entry: the true date, but never before the first month whose books were open
-- when the fact was recorded. The program takes the lock that decides the date; if it does not, this trigger fails.
CREATE FUNCTION refuse_entry_in_closed_books() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  last_closed text;
  earliest date := (SELECT min(entry_on) FROM added);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7310, 2);
  SELECT max(month) INTO last_closed FROM book_closes;
  IF to_char(earliest, 'YYYY-MM') COLLATE "C" <= last_closed THEN
    RAISE EXCEPTION 'an entry of % cannot be dated %: the books are closed to %', TG_TABLE_NAME, earliest, last_closed
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_TABLE_NAME || '_books_open';
  END IF;
  RETURN NULL;
END
$$;

CREATE PROCEDURE require_open_books(target regclass) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TRIGGER entry_books_open AFTER INSERT ON %s REFERENCING NEW TABLE AS added
                  FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books()', target);
END
$$;

CREATE TABLE ledger_rows (
  partner_id text COLLATE "C" NOT NULL,
  -- The month in which the row is billed: its own month if that is open, otherwise the earliest open month.
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
  -- Facts about the row when it was recorded, never recomputed.
  time_zone text NOT NULL,
  month text COLLATE "C" NOT NULL,
  arrangement text NOT NULL,
  recorded_at timestamptz NOT NULL,
  -- The event of the import, acceptance or reversal that recorded it (refuse_unknown_event).
  event_id bigint NOT NULL,
  PRIMARY KEY (partner_id, posted_month, entry_id),
  CONSTRAINT ledger_rows_id_positive CHECK (entry_id > 0),
  CONSTRAINT ledger_rows_balance CHECK (spot_price = partner_cut + invoice_amount),
  CONSTRAINT ledger_rows_sign CHECK (
    CASE kind WHEN 'reversal' THEN spot_price <= 0 AND partner_cut <= 0 AND invoice_amount <= 0
              ELSE spot_price >= 0 AND partner_cut >= 0 AND invoice_amount >= 0 END),
  CONSTRAINT ledger_rows_minor_digits CHECK (
    greatest(scale(spot_price), scale(partner_cut), scale(invoice_amount)) <= minor_digits(currency)),
  CONSTRAINT ledger_rows_amount_limit CHECK (abs(spot_price) < 1e15),
  CONSTRAINT ledger_rows_kind_has_ids CHECK (
    CASE kind WHEN 'quote_accepted' THEN requote_id IS NULL AND reversal_id IS NULL
              WHEN 'requote_accepted' THEN requote_id IS NOT NULL AND reversal_id IS NULL
              WHEN 'reversal' THEN reversal_id IS NOT NULL
              ELSE false END),
  CONSTRAINT ledger_rows_ids_form CHECK (
    is_identifier(quote_id) AND is_identifier(requote_id) IS NOT FALSE AND is_identifier(reversal_id) IS NOT FALSE
    AND is_identifier(enrollment_id) IS NOT FALSE),
  -- A row in a month that no close can reach would never be billed. LIKE takes a tenth of the time of the domain's
  -- pattern.
  CONSTRAINT ledger_rows_months_form CHECK (month LIKE '____-__' AND posted_month LIKE '____-__'),
  CONSTRAINT ledger_rows_arrangement_known CHECK (arrangement IN ('invoicing', 'connected_account')),
  CONSTRAINT ledger_rows_posted_in_own_month_or_later CHECK (posted_month >= month)
);
-- A row is identified by its partner, its kind and its own id: that of its reversal, or else its requote, or else its
-- quote.
CREATE UNIQUE INDEX ledger_rows_known_once
  ON ledger_rows (partner_id, kind, coalesce(reversal_id, requote_id, quote_id));
-- The rows that follow the acceptance of a quote: additions and reversals. They are few, so the index is small.
CREATE INDEX ledger_rows_of_quote ON ledger_rows (partner_id, quote_id) WHERE kind <> 'quote_accepted';
-- Finds the quote of a transfer that names only an enrollment, without reading the ledger. Connected accounts only.
CREATE INDEX ledger_rows_of_enrollment ON ledger_rows (partner_id, enrollment_id)
  WHERE kind = 'quote_accepted' AND arrangement = 'connected_account' AND enrollment_id IS NOT NULL;
-- Finds when an account last sold something. Connected accounts only.
CREATE INDEX ledger_rows_of_accounts_by_time ON ledger_rows (partner_id, accepted_at)
  WHERE arrangement = 'connected_account';
-- Finds the quotes of a month to reconcile. Connected accounts only.
CREATE INDEX ledger_rows_of_accounts_by_month ON ledger_rows (posted_month, partner_id, quote_id)
  WHERE arrangement = 'connected_account';
-- A close reads a whole month. Rows arrive in the order of posting, so a block range index finds them and costs an import
-- nothing.
CREATE INDEX ledger_rows_by_posted_month ON ledger_rows USING brin (posted_month) WITH (autosummarize = on);
CALL make_append_only('ledger_rows');
-- A transaction that records a row holds the ledger's lock, shared, from before the row has its id until the commit. So
-- the publisher (013_partner_events.sql) knows when every row up to an id is committed or never will be. The same holds
-- for facts (make_fact).
CREATE TRIGGER ledger_rows_in_order BEFORE INSERT ON ledger_rows
  FOR EACH STATEMENT EXECUTE FUNCTION begin_recording(in_order, not_while_paused);
-- Verification compares the ids with the last one assigned.
CALL grant_to_app('SELECT', 'ledger_rows_entry_id_seq');

-- An identifier, so it is compared byte by byte.
CREATE DOMAIN identifier AS text COLLATE "C";

-- own_id(e) is the row's own id. PostgreSQL inlines it, so that ledger_rows_known_once finds a row by it.
CREATE FUNCTION own_id(e ledger_rows) RETURNS identifier IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
  SELECT coalesce(e.reversal_id, e.requote_id, e.quote_id)
$$;

-- The program takes the lock that decides a row's month. If it does not, this trigger fails; no row is lost.
CREATE FUNCTION refuse_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  last_closed text;
  earliest text := (SELECT min(posted_month) FROM added);
BEGIN
  -- The ledger's lock (src/database/ledger-lock.ts): waits for a close in progress and sees its result.
  PERFORM pg_advisory_xact_lock_shared(7310, 2);
  SELECT max(month) INTO last_closed FROM closed_months;
  IF earliest <= last_closed THEN
    RAISE EXCEPTION 'rows cannot post to %: months to % are closed', earliest, last_closed
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'ledger_rows_month_open';
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER ledger_rows_month_open AFTER INSERT ON ledger_rows REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_closed_month();

-- Instead of a foreign key, which looks up the policy of each row in a separate query: that took 4.6 of the 21 µs of
-- inserting a row. Policies are never removed, so one query per statement is enough.
CREATE FUNCTION refuse_unknown_policy() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  stranger record;
BEGIN
  SELECT a.partner_id, a.policy_id INTO stranger
  FROM (SELECT DISTINCT partner_id, policy_id FROM added) AS a
  WHERE NOT EXISTS (SELECT FROM policies p WHERE p.partner_id = a.partner_id AND p.policy_id = a.policy_id)
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% is not a policy of %', stranger.policy_id, stranger.partner_id
      USING ERRCODE = 'foreign_key_violation', TABLE = 'ledger_rows', CONSTRAINT = 'ledger_rows_policy_known';
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER ledger_rows_policy_known AFTER INSERT ON ledger_rows REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_policy();

-- Instead of a foreign key, for the same reason: events are never removed either. An acceptance records its event in
-- the statement that records its row, and triggers run after both.
CREATE FUNCTION refuse_unknown_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  missing bigint;
BEGIN
  SELECT a.event_id INTO missing FROM (SELECT DISTINCT event_id FROM added) AS a
  WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.event_id = a.event_id) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'rows cannot be of event %, which is not recorded', missing
      USING ERRCODE = 'foreign_key_violation', TABLE = 'ledger_rows', CONSTRAINT = 'ledger_rows_event_known';
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER ledger_rows_event_known AFTER INSERT ON ledger_rows REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_event();

-- Our role can change until there is a row.
CREATE FUNCTION has_no_rows() RETURNS boolean STABLE LANGUAGE sql
RETURN NOT EXISTS (SELECT FROM ledger_rows);
CALL make_append_only('presentation', 'UPDATE', 'has_no_rows()');
CALL grant_to_app('UPDATE', 'presentation');
