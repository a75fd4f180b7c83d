/**
 * The port to payment processors. A processor is one folder, and one entry in the list of `processors.ts`. No code
 * outside the folder uses the processor's names and formats.
 */
import { Amount } from '#money';

export type PaymentProcessor = Readonly<{
  /** The name in settings.json, in the webhook's path and in recorded payment links. */
  name: string;
  bankName: string;
  keyVariable: string;
  /** The minimum charge, in major units. Undefined if no minimum is fixed. */
  leastCharge: (currency: string) => string | undefined;
  /** The smallest step between two amounts, in major units. Undefined if the processor does not accept the currency. */
  stepOf: (currency: string) => string | undefined;
  access: (environment: ProcessorSecrets) => ProcessorAccess | undefined;
  paymentLinks: PaymentLinkMaker;
  events: Readonly<{
    read: (type: string, object: unknown) => EventReading;
    paymentIds: (text: string) => string[];
  }>;
  balanceTransactions: BalanceTransactionSource;
  webhooks: WebhookVerifier;
}>;

type ProcessorSecrets = Readonly<{
  stripeKey: string | undefined;
  stripeBase: string | undefined;
  stripeWebhookSecrets: ReadonlyMap<string, readonly string[]>;
}>;

/** The key for a processor's API. In a sandbox, `base` may be the URL of a server that stands in for the processor. */
export type ProcessorAccess = Readonly<{
  key: string;
  base?: string | undefined;
}>;

// --- Failures ---

export class Unavailable extends Error {}

/** The processor rejected the request. The processor would also reject a repeated request. */
export class RefusedByProcessor extends Error {}

/**
 * The processor failed with this idempotency key, and would repeat the same failure. The caller must check whether a
 * link was created.
 */
export class KeySpent extends Error {}

// --- Payment links ---

/** Identifies one version of a document's link, in the metadata of the link. */
export type LinkMark = Readonly<{
  installation: string;
  invoice: string;
  version: number;
}>;

export type LinkOrder = LinkMark &
  Readonly<{
    partnerId: string;
    month: string;
    currency: string;
    /** The amount in the smallest unit of the currency, see `units`. */
    unitAmount: number;
    methods: readonly string[];
  }>;

export type MadeLink = Readonly<{
  providerId: string;
  url: string;
}>;

type PaymentLinkMaker = Readonly<{
  /** Converts an amount without rounding, or gives the reason why it cannot be charged. */
  units: (amount: Amount) => { readonly unitAmount: number } | { readonly reason: string };
  methodsFor: (methods: readonly string[], currency: string) => string[];
  /** The request is recorded before the call to the processor. */
  request: (order: LinkOrder) => object;
  /**
   * Returns the idempotency key of an attempt. All processes use the same key for the same document, version and
   * attempt.
   */
  idempotencyKey: (mark: LinkMark, attempt: number) => string;
  /** The time in which the same key is certain to give the same link. */
  keyValidHours: number;
  checkout: CheckoutMaker;
  open: (access: ProcessorAccess) => PaymentLinks;
}>;

/** The calls throw RefusedByProcessor or Unavailable, and `make` may also throw KeySpent. */
export type PaymentLinks = Readonly<{
  make: (request: object, idempotencyKey: string) => Promise<MadeLink>;
  /**
   * Returns the active links with that mark, oldest first. `isOlder` tells whether a page of links is older than the
   * links with that mark.
   */
  find: (mark: LinkMark, isOlder: (providerIds: string[]) => Promise<boolean>) => Promise<MadeLink[]>;
  /**
   * Deactivates a link and expires the sessions that it opened. Returns the number of expired sessions. Safe to repeat.
   */
  close: (providerId: string) => Promise<number>;
  checkouts: Checkouts;
}>;

// --- Checkouts: several invoices paid at once ---

export type CheckoutOrder = Readonly<{
  installation: string;
  /** The name of the checkout in the session's metadata. */
  reference: string;
  partnerId: string;
  currency: string;
  lines: readonly Readonly<{ number: string; unitAmount: number }>[];
  methods: readonly string[];
  expiresAt: Date;
  /** The page to which the payer returns after paying or canceling. */
  backTo: string;
}>;

type CheckoutMaker = Readonly<{
  mostInvoices: number;
  openMinutes: number;
  /** Converts amounts without rounding, or gives the reason why they cannot be paid together. */
  units: (amounts: readonly Amount[]) => { readonly units: readonly number[] } | { readonly reason: string };
  /** The request is recorded before the call to the processor. */
  request: (order: CheckoutOrder) => object;
}>;

/** `ordered`: a bank debit that is paid days later. `failed`: a bank debit that failed. */
export type CheckoutState = 'open' | 'ordered' | 'paid' | 'failed' | 'expired';

/** The calls throw RefusedByProcessor or Unavailable, and `make` may also throw KeySpent. */
export type Checkouts = Readonly<{
  make: (request: object, idempotencyKey: string) => Promise<MadeLink>;
  state: (providerId: string) => Promise<CheckoutState>;
  /** Ends an open session. Returns `expired`, or the state in which it had already ended. */
  expire: (providerId: string) => Promise<CheckoutState>;
}>;

// --- Events ---

export type PaymentFact =
  | Readonly<{
      kind: 'received';
      /** The ids of the payment: the payment intent (if there is one), the charge and the session, in this order. */
      ids: readonly string[];
      amount: Amount;
      /** The processor's id of the payment link that was paid. Only the processor can set this field. */
      link: string | undefined;
      /** The processor's id of the checkout session, if the event is about the session itself. */
      session: string | undefined;
      /**
       * The document that the metadata names. Metadata is a hint and never proof, because platforms and payers can
       * write metadata.
       */
      invoice: string | undefined;
      checkout: string | undefined;
      installation: string | undefined;
      payer_name: string | undefined;
    }>
  /** The refunded total at the time of this event, without failed refunds. */
  | Readonly<{ kind: 'refunded'; ids: readonly string[]; total: Amount }>
  /** A refund that failed, so that the payer received nothing. */
  | Readonly<{
      kind: 'refund_undone';
      ids: readonly string[];
      refund: string;
      amount: Amount;
      /** The ISO instant of the refund. Totals of later events include the refund. */
      made_at: string;
    }>
  | Readonly<{
      kind: 'disputed';
      ids: readonly string[];
      dispute: string;
      amount: Amount;
      reason: string;
      /** An `inquiry` does not withdraw money. */
      state: 'inquiry' | 'open' | 'won' | 'lost' | 'closed';
    }>;

export type SessionProgress = Readonly<{
  id: string;
  /** The processor's id of the payment link that opened the session. */
  link: string | undefined;
  state: 'ordered' | 'failed' | 'expired';
}>;

export type EventReading =
  | { readonly facts: readonly PaymentFact[] }
  /** The reason why the event changes nothing in the books. `session` is set if a session may have progressed. */
  | Readonly<{ nothing: string; session?: SessionProgress }>
  /** The reason why finance must check the event: the event should report a payment, but could not be read. */
  | { readonly manual_review: string };

// --- Balance transactions ---

/**
 * `share`: our share from a platform. `misrouted`: a charge on our own account (7.3.3) whose fee goes to the platform
 * and whose remainder we receive. `reversal`: a reversed transfer. `dispute`: a dispute of a charge on our own account.
 * `other`: not related to a quote.
 */
export type BalanceTransactionKind = 'share' | 'misrouted' | 'reversal' | 'dispute' | 'other';

export type BalanceTransaction = Readonly<{
  /** The id is unique in its account, such as `txn_…`. */
  id: string;
  /** The type in the processor's terms: `payment`, `payment_refund`, `payout`, … */
  type: string;
  kind: BalanceTransactionKind;
  currency: string;
  /** Amounts are in major units. `net` is `amount` less `fee`, and changes the balance. */
  amount: string;
  fee: string;
  net: string;
  /**
   * Set if the processor converted the share to the account's currency: the amount sent, with the sign of `amount`, its
   * currency, and the rate. `source_amount` times the rate is `amount`.
   */
  source_currency: string | null;
  source_amount: string | null;
  exchange_rate: string | null;
  occurred_at: string;
  /** The payment, refund or dispute on our account: `py_…`, `pyr_…`. */
  payment: string | null;
  /** The payment on our account that is reduced by the reversal or dispute. */
  of_payment: string | null;
  /** The platform's transfer or transfer reversal: `tr_…`, `trr_…`. */
  transfer: string | null;
  /** The id comes from the metadata of the payment on our account. */
  quote_id: string | null;
  requote_id: string | null;
  enrollment_id: string | null;
  payload: string;
}>;

export type BalanceTransactionReading =
  | { readonly balance_transaction: BalanceTransaction }
  | Readonly<{ id: string; problem: string }>;

export type BalanceTransactionSource = Readonly<{
  /**
   * Reads a balance transaction whose numbers are texts (parseExactJson). `payload` is the unchanged data of the
   * balance transaction. `live` tells whether real or test money is expected.
   */
  read: (value: unknown, payload: string, live: boolean) => BalanceTransactionReading;
  /**
   * Lists the balance transactions of an account since a time, or those of a payout. Throws Unavailable.
   */
  list: (
    access: ProcessorAccess,
    which: { readonly since: Date | null } | { readonly payout: string },
    live: boolean,
  ) => AsyncIterable<BalanceTransactionReading>;
}>;

// --- Webhooks ---

export type WebhookVerifier = Readonly<{
  /** The environment variable of an account's secrets. If no account is given, the variable of our own account. */
  secretVariable: (account: string | undefined) => string;
  secrets: (environment: ProcessorSecrets, account: string | undefined) => readonly string[];
  /** The header with the signature, in lower case. */
  header: string;
  /** Returns undefined if the header may be valid. If the header is invalid, the body need not be read. */
  headerProblem: (header: string | undefined, now: Date) => string | undefined;
  /** Whether one of our secrets made one of the signatures of these bytes. */
  isSigned: (body: Buffer, header: string | undefined, secrets: readonly string[]) => boolean;
}>;
