/**
 * Decides when an e-mail is retried.
 *
 * - If the mail server deferred the e-mail, it is queued again, any number of times.
 * - If the outcome is unknown (the connection was lost, or the program was stopped), the e-mail is repeated once, with
 * the same bytes and Message-ID. After a second unknown outcome, the e-mail is `uncertain`.
 * - If the mail server refused the e-mail, it is `failed`, and not retried.
 *
 * A queued e-mail is retried after exp(attempts) seconds, where attempts count up to 10, or by the next `deliver`. The
 * worker that tried the e-mail does not try it again for a minute, but other workers may take it sooner.
 */
import { SendOutcome } from './transport.ts';

export type RetryOptions = Readonly<{
  /** Whether an attempt with an unknown outcome is repeated once. */
  repeats?: boolean;
}>;

/**
 * The status that an e-mail has after an attempt. `unclearAttempts` is the number of earlier attempts with an unknown
 * outcome.
 */
export function statusAfter(
  outcome: SendOutcome['outcome'],
  unclearAttempts: number,
  { repeats = true }: RetryOptions,
): 'sent' | 'failed' | 'queued' | 'uncertain' {
  const unclear = repeats && unclearAttempts === 0 ? 'queued' : 'uncertain';
  return ({ sent: 'sent', refused: 'failed', deferred: 'queued', unclear } as const)[outcome];
}
