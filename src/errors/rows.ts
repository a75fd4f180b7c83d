/** Refusals about held rows, and about the rows of archived months. */
import { SEE, toDo } from '#remedy';
import { failed, refused, says } from './definition.ts';

export const ROWS = {
  no_doubled_rows: refused(
    'No row of {partner_id} repeats another one, so there is nothing to decide. Check the partner.',
  ),
  held_row_unknown: refused('No such held row: {held_row_id}.', SEE.held),
  held_row_decided: refused('Held row {held_row_id} is already {decision}, and a decision is final.', SEE.held),
  held_row_is_reversal: refused(
    'Held row {held_row_id} is a reversal. Nothing was recorded.',
    ({ held_row_id }) => toDo('Grant it', 'reversal.grant', { row: held_row_id }, 'if our share goes back'),
    ({ held_row_id }) => toDo('Refuse it', 'reversal.refuse', { row: held_row_id }, 'if it does not'),
  ),
  held_row_no_reversal: refused('Held row {held_row_id} is not a reversal.', SEE.held),
  held_row_invalid: refused<{ held_row_id: number; reason: string; is_request: boolean }>((f) => {
    const row = String(f.held_row_id);
    return says(
      `Nothing was recorded: held row ${row} cannot be recorded now: ${f.reason}.`,
      f.is_request
        ? toDo('Refuse it', 'reversal.refuse', { row }, 'or grant other amounts')
        : toDo('Discard it', 'rows.discard', { rows: [row] }, 'if it repeats a sale'),
    );
  }),
  archive_store_unknown: refused<{ store: string; known: readonly string[] }>(
    (f) =>
      `No store '${f.store}' is in the settings (known: ${f.known.length === 0 ? 'none' : f.known.join(', ')}). ` +
      'Add it to settings.json under "archive".',
  ),
  archive_too_early: refused<{ month: string; books_closed: boolean; published: boolean; later: number }>(
    (f) =>
      `${f.month} cannot be archived yet: ` +
      (!f.books_closed
        ? 'its books are open.'
        : !f.published
          ? 'a transaction is still recording, so partners do not have all events. Run the command again.'
          : `the last ${f.later} closed months stay in the database.`),
  ),
  archive_incomplete: failed([
    "The rows of {month} in the store '{store}' cannot be read: {reason}. Nothing was shown or recorded. ",
    'Bring the file back from its copy, or the server of the cluster back; every other month is unaffected.',
  ]),
  month_not_archived: refused('{month} is not archived: its rows are in the database.'),
  duckdb_missing: failed([
    'Rows of archived months are Parquet files, which DuckDB reads, and DuckDB is not installed. In the folder of ',
    "Reckoner, run 'npm install --no-save @duckdb/node-api@1.5.6-r.1'.",
  ]),
};
