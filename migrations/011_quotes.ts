/**
 * Who may call, and what is sold by calling: API clients with their secrets, the keys that sign tokens, quotes and
 * requotes with their prices, and the ledger row that each acceptance recorded. All of it is added to and never changed.
 */
import type { Knex } from 'knex';

const IDENTIFIER = `'^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'`;

// ISO 4217 minor digits other than 2, frozen as they stood when this migration was written.
const MINOR_DIGITS = `CASE
        WHEN currency IN ('BIF','CLP','DJF','GNF','ISK','JPY','KMF','KRW','PYG','RWF','UGX','UYI','VND','VUV','XAF','XOF','XPF') THEN 0
        WHEN currency IN ('BHD','IQD','JOD','KWD','LYD','OMR','TND') THEN 3
        WHEN currency IN ('CLF','UYW') THEN 4
        ELSE 2 END`;

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE api_clients (
      client_id text COLLATE "C" PRIMARY KEY CONSTRAINT client_id_form CHECK (client_id ~ ${IDENTIFIER}),
      partner_id text COLLATE "C" NOT NULL REFERENCES partners,
      created_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events,
      CONSTRAINT client_of_partner UNIQUE (client_id, partner_id)
    )`);
  await knex.raw(`CREATE INDEX api_clients_of_partner ON api_clients (partner_id)`);
  await knex.raw(`CALL make_append_only('api_clients')`);

  // A client's secrets follow each other. Only the last two can be good, and the last but one until the instant that
  // its successor names: three live secrets cannot be written down.
  await knex.raw(`
    CREATE TABLE client_secrets (
      client_id text COLLATE "C" NOT NULL REFERENCES api_clients,
      sequence integer NOT NULL CONSTRAINT client_secret_sequence_positive CHECK (sequence > 0),
      -- Of 256 random bits, so a plain hash is as good as a slow one.
      secret_sha256 text NOT NULL CONSTRAINT client_secret_is_a_hash CHECK (secret_sha256 ~ '^[0-9a-f]{64}$'),
      issued_at timestamptz NOT NULL,
      expires_at timestamptz CONSTRAINT client_secret_expires_after_issue CHECK (expires_at > issued_at),
      previous_sequence integer GENERATED ALWAYS AS (nullif(sequence - 1, 0)) STORED,
      previous_ends_at timestamptz,
      event_id bigint NOT NULL REFERENCES audit_events,
      PRIMARY KEY (client_id, sequence),
      CONSTRAINT client_secret_follows FOREIGN KEY (client_id, previous_sequence) REFERENCES client_secrets,
      CONSTRAINT client_secret_ends_the_one_before CHECK ((sequence = 1) = (previous_ends_at IS NULL))
    )`);
  await knex.raw(`CALL make_append_only('client_secrets')`);

  await knex.raw(`
    CREATE TABLE client_revocations (
      client_id text COLLATE "C" PRIMARY KEY REFERENCES api_clients,
      revoked_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events
    )`);
  await knex.raw(`CALL make_append_only('client_revocations')`);

  // The public halves. A private half lives in the memory of the one process that signs with it and nowhere else, so
  // neither this database nor a backup of it can sign a token.
  await knex.raw(`
    CREATE TABLE signing_keys (
      kid text COLLATE "C" PRIMARY KEY,
      public_jwk jsonb NOT NULL CONSTRAINT signing_key_is_public CHECK (NOT jsonb_exists(public_jwk, 'd')),
      published_at timestamptz NOT NULL,
      signs_until timestamptz NOT NULL,
      -- Until the last token that it may have signed has expired.
      published_until timestamptz NOT NULL,
      CONSTRAINT signing_key_outlives_its_tokens CHECK (published_at < signs_until AND signs_until < published_until)
    )`);
  await knex.raw(`CREATE INDEX signing_keys_in_use ON signing_keys (published_until)`);
  await knex.raw(`CALL make_append_only('signing_keys')`);

  await knex.raw(`
    CREATE TABLE quotes (
      quote_id text COLLATE "C" PRIMARY KEY CONSTRAINT quote_id_form CHECK (quote_id ~ ${IDENTIFIER}),
      partner_id text COLLATE "C" NOT NULL,
      client_id text COLLATE "C" NOT NULL,
      policy_id text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      insured_amount numeric NOT NULL CONSTRAINT quote_insures_something CHECK (insured_amount >= 0),
      -- The terms it was priced on; its requotes are priced on the same.
      price_rate numeric NOT NULL,
      price_minimum numeric NOT NULL,
      partner_cut_rate numeric NOT NULL CONSTRAINT quote_cut_rate_range CHECK (partner_cut_rate BETWEEN 0 AND 1),
      spot_price numeric NOT NULL,
      partner_cut numeric NOT NULL,
      invoice_amount numeric NOT NULL,
      quoted_at timestamptz NOT NULL,
      CONSTRAINT quote_of_partner UNIQUE (quote_id, partner_id),
      CONSTRAINT quote_policy_known FOREIGN KEY (partner_id, policy_id) REFERENCES policies,
      CONSTRAINT quote_client_is_the_partners FOREIGN KEY (client_id, partner_id)
        REFERENCES api_clients (client_id, partner_id),
      CONSTRAINT quote_balance CHECK (spot_price = partner_cut + invoice_amount),
      CONSTRAINT quote_amount_limit CHECK (spot_price < 1e15),
      -- Of what is not negative, round() rounds half up.
      CONSTRAINT quote_price_follows_terms CHECK (
        spot_price = round(greatest(insured_amount * price_rate, price_minimum), ${MINOR_DIGITS})),
      CONSTRAINT quote_cut_follows_terms CHECK (partner_cut = round(spot_price * partner_cut_rate, ${MINOR_DIGITS}))
    )`);
  await knex.raw(`CREATE INDEX quotes_of_partner ON quotes (partner_id, quoted_at)`);
  await knex.raw(`CALL make_append_only('quotes')`);

  // What became of a quote: the ledger row that its acceptance recorded.
  await knex.raw(`
    CREATE TABLE quote_acceptances (
      quote_id text COLLATE "C" PRIMARY KEY,
      partner_id text COLLATE "C" NOT NULL,
      client_id text COLLATE "C" NOT NULL,
      posted_month text COLLATE "C" NOT NULL,
      entry_id bigint NOT NULL,
      CONSTRAINT acceptance_is_of_a_quote FOREIGN KEY (quote_id, partner_id) REFERENCES quotes (quote_id, partner_id),
      CONSTRAINT acceptance_client_is_the_partners FOREIGN KEY (client_id, partner_id)
        REFERENCES api_clients (client_id, partner_id),
      CONSTRAINT acceptance_is_in_the_ledger FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows,
      CONSTRAINT acceptance_entry_once UNIQUE (partner_id, posted_month, entry_id)
    )`);
  await knex.raw(`CALL make_append_only('quote_acceptances')`);

  // A requote is a step from the price accepted last to a new one; steps of a quote are counted from 1.
  await knex.raw(`
    CREATE TABLE requotes (
      requote_id text COLLATE "C" PRIMARY KEY CONSTRAINT requote_id_form CHECK (requote_id ~ ${IDENTIFIER}),
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
      CONSTRAINT requote_step UNIQUE (requote_id, quote_id, partner_id, step),
      CONSTRAINT requote_quote_is_the_partners FOREIGN KEY (quote_id, partner_id) REFERENCES quotes (quote_id, partner_id),
      CONSTRAINT requote_client_is_the_partners FOREIGN KEY (client_id, partner_id)
        REFERENCES api_clients (client_id, partner_id),
      CONSTRAINT requote_balance CHECK (spot_price = partner_cut + invoice_amount),
      CONSTRAINT requote_accepted_balance CHECK (accepted_spot_price = accepted_partner_cut + accepted_invoice_amount),
      CONSTRAINT requote_amount_limit CHECK (spot_price < 1e15),
      CONSTRAINT requote_minor_digits CHECK (
        greatest(scale(trim_scale(spot_price)), scale(trim_scale(partner_cut))) <= ${MINOR_DIGITS}),
      CONSTRAINT requote_never_lower CHECK (
        spot_price >= accepted_spot_price AND partner_cut >= accepted_partner_cut
        AND invoice_amount >= accepted_invoice_amount)
    )`);
  await knex.raw(`CREATE INDEX requotes_of_quote ON requotes (quote_id)`);
  await knex.raw(`CALL make_append_only('requotes')`);

  // One requote is accepted at each step, and each step follows the one before: a price once accepted is never restated.
  await knex.raw(`
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
      CONSTRAINT requote_acceptance_is_in_the_ledger FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows,
      CONSTRAINT requote_acceptance_entry_once UNIQUE (partner_id, posted_month, entry_id)
    )`);
  await knex.raw(`CALL make_append_only('requote_acceptances')`);

  // The answer given under a partner's key; the same request under it gets the same answer again.
  await knex.raw(`
    CREATE TABLE idempotency_keys (
      partner_id text COLLATE "C" NOT NULL REFERENCES partners,
      idempotency_key text COLLATE "C" NOT NULL
        CONSTRAINT idempotency_key_length CHECK (length(idempotency_key) BETWEEN 1 AND 255),
      -- Of method, path and body: another request under the same key is refused.
      request_sha256 text NOT NULL CONSTRAINT idempotency_request_is_a_hash CHECK (request_sha256 ~ '^[0-9a-f]{64}$'),
      status integer NOT NULL,
      answer text NOT NULL,
      recorded_at timestamptz NOT NULL,
      CONSTRAINT idempotency_key_once PRIMARY KEY (partner_id, idempotency_key)
    )`);
  await knex.raw(`CALL make_append_only('idempotency_keys')`);
}
