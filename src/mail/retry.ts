/**
 * When an e-mail is tried again.
 *
 * - The mail server deferred it: it is queued again, any number of times.
 * - The outcome is unknown (the connection was lost, or the program was stopped): it is repeated once, with the same bytes
 *   and the same Message-ID. After a second unknown outcome it is `uncertain`: only the recipient can tell whether it
 *   arrived.
 * - The mail server refused it: it is `failed`, and not tried again.
 *
 * A queued e-mail is tried again after exp(attempts) seconds, where attempts count up to 10, or by the next `deliver`. The
 * worker that tried it leaves it alone for a minute; another may take it before that.
 */
import type { SendOutcome } from './transport.ts';

export interface RetryOptions {
  /** Whether an attempt whose outcome is unknown is repeated once; true by default. */
  readonly repeats?: boolean;
}

/** The status of an e-mail after an attempt; `unclearAttempts` are those before it whose outcome is unknown. */
export function statusAfter(
  outcome: SendOutcome['outcome'],
  unclearAttempts: number,
  { repeats = true }: RetryOptions,
): 'sent' | 'failed' | 'queued' | 'uncertain' {
  const unclear = repeats && unclearAttempts === 0 ? 'queued' : 'uncertain';
  return ({ sent: 'sent', refused: 'failed', deferred: 'queued', unclear } as const)[outcome];
}
