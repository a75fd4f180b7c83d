-- Connected accounts: balance transactions and their quotes, settlement files, closings of balance transactions without
-- a quote, ledger reversals for reversed transfers, and invoices for missing shares with the shares that pay them
-- later. All of it is append-only: an allocation of the opposite amount undoes a wrong match.

CREATE TABLE settlement_files (
  settlement_file_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL REFERENCES partners,
  sha256 text NOT NULL CONSTRAINT settlement_file_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  name text NOT NULL,
  lines bigint NOT NULL,
  CONSTRAINT settlement_file_once UNIQUE (partner_id, sha256),
  CONSTRAINT settlement_file_of_partner UNIQUE (settlement_file_id, partner_id)
);
CALL make_fact_of_event('settlement_files');

-- A line is stored once, even if it is in several files. Each line has one transfer or payment, and one quote or
-- requote.
CREATE TABLE settlement_lines (
  settlement_line_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  settlement_file_id bigint NOT NULL,
  line bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  requote_id text COLLATE "C",
  reversal_id text COLLATE "C",
  transfer text COLLATE "C",
  payment text COLLATE "C",
  kind text NOT NULL CONSTRAINT settlement_line_kind_known CHECK (kind IN ('share', 'reversal', 'dispute')),
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  refunded numeric CONSTRAINT settlement_line_refund_not_negative CHECK (refunded >= 0),
  occurred_at timestamptz,
  CONSTRAINT settlement_line_once UNIQUE NULLS NOT DISTINCT (partner_id, payment, transfer, quote_id, requote_id),
  CONSTRAINT settlement_line_of_its_file FOREIGN KEY (settlement_file_id, partner_id)
    REFERENCES settlement_files (settlement_file_id, partner_id),
  CONSTRAINT settlement_line_names_transfer_or_payment CHECK (num_nonnulls(transfer, payment) > 0),
  CONSTRAINT settlement_line_sign CHECK (
    CASE kind WHEN 'share' THEN amount > 0 WHEN 'reversal' THEN amount < 0 ELSE amount <> 0 END),
  CONSTRAINT settlement_line_minor_digits CHECK (scale(amount) <= minor_digits(currency))
);
-- The index includes the partner. Otherwise, the planner may choose an index of the partner's lines and read all of
-- these lines for each line.
CREATE INDEX settlement_lines_by_payment ON settlement_lines (payment, partner_id) WHERE payment IS NOT NULL;
CREATE INDEX settlement_lines_by_transfer ON settlement_lines (transfer, partner_id) WHERE transfer IS NOT NULL;
CALL make_fact('settlement_lines');

-- True if two lines agree in all values that both lines state, and one line lacks either the transfer or the payment.
CREATE FUNCTION is_same_settlement(one settlement_lines, other settlement_lines) RETURNS boolean IMMUTABLE LANGUAGE sql
RETURN (one.partner_id, one.quote_id, one.kind, one.currency, one.amount)
    = (other.partner_id, other.quote_id, other.kind, other.currency, other.amount)
  AND one.requote_id IS NOT DISTINCT FROM other.requote_id
  AND coalesce(one.transfer = other.transfer, true) AND coalesce(one.payment = other.payment, true)
  AND num_nonnulls(one.transfer, one.payment) + num_nonnulls(other.transfer, other.payment) = 3;

-- The partner's lines with the same transfer or the same payment, each found by an index.
CREATE FUNCTION settlement_lines_beside(line settlement_lines) RETURNS SETOF settlement_lines STABLE LANGUAGE sql AS $$
  SELECT * FROM settlement_lines o WHERE o.transfer = line.transfer AND o.partner_id = line.partner_id
  UNION
  SELECT * FROM settlement_lines o WHERE o.payment = line.payment AND o.partner_id = line.partner_id
$$;

-- The earlier line that a line repeats, or NULL. Both lines have the same quote, kind and amount. One line states only
-- the transfer or only the payment, and the other line states both. A line that states both does not repeat a line that
-- an earlier line already repeats, because one transfer may have several reversals.
CREATE FUNCTION repeated_settlement_line(settlement_line_id bigint) RETURNS bigint STABLE LANGUAGE sql AS $$
  SELECT min(e.settlement_line_id)
  FROM settlement_lines l CROSS JOIN LATERAL settlement_lines_beside(l) AS e
  WHERE l.settlement_line_id = repeated_settlement_line.settlement_line_id
    AND e.settlement_line_id < l.settlement_line_id AND is_same_settlement(e, l)
    AND NOT (num_nonnulls(l.transfer, l.payment) = 2 AND EXISTS (
      SELECT FROM settlement_lines_beside(e) AS o
      WHERE o.settlement_line_id < l.settlement_line_id AND is_same_settlement(e, o)))
$$;

CREATE TABLE balance_transactions (
  balance_transaction_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account text COLLATE "C" NOT NULL,
  -- The id of the balance transaction. If settlement files are the account's only source, the payment or transfer that
  -- the line states.
  id text COLLATE "C" NOT NULL,
  reported_by text NOT NULL CONSTRAINT balance_transaction_reported_by_known CHECK (reported_by IN ('processor', 'settlement_file')),
  type text NOT NULL,
  -- BalanceTransactionKind in src/processors/processor.ts.
  kind text NOT NULL
    CONSTRAINT balance_transaction_kind_known CHECK (kind IN ('share', 'misrouted', 'reversal', 'dispute', 'other')),
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  fee numeric NOT NULL,
  net numeric NOT NULL,
  -- The amount sent, if the processor converted it to a currency of the account: source_amount * exchange_rate =
  -- amount.
  source_currency text COLLATE "C",
  source_amount numeric,
  exchange_rate numeric,
  -- The value that counts for a quote: `net`, converted to the currency in which the money was sent.
  share_currency text COLLATE "C" NOT NULL GENERATED ALWAYS AS (coalesce(source_currency, currency)) STORED,
  share_amount numeric NOT NULL GENERATED ALWAYS AS (
    coalesce(trim_scale(round(source_amount * net / amount, minor_digits(source_currency))), trim_scale(net))) STORED,
  occurred_at timestamptz NOT NULL,
  payment text COLLATE "C",
  of_payment text COLLATE "C",
  transfer text COLLATE "C",
  quote_id text COLLATE "C",
  requote_id text COLLATE "C",
  enrollment_id text COLLATE "C",
  payload jsonb NOT NULL,
  CONSTRAINT balance_transaction_once UNIQUE (account, id),
  CONSTRAINT balance_transaction_in_its_currency UNIQUE (balance_transaction_id, currency),
  CONSTRAINT balance_transaction_of_its_account UNIQUE (balance_transaction_id, account, currency),
  CONSTRAINT balance_transaction_adds_up CHECK (net = amount - fee),
  CONSTRAINT balance_transaction_conversion_whole
    CHECK (num_nonnulls(source_currency, source_amount, exchange_rate) IN (0, 3)),
  CONSTRAINT balance_transaction_converted_from_another CHECK (source_currency <> currency),
  CONSTRAINT balance_transaction_converted_to_the_same_side
    CHECK (source_amount <> 0 AND sign(source_amount) = sign(amount) AND exchange_rate > 0),
  CONSTRAINT balance_transaction_source_minor_digits CHECK (scale(source_amount) <= minor_digits(source_currency)),
  CONSTRAINT balance_transaction_minor_digits CHECK (greatest(scale(amount), scale(fee), scale(net)) <= minor_digits(currency))
);
CREATE INDEX balance_transactions_by_payment ON balance_transactions (payment, account);
CREATE INDEX balance_transactions_by_time ON balance_transactions (account, occurred_at);
CREATE INDEX balance_transactions_of_quote ON balance_transactions (quote_id);
-- Finds a payment together with its reversals, disputes and other deductions.
CREATE INDEX balance_transactions_of_one_payment ON balance_transactions (account, coalesce(of_payment, payment, id));
CREATE INDEX payouts_at_the_processor ON balance_transactions (account, occurred_at) WHERE type = 'payout';
CALL make_fact_of_event('balance_transactions');

-- The only source that may report an account's balance transactions in a month. Money from before the account's first
-- arrangement follows the first arrangement. If several partners share an account, the source is the processor if at
-- least one of them states the processor.
CREATE FUNCTION account_source(account text, month text) RETURNS text STABLE LANGUAGE sql AS $$
  SELECT coalesce(min(source), 'processor') FROM (
    SELECT DISTINCT ON (a.partner_id) coalesce(a.balance_transactions_from, 'processor') AS source
    FROM partner_arrangements a WHERE a.connected_account_id = account_source.account
    ORDER BY a.partner_id, a.from_month <= account_source.month COLLATE "C" DESC,
             CASE WHEN a.from_month <= account_source.month COLLATE "C" THEN a.from_month END DESC, a.from_month) AS own
$$;

-- The source of every account in each month with balance transactions. The source of a month never changes afterward.
CREATE VIEW account_sources AS
SELECT account, month, account_source(account, month) AS source
FROM (SELECT DISTINCT account, to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month
      FROM balance_transactions) AS used;

-- The partners that have or had an account on their platform.
CREATE VIEW account_partners AS
SELECT DISTINCT connected_account_id AS account, partner_id FROM partner_arrangements
WHERE connected_account_id IS NOT NULL;

-- Quotes accepted at least in part under a connected account, with the ledger row of their acceptance.
CREATE VIEW routed_quotes AS
SELECT q.partner_id, q.posted_month, q.entry_id, q.quote_id, q.currency,
       own_id(q) AS own_id
FROM ledger_rows q
WHERE q.kind = 'quote_accepted' AND (
  q.arrangement = 'connected_account' OR EXISTS (
    SELECT FROM ledger_rows r
    WHERE r.partner_id = q.partner_id AND r.quote_id = q.quote_id AND r.kind = 'requote_accepted'
      AND r.arrangement = 'connected_account'));

-- Readings of accounts. The next reading starts before the end of the previous reading. An imported file counts as a
-- reading of its day.
CREATE TABLE processor_readings (
  processor_reading_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account text COLLATE "C" NOT NULL,
  read_from timestamptz,
  read_to timestamptz NOT NULL,
  -- The name of an imported file, or NULL if the processor itself was read. An imported file does not show how far the
  -- processor was read.
  file text,
  balance_transactions bigint NOT NULL,
  new_balance_transactions bigint NOT NULL,
  CONSTRAINT reading_goes_forward CHECK (read_from < read_to),
  CONSTRAINT reading_new_are_read CHECK (new_balance_transactions BETWEEN 0 AND balance_transactions)
);
CREATE INDEX processor_readings_of_account ON processor_readings (account, read_to);
CALL make_fact_of_event('processor_readings');

-- Allocations match a balance transaction, or a part of it, to a quote. The ledger row of the quote's acceptance
-- identifies the quote. `amount` is in the quote's currency. `settled_amount` is the same part of the balance
-- transaction in the account's currency.
CREATE TABLE share_allocations (
  share_allocation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  balance_transaction_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  requote_id text COLLATE "C",
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT share_allocation_of_something CHECK (amount <> 0),
  settled_currency text COLLATE "C" NOT NULL,
  settled_amount numeric NOT NULL,
  -- True if finance allocated money on an account that the quote's partner never had.
  other_account boolean NOT NULL DEFAULT false,
  matched_by text NOT NULL CONSTRAINT share_allocation_matched_by_known
    CHECK (matched_by IN ('metadata', 'payment', 'settlement_file', 'finance')),
  settlement_line_id bigint REFERENCES settlement_lines,
  -- If finance made the match, the reason.
  reason text NOT NULL DEFAULT '',
  occurred_on date NOT NULL,
  -- The date of its journal entry: the true date, but never in books that were closed at the time of recording.
  entry_on date NOT NULL,
  CONSTRAINT share_allocation_of_a_balance_transaction FOREIGN KEY (balance_transaction_id, settled_currency)
    REFERENCES balance_transactions (balance_transaction_id, currency),
  CONSTRAINT share_allocation_currency_stays UNIQUE (share_allocation_id, currency),
  CONSTRAINT share_allocation_of_a_quote FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows,
  CONSTRAINT share_allocation_settlement_named CHECK ((matched_by = 'settlement_file') = (settlement_line_id IS NOT NULL)),
  CONSTRAINT share_allocation_by_finance_has_reason CHECK (matched_by <> 'finance' OR btrim(reason) <> ''),
  CONSTRAINT share_allocation_unconverted_is_equal CHECK (currency <> settled_currency OR amount = settled_amount),
  CONSTRAINT share_allocation_settles_to_the_same_side CHECK (settled_amount = 0 OR sign(settled_amount) = sign(amount)),
  CONSTRAINT share_allocation_other_account_by_finance
    CHECK (NOT other_account OR matched_by IN ('finance', 'payment')),
  CONSTRAINT share_allocation_entry_not_before CHECK (entry_on >= occurred_on),
  CONSTRAINT share_allocation_minor_digits CHECK (
    scale(amount) <= minor_digits(currency) AND scale(settled_amount) <= minor_digits(settled_currency))
);
CREATE UNIQUE INDEX share_allocation_once ON share_allocations (balance_transaction_id, quote_id, requote_id) NULLS NOT DISTINCT
  WHERE matched_by <> 'finance';
CREATE INDEX share_allocations_of_quote ON share_allocations (partner_id, quote_id);
-- Its row may leave for an archive.
CREATE INDEX share_allocations_of_row ON share_allocations (partner_id, posted_month, entry_id);
CREATE INDEX share_allocations_by_entry ON share_allocations USING brin (entry_on) WITH (pages_per_range = 16, autosummarize = on);
-- Money arrives soon after its quote, so the allocations for the quotes of one month are close together.
CREATE INDEX share_allocations_by_month ON share_allocations USING brin (posted_month)
  WITH (pages_per_range = 16, autosummarize = on);
-- The index includes the summed column, so that unexplained amounts are found without reading the allocations.
CREATE INDEX share_allocations_of_balance_transaction ON share_allocations (balance_transaction_id)
  INCLUDE (settled_amount);
CALL make_entry('share_allocations');
CREATE INDEX share_allocations_of_event ON share_allocations (event_id);

-- Triggers derive the next two tables from facts, so that unexplained amounts and unpaid amounts are not searched among
-- all balance transactions. No backup contains these tables, and `verify` derives them again.

-- The balance transactions whose allocations do not add up to their amount: shares without any allocation, and shares
-- allocated only in part. `closed`: finance closed the unexplained amount. Counting the open amounts of a million
-- transactions takes 0.13 s. Looking up 30,000 closings instead of `closed` takes 1 s.
CREATE TABLE unallocated_balance_transactions (
  balance_transaction_id bigint PRIMARY KEY REFERENCES balance_transactions,
  closed boolean NOT NULL DEFAULT false
);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'unallocated_balance_transactions');

-- The net amount credited to an account in each UTC month, without payouts. Reading this table takes 4 ms. Summing a
-- million transactions takes 0.9 s. Reading their totals from an index takes 0.13 s, but the index has 47 MB.
CREATE TABLE account_months (
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  amount numeric NOT NULL,
  PRIMARY KEY (account, currency, month)
);
CALL grant_to_app('SELECT, INSERT, UPDATE', 'account_months');

CREATE FUNCTION keep_balance_transactions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO unallocated_balance_transactions (balance_transaction_id)
  SELECT balance_transaction_id FROM added WHERE kind <> 'other' AND net <> 0;
  -- In order, so that two imports cannot wait for each other.
  INSERT INTO account_months AS kept (account, currency, month, amount)
  SELECT account, currency, to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month, sum(net) FROM added
  WHERE type NOT LIKE 'payout%' GROUP BY account, currency, month ORDER BY account, currency, month
  ON CONFLICT (account, currency, month) DO UPDATE SET amount = kept.amount + excluded.amount;
  RETURN NULL;
END
$$;
CALL run_after_insert('balance_transactions_kept', 'balance_transactions', 'keep_balance_transactions');

-- Balance transactions of shares without an allocation. If the settlement files are the source of a month, the
-- processor's list only explains payouts. A transaction that was also imported for a wrong account is counted only
-- once.
CREATE VIEW unattributed_balance_transactions AS
SELECT t.*, closed FROM unallocated_balance_transactions JOIN balance_transactions t USING (balance_transaction_id)
WHERE NOT EXISTS (SELECT FROM share_allocations s WHERE s.balance_transaction_id = t.balance_transaction_id)
  AND NOT (
    t.reported_by = 'processor'
    AND EXISTS (SELECT FROM partner_arrangements a
                WHERE a.connected_account_id = t.account AND a.balance_transactions_from = 'settlement_file')
    AND account_source(t.account, to_char(t.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM')) = 'settlement_file')
  AND NOT EXISTS (
    SELECT FROM balance_transactions other
    WHERE other.id = t.id AND other.payment = t.payment AND other.account <> t.account
      AND (SELECT sum(s.amount) FROM share_allocations s
           WHERE s.balance_transaction_id = other.balance_transaction_id) <> 0);

-- Finance's decisions that the unexplained part of a balance transaction needs no further action. If the unexplained
-- amount changes, the balance transaction is open again.
CREATE TABLE balance_transaction_closings (
  balance_transaction_closing_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  balance_transaction_id bigint NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT balance_transaction_closing_of_something CHECK (amount <> 0),
  reason text NOT NULL CONSTRAINT balance_transaction_closing_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT balance_transaction_closed_once UNIQUE (balance_transaction_id, amount),
  CONSTRAINT balance_transaction_closing_in_its_currency FOREIGN KEY (balance_transaction_id, currency)
    REFERENCES balance_transactions (balance_transaction_id, currency)
);
CALL make_fact_of_event('balance_transaction_closings');

CREATE FUNCTION keep_unallocated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  WITH rest AS (
    SELECT t.balance_transaction_id, t.net - coalesce(sum(s.settled_amount), 0) AS unexplained
    FROM balance_transactions t LEFT JOIN share_allocations s USING (balance_transaction_id)
    WHERE t.balance_transaction_id IN (SELECT balance_transaction_id FROM added)
    GROUP BY t.balance_transaction_id
  ), allocated AS (
    DELETE FROM unallocated_balance_transactions u USING rest r
    WHERE r.balance_transaction_id = u.balance_transaction_id AND r.unexplained = 0
  )
  INSERT INTO unallocated_balance_transactions (balance_transaction_id, closed)
  SELECT r.balance_transaction_id, EXISTS (
           SELECT FROM balance_transaction_closings c
           WHERE c.balance_transaction_id = r.balance_transaction_id AND c.amount = r.unexplained)
  FROM rest r WHERE r.unexplained <> 0
  ON CONFLICT (balance_transaction_id) DO UPDATE SET closed = excluded.closed;
  RETURN NULL;
END
$$;
CALL run_after_insert('share_allocations_kept', 'share_allocations', 'keep_unallocated');
CALL run_after_insert('balance_transaction_closings_kept', 'balance_transaction_closings', 'keep_unallocated');

-- Balance transactions that no quote explains, completely or in part. `ended` states why a balance transaction needs no
-- action: `returned` if a payment and its reversals add up to zero in the currency sent, `closed` if finance closed it,
-- or NULL if it is open. Every lookup uses the key of a transaction, so that a month's transactions are found without
-- reading all others.
CREATE VIEW unexplained_balance_transactions AS
WITH rest AS NOT MATERIALIZED (
  SELECT t.*, t.net AS unexplained, t.share_currency AS rest_currency, t.share_amount AS rest_amount
  FROM unattributed_balance_transactions t
  UNION ALL
  SELECT t.*, closed, t.net - s.settled, t.currency, t.net - s.settled
  FROM unallocated_balance_transactions JOIN balance_transactions t USING (balance_transaction_id)
  CROSS JOIN LATERAL (SELECT sum(settled_amount) AS settled FROM share_allocations s
                      WHERE s.balance_transaction_id = t.balance_transaction_id) AS s
  WHERE t.net <> s.settled
)
SELECT r.*,
       CASE WHEN r.closed THEN 'closed'
            WHEN (SELECT sum(own.rest_amount) = 0 AND min(own.rest_currency) = max(own.rest_currency)
                  FROM rest own
                  WHERE own.account = r.account
                    AND coalesce(own.of_payment, own.payment, own.id) = coalesce(r.of_payment, r.payment, r.id))
              THEN 'returned' END AS ended
FROM rest r;

-- What the processor has taken back of our shares of a quote, by reversals and disputes; above zero, or zero.
CREATE FUNCTION shares_taken_back(of_partner text, of_quote text) RETURNS numeric STABLE LANGUAGE sql
RETURN (SELECT coalesce(greatest(-sum(r.amount), 0), 0)
        FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
        WHERE r.partner_id = of_partner COLLATE "C" AND r.quote_id = of_quote COLLATE "C"
          AND m.kind IN ('reversal', 'dispute'));

-- The ledger reversal that was recorded for a reversed transfer.
CREATE TABLE reversal_evidence (
  share_allocation_id bigint PRIMARY KEY REFERENCES share_allocations,
  partner_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  -- The source of the reversal's price. Either the whole remaining amount was reversed, or the settlement file or
  -- finance states the price.
  price_from text NOT NULL
    CONSTRAINT reversal_price_from_known CHECK (price_from IN ('whole', 'settlement_file', 'finance')),
  CONSTRAINT reversal_evidence_once UNIQUE (partner_id, posted_month, entry_id),
  CONSTRAINT reversal_evidence_of_a_row FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows
);
CALL make_fact_of_event('reversal_evidence');

CREATE TABLE missing_shares (
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text NOT NULL CONSTRAINT missing_share_was_to_be_routed CHECK (arrangement = 'connected_account'),
  quote_id text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CONSTRAINT missing_share_positive CHECK (amount > 0),
  PRIMARY KEY (document_id, quote_id),
  CONSTRAINT missing_share_on_its_partners_invoice FOREIGN KEY (document_id, partner_id, month, currency, arrangement)
    REFERENCES documents (document_id, partner_id, month, currency, arrangement)
);
CREATE INDEX missing_shares_of_quote ON missing_shares (partner_id, quote_id);
CALL make_fact('missing_shares');

CREATE VIEW live_missing_shares AS
SELECT * FROM missing_shares b WHERE NOT EXISTS (SELECT FROM voids v WHERE v.document_id = b.document_id);

-- The part of a share that arrived after the share was billed. That part becomes a payment of the partner. A reversal
-- or an undone match reverses that payment. If the reversal or unmatching was wrong, the payment is reinstated.
CREATE TABLE share_payments (
  share_allocation_id bigint NOT NULL,
  payment_id bigint NOT NULL,
  payment_reversal_id bigint REFERENCES payment_reversals,
  currency text COLLATE "C" NOT NULL,
  -- The amount is negative for a negative share.
  amount numeric NOT NULL CONSTRAINT share_payment_of_something CHECK (amount <> 0),
  PRIMARY KEY (share_allocation_id, payment_id),
  CONSTRAINT share_payment_of_a_share FOREIGN KEY (share_allocation_id, currency)
    REFERENCES share_allocations (share_allocation_id, currency),
  CONSTRAINT share_payment_in_its_currency FOREIGN KEY (payment_id, currency)
    REFERENCES payments (payment_id, currency),
  CONSTRAINT share_payment_below_zero_takes_back CHECK (amount > 0 OR payment_reversal_id IS NOT NULL)
);
CREATE INDEX share_payments_of_payment ON share_payments (payment_id);
CALL make_fact_of_event('share_payments');

-- Payouts of the connected accounts, with their contents as listed by the processor, and their bank lines. With payouts
-- and bank lines, a share can be traced from its quote to the bank.

-- A balance transaction is paid out only once. The money of a failed payout becomes a new balance transaction in the
-- next payout.
CREATE TABLE payout_contents (
  balance_transaction_id bigint PRIMARY KEY,
  payout_transaction_id bigint NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  CONSTRAINT payout_content_of_its_account FOREIGN KEY (balance_transaction_id, account, currency)
    REFERENCES balance_transactions (balance_transaction_id, account, currency),
  CONSTRAINT payout_content_of_a_payout FOREIGN KEY (payout_transaction_id, account, currency)
    REFERENCES balance_transactions (balance_transaction_id, account, currency),
  CONSTRAINT payout_content_not_itself CHECK (balance_transaction_id <> payout_transaction_id)
);
CREATE INDEX payout_contents_of_payout ON payout_contents (payout_transaction_id);
CALL make_fact_of_event('payout_contents');

-- Payouts of a connected account that reached the bank. Each payout is settled at once, and its fees are the fees of
-- its contents.
CREATE TABLE account_payouts (
  payout_id bigint PRIMARY KEY REFERENCES payout_settlements,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  -- The payout at the processor. NULL if we receive no reports of the account's payouts, so that finance identified the
  -- payout.
  balance_transaction_id bigint CONSTRAINT account_payout_arrives_once UNIQUE,
  CONSTRAINT account_payout_of_its_account FOREIGN KEY (balance_transaction_id, account, currency)
    REFERENCES balance_transactions (balance_transaction_id, account, currency)
);
CALL make_fact_of_event('account_payouts');

-- Payouts that the processor reported but that were not found in the bank. A failed payout never arrives. `fees` is the
-- amount that the processor kept from the contents. NULL means that the contents are unknown.
CREATE VIEW expected_account_payouts AS
SELECT m.balance_transaction_id, m.account, m.payment AS payout, m.currency, -m.net AS amount, m.occurred_at,
       m.payload->'source'->>'automatic' = 'false' AS is_manual, c.fees, coalesce(c.has_unknown, false) AS has_unknown
FROM balance_transactions m
LEFT JOIN LATERAL (
  SELECT greatest(0, coalesce(-sum(p.net) FILTER (WHERE p.kind = 'other' AND p.type NOT LIKE 'payout%'), 0)) AS fees,
         bool_or(p.kind = 'other' AND p.type NOT LIKE 'payout%' AND p.net > 0) AS has_unknown
  FROM payout_contents c JOIN balance_transactions p USING (balance_transaction_id)
  WHERE c.payout_transaction_id = m.balance_transaction_id HAVING count(*) > 0) AS c ON true
WHERE m.type = 'payout'
  AND NOT EXISTS (SELECT FROM account_payouts a WHERE a.balance_transaction_id = m.balance_transaction_id)
  AND NOT EXISTS (
    SELECT FROM balance_transactions f
    WHERE f.account = m.account AND f.payment = m.payment AND f.type IN ('payout_failure', 'payout_cancel'));

-- The connected account of a payout in the bank, and the processor's id of the payout if known.
CREATE VIEW arrived_account_payouts AS
SELECT a.payout_id, a.account, m.payment AS payout
FROM account_payouts a LEFT JOIN balance_transactions m USING (balance_transaction_id);

CREATE FUNCTION record_account_payouts(payouts json, at timestamptz, event bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO account_payouts (payout_id, account, currency, balance_transaction_id, recorded_at, event_id)
  SELECT payout_id, account, currency, balance_transaction_id, at, event
  FROM json_populate_recordset(NULL::account_payouts, payouts)
$$;

-- The ledger rows that each document bills, with the month that bills them. A month's document bills the rows posted
-- after the previously closed month, up to its own month. An invoice for missing shares bills only our share of each
-- quote, so its amounts for sales and for the partner's cut are empty. A credit note against an invoice bills no rows.
CREATE VIEW billed_rows AS
SELECT d.document_id, d.number, d.month AS billed_month, e.kind, e.partner_id, e.quote_id, e.requote_id, e.reversal_id,
       e.enrollment_id, e.policy_id, e.currency, e.accepted_at, e.spot_price, e.partner_cut, e.invoice_amount,
       e.order_reference, e.cover_from, e.cover_to, e.entry_id, e.recorded_at
FROM documents d
JOIN closed_months m ON m.month = d.month
JOIN ledger_rows e ON e.partner_id = d.partner_id AND e.currency = d.currency AND e.arrangement = d.arrangement
  AND e.posted_month > coalesce(m.previous, '') AND e.posted_month <= m.month
WHERE d.purpose = 'month'
UNION ALL
SELECT d.document_id, d.number, e.posted_month, e.kind, e.partner_id, e.quote_id, NULL, NULL, e.enrollment_id,
       e.policy_id, e.currency, e.accepted_at, NULL, NULL, b.amount, e.order_reference, e.cover_from, e.cover_to,
       e.entry_id, e.recorded_at
FROM documents d
JOIN missing_shares b ON b.document_id = d.document_id
JOIN ledger_rows e ON e.partner_id = b.partner_id AND e.kind = 'quote_accepted' AND own_id(e) = b.quote_id
WHERE d.purpose = 'missing_shares';

-- A text as a cell of CSV that no spreadsheet takes for a formula (`cellOf` in src/text.ts).
CREATE FUNCTION csv_cell(value text) RETURNS text STRICT IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
  SELECT CASE WHEN cell ~ '[,"\r\n]' THEN '"' || replace(cell, '"', '""') || '"' ELSE cell END
  FROM (SELECT CASE WHEN value ~ '^([''\t\r\n]|[ \t\r\n]*[=+@＝＋－＠-])' AND value !~ '^-?\d+(\.\d+)?$'
                    THEN '''' || value ELSE value END AS cell) AS guarded
$$;
