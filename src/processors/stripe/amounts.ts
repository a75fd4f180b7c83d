/**
 * The amounts that Stripe can charge: not below the minimum, and expressible in its format (splits/smallest-unit.ts).
 */
import { Amount, groupThousands, minorDigits } from '#money';
import { leastCharge, MOST_DIGITS, processorDecimals, smallestUnit } from './splits/smallest-unit.ts';

/** ACH debit moves US dollars only. */
const ONE_CURRENCY: Readonly<Record<string, string>> = { us_bank_account: 'USD' };

export type StripeAmount = { readonly unitAmount: number } | { readonly reason: string };

export function stripeAmount(amount: Amount): StripeAmount {
  const { currency } = amount;
  const unit = smallestUnit(amount.toString(), currency);
  if ('reason' in unit) return unit;
  const least = leastCharge(currency);
  if (least !== undefined && amount.minus(Amount.of(least, currency)).isNegative()) {
    return { reason: `${amount.forPeople()} is below Stripe's minimum of ${least}` };
  }
  return { unitAmount: unit.units };
}

export const methodsFor = (methods: readonly string[], currency: string) =>
  methods.filter((method) => (ONE_CURRENCY[method] ?? currency) === currency);

/** Returns the amounts that Stripe accepts in a currency, as text for people: `from 0.50 to 999,999.99`, or `none`. */
export function stripeLimits(currency: string) {
  const digits = processorDecimals(currency);
  if (digits === undefined) return 'none';
  const least = leastCharge(currency);
  const whole = '9'.repeat(MOST_DIGITS - digits);
  // Decimals that must be zeros are left out of the largest amount.
  const decimals = Math.min(digits, minorDigits(currency) as number);
  const most = decimals === 0 ? whole : `${whole}.${decimals === 3 ? '990' : '9'.repeat(decimals)}`;
  const step = digits === 3 ? ', in steps of 0.010' : '';
  const cut = digits < (minorDigits(currency) as number) ? ', without decimals' : '';
  return `${least === undefined ? 'up to' : `from ${least} to`} ${groupThousands(most)}${step}${cut}`;
}
