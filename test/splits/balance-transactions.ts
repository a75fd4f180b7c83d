/** Balance transactions as the processor's API gives them, with their source expanded; amounts in its smallest unit. */

let made = 0;
const fresh = (prefix: string): string => {
  made += 1;
  return `${prefix}_${String(made).padStart(8, '0')}`;
};

export interface Told {
  readonly id: string;
  readonly object: 'balance_transaction';
  readonly type: string;
  readonly currency: string;
  readonly amount: number;
  readonly fee: number;
  readonly net: number;
  readonly exchange_rate?: number;
  /** Seconds since 1970. */
  readonly created: number;
  readonly source: Record<string, unknown> & { readonly id: string };
}

const seconds = (instant: string): number => Math.floor(Date.parse(instant) / 1000);

function told(
  type: string,
  amount: number,
  at: string,
  source: Told['source'],
  { fee = 0, currency = 'usd' }: { fee?: number; currency?: string } = {},
): Told {
  const created = seconds(at);
  return {
    id: fresh('txn'),
    object: 'balance_transaction',
    type,
    currency,
    amount,
    fee,
    net: amount - fee,
    created,
    source,
  };
}

type Metadata = Readonly<Record<string, string>>;

/** A share from a platform's destination charge or transfer. */
export const share = (amount: number, at: string, metadata: Metadata = {}, currency = 'usd'): Told =>
  told(
    'payment',
    amount,
    at,
    { id: fresh('py'), object: 'charge', source_transfer: fresh('tr'), livemode: false, metadata },
    { currency },
  );

/** A charge on our own account, whose application fee went to the platform (7.3.3 as documented). */
export const misrouted = (amount: number, fee: number, at: string, metadata: Metadata = {}): Told =>
  told(
    'charge',
    amount,
    at,
    { id: fresh('ch'), object: 'charge', application_fee: fresh('fee'), livemode: false, metadata },
    { fee },
  );

/** A part of a transfer that was reversed. The refund on our account names the payment and nothing else. */
export const reversedTransfers = (of: Told, amount: number, at: string): Told =>
  told(
    'payment_refund',
    -amount,
    at,
    { id: fresh('pyr'), object: 'refund', charge: of.source.id, source_transfer_reversal: fresh('trr'), metadata: {} },
    { currency: of.currency },
  );

/** The same, converted by the processor to our account's own currency: its amount there, in the smallest unit. */
export function converted(of: Told, amount: number, rate: string, currency = 'usd'): Told {
  const signed = of.amount < 0 ? -amount : amount;
  const source = { ...of.source, amount: Math.abs(of.amount), currency: of.currency };
  return { ...of, currency, amount: signed, net: signed, exchange_rate: Number(rate), source };
}

/** A dispute that the bank decided against a charge on our own account. */
export const disputed = (of: Told, amount: number, at: string): Told =>
  told('adjustment', -amount, at, { id: fresh('dp'), object: 'dispute', charge: of.source.id, livemode: false });

/** A payout. The processor never lists the contents of a manual one. */
export const payout = (amount: number, at: string, { automatic = true } = {}): Told =>
  told('payout', -amount, at, { id: fresh('po'), object: 'payout', automatic });

/** A payout that failed and was returned. */
export const payoutFailed = (of: Told, at: string): Told => told('payout_failure', -of.amount, at, of.source);

/** A fee of the processor for the account itself. */
export const accountFee = (amount: number, at: string): Told =>
  told('stripe_fee', -amount, at, { id: fresh('fee'), object: 'fee' });

export const ndjson = (balance_transactions: readonly object[]): string =>
  balance_transactions.map((each) => `${JSON.stringify(each)}\n`).join('');
