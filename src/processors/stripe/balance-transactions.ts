/**
 * Balance transactions of Stripe. The source of a transaction shows what it is: the share of a payment, a reversed
 * transfer, a dispute, or something unrelated to quotes, such as a payout or a fee.
 */
import { Decimal } from 'decimal.js';
import { z } from 'zod';
import { reasonOf } from '#errors/refusals';
import { parseExactJson } from '#json';
import { Amount } from '#money';
import {
  BalanceTransaction,
  BalanceTransactionReading,
  BalanceTransactionSource,
  Unavailable,
} from '#processors/processor';
import { openStripe, withoutKey } from './client.ts';
import { amountOfUnits } from './events.ts';

const PAGE = 100;

export const listBalanceTransactions: BalanceTransactionSource['list'] = async function* (access, which, live) {
  const stripe = await openStripe(access, { maxNetworkRetries: 2, timeout: 30_000 });
  const filter = { ...filterOf(which), limit: PAGE, expand: ['data.source'] };
  try {
    for await (const transaction of stripe.balanceTransactions.list(filter)) {
      // The numbers are integers that a double represents exactly. parseExactJson reads them as texts.
      const payload = JSON.stringify(transaction);
      yield readBalanceTransaction(parseExactJson(payload), payload, live);
    }
  } catch (error) {
    throw new Unavailable(withoutKey(reasonOf(error)), { cause: error });
  }
};

function filterOf(which: Parameters<BalanceTransactionSource['list']>[1]) {
  if ('payout' in which) return { payout: which.payout };
  return which.since === null ? {} : { created: { gte: Math.floor(which.since.getTime() / 1000) } };
}

// Numbers are texts (parseExactJson).
const whole = z.string().regex(/^-?\d{1,15}$/, 'must be a whole number of the smallest unit');
const id = z.string().min(1).max(255);
const reference = z.union([id, z.looseObject({ id })]).nullish();

const transactionSchema = z.looseObject({
  id: id.regex(/^[\x21-\x7e]+$/, 'must be an id'),
  object: z.literal('balance_transaction'),
  type: z.string().min(1).max(100),
  currency: z.string().regex(/^[a-z]{3}$/, 'must be a currency such as usd'),
  amount: whole,
  fee: whole,
  net: whole,
  created: z.string().regex(/^\d{1,12}$/, 'must be seconds since 1970'),
  source: reference,
  exchange_rate: z
    .string()
    .regex(/^\d{1,15}(\.\d{1,30})?(e[+-]?\d{1,2})?$/i, 'must be a decimal')
    .nullish(),
});

const sourceSchema = z.looseObject({
  id,
  object: z.string(),
  amount: whole.nullish(),
  currency: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  source_transfer: reference,
  source_transfer_reversal: reference,
  charge: reference,
  application_fee: reference,
  livemode: z.boolean().nullish(),
});
type Source = z.output<typeof sourceSchema>;

/**
 * Reads a balance transaction whose numbers are texts. `payload` is kept unchanged. `live` tells whether real money is
 * expected: production refuses test money, and a sandbox refuses real money.
 */
export function readBalanceTransaction(value: unknown, payload: string, live: boolean): BalanceTransactionReading {
  const parsed = transactionSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return {
      id: idOfUnknown(value),
      problem: `is not a balance transaction: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`,
    };
  }
  const { id: transaction, type, created } = parsed.data;
  const currency = parsed.data.currency.toUpperCase();
  const amounts = [parsed.data.amount, parsed.data.fee, parsed.data.net].map((units) =>
    amountOfUnits(units, currency)?.toString(),
  );
  const [amount, fee, net] = amounts;
  if (amount === undefined || fee === undefined || net === undefined) {
    return { id: transaction, problem: `has amounts that the minor unit of ${currency} cannot express` };
  }
  if (BigInt(parsed.data.amount) - BigInt(parsed.data.fee) !== BigInt(parsed.data.net)) {
    return { id: transaction, problem: `does not add up: ${amount} less ${fee} is not ${net}` };
  }
  const source = sourceOf(parsed.data.source);
  if (typeof source?.livemode === 'boolean' && source.livemode !== live) {
    return {
      id: transaction,
      problem: `has the processor's ${source.livemode ? 'live' : 'test'} mode, which this environment does not accept`,
    };
  }
  const kind = kindOf(type, source);
  const metadata = source?.metadata ?? {};
  return {
    balance_transaction: {
      id: transaction,
      type,
      kind,
      currency,
      amount,
      fee,
      net,
      ...conversionOf(parsed.data, source),
      occurred_at: new Date(Number(created) * 1000).toISOString(),
      payment: source?.id ?? (typeof parsed.data.source === 'string' ? parsed.data.source : null),
      of_payment: kind === 'reversal' || kind === 'dispute' ? idOf(source?.charge) : null,
      transfer: idOf(source?.source_transfer) ?? idOf(source?.source_transfer_reversal),
      quote_id: named(metadata['quote_id']),
      requote_id: named(metadata['requote_id']),
      enrollment_id: named(metadata['enrollment_id']),
      payload,
    },
  };
}

type Conversion = Pick<BalanceTransaction, 'source_currency' | 'source_amount' | 'exchange_rate'>;
const NOT_CONVERTED: Conversion = { source_currency: null, source_amount: null, exchange_rate: null };

/**
 * Returns the source's amount if Stripe converted it, because the account holds no balance in its currency. The
 * source's amount times the rate must equal the amount of the balance transaction. For a source that moved only in
 * part, such as a failed refund, the product differs. Finance must then state the amount.
 */
function conversionOf(
  { amount, currency, exchange_rate }: z.output<typeof transactionSchema>,
  source: Source | undefined,
) {
  const sent = source?.currency?.toLowerCase();
  const units = source?.amount;
  if (!exchange_rate || !sent || !units || sent === currency) return NOT_CONVERTED;
  const from = amountOfUnits(units, sent);
  const to = amountOfUnits(amount, currency);
  if (from === undefined || to === undefined || from.isZero() || to.isZero()) return NOT_CONVERTED;
  if (!isConverted({ from: units, to: amount, rate: exchange_rate }, { from, to })) return NOT_CONVERTED;
  const signed = from.isNegative() === to.isNegative() ? from : from.negated();
  return {
    source_currency: signed.currency,
    source_amount: signed.toString(),
    exchange_rate: new Decimal(exchange_rate).toFixed(),
  };
}

/**
 * Stripe's rate converts between amounts in the smallest unit. If two currencies have different numbers of decimals,
 * the rate may instead convert between their major units. Both the rate and the amount are rounded.
 */
function isConverted(
  units: Readonly<{ from: string; to: string; rate: string }>,
  major: Readonly<{ from: Amount; to: Amount }>,
) {
  const fits = (from: string, to: string, step: InstanceType<typeof Decimal>) => {
    const target = new Decimal(to).abs();
    const off = new Decimal(from).abs().times(units.rate).minus(target).abs();
    return off.lessThanOrEqualTo(Decimal.max(step, target.times('0.001')));
  };
  const step = new Decimal(major.to.toString()).div(units.to).abs();
  return fits(units.from, units.to, new Decimal(1)) || fits(major.from.toString(), major.to.toString(), step);
}

function sourceOf(source: z.output<typeof reference>) {
  const parsed = sourceSchema.safeParse(source);
  return parsed.success ? parsed.data : undefined;
}

function kindOf(type: string, source: Source | undefined) {
  switch (source?.object) {
    case 'charge':
      // A failed refund returns the payment to the account. The balance transaction then belongs to the charge and is a
      // share again.
      if (idOf(source.source_transfer) !== null) return 'share';
      // A charge on our own account: either for a quote (7.3.3), or the payment of one of our invoices.
      return isOfQuote(source) ? 'misrouted' : 'other';
    case 'refund':
      return 'reversal';
    case 'dispute':
      return 'dispute';
    default:
      break;
  }
  // If the source is missing or unknown, only the type shows what the transaction is.
  if (type === 'payment') return 'share';
  if (type === 'payment_refund' || type === 'payment_reversal' || type === 'refund') return 'reversal';
  return 'other';
}

function isOfQuote({ application_fee, metadata }: Source) {
  const { quote_id, enrollment_id, invoice } = metadata ?? {};
  if (named(quote_id) !== null || named(enrollment_id) !== null) return true;
  return idOf(application_fee) !== null && named(invoice) === null;
}

const idOf = (value: z.output<typeof reference>) => (typeof value === 'string' ? value : (value?.id ?? null));

function idOfUnknown(value: unknown) {
  const given = (value as { id?: unknown } | null)?.id;
  return typeof given === 'string' ? given : '';
}

/** Metadata is free text from partners. An empty value counts as missing. */
const named = (text: string | undefined) => (text === undefined || text.trim() === '' ? null : text.trim());
