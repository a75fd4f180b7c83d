-- Moving the rows of a month to a cold store and back. Only these functions delete rows, or add rows to a closed month.

-- Whether the rows of a closed month are not those that its close counted.
CREATE FUNCTION month_differs(of_month text) RETURNS boolean STABLE LANGUAGE sql
BEGIN ATOMIC
  SELECT EXISTS (
    SELECT FROM (
      SELECT e.partner_id, e.currency, e.arrangement, count(*) AS entries, sum(e.spot_price) AS spot_price,
             sum(e.partner_cut) AS partner_cut, sum(e.invoice_amount) AS invoice_amount
      FROM ONLY ledger_rows e JOIN closed_months m ON m.month = of_month
      WHERE e.posted_month > coalesce(m.previous, '') AND e.posted_month <= m.month
      GROUP BY e.partner_id, e.currency, e.arrangement) AS r
    FULL JOIN (SELECT * FROM month_partners WHERE month = of_month) AS p USING (partner_id, currency, arrangement)
    WHERE (r.entries, r.spot_price, r.partner_cut, r.invoice_amount)
      IS DISTINCT FROM (p.entries, p.spot_price, p.partner_cut, p.invoice_amount));
END;

CREATE FUNCTION refuse_month(of_month text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the rows of % are not those that its close counted', of_month
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'archived_month_is_whole';
END
$$;

CREATE FUNCTION refuse_differing_return() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM refuse_month(OLD.month);
  RETURN NULL;
END
$$;
CREATE TRIGGER returned_month_is_whole BEFORE DELETE ON archived_months
  FOR EACH ROW WHEN (month_differs(OLD.month)) EXECUTE FUNCTION refuse_differing_return();

-- The quotes whose rows stay, although their months are archived: those with a row in a month that is not archived, of a
-- connected account; those that the terms let be reversed on a day; those with a row that waits for a decision; those with
-- an event that a webhook still has to get, or with a late request; and those that the API can still accept or requote, or
-- that an import accepted (a quote or requote without an acceptance). Without terms, a reversal is possible for 30 days
-- (src/ledger/cancellation.ts), and an import may be 31 days late (src/ledger/grounds.sql.ts). Of other quotes only the
-- reversals stay, for lists.
CREATE FUNCTION staying_quotes(on_day date) RETURNS TABLE (partner_id text, quote_id text) STABLE LANGUAGE sql
BEGIN ATOMIC
  WITH terms AS (
    SELECT t.partner_id, t.policy_id, max(t.window_days) AS days,
           coalesce(bool_or(t.after_window = 'full' AND NOT t.before_cover_only), false) AS always
    FROM cancellation_terms t GROUP BY t.partner_id, t.policy_id)
  SELECT e.partner_id, e.quote_id
  FROM archived_postings p JOIN ONLY ledger_rows e ON e.posted_month > p.after AND e.posted_month <= p.month
  LEFT JOIN terms t ON t.partner_id = e.partner_id AND t.policy_id = e.policy_id
  WHERE (e.arrangement <> 'invoicing' OR e.cover_to >= on_day OR t.always
     OR e.accepted_at >= on_day - (greatest(t.days, 30) + 32))
  UNION
  SELECT e.partner_id, e.quote_id FROM ONLY ledger_rows e
  WHERE e.kind <> 'quote_accepted' AND e.posted_month NOT IN (SELECT posted_month FROM archived_posting_months)
  UNION
  SELECT e.partner_id, e.quote_id
  FROM ONLY ledger_rows e
  JOIN ONLY ledger_rows s ON s.partner_id = e.partner_id AND s.kind = 'quote_accepted' AND own_id(s) = e.quote_id
  WHERE e.kind <> 'quote_accepted' AND e.posted_month IN (SELECT posted_month FROM archived_posting_months)
    AND s.posted_month NOT IN (SELECT posted_month FROM archived_posting_months)
  UNION
  SELECT u.partner_id, u.quote_id FROM undecided_rows u
  UNION
  SELECT l.partner_id, l.quote_id FROM late_requests l WHERE l.answered_at IS NULL
  UNION
  SELECT q.partner_id, q.quote_id FROM quotes q
  WHERE NOT EXISTS (SELECT FROM quote_acceptances a WHERE a.quote_id = q.quote_id)
  UNION
  SELECT r.partner_id, r.quote_id FROM requotes r
  WHERE NOT EXISTS (SELECT FROM requote_acceptances a WHERE a.requote_id = r.requote_id)
  UNION
  SELECT e.partner_id, e.quote_id
  FROM webhooks w JOIN partner_events n ON n.partner_id = w.partner_id AND n.position > w.acknowledged
  JOIN ONLY ledger_rows e ON (e.partner_id, e.posted_month, e.entry_id) = (n.partner_id, n.posted_month, n.entry_id)
  WHERE w.url IS NOT NULL;
END;

-- The months of archived sales that have a reversal. The tax of a reversal is that of its sale.
CREATE TABLE archived_sales (
  partner_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  own_id text COLLATE "C" NOT NULL,
  month text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  PRIMARY KEY (partner_id, kind, own_id)
);
CALL make_append_only('archived_sales');

-- Records that a month is archived, and deletes the rows of archived months that need not stay. Returns the number of
-- those of this month. Only the owner may call it, because the program's role may not delete rows. A preview has no files
-- (NULL).
CREATE FUNCTION archive_month(of_month text, into_store text, files json, on_day date, at timestamptz, event bigint)
RETURNS bigint LANGUAGE sql
BEGIN ATOMIC
  SELECT refuse_month(of_month)
  WHERE NOT EXISTS (SELECT FROM archived_months a WHERE a.month = of_month)
    AND (month_differs(of_month)
         OR files IS NOT NULL AND (SELECT m.entries FROM closed_months m WHERE m.month = of_month)
           <> (SELECT coalesce(sum(f.entries), 0) FROM json_populate_recordset(NULL::archived_files, files) AS f));
  INSERT INTO archived_months (month, store, entries, first_no, last_no, archived_at, event_id)
  SELECT of_month, into_store, m.entries, r.first_no, r.last_no, at, event
  FROM closed_months m CROSS JOIN LATERAL (
    SELECT min(e.entry_id) AS first_no, max(e.entry_id) AS last_no FROM ONLY ledger_rows e
    WHERE e.posted_month > coalesce(m.previous, '') AND e.posted_month <= m.month) AS r
  WHERE m.month = of_month AND NOT EXISTS (SELECT FROM archived_months a WHERE a.month = of_month);
  INSERT INTO archived_files (month, name, sha256, bytes, entries, partner_from, partner_to)
  SELECT of_month, f.name, f.sha256, f.bytes, f.entries, f.partner_from, f.partner_to
  FROM json_populate_recordset(NULL::archived_files, files) AS f
  WHERE NOT EXISTS (SELECT FROM archived_files a WHERE a.month = of_month);
  WITH staying AS MATERIALIZED (SELECT s.partner_id, s.quote_id FROM staying_quotes(on_day) AS s), gone AS (
    DELETE FROM ONLY ledger_rows e USING archived_postings p
    WHERE e.posted_month > p.after AND e.posted_month <= p.month AND e.kind <> 'reversal'
      AND NOT EXISTS (SELECT FROM staying s WHERE s.partner_id = e.partner_id AND s.quote_id = e.quote_id)
    RETURNING e.partner_id, e.kind, own_id(e) AS own_id, e.month, e.posted_month), reversed AS (
    INSERT INTO archived_sales (partner_id, kind, own_id, month, posted_month)
    SELECT g.partner_id, g.kind, g.own_id, g.month, g.posted_month FROM gone g
    WHERE (g.partner_id, g.kind, g.own_id) IN (
      SELECT r.partner_id, CASE WHEN r.requote_id IS NULL THEN 'quote_accepted' ELSE 'requote_accepted' END,
             coalesce(r.requote_id, r.quote_id)
      FROM ONLY ledger_rows r WHERE r.kind = 'reversal')
    ON CONFLICT DO NOTHING)
  SELECT count(*) FROM gone g JOIN archived_postings p ON g.posted_month > p.after AND g.posted_month <= p.month
  WHERE p.month = of_month;
END;

-- The rows of archived months that events with a receipt recorded, in groups, as the rules read them
-- (src/ledger/row-groups.sql.ts). Rows of other events would be groups of one row.
CREATE TABLE archived_groups (
  posted_month text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  month text COLLATE "C" NOT NULL,
  time_zone text NOT NULL,
  event_id bigint NOT NULL,
  entries bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  first_recorded timestamptz NOT NULL,
  last_recorded timestamptz NOT NULL,
  first_no bigint NOT NULL,
  last_no bigint NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  unbalanced bigint NOT NULL,
  misnamed bigint NOT NULL,
  uncovered bigint NOT NULL,
  PRIMARY KEY (posted_month, partner_id, event_id, currency, arrangement, policy_id, kind, month, time_zone),
  CONSTRAINT archived_groups_are_well_formed CHECK (unbalanced + misnamed + uncovered = 0)
);
CALL make_append_only('archived_groups', 'DELETE', 'true', 'SELECT');

-- Without other children, ANALYZE would keep no statistics for queries that also read copies of rows, and every session
-- would plan without them once a session had made its table. This child is always empty.
CREATE TABLE rows_elsewhere (CONSTRAINT rows_elsewhere_are_copies CHECK (false) NO INHERIT) INHERITS (ledger_rows);
CALL make_append_only('rows_elsewhere', of_app => 'SELECT');

-- Makes the temporary table for a session's copies of archived rows.
CREATE FUNCTION make_archive_table(rows regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TEMP TABLE archived_rows () INHERITS (%s) ON COMMIT DELETE ROWS', rows);
  CREATE INDEX ON pg_temp.archived_rows (partner_id, kind, coalesce(reversal_id, requote_id, quote_id));
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'reckoner_app') THEN
    GRANT SELECT, INSERT, DELETE ON pg_temp.archived_rows TO reckoner_app;
  END IF;
END
$$;
CREATE FUNCTION open_archive() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT make_archive_table('ledger_rows'::regclass);
END;

-- Brings the rows of a month back from the copies of this session, if they are those that its close counted.
-- The copies also have the archived rows of other months of the same quotes: a quote is never in part in the database.
-- Only the owner may call it.
CREATE FUNCTION return_month(of_month text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ledger_rows OVERRIDING SYSTEM VALUE SELECT r.* FROM pg_temp.archived_rows r ORDER BY r.entry_id;
  DELETE FROM archived_groups g USING archived_postings p
  WHERE p.month = of_month AND g.posted_month > p.after AND g.posted_month <= p.month;
  DELETE FROM archived_files f WHERE f.month = of_month;
  DELETE FROM archived_months a WHERE a.month = of_month;
END
$$;

-- The leaf of a row in the log (src/log/lines.sql.ts).
CREATE FUNCTION row_leaf(e ledger_rows) RETURNS bytea STABLE LANGUAGE sql SET timezone = 'UTC' SET datestyle = 'ISO'
RETURN sha256('\x00'::bytea || convert_to(concat_ws(E'\t', 'ledger_rows', e.entry_id, e.kind, e.partner_id, e.quote_id,
  coalesce(replace(e.requote_id, '\', '\\'), '\N'), coalesce(replace(e.reversal_id, '\', '\\'), '\N'),
  coalesce(replace(e.enrollment_id, '\', '\\'), '\N'), e.policy_id, e.currency,
  to_char(e.accepted_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), trim_scale(e.spot_price), trim_scale(e.partner_cut),
  trim_scale(e.invoice_amount), coalesce(replace(e.order_reference, '\', '\\'), '\N'),
  coalesce(e.cover_from::text, '\N'), coalesce(e.cover_to::text, '\N'), e.posted_month,
  to_char(e.recorded_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.month, e.time_zone, e.arrangement, e.event_id), 'UTF8'));

-- The root of a Merkle tree over leaves (RFC 9162): each level pairs the nodes of the one below.
CREATE FUNCTION tree_root(leaves bytea[]) RETURNS bytea IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  WHILE cardinality(leaves) > 1 LOOP
    leaves := (
      SELECT array_agg(CASE WHEN cardinality(pair) = 2 THEN sha256('\x01'::bytea || pair[1] || pair[2]) ELSE pair[1] END
                       ORDER BY place)
      FROM (SELECT (n - 1) / 2 AS place, array_agg(node ORDER BY n) AS pair
            FROM unnest(leaves) WITH ORDINALITY AS l (node, n) GROUP BY 1) AS pairs);
  END LOOP;
  RETURN leaves[1];
END
$$;

-- Brings rows of quotes back to their archived month, for late requests. Each must be a leaf of a tree that has the root
-- that the close of the month stated, so no other row can be added. Rows that are there already stay as they are.
CREATE FUNCTION recall_rows(rows json, of_month text, of_partner text, of_currency text, of_arrangement text, leaves bytea[])
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  -- For the triggers of ledger_rows: no temporary table of the caller takes the place of one of ours.
  SELECT set_config('search_path', format('%I, pg_temp', n.nspname), true)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'ledger_rows'::regclass;
  SELECT refuse_month(of_month)
  WHERE NOT EXISTS (
      SELECT FROM month_partners p JOIN archived_months a USING (month)
      WHERE (p.month, p.partner_id, p.currency, p.arrangement) = (of_month, of_partner, of_currency, of_arrangement)
        AND p.root = encode(tree_root(leaves), 'base64'))
    OR EXISTS (SELECT FROM json_populate_recordset(NULL::ledger_rows, rows) AS r
               WHERE (row_leaf(r) = ANY (leaves)) IS NOT TRUE);
  INSERT INTO ledger_rows OVERRIDING SYSTEM VALUE
  SELECT r.* FROM json_populate_recordset(NULL::ledger_rows, rows) AS r ORDER BY r.entry_id
  ON CONFLICT DO NOTHING;
END;

-- Describes the copies to the planner. Only the owner may.
CREATE FUNCTION analyze_archive() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  ANALYZE pg_temp.archived_rows;
END
$$;

-- The months to which partners' rows belong, wherever the rows are. The lines of a month's first documents have all of them.
CREATE VIEW partner_months AS
SELECT partner_id, month FROM ledger_rows
UNION ALL
SELECT d.partner_id, l.month FROM documents d JOIN document_lines l USING (document_id)
WHERE d.month IN (SELECT month FROM archived_months);
