/**
 * Idempotency keys of Stripe. A key repeats the answer of its first call for a day. If the first answer is a refusal or
 * a failure of Stripe, only a different key can continue. The repeated answers determine the next key, so all processes
 * use the same next key. Source: Stripe, "Idempotent requests", "Advanced error handling".
 */
import { Done, SplitUnfinished } from './unfinished.ts';

/** A request that has failed this often within a day needs a person's attention. */
const MOST_ATTEMPTS = 20;

/**
 * Creates an object with the first key whose answer is not a repeated failure. `find` searches for an object that a
 * failed call may have created. A first failure is thrown. On the next call, the same failure is a repeated failure.
 */
export async function atMostOnce<Made extends object>(
  key: string,
  {
    make,
    find,
    done,
    after = 0,
  }: Readonly<{
    make: (key: string) => Promise<Made>;
    find: () => Promise<Made | undefined>;
    done: readonly Done[];
    /** The last attempt whose result is not usable. */
    after?: number;
  }>,
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

type Answered = Readonly<{
  headers?: Readonly<Record<string, unknown>> | undefined;
}>;

const isRepeated = (answer: Answered | undefined) => answer?.headers?.['idempotent-replayed'] === 'true';

function isOfOtherParameters(error: unknown) {
  const { type, statusCode } = error as { type?: unknown; statusCode?: unknown };
  return type === 'StripeIdempotencyError' && statusCode === 400;
}
