/**
 * Actions on payments for random histories: one function each, which chooses among what there is and does nothing where
 * there is nothing to choose from. A refusal is an answer; whatever else is thrown is a bug.
 */
import { bankUnbook } from '../../src/actions/bank.ts';
import { paymentApply } from '../../src/actions/payment/apply.ts';
import { paymentCloseException } from '../../src/actions/payment/exception.ts';
import { paymentForgetAccount } from '../../src/actions/payment/payer.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import { listExceptions } from '../../src/payments/exceptions.ts';
import { readPayerAccounts } from '../../src/payments/payer-accounts.ts';
import type { PaymentJson } from '../../src/payments/payment.ts';
import { confirmed, contextOf } from '../property/confirmed.ts';
import type { Books } from './books.ts';
import { stripePayment } from './stripe-events.ts';

/** From 0 up to, but not including, 1. */
export type Random = () => number;
/** False where there was nothing to do it to, or it was refused. */
export type PaymentAction = (books: Books, random: Random, day: string) => Promise<boolean>;

const pick = <Item>(items: readonly Item[], random: Random): Item | undefined =>
  items[Math.floor(random() * items.length)];
const chance = (random: Random, one: number): boolean => random() < one;

/** Amounts around a balance: all of it, a part, too much, a little too little. */
function around(balance: string, digits: number, random: Random): string {
  const minor = Math.round(Number(balance) * 10 ** digits);
  const amount = pick([minor, minor, Math.ceil(minor / 3), minor + 7, minor - 1], random) ?? minor;
  return (Math.max(1, amount) / 10 ** digits).toFixed(digits);
}

const digitsOf = (amount: string): number => amount.split('.')[1]?.length ?? 0;
let references = 0;

async function unlessRefused(action: Promise<unknown>): Promise<boolean> {
  try {
    await action;
    return true;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}

async function invoices(books: Books) {
  return (await books.documents()).filter((each) => each.document === 'invoice' && Number(each.amount_due) > 0);
}

export const PAYMENT_ACTS: Readonly<Record<string, PaymentAction>> = {
  async 'record by hand'(books, random, day) {
    const invoice = pick(await invoices(books), random);
    if (invoice === undefined) return false;
    const { number, currency, partner_id } = invoice;
    const amount = around(invoice.balance, digitsOf(invoice.balance), random);
    // Now and then the same once more.
    if (!chance(random, 0.3)) references += 1;
    const to = chance(random, 0.7) ? { number } : { partnerId: partner_id };
    return unlessRefused(books.record({ ...to, amount, currency, receivedOn: day, reference: `FT-${references}` }));
  },
  async 'import a bank file'(books, random, day) {
    const open = await invoices(books);
    if (open.length === 0) return false;
    const lines = Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
      const invoice = pick(open, random);
      if (invoice === undefined) return '';
      references += 1;
      const amount = around(invoice.balance, digitsOf(invoice.balance), random);
      const dressed = pick(
        [invoice.number, invoice.number.replaceAll('-', ''), invoice.number.replaceAll('0', 'O'), 'thanks'],
        random,
      );
      const named = chance(random, 0.7) ? 'Harbour Lights Ticketing' : 'Somebody Else';
      const sign = chance(random, 0.15) ? '-' : '';
      const text = sign === '' ? dressed : `RETURN R01 ${dressed}`;
      return `${day},${sign}${amount},${invoice.currency},0001 ${invoice.currency},B-${references},${text},${named},ACC-${invoice.partner_id}\n`;
    });
    const text = `date,amount,currency,account,bank_reference,text,payer,payer_account\n${lines.join('')}`;
    await books.bankText('random.csv', text);
    if (chance(random, 0.2)) await books.bankText('random.csv', text);
    // The same lines from another export, which has no references.
    if (chance(random, 0.2)) await books.bankText('again.csv', text.replaceAll(/,B-\d+,/g, ',,'));
    return true;
  },
  async 'events of the processor'(books, random, day) {
    const invoice = pick(await invoices(books), random);
    if (invoice === undefined) return false;
    references += 1;
    const digits = digitsOf(invoice.balance);
    const amount = Math.round(Number(around(invoice.balance, digits, random)) * 10 ** digits);
    const currency = invoice.currency.toLowerCase();
    const linked = stripePayment({ invoice: invoice.number, amount, currency, key: `R${references}`, on: day });
    const events = [linked.ordered(), linked.completed(), linked.intentSucceeded()];
    const half = Math.ceil(amount / 2);
    if (chance(random, 0.3)) events.push(linked.refunded(half, 5));
    if (chance(random, 0.1)) events.push(linked.refund(half, { made: 5, after: 10 }));
    if (chance(random, 0.1)) events.push(linked.changed(Math.floor(half / 2), 15));
    if (chance(random, 0.3)) events.push(linked.disputed(), linked.closed(chance(random, 0.5) ? 'won' : 'lost'));
    if (chance(random, 0.1)) events.push(linked.closed('won'));
    await books.events(
      events
        .map((each) => ({ each, at: random() }))
        .sort((a, b) => a.at - b.at)
        .map(({ each }) => each),
    );
    return true;
  },
  async 'payout of the processor'(books, random, day) {
    const link = (each: PaymentJson) => each.method === 'link' && Number(each.amount) > 1;
    const payment = pick((await books.payments()).filter(link), random);
    if (payment === undefined) return false;
    references += 1;
    const kept = pick([0, 0.97, 0.5, 1.2], random) ?? 0;
    const amount = (Number(payment.amount) * (kept || 1)).toFixed(digitsOf(payment.amount));
    const text = chance(random, 0.7) ? `STRIPE ${payment.reference}` : 'STRIPE TRANSFER';
    const line = `${day},${amount},${payment.currency},0001 ${payment.currency},PO-${references},${text},STRIPE,\n`;
    await books.bankText('payout.csv', `date,amount,currency,account,bank_reference,text,payer,payer_account\n${line}`);
    return true;
  },
  async 'refund that leaves the bank'(books, random, day) {
    const payment = pick(
      (await books.payments()).filter((each) => each.method !== 'link' && Number(each.unapplied) > 0),
      random,
    );
    if (payment === undefined) return false;
    references += 1;
    const { payment_id: paymentId, unapplied: amount, currency } = payment;
    const line = `${day},-${amount},${currency},0002 ${currency},OUT-${references},SENT BACK,,\n`;
    const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
    const actions = [
      () => books.bankText('refund.csv', `${head}${line}`),
      () => books.reverse({ paymentId, amount, kind: 'refunded', reason: `sent back, OUT-${references}` }),
    ];
    for (const action of chance(random, 0.5) ? actions : actions.reverse()) await action();
    // The same debit from another export; one of two refunds of the amount must not take it.
    if (chance(random, 0.4)) {
      await books.bankText('refund-again.csv', `${head}${line.replace(`OUT-${references}`, '')}`);
    }
    return true;
  },
  async 'accept a suggestion'(books, random) {
    const listed = await books.database.reading((tx) => listExceptions(tx, books.acting.settings));
    const offers = listed.flatMap(({ payment_id, kind, sets, suggestions }) =>
      payment_id === null || kind === 'possible_duplicate'
        ? []
        : [
            ...sets.map(({ numbers }) => ({ payment_id, numbers, whole: true })),
            ...suggestions.flatMap(({ number }) =>
              number === null ? [] : [{ payment_id, numbers: [number], whole: false }],
            ),
          ],
    );
    const offer = pick(offers, random);
    if (offer === undefined) return false;
    const { payment_id, numbers, whole } = offer;
    await books.apply(payment_id, numbers).catch((error: unknown) => {
      throw new Error(`the suggestion of ${numbers.join(' and ')} for payment ${payment_id} is refused`, {
        cause: error,
      });
    });
    for (const number of whole ? numbers : []) {
      const { status } = await books.balance(number);
      if (status !== 'paid') throw new Error(`${number} is ${status} after its set was accepted`);
    }
    return true;
  },
  async 'reverse a duplicate'(books, random) {
    const held = (await books.database.reading(readExceptions)).filter(({ kind }) => kind === 'possible_duplicate');
    const kept = pick(held, random);
    if (kept !== undefined && chance(random, 0.3)) {
      const { exception } = kept;
      await confirmed(contextOf(books), paymentCloseException, { exception, reason: 'another payment' });
      return true;
    }
    const payments = await books.payments();
    const payment = pick(payments, random);
    const other = pick(
      payments.filter((each) => each !== payment && each.amount === payment?.amount),
      random,
    );
    if (payment === undefined || other === undefined) return false;
    const duplicate = { paymentId: payment.payment_id, duplicateOf: other.payment_id };
    return unlessRefused(books.reverse({ ...duplicate, kind: 'duplicate' }));
  },
  async apply(books, random) {
    const payment = pick(
      (await books.payments()).filter((each) => Number(each.unapplied) > 0),
      random,
    );
    const invoice = pick(await invoices(books), random);
    return payment && invoice ? unlessRefused(books.apply(payment.payment_id, invoice.number)) : false;
  },
  async 'apply less a bank fee'(books, random, day) {
    const open = (await invoices(books)).filter(({ status }) => status === 'open');
    const one = pick(open, random);
    if (one === undefined) return false;
    const { partner_id: partnerId, currency } = one;
    const other = open.find((each) => each.number > one.number && each.partner_id === partnerId);
    const owing = other === undefined || chance(random, 0.5) ? [one] : [one, other];
    const digits = digitsOf(one.balance);
    const minor = owing.reduce((sum, { balance }) => sum + Math.round(Number(balance) * 10 ** digits), 0);
    const fee = pick([1, 3, 5, 9], random) ?? 1;
    if (minor <= fee) return false;
    const of = (units: number) => (units / 10 ** digits).toFixed(digits);
    references += 1;
    const reference = `FEE-${references}`;
    const paid = { partnerId, amount: of(minor - fee), currency, receivedOn: day, reference };
    const { paymentId } = await books.record(paid);
    const numbers = owing.map(({ number }) => number);
    return unlessRefused(confirmed(contextOf(books), paymentApply, { paymentId, numbers, fee: of(fee) }));
  },
  async 'apply over partners'(books, random) {
    const payment = pick(
      (await books.payments()).filter((each) => Number(each.unapplied) > 0),
      random,
    );
    const open = (await invoices(books)).filter(
      (each) => each.status === 'open' && each.currency === payment?.currency && each.partner_id !== payment.partner_id,
    );
    const numbers = [pick(open, random), pick(open, random)].flatMap((each) => each?.number ?? []);
    if (payment === undefined || numbers.length === 0) return false;
    const once = [...new Set(numbers)];
    return unlessRefused(books.apply(payment.payment_id, chance(random, 0.5) ? once : once.slice(0, 1)));
  },
  async 'assign to a partner'(books, random) {
    const payment = pick(await books.payments(), random);
    const invoice = pick(await invoices(books), random);
    return payment && invoice ? unlessRefused(books.assign(payment.payment_id, invoice.partner_id)) : false;
  },
  async 'forget an account'(books, random) {
    const account = pick(await books.database.reading(readPayerAccounts), random);
    if (account === undefined) return false;
    const { payer_account } = account;
    await confirmed(contextOf(books), paymentForgetAccount, { account: payer_account });
    return true;
  },
  async unapply(books, random) {
    const payment = pick(
      (await books.payments()).filter((each) => Number(each.applied) > 0),
      random,
    );
    if (payment) await books.unapply(payment.payment_id);
    return payment !== undefined;
  },
  async "book money that is no customer's"(books, random) {
    const payment = pick(
      (await books.payments()).filter((each) => each.method !== 'link' && each.status !== 'reversed'),
      random,
    );
    if (payment === undefined) return false;
    const { payment_id: paymentId } = payment;
    return unlessRefused(books.reverse({ paymentId, kind: 'other', account: 'income:interest' }));
  },
  async 'book a bank line'(books, random) {
    const lines = await books.sql<{ bank_line_id: number; state: string }>(
      `SELECT bank_line_id::int, state FROM bank_line_states WHERE state IN ('unbooked', 'booked')`,
    );
    const line = pick(lines, random);
    if (line === undefined) return false;
    const { bank_line_id: bankLineId, state } = line;
    if (state === 'booked' && chance(random, 0.5)) {
      const unbooked = { bankLineId: [bankLineId], reason: 'looked at again' };
      return unlessRefused(confirmed(contextOf(books), bankUnbook, unbooked));
    }
    const kind = pick(['charges', 'interest', 'transfer'] as const, random) ?? 'charges';
    return unlessRefused(books.book({ bankLineId, kind }));
  },
  async 'reverse by the line that returned it'(books, random) {
    const found = await books.sql<{ bank_line_id: number; payment_id: number }>(
      `SELECT l.bank_line_id::int, p.payment_id::int FROM bank_lines l JOIN bank_line_states s USING (bank_line_id)
       JOIN payments p USING (currency) JOIN payment_balances b ON b.payment_id = p.payment_id
       WHERE s.state = 'unbooked' AND l.direction = 'debit' AND l.amount <= b.amount - b.reversed AND p.method <> 'link'`,
    );
    const one = pick(found, random);
    if (one === undefined) return false;
    return unlessRefused(books.reverse({ paymentId: one.payment_id, bankLineId: one.bank_line_id }));
  },
  async reverse(books, random) {
    const payment = pick(await books.payments(), random);
    if (payment === undefined || payment.status === 'reversed') return false;
    const amount = chance(random, 0.5) ? around(payment.amount, digitsOf(payment.amount), random) : undefined;
    const kind = chance(random, 0.8) ? 'returned' : 'refunded';
    return unlessRefused(books.reverse({ paymentId: payment.payment_id, amount, kind }));
  },
};
