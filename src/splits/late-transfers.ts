/**
 * Transfers that arrive after an invoice has billed their quotes. A late transfer is the partner's money and pays the
 * invoice. For this, a part of the share becomes a payment. A reversed transfer reverses the payment.
 */

import { Transaction } from '#database/transaction';
import { IssueContext } from '#documents/issue/context';
import { failpoint } from '#failpoint';
import { Amount } from '#money';
import { smaller } from '#payments/apply';
import { lockPayments, openPaymentContext, PaymentContext, requestLinkChecks } from '#payments/context';
import { processorIdentity, shareIdentity } from '#payments/identities';
import { insertApplications, insertPaymentSources, insertPayments, NewApplication } from '#payments/insert.sql';
import { readPayables } from '#payments/open-items.sql';
import { reinstate, reverseAll } from '#payments/reverse';
import { Recording } from './accounts.sql.ts';
import {
  BilledQuote,
  insertSharePayments,
  NewSharePayment,
  readBilledQuotes,
  ShareOfBilled,
  SharePayment,
} from './late-transfers.sql.ts';

/** Uses new allocations to pay invoices for missing shares of their quotes, or to reverse such payments. */
export async function payBilledShares(tx: Transaction, acting: IssueContext, { eventId }: Recording) {
  if ((await readBilledQuotes(tx, { eventId })).length === 0) return;
  await lockPayments(tx);
  const quotes = await readBilledQuotes(tx, { eventId });
  const parts = quotes.flatMap((quote) => paymentPartsOf(quote).map((part) => ({ ...part, quote })));
  const takesBack = quotes.some((quote) => Object.values(reversalsOf(quote)).some((each) => each.length > 0));
  if (parts.length === 0 && !takesBack) return;
  const context = await openPaymentContext(tx, acting, {
    action: 'shares.pay',
    subject: 'invoices for missing shares',
    details: { shares: parts.map(({ share }) => share.share_allocation_id) },
  });
  await receive(tx, context, parts);
  // The quotes are read again, because an import may reverse a payment that it has just recorded.
  await takeBack(tx, context, await readBilledQuotes(tx, { eventId }));
  failpoint('shares.paid');
}

type Part = Readonly<{
  share: ShareOfBilled;
  amount: Amount;
}>;

/**
 * Returns the part of each received share that pays an invoice. A share pays no invoice if it is within the amount that
 * is still expected. Otherwise, if a share is within the billed amount, all of its money pays the invoice. Any other
 * share covers the expected amount first, and its remainder pays the invoice. Pure.
 */
function paymentPartsOf({ currency, owed, uncovered, shares }: BilledQuote) {
  const zero = Amount.zero(currency);
  let toCome = atLeast(Amount.of(owed, currency), zero);
  let billed = atLeast(Amount.of(uncovered, currency), zero);
  const parts: Part[] = [];
  for (const share of shares) {
    const amount = Amount.of(share.amount, currency);
    if (share.below || !amount.isPositive()) continue;
    const fits = (room: Amount) => !room.minus(amount).isNegative();
    const beyond = atLeast(amount.minus(toCome), zero);
    const part = fits(toCome) ? zero : fits(billed) ? amount : smaller(beyond, billed);
    toCome = atLeast(toCome.minus(amount.minus(part)), zero);
    billed = billed.minus(part);
    if (part.isPositive()) parts.push({ share, amount: part });
  }
  return parts;
}

const atLeast = (amount: Amount, least: Amount) => (amount.minus(least).isNegative() ? least : amount);

async function receive(
  tx: Transaction,
  context: PaymentContext,
  parts: readonly (Part & { readonly quote: BilledQuote })[],
) {
  if (parts.length === 0) return;
  const identityOf = ({ share }: Part) => shareIdentity(share.account, share.share_allocation_id);
  const payments = parts.map((part) => ({
    ...{ identity: identityOf(part), source: 'processor' as const, reference: part.share.balance_transaction },
    ...{ partner_id: part.quote.partner_id, currency: part.quote.currency, amount: part.amount.toString() },
    ...{ method: 'link' as const, account: part.share.account, received_on: part.share.occurred_on },
  }));
  const ids = await insertPayments(tx, context, payments);
  const received = parts.map((part) => ({ ...part, payment_id: ids.get(identityOf(part)) as number }));
  await insertPaymentSources(
    tx,
    context,
    payments.map(({ identity, source, reference }, index) => ({
      ...{ identity, source, reference, payment_id: received[index]?.payment_id as number },
    })),
  );
  await insertSharePayments(
    tx,
    context,
    received.map(({ share, payment_id, quote, amount }) => ({
      ...{ share_allocation_id: share.share_allocation_id, payment_id, payment_reversal_id: null },
      ...{ currency: quote.currency, amount: amount.toString() },
    })),
  );
  await apply(tx, context, received);
}

/**
 * Applies payments to the invoices that billed their quotes, the oldest first, up to their balances. The remainder is
 * unapplied cash.
 */
async function apply(
  tx: Transaction,
  context: PaymentContext,
  parts: readonly (Part & Readonly<{ quote: BilledQuote; payment_id: number }>)[],
) {
  const numbers = [...new Set(parts.flatMap(({ quote }) => quote.numbers))];
  const payable = new Map((await readPayables(tx, { numbers })).map((each) => [each.number, each]));
  const balances = new Map<string, Amount>();
  const applications: NewApplication[] = [];
  for (const { quote, share, amount, payment_id } of parts) {
    let left = amount;
    for (const number of quote.numbers) {
      const document = payable.get(number);
      if (document === undefined || document.status !== 'open' || !left.isPositive()) continue;
      const balance = balances.get(number) ?? Amount.of(document.balance, quote.currency);
      const part = smaller(left, balance);
      if (!part.isPositive()) continue;
      left = left.minus(part);
      balances.set(number, balance.minus(part));
      applications.push({
        payment_id,
        document_id: document.document_id,
        amount: part.toString(),
        applied_on: share.occurred_on,
        confidence: '1',
        evidence: {
          rule: 'processor',
          reference: { number, field: 'quote_id', found: quote.quote_id },
          why: `the share of quote ${quote.quote_id} arrived after ${number} had billed it`,
        },
      });
    }
  }
  await insertApplications(tx, context, applications);
  await requestLinkChecks(
    tx,
    applications.map((each) => each.document_id),
  );
}

type PaymentReversal = Readonly<{
  share: ShareOfBilled;
  payment: SharePayment;
  amount: Amount;
}>;

/**
 * Plans the payments to reverse because of reversed transfers and wrong matches, and the reversals to undo because of a
 * corrected match.
 */
function reversalsOf(quote: BilledQuote) {
  const { currency, shares, payments } = quote;
  const zero = Amount.zero(currency);
  const left = new Map(payments.map((each) => [each.payment_id, Amount.of(each.left, currency)]));
  let asShares = atLeast(Amount.of(quote.as_shares, currency), zero);
  const back: PaymentReversal[] = [];
  const again: { share: ShareOfBilled; payment: SharePayment }[] = [];
  for (const share of shares) {
    const amount = Amount.of(share.amount, currency);
    if (!amount.isNegative()) {
      // If a reversed transfer was matched to a wrong quote, the payment that it reversed is reinstated.
      if (share.below) {
        for (const payment of payments) {
          if (payment.taken_by.some((each) => each.balance_transaction_id === share.balance_transaction_id))
            again.push({ share, payment });
        }
      }
      asShares = asShares.plus(amount).minus(Amount.of(share.paid, currency));
      continue;
    }
    const mistake = !share.below;
    const named = mistake || share.of_payment !== null;
    const from = payments.filter(
      (each) =>
        !named ||
        (mistake ? each.balance_transaction_id === share.balance_transaction_id : each.payment === share.of_payment),
    );
    // If a reversal names no payment, it reduces the earliest shares.
    let rest = named ? amount.negated() : atLeast(amount.negated().minus(asShares), zero);
    asShares = atLeast(asShares.plus(amount), zero);
    for (const payment of from) {
      const part = smaller(rest, left.get(payment.payment_id) ?? zero);
      if (!part.isPositive()) continue;
      rest = rest.minus(part);
      left.set(payment.payment_id, (left.get(payment.payment_id) ?? zero).minus(part));
      back.push({ share, payment, amount: part });
    }
  }
  return { back, again };
}

async function takeBack(tx: Transaction, context: PaymentContext, quotes: readonly BilledQuote[]) {
  const plans = quotes.map((quote) => ({ quote, ...reversalsOf(quote) }));
  const rows: NewSharePayment[] = [];
  let waiting = plans.flatMap(({ quote, back }) => back.map((each) => ({ ...each, quote })));
  // Each round reverses a payment at most once. Cash that one reversal makes unapplied is not available for the next
  // reversal.
  while (waiting.length > 0) {
    const seen = new Set<number>();
    const now = waiting.filter(({ payment }) => !seen.has(payment.payment_id) && seen.add(payment.payment_id));
    waiting = waiting.filter((each) => !now.includes(each));
    const identityOf = ({ share, payment }: PaymentReversal) =>
      processorIdentity(share.account, `share ${share.share_allocation_id}|${payment.payment_id}`);
    const ids = await reverseAll(
      tx,
      context,
      now.map((each) => ({
        identity: identityOf(each),
        payment_id: each.payment.payment_id,
        amount: each.amount.toString(),
        kind: each.share.below ? (each.share.disputed ? ('disputed' as const) : ('refunded' as const)) : 'mistake',
        reason: each.share.below
          ? `reversed by ${each.share.balance_transaction}`
          : `${each.share.balance_transaction} does not belong to quote ${each.quote.quote_id}`,
        reversed_on: each.share.occurred_on,
      })),
    );
    for (const each of now) {
      rows.push({
        share_allocation_id: each.share.share_allocation_id,
        payment_id: each.payment.payment_id,
        payment_reversal_id: ids.get(identityOf(each))?.payment_reversal_id as number,
        currency: each.quote.currency,
        amount: each.amount.negated().toString(),
      });
    }
  }
  for (const { quote, again } of plans) {
    for (const { share, payment } of again) {
      const taken = payment.taken_by.filter((each) => each.balance_transaction_id === share.balance_transaction_id);
      for (const { payment_reversal_id, amount } of taken) {
        await reinstate(tx, context, payment_reversal_id, share.occurred_on);
        rows.push({
          share_allocation_id: share.share_allocation_id,
          payment_id: payment.payment_id,
          payment_reversal_id,
          currency: quote.currency,
          amount,
        });
      }
    }
  }
  await insertSharePayments(tx, context, rows);
}
