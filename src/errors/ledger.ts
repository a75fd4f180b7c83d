/** Refusals about ledger rows. */
import { define, EXIT } from './definition.ts';

export const LEDGER = {
  row_unknown: define<{ entry_id: number }>(
    EXIT.badInput,
    (f) =>
      `No such ledger row: ${f.entry_id}. The column entry_id of 'reckoner export ledger' lists the ids of all rows.`,
  ),
} as const;
