/** The enumerations of payments, as in commands and tables. Imports nothing. */

export const METHODS = ['ach', 'wire', 'check', 'link', 'other'] as const;
export type Method = (typeof METHODS)[number];
export const REFUND_METHODS = ['ach', 'wire', 'check', 'other'] as const;
export type RefundMethod = (typeof REFUND_METHODS)[number];
export const METHOD_WORDS: Readonly<Record<Method, string>> = {
  ach: 'by ACH',
  wire: 'by bank transfer',
  check: 'by check',
  link: 'online',
  other: '',
};

export type Source = 'hand' | 'bank' | 'processor' | 'opening';

export type PaymentStatus = 'applied' | 'partly_applied' | 'unapplied' | 'reversed';
export const PAYMENT_STATUSES: readonly PaymentStatus[] = ['applied', 'partly_applied', 'unapplied', 'reversed'];

export const BANK_LINE_STATES = ['payment', 'payout', 'return', 'refund', 'booked', 'unbooked'] as const;
export type BankLineState = (typeof BANK_LINE_STATES)[number];

export type ReversalKind = 'returned' | 'refunded' | 'disputed' | 'mistake' | 'duplicate' | 'other';
/**
 * The kinds of reversal that a command accepts. Disputes are reported only by the processor. `other` is money that is
 * not a customer payment, such as interest.
 */
export const REVERSAL_KINDS: readonly ReversalKind[] = ['returned', 'refunded', 'mistake', 'duplicate', 'other'];
