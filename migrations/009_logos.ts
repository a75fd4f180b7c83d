/** Issuers' logos: kept once by their content, so that an old document is drawn again with the one it had. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE logos (
      sha256 text CONSTRAINT logo_once PRIMARY KEY,
      media_type text NOT NULL CONSTRAINT logo_media_type_known CHECK (media_type IN ('image/png', 'image/jpeg')),
      width integer NOT NULL CONSTRAINT logo_width_positive CHECK (width > 0),
      height integer NOT NULL CONSTRAINT logo_height_positive CHECK (height > 0),
      content bytea NOT NULL,
      first_used_at timestamptz NOT NULL,
      CONSTRAINT logo_is_its_hash CHECK (sha256 = encode(sha256(content), 'hex'))
    )`);
  await knex.raw(`ALTER TABLE logos ALTER COLUMN content SET STORAGE EXTERNAL`);
  await knex.raw(`CALL make_append_only('logos')`);
  // Issuers of before have a text there, which no drawing showed.
  await knex.raw(`
    ALTER TABLE issuer_versions
      ADD COLUMN logo_sha256 text GENERATED ALWAYS AS (content #>> '{logo,sha256}') STORED
        CONSTRAINT issuer_logo_kept REFERENCES logos`);
}
