/**
 * Opens a checkout: several invoices are paid in one session at the processor. The amount of each is recorded before
 * the processor is called, and the payment is applied in these amounts (processor-events/receipt.ts). An invoice is in
 * one session at most. The same selection returns the same session; another one ends the old session first.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { DateTime } from 'luxon';
import { readInstallation } from '#database/installation.sql';
import { LinkProvider, newToken, WantedLinks } from '#delivery/payment-link';
import { failpoint } from '#failpoint';
import { Amount } from '#money';
import { ActorContext, recordEvent } from '#people/audit-events';
import { RefusedByProcessor, Unavailable } from '#processors/processor';
import { processorOf } from '#processors/processors';
import {
  Checkout,
  insertCheckout,
  lockPartner,
  PayableInvoice,
  readCheckout,
  readLiveCheckouts,
  readPayableInvoices,
} from './checkouts.sql.ts';
import { CheckoutCalls, endCheckout, makeSession } from './end.ts';

export type CheckoutContext = CheckoutCalls &
  ActorContext &
  Readonly<{
    links: Pick<LinkProvider, 'wanted' | 'processors'>;
  }>;

type CheckoutRequest = Readonly<{
  partnerId: string;
  numbers: readonly string[];
  backTo: (reference: string) => string;
}>;

export type OpenedCheckout =
  | Readonly<{ status: 'opened'; reference: string }>
  /** One of the numbers is not a document of this partner. */
  | { readonly status: 'unknown' }
  /** The reason is a sentence for the contact. */
  | Readonly<{ status: 'refused'; reason: string }>;

/** A concurrent request finds the session of the first one, and waits for it. */
const TRIES = 4;
const PAUSE_MILLISECONDS = 700;
/** A session that ends sooner is replaced, so that its payer has time. */
const LEAST_MINUTES_LEFT = 10;
/** The processor refuses a request whose session would end within half an hour. */
const REQUEST_GOOD_MINUTES = 25;

/** The processor at which several invoices can be paid at once; undefined if none is set up. */
export const checkoutProvider = ({ wanted, processors }: Pick<LinkProvider, 'wanted' | 'processors'>) =>
  wanted !== undefined && processors.has(wanted.provider) ? wanted : undefined;

export async function openCheckout(context: CheckoutContext, request: CheckoutRequest) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const opened = await tryToOpen(context, request);
      if (opened !== undefined) return opened;
    } catch (error) {
      if (!(error instanceof Unavailable || error instanceof RefusedByProcessor)) throw error;
      if (attempt === TRIES || error instanceof RefusedByProcessor) {
        return refused('The payment processor cannot be reached now. Nothing was paid. Try again in a minute');
      }
    }
    if (attempt >= TRIES) return refused('These invoices are being paid in another window. Try again in a minute');
    await wait(PAUSE_MILLISECONDS);
  }
}

const refused = (reason: string): OpenedCheckout => ({ status: 'refused', reason: `${reason}.` });

/** Returns undefined if a concurrent request came first. */
async function tryToOpen(context: CheckoutContext, request: CheckoutRequest): Promise<OpenedCheckout | undefined> {
  const wanted = checkoutProvider(context.links);
  if (wanted === undefined) return refused('Invoices cannot be paid online now');
  const { partnerId, numbers } = request;
  const { invoices, live } = await context.database.reading(async (tx) => {
    const found = await readPayableInvoices(tx, { partnerId, numbers });
    return {
      invoices: found,
      live: await readLiveCheckouts(tx, { documentIds: found.map(({ document_id }) => document_id) }),
    };
  });
  if (invoices.length < new Set(numbers).size) return { status: 'unknown' };
  const order = orderOf(wanted, invoices);
  if ('reason' in order) return refused(order.reason);
  const same = live.find((each) => isSame(context, each, invoices));
  for (const other of live.filter((each) => each !== same)) {
    const state = await endCheckout(context, other, 'replaced');
    if (state === 'ordered' || state === 'paid') return underWay(other, state);
  }
  const checkout = same ?? (await record(context, request, { wanted, invoices, ...order }));
  if (checkout === undefined) return undefined;
  const { provider_id, reference } = checkout;
  if ((provider_id ?? (await makeSession(context, checkout))) !== undefined) return { status: 'opened', reference };
  return refused('The payment processor did not accept this payment. Pay each invoice separately, or by bank transfer');
}

function underWay({ invoices, ordered_on }: Checkout, state: 'ordered' | 'paid'): OpenedCheckout {
  const numbers = invoices.map(({ number }) => number).join(', ');
  return refused(
    state === 'paid'
      ? `${numbers}: this payment has just been made. It is shown here within minutes`
      : debitUnderWay(numbers, ordered_on),
  );
}

const debitUnderWay = (numbers: string, since: string | null) =>
  `${numbers}: a bank debit is in progress${since === null ? '' : ` since ${since}`}. It takes some days; do not pay again`;

type Order = Readonly<{
  total: Amount;
  units: readonly number[];
  methods: readonly string[];
}>;

function orderOf(wanted: WantedLinks, invoices: readonly PayableInvoice[]): Order | { readonly reason: string } {
  const { checkout, methodsFor } = processorOf(wanted.provider).paymentLinks;
  const [first] = invoices;
  if (first === undefined) return { reason: 'Choose at least one invoice' };
  if (invoices.length > checkout.mostInvoices) {
    return { reason: `At most ${checkout.mostInvoices} invoices can be paid at once` };
  }
  const settled = invoices.filter(({ payable }) => !payable).map(({ number }) => number);
  if (settled.length > 0) return { reason: `Nothing is due on ${settled.join(', ')} any more` };
  const [ordered] = invoices.filter(({ ordered_on }) => ordered_on !== null);
  if (ordered !== undefined) return { reason: debitUnderWay(ordered.number, ordered.ordered_on) };
  const { currency } = first;
  if (invoices.some((each) => each.currency !== currency)) {
    return { reason: 'Invoices of different currencies cannot be paid at once. Choose those of one currency' };
  }
  const methods = methodsFor(wanted.methods, currency);
  if (methods.length === 0) return { reason: `Invoices in ${currency} cannot be paid online: pay by bank transfer` };
  const amounts = invoices.map(({ balance }) => Amount.of(balance, currency));
  const units = checkout.units(amounts);
  if ('reason' in units) return { reason: `These invoices cannot be paid online at once: ${units.reason}` };
  return { total: amounts.reduce((sum, each) => sum.plus(each), Amount.zero(currency)), methods, ...units };
}

/**
 * Whether a checkout has exactly these invoices and amounts, and its session can be made or leaves enough time to pay.
 */
function isSame({ environment }: CheckoutContext, checkout: Checkout, invoices: readonly PayableInvoice[]) {
  const { expires_at, recorded_at, provider_id, currency } = checkout;
  const asked = new Map(checkout.invoices.map(({ document_id, amount }) => [document_id, Amount.of(amount, currency)]));
  const isAlike =
    asked.size === invoices.length &&
    invoices.every(({ document_id, balance }) => asked.get(document_id)?.equals(Amount.of(balance, currency)));
  if (!isAlike) return false;
  const now = environment.now();
  return provider_id === null
    ? now.diff(DateTime.fromISO(recorded_at)).as('minutes') < REQUEST_GOOD_MINUTES
    : DateTime.fromISO(expires_at).diff(now).as('minutes') > LEAST_MINUTES_LEFT;
}

/**
 * Records the checkout before the processor is called. Returns undefined if a concurrent request has already recorded a
 * checkout.
 */
async function record(
  context: CheckoutContext,
  { partnerId, backTo }: CheckoutRequest,
  { wanted, invoices, total, units, methods }: Order & { wanted: WantedLinks; invoices: readonly PayableInvoice[] },
) {
  const { database, environment, actor } = context;
  const { checkout: maker } = processorOf(wanted.provider).paymentLinks;
  const { currency } = total;
  const reference = newToken();
  const at = environment.now();
  const now = at.toISO();
  const expiresAt = at.plus({ minutes: maker.openMinutes });
  const parts = invoices.map(({ document_id, balance }) => ({ document_id, amount: balance }));
  const recorded = await database.transaction(async (tx) => {
    await lockPartner(tx, { partnerId });
    const ids = parts.map(({ document_id }) => document_id);
    if ((await readLiveCheckouts(tx, { documentIds: ids })).length > 0) return undefined;
    const { installation_id: installation } = await readInstallation(tx);
    const request = maker.request({
      ...{ installation, reference, partnerId, currency, methods, expiresAt: expiresAt.toJSDate() },
      lines: invoices.map(({ number }, index) => ({ number, unitAmount: units[index] as number })),
      backTo: backTo(reference),
    });
    const details = {
      ...{ currency, amount: total.toString() },
      invoices: invoices.map(({ number, balance }) => ({ number, amount: Amount.of(balance, currency).toString() })),
    };
    const eventId = await recordEvent(tx, actor, { action: 'checkout.open', subject: partnerId, details, now });
    await insertCheckout(tx, {
      ...{ reference, partnerId, currency, request, now, eventId, invoices: parts, provider: wanted.provider },
      ...{ amount: total.toString(), key: `reckoner-${installation}-checkout-${reference}` },
      expiresAt: expiresAt.toISO(),
    });
    failpoint('checkout.recorded');
    return readCheckout(tx, { partnerId, reference });
  });
  if (recorded !== undefined) failpoint('checkout.committed');
  return recorded;
}
