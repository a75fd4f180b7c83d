/** Shares that name an enrollment and no quote find it without reading the ledger: of connected accounts only. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE INDEX ledger_rows_of_enrollment ON ledger_rows (partner_id, enrollment_id)
      WHERE kind = 'quote_accepted' AND arrangement = 'connected_account' AND enrollment_id IS NOT NULL`);
}
