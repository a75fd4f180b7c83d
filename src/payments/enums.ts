/** The values of payments' enumerations, as commands and tables have them. Imports nothing. */

export type Method = 'ach' | 'wire' | 'link' | 'other';
export const METHODS: readonly Method[] = ['ach', 'wire', 'link', 'other'];

/** What reported a payment. */
export type Source = 'hand' | 'bank' | 'processor' | 'opening';

export type PaymentStatus = 'applied' | 'partly_applied' | 'unapplied' | 'reversed';
export const PAYMENT_STATUSES: readonly PaymentStatus[] = ['applied', 'partly_applied', 'unapplied', 'reversed'];

export type ReversalKind = 'returned' | 'refunded' | 'disputed' | 'mistake' | 'duplicate' | 'other';
/** `other`: the money is nobody's who is invoiced, such as interest. Those that a command accepts; the processor reports disputes. */
export const REVERSAL_KINDS: readonly ReversalKind[] = ['returned', 'refunded', 'mistake', 'duplicate', 'other'];
