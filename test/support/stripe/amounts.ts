/** Which amounts Stripe charges, in its smallest unit: written down apart from the program's own rules. */
import { StripeRefusal } from './state.ts';

const ZERO_DECIMAL = 'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' ');
const THREE_DECIMAL = 'bhd jod kwd omr tnd'.split(' ');
const WHOLE_UNITS = ['isk', 'ugx'];
/** Stripe's table of minimum amounts. Elsewhere it is what the day's rate makes of them: here 10 units. */
const LEAST: Readonly<Record<string, number>> = {
  ...{ usd: 50, aed: 200, aud: 50, brl: 50, cad: 50, chf: 50, czk: 1500, dkk: 250, eur: 50, gbp: 30, hkd: 400 },
  ...{ huf: 17500, inr: 50, jpy: 50, mxn: 1000, myr: 200, nok: 300, nzd: 50, pln: 200, ron: 200, sek: 300, sgd: 50 },
  thb: 1000,
};

/** Decimals of a currency's smallest unit. */
export const decimalsOf = (currency: string): number =>
  ZERO_DECIMAL.includes(currency) ? 0 : THREE_DECIMAL.includes(currency) ? 3 : 2;

export function checkCharge(amount: unknown, currency: string, param: string): void {
  const refuse = (message: string, code?: string) =>
    new StripeRefusal(400, message, code === undefined ? { param } : { param, code });
  if (!/^[a-z]{3}$/.test(currency)) throw refuse(`Invalid currency: ${currency}`);
  if (typeof amount !== 'number' || !Number.isInteger(amount) || amount < 0) {
    throw refuse(`Invalid integer: ${String(amount)}`, 'parameter_invalid_integer');
  }
  const least = LEAST[currency] ?? (ZERO_DECIMAL.includes(currency) ? 1 : 10);
  if (amount < least) throw refuse(`Amount must be at least ${least} in ${currency}`, 'amount_too_small');
  if (amount > 99_999_999) throw refuse('Amount must be no more than 99999999', 'amount_too_large');
  if (THREE_DECIMAL.includes(currency) && amount % 10 !== 0) throw refuse(`The last digit must be 0 in ${currency}`);
  if (WHOLE_UNITS.includes(currency) && amount % 100 !== 0) throw refuse(`${currency} has no decimals`);
}
