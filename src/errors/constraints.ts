/**
 * The constraints that a user can violate, with the refusal for each. A transaction takes its locks before it checks,
 * so a check almost always comes first, and a violated constraint that is not listed is reported as a bug. The list has
 * the cases that a check cannot decide because two writers do not wait for each other.
 *
 * `requote_one_accepted_per_step` is another. quotes/accept.ts catches it, because requote_stale names the requote.
 */
import { type Refusal, refuse } from './refusals.ts';

/** The pause that the database names in the detail of its error. */
function pauseOf(cause: unknown): { since: string; reason: string } {
  const { since, reason } = JSON.parse((cause as { detail: string }).detail) as { since: string; reason: string };
  return { since, reason };
}

export const REFUSAL_OF_CONSTRAINT: ReadonlyMap<string, (cause: unknown) => Refusal> = new Map([
  // An import looks for known rows before it takes the ledger's lock. A server may accept quotes meanwhile.
  ['ledger_rows_known_once', (cause) => refuse('import_overtaken', {}, cause)],
  // The ledger can be paused at any time.
  ['not_while_paused', (cause) => refuse('paused', pauseOf(cause), cause)],
]);
