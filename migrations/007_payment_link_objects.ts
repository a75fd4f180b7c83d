/**
 * Links that a payment processor made: what was asked for is written before the call, what came of it after, and that
 * a link was switched off after that. A document's links are versions: a new amount is a new link.
 */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE payment_link_intents (
      document_id bigint NOT NULL REFERENCES documents,
      version integer NOT NULL CONSTRAINT payment_link_version_positive CHECK (version > 0),
      provider text NOT NULL CONSTRAINT payment_link_provider_known CHECK (provider IN ('stripe')),
      amount numeric NOT NULL CONSTRAINT payment_link_amount_positive CHECK (amount > 0),
      currency text COLLATE "C" NOT NULL,
      -- What is asked for, whole: a processor gives the first answer again only to the very same request.
      request jsonb NOT NULL,
      intended_at timestamptz NOT NULL,
      -- Each version follows a closed one, so a document never has two links open.
      follows integer GENERATED ALWAYS AS (nullif(version - 1, 0)) STORED,
      PRIMARY KEY (document_id, version)
    )`);
  await knex.raw(`CALL make_append_only('payment_link_intents')`);

  // Each key is asked under at most until the processor forgets it, or answers with a failure of its own.
  await knex.raw(`
    CREATE TABLE payment_link_attempts (
      document_id bigint NOT NULL,
      version integer NOT NULL,
      attempt integer NOT NULL CONSTRAINT payment_link_attempt_positive CHECK (attempt > 0),
      idempotency_key text NOT NULL CONSTRAINT payment_link_key_once UNIQUE
        CONSTRAINT payment_link_key_short CHECK (length(idempotency_key) <= 255),
      attempted_at timestamptz NOT NULL,
      PRIMARY KEY (document_id, version, attempt),
      CONSTRAINT payment_link_attempt_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents
    )`);
  await knex.raw(`CALL make_append_only('payment_link_attempts')`);

  await knex.raw(`
    CREATE TABLE payment_link_objects (
      document_id bigint NOT NULL,
      version integer NOT NULL,
      provider_id text NOT NULL CONSTRAINT payment_link_object_once UNIQUE,
      url text NOT NULL,
      -- Found at the processor after an attempt whose answer was lost.
      found boolean NOT NULL,
      created_at timestamptz NOT NULL,
      PRIMARY KEY (document_id, version),
      CONSTRAINT payment_link_object_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents
    )`);
  await knex.raw(`CALL make_append_only('payment_link_objects')`);

  // Written once the processor has confirmed it; `refused` and `not_made` have no object. `used_up`: its one session was
  // completed, but no money came of it, as when a debit fails days later; the next version takes the next try.
  await knex.raw(`
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
    )`);
  await knex.raw(`CALL make_append_only('payment_link_closings')`);
  // Deferrable for a restore: intents and closings name each other.
  await knex.raw(`
    ALTER TABLE payment_link_intents ADD CONSTRAINT payment_link_follows_a_closed_one FOREIGN KEY (document_id, follows)
      REFERENCES payment_link_closings (document_id, version) DEFERRABLE`);

  // Why a document's link is not as it should be at present. Working state, like a sending's: it goes with its cause.
  await knex.raw(`
    CREATE TABLE payment_link_waits (
      document_id bigint PRIMARY KEY REFERENCES documents,
      -- limit: the processor takes no such amount; refused: it refused the request; unavailable: it can't be asked now.
      kind text NOT NULL CONSTRAINT payment_link_wait_known CHECK (kind IN ('limit', 'refused', 'unavailable')),
      reason text NOT NULL,
      -- What was wanted when this was noted: another amount or other methods are tried at once.
      wanted text NOT NULL,
      since timestamptz NOT NULL DEFAULT now(),
      noted_at timestamptz NOT NULL DEFAULT now()
    )`);
  await knex.raw(`CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'payment_link_waits')`);
}
