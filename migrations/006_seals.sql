-- Seals of closed months. Each names the one before (docs/auditors.md).

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
