-- In the log, every fact is a line. A checkpoint fixes the order of the lines up to a number (docs/log-format.md). The
-- tables of checkpoints contain no facts, because they describe facts.

-- The simple values in a JSON value, each with its path. A path consists of keys and indexes that are joined by dots.
-- Empty objects and empty lists are values, too.
CREATE FUNCTION log_map_parts(value jsonb) RETURNS TABLE (path text, value jsonb) IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE sql AS $$
  WITH RECURSIVE parts (path, value) AS (
    SELECT '', log_map_parts.value
    UNION ALL
    SELECT CASE p.path WHEN '' THEN '' ELSE p.path || '.' END
             || replace(replace(replace(replace(replace(c.key, '%', '%25'), '&', '%26'), '=', '%3D'), ':', '%3A'), '.', '%2E'),
           c.value
    FROM parts p CROSS JOIN LATERAL (
      SELECT key, each.value FROM jsonb_each(CASE jsonb_typeof(p.value) WHEN 'object' THEN p.value ELSE '{}' END) AS each
      UNION ALL
      SELECT (position - 1)::text, item FROM jsonb_array_elements(CASE jsonb_typeof(p.value) WHEN 'array' THEN p.value
        ELSE '[]' END) WITH ORDINALITY AS items (item, position)) AS c
  )
  SELECT parts.path, parts.value FROM parts
  WHERE parts.value IN ('{}', '[]') OR jsonb_typeof(parts.value) NOT IN ('object', 'array')
$$;

-- Returns the parts of log_map_parts as one text, in the order of paths. A text is escaped and follows '='. Any other
-- value follows ':'.
CREATE FUNCTION log_map(value jsonb) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
  SELECT string_agg(p.path || CASE jsonb_typeof(p.value)
           WHEN 'string' THEN '=' || replace(replace(p.value #>> '{}', '%', '%25'), '&', '%26')
           ELSE ':' || p.value::text END, '&' ORDER BY p.path COLLATE "C")
  FROM log_map_parts(log_map.value) AS p
$$;

-- Returns the parts of log_map_parts with their values as texts. The value null becomes NULL.
CREATE FUNCTION log_map_values(value jsonb) RETURNS TABLE (path text, value text) IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE sql AS $$
  SELECT p.path COLLATE "C", (p.value #>> '{}') COLLATE "C" FROM log_map_parts(log_map_values.value) AS p
$$;

-- The number of minor units in one unit of a currency.
CREATE FUNCTION log_units(currency text) RETURNS numeric IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN CASE minor_digits(currency) WHEN 2 THEN 100 WHEN 0 THEN 1 WHEN 3 THEN 1000 ELSE 10000 END;

-- The totals of a closed month: the sums of its first documents, which bill all of its rows.
CREATE TABLE month_totals (
  month billing_month NOT NULL REFERENCES closed_months DEFERRABLE INITIALLY DEFERRED,
  currency text COLLATE "C" NOT NULL,
  entries bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  PRIMARY KEY (month, currency),
  CONSTRAINT month_totals_balance CHECK (spot_price = partner_cut + invoice_amount)
);
CALL make_fact('month_totals');

-- For each partner, the close of a month states the RFC 9162 root over the leaves of the partner's rows of the month,
-- in the order of the log. With this root, a partner proves that its statement is complete.
CREATE TABLE month_partners (
  month billing_month NOT NULL REFERENCES closed_months DEFERRABLE INITIALLY DEFERRED,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text COLLATE "C" NOT NULL,
  entries bigint NOT NULL CONSTRAINT month_partner_has_entries CHECK (entries > 0),
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  last_accepted_at timestamptz NOT NULL,
  -- In Base64.
  root text NOT NULL CONSTRAINT month_partner_root_form CHECK (root ~ '^[A-Za-z0-9+/]{43}=$'),
  PRIMARY KEY (month, partner_id, currency, arrangement)
);
CALL make_fact('month_partners');

-- The first instant of a month in a time zone. Because this is recorded, an auditor needs no database of time zones.
-- Before a checkpoint is taken, the instants for the rows before it are recorded.
CREATE TABLE month_zones (
  time_zone text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  begins_at timestamptz NOT NULL,
  PRIMARY KEY (time_zone, month)
);
CALL make_fact('month_zones', while_paused => true);

-- The keys that sign checkpoints. The first key has no previous key. A later key is signed by the previous key, or
-- states why the previous key did not sign it.
CREATE TABLE log_keys (
  key_name text NOT NULL CONSTRAINT log_key_name_form CHECK (key_name ~ '^[!-*,-~]{1,200}$'),
  public_key text PRIMARY KEY CONSTRAINT log_key_public_key_form CHECK (public_key ~ '^[A-Za-z0-9+/]{43}=$'),
  previous text CONSTRAINT log_keys_chain UNIQUE NULLS NOT DISTINCT REFERENCES log_keys,
  -- The signature by the previous key. It covers the verifier key of this key and a line end. In Base64.
  signature text CONSTRAINT log_key_signature_form CHECK (signature ~ '^[A-Za-z0-9+/]{86}==$'),
  reason text NOT NULL,
  CONSTRAINT log_key_follows CHECK (signature IS NULL OR previous IS NOT NULL),
  CONSTRAINT log_key_loss_explained CHECK (previous IS NULL OR signature IS NOT NULL OR reason <> '')
);
CALL make_fact_of_event('log_keys', while_paused => true);

-- A successor log, which begins at the state of this database after a restore or a promotion. The successor keeps the
-- leaves up to `kept_size`, and states the last checkpoint of the previous log that was seen outside the database.
CREATE TABLE log_continues (
  origin text COLLATE "C" PRIMARY KEY CONSTRAINT log_continues_origin_form CHECK (origin ~ '^[a-z0-9.-]+/[0-9a-f]{12}/[1-9][0-9]*$'),
  follows text COLLATE "C" NOT NULL CONSTRAINT log_continues_once UNIQUE,
  lost_size bigint NOT NULL,
  -- In Base64.
  lost_root text NOT NULL CONSTRAINT log_continues_root_form CHECK (lost_root ~ '^[A-Za-z0-9+/]{43}=$'),
  kept_size bigint NOT NULL CONSTRAINT log_continues_kept_not_negative CHECK (kept_size >= 0),
  reason text NOT NULL
);
CALL make_fact_of_event('log_continues', while_paused => true);

CREATE TABLE log_checkpoints (
  -- The number of leaves.
  size bigint PRIMARY KEY CONSTRAINT log_checkpoint_size_positive CHECK (size > 0),
  -- The name of the log: HOST/LEDGER, or HOST/LEDGER/2 for its successor.
  origin text COLLATE "C" NOT NULL,
  -- The number of the last leaf.
  last_no bigint NOT NULL CONSTRAINT log_checkpoint_last_no_once UNIQUE,
  root bytea NOT NULL CONSTRAINT log_checkpoint_root_length CHECK (length(root) = 32),
  -- The full subtrees over all leaves from left to right, and the largest subtrees over the leaves since the previous
  -- checkpoint. All proofs between checkpoints follow from these subtrees.
  edge bytea NOT NULL,
  span bytea NOT NULL,
  taken_at timestamptz NOT NULL,
  -- The month or books that the last leaf closes: 'month 2026-07' or 'books 2026-07'. NULL for a daily checkpoint.
  closes text COLLATE "C" CONSTRAINT log_checkpoint_closes_once UNIQUE
    CONSTRAINT log_checkpoint_closes_form CHECK (closes ~ '^(month|books) \d{4}-(0[1-9]|1[0-2])$'),
  -- The root over the leaves of facts other than rows since the previous checkpoint. With this root, facts are verified
  -- without reading the rows.
  facts_root bytea NOT NULL
);
CALL make_append_only('log_checkpoints');

-- Signature lines of checkpoints. The operator's line is made after the commit, and the other lines come from
-- witnesses.
CREATE TABLE log_signatures (
  size bigint NOT NULL REFERENCES log_checkpoints,
  key_name text COLLATE "C" NOT NULL,
  line text NOT NULL CONSTRAINT log_signature_line_form CHECK (line ~ '^— [!-*,-~]+ [A-Za-z0-9+/]+={0,2}$'),
  made_at timestamptz NOT NULL,
  PRIMARY KEY (size, key_name, line)
);
CALL make_append_only('log_signatures');

-- Time stamps of checkpoints by a time-stamping authority (RFC 3161).
CREATE TABLE log_stamps (
  size bigint PRIMARY KEY REFERENCES log_checkpoints,
  -- Its URL.
  authority text NOT NULL,
  -- The authority's whole answer (TimeStampResp, DER), over the text of the checkpoint.
  response bytea NOT NULL,
  -- The time that the authority's answer states.
  stamped_at timestamptz NOT NULL
);
CALL make_append_only('log_stamps');

-- The tree so far over each partner's rows of an open month, up to the last checkpoint. A close continues this tree.
-- This is working data, which `verify` derives again.
CREATE TABLE partner_edges (
  posted_month text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text COLLATE "C" NOT NULL,
  entries bigint NOT NULL,
  edge bytea NOT NULL,
  PRIMARY KEY (posted_month, partner_id, currency, arrangement)
);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'partner_edges');

-- Returns false if the sequence was set back, for example by a restore. In that case, a checkpoint would already cover
-- the next number. begin_recording calls this function before each statement.
CREATE FUNCTION log_numbers_ascend() RETURNS boolean LANGUAGE sql
RETURN (SELECT last_value - (NOT is_called)::int FROM log_numbers)
  >= coalesce((SELECT max(last_no) FROM log_checkpoints), 0);
