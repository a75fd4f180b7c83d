/** What makes an issued document reach its partner: payment link, drawing, sending; and when each job last ran. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE payment_links (
      document_id bigint PRIMARY KEY REFERENCES documents,
      provider text NOT NULL,
      -- The opaque end of the page's URL. It alone opens the page, so it can't be guessed.
      token text NOT NULL CONSTRAINT payment_link_token_once UNIQUE
        CONSTRAINT payment_link_token_unguessable CHECK (length(token) >= 32),
      url text NOT NULL,
      created_at timestamptz NOT NULL
    )`);
  await knex.raw(`CALL make_append_only('payment_links')`);

  // How to pay, per currency and wording: a document keeps the version it carried.
  await knex.raw(`
    CREATE TABLE instruction_versions (
      instruction_version_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      currency text COLLATE "C" NOT NULL,
      content jsonb NOT NULL,
      first_used_at timestamptz NOT NULL,
      CONSTRAINT instruction_version_once UNIQUE (currency, content)
    )`);
  await knex.raw(`CALL make_append_only('instruction_versions')`);

  await knex.raw(`
    CREATE TABLE document_pdfs (
      document_id bigint PRIMARY KEY REFERENCES documents,
      renderer_version integer NOT NULL,
      -- Names and versions of the libraries that drew it: the bytes depend on them.
      libraries jsonb NOT NULL,
      instruction_version_id bigint REFERENCES instruction_versions,
      instructions_changed boolean NOT NULL,
      sha256 text NOT NULL CONSTRAINT drawing_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
      pdf bytea NOT NULL,
      rendered_at timestamptz NOT NULL,
      CONSTRAINT drawing_is_its_hash CHECK (sha256 = encode(sha256(pdf), 'hex'))
    )`);
  // A PDF is compressed already.
  await knex.raw(`ALTER TABLE document_pdfs ALTER COLUMN pdf SET STORAGE EXTERNAL`);
  await knex.raw(`CALL make_append_only('document_pdfs')`);

  await knex.raw(`
    CREATE TABLE sendings (
      sending_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      document_id bigint NOT NULL REFERENCES documents,
      asked_for text NOT NULL CONSTRAINT sending_asked_for_known CHECK (asked_for IN ('close')),
      message_id text NOT NULL CONSTRAINT sending_message_id_once UNIQUE,
      status text NOT NULL CONSTRAINT sending_status_known
        CHECK (status IN ('queued', 'sending', 'sent', 'held', 'failed', 'uncertain')),
      -- Why it is held, or what the mail server said last.
      reason text,
      recipients text[],
      -- The exact bytes while they may still be needed for a repetition; afterwards their hash tells what was sent.
      message bytea,
      message_sha256 text,
      envelope_from text,
      attempts integer NOT NULL DEFAULT 0,
      -- Attempts whose end nobody saw: one is repeated with the same bytes, a second makes the sending uncertain.
      unclear_attempts integer NOT NULL DEFAULT 0,
      worker bigint,
      queued_at timestamptz NOT NULL,
      attempted_at timestamptz,
      sent_at timestamptz,
      CONSTRAINT sending_in_flight_has_worker CHECK ((status = 'sending') = (worker IS NOT NULL)),
      CONSTRAINT sending_in_flight_has_message CHECK (status <> 'sending' OR (message IS NOT NULL AND recipients IS NOT NULL)),
      CONSTRAINT sending_sent_has_time CHECK ((status = 'sent') = (sent_at IS NOT NULL)),
      CONSTRAINT sending_held_has_reason CHECK (status <> 'held' OR reason IS NOT NULL)
    )`);
  await knex.raw(`ALTER TABLE sendings ALTER COLUMN message SET STORAGE EXTERNAL`);
  await knex.raw(`
    CREATE UNIQUE INDEX sending_one_for_the_close ON sendings (document_id) WHERE asked_for = 'close'`);
  // The latest sending of a document. Without it each look read all sendings: 70 s for a month's preview after ten years.
  await knex.raw(`CREATE INDEX sendings_of_document ON sendings (document_id, sending_id)`);
  await knex.raw(`CREATE INDEX sendings_unfinished ON sendings (status) WHERE status <> 'sent'`);
  await knex.raw(`CALL grant_to_app('SELECT, INSERT, UPDATE', 'sendings')`);
  // A sending moves from state to state; what it is of, its Message-ID and that it was sent are facts.
  await knex.raw(`
    CREATE FUNCTION refuse_rewritten_sending() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF (OLD.document_id, OLD.message_id, OLD.asked_for, OLD.queued_at)
         IS DISTINCT FROM (NEW.document_id, NEW.message_id, NEW.asked_for, NEW.queued_at) OR OLD.status = 'sent' THEN
        RAISE EXCEPTION 'sending % is a fact: send again by a new one', OLD.sending_id
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'sendings_facts_stay';
      END IF;
      RETURN NEW;
    END
    $$`);
  await knex.raw(`
    CREATE TRIGGER sendings_facts_stay BEFORE UPDATE ON sendings
      FOR EACH ROW EXECUTE FUNCTION refuse_rewritten_sending()`);

  // Every worker takes a number and holds an advisory lock by that number while it lives.
  await knex.raw(`CREATE SEQUENCE worker_numbers`);
  await knex.raw(`CALL grant_to_app('UPDATE', 'worker_numbers')`);

  // The queue belongs to the owner; the app only says which documents to look at.
  await knex.raw(`
    CREATE FUNCTION enqueue_deliveries(document_ids bigint[]) RETURNS void LANGUAGE sql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp AS $$
      SELECT count(*) FROM graphile_worker.add_jobs((
        SELECT array_agg(('deliver', json_build_object('document_id', id), NULL, NULL, NULL, 'deliver:' || id, NULL, NULL
                         )::graphile_worker.job_spec ORDER BY id)
        FROM unnest(document_ids) AS id))
      HAVING cardinality(document_ids) > 0
    $$`);

  await knex.raw(`
    CREATE TABLE job_runs (
      job_run_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      job text NOT NULL,
      started_at timestamptz NOT NULL,
      finished_at timestamptz NOT NULL,
      exit_status integer NOT NULL
    )`);
  await knex.raw(`CREATE INDEX job_runs_latest ON job_runs (job, finished_at DESC)`);
  await knex.raw(`CALL grant_to_app('SELECT, INSERT', 'job_runs')`);
}
