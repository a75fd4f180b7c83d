/**
 * The port to payment processors. An implementation is one folder, and one line of the list in `processors.ts`. Nothing
 * outside the folder uses the processor's names and formats.
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
  /**
   * The smallest step between amounts in a currency, in major units; undefined if the processor does not accept the
   * currency.
   */
  readonly stepOf: (currency: string) => string | undefined;
  /** The processor's key from the environment; undefined if none is set. */
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

/** Each processor's environment variables (`config/environment.ts`). */
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

/** The processor understood the request and rejected it. The same request would get the same answer. */
export class RefusedByProcessor extends Error {}

/** The processor failed while processing this key, and would only repeat the failure. Check whether a link was made. */
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
  /** The key of an attempt. It is the same in every process for the same document, version and attempt. */
  readonly idempotencyKey: (mark: LinkMark, attempt: number) => string;
  /** How long the same key is certain to give the same link. */
  readonly keyValidHours: number;
  readonly checkout: CheckoutMaker;
  readonly open: (access: ProcessorAccess) => PaymentLinks;
}

/** Calls throw RefusedByProcessor, Unavailable and, for `make`, KeySpent. */
export interface PaymentLinks {
  readonly make: (request: object, idempotencyKey: string) => Promise<MadeLink>;
  /**
   * Active links with that mark, oldest first. `isOlder` states whether a page reaches links made before those sought.
   */
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
      /** All ids of the payment: first the payment intent, if there is one, then charge and session. */
      readonly ids: readonly string[];
      readonly amount: Amount;
      /** The processor's id of the payment link that was paid; only the processor can set it. */
      readonly link: string | undefined;
      /** The processor's id of the checkout session, if the session itself states it. */
      readonly session: string | undefined;
      /**
       * The document named in the metadata. This is a hint and never proof, because platforms and payers can write
       * metadata.
       */
      readonly invoice: string | undefined;
      /** The checkout that the metadata names. This is only a hint, too. */
      readonly checkout: string | undefined;
      /** The installation that the metadata names. This is only a hint, too. */
      readonly installation: string | undefined;
      readonly payer_name: string | undefined;
    }
  /** The total refunded at the time of this event, without failed refunds. */
  | { readonly kind: 'refunded'; readonly ids: readonly string[]; readonly total: Amount }
  /** A refund that failed, so that nothing was given back after all. */
  | {
      readonly kind: 'refund_undone';
      readonly ids: readonly string[];
      readonly refund: string;
      readonly amount: Amount;
      /** When it was made, as an ISO instant. Totals of later events include it. */
      readonly made_at: string;
    }
  | {
      readonly kind: 'disputed';
      readonly ids: readonly string[];
      readonly dispute: string;
      readonly amount: Amount;
      readonly reason: string;
      /** An `inquiry` takes no money yet. */
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
  /** The event changes nothing in the books; states why. A session may have made progress. */
  | { readonly nothing: string; readonly session?: SessionProgress }
  /** The event should report a payment but could not be read. Finance must check. */
  | { readonly manual_review: string };

// --- Balance transactions ---------------------------------------------------------------------------------------------

/**
 * `share`: what a platform sent us. `misrouted`: a charge on our own account, as documented in 7.3.3, of which we
 * receive the rest after its fee to the platform. `reversal`: a reversed transfer. `dispute`: a dispute of a charge on
 * our own account. `other`: not a share of a quote.
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
   * The amount sent, with the sign of `amount`, its currency, and the rate, if the processor converted it to the
   * account's currency. `source_amount` times the rate is `amount`. All three are set, or none is.
   */
  readonly source_currency: string | null;
  readonly source_amount: string | null;
  readonly exchange_rate: string | null;
  /** ISO instant. */
  readonly occurred_at: string;
  /** The payment, refund or dispute on our account that the balance transaction belongs to: `py_…`, `pyr_…`. */
  readonly payment: string | null;
  /** The payment on our account that a reversal or dispute reduces. */
  readonly of_payment: string | null;
  /** The platform's transfer, or its reversal: `tr_…`, `trr_…`. */
  readonly transfer: string | null;
  /** From the metadata of our payment. */
  readonly quote_id: string | null;
  readonly requote_id: string | null;
  readonly enrollment_id: string | null;
  /** The data as sent by the processor. */
  readonly payload: string;
}

export type BalanceTransactionReading =
  | { readonly balance_transaction: BalanceTransaction }
  | { readonly id: string; readonly problem: string };

export interface BalanceTransactionSource {
  /**
   * Reads one balance transaction, its numbers as texts (parseExactJson); `payload` is kept beside it. `live` states
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
  /** The environment variable of an account's secrets, and its value. Without a name, it is that of our own account. */
  readonly secretVariable: (account: string | undefined) => string;
  readonly secrets: (environment: ProcessorSecrets, account: string | undefined) => readonly string[];
  /** The request header that carries the signature, in lower case. */
  readonly header: string;
  /** What is wrong with the signature header alone, so that the body need not be read; undefined if it may be valid. */
  readonly headerProblem: (header: string | undefined, now: Date) => string | undefined;
  /**
   * Whether one of the signatures of these bytes was made with one of our secrets. This is much faster than `problem`.
   */
  readonly isSigned: (body: Buffer, header: string | undefined, secrets: readonly string[]) => boolean;
  /** Why a body was not signed with one of our secrets within the tolerance around `now`; undefined if it was. */
  readonly problem: (
    body: Buffer,
    header: string | undefined,
    secrets: readonly string[],
    now: Date,
  ) => Promise<string | undefined>;
}
