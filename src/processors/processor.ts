/**
 * The port to payment processors. An implementation is one folder and one line of the list in `processors.ts`: nothing
 * outside the folder knows the processor's names and formats.
 */
import type { Amount } from '../money.ts';

export interface PaymentProcessor {
  /** Its name in settings.json, the webhook's path and the recorded payment links. */
  readonly name: string;
  /** The name of its payouts on bank statements. */
  readonly bankName: string;
  /** The environment variable of its key. */
  readonly keyVariable: string;
  /** The minimum charge in a currency, in major units; undefined if not fixed. */
  readonly leastCharge: (currency: string) => string | undefined;
  /** The step of amounts in a currency, in major units; undefined if it does not accept the currency. */
  readonly stepOf: (currency: string) => string | undefined;
  /** Its own key from the environment; undefined if none is set. */
  readonly access: (environment: ProcessorSecrets) => ProcessorAccess | undefined;
  readonly paymentLinks: PaymentLinkMaker;
  readonly events: {
    readonly read: (type: string, object: unknown) => EventReading;
    /** The processor's payment ids in a text. */
    readonly paymentIds: (text: string) => string[];
  };
  readonly balanceTransactions: BalanceTransactionSource;
  readonly webhooks: WebhookVerifier;
}

/** Each processor's variables of the environment (`config/environment.ts`). */
interface ProcessorSecrets {
  readonly stripeKey: string | undefined;
  readonly stripeBase: string | undefined;
  readonly stripeWebhookSecrets: ReadonlyMap<string, readonly string[]>;
}

/** Access to a processor: the key and, in sandbox only, a server that replaces it. */
export interface ProcessorAccess {
  readonly key: string;
  readonly base?: string | undefined;
}

// --- Failures ---------------------------------------------------------------------------------------------------------

/** The processor is unavailable. Retry later. */
export class Unavailable extends Error {}

/** The processor understood the request and rejects it: the same request gets the same answer. */
export class RefusedByProcessor extends Error {}

/** The processor failed while processing this key, and would only repeat the failure: check whether a link was made. */
export class KeySpent extends Error {}

// --- Payment links ----------------------------------------------------------------------------------------------------

/** Identifies one version of one document's link, in the link's metadata. */
export interface LinkMark {
  readonly installation: string;
  readonly invoice: string;
  readonly version: number;
}

export interface LinkOrder extends LinkMark {
  readonly partnerId: string;
  readonly month: string;
  readonly currency: string;
  /** In the smallest unit, see `units`. */
  readonly unitAmount: number;
  readonly methods: readonly string[];
}

export interface MadeLink {
  readonly providerId: string;
  readonly url: string;
}

interface PaymentLinkMaker {
  /** A positive amount in the processor's smallest unit, or why it cannot be charged. Never rounded. */
  readonly units: (amount: Amount) => { readonly unitAmount: number } | { readonly reason: string };
  /** The methods in the settings that can pay in a currency. */
  readonly methodsFor: (methods: readonly string[], currency: string) => string[];
  /** The request for a link, as recorded before the call. */
  readonly request: (order: LinkOrder) => object;
  /** The key of an attempt: the same for the same document, version and attempt in any process. */
  readonly idempotencyKey: (mark: LinkMark, attempt: number) => string;
  /** How long the same key certainly gives the same link. */
  readonly keyValidHours: number;
  readonly checkout: CheckoutMaker;
  readonly open: (access: ProcessorAccess) => PaymentLinks;
}

/** Calls throw RefusedByProcessor, Unavailable and, for `make`, KeySpent. */
export interface PaymentLinks {
  readonly make: (request: object, idempotencyKey: string) => Promise<MadeLink>;
  /** Active links with that mark, oldest first. `isOlder` says whether a page reaches links made before those sought. */
  readonly find: (mark: LinkMark, isOlder: (providerIds: string[]) => Promise<boolean>) => Promise<MadeLink[]>;
  /** Deactivates a link and expires the sessions that it opened; returns their number. Safe to repeat. */
  readonly close: (providerId: string) => Promise<number>;
  readonly checkouts: Checkouts;
}

// --- Checkouts: several invoices paid at once -------------------------------------------------------------------------

export interface CheckoutOrder {
  readonly installation: string;
  /** The name of the checkout, in the session's metadata. */
  readonly reference: string;
  readonly partnerId: string;
  readonly currency: string;
  readonly lines: readonly { readonly number: string; readonly unitAmount: number }[];
  readonly methods: readonly string[];
  readonly expiresAt: Date;
  /** Our page, to which the payer returns after paying or canceling. */
  readonly backTo: string;
}

interface CheckoutMaker {
  readonly mostInvoices: number;
  /** How long a session is open. */
  readonly openMinutes: number;
  /** Each amount in the processor's smallest unit, or why they cannot be paid at once. Never rounded. */
  readonly units: (amounts: readonly Amount[]) => { readonly units: readonly number[] } | { readonly reason: string };
  /** The request for a session, as recorded before the call. */
  readonly request: (order: CheckoutOrder) => object;
}

/** `ordered`: a bank debit, paid days later. `failed`: a debit that failed. */
export type CheckoutState = 'open' | 'ordered' | 'paid' | 'failed' | 'expired';

/** Calls throw RefusedByProcessor, Unavailable and, for `make`, KeySpent. */
export interface Checkouts {
  readonly make: (request: object, idempotencyKey: string) => Promise<MadeLink>;
  readonly state: (providerId: string) => Promise<CheckoutState>;
  /** Ends an open session. Returns `expired`, or its earlier outcome. */
  readonly expire: (providerId: string) => Promise<CheckoutState>;
}

// --- Events -----------------------------------------------------------------------------------------------------------

/** The facts about payments in an event. */
export type PaymentFact =
  | {
      readonly kind: 'received';
      /** All of its ids: the payment intent first, if there is one, then charge and session. */
      readonly ids: readonly string[];
      readonly amount: Amount;
      /** The processor's id of the payment link that was paid; only the processor can set it. */
      readonly link: string | undefined;
      /** The processor's id of the checkout session, if the session itself states it. */
      readonly session: string | undefined;
      /** The document named by its metadata. Platforms and payers can write metadata: a hint, never a proof. */
      readonly invoice: string | undefined;
      /** The checkout that its metadata names, a hint as well. */
      readonly checkout: string | undefined;
      /** The installation that its metadata names, a hint as well. */
      readonly installation: string | undefined;
      readonly payer_name: string | undefined;
    }
  /** The total refunded at the time of this event, without what failed. */
  | { readonly kind: 'refunded'; readonly ids: readonly string[]; readonly total: Amount }
  /** A refund that gave nothing back after all. */
  | {
      readonly kind: 'refund_undone';
      readonly ids: readonly string[];
      readonly refund: string;
      readonly amount: Amount;
      /** When it was made, ISO instant: totals of later events include it. */
      readonly made_at: string;
    }
  | {
      readonly kind: 'disputed';
      readonly ids: readonly string[];
      readonly dispute: string;
      readonly amount: Amount;
      readonly reason: string;
      /** An `inquiry` takes nothing yet. */
      readonly state: 'inquiry' | 'open' | 'won' | 'lost' | 'closed';
    };

/** The facts about an unpaid session in an event. */
export interface SessionProgress {
  readonly id: string;
  /** The processor's id of the payment link by which it was opened. */
  readonly link: string | undefined;
  readonly state: 'ordered' | 'failed' | 'expired';
}

export type EventReading =
  | { readonly facts: readonly PaymentFact[] }
  /** It changes nothing in the books, and why. A session may have got on meanwhile. */
  | { readonly nothing: string; readonly session?: SessionProgress }
  /** It should report a payment and could not be read: finance must look. */
  | { readonly manual_review: string };

// --- Balance transactions ---------------------------------------------------------------------------------------------

/**
 * `share`: what a platform sent us. `misrouted`: a charge on our own account, as documented in 7.3.3, of which we
 * receive the rest after its fee to the platform. `reversal`: a reversed transfer. `dispute`: of a charge on our own
 * account. `other`: not a share of a quote.
 */
export type BalanceTransactionKind = 'share' | 'misrouted' | 'reversal' | 'dispute' | 'other';

export interface BalanceTransaction {
  /** The processor's id, unique in its account: `txn_…`. */
  readonly id: string;
  /** The processor's name for it: `payment`, `payment_refund`, `payout`, … */
  readonly type: string;
  readonly kind: BalanceTransactionKind;
  readonly currency: string;
  /** In major units; net = amount − fee is the change of the balance. */
  readonly amount: string;
  readonly fee: string;
  readonly net: string;
  /**
   * The amount sent, if the processor converted it to the account's currency, with the sign of `amount`; and the rate:
   * `source_amount` times the rate is `amount`. All three or none.
   */
  readonly source_currency: string | null;
  readonly source_amount: string | null;
  readonly exchange_rate: string | null;
  /** ISO instant. */
  readonly occurred_at: string;
  /** The payment, refund or dispute on our account that it belongs to: `py_…`, `pyr_…`. */
  readonly payment: string | null;
  /** The payment on our account that a reversal or dispute reduces. */
  readonly of_payment: string | null;
  /** The platform's transfer, or its reversal: `tr_…`, `trr_…`. */
  readonly transfer: string | null;
  /** From the metadata of our payment. */
  readonly quote_id: string | null;
  readonly requote_id: string | null;
  readonly enrollment_id: string | null;
  /** As sent by the processor. */
  readonly payload: string;
}

export type BalanceTransactionReading =
  | { readonly balance_transaction: BalanceTransaction }
  | { readonly id: string; readonly problem: string };

export interface BalanceTransactionSource {
  /**
   * Reads one balance transaction, its numbers as texts (parseExactJson); `payload` is kept beside it. `live` says
   * whether real or test money is expected.
   */
  readonly read: (value: unknown, payload: string, live: boolean) => BalanceTransactionReading;
  /** The balance transactions of an account since a time, or those of a payout, page by page. Throws Unavailable. */
  readonly list: (
    access: ProcessorAccess,
    which: { readonly since: Date | null } | { readonly payout: string },
    live: boolean,
  ) => AsyncIterable<readonly BalanceTransactionReading[]>;
}

// --- Webhooks ---------------------------------------------------------------------------------------------------------

export interface WebhookVerifier {
  /** The environment variable of an account's secrets, and its value; without a name: our own account's. */
  readonly secretVariable: (account: string | undefined) => string;
  readonly secrets: (environment: ProcessorSecrets, account: string | undefined) => readonly string[];
  /** The request header that carries the signature, in lower case. */
  readonly header: string;
  /** What is wrong with the signature header alone, so that the body need not be read; undefined if it may be valid. */
  readonly headerProblem: (header: string | undefined, now: Date) => string | undefined;
  /** Whether one of the signatures over these bytes was made with one of our secrets; much faster than `problem`. */
  readonly isSigned: (body: Buffer, header: string | undefined, secrets: readonly string[]) => boolean;
  /** Why a body was not signed with one of our secrets within the tolerance around `now`; undefined if it was. */
  readonly problem: (
    body: Buffer,
    header: string | undefined,
    secrets: readonly string[],
    now: Date,
  ) => Promise<string | undefined>;
}
