-- The ledger has one row for each acceptance or reversal. A row is never changed, and is posted to exactly one month. A
-- month has two closes. The billing close (closed_months) ends the month for rows. The close of the books (book_closes)
-- ends the month for all other facts. Each kind of close takes months in order.

CREATE TABLE closed_months (
  month billing_month PRIMARY KEY,
  -- NULL for the first month only. UNIQUE makes the closed months an unbroken chain.
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
CALL make_fact('closed_months');

-- The first instant of a month in a time zone. If clocks are set back to midnight, the first of the two midnights is
-- used, as in src/month.ts. If this server does not know the zone, the month begins when it begins anywhere on Earth.
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

-- Refuses to close a month that has not ended by the database's own clock: a machine whose clock is ahead would
-- permanently close the current month. A sandbox whose clock is set (RECKONER_NOW, src/database/session.ts) is exempt.
-- The check runs at the commit, so that a preview may include the current month.
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
    PERFORM refuse('closed_months_have_ended',
                   format('%s has not ended: by the clock of the database it is %s', NEW.month, clock_timestamp()));
  END IF;
  RETURN NULL;
END
$$;
CALL check_at_commit('month_has_ended', 'closed_months', 'refuse_running_month()');

-- The books of a month end after the month's billing close. Until the books end, payments and corrections are dated in
-- the month. After the end of the books, the month's balances never change.
CREATE TABLE book_closes (
  month billing_month PRIMARY KEY CONSTRAINT book_close_after_billing REFERENCES closed_months,
  -- NULL for the first month only. UNIQUE makes the closed books an unbroken chain.
  previous billing_month CONSTRAINT book_closes_chain UNIQUE NULLS NOT DISTINCT REFERENCES book_closes,
  -- The number of the last fact before the close. No later fact is dated in the month.
  facts_to bigint NOT NULL,
  closed_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT book_closes_follow CHECK (month = month_after(previous))
);
CALL make_fact('book_closes');

CREATE TABLE book_balances (
  month billing_month NOT NULL CONSTRAINT book_balance_of_closed_books
    REFERENCES book_closes DEFERRABLE INITIALLY DEFERRED,
  control text COLLATE "C" NOT NULL,
  -- The account, including the subaccount of the partner, policy or bank account.
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT book_balance_not_zero CHECK (amount <> 0),
  PRIMARY KEY (month, account, currency)
);
CALL make_fact('book_balances');

-- The earliest entry date of a new fact: the first day of the first month with open books, or NULL while no books are
-- closed. Ledger rows follow the billing close instead (refuse_closed_month).
CREATE FUNCTION earliest_postable_date() RETURNS date STABLE LANGUAGE sql AS $$
  SELECT (month_after(max(month)) || '-01')::date FROM book_closes
$$;

-- The balances of closed books never change. Every fact with a journal entry has a true date (applied_on, issued_on, …)
-- and the date of its entry (entry_on). The column entry_on has the true date, but never a date before the first month
-- whose books were open at the time of recording. The program takes the lock that fixes the date. If the program did
-- not take the lock, this trigger refuses the fact.
CREATE FUNCTION refuse_entry_in_closed_books() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  last_closed text;
  earliest date := (SELECT min(entry_on) FROM added);
BEGIN
  SELECT max(month) INTO last_closed FROM book_closes;
  IF to_char(earliest, 'YYYY-MM') COLLATE "C" <= last_closed THEN
    PERFORM refuse(TG_TABLE_NAME || '_books_open', format(
      'an entry of %s cannot be dated %s: the books are closed to %s', TG_TABLE_NAME, earliest, last_closed));
  END IF;
  RETURN NULL;
END
$$;

CREATE PROCEDURE require_open_books(target regclass) LANGUAGE plpgsql AS $$
BEGIN
  CALL run_after_insert('entry_books_open', target, 'refuse_entry_in_closed_books');
END
$$;

-- Makes the rows of a table facts of an event that have an entry in the journal.
CREATE PROCEDURE make_entry(target regclass) LANGUAGE plpgsql AS $$
BEGIN
  CALL require_open_books(target);
  CALL make_fact_of_event(target);
END
$$;

-- The rows of a month whose books are closed can move to a cold store (016_archive.sql, src/archive). The store holds all
-- rows of the month. A row leaves the table ledger_rows only if the rules let nothing change or reverse its quote any more.
CREATE TABLE archived_months (
  month billing_month PRIMARY KEY CONSTRAINT archived_month_has_closed_books REFERENCES book_closes,
  -- A name in the settings.
  store text NOT NULL CONSTRAINT archived_month_store_form CHECK (store ~ '^[a-z][a-z0-9-]{0,30}$'),
  entries bigint NOT NULL,
  -- The numbers of the first and the last row; NULL without rows.
  first_no bigint,
  last_no bigint,
  archived_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events
);
CALL make_append_only('archived_months', 'DELETE', 'true', 'SELECT');

-- The files of a month in the store. Each has all rows of some partners.
CREATE TABLE archived_files (
  month billing_month NOT NULL CONSTRAINT archived_file_of_a_month REFERENCES archived_months,
  name text NOT NULL,
  sha256 text NOT NULL CONSTRAINT archived_file_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  bytes bigint NOT NULL,
  entries bigint NOT NULL,
  partner_from text COLLATE "C" NOT NULL,
  partner_to text COLLATE "C" NOT NULL,
  PRIMARY KEY (month, name)
);
CALL make_append_only('archived_files', 'DELETE', 'true', 'SELECT');

-- The posting months whose rows an archived month bills: after `after`, up to `month`.
CREATE VIEW archived_postings AS
SELECT a.month::text AS month, coalesce(m.previous::text, '') AS after
FROM archived_months a JOIN closed_months m USING (month);

-- The same months one by one. A query that reads many rows compares their month with this list.
CREATE VIEW archived_posting_months AS
SELECT to_char(day, 'YYYY-MM') COLLATE "C" AS posted_month
FROM archived_postings p
CROSS JOIN generate_series((coalesce(nullif(p.after, ''), '1970-01') || '-01')::date, (p.month || '-01')::date, '1 month') AS day
WHERE to_char(day, 'YYYY-MM') > p.after;

CREATE FUNCTION is_archived(posted_month text) RETURNS boolean STABLE LANGUAGE sql
RETURN EXISTS (SELECT FROM archived_postings p WHERE posted_month > p.after AND posted_month <= p.month);

-- The partner's own reference of an order: printable characters, without spaces at either end (src/ledger/row.ts).
CREATE FUNCTION is_order_reference(value text) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN length(value) BETWEEN 1 AND 128 AND btrim(value) = value
  AND value !~ U&'[\0001-\001F\007F-\009F\00AD\200B-\200F\2028-\202E\2060-\206F\FEFF\FFFD]';

CREATE FUNCTION is_cover(from_day date, to_day date) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN coalesce(from_day BETWEEN '1970-01-01' AND '2099-12-31', to_day IS NULL)
  AND coalesce(to_day BETWEEN from_day AND '2099-12-31', to_day IS NULL);

CREATE TABLE ledger_rows (
  partner_id text COLLATE "C" NOT NULL,
  -- The month in which the row is billed: its own month if that is open, otherwise the earliest open month.
  posted_month text COLLATE "C" NOT NULL,
  -- The number of the row in the log.
  entry_id bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME log_numbers),
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
  order_reference text COLLATE "C",
  cover_from date,
  cover_to date,
  time_zone text NOT NULL,
  month text COLLATE "C" NOT NULL,
  arrangement text NOT NULL,
  recorded_at timestamptz NOT NULL,
  -- The event of the import, acceptance or reversal (ledger_rows_event_known).
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
  CONSTRAINT ledger_rows_order_reference_form CHECK (order_reference IS NULL OR is_order_reference(order_reference)),
  CONSTRAINT ledger_rows_cover CHECK (cover_from IS NULL AND cover_to IS NULL OR is_cover(cover_from, cover_to)),
  -- If no close reached the month of a row, the row would never be billed. LIKE takes a tenth of the time that the
  -- domain's pattern takes.
  CONSTRAINT ledger_rows_months_form CHECK (month LIKE '____-__' AND posted_month LIKE '____-__'),
  CONSTRAINT ledger_rows_arrangement_known CHECK (arrangement IN ('invoicing', 'connected_account')),
  CONSTRAINT ledger_rows_posted_in_own_month_or_later CHECK (posted_month >= month)
);
-- A row is identified by its partner, its kind and its own id: the id of its reversal, or else of its requote, or else
-- of its quote.
CREATE UNIQUE INDEX ledger_rows_known_once
  ON ledger_rows (partner_id, kind, coalesce(reversal_id, requote_id, quote_id));
-- The rows that follow the acceptance of a quote: acceptances of requotes, and reversals. These rows are few, so the
-- index is small.
CREATE INDEX ledger_rows_of_quote ON ledger_rows (partner_id, quote_id) WHERE kind <> 'quote_accepted';
-- The reversals of a month and partner, for ceilings, lists and findings.
CREATE INDEX ledger_rows_reversals ON ledger_rows (posted_month, partner_id) WHERE kind = 'reversal';
-- Finds the rows of an order. An import without references adds nothing to this index.
CREATE INDEX ledger_rows_of_order ON ledger_rows (partner_id, order_reference) WHERE order_reference IS NOT NULL;
-- Finds the rows of an enrollment, or of ids that begin alike: 70 MB for 1,000,000 rows, whose primary key takes 83 MB.
CREATE INDEX ledger_rows_of_enrollment ON ledger_rows (partner_id, enrollment_id) WHERE enrollment_id IS NOT NULL;
-- Finds the late rows of a month. Rows that are not late add nothing to this index.
CREATE INDEX ledger_rows_late ON ledger_rows (posted_month, partner_id) WHERE month < posted_month;
CREATE INDEX ledger_rows_of_accounts_by_time ON ledger_rows (partner_id, accepted_at)
  WHERE arrangement = 'connected_account';
CREATE INDEX ledger_rows_of_accounts_by_month ON ledger_rows (posted_month, partner_id, quote_id)
  WHERE arrangement = 'connected_account';
-- A close reads the rows of a whole month. Rows arrive in the order of posting. A block range index therefore finds a
-- month's rows, and costs an import nothing. It also finds the rows of some partners and days, to compare an import with
-- them: the rows of one import are in the order of partners, and acceptances in the order of time. A second index would
-- cost time for each row.
CREATE INDEX ledger_rows_by_posted_month ON ledger_rows USING brin (posted_month, accepted_at, partner_id)
  WITH (autosummarize = on);
CALL make_append_only('ledger_rows', 'DELETE', 'is_archived(OLD.posted_month)');
CREATE TRIGGER ledger_rows_in_order BEFORE INSERT ON ledger_rows
  FOR EACH STATEMENT EXECUTE FUNCTION begin_recording(in_order, not_while_paused);
-- The grant is USAGE without UPDATE, so that the program cannot set the sequence.
CALL grant_to_app('SELECT, USAGE', 'log_numbers');
-- The body is parsed here, so it always means this sequence, even if a temporary sequence has the same name.
CREATE FUNCTION next_log_number() RETURNS bigint LANGUAGE sql
RETURN nextval('log_numbers');
-- The publisher and checkpoints use this index to find the rows after a number. Rows arrive in the order of their
-- numbers, so a block range index finds them and costs an import nothing.
CREATE INDEX ledger_rows_by_entry ON ledger_rows USING brin (entry_id) WITH (autosummarize = on);

-- Identifiers are compared byte by byte.
CREATE DOMAIN identifier AS text COLLATE "C";

-- The row's own id. PostgreSQL inlines this function, so that a search by own_id uses the index ledger_rows_known_once.
CREATE FUNCTION own_id(e ledger_rows) RETURNS identifier IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
  SELECT coalesce(e.reversal_id, e.requote_id, e.quote_id)
$$;

-- The program takes the lock that fixes a row's month. If the program did not take the lock, this trigger refuses the
-- row, so a closed month never changes. Only rows that return from the archive are posted to closed months (return_month
-- compares them).
CREATE FUNCTION refuse_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  last_closed text;
  earliest text;
  first_number bigint;
BEGIN
  SELECT min(posted_month), min(entry_id) INTO earliest, first_number FROM added;
  IF is_archived(earliest) AND current_user = (SELECT relowner::regrole::text FROM pg_class WHERE oid = TG_RELID)
     AND NOT EXISTS (SELECT FROM added WHERE NOT is_archived(posted_month)) THEN
    RETURN NULL;
  END IF;
  IF first_number <= (SELECT max(last_no) FROM log_checkpoints) THEN
    PERFORM refuse('ledger_rows_above_checkpoints',
                   format('row %s cannot be recorded: a checkpoint covers this number', first_number));
  END IF;
  SELECT max(month) INTO last_closed FROM closed_months;
  IF earliest <= last_closed THEN
    PERFORM refuse('ledger_rows_month_open',
                   format('rows cannot post to %s: months to %s are closed', earliest, last_closed));
  END IF;
  RETURN NULL;
END
$$;
CALL run_after_insert('ledger_rows_month_open', 'ledger_rows', 'refuse_closed_month');

-- Replaces a foreign key, which looks up each row in a separate query: that of policies took 4.6 of the 21 µs of inserting
-- a row. Policies and events are never deleted, so one query per statement is enough. `stranger` selects the message about
-- a row of `added` that refers to nothing.
CREATE PROCEDURE require_known(target regclass, name text, stranger text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE FUNCTION refuse_%s() RETURNS trigger LANGUAGE plpgsql AS $body$
    DECLARE
      message text := (%s LIMIT 1);
    BEGIN
      IF message IS NOT NULL THEN
        RAISE EXCEPTION ''%%'', message
          USING ERRCODE = ''foreign_key_violation'', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
      END IF;
      RETURN NULL;
    END
    $body$', name, stranger);
  CALL run_after_insert(name, target, 'refuse_' || name);
END
$$;
CALL require_known('ledger_rows', 'ledger_rows_policy_known', $$
  SELECT format('%s is not a policy of %s', a.policy_id, a.partner_id)
  FROM (SELECT DISTINCT partner_id, policy_id FROM added) AS a
  WHERE NOT EXISTS (SELECT FROM policies p WHERE p.partner_id = a.partner_id AND p.policy_id = a.policy_id)$$);
-- An acceptance records its event and its row in one statement, and triggers run after both.
CALL require_known('ledger_rows', 'ledger_rows_event_known', $$
  SELECT format('rows cannot be of event %s, which is not recorded', a.event_id)
  FROM (SELECT DISTINCT event_id FROM added) AS a
  WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.event_id = a.event_id)$$);

-- The receipt of an event that recorded several rows: their number and sums, by posting month, partner and currency. The
-- statement that records the rows records their receipt. The event of an acceptance is the receipt of its one row.
CREATE TABLE ledger_receipts (
  event_id bigint NOT NULL REFERENCES audit_events,
  posted_month billing_month NOT NULL,
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  currency text COLLATE "C" NOT NULL,
  entries bigint NOT NULL CONSTRAINT ledger_receipt_of_rows CHECK (entries > 0),
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  PRIMARY KEY (posted_month, event_id, partner_id, currency),
  CONSTRAINT ledger_receipts_balance CHECK (spot_price = partner_cut + invoice_amount)
);
CALL make_fact('ledger_receipts');

-- A person accepted a doubt about a partner's rows of an open month (src/close/feeds.ts): the month may close as it is.
-- The decision covers this kind of doubt with this evidence. If the numbers in the evidence change, it must be accepted
-- again.
CREATE TABLE feed_decisions (
  feed_decision_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  month billing_month NOT NULL,
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  kind text NOT NULL CONSTRAINT feed_decision_kind_known
    CHECK (kind IN ('missing', 'incomplete', 'totals', 'repeated', 'few', 'early')),
  evidence text NOT NULL,
  -- NULL if a close accepted the doubt (close --without, --accept-feed).
  reason text CONSTRAINT feed_decision_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT feed_decision_once UNIQUE (month, partner_id, kind, evidence)
);
CALL make_fact_of_event('feed_decisions');

CREATE FUNCTION refuse_decision_on_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM added JOIN closed_months USING (month)) THEN
    PERFORM refuse('feed_decisions_month_open', 'a doubt about a closed month cannot be accepted');
  END IF;
  RETURN NULL;
END
$$;
CALL run_after_insert('feed_decisions_month_open', 'feed_decisions', 'refuse_decision_on_closed_month');

-- The totals that a partner, or finance on its behalf, states of its rows of a month: all kinds, signed, whenever billed.
-- The latest statement of a partner and month counts. If a statement is not complete, more rows will come.
CREATE TABLE feed_statements (
  feed_statement_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  month billing_month NOT NULL,
  entries bigint NOT NULL CONSTRAINT feed_statement_entries_not_negative CHECK (entries >= 0),
  complete boolean NOT NULL
);
CREATE INDEX feed_statements_of_month ON feed_statements (month, partner_id, feed_statement_id);
CALL make_fact_of_event('feed_statements');

CREATE TABLE feed_statement_totals (
  feed_statement_id bigint NOT NULL REFERENCES feed_statements,
  currency text COLLATE "C" NOT NULL,
  invoice_amount numeric NOT NULL,
  PRIMARY KEY (feed_statement_id, currency),
  CONSTRAINT feed_statement_total_digits CHECK (scale(invoice_amount) <= minor_digits(currency)),
  CONSTRAINT feed_statement_total_limit CHECK (abs(invoice_amount) < 1e15)
);
CALL make_fact('feed_statement_totals');

-- The lines of the open months so far: the number and sums of the rows up to the last checkpoint. A close adds the rows
-- since then. This is working data, which `verify` derives again.
CREATE TABLE running_lines (
  posted_month text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  month text COLLATE "C" NOT NULL,
  -- The month, the posting month and the kind of the row that a reversal reverses; empty for other rows.
  sold_month text COLLATE "C" NOT NULL,
  sold_posted text COLLATE "C" NOT NULL,
  sold_kind text COLLATE "C" NOT NULL,
  -- Whether ledger_receipts has the receipts of the rows. Other rows are acceptances.
  by_receipt boolean NOT NULL,
  count bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  last_accepted_at timestamptz NOT NULL,
  PRIMARY KEY (posted_month, partner_id, currency, arrangement, policy_id, kind, month, sold_month, sold_posted, sold_kind,
               by_receipt)
);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'running_lines');

-- The own id without its case and leading zeros, which spreadsheets and other programs change.
CREATE FUNCTION bare_id(own_id text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN lower(CASE WHEN own_id < '1' COLLATE "C" THEN ltrim(own_id, '0') ELSE own_id END);

-- Rows that are not in the ledger until a person decides. The sign says why. Rows of imports may repeat a row: rows with
-- the same second and amounts also have the same enrollment, the same order or the same quote; or rows with the same day
-- and amounts have the same id but for its case, zeros or exponent. Reversals of imports and of the API are not covered
-- by the terms (src/ledger/cancellation.ts). Rows of a held sale, and rows after a held reversal, are held with it.
CREATE TABLE held_rows (
  held_row_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
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
  order_reference text COLLATE "C",
  cover_from date,
  cover_to date,
  sign text NOT NULL CONSTRAINT held_row_sign_known CHECK (sign IN (
    'same_enrollment', 'same_order', 'same_quote', 'same_id', 'held_sale', 'held_reversal',
    'too_late', 'more_than_left', 'other_split', 'cover_began', 'cover_unknown', 'ceiling')),
  -- The own id of the row that this row may repeat.
  repeats text COLLATE "C",
  FOREIGN KEY (partner_id, policy_id) REFERENCES policies,
  CONSTRAINT held_row_balance CHECK (spot_price = partner_cut + invoice_amount),
  CONSTRAINT held_row_repeats_a_row CHECK ((repeats IS NOT NULL) = (sign LIKE 'same%'))
);
CREATE UNIQUE INDEX held_rows_known_once ON held_rows (partner_id, kind, coalesce(reversal_id, requote_id, quote_id));
CALL make_fact_of_event('held_rows');

-- Inlined, as for rows of the ledger.
CREATE FUNCTION own_id(h held_rows) RETURNS identifier IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
  SELECT coalesce(h.reversal_id, h.requote_id, h.quote_id)
$$;

CREATE TABLE held_row_decisions (
  held_row_id bigint PRIMARY KEY REFERENCES held_rows,
  decision text NOT NULL CONSTRAINT held_row_decision_known CHECK (decision IN ('recorded', 'discarded')),
  reason text NOT NULL CONSTRAINT held_row_decision_has_reason CHECK (reason <> '')
);
CALL make_fact_of_event('held_row_decisions');

-- The rule or the person that allowed a reversal. Each reversal has its ground before it is recorded
-- (ledger_rows_reversal_has_ground).
CREATE TABLE reversal_grounds (
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  reversal_id text COLLATE "C" NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  -- window, pro_rata and full: the policy's terms. proportion and remainder: the rule without terms. person: the decision
  -- about a held row. processor: the processor had already reversed our share.
  ground text NOT NULL CONSTRAINT reversal_ground_known
    CHECK (ground IN ('window', 'pro_rata', 'full', 'proportion', 'remainder', 'person', 'processor')),
  cancellation_terms_id bigint REFERENCES cancellation_terms,
  held_row_id bigint REFERENCES held_rows,
  -- The day of the acceptance and the day by which the reversal was judged, in the partner's time zone.
  sold_on date,
  judged_on date,
  PRIMARY KEY (partner_id, reversal_id),
  CONSTRAINT reversal_ground_of_terms
    CHECK ((cancellation_terms_id IS NOT NULL) = (ground IN ('window', 'pro_rata', 'full'))),
  CONSTRAINT reversal_ground_of_person CHECK (ground <> 'person' OR held_row_id IS NOT NULL),
  CONSTRAINT reversal_ground_has_days CHECK (
    num_nonnulls(sold_on, judged_on) = CASE WHEN ground IN ('person', 'processor') THEN 0 ELSE 2 END)
);
CALL make_fact_of_event('reversal_grounds');

CALL require_known('ledger_rows', 'ledger_rows_reversal_has_ground', $$
  SELECT format('no rule and no person allowed the reversal %s', a.reversal_id) FROM added a
  WHERE a.kind = 'reversal' AND NOT EXISTS (
    SELECT FROM reversal_grounds g
    WHERE g.partner_id = a.partner_id AND g.reversal_id = a.reversal_id AND g.quote_id = a.quote_id)$$);

CREATE VIEW undecided_rows AS
SELECT h.* FROM held_rows h WHERE NOT EXISTS (SELECT FROM held_row_decisions d WHERE d.held_row_id = h.held_row_id);

-- Acceptances and reversals through the API that may repeat another one, in the open months. Checkpoints fill this table
-- and a close empties it. It is working data: the program finds the rows in the ledger, and a decision deletes them.
CREATE TABLE doubled_rows (
  posted_month text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  -- The own id of the first row.
  repeats text COLLATE "C" NOT NULL,
  PRIMARY KEY (partner_id, posted_month, entry_id),
  FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows
);
CALL grant_to_app('SELECT, INSERT, DELETE', 'doubled_rows');

CREATE FUNCTION has_no_rows() RETURNS boolean STABLE LANGUAGE sql
RETURN NOT EXISTS (SELECT FROM ledger_rows) AND NOT EXISTS (SELECT FROM archived_months);
CALL make_append_only('presentation', 'UPDATE', 'has_no_rows()');
CALL grant_to_app('UPDATE', 'presentation');

-- With the setting recognition: over_cover, a close divides each covered sale that it bills into the months of its cover,
-- by days. Here are the sums of these parts. The parts of months up to the close are released in the month of the close.
CREATE TABLE revenue_schedules (
  month billing_month NOT NULL REFERENCES closed_months,
  partner_id text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  release_month billing_month NOT NULL,
  amount numeric NOT NULL CONSTRAINT revenue_schedule_not_zero CHECK (amount <> 0),
  PRIMARY KEY (month, partner_id, policy_id, currency, release_month),
  CONSTRAINT revenue_schedule_of_policy FOREIGN KEY (partner_id, policy_id) REFERENCES policies (partner_id, policy_id),
  CONSTRAINT revenue_schedule_not_before_its_month CHECK (release_month >= month),
  CONSTRAINT revenue_schedule_digits CHECK (scale(amount) <= minor_digits(currency))
);
CALL make_fact('revenue_schedules');

-- The days of cover of a row: its own, or those of the requote that it names, or of the quote. A pro rata reversal has
-- the days after its own day.
CREATE FUNCTION cover_of(e ledger_rows) RETURNS TABLE (begins date, ends date) STABLE LANGUAGE sql AS $$
  SELECT coalesce(e.cover_from, least(greatest(s.cover_from, s.judged_on + 1), s.cover_to)),
         CASE WHEN e.cover_from IS NULL THEN s.cover_to ELSE e.cover_to END
  FROM (SELECT) AS one
  LEFT JOIN LATERAL (
    SELECT q.cover_from, q.cover_to, g.judged_on FROM ledger_rows q
    LEFT JOIN reversal_grounds g ON g.partner_id = e.partner_id AND g.reversal_id = e.reversal_id AND g.ground = 'pro_rata'
    WHERE e.cover_from IS NULL AND e.kind <> 'quote_accepted' AND q.partner_id = e.partner_id
      AND (q.kind, own_id(q)) IN (('quote_accepted', e.quote_id), ('requote_accepted', e.requote_id))
      AND q.cover_from IS NOT NULL
    ORDER BY q.kind DESC LIMIT 1) AS s ON true
$$;

-- An amount divided into the months of its days. A part is the difference of what is earned up to its month and before
-- it, each rounded once, half away from zero. So the parts add up to the amount, and the parts of a reversal are those of
-- its sale. The quotient has ten decimals: of the largest amounts it would have four, and could be rounded to a half.
CREATE FUNCTION parts_of(amount numeric, digits integer, begins date, ends date)
RETURNS TABLE (month text, part numeric) STABLE LANGUAGE sql AS $$
  SELECT to_char(b.begins, 'YYYY-MM') COLLATE "C",
         round(amount * least((b.begins + interval '1 month')::date - $3, d.days) / d.days, digits)
           - round(amount * greatest(b.begins::date - $3, 0) / d.days, digits)
  FROM (SELECT ($4 - $3 + 1)::numeric(15, 10) AS days) AS d
  CROSS JOIN LATERAL generate_series(date_trunc('month', $3), $4, '1 month') AS b (begins)
$$;

CREATE FUNCTION rows_of_sale(of_partner text, of_quote text) RETURNS SETOF ledger_rows STABLE LANGUAGE sql AS $$
  SELECT q.* FROM ledger_rows q WHERE q.partner_id = of_partner AND (q.kind, own_id(q)) = ('quote_accepted', of_quote)
  UNION ALL
  SELECT q.* FROM ledger_rows q WHERE q.partner_id = of_partner AND q.quote_id = of_quote AND q.kind <> 'quote_accepted'
$$;

-- The parts of the covered rows that a month bills, after the month that was closed before. A requote or a reversal that
-- states no cover has that of its sale. Rows without an end of cover, or with more than 50 years, have no parts.
--
-- A reversal without its own cover lowers all parts that its requote, or else its sale, has left, in proportion. It is
-- the difference of what is left up to each month after it and before it, rounded once. So nothing is taken back that was
-- not sold, and a reversal of all that is left leaves nothing. A pro rata reversal does so only if it takes all that is
-- left, or if the rows of its sale have different days.
CREATE FUNCTION covered_parts(after text, billed_month text)
RETURNS TABLE (partner_id text, policy_id text, currency text, release_month text, amount numeric) STABLE LANGUAGE sql AS $$
  WITH RECURSIVE billed AS MATERIALIZED (
    SELECT e FROM ledger_rows e
    WHERE e.posted_month > coalesce(after, '') AND e.posted_month <= billed_month AND e.invoice_amount <> 0
      AND (e.kind <> 'quote_accepted' OR e.cover_to IS NOT NULL)
  ), sales AS MATERIALIZED (
    SELECT DISTINCT (e).partner_id, (e).quote_id FROM billed WHERE (e).kind = 'reversal' AND (e).cover_from IS NULL
  ), sold AS MATERIALIZED (
    SELECT o AS e, row_number() OVER so_far AS place, o.kind = 'reversal' AND o.cover_from IS NULL
             AND bool_or(o.cover_to < o.cover_from + 18263) OVER so_far
             AND (g.reversal_id IS NULL OR sum(o.invoice_amount) OVER so_far = 0
                  OR (min(o.cover_from) OVER so_far, min(o.cover_to) OVER so_far)
                     <> (max(o.cover_from) OVER so_far, max(o.cover_to) OVER so_far)) AS is_proportional
    FROM sales s CROSS JOIN LATERAL rows_of_sale(s.partner_id, s.quote_id) AS o
    LEFT JOIN reversal_grounds g ON o.kind = 'reversal' AND g.partner_id = o.partner_id AND g.reversal_id = o.reversal_id
      AND g.ground = 'pro_rata'
    WHERE o.posted_month <= billed_month
    WINDOW so_far AS (PARTITION BY o.partner_id, o.quote_id ORDER BY o.posted_month, o.entry_id)
  ), taken AS MATERIALIZED (
    SELECT (e).partner_id, (e).quote_id, (e).requote_id, (e).invoice_amount, place, minor_digits((e).currency) AS digits,
           (e).posted_month > coalesce(after, '') AS is_billed,
           row_number() OVER (PARTITION BY (e).partner_id, (e).quote_id ORDER BY place) AS step
    FROM sold WHERE is_proportional
  ), left_over AS (
    SELECT (e).partner_id, (e).quote_id, (e).requote_id, (e).policy_id, (e).currency, place, p.month, p.part, 0::bigint AS step
    FROM sold CROSS JOIN LATERAL cover_of(e) AS c
    CROSS JOIN LATERAL (
      SELECT month, part FROM parts_of((e).invoice_amount, minor_digits((e).currency), c.begins, c.ends)
      WHERE c.ends < c.begins + 18263
      UNION ALL SELECT (e).posted_month, (e).invoice_amount WHERE (c.ends < c.begins + 18263) IS NOT TRUE) AS p
    WHERE NOT is_proportional
    UNION ALL
    SELECT partner_id, quote_id, requote_id, policy_id, currency, place, month,
           CASE WHEN is_lowered AND total <> 0 THEN round(up_to * remains / total, digits)
                                                  - round((up_to - part) * remains / total, digits)
                ELSE part END, next_step
    FROM (
      SELECT *, sum(part) FILTER (WHERE is_lowered) OVER (PARTITION BY partner_id, quote_id ORDER BY month, place) AS up_to,
             CASE WHEN total * (total + taken) > 0 THEN total + taken ELSE 0 END AS remains
      FROM (
        SELECT *, (sum(part) FILTER (WHERE is_lowered) OVER (PARTITION BY partner_id, quote_id))::numeric(40, 20) AS total
        FROM (
          -- A reversal of more than its requote has left, after reversals of the whole sale, lowers the whole sale.
          SELECT l.*, t.step AS next_step, t.digits, t.invoice_amount AS taken, l.place < t.place AND (
                   t.requote_id IS NULL OR l.requote_id = t.requote_id
                   OR coalesce(sum(l.part) FILTER (WHERE l.place < t.place AND l.requote_id = t.requote_id)
                        OVER (PARTITION BY l.partner_id, l.quote_id), 0) < -t.invoice_amount) AS is_lowered
          FROM left_over l JOIN taken t
            ON t.partner_id = l.partner_id AND t.quote_id = l.quote_id AND t.step = l.step + 1) AS x) AS y) AS z
  ), parts AS (
    SELECT r.partner_id, r.policy_id, r.currency, greatest(p.month, billed_month) AS month, r.times * p.part AS part
    FROM (
      SELECT (b.e).partner_id, (b.e).policy_id, (b.e).currency, (b.e).invoice_amount, c.begins, c.ends, count(*) AS times
      FROM (
        SELECT e FROM billed WHERE ((e).kind = 'reversal' AND (e).cover_from IS NULL) IS NOT TRUE
        UNION ALL
        SELECT e FROM sold WHERE (e).kind = 'reversal' AND (e).cover_from IS NULL AND NOT is_proportional
          AND (e).posted_month > coalesce(after, '') AND (e).invoice_amount <> 0) AS b
      CROSS JOIN LATERAL cover_of(b.e) AS c
      WHERE c.ends < c.begins + 18263
      GROUP BY 1, 2, 3, 4, 5, 6) AS r
    CROSS JOIN LATERAL parts_of(r.invoice_amount, minor_digits(r.currency), r.begins, r.ends) AS p
    UNION ALL
    SELECT (e).partner_id, (e).policy_id, (e).currency, billed_month, (e).invoice_amount FROM sold
    WHERE is_proportional AND (e).posted_month > coalesce(after, '')
    UNION ALL
    SELECT l.partner_id, l.policy_id, l.currency, m.month, m.part
    FROM (
      SELECT l.partner_id, l.policy_id, l.currency, l.month,
             sum(CASE l.step WHEN s.last_step THEN l.part ELSE -l.part END) AS part
      FROM left_over l JOIN (
        SELECT partner_id, quote_id, count(*) AS last_step, count(*) FILTER (WHERE NOT is_billed) AS first_step
        FROM taken GROUP BY 1, 2) AS s ON s.partner_id = l.partner_id AND s.quote_id = l.quote_id
      WHERE l.step IN (s.first_step, s.last_step) AND s.first_step < s.last_step AND l.month > billed_month
      GROUP BY 1, 2, 3, 4) AS l
    CROSS JOIN LATERAL (VALUES (l.month, l.part), (billed_month, -l.part)) AS m (month, part)
  )
  SELECT partner_id, policy_id, currency, month, sum(part) FROM parts GROUP BY 1, 2, 3, 4 HAVING sum(part) <> 0
$$;
