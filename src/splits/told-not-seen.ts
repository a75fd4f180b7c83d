/**
 * Describes an amount and its age in `assets:processor`. This is money that a processor or a settlement file reported,
 * but that no payout has brought to the bank. A settlement file is only a partner's claim until the bank confirms it.
 */
import { Amount } from '#money';
import { ToldNotSeen } from './payouts.sql.ts';

/** Writes `acct_1: 29.40 USD reported but not received at the bank, the oldest from 2026-08-03`. */
export function describeToldNotSeen({ account, currency, amount, since }: ToldNotSeen) {
  const whose = account === '' ? 'payments by link' : account;
  return `${whose}: ${Amount.of(amount, currency).forPeople()} reported but not received at the bank, the oldest from ${since}`;
}
