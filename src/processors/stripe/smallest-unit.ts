/**
 * Amounts as the payment processor writes them: integers of the currency's smallest unit. What can't be written exactly
 * is refused, never rounded. Imports nothing, so that a partner's own program can use it too.
 * Source: Stripe, "Supported currencies": zero-decimal, three-decimal and special-case currencies.
 */

const NO_DECIMALS = 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' ');
const THREE_DECIMALS = 'BHD JOD KWD OMR TND'.split(' ');
/** Currencies without decimals that Stripe writes with two, which must be zeros. */
const TWO_ZEROS = ['ISK', 'UGX'];
/** ISO 4217 currencies in which Stripe takes no payments: units of account, and some of three decimals. */
const NOT_ACCEPTED_BY_STRIPE = ['CLF', 'UYW', 'UYI', 'IQD', 'LYD'];

/** A PaymentIntent's amount has at most eight digits: 999,999.99 in a currency of two decimals. */
export const MOST_DIGITS = 8;

export type SmallestUnit = { readonly units: number } | { readonly reason: string };

/** A plain decimal that is not negative, in units of the processor, or why it has none. */
export function smallestUnit(amount: string, currency: string): SmallestUnit {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(amount);
  if (match === null) return { reason: `'${amount}' is not a plain decimal that is zero or more` };
  if (NOT_ACCEPTED_BY_STRIPE.includes(currency)) return { reason: `Stripe takes no payments in ${currency}` };
  const fraction = (match[2] ?? '').replace(/0+$/, '');
  const digits = decimalsOf(currency);
  if ((TWO_ZEROS.includes(currency) || digits === 0) && fraction !== '') {
    return { reason: `Stripe takes ${currency} without decimals, and ${amount} has some` };
  }
  if (fraction.length > digits) {
    return { reason: `Stripe counts ${currency} with ${digits} decimals, and ${amount} has more` };
  }
  const units = Number(`${match[1]}${fraction.padEnd(digits, '0')}`);
  if (units >= 10 ** MOST_DIGITS) {
    return { reason: `${amount} ${currency} is more than Stripe takes at once (${MOST_DIGITS} digits)` };
  }
  if (digits === 3 && units % 10 !== 0) {
    return { reason: `Stripe takes ${currency} in steps of 0.010, and ${amount} is not a multiple of that` };
  }
  return { units };
}

/** A whole number of the smallest unit as a decimal: `-1250` → `-12.50`. Undefined where Stripe takes no payments in it. */
export function fromSmallestUnit(units: string, currency: string): string | undefined {
  const [, sign, whole] = /^(-?)(\d+)$/.exec(units) ?? [];
  if (NOT_ACCEPTED_BY_STRIPE.includes(currency) || whole === undefined) return undefined;
  const digits = decimalsOf(currency);
  const figures = whole.padStart(digits + 1, '0');
  return `${sign}${digits === 0 ? figures : `${figures.slice(0, -digits)}.${figures.slice(-digits)}`}`;
}

/** Decimals of a currency as Stripe counts them; undefined where it takes no payments in it. */
export const processorDecimals = (currency: string): number | undefined =>
  NOT_ACCEPTED_BY_STRIPE.includes(currency) ? undefined : decimalsOf(currency);

/** Decimals as Stripe counts them, which are not always those of ISO 4217. */
const decimalsOf = (currency: string): number =>
  NO_DECIMALS.includes(currency) ? 0 : THREE_DECIMALS.includes(currency) ? 3 : 2;
