/**
 * The shape of the `stripe` client, as far as this package uses the client. The package has different types for
 * CommonJS, for ECMAScript modules and in each version. These types are incompatible with each other, but all of them
 * match this shape.
 */

export type Metadata = Readonly<Record<string, string>>;

export type Options = Readonly<{
  apiVersion: string;
  idempotencyKey?: string;
  stripeAccount?: string;
}>;

type Made = Readonly<{
  id: string;
  /** The amount in the currency's smallest unit. */
  amount: number;
  currency: string;
  metadata: Metadata | null;
}>;

type Reference = string | { readonly id: string };

/**
 * The balance transaction, in the currency of the account's balance. If a balance transaction is not expanded, its
 * value is an id.
 */
type Settled = string | { readonly currency: string } | null;

export type Payment = Made &
  Readonly<{
    status: string;
    client_secret: string | null;
    next_action: { readonly type: string } | null;
    latest_charge:
      | string
      | Readonly<{
          transfer?: Reference | null;
          application_fee: Reference | null;
          balance_transaction?: Settled;
        }>
      | null;
  }>;

export type Transfer = Made &
  Readonly<{
    destination_payment?: Reference | null;
  }>;

export type GivenBack = Made &
  Readonly<{
    status?: string | null;
    failure_reason?: string | null;
  }>;

export type Processor = Readonly<{
  paymentIntents: {
    create(params: object, options: Options): Promise<Payment>;
    retrieve(id: string, params: { expand: string[] }, options: Options): Promise<Payment>;
    confirm(id: string, params: object, options: Options): Promise<Payment>;
    search(params: { query: string; limit: number }, options: Options): AsyncIterable<Payment>;
  };
  transfers: {
    create(params: object, options: Options): Promise<Transfer>;
    list(
      params: { transfer_group: string; destination: string; limit: number },
      options: Options,
    ): AsyncIterable<Transfer>;
    createReversal(id: string, params: object, options: Options): Promise<GivenBack>;
    listReversals(id: string, params: { limit: number }, options: Options): AsyncIterable<GivenBack>;
  };
  refunds: {
    create(params: object, options: Options): Promise<GivenBack>;
    list(params: { payment_intent: string; limit: number }, options: Options): AsyncIterable<GivenBack>;
  };
  applicationFees: {
    retrieve(id: string, params: { expand: string[] }, options: Options): Promise<{ balance_transaction: Settled }>;
    createRefund(id: string, params: object, options: Options): Promise<GivenBack>;
    listRefunds(id: string, params: { limit: number }, options: Options): AsyncIterable<GivenBack>;
  };
  charges: {
    update(id: string, params: { metadata: Metadata }, options: Options): Promise<unknown>;
  };
}>;
