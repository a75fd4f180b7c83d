/**
 * Amounts with their currency. An amount is parsed from text to a decimal, never to binary floating point. An amount is
 * written with exactly its currency's ISO 4217 minor digits. Only computed prices are rounded, half up.
 */
import { Decimal as SharedDecimal } from 'decimal.js';

// A month's total is an unbounded sum of amounts below 10^15. With 60 digits, every sum is exact.
const Decimal = SharedDecimal.clone({ precision: 60, toExpNeg: -60, toExpPos: 60 });

/** Alphabetic codes of active ISO 4217 currencies by number of minor digits (list of 2026-01-01). */
const CODES_BY_MINOR_DIGITS: ReadonlyArray<readonly [digits: number, codes: string]> = [
  [0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
  [
    2,
    `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY
     COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS
     INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR
     MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
     STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG`,
  ],
  [3, 'BHD IQD JOD KWD LYD OMR TND'],
  [4, 'CLF UYW'],
];

export const MINOR_DIGITS: ReadonlyMap<string, number> = new Map(
  CODES_BY_MINOR_DIGITS.flatMap(([digits, codes]) => codes.split(/\s+/).map((code) => [code, digits] as const)),
);

/** Returns a currency's number of minor digits, or undefined if ISO 4217 has no such currency. */
export const minorDigits = (currency: string) => MINOR_DIGITS.get(currency);

export const isCurrency = (code: string) => MINOR_DIGITS.has(code);

export interface AmountProblem {
  readonly code: 'amount_malformed' | 'amount_too_precise' | 'amount_too_large';
  readonly reason: string;
}

const PLAIN_DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;

/**
 * Returns the reason why a text is not an amount with that many minor digits, or undefined if it is such an amount
 * (contract, Amounts). Compares characters, because an import calls this function three times per row.
 */
export function amountProblem(text: string, digits: number): AmountProblem | undefined {
  const match = PLAIN_DECIMAL.exec(text);
  if (match === null) return { code: 'amount_malformed', reason: 'is not a plain decimal such as 12.50 or -3' };
  const fraction = match[3];
  if (fraction !== undefined && fraction.length > digits) {
    let significant = fraction.length;
    while (significant > 0 && fraction.charCodeAt(significant - 1) === 48) significant -= 1;
    if (significant > digits) {
      return { code: 'amount_too_precise', reason: `has ${significant} decimals, but the currency has ${digits}` };
    }
  }
  const whole = match[2] as string;
  if (whole.length > 15 && whole.replace(/^0+/, '').length > 15) {
    return { code: 'amount_too_large', reason: 'is not below 1000000000000000' };
  }
  return undefined;
}

/** Returns whether a plain decimal text, such as `0` or `-0.00`, is zero. */
export function isZero(text: string) {
  if (!PLAIN_DECIMAL.test(text)) throw new TypeError(`'${text}' is not a plain decimal`);
  return !/[1-9]/.test(text);
}

/** Zero amounts are shared, because a report of ten thousand partners has a hundred thousand of them. */
const ZEROS = new Map<string, Amount>();

/** An immutable amount in one currency. Adding amounts in different currencies is a bug, and throws an error. */
export class Amount {
  readonly currency: string;
  private readonly value: InstanceType<typeof Decimal>;

  private constructor(value: InstanceType<typeof Decimal>, currency: string) {
    this.value = value;
    this.currency = currency;
  }

  /**
   * Parses a plain decimal text, such as a NUMERIC from the database. Throws for any other text, which would be a bug.
   */
  static of(text: string, currency: string) {
    if (!PLAIN_DECIMAL.test(text)) throw new TypeError(`'${text}' is not a plain decimal`);
    if (!isCurrency(currency)) throw new TypeError(`'${currency}' is not an ISO 4217 currency`);
    const value = new Decimal(text);
    if (value.decimalPlaces() > (minorDigits(currency) as number)) {
      throw new RangeError(`${text} has more decimals than ${currency}`);
    }
    return new Amount(value, currency);
  }

  /** The amount in the currency's minor units: -12.50 USD is -1250. */
  minorUnits() {
    return BigInt(this.toString().replace('.', ''));
  }

  /** Converts a whole number of the currency's minor units: -1250 USD is -12.50. */
  static ofMinorUnits(units: bigint, currency: string) {
    const digits = minorDigits(currency) ?? 2;
    const sign = units < 0n ? '-' : '';
    const text = String(units < 0n ? -units : units).padStart(digits + 1, '0');
    return Amount.of(
      digits === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`,
      currency,
    );
  }

  static zero(currency: string) {
    const zero = ZEROS.get(currency) ?? Amount.of('0', currency);
    ZEROS.set(currency, zero);
    return zero;
  }

  /** Rounds a nonnegative decimal half up to the currency's digits, for computed prices. */
  static halfUp(text: string, currency: string) {
    if (!PLAIN_DECIMAL.test(text) || text.startsWith('-')) throw new TypeError(`'${text}' is not a price`);
    if (!isCurrency(currency)) throw new TypeError(`'${currency}' is not an ISO 4217 currency`);
    return new Amount(rounded(new Decimal(text), currency), currency);
  }

  /** Multiplies a nonnegative amount by a rate, rounded half up to the currency's digits. */
  timesHalfUp(rate: string) {
    if (this.isNegative()) throw new RangeError(`${this} is negative, but a price cannot be`);
    return new Amount(rounded(this.value.times(new Decimal(rate)), this.currency), this.currency);
  }

  /** Returns a percentage, such as the tax, rounded half away from zero like the SQL function `tax_of`. */
  atPercent(percent: string) {
    return new Amount(rounded(this.value.times(new Decimal(percent)).dividedBy(100), this.currency), this.currency);
  }

  /** Returns this amount times `part` divided by `whole`, rounded half away from zero. */
  prorated(part: Amount, whole: Amount) {
    const exact = this.value.times(this.same(part).value).dividedBy(this.same(whole).value);
    return new Amount(rounded(exact, this.currency), this.currency);
  }

  static sum<Item>(currency: string, items: readonly Item[], amountOf: (item: Item) => Amount) {
    return items.reduce((sum, each) => sum.plus(amountOf(each)), Amount.zero(currency));
  }

  /** Returns how many parts this amount is, if the whole is this many parts. Rounded to an integer. */
  partsOf(whole: Amount, parts: number) {
    return this.value.times(parts).dividedBy(this.same(whole).value).round().toNumber();
  }

  isLessThan(other: Amount) {
    return this.value.lessThan(this.same(other).value);
  }

  plus(other: Amount) {
    return new Amount(this.value.plus(this.same(other).value), this.currency);
  }

  minus(other: Amount) {
    return new Amount(this.value.minus(this.same(other).value), this.currency);
  }

  negated() {
    return new Amount(this.value.negated(), this.currency);
  }

  isZero() {
    return this.value.isZero();
  }

  isNegative() {
    return this.value.isNegative() && !this.value.isZero();
  }

  isPositive() {
    return this.value.isPositive() && !this.value.isZero();
  }

  equals(other: Amount) {
    return this.value.equals(this.same(other).value);
  }

  /** Writes exactly the currency's digits: `1234.50`, `-3`, `0.000`. Zero has no sign. */
  toString() {
    return (this.value.isZero() ? new Decimal(0) : this.value).toFixed(minorDigits(this.currency) as number);
  }

  toJSON() {
    return this.toString();
  }

  forPeople() {
    return `${groupThousands(this.toString())} ${this.currency}`;
  }

  private same(other: Amount) {
    if (other.currency !== this.currency) throw new TypeError(`${this.currency} and ${other.currency} do not add up`);
    return other;
  }
}

/** Returns one sum for each currency, in the order in which the currencies first occur. */
export function sumsOf(amounts: readonly Amount[]) {
  const sums = new Map<string, Amount>();
  for (const amount of amounts) sums.set(amount.currency, sums.get(amount.currency)?.plus(amount) ?? amount);
  return [...sums.values()];
}

const rounded = (value: InstanceType<typeof Decimal>, currency: string) =>
  value.toDecimalPlaces(minorDigits(currency) as number, SharedDecimal.ROUND_HALF_UP);

/** `-1234567.50` becomes `-1,234,567.50`. */
export function groupThousands(text: string) {
  const [whole = '', fraction] = text.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

export const moneyText = (text: string, currency: string) => Amount.of(text, currency).forPeople();
