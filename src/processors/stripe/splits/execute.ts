/**
 * Makes the requests of a plan at the processor, for a partner's platform or for tests, with the caller's `stripe`
 * client (package versions 17 to 23). A partner's program imports this module:
 *
 * import { executeRequests } from '@reckoner/splits/execute';
 *
 * If a request is repeated, it has no second effect. Within a day, the idempotency key prevents a second effect. After
 * a day, the object is searched for by its metadata before a new object is created. Errors of the client are rethrown.
 * If a plan cannot continue, SplitUnfinished is thrown, with the requests that were finished. A repeated call makes the
 * requests that remain.
 *
 * A payment is created without a payment method and confirmed separately. The key then identifies one payment, even if
 * cards are declined, and Stripe confirms a payment only once.
 */
import { GivenBack, Metadata, Options, Payment, Processor, Transfer } from './client.ts';
import { atMostOnce } from './keys.ts';
import { accountOf, ProcessorRequest } from './requests.ts';
import { Done, SplitUnfinished } from './unfinished.ts';

export type { Processor } from './client.ts';
export { type Done, type OpenPayment, SplitUnfinished } from './unfinished.ts';

/** A request from the API, with wider types. */
export type DescribedRequest = Readonly<{
  does: string;
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  add?: readonly string[] | undefined;
  accepted_at?: string | undefined;
  params: Readonly<Record<string, unknown>>;
}>;

/** Values that the platform supplies in addition to a plan. */
export type Given = Readonly<{
  /** For a payment: the customer's payment method `pm_…`, on the account of the payment. */
  payment_method?: string | undefined;
  /** For a payment: the customer who owns the payment method, `cus_…`, if any. */
  customer?: string | undefined;
  /**
   * For a refund: the payment of the acceptance, `pi_…`, required. For a payment: an existing payment to continue, if
   * known.
   */
  payment_intent?: string | undefined;
  /** For a transfer reversal: the transfer of the acceptance, `tr_…`. */
  transfer?: string | undefined;
  /** For a refund of an application fee: the fee of the acceptance, `fee_…`. */
  application_fee?: string | undefined;
}>;

type Request<Does extends ProcessorRequest['does']> = Extract<ProcessorRequest, { does: Does }>;
type Outcome = Omit<Done, 'does'>;

type Context = Readonly<{
  stripe: Processor;
  given: Given;
  now: Date;
  done: readonly Done[];
}>;

/** Makes the requests in order. A transfer follows only after its payment has succeeded. Throws SplitUnfinished. */
export async function executeRequests(
  stripe: Processor,
  requests: readonly (ProcessorRequest | DescribedRequest)[],
  given: Given = {},
  { now = () => new Date() }: { readonly now?: () => Date } = {},
) {
  const done: Done[] = [];
  for (const each of requests) {
    const request = each as ProcessorRequest;
    const outcome = await execute({ stripe, given, now: now(), done }, request);
    done.push({ does: request.does, ...outcome });
  }
  return done;
}

function execute(context: Context, request: ProcessorRequest): Promise<Outcome> {
  switch (request.does) {
    case 'payment':
      return pay(context, request);
    case 'transfer':
      return transfer(context, request);
    case 'refund':
      return refund(context, request, needed(context, 'payment_intent'));
    case 'transfer_reversal':
      return reverse(context, request, needed(context, 'transfer'));
    case 'fee_refund':
      return refundFee(context, request, needed(context, 'application_fee'));
    default:
      throw new TypeError(`no plan has the request ${JSON.stringify(request)}`);
  }
}

function needed({ given, done }: Context, name: keyof Given) {
  const value = given[name];
  if (value !== undefined && value !== '') return value;
  throw new SplitUnfinished('input_missing', `the plan leaves ${name} to you, but none was given`, { done });
}

function optionsOf(request: ProcessorRequest, idempotencyKey?: string): Options {
  const stripeAccount = accountOf(request);
  return {
    apiVersion: request.headers['Stripe-Version'],
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(stripeAccount === undefined ? {} : { stripeAccount }),
  };
}

/**
 * Whether an object has the plan's metadata. The id of a requote, reversal or dispute must be the same in the plan and
 * in the object, or missing in both.
 */
const isOf = (metadata: Metadata, found: Metadata | null) =>
  ['quote_id', 'requote_id', 'reversal_id', 'dispute_id'].every(
    (name) => (found?.[name] || undefined) === (metadata[name] || undefined),
  );

/** Stripe deletes a key after 24 hours at the earliest. Objects that may be older are searched for first. */
const KEY_LASTS_HOURS = 23;

const mayBeForgotten = ({ now }: Context, { accepted_at }: Request<'payment' | 'transfer'>) =>
  accepted_at === undefined || !(now.getTime() - Date.parse(accepted_at) < KEY_LASTS_HOURS * 3_600_000);

// --- Payment ---

async function pay(context: Context, request: Request<'payment'>): Promise<Outcome> {
  const { given, done } = context;
  if (given.payment_intent === undefined) needed(context, 'payment_method');
  const { payment: open, known } = await openPayment(context, request);
  const payment = isConfirmable(open) ? await confirm(context, request, open) : open;
  if (payment.status === 'succeeded') {
    const { id, amount, currency, latest_charge: charge } = payment;
    const { transfer = null, application_fee = null } = typeof charge === 'object' && charge !== null ? charge : {};
    return {
      ...{ id, amount, currency, known },
      ...(transfer === null ? {} : { transfer: idOf(transfer) }),
      ...(application_fee === null ? {} : { application_fee: idOf(application_fee) }),
    };
  }
  const { id, status, client_secret, next_action } = payment;
  const why = `payment ${id} is ${status}: let your checkout finish it, or cancel it, then try again`;
  const account = accountOf(request);
  throw new SplitUnfinished('payment_unpaid', why, {
    done,
    payment: { id, status, client_secret, next_action, account },
  });
}

const idOf = (object: string | { readonly id: string }) => (typeof object === 'string' ? object : object.id);

const isConfirmable = ({ status }: Payment) =>
  status === 'requires_payment_method' || status === 'requires_confirmation';

/**
 * Returns the payment of the acceptance: the given one, an existing one, or a new unconfirmed one. A canceled payment
 * is never returned.
 */
async function openPayment(context: Context, request: Request<'payment'>) {
  const { stripe, given, done } = context;
  if (given.payment_intent !== undefined) {
    const payment = await readPayment(context, request, given.payment_intent);
    if (!isOf(request.params.metadata, payment.metadata) || payment.amount !== request.params.amount) {
      throw new SplitUnfinished('request_differs', `payment ${payment.id} does not belong to this plan`, { done });
    }
    if (payment.status !== 'canceled') return { payment, known: true };
    needed(context, 'payment_method');
  }
  const found = mayBeForgotten(context, request) ? await findPayment(context, request) : undefined;
  if (found !== undefined) return { payment: await readPayment(context, request, found.id), known: true };
  const { confirm: _, return_url, ...planned } = request.params;
  const params = given.customer === undefined ? planned : { ...planned, customer: given.customer };
  for (let after = 0; ; ) {
    const { made, known, attempt } = await atMostOnce(request.headers['Idempotency-Key'], {
      ...{ after, done },
      make: (key) => stripe.paymentIntents.create(params, optionsOf(request, key)),
      // No search is needed, because a payment without a payment method takes no money, so a second payment is
      // harmless.
      find: async () => undefined,
    });
    // A repeated answer shows the payment in its state at creation, so the payment is read again.
    const payment = known ? await readPayment(context, request, made.id) : made;
    if (payment.status !== 'canceled') return { payment, known };
    after = attempt;
  }
}

const readPayment = ({ stripe }: Context, request: Request<'payment'>, id: string) =>
  stripe.paymentIntents.retrieve(id, { expand: ['latest_charge'] }, optionsOf(request));

/** Confirms a payment, without a key: Stripe confirms a payment only once, and a declined customer may try again. */
async function confirm(context: Context, request: Request<'payment'>, { id }: Payment) {
  const { return_url } = request.params;
  const payment_method = needed(context, 'payment_method');
  const params = { payment_method, expand: ['latest_charge'], ...(return_url === undefined ? {} : { return_url }) };
  try {
    return await context.stripe.paymentIntents.confirm(id, params, optionsOf(request));
  } catch (error) {
    // The payment is already confirmed: by the checkout, by a different process, or by a retry after a lost answer.
    if ((error as { code?: unknown }).code !== 'payment_intent_unexpected_state') throw error;
    return readPayment(context, request, id);
  }
}

/** Returns the existing payment with the most advanced status. A search may be a minute out of date. */
async function findPayment({ stripe }: Context, request: Request<'payment'>) {
  const { amount, metadata } = request.params;
  const query = `metadata['quote_id']:'${metadata['quote_id']}'`;
  const found: Payment[] = [];
  for await (const each of stripe.paymentIntents.search({ query, limit: 100 }, optionsOf(request))) {
    if (isOf(metadata, each.metadata) && each.amount === amount && each.status !== 'canceled') found.push(each);
  }
  return found.find(({ status }) => status === 'succeeded') ?? found.find((each) => !isConfirmable(each)) ?? found[0];
}

// --- Transfer ---

async function transfer(context: Context, request: Request<'transfer'>): Promise<Outcome> {
  const { stripe, done } = context;
  const { params, headers } = request;
  const find = () => findTransfer(stripe, request);
  const before = mayBeForgotten(context, request) ? await find() : undefined;
  const { made, known } =
    before === undefined
      ? await atMostOnce(headers['Idempotency-Key'], {
          ...{ done, find },
          make: (key) => stripe.transfers.create(params, optionsOf(request, key)),
        }).catch(async (error: unknown) => {
          if (!isOfBalance(error)) throw error;
          const held = await settledIn(context, request);
          if (held !== undefined && held !== params.currency.toLowerCase()) {
            const other = params.currency.toUpperCase();
            const why =
              `the platform got the payment in ${held.toUpperCase()} and has no ${other}, so the share cannot be sent: give ` +
              `the platform a bank account in ${other} before you sell in it, and refund this payment or tell us`;
            throw new SplitUnfinished('currency_not_held', why, { done, cause: error });
          }
          const why = "the money of the payment is not available on the platform's account yet: try again when it is";
          throw new SplitUnfinished('balance_insufficient', why, { done, cause: error });
        })
      : { made: before, known: true };
  const { id, amount, currency } = made;
  return { id, amount, currency, known, labelled: await label(stripe, request, made) };
}

/**
 * Returns the currency in which the platform received the plan's payment or its application fee; undefined if unknown.
 * The currency is read only when a transfer lacks money, because a platform may hold money from other payments.
 */
async function settledIn({ stripe, done }: Context, request: Request<'transfer'>) {
  const { id, application_fee: fee } = done.find(({ does }) => does === 'payment') ?? {};
  if (id === undefined) return undefined;
  const options = optionsOf(request);
  const read = async () => {
    if (fee !== undefined) return stripe.applicationFees.retrieve(fee, { expand: ['balance_transaction'] }, options);
    const expand = ['latest_charge.balance_transaction'];
    return (await stripe.paymentIntents.retrieve(id, { expand }, options)).latest_charge;
  };
  try {
    const came = await read();
    const settled = typeof came === 'object' ? came?.balance_transaction : undefined;
    return typeof settled === 'object' ? settled?.currency : undefined;
  } catch (error) {
    // A key may have permission for payments, but not for their balance transactions.
    if ((error as { type?: unknown }).type === 'StripePermissionError') return undefined;
    throw error;
  }
}

const isOfBalance = (error: unknown) => (error as { code?: unknown }).code === 'balance_insufficient';

/** Lists are always up to date, unlike searches. */
async function findTransfer(stripe: Processor, request: Request<'transfer'>) {
  const { transfer_group, destination, metadata, amount } = request.params;
  const listed = stripe.transfers.list({ transfer_group, destination, limit: 100 }, optionsOf(request));
  for await (const each of listed) if (isOf(metadata, each.metadata) && each.amount === amount) return each;
  return undefined;
}

/**
 * Writes the metadata to the payment on the service's account, because a transfer cannot do this. A refused permission
 * is not an error, but the settlement file must then name the quote.
 */
async function label(stripe: Processor, request: Request<'transfer'>, { destination_payment: payment }: Transfer) {
  if (payment === null || payment === undefined) return false;
  const { destination: stripeAccount, metadata } = request.params;
  try {
    await stripe.charges.update(idOf(payment), { metadata }, { ...optionsOf(request), stripeAccount });
    return true;
  } catch (error) {
    const status = (error as { statusCode?: unknown }).statusCode;
    if (status === 401 || status === 403 || status === 404) return false;
    throw error;
  }
}

// --- Giving back ---

/** Searches for the object before creating it, because no request to return money is urgent. */
async function giveBack(
  { done }: Context,
  { headers, params }: ProcessorRequest,
  list: () => AsyncIterable<GivenBack>,
  make: (key: string) => Promise<GivenBack>,
): Promise<Outcome> {
  const first = async (is: (each: GivenBack) => boolean) => {
    for await (const each of list()) if (is(each)) return each;
    return undefined;
  };
  const find = () => first((each) => !isUndone(each) && isOf(params.metadata, each.metadata));
  const outcome = ({ id, amount, currency }: GivenBack, known: boolean) => ({ id, amount, currency, known });
  const before = await find();
  if (before !== undefined) return outcome(before, true);
  for (let after = 0; ; ) {
    const { made, known, attempt } = await atMostOnce(headers['Idempotency-Key'], { after, done, find, make });
    // A repeated answer shows the refund in its state at creation. The refund may have failed later.
    const now = known ? await first(({ id }) => id === made.id) : undefined;
    if (!isUndone(now ?? made)) return outcome(made, known);
    if (!known) throw new SplitUnfinished('refund_failed', failure(made), { done });
    after = attempt;
  }
}

/** A repeated call creates a new refund, which fails again if the card is closed. */
const failure = ({ id, status, failure_reason: reason }: GivenBack) =>
  `refund ${id} is ${status}${reason ? ` (${reason})` : ''}, and the customer received nothing: try again for another ` +
  'refund, or pay the customer back outside Stripe';

/** Whether a refund failed, at once or days later. The customer then received nothing and needs a new refund. */
const isUndone = ({ status }: GivenBack) => status === 'failed' || status === 'canceled';

const refund = (context: Context, request: Request<'refund'>, payment_intent: string): Promise<Outcome> =>
  giveBack(
    context,
    request,
    () => context.stripe.refunds.list({ payment_intent, limit: 100 }, optionsOf(request)),
    (key) => context.stripe.refunds.create({ ...request.params, payment_intent }, optionsOf(request, key)),
  );

const reverse = (context: Context, request: Request<'transfer_reversal'>, id: string): Promise<Outcome> =>
  giveBack(
    context,
    request,
    () => context.stripe.transfers.listReversals(id, { limit: 100 }, optionsOf(request)),
    (key) => context.stripe.transfers.createReversal(id, request.params, optionsOf(request, key)),
  ).catch((error: unknown) => {
    if (!isOfBalance(error)) throw error;
    const why =
      `the service's account no longer has the share of transfer ${id}, because it was paid out: try again when ` +
      'you have sent it other shares, or make the refund alone and do the rest later';
    throw new SplitUnfinished('share_not_available', why, { done: context.done, cause: error });
  });

const refundFee = (context: Context, request: Request<'fee_refund'>, id: string): Promise<Outcome> =>
  giveBack(
    context,
    request,
    () => context.stripe.applicationFees.listRefunds(id, { limit: 100 }, optionsOf(request)),
    (key) => context.stripe.applicationFees.createRefund(id, request.params, optionsOf(request, key)),
  );
