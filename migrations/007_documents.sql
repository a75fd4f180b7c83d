-- Documents (invoices, credit notes and statements) with their lines and corrections. Corrections are voids,
-- replacements, applied and released credit, write-offs and their reversals, and holds. A document is never edited:
-- each correction is a new fact.
--
-- In facts with a journal entry, reopened_on is the earliest postable date at the time of recording.

-- The issuer's logos, stored once by content, so that an old document can be rendered again with its logo.
CREATE TABLE logos (
  sha256 text CONSTRAINT logo_once PRIMARY KEY,
  media_type text NOT NULL CONSTRAINT logo_media_type_known CHECK (media_type IN ('image/png', 'image/jpeg')),
  width integer NOT NULL CONSTRAINT logo_width_positive CHECK (width > 0),
  height integer NOT NULL CONSTRAINT logo_height_positive CHECK (height > 0),
  content bytea NOT NULL,
  first_used_at timestamptz NOT NULL,
  CONSTRAINT logo_is_its_hash CHECK (sha256 = encode(sha256(content), 'hex'))
);
ALTER TABLE logos ALTER COLUMN content SET STORAGE EXTERNAL;
CALL make_append_only('logos');

-- The printed data of the issuer, stored once per version. A document refers to the version that it printed.
CREATE TABLE issuer_versions (
  issuer_version_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  content jsonb NOT NULL CONSTRAINT issuer_version_once UNIQUE,
  first_used_at timestamptz NOT NULL,
  logo_sha256 text GENERATED ALWAYS AS (content #>> '{logo,sha256}') STORED
    CONSTRAINT issuer_logo_kept REFERENCES logos
);
CALL make_fact('issuer_versions');

-- A credit note states its amounts negated, so sums over documents multiply by this sign.
CREATE FUNCTION document_sign(document text) RETURNS integer IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN CASE document WHEN 'credit_note' THEN -1 ELSE 1 END;

-- Documents of each kind are numbered from 1 each year: INV-2026, CN-2026, ST-2026.
CREATE FUNCTION document_series(document text, issued_on date) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN CASE document WHEN 'invoice' THEN 'INV-' WHEN 'credit_note' THEN 'CN-' ELSE 'ST-' END
       || extract(year FROM issued_on)::text;

-- Items of the previous system that were open at the end of a day, the cut-over, and that were carried over. Invoices
-- and credits become documents with the purpose `opening` and with their previous numbers and dates. Unapplied cash
-- becomes payments with the source `opening`. All items are entered in the books on the day of the cut-over.
CREATE TABLE openings (
  opening_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cut_over_on date NOT NULL,
  sha256 text NOT NULL CONSTRAINT opening_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  name text NOT NULL CONSTRAINT opening_has_name CHECK (name <> ''),
  CONSTRAINT opening_on_its_day UNIQUE (opening_id, cut_over_on)
);
CALL make_fact_of_event('openings');

-- The totals of an opening, and the control total that finance took from the previous system: receivables less credit
-- and unapplied cash.
CREATE TABLE opening_totals (
  opening_id bigint NOT NULL REFERENCES openings,
  currency text COLLATE "C" NOT NULL,
  items integer NOT NULL CONSTRAINT opening_total_of_items CHECK (items > 0),
  invoices numeric NOT NULL CONSTRAINT opening_invoices_not_negative CHECK (invoices >= 0),
  credits numeric NOT NULL CONSTRAINT opening_credits_not_negative CHECK (credits >= 0),
  cash numeric NOT NULL CONSTRAINT opening_cash_not_negative CHECK (cash >= 0),
  control numeric NOT NULL,
  PRIMARY KEY (opening_id, currency),
  CONSTRAINT opening_meets_its_control CHECK (control = invoices - credits - cash)
);
CALL make_fact('opening_totals');

-- Reckoner bills the months after the cut-over. After such a month is closed, its reports are published, and no opening
-- may change them.
CREATE FUNCTION refuse_opening_of_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM closed_months WHERE month > to_char(NEW.cut_over_on, 'YYYY-MM') COLLATE "C") THEN
    PERFORM refuse('opening_before_closed_months',
                   format('a month after the cut-over of %s is closed', NEW.cut_over_on));
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER opening_before_closed_months BEFORE INSERT ON openings
  FOR EACH ROW EXECUTE FUNCTION refuse_opening_of_closed_month();

-- The day that is `days` after the issue, or the end of its month, or the next day of a month from then on. 30 days, end
-- of month: 2026-11-01 is due on 2026-12-31. 0 days, end of month, day 15: on 2026-12-15. A shorter month has its last day.
CREATE FUNCTION due_date(issued_on date, days integer, end_of_month boolean, day integer) RETURNS date
IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN (
  SELECT CASE WHEN day IS NULL THEN least_on ELSE (
           SELECT min(least(begins + day - 1, (begins + interval '1 month')::date - 1))
           FROM (VALUES (month), ((month + interval '1 month')::date)) AS m (begins)
           WHERE least(begins + day - 1, (begins + interval '1 month')::date - 1) >= least_on) END
  FROM (SELECT month, CASE WHEN end_of_month THEN (month + interval '1 month')::date - 1 ELSE after END AS least_on
        FROM (SELECT issued_on + days AS after,
                     issued_on + days - extract(day FROM issued_on + days)::integer + 1 AS month) AS a) AS e);

CREATE TABLE documents (
  document_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  series text COLLATE "C" NOT NULL,
  sequence integer NOT NULL CONSTRAINT document_sequence_positive CHECK (sequence > 0),
  number text COLLATE "C" NOT NULL GENERATED ALWAYS AS
    (CASE WHEN opening_number IS NULL THEN series || '-' || lpad(sequence::text, greatest(6, length(sequence::text)), '0')
          WHEN opening_revision = 1 THEN opening_number
          ELSE opening_number || '~' || opening_revision::text END) STORED
    CONSTRAINT document_number_once UNIQUE,
  document text NOT NULL CONSTRAINT document_known CHECK (document IN ('invoice', 'credit_note', 'statement')),
  purpose text NOT NULL CONSTRAINT document_purpose_known
    CHECK (purpose IN ('month', 'adjustment', 'missing_shares', 'opening')),
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  month billing_month NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text NOT NULL CONSTRAINT document_arrangement_known
    CHECK (arrangement IN ('invoicing', 'connected_account')),
  issued_on date NOT NULL,
  due_on date,
  terms_days integer,
  terms_end_of_month boolean CONSTRAINT document_terms_end_of_month_or_null CHECK (terms_end_of_month),
  terms_day integer CONSTRAINT document_terms_day_range CHECK (terms_day BETWEEN 1 AND 31),
  enrollments bigint NOT NULL,
  entries bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  -- The sum of document_taxes. The partner owes the gross amount. spot_price, partner_cut and invoice_amount exclude
  -- tax.
  tax numeric NOT NULL DEFAULT 0,
  gross numeric NOT NULL GENERATED ALWAYS AS (invoice_amount + tax) STORED,
  credit_applied numeric NOT NULL,
  partner_name text NOT NULL,
  contact_name text NOT NULL,
  address_line1 text NOT NULL,
  address_line2 text NOT NULL,
  address_city text NOT NULL,
  address_region text NOT NULL,
  address_postal_code text NOT NULL,
  address_country text NOT NULL,
  tax_id text NOT NULL,
  purchase_order text NOT NULL,
  legal_note text NOT NULL,
  e_invoice text NOT NULL DEFAULT 'none'
    CONSTRAINT document_e_invoice_known CHECK (e_invoice IN ('none', 'facturx', 'ubl', 'xrechnung')),
  buyer_reference text NOT NULL DEFAULT '',
  electronic_address text NOT NULL DEFAULT '',
  issuer_version_id bigint NOT NULL REFERENCES issuer_versions,
  sandbox boolean NOT NULL,
  issued_at timestamptz NOT NULL,
  -- The void document that this document replaces.
  replaces bigint CONSTRAINT document_replaced_once UNIQUE,
  -- The invoice that this credit note credits.
  credits bigint,
  -- The amount by which a credit note reduced its invoice's balance at issue, and the balance that remained.
  invoice_lowered_by numeric,
  invoice_left numeric,
  reason text NOT NULL DEFAULT '',
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (greatest(issued_on, reopened_on)) STORED,
  -- For an item that an opening carried over: its opening, its number in the previous system, and the amount that was
  -- issued there. A reversed item may be carried over again under the same number as the next revision, which follows
  -- the void revision.
  opening_id bigint,
  opening_number text COLLATE "C" CONSTRAINT opening_number_form
    CHECK (opening_number ~ '^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$'),
  opening_revision integer CONSTRAINT opening_revision_positive CHECK (opening_revision > 0),
  opening_follows bigint CONSTRAINT opening_followed_once UNIQUE,
  original_amount numeric,
  CONSTRAINT document_sequence_once UNIQUE (series, sequence),
  CONSTRAINT document_series_of_kind_and_year CHECK (
    series = CASE purpose WHEN 'opening' THEN 'OPENING' ELSE document_series(document, issued_on) END),
  CONSTRAINT document_statement_has_no_e_invoice CHECK (document <> 'statement' OR e_invoice = 'none'),
  CONSTRAINT document_balance CHECK (spot_price = partner_cut + invoice_amount),
  CONSTRAINT document_arrangement_gives_kind CHECK (
    purpose <> 'month' OR (document = 'statement') = (arrangement = 'connected_account')),
  -- No invoice is negative: a net-negative month is a credit note with negated amounts.
  CONSTRAINT document_amount_not_negative CHECK (document = 'statement' OR gross >= 0),
  -- The processor routes exactly the invoice amount, so a connected account's sales are taxed outside Reckoner.
  CONSTRAINT document_tax_on_invoicing CHECK (tax = 0 OR arrangement = 'invoicing'),
  CONSTRAINT document_credit_within_amount CHECK (
    credit_applied = 0 OR (document = 'invoice' AND credit_applied BETWEEN 0 AND gross)),
  CONSTRAINT document_due_on_invoices CHECK (
    (document = 'invoice') = (due_on IS NOT NULL) AND (due_on IS NULL) = (terms_days IS NULL)
    AND (document = 'invoice' OR num_nonnulls(terms_end_of_month, terms_day) = 0)),
  -- A replacement keeps the original due date, unless it was issued with new terms.
  CONSTRAINT document_due_after_terms CHECK (
    due_on = due_date(issued_on, terms_days, terms_end_of_month, terms_day) OR replaces IS NOT NULL),
  CONSTRAINT document_missing_shares_are_invoiced CHECK (
    purpose <> 'missing_shares' OR (document = 'invoice' AND arrangement = 'connected_account' AND invoice_amount > 0)),
  CONSTRAINT document_adjustment_credits_an_invoice CHECK (
    (purpose = 'adjustment') = (credits IS NOT NULL)
    AND (purpose <> 'adjustment' OR (document = 'credit_note' AND invoice_amount > 0 AND btrim(reason) <> ''))),
  CONSTRAINT document_adjustment_states_what_is_left CHECK (
    CASE purpose WHEN 'adjustment' THEN coalesce(invoice_lowered_by BETWEEN 0 AND gross AND invoice_left >= 0, false)
                 ELSE num_nonnulls(invoice_lowered_by, invoice_left) = 0 END),
  CONSTRAINT document_opening_has_its_facts CHECK (
    CASE purpose WHEN 'opening' THEN num_nonnulls(opening_id, opening_number, opening_revision, original_amount) = 4
                 ELSE num_nonnulls(opening_id, opening_number, opening_revision, opening_follows, original_amount) = 0 END),
  -- An opened item bills no rows, is not one of our sales, and is entered on the day of the cut-over, after its issue.
  CONSTRAINT document_opening_bills_nothing CHECK (purpose <> 'opening' OR coalesce(
    document <> 'statement' AND arrangement = 'invoicing' AND enrollments = 0 AND entries = 0 AND partner_cut = 0
    AND tax = 0 AND invoice_amount > 0 AND credit_applied = 0 AND replaces IS NULL AND original_amount >= invoice_amount
    AND reopened_on >= issued_on, false)),
  -- The number of a carried-over item must not be a number that we may still assign. Our documents are dated after the
  -- cut-over.
  CONSTRAINT opening_number_not_ours CHECK (
    CASE WHEN opening_number ~* '^(INV|CN|ST)-\d{4}-\d{6,}$'
         THEN split_part(opening_number, '-', 2)::integer < extract(year FROM reopened_on) ELSE true END),
  CONSTRAINT opening_revision_follows CHECK ((opening_revision = 1) = (opening_follows IS NULL)),
  CONSTRAINT document_of_opening_number UNIQUE (document_id, opening_number),
  CONSTRAINT opening_follows_its_number FOREIGN KEY (opening_follows, opening_number)
    REFERENCES documents (document_id, opening_number),
  CONSTRAINT document_entered_at_the_cut_over FOREIGN KEY (opening_id, reopened_on)
    REFERENCES openings (opening_id, cut_over_on),
  -- Foreign keys use these columns: a replacement has the same values, and a credit note against the document does too.
  CONSTRAINT document_stands_for UNIQUE (document_id, partner_id, month, currency, arrangement),
  CONSTRAINT document_of_partner_and_currency UNIQUE (document_id, partner_id, currency),
  CONSTRAINT document_credits_its_partners_invoice FOREIGN KEY (credits, partner_id, month, currency, arrangement)
    REFERENCES documents (document_id, partner_id, month, currency, arrangement)
);
-- A month has only one live document for each partner, currency and arrangement. The first document replaces nothing,
-- and each later document replaces a void document. No document is replaced twice, so the documents of a month form a
-- chain in which only the last can be live.
CREATE UNIQUE INDEX document_one_live_per_month ON documents (partner_id, month, currency, arrangement)
  WHERE purpose = 'month' AND replaces IS NULL;
-- Each number of the previous system is carried over only once, whatever its letter case. Revisions are exempt.
CREATE UNIQUE INDEX opening_number_once ON documents (lower(opening_number))
  WHERE opening_number IS NOT NULL AND opening_follows IS NULL;
CREATE INDEX documents_of_opening ON documents (opening_id) WHERE opening_id IS NOT NULL;
CREATE INDEX documents_by_month ON documents (month);
CREATE INDEX documents_by_words ON documents USING gin (lower(
  number COLLATE "default" || E'\n' || purchase_order || E'\n' || partner_name || E'\n' || partner_id) gin_trgm_ops);
-- Facts are recorded nearly in the order of their entry dates, so a block range index finds the facts since a given
-- day.
CREATE INDEX documents_by_entry ON documents USING brin (entry_on) WITH (pages_per_range = 16, autosummarize = on);
CREATE INDEX credit_notes_of_partner ON documents (partner_id, currency) WHERE document = 'credit_note';
CREATE INDEX adjustments_of_invoice ON documents (credits) WHERE credits IS NOT NULL;
CALL require_open_books('documents');
CALL make_fact('documents');
CREATE FUNCTION keep_contact() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.contact_name := keep_text(NEW.contact_name);
  RETURN NEW;
END
$$;
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION keep_contact();
ALTER TABLE documents ADD CONSTRAINT documents_contact_name_kept CHECK (contact_name = '' OR is_commitment(contact_name));

-- Numbers that are never assigned. After a restore, these are the numbers that the lost ledger may have issued after
-- the backup. Each range belongs to the resumption that skipped it.
CREATE TABLE skipped_numbers (
  series text COLLATE "C" NOT NULL CONSTRAINT skipped_series_form CHECK (series ~ '^(INV|CN|ST)-\d{4}$'),
  first_sequence integer NOT NULL CONSTRAINT skipped_sequence_positive CHECK (first_sequence > 0),
  last_sequence integer NOT NULL,
  pause_id bigint NOT NULL REFERENCES resumptions,
  PRIMARY KEY (series, first_sequence),
  CONSTRAINT skipped_range CHECK (last_sequence >= first_sequence)
);
CALL make_fact_of_event('skipped_numbers', while_paused => true);

-- A number is assigned or skipped, never both and never twice. Issuing and skipping hold the ledger's lock exclusively.
CREATE FUNCTION refuse_skipped_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM skipped_numbers s JOIN documents d ON d.series = s.series
             AND d.sequence BETWEEN s.first_sequence AND s.last_sequence)
     OR EXISTS (SELECT FROM skipped_numbers s JOIN skipped_numbers other ON other.series = s.series
                AND other.first_sequence > s.first_sequence AND other.first_sequence <= s.last_sequence) THEN
    PERFORM refuse('number_given_or_skipped', 'a number was given and skipped, or skipped twice');
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER number_given_or_skipped AFTER INSERT ON documents
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_skipped_number();
CREATE TRIGGER number_given_or_skipped AFTER INSERT ON skipped_numbers
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_skipped_number();

-- The tax of an amount, rounded once, half away from zero, to the currency's digits (EN 16931, BR-CO-17).
CREATE FUNCTION tax_of(taxable numeric, rate numeric, currency text) RETURNS numeric IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN round(taxable * rate / 100, minor_digits(currency));

-- The tax totals of a document by country, category and rate, fixed at its issue. Reduced tax rates have separate
-- totals. A document without configured tax has no totals. Rates are in percent. A credit note has its amounts negated,
-- as in its header.
CREATE TABLE document_taxes (
  document_id bigint NOT NULL REFERENCES documents,
  position integer NOT NULL CONSTRAINT document_tax_position_positive CHECK (position > 0),
  currency text COLLATE "C" NOT NULL,
  -- The partner's country, by which the tax rule was chosen, or empty if the partner's address had no country. A
  -- reversal has the country of the reversed row.
  country text COLLATE "C" NOT NULL,
  -- The issuer's tax number in that country; empty means issuer.tax_id of the settings.
  registration text NOT NULL,
  -- The name as printed, such as VAT or Consumption tax.
  name text NOT NULL CONSTRAINT document_tax_named CHECK (name <> ''),
  category text NOT NULL CONSTRAINT document_tax_category_known
    CHECK (category IN ('standard', 'zero', 'exempt', 'reverse_charge', 'outside_scope')),
  rate numeric NOT NULL,
  reduced boolean NOT NULL,
  reason text NOT NULL,
  reason_code text NOT NULL,
  taxable numeric NOT NULL,
  tax numeric NOT NULL,
  PRIMARY KEY (document_id, position),
  CONSTRAINT document_tax_once UNIQUE (document_id, country, category, rate, reduced),
  CONSTRAINT document_tax_rate_of_category CHECK (
    CASE category WHEN 'standard' THEN rate > 0 AND rate <= 100 ELSE rate = 0 AND NOT reduced END),
  CONSTRAINT document_tax_reason_of_category CHECK (
    CASE WHEN category IN ('standard', 'zero') THEN reason = '' AND reason_code = '' ELSE reason <> '' END),
  CONSTRAINT document_tax_none_without_rate CHECK (rate > 0 OR tax = 0),
  CONSTRAINT document_tax_digits CHECK (greatest(scale(taxable), scale(tax)) <= minor_digits(currency))
);
CALL make_fact('document_taxes');

CREATE TABLE document_lines (
  document_id bigint NOT NULL REFERENCES documents,
  -- Lines of the document's own month come before lines of earlier months. Within these two groups, lines are sorted by
  -- policy and by kind.
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
  -- The position of the tax total of the line, or NULL on a document without tax.
  tax integer,
  PRIMARY KEY (document_id, position),
  -- A reversal has the tax of the reversed row, so a change of rate or country may split a line.
  CONSTRAINT line_once UNIQUE NULLS NOT DISTINCT (document_id, policy_id, kind, month, tax),
  CONSTRAINT line_balance CHECK (spot_price = partner_cut + invoice_amount),
  CONSTRAINT line_tax_of_its_document FOREIGN KEY (document_id, tax) REFERENCES document_taxes (document_id, position)
);
CALL make_fact('document_lines');

-- The positions of the lines that a tax total covers, such as 1 3 4, as the fact of the total states them. Empty for a
-- credit note against an invoice, which has no lines.
CREATE FUNCTION lines_of_tax(document_id bigint, tax integer) RETURNS text STABLE LANGUAGE sql
RETURN (SELECT coalesce(string_agg(l.position::text, ' ' ORDER BY l.position), '') FROM document_lines l
        WHERE l.document_id = lines_of_tax.document_id AND l.tax = lines_of_tax.tax);

-- Checks the totals at the commit, when the document is complete. The tax of a document is the sum of its totals, the
-- totals cover its net amount, and each total covers its lines. The tax of a month's document is computed from its
-- taxable amounts. If several credit notes are against the same invoice, the sum of their taxes is the tax of the
-- amount that they credit together (src/documents/tax.ts).
CREATE FUNCTION refuse_untied_tax() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  of_document documents;
  taxable_sum numeric;
  tax_sum numeric;
  untied text;
BEGIN
  SELECT * INTO of_document FROM documents d WHERE d.document_id = NEW.document_id;
  SELECT sum(t.taxable), sum(t.tax),
         string_agg(t.position::text, ', ') FILTER (WHERE of_document.purpose = 'month' AND (
           t.tax <> tax_of(t.taxable, t.rate, t.currency)
           OR t.taxable IS DISTINCT FROM (SELECT sum(l.invoice_amount) FROM document_lines l
                                          WHERE l.document_id = t.document_id AND l.tax = t.position)))
  INTO taxable_sum, tax_sum, untied FROM document_taxes t WHERE t.document_id = NEW.document_id;
  IF (coalesce(tax_sum, 0), coalesce(taxable_sum, of_document.invoice_amount))
     IS DISTINCT FROM (of_document.tax, of_document.invoice_amount) OR untied IS NOT NULL
     OR EXISTS (SELECT FROM document_lines l
                WHERE l.document_id = NEW.document_id AND (l.tax IS NULL) = (tax_sum IS NOT NULL)) THEN
    PERFORM refuse('document_tax_ties', format(
      'document %s states tax of %s on %s, its totals %s on %s, untied: %s',
      of_document.number, of_document.tax, of_document.invoice_amount, tax_sum, taxable_sum, coalesce(untied, 'none')));
  END IF;
  RETURN NULL;
END
$$;
CALL check_at_commit('document_tax_ties', 'documents', 'refuse_untied_tax()', 'NEW.tax <> 0');
CALL check_at_commit('document_tax_ties', 'document_taxes', 'refuse_untied_tax()');

CREATE TABLE voids (
  document_id bigint PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text NOT NULL,
  reason text NOT NULL CONSTRAINT void_has_reason CHECK (btrim(reason) <> ''),
  voided_on date NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (greatest(voided_on, reopened_on)) STORED,
  CONSTRAINT void_stands_for UNIQUE (document_id, partner_id, month, currency, arrangement),
  CONSTRAINT void_is_of_a_document FOREIGN KEY (document_id, partner_id, month, currency, arrangement)
    REFERENCES documents (document_id, partner_id, month, currency, arrangement)
);
CALL make_entry('voids');

CREATE VIEW live_documents AS
SELECT * FROM documents d WHERE NOT EXISTS (SELECT FROM voids v WHERE v.document_id = d.document_id);

-- Documents and voids name each other, so this foreign key comes after both. The key is deferrable, so that a restore
-- can fill the tables one after another.
ALTER TABLE documents ADD CONSTRAINT document_replaces_a_void_one
  FOREIGN KEY (replaces, partner_id, month, currency, arrangement)
  REFERENCES voids (document_id, partner_id, month, currency, arrangement) DEFERRABLE;

ALTER TABLE documents ADD CONSTRAINT opening_follows_a_void_one
  FOREIGN KEY (opening_follows) REFERENCES voids (document_id) DEFERRABLE;

-- Applications of an open credit note to an invoice. Such an application is made when the invoice is issued, when a
-- credit note against the invoice is issued, by a command, or by a payment that refers to both.
CREATE TABLE credit_applications (
  credit_application_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  credit_note_id bigint NOT NULL REFERENCES documents,
  invoice_id bigint NOT NULL REFERENCES documents,
  amount numeric NOT NULL CONSTRAINT credit_application_positive CHECK (amount > 0),
  applied_on date NOT NULL,
  at_issue boolean NOT NULL DEFAULT true,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (greatest(applied_on, reopened_on)) STORED,
  CONSTRAINT credit_application_of_invoice UNIQUE (credit_application_id, invoice_id)
);
CREATE INDEX credit_applications_of_note ON credit_applications (credit_note_id);
CREATE INDEX credit_applications_of_invoice ON credit_applications (invoice_id);
CALL make_entry('credit_applications');

-- Releases of applied credit, which is then open again. A void releases all credit applied to the invoice.
CREATE TABLE credit_releases (
  credit_application_id bigint PRIMARY KEY REFERENCES credit_applications,
  -- The void invoice. NULL means that a command released the credit.
  document_id bigint REFERENCES voids,
  released_on date NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (greatest(released_on, reopened_on)) STORED,
  CONSTRAINT credit_release_by_its_invoices_void FOREIGN KEY (credit_application_id, document_id)
    REFERENCES credit_applications (credit_application_id, invoice_id)
);
CALL make_entry('credit_releases');

-- Refuses to release credit that completely covered an invoice at its issue. The invoice has no payment page and asks
-- for no money, so only its void can release the credit.
CREATE FUNCTION refuse_release_of_covering_credit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM credit_applications a JOIN documents d ON d.document_id = a.invoice_id
             WHERE a.credit_application_id = NEW.credit_application_id AND d.credit_applied = d.gross) THEN
    PERFORM refuse('credit_release_leaves_nothing_due', format(
      'credit application %s covers an invoice that was issued with nothing due', NEW.credit_application_id));
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER credit_release_leaves_nothing_due BEFORE INSERT ON credit_releases
  FOR EACH ROW WHEN (NEW.document_id IS NULL) EXECUTE FUNCTION refuse_release_of_covering_credit();

CREATE VIEW live_credit_applications AS
SELECT * FROM credit_applications a
WHERE NOT EXISTS (SELECT FROM credit_releases r WHERE r.credit_application_id = a.credit_application_id);

CREATE TABLE write_offs (
  write_off_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  document_id bigint NOT NULL REFERENCES documents,
  amount numeric NOT NULL CONSTRAINT write_off_positive CHECK (amount > 0),
  reason text NOT NULL CONSTRAINT write_off_has_reason CHECK (btrim(reason) <> ''),
  written_off_on date NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (greatest(written_off_on, reopened_on)) STORED
);
CREATE INDEX write_offs_of_document ON write_offs (document_id);
CALL make_entry('write_offs');

CREATE TABLE write_off_reversals (
  write_off_id bigint PRIMARY KEY REFERENCES write_offs,
  reason text NOT NULL CONSTRAINT write_off_reversal_has_reason CHECK (btrim(reason) <> ''),
  reversed_on date NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (greatest(reversed_on, reopened_on)) STORED
);
CALL make_entry('write_off_reversals');

CREATE VIEW live_write_offs AS
SELECT * FROM write_offs w WHERE NOT EXISTS (SELECT FROM write_off_reversals r WHERE r.write_off_id = w.write_off_id);

-- Holds of documents. The next hold of a document refers to the release of the previous hold, so at most one hold is
-- current.
CREATE TABLE holds (
  hold_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  document_id bigint NOT NULL REFERENCES documents,
  follows bigint,
  reason text NOT NULL,
  held_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT hold_of_document UNIQUE (hold_id, document_id),
  CONSTRAINT hold_one_at_a_time UNIQUE NULLS NOT DISTINCT (document_id, follows)
);
CREATE TABLE hold_releases (
  hold_id bigint PRIMARY KEY,
  document_id bigint NOT NULL,
  released_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT hold_release_stands_for UNIQUE (hold_id, document_id),
  CONSTRAINT hold_release_is_of_a_hold FOREIGN KEY (hold_id, document_id) REFERENCES holds (hold_id, document_id)
);
ALTER TABLE holds ADD CONSTRAINT hold_follows_a_release FOREIGN KEY (follows, document_id)
  REFERENCES hold_releases (hold_id, document_id) DEFERRABLE;
CALL make_fact('holds', while_paused => true);
CALL make_fact('hold_releases', while_paused => true);

CREATE VIEW current_holds AS
SELECT * FROM holds h WHERE NOT EXISTS (SELECT FROM hold_releases r WHERE r.hold_id = h.hold_id);

-- Documents that finance gave to a partner through the partner's own portal. The latest row of a document counts.
CREATE TABLE portal_deliveries (
  portal_delivery_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  document_id bigint NOT NULL REFERENCES documents,
  delivered_on date NOT NULL,
  -- The portal's reference, or empty.
  reference text NOT NULL
);
CREATE INDEX portal_deliveries_of_document ON portal_deliveries (document_id);
CALL make_fact_of_event('portal_deliveries');

-- Disputes of invoices by partners. The next dispute of an invoice refers to the closing of the previous dispute, so at
-- most one dispute is open. A card dispute is different: the processor reports it for a payment (010_payments.sql).
CREATE TABLE invoice_disputes (
  invoice_dispute_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  document_id bigint NOT NULL REFERENCES documents,
  follows bigint,
  amount numeric NOT NULL CONSTRAINT invoice_dispute_positive CHECK (amount > 0),
  reason text NOT NULL CONSTRAINT invoice_dispute_has_reason CHECK (btrim(reason) <> ''),
  -- The person who works on the dispute, or empty if no one is assigned.
  owner text NOT NULL,
  promised_on date,
  disputed_on date NOT NULL,
  CONSTRAINT invoice_dispute_promise_ahead CHECK (promised_on >= disputed_on),
  CONSTRAINT invoice_dispute_of_document UNIQUE (invoice_dispute_id, document_id),
  CONSTRAINT invoice_dispute_one_at_a_time UNIQUE NULLS NOT DISTINCT (document_id, follows)
);
CREATE TABLE invoice_dispute_closings (
  invoice_dispute_id bigint PRIMARY KEY,
  document_id bigint NOT NULL,
  reason text NOT NULL CONSTRAINT invoice_dispute_closing_has_reason CHECK (btrim(reason) <> ''),
  closed_on date NOT NULL,
  CONSTRAINT invoice_dispute_closing_stands_for UNIQUE (invoice_dispute_id, document_id),
  CONSTRAINT invoice_dispute_closing_is_of_a_dispute FOREIGN KEY (invoice_dispute_id, document_id)
    REFERENCES invoice_disputes (invoice_dispute_id, document_id)
);
ALTER TABLE invoice_disputes ADD CONSTRAINT invoice_dispute_follows_a_closing FOREIGN KEY (follows, document_id)
  REFERENCES invoice_dispute_closings (invoice_dispute_id, document_id) DEFERRABLE;
CALL make_fact_of_event('invoice_disputes');
CALL keep_personal('invoice_disputes', 'owner');
CALL make_fact_of_event('invoice_dispute_closings');

CREATE VIEW open_invoice_disputes AS
SELECT * FROM invoice_disputes t
WHERE NOT EXISTS (SELECT FROM invoice_dispute_closings c WHERE c.invoice_dispute_id = t.invoice_dispute_id)
  AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = t.document_id);

-- Payment instructions, stored once per currency and wording. A document refers to the version that it printed.
CREATE TABLE instruction_versions (
  instruction_version_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  currency text COLLATE "C" NOT NULL,
  content jsonb NOT NULL,
  first_used_at timestamptz NOT NULL,
  CONSTRAINT instruction_version_once UNIQUE (currency, content)
);
CALL make_fact('instruction_versions');

-- The payment instructions for a currency, or else those for any currency ('*'). NULL if there are none. ACH is for US
-- dollars only. The result must equal the result of instructionsFor in src/config/instructions.ts.
CREATE FUNCTION instructions_for(instructions jsonb, currency text) RETURNS jsonb IMMUTABLE LANGUAGE sql
RETURN (
  SELECT nullif(jsonb_strip_nulls(jsonb_build_object(
           'ach', CASE WHEN currency = 'USD' THEN nullif(found->'ach', '{}') END,
           'wire', nullif(found->'wire', '{}'))), '{}')
  FROM unnest(ARRAY[instructions->currency, instructions->'*']) WITH ORDINALITY AS i (found, place)
  WHERE nullif(found->'ach', '{}') IS NOT NULL OR nullif(found->'wire', '{}') IS NOT NULL
  ORDER BY place LIMIT 1);

CREATE TABLE document_pdfs (
  document_id bigint PRIMARY KEY REFERENCES documents,
  renderer_version integer NOT NULL,
  -- The names and versions of the rendering libraries, because the bytes of the PDF depend on them.
  libraries jsonb NOT NULL,
  instruction_version_id bigint REFERENCES instruction_versions,
  instructions_changed boolean NOT NULL,
  sha256 text NOT NULL CONSTRAINT document_pdf_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  pdf bytea NOT NULL,
  rendered_at timestamptz NOT NULL,
  CONSTRAINT document_pdf_is_its_hash CHECK (sha256 = encode(sha256(pdf), 'hex'))
);
ALTER TABLE document_pdfs ALTER COLUMN pdf SET STORAGE EXTERNAL;
CALL make_fact('document_pdfs');

-- Compares the printed instructions with the last adoption that was recorded before the PDF. This comparison also
-- applies in a restore. An adoption takes the ledger's lock exclusively, so none can be recorded between this check and
-- the commit.
CREATE FUNCTION refuse_other_instructions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM instruction_versions v CROSS JOIN LATERAL (
      SELECT details->'value' AS instructions FROM audit_events
      WHERE action = 'settings.adopt' AND subject = 'instructions' AND log_no < NEW.log_no
      ORDER BY event_id DESC LIMIT 1) AS f
    WHERE v.instruction_version_id = NEW.instruction_version_id
      AND v.content = instructions_for(f.instructions, v.currency)) THEN
    PERFORM refuse('document_pdf_instructions_in_force',
                   format('the payment instructions of document %s are not in force', NEW.document_id));
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER instructions_in_force BEFORE INSERT ON document_pdfs
  FOR EACH ROW WHEN (NEW.instruction_version_id IS NOT NULL) EXECUTE FUNCTION refuse_other_instructions();
-- E-invoices (EN 16931): the document as XML.
CREATE TABLE document_e_invoices (
  document_id bigint PRIMARY KEY REFERENCES document_pdfs,
  writer_version integer NOT NULL,
  -- Both parties, as the XML states them. Their data was fixed at issue, and blanks were filled with the data at the
  -- time of writing.
  parties jsonb NOT NULL,
  sha256 text NOT NULL CONSTRAINT document_e_invoice_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  xml bytea NOT NULL,
  written_at timestamptz NOT NULL,
  CONSTRAINT document_e_invoice_is_its_hash CHECK (sha256 = encode(sha256(xml), 'hex'))
);
CALL make_fact('document_e_invoices');
