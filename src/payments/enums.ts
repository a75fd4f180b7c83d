/** The enumerations of payments, as in commands and tables. Imports nothing. */

export type Method = 'ach' | 'wire' | 'link' | 'other';
export const METHODS: readonly Method[] = ['ach', 'wire', 'link', 'other'];

export type Source = 'hand' | 'bank' | 'processor' | 'opening';

export type PaymentStatus = 'applied' | 'partly_applied' | 'unapplied' | 'reversed';
export const PAYMENT_STATUSES: readonly PaymentStatus[] = ['applied', 'partly_applied', 'unapplied', 'reversed'];

export type ReversalKind = 'returned' | 'refunded' | 'disputed' | 'mistake' | 'duplicate' | 'other';
/**
 * The kinds of reversal that a command accepts. Disputes are reported only by the processor. `other` is money that is
 * not a customer payment, such as interest.
 */
export const REVERSAL_KINDS: readonly ReversalKind[] = ['returned', 'refunded', 'mistake', 'duplicate', 'other'];
