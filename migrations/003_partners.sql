-- Partners, their arrangements and policies, and their API clients.

CREATE TABLE partners (
  partner_id text COLLATE "C" PRIMARY KEY CONSTRAINT partner_id_form CHECK (is_identifier(partner_id)),
  name text NOT NULL CONSTRAINT partner_has_name CHECK (name <> ''),
  address_line1 text NOT NULL,
  address_line2 text NOT NULL,
  address_city text NOT NULL,
  address_region text NOT NULL,
  address_postal_code text NOT NULL,
  address_country text NOT NULL,
  contact_name text NOT NULL,
  contact_email text NOT NULL,
  contact_cc text[] NOT NULL,
  -- Empty: those of the contact.
  reminder_email text NOT NULL DEFAULT '',
  statement_email text NOT NULL DEFAULT '',
  dispute_email text NOT NULL DEFAULT '',
  currency text NOT NULL CONSTRAINT partner_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
  time_zone text NOT NULL,
  -- NULL means the issuer's terms at the time of issue.
  payment_terms_days integer CONSTRAINT partner_terms_range CHECK (payment_terms_days BETWEEN 0 AND 365),
  -- See due_date() in 007_documents.sql. NULL: no.
  payment_terms_end_of_month boolean CONSTRAINT partner_terms_end_of_month_or_null CHECK (payment_terms_end_of_month),
  payment_terms_day integer CONSTRAINT partner_terms_day_range CHECK (payment_terms_day BETWEEN 1 AND 31),
  tax_id text NOT NULL,
  purchase_order text NOT NULL,
  legal_note text NOT NULL,
  -- The partner that pays for this partner; NULL means that the partner pays for itself.
  parent text COLLATE "C" CONSTRAINT partner_parent_known REFERENCES partners
    CONSTRAINT partner_parent_is_another CHECK (parent <> partner_id),
  account_statement text NOT NULL DEFAULT 'none'
    CONSTRAINT partner_account_statement_known CHECK (account_statement IN ('none', 'monthly')),
  -- The format of the partner's e-invoices. The next two columns contain the partner's data for e-invoices.
  e_invoice text NOT NULL DEFAULT 'none'
    CONSTRAINT partner_e_invoice_known CHECK (e_invoice IN ('none', 'facturx', 'ubl', 'xrechnung')),
  buyer_reference text NOT NULL DEFAULT '',
  electronic_address text NOT NULL DEFAULT '',
  -- strict: rows that are unusual by history stop the month (src/close/feeds.ts). NULL: they hold a document.
  feed text CONSTRAINT partner_feed_known CHECK (feed = 'strict'),
  -- NULL: active. After inactive_since, acceptances of quotes are refused.
  inactive_since timestamptz
);
CREATE INDEX partners_of_parent ON partners (parent) WHERE parent IS NOT NULL;
CALL grant_to_app('SELECT, INSERT, UPDATE', 'partners');

-- Prevents cycles. Imports of partners wait for each other (src/database/ledger-lock.ts), so two imports cannot each
-- add half of a cycle.
CREATE FUNCTION refuse_cyclic_parent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    WITH RECURSIVE above AS (
      SELECT NEW.parent AS partner_id
      UNION
      SELECT p.parent FROM above JOIN partners p USING (partner_id) WHERE p.parent IS NOT NULL
    )
    SELECT FROM above WHERE partner_id = NEW.partner_id
  ) THEN
    PERFORM refuse('partner_parent_not_cyclic', format('partner %s would be a parent of itself', NEW.partner_id));
  END IF;
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER partner_parent_not_cyclic AFTER INSERT OR UPDATE OF parent ON partners
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.parent IS NOT NULL) EXECUTE FUNCTION refuse_cyclic_parent();

-- The payers of each partner: its parent, the parent's parent, and so on.
CREATE VIEW partner_payers AS
WITH RECURSIVE above AS (
  SELECT partner_id, parent AS payer_id, 1 AS distance FROM partners WHERE parent IS NOT NULL
  UNION ALL
  SELECT a.partner_id, p.parent, a.distance + 1 FROM above a JOIN partners p ON p.partner_id = a.payer_id
  WHERE p.parent IS NOT NULL
)
SELECT partner_id, payer_id, distance FROM above;

ALTER TABLE user_roles ADD CONSTRAINT user_role_of_a_partner FOREIGN KEY (partner_id) REFERENCES partners;

-- An arrangement applies from a given month on. A row has the arrangement with the latest from_month that is not after
-- the month of the row itself.
CREATE TABLE partner_arrangements (
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  from_month billing_month NOT NULL,
  arrangement text NOT NULL CONSTRAINT arrangement_known CHECK (arrangement IN ('invoicing', 'connected_account')),
  connected_account_id text,
  merchant_of_record text CONSTRAINT merchant_known CHECK (merchant_of_record IN ('platform', 'third_party')),
  split text CONSTRAINT split_known CHECK (split IN ('real_time', 'sequential')),
  -- The currencies in which the platform of the partner is paid out, or NULL if unknown.
  settlement_currencies text[],
  connected_account_type text
    CONSTRAINT connected_account_type_known CHECK (connected_account_type IN ('standard', 'express', 'custom')),
  connected_account_state text CONSTRAINT connected_account_state_known
    CHECK (connected_account_state IN ('invited', 'onboarding', 'active', 'restricted', 'disconnected')),
  -- The reporter of the account's balance transactions. NULL means the processor. If Reckoner has no API key for an
  -- account, the partner's settlement files report its balance transactions.
  balance_transactions_from text CONSTRAINT balance_transactions_from_known
    CHECK (balance_transactions_from IN ('processor', 'settlement_file')),
  PRIMARY KEY (partner_id, from_month),
  CONSTRAINT connected_account_complete CHECK (
    (arrangement = 'connected_account') = (connected_account_id IS NOT NULL)
    AND (arrangement = 'connected_account') = (merchant_of_record IS NOT NULL)
    AND (arrangement = 'connected_account') = (split IS NOT NULL)),
  -- Only the processor can split in real time, so the platform must be the merchant of record.
  CONSTRAINT real_time_needs_platform_merchant CHECK (NOT (split = 'real_time' AND merchant_of_record = 'third_party')),
  CONSTRAINT onboarding_is_of_a_connected_account CHECK (
    arrangement = 'connected_account'
    OR num_nonnulls(settlement_currencies, connected_account_type, connected_account_state, balance_transactions_from) = 0)
);
CREATE INDEX partner_arrangements_of_account ON partner_arrangements (connected_account_id)
  WHERE connected_account_id IS NOT NULL;
CALL grant_to_app('SELECT, INSERT, UPDATE', 'partner_arrangements');

-- Rates from days on: an array of {"from": "2026-08-10", "rate": "0.25"}, in the order of the days.
CREATE FUNCTION are_dated_rates(rates jsonb) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN jsonb_typeof(rates) = 'array' AND NOT EXISTS (
  SELECT FROM (
    SELECT each->>'from' AS day, (each->>'rate')::numeric AS rate, lag(each->>'from') OVER (ORDER BY nth) AS before
    FROM jsonb_array_elements(CASE jsonb_typeof(rates) WHEN 'array' THEN rates END) WITH ORDINALITY AS e (each, nth)
  ) AS r
  WHERE (day ~ '^\d{4}-\d\d-\d\d$' AND rate BETWEEN 0 AND 1) IS NOT TRUE OR before COLLATE "C" >= day);

CREATE TABLE policies (
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  policy_id text COLLATE "C" NOT NULL CONSTRAINT policy_id_form CHECK (is_identifier(policy_id)),
  name text NOT NULL CONSTRAINT policy_has_name CHECK (name <> ''),
  kind text NOT NULL CONSTRAINT policy_kind_known CHECK (kind IN ('insurance', 'non_insurance')),
  partner_cut_rate numeric NOT NULL CONSTRAINT partner_cut_rate_range CHECK (partner_cut_rate BETWEEN 0 AND 1),
  -- The rates that replace partner_cut_rate from days on, in the partner's time zone.
  dated_cut_rates jsonb NOT NULL DEFAULT '[]' CONSTRAINT dated_cut_rates_form CHECK (are_dated_rates(dated_cut_rates)),
  price_rate numeric CONSTRAINT price_rate_range CHECK (price_rate >= 0),
  price_minimum numeric CONSTRAINT price_minimum_range CHECK (price_minimum >= 0),
  -- The highest total of one quote with its requotes, in the partner's currency; NULL means no limit for this policy.
  largest_price numeric CONSTRAINT largest_price_positive CHECK (largest_price > 0),
  purchase_order text NOT NULL DEFAULT '',
  inactive_since timestamptz,
  PRIMARY KEY (partner_id, policy_id),
  CONSTRAINT price_complete CHECK ((price_rate IS NULL) = (price_minimum IS NULL))
);
CALL grant_to_app('SELECT, INSERT, UPDATE', 'policies');

CREATE FUNCTION printed_name(policy policies) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN policy.name || CASE policy.purchase_order WHEN '' THEN '' ELSE ', PO ' || policy.purchase_order END;

CREATE FUNCTION cut_rate_on(policy policies, day date) RETURNS numeric STABLE PARALLEL SAFE LANGUAGE sql
RETURN coalesce((
  SELECT (each->>'rate')::numeric FROM jsonb_array_elements(policy.dated_cut_rates) WITH ORDINALITY AS e (each, nth)
  WHERE each->>'from' COLLATE "C" <= to_char(day, 'YYYY-MM-DD') ORDER BY nth DESC LIMIT 1), policy.partner_cut_rate);

-- The terms on which reversals of a policy's sales are recorded without a person. They apply to sales accepted from a day
-- on, in the partner's time zone; NULL: from the beginning. A change records all terms of the policy again, and those of
-- the latest event count. Terms of NULL end the terms before them.
CREATE TABLE cancellation_terms (
  cancellation_terms_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  from_day date,
  -- The days after the acceptance on which all that is left may be reversed.
  window_days integer CONSTRAINT cancellation_window_range CHECK (window_days BETWEEN 0 AND 3660),
  -- What may be reversed after the window: nothing, the share of the days of cover that are left, or all.
  after_window text CONSTRAINT cancellation_after_window_known CHECK (after_window IN ('none', 'pro_rata', 'full')),
  cut text CONSTRAINT cancellation_cut_known CHECK (cut IN ('in_proportion', 'kept_by_partner')),
  -- Nothing may be reversed from the first day of cover on.
  before_cover_only boolean,
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  FOREIGN KEY (partner_id, policy_id) REFERENCES policies,
  CONSTRAINT cancellation_terms_once_for_a_day UNIQUE NULLS NOT DISTINCT (partner_id, policy_id, event_id, from_day),
  CONSTRAINT cancellation_terms_complete CHECK (num_nonnulls(window_days, after_window, cut, before_cover_only) IN (0, 4))
);
CALL make_fact('cancellation_terms');

CREATE VIEW present_cancellation_terms AS
SELECT t.* FROM cancellation_terms t
WHERE t.event_id = (SELECT max(l.event_id) FROM cancellation_terms l
                    WHERE l.partner_id = t.partner_id AND l.policy_id = t.policy_id);

-- Ledger rows refer to a policy without a foreign key (require_known in 004_ledger.sql), so policies must never
-- be deleted.
CREATE FUNCTION refuse_lost_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM refuse('policies_stay', format(
    '%s of policies is refused: rows name them for good, a policy is made inactive instead', TG_OP));
END
$$;
CREATE TRIGGER policies_stay BEFORE DELETE ON policies FOR EACH ROW EXECUTE FUNCTION refuse_lost_policy();
CREATE TRIGGER policies_keep_their_names BEFORE UPDATE OF partner_id, policy_id ON policies FOR EACH ROW
  WHEN ((OLD.partner_id, OLD.policy_id) IS DISTINCT FROM (NEW.partner_id, NEW.policy_id))
  EXECUTE FUNCTION refuse_lost_policy();
CREATE TRIGGER policies_stay_whole BEFORE TRUNCATE ON policies
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_lost_policy();

-- Partners, policies, arrangements and webhooks change only in a transaction whose events name each changed field with
-- its new value, in `changes` (src/partners/changes.ts, src/partner-events/webhook.ts). The working state of webhooks is
-- exempt, and so is an acknowledged event. A new arrangement changes the one before it.
CREATE FUNCTION refuse_change_without_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  after jsonb := to_jsonb(NEW);
  before jsonb := to_jsonb(OLD);
  id text := coalesce(after, before)->>'partner_id';
  exempt text[] := '{attempted_at,previous_until,paused_at,failures,failing_since,last_failure,'
                   'next_attempt_at}';
  missing text;
BEGIN
  IF before IS NULL OR after IS NULL THEN exempt := exempt || '{partner_id,policy_id}'; END IF;
  IF (after->'acknowledged')::bigint = (before->'acknowledged')::bigint + 1 THEN
    exempt := exempt || '{acknowledged}';
  END IF;
  IF before IS NULL AND TG_TABLE_NAME = 'partner_arrangements' THEN
    SELECT to_jsonb(a) INTO before FROM partner_arrangements a
    WHERE a.partner_id = id AND a.from_month < after->>'from_month' ORDER BY a.from_month DESC LIMIT 1;
  END IF;
  SELECT min(h.field) INTO missing
  FROM (
    SELECT concat('policies.' || (coalesce(after, before)->>'policy_id') || '.')
           || CASE key WHEN 'inactive_since' THEN 'active' WHEN 'from_month' THEN 'arrangement_from'
              WHEN 'dated_cut_rates' THEN 'partner_cut_rate'
              ELSE regexp_replace(regexp_replace(key, '^(address|price)_', '\1.'), '^contact_', 'invoicing_contact.')
              END AS field,
           CASE WHEN key = 'inactive_since' THEN (after->>key IS NULL)::text
           WHEN key = 'url' THEN split_part(after->>key, '?', 1)
           WHEN key ~ 'cut_rate' THEN concat(after->>'partner_cut_rate', (
             SELECT string_agg(format(', %s from %s', each->>'rate', each->>'from'), '' ORDER BY nth)
             FROM jsonb_array_elements(after->'dated_cut_rates') WITH ORDINALITY AS e (each, nth)))
           ELSE after->>key END AS value
    FROM jsonb_object_keys(coalesce(after, before) - exempt) AS key
    WHERE nullif(nullif(after->>key, ''), '0001-01') IS DISTINCT FROM nullif(nullif(before->>key, ''), '0001-01')
  ) AS h
  WHERE NOT EXISTS (
    SELECT FROM audit_events e CROSS JOIN LATERAL jsonb_array_elements(e.details->'changes') AS c (change)
    WHERE e.subject = id AND e.xmin = pg_current_xact_id()::xid
      AND e.action ~ '^(partner|webhook)[.]' AND c.change->>'field' = h.field
      AND personal_json(c.change)->>'new' IS NOT DISTINCT FROM nullif(h.value, ''));
  -- A temporary table must not stand in for what was read.
  IF missing IS NOT NULL OR num_nonnulls(to_regclass('pg_temp.audit_events'), to_regclass('pg_temp.personal_texts'),
                                         to_regclass('pg_temp.partner_arrangements')) > 0 THEN
    PERFORM refuse(TG_TABLE_NAME || '_change_with_event', format(
      '%s of %s is refused: no event of this transaction names the new %s', TG_OP, TG_TABLE_NAME, missing));
  END IF;
  RETURN NULL;
END
$$;

CREATE PROCEDURE change_with_event(target regclass) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE CONSTRAINT TRIGGER change_with_event AFTER INSERT OR UPDATE OR DELETE ON %s
                  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_change_without_event()', target);
END
$$;
CALL change_with_event('partners');
CALL change_with_event('policies');
CALL change_with_event('partner_arrangements');

CREATE TABLE api_clients (
  client_id text COLLATE "C" PRIMARY KEY CONSTRAINT client_id_form CHECK (is_identifier(client_id)),
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  created_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT client_of_partner UNIQUE (client_id, partner_id)
);
CREATE INDEX api_clients_of_partner ON api_clients (partner_id);
CALL make_fact('api_clients', while_paused => true);

-- The secrets of a client form a chain. Only the last two secrets can be valid. The second-to-last secret is valid only
-- until previous_ends_at of the last secret. A client therefore never has three valid secrets.
CREATE TABLE client_secrets (
  client_id text COLLATE "C" NOT NULL REFERENCES api_clients,
  sequence integer NOT NULL CONSTRAINT client_secret_sequence_positive CHECK (sequence > 0),
  -- A plain hash is enough, because the secret is 256 random bits.
  secret_sha256 text NOT NULL CONSTRAINT client_secret_is_a_hash CHECK (secret_sha256 ~ '^[0-9a-f]{64}$'),
  issued_at timestamptz NOT NULL,
  expires_at timestamptz CONSTRAINT client_secret_expires_after_issue CHECK (expires_at > issued_at),
  previous_sequence integer GENERATED ALWAYS AS (nullif(sequence - 1, 0)) STORED,
  previous_ends_at timestamptz,
  event_id bigint NOT NULL REFERENCES audit_events,
  PRIMARY KEY (client_id, sequence),
  CONSTRAINT client_secret_follows FOREIGN KEY (client_id, previous_sequence) REFERENCES client_secrets,
  CONSTRAINT client_secret_ends_the_one_before CHECK ((sequence = 1) = (previous_ends_at IS NULL))
);
CALL make_fact('client_secrets', while_paused => true);

CREATE TABLE client_revocations (
  client_id text COLLATE "C" PRIMARY KEY REFERENCES api_clients,
  revoked_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events
);
CALL make_fact('client_revocations', while_paused => true);

-- The time of a client's last call, to within minutes. This is working state, which helps to find unused clients and to
-- revoke them.
CREATE TABLE client_uses (
  client_id text COLLATE "C" PRIMARY KEY REFERENCES api_clients,
  used_at timestamptz NOT NULL
);
CALL grant_to_app('SELECT, INSERT, UPDATE', 'client_uses');

-- The public keys of tokens. A private key exists only in the memory of the signing process, so neither this database
-- nor its backup can sign a token.
CREATE TABLE signing_keys (
  kid text COLLATE "C" PRIMARY KEY,
  public_jwk jsonb NOT NULL CONSTRAINT signing_key_is_public CHECK (NOT jsonb_exists(public_jwk, 'd')),
  published_at timestamptz NOT NULL,
  signs_until timestamptz NOT NULL,
  -- A key is kept until the last token that it may have signed has expired.
  published_until timestamptz NOT NULL,
  CONSTRAINT signing_key_outlives_its_tokens CHECK (published_at < signs_until AND signs_until < published_until)
);
CREATE INDEX signing_keys_in_use ON signing_keys (published_until);
CALL make_append_only('signing_keys');

-- Counts across all servers in windows of time: requests of the current minute, by kind and by network or client; and
-- wrong secrets at token exchanges and sign-ins, and requests for sign-in links, by network, client or payment page. A
-- row is deleted some time after its window has ended.
CREATE TABLE request_counts (
  key text COLLATE "C" PRIMARY KEY CONSTRAINT request_count_key_length CHECK (length(key) <= 200),
  requests integer NOT NULL,
  ends_at timestamptz NOT NULL
);
CREATE INDEX request_counts_ended ON request_counts (ends_at);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'request_counts');

-- The partner's place: pages that an invoicing contact opens by a link in an e-mail. This is working state: rows
-- expire, and are not facts of the log. A link or session is valid only while the partner is active and still has the
-- contact who received the link.
CREATE TABLE partner_sign_in_links (
  sha256 text COLLATE "C" PRIMARY KEY CONSTRAINT partner_sign_in_link_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  contact_name text NOT NULL,
  contact_email text NOT NULL CONSTRAINT partner_sign_in_link_has_address CHECK (contact_email <> ''),
  expires_at timestamptz NOT NULL,
  used_at timestamptz
);
CREATE INDEX partner_sign_in_links_ended ON partner_sign_in_links (expires_at);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'partner_sign_in_links');

CREATE TABLE partner_sessions (
  -- The hash of the cookie's secret.
  sha256 text COLLATE "C" PRIMARY KEY CONSTRAINT partner_session_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  contact_name text NOT NULL,
  contact_email text NOT NULL,
  last_seen_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events
);
CREATE INDEX partner_sessions_ended ON partner_sessions (ends_at);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'partner_sessions');

-- Our role, which the setting we_are in settings.json states. As the partners' supplier, our sales are the invoice
-- amounts. As the principal, our sales are the whole prices, and partners' cuts are an expense. The journal depends on
-- the role, so it is recorded with the first partners and cannot change once there is a ledger row.
CREATE TABLE presentation (
  only_one boolean PRIMARY KEY DEFAULT true CONSTRAINT presentation_only_one CHECK (only_one),
  we_are text NOT NULL CONSTRAINT presentation_known CHECK (we_are IN ('supplier_to_partner', 'principal'))
);
