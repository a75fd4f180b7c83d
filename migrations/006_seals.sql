-- Seals of closed months. Each names the previous one (docs/auditors.md).

CREATE TABLE seals (
  month billing_month PRIMARY KEY REFERENCES closed_months,
  -- NULL for the first only: the seals are one unbroken chain.
  previous billing_month CONSTRAINT seals_chain UNIQUE NULLS NOT DISTINCT REFERENCES seals,
  facts_to bigint NOT NULL,
  sealed_at timestamptz NOT NULL,
  record text NOT NULL,
  seal text NOT NULL,
  CONSTRAINT seals_follow CHECK (month = month_after(previous)),
  CONSTRAINT seal_is_the_hash_of_its_record CHECK (seal = encode(sha256(convert_to(record, 'UTF8')), 'hex'))
);
CALL make_append_only('seals');

-- Checkpoints of the open month: each seals the rows and facts since the previous one, so that changes before the
-- month's close are found too. A checkpoint is a fact too: the month's seal covers it.
CREATE TABLE checkpoints (
  checkpoint_number bigint PRIMARY KEY CONSTRAINT checkpoint_number_positive CHECK (checkpoint_number > 0),
  -- NULL for the first only: the checkpoints are one unbroken chain.
  previous bigint CONSTRAINT checkpoints_chain UNIQUE NULLS NOT DISTINCT REFERENCES checkpoints,
  -- The number of the last fact and the last entry_id before it. The checkpoint's own event is the last fact that it
  -- covers.
  facts_to bigint NOT NULL,
  entries_to bigint NOT NULL,
  taken_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  -- The Merkle trees of the rows recorded so far, by open month: {"2026-07": {"leaves": 3, "roots": ["…", "…"]}}. The
  -- close adds the rows recorded since. They are computed from the rows, so they are not sealed, and verification never
  -- trusts them.
  trees jsonb NOT NULL,
  record text NOT NULL,
  seal text NOT NULL,
  CONSTRAINT checkpoints_follow CHECK (checkpoint_number = coalesce(previous, 0) + 1),
  CONSTRAINT checkpoint_seal_is_the_hash_of_its_record CHECK (seal = encode(sha256(convert_to(record, 'UTF8')), 'hex'))
);
CALL make_fact('checkpoints');

-- Signatures of seals by the operator's key: of a month, of its books, of a checkpoint. Each is made in the transaction
-- that makes the seal. The record is signed. Public key and signature are in Base64.
CREATE TABLE seal_signatures (
  kind text NOT NULL CONSTRAINT seal_signature_kind_known CHECK (kind IN ('month', 'books', 'checkpoint')),
  -- The month, or the number of the checkpoint.
  name text COLLATE "C" NOT NULL,
  seal text NOT NULL,
  key_name text NOT NULL CONSTRAINT seal_signature_key_name_form CHECK (key_name ~ '^[!-*,-~]{1,100}$'),
  public_key text NOT NULL CONSTRAINT seal_signature_public_key_form CHECK (public_key ~ '^[A-Za-z0-9+/]{43}=$'),
  signature text NOT NULL CONSTRAINT seal_signature_form CHECK (signature ~ '^[A-Za-z0-9+/]{86}==$'),
  signed_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  PRIMARY KEY (kind, name)
);
CALL make_fact('seal_signatures');

-- Time stamps of seals by a time-stamping authority (RFC 3161), requested after the commit.
CREATE TABLE seal_time_stamps (
  kind text NOT NULL CONSTRAINT seal_time_stamp_kind_known CHECK (kind IN ('month', 'books', 'checkpoint')),
  name text COLLATE "C" NOT NULL,
  seal text NOT NULL,
  -- Its URL.
  authority text NOT NULL,
  -- The authority's whole answer (TimeStampResp, DER).
  response bytea NOT NULL,
  -- The time that the authority states.
  stamped_at timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  PRIMARY KEY (kind, name)
);
CALL make_fact('seal_time_stamps');

-- Every seal of any kind, with its record. They were made in the order of facts_to, which is unique.
CREATE VIEW every_seal (kind, name, seal, record, facts_to, sealed_at) AS
SELECT 'month', month::text COLLATE "C", seal, record, facts_to, sealed_at FROM seals
UNION ALL
SELECT 'books', month::text, seal, record, facts_to, closed_at FROM book_closes
UNION ALL
SELECT 'checkpoint', checkpoint_number::text, seal, record, facts_to, taken_at FROM checkpoints;
CALL grant_to_app('SELECT', 'every_seal');
