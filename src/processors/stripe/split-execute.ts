/**
 * Making the requests of a plan at the processor, for a partner's platform or for tests, through the `stripe` client that
 * the caller gives: payment with its application fee, transfer, refund with or without `reverse_transfer`, transfer
 * reversal. A partner's program imports it; of the client it needs the types only:
 *
 *   import { executeRequests } from 'reckoner/splits/execute';
 *
 * Each request is done once, however often it is asked for. Within a day its idempotency key sees to that; after it, the
 * object is looked for by its metadata before another is made. What the processor refuses is thrown as the client throws
 * it; what cannot go on is a SplitUnfinished, which says what is done. Asked for again, the rest is done.
 */
import type Stripe from 'stripe';
import type { ProcessorRequest } from './split-plan.ts';

/** The part of the client that is used. */
export type Processor = Pick<Stripe, 'paymentIntents' | 'transfers' | 'refunds' | 'charges'>;

/** What a plan leaves to the platform. */
export interface Given {
  /** For a payment: the customer's `pm_…`. */
  readonly payment_method?: string | undefined;
  /** For a refund: the payment of the acceptance, `pi_…`. */
  readonly payment_intent?: string | undefined;
  /** For a transfer reversal: the transfer of the acceptance, `tr_…`. */
  readonly transfer?: string | undefined;
}

export interface Done {
  readonly does: ProcessorRequest['does'];
  /** The processor's: `pi_…`, `tr_…`, `re_…`, `trr_…`. */
  readonly id: string;
  /** In the smallest unit. */
  readonly amount: number;
  readonly currency: string;
  /** It was there before. */
  readonly known: boolean;
  /** Of a transfer: the payment on the service's account says now of which quote it is; else the settlement file must. */
  readonly labelled?: boolean;
}

/** What cannot go on now: `code` for programs, the message for people, and what is done already. */
export class SplitUnfinished extends Error {
  override readonly name = 'SplitUnfinished';
  readonly code: 'input_missing' | 'payment_unpaid' | 'balance_insufficient';
  readonly done: readonly Done[];

  constructor(code: SplitUnfinished['code'], message: string, done: readonly Done[], cause?: unknown) {
    super(message, { cause });
    this.code = code;
    this.done = done;
  }
}

type Request<Does extends ProcessorRequest['does']> = Extract<ProcessorRequest, { does: Does }>;
type Outcome = Omit<Done, 'does'>;

/** Makes requests in their order; a transfer only after its payment has succeeded. Throws SplitUnfinished. */
export async function executeRequests(
  stripe: Processor,
  requests: readonly ProcessorRequest[],
  given: Given = {},
): Promise<Done[]> {
  const done: Done[] = [];
  for (const request of requests) {
    const outcome = await execute(stripe, request, given, done);
    done.push({ does: request.does, ...outcome });
  }
  return done;
}

function execute(stripe: Processor, request: ProcessorRequest, given: Given, done: readonly Done[]): Promise<Outcome> {
  switch (request.does) {
    case 'payment':
      return pay(stripe, request, needed('payment_method', given, done), done);
    case 'transfer':
      return transfer(stripe, request, done);
    case 'refund':
      return refund(stripe, request, needed('payment_intent', given, done));
    case 'transfer_reversal':
      return reverse(stripe, request, needed('transfer', given, done));
  }
}

function needed(name: keyof Given, given: Given, done: readonly Done[]): string {
  const value = given[name];
  if (value === undefined || value === '') {
    throw new SplitUnfinished('input_missing', `the plan leaves ${name} to you, and none was given`, done);
  }
  return value;
}

const optionsOf = ({ headers }: ProcessorRequest): Stripe.RequestOptions => ({
  idempotencyKey: headers['Idempotency-Key'],
  ...onAccount(headers),
});

const onAccount = (headers: ProcessorRequest['headers']): Stripe.RequestOptions =>
  headers['Stripe-Account'] === undefined ? {} : { stripeAccount: headers['Stripe-Account'] };

type Metadata = Readonly<Record<string, string>>;

/** All that the plan names, and no requote or reversal where it names none. */
const isOf = (metadata: Metadata, found: Stripe.Metadata | null): boolean =>
  ['quote_id', 'requote_id', 'reversal_id'].every((name) => (found?.[name] || undefined) === metadata[name]);

async function pay(
  stripe: Processor,
  request: Request<'payment'>,
  payment_method: string,
  done: readonly Done[],
): Promise<Outcome> {
  const { params } = request;
  const known = await findPayment(stripe, request);
  const payment =
    known === undefined
      ? await stripe.paymentIntents.create({ ...params, payment_method }, optionsOf(request))
      : known.status === 'requires_payment_method'
        ? await tryAgain(stripe, request, known, payment_method)
        : known;
  if (payment.status !== 'succeeded') {
    const why = `payment ${payment.id} is ${payment.status}: let your checkout finish it, then ask again`;
    throw new SplitUnfinished('payment_unpaid', why, done);
  }
  return { id: payment.id, amount: payment.amount, currency: payment.currency, known: known !== undefined };
}

/** A card that declined leaves the payment waiting for another; never is there a second payment beside it. */
const tryAgain = (
  stripe: Processor,
  { headers }: Request<'payment'>,
  { id }: Stripe.PaymentIntent,
  payment_method: string,
): Promise<Stripe.PaymentIntent> =>
  stripe.paymentIntents.confirm(
    id,
    { payment_method },
    { ...onAccount(headers), idempotencyKey: `${headers['Idempotency-Key']}:${payment_method}` },
  );

/** The payment that succeeded, that the customer is about to finish, or whose method was declined; one cancelled is none. */
async function findPayment(
  stripe: Processor,
  { params: { amount, metadata }, headers }: Request<'payment'>,
): Promise<Stripe.PaymentIntent | undefined> {
  const query = `metadata['quote_id']:'${metadata['quote_id']}'`;
  for await (const each of stripe.paymentIntents.search({ query, limit: 100 }, onAccount(headers))) {
    if (isOf(metadata, each.metadata) && each.amount === amount && each.status !== 'canceled') return each;
  }
  return undefined;
}

async function transfer(stripe: Processor, request: Request<'transfer'>, done: readonly Done[]): Promise<Outcome> {
  const { params } = request;
  const { transfer_group, destination, metadata } = params;
  let known: Stripe.Transfer | undefined;
  for await (const each of stripe.transfers.list({ transfer_group, destination, limit: 100 })) {
    if (isOf(metadata, each.metadata) && each.amount === params.amount) known = each;
  }
  const made = known ?? (await createTransfer(stripe, request, done));
  const labelled = await label(stripe, made, destination, metadata);
  return { id: made.id, amount: made.amount, currency: made.currency, known: known !== undefined, labelled };
}

async function createTransfer(
  stripe: Processor,
  request: Request<'transfer'>,
  done: readonly Done[],
): Promise<Stripe.Transfer> {
  try {
    return await stripe.transfers.create(request.params, optionsOf(request));
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'balance_insufficient') throw error;
    const why = "the money of the payment is not available on the platform's account yet: ask again when it is";
    throw new SplitUnfinished('balance_insufficient', why, done, error);
  }
}

/**
 * A transfer has no metadata for the payment that it makes on the service's account, so the platform writes it there. An
 * account that does not allow it is no error: the settlement file must name the quote.
 */
async function label(
  stripe: Processor,
  { destination_payment: payment }: Stripe.Transfer,
  stripeAccount: string,
  metadata: Metadata,
): Promise<boolean> {
  const id = typeof payment === 'string' ? payment : payment?.id;
  if (id === undefined) return false;
  try {
    await stripe.charges.update(id, { metadata }, { stripeAccount });
    return true;
  } catch (error) {
    const status = (error as { statusCode?: unknown }).statusCode;
    if (status === 401 || status === 403 || status === 404) return false;
    throw error;
  }
}

async function refund(stripe: Processor, request: Request<'refund'>, payment_intent: string): Promise<Outcome> {
  const { params, headers } = request;
  let known: Stripe.Refund | undefined;
  for await (const each of stripe.refunds.list({ payment_intent, limit: 100 }, onAccount(headers))) {
    const alive = each.status !== 'failed' && each.status !== 'canceled';
    if (alive && isOf(params.metadata, each.metadata)) known = each;
  }
  const made = known ?? (await stripe.refunds.create({ ...params, payment_intent }, optionsOf(request)));
  return { id: made.id, amount: made.amount, currency: made.currency, known: known !== undefined };
}

async function reverse(stripe: Processor, request: Request<'transfer_reversal'>, id: string): Promise<Outcome> {
  const { params } = request;
  let known: Stripe.TransferReversal | undefined;
  for await (const each of stripe.transfers.listReversals(id, { limit: 100 })) {
    if (isOf(params.metadata, each.metadata)) known = each;
  }
  const made = known ?? (await stripe.transfers.createReversal(id, params, optionsOf(request)));
  return { id: made.id, amount: made.amount, currency: made.currency, known: known !== undefined };
}
