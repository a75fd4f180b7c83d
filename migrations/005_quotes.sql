-- Sales through the API: quotes and requotes with their prices, and the ledger rows of acceptances. All tables are
-- append-only, except that `reckoner purge` deletes unaccepted quotes and requotes some time after they expired.

CREATE TABLE quotes (
  quote_id text COLLATE "C" PRIMARY KEY CONSTRAINT quote_id_form CHECK (is_identifier(quote_id)),
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  insured_amount numeric NOT NULL CONSTRAINT quote_insures_something CHECK (insured_amount >= 0),
  -- The terms of the quote's price, which also apply to its requotes.
  price_rate numeric NOT NULL,
  price_minimum numeric NOT NULL,
  partner_cut_rate numeric NOT NULL CONSTRAINT quote_cut_rate_range CHECK (partner_cut_rate BETWEEN 0 AND 1),
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  quoted_at timestamptz NOT NULL,
  -- From this time on the quote cannot be accepted; NULL means that the quote never expires.
  expires_at timestamptz CONSTRAINT quote_expires_later CHECK (expires_at > quoted_at),
  -- For the ledger row of the acceptance.
  order_reference text COLLATE "C",
  cover_from date,
  cover_to date,
  CONSTRAINT quote_order_reference_form CHECK (order_reference IS NULL OR is_order_reference(order_reference)),
  CONSTRAINT quote_cover CHECK (is_cover(cover_from, cover_to)),
  CONSTRAINT quote_of_partner UNIQUE (quote_id, partner_id),
  CONSTRAINT quote_policy_known FOREIGN KEY (partner_id, policy_id) REFERENCES policies,
  CONSTRAINT quote_client_is_the_partners FOREIGN KEY (client_id, partner_id)
    REFERENCES api_clients (client_id, partner_id),
  CONSTRAINT quote_balance CHECK (spot_price = partner_cut + invoice_amount),
  CONSTRAINT quote_amount_limit CHECK (spot_price < 1e15),
  -- For nonnegative values, round() rounds half up.
  CONSTRAINT quote_price_follows_terms CHECK (
    spot_price = round(greatest(insured_amount * price_rate, price_minimum), minor_digits(currency))),
  CONSTRAINT quote_cut_follows_terms CHECK (partner_cut = round(spot_price * partner_cut_rate, minor_digits(currency)))
);
CREATE INDEX quotes_of_partner ON quotes (partner_id, quoted_at);
CREATE INDEX quotes_expired ON quotes (expires_at, quote_id);

CREATE TABLE quote_acceptances (
  quote_id text COLLATE "C" PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  CONSTRAINT acceptance_is_of_a_quote FOREIGN KEY (quote_id, partner_id) REFERENCES quotes (quote_id, partner_id),
  CONSTRAINT acceptance_client_is_the_partners FOREIGN KEY (client_id, partner_id)
    REFERENCES api_clients (client_id, partner_id),
  CONSTRAINT acceptance_entry_once UNIQUE (partner_id, posted_month, entry_id)
);
CALL make_fact('quote_acceptances');

-- An accepted quote is kept, whether the API or an import recorded its row. An imported row stays as long as its quote.
CREATE FUNCTION quote_may_go(quote quotes) RETURNS boolean STABLE LANGUAGE sql
RETURN quote.expires_at < now() - interval '30 days'
  AND NOT EXISTS (SELECT FROM quote_acceptances a WHERE a.quote_id = quote.quote_id)
  AND NOT EXISTS (SELECT FROM ledger_rows e WHERE e.partner_id = quote.partner_id AND e.kind = 'quote_accepted'
                    AND own_id(e) = quote.quote_id);
CALL make_append_only('quotes', 'DELETE', 'quote_may_go(OLD)');
CALL grant_to_app('DELETE', 'quotes');

-- This trigger replaces a foreign key, because the row may move to the archive later.
CREATE FUNCTION refuse_acceptance_without_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM added a WHERE NOT EXISTS (
      SELECT FROM ONLY ledger_rows e
      WHERE e.partner_id = a.partner_id AND e.posted_month = a.posted_month AND e.entry_id = a.entry_id)) THEN
    RAISE EXCEPTION 'an acceptance has no row'
      USING ERRCODE = 'foreign_key_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'acceptance_is_in_the_ledger';
  END IF;
  RETURN NULL;
END
$$;
CALL run_after_insert('acceptance_is_in_the_ledger', 'quote_acceptances', 'refuse_acceptance_without_row');

-- A requote is a step from the last accepted price to a new price. The steps of a quote are numbered from 1.
CREATE TABLE requotes (
  requote_id text COLLATE "C" PRIMARY KEY CONSTRAINT requote_id_form CHECK (is_identifier(requote_id)),
  quote_id text COLLATE "C" NOT NULL CONSTRAINT requote_is_of_an_accepted_quote REFERENCES quote_acceptances,
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  step integer NOT NULL CONSTRAINT requote_step_positive CHECK (step > 0),
  currency text COLLATE "C" NOT NULL,
  insured_amount numeric NOT NULL CONSTRAINT requote_insures_something CHECK (insured_amount >= 0),
  accepted_spot_price numeric NOT NULL,
  accepted_partner_cut numeric NOT NULL,
  accepted_invoice_amount numeric NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  requoted_at timestamptz NOT NULL,
  expires_at timestamptz CONSTRAINT requote_expires_later CHECK (expires_at > requoted_at),
  order_reference text COLLATE "C",
  cover_from date,
  cover_to date,
  CONSTRAINT requote_order_reference_form CHECK (order_reference IS NULL OR is_order_reference(order_reference)),
  CONSTRAINT requote_cover CHECK (is_cover(cover_from, cover_to)),
  CONSTRAINT requote_step UNIQUE (requote_id, quote_id, partner_id, step),
  CONSTRAINT requote_quote_is_the_partners FOREIGN KEY (quote_id, partner_id) REFERENCES quotes (quote_id, partner_id),
  CONSTRAINT requote_client_is_the_partners FOREIGN KEY (client_id, partner_id)
    REFERENCES api_clients (client_id, partner_id),
  CONSTRAINT requote_balance CHECK (spot_price = partner_cut + invoice_amount),
  CONSTRAINT requote_accepted_balance CHECK (accepted_spot_price = accepted_partner_cut + accepted_invoice_amount),
  CONSTRAINT requote_amount_limit CHECK (spot_price < 1e15),
  CONSTRAINT requote_minor_digits CHECK (
    greatest(scale(trim_scale(spot_price)), scale(trim_scale(partner_cut))) <= minor_digits(currency)),
  CONSTRAINT requote_never_lower CHECK (
    spot_price >= accepted_spot_price AND partner_cut >= accepted_partner_cut
    AND invoice_amount >= accepted_invoice_amount)
);
CREATE INDEX requotes_of_quote ON requotes (quote_id);
CREATE INDEX requotes_expired ON requotes (expires_at, requote_id);

-- At most one requote is accepted per step, and each step follows the previous step, so an accepted price is never
-- restated.
CREATE TABLE requote_acceptances (
  quote_id text COLLATE "C" NOT NULL,
  step integer NOT NULL,
  previous_step integer GENERATED ALWAYS AS (nullif(step - 1, 0)) STORED,
  requote_id text COLLATE "C" NOT NULL CONSTRAINT requote_accepted_once UNIQUE,
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  CONSTRAINT requote_one_accepted_per_step PRIMARY KEY (quote_id, step),
  CONSTRAINT requote_acceptance_is_of_a_requote FOREIGN KEY (requote_id, quote_id, partner_id, step)
    REFERENCES requotes (requote_id, quote_id, partner_id, step),
  CONSTRAINT requote_acceptance_follows FOREIGN KEY (quote_id, previous_step) REFERENCES requote_acceptances,
  CONSTRAINT requote_acceptance_client_is_the_partners FOREIGN KEY (client_id, partner_id)
    REFERENCES api_clients (client_id, partner_id),
  CONSTRAINT requote_acceptance_entry_once UNIQUE (partner_id, posted_month, entry_id)
);
CALL make_fact('requote_acceptances');
CALL run_after_insert('acceptance_is_in_the_ledger', 'requote_acceptances', 'refuse_acceptance_without_row');

CREATE FUNCTION requote_may_go(requote requotes) RETURNS boolean STABLE LANGUAGE sql
RETURN requote.expires_at < now() - interval '30 days'
  AND NOT EXISTS (SELECT FROM requote_acceptances a WHERE a.requote_id = requote.requote_id)
  AND NOT EXISTS (SELECT FROM ledger_rows e WHERE e.partner_id = requote.partner_id AND e.kind = 'requote_accepted'
                    AND own_id(e) = requote.requote_id);
CALL make_append_only('requotes', 'DELETE', 'requote_may_go(OLD)');
CALL grant_to_app('DELETE', 'requotes');

-- The response to a partner's idempotency key. The same request with the same key gets the same response for at least
-- 30 days.
CREATE TABLE idempotency_keys (
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  idempotency_key text COLLATE "C" NOT NULL
    CONSTRAINT idempotency_key_length CHECK (length(idempotency_key) BETWEEN 1 AND 255),
  -- The hash of the method, path and body of the request. A different request with the same key is refused.
  request_sha256 text NOT NULL CONSTRAINT idempotency_request_is_a_hash CHECK (request_sha256 ~ '^[0-9a-f]{64}$'),
  status integer NOT NULL,
  answer text NOT NULL,
  recorded_at timestamptz NOT NULL,
  CONSTRAINT idempotency_key_once PRIMARY KEY (partner_id, idempotency_key)
);
CREATE INDEX idempotency_keys_recorded ON idempotency_keys (recorded_at);

CREATE FUNCTION idempotency_key_may_go(kept idempotency_keys) RETURNS boolean STABLE LANGUAGE sql
RETURN kept.recorded_at < now() - interval '30 days';
CALL make_append_only('idempotency_keys', 'DELETE', 'idempotency_key_may_go(OLD)');
CALL grant_to_app('DELETE', 'idempotency_keys');

-- Calls that need rows of archived months. A worker answers each one once (src/http/late-requests.ts).
CREATE TABLE late_requests (
  request_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  operation text NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  body text NOT NULL,
  requested_at timestamptz NOT NULL,
  status integer,
  answer text,
  answered_at timestamptz,
  CONSTRAINT late_request_client_is_the_partners FOREIGN KEY (client_id, partner_id)
    REFERENCES api_clients (client_id, partner_id),
  CONSTRAINT late_request_answer_whole CHECK (num_nulls(status, answer, answered_at) IN (0, 3))
);
CREATE INDEX late_requests_pending ON late_requests (partner_id, request_id) WHERE answered_at IS NULL;
CALL make_append_only('late_requests', 'UPDATE', $$OLD.answered_at IS NULL
  AND to_jsonb(OLD) - '{status,answer,answered_at}'::text[] = to_jsonb(NEW) - '{status,answer,answered_at}'::text[]$$);
CALL grant_to_app('UPDATE', 'late_requests');
