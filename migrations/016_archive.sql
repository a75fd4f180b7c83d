-- Moving the rows of a month to a cold store and back. Only these functions delete rows, or add rows to a closed month.

-- A hash over the rows that a closed month bills, as this table has them.
CREATE FUNCTION rows_digest(of_month text) RETURNS text STABLE LANGUAGE sql SET timezone = 'UTC' SET datestyle = 'ISO'
BEGIN ATOMIC
  SELECT encode(sha256(coalesce(string_agg(part, '' ORDER BY partner_id, block), '')), 'hex')
  FROM (SELECT e.partner_id, e.entry_id / 100000 AS block,
               sha256(convert_to(string_agg(e::text, E'\n' ORDER BY e.entry_id), 'UTF8')) AS part
        FROM ONLY ledger_rows e JOIN closed_months m ON m.month = of_month
        WHERE e.posted_month > coalesce(m.previous, '') AND e.posted_month <= m.month
        GROUP BY e.partner_id, e.entry_id / 100000) AS parts;
END;

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
  RAISE EXCEPTION 'the rows of % are not those that its close counted, or not those that left', of_month
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
  FOR EACH ROW WHEN (rows_digest(OLD.month) <> OLD.digest) EXECUTE FUNCTION refuse_differing_return();

-- The quotes whose rows stay, although their months are archived: those with a row in a month that is not archived, of a
-- connected account, or with a reversal; those that the terms let be reversed on a day; those with a row that waits for a
-- decision; those with an event that a webhook still has to get; and those that the API can still accept or requote, or
-- that an import accepted (a quote or requote without an acceptance). Without terms, a reversal is possible for 30 days (src/ledger/cancellation.ts).
CREATE FUNCTION staying_quotes(on_day date) RETURNS TABLE (partner_id text, quote_id text) STABLE LANGUAGE sql
BEGIN ATOMIC
  WITH terms AS (
    SELECT t.partner_id, t.policy_id, max(t.window_days) AS days,
           coalesce(bool_or(t.after_window = 'full' AND NOT t.before_cover_only), false) AS always
    FROM cancellation_terms t GROUP BY t.partner_id, t.policy_id)
  SELECT e.partner_id, e.quote_id
  FROM ONLY ledger_rows e
  LEFT JOIN archived_postings a ON e.posted_month > a.after AND e.posted_month <= a.month
  LEFT JOIN terms t ON t.partner_id = e.partner_id AND t.policy_id = e.policy_id
  WHERE a.month IS NULL OR e.arrangement <> 'invoicing' OR e.cover_to >= on_day OR t.always
     OR e.kind = 'reversal' OR e.accepted_at >= on_day - (greatest(t.days, 30) + 1)
  UNION
  SELECT u.partner_id, u.quote_id FROM undecided_rows u
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

-- Records that a month is archived, and deletes the rows of archived months that need not stay. Returns their number.
CREATE FUNCTION archive_month(of_month text, into_store text, files json, on_day date, at timestamptz, event bigint)
RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT refuse_month(of_month)
  WHERE month_differs(of_month) AND NOT EXISTS (SELECT FROM archived_months a WHERE a.month = of_month);
  INSERT INTO archived_months (month, store, entries, first_no, last_no, digest, archived_at, event_id)
  SELECT of_month, into_store, m.entries, r.first_no, r.last_no, rows_digest(of_month), at, event
  FROM closed_months m CROSS JOIN LATERAL (
    SELECT min(e.entry_id) AS first_no, max(e.entry_id) AS last_no FROM ONLY ledger_rows e
    WHERE e.posted_month > coalesce(m.previous, '') AND e.posted_month <= m.month) AS r
  WHERE m.month = of_month AND NOT EXISTS (SELECT FROM archived_months a WHERE a.month = of_month);
  INSERT INTO archived_files (month, name, sha256, bytes, entries, partner_from, partner_to)
  SELECT of_month, f.name, f.sha256, f.bytes, f.entries, f.partner_from, f.partner_to
  FROM json_populate_recordset(NULL::archived_files, files) AS f
  WHERE NOT EXISTS (SELECT FROM archived_files a WHERE a.month = of_month);
  WITH staying AS MATERIALIZED (SELECT s.partner_id, s.quote_id FROM staying_quotes(on_day) AS s), gone AS (
    DELETE FROM ONLY ledger_rows e
    WHERE is_archived(e.posted_month)
      AND NOT EXISTS (SELECT FROM staying s WHERE s.partner_id = e.partner_id AND s.quote_id = e.quote_id)
    RETURNING 1)
  SELECT count(*) FROM gone;
END;

-- Makes the temporary table into which a session copies rows of archived months. A transaction's end empties it.
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

CREATE FUNCTION insert_archived_rows(rows regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  columns text;
BEGIN
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns FROM pg_catalog.pg_attribute
  WHERE attrelid = rows AND attnum > 0 AND NOT attisdropped;
  EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM pg_temp.archived_rows ORDER BY entry_id',
                 rows, columns);
END
$$;

-- Brings the rows of a month back from archived_rows. They must be those that left (returned_month_is_whole). The triggers
-- of ledger_rows need the caller's search path.
CREATE FUNCTION return_month(of_month text) RETURNS void LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
  SELECT insert_archived_rows('ledger_rows'::regclass);
  DELETE FROM archived_files f WHERE f.month = of_month;
  DELETE FROM archived_months a WHERE a.month = of_month;
END;

-- Describes the copied rows to the planner. The session does not own their table.
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
CALL grant_to_app('SELECT', 'partner_months');
