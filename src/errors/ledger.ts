/** Refusals about ledger rows. */
import { define, EXIT } from './definition.ts';

export const LEDGER = {
  import_overtaken: define<Record<string, never>>(
    EXIT.refused,
    () =>
      'Another process recorded a row of this import while it ran, so nothing was imported. ' +
      'Run the import again: it counts that row as a duplicate.',
  ),
  row_unknown: define<{ entry_id: number }>(
    EXIT.badInput,
    (f) =>
      `No such ledger row: ${f.entry_id}. The column entry_id of 'reckoner export ledger' lists the ids of all rows.`,
  ),
} as const;
