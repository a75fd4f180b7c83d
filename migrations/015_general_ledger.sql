-- The general-ledger hand-off: exported journals of months with their lines, and their files as written.

CREATE TABLE gl_exports (
  gl_export_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  month billing_month NOT NULL CONSTRAINT gl_export_after_billing REFERENCES closed_months,
  format text COLLATE "C" NOT NULL
    CONSTRAINT gl_export_format_known CHECK (format IN ('generic', 'quickbooks', 'xero', 'netsuite')),
  -- The number of the part of the journal. All parts of a month and format together are the month's journal.
  part integer NOT NULL CONSTRAINT gl_export_part_in_range CHECK (part BETWEEN 1 AND 99),
  previous integer,
  -- A difference contains the postings that were recorded after the earlier parts. A reclassification moves amounts
  -- between general-ledger accounts.
  kind text NOT NULL CONSTRAINT gl_export_kind_known CHECK (kind IN ('journal', 'difference', 'reclassification')),
  -- The root of the checkpoint that closes the month's books, or the month while they are open. In hexadecimal.
  checkpoint text NOT NULL CONSTRAINT gl_export_checkpoint_form CHECK (checkpoint ~ '^[0-9a-f]{64}$'),
  books_closed boolean NOT NULL,
  -- The contents of accounts.json that were used, with defaults filled in.
  accounts jsonb NOT NULL,
  writer integer NOT NULL,
  CONSTRAINT gl_export_parts_differ UNIQUE (month, format, part),
  CONSTRAINT gl_export_follows CHECK (previous IS NOT DISTINCT FROM nullif(part - 1, 0)),
  CONSTRAINT gl_export_part_before FOREIGN KEY (month, format, previous) REFERENCES gl_exports (month, format, part),
  CONSTRAINT gl_export_first_is_the_journal CHECK ((part = 1) = (kind = 'journal'))
);
CALL make_fact_of_event('gl_exports');

-- The amounts of our accounts by general-ledger account. Partner and policy are set if the journal states them.
CREATE TABLE gl_export_lines (
  gl_export_id bigint NOT NULL REFERENCES gl_exports,
  line integer NOT NULL CONSTRAINT gl_export_line_positive CHECK (line > 0),
  control text COLLATE "C" NOT NULL,
  account text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C",
  policy_id text COLLATE "C",
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT gl_export_line_not_zero CHECK (amount <> 0),
  -- The general-ledger account of the line, and its class, location and name. '' means that there is none.
  to_account text NOT NULL CONSTRAINT gl_export_line_names_an_account CHECK (to_account <> ''),
  class text NOT NULL,
  location text NOT NULL,
  name text NOT NULL,
  memo text NOT NULL,
  PRIMARY KEY (gl_export_id, line)
);
CALL make_fact('gl_export_lines');

CREATE TABLE gl_export_files (
  gl_export_id bigint NOT NULL REFERENCES gl_exports,
  position integer NOT NULL CONSTRAINT gl_export_file_position CHECK (position > 0),
  name text NOT NULL CONSTRAINT gl_export_file_name_form CHECK (name ~ '^[A-Za-z0-9.-]{1,80}$'),
  sha256 text NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (gl_export_id, position),
  CONSTRAINT gl_export_file_names_differ UNIQUE (gl_export_id, name),
  CONSTRAINT gl_export_file_is_its_hash CHECK (sha256 = encode(sha256(content), 'hex'))
);
CALL make_fact('gl_export_files');

-- Whether a month's exports match its closed books. An export from closed books always matches, because nothing is
-- dated in the month afterward. Earlier exports are compared with the movement of each account in the books.
CREATE VIEW gl_export_states AS
SELECT e.month, e.format,
       CASE WHEN b.month IS NULL THEN 'preliminary'
            WHEN EXISTS (SELECT FROM gl_exports f
                         WHERE f.month = e.month AND f.format = e.format AND f.books_closed) THEN 'final'
            WHEN EXISTS (SELECT FROM (
                           SELECT l.account, l.currency, l.amount
                           FROM gl_exports p JOIN gl_export_lines l USING (gl_export_id)
                           WHERE p.month = e.month AND p.format = e.format
                           UNION ALL
                           SELECT account, currency, -amount FROM book_balances WHERE month = b.month
                           UNION ALL
                           SELECT account, currency, amount FROM book_balances WHERE month = b.previous) AS sides
                         GROUP BY account, currency HAVING sum(amount) <> 0) THEN 'outdated'
            ELSE 'final' END AS state
FROM gl_exports e LEFT JOIN book_closes b USING (month)
WHERE e.part = 1;

-- Months with closed books and account movements that were not exported to any general ledger.
CREATE VIEW gl_unexported_months AS
SELECT b.month FROM book_closes b
WHERE NOT EXISTS (SELECT FROM gl_exports e WHERE e.month = b.month)
  AND EXISTS (SELECT FROM (
                SELECT account, currency, amount FROM book_balances WHERE month = b.month
                UNION ALL
                SELECT account, currency, -amount FROM book_balances WHERE month = b.previous) AS moved
              GROUP BY account, currency HAVING sum(amount) <> 0);
