/**
 * Maps constraints that a user can violate to refusals. Most rules are checked under a lock, so a violation of any
 * other constraint is a bug. The constraints listed here are for cases in which two writers do not wait for each other.
 *
 * `requote_one_accepted_per_step` is not listed, because quotes/accept.ts refuses with requote_stale, which names the
 * requote.
 */
import { Refusal, refuse } from './refusals.ts';

function pauseOf(cause: unknown) {
  const { since, reason } = JSON.parse((cause as { detail: string }).detail) as { since: string; reason: string };
  return { since, reason };
}

export const REFUSAL_OF_CONSTRAINT: ReadonlyMap<string, (cause: unknown) => Refusal> = new Map([
  // An import looks for known rows before it takes the ledger's lock, while a server may accept quotes.
  ['ledger_rows_known_once', (cause) => refuse('import_overtaken', {}, cause)],
  ['not_while_paused', (cause) => refuse('paused', pauseOf(cause), cause)],
]);
