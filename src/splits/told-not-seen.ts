/**
 * What `assets:processor` consists of and how old it is: money that a processor or a partner's settlement file told us of,
 * and that no payout has brought to the bank. A file is a partner's word: only the bank proves it.
 */
import { Amount } from '../money.ts';
import type { ToldNotSeen } from './payouts.sql.ts';

/** `acct_1: 29.40 USD told and not seen at the bank, the oldest of 2026-08-03`. */
export function describeToldNotSeen({ account, currency, amount, since }: ToldNotSeen): string {
  const whose = account === '' ? 'payments by link' : account;
  return `${whose}: ${Amount.of(amount, currency).forPeople()} told and not seen at the bank, the oldest of ${since}`;
}
