/** What the stand-in remembers, and what its resources are made of. */
import type { Stripe } from 'stripe';
import type { RequestName } from './requests.ts';

/** A Stripe object as its API shows it. */
export type StripeObject = Record<string, unknown> & { readonly id: string; readonly object: string };

export interface State {
  /** Stripe's clock; a test may move it. */
  now: () => Date;
  /** Where the stand-in listens. */
  url: string;
  /** How many ids it has given. */
  made: number;
  /** Objects by id, in the order in which they were made. */
  readonly paymentLinks: Map<string, StripeObject>;
  readonly sessions: Map<string, StripeObject>;
  /** The metadata of the payment that a session will make. */
  readonly intentMetadata: Map<string, Stripe.Metadata>;
  /** With their source expanded, in the order in which they were made. */
  readonly balanceTransactions: Map<string, StripeObject>;
  /** Which payout paid out a balance transaction. */
  readonly paidOut: Map<string, string>;
  readonly connect: Connect;
  /** An id that no object has yet: `plink_1…`. */
  readonly newId: (prefix: string) => string;
}

/** What it would take along to another machine. */
export type Remembered = Pick<
  State,
  'made' | 'paymentLinks' | 'sessions' | 'intentMetadata' | 'balanceTransactions' | 'connect'
>;

/** That of the installed client. */
export const NEWEST_VERSION = '2026-10-28.endive';

/** What a platform has with its connected accounts. The platform's own account is the empty one. */
export interface Connect {
  readonly accounts: Set<string>;
  /** Accounts that are read with a key of their own. */
  readonly keys: Map<string, string>;
  /** Accounts on which the platform may write nothing. */
  readonly readOnly: Set<string>;
  readonly objects: Map<string, StripeObject>;
  /** The account of each object. */
  readonly owners: Map<string, string>;
  /** Payment methods that a checkout made, and what they do; `pm_card_…` of Stripe's tests are there on every account. */
  readonly paymentMethods: Map<string, { readonly account: string; readonly like: string; readonly customer?: string }>;
  /** Payments as they were at a time in milliseconds, oldest first: search is late and finds an older state. */
  readonly history: Map<string, { readonly at: number; readonly payment: StripeObject }[]>;
  /** When the last searches were made, in milliseconds. */
  searches: number[];
  /** What is available, by account and currency: `acct_1/usd`. */
  readonly balances: Map<string, number>;
  /** Accounts that settle in one currency: `acct_1` → `usd`. Whatever arrives in another is converted. */
  readonly settles: Map<string, string>;
  /** How much of the second currency one of the first is, in major units: `eur/usd` → 1.09. */
  readonly rates: Map<string, number>;
  /** The API version of requests that name none. */
  version: string;
  /** Whether application fees wait before they are available. */
  holdFees: boolean;
  /** The bank refuses refunds at once. */
  failRefunds: boolean;
  readonly heldFees: { readonly currency: string; readonly amount: number }[];
}

const newConnect = (): Connect => ({
  accounts: new Set(),
  keys: new Map(),
  readOnly: new Set(),
  objects: new Map(),
  owners: new Map(),
  paymentMethods: new Map(),
  history: new Map(),
  searches: [],
  balances: new Map(),
  settles: new Map(),
  rates: new Map(),
  version: NEWEST_VERSION,
  holdFees: false,
  failRefunds: false,
  heldFees: [],
});

export function newState(now: () => Date, remembered?: Remembered): State {
  const state: State = {
    now,
    url: '',
    made: 0,
    paymentLinks: new Map(),
    sessions: new Map(),
    intentMetadata: new Map(),
    balanceTransactions: new Map(),
    paidOut: new Map(),
    connect: newConnect(),
    ...remembered,
    newId: (prefix) => {
      state.made += 1;
      return `${prefix}_standin${String(state.made).padStart(8, '0')}`;
    },
  };
  return state;
}

export interface Call {
  readonly state: State;
  /** What stands in the path in the id's place. */
  readonly id: string;
  /** On which account the request is made; empty: the platform's own. */
  readonly account: string;
  /** The day of the API version: `2026-05-27`. */
  readonly version: string;
  readonly params: Record<string, unknown>;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** The id is its first group, where it has one. */
  readonly path: RegExp;
  /** The type that its parameters must have. */
  readonly request: RequestName;
  /** Answers, or throws a StripeRefusal. */
  readonly action: (call: Call) => object;
}

/** An answer of "no", in the form of Stripe's errors. */
export class StripeRefusal extends Error {
  readonly status: number;
  readonly type: string;
  readonly code: string | undefined;
  readonly param: string | undefined;
  readonly decline_code: string | undefined;
  readonly payment_intent: StripeObject | undefined;
  /** The call had begun: its idempotency key repeats the answer. Wrong parameters are found before. */
  readonly begun: boolean;

  constructor(
    status: number,
    message: string,
    more: Partial<Pick<StripeRefusal, 'type' | 'code' | 'param' | 'decline_code' | 'payment_intent' | 'begun'>> = {},
  ) {
    super(message);
    this.status = status;
    this.type = more.type ?? 'invalid_request_error';
    this.code = more.code;
    this.param = more.param;
    this.decline_code = more.decline_code;
    this.payment_intent = more.payment_intent;
    this.begun = more.begun ?? (status === 402 || status >= 500);
  }
}

export function found(objects: ReadonlyMap<string, StripeObject>, id: string, what: string): StripeObject {
  const object = objects.get(id);
  if (object !== undefined) return object;
  throw new StripeRefusal(404, `No such ${what}: '${id}'`, { code: 'resource_missing', param: what, begun: true });
}

/** A page of a list, the newest first, as all of Stripe's lists are. */
export function page(objects: readonly StripeObject[], params: Record<string, unknown>, url: string): object {
  const limit = (params['limit'] as number | undefined) ?? 10;
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) {
    throw new StripeRefusal(400, 'This value must be between 1 and 100.', { param: 'limit' });
  }
  const newestFirst = [...objects].reverse();
  const after = params['starting_after'] as string | undefined;
  const from = after === undefined ? 0 : newestFirst.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && from === 0) {
    throw new StripeRefusal(400, `No such object: '${after}'`, { code: 'resource_missing', param: 'starting_after' });
  }
  const data = newestFirst.slice(from, from + limit);
  return { object: 'list', url, has_more: from + limit < newestFirst.length, data };
}

export function checkMetadata(metadata: unknown): void {
  const pairs = Object.entries((metadata ?? {}) as Record<string, string>);
  if (pairs.length > 50) throw new StripeRefusal(400, 'Metadata can have up to 50 keys.', { param: 'metadata' });
  for (const [key, value] of pairs) {
    if (key.length > 40 || String(value).length > 500) {
      throw new StripeRefusal(400, `Metadata ${key} is too long.`, { param: `metadata[${key}]` });
    }
  }
}
