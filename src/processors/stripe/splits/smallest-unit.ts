/**
 * Amounts in the payment processor's format: integers in the currency's smallest unit. Amounts that this format cannot
 * express are refused, never rounded. Imports nothing, so that a partner's program can use it too. Source: Stripe,
 * "Supported currencies": presentment currencies, zero-decimal, three-decimal and special-case currencies, minimum
 * charge amounts.
 */

const NO_DECIMALS = 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' ');
const THREE_DECIMALS = 'BHD JOD KWD OMR TND'.split(' ');
/** Currencies without decimals that Stripe nevertheless writes with two decimals, which must be zeros. */
const TWO_ZEROS = ['ISK', 'UGX'];
const TWO_DECIMALS =
  'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC ' +
  'CVE CZK DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR JMD KES KGS KHR KYD ' +
  'KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR ' +
  'PLN QAR RON RSD RUB SAR SBD SCR SEK SGD SHP SLE SOS SRD STD SZL THB TJS TOP TRY TTD TWD TZS UAH USD UYU UZS WST XCD ' +
  'XCG YER ZAR ZMW';

/**
 * ISO 4217 currencies in which Stripe accepts no payments: units of account, and some currencies with three decimals.
 */
const NOT_ACCEPTED_BY_STRIPE = ['CLF', 'UYW', 'UYI', 'IQD', 'LYD'];

/** Stripe's fixed minimum charges. In other currencies, the minimum depends on the day's exchange rate. */
const LEAST: Readonly<Record<string, string>> = {
  ...{ AED: '2.00', AUD: '0.50', BRL: '0.50', CAD: '0.50', CHF: '0.50', CZK: '15.00', DKK: '2.50', EUR: '0.50' },
  ...{ GBP: '0.30', HKD: '4.00', HUF: '175.00', INR: '0.50', JPY: '50', MXN: '10.00', MYR: '2.00', NOK: '3.00' },
  ...{ NZD: '0.50', PLN: '2.00', RON: '2.00', SEK: '3.00', SGD: '0.50', THB: '10.00', USD: '0.50' },
};

/** A PaymentIntent's amount has at most eight digits: 999,999.99 in a currency with two decimals. */
export const MOST_DIGITS = 8;

type SmallestUnit = { readonly units: number } | { readonly reason: string };

/**
 * Converts a nonnegative plain decimal to the processor's units, or returns the reason why that is impossible. The
 * currency is in capitals.
 */
export function smallestUnit(amount: string, currency: string): SmallestUnit {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(amount);
  if (match === null) return { reason: `'${amount}' is not a plain decimal that is zero or more` };
  const digits = processorDecimals(currency);
  if (digits === undefined) return { reason: `Stripe accepts no payments in ${currency}` };
  const fraction = (match[2] ?? '').replace(/0+$/, '');
  if ((TWO_ZEROS.includes(currency) || digits === 0) && fraction !== '') {
    return { reason: `Stripe accepts ${currency} without decimals, but ${amount} has some` };
  }
  if (fraction.length > digits) {
    return { reason: `Stripe uses ${digits} decimals for ${currency}, but ${amount} has more` };
  }
  const units = Number(`${match[1]}${fraction.padEnd(digits, '0')}`);
  if (units >= 10 ** MOST_DIGITS) {
    return { reason: `${amount} ${currency} is more than Stripe accepts at once (${MOST_DIGITS} digits)` };
  }
  if (digits === 3 && units % 10 !== 0) {
    return { reason: `Stripe accepts ${currency} in steps of 0.010, but ${amount} is not a multiple of that` };
  }
  return { units };
}

/**
 * Converts an integer of the smallest unit to a decimal: `-1250` → `-12.50`. Undefined if Stripe accepts no payments in
 * the currency.
 */
export function fromSmallestUnit(units: string, currency: string) {
  const [, sign, whole] = /^(-?)(\d+)$/.exec(units) ?? [];
  const digits = processorDecimals(currency);
  if (digits === undefined || whole === undefined) return undefined;
  const figures = whole.padStart(digits + 1, '0');
  return `${sign}${digits === 0 ? figures : `${figures.slice(0, -digits)}.${figures.slice(-digits)}`}`;
}

/**
 * Returns the number of decimals that Stripe uses for a currency, which may differ from ISO 4217. Undefined if Stripe
 * accepts no payments in the currency.
 */
export const processorDecimals = (currency: string): number | undefined =>
  NOT_ACCEPTED_BY_STRIPE.includes(currency)
    ? undefined
    : NO_DECIMALS.includes(currency)
      ? 0
      : THREE_DECIMALS.includes(currency)
        ? 3
        : 2;

/** Whether Stripe accepts payments in a currency, which is in capitals. */
export const isNamedByStripe = (currency: string) =>
  [NO_DECIMALS, THREE_DECIMALS, TWO_ZEROS, TWO_DECIMALS.split(' ')].some((known) => known.includes(currency));

/**
 * Returns the smallest step between two amounts, in major units. Undefined if Stripe accepts no payments in the
 * currency.
 */
export function stepOf(currency: string): string | undefined {
  if (!isNamedByStripe(currency)) return undefined;
  if (THREE_DECIMALS.includes(currency)) return '0.010';
  return NO_DECIMALS.includes(currency) || TWO_ZEROS.includes(currency) ? '1' : '0.01';
}

/** Returns the minimum charge in major units. Undefined if no minimum is fixed. */
export const leastCharge = (currency: string) => LEAST[currency];
