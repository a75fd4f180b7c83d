/** The rate of a partner's cut: one value, or rates from days on in the partner's time zone. Pure. */
import { PolicyRecord } from './file.ts';

type CutRate = PolicyRecord['partner_cut_rate'];

/** The first rate also applies before its own day. */
export function cutRateOn(rates: CutRate, day: string) {
  if (typeof rates === 'string') return rates;
  return (rates.findLast(({ from }) => from === undefined || from <= day) ?? rates[0])?.rate ?? '';
}

/** Returns `0.30`, or `0.30, 0.25 from 2026-08-10`. */
export function cutRateText(rates: CutRate, rateText = (rate: string) => rate) {
  if (typeof rates === 'string') return rateText(rates);
  return rates.map(({ from, rate }) => rateText(rate) + (from === undefined ? '' : ` from ${from}`)).join(', ');
}
