-- What a document needs to reach its partner: payment link and the queue of deliveries.

CREATE TABLE payment_links (
  document_id bigint PRIMARY KEY REFERENCES documents,
  provider text NOT NULL,
  -- The opaque end of the page's URL. It alone opens the page, so it can't be guessed.
  token text NOT NULL CONSTRAINT payment_link_token_once UNIQUE
    CONSTRAINT payment_link_token_unguessable CHECK (length(token) >= 32),
  url text NOT NULL,
  created_at timestamptz NOT NULL
);
CALL make_append_only('payment_links');

-- A link of our page that was taken back: the new token in its place, or NULL for none. Each follows the one before, so
-- that of two changes at once one fails. The document's PDF goes on printing the first.
CREATE TABLE payment_link_changes (
  payment_link_change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  document_id bigint NOT NULL REFERENCES payment_links,
  follows bigint,
  token text CONSTRAINT payment_link_change_token_once UNIQUE
    CONSTRAINT payment_link_change_token_unguessable CHECK (length(token) >= 32),
  reason text NOT NULL CONSTRAINT payment_link_change_has_reason CHECK (reason <> ''),
  changed_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT payment_link_change_one_at_a_time UNIQUE NULLS NOT DISTINCT (document_id, follows)
);
CALL make_append_only('payment_link_changes');

-- The link that opens a document's page now; its token and URL are NULL where it was revoked.
CREATE VIEW current_links AS
SELECT k.document_id, k.provider, CASE WHEN c.document_id IS NULL THEN k.token ELSE c.token END AS token,
       CASE WHEN c.document_id IS NULL THEN k.url ELSE replace(k.url, k.token, c.token) END AS url
FROM payment_links k
LEFT JOIN LATERAL (
  SELECT c.document_id, c.token FROM payment_link_changes c WHERE c.document_id = k.document_id
  ORDER BY c.payment_link_change_id DESC LIMIT 1) AS c ON true;
CALL grant_to_app('SELECT', 'current_links');

-- Links at a payment processor. The request is written before the call, the object after the reply, and the closing once
-- the processor has confirmed it. The links of a document are versions: a new amount is a new link.
CREATE TABLE payment_link_intents (
  document_id bigint NOT NULL REFERENCES documents,
  version integer NOT NULL CONSTRAINT payment_link_version_positive CHECK (version > 0),
  provider text NOT NULL,
  amount numeric NOT NULL CONSTRAINT payment_link_amount_positive CHECK (amount > 0),
  currency text COLLATE "C" NOT NULL,
  -- What is asked for, whole: a processor gives the first answer again only to the very same request.
  request jsonb NOT NULL,
  intended_at timestamptz NOT NULL,
  -- Each version follows a closed one, so a document never has two links open.
  follows integer GENERATED ALWAYS AS (nullif(version - 1, 0)) STORED,
  PRIMARY KEY (document_id, version)
);
CALL make_append_only('payment_link_intents');

-- An idempotency key is used until the processor forgets it or replies with an error of its own.
CREATE TABLE payment_link_attempts (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  attempt integer NOT NULL CONSTRAINT payment_link_attempt_positive CHECK (attempt > 0),
  idempotency_key text NOT NULL CONSTRAINT payment_link_key_once UNIQUE
    CONSTRAINT payment_link_key_short CHECK (length(idempotency_key) <= 255),
  attempted_at timestamptz NOT NULL,
  PRIMARY KEY (document_id, version, attempt),
  CONSTRAINT payment_link_attempt_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents
);
CALL make_append_only('payment_link_attempts');
CALL refuse_rows_while_paused('payment_link_attempts');

CREATE TABLE payment_link_objects (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  provider_id text NOT NULL CONSTRAINT payment_link_object_once UNIQUE,
  url text NOT NULL,
  -- Found at the processor after an attempt whose response was lost.
  found boolean NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_object_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents
);
CALL make_append_only('payment_link_objects');

-- Written once the processor has confirmed it; `refused` and `not_made` have no object. `used_up`: its one session was
-- completed without money, for example when a debit fails days later; the next version takes the next attempt.
CREATE TABLE payment_link_closings (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  why text NOT NULL CONSTRAINT payment_link_closing_known
    CHECK (why IN ('void', 'paid', 'amount_changed', 'used_up', 'refused', 'not_made')),
  detail text,
  sessions_expired integer NOT NULL DEFAULT 0,
  closed_at timestamptz NOT NULL,
  PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_closing_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents
);
CALL make_append_only('payment_link_closings');
-- Intents and closings name each other, so this foreign key comes after both. Deferrable for a restore.
ALTER TABLE payment_link_intents ADD CONSTRAINT payment_link_follows_a_closed_one FOREIGN KEY (document_id, follows)
  REFERENCES payment_link_closings (document_id, version) DEFERRABLE;

-- Why a document's link is not as it should be at present. It is deleted with its cause.
CREATE TABLE payment_link_waits (
  document_id bigint PRIMARY KEY REFERENCES documents,
  -- limit: the processor takes no such amount; refused: it refused the request; unavailable: it can't be asked now.
  kind text NOT NULL CONSTRAINT payment_link_wait_known CHECK (kind IN ('limit', 'refused', 'unavailable')),
  reason text NOT NULL,
  -- What was wanted when this was noted: another amount or other methods are tried at once.
  wanted text NOT NULL,
  since timestamptz NOT NULL DEFAULT now(),
  noted_at timestamptz NOT NULL DEFAULT now()
);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'payment_link_waits');

-- Names the documents to look at (src/database/grants.ts lets the workers take them). One job per document: a second request
-- replaces the first while that waits.
CREATE FUNCTION enqueue_deliveries(document_ids bigint[]) RETURNS void LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT count(*) FROM graphile_worker.add_jobs((
    SELECT array_agg(('deliver', json_build_object('document_id', id), NULL, NULL, NULL, 'deliver:' || id, NULL, NULL
                     )::graphile_worker.job_spec ORDER BY id)
    FROM unnest(document_ids) AS id))
  HAVING cardinality(document_ids) > 0
$$;

-- What happened to the payment link of a document, for its history.
CREATE VIEW payment_link_history AS
SELECT document_id, 4 AS rank, created_at AS at, 'linked' AS act, jsonb_build_object('url', url) AS facts
FROM payment_links
UNION ALL
SELECT document_id, 11.9, changed_at, CASE WHEN token IS NULL THEN 'link_revoked' ELSE 'link_rotated' END,
       jsonb_build_object('reason', reason)
FROM payment_link_changes
UNION ALL
SELECT document_id, 12 + i.version * 0.002, o.created_at, 'link_made',
       jsonb_build_object('version', i.version::text, 'amount', i.amount::text, 'provider', initcap(i.provider),
                          'url', o.url, 'found', o.found::text)
FROM payment_link_objects o JOIN payment_link_intents i USING (document_id, version)
UNION ALL
SELECT document_id, 12.001 + i.version * 0.002, c.closed_at, 'link_closed',
       jsonb_build_object('version', i.version::text, 'amount', i.amount::text, 'why', c.why, 'detail', c.detail,
                          'sessions', c.sessions_expired::text)
FROM payment_link_closings c JOIN payment_link_intents i USING (document_id, version)
UNION ALL
SELECT document_id, 99, noted_at, 'link_waits', jsonb_build_object('reason', reason) FROM payment_link_waits;
CALL grant_to_app('SELECT', 'payment_link_history');

-- The payment link that a document prints.
CREATE VIEW printed_links AS SELECT document_id, url FROM payment_links;
CALL grant_to_app('SELECT', 'printed_links');
