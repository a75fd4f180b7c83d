/** Refusals about ledger rows. */
import { EXIT, entry } from './definition.ts';

export const LEDGER = {
  row_unknown: entry<{ entry_id: number }>(
    EXIT.badInput,
    (f) =>
      `There is no row ${f.entry_id} in the ledger. The column entry_id of 'reckoner export ledger' has the numbers.`,
  ),
} as const;
