/**
 * The port to payment processors. An implementation is a folder of its own and one line of the list in `processors.ts`:
 * nothing outside that folder knows how the processor names or writes anything.
 */
import type { Amount } from '../money.ts';

export interface PaymentProcessor {
  /** As settings.json, the webhook's path and the recorded payment links name it. */
  readonly name: string;
  /** How bank statements name its payouts. */
  readonly bankName: string;
  /** The environment variable of its key. */
  readonly keyVariable: string;
  /** The least that can be charged in a currency, in major units; undefined where that is not fixed. */
  readonly leastCharge: (currency: string) => string | undefined;
  /** The step of the amounts that it takes in a currency, in major units; undefined where it takes none. */
  readonly stepOf: (currency: string) => string | undefined;
  /** Its own key from the environment; undefined where none is set. */
  readonly access: (environment: ProcessorSecrets) => ProcessorAccess | undefined;
  readonly paymentLinks: PaymentLinkMaker;
  readonly events: {
    readonly read: (type: string, object: unknown) => EventReading;
    /** The processor's ids of payments that stand in a text. */
    readonly paymentIds: (text: string) => string[];
  };
  readonly balanceTransactions: BalanceTransactionSource;
  readonly webhooks: WebhookVerifier;
}

/** What processors read of the environment (`config/environment.ts`), each its own. */
interface ProcessorSecrets {
  readonly stripeKey: string | undefined;
  readonly stripeBase: string | undefined;
  readonly stripeWebhookSecrets: ReadonlyMap<string, readonly string[]>;
}

/** How a processor is reached: the key, and another server in its place, in sandbox only. */
export interface ProcessorAccess {
  readonly key: string;
  readonly base?: string | undefined;
}

// --- Failures ---------------------------------------------------------------------------------------------------------

/** The processor cannot be asked at present. Try the same again later. */
export class Unavailable extends Error {}

/** The processor understood the request and rejects it: the same request gets the same answer. */
export class RefusedByProcessor extends Error {}

/** The processor failed while it processed this key, and would only repeat that: look whether a link was made. */
export class KeySpent extends Error {}

// --- Payment links ----------------------------------------------------------------------------------------------------

/** What names one version of one document's link, in the link's metadata. */
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
  /** Of the methods in the settings, those that can pay in a currency. */
  readonly methodsFor: (methods: readonly string[], currency: string) => string[];
  /** The request for a link, as it is recorded before the call. */
  readonly request: (order: LinkOrder) => object;
  /** The key of an attempt: the same for the same document, version and attempt, wherever it is tried. */
  readonly idempotencyKey: (mark: LinkMark, attempt: number) => string;
  /** For how long the same key surely gives the same link. */
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
  /** Our page, to which the payer comes back, with or without having paid. */
  readonly backTo: string;
}

interface CheckoutMaker {
  readonly mostInvoices: number;
  /** For how long a session is open. */
  readonly openMinutes: number;
  /** Each amount in the processor's smallest unit, or why they cannot be paid at once. Never rounded. */
  readonly units: (amounts: readonly Amount[]) => { readonly units: readonly number[] } | { readonly reason: string };
  /** The request for a session, as it is recorded before the call. */
  readonly request: (order: CheckoutOrder) => object;
}

/** `ordered`: a bank debit that is paid days later. `failed`: one that did not come about. */
export type CheckoutState = 'open' | 'ordered' | 'paid' | 'failed' | 'expired';

/** Calls throw RefusedByProcessor, Unavailable and, for `make`, KeySpent. */
export interface Checkouts {
  readonly make: (request: object, idempotencyKey: string) => Promise<MadeLink>;
  readonly state: (providerId: string) => Promise<CheckoutState>;
  /** Ends an open session. Gives `expired`, or what became of it before. */
  readonly expire: (providerId: string) => Promise<CheckoutState>;
}

// --- Events -----------------------------------------------------------------------------------------------------------

/** What an event says about payments. */
export type PaymentFact =
  | {
      readonly kind: 'received';
      /** The payment intent first, where there is one, then charge and session: every id it is known by. */
      readonly ids: readonly string[];
      readonly amount: Amount;
      /** The processor's id of the payment link that was paid: the processor itself says it, nobody else can. */
      readonly link: string | undefined;
      /** The processor's id of the checkout session, where the session itself says it. */
      readonly session: string | undefined;
      /** The document that its metadata names. Platforms and payers can write metadata: a hint, never a proof. */
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
      /** When it was made, ISO instant: totals of later events had it. */
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

/** What an event says of a session that is not paid. */
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
 * `share`: what a platform sent us. `misrouted`: a charge on our own account, as 7.3.3 is documented, of which we receive
 * what its fee to the platform leaves. `reversal`: a transfer that was reversed. `dispute`: of a charge on our own
 * account. `other`: no share of a quote.
 */
export type BalanceTransactionKind = 'share' | 'misrouted' | 'reversal' | 'dispute' | 'other';

export interface BalanceTransaction {
  /** The processor's id, unique in its account: `txn_…`. */
  readonly id: string;
  /** As the processor calls it: `payment`, `payment_refund`, `payout`, … */
  readonly type: string;
  readonly kind: BalanceTransactionKind;
  readonly currency: string;
  /** In major units; net = amount − fee is the change of the balance. */
  readonly amount: string;
  readonly fee: string;
  readonly net: string;
  /**
   * What was sent, where the processor converted it to the currency of the account, with the sign of `amount`; and the
   * rate: `source_amount` times the rate is `amount`. All three or none.
   */
  readonly source_currency: string | null;
  readonly source_amount: string | null;
  readonly exchange_rate: string | null;
  /** ISO instant. */
  readonly occurred_at: string;
  /** The payment, refund or dispute on our account that it belongs to: `py_…`, `pyr_…`. */
  readonly payment: string | null;
  /** The payment on our account that a reversal or dispute takes from. */
  readonly of_payment: string | null;
  /** The platform's transfer, or its reversal: `tr_…`, `trr_…`. */
  readonly transfer: string | null;
  /** From the metadata of our payment. */
  readonly quote_id: string | null;
  readonly requote_id: string | null;
  readonly enrollment_id: string | null;
  /** As the processor sent it. */
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
  /** Those of an account since a time, or those that a payout paid out, page by page. Throws Unavailable. */
  readonly list: (
    access: ProcessorAccess,
    which: { readonly since: Date | null } | { readonly payout: string },
    live: boolean,
  ) => AsyncIterable<readonly BalanceTransactionReading[]>;
}

// --- Webhooks ---------------------------------------------------------------------------------------------------------

export interface WebhookVerifier {
  /** The environment variable of an account's secrets, and what it holds; without a name: of our own account. */
  readonly secretVariable: (account: string | undefined) => string;
  readonly secrets: (environment: ProcessorSecrets, account: string | undefined) => readonly string[];
  /** The request header that carries the signature, in lower case. */
  readonly header: string;
  /** What is wrong with the signature's header alone, so that a body need not be read; undefined if it may be right. */
  readonly headerProblem: (header: string | undefined, now: Date) => string | undefined;
  /** Whether one of the signatures is by one of our secrets over these bytes, at a fraction of what `problem` takes. */
  readonly isSigned: (body: Buffer, header: string | undefined, secrets: readonly string[]) => boolean;
  /**
   * Why a body was not signed with one of our secrets within the tolerance around `now`; undefined where it was.
   */
  readonly problem: (
    body: Buffer,
    header: string | undefined,
    secrets: readonly string[],
    now: Date,
  ) => Promise<string | undefined>;
}
