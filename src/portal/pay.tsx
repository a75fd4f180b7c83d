/** Payment of several invoices at once: the selection, the payment's page, and its outcome. */

import { Card, Chip, Column, Facts, Form, Instant, Money, None, TableCard, Tone } from '#console/parts';
import { Transaction } from '#database/transaction';
import { Checkout, CheckoutPart, readCheckout } from '#delivery/checkouts/checkouts.sql';
import { callsOf, endCheckout } from '#delivery/checkouts/end';
import { CheckoutContext, openCheckout } from '#delivery/checkouts/open';
import { linkProvider } from '#delivery/payment-link';
import { refuse } from '#errors/refusals';
import { ReceivedPayment, readReceived } from '#payments/payments.sql';
import { CheckoutState, RefusedByProcessor, Unavailable } from '#processors/processor';
import { Amount, capitalized, moneyText, plural } from '#values';
import { chosenIn, numberCell, openScreen, payableItems, readOpen } from './overview.tsx';
import { PartnerAnswer, PartnerScreen, PartnerVisit } from './route.ts';

const contextOf = ({ context }: PartnerVisit): CheckoutContext => ({
  ...context,
  links: linkProvider(context.settings, context.environment),
});

/**
 * Refusal: page_unknown, also for another partner's invoice. Those that cannot be paid now are listed above the form.
 */
export async function payInvoices(visit: PartnerVisit, fields: ReadonlyMap<string, string>): Promise<PartnerAnswer> {
  const { context, partnerId, place, request } = visit;
  const { database } = context;
  const chosen = chosenIn(fields);
  const numbers = fields.has('all')
    ? payableItems(await database.reading((tx) => readOpen(tx, visit)), fields).map(({ number }) => number)
    : chosen;
  const opened = await openCheckout(contextOf(visit), {
    ...{ partnerId, numbers },
    backTo: (reference) => `${place.origin}/place/payments/${reference}`,
  });
  if (opened.status === 'opened') return { to: `/place/payments/${opened.reference}` };
  if (opened.status === 'unknown') throw refuse('page_unknown', { path: request.url });
  const view = await database.reading((tx) => readOpen(tx, visit));
  return { screen: openScreen(view, visit, { problem: opened.reason, chosen }), status: 422 };
}

type PaymentView = Readonly<{
  checkout: Checkout;
  received: ReceivedPayment | undefined;
  /** At the processor. Null if the outcome is recorded, or if the processor does not respond. */
  state: CheckoutState | null;
}>;

/** Refusal: page_unknown. Calls the processor after the transaction, and only if no outcome is recorded. */
export async function readPayment(visit: PartnerVisit, reference: string): Promise<PaymentView> {
  const { context, partnerId } = visit;
  const { checkout, received } = await context.database.reading(async (tx) => {
    const found = await ownCheckout(tx, visit, { partnerId, reference });
    return { checkout: found, received: await readReceived(tx, { session: found.provider_id }) };
  });
  const { ending, provider_id } = checkout;
  if (ending !== null || received !== undefined || provider_id === null) return { checkout, received, state: null };
  try {
    const state = await callsOf(contextOf(visit), checkout).state(provider_id);
    return { checkout, received, state };
  } catch (error) {
    if (!(error instanceof Unavailable || error instanceof RefusedByProcessor)) throw error;
    return { checkout, received, state: null };
  }
}

async function ownCheckout(
  tx: Transaction,
  { request }: PartnerVisit,
  which: { partnerId: string; reference: string },
) {
  const found = await readCheckout(tx, which);
  if (found === undefined) throw refuse('page_unknown', { path: request.url });
  return found;
}

/** So that no one can pay with it. */
export async function cancelPayment(visit: PartnerVisit, reference: string): Promise<PartnerAnswer> {
  const { context, partnerId } = visit;
  const checkout = await context.database.reading((tx) => ownCheckout(tx, visit, { partnerId, reference }));
  const to = `/place/payments/${reference}`;
  if (checkout.ending !== null) return { to };
  try {
    await endCheckout(contextOf(visit), checkout, 'canceled');
  } catch (error) {
    if (!(error instanceof Unavailable || error instanceof RefusedByProcessor)) throw error;
    const screen = paymentScreen(await readPayment(visit, reference), visit);
    return {
      screen: {
        ...screen,
        content: (
          <>
            {UNREACHABLE}
            {screen.content}
          </>
        ),
      },
      status: 422,
    };
  }
  return { to };
}

const UNREACHABLE = (
  <p class="problem" role="alert">
    The payment processor cannot be reached at present. Nothing was changed. Try again in a minute.
  </p>
);

type Standing = Readonly<{
  chip: string;
  tone: Tone;
  text: string;
  /** Whether the contact can still pay or cancel it here. */
  isOpen?: true;
}>;

const AGAIN = 'Nothing was paid. Choose the invoices again if you still want to pay them.';

function standingOf({ checkout, received, state }: PaymentView, processor: string): Standing {
  const { ending, currency, invoices } = checkout;
  if (received !== undefined) {
    const isWhole = Amount.of(received.unapplied, currency).isZero();
    const rest =
      `${moneyText(received.unapplied, currency)} could not be applied, because an invoice was settled or changed ` +
      'in the meantime. It is kept on your account.';
    return { chip: 'paid', tone: 'good', text: `Thank you. ${isWhole ? 'All invoices are paid.' : rest}` };
  }
  switch (ending ?? state) {
    case 'paid':
      return {
        chip: 'paid',
        tone: 'good',
        text: `${processor} has received your payment. The invoices will show as paid within minutes.`,
      };
    case 'ordered':
      return {
        ...{ chip: 'debit ordered', tone: 'warn' },
        text: 'Your bank debit is under way. The invoices will be paid in a few business days. Do not pay them again.',
      };
    case 'failed':
      return { chip: 'failed', tone: 'bad', text: `Your bank did not carry out the debit. ${AGAIN}` };
    case 'expired':
      return { chip: 'expired', tone: 'plain', text: `The ${processor} page expired after an hour. ${AGAIN}` };
    case 'canceled':
      return { chip: 'canceled', tone: 'plain', text: AGAIN };
    case 'replaced':
      return { chip: 'replaced', tone: 'plain', text: 'You started another payment with one of these invoices.' };
    case 'changed':
      return { chip: 'ended', tone: 'plain', text: `The balance of an invoice has changed. ${AGAIN}` };
    case 'refused':
    case 'not_made':
      return { chip: 'not started', tone: 'bad', text: `${processor} did not accept this payment. ${AGAIN}` };
    case 'open':
      return invoices.every((each) => isAsked(each, currency))
        ? {
            ...{ chip: 'not paid yet', tone: 'plain', isOpen: true },
            text: `Nothing is paid yet. ${processor} shows the same invoices and lets you choose how to pay.`,
          }
        : { chip: 'changed', tone: 'warn', text: `The balance of an invoice has changed. ${AGAIN}` };
    default:
      return {
        ...{ chip: 'unknown', tone: 'warn' },
        text: `${processor} cannot be reached at present. Check again in a minute, before you pay again.`,
      };
  }
}

const isAsked = ({ status, balance, amount }: CheckoutPart, currency: string) =>
  status === 'open' && Amount.of(balance, currency).equals(Amount.of(amount, currency));

export function paymentScreen(view: PaymentView, { reader }: PartnerVisit): PartnerScreen {
  const { checkout, received } = view;
  const { reference, currency, amount, invoices, url, expires_at, ordered_on } = checkout;
  const processor = capitalized(checkout.provider);
  const { chip, tone, text, isOpen } = standingOf(view, processor);
  const applied = new Map(received?.applied.map((each) => [each.document_id, each.amount]));
  const columns: Column<CheckoutPart>[] = [
    { heading: 'Number', cell: numberCell },
    { heading: 'To pay', number: true, cell: (part) => <Money amount={part.amount} currency={currency} /> },
    ...(received === undefined
      ? []
      : [
          {
            heading: 'Applied',
            number: true,
            cell: ({ document_id }: CheckoutPart) => {
              const part = applied.get(document_id);
              return part === undefined ? <None /> : <Money amount={part} currency={currency} />;
            },
          },
        ]),
  ];
  return {
    title: `Payment of ${plural(invoices.length, 'invoice')}`,
    crumbs: [{ name: reader.partner, href: '/place' }],
    lead: <Chip tone={tone}>{chip}</Chip>,
    actions: isOpen && url !== null && (
      <>
        <a class="button main" href={url} rel="noreferrer">
          {`Pay ${moneyText(amount, currency)}`}
        </a>
        <Form action={`/place/payments/${reference}/cancel`} token={reader.formToken}>
          <button type="submit">Cancel</button>
        </Form>
      </>
    ),
    content: (
      <div class="stack">
        <p>{text}</p>
        <TableCard title="Invoices" columns={columns} rows={invoices} nothing="No invoices." />
        <Card title="Payment">
          <Facts
            facts={[
              ['Total', <Money amount={amount} currency={currency} />],
              ['By', processor],
              ['Open until', isOpen && <Instant at={expires_at} />],
              ['Debit ordered on', ordered_on],
              ['Received on', received?.received_on],
            ]}
          />
        </Card>
        {!isOpen && (
          <p>
            <a class="button" href="/place">
              Your invoices
            </a>
          </p>
        )}
      </div>
    ),
  };
}
