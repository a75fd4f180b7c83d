/**
 * A letter that may have to be repeated is kept without its drawing, which is kept already: nearly all of its bytes were
 * written twice for each document, and once more to take them away.
 */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE sendings
      -- Where the drawing of its document goes into the message, as base64 in lines. NULL: the message is whole.
      ADD COLUMN drawing_at integer,
      ADD CONSTRAINT sending_drawing_within_message CHECK (
        drawing_at IS NULL OR (message IS NOT NULL AND drawing_at BETWEEN 0 AND length(message)))`);
}
