/**
 * Calls Stripe's API at the allowed pace. Each answer means success, a permanent refusal (`RefusedByProcessor`), or a
 * failure after which the caller may try again (`Unavailable`, `KeySpent`).
 */
import Stripe from 'stripe';
import { Pace } from '#processors/pace';
import { KeySpent, ProcessorAccess, RefusedByProcessor, Unavailable } from '#processors/processor';
import { openStripe, withoutKey } from './client.ts';

/** Stripe allows 25 requests a second per endpoint. Half of the allowed requests are left for other machines. */
const CALLS_PER_SECOND = 12;
/** At most this number of calls fail when Stripe becomes unavailable. */
const CALLS_AT_ONCE = 4;
const TIMEOUT_MILLISECONDS = 15_000;
/** The pause after a failure of Stripe or of the network. For comparison, a worker looks for work once a minute. */
const LEFT_ALONE_MILLISECONDS = 30_000;
const RATE_LIMITED_TRIES = 5;

export class StripeCalls {
  private readonly access: ProcessorAccess;
  private readonly pace = new Pace(CALLS_PER_SECOND, CALLS_AT_ONCE);
  private client: Promise<Stripe> | undefined;

  constructor(access: ProcessorAccess) {
    this.access = access;
  }

  /** Makes a call. If Stripe asks to slow down, the call waits and is repeated. */
  async call<Result>(work: (stripe: Stripe) => Promise<Result>) {
    const { pace } = this;
    // The library must not retry: only this class knows the effect of a repeated call.
    this.client ??= openStripe(this.access, { maxNetworkRetries: 0, timeout: TIMEOUT_MILLISECONDS });
    const client = await this.client;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await pace.turn(async () => {
        try {
          return { result: await work(client) };
        } catch (error) {
          const failure = await failureOf(error);
          if (failure.kind === 'slow_down' && attempt < RATE_LIMITED_TRIES) {
            pace.slowDown(failure.retryAfterMilliseconds ?? 500 * 2 ** attempt);
            return undefined;
          }
          if (failure.kind === 'refused') throw new RefusedByProcessor(failure.reason, { cause: error });
          if (failure.kind === 'busy') throw new Unavailable(failure.reason, { cause: error });
          if (failure.kind === 'failed') throw new KeySpent(failure.reason, { cause: error });
          pace.leaveAlone(LEFT_ALONE_MILLISECONDS, failure.reason);
          throw new Unavailable(failure.reason, { cause: error });
        }
      });
      if (answer !== undefined) return answer.result;
    }
  }

  /** Makes a call without our key. A failure of such a call does not show whether a link was created. */
  ask<Result>(work: (stripe: Stripe) => Promise<Result>) {
    return this.call(work).catch((error: unknown) => {
      if (!(error instanceof KeySpent)) throw error;
      this.pace.leaveAlone(LEFT_ALONE_MILLISECONDS, error.message);
      throw new Unavailable(error.message, { cause: error });
    });
  }
}

type Failure =
  | Readonly<{ kind: 'slow_down'; reason: string; retryAfterMilliseconds: number | undefined }>
  | Readonly<{ kind: 'refused' | 'busy' | 'failed' | 'away'; reason: string }>;

/** Classifies an error of the library. Other errors are bugs and are rethrown. */
async function failureOf(error: unknown): Promise<Failure> {
  const { default: StripeClient } = await import('stripe');
  const { StripeError, StripeConnectionError, StripeAuthenticationError, StripePermissionError } = StripeClient.errors;
  if (!(error instanceof StripeError)) throw error;
  const status = error.statusCode ?? 0;
  const reason = `Stripe: ${error.message}`;
  if (error instanceof StripeConnectionError)
    return { kind: 'away', reason: `Stripe cannot be reached${causeOf(error)}` };
  if (error instanceof StripeAuthenticationError || error instanceof StripePermissionError) {
    return { kind: 'away', reason: `Stripe refuses STRIPE_SECRET_KEY: ${withoutKey(error.message)}` };
  }
  if (status === 429) {
    const seconds = Number(error.headers?.['retry-after']);
    const given = Number.isFinite(seconds) && seconds > 0 && seconds <= 60;
    return { kind: 'slow_down', reason, retryAfterMilliseconds: given ? seconds * 1000 : undefined };
  }
  // The first request with this key is still in progress.
  if (status === 409) return { kind: 'busy', reason };
  // A key that was used for a different request cannot be used any more.
  if (status >= 500 || error.type === 'StripeIdempotencyError') return { kind: 'failed', reason };
  return { kind: 'refused', reason };
}

/** Returns the error code of the connection, such as ` (ECONNREFUSED)`, which the library's message lacks. */
function causeOf({ detail }: { readonly detail?: unknown }) {
  const code = (detail as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? ` (${code})` : '';
}
