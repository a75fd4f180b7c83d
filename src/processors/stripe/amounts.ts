/**
 * Which amounts Stripe can be asked for: those that it can write exactly (smallest-unit.ts) and that are not too
 * small to charge. Source: Stripe's "Supported currencies", read in 2026.
 */
import { Amount, groupThousands, minorDigits } from '../../money.ts';
import { MOST_DIGITS, processorDecimals, smallestUnit } from './smallest-unit.ts';

/** The least that can be charged, where Stripe names it; elsewhere it depends on the day's exchange rate. */
const LEAST: Readonly<Record<string, string>> = {
  ...{ AED: '2.00', AUD: '0.50', BRL: '0.50', CAD: '0.50', CHF: '0.50', CZK: '15.00', DKK: '2.50', EUR: '0.50' },
  ...{ GBP: '0.30', HKD: '4.00', HUF: '175.00', INR: '0.50', JPY: '50', MXN: '10.00', MYR: '2.00', NOK: '3.00' },
  ...{ NZD: '0.50', PLN: '2.00', RON: '2.00', SEK: '3.00', SGD: '0.50', THB: '10.00', USD: '0.50' },
};

/** ACH debit moves US dollars only. */
const ONE_CURRENCY: Readonly<Record<string, string>> = { us_bank_account: 'USD' };

export type StripeAmount = { readonly unitAmount: number } | { readonly reason: string };

/** A positive amount in Stripe's smallest unit, or why it can't be asked for. Never rounded. */
export function stripeAmount(amount: Amount): StripeAmount {
  const { currency } = amount;
  const unit = smallestUnit(amount.toString(), currency);
  if ('reason' in unit) return unit;
  const least = LEAST[currency];
  if (least !== undefined && amount.minus(Amount.of(least, currency)).isNegative()) {
    return { reason: `${amount.forPeople()} is less than the ${least} that Stripe takes at least` };
  }
  return { unitAmount: unit.units };
}

/** Of the methods in the settings, those that can pay in a currency. */
export const methodsFor = (methods: readonly string[], currency: string): string[] =>
  methods.filter((method) => (ONE_CURRENCY[method] ?? currency) === currency);

/** The amounts of a currency that Stripe takes, for people: `from 0.50 to 999,999.99`; or why it takes none. */
export function stripeLimits(currency: string): string {
  const digits = processorDecimals(currency);
  if (digits === undefined) return 'none';
  const least = LEAST[currency];
  const whole = '9'.repeat(MOST_DIGITS - digits);
  // Decimals that must be zeros are no part of the largest amount.
  const decimals = Math.min(digits, minorDigits(currency) as number);
  const most = decimals === 0 ? whole : `${whole}.${decimals === 3 ? '990' : '9'.repeat(decimals)}`;
  const step = digits === 3 ? ', in steps of 0.010' : '';
  const cut = digits < (minorDigits(currency) as number) ? ', without decimals' : '';
  return `${least === undefined ? 'up to' : `from ${least} to`} ${groupThousands(most)}${step}${cut}`;
}
