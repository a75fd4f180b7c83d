CREATE TABLE payment_links (
  document_id bigint PRIMARY KEY REFERENCES documents,
  provider text NOT NULL,
  -- The end of the page's URL. Anyone who knows the token can open the page, so it must be unguessable.
  token text NOT NULL CONSTRAINT payment_link_token_once UNIQUE
    CONSTRAINT payment_link_token_unguessable CHECK (length(token) >= 32),
  url text NOT NULL,
  created_at timestamptz NOT NULL
);
CALL make_append_only('payment_links');

-- Revocations of links to our payment page. token is the new token, or NULL if there is none. Each change refers to the
-- previous change, so one of two concurrent changes fails. The document's PDF still contains the first link.
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

-- The link that currently opens a document's page. Token and URL are NULL if the link was revoked.
CREATE VIEW current_links AS
SELECT k.document_id, k.provider, CASE WHEN c.document_id IS NULL THEN k.token ELSE c.token END AS token,
       CASE WHEN c.document_id IS NULL THEN k.url ELSE replace(k.url, k.token, c.token) END AS url
FROM payment_links k
LEFT JOIN LATERAL (
  SELECT c.document_id, c.token FROM payment_link_changes c WHERE c.document_id = k.document_id
  ORDER BY c.payment_link_change_id DESC LIMIT 1) AS c ON true;

-- Links of a payment processor. The intent is written before the call to the processor, the object after the reply, and
-- the closing after the processor has confirmed it. A document's links are numbered versions, because a new amount
-- needs a new link.
CREATE TABLE payment_link_intents (
  document_id bigint NOT NULL REFERENCES documents,
  version integer NOT NULL CONSTRAINT payment_link_version_positive CHECK (version > 0),
  provider text NOT NULL,
  amount numeric NOT NULL CONSTRAINT payment_link_amount_positive CHECK (amount > 0),
  currency text COLLATE "C" NOT NULL,
  -- The complete request. The processor repeats its first answer only if the repeated request is identical.
  request jsonb NOT NULL,
  intended_at timestamptz NOT NULL,
  -- Each version follows a closed version, so a document never has two open links.
  follows integer GENERATED ALWAYS AS (nullif(version - 1, 0)) STORED,
  PRIMARY KEY (document_id, version)
);
CALL make_append_only('payment_link_intents');

-- An idempotency key is used until the processor forgets it or replies with an internal error.
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
  -- True if the object was found at the processor after an attempt whose response was lost.
  found boolean NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_object_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents
);
CALL make_append_only('payment_link_objects');

-- Written after the processor confirmed the closing. For `refused` and `not_made`, there is no object. `used_up`: the
-- link's only session ended without money, because a bank debit was ordered. If the debit fails, the next version of
-- the link is made. `ordered`: a debit for the document is in progress in another session.
CREATE TABLE payment_link_closings (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  why text NOT NULL CONSTRAINT payment_link_closing_known
    CHECK (why IN ('void', 'paid', 'amount_changed', 'used_up', 'ordered', 'refused', 'not_made')),
  detail text,
  sessions_expired integer NOT NULL DEFAULT 0,
  closed_at timestamptz NOT NULL,
  PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_closing_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents
);
CALL make_append_only('payment_link_closings');
-- Intents and closings refer to each other, so this foreign key comes after both tables. The key is deferrable, so that
-- a restore can fill the tables one after another.
ALTER TABLE payment_link_intents ADD CONSTRAINT payment_link_follows_a_closed_one FOREIGN KEY (document_id, follows)
  REFERENCES payment_link_closings (document_id, version) DEFERRABLE;

-- The payer of a link ordered a bank debit. The money arrives days later, or the debit fails.
CREATE TABLE payment_link_orders (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  ordered_on date NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_order_of_object FOREIGN KEY (document_id, version) REFERENCES payment_link_objects
);
CALL make_append_only('payment_link_orders');

-- The outcome of the only session of a link. Events arrive in any order, so the outcome may be known before the order.
CREATE TABLE payment_link_outcomes (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  outcome text NOT NULL CONSTRAINT payment_link_outcome_known CHECK (outcome IN ('paid', 'failed')),
  recorded_at timestamptz NOT NULL,
  PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_outcome_of_object FOREIGN KEY (document_id, version) REFERENCES payment_link_objects
);
CALL make_append_only('payment_link_outcomes');

-- The reason why a document's link is wrong at present. The row is deleted when the cause is gone.
CREATE TABLE payment_link_waits (
  document_id bigint PRIMARY KEY REFERENCES documents,
  -- limit: the processor does not accept the amount. refused: the processor refused the request. unavailable: the
  -- processor cannot be reached.
  kind text NOT NULL CONSTRAINT payment_link_wait_known CHECK (kind IN ('limit', 'refused', 'unavailable')),
  reason text NOT NULL,
  -- The link that was wanted when this row was recorded. If a link with a different amount or other methods is wanted,
  -- it is tried at once.
  wanted text NOT NULL,
  since timestamptz NOT NULL DEFAULT now(),
  noted_at timestamptz NOT NULL DEFAULT now()
);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'payment_link_waits');

-- Checkouts: a partner's contact pays several invoices in one session of the payment processor. The checkout is written
-- before the call to the processor, with the balance of each invoice. The session is written after the reply.
CREATE TABLE checkouts (
  checkout_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The name of the checkout in our URLs and in the processor's metadata.
  reference text NOT NULL CONSTRAINT checkout_reference_once UNIQUE
    CONSTRAINT checkout_reference_unguessable CHECK (length(reference) >= 32),
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  provider text NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT checkout_amount_positive CHECK (amount > 0),
  request jsonb NOT NULL,
  idempotency_key text NOT NULL CONSTRAINT checkout_key_once UNIQUE
    CONSTRAINT checkout_key_short CHECK (length(idempotency_key) <= 255),
  expires_at timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT checkout_of_partner UNIQUE (checkout_id, partner_id, currency)
);
CREATE INDEX checkouts_of_partner ON checkouts (partner_id);
CALL make_append_only('checkouts');
CALL refuse_rows_while_paused('checkouts');

CREATE TABLE checkout_invoices (
  checkout_id bigint NOT NULL,
  position integer NOT NULL CONSTRAINT checkout_position_positive CHECK (position > 0),
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT checkout_invoice_amount_positive CHECK (amount > 0),
  PRIMARY KEY (checkout_id, position),
  CONSTRAINT checkout_invoice_once UNIQUE (checkout_id, document_id),
  CONSTRAINT checkout_invoice_of_its_checkout FOREIGN KEY (checkout_id, partner_id, currency)
    REFERENCES checkouts (checkout_id, partner_id, currency),
  CONSTRAINT checkout_invoice_of_its_partner FOREIGN KEY (document_id, partner_id, currency)
    REFERENCES documents (document_id, partner_id, currency)
);
CREATE INDEX checkout_invoices_of_document ON checkout_invoices (document_id);
CALL make_append_only('checkout_invoices');

CREATE TABLE checkout_sessions (
  checkout_id bigint PRIMARY KEY REFERENCES checkouts,
  provider_id text NOT NULL CONSTRAINT checkout_session_once UNIQUE,
  url text NOT NULL,
  created_at timestamptz NOT NULL
);
CALL make_append_only('checkout_sessions');

-- The payer ordered a bank debit. The money arrives days later, or the debit fails.
CREATE TABLE checkout_orders (
  checkout_id bigint PRIMARY KEY REFERENCES checkouts,
  ordered_on date NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events
);
CALL make_append_only('checkout_orders');

-- paid: the processor reported the payment. replaced, canceled, changed: we ended the session, because another checkout
-- pays its invoices, the contact canceled, or the balance of an invoice changed. failed: the ordered debit failed.
-- refused, not_made: there is no session.
CREATE TABLE checkout_endings (
  checkout_id bigint PRIMARY KEY REFERENCES checkouts,
  why text NOT NULL CONSTRAINT checkout_ending_known
    CHECK (why IN ('paid', 'replaced', 'canceled', 'changed', 'expired', 'failed', 'refused', 'not_made')),
  detail text,
  ended_at timestamptz NOT NULL
);
CALL make_append_only('checkout_endings');

-- Payments that were ordered and are in progress. No other payment of the document should be requested unless the
-- ordered payment fails.
CREATE VIEW ordered_payments AS
SELECT i.document_id, i.amount, o.ordered_on, c.reference
FROM checkout_orders o JOIN checkouts c USING (checkout_id) JOIN checkout_invoices i USING (checkout_id)
WHERE NOT EXISTS (SELECT FROM checkout_endings e WHERE e.checkout_id = o.checkout_id)
UNION ALL
SELECT document_id, i.amount, o.ordered_on, NULL
FROM payment_link_orders o JOIN payment_link_intents i USING (document_id, version)
WHERE NOT EXISTS (
  SELECT FROM payment_link_outcomes x WHERE (x.document_id, x.version) = (o.document_id, o.version));

-- Checks that a checkout's invoices add up to its amount, and that no invoice is in two open checkouts. The checks are
-- deferred, so that a restore can fill the tables one after another.
CREATE FUNCTION refuse_other_checkout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 52);
  IF (SELECT amount FROM checkouts WHERE checkout_id = NEW.checkout_id)
     IS DISTINCT FROM (SELECT sum(amount) FROM checkout_invoices WHERE checkout_id = NEW.checkout_id) THEN
    PERFORM refuse('checkout_adds_up', format('the invoices of checkout %s do not add up to it', NEW.checkout_id));
  END IF;
  IF NOT EXISTS (SELECT FROM checkout_endings WHERE checkout_id = NEW.checkout_id) AND EXISTS (
       SELECT FROM checkout_invoices mine JOIN checkout_invoices other USING (document_id)
       WHERE mine.checkout_id = NEW.checkout_id AND other.checkout_id <> NEW.checkout_id
         AND NOT EXISTS (SELECT FROM checkout_endings e WHERE e.checkout_id = other.checkout_id)) THEN
    PERFORM refuse('checkout_of_invoice_once',
                   format('an invoice of checkout %s is in another one that has not ended', NEW.checkout_id));
  END IF;
  RETURN NULL;
END
$$;
CALL check_at_commit('checkout_is_whole', 'checkouts', 'refuse_other_checkout()');
CALL check_at_commit('checkout_stays_whole', 'checkout_invoices', 'refuse_other_checkout()');

-- Documents whose payment link must be checked. A request during a check causes another check.
CREATE TABLE link_checks (
  document_id bigint PRIMARY KEY REFERENCES documents,
  asked integer NOT NULL DEFAULT 1
);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'link_checks');

CREATE FUNCTION request_link_checks(document_ids bigint[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO link_checks AS c (document_id) SELECT DISTINCT id FROM unnest(document_ids) AS id ORDER BY id
  ON CONFLICT (document_id) DO UPDATE SET asked = c.asked + 1
$$;

-- The history of a document's payment link. The view omits the link's URL, because anyone who knows the URL can open
-- the page.
CREATE VIEW payment_link_history AS
SELECT document_id, 4 AS rank, created_at AS at, 'linked' AS action, '{}'::jsonb AS facts
FROM payment_links
UNION ALL
SELECT document_id, 11.9, changed_at, CASE WHEN token IS NULL THEN 'link_revoked' ELSE 'link_rotated' END,
       jsonb_build_object('reason', reason)
FROM payment_link_changes
UNION ALL
SELECT document_id, 12 + i.version * 0.002, o.created_at, 'link_made',
       jsonb_build_object('version', i.version::text, 'amount', i.amount::text, 'provider', initcap(i.provider),
                          'found', o.found::text)
FROM payment_link_objects o JOIN payment_link_intents i USING (document_id, version)
UNION ALL
SELECT document_id, 12.001 + i.version * 0.002, c.closed_at, 'link_closed',
       jsonb_build_object('version', i.version::text, 'amount', i.amount::text, 'why', c.why, 'detail', c.detail,
                          'sessions', c.sessions_expired::text)
FROM payment_link_closings c JOIN payment_link_intents i USING (document_id, version)
UNION ALL
SELECT i.document_id, 12.9, s.created_at, 'checkout_made',
       jsonb_build_object('amount', i.amount::text, 'total', c.amount::text, 'provider', initcap(c.provider))
FROM checkout_invoices i JOIN checkouts c USING (checkout_id) JOIN checkout_sessions s USING (checkout_id)
UNION ALL
SELECT i.document_id, 12.91, e.ended_at, 'checkout_ended',
       jsonb_build_object('amount', i.amount::text, 'why', e.why, 'detail', e.detail)
FROM checkout_endings e JOIN checkout_invoices i USING (checkout_id) JOIN checkout_sessions s USING (checkout_id)
WHERE e.why <> 'paid'
UNION ALL
SELECT i.document_id, 12.905, v.occurred_at, 'payment_ordered', jsonb_build_object('amount', i.amount::text)
FROM checkout_orders o JOIN checkout_invoices i USING (checkout_id) JOIN audit_events v USING (event_id)
UNION ALL
SELECT document_id, 12.002 + i.version * 0.002, v.occurred_at, 'payment_ordered',
       jsonb_build_object('amount', i.amount::text)
FROM payment_link_orders JOIN payment_link_intents i USING (document_id, version) JOIN audit_events v USING (event_id)
UNION ALL
SELECT document_id, 12.003 + i.version * 0.002, x.recorded_at, 'payment_failed',
       jsonb_build_object('amount', i.amount::text)
FROM payment_link_outcomes x JOIN payment_link_intents i USING (document_id, version)
WHERE x.outcome = 'failed'
UNION ALL
SELECT document_id, 99, noted_at, 'link_waits', jsonb_build_object('reason', reason) FROM payment_link_waits;

CREATE VIEW printed_links AS SELECT document_id, url FROM payment_links;
