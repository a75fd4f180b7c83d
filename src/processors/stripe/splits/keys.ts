/**
 * Idempotency keys of Stripe. Once a call has begun, its key repeats the answer for a day. That answer may be a
 * payment, but also a refusal or a failure of Stripe's own, after which only a different key can continue. The repeated
 * answers alone determine that key, so every process arrives at the same one. Source: Stripe, "Idempotent requests",
 * "Advanced error handling".
 */
import { type Done, SplitUnfinished } from './unfinished.ts';

/** If one request fails this often within a day, a person must look at it. */
const MOST_ATTEMPTS = 20;

/**
 * Makes an object under the first key whose answer is not a repeated failure. `find` searches for what such a failure
 * may have made anyway. A first failure is thrown; on the next call, it is a repeated one.
 */
export async function atMostOnce<Made extends object>(
  key: string,
  {
    make,
    find,
    done,
    after = 0,
  }: {
    readonly make: (key: string) => Promise<Made>;
    readonly find: () => Promise<Made | undefined>;
    readonly done: readonly Done[];
    /** Attempts whose result is no longer usable. */
    readonly after?: number;
  },
): Promise<{ made: Made; known: boolean; attempt: number }> {
  for (let attempt = after + 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    try {
      const made = await make(attempt === 1 ? key : `${key}:${attempt}`);
      return { made, known: isRepeated((made as { lastResponse?: Answered }).lastResponse), attempt };
    } catch (error) {
      if (isOfOtherParameters(error)) {
        const why = `the key ${key} was used for other parameters within a day: make the same plan as before`;
        throw new SplitUnfinished('request_differs', why, { done, cause: error });
      }
      if (!isRepeated(error as Answered)) throw error;
    }
    const made = await find();
    if (made !== undefined) return { made, known: true, attempt };
  }
  const why = `${MOST_ATTEMPTS} attempts at ${key} failed within a day: see Stripe's request log, and try again tomorrow`;
  throw new SplitUnfinished('keys_spent', why, { done });
}

interface Answered {
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
}

/** The client keeps the headers of answers and of errors. */
const isRepeated = (answer: Answered | undefined): boolean => answer?.headers?.['idempotent-replayed'] === 'true';

function isOfOtherParameters(error: unknown): boolean {
  const { type, statusCode } = error as { type?: unknown; statusCode?: unknown };
  return type === 'StripeIdempotencyError' && statusCode === 400;
}
