/**
 * What moved on the service's account, as a balance transaction of the processor tells it. Pure. A balance transaction
 * says by how much; its source says what it was: the share of a payment, a reversal, a dispute, or something that has
 * nothing to do with quotes (a payout, a fee).
 */
import { z } from 'zod';
import { amountOfUnits } from './events.ts';

/**
 * `share`: what a platform sent us. `misrouted`: a charge made on our own account, as 7.3.3 is documented, of which we
 * get what its fee to the platform leaves. `reversal`: a share pulled back. `dispute`: of a charge on our own account.
 * `other`: moves no share.
 */
export type BalanceTransactionKind = 'share' | 'misrouted' | 'reversal' | 'dispute' | 'other';

export interface BalanceTransaction {
  /** The processor's id, once per account: `txn_…`. */
  readonly id: string;
  /** As the processor calls it: `payment`, `payment_refund`, `payout`, … */
  readonly type: string;
  readonly kind: BalanceTransactionKind;
  readonly currency: string;
  /** In major units; net = amount − fee is what the balance changed by. */
  readonly amount: string;
  readonly fee: string;
  readonly net: string;
  /** ISO instant. */
  readonly moved_at: string;
  /** The payment, refund or dispute on our account that it is of: `py_…`, `pyr_…`. */
  readonly payment: string | null;
  /** The payment on our account that a reversal or dispute takes from. */
  readonly of_payment: string | null;
  /** The platform's transfer, or its reversal: `tr_…`, `trr_…`. */
  readonly transfer: string | null;
  /** As the metadata of our payment says. */
  readonly quote_id: string | null;
  readonly requote_id: string | null;
  readonly enrollment_id: string | null;
  /** As it came. */
  readonly payload: string;
}

// Numbers arrive as their source texts, see parseExactJson.
const whole = z.string().regex(/^-?\d{1,15}$/, 'must be a whole number of the smallest unit');
const id = z.string().min(1).max(255);
/** An object that was expanded, or its id alone. */
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
});

const sourceSchema = z.looseObject({
  id,
  object: z.string(),
  metadata: z.record(z.string(), z.string()).nullish(),
  source_transfer: reference,
  source_transfer_reversal: reference,
  charge: reference,
  application_fee: reference,
  livemode: z.boolean().nullish(),
});
type Source = z.output<typeof sourceSchema>;

export type BalanceTransactionReading =
  | { readonly balance_transaction: BalanceTransaction }
  | { readonly problem: string };

/**
 * Reads one balance transaction, its numbers as texts; `payload` is kept beside it as it came. Test money is none of
 * production's, and real money none of a sandbox's: `live` says which is wanted.
 */
export function readBalanceTransaction(value: unknown, payload: string, live: boolean): BalanceTransactionReading {
  const parsed = transactionSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { problem: `is no balance transaction: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}` };
  }
  const { id: transaction, type, created } = parsed.data;
  const currency = parsed.data.currency.toUpperCase();
  const amounts = [parsed.data.amount, parsed.data.fee, parsed.data.net].map((units) =>
    amountOfUnits(units, currency)?.toString(),
  );
  const [amount, fee, net] = amounts;
  if (amount === undefined || fee === undefined || net === undefined) {
    return { problem: `is of ${currency}, in whose own units its amounts cannot be written` };
  }
  if (Number(parsed.data.amount) - Number(parsed.data.fee) !== Number(parsed.data.net)) {
    return { problem: `does not add up: ${amount} less ${fee} is not ${net}` };
  }
  const source = sourceOf(parsed.data.source);
  if (typeof source?.livemode === 'boolean' && source.livemode !== live) {
    return { problem: `is of the processor's ${source.livemode ? 'live' : 'test'} mode, which does not belong here` };
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
      moved_at: new Date(Number(created) * 1000).toISOString(),
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

function sourceOf(source: z.output<typeof reference>): Source | undefined {
  const parsed = sourceSchema.safeParse(source);
  return parsed.success ? parsed.data : undefined;
}

function kindOf(type: string, source: Source | undefined): BalanceTransactionKind {
  switch (source?.object) {
    case 'charge':
      // A refund that failed gives the payment back: it is of the charge, too, and a share again.
      if (idOf(source.source_transfer) !== null) return 'share';
      // A charge on our account that is no share: of a quote, as 7.3.3 is documented, or a payment of an invoice of ours.
      return isOfQuote(source) ? 'misrouted' : 'other';
    case 'refund':
      return 'reversal';
    case 'dispute':
      return 'dispute';
    default:
      break;
  }
  // Without its source, which was not asked for or is of a kind that is new to us, the type alone tells.
  if (type === 'payment') return 'share';
  if (type === 'payment_refund' || type === 'payment_reversal' || type === 'refund') return 'reversal';
  return 'other';
}

function isOfQuote({ application_fee, metadata }: Source): boolean {
  const { quote_id, enrollment_id, invoice } = metadata ?? {};
  if (named(quote_id) !== null || named(enrollment_id) !== null) return true;
  return idOf(application_fee) !== null && named(invoice) === null;
}

const idOf = (value: z.output<typeof reference>): string | null =>
  typeof value === 'string' ? value : (value?.id ?? null);

/** Metadata is free text that partners write: an empty one says nothing. */
const named = (text: string | undefined): string | null =>
  text === undefined || text.trim() === '' ? null : text.trim();
