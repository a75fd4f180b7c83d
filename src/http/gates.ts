/**
 * Limits how much of each kind of work a server does at once. Further requests wait, or are refused if that would take
 * too long. Callers take turns, so that none blocks another. Refusals: busy, unavailable.
 */
import { FastifyContextConfig, FastifyReply } from 'fastify';
import { refuse } from '#errors/refusals';

type Bound = Readonly<{
  atOnce: number;
  /** The maximum number of waiting requests of all callers. One caller may have half of these waiting requests. */
  waiting: number;
  /** The longest wait for a turn. By default, LONGEST_WAIT_MS. */
  longestWaitMs?: number;
}>;

/**
 * Every route must name one of these bounds. `fixed` is for responses from memory. The others use database connections:
 * a server has 16 for transactions and 16 for acceptances.
 */
const BOUNDS = {
  fixed: { atOnce: Number.POSITIVE_INFINITY, waiting: 0 },
  pages: { atOnce: 3, waiting: 200 },
  screens: { atOnce: 4, waiting: 200 },
  console: { atOnce: 2, waiting: 100 },
  /** These call the payment processor, which may be slow. */
  checkouts: { atOnce: 4, waiting: 20 },
  files: { atOnce: 2, waiting: 100 },
  /** Until a stream of rows is open (row-streams.ts). */
  rows: { atOnce: 4, waiting: 50 },
  exchanges: { atOnce: 3, waiting: 400 },
  webhooks: { atOnce: 4, waiting: 100 },
  reads: { atOnce: 4, waiting: 400 },
  lists: { atOnce: 2, waiting: 100 },
  changes: { atOnce: 10, waiting: 800 },
  /** The wait and the time to read a file (reading/aside.ts) together are less than LONGEST_ANSWER_MS. */
  uploads: { atOnce: 1, waiting: 20, longestWaitMs: 6_000 },
  // Acceptances share transactions (quotes/acceptances.ts).
  acceptances: { atOnce: 1000, waiting: 1000 },
} as const satisfies Record<string, Bound>;

export type BoundName = keyof typeof BOUNDS;

declare module 'fastify' {
  interface FastifyContextConfig {
    bound?: BoundName;
  }
  interface FastifyRequest {
    /** Called when the response of a request with a slot is ready. */
    onAnswer: (() => void) | null;
  }
}

/**
 * The longest wait for a turn, and time to a response; both shorter than the server's timeout for silent connections.
 */
const LONGEST_WAIT_MS = 15_000;
const LONGEST_ANSWER_MS = 27_000;
const RETRY_SECONDS = 5;

type Waiting = Readonly<{
  start: () => void;
  giveUp: (error: unknown) => void;
}>;

export class Gate {
  readonly #bound: Bound;
  /** The waiting requests by caller. The first caller has the next turn. */
  readonly #waiting = new Map<string, Waiting[]>();
  #running = 0;
  #queued = 0;

  constructor(bound: Bound) {
    this.#bound = bound;
  }

  get running() {
    return this.#running;
  }

  /** Resolves when it is the caller's turn, who then holds a slot until `leave`. */
  async enter(caller: string) {
    if (this.#running < this.#bound.atOnce) this.#running += 1;
    else await this.#turn(caller);
  }

  /** Gives the slot to the first request of the next caller. */
  leave() {
    const [turn] = this.#waiting;
    if (turn === undefined) {
      this.#running -= 1;
      return;
    }
    const [caller, own] = turn;
    const each = own[0] as Waiting;
    this.#waiting.delete(caller);
    this.#waiting.set(caller, own);
    this.#forget(caller, each);
    each.start();
  }

  #turn(caller: string): Promise<void> {
    const own = this.#waiting.get(caller) ?? [];
    const { waiting, longestWaitMs = LONGEST_WAIT_MS } = this.#bound;
    if (this.#queued >= waiting || own.length >= Math.ceil(waiting / 2)) throw busy();
    return new Promise((resolve, reject) => {
      const each: Waiting = {
        start: () => {
          clearTimeout(patience);
          resolve();
        },
        giveUp: reject,
      };
      const patience = setTimeout(() => {
        this.#forget(caller, each);
        reject(busy());
      }, longestWaitMs);
      own.push(each);
      this.#waiting.set(caller, own);
      this.#queued += 1;
    });
  }

  #forget(caller: string, each: Waiting) {
    const own = this.#waiting.get(caller) ?? [];
    own.splice(own.indexOf(each), 1);
    if (own.length === 0) this.#waiting.delete(caller);
    this.#queued -= 1;
  }
}

export const openGates = (): Readonly<Record<BoundName, Gate>> =>
  Object.fromEntries(Object.entries(BOUNDS).map(([name, bound]) => [name, new Gate(bound)])) as Record<BoundName, Gate>;

export const busy = () => refuse('busy', { retry_after: RETRY_SECONDS });

export function boundOf(url: string, config: FastifyContextConfig | undefined): BoundName {
  if (config?.bound === undefined) throw new Error(`${url} has no bound`);
  return config.bound;
}

/**
 * The response of a handler that has entered a gate. It leaves when the response is ready, before the client has read
 * it. If the database does not respond, the caller is refused in time, and the slot stays taken until the work ends.
 */
export function answerWithin(gate: Gate, { request, elapsedTime }: FastifyReply, working: Promise<unknown>) {
  return new Promise((resolve, reject) => {
    let inside = true;
    const leave = () => {
      clearTimeout(late);
      if (inside) gate.leave();
      inside = false;
    };
    const late = setTimeout(() => {
      request.onAnswer = null;
      reject(refuse('unavailable', { retry_after: RETRY_SECONDS }));
    }, LONGEST_ANSWER_MS - elapsedTime).unref();
    request.onAnswer = leave;
    working.then(resolve, reject).finally(leave);
  });
}
